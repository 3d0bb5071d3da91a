//! Canonical XML 1.0 and 1.1, and Exclusive XML Canonicalization 1.0, with and without comments: of a document, of a
//! subtree, or of any set of nodes.

use crate::names::{Bindings, NO_PREFIX, NO_URI, PrefixId, UNBOUND, UriId, XML_PREFIX, XML_URI};
use crate::serialize::{HEXADECIMAL, push_attribute_with, push_text_with};
use crate::{Document, NodeId, NodeKind, ParseOptions, XmlError};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// Which canonical form.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// `http://www.w3.org/TR/2001/REC-xml-c14n-20010315`
    #[default]
    Inclusive10,
    /// `http://www.w3.org/2006/12/xml-c14n11`
    Inclusive11,
    /// `http://www.w3.org/2001/10/xml-exc-c14n#`
    Exclusive,
}

/// Options of canonicalization. The default: Canonical XML 1.0 without comments.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Whether comments are kept.
    pub comments: bool,
    /// Exclusive only: prefixes handled as Canonical XML 1.0 does (`InclusiveNamespaces/@PrefixList`); the default
    /// namespace is `#default`.
    pub inclusive_prefixes: Vec<String>,
}

/// A set of nodes.
pub trait Selection {
    /// Whether the node (an attribute is one too) is in the set.
    fn has(&self, node: NodeId) -> bool;
    /// Whether the namespace node for `prefix` (`""` the default namespace) of `element` is in the set.
    fn has_namespace(&self, element: NodeId, prefix: &str) -> bool;
}

/// A set of nodes, one by one: what an XPath expression selected.
#[derive(Clone, Debug, Default)]
pub struct NodeSet {
    nodes: HashSet<NodeId>,
    namespaces: HashMap<NodeId, Vec<Box<str>>>,
}

impl NodeSet {
    /// Adds a node of the tree.
    pub fn add(&mut self, node: NodeId) {
        self.nodes.insert(node);
    }

    /// Adds a namespace node; the default namespace has the prefix `""`.
    pub fn add_namespace(&mut self, element: NodeId, prefix: &str) {
        self.namespaces.entry(element).or_default().push(prefix.into());
    }
}

impl Selection for NodeSet {
    fn has(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }

    fn has_namespace(&self, element: NodeId, prefix: &str) -> bool {
        self.namespaces.get(&element).is_some_and(|list| list.iter().any(|p| **p == *prefix))
    }
}

/// The canonical form, with comments, of a document as text: equal forms mean the same document.
///
/// # Errors
/// It is not well-formed.
pub fn of_text(text: impl Into<Vec<u8>>, algorithm: Algorithm) -> Result<String, XmlError> {
    let document = Document::parse(text.into(), &ParseOptions::default())?;
    let mut out = Vec::new();
    let options = Options { algorithm, comments: true, ..Options::default() };
    canonicalize(&document, Document::ROOT, &options, &mut out);
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Appends the canonical form of `node` and all that is in it.
pub fn canonicalize(doc: &Document, node: NodeId, options: &Options, out: &mut Vec<u8>) {
    _ = run(doc, node, None, options, out, None);
}

/// As [`canonicalize`], piece by piece, for a digest: the whole form is never in memory, except for a text node that is long
/// itself.
///
/// The form can be much longer than the document, because each element may have to declare a long namespace again. Where that matters, `to`
/// ends the work with [`ControlFlow::Break`], which is returned.
pub fn canonicalize_to(doc: &Document, node: NodeId, options: &Options, to: Sink<'_>) -> ControlFlow<()> {
    let mut out = Vec::with_capacity(PIECE + PIECE / 4);
    run(doc, node, None, options, &mut out, Some(&mut *to))?;
    to(&out)
}

/// Takes pieces of the canonical form as they are made, and says whether it goes on.
pub type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> ControlFlow<()>;

/// The size in bytes from which on a piece is passed on.
const PIECE: usize = 16 << 10;

/// Appends the canonical form of the nodes of the document that `selection` has.
pub fn canonicalize_set(doc: &Document, selection: &dyn Selection, options: &Options, out: &mut Vec<u8>) {
    _ = run(doc, Document::ROOT, Some(selection), options, out, None);
}

fn run(
    doc: &Document,
    top: NodeId,
    selection: Option<&dyn Selection>,
    options: &Options,
    out: &mut Vec<u8>,
    to: Option<Sink<'_>>,
) -> ControlFlow<()> {
    let mut rendered = Bindings::default();
    rendered.reset();
    let mut inclusive = Vec::new();
    for prefix in &options.inclusive_prefixes {
        let prefix = if prefix == "#default" { "" } else { prefix };
        inclusive.extend(doc.names.find_prefix(prefix));
    }
    let mut c = Canonicalizer {
        doc,
        top,
        selection,
        algorithm: options.algorithm,
        comments: options.comments,
        inclusive,
        out,
        rendered,
        frames: Vec::new(),
        namespaces: Vec::new(),
        attributes: Vec::new(),
        past_root: false,
    };
    c.walk(to)
}

/// An attribute to write: (namespace URI, local name, prefix, value).
type Written<'a> = (&'a str, &'a str, &'a str, std::borrow::Cow<'a, str>);

/// An element that changed what is rendered.
struct Frame {
    element: NodeId,
    mark: u32,
}

struct Canonicalizer<'a> {
    doc: &'a Document,
    top: NodeId,
    selection: Option<&'a dyn Selection>,
    algorithm: Algorithm,
    comments: bool,
    inclusive: Vec<PrefixId>,
    out: &'a mut Vec<u8>,
    /// Inclusive: the namespace nodes in the set at the nearest output ancestor. Exclusive: what was rendered.
    rendered: Bindings,
    frames: Vec<Frame>,
    namespaces: Vec<(PrefixId, UriId)>,
    attributes: Vec<Written<'a>>,
    past_root: bool,
}

