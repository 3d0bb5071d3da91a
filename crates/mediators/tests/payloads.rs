//! What backends and clients get of messages of all types: bytes, labels, charsets, codings, packages, WS-Addressing.

mod support;

use flow::testing::{self, Tested};
use message::{Coding, Headers};
use std::io::{Read, Write};
use support::{mirror, split, value};

/// A bus whose main sequence runs `mediators`; `ENDPOINT` is the address of a mirror.
fn bus(mediators: &str) -> Tested {
    bus_with(mediators, |_| {})
}

fn bus_with(mediators: &str, prepare: impl FnOnce(&mut flow::Services)) -> Tested {
    let text = mediators.replace("ENDPOINT", &format!("{}/back", mirror()));
    let tested = testing::main_with(&busbar_mediators::registry(endpoints::endpoint), &text, prepare);
    assert!(tested.found.is_empty(), "{:?}", tested.found);
    tested
}

/// What the backend got: head, and body without chunks.
fn seen(tested: &Tested, headers: &[(&str, &str)], body: &[u8]) -> (String, Vec<u8>) {
    let (status, _, request) = tested.ask_bytes("POST", "/", headers, body);
    let (head, mut body) =
        split(&request).unwrap_or_else(|| panic!("{status}: {}", String::from_utf8_lossy(&request)));
    if value(&head, "transfer-encoding").is_some() {
        let (mut rest, mut whole) = (&body[..], Vec::new());
        while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
            let size =
                usize::from_str_radix(&String::from_utf8_lossy(&rest[..end]), 16).expect("a chunk size");
            whole.extend_from_slice(&rest[end + 2..end + 2 + size]);
            rest = &rest[end + 2 + size + 2..];
        }
        body = whole;
    }
    (head, body)
}

fn answered(tested: &Tested, headers: &[(&str, &str)], body: &[u8]) -> (Headers, Vec<u8>) {
    let (status, headers, body) = tested.ask_bytes("POST", "/", headers, body);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    (headers, body)
}

const CALL: &str = r#"<call><endpoint><address uri="ENDPOINT"/></endpoint></call><respond/>"#;
/// Adds a child to the payload.
const EDIT: &str = r#"<enrich><source type="inline"><z xmlns="">&#252;</z></source><target action="child" xpath="$body/*[1]"/></enrich>"#;

