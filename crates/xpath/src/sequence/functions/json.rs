//! JSON (F&O 3.1 section 17.5): text to maps and arrays or to XML, and from XML back to text.

use super::{Call, Entry, Looks, Outcome, row, text_value};
use crate::atomic::Atomic;
use crate::eval::{Fault, spend, spend_bytes};
use crate::items::Map;
use crate::sequence::apply::{map_value, new_array};
use crate::value::{Type, Value};
use std::collections::HashSet;
use std::fmt::Write as _;
use xml::{Document, NodeId, NodeKind};

/// The namespace of JSON as XML.
pub(super) const FN: &str = crate::sequence::compile::FUNCTIONS;
/// Deepest nesting of objects and arrays in a text.
const MAX_JSON: u32 = 256;

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("parse-json", 1, 2, Type::Any, Looks::Nowhere, |c| match c.text_option(0)? {
        None => Ok(Value::Empty),
        Some(text) => parse_json(c, &text, 1),
    }),
    row("json-doc", 1, 2, Type::Any, Looks::Nowhere, |c| match c.text_option(0)? {
        None => Ok(Value::Empty),
        Some(uri) => {
            let text = c.eval.cx.host.read_text(&uri, None).map_err(|e| {
                // The message may have a code of its own.
                match e.split_once(": ") {
                    Some(("FOUT1190" | "XTDE1190", message)) => c.fail("FOUT1190", message),
                    Some(("FOUT1170" | "XTDE1170", message)) => c.fail("FOUT1170", message),
                    _ => c.fail("FOUT1170", e),
                }
            })?;
            parse_json(c, &text, 1)
        }
    }),
    row("json-to-xml", 1, 2, Type::Any, Looks::Nowhere, |c| match c.text_option(0)? {
        None => Ok(Value::Empty),
        Some(text) => json_to_xml(c, &text),
    }),
    row("xml-to-json", 1, 2, Type::Any, Looks::Nowhere, xml_to_json),
];

// ---- the text ----

/// A JSON parser.
enum Json {
    Null,
    Boolean(bool),
    /// The text of a number.
    Number(String),
    /// The text of a string, escapes included.
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    liberal: bool,
}

/// A syntax error.
struct Wrong(String);

