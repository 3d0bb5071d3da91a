//! `multipart/form-data` (RFC 7578): fields and files, and their XML view.
//!
//! A field is an element with its text; a file has the attributes `filename` and `content-type`, and its content as
//! base64.

use crate::charset::for_reading;
use crate::json::{member_name, valid_name};
use crate::media::MediaType;
use crate::multipart::{self, Part, quoted};
use crate::payload::PayloadError;
use base64::Engine;
use bytes::Bytes;
use xml::{Document, NodeId, NodeKind};

/// Appends `<mediate>` with an element per part.
///
/// # Errors
/// The body is not what its content type says.
pub fn to_xml(
    body: &Bytes,
    content_type: &str,
    document: &mut Document,
    parent: NodeId,
) -> Result<NodeId, PayloadError> {
    let parts = multipart::parse(body, multipart::boundary(content_type)?)?;
    let root = document.append_element(parent, "", "", "mediate");
    for part in &parts {
        let name = part.name().unwrap_or_default();
        let element = document.append_element(root, "", "", &valid_name(&name));
        let content = part.decoded()?;
        if let Some(file) = part.file_name() {
            document.set_attribute(element, "", "", "filename", &file);
            let content_type = part.headers.get("Content-Type").unwrap_or("application/octet-stream");
            document.set_attribute(element, "", "", "content-type", content_type);
            if !content.is_empty() {
                let text = base64::engine::general_purpose::STANDARD.encode(&content);
                document.append_text(element, &text);
            }
        } else {
            let charset =
                part.headers.get("Content-Type").and_then(|value| MediaType::parse(value).charset());
            document.set_attribute(element, "", "", "charset", charset.unwrap_or("UTF-8"));
            let encoding = charset.and_then(for_reading).unwrap_or(encoding_rs::UTF_8);
            let text = encoding.decode(&content).0;
            if !text.is_empty() {
                document.append_text(element, &text);
            }
        }
    }
    Ok(root)
}

/// The namespace in which `file` is a file, with its attributes `name`, `filename`, `content-type` and `charset`.
const FORM_DATA: &str = "http://org.apache.axis2/xsd/form-data";

/// The form of an element: a part per child element. The second is its content type.
pub fn from_xml(document: &Document, element: NodeId) -> (Bytes, String) {
    let children = document.children(element).filter(|&child| document.kind(child) == NodeKind::Element);
    let parts: Vec<Part> = children.map(|child| part(document, child)).collect();
    let boundary = multipart::new_boundary(&parts);
    let content_type = format!("multipart/form-data; boundary={boundary}");
    (Bytes::from(multipart::write(&parts, &boundary)), content_type)
}

fn part(document: &Document, element: NodeId) -> Part {
    let attribute = |name: &str| document.attribute(element, "", name);
    let is_file = document.namespace(element) == FORM_DATA && document.local(element) == "file";
    let file = attribute("filename").or(is_file.then_some("esb-generated-file"));
    let local_name = member_name(document.local(element));
    let name = quoted(attribute("name").filter(|_| file.is_some()).unwrap_or(&local_name));
    let text = document.string_value(element);
    let mut part = Part { headers: Default::default(), content: Bytes::new() };
    let disposition = match file {
        Some(file) => {
            let default = if is_file { "text/plain" } else { "application/octet-stream" };
            let mut content_type = attribute("content-type").unwrap_or(default).to_owned();
            if let Some(charset) = attribute("charset").filter(|_| !content_type.contains("charset=")) {
                content_type = format!("{content_type}; charset={charset}");
            }
            part.headers.append("Content-Type", content_type);
            let compact: String = text.split_ascii_whitespace().collect();
            let content = base64::engine::general_purpose::STANDARD.decode(compact);
            part.content = content.map_or_else(|_| Bytes::from(text.into_owned()), Bytes::from);
            format!("form-data; name=\"{name}\"; filename=\"{}\"", quoted(file))
        }
        None if document.children(element).any(|child| document.kind(child) == NodeKind::Element) => {
            part.headers.append("Content-Type", "application/xml");
            let mut plain = Document::new();
            copy_plainly(document, element, &mut plain, Document::ROOT);
            part.content = Bytes::from(xml::to_string(&plain, Document::ROOT));
            format!("form-data; name=\"{name}\"")
        }
        None => {
            part.content = Bytes::from(text.into_owned());
            format!("form-data; name=\"{name}\"")
        }
    };
    part.headers.append("Content-Disposition", disposition);
    part
}

