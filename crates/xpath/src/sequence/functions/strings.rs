//! Functions on strings (F&O section 7).

use super::{Call, Entry, Looks, Outcome, row, text_value};
use crate::atomic::Atomic;
use crate::collation::Collation;
use crate::eval::{Fault, push_part};
use crate::functions as text;
use crate::regex::{Regex, RegexError};
use crate::sequence::MAX_ITEMS;
use crate::sequence::single::SingleFunction;
use crate::value::{Item, Type, Value};
use std::borrow::Cow;
use std::sync::Arc;
use unicode_normalization::UnicodeNormalization;

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("string", 0, 1, Type::String, Looks::Context(1), string).on_single(SingleFunction::String),
    row("concat", 2, usize::MAX, Type::String, Looks::Nowhere, concat).on_single(SingleFunction::Concat),
    row("string-join", 2, 2, Type::String, Looks::Nowhere, string_join),
    row("substring", 2, 3, Type::String, Looks::Nowhere, substring).on_single(SingleFunction::Substring),
    row("string-length", 0, 1, Type::Any, Looks::Context(1), string_length).on_single(SingleFunction::StringLength),
    row("normalize-space", 0, 1, Type::String, Looks::Context(1), |c| {
        let s = own_text(c)?;
        Ok(text_value(text::normalize_space(Cow::Borrowed(&s))))
    }).on_single(SingleFunction::NormalizeSpace),
    row("normalize-unicode", 1, 2, Type::String, Looks::Nowhere, normalize_unicode),
    row("upper-case", 1, 1, Type::String, Looks::Nowhere, |c| Ok(text_value(c.text(0)?.to_uppercase()))).on_single(SingleFunction::UpperCase),
    row("lower-case", 1, 1, Type::String, Looks::Nowhere, |c| Ok(text_value(c.text(0)?.to_lowercase()))).on_single(SingleFunction::LowerCase),
    row("translate", 3, 3, Type::String, Looks::Nowhere, |c| {
        let (s, from, to) = (c.text(0)?, c.required_text(1)?, c.required_text(2)?);
        Ok(text_value(text::translate(Cow::Borrowed(&s), &from, &to)))
    }).on_single(SingleFunction::Translate),
    row("contains", 2, 3, Type::Boolean, Looks::Nowhere, |c| two(c, |collation, a, b| collation.find_in(a, b).is_some())).on_single(SingleFunction::Contains),
    row("starts-with", 2, 3, Type::Boolean, Looks::Nowhere, |c| two(c, Collation::begins)).on_single(SingleFunction::StartsWith),
    row("ends-with", 2, 3, Type::Boolean, Looks::Nowhere, |c| two(c, Collation::ends)).on_single(SingleFunction::EndsWith),
    row("substring-before", 2, 3, Type::String, Looks::Nowhere, |c| part(c, |text, at, _| &text[..at])).on_single(SingleFunction::SubstringBefore),
    row("substring-after", 2, 3, Type::String, Looks::Nowhere, |c| part(c, |text, _, end| &text[end..])).on_single(SingleFunction::SubstringAfter),
    row("compare", 2, 3, Type::Any, Looks::Nowhere, compare),
    row("codepoint-equal", 2, 2, Type::Any, Looks::Nowhere, |c| match (c.text_option(0)?, c.text_option(1)?) {
        (Some(a), Some(b)) => Ok(Value::Boolean(a == b)),
        _ => Ok(Value::Empty),
    }),
    row("codepoints-to-string", 1, 1, Type::String, Looks::Nowhere, codepoints_to_string),
    row("string-to-codepoints", 1, 1, Type::Any, Looks::Nowhere, |c| {
        c.sequence(c.text(0)?.chars().map(|c| Item::Atomic(Atomic::Integer(i64::from(u32::from(c))))))
    }),
    row("matches", 2, 3, Type::Boolean, Looks::Nowhere, |c| {
        let regex = dynamic(c, 1, 2)?;
        matches_with(c, &regex)
    }),
    row("replace", 3, 4, Type::String, Looks::Nowhere, |c| {
        let regex = dynamic(c, 1, 3)?;
        replace_with(c, &regex, 2)
    }),
    row("tokenize", 2, 3, Type::Any, Looks::Nowhere, tokenize),
    row("lang", 1, 2, Type::Boolean, Looks::Document, |c| {
        let wanted = c.text(0)?;
        let Some(node) = c.node_or_context(1)? else { return Err(c.missing(1, "a node")) };
        Ok(Value::Boolean(text::lang(c.eval.doc(node.doc)?, node, &wanted)))
    }),
];

