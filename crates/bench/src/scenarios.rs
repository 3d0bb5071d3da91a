//! The scenarios of the example round: for each, the request, and what must come back.
//!
//! The configuration is `examples/round`, the backend [`crate::backend`]. A scenario with a plain name (`CBRProxy`) is the way that
//! is measured; one with a slash (`CBRProxy/refused`) shows another way through the same configuration. No check can be
//! passed by a bus that does nothing: where the answer would look like the request, the backend's `Orders-Accepted` tells
//! whether the backend got what it should have got.

use crate::backend;
use crate::check::{AnyOrder, Entity, Expect, Mismatch, ReceivedResponse};
use crate::messages::{
    APPEND, ORDERS, Order, QUOTES, ROUTE, Schema, Variant, append_message, append_payload, binary_message,
    list_symbol, order_message, orders, payload, quote_list,
};
use std::fmt::Write;

/// How many requests the list of the split and aggregate scenario holds.
pub const SPLIT: usize = 11;

/// A request to a bus.
#[derive(Clone, Debug)]
pub struct Request {
    /// HTTP method.
    pub method: &'static str,
    /// Path and query.
    pub path: &'static str,
    /// Headers, without those about the host, the length and the connection.
    pub headers: Vec<(&'static str, String)>,
    /// The entity; empty: none.
    pub body: Vec<u8>,
}

/// One way through the example round.
pub struct Scenario {
    /// The name of the proxy service or API, with a slash and a word for its other ways.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    build: fn(usize) -> (Request, Expect),
}

/// A scenario with a message of a certain size.
#[derive(Clone, Debug)]
pub struct Case {
    /// What to send.
    pub request: Request,
    /// What must come back.
    pub expect: Expect,
}

impl Case {
    /// Whether this is the right answer; otherwise what differs, on one line.
    pub fn check(&self, response: &ReceivedResponse<'_>) -> Result<(), Mismatch> {
        self.expect.check(response)
    }
}

impl Scenario {
    /// The scenario with a message of `size` bytes, where its message has a size to choose.
    pub fn case(&self, size: usize) -> Case {
        let (request, expect) = (self.build)(size);
        Case { request, expect }
    }

    /// Whether this is the way that is measured.
    pub fn is_measured(&self) -> bool {
        !self.name.contains('/')
    }
}

/// The scenario of that name, in any case.
pub fn find(name: &str) -> Option<&'static Scenario> {
    all().find(|scenario| scenario.name.eq_ignore_ascii_case(name))
}

/// The same, of those that are only measured as well.
pub fn find_any(name: &str) -> Option<&'static Scenario> {
    find(name).or_else(|| (name == SCAN.name).then_some(&SCAN))
}

/// All that `busbar demo` shows.
pub fn all() -> impl Iterator<Item = &'static Scenario> {
    ROUND.iter().chain([&SECURE]).chain(SHOP)
}

