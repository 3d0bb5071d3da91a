//! The payload: a body that is only read as far as a step needs it, and only written anew if a step changed it.
//!
//! It climbs from an unread stream over its bytes to a view (envelope or JSON) and never needs to come down: the
//! bytes are kept beside the view until the view is edited, so an untouched payload leaves as it came.

mod error;
mod reading;
mod receiving;
mod views;
mod writing;

pub use self::error::PayloadError;
pub use self::reading::Reading;
pub use self::views::wrapped;
pub use self::writing::{Format, Writing, Written};

use self::error::malformed;
use self::views::{VALUE, names_encoding};
use crate::assembly::{Assembly, Piece};
use crate::attachments::Attachments;
use crate::body::{Body, BodyStream};
use crate::coding::Coding;
use crate::envelope::{Envelope, SoapVersion};
use crate::headers::{Headers, StandardHeader};
use crate::json;
use crate::media::Kind;
use crate::memory::{self, Held};
use crate::opened::Opened;
use crate::spill::{Spill, Spilled};
use bytes::Bytes;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Limits on what is held of one payload, and how it is read.
#[derive(Clone, Debug)]
pub struct PayloadLimits {
    /// Most bytes of a body that a flow may hold, before and after decompression. Default 64 MiB.
    pub held: usize,
    /// Where larger ones go, which then can be passed on but not read. Default nowhere.
    pub spill: Option<Arc<Spill>>,
    /// Limits of the XML parser.
    pub xml: xml::Limits,
    /// The switches of the JSON mapping.
    pub json: Arc<json::Mapping>,
}

impl Default for PayloadLimits {
    fn default() -> PayloadLimits {
        PayloadLimits { held: 64 << 20, spill: None, xml: xml::Limits::default(), json: Arc::default() }
    }
}

enum Raw {
    Empty,
    Stream(Box<dyn BodyStream>),
    Bytes(Bytes),
    /// Pieces of other messages, put together here.
    Assembled(Box<Assembly>),
    /// Larger than what may be held.
    Spilled(Arc<Spilled>),
    /// The stream was handed to an endpoint.
    Consumed,
}

/// The error for what needs all of a body that is in a file.
fn too_large_to_read(spilled: &Spilled) -> PayloadError {
    let message =
        format!("the body of {} bytes is too large to be read: it can only be passed on", spilled.len());
    PayloadError::TooLarge { message }
}

/// See the module.
pub struct Payload {
    raw: Raw,
    reading: Reading,
    /// The XML view, once it was needed. Copies of the message share it until one is changed.
    envelope: Option<Arc<Envelope>>,
    /// The JSON view, once it was needed or set; copies of the message share it.
    json: Option<Arc<JsonView>>,
    /// The JSON form of the XML view, once it was needed; the error where it has none.
    rendered: OnceLock<Box<Result<serde_json::Value, PayloadError>>>,
    /// The views are newer than the bytes.
    changed: bool,
    /// Of a form that a client posted.
    posted: Option<Box<Posted>>,
    /// The bytes were made here, so they are not coded yet as `Content-Encoding` says.
    made: bool,
    /// The XML view was only built to look at it: the message still counts as unread.
    peeked: bool,
    /// Of a multipart message: its content type, and the parts beside the envelope.
    attachments: Option<Box<Attachments>>,
    /// What cannot be read is read as empty ([`Payload::forgive`]).
    forgiving: bool,
    /// Counts a list of pieces as held. Bodies and views, which copies share, count themselves.
    held: Held,
}

/// A JSON view, which counts itself as held.
struct JsonView {
    value: serde_json::Value,
    _held: Held,
}

impl JsonView {
    fn new(value: serde_json::Value, held: Held) -> Arc<JsonView> {
        Arc::new(JsonView { value, _held: held })
    }
}

/// Bytes of text that a node of a tree stands for, where the text that it came from is not there.
pub(crate) const NODE: usize = 16;

/// See [`Payload::posted_with`].
#[derive(Clone)]
struct Posted {
    query: Box<str>,
    version: SoapVersion,
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
            Raw::Assembled(assembly) => format!("{assembly:?}"),
            Raw::Spilled(spilled) => format!("{} bytes in a file", spilled.len()),
            Raw::Consumed => "consumed".to_owned(),
        };
        write!(out, "Payload({raw}, {:?}, changed: {})", self.reading.kind, self.changed)
    }
}

impl Payload {
    /// No payload.
    pub const fn empty() -> Payload {
        Payload {
            raw: Raw::Empty,
            reading: Reading::XML,
            envelope: None,
            json: None,
            rendered: OnceLock::new(),
            changed: false,
            posted: None,
            made: false,
            peeked: false,
            attachments: None,
            forgiving: false,
            held: Held::NONE,
        }
    }

