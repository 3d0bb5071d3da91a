//! What the tokenizer reports: events, their names and attributes.

use super::Tokenizer;
use crate::names::{NameId, Names, PrefixId};

/// A name of an event.
#[derive(Copy, Clone)]
pub struct Name<'a> {
    pub(super) names: &'a Names,
    pub(super) id: u32,
    pub(super) prefix: PrefixId,
}

impl<'a> Name<'a> {
    /// The expanded name: equal to that of [`Tokenizer::intern`] for the same namespace and local name.
    #[inline]
    pub fn id(&self) -> NameId {
        NameId(self.id)
    }

    /// The namespace URI, `""` for none.
    #[inline]
    pub fn namespace(&self) -> &'a str {
        self.names.uri_str(self.names.uri_id_of(self.id))
    }

    /// The local name.
    #[inline]
    pub fn local(&self) -> &'a str {
        self.names.local_of(self.id)
    }

    /// The prefix as written, `""` for none.
    #[inline]
    pub fn prefix(&self) -> &'a str {
        self.names.prefix_str(self.prefix)
    }

    /// Whether this is the expanded name (`namespace`, `local`).
    #[inline]
    pub fn is(&self, namespace: &str, local: &str) -> bool {
        self.local() == local && self.namespace() == namespace
    }
}

impl std::fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{}}}{}", self.namespace(), self.local())
    }
}

/// An attribute of an event.
#[derive(Copy, Clone, Debug)]
pub struct Attribute<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// Its normalised value.
    pub value: &'a str,
}

/// The attributes (without namespace declarations) of a start tag, in order.
#[derive(Copy, Clone)]
pub struct Attributes<'a> {
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) next: usize,
}

impl<'a> Attributes<'a> {
    /// The value of the attribute with this expanded name.
    pub fn get(&self, namespace: &str, local: &str) -> Option<&'a str> {
        self.into_iter().find(|a| a.name.is(namespace, local)).map(|a| a.value)
    }

    /// The value of the attribute with this name, see [`Tokenizer::intern`].
    pub fn get_id(&self, name: NameId) -> Option<&'a str> {
        self.into_iter().find(|a| a.name.id == name.0).map(|a| a.value)
    }

    /// The namespaces declared in the tag, as (prefix, URI).
    pub fn declarations(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let tokenizer = self.tokenizer;
        tokenizer
            .bindings
            .since(tokenizer.tag_mark)
            .map(|p| (tokenizer.names.prefix_str(p), tokenizer.names.uri_str(tokenizer.bindings.get(p))))
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;
    #[inline]
    fn next(&mut self) -> Option<Attribute<'a>> {
        let a = self.tokenizer.resolved.get(self.next)?;
        self.next += 1;
        let name = Name { names: &self.tokenizer.names, id: a.name, prefix: a.prefix };
        Some(Attribute { name, value: self.tokenizer.piece(a.value) })
    }
}

impl std::fmt::Debug for Attributes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

/// An event.
#[derive(Copy, Clone, Debug)]
pub enum Event<'a> {
    /// A start tag. An [`Event::EndElement`] follows also when `empty`.
    StartElement {
        /// The element's name.
        name: Name<'a>,
        /// Its attributes.
        attributes: Attributes<'a>,
        /// The element was written as `<a/>`.
        empty: bool,
    },
    /// An end tag, or the end of an empty element.
    EndElement {
        /// The element's name.
        name: Name<'a>,
    },
    /// Text, references replaced and line ends normalised. Text may come in several pieces.
    Text(&'a str),
    /// A comment.
    Comment(&'a str),
    /// A processing instruction.
    ProcessingInstruction {
        /// Its target.
        target: &'a str,
        /// Its data.
        data: &'a str,
    },
}
