//! The values of attributes against what their definitions say they may be.
//!
//! Those of a mediator's own element are judged before it is compiled. Those of its parts are judged by what compiling makes of them: what it
//! has refused or named itself is not said again, and what it takes counts as something else, so that is a warning.

use super::definition::{Attribute, Values};
use config::Element;
use config::read::respell_value;
use diagnostics::{Diagnostic, Diagnostics, Span, nearest};

/// The finding for a value that an attribute of a mediator's element does not take: an error where it cannot be used, a warning where
/// it counts as another one.
pub(super) fn of_mediator(attribute: &config::Attribute, values: Values) -> Option<Diagnostic> {
    let value = attribute.value.trim();
    if takes(values, value) {
        return None;
    }
    let name = &attribute.name.local;
    let (found, label) = match values {
        Values::Boolean | Values::Word(_) => (
            Diagnostic::warning("bad-value", format!("`{name}` should not be `{value}`")),
            counts(values, ""),
        ),
        Values::Action(_) => {
            let message = format!("`{name}` cannot be `{value}`: messages that come here fault");
            (Diagnostic::warning("bad-value", message), expected(values))
        }
        _ => (Diagnostic::error("bad-value", format!("`{name}` cannot be `{value}`")), expected(values)),
    };
    Some(near(found.at(attribute.value_span, label), attribute, values))
}

/// A value of a part of a mediator that its attribute does not take.
pub(super) struct Odd {
    /// What is said if compiling the mediator took it.
    taken: Diagnostic,
    /// What is said if compiling the mediator failed, perhaps before it came to this.
    unknown: Diagnostic,
    place: Span,
    /// The value in quotes, as findings write it.
    quoted: String,
}

/// As [`of_mediator`], of a part. A blank value counts as none.
pub(super) fn of_part(attribute: &config::Attribute, declared: &Attribute) -> Option<Odd> {
    let value = attribute.value.trim();
    if value.is_empty() || takes(declared.values, value) {
        return None;
    }
    let place = attribute.value_span;
    let found = |label| {
        let message = format!("`{}` should not be `{value}`", attribute.name.local);
        near(Diagnostic::warning("bad-value", message).at(place, label), attribute, declared.values)
    };
    Some(Odd {
        taken: found(counts(declared.values, declared.default)),
        unknown: found(expected(declared.values)),
        place,
        quoted: format!("`{value}`"),
    })
}

/// Says what is odd in the parts of a mediator, but what findings since `mark` have said already. `taken`: the mediator was compiled.
pub(super) fn say_of_parts(odd: Vec<Odd>, taken: bool, mark: usize, diagnostics: &mut Diagnostics) {
    for odd in odd {
        // At the value itself, or of an element as a whole because of the value.
        let is_said = diagnostics.iter().skip(mark).any(|found| {
            found.span().is_some_and(|span| {
                odd.place.encloses(span) || span.encloses(odd.place) && found.message.contains(&odd.quoted)
            })
        });
        if !is_said {
            diagnostics.push(if taken { odd.taken } else { odd.unknown });
        }
    }
}

/// The finding for an element that has both a literal and an expression, of which it takes one.
pub(super) fn of_both(element: &Element, declared: &[Attribute]) -> Option<Diagnostic> {
    const BOTH: [&str; 2] = ["value", "expression"];
    let takes = |name: &&str| declared.iter().any(|attribute| attribute.name == *name);
    let [value, expression] = BOTH.map(|name| element.attribute(name));
    if !BOTH.iter().all(takes) || value?.value.is_empty() || expression?.value.trim().is_empty() {
        return None;
    }
    let message = format!("only one of `value` and `expression` of `{}` counts", element.local());
    Some(Diagnostic::warning("conflict", message).at(expression?.name_span, "beside a `value`"))
}

/// Whether an attribute may have a trimmed value. Expressions and patterns are judged where they are compiled.
fn takes(values: Values, value: &str) -> bool {
    match values {
        Values::Boolean => ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word)),
        Values::Integer => value.parse::<i64>().is_ok(),
        Values::OneOf(words) | Values::Action(words) | Values::Word(words) => words.contains(&value),
        Values::Text | Values::Expression | Values::Key | Values::Regex => true,
    }
}

/// What is said of a value that counts as something else; `default`: as what, if it is not known from the values.
fn counts(values: Values, default: &str) -> String {
    let expected = expected(values);
    match (values, default) {
        (Values::Boolean, _) => format!("{expected}; all else counts as `false`"),
        (Values::Word(words), _) => {
            format!("counts as `{}`; {expected}", words.first().copied().unwrap_or_default())
        }
        (_, "") => expected,
        (_, default) => format!("counts as `{default}`; {expected}"),
    }
}

fn expected(values: Values) -> String {
    match values {
        Values::Boolean => "expected `true` or `false`".to_owned(),
        Values::Integer => "expected a whole number".to_owned(),
        Values::OneOf(words) | Values::Action(words) | Values::Word(words) => {
            format!("expected {}", quoted(words))
        }
        Values::Text | Values::Expression | Values::Key | Values::Regex => String::new(),
    }
}

/// With the value that was meant.
fn near(found: Diagnostic, attribute: &config::Attribute, values: Values) -> Diagnostic {
    let value = attribute.value.trim();
    match values {
        Values::Boolean => found.did_you_mean(value, ["true", "false"]),
        Values::OneOf(words) | Values::Action(words) | Values::Word(words) => {
            let meant = nearest(value, words.iter().copied()).or_else(|| abbreviated(value, words));
            let found = match meant {
                Some(word) => found.help(format!("did you mean `{word}`?")),
                None => found,
            };
            respell_value(found, attribute, words.iter().copied())
        }
        _ => found,
    }
}

/// The only word that begins with a value of three characters or more, in any case: `INT` is `INTEGER`.
fn abbreviated(value: &str, words: &[&'static str]) -> Option<&'static str> {
    let begins =
        |word: &&&str| word.get(..value.len()).is_some_and(|start| start.eq_ignore_ascii_case(value));
    let mut begun = words.iter().filter(begins);
    let word = begun.next().filter(|_| value.len() >= 3)?;
    begun.next().is_none().then_some(word)
}

/// Names for a sentence.
pub(super) fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
