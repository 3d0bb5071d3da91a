//! The stock quote service that the cases talk to: its answers follow from the symbol alone.

use crate::compare::{Infoset, elements, parse};
use crate::wire::Message;
use std::fmt::Write as _;
use xml::{Document, NodeId};

/// SOAP 1.1 envelopes.
pub const SOAP11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
/// SOAP 1.2 envelopes.
pub const SOAP12: &str = "http://www.w3.org/2003/05/soap-envelope";
/// WS-Addressing 1.0.
pub const ADDRESSING: &str = "http://www.w3.org/2005/08/addressing";
/// The service.
pub const SERVICE: &str = "http://services.samples";

/// An answer: status, content type (empty: none) and body.
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The content type; empty: no body either.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

/// A number as the service writes it: four places at most, one at least.
fn decimal(x: f64) -> String {
    let rounded: f64 = format!("{x:.4}").parse().unwrap_or(x);
    format!("{rounded:?}")
}

/// `<TAG>` with the fields of a quote, each in namespace `fields`; `tag` is a prefixed name.
fn quote(symbol: &str, tag: &str, fields: &str) -> String {
    let mut crc = flate2::Crc::new();
    crc.update(symbol.as_bytes());
    let hash = crc.sum();
    let last = 50.0 + f64::from(hash % 10_000) / 100.0;
    let values = [
        ("change", decimal(f64::from((hash >> 3) % 600) / 100.0 - 3.0)),
        ("earnings", "8.5".to_owned()),
        ("high", decimal(last * 1.04)),
        ("last", decimal(last)),
        ("lastTradeTimestamp", "Mon Jan 05 10:00:00 UTC 2015".to_owned()),
        ("low", decimal(last * 0.97)),
        ("marketCap", decimal(5e6 + f64::from(hash % 1_000_000))),
        ("name", format!("{} Company", escape(symbol))),
        ("open", decimal(last * 1.01)),
        ("peRatio", "20.25".to_owned()),
        ("percentageChange", "1.5".to_owned()),
        ("prevClose", decimal(last * 0.99)),
        ("symbol", escape(symbol)),
        ("volume", (5000 + hash % 9000).to_string()),
    ];
    let mut out = format!("<{tag} xmlns:ax21=\"{fields}\">");
    for (name, value) in values {
        let _ = write!(out, "<ax21:{name}>{value}</ax21:{name}>");
    }
    let _ = write!(out, "</{tag}>");
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Whether an element is the complete getQuote answer for the symbol, with its fields in either of their namespaces.
pub fn is_quote(doc: &Document, element: NodeId, symbol: &str) -> bool {
    let actual = Infoset::of(doc, element);
    ["", "/xsd"].iter().any(|suffix| {
        let fields = format!("{SERVICE}{suffix}");
        let wanted = format!(
            "<ns:getQuoteResponse xmlns:ns=\"{SERVICE}\">{}</ns:getQuoteResponse>",
            quote(symbol, "ns:return", &fields)
        );
        Infoset::parse(wanted.as_bytes(), "a quote").is_ok_and(|wanted| wanted == actual)
    })
}

/// The service's answer to a request.
pub fn answer(request: &Message, fields: &str, days: usize) -> Reply {
    let (path, query) = request.target().split_once('?').unwrap_or((request.target(), ""));
    let form = request.media_type() == "application/x-www-form-urlencoded";
    let mut soap = String::new();
    let mut message_id = None;
    let (operation, symbols);
    if request.method() == "GET" || form {
        operation = path.trim_end_matches('/').rsplit('/').next().unwrap_or("").to_owned();
        let text = if form { request.text() } else { String::new() };
        let parameters = text.split('&').chain(query.split('&')).filter_map(|p| p.split_once('='));
        let symbol =
            parameters.filter(|(n, v)| *n == "symbol" && !v.is_empty()).map(|(_, v)| unescape(v)).next();
        symbols = vec![symbol.unwrap_or_default()];
    } else {
        let Ok(doc) = parse(&request.body, "request") else {
            return Reply { status: 500, content_type: "text/plain", body: b"unreadable request".to_vec() };
        };
        let root = doc.document_element().unwrap_or(Document::ROOT);
        let mut payload = Some(root);
        if doc.local(root) == "Envelope" {
            soap = doc.namespace(root).to_owned();
            let child = |name: &str| doc.children(root).find(|&n| doc.is_element(n, &soap, name));
            message_id = child("Header")
                .and_then(|h| doc.children(h).find(|&n| doc.is_element(n, ADDRESSING, "MessageID")))
                .map(|n| doc.string_value(n).into_owned());
            payload = child("Body").and_then(|b| elements(&doc, b).first().copied());
        }
        operation = payload.map(|n| doc.local(n).to_owned()).unwrap_or_default();
        let is_symbol =
            |&n: &NodeId| doc.name_id(n).is_some() && matches!(doc.local(n), "symbol" | "symbols");
        let inside = payload.into_iter().flat_map(|p| std::iter::once(p).chain(doc.descendants(p)));
        symbols = inside.filter(is_symbol).map(|n| doc.string_value(n).into_owned()).collect();
    }
    if operation == "placeOrder" {
        return Reply { status: 202, content_type: "", body: Vec::new() };
    }
    let symbol = symbols.first().map_or("", |s| s.trim());
    let inner = match operation.as_str() {
        "getQuote" | "getSimpleQuote" if symbol == "ERR" => Err("Invalid stock symbol : ERR".to_owned()),
        "getQuote" | "getSimpleQuote" => Ok(quote(symbol, "ns:return", fields)),
        "getFullQuote" => {
            let quote = quote(symbol, "ax21:quote", fields);
            let day = |n| {
                format!(
                    "<ax21:tradeHistory xmlns:ax21=\"{fields}\"><ax21:day>{n}</ax21:day>{quote}</ax21:tradeHistory>"
                )
            };
            Ok(format!("<ns:return>{}</ns:return>", (0..days).map(day).collect::<String>()))
        }
        "getMarketActivity" => {
            let all: String = symbols.iter().map(|s| quote(s, "ax21:quotes", fields)).collect();
            Ok(format!("<ns:return>{all}</ns:return>"))
        }
        _ => Err(format!("The endpoint reference (EPR) for the Operation not found is {path}")),
    };
    let status = if inner.is_err() { 500 } else { 200 };
    let (content_type, content) = match (soap.as_str(), inner) {
        (SOAP12, Err(why)) => (
            "application/soap+xml; charset=UTF-8",
            format!(
                "<soapenv:Fault><soapenv:Code><soapenv:Value>soapenv:Receiver</soapenv:Value></soapenv:Code><soapenv:Reason>\
             <soapenv:Text xml:lang=\"en-US\">{}</soapenv:Text></soapenv:Reason><soapenv:Detail/></soapenv:Fault>",
                escape(&why)
            ),
        ),
        (SOAP11, Err(why)) => (
            "text/xml; charset=UTF-8",
            format!(
                "<soapenv:Fault><faultcode>soapenv:Server</faultcode><faultstring>{}</faultstring><detail/></soapenv:Fault>",
                escape(&why)
            ),
        ),
        (_, Err(why)) => {
            ("application/xml; charset=UTF-8", format!("<Exception>{}</Exception>", escape(&why)))
        }
        (soap, Ok(inner)) => {
            let content_type = match soap {
                SOAP12 => "application/soap+xml; charset=UTF-8",
                SOAP11 => "text/xml; charset=UTF-8",
                _ => "application/xml; charset=UTF-8",
            };
            (
                content_type,
                format!("<ns:{operation}Response xmlns:ns=\"{SERVICE}\">{inner}</ns:{operation}Response>"),
            )
        }
    };
    let mut body = "<?xml version='1.0' encoding='UTF-8'?>".to_owned();
    if soap.is_empty() {
        body.push_str(&content);
    } else {
        let header = message_id.map(|id| {
            format!(
                "<soapenv:Header xmlns:wsa=\"{ADDRESSING}\"><wsa:Action>urn:{operation}Response</wsa:Action>\
                 <wsa:RelatesTo>{}</wsa:RelatesTo></soapenv:Header>",
                escape(&id)
            )
        });
        let _ = write!(
            body,
            "<soapenv:Envelope xmlns:soapenv=\"{soap}\">{}<soapenv:Body>{content}</soapenv:Body></soapenv:Envelope>",
            header.unwrap_or_default()
        );
    }
    Reply { status, content_type, body: body.into_bytes() }
}

/// The load-balancing service's answer: the request's operation, emptied, with the name of the server.
pub fn server_name(request: &Message, name: &str) -> Reply {
    let unreadable =
        || Reply { status: 500, content_type: "text/plain", body: b"unreadable request".to_vec() };
    let Ok(mut doc) = parse(&request.body, "request") else { return unreadable() };
    let root = doc.document_element().unwrap_or(Document::ROOT);
    let soap = doc.namespace(root).to_owned();
    let child = |name: &str| doc.children(root).find(|&n| doc.is_element(n, &soap, name));
    let (header, body) = (child("Header"), child("Body"));
    let Some(operation) = body.and_then(|b| elements(&doc, b).first().copied()) else { return unreadable() };
    doc.remove_children(operation);
    doc.append_text(operation, &format!("Response from server: {name}"));
    if let Some(header) = header {
        doc.detach(header);
    }
    let content_type = match soap.as_str() {
        SOAP12 => "application/soap+xml; charset=UTF-8",
        _ => "text/xml; charset=UTF-8",
    };
    Reply { status: 200, content_type, body: xml::to_string(&doc, root).into_bytes() }
}

/// A value of a query or form: `+` is a space, `%XX` a byte.
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail
            .get(..2)
            .and_then(|h| std::str::from_utf8(h).ok())
            .and_then(|h| u8::from_str_radix(h, 16).ok());
        (rest, _) = match (first, hex) {
            (b'%', Some(byte)) => (&tail[2..], out.push(byte)),
            (b'+', _) => (tail, out.push(b' ')),
            (other, _) => (tail, out.push(*other)),
        };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Headers;
    use std::time::Duration;

    fn request(line: &str, content_type: &str, body: &str) -> Message {
        let headers = Headers(vec![("Content-Type".to_owned(), content_type.to_owned())]);
        let body = body.as_bytes().to_vec();
        Message { start: line.to_owned(), headers, raw: body.clone(), body, elapsed: Duration::ZERO }
    }

    #[test]
    fn answers_as_it_was_asked() {
        let soap = |uri: &str, content: &str| {
            format!(
                "<s:Envelope xmlns:s='{uri}'><s:Header><a:MessageID xmlns:a='{ADDRESSING}'>id-1</a:MessageID></s:Header><s:Body>{content}</s:Body></s:Envelope>"
            )
        };
        let get = "<m:getQuote xmlns:m='http://services.samples'><m:request><m:symbol>IBM</m:symbol></m:request></m:getQuote>";
        #[rustfmt::skip]
        let cases = [
            ("POST /s HTTP/1.1", "text/xml", soap(SOAP11, get), 200, "text/xml", "RelatesTo>id-1<"),
            ("POST /s HTTP/1.1", "application/soap+xml", soap(SOAP12, &get.replace("IBM", "ERR")), 500, "application/soap+xml", "symbol : ERR"),
            ("POST /s HTTP/1.1", "application/xml", get.to_owned(), 200, "application/xml", "IBM Company"),
            ("GET /s/getQuote?symbol=I%42+M HTTP/1.1", "", String::new(), 200, "application/xml", "IB M Company"),
            ("POST /s/getSimpleQuote HTTP/1.1", "application/x-www-form-urlencoded", "symbol=SUN".into(), 200, "application/xml", "SUN Company"),
            ("POST /s HTTP/1.1", "application/xml", "<placeOrder/>".into(), 202, "", ""),
            ("POST /s HTTP/1.1", "application/xml", "<other/>".into(), 500, "application/xml", "not found"),
            ("POST /s HTTP/1.1", "application/json", "{}".into(), 500, "text/plain", "unreadable"),
            ("POST /s HTTP/1.1", "application/xml", "<getMarketActivity><symbols>A</symbols><symbols>B</symbols></getMarketActivity>".into(), 200, "application/xml", "B Company"),
        ];
        for (line, content_type, body, status, answered, part) in cases {
            let reply = answer(&request(line, content_type, &body), SERVICE, 3);
            let text = String::from_utf8(reply.body).unwrap();
            assert_eq!(reply.status, status, "{line} {body}: {text}");
            assert!(reply.content_type.starts_with(answered), "{line}: {}", reply.content_type);
            assert!(text.contains(part), "{line} {body}: {text}");
        }
    }

    #[test]
    fn recognises_its_own_quotes() {
        let asked = request("GET /getQuote?symbol=IBM HTTP/1.1", "", "");
        for fields in ["http://services.samples", "http://services.samples/xsd", "urn:other"] {
            let doc = parse(&answer(&asked, fields, 3).body, "answer").unwrap();
            let root = doc.document_element().unwrap();
            assert_eq!(is_quote(&doc, root, "IBM"), fields != "urn:other");
            assert!(!is_quote(&doc, root, "SUN"));
        }
    }
}
