//! `xsl:output` (XSLT 1.0 section 16).

/// What `xsl:output` asks of the serialiser. Attributes that no `xsl:output` gives are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputProperties {
    /// `xml`, `html` or `text`; `None`: by the result (section 16).
    pub method: Option<OutputMethod>,
    /// Version of the output method.
    pub version: Option<String>,
    /// Encoding; default UTF-8.
    pub encoding: Option<String>,
    /// `omit-xml-declaration`.
    pub omit_xml_declaration: Option<bool>,
    /// `standalone`.
    pub standalone: Option<bool>,
    /// `doctype-public`.
    pub doctype_public: Option<String>,
    /// `doctype-system`.
    pub doctype_system: Option<String>,
    /// Elements (namespace, local name) whose text is written in CDATA sections.
    pub cdata_section_elements: Vec<(String, String)>,
    /// `indent`; default yes for html, no otherwise.
    pub indent: Option<bool>,
    /// `media-type`.
    pub media_type: Option<String>,
    /// Characters and the text that is written for them as it is (`xsl:character-map`).
    pub character_map: Vec<(char, String)>,
}

/// The output methods.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OutputMethod {
    /// Well-formed XML.
    Xml,
    /// HTML 4.
    Html,
    /// The text nodes alone.
    Text,
}
