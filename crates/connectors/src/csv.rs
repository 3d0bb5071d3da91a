//! The CSV module: `CSV.csvToJson`, `csvToXml`, `csvToCsv`, `jsonToCsv`, `xmlToCsv`.
//!
//! They read the body and put the result into it, or into the variable that `responseVariable` names. Names of the module are accepted in
//! upper and in lower case. CSV is read and written row by row: the body and its result are in memory, and no table of cells.

use crate::operation::operation;
use crate::parameter::{Form, Parameters};
use crate::response::{OVERWRITE, Place, VARIABLE};
use crate::result;
use bytes::Bytes;
use config::Element;
use csv::{Position, StringRecord};
use flow::{Compiled, Compiler, Context, Definition, Fault, Flow, Mediator, Need};
use message::memory::Held;
use message::{Format, PayloadError, Reading, Value, memory};
use serde_json::{Value as Json, json};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Cursor;
use std::sync::Arc;

/// The operations.
pub(crate) const OPERATIONS: &[&Definition] = &[
    &operation("CSV.csvToJson", "Turns CSV into a list of JSON objects.", TO_JSON, compile),
    &operation("CSV.csvToXml", "Turns CSV into XML.", TO_XML, compile),
    &operation(
        "CSV.csvToCsv",
        "Takes columns and rows out of CSV, sorts it, gives it another header.",
        TO_CSV,
        compile,
    ),
    &operation("CSV.jsonToCsv", "Turns a list of JSON objects into CSV.", FROM_TREE, compile),
    &operation("CSV.xmlToCsv", "Turns XML into CSV: a row for each child of the root.", FROM_TREE, compile),
    &operation("csv.csvToJson", "As `CSV.csvToJson`.", TO_JSON, compile),
    &operation("csv.csvToXml", "As `CSV.csvToXml`.", TO_XML, compile),
    &operation("csv.csvToCsv", "As `CSV.csvToCsv`.", TO_CSV, compile),
    &operation("csv.jsonToCsv", "As `CSV.jsonToCsv`.", FROM_TREE, compile),
    &operation("csv.xmlToCsv", "As `CSV.xmlToCsv`.", FROM_TREE, compile),
];

macro_rules! parameters {
    ($($more:literal),*) => {
        &["headerPresent", "valueSeparator", "skipHeader", "dataRowsToSkip", "columnsToSkip", $($more,)* VARIABLE, OVERWRITE]
    };
}
const TO_JSON: &[&str] = parameters!("csvEmptyValues", "jsonKeys", "dataTypes", "rootJsonKey");
const TO_XML: &[&str] = parameters!(
    "tagNames",
    "rootElementTag",
    "rootElementNamespace",
    "rootElementNamespaceURI",
    "groupElementTag",
    "groupElementNamespace",
    "groupElementNamespaceURI"
);
const TO_CSV: &[&str] = parameters!(
    "orderByColumn",
    "columnOrdering",
    "customHeader",
    "customValueSeparator",
    "suppressEscapeCharacters"
);
const FROM_TREE: &[&str] =
    &["customHeader", "customValueSeparator", "suppressEscapeCharacters", VARIABLE, OVERWRITE];

/// Units of work of one cell.
const CELL: u64 = 4;
/// Types of more columns than this have no effect.
const MOST_TYPES: usize = 100_000;
/// The memory of a cell as a member of an object in a variable, beside its text.
const MEMBER: usize = 160;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToJson,
    ToXml,
    ToCsv,
    FromJson,
    FromXml,
}

struct Conversion {
    way: Way,
    parameters: Parameters,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let parameters = Parameters::compile(element, |_| Form::Plain, compiler)?;
    check(&parameters, element, compiler);
    let way = match element.local().split_once('.').map(|(_, name)| name) {
        Some("csvToXml") => Way::ToXml,
        Some("csvToCsv") => Way::ToCsv,
        Some("jsonToCsv") => Way::FromJson,
        Some("xmlToCsv") => Way::FromXml,
        _ => Way::ToJson,
    };
    Some(Box::new(Conversion { way, parameters }))
}

