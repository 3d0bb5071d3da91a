//! Connections: `<http.init>`, `<file.init>` and the like, in a local entry that operations name with `configKey`, or as a step
//! ahead of them.
//!
//! The whole configuration is read before anything of it is compiled, so an operation may stand in front of its connection. A key that is
//! an expression is looked up among all connections of the connector.

use crate::parameter::{Form, Parameter};
use config::{Element, Key, Value};
use diagnostics::{Diagnostic, FileId};
use flow::{Compiled, Compiler, Context, Fault, Flow, KeyValue, Mediator, Need};
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

/// The connections that an operation may use.
pub(crate) struct Connections<T> {
    connector: &'static str,
    /// `configKey`; `None`: the connection of the `init` that ran before.
    key: Option<KeyValue>,
    by_name: HashMap<String, Arc<T>>,
}

/// The description of a connection, and the key of its local entry (empty for a step).
pub(crate) struct Description<'e> {
    pub key: Key,
    pub element: &'e Element,
    /// It is a step of a sequence; its elements are checked as those of all steps.
    pub is_step: bool,
}

impl<T: Send + Sync + 'static> Connections<T> {
    /// Compiles the connections of an operation. `make` reads a description; it gives `None` where that is faulty (recorded).
    pub(crate) fn compile(
        operation: &Element,
        connector: &'static str,
        compiler: &mut Compiler<'_>,
        mut make: impl FnMut(&Description<'_>, &mut Compiler<'_>) -> Option<T>,
    ) -> Option<Connections<T>> {
        let mut by_name = HashMap::new();
        let Some(attribute) = operation.attribute("configKey") else {
            return Some(Connections { connector, key: None, by_name });
        };
        let key = match Value::parse(attribute.value.trim(), attribute.value_span, operation.scope()) {
            Value::Literal(key) | Value::Deferred(key) => {
                match described(&key.value, connector, compiler) {
                    Some(element) => {
                        let made = make(
                            &Description { key: key.clone(), element: &element, is_step: false },
                            compiler,
                        );
                        by_name.extend(made.map(|made| (key.value.clone(), Arc::new(made))));
                    }
                    None => report_missing(&key, connector, compiler),
                }
                KeyValue::Literal(Arc::from(key.value))
            }
            Value::Expression(expression) => {
                for (name, element) in all(connector, compiler) {
                    let key = Key { value: name, span: expression.span };
                    let made =
                        make(&Description { key: key.clone(), element: &element, is_step: false }, compiler);
                    by_name.extend(made.map(|made| (key.value, Arc::new(made))));
                }
                KeyValue::Dynamic(compiler.expression_text(
                    &expression.source,
                    expression.span,
                    &expression.scope,
                )?)
            }
        };
        Some(Connections { connector, key: Some(key), by_name })
    }

    /// The connection for this message.
    ///
    /// # Errors
    /// No connection has this key.
    pub(crate) fn find(&self, context: &mut Context) -> Result<Arc<T>, Fault> {
        let Some(key) = &self.key else {
            let current = context.attached::<Current<T>>();
            return current.map(|c| Arc::clone(&c.0)).ok_or_else(|| {
                Fault::new(format!(
                    "the operation has no connection: it needs a configKey, or `{}.init` ahead of it",
                    self.connector
                ))
            });
        };
        let name = key.resolve(context)?.unwrap_or_default();
        self.by_name.get(name.trim()).cloned().ok_or_else(|| {
            Fault::new(format!("there is no connection {} of the connector {}", name.trim(), self.connector))
        })
    }

    /// What it reads of a message to evaluate the key.
    pub(crate) fn need(&self) -> flow::Need {
        match &self.key {
            Some(KeyValue::Dynamic(expression)) => expression.need(),
            _ => flow::Need::Nothing,
        }
    }

    /// The connection, if its key is a literal.
    pub(crate) fn literal(&self) -> Option<&Arc<T>> {
        self.by_name.get(self.key.as_ref()?.literal()?)
    }
}

