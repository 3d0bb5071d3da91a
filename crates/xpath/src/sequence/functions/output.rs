//! Serialization of values (XSLT and XQuery Serialization 3.1): parameters, and the methods xml, xhtml, html, text, json and adaptive.

use super::Call;
use super::json::push_escaped;
use crate::atomic::{Atomic, NameValue};
use crate::eval::{Fault, spend};
use crate::items::Map;
use crate::sequence::bounded;
use crate::value::{Item, Node, Value};
use std::collections::{BTreeMap, HashSet};
use xml::{Document, NodeId, NodeKind, WriteOptions};

/// The namespace of the parameters as an element.
const OUTPUT: &str = "http://www.w3.org/2010/xslt-xquery-serialization";

/// The serialization parameters.
#[derive(Clone)]
pub(super) struct Params {
    method: String,
    /// The method for nodes within JSON.
    node_method: String,
    options: WriteOptions,
    item_separator: Option<String>,
    allow_duplicates: bool,
    html_version: Option<f64>,
    /// The last character of the encoding, if it is ASCII or ISO-8859-1: those behind it are referred to.
    last: Option<char>,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            method: "xml".to_owned(),
            node_method: "xml".to_owned(),
            options: WriteOptions {
                // Of a map it is the default; with other parameters each processor chooses, and texts that go on need none.
                declaration: false,
                inherited_namespaces: true,
                ..WriteOptions::default()
            },
            item_separator: None,
            allow_duplicates: false,
            html_version: None,
            last: None,
        }
    }
}

impl Params {
    pub fn of_map(c: &Call<'_, '_>, map: &Map) -> Result<Params, Fault> {
        let mut params = Params::default();
        for (key, value) in map.entries() {
            let Atomic::String(name) = key else { continue };
            if value.is_empty() {
                continue;
            }
            let wrong = |wanted: &str| c.fail("XPTY0004", format!("the parameter {name} must be {wanted}"));
            match &**name {
                "use-character-maps" => {
                    let Value::Atomic(Atomic::Map(map)) = value else { return Err(wrong("a map")) };
                    for (from, to) in map.entries() {
                        let to = to.single_atomic().filter(|to| !to.is_function());
                        let Some(to) = to else { return Err(wrong("a map of strings")) };
                        params.map_character(c, &from.to_text(), &to.to_text())?;
                    }
                }
                "cdata-section-elements" | "suppress-indentation" => {
                    for item in value.items() {
                        let Item::Atomic(Atomic::Name(qname)) = item else { return Err(wrong("QNames")) };
                        if &**name == "cdata-section-elements" {
                            params
                                .options
                                .cdata_elements
                                .push((qname.namespace.to_string(), qname.local.to_string()));
                        }
                    }
                }
                "allow-duplicate-names"
                | "byte-order-mark"
                | "escape-uri-attributes"
                | "include-content-type"
                | "indent"
                | "omit-xml-declaration"
                | "standalone"
                | "undeclare-prefixes" => {
                    let given = match value {
                        Value::Boolean(given) => *given,
                        Value::NodeSet(_) | Value::Atomic(Atomic::Untyped(_)) => {
                            let text = c.eval.value_string(value)?;
                            match text.trim() {
                                "true" | "1" => true,
                                "false" | "0" => false,
                                _ => return Err(wrong("a boolean")),
                            }
                        }
                        _ => return Err(wrong("a boolean")),
                    };
                    params.set(c, name, if given { "yes" } else { "no" })?;
                }
                "html-version" | "version" => {
                    let text = c.eval.value_string(value)?;
                    params.set(c, name, &text)?;
                }
                "doctype-public"
                | "doctype-system"
                | "encoding"
                | "item-separator"
                | "json-node-output-method"
                | "media-type"
                | "method"
                | "normalization-form" => {
                    let text = match value.single_atomic() {
                        Some(Atomic::String(text) | Atomic::Untyped(text) | Atomic::Uri(text)) => text,
                        Some(Atomic::Name(name)) if name.namespace.is_empty() => name.local.as_ref().into(),
                        _ => return Err(wrong("a string")),
                    };
                    params.set(c, name, &text)?;
                }
                // Parameters of other processors.
                _ => {}
            }
        }
        params.checked(c)
    }