impl Reader<'_> {
    fn wrong<T>(&self, why: &str) -> Result<T, Wrong> {
        let line = self.text[..self.at].bytes().filter(|b| *b == b'\n').count() + 1;
        let before = self.text[..self.at].rfind('\n').map_or(self.at, |at| self.at - at - 1);
        Err(Wrong(format!("the JSON is wrong in line {line}, column {}: {why}", before + 1)))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn whole(mut self) -> Result<Json, Wrong> {
        if self.text.starts_with('\u{FEFF}') {
            self.at = 3;
        }
        let json = self.value(0)?;
        self.space();
        match self.peek() {
            None => Ok(json),
            Some(_) => self.wrong("something follows the value"),
        }
    }

    fn value(&mut self, depth: u32) -> Result<Json, Wrong> {
        if depth > MAX_JSON {
            return self.wrong(&format!("it is nested deeper than {MAX_JSON}"));
        }
        self.space();
        match self.peek() {
            Some(b'{') => {
                self.at += 1;
                let mut pairs = Vec::new();
                self.space();
                if self.peek() == Some(b'}') {
                    self.at += 1;
                    return Ok(Json::Object(pairs));
                }
                loop {
                    self.space();
                    if self.liberal && self.peek() == Some(b'}') && !pairs.is_empty() {
                        self.at += 1;
                        return Ok(Json::Object(pairs));
                    }
                    let key = self.string()?;
                    self.space();
                    if self.peek() != Some(b':') {
                        return self.wrong("a `:` is wanted behind a name");
                    }
                    self.at += 1;
                    pairs.push((key, self.value(depth + 1)?));
                    self.space();
                    match self.peek() {
                        Some(b',') => self.at += 1,
                        Some(b'}') => {
                            self.at += 1;
                            return Ok(Json::Object(pairs));
                        }
                        _ => return self.wrong("a `,` or `}` is wanted"),
                    }
                }
            }
            Some(b'[') => {
                self.at += 1;
                let mut members = Vec::new();
                self.space();
                if self.peek() == Some(b']') {
                    self.at += 1;
                    return Ok(Json::Array(members));
                }
                loop {
                    self.space();
                    if self.liberal && self.peek() == Some(b']') && !members.is_empty() {
                        self.at += 1;
                        return Ok(Json::Array(members));
                    }
                    members.push(self.value(depth + 1)?);
                    self.space();
                    match self.peek() {
                        Some(b',') => self.at += 1,
                        Some(b']') => {
                            self.at += 1;
                            return Ok(Json::Array(members));
                        }
                        _ => return self.wrong("a `,` or `]` is wanted"),
                    }
                }
            }
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => {
                for (word, json) in
                    [("true", Json::Boolean(true)), ("false", Json::Boolean(false)), ("null", Json::Null)]
                {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        return Ok(json);
                    }
                }
                self.wrong("a value is wanted")
            }
            None => self.wrong("a value is wanted, this is the end"),
        }
    }

    fn digits(&mut self) -> Result<(), Wrong> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { self.wrong("a digit is wanted") } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Json, Wrong> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first = self.at;
        self.digits()?;
        if self.at > first + 1 && self.text.as_bytes()[first] == b'0' && !self.liberal {
            self.at = first;
            return self.wrong("a number does not begin with 0");
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Json::Number(self.text[start..self.at].to_owned()))
    }

    /// A string as written, without its quotes.
    fn string(&mut self) -> Result<String, Wrong> {
        if self.peek() != Some(b'"') {
            return self.wrong("a string is wanted");
        }
        self.at += 1;
        let start = self.at;
        loop {
            match self.peek() {
                None => return self.wrong("the string has no end"),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(self.text[start..self.at - 1].to_owned());
                }
                Some(b'\\') => match self.text.as_bytes().get(self.at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
                    Some(b'u') => {
                        let digits = self.text.as_bytes().get(self.at + 2..self.at + 6);
                        if !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                            return self.wrong("four hexadecimal digits are wanted behind \\u");
                        }
                        self.at += 6;
                    }
                    _ => return self.wrong("there is no such escape"),
                },
                Some(b) if b < 0x20 && !self.liberal => return self.wrong("a control character in a string"),
                Some(_) => self.at += 1,
            }
        }
    }
}

/// The characters of a string literal: each with its escape, and its value. A lone surrogate has no value,
/// nor has a character that XML does not allow.
fn characters(raw: &str) -> impl Iterator<Item = (&str, Option<char>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &raw[at..];
        let first = rest.chars().next()?;
        if first != '\\' {
            at += first.len_utf8();
            return Some((&rest[..first.len_utf8()], Some(first).filter(|c| xml::is_char(*c))));
        }
        let escaped = |len: usize, c: Option<char>| (len, c.filter(|c| xml::is_char(*c)));
        let unit = |from: usize| rest.get(from..from + 4).and_then(|d| u32::from_str_radix(d, 16).ok());
        let (len, c) = match rest.as_bytes().get(1) {
            Some(b'b') => escaped(2, Some('\u{8}')),
            Some(b'f') => escaped(2, Some('\u{C}')),
            Some(b'n') => escaped(2, Some('\n')),
            Some(b'r') => escaped(2, Some('\r')),
            Some(b't') => escaped(2, Some('\t')),
            Some(b'u') => match unit(2) {
                Some(high @ 0xD800..=0xDBFF) => match (rest.get(6..8), unit(8)) {
                    (Some("\\u"), Some(low @ 0xDC00..=0xDFFF)) => {
                        escaped(12, char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)))
                    }
                    _ => (6, None),
                },
                Some(code) => escaped(6, char::from_u32(code)),
                None => (rest.len().min(6), None),
            },
            Some(other) => (2, Some(char::from(*other))),
            None => (1, None),
        };
        at += len;
        Some((&rest[..len], c))
    })
}

