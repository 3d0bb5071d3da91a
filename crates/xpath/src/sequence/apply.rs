//! Functions as values: their creation and calls; lookups in maps and arrays.

use super::functions::Call;
use super::joined::Collected;
use super::operators::failed;
use super::{array_value, bounded};
use crate::atomic::Atomic;
use crate::context::Context;
use crate::error::Span;
use crate::eval::{Eval, Fault, Frame, fault, made, spend};
use crate::items::{Body, Code, FunctionItem, Map, Seen, Signature, TooDeep};
use crate::plan::Op;
use crate::value::{DocId, Item, Node, Value};
use meter::stack::{self, NestedCall, Share};
use std::sync::Arc;

/// Most bytes of the stack of a thread for nested calls of function items, where nothing says how many it has.
const STACK: usize = 512 << 10;
/// What they may use below a share that is given: the embedder's own calls go on elsewhere first.
const MORE: usize = 256 << 10;
/// Most nested calls: of a chain that only functions of a stylesheet make, its limit on depth allows as many.
const MAX_CALLS: u32 = 15_000;
/// Most stacks that they take, however long their expressions are.
const MAX_STACKS: u32 = 6;

/// Calls are nested too deep.
#[cold]
fn too_deep(limit: &str, span: Span) -> Fault {
    let mut error = failed("FOER0000", format!("functions call one another too deep ({limit})"), span);
    error.limit = true;
    error
}

pub(crate) fn function_value(function: Result<FunctionItem, TooDeep>, span: Span) -> Result<Value, Fault> {
    match function {
        Ok(function) => Ok(Value::Atomic(Atomic::Function(Arc::new(function)))),
        Err(error) => Err(failed("FOER0000", error.to_string(), span)),
    }
}

/// A map constructor.
pub(crate) fn map_value(map: Result<Map, TooDeep>, span: Span) -> Result<Value, Fault> {
    match map {
        Ok(map) => Ok(Value::Atomic(Atomic::Map(Arc::new(map)))),
        Err(error) => Err(failed("FOER0000", error.to_string(), span)),
    }
}

impl<'a> Eval<'a> {
    pub(super) fn closure(
        &self,
        code: &Arc<Code>,
        captured: &'a [Op],
        at: Frame,
        span: Span,
    ) -> Result<Value, Fault> {
        let captured = captured.iter().map(|op| self.value(op, at)).collect::<Result<Box<[_]>, _>>()?;
        spend(1 + captured.len())?;
        let seen = code.sees_context.then(|| self.seen(at));
        let body = Body::Code { code: code.clone(), captured, seen };
        function_value(FunctionItem::new(code.name.clone(), code.arity, code.signature.clone(), body), span)
    }

    /// The present context, to be kept.
    pub(crate) fn seen(&self, at: Frame) -> Seen {
        Seen { item: self.context_item(at, Span::default()).ok(), position: at.position, size: at.size }
    }

    /// An operand that must be a single function.
    pub(super) fn function_of(&self, op: &'a Op, at: Frame, span: Span) -> Result<Atomic, Fault> {
        let value = self.value(op, at)?;
        match (value.len(), value.single_atomic()) {
            (1, Some(atom)) if atom.is_function() => Ok(atom),
            (1, _) => Err(failed("XPTY0004", "what is called must be a function", span)),
            (n, _) => {
                let message = format!("what is called must be a single function, these are {n} items");
                Err(failed("XPTY0004", message, span))
            }
        }
    }

    /// Calls a map, an array or another function.
    pub(crate) fn apply(&self, function: &Atomic, mut args: Vec<Value>, span: Span) -> Result<Value, Fault> {
        spend(4)?;
        let arity = arity_of(function);
        if args.len() != arity {
            let message = format!("the function takes {arity} argument(s), these are {}", args.len());
            return Err(failed("XPTY0004", message, span));
        }
        let function = match function {
            Atomic::Function(function) => function,
            container => {
                let key = args.pop().unwrap_or_default();
                let call = Call { eval: self, args: &[key], at: nowhere(), span, name: "a lookup" };
                let Some(key) = call.atom(0)? else {
                    return Err(failed("XPTY0004", "a key is wanted, this is the empty sequence", span));
                };
                return self.found(container, &key, span);
            }
        };
        let _call = NestedCall::begin(MAX_CALLS)
            .ok_or_else(|| too_deep(&format!("limit {MAX_CALLS} calls"), span))?;
        let _share = Share::unless_known(STACK);
        if stack::is_left_with(MORE) {
            return self.call_function(function, args, span);
        }
        self.call_elsewhere(function, args, span)
    }

