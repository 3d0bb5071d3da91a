//! Simple types.

use super::{Builder, MAX_CHAIN};
use crate::xsd::model::*;
use crate::xsd::syntax::ways;

impl Builder {
    pub(super) fn simple_type(&mut self, id: TypeId, place: Place) {
        let doc_final = self.docs.list[place.doc].is_final;
        self.schema.types[id].is_final = self.attr(place, "final").map_or(doc_final, |text| ways(&text));
        let fallback = Simple {
            variety: Variety::Atomic(crate::xsd::value::Primitive::Any),
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

    pub(super) fn has_list(&self, ty: TypeId, depth: usize) -> bool {
        match self.schema.simple(ty).map(|s| &s.variety) {
            Some(Variety::List(_)) => true,
            Some(Variety::Union(members)) => {
                depth < MAX_CHAIN && members.iter().any(|&m| self.has_list(m, depth + 1))
            }
            _ => false,
        }
    }

    /// The type, built; the simple ur-type if it is not a simple type.
    pub(super) fn simple_only(&mut self, place: Place, ty: TypeId) -> TypeId {
        if self.need(ty) && self.schema.simple(ty).is_some() {
            return ty;
        }
        if !matches!(self.schema.types[ty].body, Body::Pending) {
            let name = self.schema.type_name(ty);
            self.problem(place, "src-simple-type", format!("`{name}` is not a simple type"));
        }
        ANY_SIMPLE
    }

    pub(super) fn check_final(&mut self, place: Place, base: TypeId, way: Ways) {
        if self.schema.types[base].is_final.meets(way) {
            let name = self.schema.type_name(base);
            self.problem(
                place,
                "st-props-correct.3",
                format!("`{name}` is final: it cannot be derived from like that"),
            );
        }
    }

    pub(super) fn restrict_simple(&mut self, place: Place, base: TypeId) -> Simple {
        let Some(simple) = self.schema.simple(base).cloned() else {
            return Simple {
                variety: Variety::Atomic(crate::xsd::value::Primitive::Any),
                facets: Facets::new(WhiteSpace::Preserve, false),
                role: Role::None,
            };
        };
        let nodes: Vec<(String, Place)> =
            self.children(place).into_iter().filter(|c| self.raw(c.1, "value").is_some()).collect();
        crate::xsd::facets::derive(self, simple, base, nodes)
    }
}