/// The whole round.
pub static ROUND: &[Scenario] = &[
    Scenario { name: "DirectProxy", about: "one hop, nothing looked at", build: direct },
    Scenario { name: "MessageRelayProxy", about: "relay by content type, SOAP", build: relay },
    Scenario {
        name: "MessageRelayProxy/binary",
        about: "relay of bytes that are no text",
        build: relay_binary,
    },
    Scenario {
        name: "MessageRelayProxy/broken",
        about: "relay of XML that is not well-formed",
        build: relay_broken,
    },
    Scenario { name: "CBRProxy", about: "routing on a value in the body", build: cbr_body },
    Scenario { name: "CBRProxy/refused", about: "the first order is not for IBM", build: cbr_body_refused },
    Scenario {
        name: "CBRProxy/broken",
        about: "XML that is not well-formed gets a fault",
        build: cbr_body_broken,
    },
    Scenario { name: "CBRSOAPHeaderProxy", about: "routing on a SOAP header block", build: cbr_soap },
    Scenario {
        name: "CBRSOAPHeaderProxy/refused",
        about: "no routing header block",
        build: cbr_soap_refused,
    },
    Scenario {
        name: "CBRTransportHeaderProxy",
        about: "routing on a transport header",
        build: cbr_transport,
    },
    Scenario {
        name: "CBRTransportHeaderProxy/refused",
        about: "no routing header",
        build: cbr_transport_refused,
    },
    Scenario { name: "XSLTProxy", about: "request and answer transformed by xslt", build: xslt },
    Scenario {
        name: "XSLTProxy/broken",
        about: "XML that is not well-formed gets a fault",
        build: xslt_broken,
    },
    Scenario { name: "XSLTProxy/wsdl", about: "the contract of the clients", build: xslt_wsdl },
    Scenario {
        name: "XSLTEnhancedProxy",
        about: "request and answer transformed by fastXSLT",
        build: fast_xslt,
    },
    Scenario { name: "XSLTEnhancedProxy/wsdl", about: "the contract of the clients", build: fast_xslt_wsdl },
    Scenario {
        name: "SplitAggregateProxy",
        about: "eleven requests of one, one answer of eleven",
        build: split,
    },
    Scenario { name: "CloneAggregate2Proxy", about: "two backends, one answer", build: clone2 },
    Scenario { name: "CloneAggregate4Proxy", about: "four backends, one answer", build: clone4 },
    Scenario { name: "CloneAggregate8Proxy", about: "eight backends, one answer", build: clone8 },
    Scenario { name: "EnrichBackAndForthProxy", about: "parts exchanged through properties", build: enrich },
    Scenario { name: "PayloadFactory20Proxy", about: "a new payload of 20 elements", build: payload20 },
    Scenario { name: "PayloadFactory50Proxy", about: "a new payload of 50 elements", build: payload50 },
    Scenario { name: "PayloadFactory100Proxy", about: "a new payload of 100 elements", build: payload100 },
    Scenario { name: "AppendProxy", about: "a backend that works on the payload", build: append },
    Scenario { name: "DirectMain", about: "the main sequence, with in and out", build: direct_main },
    Scenario { name: "DirectMain/unknown", about: "a path that nobody claims", build: main_unknown },
    Scenario { name: "OrderAPI", about: "an order message over REST", build: api_post },
    Scenario { name: "OrderAPI/quote", about: "a SOAP service as JSON", build: api_quote },
    Scenario { name: "OrderAPI/order", about: "an answer made in the API", build: api_get },
    Scenario { name: "OrderAPI/delete", about: "an answer without a body", build: api_delete },
    Scenario { name: "OrderAPI/unknown", about: "a path that no resource has", build: api_unknown },
];

/// The secure proxy: request and answer as they are before they are secured and after they were opened. It needs keys and https, so it
/// is beside the others.
pub static SECURE: Scenario =
    Scenario { name: "SecureProxy", about: "WS-Security over https, a plain backend", build: secure };

/// Routing that has to read the whole body before it decides (`crate::budgets::SCAN_PROXY`).
pub static SCAN: Scenario =
    Scenario { name: "ScanProxy", about: "routing on what the whole body says", build: scan };

/// The shop of `examples/sql`, whose database is made when the bus starts. What one of these changes, no other one reads.
pub static SHOP: &[Scenario] = &[
    Scenario { name: "Items", about: "rows of a database as a resource in JSON", build: items },
    Scenario { name: "Items/soap", about: "the same data service as SOAP", build: items_soap },
    Scenario {
        name: "Items/fault",
        about: "a value that is none gets a DataServiceFault",
        build: items_fault,
    },
    Scenario { name: "Prices", about: "dblookup: a row into properties", build: prices },
    Scenario { name: "Orders", about: "dbreport: two tables in a transaction", build: shop_order },
    Scenario {
        name: "Orders/refused",
        about: "the database refuses, all is taken back",
        build: shop_refused,
    },
];

const XML: &[&str] = &["text/xml"];
const PLAIN: Variant = Variant { schema: Schema::Orders, routing_header: false, first_symbol: "IBM" };
const ROUTED: Variant = Variant { schema: Schema::Orders, routing_header: true, first_symbol: "IBM" };
const OTHER: Variant = Variant { schema: Schema::Orders, routing_header: false, first_symbol: "SUN" };
const REVERSED: Variant = Variant { schema: Schema::Reversed, routing_header: false, first_symbol: "IBM" };

// --- requests and answers that several scenarios have ---------------------------------------------------------------

fn soap(path: &'static str, action: &str, body: Vec<u8>) -> Request {
    let headers = vec![
        ("Content-Type", "text/xml; charset=UTF-8".to_owned()),
        ("SOAPAction", format!("\"urn:{action}\"")),
    ];
    Request { method: "POST", path, headers, body }
}

fn order(path: &'static str, size: usize, variant: &Variant) -> Request {
    soap(path, variant.schema.names()[0], order_message(size, variant))
}

fn get(path: &'static str) -> Request {
    Request { method: "GET", path, headers: Vec::new(), body: Vec::new() }
}

