//! Elements, identity constraints and model groups.

use super::Builder;
use crate::xsd::documents::ComponentKind;
use crate::xsd::identity::Selector;
use crate::xsd::model::*;
use crate::xsd::names::{NONE, Name};
use crate::xsd::syntax::{number, ways};

impl Builder {
    pub(super) fn element(&mut self, place: Place, global: bool) -> ElementId {
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
            && let Some((_, head)) = self.refer(place, ComponentKind::Element, &text)
        {
            self.schema.elements[id].head = Some(self.head(head, place));
        }
        let inside = self.child(place, "simpleType").or_else(|| self.child(place, "complexType"));
        let ty = match (self.attr(place, "type"), inside) {
            (Some(text), _) => self.type_ref(place, &text),
            (None, Some(inside)) => self.reserve(inside, None),
            // The type of the head; chains are short, circles are reported elsewhere.
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

    pub(super) fn head(&mut self, head: Place, place: Place) -> ElementId {
        match self.chain(place, |b| b.element(head, true)) {
            Some(id) => id,
            None => self.element(head, true),
        }
    }

    pub(super) fn constraint(&mut self, element: ElementId, place: Place, kind: ConstraintKind) {
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

    /// Resolves the references of keyrefs.
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

    pub(super) fn occurs(&self, place: Place) -> (u32, u32) {
        let get = |name| self.attr(place, name).and_then(|t| number(&t)).unwrap_or(1);
        (get("minOccurs"), get("maxOccurs"))
    }

    pub(super) fn add(&mut self, place: Place, min: u32, max: u32, term: Term) -> ParticleId {
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

    pub(super) fn particle(&mut self, place: Place) -> Option<ParticleId> {
        let (min, max) = self.occurs(place);
        let local = self.tree(place).local(place.node).to_owned();
        let compositor = match local.as_str() {
            "element" => {
                let element = match self.attr(place, "ref") {
                    Some(text) => {
                        let (_, found) = self.refer(place, ComponentKind::Element, &text)?;
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
                let (_, found) = self.refer(place, ComponentKind::Group, &text)?;
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

    /// Whether a particle admits no element (Part 1, 3.9.6).
    pub fn is_emptiable(&self, particle: ParticleId) -> bool {
        crate::xsd::restrict::least(&self.schema, particle) == 0
    }
}
