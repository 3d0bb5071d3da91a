//! Casting (F&O section 17) and the lexical forms of values.

use super::types::Facet;
use super::{Atomic, AtomicType, Decimal, Duration, Kind, Moment, large};
use std::borrow::Cow;
use std::sync::Arc;

/// Why a value cannot be cast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CastError {
    /// The error code of the specification.
    pub code: &'static str,
    /// The message.
    pub message: String,
}

impl CastError {
    fn new(code: &'static str, message: impl Into<String>) -> CastError {
        CastError { code, message: message.into() }
    }
}

impl Atomic {
    /// Casts a value to type `to`.
    pub fn cast(&self, to: &AtomicType) -> Result<Atomic, CastError> {
        if to.is_plain() && (self.kind() == to.kind || to.kind == Kind::Any) {
            return Ok(self.clone());
        }
        if matches!(to.facet, Facet::Numeric) && self.is_numeric() {
            return Ok(self.clone());
        }
        let value = match self {
            Atomic::Untyped(s) | Atomic::String(s) => from_text(s, to)?,
            _ => self.converted(to)?,
        };
        let fits = match (to.facet, &value) {
            (Facet::Range(least, most), Atomic::Integer(n)) => (least..=most).contains(&i128::from(*n)),
            (Facet::Range(..), Atomic::Large(_)) | (Facet::Zoned, _) => to.matches(&value),
            _ => true,
        };
        if fits { Ok(value) } else { Err(not_a(&value.to_text(), to)) }
    }

    fn converted(&self, to: &AtomicType) -> Result<Atomic, CastError> {
        let refused = || {
            let from = AtomicType::of(self.kind()).name;
            CastError::new("XPTY0004", format!("a value of type xs:{from} cannot be cast to xs:{}", to.name))
        };
        Ok(match (self, to.kind) {
            (_, Kind::Untyped) => Atomic::Untyped(self.to_text().into()),
            (_, Kind::String) => from_text(&self.to_text(), to)?,
            (Atomic::Boolean(b), Kind::Integer) => Atomic::Integer(i64::from(*b)),
            (Atomic::Boolean(b), Kind::Decimal) => Atomic::decimal(Decimal::from(i64::from(*b))),
            (
                Atomic::Boolean(_) | Atomic::Integer(_) | Atomic::Large(_) | Atomic::Decimal(_),
                Kind::Float,
            ) => Atomic::Float(self.to_double() as f32),
            (Atomic::Double(n), Kind::Float) => Atomic::Float(*n as f32),
            (Atomic::Boolean(_), Kind::Double) => Atomic::Double(self.to_double()),
            (_, Kind::Double) if self.is_numeric() => Atomic::Double(self.to_double()),
            (_, Kind::Boolean) if self.is_numeric() => Atomic::Boolean(self.to_boolean().unwrap_or(false)),
            (Atomic::Integer(_) | Atomic::Large(_), Kind::Integer) => self.clone(),
            (Atomic::Large(n), Kind::Decimal) => match i128::try_from(&**n) {
                Ok(n) => Atomic::decimal(Decimal::new(n, 0)),
                Err(_) => return Err(too_large(self)),
            },
            (Atomic::Integer(n), Kind::Decimal) => Atomic::decimal(Decimal::from(*n)),
            (Atomic::Decimal(d), Kind::Integer) => {
                d.to_whole().and_then(|n| large::integer(n.into())).ok_or_else(|| too_large(self))?
            }
            (Atomic::Float(_) | Atomic::Double(_), Kind::Integer | Kind::Decimal) => {
                let number = self.to_double();
                if !number.is_finite() {
                    return Err(CastError::new(
                        "FOCA0002",
                        format!("{} cannot be cast to xs:{}", self.to_text(), to.name),
                    ));
                }
                if to.kind == Kind::Integer {
                    large::of_double(number).ok_or_else(|| too_large(self))?
                } else {
                    Atomic::decimal(Decimal::from_double(number).ok_or_else(|| too_large(self))?)
                }
            }
            (Atomic::Moment(m), Kind::Moment(kind)) => Atomic::moment(m.cast(kind).ok_or_else(refused)?),
            (Atomic::Duration(d), Kind::Duration(kind)) => Atomic::duration(d.cast(kind)),
            (Atomic::Hex(bytes), Kind::Base64) => Atomic::Base64(bytes.clone()),
            (Atomic::Base64(bytes), Kind::Hex) => Atomic::Hex(bytes.clone()),
            _ => return Err(refused()),
        })
    }
}

