//! Sheets of workbooks (Excel, OpenDocument) within limits: a few bytes of such a file can stand for gigabytes, because it is compressed and
//! because the cells of a sheet may be anywhere.

use calamine::{Data, DataRef, Reader, Sheets, open_workbook_auto_from_rs, open_workbook_from_rs};
use sql::Value;
use std::io::{Cursor, Read};
use zip::ZipArchive;

/// How many times larger than a workbook may be what is compressed in it.
const UNPACKED: u64 = 4;

/// Approximate memory of a shared string without its text, in bytes, and so much of a part with them as must contain the tag of its element.
const TEXT: u64 = 24;
const HEAD: u64 = 64 << 10;

/// Approximate memory of a cell beside its text, in bytes.
const CELL: usize = 48;

/// Most rows and columns of a sheet, which are those of Excel.
const ROWS: u32 = 1 << 20;
const COLUMNS: u32 = 1 << 14;

/// A cell: its row and column from 0, and its value.
type Cell = (u32, u32, Data);

/// The cells of a sheet that are not empty, in order.
pub(crate) struct Sheet(Vec<Cell>);

impl Sheet {
    /// Reads a sheet, the first one if it has no name; the workbook may have `most` bytes, and its cells as many. `extension` is that of its
    /// file: where it names a form whose cells can be counted, the workbook must be of that form.
    ///
    /// # Errors
    /// It is no workbook, has no such sheet, or is too large.
    pub fn read(bytes: Vec<u8>, extension: &str, name: Option<&str>, most: usize) -> Result<Sheet, String> {
        if bytes.len() > most {
            return Err(format!("it has more than {most} bytes"));
        }
        check_unpacked(&bytes, (most as u64).saturating_mul(UNPACKED))?;
        let bytes = Cursor::new(bytes);
        let mut book = match extension.to_ascii_lowercase().as_str() {
            "xlsx" | "xlsm" => Sheets::Xlsx(
                open_workbook_from_rs(bytes).map_err(|error: calamine::XlsxError| error.to_string())?,
            ),
            "xlsb" => Sheets::Xlsb(
                open_workbook_from_rs(bytes).map_err(|error: calamine::XlsbError| error.to_string())?,
            ),
            _ => open_workbook_auto_from_rs(bytes).map_err(|error| error.to_string())?,
        };
        let names = book.sheet_names();
        let found = match name {
            None => names.first(),
            Some(name) => names.iter().find(|sheet| sheet.eq_ignore_ascii_case(name)),
        };
        let Some(sheet) = found else {
            return Err(format!("it has no sheet {}: {}", name.unwrap_or_default(), names.join(", ")));
        };
        let mut cells = Cells { all: Vec::new(), left: most, most };
        match &mut book {
            Sheets::Xlsx(book) => match book.worksheet_cells_reader(sheet) {
                Ok(mut reader) => {
                    while let Some(cell) = reader.next_cell().map_err(|error| error.to_string())? {
                        cells.add_lent(cell.get_position(), cell.get_value())?;
                    }
                }
                // A chart.
                Err(calamine::XlsxError::NotAWorksheet(_)) => {}
                Err(error) => return Err(error.to_string()),
            },
            Sheets::Xlsb(book) => {
                let mut reader = book.worksheet_cells_reader(sheet).map_err(|error| error.to_string())?;
                while let Some(cell) = reader.next_cell().map_err(|error| error.to_string())? {
                    cells.add_lent(cell.get_position(), cell.get_value())?;
                }
            }
            Sheets::Xls(_) | Sheets::Ods(_) => {
                let range = book.worksheet_range(sheet).map_err(|error| error.to_string())?;
                let (down, right) = range.start().unwrap_or_default();
                for (row, column, value) in range.used_cells() {
                    let text = match value {
                        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => text.len(),
                        _ => 0,
                    };
                    cells.add((down + row as u32, right + column as u32), text, || value.clone())?;
                }
            }
        }
        // The last one of several at one place counts.
        cells.all.reverse();
        cells.all.sort_by_key(|&(row, column, _)| (row, column));
        cells.all.dedup_by_key(|&mut (row, column, _)| (row, column));
        Ok(Sheet(cells.all))
    }

    /// Its rows from the first one that is not empty to the last: the number from 1, and the values of `wanted` ones from the first column on.
    /// All are as long as the longest.
    pub fn rows(&self, wanted: impl Fn(usize) -> bool) -> impl Iterator<Item = (usize, Vec<Value>)> {
        let mut rest = self.0.as_slice();
        let (first, last) = (rest.first().map_or(1, |cell| cell.0), rest.last().map_or(0, |cell| cell.0));
        let width = rest.iter().map(|cell| cell.1 as usize + 1).max().unwrap_or_default();
        (first..=last).filter_map(move |row| {
            let length = rest.iter().take_while(|cell| cell.0 == row).count();
            let (cells, behind) = rest.split_at(length);
            rest = behind;
            let number = row as usize + 1;
            wanted(number).then(|| {
                let mut values = vec![Value::Null; width];
                for (_, column, data) in cells {
                    values[*column as usize] = value(data);
                }
                (number, values)
            })
        })
    }
}

