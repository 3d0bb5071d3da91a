//! The CSV module: `CSV.csvToJson`, `csvToXml`, `csvToCsv`, `jsonToCsv`, `xmlToCsv`.
//!
//! They read the body and put the result into it, or into the variable that `responseVariable` names. Names of the module are accepted in
//! upper and in lower case. CSV is read and written row by row: the body and its result are in memory, and no table of cells.

mod converted;
mod from_csv;
mod table;
mod to_csv;

use self::converted::{Converted, deliver};
use self::from_csv::Types;
use self::table::{Table, separator, skipped};
use crate::operation::operation;
use crate::parameter::{Form, Parameters};
use crate::response::{OVERWRITE, Place, VARIABLE};
use config::Element;
use csv::StringRecord;
use flow::{Compiled, Compiler, Context, Definition, Fault, Flow, Mediator, Need};
use message::Format;
use std::collections::BTreeSet;

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

/// Units of work of one cell.
const CELL: u64 = 4;

fn spend(cells: usize) -> Result<(), Fault> {
    Ok(meter::spend(cells as u64 * CELL)?)
}
