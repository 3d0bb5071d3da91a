//! JSON and XML to CSV, and CSV as it is written.

use super::converted::Converted;
use super::{Conversion, spend};
use flow::{Context, Fault};
use message::PayloadError;
use message::memory::Held;
use serde_json::Value as Json;
use std::collections::HashMap;

impl Conversion {
    pub(super) fn of_json(&self, context: &mut Context) -> Result<Converted, Fault> {
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

    pub(super) fn of_xml(&self, context: &mut Context) -> Result<Converted, Fault> {
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
}

/// A callback for the cells of a row, by name.
type EachRow<'r> = &'r mut dyn FnMut(&mut dyn Iterator<Item = (&str, String)>) -> Result<(), Fault>;

/// CSV output.
pub(super) struct Output {
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

    pub(super) fn begin(
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

    pub(super) fn row(&mut self, cells: &mut dyn Iterator<Item = &str>) -> Result<(), Fault> {
        let mut count = 0;
        let written = self.writer.write_record(cells.inspect(|_| count += 1));
        written.map_err(|why| self.wrong(why.to_string()))?;
        spend(count)?;
        Ok(self.held.try_grow(self.writer.get_ref().capacity()).map_err(PayloadError::Shortage)?)
    }

    pub(super) fn end(mut self) -> Result<Converted, Fault> {
        self.writer.flush().map_err(|why| self.wrong(why.to_string()))?;
        let Output { operation, writer, held } = self;
        let bytes = writer.into_inner().map_err(|why| {
            Fault::new(format!("{operation}: the CSV cannot be written")).because(why.to_string())
        })?;
        Ok(Converted::csv(bytes, held))
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
