//! Whether a message is as a case expects it.

use crate::case::Vars;
use crate::compare::{
    Infoset, any_order, difference, elements, found, json_at, matches, parse, plain, same_json,
};
use crate::quotes::{ADDRESSING, SERVICE, SOAP11, SOAP12, is_quote};
use crate::spec::{Expect, JsonPlace, XPathValue};
use crate::wire::Message;
use crate::{Failure, failure, short};
use serde_json::Value;
use std::collections::BTreeMap;
use xml::{Document, NodeId};
use xpath::{CompileOptions, Context, Expression};

/// Checks everything that is expected of a message; `what` names it in the failure.
pub fn check(message: &Message, expect: &Expect, vars: &Vars, what: &str) -> Result<(), Failure> {
    start(message, expect, vars, what)?;
    headers(message, expect, vars, what)?;
    time(message, expect, what)?;
    bytes(message, expect, vars, what)?;
    trees(message, expect, vars, what)?;
    json(message, expect, vars, what)
}

fn start(message: &Message, expect: &Expect, vars: &Vars, what: &str) -> Result<(), Failure> {
    if let Some(wanted) = &expect.status {
        let status = message.status().unwrap_or(0);
        if !wanted.contains(&status) {
            let text = message.text();
            return Err(failure!(
                "{what}: status {status}, expected {wanted:?}; body: {}",
                short(&text, 400)
            ));
        }
    }
    if let Some(wanted) = expect.method.as_ref().filter(|m| *m != message.method()) {
        return Err(failure!("{what}: method {}, expected {wanted}", message.method()));
    }
    if let Some(wanted) = &expect.path {
        let wanted = vars.fill(wanted);
        let same = match wanted.strip_prefix('~') {
            Some(regex) => matches(regex, message.target())?,
            None => wanted == message.target(),
        };
        if !same {
            return Err(failure!("{what}: path {}, expected {wanted}", message.target()));
        }
    }
    match &expect.http_version {
        Some(version) if !message.start.split(' ').any(|w| w == version) => {
            Err(failure!("{what}: {}, expected {version}", message.start))
        }
        _ => Ok(()),
    }
}

fn headers(message: &Message, expect: &Expect, vars: &Vars, what: &str) -> Result<(), Failure> {
    for (name, wanted) in &expect.headers {
        let wanted = vars.fill(wanted);
        let value = message.headers.get(name).ok_or_else(|| failure!("{what}: header {name} is missing"))?;
        let same = match wanted.strip_prefix('~') {
            Some(regex) => found(regex, &value)?,
            None => wanted == value,
        };
        if !same {
            return Err(failure!("{what}: header {name} is {value:?}, expected {wanted:?}"));
        }
    }
    for name in &expect.absent_headers {
        if let Some(value) = message.headers.get(name) {
            return Err(failure!("{what}: header {name} should be absent, is {value:?}"));
        }
    }
    if let Some(wanted) = &expect.content_type {
        let value = message.media_type();
        if !wanted.iter().any(|w| w.eq_ignore_ascii_case(&value)) {
            return Err(failure!("{what}: media type {value:?}, expected {wanted:?}"));
        }
    }
    Ok(())
}

fn time(message: &Message, expect: &Expect, what: &str) -> Result<(), Failure> {
    let elapsed = message.elapsed.as_millis();
    match (expect.min_ms, expect.max_ms) {
        (Some(min), _) if elapsed < u128::from(min) => {
            Err(failure!("{what}: answered after {elapsed} ms, expected at least {min}"))
        }
        (_, Some(max)) if elapsed > u128::from(max) => {
            Err(failure!("{what}: answered after {elapsed} ms, expected at most {max}"))
        }
        _ => Ok(()),
    }
}

fn bytes(message: &Message, expect: &Expect, vars: &Vars, what: &str) -> Result<(), Failure> {
    if expect.empty && !message.body.trim_ascii().is_empty() {
        return Err(failure!("{what}: body should be empty: {}", short(&message.text(), 300)));
    }
    if expect.text.is_some() || !expect.contains.is_empty() || !expect.not_contains.is_empty() {
        let text = message.text();
        if let Some(wanted) = expect.text.as_ref().map(|t| vars.fill(t))
            && wanted.trim() != text.trim()
        {
            return Err(failure!("{what}: body is {:?}, expected {wanted:?}", short(&text, 400)));
        }
        for (parts, there) in [(&expect.contains, true), (&expect.not_contains, false)] {
            for part in parts {
                let part = vars.fill(part);
                if text.contains(&part) != there {
                    let not = if there { "is not" } else { "should not be" };
                    return Err(failure!("{what}: {part:?} {not} in body: {}", short(&text, 600)));
                }
            }
        }
    }
    if let Some(content) = &expect.same_bytes {
        let wanted = vars.content(content)?;
        if wanted != message.raw {
            let (n, m) = (message.raw.len(), wanted.len());
            return Err(failure!("{what}: {n} body bytes differ from the expected {m}"));
        }
    }
    match &expect.bytes_file {
        Some(file) if message.body != vars.read(file)? => Err(failure!("{what}: body differs from {file}")),
        _ => Ok(()),
    }
}

