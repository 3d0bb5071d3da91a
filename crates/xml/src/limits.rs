//! Bounds on what a document may ask for.

/// Bounds on a document. Every one can be set; exceeding one is an error of kind
/// [`crate::ErrorKind::Limit`] that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nesting depth of elements. Default 512.
    pub depth: usize,
    /// Attributes and namespace declarations of one element. Default 256.
    pub attributes: usize,
    /// Prefixes in scope at an element. Default 256. A copy of an element takes all of them along.
    pub namespaces: usize,
    /// Length of a name as written, in bytes. Default 1,024.
    pub name_length: usize,
    /// Length of one text, attribute value, comment or processing instruction, in bytes. Default 256 MiB.
    pub text_length: usize,
    /// Size of the whole document in bytes of UTF-8. Default 1 GiB (never more than 4 GiB - 1).
    pub total: usize,
    /// Nodes of one document, attributes included. Default 64 Mi.
    pub nodes: usize,
    /// Bytes that entity references may add in all. Default 8 MiB.
    pub entity_expansion: usize,
    /// Entities nested in one another. Default 32.
    pub entity_depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            depth: 512,
            attributes: 256,
            namespaces: 256,
            name_length: 1024,
            text_length: 256 << 20,
            total: 1 << 30,
            nodes: 64 << 20,
            entity_expansion: 8 << 20,
            entity_depth: 32,
        }
    }
}

impl Limits {
    /// Wide limits for trusted documents: configuration, stylesheets, files named on the command line.
    pub fn trusted() -> Limits {
        Limits {
            depth: 10_000,
            attributes: 65_536,
            namespaces: 65_536,
            name_length: 65_536,
            text_length: u32::MAX as usize,
            total: u32::MAX as usize,
            nodes: u32::MAX as usize,
            entity_expansion: 64 << 20,
            entity_depth: 32,
        }
    }
}
