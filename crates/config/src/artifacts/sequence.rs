//! `<sequence>`: named, anonymous, or defined by a registry resource. The mediators stay elements.

use crate::element::{Child, Element, Name, SYNAPSE, Scope};
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::{Diagnostic, Diagnostics, Span};
use std::sync::Arc;

/// A sequence of mediators.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Its name; anonymous sequences have none.
    pub name: Option<Key>,
    /// The sequence that handles errors in this one.
    pub on_error: Option<Key>,
    /// The registry resource or local entry with the definition, instead of a body.
    pub key: Option<Key>,
    /// Trace messages.
    pub trace: bool,
    /// Collect statistics.
    pub statistics: bool,
    /// The documentation.
    pub description: Option<String>,
    /// The element that holds the mediators, with the comments between them.
    pub element: Element,
    /// The whole element.
    pub span: Span,
    /// Not in the files: the configuration has no `main` or `fault` sequence. The body is empty; the compiler
    /// supplies the default behaviour.
    pub built_in: bool,
}

/// A sequence by name or written in place.
#[derive(Clone, Debug)]
pub enum SequenceRef {
    /// A key, resolved when a message needs it.
    Named(Key),
    /// An anonymous sequence.
    Inline(Box<Sequence>),
}

pub(crate) const ATTRIBUTES: &[&str] = &["name", "onError", "key", "trace", "statistics", "description"];

impl Sequence {
    /// Reads a named sequence, also one from the registry; `None` after an error.
    pub fn parse(element: &Element, diagnostics: &mut Diagnostics) -> Option<Sequence> {
        let name = read::required(element, "name", diagnostics)?;
        let sequence = Sequence::body(element, diagnostics);
        if let (Some(key), Some(on_error)) = (&sequence.key, &sequence.on_error) {
            diagnostics.push(
                Diagnostic::error("conflict", "a sequence with a `key` cannot have `onError`")
                    .at(on_error.span, "belongs into the definition of the sequence")
                    .at(key.span, "which is here"),
            );
        }
        Some(Sequence { name: Some(name), ..sequence })
    }

    /// Reads an anonymous sequence: `inSequence`, `outSequence`, a `sequence` of a template, ….
    pub fn anonymous(element: &Element, diagnostics: &mut Diagnostics) -> Sequence {
        Sequence { name: None, ..Sequence::body(element, diagnostics) }
    }

    fn body(element: &Element, diagnostics: &mut Diagnostics) -> Sequence {
        Shape { attributes: ATTRIBUTES, elements: &[] }.check_attributes(element, diagnostics);
        Sequence {
            name: None,
            on_error: read::optional(element, "onError"),
            key: read::optional(element, "key"),
            trace: read::enabled(element, "trace", diagnostics),
            statistics: read::enabled(element, "statistics", diagnostics),
            description: super::description(element),
            element: element.clone(),
            span: element.span(),
            built_in: false,
        }
    }

    pub(crate) fn built_in(name: &str) -> Sequence {
        let element = Element::synthetic(
            Name { namespace: Arc::from(SYNAPSE), prefix: Arc::from(""), local: Arc::from("sequence") },
            Scope::new(),
        );
        Sequence {
            name: Some(Key { value: name.to_owned(), span: Span::BUILT_IN }),
            on_error: None,
            key: None,
            trace: false,
            statistics: false,
            description: None,
            element,
            span: Span::BUILT_IN,
            built_in: true,
        }
    }

    /// The mediators, in order; the documentation of the sequence is not one of them.
    pub fn mediators(&self) -> impl Iterator<Item = &Element> {
        self.element.children().iter().filter_map(|child| match child {
            Child::Element(element) if !element.is("description") => Some(element),
            _ => None,
        })
    }
}

impl SequenceRef {
    /// Reads the attribute `name`, else the child element `name`. The attribute wins.
    pub(crate) fn parse(element: &Element, name: &str, diagnostics: &mut Diagnostics) -> Option<SequenceRef> {
        let child = element.child(name);
        if let Some(key) = read::optional(element, name) {
            if let Some(child) = child {
                diagnostics.push(
                    Diagnostic::warning("conflict", format!("the inline `{name}` is ignored"))
                        .at(child.name_span(), "never used")
                        .at(key.span, "this attribute wins"),
                );
            }
            return Some(SequenceRef::Named(key));
        }
        child.map(|child| SequenceRef::Inline(Box::new(Sequence::anonymous(child, diagnostics))))
    }

    /// Where it is written.
    pub fn span(&self) -> Span {
        match self {
            SequenceRef::Named(key) => key.span,
            SequenceRef::Inline(sequence) => sequence.span,
        }
    }
}