// ---- options ----

struct Options {
    liberal: bool,
    escape: bool,
    duplicates: String,
    fallback: Option<Atomic>,
}

fn options(c: &Call<'_, '_>, at: usize, allowed: &[&str], default: &str) -> Result<Options, Fault> {
    let mut options =
        Options { liberal: false, escape: false, duplicates: default.to_owned(), fallback: None };
    if c.args.len() <= at {
        return Ok(options);
    }
    let map = c.map(at)?;
    let flag = |name: &str| -> Result<bool, Fault> {
        match map.get(&Atomic::string(name)) {
            None => Ok(false),
            Some(Value::Boolean(value)) => Ok(*value),
            Some(_) => Err(c.fail("XPTY0004", format!("the option {name} must be a boolean"))),
        }
    };
    options.liberal = flag("liberal")?;
    options.escape = flag("escape")?;
    flag("validate")?;
    if let Some(value) = map.get(&Atomic::string("duplicates")) {
        let text = match value {
            Value::String(value) => Some(value.clone()),
            // (An untyped value is converted.)
            Value::Atomic(Atomic::Untyped(value)) => Some(value.clone()),
            _ => None,
        };
        let Some(value) = text else {
            return Err(c.fail("XPTY0004", "the option duplicates must be a string"));
        };
        if !allowed.contains(&&*value) {
            return Err(c.fail("FOJS0005", format!("the option duplicates cannot be \"{value}\"")));
        }
        options.duplicates = value.to_string();
    }
    if let Some(value) = map.get(&Atomic::string("fallback")) {
        match value.single_atomic() {
            Some(function) if function.is_function() && crate::sequence::apply::arity_of(&function) == 1 => {
                options.fallback = Some(function);
            }
            _ => return Err(c.fail("XPTY0004", "the option fallback must be a function of one parameter")),
        }
        if options.escape {
            return Err(c.fail("FOJS0005", "escape and fallback exclude one another"));
        }
    }
    Ok(options)
}

fn read(c: &Call<'_, '_>, text: &str, liberal: bool) -> Result<Json, Fault> {
    spend_bytes(text.len() * 8)?;
    Reader { text, at: 0, liberal }.whole().map_err(|Wrong(message)| c.fail("FOJS0001", message))
}

/// The text of a string literal.
fn text_of(c: &Call<'_, '_>, raw: &str, options: &Options) -> Result<String, Fault> {
    if !raw.contains('\\') && raw.chars().all(xml::is_char) {
        return Ok(raw.to_owned());
    }
    let mut out = String::with_capacity(raw.len());
    for (written, c_) in characters(raw) {
        if options.escape {
            escaped(written, c_, &mut out);
            continue;
        }
        match (c_, &options.fallback) {
            (Some(c), _) => out.push(c),
            (None, Some(function)) => {
                let written = match written.strip_prefix('\\') {
                    Some(rest) if rest.starts_with('u') => written.to_owned(),
                    // Escapes with a letter.
                    Some(rest) => format!("\\{rest}"),
                    None => format!("\\u{:04X}", written.chars().next().map_or(0, u32::from)),
                };
                let value = c.apply(function, vec![Value::from(written)])?;
                out.push_str(&c.eval.value_string(&value)?);
            }
            (None, None) => out.push('\u{FFFD}'),
        }
    }
    Ok(out)
}

