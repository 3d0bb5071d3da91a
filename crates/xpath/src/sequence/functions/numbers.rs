//! Numbers and aggregates (F&O sections 6.4 and 15.4), booleans, errors.

use super::{Call, Entry, Looks, Outcome, optional, row};
use crate::atomic::{Atomic, AtomicType, Decimal, Kind, large};
use crate::error::Raised;
use crate::eval::Fault;
use crate::sequence::operators::{self, Compared, Number};
use crate::sequence::plan::Arithmetic;
use crate::sequence::single::SingleFunction;
use crate::value::{Item, Type, Value};
use num_bigint::BigInt;
use std::cmp::Ordering;
use std::sync::Arc;

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("position", 0, 0, Type::Any, Looks::Position, |c| c.in_focus(c.at.position)).on_single(SingleFunction::Position),
    row("last", 0, 0, Type::Any, Looks::Size, |c| c.in_focus(c.at.size)).on_single(SingleFunction::Last),
    row("number", 0, 1, Type::Number, Looks::Context(1), number).on_single(SingleFunction::Number),
    row("abs", 1, 1, Type::Any, Looks::Nowhere, |c| {
        each(c, i64::checked_abs, Decimal::abs, f64::abs)
    }).on_single(SingleFunction::Abs),
    row("ceiling", 1, 1, Type::Any, Looks::Nowhere, |c| each(c, Some, Decimal::ceiling, f64::ceil)).on_single(SingleFunction::Ceiling),
    row("floor", 1, 1, Type::Any, Looks::Nowhere, |c| each(c, Some, Decimal::floor, f64::floor)).on_single(SingleFunction::Floor),
    row("round", 1, 1, Type::Any, Looks::Nowhere, round).on_single(SingleFunction::Round),
    row("round-half-to-even", 1, 2, Type::Any, Looks::Nowhere, round_half_to_even),
    row("sum", 1, 2, Type::Any, Looks::Nowhere, sum),
    row("avg", 1, 1, Type::Any, Looks::Nowhere, avg),
    row("max", 1, 2, Type::Any, Looks::Nowhere, |c| extreme(c, Ordering::Greater)),
    row("min", 1, 2, Type::Any, Looks::Nowhere, |c| extreme(c, Ordering::Less)),
    row("true", 0, 0, Type::Boolean, Looks::Nowhere, |_| Ok(Value::Boolean(true))),
    row("false", 0, 0, Type::Boolean, Looks::Nowhere, |_| Ok(Value::Boolean(false))),
    row("boolean", 1, 1, Type::Boolean, Looks::Nowhere, |c| Ok(Value::Boolean(c.eval.truth_of(c.arg(0), c.span)?))),
    row("not", 1, 1, Type::Boolean, Looks::Nowhere, |c| Ok(Value::Boolean(!c.eval.truth_of(c.arg(0), c.span)?))),
    row("error", 0, 3, Type::Any, Looks::Nowhere, error),
    row("trace", 2, 2, Type::Any, Looks::Nowhere, |c| {
        c.required_text(1)?;
        Ok(c.arg(0).clone())
    }),
];

fn number(c: &Call<'_, '_>) -> Outcome {
    let atom = match c.args {
        [] => match c.context()? {
            Item::Node(node) => Some(c.eval.atom_of_node(node)?),
            Item::Atomic(atom) => Some(atom),
        },
        _ => c.atom(0)?,
    };
    Ok(Value::Number(atom.map_or(f64::NAN, |a| a.to_double())))
}

/// A function on one number, by its type.
fn each(
    c: &Call<'_, '_>,
    integer: fn(i64) -> Option<i64>,
    decimal: fn(Decimal) -> Decimal,
    double: fn(f64) -> f64,
) -> Outcome {
    // (Only the result of abs() may have another type.)
    let other = |n: BigInt| if c.name == "abs" { BigInt::from(n.magnitude().clone()) } else { n };
    let too_large = || c.fail("FOAR0002", "the result is too large");
    if let Value::Atomic(Atomic::Large(n)) = c.arg(0) {
        return large::integer(other((**n).clone())).map(Value::from).ok_or_else(too_large);
    }
    Ok(match c.number(0)? {
        None => Value::Empty,
        Some(Number::Integer(n)) => match integer(n) {
            Some(n) => Value::from(n),
            None => large::integer(other(n.into())).map(Value::from).ok_or_else(too_large)?,
        },
        Some(Number::Decimal(d)) => Value::from(Atomic::decimal(decimal(d))),
        Some(Number::Float(n)) => Value::Atomic(Atomic::Float(double(f64::from(n)) as f32)),
        Some(Number::Double(n)) => Value::Number(double(n)),
    })
}

