//! `json-eval(…)`: a JSONPath over the payload or a property, in which expressions may stand between braces.

use crate::expression::{Expression, ExpressionError, Kind, Outcome};
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::services::Settings;
use config::Scope;
use diagnostics::Span;
use message::Value;
use message::jsonpath::{Dialect, Failure, JsonPath};
use std::borrow::Cow;
use std::sync::Arc;

/// What a `json-eval` reads.
pub(super) enum JsonSource {
    Payload,
    Property(crate::expression::library::Scope, String),
}

/// A JSONPath, or the pieces of one with expressions between.
pub(super) enum JsonTemplate {
    Static(JsonPath),
    Dynamic(Vec<Piece>),
}

/// A part of a JSONPath with expressions in it.
pub(super) enum Piece {
    Text(String),
    Expression(Box<Expression>),
}

/// What a `json-eval` selects from, and the path.
type Subject<'c> = (Cow<'c, serde_json::Value>, Cow<'c, JsonPath>);

/// Reads what stands in `json-eval(…)`.
pub(super) fn json(
    path: &str,
    scope: &Scope,
    span: Span,
    offset: usize,
    settings: &Settings,
) -> Result<(JsonSource, JsonTemplate), ExpressionError> {
    let (source, path) = match crate::expression::library::property_prefix(path) {
        Some((property_scope, rest)) => {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let tail = &rest[end..];
            (JsonSource::Property(property_scope, rest[..end].to_owned()), format!("${tail}"))
        }
        None => (JsonSource::Payload, path.to_owned()),
    };
    let error = |message: String| ExpressionError {
        message,
        offset: offset..offset + path.len(),
        outcome: Outcome::Fault,
        is_xpath2: false,
    };
    if !path.contains('{') {
        let compiled = JsonPath::compile(&path, Dialect::Jayway).map_err(|why| error(why.message))?;
        return Ok((source, JsonTemplate::Static(compiled)));
    }
    let mut pieces = Vec::new();
    let mut rest = path.as_str();
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}') else {
            return Err(error("a `{` in this JSONPath has no `}`".to_owned()));
        };
        pieces.push(Piece::Text(rest[..open].to_owned()));
        let inner = Expression::compile(&rest[open + 1..open + close], scope, span, settings)?;
        pieces.push(Piece::Expression(Box::new(inner)));
        rest = &rest[open + close + 1..];
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok((source, JsonTemplate::Dynamic(pieces)))
}

impl Expression {
    /// The JSON values that a `json-eval` selects: the items of an array, or the one value; the value of a `${…}` as
    /// JSON, XML as its text.
    ///
    /// # Errors
    /// The payload is not JSON.
    pub fn json_values(&self, context: &mut Context) -> Result<Option<serde_json::Value>, Fault> {
        if let Kind::Synapse(synapse) = &self.kind {
            return self.evaluate(synapse, context, |value| value.into_json());
        }
        let Kind::Json(source, template) = &self.kind else {
            return Err(self.fault("it is an XPath, not json-eval"));
        };
        let Some((root, path)) = self.json_subject(source, template, context)? else { return Ok(None) };
        let selection = path.select(&root);
        if let Some(failure @ (Failure::Limit(_) | Failure::Stopped(_))) = selection.failure {
            return Err(self.fault(failure));
        }
        let values: Vec<_> = selection.nodes.into_iter().map(Cow::into_owned).collect();
        Ok(if path.is_definite() {
            values.into_iter().next()
        } else {
            Some(serde_json::Value::Array(values))
        })
    }

    /// The text that a `json-eval` selects; `None`: there is nothing, or it is no `json-eval`.
    pub(super) fn json_found(&self, context: &mut Context) -> Result<Option<Value>, Fault> {
        let Kind::Json(source, template) = &self.kind else { return Ok(None) };
        // The whole payload is its own text.
        if let (JsonSource::Payload, JsonTemplate::Static(path)) = (source, template)
            && path.is_root()
            && context.payload.is_json()
            && let Some(bytes) = context.payload.bytes()
        {
            return Ok(Some(Value::from(String::from_utf8_lossy(bytes).into_owned())));
        }
        // So is a whole property, which need not be JSON then.
        if let (JsonSource::Property(scope, name), JsonTemplate::Static(path)) = (source, template)
            && path.is_root()
        {
            match scope.get(context, name) {
                Some(Value::Json(_)) => {}
                found => return Ok(found.map(|value| Value::from(value.to_string()))),
            }
        }
        let Some((root, path)) = self.json_subject(source, template, context)? else { return Ok(None) };
        match (path.json_eval_text(&root).map_err(|failure| self.fault(failure))?, source) {
            // In the payload that is no error.
            (None, JsonSource::Property(_, name)) => {
                Err(self.fault(format!("{} leads nowhere in the property {name}", path.source())))
            }
            (text, _) => Ok(text.map(Value::from)),
        }
    }

    /// What a `json-eval` selects from, and the path; `None` where there is nothing.
    fn json_subject<'c>(
        &self,
        source: &JsonSource,
        template: &'c JsonTemplate,
        context: &'c mut Context,
    ) -> Result<Option<Subject<'c>>, Fault> {
        let here = |error: message::PayloadError| Fault::from(error).at(self.span);
        if matches!(source, JsonSource::Payload) && context.payload.is_empty() {
            return Ok(None);
        }
        let path = match template {
            JsonTemplate::Static(path) => Cow::Borrowed(path),
            JsonTemplate::Dynamic(pieces) => Cow::Owned(self.filled(pieces, context)?),
        };
        let root =
            match source {
                JsonSource::Payload => {
                    let services = Arc::clone(&context.services);
                    Cow::Borrowed(context.payload.json_view(&services.limits).map_err(here)?)
                }
                JsonSource::Property(scope, name) => match scope.get(context, name) {
                    None => return Ok(None),
                    Some(Value::Json(value)) => Cow::Owned(Arc::unwrap_or_clone(value)),
                    Some(other) => {
                        let value = message::lenient::read(&other.to_string());
                        Cow::Owned(value.map_err(|error| {
                            self.fault(format!("the property {name} is not JSON: {error}"))
                        })?)
                    }
                },
            };
        Ok(Some((root, path)))
    }

    /// The JSONPath with its placeholders filled in.
    fn filled(&self, pieces: &[Piece], context: &mut Context) -> Result<JsonPath, Fault> {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Expression(expression) => {
                    text.push_str(&expression.string(context)?.unwrap_or_default())
                }
            }
        }
        JsonPath::compile(&text, Dialect::Jayway).map_err(|error| self.fault(error.message))
    }
}