fn trees(message: &Message, expect: &Expect, vars: &Vars, what: &str) -> Result<(), Failure> {
    let wanted = match (&expect.xml, &expect.xml_file) {
        (Some(text), _) => Some(vars.fill(text).into_bytes()),
        (None, Some(file)) => Some(vars.read(file)?),
        (None, None) => None,
    };
    let payloads = expect.quote.is_some() || expect.quotes.is_some() || expect.body_xml.is_some();
    if wanted.is_none() && !payloads && expect.xpath.is_empty() {
        return Ok(());
    }
    let doc = parse(&message.body, &format!("{what}: body"))?;
    let root = doc.document_element().unwrap_or(Document::ROOT);
    if let Some(wanted) = wanted {
        let (wanted, actual) = (Infoset::parse(&wanted, "expected XML")?, Infoset::of(&doc, root));
        if wanted != actual {
            return Err(failure!("{what}: XML differs{}", difference(&[wanted], &[actual])));
        }
    }
    if payloads {
        let payload = payload(&doc, root).ok_or_else(|| {
            failure!("{what}: SOAP envelope without a body: {}", short(&message.text(), 600))
        })?;
        payload_is(&doc, &payload, message, expect, vars, what)?;
    }
    for value in &expect.xpath {
        xpath_value(&doc, value, &expect.namespaces, message, vars, what)?;
    }
    Ok(())
}

/// The element children of the SOAP body, or the document element alone; `None`: an envelope without a body.
fn payload(doc: &Document, root: NodeId) -> Option<Vec<NodeId>> {
    if doc.local(root) != "Envelope" {
        return Some(vec![root]);
    }
    let body = doc.children(root).find(|&n| doc.is_element(n, doc.namespace(root), "Body"))?;
    Some(elements(doc, body))
}

fn payload_is(
    doc: &Document,
    payload: &[NodeId],
    message: &Message,
    expect: &Expect,
    vars: &Vars,
    what: &str,
) -> Result<(), Failure> {
    if let Some(symbol) = &expect.quote
        && (payload.len() != 1 || !is_quote(doc, payload[0], symbol))
    {
        let text = message.text();
        return Err(failure!("{what}: payload is not the quote of {symbol}: {}", short(&text, 1500)));
    }
    if let Some(symbols) = &expect.quotes {
        let of = |&n: &NodeId| symbols.iter().find(|s| is_quote(doc, n, s)).map_or("?", |s| s.as_str());
        let mut actual: Vec<&str> = payload.iter().map(of).collect();
        let mut wanted: Vec<&str> = symbols.iter().map(String::as_str).collect();
        actual.sort_unstable();
        wanted.sort_unstable();
        if actual != wanted {
            let text = message.text();
            return Err(failure!(
                "{what}: payload is not the quotes of {wanted:?} (any order) but {actual:?}: {}",
                short(&text, 1500)
            ));
        }
    }
    if let Some(list) = &expect.body_xml {
        let wanted: Vec<Infoset> = list
            .iter()
            .map(|x| Infoset::parse(vars.fill(x).as_bytes(), "expected XML"))
            .collect::<Result<_, _>>()?;
        let actual: Vec<Infoset> = payload.iter().map(|&n| Infoset::of(doc, n)).collect();
        if wanted != actual {
            return Err(failure!("{what}: payload differs{}", difference(&wanted, &actual)));
        }
    }
    Ok(())
}

