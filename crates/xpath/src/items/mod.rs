//! Maps, arrays and functions: the items of XPath 3.1 that are neither nodes nor atomic values. They are cheap to copy and
//! immutable, and share structure with those they were made from.

mod tree;

use crate::atomic::{Atomic, AtomicType, Bucket, Duration, NameValue, Precision};
use crate::compile::Program;
use crate::context::ExtensionName;
use crate::eval::Fault;
use crate::sequence::functions::{Call, Entry};
use crate::sequence::types::SeqType;
use crate::shared::FLAT;
use crate::value::{Item, Value};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};
use tree::{Nested, Tree};

/// Deepest nesting of maps and arrays in one another, and of functions that capture functions.
pub const MAX_ITEM_NESTING: u32 = 400;

/// An item is nested deeper than [`MAX_ITEM_NESTING`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooDeep;

impl std::fmt::Display for TooDeep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "maps, arrays and functions would be nested deeper than {MAX_ITEM_NESTING}")
    }
}

fn nesting_of(value: &Value) -> u32 {
    let of = |atom: &Atomic| match atom {
        Atomic::Map(map) => map.nesting(),
        Atomic::Array(array) => array.nesting(),
        Atomic::Function(function) => function.nesting,
        _ => 0,
    };
    match value {
        Value::Atomic(atom) => of(atom),
        Value::Sequence(items) => {
            let of_item = |item: &Item| match item {
                Item::Atomic(atom) => of(atom),
                Item::Node(_) => 0,
            };
            let deepest = items.unmarked(FLAT).map(of_item).max().unwrap_or(0);
            if deepest == 0 {
                items.mark(FLAT);
            }
            deepest
        }
        _ => 0,
    }
}

/// How many items are looked at where a value becomes part of a map or an array. The value itself is shared.
pub(crate) fn looked_at(value: &Value) -> usize {
    match value {
        Value::Sequence(items) => items.unmarked(FLAT).count(),
        _ => 0,
    }
}

