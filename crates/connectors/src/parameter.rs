//! The parameters of an operation: its child elements, each a text or an expression.
//!
//! A value in braces as a whole, or a single `${…}`, is an expression. Among the others only a [`Form::Template`] has
//! `${…}` replaced within.

use config::{Child, Element};
use diagnostics::{Diagnostic, Span};
use flow::synapse::expression_length;
use flow::{Compiler, Context, Expression, Fault, Need, Text};
use message::Value;
use std::sync::Arc;

/// One value.
pub(crate) enum Parameter {
    /// Text.
    Literal(Arc<str>),
    /// `{…}`, `${…}`.
    Expression(Expression),
    /// Text with `${…}` in it.
    Template(Text),
}

/// How the text of a parameter is interpreted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A text; `${…}` within it stays as it is.
    Plain,
    /// A text in which `${…}` is replaced.
    Template,
    /// As [`Form::Template`]. JSON is a text, although it stands in braces.
    Json,
}

impl Parameter {
    /// The value of an element; `None` after a recorded error.
    pub(crate) fn compile(element: &Element, form: Form, compiler: &mut Compiler<'_>) -> Option<Parameter> {
        let (text, span) = (written(element), element.text_span());
        let trimmed = text.trim();
        let start = text.len() - text.trim_start().len();
        if trimmed.starts_with("${") && expression_length(trimmed) == Some(trimmed.len()) {
            let place = span.part(start, trimmed.len());
            let expression = compiler.expression_text(trimmed, place, element.scope())?;
            return Some(Parameter::Expression(expression));
        }
        let inner = trimmed.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        if let Some(inner) = inner.filter(|inner| form != Form::Json || !begins_as_object(inner)) {
            let place = span.part(start + 1, inner.len());
            let expression = compiler.expression_text(inner, place, element.scope())?;
            return Some(Parameter::Expression(expression));
        }
        if form == Form::Plain {
            warn_of_expression(&text, element, compiler);
            return Some(Parameter::Literal(Arc::from(text)));
        }
        // JSON stands in single quotes where it would be taken for an expression.
        let quoted = trimmed.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        let (text, at) = match quoted.filter(|_| form == Form::Json) {
            Some(inner) => (inner, start + 1),
            None => (text.as_str(), 0),
        };
        if !text.contains("${") {
            return Some(Parameter::Literal(Arc::from(text)));
        }
        compiler.text(text, span.part(at, text.len()), element.scope()).map(Parameter::Template)
    }

    fn need(&self) -> Need {
        match self {
            Parameter::Literal(_) => Need::Nothing,
            Parameter::Expression(expression) => expression.need(),
            Parameter::Template(text) => text.need(),
        }
    }

    /// The value for this message; `None`: the expression gives nothing.
    ///
    /// # Errors
    /// The payload cannot be read.
    pub(crate) fn value(&self, context: &mut Context) -> Result<Option<Value>, Fault> {
        Ok(match self {
            Parameter::Literal(text) => Some(Value::String(Arc::clone(text))),
            Parameter::Expression(expression) => expression.value(context)?,
            Parameter::Template(text) => Some(Value::from(text.resolve(context)?)),
        })
    }

    /// As [`Parameter::value`], for XML: texts are escaped, and XML goes between tags as it is.
    ///
    /// # Errors
    /// As [`Parameter::value`].
    pub(crate) fn xml_text(&self, context: &mut Context) -> Result<Option<String>, Fault> {
        if let Parameter::Expression(expression) = self
            && let Some(value) = expression.value(context)?
        {
            return Ok(Some(match value {
                // An expression that selects elements gives these, not their text.
                Value::Xml(xml) if xml.has_elements() => xml.to_xml(),
                other => other.to_string(),
            }));
        }
        self.text_in::<Tags>(context)
    }

    /// As [`Parameter::value`], for JSON: what is put between quotes is escaped, so that it stays one string.
    ///
    /// # Errors
    /// As [`Parameter::value`].
    pub(crate) fn json_text(&self, context: &mut Context) -> Result<Option<String>, Fault> {
        self.text_in::<Quotes>(context)
    }

    /// The text with its expressions replaced by the rules of a language.
    fn text_in<L: Language>(&self, context: &mut Context) -> Result<Option<String>, Fault> {
        let Parameter::Template(text) = self else {
            return Ok(self.value(context)?.map(|value| value.to_string()));
        };
        let (mut out, mut language) = (String::new(), L::default());
        for piece in text.pieces() {
            match piece {
                flow::synapse::Piece::Text(text) => {
                    language.pass(text);
                    out.push_str(text);
                }
                flow::synapse::Piece::Expression(expression) => {
                    language.put(expression.string(context)?.unwrap_or_default(), &mut out);
                }
            }
        }
        Ok(Some(out))
    }
}

