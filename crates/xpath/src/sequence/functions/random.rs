//! `random-number-generator()` (F&O 3.1 section 4.9): a number, the next generator, and a function that shuffles.

use super::{Call, Outcome};
use crate::atomic::Atomic;
use crate::eval::{Fault, spend};
use crate::items::{Body, FunctionItem, Map};
use crate::sequence::apply::{function_value, map_value};
use crate::value::{Item, Value};

/// The next state of a sequence, and 64 bits of it (SplitMix64, Steele, Lea and Flood 2014).
fn next(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut bits = state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (state, bits ^ (bits >> 31))
}

pub(super) fn generator(c: &Call<'_, '_>) -> Outcome {
    // The same seed gives the same sequence.
    let text = match c.atom(0)? {
        Some(atom) => atom.to_text().into_owned(),
        None => c.now().to_text(),
    };
    let seed = text
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    of_state(c, seed)
}

fn of_state(c: &Call<'_, '_>, state: u64) -> Outcome {
    let (after, bits) = next(state);
    let number = (bits >> 11) as f64 / (1u64 << 53) as f64;
    let native = |arity: usize, run: fn(&Call<'_, '_>, &[Value]) -> Outcome| -> Result<Value, Fault> {
        let kept = [Value::Atomic(Atomic::Integer(after as i64))];
        function_value(FunctionItem::new(None, arity, None, Body::Native(run, kept.into())), c.span)
    };
    let mut map = Map::new();
    for (key, value) in
        [("number", Value::Number(number)), ("next", native(0, go_on)?), ("permute", native(1, permute)?)]
    {
        map = map.put(Atomic::string(key), value).map_err(|e| c.fail("FOER0000", e.to_string()))?;
    }
    map_value(Ok(map), c.span)
}

fn state_of(kept: &[Value]) -> u64 {
    match kept {
        [Value::Atomic(Atomic::Integer(state))] => *state as u64,
        _ => 0,
    }
}

fn go_on(c: &Call<'_, '_>, kept: &[Value]) -> Outcome {
    of_state(c, state_of(kept))
}

fn permute(c: &Call<'_, '_>, kept: &[Value]) -> Outcome {
    let mut items: Vec<Item> = c.arg(0).items().collect();
    spend(items.len())?;
    let mut state = state_of(kept);
    for at in (1..items.len()).rev() {
        let (after, bits) = next(state);
        state = after;
        items.swap(at, (bits % (at as u64 + 1)) as usize);
    }
    Ok(Value::from_items(items))
}