pub(super) fn round(c: &Call<'_, '_>) -> Outcome {
    each(c, Some, |d| d.round(0, false), crate::number::round)
}

fn round_half_to_even(c: &Call<'_, '_>) -> Outcome {
    let digits = if c.args.len() > 1 { c.integer(1)? } else { 0 };
    if let Some(atom @ (Atomic::Integer(_) | Atomic::Large(_))) = c.atom(0)? {
        return whole_rounded(c, atom, digits, true);
    }
    // Beyond these bounds nothing changes, or nothing is left.
    let digits = digits.clamp(-400, 400);
    let double = |n: f64| -> f64 {
        if !n.is_finite() || n == 0.0 {
            return n;
        }
        match Decimal::from_double(n) {
            Some(d) => {
                let rounded = d.round(digits, true).to_double();
                if rounded == 0.0 && n < 0.0 { -0.0 } else { rounded }
            }
            // Too large or too small for a decimal: only many digits could be dropped.
            None if n.abs() < 1.0 => 0.0,
            None => n,
        }
    };
    Ok(match c.number(0)? {
        None => Value::Empty,
        Some(Number::Integer(n)) => Value::from(n),
        Some(Number::Decimal(d)) => Value::from(Atomic::decimal(d.round(digits, true))),
        // By all digits of the float, not by those of its lexical form.
        Some(Number::Float(n)) if !n.is_finite() || n == 0.0 => Value::Atomic(Atomic::Float(n)),
        // (From 2^24 on they have no fraction.)
        Some(Number::Float(n)) => match Decimal::parse(&match n.abs() < 16_777_216.0 {
            true => format!("{:.30}", f64::from(n)),
            false => format!("{:.0}", f64::from(n)),
        }) {
            Some(d) => {
                let rounded = d.round(digits, true).to_double() as f32;
                Value::Atomic(Atomic::Float(if rounded == 0.0 { 0f32.copysign(n) } else { rounded }))
            }
            None => Value::Atomic(Atomic::Float(n)),
        },
        Some(Number::Double(n)) => Value::Number(double(n)),
    })
}

/// An integer rounded to `digits` places.
pub(super) fn whole_rounded(c: &Call<'_, '_>, atom: Atomic, digits: i64, half_even: bool) -> Outcome {
    let (Some(n), true) = (large::whole(&atom), digits < 0) else { return Ok(Value::from(atom)) };
    let places = u32::try_from(digits.unsigned_abs()).unwrap_or(u32::MAX);
    let rounded = large::integer(large::rounded(&n, places, half_even));
    rounded.map(Value::from).ok_or_else(|| c.fail("FOAR0002", "the result has too many digits"))
}

/// The values of an aggregate, untyped ones as doubles.
fn aggregated(c: &Call<'_, '_>) -> Result<Vec<Atomic>, Fault> {
    c.atoms(0)?.into_iter().map(|atom| c.untyped_as(atom, Kind::Double)).collect()
}

fn total(c: &Call<'_, '_>, atoms: Vec<Atomic>) -> Result<Option<Atomic>, Fault> {
    let mut sum: Option<Atomic> = None;
    for atom in atoms {
        if !atom.is_numeric()
            && !matches!(&atom, Atomic::Duration(d) if d.kind != crate::atomic::DurationKind::Duration)
        {
            let ty = AtomicType::of(atom.kind()).name;
            return Err(c.fail("FORG0006", format!("{}() cannot add an xs:{ty}", c.name)));
        }
        sum = Some(match sum {
            None => atom,
            Some(sum) => operators::arithmetic(Arithmetic::Add, &sum, &atom, c.span).map_err(|mut e| {
                if e.code == "XPTY0004" {
                    e.code = "FORG0006".into();
                }
                e
            })?,
        });
    }
    Ok(sum)
}

