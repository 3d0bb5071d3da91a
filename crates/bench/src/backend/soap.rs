//! Reading a service call, and writing its answer in the format of the call: SOAP 1.1, SOAP 1.2 or plain XML.

use super::{BackendRequest, BackendResponse};
use crate::messages::{SOAP11, SOAP12};
use std::borrow::Cow;
use std::fmt::Write;
use xml::{Document, NodeId, NodeKind, ParseOptions};

const ADDRESSING: &str = "http://www.w3.org/2005/08/addressing";

/// The format of a call and of its answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Format {
    Soap11,
    Soap12,
    /// The payload alone, as `application/xml`.
    Plain,
}

/// Who is to blame for a fault.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Blame {
    Client,
    Server,
}

/// A call that could be read.
pub struct Call {
    pub format: Format,
    /// `wsa:MessageID` of the request, which the answer relates to.
    pub message_id: Option<String>,
    pub document: Document,
    /// The first element of the SOAP body, or the document element.
    pub payload: NodeId,
}

impl Call {
    /// Reads a call; what cannot be read is the answer to give: a fault that says why.
    pub fn read(request: &BackendRequest<'_>) -> Result<Call, BackendResponse> {
        let format = format_of(&request.media_type());
        let refuse = |why: &str| fault(format, Blame::Client, None, why);
        let options = ParseOptions { charset: request.charset(), ..ParseOptions::default() };
        let document = Document::parse(request.body.to_vec(), &options)
            .map_err(|error| refuse(&format!("the request cannot be read: {error}")))?;
        let root =
            document.document_element().ok_or_else(|| refuse("the request has no document element"))?;
        let format = match document.namespace(root) {
            SOAP11 if document.local(root) == "Envelope" => Format::Soap11,
            SOAP12 if document.local(root) == "Envelope" => Format::Soap12,
            _ => return Ok(Call { format: Format::Plain, message_id: None, document, payload: root }),
        };
        let soap = namespace(format);
        let refuse = |why: &str| fault(format, Blame::Client, None, why);
        let body = child(&document, root, soap, "Body").ok_or_else(|| refuse("the envelope has no body"))?;
        let payload = document
            .children(body)
            .find(|&node| document.kind(node) == NodeKind::Element)
            .ok_or_else(|| refuse("the SOAP body is empty"))?;
        let message_id = child(&document, root, soap, "Header")
            .and_then(|header| child(&document, header, ADDRESSING, "MessageID"))
            .map(|id| document.string_value(id).trim().to_owned());
        Ok(Call { format, message_id, document, payload })
    }

    /// The local name of the payload.
    pub fn operation(&self) -> &str {
        self.document.local(self.payload)
    }
}

/// An answer with this payload, XML text.
pub fn answer(format: Format, operation: &str, message_id: Option<&str>, payload: &str) -> BackendResponse {
    respond(200, format, &header(message_id, operation), payload)
}

/// A fault: status 500, as SOAP over HTTP has it, or 400 for a plain client's mistake.
pub fn fault(format: Format, blame: Blame, message_id: Option<&str>, reason: &str) -> BackendResponse {
    let reason = escape(reason);
    let status = if format == Format::Plain && blame == Blame::Client { 400 } else { 500 };
    let payload = match format {
        Format::Soap11 => {
            let code = if blame == Blame::Client { "Client" } else { "Server" };
            format!(
                "<soapenv:Fault><faultcode>soapenv:{code}</faultcode><faultstring>{reason}</faultstring><detail/></soapenv:Fault>"
            )
        }
        Format::Soap12 => {
            let code = if blame == Blame::Client { "Sender" } else { "Receiver" };
            format!(
                "<soapenv:Fault><soapenv:Code><soapenv:Value>soapenv:{code}</soapenv:Value></soapenv:Code><soapenv:Reason><soapenv:Text xml:lang=\"en\">{reason}</soapenv:Text></soapenv:Reason></soapenv:Fault>"
            )
        }
        Format::Plain => format!("<Exception>{reason}</Exception>"),
    };
    respond(status, format, &header(message_id, "fault"), &payload)
}

/// Text for XML content: markup escaped, characters that XML does not have replaced.
pub fn escape(text: &str) -> Cow<'_, str> {
    let special = |c: char| {
        matches!(c, '&' | '<' | '>' | '\u{FFFE}' | '\u{FFFF}') || (c < ' ' && !matches!(c, '\t' | '\n'))
    };
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#13;"),
            c if special(c) => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The first child element of that name.
