#!/usr/bin/env python3
"""Writes the cases of the example round: each is a folder with case.json and a config.xml that is cut out of examples/round,
so that what the cases check is what the examples show. Run it after a change there; the results are committed."""
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
ROUND = os.path.join(HERE, "..", "..", "..", "examples", "round")
SOAP11 = "http://schemas.xmlsoap.org/soap/envelope/"
ORDERS = "http://services.samples/xsd"
ROUTE = "xadmin;server1;community#1.0##"
WSO2 = ["wso2-synapse 4.1.0-wso2v68"]

# --- the configuration: an artifact and everything it names ------------------------------------------------------------


def artifacts():
    found = {}
    for folder in ("local-entries", "endpoints", "sequences", "proxy-services", "api"):
        for name in sorted(os.listdir(os.path.join(ROUND, folder))):
            with open(os.path.join(ROUND, folder, name), encoding="utf-8") as f:
                found[name[:-len(".xml")]] = f.read()
    return found


ALL = artifacts()


def config(*roots):
    wanted, todo = [], list(roots) + ["main", "fault"]
    while todo:
        name = todo.pop(0)
        if name not in wanted:
            wanted.append(name)
            todo += [k for k in re.findall(r'(?:key|sequence|endpoint)="(\w+)"', ALL[name]) if k in ALL]
    text = "\n".join(ALL[name] for name in ALL if name in wanted)
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.S)
    text = text.replace("localhost:9000/services/SimpleStockQuoteService",
                        "127.0.0.1:@PORT:quote@/services/SimpleStockQuoteService")
    text = text.replace("localhost:9000", "127.0.0.1:@PORT:echo@").replace(' xmlns="http://ws.apache.org/ns/synapse"', "")
    return '<definitions xmlns="http://ws.apache.org/ns/synapse">\n' + text + "</definitions>\n"


# --- messages ----------------------------------------------------------------------------------------------------------

LIST = [("IBM", "asankha", "140.34", "2000"), ("MSFT", "mara", "31.20", "75"), ("SAP", "chen", "118.01", "310")]
NAMES = ["buyStocks", "order", "symbol", "buyerID", "price", "volume"]


def payload(orders=LIST, names=NAMES):
    fields = "".join("<%s>%s</%s>" % (names[1], "".join("<%s>%s</%s>" % (n, v, n) for n, v in zip(names[2:], o)), names[1])
                     for o in orders)
    return '<m:%s xmlns:m="%s">%s</m:%s>' % (names[0], ORDERS, fields, names[0])


REVERSED = payload(names=[n[::-1] for n in NAMES])


def envelope(body, header=""):
    header = header and "<soapenv:Header>%s</soapenv:Header>" % header
    return '<soapenv:Envelope xmlns:soapenv="%s">%s<soapenv:Body>%s</soapenv:Body></soapenv:Envelope>' % (SOAP11, header, body)


ORDER = envelope(payload())
BROKEN = ORDER.replace("</symbol>", "</simbol>", 1)
BINARY = {"body": "c\u0001<not><xml \u0000\u00ff", "body_encoding": "latin-1"}
NOT_IBM = envelope(payload(LIST[1:] + LIST[:1]))


def post(path, body, action="buyStocks", **headers):
    every = {"Content-Type": "text/xml; charset=UTF-8", "SOAPAction": '"urn:%s"' % action}
    every.update({name.replace("_", "-"): value for name, value in headers.items()})
    return {"method": "POST", "path": path, "headers": every, "body": body}


def get(path, method="GET"):
    return {"method": method, "path": path, "headers": {}}


def bytes_of(text):
    return {"body": text}


def step(request, **expect):
    return {"request": request, "expect": expect}


def saw(count, *requests, backend="echo"):
    check = {"name": backend, "count": count}
    if requests:
        check["requests"] = list(requests)
    return {"backend": check}


def fault(reason):
    return {"status": 500, "content_type": "text/xml",
            "xpath": [{"expr": "count(/s11:Envelope/s11:Body/s11:Fault)", "equals": "1"},
                      {"expr": "//faultstring", "matches": reason}]}


def case(name, title, roots, steps, verified=True, backends=("echo", "quote")):
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    stubs = {"echo": {"name": "echo", "routes": [{"echo": True}]}, "quote": {"name": "quote", "kind": "stockquote"}}
    text = config(*roots)
    spec = {"id": "round/" + name, "group": "round", "title": title, "config": "config.xml",
            "backends": [stubs[b] for b in backends if "@PORT:%s@" % b in text], "steps": steps}
    if verified:
        spec["verified_against"] = WSO2
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps(spec, indent=1, ensure_ascii=False) + "\n")
    with open(os.path.join(folder, "config.xml"), "w", encoding="utf-8") as f:
        f.write(text)


# --- the cases ---------------------------------------------------------------------------------------------------------

