//! `<parameter name=…>` of proxies, stores, processors, inbound endpoints, registries and classes.

use crate::element::Element;
use crate::inject::Injector;
use crate::read::{self, Shape};
use crate::value::{Expression, Key};
use diagnostics::{Diagnostics, Span};

/// A named parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: ParameterValue,
    /// The whole element.
    pub span: Span,
}

/// The value of a parameter.
#[derive(Clone, Debug)]
pub enum ParameterValue {
    /// Trimmed text, `$SYSTEM:` and `$FILE:` resolved.
    Text(Key),
    /// The first child element.
    Xml(Element),
    /// `key="…"`: the text of a registry resource or local entry.
    Key(Key),
    /// `expression="…"`.
    Expression(Expression),
}

impl ParameterValue {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            ParameterValue::Text(key) => Some(key),
            _ => None,
        }
    }
}

/// The text of the parameter `name`, the last one when it occurs more than once.
pub fn text_of<'a>(parameters: &'a [Parameter], name: &str) -> Option<&'a str> {
    parameters.iter().rev().find(|p| p.name == name).and_then(|p| p.value.text())
}

pub(crate) const SHAPE: Shape =
    Shape { attributes: &["name", "value", "key", "expression", "locked", "description"], elements: &[] };

impl Parameter {
    /// Reads one parameter.
    pub fn parse(element: &Element, injector: &Injector, diagnostics: &mut Diagnostics) -> Option<Parameter> {
        SHAPE.check_attributes(element, diagnostics);
        let name = read::required(element, "name", diagnostics)?.value;
        let value = if let Some(key) = read::optional(element, "key") {
            ParameterValue::Key(key)
        } else if let Some(attribute) = element.attribute("expression") {
            ParameterValue::Expression(Expression::of(attribute, element))
        } else if let Some(xml) = element.elements().next() {
            ParameterValue::Xml(xml.clone())
        } else {
            let text = read::text(element)
                .or_else(|| read::optional(element, "value"))
                .unwrap_or(Key { value: String::new(), span: element.span() });
            ParameterValue::Text(injector.resolve(text, diagnostics))
        };
        Some(Parameter { name, value, span: element.span() })
    }

    /// Reads every `parameter` child.
    pub fn children(element: &Element, injector: &Injector, diagnostics: &mut Diagnostics) -> Vec<Parameter> {
        element
            .children_named("parameter")
            .filter_map(|child| Parameter::parse(child, injector, diagnostics))
            .collect()
    }
}
