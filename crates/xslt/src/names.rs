//! The expanded names that a stylesheet mentions, as small numbers. Names of source documents are mapped to them
//! once per document and name, so that patterns compare numbers and dispatch tables are indexed by them.

use std::collections::HashMap;

/// An expanded name of the stylesheet: index into [`Names`].
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct Name(pub u32);

impl Name {
    /// The number of names that the stylesheet does not mention.
    pub const NONE: Name = Name(u32::MAX);
}

/// The table of names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<(Box<str>, Box<str>)>,
    /// By local name, then namespace: lookups need no owned key.
    index: HashMap<Box<str>, Vec<u32>>,
}

impl Names {
    pub fn intern(&mut self, namespace: &str, local: &str) -> Name {
        if let Some(name) = self.find(namespace, local) {
            return name;
        }
        let id = self.names.len() as u32;
        self.names.push((namespace.into(), local.into()));
        self.index.entry(local.into()).or_default().push(id);
        Name(id)
    }

    pub fn find(&self, namespace: &str, local: &str) -> Option<Name> {
        let candidates = self.index.get(local)?;
        candidates.iter().copied().find(|id| &*self.names[*id as usize].0 == namespace).map(Name)
    }

    pub fn get(&self, name: Name) -> (&str, &str) {
        self.names.get(name.0 as usize).map_or(("", ""), |(namespace, local)| (namespace, local))
    }

    /// The name in an error message.
    pub fn show(&self, name: Name) -> String {
        match self.get(name) {
            ("", local) => local.to_owned(),
            (namespace, local) => format!("{{{namespace}}}{local}"),
        }
    }

    /// All names: number, namespace, local name.
    pub fn iter(&self) -> impl Iterator<Item = (Name, &str, &str)> {
        self.names
            .iter()
            .enumerate()
            .map(|(at, (namespace, local))| (Name(at as u32), &**namespace, &**local))
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }
}

/// A step of a path of names, `a/b/@c`: found without the XPath engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameStep {
    pub attribute: bool,
    pub name: Name,
}
