//! Copies of a message that run for a mediator which goes on with what they bring.

use flow::{Branched, Child, Context, Copies, Fault, ListId, run_branch};
use message::{Envelope, Piece, XmlValue, memory};
use std::sync::Arc;
use xml::{Document, NodeId};

/// Most copies of one message that run at the same time.
const AT_ONCE: usize = 64;

/// See the module.
pub(crate) struct Branches<I> {
    waiting: std::iter::Enumerate<I>,
    running: Copies<(usize, Branched)>,
    parallel: bool,
}

impl<I: Iterator<Item = (Box<Context>, ListId, Child)>> Branches<I> {
    /// Copies with the lists they run through, each a child of the scope of its message. They are made when it is their turn.
    pub(crate) fn new(copies: I, parallel: bool) -> Branches<I> {
        Branches { waiting: copies.enumerate(), running: Copies::default(), parallel }
    }

    /// The next one that has ended, with its number (from 0); `None`: all have.
    ///
    /// # Errors
    /// It panicked.
    pub(crate) async fn next(&mut self) -> Result<Option<(usize, Branched)>, Fault> {
        // Where memory is short, one goes on alone.
        while self.running.len() < if self.parallel && !memory::is_short() { AT_ONCE } else { 1 }
            && let Some((index, (copy, list, child))) = self.waiting.next()
        {
            self.running.spawn(child, async move { (index, run_branch(copy, list).await) });
        }
        self.running.next().await.transpose()
    }

    /// Nothing waits for the others any more; those that run end by themselves.
    pub(crate) fn leave(self) {
        self.running.leave();
    }
}

/// What one copy brings.
pub(crate) enum Brought {
    /// JSON.
    Json(serde_json::Value),
    /// Nodes.
    Xml(XmlValue),
    /// Nodes where they are, for an envelope in pieces.
    Pieces(Arc<Envelope>, Vec<NodeId>),
}

impl Brought {
    /// All as a JSON array; XML as its text.
    pub(crate) fn array(results: Vec<Brought>) -> serde_json::Value {
        let json = |one| match one {
            Brought::Json(value) => value,
            Brought::Xml(xml) => xml.to_xml().into(),
            Brought::Pieces(envelope, nodes) => XmlValue::copy_of(&envelope.document, &nodes).to_xml().into(),
        };
        results.into_iter().map(json).collect()
    }

    /// An element around all that is XML.
    pub(crate) fn element(name: &str, results: &[Brought]) -> XmlValue {
        let mut document = Document::new();
        let root = document.append_element(Document::ROOT, "", "", name);
        Brought::append(results, &mut document, root);
        XmlValue { document: Arc::new(document), nodes: vec![root] }
    }

    /// Appends all that is XML to a node; the new nodes.
    pub(crate) fn append(results: &[Brought], document: &mut Document, parent: NodeId) -> Vec<NodeId> {
        let mut added = Vec::with_capacity(results.len());
        for result in results {
            match result {
                Brought::Json(_) => {}
                Brought::Xml(xml) => {
                    added.extend(
                        xml.nodes.iter().map(|&node| document.copy_from(parent, &xml.document, node)),
                    );
                }
                Brought::Pieces(envelope, nodes) => {
                    let copy = |&node: &NodeId| XmlValue::copy_to(document, parent, &envelope.document, node);
                    added.extend(nodes.iter().map(copy));
                }
            }
        }
        added
    }

    /// All as pieces; `None`: not all are.
    pub(crate) fn pieces(results: &[Brought]) -> Option<Vec<Piece>> {
        let mut pieces = Vec::with_capacity(results.len());
        for result in results {
            let Brought::Pieces(envelope, nodes) = result else { return None };
            pieces.extend(nodes.iter().map(|&node| (Arc::clone(envelope), node)));
        }
        Some(pieces)
    }
}
