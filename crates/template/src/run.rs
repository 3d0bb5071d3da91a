//! Filling in a template: its nodes one after the other, its expressions on the values of the message.
//!
//! Everything that may go on for long counts its work ([`meter::spend`]); what is made is bounded in bytes, what nests in
//! depth. So a template ends, whatever it says.

use crate::ast::{
    Arithmetic, Body, Compare, Error, Escape, Expr, Kind, List, MacroCall, Node, Piece, Place, RangeEnd,
    Scope, Special, Target,
};
use crate::number::{Format, Number};
use crate::parse::Parsing;
use crate::value::{DateKind, Hash, Model, Range, Text, Value, text_of_nodes};
use crate::{built_in, nodes};
use expression::{DatePattern, Moment};
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

/// Deepest nesting of nodes and expressions in each other, those of macros that are called included.
const MAX_DEPTH: usize = 600;

/// Deepest nesting of macros and functions that call each other.
const MAX_CALLS: usize = 64;

/// Most items of a sequence that is made of a range.
pub(crate) const MAX_RANGE: usize = 100_000;

/// What an item of a sequence counts for, in bytes.
const ITEM: usize = 40;

pub(crate) type Res<T> = Result<T, Error>;

/// How a body ended.
enum End<'m> {
    Normal,
    Break,
    Continue,
    Return(Option<Value<'m>>),
}

/// One turn of a `<#list>`.
struct Loop<'m> {
    names: &'m [Arc<str>],
    /// `<#items>` will name what stands here.
    pending: bool,
    source: Value<'m>,
    item: Option<Value<'m>>,
    key: Option<Value<'m>>,
    at: usize,
    last: bool,
}

/// What a macro's `<#nested>` writes, and where its variables are.
#[derive(Clone, Copy)]
struct Nested<'m> {
    body: Option<&'m Body>,
    names: &'m [Arc<str>],
    scope: usize,
}

/// The variables of a macro that runs; the first one is the template.
struct Local<'m> {
    variables: Vec<(Arc<str>, Value<'m>)>,
    loops: Vec<Loop<'m>>,
    nested: Option<Nested<'m>>,
}

pub(crate) struct Run<'m> {
    template: &'m Parsing,
    model: &'m [(&'static str, Model<'m>)],
    limit: usize,
    /// Bytes that were made so far, for what is kept and what is thrown away.
    made: usize,
    depth: usize,
    calls: usize,
    locals: Vec<Local<'m>>,
    /// The one that counts now.
    current: usize,
    variables: Vec<(Arc<str>, Value<'m>)>,
    globals: Vec<(Arc<str>, Value<'m>)>,
    /// What stands for a name within `<#escape>`.
    escaped: Vec<(&'m str, &'m Expr)>,
    /// The parameters of lambdas.
    lambdas: Vec<(&'m Arc<str>, Value<'m>)>,
    escape: Escape,
    pub number_format: Option<Format>,
    boolean_format: Option<(String, String)>,
    date_formats: [Option<String>; 3],
    recovered: Vec<String>,
    now: Option<i64>,
}

/// Fills a template in. `limit`: most bytes of the result.
pub(crate) fn run<'m>(
    template: &'m Parsing,
    model: &'m [(&'static str, Model<'m>)],
    limit: usize,
) -> Res<String> {
    let mut run = Run {
        template,
        model,
        limit,
        made: 0,
        depth: 0,
        calls: 0,
        locals: vec![Local { variables: Vec::new(), loops: Vec::new(), nested: None }],
        current: 0,
        variables: Vec::new(),
        globals: Vec::new(),
        escaped: Vec::new(),
        lambdas: Vec::new(),
        escape: template.escape,
        number_format: None,
        boolean_format: None,
        date_formats: [None, None, None],
        recovered: Vec::new(),
        now: None,
    };
    let mut out = String::new();
    run.body(&template.body, &mut out)?;
    Ok(out)
}

impl<'m> Run<'m> {
    // Limits.

    pub fn spend(&self, units: usize, place: Place) -> Res<()> {
        meter::spend(units as u64).map_err(|stop| Error::fatal(stop.to_string(), place))
    }

    /// Counts what is made.
    pub fn make(&mut self, bytes: usize, place: Place) -> Res<()> {
        self.spend(bytes >> 6, place)?;
        self.made = self.made.saturating_add(bytes);
        if bytes > self.limit {
            return Err(self.too_large(place));
        }
        let most = self.limit.saturating_mul(8);
        if self.made > most {
            return Err(Error::fatal(format!("the template makes more than {most} bytes on its way"), place));
        }
        Ok(())
    }

    fn too_large(&self, place: Place) -> Error {
        Error::fatal(format!("the result is larger than the {} bytes a flow may hold", self.limit), place)
    }

    pub fn make_items(&mut self, items: usize, place: Place) -> Res<()> {
        self.make(items.saturating_mul(ITEM), place)
    }

