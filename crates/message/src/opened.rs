//! A SOAP message of bytes, opened at its payload without a tree of the envelope: for what replaces the payload and leaves
//! what is around it as it came.

use crate::envelope::{SoapVersion, WSA_FINAL, WSA_SUBMISSION};
use bytes::Bytes;
use std::ops::Range;
use xml::{Event, Limits, Tokenizer};

/// How far into the message its payload has to begin.
const WINDOW: usize = 8 * 1024;

/// How much of it is read at first.
const FIRST: usize = 256;

/// See the module.
#[derive(Debug)]
pub struct Opened {
    message: Bytes,
    payload: Range<usize>,
    /// The namespaces declared around the payload and not by it, as attributes.
    scope: String,
}

impl Opened {
    /// Opens a message in UTF-8. `None`: it has to be read as a tree, because it is no such envelope, has more than one
    /// element or none in its body, WS-Addressing headers (which do not travel on), or a default namespace around the payload
    /// (which would become that of what takes its place).
    ///
    /// That the payload is well-formed, and one element, is checked by the step that reads it.
    pub fn of(message: &Bytes, version: SoapVersion, limits: &Limits) -> Option<Opened> {
        open(&mut Tokenizer::lent(limits), message, version)
    }

    /// What is before the payload.
    pub fn before(&self) -> &[u8] {
        &self.message[..self.payload.start]
    }

    /// What is behind it.
    pub fn behind(&self) -> &[u8] {
        &self.message[self.payload.end..]
    }

    /// The payload as a document of its own, with the namespaces that are in scope.
    pub fn payload(&self) -> Bytes {
        let payload = self.message.slice(self.payload.clone());
        if self.scope.is_empty() {
            return payload;
        }
        let name = payload.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'/' | b'>'));
        let (name, rest) = payload.split_at(name.unwrap_or(payload.len()));
        [name, self.scope.as_bytes(), rest].concat().into()
    }
}

fn open(tokenizer: &mut Tokenizer, message: &Bytes, version: SoapVersion) -> Option<Opened> {
    // Behind a byte order mark places are not those of the text.
    if message.first() != Some(&b'<') {
        return None;
    }
    let window = &message[..message.len().min(WINDOW)];
    let mut fed = 0;
    // The prefixes of envelope and body.
    let mut tags = [String::new(), String::new()];
    let mut scope: Vec<(String, String)> = Vec::new();
    let mut start;
    loop {
        start = tokenizer.position().offset;
        let depth = tokenizer.depth();
        let event = match tokenizer.next().ok()? {
            Some(event) => event,
            None if fed == window.len() => return None,
            None => {
                // Most payloads begin early, and what is behind their start tag is not looked at.
                let piece = &window[fed..window.len().min((2 * fed).max(FIRST))];
                tokenizer.feed(piece);
                fed += piece.len();
                continue;
            }
        };
        let Event::StartElement { name, attributes, empty } = event else { continue };
        if depth == 2 && !tags[1].is_empty() {
            scope.retain(|(prefix, _)| attributes.declarations().all(|(declared, _)| declared != prefix));
            break;
        }
        let tag = match depth {
            0 => &mut tags[0],
            1 if name.local() == "Body" => &mut tags[1],
            // A block of the header.
            2 if matches!(name.namespace(), WSA_FINAL | WSA_SUBMISSION) => return None,
            _ => continue,
        };
        let expected = if depth == 0 { "Envelope" } else { "Body" };
        if empty || name.prefix().is_empty() || !name.is(version.namespace(), expected) {
            return None;
        }
        name.prefix().clone_into(tag);
        for (prefix, uri) in attributes.declarations() {
            if prefix.is_empty() || uri.contains(['"', '&', '<']) {
                return None;
            }
            scope.retain(|(declared, _)| declared != prefix);
            scope.push((prefix.to_owned(), uri.to_owned()));
        }
    }
    let [envelope, body] = &tags;
    let end = before_end_tag(before_end_tag(message, envelope, ":Envelope")?, body, ":Body")?.len();
    if end <= start {
        return None;
    }
    let mut written = String::new();
    for (prefix, uri) in &scope {
        for part in [" xmlns:", prefix, "=\"", uri, "\""] {
            written.push_str(part);
        }
    }
    Some(Opened { message: message.clone(), payload: start..end, scope: written })
}

