//! Formatted numbers, dates and names (F&O 3.1 sections 4.6, 4.7, 9.8), and older functions that XPath 3 changed.

use super::{Call, Entry, Looks, Outcome, row, text_value};
use crate::atomic::{Atomic, Kind, Moment, MomentKind};
use crate::format::{DecimalFormat, integer, picture, pictures};
use crate::value::{Item, Type, Value};
use xml::NodeKind;

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("format-number", 2, 3, Type::String, Looks::Nowhere, |c| {
        let number = match c.atom(0)? {
            None => Atomic::Double(f64::NAN),
            Some(atom) => match c.untyped_as(atom, Kind::Double)? {
                atom if atom.is_numeric() => atom,
                other => return Err(c.wrong(0, "a number", &other)),
            },
        };
        if !c.arg(2).is_empty() {
            return Err(c.fail("FODF1280", format!("there is no decimal format \"{}\"", c.required_text(2)?)));
        }
        let written = picture::format(&number, &c.required_text(1)?, &DecimalFormat::default(), true);
        written.map(text_value).map_err(|e| c.fail("FODF1310", e))
    }).of_embedder(),
    row("format-integer", 2, 3, Type::String, Looks::Nowhere, |c| {
        let number = c.of_kind(0, Kind::Integer)?;
        let picture = c.required_text(1)?;
        let text = number.as_ref().map_or("0".into(), Atomic::to_text);
        let written = integer::format(&text, &picture).map_err(|e| c.fail("FODF1310", e))?;
        Ok(text_value(if number.is_some() { written } else { String::new() }))
    }),
    row("format-date", 2, 5, Type::Any, Looks::Nowhere, |c| moment(c, MomentKind::Date)).of_embedder(),
    row("format-time", 2, 5, Type::Any, Looks::Nowhere, |c| moment(c, MomentKind::Time)).of_embedder(),
    row("format-dateTime", 2, 5, Type::Any, Looks::Nowhere, |c| moment(c, MomentKind::DateTime)).of_embedder(),
    row("parse-ietf-date", 1, 1, Type::Any, Looks::Nowhere, |c| match c.text_option(0)? {
        None => Ok(Value::Empty),
        Some(text) => match ietf(&text) {
            Some(moment) => Ok(Value::from(Atomic::moment(moment))),
            None => Err(c.fail("FORG0010", format!("\"{text}\" is not a date as in the mail"))),
        },
    }),
    row("generate-id", 0, 1, Type::String, Looks::Context(1), |c| {
        Ok(text_value(match c.node_or_context(0)? {
            None => String::new(),
            Some(n) if n.is_namespace() => format!("id{}n{}s{}", n.doc.0, n.id.index(), n.namespace),
            Some(n) => format!("id{}n{}", n.doc.0, n.id.index()),
        }))
    }).of_embedder(),
    row("collation-key", 1, 2, Type::Any, Looks::Nowhere, |c| {
        let collation = c.collation(1)?;
        let text = c.required_text(0)?;
        Ok(Value::from(Atomic::Base64(collation.key(&text).as_bytes().into())))
    }),
    row("round", 1, 2, Type::Any, Looks::Nowhere, round),
    row("tokenize", 1, 3, Type::Any, Looks::Nowhere, |c| {
        if c.args.len() == 1 {
            let text = c.text(0)?;
            let words = text.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty());
            return c.sequence(words.map(|word| Item::Atomic(Atomic::string(word))));
        }
        super::strings::tokenize(c)
    }),
    row("nilled", 0, 1, Type::Any, Looks::Context(1), |c| match c.node_or_context(0)? {
        Some(n) if !n.is_namespace() && c.eval.doc(n.doc)?.kind(n.id) == NodeKind::Element => Ok(Value::Boolean(false)),
        _ => Ok(Value::Empty),
    }),
    row("node-name", 0, 1, Type::Any, Looks::Context(1), |c| {
        let node = c.node_or_context(0)?;
        let args = [node.map_or(Value::Empty, Value::from)];
        super::nodes::node_name(&Call { args: &args, ..*c })
    }),
    row("document-uri", 0, 1, Type::Any, Looks::Context(1), |c| {
        let node = c.node_or_context(0)?;
        let args = [node.map_or(Value::Empty, Value::from)];
        super::nodes::document_uri(&Call { args: &args, ..*c })
    }),
    row("uri-collection", 0, 1, Type::Any, Looks::Nowhere, |c| {
        Err(c.fail("FODC0002", "there are no collections: see doc()"))
    }),
    row("trace", 1, 2, Type::Any, Looks::Nowhere, |c| Ok(c.arg(0).clone())),
    row("random-number-generator", 0, 1, Type::Any, Looks::Nowhere, super::random::generator),
    row("load-xquery-module", 1, 2, Type::Any, Looks::Nowhere, |c| Err(c.fail("FOQM0006", "there is no processor of XQuery"))),
    row("transform", 1, 1, Type::Any, Looks::Nowhere, |c| Err(c.fail("FOXT0001", "expressions start no transformations"))),
];

