//! Payloads through their types, forms and charsets.

use super::*;
use crate::attachments::Packing;
use crate::charset::Charset;
use crate::envelope::SOAP11;

fn payload(content_type: &str, body: &str, rest: bool) -> Payload {
    Payload::received(
        Body::Bytes(Bytes::copy_from_slice(body.as_bytes())),
        Reading::of(Some(content_type), None, rest),
    )
}

fn write(payload: &mut Payload, format: Format) -> String {
    String::from_utf8(payload.write(format, &PayloadLimits::default()).unwrap().to_vec()).unwrap()
}

#[test]
fn an_untouched_payload_leaves_as_it_came() {
    let soap = format!("<s:Envelope xmlns:s='{SOAP11}'><s:Body ><a  b = '1'/></s:Body></s:Envelope>");
    let mut read = payload("text/xml", &soap, false);
    assert_eq!(read.envelope(&PayloadLimits::default()).unwrap().payload().map(|_| ()), Some(()));
    assert_eq!(write(&mut read, Format::Soap(SoapVersion::V11)), soap);
    assert_eq!(write(&mut read, Format::Xml), "<a b=\"1\"/>");
}

#[test]
fn what_was_given_up_reads_as_empty_and_is_not_sent() {
    let limits = PayloadLimits::default();
    for content_type in ["text/xml", "application/json", "text/plain"] {
        let mut gone = payload(content_type, "<a/>", true);
        gone.raw = Raw::Consumed;
        assert!(gone.is_consumed() && gone.build(&limits, false).is_err(), "{content_type}");
        gone.read_as_empty();
        assert!(gone.is_consumed() && !gone.is_changed(), "{content_type}");
        assert!(!write(&mut gone, Format::Xml).contains("<a"), "{content_type}");
    }
    let mut here = payload("text/xml", "<a/>", true);
    here.give_up();
    here.read_as_empty();
    assert_eq!(write(&mut here, Format::Xml), "<a/>");
}

