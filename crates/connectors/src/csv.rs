//! The CSV module: `CSV.csvToJson`, `csvToXml`, `csvToCsv`, `jsonToCsv`, `xmlToCsv`.
//!
//! They read the body and put the result into it, or into the variable that `responseVariable` names. Names of the module are accepted in
//! upper and in lower case.

use crate::operation::operation;
use crate::parameter::{Form, Parameters};
use crate::response::{OVERWRITE, Place, VARIABLE};
use crate::result;
use config::Element;
use flow::{Compiled, Compiler, Context, Definition, Fault, Flow, Mediator, Need};
use message::memory::Held;
use message::{Format, PayloadError, Reading, Value, memory};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeSet, HashMap, HashSet};
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

/// Rows of cells take so many times the bytes of the body, at most about.
const GROWTH: usize = 6;

/// How many bytes the body has, as far as that is known.
fn size(context: &Context) -> usize {
    context.payload.bytes().map_or(0, |bytes| bytes.len())
}

/// Units of work of one cell.
const CELL: u64 = 4;

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

/// Reports values that are wrong for every message.
fn check(parameters: &Parameters, element: &Element, compiler: &mut Compiler<'_>) {
    parameters.check_word("headerPresent", &["Present", "Absent", "true", "false"], element, compiler);
    parameters.check_word("csvEmptyValues", &["Null", "Empty"], element, compiler);
    parameters.check_word("columnOrdering", &["Ascending", "Descending"], element, compiler);
    parameters.check_truths(&["skipHeader", "suppressEscapeCharacters"], element, compiler);
    parameters.check_numbers(&["dataRowsToSkip", "orderByColumn"], element, compiler);
    for name in ["valueSeparator", "customValueSeparator"] {
        parameters.check(name, element, compiler, |text| {
            separator(text).map(|_| ()).ok_or_else(|| "expected one character, `tab` or `space`".to_owned())
        });
    }
    parameters.check("columnsToSkip", element, compiler, |text| match text.contains('"') {
        // Which names there are, the message says.
        true => Ok(()),
        false => skipped(text, 1, None).map(|_| ()),
    });
    parameters.check("dataTypes", element, compiler, |text| {
        let known = ["string", "number", "integer", "boolean", ""];
        let wrong = text.split(',').map(str::trim).find(|own| !known.contains(&&*own.to_ascii_lowercase()));
        wrong.map_or(Ok(()), |own| {
            Err(format!("`{own}` is no type: expected string, number, integer, boolean"))
        })
    });
}

/// The character of a separator.
fn separator(text: &str) -> Option<u8> {
    match (text, text.trim()) {
        ("\t", _) | (_, "tab" | "TAB" | "\\t") => Some(b'\t'),
        (_, "space" | "SPACE") => Some(b' '),
        (_, "") => Some(b','),
        (_, one) if one.len() == 1 && one.is_ascii() && one != "\"" => Some(one.as_bytes()[0]),
        _ => None,
    }
}

/// Rows of cells.
type Rows = Vec<Vec<String>>;

/// CSV that was read, and what is to become of it.
struct Table {
    header: Option<Vec<String>>,
    rows: Rows,
}

/// What a conversion gives.
enum Converted {
    Json(Json),
    Xml(String),
    Csv(String),
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
        let _held = memory::try_hold(GROWTH * size(context)).map_err(PayloadError::Shortage)?;
        let converted = self.convert(context)?;
        deliver(converted, place, context)?;
        Ok(Flow::Next)
    }
}

fn deliver(converted: Converted, place: Place, context: &mut Context) -> Result<(), Fault> {
    let payload = match &converted {
        Converted::Json(json) => json.clone(),
        Converted::Xml(text) | Converted::Csv(text) => Json::from(text.as_str()),
    };
    let (variable, map) = match place {
        Place::Variable(name) => (Some(name), json!({ "payload": payload, "headers": {}, "attributes": {} })),
        Place::BodyAndVariable(ref name) => {
            (Some(Arc::clone(name)), json!({ "headers": {}, "attributes": {} }))
        }
        Place::Body => (None, Json::Null),
    };
    let keeps_body = variable.is_some() && map.get("payload").is_some();
    if let Some(name) = variable {
        context.variables.set(name, Value::Json(Arc::new(map)));
    }
    if keeps_body {
        return Ok(());
    }
    match converted {
        Converted::Json(json) => {
            context.payload.set_json_value(json);
            context.set_axis2("messageType", Value::from("application/json"));
        }
        Converted::Xml(text) => result::set_xml(&text, context)?,
        Converted::Csv(text) => {
            let reading = Reading::of(Some("text/csv"), None, context.is_rest());
            context.payload.set_bytes(text, reading);
            context.set_axis2("messageType", Value::from("text/csv"));
        }
    }
    Ok(())
}

