//! XML Schema and JSON Schema behind one interface: load once, validate, report every violation with its place.

mod json;
mod violation;
mod xsd;

pub use json::{Draft, JsonSchema};
pub use violation::Violation;
pub use xsd::XmlSchema;

/// A schema document: where it is from, and its bytes.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its location, or its key; what it refers to is relative to it.
    pub name: String,
    /// The document.
    pub bytes: Vec<u8>,
}

/// Finds the documents that a schema refers to.
pub trait Resolver {
    /// The document at `location` as written, in a document called `base`; the error says why there is none.
    fn resolve(&self, location: &str, base: &str) -> Result<Source, String>;
}

/// Reads local files, relative to the referring document; never the network.
#[derive(Clone, Debug, Default)]
pub struct Files;

impl Resolver for Files {
    fn resolve(&self, location: &str, base: &str) -> Result<Source, String> {
        let files = xml::FileResolver::default();
        let (bytes, name) = xml::Resolver::resolve(&files, location, None, Some(base))?;
        Ok(Source { name: tidy(&name), bytes })
    }
}

/// The path without `.` and `x/..`: one document has one name.
fn tidy(path: &str) -> String {
    use std::path::{Component, Path, PathBuf};
    let mut tidy = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if tidy.file_name().is_some() => {
                tidy.pop();
            }
            part => tidy.push(part),
        }
    }
    tidy.to_string_lossy().into_owned()
}

/// Knows no other documents.
#[derive(Clone, Debug, Default)]
pub struct Nothing;

impl Resolver for Nothing {
    fn resolve(&self, _: &str, _: &str) -> Result<Source, String> {
        Err("there are no other documents here".to_owned())
    }
}