fn moment(c: &Call<'_, '_>, kind: MomentKind) -> Outcome {
    let Some(Atomic::Moment(moment)) = c.of_kind(0, Kind::Moment(kind))? else { return Ok(Value::Empty) };
    let argument = |at: usize| if c.args.len() > at { c.text_option(at) } else { Ok(None) };
    let (language, calendar, place) = (argument(2)?, argument(3)?, argument(4)?);
    let manner = pictures::Manner {
        language: language.as_deref(),
        calendar: calendar.as_deref(),
        place: place.as_deref(),
    };
    let written = pictures::format_as(&moment, &c.required_text(1)?, &manner);
    written.map(text_value).map_err(|e| {
        let (code, message) = e.split_once(": ").unwrap_or(("", &e));
        c.fail(if code.ends_with("1350") { "FOFD1350" } else { "FOFD1340" }, message)
    })
}

/// `round()` to a number of places: halves towards positive infinity.
fn round(c: &Call<'_, '_>) -> Outcome {
    if c.args.len() < 2 {
        return super::numbers::round(c);
    }
    let Some(places) = c.integer_option(1)? else { return Err(c.missing(1, "an integer")) };
    let Some(atom) = c.atom(0)? else { return Ok(Value::Empty) };
    let atom = c.untyped_as(atom, Kind::Double)?;
    let rounded = |text: String| -> Option<crate::atomic::Decimal> {
        let decimal = crate::atomic::Decimal::parse(&text)?;
        // Halves away from zero; for negative numbers that must be towards it.
        let result = decimal.round(places, false);
        if decimal.is_negative() {
            let other = decimal.negate().round(places, false).negate();
            let half = decimal.minus(result)?;
            let other_half = decimal.minus(other)?;
            return Some(if half.abs() == other_half.abs() && result < other { other } else { result });
        }
        Some(result)
    };
    Ok(match atom {
        atom @ (Atomic::Integer(_) | Atomic::Large(_)) => {
            return super::numbers::whole_rounded(c, atom, places, false);
        }
        Atomic::Decimal(d) => match rounded(d.to_string()) {
            Some(d) => Value::from(Atomic::decimal(d)),
            None => return Err(c.fail("FOAR0002", "the number is too large to be rounded")),
        },
        Atomic::Double(n) if !n.is_finite() || n == 0.0 || places > 300 => Value::Number(n),
        Atomic::Double(n) => {
            let text = format!("{n}");
            let sign = |m: f64| if m == 0.0 && n.is_sign_negative() { -0.0 } else { m };
            Value::Number(match rounded(text) {
                Some(d) => sign(d.to_double()),
                None => {
                    let factor = 10f64.powi(places.clamp(-308, 308) as i32);
                    let scaled = (n * factor + 0.5).floor() / factor;
                    if scaled.is_finite() { sign(scaled) } else { n }
                }
            })
        }
        Atomic::Float(n) if !n.is_finite() || n == 0.0 || places > 40 => Value::from(Atomic::Float(n)),
        Atomic::Float(n) => match rounded(format!("{n}")) {
            Some(d) => {
                let m = d.to_double() as f32;
                Value::from(Atomic::Float(if m == 0.0 && n.is_sign_negative() { -0.0 } else { m }))
            }
            None => Value::from(Atomic::Float(n)),
        },
        other => return Err(c.wrong(0, "a number", &other)),
    })
}

