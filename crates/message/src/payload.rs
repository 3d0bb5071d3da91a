//! The payload: a body that is only read as far as somebody asks, and only written anew if somebody changed it.
//!
//! It climbs from an unread stream over its bytes to a view (envelope or JSON) and never needs to come down: the
//! bytes are kept beside the view until the view is edited, so an untouched payload leaves as it came.

use crate::body::{Body, BodyError, BodyStream};
use crate::envelope::{Envelope, PAYLOAD, SoapVersion, synapse_string};
use crate::media::{Kind, MediaType};
use crate::{form, json};
use base64::Engine;
use bytes::Bytes;
use encoding_rs::Encoding;
use std::fmt;
use std::io::Read;
use xml::{Document, ParseOptions};

/// How the bytes of a payload are to be read: the facts of its transport headers, taken when it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// By media type.
    pub kind: Kind,
    /// The `charset` parameter, if it names a known encoding.
    pub charset: Option<&'static Encoding>,
    /// The peer speaks REST: `text/xml` is plain XML, not SOAP.
    pub rest: bool,
    /// `Content-Encoding`.
    pub coding: Coding,
}

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// None.
    Identity,
    /// `gzip` or `x-gzip`.
    Gzip,
    /// `deflate` (zlib).
    Deflate,
    /// One that is not understood: the bytes can be relayed but not read.
    Unknown,
}

impl Reading {
    /// The reading that header values ask for. `rest` as in [`Reading::rest`].
    pub fn of(content_type: Option<&str>, content_encoding: Option<&str>, rest: bool) -> Reading {
        let media = MediaType::parse(content_type.unwrap_or("application/octet-stream"));
        let coding = match content_encoding.map(str::trim) {
            None | Some("" | "identity") => Coding::Identity,
            Some(name) if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => {
                Coding::Gzip
            }
            Some(name) if name.eq_ignore_ascii_case("deflate") => Coding::Deflate,
            Some(_) => Coding::Unknown,
        };
        let charset = media.charset().and_then(|label| Encoding::for_label(label.as_bytes()));
        Reading { kind: media.kind(), charset, rest, coding }
    }

    /// Plain XML in UTF-8.
    pub const XML: Reading = Reading { kind: Kind::Xml, charset: None, rest: true, coding: Coding::Identity };
}

/// Limits on what is held of one payload.
#[derive(Clone, Debug)]
pub struct PayloadLimits {
    /// Most bytes of a body that a flow may hold, before and after decompression. Default 64 MiB.
    pub held: usize,
    /// Limits of the XML parser.
    pub xml: xml::Limits,
}

impl Default for PayloadLimits {
    fn default() -> PayloadLimits {
        PayloadLimits { held: 64 << 20, xml: xml::Limits::default() }
    }
}

/// Why a payload cannot be read or written.
#[derive(Clone, Debug)]
pub enum PayloadError {
    /// The bytes are not what their type says; `ERROR_CODE` 601000 where WSO2 gives it.
    Malformed {
        /// What is wrong, with its position in the payload.
        message: String,
    },
    /// A limit of [`PayloadLimits`] is exceeded: 413 to the client.
    TooLarge {
        /// Which limit, and its value.
        message: String,
    },
    /// The peer did not deliver the body.
    Receiving(BodyError),
    /// The payload is gone: it was streamed to an endpoint and nothing kept it.
    Consumed,
}

impl fmt::Display for PayloadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PayloadError::Malformed { message } | PayloadError::TooLarge { message } => {
                out.write_str(message)
            }
            PayloadError::Receiving(error) => write!(out, "the body did not arrive: {error}"),
            PayloadError::Consumed => {
                out.write_str("the body was streamed to an endpoint before and is gone")
            }
        }
    }
}

impl std::error::Error for PayloadError {}

fn malformed(message: impl Into<String>) -> PayloadError {
    PayloadError::Malformed { message: message.into() }
}

enum Raw {
    Empty,
    Stream(Box<dyn BodyStream>),
    Bytes(Bytes),
    /// The stream was handed to an endpoint.
    Consumed,
}

