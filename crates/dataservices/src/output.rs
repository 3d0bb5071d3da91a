//! Responses as they are written: rows become elements or members of JSON, in a pipe that the client empties.

use crate::rdf;
use config::DATA_SERVICE_NAMESPACE;
use message::SoapVersion;
use std::fmt::Write;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Xml,
    Json,
    /// XML in a SOAP envelope.
    Soap(SoapVersion),
}

impl Form {
    /// The media type with the charset.
    pub fn media_type(self) -> &'static str {
        match self {
            Form::Xml => "application/xml; charset=UTF-8",
            Form::Json => "application/json; charset=UTF-8",
            Form::Soap(SoapVersion::V11) => "text/xml; charset=UTF-8",
            Form::Soap(SoapVersion::V12) => "application/soap+xml; charset=UTF-8",
        }
    }

    /// The parts around the rows of a response.
    pub fn frame(self) -> (String, &'static str) {
        match self {
            Form::Xml | Form::Json => (String::new(), ""),
            Form::Soap(version) => (
                format!(
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<soapenv:Envelope xmlns:soapenv=\"{}\"><soapenv:Body>",
                    version.namespace()
                ),
                "</soapenv:Body></soapenv:Envelope>",
            ),
        }
    }
}

/// Bytes that [`escaped`] may write otherwise: the special ones, controls, and the first of U+FFFE and U+FFFF. (A table is a load for
/// each byte; most values are a few digits or letters.)
static MAY_NEED_ESCAPING: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = byte < 0x20 || matches!(byte as u8, b'&' | b'<' | b'>' | b'"' | 0xEF);
        byte += 1;
    }
    table
};

/// Escapes a text for element content. Characters that XML does not have become question marks.
pub(crate) fn escape(text: &str, out: &mut String) {
    escaped(text, false, out);
}

/// Escapes a text for an attribute: a reader would take tabs and line ends for blanks.
fn escape_attribute(text: &str, out: &mut String) {
    escaped(text, true, out);
}

fn escaped(text: &str, is_attribute: bool, out: &mut String) {
    if !text.bytes().any(|byte| MAY_NEED_ESCAPING[usize::from(byte)]) {
        return out.push_str(text);
    }
    out.reserve(text.len());
    let mut from = 0;
    for (at, c) in text.char_indices() {
        let written = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&quot;",
            '\r' => "&#xD;",
            '\t' if is_attribute => "&#x9;",
            '\n' if is_attribute => "&#xA;",
            '\t' | '\n' => continue,
            '\0'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => "?",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(written);
        from = at + c.len_utf8();
    }
    out.push_str(&text[from..]);
}

/// A buffer between the writer of rows and the client. The writer waits while it is full.
pub(crate) struct Pipe {
    bytes: Mutex<Vec<u8>>,
    room: usize,
}

impl Pipe {
    /// A pipe of this capacity, in bytes.
    pub fn new(room: usize) -> Arc<Pipe> {
        Arc::new(Pipe { bytes: Mutex::default(), room })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the writer has to wait.
    pub fn is_full(&self) -> bool {
        self.lock().len() >= self.room
    }

    /// The number of bytes in it.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Appends a text, and returns the number of bytes in it.
    pub fn put(&self, text: &mut String) -> usize {
        let mut bytes = self.lock();
        bytes.extend_from_slice(text.as_bytes());
        text.clear();
        bytes.len()
    }

    /// Takes its bytes.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.lock())
    }
}

/// Writes one response.
pub(crate) struct Writer {
    form: Form,
    pipe: Arc<Pipe>,
    /// The bytes that are not in the pipe yet.
    text: String,
    /// Most bytes of a response that is complete before it is sent; `None`: the writer waits instead.
    most: Option<usize>,
    /// The default namespaces of the open elements.
    namespaces: Vec<Arc<str>>,
    /// For each open object or array of JSON: it is empty so far.
    empty: Vec<bool>,
    /// Write the same as XML for those who look at a part of the response ([`Writer::copy`]).
    copies: Vec<Writer>,
}

/// A held response has exceeded the limit.
pub(crate) struct TooLarge;

impl Writer {
    /// A writer into a pipe. `most`: see [`Writer::room`].
    pub fn new(form: Form, pipe: Arc<Pipe>, most: Option<usize>) -> Writer {
        Writer {
            form,
            pipe,
            text: String::new(),
            most,
            namespaces: vec![Arc::from("")],
            empty: Vec::new(),
            copies: Vec::new(),
        }
    }

    /// What is written from now on is also kept as XML, until [`Writer::copied`].
    pub fn copy(&mut self) {
        self.copies.push(Writer::new(Form::Xml, Pipe::new(usize::MAX), None));
    }

