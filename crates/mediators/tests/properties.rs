//! What well-known properties hold and do, those of docs/properties.md that no other test has.

mod support;

use flow::testing::{self, Response, Tested};
use std::net::TcpListener;
use std::time::Duration;
use support::mirror;

fn configured(artifacts: &str) -> Tested {
    let synapse = "http://ws.apache.org/ns/synapse";
    let text = format!(r#"<definitions xmlns="{synapse}">{artifacts}</definitions>"#);
    let tested = testing::configuration(&busbar_mediators::registry(endpoints::endpoint), &text);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    tested
}

/// A flow that answers with properties, a line each.
fn listing(names: &[(&str, &str)]) -> String {
    let arguments: String = names
        .iter()
        .map(|(scope, name)| format!(r#"<arg expression="get-property('{scope}', '{name}')"/>"#))
        .collect();
    let lines: Vec<String> =
        names.iter().enumerate().map(|(at, (_, name))| format!("{name}=${}", at + 1)).collect();
    format!(
        r#"<payloadFactory media-type="text"><format>{}</format><args>{arguments}</args></payloadFactory>
        <property name="messageType" value="text/plain" scope="axis2"/><respond/>"#,
        lines.join("\n")
    )
}

fn compare(response: &Response, rows: &[(&str, &str, &str)]) {
    let wanted: Vec<String> = rows.iter().map(|(_, name, value)| format!("{name}={value}")).collect();
    assert_eq!(response.body.lines().collect::<Vec<_>>(), wanted, "{response:?}");
}

const HEADERS: [(&str, &str); 3] =
    [("Host", "bus:8280"), ("Content-Type", "application/xml; charset=iso-8859-1"), ("Content-Length", "4")];

#[test]
fn facts_of_a_service() {
    let rows = [
        ("default", "proxy.name", "P"),
        ("default", "ARTIFACT_NAME", "proxyP"),
        ("default", "SERVER_IP", "127.0.0.1"),
        ("default", "IsClientDoingREST", "true"),
        ("default", "IsClientDoingSOAP11", "true"),
        ("axis2", "REMOTE_ADDR", "127.0.0.1"),
        ("axis2", "REMOTE_HOST", "127.0.0.1"),
        ("axis2", "CLIENT_REMOTE_PORT", "9"),
        ("axis2", "TransportInURL", "/services/P/sub?q=1"),
        ("axis2", "SERVICE_PREFIX", "http://bus:8280/services/P"),
        ("axis2", "REST_URL_POSTFIX", "/sub?q=1"),
        ("axis2", "IN_TRANSPORT", "http"),
        ("axis2", "TRANSPORT_IN_NAME", "http"),
        ("axis2", "HTTP_METHOD", "POST"),
        ("axis2", "HTTP_REQUEST_METHOD", "POST"),
        ("axis2", "HTTP_REQ_METHOD", "POST"),
        ("axis2", "ORGINAL_CONTEN_LENGTH", "4"),
        ("axis2", "messageType", "application/xml"),
        ("axis2", "ContentType", "application/xml; charset=iso-8859-1"),
        ("axis2", "CHARACTER_SET_ENCODING", "iso-8859-1"),
        ("axis2", "message.builder.invoked", "false"),
        ("axis2", "none", ""),
    ];
    let names: Vec<_> = rows.iter().map(|(scope, name, _)| (*scope, *name)).collect();
    let flow =
        format!(r#"<proxy name="P"><target><inSequence>{}</inSequence></target></proxy>"#, listing(&names));
    compare(&configured(&flow).ask("POST", "/services/P/sub?q=1", &HEADERS, "<a/>"), &rows);
    let built = r#"<property name="x" expression="string(//a)"/>"#;
    let flow = format!(
        r#"<proxy name="P"><target><inSequence>{built}{}</inSequence></target></proxy>"#,
        listing(&[("axis2", "message.builder.invoked")])
    );
    let response = configured(&flow).ask("POST", "/services/P", &HEADERS, "<a/>");
    compare(&response, &[("", "message.builder.invoked", "true")]);
    let host = configured(&format!(
        r#"<proxy name="P"><target><inSequence>{}</inSequence></target></proxy>"#,
        listing(&[("default", "SERVER_HOST")])
    ));
    assert!(host.ask("POST", "/services/P", &HEADERS, "<a/>").body.len() > "SERVER_HOST=".len());
}

#[test]
fn facts_of_an_api() {
    let rows = [
        ("default", "SYNAPSE_REST_API", "Orders:v1.2"),
        ("default", "REST_API_CONTEXT", "/orders"),
        ("default", "SYNAPSE_REST_API_VERSION", "1.2"),
        ("default", "SYNAPSE_REST_API_VERSION_STRATEGY", "url"),
        ("default", "REST_URL_PREFIX", "http://bus:8280"),
        ("default", "SYNAPSE_RESOURCE", "/{id}/items?x={x}"),
        ("default", "rest.url.pattern", "/{id}/items?x={x}"),
        ("default", "REST_FULL_REQUEST_PATH", "/orders/1.2/7/items?x=a%20b"),
        ("default", "REST_SUB_REQUEST_PATH", "/7/items?x=a%20b"),
        ("default", "RESOURCE_PATH", "/7/items?x=a%20b"),
        ("default", "REST_METHOD", "POST"),
        ("default", "uri.var.id", "7"),
        ("default", "uri.var.x", "a b"),
        ("default", "query.param.x", "a b"),
        ("default", "ARTIFACT_NAME", "apiOrders:v1.2"),
        ("default", "proxy.name", ""),
        ("axis2", "REST_URL_POSTFIX", "/7/items?x=a%20b"),
        ("axis2", "SERVICE_PREFIX", "http://bus:8280/"),
    ];
    let names: Vec<_> = rows.iter().map(|(scope, name, _)| (*scope, *name)).collect();
    let api = format!(
        r#"<api name="Orders" context="/orders" version="1.2" version-type="url"><resource methods="POST" uri-template="/{{id}}/items?x={{x}}"><inSequence>{}</inSequence></resource></api>"#,
        listing(&names)
    );
    compare(&configured(&api).ask("POST", "/orders/1.2/7/items?x=a%20b", &HEADERS, "<a/>"), &rows);
}

/// A main sequence with a fault sequence that answers with what went wrong.
fn main(mediators: &str) -> Tested {
    let fault = listing(&[
        ("default", "ERROR_CODE"),
        ("default", "ERROR_EXCEPTION"),
        ("default", "SENDING_FAULT"),
        ("default", "BASE_ERROR_CODE"),
        ("default", "blocking.sender.error"),
    ]);
    configured(&format!(
        r#"<sequence name="main" onError="f">{mediators}</sequence><sequence name="f">{fault}</sequence>"#
    ))
}

fn call(address: &str) -> String {
    format!(r#"<call><endpoint><address uri="{address}"/></endpoint></call>"#)
}

fn axis2(name: &str, value: &str) -> String {
    format!(r#"<property name="{name}" value="{value}" scope="axis2"/>"#)
}

const SOAP: [(&str, &str); 2] = [("Content-Type", "text/xml"), ("SOAPAction", "\"a\"")];
const ENVELOPE: &str =
    r#"<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><a/></s:Body></s:Envelope>"#;
const TEAPOT: &str = "HTTP/1.1 418 Short And Stout\r\nContent-Type: text/plain\r\nX-A: theirs\r\n\r\ntea";
const SOAP_FAULT: &str = "HTTP/1.1 500 Oops\r\nContent-Type: text/xml\r\nX-A: theirs\r\n\r\n<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body><s:Fault><faultcode>s:Server</faultcode><faultstring>no</faultstring></s:Fault></s:Body></s:Envelope>";

#[test]
fn facts_of_an_answer() {
    let rows = [
        ("axis2", "HTTP_SC", "418"),
        ("axis2", "HTTP_SC_DESC", "Short And Stout"),
        ("axis2", "ORIGINAL_STATUS_CODE", "418"),
        ("axis2", "HTTP_REASON_PHRASE", "Short And Stout"),
        ("axis2", "transport.http.statusCode", "418"),
        ("axis2", "REST_URL_POSTFIX", ""),
    ];
    let names: Vec<_> = rows.iter().map(|(scope, name, _)| (*scope, *name)).collect();
    let tested = main(&format!("{}{}", call(&testing::backend(TEAPOT)), listing(&names)));
    let response = tested.ask("POST", "/", &HEADERS, "<a/>");
    compare(&response, &rows);
    assert_eq!(response.status, 418);
}

#[test]
fn what_counts_as_a_failure() {
    let forced = r#"<property name="FORCE_ERROR_ON_SOAP_FAULT" value="true"/>"#;
    let address = testing::backend(SOAP_FAULT);
    let response = main(&format!("{forced}{}<respond/>", call(&address))).ask("POST", "/", &SOAP, ENVELOPE);
    assert!(response.body.starts_with("ERROR_CODE=500000\n"), "{response:?}");
    let response = main(&format!("{}<respond/>", call(&address))).ask("POST", "/", &SOAP, ENVELOPE);
    assert!(response.status == 500 && response.body.contains("<faultstring>no"), "{response:?}");

    // The same for a REST client, for which that envelope is plain XML.
    let rest = [("Content-Type", "application/xml")];
    let response = main(&format!("{forced}{}<respond/>", call(&address))).ask("POST", "/", &rest, "<a/>");
    assert!(response.body.starts_with("ERROR_CODE=500000\n"), "{response:?}");
    let response = main(&format!("{}<respond/>", call(&address))).ask("POST", "/", &rest, "<a/>");
    assert_eq!(response.status, 500, "{response:?}");
    let tested = main(&format!("{forced}{}<respond/>", call(&testing::backend(TEAPOT))));
    assert_eq!(tested.ask("POST", "/", &rest, "<a/>").status, 418);

    // Nobody listens there.
    let free = TcpListener::bind("127.0.0.1:0").expect("loopback").local_addr().expect("an address");
    let response = main(&call(&format!("http://{free}"))).ask("POST", "/", &HEADERS, "<a/>");
    let lines: Vec<&str> = response.body.lines().collect();
    assert_eq!(lines[0], "ERROR_CODE=101503", "{response:?}");
    assert!(lines[1].len() > "ERROR_EXCEPTION=".len() && lines[2] == "SENDING_FAULT=true", "{response:?}");
    assert_eq!(lines[3], "BASE_ERROR_CODE=101503", "{response:?}");
}

#[test]
fn where_an_exchange_stood_when_it_failed() {
    let free = TcpListener::bind("127.0.0.1:0").expect("loopback").local_addr().expect("an address");
    // They take the request and close, answer with something else, or never.
    let closing = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let (closes, silent) =
        (closing.local_addr().expect("an address"), TcpListener::bind("127.0.0.1:0").expect("loopback"));
    std::thread::spawn(move || {
        for mut stream in closing.incoming().flatten() {
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
        }
    });
    let silent_at = silent.local_addr().expect("an address");
    for (address, code, state) in [
        (free.to_string(), "101503", "0"),
        (closes.to_string(), "101505", "3"),
        (testing::backend("nonsense\r\n\r\n").replace("http://", ""), "101506", "3"),
        (silent_at.to_string(), "101504", ""),
    ] {
        let fault = listing(&[("default", "ERROR_CODE"), ("default", "PROTOCOL_STATE_ON_FAILURE")]);
        let wait = axis2("SEND_TIMEOUT", "200");
        let call = call(&format!("http://{address}/"));
        let tested = configured(&format!(
            r#"<sequence name="main" onError="f">{wait}{call}</sequence><sequence name="f">{fault}</sequence>"#
        ));
        let response = tested.ask("POST", "/", &HEADERS, "<a/>");
        let lines: Vec<&str> = response.body.lines().collect();
        assert_eq!(
            lines,
            [format!("ERROR_CODE={code}"), format!("PROTOCOL_STATE_ON_FAILURE={state}")],
            "{address}"
        );
    }
}

const CORRELATION: [(&str, &str); 3] =
    [("axis2", "correlation_id"), ("default", "correlation_id"), ("transport", "activityid")];

fn ids(response: &Response) -> Vec<String> {
    response.body.lines().filter_map(|line| Some(line.split_once('=')?.1.to_owned())).collect()
}

#[test]
fn the_correlation_id_is_the_clients_or_made() {
    let tested = main(&listing(&CORRELATION));
    let given = tested.ask("POST", "/", &[("activityid", "mine")], "");
    assert_eq!(ids(&given), ["mine"; 3]);
    let made = tested.ask("POST", "/", &[], "");
    let id = &ids(&made)[0];
    assert_eq!((id.len(), ids(&made).iter().all(|other| other == id)), (36, true), "{made:?}");
    assert_eq!(made.headers.get("activityid"), Some(id.as_str()), "an answer that is made here has it");
    assert_ne!(ids(&tested.ask("POST", "/", &[], ""))[0], *id);
    // An empty one is none that would tell anything.
    assert_eq!(ids(&tested.ask("POST", "/", &[("activityid", "")], ""))[0].len(), 36);
}

#[test]
fn backends_get_the_correlation_id_and_it_outlives_their_answers() {
    let seen = r#"<property name="seen" expression="$body/*[1]"/>"#;
    let shown = r#"<payloadFactory media-type="text"><format>$1
$2</format><args><arg expression="$axis2:correlation_id"/><arg expression="$ctx:seen"/></args></payloadFactory><property name="messageType" value="text/plain" scope="axis2"/><respond/>"#;
    let calls = format!("{}{}", call(&mirror()), call(&mirror()));
    let tested = main(&format!("{calls}{seen}{shown}"));
    for (headers, given) in [(&[("ActivityID", "mine")][..], Some("mine")), (&[], None)] {
        let response = tested.ask("POST", "/", headers, "");
        let (id, request) = response.body.split_once('\n').expect("two parts");
        assert_eq!(support::value(request, "activityid"), Some(id), "{response:?}");
        assert!(given.map_or(id.len() == 36, |given| given == id), "{response:?}");
    }
    // Relayed, proxies leave answers as they are; an API's have it.
    let send = |address: &str| format!(r#"<send><endpoint><address uri="{address}"/></endpoint></send>"#);
    let inside =
        format!("<inSequence>{}</inSequence>", send(&testing::backend("HTTP/1.1 200 OK\r\n\r\nyes")));
    let tested = configured(&format!(
        r#"<proxy name="P"><target>{inside}</target></proxy><api name="A" context="/a"><resource methods="POST">{inside}</resource></api>"#
    ));
    for (path, has) in [("/services/P", false), ("/a", true)] {
        let response = tested.ask("POST", path, &[], "");
        assert_eq!((response.body.as_str(), response.headers.contains("activityid")), ("yes", has), "{path}");
    }
}

#[test]
fn copies_have_a_correlation_id_of_their_own() {
    let target = r#"<target><sequence><property name="id" expression="$axis2:correlation_id" scope="operation"/></sequence></target>"#;
    let tested = main(&format!(
        r#"<clone sequential="true" continueParent="true">{target}</clone>{}"#,
        listing(&[("axis2", "correlation_id"), ("operation", "id")])
    ));
    let all = ids(&tested.ask("POST", "/", &[("activityid", "mine")], ""));
    assert_eq!(all[0], "mine");
    assert!(all[1].starts_with("mine_") && all[1].len() == "mine_".len() + 36, "{all:?}");
    let all = ids(&tested.ask("POST", "/", &[], ""));
    assert!(all[1].starts_with(&format!("{}_", all[0])), "{all:?}");
}

#[test]
fn no_correlation_id_is_sent_where_the_setting_names_no_header() {
    let text = format!(
        r#"<definitions xmlns="http://ws.apache.org/ns/synapse"><sequence name="main">{}<respond/></sequence></definitions>"#,
        call(&mirror())
    );
    for (name, wanted) in [("", None), ("X-Request-Id", Some(36))] {
        let registry = busbar_mediators::registry(endpoints::endpoint);
        let tested = testing::configuration_with(&registry, &text, |services| {
            services.settings.correlation_header = name.to_owned();
        });
        let response = tested.ask("POST", "/", &[], "");
        let sent = support::value(&response.body, "x-request-id").map(str::len);
        assert_eq!((sent, support::value(&response.body, "activityid")), (wanted, None), "{response:?}");
    }
}

#[test]
fn waits_are_bounded() {
    // It takes the connection and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = format!("http://{}", silent.local_addr().expect("an address"));
    for name in ["SEND_TIMEOUT", "HTTP_SOCKET_TIMEOUT"] {
        let response =
            main(&format!("{}{}", axis2(name, "50"), call(&address))).ask("POST", "/", &HEADERS, "<a/>");
        assert!(response.body.starts_with("ERROR_CODE=10150"), "{name}: {response:?}");
    }
    // The limit of all connections, unless the endpoint's own timeout ends the wait before.
    let short = |timeout: &str, socket: u64| {
        let registry = busbar_mediators::registry(endpoints::endpoint);
        let timeout = format!(
            "<timeout><duration>{timeout}</duration><responseAction>fault</responseAction></timeout></address>"
        );
        let call = call(&address).replace("/></endpoint>", &format!(">{timeout}</endpoint>"));
        assert!(call.contains("</address>"), "{call}");
        let started = std::time::Instant::now();
        let response = testing::main_with(&registry, &call, |services| {
            services.settings.socket_timeout = Duration::from_millis(socket);
        })
        .ask("POST", "/", &HEADERS, "<a/>");
        assert!(response.status == 504 && started.elapsed() < Duration::from_secs(30), "{response:?}");
    };
    short("60000", 50);
    short("50", 60_000);
}

#[test]
fn blocking_calls() {
    let gone = testing::backend("HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\nnone");
    let blocking = |address: &str| call(address).replace("<call>", r#"<call blocking="true">"#);
    let response = main(&blocking(&gone)).ask("POST", "/", &HEADERS, "<a/>");
    assert!(
        response.body.contains("ERROR_CODE=404") && response.body.ends_with("blocking.sender.error=true"),
        "{response:?}"
    );
    // Which statuses are failures.
    let ends = format!("{}<respond/>", blocking(&gone));
    for scope in ["axis2", "axis2-client", "default"] {
        let tolerant =
            format!(r#"<property name="NON_ERROR_HTTP_STATUS_CODES" value="302, 404" scope="{scope}"/>"#);
        let response = main(&format!("{tolerant}{ends}")).ask("POST", "/", &HEADERS, "<a/>");
        assert_eq!((response.status, response.body.as_str()), (404, "none"), "{scope}");
    }
    for (list, fails) in [("409,418", true), ("4180", false), ("teapot", false)] {
        let strict = axis2("ERROR_HTTP_STATUS_CODES", list);
        let flow = format!("{strict}{}<respond/>", blocking(&testing::backend(TEAPOT)));
        let response = main(&flow).ask("POST", "/", &HEADERS, "<a/>");
        assert_eq!(response.body.starts_with("ERROR_CODE=418"), fails, "{list}: {response:?}");
    }
    let address = testing::backend(TEAPOT);
    for (before, wanted) in [
        ("", "mine"),
        (r#"<property name="BLOCKING_SENDER_PRESERVE_REQ_HEADERS" value="true"/>"#, "mine"),
        (r#"<property name="BLOCKING_SENDER_PRESERVE_REQ_HEADERS" value="false"/>"#, "theirs"),
    ] {
        let tested = main(&format!("{before}{}{}", blocking(&address), listing(&[("transport", "X-A")])));
        let headers = [("Content-Type", "text/plain"), ("X-A", "mine")];
        assert_eq!(tested.ask("POST", "/", &headers, "x").body, format!("X-A={wanted}"), "{before}");
    }
}

#[test]
fn answers_to_the_client() {
    const MAKE: &str = r#"<makefault version="soap11"><code xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" value="s:Server"/><reason value="no"/></makefault>"#;
    for (flow, status) in [
        (format!("{MAKE}<respond/>"), 500),
        (format!("{}{MAKE}<respond/>", axis2("FAULTS_AS_HTTP_200", "true")), 200),
    ] {
        let response = main(&flow).ask("POST", "/", &SOAP, ENVELOPE);
        assert_eq!(response.status, status, "{flow}: {response:?}");
    }
    // A message without a type gets none.
    for flow in ["<respond/>".to_owned(), format!("{}<respond/>", axis2("NoDefaultContentType", "true"))] {
        let response = main(&flow).ask("POST", "/", &[], "");
        assert_eq!(response.headers.get("Content-Type"), None, "{flow}");
    }
}

#[test]
fn forms_of_the_payload() {
    let json = axis2("messageType", "application/json");
    for (before, wanted) in [
        (String::new(), r#"{"a":{"b":null,"c":"x"}}"#),
        (axis2("PRESERVE_SPACES", "true"), r#"{"a":{"b":"  ","c":"x"}}"#),
        (axis2("PRESERVE_SPACES", "false"), r#"{"a":{"b":null,"c":"x"}}"#),
    ] {
        let tested = main(&format!("{before}{json}<respond/>"));
        let response =
            tested.ask("POST", "/", &[("Content-Type", "application/xml")], "<a><b>  </b><c>x</c></a>");
        assert_eq!(response.body, wanted, "{before}");
    }
    // Accepted: an untouched result is never parsed anyway.
    let lazy =
        r#"<property name="transform.xslt.result.disableBuild" value="true"/><xslt key="x"/><respond/>"#;
    let sheet = r#"<localEntry key="x"><xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><r xmlns=""><xsl:value-of select="//c"/></r></xsl:template></xsl:stylesheet></localEntry>"#;
    let tested = configured(&format!(r#"{sheet}<sequence name="main">{lazy}</sequence>"#));
    let response = tested.ask("POST", "/", &[("Content-Type", "application/xml")], "<a><c>x</c></a>");
    assert_eq!(response.body, "<r>x</r>");
}

#[test]
fn requests_to_the_backend() {
    let address = mirror();
    for (before, part) in [
        (
            axis2("FORCE_HTTP_CONTENT_LENGTH", "true") + &axis2("COPY_CONTENT_LENGTH_FROM_INCOMING", "true"),
            "content-length: 4\r\n",
        ),
        (axis2("REQUEST_HOST_HEADER", "other"), "host: other\r\n"),
        (axis2("FULL_URI", "true"), &*format!("POST {address}")),
        (axis2("POST_TO_URI", "true"), &*format!("POST {address}")),
        (axis2("HTTP_METHOD", "PUT"), "PUT /"),
        (axis2("FORCE_POST_PUT_NOBODY", "true"), "content-length: 0\r\n"),
        (axis2("NO_KEEPALIVE", "true"), "connection: close\r\n"),
        (axis2("FORCE_HTTP_1.0", "true"), " HTTP/1.0\r\n"),
    ] {
        let response =
            main(&format!("{before}{}<respond/>", call(&address))).ask("POST", "/", &HEADERS, "<a/>");
        let seen = response.body.to_ascii_lowercase();
        assert!(seen.contains(&part.to_ascii_lowercase()), "{before}: {}", response.body);
    }
}

#[test]
fn what_transactions_set_is_kept_for_the_exchange() {
    for name in ["SET_ROLLBACK_ONLY", "SET_REQUEUE_ON_ROLLBACK", "ACKNOWLEDGE"] {
        let tested = main(&format!(
            "{}{}{}",
            axis2(name, "true"),
            call(&testing::backend(TEAPOT)),
            listing(&[("operation", name)])
        ));
        assert_eq!(tested.ask("POST", "/", &HEADERS, "<a/>").body, format!("{name}=true"));
    }
}

#[test]
fn doubles_are_texts_as_java_writes_them() {
    let response = main(
        r#"<property name="d" value="2" type="DOUBLE"/><property name="f" expression="'3'" type="FLOAT"/>
        <property name="same" expression="$ctx:d"/>
        <switch source="$ctx:d"><case regex="2.0"><property name="case" value="2.0"/></case></switch>
        <filter source="get-property('f')" regex="3.0"><then><property name="held" value="yes"/></then></filter>
        <payloadFactory media-type="text">
        <format>$1 $2 $3 $4 $5 ${properties.synapse.d} ${properties.synapse.d + 1 == 3} $6</format>
        <args><arg expression="$ctx:d"/><arg expression="get-property('same')"/><arg expression="$ctx:case"/><arg expression="$ctx:held"/>
        <arg expression="concat('a', $ctx:d)"/><arg expression="$ctx:d = 2"/></args>
        </payloadFactory><property name="messageType" value="text/plain" scope="axis2"/><respond/>"#,
    )
    .ask("POST", "/", &HEADERS, "<a/>");
    // Within an XPath or `${…}` it is a number of that language.
    assert_eq!(response.body, "2.0 2.0 2.0 yes a2 2 true true", "{response:?}");
}

#[test]
fn a_forced_202_stands_in_for_an_answer() {
    let forced = axis2("FORCE_SC_ACCEPTED", "true");
    let blocking = call(&mirror()).replace("<call>", r#"<call blocking="true">"#);
    let send = call(&mirror()).replace("call>", "send>");
    for (flow, status) in [
        (format!("{forced}<respond/>"), 202),
        (format!(r#"{forced}<log level="full"/>{}<respond/>"#, axis2("HTTP_SC", "201")), 202),
        (
            format!(r#"{forced}<foreach expression="//i"><sequence><log/></sequence></foreach><respond/>"#),
            202,
        ),
        (format!(r#"{forced}<property name="RESPONSE" value="true"/><send/>"#), 202),
        (format!("<in>{forced}<loopback/></in><out><send/></out>"), 202),
        (format!("{}{forced}<respond/>", call(&mirror())), 202),
        (format!("{forced}{blocking}<respond/>"), 200),
        (format!("<in>{send}</in><out>{forced}<send/></out>"), 200),
        (format!("<in>{send}</in><out>{forced}<respond/></out>"), 200),
        (format!("{forced}<throwError type=\"T\" errorMessage=\"m\"/>"), 200),
    ] {
        let response = main(&flow).ask("POST", "/", &HEADERS, "<a><i/></a>");
        assert_eq!(response.status, status, "{flow}: {response:?}");
        assert_eq!(response.body.is_empty(), status == 202, "{flow}: {response:?}");
    }
}

#[test]
fn the_first_answer_counts() {
    let answer = |text: &str| {
        let argument = r#"<args><arg expression="//i[1]"/></args>"#;
        format!(
            r#"<payloadFactory media-type="text"><format>{text} $1</format>{argument}</payloadFactory><respond/>"#
        )
    };
    let bad = format!(r#"<filter xpath="//i &gt; 1"><then>{}</then></filter>"#, answer("bad"));
    let each = |attributes: &str| {
        format!(r#"<foreach expression="//i" {attributes}><sequence>{bad}</sequence></foreach>"#)
    };
    let target = |text: &str| format!("<target><sequence>{}</sequence></target>", answer(text));
    for (flow, body) in [
        (format!("{}{}", each(""), answer("late")), "bad 2"),
        (format!("{}{}", each(r#"continueLoopOnFailure="true""#), answer("late")), "bad 2"),
        (each(""), "bad 2"),
        (format!(r#"{}<throwError type="T" errorMessage="m"/>"#, each("")), "bad 2"),
        (
            format!(r#"<clone><target><sequence>{}{}</sequence></target></clone>"#, each(""), answer("late")),
            "bad 2",
        ),
        (
            format!(
                r#"<clone sequential="true" continueParent="true">{}{}</clone>{}"#,
                target("one"),
                target("two"),
                answer("late")
            ),
            "one 1",
        ),
        (format!("{}{}", each("").replace("//i &gt; 1", "//i &gt; 9"), answer("late")), "late 1"),
        (format!("{}{}{}", axis2("FORCE_SC_ACCEPTED", "true"), each(""), answer("late")), ""),
    ] {
        let response = main(&flow).ask("POST", "/", &HEADERS, "<a><i>1</i><i>2</i><i>3</i></a>");
        assert_eq!(response.body, body, "{flow}: {response:?}");
    }
}