impl<'a> Canonicalizer<'a> {
    #[inline]
    fn has(&self, n: NodeId) -> bool {
        self.selection.is_none_or(|s| s.has(n))
    }

    fn has_namespace(&self, element: NodeId, prefix: PrefixId) -> bool {
        self.selection.is_none_or(|s| s.has_namespace(element, self.doc.names.prefix_str(prefix)))
    }

    fn walk(&mut self, mut to: Option<Sink<'_>>) -> ControlFlow<()> {
        let doc = self.doc;
        let mut n = self.top;
        loop {
            if self.out.len() >= PIECE
                && let Some(to) = &mut to
            {
                to(self.out)?;
                self.out.clear();
            }
            let has = self.has(n);
            match doc.kind(n) {
                NodeKind::Element if has => self.start(n),
                NodeKind::Text if has => push_text_with::<false>(self.out, doc.text(n), &HEXADECIMAL),
                NodeKind::Comment if has && self.comments => self.outside(n, |c| {
                    c.out.extend_from_slice(b"<!--");
                    c.out.extend_from_slice(doc.text(n).as_bytes());
                    c.out.extend_from_slice(b"-->");
                }),
                NodeKind::ProcessingInstruction if has => self.outside(n, |c| {
                    c.out.extend_from_slice(b"<?");
                    c.out.extend_from_slice(doc.local(n).as_bytes());
                    if !doc.text(n).is_empty() {
                        c.out.push(b' ');
                        c.out.extend_from_slice(doc.text(n).as_bytes());
                    }
                    c.out.extend_from_slice(b"?>");
                }),
                _ => {}
            }
            if let Some(child) = doc.first_child(n) {
                n = child;
                continue;
            }
            loop {
                if doc.kind(n) == NodeKind::Element {
                    self.end(n);
                }
                if n == self.top {
                    return ControlFlow::Continue(());
                }
                if let Some(next) = doc.next_sibling(n) {
                    n = next;
                    break;
                }
                let Some(parent) = doc.parent(n) else { return ControlFlow::Continue(()) };
                n = parent;
            }
        }
    }

    /// Writes a comment or processing instruction; outside the root element with a line end between.
    fn outside(&mut self, n: NodeId, write: impl FnOnce(&mut Self)) {
        let is_outside = self.doc.parent(n) == Some(Document::ROOT) && self.top == Document::ROOT;
        if is_outside && self.past_root {
            self.out.push(b'\n');
        }
        write(self);
        if is_outside && !self.past_root {
            self.out.push(b'\n');
        }
    }

