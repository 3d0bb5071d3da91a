//! Lists of mediators: sequences, what stands inside of mediators, and references to sequences.

use super::{Compiler, trimmed};
use crate::runtime::mediator::{ListId, Mediator};
use crate::runtime::plan::{List, Planned};
use crate::runtime::reference::SequenceRef;
use config::{ArtifactKind, Element, Key};
use diagnostics::{Diagnostic, Span};
use std::sync::Arc;

impl Compiler<'_> {
    /// The number of a list that is filled later, so that others can refer to it.
    pub(super) fn reserve(&mut self) -> ListId {
        self.lists.push(None);
        ListId(self.lists.len() as u32 - 1)
    }

    /// Compiles the mediators inside of an element into a list that is reserved.
    pub(super) fn fill(&mut self, id: ListId, label: String, element: &Element, on_error: Option<&Key>) {
        let on_error = on_error.and_then(|key| self.handler(key));
        let steps = self.steps(element, &[]);
        self.lists[id.0 as usize] =
            Some(List { label, steps, on_error, trace: is_traced(element), span: element.span() });
    }

    /// Compiles the mediators inside an element (those that are not named in `skip`) into a list.
    pub fn list(&mut self, element: &Element, label: impl Into<String>) -> ListId {
        self.list_but(element, label, &[])
    }

    /// As [`Compiler::list`], without the children called as in `skip`.
    pub fn list_but(&mut self, element: &Element, label: impl Into<String>, skip: &[&str]) -> ListId {
        let on_error = element.attribute("onError").map(Key::of);
        let on_error = on_error.and_then(|key| self.handler(&key));
        let steps = self.steps(element, skip);
        let id = self.reserve();
        self.lists[id.0 as usize] = Some(List {
            label: label.into(),
            steps,
            on_error,
            trace: is_traced(element),
            span: element.span(),
        });
        id
    }

    /// Makes a list of mediators that a mediator is made of; `name` and `element` are its own.
    pub fn list_of(
        &mut self,
        element: &Element,
        name: &'static str,
        label: impl Into<String>,
        mediators: Vec<Box<dyn Mediator>>,
    ) -> ListId {
        let span = element.start_tag();
        self.list_at(element, name, label, mediators.into_iter().map(|mediator| (span, mediator)))
    }

    /// As [`Compiler::list_of`], for mediators that have places of their own.
    pub fn list_at(
        &mut self,
        element: &Element,
        name: &'static str,
        label: impl Into<String>,
        mediators: impl IntoIterator<Item = (Span, Box<dyn Mediator>)>,
    ) -> ListId {
        let span = element.start_tag();
        let steps =
            mediators.into_iter().map(|(place, mediator)| Planned::new(mediator, name, place)).collect();
        let id = self.reserve();
        self.lists[id.0 as usize] =
            Some(List { label: label.into(), steps, on_error: None, trace: false, span });
        id
    }

    /// Compiles the children of an element, but those in `skip`.
    fn steps(&mut self, element: &Element, skip: &[&str]) -> Vec<Planned> {
        config::read::stray_text(element, self.diagnostics);
        // Directly in a mediator, one of its parts may be meant.
        let parts = if self.parts.of == Some(element.span()) { self.parts.inside } else { &[] };
        let mut steps = Vec::new();
        for child in element.elements() {
            if skip.contains(&child.local()) || child.is("description") {
                continue;
            }
            if let Some(planned) = self.mediator(child, parts) {
                steps.push(planned);
            }
        }
        steps
    }

    /// A fault handler by name; one that does not exist is a warning and no handler.
    pub fn handler(&mut self, key: &Key) -> Option<ListId> {
        let key = &trimmed(key);
        // An attribute without a value is none.
        if key.value.is_empty() {
            return None;
        }
        let found = self.sequences.get(&key.value).copied().or_else(|| self.registry_sequence(key));
        if found.is_none() {
            let names = self.configuration.sequences.names();
            self.diagnostics.push(
                Diagnostic::warning("unknown-sequence", format!("there is no sequence `{}`", key.value))
                    .at(key.span, "so errors go to the next handler outside")
                    .did_you_mean(&key.value, names),
            );
        }
        found
    }

    /// The sequence that an attribute names; a static name that does not exist is a warning, and a fault at run time.
    pub fn sequence(&mut self, element: &Element, attribute: &str) -> Option<SequenceRef> {
        let attribute = element.attribute(attribute)?;
        match config::Value::parse(attribute.value.trim(), attribute.value_span, element.scope()) {
            config::Value::Literal(key) | config::Value::Deferred(key) => Some(self.sequence_key(&key)),
            config::Value::Expression(expression) => self
                .expression_text(&expression.source, expression.span, &expression.scope)
                .map(|expression| SequenceRef::Dynamic(Box::new(expression))),
        }
    }

    /// A sequence by key.
    pub fn sequence_key(&mut self, key: &Key) -> SequenceRef {
        let key = &trimmed(key);
        if let Some(&list) = self.sequences.get(&key.value) {
            return SequenceRef::Known(list);
        }
        if let Some(list) = self.registry_sequence(key) {
            return SequenceRef::Known(list);
        }
        if self.is_not_fetched(&key.value) {
            return SequenceRef::Missing(Arc::from(key.value.as_str()));
        }
        let names = self.configuration.sequences.names();
        self.diagnostics.push(
            Diagnostic::warning("unknown-sequence", format!("there is no sequence `{}`", key.value))
                .at(key.span, "messages that come here fault")
                .did_you_mean(&key.value, names),
        );
        SequenceRef::Missing(Arc::from(key.value.as_str()))
    }

    /// A list by reference or inline, as artifacts have them.
    pub fn sequence_of(&mut self, reference: &config::SequenceRef, label: &str) -> SequenceRef {
        match reference {
            config::SequenceRef::Named(key) => self.sequence_key(key),
            config::SequenceRef::Inline(sequence) => {
                let id = self.reserve();
                self.fill(id, label.to_owned(), &sequence.element, sequence.on_error.as_ref());
                SequenceRef::Known(id)
            }
        }
    }

    /// A sequence from the registry, compiled once per plan.
    fn registry_sequence(&mut self, key: &Key) -> Option<ListId> {
        let bytes = self.configuration.registry.read(&key.value).ok().flatten()?.bytes;
        let element = config::parse(diagnostics::FileId::BUILT_IN, &String::from_utf8_lossy(&bytes)).ok()?;
        if !element.is("sequence") {
            return None;
        }
        let id = self.reserve();
        self.sequences.insert(key.value.clone(), id);
        let on_error = element.attribute("onError").map(Key::of);
        // Its findings do not belong to the artifact that names it first.
        let outer = std::mem::take(self.diagnostics);
        let made = self.artifact(ArtifactKind::Sequence, &key.value, key.span, |compiler| {
            compiler.fill(id, format!("sequence {}", key.value), &element, on_error.as_ref());
            Some(())
        });
        let found = std::mem::replace(self.diagnostics, outer);
        self.aside.extend(found);
        if made.is_none() {
            self.leave_out(id, &key.value, key.span);
        }
        Some(id)
    }
}

fn is_traced(element: &Element) -> bool {
    element.attr("trace") == Some("enable")
}
