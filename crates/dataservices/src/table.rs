//! Files that are queried as tables: CSV, and sheets of workbooks (Excel, OpenDocument).

use crate::fault::{Trouble, code};
use crate::plan::{Table, TableForm};
use calamine::{Data, Reader, open_workbook_auto_from_rs};
use flow::NotDone;
use sql::{Columns, Row, Value};
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::sync::Arc;

/// The rows of a table, of at most `most` bytes.
pub(crate) async fn rows(table: &Table, query: &str, most: usize) -> Result<Vec<Row>, Trouble> {
    let (table_read, query) = (table.clone(), query.to_owned());
    let read = flow::on_thread(move || {
        read(&table_read, most).map_err(|why| {
            let reader = match table_read.form {
                TableForm::Lines(_) => "CSVQuery",
                TableForm::Sheet(_) => "ExcelQuery",
            };
            let message = format!("Error in '{reader}.runQuery' of the query {query}: {why}");
            Trouble::new(code::DATABASE, message)
        })
    });
    read.await.unwrap_or_else(|why| {
        let status = if why == NotDone::NoThread { 503 } else { 500 };
        Err(Trouble { status, ..Trouble::new(code::UNKNOWN, why.to_string()) })
    })
}

fn read(table: &Table, most: usize) -> Result<Vec<Row>, String> {
    let path = table.file.display();
    // Opening a pipe would wait for a writer.
    if !std::fs::metadata(&table.file).map_err(|error| format!("{path}: {error}"))?.is_file() {
        return Err(format!("{path}: it is not a file"));
    }
    let file = File::open(&table.file).map_err(|error| format!("{path}: {error}"))?;
    let mut rows = Rows { table, columns: None, rows: Vec::new(), size: 0, most };
    match &table.form {
        TableForm::Lines(separator) => {
            // Reading stops beyond the limit, so that a value without an end is not read to it.
            let file = BufReader::new(file.take(most as u64 + (1 << 20)));
            let mut reader = csv::ReaderBuilder::new()
                .delimiter(*separator)
                .has_headers(false)
                .flexible(true)
                .from_reader(file);
            for (number, record) in reader.byte_records().enumerate() {
                let record = record.map_err(|error| error.to_string())?;
                let text =
                    |value: &[u8]| String::from_utf8_lossy(value).trim_start_matches('\u{FEFF}').to_owned();
                let values = record.iter().map(|value| Value::Text(text(value))).collect();
                if !rows.add(number + 1, values)? {
                    break;
                }
            }
        }
        TableForm::Sheet(name) => {
            let mut bytes = Vec::new();
            let read = file.take(most as u64 + 1).read_to_end(&mut bytes);
            read.map_err(|error| format!("{path}: {error}"))?;
            if bytes.len() > most {
                return Err(format!("{path} has more than {most} bytes"));
            }
            let mut book =
                open_workbook_auto_from_rs(Cursor::new(bytes)).map_err(|error| format!("{path}: {error}"))?;
            let sheet_names = book.sheet_names();
            let found = match name {
                None => sheet_names.first(),
                Some(name) => sheet_names.iter().find(|sheet_name| sheet_name.eq_ignore_ascii_case(name)),
            };
            let Some(sheet) = found.cloned() else {
                return Err(format!(
                    "{path} has no sheet {}: {}",
                    name.as_deref().unwrap_or_default(),
                    sheet_names.join(", ")
                ));
            };
            let range = book.worksheet_range(&sheet).map_err(|error| format!("{path}: {error}"))?;
            // A range begins with its first cell that is not empty; rows and columns count from that of the sheet.
            let (down, right) = range.start().unwrap_or_default();
            for (number, cells) in range.rows().enumerate() {
                let left = std::iter::repeat_n(Value::Null, right as usize);
                let values = left.chain(cells.iter().map(cell)).collect();
                if !rows.add(down as usize + number + 1, values)? {
                    break;
                }
            }
        }
    }
    Ok(rows.rows)
}

/// The value of a cell: whole numbers without a decimal point, dates and times as databases write them.
fn cell(cell: &Data) -> Value {
    match cell {
        Data::Empty | Data::Error(_) => Value::Null,
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => Value::Text(text.clone()),
        Data::Int(number) => Value::Integer(*number),
        Data::Bool(truth) => Value::Boolean(*truth),
        Data::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => Value::Integer(*number as i64),
        Data::Float(number) => Value::Double(*number),
        Data::DateTime(at) if at.is_datetime() => {
            let (year, month, day, hour, minute, second, _) = at.to_ymd_hms_milli();
            let day = format!("{year:04}-{month:02}-{day:02}");
            match (hour, minute, second) {
                (0, 0, 0) => Value::Date(day),
                _ => Value::Timestamp(format!("{day} {hour:02}:{minute:02}:{second:02}.0")),
            }
        }
        Data::DateTime(span) => Value::Double(span.as_f64()),
        // Variants that a later version of the library may add.
        #[allow(unreachable_patterns)]
        other => Value::Text(other.to_string()),
    }
}

/// The rows of a file so far.
struct Rows<'a> {
    table: &'a Table,
    columns: Option<Arc<Columns>>,
    rows: Vec<Row>,
    size: usize,
    most: usize,
}

impl Rows<'_> {
    /// Adds a row by its number from 1; `false`: no more are wanted.
    fn add(&mut self, number: usize, values: Vec<Value>) -> Result<bool, String> {
        if self.table.header == Some(number) {
            let names = values.into_iter().map(|value| value.text().unwrap_or_default().trim().to_owned());
            self.columns = Some(Arc::new(Columns::new(names.collect())));
            return Ok(true);
        }
        if number < self.table.first {
            return Ok(true);
        }
        if self.rows.len() >= self.table.most {
            return Ok(false);
        }
        let numbered =
            || Arc::new(Columns::new((1..=values.len()).map(|number| number.to_string()).collect()));
        let columns = Arc::clone(self.columns.get_or_insert_with(numbered));
        // A row that is too short has NULL in its last columns.
        let mut values = values;
        values.resize(columns.names().len(), Value::Null);
        let row = Row { columns, values };
        self.size += row.size();
        if self.size > self.most {
            return Err(format!("{} has more than {} bytes", self.table.file.display(), self.most));
        }
        self.rows.push(row);
        Ok(true)
    }
}
