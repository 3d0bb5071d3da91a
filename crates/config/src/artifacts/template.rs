//! `<template>`: sequences and endpoints with parameters.

use super::Sequence;
use crate::element::Element;
use crate::endpoint::Endpoint;
use crate::inject::Injector;
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::{Diagnostic, Diagnostics, Span};

/// A sequence with parameters, run by `call-template`.
#[derive(Clone, Debug)]
pub struct SequenceTemplate {
    /// Its name.
    pub name: Key,
    /// The sequence that handles errors in it.
    pub on_error: Option<Key>,
    /// Its parameters.
    pub parameters: Vec<TemplateParameter>,
    /// The body.
    pub sequence: Sequence,
    /// The documentation.
    pub description: Option<String>,
    /// The whole element.
    pub span: Span,
}

/// A parameter of a template.
#[derive(Clone, Debug)]
pub struct TemplateParameter {
    /// Its name.
    pub name: Key,
    /// Must be passed.
    pub mandatory: bool,
    /// The value when it is not passed.
    pub default: Option<String>,
    /// The documentation.
    pub description: Option<String>,
}

/// An endpoint with parameters: `$name` as the whole value of an attribute or element stands for one.
#[derive(Clone, Debug)]
pub struct EndpointTemplate {
    /// Its name.
    pub name: Key,
    /// The parameters besides the implicit `name` and `uri`.
    pub parameters: Vec<TemplateParameter>,
    /// `<endpoint>` with the marks in it.
    pub body: Element,
    /// The whole element.
    pub span: Span,
}

/// Either kind of template.
#[derive(Clone, Debug)]
pub enum Template {
    /// Of a sequence.
    Sequence(Box<SequenceTemplate>),
    /// Of an endpoint.
    Endpoint(EndpointTemplate),
}

pub(crate) const SHAPE: Shape = Shape {
    attributes: &["name", "onError", "description"],
    elements: &["parameter", "sequence", "endpoint", "description"],
};

impl Template {
    /// Reads a template, also one from the registry; `None` after an error.
    pub fn parse(element: &Element, diagnostics: &mut Diagnostics) -> Option<Template> {
        SHAPE.check(element, diagnostics);
        let name = read::required(element, "name", diagnostics);
        let mut parameters: Vec<TemplateParameter> = Vec::new();
        for child in element.children_named("parameter") {
            let Some(parameter) = TemplateParameter::parse(child, diagnostics) else { continue };
            if let Some(first) = parameters.iter().find(|other| *other.name == *parameter.name) {
                diagnostics.push(
                    Diagnostic::warning(
                        "duplicate-parameter",
                        format!("the parameter `{}` occurs twice", first.name),
                    )
                    .at(parameter.name.span, "again here")
                    .at(first.name.span, "first here"),
                );
                continue;
            }
            parameters.push(parameter);
        }
        if let Some(sequence) = element.child("sequence") {
            return Some(Template::Sequence(Box::new(SequenceTemplate {
                on_error: read::optional(element, "onError"),
                parameters,
                sequence: Sequence::anonymous(sequence, diagnostics),
                description: super::description(element),
                span: element.span(),
                name: name?,
            })));
        }
        if let Some(body) = element.child("endpoint") {
            return Some(Template::Endpoint(EndpointTemplate {
                parameters,
                body: body.clone(),
                span: element.span(),
                name: name?,
            }));
        }
        diagnostics.push(
            Diagnostic::error("missing-element", "the template is empty")
                .at(element.start_tag(), "expected a `sequence` or an `endpoint` inside"),
        );
        None
    }

    /// Its name.
    pub fn name(&self) -> &Key {
        match self {
            Template::Sequence(template) => &template.name,
            Template::Endpoint(template) => &template.name,
        }
    }
}

pub(crate) const PARAMETER: Shape = Shape {
    attributes: &["name", "isMandatory", "defaultValue", "optional", "default", "description"],
    elements: &[],
};

impl TemplateParameter {
    fn parse(element: &Element, diagnostics: &mut Diagnostics) -> Option<TemplateParameter> {
        PARAMETER.check(element, diagnostics);
        let mandatory = match element.attribute("optional") {
            // The spelling of Apache Synapse, with the opposite meaning.
            Some(_) => !read::boolean(element, "optional", true, diagnostics),
            None => read::boolean(element, "isMandatory", false, diagnostics),
        };
        Some(TemplateParameter {
            name: read::required(element, "name", diagnostics)?,
            mandatory,
            default: element.attr("defaultValue").or(element.attr("default")).map(str::to_owned),
            description: read::optional_text(element, "description"),
        })
    }
}

impl EndpointTemplate {
    /// The endpoint that an instance stands for. `$name` and `$uri` are the implicit parameters; a mark for
    /// which there is no value stays as it is.
    pub fn instantiate(
        &self,
        name: &str,
        uri: Option<&str>,
        parameters: &[(String, Key)],
        injector: &Injector,
        diagnostics: &mut Diagnostics,
    ) -> Option<Endpoint> {
        let replace = |value: &str| -> Option<String> {
            let mark = value.trim().strip_prefix('$')?;
            let given =
                parameters.iter().find(|(name, _)| name == mark).map(|(_, value)| value.value.clone());
            given.or_else(|| match mark {
                "name" => Some(name.to_owned()),
                "uri" => uri.map(str::to_owned),
                _ => self.parameters.iter().find(|p| p.name.value == mark).and_then(|p| p.default.clone()),
            })
        };
        Endpoint::parse_with(&self.body.map_values(&replace), injector, diagnostics)
    }
}
