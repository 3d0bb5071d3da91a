//! The document type declaration (XML 1.0, 2.8): entities, attribute defaults and types. Only read when asked for;
//! validity is not checked, well-formedness is.
//!
//! This file: the result of a declaration, and the use of entities. [`declarations`] is the grammar.

mod declarations;

use crate::error::{ErrorKind, Fault, Res, fault, limit, syntax};
use crate::tree::DtdFacts;
use crate::{Dtd, Limits, ParseOptions, Resolver, encoding, lex, scan};
use declarations::Cursor;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// An attribute as declared.
#[derive(Debug)]
pub(crate) struct AttributeDecl {
    pub name: String,
    /// The normalised default value.
    pub default: Option<String>,
    pub kind: AttributeKind,
}

/// The effect of the type of an attribute.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttributeKind {
    /// CDATA: spaces stay.
    Cdata,
    Id,
    /// IDREF and IDREFS.
    Reference,
    Other,
}

#[derive(Clone, Debug)]
enum Value {
    Internal(Rc<str>),
    External { system: String, public: Option<String>, base: Option<String> },
    Unparsed,
}

#[derive(Clone, Debug)]
struct Entity {
    value: Value,
    /// Declared in the external subset or a parameter entity.
    outside: bool,
}

/// The declarations read, and the entities being expanded.
pub(crate) struct DtdState {
    pub facts: DtdFacts,
    limits: Limits,
    resolver: Option<Arc<dyn Resolver>>,
    base: Option<String>,
    standalone: bool,
    /// What a reference leads to must be in the document ([`Dtd::Complete`]).
    complete: bool,
    general: HashMap<Box<str>, Entity>,
    parameter: HashMap<Box<str>, Entity>,
    attributes: HashMap<Box<str>, Rc<Vec<AttributeDecl>>>,
    /// An external part was not read: undeclared names may be declared there.
    unread: bool,
    /// Entities being expanded, innermost last; parameter entities with their `%`.
    open: Vec<String>,
    /// The bytes that references have added.
    expanded: usize,
    /// The base URI of the present text.
    base_of_entity: Option<String>,
    /// Inside the external subset or a parameter entity.
    outside: bool,
}

impl DtdState {
    pub fn new(options: &ParseOptions, standalone: bool) -> DtdState {
        let resolver = match &options.dtd {
            Dtd::External(resolver) => Some(resolver.clone()),
            _ => None,
        };
        DtdState {
            facts: DtdFacts::default(),
            limits: options.limits.clone(),
            resolver,
            base: options.base_uri.clone(),
            standalone,
            complete: matches!(options.dtd, Dtd::Complete),
            general: HashMap::new(),
            parameter: HashMap::new(),
            attributes: HashMap::new(),
            unread: false,
            open: Vec::new(),
            expanded: 0,
            base_of_entity: options.base_uri.clone(),
            outside: false,
        }
    }

    /// The whole declaration ([28]); `at` is its `<`. Returns the offset after its `>`.
    pub fn doctype(&mut self, input: &[u8], at: usize) -> Res<usize> {
        let mut c = Cursor::new(input, at + 9);
        c.need_space()?;
        self.facts.name = c.name(&self.limits)?.to_owned();
        let spaced = c.skip_space();
        if c.peek() != Some(b'[') && c.peek() != Some(b'>') {
            if !spaced {
                return syntax("expected white space in the document type declaration", c.at);
            }
            let (system, public) = c.external_id(true)?;
            self.facts.system_id = system;
            self.facts.public_id = public;
            c.skip_space();
        }
        let external = self.facts.system_id.clone();
        self.unread = external.is_some() && self.resolver.is_none();
        if c.eat(b"[") {
            c.at = self.subset(input, c.at, true, false)?;
            c.skip_space();
        }
        if !c.eat(b">") {
            return c.unexpected("expected `>` at the end of the document type declaration");
        }
        if let (Some(system), true) = (external, self.resolver.is_some()) {
            let public = self.facts.public_id.clone();
            let (text, base) = self.load(&system, public.as_deref(), at)?;
            let outer = (self.base_of_entity.replace(base), std::mem::replace(&mut self.outside, true));
            let result = self.subset(text.as_bytes(), 0, false, true);
            (self.base_of_entity, self.outside) = outer;
            result.map_err(|f| within(*f, &format!("the external subset `{system}`"), at))?;
        }
        Ok(c.at)
    }

