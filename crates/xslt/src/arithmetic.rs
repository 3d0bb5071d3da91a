//! Arithmetic expressions of XSLT 1.0: literals, local variables, paths of names, combined by `+ - * div mod`, and one
//! comparison of two of them, as `$row + 1`, `$n <= $size`, `5 * ($max - sales)`. Recursive loops consist of these, and a general
//! evaluation costs many times as much as the sum.
//!
//! Precondition: the expression is XPath 1.0 (from 2.0 on there are integers), its variables are local. The type of a variable's value is known
//! at run time: where it is not a number or a text, the expression is evaluated in the general way.

use crate::names::NameStep;
use xpath::ast::{self, BinaryOp, ExprKind, QName};

/// See the module.
#[derive(Debug)]
pub(crate) enum Simple {
    Number(Arithmetic),
    Test(BinaryOp, Arithmetic, Arithmetic),
}

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

impl Simple {
    /// `None`: it is a more general expression, or one that has a fast path of its own.
    pub fn of(tree: &ast::Expr, scope: &mut impl Scope) -> Option<Simple> {
        match &tree.kind {
            ExprKind::Binary(op, a, b) if is_comparison(*op) => {
                Some(Simple::Test(*op, Arithmetic::compared(a, scope)?, Arithmetic::compared(b, scope)?))
            }
            ExprKind::Number(_) | ExprKind::Binary(..) | ExprKind::Negate(_) => {
                Some(Simple::Number(Arithmetic::of(tree, scope)?))
            }
            _ => None,
        }
    }
}

fn is_comparison(op: BinaryOp) -> bool {
    !matches!(
        op,
        BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Modulo
    )
}

impl Arithmetic {
    fn of(tree: &ast::Expr, scope: &mut impl Scope) -> Option<Arithmetic> {
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
    fn compared(tree: &ast::Expr, scope: &mut impl Scope) -> Option<Arithmetic> {
        match &tree.kind {
            ExprKind::Path(..) => None,
            _ => Arithmetic::of(tree, scope),
        }
    }
}
