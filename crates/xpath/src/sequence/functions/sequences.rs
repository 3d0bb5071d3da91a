//! Sequences (F&O section 15).

use super::{Call, Entry, Looks, Outcome, row};
use crate::atomic::{Alike, Atomic};
use crate::collation::Collation;
use crate::eval::spend;
use crate::sequence::joined::Collected;
use crate::sequence::operators;
use crate::value::{Item, Type, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("empty", 1, 1, Type::Boolean, Looks::Nowhere, |c| Ok(Value::Boolean(c.arg(0).is_empty()))).in_constant_time(),
    row("exists", 1, 1, Type::Boolean, Looks::Nowhere, |c| Ok(Value::Boolean(!c.arg(0).is_empty()))).in_constant_time(),
    row("count", 1, 1, Type::Any, Looks::Nowhere, |c| Ok(Value::from(c.arg(0).len() as i64))).in_constant_time(),
    row("data", 1, 1, Type::Any, Looks::Nowhere, |c| {
        Ok(Value::from_items(c.atoms(0)?.into_iter().map(Item::Atomic).collect()))
    }),
    row("distinct-values", 1, 2, Type::Any, Looks::Nowhere, distinct_values),
    row("index-of", 2, 3, Type::Any, Looks::Nowhere, index_of),
    row("insert-before", 3, 3, Type::Any, Looks::Nowhere, |c| {
        let all = c.arg(0);
        let at = usize::try_from(c.integer(1)?.max(1) - 1).unwrap_or(usize::MAX).min(all.len());
        joined([part(all, 0..at)?, c.arg(2).clone(), part(all, at..all.len())?])
    })
    .in_constant_time(),
    row("remove", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let (at, all) = (usize::try_from(c.integer(1)?).unwrap_or(0), c.arg(0));
        if at == 0 || at > all.len() {
            return Ok(all.clone());
        }
        joined([part(all, 0..at - 1)?, part(all, at..all.len())?])
    })
    .in_constant_time(),
    row("reverse", 1, 1, Type::Any, Looks::Nowhere, |c| Ok(Value::from_items(c.arg(0).items().rev().collect()))),
    row("subsequence", 2, 3, Type::Any, Looks::Nowhere, subsequence).in_constant_time(),
    row("unordered", 1, 1, Type::Any, Looks::Nowhere, |c| Ok(c.arg(0).clone())),
    row("zero-or-one", 1, 1, Type::Any, Looks::Nowhere, |c| match c.arg(0).len() {
        0 | 1 => Ok(c.arg(0).clone()),
        n => Err(c.fail("FORG0003", format!("zero-or-one() was given {n} items"))),
    })
    .in_constant_time(),
    row("one-or-more", 1, 1, Type::Any, Looks::Nowhere, |c| match c.arg(0).len() {
        0 => Err(c.fail("FORG0004", "one-or-more() was given no item")),
        _ => Ok(c.arg(0).clone()),
    })
    .in_constant_time(),
    row("exactly-one", 1, 1, Type::Any, Looks::Nowhere, |c| match c.arg(0).len() {
        1 => Ok(c.arg(0).clone()),
        n => Err(c.fail("FORG0005", format!("exactly-one() was given {n} items"))),
    })
    .in_constant_time(),
    row("deep-equal", 2, 3, Type::Boolean, Looks::Nowhere, |c| {
        let collation = c.collation(2)?;
        Ok(Value::Boolean(super::deep_equal(c.eval, c.arg(0), c.arg(1), collation)?))
    }),
];

/// These values as one sequence, which shares the long ones.
fn joined<const N: usize>(parts: [Value; N]) -> Outcome {
    let mut joined = Collected::default();
    parts.into_iter().try_for_each(|part| joined.add(part))?;
    joined.value()
}

/// Those items of a value that are at these indexes; only what is copied is work.
pub(crate) fn part(value: &Value, indexes: Range<usize>) -> Outcome {
    let part = value.part(indexes);
    spend(part.copied_from(value) >> 1)?;
    Ok(part)
}

/// Keeps one of equal values (NaN equals itself here).
pub(crate) fn distinct(atoms: Vec<Atomic>, collation: Collation) -> Vec<Atomic> {
    let mut texts: HashSet<Arc<str>> = HashSet::new();
    let mut others: Alike<()> = Alike::default();
    let mut kept = Vec::new();
    for atom in atoms {
        let mut new = false;
        match atom.as_text() {
            Some(text) => {
                new = texts.insert(match collation.key(text) {
                    Cow::Borrowed(_) => text.clone(),
                    Cow::Owned(key) => key.into(),
                });
            }
            None => *others.get_or_add(std::slice::from_ref(&atom), || new = true),
        }
        if new {
            kept.push(atom);
        }
    }
    kept
}

fn distinct_values(c: &Call<'_, '_>) -> Outcome {
    let collation = c.collation(1)?;
    Ok(Value::from_items(distinct(c.atoms(0)?, collation).into_iter().map(Item::Atomic).collect()))
}

fn index_of(c: &Call<'_, '_>) -> Outcome {
    let collation = c.collation(2)?;
    let Some(wanted) = c.atom(1)? else {
        return Err(c.missing(1, "an atomic value"));
    };
    let text = |a: &Atomic| match &*collation.atom(a) {
        Atomic::Untyped(s) => Atomic::String(s.clone()),
        other => other.clone(),
    };
    let wanted = text(&wanted);
    let found =
        c.atoms(0)?.into_iter().enumerate().filter(|(_, atom)| operators::equal(&text(atom), &wanted));
    Ok(Value::from_items(found.map(|(at, _)| Item::Atomic(Atomic::Integer(at as i64 + 1))).collect()))
}

fn subsequence(c: &Call<'_, '_>) -> Outcome {
    let first = crate::number::round(c.double(1)?);
    let behind = if c.args.len() > 2 { first + crate::number::round(c.double(2)?) } else { f64::INFINITY };
    // Both are whole numbers, infinite, or not a number: then nothing is within.
    if first.is_nan() || behind.is_nan() {
        return Ok(Value::Empty);
    }
    let index = |position: f64| (position - 1.0).max(0.0) as usize;
    part(c.arg(0), index(first)..index(behind))
}