/// A character of a string that keeps escapes.
fn escaped(written: &str, meant: Option<char>, out: &mut String) {
    match meant {
        Some('\\') => out.push_str("\\\\"),
        Some('\n') if written.len() > 1 => out.push_str("\\n"),
        Some('\r') if written.len() > 1 => out.push_str("\\r"),
        Some('\t') if written.len() > 1 => out.push_str("\\t"),
        Some(c) if matches!(c, '\u{7F}'..='\u{9F}') => {
            let _ = write!(out, "\\u{:04X}", u32::from(c));
        }
        Some(c) => out.push(c),
        None if written.starts_with("\\u") => {
            let code = written.get(2..6).and_then(|d| u32::from_str_radix(d, 16).ok()).unwrap_or(0);
            match code {
                8 => out.push_str("\\b"),
                0xC => out.push_str("\\f"),
                code => {
                    let _ = write!(out, "\\u{code:04X}");
                }
            }
        }
        None if written.starts_with('\\') => out.push_str(written),
        None => {
            let _ = write!(out, "\\u{:04X}", written.chars().next().map_or(0, u32::from));
        }
    }
}

// ---- maps and arrays ----

fn parse_json(c: &Call<'_, '_>, text: &str, at: usize) -> Outcome {
    let options = options(c, at, &["reject", "use-first", "use-last"], "use-first")?;
    let json = read(c, text, options.liberal)?;
    value_of(c, json, &options)
}

fn value_of(c: &Call<'_, '_>, json: Json, options: &Options) -> Outcome {
    spend(1)?;
    Ok(match json {
        Json::Null => Value::Empty,
        Json::Boolean(value) => Value::Boolean(value),
        Json::Number(text) => Value::Number(text.parse().unwrap_or(f64::NAN)),
        Json::Text(raw) => text_value(text_of(c, &raw, options)?),
        Json::Array(members) => {
            let members = members.into_iter().map(|member| value_of(c, member, options));
            new_array(members.collect::<Result<_, _>>()?, c.span)?
        }
        Json::Object(pairs) => {
            let mut map = Map::new();
            for (key, json) in pairs {
                let key = Atomic::string(text_of(c, &key, options)?);
                if map.get(&key).is_some() {
                    match &*options.duplicates {
                        "use-first" => continue,
                        "use-last" => {}
                        _ => {
                            let message = format!("an object has two members \"{}\"", key.to_text());
                            return Err(c.fail("FOJS0003", message));
                        }
                    }
                }
                let value = value_of(c, json, options)?;
                map = map.put(key, value).map_err(|e| c.fail("FOER0000", e.to_string()))?;
            }
            map_value(Ok(map), c.span)?
        }
    })
}

// ---- to XML ----

fn json_to_xml(c: &Call<'_, '_>, text: &str) -> Outcome {
    let options = options(c, 1, &["reject", "use-first", "retain"], "retain")?;
    if c.args.len() > 1 && c.map(1)?.get(&Atomic::string("validate")) == Some(&Value::Boolean(true)) {
        return Err(c.fail("FOJS0004", "json-to-xml(): there are no schemas to validate with"));
    }
    let json = read(c, text, options.liberal)?;
    let mut doc = Document::new();
    element_of(c, &json, None, &options, &mut doc, Document::ROOT)?;
    adopted(c, doc)
}

/// A document as the value of a function.
pub(super) fn adopted(c: &Call<'_, '_>, doc: Document) -> Outcome {
    c.eval.cx.host.adopt(doc).map(Value::from).map_err(|e| c.fail("FOER0000", e))
}

