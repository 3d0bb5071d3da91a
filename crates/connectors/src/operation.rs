//! The definition of an operation.

use config::Element;
use flow::{Attribute, Children, Compiled, Compiler, Definition, Family, Page, Values};

/// The attributes of every operation.
const ATTRIBUTES: &[Attribute] = &[Attribute::optional(
    "configKey",
    Values::Key,
    "the local entry that describes the connection; absent: that of the `init` which ran before",
)];

/// The pages of connectors are written by hand (`docs/connectors`).
const PAGE: Page =
    Page { family: Family::Extension, semantics: "", inside: &[], needs: &[], refused: &[], faults: &[] };

/// An operation with its parameters, including those of [`crate::response`] where it has a result.
pub(crate) const fn operation(
    name: &'static str,
    summary: &'static str,
    parameters: &'static [&'static str],
    compile: fn(&Element, &mut Compiler<'_>) -> Compiled,
) -> Definition {
    Definition {
        name,
        summary,
        attributes: ATTRIBUTES,
        children: Children::Elements(parameters),
        page: PAGE,
        compile,
    }
}
