//! Values: the sequences of the XPath data model, with the cases that XPath 1.0 has kept compact.

use crate::atomic::Atomic;
use crate::shared::Shared;
use std::ops::Range;
use std::sync::Arc;
use xml::{Document, NodeId};

/// Which document a node belongs to: a number of the embedder's own, see [`Host::document`](crate::Host::document).
/// Nodes of different documents are ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct DocId(pub u32);

impl DocId {
    /// Of no document: a [`Node`] in it refers to an atomic value that is the context item.
    pub const ATOMIC: DocId = DocId(u32::MAX);
}

/// A node: one of the document tree (attributes included) or a namespace node of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node {
    /// Its document.
    pub doc: DocId,
    /// The tree node; of a namespace node: its element.
    pub id: NodeId,
    /// 0 for a tree node; `n` for the n-th in-scope namespace of element `id`.
    pub namespace: u32,
}

impl Node {
    /// A tree node of the document with number 0.
    pub fn new(id: NodeId) -> Node {
        Node { doc: DocId(0), id, namespace: 0 }
    }

    /// A tree node of document `doc`.
    pub fn in_document(doc: DocId, id: NodeId) -> Node {
        Node { doc, id, namespace: 0 }
    }

    /// Refers to an atomic value that is kept under that number. `None`: the number is too large.
    pub fn atomic(number: usize) -> Option<Node> {
        // The first number of a tree is its root.
        Some(Node { id: NodeId::from_index(number + 1)?, ..Node::ABSENT })
    }

    /// The number of the atomic value that it refers to (of an absent one: the highest); `None`: it is a node.
    pub fn as_atomic(self) -> Option<usize> {
        (self.doc == DocId::ATOMIC).then(|| self.id.index().wrapping_sub(1))
    }

    /// Whether this is a namespace node.
    pub fn is_namespace(self) -> bool {
        self.namespace != 0
    }

    /// Refers to an absent context item.
    pub const ABSENT: Node = Node { doc: DocId::ATOMIC, id: Document::ROOT, namespace: u32::MAX };

    pub(crate) fn at(self, id: NodeId) -> Node {
        Node { doc: self.doc, id, namespace: 0 }
    }
}

/// Static types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Known at run time only.
    Any,
    /// A set of nodes.
    NodeSet,
    /// A boolean.
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
}

impl Type {
    /// The name used by `--json` and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Type::Any => "any",
            Type::NodeSet => "node-set",
            Type::Boolean => "boolean",
            Type::Number => "number",
            Type::String => "string",
        }
    }
}

/// The result of an expression: a sequence of items. XPath 1.0 knows the cases listed; sequences of atomic values join
/// them with XPath 2.0.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Value {
    /// The empty sequence that is not a node-set: an embedder returns it for an absent property. Converts as
    /// the empty node-set does.
    #[default]
    Empty,
    /// Nodes in document order without duplicates.
    NodeSet(NodeSet),
    /// A boolean.
    Boolean(bool),
    /// A number.
    Number(f64),
    /// A string, cheap to copy.
    String(Arc<str>),
    /// A single atomic value of another type (XPath 2.0).
    Atomic(Atomic),
    /// Two items or more: atomic values, or nodes in any order (XPath 2.0).
    Sequence(Shared<Item>),
}

/// An item of a sequence.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A node.
    Node(Node),
    /// An atomic value.
    Atomic(Atomic),
}

impl Item {
    /// The node, if it is one.
    pub fn node(&self) -> Option<Node> {
        match self {
            Item::Node(n) => Some(*n),
            Item::Atomic(_) => None,
        }
    }
}

impl From<Node> for Item {
    fn from(n: Node) -> Item {
        Item::Node(n)
    }
}

impl From<Atomic> for Item {
    fn from(a: Atomic) -> Item {
        Item::Atomic(a)
    }
}

impl Value {
    /// A string value.
    pub fn string(s: impl Into<Arc<str>>) -> Value {
        Value::String(s.into())
    }

    /// Its type; the empty sequence counts as an empty node-set.
    pub fn type_of(&self) -> Type {
        match self {
            Value::Empty | Value::NodeSet(_) => Type::NodeSet,
            Value::Boolean(_) => Type::Boolean,
            Value::Number(_) => Type::Number,
            Value::String(_) => Type::String,
            Value::Atomic(a) if a.is_numeric() => Type::Number,
            Value::Atomic(a) if a.is_function() => Type::Any,
            Value::Atomic(Atomic::Boolean(_)) => Type::Boolean,
            Value::Atomic(_) => Type::String,
            Value::Sequence(_) => Type::Any,
        }
    }

    /// The sequence of these items, nodes in the order given.
    pub fn from_items(items: Vec<Item>) -> Value {
        match items.as_slice() {
            [] => Value::Empty,
            [Item::Node(n)] => Value::from(*n),
            [Item::Atomic(a)] => Value::from(a.clone()),
            _ => Value::Sequence(items.into()),
        }
    }

