//! Operations as nodes: paths run depth-first, predicates count along them.

use super::direct::Reached;
use super::{Each, Eval, Fault, Frame, Walk, fault, spend};
use crate::ast::{Axis, BinaryOp};
use crate::error::Span;
use crate::plan::{Core, From, Op, Path, Predicate, Shape, Step};
use crate::sequence::plan::Seq;
use crate::value::{DocId, Item, Node, NodeSet, Type, Value};
use std::cmp::Ordering;
use std::ops::Range;
use xml::{Document, NodeKind};

impl<'a> Eval<'a> {
    /// The nodes in document order, without duplicates.
    pub fn nodes(&self, op: &'a Op, at: Frame) -> Result<Vec<Node>, Fault> {
        let mut out = Vec::new();
        let mut sorted = false;
        match op {
            Op::Path(p) if let Some((doc, node)) = self.direct(p, at)? => {
                self.walk(doc, node.doc, &p.steps, node.id, &mut |n| {
                    reserve(&mut out);
                    out.push(node.at(n));
                    Ok(true)
                })?;
                sorted = p.from_one.ordered && p.from_one.distinct;
            }
            Op::Path(p) => {
                let shape = self.each_in_path(p, at, &mut |n| {
                    reserve(&mut out);
                    out.push(n);
                    Ok(true)
                })?;
                sorted = shape.ordered && shape.distinct;
            }
            Op::Union(parts) if self.children_of(parts, at, &mut out)? => sorted = true,
            _ => {
                self.each(op, at, &mut |n| {
                    out.push(n);
                    Ok(true)
                })?;
            }
        }
        if !sorted {
            self.sort(&mut out)?;
        }
        Ok(out)
    }

    /// The first node in document order.
    pub fn first(&self, op: &'a Op, at: Frame) -> Result<Option<Node>, Fault> {
        let mut first: Option<Node> = None;
        match op {
            Op::Path(p) if p.is_context(at) => first = Some(at.node),
            Op::Path(p)
                if p.from_one.ordered
                    && let Some((doc, node)) = self.direct(p, at)? =>
            {
                if let [step] = &*p.steps
                    && let Some(near) = self.near(doc, step, node, false)?
                {
                    return Ok(match near {
                        Reached::Node(first) => Some(node.at(first)),
                        Reached::Nothing | Reached::Several => None,
                    });
                }
                self.walk(doc, node.doc, &p.steps, node.id, &mut |n| {
                    first = Some(node.at(n));
                    Ok(false)
                })?;
            }
            Op::Path(p) if p.shape(self, at)?.ordered => {
                self.each_in_path(p, at, &mut |n| {
                    first = Some(n);
                    Ok(false)
                })?;
            }
            Op::Variable(..) | Op::Extension(..) => return Ok(self.node_value(op, at)?.first()),
            Op::Sequence(s) => {
                let value = self.sequence(s, at)?;
                return match value.item(0) {
                    None => Ok(None),
                    Some(Item::Node(n)) => Ok(Some(n)),
                    Some(Item::Atomic(_)) => Err(no_nodes(&value, s.span)),
                };
            }
            _ => {
                self.each(op, at, &mut |n| {
                    let earlier = match first {
                        Some(f) => self.order(n, f)? == Ordering::Less,
                        None => true,
                    };
                    if earlier {
                        first = Some(n);
                    }
                    Ok(true)
                })?;
            }
        }
        Ok(first)
    }

    pub fn count(&self, op: &'a Op, at: Frame, span: Span) -> Result<usize, Fault> {
        let mut count = 0;
        if let Op::Path(p) = op
            && p.from_one.distinct
            && let Some((doc, node)) = self.direct(p, at)?
        {
            self.walk(doc, node.doc, &p.steps, node.id, &mut |_| {
                count += 1;
                Ok(true)
            })?;
            return Ok(count);
        }
        self.each_distinct(op, at, span, &mut |_| {
            count += 1;
            Ok(true)
        })?;
        Ok(count)
    }