fn string(c: &Call<'_, '_>) -> Outcome {
    let item = match c.args {
        [] => Some(c.context()?),
        // (1.0 takes the first item.)
        _ if c.arg(0).len() > 1 && !c.eval.program.compatible => {
            return Err(c.fail("XPTY0004", "string() needs a single item, this is a sequence"));
        }
        _ => c.arg(0).item(0),
    };
    Ok(match item {
        None => text_value(""),
        Some(Item::Node(node)) => text_value(c.eval.node_string(node)?),
        Some(Item::Atomic(Atomic::String(s))) => Value::String(s),
        Some(Item::Atomic(atom)) if atom.is_function() => return Err(c.eval.no_text(&atom)),
        Some(Item::Atomic(atom)) => text_value(atom.to_text()),
    })
}

/// The argument, or the string value of the context item.
fn own_text(c: &Call<'_, '_>) -> Result<Arc<str>, crate::eval::Fault> {
    if !c.args.is_empty() {
        return c.text(0);
    }
    match string(c)? {
        Value::String(s) => Ok(s),
        _ => Ok(Arc::from("")),
    }
}

fn two(c: &Call<'_, '_>, f: fn(Collation, &str, &str) -> bool) -> Outcome {
    let collation = c.collation(2)?;
    Ok(Value::Boolean(f(collation, &c.text(0)?, &c.text(1)?)))
}

/// The part of a text that `f` chooses by the begin and end of another in it; empty if it does not occur.
fn part(c: &Call<'_, '_>, f: fn(&str, usize, usize) -> &str) -> Outcome {
    let collation = c.collation(2)?;
    let (text, sought) = (c.text(0)?, c.text(1)?);
    let found = collation.find_in(&text, &sought);
    Ok(text_value(found.map_or("", |found| f(&text, found.start, found.end))))
}

fn concat(c: &Call<'_, '_>) -> Outcome {
    let mut out = String::new();
    for at in 0..c.args.len() {
        if let Some(atom) = c.atom(at)? {
            push_part(&mut out, &atom.to_text(), c.span)?;
        }
    }
    Ok(text_value(out))
}

fn string_join(c: &Call<'_, '_>) -> Outcome {
    let separator = c.required_text(1)?;
    let atoms = c.atoms(0)?;
    let texts = atoms.iter().map(|atom| {
        atom.as_text().map(|text| Cow::Borrowed(&**text)).ok_or_else(|| c.wrong(0, "strings", atom))
    });
    joined(c, &separator, texts)
}

/// The string of texts with a separator between them.
pub(super) fn joined<'t>(
    c: &Call<'_, '_>,
    separator: &str,
    texts: impl Iterator<Item = Result<Cow<'t, str>, Fault>>,
) -> Outcome {
    let mut out = String::new();
    for (at, text) in texts.enumerate() {
        if at > 0 {
            push_part(&mut out, separator, c.span)?;
        }
        push_part(&mut out, &text?, c.span)?;
    }
    Ok(text_value(out))
}

fn substring(c: &Call<'_, '_>) -> Outcome {
    let s = c.text(0)?;
    let from = c.double(1)?;
    let len = if c.args.len() > 2 { Some(c.double(2)?) } else { None };
    Ok(text_value(text::substring(Cow::Borrowed(&s), from, len)))
}

fn string_length(c: &Call<'_, '_>) -> Outcome {
    Ok(Value::from(text::length(&own_text(c)?) as i64))
}

