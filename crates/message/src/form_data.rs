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
            let own = part.headers.get("Content-Type").unwrap_or("application/octet-stream");
            document.set_attribute(element, "", "", "content-type", own);
            if !content.is_empty() {
                let text = base64::engine::general_purpose::STANDARD.encode(&content);
                document.append_text(element, &text);
            }
        } else {
            let own = part.headers.get("Content-Type").and_then(|own| MediaType::parse(own).charset());
            document.set_attribute(element, "", "", "charset", own.unwrap_or("UTF-8"));
            let encoding = own.and_then(for_reading).unwrap_or(encoding_rs::UTF_8);
            let text = encoding.decode(&content).0;
            if !text.is_empty() {
                document.append_text(element, &text);
            }
        }
    }
    Ok(root)
}

/// The form of an element: a part per child element. The second is its content type.
pub fn from_xml(document: &Document, element: NodeId) -> (Bytes, String) {
    let mut parts = Vec::new();
    for child in document.children(element).filter(|&child| document.kind(child) == NodeKind::Element) {
        let name = quoted(&member_name(document.local(child)));
        let text = document.string_value(child);
        let mut part = Part { headers: Default::default(), content: Bytes::new() };
        let disposition = match document.attribute(child, "", "filename") {
            Some(file) => {
                let own = document.attribute(child, "", "content-type").unwrap_or("application/octet-stream");
                part.headers.append("Content-Type", own);
                let compact: String = text.split_ascii_whitespace().collect();
                let content = base64::engine::general_purpose::STANDARD.decode(compact);
                part.content = content.map_or_else(|_| Bytes::from(text.into_owned()), Bytes::from);
                format!("form-data; name=\"{name}\"; filename=\"{}\"", quoted(file))
            }
            None => {
                part.content = Bytes::from(text.into_owned());
                format!("form-data; name=\"{name}\"")
            }
        };
        part.headers.append("Content-Disposition", disposition);
        parts.push(part);
    }
    let boundary = multipart::new_boundary(&parts);
    let content_type = format!("multipart/form-data; boundary={boundary}");
    (Bytes::from(multipart::write(&parts, &boundary)), content_type)
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
