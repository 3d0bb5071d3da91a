//! What has the same value wherever it is evaluated within an evaluation, as `count(/r/i)` in `//b[@n > count(/r/i)]`. It is found when the
//! expression is compiled, and evaluated once: for each tree, where it reads one.

use crate::atomic::Atomic;
use crate::compile::Compiler;
use crate::error::Span;
use crate::eval::{Eval, Fault, Frame, Tree};
use crate::plan::{From, Op};
use crate::prepared::{Prepared, Rules};
use crate::sequence::plan::{Seq, SeqOp};
use crate::value::Value;
use std::sync::Arc;

/// An operation that is evaluated once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Once {
    number: u32,
    /// It reads the tree of the context node: its value is for this tree.
    reads: bool,
}

/// What is kept of it, and of which tree.
pub(crate) type Kept = (Option<Tree>, What);

pub(crate) enum What {
    Value(Value),
    /// The value, prepared to be compared with.
    Prepared(Arc<Prepared>),
}

impl Compiler<'_> {
    /// `op`, which has no variables of the expression in it and is evaluated again and again: once, where it has the same value each time and costs more than a path, which is
    /// looked through as far as its use needs.
    pub(crate) fn once(&mut self, op: Op) -> Op {
        match &op {
            Op::Sequence(_) | Op::Call(..) | Op::Compare(..) => self.once_compared(op),
            _ => op,
        }
    }

    /// The same for one side of a comparison, which is looked through whole, also where it is a path.
    pub(crate) fn once_compared(&mut self, op: Op) -> Op {
        let is_kept = self.repeated > 0 && is_invariant(&op) && is_work(&op);
        if !is_kept || op.once().is_some() {
            return op;
        }
        let (once, ty, span) = (Once { number: self.kept, reads: reads(&op) }, op.ty(), span_of(&op));
        self.kept += 1;
        Op::Sequence(Box::new(SeqOp::new(Seq::Once(once, op), ty, span)))
    }

    /// Compiles what is evaluated again and again.
    pub(crate) fn repeatedly<T>(&mut self, compile: impl FnOnce(&mut Self) -> T) -> T {
        self.repeated += 1;
        let compiled = compile(self);
        self.repeated -= 1;
        compiled
    }
}

/// Whether `op`, which is in the scope of no variable of the expression, has one value for each tree throughout an evaluation.
pub(crate) fn is_invariant(op: &Op) -> bool {
    match op {
        Op::Number(_) | Op::Text(_) | Op::Variable(..) => true,
        // (A path says so of itself: its predicates have contexts of their own.)
        Op::Path(path) => path.invariant,
        Op::Or(ops) | Op::And(ops) | Op::Union(ops) => ops.iter().all(is_invariant),
        Op::Compare(_, both) | Op::Arithmetic(_, both) => is_invariant(&both.0) && is_invariant(&both.1),
        Op::Negate(a) => is_invariant(a),
        Op::Call(core, args, _) => !core.looks_at_context(args.len()) && args.iter().all(is_invariant),
        Op::Extension(..) | Op::Current(_) => false,
        Op::Sequence(s) => {
            let is_plain = match &s.kind {
                Seq::Call(entry, args) => entry.looks.at_arguments_only(args.len()),
                // (Where a local variable changes, the operation is not steady.)
                Seq::Literal(_)
                | Seq::Local(_)
                | Seq::Comma(_)
                | Seq::Once(..)
                | Seq::Range(..)
                | Seq::If(..)
                | Seq::Value(..)
                | Seq::General(..)
                | Seq::Nodes(..)
                | Seq::Arithmetic(..)
                | Seq::Sign(..)
                | Seq::Without(..)
                | Seq::InstanceOf(..)
                | Seq::Treat(..)
                | Seq::Cast(..)
                | Seq::Castable(..)
                | Seq::Count(_)
                | Seq::Exists(..)
                | Seq::Regex(..) => true,
                // What is behind the first operand has a context of its own.
                Seq::Filter(..) | Seq::Slash(..) | Seq::Map(..) => true,
                _ => false,
            };
            is_plain && s.operands().into_iter().all(is_invariant)
        }
    }
}

