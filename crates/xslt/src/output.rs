//! `xsl:output` (XSLT 1.0 section 16, XSLT 2.0 section 20), and its effect on the serialiser.

use std::collections::{BTreeMap, HashSet};
use xml::{Document, NodeId, NodeKind, Normalization, WriteOptions};

/// The serialization parameters. Those that no `xsl:output` gives are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputProperties {
    /// `xml`, `html`, `xhtml` or `text`; `None`: chosen by the result (section 16).
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
    /// `indent`; default yes for html and xhtml, no otherwise.
    pub indent: Option<bool>,
    /// `media-type`.
    pub media_type: Option<String>,
    /// `byte-order-mark` (XSLT 2.0): of UTF-8; UTF-16 always has one.
    pub byte_order_mark: Option<bool>,
    /// `escape-uri-attributes` (XSLT 2.0), of html and xhtml; default yes.
    pub escape_uri_attributes: Option<bool>,
    /// `include-content-type` (XSLT 2.0), of html and xhtml; default yes.
    pub include_content_type: Option<bool>,
    /// `normalization-form` (XSLT 2.0); default none.
    pub normalization: Option<Normalization>,
    /// `undeclare-prefixes` (XSLT 2.0), of xml 1.1. Namespaces of a result tree are in scope in the whole element, so there
    /// is nothing to undeclare.
    pub undeclare_prefixes: Option<bool>,
    /// `html-version` (XSLT 3.0), of html and xhtml.
    pub html_version: Option<String>,
    /// `suppress-indentation` (XSLT 3.0): elements (namespace, local name) in which no white space is added.
    pub suppress_indentation: Vec<(String, String)>,
    /// `item-separator` (XSLT 3.0): what stands between the items of the result.
    pub item_separator: Option<String>,
    /// `build-tree` (XSLT 3.0): whether the items become a document first; default no for json and adaptive, yes otherwise.
    pub build_tree: Option<bool>,
    /// `allow-duplicate-names` (XSLT 3.0), of json; default no.
    pub allow_duplicate_names: Option<bool>,
    /// `json-node-output-method` (XSLT 3.0): how json writes nodes; default xml.
    pub json_node_method: Option<String>,
    /// The character map (`xsl:character-map`): characters and their replacements.
    pub character_map: BTreeMap<char, String>,
}

/// The output methods.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OutputMethod {
    /// Well-formed XML.
    Xml,
    /// HTML 4.
    Html,
    /// XML that browsers of HTML read (XSLT 2.0).
    Xhtml,
    /// The text nodes only.
    Text,
    /// JSON: maps, arrays and atomic values (XSLT 3.0).
    Json,
    /// Any value, for people (XSLT 3.0).
    Adaptive,
}

/// The properties with a single value; the others are lists of names. After the [`FIRST`] of them come those of XSLT 2.0.
pub(crate) const PROPERTIES: [&str; 19] = [
    "method",
    "version",
    "encoding",
    "omit-xml-declaration",
    "standalone",
    "doctype-public",
    "doctype-system",
    "indent",
    "media-type",
    // Of XSLT 2.0:
    "byte-order-mark",
    "escape-uri-attributes",
    "include-content-type",
    "normalization-form",
    "undeclare-prefixes",
    // Of XSLT 3.0:
    "html-version",
    "item-separator",
    "build-tree",
    "allow-duplicate-names",
    "json-node-output-method",
];

/// Whether one of [`PROPERTIES`] is of XSLT 3.0.
pub(crate) fn is_third(property: &str) -> bool {
    PROPERTIES[FIRST + SECOND..].contains(&property)
}

/// Whether one of [`PROPERTIES`] is `yes` or `no`.
pub(crate) fn is_yes_or_no(property: &str) -> bool {
    matches!(
        property,
        "omit-xml-declaration"
            | "standalone"
            | "indent"
            | "byte-order-mark"
            | "escape-uri-attributes"
            | "include-content-type"
            | "undeclare-prefixes"
            | "build-tree"
            | "allow-duplicate-names"
    )
}

/// The namespace of a `parameter-document`.
const PARAMETERS: &str = "http://www.w3.org/2010/xslt-xquery-serialization";

/// How many of [`PROPERTIES`] XSLT 1.0 has, and how many 2.0 adds.
const FIRST: usize = 9;
const SECOND: usize = 5;