#[test]
fn every_type_has_an_xml_view_and_a_way_back() {
    for (content_type, body, format, out) in [
        ("application/json", r#"{"a":[1,2]}"#, Format::Xml, "<jsonObject><a>1</a><a>2</a></jsonObject>"),
        ("application/json", r#"{ "a" :1.50}"#, Format::Json, r#"{ "a" :1.50}"#),
        ("application/xml", "<a><b>1</b></a>", Format::Json, r#"{"a":{"b":1}}"#),
        (
            "text/plain",
            "a<b",
            Format::Xml,
            "<text xmlns=\"http://ws.apache.org/commons/ns/payload\">a&lt;b</text>",
        ),
        ("text/plain", "a<b", Format::Text, "a<b"),
        ("application/octet-stream", "\u{1}x", Format::Binary, "\u{1}x"),
        (
            "application/x-www-form-urlencoded",
            "a=1&b=x+y",
            Format::Json,
            r#"{"xformValues":{"a":1,"b":"x y"}}"#,
        ),
    ] {
        let mut read = payload(content_type, body, true);
        assert_eq!(write(&mut read, format), out, "{content_type}");
    }
}

#[test]
fn an_edit_is_written_anew_and_a_malformed_body_is_an_error() {
    let limits = PayloadLimits::default();
    let mut read = payload("application/json", r#"{"a":1}"#, true);
    let envelope = read.envelope_mut(&limits).unwrap();
    let root = envelope.payload().unwrap();
    envelope.document.append_element(root, "", "", "b");
    assert_eq!(write(&mut read, Format::Json), r#"{"a":1,"b":null}"#);
    for (content_type, body) in
        [("text/xml", "<a"), ("text/xml", "<a/>"), ("application/json", "{\"a\":"), ("application/xml", "x")]
    {
        let mut bad = payload(content_type, body, false);
        assert!(matches!(bad.envelope(&limits), Err(PayloadError::Malformed { .. })), "{body}");
        assert_eq!(bad.bytes().map(|bytes| &bytes[..]), Some(body.as_bytes()), "the bytes are still there");
    }
}

fn package(kind: &str, root: &str, include: bool) -> (Headers, String) {
    let inside = if include {
        "<x:Include xmlns:x='http://www.w3.org/2004/08/xop/include' href='cid:a%40x'/> "
    } else {
        "t"
    };
    let body = format!(
        "--b\r\nContent-Type: {root}; charset=UTF-8\r\nContent-ID: <r>\r\n\r\n\
         <s:Envelope xmlns:s='{SOAP11}'><s:Body><q><d>{inside}</d></q></s:Body></s:Envelope>\r\n\
         --b\r\nContent-Type: image/png\r\nContent-ID: <a@x>\r\n\r\n\u{1}hello\r\n--b--"
    );
    let content_type =
        format!("multipart/related; boundary=b; start=\"<r>\"; type=\"{kind}\"; start-info=\"text/xml\"");
    ([("Content-Type", content_type)].into_iter().collect(), body)
}

fn parts_of(written: &Written) -> Vec<crate::multipart::Part> {
    let content_type = written.content_type.as_deref().unwrap();
    crate::multipart::parse(&written.bytes, crate::multipart::boundary(content_type).unwrap()).unwrap()
}

#[test]
fn packages_are_read_as_their_envelope_and_packed_again() {
    let limits = PayloadLimits::default();
    let soap = Format::Soap(SoapVersion::V11);
    for (kind, root, include, packing) in [
        ("application/xop+xml", "application/xop+xml", true, Packing::Mtom),
        ("application/xop+xml", "application/xop+xml", true, Packing::Swa),
        ("text/xml", "text/xml", false, Packing::Swa),
        ("text/xml", "text/xml", false, Packing::Mtom),
    ] {
        let (headers, body) = package(kind, root, include);
        let mut read = Payload::arrived(Body::from(body.into_bytes()), &headers, false);
        let text = if include { "AWhlbGxv " } else { "t" };
        assert!(write(&mut read, Format::Xml).contains(&format!("<d>{text}</d>")), "{kind}");
        assert_eq!(read.has_attachments(), !include);
        read.envelope_mut(&limits).unwrap();
        let written = read.written(&Writing { packing, ..Writing::plain(soap) }, &limits).unwrap();
        let parts = parts_of(&written);
        assert_eq!(parts.len(), 2, "{kind}");
        assert_eq!((parts[1].id(), &parts[1].content[..]), (Some("a@x"), &b"\x01hello"[..]));
        let root = String::from_utf8_lossy(&parts[0].content);
        let included = include && packing == Packing::Mtom;
        assert_eq!(root.contains("href=\"cid:a@x\""), included, "{root}");
        assert_eq!(root.contains(text), !included, "{root}");
        // And again, as a receiver would.
        let content_type = written.content_type.clone().unwrap();
        let headers: Headers = [("Content-Type", content_type)].into_iter().collect();
        let mut again = Payload::arrived(Body::from(written.bytes), &headers, false);
        assert!(write(&mut again, Format::Xml).contains(&format!("<d>{text}</d>")), "{kind}");
    }
}

#[test]
fn attachments_survive_a_new_envelope_and_a_changed_text_is_no_part() {
    let limits = PayloadLimits::default();
    let swa = Writing { packing: Packing::Swa, ..Writing::plain(Format::Soap(SoapVersion::V11)) };
    for read_before in [true, false] {
        let (headers, body) = package("text/xml", "text/xml", false);
        let mut read = Payload::arrived(Body::from(body.into_bytes()), &headers, false);
        if read_before {
            read.envelope(&limits).unwrap();
        }
        read.set_envelope(wrapped("text", "new"));
        assert!(read.has_attachments());
        let parts = parts_of(&read.written(&swa, &limits).unwrap());
        assert_eq!((parts.len(), &parts[1].content[..]), (2, &b"\x01hello"[..]));
    }
    let (headers, body) = package("application/xop+xml", "application/xop+xml", true);
    let mut read = Payload::arrived(Body::from(body.into_bytes()), &headers, false);
    let envelope = read.envelope_mut(&limits).unwrap();
    let d = envelope.elements_of(envelope.payload().unwrap()).next().unwrap();
    envelope.document.set_text(d, "other");
    let written = read.written(&Writing { packing: Packing::Mtom, ..swa }, &limits).unwrap();
    assert_eq!(parts_of(&written).len(), 1);
}

#[test]
fn packages_that_are_not_whole_are_errors() {
    let limits = PayloadLimits::default();
    let (headers, body) = package("application/xop+xml", "application/xop+xml", true);
    for bad in [
        body.replace("a%40x", "b"),
        body.replace("--b--", ""),
        body.replace("Envelope", "E"),
        String::from("x"),
    ] {
        let mut read = Payload::arrived(Body::from(bad.clone().into_bytes()), &headers, false);
        assert!(matches!(read.envelope(&limits), Err(PayloadError::Malformed { .. })), "{bad}");
        assert_eq!(read.take_body().buffered(), bad.as_bytes(), "it can still be relayed");
    }
    // One small part, included many times.
    let include = "<x:Include xmlns:x='http://www.w3.org/2004/08/xop/include' href='cid:a@x'/>";
    let many = body.replace("<d>", &format!("<d>{}", include.repeat(100)));
    let mut read = Payload::arrived(Body::from(many.clone().into_bytes()), &headers, false);
    let small = PayloadLimits { held: 500, ..PayloadLimits::default() };
    assert!(matches!(read.envelope(&small), Err(PayloadError::TooLarge { .. })));
}

#[test]
fn payloads_are_written_in_any_charset() {
    let limits = PayloadLimits::default();
    let latin = Writing {
        charset: Charset::for_label("ISO-8859-1").unwrap(),
        charset_name: "ISO-8859-1",
        ..Writing::plain(Format::Xml)
    };
    let mut read = payload("application/xml", "<a>ü€</a>", true);
    let out = read.written(&latin, &limits).unwrap().bytes;
    assert_eq!(&out[..], b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xfc&#8364;</a>");
    let mut json = payload("application/json", "{\"a\":\"ü€\"}", true);
    let out = json.written(&Writing { format: Format::Json, ..latin }, &limits).unwrap().bytes;
    assert_eq!(&out[..], b"{\"a\":\"\xfc\\u20ac\"}");
    let text = |body: &str| {
        payload("text/csv", body, true).written(&Writing { format: Format::Text, ..latin }, &limits)
    };
    assert_eq!(&text("ü,x").unwrap().bytes[..], b"\xfc,x");
    // What would be lost is not written.
    let message = text("ü,€").unwrap_err().to_string();
    assert!(message.contains("ISO-8859-1") && message.contains("\"€\" (U+20AC)"), "{message}");
    let windows = Writing {
        charset: Charset::for_label("windows-1251").unwrap(),
        charset_name: "WINDOWS-1251",
        ..Writing::plain(Format::Xml)
    };
    for (body, fits) in [
        ("<a b='\u{4E00}'>\u{4E00}</a>", true),
        ("<a>\u{4E00}<!--x--></a>", true),
        ("<\u{4E00}/>", false),
        ("<a \u{4E00}='1'/>", false),
        ("<a><!--\u{4E00}--></a>", false),
        ("<a><?p \u{4E00}?></a>", false),
        ("<a><!--\u{416}--></a>", true),
    ] {
        let written = payload("application/xml", body, true).written(&windows, &limits);
        let unwritable = matches!(written, Err(PayloadError::Unwritable { .. }));
        assert_eq!((written.is_ok(), unwritable), (fits, !fits), "{body}");
    }
    // What is in that charset already is not touched; what only says so itself is not taken for UTF-8.
    let raw = Bytes::from_static(b"<?xml version='1.0' encoding='ISO-8859-1'?><a >\xfc</a>");
    let named = Reading::of(Some("application/xml; charset=iso-8859-1"), None, true);
    let mut same = Payload::received(Body::Bytes(raw.clone()), named);
    assert_eq!(same.written(&latin, &limits).unwrap().bytes, raw);
    let mut unnamed = Payload::received(Body::Bytes(raw), Reading::XML);
    assert_eq!(write(&mut unnamed, Format::Xml), "<a>ü</a>");
    // UTF-16 both ways.
    let wide: Vec<u8> = "<a>ü</a>".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let reading = Reading::of(Some("application/xml; charset=utf-16"), None, true);
    let mut read = Payload::received(Body::from(wide), reading);
    let utf16 = Writing { charset: Charset::Utf16, charset_name: "UTF-16", ..Writing::plain(Format::Xml) };
    read.envelope_mut(&limits).unwrap();
    let out = read.written(&utf16, &limits).unwrap().bytes;
    let mut again = Payload::received(Body::Bytes(out), reading);
    assert_eq!(write(&mut again, Format::Xml), "<a>ü</a>");
}

#[test]
fn forms_with_files_become_xml_and_json_and_stay_what_they_are() {
    let limits = PayloadLimits::default();
    let body = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--";
    let headers: Headers = [("Content-Type", "multipart/form-data; boundary=b")].into_iter().collect();
    let mut read = Payload::arrived(Body::from(body.as_bytes().to_vec()), &headers, true);
    assert_eq!(write(&mut read, Format::Json), "{\"mediate\":{\"a\":{\"@charset\":\"UTF-8\",\"$\":1}}}");
    let same = read.written(&Writing::plain(Format::FormData), &limits).unwrap();
    assert_eq!(
        (&same.bytes[..], same.content_type.as_deref()),
        (body.as_bytes(), headers.get("Content-Type"))
    );
    let mut json = payload("application/json", "{\"x\":1,\"y\":\"z\"}", true);
    let written = json.written(&Writing::plain(Format::FormData), &limits).unwrap();
    let names: Vec<_> = parts_of(&written).iter().map(|part| part.name().unwrap().into_owned()).collect();
    assert_eq!(names, ["x", "y"]);
}

#[test]
fn compressed_bodies_are_read_under_a_limit() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&vec![b' '; 100_000]).unwrap();
    encoder.write_all(b"<a/>").unwrap();
    let bytes = Bytes::from(encoder.finish().unwrap());
    let reading = Reading::of(Some("application/xml"), Some("gzip"), true);
    let mut read = Payload::received(Body::Bytes(bytes), reading);
    assert!(read.envelope(&PayloadLimits::default()).is_ok());
    let small = PayloadLimits { held: 1000, ..PayloadLimits::default() };
    let mut read = Payload::received(read.take_body(), reading);
    assert!(matches!(read.envelope(&small), Err(PayloadError::TooLarge { .. })));
}

#[test]
fn a_look_leaves_a_message_that_nobody_read() {
    let limits = PayloadLimits::default();
    let mut read = payload("application/xml", "<a/>", true);
    assert!(read.peek(&limits).unwrap().payload().is_some() && !read.is_built());
    assert!(!read.copy().is_built());
    read.envelope(&limits).unwrap();
    assert!(read.is_built());
    read.peek(&limits).unwrap();
    assert!(read.is_built());
}

#[test]
fn the_json_form_of_xml_is_made_once_until_it_changes() {
    let limits = PayloadLimits::default();
    let mut payload = Payload::received(Body::Bytes("<a><b>1</b></a>".into()), Reading::XML);
    let first: *const serde_json::Value = payload.json_view(&limits).unwrap();
    assert_eq!(payload.as_json(&limits).unwrap().to_string(), r#"{"a":{"b":1}}"#);
    assert!(std::ptr::eq(payload.json_view(&limits).unwrap(), first));
    let mut copy = payload.copy();
    let envelope = payload.envelope_mut(&limits).unwrap();
    let element = envelope.payload().unwrap();
    envelope.document.append_element(element, "", "", "c");
    assert_eq!(payload.json_view(&limits).unwrap().to_string(), r#"{"a":{"b":1,"c":null}}"#);
    assert_eq!(copy.json_view(&limits).unwrap().to_string(), r#"{"a":{"b":1}}"#);
    payload.set_json("[1]").unwrap();
    assert_eq!(payload.json_view(&limits).unwrap().to_string(), "[1]");
    payload.set_bytes("<x/>", Reading::XML);
    assert_eq!(payload.json_view(&limits).unwrap().to_string(), r#"{"x":null}"#);
    // What has no JSON form says so each time.
    let mut mixed = Payload::received(Body::Bytes("<a/>".into()), Reading::XML);
    mixed.envelope(&limits).unwrap();
    assert!(Payload::empty().rendered(&limits.json).is_err());
    assert_eq!(mixed.json_view(&limits).unwrap().to_string(), r#"{"a":null}"#);
}
