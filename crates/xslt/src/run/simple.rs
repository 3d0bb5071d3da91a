//! Evaluating [simple](crate::simple) expressions. `None`: the operands are not what is needed for it, and the expression is
//! evaluated in the general way, which also finds the errors.

use super::name_path::NamePath;
use super::{Engine, Frame};
use crate::arithmetic::Arithmetic;
use crate::expr::{Expr, XPath};
use crate::names::NameStep;
use crate::simple::{Constant, Place, Property, Simple, Text};
use std::borrow::Cow;
use xml::{Document, NodeKind};
use xpath::ast::BinaryOp;
use xpath::atomic::Atomic;
use xpath::{Node, NodeSet, Value};

/// The value of a [`Simple`].
pub(super) enum SimpleValue<'t> {
    Number(f64),
    /// Of XPath 2.0.
    Double(f64),
    /// An integer of XPath 2.0.
    Whole(i64),
    Boolean(bool),
    Text(Cow<'t, str>),
}

impl Engine<'_> {
    /// The value of an expression, if it is simple.
    #[inline]
    pub(super) fn simple<'t>(
        &'t self,
        xpath: &'t XPath,
        node: Node,
        frame: &'t Frame,
    ) -> Option<SimpleValue<'t>> {
        self.simple_value(xpath.simple.as_ref()?, node, frame)
    }

    fn simple_value<'t>(
        &'t self,
        simple: &'t Simple,
        node: Node,
        frame: &'t Frame,
    ) -> Option<SimpleValue<'t>> {
        Some(match simple {
            Simple::Number(number) => SimpleValue::Number(self.arithmetic(number, node, frame)?.0),
            Simple::Double(number) => SimpleValue::Double(self.double(number, node)?),
            Simple::Whole(number) => SimpleValue::Whole(whole(number, frame)?),
            Simple::TestWhole(op, a, b) => {
                SimpleValue::Boolean(xpath::number::holds(*op, whole(a, frame)?.cmp(&whole(b, frame)?)))
            }
            Simple::ComparedStrictly(op, steps, number) => {
                SimpleValue::Boolean(self.compared_strictly(*op, steps, *number, node)?)
            }
            Simple::Test(op, a, b) => {
                let (a, b) = (self.arithmetic(a, node, frame)?, self.arithmetic(b, node, frame)?);
                // Some operators compare two texts as texts.
                if !a.1 && !b.1 {
                    return None;
                }
                SimpleValue::Boolean(xpath::number::relation(*op, a.0, b.0))
            }
            Simple::Compared(op, steps, constant) => {
                SimpleValue::Boolean(self.compared(*op, steps, constant, node)?)
            }
            Simple::Exists(steps) => SimpleValue::Boolean(self.path_at(steps, node)?.first().is_some()),
            Simple::Not(condition) => SimpleValue::Boolean(!self.condition(condition, node, frame)?),
            Simple::All(conditions) => {
                let mut all = true;
                for condition in conditions {
                    all = self.condition(condition, node, frame)?;
                    if !all {
                        break;
                    }
                }
                SimpleValue::Boolean(all)
            }
            Simple::Any(conditions) => {
                let mut any = false;
                for condition in conditions {
                    any = self.condition(condition, node, frame)?;
                    if any {
                        break;
                    }
                }
                SimpleValue::Boolean(any)
            }
            Simple::Found(place, both) => {
                let (text, sought) =
                    (self.text_at(&both.0, node, frame)?, self.text_at(&both.1, node, frame)?);
                self.spend(text.len() as u64 >> 5).ok()?;
                SimpleValue::Boolean(match place {
                    Place::Anywhere => text.contains(&*sought),
                    Place::Start => text.starts_with(&*sought),
                })
            }
            Simple::Text(text) => SimpleValue::Text(self.text_at(text, node, frame)?),
        })
    }

    fn condition(&self, simple: &Simple, node: Node, frame: &Frame) -> Option<bool> {
        match self.simple_value(simple, node, frame)? {
            SimpleValue::Boolean(boolean) => Some(boolean),
            _ => None,
        }
    }

    /// The text of an expression that is a local variable or simple, where it is a single value.
    #[inline]
    pub(super) fn quick_text<'t>(
        &'t self,
        expr: &'t Expr,
        node: Node,
        frame: &'t Frame,
    ) -> Option<Cow<'t, str>> {
        let Expr::XPath(xpath) = expr else { return None };
        if let Some(slot) = xpath.local {
            return match frame.locals.get(slot as usize)? {
                Value::Atomic(atom) if !atom.is_function() => Some(atom.to_text()),
                _ => self.local_text(slot, frame),
            };
        }
        match self.simple(xpath, node, frame)? {
            SimpleValue::Number(number) => Some(xpath::number::format(number)),
            SimpleValue::Double(number) => Some(Cow::Owned(Atomic::Double(number).to_text().into_owned())),
            SimpleValue::Whole(number) => Some(xpath::number::integer(number)),
            SimpleValue::Text(text) => Some(text),
            SimpleValue::Boolean(_) => None,
        }
    }

    /// The text of a local variable.
    #[inline]
    fn local_text<'t>(&'t self, slot: u32, frame: &'t Frame) -> Option<Cow<'t, str>> {
        match frame.locals.get(slot as usize)? {
            Value::String(text) => Some(Cow::Borrowed(text)),
            Value::NodeSet(nodes) => self.fragment_text(nodes).map(Cow::Borrowed),
            Value::Number(number) if !self.plan.version2 => Some(xpath::number::format(*number)),
            _ => None,
        }
    }

    /// A path of names at a node.
    #[inline]
    fn path_at<'t>(&'t self, steps: &'t [NameStep], node: Node) -> Option<NamePath<'t>> {
        if node.is_namespace() {
            return None;
        }
        let bound = self.docs.bound(node.doc)?;
        Some(NamePath { doc: self.docs.get(node.doc)?, bound, node: node.id, steps })
    }

    /// Whether the node is of the kind that an expression asks for, if it does.
    #[inline]
    pub(super) fn is_of_kind(&self, xpath: &XPath, node: Node) -> Option<bool> {
        let kind = xpath.kind?;
        let path = self.path_at(&[], node)?;
        Some(path.doc.kind(path.node) == kind)
    }

    /// The same as an expression, if it is one and the names of the document are bound.
    #[inline]
    pub(super) fn name_path<'x>(&'x self, expr: &'x Expr, node: Node) -> Option<NamePath<'x>> {
        let Expr::XPath(xpath) = expr else { return None };
        self.path_at(xpath.names.as_deref()?, node)
    }

    /// The value of the only node of a path of names (empty: there is none), where it is in one piece: what a list of items is as text.
    #[inline]
    pub(super) fn only_text<'x>(&'x self, expr: &'x Expr, node: Node) -> Option<&'x str> {
        self.name_path(expr, node)?.only_text()
    }

    /// Whether any node of a path compares so with a constant.
    fn compared(&self, op: BinaryOp, steps: &[NameStep], constant: &Constant, node: Node) -> Option<bool> {
        let path = self.path_at(steps, node)?;
        let (mut visited, mut in_pieces) = (0, false);
        let found = path.each(path.node, steps, &mut |id| {
            visited += 1;
            let Some(text) = path.doc.whole_text(id) else {
                in_pieces = true;
                return true;
            };
            match (op, constant) {
                (BinaryOp::Equal, Constant::Text(wanted)) => *text == **wanted,
                (BinaryOp::NotEqual, Constant::Text(wanted)) => *text != **wanted,
                (_, Constant::Text(wanted)) => {
                    let wanted = xpath::number::parse(wanted);
                    xpath::number::relation(op, xpath::number::parse(text), wanted)
                }
                (_, Constant::Number(wanted)) => {
                    xpath::number::relation(op, xpath::number::parse(text), *wanted)
                }
            }
        });
        if visited > 4 {
            self.spend(visited >> 2).ok()?;
        }
        (!in_pieces).then_some(found)
    }

    /// Whether any node of a path compares so with a number; only where all values seen are numbers.
    fn compared_strictly(&self, op: BinaryOp, steps: &[NameStep], wanted: f64, node: Node) -> Option<bool> {
        let path = self.path_at(steps, node)?;
        let (mut visited, mut is_general) = (0, false);
        let found = path.each(path.node, steps, &mut |id| {
            visited += 1;
            let number = path.doc.whole_text(id).map_or(f64::NAN, xpath::number::parse);
            is_general = number.is_nan();
            is_general || xpath::number::relation(op, number, wanted)
        });
        if visited > 4 {
            self.spend(visited >> 2).ok()?;
        }
        (!is_general).then_some(found)
    }

    /// A number of XPath 2.0, where each path has one node whose value is a number.
    fn double(&self, number: &Arithmetic, node: Node) -> Option<f64> {
        Some(match number {
            Arithmetic::Number(number) => *number,
            Arithmetic::Local(_) => return None,
            Arithmetic::Path(steps) => {
                let number = xpath::number::parse(self.path_at(steps, node)?.only_text()?);
                (!number.is_nan()).then_some(number)?
            }
            Arithmetic::Negate(a) => -self.double(a, node)?,
            Arithmetic::Binary(op, both) => {
                xpath::number::arithmetic(*op, self.double(&both.0, node)?, self.double(&both.1, node)?)
            }
        })
    }

    fn text_at<'t>(&'t self, text: &'t Text, node: Node, frame: &'t Frame) -> Option<Cow<'t, str>> {
        Some(match text {
            Text::Constant(text) => Cow::Borrowed(text),
            Text::Local(slot) => self.local_text(*slot, frame)?,
            Text::Of(property, steps) => {
                let path = self.path_at(steps, node)?;
                let Some(id) = path.first() else { return Some(Cow::Borrowed("")) };
                match (property, path.doc.kind(id)) {
                    (Property::Value, _) => Cow::Borrowed(path.doc.whole_text(id)?),
                    (Property::Name, NodeKind::Element | NodeKind::Attribute) => path.doc.qname(id),
                    (_, NodeKind::Element | NodeKind::Attribute | NodeKind::ProcessingInstruction) => {
                        Cow::Borrowed(path.doc.local(id))
                    }
                    _ => Cow::Borrowed(""),
                }
            }
            Text::OfOnly(steps) => Cow::Borrowed(self.path_at(steps, node)?.only_text()?),
            Text::Normalized(text) => xpath::strings::normalize_space(self.text_at(text, node, frame)?),
            Text::Part(text, from, length) => {
                let text = self.text_at(text, node, frame)?;
                let from = self.arithmetic(from, node, frame)?.0;
                let length = match length {
                    Some(length) => Some(self.arithmetic(length, node, frame)?.0),
                    None => None,
                };
                xpath::strings::substring(text, from, length)
            }
            Text::PartAt(text, from, length) => {
                let text = self.text_at(text, node, frame)?;
                let from = whole(from, frame)? as f64;
                let length = match length {
                    Some(length) => Some(whole(length, frame)? as f64),
                    None => None,
                };
                xpath::strings::substring(text, from, length)
            }
            Text::Before(both) => self.part(both, node, frame, |text, from, _| &text[..from])?,
            Text::After(both) => self.part(both, node, frame, |text, _, to| &text[to..])?,
            Text::Joined(parts) => {
                let mut joined = String::with_capacity(64);
                for part in parts {
                    joined.push_str(&self.text_at(part, node, frame)?);
                }
                meter::string_of(joined.len()).ok()?;
                Cow::Owned(joined)
            }
        })
    }

    /// The part of a text that `f` chooses by the begin and end of another in it; empty if it does not occur.
    fn part<'t>(
        &'t self,
        both: &'t (Text, Text),
        node: Node,
        frame: &'t Frame,
        f: impl Fn(&str, usize, usize) -> &str,
    ) -> Option<Cow<'t, str>> {
        let (text, sought) = (self.text_at(&both.0, node, frame)?, self.text_at(&both.1, node, frame)?);
        self.spend(text.len() as u64 >> 5).ok()?;
        let Some(at) = text.find(&*sought) else { return Some(Cow::Borrowed("")) };
        Some(match text {
            Cow::Borrowed(text) => Cow::Borrowed(f(text, at, at + sought.len())),
            Cow::Owned(text) => Cow::Owned(f(&text, at, at + sought.len()).to_owned()),
        })
    }

    /// The number, and whether it is one, or a text that was converted.
    pub(super) fn arithmetic(&self, number: &Arithmetic, node: Node, frame: &Frame) -> Option<(f64, bool)> {
        Some(match number {
            Arithmetic::Number(number) => (*number, true),
            Arithmetic::Local(slot) => match frame.locals.get(*slot as usize)? {
                Value::Number(number) => (*number, true),
                Value::String(text) => (xpath::number::parse(text), false),
                Value::NodeSet(nodes) => (xpath::number::parse(self.fragment_text(nodes)?), false),
                _ => return None,
            },
            Arithmetic::Path(steps) => (xpath::number::parse(self.path_at(steps, node)?.text()?), true),
            Arithmetic::Negate(a) => (-self.arithmetic(a, node, frame)?.0, true),
            Arithmetic::Binary(op, both) => {
                let (a, b) = (self.arithmetic(&both.0, node, frame)?, self.arithmetic(&both.1, node, frame)?);
                (xpath::number::arithmetic(*op, a.0, b.0), true)
            }
        })
    }

    /// The text of a node-set that is a text fragment.
    #[inline]
    fn fragment_text(&self, nodes: &NodeSet) -> Option<&str> {
        let [node] = nodes.as_slice() else { return None };
        if node.id != Document::ROOT || node.is_namespace() {
            return None;
        }
        self.docs.text(node.doc)
    }
}

/// An integer ([`Arithmetic::of_whole`]), where all steps to it are integers of 64 bits.
fn whole(number: &Arithmetic, frame: &Frame) -> Option<i64> {
    match number {
        Arithmetic::Number(number) => Some(*number as i64),
        Arithmetic::Local(slot) => match frame.locals.get(*slot as usize)? {
            Value::Atomic(Atomic::Integer(number)) => Some(*number),
            _ => None,
        },
        Arithmetic::Path(_) => None,
        Arithmetic::Negate(a) => whole(a, frame)?.checked_neg(),
        Arithmetic::Binary(op, both) => {
            let (a, b) = (whole(&both.0, frame)?, whole(&both.1, frame)?);
            match op {
                BinaryOp::Add => a.checked_add(b),
                BinaryOp::Subtract => a.checked_sub(b),
                BinaryOp::Multiply => a.checked_mul(b),
                BinaryOp::Modulo => a.checked_rem(b),
                _ => None,
            }
        }
    }
}
