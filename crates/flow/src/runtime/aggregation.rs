//! Open aggregates: parts of a split message that wait for each other.
//!
//! The first part is the message that will go on, and waits as a whole. Of the others only what will be taken of them is kept
//! ([`Extracted`]), so that the parts of a large split cost little while they wait. An aggregate that never completes has bounds: so many
//! parts, the bytes that messages may hold together, and a time.

use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::identifier::next_number;
use crate::runtime::load;
use crate::runtime::mediator::Need;
use crate::runtime::progress::Failure;
use crate::state::lock;
use message::Piece;
use message::memory::{self, Held};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU16, Ordering::*};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What identifies an open aggregate.
#[derive(Clone, Debug)]
pub struct Key {
    /// The number of the mediator that collects.
    pub mediator: u64,
    /// What the parts are of; `None`: messages that were not split here (`correlateOn`).
    pub split: Option<Arc<Split>>,
    /// What the messages have in common: a value of a property, or the expression of `correlateOn`.
    pub correlation: Arc<str>,
}

impl Key {
    fn of(&self) -> (u64, Option<u64>, &str) {
        (self.mediator, self.split.as_ref().map(|split| split.number), &self.correlation)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.of() == other.of()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.split {
            // Each run of a split has a number, and few aggregates.
            Some(split) => split.number.hash(state),
            None => self.of().hash(state),
        }
    }
}

/// One run of a mediator that splits a message. Its parts are told from those of every other run by it, whatever ids their
/// messages have: those are the clients' to choose, and one message may be split more than once.
#[derive(Debug)]
pub struct Split {
    number: u64,
    /// Mediators that have put its parts together: what still comes is late.
    complete: Mutex<Vec<u64>>,
    /// The status of a part that failed on its way, so that it can reach no aggregate; 0: none did.
    failed: AtomicU16,
}

impl Split {
    fn new() -> Split {
        Split { number: next_number(), complete: Mutex::default(), failed: AtomicU16::new(0) }
    }

    /// Distinguishes it from all others.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The status of a part that failed on its way, if one did.
    pub(crate) fn failure(&self) -> Option<u16> {
        Some(self.failed.load(Acquire)).filter(|&status| status != 0)
    }
}

/// The splits that a message is a part of, by the name of the property that relates the parts.
struct Splits(Vec<(Arc<str>, Arc<Split>)>);

/// The splits that a message is a part of, for whoever ends beside it.
#[derive(Default)]
pub(crate) struct PartOf(Option<Arc<Splits>>);

impl PartOf {
    /// A part has failed: what it is a part of cannot be put together as a whole any more.
    pub(crate) fn failed(&self, status: u16) {
        let splits = self.0.iter().flat_map(|splits| &splits.0);
        splits.for_each(|(_, split)| split.failed.store(status, Release));
    }
}

impl Context {
    /// The message is split, under these names, and its copies from now on are parts of that.
    pub fn begin_split(&mut self, names: &[&Arc<str>]) {
        let split = Arc::new(Split::new());
        let before = self.attached::<Splits>();
        let others = before.iter().flat_map(|splits| &splits.0).filter(|(name, _)| !names.contains(&name));
        let new = names.iter().map(|&name| (Arc::clone(name), Arc::clone(&split)));
        let splits = others.cloned().chain(new).collect();
        self.attach(Arc::new(Splits(splits)));
    }

    /// What the message is a part of.
    pub(crate) fn part_of(&self) -> PartOf {
        PartOf(self.attached::<Splits>())
    }

    /// It is no part of any split: nothing waits for what becomes of it.
    pub fn leaves_its_splits(&mut self) {
        self.detach::<Splits>();
    }

    /// The latest split under a name that the message is a part of.
    pub fn split(&self, name: &str) -> Option<Arc<Split>> {
        let splits = self.attached::<Splits>()?;
        splits.0.iter().find(|(property, _)| **property == *name).map(|(_, split)| Arc::clone(split))
    }
}

/// What is taken of a part.
pub enum Extracted {
    /// Elements and texts, where they are.
    Pieces(Vec<Piece>),
    /// A value.
    Json(serde_json::Value),
    /// Nothing, because of this: the aggregate fails when it is complete.
    Failed(Box<Fault>),
}

