//! CSV as it is read, row by row, and the columns that are wanted of it.

use super::spend;
use bytes::Bytes;
use csv::{Position, StringRecord};
use flow::Fault;
use std::collections::BTreeSet;
use std::io::Cursor;

/// The CSV of the body, and which of its cells are wanted. Each pass reads it again, row by row.
pub(super) struct Table {
    pub(super) operation: String,
    pub(super) text: Bytes,
    pub(super) separator: u8,
    pub(super) header: Option<Vec<String>>,
    /// The header counts as a row too.
    pub(super) header_is_row: bool,
    /// Records ahead of the first row.
    pub(super) ahead: usize,
    /// Columns that are left out, from 1.
    pub(super) skipped: BTreeSet<usize>,
}

type Reader<'t> = csv::Reader<Cursor<&'t [u8]>>;

impl Table {
    pub(super) fn reader(&self) -> Reader<'_> {
        let mut reader = csv::ReaderBuilder::new();
        reader.has_headers(false).flexible(true).delimiter(self.separator);
        reader.from_reader(Cursor::new(&self.text[..]))
    }

    pub(super) fn next(&self, reader: &mut Reader<'_>, record: &mut StringRecord) -> Result<bool, Fault> {
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
    pub(super) fn each(
        &self,
        mut row: impl FnMut(&StringRecord, &Position) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
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
    pub(super) fn cells<'r>(&'r self, row: &'r StringRecord) -> impl Iterator<Item = &'r str> {
        let wanted = row.iter().enumerate().filter(|(at, _)| !self.skipped.contains(&(at + 1)));
        wanted.map(|(_, cell)| cell)
    }

    /// Calls back with the cells of each row, and with the header if it counts as a row.
    pub(super) fn each_cells(
        &self,
        mut row: impl FnMut(&mut dyn Iterator<Item = &str>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if let Some(header) = self.header.as_ref().filter(|_| self.header_is_row) {
            row(&mut header.iter().map(String::as_str))?;
        }
        self.each(|record, _| row(&mut self.cells(record)))
    }
}

/// The separator character.
pub(super) fn separator(text: &str) -> Option<u8> {
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
pub(super) fn skipped(
    text: &str,
    count: usize,
    header: Option<&[String]>,
) -> Result<BTreeSet<usize>, String> {
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
