//! Arithmetic expressions of XSLT 1.0: literals, local variables, paths of names, combined by `+ - * div mod`, as `$row + 1` and
//! `5 * ($max - sales)`. Recursive loops consist of these ([`crate::simple`]).
//!
//! Precondition: the expression is XPath 1.0 (from 2.0 on there are integers), its variables are local.

use crate::names::NameStep;
use xpath::ast::{self, BinaryOp, ExprKind, QName};

/// A number.
#[derive(Debug)]
pub(crate) enum Arithmetic {
    Number(f64),
    /// The local variable in this slot.
    Local(u32),
    /// The first node of a path: only as an operand of an operation, never of a comparison, which compares all nodes.
    Path(Box<[NameStep]>),
    Negate(Box<Arithmetic>),
    Binary(BinaryOp, Box<(Arithmetic, Arithmetic)>),
}

/// Resolves variables and names.
pub(crate) trait Scope {
    /// The slot of a local variable.
    fn local(&self, name: &QName) -> Option<u32>;
    fn path(&mut self, tree: &ast::Expr) -> Option<Box<[NameStep]>>;
}

pub(crate) fn is_comparison(op: BinaryOp) -> bool {
    !matches!(
        op,
        BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Modulo
    )
}

impl Arithmetic {
    pub fn of(tree: &ast::Expr, scope: &mut impl Scope) -> Option<Arithmetic> {
        Some(match &tree.kind {
            ExprKind::Number(number) => Arithmetic::Number(*number),
            ExprKind::Variable(name) => Arithmetic::Local(scope.local(name)?),
            ExprKind::Negate(a) => Arithmetic::Negate(Box::new(Arithmetic::of(a, scope)?)),
            ExprKind::Binary(op, a, b) if !is_comparison(*op) => {
                Arithmetic::Binary(*op, Box::new((Arithmetic::of(a, scope)?, Arithmetic::of(b, scope)?)))
            }
            ExprKind::Path(..) => Arithmetic::Path(scope.path(tree)?),
            _ => return None,
        })
    }

    /// An operand of a comparison.
    pub fn compared(tree: &ast::Expr, scope: &mut impl Scope) -> Option<Arithmetic> {
        match &tree.kind {
            ExprKind::Path(..) => None,
            _ => Arithmetic::of(tree, scope),
        }
    }
}
