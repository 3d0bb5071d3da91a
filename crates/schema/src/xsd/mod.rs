//! XML Schema 1.0: schema documents to components ([`documents`], [`syntax`], [`build`], [`check`]), documents against
//! them ([`validate`]).
//!
//! In-house, because a bus needs together: imports by registry keys, XSD 1.0 as common engines read it,
//! every violation with its place, linear-time patterns, and no second tree of each message.

mod automaton;
mod blocks;
mod build;
mod builtin;
mod check;
mod datetime;
mod decimal;
mod documents;
mod facets;
mod identity;
#[allow(missing_docs)] // the terms of the specification
mod model;
mod names;
mod regex;
mod restrict;
mod simple;
mod syntax;
mod validate;
mod value;

use crate::{Resolver, Source, Violation};
use xml::{Document, NodeId};

/// An XML Schema, ready to validate.
#[derive(Debug)]
pub struct XmlSchema {
    components: model::Components,
}

impl XmlSchema {
    /// Loads schema documents and what they include, import and redefine into one schema.
    ///
    /// Errors: everything that is wrong with the documents.
    pub fn load(sources: Vec<Source>, resolver: &dyn Resolver) -> Result<XmlSchema, Vec<Violation>> {
        let mut components = model::Components::default();
        let documents = documents::load(sources, resolver, &mut components.names);
        if !documents.problems.is_empty() {
            return Err(documents.problems);
        }
        builtin::install(&mut components, model::Place { doc: 0, node: Document::ROOT });
        let mut builder = build::Builder::new(documents, components);
        builder.build();
        if builder.docs.problems.is_empty() {
            check::finish(&mut builder);
        }
        if !builder.docs.problems.is_empty() {
            return Err(builder.docs.problems);
        }
        Ok(XmlSchema { components: builder.schema })
    }

    /// All violations of the element `root`, in document order; the first 1,000.
    pub fn validate(&self, document: &Document, root: NodeId) -> Vec<Violation> {
        validate::validate(&self.components, document, root)
    }
}