fn ok(content_types: &'static [&'static str], body: Entity) -> Expect {
    Expect { status: 200, content_types, headers: Vec::new(), body }
}

fn fault(reason: &'static str) -> Expect {
    Expect { status: 500, content_types: XML, headers: Vec::new(), body: Entity::Fault(reason) }
}

/// The request's own bytes.
fn unchanged(request: Request, content_types: &'static [&'static str]) -> (Request, Expect) {
    let expect = ok(content_types, Entity::Bytes(request.body.clone()));
    (request, expect)
}

fn orders_back(size: usize, variant: &Variant) -> Expect {
    ok(XML, Entity::Payload(payload(variant.schema, &orders(size, variant))))
}

fn accepted(size: usize, variant: &Variant) -> (&'static str, String) {
    ("Orders-Accepted", orders(size, variant).len().to_string())
}

/// The end tag of the first order misspelt: not well-formed, and early.
fn broken(path: &'static str, size: usize, variant: &Variant) -> Request {
    let mut request = order(path, size, variant);
    let end = format!("</{}>", variant.schema.names()[1]);
    if let Some(at) = request.body.windows(end.len()).position(|window| window == end.as_bytes()) {
        request.body[at + 2] = b'X';
    }
    request
}

// --- the round ------------------------------------------------------------------------------------------------------

fn direct(size: usize) -> (Request, Expect) {
    unchanged(order("/services/DirectProxy", size, &PLAIN), XML)
}

fn relay(size: usize) -> (Request, Expect) {
    unchanged(order("/services/MessageRelayProxy", size, &PLAIN), XML)
}

fn relay_binary(size: usize) -> (Request, Expect) {
    let headers = vec![("Content-Type", "application/x-hessian".to_owned())];
    let path = "/services/MessageRelayProxy";
    unchanged(
        Request { method: "POST", path, headers, body: binary_message(size) },
        &["application/x-hessian"],
    )
}

fn relay_broken(size: usize) -> (Request, Expect) {
    unchanged(broken("/services/MessageRelayProxy", size, &PLAIN), XML)
}

const NO_ROUTE: &str = "No route for this order";

fn cbr_body(size: usize) -> (Request, Expect) {
    (order("/services/CBRProxy", size, &PLAIN), orders_back(size, &PLAIN))
}

fn scan(size: usize) -> (Request, Expect) {
    unchanged(order("/services/ScanProxy", size, &PLAIN), XML)
}

fn cbr_body_refused(size: usize) -> (Request, Expect) {
    (order("/services/CBRProxy", size, &OTHER), fault(NO_ROUTE))
}

fn cbr_body_broken(size: usize) -> (Request, Expect) {
    // the misspelt end tag stands behind the value that decides: damage the message in front of it
    let mut request = order("/services/CBRProxy", size, &PLAIN);
    if let Some(at) = request.body.windows(9).position(|window| window == b"</symbol>") {
        request.body[at + 2] = b'X';
    }
    (request, fault(""))
}

fn cbr_soap(size: usize) -> (Request, Expect) {
    (order("/services/CBRSOAPHeaderProxy", size, &ROUTED), orders_back(size, &ROUTED))
}

fn cbr_soap_refused(size: usize) -> (Request, Expect) {
    (order("/services/CBRSOAPHeaderProxy", size, &PLAIN), fault(NO_ROUTE))
}

fn cbr_transport(size: usize) -> (Request, Expect) {
    let mut request = order("/services/CBRTransportHeaderProxy", size, &PLAIN);
    request.headers.push(("routing", ROUTE.to_owned()));
    unchanged(request, XML)
}

fn cbr_transport_refused(size: usize) -> (Request, Expect) {
    (order("/services/CBRTransportHeaderProxy", size, &PLAIN), fault(NO_ROUTE))
}

/// The answer says the same as the request; that it passed the order service, which refuses the reversed schema, shows that
/// both ways were transformed.
fn transformed(path: &'static str, size: usize) -> (Request, Expect) {
    let mut expect = orders_back(size, &REVERSED);
    expect.headers.push(accepted(size, &REVERSED));
    (order(path, size, &REVERSED), expect)
}

fn xslt(size: usize) -> (Request, Expect) {
    transformed("/services/XSLTProxy", size)
}

fn xslt_broken(size: usize) -> (Request, Expect) {
    (broken("/services/XSLTProxy", size, &REVERSED), fault(""))
}