/// The [`PROPERTIES`] that XSLT 1.0 has, and those that 2.0 adds.
pub(crate) fn properties_by_version() -> (&'static [&'static str], &'static [&'static str]) {
    PROPERTIES[..FIRST + SECOND].split_at(FIRST)
}

/// Why a value of a property is refused.
pub(crate) struct WrongValue {
    /// Its own error code; none: that of a wrong value, which depends on when it is known.
    code: Option<&'static str>,
    pub message: String,
}

impl WrongValue {
    fn of(message: String) -> WrongValue {
        WrongValue { code: None, message }
    }

    /// The message with its code, by default `code`.
    pub fn coded(&self, code: &str) -> String {
        format!("{}: {}", self.code.unwrap_or(code), self.message)
    }
}

impl OutputProperties {
    /// Sets one of [`PROPERTIES`]; `version2`: by the rules of XSLT 2.0. Errors: the expected values.
    pub(crate) fn set(&mut self, name: &str, value: &str, version2: bool) -> Result<(), WrongValue> {
        let flag = || match value.trim() {
            "yes" => Ok(true),
            "no" => Ok(false),
            "true" | "1" if version2 => Ok(true),
            "false" | "0" if version2 => Ok(false),
            _ => Err(WrongValue::of(format!("{name}=\"{value}\" must be yes or no"))),
        };
        let text = || Some(value.to_owned());
        match name {
            "method" => {
                self.method = Some(match value.trim() {
                    "xml" => OutputMethod::Xml,
                    "html" => OutputMethod::Html,
                    "xhtml" if version2 => OutputMethod::Xhtml,
                    // Of later versions: a processor of 1.0 uses XML.
                    "xhtml" => OutputMethod::Xml,
                    "text" => OutputMethod::Text,
                    "json" if version2 => OutputMethod::Json,
                    "adaptive" if version2 => OutputMethod::Adaptive,
                    // An extension method, which is not implemented.
                    other if other.contains(':') => return Ok(()),
                    other => {
                        let message = format!("there is no output method \"{other}\"");
                        return Err(WrongValue { code: version2.then_some("XTSE1570"), message });
                    }
                });
            }
            "version" => self.version = text(),
            "encoding" => self.encoding = text(),
            "omit-xml-declaration" => self.omit_xml_declaration = Some(flag()?),
            "standalone" if version2 && value.trim() == "omit" => self.standalone = None,
            "standalone" => self.standalone = Some(flag()?),
            // From 2.0 on an empty one means none.
            "doctype-public" => self.doctype_public = text().filter(|t| !version2 || !t.is_empty()),
            "doctype-system" => self.doctype_system = text().filter(|t| !version2 || !t.is_empty()),
            "html-version" => match value.trim().parse::<f64>() {
                Ok(_) => self.html_version = text(),
                Err(_) => return Err(WrongValue::of(format!("html-version=\"{value}\" is not a number"))),
            },
            "indent" => self.indent = Some(flag()?),
            "media-type" => self.media_type = text(),
            "byte-order-mark" => self.byte_order_mark = Some(flag()?),
            "escape-uri-attributes" => self.escape_uri_attributes = Some(flag()?),
            "include-content-type" => self.include_content_type = Some(flag()?),
            "normalization-form" => {
                self.normalization = match value.trim() {
                    "none" => None,
                    "NFC" => Some(Normalization::Nfc),
                    "NFD" => Some(Normalization::Nfd),
                    "NFKC" => Some(Normalization::Nfkc),
                    "NFKD" => Some(Normalization::Nfkd),
                    other => {
                        let message = format!(
                            "there is no normalization-form \"{other}\": NFC, NFD, NFKC, NFKD or none"
                        );
                        return Err(WrongValue { code: Some("SESU0011"), message });
                    }
                };
            }
            "undeclare-prefixes" => self.undeclare_prefixes = Some(flag()?),
            "item-separator" => self.item_separator = text().filter(|t| t != "#absent"),
            "build-tree" => self.build_tree = Some(flag()?),
            "allow-duplicate-names" => self.allow_duplicate_names = Some(flag()?),
            "json-node-output-method" => match value.trim() {
                method @ ("xml" | "html" | "xhtml" | "text") => {
                    self.json_node_method = Some(method.to_owned())
                }
                other => {
                    let message = format!("json-node-output-method=\"{other}\" is xml, html, xhtml or text");
                    return Err(WrongValue::of(message));
                }
            },
            other => return Err(WrongValue::of(format!("there is no output property \"{other}\""))),
        }
        Ok(())
    }

