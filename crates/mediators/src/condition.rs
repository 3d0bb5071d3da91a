//! The conditions of `conditionalRouter` and `rewrite`: `and`, `or`, `not`, `match` and `equal`.

use crate::address::{PARTS, Part, Parts};
use config::Element;
use flow::{Attribute, Compiler, Context, Expression, Fault, Need, Pattern, Values};
use message::Value;

/// What a route or a rule depends on.
pub(crate) enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    /// The whole value matches.
    Match(Source, Pattern),
    /// The value is this, whatever the case.
    Equal(Source, String),
    Truth(Expression),
}

/// Where a value comes from.
pub(crate) enum Source {
    Header(String),
    /// A parameter of the query of the address.
    Parameter(String),
    /// A part of the address.
    Url(Part),
    Property(String),
    Expression(Expression),
}

/// What `source` of a condition may be.
const TYPES: &[&str] = &["header", "param", "url", "property", "soap"];

/// The attributes of `match`.
pub(crate) const MATCH: &[Attribute] = &[
    Attribute::optional("type", Values::OneOf(TYPES), "what `source` is").or("header"),
    Attribute::optional("source", Values::Text, "the name, the part or the XPath"),
    Attribute::required("regex", Values::Regex, "a regular expression of Java's dialect"),
];

/// The attributes of `equal`.
pub(crate) const EQUAL: &[Attribute] = &[
    Attribute::optional("type", Values::OneOf(TYPES), "what `source` is").or("header"),
    Attribute::optional("source", Values::Text, "the name, the part or the XPath"),
    Attribute::required("value", Values::Text, "the text"),
];

impl Condition {
    /// Reads the one condition inside of `<condition>`; `None` after a recorded error.
    pub(crate) fn compile(parent: &Element, compiler: &mut Compiler<'_>) -> Option<Condition> {
        match parent.child("condition").and_then(|condition| condition.elements().next()) {
            Some(evaluator) => evaluator_of(evaluator, compiler),
            None => needs(parent, "condition", compiler),
        }
    }

    /// Whether it holds; `url` is the address that it asks about.
    pub(crate) fn holds(&self, context: &mut Context, url: &str) -> Result<bool, Fault> {
        Ok(match self {
            Condition::And(conditions) => {
                for condition in conditions {
                    if !condition.holds(context, url)? {
                        return Ok(false);
                    }
                }
                true
            }
            Condition::Or(conditions) => {
                for condition in conditions {
                    if condition.holds(context, url)? {
                        return Ok(true);
                    }
                }
                false
            }
            Condition::Not(condition) => !condition.holds(context, url)?,
            Condition::Match(source, pattern) => {
                let matches = |value: Option<&str>| value.map_or(Ok(false), |value| pattern.matches(value));
                source.with_value(context, url, matches)??
            }
            Condition::Equal(source, wanted) => {
                let is_wanted = |value: Option<&str>| value.is_some_and(|value| same_letters(value, wanted));
                source.with_value(context, url, is_wanted)?
            }
            Condition::Truth(expression) => expression.boolean(context)?,
        })
    }

    /// What of the message it reads.
    pub(crate) fn need(&self) -> Need {
        match self {
            Condition::And(conditions) | Condition::Or(conditions) => {
                conditions.iter().map(Condition::need).max().unwrap_or(Need::Nothing)
            }
            Condition::Not(condition) => condition.need(),
            Condition::Truth(expression)
            | Condition::Match(Source::Expression(expression), _)
            | Condition::Equal(Source::Expression(expression), _) => expression.need(),
            Condition::Match(..) | Condition::Equal(..) => Need::Headers,
        }
    }
}

/// Whether two texts differ at most in the case of their letters.
fn same_letters(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
        || !(one.is_ascii() && other.is_ascii()) && one.to_lowercase() == other.to_lowercase()
}

