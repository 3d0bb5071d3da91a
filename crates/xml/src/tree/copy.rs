//! Copying from tree to tree.

use super::{DETACHED, Document, NIL, Node, NodeId, NodeKind, SIDE};
use crate::names::{NO_URI, PrefixId, UriId};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

/// Numbers of names, URIs and prefixes of one document in another, filled as they occur.
#[derive(Default)]
struct Map {
    names: Vec<u32>,
    uris: Vec<u32>,
    prefixes: Vec<u32>,
}

thread_local! {
    /// The tables of the last copy, for their memory.
    static LAST: Cell<Map> = const { Cell::new(Map { names: Vec::new(), uris: Vec::new(), prefixes: Vec::new() }) };
}

/// The capacity of the tables that are kept.
const KEPT: usize = 4096;

impl Map {
    fn take() -> Map {
        LAST.try_with(Cell::take).unwrap_or_default()
    }

    fn keep(mut self) {
        for table in [&mut self.names, &mut self.uris, &mut self.prefixes] {
            table.clear();
            table.shrink_to(KEPT);
        }
        let _ = LAST.try_with(|last| last.set(self));
    }
}

fn mapped(table: &mut Vec<u32>, i: u32, make: impl FnOnce() -> u32) -> u32 {
    let i = i as usize;
    if i >= table.len() {
        table.resize((i + 1).next_power_of_two().max(32), u32::MAX);
    }
    if table[i] == u32::MAX {
        table[i] = make();
    }
    table[i]
}

impl Document {
    /// Appends a deep copy of `node` of `other` to `parent`; the copy has the namespaces in scope at the original.
    /// An attribute becomes (or replaces) one of `parent`. Of a document node its children are copied. Returns the
    /// (first) copy, or `parent` when there was nothing to copy or no place for it.
    pub fn copy_from(&mut self, parent: NodeId, other: &Document, node: NodeId) -> NodeId {
        self.copy_from_but(parent, other, node, &|_, _| false)
    }

    /// As [`Document::copy_from`], without inherited namespaces that `skip` accepts by prefix and URI:
    /// those that the copy does not need. Names keep their namespace in any case.
    pub fn copy_from_but(
        &mut self,
        parent: NodeId,
        other: &Document,
        node: NodeId,
        skip: &dyn Fn(&str, &str) -> bool,
    ) -> NodeId {
        self.copy_some(parent, other, node, None, skip)
    }

    /// As [`Document::copy_from`], without the content of the element `emptied`. Returns the copies of `node` and of
    /// `emptied`; `None` where that is not in `node`.
    pub fn copy_around(
        &mut self,
        parent: NodeId,
        other: &Document,
        node: NodeId,
        emptied: NodeId,
    ) -> (NodeId, Option<NodeId>) {
        let mut copied = None;
        let top = self.copy_some(parent, other, node, Some((emptied, &mut copied)), &|_, _| false);
        (top, copied)
    }