    /// How many items it has.
    pub fn len(&self) -> usize {
        match self {
            Value::Empty => 0,
            Value::NodeSet(nodes) => nodes.len(),
            Value::Sequence(items) => items.len(),
            _ => 1,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both share the list of several items that they have.
    pub(crate) fn is_same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::NodeSet(NodeSet(Repr::Many(a))), Value::NodeSet(NodeSet(Repr::Many(b)))) => a.is_same(b),
            (Value::Sequence(a), Value::Sequence(b)) => a.is_same(b),
            _ => false,
        }
    }

    /// The item at an index from 0.
    pub fn item(&self, at: usize) -> Option<Item> {
        match self {
            Value::NodeSet(nodes) => nodes.as_slice().get(at).map(|n| Item::Node(*n)),
            Value::Sequence(items) => items.get(at).cloned(),
            other if at == 0 => other.single_atomic().map(Item::Atomic),
            _ => None,
        }
    }

    /// Its items in order.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = Item> + ExactSizeIterator + '_ {
        (0..self.len()).map(|at| self.item(at).unwrap_or(Item::Atomic(Atomic::Boolean(false))))
    }

    /// Those of its items at these indexes from 0 that are there. They are copied if they are few ([`Shared::part`]).
    pub fn part(&self, range: Range<usize>) -> Value {
        let whole = range.start == 0 && range.end >= self.len();
        match self {
            _ if whole => self.clone(),
            Value::NodeSet(nodes) => Value::NodeSet(nodes.part(range)),
            Value::Sequence(items) => match items.part(range) {
                part if part.len() < 2 => part.first().map_or(Value::Empty, |item| Value::from(item.clone())),
                part => Value::Sequence(part),
            },
            // One item, which is not in the range, or none.
            _ => Value::Empty,
        }
    }

    /// How many items were copied to make this part of `value`.
    pub(crate) fn copied_from(&self, value: &Value) -> usize {
        let own = match self {
            Value::Sequence(items) => items.is_whole(),
            Value::NodeSet(nodes) => nodes.is_whole(),
            _ => false,
        };
        if own && self.len() < value.len() { self.len() } else { 0 }
    }

    /// How many items had to be stored to make it from `before`, which it may share items with.
    pub fn added_to(&self, before: &Value) -> usize {
        match (self, before) {
            (Value::Sequence(items), Value::Sequence(before)) => items.added_to(before),
            _ => self.len(),
        }
    }

    /// The value as a single atomic one; `None`: it is a sequence or contains nodes.
    pub fn single_atomic(&self) -> Option<Atomic> {
        Some(match self {
            Value::Boolean(b) => Atomic::Boolean(*b),
            Value::Number(n) => Atomic::Double(*n),
            Value::String(s) => Atomic::String(s.clone()),
            Value::Atomic(a) => a.clone(),
            Value::Empty | Value::NodeSet(_) | Value::Sequence(_) => return None,
        })
    }

    /// `boolean()` (XPath 1.0, section 4.3). Needs no document. A value without an effective boolean value in XPath 2.0 counts
    /// as true.
    pub fn to_boolean(&self) -> bool {
        match self {
            Value::Empty => false,
            Value::NodeSet(n) => !n.is_empty(),
            Value::Boolean(b) => *b,
            Value::Number(n) => *n != 0.0 && !n.is_nan(),
            Value::String(s) => !s.is_empty(),
            Value::Atomic(a) => a.to_boolean().unwrap_or(true),
            Value::Sequence(_) => true,
        }
    }
}

impl From<Atomic> for Value {
    fn from(a: Atomic) -> Value {
        match a {
            Atomic::Boolean(b) => Value::Boolean(b),
            Atomic::Double(n) => Value::Number(n),
            Atomic::String(s) => Value::String(s),
            other => Value::Atomic(other),
        }
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value::Atomic(Atomic::Integer(n))
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Boolean(b)
    }
}

impl From<f64> for Value {
    fn from(n: f64) -> Value {
        Value::Number(n)
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Value {
        Value::String(s.into())
    }
}

impl From<String> for Value {
    fn from(s: String) -> Value {
        Value::String(s.into())
    }
}

impl From<Node> for Value {
    fn from(n: Node) -> Value {
        Value::NodeSet(NodeSet::one(n))
    }
}

/// Nodes in document order without duplicates; cheap to copy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeSet(Repr);

#[derive(Debug, Clone, PartialEq, Default)]
enum Repr {
    #[default]
    Empty,
    One([Node; 1]),
    Many(Shared<Node>),
}

impl NodeSet {
    /// No nodes.
    pub fn new() -> NodeSet {
        NodeSet::default()
    }

    /// One node.
    pub fn one(node: Node) -> NodeSet {
        NodeSet(Repr::One([node]))
    }

    /// From nodes that are already in document order and distinct.
    pub fn from_ordered(nodes: &[Node]) -> NodeSet {
        NodeSet(match nodes {
            [] => Repr::Empty,
            [n] => Repr::One([*n]),
            many => Repr::Many(many.into()),
        })
    }

    /// The nodes at these indexes that are there. They are copied if they are few ([`Shared::part`]).
    pub fn part(&self, range: Range<usize>) -> NodeSet {
        match &self.0 {
            Repr::Many(nodes) => match nodes.part(range) {
                part if part.len() < 2 => NodeSet::from_ordered(&part),
                part => NodeSet(Repr::Many(part)),
            },
            _ if range.contains(&0) => self.clone(),
            _ => NodeSet::new(),
        }
    }

    /// Whether it is not a part of a longer list.
    fn is_whole(&self) -> bool {
        match &self.0 {
            Repr::Many(nodes) => nodes.is_whole(),
            Repr::Empty | Repr::One(_) => true,
        }
    }

    /// The nodes in document order.
    pub fn as_slice(&self) -> &[Node] {
        match &self.0 {
            Repr::Empty => &[],
            Repr::One(n) => n,
            Repr::Many(n) => n,
        }
    }

    /// The first node in document order.
    pub fn first(&self) -> Option<Node> {
        self.as_slice().first().copied()
    }

    /// The nodes in document order.
    pub fn iter(&self) -> impl Iterator<Item = Node> + '_ {
        self.as_slice().iter().copied()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        matches!(self.0, Repr::Empty)
    }
}