    pub fn of_element(c: &Call<'_, '_>, node: Node) -> Result<Params, Fault> {
        let doc = c.eval.doc(node.doc)?;
        let mut params = Params::default();
        let top =
            if doc.kind(node.id) == NodeKind::Document { doc.document_element() } else { Some(node.id) };
        let Some(top) = top.filter(|n| doc.is_element(*n, OUTPUT, "serialization-parameters")) else {
            return Err(
                c.fail("XPTY0004", "the parameters of serialize() are an element serialization-parameters")
            );
        };
        let wrong = |message: String| c.fail("SEPM0017", message);
        let mut seen = HashSet::new();
        for child in doc.children(top).filter(|n| doc.kind(*n) == NodeKind::Element) {
            let name = doc.local(child);
            if !seen.insert((doc.namespace(child).to_owned(), name.to_owned())) {
                return Err(c.fail("SEPM0019", format!("the parameter {name} is given twice")));
            }
            if doc.namespace(child) != OUTPUT {
                if doc.namespace(child).is_empty() {
                    return Err(wrong(format!("the parameter {name} is in no namespace")));
                }
                continue;
            }
            if name == "use-character-maps" {
                let mut mapped = HashSet::new();
                for entry in doc.children(child).filter(|n| doc.kind(*n) == NodeKind::Element) {
                    let (from, to) =
                        (doc.attribute(entry, "", "character"), doc.attribute(entry, "", "map-string"));
                    let (Some(from), Some(to)) = (from, to) else {
                        return Err(wrong("character-map needs character and map-string".into()));
                    };
                    if !mapped.insert(from.to_owned()) {
                        return Err(c.fail("SEPM0018", format!("the character {from} is mapped twice")));
                    }
                    params.map_character(c, from, to)?;
                }
                continue;
            }
            let Some(value) = doc.attribute(child, "", "value") else {
                return Err(wrong(format!("the parameter {name} has no value")));
            };
            if name == "cdata-section-elements" {
                for qname in value.split_ascii_whitespace() {
                    let (prefix, local) = qname.split_once(':').unwrap_or(("", qname));
                    let namespace = doc.lookup_prefix(child, prefix).unwrap_or("").to_owned();
                    params.options.cdata_elements.push((namespace, local.to_owned()));
                }
                continue;
            }
            params.set(c, name, value)?;
        }
        params.checked(c)
    }

    fn map_character(&mut self, c: &Call<'_, '_>, from: &str, to: &str) -> Result<(), Fault> {
        let mut chars = from.chars();
        match (chars.next(), chars.next()) {
            (Some(from), None) => {
                self.options.character_map.insert(from, to.to_owned());
                Ok(())
            }
            _ => Err(c.fail("SEPM0016", format!("\"{from}\" is not a single character"))),
        }
    }

