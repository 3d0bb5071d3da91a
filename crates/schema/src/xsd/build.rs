//! From schema documents to components: references resolved, types derived.
//!
//! Types get their number when they are first mentioned and are built later, so that elements may contain elements of
//! their own type. The types that a type needs to be built (base, items, members) are built first; a circle there is an error.

mod attributes;
mod complex;
mod elements;
mod simple;

use super::documents::{ComponentKind, Documents, elements};
use super::model::*;
use super::names::{NONE, Name, XS, XSI};
use std::collections::{HashMap, HashSet};
use xml::{Document, NodeId};

/// Deepest chain of types, groups and attribute groups that need one another.
const MAX_CHAIN: usize = 200;

/// A schema under construction.
pub struct Builder {
    pub docs: Documents,
    pub schema: Components,
    types: HashMap<Place, TypeId>,
    elements: HashMap<Place, ElementId>,
    attributes: HashMap<Place, AttributeId>,
    groups: HashMap<Place, ParticleId>,
    open: Vec<Place>,
    /// Redefinitions that refer to what they redefine.
    pub extended: HashSet<Place>,
    /// Checks that need all types.
    pub deferred: Vec<DeferredCheck>,
    todo: Vec<(TypeId, Place)>,
}

/// A check that needs all types.
pub enum DeferredCheck {
    /// An attribute of a restriction, and the attribute of the base that it restricts.
    Attribute { derived: AttributeUse, old: AttributeUse },
}

/// Attributes of a type or group.
#[derive(Clone, Default)]
struct Attributes {
    uses: Vec<AttributeUse>,
    wildcard: Option<Wildcard>,
}

impl Builder {
    pub fn new(docs: Documents, schema: Components) -> Builder {
        Builder {
            docs,
            schema,
            types: HashMap::new(),
            elements: HashMap::new(),
            attributes: HashMap::new(),
            groups: HashMap::new(),
            open: Vec::new(),
            extended: HashSet::new(),
            deferred: Vec::new(),
            todo: Vec::new(),
        }
    }

    /// Builds all listed components.
    pub fn build(&mut self) {
        let mut globals: Vec<(ComponentKind, Name, Place)> =
            self.docs.globals.iter().map(|(k, &place)| (k.0, k.1, place)).collect();
        globals.sort_by_key(|g| (g.2.doc, g.2.node));
        for &(kind, name, place) in &globals {
            match kind {
                ComponentKind::Notation => {
                    self.schema.notations.insert(name);
                }
                ComponentKind::Type => {
                    let id = self.global_type(place, name);
                    self.schema.global_types.insert(name, id);
                }
                _ => {}
            }
        }
        for &(kind, name, place) in &globals {
            match kind {
                ComponentKind::Element => {
                    let id = self.element(place, true);
                    self.schema.global_elements.insert(name, id);
                }
                ComponentKind::Attribute => {
                    let id = self.attribute(place, true);
                    self.schema.global_attributes.insert(name, id);
                }
                ComponentKind::Group => {
                    self.group(place);
                }
                ComponentKind::AttributeGroup => {
                    let node = place.node;
                    self.chain(place, |b| b.attribute_uses(place, node)).unwrap_or_default();
                }
                _ => {}
            }
        }
        while let Some((id, place)) = self.todo.pop() {
            self.complete(id, place);
        }
    }

    pub fn tree(&self, place: Place) -> &Document {
        &self.docs.list[place.doc].tree
    }

    pub fn problem(&mut self, place: Place, rule: &'static str, message: impl Into<String>) {
        self.docs.problem(place, rule, message);
    }

    fn at(&self, place: Place, node: NodeId) -> Place {
        Place { node, ..place }
    }

    fn attr(&self, place: Place, name: &str) -> Option<String> {
        self.tree(place)
            .attribute(place.node, "", name)
            .map(|t| t.trim_matches([' ', '\t', '\n', '\r']).to_owned())
    }

    fn raw(&self, place: Place, name: &str) -> Option<String> {
        self.tree(place).attribute(place.node, "", name).map(str::to_owned)
    }

    fn is_true(&self, place: Place, name: &str) -> bool {
        matches!(self.attr(place, name).as_deref(), Some("true" | "1"))
    }

    fn children(&self, place: Place) -> Vec<(String, Place)> {
        let tree = self.tree(place);
        elements(tree, place.node)
            .map(|n| (tree.local(n).to_owned(), self.at(place, n)))
            .filter(|c| c.0 != "annotation")
            .collect()
    }

    fn child(&self, place: Place, local: &str) -> Option<Place> {
        self.children(place).into_iter().find(|c| c.0 == local).map(|c| c.1)
    }

    /// Runs `work` for a component that must not depend on itself; `None` where it does.
    fn chain<T>(&mut self, place: Place, work: impl FnOnce(&mut Builder) -> T) -> Option<T> {
        if self.open.contains(&place) || self.open.len() > MAX_CHAIN {
            let name = self.attr(place, "name").unwrap_or_default();
            self.problem(place, "circular", format!("`{name}` is defined by itself, or by too long a chain"));
            return None;
        }
        self.open.push(place);
        let done = work(self);
        self.open.pop();
        Some(done)
    }

