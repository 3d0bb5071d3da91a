//! Functions of arrays (F&O 3.1 section 17.3).

use super::{Call, Entry, Looks, Outcome, row};
use crate::atomic::Atomic;
use crate::eval::{Fault, spend};
use crate::items::{Array, looked_at};
use crate::sequence::apply::new_array;
use crate::sequence::{array_value, bounded};
use crate::value::{Item, Type, Value};

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("size", 1, 1, Type::Any, Looks::Nowhere, |c| Ok(Value::from(c.array(0)?.len() as i64))),
    row("get", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let array = c.array(0)?;
        c.eval.found(&Atomic::Array(array), &Atomic::Integer(c.integer(1)?), c.span)
    })
    .in_constant_time(),
    row("put", 3, 3, Type::Any, Looks::Nowhere, |c| {
        let array = c.array(0)?;
        spend(looked_at(c.arg(2)) >> 1)?;
        array_value(array.set(place(c, &array, 1, 0)?, c.arg(2).clone()), c.span)
    })
    .in_constant_time(),
    row("append", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let array = c.array(0)?;
        spend(looked_at(c.arg(1)) >> 1)?;
        array_value(array.insert(array.len(), c.arg(1).clone()), c.span)
    })
    .in_constant_time(),
    row("insert-before", 3, 3, Type::Any, Looks::Nowhere, |c| {
        let array = c.array(0)?;
        array_value(array.insert(place(c, &array, 1, 1)?, c.arg(2).clone()), c.span)
    }),
    row("subarray", 2, 3, Type::Any, Looks::Nowhere, subarray),
    row("remove", 2, 2, Type::Any, Looks::Nowhere, remove),
    row("head", 1, 1, Type::Any, Looks::Nowhere, |c| match c.array(0)?.get(0) {
        Some(member) => Ok(member.clone()),
        None => Err(c.fail("FOAY0001", "array:head() of an array without members")),
    }),
    row("tail", 1, 1, Type::Any, Looks::Nowhere, |c| {
        let array = c.array(0)?;
        if array.is_empty() {
            return Err(c.fail("FOAY0001", "array:tail() of an array without members"));
        }
        array_value(Ok(array.slice(1, array.len() - 1)), c.span)
    }),
    row("reverse", 1, 1, Type::Any, Looks::Nowhere, |c| {
        let mut members: Vec<Value> = c.array(0)?.members().cloned().collect();
        members.reverse();
        new_array(members, c.span)
    }),
    row("join", 1, 1, Type::Any, Looks::Nowhere, |c| {
        let mut joined = Array::default();
        for item in c.arg(0).items() {
            let Item::Atomic(Atomic::Array(array)) = item else { return Err(c.wrong_item(0, "arrays")) };
            spend(1)?;
            joined = joined.concat(&array);
            bounded(joined.len(), c.span)?;
        }
        array_value(Ok(joined), c.span)
    }),
    row("for-each", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let (array, function) = (c.array(0)?, c.function(1, 1)?);
        let made = array.members().map(|member| c.apply(&function, vec![member.clone()]));
        new_array(made.collect::<Result<_, _>>()?, c.span)
    }),
    row("filter", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let (array, function) = (c.array(0)?, c.function(1, 1)?);
        let mut kept = Vec::new();
        for member in array.members() {
            if super::higher::truth(c, &function, vec![member.clone()])? {
                kept.push(member.clone());
            }
        }
        new_array(kept, c.span)
    }),
    row("fold-left", 3, 3, Type::Any, Looks::Nowhere, |c| {
        let (array, function) = (c.array(0)?, c.function(2, 2)?);
        let mut value = c.arg(1).clone();
        for member in array.members() {
            value = c.apply(&function, vec![value, member.clone()])?;
        }
        Ok(value)
    }),
    row("fold-right", 3, 3, Type::Any, Looks::Nowhere, |c| {
        let (array, function) = (c.array(0)?, c.function(2, 2)?);
        let mut value = c.arg(1).clone();
        for at in (0..array.len()).rev() {
            value = c.apply(&function, vec![array.get(at).cloned().unwrap_or_default(), value])?;
        }
        Ok(value)
    }),
    row("for-each-pair", 3, 3, Type::Any, Looks::Nowhere, |c| {
        let (a, b, function) = (c.array(0)?, c.array(1)?, c.function(2, 2)?);
        let made = a.members().zip(b.members()).map(|(a, b)| c.apply(&function, vec![a.clone(), b.clone()]));
        new_array(made.collect::<Result<_, _>>()?, c.span)
    }),
    row("sort", 1, 3, Type::Any, Looks::Nowhere, |c| {
        let members = c.array(0)?.members().cloned().collect();
        new_array(super::higher::sorted(c, members)?, c.span)
    }),
    row("flatten", 1, 1, Type::Any, Looks::Nowhere, |c| {
        let mut out = Vec::new();
        flatten(c, c.arg(0), &mut out)?;
        Ok(Value::from_items(out))
    }),
];

/// The argument as an index from 0, which may be `beyond` the last.
fn place(c: &Call<'_, '_>, array: &Array, at: usize, beyond: usize) -> Result<usize, Fault> {
    let wanted = c.integer(at)?;
    let index = wanted.checked_sub(1).and_then(|n| usize::try_from(n).ok());
    index.filter(|n| *n < array.len() + beyond).ok_or_else(|| {
        c.fail("FOAY0001", format!("the array has {} members, there is no place {wanted}", array.len()))
    })
}

fn subarray(c: &Call<'_, '_>) -> Outcome {
    let array = c.array(0)?;
    let from = place(c, &array, 1, 1)?;
    let len = match c.args.len() {
        2 => array.len() - from,
        _ => match c.integer(2)? {
            len if len < 0 => return Err(c.fail("FOAY0002", format!("an array cannot have {len} members"))),
            len => match usize::try_from(len).ok().filter(|len| *len <= array.len() - from) {
                Some(len) => len,
                None => {
                    let message =
                        format!("the array has {} members, not {len} from {}", array.len(), from + 1);
                    return Err(c.fail("FOAY0001", message));
                }
            },
        },
    };
    array_value(Ok(array.slice(from, len)), c.span)
}

fn remove(c: &Call<'_, '_>) -> Outcome {
    let mut array = (*c.array(0)?).clone();
    let mut places = Vec::new();
    for atom in c.atoms(1)? {
        let position = Value::from(atom);
        let call = Call { args: &[c.arg(0).clone(), position], ..*c };
        places.push(place(&call, &array, 1, 0)?);
    }
    places.sort_unstable();
    places.dedup();
    for place in places.into_iter().rev() {
        array = array.remove(place);
    }
    array_value(Ok(array), c.span)
}

fn flatten(c: &Call<'_, '_>, value: &Value, out: &mut Vec<Item>) -> Result<(), Fault> {
    for item in value.items() {
        spend(1)?;
        match item {
            Item::Atomic(Atomic::Array(array)) => {
                for member in array.members() {
                    flatten(c, member, out)?;
                }
            }
            item => out.push(item),
        }
        bounded(out.len(), c.span)?;
    }
    Ok(())
}
