//! The artifacts that a step names.

use config::{Element, Value};

/// The literal value of an attribute that names an artifact; `None` where it is absent or an expression gives it.
pub fn literal_key<'e>(step: &'e Element, attribute: &str) -> Option<&'e str> {
    let attribute = step.attribute(attribute)?;
    match Value::parse(attribute.value.trim(), attribute.value_span, step.scope()) {
        Value::Literal(_) if !attribute.value.contains(['{', '$']) => Some(attribute.value.trim()),
        _ => None,
    }
}