/// The state of a scanner in the text of a language, and how a value is inserted there.
trait Language: Default {
    /// Scans on.
    fn pass(&mut self, text: &str);

    /// Appends a value, escaped so that it cannot change the text around it.
    fn put(&self, value: String, out: &mut String);
}

/// The state of a scanner in XML.
#[derive(Default)]
struct Tags {
    /// Within a tag.
    open: bool,
    /// Within an attribute value, which may have the end of a tag in it.
    quote: Option<u8>,
}

impl Language for Tags {
    fn pass(&mut self, text: &str) {
        for byte in text.bytes() {
            match (byte, self.quote) {
                (character, Some(quote)) if character == quote => self.quote = None,
                (_, Some(_)) => {}
                (b'"' | b'\'', None) if self.open => self.quote = Some(byte),
                (b'<', None) => self.open = true,
                (b'>', None) => self.open = false,
                _ => {}
            }
        }
    }

    fn put(&self, value: String, out: &mut String) {
        match !self.open && crate::result::is_xml(&value) {
            true => out.push_str(value.trim()),
            false => out.push_str(&crate::result::escaped(&value).replace('\'', "&apos;")),
        }
    }
}

/// The state of a scanner in JSON.
#[derive(Default)]
struct Quotes {
    /// Within a string.
    open: bool,
    /// Behind a backslash.
    escaped: bool,
}

impl Language for Quotes {
    fn pass(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.open => self.escaped = true,
                b'"' => self.open = !self.open,
                _ => {}
            }
        }
    }

    fn put(&self, value: String, out: &mut String) {
        if !self.open {
            out.push_str(&value);
            return;
        }
        let escaped = serde_json::Value::from(value).to_string();
        out.push_str(escaped.get(1..escaped.len() - 1).unwrap_or_default());
    }
}

/// The text of an element, or the XML of its content if it has elements.
fn written(element: &Element) -> String {
    if element.elements().next().is_none() {
        return element.text();
    }
    element
        .children()
        .iter()
        .map(|child| match child {
            Child::Element(child) => child.to_xml(),
            Child::Text(text) if !text.value.trim().is_empty() => xml_text(&text.value),
            Child::Text(_) | Child::Comment(_) | Child::Instruction(_) => String::new(),
        })
        .collect()
}

fn xml_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Whether the text after a brace is the content of a JSON object.
fn begins_as_object(inner: &str) -> bool {
    let inner = inner.trim_start();
    inner.is_empty() || inner.starts_with('"') || (inner.starts_with("${") && !is_expression(inner))
}

/// Whether a text is one `${…}` and nothing else.
fn is_expression(text: &str) -> bool {
    let text = text.trim();
    expression_length(text) == Some(text.len())
}

/// A `${…}` that stays as it is was probably meant as an expression.
fn warn_of_expression(text: &str, element: &Element, compiler: &mut Compiler<'_>) {
    let Some(at) = text.find("${") else { return };
    let message = format!("the `${{…}}` in `{}` is text", element.local());
    let place = element.text_span().part(at, 2);
    compiler.warning("expression", message, place, "to evaluate it, put all of the value into one: {${…}}");
}

/// The parameters of one operation.
pub(crate) struct Parameters {
    /// The name of the operation, for messages.
    operation: String,
    values: Vec<(String, Parameter)>,
}

impl Parameters {
    /// Reads the child elements of an element. `form` says how each is interpreted. `None` after a recorded error.
    pub(crate) fn compile(
        element: &Element,
        form: impl Fn(&str) -> Form,
        compiler: &mut Compiler<'_>,
    ) -> Option<Parameters> {
        let mut values: Vec<(String, Parameter)> = Vec::new();
        for child in element.elements() {
            if child.is("description") {
                continue;
            }
            let name = child.local();
            let parameter = Parameter::compile(child, form(name), compiler)?;
            // Of several with one name the last one counts.
            values.retain(|(other, _)| other != name);
            values.push((name.to_owned(), parameter));
        }
        let parameters = Parameters { operation: element.local().to_owned(), values };
        // The parameters of operations that have a result.
        parameters.check_truths(&["overwriteBody"], element, compiler);
        Some(parameters)
    }

    /// What they read of a message.
    pub(crate) fn need(&self) -> Need {
        self.values.iter().map(|(_, parameter)| parameter.need()).max().unwrap_or(Need::Nothing)
    }

    /// The reason for what they read.
    pub(crate) fn reason(&self) -> String {
        let dearest = self.values.iter().filter_map(|(_, parameter)| match parameter {
            Parameter::Expression(expression) => Some(expression),
            Parameter::Template(text) => text.expressions().max_by_key(|expression| expression.need()),
            Parameter::Literal(_) => None,
        });
        dearest.max_by_key(|expression| expression.need()).map(Expression::reason).unwrap_or_default()
    }

