//! Evaluation on a tree.
//!
//! Each operation has a form for each use (a boolean, a number, a string, the nodes one by one), so that
//! node-sets are built only where they are the result. Paths run depth-first and push nodes to a callback; a callback
//! that returns `false` stops everything upstream.

mod compare;
pub(crate) mod direct;
mod nodes;

pub(crate) use compare::{Scalar, compare_scalars, compare_string_scalar, compare_texts};

use crate::compile::Program;
use crate::context::Context;
use crate::error::{Span, XPathError};
use crate::functions;
use crate::number::{self, arithmetic};
use crate::plan::{Core, Op};
use crate::sequence::State;
use crate::sequence::plan::Seq;
use crate::sequence::single::Single;
use crate::value::{DocId, Item, Node, NodeSet, Type, Value};
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use xml::{Document, NameId, NodeId, NodeKind};

/// `Ok(true)`: continue; `Ok(false)`: stop.
pub(crate) type Walk = Result<bool, Fault>;
/// Boxed so that the hot results stay in registers.
pub(crate) type Fault = Box<XPathError>;
pub(crate) type Each<'f> = &'f mut dyn FnMut(Node) -> Walk;

pub(crate) fn fault(message: impl Into<String>, span: Span) -> Fault {
    Box::new(XPathError::new(message, span))
}

/// Counts work ([`meter::spend`]).
#[inline]
pub(crate) fn spend(units: usize) -> Result<(), Fault> {
    // (Mostly so many bytes or items that they are none.)
    if units == 0 {
        return Ok(());
    }
    meter::spend(units as u64).map_err(stopped)
}

/// The same for operations that copy or compare many bytes.
#[inline]
pub(crate) fn spend_bytes(bytes: usize) -> Result<(), Fault> {
    meter::spend_bytes(bytes).map_err(stopped)
}

#[cold]
fn stopped(stop: meter::Stop) -> Fault {
    fault(stop.to_string(), Span::default())
}

/// Checks the length of a string, and counts the work.
pub(crate) fn grown(bytes: usize, span: Span) -> Result<(), Fault> {
    meter::string_of(bytes).map_err(|why| too_long(why, span))?;
    spend_bytes(bytes)
}

/// A string would be too long: a limit, which nothing catches.
#[cold]
fn too_long(why: String, span: Span) -> Fault {
    let mut error = XPathError::new(why, span).with_code("XPDY0130");
    error.limit = true;
    Box::new(error)
}

/// As [`grown`], for the value of a function, which may be a string.
pub(crate) fn made(value: Value, span: Span) -> Result<Value, Fault> {
    if let Value::String(text) = &value {
        grown(text.len(), span)?;
    }
    Ok(value)
}

/// Adds a part to a string, as long as that is not too long.
pub(crate) fn push_part(out: &mut String, part: &str, span: Span) -> Result<(), Fault> {
    meter::string_of(out.len() + part.len()).map_err(|why| too_long(why, span))?;
    out.push_str(part);
    spend_bytes(part.len())
}

/// The context of one operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub node: Node,
    pub position: usize,
    pub size: usize,
}

/// A tree: its document and its root.
pub(crate) type Tree = (DocId, NodeId);

/// How many names stay resolved during an evaluation; further ones are looked up each time.
const CACHED_NAMES: usize = 16;

/// A resolved name, in few bytes: they are made anew for each evaluation.
#[derive(Clone, Copy)]
struct Resolved(u32);

impl Resolved {
    const NOT_YET: Resolved = Resolved(0);
    const ABSENT: Resolved = Resolved(1);

    fn of(id: Option<NameId>) -> Resolved {
        id.and_then(|id| u32::try_from(id.index() + 2).ok()).map_or(Resolved::ABSENT, Resolved)
    }

    fn name(self) -> Option<NameId> {
        NameId::from_index((self.0 as usize).checked_sub(2)?)
    }
}

