//! Envelopes with attachments: `multipart/related` packages of MTOM (XOP) and SOAP with attachments.
//!
//! The root part is the envelope. What it refers to by `xop:Include` is read into the tree as the base64 text that it
//! stands for, so that every expression sees the content; when the message is packed again, those texts that no step has
//! changed leave as the parts they came from. All other parts go along with the envelope, whatever becomes of it.

use crate::charset::for_reading;
use crate::envelope::{Envelope, SoapVersion};
use crate::form;
use crate::media::{Kind, MediaType, XOP};
use crate::multipart::{self, Part};
use crate::payload::PayloadError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use encoding_rs::Encoding;
use xml::{Document, NodeId, NodeKind};

/// Namespace of `Include`.
const XOP_INCLUDE: &str = "http://www.w3.org/2004/08/xop/include";

/// How an envelope and its attachments are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The envelope alone.
    None,
    /// An XOP package: what came as parts of one leaves so.
    Mtom,
    /// SOAP with attachments: the envelope whole, the parts behind it.
    Swa,
}

/// The parts beside an envelope.
#[derive(Clone, Debug)]
pub struct Attachments {
    /// `Content-Type` of the package as it arrived; empty: the message did not arrive as one.
    content_type: Box<str>,
    /// The body has been taken apart.
    split: bool,
    /// Parts that the envelope does not include.
    parts: Vec<Part>,
    /// Text nodes of the envelope, and the parts they came from.
    included: Vec<(NodeId, Part)>,
}

/// The root part.
pub(crate) struct Root {
    pub content: Bytes,
    /// SOAP 1.1, SOAP 1.2 or plain XML.
    pub kind: Kind,
    pub charset: Option<&'static Encoding>,
}

impl Attachments {
    /// Those of a package that has not been read.
    pub fn new(content_type: &str) -> Attachments {
        Attachments {
            content_type: content_type.into(),
            split: false,
            parts: Vec::new(),
            included: Vec::new(),
        }
    }

    /// `Content-Type` of the package.
    pub fn content_type(&self) -> &str {
        &self.content_type
    }

