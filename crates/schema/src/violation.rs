//! Violations and their places.

use std::fmt;
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind};

/// A violation of a schema by a document, or a fault of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The schema document at fault; `None`: the validated document.
    pub document: Option<Arc<str>>,
    /// XML: a path such as `/order/line[2]/@sku`. JSON: a pointer such as `/lines/1/sku`. `""`: the whole document.
    pub place: String,
    /// Line, counted from 1; 0: unknown.
    pub line: u32,
    /// Column in characters, counted from 1; 0: unknown.
    pub column: u32,
    /// The rule: the name of the constraint in the specification, or the JSON Schema keyword; `""` for none.
    pub rule: &'static str,
    /// The message.
    pub message: String,
}

impl Violation {
    /// A violation at a node of a document whose validated part begins at `root`.
    pub(crate) fn in_xml(
        doc: &Document,
        root: NodeId,
        node: NodeId,
        rule: &'static str,
        message: String,
    ) -> Violation {
        let position = doc.position(node).unwrap_or_default();
        let place = path(doc, root, node);
        Violation { document: None, place, line: position.line, column: position.column, rule, message }
    }

    /// A fault at a node of a schema document.
    pub(crate) fn in_schema(
        name: &Arc<str>,
        doc: &Document,
        node: NodeId,
        rule: &'static str,
        message: String,
    ) -> Violation {
        let position = doc.position(node).unwrap_or_default();
        let place = String::new();
        Violation {
            document: Some(name.clone()),
            place,
            line: position.line,
            column: position.column,
            rule,
            message,
        }
    }
}

impl fmt::Display for Violation {
    /// `[document:]line:column: place: rule: message`, without the unknown parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(document) = &self.document {
            write!(f, "{document}:")?;
        }
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        } else if self.document.is_some() {
            f.write_str(" ")?;
        }
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        if !self.rule.is_empty() {
            write!(f, "{}: ", self.rule)?;
        }
        f.write_str(&self.message)
    }
}

/// The path of a node from `root`: names as written, and numbers where siblings share one.
fn path(doc: &Document, root: NodeId, node: NodeId) -> String {
    let mut parts = Vec::new();
    let mut at = node;
    loop {
        let name = doc.qname(at);
        match doc.kind(at) {
            NodeKind::Attribute => parts.push(format!("/@{name}")),
            NodeKind::Element => {
                let id = doc.name_id(at);
                let same = |n: &NodeId| doc.kind(*n) == NodeKind::Element && doc.name_id(*n) == id;
                let mut before = 0;
                let mut after = false;
                if at != root
                    && let Some(parent) = doc.parent(at)
                {
                    let mut siblings = doc.children(parent).filter(same);
                    before = siblings.by_ref().take_while(|&n| n != at).count();
                    after = siblings.next().is_some();
                }
                parts.push(if before > 0 || after {
                    format!("/{name}[{}]", before + 1)
                } else {
                    format!("/{name}")
                });
            }
            _ => {}
        }
        match doc.parent(at) {
            Some(parent) if at != root && doc.kind(parent) != NodeKind::Document => at = parent,
            _ => break,
        }
    }
    parts.reverse();
    parts.concat()
}
