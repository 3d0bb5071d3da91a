//! The tree: one flat arena of 32-byte nodes in document order, names interned, text as slices of the input.
//!
//! Reading it allocates nothing. Writing to it never moves a node: ids stay valid, and [`Document::compare_order`]
//! stays right.

mod copy;
mod mutate;
pub(crate) use mutate::Tag;
mod order;
mod pool;
mod walk;

pub use walk::{Attributes, Children, Descendants, NamespaceDeclarations};

use crate::error::Position;
use crate::names::{NO_PREFIX, NO_URI, NameId, Names, PrefixId, UriId};
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// A node of one document. Ids compare in document order as long as the document is [`Document::is_ordered`].
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The number of the node, dense from 0 (the document node): an index for tables by node.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The node with number `index`; `None` past 4 Gi.
    pub fn from_index(index: usize) -> Option<NodeId> {
        u32::try_from(index).ok().map(NodeId)
    }
}

/// The kinds of node.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum NodeKind {
    /// The root of a tree: the document itself.
    Document,
    /// An element.
    Element,
    /// An attribute; its parent is its element, but it is no child of it. Stored right behind its element.
    Attribute,
    /// Text; never empty when parsed, and no two side by side.
    Text,
    /// A comment.
    Comment,
    /// A processing instruction; its local name is the target.
    ProcessingInstruction,
}

/// No node: nothing links to the document node, so 0 is free. (A parent uses [`DETACHED`].)
pub(crate) const NIL: u32 = 0;
/// The parent of a node that has none.
pub(crate) const DETACHED: u32 = u32::MAX;

/// The value lies in `side`, not in `source`.
pub(crate) const SIDE: u8 = 1;
/// An attribute a DTD supplied.
pub(crate) const DEFAULTED: u8 = 2;
/// An attribute of type ID.
pub(crate) const IS_ID: u8 = 4;

#[derive(Copy, Clone, Debug)]
pub(crate) struct Node {
    pub kind: NodeKind,
    pub flags: u8,
    pub prefix: PrefixId,
    /// Elements, attributes: their name. Processing instructions: the target as a name in no namespace.
    pub name: u32,
    pub parent: u32,
    /// The next sibling (of attributes: the next attribute), [`NIL`] for the last.
    pub next: u32,
    /// The previous sibling; of the first one: the last. One link serves both ends.
    pub prev: u32,
    /// Document, element: the first child. Others: where the value starts.
    pub a: u32,
    /// Element: the first attribute. Others: the length of the value.
    pub b: u32,
    /// Element: 1 + its first namespace declaration, 0 without.
    pub ns: u32,
}

const _: () = assert!(std::mem::size_of::<Node>() == 32);

impl Node {
    pub(crate) fn new(kind: NodeKind, parent: u32) -> Node {
        Node { kind, flags: 0, prefix: 0, name: 0, parent, next: NIL, prev: NIL, a: 0, b: 0, ns: 0 }
    }
}

#[derive(Copy, Clone, Debug)]
pub(crate) struct NsDecl {
    pub prefix: PrefixId,
    pub uri: UriId,
    /// 1 + the next declaration of the element, 0 for the last.
    pub next: u32,
}

/// Where a node stands in its source, in bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSpan {
    /// Start: of the start tag, of the attribute's name, of the text.
    pub start: u32,
    /// End (exclusive): of the start tag, of the attribute's name, of the text.
    pub end: u32,
    /// Attributes: start of the value inside the quotes.
    pub value_start: u32,
    /// Attributes: end of the value inside the quotes.
    pub value_end: u32,
}

/// Where an element stands in its source, from the start of its start tag to the end of its end tag.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Extent {
    pub node: u32,
    pub start: u32,
    pub end: u32,
}

/// The results of a DTD that outlive parsing.
#[derive(Clone, Debug, Default)]
pub(crate) struct DtdFacts {
    pub ids: HashMap<Box<str>, NodeId>,
    /// The attributes of type IDREF and IDREFS by the names in them, in document order.
    pub references: HashMap<Box<str>, Vec<NodeId>>,
    /// Unparsed entities: name to (system identifier resolved against nothing, public identifier).
    pub unparsed: HashMap<Box<str>, (String, Option<String>)>,
    pub name: String,
    pub public_id: Option<String>,
    pub system_id: Option<String>,
}

/// Bytes between two counts of characters.
const BLOCK: usize = 4096;

/// The characters of a part of a UTF-8 text.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|&&b| b & 0xC0 != 0x80).count()
}