impl Extracted {
    /// About how many bytes it keeps that are not counted otherwise.
    fn size(&self) -> usize {
        size_of::<Extracted>()
            + match self {
                Extracted::Pieces(pieces) => {
                    let begins = |at: usize| at == 0 || !Arc::ptr_eq(&pieces[at - 1].0, &pieces[at].0);
                    let trees = (0..pieces.len()).filter(|&at| begins(at)).map(|at| size_of_tree(pieces, at));
                    16 * pieces.len() + trees.sum::<usize>()
                }
                Extracted::Json(value) => message::json::size_of(value),
                Extracted::Failed(_) => 256,
            }
    }
}

/// The bytes of the tree that these pieces are of and of its source text, if only the pieces and the part they are taken from have them: the
/// part no longer counts them when it ends. Pieces of a message that was split share its tree, which counts itself.
fn size_of_tree(pieces: &[Piece], at: usize) -> usize {
    let envelope = &pieces[at].0;
    let alike = pieces[at..].iter().take_while(|(piece, _)| Arc::ptr_eq(piece, envelope)).count();
    match Arc::strong_count(envelope) <= alike + 1 {
        true => envelope.uncounted() + envelope.document.source().len(),
        false => 0,
    }
}

/// What goes on with the first part of an aggregate.
#[derive(Default)]
pub struct Rest {
    /// What is taken of the other parts, in order of arrival; the one that completes it is the last.
    pub others: Vec<Extracted>,
    /// Ids of those messages whose clients have their answers, where messages of several clients meet.
    pub answered: Vec<String>,
    /// Counts all of this as held, for as long as it has not become one message.
    pub held: Held,
}

/// How much waits in an open aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Parts.
    pub parts: usize,
    /// Bytes of the first one, and what is kept of the others.
    pub bytes: usize,
}

/// One open aggregate.
struct Aggregate {
    first: Box<Context>,
    others: Vec<Extracted>,
    /// Ids of messages whose clients have their answers: a stop names them.
    answered: Vec<String>,
    /// Distinguishes it from a later one with the same key, for its timer.
    serial: u64,
    /// How many parts the split had, if it said so.
    expected: Option<usize>,
    /// Dropped with the aggregate, which tells its timer.
    open: Option<oneshot::Sender<()>>,
    size: usize,
    held: Held,
}

impl Aggregate {
    /// The first part, and what goes on with it.
    fn apart(self) -> (Box<Context>, Rest) {
        let Aggregate { first, others, answered, held, .. } = self;
        (first, Rest { others, answered, held })
    }
}

/// Bounds of each aggregate.
#[derive(Clone, Copy, Debug)]
pub struct AggregateLimits {
    /// Most parts. Default 100,000.
    pub parts: usize,
    /// How long one may wait that has no timeout of its own. Default 1 h.
    pub time: Duration,
}

impl Default for AggregateLimits {
    fn default() -> AggregateLimits {
        AggregateLimits { parts: 100_000, time: Duration::from_secs(3600) }
    }
}

/// All open aggregates of a process.
#[derive(Default)]
pub struct Aggregates {
    /// Bounds.
    pub limits: AggregateLimits,
    open: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    aggregates: HashMap<Key, Aggregate>,
    /// In the order in which they were opened; some are complete.
    opened: VecDeque<(Instant, Key, u64)>,
    /// Keys that completed and may still see late parts, where no [`Split`] knows it; bounded.
    completed: HashSet<Key>,
    /// The same, in the order in which they completed.
    oldest: VecDeque<Key>,
    serial: u64,
}

/// Most completed aggregates without a [`Split`] that are remembered, so that a late part is dropped instead of opening a new one.
const REMEMBERED: usize = 4096;

/// Parts for which room is made at once.
const MANY: usize = 64;