/// The connection that an `init` in a sequence has left with the message.
pub(crate) struct Current<T>(pub Arc<T>);

/// `NAME.init` as a step.
struct Init<T>(Arc<T>);

impl<T: Send + Sync + 'static> Mediator for Init<T> {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        context.attach(Arc::new(Current(Arc::clone(&self.0))));
        Ok(Flow::Next)
    }
}

/// Compiles an `init` that stands as a step: operations behind it without a `configKey` use its connection.
pub(crate) fn init<T: Send + Sync + 'static>(
    element: &Element,
    compiler: &mut Compiler<'_>,
    make: fn(&Description<'_>, &mut Compiler<'_>) -> Option<T>,
) -> Compiled {
    let key = Key { value: String::new(), span: element.start_tag() };
    let connection = make(&Description { key, element, is_step: true }, compiler)?;
    Some(Box::new(Init(Arc::new(connection))))
}

fn init_of(connector: &str) -> String {
    format!("{connector}.init")
}

/// The `init` of this connector in a local entry.
pub(crate) fn described(key: &str, connector: &str, compiler: &Compiler<'_>) -> Option<Element> {
    let entry = compiler.configuration.local_entries.get(key)?;
    entry.element(FileId::BUILT_IN).filter(|element| element.local() == init_of(connector))
}

/// All connections of a connector.
pub(crate) fn all(connector: &str, compiler: &Compiler<'_>) -> Vec<(String, Element)> {
    let entries = compiler.configuration.local_entries.iter();
    let described = entries.filter_map(|entry| {
        let element = entry.element(FileId::BUILT_IN)?;
        (element.local() == init_of(connector)).then(|| (entry.key.value.clone(), element))
    });
    described.collect()
}

pub(crate) fn report_missing(key: &Key, connector: &str, compiler: &mut Compiler<'_>) {
    let names: Vec<String> = all(connector, compiler).into_iter().map(|(name, _)| name).collect();
    let init = init_of(connector);
    let message = match compiler.configuration.local_entries.get(&key.value) {
        Some(_) => format!("the local entry `{}` has no `{init}`", key.value),
        None => format!("there is no connection `{}`", key.value),
    };
    let found = Diagnostic::warning("unknown-connection", message)
        .at(key.span, "messages that come here fault")
        .did_you_mean(&key.value, names.iter().map(String::as_str))
        .help(format!("a connection is a local entry of this key with `<{init}>` in it"));
    compiler.diagnostics.push(found);
}

/// Reports unknown fields of a description: a misspelt field has no effect.
pub(crate) fn report_unknown(description: &Description<'_>, fields: &[&str], compiler: &mut Compiler<'_>) {
    let element = description.element;
    if description.is_step {
        return;
    }
    for child in element.elements().filter(|child| !fields.contains(&child.local())) {
        let message = format!("`{}` has no effect in `{}`", child.local(), element.local());
        let found = Diagnostic::warning("ignored-element", message)
            .at(child.name_span(), "ignored")
            .did_you_mean(child.local(), fields.iter().copied());
        compiler.diagnostics.push(found);
    }
}

/// The word of a field, in any case. `Ok(None)`: the field is absent; an error (recorded): it is none of `words`.
pub(crate) fn word(
    element: &Element,
    name: &str,
    words: &[&'static str],
    compiler: &mut Compiler<'_>,
) -> Result<Option<&'static str>, ()> {
    let Some(text) = field(element, name, compiler) else { return Ok(None) };
    let found = words.iter().copied().find(|word| word.eq_ignore_ascii_case(&text));
    if found.is_none() {
        let place = element.child(name).map_or_else(|| element.start_tag(), Element::text_span);
        let found = Diagnostic::error("bad-value", format!("there is no {name} `{text}`"))
            .at(place, format!("expected {}", words.join(", ")))
            .did_you_mean(&text, words.iter().copied());
        compiler.diagnostics.push(found);
        return Err(());
    }
    Ok(found)
}

