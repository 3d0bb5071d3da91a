//! Arithmetic expressions of XSLT 1.0: literals, local variables, paths of names, combined by `+ - * div mod`, as `$row + 1` and
//! `5 * ($max - sales)`. Recursive loops consist of these ([`crate::simple`]).
//!
//! Precondition: the expression is XPath 1.0, its variables are local. From 2.0 on there are integers, decimals and empty operands: there,
//! arithmetic of this kind are operations with the value of a node, which make it an `xs:double` ([`Arithmetic::of_untyped`]), and those of
//! integers only ([`Arithmetic::of_whole`]).

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

/// The number of an integer literal, where a double holds it exactly.
pub(crate) fn exact(tree: &ast::Expr) -> Option<f64> {
    match &tree.kind {
        ExprKind::Integer(number) if number.unsigned_abs() <= 1 << 53 => Some(*number as f64),
        _ => None,
    }
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

    /// The same of XPath 2.0 and later: operations on paths of names, whose values are untyped and so become `xs:double`, and literals.
    pub fn of_untyped(tree: &ast::Expr, scope: &mut impl Scope) -> Option<Arithmetic> {
        Arithmetic::typed(tree, scope).filter(|(_, is_double)| *is_double).map(|(arithmetic, _)| arithmetic)
    }

    /// An operand, and whether it is an `xs:double`.
    fn typed(tree: &ast::Expr, scope: &mut impl Scope) -> Option<(Arithmetic, bool)> {
        Some(match &tree.kind {
            ExprKind::Number(number) => (Arithmetic::Number(*number), true),
            ExprKind::Integer(_) => (Arithmetic::Number(exact(tree)?), false),
            ExprKind::Negate(a) => {
                let (a, is_double) = Arithmetic::typed(a, scope)?;
                (Arithmetic::Negate(Box::new(a)), is_double)
            }
            ExprKind::Binary(op, a, b) if !is_comparison(*op) => {
                let ((a, left), (b, right)) = (Arithmetic::typed(a, scope)?, Arithmetic::typed(b, scope)?);
                // Of two integers it would be an integer or a decimal.
                if !left && !right {
                    return None;
                }
                (Arithmetic::Binary(*op, Box::new((a, b))), true)
            }
            ExprKind::Path(..) => (Arithmetic::Path(scope.path(tree)?), true),
            _ => return None,
        })
    }

    /// The same of integers: literals, and local variables that must have integers when it is evaluated.
    pub fn of_whole(tree: &ast::Expr, scope: &mut impl Scope) -> Option<Arithmetic> {
        Some(match &tree.kind {
            ExprKind::Integer(_) => Arithmetic::Number(exact(tree)?),
            ExprKind::Variable(name) => Arithmetic::Local(scope.local(name)?),
            ExprKind::Negate(a) => Arithmetic::Negate(Box::new(Arithmetic::of_whole(a, scope)?)),
            // (The quotient of integers is a decimal.)
            ExprKind::Binary(op, a, b) if !is_comparison(*op) && *op != BinaryOp::Divide => {
                let both = (Arithmetic::of_whole(a, scope)?, Arithmetic::of_whole(b, scope)?);
                Arithmetic::Binary(*op, Box::new(both))
            }
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
