//! Joins: nodes chosen by an equality whose other side comes from outside, again and again, as `//item[@id = current()/@ref]` in a loop. Where that is
//! done a second time from the same node, the nodes of the step are indexed by their keys, so that only those with a wanted key are looked at.
//!
//! The index finds every node that may be chosen, and perhaps others: the predicate decides, as without it. So types, errors of
//! comparisons and further conditions need no care here, but where a node without a wanted key could be chosen, or would be an
//! error, the index is not asked. The tests compare both ways.

use crate::ast::{Axis, BinaryOp};
use crate::atomic::{Atomic, parse_double};
use crate::compile::{Compiler, is_positional};
use crate::eval::{Eval, Fault, Frame, spend};
use crate::number;
use crate::options::Results;
use crate::plan::{Core, From, Op, Path, Predicate, Step};
use crate::prepared::{Rules, exact_double};
use crate::sequence::functions::Looks;
use crate::sequence::plan::Seq;
use crate::value::{Node, NodeSet, Type, Value};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use xml::NodeId;

/// An equality by which nodes are chosen.
#[derive(Debug)]
pub(crate) struct Join {
    /// No other join of the process has it: expressions come and go while indexes stay.
    number: u64,
    /// The nodes that are chosen from, without their predicates: from the context node, of [`Axis::PrecedingSibling`] and the like from
    /// the parent or the root. `None`: they are a list.
    candidates: Option<(Axis, Box<[Step]>)>,
    /// Their side of the equality, evaluated from each of them. `None`: itself.
    key: Option<Op>,
    /// The other side, which is the same for all of them. `None`: of the comparison in which the path is.
    wanted: Option<Op>,
    rules: Rules,
    /// A value comparison: more than one value is an error.
    single: bool,
}

/// What the indexes of an evaluation, or of all evaluations of a host, are kept in.
#[derive(Default)]
pub(crate) struct Joins {
    /// Whether there are any, which is asked without the lock.
    any: AtomicBool,
    /// What is used often is in front.
    all: Mutex<Vec<Entry>>,
}

struct Entry {
    join: u64,
    base: Base,
    /// How many times the candidates were looked at one by one.
    looked: usize,
    /// It pays from now on.
    ready: bool,
    /// `Some(None)`: there can be none.
    index: Option<Option<Arc<Index>>>,
}

/// Where the candidates come from.
enum Base {
    Node(Node),
    /// They are these. (It stays as long as it is looked for here, so nothing else can be taken for it.)
    List(Value),
}

impl Join {
    /// Over how many steps the candidates are found.
    pub(crate) fn span(&self) -> usize {
        self.candidates.as_ref().map_or(1, |(_, steps)| steps.len())
    }

    fn new(
        candidates: Option<(Axis, Box<[Step]>)>,
        key: Option<Op>,
        wanted: Option<Op>,
        rules: Rules,
        single: bool,
    ) -> Arc<Join> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Join { number, candidates, key, wanted, rules, single })
    }
}

impl Entry {
    fn is(&self, join: &Join, base: &Base) -> bool {
        self.join == join.number && self.base.is(base)
    }
}

impl Base {
    fn is(&self, other: &Base) -> bool {
        match (self, other) {
            (Base::Node(a), Base::Node(b)) => a == b,
            (Base::List(a), Base::List(b)) => a.is_same(b),
            _ => false,
        }
    }
}

/// Nodes by the hashes of their keys. What is small and flat is cheap to make; that different keys may have the same hash does not matter.
struct Index {
    nodes: Vec<Node>,
    hasher: RandomState,
    /// By hash, then by place in `nodes`.
    texts: Vec<(u32, u32)>,
    /// The same with the keys as numbers. `None`: one of them is none, and must be compared.
    numbers: OnceLock<Option<Vec<(u32, u32)>>>,
}

/// So few candidates are looked at one by one.
const FEW: usize = 32;
/// So many uses from one node where each looks at a part of the candidates.
const USES: usize = 8;
/// Most indexes that are kept …
const MOST: usize = 64;
/// … and most nodes in them, of 20 to 30 bytes each.
const MOST_NODES: usize = 1 << 21;
/// Most values that are looked up at once, as a share of the candidates: one in so many.
const SHARE: usize = 4;

/// Most steps of a path to a key beside the context node: each may begin such a path itself.
const STEPS: usize = 4;

