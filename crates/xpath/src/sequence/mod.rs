//! XPath 2.0 beyond the engine of 1.0, on the same plans, paths and values.
//!
//! An expression compiles to the operations of [`crate::plan`] where they mean the same in both versions (paths,
//! predicates, `and`, comparisons of nodes with strings, …) and to a [`plan::SeqOp`] where they do not. Sequences are
//! evaluated eagerly, except for the inputs of `for`, `some` and `every` and where only existence is needed.

mod apply;
mod compare;
mod compile;
mod compile3;
pub(crate) mod functions;
mod joined;
pub(crate) mod operators;
pub(crate) mod plan;
pub(crate) mod positions;
pub(crate) mod single;
pub(crate) mod types;

use crate::ast::Operator;
use crate::atomic::{Atomic, AtomicType, Moment};
use crate::error::Span;
use crate::eval::{Eval, Fault, Frame, made, spend};
use crate::invariant::Kept;
use crate::items::Array;
use crate::plan::{Op, Predicate};
use crate::prepared::Comparands;
use crate::value::{DocId, Item, Node, NodeSet, Type, Value};
use functions::Call;
use operators::failed;
use plan::{Seq, SeqOp};
use positions::Positions;
use std::cell::{Cell, OnceCell, RefCell};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::rc::Rc;
use xml::NodeKind;

/// Most items of a sequence.
pub const MAX_ITEMS: usize = 1 << 22;
/// Most iterations of all `for`, `some` and `every` of one evaluation.
pub const MAX_TURNS: u64 = 1 << 28;

/// The state of an evaluation that only 2.0 needs.
#[derive(Default)]
pub(crate) struct State {
    /// Variables of `for`, `some` and `every` by slot.
    locals: RefCell<Vec<Value>>,
    /// Context items that are not nodes, innermost last.
    atoms: RefCell<Vec<Atomic>>,
    /// What is evaluated once.
    pub(crate) kept: RefCell<Vec<Option<Kept>>>,
    /// Where the host keeps none.
    pub(crate) comparands: Comparands,
    turns: Cell<u64>,
    now: Rc<OnceCell<Moment>>,
    /// The nodes whose position `path()` counted last.
    pub(crate) counted: Positions,
}

impl State {
    /// The state of an inner evaluation.
    pub(crate) fn inner(&self) -> State {
        State { now: self.now.clone(), turns: Cell::new(self.turns.get()), ..State::default() }
    }

    /// The iterations so far.
    fn turns(&self) -> u64 {
        self.turns.get()
    }

    /// Goes on with the iterations and the time of an evaluation in another thread.
    fn go_on(&self, turns: u64, now: Moment) {
        self.turns.set(turns);
        self.now.get_or_init(|| now);
    }

    /// Adds the iterations of an inner evaluation.
    pub(crate) fn turned(&self, inner: &State) {
        self.turns.set(inner.turns.get());
    }
}

impl<'a> Eval<'a> {
    pub(crate) fn state(&self) -> &State {
        self.version2.get_or_init(Box::default)
    }

    // ---- the context ----

    /// Keeps an atomic value as context item; returns the node that refers to it.
    pub(crate) fn keep_atom(&self, atom: Atomic) -> Node {
        let mut atoms = self.state().atoms.borrow_mut();
        atoms.push(atom);
        Node::atomic(atoms.len() - 1).unwrap_or(Node::ABSENT)
    }

    /// Runs `f` with an item as context item.
    pub(crate) fn with_item<R>(
        &self,
        item: Item,
        position: usize,
        size: usize,
        f: impl FnOnce(Frame) -> R,
    ) -> R {
        match item {
            Item::Node(node) => f(Frame { node, position, size }),
            Item::Atomic(atom) => {
                let node = self.keep_atom(atom);
                let result = f(Frame { node, position, size });
                self.state().atoms.borrow_mut().pop();
                result
            }
        }
    }

    /// The context item.
    pub(crate) fn context_item(&self, at: Frame, span: Span) -> Result<Item, Fault> {
        let Some(number) = at.node.as_atomic() else { return Ok(Item::Node(at.node)) };
        let kept = self.version2.get().and_then(|state| state.atoms.borrow().get(number).cloned());
        kept.map(Item::Atomic).ok_or_else(|| failed("XPDY0002", "there is no context item here", span))
    }

