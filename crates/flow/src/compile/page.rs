//! What a reference page says of a mediator beyond its definition. Each statement is checked by a test: the elements against
//! the definition, what is refused by loading it, the faults and what is read against the example beside the cases.

use super::definition::Attribute;
use crate::runtime::mediator::Need;

/// See the module. The page itself is put together in `crates/cli/src/reference.rs`.
#[derive(Debug)]
pub struct Page {
    /// Where it stands in the index.
    pub family: Family,
    /// What it does, as paragraphs of Markdown.
    pub semantics: &'static str,
    /// The elements inside, parents before children.
    pub inside: &'static [Inside],
    /// What it may read of the message, each with when it does, cheap before dear. Empty: it cannot be executed.
    pub needs: &'static [(Need, &'static str)],
    /// What the loader does not take: the configuration, and a part of what is said about it.
    pub refused: &'static [(&'static str, &'static str)],
    /// ERROR_CODE and when a message leaves with it for the fault sequence. Empty: it cannot fail.
    pub faults: &'static [(&'static str, &'static str)],
}

/// What mediators are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Sending, answering, properties, sequences.
    Core,
    /// Which way a message goes.
    Routing,
    /// What a message is turned into.
    Transformation,
    /// One message into many and many into one.
    Splitting,
    /// Whether and how often a message may pass.
    Quality,
    /// Code, databases and events.
    Extension,
}

impl Family {
    /// All, in the order of the index.
    pub const ALL: [Family; 6] = [
        Family::Core,
        Family::Routing,
        Family::Transformation,
        Family::Splitting,
        Family::Quality,
        Family::Extension,
    ];

    /// The heading in the index.
    pub fn title(self) -> &'static str {
        match self {
            Family::Core => "Core",
            Family::Routing => "Filtering and routing",
            Family::Transformation => "Transformation",
            Family::Splitting => "Splitting and collecting",
            Family::Quality => "Quality of service",
            Family::Extension => "Scripts, databases, events",
        }
    }
}

/// An element inside of a mediator's element.
#[derive(Debug)]
pub struct Inside {
    /// The way from the mediator's element. The last step says how often: `args/arg*`, `else?`, `case+`; once if it is silent.
    pub path: &'static str,
    /// What stands in it besides elements that are listed: `mediator*`, `text`.
    pub content: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Its attributes.
    pub attributes: &'static [Attribute],
}

impl Inside {
    /// An element without content of its own.
    pub const fn new(path: &'static str, meaning: &'static str, attributes: &'static [Attribute]) -> Inside {
        Inside { path, content: "", meaning, attributes }
    }

    /// With content.
    pub const fn with(self, content: &'static str) -> Inside {
        Inside { content, ..self }
    }

    /// Whether text in it is read.
    pub fn holds_text(&self) -> bool {
        !matches!(self.content, "" | "mediator*" | "elements" | "…")
    }

    /// How often it may be there: `?`, `*`, `+`, or nothing.
    pub fn occurrence(&self) -> &'static str {
        match self.path.as_bytes().last() {
            Some(b'?' | b'*' | b'+') => &self.path[self.path.len() - 1..],
            _ => "",
        }
    }

    /// The way without that.
    pub fn way(&self) -> &'static str {
        self.path.trim_end_matches(['?', '*', '+'])
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.way().rsplit('/').next().unwrap_or("")
    }
}
