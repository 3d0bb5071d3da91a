//! The form of a message outside of the process: a head in JSON with all but the body, then the body as it is.
//!
//! [`MAGIC`], the length of the head in bytes (32 bits, big-endian), the head, the body. WSO2 writes objects of Java into the same column, which nothing
//! but Java reads; a row of it is an error that says so.

use crate::Message;
use bytes::Bytes;
use message::{Headers, Method, Properties, SoapVersion, Value, XmlValue};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use xml::{Document, NodeKind, ParseOptions};

/// What such a message begins with; the digit is the version of the form.
const MAGIC: &[u8; 8] = b"BUSBAR1\n";

/// What an object begins with that Java has serialised.
const JAVA: &[u8; 4] = &[0xac, 0xed, 0x00, 0x05];

/// The message as bytes.
pub(crate) fn encode(message: &Message) -> Vec<u8> {
    let head = json!({
        "id": message.id,
        "messageId": message.message_id,
        "method": message.method.as_str(),
        "target": message.target,
        "soap": message.soap.map(|version| match version {
            SoapVersion::V11 => "1.1",
            SoapVersion::V12 => "1.2",
        }),
        "to": message.to,
        "action": message.action,
        "soapAction": message.soap_action,
        "headers": message.headers.iter().map(|(name, value)| json!([name, header(value)])).collect::<Json>(),
        "properties": properties(&message.properties),
        "axis2": properties(&message.axis2),
    });
    let head = head.to_string();
    let mut out = Vec::with_capacity(MAGIC.len() + 4 + head.len() + message.body.len());
    out.extend_from_slice(MAGIC);
    // A head of 4 GiB does not fit into memory beside its message.
    out.extend_from_slice(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(&message.body);
    out
}

/// A value of a header: a text, or its bytes where it is none.
fn header(value: &[u8]) -> Json {
    std::str::from_utf8(value).map_or_else(|_| Json::from(value), Json::from)
}

/// Name, type and value of each.
fn properties(properties: &Properties) -> Json {
    properties
        .iter()
        .map(|(name, value)| {
            let (kind, value) = typed(value);
            json!([name, kind, value])
        })
        .collect()
}

fn typed(value: &Value) -> (&'static str, Json) {
    match value {
        Value::String(text) => ("string", Json::from(&**text)),
        Value::Integer(number) => ("integer", Json::from(*number)),
        // As texts: JSON has no NaN.
        Value::Double(number) => ("double", Json::from(number.to_string())),
        Value::JavaDouble(number) => ("javaDouble", Json::from(number.to_string())),
        Value::Boolean(truth) => ("boolean", Json::from(*truth)),
        Value::Json(json) => ("json", Json::clone(json)),
        Value::Xml(xml) if xml.nodes.iter().all(|&node| xml.document.kind(node) == NodeKind::Element) => {
            ("xml", Json::from(xml.to_xml()))
        }
        // Attributes and texts without their elements: what mediators see of them.
        Value::Xml(_) => ("string", Json::from(value.to_string())),
    }
}

/// The message of these bytes.
///
/// # Errors
/// They are none, with the reason.
pub(crate) fn decode(bytes: &[u8]) -> Result<Message, String> {
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Err(match bytes.starts_with(JAVA) {
            true => "it is an object of Java, as WSO2 stores them, which only WSO2 can read",
            false => "it is not a message that Busbar stored",
        }
        .to_owned());
    };
    let short = || "it is not complete".to_owned();
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| short())?;
    let (head, body) = rest.split_at_checked(length).ok_or_else(short)?;
    let head: Json =
        serde_json::from_slice(head).map_err(|error| format!("its head is not JSON: {error}"))?;
    let text = |name: &str| head.get(name).and_then(Json::as_str).map(str::to_owned);
    let needed = |name: &str| text(name).ok_or_else(|| format!("its head has no `{name}`"));
    Ok(Message {
        id: needed("id")?,
        message_id: needed("messageId")?,
        method: Method::new(&needed("method")?),
        target: needed("target")?,
        soap: match text("soap").as_deref() {
            None => None,
            Some("1.1") => Some(SoapVersion::V11),
            Some("1.2") => Some(SoapVersion::V12),
            Some(other) => return Err(format!("there is no SOAP {other}")),
        },
        to: text("to"),
        action: text("action"),
        soap_action: text("soapAction"),
        headers: headers_of(&head["headers"]).ok_or("its headers are malformed")?,
        body: Bytes::copy_from_slice(body),
        properties: properties_of(&head["properties"])?,
        axis2: properties_of(&head["axis2"])?,
    })
}

fn headers_of(list: &Json) -> Option<Headers> {
    let mut headers = Headers::new();
    for header in list.as_array()? {
        let name = header.get(0)?.as_str()?;
        match header.get(1)? {
            Json::String(value) => headers.append(name, value),
            value => {
                let bytes = value.as_array()?.iter().map(|byte| byte.as_u64()?.try_into().ok());
                headers.append(name, bytes.collect::<Option<Vec<u8>>>()?);
            }
        }
    }
    Some(headers)
}

fn properties_of(list: &Json) -> Result<Properties, String> {
    let mut properties = Properties::new();
    let entries = list.as_array().ok_or("its properties are malformed")?;
    for entry in entries {
        let name = entry.get(0).and_then(Json::as_str).ok_or("a property has no name")?;
        let kind = entry.get(1).and_then(Json::as_str).unwrap_or_default();
        let value = value_of(kind, entry.get(2).unwrap_or(&Json::Null));
        properties.set(name, value.ok_or_else(|| format!("the property `{name}` is malformed"))?);
    }
    Ok(properties)
}

