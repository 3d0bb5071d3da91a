//! Checks of a schema with all components, and compilation of the content models.

use super::automaton;
use super::build::{Builder, DeferredCheck};
use super::model::*;
use super::restrict;
use super::value::Primitive;
use std::collections::HashSet;

/// Most positions of all content models together.
const MAX_MODELS: usize = 20_000;

/// Checks everything and compiles the content models.
pub fn finish(b: &mut Builder) {
    b.resolve_keys();
    heads(b);
    constants(b);
    types(b);
    redefined_groups(b);
    for check in std::mem::take(&mut b.deferred) {
        let DeferredCheck::Attribute { derived, old } = check;
        attribute(b, &derived, &old);
    }
    models(b);
}

/// Substitution groups: circles, types, and members.
fn heads(b: &mut Builder) {
    for id in 0..b.schema.elements.len() {
        let mut seen = HashSet::from([id]);
        let mut at = id;
        let place = b.schema.elements[id].place;
        if let Some(head) = b.schema.elements[id].head {
            let (ty, head_type, is_final) =
                (b.schema.elements[id].ty, b.schema.elements[head].ty, b.schema.elements[head].is_final);
            let fits = b.schema.derivation(ty, head_type).is_some_and(|ways| !ways.meets(is_final));
            if !fits {
                b.problem(
                    place,
                    "e-props-correct.4",
                    "the type is not derived from that of the head of its substitution group",
                );
            }
        }
        while let Some(head) = b.schema.elements[at].head {
            if !seen.insert(head) {
                b.problem(place, "e-props-correct.6", "the substitution group is circular");
                b.schema.elements[id].head = None;
                break;
            }
            at = head;
            if substitutable(&b.schema, id, head) {
                b.schema.members.entry(head).or_default().push(id);
            }
        }
    }
}

/// Whether `member` may stand for `head` in documents (Part 1, 3.3.6).
fn substitutable(schema: &Components, member: ElementId, head: ElementId) -> bool {
    let top = &schema.elements[head];
    if top.block.meets(Ways::SUBSTITUTION) {
        return false;
    }
    let block = schema.complex(top.ty).map_or(Ways::NONE, |c| c.block).with(top.block);
    // The block of types on the way counts too.
    let mut blocked = block;
    let mut at = schema.elements[member].ty;
    while at != top.ty && at != ANY_TYPE {
        at = schema.types[at].base;
        blocked = blocked.with(
            schema.complex(at).filter(|_| at != top.ty && at != ANY_TYPE).map_or(Ways::NONE, |c| c.block),
        );
    }
    schema.derivation(schema.elements[member].ty, top.ty).is_some_and(|ways| !ways.meets(blocked))
}

