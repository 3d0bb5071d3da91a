//! Values of variables and parameters: bindings, global variables, result tree fragments.

use super::docs::Origin;
use super::out::{Destination, Out};
use super::{Engine, Focus, Frame, Res};
use crate::model::Binding;
use crate::model::Place;
use std::borrow::Cow;
use std::sync::atomic::Ordering;
use xml::{Builder, Document};
use xpath::atomic::Atomic;
use xpath::{Node, Value};

impl Engine<'_> {
    pub(super) fn binding(
        &self,
        binding: &Binding,
        focus: Focus,
        frame: &mut Frame,
        place: Place,
    ) -> Res<Value> {
        match binding {
            Binding::Select(expr) => self.value(expr, focus, frame, place),
            Binding::Empty => Ok(Value::from("")),
            Binding::Sequence(body) => {
                self.temporarily(focus, |focus| self.sequence_of(body, focus, frame, place))
            }
            Binding::As(typed) => {
                let value = self.binding(&typed.value, focus, frame, place)?;
                self.converted(value, &typed.declared, typed.declared.code, place)
            }
            Binding::Required(message) => Err(self.fail(place, message.to_string())),
            Binding::Text(body) => {
                let text = self.temporarily(focus, |focus| {
                    Ok(self.text_of(body, focus, frame, Destination::Temporary)?.into_owned())
                })?;
                self.add_text(text, place)
            }
            Binding::Body(body) => {
                let mut doc = Document::new();
                let mut out = Out::tree(Builder::new(&mut doc, Document::ROOT));
                self.temporarily(focus, |focus| self.exec(body, focus, frame, &mut out))?;
                out.finish_tree();
                self.add_fragment(doc, place)
            }
        }
    }

    /// The value of global variable `at`.
    pub(super) fn global(&self, at: usize, depth: u32, next: u32) -> Res<Value> {
        if let Some(value) = self.globals[at].get() {
            return Ok(value.clone());
        }
        let global = &self.plan.globals[at];
        if global.is_parameter
            && let Some(value) = self.parameters.get(&global.name)
        {
            // A value from outside is a text that is converted to the declared or required type.
            let value = match value {
                Value::String(text) if self.plan.version2 => Value::from(Atomic::Untyped(text.clone())),
                value => value.clone(),
            };
            let Binding::As(typed) = &global.value else { return Ok(value) };
            let value = self.converted(value, &typed.declared, "XTTE0590", global.place)?;
            return Ok(self.globals[at].get_or_init(|| value).clone());
        }
        if self.busy[at].swap(true, Ordering::Relaxed) {
            let message =
                format!("XTDE0640: the variable ${} needs its own value", self.symbols.show(global.name));
            return Err(self.fail(global.place, self.coded(message)));
        }
        let mut frame = Frame::default();
        frame.locals.resize(global.slots, Value::Empty);
        let is_absent =
            self.options.no_input || self.plan.global_context.as_ref().is_some_and(|context| context.absent);
        let node = if is_absent { Node::ABSENT } else { Node::new(Document::ROOT) };
        let focus = Focus::new(node, depth, next);
        let value = self.enter_from_expression(focus, global.place, |focus| {
            self.global_binding(&global.value, focus, &mut frame, global.place)
        });
        self.busy[at].store(false, Ordering::Relaxed);
        let value = value?;
        Ok(self.globals[at].get_or_init(|| value).clone())
    }

    /// The value of a global variable: requested within an expression.
    fn global_binding(&self, binding: &Binding, focus: Focus, frame: &mut Frame, place: Place) -> Res<Value> {
        match binding {
            Binding::Body(body) | Binding::Text(body) => self.tree(body, focus, frame, place),
            Binding::Sequence(body) => self.sequence_of(body, focus, frame, place),
            Binding::As(typed) => {
                let value = self.global_binding(&typed.value, focus, frame, place)?;
                self.converted(value, &typed.declared, typed.declared.code, place)
            }
            _ => self.binding(binding, focus, frame, place),
        }
    }

    /// Keeps a result tree fragment; its value is the root.
    pub(super) fn add_fragment(&self, doc: Document, place: Place) -> Res<Value> {
        if self.docs.count() >= self.options.limits.documents {
            return Err(self.limit(place, "the limit of result tree fragments is exceeded".into()));
        }
        let uri = self.plan.bases.get(place.base as usize).map_or("", String::as_str);
        match self.docs.add(doc, Cow::Borrowed(uri), Origin::Fragment) {
            Some(id) => Ok(Value::from(Node::in_document(id, Document::ROOT))),
            None => Err(self.fail(place, "there are too many result tree fragments".into())),
        }
    }

    /// The same for a fragment that holds only this text.
    fn add_text(&self, text: String, place: Place) -> Res<Value> {
        if self.docs.count() >= self.options.limits.documents {
            return Err(self.limit(place, "the limit of result tree fragments is exceeded".into()));
        }
        let uri = self.plan.bases.get(place.base as usize).map_or("", String::as_str);
        match self.docs.add_text(text, uri) {
            Some(id) => Ok(Value::from(Node::in_document(id, Document::ROOT))),
            None => Err(self.fail(place, "there are too many result tree fragments".into())),
        }
    }
}
