//! Reading typed values from elements, with a diagnostic for everything that does not fit.
//!
//! Every artifact starts with its [`Shape`]: the names that are valid there. From it come the findings
//! `unknown-attribute` and `ignored-element` with the nearest valid name: warnings, as the engines ignore both. Only in
//! `definitions` an unknown element is an error (`unknown-element`).

use crate::element::{Attribute, Child, Element, SYNAPSE};
use crate::value::Key;
use diagnostics::{Diagnostic, Diagnostics, Edit, Severity, Span, nearest, respelt};
use std::fmt::Display;
use std::str::FromStr;

/// The attributes and child elements that an element may have.
#[derive(Copy, Clone, Debug)]
pub struct Shape {
    /// Attributes in no namespace. Attributes in a namespace are never reported.
    pub attributes: &'static [&'static str],
    /// Synapse child elements.
    pub elements: &'static [&'static str],
}

impl Shape {
    /// Reports attributes, child elements and text that do not belong into `element`.
    pub fn check(&self, element: &Element, diagnostics: &mut Diagnostics) {
        self.check_attributes(element, diagnostics);
        for child in element.elements() {
            self.check_child(element, child, diagnostics);
        }
        stray_text(element, diagnostics);
    }

    /// Reports attributes that do not belong to `element`; its content may be anything.
    pub fn check_attributes(&self, element: &Element, diagnostics: &mut Diagnostics) {
        check_attributes(element, self.attributes, diagnostics);
    }

    /// Reports a child element that does not belong into `element`.
    pub fn check_child(&self, element: &Element, child: &Element, diagnostics: &mut Diagnostics) {
        let is_listed = self.elements.contains(&child.local());
        if is_listed && child.namespace() == SYNAPSE {
            return;
        }
        diagnostics.push(ignored_element(element, child, self.elements));
    }
}

/// Reports attributes that are not among the valid ones. A `description` is for people, wherever it stands.
pub(crate) fn check_attributes(element: &Element, valid: &[&str], diagnostics: &mut Diagnostics) {
    for attribute in element.attributes() {
        let name = &*attribute.name.local;
        if attribute.name.namespace.is_empty() && !valid.contains(&name) && name != "description" {
            diagnostics.push(unknown_attribute(element, attribute, valid));
        }
    }
}

/// Reports text directly in an element that nothing reads, once, however often it is called.
pub fn stray_text(element: &Element, diagnostics: &mut Diagnostics) {
    for child in element.children() {
        let Child::Text(text) = child else { continue };
        if text.value.trim().is_empty() {
            continue;
        }
        let place = trimmed(&text.value, text.span);
        if !diagnostics.iter().any(|d| d.rule == RULE && d.span() == Some(place)) {
            let message = format!("text in `{}` is ignored", element.local());
            diagnostics.push(Diagnostic::warning(RULE, message).at(place, "no text is expected here"));
        }
    }
    const RULE: &str = "stray-text";
}

/// The finding for a child that its parent cannot have, and that has no effect: the engines look up the children by
/// namespace and name.
pub fn ignored_element(parent: &Element, child: &Element, valid: &[&str]) -> Diagnostic {
    if valid.contains(&child.local()) {
        let found = wrong_namespace(child);
        return Diagnostic { severity: Severity::Warning, ..found };
    }
    let message = format!("`{}` is not known in `{}`", child.name(), parent.local());
    let label = match valid {
        [] => "ignored; no elements are expected here".to_owned(),
        valid => format!("ignored; expected one of: {}", valid.join(", ")),
    };
    let found = Diagnostic::warning("ignored-element", message)
        .at(child.name_span(), label)
        .did_you_mean(child.local(), valid.iter().copied());
    respell_element(found, child, valid.iter().copied())
}

/// The finding for an attribute that its element does not have.
pub fn unknown_attribute(element: &Element, attribute: &Attribute, valid: &[&str]) -> Diagnostic {
    let name = &*attribute.name.local;
    let label = match valid {
        [] => "no attributes are expected here".to_owned(),
        valid => format!("expected one of: {}", valid.join(", ")),
    };
    let found =
        Diagnostic::warning("unknown-attribute", format!("`{}` has no attribute `{name}`", element.local()))
            .at(attribute.name_span, label)
            .did_you_mean(name, valid.iter().copied());
    respell_attribute(found, element, attribute, valid.iter().copied())
}

/// The finding for a child that its parent cannot have.
pub fn unknown_element(parent: &Element, child: &Element, valid: &[&str]) -> Diagnostic {
    let label = match valid {
        [] => "no elements are expected here".to_owned(),
        valid => format!("expected one of: {}", valid.join(", ")),
    };
    let message = format!("`{}` is not known in `{}`", child.name(), parent.local());
    let found = Diagnostic::error("unknown-element", message)
        .at(child.name_span(), label)
        .did_you_mean(child.local(), valid.iter().copied());
    respell_element(found, child, valid.iter().copied())
}

