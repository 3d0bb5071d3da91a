//! Values of PostgreSQL that consist of others (arrays, ranges, rows, shapes), as the server writes them.

use super::postgres::{read, simple};
use crate::value::{Value, local, timestamp_text};
use jiff::SignedDuration;
use jiff::civil::Time;
use sqlx::TypeInfo;
use sqlx::postgres::{PgTypeInfo, PgTypeKind};

/// Most dimensions of an array.
const DIMENSIONS: usize = 6;

/// Most rows within each other. A server may nest them as deeply as a value is long.
const DEPTH: usize = 32;

/// The number of the type of rows that have no type of their own.
pub(super) const RECORD: u32 = 2249;

/// Whether a text is too long for the bytes that it is of. The quotes of rows within rows double with each of them.
fn is_too_long(text: &str, bytes: &[u8]) -> bool {
    text.len() > 16 * bytes.len() + 1024
}

/// Reads a value from its beginning on.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn double(&mut self) -> Option<f64> {
        Some(f64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Bytes behind their length; inner `None`: NULL.
    fn bytes(&mut self) -> Option<Option<&'a [u8]>> {
        match self.number()? {
            length if length < 0 => Some(None),
            length => Some(Some(self.take(length as usize)?)),
        }
    }

    fn point(&mut self) -> Option<String> {
        Some(format!("({},{})", float(self.double()?, 15), float(self.double()?, 15)))
    }

    /// Points behind their number.
    fn points(&mut self) -> Option<String> {
        let count = self.count()?;
        // A number that is not true has an end.
        let points = (0..count).map(|_| self.point()).collect::<Option<Vec<_>>>()?;
        Some(points.join(","))
    }
}

/// `{1,2,"a b"}`, `{{1,2},{3,4}}`, as `PgArray.toString` writes it.
pub(super) fn array(element_type: &PgTypeInfo, bytes: &[u8]) -> Option<Value> {
    let mut reader = Reader(bytes);
    let dimensions = reader.count().filter(|&dimensions| dimensions <= DIMENSIONS)?;
    reader.take(8)?;
    let mut sizes = Vec::with_capacity(dimensions);
    for _ in 0..dimensions {
        sizes.push(reader.count()?);
        reader.take(4)?;
    }
    // Each element has its length.
    let count = sizes.iter().try_fold(1_usize, |count, &size| count.checked_mul(size))?;
    if count > reader.0.len() / 4 && dimensions > 0 {
        return None;
    }
    let mut out = String::new();
    match sizes.is_empty() || count == 0 {
        true => out.push_str("{}"),
        false => dimension(element_type, &sizes, &mut reader, &mut out)?,
    }
    Some(Value::Text(out))
}

fn dimension(
    element_type: &PgTypeInfo,
    sizes: &[usize],
    reader: &mut Reader<'_>,
    out: &mut String,
) -> Option<()> {
    let Some((&size, inner)) = sizes.split_first() else {
        let Some(bytes) = reader.bytes()? else {
            out.push_str("NULL");
            return Some(());
        };
        let element = read(element_type, bytes)?;
        let is_text = matches!(element, Value::Text(_) | Value::Timestamp(_));
        let element = element.to_string();
        let is_plain = !is_text
            || (!element.is_empty()
                && !element.eq_ignore_ascii_case("null")
                && !element.contains(['"', '\\', '{', '}', ',', ' ', '\t', '\n', '\r', '\x0B', '\x0C']));
        match is_plain {
            true => out.push_str(&element),
            false => {
                out.push('"');
                out.push_str(&element.replace('\\', "\\\\").replace('"', "\\\""));
                out.push('"');
            }
        }
        return Some(());
    };
    out.push('{');
    for index in 0..size {
        if index > 0 {
            out.push(',');
        }
        dimension(element_type, inner, reader, out)?;
    }
    out.push('}');
    Some(())
}

/// `[1,5)`, `(,"2026-01-01 00:00:00"]`, `empty`.
pub(super) fn range(element_type: &PgTypeInfo, bytes: &[u8]) -> Option<Value> {
    let mut reader = Reader(bytes);
    let flags = reader.take(1)?[0];
    if flags & 1 != 0 {
        return Some(Value::Text("empty".to_owned()));
    }
    let mut bound = |is_infinite: bool| -> Option<String> {
        if is_infinite {
            return Some(String::new());
        }
        Some(quoted(part(element_type, reader.bytes()??)?, &['(', ')', '[', ']']))
    };
    let (lower, upper) = (bound(flags & 8 != 0)?, bound(flags & 16 != 0)?);
    let (begin, end) = (if flags & 2 != 0 { '[' } else { '(' }, if flags & 4 != 0 { ']' } else { ')' });
    Some(Value::Text(format!("{begin}{lower},{upper}{end}")))
}

