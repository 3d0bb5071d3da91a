//! Writing without a tree: a [`Serializer`] takes events and appends bytes.
//!
//! Four output methods (XSLT 1.0, 16; XSLT 2.0 and XQuery 1.0 Serialization): XML, HTML, XHTML and text. The serializer repairs namespaces: whatever names it is
//! given, it declares the prefixes that it writes.

mod encode;
mod error;
mod escape;
mod html;
#[cfg(test)]
mod tests;
mod xml;

use std::collections::BTreeMap;

pub(crate) use encode::replace_lacking;
pub use error::WriteError;
pub(crate) use escape::{HEXADECIMAL, push_attribute_with, push_text_with};
pub use escape::{push_attribute, push_attribute_controlled, push_text, push_text_controlled};
pub use xml::Serializer;
pub(crate) use xml::{push_comment, push_pi};

/// The output methods.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// XML 1.0.
    #[default]
    Xml,
    /// HTML 4 (XSLT 1.0, 16.2).
    Html,
    /// XML that browsers of HTML read (XSLT 2.0 and XQuery 1.0 Serialization, 6).
    Xhtml,
    /// Only the text (XSLT 1.0, 16.3).
    Text,
}

/// The normalization forms of Unicode (UAX 15).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // their names say all
pub enum Normalization {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

/// Serialization parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// The output method. Default XML.
    pub method: Method,
    /// Whether the XML declaration is written. Default `false`.
    pub declaration: bool,
    /// The `version` of the XML declaration. Default `1.0`.
    pub version: String,
    /// The output encoding; characters of text and attribute values that it does not have become character references, others are an
    /// error ([`WriteError`]). Default UTF-8. Not known: UTF-8.
    pub encoding: Option<String>,
    /// The `standalone` of the XML declaration. Default: not written.
    pub standalone: Option<bool>,
    /// Whether white space may be added. Default `false`.
    pub indent: bool,
    /// Columns per level when indenting. Default 2.
    pub indent_width: usize,
    /// Public identifier of the document type declaration.
    pub doctype_public: Option<String>,
    /// System identifier of the document type declaration, which is written when this is given (HTML: or the public
    /// identifier).
    pub doctype_system: Option<String>,
    /// Elements (namespace URI, local name) whose text is written as CDATA sections.
    pub cdata_elements: Vec<(String, String)>,
    /// HTML and XHTML: whether `head` gets a `meta` element with the encoding, as its first child, in place of an existing
    /// one. Default `true`.
    pub include_content_type: bool,
    /// HTML and XHTML: as version 5 has them (XSLT and XQuery Serialization 3.1, 6 and 7). Default `false`.
    pub html5: bool,
    /// Elements (namespace URI, local name) in which no white space is added.
    pub suppress_indentation: Vec<(String, String)>,
    /// HTML and XHTML: the media type that `meta` element names. Default `text/html`.
    pub media_type: Option<String>,
    /// HTML and XHTML: whether characters beyond ASCII are escaped in attributes that hold URIs. Default `true`.
    pub escape_uri_attributes: bool,
    /// UTF-8: whether a byte order mark comes first (UTF-16 always has one). Default `false`.
    pub byte_order_mark: bool,
    /// The Unicode normalization of text and attribute values. Default: none.
    pub normalization: Option<Normalization>,
    /// The character map: characters of text and attribute values, and their replacements (XSLT 2.0, 20.1); not in CDATA
    /// sections and URIs that are escaped.
    pub character_map: BTreeMap<char, String>,
    /// Whether the rules count that XSLT 1.0 does not have (Serialization 3.1): NEL, U+2028 and control characters as references in XML,
    /// and the errors of [`WriteError`] that are not about the encoding. Default `false`.
    pub version2: bool,
    /// Writing a subtree: declare every namespace it inherits, not only those that names in it use (for qualified
    /// names in values). Default `false`.
    pub inherited_namespaces: bool,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            method: Method::Xml,
            declaration: false,
            version: String::from("1.0"),
            encoding: None,
            standalone: None,
            indent: false,
            indent_width: 2,
            doctype_public: None,
            doctype_system: None,
            cdata_elements: Vec::new(),
            include_content_type: true,
            html5: false,
            suppress_indentation: Vec::new(),
            media_type: None,
            escape_uri_attributes: true,
            byte_order_mark: false,
            normalization: None,
            character_map: BTreeMap::new(),
            version2: false,
            inherited_namespaces: false,
        }
    }
}

impl WriteOptions {
    /// Whether it is plain XML in UTF-8, with at most a declaration: then no serializer is needed.
    pub fn is_plain(&self) -> bool {
        self.method == Method::Xml
            && !self.indent
            && !self.byte_order_mark
            && self.doctype_system.is_none()
            && self.cdata_elements.is_empty()
            && self.normalization.is_none()
            && self.character_map.is_empty()
            && !(self.version2 && (self.standalone.is_some() || self.version != "1.0"))
            && self.encoding.as_deref().is_none_or(|e| e.eq_ignore_ascii_case("utf-8"))
    }
}

/// Writes documents and subtrees with one set of options: [`crate::write`] as an object.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// The options.
    pub options: WriteOptions,
}

impl Writer {
    /// A writer with these options.
    pub fn new(options: WriteOptions) -> Writer {
        Writer { options }
    }

    /// Appends `node` and its content to `out`. Errors: as [`crate::write_encoded`].
    pub fn write(
        &self,
        doc: &crate::Document,
        node: crate::NodeId,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        crate::write_encoded(doc, node, &self.options, out)
    }
}