/// `default` and `fixed` are values of their types.
fn constants(b: &mut Builder) {
    let value = |b: &mut Builder, ty: TypeId, constant: &Constant, place: Place, rule: &'static str| {
        let tree = &b.docs.list[place.doc].tree;
        let prefixes = |prefix: &str| tree.lookup_prefix(place.node, prefix).map(str::to_owned);
        match b.schema.check(ty, &constant.text, &prefixes, true) {
            Ok(checked) => checked.value,
            Err(wrong) => {
                b.problem(place, rule, format!("`default` or `fixed`: {}", wrong.message));
                None
            }
        }
    };
    let is_id = |b: &Builder, ty: TypeId| b.schema.simple(ty).is_some_and(|s| s.role == Role::Id);
    for id in 0..b.schema.attributes.len() {
        let (ty, place, constant) = {
            let a = &b.schema.attributes[id];
            (a.ty, a.place, a.constant.clone())
        };
        notation(b, ty, place);
        let Some(constant) = constant else { continue };
        if is_id(b, ty) {
            b.problem(place, "a-props-correct.3", "an attribute of type ID can have no `default` or `fixed`");
        }
        let found = value(b, ty, &constant, place, "a-props-correct.2");
        b.schema.attributes[id].constant = Some(Constant { value: found, ..constant });
    }
    for id in 0..b.schema.elements.len() {
        let (ty, place, constant) = {
            let e = &b.schema.elements[id];
            (e.ty, e.place, e.constant.clone())
        };
        notation(b, ty, place);
        let Some(constant) = constant else { continue };
        let Some(content) = b.schema.content_type(ty) else {
            let emptiable = match b.schema.complex(ty).map(|c| &c.content) {
                Some(Content::Elements { mixed: true, particle, .. }) => {
                    particle.is_none_or(|p| b.is_emptiable(p))
                }
                _ => false,
            };
            if !emptiable {
                b.problem(
                    place,
                    "cos-valid-default.2.1",
                    "`default` and `fixed` need simple content, or mixed content that may be empty",
                );
            }
            continue;
        };
        if is_id(b, content) {
            b.problem(place, "e-props-correct.5", "an element of type ID can have no `default` or `fixed`");
        }
        let found = value(b, content, &constant, place, "e-props-correct.2");
        b.schema.elements[id].constant = Some(Constant { value: found, ..constant });
    }
    // Uses of global attributes.
    for ty in 0..b.schema.types.len() {
        let uses = b.schema.complex(ty).map_or(0, |c| c.attributes.len());
        for i in 0..uses {
            let Some(AttributeUse { attribute, constant, place, .. }) =
                b.schema.complex(ty).map(|c| c.attributes[i].clone())
            else {
                continue;
            };
            let Some(constant) = constant.filter(|c| c.value.is_none()) else { continue };
            let attribute_type = b.schema.attributes[attribute].ty;
            if is_id(b, attribute_type) {
                b.problem(
                    place,
                    "a-props-correct.3",
                    "an attribute of type ID can have no `default` or `fixed`",
                );
            }
            let found = value(b, attribute_type, &constant, place, "au-props-correct.1");
            if let Some(fixed) = b.schema.attributes[attribute].constant.as_ref().filter(|c| c.fixed)
                && !(constant.fixed && (found.is_none() || found == fixed.value))
            {
                b.problem(place, "au-props-correct.2", "the declaration fixes another value");
            }
            if let Body::Complex(complex) = &mut b.schema.types[ty].body {
                complex.attributes[i].constant = Some(Constant { value: found, ..constant });
            }
        }
    }
}

/// `NOTATION` itself must not be used as a type.
fn notation(b: &mut Builder, ty: TypeId, place: Place) {
    let bare = b.schema.simple(ty).is_some_and(|s| {
        matches!(s.variety, Variety::Atomic(Primitive::Notation)) && s.facets.enumeration.is_none()
    });
    if bare {
        let message = "`NOTATION` must be restricted by an enumeration before it is used";
        b.problem(place, "enumeration-required-notation", message);
    }
}

/// Redefinitions, ID attributes, particles against those of the base.
fn types(b: &mut Builder) {
    for id in 0..b.schema.types.len() {
        let Type { base, derivation, place: Some(place), .. } = b.schema.types[id] else { continue };
        if let Some(&old) = b.docs.redefined.get(&place)
            && b.schema.types[base].place != Some(old)
        {
            b.problem(place, "src-redefine.5", "a redefined type must have itself as its base");
        }
        let Some(complex) = b.schema.complex(id) else { continue };
        let ids = complex.attributes.iter().filter(|u| {
            b.schema.simple(b.schema.attributes[u.attribute].ty).is_some_and(|s| s.role == Role::Id)
        });
        if ids.count() > 1 {
            b.problem(place, "ct-props-correct.5", "two attributes are of type ID");
        }
        if derivation != Ways::RESTRICTION || base == ANY_TYPE {
            continue;
        }
        let (Some(derived), Some(old)) = (b.schema.complex(id), b.schema.complex(base)) else { continue };
        let verdict = match (&derived.content, &old.content) {
            (Content::Empty, Content::Elements { particle, .. }) => match particle {
                Some(p) if !b.is_emptiable(*p) => Err("the content of the base cannot be empty".to_owned()),
                _ => Ok(()),
            },
            (Content::Empty, Content::Simple(_)) => Err("the base has simple content".to_owned()),
            (Content::Elements { .. }, Content::Simple(_) | Content::Empty) => {
                Err("the base has no such content".to_owned())
            }
            (Content::Elements { mixed: true, .. }, Content::Elements { mixed: false, .. }) => {
                Err("the base is not mixed".to_owned())
            }
            (
                Content::Elements { particle: Some(derived), .. },
                Content::Elements { particle: Some(old), .. },
            ) => restrict::particle(&b.schema, *derived, *old),
            (Content::Elements { particle: Some(_), .. }, Content::Elements { particle: None, .. }) => {
                Err("the base has no elements".to_owned())
            }
            (Content::Elements { particle: None, .. }, Content::Elements { particle: Some(old), .. })
                if !b.is_emptiable(*old) =>
            {
                Err("the content of the base cannot be empty".to_owned())
            }
            _ => Ok(()),
        };
        if let Err(why) = verdict {
            b.problem(
                place,
                "derivation-ok-restriction.5",
                format!("the content is not a restriction of that of the base: {why}"),
            );
        }
    }
}