    // References

    /// The expanded name of a QName.
    pub fn qname(&mut self, place: Place, text: &str) -> Option<Name> {
        let doc = &self.docs.list[place.doc];
        let (prefix, local) = text.split_once(':').unwrap_or(("", text));
        let ns = match doc.tree.lookup_prefix(place.node, prefix) {
            Some(uri) => self.schema.names.intern(uri),
            None if !prefix.is_empty() => {
                self.problem(place, "src-resolve", format!("the prefix of `{text}` is not declared"));
                return None;
            }
            None if doc.chameleon => doc.target,
            None => NONE,
        };
        let doc = &self.docs.list[place.doc];
        let visible = ns == doc.target || ns == XS || ns == XSI || doc.imports.contains(&ns);
        let name = Name { ns, local: self.schema.names.intern(local) };
        if !visible {
            let message = match self.schema.names.text(ns) {
                "" => format!(
                    "`{text}` has no namespace, and the document does not import components without one"
                ),
                uri => format!("the document does not import the namespace of `{text}` (`{uri}`)"),
            };
            self.problem(place, "src-resolve.4", message);
            return None;
        }
        Some(name)
    }

    /// The component that the attribute `attribute` refers to.
    fn refer(&mut self, place: Place, kind: ComponentKind, text: &str) -> Option<(Name, Place)> {
        let name = self.qname(place, text)?;
        let Some(&found) = self.docs.globals.get(&(kind, name)) else {
            self.missing(place, kind, name);
            return None;
        };
        // In a redefinition its own name means the component that is redefined; it may be redefined again itself.
        let mut at = Some(place.node);
        while let Some(node) = at {
            let around = self.at(place, node);
            if let Some(&old) = self.docs.redefined.get(&around)
                && ComponentKind::of(self.tree(around).local(node)) == Some(kind)
                && self.docs.list[around.doc].target == name.ns
                && self.attr(around, "name").as_deref() == Some(self.schema.names.text(name.local))
            {
                self.extended.insert(around);
                return Some((name, old));
            }
            at = self.tree(place).parent(node);
        }
        Some((name, found))
    }

    fn missing(&mut self, place: Place, kind: ComponentKind, name: Name) {
        let mut message = format!("there is no {} `{}`", kind.text(), self.schema.names.show(name));
        if let Some(similar) = self.nearest(kind, name) {
            message.push_str(&format!("; did you mean `{similar}`?"));
        }
        if !self.docs.missing.is_empty() {
            message.push_str(&format!(" (not found: {})", self.docs.missing.join("; ")));
        }
        self.problem(place, "src-resolve", message);
    }

    fn nearest(&self, kind: ComponentKind, name: Name) -> Option<String> {
        let names = &self.schema.names;
        let of_schema = self
            .docs
            .globals
            .keys()
            .filter(|k| k.0 == kind && k.1.ns == name.ns)
            .map(|k| names.text(k.1.local));
        let mut candidates: Vec<&str> = of_schema.collect();
        if kind == ComponentKind::Type && name.ns == XS {
            candidates
                .extend(self.schema.global_types.keys().filter(|k| k.ns == XS).map(|k| names.text(k.local)));
        }
        candidates.sort_unstable();
        diagnostics::nearest(names.text(name.local), candidates.iter().copied()).map(str::to_owned)
    }

    /// The type that a QName means.
    fn type_ref(&mut self, place: Place, text: &str) -> TypeId {
        let Some(name) = self.qname(place, text) else { return ANY_TYPE };
        if name.ns == XS
            && let Some(&id) = self.schema.global_types.get(&name)
        {
            return id;
        }
        match self.refer(place, ComponentKind::Type, text) {
            Some((name, found)) => self.global_type(found, name),
            None => ANY_TYPE,
        }
    }

    fn global_type(&mut self, place: Place, name: Name) -> TypeId {
        self.reserve(place, Some(name))
    }

    /// The number of a type; it is built later.
    fn reserve(&mut self, place: Place, name: Option<Name>) -> TypeId {
        if let Some(&id) = self.types.get(&place) {
            return id;
        }
        let id = self.schema.types.len();
        let is_final = Ways::NONE;
        self.schema.types.push(Type {
            name,
            base: ANY_TYPE,
            derivation: Ways::RESTRICTION,
            is_final,
            place: Some(place),
            body: Body::Pending,
        });
        self.types.insert(place, id);
        self.todo.push((id, place));
        id
    }

    /// Builds a type now. `false`: it cannot be built.
    fn need(&mut self, id: TypeId) -> bool {
        match self.schema.types[id].place {
            Some(place) if matches!(self.schema.types[id].body, Body::Pending) => self.complete(id, place),
            _ => true,
        }
    }

    fn complete(&mut self, id: TypeId, place: Place) -> bool {
        if !matches!(self.schema.types[id].body, Body::Pending) {
            return true;
        }
        let built = self.chain(place, |b| {
            if b.tree(place).local(place.node) == "simpleType" {
                b.simple_type(id, place)
            } else {
                b.complex_type(id, place)
            }
        });
        built.is_some()
    }
}