    /// The error where the context item must be a node and is not, or is absent.
    #[cold]
    pub(crate) fn no_context_node(&self) -> Fault {
        let atomic = self.version2.get().is_some_and(|state| !state.atoms.borrow().is_empty());
        match atomic {
            true => {
                failed("XPTY0020", "a node is needed here, the context item is not a node", Span::default())
            }
            false => failed("XPDY0002", "there is no context item here", Span::default()),
        }
    }

    /// The atomic value that is the context item; `None`: it is absent.
    pub(crate) fn context_atom(&self, node: Node) -> Option<Atomic> {
        let number = node.as_atomic()?;
        self.version2.get()?.atoms.borrow().get(number).cloned()
    }

    pub(crate) fn now(&self) -> Moment {
        *self.state().now.get_or_init(|| {
            self.cx.host.now().unwrap_or_else(|| {
                let since =
                    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                Moment::from_unix(since.as_secs() as i64, since.subsec_millis() * 1_000_000)
            })
        })
    }

    pub(crate) fn document_uri(&self, doc: DocId) -> Option<String> {
        self.cx.host.document_uri(doc).or_else(|| self.doc(doc).ok()?.base_uri().map(str::to_owned))
    }

    pub(crate) fn static_base_uri(&self) -> Option<String> {
        self.cx.host.static_base_uri()
    }

    pub(crate) fn load(&self, uri: &str, span: Span) -> Result<Node, Fault> {
        match self.cx.host.load(uri) {
            Ok(Some(node)) => Ok(node),
            Ok(None) => Err(failed("FODC0002", format!("there is no document \"{uri}\""), span)),
            Err(message) => Err(failed("FODC0002", message, span)),
        }
    }

    // ---- values ----

    /// The typed value of a node: without a schema it is untyped.
    pub(crate) fn atom_of_node(&self, node: Node) -> Result<Atomic, Fault> {
        let text = self.node_string(node)?.into();
        Ok(if self.is_untyped(node)? { Atomic::Untyped(text) } else { Atomic::String(text) })
    }

    /// Whether the typed value of a node is untyped: of comments, processing instructions and namespaces it is a string.
    pub(crate) fn is_untyped(&self, node: Node) -> Result<bool, Fault> {
        Ok(!node.is_namespace()
            && !matches!(
                self.doc(node.doc)?.kind(node.id),
                NodeKind::Comment | NodeKind::ProcessingInstruction
            ))
    }

    /// The `xs:double` that the value of a node becomes as an operand. `None`: it is no number, or the node has a typed value.
    pub(crate) fn untyped_double(&self, node: Node) -> Result<Option<f64>, Fault> {
        Ok(if self.is_untyped(node)? { crate::atomic::parse_double(&self.node_string(node)?) } else { None })
    }

    /// Atomization.
    pub(crate) fn atoms_of(&self, value: &Value) -> Result<Vec<Atomic>, Fault> {
        let mut atoms = Vec::with_capacity(value.len());
        for item in value.items() {
            match item {
                Item::Node(node) => atoms.push(self.atom_of_node(node)?),
                Item::Atomic(atom) if atom.is_function() => self.push_atoms_of(&atom, &mut atoms)?,
                Item::Atomic(atom) => atoms.push(atom),
            }
        }
        Ok(atoms)
    }

    /// Atomization of items that are neither nodes nor atomic values: an array gives its members.
    #[cold]
    fn push_atoms_of(&self, atom: &Atomic, atoms: &mut Vec<Atomic>) -> Result<(), Fault> {
        let Atomic::Array(array) = atom else {
            let message = format!("{} has no value that could be used here", atom.describe());
            return Err(failed("FOTY0013", message, Span::default()));
        };
        spend(1 + array.len())?;
        for member in array.members() {
            atoms.extend(self.atoms_of(member)?);
            bounded(atoms.len(), Span::default())?;
        }
        Ok(())
    }

    /// The error of an item without a string value.
    #[cold]
    pub(crate) fn no_text(&self, atom: &Atomic) -> Fault {
        failed("FOTY0014", format!("{} has no text", atom.describe()), Span::default())
    }