impl Conversion {
    fn convert(&self, context: &mut Context) -> Result<Converted, Fault> {
        Ok(match self.way {
            Way::ToJson => Converted::Json(self.to_json(context)?),
            Way::ToXml => Converted::Xml(self.to_xml(context)?),
            Way::ToCsv => Converted::Csv(self.to_csv(context)?),
            Way::FromJson => Converted::Csv(self.of_json(context)?),
            Way::FromXml => Converted::Csv(self.of_xml(context)?),
        })
    }

    fn to_json(&self, context: &mut Context) -> Result<Json, Fault> {
        let table = self.table(true, context)?;
        let types = self.list("dataTypes", context)?.unwrap_or_default();
        let keys = unique(self.list("jsonKeys", context)?.or(table.header).unwrap_or_default());
        let empty = self.parameters.text("csvEmptyValues", context)?.unwrap_or_default();
        let empty = if empty.eq_ignore_ascii_case("empty") { Json::from("") } else { Json::Null };
        let mut list = Vec::with_capacity(table.rows.len());
        for row in table.rows {
            spend(row.len())?;
            let mut object = Map::new();
            for (at, cell) in row.into_iter().enumerate() {
                let value = match cell.trim().is_empty() {
                    true => empty.clone(),
                    false => typed(cell, types.get(at).map(String::as_str)),
                };
                object.insert(key_of(&keys, at), value);
            }
            list.push(Json::Object(object));
        }
        let list = Json::Array(list);
        Ok(match self.parameters.text("rootJsonKey", context)? {
            Some(root) => Json::Object([(root, list)].into_iter().collect()),
            None => list,
        })
    }

    fn to_xml(&self, context: &mut Context) -> Result<String, Fault> {
        let table = self.table(true, context)?;
        let names = self.list("tagNames", context)?.or(table.header).unwrap_or_default();
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
        let mut out = format!("<{root}>");
        for row in table.rows {
            spend(row.len())?;
            out.push_str(&format!("<{group}>"));
            for (at, cell) in row.iter().enumerate() {
                let name = key_of(&names, at);
                let name = name.trim();
                out.push_str(&format!("<{name}>{}</{name}>", result::escaped(cell)));
            }
            out.push_str(&format!("</{group_end}>"));
        }
        out.push_str(&format!("</{root_end}>"));
        // A name of a column may be none of an element.
        result::element(&out).map_err(|why| self.fault("the result is no XML").because(why))?;
        Ok(out)
    }

    fn to_csv(&self, context: &mut Context) -> Result<String, Fault> {
        let mut table = self.table(false, context)?;
        if let Some(column) = self.number("orderByColumn", context)? {
            let Some(at) = column.checked_sub(1) else {
                return Err(self.fault("orderByColumn is a column from 1"));
            };
            table.rows.sort_by(|a, b| {
                let cell = |row: &Vec<String>| row.get(at).cloned().unwrap_or_default();
                cell(a).cmp(&cell(b))
            });
            let order = self.parameters.text("columnOrdering", context)?.unwrap_or_default();
            if order.eq_ignore_ascii_case("descending") {
                table.rows.reverse();
            }
        }
        let skips_header = self.parameters.is_true("skipHeader", false, context)?;
        let header = match self.list("customHeader", context)? {
            Some(header) => Some(header),
            None => table.header.filter(|_| !skips_header),
        };
        self.written(header, table.rows, context)
    }

    fn of_json(&self, context: &mut Context) -> Result<String, Fault> {
        let custom = self.list("customHeader", context)?;
        let limits = context.services().limits.clone();
        let value = context.payload.as_json(&limits)?;
        let Json::Array(items) = value else { return Err(self.fault("the body is no list of JSON objects")) };
        let mut columns = Columns::default();
        for item in items {
            let Json::Object(members) = item else {
                return Err(self.fault("the body is no list of JSON objects"));
            };
            let cell = |value: Json| match value {
                Json::String(text) => text,
                Json::Null => String::new(),
                other => other.to_string(),
            };
            columns.add(members.into_iter().map(|(name, value)| (name, cell(value))))?;
        }
        self.written(custom.or(columns.header()), columns.rows, context)
    }

    fn of_xml(&self, context: &mut Context) -> Result<String, Fault> {
        let custom = self.list("customHeader", context)?;
        let mut columns = Columns::default();
        let envelope = context.envelope()?;
        let document = &envelope.document;
        let Some(root) = envelope.payload() else { return Err(self.fault("the body has no element")) };
        for group in envelope.elements_of(root) {
            let cells = envelope.elements_of(group);
            columns.add(
                cells.map(|cell| (document.local(cell).to_owned(), document.string_value(cell).into_owned())),
            )?;
        }
        self.written(custom.or(columns.header()), columns.rows, context)
    }

