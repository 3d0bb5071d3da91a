//! Validation of simple types: white space, varieties, facets (Part 2, 4.1.4 and 4.3).

use super::builtin::conforms;
use super::model::*;
use super::value::{self, Prefixes, Primitive, Value};
use std::borrow::Cow;
use std::cmp::Ordering;

/// A valid text.
#[derive(Debug)]
pub struct Checked {
    /// The value, if it was requested.
    pub value: Option<Value>,
    /// The type that accepted it: for a union the member.
    pub ty: TypeId,
}

/// The error in a value, with the rule that it violates.
#[derive(Debug)]
pub struct Wrong {
    pub rule: &'static str,
    pub message: String,
}

fn wrong<T>(rule: &'static str, message: String) -> Result<T, Wrong> {
    Err(Wrong { rule, message })
}

/// Deepest nesting of unions and lists.
const MAX_NESTING: usize = 50;

/// Normalizes white space as the facet demands.
pub fn normalise(text: &str, white_space: WhiteSpace) -> Cow<'_, str> {
    const SPACE: [char; 3] = ['\t', '\n', '\r'];
    match white_space {
        WhiteSpace::Preserve => Cow::Borrowed(text),
        WhiteSpace::Replace if text.contains(SPACE) => Cow::Owned(text.replace(SPACE, " ")),
        WhiteSpace::Replace => Cow::Borrowed(text),
        WhiteSpace::Collapse => {
            let text = text.trim_matches([' ', '\t', '\n', '\r']);
            if text.contains(SPACE) || text.contains("  ") {
                Cow::Owned(
                    text.split([' ', '\t', '\n', '\r'])
                        .filter(|t| !t.is_empty())
                        .collect::<Vec<_>>()
                        .join(" "),
                )
            } else {
                Cow::Borrowed(text)
            }
        }
    }
}

impl Components {
    /// Validates a text against a simple type. `value`: the value is requested.
    pub fn check(
        &self,
        ty: TypeId,
        text: &str,
        prefixes: Prefixes<'_>,
        value: bool,
    ) -> Result<Checked, Wrong> {
        self.check_nested(ty, text, prefixes, value, 0).map(|(checked, _)| checked)
    }

