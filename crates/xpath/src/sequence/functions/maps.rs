//! Functions of maps (F&O 3.1 section 17.1).

use super::{Call, Entry, Looks, Outcome, row};
use crate::atomic::Atomic;
use crate::eval::{Fault, spend};
use crate::items::{Map, MapBuilder, looked_at};
use crate::sequence::apply::{map_value, new_array};
use crate::sequence::bounded;
use crate::value::{Item, Type, Value};
use std::sync::Arc;

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("size", 1, 1, Type::Any, Looks::Nowhere, |c| Ok(Value::from(c.map(0)?.len() as i64))),
    row("keys", 1, 1, Type::Any, Looks::Nowhere, |c| {
        let map = c.map(0)?;
        spend(map.len())?;
        Ok(Value::from_items(map.entries().into_iter().map(|(key, _)| Item::Atomic(key.clone())).collect()))
    }),
    row("contains", 2, 2, Type::Boolean, Looks::Nowhere, |c| {
        let map = c.map(0)?;
        Ok(Value::Boolean(map.get(&key(c, 1)?).is_some()))
    }),
    row("get", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let map = c.map(0)?;
        Ok(map.get(&key(c, 1)?).cloned().unwrap_or_default())
    })
    .in_constant_time(),
    row("entry", 2, 2, Type::Any, Looks::Nowhere, |c| map_value(Map::new().put(key(c, 0)?, c.arg(1).clone()), c.span)),
    row("put", 3, 3, Type::Any, Looks::Nowhere, |c| {
        let map = c.map(0)?;
        spend(looked_at(c.arg(2)) >> 1)?;
        map_value(map.put(key(c, 1)?, c.arg(2).clone()), c.span)
    })
    .in_constant_time(),
    row("remove", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let mut map = (*c.map(0)?).clone();
        for key in c.atoms(1)? {
            map = map.remove(&key);
        }
        map_value(Ok(map), c.span)
    }),
    row("merge", 1, 2, Type::Any, Looks::Nowhere, merge),
    row("for-each", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let (map, function) = (c.map(0)?, c.function(1, 2)?);
        let mut out = Vec::new();
        for (key, value) in map.entries() {
            out.extend(c.apply(&function, vec![Value::from(key.clone()), value.clone()])?.items());
            bounded(out.len(), c.span)?;
        }
        Ok(Value::from_items(out))
    }),
    row("find", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let wanted = key(c, 1)?;
        let mut found = Vec::new();
        find(c, c.arg(0), &wanted, &mut found)?;
        new_array(found, c.span)
    }),
];

fn key(c: &Call<'_, '_>, at: usize) -> Result<Atomic, Fault> {
    c.atom(at)?.ok_or_else(|| c.missing(at, "a single value"))
}

/// The maps of a sequence.
pub(super) fn maps_of(c: &Call<'_, '_>, at: usize) -> Result<Vec<Arc<Map>>, Fault> {
    let mut maps = Vec::new();
    for item in c.arg(at).items() {
        match item {
            Item::Atomic(Atomic::Map(map)) => maps.push(map),
            _ => return Err(c.wrong_item(at, "maps")),
        }
    }
    Ok(maps)
}

