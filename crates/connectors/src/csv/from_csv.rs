//! CSV to JSON, to XML, and to other CSV.

use super::converted::{Converted, DataFormat};
use super::to_csv::Output;
use super::{Conversion, quoted};
use crate::result;
use csv::{Position, StringRecord};
use flow::{Context, Fault};
use message::PayloadError;
use message::memory::Held;
use serde_json::Value as Json;
use std::collections::HashSet;

/// Types of more columns than this have no effect.
const MOST_TYPES: usize = 100_000;

impl Conversion {
    pub(super) fn to_json(&self, context: &mut Context) -> Result<Converted, Fault> {
        let table = self.table(true, context)?;
        let types = match self.parameters.text("dataTypes", context)? {
            Some(text) => Types::parse(&text).map_err(|why| self.fault("dataTypes are none").because(why))?,
            None => Types::default(),
        };
        let types = types.of(table.header.as_deref());
        let keys_given = self.list("jsonKeys", context)?;
        let mut keys =
            Keys::new(keys_given.as_ref().or(table.header.as_ref()).map_or(&[][..], Vec::as_slice));
        let empty = self.parameters.text("csvEmptyValues", context)?.unwrap_or_default();
        let empty: &[u8] = if empty.eq_ignore_ascii_case("empty") { b"\"\"" } else { b"null" };
        let root = self.parameters.text("rootJsonKey", context)?;
        let mut made = Converted::new(DataFormat::Json);
        if let Some(root) = &root {
            made.bytes.push(b'{');
            written_json(root, &mut made.bytes);
            made.bytes.push(b':');
        }
        made.bytes.push(b'[');
        let mut is_first = true;
        table.each_cells(|cells| {
            if !std::mem::take(&mut is_first) {
                made.bytes.push(b',');
            }
            made.bytes.push(b'{');
            let mut count = 0;
            for (at, cell) in cells.enumerate() {
                if at > 0 {
                    made.bytes.push(b',');
                }
                made.bytes.extend_from_slice(keys.get(at));
                match cell.trim().is_empty() {
                    true => made.bytes.extend_from_slice(empty),
                    false => typed(cell, types.get(at).and_then(Option::as_deref), &mut made.bytes),
                }
                count += 1;
            }
            made.bytes.push(b'}');
            made.count(count)
        })?;
        made.bytes.push(b']');
        if root.is_some() {
            made.bytes.push(b'}');
        }
        Ok(made)
    }

    pub(super) fn to_xml(&self, context: &mut Context) -> Result<Converted, Fault> {
        let table = self.table(true, context)?;
        let names_given = self.list("tagNames", context)?;
        let names: &[String] = names_given.as_ref().or(table.header.as_ref()).map_or(&[], Vec::as_slice);
        let mut tag = |element: &str, default: &str| -> Result<(String, String), Fault> {
            let mut text = |name: &str| self.parameters.text(&format!("{element}{name}"), context);
            let name = text("Tag")?.unwrap_or_else(|| default.to_owned());
            Ok(match (text("NamespaceURI")?, text("Namespace")?) {
                (None, _) => (name.clone(), name),
                (Some(uri), None) => (format!("{name} xmlns=\"{}\"", result::escaped(&uri)), name),
                (Some(uri), Some(prefix)) => {
                    let name = format!("{prefix}:{name}");
                    (format!("{name} xmlns:{prefix}=\"{}\"", result::escaped(&uri)), name)
                }
            })
        };
        let (root, root_end) = tag("rootElement", "root")?;
        let (group, group_end) = tag("groupElement", "group")?;
        let mut made = Converted::new(DataFormat::Xml);
        let mut widest = 0;
        made.bytes.extend_from_slice(format!("<{root}>").as_bytes());
        table.each_cells(|cells| {
            let mut out = |text: &str| made.bytes.extend_from_slice(text.as_bytes());
            let mut count = 0;
            ["<", &group, ">"].into_iter().for_each(&mut out);
            for (at, cell) in cells.enumerate() {
                let name = key_of(names, at);
                let name = name.trim();
                ["<", name, ">", &result::escaped(cell), "</", name, ">"].into_iter().for_each(&mut out);
                count += 1;
            }
            ["</", &group_end, ">"].into_iter().for_each(&mut out);
            widest = widest.max(count);
            made.count(count)
        })?;
        made.bytes.extend_from_slice(format!("</{root_end}>").as_bytes());
        // A column name may not be the name of an element, or be more than a name.
        let is_name = |name: &str| name.split(':').count() <= 2 && name.split(':').all(xml::is_ncname);
        let mut used = (0..widest.min(names.len())).map(|at| key_of(names, at));
        if let Some(name) = used.find(|name| !is_name(name.trim())) {
            let why = format!("no element can be named `{name}`");
            return Err(self.fault("the result is not XML").because(why));
        }
        let columns: String = names
            .iter()
            .take(widest)
            .enumerate()
            .map(|(at, _)| format!("<{}/>", key_of(names, at).trim()))
            .collect();
        let names = format!("<{root}><{group}>{columns}</{group_end}></{root_end}>");
        result::element(&names).map_err(|why| self.fault("the result is not XML").because(why))?;
        Ok(made)
    }