fn element_of(
    c: &Call<'_, '_>,
    json: &Json,
    key: Option<&str>,
    options: &Options,
    doc: &mut Document,
    parent: NodeId,
) -> Result<(), Fault> {
    spend(2)?;
    let name = match json {
        Json::Null => "null",
        Json::Boolean(_) => "boolean",
        Json::Number(_) => "number",
        Json::Text(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "map",
    };
    let element = doc.append_element(parent, "", FN, name);
    if parent == Document::ROOT {
        doc.declare_namespace(element, "", FN);
    }
    let is_escaped = |raw: &str, text: &str| options.escape && raw.contains('\\') && text.contains('\\');
    if let Some(raw) = key {
        let text = text_of(c, raw, options)?;
        doc.set_attribute(element, "", "", "key", &text);
        if is_escaped(raw, &text) {
            doc.set_attribute(element, "", "", "escaped-key", "true");
        }
    }
    match json {
        Json::Null => {}
        Json::Boolean(value) => {
            doc.append_text(element, if *value { "true" } else { "false" });
        }
        Json::Number(text) => {
            doc.append_text(element, text);
        }
        Json::Text(raw) => {
            let text = text_of(c, raw, options)?;
            if is_escaped(raw, &text) {
                doc.set_attribute(element, "", "", "escaped", "true");
            }
            if !text.is_empty() {
                doc.append_text(element, &text);
            }
        }
        Json::Array(members) => {
            for member in members {
                element_of(c, member, None, options, doc, element)?;
            }
        }
        Json::Object(pairs) => {
            let mut keys: HashSet<String> = HashSet::new();
            for (key, json) in pairs {
                if options.duplicates != "retain" && !keys.insert(text_of(c, key, options)?) {
                    if options.duplicates == "use-first" {
                        continue;
                    }
                    return Err(c.fail("FOJS0003", format!("an object has two members \"{key}\"")));
                }
                element_of(c, json, Some(key), options, doc, element)?;
            }
        }
    }
    Ok(())
}

// ---- from XML ----

fn xml_to_json(c: &Call<'_, '_>) -> Outcome {
    let Some(node) = c.node(0)? else { return Ok(Value::Empty) };
    let indent = match c.args.len() {
        1 => false,
        _ => match c.map(1)?.get(&Atomic::string("indent")) {
            None | Some(Value::Empty) => false,
            Some(Value::Boolean(value)) => *value,
            Some(_) => return Err(c.fail("XPTY0004", "the option indent must be a boolean")),
        },
    };
    let doc = c.eval.doc(node.doc)?;
    let top = match doc.kind(node.id) {
        NodeKind::Element => Some(node.id),
        NodeKind::Document => {
            let mut elements = doc.children(node.id).filter(|n| doc.kind(*n) == NodeKind::Element);
            elements.next().filter(|_| elements.next().is_none())
        }
        _ => None,
    };
    let Some(top) = top.filter(|_| !node.is_namespace()) else {
        return Err(c.fail("FOJS0006", "xml-to-json() needs an element or a document with one"));
    };
    let mut out = String::new();
    Writer { c, doc, indent }.write(top, 0, false, &mut out)?;
    crate::eval::grown(out.len(), c.span)?;
    Ok(text_value(out))
}

struct Writer<'w, 'c, 'a> {
    c: &'w Call<'c, 'a>,
    doc: &'w Document,
    indent: bool,
}

