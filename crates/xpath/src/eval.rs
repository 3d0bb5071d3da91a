//! Evaluation on a tree.
//!
//! Each operation can be asked for what its user needs (a boolean, a number, a string, the nodes one by one), so that
//! node-sets are built only where they are the result. Paths run depth-first and push nodes to a callback; a callback
//! that returns `false` stops everything upstream.

use crate::ast::{Axis, BinaryOp};
use crate::compile::{Program, arithmetic};
use crate::context::Context;
use crate::error::{Span, XPathError};
use crate::functions;
use crate::number;
use crate::plan::{Core, From, Op, Path, Predicate, Shape, Test};
use crate::sequence::State;
use crate::value::{DocId, Item, Node, NodeSet, Type, Value};
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;
use xml::{Document, NameId, NodeId, NodeKind};

/// `Ok(true)`: go on; `Ok(false)`: enough.
pub(crate) type Walk = Result<bool, Fault>;
/// Boxed so that the hot results stay in registers.
pub(crate) type Fault = Box<XPathError>;
pub(crate) type Each<'f> = &'f mut dyn FnMut(Node) -> Walk;

pub(crate) fn fault(message: impl Into<String>, span: Span) -> Fault {
    Box::new(XPathError::new(message, span))
}

/// The context of one operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub node: Node,
    pub position: usize,
    pub size: usize,
}

/// How many names are kept resolved during an evaluation; further ones are looked up each time.
const CACHED_NAMES: usize = 16;

#[derive(Clone, Copy)]
enum Resolved {
    NotYet,
    Absent,
    Name(NameId),
}

/// One evaluation.
pub(crate) struct Eval<'a> {
    pub program: &'a Program,
    pub cx: &'a Context<'a>,
    names: [Cell<Resolved>; CACHED_NAMES],
    /// Made when something of XPath 2.0 asks for it.
    pub later: OnceCell<Box<State>>,
}

impl<'a> Eval<'a> {
    pub fn new(program: &'a Program, cx: &'a Context<'a>) -> Eval<'a> {
        Eval {
            program,
            cx,
            names: [const { Cell::new(Resolved::NotYet) }; CACHED_NAMES],
            later: OnceCell::new(),
        }
    }

    pub fn frame(&self) -> Frame {
        let node = match self.cx.item {
            None => self.cx.node,
            Some(atom) => self.keep_atom(atom.clone()),
        };
        Frame { node, position: self.cx.position, size: self.cx.size }
    }

    /// The document a node belongs to.
    pub fn doc(&self, id: DocId) -> Result<&'a Document, Fault> {
        if id == self.cx.node.doc && id != DocId::ATOMIC {
            return Ok(self.cx.doc);
        }
        match self.cx.host.document(id) {
            Some(doc) => Ok(doc),
            None if id == DocId::ATOMIC => Err(self.no_context_node()),
            None => Err(fault("a node belongs to a document that is not there any more", Span::default())),
        }
    }

    /// The root of the tree a node belongs to.
    fn root(&self, n: Node) -> Result<NodeId, Fault> {
        if n.id == Document::ROOT && n.doc != DocId::ATOMIC {
            return Ok(n.id);
        }
        Ok(self.doc(n.doc)?.root_of(n.id))
    }

    /// The number of name `index` in the document of a node; `None`: no node there has that name.
    pub fn name(&self, index: u32, doc_id: DocId, doc: &Document) -> Option<NameId> {
        let (uri, local, pooled) = &self.program.names[index as usize];
        if doc_id != self.cx.node.doc {
            return doc.find_name(uri, local);
        }
        if let (Some(bound), Some(number)) = (self.cx.names, pooled)
            && let Some(id) = bound.ids.get(*number as usize)
        {
            return *id;
        }
        let Some(cell) = self.names.get(index as usize) else {
            return doc.find_name(uri, local);
        };
        match cell.get() {
            Resolved::Name(id) => Some(id),
            Resolved::Absent => None,
            Resolved::NotYet => {
                let id = doc.find_name(uri, local);
                cell.set(id.map_or(Resolved::Absent, Resolved::Name));
                id
            }
        }
    }

    // ---- values ----