    #[inline]
    fn name(&mut self, n: NodeId) {
        let node = self.doc.node(n);
        if node.prefix != NO_PREFIX {
            self.out.extend_from_slice(self.doc.names.prefix_str(node.prefix).as_bytes());
            self.out.push(b':');
        }
        self.out.extend_from_slice(self.doc.names.local_of(node.name).as_bytes());
    }

    fn end(&mut self, n: NodeId) {
        if self.has(n) {
            self.out.extend_from_slice(b"</");
            self.name(n);
            self.out.push(b'>');
            if let Some(frame) = self.frames.last()
                && frame.element == n
            {
                self.rendered.rewind(frame.mark);
                self.frames.pop();
            }
        }
        if self.doc.parent(n) == Some(Document::ROOT) {
            self.past_root = true;
        }
    }

    fn start(&mut self, n: NodeId) {
        let doc = self.doc;
        self.out.push(b'<');
        self.name(n);
        let mark = self.rendered.mark();
        self.namespaces.clear();
        match self.algorithm {
            Algorithm::Exclusive => self.exclusive(n),
            _ => self.inclusive(n),
        }
        if self.rendered.mark() != mark {
            self.frames.push(Frame { element: n, mark });
        }
        if !self.namespaces.is_empty() {
            self.namespaces.sort_unstable_by(|a, b| doc.names.prefix_str(a.0).cmp(doc.names.prefix_str(b.0)));
            for &(prefix, uri) in &self.namespaces {
                self.out.extend_from_slice(if prefix == NO_PREFIX { b" xmlns" } else { b" xmlns:" });
                self.out.extend_from_slice(doc.names.prefix_str(prefix).as_bytes());
                self.out.extend_from_slice(b"=\"");
                push_attribute_with::<false>(self.out, doc.names.uri_str(uri), &HEXADECIMAL);
                self.out.push(b'"');
            }
        }
        self.write_attributes(n);
        self.out.push(b'>');
    }

    /// Canonical XML 1.0, 2.3: a namespace node is written unless the nearest output ancestor has the same one.
    fn inclusive(&mut self, n: NodeId) {
        if self.selection.is_none() && self.doc.node(n).ns == 0 && n != self.top {
            return;
        }
        let scope = self.doc.scope(n);
        let mut had: Vec<(PrefixId, UriId)> =
            self.rendered.all().filter(|b| b.0 > 2 || b.0 == NO_PREFIX).collect();
        for (prefix, uri) in scope {
            if uri == NO_URI || !self.has_namespace(n, prefix) {
                continue;
            }
            had.retain(|h| h.0 != prefix);
            if self.rendered.get(prefix) != uri {
                self.namespaces.push((prefix, uri));
                self.rendered.set(prefix, uri);
            }
        }
        // Namespaces of the ancestor that this element does not have.
        for (prefix, uri) in had {
            if prefix == NO_PREFIX && uri != NO_URI {
                self.namespaces.push((NO_PREFIX, NO_URI));
                self.rendered.set(NO_PREFIX, NO_URI);
            } else if prefix != NO_PREFIX {
                self.rendered.set(prefix, UNBOUND);
            }
        }
    }

    /// Exclusive: a namespace is written where a name uses it and no output ancestor has declared it.
    fn exclusive(&mut self, n: NodeId) {
        let doc = self.doc;
        let node = doc.node(n);
        self.use_prefix(n, node.prefix, doc.names.uri_id_of(node.name));
        for a in doc.attributes(n) {
            let attribute = doc.node(a);
            if attribute.prefix != NO_PREFIX && self.has(a) {
                self.use_prefix(n, attribute.prefix, doc.names.uri_id_of(attribute.name));
            }
        }
        if self.inclusive.is_empty() {
            return;
        }
        // Below the top, what is declared further up was written there.
        let is_below = self.selection.is_none() && n != self.top;
        let pairs = match is_below {
            true => doc.declarations(n).map(|declared| (declared.prefix, declared.uri)).collect(),
            false => doc.scope(n),
        };
        for (prefix, uri) in pairs {
            if self.inclusive.contains(&prefix) {
                self.use_prefix(n, prefix, uri);
            }
        }
    }

