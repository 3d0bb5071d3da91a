//! Complex types.

use super::{Attributes, Builder};
use crate::xsd::model::*;
use crate::xsd::syntax::ways;

impl Builder {
    pub(super) fn complex_type(&mut self, id: TypeId, place: Place) {
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
                let uses = self.attribute_uses(place, place.node);
                let particle = self.own_particle(place);
                let body = Complex {
                    is_abstract,
                    block,
                    attributes: uses.uses,
                    wildcard: uses.wildcard,
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
                let attributes = self.attribute_uses(derive, derive.node);
                let content = if how == "simpleContent" {
                    self.simple_content(derive, base, derivation)
                } else {
                    self.complex_content(derive, base, derivation, mixed)
                };
                let attributes = self.derive_attributes(derive, base, derivation, attributes);
                (
                    base,
                    derivation,
                    Complex {
                        is_abstract,
                        block,
                        attributes: attributes.uses,
                        wildcard: attributes.wildcard,
                        content,
                    },
                )
            }
        };
        let ty = &mut self.schema.types[id];
        ty.base = base;
        ty.derivation = derivation;
        ty.body = Body::Complex(body);
    }

    pub(super) fn own_particle(&mut self, place: Place) -> Option<ParticleId> {
        let model = self
            .children(place)
            .into_iter()
            .find(|c| matches!(c.0.as_str(), "group" | "all" | "choice" | "sequence"))?;
        let particle = self.particle(model.1)?;
        // Empty, or particles that cannot occur.
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

    pub(super) fn simple_content(&mut self, derive: Place, base: TypeId, derivation: Ways) -> Content {
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
    pub(super) fn anonymous_restriction(&mut self, derive: Place, base: TypeId) -> TypeId {
        let simple = self.restrict_simple(derive, base);
        let id = self.schema.types.len();
        let body = Body::Simple(Box::new(simple));
        let (name, is_final, place) = (None, Ways::NONE, Some(derive));
        self.schema.types.push(Type { name, base, derivation: Ways::RESTRICTION, is_final, place, body });
        id
    }

    pub(super) fn complex_content(
        &mut self,
        derive: Place,
        base: TypeId,
        derivation: Ways,
        mixed: bool,
    ) -> Content {
        let own_particle = self.own_particle(derive);
        let (base_mixed, base_particle, base_empty) = match &self.schema.types[base].body {
            Body::Complex(Complex { content: Content::Elements { mixed, particle, .. }, .. }) => {
                (*mixed, *particle, false)
            }
            Body::Complex(Complex { content: Content::Empty, .. }) => (false, None, true),
            Body::Complex(_) if derivation == Ways::EXTENSION && own_particle.is_none() && !mixed => {
                // Simple content without an addition.
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
            return content_of(own_particle, mixed);
        }
        let Some(own_particle) = own_particle else {
            // Nothing is added: the content is that of the base, mixed or not.
            if mixed && !base_mixed && !base_empty {
                self.problem(derive, "cos-ct-extends.1.4", "an extension is mixed where its base is");
            }
            return if base_empty { content_of(None, mixed) } else { content_of(base_particle, base_mixed) };
        };
        let Some(base_particle) = base_particle else {
            if base_mixed && !mixed {
                self.problem(derive, "cos-ct-extends.1.4", "an extension is mixed where its base is");
            }
            return content_of(Some(own_particle), mixed);
        };
        if mixed != base_mixed {
            self.problem(derive, "cos-ct-extends.1.4", "an extension is mixed where its base is");
        }
        let is_all = |b: &Builder, p: ParticleId| {
            matches!(b.schema.particles[p].term, Term::Group(Compositor::All, _))
        };
        if is_all(self, own_particle) || is_all(self, base_particle) {
            self.problem(
                derive,
                "cos-all-limited.1.2",
                "content with `all` cannot be extended by more content",
            );
        }
        let both =
            self.add(derive, 1, 1, Term::Group(Compositor::Sequence, vec![base_particle, own_particle]));
        content_of(Some(both), mixed)
    }

    pub(super) fn derive_attributes(
        &mut self,
        derive: Place,
        base: TypeId,
        derivation: Ways,
        added: Attributes,
    ) -> Attributes {
        let Body::Complex(base_type) = &self.schema.types[base].body else {
            return Attributes { uses: added.uses.into_iter().filter(|u| !u.prohibited).collect(), ..added };
        };
        let (base_uses, base_wildcard) = (base_type.attributes.clone(), base_type.wildcard.clone());
        if derivation == Ways::EXTENSION {
            let mut uses = base_uses;
            for attribute in added.uses.into_iter().filter(|u| !u.prohibited) {
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
            let wildcard = match (added.wildcard, base_wildcard) {
                (Some(w), Some(base)) => match w.namespaces.union(&base.namespaces) {
                    Some(namespaces) => Some(Wildcard { namespaces, process: w.process }),
                    None => {
                        self.problem(
                            derive,
                            "src-ct.5",
                            "the attribute wildcards together cannot be expressed",
                        );
                        Some(w)
                    }
                },
                (w, base) => w.or(base),
            };
            return Attributes { uses, wildcard };
        }
        crate::xsd::restrict::attributes(self, derive, base, &added.uses, added.wildcard.as_ref());
        let mut uses: Vec<AttributeUse> =
            base_uses.into_iter().filter(|b| !added.uses.iter().any(|u| u.name == b.name)).collect();
        uses.extend(added.uses.into_iter().filter(|u| !u.prohibited));
        Attributes { uses, wildcard: added.wildcard }
    }
}

fn content_of(particle: Option<ParticleId>, mixed: bool) -> Content {
    match (particle, mixed) {
        (None, false) => Content::Empty,
        (particle, mixed) => Content::Elements { mixed, particle, model: Default::default() },
    }
}