/// Reports literals that are wrong.
fn check(parameters: &Parameters, element: &Element, compiler: &mut Compiler<'_>) {
    parameters.check_word("headerPresent", &["Present", "Absent", "true", "false"], element, compiler);
    parameters.check_word("csvEmptyValues", &["Null", "Empty"], element, compiler);
    parameters.check_word("columnOrdering", &["Ascending", "Descending"], element, compiler);
    parameters.check_truths(&["skipHeader", "suppressEscapeCharacters"], element, compiler);
    parameters.check_numbers(&["dataRowsToSkip"], element, compiler);
    parameters.check("orderByColumn", element, compiler, |text| {
        match (quoted(text), text.parse::<usize>()) {
            (Some(_), _) | (None, Ok(1..)) => Ok(()),
            _ => Err("expected a column from 1, or a name of one between double quotes".to_owned()),
        }
    });
    for name in ["valueSeparator", "customValueSeparator"] {
        parameters.check(name, element, compiler, |text| {
            separator(text).map(|_| ()).ok_or_else(|| "expected one character, `tab` or `space`".to_owned())
        });
    }
    parameters.check("columnsToSkip", element, compiler, |text| match text.contains('"') {
        true if text.matches('"').count() % 2 == 1 => {
            Err("a name has no end: expected a double quote".to_owned())
        }
        // The names come with the message.
        true => {
            let any = text.split('"').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "1" });
            skipped(&any.collect::<String>(), 1, None).map(|_| ())
        }
        false => skipped(text, 1, None).map(|_| ()),
    });
    let names = ["rootElementTag", "groupElementTag", "rootElementNamespace", "groupElementNamespace"];
    for name in names {
        parameters.check(name, element, compiler, |text| match xml::is_ncname(text) {
            true => Ok(()),
            false => Err("no element can have this name".to_owned()),
        });
    }
    parameters.check("tagNames", element, compiler, |text| {
        let wrong = text.split(',').map(str::trim).find(|n| !n.is_empty() && !xml::is_ncname(n));
        wrong.map_or(Ok(()), |n| Err(format!("no element can be named `{n}`")))
    });
    parameters.check("dataTypes", element, compiler, |text| Types::parse(text).map(|_| ()));
}

/// The text between double quotes.
fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

/// The types of columns: words between commas, or a list of objects as the tools write it.
#[derive(Default)]
struct Types {
    by_position: Vec<(usize, String)>,
    by_name: Vec<(String, String)>,
}

impl Types {
    fn parse(text: &str) -> Result<Types, String> {
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

/// The separator character.
fn separator(text: &str) -> Option<u8> {
    match (text, text.trim()) {
        ("\t", _) | (_, "tab" | "TAB" | "\\t") => Some(b'\t'),
        (_, "space" | "SPACE") => Some(b' '),
        (_, "") => Some(b','),
        (_, character) if character.len() == 1 && character.is_ascii() && character != "\"" => {
            Some(character.as_bytes()[0])
        }
        _ => None,
    }
}

/// The CSV of the body, and which of its cells are wanted. Each pass reads it again, row by row.
struct Table {
    operation: String,
    text: Bytes,
    separator: u8,
    header: Option<Vec<String>>,
    /// The header counts as a row too.
    header_is_row: bool,
    /// Records ahead of the first row.
    ahead: usize,
    /// Columns that are left out, from 1.
    skipped: BTreeSet<usize>,
}

type Reader<'t> = csv::Reader<Cursor<&'t [u8]>>;

impl Table {
    fn reader(&self) -> Reader<'_> {
        let mut reader = csv::ReaderBuilder::new();
        reader.has_headers(false).flexible(true).delimiter(self.separator);
        reader.from_reader(Cursor::new(&self.text[..]))
    }

    fn next(&self, reader: &mut Reader<'_>, record: &mut StringRecord) -> Result<bool, Fault> {
        let wrong = |why: String| Fault::new(format!("{}: the body is not CSV", self.operation)).because(why);
        let more = reader.read_record(record).map_err(|why| wrong(why.to_string()))?;
        // A quote that does not close takes the rest of the text.
        if more
            && reader.position().byte() >= self.text.len() as u64
            && let Some(line) = self.open_quote(record.position())
        {
            return Err(wrong(format!("the quote at line {line} does not close")));
        }
        spend(record.len())?;
        Ok(more)
    }

    /// The line of the quote that does not close in the last record, by the rules of the reader: a quote opens where a value begins, and
    /// after the closing quote the value goes on without quotes.
    fn open_quote(&self, record: Option<&Position>) -> Option<u64> {
        let record = record?;
        let mut rest = self.text.get(usize::try_from(record.byte()).ok()?..)?;
        if record.byte() == 0 {
            rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest);
        }
        let (mut line, mut opened, mut begins) = (record.line(), None, true);
        let mut bytes = rest.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            match (byte, opened) {
                (b'"', Some(_)) if bytes.next_if_eq(&b'"').is_none() => opened = None,
                (b'"', None) if begins => opened = Some(line),
                _ => {}
            }
            line += u64::from(byte == b'\n');
            begins = byte == self.separator || matches!(byte, b'\r' | b'\n');
        }
        opened
    }

    /// Calls back with each row and its position.
    fn each(&self, mut row: impl FnMut(&StringRecord, &Position) -> Result<(), Fault>) -> Result<(), Fault> {
        let (mut reader, mut record, mut number) = (self.reader(), StringRecord::new(), 0);
        loop {
            let at = reader.position().clone();
            if !self.next(&mut reader, &mut record)? {
                return Ok(());
            }
            number += 1;
            if number > self.ahead {
                row(&record, &at)?;
            }
        }
    }

    /// The wanted cells of a row.
    fn cells<'r>(&'r self, row: &'r StringRecord) -> impl Iterator<Item = &'r str> {
        let wanted = row.iter().enumerate().filter(|(at, _)| !self.skipped.contains(&(at + 1)));
        wanted.map(|(_, cell)| cell)
    }

    /// Calls back with the cells of each row, and with the header if it counts as a row.
    fn each_cells(
        &self,
        mut row: impl FnMut(&mut dyn Iterator<Item = &str>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if let Some(header) = self.header.as_ref().filter(|_| self.header_is_row) {
            row(&mut header.iter().map(String::as_str))?;
        }
        self.each(|record, _| row(&mut self.cells(record)))
    }
}

