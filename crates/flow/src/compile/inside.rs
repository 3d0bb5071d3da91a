//! What stands inside of a mediator, against what its page says: names, how often, namespaces, text, values. What is not said there is
//! ignored when messages come, so each finding is a warning.

use crate::compile::Compiler;
use crate::compile::definition::{Children, Definition};
use crate::compile::mediator::own_attributes;
use crate::compile::page::Inside;
use crate::compile::values::{self, Odd};
use config::read::{respell_element, stray_text};
use config::{Element, SYNAPSE};
use diagnostics::Diagnostic;

/// An element with the elements that may stand in it.
struct Level<'a> {
    element: &'a Element,
    /// What the page says of everything inside of the mediator.
    inside: &'static [Inside],
    /// The way to `element` from the mediator, with a `/` behind it.
    way: String,
    /// Whether mediators may stand here: compiling them says what is none.
    mediators: bool,
    /// Whether text may stand here.
    text: bool,
    /// Whether names that the page does not list are reported here.
    closed: bool,
}

impl Compiler<'_> {
    /// Reports what has no effect inside of a mediator; answers the values that attributes there do not take.
    pub(super) fn check_inside(&mut self, element: &Element, definition: &Definition) -> Vec<Odd> {
        let (mediators, text) = match definition.children {
            Children::Mediators => (true, false),
            Children::None => (false, false),
            Children::Elements(names) => {
                (names.contains(&"#mediators"), names.iter().any(|name| matches!(*name, "*" | "text()")))
            }
        };
        let level = Level {
            element,
            inside: definition.page.inside,
            way: String::new(),
            mediators,
            text,
            closed: false,
        };
        let mut odd = Vec::new();
        self.check_level(&level, &mut odd);
        odd
    }

    fn check_level(&mut self, level: &Level<'_>, odd: &mut Vec<Odd>) {
        let element = level.element;
        let mut seen: Vec<&str> = Vec::new();
        // Beside `then`, nothing but `else` counts.
        let parts = element.elements().any(|child| level.named(child).is_some());
        if !level.text {
            stray_text(element, self.diagnostics);
        }
        for child in element.elements() {
            if child.is("description") {
                continue;
            }
            match level.named(child) {
                Some(inside) => {
                    // Deeper in, what belongs to a part of another language may be in its namespace.
                    if level.way.is_empty() && child.namespace() != SYNAPSE {
                        let message = match child.namespace() {
                            "" => format!("`{}` is in no namespace and is ignored", child.name()),
                            other => {
                                format!("`{}` is in the namespace `{other}` and is ignored", child.name())
                            }
                        };
                        self.diagnostics.push(
                            Diagnostic::warning("wrong-namespace", message)
                                .at(child.name_span(), format!("expected in the namespace `{SYNAPSE}`")),
                        );
                        continue;
                    }
                    let once = matches!(inside.occurrence(), "" | "?");
                    if once && seen.contains(&inside.name()) {
                        let message =
                            format!("a second `{}` in `{}` is ignored", child.local(), element.local());
                        self.diagnostics.push(
                            Diagnostic::warning("duplicate-element", message)
                                .at(child.name_span(), "only the first one counts"),
                        );
                    }
                    seen.push(inside.name());
                    self.check_attributes(child, inside, odd);
                    let below = Level {
                        element: child,
                        inside: level.inside,
                        way: format!("{}/", inside.way()),
                        mediators: inside.content == "mediator*",
                        text: inside.holds_text(),
                        closed: inside.content.is_empty(),
                    };
                    self.check_level(&below, odd);
                }
                // What is another language is its reader's.
                None if !matches!(child.namespace(), SYNAPSE | "") => {}
                None if level.mediators && parts => self.ignored(level, child),
                None if level.closed && level.lists_any() => self.ignored(level, child),
                None => {}
            }
        }
    }

    /// Names of attributes that have no effect, and values. A part for which the page lists none, or that has a page of its own, is read by
    /// something else.
    fn check_attributes(&mut self, part: &Element, inside: &Inside, odd: &mut Vec<Odd>) {
        if inside.attributes.is_empty() || inside.content == "…" {
            return;
        }
        self.diagnostics.extend(values::of_both(part, inside.attributes));
        for attribute in own_attributes(part) {
            match inside.attributes.iter().find(|listed| listed.name == &*attribute.name.local) {
                Some(listed) => odd.extend(values::of_part(attribute, listed)),
                None => self.unknown_attribute(part, attribute, inside.attributes),
            }
        }
    }

    fn ignored(&mut self, level: &Level<'_>, child: &Element) {
        let names: Vec<&str> = level.listed().map(Inside::name).collect();
        let message = format!("`{}` in `{}` is ignored", child.local(), level.element.local());
        let expected = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let found = Diagnostic::warning("ignored-element", message)
            .at(child.name_span(), format!("expected {expected}"))
            .did_you_mean(child.local(), names.iter().copied());
        self.diagnostics.push(respell_element(found, child, names));
    }
}

impl Level<'_> {
    /// What the page says of the elements directly in this one.
    fn listed(&self) -> impl Iterator<Item = &'static Inside> {
        let ours = |inside: &&Inside| {
            inside
                .way()
                .strip_prefix(self.way.as_str())
                .is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
        };
        self.inside.iter().filter(ours)
    }

    fn lists_any(&self) -> bool {
        self.listed().next().is_some()
    }

    fn named(&self, child: &Element) -> Option<&'static Inside> {
        self.listed().find(|inside| inside.name() == child.local())
    }
}
