//! Files that are queried as tables: CSV, and sheets of workbooks (Excel, OpenDocument).

use crate::fault::{Trouble, code};
use crate::plan::{Table, TableForm};
use crate::sheet::Sheet;
use flow::NotDone;
use message::charset::Decoding;
use sql::{Columns, Row, Value};
use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The rows of a table, of at most `most` bytes.
pub(crate) async fn rows(table: &Table, query: &str, most: usize) -> Result<Vec<Row>, Trouble> {
    let (table_read, query) = (table.clone(), query.to_owned());
    let read = flow::on_thread(move || {
        read(&table_read, most).map_err(|why| {
            let reader = match table_read.form {
                TableForm::Lines { .. } => "CSVQuery",
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
        TableForm::Lines { separator, charset, is_said } => {
            // Reading stops beyond the limit, so that a value without an end is not read to it.
            let file = BufReader::new(file.take(most as u64 + (1 << 20)));
            let mut reader = csv::ReaderBuilder::new()
                .delimiter(*separator)
                .has_headers(false)
                .flexible(true)
                .from_reader(Decoding::new(file, *charset));
            let mut records = reader.byte_records();
            let mut number = 0;
            while let Some(record) = records.next() {
                let record = record.map_err(|error| error.to_string())?;
                number += 1;
                let values: Vec<_> =
                    record.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
                if records.reader().get_ref().has_replaced()
                    && values.iter().any(|value| value.contains('\u{FFFD}'))
                    && !is_said.swap(true, Relaxed)
                {
                    tracing::warn!(
                        target: "busbar::dataservice",
                        "{path}: row {number} is not in the charset of the file: what it does not have becomes U+FFFD; `csv_charset` names another charset"
                    );
                }
                if !rows.add(number, values.into_iter().map(Value::Text).collect())? {
                    break;
                }
            }
        }
        TableForm::Sheet(name) => {
            let mut bytes = Vec::new();
            let read = file.take(most as u64 + 1).read_to_end(&mut bytes);
            read.map_err(|error| format!("{path}: {error}"))?;
            let extension = table.file.extension().unwrap_or_default().to_string_lossy();
            let sheet = Sheet::read(bytes, &extension, name.as_deref(), most);
            let sheet = sheet.map_err(|why| format!("{path}: {why}"))?;
            let is_wanted = |number: usize| table.header == Some(number) || number >= table.first;
            for (number, values) in sheet.rows(is_wanted) {
                if !rows.add(number, values)? {
                    break;
                }
            }
        }
    }
    Ok(rows.rows)
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