    /// Each node once, in any order.
    pub(super) fn each_distinct(&self, op: &'a Op, at: Frame, span: Span, f: Each<'_>) -> Walk {
        match op {
            Op::Path(p) if p.shape(self, at)?.distinct => {
                self.each_in_path(p, at, f)?;
                Ok(true)
            }
            Op::Variable(..) | Op::Extension(..) => {
                for n in self.node_value(op, at).map_err(|e| placed(e, span))?.iter() {
                    if !f(n)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => {
                for n in self.nodes(op, at)? {
                    if !f(n)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    /// A variable's or an extension function's value as nodes.
    pub(super) fn node_value(&self, op: &'a Op, at: Frame) -> Result<NodeSet, Fault> {
        self.nodes_of(self.value(op, at)?, op, "XPTY0004")
    }

    /// The value of an operation as nodes. Errors: with that code.
    fn nodes_of(&self, value: Value, op: &Op, code: &'static str) -> Result<NodeSet, Fault> {
        if let Value::NodeSet(nodes) = value {
            return Ok(nodes);
        }
        let span = match op {
            Op::Variable(_, _, s) | Op::Extension(_, _, _, s, _) => *s,
            Op::Sequence(s) => s.span,
            _ => Span::default(),
        };
        self.only_nodes(&value, span).map_err(|mut e| {
            // XPath 1.0 has no error codes.
            if self.program.version2 {
                e.code = code.into();
            }
            e
        })
    }

    /// A value as nodes in document order.
    #[cold]
    pub(super) fn only_nodes(&self, value: &Value, span: Span) -> Result<NodeSet, Fault> {
        let nodes: Option<Vec<Node>> = value.items().map(|item| item.node()).collect();
        match nodes {
            Some(mut nodes) => {
                self.sort(&mut nodes)?;
                Ok(NodeSet::from_ordered(&nodes))
            }
            None => Err(no_nodes(value, span)),
        }
    }

    /// Each node, in any order, possibly more than once.
    pub fn each(&self, op: &'a Op, at: Frame, f: Each<'_>) -> Walk {
        match op {
            Op::Path(p) if p.is_context(at) => f(at.node),
            Op::Path(p) => {
                let mut all = true;
                self.each_in_path(p, at, &mut |n| {
                    all = f(n)?;
                    Ok(all)
                })?;
                Ok(all)
            }
            Op::Union(items) => {
                for item in items {
                    if !self.each(item, at, f)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Op::Current(span) => match self.cx.host.current() {
                Some(n) => f(n),
                None => Err(fault("there is no current node here", *span)),
            },
            Op::Call(Core::Id, args, _) => self.id(&args[0], at, f),
            _ => {
                for n in self.node_value(op, at)?.iter() {
                    if !f(n)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    fn id(&self, arg: &'a Op, at: Frame, f: Each<'_>) -> Walk {
        let doc = self.doc(at.node.doc)?;
        let mut tokens = |s: &str| -> Walk {
            for token in s.split([' ', '\t', '\r', '\n']).filter(|t| !t.is_empty()) {
                if let Some(n) = doc.element_by_id(token)
                    && !f(at.node.at(n))?
                {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let held = match arg.ty() {
            Type::NodeSet => return self.each(arg, at, &mut |n| tokens(&self.node_string(n)?)),
            Type::Any => self.value(arg, at)?,
            _ => return tokens(&self.string(arg, at)?),
        };
        match &held {
            Value::NodeSet(set) => {
                for n in set.iter() {
                    if !tokens(&self.node_string(n)?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            other => tokens(&self.value_string(other)?),
        }
    }

    /// Runs a path and returns what is known about the order of its nodes.
    pub(super) fn each_in_path(&self, p: &'a Path, at: Frame, f: Each<'_>) -> Result<Shape, Fault> {
        if let Some((doc, node)) = self.direct(p, at)? {
            self.walk(doc, node.doc, &p.steps, node.id, &mut |n| f(node.at(n)))?;
            return Ok(p.from_one);
        }
        let start = match &p.start {
            From::Root => {
                let root = at.node.at(self.root(at.node)?);
                if self.program.version2
                    && root.id != Document::ROOT
                    && self.doc(root.doc)?.kind(root.id) != NodeKind::Document
                {
                    let mut error =
                        fault("`/` is the root of a document: the context node is in none", p.span);
                    error.code = "XPDY0050".into();
                    return Err(error);
                }
                root
            }
            From::Context => at.node,
            From::Op(op) => {
                let starts = self.starts(p, op, at)?;
                return match starts.as_slice() {
                    [] => Ok(Shape::ONE),
                    [start] => self.run(p, &[*start], f).map(|_| p.from_one),
                    many => self.run(p, many, f).map(|_| p.from_many),
                };
            }
        };
        if !self.leads_nowhere(p, start)? {
            self.run(p, &[start], f)?;
        }
        Ok(p.from_one)
    }

    /// Whether a path begins with children, and its start has none.
    fn leads_nowhere(&self, p: &Path, start: Node) -> Result<bool, Fault> {
        let begins_with_children = p.steps.first().is_some_and(|step| step.axis == Axis::Child);
        if !begins_with_children || start.is_namespace() || start.doc == DocId::ATOMIC {
            return Ok(false);
        }
        Ok(self.doc(start.doc)?.first_child(start.id).is_none())
    }

    /// Whether a path consists only of positions on what may be a single value ([`Host::paths_from_values`]).
    ///
    /// [`Host::paths_from_values`]: crate::Host::paths_from_values
    pub(super) fn may_filter_value(&self, p: &Path) -> bool {
        let positions = p.filter.iter().all(|predicate| {
            matches!(predicate, Predicate::Position(_) | Predicate::Last | Predicate::Never)
        });
        p.steps.is_empty()
            && positions
            && matches!(p.start, From::Op(Op::Variable(..) | Op::Extension(..)))
            && self.cx.host.paths_from_values()
    }

    /// The value that such a path starts from, if the positions keep it; `None`: it starts from nodes,
    /// or nothing is left.
    pub(super) fn filtered_value(&self, p: &'a Path, at: Frame) -> Result<Option<Value>, Fault> {
        let From::Op(op) = &p.start else { return Ok(None) };
        let kept =
            p.filter.iter().all(|predicate| matches!(predicate, Predicate::Position(1) | Predicate::Last));
        let value = self.value(op, at)?;
        Ok(Some(value).filter(|value| kept && !matches!(value, Value::NodeSet(_) | Value::Empty)))
    }

    /// The filtered start nodes of a path.
    fn starts(&self, p: &'a Path, op: &'a Op, at: Frame) -> Result<NodeSet, Fault> {
        // Where values are like nodes without children, no step leads on from them.
        if matches!(op, Op::Variable(..) | Op::Extension(..)) && self.cx.host.paths_from_values() {
            return match self.value(op, at)? {
                Value::NodeSet(nodes) => self.kept_starts(nodes, p),
                sequence @ Value::Sequence(_) => self.kept_starts(self.only_nodes(&sequence, p.span)?, p),
                _ => Ok(NodeSet::new()),
            };
        }
        // The common `(…)[1]` and `(…)[n]` need no list.
        if let [Predicate::Position(wanted)] = &*p.filter {
            if *wanted == 1 {
                return Ok(self.first(op, at)?.map_or(NodeSet::new(), NodeSet::one));
            }
            if let Op::Path(inner) = op
                && let shape = inner.shape(self, at)?
                && shape.ordered
                && shape.distinct
            {
                let mut seen = 0;
                let mut found = NodeSet::new();
                self.each_in_path(inner, at, &mut |n| {
                    seen += 1;
                    if seen == *wanted {
                        found = NodeSet::one(n);
                    }
                    Ok(seen < *wanted)
                })?;
                return Ok(found);
            }
        }
        let set = match op {
            Op::Variable(..) | Op::Extension(..) | Op::Sequence(_) => {
                self.nodes_of(self.value(op, at)?, op, "XPTY0019")?
            }
            _ => NodeSet::from_ordered(&self.nodes(op, at)?),
        };
        self.kept_starts(set, p)
    }

    /// The start nodes that the predicates of a path keep.
    fn kept_starts(&self, mut set: NodeSet, p: &'a Path) -> Result<NodeSet, Fault> {
        if let Some(joined) = self.joined_list(p.filter_join.as_ref(), &set)? {
            set = NodeSet::from_ordered(&joined);
        }
        for predicate in &p.filter {
            set = match self.wanted_positions(predicate, set.len())? {
                Some(positions) => set.part(positions),
                None => NodeSet::from_ordered(&self.kept(set.as_slice(), predicate)?),
            };
        }
        Ok(set)
    }

    /// The nodes of a list that a predicate keeps, positions counted along the list.
    pub fn filter(&self, list: &[Node], predicate: &'a Predicate) -> Result<Vec<Node>, Fault> {
        match self.wanted_positions(predicate, list.len())? {
            Some(positions) => Ok(list.get(positions).unwrap_or_default().to_vec()),
            None => self.kept(list, predicate),
        }
    }

    /// Those for which a predicate holds.
    fn kept(&self, list: &[Node], predicate: &'a Predicate) -> Result<Vec<Node>, Fault> {
        let mut kept = Vec::new();
        for (i, node) in list.iter().enumerate() {
            let at = Frame { node: *node, position: i + 1, size: list.len() };
            if self.holds(predicate, at)? {
                kept.push(*node);
            }
        }
        Ok(kept)
    }

    /// The indexes from 0 that a predicate selects of a list of so many, if it selects by a position that is the same for all
    /// items: `[2]`, `[last()]`, `[$i]`, `[position() = $i + 1]`, `[position() gt 1]`. `None`: it is of another kind.
    pub(crate) fn wanted_positions(
        &self,
        predicate: &'a Predicate,
        size: usize,
    ) -> Result<Option<Range<usize>>, Fault> {
        if size == 0 {
            return Ok(Some(0..0));
        }
        let is_position = |op: &Op| match op {
            Op::Call(Core::Position, ..) => true,
            Op::Sequence(s) => matches!(&s.kind, Seq::Call(entry, _) if entry.name == "position"),
            _ => false,
        };
        let both = |comparison: BinaryOp, a: &'a Op, b: &'a Op| match (is_position(a), is_position(b)) {
            (true, false) => Some((comparison, b)),
            (false, true) => Some((comparison.mirrored(), a)),
            _ => None,
        };
        let wanted = match predicate {
            Predicate::Position(n) => return Ok(Some(at_most(size, (n - 1) as f64, *n as f64))),
            Predicate::Last => return Ok(Some(size.saturating_sub(1)..size)),
            Predicate::Never => return Ok(Some(0..0)),
            Predicate::Number(op) | Predicate::Any(op) => Some((BinaryOp::Equal, op)),
            Predicate::Boolean(Op::Compare(comparison, pair)) => both(*comparison, &pair.0, &pair.1),
            Predicate::Boolean(Op::Sequence(s)) => match &s.kind {
                Seq::General(comparison, a, b) | Seq::Value(comparison, a, b) => both(*comparison, a, b),
                _ => None,
            },
            _ => None,
        };
        let Some((comparison, op)) = wanted.filter(|(_, op)| is_free(op)) else { return Ok(None) };
        let nowhere = Frame { node: Node::ABSENT, position: 0, size: 0 };
        let number = match self.value(op, nowhere)? {
            Value::Number(n) => n,
            Value::Atomic(a) if a.is_numeric() => a.to_double(),
            _ => return Ok(None),
        };
        // The position of index i is i + 1. Nothing is compared with what is not a number.
        let endless = f64::INFINITY;
        Ok(match comparison {
            BinaryOp::NotEqual => None,
            _ if number.is_nan() => Some(0..0),
            BinaryOp::Less => Some(at_most(size, 0.0, number.ceil() - 1.0)),
            BinaryOp::LessOrEqual => Some(at_most(size, 0.0, number.floor())),
            BinaryOp::Greater => Some(at_most(size, number.floor(), endless)),
            BinaryOp::GreaterOrEqual => Some(at_most(size, number.ceil() - 1.0, endless)),
            _ if number.fract() == 0.0 => Some(at_most(size, number - 1.0, number)),
            _ => Some(0..0),
        })
    }

    /// Whether a predicate holds for a node at its position.
    pub fn holds(&self, predicate: &'a Predicate, at: Frame) -> Result<bool, Fault> {
        spend(1)?;
        Ok(match predicate {
            Predicate::Position(n) => at.position == *n,
            Predicate::Last => at.position == at.size,
            Predicate::Never => false,
            Predicate::Number(op) => self.number(op, at)? == at.position as f64,
            Predicate::Boolean(op) => self.condition(op, at)?,
            Predicate::Any(op) => match self.value(op, at)? {
                Value::Number(n) => n == at.position as f64,
                Value::Atomic(a) if a.is_numeric() => a.to_double() == at.position as f64,
                other => self.truth_of(&other, Span::default())?,
            },
        })
    }

    /// Runs the steps of a path, removing duplicates where the analysis asks for it.
    fn run(&self, p: &'a Path, starts: &[Node], f: Each<'_>) -> Walk {
        let is_single = starts.len() == 1;
        let mut steps = &*p.steps;
        let mut held: Vec<Node> = Vec::new();
        let mut nodes = starts;
        let breaks = |s: &Step| if is_single { s.break_one } else { s.break_many };
        let overlaps = |s: &Step| if is_single { s.overlaps_one } else { s.overlaps_many };
        while let Some(stop) = steps.iter().position(|s| breaks(s) || overlaps(s)) {
            let overlap = overlaps(&steps[stop]);
            // All nodes that an overlapping step starts from are found before it.
            let (now, rest) = steps.split_at(if overlap { stop } else { stop + 1 });
            if !now.is_empty() || !overlap {
                let mut next = Vec::new();
                for n in nodes {
                    self.steps(now, *n, &mut |n| {
                        next.push(n);
                        Ok(true)
                    })?;
                }
                self.sort(&mut next)?;
                held = next;
                nodes = &held;
            }
            steps = rest;
            if !overlap {
                continue;
            }
            let (step, rest) = (&steps[..1], &steps[1..]);
            let starts = self.without_overlap(&step[0], nodes)?;
            if let Some(starts) = starts.as_deref().filter(|_| rest.is_empty()) {
                for n in starts {
                    if !self.steps(step, *n, f)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            let mut next = Vec::new();
            for n in starts.as_deref().unwrap_or(nodes) {
                self.steps(step, *n, &mut |n| {
                    next.push(n);
                    Ok(true)
                })?;
            }
            self.sort(&mut next)?;
            held = next;
            nodes = &held;
            steps = rest;
        }
        for n in nodes {
            if !self.steps(steps, *n, f)? {
                return Ok(false);
            }
        }
        drop(held);
        Ok(true)
    }

    /// Of the nodes that a step starts from, in document order, those from which it reaches each result once.
    /// `None`: all of them.
    fn without_overlap(&self, step: &Step, nodes: &[Node]) -> Result<Option<Vec<Node>>, Fault> {
        let Some(first) = nodes.first() else { return Ok(None) };
        let doc = self.doc(first.doc)?;
        let plain =
            |n: &Node| n.doc == first.doc && !n.is_namespace() && doc.kind(n.id) != xml::NodeKind::Attribute;
        spend(nodes.len() >> 2)?;
        if !nodes.iter().all(plain) {
            return Ok(None);
        }
        let is_in = |n: Node, outer: Node| {
            if doc.is_dense() {
                return outer.id < n.id && n.id < doc.subtree_end(outer.id);
            }
            let mut at = doc.parent(n.id);
            while let Some(above) = at {
                if above == outer.id {
                    return true;
                }
                at = doc.parent(above);
            }
            false
        };
        let mut kept: Vec<Node> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        match step.axis {
            Axis::FollowingSibling => kept.extend(nodes.iter().filter(|n| seen.insert(doc.parent(n.id)))),
            Axis::PrecedingSibling => {
                kept.extend(nodes.iter().rev().filter(|n| seen.insert(doc.parent(n.id))));
                kept.reverse();
            }
            Axis::Following => {
                // The one that ends first.
                let mut least = *first;
                for n in &nodes[1..] {
                    if !is_in(*n, least) {
                        break;
                    }
                    least = *n;
                }
                kept.push(least);
            }
            Axis::Preceding => kept.extend(nodes.last()),
            _ => {
                for n in nodes {
                    if kept.last().is_none_or(|last| !is_in(*n, *last)) {
                        kept.push(*n);
                    }
                }
            }
        }
        Ok(Some(kept))
    }

    /// Document order across documents; a namespace node comes after its element, before the attributes.
    pub fn order(&self, a: Node, b: Node) -> Result<Ordering, Fault> {
        if a.doc != b.doc {
            return Ok(a.doc.cmp(&b.doc));
        }
        if a.id == b.id {
            return Ok(a.namespace.cmp(&b.namespace));
        }
        Ok(self.doc(a.doc)?.compare_order(a.id, b.id))
    }

    /// Sorts into document order and removes duplicates.
    pub fn sort(&self, nodes: &mut Vec<Node>) -> Result<(), Fault> {
        let Some(first) = nodes.first() else { return Ok(()) };
        spend(nodes.len() >> 3)?;
        // Nearly always: one document whose ids are its order.
        let id = first.doc;
        if nodes.iter().all(|node| node.doc == id) && self.doc(id)?.is_ordered() {
            let key = |node: &Node| (node.id, node.namespace);
            if !nodes.windows(2).all(|pair| key(&pair[0]) < key(&pair[1])) {
                nodes.sort_unstable_by_key(key);
                nodes.dedup();
            }
            return Ok(());
        }
        let mut ascending = true;
        for pair in nodes.windows(2) {
            if self.order(pair[0], pair[1])? != Ordering::Less {
                ascending = false;
                break;
            }
        }
        if ascending {
            return Ok(());
        }
        // Every document exists: the nodes were just compared or walked in it.
        nodes.sort_by(|a, b| self.order(*a, *b).unwrap_or(Ordering::Equal));
        nodes.dedup();
        Ok(())
    }
}

impl Path {
    /// Whether it is `.`, and the context item is a node.
    #[inline]
    pub(super) fn is_context(&self, at: Frame) -> bool {
        self.dot && at.node.doc != DocId::ATOMIC
    }

    /// What is known about the nodes before the path runs. Paths that start from an expression are taken as starting
    /// from several nodes.
    fn shape<'a>(&'a self, _: &Eval<'a>, _: Frame) -> Result<Shape, Fault> {
        Ok(match self.start {
            From::Op(_) => {
                // `each_in_path` may run with the better shape of one node; what holds for many holds for one as well
                // only if both say so.
                Shape {
                    single: self.from_one.single && self.from_many.single,
                    ordered: self.from_one.ordered && self.from_many.ordered,
                    distinct: self.from_one.distinct && self.from_many.distinct,
                    peers: self.from_one.peers && self.from_many.peers,
                }
            }
            _ => self.from_one,
        })
    }
}

/// Indexes of a list of so many, from bounds that are whole numbers or infinite.
fn at_most(size: usize, from: f64, to: f64) -> Range<usize> {
    let to = (to.max(0.0) as usize).min(size);
    (from.max(0.0) as usize).min(to)..to
}

/// Whether an operation does not look at the context.
fn is_free(op: &Op) -> bool {
    match op {
        Op::Number(_) | Op::Text(_) | Op::Variable(..) => true,
        Op::Arithmetic(_, both) => is_free(&both.0) && is_free(&both.1),
        Op::Negate(a) => is_free(a),
        Op::Sequence(s) => match &s.kind {
            Seq::Literal(_) | Seq::Local(_) => true,
            Seq::Arithmetic(_, a, b) => is_free(a) && is_free(b),
            Seq::Once(_, a) | Seq::Sign(_, a) | Seq::Cast(a, ..) | Seq::CastName(a, ..) | Seq::Count(a) => {
                is_free(a)
            }
            _ => false,
        },
        _ => false,
    }
}

/// Makes room for one more node: at once for as many as most lists have.
#[inline]
pub(super) fn reserve(nodes: &mut Vec<Node>) {
    if nodes.capacity() == 0 {
        nodes.reserve(16);
    }
}

/// A value in place of a node-set.
#[cold]
fn no_nodes(value: &Value, span: Span) -> Fault {
    let found = match value {
        Value::Sequence(_) => "sequence with atomic values",
        other => other.type_of().name(),
    };
    fault(format!("a node-set is needed here, this is a {found}"), span)
}

/// Gives an error a place if it has none yet.
fn placed(mut e: Fault, span: Span) -> Fault {
    if e.span == (0..0) {
        e.span = span.range();
    }
    e
}