/// Cells that are read.
struct Cells {
    all: Vec<Cell>,
    /// Bytes that they may still take, of this many.
    left: usize,
    most: usize,
}

impl Cells {
    fn add_lent(&mut self, at: (u32, u32), value: &DataRef<'_>) -> Result<(), String> {
        let text = match value {
            DataRef::Empty => return Ok(()),
            DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text.len(),
            DataRef::SharedString(text) => text.len(),
            _ => 0,
        };
        self.add(at, text, || value.clone().into())
    }

    /// Adds a cell; its text has so many bytes.
    fn add(
        &mut self,
        (row, column): (u32, u32),
        text: usize,
        value: impl FnOnce() -> Data,
    ) -> Result<(), String> {
        if row >= ROWS || column >= COLUMNS {
            return Err(format!("a cell is beyond row {ROWS} or column {COLUMNS}"));
        }
        let too_large = || format!("its cells have more than {} bytes", self.most);
        self.left = self.left.checked_sub(CELL + text).ok_or_else(too_large)?;
        self.all.push((row, column, value()));
        Ok(())
    }
}

/// Checks how large the files in a zip file are. What they say of that themselves does not count.
fn check_unpacked(bytes: &[u8], most: u64) -> Result<(), String> {
    if !bytes.starts_with(b"PK") {
        return Ok(());
    }
    let broken = |error: &dyn std::fmt::Display| format!("it is not a readable zip file: {error}");
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    let mut left = most;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| broken(&error))?;
        let name = entry.name().map_err(|error| broken(&error))?;
        let has_texts = name.to_ascii_lowercase().ends_with("sharedstrings.xml");
        let (mut entry, mut head) = (entry.take(left + 1), Vec::new());
        if has_texts {
            entry.by_ref().take(HEAD).read_to_end(&mut head).map_err(|error| broken(&error))?;
            match texts(&head) {
                Some(count) if count <= most / TEXT => {}
                Some(count) => return Err(format!("it claims to have {count} texts")),
                None => return Err("its shared strings do not begin as they should".to_owned()),
            }
        }
        let read = std::io::copy(&mut entry, &mut std::io::sink());
        let size = head.len() as u64 + read.map_err(|error| broken(&error))?;
        left = left.checked_sub(size).ok_or_else(|| format!("what is in it has more than {most} bytes"))?;
    }
    Ok(())
}

/// How many texts a part with shared strings claims to have: the library makes room for so many at once, whatever the part really has. `None`:
/// it does not begin with its element in UTF-8, so that its count could stand anywhere.
fn texts(head: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(head);
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    if let Some(declaration) = rest.strip_prefix("<?xml") {
        let (declared, behind) = declaration.split_once("?>")?;
        let declared = declared.to_ascii_lowercase();
        if declared.contains("encoding") && !declared.contains("utf-8") {
            return None;
        }
        rest = behind.trim_start();
    }
    let tag = rest.strip_prefix('<')?;
    let mut quote = None;
    let end = tag.find(|c: char| {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
        c == '>' && quote.is_none()
    });
    let tag = tag.get(..end?)?;
    let name = tag.split(|c: char| c.is_whitespace() || c == '/').next()?;
    if name.rsplit(':').next() != Some("sst") {
        return None;
    }
    let Some((_, count)) = tag.split_once("uniqueCount") else { return Some(0) };
    let count = count.trim_start().strip_prefix('=')?.trim_start();
    let digits = count.get(1..)?.split(['"', '\'']).next()?;
    // What is no number is not used.
    Some(digits.trim().parse().unwrap_or(if digits.bytes().any(|b| b.is_ascii_digit()) {
        u64::MAX
    } else {
        0
    }))
}