    /// The declared attributes of an element.
    pub fn attributes_of(&self, element: &str) -> Option<Rc<Vec<AttributeDecl>>> {
        self.attributes.get(element).cloned()
    }

    pub fn attribute_of(&self, element: &str, name: &str) -> Option<&AttributeDecl> {
        self.attributes.get(element)?.iter().find(|a| a.name == name)
    }

    pub fn into_facts(self) -> DtdFacts {
        self.facts
    }

    /// The replacement text of a general entity, for content; `None` where it is not read. Every success with a text
    /// is followed by [`DtdState::leave`].
    pub fn enter(&mut self, name: &str, at: usize) -> Res<Option<Rc<str>>> {
        let Some(entity) = self.lookup(name, at)? else { return Ok(None) };
        let text = match entity.value {
            Value::Unparsed => {
                return fault(ErrorKind::Entity, format!("the entity `{name}` is not text"), at);
            }
            Value::Internal(text) => text,
            Value::External { system, public, base } => {
                if self.complete {
                    let message =
                        format!("the entity `{name}` is the file `{system}`, and other files are not read");
                    return fault(ErrorKind::External, message, at);
                }
                if self.resolver.is_none() {
                    return Ok(None);
                }
                self.guard(name, at)?;
                let outer = std::mem::replace(&mut self.base_of_entity, base);
                let loaded = self.load(&system, public.as_deref(), at);
                self.base_of_entity = outer;
                let (text, base) = loaded?;
                let text: Rc<str> = text.into();
                // Read once; relative references in it are resolved against its own base, which its declarations remember.
                let _ = base;
                let value = Value::Internal(text.clone());
                self.general.insert(name.into(), Entity { value, outside: entity.outside });
                text
            }
        };
        self.open(name, text.len(), at)?;
        Ok(Some(text))
    }

    pub fn leave(&mut self) {
        self.open.pop();
    }

    /// Appends the normalised replacement text of an entity in an attribute value.
    pub fn entity_in_value(&mut self, name: &str, at: usize, out: &mut String) -> Res<()> {
        let Some(entity) = self.lookup(name, at)? else { return Ok(()) };
        let Value::Internal(text) = entity.value else {
            return fault(
                ErrorKind::Entity,
                format!("the external entity `{name}` in an attribute value"),
                at,
            );
        };
        self.open(name, text.len(), at)?;
        let limits = self.limits.clone();
        let result =
            lex::attribute_value(text.as_bytes(), 0, text.len(), &limits, out, &mut |inner, _, out| {
                self.entity_in_value(inner, at, out)
            });
        self.leave();
        result.map_err(|f| within(*f, &format!("the entity `{name}`"), at))
    }

    fn lookup(&mut self, name: &str, at: usize) -> Res<Option<Entity>> {
        match self.general.get(name) {
            Some(entity) if self.standalone && entity.outside => fault(
                ErrorKind::Entity,
                format!("the entity `{name}` is declared outside a document that stands alone"),
                at,
            ),
            Some(entity) => Ok(Some(entity.clone())),
            None if self.unread && self.complete => {
                let message =
                    format!("the entity `{name}` is not declared in this file, and other files are not read");
                fault(ErrorKind::Entity, message, at)
            }
            None if self.unread && !self.standalone => Ok(None),
            None => fault(ErrorKind::Entity, format!("the entity `{name}` is not declared"), at),
        }
    }