    fn deeper<T>(&mut self, place: Place, work: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        self.spend(1, place)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::fatal("the template nests too deep: does a macro call itself?", place));
        }
        let result = work(self);
        self.depth -= 1;
        result
    }

    fn write(&mut self, text: &str, out: &mut String, place: Place) -> Res<()> {
        if out.len() + text.len() > self.limit {
            return Err(self.too_large(place));
        }
        out.push_str(text);
        self.spend(1 + (text.len() >> 6), place)
    }

    // Nodes.

    fn body(&mut self, body: &'m Body, out: &mut String) -> Res<End<'m>> {
        for node in body {
            match self.node(node, out)? {
                End::Normal => {}
                end => return Ok(end),
            }
        }
        Ok(End::Normal)
    }

    fn inner(&mut self, body: &'m Body, place: Place, out: &mut String) -> Res<End<'m>> {
        self.deeper(place, |own| own.body(body, out))
    }

    fn node(&mut self, node: &'m Node, out: &mut String) -> Res<End<'m>> {
        match node {
            Node::Text(text) => self.write(text, out, Place::default())?,
            Node::Output(expr) => {
                let value = self.value(expr)?;
                self.output(&value, expr, out)?;
            }
            Node::Number(expr, format) => {
                let number = self.number(expr)?;
                let (least, most) = format.unwrap_or((0, 3));
                let format = Format { least, most, whole: 1, ..Format::default() };
                self.write(&number.formatted(&format), out, expr.place)?;
            }
            Node::If(branches, otherwise) => {
                for (test, body) in branches {
                    if self.truth(test)? {
                        return self.inner(body, test.place, out);
                    }
                }
                return self.inner(otherwise, Place::default(), out);
            }
            Node::List(list) => return self.list(list, out),
            Node::Items(names, body, place) => return self.items(names, body, *place, out),
            Node::Sep(body) => {
                let local = &self.locals[self.current];
                let last = local.loops.iter().rev().find(|own| !own.pending).is_none_or(|own| own.last);
                if !last {
                    return self.inner(body, Place::default(), out);
                }
            }
            Node::Break => return Ok(End::Break),
            Node::Continue => return Ok(End::Continue),
            Node::Assign(scope, all) => {
                for (target, expr) in all {
                    let value = self.assigned(*scope, target, expr)?;
                    self.set(*scope, &target.name, value);
                }
            }
            Node::Capture(scope, name, body) => {
                let mut captured = String::new();
                let end = self.inner(body, Place::default(), &mut captured)?;
                self.make(captured.len(), Place::default())?;
                let text = Text::Made(captured.into());
                let value = if self.escape == Escape::None { Value::Text(text) } else { Value::Markup(text) };
                self.set(*scope, name, value);
                return Ok(end);
            }
            Node::Nested(arguments, place) => return self.nested(arguments, *place, out),
            Node::Return(value) => {
                return Ok(End::Return(match value {
                    Some(value) => Some(self.value(value)?),
                    None => None,
                }));
            }
            Node::Call(call) => return self.call(call, out),
            Node::Switch(value, cases) => {
                let wanted = self.value(value)?;
                let mut found = None;
                for (at, (values, _)) in cases.iter().enumerate() {
                    for case in values.iter().flatten() {
                        let case = self.value(case)?;
                        if self.equal(&wanted, &case).unwrap_or(false) {
                            found = Some(at);
                            break;
                        }
                    }
                    if found.is_some() {
                        break;
                    }
                }
                let found = found.or_else(|| cases.iter().position(|(values, _)| values.is_none()));
                for (_, body) in cases.iter().skip(found.unwrap_or(cases.len())) {
                    match self.inner(body, value.place, out)? {
                        End::Normal => {}
                        End::Break => break,
                        end => return Ok(end),
                    }
                }
            }
            Node::Attempt(body, recover) => return self.attempt(body, recover, out),
            Node::Setting(name, value) => self.setting(name, value)?,
            Node::Stop(why, place) => {
                let why = match why {
                    Some(why) => self.text(why)?.to_string(),
                    None => "the template stopped".to_owned(),
                };
                return Err(Error::fatal(why, *place));
            }
            Node::Escaping(escape, body) => {
                let before = self.escape;
                self.escape = escape.unwrap_or(before);
                let end = self.inner(body, Place::default(), out);
                self.escape = before;
                return end;
            }
            Node::Compress(body) => {
                let mut inside = String::new();
                let end = self.inner(body, Place::default(), &mut inside)?;
                self.write(&compressed(&inside), out, Place::default())?;
                return Ok(end);
            }
        }
        Ok(End::Normal)
    }

    fn output(&mut self, value: &Value<'m>, expr: &'m Expr, out: &mut String) -> Res<()> {
        if let Value::Markup(text) = value {
            return self.write(text, out, expr.place);
        }
        let text = self.text_of(value, expr)?;
        match self.escape {
            Escape::None => self.write(&text, out, expr.place),
            Escape::Xml => self.write(&built_in::xml(&text), out, expr.place),
            Escape::Html => self.write(&built_in::html(&text), out, expr.place),
        }
    }

    fn attempt(&mut self, body: &'m Body, recover: &'m Body, out: &mut String) -> Res<End<'m>> {
        let (length, depth, calls, current) = (out.len(), self.depth, self.calls, self.current);
        let locals: Vec<usize> = self.locals.iter().map(|own| own.loops.len()).collect();
        let (escaped, lambdas) = (self.escaped.len(), self.lambdas.len());
        let error = match self.inner(body, Place::default(), out) {
            Err(error) if !error.fatal => error,
            result => return result,
        };
        out.truncate(length);
        (self.depth, self.calls, self.current) = (depth, calls, current);
        self.locals.truncate(locals.len());
        for (local, loops) in self.locals.iter_mut().zip(locals) {
            local.loops.truncate(loops);
        }
        self.escaped.truncate(escaped);
        self.lambdas.truncate(lambdas);
        self.recovered.push(error.message);
        let end = self.inner(recover, Place::default(), out);
        self.recovered.pop();
        end
    }

    // Loops.

    fn list(&mut self, list: &'m List, out: &mut String) -> Res<End<'m>> {
        let place = list.source.place;
        let source = self.value(&list.source)?;
        let pairs = list.names.len() == 2 || (!source.is_sequence() && source.is_hash());
        if !source.is_sequence() && !source.is_hash() {
            return Err(Error::new(
                format!(
                    "`<#list>` needs a sequence or a hash, `{}` is {}",
                    shown(&list.source),
                    source.what()
                ),
                place,
            ));
        }
        let source = match pairs {
            true => self.pairs(source, &list.source)?,
            false => source,
        };
        if source.length() == Some(0) {
            return self.inner(&list.otherwise, place, out);
        }
        if !list.names.is_empty() {
            return self.turns(&list.names, source, &list.body, place, out);
        }
        let pending = Loop { names: &[], pending: true, source, item: None, key: None, at: 0, last: true };
        let current = self.current;
        self.locals[current].loops.push(pending);
        let end = self.inner(&list.body, place, out);
        self.locals[current].loops.pop();
        Ok(match end? {
            End::Break => End::Normal,
            end => end,
        })
    }

    /// A hash as a sequence of pairs: lists of two.
    fn pairs(&mut self, source: Value<'m>, expr: &'m Expr) -> Res<Value<'m>> {
        let Some(keys) = source.keys() else {
            return Err(Error::new(
                format!("`{}` is {} and no hash that can be listed", shown(expr), source.what()),
                expr.place,
            ));
        };
        self.make_items(keys.len() * 3, expr.place)?;
        let mut pairs = Vec::with_capacity(keys.len());
        for key in keys {
            if let Value::Text(name) = &key
                && let Some(value) = source.member(name)
            {
                pairs.push(Value::List(Rc::new(vec![key.clone(), value])));
            }
        }
        Ok(Value::List(Rc::new(pairs)))
    }

    fn items(
        &mut self,
        names: &'m [Arc<str>],
        body: &'m Body,
        place: Place,
        out: &mut String,
    ) -> Res<End<'m>> {
        let current = self.current;
        let Some(outer) = self.locals[current].loops.iter().rposition(|own| own.pending) else {
            return Err(Error::new("`<#items>` stands in a `<#list>` that names no variable", place));
        };
        let source = self.locals[current].loops[outer].source.clone();
        self.turns(names, source, body, place, out)
    }

    fn turns(
        &mut self,
        names: &'m [Arc<str>],
        source: Value<'m>,
        body: &'m Body,
        place: Place,
        out: &mut String,
    ) -> Res<End<'m>> {
        let current = self.current;
        let length = source.length();
        let mut at = 0;
        let empty =
            Loop { names, pending: false, source: source.clone(), item: None, key: None, at: 0, last: false };
        self.locals[current].loops.push(empty);
        let mut end = End::Normal;
        while let Some(item) = source.item(at) {
            let (key, item) = match &item {
                Value::List(pair) if names.len() == 2 => (pair.first().cloned(), pair.get(1).cloned()),
                _ => (None, Some(item)),
            };
            if let Some(turn) = self.locals[current].loops.last_mut() {
                (turn.key, turn.item, turn.at) = (key, item, at);
                turn.last = length.is_some_and(|length| at + 1 == length);
            }
            self.spend(2, place)?;
            match self.inner(body, place, out)? {
                End::Normal | End::Continue => {}
                End::Break => break,
                other => {
                    end = other;
                    break;
                }
            }
            at += 1;
        }
        self.locals[current].loops.pop();
        Ok(end)
    }

    // Variables.

    fn lookup(&mut self, name: &'m str) -> Res<Option<Value<'m>>> {
        if let Some((_, value)) = self.lambdas.iter().rev().find(|(own, _)| &***own == name) {
            return Ok(Some(value.clone()));
        }
        if let Some(at) = self.escaped.iter().rposition(|(own, _)| *own == name) {
            // What stands for the name is not within this escape.
            let inside = self.escaped.split_off(at);
            let value = self.eval(inside[0].1);
            self.escaped.extend(inside);
            return value;
        }
        let local = &self.locals[self.current];
        for turn in local.loops.iter().rev() {
            match turn.names {
                [own] if &**own == name => return Ok(turn.item.clone()),
                [key, _] if &**key == name => return Ok(turn.key.clone()),
                [_, own] if &**own == name => return Ok(turn.item.clone()),
                [own, ..] => {
                    let state = name.strip_prefix(&**own);
                    match state {
                        Some("_index") => return Ok(Some(Value::int(turn.at))),
                        Some("_has_next") => return Ok(Some(Value::Boolean(!turn.last))),
                        _ => {}
                    }
                }
                [] => {}
            }
        }
        let of = |all: &[(Arc<str>, Value<'m>)]| {
            all.iter().rev().find(|(own, _)| &**own == name).map(|(_, value)| value.clone())
        };
        if let Some(value) =
            of(&local.variables).or_else(|| of(&self.variables)).or_else(|| of(&self.globals))
        {
            return Ok(Some(value));
        }
        let template = self.template;
        if let Some(own) = template.macros.get(name) {
            return Ok(Some(Value::Macro(own)));
        }
        let model = self.model;
        Ok(model.iter().find(|(own, _)| *own == name).and_then(|(_, model)| Value::of_model(model)))
    }

    fn set(&mut self, scope: Scope, name: &Arc<str>, value: Value<'m>) {
        let all = match scope {
            Scope::Local => &mut self.locals[self.current].variables,
            Scope::Namespace => &mut self.variables,
            Scope::Global => &mut self.globals,
        };
        match all.iter_mut().find(|(own, _)| own == name) {
            Some((_, own)) => *own = value,
            None => all.push((Arc::clone(name), value)),
        }
    }

    fn assigned(&mut self, scope: Scope, target: &'m Target, expr: &'m Expr) -> Res<Value<'m>> {
        let value = self.value(expr)?;
        let Some(with) = target.with else { return Ok(value) };
        let all = match scope {
            Scope::Local => &self.locals[self.current].variables,
            Scope::Namespace => &self.variables,
            Scope::Global => &self.globals,
        };
        let old = all.iter().find(|(own, _)| *own == target.name).map(|(_, value)| value.clone());
        let old = old.ok_or_else(|| missing(&target.name, target.place))?;
        self.arithmetic(with, old, value, (expr, expr), target.place)
    }

    /// The loop whose variable an expression names.
    pub fn turn(&self, expr: &Expr) -> Res<(usize, bool)> {
        let turn = match &expr.kind {
            Kind::Variable(name) => {
                let named = |own: &&Loop<'m>| own.names.iter().any(|own| own == name);
                self.locals[self.current].loops.iter().rev().find(named)
            }
            _ => None,
        };
        turn.map(|turn| (turn.at, turn.last)).ok_or_else(|| {
            Error::new(format!("`{}` is no variable of a loop around this", shown(expr)), expr.place)
        })
    }

    // Macros and functions.

    fn call(&mut self, call: &'m MacroCall, out: &mut String) -> Res<End<'m>> {
        let target = self.value(&call.target)?;
        let Value::Macro(called) = target else {
            return Err(Error::new(
                format!("`{}` is {} and no macro", shown(&call.target), target.what()),
                call.place,
            ));
        };
        if called.function {
            return Err(Error::new(format!("`{}` is a function and no macro", called.name), call.place));
        }
        let mut given = Vec::new();
        for (at, expr) in call.positional.iter().enumerate() {
            let value = self.value(expr)?;
            given.push((called.parameters.get(at).map(|(name, _)| name), value));
        }
        for (name, expr) in &call.named {
            let value = self.value(expr)?;
            given.push((Some(name), value));
        }
        let nested = Nested { body: call.body.as_ref(), names: &call.loop_variables, scope: self.current };
        self.enter(called, given, Some(nested), call.place, out).map(|_| End::Normal)
    }

    /// Runs a macro or function with its arguments, and gives what it returns.
    fn enter(
        &mut self,
        called: &'m crate::ast::Macro,
        given: Vec<(Option<&'m Arc<str>>, Value<'m>)>,
        nested: Option<Nested<'m>>,
        place: Place,
        out: &mut String,
    ) -> Res<Option<Value<'m>>> {
        self.calls += 1;
        if self.calls > MAX_CALLS {
            let message =
                format!("macros and functions call each other more than {MAX_CALLS} deep (call depth)");
            return Err(Error::fatal(message, place));
        }
        let mut variables: Vec<(Arc<str>, Value<'m>)> = Vec::new();
        let (mut rest, mut named_rest) = (Vec::new(), Hash::default());
        for (name, value) in given {
            match name {
                Some(name) if called.parameters.iter().any(|(own, _)| own == name) => {
                    variables.push((Arc::clone(name), value));
                }
                Some(name) if called.rest.is_some() => named_rest.set(Text::Made(Rc::from(&**name)), value),
                Some(name) => {
                    return Err(Error::new(format!("`{}` has no parameter `{name}`", called.name), place));
                }
                None if called.rest.is_some() => rest.push(value),
                None => {
                    return Err(Error::new(
                        format!("`{}` has only {} parameters", called.name, called.parameters.len()),
                        place,
                    ));
                }
            }
        }
        if let Some(name) = &called.rest {
            let value = match named_rest.members.is_empty() {
                true => Value::List(Rc::new(rest)),
                false => Value::Hash(Rc::new(named_rest)),
            };
            variables.push((Arc::clone(name), value));
        }
        let before = self.current;
        self.locals.push(Local { variables, loops: Vec::new(), nested });
        self.current = self.locals.len() - 1;
        // Defaults see the parameters, also those behind them.
        for (name, default) in &called.parameters {
            if self.locals[self.current].variables.iter().any(|(own, _)| own == name) {
                continue;
            }
            let value = match default {
                Some(default) => self.value(default)?,
                None => {
                    return Err(Error::new(
                        format!("`{}` is called without its parameter `{name}`", called.name),
                        place,
                    ));
                }
            };
            self.set(Scope::Local, name, value);
        }
        let end = self.inner(&called.body, place, out)?;
        self.locals.pop();
        self.current = before;
        self.calls -= 1;
        Ok(match end {
            End::Return(value) => value,
            _ => None,
        })
    }

    fn nested(&mut self, arguments: &'m [Expr], place: Place, out: &mut String) -> Res<End<'m>> {
        let mut values = Vec::with_capacity(arguments.len());
        for expr in arguments {
            values.push(self.value(expr)?);
        }
        let Some(nested) = self.locals[self.current].nested else { return Ok(End::Normal) };
        let Some(body) = nested.body else { return Ok(End::Normal) };
        let before = std::mem::replace(&mut self.current, nested.scope);
        let loops = self.locals[nested.scope].loops.len();
        for (name, value) in nested.names.iter().zip(values) {
            self.locals[nested.scope].loops.push(Loop {
                names: std::slice::from_ref(name),
                pending: false,
                source: Value::Boolean(false),
                item: Some(value),
                key: None,
                at: 0,
                last: true,
            });
        }
        let end = self.inner(body, place, out);
        self.locals[nested.scope].loops.truncate(loops);
        self.current = before;
        // A loop within is its own; one around is not left from here.
        end.map(|_| End::Normal)
    }

    fn function(&mut self, target: &'m Expr, arguments: &'m [Expr], place: Place) -> Res<Option<Value<'m>>> {
        let Value::Macro(called) = self.value(target)? else {
            return Err(Error::new(format!("`{}` is no function", shown(target)), place));
        };
        if !called.function {
            return Err(Error::new(format!("`{}` is a macro and no function", called.name), place));
        }
        let mut given = Vec::with_capacity(arguments.len());
        for (at, expr) in arguments.iter().enumerate() {
            let value = self.value(expr)?;
            given.push((called.parameters.get(at).map(|(name, _)| name), value));
        }
        self.enter(called, given, None, place, &mut String::new())
    }

    // Expressions.

    /// The value of an expression, which must be there.
    pub fn value(&mut self, expr: &'m Expr) -> Res<Value<'m>> {
        match self.eval(expr)? {
            Some(value) => Ok(value),
            None => Err(missing(&shown(expr), expr.place)),
        }
    }

    /// The value of an expression; `None`: it is missing.
    pub fn eval(&mut self, expr: &'m Expr) -> Res<Option<Value<'m>>> {
        match &expr.kind {
            Kind::Text(text) => return Ok(Some(Value::Text(Text::Lent(text)))),
            Kind::Number(number) => return Ok(Some(Value::Number(*number))),
            Kind::Variable(name) => {
                self.spend(1, expr.place)?;
                return self.lookup(name);
            }
            _ => {}
        }
        self.deeper(expr.place, |own| own.eval_deeper(expr))
    }

    fn eval_deeper(&mut self, expr: &'m Expr) -> Res<Option<Value<'m>>> {
        let place = expr.place;
        Ok(Some(match &expr.kind {
            Kind::Text(_) | Kind::Number(_) | Kind::Variable(_) => return self.eval(expr),
            Kind::Boolean(is) => Value::Boolean(*is),
            Kind::Parts(pieces) => {
                let mut out = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(text) => out.push_str(text),
                        Piece::Expr(expr) => out.push_str(&self.text(expr)?),
                    }
                    if out.len() > self.limit {
                        return Err(self.too_large(place));
                    }
                }
                self.make(out.len(), place)?;
                Value::made(out)
            }
            Kind::List(items) => {
                self.make_items(items.len(), place)?;
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.push(self.value(item)?);
                }
                Value::List(Rc::new(list))
            }
            Kind::Hash(members) => {
                self.make_items(members.len() * 2, place)?;
                let mut hash = Hash::default();
                for (key, value) in members {
                    let key = self.text(key)?;
                    let value = self.value(value)?;
                    hash.set(key, value);
                }
                Value::Hash(Rc::new(hash))
            }
            Kind::Special(special) => return self.special(*special),
            Kind::Dot(base, name) => {
                let value = self.value(base)?;
                return self.member(&value, base, name);
            }
            Kind::Index(base, index) => {
                let value = self.value(base)?;
                let key = self.value(index)?;
                return self.index(value, key, base, index);
            }
            Kind::Call(target, arguments) => return self.function(target, arguments, place),
            Kind::BuiltIn(base, name, arguments) => {
                return built_in::call(self, base, name, arguments, place);
            }
            Kind::Lambda(..) => {
                return Err(Error::new("`->` stands only in the arguments of built-ins like `?map`", place));
            }
            Kind::Default(base, default) => {
                let value = self.optional(base)?;
                return match (value, default) {
                    (Some(value), _) => Ok(Some(value)),
                    (None, Some(default)) => self.eval(default),
                    (None, None) => Ok(Some(Value::Empty)),
                };
            }
            Kind::Exists(base) => Value::Boolean(self.optional(base)?.is_some()),
            Kind::Paren(inner) => return self.eval(inner),
            Kind::Escaped(name, escape, inner) => {
                self.escaped.push((name, inner));
                let value = self.eval(escape)?;
                self.escaped.pop();
                return Ok(value);
            }
            Kind::Not(inner) => Value::Boolean(!self.truth(inner)?),
            Kind::Negate(inner) => Value::Number(self.number(inner)?.negate()),
            Kind::Plus(inner) => Value::Number(self.number(inner)?),
            Kind::Arithmetic(op, a, b) => {
                let left = self.value(a)?;
                let right = self.value(b)?;
                self.arithmetic(*op, left, right, (a, b), place)?
            }
            Kind::Compare(op, a, b) => {
                let left = self.value(a)?;
                let right = self.value(b)?;
                Value::Boolean(self.compare(*op, &left, &right).map_err(|why| Error::new(why, place))?)
            }
            Kind::And(a, b) => Value::Boolean(self.truth(a)? && self.truth(b)?),
            Kind::Or(a, b) => Value::Boolean(self.truth(a)? || self.truth(b)?),
            Kind::Range(from, end, to) => {
                let from = self.number(from)?.to_i64();
                let to = match to {
                    Some(to) => Some(self.number(to)?.to_i64()),
                    None => None,
                };
                Value::Range(range(from, *end, to))
            }
        }))
    }

    /// For `!` and `??`: what is missing in the last step is no error, in brackets what is missing anywhere.
    pub fn optional(&mut self, expr: &'m Expr) -> Res<Option<Value<'m>>> {
        let (depth, locals, escaped) = (self.depth, self.locals.len(), self.escaped.len());
        match (self.eval(expr), &expr.kind) {
            (Err(error), Kind::Paren(_)) if error.missing => {
                self.depth = depth;
                self.locals.truncate(locals);
                self.escaped.truncate(escaped);
                Ok(None)
            }
            (value, _) => value,
        }
    }

    fn special(&mut self, special: Special) -> Res<Option<Value<'m>>> {
        Ok(Some(match special {
            Special::Now => {
                let now = *self.now.get_or_insert_with(|| {
                    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                    since.map_or(0, |since| since.as_millis() as i64)
                });
                match Moment::of(now) {
                    Ok(moment) => Value::Date(Rc::new(moment), Some(now), DateKind::DateTime),
                    Err(_) => return Ok(None),
                }
            }
            Special::Variables => {
                let mut hash = Hash::default();
                let model = self.model;
                for (name, model) in model {
                    if let Some(value) = Value::of_model(model) {
                        hash.set(Text::Lent(name), value);
                    }
                }
                for (name, value) in self.globals.iter().chain(&self.variables) {
                    hash.set(Text::Made(Rc::from(&**name)), value.clone());
                }
                Value::Hash(Rc::new(hash))
            }
            Special::Error => match self.recovered.last() {
                Some(message) => Value::made(message.as_str()),
                None => return Ok(None),
            },
            Special::Locale => Value::Text(Text::Lent("en_US")),
            Special::Lang => Value::Text(Text::Lent("en")),
            Special::Version => Value::Text(Text::Lent("2.3.30")),
            Special::TemplateName => Value::Text(Text::Lent("template")),
            Special::OutputFormat => Value::Text(Text::Lent(match self.escape {
                Escape::None => "undefined",
                Escape::Xml => "XML",
                Escape::Html => "HTML",
            })),
            Special::AutoEscape => Value::Boolean(self.escape != Escape::None),
        }))
    }

    fn member(&mut self, value: &Value<'m>, base: &'m Expr, name: &str) -> Res<Option<Value<'m>>> {
        match value {
            Value::Nodes(document, all) => {
                let prefixes = &self.template.prefixes;
                let fatal = |why: String| match meter::stopped() {
                    Some(stop) => Error::fatal(stop.to_string(), base.place),
                    None => Error::new(why, base.place),
                };
                self.spend(1 + all.len(), base.place)?;
                nodes::member(document, all, name, prefixes).map_err(fatal)
            }
            value if value.is_hash() => Ok(value.member(name)),
            other => Err(Error::new(
                format!("Expected a hash, but `{}` is {}", shown(base), other.what()),
                base.place,
            )),
        }
    }

    fn index(
        &mut self,
        value: Value<'m>,
        key: Value<'m>,
        base: &'m Expr,
        index: &'m Expr,
    ) -> Res<Option<Value<'m>>> {
        match key {
            Value::Number(number) => {
                let at = number.to_i64();
                if value.is_sequence() {
                    return Ok(usize::try_from(at).ok().and_then(|at| value.item(at)));
                }
                let text = self.text_of(&value, base)?;
                let letter = usize::try_from(at).ok().and_then(|at| text.chars().nth(at));
                match letter {
                    Some(letter) => Ok(Some(Value::made(letter.to_string()))),
                    None => Err(Error::new(format!("the string has no character {at}"), index.place)),
                }
            }
            Value::Range(range) => self.slice(value, range, base, index.place).map(Some),
            Value::Text(name) => self.member(&value, base, &name),
            Value::Nodes(..) => {
                let name = self.text_of(&key, index)?;
                self.member(&value, base, &name)
            }
            other => Err(Error::new(
                format!("Expected a number, a string or a range between brackets, found {}", other.what()),
                index.place,
            )),
        }
    }

    fn slice(&mut self, value: Value<'m>, range: Range, base: &'m Expr, place: Place) -> Res<Value<'m>> {
        let sequence = value.is_sequence();
        let text = if sequence { None } else { Some(self.text_of(&value, base)?) };
        let length = match &text {
            Some(text) => text.chars().count(),
            None => value.length().unwrap_or(usize::MAX),
        };
        let out_of = || Error::new(format!("the range lies outside of what has a length of {length}"), place);
        if range.length == Some(0) {
            return Ok(if sequence { Value::List(Rc::default()) } else { Value::Text(Text::Lent("")) });
        }
        let from = usize::try_from(range.from).map_err(|_| out_of())?;
        let open = range.length.is_none();
        if from > length || from == length && !(open || range.lenient) {
            return Err(out_of());
        }
        let left = if range.step > 0 { length - from } else { from + 1 };
        let count = match range.length {
            Some(count) if count > left && range.lenient => left,
            Some(count) if count > left => return Err(out_of()),
            Some(count) => count,
            None => left,
        };
        if let Some(text) = text {
            if range.step < 0 && count > 1 {
                return Err(Error::new("a slice of a string goes forward", place));
            }
            let cut: String = text.chars().skip(from).take(count).collect();
            self.make(cut.len(), place)?;
            return Ok(Value::made(cut));
        }
        if count > MAX_RANGE && value.length().is_none() {
            return Err(Error::new(format!("a range of {count} items is too long"), place));
        }
        self.make_items(count, place)?;
        let at = |n: usize| if range.step > 0 { from + n } else { from - n };
        Ok(Value::List(Rc::new((0..count).filter_map(|n| value.item(at(n))).collect())))
    }

    fn arithmetic(
        &mut self,
        op: Arithmetic,
        left: Value<'m>,
        right: Value<'m>,
        from: (&'m Expr, &'m Expr),
        place: Place,
    ) -> Res<Value<'m>> {
        if let (Value::Number(a), Value::Number(b)) = (&left, &right) {
            let result = match op {
                Arithmetic::Add => Some(a.add(*b)),
                Arithmetic::Subtract => Some(a.subtract(*b)),
                Arithmetic::Multiply => Some(a.multiply(*b)),
                Arithmetic::Divide => a.divide(*b),
                Arithmetic::Modulo => a.modulo(*b),
            };
            return result.map(Value::Number).ok_or_else(|| Error::new("a division by zero", place));
        }
        if op != Arithmetic::Add {
            let (value, expr) =
                if matches!(left, Value::Number(_)) { (&right, from.1) } else { (&left, from.0) };
            return Err(Error::new(
                format!("Expected a number, but `{}` is {}", shown(expr), value.what()),
                expr.place,
            ));
        }
        let scalar = |value: &Value<'m>| {
            !matches!(
                value,
                Value::List(_) | Value::Range(_) | Value::Json(_) | Value::Hash(_) | Value::Model(_)
            )
        };
        if !scalar(&left) && !scalar(&right) {
            if left.is_sequence() && right.is_sequence() {
                let mut items = self.list_of(&left, place)?;
                items.extend(self.list_of(&right, place)?);
                self.make_items(items.len(), place)?;
                return Ok(Value::List(Rc::new(items)));
            }
            if let (Some(first), Some(second)) = (left.keys(), right.keys()) {
                self.make_items((first.len() + second.len()) * 2, place)?;
                let mut hash = Hash::default();
                for (keys, of) in [(first, &left), (second, &right)] {
                    for key in keys {
                        if let Value::Text(name) = key
                            && let Some(value) = of.member(&name)
                        {
                            hash.set(name, value);
                        }
                    }
                }
                return Ok(Value::Hash(Rc::new(hash)));
            }
        }
        let a = self.text_of(&left, from.0)?;
        let b = self.text_of(&right, from.1)?;
        self.make(a.len() + b.len(), place)?;
        let mut sum = String::with_capacity(a.len() + b.len());
        sum.push_str(&a);
        sum.push_str(&b);
        Ok(match (&left, &right) {
            (Value::Markup(_), _) | (_, Value::Markup(_)) => Value::Markup(Text::Made(sum.into())),
            _ => Value::made(sum),
        })
    }

    /// The items of a sequence.
    pub fn list_of(&mut self, value: &Value<'m>, place: Place) -> Res<Vec<Value<'m>>> {
        let length = match (value, value.length()) {
            (_, None) => return Err(Error::new("a range without an end cannot be put together", place)),
            (Value::Range(_), Some(length)) if length > MAX_RANGE => {
                return Err(Error::new(format!("a range of {length} items is too long"), place));
            }
            (_, Some(length)) => length,
        };
        self.make_items(length, place)?;
        Ok((0..length).filter_map(|at| value.item(at)).collect())
    }

    /// Whether two values are equal; `None`: they cannot be compared.
    pub fn equal(&self, a: &Value<'m>, b: &Value<'m>) -> Option<bool> {
        self.compare(Compare::Equal, a, b).ok()
    }

    fn compare(&self, op: Compare, a: &Value<'m>, b: &Value<'m>) -> Result<bool, String> {
        let order = self.order(a, b, matches!(op, Compare::Equal | Compare::NotEqual))?;
        Ok(match (op, order) {
            (Compare::NotEqual, None) => true,
            (_, None) => false,
            (Compare::Equal, Some(order)) => order == Ordering::Equal,
            (Compare::NotEqual, Some(order)) => order != Ordering::Equal,
            (Compare::Less, Some(order)) => order == Ordering::Less,
            (Compare::LessOrEqual, Some(order)) => order != Ordering::Greater,
            (Compare::Greater, Some(order)) => order == Ordering::Greater,
            (Compare::GreaterOrEqual, Some(order)) => order != Ordering::Less,
        })
    }

    fn order(&self, a: &Value<'m>, b: &Value<'m>, equality: bool) -> Result<Option<Ordering>, String> {
        let text = |value: &Value<'m>| -> Option<Result<Text<'m>, String>> {
            match value {
                Value::Text(text) | Value::Markup(text) => Some(Ok(text.clone())),
                Value::Empty => Some(Ok(Text::Lent(""))),
                Value::Nodes(document, nodes) => Some(text_of_nodes(document, nodes).map(Text::from)),
                _ => None,
            }
        };
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => return Ok(a.compare(*b)),
            (Value::Date(a, x, _), Value::Date(b, y, _)) => {
                if let (Some(x), Some(y)) = (x, y) {
                    return Ok(Some(x.cmp(y)));
                }
                let shown = |moment: &Moment| sortable(moment);
                return Ok(Some(shown(a).cmp(&shown(b))));
            }
            (Value::Boolean(a), Value::Boolean(b)) if equality => return Ok(Some(a.cmp(b))),
            _ => {}
        }
        if let (true, Some(a), Some(b)) = (equality, text(a), text(b)) {
            let (a, b) = (a?, b?);
            meter::spend(a.len() as u64 >> 6).map_err(|stop| stop.to_string())?;
            return Ok(Some((*a).cmp(&*b)));
        }
        Err(format!("{} and {} cannot be compared here", a.what(), b.what()))
    }

    // Conversions.

    pub fn truth(&mut self, expr: &'m Expr) -> Res<bool> {
        match self.value(expr)? {
            Value::Boolean(is) => Ok(is),
            other => Err(Error::new(
                format!("Expected a boolean, but `{}` is {}", shown(expr), other.what()),
                expr.place,
            )),
        }
    }

    pub fn number(&mut self, expr: &'m Expr) -> Res<Number> {
        match self.value(expr)? {
            Value::Number(number) => Ok(number),
            other => Err(Error::new(
                format!("Expected a number, but `{}` is {}", shown(expr), other.what()),
                expr.place,
            )),
        }
    }

    pub fn text(&mut self, expr: &'m Expr) -> Res<Text<'m>> {
        let value = self.value(expr)?;
        self.text_of(&value, expr)
    }

    /// A value as it is written.
    pub fn text_of(&self, value: &Value<'m>, expr: &Expr) -> Res<Text<'m>> {
        let made = |text: String| Text::Made(text.into());
        Ok(match value {
            Value::Text(text) | Value::Markup(text) => text.clone(),
            Value::Empty => Text::Lent(""),
            Value::Number(number) => made(self.number_text(*number)),
            Value::Boolean(is) if let Some((yes, no)) = &self.boolean_format => {
                made(if *is { yes } else { no }.clone())
            }
            Value::Boolean(_) => {
                return Err(Error::new(
                    format!(
                        "`{}` is a boolean, which has no text of its own: write it with ?c or ?string",
                        shown(expr)
                    ),
                    expr.place,
                ));
            }
            Value::Date(moment, _, kind) => made(self.date_text(moment, *kind, None, expr.place)?),
            Value::Nodes(document, nodes) => text_of_nodes(document, nodes)
                .map_err(|why| Error::new(format!("`{}`: {why}", shown(expr)), expr.place))?
                .into(),
            other => {
                return Err(Error::new(
                    format!(
                        "Expected a string or what can be written as one, but `{}` is {}",
                        shown(expr),
                        other.what()
                    ),
                    expr.place,
                ));
            }
        })
    }

    pub fn number_text(&self, number: Number) -> String {
        match &self.number_format {
            Some(format) => number.formatted(format),
            None => number.for_people(),
        }
    }

    pub fn boolean_text(&self, is: bool) -> String {
        match &self.boolean_format {
            Some((yes, no)) => if is { yes } else { no }.clone(),
            None => is.to_string(),
        }
    }

    pub fn date_text(
        &self,
        moment: &Moment,
        kind: DateKind,
        format: Option<&str>,
        place: Place,
    ) -> Res<String> {
        let (at, default) = match kind {
            DateKind::Date => (0, "MMM d, yyyy"),
            DateKind::Time => (1, "h:mm:ss a"),
            DateKind::DateTime => (2, "MMM d, yyyy h:mm:ss a"),
        };
        let pattern = format.or(self.date_formats[at].as_deref()).unwrap_or(default);
        let pattern = match pattern {
            "iso" | "xs" => match kind {
                DateKind::Date => "yyyy-MM-dd",
                DateKind::Time => "HH:mm:ssXXX",
                DateKind::DateTime => "yyyy-MM-dd'T'HH:mm:ssXXX",
            },
            other => other,
        };
        let compiled = DatePattern::simple(pattern);
        let written = compiled.and_then(|pattern| pattern.format(moment));
        written.map_err(|why| Error::new(format!("the date cannot be written by `{pattern}`: {why}"), place))
    }

    /// Runs a lambda or a function on arguments, for built-ins like `?map`.
    pub fn apply(&mut self, with: &'m Expr, values: &[Value<'m>]) -> Res<Value<'m>> {
        match &with.kind {
            Kind::Lambda(names, body) => {
                let before = self.lambdas.len();
                self.lambdas.extend(names.iter().zip(values.iter().cloned()));
                let value = self.value(body);
                self.lambdas.truncate(before);
                value
            }
            _ => {
                let Value::Macro(called) = self.value(with)? else {
                    return Err(Error::new(format!("`{}` is no function", shown(with)), with.place));
                };
                let given = values.iter().enumerate();
                let given = given
                    .map(|(at, value)| (called.parameters.get(at).map(|(name, _)| name), value.clone()))
                    .collect();
                let value = self.enter(called, given, None, with.place, &mut String::new())?;
                value.ok_or_else(|| Error::new(format!("`{}` returns nothing", called.name), with.place))
            }
        }
    }

    fn setting(&mut self, name: &str, value: &'m Expr) -> Res<()> {
        let own = self.value(value)?;
        let text = match &own {
            Value::Boolean(is) => is.to_string(),
            own => self.text_of(own, value)?.to_string(),
        };
        let wrong = |what: &str| Err(Error::new(format!("`{text}` is no {what}"), value.place));
        match name {
            "number_format" => match number_format(&text) {
                Some(format) => self.number_format = format,
                None => return wrong("format of numbers"),
            },
            "boolean_format" => match text.split_once(',') {
                Some((yes, no)) => self.boolean_format = Some((yes.to_owned(), no.to_owned())),
                None if text == "c" => self.boolean_format = Some(("true".into(), "false".into())),
                None => return wrong("pair of words for true and false"),
            },
            "date_format" => self.date_formats[0] = Some(text),
            "time_format" => self.date_formats[1] = Some(text),
            "datetime_format" => self.date_formats[2] = Some(text),
            "locale"
            | "time_zone"
            | "sql_date_and_time_time_zone"
            | "url_escaping_charset"
            | "output_encoding"
            | "classic_compatible" => {}
            _ => return Err(Error::new(format!("there is no setting `{name}`"), value.place)),
        }
        Ok(())
    }
}