/// A part on its way into an aggregate.
pub struct Arriving {
    /// The message.
    pub part: Box<Context>,
    /// What is taken of it, where the aggregate was seen to be [open](Aggregates::waits).
    pub taken: Option<Extracted>,
    /// How many parts the split announced; `None`: it comes from no split.
    pub split: Option<usize>,
    /// Messages of several clients meet: they wait longer than their clients.
    pub across: bool,
}

/// What [`Aggregates::add`] did.
pub enum Added {
    /// The part completes it; with the first one and the rest, unless it is alone.
    Complete(Box<Context>, Option<(Box<Context>, Rest)>),
    /// Waiting for more; the first part opened it and may start a timer for this serial.
    Waiting {
        /// Whether this part opened the aggregate.
        opened: bool,
        /// Its serial.
        serial: u64,
    },
    /// The aggregate is complete already.
    Late(Box<Context>),
    /// The aggregate was opened meanwhile: add the part once more, with what is taken of it.
    Again(Box<Context>),
    /// There is no room.
    Full(Box<Context>, Box<Fault>),
}

impl Aggregates {
    /// What waits in an aggregate; `None`: it has no first part.
    pub fn waits(&self, key: &Key) -> Option<Waits> {
        let table = lock(&self.open);
        let aggregate = table.aggregates.get(key)?;
        let first = load::size_of(Need::Whole, &aggregate.first) as usize;
        Some(Waits { parts: aggregate.others.len() + 1, bytes: first.saturating_add(aggregate.size) })
    }

    /// Adds a part. `complete` is asked with the number of parts there are now and the number the split announced.
    pub fn add(
        &self,
        key: Key,
        arriving: Arriving,
        complete: impl FnOnce(usize, Option<usize>) -> bool,
    ) -> Added {
        let Arriving { part, taken, split, across } = arriving;
        let full =
            |part, message: String| Added::Full(part, Box::new(Fault { status: 503, ..Fault::new(message) }));
        self.sweep();
        let mut table = lock(&self.open);
        if let Some(aggregate) = table.aggregates.get_mut(&key) {
            let Some(taken) = taken else { return Added::Again(part) };
            let count = aggregate.others.len() + 2;
            if complete(count, aggregate.expected) {
                let Some(aggregate) = table.aggregates.remove(&key) else { return Added::Late(part) };
                table.remember(key);
                let (first, mut rest) = aggregate.apart();
                rest.others.push(taken);
                return Added::Complete(part, Some((first, rest)));
            }
            if count > self.limits.parts {
                return full(
                    part,
                    format!("the aggregate has as many parts as it may ({})", self.limits.parts),
                );
            }
            let size = aggregate.size + taken.size();
            if across && memory::is_half() {
                return full(part, memory::Shortage.to_string());
            }
            if let Err(why) = aggregate.held.try_grow(size) {
                return full(part, why.to_string());
            }
            aggregate.size = size;
            if across {
                aggregate.answered.push(part.message_id());
            }
            aggregate.others.push(taken);
            let serial = aggregate.serial;
            drop(table);
            drop(part);
            return Added::Waiting { opened: false, serial };
        }
        let late = match &key.split {
            Some(split) => lock(&split.complete).contains(&key.mediator),
            None => split.is_some() && table.completed.contains(&key),
        };
        if late {
            return Added::Late(part);
        }
        if complete(1, split) {
            table.remember(key);
            return Added::Complete(part, None);
        }
        if memory::is_short() || across && memory::is_half() {
            return full(part, memory::Shortage.to_string());
        }
        let serial = table.open(key, part, split);
        Added::Waiting { opened: true, serial }
    }

    /// Drops what has waited too long without a timer, with a line in the log for each. Somebody has to call this from time to time
    /// where no part comes any more.
    pub fn sweep(&self) {
        let late = lock(&self.open).outdated(self.limits.time);
        if !late.is_empty() {
            self.drop_all(late);
        }
    }

