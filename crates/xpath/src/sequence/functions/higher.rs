//! Higher-order functions, and functions about functions (F&O 3.1 sections 16 and 19).

use super::{Call, Entry, Looks, Outcome, row};
use crate::atomic::{Atomic, AtomicType, Kind};
use crate::collation::Collation;
use crate::eval::{Fault, spend};
use crate::items::{Body, FunctionItem};
use crate::sequence::apply::function_value;
use crate::sequence::bounded;
use crate::value::{Type, Value};
use std::cmp::Ordering;

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("for-each", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let function = c.function(1, 1)?;
        let mut out = Vec::new();
        for item in c.arg(0).items() {
            out.extend(c.apply(&function, vec![Value::from(item)])?.items());
            bounded(out.len(), c.span)?;
        }
        Ok(Value::from_items(out))
    }),
    row("filter", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let function = c.function(1, 1)?;
        let mut out = Vec::new();
        for item in c.arg(0).items() {
            if truth(c, &function, vec![Value::from(item.clone())])? {
                out.push(item);
            }
        }
        Ok(Value::from_items(out))
    }),
    row("fold-left", 3, 3, Type::Any, Looks::Nowhere, |c| {
        let function = c.function(2, 2)?;
        let mut value = c.arg(1).clone();
        for item in c.arg(0).items() {
            value = c.apply(&function, vec![value, Value::from(item)])?;
        }
        Ok(value)
    }),
    row("fold-right", 3, 3, Type::Any, Looks::Nowhere, |c| {
        let function = c.function(2, 2)?;
        let mut value = c.arg(1).clone();
        for item in c.arg(0).items().rev() {
            value = c.apply(&function, vec![Value::from(item), value])?;
        }
        Ok(value)
    }),
    row("for-each-pair", 3, 3, Type::Any, Looks::Nowhere, |c| {
        let function = c.function(2, 2)?;
        let mut out = Vec::new();
        for (a, b) in c.arg(0).items().zip(c.arg(1).items()) {
            out.extend(c.apply(&function, vec![Value::from(a), Value::from(b)])?.items());
            bounded(out.len(), c.span)?;
        }
        Ok(Value::from_items(out))
    }),
    row("sort", 1, 3, Type::Any, Looks::Nowhere, |c| {
        let mut out = Vec::new();
        for value in sorted(c, c.arg(0).items().map(Value::from).collect())? {
            out.extend(value.items());
        }
        Ok(Value::from_items(out))
    }),
    row("apply", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let array = c.array(1)?;
        let function = match c.arg(0).single_atomic() {
            Some(atom) if atom.is_function() => atom,
            _ => return Err(c.wrong_item(0, "a function")),
        };
        if crate::sequence::apply::arity_of(&function) != array.len() {
            let message = format!("the function cannot be applied to {} arguments", array.len());
            return Err(c.fail("FOAP0001", message));
        }
        c.apply(&function, array.members().cloned().collect())
    }),
    row("function-lookup", 2, 2, Type::Any, Looks::Everything, lookup),
    row("function-name", 1, 1, Type::Any, Looks::Nowhere, |c| match any(c)? {
        Atomic::Function(function) => {
            Ok(function.name.clone().map_or(Value::Empty, |name| Value::Atomic(Atomic::Name(name))))
        }
        _ => Ok(Value::Empty),
    }),
    row("function-arity", 1, 1, Type::Any, Looks::Nowhere, |c| {
        Ok(Value::from(crate::sequence::apply::arity_of(&any(c)?) as i64))
    }),
];

/// Argument 0 as a function of any arity.
fn any(c: &Call<'_, '_>) -> Result<Atomic, Fault> {
    match c.arg(0).single_atomic() {
        Some(atom) if atom.is_function() => Ok(atom),
        _ => Err(c.wrong_item(0, "a function")),
    }
}

/// The result of a function, which must be a boolean.
pub(super) fn truth(c: &Call<'_, '_>, function: &Atomic, args: Vec<Value>) -> Result<bool, Fault> {
    let value = c.apply(function, args)?;
    let call = Call { args: &[value], ..*c };
    match call.of_kind(0, Kind::Boolean)? {
        Some(Atomic::Boolean(truth)) => Ok(truth),
        _ => Err(c.fail("XPTY0004", format!("the function of {}() must give a boolean", c.name))),
    }
}