    fn guard(&self, name: &str, at: usize) -> Res<()> {
        if self.open.iter().any(|open| open == name) {
            return fault(ErrorKind::Entity, format!("the entity `{name}` contains itself"), at);
        }
        if self.open.len() >= self.limits.entity_depth {
            return limit("entity_depth", self.limits.entity_depth, at);
        }
        Ok(())
    }

    fn open(&mut self, name: &str, len: usize, at: usize) -> Res<()> {
        self.guard(name, at)?;
        // An empty entity costs too.
        self.expanded += len + 16;
        if self.expanded > self.limits.entity_expansion {
            return limit("entity_expansion", self.limits.entity_expansion, at);
        }
        self.open.push(name.to_owned());
        Ok(())
    }

    /// The text of an external entity, without its text declaration, line ends normalised, and its base URI.
    fn load(&mut self, system: &str, public: Option<&str>, at: usize) -> Res<(String, String)> {
        let Some(resolver) = &self.resolver else {
            return fault(ErrorKind::External, format!("`{system}` is not read"), at);
        };
        let base = self.base_of_entity.as_deref().or(self.base.as_deref());
        let (bytes, base) = match resolver.resolve(system, public, base) {
            Ok(found) => found,
            Err(message) => return fault(ErrorKind::External, message, at),
        };
        let named = |message: &str| format!("{message} (in `{system}`)");
        if bytes.len() > self.limits.total {
            return limit("total", self.limits.total, at);
        }
        let text = match encoding::decode(bytes, None) {
            Ok(decoded) => decoded.text,
            Err(e) => return fault(e.kind, named(&e.message), at),
        };
        scan::survey(&text).map_err(|f| Box::new(Fault { message: named(&f.message).into(), at, ..*f }))?;
        let mut start = 0;
        if text.starts_with(b"<?xml") && text.get(5).is_some_and(|&b| crate::is_space(b)) {
            let decl = lex::xml_decl(&text, true);
            start = decl.map_err(|f| Box::new(Fault { message: named(&f.message).into(), at, ..*f }))?.end;
        }
        let mut out = String::with_capacity(text.len() - start);
        lex::push_lines(&mut out, lex::text(&text[start..]));
        Ok((out, base))
    }

    /// The replacement text of a parameter entity and the base of what is in it; `None` where it is not read.
    fn parameter(&mut self, name: &str, at: usize) -> Res<Option<(Rc<str>, Option<String>)>> {
        let key = format!("%{name}");
        let Some(entity) = self.parameter.get(name).cloned() else {
            if self.standalone {
                return fault(
                    ErrorKind::Entity,
                    format!("the parameter entity `{name}` is not declared"),
                    at,
                );
            }
            self.unread = true;
            return Ok(None);
        };
        self.guard(&key, at)?;
        let (text, base) = match entity.value {
            Value::Internal(text) => (text, self.base_of_entity.clone()),
            Value::Unparsed => {
                return fault(ErrorKind::Entity, format!("the entity `{name}` is not text"), at);
            }
            Value::External { system, public, base } => {
                if self.resolver.is_none() {
                    self.unread = true;
                    return Ok(None);
                }
                let outer = std::mem::replace(&mut self.base_of_entity, base);
                let loaded = self.load(&system, public.as_deref(), at);
                self.base_of_entity = outer;
                let (text, base) = loaded?;
                (text.into(), Some(base))
            }
        };
        self.open(&key, text.len(), at)?;
        Ok(Some((text, base)))
    }
}

/// A fault inside a text that was expanded at `at`.
fn within(f: Fault, entity: &str, at: usize) -> Box<Fault> {
    let kind = if f.kind == ErrorKind::UnexpectedEnd { ErrorKind::Syntax } else { f.kind };
    let message =
        if f.message.contains(" (in ") { f.message } else { format!("{} (in {entity})", f.message).into() };
    Box::new(Fault { kind, message, at })
}