/// A document: a tree of nodes below the document node [`Document::ROOT`], and any detached trees beside it.
#[derive(Clone, Debug)]
pub struct Document {
    pub(crate) nodes: Vec<Node>,
    pub(crate) names: Names,
    /// The input; checked UTF-8 as far as nodes refer to it.
    pub(crate) source: Bytes,
    /// Values that are not slices of the input.
    pub(crate) side: String,
    pub(crate) ns: Vec<NsDecl>,
    /// Parallel to `nodes`, when positions are kept.
    pub(crate) spans: Vec<NodeSpan>,
    /// Where elements begin and end in the source, by ascending ids, when that is kept. Empty after any change.
    pub(crate) extents: Vec<Extent>,
    /// Where lines start, when positions are kept.
    pub(crate) lines: Vec<u32>,
    /// Characters of the source before each block of [`BLOCK`] bytes; made when a column in a long line is asked for.
    pub(crate) characters: OnceLock<Box<[u32]>>,
    pub(crate) dtd: Option<Box<DtdFacts>>,
    pub(crate) base_uri: Option<Arc<str>>,
    /// Ids no longer ascend in document order.
    pub(crate) unordered: bool,
    /// Nodes have been detached (and may lie between the others).
    pub(crate) holes: bool,
    /// The index of each node in document order; built on first use in an unordered document.
    pub(crate) order: OnceLock<Vec<u32>>,
    /// All nodes are of one document that was read: nothing was added or renamed since.
    pub(crate) as_read: bool,
}

impl Default for Document {
    fn default() -> Document {
        Document::new()
    }
}

impl Document {
    /// The document node.
    pub const ROOT: NodeId = NodeId(0);

    /// An empty document: only its document node.
    pub fn new() -> Document {
        let pool::Arena { nodes, names, side, ns, extents } = pool::Arena::take();
        Document {
            nodes,
            names,
            source: Bytes::new(),
            side,
            ns,
            spans: Vec::new(),
            extents,
            lines: Vec::new(),
            characters: OnceLock::new(),
            dtd: None,
            base_uri: None,
            unordered: false,
            holes: false,
            order: OnceLock::new(),
            as_read: false,
        }
    }

    /// The approximate memory of the tree in bytes, without the input that its texts are slices of.
    pub fn tree_size(&self) -> usize {
        self.nodes.len() * size_of::<Node>()
            + self.side.len()
            + self.ns.len() * size_of::<NsDecl>()
            + self.spans.len() * size_of::<NodeSpan>()
            + self.extents.len() * size_of::<Extent>()
            + self.names.memory()
    }

    /// The bytes of its input, and of the texts that it has beside that.
    pub fn text_size(&self) -> usize {
        self.source.len() + self.side.len()
    }

    /// A document that holds only this text (nothing where it is empty), of less than 4 GiB.
    pub fn of_text(text: String) -> Document {
        let mut doc = Document::new();
        if let (Ok(length @ 1..), true) = (u32::try_from(text.len()), doc.side.is_empty()) {
            doc.nodes[0].a = 1;
            doc.nodes.push(Node { flags: SIDE, prev: 1, b: length, ..Node::new(NodeKind::Text, 0) });
            doc.side = text;
        }
        doc
    }

