//! The stock quote service of the Synapse samples, over SOAP 1.1, SOAP 1.2, plain XML, and GET or POST of a form.
//!
//! Operations: `getQuote` and `getSimpleQuote` (one symbol), `getFullQuote` (a symbol's trading days), `getMarketActivity`
//! (several symbols), `placeOrder` (one-way: 202 without an entity). The figures depend on the symbol alone. The symbol `ERR`, in any
//! case, and a missing symbol give a fault.

use super::soap::{self, Blame, Call, Format};
use super::{BackendRequest, BackendResponse};
use crate::messages::{ORDERS, QUOTES};
use std::borrow::Cow;
use std::fmt::Write;

/// Trading days in the answer of `getFullQuote`.
const DAYS: u32 = 10;

/// The operations, and whether they answer.
pub const OPERATIONS: [(&str, bool); 5] = [
    ("getQuote", true),
    ("getSimpleQuote", true),
    ("getFullQuote", true),
    ("getMarketActivity", true),
    ("placeOrder", false),
];

/// The fields of a quote, as name and text, in the order in which they are answered.
pub fn quote(symbol: &str) -> [(&'static str, String); 14] {
    figures(symbol, 0)
}

pub fn answer(request: &BackendRequest<'_>) -> BackendResponse {
    let form = request.media_type() == "application/x-www-form-urlencoded";
    if request.method == "GET" || form {
        let mut parameters: Vec<(Cow<'_, str>, Cow<'_, str>)> = pairs(request.query()).collect();
        let body = if form { String::from_utf8_lossy(request.body) } else { Cow::Borrowed("") };
        parameters.extend(pairs(&body));
        let operation = request.path_only().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let symbols: Vec<String> = parameters
            .iter()
            .filter(|(name, _)| is_symbol(name))
            .map(|(_, value)| value.trim().to_owned())
            .collect();
        return serve(Format::Plain, None, operation, &symbols);
    }
    let call = match Call::read(request) {
        Ok(call) => call,
        Err(fault) => return fault,
    };
    let document = &call.document;
    let symbols: Vec<String> = document
        .descendants(call.payload)
        .filter(|&node| document.kind(node) == xml::NodeKind::Element && is_symbol(document.local(node)))
        .map(|node| document.string_value(node).trim().to_owned())
        .collect();
    serve(call.format, call.message_id.as_deref(), call.operation(), &symbols)
}

fn is_symbol(name: &str) -> bool {
    name == "symbol" || name == "symbols"
}

fn serve(format: Format, id: Option<&str>, operation: &str, symbols: &[String]) -> BackendResponse {
    let fault = |blame, why: &str| soap::fault(format, blame, id, why);
    if operation == "placeOrder" {
        return BackendResponse::empty(202);
    }
    if !OPERATIONS.iter().any(|(name, _)| *name == operation) {
        return fault(Blame::Client, &format!("the stock quote service has no operation '{operation}'"));
    }
    let Some(first) = symbols.first().filter(|symbol| !symbol.is_empty()) else {
        return fault(Blame::Client, &format!("{operation} needs a symbol"));
    };
    if let Some(bad) = symbols.iter().find(|symbol| symbol.eq_ignore_ascii_case("ERR")) {
        return fault(Blame::Server, &format!("Invalid stock symbol : {bad}"));
    }
    let mut text =
        format!("<ns:{operation}Response xmlns:ns=\"{QUOTES}\"><ns:return xmlns:ax21=\"{ORDERS}\">");
    match operation {
        "getFullQuote" => {
            for day in 0..DAYS {
                let _ = write!(text, "<ax21:tradeHistory><ax21:day>{day}</ax21:day><ax21:quote>");
                write_fields(&mut text, &figures(first, day));
                text.push_str("</ax21:quote></ax21:tradeHistory>");
            }
        }
        "getMarketActivity" => {
            for symbol in symbols {
                text.push_str("<ax21:quotes>");
                write_fields(&mut text, &quote(symbol));
                text.push_str("</ax21:quotes>");
            }
        }
        _ => write_fields(&mut text, &quote(first)),
    }
    let _ = write!(text, "</ns:return></ns:{operation}Response>");
    soap::answer(format, operation, id, &text)
}

fn write_fields(text: &mut String, fields: &[(&'static str, String)]) {
    for (name, value) in fields {
        let _ = write!(text, "<ax21:{name}>{}</ax21:{name}>", soap::escape(value));
    }
}

/// The figures of a symbol `days` ago.
fn figures(symbol: &str, days: u32) -> [(&'static str, String); 14] {
    // FNV-1a: small, well spread, the same on every machine
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    let seed = symbol.bytes().chain(days.to_le_bytes()).fold(0xCBF2_9CE4_8422_2325, mix);
    // the nth figure between low and high
    let figure = |n: u32, low: f64, high: f64| {
        let bits = seed.rotate_left(n * 11).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        low + (high - low) * bits as f64 / f64::from(1 << 24)
    };
    let last = figure(1, 20.0, 180.0);
    let change = figure(2, -4.0, 4.0);
    let previous = last - change;
    let open = previous + change * figure(3, -0.5, 0.5);
    let money = |value: f64| format!("{value:.2}");
    [
        ("change", money(change)),
        ("earnings", money(figure(4, 1.0, 12.0))),
        ("high", money(last.max(open).max(previous) + figure(5, 0.1, 3.0))),
        ("last", money(last)),
        ("lastTradeTimestamp", format!("Fri Jan {:02} 16:00:00 UTC 2026", 30 - days % 30)),
        ("low", money(last.min(open).min(previous) - figure(6, 0.1, 3.0))),
        ("marketCap", format!("{:.1}", figure(7, 1e7, 9e7))),
        ("name", format!("{symbol} Company")),
        ("open", money(open)),
        ("peRatio", money(figure(8, 8.0, 40.0))),
        ("percentageChange", money(100.0 * change / previous)),
        ("prevClose", money(previous)),
        ("symbol", symbol.to_owned()),
        ("volume", format!("{:.0}", figure(9, 5000.0, 20_000.0))),
    ]
}

/// The pairs of a form; names and values decoded, whatever cannot be decoded replaced.
fn pairs(form: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    form.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['+', '%']) {
        return Cow::Borrowed(text);
    }
    let spaced = text.replace('+', " ");
    Cow::Owned(percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::soap11;
    use xml::{Document, ParseOptions};

    fn ask(method: &str, path: &str, content_type: &str, body: &[u8]) -> (u16, String, String) {
        let headers = [("Content-Type", content_type)];
        let response = answer(&BackendRequest { method, path, headers: &headers, body });
        let text = String::from_utf8(response.bytes(body).to_vec()).unwrap();
        assert!(
            text.is_empty() || Document::parse(text.clone().into_bytes(), &ParseOptions::default()).is_ok()
        );
        (response.status, response.header("content-type").unwrap_or_default().to_owned(), text)
    }

    const AT: &str = "/services/SimpleStockQuoteService";

    fn call(operation: &str, symbol: &str) -> String {
        format!(
            "<m:{operation} xmlns:m=\"{QUOTES}\"><m:request><m:symbol>{symbol}</m:symbol></m:request></m:{operation}>"
        )
    }

    #[test]
    fn every_format_gets_the_same_quote() {
        let soap12 = String::from_utf8(soap11(&call("getQuote", "IBM")))
            .unwrap()
            .replace(crate::messages::SOAP11, crate::messages::SOAP12);
        let plain = call("getQuote", " IBM ");
        let answers = [
            ask("POST", AT, "text/xml", &soap11(&call("getQuote", "IBM"))),
            ask("POST", AT, "application/soap+xml; action=\"urn:getQuote\"", soap12.as_bytes()),
            ask("POST", AT, "application/xml", plain.as_bytes()),
            ask("GET", &format!("{AT}/getQuote?symbol=I%42M"), "", b""),
            ask("POST", &format!("{AT}/getQuote"), "application/x-www-form-urlencoded", b"a=1&symbol=+IBM"),
        ];
        let types =
            ["text/xml", "application/soap+xml", "application/xml", "application/xml", "application/xml"];
        let mut want = String::new();
        write_fields(&mut want, &quote("IBM"));
        for ((status, content_type, text), media_type) in answers.iter().zip(types) {
            assert_eq!(*status, 200, "{text}");
            assert!(content_type.starts_with(media_type), "{content_type}");
            assert!(text.contains(&want), "{text}");
        }
    }

    #[test]
    fn operations_answer_what_they_are_asked() {
        let (status, _, text) = ask("POST", AT, "text/xml", &soap11(&call("placeOrder", "IBM")));
        assert_eq!((status, &*text), (202, ""));
        let (_, _, text) = ask("POST", AT, "text/xml", &soap11(&call("getFullQuote", "IBM")));
        assert_eq!(text.matches("<ax21:tradeHistory>").count(), DAYS as usize);
        let activity = call("getMarketActivity", "IBM</m:symbol><m:symbol>SUN");
        let (_, _, text) = ask("POST", AT, "text/xml", &soap11(&activity));
        assert_eq!(text.matches("<ax21:quotes>").count(), 2, "{text}");
        let (_, _, text) = ask("POST", AT, "text/xml", &soap11(&call("getSimpleQuote", "A&amp;B")));
        assert!(text.contains("<ns:getSimpleQuoteResponse") && text.contains("A&amp;B Company"), "{text}");
    }

    #[test]
    fn faults() {
        let cases = [
            (call("getQuote", "ERR"), 500, "Invalid stock symbol : ERR"),
            (call("getQuote", "err"), 500, "Invalid stock symbol : err"),
            (call("getQuote", ""), 500, "needs a symbol"),
            (call("getNothing", "IBM"), 500, "no operation 'getNothing'"),
        ];
        for (body, status, want) in cases {
            let (got, _, text) = ask("POST", AT, "text/xml", &soap11(&body));
            assert_eq!(got, status, "{text}");
            assert!(text.contains(want) && text.contains("<soapenv:Fault>"), "{text}");
        }
        assert_eq!(ask("GET", &format!("{AT}/getQuote?symbol=%01%FF<"), "", b"").0, 200);
        assert_eq!(ask("GET", &format!("{AT}/getQuote?symbol=ERR"), "", b"").0, 500);
        assert_eq!(ask("GET", AT, "", b"").0, 400);
    }

    #[test]
    fn figures_make_sense_and_depend_on_the_symbol_alone() {
        for symbol in ["IBM", "MSFT", "", "ein sehr langer Name"] {
            let quote = quote(symbol);
            assert_eq!(quote, super::quote(symbol));
            let number = |name: &str| -> f64 {
                quote.iter().find(|(field, _)| *field == name).expect("a field").1.parse().expect("a number")
            };
            assert!(number("low") <= number("last") && number("last") <= number("high"), "{quote:?}");
            assert!(number("low") > 0.0 && number("volume") > 0.0);
            assert!((number("prevClose") + number("change") - number("last")).abs() < 0.02, "{quote:?}");
        }
        assert_ne!(quote("IBM")[3], quote("SUN")[3]);
    }
}