impl Nested for Value {
    fn nesting(&self) -> u32 {
        nesting_of(self)
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        self.len() == other.len() && self.members().eq(other.members())
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Map) -> bool {
        self.len() == other.len()
            && self.entries().into_iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

/// A function equals only itself.
impl PartialEq for FunctionItem {
    fn eq(&self, other: &FunctionItem) -> bool {
        std::ptr::eq(self, other)
    }
}

// ---- arrays ----

/// An array.
#[derive(Debug, Clone, Default)]
pub struct Array(Tree<Value>);

impl Array {
    /// An array with these members.
    ///
    /// # Errors
    /// A member is nested too deep.
    pub fn new(members: Vec<Value>) -> Result<Array, TooDeep> {
        Array(Tree::of(members)).checked()
    }

    fn checked(self) -> Result<Array, TooDeep> {
        if self.nesting() > MAX_ITEM_NESTING { Err(TooDeep) } else { Ok(self) }
    }

    fn nesting(&self) -> u32 {
        self.0.nesting() + 1
    }

    /// How many members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The member at an index from 0.
    pub fn get(&self, at: usize) -> Option<&Value> {
        self.0.get(at)
    }

    /// The members in order.
    pub fn members(&self) -> impl Iterator<Item = &Value> {
        self.0.iter()
    }

    /// Whether all members have a property; see [`Tree::all`].
    pub(crate) fn all<E>(
        &self,
        property: Option<NonZeroU64>,
        mut has: impl FnMut(&Value) -> Result<bool, E>,
    ) -> Result<bool, E> {
        self.0.all(property, &mut has)
    }

    pub(crate) fn set(&self, at: usize, member: Value) -> Result<Array, TooDeep> {
        Array(self.0.set(at, member)).checked()
    }

    pub(crate) fn insert(&self, at: usize, member: Value) -> Result<Array, TooDeep> {
        Array(self.0.insert(at, member)).checked()
    }

    pub(crate) fn remove(&self, at: usize) -> Array {
        Array(self.0.remove(at))
    }

    pub(crate) fn slice(&self, from: usize, len: usize) -> Array {
        Array(self.0.split(from).1.split(len).0)
    }

    pub(crate) fn concat(&self, other: &Array) -> Array {
        Array(self.0.concat(&other.0))
    }
}

// ---- maps ----

#[derive(Debug, Clone)]
struct Pair {
    hash: u64,
    /// Grows with each new key: entries keep the order of insertion.
    place: u64,
    key: Atomic,
    value: Value,
}

impl Nested for Pair {
    fn nesting(&self) -> u32 {
        nesting_of(&self.value)
    }
}

/// A map. Its entries keep the order in which their keys were first added.
#[derive(Debug, Clone, Default)]
pub struct Map {
    /// By hash.
    pairs: Tree<Pair>,
    next: u64,
}

/// Seeded hashes: keys come from messages.
fn hash_of(key: &Atomic) -> u64 {
    static SEED: OnceLock<std::hash::RandomState> = OnceLock::new();
    let bucket = match key {
        Atomic::Moment(moment) if moment.zone.is_some() => Bucket::Number(2, moment.utc_nanos(0)),
        // A key with a timezone differs from one without, so the hash is that of the local value.
        Atomic::Moment(_) => Bucket::Text(key.to_text().into()),
        // Numbers are compared by their exact values.
        other => other.bucket(Precision::Exact),
    };
    SEED.get_or_init(std::hash::RandomState::new).hash_one(bucket)
}

/// `op:same-key`.
pub(crate) fn same_key(a: &Atomic, b: &Atomic) -> bool {
    if let (Some(a), Some(b)) = (a.as_text(), b.as_text()) {
        return a == b;
    }
    if a.is_numeric() && b.is_numeric() {
        let (x, y) = (a.to_double(), b.to_double());
        if x.is_nan() || y.is_nan() {
            return x.is_nan() && y.is_nan();
        }
        return a.total_order(b) == Ordering::Equal;
    }
    match (a, b) {
        (Atomic::Moment(x), Atomic::Moment(y)) => {
            x.kind == y.kind && x.zone.is_some() == y.zone.is_some() && a.equals(b)
        }
        (Atomic::Duration(x), Atomic::Duration(y)) => {
            let same = |x: &Duration, y: &Duration| x.months == y.months && x.nanos == y.nanos;
            same(x, y)
        }
        (Atomic::Hex(x), Atomic::Hex(y)) | (Atomic::Base64(x), Atomic::Base64(y)) => x == y,
        (Atomic::Boolean(x), Atomic::Boolean(y)) => x == y,
        (Atomic::Name(_), Atomic::Name(_)) => a.equals(b),
        _ => false,
    }
}

impl Map {
    /// No entries.
    pub fn new() -> Map {
        Map::default()
    }

    fn nesting(&self) -> u32 {
        self.pairs.nesting() + 1
    }

    fn place(&self, hash: u64, key: &Atomic) -> Result<usize, usize> {
        let first = self.pairs.partition(|pair| pair.hash < hash);
        let mut at = first;
        while let Some(pair) = self.pairs.get(at).filter(|pair| pair.hash == hash) {
            if same_key(&pair.key, key) {
                return Ok(at);
            }
            at += 1;
        }
        Err(first)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &Atomic) -> Option<&Value> {
        let at = self.place(hash_of(key), key).ok()?;
        self.pairs.get(at).map(|pair| &pair.value)
    }

    /// The same with that value at that key.
    ///
    /// # Errors
    /// The value is nested too deep.
    pub fn put(&self, key: Atomic, value: Value) -> Result<Map, TooDeep> {
        let hash = hash_of(&key);
        let map = match self.place(hash, &key) {
            Ok(at) => {
                let place = self.pairs.get(at).map_or(self.next, |pair| pair.place);
                Map { pairs: self.pairs.set(at, Pair { hash, place, key, value }), next: self.next }
            }
            Err(at) => Map {
                pairs: self.pairs.insert(at, Pair { hash, place: self.next, key, value }),
                next: self.next + 1,
            },
        };
        if map.nesting() > MAX_ITEM_NESTING { Err(TooDeep) } else { Ok(map) }
    }

    pub(crate) fn remove(&self, key: &Atomic) -> Map {
        match self.place(hash_of(key), key) {
            Ok(at) => Map { pairs: self.pairs.remove(at), next: self.next },
            Err(_) => self.clone(),
        }
    }

    /// Whether all entries have a property; see [`Tree::all`].
    pub(crate) fn all<E>(
        &self,
        property: Option<NonZeroU64>,
        mut has: impl FnMut(&Atomic, &Value) -> Result<bool, E>,
    ) -> Result<bool, E> {
        self.pairs.all(property, &mut |pair| has(&pair.key, &pair.value))
    }

    /// The entries, in the order of their keys.
    pub fn entries(&self) -> Vec<(&Atomic, &Value)> {
        let mut pairs: Vec<&Pair> = self.pairs.iter().collect();
        pairs.sort_unstable_by_key(|pair| pair.place);
        pairs.into_iter().map(|pair| (&pair.key, &pair.value)).collect()
    }
}

/// Builds a map of many entries: in linear time, where [`Map::put`] would descend the tree for each.
#[derive(Default)]
pub(crate) struct MapBuilder {
    pairs: Vec<Pair>,
    /// The positions of the pairs with a hash.
    places: HashMap<u64, Vec<usize>>,
}

impl MapBuilder {
    /// The value of a key, mutable.
    pub fn get_mut(&mut self, key: &Atomic) -> Option<&mut Value> {
        let places = self.places.get(&hash_of(key))?;
        let at = places.iter().copied().find(|at| same_key(&self.pairs[*at].key, key))?;
        self.pairs.get_mut(at).map(|pair| &mut pair.value)
    }

    /// The entry of a key, mutable; the key may be replaced by one that is the same.
    pub fn entry(&mut self, key: &Atomic) -> Option<(&mut Atomic, &mut Value)> {
        let places = self.places.get(&hash_of(key))?;
        let at = places.iter().copied().find(|at| same_key(&self.pairs[*at].key, key))?;
        self.pairs.get_mut(at).map(|pair| (&mut pair.key, &mut pair.value))
    }

    /// Adds an entry whose key is new.
    pub fn add(&mut self, key: Atomic, value: Value) {
        let (hash, place) = (hash_of(&key), self.pairs.len());
        self.places.entry(hash).or_default().push(place);
        self.pairs.push(Pair { hash, place: place as u64, key, value });
    }

    /// The map.
    pub fn finish(mut self) -> Result<Map, TooDeep> {
        let next = self.pairs.len() as u64;
        self.pairs.sort_by_key(|pair| pair.hash);
        let map = Map { pairs: Tree::of(self.pairs), next };
        if map.nesting() > MAX_ITEM_NESTING { Err(TooDeep) } else { Ok(map) }
    }
}

// ---- functions ----

/// A function item that is neither map nor array.
pub struct FunctionItem {
    pub(crate) name: Option<Arc<NameValue>>,
    pub(crate) arity: usize,
    /// Types of the parameters and of the result, where they were declared.
    pub(crate) signature: Option<Arc<Signature>>,
    pub(crate) body: Body,
    nesting: u32,
}

/// The types of a function's parameters and of its result; `None`: any.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Signature {
    pub params: Box<[Option<SeqType>]>,
    pub result: Option<SeqType>,
}

impl Signature {
    /// That of a partial application: the types of the parameters that stay open.
    pub(crate) fn of_open(&self, is_open: impl Fn(usize) -> bool) -> Signature {
        let open = self.params.iter().enumerate().filter(|(at, _)| is_open(*at));
        Signature { params: open.map(|(_, ty)| ty.clone()).collect(), result: self.result.clone() }
    }
}

/// The code of an inline function, of a reference to a named one, or of a partial application: its variables are the
/// captured values, then the parameters.
#[derive(Debug)]
pub(crate) struct Code {
    pub name: Option<Arc<NameValue>>,
    pub arity: usize,
    pub signature: Option<Arc<Signature>>,
    pub program: Arc<Program>,
    /// It uses the context where it was made (`position#0`).
    pub sees_context: bool,
}

/// The context in which a function was made.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub item: Option<Item>,
    pub position: usize,
    pub size: usize,
}