fn xpath_value(
    doc: &Document,
    wanted: &XPathValue,
    namespaces: &BTreeMap<String, String>,
    message: &Message,
    vars: &Vars,
    what: &str,
) -> Result<(), Failure> {
    let what = format!("{what}: XPath {}", wanted.expr);
    let samples = format!("{SERVICE}/xsd");
    let mut prefixes: BTreeMap<String, String> =
        [("s11", SOAP11), ("s12", SOAP12), ("wsa", ADDRESSING), ("m", SERVICE), ("ax", &samples)]
            .map(|(p, u)| (p.to_owned(), u.to_owned()))
            .into();
    prefixes.extend(namespaces.clone());
    let options = CompileOptions { namespaces: &prefixes, ..CompileOptions::default() };
    let expression = Expression::compile(&wanted.expr, &options).map_err(|e| failure!("{what}: {e}"))?;
    let context = Context::root(doc);
    let nothing = match expression.evaluate(&context).map_err(|e| failure!("{what}: {e}"))? {
        xpath::Value::NodeSet(nodes) => nodes.is_empty(),
        _ => false,
    };
    let value = expression.evaluate_string(&context).map_err(|e| failure!("{what}: {e}"))?;
    match (wanted.absent, nothing) {
        (true, true) => return Ok(()),
        (true, false) => return Err(failure!("{what}: should select nothing, is {value:?}")),
        (false, true) => return Err(failure!("{what}: selects nothing in {}", short(&message.text(), 600))),
        (false, false) => {}
    }
    let text = message.text();
    let body = short(&text, 600);
    if let Some(equals) = wanted.equals.as_ref().map(|v| vars.fill_value(v))
        && value.trim() != equals
    {
        return Err(failure!("{what}: is {value:?}, expected {equals:?}; body: {body}"));
    }
    if let Some(regex) = wanted.matches.as_ref().map(|v| vars.fill(v))
        && !found(&regex, &value)?
    {
        return Err(failure!("{what}: is {value:?}, expected to match {regex:?}; body: {body}"));
    }
    match &wanted.one_of {
        Some(list) if !list.iter().any(|v| vars.fill_value(v) == value.trim()) => {
            Err(failure!("{what}: is {value:?}, expected one of {list:?}; body: {body}"))
        }
        _ => Ok(()),
    }
}

fn json(message: &Message, expect: &Expect, vars: &Vars, what: &str) -> Result<(), Failure> {
    let wanted = match (&expect.json, &expect.json_file) {
        (Some(value), _) => Some(value.clone()),
        (None, Some(file)) => {
            Some(serde_json::from_slice(&vars.read(file)?).map_err(|e| failure!("{file} is no JSON: {e}"))?)
        }
        (None, None) => None,
    };
    if wanted.is_none() && expect.json_unordered.is_none() && expect.json_paths.is_empty() {
        return Ok(());
    }
    let text = message.text();
    let value: Value = serde_json::from_str(&text)
        .map_err(|e| failure!("{what}: body is no JSON ({e}): {}", short(&text, 400)))?;
    if let Some(wanted) = wanted.filter(|w| !same_json(w, &value)) {
        return Err(failure!("{what}: JSON is {value}, expected {wanted}"));
    }
    if let Some(wanted) = &expect.json_unordered
        && !same_json(&any_order(wanted), &any_order(&value))
    {
        return Err(failure!("{what}: JSON is {value}, expected (arrays in any order) {wanted}"));
    }
    expect.json_paths.iter().try_for_each(|place| json_place(&value, place, what))
}

