//! What has the same value wherever it is evaluated within an evaluation, as `count(/r/i)` in `//b[@n > count(/r/i)]`. It is found when the
//! expression is compiled, and evaluated once for each tree.

use crate::compile::Compiler;
use crate::error::Span;
use crate::plan::{Core, From, Op};
use crate::sequence::functions::Looks;
use crate::sequence::plan::{Seq, SeqOp};

impl Compiler<'_> {
    /// `op`, which has no variables of the expression in it and is evaluated again and again: once, where it has the same value each time and costs more than a path, which is
    /// looked through as far as its use needs.
    pub(crate) fn once(&mut self, op: Op) -> Op {
        match &op {
            Op::Sequence(s) => {
                let span = s.span;
                self.once_compared(op, span)
            }
            Op::Call(_, _, span) => {
                let span = *span;
                self.once_compared(op, span)
            }
            _ => op,
        }
    }

    /// The same for one side of a comparison, which is looked through whole, also where it is a path.
    pub(crate) fn once_compared(&mut self, op: Op, span: Span) -> Op {
        let is_kept = matches!(&op, Op::Sequence(s) if matches!(s.kind, Seq::Once(..)));
        // (What some functions return may change.)
        if self.repeated == 0 || !self.stable || is_kept || !is_invariant(&op) || !reads(&op) {
            return op;
        }
        let (number, ty) = (self.kept, op.ty());
        self.kept += 1;
        Op::Sequence(Box::new(SeqOp::new(Seq::Once(number, op), ty, span)))
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
        Op::Call(core, args, _) => {
            let looks = matches!(core, Core::Position | Core::Last | Core::Lang | Core::Id)
                || args.is_empty() && core.defaults_to_context();
            !looks && args.iter().all(is_invariant)
        }
        Op::Extension(..) | Op::Current(_) => false,
        Op::Sequence(s) => {
            let is_plain = match &s.kind {
                Seq::Call(entry, args) => match entry.looks {
                    Looks::Nowhere => true,
                    Looks::Context(most) => args.len() >= most,
                    _ => false,
                },
                Seq::Literal(_)
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

/// Whether a path is in it.
fn reads(op: &Op) -> bool {
    match op {
        Op::Path(path) => !matches!(path.start, From::Op(Op::Current(_))) || !path.steps.is_empty(),
        Op::Or(ops) | Op::And(ops) | Op::Union(ops) => ops.iter().any(reads),
        Op::Compare(_, both) | Op::Arithmetic(_, both) => reads(&both.0) || reads(&both.1),
        Op::Negate(a) => reads(a),
        Op::Call(_, args, _) => args.iter().any(reads),
        Op::Sequence(s) => s.operands().into_iter().any(reads),
        _ => false,
    }
}
