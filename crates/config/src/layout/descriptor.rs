//! Descriptors of archives and projects: `artifacts.xml`, `artifact.xml`, `registry-info.xml`.

use crate::element::Element;
use diagnostics::Span;
use std::path::Path;

/// `<artifact>`: one thing that is deployed.
pub(super) struct Described {
    pub name: String,
    pub version: String,
    /// `synapse/api`, `registry/resource`, …
    pub kind: String,
    /// Its file, relative to the descriptor.
    pub file: Option<String>,
    /// Its resources of the registry (descriptors of projects).
    pub resources: Vec<Resource>,
    pub dependencies: Vec<Dependency>,
    pub span: Span,
}

/// `<dependency>`: an artifact of an archive.
pub(super) struct Dependency {
    pub name: String,
    pub version: String,
    pub role: Option<String>,
    /// Whether it is packed in the archive.
    pub included: bool,
    pub span: Span,
}

/// `<item>` and `<collection>`: files with their place in the registry.
pub(super) struct Resource {
    /// File or directory, relative to the descriptor.
    pub source: String,
    pub is_collection: bool,
    /// `/_system/config/…`.
    pub path: String,
    pub properties: Vec<(String, String)>,
    pub span: Span,
}

/// The artifacts that a descriptor lists, also those within others.
pub(super) fn artifacts(root: &Element) -> Vec<Described> {
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(element) = open.pop() {
        if element.local() == "artifact" {
            found.push(artifact(element));
        }
        let inside = element.elements().filter(|child| matches!(child.local(), "artifact" | "subArtifacts"));
        open.extend(inside.rev());
    }
    found
}

fn artifact(element: &Element) -> Described {
    let dependencies = children(element, "dependency").map(|dependency| Dependency {
        name: attribute(dependency, "artifact"),
        version: attribute(dependency, "version"),
        role: dependency
            .attr("serverRole")
            .map(|role| role.trim().to_owned())
            .filter(|role| !role.is_empty()),
        included: dependency
            .attr("include")
            .is_none_or(|include| !include.trim().eq_ignore_ascii_case("false")),
        span: dependency.start_tag(),
    });
    Described {
        name: attribute(element, "name"),
        version: attribute(element, "version"),
        kind: attribute(element, "type"),
        file: child_text(element, "file"),
        resources: resources(element),
        dependencies: dependencies.collect(),
        span: element.start_tag(),
    }
}

/// The items and collections directly in an element.
pub(super) fn resources(element: &Element) -> Vec<Resource> {
    let listed = element.elements().filter_map(|resource| {
        let source = match resource.local() {
            "item" => child_text(resource, "file")?,
            "collection" => child_text(resource, "directory")?,
            _ => return None,
        };
        let properties = children(resource, "properties").flat_map(|list| children(list, "property"));
        Some(Resource {
            source: source.trim_matches('/').to_owned(),
            is_collection: resource.local() == "collection",
            path: child_text(resource, "path")?,
            properties: properties
                .map(|property| (attribute(property, "key"), attribute(property, "value")))
                .collect(),
            span: resource.start_tag(),
        })
    });
    listed.collect()
}

impl Resource {
    /// Where the file or directory may lie, relative to the descriptor: beside it in projects of Integration Studio; in those of VS Code
    /// below `gov` and `conf` of `resources/registry`, and what is in the collection `mi-resources` directly in `resources`.
    pub fn places(&self) -> Vec<String> {
        const ROOTS: [(&str, &[&str]); 3] = [
            ("/_system/governance/mi-resources", &[""]),
            ("/_system/governance", &["gov", "registry/gov"]),
            ("/_system/config", &["conf", "registry/conf"]),
        ];
        let mut places = vec![self.source.clone()];
        for (root, folders) in ROOTS {
            let below = self.path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'));
            let Some(collection) = below.map(|rest| rest.trim_matches('/')) else { continue };
            // The path of a collection is its own; some tools write that of an item, too.
            let is_whole = self.is_collection || collection.rsplit('/').next() == Some(self.source.as_str());
            let name = if is_whole { "" } else { &self.source };
            for folder in folders {
                let parts = [folder, collection, name].into_iter().filter(|part| !part.is_empty());
                let place = parts.collect::<Vec<_>>().join("/");
                if !place.is_empty() && !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        places
    }

    /// The keys of an item: the path of its collection and its name; some tools write the item's path.
    pub fn keys(&self) -> Vec<String> {
        let path = self.path.trim_end_matches('/');
        let name = Path::new(&self.source).file_name().map(|name| name.to_string_lossy().into_owned());
        match name {
            Some(name) if path.rsplit('/').next() == Some(&*name) => {
                vec![format!("{path}/{name}"), path.to_owned()]
            }
            Some(name) => vec![format!("{path}/{name}")],
            None => Vec::new(),
        }
    }
}

fn children<'a>(element: &'a Element, local: &'a str) -> impl Iterator<Item = &'a Element> {
    element.elements().filter(move |child| child.local() == local)
}

fn child_text(element: &Element, local: &str) -> Option<String> {
    let text = children(element, local).next()?.text();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn attribute(element: &Element, name: &str) -> String {
    element.attr(name).unwrap_or_default().trim().to_owned()
}