impl Writer<'_, '_, '_> {
    fn wrong<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(self.c.fail("FOJS0006", message))
    }

    fn line(&self, depth: u32, out: &mut String) {
        if self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth as usize * 2));
        }
    }

    fn flag(&self, element: NodeId, name: &str) -> Result<bool, Fault> {
        match self.doc.attribute(element, "", name).map(str::trim) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(other) => self.wrong(format!("{name}=\"{other}\" is not a boolean")),
        }
    }

    /// The children that count: white space between the members of an object or array does not.
    fn children(&self, element: NodeId) -> Result<Vec<NodeId>, Fault> {
        let mut children = Vec::new();
        for child in self.doc.children(element) {
            match self.doc.kind(child) {
                NodeKind::Element => children.push(child),
                NodeKind::Text if !self.doc.text(child).trim().is_empty() => {
                    return self.wrong(format!("there is text in {}", self.doc.local(element)));
                }
                _ => {}
            }
        }
        Ok(children)
    }

    fn text(&self, element: NodeId) -> Result<String, Fault> {
        if self.doc.children(element).any(|n| self.doc.kind(n) == NodeKind::Element) {
            return self.wrong(format!("there is an element in {}", self.doc.local(element)));
        }
        Ok(self.doc.string_value(element).into_owned())
    }

    fn write(&self, element: NodeId, depth: u32, keyed: bool, out: &mut String) -> Result<(), Fault> {
        spend(2)?;
        if depth > MAX_JSON {
            return self.wrong(format!("it is nested deeper than {MAX_JSON}"));
        }
        let (doc, name) = (self.doc, self.doc.local(element));
        if doc.namespace(element) != FN {
            return self.wrong(format!("{name} is not in the namespace of JSON as XML ({FN})"));
        }
        for attribute in doc.attributes(element) {
            let (namespace, local) = (doc.namespace(attribute), doc.local(attribute));
            let is_of_json = match local {
                "key" | "escaped-key" => keyed,
                "escaped" => name == "string",
                _ => false,
            };
            // At the top level a key has no effect.
            let ignored = depth == 0 && matches!(local, "key" | "escaped-key");
            if namespace == FN || namespace.is_empty() && !is_of_json && !ignored {
                return self.wrong(format!("{name} has no attribute {local}"));
            }
        }
        match name {
            "null" => {
                if !self.text(element)?.is_empty() {
                    return self.wrong("null is empty");
                }
                out.push_str("null");
            }
            "boolean" => match self.text(element)?.trim() {
                "true" | "1" => out.push_str("true"),
                "false" | "0" => out.push_str("false"),
                other => return self.wrong(format!("\"{other}\" is not a boolean")),
            },
            "number" => {
                let text = self.text(element)?;
                match crate::atomic::parse_double(text.trim()).filter(|n| n.is_finite()) {
                    Some(number) => out.push_str(&Atomic::Double(number).to_text()),
                    None => return self.wrong(format!("\"{text}\" is not a number")),
                }
            }
            "string" => {
                let escaped = self.flag(element, "escaped")?;
                self.string(&self.text(element)?, escaped, out)?;
            }
            "array" => {
                out.push('[');
                for (at, child) in self.children(element)?.into_iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    self.line(depth + 1, out);
                    self.write(child, depth + 1, false, out)?;
                }
                self.line(depth, out);
                out.push(']');
            }
            "map" => {
                let mut keys = HashSet::new();
                out.push('{');
                for (at, child) in self.children(element)?.into_iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    let Some(key) = doc.attribute(child, "", "key") else {
                        return self.wrong(format!("{} in a map has no key", doc.local(child)));
                    };
                    self.line(depth + 1, out);
                    let escaped = self.flag(child, "escaped-key")?;
                    let start = out.len();
                    self.string(key, escaped, out)?;
                    let meant: String =
                        characters(&out[start + 1..out.len() - 1]).filter_map(|(_, c)| c).collect();
                    if !keys.insert(meant) {
                        return self.wrong(format!("a map has two members \"{key}\""));
                    }
                    out.push(':');
                    if self.indent {
                        out.push(' ');
                    }
                    self.write(child, depth + 1, true, out)?;
                }
                self.line(depth, out);
                out.push('}');
            }
            other => return self.wrong(format!("there is no element {other} in JSON as XML")),
        }
        Ok(())
    }

    /// A string with its quotes; if it is `escaped`, escapes stay as they are.
    fn string(&self, text: &str, is_escaped: bool, out: &mut String) -> Result<(), Fault> {
        spend_bytes(text.len() * 8)?;
        out.push('"');
        if !is_escaped {
            push_escaped(text, out);
        } else {
            let mut rest = text;
            while let Some(at) = rest.find('\\') {
                push_escaped(&rest[..at], out);
                let len = match rest.as_bytes().get(at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                    Some(b'u')
                        if rest
                            .as_bytes()
                            .get(at + 2..at + 6)
                            .is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) =>
                    {
                        6
                    }
                    _ => return Err(self.c.fail("FOJS0007", format!("\"{text}\" has a wrong escape"))),
                };
                out.push_str(&rest[at..at + len]);
                rest = &rest[at + len..];
            }
            push_escaped(rest, out);
        }
        out.push('"');
        Ok(())
    }
}

/// A text within a JSON string.
pub(super) fn push_escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '/' => out.push_str("\\/"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{C}' => out.push_str("\\f"),
            c if c < ' ' || matches!(c, '\u{7F}'..='\u{9F}') => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}