    /// Makes the document empty and keeps its memory for the next one. All ids of nodes and names are void.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.nodes.push(Node::new(NodeKind::Document, DETACHED));
        self.names.trim();
        self.source = Bytes::new();
        self.side.clear();
        self.ns.clear();
        self.spans.clear();
        self.extents.clear();
        self.lines.clear();
        self.characters = OnceLock::new();
        self.dtd = None;
        self.base_uri = None;
        self.unordered = false;
        self.holes = false;
        self.order = OnceLock::new();
        self.as_read = false;
    }

    /// The number of nodes, detached ones included: ids are below it.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The number of expanded names: [`NameId::index`] is below it.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// The numbering of names: documents with equal stamps number the same names alike, and those with equal
    /// first parts up to the smaller second part, the number of names.
    #[inline]
    pub fn name_stamp(&self) -> (u64, usize) {
        (self.names.table(), self.names.len())
    }

    /// The bytes the document holds.
    pub fn memory(&self) -> usize {
        self.nodes.capacity() * 32 + self.source.len() + self.side.capacity() + self.ns.capacity() * 12
    }

    /// The base URI given when it was parsed.
    pub fn base_uri(&self) -> Option<&str> {
        self.base_uri.as_deref()
    }

    #[inline(always)]
    pub(crate) fn node(&self, n: NodeId) -> &Node {
        &self.nodes[n.0 as usize]
    }

    /// The kind of the node.
    #[inline]
    pub fn kind(&self, n: NodeId) -> NodeKind {
        self.node(n).kind
    }

    /// The parent; of an attribute its element; `None` for a document node and what is detached.
    #[inline]
    pub fn parent(&self, n: NodeId) -> Option<NodeId> {
        let parent = self.node(n).parent;
        (parent != DETACHED).then_some(NodeId(parent))
    }

    /// Name and text of an element in no namespace, without attributes and declarations, that holds only one
    /// text, like most elements of messages.
    #[inline]
    pub fn plain_leaf(&self, n: NodeId) -> Option<(&str, &str)> {
        let node = self.node(n);
        if node.kind != NodeKind::Element || node.b != NIL || node.ns != 0 || node.a == NIL {
            return None;
        }
        let child = self.node(NodeId(node.a));
        if child.kind != NodeKind::Text
            || child.next != NIL
            || child.b == 0
            || node.prefix != NO_PREFIX
            || self.names.uri_id_of(node.name) != NO_URI
        {
            return None;
        }
        Some((self.local(n), self.text(NodeId(node.a))))
    }

    /// The first child.
    #[inline]
    pub fn first_child(&self, n: NodeId) -> Option<NodeId> {
        let node = self.node(n);
        (matches!(node.kind, NodeKind::Document | NodeKind::Element) && node.a != NIL)
            .then_some(NodeId(node.a))
    }

    /// The last child.
    #[inline]
    pub fn last_child(&self, n: NodeId) -> Option<NodeId> {
        self.first_child(n).map(|first| NodeId(self.node(first).prev))
    }

    /// The next sibling; attributes have none.
    #[inline]
    pub fn next_sibling(&self, n: NodeId) -> Option<NodeId> {
        let node = self.node(n);
        (node.next != NIL && node.kind != NodeKind::Attribute).then_some(NodeId(node.next))
    }

    /// The previous sibling; attributes have none.
    #[inline]
    pub fn prev_sibling(&self, n: NodeId) -> Option<NodeId> {
        let node = self.node(n);
        if node.prev == NIL || node.kind == NodeKind::Attribute || self.nodes[node.prev as usize].next == NIL
        {
            return None;
        }
        Some(NodeId(node.prev))
    }

    /// The outermost element.
    pub fn document_element(&self) -> Option<NodeId> {
        self.children(Document::ROOT).find(|&n| self.kind(n) == NodeKind::Element)
    }

    /// The expanded name of an element, an attribute, or (target, no namespace) a processing instruction.
    #[inline]
    pub fn name_id(&self, n: NodeId) -> Option<NameId> {
        let node = self.node(n);
        matches!(node.kind, NodeKind::Element | NodeKind::Attribute | NodeKind::ProcessingInstruction)
            .then_some(NameId(node.name))
    }

    /// The local name; of a processing instruction its target; `""` for what has none.
    #[inline]
    pub fn local(&self, n: NodeId) -> &str {
        self.name_id(n).map_or("", |name| self.names.local_of(name.0))
    }

    /// The namespace URI, `""` for none.
    #[inline]
    pub fn namespace(&self, n: NodeId) -> &str {
        self.name_id(n).map_or("", |name| self.names.uri_str(self.names.uri_id_of(name.0)))
    }

    /// The prefix as written, `""` for none.
    #[inline]
    pub fn prefix(&self, n: NodeId) -> &str {
        self.names.prefix_str(self.node(n).prefix)
    }

    /// The name as written.
    pub fn qname(&self, n: NodeId) -> Cow<'_, str> {
        match self.node(n).prefix {
            0 => Cow::Borrowed(self.local(n)),
            prefix => Cow::Owned(format!("{}:{}", self.names.prefix_str(prefix), self.local(n))),
        }
    }

    /// The id of an expanded name; `None` when the document has no such name anywhere.
    pub fn find_name(&self, namespace: &str, local: &str) -> Option<NameId> {
        self.names.find_name(namespace, local)
    }

    /// The id of an expanded name, new when the document does not have it yet.
    pub fn intern_name(&mut self, namespace: &str, local: &str) -> NameId {
        let uri = self.names.uri(namespace);
        NameId(self.names.name(uri, local))
    }

    /// Whether no name of it is in a namespace (but that of `xml`) and none is declared: no element has namespaces in scope. Looks at all
    /// names: to be asked once for those with one [`Document::name_stamp`].
    pub fn names_are_plain(&self) -> bool {
        (0..self.names.len() as u32).all(|name| {
            matches!(self.names.uri_id_of(name), NO_URI | crate::names::XML_URI | crate::names::XMLNS_URI)
        })
    }

    /// Whether it has no namespace declarations.
    #[inline]
    pub fn declares_nothing(&self) -> bool {
        self.ns.is_empty()
    }

    /// Whether its elements are those of a document that was read: what is in a namespace has a declaration.
    #[inline]
    pub fn is_as_read(&self) -> bool {
        self.as_read
    }

    /// The local name of `name`.
    pub fn name_local(&self, name: NameId) -> &str {
        self.names.local_of(name.0)
    }

    /// The namespace URI of `name`, `""` for none.
    pub fn name_namespace(&self, name: NameId) -> &str {
        self.names.uri_str(self.names.uri_id_of(name.0))
    }

    /// Whether `n` is an element with this expanded name.
    pub fn is_element(&self, n: NodeId, namespace: &str, local: &str) -> bool {
        self.kind(n) == NodeKind::Element && self.local(n) == local && self.namespace(n) == namespace
    }

    /// The value of the attribute of `n` with this expanded name.
    pub fn attribute(&self, n: NodeId, namespace: &str, local: &str) -> Option<&str> {
        self.attribute_node(n, namespace, local).map(|a| self.text(a))
    }

    /// The attribute of `n` with this expanded name.
    pub fn attribute_node(&self, n: NodeId, namespace: &str, local: &str) -> Option<NodeId> {
        self.attributes(n).find(|&a| self.local(a) == local && self.namespace(a) == namespace)
    }

    /// The attribute of `n` with this name: the fast way.
    pub fn attribute_by_name(&self, n: NodeId, name: NameId) -> Option<NodeId> {
        self.attributes(n).find(|&a| self.node(a).name == name.0)
    }

    /// Whether the attribute `n` was supplied by a DTD.
    pub fn is_defaulted(&self, n: NodeId) -> bool {
        let node = self.node(n);
        node.kind == NodeKind::Attribute && node.flags & DEFAULTED != 0
    }

    /// The namespace a prefix (`""`: the default namespace) is bound to at `n`. `None`: not declared; the default
    /// namespace undeclared gives `None` too.
    pub fn lookup_prefix(&self, n: NodeId, prefix: &str) -> Option<&str> {
        match prefix {
            "xml" => return Some(crate::XML_NS),
            "xmlns" => return Some(crate::XMLNS_NS),
            _ => {}
        }
        let uri = self.binding(n, self.names.find_prefix(prefix)?)?;
        (uri != NO_URI).then(|| self.names.uri_str(uri))
    }

    /// The namespace of `prefix` at `n`: by the declarations, and by the names of elements made without any.
    pub(crate) fn binding(&self, n: NodeId, prefix: PrefixId) -> Option<UriId> {
        let mut at = Some(n);
        while let Some(n) = at {
            let node = self.node(n);
            if node.kind == NodeKind::Element {
                if let Some(decl) = self.declarations(n).find(|d| d.prefix == prefix) {
                    return Some(decl.uri);
                }
                if node.prefix == prefix {
                    return Some(self.names.uri_id_of(node.name));
                }
            }
            at = self.parent(n);
        }
        None
    }

    /// A prefix bound to `uri` at `n` (`Some("")`: it is the default namespace).
    pub fn prefix_for(&self, n: NodeId, uri: &str) -> Option<&str> {
        self.in_scope_namespaces(n).into_iter().find(|(_, u)| *u == uri).map(|(p, _)| p)
    }

    /// The namespaces in scope at the element `n`, as (prefix, URI): without `xml`, and without the default
    /// namespace where there is none. Nearest declarations first.
    pub fn in_scope_namespaces(&self, n: NodeId) -> Vec<(&str, &str)> {
        let bound = self.scope(n);
        let used = bound.into_iter().filter(|b| b.1 != NO_URI);
        used.map(|(p, u)| (self.names.prefix_str(p), self.names.uri_str(u))).collect()
    }

    /// Calls `f` with the same, without allocation for the usual few.
    pub fn each_in_scope_namespace<'d>(&'d self, n: NodeId, f: &mut impl FnMut(&'d str, &'d str)) {
        if self.as_read && self.ns.is_empty() {
            return;
        }
        let mut seen = [NO_PREFIX; 8];
        let mut count = 0;
        let mut at = Some(n);
        while let Some(n) = at {
            let node = self.node(n);
            if node.kind == NodeKind::Element {
                let of_name = (node.prefix, self.names.uri_id_of(node.name));
                // No declaration hides that there is no default namespace.
                let silent = node.ns == 0 && of_name == (NO_PREFIX, NO_URI) && self.ns.is_empty();
                let pairs = self.declarations(n).map(|d| (d.prefix, d.uri)).chain([of_name]);
                for (prefix, uri) in pairs.filter(|_| !silent) {
                    if prefix == crate::names::XML_PREFIX || seen[..count].contains(&prefix) {
                        continue;
                    }
                    if count == seen.len() {
                        // More than usual: those not passed yet, the slow way.
                        for (prefix, uri) in self.scope(NodeId(n.0)) {
                            if uri != NO_URI && !seen.contains(&prefix) {
                                f(self.names.prefix_str(prefix), self.names.uri_str(uri));
                            }
                        }
                        return;
                    }
                    seen[count] = prefix;
                    count += 1;
                    if uri != NO_URI {
                        f(self.names.prefix_str(prefix), self.names.uri_str(uri));
                    }
                }
            }
            at = self.parent(n);
        }
    }

    pub(crate) fn scope(&self, n: NodeId) -> Vec<(PrefixId, UriId)> {
        // So many are compared one by one; more are looked up.
        const FEW: usize = 16;
        let mut bound: Vec<(PrefixId, UriId)> = Vec::new();
        let mut many: HashSet<PrefixId> = HashSet::new();
        let mut at = Some(n);
        while let Some(n) = at {
            let node = self.node(n);
            if node.kind == NodeKind::Element {
                let of_name = (node.prefix, self.names.uri_id_of(node.name));
                for (prefix, uri) in self.declarations(n).map(|d| (d.prefix, d.uri)).chain([of_name]) {
                    let is_new = match bound.len() {
                        0..FEW => !bound.iter().any(|b| b.0 == prefix),
                        _ => many.insert(prefix),
                    };
                    if is_new && prefix != crate::names::XML_PREFIX {
                        bound.push((prefix, uri));
                        if bound.len() == FEW {
                            many.extend(bound.iter().map(|b| b.0));
                        }
                    }
                }
            }
            at = self.parent(n);
        }
        bound
    }

    /// The value of text, an attribute, a comment or a processing instruction; `""` for the others.
    #[inline]
    pub fn text(&self, n: NodeId) -> &str {
        let node = self.node(n);
        if matches!(node.kind, NodeKind::Document | NodeKind::Element) {
            return "";
        }
        self.value(node)
    }

    #[inline(always)]
    pub(crate) fn value(&self, node: &Node) -> &str {
        let range = node.a as usize..(node.a + node.b) as usize;
        if node.flags & SIDE != 0 { &self.side[range] } else { crate::lex::text(&self.source[range]) }
    }

    /// The string value (XPath 1.0, 5): of an element or the document all text in it, put together.
    pub fn string_value(&self, n: NodeId) -> Cow<'_, str> {
        if !matches!(self.kind(n), NodeKind::Document | NodeKind::Element) {
            return Cow::Borrowed(self.text(n));
        }
        let mut texts = self.descendants(n).filter(|&d| self.kind(d) == NodeKind::Text).map(|d| self.text(d));
        let Some(first) = texts.next() else { return Cow::Borrowed("") };
        let Some(second) = texts.next() else { return Cow::Borrowed(first) };
        let mut all = String::with_capacity(first.len() + second.len() + 64);
        all.push_str(first);
        all.push_str(second);
        texts.for_each(|t| all.push_str(t));
        Cow::Owned(all)
    }

    /// Appends the string value of `n` to `out`.
    pub fn push_string_value(&self, n: NodeId, out: &mut String) {
        if !matches!(self.kind(n), NodeKind::Document | NodeKind::Element) {
            out.push_str(self.text(n));
            return;
        }
        for d in self.descendants(n) {
            if self.kind(d) == NodeKind::Text {
                out.push_str(self.text(d));
            }
        }
    }

    /// Where the node starts; `None` where positions are not kept or the node was not parsed.
    pub fn position(&self, n: NodeId) -> Option<Position> {
        self.span(n).map(|span| self.locate(span.start as usize))
    }

    /// The source spans of the node, under the same conditions as [`Document::position`].
    pub fn span(&self, n: NodeId) -> Option<NodeSpan> {
        self.spans.get(n.index()).copied().filter(|s| s.end != 0)
    }

    /// The source text of the element, where it is kept ([`crate::ParseOptions::extents`]) and the document was not
    /// changed since.
    pub fn source_of(&self, n: NodeId) -> Option<&str> {
        let at = self.extents.binary_search_by_key(&n.0, |extent| extent.node).ok()?;
        let Extent { start, end, .. } = self.extents[at];
        self.source.get(start as usize..end as usize).map(crate::lex::text)
    }

    /// Line and column of a byte offset of the source, where positions are kept.
    pub fn locate(&self, offset: usize) -> Position {
        let line = self.lines.partition_point(|&start| start as usize <= offset);
        let start = if line == 0 { 0 } else { self.lines[line - 1] as usize };
        let column = match self.source.get(start..offset) {
            Some(text) if text.len() <= BLOCK => characters(text),
            // A source without line breaks: what is before is not counted for each node.
            Some(_) => self.characters_before(offset) - self.characters_before(start),
            None => 0,
        };
        Position { line: line.max(1) as u32, column: 1 + column as u32, offset }
    }

    /// The characters of the source before an offset.
    fn characters_before(&self, offset: usize) -> usize {
        let blocks = self.characters.get_or_init(|| {
            let mut before = 0;
            let count = |block: &[u8]| {
                let here = before;
                before += characters(block) as u32;
                here
            };
            self.source.chunks(BLOCK).map(count).collect()
        });
        let block = offset / BLOCK;
        let before = blocks.get(block).map_or(0, |count| *count as usize);
        before + self.source.get(block * BLOCK..offset).map_or(0, characters)
    }

    /// The source that the spans refer to.
    pub fn source(&self) -> &Bytes {
        &self.source
    }

    /// The element with an ID attribute of this value: types from the DTD (where it was read), and `xml:id`.
    pub fn element_by_id(&self, id: &str) -> Option<NodeId> {
        if let Some(dtd) = &self.dtd {
            // The map has the parsed nodes; the tree may have changed since.
            if let Some(&n) = dtd.ids.get(id)
                && self.attributes(n).any(|a| self.node(a).flags & IS_ID != 0 && self.text(a) == id)
                && self.is_attached(n)
            {
                return Some(n);
            }
        }
        let xml_id = self.find_name(crate::XML_NS, "id")?;
        self.descendants(Document::ROOT)
            .find(|&n| self.attribute_by_name(n, xml_id).is_some_and(|a| self.text(a).trim_ascii() == id))
    }

    /// The attributes of type IDREF or IDREFS (by the DTD, where it was read) that name `id`, in document order.
    pub fn references_to(&self, id: &str) -> impl Iterator<Item = NodeId> {
        let found = self.dtd.as_ref().and_then(|dtd| dtd.references.get(id)).map_or(&[][..], Vec::as_slice);
        // The map has the parsed nodes; the tree may have changed since.
        let names = move |n: &NodeId| self.text(*n).split_ascii_whitespace().any(|token| token == id);
        found.iter().copied().filter(move |n| self.is_attached(*n) && names(n))
    }

    /// Whether the attribute `n` is of type ID (by the DTD, or as `xml:id`).
    pub fn is_id(&self, n: NodeId) -> bool {
        let node = self.node(n);
        node.kind == NodeKind::Attribute
            && (node.flags & IS_ID != 0 || (self.local(n) == "id" && self.namespace(n) == crate::XML_NS))
    }

    /// System and public identifier of an unparsed entity, where the DTD was read.
    pub fn unparsed_entity(&self, name: &str) -> Option<(&str, Option<&str>)> {
        let (system, public) = self.dtd.as_ref()?.unparsed.get(name)?;
        Some((system, public.as_deref()))
    }

    /// Name, public and system identifier of the document type declaration, where it was read.
    pub fn doctype(&self) -> Option<(&str, Option<&str>, Option<&str>)> {
        let dtd = self.dtd.as_ref()?;
        Some((&dtd.name, dtd.public_id.as_deref(), dtd.system_id.as_deref()))
    }

    /// Whether `n` belongs to the tree of the document node.
    pub fn is_attached(&self, n: NodeId) -> bool {
        self.root_of(n) == Document::ROOT
    }

    /// The topmost node of the tree `n` belongs to.
    pub fn root_of(&self, n: NodeId) -> NodeId {
        let mut at = n;
        while let Some(parent) = self.parent(at) {
            at = parent;
        }
        at
    }
}

#[cfg(test)]
mod tests;
