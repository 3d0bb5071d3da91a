//! Values: the sequences of the XPath data model, with the cases that XPath 1.0 has kept compact.

use std::sync::Arc;
use xml::NodeId;

/// Which document a node belongs to: a number of the embedder's own, see [`Host::document`](crate::Host::document).
/// Nodes of different documents are ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct DocId(pub u32);

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

    /// Whether this is a namespace node.
    pub fn is_namespace(self) -> bool {
        self.namespace != 0
    }

    pub(crate) fn at(self, id: NodeId) -> Node {
        Node { doc: self.doc, id, namespace: 0 }
    }
}

/// Static types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Known only when evaluated.
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
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// The empty sequence that is not a node-set: what an embedder answers for "there is no such property". Converts as
    /// the empty node-set does.
    Empty,
    /// Nodes in document order without duplicates.
    NodeSet(NodeSet),
    /// A boolean.
    Boolean(bool),
    /// A number.
    Number(f64),
    /// A string, cheap to copy.
    String(Arc<str>),
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
        }
    }

    /// `boolean()` (XPath 1.0, section 4.3). Needs no document.
    pub fn to_boolean(&self) -> bool {
        match self {
            Value::Empty => false,
            Value::NodeSet(n) => !n.is_empty(),
            Value::Boolean(b) => *b,
            Value::Number(n) => *n != 0.0 && !n.is_nan(),
            Value::String(s) => !s.is_empty(),
        }
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
    Many(Arc<[Node]>),
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
