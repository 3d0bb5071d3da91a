//! JSON and its XML view, both ways, by the mapping of WSO2's JSON builder and formatter.
//!
//! To XML: the root is `jsonObject`, `jsonArray` or `jsonValue`; members become elements, arrays repeated
//! elements (`jsonElement` where they have no name), `"@a"` attributes, `"$"` text. To JSON: namespaces are
//! dropped, adjacent repeated siblings become arrays, texts that look like JSON literals become literals.

mod switches;

pub use switches::{SWITCHES, Switch};

use crate::regex::{Pattern, Search};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;
use xml::{Document, NodeId, NodeKind};

/// Deepest nesting of a JSON text that gets an XML view.
const MAX_DEPTH: usize = 128;
/// Prefix of element names whose member name starts with a digit.
const DIGIT_PREFIX: &str = "_JsonReader_PD_";
/// Prefix of element names whose member name starts with `$`.
const DOLLAR_PREFIX: &str = "_JsonReader_PS_";

/// Prefix of a character that cannot stand in an element name: `_JsonReader_32_` is a space.
const CHARACTER_PREFIX: &str = "_JsonReader_";
/// Namespace of `nil`.
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// About how many bytes a value takes.
pub fn size_of(value: &Value) -> usize {
    std::mem::size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size_of).sum(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| name.len() + 64 + size_of(value)).sum()
            }
            _ => 0,
        }
}

/// The switches of the mapping (`synapse.commons.json.…`), by their WSO2 names.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// `synapse.commons.json.preserve.namespace`: prefixes stay in member names. Default false.
    pub preserve_namespace: bool,
    /// `synapse.commons.json.output.enableNSDeclarations`: declarations become `@xmlns` members where prefixes stay.
    /// Default false.
    pub namespace_declarations: bool,
    /// `synapse.commons.json.output.namespaceSepChar`: between prefix and name. Default `_`.
    pub namespace_separator: char,
    /// `synapse.commons.json.output.autoPrimitive`: texts that look like literals become literals. Default true.
    pub auto_primitive: bool,
    /// `synapse.commons.json.output.disableAutoPrimitive.regex`: a whole text that matches stays a string.
    pub string_pattern: Option<Pattern>,
    /// `…disableAutoPrimitive.customReplaceRegex` and `…customReplaceSequence`: what matches is replaced, and the
    /// text is a string.
    pub string_mark: Option<(Search, String)>,
    /// `synapse.commons.json.output.jsonoutAutoArray`: adjacent siblings of one name become an array. Default true.
    pub auto_array: bool,
    /// `synapse.commons.json.output.jsonoutMultiplePI`: `<?xml-multiple name?>` makes an array. Default true.
    pub reads_multiple: bool,
    /// `synapse.json.to.xml.processing.instruction.enabled` or `…xmloutMultiplePI`: arrays get `<?xml-multiple name?>`
    /// in their XML view. Default false.
    pub writes_multiple: bool,
    /// `synapse.commons.enableXmlNilReadWrite`: null is `xsi:nil="true"`, both ways. Default false.
    pub nil: bool,
    /// `synapse.commons.enableXmlNullForEmptyElement`: an empty element is null, else `""`. Default true.
    pub empty_is_null: bool,
    /// `synapse.commons.json.buildValidNCNames`: characters that cannot stand in names of elements and attributes are
    /// escaped. Default true: WSO2's false keeps such names, and what is written from them is not XML.
    pub valid_names: bool,
    /// `PRESERVE_SPACES` of the message: a text of white space that is all of an element is kept. Default false.
    pub preserve_spaces: bool,
}

impl Default for Mapping {
    fn default() -> Mapping {
        Mapping {
            preserve_namespace: false,
            namespace_declarations: false,
            namespace_separator: '_',
            auto_primitive: true,
            string_pattern: None,
            string_mark: None,
            auto_array: true,
            reads_multiple: true,
            writes_multiple: false,
            nil: false,
            empty_is_null: true,
            valid_names: true,
            preserve_spaces: false,
        }
    }
}

/// Appends the XML view of `value` under `parent` and returns its root element.
pub fn to_xml(value: &Value, document: &mut Document, parent: NodeId) -> NodeId {
    Mapping::default().to_xml(value, document, parent)
}

