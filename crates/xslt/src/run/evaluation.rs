//! Evaluating expressions: paths of names and [simple](crate::simple) ones without the engine of XPath, all others with it.

use super::host::{self, ExprHost};
use super::simple::SimpleValue;
use super::{Engine, Focus, Frame, Res};
use crate::error::XsltError;
use crate::expr::Expr;
use crate::model::Place;
use crate::model::{Avt, AvtPart};
use std::borrow::Cow;
use xpath::atomic::Atomic;
use xpath::{Context, DocId, Expression, Node, Value, XPathError};

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
                Some(SimpleValue::Double(number)) => return Ok(Value::Atomic(Atomic::Double(number))),
                Some(SimpleValue::Whole(number)) => return Ok(Value::from(number)),
                Some(SimpleValue::Boolean(boolean)) => return Ok(Value::Boolean(boolean)),
                Some(SimpleValue::Text(text)) => return Ok(Value::String(text.into())),
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
            if let Some(is) = self.is_of_kind(xpath, focus.node) {
                return Ok(is);
            }
            match self.simple(xpath, focus.node, frame) {
                Some(SimpleValue::Number(number) | SimpleValue::Double(number)) => {
                    return Ok(number != 0.0 && !number.is_nan());
                }
                Some(SimpleValue::Whole(number)) => return Ok(number != 0),
                Some(SimpleValue::Boolean(boolean)) => return Ok(boolean),
                Some(SimpleValue::Text(text)) => return Ok(!text.is_empty()),
                None => {}
            }
        }
        self.with(expr, focus, frame, place, |expression, cx| expression.evaluate_boolean(cx))
    }

    pub(super) fn nodes(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<Vec<Node>> {
        if let Some(nodes) = self.quick_nodes(expr, focus)? {
            return Ok(nodes);
        }
        self.with(expr, focus, frame, place, |expression, cx| expression.evaluate_nodes(cx))
    }

    /// The nodes of a path of names, or children by their kinds.
    pub(super) fn quick_nodes(&self, expr: &Expr, focus: Focus) -> Res<Option<Vec<Node>>> {
        if let Some(path) = self.name_path(expr, focus.node) {
            let mut nodes = Vec::new();
            path.each(path.node, path.steps, &mut |id| {
                reserve(&mut nodes);
                nodes.push(Node::in_document(focus.node.doc, id));
                false
            });
            return Ok(Some(nodes));
        }
        if let Expr::XPath(xpath) = expr
            && let Some(kinds) = xpath.children
            && !focus.node.is_namespace()
            && let Some(doc) = self.docs.get(focus.node.doc)
        {
            let mut nodes = Vec::new();
            let mut visited = 0;
            for child in doc.children(focus.node.id) {
                visited += 1;
                if kinds.contain(doc.kind(child)) {
                    reserve(&mut nodes);
                    nodes.push(Node::in_document(focus.node.doc, child));
                }
            }
            self.spend(visited >> 4)?;
            return Ok(Some(nodes));
        }
        Ok(None)
    }

    pub(super) fn string(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<String> {
        if let Some(text) = self.quick_text(expr, focus.node, frame) {
            return Ok(text.into_owned());
        }
        self.with(expr, focus, frame, place, |expression, cx| {
            Ok(expression.evaluate_string(cx)?.into_owned())
        })
    }

    /// The text of the items of a value, separated by spaces (XSLT 2.0).
    pub(super) fn items_text(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<String> {
        if let Expr::XPath(xpath) = expr
            && xpath.expression.is_single()
        {
            let text = self.with(expr, focus, frame, place, |expression, cx| {
                Ok(expression.evaluate_single_text(cx)?.map(Cow::into_owned))
            })?;
            if let Some(text) = text {
                return Ok(text);
            }
        }
        self.text_of_items(self.value(expr, focus, frame, place)?, place)
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
                if let [AvtPart::Items(expr)] = &**parts
                    && let Some(text) = self.only_text(expr, focus.node)
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
                        AvtPart::Items(expr) if let Some(only) = self.only_text(expr, focus.node) => {
                            text.push_str(only);
                        }
                        AvtPart::Items(expr)
                            if let Some(value) = self.quick_text(expr, focus.node, frame) =>
                        {
                            text.push_str(&value);
                        }
                        AvtPart::Items(expr) => {
                            text.push_str(&self.items_text(expr, focus, frame, place)?);
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
            referred: false,
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

/// Makes room for one more node: at once for as many as most lists have.
#[inline]
fn reserve(nodes: &mut Vec<Node>) {
    if nodes.capacity() == 0 {
        nodes.reserve(16);
    }
}