    /// The CSV in the body. `with_header`: its header is a row too, unless it is skipped.
    fn table(&self, with_header: bool, context: &mut Context) -> Result<Table, Fault> {
        let separator = self.separator("valueSeparator", context)?;
        let present = self.parameters.text("headerPresent", context)?;
        let present = present
            .is_some_and(|own| own.eq_ignore_ascii_case("present") || own.eq_ignore_ascii_case("true"));
        let skip = self.number("dataRowsToSkip", context)?.unwrap_or(0);
        let skips_header = self.parameters.is_true("skipHeader", false, context)?;
        let columns = self.parameters.text("columnsToSkip", context)?;
        let limits = context.services().limits.clone();
        if context.payload.is_json() {
            return Err(self.fault("the body is JSON, and no CSV"));
        }
        let text = context.payload.write(Format::Text, &limits)?;
        let mut reader = csv::ReaderBuilder::new();
        reader.has_headers(false).flexible(true).delimiter(separator);
        let (mut header, mut rows, mut number) = (None, Vec::new(), 0);
        for record in reader.from_reader(&text[..]).records() {
            let record = record.map_err(|why| self.fault("the body is no CSV").because(why.to_string()))?;
            spend(record.len())?;
            let row: Vec<String> = record.iter().map(str::to_owned).collect();
            if present && header.is_none() {
                header = Some(row);
                continue;
            }
            number += 1;
            if number > skip {
                rows.push(row);
            }
        }
        if present && header.is_none() {
            return Err(self.fault("the body has no header"));
        }
        if with_header
            && !skips_header
            && let Some(header) = &header
        {
            rows.insert(0, header.clone());
        }
        if let Some(columns) = columns {
            // Rows may be longer than their header.
            let count = header.iter().chain(&rows).map(Vec::len).max().unwrap_or_default();
            let skipped = skipped(&columns, count, header.as_deref())
                .map_err(|why| self.fault("columnsToSkip names no columns").because(why))?;
            let keep = |row: &mut Vec<String>| {
                let mut at = 0;
                row.retain(|_| {
                    at += 1;
                    !skipped.contains(&at)
                });
            };
            header.iter_mut().chain(&mut rows).for_each(keep);
        }
        Ok(Table { header, rows })
    }