    pub(super) fn to_csv(&self, context: &mut Context) -> Result<Converted, Fault> {
        let table = self.table(false, context)?;
        let skips_header = self.parameters.is_true("skipHeader", false, context)?;
        let header_given = self.list("customHeader", context)?;
        let header = header_given.as_ref().or(table.header.as_ref().filter(|_| !skips_header));
        let column = match self.parameters.text("orderByColumn", context)? {
            None => None,
            Some(text) => {
                let named = |name: &str| {
                    let header = table.header.as_ref()?;
                    header.iter().position(|column| column.trim() == name)
                };
                let at = match quoted(&text) {
                    Some(name) => named(name.trim()),
                    None => text.parse::<usize>().ok().and_then(|column| column.checked_sub(1)),
                };
                let none =
                    || self.fault(&format!("orderByColumn is a column from 1, or a name of one: {text}"));
                Some(at.ok_or_else(none)?)
            }
        };
        let order = self.parameters.text("columnOrdering", context)?.unwrap_or_default();
        let mut out = Output::begin(self, header, context)?;
        let Some(column) = column else {
            table.each_cells(|cells| out.row(cells))?;
            return out.end();
        };
        // The keys are sorted; the rows stay in the body.
        let (mut keys, mut held, mut bytes) = (Vec::new(), Held::NONE, 0);
        table.each(|record, at| {
            let key = table.cells(record).nth(column).unwrap_or_default().to_owned();
            bytes += key.len();
            keys.push((key, at.clone()));
            let counted = bytes + keys.capacity() * size_of::<(String, Position)>();
            Ok(held.try_grow(counted).map_err(PayloadError::Shortage)?)
        })?;
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        if order.eq_ignore_ascii_case("descending") {
            keys.reverse();
        }
        let (mut reader, mut record) = (table.reader(), StringRecord::new());
        for (_, at) in keys {
            reader.seek(at).map_err(|why| self.fault("the body is not CSV").because(why.to_string()))?;
            table.next(&mut reader, &mut record)?;
            out.row(&mut table.cells(&record))?;
        }
        out.end()
    }
}

/// The types of columns: words between commas, or a list of objects as the tools write it.
#[derive(Default)]
pub(super) struct Types {
    by_position: Vec<(usize, String)>,
    by_name: Vec<(String, String)>,
}

