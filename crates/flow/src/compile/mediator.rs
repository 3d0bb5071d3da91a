//! One mediator: its attributes and children against its definition, then what the definition makes of it.

use super::definition::{Attribute, Children};
use super::values::{self, quoted};
use super::{Compiler, Parts, page, unsupported};
use crate::runtime::mediator::Mediator;
use crate::runtime::plan::Planned;
use config::read::{respell_attribute, respell_element, wrong_namespace};
use config::{Element, SYNAPSE};
use diagnostics::{Diagnostic, Severity};

/// Attributes that every mediator may have.
pub const COMMON_ATTRIBUTES: &[&str] =
    &["description", "trace", "statistics", "traceFilter", "statistics-id", "hashCode"];

/// The attributes that an element of the language has beside those: attributes in a namespace are another's.
pub(super) fn own_attributes(element: &Element) -> impl Iterator<Item = &config::Attribute> {
    let is_own = |attribute: &&config::Attribute| {
        attribute.name.namespace.is_empty() && !COMMON_ATTRIBUTES.contains(&&*attribute.name.local)
    };
    element.attributes().iter().filter(is_own)
}

impl Compiler<'_> {
    /// Compiles one mediator; `beside`: the parts of the mediator that it stands in, one of which may be meant. `None` after a recorded error.
    pub(super) fn mediator(&mut self, element: &Element, beside: &[page::Inside]) -> Option<Planned> {
        let name = element.local();
        let Some(definition) = self.registry.definition(name) else {
            let unsupported = unsupported::mediator(element, self);
            if unsupported.is_none() {
                self.unknown_mediator(element, beside);
            }
            return unsupported;
        };
        // WSO2 looks for mediators by namespace and name, but for operations by name. One in no namespace is certainly meant.
        if element.namespace() != SYNAPSE && !name.contains('.') {
            let found = wrong_namespace(element);
            if !element.namespace().is_empty() {
                self.diagnostics.push(found);
                return None;
            }
            self.diagnostics.push(Diagnostic { severity: Severity::Warning, ..found });
        }
        let mark = self.diagnostics.len();
        for attribute in own_attributes(element) {
            let local = &*attribute.name.local;
            match definition.attributes.iter().find(|declared| declared.name == local) {
                None => self.unknown_attribute(element, attribute, definition.attributes),
                Some(declared) => self.diagnostics.extend(values::of_mediator(attribute, declared.values)),
            }
        }
        self.diagnostics.extend(values::of_both(element, definition.attributes));
        for declared in definition.attributes.iter().filter(|declared| declared.required) {
            if element.attribute(declared.name).is_none() {
                self.diagnostics.push(
                    Diagnostic::error(
                        "missing-attribute",
                        format!("`{name}` needs the attribute `{}`", declared.name),
                    )
                    .at(element.start_tag(), format!("{}: {}", declared.name, declared.meaning)),
                );
            }
        }
        self.check_children(element, definition.children);
        let odd = self.check_inside(element, definition);
        if self.diagnostics.has_errors_since(mark) {
            values::say_of_parts(odd, false, mark, self.diagnostics);
            return None;
        }
        self.parts = Parts { of: Some(element.span()), inside: definition.page.inside };
        let compiled: Option<Box<dyn Mediator>> = (definition.compile)(element, self);
        values::say_of_parts(odd, compiled.is_some(), mark, self.diagnostics);
        if compiled.is_none() && !self.diagnostics.has_errors_since(mark) {
            // The mediator gave neither a step nor an error: it must not be left out without one.
            let message = format!("`{}` is incomplete", definition.name);
            self.diagnostics.push(Diagnostic::error("incomplete-mediator", message).at(
                element.start_tag(),
                format!("see docs/mediators/{}.md for what it needs", definition.name),
            ));
        }
        let mediator = compiled?;
        Some(Planned::new(mediator, definition.name, element.start_tag()))
    }

    /// Reports an attribute that an element has not, with the names that may be meant.
    pub(super) fn unknown_attribute(
        &mut self,
        element: &Element,
        attribute: &config::Attribute,
        declared: &[Attribute],
    ) {
        let names = declared.iter().map(|declared| declared.name);
        let names = names.chain(COMMON_ATTRIBUTES.iter().copied());
        let local = &*attribute.name.local;
        let message = format!("`{}` has no attribute `{local}`", element.local());
        let mut found = Diagnostic::warning("unknown-attribute", message)
            .at(attribute.name_span, "this has no effect")
            .did_you_mean(local, names.clone());
        if let Some(part) = self.part_that_has(element, local) {
            found = found.help(part);
        }
        self.diagnostics.push(respell_attribute(found, element, attribute, names));
    }

    /// Where what is written as an attribute of a mediator belongs: it is one of its parts, or an attribute of one.
    fn part_that_has(&self, element: &Element, name: &str) -> Option<String> {
        let definition = self.registry.definitions.iter().find(|definition| element.is(definition.name))?;
        let mut parts = definition.page.inside.iter().filter(|part| !part.way().contains('/'));
        let has = |part: &page::Inside| part.attributes.iter().any(|attribute| attribute.name == name);
        match parts.clone().any(|part| part.way() == name) {
            true => Some(format!("`{name}` is an element inside of `{}`", definition.name)),
            false => parts
                .find(|part| has(part))
                .map(|part| format!("`{name}` is an attribute of `{}`, an element inside", part.way())),
        }
    }

    /// The elements that have a part of this name, in words.
    fn owners_of_part(&self, name: &str) -> Option<String> {
        if matches!(name, "inSequence" | "outSequence" | "faultSequence") {
            return Some("the `target` of a proxy service, or a `resource` of an API".to_owned());
        }
        let has = |part: &page::Inside| part.way() == name;
        let owners = self.registry.definitions.iter().filter(|owner| owner.page.inside.iter().any(has));
        let owners: Vec<&str> = owners.map(|owner| owner.name).collect();
        (1..=3).contains(&owners.len()).then(|| quoted(&owners))
    }

    /// Reports a name that is none of a mediator, with the names that may be meant.
    fn unknown_mediator(&mut self, element: &Element, beside: &[page::Inside]) {
        let name = element.local();
        let diagnostic = match name.contains('.') {
            true => Diagnostic::error(
                "unsupported-mediator",
                format!("connector operation `{name}` is not executable here"),
            )
            .at(element.name_span(), "connectors are Java libraries"),
            false => {
                let definitions = self.registry.definitions.iter().map(|definition| definition.name);
                let parts = beside.iter().filter(|part| !part.way().contains('/')).map(page::Inside::name);
                let names = parts.chain(definitions);
                let names = names.chain(self.registry.unsupported.iter().map(|(name, _)| *name));
                let label = match element.namespace() {
                    "" => "not a mediator: it is in no namespace",
                    _ => "not a mediator",
                };
                let found = Diagnostic::error("unknown-mediator", format!("there is no mediator `{name}`"))
                    .at(element.name_span(), label);
                match self.owners_of_part(name) {
                    Some(owners) => found.help(format!("`{name}` belongs into {owners}")),
                    None => respell_element(found.did_you_mean(name, names.clone()), element, names),
                }
            }
        };
        self.diagnostics.push(diagnostic);
    }

    /// Warns of children that the mediator does not read.
    fn check_children(&mut self, element: &Element, children: Children) {
        let allowed: &[&str] = match children {
            Children::Mediators => return,
            Children::None => &[],
            Children::Elements(names) => names,
        };
        if allowed.contains(&"*") {
            return;
        }
        let mediators = allowed.contains(&"#mediators");
        for child in element.elements() {
            if child.is("description") {
                continue;
            }
            if allowed.contains(&child.local()) || mediators {
                continue; // compiling mediators reports what is none
            }
            let expected = if allowed.is_empty() {
                "ignored: no content is allowed here".to_owned()
            } else {
                format!("ignored: expected {}", quoted(allowed))
            };
            let message = format!("`{}` has no effect inside of `{}`", child.local(), element.local());
            let found = Diagnostic::warning("ignored-element", message)
                .at(child.name_span(), expected)
                .did_you_mean(child.local(), allowed.iter().copied());
            self.diagnostics.push(respell_element(found, child, allowed.iter().copied()));
        }
    }
}