/// See the module.
pub struct Payload {
    raw: Raw,
    reading: Reading,
    /// The XML view, once somebody asked for it.
    envelope: Option<Box<Envelope>>,
    /// The JSON view, once somebody asked for it or set it.
    json: Option<Box<serde_json::Value>>,
    /// The views are newer than the bytes.
    changed: bool,
}

impl Default for Payload {
    fn default() -> Payload {
        Payload::empty()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let raw = match &self.raw {
            Raw::Empty => "empty".to_owned(),
            Raw::Stream(_) => "unread".to_owned(),
            Raw::Bytes(bytes) => format!("{} bytes", bytes.len()),
            Raw::Consumed => "consumed".to_owned(),
        };
        write!(out, "Payload({raw}, {:?}, changed: {})", self.reading.kind, self.changed)
    }
}

impl Payload {
    /// No payload.
    pub const fn empty() -> Payload {
        Payload { raw: Raw::Empty, reading: Reading::XML, envelope: None, json: None, changed: false }
    }

    /// A body as it arrived.
    pub fn received(body: Body, reading: Reading) -> Payload {
        let raw = match body {
            Body::Empty => Raw::Empty,
            Body::Bytes(bytes) if bytes.is_empty() => Raw::Empty,
            Body::Bytes(bytes) => Raw::Bytes(bytes),
            Body::Stream(stream) => Raw::Stream(stream),
        };
        Payload { raw, reading, envelope: None, json: None, changed: false }
    }

    /// A payload that is an envelope of our own making.
    pub fn of_envelope(envelope: Envelope) -> Payload {
        let reading = Reading { kind: Kind::Xml, ..Reading::XML };
        Payload { raw: Raw::Empty, reading, envelope: Some(Box::new(envelope)), json: None, changed: true }
    }

    /// How the bytes are read.
    pub fn reading(&self) -> Reading {
        self.reading
    }

    /// Whether there is no entity at all.
    pub fn is_empty(&self) -> bool {
        !self.changed && matches!(self.raw, Raw::Empty)
    }

    /// Whether the body is still on its way.
    pub fn is_unread(&self) -> bool {
        matches!(self.raw, Raw::Stream(_)) && !self.changed
    }

    /// Whether some mediator built a view of the payload, in which case WSO2 would write it anew.
    pub fn is_built(&self) -> bool {
        self.envelope.is_some() || self.json.is_some()
    }

    /// Whether the payload is no longer the bytes that arrived.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// Whether the stream was given away.
    pub fn is_consumed(&self) -> bool {
        matches!(self.raw, Raw::Consumed) && !self.changed
    }

    /// Whether the payload is JSON (WSO2: "has a JSON payload").
    pub fn is_json(&self) -> bool {
        if self.changed { self.json.is_some() } else { self.reading.kind == Kind::Json && !self.is_empty() }
    }

    /// The unread stream, for peeking.
    pub fn stream_mut(&mut self) -> Option<&mut (dyn BodyStream + 'static)> {
        match &mut self.raw {
            Raw::Stream(stream) if !self.changed => Some(stream.as_mut()),
            _ => None,
        }
    }