fn fast_xslt(size: usize) -> (Request, Expect) {
    transformed("/services/XSLTEnhancedProxy", size)
}

const REVERSED_CONTRACT: Entity =
    Entity::Contains(&["definitions", "skcotSyub", "redro", "lobmys", "emulov"]);

fn xslt_wsdl(_: usize) -> (Request, Expect) {
    (get("/services/XSLTProxy?wsdl"), ok(XML, REVERSED_CONTRACT))
}

fn fast_xslt_wsdl(_: usize) -> (Request, Expect) {
    (get("/services/XSLTEnhancedProxy?wsdl"), ok(XML, REVERSED_CONTRACT))
}

/// The header shows that the backend, which takes plain orders and nothing else, got them.
fn secure(size: usize) -> (Request, Expect) {
    let mut expect = orders_back(size, &PLAIN);
    expect.headers.push(accepted(size, &PLAIN));
    (order("/services/SecureProxy", size, &PLAIN), expect)
}

fn split(_: usize) -> (Request, Expect) {
    let mut text = format!("<m:getQuotesResponse xmlns:m=\"{QUOTES}\" xmlns:x=\"{ORDERS}\">");
    for n in 0..SPLIT {
        text.push_str("<m:getQuoteResponse><m:return>");
        for (name, value) in backend::quote(&list_symbol(n)) {
            let _ = write!(text, "<x:{name}>{value}</x:{name}>");
        }
        text.push_str("</m:return></m:getQuoteResponse>");
    }
    text.push_str("</m:getQuotesResponse>");
    (
        soap("/services/SplitAggregateProxy", "getQuotes", quote_list(SPLIT)),
        ok(XML, Entity::AnyOrder(AnyOrder::new(text))),
    )
}

fn cloned(path: &'static str, size: usize, times: usize) -> (Request, Expect) {
    let one = payload(PLAIN.schema, &orders(size, &PLAIN));
    let all = format!("<r:answers xmlns:r=\"urn:busbar:round\">{}</r:answers>", one.repeat(times));
    (order(path, size, &PLAIN), ok(XML, Entity::Payload(all)))
}

fn clone2(size: usize) -> (Request, Expect) {
    cloned("/services/CloneAggregate2Proxy", size, 2)
}

fn clone4(size: usize) -> (Request, Expect) {
    cloned("/services/CloneAggregate4Proxy", size, 4)
}

fn clone8(size: usize) -> (Request, Expect) {
    cloned("/services/CloneAggregate8Proxy", size, 8)
}

fn enrich(size: usize) -> (Request, Expect) {
    let mut list = orders(size, &PLAIN);
    list.extend(list.first().cloned());
    let expect = ok(XML, Entity::Payload(payload(PLAIN.schema, &list)));
    (order("/services/EnrichBackAndForthProxy", size, &PLAIN), expect)
}

fn report(path: &'static str, size: usize, elements: usize) -> (Request, Expect) {
    let list = orders(size, &PLAIN);
    let field = |n: usize| {
        list.get(n / 4).map_or("", |(symbol, buyer, price, volume): &Order| {
            [symbol, buyer, price.as_str(), volume.as_str()][n % 4]
        })
    };
    let mut text = "<r:report xmlns:r=\"urn:busbar:round\">".to_owned();
    for n in 0..elements {
        let _ = write!(text, "<r:value no=\"{}\">{}</r:value>", n + 1, field(n));
    }
    text.push_str("</r:report>");
    (order(path, size, &PLAIN), ok(XML, Entity::Payload(text)))
}

fn payload20(size: usize) -> (Request, Expect) {
    report("/services/PayloadFactory20Proxy", size, 20)
}

fn payload50(size: usize) -> (Request, Expect) {
    report("/services/PayloadFactory50Proxy", size, 50)
}

fn payload100(size: usize) -> (Request, Expect) {
    report("/services/PayloadFactory100Proxy", size, 100)
}

fn append(size: usize) -> (Request, Expect) {
    let text = append_payload(size);
    let suffix = backend::SUFFIX;
    let response =
        format!("<a:appendResponse xmlns:a=\"{APPEND}\"><return>{text}{suffix}</return></a:appendResponse>");
    (soap("/services/AppendProxy", "append", append_message(size)), ok(XML, Entity::Payload(response)))
}

fn direct_main(size: usize) -> (Request, Expect) {
    unchanged(order("/direct", size, &PLAIN), XML)
}