fn evaluator_of(element: &Element, compiler: &mut Compiler<'_>) -> Option<Condition> {
    let mut inside = |least: usize, most: usize| -> Option<Vec<Condition>> {
        let count = element.elements().count();
        if !(least..=most).contains(&count) {
            let expected =
                if most == 1 { "expected one condition" } else { "expected two conditions or more" };
            compiler.error(
                "bad-value",
                format!("`{}` holds {count}", element.local()),
                element.start_tag(),
                expected,
            );
            return None;
        }
        element.elements().map(|child| evaluator_of(child, compiler)).collect()
    };
    match element.local() {
        "and" => Some(Condition::And(inside(2, usize::MAX)?)),
        "or" => Some(Condition::Or(inside(2, usize::MAX)?)),
        "not" => Some(Condition::Not(Box::new(inside(1, 1)?.pop()?))),
        "match" if element.attr("regex").is_none() => needs(element, "regex", compiler),
        "match" => {
            let pattern = compiler.pattern(element, "regex");
            Some(Condition::Match(source_of(element, compiler)?, pattern?))
        }
        "equal" => match element.attr("value") {
            Some(value) => Some(Condition::Equal(source_of(element, compiler)?, value.to_owned())),
            None => needs(element, "value", compiler),
        },
        other => {
            let message = format!("`{other}` is not a condition");
            compiler.error(
                "unknown-element",
                message,
                element.name_span(),
                "expected and, or, not, match or equal",
            );
            None
        }
    }
}

fn source_of(element: &Element, compiler: &mut Compiler<'_>) -> Option<Source> {
    let source = element.attr("source").unwrap_or_default().to_owned();
    let kind = element.attr("type").map_or("header", str::trim);
    if source.is_empty() && kind != "url" {
        return needs(element, "source", compiler);
    }
    Some(match kind {
        "header" => Source::Header(source),
        "param" => Source::Parameter(source),
        "property" => Source::Property(source),
        "soap" => Source::Expression(compiler.expression(element, "source")?),
        "url" => match Part::of(&source) {
            Some(part) => Source::Url(part),
            None => return needs(element, "source", compiler),
        },
        _ => return needs(element, "type", compiler),
    })
}

/// Records that something is missing, or wrong.
pub(crate) fn needs<T>(element: &Element, what: &str, compiler: &mut Compiler<'_>) -> Option<T> {
    let expected = match what {
        "type" => "expected header, param, url, property or soap".to_owned(),
        "source" if element.attr("type") == Some("url") => {
            format!("expected {} or nothing", PARTS.join(", "))
        }
        _ => "it is missing or wrong here".to_owned(),
    };
    let article = if what == "expression" { "an" } else { "a" };
    let message = format!("`{}` needs {article} {what}", element.local());
    compiler.error("missing-attribute", message, element.start_tag(), expected);
    None
}

impl Source {
    /// What `then` makes of the value, which is lent where it lies in the message.
    fn with_value<T>(
        &self,
        context: &mut Context,
        url: &str,
        then: impl FnOnce(Option<&str>) -> T,
    ) -> Result<T, Fault> {
        Ok(match self {
            Source::Header(name) => match context.headers.get(name) {
                Some(text) => then(Some(text)),
                None => then(context.headers.get_bytes(name).map(flow::header_text).as_deref()),
            },
            Source::Property(name) => match context.properties.get(name) {
                Some(Value::String(text)) => then(Some(text)),
                value => then(value.map(ToString::to_string).as_deref()),
            },
            Source::Expression(expression) => return expression.with_string(context, then),
            Source::Parameter(name) => {
                let query = Parts::of(url).query.unwrap_or_default();
                let found = message::form::pairs(query).into_iter().find(|(key, _)| key == name);
                then(found.map(|(_, value)| value).as_deref())
            }
            Source::Url(Part::Whole) => then(Some(url)),
            Source::Url(part) => then(Parts::of(url).part(*part)),
        })
    }
}