/// The JSON text of an element: `{"name": …}`, or the value itself for the roots that [`to_xml`] makes.
pub fn from_xml(document: &Document, element: NodeId) -> String {
    Mapping::default().from_xml(document, element)
}

impl Mapping {
    /// See [`to_xml`].
    pub fn to_xml(&self, value: &Value, document: &mut Document, parent: NodeId) -> NodeId {
        let name = match value {
            Value::Object(_) => "jsonObject",
            Value::Array(_) => "jsonArray",
            _ => "jsonValue",
        };
        let root = document.append_element(parent, "", "", name);
        match value {
            Value::Object(_) | Value::Array(_) => content(self, value, document, root, 0),
            scalar => {
                document.append_text(root, &json_text(scalar));
            }
        }
        root
    }

    /// See [`from_xml`].
    pub fn from_xml(&self, document: &Document, element: NodeId) -> String {
        let mut writer = Writer { mapping: self, document, out: String::new() };
        match document.local(element) {
            "jsonObject" => writer.object(element, 0),
            "jsonArray" => writer.array(element, 0),
            "jsonElement" => writer.element(element, 0),
            "jsonValue" => writer.out.push_str(&document.string_value(element)),
            _ => {
                writer.out.push('{');
                writer.name(element);
                writer.element(element, 0);
                writer.out.push('}');
            }
        }
        writer.out
    }
}

/// The content of one value inside its element.
fn content(mapping: &Mapping, value: &Value, document: &mut Document, element: NodeId, depth: usize) {
    if depth > MAX_DEPTH {
        return; // serde_json refuses deeper texts already
    }
    match value {
        Value::Null if mapping.nil => {
            document.set_attribute(element, "xsi", XSI, "nil", "true");
        }
        Value::Null => {}
        Value::String(text) => {
            if !text.is_empty() {
                document.append_text(element, text);
            }
        }
        Value::Bool(_) | Value::Number(_) => {
            document.append_text(element, &value.to_string());
        }
        Value::Array(items) => {
            for item in items {
                let child = document.append_element(element, "", "", "jsonElement");
                nested(mapping, item, document, child, depth + 1);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                if let Some(attribute) = name.strip_prefix('@').filter(|rest| !rest.is_empty())
                    && !member.is_object()
                    && !member.is_array()
                {
                    mapping.set_attribute(document, element, attribute, &scalar_text(member));
                } else if name == "$" && !member.is_object() && !member.is_array() {
                    document.append_text(element, &scalar_text(member));
                } else if let Value::Array(items) = member {
                    let name = mapping.element_name(name);
                    if mapping.writes_multiple {
                        document.append_pi(element, "xml-multiple", &name);
                    }
                    for item in items {
                        let child = document.append_element(element, "", "", &name);
                        nested(mapping, item, document, child, depth + 1);
                    }
                } else {
                    let child = document.append_element(element, "", "", &mapping.element_name(name));
                    content(mapping, member, document, child, depth + 1);
                }
            }
        }
    }
}

/// An item of an array: an array inside an array keeps a level of its own.
fn nested(mapping: &Mapping, item: &Value, document: &mut Document, element: NodeId, depth: usize) {
    let element =
        if item.is_array() { document.append_element(element, "", "", "jsonArray") } else { element };
    content(mapping, item, document, element, depth);
}