    /// The bytes that arrived, if all of them are here and still hold.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.raw {
            Raw::Bytes(bytes) if !self.changed => Some(bytes),
            _ => None,
        }
    }

    /// The bytes, if all of them are here, nobody has looked into them, and they are a plain XML document in the
    /// encoding that they say themselves or `reading().charset`.
    pub fn plain_xml(&self) -> Option<&Bytes> {
        let plain = match self.reading.kind {
            Kind::Xml => true,
            Kind::Soap11 => self.reading.rest,
            _ => false,
        };
        match &self.raw {
            Raw::Bytes(bytes)
                if plain
                    && self.reading.coding == Coding::Identity
                    && self.envelope.is_none()
                    && self.json.is_none() =>
            {
                Some(bytes)
            }
            _ => None,
        }
    }

    /// Receives the whole body.
    ///
    /// # Errors
    /// The body is larger than `limits.held`, or the peer does not deliver it.
    pub async fn buffer(&mut self, limits: &PayloadLimits) -> Result<(), PayloadError> {
        let Raw::Stream(stream) = &mut self.raw else { return Ok(()) };
        loop {
            if stream.buffered().len() > limits.held
                || stream.exact_len().is_some_and(|len| len > limits.held as u64)
            {
                let message = format!("the body is larger than the {} bytes a flow may hold", limits.held);
                return Err(PayloadError::TooLarge { message });
            }
            if stream.is_complete() {
                break;
            }
            match std::future::poll_fn(|cx| stream.poll_more(cx)).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Err(PayloadError::Receiving(error)),
            }
        }
        let bytes = Bytes::copy_from_slice(stream.buffered());
        let length = bytes.len();
        stream.consume(length);
        let raw = if length == 0 { Raw::Empty } else { Raw::Bytes(bytes) };
        if let Raw::Stream(stream) = std::mem::replace(&mut self.raw, raw) {
            stream.recycle();
        }
        Ok(())
    }

    /// The XML view, built now if this is the first to ask. The body must have been [buffered](Payload::buffer).
    ///
    /// # Errors
    /// The body is not what its type says, or exceeds a limit.
    pub fn envelope(&mut self, limits: &PayloadLimits) -> Result<&Envelope, PayloadError> {
        if self.envelope.is_none() {
            let built = match &self.json {
                Some(value) => json_view(value),
                None => self.build(limits)?,
            };
            self.envelope = Some(Box::new(built));
        }
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
        self.raw = Raw::Empty;
        Ok(self.envelope.as_deref_mut().expect("built just above"))
    }

    /// The XML view if somebody built it already.
    pub fn built_envelope(&self) -> Option<&Envelope> {
        self.envelope.as_deref()
    }

    /// The JSON value of a JSON payload; `None` for other payloads.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn json(&mut self) -> Result<Option<&serde_json::Value>, PayloadError> {
        if !self.is_json() {
            return Ok(None);
        }
        if self.json.is_none() {
            let text = self.decoded_text(usize::MAX)?;
            let value = serde_json::from_str(&text)
                .map_err(|error| malformed(format!("the payload is not JSON: {error}")))?;
            self.json = Some(Box::new(value));
        }
        Ok(self.json.as_deref())
    }

    /// The JSON rendering of any payload: the value itself, or the XML view turned into JSON.
    ///
    /// # Errors
    /// The payload cannot be read.
    pub fn as_json(&mut self, limits: &PayloadLimits) -> Result<serde_json::Value, PayloadError> {
        if let Some(value) = self.json()? {
            return Ok(value.clone());
        }
        let envelope = self.envelope(limits)?;
        let Some(payload) = envelope.payload() else { return Ok(serde_json::Value::Null) };
        let text = json::from_xml(&envelope.document, payload);
        serde_json::from_str(&text)
            .map_err(|error| malformed(format!("the payload has no JSON form: {error}")))
    }

    /// Replaces the payload by JSON text.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn set_json(&mut self, text: &str) -> Result<(), PayloadError> {
        if text.trim().is_empty() {
            *self = Payload::empty();
            return Ok(());
        }
        let value: serde_json::Value = serde_json::from_str(text)
            .map_err(|error| malformed(format!("the new payload is not JSON: {error}")))?;
        let reading = Reading { kind: Kind::Json, charset: None, coding: Coding::Identity, ..self.reading };
        *self = Payload {
            raw: Raw::Bytes(Bytes::copy_from_slice(text.as_bytes())),
            reading,
            envelope: None,
            json: Some(Box::new(value)),
            changed: false,
        };
        Ok(())
    }

    /// Replaces the payload by a JSON value.
    pub fn set_json_value(&mut self, value: serde_json::Value) {
        let reading = Reading { kind: Kind::Json, charset: None, coding: Coding::Identity, ..self.reading };
        let text = value.to_string();
        *self = Payload {
            raw: Raw::Bytes(Bytes::from(text)),
            reading,
            envelope: None,
            json: Some(Box::new(value)),
            changed: false,
        };
    }

    /// Replaces the payload by an envelope.
    pub fn set_envelope(&mut self, envelope: Envelope) {
        let reading = self.reading;
        *self = Payload { reading, ..Payload::of_envelope(envelope) };
    }

    /// Replaces the payload by bytes that are read as `reading` says.
    pub fn set_bytes(&mut self, bytes: impl Into<Bytes>, reading: Reading) {
        *self = Payload::received(Body::Bytes(bytes.into()), reading);
    }

    /// Replaces the payload by bytes that were made here: they are only read if somebody wants to see them, and are
    /// written in the form that the receiver wants, which may be an envelope around them.
    pub fn set_made(&mut self, bytes: impl Into<Bytes>, reading: Reading) {
        *self = Payload { changed: true, ..Payload::received(Body::Bytes(bytes.into()), reading) };
    }

    /// Gives the bytes or the stream away. What stays behind is the view, if one was built, else nothing.
    pub fn take_body(&mut self) -> Body {
        match std::mem::replace(&mut self.raw, Raw::Consumed) {
            Raw::Empty | Raw::Consumed => Body::Empty,
            Raw::Bytes(bytes) => {
                self.raw = Raw::Bytes(bytes.clone());
                Body::Bytes(bytes)
            }
            Raw::Stream(stream) => Body::Stream(stream),
        }
    }

    /// Lets go of a body that is still on its way and will not arrive whole, or is not wanted. What stays behind is
    /// as after [`Payload::take_body`]: no step mistakes half of a body, or none, for the message.
    pub fn give_up(&mut self) {
        if let Body::Stream(stream) = self.take_body() {
            stream.recycle();
        }
    }

    /// Lets a payload that was given away be read, as an empty one: for what handles the failure to send it. It still
    /// counts as [consumed](Payload::is_consumed), so that nothing empty is sent in its place.
    pub fn read_as_empty(&mut self) {
        if !self.is_consumed() || self.is_built() {
            return;
        }
        match self.reading.kind {
            Kind::Json => self.json = Some(Box::new(serde_json::Value::Object(serde_json::Map::new()))),
            Kind::Soap12 => self.envelope = Some(Box::new(Envelope::empty(SoapVersion::V12))),
            _ => self.envelope = Some(Box::new(Envelope::empty(SoapVersion::V11))),
        }
    }

    /// No payload, to be read as this one is.
    pub fn emptied(&self) -> Payload {
        Payload { reading: self.reading, ..Payload::empty() }
    }

    /// A copy for another branch of the flow. The body must have been buffered.
    pub fn copy(&self) -> Payload {
        let raw = match &self.raw {
            Raw::Bytes(bytes) => Raw::Bytes(bytes.clone()),
            Raw::Consumed | Raw::Stream(_) => Raw::Consumed,
            Raw::Empty => Raw::Empty,
        };
        Payload {
            raw,
            reading: self.reading,
            envelope: self.envelope.clone(),
            json: self.json.clone(),
            changed: self.changed,
        }
    }

    /// The payload in the form of `format`.
    ///
    /// # Errors
    /// The payload cannot be read, which it must be to take another form.
    pub fn write(&mut self, format: Format, limits: &PayloadLimits) -> Result<Bytes, PayloadError> {
        // Bytes that were made here are the payload as long as there is no view.
        if self.holds(format) && (!self.changed || !self.is_built()) {
            match &self.raw {
                Raw::Bytes(bytes) => return Ok(bytes.clone()),
                Raw::Empty if self.envelope.is_none() => return Ok(Bytes::new()),
                _ => {}
            }
        }
        if format == Format::Json
            && let Some(value) = self.json()?
        {
            return Ok(Bytes::from(value.to_string()));
        }
        let envelope = self.envelope(limits)?;
        let document = &envelope.document;
        let options = xml::WriteOptions::default();
        let mut out = Vec::new();
        match format {
            Format::Soap(version) if version != envelope.version => {
                let mut other = envelope.clone();
                other.convert(version);
                xml::write(&other.document, other.root, &options, &mut out);
            }
            Format::Soap(_) => xml::write(document, envelope.root, &options, &mut out),
            Format::Xml => {
                if let Some(payload) = envelope.payload() {
                    xml::write(document, payload, &options, &mut out);
                }
            }
            Format::Json => {
                if let Some(payload) = envelope.payload() {
                    out = json::from_xml(document, payload).into_bytes();
                }
            }
            Format::Form => {
                if let Some(payload) = envelope.payload() {
                    out = form::from_xml(document, payload).into_bytes();
                }
            }
            Format::Text => {
                if let Some(payload) = envelope.payload() {
                    out = if document.local(payload) == "binary" && document.namespace(payload) == PAYLOAD {
                        binary(&document.string_value(payload))
                    } else {
                        let is_text = document.namespace(payload) == PAYLOAD;
                        if is_text {
                            document.string_value(payload).into_owned()
                        } else {
                            own_text(document, payload)
                        }
                        .into_bytes()
                    };
                }
            }
            Format::Binary => {
                if let Some(payload) = envelope.payload() {
                    out = if document.local(payload) == "binary" && document.namespace(payload) == PAYLOAD {
                        binary(&document.string_value(payload))
                    } else {
                        synapse_string(document, payload, true).into_bytes()
                    };
                }
            }
        }
        Ok(Bytes::from(out))
    }

    /// Whether the bytes are already in `format`.
    fn holds(&self, format: Format) -> bool {
        if self.reading.coding != Coding::Identity {
            return false;
        }
        match format {
            Format::Soap(SoapVersion::V11) => self.reading.kind == Kind::Soap11 && !self.reading.rest,
            Format::Soap(SoapVersion::V12) => self.reading.kind == Kind::Soap12,
            Format::Xml => {
                matches!(self.reading.kind, Kind::Xml | Kind::Unknown)
                    || (self.reading.kind == Kind::Soap11 && self.reading.rest)
            }
            Format::Json => self.reading.kind == Kind::Json,
            Format::Form => self.reading.kind == Kind::Form,
            Format::Text => self.reading.kind == Kind::Text,
            Format::Binary => self.reading.kind == Kind::Binary,
        }
    }

    /// Builds the XML view from the bytes.
    fn build(&mut self, limits: &PayloadLimits) -> Result<Envelope, PayloadError> {
        if matches!(self.raw, Raw::Consumed | Raw::Stream(_)) {
            return Err(PayloadError::Consumed);
        }
        if matches!(self.raw, Raw::Empty) {
            let version = if self.reading.kind == Kind::Soap12 { SoapVersion::V12 } else { SoapVersion::V11 };
            return Ok(Envelope::empty(version));
        }
        match self.reading.kind {
            Kind::Json => {
                let value = self.json()?.expect("is JSON and not empty");
                Ok(json_view(value))
            }
            Kind::Form => {
                let text = self.decoded_text(limits.held)?;
                let mut envelope = Envelope::empty(SoapVersion::V12);
                form::to_xml(&text, "", &mut envelope.document, envelope.body);
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
            Kind::Soap11 if !self.reading.rest => self.parse_soap(limits),
            Kind::Soap12 => self.parse_soap(limits),
            Kind::Soap11 | Kind::Xml | Kind::Unknown => {
                let bytes = self.decoded_bytes(limits.held)?;
                let options = self.parse_options(limits);
                Envelope::wrap(bytes, SoapVersion::V11, &options)
                    .map_err(|error| malformed(format!("the payload is not well-formed XML: {error}")))
            }
        }
    }

    fn parse_soap(&self, limits: &PayloadLimits) -> Result<Envelope, PayloadError> {
        let bytes = self.decoded_bytes(limits.held)?;
        let options = self.parse_options(limits);
        let document = Document::parse(bytes, &options)
            .map_err(|error| malformed(format!("the payload is not well-formed XML: {error}")))?;
        Envelope::of_document(document)
            .map_err(|why| malformed(format!("the payload is not a SOAP message: {why}")))
    }

    fn parse_options(&self, limits: &PayloadLimits) -> ParseOptions {
        ParseOptions {
            limits: limits.xml.clone(),
            charset: self.reading.charset.map(|charset| charset.name().to_owned()),
            ..ParseOptions::default()
        }
    }

    /// The bytes after Content-Encoding.
    fn decoded_bytes(&self, limit: usize) -> Result<Bytes, PayloadError> {
        let Raw::Bytes(bytes) = &self.raw else { return Ok(Bytes::new()) };
        let mut out = Vec::new();
        let limited = limit as u64;
        let read = match self.reading.coding {
            Coding::Identity => return Ok(bytes.clone()),
            Coding::Gzip => flate2::read::MultiGzDecoder::new(&bytes[..])
                .take(limited.saturating_add(1))
                .read_to_end(&mut out),
            Coding::Deflate => flate2::read::ZlibDecoder::new(&bytes[..])
                .take(limited.saturating_add(1))
                .read_to_end(&mut out),
            Coding::Unknown => {
                return Err(malformed("the body has a Content-Encoding that cannot be read here"));
            }
        };
        read.map_err(|error| malformed(format!("the body is not what its Content-Encoding says: {error}")))?;
        if out.len() as u64 > limited {
            let message = format!("the decompressed body is larger than the {limit} bytes a flow may hold");
            return Err(PayloadError::TooLarge { message });
        }
        Ok(Bytes::from(out))
    }

    /// The bytes as text, by charset.
    fn decoded_text(&self, limit: usize) -> Result<String, PayloadError> {
        let bytes = self.decoded_bytes(limit)?;
        let encoding = self.reading.charset.unwrap_or(encoding_rs::UTF_8);
        Ok(encoding.decode(&bytes).0.into_owned())
    }
}