/// The sum of nodes whose values are numbers, without their atomic values.
fn sum_of_nodes(c: &Call<'_, '_>) -> Result<Option<f64>, Fault> {
    let Some(Value::NodeSet(nodes)) = c.args.first() else { return Ok(None) };
    let mut sum = None;
    for node in nodes.iter() {
        let Some(number) = c.eval.untyped_double(node)? else { return Ok(None) };
        sum = Some(sum.map_or(number, |sum: f64| sum + number));
    }
    Ok(sum)
}

fn sum(c: &Call<'_, '_>) -> Outcome {
    let zero = c.atom(1)?;
    if let Some(sum) = sum_of_nodes(c)? {
        return Ok(Value::from(Atomic::Double(sum)));
    }
    match total(c, aggregated(c)?)? {
        Some(sum) => Ok(Value::from(sum)),
        None if c.args.len() > 1 => Ok(optional(zero)),
        None => Ok(Value::from(0)),
    }
}

fn avg(c: &Call<'_, '_>) -> Outcome {
    let atoms = aggregated(c)?;
    let count = Atomic::Integer(atoms.len() as i64);
    match total(c, atoms)? {
        Some(sum) => Ok(Value::from(operators::arithmetic(Arithmetic::Divide, &sum, &count, c.span)?)),
        None => Ok(Value::Empty),
    }
}

fn extreme(c: &Call<'_, '_>, wanted: Ordering) -> Outcome {
    let collation = c.collation(1)?;
    let atoms = aggregated(c)?;
    // Numbers are promoted to their common type.
    let widest = |kind: Kind| match kind {
        Kind::Double => 3,
        Kind::Float => 2,
        _ => 1,
    };
    let numeric = atoms.iter().all(Atomic::is_numeric);
    let target = atoms.iter().map(|a| a.kind()).filter(|_| numeric).max_by_key(|kind| widest(*kind));
    let mut best: Option<Atomic> = None;
    for atom in atoms {
        let atom = match (target, atom) {
            (Some(kind @ (Kind::Double | Kind::Float)), atom) => {
                atom.cast(AtomicType::of(kind)).map_err(|e| c.fail(e.code, e.message))?
            }
            (_, Atomic::Uri(s)) => Atomic::String(s),
            (_, atom) => atom,
        };
        let Some(so_far) = &best else {
            best = Some(ordered(c, atom)?);
            continue;
        };
        match operators::compare(&collation.atom(&atom), &collation.atom(so_far)) {
            Some(Compared::Order(order)) => {
                if order == wanted {
                    best = Some(atom);
                }
            }
            Some(Compared::Unordered) => {
                // One of them is NaN, which is the result if all that follows can be compared with it.
                if atom.to_double().is_nan() {
                    best = Some(atom);
                }
            }
            _ => {
                let (a, b) = (AtomicType::of(atom.kind()).name, AtomicType::of(so_far.kind()).name);
                return Err(
                    c.fail("FORG0006", format!("{}() cannot compare an xs:{a} with an xs:{b}", c.name))
                );
            }
        }
    }
    Ok(optional(best))
}

/// The value, if its type has an order.
fn ordered(c: &Call<'_, '_>, atom: Atomic) -> Result<Atomic, Fault> {
    if matches!(operators::compare(&atom, &atom), Some(Compared::Order(_) | Compared::Unordered)) {
        return Ok(atom);
    }
    let ty = AtomicType::of(atom.kind()).name;
    Err(c.fail("FORG0006", format!("{}(): values of type xs:{ty} have no order", c.name)))
}

fn error(c: &Call<'_, '_>) -> Outcome {
    let code = match c.args.len() {
        0 => None,
        _ => c.qname(0)?,
    };
    let message =
        if c.args.len() > 1 { c.required_text(1)?.to_string() } else { "error() was called".to_owned() };
    let mut fault = c.fail("FOER0000", message);
    let value = c.args.get(2).cloned().unwrap_or(Value::Empty);
    if let Some(code) = code {
        fault.code = code.local.to_string().into();
        let (prefix, namespace) = (code.prefix.clone(), code.namespace.clone());
        fault.raised = Some(Arc::new(Raised { prefix, namespace, value }));
    } else if !value.is_empty() {
        let (prefix, namespace) = ("err".into(), "http://www.w3.org/2005/xqt-errors".into());
        fault.raised = Some(Arc::new(Raised { prefix, namespace, value }));
    }
    Err(fault)
}
