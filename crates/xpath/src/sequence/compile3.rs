//! Syntax tree to plan for the additions of XPath 3.0 and 3.1: functions as values, maps, arrays, lookups.
//!
//! An inline function, a reference to a named one and a partial application have one form: a program of its own whose variables are the
//! captured values, followed by its parameters.

use super::compile::FUNCTIONS;
use super::plan::{Seq, SeqOp};
use crate::ast::{Expr, ExprKind, QName, SequenceType};
use crate::atomic::NameValue;
use crate::compile::{Compiled, Compiler};
use crate::error::{Span, XPathError};
use crate::items::{Code, Signature};
use crate::plan::Op;
use crate::value::Type;
use std::sync::Arc;

fn op(kind: Seq, span: Span) -> Op {
    Op::Sequence(Box::new(SeqOp::new(kind, Type::Any, span)))
}

/// A variable of a function: namespace and local name.
type Local = (Option<String>, String);

impl Compiler<'_> {
    /// An expression that no earlier version has.
    pub(super) fn version3(&mut self, e: &Expr) -> Compiled<Op> {
        let span = e.span;
        let kind = match &e.kind {
            ExprKind::NamedFunction(name, arity) => return self.reference(name, *arity, span),
            ExprKind::Inline(params, result, body) => {
                return self.inline(params, result.as_ref(), body, span);
            }
            ExprKind::Apply(function, args) => {
                let function = self.op(function)?;
                if args.iter().any(|arg| matches!(arg.kind, ExprKind::Placeholder)) {
                    let args = args.iter().map(|arg| match arg.kind {
                        ExprKind::Placeholder => Ok(None),
                        _ => self.op(arg).map(Some),
                    });
                    Seq::Partial(function, args.collect::<Compiled<_>>()?)
                } else {
                    Seq::Apply(function, self.ops(args)?)
                }
            }
            ExprKind::Map(pairs) => {
                let pairs = pairs.iter().map(|(key, value)| Ok((self.op(key)?, self.op(value)?)));
                Seq::NewMap(pairs.collect::<Compiled<_>>()?)
            }
            ExprKind::Array(members) => Seq::NewArray(self.ops(members)?),
            ExprKind::CurlyArray(items) => Seq::ArrayOf(self.op(items)?),
            ExprKind::Lookup(from, key) => {
                let from = self.op(from)?;
                Seq::Lookup(from, key.as_ref().map(|key| self.op(key)).transpose()?)
            }
            ExprKind::Placeholder => {
                return Err(
                    XPathError::new("`?` can only be an argument of a call", span).with_code("XPST0003")
                );
            }
            _ => return Err(XPathError::new("this expression cannot be compiled", span)),
        };
        Ok(op(kind, span))
    }

    pub(super) fn local_name(&self, name: &QName, span: Span) -> Compiled<Local> {
        let uri = match name.prefix.as_str() {
            "" => None,
            prefix => Some(self.namespace(prefix, span)?).filter(|uri| !uri.is_empty()),
        };
        Ok((uri, name.local.clone()))
    }

    /// A function whose variables are `captured`, then `params`.
    fn code(
        &mut self,
        captured: Vec<(Local, Op)>,
        params: Vec<Local>,
        body: &Expr,
        code: impl FnOnce(Arc<crate::compile::Program>, usize) -> Code,
    ) -> Compiled<Op> {
        let arity = params.len();
        let mut inner = Compiler::new(self.options, self.source);
        let (names, ops): (Vec<Local>, Vec<Op>) = captured.into_iter().unzip();
        inner.locals = names;
        inner.locals.extend(params);
        let op_of_body = inner.op(body)?;
        let program = inner.finished(op_of_body);
        self.includes(&program);
        let code = Arc::new(code(Arc::new(program), arity));
        if code.sees_context {
            self.uses.position |= code.program.uses.position;
            self.uses.size |= code.program.uses.size;
        }
        Ok(op(Seq::Function(code, ops.into()), body.span))
    }

    fn inline(
        &mut self,
        params: &[(QName, Option<SequenceType>)],
        result: Option<&SequenceType>,
        body: &Expr,
        span: Span,
    ) -> Compiled<Op> {
        let mut locals = Vec::new();
        let mut types = Vec::new();
        for (name, ty) in params {
            locals.push(self.local_name(name, span)?);
            types.push(ty.as_ref().map(|ty| self.sequence_type(ty)).transpose()?);
        }
        let result = result.map(|ty| self.sequence_type(ty)).transpose()?;
        let signature = Arc::new(Signature { params: types.into(), result });
        // Free variables that exist outside: bound in the function, the name means the captured value.
        let mut names: Vec<(&QName, Span)> = Vec::new();
        body.walk(&mut |e| {
            if let ExprKind::Variable(name) = &e.kind
                && !names.iter().any(|(n, _)| *n == name)
            {
                names.push((name, e.span));
            }
        });
        let mut captured: Vec<(Local, Op)> = Vec::new();
        for (name, span) in names {
            let Ok(local) = self.local_name(name, span) else { continue };
            if locals.contains(&local) || captured.iter().any(|(n, _)| *n == local) {
                continue;
            }
            if let Ok(op) = self.variable(name, span) {
                captured.push((local, op));
            }
        }
        self.code(captured, locals, body, |program, arity| Code {
            name: None,
            arity,
            signature: Some(signature),
            program,
            sees_context: false,
        })
    }

    /// `name#arity`: `function($1, …) { name($1, …) }`, in its place.
    fn reference(&mut self, name: &QName, arity: usize, span: Span) -> Compiled<Op> {
        let params: Vec<Local> = (0..arity).map(|n| (None, n.to_string())).collect();
        let args = params.iter().map(|(_, local)| variable(local, span)).collect();
        let body = Expr { kind: ExprKind::Call(name.clone(), args), span, depth: 2 };
        let full = self.full_name(name);
        let signature = self.declared(&full, arity);
        self.code(Vec::new(), params, &body, |program, arity| Code {
            name: Some(Arc::new(full)),
            arity,
            signature: signature.map(Arc::new),
            program,
            sees_context: true,
        })
    }

    /// The types of an extension function.
    fn declared(&self, name: &NameValue, arity: usize) -> Option<Signature> {
        let uri = Some(&*name.namespace).filter(|uri| !uri.is_empty());
        let types = self.options.library.types(uri, &name.local, arity)?;
        Some(Signature { params: types.params.into(), result: types.result })
    }

    fn full_name(&self, name: &QName) -> NameValue {
        let namespace = match name.prefix.as_str() {
            "" => FUNCTIONS,
            prefix => self.lookup(prefix).unwrap_or(match prefix {
                "xs" => super::types::XSD,
                "fn" => FUNCTIONS,
                _ => "",
            }),
        };
        let usual = super::functions::usual_prefix(namespace);
        let prefix = match name.prefix.as_str() {
            "" => usual,
            prefix if prefix.starts_with('{') => usual,
            prefix => prefix,
        };
        NameValue { prefix: prefix.into(), namespace: namespace.into(), local: name.local.as_str().into() }
    }

    /// `name(a, ?, …)`.
    pub(crate) fn partial_call(&mut self, name: &QName, args: &[Expr], span: Span) -> Compiled<Op> {
        let mut captured = Vec::new();
        let mut params = Vec::new();
        let mut passed = Vec::new();
        for (n, arg) in args.iter().enumerate() {
            let local: Local = (None, n.to_string());
            passed.push(variable(&local.1, span));
            match arg.kind {
                ExprKind::Placeholder => params.push(local),
                _ => captured.push((local, self.op(arg)?)),
            }
        }
        let body = Expr { kind: ExprKind::Call(name.clone(), passed), span, depth: 2 };
        let full = self.full_name(name);
        let named = || super::functions::signature(&full.namespace, &full.local, args.len());
        let types = self.declared(&full, args.len()).map(Arc::new).or_else(named);
        let is_open = |at: usize| matches!(args[at].kind, ExprKind::Placeholder);
        let signature = types.map(|types| Arc::new(types.of_open(is_open)));
        self.code(captured, params, &body, |program, arity| Code {
            name: None,
            arity,
            signature,
            program,
            sees_context: true,
        })
    }
}

/// A variable without a name in the language.
fn variable(local: &str, span: Span) -> Expr {
    let name = QName { prefix: String::new(), local: local.to_owned() };
    Expr { kind: ExprKind::Variable(name), span, depth: 1 }
}