/// Adds the fix that renames an attribute to the one of `valid` that was certainly meant, if the element does not have that too.
#[must_use]
pub fn respell_attribute<'a>(
    found: Diagnostic,
    element: &Element,
    attribute: &Attribute,
    valid: impl IntoIterator<Item = &'a str>,
) -> Diagnostic {
    let name = &*attribute.name.local;
    match respelt(name, valid).filter(|meant| element.attribute(meant).is_none()) {
        Some(meant) => {
            let edit = Edit { span: attribute.name_span, was: name.to_owned(), text: meant.to_owned() };
            found.fix(format!("write `{meant}`"), vec![edit])
        }
        None => found,
    }
}

/// Adds the fix that renames an element to the one of `valid` that was certainly meant.
#[must_use]
pub fn respell_element<'a>(
    found: Diagnostic,
    element: &Element,
    valid: impl IntoIterator<Item = &'a str>,
) -> Diagnostic {
    let Some(meant) = respelt(element.local(), valid) else { return found };
    let (was, prefix) = (element.name().to_string(), &*element.name().prefix);
    let text = if prefix.is_empty() { meant.to_owned() } else { format!("{prefix}:{meant}") };
    let edit = |span| Edit { span, was: was.clone(), text: text.clone() };
    let edits =
        [Some(element.name_span()), element.end_name_span()].into_iter().flatten().map(edit).collect();
    found.fix(format!("write `{meant}`"), edits)
}

/// Adds the fix that changes an attribute's value to the one of `valid` that was certainly meant.
#[must_use]
pub fn respell_value<'a>(
    found: Diagnostic,
    attribute: &Attribute,
    valid: impl IntoIterator<Item = &'a str>,
) -> Diagnostic {
    match respelt(attribute.value.trim(), valid) {
        Some(meant) => {
            let was = attribute.value.to_string();
            let edit = Edit { span: attribute.value_span, was, text: meant.to_owned() };
            found.fix(format!("write `{meant}`"), vec![edit])
        }
        None => found,
    }
}

/// The finding for an element that has a valid name in a wrong namespace.
pub fn wrong_namespace(element: &Element) -> Diagnostic {
    let message = match element.namespace() {
        "" => format!("`{}` is in no namespace", element.name()),
        other => format!("`{}` is in the namespace `{other}`", element.name()),
    };
    Diagnostic::error("wrong-namespace", message)
        .at(element.name_span(), format!("expected in the namespace `{SYNAPSE}`"))
        .help(format!("declare xmlns=\"{SYNAPSE}\" on this or an outer element"))
}

/// The finding for a value that an attribute or element cannot have.
pub fn bad_value(kind: &str, value: &str, span: Span, expected: impl Display) -> Diagnostic {
    Diagnostic::error("bad-value", format!("`{value}` is not a valid {kind}"))
        .at(span, format!("expected {expected}"))
}

/// As [`bad_value`], where it is named by the attribute or element that it is written in.
pub fn bad_setting(name: &str, value: &str, span: Span, expected: impl Display) -> Diagnostic {
    Diagnostic::error("bad-value", format!("`{name}` cannot be `{value}`"))
        .at(span, format!("expected {expected}"))
}

/// The finding for an attribute that must be there.
pub fn missing_attribute(element: &Element, name: &str) -> Diagnostic {
    let found =
        Diagnostic::error("missing-attribute", format!("`{}` needs the attribute `{name}`", element.local()))
            .at(element.start_tag(), format!("`{name}` is missing"));
    // A misspelt attribute is the likely cause.
    let written = element.attributes().iter().map(|a| &*a.name.local);
    match nearest(name, written) {
        Some(misspelt) => found.help(format!("`{misspelt}` looks like a misspelt `{name}`")),
        None => found,
    }
}

/// An attribute that must be there and not be blank; trimmed.
pub fn required(element: &Element, name: &str, diagnostics: &mut Diagnostics) -> Option<Key> {
    match element.attribute(name) {
        Some(attribute) if !attribute.value.trim().is_empty() => Some(trimmed_key(attribute)),
        Some(attribute) => {
            diagnostics.push(
                Diagnostic::error(
                    "missing-attribute",
                    format!("the attribute `{name}` of `{}` is empty", element.local()),
                )
                .at(attribute.name_span.to(attribute.value_span), "a value is missing"),
            );
            None
        }
        None => {
            diagnostics.push(missing_attribute(element, name));
            None
        }
    }
}

/// An attribute that may be absent, trimmed; blank counts as absent.
pub fn optional(element: &Element, name: &str) -> Option<Key> {
    element.attribute(name).filter(|attribute| !attribute.value.trim().is_empty()).map(trimmed_key)
}

/// The value of an optional attribute without its place, trimmed; blank counts as absent.
pub fn optional_text(element: &Element, name: &str) -> Option<String> {
    optional(element, name).map(|key| key.value)
}