    fn use_prefix(&mut self, n: NodeId, prefix: PrefixId, uri: UriId) {
        if prefix == XML_PREFIX || self.rendered.get(prefix) == uri {
            return;
        }
        if uri != NO_URI && !self.has_namespace(n, prefix) {
            return;
        }
        self.namespaces.push((prefix, uri));
        self.rendered.set(prefix, uri);
    }

    fn write_attributes(&mut self, n: NodeId) {
        let doc = self.doc;
        self.attributes.clear();
        for a in doc.attributes(n) {
            if self.has(a) {
                let value = std::borrow::Cow::Borrowed(doc.text(a));
                self.attributes.push((doc.namespace(a), doc.local(a), doc.prefix(a), value));
            }
        }
        let orphan = self.algorithm != Algorithm::Exclusive
            && (n == self.top || self.selection.is_some())
            && doc
                .parent(n)
                .is_some_and(|p| doc.kind(p) == NodeKind::Element && (n == self.top || !self.has(p)));
        if orphan {
            self.inherit(n);
        }
        if self.attributes.len() > 1 {
            self.attributes.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        }
        for (_, local, prefix, value) in &self.attributes {
            self.out.push(b' ');
            if !prefix.is_empty() {
                self.out.extend_from_slice(prefix.as_bytes());
                self.out.push(b':');
            }
            self.out.extend_from_slice(local.as_bytes());
            self.out.extend_from_slice(b"=\"");
            push_attribute_with::<false>(self.out, value, &HEXADECIMAL);
            self.out.push(b'"');
        }
    }

    /// Attributes in the `xml` namespace an element without its parent gets from its ancestors (1.0: 2.4; 1.1: 2.4).
    fn inherit(&mut self, n: NodeId) {
        let doc = self.doc;
        let is_xml = |a: NodeId| doc.names.uri_id_of(doc.node(a).name) == XML_URI;
        let mut inherited: Vec<&str> =
            doc.attributes(n).filter(|&a| is_xml(a)).map(|a| doc.local(a)).collect();
        let v11 = self.algorithm == Algorithm::Inclusive11;
        let mut bases: Vec<&str> = Vec::new();
        let mut contiguous = true;
        let mut at = doc.parent(n);
        while let Some(ancestor) = at {
            if doc.kind(ancestor) != NodeKind::Element {
                break;
            }
            contiguous &= self.selection.is_none() || !self.has(ancestor);
            for a in doc.attributes(ancestor).filter(|&a| is_xml(a)) {
                let local = doc.local(a);
                if v11 && local == "base" {
                    if contiguous {
                        bases.push(doc.text(a));
                    }
                    continue;
                }
                if inherited.contains(&local) || (v11 && local != "lang" && local != "space") {
                    continue;
                }
                inherited.push(local);
                self.attributes.push((crate::XML_NS, local, "xml", doc.text(a).into()));
            }
            at = doc.parent(ancestor);
        }
        if v11 && !bases.is_empty() {
            let base_attribute = doc.attribute(n, crate::XML_NS, "base");
            let mut joined = bases.pop().unwrap_or_default().to_owned();
            for reference in bases.iter().rev().copied().chain(base_attribute) {
                joined = join(&joined, reference);
            }
            self.attributes.retain(|a| a.0 != crate::XML_NS || a.1 != "base");
            if !joined.is_empty() {
                self.attributes.push((crate::XML_NS, "base", "xml", joined.into()));
            }
        }
    }
}

/// Joins two values of `xml:base`, either of which may be relative (Canonical XML 1.1, 2.4; RFC 3986, 5.2).
fn join(base: &str, reference: &str) -> String {
    let (b, r) = (split(base), split(reference));
    if r.scheme.is_some() {
        return compose(r.scheme, r.authority, &remove_dots(r.path), r.query);
    }
    if r.authority.is_some() {
        return compose(b.scheme, r.authority, &remove_dots(r.path), r.query);
    }
    if r.path.is_empty() {
        return compose(b.scheme, b.authority, &remove_dots(b.path), r.query.or(b.query));
    }
    if r.path.starts_with('/') {
        return compose(b.scheme, b.authority, &remove_dots(r.path), r.query);
    }
    // A base that ends in `..` names a directory.
    let base_path = if b.path.ends_with("..") { format!("{}/", b.path) } else { b.path.to_owned() };
    let merged = if base_path.is_empty() && b.authority.is_some() {
        format!("/{}", r.path)
    } else {
        let folder = base_path.rfind('/').map_or("", |i| &base_path[..=i]);
        format!("{folder}{}", r.path)
    };
    compose(b.scheme, b.authority, &remove_dots(&merged), r.query)
}

