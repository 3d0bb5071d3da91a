//! Writing a payload: the forms that it can take, its encoding, and its attachments.

use super::views::names_encoding;
use super::{Payload, PayloadError, PayloadLimits, Raw};
use crate::assembly::Assembly;
use crate::attachments::{Packing, pack};
use crate::charset::{Charset, Unmappable, for_reading};
use crate::coding::Coding;
use crate::envelope::{PAYLOAD, SoapVersion, synapse_string};
use crate::media::Kind;
use crate::{form, form_data, json};
use base64::Engine;
use bytes::Bytes;
use std::borrow::Cow;
use xml::Document;

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

    /// JSON, which has an escape for each character.
    fn json(&self, text: String) -> Bytes {
        if self.charset.is_utf8() {
            return text.into();
        }
        self.charset.encode(&text, Unmappable::Escape).into()
    }

    /// Text, which has none.
    fn text(&self, text: String) -> Result<Bytes, PayloadError> {
        if self.charset.is_utf8() {
            return Ok(text.into());
        }
        match self.charset.first_unmappable(&text) {
            None => Ok(self.charset.encode(&text, Unmappable::Question).into()),
            Some(character) => Err(self.unwritable(character, "text has no references to characters")),
        }
    }

    #[cold]
    fn unwritable(&self, character: char, why: &str) -> PayloadError {
        let (name, number) = (self.charset_name, u32::from(character));
        let message = format!(
            "the message cannot be written in {name}, which does not have the character \"{character}\" (U+{number:04X}), because {why}: set CHARACTER_SET_ENCODING to UTF-8"
        );
        PayloadError::Unwritable { message }
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

    fn xml(&self, document: &Document, node: xml::NodeId) -> Result<Bytes, PayloadError> {
        let mut out = Vec::new();
        self.declare(&mut out);
        xml::write(document, node, &xml::WriteOptions::default(), &mut out);
        if self.charset.is_utf8() {
            return Ok(out.into());
        }
        let text = String::from_utf8_lossy(&out);
        if let (Some(encoding), Some(_)) = (self.charset.partial_name(), self.charset.first_unmappable(&text))
        {
            // In text and in the values of attributes it becomes a reference.
            let options = xml::WriteOptions { encoding: Some(encoding.to_owned()), ..Default::default() };
            if let Err(xml::WriteError::Character { character, .. }) =
                xml::write_encoded(document, node, &options, &mut Vec::new())
            {
                let why = "a name, a comment or a processing instruction has no references to characters";
                return Err(self.unwritable(character, why));
            }
        }
        Ok(self.charset.encode(&text, Unmappable::Reference).into())
    }
}

impl Payload {
    /// The payload in the form of `format`, in UTF-8 and without attachments.
    ///
    /// # Errors
    /// The payload cannot be read, which it must be to take another form, or the charset lacks a character of it.
    pub fn write(&mut self, format: Format, limits: &PayloadLimits) -> Result<Bytes, PayloadError> {
        Ok(self.written(&Writing::plain(format), limits)?.bytes)
    }

    /// The payload as `writing` wants it.
    ///
    /// # Errors
    /// The payload cannot be read, which it must be to take another form, or the charset lacks a character of it.
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
            return plain(writing.json(value.to_string()));
        }
        self.envelope(limits)?;
        let attachments = self.attachments.as_deref();
        let envelope = self.envelope.as_deref().expect("built just above");
        let document = &envelope.document;
        let payload = envelope.payload();
        let is_binary =
            |payload| document.local(payload) == "binary" && document.namespace(payload) == PAYLOAD;
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
                let bytes = match node {
                    Some(node) => writing.xml(&written.document, node)?,
                    None => Bytes::new(),
                };
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
                writing.json(json)
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
                writing.text(document.string_value(payload).into_owned())?
            }
            (Format::Text, Some(payload)) => writing.text(own_text(document, payload))?,
            (Format::Binary, Some(payload)) => writing.text(synapse_string(document, payload, true))?,
        };
        plain(bytes)
    }

    /// An envelope that was written of this payload without its attachments, in `charset`, and beside it those that it does not include.
    pub fn packed(
        &self,
        envelope: Bytes,
        version: SoapVersion,
        charset: &str,
        packing: Packing,
    ) -> (Bytes, String) {
        let parts = self.attachments.as_deref().map_or_else(Vec::new, |beside| beside.parts().to_vec());
        pack(envelope, Some(version), charset, packing, parts)
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
