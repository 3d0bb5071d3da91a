//! From tree to bytes.

use crate::names::{Bindings, NO_PREFIX, NO_URI, PrefixId, UNBOUND, UriId, XML_PREFIX};
use crate::serialize::{Serializer, WriteOptions, push_attribute, push_comment, push_pi, push_text};
use crate::{Document, NodeId, NodeKind};

/// Appends `node` and what is in it to `out`: a document for [`Document::ROOT`] or an element; the value for an
/// attribute. Namespaces that names in a subtree use are declared, wherever they were declared before.
pub fn write(doc: &Document, node: NodeId, options: &WriteOptions, out: &mut Vec<u8>) {
    if !options.is_plain() {
        return through_serializer(doc, node, options, out);
    }
    if options.declaration {
        // Only the declaration: the serializer writes it first of all.
        Serializer::new(out, options).finish();
    }
    let mut tree = TreeWriter {
        doc,
        out,
        bindings: Bindings::default(),
        marks: Vec::new(),
        open: Vec::with_capacity(16),
        generated: 0,
    };
    tree.bindings.reset();
    // A guess, not to grow many times: a tag takes some 16 bytes.
    let guess = (16 * doc.nodes.len()).clamp(256, 4096);
    tree.out.reserve(if node == Document::ROOT { doc.source.len().max(guess) } else { guess });
    tree.write(node, options.inherited_namespaces);
}

/// [`write()`] with the default options, as a string.
pub fn to_string(doc: &Document, node: NodeId) -> String {
    let mut out = Vec::new();
    write(doc, node, &WriteOptions::default(), &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Plain XML in UTF-8.
struct TreeWriter<'a> {
    doc: &'a Document,
    out: &'a mut Vec<u8>,
    /// What the prefixes mean in the output.
    bindings: Bindings,
    /// Elements that declare something, and where their bindings begin.
    marks: Vec<(NodeId, u32)>,
    /// Where the names of the open elements stand in the output.
    open: Vec<(usize, usize)>,
    generated: u32,
}

impl TreeWriter<'_> {
    fn write(&mut self, top: NodeId, inherited: bool) {
        let doc = self.doc;
        let mut n = top;
        loop {
            match doc.kind(n) {
                NodeKind::Element => {
                    self.start(n, inherited && n == top);
                    if let Some(child) = doc.first_child(n) {
                        self.out.push(b'>');
                        n = child;
                        continue;
                    }
                    self.out.extend_from_slice(b"/>");
                    self.open.pop();
                    self.unbind(n);
                }
                NodeKind::Text => push_text(self.out, doc.value(doc.node(n))),
                NodeKind::Attribute => push_attribute(self.out, doc.text(n)),
                NodeKind::Comment => push_comment(self.out, doc.text(n)),
                NodeKind::ProcessingInstruction => push_pi(self.out, doc.local(n), doc.text(n)),
                NodeKind::Document => {
                    if let Some(child) = doc.first_child(n) {
                        n = child;
                        continue;
                    }
                }
            }
            loop {
                if n == top {
                    return;
                }
                if let Some(next) = doc.next_sibling(n) {
                    n = next;
                    break;
                }
                let Some(parent) = doc.parent(n) else { return };
                n = parent;
                if doc.kind(n) == NodeKind::Element {
                    self.out.extend_from_slice(b"</");
                    if let Some((start, end)) = self.open.pop() {
                        self.out.extend_from_within(start..end);
                    }
                    self.out.push(b'>');
                    self.unbind(n);
                }
            }
        }
    }

    #[inline]
    fn unbind(&mut self, n: NodeId) {
        if let Some(&(node, mark)) = self.marks.last()
            && node == n
        {
            self.marks.pop();
            self.bindings.rewind(mark);
        }
    }

    #[inline]
    fn name(&mut self, n: NodeId) {
        let names = &self.doc.names;
        let node = self.doc.node(n);
        if node.prefix != NO_PREFIX && names.uri_id_of(node.name) != NO_URI {
            self.out.extend_from_slice(names.prefix_bytes(node.prefix));
            self.out.push(b':');
        }
        self.out.extend_from_slice(names.local_bytes(node.name));
    }

    #[inline]
    fn start(&mut self, n: NodeId, inherited: bool) {
        let node = *self.doc.node(n);
        let uri = self.doc.names.uri_id_of(node.name);
        let prefix = if uri == NO_URI { NO_PREFIX } else { node.prefix };
        self.out.push(b'<');
        let start = self.out.len();
        self.name(n);
        self.open.push((start, self.out.len()));
        let mark = self.bindings.mark();
        if node.ns != 0 || inherited {
            self.declarations(n, prefix, uri, inherited);
        }
        if self.bindings.get(prefix) != uri {
            self.declare(prefix, uri);
        }
        let mut at = node.b;
        while at != crate::tree::NIL {
            self.attribute(NodeId(at), mark, prefix);
            at = self.doc.node(NodeId(at)).next;
        }
        if self.bindings.mark() != mark {
            self.marks.push((n, mark));
        }
    }

    /// The declarations of the element itself (or all in scope), but none that contradicts its name.
    fn declarations(&mut self, n: NodeId, prefix: PrefixId, uri: UriId, inherited: bool) {
        let doc = self.doc;
        let wanted = |p: PrefixId, u: UriId| {
            p != XML_PREFIX && (p != prefix || u == uri) && (p == NO_PREFIX || u != NO_URI)
        };
        if inherited {
            let mut scope = doc.scope(n);
            scope.retain(|&(p, u)| wanted(p, u) && (p, u) != (NO_PREFIX, NO_URI));
            scope.into_iter().for_each(|(p, u)| self.declare(p, u));
            return;
        }
        for decl in doc.declarations(n) {
            if wanted(decl.prefix, decl.uri) {
                self.declare(decl.prefix, decl.uri);
            }
        }
    }

    fn declare(&mut self, prefix: PrefixId, uri: UriId) {
        self.bindings.set(prefix, uri);
        let names = &self.doc.names;
        if prefix == NO_PREFIX {
            self.out.extend_from_slice(b" xmlns=\"");
        } else {
            self.out.extend_from_slice(b" xmlns:");
            self.out.extend_from_slice(names.prefix_str(prefix).as_bytes());
            self.out.extend_from_slice(b"=\"");
        }
        push_attribute(self.out, names.uri_str(uri));
        self.out.push(b'"');
    }

    #[inline]
    fn attribute(&mut self, n: NodeId, mark: u32, element: PrefixId) {
        let node = self.doc.node(n);
        let uri = self.doc.names.uri_id_of(node.name);
        if uri == NO_URI {
            self.out.push(b' ');
        } else if node.prefix != NO_PREFIX && self.bindings.get(node.prefix) == uri {
            self.out.push(b' ');
            self.out.extend_from_slice(self.doc.names.prefix_str(node.prefix).as_bytes());
            self.out.push(b':');
        } else {
            self.odd_prefix(node.prefix, uri, mark, element);
        }
        self.out.extend_from_slice(self.doc.names.local_of(node.name).as_bytes());
        self.out.extend_from_slice(b"=\"");
        push_attribute(self.out, self.doc.value(node));
        self.out.push(b'"');
    }

    /// Writes ` prefix:` for an attribute whose prefix does not mean its namespace here.
    #[cold]
    fn odd_prefix(&mut self, prefix: PrefixId, uri: UriId, mark: u32, element: PrefixId) {
        let names = &self.doc.names;
        let free = prefix != NO_PREFIX
            && prefix != XML_PREFIX
            && (self.bindings.get(prefix) == UNBOUND
                || (prefix != element && !self.bindings.since(mark).any(|p| p == prefix)));
        let chosen = if free {
            self.declare(prefix, uri);
            names.prefix_str(prefix).to_owned()
        } else if let Some((p, _)) = self.bindings.all().find(|&(p, u)| p != NO_PREFIX && u == uri) {
            names.prefix_str(p).to_owned()
        } else {
            loop {
                let name = format!("ns{}", self.generated);
                self.generated += 1;
                if names.find_prefix(&name).is_none() {
                    self.out.extend_from_slice(format!(" xmlns:{name}=\"").as_bytes());
                    push_attribute(self.out, names.uri_str(uri));
                    self.out.push(b'"');
                    break name;
                }
            }
        };
        self.out.push(b' ');
        self.out.extend_from_slice(chosen.as_bytes());
        self.out.push(b':');
    }
}