    /// Calls a function in a thread with its own stack: this one is nearly used up.
    #[cold]
    #[inline(never)]
    fn call_elsewhere(&self, function: &FunctionItem, args: Vec<Value>, span: Span) -> Result<Value, Fault> {
        let host = self.cx.host.shared().filter(|_| stack::taken() < MAX_STACKS);
        let host = host.ok_or_else(|| too_deep("no stack is left", span))?;
        let (program, doc, node, names) = (self.program, self.cx.doc, self.cx.node, self.cx.names);
        let (turns, now) = (self.state().turns(), self.now());
        let ended = stack::on_new(move || {
            let cx = Context { names, ..Context::at(doc, node).with_host(host) };
            let eval = Eval::new(program, &cx);
            eval.state().go_on(turns, now);
            let value = eval.call_function(function, args, span);
            (value, eval.state().turns())
        });
        let (value, turns) = ended.map_err(|why| fault(why, span))?;
        self.state().go_on(turns, now);
        value
    }

    fn call_function(
        &self,
        function: &FunctionItem,
        mut args: Vec<Value>,
        span: Span,
    ) -> Result<Value, Fault> {
        if let Some(signature) = &function.signature {
            for (arg, ty) in args.iter_mut().zip(&signature.params) {
                if let Some(ty) = ty {
                    *arg = ty.convert_in(std::mem::take(arg), self).map_err(|e| placed(e, span))?;
                }
            }
        }
        let value = match &function.body {
            Body::Code { code, captured, seen } => {
                let cx = Context { locals: &[], item: None, referred: code.sees_context, ..*self.cx };
                let eval = self.nested(&code.program, &cx);
                eval.begin(captured, args);
                let value = match seen {
                    None => eval.value(&code.program.op, nowhere()),
                    Some(seen) => match &seen.item {
                        Some(item) => eval.with_item(item.clone(), seen.position, seen.size, |at| {
                            eval.value(&code.program.op, at)
                        }),
                        None => eval.value(&code.program.op, nowhere()),
                    },
                };
                self.state().turned(eval.state());
                value.map_err(|e| placed(e, span))?
            }
            Body::Entry(entry, seen) => {
                let run =
                    |at: Frame| (entry.run)(&Call { eval: self, args: &args, at, span, name: entry.name });
                let value = match seen.as_ref().and_then(|seen| Some((seen.item.clone()?, seen))) {
                    Some((item, seen)) => self.with_item(item, seen.position, seen.size, run)?,
                    None => run(nowhere())?,
                };
                made(value, span)?
            }
            Body::Cast(ty) => {
                let call = Call { eval: self, args: &args, at: nowhere(), span, name: ty.name };
                match call.atom(0)? {
                    None => Value::Empty,
                    Some(atom) => Value::from(atom.cast(ty).map_err(|e| failed(e.code, e.message, span))?),
                }
            }
            Body::Extension(name) => {
                let cx = Context { item: None, node: self.cx.node, referred: true, ..*self.cx };
                match self.cx.host.call_by_name(name, &args, &cx) {
                    Ok(Some(value)) => value,
                    Ok(None) => return Err(fault(format!("there is no function {}()", name.local), span)),
                    Err(message) => return Err(fault(message, span)),
                }
            }
            Body::Coerced(inner) => self.apply(inner, args, span)?,
            Body::Native(run, values) => {
                run(&Call { eval: self, args: &args, at: nowhere(), span, name: "a function" }, values)?
            }
        };
        match function.signature.as_ref().and_then(|s| s.result.as_ref()) {
            Some(ty) => ty.convert_in(value, self).map_err(|e| placed(e, span)),
            None => Ok(value),
        }
    }

    /// `f(a, ?)`.
    pub(super) fn partial(
        &self,
        function: &'a Op,
        args: &'a [Option<Op>],
        at: Frame,
        span: Span,
    ) -> Result<Value, Fault> {
        let function = self.function_of(function, at, span)?;
        let arity = arity_of(&function);
        if args.len() != arity {
            let message = format!("the function takes {arity} argument(s), these are {}", args.len());
            return Err(failed("XPTY0004", message, span));
        }
        // The function, which arguments are open, and the others.
        let places: String = args.iter().map(|arg| if arg.is_none() { '?' } else { 'x' }).collect();
        let open = args.iter().filter(|arg| arg.is_none()).count();
        let signature = match &function {
            Atomic::Function(function) => function.types(),
            _ => None,
        };
        let signature = signature.map(|types| Arc::new(types.of_open(|at| args[at].is_none())));
        let mut values = vec![Value::Atomic(function), Value::from(places)];
        for arg in args.iter().flatten() {
            values.push(self.value(arg, at)?);
        }
        function_value(FunctionItem::new(None, open, signature, Body::Native(partially, values.into())), span)
    }

    /// Coerces a function to another type.
    pub(crate) fn coerced(
        &self,
        function: Atomic,
        signature: &Arc<Signature>,
        span: Span,
    ) -> Result<Atomic, Fault> {
        let arity = arity_of(&function);
        if arity != signature.params.len() {
            let wanted = signature.params.len();
            let message = format!("a function of {wanted} parameter(s) is wanted, this has {arity}");
            return Err(failed("XPTY0004", message, span));
        }
        let name = match &function {
            Atomic::Function(function) => function.name.clone(),
            _ => None,
        };
        match FunctionItem::new(name, arity, Some(signature.clone()), Body::Coerced(function)) {
            Ok(function) => Ok(Atomic::Function(Arc::new(function))),
            Err(error) => Err(failed("FOER0000", error.to_string(), span)),
        }
    }