/// One evaluation.
pub(crate) struct Eval<'a> {
    pub program: &'a Program,
    pub cx: &'a Context<'a>,
    names: [Cell<Resolved>; CACHED_NAMES],
    /// Made when XPath 2.0 needs it, or something is kept.
    pub version2: OnceCell<Box<State>>,
    /// How many nodes predicates of direct paths have looked at.
    looked: Cell<usize>,
    /// Operations on single values are evaluated in the general way.
    pub generally: Cell<bool>,
}

impl<'a> Eval<'a> {
    pub fn new(program: &'a Program, cx: &'a Context<'a>) -> Eval<'a> {
        Eval {
            program,
            cx,
            names: [const { Cell::new(Resolved::NOT_YET) }; CACHED_NAMES],
            version2: OnceCell::new(),
            looked: Cell::new(0),
            generally: Cell::new(false),
        }
    }

    /// Ends it. Mostly there is nothing to drop, and a search for it would cost as much as a simple evaluation.
    #[inline]
    pub fn end(self) {
        if self.version2.get().is_none() {
            std::mem::forget(self);
        }
    }

    /// The evaluation of a function's program within this one: with its own variables and the same time.
    pub fn nested<'b>(&self, program: &'b Program, cx: &'b Context<'b>) -> Eval<'b> {
        let eval = Eval::new(program, cx);
        let _ = eval.version2.set(Box::new(self.state().inner()));
        eval
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

    /// The tree of the context node. `None`: the context item is none.
    pub(crate) fn tree(&self, at: Frame) -> Result<Option<Tree>, Fault> {
        match at.node.as_atomic() {
            Some(_) => Ok(None),
            None => Ok(Some((at.node.doc, self.root(at.node)?))),
        }
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
        if cell.get().0 == Resolved::NOT_YET.0 {
            cell.set(Resolved::of(doc.find_name(uri, local)));
        }
        cell.get().name()
    }

    // ---- values ----

