//! The document type declaration: entities, attribute defaults and types.

use crate::ParseOptions;
use crate::error::{ErrorKind, Res, fault};
use crate::tree::DtdFacts;
use std::rc::Rc;

pub(crate) struct AttributeDecl {
    pub name: String,
    pub default: Option<String>,
    pub cdata: bool,
    pub id: bool,
}

pub(crate) struct DtdState {
    pub facts: DtdFacts,
}

impl DtdState {
    pub fn new(_options: &ParseOptions, _standalone: bool) -> DtdState {
        DtdState { facts: DtdFacts::default() }
    }
    pub fn doctype(&mut self, _input: &[u8], at: usize) -> Res<usize> {
        fault(ErrorKind::Doctype, "a document type declaration is not read yet", at)
    }
    pub fn attributes_of(&self, _element: &str) -> Option<Rc<Vec<AttributeDecl>>> {
        None
    }
    pub fn attribute_of(&self, _element: &str, _name: &str) -> Option<&AttributeDecl> {
        None
    }
    pub fn entity_in_value(&mut self, name: &str, at: usize, _out: &mut String) -> Res<()> {
        fault(ErrorKind::Entity, format!("the entity `{name}` is not declared"), at)
    }
    pub fn enter(&mut self, name: &str, at: usize) -> Res<Option<Rc<str>>> {
        fault(ErrorKind::Entity, format!("the entity `{name}` is not declared"), at)
    }
    pub fn leave(&mut self) {}
    pub fn into_facts(self) -> DtdFacts {
        self.facts
    }
}