/// A group that is redefined without a reference to itself must restrict the original.
fn redefined_groups(b: &mut Builder) {
    let pairs: Vec<(Place, Place)> = b.docs.redefined.iter().map(|(&new, &old)| (new, old)).collect();
    for (new, old) in pairs {
        if b.tree(new).local(new.node) != "group" || b.extended.contains(&new) {
            continue;
        }
        if let (Some(new_particle), Some(base)) = (b.group(new), b.group(old))
            && let Err(why) = restrict::particle(&b.schema, new_particle, base)
        {
            b.problem(
                new,
                "src-redefine.6.2.2",
                format!("the redefined group is not a restriction of what it was: {why}"),
            );
        }
    }
}

/// Checks an attribute against that of the base.
fn attribute(b: &mut Builder, derived: &AttributeUse, old: &AttributeUse) {
    let name = b.schema.names.show(derived.name);
    let (own_type, old_type) =
        (b.schema.attributes[derived.attribute].ty, b.schema.attributes[old.attribute].ty);
    let banned = b.schema.derivation(own_type, old_type).is_none();
    if banned && old_type != ANY_SIMPLE {
        b.problem(
            derived.place,
            "derivation-ok-restriction.2.1.2",
            format!("the type of attribute `{name}` is not derived from its type in the base"),
        );
    }
    let constant = |b: &Builder, u: &AttributeUse| {
        let all = b.schema.types.iter().filter_map(|t| match &t.body {
            Body::Complex(c) => {
                c.attributes.iter().find(|o| o.place == u.place && o.attribute == u.attribute)
            }
            _ => None,
        });
        let from_use =
            u.constant.is_some().then(|| all.into_iter().find_map(|u| u.constant.clone())).flatten();
        from_use.or_else(|| b.schema.attributes[u.attribute].constant.clone())
    };
    if let Some(fixed) = constant(b, old).filter(|c| c.fixed) {
        let same = constant(b, derived).is_some_and(|c| c.fixed && c.value == fixed.value);
        if !same {
            b.problem(
                derived.place,
                "derivation-ok-restriction.2.1.3",
                format!("attribute `{name}` does not have the fixed value of the base"),
            );
        }
    }
}

/// Compiles content models; ambiguous and inconsistent ones are errors.
fn models(b: &mut Builder) {
    let mut built = 0;
    for id in 0..b.schema.types.len() {
        let Some(Complex { content: Content::Elements { particle, .. }, .. }) = b.schema.complex(id) else {
            continue;
        };
        let particle = *particle;
        let place = b.schema.types[id].place;
        if let (Some(place), Some(particle)) = (place, particle)
            && let Some(name) = restrict::inconsistent(&b.schema, particle)
        {
            let name = b.schema.names.show(name);
            b.problem(
                place,
                "cos-element-consistent",
                format!("two elements `{name}` of the content have different types"),
            );
        }
        match automaton::build(&b.schema, particle) {
            Ok(compiled) => {
                built += compiled.size();
                if let Body::Complex(Complex { content: Content::Elements { model, .. }, .. }) =
                    &mut b.schema.types[id].body
                {
                    *model = compiled;
                }
            }
            Err(refused) => {
                let at = b.schema.particles[refused.particle].place;
                b.problem(place.unwrap_or(at), refused.rule, refused.message);
            }
        }
        if built > MAX_MODELS * 100 {
            if let Some(place) = place {
                b.problem(place, "limit", "the content models of the schema together are too large");
            }
            return;
        }
    }
}
