//! From schema documents to components: references resolved, types derived.
//!
//! Types get their number when they are first mentioned and are built later, so that elements may contain elements of
//! their own type. What a type needs to be built (its base, items, members) is built first; a circle there is an error.

use super::documents::{Documents, Kind, elements};
use super::identity::Selector;
use super::model::*;
use super::names::{NONE, Name, XS, XSI};
use super::syntax::{number, ways};
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
    pub later: Vec<Later>,
    todo: Vec<(TypeId, Place)>,
}

/// A check that needs all types.
pub enum Later {
    /// An attribute of a restriction, and the one of the base that it restricts.
    Attribute { own: AttributeUse, old: AttributeUse },
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
            later: Vec::new(),
            todo: Vec::new(),
        }
    }

    /// Builds everything that is listed.
    pub fn build(&mut self) {
        let mut globals: Vec<(Kind, Name, Place)> =
            self.docs.globals.iter().map(|(k, &place)| (k.0, k.1, place)).collect();
        globals.sort_by_key(|g| (g.2.doc, g.2.node));
        for &(kind, name, place) in &globals {
            match kind {
                Kind::Notation => {
                    self.schema.notations.insert(name);
                }
                Kind::Type => {
                    let id = self.global_type(place, name);
                    self.schema.global_types.insert(name, id);
                }
                _ => {}
            }
        }
        for &(kind, name, place) in &globals {
            match kind {
                Kind::Element => {
                    let id = self.element(place, true);
                    self.schema.global_elements.insert(name, id);
                }
                Kind::Attribute => {
                    let id = self.attribute(place, true);
                    self.schema.global_attributes.insert(name, id);
                }
                Kind::Group => {
                    self.group(place);
                }
                Kind::AttributeGroup => {
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

    /// Runs `work` for a component that must not need itself; `None` where it does.
    fn chain<T>(&mut self, place: Place, work: impl FnOnce(&mut Builder) -> T) -> Option<T> {
        if self.open.contains(&place) || self.open.len() > MAX_CHAIN {
            let what = self.attr(place, "name").unwrap_or_default();
            self.problem(place, "circular", format!("`{what}` is defined by itself, or by too long a chain"));
            return None;
        }
        self.open.push(place);
        let done = work(self);
        self.open.pop();
        Some(done)
    }

    // References

    /// The expanded name that a QName means there.
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

    /// The component that attribute `attribute` refers to.
    fn refer(&mut self, place: Place, kind: Kind, text: &str) -> Option<(Name, Place)> {
        let name = self.qname(place, text)?;
        let Some(&found) = self.docs.globals.get(&(kind, name)) else {
            self.missing(place, kind, name);
            return None;
        };
        // Inside a redefinition its own name is what was there before.
        let mut at = Some(place.node);
        while let Some(node) = at {
            let around = self.at(place, node);
            if around == found
                && let Some(&old) = self.docs.redefined.get(&around)
            {
                self.extended.insert(around);
                return Some((name, old));
            }
            at = self.tree(place).parent(node);
        }
        Some((name, found))
    }

    fn missing(&mut self, place: Place, kind: Kind, name: Name) {
        let mut message = format!("there is no {} `{}`", kind.text(), self.schema.names.show(name));
        if let Some(known) = self.nearest(kind, name) {
            message.push_str(&format!("; did you mean `{known}`?"));
        }
        if !self.docs.missing.is_empty() {
            message.push_str(&format!(" (not found: {})", self.docs.missing.join("; ")));
        }
        self.problem(place, "src-resolve", message);
    }

    fn nearest(&self, kind: Kind, name: Name) -> Option<String> {
        let names = &self.schema.names;
        let here = self
            .docs
            .globals
            .keys()
            .filter(|k| k.0 == kind && k.1.ns == name.ns)
            .map(|k| names.text(k.1.local));
        let mut known: Vec<&str> = here.collect();
        if kind == Kind::Type && name.ns == XS {
            known.extend(self.schema.global_types.keys().filter(|k| k.ns == XS).map(|k| names.text(k.local)));
        }
        known.sort_unstable();
        diagnostics::nearest(names.text(name.local), known.iter().copied()).map(str::to_owned)
    }

    /// The type that a QName means.
    fn type_ref(&mut self, place: Place, text: &str) -> TypeId {
        let Some(name) = self.qname(place, text) else { return ANY_TYPE };
        if name.ns == XS
            && let Some(&id) = self.schema.global_types.get(&name)
        {
            return id;
        }
        match self.refer(place, Kind::Type, text) {
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

    /// Builds a type now. `false`: it cannot be.
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

    // Simple types

    fn simple_type(&mut self, id: TypeId, place: Place) {
        let doc_final = self.docs.list[place.doc].is_final;
        self.schema.types[id].is_final = self.attr(place, "final").map_or(doc_final, |text| ways(&text));
        let fallback = Simple {
            variety: Variety::Atomic(super::value::Primitive::Any),
            facets: Facets::new(WhiteSpace::Preserve, false),
            role: Role::None,
        };
        let Some((how, inner)) = self.children(place).into_iter().next() else {
            self.schema.types[id].body = Body::Simple(Box::new(fallback));
            return;
        };
        let one = |b: &mut Builder, attribute: &str| {
            let ty = match b.attr(inner, attribute) {
                Some(text) => b.type_ref(inner, &text),
                None => b.child(inner, "simpleType").map_or(ANY_SIMPLE, |p| b.reserve(p, None)),
            };
            b.simple_only(inner, ty)
        };
        let (base, derivation, simple) = match how.as_str() {
            "restriction" => {
                let base = one(self, "base");
                if base == ANY_SIMPLE {
                    self.problem(
                        inner,
                        "st-props-correct.1",
                        "`anySimpleType` cannot be restricted directly",
                    );
                }
                self.check_final(inner, base, Ways::RESTRICTION);
                (base, Ways::RESTRICTION, self.restrict_simple(inner, base))
            }
            "list" => {
                let item = one(self, "itemType");
                self.check_final(inner, item, Ways::LIST);
                if self.has_list(item, 0) || item == ANY_SIMPLE && self.attr(inner, "itemType").is_some() {
                    self.problem(
                        inner,
                        "cos-st-restricts.2.1",
                        "the items of a list must be atomic or unions of atomic types",
                    );
                }
                let facets = Facets::new(WhiteSpace::Collapse, true);
                (ANY_SIMPLE, Ways::LIST, Simple { variety: Variety::List(item), facets, role: Role::None })
            }
            _ => {
                let mut members = Vec::new();
                for text in self.attr(inner, "memberTypes").unwrap_or_default().split_ascii_whitespace() {
                    members.push(self.type_ref(inner, text));
                }
                for (_, place) in self.children(inner) {
                    members.push(self.reserve(place, None));
                }
                for member in &mut members {
                    *member = self.simple_only(inner, *member);
                    self.check_final(inner, *member, Ways::UNION);
                }
                let facets = Facets::new(WhiteSpace::Collapse, true);
                (
                    ANY_SIMPLE,
                    Ways::UNION,
                    Simple { variety: Variety::Union(members), facets, role: Role::None },
                )
            }
        };
        let ty = &mut self.schema.types[id];
        ty.base = base;
        ty.derivation = derivation;
        ty.body = Body::Simple(Box::new(simple));
    }

    fn has_list(&self, ty: TypeId, depth: usize) -> bool {
        match self.schema.simple(ty).map(|s| &s.variety) {
            Some(Variety::List(_)) => true,
            Some(Variety::Union(members)) => {
                depth < MAX_CHAIN && members.iter().any(|&m| self.has_list(m, depth + 1))
            }
            _ => false,
        }
    }

    /// The type, built; the ur-type of simple types where it is none.
    fn simple_only(&mut self, place: Place, ty: TypeId) -> TypeId {
        if self.need(ty) && self.schema.simple(ty).is_some() {
            return ty;
        }
        if !matches!(self.schema.types[ty].body, Body::Pending) {
            let name = self.schema.type_name(ty);
            self.problem(place, "src-simple-type", format!("`{name}` is not a simple type"));
        }
        ANY_SIMPLE
    }

    fn check_final(&mut self, place: Place, base: TypeId, way: Ways) {
        if self.schema.types[base].is_final.meets(way) {
            let name = self.schema.type_name(base);
            self.problem(
                place,
                "st-props-correct.3",
                format!("`{name}` is final: it cannot be derived from like that"),
            );
        }
    }

    fn restrict_simple(&mut self, place: Place, base: TypeId) -> Simple {
        let Some(simple) = self.schema.simple(base).cloned() else {
            return Simple {
                variety: Variety::Atomic(super::value::Primitive::Any),
                facets: Facets::new(WhiteSpace::Preserve, false),
                role: Role::None,
            };
        };
        let nodes: Vec<(String, Place)> =
            self.children(place).into_iter().filter(|c| self.raw(c.1, "value").is_some()).collect();
        super::facets::derive(self, simple, base, nodes)
    }

    // Attributes

    fn constant(&self, place: Place) -> Option<Constant> {
        let make = |text: String, fixed| Constant { text: text.into(), fixed, value: None };
        self.raw(place, "fixed")
            .map(|t| make(t, true))
            .or_else(|| self.raw(place, "default").map(|t| make(t, false)))
    }

    fn attribute(&mut self, place: Place, global: bool) -> AttributeId {
        if let Some(&id) = self.attributes.get(&place) {
            return id;
        }
        let doc = &self.docs.list[place.doc];
        let (target, default) = (doc.target, doc.attributes_qualified);
        let qualified = global || self.attr(place, "form").map_or(default, |f| f == "qualified");
        let local = self.attr(place, "name").unwrap_or_default();
        let name =
            Name { ns: if qualified { target } else { NONE }, local: self.schema.names.intern(&local) };
        if target == XSI && qualified {
            self.problem(place, "no-xsi", "the namespace of `xsi:` cannot have attributes of a schema");
        }
        let ty = match self.attr(place, "type") {
            Some(text) => self.type_ref(place, &text),
            None => self.child(place, "simpleType").map_or(ANY_SIMPLE, |p| self.reserve(p, None)),
        };
        let id = self.schema.attributes.len();
        let constant = self.constant(place);
        self.schema.attributes.push(Attribute { name, ty, constant, place });
        self.attributes.insert(place, id);
        id
    }

    fn attribute_uses(&mut self, place: Place, node: NodeId) -> Attributes {
        let mut found = Attributes::default();
        let around = self.at(place, node);
        for (local, child) in self.children(around) {
            match local.as_str() {
                "attribute" => {
                    let attribute = match self.attr(child, "ref") {
                        Some(text) => match self.refer(child, Kind::Attribute, &text) {
                            Some((_, found)) => self.attribute(found, true),
                            None => continue,
                        },
                        None => self.attribute(child, false),
                    };
                    let name = self.schema.attributes[attribute].name;
                    let how = self.attr(child, "use").unwrap_or_default();
                    let constant =
                        if self.attr(child, "ref").is_some() { self.constant(child) } else { None };
                    let (required, prohibited) = (how == "required", how == "prohibited");
                    found.uses.push(AttributeUse {
                        name,
                        attribute,
                        required,
                        prohibited,
                        constant,
                        place: child,
                    });
                }
                "attributeGroup" => {
                    let Some(text) = self.attr(child, "ref") else { continue };
                    let Some((_, group)) = self.refer(child, Kind::AttributeGroup, &text) else { continue };
                    let Some(inner) = self.chain(group, |b| b.attribute_uses(group, group.node)) else {
                        continue;
                    };
                    found.uses.extend(inner.uses.into_iter().filter(|u| !u.prohibited));
                    found.wildcard = match (found.wildcard.take(), inner.wildcard) {
                        (Some(a), Some(b)) => self.intersect(child, a, b),
                        (a, b) => a.or(b),
                    };
                }
                "anyAttribute" => {
                    let own = self.wildcard(child);
                    found.wildcard = match found.wildcard.take() {
                        Some(other) => self.intersect(child, own, other),
                        None => Some(own),
                    };
                }
                _ => {}
            }
        }
        let mut seen = HashSet::new();
        let twice = found
            .uses
            .iter()
            .filter(|u| !u.prohibited)
            .find(|u| !seen.insert(u.name))
            .map(|u| (u.place, u.name));
        if let Some((place, name)) = twice {
            let name = self.schema.names.show(name);
            self.problem(place, "ct-props-correct.4", format!("attribute `{name}` is there twice"));
        }
        found
    }

    fn intersect(&mut self, place: Place, a: Wildcard, b: Wildcard) -> Option<Wildcard> {
        let namespaces = a.namespaces.intersection(&b.namespaces);
        if namespaces.is_none() {
            self.problem(
                place,
                "src-attribute_group",
                "the common part of the attribute wildcards cannot be expressed",
            );
        }
        namespaces.map(|namespaces| Wildcard { namespaces, process: a.process })
    }

    fn wildcard(&mut self, place: Place) -> Wildcard {
        let target = self.docs.list[place.doc].target;
        let namespaces = match self.attr(place, "namespace").as_deref() {
            None | Some("##any") => Namespaces::Any,
            Some("##other") => Namespaces::Not(target),
            Some(list) => set(list.split_ascii_whitespace().map(|word| match word {
                "##targetNamespace" => target,
                "##local" => NONE,
                uri => self.schema.names.intern(uri),
            })),
        };
        let process = match self.attr(place, "processContents").as_deref() {
            Some("skip") => Process::Skip,
            Some("lax") => Process::Lax,
            _ => Process::Strict,
        };
        Wildcard { namespaces, process }
    }

    // Elements and groups

    fn element(&mut self, place: Place, global: bool) -> ElementId {
        if let Some(&id) = self.elements.get(&place) {
            return id;
        }
        let doc = &self.docs.list[place.doc];
        let (target, default, doc_block, doc_final) =
            (doc.target, doc.elements_qualified, doc.block, doc.is_final);
        let qualified = global || self.attr(place, "form").map_or(default, |f| f == "qualified");
        let local = self.attr(place, "name").unwrap_or_default();
        let name =
            Name { ns: if qualified { target } else { NONE }, local: self.schema.names.intern(&local) };
        let id = self.schema.elements.len();
        self.elements.insert(place, id);
        let constant = self.constant(place);
        let block = self.attr(place, "block").map_or(doc_block, |t| ways(&t));
        let is_final = self.attr(place, "final").map_or(doc_final, |t| ways(&t));
        self.schema.elements.push(Element {
            name,
            ty: ANY_TYPE,
            nillable: self.is_true(place, "nillable"),
            is_abstract: self.is_true(place, "abstract"),
            constant,
            head: None,
            block: block.and(Ways(Ways::EXTENSION.0 | Ways::RESTRICTION.0 | Ways::SUBSTITUTION.0)),
            is_final: is_final.and(Ways(Ways::EXTENSION.0 | Ways::RESTRICTION.0)),
            constraints: Vec::new(),
            place,
        });
        if let Some(text) = self.attr(place, "substitutionGroup")
            && let Some((_, head)) = self.refer(place, Kind::Element, &text)
        {
            self.schema.elements[id].head = Some(self.head(head, place));
        }
        let inside = self.child(place, "simpleType").or_else(|| self.child(place, "complexType"));
        let ty = match (self.attr(place, "type"), inside) {
            (Some(text), _) => self.type_ref(place, &text),
            (None, Some(inside)) => self.reserve(inside, None),
            // That of the head; chains are short, circles reported elsewhere.
            (None, None) => {
                self.schema.elements[id].head.map_or(ANY_TYPE, |head| self.schema.elements[head].ty)
            }
        };
        self.schema.elements[id].ty = ty;
        for (local, child) in self.children(place) {
            let kind = match local.as_str() {
                "unique" => ConstraintKind::Unique,
                "key" => ConstraintKind::Key,
                "keyref" => ConstraintKind::KeyRef(None),
                _ => continue,
            };
            self.constraint(id, child, kind);
        }
        id
    }

    fn head(&mut self, head: Place, place: Place) -> ElementId {
        match self.chain(place, |b| b.element(head, true)) {
            Some(id) => id,
            None => self.element(head, true),
        }
    }

    fn constraint(&mut self, element: ElementId, place: Place, kind: ConstraintKind) {
        let target = self.docs.list[place.doc].target;
        let local = self.attr(place, "name").unwrap_or_default();
        let name = Name { ns: target, local: self.schema.names.intern(&local) };
        if self.schema.constraints.iter().any(|c| c.name == name) {
            self.problem(
                place,
                "sch-props-correct.2",
                format!("the identity constraint `{local}` is declared twice"),
            );
        }
        let mut paths = Vec::new();
        for (local, child) in self.children(place) {
            let path = self.attr(child, "xpath").unwrap_or_default();
            let tree = &self.docs.list[child.doc].tree;
            let names = &mut self.schema.names;
            let prefixes = |prefix: &str| tree.lookup_prefix(child.node, prefix).map(str::to_owned);
            match Selector::parse(&path, local == "field", &prefixes, names) {
                Ok(selector) => paths.push(selector),
                Err(why) => {
                    let rule = if local == "field" { "c-fields-xpaths" } else { "c-selector-xpath" };
                    self.problem(child, rule, format!("`{path}`: {why}"));
                    return;
                }
            }
        }
        if paths.is_empty() {
            return;
        }
        let selector = paths.remove(0);
        let id = self.schema.constraints.len();
        self.schema.constraints.push(Constraint { name, kind, selector, fields: paths, place });
        self.schema.elements[element].constraints.push(id);
    }

    /// Resolves what keyrefs refer to.
    pub fn resolve_keys(&mut self) {
        for id in 0..self.schema.constraints.len() {
            let Constraint { kind: ConstraintKind::KeyRef(_), place, .. } = self.schema.constraints[id]
            else {
                continue;
            };
            let text = self.attr(place, "refer").unwrap_or_default();
            let Some(name) = self.qname(place, &text) else { continue };
            let found = self
                .schema
                .constraints
                .iter()
                .position(|c| c.name == name && !matches!(c.kind, ConstraintKind::KeyRef(_)));
            match found {
                Some(key)
                    if self.schema.constraints[key].fields.len()
                        != self.schema.constraints[id].fields.len() =>
                {
                    self.problem(
                        place,
                        "c-props-correct.2",
                        format!("`{text}` has another number of fields"),
                    );
                }
                Some(key) => self.schema.constraints[id].kind = ConstraintKind::KeyRef(Some(key)),
                None => self.problem(place, "src-resolve", format!("there is no key or unique `{text}`")),
            }
        }
    }

    fn occurs(&self, place: Place) -> (u32, u32) {
        let get = |name| self.attr(place, name).and_then(|t| number(&t)).unwrap_or(1);
        (get("minOccurs"), get("maxOccurs"))
    }

    fn add(&mut self, place: Place, min: u32, max: u32, term: Term) -> ParticleId {
        self.schema.particles.push(Particle { min, max, term, place });
        self.schema.particles.len() - 1
    }

    /// The model of a named group.
    pub fn group(&mut self, place: Place) -> Option<ParticleId> {
        if let Some(&id) = self.groups.get(&place) {
            return Some(id);
        }
        let (_, model) = self.children(place).into_iter().next()?;
        let id = self.chain(place, |b| b.particle(model)).flatten()?;
        self.groups.insert(place, id);
        Some(id)
    }

    fn particle(&mut self, place: Place) -> Option<ParticleId> {
        let (min, max) = self.occurs(place);
        let local = self.tree(place).local(place.node).to_owned();
        let compositor = match local.as_str() {
            "element" => {
                let element = match self.attr(place, "ref") {
                    Some(text) => {
                        let (_, found) = self.refer(place, Kind::Element, &text)?;
                        self.element(found, true)
                    }
                    None => self.element(place, false),
                };
                return Some(self.add(place, min, max, Term::Element(element)));
            }
            "any" => {
                let any = self.wildcard(place);
                return Some(self.add(place, min, max, Term::Any(any.into())));
            }
            "group" => {
                let text = self.attr(place, "ref")?;
                let (_, found) = self.refer(place, Kind::Group, &text)?;
                if self.open.contains(&found) {
                    self.problem(place, "mg-props-correct.2", format!("the group `{text}` contains itself"));
                    return None;
                }
                let redefines = self.open.iter().any(|open| self.docs.redefined.get(open) == Some(&found));
                if redefines && (min, max) != (1, 1) {
                    self.problem(
                        place,
                        "src-redefine.6.1.2",
                        "a redefined group occurs once in its redefinition",
                    );
                }
                let model = self.group(found)?;
                let term = self.schema.particles[model].term.clone();
                if matches!(term, Term::Group(Compositor::All, _)) {
                    let parent =
                        self.tree(place).parent(place.node).map_or("", |p| self.tree(place).local(p));
                    if max != 1 || min > 1 || matches!(parent, "sequence" | "choice") {
                        self.problem(
                            place,
                            "cos-all-limited",
                            "a group with `all` must be the whole content, at most once",
                        );
                    }
                }
                return Some(self.add(place, min, max, term));
            }
            "sequence" => Compositor::Sequence,
            "choice" => Compositor::Choice,
            _ => Compositor::All,
        };
        let mut children = Vec::new();
        for (_, child) in self.children(place) {
            children.extend(self.particle(child));
        }
        Some(self.add(place, min, max, Term::Group(compositor, children)))
    }

    // Complex types

    fn complex_type(&mut self, id: TypeId, place: Place) {
        let doc = &self.docs.list[place.doc];
        let (doc_block, doc_final) = (doc.block, doc.is_final);
        let both = Ways(Ways::EXTENSION.0 | Ways::RESTRICTION.0);
        let block = self.attr(place, "block").map_or(doc_block, |t| ways(&t)).and(both);
        self.schema.types[id].is_final = self.attr(place, "final").map_or(doc_final, |t| ways(&t)).and(both);
        let is_abstract = self.is_true(place, "abstract");
        let mut mixed = self.is_true(place, "mixed");
        let children = self.children(place);
        let content = children.iter().find(|c| c.0 == "simpleContent" || c.0 == "complexContent").cloned();
        let (base, derivation, body) = match content {
            None => {
                let own = self.attribute_uses(place, place.node);
                let particle = self.own_particle(place);
                let body = Complex {
                    is_abstract,
                    block,
                    attributes: own.uses,
                    wildcard: own.wildcard,
                    content: content_of(particle, mixed),
                };
                (
                    ANY_TYPE,
                    Ways::RESTRICTION,
                    Complex {
                        attributes: body.attributes.into_iter().filter(|u| !u.prohibited).collect(),
                        ..body
                    },
                )
            }
            Some((how, content)) => {
                if let Some(text) = self.attr(content, "mixed") {
                    mixed = matches!(text.as_str(), "true" | "1");
                }
                let Some((way, derive)) = self.children(content).into_iter().next() else { return };
                let derivation = if way == "extension" { Ways::EXTENSION } else { Ways::RESTRICTION };
                let text = self.attr(derive, "base").unwrap_or_default();
                let base = self.type_ref(derive, &text);
                if !self.need(base) {
                    self.schema.types[id].body = Body::Complex(Complex {
                        is_abstract,
                        block,
                        attributes: Vec::new(),
                        wildcard: None,
                        content: Content::Empty,
                    });
                    return;
                }
                if self.schema.types[base].is_final.meets(derivation) {
                    let name = self.schema.type_name(base);
                    self.problem(
                        derive,
                        "derivation-ok",
                        format!("`{name}` is final: it cannot be derived from like that"),
                    );
                }
                let own = self.attribute_uses(derive, derive.node);
                let content = if how == "simpleContent" {
                    self.simple_content(derive, base, derivation)
                } else {
                    self.complex_content(derive, base, derivation, mixed)
                };
                let own = self.derive_attributes(derive, base, derivation, own);
                (
                    base,
                    derivation,
                    Complex { is_abstract, block, attributes: own.uses, wildcard: own.wildcard, content },
                )
            }
        };
        let ty = &mut self.schema.types[id];
        ty.base = base;
        ty.derivation = derivation;
        ty.body = Body::Complex(body);
    }

    fn own_particle(&mut self, place: Place) -> Option<ParticleId> {
        let model = self
            .children(place)
            .into_iter()
            .find(|c| matches!(c.0.as_str(), "group" | "all" | "choice" | "sequence"))?;
        let particle = self.particle(model.1)?;
        // Nothing at all, or nothing that can occur.
        let Particle { max, term, .. } = &self.schema.particles[particle];
        match term {
            Term::Group(Compositor::Choice, children)
                if children.is_empty() && self.schema.particles[particle].min == 0 =>
            {
                None
            }
            Term::Group(Compositor::Sequence | Compositor::All, children) if children.is_empty() => None,
            _ if *max == 0 => None,
            _ => Some(particle),
        }
    }

    fn simple_content(&mut self, derive: Place, base: TypeId, derivation: Ways) -> Content {
        let inner = self.child(derive, "simpleType").map(|p| self.reserve(p, None));
        let content = match &self.schema.types[base].body {
            Body::Simple(_) if derivation == Ways::EXTENSION => return Content::Simple(base),
            Body::Complex(Complex { content: Content::Simple(ty), .. }) => *ty,
            Body::Complex(Complex { content: Content::Elements { mixed: true, particle, .. }, .. })
                if derivation == Ways::RESTRICTION && particle.is_none_or(|p| self.is_emptiable(p)) =>
            {
                match inner {
                    Some(inner) => {
                        let ty = self.simple_only(derive, inner);
                        return Content::Simple(self.anonymous_restriction(derive, ty));
                    }
                    None => {
                        self.problem(
                            derive,
                            "src-ct.2",
                            "a restriction of mixed content to simple content needs a simple type",
                        );
                        return Content::Simple(ANY_SIMPLE);
                    }
                }
            }
            _ => {
                let name = self.schema.type_name(base);
                self.problem(derive, "src-ct.2", format!("`{name}` has no simple content to derive from"));
                return Content::Simple(ANY_SIMPLE);
            }
        };
        if derivation == Ways::EXTENSION {
            return Content::Simple(content);
        }
        let from = match inner {
            Some(inner) => {
                let inner = self.simple_only(derive, inner);
                if self.schema.derivation(inner, content).is_none() {
                    self.problem(
                        derive,
                        "derivation-ok-restriction.5.1",
                        "the simple type is not derived from the content of the base",
                    );
                }
                inner
            }
            None => content,
        };
        Content::Simple(self.anonymous_restriction(derive, from))
    }

    /// A simple type derived by the facets in a restriction of simple content.
    fn anonymous_restriction(&mut self, derive: Place, base: TypeId) -> TypeId {
        let simple = self.restrict_simple(derive, base);
        let id = self.schema.types.len();
        let body = Body::Simple(Box::new(simple));
        let (name, is_final, place) = (None, Ways::NONE, Some(derive));
        self.schema.types.push(Type { name, base, derivation: Ways::RESTRICTION, is_final, place, body });
        id
    }

    fn complex_content(&mut self, derive: Place, base: TypeId, derivation: Ways, mixed: bool) -> Content {
        let own = self.own_particle(derive);
        let (base_mixed, base_particle, base_empty) = match &self.schema.types[base].body {
            Body::Complex(Complex { content: Content::Elements { mixed, particle, .. }, .. }) => {
                (*mixed, *particle, false)
            }
            Body::Complex(Complex { content: Content::Empty, .. }) => (false, None, true),
            Body::Complex(_) if derivation == Ways::EXTENSION && own.is_none() && !mixed => {
                // Nothing added to simple content.
                return match self.schema.content_type(base) {
                    Some(ty) => Content::Simple(ty),
                    None => Content::Empty,
                };
            }
            _ => {
                let name = self.schema.type_name(base);
                self.problem(derive, "src-ct.1", format!("`{name}` has no complex content to derive from"));
                return Content::Empty;
            }
        };
        if derivation == Ways::RESTRICTION {
            return content_of(own, mixed);
        }
        let Some(own) = own else {
            if mixed != base_mixed && !base_empty {
                self.problem(derive, "cos-ct-extends.1.4", "an extension is mixed where its base is");
            }
            return if base_empty { content_of(None, mixed) } else { content_of(base_particle, base_mixed) };
        };
        let Some(base_particle) = base_particle else {
            if base_mixed && !mixed {
                self.problem(derive, "cos-ct-extends.1.4", "an extension is mixed where its base is");
            }
            return content_of(Some(own), mixed);
        };
        if mixed != base_mixed {
            self.problem(derive, "cos-ct-extends.1.4", "an extension is mixed where its base is");
        }
        let is_all = |b: &Builder, p: ParticleId| {
            matches!(b.schema.particles[p].term, Term::Group(Compositor::All, _))
        };
        if is_all(self, own) || is_all(self, base_particle) {
            self.problem(
                derive,
                "cos-all-limited.1.2",
                "content with `all` cannot be extended by more content",
            );
        }
        let both = self.add(derive, 1, 1, Term::Group(Compositor::Sequence, vec![base_particle, own]));
        content_of(Some(both), mixed)
    }

    fn derive_attributes(
        &mut self,
        derive: Place,
        base: TypeId,
        derivation: Ways,
        own: Attributes,
    ) -> Attributes {
        let Body::Complex(base_type) = &self.schema.types[base].body else {
            return Attributes { uses: own.uses.into_iter().filter(|u| !u.prohibited).collect(), ..own };
        };
        let (base_uses, base_wildcard) = (base_type.attributes.clone(), base_type.wildcard.clone());
        if derivation == Ways::EXTENSION {
            let mut uses = base_uses;
            for attribute in own.uses.into_iter().filter(|u| !u.prohibited) {
                if uses.iter().any(|u| u.name == attribute.name) {
                    let name = self.schema.names.show(attribute.name);
                    self.problem(
                        attribute.place,
                        "ct-props-correct.4",
                        format!("the base has attribute `{name}` already"),
                    );
                } else {
                    uses.push(attribute);
                }
            }
            let wildcard = match (own.wildcard, base_wildcard) {
                (Some(own), Some(base)) => match own.namespaces.union(&base.namespaces) {
                    Some(namespaces) => Some(Wildcard { namespaces, process: own.process }),
                    None => {
                        self.problem(
                            derive,
                            "src-ct.5",
                            "the attribute wildcards together cannot be expressed",
                        );
                        Some(own)
                    }
                },
                (own, base) => own.or(base),
            };
            return Attributes { uses, wildcard };
        }
        super::restrict::attributes(self, derive, base, &own.uses, own.wildcard.as_ref());
        let mut uses: Vec<AttributeUse> =
            base_uses.into_iter().filter(|b| !own.uses.iter().any(|u| u.name == b.name)).collect();
        uses.extend(own.uses.into_iter().filter(|u| !u.prohibited));
        Attributes { uses, wildcard: own.wildcard }
    }

    /// Whether a particle admits nothing (Part 1, 3.9.6).
    pub fn is_emptiable(&self, particle: ParticleId) -> bool {
        super::restrict::least(&self.schema, particle) == 0
    }
}

fn content_of(particle: Option<ParticleId>, mixed: bool) -> Content {
    match (particle, mixed) {
        (None, false) => Content::Empty,
        (particle, mixed) => Content::Elements { mixed, particle, model: Default::default() },
    }
}
