//! The results of queries as plans of output.

use super::{call, source};
use crate::output::Type;
use crate::plan::{Field, Group, Part, Query, Shape, Source};
use crate::{rdf, template};
use config::{DataCall, DataField, DataFormat, DataOutput, DataResult, DataValue};
use diagnostics::Span;
use flow::Compiler;
use std::collections::HashMap;
use std::sync::Arc;

/// Makes the plan of a result.
pub(super) struct Shaping<'a> {
    pub service: &'a config::DataService,
    pub numbers: &'a HashMap<String, usize>,
    pub slots: usize,
    pub is_nested: bool,
    /// Set where a part is for certain roles only.
    pub has_roles: &'a mut bool,
}

impl Shaping<'_> {
    pub fn shape(
        &mut self,
        result: &DataResult,
        query: &Query,
        compiler: &mut Compiler<'_>,
    ) -> Option<Shape> {
        let read;
        let result = match &result.json {
            Some(json) => match template::read(result, json) {
                Ok(made) => {
                    read = made;
                    &read
                }
                Err(why) => {
                    let message =
                        format!("the description of the result of the query `{}` cannot be read", query.id);
                    compiler.error("bad-value", message, json.span, why);
                    return None;
                }
            },
            _ => result,
        };
        let namespace: Arc<str> = Arc::from(result.namespace.as_deref().unwrap_or(&self.service.namespace));
        let mut about = None;
        if result.format == DataFormat::Rdf {
            about = Some(self.about(result, query, compiler)?);
        }
        // Without an element for rows, a field whose column is absent is left out.
        let optional = result.row.is_empty() && about.is_none();
        let group = self.group(("", &[]), &namespace, &result.children, optional, compiler)?;
        // In RDF the element around all rows and those of the rows are given by RDF.
        let name = |name: &str| if about.is_some() { String::new() } else { name.to_owned() };
        Some(Shape {
            element: name(&result.element),
            row: name(&result.row),
            namespace,
            group,
            slots: self.slots,
            is_nested: self.is_nested,
            column_numbers: result.column_numbers,
            about,
        })
    }

    /// The subject of the rows of an RDF result.
    fn about(
        &self,
        result: &DataResult,
        query: &Query,
        compiler: &mut Compiler<'_>,
    ) -> Option<rdf::Template> {
        let mut wrong = |message: String, span: Span, label: &str| {
            compiler.error("bad-value", message, span, label);
            None
        };
        let is_value =
            |output: &DataOutput| matches!(output, DataOutput::Field(field) if !field.is_attribute);
        if !result.children.iter().all(is_value) {
            let message = format!("the result of the query `{}` is RDF and has more than values", query.id);
            return wrong(
                message,
                result.span,
                "expected `element`s with a column, a parameter, a value or a URI",
            );
        }
        let Some(uri) = &result.about else {
            let message =
                format!("the result of the query `{}` is RDF and says not what it is about", query.id);
            return wrong(message, result.span, "expected rdfBaseURI=\"http://…/{column}\"");
        };
        match rdf::Template::parse(&uri.value) {
            Ok(template) => Some(template),
            Err(why) => wrong(format!("`rdfBaseURI` cannot be `{}`", uri.value), uri.span, why),
        }
    }

    fn group(
        &mut self,
        (name, roles): (&str, &[String]),
        namespace: &Arc<str>,
        children: &[DataOutput],
        optional: bool,
        compiler: &mut Compiler<'_>,
    ) -> Option<Group> {
        let mut group = Group {
            name: name.to_owned(),
            namespace: Arc::clone(namespace),
            roles: roles.to_vec(),
            attributes: Vec::new(),
            parts: Vec::new(),
        };
        for child in children {
            let (DataOutput::Field(DataField { roles, .. })
            | DataOutput::Group { roles, .. }
            | DataOutput::Call(DataCall { roles, .. })) = child;
            *self.has_roles |= !roles.is_empty();
            match child {
                DataOutput::Field(data_field) => {
                    if !is_name(&data_field.name.value) {
                        let message = format!("`{}` is not a name of an element", data_field.name);
                        compiler.error(
                            "bad-value",
                            message,
                            data_field.name.span,
                            "names have letters, digits, `_`, `-` and `.`",
                        );
                        return None;
                    }
                    warn_of_type(&data_field.xsd_type, data_field.span, compiler);
                    let value = match &data_field.value {
                        DataValue::Reference(uri) => match rdf::Template::parse(uri) {
                            Ok(template) => Source::Reference(template),
                            Err(why) => {
                                let message = format!("`rdf-ref-uri` cannot be `{uri}`");
                                compiler.error("bad-value", message, data_field.span, why);
                                return None;
                            }
                        },
                        value => source(value),
                    };
                    let field = Field {
                        slot: self.slots,
                        name: data_field.name.value.clone(),
                        namespace: data_field
                            .namespace
                            .as_deref()
                            .map_or_else(|| Arc::clone(namespace), Arc::from),
                        value,
                        xsd_type: Type::named(&data_field.xsd_type),
                        xsd_name: data_field.xsd_type.clone(),
                        optional: data_field.optional || optional,
                        roles: data_field.roles.clone(),
                        export: data_field.export.clone().map(|(name, all)| (name.to_ascii_lowercase(), all)),
                    };
                    self.slots += 1;
                    match data_field.is_attribute {
                        true => group.attributes.push(field),
                        false => group.parts.push(Part::Field(field)),
                    }
                }
                DataOutput::Group { name, namespace: group_namespace, roles, children } => {
                    let inner_namespace =
                        group_namespace.as_deref().map_or_else(|| Arc::clone(namespace), Arc::from);
                    let inner = self.group((name, roles), &inner_namespace, children, optional, compiler)?;
                    group.parts.push(Part::Group(inner));
                }
                DataOutput::Call(data_call) => {
                    self.is_nested = true;
                    group.parts.push(Part::Call(call(self.service, data_call, self.numbers, compiler)?));
                }
            }
        }
        Some(group)
    }
}

/// Reports a type that XML Schema does not have: its values are texts, also in JSON.
fn warn_of_type(name: &str, span: Span, compiler: &mut Compiler<'_>) {
    if Type::names().any(|known| known == name) {
        return;
    }
    let label = diagnostics::did_you_mean(name, Type::names())
        .unwrap_or_else(|| "its values are written as texts".to_owned());
    compiler.warning("bad-value", format!("`{name}` is not a type of XML Schema"), span, label);
}

/// Whether a text can be the local name of an element.
fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && letters.all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}