/// The forms a payload can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The envelope.
    Soap(SoapVersion),
    /// The first element of the body.
    Xml,
    /// JSON.
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// The text of the first element of the body.
    Text,
    /// The bytes of the `binary` element.
    Binary,
}

impl Format {
    /// The formatter that a media type asks for; types nobody registered are written as XML.
    pub fn of(essence: &str, rest: bool) -> Format {
        match Kind::of(essence) {
            Kind::Soap11 if rest => Format::Xml,
            Kind::Soap11 => Format::Soap(SoapVersion::V11),
            Kind::Soap12 => Format::Soap(SoapVersion::V12),
            Kind::Xml => Format::Xml,
            Kind::Json => Format::Json,
            Kind::Form => Format::Form,
            Kind::Text => Format::Text,
            Kind::Binary => Format::Binary,
            Kind::Unknown if rest => Format::Xml,
            Kind::Unknown => Format::Soap(SoapVersion::V11),
        }
    }
}

/// An envelope around the XML view of a JSON value.
fn json_view(value: &serde_json::Value) -> Envelope {
    let mut envelope = Envelope::empty(SoapVersion::V11);
    json::to_xml(value, &mut envelope.document, envelope.body);
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

fn own_text(document: &Document, element: xml::NodeId) -> String {
    document
        .children(element)
        .filter(|&child| document.kind(child) == xml::NodeKind::Text)
        .map(|child| document.text(child))
        .collect()
}

/// The bytes of a `binary` element; a text that is not base64 stands for itself.
fn binary(text: &str) -> Vec<u8> {
    let compact: String = text.split_ascii_whitespace().collect();
    base64::engine::general_purpose::STANDARD.decode(&compact).unwrap_or_else(|_| text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
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
            assert!(gone.is_consumed() && gone.build(&limits).is_err(), "{content_type}");
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
        for (content_type, body) in [
            ("text/xml", "<a"),
            ("text/xml", "<a/>"),
            ("application/json", "{\"a\":"),
            ("application/xml", "x"),
        ] {
            let mut bad = payload(content_type, body, false);
            assert!(matches!(bad.envelope(&limits), Err(PayloadError::Malformed { .. })), "{body}");
            assert_eq!(
                bad.bytes().map(|bytes| &bytes[..]),
                Some(body.as_bytes()),
                "the bytes are still there"
            );
        }
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
}
