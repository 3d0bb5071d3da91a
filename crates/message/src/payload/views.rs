//! The views of a payload, made when a step first needs them: the envelope of XML, and the JSON value.

use super::{JsonView, Payload, PayloadError, PayloadLimits, Raw, malformed, too_large_to_read};
use crate::envelope::{Envelope, PAYLOAD, SoapVersion, copy_out};
use crate::media::Kind;
use crate::memory::{self, Held};
use crate::{form, form_data, json};
use base64::Engine;
use bytes::Bytes;
use encoding_rs::Encoding;
use std::sync::{Arc, OnceLock};
use xml::{Document, NodeId, ParseOptions};

/// About how many times its text a tree takes, and a JSON value.
const TREE: usize = 3;

pub(super) const VALUE: usize = 4;

impl Payload {
    /// The XML view, built now if this is the first to ask. The body must have been [buffered](Payload::buffer).
    ///
    /// # Errors
    /// The body is not what its type says, or exceeds a limit.
    pub fn envelope(&mut self, limits: &PayloadLimits) -> Result<&Envelope, PayloadError> {
        self.shared(limits, false)?;
        Ok(self.envelope.as_deref().expect("built just above"))
    }

    /// As [`Payload::envelope`], to take pieces out of it: they can then be written as they came
    /// ([`crate::Assembly`]) if this is the first to ask for the view.
    ///
    /// # Errors
    /// As [`Payload::envelope`].
    pub fn envelope_for_pieces(&mut self, limits: &PayloadLimits) -> Result<&Arc<Envelope>, PayloadError> {
        self.shared(limits, true)
    }

    /// As [`Payload::envelope`], for a look after which the message still counts as unread.
    ///
    /// # Errors
    /// As [`Payload::envelope`].
    pub fn peek(&mut self, limits: &PayloadLimits) -> Result<&Envelope, PayloadError> {
        let peeked = self.peeked || self.envelope.is_none();
        self.envelope(limits)?;
        self.peeked = peeked;
        Ok(self.envelope.as_deref().expect("built just above"))
    }

    /// The XML view, to be changed: the bytes and the JSON view no longer hold.
    ///
    /// # Errors
    /// As [`Payload::envelope`].
    pub fn envelope_mut(&mut self, limits: &PayloadLimits) -> Result<&mut Envelope, PayloadError> {
        self.envelope(limits)?;
        self.changed = true;
        self.json = None;
        self.rendered = OnceLock::new();
        self.raw = Raw::Empty;
        Ok(Arc::make_mut(self.envelope.as_mut().expect("built just above")))
    }

    /// Where a document that was read as plain XML is itself a SOAP envelope, that envelope becomes the message.
    ///
    /// # Errors
    /// As [`Payload::envelope`].
    pub fn open_envelope(&mut self, limits: &PayloadLimits) -> Result<(), PayloadError> {
        if !self.reading.is_plain_xml() {
            return Ok(());
        }
        let outer = self.envelope(limits)?;
        let is_envelope = |&root: &NodeId| SoapVersion::of_envelope(&outer.document, root).is_some();
        let Some(root) = outer.payload().filter(is_envelope) else { return Ok(()) };
        let mut document = Document::new();
        copy_out(&mut document, Document::ROOT, &outer.document, root);
        // One without a body is a document like any other.
        let Ok(mut inner) = Envelope::of_document(document) else { return Ok(()) };
        inner.count()?;
        *self.envelope_mut(limits)? = inner;
        Ok(())
    }