#[cfg(test)]
thread_local! {
    /// For the tests: nothing is looked up.
    pub(crate) static OFF: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl Compiler<'_> {
    /// Finds joins among the first predicates of steps: from where the last step starts, or of [direct](crate::eval::direct) paths, as `//x/a[@k = $v]`,
    /// from where steps without predicates start.
    pub(crate) fn find_joins(&self, steps: &mut [Step], direct: bool) {
        for step in &mut *steps {
            step.join = None;
        }
        for last in 0..steps.len() {
            let (Some(axis), Some(predicate)) = (base_axis(steps[last].axis), steps[last].predicates.first())
            else {
                continue;
            };
            let is_down = |step: &Step| base_axis(step.axis) == Some(step.axis);
            let is_before = |step: &Step| is_down(step) && step.predicates.is_empty();
            let may_span = direct && is_down(&steps[last]) && steps[last].predicates.len() == 1;
            let before =
                if may_span { steps[..last].iter().rev().take_while(|s| is_before(s)).count() } else { 0 };
            let first = last - before;
            let mut candidates = steps[first..=last].to_vec();
            if let Some(step) = candidates.last_mut() {
                (step.axis, step.predicates) = (axis, Box::default());
            }
            steps[first].join = self.join(predicate, Some((steps[last].axis, candidates.into())));
        }
    }

    /// The first predicate on the value of `list` as a join, where that may be the same list again.
    pub(crate) fn join_of_list(&self, list: &Op, predicates: &[Predicate]) -> Option<Arc<Join>> {
        let comes_again = match list {
            Op::Variable(..) => true,
            // (`key()` gives the list that it keeps.)
            Op::Extension(.., results) => matches!(results, Results::Stay | Results::FollowContext),
            Op::Sequence(s) => matches!(s.kind, Seq::Local(_) | Seq::Once(..)),
            _ => false,
        };
        self.join(predicates.first().filter(|_| comes_again)?, None)
    }

    fn join(&self, predicate: &Predicate, candidates: Option<(Axis, Box<[Step]>)>) -> Option<Arc<Join>> {
        let Predicate::Boolean(condition) = predicate else { return None };
        if is_positional(predicate) {
            return None;
        }
        let conditions = match condition {
            Op::And(all) => &**all,
            one => std::slice::from_ref(one),
        };
        // What stands before the equality is not evaluated for nodes that are not looked at: it must not be an error for them.
        let certain = conditions.iter().take_while(|condition| never_fails(condition)).count();
        conditions.iter().take(certain + 1).find_map(|condition| self.join_by(condition, &candidates))
    }

    fn join_by(&self, condition: &Op, candidates: &Option<(Axis, Box<[Step]>)>) -> Option<Arc<Join>> {
        let typed = if self.options.compatible { Rules::Compatible } else { Rules::Typed };
        let (a, b, rules, single) = match condition {
            Op::Compare(BinaryOp::Equal, both) => (&both.0, &both.1, Rules::Nodes, false),
            Op::Sequence(s) => match &s.kind {
                Seq::General(BinaryOp::Equal, a, b) => (a, b, typed, false),
                Seq::Value(BinaryOp::Equal, a, b) if typed == Rules::Typed => (a, b, typed, true),
                _ => return None,
            },
            _ => return None,
        };
        // (Nodes of a list may be in several trees.)
        let is_free = |op: &Op| is_free(op, candidates.is_some());
        let (key, wanted) = match (is_key(a), is_key(b)) {
            (true, _) if is_free(b) => (a, b),
            (_, true) if is_free(a) => (b, a),
            _ => return None,
        };
        let is_constant = |op: &Op| match op {
            Op::Text(_) | Op::Number(_) => true,
            Op::Sequence(s) => matches!(s.kind, Seq::Literal(_)),
            _ => false,
        };
        if is_constant(key) {
            return None;
        }
        let key = Some(key.clone()).filter(|key| !is_itself(key));
        Some(Join::new(candidates.clone(), key, Some(wanted.clone()), rules, single))
    }

    /// A path to values of nodes beside the context node, as in `not(@k = preceding::a/@k)`.
    pub(crate) fn join_of_values(
        &mut self,
        start: &From,
        filter: &[Predicate],
        steps: &[Step],
    ) -> Option<Arc<Join>> {
        let (first, rest) = steps.split_first()?;
        if !matches!(start, From::Context) || !filter.is_empty() || !first.predicates.is_empty() {
            return None;
        }
        let axis = base_axis(first.axis).filter(|axis| *axis != first.axis && rest.len() <= STEPS)?;
        let key = match rest {
            [] => None,
            rest => Some(self.path(From::Context, Vec::new(), rest.to_vec(), first.span)),
        };
        if key.as_ref().is_some_and(|key| !is_key(key)) {
            return None;
        }
        let candidates = Some((first.axis, Box::from([Step { axis, join: None, ..first.clone() }])));
        Some(Join::new(candidates, key, None, Rules::Nodes, false))
    }
}

/// A path from the context node without conditions.
fn is_plain(op: &Op) -> bool {
    matches!(op, Op::Path(path) if path.plain && matches!(path.start, From::Context))
}

/// Whether a condition is an error for no node: whether there are nodes, and whether their values are certain texts.
fn never_fails(condition: &Op) -> bool {
    let is_text = |op: &Op| match op {
        Op::Text(_) => true,
        Op::Sequence(s) => matches!(&s.kind, Seq::Literal(Value::String(_))),
        _ => false,
    };
    match condition {
        Op::Compare(_, both) => [&both.0, &both.1].into_iter().all(|op| is_plain(op) || is_text(op)),
        Op::Sequence(s) => match &s.kind {
            Seq::General(BinaryOp::Equal, a, b) => is_plain(a) && is_text(b) || is_text(a) && is_plain(b),
            _ => false,
        },
        op => is_plain(op),
    }
}