    fn check_nested<'t>(
        &self,
        ty: TypeId,
        text: &'t str,
        prefixes: Prefixes<'_>,
        wanted: bool,
        depth: usize,
    ) -> Result<(Checked, Cow<'t, str>), Wrong> {
        let Some(simple) = self.simple(ty) else {
            // A pending or complex type here is an error that was reported with the schema.
            return Ok((Checked { value: None, ty }, Cow::Borrowed(text)));
        };
        if depth > MAX_NESTING {
            return wrong("cvc-datatype-valid.1", format!("types nest deeper than {MAX_NESTING}"));
        }
        let facets = &simple.facets;
        let wanted_here = wanted || facets.enumeration.is_some();
        let (checked, text) = match &simple.variety {
            Variety::Atomic(primitive) => {
                let text = normalise(text, facets.white_space.value);
                let invalid = || Wrong {
                    rule: "cvc-datatype-valid.1.2.1",
                    message: format!("`{}` is not a valid value of {}", clip(&text), self.type_name_near(ty)),
                };
                if !conforms(facets.form, &text) {
                    return Err(invalid());
                }
                let value = if matches!(primitive, Primitive::String | Primitive::Any) && !wanted_here {
                    if facets.length.is_some() || facets.min_length.is_some() || facets.max_length.is_some() {
                        self.check_length(facets, text.chars().count() as u64, &text)?;
                    }
                    None
                } else {
                    let value = value::parse(&text, *primitive, prefixes).ok_or_else(invalid)?;
                    if let (Primitive::Notation, Value::QName(_, ns, local)) = (primitive, &value) {
                        let name =
                            super::names::Name { ns: self.names.find(ns), local: self.names.find(local) };
                        if !self.notations.contains(&name) {
                            return Err(invalid());
                        }
                    }
                    if let Some(length) = value.length()
                        && *primitive != Primitive::Any
                    {
                        self.check_length(facets, length, &text)?;
                    }
                    self.check_bounds(facets, &value, &text)?;
                    Some(value)
                };
                (Checked { value, ty }, text)
            }
            Variety::List(item) => {
                let text = normalise(text, WhiteSpace::Collapse);
                let mut values = Vec::new();
                let mut count = 0;
                for item_text in text.split(' ').filter(|t| !t.is_empty()) {
                    let (checked, _) =
                        self.check_nested(*item, item_text, prefixes, wanted_here, depth + 1)?;
                    values.extend(checked.value.filter(|_| wanted_here));
                    count += 1;
                }
                self.check_length(facets, count, &text)?;
                (Checked { value: wanted_here.then_some(Value::List(values)), ty }, text)
            }
            Variety::Union(members) => {
                let found = members
                    .iter()
                    .find_map(|&m| self.check_nested(m, text, prefixes, wanted_here, depth + 1).ok());
                found.ok_or_else(|| Wrong {
                    rule: "cvc-datatype-valid.1.2.3",
                    message: format!(
                        "`{}` is not a valid value of any member of {}",
                        clip(text),
                        self.type_name_near(ty)
                    ),
                })?
            }
        };
        for alternatives in &facets.patterns {
            if !alternatives.iter().any(|p| p.matches(&text)) {
                let all: Vec<&str> = alternatives.iter().map(|p| &*p.source).collect();
                return wrong(
                    "cvc-pattern-valid",
                    format!(
                        "`{}` does not match the pattern `{}` of {}",
                        clip(&text),
                        all.join("|"),
                        self.type_name_near(ty)
                    ),
                );
            }
        }
        if let Some(allowed) = &facets.enumeration
            && let Some(value) = &checked.value
            && !allowed.contains(value)
        {
            return wrong(
                "cvc-enumeration-valid",
                format!(
                    "`{}` is not among the values that {} enumerates",
                    clip(&text),
                    self.type_name_near(ty)
                ),
            );
        }
        Ok((checked, text))
    }

    fn check_length(&self, facets: &Facets, length: u64, text: &str) -> Result<(), Wrong> {
        let text = clip(text);
        if let Some(f) = facets.length.as_ref().filter(|f| f.value != length) {
            return wrong("cvc-length-valid", format!("`{text}` has length {length}, not {}", f.value));
        }
        if let Some(f) = facets.min_length.as_ref().filter(|f| length < f.value) {
            return wrong(
                "cvc-minLength-valid",
                format!("`{text}` has length {length}, less than minLength {}", f.value),
            );
        }
        if let Some(f) = facets.max_length.as_ref().filter(|f| length > f.value) {
            return wrong(
                "cvc-maxLength-valid",
                format!("`{text}` has length {length}, more than maxLength {}", f.value),
            );
        }
        Ok(())
    }

    fn check_bounds(&self, facets: &Facets, value: &Value, text: &str) -> Result<(), Wrong> {
        use Ordering::*;
        let text = clip(text);
        if let Value::Decimal(decimal) = value {
            if let Some(f) = facets.total_digits.as_ref().filter(|f| decimal.total_digits() > f.value) {
                return wrong("cvc-totalDigits-valid", format!("`{text}` has more than {} digits", f.value));
            }
            if let Some(f) = facets.fraction_digits.as_ref().filter(|f| decimal.fraction_digits() > f.value) {
                return wrong(
                    "cvc-fractionDigits-valid",
                    format!("`{text}` has more than {} fraction digits", f.value),
                );
            }
        }
        type Bound<'a> = (&'a Option<Facet<Value>>, &'a [Ordering], &'static str, &'static str);
        let bounds: [Bound<'_>; 4] = [
            (&facets.min_inclusive, &[Greater, Equal], "cvc-minInclusive-valid", "minInclusive"),
            (&facets.max_inclusive, &[Less, Equal], "cvc-maxInclusive-valid", "maxInclusive"),
            (&facets.min_exclusive, &[Greater], "cvc-minExclusive-valid", "minExclusive"),
            (&facets.max_exclusive, &[Less], "cvc-maxExclusive-valid", "maxExclusive"),
        ];
        for (bound, allowed, rule, name) in bounds {
            if let Some(bound) = bound
                && !value.compare(&bound.value).is_some_and(|order| allowed.contains(&order))
            {
                return wrong(rule, format!("`{text}` is outside of {name}"));
            }
        }
        Ok(())
    }

    /// The name of the type, or of its nearest named ancestor.
    fn type_name_near(&self, ty: TypeId) -> String {
        let mut at = ty;
        for _ in 0..100 {
            if let Some(name) = self.types[at].name {
                let shown = self.names.show(name);
                return if at == ty {
                    format!("`{shown}`")
                } else {
                    format!("a type derived from `{shown}`")
                };
            }
            at = self.types[at].base;
        }
        "its type".to_owned()
    }
}

/// A text, shortened for a message.
pub fn clip(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 100;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