    /// The JSON value of a JSON payload, read as [`crate::lenient`] says; `None` for other payloads.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn json(&mut self) -> Result<Option<&serde_json::Value>, PayloadError> {
        if !self.is_json() {
            return Ok(None);
        }
        if self.json.is_none() {
            let text = self.decoded_text(usize::MAX)?;
            let held = memory::try_hold(text.len().saturating_mul(VALUE))?;
            let value = match crate::lenient::read(&text) {
                Err(_) if self.forgiving => serde_json::Value::Object(serde_json::Map::new()),
                read => read.map_err(|error| malformed(format!("the payload is not JSON: {error}")))?,
            };
            self.json = Some(JsonView::new(value, held));
        }
        Ok(self.built_json())
    }

    /// A copy of [`Payload::json_view`].
    ///
    /// # Errors
    /// The payload cannot be read.
    pub fn as_json(&mut self, limits: &PayloadLimits) -> Result<serde_json::Value, PayloadError> {
        self.json_view(limits).cloned()
    }

    /// The JSON rendering of any payload: the value itself, or the XML view turned into JSON, once until it changes.
    ///
    /// # Errors
    /// The payload cannot be read.
    pub fn json_view(&mut self, limits: &PayloadLimits) -> Result<&serde_json::Value, PayloadError> {
        match self.is_json() {
            true => self.json().map(|json| json.unwrap_or(&serde_json::Value::Null)),
            false => {
                self.envelope(limits)?;
                self.rendered(&limits.json)
            }
        }
    }

    /// The JSON rendering of the XML view, if that is built.
    ///
    /// # Errors
    /// There is no XML view, or what is in it has no JSON form.
    pub fn rendered(&self, mapping: &json::Mapping) -> Result<&serde_json::Value, PayloadError> {
        let render = || {
            let envelope = self.envelope.as_deref().ok_or(PayloadError::Consumed)?;
            let Some(payload) = envelope.payload() else { return Ok(serde_json::Value::Null) };
            serde_json::from_str(&mapping.from_xml(&envelope.document, payload))
                .map_err(|error| malformed(format!("the payload has no JSON form: {error}")))
        };
        match &**self.rendered.get_or_init(|| Box::new(render())) {
            Ok(value) => Ok(value),
            Err(error) => Err(error.clone()),
        }
    }

    fn shared(&mut self, limits: &PayloadLimits, pieces: bool) -> Result<&Arc<Envelope>, PayloadError> {
        if self.envelope.is_none() {
            // The tree of a body takes some times its size: what is not there is not to be built.
            let expected = match &self.raw {
                Raw::Bytes(bytes) => memory::try_hold(bytes.len().saturating_mul(TREE))?,
                _ => Held::default(),
            };
            let mut built = match &self.json {
                Some(view) => json_view(&view.value, &limits.json),
                None => match self.build(limits, pieces) {
                    Err(PayloadError::Malformed { .. }) if self.forgiving => self.nothing(),
                    built => built?,
                },
            };
            drop(expected);
            built.count()?;
            self.envelope = Some(Arc::new(built));
        }
        self.peeked = false;
        Ok(self.envelope.as_ref().expect("built just above"))
    }

    /// Builds the XML view from the bytes.
    pub(super) fn build(&mut self, limits: &PayloadLimits, pieces: bool) -> Result<Envelope, PayloadError> {
        if let Raw::Assembled(assembly) = &self.raw {
            return Ok(assembly.build());
        }
        if matches!(self.raw, Raw::Consumed | Raw::Stream(_)) {
            return Err(PayloadError::Consumed);
        }
        if matches!(self.raw, Raw::Empty) && self.posted.is_none() {
            let version = if self.reading.kind == Kind::Soap12 { SoapVersion::V12 } else { SoapVersion::V11 };
            return Ok(Envelope::empty(version));
        }
        match self.reading.kind {
            Kind::Json => {
                let value = self.json()?.expect("is JSON and not empty");
                Ok(json_view(value, &limits.json))
            }
            Kind::Related => self.build_package(limits),
            Kind::FormData => {
                let bytes = self.decoded_bytes(limits.held)?;
                let content_type =
                    self.attachments.as_ref().map_or("", |attachments| attachments.content_type());
                let mut envelope = Envelope::empty(SoapVersion::V12);
                form_data::to_xml(&bytes, content_type, &mut envelope.document, envelope.body)?;
                Ok(envelope)
            }
            Kind::Form => {
                let text = self.decoded_text(limits.held)?;
                let (query, version) = match self.posted.as_deref() {
                    Some(posted) => (&*posted.query, posted.version),
                    None => ("", SoapVersion::V12),
                };
                let mut envelope = Envelope::empty(version);
                form::to_xml(&text, query, &mut envelope.document, envelope.body);
                Ok(envelope)
            }
            Kind::Text => {
                let text = self.decoded_text(limits.held)?;
                Ok(wrapped("text", &text))
            }
            Kind::Binary => {
                let bytes = self.decoded_bytes(limits.held)?;
                Ok(wrapped("binary", &base64::engine::general_purpose::STANDARD.encode(bytes)))
            }
            Kind::Soap11 | Kind::Soap12 | Kind::Xml | Kind::Unknown => {
                let soap = match self.reading.kind {
                    Kind::Soap11 => !self.reading.rest,
                    kind => kind == Kind::Soap12,
                };
                parse_xml(self.decoded_bytes(limits.held)?, soap, self.reading.charset, limits, pieces)
            }
        }
    }

    /// The envelope of a package, with what it includes.
    fn build_package(&mut self, limits: &PayloadLimits) -> Result<Envelope, PayloadError> {
        let bytes = self.decoded_bytes(limits.held)?;
        let Some(attachments) = &mut self.attachments else {
            return Err(malformed("the content type of the multipart body is not known"));
        };
        let root = attachments.split(&bytes)?;
        let soap = matches!(root.kind, Kind::Soap11 | Kind::Soap12);
        let mut envelope = parse_xml(root.content, soap, root.charset, limits, false)?;
        attachments.include(&mut envelope.document, limits.held)?;
        Ok(envelope)
    }

    /// An empty envelope of the version that the body is said to have.
    pub(super) fn nothing(&self) -> Envelope {
        Envelope::empty(match self.reading.kind {
            Kind::Soap12 => SoapVersion::V12,
            _ => SoapVersion::V11,
        })
    }

    /// The bytes after Content-Encoding.
    fn decoded_bytes(&self, limit: usize) -> Result<Bytes, PayloadError> {
        match &self.raw {
            Raw::Bytes(bytes) => self.reading.coding.decode(bytes, limit),
            Raw::Spilled(spilled) => Err(too_large_to_read(spilled)),
            Raw::Consumed | Raw::Stream(_) => Err(PayloadError::Consumed),
            Raw::Empty | Raw::Assembled(_) => Ok(Bytes::new()),
        }
    }

    /// The bytes as text, by charset.
    fn decoded_text(&self, limit: usize) -> Result<String, PayloadError> {
        let bytes = self.decoded_bytes(limit)?;
        let encoding = self.reading.charset.unwrap_or(encoding_rs::UTF_8);
        Ok(encoding.decode(&bytes).0.into_owned())
    }
}