    /// Sets what a `parameter-document` gives (XSLT and XQuery Serialization 3.1, section 3.1).
    pub(crate) fn set_by_document(&mut self, doc: &Document) -> Result<(), String> {
        let top =
            doc.document_element().filter(|n| doc.is_element(*n, PARAMETERS, "serialization-parameters"));
        let Some(top) = top else {
            let wanted = "an element serialization-parameters in the namespace";
            return Err(format!("SEPM0017: a parameter-document is {wanted} {PARAMETERS}"));
        };
        let elements = move |parent: NodeId| {
            doc.children(parent).filter(move |n: &NodeId| doc.kind(*n) == NodeKind::Element)
        };
        let mut seen = HashSet::new();
        for child in elements(top) {
            let name = doc.local(child);
            if !seen.insert((doc.namespace(child), name)) {
                return Err(format!("SEPM0019: the parameter {name} is given twice"));
            }
            match doc.namespace(child) {
                PARAMETERS => {}
                "" => return Err(format!("SEPM0017: the parameter {name} is in no namespace")),
                _ => continue,
            }
            if name == "use-character-maps" {
                for entry in elements(child) {
                    let from = doc.attribute(entry, "", "character").unwrap_or_default();
                    let to = doc.attribute(entry, "", "map-string");
                    let mut chars = from.chars();
                    let (Some(character), None, Some(to)) = (chars.next(), chars.next(), to) else {
                        return Err("SEPM0017: character-map has one character, and a map-string".into());
                    };
                    if self.character_map.insert(character, to.to_owned()).is_some() {
                        return Err(format!("SEPM0018: the character \"{from}\" is mapped twice"));
                    }
                }
                continue;
            }
            let Some(value) = doc.attribute(child, "", "value") else {
                return Err(format!("SEPM0017: the parameter {name} has no value"));
            };
            if matches!(name, "cdata-section-elements" | "suppress-indentation") {
                for qname in value.split_ascii_whitespace() {
                    let (prefix, local) = qname.split_once(':').unwrap_or(("", qname));
                    let namespace = doc.lookup_prefix(child, prefix).unwrap_or_default();
                    let list = match name {
                        "suppress-indentation" => &mut self.suppress_indentation,
                        _ => &mut self.cdata_section_elements,
                    };
                    list.push((namespace.to_owned(), local.to_owned()));
                }
                continue;
            }
            if !PROPERTIES.contains(&name) {
                return Err(format!("SEPM0017: there is no parameter {name}"));
            }
            self.set(name, value, true).map_err(|error| error.coded("SEPM0016"))?;
        }
        Ok(())
    }

    /// Whether the items of the result are collected before they are written.
    pub(crate) fn collects(&self) -> bool {
        self.item_separator.is_some()
            || matches!(self.method, Some(OutputMethod::Json | OutputMethod::Adaptive))
    }

    /// Whether it is HTML of version 5 or later: `html-version`, else of html the `version`; that is 5 by default from XSLT 3.0 on.
    fn is_html5(&self, method: OutputMethod, version3: bool) -> bool {
        let version = match method {
            OutputMethod::Html => self.html_version.as_ref().or(self.version.as_ref()),
            OutputMethod::Xhtml => self.html_version.as_ref(),
            _ => None,
        };
        match version {
            Some(version) => version.trim().parse::<f64>().is_ok_and(|version| version >= 5.0),
            None => version3 && method == OutputMethod::Html,
        }
    }

    /// Checks for properties that contradict one another.
    pub(crate) fn contradiction(&self) -> Option<&'static str> {
        if self.encoding.as_deref().is_some_and(|label| xml::decode(Vec::new(), Some(label)).is_err()) {
            return Some("SESU0007: the encoding of xsl:output is not supported");
        }
        let xml = matches!(self.method, None | Some(OutputMethod::Xml | OutputMethod::Xhtml));
        if xml
            && self.undeclare_prefixes == Some(true)
            && self.version.as_deref().is_none_or(|v| v.trim() == "1.0")
        {
            return Some("SEPM0010: undeclare-prefixes=\"yes\" needs version=\"1.1\"");
        }
        if self.omit_xml_declaration == Some(true)
            && self.standalone.is_some()
            && self.method == Some(OutputMethod::Xml)
        {
            return Some("SEPM0009: omit-xml-declaration=\"yes\" leaves no place for standalone");
        }
        None
    }
}