    /// What was written since the last [`Writer::copy`], as XML.
    pub fn copied(&mut self) -> String {
        self.copies.pop().map(|copy| copy.text).unwrap_or_default()
    }

    pub fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    /// Moves the written bytes into the pipe.
    ///
    /// # Errors
    /// A held response has exceeded the limit.
    pub fn flush(&mut self) -> Result<(), TooLarge> {
        let length = self.pipe.put(&mut self.text);
        match self.most {
            Some(most) if length > most => Err(TooLarge),
            _ => Ok(()),
        }
    }

    /// Whether the pipe has room. It wakes nobody: the reader polls the writer again.
    pub fn poll_room(&self, _: &mut Context<'_>) -> Poll<()> {
        if self.most.is_none() && self.pipe.is_full() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Waits for room.
    pub async fn room(&self) {
        poll_fn(|cx| self.poll_room(cx)).await;
    }

    /// Begins the response.
    pub fn begin(&mut self) {
        let (before, _) = self.form.frame();
        self.text.push_str(&before);
        if self.is_json() {
            self.open('{');
        }
    }

    /// Ends the response.
    pub fn end(&mut self) {
        if self.is_json() {
            self.close('}');
        }
        let (_, after) = self.form.frame();
        self.text.push_str(after);
    }

    /// Writes the status of a request without a result.
    pub fn status(&mut self) {
        if self.is_json() {
            self.key("REQUEST_STATUS");
            self.text.push_str("\"SUCCESSFUL\"");
        } else {
            let _ = write!(
                self.text,
                "<REQUEST_STATUS xmlns=\"{DATA_SERVICE_NAMESPACE}\">SUCCESSFUL</REQUEST_STATUS>"
            );
        }
    }

    fn open(&mut self, bracket: char) {
        self.text.push(bracket);
        self.empty.push(true);
    }

    fn close(&mut self, bracket: char) {
        self.text.push(bracket);
        self.empty.pop();
    }

    /// A comma, unless it is the first member.
    fn next(&mut self) {
        match self.empty.last_mut() {
            Some(empty) if *empty => *empty = false,
            _ => self.text.push(','),
        }
    }

    fn key(&mut self, name: &str) {
        self.next();
        string(name, &mut self.text);
        self.text.push(':');
    }

    /// The start tag without its `>`: attributes may follow.
    fn start_tag(&mut self, name: &str, namespace: &Arc<str>) {
        self.text.push('<');
        self.text.push_str(name);
        let is_same = |last: &Arc<str>| Arc::ptr_eq(last, namespace) || last == namespace;
        if !self.namespaces.last().is_some_and(is_same) {
            self.text.push_str(" xmlns=\"");
            escape(namespace, &mut self.text);
            self.text.push('"');
        }
    }

    /// An element with children: a member with an object.
    pub fn start(&mut self, name: &str, namespace: &Arc<str>) {
        self.copies.iter_mut().for_each(|copy| copy.start(name, namespace));
        if self.is_json() {
            self.key(name);
            self.open('{');
        } else {
            self.start_tag(name, namespace);
            self.namespaces.push(Arc::clone(namespace));
        }
    }

    /// An attribute of the open start tag.
    pub fn attribute(&mut self, name: &str, value: Option<&str>, xsd_type: Type) {
        self.copies.iter_mut().for_each(|copy| copy.attribute(name, value, xsd_type));
        if self.is_json() {
            self.key(&format!("@{name}"));
            json_value(value, xsd_type, &mut self.text);
        } else if let Some(value) = value {
            let _ = write!(self.text, " {name}=\"");
            escape_attribute(value, &mut self.text);
            self.text.push('"');
        }
    }

    /// The end of the start tag, `>`.
    pub fn started(&mut self) {
        self.copies.iter_mut().for_each(|copy| copy.started());
        if !self.is_json() {
            self.text.push('>');
        }
    }

    /// The end tag of an element.
    pub fn end_element(&mut self, name: &str) {
        self.copies.iter_mut().for_each(|copy| copy.end_element(name));
        if self.is_json() {
            self.close('}');
        } else {
            self.namespaces.pop();
            self.end_tag(name);
        }
    }

    fn end_tag(&mut self, name: &str) {
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
    }

    /// Begins rows with this name: a member with an array.
    pub fn start_rows(&mut self, name: &str) {
        if self.is_json() {
            self.key(name);
            self.open('[');
        }
    }

    /// Ends the rows.
    pub fn end_rows(&mut self) {
        if self.is_json() {
            self.close(']');
        }
    }

    /// Begins a row; its attributes may follow.
    pub fn start_row(&mut self, name: &str, namespace: &Arc<str>) {
        self.copies.iter_mut().for_each(|copy| copy.start_row(name, namespace));
        if self.is_json() {
            self.next();
            self.open('{');
        } else {
            self.start_tag(name, namespace);
            self.namespaces.push(Arc::clone(namespace));
        }
    }

    /// The element around RDF descriptions.
    pub fn start_rdf(&mut self, namespace: &Arc<str>) {
        self.copies.iter_mut().for_each(|copy| copy.start_rdf(namespace));
        let _ = write!(self.text, "<rdf:RDF xmlns:rdf=\"{}\"", rdf::NAMESPACE);
        if self.namespaces.last() != Some(namespace) {
            self.text.push_str(" xmlns=\"");
            escape(namespace, &mut self.text);
            self.text.push('"');
        }
        self.text.push('>');
        self.namespaces.push(Arc::clone(namespace));
    }

    /// Its end tag.
    pub fn end_rdf(&mut self) {
        self.end_element("rdf:RDF");
    }

    /// Begins the description of a resource.
    pub fn start_description(&mut self, about: &str) {
        self.copies.iter_mut().for_each(|copy| copy.start_description(about));
        self.text.push_str("<rdf:Description rdf:about=\"");
        escape(about, &mut self.text);
        self.text.push_str("\">");
    }

    /// Ends it.
    pub fn end_description(&mut self) {
        self.copies.iter_mut().for_each(|copy| copy.end_description());
        self.text.push_str("</rdf:Description>");
    }

    /// A property with a literal. NULL is left out.
    pub fn literal(&mut self, name: &str, namespace: &Arc<str>, value: Option<&str>, xsd_name: &str) {
        self.copies.iter_mut().for_each(|copy| copy.literal(name, namespace, value, xsd_name));
        let Some(value) = value else { return };
        self.start_tag(name, namespace);
        self.text.push_str(" rdf:datatype=\"http://www.w3.org/2001/XMLSchema#");
        escape(xsd_name, &mut self.text);
        self.text.push_str("\">");
        escape(value, &mut self.text);
        self.end_tag(name);
    }

    /// A property that refers to another resource.
    pub fn reference(&mut self, name: &str, namespace: &Arc<str>, uri: &str) {
        self.copies.iter_mut().for_each(|copy| copy.reference(name, namespace, uri));
        self.start_tag(name, namespace);
        self.text.push_str(" rdf:resource=\"");
        escape(uri, &mut self.text);
        self.text.push_str("\"/>");
    }

    /// An element with a value.
    pub fn field(&mut self, name: &str, namespace: &Arc<str>, value: Option<&str>, xsd_type: Type) {
        self.copies.iter_mut().for_each(|copy| copy.field(name, namespace, value, xsd_type));
        if self.is_json() {
            self.key(name);
            json_value(value, xsd_type, &mut self.text);
            return;
        }
        self.start_tag(name, namespace);
        match value {
            None => self
                .text
                .push_str(" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:nil=\"true\"/>"),
            Some("") => self.text.push_str("/>"),
            Some(value) => {
                self.text.push('>');
                escape(value, &mut self.text);
                self.end_tag(name);
            }
        }
    }
}

/// The JSON of a value, by its XML Schema type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    Number,
    Truth,
}