    fn written(
        &self,
        header: Option<Vec<String>>,
        rows: Rows,
        context: &mut Context,
    ) -> Result<String, Fault> {
        let mut writer = csv::WriterBuilder::new();
        writer.flexible(true).delimiter(self.separator("customValueSeparator", context)?);
        let mut writer = writer.from_writer(Vec::new());
        for row in header.iter().chain(&rows) {
            spend(row.len())?;
            writer
                .write_record(row)
                .map_err(|why| self.fault("the CSV cannot be written").because(why.to_string()))?;
        }
        let bytes = writer
            .into_inner()
            .map_err(|why| self.fault("the CSV cannot be written").because(why.to_string()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// One character; words for those that XML does not keep.
    fn separator(&self, name: &str, context: &mut Context) -> Result<u8, Fault> {
        let Some(value) = self.parameters.value(name, context)? else { return Ok(b',') };
        let text = value.to_string();
        separator(&text).ok_or_else(|| self.fault(&format!("{name} is no character: {text}")))
    }

    fn number(&self, name: &str, context: &mut Context) -> Result<Option<usize>, Fault> {
        let Some(text) = self.parameters.text(name, context)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.fault(&format!("{name} is no number of at least 0: {text}")))
    }

    fn list(&self, name: &str, context: &mut Context) -> Result<Option<Vec<String>>, Fault> {
        let text = self.parameters.text(name, context)?;
        Ok(text.map(|text| text.split(',').map(|one| one.trim().to_owned()).collect()))
    }

    fn fault(&self, why: &str) -> Fault {
        Fault::new(format!("{}: {why}", self.parameters.operation()))
    }
}

/// Rows of named cells on their way to CSV: each name is a column, in the order in which they come.
#[derive(Default)]
struct Columns {
    names: Vec<String>,
    /// By name, and which one of this name in its row.
    places: HashMap<(String, usize), usize>,
    rows: Rows,
    bytes: usize,
    held: Held,
}

impl Columns {
    fn add(&mut self, cells: impl Iterator<Item = (String, String)>) -> Result<(), Fault> {
        let (mut row, mut so_far) = (Vec::new(), HashMap::<String, usize>::new());
        for (name, cell) in cells {
            let nth = so_far.entry(name.clone()).or_default();
            let place = *self.places.entry((name.clone(), *nth)).or_insert_with(|| {
                self.names.push(name);
                self.names.len() - 1
            });
            *nth += 1;
            self.bytes += cell.len();
            if row.len() <= place {
                self.hold(place + 1 - row.len())?;
                row.resize(place + 1, String::new());
            }
            row[place] = cell;
        }
        // A cell that is absent is an empty one.
        self.hold(self.names.len() - row.len())?;
        row.resize(self.names.len(), String::new());
        self.rows.push(row);
        Ok(())
    }

    /// Counts cells before they are made: a few names in many rows may be many cells.
    fn hold(&mut self, cells: usize) -> Result<(), Fault> {
        spend(cells)?;
        self.bytes += cells * size_of::<String>();
        Ok(self.held.try_grow(self.bytes).map_err(PayloadError::Shortage)?)
    }

    /// The names; `None`: there are no rows.
    fn header(&mut self) -> Option<Vec<String>> {
        (!self.rows.is_empty()).then(|| std::mem::take(&mut self.names))
    }
}

fn spend(cells: usize) -> Result<(), Fault> {
    Ok(meter::spend(cells as u64 * CELL)?)
}

fn key_of(keys: &[String], at: usize) -> String {
    keys.get(at).filter(|key| !key.trim().is_empty()).cloned().unwrap_or_else(|| format!("key-{}", at + 1))
}

/// Keys of which none is there twice: a later one is `key-N`, so that no column takes the place of another.
fn unique(keys: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut unique = Vec::with_capacity(keys.len());
    for at in 0..keys.len() {
        let mut key = key_of(&keys, at);
        if seen.contains(&key) {
            key = key_of(&[], at);
        }
        while seen.contains(&key) {
            key.push('_');
        }
        seen.insert(key.clone());
        unique.push(key);
    }
    unique
}

/// A cell as its type; what is none of it stays a text.
fn typed(cell: String, kind: Option<&str>) -> Json {
    let number =
        |own: Option<serde_json::Number>| own.map_or_else(|| Json::from(cell.as_str()), Json::Number);
    match kind.map(str::to_ascii_lowercase).as_deref() {
        // What is a number of JSON keeps its digits.
        Some("number") => number(
            cell.trim()
                .parse()
                .ok()
                .or_else(|| cell.trim().parse::<f64>().ok().and_then(serde_json::Number::from_f64)),
        ),
        Some("integer") => number(cell.trim().parse::<i64>().ok().map(Into::into)),
        Some("boolean") => match cell.trim().to_ascii_lowercase().as_str() {
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            _ => Json::from(cell.as_str()),
        },
        _ => Json::from(cell.as_str()),
    }
}

/// The pieces of a text between separators, but for those between quotes or parentheses.
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

/// The columns of `1,3:5,!2,!(4,6),7:*,"name"`, from 1: numbers, ranges, names, and all but those behind `!`.
fn skipped(text: &str, count: usize, header: Option<&[String]>) -> Result<BTreeSet<usize>, String> {
    let mut columns = BTreeSet::new();
    let one = |text: &str, star: usize| -> Result<usize, String> {
        let text = text.trim();
        let name = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let position = |name: &str| header.and_then(|header| header.iter().position(|own| own == name));
        match (name, text) {
            (Some(name), _) => {
                position(name).map(|at| at + 1).ok_or_else(|| format!("there is no column {name}"))
            }
            (None, "*") => Ok(star),
            (None, text) => text.parse().map_err(|_| format!("`{text}` is no column")),
        }
    };
    for term in pieces(text, ',').into_iter().map(str::trim).filter(|term| !term.is_empty()) {
        if let Some(rest) = term.strip_prefix('!') {
            let rest = rest.trim();
            let inside = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest);
            // No list within a list: whoever sends the text does not say how deep.
            if pieces(inside, ',').iter().any(|one| one.trim().starts_with('!')) {
                return Err(format!("`{term}` is no column"));
            }
            let kept = skipped(inside, count, header)?;
            columns.extend((1..=count).filter(|at| !kept.contains(at)));
            continue;
        }
        let (from, to) = match pieces(term, ':').as_slice() {
            ["*"] => (1, count),
            [from, to] => (one(from, 1)?, one(to, count)?),
            _ => {
                let at = one(term, count)?;
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
            let found = skipped(text, 4, Some(&header)).ok().map(|own| own.into_iter().collect::<Vec<_>>());
            assert_eq!(found, wanted, "{text}");
        }
    }
}