/// Copies an element with its elements and texts, without namespaces and attributes.
fn copy_plainly(from: &Document, element: NodeId, to: &mut Document, parent: NodeId) {
    let copy = to.append_element(parent, "", "", from.local(element));
    let mut elements =
        from.children(element).filter(|&child| from.kind(child) == NodeKind::Element).peekable();
    if elements.peek().is_none() {
        to.append_text(copy, &from.string_value(element));
    }
    elements.for_each(|child| copy_plainly(from, child, to, copy));
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nhällo <\r\n--b\r\n\
        Content-Disposition: form-data; name=\"1 f\"; filename=\"x.bin\"\r\nContent-Type: image/png\r\n\r\n\
        \u{1}\u{2}\r\n--b\r\nContent-Disposition: form-data; name=\"e\"\r\n\r\n\r\n--b--\r\n";

    #[test]
    fn a_form_has_an_xml_view_both_ways() {
        let body = Bytes::from_static(BODY.as_bytes());
        let mut document = Document::new();
        let root = to_xml(&body, "multipart/form-data; boundary=b", &mut document, Document::ROOT).unwrap();
        assert_eq!(
            xml::to_string(&document, root),
            "<mediate><a charset=\"UTF-8\">hällo &lt;</a>\
             <_JsonReader_49__JsonReader_32_f filename=\"x.bin\" content-type=\"image/png\">AQI=</_JsonReader_49__JsonReader_32_f>\
             <e charset=\"UTF-8\"/></mediate>"
        );
        let (out, content_type) = from_xml(&document, root);
        let parts = multipart::parse(&out, multipart::boundary(&content_type).unwrap()).unwrap();
        let read: Vec<_> = parts
            .iter()
            .map(|part| {
                (
                    part.name().unwrap().into_owned(),
                    part.file_name().map(|f| f.into_owned()),
                    &part.content[..],
                )
            })
            .collect();
        assert_eq!(
            read,
            [
                ("a".to_owned(), None, "hällo <".as_bytes()),
                ("1 f".to_owned(), Some("x.bin".to_owned()), b"\x01\x02"),
                ("e".to_owned(), None, b"")
            ]
        );
        assert_eq!(parts[1].content_type(), "image/png");
    }

    #[test]
    fn files_and_complex_fields_of_a_form() {
        let text = "<root xmlns:f='http://org.apache.axis2/xsd/form-data'><f:file name='doc' filename='a.pdf' \
            content-type='application/pdf'>AQI=\n  </f:file><f:file charset='UTF-8'>not base64</f:file>\
            <upload name='u' filename='b.bin'>AQI=</upload><plain name='n'>1</plain>\
            <x:town xmlns:x='urn:x' a='1'><x:name>Bern</x:name><in><zip>3000</zip></in></x:town></root>";
        let document = Document::parse(text.as_bytes().to_vec(), &xml::ParseOptions::default()).unwrap();
        let (out, content_type) = from_xml(&document, document.document_element().unwrap());
        let parts = multipart::parse(&out, multipart::boundary(&content_type).unwrap()).unwrap();
        let shown: Vec<_> = parts
            .iter()
            .map(|part| {
                let file = part.file_name().map(|name| name.into_owned()).unwrap_or_default();
                let kind = part.headers.get("Content-Type").unwrap_or("-");
                let content = String::from_utf8_lossy(&part.content);
                format!("{} {file} {kind} {content}", part.name().unwrap())
            })
            .collect();
        assert_eq!(
            shown,
            [
                "doc a.pdf application/pdf \u{1}\u{2}",
                "file esb-generated-file text/plain; charset=UTF-8 not base64",
                "u b.bin application/octet-stream \u{1}\u{2}",
                "plain  - 1",
                "town  application/xml <town><name>Bern</name><in><zip>3000</zip></in></town>"
            ]
        );
    }

    #[test]
    fn names_cannot_break_out_of_their_head() {
        let text = b"<r><a filename='x\"&#13;&#10;Evil: 1'>not base64</a></r>".to_vec();
        let document = Document::parse(text, &xml::ParseOptions::default()).unwrap();
        let (out, content_type) = from_xml(&document, document.document_element().unwrap());
        let parts = multipart::parse(&out, multipart::boundary(&content_type).unwrap()).unwrap();
        assert_eq!(parts[0].file_name().as_deref(), Some("x%22%0D%0AEvil: 1"));
        assert_eq!(&parts[0].content[..], b"not base64");
        assert_eq!(parts[0].headers.len(), 2);
    }
}
