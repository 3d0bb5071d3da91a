//! Evaluating expressions: paths of names and arithmetic without the engine of XPath, all others with it.

use super::host::{self, ExprHost};
use super::name_path::NamePath;
use super::{Engine, Focus, Frame, Res};
use crate::arithmetic::{Arithmetic, Simple};
use crate::error::XsltError;
use crate::expr::{Expr, XPath};
use crate::model::Place;
use crate::model::{Avt, AvtPart};
use std::borrow::Cow;
use xml::Document;
use xpath::{Context, DocId, Expression, Node, NodeSet, Value, XPathError};

impl Engine<'_> {
    pub(super) fn value(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<Value> {
        if let Expr::XPath(xpath) = expr
            && let Some(slot) = xpath.local
            && let Some(value) = frame.locals.get(slot as usize)
        {
            return Ok(value.clone());
        }
        if let Expr::XPath(xpath) = expr {
            if let Some(text) = &xpath.literal {
                return Ok(Value::String(text.clone()));
            }
            match self.simple(xpath, focus.node, frame) {
                Some(SimpleValue::Number(number)) => return Ok(Value::Number(number)),
                Some(SimpleValue::Boolean(boolean)) => return Ok(Value::Boolean(boolean)),
                None => {}
            }
        }
        self.with(expr, focus, frame, place, |expression, cx| expression.evaluate(cx))
    }

    pub(super) fn boolean(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<bool> {
        if let Some(path) = self.name_path(expr, focus.node) {
            return Ok(path.first().is_some());
        }
        if let Expr::XPath(xpath) = expr {
            match self.simple(xpath, focus.node, frame) {
                Some(SimpleValue::Number(number)) => return Ok(number != 0.0 && !number.is_nan()),
                Some(SimpleValue::Boolean(boolean)) => return Ok(boolean),
                None => {}
            }
        }
        self.with(expr, focus, frame, place, |expression, cx| expression.evaluate_boolean(cx))
    }

    pub(super) fn nodes(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<Vec<Node>> {
        if let Some(path) = self.name_path(expr, focus.node) {
            let mut nodes = Vec::new();
            path.each(path.node, path.steps, &mut |id| {
                nodes.push(Node::in_document(focus.node.doc, id));
                false
            });
            return Ok(nodes);
        }
        self.with(expr, focus, frame, place, |expression, cx| expression.evaluate_nodes(cx))
    }

    pub(super) fn string(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<String> {
        if let Some(text) = self.quick_text(expr, focus.node, frame) {
            return Ok(text.into_owned());
        }
        self.with(expr, focus, frame, place, |expression, cx| {
            Ok(expression.evaluate_string(cx)?.into_owned())
        })
    }

    pub(super) fn avt<'t>(
        &'t self,
        avt: &'t Avt,
        focus: Focus,
        frame: &Frame,
        place: Place,
    ) -> Res<Cow<'t, str>> {
        match avt {
            Avt::Fixed(text) => Ok(Cow::Borrowed(text)),
            Avt::Parts(parts) => {
                if let [AvtPart::Expr(expr)] = &**parts
                    && let Some(path) = self.name_path(expr, focus.node)
                    && let Some(text) = path.text()
                {
                    return Ok(Cow::Borrowed(text));
                }
                let mut text = String::new();
                for part in parts {
                    match part {
                        AvtPart::Text(part) => text.push_str(part),
                        AvtPart::Expr(expr) if let Some(value) = self.quick_text(expr, focus.node, frame) => {
                            text.push_str(&value);
                        }
                        AvtPart::Expr(expr) if let Some(path) = self.name_path(expr, focus.node) => {
                            if let Some(node) = path.first() {
                                path.doc.push_string_value(node, &mut text);
                            }
                        }
                        AvtPart::Items(expr) => {
                            if let Some(path) = self.name_path(expr, focus.node)
                                && path.steps.last().is_none_or(|step| step.attribute)
                                && path.steps.len() < 2
                            {
                                if let Some(node) = path.first() {
                                    text.push_str(&path.doc.string_value(node));
                                }
                                continue;
                            }
                            let value = self.value(expr, focus, frame, place)?;
                            if let Value::String(value) = &value {
                                text.push_str(value);
                                continue;
                            }
                            text.push_str(&self.text_of_items(value, place)?);
                        }
                        AvtPart::Expr(expr) => self.with(expr, focus, frame, place, |expression, cx| {
                            text.push_str(&expression.evaluate_string(cx)?);
                            Ok(())
                        })?,
                    }
                }
                Ok(Cow::Owned(text))
            }
        }
    }

    /// The value of an expression where `current()` is another node than the context item.
    #[cold]
    pub(super) fn with_current(
        &self,
        expr: &Expr,
        focus: Focus,
        current: Node,
        frame: &Frame,
        place: Place,
    ) -> Res<Value> {
        self.with_host(expr, focus, current, frame, place, |expression, cx| expression.evaluate(cx))
    }

    /// Runs `f` with the expression and its context.
    #[inline]
    pub(super) fn with<R>(
        &self,
        expr: &Expr,
        focus: Focus,
        frame: &Frame,
        place: Place,
        f: impl FnOnce(&Expression, &Context<'_>) -> Result<R, XPathError>,
    ) -> Res<R> {
        self.with_host(expr, focus, focus.node, frame, place, f)
    }

    fn with_host<R>(
        &self,
        expr: &Expr,
        focus: Focus,
        current: Node,
        frame: &Frame,
        place: Place,
        f: impl FnOnce(&Expression, &Context<'_>) -> Result<R, XPathError>,
    ) -> Res<R> {
        let xpath = match expr {
            Expr::XPath(xpath) => xpath,
            Expr::Deferred(message) => return Err(self.fail(place, message.to_string())),
        };
        let host = ExprHost {
            engine: self,
            locals: &frame.locals,
            current,
            xpath,
            depth: focus.depth,
            next: focus.next,
            dynamic: focus.dynamic,
            failed: Default::default(),
        };
        let atom = if focus.node.doc == DocId::ATOMIC { self.kept_atom(focus.node) } else { None };
        let cx = Context {
            doc: self.doc(focus.node.doc),
            node: focus.node,
            item: atom.as_ref(),
            position: focus.position as usize,
            size: focus.size as usize,
            locals: &frame.locals,
            host: &host,
            names: self.docs.bound(focus.node.doc).map(|b| &b.pool),
        };
        f(&xpath.expression, &cx).map_err(|error| self.explained(&host, &xpath.expression, &error, place))
    }

    /// Why an expression failed: mostly with the place of an inner call that is the reason.
    #[cold]
    pub(super) fn explained(
        &self,
        host: &ExprHost<'_, '_>,
        expression: &Expression,
        error: &XPathError,
        place: Place,
    ) -> Box<XsltError> {
        match host.failed(error) {
            // The message includes the reason, mostly with its place.
            Some(inner) if inner.line > 0 => inner,
            Some(inner) => Box::new(XsltError { raised: inner.raised, ..*self.fail(place, inner.message) }),
            None => self.xpath_failed(place, expression, error),
        }
    }

    #[cold]
    fn xpath_failed(&self, place: Place, expression: &Expression, error: &XPathError) -> Box<XsltError> {
        let sentence = format!("{} (in the expression \"{}\")", error.sentence(), expression.source());
        let failed = if error.limit { self.limit(place, sentence) } else { self.fail(place, sentence) };
        Box::new(XsltError { raised: error.raised.clone(), ..*failed })
    }

    /// The text of an expression that is a local variable or arithmetic, where it is a single value of XSLT 1.0.
    #[inline]
    pub(super) fn quick_text<'t>(
        &'t self,
        expr: &Expr,
        node: Node,
        frame: &'t Frame,
    ) -> Option<Cow<'t, str>> {
        let Expr::XPath(xpath) = expr else { return None };
        if let Some(slot) = xpath.local {
            return match frame.locals.get(slot as usize)? {
                Value::String(text) => Some(Cow::Borrowed(text)),
                Value::NodeSet(nodes) => self.fragment_text(nodes).map(Cow::Borrowed),
                Value::Number(number) if !self.plan.version2 => Some(xpath::number::format(*number)),
                _ => None,
            };
        }
        match self.simple(xpath, node, frame)? {
            SimpleValue::Number(number) => Some(xpath::number::format(number)),
            SimpleValue::Boolean(_) => None,
        }
    }

    /// The number of an arithmetic expression, if its variables are numbers or texts.
    #[inline]
    fn simple(&self, xpath: &XPath, node: Node, frame: &Frame) -> Option<SimpleValue> {
        Some(match xpath.simple.as_ref()? {
            Simple::Number(number) => SimpleValue::Number(self.arithmetic(number, node, frame)?.0),
            Simple::Test(op, a, b) => {
                let (a, b) = (self.arithmetic(a, node, frame)?, self.arithmetic(b, node, frame)?);
                // Some operators compare two texts as texts.
                if !a.1 && !b.1 {
                    return None;
                }
                SimpleValue::Boolean(xpath::number::relation(*op, a.0, b.0))
            }
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
            Arithmetic::Path(steps) => {
                if node.is_namespace() {
                    return None;
                }
                let (doc, bound) = (self.docs.get(node.doc)?, self.docs.bound(node.doc)?);
                (xpath::number::parse(NamePath { doc, bound, node: node.id, steps }.text()?), true)
            }
            Arithmetic::Negate(a) => (-self.arithmetic(a, node, frame)?.0, true),
            Arithmetic::Binary(op, both) => {
                let (a, b) = (self.arithmetic(&both.0, node, frame)?, self.arithmetic(&both.1, node, frame)?);
                (xpath::number::arithmetic(*op, a.0, b.0), true)
            }
        })
    }

    /// The expression as a path of names at a node, if it is one and the names of the document are bound.
    #[inline]
    pub(super) fn name_path<'x>(&'x self, expr: &'x Expr, node: Node) -> Option<NamePath<'x>> {
        let Expr::XPath(xpath) = expr else { return None };
        let steps = xpath.names.as_deref()?;
        if node.is_namespace() {
            return None;
        }
        let bound = self.docs.bound(node.doc)?;
        Some(NamePath { doc: self.docs.get(node.doc)?, bound, node: node.id, steps })
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

    /// The items of a value as text, separated by spaces.
    pub(super) fn text_of_items(&self, value: Value, place: Place) -> Res<String> {
        match &value {
            Value::String(text) => Ok(text.to_string()),
            Value::Empty => Ok(String::new()),
            Value::NodeSet(nodes) if nodes.len() < 2 => {
                Ok(nodes.first().map_or_else(String::new, |node| self.node_string(node)))
            }
            _ => {
                let value = self.with_text(value, place)?;
                Ok(self.joined(&value, " "))
            }
        }
    }

    /// `string()` of a value.
    pub(super) fn string_of(&self, value: &Value, focus: Focus, place: Place) -> Res<String> {
        if let Value::String(text) = value {
            return Ok(text.to_string());
        }
        let host = host::DocHost { engine: self };
        let cx = Context::at(self.doc(focus.node.doc), focus.node).with_host(&host);
        match value.to_string_in(&cx) {
            Ok(text) => Ok(text.into_owned()),
            Err(error) => Err(self.fail(place, error.message)),
        }
    }
}

/// The value of a [`Simple`].
enum SimpleValue {
    Number(f64),
    Boolean(bool),
}