    /// The atomic value of an item; an array may have none or several.
    fn atom_of_item(&self, item: Item, operand: &str, span: Span) -> Result<Option<Atomic>, Fault> {
        match item {
            Item::Node(node) => self.atom_of_node(node).map(Some),
            Item::Atomic(atom) if atom.is_function() => {
                let mut atoms = Vec::new();
                self.push_atoms_of(&atom, &mut atoms)?;
                if atoms.len() > 1 {
                    let message =
                        format!("{operand} must be a single value, this is an array of {}", atoms.len());
                    return Err(failed("XPTY0004", message, span));
                }
                Ok(atoms.pop())
            }
            Item::Atomic(atom) => Ok(Some(atom)),
        }
    }

    /// An item for an error message.
    pub(crate) fn describe(&self, item: &Item) -> String {
        match item {
            Item::Atomic(atom) => atom.describe(),
            Item::Node(node) if node.is_namespace() => "a namespace node".into(),
            Item::Node(node) => match self.doc(node.doc).map(|doc| doc.kind(node.id)) {
                Ok(NodeKind::Element) => "an element".into(),
                Ok(NodeKind::Attribute) => "an attribute".into(),
                Ok(NodeKind::Document) => "a document node".into(),
                Ok(NodeKind::Text) => "a text node".into(),
                Ok(NodeKind::Comment) => "a comment".into(),
                _ => "a processing instruction".into(),
            },
        }
    }

    /// The effective boolean value (XPath 2.0 section 2.4.3).
    pub(crate) fn truth_of(&self, value: &Value, span: Span) -> Result<bool, Fault> {
        let none = |value_kind: &str| {
            failed("FORG0006", format!("{value_kind} has no effective boolean value"), span)
        };
        match value {
            Value::Atomic(atom) => atom.to_boolean().ok_or_else(|| none(&atom.describe())),
            Value::Sequence(items) => match items.first() {
                Some(Item::Node(_)) => Ok(true),
                _ => Err(none("a sequence of several atomic values")),
            },
            other => Ok(other.to_boolean()),
        }
    }

    /// Adds the items of an operand.
    fn push_items(&self, op: &'a Op, at: Frame, out: &mut Vec<Item>, span: Span) -> Result<(), Fault> {
        match op {
            Op::Path(_) | Op::Union(_) => out.extend(self.nodes(op, at)?.into_iter().map(Item::Node)),
            Op::Sequence(s) if matches!(s.kind, Seq::For { .. } | Seq::Comma(_)) => {
                self.collect(s, at, out)?;
            }
            _ => match self.value(op, at)? {
                Value::Sequence(items) => out.extend(items.iter().cloned()),
                value => out.extend(value.items()),
            },
        }
        spend(1)?;
        bounded(out.len(), span)
    }

    /// Adds the items of a comma or `for` expression, without intermediate sequences.
    fn collect(&self, s: &'a SeqOp, at: Frame, out: &mut Vec<Item>) -> Result<(), Fault> {
        match &s.kind {
            Seq::Comma(ops) => ops.iter().try_for_each(|op| self.push_items(op, at, out, s.span)),
            Seq::For { slot, input, body } => {
                self.each_bound(*slot, input, at, s.span, &mut || {
                    self.push_items(body, at, out, s.span)?;
                    Ok(true)
                })?;
                Ok(())
            }
            _ => {
                out.extend(self.sequence(s, at)?.items());
                Ok(())
            }
        }
    }

    /// Sets the variables of a function: captured values, and the arguments.
    pub(crate) fn begin(&self, captured: &[Value], args: Vec<Value>) {
        let mut locals = self.state().locals.borrow_mut();
        locals.extend_from_slice(captured);
        locals.extend(args);
    }

    /// The value of a variable of the expression.
    fn bound(&self, slot: u32) -> Option<Value> {
        self.version2.get()?.locals.borrow().get(slot as usize).cloned()
    }

    /// The same, where that is what an operation stands for.
    pub(crate) fn local_of_expression(&self, kind: &Seq) -> Option<Value> {
        match kind {
            Seq::Local(slot) => self.bound(*slot),
            _ => None,
        }
    }

