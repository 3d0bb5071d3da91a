//! Keys (`xsl:key`): nodes by the values of a key, for each document built on first use.

use super::{Engine, Focus, Frame, Res};
use crate::error::XsltError;
use crate::names::Name;
use std::collections::HashMap;
use std::sync::Arc;
use xml::{Document, NodeKind};
use xpath::atomic::{Alike, Atomic};
use xpath::{Collation, Node, NodeSet, Value};

/// Nodes by the value of a key.
pub(super) struct KeyIndex {
    /// (The same list each time: it is not copied, and what is looked for in it again and again is found by an index.)
    texts: HashMap<Box<str>, NodeSet>,
    /// By values that are not strings (XSLT 2.0), and composite ones (XSLT 3.0).
    values: Alike<Vec<Node>>,
}

impl KeyIndex {
    pub fn get(&self, text: &str) -> Option<&NodeSet> {
        self.texts.get(text)
    }

    pub(super) fn of_values(&self, atoms: &[Atomic]) -> Option<&Vec<Node>> {
        self.values.get(atoms)
    }
}

/// Collects the nodes of a [`KeyIndex`], which come in document order.
#[derive(Default)]
struct KeyBuilder {
    texts: HashMap<Box<str>, Vec<Node>>,
    values: Alike<Vec<Node>>,
}

impl KeyBuilder {
    fn add_values(&mut self, atoms: &[Atomic], node: Node) {
        let list = self.values.get_or_add(atoms, Vec::new);
        if list.last() != Some(&node) {
            list.push(node);
        }
    }

    fn add(&mut self, text: &str, node: Node) {
        let list = match self.texts.get_mut(text) {
            Some(list) => list,
            None => self.texts.entry(text.into()).or_default(),
        };
        if list.last() != Some(&node) {
            list.push(node);
        }
    }

    fn finish(self) -> KeyIndex {
        let texts = self.texts.into_iter().map(|(text, nodes)| (text, NodeSet::from_ordered(&nodes)));
        KeyIndex { texts: texts.collect(), values: self.values }
    }
}

impl Engine<'_> {
    /// `focus`: on the document.
    pub(super) fn key_index(&self, name: Name, focus: &Focus) -> Res<Arc<KeyIndex>> {
        let id = focus.node.doc;
        let failed = || Box::new(XsltError::new("a key could not be built"));
        if let Some(index) = self.keys.lock().map_err(|_| failed())?.get(&(name, id)) {
            return Ok(index.clone());
        }
        if !self.building.lock().map_err(|_| failed())?.insert((name, id)) {
            let shown = self.symbols.show(name);
            let message = format!("XTDE0640: the key \"{shown}\" needs its own nodes");
            let place = self.plan.keys.get(&name).and_then(|keys| keys.first()).map(|key| key.place);
            return Err(self.fail(place.unwrap_or_default(), self.coded(message)));
        }
        let mut index = KeyBuilder::default();
        let doc = self.doc(id);
        let definitions = self.plan.keys.get(&name).map_or(&[][..], Vec::as_slice);
        let namespaces = definitions.iter().any(|key| key.pattern.namespaces);
        let attributes = definitions.iter().any(|key| key.pattern.may_match_attributes());
        let mut visit = |node: Node| -> Res<()> {
            self.spend(definitions.len() as u64)?;
            for key in definitions {
                let focus = Focus { node, position: 1, size: 1, ..*focus };
                if !self.matches(&key.pattern, &focus, &super::matching::NO_FRAME)? {
                    continue;
                }
                let focus = Focus::new(node, focus.depth + 1, focus.next);
                let text = |value: &str| key.collation.key(value).into_owned();
                let mut frame = Frame::default();
                frame.locals.resize(key.slots, Value::Empty);
                match self.binding(&key.value, focus, &mut frame, key.place)? {
                    value if key.composite => {
                        let atom = |item| key.collation.atom(&self.key_atom(item)).into_owned();
                        index.add_values(&value.items().map(atom).collect::<Vec<_>>(), node);
                    }
                    Value::NodeSet(values) => {
                        values.iter().for_each(|value| index.add(&text(&self.node_string(value)), node));
                    }
                    Value::Empty => {}
                    value
                    @ (Value::Sequence(_) | Value::Atomic(_) | Value::Number(_) | Value::Boolean(_))
                        if key.typed =>
                    {
                        for item in value.items() {
                            match self.atom(item) {
                                Atomic::Untyped(s) | Atomic::String(s) | Atomic::Uri(s) => {
                                    index.add(&text(&s), node)
                                }
                                other => index.add_values(&[other], node),
                            }
                        }
                    }
                    value @ (Value::Sequence(_) | Value::Atomic(_)) => {
                        value.items().for_each(|item| index.add(&text(&self.item_text(&item)), node));
                    }
                    value => index.add(&text(&self.string_of(&value, focus, key.place)?), node),
                }
            }
            Ok(())
        };
        visit(Node::in_document(id, Document::ROOT))?;
        for node in doc.descendants(Document::ROOT) {
            visit(Node::in_document(id, node))?;
            if namespaces && doc.kind(node) == NodeKind::Element {
                // (The first is that of `xml`.)
                for number in 1..=doc.in_scope_namespaces(node).len() as u32 + 1 {
                    visit(Node { namespace: number, ..Node::in_document(id, node) })?;
                }
            }
            if attributes && doc.kind(node) == NodeKind::Element {
                for attribute in doc.attributes(node) {
                    visit(Node::in_document(id, attribute))?;
                }
            }
        }
        self.building.lock().map_err(|_| failed())?.remove(&(name, id));
        let index = Arc::new(index.finish());
        self.keys.lock().map_err(|_| failed())?.insert((name, id), index.clone());
        Ok(index)
    }

    /// The nodes of one document by the values of a key, built on first use.
    pub(super) fn collation_of_key(&self, name: Name) -> Collation {
        self.plan.keys.get(&name).and_then(|keys| keys.first()).map_or_else(Default::default, |k| k.collation)
    }
}