    /// A body as it arrived, to be read as the headers beside it say. `rest` as in [`Reading::rest`].
    pub fn arrived(body: Body, headers: &Headers, rest: bool) -> Payload {
        Payload::arrived_as(body, headers, Reading::arrived(headers, rest))
    }

    /// As [`Payload::arrived`], where the reading is known.
    #[inline]
    pub fn arrived_as(body: Body, headers: &Headers, reading: Reading) -> Payload {
        let mut payload = Payload::received(body, reading);
        if matches!(reading.kind, Kind::Related | Kind::FormData) {
            let content_type = headers.get_known(StandardHeader::ContentType);
            payload.attachments = content_type.map(|content_type| Box::new(Attachments::new(content_type)));
        }
        payload
    }

    /// A body as it arrived; of a multipart one [`Payload::arrived`] knows more.
    #[inline]
    pub fn received(body: Body, reading: Reading) -> Payload {
        let raw = match body {
            Body::Empty => Raw::Empty,
            Body::Bytes(bytes) if bytes.is_empty() => Raw::Empty,
            Body::Bytes(bytes) => Raw::Bytes(bytes),
            Body::Stream(stream) => Raw::Stream(stream),
        };
        Payload { raw, reading, ..Payload::empty() }
    }

    /// A payload that is an envelope of our own making.
    pub fn of_envelope(envelope: Envelope) -> Payload {
        let reading = Reading { kind: Kind::Xml, ..Reading::XML };
        Payload { reading, envelope: Some(Arc::new(envelope)), changed: true, ..Payload::empty() }
    }

