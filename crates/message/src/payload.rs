//! The payload: a body that is only read as far as a step needs it, and only written anew if a step changed it.
//!
//! It climbs from an unread stream over its bytes to a view (envelope or JSON) and never needs to come down: the
//! bytes are kept beside the view until the view is edited, so an untouched payload leaves as it came.

use crate::assembly::{Assembly, Piece};
use crate::attachments::{Attachments, Packing, pack};
use crate::body::{Body, BodyError, BodyStream};
use crate::charset::{Charset, Unmappable, for_reading};
use crate::coding::Coding;
use crate::envelope::{Envelope, PAYLOAD, SoapVersion, copy_out, synapse_string};
use crate::headers::{Headers, Known};
use crate::media::{Kind, MediaType};
use crate::memory::{self, Held, Shortage};
use crate::opened::Opened;
use crate::spill::{Spill, Spilled};
use crate::{form, form_data, json};
use base64::Engine;
use bytes::Bytes;
use encoding_rs::Encoding;
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, OnceLock};
use xml::{Document, NodeId, ParseOptions};

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

impl Reading {
    /// The reading that header values ask for. `rest` as in [`Reading::rest`].
    pub fn of(content_type: Option<&str>, content_encoding: Option<&str>, rest: bool) -> Reading {
        Reading::of_bytes(content_type.map(str::as_bytes), content_encoding, rest)
    }

    /// Whether it is XML without an envelope.
    fn is_plain_xml(&self) -> bool {
        match self.kind {
            Kind::Xml => true,
            Kind::Soap11 => self.rest,
            _ => false,
        }
    }

    /// The reading of a body that arrived with these headers. `rest` as in [`Reading::rest`].
    #[inline]
    pub fn arrived(headers: &Headers, rest: bool) -> Reading {
        let content_type = headers.get_known_bytes(Known::ContentType);
        Reading::of_bytes(content_type, headers.get_known(Known::ContentEncoding), rest)
    }

    /// As [`Reading::of`], of the header as it arrived.
    pub fn of_bytes(content_type: Option<&[u8]>, content_encoding: Option<&str>, rest: bool) -> Reading {
        let (kind, charset) = match content_type {
            Some(content_type) => kind_and_charset(content_type),
            None => (Kind::Binary, None),
        };
        Reading { kind, charset, rest, coding: Coding::of(content_encoding) }
    }

    /// Plain XML in UTF-8.
    pub const XML: Reading = Reading { kind: Kind::Xml, charset: None, rest: true, coding: Coding::Identity };
}

/// What a Content-Type says. The answer to the last one is kept by the thread: most messages have the type of the one
/// before.
fn kind_and_charset(content_type: &[u8]) -> (Kind, Option<&'static Encoding>) {
    const LONGEST: usize = 64;
    type Last = (Vec<u8>, Kind, Option<&'static Encoding>);
    thread_local! {
        static LAST: RefCell<Last> = const { RefCell::new((Vec::new(), Kind::Unknown, None)) };
    }
    let parsed = || match std::str::from_utf8(content_type).map(MediaType::parse) {
        Ok(media) => (media.kind(), media.charset().and_then(for_reading)),
        Err(_) => (Kind::Binary, None),
    };
    if content_type.len() > LONGEST {
        return parsed();
    }
    // Fails only while the thread ends.
    let kept = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        if last.0 != content_type {
            let (kind, charset) = parsed();
            last.0.clear();
            last.0.extend_from_slice(content_type);
            (last.1, last.2) = (kind, charset);
        }
        (last.1, last.2)
    });
    kept.unwrap_or_else(|_| parsed())
}

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
    /// Messages of this process hold as much together as they may: 503 to the client.
    Shortage(Shortage),
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
            PayloadError::Shortage(why) => why.fmt(out),
            PayloadError::Receiving(error) => write!(out, "the body did not arrive: {error}"),
            PayloadError::Consumed => {
                out.write_str("the body was streamed to an endpoint before and is gone")
            }
        }
    }
}

impl std::error::Error for PayloadError {}

impl From<Shortage> for PayloadError {
    fn from(why: Shortage) -> PayloadError {
        PayloadError::Shortage(why)
    }
}