fn too_large(value: &Atomic) -> CastError {
    CastError::new("FOCA0003", format!("{} has too many digits", value.to_text()))
}

fn not_a(text: &str, to: &AtomicType) -> CastError {
    let shown: String = text.chars().take(60).collect();
    CastError::new("FORG0001", format!("\"{shown}\" is not an xs:{}", to.name))
}

/// Casts a text.
fn from_text(text: &str, to: &AtomicType) -> Result<Atomic, CastError> {
    let wrong = || not_a(text, to);
    let token = text.trim_matches([' ', '\t', '\r', '\n']);
    Ok(match to.kind {
        Kind::Any | Kind::String => match to.facet {
            Facet::Replace => Atomic::string(text.replace(['\t', '\n', '\r'], " ")),
            Facet::Collapse(passes) => {
                let text = collapse(text);
                if !passes(&text) {
                    return Err(wrong());
                }
                Atomic::string(text)
            }
            _ => Atomic::string(text),
        },
        Kind::Untyped => Atomic::Untyped(text.into()),
        Kind::Uri => Atomic::Uri(collapse(text).into()),
        Kind::Boolean => match token {
            "true" | "1" => Atomic::Boolean(true),
            "false" | "0" => Atomic::Boolean(false),
            _ => return Err(wrong()),
        },
        Kind::Integer => {
            if token.contains('.') {
                return Err(wrong());
            }
            match token
                .strip_prefix('+')
                .filter(|t| !t.starts_with(['+', '-']))
                .unwrap_or(token)
                .parse::<i64>()
            {
                Ok(n) => Atomic::Integer(n),
                Err(_) => {
                    let digits = token.trim_start_matches(['+', '-']);
                    if digits.is_empty()
                        || !digits.bytes().all(|b| b.is_ascii_digit())
                        || token.len() > digits.len() + 1
                    {
                        return Err(wrong());
                    }
                    large::parse(token).ok_or_else(|| too_large(&Atomic::string("the number")))?
                }
            }
        }
        Kind::Decimal => Atomic::decimal(Decimal::parse(token).ok_or_else(wrong)?),
        Kind::Double => Atomic::Double(parse_double(token).ok_or_else(wrong)?),
        Kind::Float => match parse_double(token) {
            Some(_) if !token.contains(['N', 'I']) => Atomic::Float(token.parse().map_err(|_| wrong())?),
            Some(n) => Atomic::Float(n as f32),
            None => return Err(wrong()),
        },
        Kind::Moment(kind) => Atomic::moment(Moment::parse(kind, token).ok_or_else(wrong)?),
        Kind::Duration(kind) => Atomic::duration(Duration::parse(kind, token).ok_or_else(wrong)?),
        Kind::Hex => Atomic::Hex(hex(token).ok_or_else(wrong)?.into()),
        Kind::Base64 => Atomic::Base64(base64(token).ok_or_else(wrong)?.into()),
        Kind::Map | Kind::Array | Kind::Function => return Err(wrong()),
        Kind::Name => {
            return Err(CastError::new(
                "XPTY0004",
                "only a string literal can be cast to xs:QName: see QName() and resolve-QName()",
            ));
        }
    })
}

/// Removes white space at the ends; runs within become one space.
pub(super) fn collapse(text: &str) -> Cow<'_, str> {
    crate::functions::normalize_space(Cow::Borrowed(text))
}