    fn copy_some(
        &mut self,
        parent: NodeId,
        other: &Document,
        node: NodeId,
        mut emptied: Option<(NodeId, &mut Option<NodeId>)>,
        skip: &dyn Fn(&str, &str) -> bool,
    ) -> NodeId {
        match other.kind(node) {
            NodeKind::Attribute if self.kind(parent) == NodeKind::Element => {
                return self.set_attribute(
                    parent,
                    other.prefix(node),
                    other.namespace(node),
                    other.local(node),
                    other.text(node),
                );
            }
            NodeKind::Text => return self.append_text(parent, other.text(node)),
            NodeKind::Document => {
                let mut first = None;
                for child in other.children(node) {
                    let copy = self.copy_from_but(parent, other, child, skip);
                    first.get_or_insert(copy);
                }
                return first.unwrap_or(parent);
            }
            _ => {}
        }
        if !matches!(self.kind(parent), NodeKind::Document | NodeKind::Element)
            || other.kind(node) == NodeKind::Attribute
        {
            return parent;
        }
        let mut map = Map::take();
        let top = self.copy_node(parent, other, node, &mut map);
        self.copy_scope(top, other, node, &mut map, skip);
        // Down and up again, without recursion.
        let (mut from, mut to) = (node, top);
        'walk: loop {
            let empty = match &mut emptied {
                Some((last, copied)) if *last == from => {
                    **copied = Some(to);
                    true
                }
                _ => false,
            };
            if let Some(child) = other.first_child(from).filter(|_| !empty) {
                from = child;
            } else {
                loop {
                    if from == node {
                        break 'walk;
                    }
                    if let Some(next) = other.next_sibling(from) {
                        from = next;
                        to = NodeId(self.node(to).parent);
                        break;
                    }
                    from = NodeId(other.node(from).parent);
                    to = NodeId(self.node(to).parent);
                }
            }
            to = self.copy_node(to, other, from, &mut map);
        }
        map.keep();
        top
    }

    /// Replaces `old` by the content of the element `from` of a document that was only parsed; `old` becomes detached. The same namespaces
    /// must be in scope at `from` and at the parent of `old`. Returns the copies; `None`, and no change, where `old` has no parent, or
    /// the other document was changed.
    pub fn graft(&mut self, old: NodeId, other: &Document, from: NodeId) -> Option<Vec<NodeId>> {
        let place = self.parent(old).filter(|_| self.kind(old) != NodeKind::Attribute)?;
        if !other.is_dense() || other.kind(from) != NodeKind::Element {
            return None;
        }
        let Some(first) = other.first_child(from) else {
            self.detach(old);
            return Some(Vec::new());
        };
        let last = other.last_child(from)?;
        let (low, end) = (first.0, other.subtree_end(from).0);
        let replaced = *self.node(old);
        let is_first = self.node(place).a == old.0;
        match replaced.next {
            NIL => self.note_append(place),
            _ => {
                self.touch();
                self.unordered = true;
            }
        }
        let base = self.nodes.len() as u32;
        let moved = |id: u32| if id == NIL { NIL } else { id - low + base };
        self.nodes.reserve((end - low) as usize);
        let mut map = Map::take();
        for id in low..end {
            let node = other.nodes[id as usize];
            let mut new = Node { next: moved(node.next), prev: moved(node.prev), ns: 0, ..node };
            new.parent = if node.parent == from.0 { place.0 } else { moved(node.parent) };
            if node.kind == NodeKind::Element {
                (new.a, new.b) = (moved(node.a), moved(node.b));
                self.map_name(&mut new, other, &node, &mut map);
            } else {
                (new.a, new.b) = self.store(other.value(&node));
                new.flags |= SIDE;
                if node.kind != NodeKind::Text && node.kind != NodeKind::Comment {
                    self.map_name(&mut new, other, &node, &mut map);
                }
            }
            let copy = self.add(new);
            if node.ns != 0 {
                self.copy_declarations(copy, other, NodeId(id), &mut map);
            }
        }
        map.keep();
        // The links at both ends; that back from the first child of all leads to the last.
        let (first, last) = (moved(first.0), moved(last.0));
        self.nodes[last as usize].next = replaced.next;
        self.nodes[first as usize].prev = match (is_first, replaced.next) {
            (true, NIL) => last,
            _ => replaced.prev,
        };
        match is_first {
            true => self.nodes[place.index()].a = first,
            false => self.nodes[replaced.prev as usize].next = first,
        }
        match replaced.next {
            NIL => {
                let begins = self.nodes[place.index()].a;
                self.nodes[begins as usize].prev = last;
            }
            next => self.nodes[next as usize].prev = last,
        }
        self.holes = true;
        let node = &mut self.nodes[old.index()];
        (node.parent, node.next, node.prev) = (DETACHED, NIL, NIL);
        let mut copies = Vec::new();
        let mut at = NodeId(first);
        loop {
            copies.push(at);
            if at.0 == last {
                return Some(copies);
            }
            at = self.next_sibling(at)?;
        }
    }

    /// Copies one node with its attributes and own namespace declarations, as last child of `parent`.
    fn copy_node(&mut self, parent: NodeId, other: &Document, n: NodeId, map: &mut Map) -> NodeId {
        self.note_append(parent);
        let from = other.node(n);
        let mut new = Node::new(from.kind, DETACHED);
        if from.kind == NodeKind::Element {
            self.map_name(&mut new, other, from, map);
        } else {
            (new.a, new.b) = self.store(other.value(from));
            new.flags = SIDE;
            if from.kind == NodeKind::ProcessingInstruction {
                self.map_name(&mut new, other, from, map);
            }
        }
        let copy = self.add(new);
        self.link_last(parent, copy);
        if from.kind == NodeKind::Element {
            self.copy_declarations(copy, other, n, map);
            for a in other.attributes(n) {
                let from = other.node(a);
                let mut new = Node::new(NodeKind::Attribute, DETACHED);
                self.map_name(&mut new, other, from, map);
                (new.a, new.b) = self.store(other.value(from));
                new.flags = SIDE | from.flags;
                let attribute = self.add(new);
                self.link_attribute(copy, attribute);
            }
        }
        copy
    }

    fn map_name(&mut self, new: &mut Node, other: &Document, from: &Node, map: &mut Map) {
        let uri = self.map_uri(other, other.names.uri_id_of(from.name), map);
        let names = &mut self.names;
        new.name = mapped(&mut map.names, from.name, || names.name(uri, other.names.local_of(from.name)));
        new.prefix = self.map_prefix(other, from.prefix, map);
    }

    fn map_uri(&mut self, other: &Document, uri: UriId, map: &mut Map) -> UriId {
        let names = &mut self.names;
        mapped(&mut map.uris, uri, || names.uri(other.names.uri_str(uri)))
    }

    fn map_prefix(&mut self, other: &Document, prefix: PrefixId, map: &mut Map) -> PrefixId {
        let names = &mut self.names;
        mapped(&mut map.prefixes, u32::from(prefix), || {
            u32::from(names.prefix(other.names.prefix_str(prefix)))
        }) as PrefixId
    }

    /// Declares at the copy the namespaces in scope at the original that the copy's parent does not have.
    fn copy_scope(
        &mut self,
        copy: NodeId,
        other: &Document,
        original: NodeId,
        map: &mut Map,
        skip: &dyn Fn(&str, &str) -> bool,
    ) {
        if self.kind(copy) != NodeKind::Element {
            return;
        }
        let mut scope = other.scope(original);
        let mut default = NO_URI;
        scope.retain_mut(|(prefix, uri)| {
            if *uri != NO_URI && skip(other.names.prefix_str(*prefix), other.names.uri_str(*uri)) {
                return false;
            }
            *prefix = self.map_prefix(other, *prefix, map);
            *uri = self.map_uri(other, *uri, map);
            if *prefix == 0 {
                default = *uri;
            }
            *prefix != 0
        });
        scope.push((0, default));
        self.declare_missing(copy, self.parent(copy), &scope);
    }

    /// Declares at an element those of some namespaces that its place does not have, and that it does not declare itself.
    fn declare_missing(&mut self, n: NodeId, place: Option<NodeId>, wanted: &[(PrefixId, UriId)]) {
        // So many are looked for one by one; for more, that would take their number squared.
        const FEW: usize = 16;
        if wanted.len() <= FEW {
            for &(prefix, uri) in wanted {
                let inherited = place.and_then(|place| self.binding(place, prefix)).unwrap_or(NO_URI);
                if inherited != uri && !self.declarations(n).any(|d| d.prefix == prefix) {
                    self.declare(n, prefix, uri);
                }
            }
            return;
        }
        let inherited: HashMap<PrefixId, UriId> =
            place.map(|place| self.scope(place)).unwrap_or_default().into_iter().collect();
        let mut declared: HashSet<PrefixId> = self.declarations(n).map(|d| d.prefix).collect();
        let mut last = self.node(n).ns;
        while let Some(decl) = (last as usize).checked_sub(1).and_then(|i| self.ns.get(i))
            && decl.next != 0
        {
            last = decl.next;
        }
        for &(prefix, uri) in wanted {
            let is_new = inherited.get(&prefix).copied().unwrap_or(NO_URI) != uri;
            if is_new && declared.insert(prefix) {
                last = self.declare_behind(last, n, (prefix, uri));
            }
        }
    }

    /// Declares at a copy without declarations what its original declares itself.
    fn copy_declarations(&mut self, copy: NodeId, other: &Document, original: NodeId, map: &mut Map) {
        let mut last = 0;
        for decl in other.declarations(original) {
            let prefix = self.map_prefix(other, decl.prefix, map);
            let uri = self.map_uri(other, decl.uri, map);
            last = self.declare_behind(last, copy, (prefix, uri));
        }
    }

    /// Declares at an element that will move under `to` the inherited namespaces that it would lose there.
    pub(crate) fn keep_namespaces(&mut self, n: NodeId, to: NodeId) {
        if self.kind(n) != NodeKind::Element || self.parent(n).is_none() {
            return;
        }
        let mut scope = self.scope(n);
        scope.retain(|&pair| pair != (0, NO_URI));
        self.declare_missing(n, Some(to), &scope);
    }
}
