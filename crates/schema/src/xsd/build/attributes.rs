//! Attributes, their groups and wildcards.

use super::{Attributes, Builder};
use crate::xsd::documents::ComponentKind;
use crate::xsd::model::*;
use crate::xsd::names::{NONE, Name, XSI};
use std::collections::HashSet;
use xml::NodeId;

impl Builder {
    pub(super) fn constant(&self, place: Place) -> Option<Constant> {
        let make = |text: String, fixed| Constant { text: text.into(), fixed, value: None };
        self.raw(place, "fixed")
            .map(|t| make(t, true))
            .or_else(|| self.raw(place, "default").map(|t| make(t, false)))
    }

    pub(super) fn attribute(&mut self, place: Place, global: bool) -> AttributeId {
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

    pub(super) fn attribute_uses(&mut self, place: Place, node: NodeId) -> Attributes {
        let mut found = Attributes::default();
        let around = self.at(place, node);
        for (local, child) in self.children(around) {
            match local.as_str() {
                "attribute" => {
                    let attribute = match self.attr(child, "ref") {
                        Some(text) => match self.refer(child, ComponentKind::Attribute, &text) {
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
                    let Some((_, group)) = self.refer(child, ComponentKind::AttributeGroup, &text) else {
                        continue;
                    };
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
                    let wildcard = self.wildcard(child);
                    found.wildcard = match found.wildcard.take() {
                        Some(other) => self.intersect(child, wildcard, other),
                        None => Some(wildcard),
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

    pub(super) fn intersect(&mut self, place: Place, a: Wildcard, b: Wildcard) -> Option<Wildcard> {
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

    pub(super) fn wildcard(&mut self, place: Place) -> Wildcard {
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
}