    /// A parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&Parameter> {
        self.values.iter().find(|(n, _)| n == name).map(|(_, parameter)| parameter)
    }

    /// Whether a parameter is absent or empty.
    pub(crate) fn is_absent(&self, name: &str) -> bool {
        self.get(name)
            .is_none_or(|parameter| matches!(parameter, Parameter::Literal(text) if text.trim().is_empty()))
    }

    /// The value of a parameter; `None` where it is absent or gives nothing.
    ///
    /// # Errors
    /// The payload cannot be read.
    pub(crate) fn value(&self, name: &str, context: &mut Context) -> Result<Option<Value>, Fault> {
        self.get(name).map_or(Ok(None), |parameter| parameter.value(context))
    }

    /// The trimmed text of a parameter; `None` where it is absent or empty.
    ///
    /// # Errors
    /// As [`Parameters::value`].
    pub(crate) fn text(&self, name: &str, context: &mut Context) -> Result<Option<String>, Fault> {
        let text = self.value(name, context)?.map(|value| value.to_string());
        Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
    }

    /// The boolean of a parameter: `true` in any case; anything else is false.
    ///
    /// # Errors
    /// As [`Parameters::value`].
    pub(crate) fn is_true(&self, name: &str, default: bool, context: &mut Context) -> Result<bool, Fault> {
        Ok(self.text(name, context)?.map_or(default, |text| text.eq_ignore_ascii_case("true")))
    }

    /// The trimmed text of a parameter without expressions.
    pub(crate) fn literal(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Parameter::Literal(text) => Some(text.trim()),
            _ => None,
        }
    }

    /// Whether a parameter without expressions is this text in any case.
    pub(crate) fn is_literally(&self, name: &str, text: &str) -> bool {
        self.literal(name).is_some_and(|value| value.eq_ignore_ascii_case(text))
    }

    /// Reports a parameter without expressions whose text is wrong.
    pub(crate) fn check(
        &self,
        name: &str,
        element: &Element,
        compiler: &mut Compiler<'_>,
        is_right: impl FnOnce(&str) -> Result<(), String>,
    ) {
        let Some(text) = self.literal(name).filter(|text| !text.is_empty()) else { return };
        if let Err(why) = is_right(text) {
            let shown: String = text.chars().take(80).collect();
            let message = format!("`{name}` of `{}` cannot be `{shown}`", self.operation);
            compiler.warning("bad-value", message, text_place(element, name), why);
        }
    }

    /// As [`Parameters::check`], for a parameter with these words, in any case and spacing.
    pub(crate) fn check_word(
        &self,
        name: &str,
        words: &[&'static str],
        element: &Element,
        compiler: &mut Compiler<'_>,
    ) {
        let plain = |text: &str| -> String {
            text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
        };
        let Some(text) = self.literal(name).filter(|text| !text.is_empty()) else { return };
        if words.iter().any(|word| plain(word) == plain(text)) {
            return;
        }
        let message = format!("`{name}` of `{}` cannot be `{text}`", self.operation);
        let found = Diagnostic::warning("bad-value", message)
            .at(text_place(element, name), format!("expected {}", words.join(", ")))
            .did_you_mean(text, words.iter().copied());
        compiler.diagnostics.push(found);
    }

    /// As [`Parameters::check`], for whole numbers of at least 0.
    pub(crate) fn check_numbers(&self, names: &[&str], element: &Element, compiler: &mut Compiler<'_>) {
        for name in names {
            self.check(name, element, compiler, |text| match text.parse::<u64>() {
                Ok(_) => Ok(()),
                Err(_) => Err("expected a whole number of at least 0".to_owned()),
            });
        }
    }

    /// As [`Parameters::check`], for booleans.
    pub(crate) fn check_truths(&self, names: &[&str], element: &Element, compiler: &mut Compiler<'_>) {
        for name in names {
            self.check_word(name, &["true", "false"], element, compiler);
        }
    }

    /// Reports parameters that are absent or empty.
    pub(crate) fn check_given(&self, names: &[&str], element: &Element, compiler: &mut Compiler<'_>) {
        for name in names.iter().filter(|name| self.is_absent(name)) {
            let message = format!("`{}` has no `{name}`", self.operation);
            compiler.warning("bad-value", message, element.start_tag(), "messages that come here fault");
        }
    }

    /// The name of the operation, for messages.
    pub(crate) fn operation(&self) -> &str {
        &self.operation
    }
}

/// The place of the text of a parameter.
fn text_place(element: &Element, name: &str) -> Span {
    element.child(name).map_or_else(|| element.start_tag(), Element::text_span)
}

/// The place of an element, for warnings about a parameter.
pub(crate) fn place_of(element: &Element, name: &str) -> Span {
    element.child(name).map_or_else(|| element.start_tag(), Element::start_tag)
}
