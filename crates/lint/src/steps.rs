//! Which elements are steps, which lists they contain, and what their attributes hold: by the definitions of the mediators.

use config::{Attribute, Element};
use flow::{Children, Definition, Registry, Values};
use std::collections::HashMap;

/// See the module.
pub struct Language {
    definitions: HashMap<&'static str, &'static Definition>,
}

impl Language {
    pub(crate) fn new(registry: &Registry) -> Language {
        Language { definitions: registry.definitions.iter().map(|d| (d.name, *d)).collect() }
    }

    /// The definition of a step.
    pub fn definition(&self, step: &Element) -> Option<&'static Definition> {
        self.definitions.get(step.local()).copied()
    }

    /// The steps of a list, in order. An element of a list that is not a known mediator is a step too.
    pub fn steps<'e>(&self, list: &'e Element) -> Vec<&'e Element> {
        // If the mediator itself is the list, its other parts stand beside the steps.
        let parts: &[&str] = match self.definition(list).map(|definition| definition.children) {
            Some(Children::Elements(names)) if names.contains(&"#mediators") => names,
            _ => &[],
        };
        list.elements()
            .filter(|child| !child.is("description") && child.namespace() == config::SYNAPSE)
            .filter(|child| !parts.contains(&child.local()))
            .collect()
    }

    /// The lists within a step.
    pub fn lists<'e>(&self, step: &'e Element) -> Vec<&'e Element> {
        let Some(definition) = self.definition(step) else { return Vec::new() };
        let inside = definition.page.inside;
        let mut lists = Vec::new();
        for child in inside.iter().filter(|c| c.content == "mediator*") {
            descend(step, child.way(), &mut lists);
        }
        let itself = match definition.children {
            Children::Mediators => true,
            Children::Elements(names) => names.contains(&"#mediators") && lists.is_empty(),
            Children::None => false,
        };
        if itself {
            lists.push(step);
        }
        lists
    }

    /// The attributes of a step, and of its child elements without mediators, that are expressions.
    pub fn expressions<'e>(&self, step: &'e Element) -> Vec<(&'e Element, &'e Attribute)> {
        self.attributes(step, |values| matches!(values, Values::Expression))
    }

    /// As [`Language::expressions`], for attributes that are keys, which may be expressions in braces.
    pub fn keys<'e>(&self, step: &'e Element) -> Vec<(&'e Element, &'e Attribute)> {
        self.attributes(step, |values| matches!(values, Values::Key))
    }

    fn attributes<'e>(
        &self,
        step: &'e Element,
        wanted: impl Fn(&Values) -> bool,
    ) -> Vec<(&'e Element, &'e Attribute)> {
        let Some(definition) = self.definition(step) else { return Vec::new() };
        let mut found = Vec::new();
        add(step, definition.attributes, &wanted, &mut found);
        for child in definition.page.inside {
            let mut elements = Vec::new();
            descend(step, child.way(), &mut elements);
            for element in elements {
                add(element, child.attributes, &wanted, &mut found);
            }
        }
        found
    }
}

fn add<'e>(
    element: &'e Element,
    attributes: &[flow::Attribute],
    wanted: &impl Fn(&Values) -> bool,
    found: &mut Vec<(&'e Element, &'e Attribute)>,
) {
    let attributes = attributes.iter().filter(|attribute| wanted(&attribute.values));
    found.extend(attributes.filter_map(|attribute| Some((element, element.attribute(attribute.name)?))));
}

/// The elements at the end of a way (`target/sequence`) from `element`.
fn descend<'e>(element: &'e Element, way: &str, found: &mut Vec<&'e Element>) {
    let (first, rest) = way.split_once('/').map_or((way, None), |(first, rest)| (first, Some(rest)));
    for child in element.elements().filter(|child| child.local() == first) {
        match rest {
            Some(rest) => descend(child, rest, found),
            None => found.push(child),
        }
    }
}