fn through_serializer(doc: &Document, top: NodeId, options: &WriteOptions, out: &mut Vec<u8>) {
    let mut to = Serializer::new(out, options);
    let mut n = top;
    'walk: loop {
        match doc.kind(n) {
            NodeKind::Element => {
                to.start_element(doc.prefix(n), doc.namespace(n), doc.local(n));
                if n == top && options.inherited_namespaces {
                    doc.in_scope_namespaces(n).into_iter().for_each(|(p, u)| to.namespace(p, u));
                }
                doc.namespace_declarations(n).for_each(|(p, u)| to.namespace(p, u));
                for a in doc.attributes(n) {
                    to.attribute(doc.prefix(a), doc.namespace(a), doc.local(a), doc.text(a));
                }
            }
            NodeKind::Text | NodeKind::Attribute => to.text(doc.text(n)),
            NodeKind::Comment => to.comment(doc.text(n)),
            NodeKind::ProcessingInstruction => to.pi(doc.local(n), doc.text(n)),
            NodeKind::Document => {}
        }
        if let Some(child) = doc.first_child(n) {
            n = child;
            continue;
        }
        loop {
            if doc.kind(n) == NodeKind::Element {
                to.end_element();
            }
            if n == top {
                break 'walk;
            }
            if let Some(next) = doc.next_sibling(n) {
                n = next;
                break;
            }
            let Some(parent) = doc.parent(n) else { break 'walk };
            n = parent;
        }
    }
    to.finish();
}