    /// Names in the log what waited too long.
    #[cold]
    fn drop_all(&self, late: Vec<Aggregate>) {
        let seconds = self.limits.time.as_secs();
        for Aggregate { mut first, others, answered, .. } in late {
            // Whoever waits for it, and the parts that still come, go without them.
            first.progress.failure = Some(Failure::unhandled(504));
            first.flow_ended();
            if let Some(exchange) = &first.exchange {
                exchange.failed(504);
            }
            let (id, count) = (first.message_id(), others.len() + 1);
            let place = &first.place();
            let reason = "an aggregate was not complete within";
            tracing::error!(message_id = id, place, "{reason} {seconds} s: {count} of its parts are dropped");
            for part in answered {
                tracing::error!(
                    message_id = part,
                    place,
                    "{reason} {seconds} s: this message was a part, with {id}"
                );
            }
        }
    }

    /// For a timer: resolves when the aggregate is complete. `None`: it is complete already.
    pub fn watch(&self, key: &Key, serial: u64) -> Option<oneshot::Receiver<()>> {
        let mut table = lock(&self.open);
        let aggregate = table.aggregates.get_mut(key).filter(|aggregate| aggregate.serial == serial)?;
        let (open, gone) = oneshot::channel();
        aggregate.open = Some(open);
        Some(gone)
    }

    /// The timer of an aggregate fired: its first part and what is taken of the others, if it is still open.
    pub fn expire(&self, key: &Key, serial: u64) -> Option<(Box<Context>, Rest)> {
        let mut table = lock(&self.open);
        if table.aggregates.get(key)?.serial != serial {
            return None;
        }
        let aggregate = table.aggregates.remove(key)?;
        table.remember(key.clone());
        Some(aggregate.apart())
    }

    /// The splits that the message of an open aggregate is inside of, beside that whose parts it collects.
    pub(crate) fn around(&self, key: &Key, serial: u64) -> Vec<u64> {
        let table = lock(&self.open);
        let aggregate = table.aggregates.get(key).filter(|aggregate| aggregate.serial == serial);
        let splits = aggregate.and_then(|aggregate| aggregate.first.attached::<Splits>());
        let own = key.split.as_ref().map(|split| split.number);
        let numbers = splits.iter().flat_map(|splits| &splits.0).map(|(_, split)| split.number);
        numbers.filter(|&number| Some(number) != own).collect()
    }