/// The text of a field, with values from outside (`${configs.…}`) replaced; `None` where it is absent or empty.
pub(crate) fn field(element: &Element, name: &str, compiler: &mut Compiler<'_>) -> Option<String> {
    let child = element.child(name)?;
    let key = Key { value: child.text().trim().to_owned(), span: child.text_span() };
    let key = compiler.configuration.injector.resolve(key, compiler.diagnostics);
    Some(key.value).filter(|value| !value.is_empty())
}

/// As [`field`], for a field that may be an expression.
pub(crate) fn dynamic_field(element: &Element, name: &str, compiler: &mut Compiler<'_>) -> Option<Parameter> {
    let text = field(element, name, compiler)?;
    let child = element.child(name)?;
    match Value::parse(&text, child.text_span(), child.scope()) {
        Value::Expression(_) => Parameter::compile(child, Form::Plain, compiler),
        _ => Some(Parameter::Literal(Arc::from(text))),
    }
}

/// The fields of a description, which may be expressions.
pub(crate) struct Fields(Vec<(&'static str, Parameter)>);

impl Fields {
    /// Reads the fields of a description; others are reported.
    pub(crate) fn compile(
        description: &Description<'_>,
        fields: &'static [&'static str],
        compiler: &mut Compiler<'_>,
    ) -> Fields {
        report_unknown(description, fields, compiler);
        let element = description.element;
        let read = |field: &&'static str| Some((*field, dynamic_field(element, field, compiler)?));
        Fields(fields.iter().filter_map(read).collect())
    }

    /// The text of a field; `None` where it is absent or gives nothing.
    ///
    /// # Errors
    /// The payload cannot be read.
    pub(crate) fn text(&self, name: &str, context: &mut Context) -> Result<Option<String>, Fault> {
        let Some((_, field)) = self.0.iter().find(|(field_name, _)| *field_name == name) else {
            return Ok(None);
        };
        let text = field.value(context)?.map(|value| value.to_string());
        Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
    }

    /// The text of a field without expressions.
    pub(crate) fn literal(&self, name: &str) -> Option<&str> {
        match self.0.iter().find(|(field_name, _)| *field_name == name)? {
            (_, Parameter::Literal(text)) => Some(text.trim()),
            _ => None,
        }
    }

    /// Reports literals of `names` that are not a number of the type.
    pub(crate) fn check_numbers<N: FromStr>(
        &self,
        names: &[&str],
        element: &Element,
        compiler: &mut Compiler<'_>,
    ) {
        for name in names {
            if let Some(text) = self.literal(name).filter(|text| text.parse::<N>().is_err()) {
                let place = element.child(name).map_or_else(|| element.start_tag(), Element::text_span);
                let message = format!("`{name}` is not a number: {text}");
                compiler.warning("bad-value", message, place, "messages that come to it fault");
            }
        }
    }

    /// Refuses servers that `names` compute for each message and that `http.dynamic_addresses` does not permit: a client may have chosen them.
    pub(crate) fn permit<'s>(
        &self,
        names: &[&str],
        scheme: &str,
        servers: impl IntoIterator<Item = (&'s str, u16)>,
        context: &Context,
    ) -> Result<(), String> {
        let is_computed = names.iter().any(|name| self.has(name) && self.literal(name).is_none());
        let routes = &context.services().routes;
        let refused = |(host, port): &(&str, u16)| {
            let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
            is_computed && !routes.permits(scheme, bare, *port)
        };
        match servers.into_iter().find(refused) {
            Some((host, port)) => {
                Err(format!("`{host}:{port}` was computed, and is none of http.dynamic_addresses"))
            }
            None => Ok(()),
        }
    }

    /// Whether a field is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(field_name, _)| *field_name == name)
    }
}