/// The JSON text of a value, for an element: what neither JSON escapes nor XML allows is escaped.
fn json_text(value: &Value) -> String {
    value.to_string().replace('\u{FFFE}', "\\ufffe").replace('\u{FFFF}', "\\uffff")
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

impl Mapping {
    /// The name of the element of a member.
    pub(crate) fn element_name(&self, name: &str) -> String {
        let name = match name.chars().next() {
            // No element is without a name.
            None => "_".to_owned(),
            Some(first) if first.is_ascii_digit() => format!("{DIGIT_PREFIX}{name}"),
            Some('$') if name.len() > 1 => format!("{DOLLAR_PREFIX}{}", &name[1..]),
            _ => name.to_owned(),
        };
        if self.valid_names { valid_name(&name) } else { name }
    }

    fn set_attribute(&self, document: &mut Document, element: NodeId, name: &str, value: &str) {
        // As a declaration, which an `@xmlns` is once it is written, these values would be refused.
        let reserved = name == "xmlns" && [xml::XML_NS, xml::XMLNS_NS].contains(&value);
        let name = match self.valid_names {
            true if reserved => "_JsonReader_120_mlns",
            true => &valid_name(name),
            false => name,
        };
        document.set_attribute(element, "", "", name, value);
    }
}

/// A name in which every character that no element name can have (a colon as well) is `_JsonReader_CODE_`.
pub fn valid_name(name: &str) -> String {
    let stands =
        |at: usize, c: char| c != ':' && if at == 0 { xml::is_name_start(c) } else { xml::is_name_char(c) };
    let mut out = String::with_capacity(name.len());
    for (at, character) in name.char_indices() {
        if stands(at, character) {
            out.push(character);
        } else {
            let _ = write!(out, "{CHARACTER_PREFIX}{}_", u32::from(character)); // to a String: cannot fail
        }
    }
    if out.is_empty() { "_".to_owned() } else { out }
}

/// The member name of an element name.
pub fn member_name(name: &str) -> Cow<'_, str> {
    let Some(at) = name.find(CHARACTER_PREFIX) else { return Cow::Borrowed(name) };
    if let Some(rest) = name.strip_prefix(DIGIT_PREFIX) {
        return Cow::Owned(member_name(rest).into_owned());
    }
    if let Some(rest) = name.strip_prefix(DOLLAR_PREFIX) {
        return Cow::Owned(format!("${}", member_name(rest)));
    }
    let mut out = name[..at].to_owned();
    let mut rest = &name[at..];
    while let Some(at) = rest.find(CHARACTER_PREFIX) {
        let tail = &rest[at + CHARACTER_PREFIX.len()..];
        let code = tail.split_once('_').and_then(|(code, behind)| {
            Some((code.parse().ok().and_then(char::from_u32)?, behind)).filter(|_| !code.starts_with('+'))
        });
        out.push_str(&rest[..at]);
        match code {
            Some((character, behind)) => {
                out.push(character);
                rest = behind;
            }
            None => {
                out.push_str(CHARACTER_PREFIX);
                rest = tail;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Writes the JSON of elements.
struct Writer<'a> {
    mapping: &'a Mapping,
    document: &'a Document,
    out: String,
}

impl<'a> Writer<'a> {
    fn elements(&self, of: NodeId) -> impl Iterator<Item = NodeId> + use<'a> {
        let document = self.document;
        document.children(of).filter(|&node| document.kind(node) == NodeKind::Element)
    }

    /// `"name":`
    fn name(&mut self, element: NodeId) {
        let name = member_name(self.document.local(element));
        match self.prefix(element) {
            Some(prefix) => {
                write_string(&format!("{prefix}{}{name}", self.mapping.namespace_separator), &mut self.out);
            }
            None => write_string(&name, &mut self.out),
        }
        self.out.push(':');
    }

    fn prefix(&self, node: NodeId) -> Option<&'a str> {
        let prefix = if self.mapping.preserve_namespace { self.document.prefix(node) } else { "" };
        Some(prefix).filter(|prefix| !prefix.is_empty())
    }

    fn is_nil(&self, element: NodeId) -> bool {
        self.mapping.nil
            && self.document.attribute(element, XSI, "nil").is_some_and(|nil| nil.trim() == "true")
    }

    fn declares(&self, element: NodeId) -> bool {
        self.mapping.preserve_namespace
            && self.mapping.namespace_declarations
            && self.document.namespace_declarations(element).next().is_some()
    }

    /// The value of one element.
    fn element(&mut self, element: NodeId, depth: usize) {
        let document = self.document;
        if self.is_nil(element) {
            return self.out.push_str("null");
        }
        let plain = document.attributes(element).next().is_none() && !self.declares(element);
        let mut elements = self.elements(element);
        let first = elements.next();
        if plain && let Some(first) = first {
            if document.local(first) == "jsonArray" && elements.next().is_none() {
                return self.array(first, depth + 1);
            }
            // Items without an array around them: several are an array, one stands for itself.
            if self.elements(element).all(|item| document.local(item) == "jsonElement") {
                let mut items = self.elements(element);
                return match (items.next(), items.next()) {
                    (Some(only), None) if depth < MAX_DEPTH * 4 => self.element(only, depth + 1),
                    _ => self.array(element, depth + 1),
                };
            }
        }
        if !plain || first.is_some() {
            return self.object(element, depth);
        }
        let text = document.string_value(element);
        let blank = text.trim().is_empty();
        if blank && (text.is_empty() || !self.mapping.preserve_spaces) {
            self.out.push_str(if self.mapping.empty_is_null { "null" } else { "\"\"" });
        } else {
            self.literal(&text);
        }
    }

    fn array(&mut self, array: NodeId, depth: usize) {
        self.out.push('[');
        let mut first = true;
        for item in self.elements(array) {
            if !std::mem::take(&mut first) {
                self.out.push(',');
            }
            self.element(item, depth + 1);
        }
        self.out.push(']');
    }

    fn object(&mut self, element: NodeId, depth: usize) {
        if depth > MAX_DEPTH * 4 {
            return self.out.push_str("null"); // the XML parser's own depth limit is lower
        }
        let document = self.document;
        self.out.push('{');
        let mut first = true;
        let mut comma = |out: &mut String| {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
        };
        if self.declares(element) {
            for (prefix, uri) in document.namespace_declarations(element) {
                comma(&mut self.out);
                let separator = self.mapping.namespace_separator;
                let name = if prefix.is_empty() {
                    "@xmlns".to_owned()
                } else {
                    format!("@xmlns{separator}{prefix}")
                };
                write_string(&name, &mut self.out);
                self.out.push(':');
                write_string(uri, &mut self.out);
            }
        }
        for attribute in document.attributes(element) {
            comma(&mut self.out);
            let local = member_name(document.local(attribute));
            let name = match self.prefix(attribute) {
                Some(prefix) => format!("@{prefix}{}{local}", self.mapping.namespace_separator),
                None => format!("@{local}"),
            };
            write_string(&name, &mut self.out);
            self.out.push(':');
            write_string(document.text(attribute), &mut self.out);
        }
        let mut text = String::new();
        let mut forced_array: Option<String> = None;
        let mut next = document.first_child(element);
        while let Some(node) = next {
            next = document.next_sibling(node);
            match document.kind(node) {
                NodeKind::Text => text.push_str(document.text(node)),
                NodeKind::ProcessingInstruction
                    if document.local(node) == "xml-multiple" && self.mapping.reads_multiple =>
                {
                    // Nothing of that name follows: the array was empty.
                    if let Some(empty) = forced_array.replace(document.text(node).trim().to_owned()) {
                        comma(&mut self.out);
                        self.empty_array(&empty);
                    }
                }
                NodeKind::Element => {
                    let name = document.local(node);
                    let forced = match forced_array.take() {
                        Some(forced) if forced == name || forced.is_empty() => true,
                        Some(empty) => {
                            comma(&mut self.out);
                            self.empty_array(&empty);
                            false
                        }
                        None => false,
                    };
                    comma(&mut self.out);
                    self.name(node);
                    let mut run = vec![node];
                    let more = self.mapping.auto_array || forced;
                    while let Some(sibling) = next_element_of_run(document, next.filter(|_| more), name) {
                        run.push(sibling);
                        next = document.next_sibling(sibling);
                    }
                    if run.len() > 1 || forced {
                        self.out.push('[');
                        for (index, &item) in run.iter().enumerate() {
                            if index > 0 {
                                self.out.push(',');
                            }
                            self.element(item, depth + 1);
                        }
                        self.out.push(']');
                    } else {
                        self.element(node, depth + 1);
                    }
                }
                _ => {}
            }
        }
        if let Some(empty) = forced_array {
            comma(&mut self.out);
            self.empty_array(&empty);
        }
        if !text.trim().is_empty() {
            comma(&mut self.out);
            self.out.push_str("\"$\":");
            self.literal(&text);
        }
        self.out.push('}');
    }

    /// An `xml-multiple` that nothing follows.
    fn empty_array(&mut self, name: &str) {
        write_string(&member_name(name), &mut self.out);
        self.out.push_str(":[]");
    }

    /// A text that is exactly a JSON literal is written as that literal, digits unchanged; any other as a string.
    fn literal(&mut self, text: &str) {
        if let Some((pattern, replacement)) = &self.mapping.string_mark
            && meter::unbounded(|| pattern.is_match(text)) == Ok(true)
        {
            let unmarked = meter::unbounded(|| pattern.replace_all(text, replacement));
            return write_string(unmarked.as_deref().unwrap_or(text), &mut self.out);
        }
        let is_literal = self.mapping.auto_primitive
            && (matches!(text, "true" | "false" | "null") || is_json_number(text))
            && !self
                .mapping
                .string_pattern
                .as_ref()
                .is_some_and(|pattern| meter::unbounded(|| pattern.matches(text)) == Ok(true));
        if is_literal { self.out.push_str(text) } else { write_string(text, &mut self.out) }
    }
}

/// The next element, if it continues a run of siblings called `name`; white space and comments between do not end it.
fn next_element_of_run(document: &Document, mut from: Option<NodeId>, name: &str) -> Option<NodeId> {
    while let Some(node) = from {
        match document.kind(node) {
            NodeKind::Element => return (document.local(node) == name).then_some(node),
            NodeKind::Text if !document.text(node).trim().is_empty() => return None,
            _ => from = document.next_sibling(node),
        }
    }
    None
}

/// Writes a JSON string with its quotes.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    escape(text, out);
    out.push('"');
}