P = "/services/"
case("direct", "a proxy with nothing but a send relays the very bytes both ways", ["DirectProxy"], [
    step(post(P + "DirectProxy", ORDER), status=200, content_type="text/xml", same_bytes=bytes_of(ORDER)),
    step(post(P + "DirectProxy", BROKEN), status=200, same_bytes=bytes_of(BROKEN)),
    saw(2, {"method": "POST", "path": "/services/EchoService", "same_bytes": bytes_of(ORDER),
            "headers": {"SOAPAction": '"urn:buyStocks"'}}, {"same_bytes": bytes_of(BROKEN)})])
case("message-relay", "routing on Content-Type does not read the body, whatever it is", ["MessageRelayProxy"], [
    step(post(P + "MessageRelayProxy", ORDER), status=200, same_bytes=bytes_of(ORDER)),
    step(post(P + "MessageRelayProxy", BROKEN), status=200, same_bytes=bytes_of(BROKEN)),
    step(dict(BINARY, method="POST", path=P + "MessageRelayProxy", headers={"Content-Type": "application/x-hessian"}),
         status=200, content_type="application/x-hessian", same_bytes=BINARY),
    saw(3, {"path": "/services/EchoService"}, {"path": "/services/EchoService"}, {"path": "/echo/binary"})])
case("cbr-body", "the first order's symbol decides; broken XML gets a fault and the next message is served", ["CBRProxy"], [
    step(post(P + "CBRProxy", ORDER), status=200, content_type="text/xml", body_xml=payload()),
    step(post(P + "CBRProxy", NOT_IBM), **fault("No route for this order")),
    step(post(P + "CBRProxy", BROKEN), **fault(".")),
    step(post(P + "CBRProxy", ""), status=500),
    step(post(P + "CBRProxy", ORDER), status=200, body_xml=payload()),
    saw(2, {"body_xml": payload()}, {"body_xml": payload()})])
header = '<routing xmlns="http://someuri">%s</routing>'
case("cbr-soap-header", "a SOAP header block decides and is passed on", ["CBRSOAPHeaderProxy"], [
    step(post(P + "CBRSOAPHeaderProxy", envelope(payload(), header % ROUTE)), status=200, body_xml=payload()),
    step(post(P + "CBRSOAPHeaderProxy", envelope(payload(), header % "elsewhere")), **fault("No route for this order")),
    step(post(P + "CBRSOAPHeaderProxy", ORDER), **fault("No route for this order")),
    saw(1, {"namespaces": {"r": "http://someuri"}, "body_xml": payload(),
            "xpath": [{"expr": "/s11:Envelope/s11:Header/r:routing", "equals": ROUTE}]})])
case("cbr-transport-header", "a transport header decides, the body is not read", ["CBRTransportHeaderProxy"], [
    step(post(P + "CBRTransportHeaderProxy", ORDER, routing=ROUTE), status=200, same_bytes=bytes_of(ORDER)),
    step(post(P + "CBRTransportHeaderProxy", BROKEN, Routing=ROUTE), status=200, same_bytes=bytes_of(BROKEN)),
    step(post(P + "CBRTransportHeaderProxy", ORDER, routing="elsewhere"), **fault("No route for this order")),
    step(post(P + "CBRTransportHeaderProxy", ORDER), **fault("No route for this order")),
    saw(2, {"same_bytes": bytes_of(ORDER), "headers": {"routing": ROUTE}})])
for name, proxy in (("xslt", "XSLTProxy"), ("fast-xslt", "XSLTEnhancedProxy")):
    # the engine that verifies has no fastXSLT
    case(name, "the request is transformed on the way in, the answer on the way out; ?wsdl is that of the clients", [proxy], [
        step(post(P + proxy, envelope(REVERSED), "skcotSyub"), status=200, content_type="text/xml", body_xml=REVERSED),
        step(post(P + proxy, envelope(REVERSED).replace("</lobmys>", "</lobmis>", 1), "skcotSyub"), **fault(".")),
        step(post(P + proxy, envelope(REVERSED), "skcotSyub"), status=200, body_xml=REVERSED),
        saw(2, {"path": "/services/OrderService", "body_xml": payload()}, {"body_xml": payload()}),
        step(get(P + proxy + "?wsdl"), status=200, xpath=[
            {"expr": "local-name(/*)", "equals": "definitions"},
            {"expr": "//*[local-name() = 'element'][@name = 'skcotSyub']//*[@name = 'lobmys']/@type", "equals": "xs:string"}]),
        saw(2)], verified=name == "xslt")
SYMBOLS = ["IBM", "MSFT", "SUN", "ORCL", "CSCO", "INTC", "HPQ", "SAP", "DELL", "ADBE", "TXN"]


def quotes(symbols):
    one = "<m:getQuote><m:request><m:symbol>%s</m:symbol></m:request></m:getQuote>"
    return envelope('<m:getQuotes xmlns:m="http://services.samples">%s</m:getQuotes>' % "".join(one % s for s in symbols))