fn value_of(kind: &str, value: &Json) -> Option<Value> {
    let number = || value.as_str()?.parse::<f64>().ok();
    Some(match kind {
        "string" => Value::from(value.as_str()?),
        "integer" => Value::Integer(value.as_i64()?),
        "double" => Value::Double(number()?),
        "javaDouble" => Value::JavaDouble(number()?),
        "boolean" => Value::Boolean(value.as_bool()?),
        "json" => Value::Json(Arc::new(value.clone())),
        "xml" => Value::Xml(Arc::new(elements_of(value.as_str()?)?)),
        _ => return None,
    })
}

/// Elements that stand one behind the other.
fn elements_of(text: &str) -> Option<XmlValue> {
    let document = Document::parse(format!("<_>{text}</_>"), &ParseOptions::trusted()).ok()?;
    let root = document.children(Document::ROOT).next()?;
    let nodes: Vec<_> = document.children(root).collect();
    Some(XmlValue::copy_of(&document, &nodes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        let mut headers = Headers::new();
        headers.append("Content-Type", "application/json");
        headers.append("X-Twice", "1");
        headers.append("X-Twice", b"caf\xe9");
        let mut properties = Properties::new();
        properties.set("text", Value::from("a \u{1F600} \"quoted\"\n"));
        properties.set("count", Value::Integer(i64::MIN));
        properties.set("half", Value::Double(0.5));
        properties.set("none", Value::JavaDouble(f64::NAN));
        properties.set("yes", Value::Boolean(true));
        properties
            .set("json", Value::Json(Arc::new(json!({"b": 1, "a": [12345678901234567890123_f64, null]}))));
        properties
            .set("xml", Value::Xml(Arc::new(elements_of("<a:x xmlns:a='urn:a' k='1'>t</a:x><y/>").unwrap())));
        let mut axis2 = Properties::new();
        axis2.set("OUT_ONLY", Value::from("true"));
        Message {
            id: "urn:uuid:1".to_owned(),
            message_id: "urn:uuid:2".to_owned(),
            method: Method::new("PURGE"),
            target: "/services/P?a=b".to_owned(),
            soap: Some(SoapVersion::V12),
            to: Some("http://127.0.0.1/x".to_owned()),
            action: None,
            soap_action: Some(String::new()),
            headers,
            body: Bytes::from_static(b"\x00\xff{}"),
            properties,
            axis2,
        }
    }

    #[test]
    fn what_was_stored_comes_back() {
        let stored = message();
        let read = decode(&encode(&stored)).unwrap();
        assert_eq!(
            format!("{:?}", (&read.id, &read.message_id, &read.method, &read.target, read.soap)),
            format!("{:?}", (&stored.id, &stored.message_id, &stored.method, &stored.target, stored.soap))
        );
        assert_eq!(
            (&read.to, &read.action, &read.soap_action),
            (&stored.to, &stored.action, &stored.soap_action)
        );
        assert_eq!(read.body, stored.body);
        let headers = |message: &Message| -> Vec<(String, Vec<u8>)> {
            message.headers.iter().map(|(name, value)| (name.to_owned(), value.to_vec())).collect()
        };
        assert_eq!(headers(&read), headers(&stored));
        let kinds = |properties: &Properties| -> Vec<(String, (&str, Json))> {
            let mut all: Vec<_> =
                properties.iter().map(|(name, value)| (name.to_owned(), typed(value))).collect();
            all.sort_by(|a, b| a.0.cmp(&b.0));
            all
        };
        assert_eq!(kinds(&read.properties), kinds(&stored.properties));
        assert_eq!(kinds(&read.axis2), kinds(&stored.axis2));
        let Some(Value::Xml(xml)) = read.properties.get("xml") else {
            panic!("{:?}", read.properties.get("xml"))
        };
        assert_eq!(xml.to_xml(), r#"<a:x xmlns:a="urn:a" k="1">t</a:x><y/>"#);
    }

    #[test]
    fn what_is_damaged_is_an_error_that_says_how() {
        let good = encode(&message());
        let head = good.len() - message().body.len();
        for end in 0..head {
            assert!(decode(&good[..end]).is_err(), "{end} bytes");
        }
        for (bytes, wanted) in [
            (b"".as_slice(), "not a message that Busbar stored"),
            (b"\xac\xed\x00\x05sr\x00", "an object of Java"),
            (b"BUSBAR2\n\0\0\0\x02{}", "not a message that Busbar stored"),
            (b"BUSBAR1\n\0\0\0\x02{}", "its head has no `id`"),
            (b"BUSBAR1\n\0\0\0\x02{{", "its head is not JSON"),
            (b"BUSBAR1\n\xff\xff\xff\xff{}", "not complete"),
        ] {
            let error = decode(bytes).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
        let text = String::from_utf8_lossy(&good[12..head]).into_owned();
        for (from, to, wanted) in [
            ("\"1.2\"", "\"2.0\"", "no SOAP 2.0"),
            ("\"boolean\",true", "\"boolean\",\"maybe\"", "`yes` is malformed"),
            ("<y/>", "<y>", "`xml` is malformed"),
            ("[\"X-Twice\",[99", "[\"X-Twice\",[999", "headers are malformed"),
        ] {
            let changed = text.replace(from, to);
            assert_ne!(changed, text, "{from}");
            let mut bytes = MAGIC.to_vec();
            bytes.extend(u32::try_from(changed.len()).unwrap().to_be_bytes());
            bytes.extend(changed.as_bytes());
            let error = decode(&bytes).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