    /// Whether there is something that would be lost if only the envelope went on.
    pub fn are_there(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Takes the body apart.
    pub(crate) fn split(&mut self, body: &Bytes) -> Result<Root, PayloadError> {
        let content_type = MediaType::parse(&self.content_type);
        let mut parts = multipart::parse(body, multipart::boundary(&self.content_type)?)?;
        if parts.is_empty() {
            return Err(PayloadError::Malformed { message: "the multipart body has no part".to_owned() });
        }
        let start = content_type.parameter("start").map(|id| id.trim_matches(['<', '>']));
        let root = start.and_then(|start| parts.iter().position(|part| part.id() == Some(start)));
        let root = parts.remove(root.unwrap_or(0));
        let media_type = MediaType::parse(root.content_type());
        let kind = match media_type.kind() {
            Kind::Soap12 => Kind::Soap12,
            // The root of an XOP package says in `type` what it would be alone.
            _ if media_type.essence.eq_ignore_ascii_case(XOP) => {
                match media_type.parameter("type").map(|name| Kind::of(MediaType::parse(name).essence)) {
                    Some(kind @ (Kind::Soap11 | Kind::Soap12 | Kind::Xml)) => kind,
                    _ => content_type.root_kind(),
                }
            }
            Kind::Soap11 => Kind::Soap11,
            Kind::Xml => Kind::Xml,
            _ => content_type.root_kind(),
        };
        let charset = media_type.charset().and_then(for_reading);
        let content = root.decoded()?;
        self.parts = parts;
        self.split = true;
        self.included.clear();
        Ok(Root { content, kind, charset })
    }

    /// Reads what the envelope includes into it, at most `limit` bytes of text.
    pub(crate) fn include(&mut self, document: &mut Document, limit: usize) -> Result<(), PayloadError> {
        let Some(name) = document.find_name(XOP_INCLUDE, "Include") else { return Ok(()) };
        let includes: Vec<NodeId> = document
            .descendants(Document::ROOT)
            .filter(|&node| document.name_id(node) == Some(name))
            .collect();
        let mut size = 0;
        let mut used = vec![false; self.parts.len()];
        for include in includes {
            if document.kind(include) != NodeKind::Element {
                continue;
            }
            let href = document.attribute(include, "", "href").unwrap_or("");
            let id = href.strip_prefix("cid:").map(form::decode_percent).unwrap_or_default();
            let Some(at) = self.parts.iter().position(|part| part.id() == Some(id.as_str())) else {
                let message = format!("the envelope includes `{href}`, which no part is");
                return Err(PayloadError::Malformed { message });
            };
            let content = self.parts[at].decoded()?;
            // One part may be included again and again.
            size += content.len().div_ceil(3) * 4;
            if size > limit {
                let message =
                    format!("the parts that the envelope includes are larger than {limit} bytes as text");
                return Err(PayloadError::TooLarge { message });
            }
            // In a place of its own, so that it does not grow onto text beside it.
            let holder = document.create_fragment();
            let text = document.append_text(holder, &STANDARD.encode(&content));
            if document.replace(include, text) {
                self.included.push((text, self.parts[at].clone()));
                used[at] = true;
            }
        }
        let mut used = used.into_iter();
        self.parts.retain(|_| !used.next().unwrap_or(false));
        Ok(())
    }

    /// Another envelope takes the place of the one that the texts were read into.
    pub(crate) fn envelope_replaced(&mut self, body: Option<&Bytes>) {
        if let Some(body) = body.filter(|_| !self.split && !self.content_type.is_empty()) {
            // Its parts stay; what cannot be taken apart has none.
            let _ = self.split(body);
        }
        self.split = true;
        self.included.clear();
    }

    /// Puts `Include` elements in the place of the texts that came from parts and are what they were, and returns those
    /// parts.
    pub(crate) fn extract(&self, envelope: &mut Envelope) -> Vec<Part> {
        let mut parts = Vec::new();
        let document = &mut envelope.document;
        for (node, part) in &self.included {
            let unchanged = document.kind(*node) == NodeKind::Text
                && document.is_attached(*node)
                && part.decoded().is_ok_and(|content| document.text(*node) == STANDARD.encode(content));
            let Some(id) = part.id().filter(|_| unchanged) else { continue };
            let include = document.create_element("xop", XOP_INCLUDE, "Include");
            document.declare_namespace(include, "xop", XOP_INCLUDE);
            document.set_attribute(include, "", "", "href", &format!("cid:{}", encoded(id)));
            if document.replace(*node, include)
                && !parts.iter().any(|extracted: &Part| extracted.id() == Some(id))
            {
                parts.push(part.clone());
            }
        }
        parts
    }

    /// Parts that the envelope does not include.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// All parts that the envelope came with, those it includes first.
    pub(crate) fn all(&self) -> Vec<Part> {
        self.included.iter().map(|(_, part)| part).chain(&self.parts).cloned().collect()
    }
}

/// The id of a part for a `cid:` URL.
fn encoded(id: &str) -> String {
    let mut out = String::new();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@!$&'()*+,;=:/".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Packs an envelope, as text in `charset`, with its parts. The second is the content type of the package.
pub(crate) fn pack(
    envelope: Bytes,
    root: Option<SoapVersion>,
    charset: &str,
    packing: Packing,
    parts: Vec<Part>,
) -> (Bytes, String) {
    let media_type = root.map_or("application/xml", SoapVersion::media_type);
    let id = format!("0.{}@busbar", multipart::unique());
    let (type_of_root, package) = match packing {
        Packing::Mtom => (
            format!("{XOP}; charset={charset}; type=\"{media_type}\""),
            format!("type=\"{XOP}\"; start=\"<{id}>\"; start-info=\"{media_type}\""),
        ),
        Packing::Swa | Packing::None => {
            (format!("{media_type}; charset={charset}"), format!("type=\"{media_type}\"; start=\"<{id}>\""))
        }
    };
    let mut root = Part::new(&type_of_root, envelope);
    root.headers.append("Content-Transfer-Encoding", "binary");
    root.headers.append("Content-ID", format!("<{id}>"));
    let mut with_root = Vec::with_capacity(parts.len() + 1);
    with_root.push(root);
    with_root.extend(parts);
    let boundary = multipart::new_boundary(&with_root);
    let content_type = format!("multipart/related; boundary=\"{boundary}\"; {package}");
    (Bytes::from(multipart::write(&with_root, &boundary)), content_type)
}