impl Type {
    /// The types whose values are numbers in JSON; `number` is one of JSON templates.
    const NUMBERS: &str = "integer int long short byte decimal double float number nonNegativeInteger positiveInteger \
        negativeInteger nonPositiveInteger unsignedInt unsignedLong unsignedShort unsignedByte";
    /// The other types of XML Schema.
    const OTHERS: &str = "string boolean date dateTime time anyURI base64Binary hexBinary duration QName anyType \
        anySimpleType gDay gMonth gMonthDay gYear gYearMonth normalizedString token language Name NCName NMTOKEN \
        NMTOKENS ID IDREF IDREFS ENTITY ENTITIES NOTATION";

    /// The type by its local name; JSON templates use the same names.
    pub fn named(name: &str) -> Type {
        match name {
            "boolean" => Type::Truth,
            name if Type::NUMBERS.split_whitespace().any(|number| number == name) => Type::Number,
            _ => Type::Text,
        }
    }

    /// All names of types.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Type::NUMBERS.split_whitespace().chain(Type::OTHERS.split_whitespace())
    }
}

fn json_value(value: Option<&str>, xsd_type: Type, out: &mut String) {
    let Some(value) = value else { return out.push_str("null") };
    let plain = value.trim();
    match xsd_type {
        Type::Number if is_json_number(plain) => out.push_str(plain),
        Type::Truth if matches!(plain, "true" | "1") => out.push_str("true"),
        Type::Truth if matches!(plain, "false" | "0") => out.push_str("false"),
        _ => string(value, out),
    }
}

/// Whether a text is a JSON number.
fn is_json_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite) && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    message::json::escape(text, out);
    out.push('"');
}