    pub fn value(&self, op: &'a Op, at: Frame) -> Result<Value, Fault> {
        Ok(match op {
            Op::Text(s) => Value::String(s.clone()),
            Op::Sequence(s) => self.sequence(s, at)?,
            Op::Variable(index, _, span) => self.variable(*index, *span)?,
            Op::Extension(index, args, _, span) => self.extension(*index, args, *span, at)?,
            Op::Path(p) if self.may_filter_value(p) => match self.filtered_value(p, at)? {
                Some(value) => value,
                None => Value::NodeSet(NodeSet::from_ordered(&self.nodes(op, at)?)),
            },
            _ => match op.ty() {
                Type::Boolean => Value::Boolean(self.boolean(op, at)?),
                Type::Number => Value::Number(self.number(op, at)?),
                Type::String => Value::String(self.string(op, at)?.into()),
                Type::NodeSet | Type::Any => Value::NodeSet(NodeSet::from_ordered(&self.nodes(op, at)?)),
            },
        })
    }

    /// The value of a variable that is in the context's list.
    #[inline]
    fn local(&self, index: u32) -> Option<&'a Value> {
        self.cx.locals.get(self.program.variables[index as usize].name.slot as usize)
    }

    fn variable(&self, index: u32, span: Span) -> Result<Value, Fault> {
        if let Some(value) = self.local(index) {
            return Ok(value.clone());
        }
        let name = &self.program.variables[index as usize].name;
        match self.cx.host.variable_by_name(name) {
            Ok(Some(v)) => Ok(v),
            Ok(None) => Err(fault(format!("the variable `${}` has no value", qname(name)), span)),
            Err(message) => Err(fault(message, span)),
        }
    }

    fn extension(&self, index: u32, args: &'a [Op], span: Span, at: Frame) -> Result<Value, Fault> {
        let name = &self.program.functions[index as usize];
        let args = args.iter().map(|a| self.value(a, at)).collect::<Result<Vec<_>, _>>()?;
        let atom = self.context_atom(at.node);
        let cx = Context {
            doc: if at.node.doc == DocId::ATOMIC { self.cx.doc } else { self.doc(at.node.doc)? },
            node: at.node,
            item: atom.as_ref(),
            position: at.position,
            size: at.size,
            ..*self.cx
        };
        match self.cx.host.call_by_name(name, &args, &cx) {
            Ok(Some(v)) => Ok(v),
            Ok(None) => Err(fault(format!("there is no function `{}()`", qname(name)), span)),
            Err(message) => Err(fault(message, span)),
        }
    }

    pub fn boolean(&self, op: &'a Op, at: Frame) -> Result<bool, Fault> {
        Ok(match op {
            Op::Or(items) => {
                for item in items {
                    if self.boolean(item, at)? {
                        return Ok(true);
                    }
                }
                false
            }
            Op::And(items) => {
                for item in items {
                    if !self.boolean(item, at)? {
                        return Ok(false);
                    }
                }
                true
            }
            Op::Compare(op, both) => self.compare(*op, &both.0, &both.1, at)?,
            Op::Number(n) => truth(*n),
            Op::Text(s) => !s.is_empty(),
            Op::Union(_) | Op::Path(_) | Op::Current(_) => {
                let mut found = false;
                self.each(op, at, &mut |_| {
                    found = true;
                    Ok(false)
                })?;
                found
            }
            Op::Call(core, args, _) => match core {
                Core::True => true,
                Core::False => false,
                Core::Not => !self.boolean(&args[0], at)?,
                Core::Boolean => self.boolean(&args[0], at)?,
                Core::StartsWith => self.string(&args[0], at)?.starts_with(&*self.string(&args[1], at)?),
                Core::Contains => {
                    functions::contains(&self.string(&args[0], at)?, &self.string(&args[1], at)?)
                }
                Core::Lang => functions::lang(self.doc(at.node.doc)?, at.node, &self.string(&args[0], at)?),
                _ => match core.returns() {
                    Type::Number => truth(self.number(op, at)?),
                    Type::String => !self.string(op, at)?.is_empty(),
                    _ => !self.nodes(op, at)?.is_empty(),
                },
            },
            Op::Arithmetic(..) | Op::Negate(_) => truth(self.number(op, at)?),
            Op::Variable(index, _, span) if let Some(value) = self.local(*index) => {
                self.truth_of(value, *span)?
            }
            Op::Variable(_, _, span) | Op::Extension(_, _, _, span) => {
                self.truth_of(&self.value(op, at)?, *span)?
            }
            Op::Sequence(s) => self.sequence_boolean(s, at)?,
        })
    }

    pub fn number(&self, op: &'a Op, at: Frame) -> Result<f64, Fault> {
        Ok(match op {
            Op::Number(n) => *n,
            Op::Arithmetic(op, both) => {
                let a = self.number(&both.0, at)?;
                arithmetic(*op, a, self.number(&both.1, at)?)
            }
            Op::Negate(a) => -self.number(a, at)?,
            Op::Call(core, args, span) => match core {
                Core::Position => at.position as f64,
                Core::Last => at.size as f64,
                Core::Count => self.count(&args[0], at, *span)? as f64,
                Core::Sum => {
                    let mut sum = 0.0;
                    self.each_distinct(&args[0], at, *span, &mut |n| {
                        sum += number::parse(&self.node_string(n)?);
                        Ok(true)
                    })?;
                    sum
                }
                Core::StringLength => functions::length(&self.argument_or_context(args, at)?) as f64,
                Core::Number => match args.first() {
                    Some(a) => self.number(a, at)?,
                    None => number::parse(&self.node_string(at.node)?),
                },
                Core::Floor => self.number(&args[0], at)?.floor(),
                Core::Ceiling => self.number(&args[0], at)?.ceil(),
                Core::Round => number::round(self.number(&args[0], at)?),
                _ => match core.returns() {
                    Type::Boolean => f64::from(u8::from(self.boolean(op, at)?)),
                    _ => number::parse(&self.string(op, at)?),
                },
            },
            Op::Or(_) | Op::And(_) | Op::Compare(..) => f64::from(u8::from(self.boolean(op, at)?)),
            Op::Variable(index, ..) if let Some(value) = self.local(*index) => self.value_number(value)?,
            Op::Variable(..) | Op::Extension(..) | Op::Sequence(_) => {
                self.value_number(&self.value(op, at)?)?
            }
            Op::Text(_) | Op::Union(_) | Op::Path(_) | Op::Current(_) => number::parse(&self.string(op, at)?),
        })
    }

    pub fn string(&self, op: &'a Op, at: Frame) -> Result<Cow<'a, str>, Fault> {
        Ok(match op {
            Op::Text(s) => Cow::Borrowed(s),
            Op::Union(_) | Op::Path(_) | Op::Current(_) | Op::Call(Core::Id, ..) => {
                if let Op::Path(p) = op
                    && self.may_filter_value(p)
                    && let Some(value) = self.filtered_value(p, at)?
                {
                    return Ok(Cow::Owned(self.value_string(&value)?.into_owned()));
                }
                match self.first(op, at)? {
                    Some(n) => self.node_string(n)?,
                    None => Cow::Borrowed(""),
                }
            }
            Op::Call(core, args, _) => match core {
                Core::LocalName | Core::NamespaceUri | Core::Name => {
                    let node = match args.first() {
                        Some(a) => self.first(a, at)?,
                        None => Some(at.node),
                    };
                    match node {
                        Some(n) => functions::node_name(*core, self.doc(n.doc)?, n),
                        None => Cow::Borrowed(""),
                    }
                }
                Core::String => self.argument_or_context(args, at)?,
                Core::Concat => {
                    // Room for what most are made of; growing costs more than that.
                    let mut out = String::with_capacity(64);
                    for a in args {
                        out.push_str(&self.string(a, at)?);
                    }
                    Cow::Owned(out)
                }
                Core::SubstringBefore => {
                    functions::substring_before(self.string(&args[0], at)?, &self.string(&args[1], at)?)
                }
                Core::SubstringAfter => {
                    functions::substring_after(self.string(&args[0], at)?, &self.string(&args[1], at)?)
                }
                Core::Substring => {
                    let s = self.string(&args[0], at)?;
                    let from = self.number(&args[1], at)?;
                    let len = args.get(2).map(|a| self.number(a, at)).transpose()?;
                    functions::substring(s, from, len)
                }
                Core::NormalizeSpace => functions::normalize_space(self.argument_or_context(args, at)?),
                Core::Translate => {
                    let s = self.string(&args[0], at)?;
                    functions::translate(s, &self.string(&args[1], at)?, &self.string(&args[2], at)?)
                }
                _ => match core.returns() {
                    Type::Boolean => boolean_text(self.boolean(op, at)?),
                    _ => number::format(self.number(op, at)?),
                },
            },
            Op::Number(_) | Op::Arithmetic(..) | Op::Negate(_) => number::format(self.number(op, at)?),
            Op::Or(_) | Op::And(_) | Op::Compare(..) => boolean_text(self.boolean(op, at)?),
            Op::Variable(index, ..) if let Some(value) = self.local(*index) => match value {
                Value::String(text) => Cow::Borrowed(text),
                value => self.value_string(value)?,
            },
            Op::Variable(..) | Op::Extension(..) | Op::Sequence(_) => {
                self.value_string(&self.value(op, at)?)?
            }
        })
    }

    fn argument_or_context(&self, args: &'a [Op], at: Frame) -> Result<Cow<'a, str>, Fault> {
        match args.first() {
            Some(a) => self.string(a, at),
            None => self.node_string(at.node),
        }
    }

    pub fn value_number(&self, v: &Value) -> Result<f64, Fault> {
        Ok(match v {
            Value::Number(n) => *n,
            Value::Boolean(b) => f64::from(u8::from(*b)),
            Value::String(s) => number::parse(s),
            Value::Empty | Value::NodeSet(_) => number::parse(&self.value_string(v)?),
            Value::Atomic(a) => a.to_double(),
            Value::Sequence(items) => match items.first() {
                Some(Item::Atomic(a)) => a.to_double(),
                Some(Item::Node(n)) => number::parse(&self.node_string(*n)?),
                None => f64::NAN,
            },
        })
    }

    pub fn value_string(&self, v: &Value) -> Result<Cow<'a, str>, Fault> {
        Ok(match v {
            Value::Empty => Cow::Borrowed(""),
            Value::NodeSet(n) => match n.first() {
                Some(n) => self.node_string(n)?,
                None => Cow::Borrowed(""),
            },
            Value::Boolean(b) => boolean_text(*b),
            Value::Number(n) => number::format(*n),
            Value::String(s) => Cow::Owned(s.to_string()),
            Value::Atomic(a) => Cow::Owned(a.to_text().into_owned()),
            Value::Sequence(items) => match items.first() {
                Some(Item::Atomic(a)) => Cow::Owned(a.to_text().into_owned()),
                Some(Item::Node(n)) => self.node_string(*n)?,
                None => Cow::Borrowed(""),
            },
        })
    }

    /// The string-value of a node (section 5).
    pub fn node_string(&self, n: Node) -> Result<Cow<'a, str>, Fault> {
        Ok(node_string(self.doc(n.doc)?, n))
    }

    // ---- nodes ----

    /// The nodes in document order, without duplicates.
    pub fn nodes(&self, op: &'a Op, at: Frame) -> Result<Vec<Node>, Fault> {
        let mut out = Vec::new();
        let mut sorted = false;
        match op {
            Op::Path(p) => {
                let shape = self.each_in_path(p, at, &mut |n| {
                    out.push(n);
                    Ok(true)
                })?;
                sorted = shape.ordered && shape.distinct;
            }
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
        self.each_distinct(op, at, span, &mut |_| {
            count += 1;
            Ok(true)
        })?;
        Ok(count)
    }

    /// Each node once, in any order.
    fn each_distinct(&self, op: &'a Op, at: Frame, span: Span, f: Each<'_>) -> Walk {
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
    fn node_value(&self, op: &'a Op, at: Frame) -> Result<NodeSet, Fault> {
        match self.value(op, at)? {
            Value::NodeSet(n) => Ok(n),
            value => {
                let span = match op {
                    Op::Variable(_, _, s) | Op::Extension(_, _, _, s) => *s,
                    Op::Sequence(s) => s.span,
                    _ => Span::default(),
                };
                self.only_nodes(&value, span).map_err(|mut e| {
                    // XPath 1.0 has no codes.
                    if matches!(op, Op::Sequence(_)) {
                        e.code = "XPTY0004".into();
                    }
                    e
                })
            }
        }
    }

    /// A value as nodes in document order.
    #[cold]
    fn only_nodes(&self, value: &Value, span: Span) -> Result<NodeSet, Fault> {
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

    /// Runs a path and tells what is known about the order in which the nodes came.
    fn each_in_path(&self, p: &'a Path, at: Frame, f: Each<'_>) -> Result<Shape, Fault> {
        let one = match &p.start {
            From::Root => at.node.at(self.root(at.node)?),
            From::Context => at.node,
            From::Op(op) => {
                let starts = self.starts(p, op, at)?;
                return match starts.as_slice() {
                    [] => Ok(Shape::ONE),
                    [one] => self.run(p, &[*one], f).map(|_| p.from_one),
                    many => self.run(p, many, f).map(|_| p.from_many),
                };
            }
        };
        self.run(p, &[one], f)?;
        Ok(p.from_one)
    }

    /// Whether a path is no more than positions of what may be a single value ([`Host::paths_from_values`]).
    ///
    /// [`Host::paths_from_values`]: crate::Host::paths_from_values
    fn may_filter_value(&self, p: &Path) -> bool {
        let positions = p
            .filter
            .iter()
            .all(|own| matches!(own, Predicate::Position(_) | Predicate::Last | Predicate::Never));
        p.steps.is_empty()
            && positions
            && matches!(p.start, From::Op(Op::Variable(..) | Op::Extension(..)))
            && self.cx.host.paths_from_values()
    }

    /// The value that such a path starts from, if it is one that the positions keep; `None`: it starts from nodes,
    /// or nothing is left.
    fn filtered_value(&self, p: &'a Path, at: Frame) -> Result<Option<Value>, Fault> {
        let From::Op(op) = &p.start else { return Ok(None) };
        let kept = p.filter.iter().all(|own| matches!(own, Predicate::Position(1) | Predicate::Last));
        let value = self.value(op, at)?;
        Ok(Some(value).filter(|value| kept && !matches!(value, Value::NodeSet(_) | Value::Empty)))
    }

    /// The filtered start nodes of a path.
    fn starts(&self, p: &'a Path, op: &'a Op, at: Frame) -> Result<NodeSet, Fault> {
        // Where values are like nodes without children, no step leads anywhere from them.
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
            Op::Variable(..) | Op::Extension(..) => self.node_value(op, at)?,
            Op::Sequence(s) => match self.sequence(s, at)? {
                Value::NodeSet(nodes) => nodes,
                other => self.only_nodes(&other, s.span).map_err(|mut e| {
                    e.code = "XPTY0019".into();
                    e
                })?,
            },
            _ => NodeSet::from_ordered(&self.nodes(op, at)?),
        };
        self.kept_starts(set, p)
    }

    /// The start nodes that the predicates of a path keep.
    fn kept_starts(&self, mut set: NodeSet, p: &'a Path) -> Result<NodeSet, Fault> {
        for predicate in &p.filter {
            let kept = self.filter(set.as_slice(), predicate)?;
            set = NodeSet::from_ordered(&kept);
        }
        Ok(set)
    }

    /// The nodes of a list that a predicate keeps, positions counted along the list.
    pub fn filter(&self, list: &[Node], predicate: &'a Predicate) -> Result<Vec<Node>, Fault> {
        match predicate {
            Predicate::Position(n) => return Ok(list.get(n - 1).copied().into_iter().collect()),
            Predicate::Last => return Ok(list.last().copied().into_iter().collect()),
            _ => {}
        }
        let mut kept = Vec::new();
        for (i, node) in list.iter().enumerate() {
            let at = Frame { node: *node, position: i + 1, size: list.len() };
            if self.holds(predicate, at)? {
                kept.push(*node);
            }
        }
        Ok(kept)
    }

    /// Does a predicate hold for a node at its position?
    pub fn holds(&self, predicate: &'a Predicate, at: Frame) -> Result<bool, Fault> {
        Ok(match predicate {
            Predicate::Position(n) => at.position == *n,
            Predicate::Last => at.position == at.size,
            Predicate::Never => false,
            Predicate::Number(op) => self.number(op, at)? == at.position as f64,
            Predicate::Boolean(op) => self.boolean(op, at)?,
            Predicate::Any(op) => match self.value(op, at)? {
                Value::Number(n) => n == at.position as f64,
                Value::Atomic(a) if a.is_numeric() => a.to_double() == at.position as f64,
                other => self.truth_of(&other, Span::default())?,
            },
        })
    }

    /// Runs the steps of a path, removing duplicates where the analysis asks for it.
    fn run(&self, p: &'a Path, starts: &[Node], f: Each<'_>) -> Walk {
        let one = starts.len() == 1;
        let mut steps = &*p.steps;
        let mut held: Vec<Node> = Vec::new();
        let mut nodes = starts;
        while let Some(stop) = steps.iter().position(|s| if one { s.break_one } else { s.break_many }) {
            let (now, rest) = steps.split_at(stop + 1);
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

    /// Document order across documents; a namespace node stands behind its element, before the attributes.
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
        // Every document is there: the nodes were just compared or walked in it.
        nodes.sort_by(|a, b| self.order(*a, *b).unwrap_or(Ordering::Equal));
        nodes.dedup();
        Ok(())
    }

    // ---- comparisons (section 3.4) ----

    fn compare(&self, op: BinaryOp, a: &'a Op, b: &'a Op, at: Frame) -> Result<bool, Fault> {
        let (ta, tb) = (a.ty(), b.ty());
        match (ta, tb) {
            (Type::Any, Type::NodeSet) | (Type::NodeSet, Type::Any) | (Type::Any, _) | (_, Type::Any) => {}
            (Type::NodeSet, Type::NodeSet) => {
                let right = self.strings(op, b, at)?;
                return self.compare_nodes(op, a, &right, at);
            }
            (Type::NodeSet, _) => {
                let scalar = self.scalar(b, at)?;
                return self.compare_nodes_scalar(op, a, &scalar, at);
            }
            (_, Type::NodeSet) => {
                let scalar = self.scalar(a, at)?;
                return self.compare_nodes_scalar(op.mirrored(), b, &scalar, at);
            }
            _ => {
                let left = self.scalar(a, at)?;
                return Ok(compare_scalars(op, &left, &self.scalar(b, at)?));
            }
        }
        // At least one side is known only now. Most often both are numbers.
        if matches!(ta, Type::Any | Type::Number) && matches!(tb, Type::Any | Type::Number) {
            if let (Some(left), Some(right)) = (self.known_number(a), self.known_number(b)) {
                return Ok(relation(op, left, right));
            }
            let (left, right) = (self.value(a, at)?, self.value(b, at)?);
            if let (Value::Number(left), Value::Number(right)) = (&left, &right) {
                return Ok(relation(op, *left, *right));
            }
            return self.compare_operands(op, self.operand_of(left)?, self.operand_of(right)?);
        }
        self.compare_operands(op, self.operand(a, at)?, self.operand(b, at)?)
    }

    /// The number that an operation is without doing anything.
    #[inline]
    fn known_number(&self, op: &'a Op) -> Option<f64> {
        match op {
            Op::Number(number) => Some(*number),
            Op::Variable(index, ..) => match self.local(*index) {
                Some(Value::Number(number)) => Some(*number),
                _ => None,
            },
            _ => None,
        }
    }

    fn compare_operands(&self, op: BinaryOp, left: Operand<'a>, right: Operand<'a>) -> Result<bool, Fault> {
        match (left, right) {
            (Operand::Scalar(l), Operand::Scalar(r)) => Ok(compare_scalars(op, &l, &r)),
            (Operand::Nodes(l), Operand::Scalar(r)) => self.list_scalar(op, &l, &r),
            (Operand::Scalar(l), Operand::Nodes(r)) => self.list_scalar(op.mirrored(), &r, &l),
            (Operand::Nodes(l), Operand::Nodes(r)) => {
                let strings = Strings::new(op, r);
                for s in &l {
                    if strings.any(op, s) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    fn list_scalar(&self, op: BinaryOp, list: &[Cow<'a, str>], scalar: &Scalar<'a>) -> Result<bool, Fault> {
        if let Scalar::Boolean(_) = scalar {
            return Ok(compare_scalars(op, &Scalar::Boolean(!list.is_empty()), scalar));
        }
        Ok(list.iter().any(|s| compare_string_scalar(op, s, scalar)))
    }

    fn operand(&self, op: &'a Op, at: Frame) -> Result<Operand<'a>, Fault> {
        if op.ty() == Type::NodeSet {
            return Ok(Operand::Nodes(self.string_values(op, at)?));
        }
        if op.ty() != Type::Any {
            return Ok(Operand::Scalar(self.scalar(op, at)?));
        }
        if let Op::Variable(index, ..) = op
            && let Some(Value::String(text)) = self.local(*index)
        {
            return Ok(Operand::Scalar(Scalar::String(Cow::Borrowed(text))));
        }
        self.operand_of(self.value(op, at)?)
    }

    fn operand_of(&self, value: Value) -> Result<Operand<'a>, Fault> {
        Ok(match value {
            Value::Boolean(b) => Operand::Scalar(Scalar::Boolean(b)),
            Value::Number(n) => Operand::Scalar(Scalar::Number(n)),
            Value::String(s) => Operand::Scalar(Scalar::String(Cow::Owned(s.to_string()))),
            Value::Empty => Operand::Nodes(Vec::new()),
            Value::Atomic(a) if a.is_numeric() => Operand::Scalar(Scalar::Number(a.to_double())),
            Value::Atomic(a) => Operand::Scalar(Scalar::String(Cow::Owned(a.to_text().into_owned()))),
            Value::Sequence(items) => Operand::Nodes(
                items
                    .iter()
                    .map(|item| match item {
                        Item::Node(n) => self.node_string(*n),
                        Item::Atomic(a) => Ok(Cow::Owned(a.to_text().into_owned())),
                    })
                    .collect::<Result<Vec<_>, _>>()?,
            ),
            Value::NodeSet(set) => {
                Operand::Nodes(set.iter().map(|n| self.node_string(n)).collect::<Result<Vec<_>, _>>()?)
            }
        })
    }

    fn scalar(&self, op: &'a Op, at: Frame) -> Result<Scalar<'a>, Fault> {
        Ok(match op.ty() {
            Type::Boolean => Scalar::Boolean(self.boolean(op, at)?),
            Type::Number => Scalar::Number(self.number(op, at)?),
            _ => Scalar::String(self.string(op, at)?),
        })
    }

    /// The string-values of an operand that is to be compared by `op`.
    fn strings(&self, op: BinaryOp, operand: &'a Op, at: Frame) -> Result<Strings<'a>, Fault> {
        Ok(Strings::new(op, self.string_values(operand, at)?))
    }

    fn string_values(&self, operand: &'a Op, at: Frame) -> Result<Vec<Cow<'a, str>>, Fault> {
        let mut list = Vec::new();
        self.each(operand, at, &mut |n| {
            list.push(self.node_string(n)?);
            Ok(true)
        })?;
        Ok(list)
    }

    fn compare_nodes(&self, op: BinaryOp, a: &'a Op, right: &Strings<'a>, at: Frame) -> Result<bool, Fault> {
        if right.list.is_empty() {
            return Ok(false);
        }
        let mut found = false;
        self.each(a, at, &mut |n| {
            found = right.any(op, &self.node_string(n)?);
            Ok(!found)
        })?;
        Ok(found)
    }

    fn compare_nodes_scalar(
        &self,
        op: BinaryOp,
        a: &'a Op,
        scalar: &Scalar<'a>,
        at: Frame,
    ) -> Result<bool, Fault> {
        if let Scalar::Boolean(_) = scalar {
            return Ok(compare_scalars(op, &Scalar::Boolean(self.boolean(a, at)?), scalar));
        }
        let mut found = false;
        self.each(a, at, &mut |n| {
            found = compare_string_scalar(op, &self.node_string(n)?, scalar);
            Ok(!found)
        })?;
        Ok(found)
    }
}

impl Path {
    /// Whether it is `.`, and that a node.
    #[inline]
    fn is_context(&self, at: Frame) -> bool {
        matches!(self.start, From::Context)
            && matches!(&*self.steps, [step] if step.axis == Axis::SelfAxis && step.test == Test::Node && step.predicates.is_empty())
            && self.filter.is_empty()
            && at.node.doc != DocId::ATOMIC
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

enum Operand<'a> {
    Scalar(Scalar<'a>),
    Nodes(Vec<Cow<'a, str>>),
}

/// A value that is not a node-set.
pub(crate) enum Scalar<'a> {
    Boolean(bool),
    Number(f64),
    String(Cow<'a, str>),
}

/// The string-values of a node-set, prepared for being compared with many others.
pub(crate) struct Strings<'a> {
    list: Vec<Cow<'a, str>>,
    /// For more than a few strings.
    index: Option<std::collections::HashSet<String>>,
    least: f64,
    greatest: f64,
}

impl<'a> Strings<'a> {
    fn new(op: BinaryOp, list: Vec<Cow<'a, str>>) -> Strings<'a> {
        let equality = matches!(op, BinaryOp::Equal | BinaryOp::NotEqual);
        let indexed = op == BinaryOp::Equal && list.len() > 8;
        let index = indexed.then(|| list.iter().map(|s| s.to_string()).collect());
        let (mut least, mut greatest) = (f64::NAN, f64::NAN);
        for s in list.iter().filter(|_| !equality) {
            let n = number::parse(s);
            // `min` and `max` ignore NaN.
            least = least.min(n);
            greatest = greatest.max(n);
        }
        Strings { list, index, least, greatest }
    }

    /// Is there a string `t` here with `s op t`?
    fn any(&self, op: BinaryOp, s: &str) -> bool {
        match op {
            BinaryOp::Equal => match &self.index {
                Some(index) => index.contains(s),
                None => self.list.iter().any(|t| t == s),
            },
            BinaryOp::NotEqual => self.list.iter().any(|t| t != s),
            BinaryOp::Less | BinaryOp::LessOrEqual => relation(op, number::parse(s), self.greatest),
            _ => relation(op, number::parse(s), self.least),
        }
    }
}

/// Comparison of two values that are not node-sets.
pub(crate) fn compare_scalars(op: BinaryOp, a: &Scalar<'_>, b: &Scalar<'_>) -> bool {
    if matches!(op, BinaryOp::Equal | BinaryOp::NotEqual) {
        let equal = match (a, b) {
            (Scalar::Boolean(_), _) | (_, Scalar::Boolean(_)) => a.boolean() == b.boolean(),
            (Scalar::String(a), Scalar::String(b)) => a == b,
            _ => a.number() == b.number(),
        };
        return equal == (op == BinaryOp::Equal);
    }
    relation(op, a.number(), b.number())
}

/// A node's string-value against a number or a string.
pub(crate) fn compare_string_scalar(op: BinaryOp, s: &str, scalar: &Scalar<'_>) -> bool {
    match (op, scalar) {
        (BinaryOp::Equal, Scalar::String(t)) => s == t,
        (BinaryOp::NotEqual, Scalar::String(t)) => s != t,
        _ => relation(op, number::parse(s), scalar.number()),
    }
}

/// The six comparisons on numbers.
pub(crate) fn relation(op: BinaryOp, a: f64, b: f64) -> bool {
    match op {
        BinaryOp::Equal => a == b,
        BinaryOp::NotEqual => a != b,
        BinaryOp::Less => a < b,
        BinaryOp::LessOrEqual => a <= b,
        BinaryOp::Greater => a > b,
        _ => a >= b,
    }
}

impl Scalar<'_> {
    pub fn boolean(&self) -> bool {
        match self {
            Scalar::Boolean(b) => *b,
            Scalar::Number(n) => truth(*n),
            Scalar::String(s) => !s.is_empty(),
        }
    }

    pub fn number(&self) -> f64 {
        match self {
            Scalar::Boolean(b) => f64::from(u8::from(*b)),
            Scalar::Number(n) => *n,
            Scalar::String(s) => number::parse(s),
        }
    }
}

/// The string-value of a node.
pub(crate) fn node_string(doc: &Document, n: Node) -> Cow<'_, str> {
    if n.is_namespace() {
        return Cow::Borrowed(namespace_at(doc, n).map_or("", |(_, uri)| uri));
    }
    match doc.kind(n.id) {
        NodeKind::Element | NodeKind::Document => doc.string_value(n.id),
        _ => Cow::Borrowed(doc.text(n.id)),
    }
}

/// Prefix and URI of a namespace node. The first one of every element is `xml`.
pub(crate) fn namespace_at(doc: &Document, n: Node) -> Option<(&str, &str)> {
    match n.namespace {
        0 => None,
        1 => Some(("xml", xml::XML_NS)),
        further => doc.in_scope_namespaces(n.id).get(further as usize - 2).copied(),
    }
}

pub(crate) fn truth(n: f64) -> bool {
    n != 0.0 && !n.is_nan()
}

pub(crate) fn boolean_text(b: bool) -> Cow<'static, str> {
    Cow::Borrowed(if b { "true" } else { "false" })
}

fn qname(name: &crate::context::ExtensionName) -> String {
    if name.prefix.is_empty() { name.local.to_string() } else { format!("{}:{}", name.prefix, name.local) }
}

/// A value that should have been nodes.
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