    pub fn value(&self, op: &'a Op, at: Frame) -> Result<Value, Fault> {
        Ok(match op {
            Op::Text(s) => Value::String(s.clone()),
            Op::Sequence(s) => self.sequence(s, at)?,
            Op::Variable(index, _, span) => self.variable(*index, *span)?,
            Op::Extension(index, args, _, span, _) => self.extension(*index, args, *span, at)?,
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

    /// See [`Expression::evaluate_to_call`](crate::Expression::evaluate_to_call).
    #[allow(clippy::type_complexity)]
    pub fn value_or_call(
        &self,
        mut op: &'a Op,
        at: Frame,
        slots: &std::ops::Range<u32>,
    ) -> Result<Result<Value, (u32, Vec<Value>)>, Fault> {
        loop {
            match op {
                Op::Sequence(s) if let Seq::If(test, yes, no) = &s.kind => {
                    op = if self.boolean(test, at)? { yes } else { no };
                }
                Op::Extension(index, args, ..) => {
                    let slot = self.program.functions[*index as usize].slot;
                    if !slots.contains(&slot) {
                        return self.value(op, at).map(Ok);
                    }
                    let args = args.iter().map(|a| self.value(a, at)).collect::<Result<Vec<_>, _>>()?;
                    return Ok(Err((slot, args)));
                }
                _ => return self.value(op, at).map(Ok),
            }
        }
    }

    /// The value of a variable that is in the context's list.
    #[inline]
    pub(crate) fn local(&self, index: u32) -> Option<&'a Value> {
        self.cx.locals.get(self.program.variables[index as usize].name.slot as usize)
    }

    pub(crate) fn variable(&self, index: u32, span: Span) -> Result<Value, Fault> {
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

    /// As [`Eval::boolean`], for a condition that is mostly a comparison.
    #[inline(always)]
    fn condition(&self, op: &'a Op, at: Frame) -> Result<bool, Fault> {
        match op {
            Op::Compare(op, both) => self.compare(*op, &both.0, &both.1, at),
            _ => self.boolean(op, at),
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
            Op::Path(p) if let Some((doc, node)) = self.direct(p, at)? => {
                !self.walk(doc, node.doc, &p.steps, node.id, &mut |_| Ok(false))?
            }
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
            Op::Variable(_, _, span) | Op::Extension(_, _, _, span, _) => {
                self.truth_of(&self.value(op, at)?, *span)?
            }
            Op::Sequence(s) => self.sequence_boolean(s, at)?,
        })
    }

    /// As [`Eval::number`], without a call where the number is at hand.
    #[inline(always)]
    fn number_at_hand(&self, op: &'a Op, at: Frame) -> Result<f64, Fault> {
        match op {
            Op::Number(n) => Ok(*n),
            Op::Call(Core::Position, ..) => Ok(at.position as f64),
            _ => self.number(op, at),
        }
    }

    pub fn number(&self, op: &'a Op, at: Frame) -> Result<f64, Fault> {
        Ok(match op {
            Op::Number(n) => *n,
            Op::Arithmetic(op, both) => {
                let a = self.number_at_hand(&both.0, at)?;
                arithmetic(*op, a, self.number_at_hand(&both.1, at)?)
            }
            Op::Negate(a) => -self.number(a, at)?,
            Op::Call(core, args, span) => match core {
                Core::Position => at.position as f64,
                Core::Last => at.size as f64,
                Core::Count => self.count(&args[0], at, *span)? as f64,
                Core::Sum => {
                    let mut sum = 0.0;
                    if let Op::Path(p) = &args[0]
                        && p.from_one.distinct
                        && let Some((doc, node)) = self.direct(p, at)?
                    {
                        self.walk(doc, node.doc, &p.steps, node.id, &mut |n| {
                            sum += number::parse(&self.text_of(doc, node.doc, n)?);
                            Ok(true)
                        })?;
                        return Ok(sum);
                    }
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
            Op::Path(p) if p.direct => match self.first(op, at)? {
                Some(n) => number::parse(&self.node_string(n)?),
                None => f64::NAN,
            },
            Op::Text(_) | Op::Union(_) | Op::Path(_) | Op::Current(_) => number::parse(&self.string(op, at)?),
        })
    }

    pub fn string(&self, op: &'a Op, at: Frame) -> Result<Cow<'a, str>, Fault> {
        Ok(match op {
            Op::Text(s) => Cow::Borrowed(s),
            Op::Path(p) if p.is_context(at) => self.node_string(at.node)?,
            Op::Union(_) | Op::Path(_) | Op::Current(_) | Op::Call(Core::Id, ..) => {
                if let Op::Path(p) = op
                    && !p.direct
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
            Op::Call(core, args, span) => match core {
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
                    // The capacity that suffices for most; growing costs more than that.
                    let mut out = String::with_capacity(64);
                    for a in args {
                        out.push_str(&self.string(a, at)?);
                    }
                    grown(out.len(), *span)?;
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
                    spend(s.len() >> 3)?;
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
            Op::Sequence(s) if let Some(single) = self.single(s, at)? => match single {
                // As all numbers here.
                Single::Double(n) => number::format(n),
                other => other.into_text(),
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
            Value::Atomic(a) if a.is_function() => return Err(self.no_text(a)),
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
        if n.doc != self.cx.node.doc
            && n.id == Document::ROOT
            && !n.is_namespace()
            && let Some(text) = self.cx.host.text_of_document(n.doc)
        {
            return Ok(Cow::Borrowed(text));
        }
        let doc = self.doc(n.doc)?;
        if !n.is_namespace()
            && let Some(text) = doc.whole_text(n.id)
        {
            return Ok(Cow::Borrowed(text));
        }
        if !n.is_namespace() && doc.is_dense() && doc.kind(n.id) == NodeKind::Element {
            // The texts of all descendants are concatenated.
            let below = doc.subtree_end(n.id).index() - n.id.index();
            if below > 8 {
                spend(below >> 2)?;
            }
        }
        Ok(node_string(doc, n))
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