/// The result of a conversion.
struct Converted {
    kind: DataFormat,
    bytes: Vec<u8>,
    /// Counts the bytes of memory until the message has ended.
    held: Held,
    /// The number of its cells.
    cells: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DataFormat {
    Json,
    Xml,
    Csv,
}

impl Converted {
    fn new(kind: DataFormat) -> Converted {
        Converted { kind, bytes: Vec::new(), held: Held::NONE, cells: 0 }
    }

    /// Counts the memory of what was made so far.
    fn count(&mut self, cells: usize) -> Result<(), Fault> {
        self.cells += cells;
        Ok(self.held.try_grow(self.bytes.capacity()).map_err(PayloadError::Shortage)?)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The payload of a variable, and the memory that it holds.
    fn value(&self) -> Result<(Json, Held), Fault> {
        let more = match self.kind {
            DataFormat::Json => self.cells.saturating_mul(MEMBER),
            DataFormat::Xml | DataFormat::Csv => 0,
        };
        let held = memory::try_hold(self.bytes.len().saturating_add(more)).map_err(PayloadError::Shortage)?;
        let value = match self.kind {
            DataFormat::Json => serde_json::from_slice(&self.bytes)
                .map_err(|why| Fault::new(format!("the result is not JSON: {why}")))?,
            DataFormat::Xml | DataFormat::Csv => Json::from(self.text()),
        };
        Ok((value, held))
    }

    fn into_body(mut self, context: &mut Context) {
        self.bytes.shrink_to_fit();
        let content_type = match self.kind {
            DataFormat::Json => "application/json",
            DataFormat::Xml => "application/xml",
            DataFormat::Csv => "text/csv",
        };
        let reading = Reading::of(Some(content_type), None, context.is_rest());
        match self.kind {
            DataFormat::Xml => context.payload.set_made(self.bytes, reading),
            DataFormat::Json | DataFormat::Csv => context.payload.set_bytes(self.bytes, reading),
        }
        context.set_axis2("messageType", Value::from(content_type));
        context.hold(Arc::new(self.held));
    }
}

impl Mediator for Conversion {
    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "reads the body".to_owned()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let place = Place::of(&self.parameters, context)?;
        let converted = self.convert(context)?;
        deliver(converted, place, context)?;
        Ok(Flow::Next)
    }
}

fn deliver(converted: Converted, place: Place, context: &mut Context) -> Result<(), Fault> {
    match place {
        Place::Body => converted.into_body(context),
        Place::Variable(name) => {
            let (payload, held) = converted.value()?;
            context.hold(Arc::new(held));
            let map = Json::Object(
                [
                    ("payload".to_owned(), payload),
                    ("headers".to_owned(), json!({})),
                    ("attributes".to_owned(), json!({})),
                ]
                .into_iter()
                .collect(),
            );
            context.variables.set(name, Value::Json(Arc::new(map)));
        }
        Place::BodyAndVariable(name) => {
            converted.into_body(context);
            let map = json!({ "headers": {}, "attributes": {} });
            context.variables.set(name, Value::Json(Arc::new(map)));
        }
    }
    Ok(())
}

impl Conversion {
    fn convert(&self, context: &mut Context) -> Result<Converted, Fault> {
        match self.way {
            Way::ToJson => self.to_json(context),
            Way::ToXml => self.to_xml(context),
            Way::ToCsv => self.to_csv(context),
            Way::FromJson => self.of_json(context),
            Way::FromXml => self.of_xml(context),
        }
    }