fn merge(c: &Call<'_, '_>) -> Outcome {
    let rule = match c.args.len() {
        1 => None,
        _ => c.map(1)?.get(&Atomic::string("duplicates")).cloned(),
    };
    let rule = match &rule {
        None => "use-first".to_owned(),
        Some(value) => match value.single_atomic() {
            Some(atom) if !atom.is_function() => atom.to_text().into_owned(),
            _ => return Err(c.fail("FOJS0005", "the option duplicates must be a string")),
        },
    };
    if !matches!(&*rule, "reject" | "use-first" | "use-last" | "use-any" | "combine") {
        return Err(c.fail("FOJS0005", format!("the option duplicates cannot be \"{rule}\"")));
    }
    let maps = maps_of(c, 0)?;
    let Some((first, others)) = maps.split_first() else { return map_value(Ok(Map::new()), c.span) };
    if rule == "combine" {
        return combined(c, first, others);
    }
    // The value of a key that two maps have.
    let chosen = |key: &Atomic, old: &Value, value: &Value| -> Outcome {
        match &*rule {
            "use-first" | "use-any" => Ok(old.clone()),
            "use-last" => Ok(value.clone()),
            _ => Err(c.fail("FOJS0003", format!("two of the maps have the key {}", key.to_text()))),
        }
    };
    // A few entries are added to a large map, or many maps are merged into one.
    if others.iter().map(|map| map.len()).sum::<usize>() <= first.len() {
        let mut merged = (**first).clone();
        for map in others {
            spend(map.len() * 2)?;
            for (key, value) in map.entries() {
                let value = match merged.get(key) {
                    Some(_) if matches!(&*rule, "use-first" | "use-any") => continue,
                    Some(old) => chosen(key, old, value)?,
                    None => value.clone(),
                };
                merged = merged.put(key.clone(), value).map_err(|e| c.fail("FOER0000", e.to_string()))?;
            }
        }
        return map_value(Ok(merged), c.span);
    }
    let mut merged = MapBuilder::default();
    for map in &maps {
        spend(map.len() * 2)?;
        for (key, value) in map.entries() {
            match merged.entry(key) {
                // The last entry counts as a whole: its key may be of another type.
                Some((kept, old)) => {
                    *old = chosen(key, old, value)?;
                    if rule == "use-last" {
                        *kept = key.clone();
                    }
                }
                None => merged.add(key.clone(), value.clone()),
            }
        }
    }
    map_value(merged.finish(), c.span)
}

/// The maps as one, with all values of a key that several have: each value is copied once.
fn combined(c: &Call<'_, '_>, first: &Map, others: &[Arc<Map>]) -> Outcome {
    let mut places = MapBuilder::default();
    let mut added: Vec<(Atomic, Vec<Item>)> = Vec::new();
    for map in others {
        spend(map.len() * 2)?;
        for (key, value) in map.entries() {
            spend(value.len())?;
            let place = match places.get_mut(key) {
                Some(Value::Atomic(Atomic::Integer(place))) => *place as usize,
                _ => {
                    places.add(key.clone(), Value::from(added.len() as i64));
                    added.push((key.clone(), Vec::new()));
                    added.len() - 1
                }
            };
            let items = &mut added[place].1;
            items.extend(value.items());
            bounded(items.len(), c.span)?;
        }
    }
    // A few entries are added to a large map, or many maps are merged into one.
    let few = added.len() <= first.len();
    let (mut merged, mut built) = (first.clone(), MapBuilder::default());
    if !few {
        spend(first.len() * 2)?;
        for (key, value) in first.entries() {
            built.add(key.clone(), value.clone());
        }
    }
    for (key, items) in added {
        let mut all: Vec<Item> = first.get(&key).map(|value| value.items().collect()).unwrap_or_default();
        spend(all.len())?;
        bounded(all.len() + items.len(), c.span)?;
        all.extend(items);
        let value = Value::from_items(all);
        if few {
            merged = merged.put(key, value).map_err(|e| c.fail("FOER0000", e.to_string()))?;
        } else if let Some(old) = built.get_mut(&key) {
            *old = value;
        } else {
            built.add(key, value);
        }
    }
    map_value(if few { Ok(merged) } else { built.finish() }, c.span)
}

/// All values of a key in nested maps.
fn find(c: &Call<'_, '_>, value: &Value, wanted: &Atomic, found: &mut Vec<Value>) -> Result<(), Fault> {
    for item in value.items() {
        spend(1)?;
        match item {
            Item::Atomic(Atomic::Map(map)) => {
                found.extend(map.get(wanted).cloned());
                bounded(found.len(), c.span)?;
                for (_, value) in map.entries() {
                    find(c, value, wanted, found)?;
                }
            }
            Item::Atomic(Atomic::Array(array)) => {
                for member in array.members() {
                    find(c, member, wanted, found)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}