/// A format of numbers by its name or pattern; inside `None`: the default one.
pub(crate) fn number_format(text: &str) -> Option<Option<Format>> {
    let plain = |most| Format { whole: 1, most, ..Format::default() };
    Some(match text {
        "number" => None,
        "computer" | "c" => Some(plain(16)),
        "percent" => {
            Some(Format { whole: 1, group: Some(3), shift: 2, suffix: "%".into(), ..Format::default() })
        }
        "currency" => Some(Format {
            whole: 1,
            least: 2,
            most: 2,
            group: Some(3),
            prefix: "$".into(),
            ..Format::default()
        }),
        pattern => Some(Format::parse(pattern)?),
    })
}

fn sortable(moment: &Moment) -> String {
    ["yyyy-MM-dd'T'HH:mm:ss.SSS", "yyyy-MM-dd", "HH:mm:ss.SSS"]
        .iter()
        .find_map(|pattern| DatePattern::simple(pattern).ok()?.format(moment).ok())
        .unwrap_or_default()
}

pub(crate) fn range(from: i64, end: RangeEnd, to: Option<i64>) -> Range {
    let Some(to) = to else { return Range { from, step: 1, length: None, lenient: false } };
    let (step, count) = match end {
        RangeEnd::Inclusive => (if to >= from { 1 } else { -1 }, from.abs_diff(to).saturating_add(1)),
        RangeEnd::Exclusive => (if to >= from { 1 } else { -1 }, from.abs_diff(to)),
        RangeEnd::Length => (if to >= 0 { 1 } else { -1 }, to.unsigned_abs()),
    };
    let length = usize::try_from(count).unwrap_or(usize::MAX);
    Range { from, step, length: Some(length), lenient: end == RangeEnd::Length }
}