/// The parts of a URI reference; the fragment is dropped.
struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

fn split(uri: &str) -> Parts<'_> {
    let uri = uri.split('#').next().unwrap_or_default();
    let (uri, query) = match uri.split_once('?') {
        Some((uri, query)) => (uri, Some(query)),
        None => (uri, None),
    };
    let (scheme, rest) = match uri.find([':', '/']) {
        Some(i) if uri.as_bytes()[i] == b':' && i > 0 => (Some(&uri[..i]), &uri[i + 1..]),
        _ => (None, uri),
    };
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            (Some(&rest[..end]), &rest[end..])
        }
        None => (None, rest),
    };
    Parts { scheme, authority, path, query }
}

fn compose(scheme: Option<&str>, authority: Option<&str>, path: &str, query: Option<&str>) -> String {
    let mut out = String::new();
    if let Some(scheme) = scheme {
        out.push_str(scheme);
        out.push(':');
    }
    if let Some(authority) = authority {
        out.push_str("//");
        out.push_str(authority);
    }
    out.push_str(path);
    if let Some(query) = query {
        out.push('?');
        out.push_str(query);
    }
    out
}

/// Removes `.` and `..` where a segment before can go with them; leading `..` of a relative path stay, slashes side by
/// side become one.
fn remove_dots(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut segments: Vec<&str> = Vec::new();
    let mut folder = false;
    for segment in path.split('/') {
        folder = false;
        match segment {
            "" | "." => folder = true,
            ".." => {
                folder = true;
                if segments.last().is_some_and(|s| *s != "..") {
                    segments.pop();
                } else if !absolute {
                    segments.push("..");
                }
            }
            other => segments.push(other),
        }
    }
    let mut out = String::new();
    if absolute {
        out.push('/');
    }
    out.push_str(&segments.join("/"));
    if folder && !segments.is_empty() {
        out.push('/');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParseOptions;

    fn canonical(text: &str, path: &[usize], options: &Options) -> String {
        let doc = Document::parse(text.to_owned(), &ParseOptions::default()).unwrap();
        let mut n = Document::ROOT;
        for &i in path {
            n = doc.children(n).nth(i).unwrap();
        }
        let mut out = Vec::new();
        canonicalize(&doc, n, options, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn forms() {
        let text = "<?xml version='1.0'?><?p  d ?><!--c--><n:a xmlns:n='urn:n' xmlns='urn:d' z='1' n:b='\t&quot;' a='&lt;&gt;' xml:lang='en'><b xmlns=''/>\n<c xmlns:u='urn:u' u:x=''>&gt;&#13;</c></n:a><!--d-->";
        let inclusive = Options::default();
        let with = Options { comments: true, ..Options::default() };
        let v11 = Options { algorithm: Algorithm::Inclusive11, ..Options::default() };
        let exclusive = Options { algorithm: Algorithm::Exclusive, ..Options::default() };
        let listed = Options { inclusive_prefixes: vec!["n".into()], ..exclusive.clone() };
        let whole = "<n:a xmlns=\"urn:d\" xmlns:n=\"urn:n\" a=\"&lt;>\" z=\"1\" xml:lang=\"en\" n:b=\" &quot;\"><b xmlns=\"\"></b>\n<c xmlns:u=\"urn:u\" u:x=\"\">&gt;&#xD;</c></n:a>";
        let c =
            "<c xmlns=\"urn:d\" xmlns:n=\"urn:n\" xmlns:u=\"urn:u\" xml:lang=\"en\" u:x=\"\">&gt;&#xD;</c>";
        for (path, options, want) in [
            (&[][..], &inclusive, format!("<?p d ?>\n{whole}")),
            (&[][..], &with, format!("<?p d ?>\n<!--c-->\n{whole}\n<!--d-->")),
            (&[2, 2][..], &inclusive, c.to_owned()),
            (&[2, 2][..], &v11, c.to_owned()),
            (
                &[2, 2][..],
                &exclusive,
                "<c xmlns=\"urn:d\" xmlns:u=\"urn:u\" u:x=\"\">&gt;&#xD;</c>".to_owned(),
            ),
            (
                &[2, 2][..],
                &listed,
                "<c xmlns=\"urn:d\" xmlns:n=\"urn:n\" xmlns:u=\"urn:u\" u:x=\"\">&gt;&#xD;</c>".to_owned(),
            ),
            (&[2, 0][..], &inclusive, "<b xmlns:n=\"urn:n\" xml:lang=\"en\"></b>".to_owned()),
            (&[2, 0][..], &exclusive, "<b></b>".to_owned()),
        ] {
            assert_eq!(canonical(text, path, options), want);
        }
    }

    #[test]
    fn pieces_are_the_whole() {
        let text = format!("<a xmlns='urn:a'>{}{}</a>", "<b c='d'>e</b>".repeat(5000), "f".repeat(3 * PIECE));
        let doc = Document::parse(text, &ParseOptions::default()).unwrap();
        let options = Options { algorithm: Algorithm::Exclusive, ..Options::default() };
        let (mut whole, mut pieces, mut count) = (Vec::new(), Vec::new(), 0);
        canonicalize(&doc, Document::ROOT, &options, &mut whole);
        let end = canonicalize_to(&doc, Document::ROOT, &options, &mut |piece| {
            pieces.extend_from_slice(piece);
            count += 1;
            ControlFlow::Continue(())
        });
        assert!(end.is_continue() && whole == pieces && count > 3, "{count}");
    }

    /// With inclusive prefixes, what is in scope is not looked through again for each element that declares something: that would take hours.
    #[test]
    fn many_declarations_in_scope() {
        let outer: String = (0..250)
            .map(|depth| {
                let declarations: String = (0..250).map(|n| format!(" xmlns:p{depth}_{n}='u'")).collect();
                format!("<x{declarations}>")
            })
            .collect();
        let elements = "<x xmlns:z='u' xmlns=''><y xmlns:z='v'/></x>".repeat(50_000);
        let text = format!("{outer}{elements}{}", "</x>".repeat(250));
        let options = ParseOptions { limits: crate::Limits::trusted(), ..ParseOptions::default() };
        let doc = Document::parse(text, &options).unwrap();
        let inclusive_prefixes = vec!["z".to_owned(), "p7_7".to_owned(), "#default".to_owned()];
        let options = Options { algorithm: Algorithm::Exclusive, inclusive_prefixes, ..Options::default() };
        let mut out = Vec::new();
        canonicalize(&doc, Document::ROOT, &options, &mut out);
        let expected = format!(
            "{}<x xmlns:p7_7=\"u\">{}{}{}",
            "<x>".repeat(7),
            "<x>".repeat(242),
            "<x xmlns:z=\"u\"><y xmlns:z=\"v\"></y></x>".repeat(50_000),
            "</x>".repeat(250)
        );
        assert!(out == expected.as_bytes(), "{}", String::from_utf8_lossy(&out[..3000]));
    }

    /// Each element declares the long namespace again: the form is a thousand times as long as the document.
    #[test]
    fn pieces_end_where_they_are_not_wanted() {
        let text = format!("<a xmlns:p='{}'>{}</a>", "u".repeat(1000), "<p:b/>".repeat(10_000));
        let doc = Document::parse(text, &ParseOptions::default()).unwrap();
        let options = Options { algorithm: Algorithm::Exclusive, ..Options::default() };
        let mut length = 0;
        let end = canonicalize_to(&doc, Document::ROOT, &options, &mut |piece| {
            length += piece.len();
            if length > 100_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(end.is_break() && length < 200_000, "{length}");
    }

    #[test]
    fn bases_join() {
        for (base, reference, want) in [
            ("http://a/b/c", "d", "http://a/b/d"),
            ("http://a/b/c", "../d", "http://a/d"),
            ("http://a/b/", "", "http://a/b/"),
            ("a/b", "c", "a/c"),
            ("..", "c", "../c"),
            ("../a/", "../../b", "../../b"),
            ("a/b", "/c", "/c"),
            ("a/b", "http://x/./y", "http://x/y"),
        ] {
            assert_eq!(join(base, reference), want, "{base} {reference}");
        }
    }
}