/// The double that a lexical form of `xs:double` stands for, white space around it allowed.
pub fn parse_double(text: &str) -> Option<f64> {
    // The numbers of XPath 1.0 are among them, and read faster.
    let number = crate::number::parse(text);
    if !number.is_nan() {
        return Some(number);
    }
    let token = text.trim_matches([' ', '\t', '\r', '\n']);
    match token {
        "INF" => return Some(f64::INFINITY),
        "-INF" => return Some(f64::NEG_INFINITY),
        "NaN" => return Some(f64::NAN),
        _ => {}
    }
    // Other forms that Rust accepts are words.
    if token.is_empty() || !token.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
    {
        return None;
    }
    token.parse().ok()
}

/// `xs:double` as `xs:string`.
pub(super) fn double_text(n: f64) -> Cow<'static, str> {
    if n.is_infinite() {
        return Cow::Borrowed(if n > 0.0 { "INF" } else { "-INF" });
    }
    if n == 0.0 && n.is_sign_negative() {
        return Cow::Borrowed("-0");
    }
    if n == 0.0 || n.is_nan() || (1e-6..1e6).contains(&n.abs()) {
        return crate::number::format(n);
    }
    Cow::Owned(scientific(format!("{n:E}")))
}

/// `xs:float` as `xs:string`.
pub(super) fn float_text(n: f32) -> Cow<'static, str> {
    if !n.is_finite() || n == 0.0 {
        return double_text(f64::from(n));
    }
    if (1e-6..1e6).contains(&n.abs()) {
        return Cow::Owned(n.to_string());
    }
    Cow::Owned(scientific(format!("{n:E}")))
}

/// The mantissa has a point.
fn scientific(text: String) -> String {
    match text.split_once('E') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0E{exponent}"),
        _ => text,
    }
}

pub(super) fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().map(|b| (b as char).to_digit(16)).collect::<Option<Vec<u32>>>()?;
    digits
        .len()
        .is_multiple_of(2)
        .then(|| digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn base64_text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0u32, |w, (i, b)| w | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            out.push(if i <= chunk.len() {
                ALPHABET[(word >> (18 - 6 * i) & 63) as usize] as char
            } else {
                '='
            });
        }
    }
    out
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let symbols: Vec<u8> = text.bytes().filter(|b| !matches!(b, b' ' | b'\t' | b'\r' | b'\n')).collect();
    let data = symbols.iter().position(|b| *b == b'=').unwrap_or(symbols.len());
    if !symbols.len().is_multiple_of(4)
        || symbols.len() - data > 2
        || !symbols[data..].iter().all(|b| *b == b'=')
    {
        return None;
    }
    let mut out = Vec::with_capacity(data / 4 * 3 + 2);
    for chunk in symbols[..data].chunks(4) {
        let mut word = 0u32;
        for (i, symbol) in chunk.iter().enumerate() {
            word |= (ALPHABET.iter().position(|a| a == symbol)? as u32) << (18 - 6 * i);
        }
        // Bits beyond the last byte must be 0.
        if word & (0x00FF_FFFF >> (8 * (chunk.len() - 1))) != 0 && chunk.len() < 4 {
            return None;
        }
        out.extend_from_slice(&word.to_be_bytes()[1..chunk.len()]);
    }
    Some(out)
}