fn normalize_unicode(c: &Call<'_, '_>) -> Outcome {
    let s = c.text(0)?;
    let form = if c.args.len() > 1 { c.required_text(1)? } else { Arc::from("NFC") };
    Ok(text_value(match form.trim().to_ascii_uppercase().as_str() {
        "" => return Ok(Value::String(s)),
        "NFC" => s.nfc().collect::<String>(),
        "NFD" => s.nfd().collect(),
        "NFKC" => s.nfkc().collect(),
        "NFKD" => s.nfkd().collect(),
        other => return Err(c.fail("FOCH0003", format!("there is no normalization form {other}"))),
    }))
}

fn compare(c: &Call<'_, '_>) -> Outcome {
    let collation = c.collation(2)?;
    match (c.text_option(0)?, c.text_option(1)?) {
        (Some(a), Some(b)) => Ok(Value::from(collation.key(&a).cmp(&collation.key(&b)) as i64)),
        _ => Ok(Value::Empty),
    }
}

fn codepoints_to_string(c: &Call<'_, '_>) -> Outcome {
    let mut out = String::new();
    for atom in c.atoms(0)? {
        let Atomic::Integer(n) = c.untyped_as(atom.clone(), crate::atomic::Kind::Integer)? else {
            return Err(c.wrong(0, "integers", &atom));
        };
        let found = u32::try_from(n).ok().and_then(char::from_u32);
        match found.filter(
            |c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..),
        ) {
            Some(found) => out.push(found),
            None => return Err(c.fail("FOCH0001", format!("{n} is not a character of XML"))),
        }
    }
    Ok(text_value(out))
}

impl Call<'_, '_> {
    /// The sequence of these items, of which a short text may make very many.
    pub(super) fn sequence(&self, items: impl Iterator<Item = Item>) -> Outcome {
        let mut all = Vec::new();
        for item in items {
            if all.len() % 1024 == 0 {
                crate::eval::spend(256)?;
                crate::sequence::bounded(all.len(), self.span)?;
            }
            all.push(item);
        }
        crate::sequence::bounded(all.len(), self.span)?;
        Ok(Value::from_items(all))
    }

    fn regex_failed(&self, error: RegexError) -> crate::eval::Fault {
        self.fail(error.code, error.message)
    }
}

/// `tokenize()` with a pattern that is known at run time.
pub(super) fn tokenize(c: &Call<'_, '_>) -> Outcome {
    let regex = dynamic(c, 1, 2)?;
    tokenize_with(c, &regex)
}

/// The pattern and the flags of a call.
fn dynamic(c: &Call<'_, '_>, pattern: usize, flags: usize) -> Result<Arc<Regex>, crate::eval::Fault> {
    let flags = if c.args.len() > flags { c.required_text(flags)? } else { Arc::from("") };
    Regex::cached(&c.required_text(pattern)?, &flags).map_err(|e| c.regex_failed(e))
}

/// `matches()` with a compiled pattern.
pub(in crate::sequence) fn matches_with(c: &Call<'_, '_>, regex: &Regex) -> Outcome {
    Ok(Value::Boolean(regex.is_match(&c.text(0)?).map_err(|e| c.regex_failed(e))?))
}

/// `replace()` with a compiled pattern; `with`: the index of the replacement argument.
pub(in crate::sequence) fn replace_with(c: &Call<'_, '_>, regex: &Regex, with: usize) -> Outcome {
    Ok(text_value(regex.replace(&c.text(0)?, &c.required_text(with)?).map_err(|e| c.regex_failed(e))?))
}

/// `tokenize()` with a compiled pattern.
pub(in crate::sequence) fn tokenize_with(c: &Call<'_, '_>, regex: &Regex) -> Outcome {
    let s = c.text(0)?;
    // With one more, the sequence is refused.
    let tokens = regex.tokenize(&s, MAX_ITEMS + 1).map_err(|e| c.regex_failed(e))?;
    c.sequence(tokens.into_iter().map(|t| Item::Atomic(Atomic::string(t))))
}