    fn set(&mut self, c: &Call<'_, '_>, name: &str, value: &str) -> Result<(), Fault> {
        let wrong = || c.fail("SEPM0016", format!("the parameter {name} cannot be \"{value}\""));
        let flag = || match value.trim() {
            "yes" | "true" | "1" => Ok(true),
            "no" | "false" | "0" => Ok(false),
            _ => Err(wrong()),
        };
        let options = &mut self.options;
        match name {
            "method" | "json-node-output-method" => {
                let methods = ["xml", "xhtml", "html", "text", "json", "adaptive"];
                let is_method =
                    methods.contains(&value) && (name == "method" || !matches!(value, "json" | "adaptive"));
                if !is_method {
                    return Err(wrong());
                }
                *(if name == "method" { &mut self.method } else { &mut self.node_method }) = value.to_owned();
            }
            "allow-duplicate-names" => self.allow_duplicates = flag()?,
            "byte-order-mark" => options.byte_order_mark = flag()?,
            "escape-uri-attributes" => options.escape_uri_attributes = flag()?,
            "include-content-type" => options.include_content_type = flag()?,
            "indent" => options.indent = flag()?,
            "omit-xml-declaration" => options.declaration = !flag()?,
            "standalone" => options.standalone = if value.trim() == "omit" { None } else { Some(flag()?) },
            "undeclare-prefixes" => {
                flag()?;
            }
            "doctype-public" => options.doctype_public = Some(value.to_owned()),
            "doctype-system" => options.doctype_system = Some(value.to_owned()),
            "encoding" => options.encoding = Some(value.to_owned()),
            "item-separator" => self.item_separator = Some(value.to_owned()),
            "media-type" => options.media_type = Some(value.to_owned()),
            "version" => options.version = value.to_owned(),
            "normalization-form" => {
                options.normalization = match value {
                    "none" => None,
                    "NFC" => Some(xml::Normalization::Nfc),
                    "NFD" => Some(xml::Normalization::Nfd),
                    "NFKC" => Some(xml::Normalization::Nfkc),
                    "NFKD" => Some(xml::Normalization::Nfkd),
                    _ => return Err(wrong()),
                }
            }
            // (The same rule as `html-version` of `xsl:output`.)
            "html-version" => {
                let version: f64 = value.trim().parse().map_err(|_| wrong())?;
                self.html_version = Some(version);
            }
            "suppress-indentation" => {}
            _ => return Err(c.fail("SEPM0017", format!("there is no parameter {name}"))),
        }
        Ok(())
    }

    fn checked(mut self, c: &Call<'_, '_>) -> Result<Params, Fault> {
        self.options.method = match &*self.method {
            "html" => xml::Method::Html,
            "xhtml" => xml::Method::Xhtml,
            "text" => xml::Method::Text,
            _ => xml::Method::Xml,
        };
        if !self.options.declaration && self.options.standalone.is_some() && self.method == "xml" {
            let message = "without the declaration there is no standalone";
            return Err(c.fail("SEPM0009", message));
        }
        if self.options.method == xml::Method::Html && self.options.version == "1.0" {
            "4.0".clone_into(&mut self.options.version);
        }
        if let (Some(version), xml::Method::Html | xml::Method::Xhtml) =
            (self.html_version, self.options.method)
        {
            self.options.html5 = version >= 5.0;
        }
        // A string has no encoding; a small one decides which characters are in it.
        self.last = self.options.encoding.as_deref().and_then(last_character);
        if self.last.is_none() {
            self.options.encoding = None;
        }
        self.options.byte_order_mark = false;
        Ok(self)
    }
}

/// Serializes a value.
pub(super) fn written(c: &Call<'_, '_>, value: &Value, params: &Params) -> Result<String, Fault> {
    match &*params.method {
        "json" => {
            let mut out = String::new();
            json(c, value, params, 0, &mut out)?;
            Ok(match params.last {
                Some(last) => json_up_to(last, &out),
                None => out,
            })
        }
        "adaptive" => {
            let separator = params.item_separator.as_deref().unwrap_or("\n");
            let mut out = String::new();
            for (at, item) in value.items().enumerate() {
                if at > 0 {
                    out.push_str(separator);
                }
                not_too_long(c, &out)?;
                adaptive(c, &item, params, &mut out)?;
            }
            Ok(out)
        }
        _ => markup(c, value, params),
    }
}

fn node_text(c: &Call<'_, '_>, node: Node, options: &WriteOptions) -> Result<String, Fault> {
    let doc = c.eval.doc(node.doc)?;
    spend(doc.node_count().min(64))?;
    bytes_written(c, doc, node.id, options)
}

