//! Resources of the registry that projects and archives bring along, by their paths in the registry.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The content of a mounted resource.
#[derive(Clone, Debug)]
pub(crate) enum Mount {
    /// A file of a project.
    File(PathBuf),
    /// The content of a file in an archive.
    Bytes(Arc<[u8]>),
}

/// Resources by their path below the root of a registry: `config/a/b.xslt`.
#[derive(Clone, Default, Debug)]
pub(crate) struct Mounts(HashMap<String, Mount>);

impl Mounts {
    /// Adds a resource under a key (`conf:…`, `/_system/config/…`); returns the one that it replaces.
    pub fn add(&mut self, key: &str, mount: Mount) -> Option<Mount> {
        self.0.insert(path(key), mount)
    }

    /// Adds the properties of the resource or collection at `key`.
    pub fn add_properties(&mut self, key: &str, is_collection: bool, properties: &[(String, String)]) {
        if !properties.is_empty() {
            let text = crate::properties::written(&properties.iter().cloned().collect());
            let ending = if is_collection { ".collections.properties" } else { ".properties" };
            let key = format!("{}{ending}", key.trim_end_matches('/'));
            self.add(&key, Mount::Bytes(text.into_bytes().into()));
        }
    }

    /// The resource of a key.
    pub fn get(&self, key: &str) -> Option<&Mount> {
        self.0.get(&path(key))
    }

    /// Adds all resources of others, which take precedence.
    pub fn extend(&mut self, others: &Mounts) {
        self.0.extend(others.0.iter().map(|(path, mount)| (path.clone(), mount.clone())));
    }

    /// The paths of resources that `others` have with another content.
    pub fn replaced_by(&self, others: &Mounts) -> Vec<String> {
        let differs = |(path, mount): &(&String, &Mount)| {
            others.0.get(*path).is_some_and(|other| !is_same(mount, other))
        };
        let mut paths: Vec<String> = self.0.iter().filter(differs).map(|(path, _)| path.clone()).collect();
        paths.sort();
        paths
    }

    /// Their paths, in no order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

fn is_same(first: &Mount, second: &Mount) -> bool {
    let bytes = |mount: &Mount| match mount {
        Mount::File(path) => std::fs::read(path).ok().map(Into::into),
        Mount::Bytes(bytes) => Some(Arc::clone(bytes)),
    };
    let first: Option<Arc<[u8]>> = bytes(first);
    first.is_some() && first == bytes(second)
}

/// The beginnings of keys, and the directories of a registry that they stand for.
const ROOTS: [(&str, &str); 8] = [
    ("conf:", "config/"),
    ("gov:", "governance/"),
    ("local:", "local/"),
    ("resources:", "governance/mi-resources/"),
    ("/_system/config/", "config/"),
    ("/_system/governance/", "governance/"),
    ("/_system/local/", "local/"),
    ("", "governance/"),
];

/// The key of a path below the root of a registry, by WSO2's prefixes: the longest directory decides.
pub(crate) fn key(path: &str) -> String {
    let prefixes =
        ROOTS.iter().filter(|(prefix, directory)| prefix.ends_with(':') && path.starts_with(directory));
    match prefixes.max_by_key(|(_, directory)| directory.len()) {
        Some((prefix, directory)) => format!("{prefix}{}", &path[directory.len()..]),
        None => path.to_owned(),
    }
}

/// Whether a key begins with one of WSO2's prefixes: `gov:`, `conf:`.
pub(crate) fn is_prefixed(key: &str) -> bool {
    ROOTS.iter().any(|(prefix, _)| prefix.ends_with(':') && key.starts_with(prefix))
}

/// The path of a key below the root of a registry, by WSO2's prefixes, and by the absolute paths that archives use.
pub fn path(key: &str) -> String {
    ROOTS
        .iter()
        .find_map(|(prefix, directory)| {
            let rest = key.strip_prefix(prefix)?;
            Some(format!("{directory}{}", rest.strip_prefix('/').unwrap_or(rest)))
        })
        .unwrap_or_default()
}