/// Sorts values by their keys: argument 1 is a collation, argument 2 the function of the keys.
pub(super) fn sorted(c: &Call<'_, '_>, values: Vec<Value>) -> Result<Vec<Value>, Fault> {
    let collation = if c.arg(1).is_empty() { Collation::default() } else { c.collation(1)? };
    let function = if c.args.len() > 2 { Some(c.function(2, 1)?) } else { None };
    let mut keyed: Vec<(Vec<Atomic>, Value)> = Vec::with_capacity(values.len());
    for value in values {
        let atoms = match &function {
            None => c.eval.atoms_of(&value)?,
            Some(function) => c.eval.atoms_of(&c.apply(function, vec![value.clone()])?)?,
        };
        let key = atoms.iter().map(|atom| match &*collation.atom(atom) {
            Atomic::Untyped(text) => Atomic::String(text.clone()),
            other => other.clone(),
        });
        keyed.push((key.collect(), value));
    }
    spend(keyed.len() * (keyed.len().max(1).ilog2() as usize + 1))?;
    // The first key at each place, with which all others must be comparable.
    let mut firsts: Vec<&Atomic> = Vec::new();
    for (key, _) in &keyed {
        for (at, atom) in key.iter().enumerate() {
            match firsts.get(at) {
                None => firsts.push(atom),
                Some(first) if first.is_ordered_with(atom) => {}
                Some(first) => {
                    let message =
                        format!("{}(): {} and {} have no order", c.name, first.describe(), atom.describe());
                    return Err(c.fail("XPTY0004", message));
                }
            }
        }
    }
    if keyed.len() > 1
        && let Some(none) = firsts.iter().find(|first| !first.is_ordered())
    {
        return Err(c.fail("XPTY0004", format!("{}(): {} has no order", c.name, none.describe())));
    }
    keyed.sort_by(|(a, _), (b, _)| {
        let pairs = a.iter().zip(b).map(|(a, b)| a.total_order(b));
        pairs.into_iter().find(|order| *order != Ordering::Equal).unwrap_or(a.len().cmp(&b.len()))
    });
    Ok(keyed.into_iter().map(|(_, value)| value).collect())
}

fn lookup(c: &Call<'_, '_>) -> Outcome {
    let Some(name) = c.qname(0)? else { return Err(c.missing(0, "a name")) };
    let Ok(arity) = usize::try_from(c.integer(1)?) else { return Ok(Value::Empty) };
    let made = |body: Body| function_value(FunctionItem::new(Some(name.clone()), arity, None, body), c.span);
    if *name.namespace == *crate::sequence::types::XSD
        && arity == 1
        && AtomicType::of_list(&name.local).is_some()
    {
        return made(Body::Native(list, [Value::from(&*name.local)].into()));
    }
    if *name.namespace == *crate::sequence::types::XSD {
        return match AtomicType::find(&name.local).filter(|ty| arity == 1 && ty.kind != Kind::Any) {
            Some(ty) if ty.name != "NOTATION" => made(Body::Cast(ty)),
            _ => Ok(Value::Empty),
        };
    }
    if let Some(found) = c.eval.cx.host.find_function(&name.namespace, &name.local, arity) {
        return made(Body::Extension(found));
    }
    match super::find_in(&name.namespace, &name.local) {
        Some(entry) if (entry.least..=entry.most).contains(&arity) => {
            made(Body::Entry(entry, Some(c.eval.seen(c.at))))
        }
        _ => Ok(Value::Empty),
    }
}

/// The constructor function of a list type, whose name was captured.
fn list(c: &Call<'_, '_>, captured: &[Value]) -> Outcome {
    let ty = match captured.first().and_then(Value::single_atomic) {
        Some(name) => AtomicType::of_list(&name.to_text()),
        None => None,
    };
    match (ty, c.atom(0)?) {
        (Some(ty), Some(atom)) => crate::sequence::list_of(&atom, ty, c.span),
        _ => Ok(Value::Empty),
    }
}
