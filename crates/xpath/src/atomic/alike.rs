//! Tables of values, in which equal ones are found: for `distinct-values()`, groups and keys.

use super::{Atomic, Bucket};
use std::collections::HashMap;
use std::sync::OnceLock;

/// How exactly numbers are compared: two of them as the less exact one of both is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Precision {
    /// By all their digits: integers and decimals.
    #[default]
    Exact,
    /// As doubles.
    Double,
    /// As floats.
    Float,
}

impl Precision {
    const COUNT: usize = 3;

    fn of(key: &[Atomic]) -> Precision {
        key.iter().map(Atomic::precision).max().unwrap_or_default()
    }
}

/// The hash key of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    One(Bucket),
    Several(Box<[Bucket]>),
}

impl Key {
    fn of(value: &[Atomic], precision: Precision) -> Key {
        match value {
            [one] => Key::One(one.bucket(precision)),
            several => Key::Several(several.iter().map(|part| part.bucket(precision)).collect()),
        }
    }
}

/// Values (composite ones have several parts) with something kept for each. Equal ones (`eq`, and NaN with itself) have one entry.
///
/// A value is looked for among those that have its hash key. Such a key holds no more digits than the values are compared by: it is an
/// exact one, until the first double or float comes.
#[derive(Debug)]
pub struct Alike<T> {
    entries: Vec<(Box<[Atomic]>, T)>,
    /// That of the least exact part of the entries.
    precision: Precision,
    /// By precision: the numbers of the entries by hash key. Made when it is needed first.
    tables: [OnceLock<HashMap<Key, Vec<u32>>>; Precision::COUNT],
}

impl<T> Default for Alike<T> {
    fn default() -> Alike<T> {
        Alike { entries: Vec::new(), precision: Precision::Exact, tables: Default::default() }
    }
}

impl<T> Alike<T> {
    fn table(&self, precision: Precision) -> &HashMap<Key, Vec<u32>> {
        self.tables[precision as usize].get_or_init(|| {
            let mut table: HashMap<_, Vec<u32>> = HashMap::new();
            for ((value, _), number) in self.entries.iter().zip(0..) {
                table.entry(Key::of(value, precision)).or_default().push(number);
            }
            table
        })
    }

    /// The number of the entry of a value. Each comparison counts as work; a stopped run finds none.
    fn find(&self, value: &[Atomic], key: &Key, precision: Precision) -> Option<usize> {
        let is_it = |number: &&u32| {
            let (other, _) = &self.entries[**number as usize];
            meter::spend(1).is_ok()
                && other.len() == value.len()
                && other.iter().zip(value).all(|(a, b)| a.is_alike(b))
        };
        let found = self.table(precision).get(key)?.iter().find(is_it);
        found.map(|number| *number as usize)
    }

    /// What is kept for a value.
    pub fn get(&self, value: &[Atomic]) -> Option<&T> {
        let precision = Precision::of(value).max(self.precision);
        let number = self.find(value, &Key::of(value, precision), precision)?;
        Some(&self.entries[number].1)
    }

    /// What is kept for a value; `new` makes it for one that is not there yet.
    pub fn get_or_add(&mut self, value: &[Atomic], new: impl FnOnce() -> T) -> &mut T {
        let precision = Precision::of(value).max(self.precision);
        let key = Key::of(value, precision);
        let number = match self.find(value, &key, precision) {
            Some(number) => number,
            None => {
                let number = self.entries.len();
                self.precision = precision;
                self.entries.push((value.into(), new()));
                // The tables of other precisions get it when they are needed, and made anew.
                let mut table = self.tables[precision as usize].take().unwrap_or_default();
                table.entry(key).or_default().push(number as u32);
                self.tables = Default::default();
                self.tables[precision as usize] = OnceLock::from(table);
                number
            }
        };
        &mut self.entries[number].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::Decimal;

    fn atom(text: &str) -> Atomic {
        match text.split_at(1) {
            ("f", text) => Atomic::Float(text.parse().unwrap()),
            ("d", text) => Atomic::Double(text.parse().unwrap()),
            ("m", text) => Atomic::decimal(Decimal::parse(text).unwrap()),
            ("i", text) => crate::atomic::large::parse(text).unwrap(),
            (_, text) => Atomic::string(text),
        }
    }

    /// The numbers of the entries, as they were found with a walk through all of them.
    #[test]
    fn equal_values_share_an_entry() {
        for line in [
            "i1 m1 m1.0 d1 f1 s1 i2",
            "i100000000000000000001 i100000000000000000002 i100000000000000000001",
            "i100000000000000000001 i100000000000000000002 d1e20 i100000000000000000003 f1e20",
            "d0.1 m0.1 f0.1 m0.10000000149011612",
            "f0.1 d0.1 m0.1 d0.1",
            "i9007199254740993 d9007199254740992 i9007199254740992 m9007199254740993.0",
            "dNaN fNaN i0 d-0 dNaN",
            "i340282366920938463463374607431768211457 i340282366920938463463374607431768211458 i340282366920938463463374607431768211457",
            "i-340282366920938463463374607431768211457 i340282366920938463463374607431768211457",
            "m0.000000000000000000000000000000000001 m0.000000000000000000000000000000000002 d1e-36",
        ] {
            let atoms: Vec<Atomic> = line.split(' ').map(atom).collect();
            let mut walked: Vec<&Atomic> = Vec::new();
            let mut table = Alike::default();
            for a in &atoms {
                let value = std::slice::from_ref(a);
                let wanted = walked.iter().position(|b| b.is_alike(a));
                assert_eq!(table.get(value).copied(), wanted, "{line}: {a:?}");
                let next = walked.len();
                assert_eq!(*table.get_or_add(value, || next), wanted.unwrap_or(next), "{line}: {a:?}");
                if wanted.is_none() {
                    walked.push(a);
                }
            }
        }
        let mut table = Alike::default();
        let key = |text: &str| text.split(' ').map(atom).collect::<Vec<_>>();
        table.get_or_add(&key("i1 sa"), || 0);
        table.get_or_add(&key("i1 sb"), || 1);
        assert_eq!((table.get(&key("d1 sb")), table.get(&key("i1"))), (Some(&1), None));
    }

    /// Each was compared with each: integers of 20 digits and decimals that are the same double.
    #[test]
    fn numbers_that_share_a_double_cost_no_more() {
        let cost = |count: u32| {
            let mut table = Alike::default();
            let ((), used) = meter::inline(u32::MAX, || {
                for n in 0..count {
                    table.get_or_add(&[atom(&format!("i1000000000000000000000{n:06}"))], || ());
                    table.get_or_add(&[atom(&format!("m1.00000000000000000000{n:06}1"))], || ());
                }
            });
            assert_eq!(table.entries.len(), 2 * count as usize);
            used.units
        };
        assert!(cost(4000) <= 2 * cost(2000) + 10, "{} and {}", cost(2000), cost(4000));
    }
}