pub(crate) fn missing(what: &str, place: Place) -> Error {
    let message = format!("`{what}` is null or missing; give it a default with `!` or ask with `??`");
    Error { missing: true, ..Error::new(message, place) }
}

/// An expression for a message.
pub(crate) fn shown(expr: &Expr) -> String {
    match &expr.kind {
        Kind::Variable(name) => name.to_string(),
        Kind::Dot(base, name) => format!("{}.{name}", shown(base)),
        Kind::Index(base, index) => match &index.kind {
            Kind::Text(key) => format!("{}[\"{key}\"]", shown(base)),
            Kind::Number(at) => format!("{}[{}]", shown(base), at.computer()),
            _ => format!("{}[…]", shown(base)),
        },
        Kind::BuiltIn(base, name, _) => format!("{}?{name}", shown(base)),
        Kind::Call(base, _) => format!("{}(…)", shown(base)),
        Kind::Paren(inner) => format!("({})", shown(inner)),
        Kind::Text(text) => format!("\"{text}\""),
        Kind::Number(number) => number.computer(),
        _ => "…".to_owned(),
    }
}

/// Runs of white space as one space, or one line break where there was one.
fn compressed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank: Option<char> = None;
    for c in text.chars() {
        if c.is_whitespace() {
            let breaks = matches!(c, '\n' | '\r') || blank == Some('\n');
            blank = Some(if breaks { '\n' } else { ' ' });
        } else {
            out.extend(blank.take());
            out.push(c);
        }
    }
    out.extend(blank);
    out
}