/// A date in the formats of mail, HTTP and C (section 9.8.1).
fn ietf(text: &str) -> Option<Moment> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    const DAYS: [&str; 14] = [
        "mon",
        "tue",
        "wed",
        "thu",
        "fri",
        "sat",
        "sun",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    const ZONES: [(&str, i16); 11] = [
        ("ut", 0),
        ("utc", 0),
        ("gmt", 0),
        ("est", -300),
        ("edt", -240),
        ("cst", -360),
        ("cdt", -300),
        ("mst", -420),
        ("mdt", -360),
        ("pst", -480),
        ("pdt", -420),
    ];
    let text = text.trim().to_ascii_lowercase();
    let mut rest = text.as_str();
    let word_end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    if DAYS.contains(&&rest[..word_end]) {
        rest = &rest[word_end..];
        let after = rest.strip_prefix(',').unwrap_or(rest);
        if !after.starts_with(char::is_whitespace) {
            return None;
        }
        rest = after.trim_start();
    }
    fn digits<'t>(rest: &mut &'t str, least: usize, most: usize) -> Option<&'t str> {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if end < least || end > most {
            return None;
        }
        let (found, after) = rest.split_at(end);
        *rest = after;
        Some(found)
    }
    fn space(rest: &mut &str) -> bool {
        let trimmed = rest.trim_start();
        let found = trimmed.len() < rest.len();
        *rest = trimmed;
        found
    }
    let month_of = |rest: &mut &str| -> Option<u8> {
        let at = MONTHS.iter().position(|m| rest.starts_with(m))?;
        *rest = &rest[3..];
        Some(at as u8 + 1)
    };
    // Day, month, year, time; or month, day, time, year.
    let asctime = rest.starts_with(|c: char| c.is_ascii_alphabetic());
    let separator = |rest: &mut &str| -> bool {
        let spaced = space(rest);
        let dashed = rest.starts_with('-');
        if dashed {
            *rest = &rest[1..];
            space(rest);
        }
        spaced || dashed
    };
    let year_of = |text: &str| -> Option<i32> {
        let year: i32 = text.parse().ok()?;
        Some(if text.len() == 2 { year + 1900 } else { year })
    };
    let (day, month, mut year);
    if asctime {
        month = month_of(&mut rest)?;
        if !separator(&mut rest) {
            return None;
        }
        day = digits(&mut rest, 1, 2)?;
        year = None;
    } else {
        day = digits(&mut rest, 1, 2)?;
        if !separator(&mut rest) {
            return None;
        }
        month = month_of(&mut rest)?;
        if !separator(&mut rest) {
            return None;
        }
        let found = digits(&mut rest, 2, 4)?;
        if found.len() == 3 {
            return None;
        }
        year = Some(year_of(found)?);
    }
    if !space(&mut rest) {
        return None;
    }
    let hours = digits(&mut rest, 1, 2)?;
    rest = rest.strip_prefix(':')?;
    let minutes = digits(&mut rest, 2, 2)?;
    let (mut seconds, mut fraction) = ("00", String::new());
    if let Some(after) = rest.strip_prefix(':') {
        rest = after;
        seconds = digits(&mut rest, 2, 2)?;
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            fraction = format!(".{}", digits(&mut rest, 1, 9)?);
        }
    }
    let mut zone = "Z".to_owned();
    let mut year_follows = false;
    let spaced = space(&mut rest);
    if rest.starts_with(['+', '-']) {
        let (sign, after) = rest.split_at(1);
        rest = after;
        let found = digits(&mut rest, 1, 4)?;
        let (h, m) = match found.len() {
            1 | 2 => {
                let minutes = match rest.strip_prefix(':') {
                    Some(after) => {
                        rest = after;
                        digits(&mut rest, 2, 2)?.to_owned()
                    }
                    None => "00".to_owned(),
                };
                (found.to_owned(), minutes)
            }
            3 => (found[..1].to_owned(), found[1..].to_owned()),
            _ => (found[..2].to_owned(), found[2..].to_owned()),
        };
        zone = format!("{sign}{h:0>2}:{m}");
        let before = rest;
        space(&mut rest);
        // A comment with the zone's name.
        match rest.strip_prefix('(').and_then(|inside| inside.split_once(')')) {
            Some((inside, after)) if ZONES.iter().any(|(name, _)| *name == inside.trim()) => rest = after,
            Some(_) => return None,
            None => rest = before,
        }
    } else if let Some((name, offset)) = ZONES.iter().find(|(name, _)| {
        rest.strip_prefix(*name).is_some_and(|after| !after.starts_with(|c: char| c.is_ascii_alphabetic()))
    }) {
        rest = &rest[name.len()..];
        let sign = if *offset < 0 { '-' } else { '+' };
        zone = format!("{sign}{:02}:{:02}", offset.unsigned_abs() / 60, offset.unsigned_abs() % 60);
    } else if spaced {
        // There is no zone: the blank is the one before the year.
        year_follows = true;
    }
    if asctime {
        if !space(&mut rest) && !year_follows {
            return None;
        }
        let found = digits(&mut rest, 2, 4)?;
        if found.len() == 3 {
            return None;
        }
        year = Some(year_of(found)?);
    }
    if !rest.trim().is_empty() {
        return None;
    }
    let text = format!(
        "{:04}-{month:02}-{day:0>2}T{hours:0>2}:{minutes}:{seconds}{fraction}{zone}",
        year.unwrap_or(0)
    );
    Moment::parse(MomentKind::DateTime, &text)
}