/// Whether its value is for one tree: a path is in it.
fn reads(op: &Op) -> bool {
    match op {
        Op::Path(path) => match &path.start {
            From::Root | From::Context => true,
            From::Op(start) => reads(start),
        },
        op => operands(op).into_iter().any(reads),
    }
}

/// Whether it is worth keeping: its cost grows with what it works on.
fn is_work(op: &Op) -> bool {
    match op {
        Op::Path(path) => !matches!(path.start, From::Op(Op::Current(_))) || !path.steps.is_empty(),
        Op::Sequence(s) => {
            let itself = match &s.kind {
                Seq::Filter(..) | Seq::Map(..) | Seq::Slash(..) | Seq::Regex(..) => true,
                Seq::Call(_, args) => !s.single && !args.is_empty(),
                Seq::Cast(..) => true,
                _ => false,
            };
            itself || s.operands().into_iter().any(is_work)
        }
        op => operands(op).into_iter().any(is_work),
    }
}

/// The operands of an operation that is no path.
fn operands(op: &Op) -> Vec<&Op> {
    match op {
        Op::Or(ops) | Op::And(ops) | Op::Union(ops) | Op::Call(_, ops, _) => ops.iter().collect(),
        Op::Compare(_, both) | Op::Arithmetic(_, both) => vec![&both.0, &both.1],
        Op::Negate(a) => vec![a],
        Op::Sequence(s) => s.operands(),
        _ => Vec::new(),
    }
}

fn span_of(op: &Op) -> Span {
    match op {
        Op::Sequence(s) => s.span,
        Op::Call(_, _, span) => *span,
        Op::Path(path) => path.span,
        _ => Span::default(),
    }
}

impl<'a> Eval<'a> {
    /// The value of an operation that is evaluated once.
    pub(crate) fn value_once(&self, once: Once, op: &'a Op, at: Frame) -> Result<Value, Fault> {
        let Some(tree) = self.tree_of(once, at)? else { return self.value(op, at) };
        if let Some(Some((of, What::Value(value)))) = self.state().kept.borrow().get(once.number as usize)
            && *of == tree
        {
            return Ok(value.clone());
        }
        let value = self.value(op, at)?;
        self.keep(once, tree, What::Value(value.clone()));
        Ok(value)
    }

    /// The same, prepared to be compared with. `None`: `op` is no such operation, or there is no tree.
    pub(crate) fn prepared_once(
        &self,
        op: &'a Op,
        at: Frame,
        rules: Rules,
    ) -> Result<Option<Arc<Prepared>>, Fault> {
        let Some((once, op)) = op.once() else { return Ok(None) };
        let Some(tree) = self.tree_of(once, at)? else { return Ok(None) };
        if let Some(Some((of, What::Prepared(prepared)))) =
            self.state().kept.borrow().get(once.number as usize)
            && *of == tree
        {
            return Ok(Some(Arc::clone(prepared)));
        }
        let atoms = match rules {
            Rules::Nodes => {
                self.string_values(op, at)?.into_iter().map(|s| Atomic::Untyped(s.into())).collect()
            }
            _ => self.atoms_of(&self.value(op, at)?)?,
        };
        let prepared = Arc::new(Prepared::new(atoms, rules));
        self.keep(once, tree, What::Prepared(Arc::clone(&prepared)));
        Ok(Some(prepared))
    }

    /// Which tree the value is for; the outer `None`: it reads one, and the context item is in none.
    fn tree_of(&self, once: Once, at: Frame) -> Result<Option<Option<Tree>>, Fault> {
        if !once.reads {
            return Ok(Some(None));
        }
        Ok(self.tree(at)?.map(Some))
    }

    fn keep(&self, once: Once, tree: Option<Tree>, what: What) {
        let mut kept = self.state().kept.borrow_mut();
        let number = once.number as usize;
        if kept.len() <= number {
            kept.resize_with(number + 1, || None);
        }
        kept[number] = Some((tree, what));
    }
}
