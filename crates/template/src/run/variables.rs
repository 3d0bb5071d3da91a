//! The variables of a template: scopes, loops, macros and functions, and what an error leaves of them.

use super::{End, Local, Loop, MAX_CALLS, Mark, Nested, Res, Run, missing, shown};
use crate::ast::{Error, Expr, ExprKind, MacroCall, Place, Scope, Target};
use crate::value::{Hash, Text, Value};
use std::rc::Rc;
use std::sync::Arc;

impl<'m> Run<'m> {
    pub(super) fn lookup(&mut self, name: &'m str) -> Res<Option<Value<'m>>> {
        if let Some((_, value)) = self.lambdas.iter().rev().find(|(parameter, _)| &***parameter == name) {
            return Ok(value.clone().present());
        }
        if let Some(at) = self.escaped.iter().rposition(|(escaped, _)| *escaped == name) {
            // What stands for the name is not within this escape.
            let inside = self.escaped.split_off(at);
            let value = self.eval(inside[0].1);
            self.escaped.extend(inside);
            return value;
        }
        let local = &self.locals[self.current];
        for turn in local.loops.iter().rev() {
            match turn.names {
                [variable] if &**variable == name => return Ok(turn.item.clone()),
                [key, _] if &**key == name => return Ok(turn.key.clone()),
                [_, variable] if &**variable == name => return Ok(turn.item.clone()),
                [variable, ..] => {
                    let state = name.strip_prefix(&**variable);
                    match state {
                        Some("_index") => return Ok(Some(Value::int(turn.at))),
                        Some("_has_next") => return Ok(Some(Value::Boolean(!turn.last))),
                        _ => {}
                    }
                }
                [] => {}
            }
        }
        let of = |variables: &[(Arc<str>, Value<'m>)]| {
            variables.iter().rev().find(|(key, _)| &**key == name).map(|(_, value)| value.clone())
        };
        if let Some(value) =
            of(&local.variables).or_else(|| of(&self.variables)).or_else(|| of(&self.globals))
        {
            return Ok(Some(value));
        }
        let template = self.template;
        if let Some(definition) = template.macros.get(name) {
            return Ok(Some(Value::Macro(definition)));
        }
        let model = self.model;
        Ok(model.iter().find(|(key, _)| *key == name).and_then(|(_, model)| Value::of_model(model)))
    }

    pub(super) fn set(&mut self, scope: Scope, name: &Arc<str>, value: Value<'m>) {
        let variables = match scope {
            Scope::Local => &mut self.locals[self.current].variables,
            Scope::Namespace => &mut self.variables,
            Scope::Global => &mut self.globals,
        };
        match variables.iter_mut().find(|(key, _)| key == name) {
            Some((_, held)) => *held = value,
            None => variables.push((Arc::clone(name), value)),
        }
    }

    pub(super) fn assigned(&mut self, scope: Scope, target: &'m Target, expr: &'m Expr) -> Res<Value<'m>> {
        let value = self.value(expr)?;
        let Some(with) = target.with else { return Ok(value) };
        let variables = match scope {
            Scope::Local => &self.locals[self.current].variables,
            Scope::Namespace => &self.variables,
            Scope::Global => &self.globals,
        };
        let old = variables.iter().find(|(key, _)| *key == target.name).map(|(_, value)| value.clone());
        let old = old.ok_or_else(|| missing(&target.name, target.place))?;
        self.arithmetic(with, old, value, (expr, expr), target.place)
    }

    /// The loop whose variable an expression names.
    pub fn turn(&self, expr: &Expr) -> Res<(usize, bool)> {
        let turn = match &expr.kind {
            ExprKind::Variable(name) => {
                let named = |turn: &&Loop<'m>| turn.names.iter().any(|variable| variable == name);
                self.locals[self.current].loops.iter().rev().find(named)
            }
            _ => None,
        };
        turn.map(|turn| (turn.at, turn.last)).ok_or_else(|| {
            Error::new(format!("`{}` is not a variable of a loop around this", shown(expr)), expr.place)
        })
    }

    pub(super) fn call(&mut self, call: &'m MacroCall, out: &mut String) -> Res<End<'m>> {
        let target = self.value(&call.target)?;
        let Value::Macro(called) = target else {
            return Err(Error::new(
                format!("`{}` is {} and not a macro", shown(&call.target), target.what()),
                call.place,
            ));
        };
        if called.function {
            return Err(Error::new(format!("`{}` is a function and not a macro", called.name), call.place));
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
    pub(super) fn enter(
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
                Some(name) if called.parameters.iter().any(|(parameter, _)| parameter == name) => {
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
                true => Value::list(rest),
                false => Value::Hash(Rc::new(named_rest)),
            };
            variables.push((Arc::clone(name), value));
        }
        let before = self.current;
        self.locals.push(Local { variables, loops: Vec::new(), nested });
        self.current = self.locals.len() - 1;
        // Defaults see the parameters, also those behind them.
        for (name, default) in &called.parameters {
            if self.locals[self.current].variables.iter().any(|(variable, _)| variable == name) {
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

    pub(super) fn nested(&mut self, arguments: &'m [Expr], place: Place, out: &mut String) -> Res<End<'m>> {
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

    pub(super) fn function(
        &mut self,
        target: &'m Expr,
        arguments: &'m [Expr],
        place: Place,
    ) -> Res<Option<Value<'m>>> {
        let Value::Macro(called) = self.value(target)? else {
            return Err(Error::new(format!("`{}` is not a function", shown(target)), place));
        };
        if !called.function {
            return Err(Error::new(format!("`{}` is a macro and not a function", called.name), place));
        }
        let mut given = Vec::with_capacity(arguments.len());
        for (at, expr) in arguments.iter().enumerate() {
            let value = self.value(expr)?;
            given.push((called.parameters.get(at).map(|(name, _)| name), value));
        }
        self.enter(called, given, None, place, &mut String::new())
    }

    /// Runs a lambda or a function on arguments, for built-ins like `?map`.
    pub fn apply(&mut self, with: &'m Expr, values: &[Value<'m>]) -> Res<Value<'m>> {
        match &with.kind {
            ExprKind::Lambda(names, body) => {
                let before = self.lambdas.len();
                self.lambdas.extend(names.iter().zip(values.iter().cloned()));
                let value = self.value(body);
                self.lambdas.truncate(before);
                value
            }
            _ => {
                let Value::Macro(called) = self.value(with)? else {
                    return Err(Error::new(format!("`{}` is not a function", shown(with)), with.place));
                };
                let given = values.iter().enumerate();
                let given = given
                    .filter(|(_, value)| !matches!(value, Value::Null))
                    .map(|(at, value)| (called.parameters.get(at).map(|(name, _)| name), value.clone()))
                    .collect();
                let value = self.enter(called, given, None, with.place, &mut String::new())?;
                value.ok_or_else(|| Error::new(format!("`{}` returns nothing", called.name), with.place))
            }
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            depth: self.depth,
            calls: self.calls,
            locals: self.locals.len(),
            current: self.current,
            escaped: self.escaped.len(),
            lambdas: self.lambdas.len(),
        }
    }

    /// Goes on behind an error. Loops that it has left have ended themselves.
    pub(super) fn restore(&mut self, mark: Mark) {
        (self.depth, self.calls, self.current) = (mark.depth, mark.calls, mark.current);
        self.locals.truncate(mark.locals);
        self.escaped.truncate(mark.escaped);
        self.lambdas.truncate(mark.lambdas);
    }
}