/// An envelope of XML: the document itself where it is `soap`, else one around it.
fn parse_xml(
    bytes: Bytes,
    soap: bool,
    charset: Option<&'static Encoding>,
    limits: &PayloadLimits,
    pieces: bool,
) -> Result<Envelope, PayloadError> {
    let options = ParseOptions {
        limits: limits.xml.clone(),
        charset: charset.map(|charset| charset.name().to_owned()),
        extents: pieces,
        ..ParseOptions::default()
    };
    let not_xml = |error| malformed(format!("the payload is not well-formed XML: {error}"));
    if !soap {
        return Envelope::wrap(bytes, SoapVersion::V11, &options).map_err(not_xml);
    }
    let document = Document::parse(bytes, &options).map_err(not_xml)?;
    Envelope::of_document(document)
        .map_err(|why| malformed(format!("the payload is not a SOAP message: {why}")))
}

/// Whether XML may be in another encoding than UTF-8: it has a byte order mark, or a declaration that names one.
pub(super) fn names_encoding(bytes: &[u8]) -> bool {
    match bytes {
        [0xFE | 0xFF | 0, ..] | [_, 0, ..] => true,
        _ if bytes.starts_with(b"<?xml") => {
            let end = memchr::memchr(b'>', bytes).unwrap_or(bytes.len());
            let declaration = bytes[..end].to_ascii_lowercase();
            memchr::memmem::find(&declaration, b"encoding").is_some()
                && memchr::memmem::find(&declaration, b"utf-8").is_none()
        }
        _ => false,
    }
}

/// An envelope around the XML view of a JSON value.
fn json_view(value: &serde_json::Value, mapping: &json::Mapping) -> Envelope {
    let mut envelope = Envelope::empty(SoapVersion::V11);
    mapping.to_xml(value, &mut envelope.document, envelope.body);
    envelope
}

/// An envelope around `<text>` or `<binary>`.
pub fn wrapped(name: &str, text: &str) -> Envelope {
    let mut envelope = Envelope::empty(SoapVersion::V11);
    let element = envelope.document.append_element(envelope.body, "", PAYLOAD, name);
    envelope.document.declare_namespace(element, "", PAYLOAD);
    if !text.is_empty() {
        envelope.document.append_text(element, text);
    }
    envelope
}