/// The text of a node. Its encoding is UTF-8, or has one byte for each of the first characters.
fn bytes_written(
    c: &Call<'_, '_>,
    doc: &Document,
    node: NodeId,
    options: &WriteOptions,
) -> Result<String, Fault> {
    let mut out = Vec::new();
    xml::write_encoded(doc, node, options, &mut out).map_err(|error| {
        let code = match error {
            xml::WriteError::Character { .. } => "SERE0008",
            xml::WriteError::NotADocument => "SEPM0004",
            xml::WriteError::NoDeclaration => "SEPM0009",
            xml::WriteError::Version => "SESU0013",
            xml::WriteError::Control(_) => "SERE0014",
        };
        let message = error.to_string();
        c.fail(code, message.split_once(": ").map_or(message.as_str(), |(_, why)| why))
    })?;
    Ok(match options.encoding {
        Some(_) => out.into_iter().map(char::from).collect(),
        None => String::from_utf8_lossy(&out).into_owned(),
    })
}

/// The last character of an encoding of one byte for each, by its label.
fn last_character(label: &str) -> Option<char> {
    match label.trim().to_ascii_lowercase().as_str() {
        "us-ascii" | "ascii" => Some('\u{7F}'),
        "iso-8859-1" | "latin1" => Some('\u{FF}'),
        _ => None,
    }
}

/// JSON with escapes for the characters behind `last`, which are in strings only.
fn json_up_to(last: char, json: &str) -> String {
    let mut out = String::with_capacity(json.len() + 16);
    let mut units = [0; 2];
    for c in json.chars() {
        if c <= last {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            out.push_str(&format!("\\u{unit:04X}"));
        }
    }
    out
}

fn alone(c: &Call<'_, '_>, kind: &str) -> Fault {
    c.fail("SENR0001", format!("{kind} cannot be written by itself"))
}

/// Sequence normalization (section 2), then the tree.
fn markup(c: &Call<'_, '_>, value: &Value, params: &Params) -> Result<String, Fault> {
    let wrong = |kind: &str| Err(alone(c, kind));
    if let (None, [node]) =
        (&params.item_separator, value.items().map(|i| i.node()).collect::<Vec<_>>().as_slice())
        && let Some(node) = node
        && !node.is_namespace()
        && matches!(c.eval.doc(node.doc)?.kind(node.id), NodeKind::Document | NodeKind::Element)
    {
        return node_text(c, *node, &params.options);
    }
    let mut items = Vec::new();
    flat(c, value, &mut items)?;
    let mut doc = Document::new();
    let (mut text, mut separators) = (false, 0);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0
            && let Some(separator) = &params.item_separator
        {
            doc.append_text(Document::ROOT, separator);
            text = false;
            separators += separator.len();
            crate::eval::grown(separators, c.span)?;
        }
        match item {
            Item::Atomic(atom) if atom.is_function() => return wrong("a function"),
            Item::Atomic(atom) => {
                if text {
                    doc.append_text(Document::ROOT, " ");
                }
                doc.append_text(Document::ROOT, &atom.to_text());
                text = true;
            }
            Item::Node(node) => {
                text = false;
                let from = c.eval.doc(node.doc)?;
                match from.kind(node.id) {
                    _ if node.is_namespace() => return wrong("a namespace node"),
                    NodeKind::Attribute => return wrong("an attribute"),
                    NodeKind::Document => {
                        for child in from.children(node.id) {
                            doc.copy_from(Document::ROOT, from, child);
                        }
                    }
                    _ => {
                        doc.copy_from(Document::ROOT, from, node.id);
                    }
                }
            }
        }
    }
    spend(doc.node_count())?;
    bytes_written(c, &doc, Document::ROOT, &params.options)
}

fn flat(c: &Call<'_, '_>, value: &Value, items: &mut Vec<Item>) -> Result<(), Fault> {
    for item in value.items() {
        spend(1)?;
        bounded(items.len(), c.span)?;
        match item {
            Item::Atomic(Atomic::Array(array)) => {
                for member in array.members() {
                    flat(c, member, items)?;
                }
            }
            item => items.push(item),
        }
    }
    Ok(())
}