    pub(super) fn new_map(&self, pairs: &'a [(Op, Op)], at: Frame, span: Span) -> Result<Value, Fault> {
        let mut map = Map::new();
        for (key, value) in pairs {
            let Some(key) = self.one(key, at, "a key of a map", span)? else {
                return Err(failed("XPTY0004", "a key of a map must be a single value", span));
            };
            spend(4)?;
            if map.get(&key).is_some() {
                let message = format!("the map has two values for the key {}", key.to_text());
                return Err(failed("XQDY0137", message, span));
            }
            let value = self.value(value, at)?;
            map = map.put(key, value).map_err(|e| failed("FOER0000", e.to_string(), span))?;
        }
        map_value(Ok(map), span)
    }

    /// `from?key`.
    pub(super) fn lookup(
        &self,
        from: &'a Op,
        key: Option<&'a Op>,
        at: Frame,
        span: Span,
    ) -> Result<Value, Fault> {
        let from = self.value(from, at)?;
        let keys = match key {
            Some(key) => Some(self.atoms_of(&self.value(key, at)?)?),
            None => None,
        };
        let mut out = Collected::default();
        let mut push = |value: Value| -> Result<(), Fault> {
            spend(1)?;
            out.add(value)?;
            bounded(out.len(), span)
        };
        for item in from.items() {
            let atom = match item {
                Item::Atomic(atom @ (Atomic::Map(_) | Atomic::Array(_))) => atom,
                other => {
                    let message =
                        format!("`?` looks into maps and arrays, this is {}", self.describe(&other));
                    return Err(failed("XPTY0004", message, span));
                }
            };
            match (&keys, &atom) {
                (Some(keys), _) => {
                    for key in keys {
                        push(self.found(&atom, key, span)?)?;
                    }
                }
                (None, Atomic::Map(map)) => {
                    for (_, value) in map.entries() {
                        push(value.clone())?;
                    }
                }
                (None, Atomic::Array(array)) => array.members().cloned().try_for_each(&mut push)?,
                _ => {}
            }
        }
        out.value()
    }

    /// The value of a map or an array for a key.
    pub(crate) fn found(&self, container: &Atomic, key: &Atomic, span: Span) -> Result<Value, Fault> {
        spend(1)?;
        match container {
            Atomic::Map(map) => Ok(map.get(key).cloned().unwrap_or_default()),
            Atomic::Array(array) => {
                let index = match key {
                    Atomic::Integer(n) => Some(*n),
                    Atomic::Untyped(_) => {
                        match key.cast(crate::atomic::AtomicType::of(crate::atomic::Kind::Integer)) {
                            Ok(Atomic::Integer(n)) => Some(n),
                            _ => None,
                        }
                    }
                    _ => None,
                };
                let Some(index) = index else {
                    let message =
                        format!("the members of an array have integers, this is {}", key.describe());
                    return Err(failed("XPTY0004", message, span));
                };
                let found =
                    index.checked_sub(1).and_then(|i| usize::try_from(i).ok()).and_then(|i| array.get(i));
                found.cloned().ok_or_else(|| {
                    let message = format!("the array has {} members, there is none at {index}", array.len());
                    failed("FOAY0001", message, span)
                })
            }
            other => Err(failed("XPTY0004", format!("{} has no keys", other.describe()), span)),
        }
    }
}

/// The arity of a map, an array or another function.
pub(crate) fn arity_of(function: &Atomic) -> usize {
    match function {
        Atomic::Function(function) => function.arity,
        _ => 1,
    }
}

/// The error of an absent context item.
fn nowhere() -> Frame {
    Frame { node: Node { doc: DocId::ATOMIC, ..Node::ABSENT }, position: 0, size: 0 }
}

/// An error within a function gets the place of the call: its own place may be in another expression.
fn placed(mut error: Fault, span: Span) -> Fault {
    error.span = span.range();
    error
}

/// A partial application.
fn partially(call: &Call<'_, '_>, values: &[Value]) -> Result<Value, Fault> {
    let [Value::Atomic(function), Value::String(places), given @ ..] = values else {
        return Ok(Value::Empty);
    };
    let (mut given, mut open) = (given.iter(), call.args.iter());
    let args = places.bytes().map(|b| if b == b'?' { open.next() } else { given.next() });
    let args = args.map(|value| value.cloned().unwrap_or_default()).collect();
    call.eval.apply(function, args, call.span)
}

/// An array of values.
pub(crate) fn new_array(members: Vec<Value>, span: Span) -> Result<Value, Fault> {
    spend(members.len())?;
    array_value(crate::items::Array::new(members), span)
}
