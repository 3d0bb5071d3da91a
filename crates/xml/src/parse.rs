//! From text to tree, in one pass.
//!
//! [`Document::parse`] decodes and surveys the bytes, [`Parser::document`] reads prolog, root element
//! and epilog, [`Parser::content`] everything between the root's tags in one loop without recursion. (Only entities
//! recurse, and their nesting has a limit.)

use crate::dtd::{AttributeKind, DtdState};
use crate::error::{ErrorKind, Fault, Res, XmlError, end, fault, limit, syntax};
use crate::lex::{self, RawAttribute, Reference};
use crate::names::{Bindings, NO_URI, Seen, UNBOUND, XML_PREFIX, XMLNS_PREFIX, XMLNS_QNAME, XMLNS_URI};
use crate::scan::{survey, text_end};
use crate::tree::{DEFAULTED, Extent, IS_ID, NIL, Node, NodeKind, NodeSpan, NsDecl, SIDE};
use crate::{Document, Dtd, Limits, NodeId, ParseOptions, encoding};
use bytes::Bytes;
use std::cell::Cell;

impl Document {
    /// Reads a document. The tree keeps the input and refers to it: give `Bytes` or a `Vec` to copy nothing.
    ///
    /// # Errors
    /// The document is not well-formed or not namespace-well-formed, exceeds a limit, or has a document type declaration
    /// where [`ParseOptions::dtd`] refuses it.
    pub fn parse(input: impl Into<Bytes>, options: &ParseOptions) -> Result<Document, XmlError> {
        let mut doc = Document::new();
        doc.parse_into(Document::ROOT, input, options)?;
        Ok(doc)
    }

    /// Reads borrowed text; the tree keeps a copy.
    ///
    /// # Errors
    /// Those of [`Document::parse`].
    pub fn parse_str(input: &str, options: &ParseOptions) -> Result<Document, XmlError> {
        Document::parse(Bytes::copy_from_slice(input.as_bytes()), options)
    }

    /// Reads a whole well-formed document and appends its element, comments and processing instructions to `parent`.
    /// Returns the element. On an error the document is as it was.
    ///
    /// # Errors
    /// Those of [`Document::parse`].
    pub fn parse_into(
        &mut self,
        parent: NodeId,
        input: impl Into<Bytes>,
        options: &ParseOptions,
    ) -> Result<NodeId, XmlError> {
        let decoded = encoding::decode(input, options.charset.as_deref())?;
        let text = decoded.text;
        let total = options.limits.total.min(u32::MAX as usize - 1);
        if text.len() > total {
            let message = format!("the limit `total` ({total}) is exceeded");
            return Err(XmlError { kind: ErrorKind::Limit, message, position: Default::default() });
        }
        let before = self.nodes.len();
        let (ns_before, side_before) = (self.ns.len(), self.side.len());
        let last_before = self.last_child(parent);
        let own_source = self.source.is_empty();
        let was_unordered = self.unordered;
        self.note_append(parent);
        if own_source {
            self.source = text.clone();
            self.characters.take();
            if self.base_uri.is_none() {
                self.base_uri = options.base_uri.as_deref().map(Into::into);
            }
        }
        // Messages have a node per 11 to 20 bytes; growing the arena would copy them again and again.
        self.nodes.reserve((text.len() / 12).min(options.limits.nodes));
        let mut parser = Parser::new(self, options, own_source);
        let result = parser.document(&text, parent);
        parser.finish();
        match result {
            Ok(root) => {
                self.as_read = before == 1 && parent == Document::ROOT;
                if options.positions && own_source {
                    self.lines.clear();
                    self.lines.push(0);
                    self.lines.extend(memchr::memchr_iter(b'\n', &text).map(|i| i as u32 + 1));
                }
                Ok(root)
            }
            Err(fault) => {
                self.nodes.truncate(before);
                self.ns.truncate(ns_before);
                self.side.truncate(side_before);
                self.spans.truncate(before.min(self.spans.len()));
                self.extents.clear();
                self.unordered = was_unordered;
                match last_before {
                    Some(last) => {
                        let first = self.nodes[parent.index()].a;
                        self.nodes[last.index()].next = NIL;
                        self.nodes[first as usize].prev = last.0;
                    }
                    None => self.nodes[parent.index()].a = NIL,
                }
                if own_source {
                    self.source = Bytes::new();
                }
                Err(fault.locate(&text))
            }
        }
    }
}