    fn to_json(&self, context: &mut Context) -> Result<Converted, Fault> {
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

    fn to_xml(&self, context: &mut Context) -> Result<Converted, Fault> {
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

    fn to_csv(&self, context: &mut Context) -> Result<Converted, Fault> {
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

    fn of_json(&self, context: &mut Context) -> Result<Converted, Fault> {
        let custom = self.list("customHeader", context)?;
        let separator = self.separator("customValueSeparator", context)?;
        let limits = context.services().limits.clone();
        let value = context.payload.json_view(&limits)?;
        let none = || self.fault("the body is not a list of JSON objects");
        let Json::Array(items) = value else { return Err(none()) };
        self.of_rows(custom, separator, |row| {
            for item in items {
                let Json::Object(members) = item else { return Err(none()) };
                let cell = |value: &Json| match value {
                    Json::String(text) => text.clone(),
                    Json::Null => String::new(),
                    other => other.to_string(),
                };
                row(&mut members.iter().map(|(name, value)| (name.as_str(), cell(value))))?;
            }
            Ok(())
        })
    }

    fn of_xml(&self, context: &mut Context) -> Result<Converted, Fault> {
        let custom = self.list("customHeader", context)?;
        let separator = self.separator("customValueSeparator", context)?;
        let envelope = context.envelope()?;
        let document = &envelope.document;
        let Some(root) = envelope.payload() else { return Err(self.fault("the body has no element")) };
        self.of_rows(custom, separator, |row| {
            let text = |node| {
                document.children(node).any(|child| {
                    document.kind(child) == xml::NodeKind::Text
                        && !document.string_value(child).trim().is_empty()
                })
            };
            if text(root) {
                return Err(self.fault(&format!("`{}` has text beside its rows", document.local(root))));
            }
            for group in envelope.elements_of(root) {
                if text(group) {
                    let name = document.local(group);
                    return Err(self.fault(&format!("the row `{name}` has text that is in no cell")));
                }
                let cells = envelope.elements_of(group);
                row(&mut cells.map(|cell| (document.local(cell), document.string_value(cell).into_owned())))?;
            }
            Ok(())
        })
    }

    /// CSV of rows of named cells. `each` passes the rows twice: first for the names, then for the values.
    fn of_rows(
        &self,
        custom: Option<Vec<String>>,
        separator: u8,
        each: impl Fn(EachRow<'_>) -> Result<(), Fault>,
    ) -> Result<Converted, Fault> {
        let mut columns = Columns::default();
        let mut is_empty = true;
        each(&mut |cells| {
            is_empty = false;
            columns.row(cells).map(|_| ())
        })?;
        // Rows without a cell are left out.
        let is_empty = is_empty || columns.names.is_empty();
        let header = custom.or((!is_empty).then_some(columns.names));
        let mut out = Output::new(self.operation(), separator);
        if let Some(header) = &header {
            out.row(&mut header.iter().map(String::as_str))?;
        }
        if is_empty {
            return out.end();
        }
        let mut columns = Columns::default();
        each(&mut |cells| {
            let row = columns.row(cells)?;
            out.row(&mut row.iter().map(String::as_str))
        })?;
        out.end()
    }

    /// Reads the CSV of the body. `with_header`: its header is a row too, unless it is skipped.
    fn table(&self, with_header: bool, context: &mut Context) -> Result<Table, Fault> {
        let separator = self.separator("valueSeparator", context)?;
        let present = self.parameters.text("headerPresent", context)?;
        let present = present
            .is_some_and(|value| value.eq_ignore_ascii_case("present") || value.eq_ignore_ascii_case("true"));
        let skip = self.number("dataRowsToSkip", context)?.unwrap_or(0);
        let skips_header = self.parameters.is_true("skipHeader", false, context)?;
        let columns = self.parameters.text("columnsToSkip", context)?;
        let limits = context.services().limits.clone();
        if context.payload.is_json() {
            return Err(self.fault("the body is JSON, and no CSV"));
        }
        let mut table = Table {
            operation: self.operation().to_owned(),
            text: context.payload.write(Format::Text, &limits)?,
            separator,
            header: None,
            header_is_row: with_header && !skips_header,
            ahead: skip.saturating_add(usize::from(present)),
            skipped: BTreeSet::new(),
        };
        if present {
            let mut record = StringRecord::new();
            if !table.next(&mut table.reader(), &mut record)? {
                return Err(self.fault("the body has no header"));
            }
            table.header = Some(record.iter().map(str::to_owned).collect());
        }
        if let Some(columns) = columns {
            // Rows may be longer than the header.
            let mut count = table.header.as_ref().map_or(0, Vec::len);
            table.each(|record, _| {
                count = count.max(record.len());
                Ok(())
            })?;
            table.skipped = skipped(&columns, count, table.header.as_deref())
                .map_err(|why| self.fault("columnsToSkip names no columns").because(why))?;
            if let Some(header) = &mut table.header {
                let mut at = 0;
                header.retain(|_| {
                    at += 1;
                    !table.skipped.contains(&at)
                });
            }
        }
        Ok(table)
    }

    fn operation(&self) -> &str {
        self.parameters.operation()
    }

    /// One character; words name those that XML does not preserve.
    fn separator(&self, name: &str, context: &mut Context) -> Result<u8, Fault> {
        let Some(value) = self.parameters.value(name, context)? else { return Ok(b',') };
        let text = value.to_string();
        separator(&text).ok_or_else(|| self.fault(&format!("{name} is not a character: {text}")))
    }

    fn number(&self, name: &str, context: &mut Context) -> Result<Option<usize>, Fault> {
        let Some(text) = self.parameters.text(name, context)? else { return Ok(None) };
        text.parse()
            .map(Some)
            .map_err(|_| self.fault(&format!("{name} is not a number of at least 0: {text}")))
    }

    fn list(&self, name: &str, context: &mut Context) -> Result<Option<Vec<String>>, Fault> {
        let text = self.parameters.text(name, context)?;
        Ok(text.map(|text| text.split(',').map(|item| item.trim().to_owned()).collect()))
    }

    fn fault(&self, why: &str) -> Fault {
        Fault::new(format!("{}: {why}", self.parameters.operation()))
    }
}

/// A callback for the cells of a row, by name.
type EachRow<'r> = &'r mut dyn FnMut(&mut dyn Iterator<Item = (&str, String)>) -> Result<(), Fault>;

/// CSV output.
struct Output {
    operation: String,
    writer: csv::Writer<Vec<u8>>,
    held: Held,
}

impl Output {
    fn new(operation: &str, separator: u8) -> Output {
        let mut writer = csv::WriterBuilder::new();
        writer.flexible(true).delimiter(separator);
        let writer = writer.from_writer(Vec::new());
        Output { operation: operation.to_owned(), writer, held: Held::NONE }
    }

    fn begin(
        conversion: &Conversion,
        header: Option<&Vec<String>>,
        context: &mut Context,
    ) -> Result<Output, Fault> {
        let separator = conversion.separator("customValueSeparator", context)?;
        let mut out = Output::new(conversion.operation(), separator);
        if let Some(header) = header {
            out.row(&mut header.iter().map(String::as_str))?;
        }
        Ok(out)
    }

    fn row(&mut self, cells: &mut dyn Iterator<Item = &str>) -> Result<(), Fault> {
        let mut count = 0;
        let written = self.writer.write_record(cells.inspect(|_| count += 1));
        written.map_err(|why| self.wrong(why.to_string()))?;
        spend(count)?;
        Ok(self.held.try_grow(self.writer.get_ref().capacity()).map_err(PayloadError::Shortage)?)
    }

    fn end(mut self) -> Result<Converted, Fault> {
        self.writer.flush().map_err(|why| self.wrong(why.to_string()))?;
        let Output { operation, writer, held } = self;
        let bytes = writer.into_inner().map_err(|why| {
            Fault::new(format!("{operation}: the CSV cannot be written")).because(why.to_string())
        })?;
        Ok(Converted { bytes, held, ..Converted::new(DataFormat::Csv) })
    }

    fn wrong(&self, why: String) -> Fault {
        Fault::new(format!("{}: the CSV cannot be written", self.operation)).because(why)
    }
}

/// The columns of named cells: each name is one, in the order of first occurrence.
#[derive(Default)]
struct Columns {
    names: Vec<String>,
    /// For each name the columns of its first, second, … occurrence in a row.
    places: HashMap<String, Vec<usize>>,
}

impl Columns {
    /// The cells of a row in the columns so far; an absent one is empty.
    fn row(&mut self, cells: &mut dyn Iterator<Item = (&str, String)>) -> Result<Vec<String>, Fault> {
        let mut row = vec![String::new(); self.names.len()];
        let mut so_far = HashMap::<String, usize>::new();
        for (name, cell) in cells {
            let nth = match so_far.get_mut(name) {
                Some(count) => {
                    *count += 1;
                    *count
                }
                None => {
                    so_far.insert(name.to_owned(), 0);
                    0
                }
            };
            let places = match self.places.get_mut(name) {
                Some(places) => places,
                None => self.places.entry(name.to_owned()).or_default(),
            };
            if nth == places.len() {
                places.push(self.names.len());
                self.names.push(name.to_owned());
                row.push(String::new());
            }
            row[places[nth]] = cell;
        }
        // A row that repeats few names may have many cells.
        spend(row.len())?;
        Ok(row)
    }
}

fn spend(cells: usize) -> Result<(), Fault> {
    Ok(meter::spend(cells as u64 * CELL)?)
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

/// Splits a text at separators outside of quotes and parentheses.
fn pieces(text: &str, separator: char) -> Vec<&str> {
    let (mut quoted, mut depth, mut from, mut pieces) = (false, 0_usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if c == separator && depth == 0 => {
                pieces.push(&text[from..at]);
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(&text[from..]);
    pieces
}

/// The columns of `1,3:5,!2,!(4,6),7:*,"name"`, from 1: numbers, ranges, names, and with `!` all other columns.
fn skipped(text: &str, count: usize, header: Option<&[String]>) -> Result<BTreeSet<usize>, String> {
    let mut columns = BTreeSet::new();
    let row = |text: &str, star: usize| -> Result<usize, String> {
        let text = text.trim();
        let name = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let position = |name: &str| header.and_then(|header| header.iter().position(|column| column == name));
        match (name, text) {
            (Some(name), _) => {
                position(name).map(|at| at + 1).ok_or_else(|| format!("there is no column {name}"))
            }
            (None, "*") => Ok(star),
            (None, text) => text.parse().map_err(|_| format!("`{text}` is not a column")),
        }
    };
    for term in pieces(text, ',').into_iter().map(str::trim).filter(|term| !term.is_empty()) {
        if let Some(rest) = term.strip_prefix('!') {
            let rest = rest.trim();
            let inside = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest);
            // No list within a list, which would bound the depth by the sender only.
            if pieces(inside, ',').iter().any(|piece| piece.trim().starts_with('!')) {
                return Err(format!("`{term}` is not a column"));
            }
            let kept = skipped(inside, count, header)?;
            columns.extend((1..=count).filter(|at| !kept.contains(at)));
            continue;
        }
        let (from, to) = match pieces(term, ':').as_slice() {
            ["*"] => (1, count),
            [from, to] => (row(from, 1)?, row(to, count)?),
            _ => {
                let at = row(term, count)?;
                (at, at)
            }
        };
        columns.extend(from..=to.min(count));
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns() {
        let header = ["a", "b", "c", "d"].map(str::to_owned);
        for (text, wanted) in [
            ("1", Some(vec![1])),
            ("2:3", Some(vec![2, 3])),
            ("3:*", Some(vec![3, 4])),
            ("!2", Some(vec![1, 3, 4])),
            ("\"b\",4", Some(vec![2, 4])),
            ("!(2:3)", Some(vec![1, 4])),
            ("9", Some(vec![])),
            ("1:99999999999", Some(vec![1, 2, 3, 4])),
            ("!(1,3)", Some(vec![2, 4])),
            ("!!2", None),
            ("!(1,!(2))", None),
            ("\"b,x\"", None),
            ("x", None),
            ("\"z\"", None),
        ] {
            let found = skipped(text, 4, Some(&header))
                .ok()
                .map(|skipped_rows| skipped_rows.into_iter().collect::<Vec<_>>());
            assert_eq!(found, wanted, "{text}");
        }
    }
}