fn main_unknown(_: usize) -> (Request, Expect) {
    (get("/nobody/claims/this"), Expect { status: 404, ..ok(&[], Entity::Empty) })
}

fn api_post(size: usize) -> (Request, Expect) {
    let mut request = order("/orders", size, &PLAIN);
    request.headers = vec![("Content-Type", "application/xml".to_owned())];
    let (request, expect) = unchanged(request, &["application/xml"]);
    (request, Expect { status: 201, headers: vec![accepted(size, &PLAIN)], ..expect })
}

const JSON: &[&str] = &["application/json"];

fn api_quote(_: usize) -> (Request, Expect) {
    let quote = backend::quote("IBM");
    let number = |field: &str| {
        let text = quote.iter().find(|(name, _)| *name == field).map_or("", |(_, value)| value);
        serde_json::from_str::<serde_json::Value>(text).unwrap_or_default()
    };
    let value = serde_json::json!({"symbol": "IBM", "last": number("last"), "volume": number("volume")});
    (get("/orders/quote/IBM"), ok(JSON, Entity::Json(value)))
}

fn api_get(_: usize) -> (Request, Expect) {
    let value = serde_json::json!({"id": "17", "status": "accepted"});
    (get("/orders/17"), ok(JSON, Entity::Json(value)))
}

fn api_delete(_: usize) -> (Request, Expect) {
    let request = Request { method: "DELETE", ..get("/orders/17") };
    (request, Expect { status: 204, ..ok(&[], Entity::Empty) })
}

fn api_unknown(_: usize) -> (Request, Expect) {
    (get("/orders/a/b/c"), Expect { status: 404, ..ok(&[], Entity::Empty) })
}

// --- the shop -------------------------------------------------------------------------------------------------------

fn json(method: &'static str, path: &'static str, body: &str) -> Request {
    let name = if body.is_empty() { "Accept" } else { "Content-Type" };
    Request { method, path, headers: vec![(name, "application/json".to_owned())], body: body.into() }
}

fn items(_: usize) -> (Request, Expect) {
    let bolt = serde_json::json!({ "item": { "name": "bolt", "price": 1.25, "stock": 40 } });
    (json("GET", "/services/Items/items/bolt", ""), ok(JSON, Entity::Json(bolt)))
}

fn items_soap(_: usize) -> (Request, Expect) {
    let body = "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body>\
        <getItem xmlns=\"http://shop.example/items\"><name>bolt</name></getItem></soapenv:Body></soapenv:Envelope>";
    let bolt = "<item xmlns=\"http://shop.example/items\"><name>bolt</name><price>1.25</price><stock>40</stock></item>";
    (soap("/services/Items", "getItem", body.into()), ok(XML, Entity::Payload(bolt.to_owned())))
}

fn items_fault(_: usize) -> (Request, Expect) {
    let request = Request {
        headers: vec![("Content-Type", "application/xml".to_owned())],
        ..json("PUT", "/services/Items/items/bolt", "<_putitems_name><more>many</more></_putitems_name>")
    };
    let body = Entity::Contains(&["<DataServiceFault", "VALIDATION_ERROR", "The value is not a number"]);
    (request, Expect { status: 400, content_types: &["application/xml"], headers: Vec::new(), body })
}