/// The trimmed text of the child element `name`, if it is there and not blank.
pub fn child_text(element: &Element, name: &str) -> Option<Key> {
    element.child(name).and_then(text)
}

/// The trimmed text of an element, if it is not blank.
pub fn text(element: &Element) -> Option<Key> {
    let text = element.text();
    let value = text.trim();
    (!value.is_empty()).then(|| Key { value: value.to_owned(), span: trimmed(&text, element.text_span()) })
}

/// `true` or `false` in any case; anything else counts as false, as in the engines, with a warning.
pub fn boolean(element: &Element, name: &str, default: bool, diagnostics: &mut Diagnostics) -> bool {
    optional(element, name).map_or(default, |key| to_boolean(&key, name, diagnostics))
}

/// As [`boolean`] for a default of `true` that only `false` changes, as in the engines: anything else counts as true, with a warning.
pub fn unless_false(element: &Element, name: &str, diagnostics: &mut Diagnostics) -> bool {
    let Some(key) = optional(element, name) else { return true };
    let is_false = key.eq_ignore_ascii_case("false");
    if !is_false && !key.eq_ignore_ascii_case("true") {
        diagnostics.push(
            Diagnostic::warning("bad-value", format!("`{key}` counts as true for `{name}`"))
                .at(key.span, "expected true or false")
                .did_you_mean(&key, ["true", "false"]),
        );
    }
    !is_false
}

/// A boolean by the same rule as [`boolean`] from any text.
pub fn to_boolean(key: &Key, attribute: &str, diagnostics: &mut Diagnostics) -> bool {
    let is_true = key.eq_ignore_ascii_case("true");
    if !is_true && !key.eq_ignore_ascii_case("false") {
        diagnostics.push(
            Diagnostic::warning("bad-value", format!("`{key}` counts as false for `{attribute}`"))
                .at(key.span, "expected true or false")
                .did_you_mean(key, ["true", "false"]),
        );
    }
    is_true
}

/// Whether an attribute is `enable` (`statistics`, `trace`); `disable` and absence are off.
pub fn enabled(element: &Element, name: &str, diagnostics: &mut Diagnostics) -> bool {
    let Some(key) = optional(element, name) else { return false };
    if key.value != "enable" && key.value != "disable" {
        diagnostics.push(
            Diagnostic::warning("bad-value", format!("`{key}` counts as disable for `{name}`"))
                .at(key.span, "expected enable or disable")
                .did_you_mean(&key, ["enable", "disable"]),
        );
    }
    key.value == "enable"
}

/// One of a list of names; absent or (with an error) unknown: `None`.
pub fn choice<T: Copy>(
    element: &Element,
    name: &str,
    choices: &[(&str, T)],
    diagnostics: &mut Diagnostics,
) -> Option<T> {
    let key = optional(element, name)?;
    let found = choices.iter().find(|(written, _)| *written == key.value);
    if found.is_none() {
        let names: Vec<&str> = choices.iter().map(|(written, _)| *written).collect();
        let found = bad_value(name, &key, key.span, format!("one of: {}", names.join(", ")))
            .did_you_mean(&key, names.iter().copied());
        diagnostics.push(match element.attribute(name) {
            Some(attribute) => respell_value(found, attribute, names),
            None => found,
        });
    }
    found.map(|(_, value)| *value)
}

/// A number; `None` with an error when it is not one.
pub fn number<T: FromStr>(key: &Key, kind: &str, expected: &str, diagnostics: &mut Diagnostics) -> Option<T> {
    let value = key.parse().ok();
    if value.is_none() {
        diagnostics.push(bad_setting(kind, key, key.span, expected));
    }
    value
}

/// `<enableRM>`, which present engines ignore: messages are sent without WS-ReliableMessaging.
pub fn reliable_messaging(element: &Element, diagnostics: &mut Diagnostics) {
    if let Some(child) = element.child("enableRM") {
        let message = "`enableRM` has no effect: WS-ReliableMessaging is not executable here";
        let found = Diagnostic::warning("unsupported-element", message);
        diagnostics.push(
            found
                .at(child.name_span(), "messages are sent once, without acknowledgement")
                .help("use a message store with a forwarding processor"),
        );
    }
}

/// The names of a list that is separated by spaces or commas.
pub fn names(text: &str) -> Vec<String> {
    text.split([' ', ',', '\t', '\n', '\r']).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The names of a list that is separated by commas: a name may have blanks.
pub fn names_by_comma(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn trimmed_key(attribute: &Attribute) -> Key {
    let span = trimmed(&attribute.value, attribute.value_span);
    Key { value: attribute.value.trim().to_owned(), span }
}

/// The span of a text without the white space around it (exact where no references are in it).
fn trimmed(text: &str, span: Span) -> Span {
    let blank = text.len() - text.trim_start().len();
    span.part(blank, ((span.end - span.start) as usize).saturating_sub(text.len() - text.trim().len()))
}
