//! Facets of a restriction: which apply, and their constraints with each other and with those of the base
//! (Part 2, 4.1.5 and the schema component constraints of 4.3).

use super::build::Builder;
use super::model::*;
use super::regex::Pattern;
use super::syntax::number;
use super::value::{Enumeration, Primitive, Value};
use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::sync::Arc;

/// Whether a facet applies to a variety.
fn applies(facet: &str, variety: &Variety) -> bool {
    let length = matches!(facet, "length" | "minLength" | "maxLength");
    match (variety, facet) {
        (_, "pattern") => true,
        (Variety::Union(_), facet) => facet == "enumeration",
        (Variety::List(_), facet) => length || matches!(facet, "enumeration" | "whiteSpace"),
        (Variety::Atomic(Primitive::Boolean), facet) => facet == "whiteSpace",
        (_, "enumeration" | "whiteSpace") => true,
        (Variety::Atomic(primitive), facet) => match primitive {
            Primitive::Any => false,
            Primitive::String
            | Primitive::HexBinary
            | Primitive::Base64Binary
            | Primitive::AnyUri
            | Primitive::QName
            | Primitive::Notation => length,
            Primitive::Decimal => !length,
            _ => !length && !matches!(facet, "totalDigits" | "fractionDigits"),
        },
    }
}

/// Restricts the simple type `simple` (the type `base`) by these facets.
pub fn derive(b: &mut Builder, mut simple: Simple, base: TypeId, nodes: Vec<(String, Place)>) -> Simple {
    let old = simple.facets.clone();
    let mut patterns = Vec::new();
    let mut enumeration: Option<Vec<Value>> = None;
    let mut seen = Vec::new();
    for (facet, place) in &nodes {
        let (facet, place) = (facet.as_str(), *place);
        if !applies(facet, &simple.variety) {
            b.problem(place, "cos-applicable-facets", format!("facet `{facet}` does not apply to this type"));
            continue;
        }
        if !matches!(facet, "pattern" | "enumeration") {
            if seen.contains(&facet) {
                b.problem(place, "src-single-facet-value", format!("facet `{facet}` is there twice"));
                continue;
            }
            seen.push(facet);
        }
        let text = b.tree(place).attribute(place.node, "", "value").unwrap_or("").to_owned();
        let fixed = b
            .tree(place)
            .attribute(place.node, "", "fixed")
            .is_some_and(|f| matches!(f.trim(), "true" | "1"));
        let count = || Facet {
            value: text.trim().parse::<u64>().unwrap_or_else(|_| number(text.trim()).unwrap_or(0).into()),
            fixed,
        };
        let f = &mut simple.facets;
        match facet {
            "length" => f.length = Some(count()),
            "minLength" => f.min_length = Some(count()),
            "maxLength" => f.max_length = Some(count()),
            "totalDigits" => f.total_digits = Some(count()),
            "fractionDigits" => f.fraction_digits = Some(count()),
            "whiteSpace" => {
                let value = match text.trim() {
                    "preserve" => WhiteSpace::Preserve,
                    "replace" => WhiteSpace::Replace,
                    _ => WhiteSpace::Collapse,
                };
                if value < old.white_space.value {
                    b.problem(
                        place,
                        "whiteSpace-valid-restriction",
                        "white space cannot be kept where the base does not",
                    );
                }
                simple.facets.white_space = Facet { value, fixed: fixed || old.white_space.fixed };
            }
            "pattern" => match Pattern::compile(&text) {
                Ok(pattern) => patterns.push(pattern),
                Err(why) => b.problem(place, "InvalidRegex", format!("pattern `{text}`: {why}")),
            },
            _ => {
                // A bound or an enumerated value: a value of the base.
                let tree = &b.docs.list[place.doc].tree;
                let prefixes = |prefix: &str| tree.lookup_prefix(place.node, prefix).map(str::to_owned);
                let lenient = matches!(facet, "minExclusive" | "maxExclusive");
                let value = match b.schema.check(base, &text, &prefixes, true) {
                    Ok(checked) => checked.value,
                    // A bound may repeat that of the base though it excludes itself.
                    Err(_) if lenient => bound_value(b, &simple, &text),
                    Err(_) => None,
                };
                let Some(value) = value else {
                    b.problem(
                        place,
                        "facet-valid",
                        format!("`{text}` of facet `{facet}` is not a value of the base type"),
                    );
                    continue;
                };
                let bound = Some(Facet { value: value.clone(), fixed });
                let f = &mut simple.facets;
                match facet {
                    "minInclusive" => (f.min_inclusive, f.min_exclusive) = (bound, None),
                    "maxInclusive" => (f.max_inclusive, f.max_exclusive) = (bound, None),
                    "minExclusive" => (f.min_exclusive, f.min_inclusive) = (bound, None),
                    "maxExclusive" => (f.max_exclusive, f.max_inclusive) = (bound, None),
                    _ => enumeration.get_or_insert_default().push(value),
                }
            }
        }
    }
    if !patterns.is_empty() {
        simple.facets.patterns.push(patterns.into());
    }
    if let Some(values) = enumeration {
        simple.facets.enumeration = Some(Arc::new(Enumeration::new(values)));
    }
    for (both, one) in [("minInclusive", "minExclusive"), ("maxInclusive", "maxExclusive")] {
        if seen.contains(&both)
            && seen.contains(&one)
            && let Some(place) = nodes.iter().find(|n| n.0 == one).map(|n| n.1)
        {
            b.problem(place, "minInclusive-minExclusive", format!("`{both}` and `{one}` exclude each other"));
        }
    }
    if let Some(&(_, place)) = nodes.first() {
        for why in conflicts(&simple.facets, &old, &seen) {
            b.problem(place, "st-restrict-facets", why);
        }
    }
    simple
}