fn json_text(text: &str, params: &Params, out: &mut String) {
    if params.options.character_map.is_empty() {
        return push_escaped(text, out);
    }
    let map: &BTreeMap<char, String> = &params.options.character_map;
    let mut buffer = [0; 4];
    for c in text.chars() {
        match map.get(&c) {
            Some(mapped) => out.push_str(mapped),
            None => push_escaped(c.encode_utf8(&mut buffer), out),
        }
    }
}

/// Shared values are short in memory and long as text.
fn not_too_long(c: &Call<'_, '_>, out: &str) -> Result<(), Fault> {
    match out.len() > meter::MAX_STRING {
        true => {
            Err(c.fail("FOER0000", format!("a text of more than {} bytes would be made", meter::MAX_STRING)))
        }
        false => Ok(()),
    }
}

/// Serializes a value as JSON.
pub(super) fn json(
    c: &Call<'_, '_>,
    value: &Value,
    params: &Params,
    depth: u32,
    out: &mut String,
) -> Result<(), Fault> {
    spend(2)?;
    not_too_long(c, out)?;
    let line = |depth: u32, out: &mut String| {
        if params.options.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth as usize * 2));
        }
    };
    let quoted = |text: &str, out: &mut String| {
        out.push('"');
        json_text(text, params, out);
        out.push('"');
    };
    match (value.len(), value.item(0)) {
        (0, _) => out.push_str("null"),
        (1, Some(Item::Node(node))) => {
            let doc = c.eval.doc(node.doc)?;
            let text = match doc.kind(node.id) {
                _ if node.is_namespace() => return Err(alone(c, "a namespace node")),
                NodeKind::Attribute => return Err(alone(c, "an attribute")),
                NodeKind::Text => c.eval.node_string(node)?.into_owned(),
                _ => {
                    let method = match &*params.node_method {
                        "html" => xml::Method::Html,
                        "xhtml" => xml::Method::Xhtml,
                        "text" => xml::Method::Text,
                        _ => xml::Method::Xml,
                    };
                    let options =
                        WriteOptions { method, inherited_namespaces: true, ..WriteOptions::default() };
                    node_text(c, node, &options)?
                }
            };
            quoted(&text, out);
        }
        (1, Some(Item::Atomic(Atomic::Map(map)))) => {
            out.push('{');
            let mut names = HashSet::new();
            for (at, (key, value)) in map.entries().into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                let name = key.to_text();
                if !params.allow_duplicates && !names.insert(name.to_string()) {
                    return Err(c.fail("SERE0022", format!("the object has two members \"{name}\"")));
                }
                line(depth + 1, out);
                quoted(&name, out);
                out.push(':');
                if params.options.indent {
                    out.push(' ');
                }
                json(c, value, params, depth + 1, out)?;
            }
            if !map.is_empty() {
                line(depth, out);
            }
            out.push('}');
        }
        (1, Some(Item::Atomic(Atomic::Array(array)))) => {
            out.push('[');
            for (at, member) in array.members().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                line(depth + 1, out);
                json(c, member, params, depth + 1, out)?;
            }
            if !array.is_empty() {
                line(depth, out);
            }
            out.push(']');
        }
        (1, Some(Item::Atomic(atom))) => match &atom {
            Atomic::Function(_) => return Err(c.fail("SERE0021", "a function cannot be written as JSON")),
            Atomic::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
            number if number.is_numeric() => {
                if !number.to_double().is_finite() {
                    let message = format!("{} cannot be written as JSON", number.to_text());
                    return Err(c.fail("SERE0020", message));
                }
                match number {
                    // Whole numbers as other programs write them, up to where JavaScript goes over to exponents.
                    Atomic::Double(n) if n.fract() == 0.0 && *n != 0.0 && n.abs() < 1e21 => {
                        out.push_str(&crate::number::format(*n));
                    }
                    _ => out.push_str(&number.to_text()),
                }
            }
            other => quoted(&other.to_text(), out),
        },
        _ => return Err(c.fail("SERE0023", "a sequence of several items cannot be written as JSON")),
    }
    Ok(())
}

fn name_text(name: &NameValue) -> String {
    format!("Q{{{}}}{}", name.namespace, name.local)
}

