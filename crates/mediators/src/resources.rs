//! `<resource location="…" key="…"/>`: which entry a reference in a stylesheet or schema means.

use config::Element;
use flow::{Attribute, Compiler, Inside, Values};

/// Its row in the page of a mediator.
pub(crate) const RESOURCE: Inside = Inside::new(
    "resource*",
    "the entry for a reference in it",
    &[
        Attribute::required(
            "location",
            Values::Text,
            "the reference, as it is written there (`href`, `schemaLocation`)",
        ),
        Attribute::required("key", Values::Text, "the entry or registry resource"),
    ],
);

/// Locations with the keys that stand for them.
#[derive(Default)]
pub(crate) struct Resources(Vec<(String, String)>);

impl Resources {
    /// Reads the `resource` children; those that are wrong are recorded and left out.
    pub(crate) fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Resources {
        let mut keys = Vec::new();
        for resource in element.children_named("resource") {
            match (resource.attr("location"), resource.attr("key")) {
                (Some(location), Some(key)) => keys.push((location.to_owned(), key.to_owned())),
                _ => compiler.error(
                    "missing-attribute",
                    "`resource` needs `location` and `key`",
                    resource.start_tag(),
                    "which reference means which entry",
                ),
            }
        }
        Resources(keys)
    }

    /// The key that stands for a location.
    pub(crate) fn key(&self, location: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == location).map(|(_, key)| key.as_str())
    }
}