pub fn child(document: &Document, parent: NodeId, namespace: &str, local: &str) -> Option<NodeId> {
    document.children(parent).find(|&node| document.is_element(node, namespace, local))
}

fn respond(status: u16, format: Format, header: &str, payload: &str) -> BackendResponse {
    let content_type = match format {
        Format::Soap11 => "text/xml; charset=UTF-8",
        Format::Soap12 => "application/soap+xml; charset=UTF-8",
        Format::Plain => return BackendResponse::new(status, "application/xml; charset=UTF-8", payload),
    };
    let soap = namespace(format);
    let envelope = format!(
        "<soapenv:Envelope xmlns:soapenv=\"{soap}\">{header}<soapenv:Body>{payload}</soapenv:Body></soapenv:Envelope>"
    );
    BackendResponse::new(status, content_type, envelope)
}

fn header(message_id: Option<&str>, operation: &str) -> String {
    let mut text = String::new();
    if let Some(id) = message_id {
        let id = escape(id);
        let _ = write!(
            text,
            "<soapenv:Header xmlns:wsa=\"{ADDRESSING}\"><wsa:Action>urn:{operation}Response</wsa:Action><wsa:RelatesTo>{id}</wsa:RelatesTo></soapenv:Header>"
        );
    }
    text
}

fn namespace(format: Format) -> &'static str {
    if format == Format::Soap12 { SOAP12 } else { SOAP11 }
}

/// The format to answer in when nothing but the content type is known.
fn format_of(media_type: &str) -> Format {
    match media_type {
        "text/xml" => Format::Soap11,
        "application/soap+xml" => Format::Soap12,
        _ => Format::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content_type: &str, body: &[u8]) -> Result<Call, BackendResponse> {
        let headers = [("Content-Type", content_type)];
        Call::read(&BackendRequest { method: "POST", path: "/x", headers: &headers, body })
    }

    #[test]
    fn the_envelope_tells_the_format() {
        let soap =
            |ns: &str| format!("<e:Envelope xmlns:e='{ns}'><e:Body> <op><a/></op></e:Body></e:Envelope>");
        let cases = [
            ("text/xml", soap(SOAP11), Format::Soap11),
            ("application/soap+xml", soap(SOAP12), Format::Soap12),
            ("application/xml", soap(SOAP11), Format::Soap11),
            ("application/xml", "<op/>".to_owned(), Format::Plain),
            ("text/xml", "<op/>".to_owned(), Format::Plain),
        ];
        for (content_type, body, want) in cases {
            let call = read(content_type, body.as_bytes()).unwrap_or_else(|f| panic!("{f:?}"));
            assert_eq!((call.format, call.operation()), (want, "op"));
        }
    }

    #[test]
    fn what_cannot_be_read_is_answered_with_a_fault_in_the_format_of_the_request() {
        let soap = format!("<e:Envelope xmlns:e='{SOAP11}'><e:Body/></e:Envelope>");
        let cases: [(&str, &[u8], u16, &str); 7] = [
            ("text/xml; charset=UTF-8", b"<a><b></a>", 500, "<faultcode>soapenv:Client</faultcode>"),
            ("application/soap+xml", b"<a", 500, "<soapenv:Value>soapenv:Sender</soapenv:Value>"),
            ("application/xml", b"", 400, "<Exception>"),
            ("", b"\xFF\xFE\0\0", 400, "<Exception>"),
            ("text/xml", soap.as_bytes(), 500, "the SOAP body is empty"),
            ("text/xml", b"<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", 500, "faultstring"),
            (
                "text/xml",
                b"<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'/>",
                500,
                "no body",
            ),
        ];
        for (content_type, body, status, want) in cases {
            let response = read(content_type, body).err().unwrap_or_else(|| panic!("{body:?} was read"));
            let text = String::from_utf8(response.bytes(b"").to_vec()).unwrap();
            assert_eq!(response.status, status, "{text}");
            assert!(text.contains(want), "{text}");
            assert!(Document::parse(text.into_bytes(), &ParseOptions::default()).is_ok());
        }
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("a<b>&\u{1}\r\n\u{FFFF}"), "a&lt;b&gt;&amp;\u{FFFD}&#13;\n\u{FFFD}");
        assert!(matches!(escape("plain"), Cow::Borrowed(_)));
    }
}