fn malformed(message: impl Into<String>) -> PayloadError {
    PayloadError::Malformed { message: message.into() }
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

/// About how many times its text a tree takes, and a JSON value.
const TREE: usize = 3;
const VALUE: usize = 4;

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
            let content_type = headers.get_known(Known::ContentType);
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

    /// Receives the whole body.
    ///
    /// # Errors
    /// The body is larger than `limits.held`, or the peer does not deliver it.
    pub async fn buffer(&mut self, limits: &PayloadLimits) -> Result<(), PayloadError> {
        let Raw::Stream(stream) = &mut self.raw else { return Ok(()) };
        let mut held = Held::default();
        loop {
            if stream.buffered().len() > limits.held
                || stream.exact_len().is_some_and(|len| len > limits.held as u64)
            {
                if let Some(spill) = &limits.spill {
                    return self.spill(spill).await;
                }
                let message = format!("the body is larger than the {} bytes a flow may hold", limits.held);
                return Err(PayloadError::TooLarge { message });
            }
            held.try_grow(stream.storage())?;
            if stream.is_complete() {
                break;
            }
            match std::future::poll_fn(|cx| stream.poll_more(cx)).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Err(PayloadError::Receiving(error)),
            }
        }
        held.try_grow(stream.storage())?;
        let bytes = memory::counted(stream.take(), held);
        let raw = if bytes.is_empty() { Raw::Empty } else { Raw::Bytes(bytes) };
        if let Raw::Stream(stream) = std::mem::replace(&mut self.raw, raw) {
            stream.recycle();
        }
        Ok(())
    }

    /// Receives the whole body into a file.
    async fn spill(&mut self, spill: &Arc<Spill>) -> Result<(), PayloadError> {
        let Raw::Stream(stream) = &mut self.raw else { return Ok(()) };
        let large = |why: std::io::Error| match why.kind() {
            std::io::ErrorKind::FileTooLarge => PayloadError::TooLarge { message: why.to_string() },
            _ => PayloadError::TooLarge {
                message: format!(
                    "the body is too large to be held, and a file in {} cannot be written: {why}",
                    spill.directory.display()
                ),
            },
        };
        if let Some(length) = stream.exact_len().filter(|&length| length > spill.most) {
            let message =
                format!("the body of {length} bytes is larger than the {} that may go to a file", spill.most);
            return Err(PayloadError::TooLarge { message });
        }
        let mut spilled = spill.begin().map_err(large)?;
        let result = loop {
            let arrived = stream.buffered();
            if let Err(why) = spilled.push(arrived) {
                break Err(large(why));
            }
            let count = arrived.len();
            stream.consume(count);
            if stream.is_complete() {
                break Ok(());
            }
            match std::future::poll_fn(|cx| stream.poll_more(cx)).await {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(PayloadError::Receiving(error)),
            }
        };
        // The rest of a body must not be taken for the whole.
        let raw = if result.is_ok() { Raw::Spilled(Arc::new(spilled)) } else { Raw::Consumed };
        if let Raw::Stream(stream) = std::mem::replace(&mut self.raw, raw) {
            stream.recycle();
        }
        result
    }

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

    /// The JSON value, if it was read or made already.
    pub fn built_json(&self) -> Option<&serde_json::Value> {
        self.json.as_deref().map(|view| &view.value)
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

    /// An empty envelope of the version that the body is said to have.
    fn nothing(&self) -> Envelope {
        Envelope::empty(match self.reading.kind {
            Kind::Soap12 => SoapVersion::V12,
            _ => SoapVersion::V11,
        })
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

    /// The payload in the form of `format`, in UTF-8 and without attachments.
    ///
    /// # Errors
    /// The payload cannot be read, which it must be to take another form.
    pub fn write(&mut self, format: Format, limits: &PayloadLimits) -> Result<Bytes, PayloadError> {
        Ok(self.written(&Writing::plain(format), limits)?.bytes)
    }

    /// The payload as `writing` wants it.
    ///
    /// # Errors
    /// The payload cannot be read, which it must be to take another form.
    pub fn written(
        &mut self,
        writing: &Writing<'_>,
        limits: &PayloadLimits,
    ) -> Result<Written, PayloadError> {
        let format = writing.format;
        let plain = |bytes| Ok(Written { bytes, content_type: None });
        // Bytes that were made here are the payload as long as there is no view.
        if writing.packing == Packing::None && self.holds(writing) && (!self.changed || !self.is_built()) {
            match &self.raw {
                Raw::Bytes(bytes) if format == Format::FormData => {
                    let content_type =
                        self.attachments.as_ref().map(|attachments| attachments.content_type().to_owned());
                    return Ok(Written { bytes: bytes.clone(), content_type });
                }
                Raw::Bytes(bytes) => return plain(bytes.clone()),
                Raw::Empty if self.envelope.is_none() => return plain(Bytes::new()),
                _ => {}
            }
        }
        if let Raw::Assembled(assembly) = &self.raw
            && let Some(bytes) = writing.assembled(assembly)
        {
            return plain(bytes);
        }
        if format == Format::Json
            && let Some(value) = self.json()?
        {
            return plain(writing.encode(value.to_string(), Unmappable::Escape));
        }
        self.envelope(limits)?;
        let attachments = self.attachments.as_deref();
        let envelope = self.envelope.as_deref().expect("built just above");
        let document = &envelope.document;
        let payload = envelope.payload();
        let is_binary =
            |payload| document.local(payload) == "binary" && document.namespace(payload) == PAYLOAD;
        let text = |text: String| writing.encode(text, Unmappable::Question);
        let bytes = match (format, payload) {
            (Format::Soap(_) | Format::Xml, _) => {
                let mut written = Cow::Borrowed(envelope);
                let mut parts = Vec::new();
                if let (Packing::Mtom, Some(attachments)) = (writing.packing, attachments) {
                    parts = attachments.extract(written.to_mut());
                    parts.extend(attachments.parts().iter().cloned());
                } else if let (Packing::Swa, Some(attachments)) = (writing.packing, attachments) {
                    parts = attachments.all();
                }
                if let Format::Soap(version) = format
                    && version != written.version
                {
                    written.to_mut().convert(version);
                }
                let node = if format == Format::Xml { written.payload() } else { Some(written.root) };
                let bytes = node.map_or_else(Bytes::new, |node| writing.xml(&written.document, node));
                if writing.packing == Packing::None {
                    return plain(bytes);
                }
                let version = if let Format::Soap(version) = format { Some(version) } else { None };
                let (bytes, content_type) =
                    pack(bytes, version, writing.charset_name, writing.packing, parts);
                return Ok(Written { bytes, content_type: Some(content_type) });
            }
            (_, None) => Bytes::new(),
            (Format::Json, Some(payload)) => {
                let json = if writing.preserve_spaces {
                    json::Mapping { preserve_spaces: true, ..(*limits.json).clone() }
                        .from_xml(document, payload)
                } else {
                    limits.json.from_xml(document, payload)
                };
                writing.encode(json, Unmappable::Escape)
            }
            (Format::Form, Some(payload)) => form::from_xml(document, payload).into(),
            (Format::FormData, Some(payload)) => {
                let (bytes, content_type) = form_data::from_xml(document, payload);
                return Ok(Written { bytes, content_type: Some(content_type) });
            }
            (Format::Text | Format::Binary, Some(payload)) if is_binary(payload) => {
                binary(&document.string_value(payload)).into()
            }
            (Format::Text, Some(payload)) if document.namespace(payload) == PAYLOAD => {
                text(document.string_value(payload).into_owned())
            }
            (Format::Text, Some(payload)) => text(own_text(document, payload)),
            (Format::Binary, Some(payload)) => text(synapse_string(document, payload, true)),
        };
        plain(bytes)
    }

    /// Whether the bytes are already as `writing` wants them.
    fn holds(&self, writing: &Writing<'_>) -> bool {
        if self.reading.coding != Coding::Identity || writing.declaration {
            return false;
        }
        let charset = match self.reading.charset {
            Some(charset) => charset,
            // XML may say another encoding itself.
            None => match &self.raw {
                Raw::Bytes(bytes) if self.reading.kind.is_xml() && names_encoding(bytes) => return false,
                _ => encoding_rs::UTF_8,
            },
        };
        if for_reading(writing.charset_name) != Some(charset) {
            return false;
        }
        match writing.format {
            Format::Soap(SoapVersion::V11) => self.reading.kind == Kind::Soap11 && !self.reading.rest,
            Format::Soap(SoapVersion::V12) => self.reading.kind == Kind::Soap12,
            Format::Xml => {
                matches!(self.reading.kind, Kind::Xml | Kind::Unknown)
                    || (self.reading.kind == Kind::Soap11 && self.reading.rest)
            }
            Format::Json => self.reading.kind == Kind::Json,
            Format::Form => self.reading.kind == Kind::Form,
            Format::FormData => self.reading.kind == Kind::FormData && self.attachments.is_some(),
            Format::Text => self.reading.kind == Kind::Text,
            Format::Binary => self.reading.kind == Kind::Binary,
        }
    }

    /// Builds the XML view from the bytes.
    fn build(&mut self, limits: &PayloadLimits, pieces: bool) -> Result<Envelope, PayloadError> {
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

    /// The bytes after Content-Encoding.
    fn decoded_bytes(&self, limit: usize) -> Result<Bytes, PayloadError> {
        match &self.raw {
            Raw::Bytes(bytes) => self.reading.coding.decode(bytes, limit),
            Raw::Spilled(spilled) => {
                let message = format!(
                    "the body of {} bytes is too large to be read: it can only be passed on",
                    spilled.len()
                );
                Err(PayloadError::TooLarge { message })
            }
            _ => Ok(Bytes::new()),
        }
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
    /// `multipart/form-data`.
    FormData,
    /// The text of the first element of the body.
    Text,
    /// The bytes of the `binary` element.
    Binary,
}

impl Format {
    /// The formatter that a media type asks for; unregistered types are written as XML.
    pub fn of(essence: &str, rest: bool) -> Format {
        match Kind::of(essence) {
            Kind::Soap11 if rest => Format::Xml,
            Kind::Soap11 => Format::Soap(SoapVersion::V11),
            Kind::Soap12 => Format::Soap(SoapVersion::V12),
            Kind::Xml => Format::Xml,
            Kind::Json => Format::Json,
            Kind::Form => Format::Form,
            Kind::FormData => Format::FormData,
            Kind::Related => Format::Soap(SoapVersion::V11),
            Kind::Text => Format::Text,
            Kind::Binary => Format::Binary,
            Kind::Unknown if rest => Format::Xml,
            Kind::Unknown => Format::Soap(SoapVersion::V11),
        }
    }
}

/// How a payload is written.
#[derive(Clone, Copy, Debug)]
pub struct Writing<'a> {
    /// In which form.
    pub format: Format,
    /// In which encoding.
    pub charset: Charset,
    /// The name of the encoding, for declarations.
    pub charset_name: &'a str,
    /// XML begins with a declaration. In other encodings than UTF-8 it always does.
    pub declaration: bool,
    /// XML with its attachments.
    pub packing: Packing,
    /// In JSON, white space that is all of an element is kept (`PRESERVE_SPACES`).
    pub preserve_spaces: bool,
}

/// A payload that was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// The body.
    pub bytes: Bytes,
    /// Its content type, where the body decides it (multipart).
    pub content_type: Option<String>,
}

impl Writing<'_> {
    /// UTF-8 without frills.
    pub fn plain(format: Format) -> Writing<'static> {
        Writing {
            format,
            charset: Charset::UTF8,
            charset_name: "UTF-8",
            declaration: false,
            packing: Packing::None,
            preserve_spaces: false,
        }
    }

    fn encode(&self, text: String, unmappable: Unmappable) -> Bytes {
        if self.charset.is_utf8() { text.into() } else { self.charset.encode(&text, unmappable).into() }
    }

    /// What is in pieces, where it can be written without its tree. In other encodings the characters that they do not have
    /// are references, which cannot stand everywhere in a piece.
    fn assembled(&self, assembly: &Assembly) -> Option<Bytes> {
        if self.packing != Packing::None || !self.charset.is_utf8() {
            return None;
        }
        let mut out = Vec::new();
        self.declare(&mut out);
        assembly.write(self.format, &mut out).then(|| out.into())
    }

    fn declare(&self, out: &mut Vec<u8>) {
        if self.declaration || !self.charset.is_utf8() {
            out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"");
            out.extend_from_slice(self.charset_name.as_bytes());
            out.extend_from_slice(b"\"?>");
        }
    }

    fn xml(&self, document: &Document, node: xml::NodeId) -> Bytes {
        let mut out = Vec::new();
        self.declare(&mut out);
        xml::write(document, node, &xml::WriteOptions::default(), &mut out);
        if self.charset.is_utf8() {
            return out.into();
        }
        self.charset.encode(&String::from_utf8_lossy(&out), Unmappable::Reference).into()
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
fn names_encoding(bytes: &[u8]) -> bool {
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
mod tests;