/// `(1,"a b",,"")`: a row; `fields`: the names and types of its columns, where it has a type of its own.
pub(super) fn row(fields: &[(String, PgTypeInfo)], bytes: &[u8]) -> Option<Value> {
    row_within(fields, bytes, DEPTH)
}

/// `depth`: how many rows may be within it.
fn row_within(fields: &[(String, PgTypeInfo)], bytes: &[u8], depth: usize) -> Option<Value> {
    let mut reader = Reader(bytes);
    let mut out = String::from("(");
    for index in 0..reader.count()? {
        if index > 0 {
            out.push(',');
        }
        let oid = reader.number()? as u32;
        let Some(field) = reader.bytes()? else { continue };
        let text = match fields.get(index) {
            Some((_, field_type)) => part(field_type, field)?,
            None if oid == RECORD => row_within(&[], field, depth.checked_sub(1)?)?.text()?,
            None => simple_part(oid, "", field)?,
        };
        out.push_str(&quoted(text, &['(', ')']));
        if is_too_long(&out, bytes) {
            return None;
        }
    }
    out.push(')');
    Some(Value::Text(out))
}

/// A bound or a field, in quotes where it needs them.
fn quoted(text: String, special: &[char]) -> String {
    let is_plain = !text.is_empty()
        && !text.contains(['"', '\\', ',', ' ', '\t', '\n', '\r', '\x0B', '\x0C'])
        && !text.contains(special);
    match is_plain {
        true => text,
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\"")),
    }
}

/// A value within another one, as the server writes it.
fn part(pg_type: &PgTypeInfo, bytes: &[u8]) -> Option<String> {
    match pg_type.kind() {
        PgTypeKind::Domain(base) => part(base, bytes),
        PgTypeKind::Simple => simple_part(pg_type.oid()?.0, pg_type.name(), bytes),
        _ => read(pg_type, bytes)?.text(),
    }
}

fn simple_part(oid: u32, name: &str, bytes: &[u8]) -> Option<String> {
    Some(match oid {
        16 => if *bytes.first()? != 0 { "t" } else { "f" }.to_owned(),
        17 => bytes.iter().fold(String::from("\\x"), |out, byte| out + &format!("{byte:02x}")),
        700 => single(f32::from_be_bytes(bytes.try_into().ok()?)),
        701 => float(f64::from_be_bytes(bytes.try_into().ok()?), 15),
        1083 => {
            let micros = i64::from_be_bytes(bytes.try_into().ok()?);
            let time = Time::midnight().checked_add(SignedDuration::from_micros(micros)).ok()?;
            time.to_string()
        }
        1114 => {
            let text = simple(oid, name, bytes)?.text()?;
            text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
        }
        1184 => {
            let micros = i64::from_be_bytes(bytes.try_into().ok()?);
            if matches!(micros, i64::MAX | i64::MIN) {
                return simple(oid, name, bytes)?.text();
            }
            let epoch = super::postgres::EPOCH.to_datetime(Time::midnight());
            let at = epoch.checked_add(SignedDuration::from_micros(micros)).ok()?;
            let there = local(at)?;
            let text = timestamp_text(there);
            let text = text.strip_suffix(".0").unwrap_or(&text);
            let offset = at.duration_until(there).as_mins();
            let (hours, minutes) = (offset.abs() / 60, offset.abs() % 60);
            let sign = if offset < 0 { '-' } else { '+' };
            match minutes {
                0 => format!("{text}{sign}{hours:02}"),
                minutes => format!("{text}{sign}{hours:02}:{minutes:02}"),
            }
        }
        _ => simple(oid, name, bytes)?.text()?,
    })
}