fn json_place(value: &Value, place: &JsonPlace, what: &str) -> Result<(), Failure> {
    let path = &place.path;
    let value = match (json_at(value, path), place.absent) {
        (None, true) => return Ok(()),
        (None, false) => {
            return Err(failure!("{what}: JSON has no {path}: {}", short(&value.to_string(), 400)));
        }
        (Some(_), true) => return Err(failure!("{what}: JSON should not have {path}")),
        (Some(value), false) => value,
    };
    if let Some(wanted) = place.equals.as_ref().filter(|w| !same_json(w, value)) {
        return Err(failure!("{what}: JSON {path} is {value}, expected {wanted}"));
    }
    if let Some(wanted) = place.length {
        let length = match value {
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            other => plain(other).chars().count(),
        };
        if length != wanted {
            return Err(failure!("{what}: JSON {path} has {length} members, expected {wanted}"));
        }
    }
    match &place.matches {
        Some(regex) if !found(regex, &plain(value))? => {
            Err(failure!("{what}: JSON {path} is {value}, expected to match {regex:?}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Headers;
    use std::time::Duration;

    /// An answer as an XML and as a JSON message, and expectations that hold or say why not.
    #[test]
    fn expectations_hold_or_say_why() {
        let response = |content_type: &str, body: &str| Message {
            start: "HTTP/1.1 200 OK".to_owned(),
            headers: Headers(vec![
                ("Content-Type".to_owned(), content_type.to_owned()),
                ("X-A".to_owned(), "1".to_owned()),
                ("x-a".to_owned(), "2".to_owned()),
            ]),
            raw: body.as_bytes().to_vec(),
            body: body.as_bytes().to_vec(),
            elapsed: Duration::from_millis(50),
        };
        let xml = response(
            "text/xml; charset=UTF-8",
            "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><a b='1'> x </a></s:Body></s:Envelope>",
        );
        let json = response("application/json", r#"{"n":1.0,"list":["a","b"],"o":{}}"#);
        #[rustfmt::skip]
        let cases = [
            (&xml, r#"{"status":200,"content_type":["text/xml"],"headers":{"X-A":"1, 2"},"absent_headers":["X-B"]}"#, ""),
            (&xml, r#"{"status":[201,202]}"#, "status 200"),
            (&xml, r#"{"content_type":"application/xml"}"#, "media type"),
            (&xml, r#"{"headers":{"X-A":"~^1,"},"http_version":"HTTP/1.1"}"#, ""),
            (&xml, r#"{"headers":{"X-A":"~^2"}}"#, "X-A"),
            (&xml, r#"{"headers":{"X-B":"1"}}"#, "missing"),
            (&xml, r#"{"absent_headers":["x-A"]}"#, "absent"),
            (&xml, r#"{"body_xml":"<a b='1'>x</a>","min_ms":40,"max_ms":60}"#, ""),
            (&xml, r#"{"body_xml":["<a b='1'>x</a>","<c/>"]}"#, "payload differs"),
            (&xml, r#"{"min_ms":60}"#, "at least"),
            (&xml, r#"{"max_ms":40}"#, "at most"),
            (&xml, r#"{"xml":"<a/>"}"#, "XML differs"),
            (&xml, r#"{"xpath":[{"expr":"//s11:Body/a","equals":"x"},{"expr":"count(//a)","equals":1},{"expr":"//b","absent":true},{"expr":"//@b","one_of":["0","1"]}]}"#, ""),
            (&xml, r#"{"xpath":[{"expr":"//a","matches":"^x"}]}"#, "expected to match"),
            (&xml, r#"{"xpath":[{"expr":"//b","equals":""}]}"#, "selects nothing"),
            (&xml, r#"{"xpath":[{"expr":"//a","absent":true}]}"#, "select nothing"),
            (&xml, r#"{"xpath":[{"expr":"//["}]}"#, "XPath"),
            (&xml, r#"{"empty":true}"#, "empty"),
            (&xml, r#"{"contains":["<a "],"not_contains":["@PORT"]}"#, ""),
            (&xml, r#"{"contains":["<b "]}"#, "is not in"),
            (&xml, r#"{"not_contains":["<a "]}"#, "should not be"),
            (&xml, r#"{"quote":"IBM"}"#, "not the quote"),
            (&xml, r#"{"json":1}"#, "no JSON"),
            (&json, r#"{"json":{"list":["a","b"],"o":{},"n":1},"json_unordered":{"list":["b","a"],"n":1,"o":{}}}"#, ""),
            (&json, r#"{"json":{}}"#, "JSON is"),
            (&json, r#"{"json_paths":[{"path":"$.list","length":2},{"path":"$.list[1]","equals":"b"},{"path":"$.x","absent":true},{"path":"$.n","matches":"^1"}]}"#, ""),
            (&json, r#"{"json_paths":[{"path":"$.list[1]","equals":"a"}]}"#, "expected \"a\""),
            (&json, r#"{"json_paths":[{"path":"$.list","length":3}]}"#, "members"),
            (&json, r#"{"json_paths":[{"path":"$.x","equals":1}]}"#, "has no"),
            (&json, r#"{"json_paths":[{"path":"$.n","absent":true}]}"#, "should not have"),
            (&json, r#"{"text":" {\"n\":1.0,\"list\":[\"a\",\"b\"],\"o\":{}}\n","same_bytes":{"body":"{\"n\":1.0,\"list\":[\"a\",\"b\"],\"o\":{}}"}}"#, ""),
            (&json, r#"{"same_bytes":{"body":"x"}}"#, "bytes differ"),
            (&json, r#"{"xml":"<a/>"}"#, "no XML"),
        ];
        let vars = Vars::default();
        for (message, expect, error) in cases {
            let expect: Expect = serde_json::from_str(expect).unwrap_or_else(|e| panic!("{expect}: {e}"));
            match check(message, &expect, &vars, "it") {
                Ok(()) => assert_eq!(error, "", "{expect:?}"),
                Err(e) => assert!(!error.is_empty() && e.0.contains(error), "{expect:?}: {e}"),
            }
        }
    }
}