answered = [{"expr": "count(//m:getQuotesResponse/m:getQuoteResponse)", "equals": "11"}]
answered += [{"expr": "count(//*[local-name() = 'symbol'][. = '%s'])" % s, "equals": "1"} for s in SYMBOLS]
case("split-aggregate", "eleven requests of one message, their answers in one message", ["SplitAggregateProxy"], [
    step(post(P + "SplitAggregateProxy", quotes(SYMBOLS), "getQuotes"), status=200, content_type="text/xml", xpath=answered),
    {"backend": {"name": "quote", "count": 11, "any_request": [{
        "headers": {"SOAPAction": "~urn:getQuote"}, "xpath": [
            {"expr": "count(//m:symbol)", "equals": "1"}, {"expr": "local-name(//s11:Body/*)", "equals": "getQuote"}]}]}},
    step(post(P + "SplitAggregateProxy", quotes(["IBM", "SUN"]).replace("</m:getQuote>", "", 1), "getQuotes"), **fault(".")),
    step(post(P + "SplitAggregateProxy", quotes(SYMBOLS), "getQuotes"), status=200, xpath=answered)])
for n in (2, 4, 8):
    proxy = "CloneAggregate%dProxy" % n
    case("clone-aggregate-%d" % n, "%d copies to %d backends, %d answers in one message" % (n, n, n), [proxy], [
        step(post(P + proxy, ORDER), status=200, content_type="text/xml",
             body_xml='<r:answers xmlns:r="urn:busbar:round">%s</r:answers>' % (payload() * n)),
        {"backend": {"name": "echo", "count": n, "any_request": [{"body_xml": payload()}]}}])
case("enrich-back-and-forth", "body to property, part to body, and back again", ["EnrichBackAndForthProxy"], [
    step(post(P + "EnrichBackAndForthProxy", ORDER), status=200, body_xml=payload(LIST + LIST[:1])),
    saw(1, {"body_xml": "<order><symbol>IBM</symbol><buyerID>asankha</buyerID><price>140.34</price>"
                        "<volume>2000</volume></order>"}),
    step(post(P + "EnrichBackAndForthProxy", BROKEN), **fault(".")),
    step(post(P + "EnrichBackAndForthProxy", ORDER), status=200, body_xml=payload(LIST + LIST[:1]))])
for n in (20, 50, 100):
    proxy = "PayloadFactory%dProxy" % n
    values = [v for o in LIST for v in o] + [""] * n
    values = "".join('<r:value no="%d">%s</r:value>' % (i + 1, values[i]) for i in range(n))
    report = '<r:report xmlns:r="urn:busbar:round">%s</r:report>' % values
    case("payload-factory-%d" % n, "a payload of %d elements with arguments; what is not there stays empty" % n, [proxy], [
        step(post(P + proxy, ORDER), status=200, content_type="text/xml", body_xml=report), saw(1, {"body_xml": report})])
text = envelope('<a:append xmlns:a="urn:busbar:append"><payload>a &lt; b</payload></a:append>')
case("append", "a service behind a plain hop", ["AppendProxy"], [
    step(post(P + "AppendProxy", text, "append"), status=200, same_bytes=bytes_of(text)),
    saw(1, {"path": "/services/AppendService"})])
case("direct-main", "main: in and out, send, and 404 for what nobody claims", [], [
    step(post("/direct", ORDER), status=200, same_bytes=bytes_of(ORDER)),
    step(post("/direct/with/a/path?x=1", ORDER), status=200, same_bytes=bytes_of(ORDER)),
    step(get("/elsewhere"), status=404, empty=True),
    saw(2, {"path": "/services/EchoService"}, {"path": "/services/EchoService"})])
case("order-api", "resources: forwarded, answered here, a SOAP service as JSON", ["OrderAPI"], [
    step({"method": "POST", "path": "/orders", "headers": {"Content-Type": "application/xml"}, "body": ORDER},
         status=201, same_bytes=bytes_of(ORDER)),
    saw(1, {"path": "/services/OrderService"}),
    step(get("/orders/17"), status=200, content_type="application/json", json={"id": "17", "status": "accepted"}),
    step(get("/orders/17", "DELETE"), status=204, empty=True),
    step(get("/orders/quote/IBM"), status=200, content_type="application/json", json_paths=[
        {"path": "$.symbol", "equals": "IBM"}, {"path": "$.last", "matches": r"^\d+\.\d+$"},
        {"path": "$.volume", "matches": r"^\d+$"}]),
    saw(1, {"content_type": "text/xml", "xpath": [{"expr": "//s11:Body/m:getQuote/m:request/m:symbol", "equals": "IBM"}]},
        backend="quote"),
    step(get("/orders/a/b/c"), status=404, empty=True),
    step(get("/orders/quote/ERR"), status=500)])
case("backend-down", "a backend that does not answer is a fault for the client, never silence", ["DirectProxy"], [
    {"stop_backend": "echo"},
    step(post(P + "DirectProxy", ORDER), **fault(".")),
    {"start_backend": "echo"}, {"wait_ms": 1500},
    step(post(P + "DirectProxy", ORDER), status=200, same_bytes=bytes_of(ORDER))])