fn prices(_: usize) -> (Request, Expect) {
    let found = serde_json::json!({ "price": "1.25", "stock": "40" });
    (json("POST", "/services/Prices", r#"{"item":"bolt"}"#), ok(JSON, Entity::Json(found)))
}

fn shop_order(_: usize) -> (Request, Expect) {
    let done = serde_json::json!({ "accepted": true });
    (json("POST", "/services/Orders", r#"{"item":"nut","quantity":1}"#), ok(JSON, Entity::Json(done)))
}

fn shop_refused(_: usize) -> (Request, Expect) {
    let why = "SQLite :memory:: error 275, CHECK constraint failed: stock >= 0";
    let refused = serde_json::json!({ "accepted": false, "why": why });
    let expect = Expect { status: 409, ..ok(JSON, Entity::Json(refused)) };
    (json("POST", "/services/Orders", r#"{"item":"nut","quantity":100}"#), expect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{BackendRequest, answer};

    fn echo_of<'a>(case: &'a Case, headers: &'a [(&'a str, &'a str)]) -> ReceivedResponse<'a> {
        ReceivedResponse { status: 200, headers, body: &case.request.body }
    }

    fn headers(request: &Request) -> Vec<(&str, &str)> {
        request.headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }

    #[test]
    fn names_are_unique_and_found() {
        for (n, scenario) in ROUND.iter().enumerate() {
            assert!(std::ptr::eq(find(scenario.name).unwrap(), &ROUND[n]), "{}", scenario.name);
            assert!(!scenario.about.is_empty());
        }
        assert!(find("directproxy").is_some() && find("Nobody").is_none());
    }

    #[test]
    fn a_bus_that_only_echoes_passes_what_is_an_echo_and_nothing_else() {
        let relayed = [
            "DirectProxy",
            "MessageRelayProxy",
            "MessageRelayProxy/binary",
            "MessageRelayProxy/broken",
            "CBRProxy",
            "CBRSOAPHeaderProxy",
            "CBRTransportHeaderProxy",
            "DirectMain",
        ];
        for scenario in ROUND {
            let case = scenario.case(2048);
            let headers = headers(&case.request);
            let passed = case.check(&echo_of(&case, &headers)).is_ok();
            assert_eq!(passed, relayed.contains(&scenario.name), "{}", scenario.name);
        }
    }

    #[test]
    fn the_xslt_checks_need_both_transformations() {
        for name in ["XSLTProxy", "XSLTEnhancedProxy"] {
            let case = find(name).unwrap().case(1024);
            let echoed = headers(&case.request);
            let message = case.check(&echo_of(&case, &echoed)).unwrap_err().to_string();
            assert!(message.contains("no header Orders-Accepted"), "{message}");

            // neither way transformed: the order service refuses the message
            let ask = |body: &[u8]| {
                let path = "/services/OrderService";
                let response = answer(&BackendRequest { method: "POST", path, headers: &echoed, body });
                let headers: Vec<(&str, &str)> =
                    response.headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
                let body = response.bytes(body).to_vec();
                case.check(&ReceivedResponse { status: response.status, headers: &headers, body: &body })
            };
            let message = ask(&case.request.body).unwrap_err().to_string();
            assert!(message.contains("status 500 instead of 200"), "{message}");

            // only the request transformed
            let message = ask(&order_message(1024, &PLAIN)).unwrap_err().to_string();
            assert!(message.contains("buyStocks instead of"), "{message}");

            // both
            let count = accepted(1024, &REVERSED).1;
            let right = [("Content-Type", "text/xml"), ("orders-accepted", &*count)];
            assert_eq!(case.check(&echo_of(&case, &right)), Ok(()));
        }
    }

    #[test]
    fn a_part_that_is_missing_fails() {
        let case = find("SplitAggregateProxy").unwrap().case(0);
        let Entity::AnyOrder(AnyOrder { text: all, .. }) = &case.expect.body else {
            panic!("{:?}", case.expect)
        };
        let headers = [("Content-Type", "text/xml")];
        let check = |body: &str| {
            case.check(&ReceivedResponse { status: 200, headers: &headers, body: body.as_bytes() })
        };
        assert_eq!(check(all), Ok(()));
        let start = all.find("<m:getQuoteResponse>").unwrap();
        let end = all.find("</m:getQuoteResponse>").unwrap() + "</m:getQuoteResponse>".len();
        let ten = format!("{}{}", &all[..start], &all[end..]);
        assert!(check(&ten).unwrap_err().to_string().contains("is not among the 10 found"));

        let case = find("CloneAggregate4Proxy").unwrap().case(512);
        let Entity::Payload(four) = &case.expect.body else { panic!("{:?}", case.expect) };
        let check = |body: &str| {
            case.check(&ReceivedResponse { status: 200, headers: &headers, body: body.as_bytes() })
        };
        assert_eq!(check(four), Ok(()));
        let at = four.rfind("<m:buyStocks").unwrap();
        assert!(
            check(&format!("{}</r:answers>", &four[..at])).unwrap_err().to_string().contains("is missing")
        );
    }

    #[test]
    fn broken_messages_are_broken() {
        for name in ["CBRProxy/broken", "XSLTProxy/broken", "MessageRelayProxy/broken"] {
            let body = find(name).unwrap().case(512).request.body;
            assert_eq!(body.len(), 512);
            assert!(xml::Document::parse(body, &xml::ParseOptions::default()).is_err(), "{name}");
        }
    }

    #[test]
    fn every_size_can_be_asked_for() {
        for scenario in all() {
            for size in [0, 1, 512, 100 << 10] {
                let case = scenario.case(size);
                assert!(case.request.path.starts_with('/'));
            }
        }
    }
}