/// Whether the value of an operation is the same whatever the context item is; `within`: of all nodes of one tree.
fn is_free(op: &Op, within: bool) -> bool {
    let all = |ops: &[Op]| ops.iter().all(|op| is_free(op, within));
    match op {
        Op::Number(_) | Op::Text(_) | Op::Variable(..) | Op::Current(_) => true,
        Op::Path(path) => match &path.start {
            From::Root => within,
            From::Context => false,
            From::Op(start) => is_free(start, within),
        },
        Op::Or(ops) | Op::And(ops) | Op::Union(ops) => all(ops),
        Op::Compare(_, both) | Op::Arithmetic(_, both) => {
            is_free(&both.0, within) && is_free(&both.1, within)
        }
        Op::Negate(a) => is_free(a, within),
        Op::Call(core, args, _) => !core.looks_at_context(args.len()) && all(args),
        Op::Extension(_, args, .., results) => match results {
            Results::Stay => all(args),
            Results::FollowArguments => !args.is_empty() && all(args),
            _ => false,
        },
        Op::Sequence(s) => {
            let is_plain = match &s.kind {
                Seq::Call(entry, args) => entry.looks.at_arguments_only(args.len()),
                // What their operands do not show may look at the context, or call a function that does.
                Seq::ContextItem | Seq::Function(..) | Seq::Apply(..) | Seq::Partial(..) => false,
                _ => true,
            };
            is_plain && s.operands().into_iter().all(|op| is_free(op, within))
        }
    }
}

/// Whether an operation looks at nothing but the context node, and is a path or a text.
fn is_key(op: &Op) -> bool {
    match op {
        Op::Path(_) => looks_at_node_only(op),
        op => is_itself(op) || op.ty() == Type::String && looks_at_node_only(op),
    }
}

fn looks_at_node_only(op: &Op) -> bool {
    let all = |ops: &[Op]| ops.iter().all(looks_at_node_only);
    match op {
        Op::Text(_) | Op::Number(_) => true,
        Op::Path(_) => is_plain(op),
        Op::Call(core, args, _) => {
            !matches!(core, Core::Position | Core::Last | Core::Lang | Core::Id) && all(args)
        }
        Op::Extension(_, args, .., results) => *results == Results::FollowArguments && all(args),
        Op::Sequence(s) => match &s.kind {
            Seq::ContextItem | Seq::Literal(_) => true,
            Seq::Call(entry, args) => matches!(entry.looks, Looks::Nowhere | Looks::Context(_)) && all(args),
            _ => false,
        },
        _ => false,
    }
}

/// From where the nodes of an axis are indexed: along which axis from the node, its parent, or the root.
fn base_axis(axis: Axis) -> Option<Axis> {
    match axis {
        Axis::Child | Axis::PrecedingSibling | Axis::FollowingSibling => Some(Axis::Child),
        Axis::Descendant | Axis::Preceding | Axis::Following => Some(Axis::Descendant),
        Axis::DescendantOrSelf => Some(Axis::DescendantOrSelf),
        _ => None,
    }
}

/// Whether a node that is indexed is on an axis of another node, in a document where numbers tell it.
fn is_on_axis(doc: &xml::Document, axis: Axis, node: Node, indexed: Node) -> bool {
    match axis {
        Axis::PrecedingSibling => indexed.id < node.id,
        Axis::FollowingSibling => indexed.id > node.id,
        Axis::Preceding => doc.subtree_end(indexed.id) <= node.id,
        Axis::Following => indexed.id >= doc.subtree_end(node.id),
        _ => true,
    }
}

/// `.`
fn is_itself(op: &Op) -> bool {
    match op {
        Op::Path(path) => path.dot,
        Op::Sequence(s) => matches!(s.kind, Seq::ContextItem),
        _ => false,
    }
}

/// What is looked for.
enum Wanted {
    Texts(Vec<String>),
    Numbers(Vec<f64>),
}

impl Index {
    fn hash(&self, text: &str) -> u32 {
        self.hasher.hash_one(text) as u32
    }

    fn hash_number(&self, number: f64) -> u32 {
        self.hasher.hash_one((number + 0.0).to_bits()) as u32
    }

    /// The places of nodes whose keys may have one of these hashes, in order.
    fn places(table: &[(u32, u32)], numbers: bool, hashes: &[u32]) -> Places {
        let run = |hash: u32| {
            let from = table.partition_point(|(other, _)| *other < hash);
            from..from + table[from..].partition_point(|(other, _)| *other == hash)
        };
        if let [hash] = hashes {
            return Places { list: None, numbers, range: run(*hash) };
        }
        let mut list: Vec<u32> =
            hashes.iter().flat_map(|hash| &table[run(*hash)]).map(|(_, place)| *place).collect();
        list.sort_unstable();
        list.dedup();
        Places { range: 0..list.len(), list: Some(list), numbers }
    }