    /// Of a form: what its request says beside it. The XML view begins with the pairs of `query`, in an envelope of `version`.
    pub fn posted_with(&mut self, query: &str, version: SoapVersion) {
        self.posted = Some(Box::new(Posted { query: query.into(), version }));
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

    /// Whether only WS-Addressing was looked for in the message ([`Payload::peek`]).
    pub fn is_peeked(&self) -> bool {
        self.peeked
    }

    /// Whether some mediator built a view of the payload, in which case WSO2 would write it anew.
    pub fn is_built(&self) -> bool {
        (self.envelope.is_some() && !self.peeked) || self.json.is_some() || self.is_assembled()
    }

    /// Whether it is an envelope in pieces ([`Payload::set_assembly`]).
    pub fn is_assembled(&self) -> bool {
        matches!(self.raw, Raw::Assembled(_))
    }

    /// The first element in the body as a piece: where it is, if it was not changed since ([`Payload::set_assembly`]),
    /// else in its own envelope.
    ///
    /// # Errors
    /// As [`Payload::envelope`].
    pub fn first_piece(&mut self, limits: &PayloadLimits) -> Result<Option<Piece>, PayloadError> {
        if let Raw::Assembled(assembly) = &self.raw
            && let Some(piece) = assembly.first()
        {
            return Ok(Some(piece.clone()));
        }
        let envelope = self.envelope_for_pieces(limits)?;
        Ok(envelope.payload().map(|element| (Arc::clone(envelope), element)))
    }

    /// Whether the payload is no longer the bytes that arrived.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// The SOAP version of the envelope, if the message was changed as XML.
    pub fn made_version(&self) -> Option<SoapVersion> {
        self.envelope
            .as_deref()
            .filter(|_| self.changed && self.json.is_none())
            .map(|envelope| envelope.version)
    }

    /// Whether the bytes were made here and are in no content coding, whatever the headers beside them say.
    pub fn is_uncoded(&self) -> bool {
        self.made && !self.changed && self.reading.coding == Coding::Identity
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

    /// As [`Payload::stream_mut`], to be looked at.
    pub fn stream(&self) -> Option<&(dyn BodyStream + 'static)> {
        match &self.raw {
            Raw::Stream(stream) if !self.changed => Some(stream.as_ref()),
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

    /// The bytes that arrived, for what needs all of them; none where there is no entity.
    ///
    /// # Errors
    /// They are too many to be held, and are in a file, or they are not here: on their way, or given away.
    pub fn whole(&self) -> Result<Bytes, PayloadError> {
        match &self.raw {
            Raw::Bytes(bytes) if !self.changed => Ok(bytes.clone()),
            Raw::Spilled(spilled) if !self.changed => Err(too_large_to_read(spilled)),
            Raw::Consumed | Raw::Stream(_) if !self.changed => Err(PayloadError::Consumed),
            _ => Ok(Bytes::new()),
        }
    }

    /// About how many bytes a reader or writer of all of it goes through; 0 for what is not here.
    pub fn extent(&self) -> usize {
        match (&self.raw, &self.envelope) {
            (Raw::Bytes(bytes), _) => bytes.len(),
            (Raw::Assembled(assembly), None) => assembly.extent(),
            (Raw::Stream(_), _) if !self.changed => 0,
            (_, Some(envelope)) => envelope.document.node_count() * NODE,
            _ => 0,
        }
    }

    /// The bytes, if all of them are here, no step has read them, and they are a plain XML document in the
    /// encoding that they say themselves or `reading().charset`.
    pub fn plain_xml(&self) -> Option<&Bytes> {
        let plain = self.reading.is_plain_xml();
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

    /// The message opened at its payload, if it is a SOAP envelope in UTF-8 whose bytes are all here, no step has looked into
    /// them, and what is around the payload can stay as it is ([`Opened::of`]).
    pub fn opened(&self, limits: &PayloadLimits) -> Option<Opened> {
        let version = match self.reading.kind {
            Kind::Soap11 if !self.reading.rest => SoapVersion::V11,
            Kind::Soap12 => SoapVersion::V12,
            _ => return None,
        };
        let utf8 = self.reading.charset.is_none_or(|charset| charset == encoding_rs::UTF_8);
        match &self.raw {
            Raw::Bytes(bytes)
                if utf8
                    && self.reading.coding == Coding::Identity
                    && self.envelope.is_none()
                    && self.json.is_none()
                    && !names_encoding(bytes) =>
            {
                Opened::of(bytes, version, &limits.xml)
            }
            _ => None,
        }
    }

    /// The XML view, if it is built already.
    pub fn built_envelope(&self) -> Option<&Envelope> {
        self.envelope.as_deref()
    }

    /// What is known of the envelope without building a view: its version and header are right, its body may lack pieces.
    pub fn frame(&self) -> Option<&Envelope> {
        match (&self.envelope, &self.raw) {
            (Some(envelope), _) => Some(envelope),
            (None, Raw::Assembled(assembly)) => Some(assembly.frame()),
            _ => None,
        }
    }

    /// Whether the payload is a SOAP fault, as far as a step has read or made it.
    pub fn is_known_fault(&self) -> bool {
        match (&self.envelope, &self.raw) {
            (Some(envelope), _) => envelope.fault().is_some(),
            (None, Raw::Assembled(assembly)) => assembly.is_fault(),
            _ => false,
        }
    }

    /// The JSON value, if it was read or made already.
    pub fn built_json(&self) -> Option<&serde_json::Value> {
        self.json.as_deref().map(|view| &view.value)
    }

    /// Replaces the payload by JSON text.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn set_json(&mut self, text: &str) -> Result<(), PayloadError> {
        if text.trim().is_empty() {
            *self = Payload { attachments: self.kept_attachments(), ..Payload::empty() };
            return Ok(());
        }
        let value: serde_json::Value = serde_json::from_str(text)
            .map_err(|error| malformed(format!("the new payload is not JSON: {error}")))?;
        let reading = Reading { kind: Kind::Json, charset: None, coding: Coding::Identity, ..self.reading };
        *self = Payload {
            raw: Raw::Bytes(Bytes::copy_from_slice(text.as_bytes())),
            reading,
            json: Some(JsonView::new(value, Held::NONE)),
            made: true,
            attachments: self.kept_attachments(),
            ..Payload::empty()
        };
        Ok(())
    }

    /// Replaces the payload by a JSON value.
    pub fn set_json_value(&mut self, value: serde_json::Value) {
        let reading = Reading { kind: Kind::Json, charset: None, coding: Coding::Identity, ..self.reading };
        let text = value.to_string();
        let held = memory::hold(text.len().saturating_mul(VALUE + 1));
        *self = Payload {
            raw: Raw::Bytes(Bytes::from(text)),
            reading,
            json: Some(JsonView::new(value, held)),
            made: true,
            attachments: self.kept_attachments(),
            ..Payload::empty()
        };
    }

    /// Replaces the payload by an envelope.
    pub fn set_envelope(&mut self, mut envelope: Envelope) {
        // It is there already. Callers that begin new work look at what is held.
        let _ = envelope.count();
        let (reading, attachments) = (self.reading, self.kept_attachments());
        *self = Payload { reading, attachments, ..Payload::of_envelope(envelope) };
    }

    /// Replaces the payload by an envelope that stays in pieces until a step needs the tree.
    pub fn set_assembly(&mut self, assembly: Assembly) {
        let (reading, attachments) = (self.reading, self.kept_attachments());
        let held = memory::hold(assembly.memory());
        let raw = Raw::Assembled(Box::new(assembly));
        *self = Payload { raw, reading, attachments, changed: true, held, ..Payload::empty() };
    }

    /// The parts that go along when a new payload takes the place of this one.
    fn kept_attachments(&mut self) -> Option<Box<Attachments>> {
        let mut kept = self.attachments.take().filter(|_| self.reading.kind != Kind::FormData)?;
        let body = match &self.raw {
            Raw::Bytes(bytes) if self.reading.kind == Kind::Related && !self.changed => Some(bytes),
            _ => None,
        };
        kept.envelope_replaced(body);
        kept.are_there().then_some(kept)
    }

    /// Whether the message has parts that would be lost if only its envelope went on.
    pub fn has_attachments(&self) -> bool {
        self.attachments.as_ref().is_some_and(|attachments| attachments.are_there())
    }

    /// Replaces the payload by bytes that are read as `reading` says.
    pub fn set_bytes(&mut self, bytes: impl Into<Bytes>, reading: Reading) {
        let attachments = self.kept_attachments();
        *self = Payload { attachments, made: true, ..Payload::received(Body::Bytes(bytes.into()), reading) };
    }

    /// Replaces the payload by bytes that were made here: they are only read if a step needs a view of them, and are
    /// written in the form that the receiver wants, which may be an envelope around them.
    pub fn set_made(&mut self, bytes: impl Into<Bytes>, reading: Reading) {
        self.set_bytes(bytes, reading);
        self.changed = true;
    }

    /// Replaces the payload by a stream of bytes in no content coding, which are read as `reading` says.
    pub fn set_stream(&mut self, stream: Box<dyn BodyStream>, reading: Reading) {
        let attachments = self.kept_attachments();
        *self = Payload { attachments, made: true, ..Payload::received(Body::Stream(stream), reading) };
    }

    /// Puts a stream around the one that the body is read from, if it is.
    pub fn wrap_stream(&mut self, wrap: impl FnOnce(Box<dyn BodyStream>) -> Box<dyn BodyStream>) {
        self.raw = match std::mem::replace(&mut self.raw, Raw::Consumed) {
            Raw::Stream(stream) => Raw::Stream(wrap(stream)),
            other => other,
        };
    }

    /// Puts back a body that was given away and came back whole.
    pub fn put_back(&mut self, body: Body) {
        let attachments = self.attachments.take();
        *self = Payload { attachments, ..Payload::received(body, self.reading) };
    }

    /// Gives the bytes or the stream away. What stays behind is the view, if one was built, else nothing.
    pub fn take_body(&mut self) -> Body {
        match std::mem::replace(&mut self.raw, Raw::Consumed) {
            Raw::Empty | Raw::Consumed => Body::Empty,
            Raw::Bytes(bytes) => {
                self.raw = Raw::Bytes(bytes.clone());
                Body::Bytes(bytes)
            }
            Raw::Assembled(assembly) => {
                self.raw = Raw::Assembled(assembly);
                Body::Empty
            }
            Raw::Spilled(spilled) => {
                let body = Body::Stream(spilled.reader());
                self.raw = Raw::Spilled(spilled);
                body
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
            Kind::Json => {
                let empty = serde_json::Value::Object(serde_json::Map::new());
                self.json = Some(JsonView::new(empty, Held::NONE));
            }
            _ => self.envelope = Some(Arc::new(self.nothing())),
        }
    }

    /// From now on a body that is not what its type says is read as an empty one. For what handles a fault: it begins with a
    /// message that can be read and replaced. The bytes stay what they are.
    pub fn forgive(&mut self) {
        self.forgiving = true;
    }

    /// No payload, to be read as this one is.
    pub fn emptied(&self) -> Payload {
        Payload { reading: self.reading, ..Payload::empty() }
    }

    /// A copy for another branch of the flow. The body must have been buffered.
    pub fn copy(&self) -> Payload {
        let raw = match &self.raw {
            Raw::Bytes(bytes) => Raw::Bytes(bytes.clone()),
            Raw::Assembled(assembly) => Raw::Assembled(assembly.clone()),
            Raw::Spilled(spilled) => Raw::Spilled(Arc::clone(spilled)),
            Raw::Consumed | Raw::Stream(_) => Raw::Consumed,
            Raw::Empty => Raw::Empty,
        };
        Payload {
            raw,
            reading: self.reading,
            envelope: self.envelope.clone(),
            json: self.json.clone(),
            rendered: OnceLock::new(),
            changed: self.changed,
            posted: self.posted.clone(),
            made: self.made,
            peeked: self.peeked,
            attachments: self.attachments.clone(),
            forgiving: self.forgiving,
            held: self.held.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