/// An `xs:string` from a text that may be shared.
impl From<&Arc<str>> for Atomic {
    fn from(s: &Arc<str>) -> Atomic {
        Atomic::String(s.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::{DurationKind, MomentKind};

    fn cast(text: &str, to: &str) -> String {
        let to = AtomicType::find(to).unwrap_or_else(|| panic!("{to}"));
        match Atomic::string(text).cast(to) {
            Ok(value) => value.to_text().into_owned(),
            Err(error) => error.code.to_owned(),
        }
    }

    #[test]
    fn from_strings() {
        #[rustfmt::skip]
        let cases = [
            (" 12 ", "integer", "12"), ("+5", "integer", "5"), ("1.0", "integer", "FORG0001"), ("1e3", "integer", "FORG0001"),
            ("99999999999999999999", "integer", "99999999999999999999"), ("99999999999999999999", "long", "FORG0001"), ("99999999999999999999", "positiveInteger", "99999999999999999999"), ("+-5", "integer", "FORG0001"),
            ("128", "byte", "FORG0001"), ("-128", "byte", "-128"), ("0", "positiveInteger", "FORG0001"),
            ("1.50", "decimal", "1.5"), ("1e3", "decimal", "FORG0001"),
            ("1e3", "double", "1000"), ("1e6", "double", "1.0E6"), ("12345678", "double", "1.2345678E7"), ("0.000001", "double", "0.000001"),
            ("0.0000001", "double", "1.0E-7"), ("INF", "double", "INF"), ("inf", "double", "FORG0001"), ("NaN", "float", "NaN"),
            ("-0", "double", "-0"), ("3.4e38", "float", "3.4E38"), ("16777217", "float", "1.6777216E7"), ("0.1", "float", "0.1"),
            ("1", "boolean", "true"), ("TRUE", "boolean", "FORG0001"),
            ("2002-02-30", "date", "FORG0001"), ("2002-02-03Z", "date", "2002-02-03Z"),
            ("0fb7", "hexBinary", "0FB7"), ("0fb", "hexBinary", "FORG0001"), ("Zm9v", "base64Binary", "Zm9v"), ("Zm8=", "base64Binary", "Zm8="),
            ("Zm9", "base64Binary", "FORG0001"), ("Zm9=", "base64Binary", "FORG0001"),
            (" a  b ", "token", "a b"), ("a\tb", "normalizedString", "a b"), ("a b", "NCName", "FORG0001"), ("en-GB", "language", "en-GB"),
            ("p:q", "QName", "XPTY0004"), ("a b", "NMTOKEN", "FORG0001"), ("1a", "NMTOKEN", "1a"), ("1a", "Name", "FORG0001"),
        ];
        for (text, to, expected) in cases {
            assert_eq!(cast(text, to), expected, "{text} as {to}");
        }
    }

    #[test]
    fn between_types() {
        let moment =
            Atomic::moment(Moment::parse(MomentKind::DateTime, "2002-05-30T09:30:10-06:00").unwrap());
        #[rustfmt::skip]
        let cases = [
            (Atomic::Double(3.99), "integer", "3"), (Atomic::Double(-3.99), "integer", "-3"), (Atomic::Double(f64::NAN), "integer", "FOCA0002"),
            (Atomic::Double(1e20), "integer", "100000000000000000000"), (Atomic::Double(0.1), "decimal", "0.1"), (Atomic::Float(0.1), "decimal", "0.10000000149011612"),
            (Atomic::Float(98_765_432.0), "decimal", "98765432"), (Atomic::Float(0.1), "double", "0.10000000149011612"), (Atomic::Boolean(true), "double", "1"), (Atomic::Integer(0), "boolean", "false"),
            (Atomic::Double(f64::NAN), "boolean", "false"), (Atomic::Integer(1), "date", "XPTY0004"), (Atomic::Boolean(true), "string", "true"),
            (moment.clone(), "date", "2002-05-30-06:00"), (moment.clone(), "time", "09:30:10-06:00"), (moment.clone(), "gMonthDay", "--05-30-06:00"),
            (moment.clone(), "gYear", "2002-06:00"), (moment, "duration", "XPTY0004"),
            (Atomic::duration(Duration { kind: DurationKind::Duration, months: 14, nanos: 1_000_000_000 }), "yearMonthDuration", "P1Y2M"),
            (Atomic::Hex([1u8, 2, 3].into()), "base64Binary", "AQID"),
        ];
        for (value, to, expected) in cases {
            let shown = match value.cast(AtomicType::find(to).unwrap()) {
                Ok(value) => value.to_text().into_owned(),
                Err(error) => error.code.to_owned(),
            };
            assert_eq!(shown, expected, "{value:?} as {to}");
        }
    }
}