fn axis2(name: &str, value: &str) -> String {
    format!(r#"<property name="{name}" value="{value}" scope="axis2"/>"#)
}

const S11: &str = "http://schemas.xmlsoap.org/soap/envelope/";

fn soap(header: &str, body: &str) -> String {
    format!(r#"<s:Envelope xmlns:s="{S11}">{header}<s:Body>{body}</s:Body></s:Envelope>"#)
}

#[test]
fn charsets_go_in_and_out() {
    let latin = b"<a>\xfc</a>";
    let utf16: Vec<u8> =
        [0xFEFF].into_iter().chain("<a>ü</a>".encode_utf16()).flat_map(u16::to_be_bytes).collect();
    let edit = format!("{EDIT}{CALL}");
    for (flow, content_type, body, label, wanted) in [
        // The charset of the request stays.
        (
            edit.clone(),
            "application/xml; charset=iso-8859-1",
            &latin[..],
            "application/xml; charset=ISO-8859-1",
            &b"<a>\xfc<z>\xfc</z></a>"[..],
        ),
        (
            edit.clone(),
            "application/xml",
            "<a>ü</a>".as_bytes(),
            "application/xml; charset=UTF-8",
            "<a>ü<z>ü</z></a>".as_bytes(),
        ),
        // A name that nobody knows is no charset.
        (
            edit.clone(),
            "application/xml; charset=x",
            b"<a/>",
            "application/xml; charset=UTF-8",
            "<a><z>ü</z></a>".as_bytes(),
        ),
        // The property wins, also over a message that nobody read.
        (
            format!("{}{edit}", axis2("CHARACTER_SET_ENCODING", "us-ascii")),
            "application/xml",
            b"<a/>",
            "application/xml; charset=US-ASCII",
            b"<a><z>&#252;</z></a>",
        ),
        (
            format!("{}{CALL}", axis2("CHARACTER_SET_ENCODING", "ISO-8859-1")),
            "application/json",
            "{\"a\":\"ü€\"}".as_bytes(),
            "application/json; charset=ISO-8859-1",
            b"{\"a\":\"\xfc\\u20ac\"}",
        ),
        (
            format!("{}{CALL}", axis2("CHARACTER_SET_ENCODING", "utf-8")),
            "application/json",
            b"{ }",
            "application/json",
            b"{ }",
        ),
        // Nothing is said where nothing is to be said.
        (
            format!("{}{edit}", axis2("setCharacterEncoding", "false")),
            "application/xml",
            b"<a/>",
            "application/xml",
            "<a><z>ü</z></a>".as_bytes(),
        ),
        (
            format!("{}{edit}", axis2("WRITE_XML_DECLARATION", "true")),
            "application/xml",
            b"<a/>",
            "application/xml; charset=UTF-8",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><a><z>ü</z></a>".as_bytes(),
        ),
    ] {
        let (head, body) = seen(&bus(&flow), &[("Content-Type", content_type)], body);
        assert_eq!(value(&head, "content-type"), Some(label), "{flow}");
        assert!(body.ends_with(wanted), "{flow}: {}", String::from_utf8_lossy(&body));
    }
    let utf_16 = [("Content-Type", "application/xml; charset=UTF-16")];
    let (headers, body) = answered(&bus(&format!("{EDIT}<respond/>")), &utf_16, &utf16);
    assert_eq!(headers.get("Content-Type"), Some("application/xml; charset=UTF-16"));
    let text: Vec<u16> = body[2..].chunks(2).map(|two| u16::from_be_bytes([two[0], two[1]])).collect();
    assert!(String::from_utf16_lossy(&text).ends_with("<a>ü<z>ü</z></a>"));
}

#[test]
fn compressed_messages_are_read_and_compressed_again() {
    for (name, coding) in [("gzip", Coding::Gzip), ("deflate", Coding::Deflate), ("br", Coding::Brotli)] {
        let packed = coding.encode(b"<a>1</a>");
        let headers = [("Content-Type", "application/xml"), ("Content-Encoding", name)];
        // Read and changed.
        let (head, body) = seen(&bus(&format!("{EDIT}{CALL}")), &headers, &packed);
        assert_eq!(value(&head, "content-encoding"), Some(name));
        assert_eq!(coding.decode(&body.into(), 1000).unwrap(), "<a>1<z>ü</z></a>".as_bytes(), "{name}");
        // Only read, and not even that: the very bytes.
        for read in ["", r#"<property name="x" expression="string(//a)"/>"#] {
            let (head, body) = seen(&bus(&format!("{read}{CALL}")), &headers, &packed);
            assert_eq!((value(&head, "content-encoding"), &body), (Some(name), &packed));
        }
        let (response, body) = answered(&bus("<respond/>"), &headers, &packed);
        assert_eq!((response.get("Content-Encoding"), &body), (Some(name), &packed));
        // JSON and text that were made here: unread before, and read by nobody behind.
        for (media, made) in [("json", r#"{"b":1}"#), ("text", "one")] {
            let make = format!(
                r#"<payloadFactory media-type="{media}"><format>{made}</format><args/></payloadFactory>"#
            );
            let (response, body) = answered(&bus(&format!("{make}<respond/>")), &headers, &packed);
            assert_eq!(response.get("Content-Encoding"), Some(name));
            assert_eq!(coding.decode(&body.into(), 1000).unwrap(), made.as_bytes(), "{media} in {name}");
            let (head, body) = seen(&bus(&format!("{make}{CALL}")), &headers, &packed);
            assert_eq!(value(&head, "content-encoding"), Some(name));
            assert_eq!(coding.decode(&body.into(), 1000).unwrap(), made.as_bytes(), "{media} in {name}");
        }
        // Compressed because the flow says so.
        let set = format!(
            r#"<property name="Content-Encoding" value="{name}" scope="transport"/>{EDIT}<respond/>"#
        );
        let (response, body) = answered(&bus(&set), &[("Content-Type", "application/xml")], b"<a/>");
        assert_eq!(response.get("Content-Encoding"), Some(name));
        assert_eq!(coding.decode(&body.into(), 1000).unwrap(), "<a><z>ü</z></a>".as_bytes());
    }
    // A coding that nobody can write is not claimed, one that nobody can read is a fault.
    let unknown = [("Content-Type", "application/xml"), ("Content-Encoding", "zstd")];
    let made = r#"<payloadFactory><format><b xmlns=""/></format><args/></payloadFactory><respond/>"#;
    let (response, body) = answered(&bus(made), &unknown, b"?");
    assert_eq!((response.get("Content-Encoding"), &body[..]), (None, &b"<b/>"[..]));
    let end = bus(r#"<property name="x" expression="string(//a)"/>"#).run(&unknown, "?");
    assert!(end.fault().is_some_and(|fault| fault.starts_with("601000")));
}

#[test]
fn a_bomb_is_a_413() {
    let packed = Coding::Gzip.encode(&vec![b' '; 1 << 20]);
    let flow = bus_with(&format!("{EDIT}<respond/>"), |services| services.limits.held = 100_000);
    let headers = [("Content-Type", "application/xml"), ("Content-Encoding", "gzip")];
    assert_eq!(flow.ask_bytes("POST", "/", &headers, &packed).0, 413);
}

const FORM: &str = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b\r\n\
    Content-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/csv\r\n\r\n1,2\r\n--b--\r\n";

#[test]
fn forms_with_files_become_other_types_and_back() {
    let form = [("Content-Type", "multipart/form-data; boundary=b")];
    for (mediators, headers, body, label, wanted) in [
        (String::new(), &form[..], FORM, "multipart/form-data; boundary=b", &[FORM][..]),
        (
            axis2("messageType", "multipart/form-data"),
            &form[..],
            FORM,
            "multipart/form-data; boundary=b",
            &[FORM],
        ),
        (
            axis2("messageType", "application/xml"),
            &form[..],
            FORM,
            "application/xml; charset=UTF-8",
            &[
                "<mediate><a charset=\"UTF-8\">1</a><f filename=\"x.txt\" content-type=\"text/csv\">MSwy</f></mediate>",
            ],
        ),
        (
            axis2("messageType", "application/x-www-form-urlencoded"),
            &form[..],
            FORM,
            "application/x-www-form-urlencoded; charset=UTF-8",
            &["a=1&f=MSwy"],
        ),
        (
            EDIT.to_owned(),
            &form[..],
            FORM,
            "multipart/form-data; boundary=MIMEBoundary_",
            &[
                "name=\"a\"\r\n\r\n1\r\n",
                "Content-Type: text/csv\r\n",
                "filename=\"x.txt\"\r\n\r\n1,2\r\n",
                "name=\"z\"\r\n\r\nü\r\n",
            ],
        ),
        (
            axis2("messageType", "multipart/form-data"),
            &[("Content-Type", "application/json")],
            "{\"a\":\"1 2\"}",
            "multipart/form-data; boundary=MIMEBoundary_",
            &["name=\"a\"\r\n\r\n1 2\r\n"],
        ),
    ] {
        let (head, body) = seen(&bus(&format!("{mediators}{CALL}")), headers, body.as_bytes());
        let (label_seen, text) = (value(&head, "content-type").unwrap(), String::from_utf8_lossy(&body));
        assert!(label_seen.starts_with(label), "{mediators}: {label_seen}");
        assert!(wanted.iter().all(|part| text.contains(part)), "{mediators}: {text}");
    }
    for (content_type, body) in
        [("multipart/form-data", FORM), ("multipart/form-data; boundary=b", "--b\r\n")]
    {
        let flow = bus(r#"<property name="x" expression="string(//a)"/>"#);
        let end = flow.run(&[("Content-Type", content_type)], body);
        assert!(end.fault().is_some_and(|fault| fault.starts_with("601000")), "{:?}", end.fault());
    }
}

fn package(xop: bool) -> (String, String) {
    let include = r#"<x:Include xmlns:x="http://www.w3.org/2004/08/xop/include" href="cid:p@x"/>"#;
    let (root, inside) = if xop { ("application/xop+xml", include) } else { ("text/xml", "t") };
    let envelope = soap("", &format!("<q><d>{inside}</d></q>"));
    let body = format!(
        "--b\r\nContent-Type: {root}; type=\"text/xml\"\r\nContent-ID: <r>\r\n\r\n{envelope}\r\n\
         --b\r\nContent-Type: image/png\r\nContent-ID: <p@x>\r\n\r\n\u{1}picture\r\n--b--\r\n"
    );
    (format!("multipart/related; boundary=b; type=\"{root}\"; start=\"<r>\"; start-info=\"text/xml\""), body)
}

#[test]
fn packages_are_relayed_read_and_packed_again() {
    let base64 = "AXBpY3R1cmU=";
    let mtom = axis2("enableMTOM", "true");
    let swa = axis2("enableSwA", "true");
    let read = r#"<property name="d" expression="string(//d)"/><header name="X-D" expression="$ctx:d" scope="transport"/>"#;
    for (xop, mediators, package_type, parts, contains) in [
        // Untouched and only read: the very bytes.
        (true, String::new(), Some("application/xop+xml"), 2, "href=\"cid:p@x\""),
        (true, read.to_owned(), Some("application/xop+xml"), 2, "href=\"cid:p@x\""),
        (false, read.to_owned(), Some("text/xml"), 2, "<d>t</d>"),
        // Changed: nothing is lost.
        (true, EDIT.to_owned(), None, 0, base64),
        (true, format!("{mtom}{EDIT}"), Some("application/xop+xml"), 2, "href=\"cid:p@x\""),
        (true, format!("{swa}{EDIT}"), Some("text/xml"), 2, base64),
        (false, EDIT.to_owned(), Some("text/xml"), 2, "<z>ü</z>"),
        (false, format!("{mtom}{EDIT}"), Some("application/xop+xml"), 2, "<z>ü</z>"),
        // Unless the flow says so.
        (false, format!("{}{EDIT}", axis2("enableSwA", "false")), None, 0, "<z>ü</z>"),
        (false, format!("{}{EDIT}", axis2("messageType", "application/xml")), None, 0, "<q><d>t</d><z>ü</z></q>"),
        // A payload of its own keeps the attachments.
        (false, r#"<payloadFactory><format><n xmlns=""/></format><args/></payloadFactory><property name="messageType" value="multipart/related" scope="axis2"/>"#.into(), Some("text/xml"), 2, "<n/>"),
        (true, axis2("enableMTOM", "true"), Some("application/xop+xml"), 2, "href=\"cid:p@x\""),
    ] {
        let (content_type, body) = package(xop);
        let headers = [("Content-Type", content_type.as_str()), ("SOAPAction", "\"urn:a\"")];
        let (head, bytes) = seen(&bus(&format!("{mediators}{CALL}")), &headers, body.as_bytes());
        let label = value(&head, "content-type").unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains(contains), "{mediators}: {text}");
        let media_type = message::MediaType::parse(label);
        assert_eq!(media_type.parameter("type"), package_type, "{mediators}: {label}");
        if let Some(boundary) = media_type.parameter("boundary") {
            let read = message::multipart::parse(&bytes.clone().into(), boundary).unwrap();
            assert_eq!(read.len(), parts, "{mediators}: {text}");
            assert_eq!(&read[1].content[..], b"\x01picture");
        }
        if !mediators.contains("enrich") && !mediators.contains("payloadFactory") {
            assert_eq!(text, body, "{mediators}");
        }
        if mediators == read {
            assert_eq!(value(&head, "x-d"), Some(if xop { base64 } else { "t" }));
        }
    }
}

#[test]
fn endpoints_optimise_plain_messages() {
    for (optimize, kind) in [("mtom", "application/xop+xml"), ("swa", "text/xml")] {
        let flow = CALL.replace("<address ", &format!("<address optimize=\"{optimize}\" "));
        let headers = [("Content-Type", "text/xml"), ("SOAPAction", "\"\"")];
        let (head, body) = seen(&bus(&flow), &headers, soap("", "<q/>").as_bytes());
        let media_type = message::MediaType::parse(value(&head, "content-type").unwrap());
        assert_eq!((media_type.essence, media_type.parameter("type")), ("multipart/related", Some(kind)));
        let parts =
            message::multipart::parse(&body.into(), media_type.parameter("boundary").unwrap()).unwrap();
        assert_eq!((parts.len(), &parts[0].content[..]), (1, soap("", "<q/>").as_bytes()));
    }
}

/// `name=value` of the WS-Addressing headers.
fn addressing(body: &[u8]) -> Vec<String> {
    let document =
        xml::Document::parse(body.to_vec(), &xml::ParseOptions::default()).expect("what was written is XML");
    let envelope = message::Envelope::of_document(document).expect("and an envelope");
    let Some(header) = envelope.header else { return Vec::new() };
    let document = &envelope.document;
    let blocks = envelope.elements_of(header);
    blocks
        .map(|block| {
            let year = if document.namespace(block).contains("2005") { "" } else { "2004:" };
            let text = document.string_value(block);
            let text = text.rsplit('/').next().unwrap_or("");
            let text = if text.starts_with("urn:uuid:") { "new" } else { text };
            format!("{year}{}={text}", document.local(block))
        })
        .collect()
}

#[test]
fn addressing_headers_are_the_endpoints_own() {
    let client = "<s:Header xmlns:w=\"http://www.w3.org/2005/08/addressing\"><w:To>http://c/to</w:To><w:Action>act</w:Action>\
        <w:MessageID>urn:m</w:MessageID><w:From><w:Address>urn:f</w:Address></w:From></s:Header>";
    let all = ["To=to", "Action=act", "MessageID=urn:m", "From=urn:f"];
    let keep = r#"<property name="PRESERVE_WS_ADDRESSING" value="true"/>"#;
    let read = r#"<property name="x" expression="string(//q)"/>"#;
    for (before, inside, header, wanted) in [
        ("", "", client, &all[..]),
        (read, "", client, &[]),
        (EDIT, "", client, &[]),
        (&format!("{keep}{EDIT}"), "", client, &all),
        ("", "<enableAddressing/>", client, &["To=back", "MessageID=new", "Action=act"]),
        ("", "<enableAddressing/>", "", &["To=back", "MessageID=new", "Action=urn:a"]),
        (
            "",
            "<enableAddressing version=\"submission\"/>",
            client,
            &["2004:To=back", "2004:ReplyTo=anonymous", "2004:MessageID=new", "2004:Action=act"],
        ),
        (keep, "<enableAddressing/>", client, &all),
        (keep, "<enableAddressing/>", "", &["To=back", "MessageID=new", "Action=urn:a"]),
        (
            r#"<header name="From" value="urn:me"/>"#,
            "<enableAddressing/>",
            client,
            &["To=back", "From=urn:me", "MessageID=new", "Action=act"],
        ),
    ] {
        let call = CALL.replace("\"ENDPOINT\"/>", &format!("\"ENDPOINT\">{inside}</address>"));
        let headers = [("Content-Type", "text/xml"), ("SOAPAction", "\"urn:a\"")];
        let flow = bus(&format!("{before}{call}"));
        let (_, body) = seen(&flow, &headers, soap(header, "<q>1</q>").as_bytes());
        assert_eq!(addressing(&body), wanted, "{before} {inside}");
    }
    let (_, body) = {
        let headers = [("Content-Type", "text/xml"), ("SOAPAction", "\"urn:a\"")];
        answered(&bus(&format!("{EDIT}<respond/>")), &headers, soap(client, "<q/>").as_bytes())
    };
    assert!(addressing(&body).is_empty(), "an answer does not carry the request's");
}

#[test]
fn an_answer_relates_to_what_was_sent() {
    let log = format!(
        r#"<property name="id" expression="get-property('MessageID')"/>{}<property name="r" expression="get-property('RelatesTo')"/>
        <header name="X-Same" expression="string($ctx:id = $ctx:r)" scope="transport"/><respond/>"#,
        CALL.replace("<respond/>", "")
    );
    let (headers, _) = answered(&bus(&log), &[("Content-Type", "application/xml")], b"<a/>");
    assert_eq!(headers.get("X-Same"), Some("true"));
}

#[test]
fn properties_shape_requests() {
    let xml = [("Content-Type", "application/xml"), ("Host", "client.example"), ("X-R", "1"), ("X-R", "2")];
    let line = |flow: &str| {
        let (head, body) = seen(&bus(flow), &xml, b"<a/>");
        (head, String::from_utf8_lossy(&body).into_owned())
    };
    let with = |name: &str, value: &str| line(&format!("{}{CALL}", axis2(name, value)));
    assert!(with("FORCE_HTTP_1.0", "true").0.starts_with("POST /back/ HTTP/1.0"));
    assert!(with("POST_TO_URI", "true").0.starts_with("POST http://127.0.0.1:"));
    assert!(with("FULL_URI", "true").0.starts_with("POST http://127.0.0.1:"));
    assert!(with("HTTP_METHOD", "PUT").0.starts_with("PUT /back/ "));
    assert!(with("REST_URL_POSTFIX", "/x?y=1").0.starts_with("POST /back/x?y=1 "));
    assert_eq!(with("NO_ENTITY_BODY", "true").1, "");
    assert_eq!(with("FORCE_POST_PUT_NOBODY", "true").1, "");
    assert_eq!(value(&with("NO_KEEPALIVE", "true").0, "connection"), Some("close"));
    assert_eq!(value(&with("REQUEST_HOST_HEADER", "other.example").0, "host"), Some("other.example"));
    let edited = |name: &str| line(&format!("{}{EDIT}{CALL}", axis2(name, "true"))).0;
    assert_eq!(value(&edited("none"), "transfer-encoding"), Some("chunked"));
    for name in ["DISABLE_CHUNKING", "FORCE_HTTP_1.0"] {
        assert_eq!(value(&edited(name), "content-length"), Some("16"), "{name}");
    }
    // Headers that are repeated, all, none.
    let repeated = |flow: &str| line(flow).0.matches("X-R:").count();
    assert_eq!(repeated(CALL), 2);
    let remove = |name: &str| format!(r#"<property name="{name}" action="remove" scope="axis2"/>{CALL}"#);
    assert_eq!(repeated(&remove("EXCESS_TRANSPORT_HEADERS")), 1);
    assert_eq!(repeated(&remove("TRANSPORT_HEADERS")), 0);
    // The client's Host, only where it is preserved.
    assert!(value(&line(CALL).0, "host").is_some_and(|host| host.starts_with("127.0.0.1:")));
    let preserving = bus_with(CALL, |services| services.settings.preserve_headers = vec!["host".into()]);
    assert_eq!(value(&seen(&preserving, &xml, b"<a/>").0, "host"), Some("client.example"));
}

#[test]
fn properties_shape_answers() {
    let xml = [("Content-Type", "application/xml")];
    let (headers, _) = answered(&bus(&format!("{}<respond/>", axis2("HTTP_ETAG", "true"))), &xml, b"<a/>");
    assert!(headers.get("ETag").is_some_and(|tag| tag.len() == 34 && tag.starts_with('"')));
    let ask = |flow: &str| bus(flow).ask("POST", "/", &xml, "<a/>");
    let accepted = ask(&format!("{}<respond/>", axis2("SC_ACCEPTED", "true")));
    assert_eq!((accepted.status, accepted.body.as_str()), (202, ""));
    let empty = ask(&format!("{}<respond/>", axis2("NO_ENTITY_BODY", "true")));
    assert_eq!((empty.status, empty.body.as_str()), (200, ""));
    let described = ask(&format!("{}{}<respond/>", axis2("HTTP_SC", "418"), axis2("HTTP_SC_DESC", "Tea")));
    assert_eq!(described.status, 418);
    let facts = r#"<property name="m" expression="concat(get-property('axis2','HTTP_REQUEST_METHOD'), ' ', get-property('IsClientDoingREST'), ' ',
        get-property('SERVER_IP'), ' ', string-length(get-property('SERVER_HOST')) > 0)"/><header name="X-F" expression="$ctx:m" scope="transport"/><respond/>"#;
    assert_eq!(ask(facts).headers.get("X-F"), Some("POST true 127.0.0.1 true"));
}

/// A fault handler begins with a message that can be read and replaced, also where the message could not be read.
#[test]
fn fault_sequences_answer_what_cannot_be_read() {
    let text = "<property name='n' expression='//n'/><respond/><!--top--><sequence name='fault'>\
        <payloadFactory media-type='MEDIA'><format>FORMAT</format><args><arg expression=\"get-property('ERROR_CODE')\"/></args></payloadFactory>\
        <respond/></sequence>";
    let envelope =
        "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><n></s:Body></s:Envelope>";
    let soap = ("SOAPAction", "urn:x");
    for (media, format) in [("xml", "<code xmlns=''>$1</code>"), ("json", "{\"code\":$1}")] {
        let tested = bus(&text.replace("MEDIA", media).replace("FORMAT", format));
        for (headers, body) in [
            (&[("Content-Type", "text/xml"), soap][..], envelope),
            (&[("Content-Type", "text/xml"), soap], "<s:Env"),
            (&[("Content-Type", "application/soap+xml")], "<no/>"),
            (&[("Content-Type", "application/xml")], "<a"),
            (&[("Content-Type", "application/json")], "{"),
        ] {
            let response = tested.ask("POST", "/", headers, body);
            assert!(response.body.contains("601000"), "{media} {headers:?} {body}: {response:?}");
        }
    }
}

#[test]
fn an_answer_that_breaks_off_is_502_with_what_the_fault_sequence_says() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let half = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (mut seen, mut some) = (Vec::new(), [0; 1024]);
            while let Ok(read @ 1..) = stream.read(&mut some) {
                seen.extend_from_slice(&some[..read]);
                if seen.windows(4).any(|bytes| bytes == b"<a/>") {
                    break;
                }
            }
            let response =
                b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: 100\r\n\r\n<a><b>";
            let _ = stream.write_all(response);
        }
    });
    let endpoint = format!("<endpoint><address uri='{half}'/></endpoint>");
    let fault = "<!--top--><sequence name='fault'><payloadFactory media-type='json'><format>{\"code\":$1}</format>\
        <args><arg expression=\"$ctx:ERROR_CODE\"/></args></payloadFactory><respond/></sequence>";
    for flow in [
        format!("<in><send>{endpoint}</send></in><out><log level='full'/><send/></out>"),
        format!("<call>{endpoint}</call><property name='b' expression='//b'/><respond/>"),
    ] {
        let response =
            bus(&format!("{flow}{fault}")).ask("POST", "/", &[("Content-Type", "application/xml")], "<a/>");
        assert_eq!((response.status, response.body.as_str()), (502, "{\"code\":101501}"), "{flow}");
    }
}