    fn with_texts(&self, texts: &[String]) -> Places {
        let hashes: Vec<u32> = texts.iter().map(|text| self.hash(text)).collect();
        Index::places(&self.texts, false, &hashes)
    }

    fn node(&self, places: &Places, at: usize) -> Node {
        let place = match &places.list {
            Some(list) => list[at],
            None if places.numbers => {
                self.numbers.get().and_then(Option::as_ref).map_or(0, |table| table[at].1)
            }
            None => self.texts[at].1,
        };
        self.nodes[place as usize]
    }
}

/// Where nodes are in an index: what is not asked for need not be listed.
struct Places {
    /// `None`: they are in the table, of numbers or of texts.
    list: Option<Vec<u32>>,
    numbers: bool,
    range: Range<usize>,
}

/// Nodes that are found in an index, in the order of an axis.
pub(crate) struct Joined<'d> {
    index: Arc<Index>,
    places: Places,
    axis: Axis,
    doc: &'d xml::Document,
    from: Node,
}

impl<'d> Joined<'d> {
    fn new(index: Arc<Index>, mut places: Places, axis: Axis, doc: &'d xml::Document, from: Node) -> Self {
        // How many of them are before a node: those on one side of it are found without a look at the others.
        let before = |end: NodeId| {
            let (mut low, mut high) = (places.range.start, places.range.end);
            while low < high {
                let middle = low + (high - low) / 2;
                match index.node(&places, middle).id < end {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            low
        };
        match axis {
            Axis::PrecedingSibling | Axis::Preceding => places.range.end = before(from.id),
            Axis::FollowingSibling | Axis::Following => places.range.start = before(doc.subtree_end(from.id)),
            _ => {}
        }
        Joined { index, places, axis, doc, from }
    }
}

impl Iterator for Joined<'_> {
    type Item = Node;

    fn next(&mut self) -> Option<Node> {
        loop {
            let at = match self.axis {
                Axis::PrecedingSibling | Axis::Preceding => self.places.range.next_back()?,
                _ => self.places.range.next()?,
            };
            let node = self.index.node(&self.places, at);
            if is_on_axis(self.doc, self.axis, self.from, node) {
                return Some(node);
            }
        }
    }
}

impl<'a> Eval<'a> {
    /// `None`: nothing has been noted yet.
    #[inline]
    fn joins(&self) -> Option<&Joins> {
        let comparands = match self.cx.host.comparands() {
            Some(comparands) => comparands,
            None => &self.version2.get()?.comparands,
        };
        Some(&comparands.joins).filter(|joins| joins.any.load(Ordering::Relaxed))
    }