/// The value of a cell: whole numbers without a decimal point, dates and times as databases write them.
fn value(cell: &Data) -> Value {
    match cell {
        Data::Empty | Data::Error(_) => Value::Null,
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => Value::Text(text.clone()),
        Data::Int(number) => Value::Integer(*number),
        Data::Bool(truth) => Value::Boolean(*truth),
        Data::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => Value::Integer(*number as i64),
        Data::Float(number) => Value::Double(*number),
        Data::DateTime(at) if at.is_datetime() => {
            let (year, month, day, hour, minute, second, milli) = at.to_ymd_hms_milli();
            let day = format!("{year:04}-{month:02}-{day:02}");
            if (hour, minute, second, milli) == (0, 0, 0, 0) {
                return Value::Date(day);
            }
            let milli = format!("{milli:03}");
            let fraction =
                Some(milli.trim_end_matches('0')).filter(|digits| !digits.is_empty()).unwrap_or("0");
            Value::Timestamp(format!("{day} {hour:02}:{minute:02}:{second:02}.{fraction}"))
        }
        Data::DateTime(span) => Value::Double(span.as_f64()),
        // Variants that a later version of the library may add.
        #[allow(unreachable_patterns)]
        other => Value::Text(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_compressed_has_a_bound_in_all() {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for name in ["a", "b"] {
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(&[b' '; 50_000]).unwrap();
        }
        let bytes = zip.finish().unwrap().into_inner();
        assert!(bytes.len() < 1000);
        assert_eq!(check_unpacked(&bytes, 100_000), Ok(()));
        assert_eq!(check_unpacked(&bytes, 99_999).unwrap_err(), "what is in it has more than 99999 bytes");
        assert!(check_unpacked(&bytes[..bytes.len() - 30], 100_000).is_err());
        let refused = Sheet::read(bytes, "xlsx", None, 1000).err();
        assert_eq!(refused.as_deref(), Some("what is in it has more than 4000 bytes"));
    }

    /// The library makes room for as many texts as the workbook claims to have: a number is enough to end the process.
    #[test]
    fn claimed_texts_have_a_bound() {
        let book = |strings: &[u8]| {
            let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
            zip.start_file("xl/SharedStrings.xml", zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(strings).unwrap();
            zip.finish().unwrap().into_inner()
        };
        let of = |strings: &str| check_unpacked(&book(strings.as_bytes()), 1 << 20);
        for good in [
            "<sst/>",
            "<?xml version='1.0' encoding='UTF-8'?>\n<x:sst xmlns:x='urn:x' count='9' uniqueCount='40000'>",
            "\u{feff}<sst uniqueCount=\"\"></sst>",
            "<sst uniqueCount='many'></sst>",
        ] {
            assert_eq!(of(good), Ok(()), "{good}");
        }
        for claims in [
            "<sst uniqueCount='4294967295'>",
            "<sst uniqueCount='50000'>",
            "<sst a='' uniqueCount = \"99999999999999999999999\">",
            "<sst uniqueCount=' 4294967295'>",
            "<sst a='>' uniqueCount='4294967295'>",
            "<sst uniqueCount='+4294967295'>",
        ] {
            assert!(of(claims).unwrap_err().starts_with("it claims to have"), "{claims}");
        }
        let utf16: Vec<u8> =
            "\u{feff}<sst uniqueCount='4294967295'>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for hidden in [
            b"<!-- <sst> --><sst uniqueCount='4294967295'>".to_vec(),
            b"<a><sst uniqueCount='4294967295'>".to_vec(),
            b"<?xml version='1.0' encoding='ISO-2022-JP'?><sst uniqueCount='4294967295'>".to_vec(),
            format!("<sst a='{}' uniqueCount='4294967295'>", "x".repeat(HEAD as usize)).into_bytes(),
            utf16,
        ] {
            let why = check_unpacked(&book(&hidden), 1 << 20).unwrap_err();
            assert_eq!(
                why,
                "its shared strings do not begin as they should",
                "{}",
                String::from_utf8_lossy(&hidden)
            );
        }
    }

    #[test]
    fn a_workbook_is_what_its_file_is_called() {
        // The beginning of a workbook of Excel 97.
        let old = [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1].repeat(100);
        for (extension, is_old) in [("xlsx", false), ("XLSB", false), ("xls", true), ("", true)] {
            let why = Sheet::read(old.clone(), extension, None, 1 << 20).err().unwrap();
            assert_eq!(
                why.contains("Cfb") || why.contains("cfb") || why.contains("detect"),
                is_old,
                "{extension}: {why}"
            );
        }
    }

    #[test]
    fn times_have_milliseconds() {
        let kind = calamine::ExcelDateTimeType::DateTime;
        for (number, wanted) in [
            (45_000.0, Value::Date("2023-03-15".to_owned())),
            (45_000.123_456, Value::Timestamp("2023-03-15 02:57:46.598".to_owned())),
            (45_000.5 + 0.05 / 86400.0, Value::Timestamp("2023-03-15 12:00:00.05".to_owned())),
            (45_000.0 + 0.25 / 86400.0, Value::Timestamp("2023-03-15 00:00:00.25".to_owned())),
            // As sums of times are stored.
            (45_000.416_666_666_6, Value::Timestamp("2023-03-15 10:00:00.0".to_owned())),
            (45_000.999_999_999_9, Value::Date("2023-03-16".to_owned())),
        ] {
            let cell = Data::DateTime(calamine::ExcelDateTime::new(number, kind, false));
            assert_eq!(value(&cell), wanted, "{number}");
        }
    }

    #[test]
    fn rows_are_made_when_they_are_wanted() {
        let number = |number| Data::Int(number);
        let sheet = Sheet(vec![(1, 1, number(1)), (1, 2, number(2)), (1_000_000, 0, number(3))]);
        let all: Vec<_> = sheet.rows(|number| number == 2 || number > 999_999).collect();
        let row = |at, values: [Option<i64>; 3]| {
            (at, values.map(|value| value.map_or(Value::Null, Value::Integer)).to_vec())
        };
        assert_eq!(
            all,
            [
                row(2, [None, Some(1), Some(2)]),
                row(1_000_000, [None; 3]),
                row(1_000_001, [Some(3), None, None])
            ]
        );
        assert_eq!(Sheet(Vec::new()).rows(|_| true).count(), 0);
    }
}