/// An element whose end tag has not come.
#[derive(Copy, Clone)]
struct Open {
    node: u32,
    last_child: u32,
    /// The mark to undo its bindings.
    mark: u32,
    /// The name as written.
    qname: u32,
    /// Its index in the extents, if they are kept.
    extent: u32,
    /// Whitespace-only text here is left out.
    strip: bool,
    /// `xml:space="preserve"` is in force.
    preserve: bool,
}

/// Buffers that outlive one document.
#[derive(Default)]
struct Scratch {
    attributes: Vec<RawAttribute>,
    stack: Vec<Open>,
    bindings: Bindings,
    seen: Seen,
}

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Text collected for the next text node.
#[derive(Copy, Clone)]
enum Pending {
    None,
    /// A slice of the source.
    Slice(usize, usize),
    /// From here to the end of the side buffer.
    Side(usize),
}

struct Parser<'a> {
    doc: &'a mut Document,
    options: &'a ParseOptions,
    limits: &'a Limits,
    s: Box<Scratch>,
    pending: Pending,
    /// Offsets of the current input are offsets of the document's source.
    slices: bool,
    /// `]]>` occurs in the current input.
    cdata_end: bool,
    positions: bool,
    extents: bool,
    /// The last start tag, as a qualified name.
    last_tag: u32,
    /// Inside an entity: the place of its reference in the document.
    within: Option<NodeSpan>,
    dtd: Option<Box<DtdState>>,
}