pub(crate) enum Body {
    Code {
        code: Arc<Code>,
        captured: Box<[Value]>,
        seen: Option<Seen>,
    },
    Entry(&'static Entry, Option<Seen>),
    Cast(&'static AtomicType),
    /// An extension function.
    Extension(ExtensionName),
    /// A function coerced to another type.
    Coerced(Atomic),
    /// Code of the engine over captured values.
    Native(fn(&Call<'_, '_>, &[Value]) -> Result<Value, Fault>, Box<[Value]>),
}

impl FunctionItem {
    pub(crate) fn new(
        name: Option<Arc<NameValue>>,
        arity: usize,
        signature: Option<Arc<Signature>>,
        body: Body,
    ) -> Result<FunctionItem, TooDeep> {
        let inside = match &body {
            Body::Code { captured, .. } | Body::Native(_, captured) => {
                captured.iter().map(nesting_of).max().unwrap_or(0)
            }
            Body::Coerced(atom) => nesting_of(&Value::Atomic(atom.clone())),
            Body::Entry(..) | Body::Cast(_) | Body::Extension(_) => 0,
        };
        if inside >= MAX_ITEM_NESTING {
            return Err(TooDeep);
        }
        Ok(FunctionItem { name, arity, signature, body, nesting: inside + 1 })
    }

    /// The number of its parameters.
    pub fn arity(&self) -> usize {
        self.arity
    }

    /// Its types: those that were declared, or those of the function of the language. `None`: they are not known.
    pub(crate) fn types(&self) -> Option<Arc<Signature>> {
        let named = |name: &NameValue| {
            crate::sequence::functions::signature(&name.namespace, &name.local, self.arity)
        };
        self.signature.clone().or_else(|| self.name.as_deref().and_then(named))
    }

    /// Its name; `None`: it has none.
    pub fn name(&self) -> Option<&NameValue> {
        self.name.as_deref()
    }
}

impl std::fmt::Debug for FunctionItem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{}#{}", name.local, self.arity),
            None => write!(f, "function#{}", self.arity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_keep_their_order() {
        let mut map = Map::new();
        for n in 0..1000i64 {
            map = map.put(Atomic::Integer(n * 7919 % 1000), Value::from(n)).unwrap();
        }
        let before = map.clone();
        assert_eq!(map.len(), 1000);
        let keys: Vec<i64> = map.entries().iter().map(|(k, _)| k.to_double() as i64).collect();
        assert_eq!(keys, (0..1000).map(|n| n * 7919 % 1000).collect::<Vec<_>>());
        for n in 0..500 {
            map = map.remove(&Atomic::Double(f64::from(n)));
        }
        assert_eq!((map.len(), before.len()), (500, 1000));
        assert!(map.get(&Atomic::Integer(499)).is_none() && map.get(&Atomic::Float(500.0)).is_some());
    }

    #[test]
    fn keys() {
        let text = |s: &str| Atomic::string(s);
        assert!(same_key(&text("a"), &Atomic::Untyped("a".into())));
        assert!(same_key(&Atomic::Double(f64::NAN), &Atomic::Float(f32::NAN)));
        assert!(same_key(&Atomic::Integer(1), &Atomic::Double(1.0)));
        assert!(!same_key(&Atomic::Double(0.1), &Atomic::Float(0.1)));
        assert!(!same_key(&Atomic::Integer(1), &Atomic::Boolean(true)));
        assert!(!same_key(&Atomic::Integer(1), &text("1")));
        // What is the same has one hash; near numbers have different ones, also beyond the digits of a float.
        let decimal = |s: &str| Atomic::decimal(crate::atomic::Decimal::parse(s).unwrap());
        for (a, b) in [
            (Atomic::Integer(1), decimal("1.0")),
            (Atomic::Double(0.5), decimal("0.5")),
            (Atomic::Float(0.5), decimal("0.5")),
            (Atomic::Double(-0.0), Atomic::Integer(0)),
            (Atomic::Integer(9_007_199_254_740_993), decimal("9007199254740993")),
        ] {
            assert!(same_key(&a, &b) && hash_of(&a) == hash_of(&b), "{a:?} {b:?}");
        }
        let hashes = |numbers: Vec<Atomic>| {
            numbers.iter().map(hash_of).collect::<std::collections::HashSet<_>>().len()
        };
        let near = 0..1000i64;
        assert_eq!(hashes(near.clone().map(|n| Atomic::Integer(1_700_000_000_000 + n)).collect()), 1000);
        assert_eq!(hashes(near.clone().map(|n| Atomic::Integer(i64::MAX - n)).collect()), 1000);
        assert_eq!(hashes(near.clone().map(|n| Atomic::Double(1.7e12 + n as f64)).collect()), 1000);
        assert_eq!(hashes(near.map(|n| decimal(&format!("1.00000000000000000{n}1"))).collect()), 1000);
    }

    #[test]
    fn nesting_is_bounded() {
        let mut array = Array::default();
        let mut depth = 0;
        let error = loop {
            match Array::new(vec![Value::Atomic(Atomic::Array(Arc::new(array)))]) {
                Ok(next) => array = next,
                Err(error) => break error,
            }
            depth += 1;
        };
        assert_eq!((depth, error), (MAX_ITEM_NESTING - 1, TooDeep));
    }
}