/// A shape of the plane, by the number of its type.
pub(super) fn shape(oid: u32, bytes: &[u8]) -> Option<Value> {
    let mut reader = Reader(bytes);
    Some(Value::Text(match oid {
        600 => reader.point()?,
        601 => format!("[{},{}]", reader.point()?, reader.point()?),
        602 => {
            let is_closed = reader.take(1)?[0] != 0;
            let points = reader.points()?;
            if is_closed { format!("({points})") } else { format!("[{points}]") }
        }
        603 => format!("{},{}", reader.point()?, reader.point()?),
        604 => format!("({})", reader.points()?),
        628 => {
            let mut next = || Some(float(reader.double()?, 15));
            format!("{{{},{},{}}}", next()?, next()?, next()?)
        }
        718 => format!("<{},{}>", reader.point()?, float(reader.double()?, 15)),
        _ => return None,
    }))
}

/// `"a"=>"1", "b"=>NULL`: the pairs of the extension hstore.
pub(super) fn pairs(bytes: &[u8]) -> Option<Value> {
    let mut reader = Reader(bytes);
    let text = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).ok()?;
        Some(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
    };
    let mut out = String::new();
    for index in 0..reader.count()? {
        if index > 0 {
            out.push_str(", ");
        }
        out.push_str(&text(reader.bytes()??)?);
        out.push_str("=>");
        match reader.bytes()? {
            Some(value) => out.push_str(&text(value)?),
            None => out.push_str("NULL"),
        }
    }
    Some(Value::Text(out))
}

fn single(value: f32) -> String {
    // The shortest digits that identify this 32-bit float.
    value.to_string().parse().map_or_else(|_| value.to_string(), |value| float(value, 6))
}

/// A float with its shortest digits; from 10 to the power of `digits` on with an exponent.
fn float(value: f64, digits: i32) -> String {
    if value.is_infinite() {
        return if value < 0.0 { "-Infinity" } else { "Infinity" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let exponent: Option<(&str, i32)> =
        scientific.split_once('e').and_then(|(mantissa, exponent)| Some((mantissa, exponent.parse().ok()?)));
    match exponent {
        Some((mantissa, exponent)) if !(-4..digits).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::Type;

    #[test]
    fn what_a_server_lies_about_has_an_end() {
        let int = <i32 as Type<sqlx::Postgres>>::type_info();
        let numbers = |all: &[i32]| all.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<u8>>();
        for bytes in [
            numbers(&[1, 0, 23, i32::MAX, 1]),
            numbers(&[2, 0, 23, i32::MAX, 1, 0, 1]),
            numbers(&[6, 0, 23, i32::MAX, 1, i32::MAX, 1, i32::MAX, 1, i32::MAX, 1, i32::MAX, 1, 4, 1]),
            numbers(&[7, 0, 23, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 1]),
            numbers(&[1, 0, 23, 1, 1, 5, 7]),
            numbers(&[-1, 0, 23]),
        ] {
            let read = array(&int, &bytes);
            assert!(matches!(&read, None | Some(Value::Text(_))), "{read:?}");
            assert!(read.is_none_or(|value| value == Value::Text("{}".into())), "{bytes:?}");
        }
        assert_eq!(array(&int, &numbers(&[0, 0, 23])), Some(Value::Text("{}".into())));
        for bytes in [&[][..], &[0], &[0, 0, 0, 9, 9, 1], &[0xFF]] {
            _ = (range(&int, bytes), row(&[], bytes), pairs(bytes));
            for oid in [600, 601, 602, 603, 604, 628, 718] {
                assert_eq!(shape(oid, bytes), None, "{oid}");
            }
        }
        assert_eq!(row(&[], &i32::MAX.to_be_bytes()), None);
        let nested = |depth: usize| {
            (0..depth).fold(numbers(&[0]), |inner, _| {
                [numbers(&[1, RECORD as i32, inner.len() as i32]), inner].concat()
            })
        };
        assert_eq!(row(&[], &nested(0)), Some(Value::Text("()".into())));
        assert_eq!(row(&[], &nested(2)), Some(Value::Text("(\"(\"\"()\"\")\")".into())));
        // Neither the stack nor the quotes have no end.
        for depth in [DEPTH, DEPTH + 1, 2000] {
            assert_eq!(row(&[], &nested(depth)), None, "{depth}");
        }
    }

    #[test]
    fn floats_are_written_as_the_server_does() {
        for (value, text) in [
            (1.0, "1"),
            (-0.5, "-0.5"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1.25e-7, "1.25e-07"),
            (0.0001, "0.0001"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float(value, 15), text);
        }
        assert_eq!((single(0.1), single(1e6)), ("0.1".to_owned(), "1e+06".to_owned()));
    }
}