/// Escapes a text for the inside of a JSON string.
pub fn escape(text: &str, out: &mut String) {
    let mut run = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[run..at]);
        if short.is_empty() {
            let _ = write!(out, "\\u{byte:04x}"); // writing to a String cannot fail
        } else {
            out.push_str(short);
        }
        run = at + 1;
    }
    out.push_str(&text[run..]);
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`
pub fn is_json_number(text: &str) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut rest = text.as_bytes();
    rest = rest.strip_prefix(b"-").unwrap_or(rest);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(json: &str) -> String {
        let mut document = Document::new();
        let root = to_xml(&serde_json::from_str(json).unwrap(), &mut document, Document::ROOT);
        let mut out = Vec::new();
        xml::write(&document, root, &xml::WriteOptions::default(), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn back(xml: &str) -> String {
        let document = Document::parse(xml.as_bytes().to_vec(), &xml::ParseOptions::default()).unwrap();
        from_xml(&document, document.document_element().unwrap())
    }

    #[test]
    fn json_gets_the_xml_view_of_the_reference() {
        for (json, xml) in [
            (r#"{"a":1,"b":"x"}"#, "<jsonObject><a>1</a><b>x</b></jsonObject>"),
            ("[1,2]", "<jsonArray><jsonElement>1</jsonElement><jsonElement>2</jsonElement></jsonArray>"),
            ("\"x\"", "<jsonValue>\"x\"</jsonValue>"),
            (r#"{"k":null,"e":"","o":{}}"#, "<jsonObject><k/><e/><o/></jsonObject>"),
            (r#"{"k":[1,{"z":2}],"n":[]}"#, "<jsonObject><k>1</k><k><z>2</z></k></jsonObject>"),
            (
                "[[1]]",
                "<jsonArray><jsonElement><jsonArray><jsonElement>1</jsonElement></jsonArray></jsonElement></jsonArray>",
            ),
            (
                r#"{"@c":"x","a":[1],"b":[],"1d":"y"}"#,
                r#"<jsonObject c="x"><a>1</a><_JsonReader_PD_1d>y</_JsonReader_PD_1d></jsonObject>"#,
            ),
            (r#"{"p":{"z":{"q":1},"@a":"v"}}"#, r#"<jsonObject><p a="v"><z><q>1</q></z></p></jsonObject>"#),
            (
                r#"{"t":{"@u":1,"$":"text"},"$x":1.50}"#,
                r#"<jsonObject><t u="1">text</t><_JsonReader_PS_x>1.50</_JsonReader_PS_x></jsonObject>"#,
            ),
        ] {
            assert_eq!(view(json), xml, "{json}");
        }
    }

    #[test]
    fn xml_becomes_the_json_of_the_reference() {
        for (xml, json) in [
            (
                r#"<p n="M"><price>500.0</price><t>1</t><t>2</t><d/></p>"#,
                r#"{"p":{"@n":"M","price":500.0,"t":[1,2],"d":null}}"#,
            ),
            (
                r#"<pizza-topping category="NONVEG">Steak</pizza-topping>"#,
                r#"{"pizza-topping":{"@category":"NONVEG","$":"Steak"}}"#,
            ),
            (
                "<jsonObject><a>007</a><b>true</b><c>-0.5e3</c></jsonObject>",
                r#"{"a":"007","b":true,"c":-0.5e3}"#,
            ),
            ("<jsonArray><jsonElement>1</jsonElement></jsonArray>", "[1]"),
            (
                "<jsonObject><k><jsonArray><jsonElement>1</jsonElement></jsonArray></k></jsonObject>",
                r#"{"k":[1]}"#,
            ),
            (
                "<e><jsonElement>1</jsonElement><jsonElement><z>2</z></jsonElement></e>",
                r#"{"e":[1,{"z":2}]}"#,
            ),
            ("<e><jsonElement>1</jsonElement></e>", r#"{"e":1}"#),
            ("<jsonValue>\"x\"</jsonValue>", "\"x\""),
            ("<n:a xmlns:n='urn:n'><n:b>x</n:b></n:a>", r#"{"a":{"b":"x"}}"#),
            ("<a>\n <?xml-multiple b?><b>1</b>\n</a>", r#"{"a":{"b":[1]}}"#),
            ("<a>hello <b>1</b></a>", r#"{"a":{"b":1,"$":"hello "}}"#),
            ("<a>q\"\\&#9;</a>", r#"{"a":"q\"\\\t"}"#),
        ] {
            assert_eq!(back(xml), json, "{xml}");
        }
    }

    #[test]
    fn the_switches_of_the_mapping() {
        let default = Mapping::default;
        let xsi = "xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'";
        for (mapping, xml, json) in [
            (
                Mapping { preserve_namespace: true, ..default() },
                "<n:a xmlns:n='urn:n' n:x='1'><n:b/><c/></n:a>",
                r#"{"n_a":{"@n_x":"1","n_b":null,"c":null}}"#,
            ),
            (
                Mapping {
                    preserve_namespace: true,
                    namespace_declarations: true,
                    namespace_separator: ':',
                    ..default()
                },
                "<n:a xmlns:n='urn:n' xmlns='urn:d'>1</n:a>",
                r#"{"n:a":{"@xmlns:n":"urn:n","@xmlns":"urn:d","$":1}}"#,
            ),
            (
                Mapping { auto_primitive: false, ..default() },
                "<a><b>1</b><c>true</c></a>",
                r#"{"a":{"b":"1","c":"true"}}"#,
            ),
            (
                Mapping {
                    string_pattern: Some(
                        Pattern::compile("^-?(0|[1-9][0-9]*)(\\.[0-9]+)?[eE][+-]?[0-9]+$").unwrap(),
                    ),
                    ..default()
                },
                "<a><b>1e5</b><c>15</c></a>",
                r#"{"a":{"b":"1e5","c":15}}"#,
            ),
            (
                Mapping { string_mark: Some((Search::compile("@@").unwrap(), String::new())), ..default() },
                "<a><b>@@1</b><c>15</c></a>",
                r#"{"a":{"b":"1","c":15}}"#,
            ),
            (
                Mapping { auto_array: false, ..default() },
                "<a><b>1</b><c/><?xml-multiple d?><d>1</d><d>2</d></a>",
                r#"{"a":{"b":1,"c":null,"d":[1,2]}}"#,
            ),
            (
                Mapping { reads_multiple: false, ..default() },
                "<a><?xml-multiple b?><b>1</b></a>",
                r#"{"a":{"b":1}}"#,
            ),
            (default(), &format!("<a {xsi}><b xsi:nil='true'/></a>"), r#"{"a":{"b":{"@nil":"true"}}}"#),
            (
                Mapping { nil: true, ..default() },
                &format!("<a {xsi}><b xsi:nil='true'/></a>"),
                r#"{"a":{"b":null}}"#,
            ),
            (
                Mapping { empty_is_null: false, ..default() },
                "<a><b/><c> </c></a>",
                r#"{"a":{"b":"","c":""}}"#,
            ),
            (
                Mapping { preserve_spaces: true, ..default() },
                "<a><b> </b> <c/></a>",
                r#"{"a":{"b":" ","c":null}}"#,
            ),
            (
                default(),
                "<jsonObject><a_JsonReader_32_b>1</a_JsonReader_32_b><_JsonReader_x>2</_JsonReader_x></jsonObject>",
                r#"{"a b":1,"_JsonReader_x":2}"#,
            ),
            (
                default(),
                "<a><?xml-multiple b?><c/><?xml-multiple d?></a>",
                r#"{"a":{"b":[],"c":null,"d":[]}}"#,
            ),
        ] {
            let document = Document::parse(xml.as_bytes().to_vec(), &xml::ParseOptions::default()).unwrap();
            assert_eq!(mapping.from_xml(&document, document.document_element().unwrap()), json, "{xml}");
        }
    }

    /// Found by fuzzing: what is built can be written and read again.
    #[test]
    fn what_xml_cannot_say_is_replaced() {
        for (json, xml) in [
            (r#"{"a":"x\by\n"}"#, "<jsonObject><a>x\u{FFFD}y\n</a></jsonObject>"),
            ("\"a\u{FFFE}\\uffff\"", r#"<jsonValue>"a\ufffe\uffff"</jsonValue>"#),
            (r#"{"":{}}"#, "<jsonObject><_/></jsonObject>"),
            (r#"{"a":{"":[1,2]}}"#, "<jsonObject><a><_>1</_><_>2</_></a></jsonObject>"),
            (
                r#"{"a b":1,"@c:d":"e","²":2}"#,
                r#"<jsonObject c_JsonReader_58_d="e"><a_JsonReader_32_b>1</a_JsonReader_32_b><_JsonReader_178_>2</_JsonReader_178_></jsonObject>"#,
            ),
            (
                r#"{"@xmlns":"http://www.w3.org/2000/xmlns/"}"#,
                r#"<jsonObject _JsonReader_120_mlns="http://www.w3.org/2000/xmlns/"/>"#,
            ),
        ] {
            let mut document = Document::new();
            let value = serde_json::from_str(json).unwrap();
            let element = to_xml(&value, &mut document, Document::ROOT);
            assert_eq!(xml::to_string(&document, element), xml);
        }
    }

    #[test]
    fn what_the_switches_write_comes_back() {
        let mapping = Mapping { writes_multiple: true, nil: true, ..Mapping::default() };
        for json in [
            r#"{"a":[1],"b":[],"c":[[]],"d":null,"e f":{"@y z":"z","$x":1},"1/2":[{"é":"","-":2}]}"#,
            r#"{"a":[1,2,null],"b":[]}"#,
        ] {
            let mut document = Document::new();
            let value: Value = serde_json::from_str(json).unwrap();
            let root = mapping.to_xml(&value, &mut document, Document::ROOT);
            let mut out = Vec::new();
            xml::write(&document, root, &xml::WriteOptions::default(), &mut out);
            let read = Document::parse(out, &xml::ParseOptions::default()).unwrap();
            let back = mapping.from_xml(&read, read.document_element().unwrap());
            assert_eq!(back.replace(r#""é":null"#, r#""é":"""#), json);
        }
    }

    #[test]
    fn numbers_are_those_of_json() {
        for (text, is) in [
            ("0", true),
            ("-1", true),
            ("1.0", true),
            ("1e5", true),
            ("1E+5", true),
            ("4.00", true),
            ("", false),
            ("-", false),
            ("01", false),
            ("+1", false),
            (" 1", false),
            ("1.", false),
            (".5", false),
            ("1e", false),
            ("NaN", false),
        ] {
            assert_eq!(is_json_number(text), is, "{text}");
        }
    }
}