impl<'a> Parser<'a> {
    fn new(doc: &'a mut Document, options: &'a ParseOptions, slices: bool) -> Parser<'a> {
        let mut s = SCRATCH.take().unwrap_or_default();
        s.bindings.reset();
        s.stack.clear();
        if options.positions && slices {
            doc.spans.resize(doc.nodes.len(), NodeSpan::default());
        }
        Parser {
            positions: options.positions && slices,
            extents: options.extents && slices && options.strip_space.is_none(),
            doc,
            options,
            limits: &options.limits,
            s,
            pending: Pending::None,
            slices,
            cdata_end: true,
            last_tag: XMLNS_QNAME,
            within: None,
            dtd: None,
        }
    }

    fn finish(self) {
        SCRATCH.set(Some(self.s));
    }

    /// Prolog, root element, epilog ([1]).
    fn document(&mut self, input: &[u8], parent: NodeId) -> Res<NodeId> {
        self.cdata_end = survey(input)?.cdata_end;
        let last_child = self.doc.last_child(parent).map_or(NIL, |n| n.0);
        let base =
            Open { node: parent.0, last_child, mark: 0, qname: 0, extent: 0, strip: false, preserve: false };
        self.s.stack.push(base);
        let mut p = 0;
        let mut standalone = false;
        if input.starts_with(b"<?xml") && input.get(5).is_some_and(|&b| crate::is_space(b)) {
            let decl = lex::xml_decl(input, false)?;
            standalone = decl.standalone == Some(true);
            p = decl.end;
        }
        let mut doctype = false;
        loop {
            p = lex::spaces(input, p);
            match self.misc(input, p)? {
                Some(e) => p = e,
                None if input[p..].starts_with(b"<!DOCTYPE") => {
                    if doctype {
                        return syntax("a second document type declaration", p);
                    }
                    doctype = true;
                    p = self.doctype(input, p, standalone)?;
                }
                None => break,
            }
        }
        if p == input.len() {
            return end("the prolog: there is no root element", p);
        }
        if input[p] != b'<' {
            return syntax("text outside the root element", p);
        }
        if input[p + 1..].first() == Some(&b'!') {
            return syntax("expected the root element, a comment or a processing instruction", p);
        }
        let root = NodeId(self.doc.nodes.len() as u32);
        p = self.start_element(input, p + 1)?;
        if self.s.stack.len() > 1 {
            p = self.content(input, p, 1, true)?;
        }
        loop {
            p = lex::spaces(input, p);
            if p == input.len() {
                break;
            }
            match self.misc(input, p)? {
                Some(e) => p = e,
                None if input[p] == b'<' => return syntax("markup behind the root element", p),
                None => return syntax("text behind the root element", p),
            }
        }
        self.close_links();
        if let Some(dtd) = self.dtd.take() {
            self.doc.dtd = Some(Box::new(dtd.into_facts()));
        }
        Ok(root)
    }

    /// A comment or processing instruction outside the root element; `None` for anything else.
    fn misc(&mut self, input: &[u8], p: usize) -> Res<Option<usize>> {
        if input[p..].starts_with(b"<!--") {
            return self.comment(input, p).map(Some);
        }
        if input[p..].starts_with(b"<?") {
            return self.pi(input, p).map(Some);
        }
        Ok(None)
    }

    fn doctype(&mut self, input: &[u8], p: usize, standalone: bool) -> Res<usize> {
        if matches!(self.options.dtd, Dtd::Refuse) {
            return fault(ErrorKind::Doctype, "a document type declaration is not allowed here", p);
        }
        let mut dtd = Box::new(DtdState::new(self.options, standalone));
        let end = dtd.doctype(input, p)?;
        // Comments and processing instructions in the declaration are no part of the tree.
        self.dtd = Some(dtd);
        // A part of the text alone would lack what it refers to.
        self.extents = false;
        Ok(end)
    }

    /// Content ([43]) from `p`. In the document (`main`) until the element above `floor` is closed, in an entity
    /// until the end of the input.
    fn content(&mut self, input: &[u8], mut p: usize, floor: usize, main: bool) -> Res<usize> {
        loop {
            let e = text_end(input, p);
            if e > p {
                if self.cdata_end
                    && let Some(i) = memchr::memmem::find(&input[p..e], b"]]>")
                {
                    return syntax("`]]>` in text", p + i);
                }
                self.push_slice(input, p, e);
            }
            p = e;
            let Some(&b) = input.get(p) else {
                if self.s.stack.len() > floor {
                    let open = self.s.stack[self.s.stack.len() - 1];
                    let name = self.doc.names.raw_of(open.qname);
                    return fault(
                        ErrorKind::UnexpectedEnd,
                        format!("the document ends inside the element `{name}`"),
                        p,
                    );
                }
                return Ok(p);
            };
            if b == b'<' {
                let Some(&next) = input.get(p + 1) else { return end("a tag", p + 1) };
                match next {
                    b'/' => {
                        p = self.end_element(input, p, floor)?;
                        if main && self.s.stack.len() == floor {
                            return Ok(p);
                        }
                    }
                    b'!' => p = self.bang(input, p)?,
                    b'?' => p = self.pi(input, p)?,
                    _ => p = self.start_element(input, p + 1)?,
                }
            } else if b == b'&' {
                p = self.reference(input, p)?;
            } else {
                // A carriage return: a line end, with or without line feed.
                self.push_str("\n");
                p += 1 + usize::from(input.get(p + 1) == Some(&b'\n'));
            }
        }
    }

    #[inline(always)]
    fn start_element(&mut self, input: &[u8], at: usize) -> Res<usize> {
        let names = &mut self.doc.names;
        let (qname, name_end) = names.qname_behind(self.last_tag, input, at, self.limits, lex::START_TAG)?;
        self.last_tag = qname;
        let tag =
            lex::rest_of_start_tag(input, (qname, name_end), names, self.limits, &mut self.s.attributes)?;
        self.flush(at - 1)?;
        if self.s.stack.len() > self.limits.depth {
            return limit("depth", self.limits.depth, at);
        }
        if self.doc.nodes.len() + self.s.attributes.len() >= self.limits.nodes {
            return limit("nodes", self.limits.nodes, at);
        }
        let mark = self.s.bindings.mark();
        let mut first_ns = 0;
        let has_attributes = !self.s.attributes.is_empty() || self.dtd.is_some();
        if has_attributes {
            first_ns = self.declarations(input, qname)?;
        }
        let prefix = self.doc.names.prefix_of(qname);
        let uri = self.s.bindings.get(prefix);
        if uri == UNBOUND || prefix == XMLNS_PREFIX {
            return unbound(self.doc.names.prefix_str(prefix), at);
        }
        let name = self.doc.names.expand(qname, uri);
        let id = self.doc.nodes.len() as u32;
        let Some(&Open { node: parent, last_child, strip, preserve, .. }) = self.s.stack.last() else {
            return syntax("an element outside the document", at);
        };
        let mut node = Node { prefix, name, ns: first_ns, ..Node::new(NodeKind::Element, parent) };
        self.link(&mut node, id, parent, last_child);
        self.doc.nodes.push(node);
        if self.positions {
            let span = NodeSpan { start: at as u32 - 1, end: tag.end as u32, ..NodeSpan::default() };
            self.doc.spans.push(self.within.unwrap_or(span));
        }
        let extent = self.doc.extents.len() as u32;
        if self.extents {
            self.doc.extents.push(Extent { node: id, start: at as u32 - 1, end: 0 });
        }
        let mut open = Open { node: id, last_child: NIL, mark, qname, extent, strip, preserve };
        if has_attributes {
            self.attributes(input, id, qname, &mut open)?;
        }
        if let Some(strip) = &self.options.strip_space {
            let names = &self.doc.names;
            open.strip = !open.preserve && strip.0(names.uri_str(uri), names.local_of(name));
        }
        if tag.empty {
            self.s.bindings.rewind(mark);
            self.ends(extent, tag.end);
            return Ok(tag.end);
        }
        if let Some(end) = self.leaf_element(input, tag.end, &open) {
            self.s.bindings.rewind(mark);
            self.ends(extent, end);
            return Ok(end);
        }
        self.s.stack.push(open);
        Ok(tag.end)
    }

    /// Notes where an element ends.
    #[inline(always)]
    fn ends(&mut self, extent: u32, at: usize) {
        if self.extents
            && let Some(extent) = self.doc.extents.get_mut(extent as usize)
        {
            extent.end = at as u32;
        }
    }

    /// The form of most elements of messages: one piece of text and the end tag, read at once. `None`: anything else,
    /// or something that needs a closer look.
    #[inline(always)]
    fn leaf_element(&mut self, input: &[u8], from: usize, open: &Open) -> Option<usize> {
        let to = text_end(input, from);
        if input.get(to..to + 2) != Some(b"</")
            || !self.slices
            || self.cdata_end
            || self.positions
            || open.strip
        {
            return None;
        }
        let close = self.doc.names.ends(open.qname, input, to + 2)?;
        let id = self.doc.nodes.len();
        if input.get(close) != Some(&b'>') || to - from > self.limits.text_length || id >= self.limits.nodes {
            return None;
        }
        if to > from {
            let id = id as u32;
            let (a, b) = (from as u32, (to - from) as u32);
            self.doc.nodes[open.node as usize].a = id;
            self.doc.nodes.push(Node { prev: id, a, b, ..Node::new(NodeKind::Text, open.node) });
        }
        Some(close + 1)
    }

    /// Links a new node as last child of the open element.
    #[inline(always)]
    fn link(&mut self, node: &mut Node, id: u32, parent: u32, last_child: u32) {
        if last_child == NIL {
            self.doc.nodes[parent as usize].a = id;
            node.prev = id;
        } else {
            self.doc.nodes[last_child as usize].next = id;
            node.prev = last_child;
        }
        if let Some(open) = self.s.stack.last_mut() {
            open.last_child = id;
        }
    }

    /// The first child of the innermost open element refers to the last one.
    #[inline(always)]
    fn close_links(&mut self) {
        if let Some(open) = self.s.stack.last()
            && open.last_child != NIL
        {
            let first = self.doc.nodes[open.node as usize].a;
            self.doc.nodes[first as usize].prev = open.last_child;
        }
    }

    /// Interns the names of the attributes and binds the prefixes declared among them. Returns 1 + the first
    /// declaration, 0 without.
    fn declarations(&mut self, input: &[u8], element: u32) -> Res<u32> {
        let mut first = 0;
        self.s.seen.next_element();
        for i in 0..self.s.attributes.len() {
            let a = self.s.attributes[i];
            let at = a.name as usize;
            let qname = a.qname;
            let declared = self.doc.names.prefix_of(qname);
            if qname != XMLNS_QNAME && declared != XMLNS_PREFIX {
                continue;
            }
            let name = self.doc.names.expand(qname, XMLNS_URI);
            if !self.s.seen.first(name) {
                return duplicate(self.doc.names.raw_of(qname), at);
            }
            if a.plain {
                let value = lex::text(&input[a.value as usize..a.value_end as usize]);
                self.declare(qname, value, at, &mut first)?;
            } else {
                let mut value = String::new();
                self.value(input, &a, &mut value)?;
                self.declare(qname, &value, at, &mut first)?;
            }
        }
        if let Some(defaults) =
            self.dtd.as_ref().and_then(|d| d.attributes_of(self.doc.names.raw_of(element)))
        {
            for default in defaults.iter() {
                let is_declaration = default.name == "xmlns" || default.name.starts_with("xmlns:");
                let (true, Some(value)) = (is_declaration, &default.default) else { continue };
                let qname = self.doc.names.qname(&default.name, 0)?;
                let name = self.doc.names.expand(qname, XMLNS_URI);
                if self.s.seen.first(name) {
                    self.declare(qname, value, 0, &mut first)?;
                }
            }
        }
        Ok(first)
    }

    /// Binds one prefix (Namespaces 1.0, 3).
    fn declare(&mut self, qname: u32, value: &str, at: usize, first: &mut u32) -> Res<()> {
        let (prefix, uri) = self.doc.names.bind(&mut self.s.bindings, qname, value, at)?;
        if self.s.bindings.count() > self.limits.namespaces {
            return limit("namespaces", self.limits.namespaces, at);
        }
        self.doc.ns.push(NsDecl { prefix, uri, next: 0 });
        let new = self.doc.ns.len() as u32;
        if *first == 0 {
            *first = new;
        } else {
            self.doc.ns[new as usize - 2].next = new;
        }
        Ok(())
    }

    /// Adds the attribute nodes of the element `id`, which was added last.
    fn attributes(&mut self, input: &[u8], id: u32, element: u32, open: &mut Open) -> Res<()> {
        let start = id + 1;
        // Declarations were checked for duplicates before; attributes are different names from them.
        for i in 0..self.s.attributes.len() {
            let a = self.s.attributes[i];
            let at = a.name as usize;
            let prefix = self.doc.names.prefix_of(a.qname);
            if a.qname == XMLNS_QNAME || prefix == XMLNS_PREFIX {
                continue;
            }
            let name = if prefix == 0 {
                self.doc.names.plain(a.qname)
            } else {
                let uri = self.s.bindings.get(prefix);
                if uri == UNBOUND {
                    return unbound(self.doc.names.prefix_str(prefix), at);
                }
                self.doc.names.expand(a.qname, uri)
            };
            if !self.s.seen.first(name) {
                return duplicate(self.doc.names.raw_of(a.qname), at);
            }
            let mut node = Node { prefix, name, ..Node::new(NodeKind::Attribute, id) };
            if a.plain && self.slices && self.dtd.is_none() {
                node.a = a.value;
                node.b = a.value_end - a.value;
            } else {
                self.slow_value(input, &a, element, &mut node)?;
            }
            if prefix == XML_PREFIX && self.doc.names.local_of(name) == "space" {
                match self.doc.value(&node) {
                    "preserve" => open.preserve = true,
                    "default" => open.preserve = false,
                    _ => {}
                }
            }
            self.push_attribute(node, start);
            if self.positions {
                let span =
                    NodeSpan { start: a.name, end: a.name_end, value_start: a.value, value_end: a.value_end };
                self.doc.spans.push(self.within.unwrap_or(span));
            }
        }
        if self.dtd.is_some() {
            self.default_attributes(id, element)?;
        }
        let end = self.doc.nodes.len() as u32;
        if end > start {
            self.doc.nodes[id as usize].b = start;
            self.doc.nodes[start as usize].prev = end - 1;
        }
        Ok(())
    }

    /// Adds an attribute; its element's first one has the id `start`.
    #[inline]
    fn push_attribute(&mut self, mut node: Node, start: u32) {
        let id = self.doc.nodes.len() as u32;
        if id > start {
            node.prev = id - 1;
            self.doc.nodes[id as usize - 1].next = id;
        }
        self.doc.nodes.push(node);
    }

    /// The value of an attribute that is not a slice of the source, or may have a declared type.
    fn slow_value(&mut self, input: &[u8], a: &RawAttribute, element: u32, node: &mut Node) -> Res<()> {
        let from = self.doc.side.len();
        let mut side = std::mem::take(&mut self.doc.side);
        let result = self.value(input, a, &mut side);
        self.doc.side = side;
        result?;
        if let Some(dtd) = &mut self.dtd {
            let names = &self.doc.names;
            if let Some(decl) = dtd.attribute_of(names.raw_of(element), names.raw_of(a.qname)) {
                let kind = decl.kind;
                if kind != AttributeKind::Cdata {
                    lex::collapse(&mut self.doc.side, from);
                }
                let value = &self.doc.side[from..];
                match kind {
                    AttributeKind::Id => {
                        node.flags |= IS_ID;
                        dtd.facts.ids.entry(value.into()).or_insert(NodeId(node.parent));
                    }
                    AttributeKind::Reference => {
                        // The attribute is the next node.
                        let attribute = NodeId(self.doc.nodes.len() as u32);
                        for token in value.split_ascii_whitespace() {
                            dtd.facts.references.entry(token.into()).or_default().push(attribute);
                        }
                    }
                    AttributeKind::Cdata | AttributeKind::Other => {}
                }
            }
        }
        node.flags |= SIDE;
        node.a = from as u32;
        node.b = (self.doc.side.len() - from) as u32;
        if node.b as usize > self.limits.text_length {
            return limit("text_length", self.limits.text_length, a.value as usize);
        }
        self.check_side(a.value as usize)
    }

    fn value(&mut self, input: &[u8], a: &RawAttribute, out: &mut String) -> Res<()> {
        let (at, to) = (a.value as usize, a.value_end as usize);
        if a.plain {
            out.push_str(lex::text(&input[at..to]));
            return Ok(());
        }
        let dtd = &mut self.dtd;
        let limits = self.limits;
        lex::attribute_value(input, at, to, limits, out, &mut |name, at, out| match dtd {
            Some(dtd) => dtd.entity_in_value(name, at, out),
            None => undeclared(name, at),
        })
    }

    /// Adds the attributes the DTD has defaults for.
    fn default_attributes(&mut self, id: u32, element: u32) -> Res<()> {
        let raw = self.doc.names.raw_of(element);
        let Some(defaults) = self.dtd.as_ref().and_then(|d| d.attributes_of(raw)) else { return Ok(()) };
        for decl in defaults.iter() {
            let Some(value) = &decl.default else { continue };
            if decl.name == "xmlns" || decl.name.starts_with("xmlns:") {
                continue;
            }
            let at = self.s.attributes.first().map_or(0, |a| a.name as usize);
            let qname = self.doc.names.qname(&decl.name, at)?;
            let prefix = self.doc.names.prefix_of(qname);
            let name = if prefix == 0 {
                self.doc.names.plain(qname)
            } else {
                match self.s.bindings.get(prefix) {
                    UNBOUND => return unbound(self.doc.names.prefix_str(prefix), at),
                    uri => self.doc.names.expand(qname, uri),
                }
            };
            if !self.s.seen.first(name) {
                continue;
            }
            let (a, b) = self.doc.store(value);
            let flags = SIDE | DEFAULTED;
            let node = Node { prefix, name, flags, a, b, ..Node::new(NodeKind::Attribute, id) };
            self.push_attribute(node, id + 1);
            if self.positions {
                let span = self.doc.spans[id as usize];
                self.doc.spans.push(span);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn end_element(&mut self, input: &[u8], p: usize, floor: usize) -> Res<usize> {
        self.flush(p)?;
        let at = p + 2;
        if self.s.stack.len() <= floor {
            return syntax("an end tag without start tag", p);
        }
        let open = self.s.stack[self.s.stack.len() - 1];
        let e = match self.doc.names.ends(open.qname, input, at) {
            Some(e) => e,
            None => self.other_end_tag(input, at, open.qname)?,
        };
        let close = lex::spaces(input, e);
        if lex::byte(input, close, "an end tag")? != b'>' {
            return syntax("expected `>` at the end of an end tag", close);
        }
        self.close_links();
        self.s.stack.pop();
        self.s.bindings.rewind(open.mark);
        self.ends(open.extent, close + 1);
        Ok(close + 1)
    }

    /// An end tag close to the end of the input, or a wrong one.
    #[cold]
    fn other_end_tag(&mut self, input: &[u8], at: usize, qname: u32) -> Res<usize> {
        let name = self.doc.names.raw_of(qname);
        let e = at + name.len();
        if input.get(at..e) == Some(name.as_bytes())
            && input.get(e).is_none_or(|&b| !crate::chars::NAME_BYTE[b as usize])
        {
            return Ok(e);
        }
        let found = lex::name(input, at, self.limits, "an end tag")?;
        let found = lex::text(&input[at..found]);
        syntax(format!("expected `</{name}>`, found `</{found}`"), at - 2)
    }

    /// `<!` in content: a comment or a CDATA section.
    fn bang(&mut self, input: &[u8], p: usize) -> Res<usize> {
        if input[p..].starts_with(b"<!--") {
            return self.comment(input, p);
        }
        if input[p..].starts_with(b"<![CDATA[") {
            let start = p + 9;
            let Some(len) = memchr::memmem::find(&input[start..], b"]]>") else {
                return end("a CDATA section", input.len());
            };
            let data = &input[start..start + len];
            if memchr::memchr(b'\r', data).is_some() {
                let mut lines = String::with_capacity(len);
                lex::push_lines(&mut lines, lex::text(data));
                self.push_str(&lines);
            } else if len > 0 {
                self.push_slice(input, start, start + len);
            }
            return Ok(start + len + 3);
        }
        if b"<!--".starts_with(&input[p..]) || b"<![CDATA[".starts_with(&input[p..]) {
            return end("markup", input.len());
        }
        syntax("expected a comment or a CDATA section", p)
    }

    fn comment(&mut self, input: &[u8], p: usize) -> Res<usize> {
        self.flush(p)?;
        let e = lex::comment(input, p + 4, 0)?;
        self.value_node(NodeKind::Comment, 0, input, p, p + 4, e, e + 3)?;
        Ok(e + 3)
    }

    fn pi(&mut self, input: &[u8], p: usize) -> Res<usize> {
        self.flush(p)?;
        let pi = lex::pi(input, p + 2, 0, self.limits)?;
        let target = lex::text(&input[p + 2..pi.target_end]);
        let name = self.doc.names.name(NO_URI, target);
        self.value_node(NodeKind::ProcessingInstruction, name, input, p, pi.data, pi.data_end, pi.end)?;
        Ok(pi.end)
    }

    /// Adds a comment or processing instruction with the value `input[from..to]`.
    #[allow(clippy::too_many_arguments)]
    fn value_node(
        &mut self,
        kind: NodeKind,
        name: u32,
        input: &[u8],
        start: usize,
        from: usize,
        to: usize,
        end: usize,
    ) -> Res<()> {
        if to - from > self.limits.text_length {
            return limit("text_length", self.limits.text_length, from);
        }
        let raw = &input[from..to];
        let mut flags = 0;
        let (mut a, mut b) = (from as u32, (to - from) as u32);
        if !self.slices || memchr::memchr(b'\r', raw).is_some() {
            flags = SIDE;
            a = self.doc.side.len() as u32;
            lex::push_lines(&mut self.doc.side, lex::text(raw));
            b = self.doc.side.len() as u32 - a;
            self.check_side(from)?;
        }
        let span = NodeSpan { start: start as u32, end: end as u32, ..NodeSpan::default() };
        self.leaf(Node { name, flags, a, b, ..Node::new(kind, 0) }, span, start)
    }

    /// Adds a node without children as last child of the open element.
    #[inline(always)]
    fn leaf(&mut self, mut node: Node, span: NodeSpan, at: usize) -> Res<()> {
        let id = self.doc.nodes.len() as u32;
        if id as usize >= self.limits.nodes {
            return limit("nodes", self.limits.nodes, at);
        }
        let Some(&Open { node: parent, last_child, .. }) = self.s.stack.last() else { return Ok(()) };
        node.parent = parent;
        self.link(&mut node, id, parent, last_child);
        self.doc.nodes.push(node);
        if self.positions {
            self.doc.spans.push(self.within.unwrap_or(span));
        }
        Ok(())
    }

    /// The side buffer is addressed with 32 bits.
    fn check_side(&self, at: usize) -> Res<()> {
        if self.doc.side.len() >= u32::MAX as usize { limit("total", u32::MAX as usize, at) } else { Ok(()) }
    }

    #[inline(always)]
    fn push_slice(&mut self, input: &[u8], from: usize, to: usize) {
        if let (Pending::None, true) = (self.pending, self.slices) {
            self.pending = Pending::Slice(from, to);
        } else {
            self.push_str(lex::text(&input[from..to]));
        }
    }

    /// Appends text that is not a slice of the source.
    fn push_str(&mut self, text: &str) {
        match self.pending {
            Pending::Side(_) => {}
            Pending::None => self.pending = Pending::Side(self.doc.side.len()),
            Pending::Slice(from, to) => {
                self.pending = Pending::Side(self.doc.side.len());
                let Document { side, source, .. } = &mut *self.doc;
                side.push_str(lex::text(&source[from..to]));
            }
        }
        self.doc.side.push_str(text);
    }

    /// Makes a text node of the collected text; `at` is its end.
    #[inline(always)]
    fn flush(&mut self, at: usize) -> Res<()> {
        let (flags, a, b) = match self.pending {
            Pending::None => return Ok(()),
            Pending::Slice(from, to) => (0, from, to - from),
            Pending::Side(from) => (SIDE, from, self.doc.side.len() - from),
        };
        self.pending = Pending::None;
        if b > self.limits.text_length {
            return limit("text_length", self.limits.text_length, at);
        }
        if b == 0 {
            return Ok(());
        }
        if flags != 0 {
            self.check_side(at)?;
        }
        let node = Node { flags, a: a as u32, b: b as u32, ..Node::new(NodeKind::Text, 0) };
        if self.options.strip_space.is_some()
            && self.s.stack.last().is_some_and(|open| open.strip)
            && self.doc.value(&node).bytes().all(crate::is_space)
        {
            return Ok(());
        }
        let start = if flags == 0 { a } else { at.saturating_sub(b) };
        self.leaf(node, NodeSpan { start: start as u32, end: at as u32, ..NodeSpan::default() }, at)
    }

    fn reference(&mut self, input: &[u8], p: usize) -> Res<usize> {
        match lex::reference(input, p, self.limits)? {
            (Reference::Char(c), e) => {
                self.push_str(c.encode_utf8(&mut [0; 4]));
                Ok(e)
            }
            (Reference::Entity, e) => {
                self.entity(lex::text(&input[p + 1..e - 1]), p, e)?;
                Ok(e)
            }
        }
    }

    /// A general entity in content: its replacement text is content by itself.
    fn entity(&mut self, name: &str, at: usize, end: usize) -> Res<()> {
        let Some(dtd) = &mut self.dtd else { return undeclared(name, at) };
        let Some(text) = dtd.enter(name, at)? else { return Ok(()) };
        let span = NodeSpan { start: at as u32, end: end as u32, ..NodeSpan::default() };
        let outer = (self.slices, self.cdata_end, self.within);
        self.slices = false;
        self.cdata_end = true;
        self.within.get_or_insert(span);
        let floor = self.s.stack.len();
        let result = self.content(text.as_bytes(), 0, floor, false);
        (self.slices, self.cdata_end, self.within) = outer;
        if let Some(dtd) = &mut self.dtd {
            dtd.leave();
        }
        match result {
            Ok(_) => Ok(()),
            Err(inner) => fault_in_entity(*inner, name, at),
        }
    }
}

#[cold]
fn fault_in_entity(inner: Fault, name: &str, at: usize) -> Res<()> {
    let kind = if inner.kind == ErrorKind::UnexpectedEnd { ErrorKind::Syntax } else { inner.kind };
    fault(kind, format!("{} (in the entity `{name}`)", inner.message), at)
}

#[cold]
fn undeclared<T>(name: &str, at: usize) -> Res<T> {
    fault(ErrorKind::Entity, format!("the entity `{name}` is not declared"), at)
}

#[cold]
fn unbound<T>(prefix: &str, at: usize) -> Res<T> {
    fault(ErrorKind::Namespace, format!("the prefix `{prefix}` is not declared"), at)
}

#[cold]
fn duplicate<T>(name: &str, at: usize) -> Res<T> {
    fault(ErrorKind::Syntax, format!("the attribute `{name}` is there twice"), at)
}
