//! The switches of the mapping under the names that WSO2 gives them in its properties and in `jsontransform`.

use super::Mapping;
use crate::regex::{Pattern, Search};

/// What a switch sets.
pub enum Switch {
    /// True or false.
    Flag(fn(&mut Mapping) -> &mut bool),
    /// Anything else, from the text of its value; the error says what that is not.
    Text(fn(&mut Mapping, &str) -> Result<(), String>),
}

use Switch::{Flag, Text};

/// The switches by name, in the order in which several are to be set: a replacement needs its expression first.
pub const SWITCHES: [(&str, Switch); 14] = [
    ("synapse.commons.json.preserve.namespace", Flag(|mapping| &mut mapping.preserve_namespace)),
    ("synapse.commons.json.output.enableNSDeclarations", Flag(|mapping| &mut mapping.namespace_declarations)),
    (
        "synapse.commons.json.output.namespaceSepChar",
        Text(|mapping, text| {
            let mut characters = text.chars();
            mapping.namespace_separator = match (characters.next(), characters.next()) {
                (Some(only), None) => only,
                _ => return Err("is not one character".to_owned()),
            };
            Ok(())
        }),
    ),
    ("synapse.commons.json.output.autoPrimitive", Flag(|mapping| &mut mapping.auto_primitive)),
    (
        "synapse.commons.json.output.disableAutoPrimitive.regex",
        Text(|mapping, text| {
            mapping.string_pattern = Some(Pattern::compile(text).map_err(no_regex)?);
            Ok(())
        }),
    ),
    (
        "synapse.commons.json.json.output.disableAutoPrimitive.customReplaceRegex",
        Text(|mapping, text| {
            let replacement =
                mapping.string_mark.take().map(|(_, replacement)| replacement).unwrap_or_default();
            mapping.string_mark = Some((Search::compile(text).map_err(no_regex)?, replacement));
            Ok(())
        }),
    ),
    (
        "synapse.commons.json.json.output.disableAutoPrimitive.customReplaceSequence",
        Text(|mapping, text| {
            if let Some((_, replacement)) = &mut mapping.string_mark {
                text.clone_into(replacement);
            }
            Ok(())
        }),
    ),
    ("synapse.commons.json.output.jsonoutAutoArray", Flag(|mapping| &mut mapping.auto_array)),
    ("synapse.commons.json.output.jsonoutMultiplePI", Flag(|mapping| &mut mapping.reads_multiple)),
    ("synapse.commons.json.output.xmloutMultiplePI", Flag(|mapping| &mut mapping.writes_multiple)),
    ("synapse.json.to.xml.processing.instruction.enabled", Flag(|mapping| &mut mapping.writes_multiple)),
    ("synapse.commons.enableXmlNilReadWrite", Flag(|mapping| &mut mapping.nil)),
    ("synapse.commons.enableXmlNullForEmptyElement", Flag(|mapping| &mut mapping.empty_is_null)),
    ("synapse.commons.json.buildValidNCNames", Flag(|mapping| &mut mapping.valid_names)),
];

fn no_regex(why: String) -> String {
    format!("is not a regular expression: {why}")
}