impl Types {
    pub(super) fn parse(text: &str) -> Result<Types, String> {
        let mut types = Types::default();
        let type_named = |kind: &str| match &*kind.trim().to_ascii_lowercase() {
            type_name @ ("string" | "number" | "integer" | "boolean" | "") => Ok(type_name.to_owned()),
            _ => Err(format!("`{kind}` is not a type: expected string, number, integer, boolean")),
        };
        if !text.trim_start().starts_with('[') {
            for (at, kind) in text.split(',').enumerate() {
                types.by_position.push((at, type_named(kind)?));
            }
            return Ok(types);
        }
        let list: Vec<serde_json::Map<String, Json>> =
            serde_json::from_str(text).map_err(|why| format!("expected a list of objects: {why}"))?;
        for item in &list {
            let text = |name: &str| item.get(name).map(|v| v.as_str().map_or(v.to_string(), str::to_owned));
            let column = text("Column Name Or Index").ok_or("an item has no `Column Name Or Index`")?;
            let kind = type_named(&text("Data Type").ok_or("an item has no `Data Type`")?)?;
            match text("Is Column Name").is_some_and(|value| value.eq_ignore_ascii_case("no")) {
                true => match column.trim().parse::<usize>() {
                    Ok(position @ 1..) => types.by_position.push((position - 1, kind)),
                    _ => return Err(format!("`{column}` is not a column from 1")),
                },
                false => types.by_name.push((column, kind)),
            }
        }
        Ok(types)
    }

    /// The type of each column of a header, where one is given.
    fn of(self, header: Option<&[String]>) -> Vec<Option<String>> {
        let mut found: Vec<(usize, String)> = self.by_position;
        for (name, kind) in self.by_name {
            let at = header.and_then(|header| header.iter().position(|column| column.trim() == name.trim()));
            found.extend(at.map(|at| (at, kind)));
        }
        let mut types = Vec::new();
        // No row is wider than the text of the types is long.
        for (at, kind) in found.into_iter().filter(|(at, _)| *at < MOST_TYPES) {
            if types.len() <= at {
                types.resize(at + 1, None);
            }
            types[at] = Some(kind);
        }
        types
    }
}

fn key_of(keys: &[String], at: usize) -> String {
    keys.get(at).filter(|key| !key.trim().is_empty()).cloned().unwrap_or_else(|| format!("key-{}", at + 1))
}

/// Unique keys: a repeated one becomes `key-N`, so that no column replaces another.
struct Keys {
    names: Vec<String>,
    seen: HashSet<String>,
    /// The keys as JSON: `"key":`.
    written: Vec<Vec<u8>>,
}

impl Keys {
    fn new(names: &[String]) -> Keys {
        let mut keys = Keys { names: names.to_owned(), seen: HashSet::new(), written: Vec::new() };
        (0..names.len()).for_each(|_| keys.add());
        keys
    }

    fn add(&mut self) {
        let at = self.written.len();
        let mut key = key_of(&self.names, at);
        if self.seen.contains(&key) {
            key = key_of(&[], at);
        }
        while self.seen.contains(&key) {
            key.push('_');
        }
        let mut written = Vec::new();
        written_json(&key, &mut written);
        written.push(b':');
        self.written.push(written);
        self.seen.insert(key);
    }

    /// The key of a column; rows may have more cells than there are names.
    fn get(&mut self, at: usize) -> &[u8] {
        while self.written.len() <= at {
            self.add();
        }
        &self.written[at]
    }
}

/// Writes a JSON string; writing into memory does not fail.
fn written_json(text: &str, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, text);
}

/// Writes a cell as its type; a cell that does not fit the type stays a text.
fn typed(cell: &str, kind: Option<&str>, out: &mut Vec<u8>) {
    let trimmed = cell.trim();
    let value = match kind.map(str::to_ascii_lowercase).as_deref() {
        // A JSON number keeps its digits.
        Some("number") => trimmed
            .parse()
            .ok()
            .or_else(|| trimmed.parse::<f64>().ok().and_then(serde_json::Number::from_f64))
            .map(Json::Number),
        Some("integer") => trimmed.parse::<i64>().ok().map(Json::from),
        Some("boolean") if trimmed.eq_ignore_ascii_case("true") => Some(Json::Bool(true)),
        Some("boolean") if trimmed.eq_ignore_ascii_case("false") => Some(Json::Bool(false)),
        _ => None,
    };
    match value {
        Some(value) => out.extend_from_slice(value.to_string().as_bytes()),
        None => written_json(cell, out),
    }
}