    /// The nodes of a step that its first predicate may choose, in the order of its axis. `None`: all have to be looked at.
    #[inline]
    pub(crate) fn joined_nodes(&self, step: &'a Step, node: Node) -> Result<Option<Joined<'a>>, Fault> {
        match &step.join {
            Some(join) if self.joins().is_some() => self.joined_from(join, node),
            _ => Ok(None),
        }
    }

    /// Notes that the candidates of a step were looked at: so many, and whether those were all.
    #[inline]
    pub(crate) fn not_joined(
        &self,
        step: &'a Step,
        node: Node,
        looked: usize,
        all: bool,
    ) -> Result<(), Fault> {
        match &step.join {
            Some(join) if looked > FEW => self.note_step(join, node, all),
            _ => Ok(()),
        }
    }

    #[cold]
    fn note_step(&self, join: &'a Join, node: Node, all: bool) -> Result<(), Fault> {
        let Some((axis, _)) = &join.candidates else { return Ok(()) };
        if let Some(base) = self.base(*axis, node)? {
            self.note(join, Base::Node(base), all && base == node);
        }
        Ok(())
    }

    /// The nodes of a list that its first predicate may choose. `None`: all have to be looked at.
    pub(crate) fn joined_list(
        &self,
        join: Option<&'a Arc<Join>>,
        set: &NodeSet,
    ) -> Result<Option<Vec<Node>>, Fault> {
        let Some(join) = join.filter(|_| set.len() > FEW) else { return Ok(None) };
        let base = Base::List(Value::NodeSet(set.clone()));
        if let Some(index) = self.index_of(join, &base)? {
            let places = self.places(join, &index, set.as_slice()[0])?;
            return Ok(places.map(|places| places.range.clone().map(|at| index.node(&places, at)).collect()));
        }
        self.note(join, base, true);
        Ok(None)
    }

    /// The node from which the nodes of an axis are indexed.
    fn base(&self, axis: Axis, node: Node) -> Result<Option<Node>, Fault> {
        if node.is_namespace() || node.as_atomic().is_some() {
            return Ok(None);
        }
        let doc = self.doc(node.doc)?;
        let (parent, is_known) = match axis {
            Axis::PrecedingSibling | Axis::FollowingSibling => (doc.parent(node.id), true),
            Axis::Preceding | Axis::Following => (Some(doc.root_of(node.id)), true),
            _ => (Some(node.id), false),
        };
        // (Order and nesting are told by numbers there.)
        let is_plain = doc.is_dense() && doc.kind(node.id) != xml::NodeKind::Attribute;
        Ok(parent.filter(|_| !is_known || is_plain).map(|parent| node.at(parent)))
    }

    fn joined_from(&self, join: &'a Join, node: Node) -> Result<Option<Joined<'a>>, Fault> {
        let Some((axis, _)) = &join.candidates else { return Ok(None) };
        let Some(base) = self.base(*axis, node)? else { return Ok(None) };
        let Some(index) = self.index_of(join, &Base::Node(base))? else { return Ok(None) };
        let Some(places) = self.places(join, &index, node)? else { return Ok(None) };
        Ok(Some(Joined::new(index, places, *axis, self.doc(node.doc)?, node)))
    }

    /// A comparison with values of nodes beside the context node. `None`: neither side is such.
    #[inline]
    pub(crate) fn compare_joined(
        &self,
        op: BinaryOp,
        (a, b): (&'a Op, &'a Op),
        at: Frame,
    ) -> Result<Option<bool>, Fault> {
        for (path, other) in [(b, a), (a, b)] {
            if let Op::Path(path) = path
                && path.join.is_some()
                && op == BinaryOp::Equal
            {
                return self.joined_values(path, other, at);
            }
        }
        Ok(None)
    }

    /// Whether a value of `other` is that of a node of a path, which is a comparison of texts. `None`: one by one.
    fn joined_values(&self, path: &'a Path, other: &'a Op, at: Frame) -> Result<Option<bool>, Fault> {
        let Some(join) = &path.join else { return Ok(None) };
        let Some((axis, _)) = &join.candidates else { return Ok(None) };
        let Some(base) = self.base(*axis, at.node)? else { return Ok(None) };
        let doc = self.doc(at.node.doc)?;
        let (from, to) = match axis {
            Axis::FollowingSibling | Axis::Following => {
                (doc.subtree_end(at.node.id), doc.subtree_end(base.id))
            }
            _ => (base.id, at.node.id),
        };
        if to.index().saturating_sub(from.index()) <= FEW {
            return Ok(None);
        }
        let base = Base::Node(base);
        let Some(index) = self.index_of(join, &base)? else {
            self.note(join, base, false);
            return Ok(None);
        };
        let Ok(value) = self.value(other, at) else { return Ok(None) };
        let Some(Wanted::Texts(texts)) = self.wanted(join, &value)? else { return Ok(None) };
        let places = index.with_texts(&texts);
        let mut nodes = places.range.clone().map(|at| index.node(&places, at));
        // Those that are surely on the axis come first.
        let mut next = || match axis {
            Axis::FollowingSibling | Axis::Following => nodes.next_back(),
            _ => nodes.next(),
        };
        while let Some(node) = next() {
            spend(1)?;
            let mut found = false;
            if is_on_axis(doc, *axis, at.node, node) {
                self.keys(join, node, &mut |key, _| {
                    found |= texts.iter().any(|text| text == key);
                    !found
                })?;
            }
            if found {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// Where nodes with a wanted key are in an index. `None`: it does not tell.
    fn places(&self, join: &'a Join, index: &Index, node: Node) -> Result<Option<Places>, Fault> {
        spend(1)?;
        // (What is wrong with the other side is an error where the predicate is evaluated, if it is.)
        let Some(wanted) = &join.wanted else { return Ok(None) };
        let Ok(value) = self.value(wanted, Frame { node, position: 1, size: 1 }) else { return Ok(None) };
        if value.len() > index.nodes.len() / SHARE || join.single && value.len() > 1 {
            return Ok(None);
        }
        let Some(wanted) = self.wanted(join, &value)? else { return Ok(None) };
        Ok(match wanted {
            Wanted::Texts(texts) => Some(index.with_texts(&texts)),
            Wanted::Numbers(numbers) => {
                let hashes: Vec<u32> = numbers.iter().map(|number| index.hash_number(*number)).collect();
                self.numbers(join, index)?.map(|table| Index::places(table, true, &hashes))
            }
        })
    }

    /// What nodes are looked up by. `None`: they have to be compared.
    fn wanted(&self, join: &Join, value: &Value) -> Result<Option<Wanted>, Fault> {
        let (mut texts, mut numbers) = (Vec::new(), Vec::new());
        let mut add = |atom: &Atomic| {
            if let Some(text) = atom.as_text() {
                texts.push(text.to_string());
                return true;
            }
            let number = match join.rules {
                Rules::Typed => exact_double(atom),
                _ => atom.is_numeric().then(|| atom.to_double()),
            };
            numbers.extend(number);
            number.is_some()
        };
        let found = match value {
            Value::Boolean(_) => false,
            Value::Number(number) => add(&Atomic::Double(*number)),
            Value::String(text) => add(&Atomic::String(text.clone())),
            Value::NodeSet(nodes) => {
                for node in nodes.iter() {
                    texts.push(self.node_string(node)?.into_owned());
                }
                true
            }
            value => self.atoms_of(value).is_ok_and(|atoms| atoms.iter().all(add)),
        };
        Ok(match (found, numbers.is_empty()) {
            (false, _) => None,
            // (Members of an array, which is an error.)
            _ if join.single && texts.len() > 1 => None,
            (_, true) => Some(Wanted::Texts(texts)),
            (..) if texts.is_empty() && !join.single => Some(Wanted::Numbers(numbers)),
            _ => None,
        })
    }

    /// The index, made if it pays.
    fn index_of(&self, join: &'a Join, base: &Base) -> Result<Option<Arc<Index>>, Fault> {
        #[cfg(test)]
        if OFF.get() {
            return Ok(None);
        }
        let Some(joins) = self.joins() else { return Ok(None) };
        {
            let Ok(mut all) = joins.all.lock() else { return Ok(None) };
            let Some(place) = all.iter().position(|entry| entry.is(join, base)) else { return Ok(None) };
            let (front, is_ready) = (place / 2, all[place].ready);
            all.swap(place, front);
            if let Some(index) = &all[front].index {
                return Ok(index.clone());
            }
            if !is_ready {
                return Ok(None);
            }
        }
        let index = self.make_index(join, base)?.map(Arc::new);
        let Ok(mut all) = joins.all.lock() else { return Ok(index) };
        if let Some(entry) = all.iter_mut().find(|entry| entry.is(join, base)) {
            entry.index = Some(index.clone());
        }
        // Those that are used least go, if there is no room for all.
        let mut nodes = 0;
        all.retain(|entry| {
            nodes += entry.index.iter().flatten().map(|index| index.nodes.len()).sum::<usize>();
            nodes <= MOST_NODES
        });
        Ok(index)
    }

    fn note(&self, join: &Join, base: Base, all_looked_at: bool) {
        let joins = &self.comparands().joins;
        let Ok(mut all) = joins.all.lock() else { return };
        let place = match all.iter().position(|entry| entry.is(join, &base)) {
            Some(place) => place,
            None => {
                all.truncate(MOST - 1);
                all.push(Entry { join: join.number, base, looked: 0, ready: false, index: None });
                all.len() - 1
            }
        };
        let entry = &mut all[place];
        entry.looked += 1;
        entry.ready |= all_looked_at || entry.looked >= USES;
        joins.any.store(true, Ordering::Relaxed);
    }

    /// `None`: the keys are not such that nodes can be found by them.
    fn make_index(&self, join: &'a Join, base: &Base) -> Result<Option<Index>, Fault> {
        let mut nodes = Vec::new();
        match (base, &join.candidates) {
            (Base::Node(node), Some((_, steps))) => {
                self.steps(steps, *node, &mut |node| {
                    nodes.push(node);
                    Ok(nodes.len() <= MOST_NODES)
                })?;
            }
            (Base::List(Value::NodeSet(set)), _) => nodes.extend(set.iter()),
            _ => return Ok(None),
        }
        spend(nodes.len())?;
        if nodes.len() > MOST_NODES {
            return Ok(None);
        }
        let (texts, numbers) = (Vec::new(), OnceLock::new());
        let mut index = Index { nodes, hasher: RandomState::new(), texts, numbers };
        let mut texts = Vec::new();
        for (place, node) in index.nodes.iter().enumerate() {
            let before = texts.len();
            let found = self.keys(join, *node, &mut |text, _| {
                texts.push((index.hash(text), place as u32));
                true
            })?;
            if !found || join.single && texts.len() > before + 1 || texts.len() > MOST_NODES {
                return Ok(None);
            }
        }
        texts.sort_unstable();
        texts.dedup();
        index.texts = texts;
        Ok(Some(index))
    }

    /// The same by keys that are numbers.
    fn numbers<'i>(&self, join: &'a Join, index: &'i Index) -> Result<Option<&'i [(u32, u32)]>, Fault> {
        if index.numbers.get().is_none() {
            spend(index.nodes.len())?;
            let mut numbers = Vec::new();
            let mut all = true;
            for (place, node) in index.nodes.iter().enumerate() {
                let mut add = |text: &str, is_untyped: bool| {
                    let number = match join.rules {
                        Rules::Nodes => Some(number::parse(text)),
                        Rules::Compatible => Some(Atomic::Untyped(text.into()).to_double()),
                        // What is no number is an error.
                        Rules::Typed => parse_double(text).filter(|_| is_untyped),
                    };
                    numbers.extend(number.map(|number| (index.hash_number(number), place as u32)));
                    number.is_some()
                };
                all = all && self.keys(join, *node, &mut add)?;
            }
            numbers.sort_unstable();
            numbers.dedup();
            let _ = index.numbers.set(all.then_some(numbers));
        }
        Ok(index.numbers.get().and_then(Option::as_deref))
    }

    /// The keys of a node, and whether they are untyped, until `f` is false; whether all are texts for which it was true.
    fn keys(&self, join: &'a Join, node: Node, f: &mut dyn FnMut(&str, bool) -> bool) -> Result<bool, Fault> {
        let at = Frame { node, position: 1, size: 1 };
        match &join.key {
            None => Ok(f(&self.node_string(node)?, self.is_untyped(node)?)),
            Some(path @ Op::Path(_)) => {
                self.each(path, at, &mut |node| Ok(f(&self.node_string(node)?, self.is_untyped(node)?)))
            }
            // (What is wrong with it is an error where the predicate is evaluated.)
            Some(text) => Ok(match self.value(text, at) {
                Ok(Value::String(text)) => f(&text, false),
                Ok(Value::Empty) => true,
                _ => false,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OFF;
    use crate::{Comparands, CompileOptions, Context, Expression, Host, Node, Value, Version};
    use xml::{Document, NodeId};

    /// Keeps what was compared, as a stylesheet does.
    #[derive(Default)]
    struct Kept {
        comparands: Comparands,
        current: std::cell::Cell<Option<Node>>,
        list: Value,
    }

    impl Host for Kept {
        fn comparands(&self) -> Option<&Comparands> {
            Some(&self.comparands)
        }

        fn current(&self) -> Option<Node> {
            self.current.get()
        }

        fn variable(&self, _: &str, _: Option<&str>, local: &str) -> Result<Option<Value>, String> {
            Ok(Some(match (local, self.current.get()) {
                ("n", Some(node)) => Value::Number((node.id.index() % 9) as f64),
                ("s", Some(node)) => Value::string(["1", "01", "x", "", "NaN"][node.id.index() % 5]),
                ("l", _) => self.list.clone(),
                ("b", Some(node)) => Value::Boolean(node.id.index() % 2 == 0),
                _ => Value::Empty,
            }))
        }
    }

    struct Library;

    impl crate::FunctionLibrary for Library {
        fn function(&self, _: &str, _: Option<&str>, local: &str, _: usize) -> crate::Function {
            match local {
                "current" => crate::Function::Current,
                _ if crate::sequence::functions::find(local).is_some() => crate::Function::Core,
                _ => crate::Function::Unknown,
            }
        }

        fn variable(&self, _: &str, _: Option<&str>, _: &str) -> Option<crate::VariableInfo> {
            Some(crate::VariableInfo::default())
        }
    }

    /// A flat list and nested lists of elements with repeated, absent, empty, numeric and other keys.
    fn document(numbers: bool) -> Document {
        let mut text = String::from("<r>");
        for n in 0..60 {
            let key = match n % 7 {
                _ if numbers => format!("{}", n % 23),
                0 => format!("0{}", n % 5),
                1 => "x".into(),
                2 => String::new(),
                3 => "NaN".into(),
                _ => format!("{}", n % 9),
            };
            let key = if n % 11 == 0 && !numbers { String::new() } else { format!(" k='{key}'") };
            text.push_str(&format!("<a{key} t='{}'>{}<b>{}</b><b>{}</b></a>", n % 3, n % 4, n % 13, n % 5));
            if n % 20 == 10 {
                text.push_str("<g><a k='1'>1</a><!--1--><a k='x'><a k='3'/>3</a></g>");
            }
        }
        text.push_str("</r>");
        Document::parse(text.into_bytes(), &xml::ParseOptions::default()).unwrap()
    }

    /// The values from a number of nodes in turn, with one host, and the units that it took.
    fn values(doc: &Document, expression: &str, version: Version, compatible: bool) -> (Vec<String>, u64) {
        let options = CompileOptions { version, compatible, library: &Library, ..CompileOptions::default() };
        let compiled =
            Expression::compile(expression, &options).unwrap_or_else(|error| panic!("{expression}: {error}"));
        let elements = Expression::compile("/r/a", &CompileOptions::default()).unwrap();
        let list = elements.evaluate(&Context::root(doc)).unwrap();
        let host = Kept { list, ..Kept::default() };
        let mut out = Vec::new();
        let run = || {
            let often = if expression.starts_with("for") { 5 } else { 23 };
            for n in (1..doc.node_count()).step_by(doc.node_count() / often).chain(1..4) {
                let Some(id) = NodeId::from_index(n) else { continue };
                host.current.set(Some(Node::new(id)));
                let cx = Context::at(doc, Node::new(id)).with_host(&host);
                out.push(match compiled.evaluate(&cx) {
                    Ok(value) => format!("{value:?}"),
                    Err(error) => error.code.to_string(),
                });
            }
        };
        let ((), used) = meter::within(std::time::Duration::from_secs(600), None, run);
        (out, used.units)
    }

    /// Every join with the index and without.
    #[test]
    fn as_one_by_one() {
        let nodes = [
            "//a[P]",
            "/r/a[P]",
            "/r/a[P][2]",
            "/r/a[P][last()]",
            "/r/*[P]/b",
            "//*[P and @t = 1]",
            "/r/a[b and P]",
            "../a[P]",
            "following-sibling::a[P]",
            "preceding-sibling::a[P]",
            "preceding-sibling::a[P][1]",
            "preceding::a[P]",
            "following::*[P]",
            "$l[P]/@t",
            "//a[P][position() < 3]",
            "//g/a[P]",
            "/r/g/a[P]/../b",
            "a/a[P]",
            "/r/*/b[P]",
            "//a/b[P]/..",
            "../preceding-sibling::*[P][2]",
            "descendant-or-self::a[P]",
        ];
        let conditions = [
            "@k = current()/@k",
            "@k = current()/../@k",
            "@k = $n",
            "$s = @k",
            "@k = $b",
            "b = current()/@t",
            ". = current()/b",
            "current()/b = b",
            "@k = 1",
            "@k = '1'",
            "@k = current()/@k + 1",
            "@k = $n + 1",
            "@k = //g/a/@k",
            "string(@k) = string(current()/@k)",
            "concat(@k, '-', @t) = concat(current()/@k, '-', $n)",
            "name() = name(current())",
            "b[1] = current()/b[1]",
            "@k = current()/ancestor::*/@k",
            "@k = string($n)",
        ];
        let of_version2 = [
            "@k eq current()/@k",
            "b eq current()/@t",
            "@k = (current()/@k, $s)",
            "@k = ($n, $n + 1)",
            "lower-case(@k) = lower-case(current()/@k)",
            "@k = xs:decimal($n)",
            "@k = data(current()/@k)",
            "@k = ()",
        ];
        let values_beside = [
            "@k = preceding::a/@k",
            "@k = preceding-sibling::a/@k",
            "following-sibling::a/@k = @k",
            "b = following::a/b",
            "not(. = preceding-sibling::*)",
            "@k = preceding-sibling::a[1]/@k",
            "@t = preceding::*",
            "$n = preceding::a/@k",
            "$s = following::a/@k",
            "//a[not(@k = preceding::a/@k)]",
            "preceding::a/@k = following::a/@k",
        ];
        let mut ways = Vec::new();
        for version in [Version::V1, Version::V2, Version::V31] {
            for compatible in [false, true] {
                if compatible && version == Version::V1 {
                    continue;
                }
                for path in nodes {
                    let later = if version == Version::V1 { &[][..] } else { &of_version2[..] };
                    for condition in conditions.iter().chain(later) {
                        ways.push((path.replace('P', condition), version, compatible));
                        if version == Version::V31 {
                            let each = condition.replace("current()", "$y");
                            let each = path.replace('P', &each).replace("//a[", "$x//a[");
                            ways.push((
                                format!("for $x in /, $y in (/r/a)[position() < 9] return {each}"),
                                version,
                                compatible,
                            ));
                        }
                    }
                }
                ways.extend(values_beside.iter().map(|way| ((*way).to_owned(), version, compatible)));
            }
        }
        let (mut with, mut without) = (0, 0);
        for numbers in [false, true] {
            let doc = document(numbers);
            for (expression, version, compatible) in ways.iter().skip(usize::from(numbers)).step_by(2) {
                let (joined, units) = values(&doc, expression, *version, *compatible);
                OFF.set(true);
                let (plain, plain_units) = values(&doc, expression, *version, *compatible);
                OFF.set(false);
                assert_eq!(joined, plain, "{expression} {version:?} {compatible}");
                (with, without) = (with + units, without + plain_units);
                // (Never much more.)
                assert!(units < plain_units * 5 / 4 + 3000, "{expression}: {units}, {plain_units}");
            }
        }
        assert!(with * 2 < without, "{with}, {without}");
    }

    /// Where a node that is not looked at would be an error, or its position counts.
    #[test]
    fn arrays_and_positions() {
        let doc = document(false);
        let both = |expression: &str| {
            let (joined, _) = values(&doc, expression, Version::V31, false);
            OFF.set(true);
            let (plain, _) = values(&doc, expression, Version::V31, false);
            OFF.set(false);
            assert_eq!(joined, plain, "{expression}");
            joined
        };
        let found =
            both("count(/r/a[@k eq (if (current()/ancestor-or-self::a/@t = '0') then ['u', 'v'] else 'w')])");
        assert!(found.iter().any(|value| value == "XPTY0004"), "{found:?}");
        // What stands before the equality is an error for all nodes, also where none has the key.
        let found = both("count(/r/a[xs:integer($s) ge 0 and @k = concat($s, 'z')])");
        assert!(found.iter().any(|value| value == "FORG0001"), "{found:?}");
        both("count(/r/a[@k and @t = '0' and @k = $s])");
        for (by_function, by_name) in [
            ("position#0() > 20", "position() > 20"),
            ("last#0() > 20", "last() > 20"),
            ("(let $p := position#0 return $p() = (20 to 50))", "position() = (20 to 50)"),
            ("apply(last#0, []) > 20", "last() > 20"),
            ("function-lookup(xs:QName('fn:last'), 0)() > 20", "last() > 20"),
            ("function-lookup(xs:QName('fn:position'), 0)() > 20", "position() > 20"),
        ] {
            for path in
                ["/r/a[@k = current()/@k and P]", "//*[@t = current()/@t and P]/@k", "$l[@k = $s and P]"]
            {
                let counted = both(&path.replace('P', by_name));
                assert_eq!(both(&path.replace('P', by_function)), counted, "{path} {by_function}");
            }
        }
    }
}