/// A double by the picture `0.0##########################e0`.
fn scientific(n: f64) -> String {
    if n.is_nan() {
        return "NaN".to_owned();
    }
    if n.is_infinite() {
        return if n > 0.0 { "INF" } else { "-INF" }.to_owned();
    }
    let text = format!("{n:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0e{exponent}"),
        _ => text,
    }
}

/// An item by the method adaptive (section 10).
fn adaptive(c: &Call<'_, '_>, item: &Item, params: &Params, out: &mut String) -> Result<(), Fault> {
    spend(2)?;
    not_too_long(c, out)?;
    match item {
        Item::Node(node) => {
            let doc = c.eval.doc(node.doc)?;
            if node.is_namespace() {
                let (prefix, uri) = crate::eval::namespace_at(doc, *node).unwrap_or_default();
                let name = if prefix.is_empty() { "xmlns".to_owned() } else { format!("xmlns:{prefix}") };
                out.push_str(&format!("{name}=\"{uri}\""));
            } else if doc.kind(node.id) == NodeKind::Attribute {
                let mut value = Vec::new();
                xml::escape::push_attribute(&mut value, doc.text(node.id));
                out.push_str(&format!("{}=\"{}\"", doc.qname(node.id), String::from_utf8_lossy(&value)));
            } else {
                let options = WriteOptions { declaration: false, ..params.options.clone() };
                out.push_str(&node_text(c, *node, &options)?);
            }
        }
        Item::Atomic(Atomic::Map(map)) => {
            out.push_str("map{");
            for (at, (key, value)) in map.entries().into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                adaptive(c, &Item::Atomic(key.clone()), params, out)?;
                out.push(':');
                adaptive_value(c, value, params, out)?;
            }
            out.push('}');
        }
        Item::Atomic(Atomic::Array(array)) => {
            out.push('[');
            for (at, member) in array.members().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                adaptive_value(c, member, params, out)?;
            }
            out.push(']');
        }
        Item::Atomic(Atomic::Function(function)) => match &function.name {
            Some(name) => {
                let prefix = super::usual_prefix(&name.namespace);
                match prefix {
                    "" => out.push_str(&format!("{}#{}", name_text(name), function.arity)),
                    prefix => out.push_str(&format!("{prefix}:{}#{}", name.local, function.arity)),
                }
            }
            None => out.push_str(&format!("(anonymous-function)#{}", function.arity)),
        },
        Item::Atomic(atom) => match atom {
            Atomic::Boolean(value) => out.push_str(if *value { "true()" } else { "false()" }),
            Atomic::String(text) | Atomic::Untyped(text) | Atomic::Uri(text) => {
                out.push('"');
                for c in text.chars() {
                    match params.options.character_map.get(&c) {
                        Some(mapped) => out.push_str(&mapped.replace('"', "\"\"")),
                        None if c == '"' => out.push_str("\"\""),
                        None => out.push(c),
                    }
                }
                out.push('"');
            }
            Atomic::Integer(_) | Atomic::Large(_) | Atomic::Decimal(_) => out.push_str(&atom.to_text()),
            Atomic::Double(n) => out.push_str(&scientific(*n)),
            Atomic::Name(name) => out.push_str(&name_text(name)),
            other => {
                let ty = crate::atomic::AtomicType::of(other.kind()).name;
                out.push_str(&format!("xs:{ty}(\"{}\")", other.to_text()));
            }
        },
    }
    Ok(())
}

/// A value within a map or an array: several items in parentheses.
fn adaptive_value(c: &Call<'_, '_>, value: &Value, params: &Params, out: &mut String) -> Result<(), Fault> {
    if value.len() == 1
        && let Some(item) = value.item(0)
    {
        return adaptive(c, &item, params, out);
    }
    out.push('(');
    for (at, item) in value.items().enumerate() {
        if at > 0 {
            out.push(',');
        }
        adaptive(c, &item, params, out)?;
    }
    out.push(')');
    Ok(())
}
