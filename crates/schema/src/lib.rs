//! XML Schema and JSON Schema behind one interface: load once, validate, report every violation with its place. OpenAPI definitions are
//! checked by JSON Schemas.

mod json;
pub mod openapi;
mod violation;
mod xsd;

pub use json::{Draft, JsonSchema};
pub use violation::Violation;
pub use xsd::XmlSchema;

/// A schema document: its location and bytes.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its location or key; its references are relative to it.
    pub name: String,
    /// The document.
    pub bytes: Vec<u8>,
}

/// Finds the documents that a schema refers to.
pub trait Resolver {
    /// The document at `location` as written, in a document called `base`; the error gives the reason.
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

/// The path without `.` and `x/..`, so that a document has one name.
pub(crate) fn tidy(path: &str) -> String {
    use std::path::{Component, Path, PathBuf};
    if path.contains("://") {
        return path.to_owned();
    }
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

/// Resolves no other documents.
#[derive(Clone, Debug, Default)]
pub struct Nothing;

impl Resolver for Nothing {
    fn resolve(&self, _: &str, _: &str) -> Result<Source, String> {
        Err("there are no other documents here".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_document_has_one_name() {
        let cases = [
            ("a.xsd", "a.xsd"),
            ("./a.xsd", "a.xsd"),
            ("x/../a.xsd", "a.xsd"),
            ("../a.xsd", "../a.xsd"),
            ("/x/y/../../a.xsd", "/a.xsd"),
            ("http://x//y/../a.xsd", "http://x//y/../a.xsd"),
            ("conf:schemas/a.xsd", "conf:schemas/a.xsd"),
        ];
        for (path, expected) in cases {
            assert_eq!(tidy(path), expected, "{path}");
        }
    }

    /// Two documents that include one another, the first one named in a roundabout way.
    #[test]
    fn documents_in_a_circle_are_read_once() {
        let dir = std::env::temp_dir().join(format!("busbar-schema-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("sub")).expect("the temporary directory can be written");
        let schema = |other: &str, name: &str| {
            format!(
                "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:include schemaLocation='{other}'/>\
                 <xs:element name='{name}' type='xs:string'/></xs:schema>"
            )
        };
        for (file, other, name) in [("a.xsd", "b.xsd", "a"), ("b.xsd", "a.xsd", "b")] {
            std::fs::write(dir.join(file), schema(other, name))
                .expect("the temporary directory can be written");
        }
        let source = Source {
            name: format!("{}/sub/../a.xsd", dir.display()),
            bytes: schema("b.xsd", "a").into_bytes(),
        };
        let loaded = XmlSchema::load(vec![source], &Files);
        std::fs::remove_dir_all(&dir).expect("it was made here");
        assert!(loaded.is_ok(), "{:?}", loaded.err());
    }
}
