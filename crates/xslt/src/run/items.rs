//! Items. A context item that is an atomic value is kept by the engine, and a [`Node`] that refers to it is passed like a node: loops,
//! sorts and groups need not distinguish them.

use super::{Engine, Focus, Frame, Res};
use crate::expr::Expr;
use crate::model::Place;
use xml::NodeKind;
use xpath::atomic::Atomic;
use xpath::{Item, Node, Value};

impl Engine<'_> {
    /// The item of a focus's node; `None`: there is no context item.
    pub(super) fn item(&self, node: Node) -> Option<Item> {
        match node.as_atomic() {
            None => Some(Item::Node(node)),
            Some(number) => self.atoms.lock().ok()?.get(number).cloned().map(Item::Atomic),
        }
    }

    /// The items of an expression; atomic ones are kept.
    pub(super) fn items(&self, expr: &Expr, focus: Focus, frame: &Frame, place: Place) -> Res<Vec<Node>> {
        if let Some(nodes) = self.quick_nodes(expr, focus)? {
            return Ok(nodes);
        }
        let value = self.value(expr, focus, frame, place)?;
        Ok(match &value {
            Value::NodeSet(nodes) => nodes.as_slice().to_vec(),
            value => self.kept(value),
        })
    }

    /// Keeps an atomic value; it is released by resetting to the mark set before.
    pub(super) fn keep(&self, atom: Atomic) -> Node {
        let Ok(mut atoms) = self.atoms.lock() else { return Node::ABSENT };
        atoms.push(atom);
        Node::atomic(atoms.len() - 1).unwrap_or(Node::ABSENT)
    }

    /// The items of a value; atomic ones are kept.
    pub(super) fn kept(&self, value: &Value) -> Vec<Node> {
        value
            .items()
            .map(|item| match item {
                Item::Node(node) => node,
                Item::Atomic(atom) => self.keep(atom),
            })
            .collect()
    }

    pub(super) fn value_of_kept(&self, nodes: &[Node]) -> Value {
        Value::from_items(nodes.iter().filter_map(|node| self.item(*node)).collect())
    }

    pub(super) fn mark(&self) -> usize {
        self.atoms.lock().map_or(0, |atoms| atoms.len())
    }

    pub(super) fn release(&self, mark: usize) {
        if let Ok(mut atoms) = self.atoms.lock() {
            atoms.truncate(mark);
        }
    }

    /// The text of an item: string value or lexical form.
    pub(super) fn item_text(&self, item: &Item) -> String {
        match item {
            Item::Node(node) => self.node_string(*node),
            Item::Atomic(atom) => atom.to_text().into_owned(),
        }
    }

    /// The typed value of an item.
    pub(super) fn atom(&self, item: Item) -> Atomic {
        match item {
            Item::Atomic(atom) => atom,
            Item::Node(node) => Atomic::Untyped(self.node_string(node).into()),
        }
    }

    /// The items as text (section 5.7.2): empty text nodes are left out, adjacent text nodes are joined.
    pub(super) fn joined(&self, value: &Value, separator: &str) -> String {
        let mut text = String::new();
        let (mut first, mut in_text) = (true, false);
        for item in value.items() {
            let item_text = match &item {
                Item::Node(node) if !node.is_namespace() => {
                    let doc = self.doc(node.doc);
                    if doc.kind(node.id) == NodeKind::Text {
                        let node_text = doc.text(node.id);
                        if node_text.is_empty() {
                            continue;
                        }
                        if !in_text && !first {
                            text.push_str(separator);
                        }
                        text.push_str(node_text);
                        (first, in_text) = (false, true);
                        continue;
                    }
                    self.node_string(*node)
                }
                item => self.item_text(item),
            };
            if !first {
                text.push_str(separator);
            }
            text.push_str(&item_text);
            (first, in_text) = (false, false);
        }
        text
    }
}