    /// Looks at the first part of each, with the ids of the others whose clients have their answers.
    pub(crate) fn each(&self, mut look: impl FnMut(&Context, &[String])) {
        let table = lock(&self.open);
        table.aggregates.values().for_each(|aggregate| look(&aggregate.first, &aggregate.answered));
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        lock(&self.open).aggregates.len()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    fn open(&mut self, key: Key, first: Box<Context>, expected: Option<usize>) -> u64 {
        self.serial += 1;
        let serial = self.serial;
        self.opened.push_back((Instant::now(), key.clone(), serial));
        let others = Vec::with_capacity(expected.unwrap_or(1).saturating_sub(1).min(MANY));
        let aggregate = Aggregate {
            first,
            others,
            answered: Vec::new(),
            serial,
            expected,
            open: None,
            size: 0,
            held: Held::NONE,
        };
        self.aggregates.insert(key, aggregate);
        serial
    }

    /// Takes out what has waited too long without a timer. To be dropped when the table is free again.
    fn outdated(&mut self, time: Duration) -> Vec<Aggregate> {
        let mut late = Vec::new();
        while let Some((since, key, serial)) = self.opened.front() {
            let aggregate = self.aggregates.get(key).filter(|aggregate| aggregate.serial == *serial);
            match aggregate {
                Some(aggregate) if aggregate.open.is_none() && since.elapsed() >= time => {
                    late.extend(self.aggregates.remove(key));
                }
                // Those behind it are younger, and few have ended before it.
                Some(aggregate) if aggregate.open.is_none() => break,
                // Complete, or its timer sees to it.
                _ => {}
            }
            self.opened.pop_front();
        }
        late
    }

    fn remember(&mut self, key: Key) {
        if let Some(split) = &key.split {
            lock(&split.complete).push(key.mediator);
            return;
        }
        if self.oldest.len() >= REMEMBERED
            && let Some(forgotten) = self.oldest.pop_front()
        {
            self.completed.remove(&forgotten);
        }
        if self.completed.insert(key.clone()) {
            self.oldest.push_back(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Tested};

    fn tested() -> Tested {
        let registry = testing::registry(Vec::new());
        testing::main(&registry, "")
    }

    #[test]
    fn a_tree_that_only_a_part_has_counts_with_its_pieces() {
        let soap = "http://schemas.xmlsoap.org/soap/envelope/";
        let envelope =
            format!("<e:Envelope xmlns:e='{soap}'><e:Body>{}</e:Body></e:Envelope>", "<a/>".repeat(50));
        let document = xml::Document::parse_str(&envelope, &xml::ParseOptions::default()).unwrap();
        let part = Arc::new(message::Envelope::of_document(document).unwrap());
        let piece = || (Arc::clone(&part), xml::Document::ROOT);
        let (tree, small) = (part.uncounted() + envelope.len(), size_of::<Extracted>() + 2 * 16);
        assert!(tree > small);
        let one = Extracted::Pieces(vec![piece()]).size();
        let two = Extracted::Pieces(vec![piece(), piece()]).size();
        let _others = Arc::clone(&part);
        let shared = Extracted::Pieces(vec![piece()]).size();
        assert!(one >= tree && two >= tree && two <= tree + small && shared <= small, "{one} {two} {shared}");
    }

    fn key(name: &str) -> Key {
        Key { mediator: 1, split: None, correlation: Arc::from(name) }
    }

    /// Adds a part with this value; complete with so many.
    fn add(
        all: &Aggregates,
        tested: &Tested,
        name: &str,
        value: i64,
        split: Option<usize>,
        enough: usize,
    ) -> Added {
        let mut part = Box::new(tested.context(&[], ""));
        loop {
            let taken = all.waits(&key(name)).map(|_| Extracted::Json(value.into()));
            let arriving = Arriving { part, taken, split, across: split.is_none() };
            match all.add(key(name), arriving, |count, announced| count >= announced.unwrap_or(enough)) {
                Added::Again(again) => part = again,
                added => return added,
            }
        }
    }

    fn values(parts: &Rest) -> Vec<i64> {
        let value =
            |taken: &Extracted| if let Extracted::Json(value) = taken { value.as_i64() } else { None };
        parts.others.iter().filter_map(value).collect()
    }

    #[test]
    fn parts_wait_for_as_many_as_were_announced_and_late_ones_are_told() {
        let (all, tested) = (Aggregates::default(), tested());
        assert!(matches!(add(&all, &tested, "a", 1, Some(3), 0), Added::Waiting { opened: true, serial: 1 }));
        assert!(matches!(
            add(&all, &tested, "a", 2, Some(3), 0),
            Added::Waiting { opened: false, serial: 1 }
        ));
        assert!(matches!(add(&all, &tested, "b", 1, Some(2), 0), Added::Waiting { opened: true, serial: 2 }));
        assert_eq!(all.len(), 2);
        match add(&all, &tested, "a", 3, Some(3), 0) {
            Added::Complete(_, Some((_, rest))) => assert_eq!(values(&rest), [2, 3]),
            _ => panic!("three of three are complete"),
        }
        assert!(matches!(add(&all, &tested, "a", 4, Some(3), 0), Added::Late(_)));
        // One of one: nothing is kept.
        assert!(matches!(add(&all, &tested, "c", 1, Some(1), 0), Added::Complete(_, None)));
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn a_part_that_finds_the_aggregate_opened_meanwhile_comes_again() {
        let (all, tested) = (Aggregates::default(), tested());
        add(&all, &tested, "a", 1, Some(2), 0);
        let part = Box::new(tested.context(&[], ""));
        let arriving = Arriving { part, taken: None, split: Some(2), across: false };
        assert!(matches!(all.add(key("a"), arriving, |count, _| count >= 2), Added::Again(_)));
    }

    #[test]
    fn a_timer_takes_what_is_there_and_not_what_comes_under_the_same_key_later() {
        let (all, tested) = (Aggregates::default(), tested());
        add(&all, &tested, "a", 1, None, 9);
        add(&all, &tested, "a", 2, None, 9);
        let mut gone = all.watch(&key("a"), 1).expect("it is open");
        assert!(gone.try_recv().is_err_and(|why| why == oneshot::error::TryRecvError::Empty));
        assert!(all.watch(&key("a"), 7).is_none() && all.expire(&key("a"), 7).is_none());
        assert_eq!(all.expire(&key("a"), 1).map(|(_, rest)| rest.others.len()), Some(1));
        assert!(gone.try_recv().is_err_and(|why| why == oneshot::error::TryRecvError::Closed));
        assert!(matches!(add(&all, &tested, "a", 1, None, 9), Added::Waiting { opened: true, serial: 2 }));
        assert!(all.expire(&key("a"), 1).is_none(), "that was another one");
    }

    #[test]
    fn an_aggregate_that_never_completes_is_bounded_in_parts_and_time() {
        let mut all = Aggregates::default();
        let tested = tested();
        all.limits = AggregateLimits { parts: 3, time: Duration::from_secs(3600) };
        for value in 1..=3 {
            assert!(matches!(add(&all, &tested, "a", value, None, 9), Added::Waiting { .. }));
        }
        let Added::Full(_, fault) = add(&all, &tested, "a", 4, None, 9) else { panic!("there are three") };
        assert_eq!((fault.status, fault.message.contains("as many parts as it may (3)")), (503, true));
        assert!(matches!(add(&all, &tested, "b", 1, None, 9), Added::Waiting { .. }), "others have room");
        // One with a timer sees to itself.
        let timer = all.watch(&key("b"), 2).expect("it is open");
        all.limits.time = Duration::ZERO;
        let (lines, ()) = testing::logged("busbar", || {
            assert!(matches!(add(&all, &tested, "c", 1, None, 9), Added::Waiting { opened: true, .. }));
        });
        assert!(lines.len() == 3 && lines[0].contains("3 of its parts are dropped"), "{lines:?}");
        assert!(
            lines[1..].iter().all(|line| line.contains("this message was a part, with urn:uuid:")),
            "{lines:?}"
        );
        assert_eq!(all.len(), 2);
        // Also where no part comes any more.
        let (lines, ()) = testing::logged("busbar", || all.sweep());
        assert_eq!((lines.len(), all.len()), (1, 1));
        drop(timer);
    }

    #[test]
    fn clients_that_have_their_answers_are_known_by_their_messages() {
        let (all, tested) = (Aggregates::default(), tested());
        for value in 1..=3 {
            add(&all, &tested, "across", value, None, 9);
            add(&all, &tested, "split", value, Some(9), 0);
        }
        let mut counts = Vec::new();
        all.each(|_, others| counts.push(others.len()));
        counts.sort_unstable();
        assert_eq!(counts, [0, 2]);
    }

    /// Parts of two splits of one id do not meet, and each split knows by itself what is complete, however many others there are.
    #[test]
    fn a_split_is_told_from_others_by_itself() {
        let (all, tested) = (Aggregates::default(), tested());
        let name: Arc<str> = "aggregateCorelation".into();
        let mut message = tested.context(&[], "");
        let split = |message: &mut Context| {
            message.begin_split(&[&name]);
            let part = message.branch();
            Key { mediator: 1, split: part.split(&name), correlation: "urn:same".into() }
        };
        let (one, two) = (split(&mut message), split(&mut message));
        assert!(one != two && one == one.clone());
        let add = |key: &Key| {
            let part = Box::new(tested.context(&[], ""));
            let taken = all.waits(key).map(|_| Extracted::Json(1.into()));
            let arriving = Arriving { part, taken, split: Some(2), across: false };
            all.add(key.clone(), arriving, |count, _| count == 2)
        };
        assert!(matches!(add(&one), Added::Waiting { opened: true, .. }));
        assert!(matches!(add(&two), Added::Waiting { opened: true, .. }));
        assert!(matches!(add(&one), Added::Complete(_, Some(_))));
        for _ in 0..REMEMBERED + 1 {
            let other = split(&mut message);
            add(&other);
            add(&other);
        }
        assert!(matches!(add(&one), Added::Late(_)));
        assert!(matches!(add(&two), Added::Complete(_, Some(_))));
        assert!(all.is_empty());
    }
}