/// The options of each method, since the method may depend on the result.
#[derive(Debug, Default)]
pub(crate) struct Writing {
    method: Option<OutputMethod>,
    xml: WriteOptions,
    html: WriteOptions,
    /// Of XSLT 2.0.
    xhtml: Option<WriteOptions>,
    text: WriteOptions,
}

/// The options of the method, if it is fixed.
#[derive(Clone, Copy)]
pub(crate) enum Method<'a> {
    Fixed(&'a WriteOptions),
    /// The first element decides.
    ByResult {
        xml: &'a WriteOptions,
        html: &'a WriteOptions,
        xhtml: Option<&'a WriteOptions>,
    },
}

impl Writing {
    pub fn new(output: &OutputProperties, version2: bool, version3: bool) -> Writing {
        let options = |method| options(output, method, version2, version3);
        Writing {
            method: output.method,
            xml: options(OutputMethod::Xml),
            html: options(OutputMethod::Html),
            xhtml: version2.then(|| options(OutputMethod::Xhtml)),
            text: options(OutputMethod::Text),
        }
    }

    pub fn method(&self) -> Method<'_> {
        Method::Fixed(match (self.method, &self.xhtml) {
            (Some(OutputMethod::Xml), _) => &self.xml,
            (Some(OutputMethod::Html), _) => &self.html,
            (Some(OutputMethod::Xhtml), xhtml) => xhtml.as_ref().unwrap_or(&self.xml),
            // (Json and adaptive are written elsewhere.)
            (Some(OutputMethod::Text | OutputMethod::Json | OutputMethod::Adaptive), _) => &self.text,
            (None, xhtml) => {
                return Method::ByResult { xml: &self.xml, html: &self.html, xhtml: xhtml.as_ref() };
            }
        })
    }
}

impl<'a> Method<'a> {
    /// XML, where the result would decide.
    pub fn or_xml(self) -> Method<'a> {
        match self {
            Method::ByResult { xml, .. } => Method::Fixed(xml),
            fixed => fixed,
        }
    }

    /// The options if the first element has this name (XSLT 1.0 section 16, XSLT 2.0 section 20); `None`: there is none,
    /// or text comes before it.
    pub fn by(self, first: Option<(&str, &str)>) -> &'a WriteOptions {
        match (self, first) {
            (Method::Fixed(options), _) => options,
            (Method::ByResult { html, .. }, Some(("", local))) if local.eq_ignore_ascii_case("html") => html,
            (Method::ByResult { xhtml: Some(xhtml), .. }, Some((XHTML, "html"))) => xhtml,
            (Method::ByResult { xml, .. }, _) => xml,
        }
    }
}

const XHTML: &str = "http://www.w3.org/1999/xhtml";

fn options(output: &OutputProperties, method: OutputMethod, version2: bool, version3: bool) -> WriteOptions {
    WriteOptions {
        method: match method {
            OutputMethod::Xml => xml::Method::Xml,
            OutputMethod::Html => xml::Method::Html,
            OutputMethod::Xhtml => xml::Method::Xhtml,
            OutputMethod::Text | OutputMethod::Json | OutputMethod::Adaptive => xml::Method::Text,
        },
        declaration: !output.omit_xml_declaration.unwrap_or(false),
        version: match (&output.version, method) {
            (Some(version), OutputMethod::Xml) => version.clone(),
            _ => "1.0".to_owned(),
        },
        // An unknown encoding is neither used nor declared.
        encoding: output.encoding.clone().filter(|label| xml::decode(Vec::new(), Some(label)).is_ok()),
        standalone: output.standalone,
        indent: output.indent.unwrap_or(matches!(method, OutputMethod::Html | OutputMethod::Xhtml)),
        doctype_public: output.doctype_public.clone(),
        doctype_system: output.doctype_system.clone(),
        cdata_elements: output.cdata_section_elements.clone(),
        media_type: output.media_type.clone(),
        html5: version2 && output.is_html5(method, version3),
        suppress_indentation: output.suppress_indentation.clone(),
        byte_order_mark: output.byte_order_mark.unwrap_or(false),
        escape_uri_attributes: output.escape_uri_attributes.unwrap_or(true),
        include_content_type: output.include_content_type.unwrap_or(true),
        normalization: output.normalization,
        character_map: output.character_map.clone(),
        version2,
        ..WriteOptions::default()
    }
}