/// The value of a bound that is not a value of the base, but of its primitive type.
fn bound_value(b: &Builder, simple: &Simple, text: &str) -> Option<Value> {
    let Variety::Atomic(primitive) = simple.variety else { return None };
    let text = super::simple::normalise(text, simple.facets.white_space.value);
    let value = super::value::parse(&text, primitive, &|_| None)?;
    let _ = b;
    let is_bound = |f: &Option<Facet<Value>>| f.as_ref().is_some_and(|f| f.value == value);
    (is_bound(&simple.facets.min_exclusive) || is_bound(&simple.facets.max_exclusive)).then_some(value)
}

/// The name of a facet, the two values, and the order that they must have.
type Comparison<'f, T> = (&'f str, &'f Option<Facet<T>>, &'f Option<Facet<T>>, &'f [Ordering]);

/// Checks facets against each other and against those of the base.
fn conflicts(new: &Facets, old: &Facets, set: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    // Counts: (name, new, old, how the new one must be to the old one).
    let counts: [Comparison<'_, u64>; 5] = [
        ("length", &new.length, &old.length, &[Equal]),
        ("minLength", &new.min_length, &old.min_length, &[Greater, Equal]),
        ("maxLength", &new.max_length, &old.max_length, &[Less, Equal]),
        ("totalDigits", &new.total_digits, &old.total_digits, &[Less, Equal]),
        ("fractionDigits", &new.fraction_digits, &old.fraction_digits, &[Less, Equal]),
    ];
    for (name, new, old, allowed) in counts {
        if let (Some(new), Some(old)) = (new, old) {
            if !allowed.contains(&new.value.cmp(&old.value)) {
                wrong.push(format!("`{name}` {} is wider than {} of the base", new.value, old.value));
            }
            if old.fixed && new.value != old.value {
                wrong.push(format!("the base fixes `{name}` to {}", old.value));
            }
        }
    }
    if old.white_space.fixed && new.white_space.value != old.white_space.value {
        wrong.push("the base fixes `whiteSpace`".to_owned());
    }
    type Bound<'a> = (&'a str, &'a Option<Facet<Value>>, &'a Option<Facet<Value>>);
    let bounds: [Bound<'_>; 4] = [
        ("minInclusive", &new.min_inclusive, &old.min_inclusive),
        ("maxInclusive", &new.max_inclusive, &old.max_inclusive),
        ("minExclusive", &new.min_exclusive, &old.min_exclusive),
        ("maxExclusive", &new.max_exclusive, &old.max_exclusive),
    ];
    for (name, new, old) in bounds {
        if let (true, Some(new), Some(old)) = (set.contains(&name), new, old)
            && old.fixed
            && new.value != old.value
        {
            wrong.push(format!("the base fixes `{name}`"));
        }
    }
    // New bounds against those of the base: (new, old, how new must be).
    let against: [Comparison<'_, Value>; 16] = [
        ("minInclusive", &new.min_inclusive, &old.min_inclusive, &[Greater, Equal]),
        ("minInclusive", &new.min_inclusive, &old.min_exclusive, &[Greater]),
        ("minInclusive", &new.min_inclusive, &old.max_inclusive, &[Less, Equal]),
        ("minInclusive", &new.min_inclusive, &old.max_exclusive, &[Less]),
        ("maxInclusive", &new.max_inclusive, &old.max_inclusive, &[Less, Equal]),
        ("maxInclusive", &new.max_inclusive, &old.max_exclusive, &[Less]),
        ("maxInclusive", &new.max_inclusive, &old.min_inclusive, &[Greater, Equal]),
        ("maxInclusive", &new.max_inclusive, &old.min_exclusive, &[Greater]),
        ("minExclusive", &new.min_exclusive, &old.min_exclusive, &[Greater, Equal]),
        ("minExclusive", &new.min_exclusive, &old.min_inclusive, &[Greater, Equal]),
        ("minExclusive", &new.min_exclusive, &old.max_inclusive, &[Less, Equal]),
        ("minExclusive", &new.min_exclusive, &old.max_exclusive, &[Less]),
        ("maxExclusive", &new.max_exclusive, &old.max_exclusive, &[Less, Equal]),
        ("maxExclusive", &new.max_exclusive, &old.max_inclusive, &[Less, Equal]),
        ("maxExclusive", &new.max_exclusive, &old.min_inclusive, &[Greater]),
        ("maxExclusive", &new.max_exclusive, &old.min_exclusive, &[Greater]),
    ];
    for (name, new, old, allowed) in against {
        if let (true, Some(new), Some(old)) = (set.contains(&name), new, old)
            && !new.value.compare(&old.value).is_some_and(|order| allowed.contains(&order))
        {
            wrong.push(format!("`{name}` is outside of what the base allows"));
        }
    }
    let ordered: [(&str, Comparison<'_, Value>); 4] = [
        ("minInclusive", ("maxInclusive", &new.min_inclusive, &new.max_inclusive, &[Less, Equal])),
        ("minInclusive", ("maxExclusive", &new.min_inclusive, &new.max_exclusive, &[Less])),
        ("minExclusive", ("maxInclusive", &new.min_exclusive, &new.max_inclusive, &[Less])),
        ("minExclusive", ("maxExclusive", &new.min_exclusive, &new.max_exclusive, &[Less, Equal])),
    ];
    for (low_name, (high_name, low, high, allowed)) in ordered {
        if let (Some(low), Some(high)) = (low, high)
            && !low.value.compare(&high.value).is_some_and(|order| allowed.contains(&order))
        {
            wrong.push(format!("`{low_name}` is above `{high_name}`"));
        }
    }
    let more = |a: &Option<Facet<u64>>, b: &Option<Facet<u64>>| matches!((a, b), (Some(a), Some(b)) if a.value > b.value);
    if more(&new.min_length, &new.max_length) {
        wrong.push("`minLength` is above `maxLength`".to_owned());
    }
    if more(&new.fraction_digits, &new.total_digits) {
        wrong.push("`fractionDigits` is above `totalDigits`".to_owned());
    }
    let both = set.contains(&"length") && (set.contains(&"minLength") || set.contains(&"maxLength"));
    if both || more(&new.min_length, &new.length) || more(&new.length, &new.max_length) {
        wrong.push("`length` contradicts `minLength` or `maxLength`".to_owned());
    }
    wrong
}