/// What is before the end tag of that name (its prefix, and the rest), which is the last of `text` but for white space.
fn before_end_tag<'a>(text: &'a [u8], prefix: &str, rest: &str) -> Option<&'a [u8]> {
    let tag = text.trim_ascii_end().strip_suffix(b">")?.trim_ascii_end();
    tag.strip_suffix(rest.as_bytes())?
        .strip_suffix(prefix.as_bytes())?
        .strip_suffix(b"</")
        .map(<[u8]>::trim_ascii_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: &str = "xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'";

    fn opened(text: &str) -> Option<Opened> {
        let message = Bytes::copy_from_slice(text.as_bytes());
        Opened::of(&message, SoapVersion::V11, &Limits::default())
    }

    #[test]
    fn a_message_is_opened_around_its_payload() {
        for (head, payload, tail, alone) in [
            ("<s:Envelope NS><s:Body>", "<a/>", "</s:Body></s:Envelope>", "<a xmlns:s=\"SOAP\"/>"),
            (
                "<?xml version='1.0'?>\n<s:Envelope NS xmlns:p='urn:p'>\n <s:Header><p:h/></s:Header><s:Body id='1'>\n <!--c-->",
                "<p:a x='>'>t<p:a/></p:a>",
                "\n</s:Body >\n</s:Envelope> \n",
                "<p:a xmlns:s=\"SOAP\" xmlns:p=\"urn:p\" x='>'>t<p:a/></p:a>",
            ),
            // What the payload declares itself is not declared twice.
            (
                "<s:Envelope NS xmlns:p='urn:1'><s:Body xmlns:p='urn:2' xmlns:q='urn:q'>",
                "<p:a xmlns:p='urn:3' xmlns='urn:d'/>",
                "</s:Body></s:Envelope>",
                "<p:a xmlns:s=\"SOAP\" xmlns:q=\"urn:q\" xmlns:p='urn:3' xmlns='urn:d'/>",
            ),
        ] {
            let head = head.replace("NS", NS);
            let found = opened(&format!("{head}{payload}{tail}")).expect(&head);
            assert_eq!((found.before(), found.behind()), (head.as_bytes(), tail.as_bytes()));
            let alone = alone.replace("SOAP", crate::envelope::SOAP11);
            assert_eq!(String::from_utf8_lossy(&found.payload()), alone);
        }
    }

    #[test]
    fn what_needs_a_tree_is_not_opened() {
        let long = format!("<s:Envelope NS><s:Body><!--{}--><a/></s:Body></s:Envelope>", "x".repeat(WINDOW));
        for text in [
            "",
            "<a/>",
            "{}",
            "\u{FEFF}<s:Envelope NS><s:Body><a/></s:Body></s:Envelope>",
            "<s:Envelope NS/>",
            "<s:Envelope NS><s:Body/></s:Envelope>",
            "<s:Envelope NS><s:Body>text</s:Body></s:Envelope>",
            "<s:Envelope NS><s:Body></s:Body></s:Envelope>",
            "<s:Envelope NS><s:Body><a/></s:Body></s:Envelope><!--behind-->",
            "<s:Envelope NS><s:Body><a/></s:Body>text</s:Envelope>",
            "<s:Envelope NS><s:Body><a/></s:Body><s:More/></s:Envelope>",
            "<s:Envelope NS xmlns='urn:d'><s:Body><a/></s:Body></s:Envelope>",
            "<Envelope xmlns='http://schemas.xmlsoap.org/soap/envelope/'><Body><a/></Body></Envelope>",
            "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope'><s:Body><a/></s:Body></s:Envelope>",
            "<s:Envelope NS><s:Header><To xmlns='http://www.w3.org/2005/08/addressing'>x</To></s:Header><s:Body><a/></s:Body></s:Envelope>",
            "<s:Envelope NS><s:Header><To xmlns='http://www.w3.org/2005/0&#56;/addressing'>x</To></s:Header><s:Body><a/></s:Body></s:Envelope>",
            "<s:Envelope NS><s:Body><a></s:Body",
            "<!DOCTYPE a><s:Envelope NS><s:Body><a/></s:Body></s:Envelope>",
            &long,
        ] {
            assert!(opened(&text.replace("NS", NS)).is_none(), "{text}");
        }
    }
}