    /// Sets a variable of the expression.
    pub(crate) fn bind(&self, slot: u32, value: Value) {
        let mut locals = self.state().locals.borrow_mut();
        if locals.len() <= slot as usize {
            locals.resize(slot as usize + 1, Value::Empty);
        }
        locals[slot as usize] = value;
    }

    /// Runs `f` for each item of `input` bound to a variable, until it says `false`.
    fn each_bound(
        &self,
        slot: u32,
        input: &'a Op,
        at: Frame,
        span: Span,
        f: &mut dyn FnMut() -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let state = self.state();
        let slot = slot as usize;
        let mut turn = |value: Value| -> Result<bool, Fault> {
            spend(1)?;
            state.turns.set(state.turns.get() + 1);
            if state.turns.get() > MAX_TURNS {
                return Err(failed(
                    "FOER0000",
                    format!("the limit of turns ({MAX_TURNS}) is exceeded"),
                    span,
                ));
            }
            {
                let mut locals = state.locals.borrow_mut();
                if locals.len() <= slot {
                    locals.resize(slot + 1, Value::Empty);
                }
                locals[slot] = value;
            }
            f()
        };
        // A range is not expanded.
        if let Op::Sequence(s) = input
            && let Seq::Range(from, to) = &s.kind
        {
            if let (Some(from), Some(to)) = (self.integer(from, at, s.span)?, self.integer(to, at, s.span)?) {
                for n in from..=to {
                    if !turn(Value::from(n))? {
                        return Ok(());
                    }
                }
            }
            return Ok(());
        }
        let value = self.value(input, at)?;
        for item in value.items() {
            if !turn(Value::from(item))? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// An operand of `to`.
    fn integer(&self, op: &'a Op, at: Frame, span: Span) -> Result<Option<i64>, Fault> {
        let value = self.value(op, at)?;
        if self.program.compatible {
            let Some(item) = value.item(0) else { return Ok(None) };
            let number = self.atom_of_item(item, "to", span)?.map_or(f64::NAN, |atom| atom.to_double());
            if number.fract() != 0.0 || number.abs() >= 9.2e18 {
                return Err(failed("XPTY0004", "an operand of to must be a whole number", span));
            }
            return Ok(Some(number as i64));
        }
        let call = Call { eval: self, args: &[value], at, span, name: "to" };
        call.integer_option(0)
    }

    /// An operand as at most one atomic value.
    pub(crate) fn one(
        &self,
        op: &'a Op,
        at: Frame,
        operator: &str,
        span: Span,
    ) -> Result<Option<Atomic>, Fault> {
        let value = self.value(op, at)?;
        match value.item(0) {
            None => Ok(None),
            Some(_) if value.len() > 1 => {
                let message = format!(
                    "an operand of {operator} must be a single item, this is a sequence of {}",
                    value.len()
                );
                Err(failed("XPTY0004", message, span))
            }
            Some(item) => self.atom_of_item(item, operator, span),
        }
    }

    /// An operand of arithmetic in 1.0 compatibility mode: the first item, as a double (XPath 2.0 section 3.4).
    fn compatible_operand(&self, op: &'a Op, at: Frame, operator: &str, span: Span) -> Result<Atomic, Fault> {
        let value = self.value(op, at)?;
        let Some(item) = value.item(0) else { return Ok(Atomic::Double(f64::NAN)) };
        Ok(match self.atom_of_item(item, operator, span)? {
            None => Atomic::Double(f64::NAN),
            Some(atom @ (Atomic::Moment(_) | Atomic::Duration(_))) => atom,
            Some(atom) => Atomic::Double(atom.to_double()),
        })
    }

    /// The value of an operation on sequences.
    pub(crate) fn sequence(&self, s: &'a SeqOp, at: Frame) -> Result<Value, Fault> {
        match self.single(s, at)? {
            Some(single) => Ok(single.into()),
            None => self.in_general(s, at),
        }
    }

    fn general_sequence(&self, s: &'a SeqOp, at: Frame) -> Result<Value, Fault> {
        let span = s.span;
        Ok(match &s.kind {
            Seq::Literal(value) => value.clone(),
            Seq::Comma(ops) => self.joined(ops, at, span)?,
            Seq::Once(once, op) => self.value_once(*once, op, at)?,
            Seq::For { .. } => {
                let mut out = Vec::new();
                self.collect(s, at, &mut out)?;
                Value::from_items(out)
            }
            Seq::Range(from, to) => {
                let (from, to) = (self.integer(from, at, span)?, self.integer(to, at, span)?);
                let (Some(from), Some(to)) = (from, to) else { return Ok(Value::Empty) };
                let count = usize::try_from(to.saturating_sub(from)).unwrap_or(0);
                bounded(count, span)?;
                spend(count >> 2)?;
                Value::from_items((from..=to).map(|n| Item::Atomic(Atomic::Integer(n))).collect())
            }
            Seq::Local(slot) => {
                self.state().locals.borrow().get(*slot as usize).cloned().unwrap_or(Value::Empty)
            }
            Seq::ContextItem => Value::from(self.context_item(at, span)?),
            Seq::If(test, yes, no) => {
                return self.value(if self.boolean(test, at)? { yes } else { no }, at);
            }
            Seq::Value(op, a, b) => match self.value_comparison(*op, a, b, at, span)? {
                Some(holds) => Value::Boolean(holds),
                None => Value::Empty,
            },
            Seq::Nodes(op, a, b) => {
                let node = |value: Value| -> Result<Option<Node>, Fault> {
                    match (value.len(), value.item(0)) {
                        (0, _) => Ok(None),
                        (1, Some(Item::Node(node))) => Ok(Some(node)),
                        _ => Err(failed(
                            "XPTY0004",
                            "the operands of a node comparison must be single nodes",
                            span,
                        )),
                    }
                };
                let (a, b) = (node(self.value(a, at)?)?, node(self.value(b, at)?)?);
                let (Some(a), Some(b)) = (a, b) else { return Ok(Value::Empty) };
                Value::Boolean(match op {
                    Operator::Is => a == b,
                    Operator::Before => self.order(a, b)? == Ordering::Less,
                    _ => self.order(a, b)? == Ordering::Greater,
                })
            }
            Seq::Arithmetic(op, a, b) if self.program.compatible => {
                let a = self.compatible_operand(a, at, op.symbol(), span)?;
                let b = self.compatible_operand(b, at, op.symbol(), span)?;
                Value::from(operators::arithmetic(*op, &a, &b, span)?)
            }
            Seq::Arithmetic(op, a, b) => {
                let a = self.one(a, at, op.symbol(), span)?;
                let b = self.one(b, at, op.symbol(), span)?;
                match (a, b) {
                    (Some(a), Some(b)) => Value::from(operators::arithmetic(*op, &a, &b, span)?),
                    _ => Value::Empty,
                }
            }
            Seq::Sign(minus, a) => {
                let Some(atom) = self.one(a, at, if *minus { "unary -" } else { "unary +" }, span)? else {
                    return Ok(Value::Empty);
                };
                match atom {
                    Atomic::Double(n) => Value::Number(if *minus { -n } else { n }),
                    Atomic::Float(n) => Value::Atomic(Atomic::Float(if *minus { -n } else { n })),
                    atom if *minus => {
                        let negative = match &atom {
                            Atomic::Untyped(_) => operators::arithmetic(
                                plan::Arithmetic::Multiply,
                                &Atomic::Double(-1.0),
                                &atom,
                                span,
                            ),
                            _ => operators::arithmetic(
                                plan::Arithmetic::Subtract,
                                &Atomic::Integer(0),
                                &atom,
                                span,
                            ),
                        };
                        Value::from(negative?)
                    }
                    Atomic::Untyped(_) => {
                        let one = Atomic::Double(1.0);
                        Value::from(operators::arithmetic(plan::Arithmetic::Multiply, &one, &atom, span)?)
                    }
                    atom if atom.is_numeric() => Value::from(atom),
                    atom => {
                        let message = format!("unary + needs a number, this is {}", atom.describe());
                        return Err(failed("XPTY0004", message, span));
                    }
                }
            }
            Seq::Without(except, a, b) => {
                let other: HashSet<Node> = self.nodes(b, at)?.into_iter().collect();
                let mut kept = self.nodes(a, at)?;
                kept.retain(|n| other.contains(n) != *except);
                Value::NodeSet(NodeSet::from_ordered(&kept))
            }
            Seq::Treat(a, ty) => {
                let value = self.value(a, at)?;
                if !ty.matches_in(&value, self)? {
                    return Err(failed(
                        "XPDY0050",
                        format!("the value is not of the type {}", ty.text()),
                        span,
                    ));
                }
                value
            }
            Seq::Cast(a, ty, optional) => {
                let value = self.value(a, at)?;
                let name = format!("cast as xs:{}", ty.name);
                let atom = match (value.len(), value.item(0)) {
                    (0, _) if *optional => return Ok(Value::Empty),
                    (1, Some(item)) => match self.atom_of_item(item, &name, span)? {
                        Some(atom) => atom,
                        None if *optional => return Ok(Value::Empty),
                        None => return Err(failed("XPTY0004", format!("{name} needs a value"), span)),
                    },
                    (n, _) => {
                        return Err(failed(
                            "XPTY0004",
                            format!("{name} needs a single item, these are {n}"),
                            span,
                        ));
                    }
                };
                Value::from(atom.cast(ty).map_err(|e| failed(e.code, e.message, span))?)
            }
            Seq::CastList(a, ty, optional) => match self.one(a, at, "a cast to a list", span)? {
                None if *optional => Value::Empty,
                None => return Err(failed("XPTY0004", "a cast to a list needs a value", span)),
                Some(atom) => list_of(&atom, ty, span)?,
            },
            Seq::CastName(a, namespaces, optional) => match self.one(a, at, "cast as xs:QName", span)? {
                None if *optional => Value::Empty,
                None => return Err(failed("XPTY0004", "cast as xs:QName needs a value", span)),
                Some(name @ Atomic::Name(_)) => Value::from(name),
                Some(atom) => Value::from(named(&atom, namespaces, span)?),
            },
            Seq::Let { slot, input, body } => {
                let value = self.value(input, at)?;
                self.bind(*slot, value);
                return self.value(body, at);
            }
            Seq::Map(a, b) => {
                let start = self.value(a, at)?;
                let size = start.len();
                let mut out = Vec::new();
                for (i, item) in start.items().enumerate() {
                    self.with_item(item, i + 1, size, |at| self.push_items(b, at, &mut out, span))?;
                }
                Value::from_items(out)
            }
            Seq::Function(code, captured) => self.closure(code, captured, at, span)?,
            Seq::Apply(function, args) => {
                let function = self.function_of(function, at, span)?;
                let args = args.iter().map(|a| self.value(a, at)).collect::<Result<Vec<_>, _>>()?;
                self.apply(&function, args, span)?
            }
            Seq::Partial(function, args) => self.partial(function, args, at, span)?,
            Seq::NewMap(pairs) => self.new_map(pairs, at, span)?,
            Seq::NewArray(members) => {
                let members = members.iter().map(|a| self.value(a, at)).collect::<Result<Vec<_>, _>>()?;
                array_value(Array::new(members), span)?
            }
            Seq::ArrayOf(items) => {
                let items = self.value(items, at)?;
                spend(items.len())?;
                array_value(Array::new(items.items().map(Value::from).collect()), span)?
            }
            Seq::Lookup(from, key) => self.lookup(from, key.as_ref(), at, span)?,
            Seq::Slash(a, b) => self.slash(a, b, at, span)?,
            Seq::Filter(a, predicates, join) => {
                let mut value = self.value(a, at)?;
                if let Value::NodeSet(nodes) = &value
                    && let Some(joined) = self.joined_list(join.as_ref(), nodes)?
                {
                    value = Value::NodeSet(NodeSet::from_ordered(&joined));
                }
                for predicate in predicates {
                    value = self.filtered(&value, predicate)?;
                }
                value
            }
            Seq::Count(a) => match a.ty() {
                Type::NodeSet if !matches!(a, Op::Sequence(_)) => {
                    Value::from(self.count(a, at, span)? as i64)
                }
                _ => Value::from(self.value(a, at)?.len() as i64),
            },
            Seq::Call(entry, args) => {
                let args = args.iter().map(|a| self.value(a, at)).collect::<Result<Vec<_>, _>>()?;
                for arg in &args {
                    // Most functions read their argument once.
                    spend(match arg {
                        Value::NodeSet(_) | Value::Sequence(_) if entry.constant => 1,
                        Value::String(text) => 1 + (text.len() >> 5),
                        Value::NodeSet(_) | Value::Sequence(_) => 1 + (arg.len() >> 1),
                        _ => 1,
                    })?;
                }
                let call = Call { eval: self, args: &args, at, span, name: entry.name };
                let value = made((entry.run)(&call)?, span)?;
                if !entry.constant {
                    spend(value.len() >> 1)?;
                }
                value
            }
            Seq::Regex(entry, regex, args) => {
                let args = args.iter().map(|a| self.value(a, at)).collect::<Result<Vec<_>, _>>()?;
                let call = Call { eval: self, args: &args, at, span, name: entry.name };
                made(functions::with_regex(&call, regex)?, span)?
            }
            Seq::Quantified { .. }
            | Seq::General(..)
            | Seq::InstanceOf(..)
            | Seq::Castable(..)
            | Seq::CastableList(..)
            | Seq::CastableName(..)
            | Seq::Exists(..) => Value::Boolean(self.sequence_boolean(s, at)?),
        })
    }

    /// The effective boolean value of an operation on sequences, decided as early as possible.
    pub(crate) fn sequence_boolean(&self, s: &'a SeqOp, at: Frame) -> Result<bool, Fault> {
        let span = s.span;
        Ok(match &s.kind {
            Seq::If(test, yes, no) => {
                let branch = if self.boolean(test, at)? { yes } else { no };
                self.boolean(branch, at)?
            }
            Seq::Value(op, a, b) => self.value_comparison(*op, a, b, at, span)?.unwrap_or(false),
            Seq::General(op, a, b) => self.general_comparison(*op, a, b, at, span)?,
            Seq::Quantified { every, slot, input, satisfies } => {
                let mut result = *every;
                self.each_bound(*slot, input, at, span, &mut || {
                    let holds = self.boolean(satisfies, at)?;
                    if holds != *every {
                        result = holds;
                    }
                    Ok(holds == *every)
                })?;
                result
            }
            Seq::InstanceOf(a, ty) => ty.matches_in(&self.value(a, at)?, self)?,
            Seq::CastableList(a, ty, optional) => {
                self.castable(a, *optional, at, span, |atom| list_of(atom, ty, span).is_ok())?
            }
            Seq::CastableName(a, namespaces, optional) => {
                let is_name =
                    |atom: &Atomic| matches!(atom, Atomic::Name(_)) || named(atom, namespaces, span).is_ok();
                self.castable(a, *optional, at, span, is_name)?
            }
            Seq::Castable(a, ty, optional) => {
                self.castable(a, *optional, at, span, |atom| atom.cast(ty).is_ok())?
            }
            Seq::Exists(wanted, a) => match a.ty() {
                Type::NodeSet => self.boolean(a, at)? == *wanted,
                _ => self.value(a, at)?.is_empty() != *wanted,
            },
            _ => match self.single(s, at)? {
                Some(single) => single.truth(),
                None => self.truth_of(&self.in_general(s, at)?, span)?,
            },
        })
    }

    /// `castable as`: whether there is one value that can be cast, or none where that is allowed.
    fn castable(
        &self,
        a: &'a Op,
        optional: bool,
        at: Frame,
        span: Span,
        fits: impl Fn(&Atomic) -> bool,
    ) -> Result<bool, Fault> {
        let value = self.value(a, at)?;
        Ok(match (value.len(), value.item(0)) {
            (0, _) => optional,
            (1, Some(item)) => {
                self.atom_of_item(item, "castable", span)?.map_or(optional, |atom| fits(&atom))
            }
            _ => false,
        })
    }

    /// `a/b`: `b` for each node of `a`; nodes come in document order, atomic values in the order they are made.
    fn slash(&self, a: &'a Op, b: &'a Op, at: Frame, span: Span) -> Result<Value, Fault> {
        let start = self.value(a, at)?;
        let size = start.len();
        let mut out = Vec::new();
        for (i, item) in start.items().enumerate() {
            let Item::Node(node) = item else {
                return Err(failed("XPTY0019", "what stands to the left of `/` must be nodes", span));
            };
            self.push_items(b, Frame { node, position: i + 1, size }, &mut out, span)?;
        }
        let count = out.iter().filter(|item| item.node().is_some()).count();
        if count == 0 {
            return Ok(Value::from_items(out));
        }
        if count < out.len() {
            return Err(failed("XPTY0018", "a step gives nodes and atomic values", span));
        }
        let mut nodes: Vec<Node> = out.iter().filter_map(Item::node).collect();
        self.sort(&mut nodes)?;
        Ok(Value::NodeSet(NodeSet::from_ordered(&nodes)))
    }

    /// The items that a predicate keeps.
    fn filtered(&self, value: &Value, predicate: &'a Predicate) -> Result<Value, Fault> {
        let size = value.len();
        if let Some(positions) = self.wanted_positions(predicate, size)? {
            return functions::part(value, positions);
        }
        if let Value::NodeSet(nodes) = value {
            return Ok(Value::NodeSet(NodeSet::from_ordered(&self.filter(nodes.as_slice(), predicate)?)));
        }
        let mut kept = Vec::new();
        for (i, item) in value.items().enumerate() {
            if self.with_item(item.clone(), i + 1, size, |at| self.holds(predicate, at))? {
                kept.push(item);
            }
        }
        Ok(Value::from_items(kept))
    }
}

/// The words of a text as values of that type: at least one (F&O 3.1 section 18.3).
pub(crate) fn list_of(atom: &Atomic, ty: &'static AtomicType, span: Span) -> Result<Value, Fault> {
    let (Atomic::String(text) | Atomic::Untyped(text)) = atom else {
        let message = format!("{} cannot be cast to a list of xs:{}", atom.describe(), ty.name);
        return Err(failed("XPTY0004", message, span));
    };
    let mut items = Vec::new();
    for word in text.split_ascii_whitespace() {
        let value = Atomic::string(word).cast(ty).map_err(|e| failed(e.code, e.message, span))?;
        items.push(Item::Atomic(value));
        bounded(items.len(), span)?;
    }
    if items.is_empty() {
        return Err(failed("FORG0001", format!("a list of xs:{} has at least one value", ty.name), span));
    }
    spend(items.len())?;
    Ok(Value::from_items(items))
}

/// The qualified name of a text, with these namespaces.
fn named(atom: &Atomic, namespaces: &[(String, String)], span: Span) -> Result<Atomic, Fault> {
    let Some(text) = atom.as_text() else {
        let message = format!("{} cannot be cast to xs:QName", atom.describe());
        return Err(failed("XPTY0004", message, span));
    };
    let text = text.trim();
    let (prefix, local) = text.split_once(':').unwrap_or(("", text));
    if !xml::is_ncname(local) || text.contains(':') && !xml::is_ncname(prefix) {
        return Err(failed("FORG0001", format!("\"{text}\" is not a qualified name"), span));
    }
    let namespace = match prefix {
        "xml" => xml::XML_NS,
        prefix => match namespaces.iter().find(|(p, _)| p == prefix) {
            Some((_, uri)) => uri,
            None => {
                return Err(failed("FONS0004", format!("the prefix `{prefix}` is not declared"), span));
            }
        },
    };
    Ok(Atomic::Name(std::sync::Arc::new(crate::atomic::NameValue {
        prefix: prefix.into(),
        namespace: namespace.into(),
        local: local.into(),
    })))
}

/// An array constructor.
pub(crate) fn array_value(array: Result<Array, crate::items::TooDeep>, span: Span) -> Result<Value, Fault> {
    match array {
        Ok(array) => Ok(Value::Atomic(Atomic::Array(std::sync::Arc::new(array)))),
        Err(error) => Err(failed("FOER0000", error.to_string(), span)),
    }
}

pub(crate) fn bounded(count: usize, span: Span) -> Result<(), Fault> {
    if count > MAX_ITEMS {
        return Err(failed("FOER0000", format!("the sequence has more than {MAX_ITEMS} items"), span));
    }
    Ok(())
}

impl From<Item> for Value {
    fn from(item: Item) -> Value {
        match item {
            Item::Node(node) => Value::from(node),
            Item::Atomic(atom) => Value::from(atom),
        }
    }
}
