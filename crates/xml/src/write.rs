//! From tree to bytes.

use crate::names::{Bindings, NO_PREFIX, NO_URI, PrefixId, UNBOUND, UriId, XML_PREFIX};
use crate::serialize::{
    Serializer, WriteError, WriteOptions, push_attribute, push_comment, push_pi, push_text,
};
use crate::{Document, NodeId, NodeKind};

/// Appends `node` and its content to `out`: a document for [`Document::ROOT`] or an element; the value for an
/// attribute. Namespaces that names in a subtree use are declared, wherever they were declared before.
///
/// For Unicode encodings, such as the default: others need [`write_encoded`], because the output ends at a character that they lack.
pub fn write(doc: &Document, node: NodeId, options: &WriteOptions, out: &mut Vec<u8>) {
    // (It cannot fail in a Unicode encoding.)
    let _ = write_encoded(doc, node, options, out);
}

/// As [`write()`] in any encoding. Errors: a character that the encoding lacks, where there are no character references; the output is not
/// complete then.
pub fn write_encoded(
    doc: &Document,
    node: NodeId,
    options: &WriteOptions,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    if !options.is_plain() {
        return through_serializer(doc, node, options, out);
    }
    if options.declaration {
        // Only the declaration, which the serializer writes first.
        Serializer::new(out, options).finish()?;
    }
    let mut tree = TreeWriter::new(doc, out);
    // An estimate, to avoid reallocations: a tag takes some 16 bytes.
    let guess = (16 * doc.nodes.len()).clamp(256, 4096);
    tree.out.reserve(if node == Document::ROOT { doc.source.len().max(guess) } else { guess });
    tree.write(node, if options.inherited_namespaces { Inherit::All } else { Inherit::Nothing });
    Ok(())
}

/// Writes what stands for a character that an encoding lacks.
pub type Replace<'a> = &'a dyn Fn(char, &mut String);

/// Appends a text as the method text writes it. `replace`: what stands for a character that the encoding lacks, in ASCII; without it
/// such a character is an error.
pub fn write_text(
    text: &str,
    options: &WriteOptions,
    replace: Option<Replace<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let options =
        WriteOptions { method: crate::Method::Text, character_map: Default::default(), ..options.clone() };
    let mut replaced = String::new();
    let text = match replace {
        Some(replace) => {
            crate::serialize::replace_lacking(text, options.encoding.as_deref(), replace, &mut replaced);
            &replaced
        }
        None => text,
    };
    let mut to = Serializer::new(out, &options);
    to.text(text);
    to.finish()
}

/// The namespaces in scope at a place: pairs of prefix (`""`: the default namespace) and URI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope(pub Vec<(Box<str>, Box<str>)>);

impl Scope {
    /// The namespaces in scope at an element.
    pub fn at(doc: &Document, n: NodeId) -> Scope {
        let mut all = Vec::new();
        doc.each_in_scope_namespace(n, &mut |prefix, uri| all.push((prefix.into(), uri.into())));
        Scope(all)
    }

    /// The URI that `prefix` stands for; `""`: none.
    pub fn get(&self, prefix: &str) -> &str {
        self.0.iter().find(|(declared, _)| **declared == *prefix).map_or("", |(_, uri)| uri)
    }
}

/// The place in a text of [`write_around`] where more can be inserted.
#[derive(Clone, Debug)]
pub struct Hole {
    /// How many bytes of the text are before it.
    pub at: usize,
    /// The declarations of the start tags before it.
    pub declared: Scope,
}

/// As [`write()`] with the default options. Returns where the end tag of the element `inner` begins, which is written even if
/// it is empty; `None`: `inner` is not in `node`.
pub fn write_around(doc: &Document, node: NodeId, inner: NodeId, out: &mut Vec<u8>) -> Option<Hole> {
    let mut tree = TreeWriter::new(doc, out);
    tree.inner = Some(inner);
    tree.write(node, Inherit::Nothing);
    tree.hole
}

/// Appends an element (or a text) as a copy of it in another document would be written, in a place with the namespaces
/// `place` where the text so far declares `declared`. Its source text is written where
/// [`Document::source_of`] has it: with the same names, values and namespaces, but with its own quotes, references and
/// CDATA sections.
pub fn write_part(doc: &Document, node: NodeId, place: &Scope, declared: &Scope, out: &mut Vec<u8>) {
    if let Some(source) = doc.source_of(node) {
        return as_it_came(doc, node, source, place, declared, out);
    }
    let mut tree = TreeWriter::new(doc, out);
    for (prefix, uri) in &declared.0 {
        if let Some(prefix) = doc.names.find_prefix(prefix) {
            tree.bindings.set(prefix, doc.names.find_uri(uri).unwrap_or(ELSEWHERE));
        }
    }
    tree.write(node, Inherit::Beyond(place));
}

fn as_it_came(
    doc: &Document,
    node: NodeId,
    source: &str,
    place: &Scope,
    declared: &Scope,
    out: &mut Vec<u8>,
) {
    let end = source.bytes().position(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | b'/' | b'>'));
    let (name, rest) = source.split_at(end.unwrap_or(source.len()));
    out.extend_from_slice(name.as_bytes());
    let mut has_default = false;
    doc.each_in_scope_namespace(node, &mut |prefix, uri| {
        has_default |= prefix.is_empty();
        // A namespace of the place is not declared again, unless only the place has it and the part may use it.
        let there = declared.get(prefix) == uri || place.get(prefix) == uri && !mentions(source, prefix);
        if !there && !doc.namespace_declarations(node).any(|(p, _)| p == prefix) {
            push_declaration(out, prefix, uri);
        }
    });
    if !has_default
        && !declared.get("").is_empty()
        && !doc.namespace_declarations(node).any(|(p, _)| p.is_empty())
    {
        push_declaration(out, "", "");
    }
    out.extend_from_slice(rest.as_bytes());
}

/// Whether a text may use a prefix: the default namespace may always be used.
fn mentions(text: &str, prefix: &str) -> bool {
    prefix.is_empty()
        || memchr::memmem::find_iter(text.as_bytes(), prefix.as_bytes())
            .any(|at| text.as_bytes().get(at + prefix.len()) == Some(&b':'))
}

fn push_declaration(out: &mut Vec<u8>, prefix: &str, uri: &str) {
    if prefix.is_empty() {
        out.extend_from_slice(b" xmlns=\"");
    } else {
        out.extend_from_slice(b" xmlns:");
        out.extend_from_slice(prefix.as_bytes());
        out.extend_from_slice(b"=\"");
    }
    push_attribute(out, uri);
    out.push(b'"');
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
    /// The namespaces of the prefixes in the output.
    bindings: Bindings,
    /// Elements that declare something, and where their bindings begin.
    marks: Vec<(NodeId, u32)>,
    /// Where the names of the open elements stand in the output.
    open: Vec<(usize, usize)>,
    generated: u32,
    /// The element with the hole, and the hole.
    inner: Option<NodeId>,
    hole: Option<Hole>,
}

/// Which inherited namespaces the topmost element declares.
#[derive(Clone, Copy)]
enum Inherit<'a> {
    Nothing,
    /// All namespaces in scope.
    All,
    /// All namespaces in scope that the place does not have.
    Beyond(&'a Scope),
}

/// A text from this length on gets its place in the output at once.
const LARGE_TEXT: usize = 1 << 16;

/// A namespace that the document does not have.
const ELSEWHERE: UriId = UNBOUND - 1;

impl<'a> TreeWriter<'a> {
    fn new(doc: &'a Document, out: &'a mut Vec<u8>) -> TreeWriter<'a> {
        let mut bindings = Bindings::default();
        bindings.reset();
        let open = Vec::with_capacity(16);
        TreeWriter { doc, out, bindings, marks: Vec::new(), open, generated: 0, inner: None, hole: None }
    }

    fn write(&mut self, top: NodeId, inherit: Inherit<'_>) {
        let doc = self.doc;
        let mut n = top;
        loop {
            match doc.kind(n) {
                NodeKind::Element => {
                    self.start(n, if n == top { inherit } else { Inherit::Nothing });
                    if let Some(child) = doc.first_child(n) {
                        self.out.push(b'>');
                        n = child;
                        continue;
                    }
                    if self.inner == Some(n) {
                        self.out.push(b'>');
                        self.end(n);
                    } else {
                        self.out.extend_from_slice(b"/>");
                        self.open.pop();
                        self.unbind(n);
                    }
                }
                NodeKind::Text => {
                    let text = doc.value(doc.node(n));
                    // With room for the tags behind it: without, the first of them would double the output.
                    if text.len() >= LARGE_TEXT {
                        self.out.reserve(text.len() + 4096);
                    }
                    push_text(self.out, text);
                }
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
                    self.end(n);
                }
            }
        }
    }

    /// An end tag.
    #[inline]
    fn end(&mut self, n: NodeId) {
        if self.inner == Some(n) {
            let names = &self.doc.names;
            let all = self.bindings.all().filter(|&(prefix, uri)| {
                prefix > crate::names::XMLNS_PREFIX || prefix == NO_PREFIX && uri != NO_URI
            });
            let all = all.map(|(prefix, uri)| (names.prefix_str(prefix).into(), names.uri_str(uri).into()));
            self.hole = Some(Hole { at: self.out.len(), declared: Scope(all.collect()) });
        }
        self.out.extend_from_slice(b"</");
        if let Some((start, end)) = self.open.pop() {
            self.out.extend_from_within(start..end);
        }
        self.out.push(b'>');
        self.unbind(n);
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
    fn start(&mut self, n: NodeId, inherit: Inherit<'_>) {
        let node = *self.doc.node(n);
        let uri = self.doc.names.uri_id_of(node.name);
        let prefix = if uri == NO_URI { NO_PREFIX } else { node.prefix };
        self.out.push(b'<');
        let start = self.out.len();
        self.name(n);
        self.open.push((start, self.out.len()));
        let mark = self.bindings.mark();
        if node.ns != 0 || !matches!(inherit, Inherit::Nothing) {
            self.declarations(n, prefix, uri, inherit);
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
    fn declarations(&mut self, n: NodeId, prefix: PrefixId, uri: UriId, inherit: Inherit<'_>) {
        let doc = self.doc;
        let wanted = |p: PrefixId, u: UriId| {
            p != XML_PREFIX && (p != prefix || u == uri) && (p == NO_PREFIX || u != NO_URI)
        };
        if let Inherit::All = inherit {
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
        let Inherit::Beyond(place) = inherit else { return };
        let mut default = NO_URI;
        let declare = |writer: &mut Self, p: PrefixId, u: UriId| {
            let is_declared = doc.declarations(n).any(|decl| decl.prefix == p);
            if !is_declared && wanted(p, u) && place.get(doc.names.prefix_str(p)) != doc.names.uri_str(u) {
                writer.declare(p, u);
            }
        };
        for (p, u) in doc.scope(n) {
            match p {
                NO_PREFIX => default = u,
                _ => declare(self, p, u),
            }
        }
        declare(self, NO_PREFIX, default);
    }

    fn declare(&mut self, prefix: PrefixId, uri: UriId) {
        self.bindings.set(prefix, uri);
        let names = &self.doc.names;
        push_declaration(self.out, names.prefix_str(prefix), names.uri_str(uri));
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

fn through_serializer(
    doc: &Document,
    top: NodeId,
    options: &WriteOptions,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
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
    to.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParseOptions;
    use crate::c14n::{Algorithm, of_text};

    fn parse(text: &str, extents: bool) -> Document {
        Document::parse_str(text, &ParseOptions { extents, ..ParseOptions::default() }).expect(text)
    }

    /// What a text takes depends on itself, and not on the others of its document.
    #[test]
    fn the_output_has_room_for_what_is_written() {
        let mut doc = parse("<o><small>1</small><large/></o>", false);
        let outermost = doc.document_element().unwrap();
        let [small, large] = [0, 1].map(|at| doc.children(outermost).nth(at).unwrap());
        doc.append_text(large, &"x".repeat(10 << 20));
        assert!(to_string(&doc, small).capacity() < 8192);
        let written = to_string(&doc, large);
        assert!(written.capacity() < written.len() + (1 << 16));
    }

    const SOURCES: &[&str] = &[
        "<i>1</i>",
        "<o xmlns:p='urn:p' xmlns:q='urn:q'><i a='1' p:b='&lt;\"'><p:c/><![CDATA[<x>&]]>&#65;&amp;\r\n</i><!--c--><i/><i></i ></o>",
        "<o xmlns='urn:d'>\n <i x=\"it's\"><i xmlns=''/></i> <p:i xmlns:p='urn:p'>t</p:i></o>",
        "<p:o xmlns:p='urn:other' xmlns:r='urn:p'><i p:a='1' r:b='2'><q:j xmlns:q='urn:q' xmlns:p='urn:p' p:k='v'/></i></p:o>",
        "<s:o xmlns:s='urn:s' xmlns:u='urn:unused'><s:i xmlns:u='urn:again'>s:name</s:i><i><?pi d?></i></s:o>",
        "<i\n xmlns:a='urn:&lt;a'\ta:b='c'\n/>",
    ];

    const PLACES: &[&str] = &[
        "<w/>",
        "<p:w xmlns:p='urn:p'>before<p:e/></p:w>",
        "<w xmlns='urn:d' xmlns:s='urn:s'/>",
        "<w xmlns='urn:else' xmlns:p='urn:else' xmlns:q='urn:q'><!--c--></w>",
        "<s:w xmlns:s='urn:s' xmlns:u='urn:unused' a='1'/>",
    ];

    /// Each element of each document is written into each place as it is written once it was copied there.
    #[test]
    fn a_part_is_written_as_its_copy_would_be() {
        for source in SOURCES {
            for place in PLACES {
                let [kept, plain] = [true, false].map(|extents| parse(source, extents));
                let inner = |doc: &Document| doc.descendants(Document::ROOT).collect::<Vec<_>>();
                assert_eq!(inner(&kept), inner(&plain));
                for n in inner(&plain).into_iter().filter(|&n| plain.kind(n) == NodeKind::Element) {
                    assert!(kept.source_of(n).is_some() && plain.source_of(n).is_none());
                    let target = parse(place, false);
                    let root = target.document_element().unwrap();
                    let scope = Scope::at(&target, root);
                    let mut around = Vec::new();
                    let hole = write_around(&target, root, root, &mut around).unwrap();
                    let (before, behind) = around.split_at(hole.at);
                    let written = |doc: &Document, place: &Scope, declared: &Scope| {
                        let mut out = Vec::new();
                        write_part(doc, n, place, declared, &mut out);
                        String::from_utf8(out).unwrap()
                    };
                    let filled = |part: String| {
                        format!(
                            "{}{part}{}",
                            String::from_utf8_lossy(before),
                            String::from_utf8_lossy(behind)
                        )
                    };
                    let mut copied = target.clone();
                    let copy = copied.copy_from(root, &plain, n);
                    let whole = to_string(&copied, root);
                    assert_eq!(filled(written(&plain, &scope, &hole.declared)), whole, "{source} in {place}");
                    let came = filled(written(&kept, &scope, &hole.declared));
                    assert_eq!(
                        of_text(&*came, Algorithm::Inclusive10).unwrap(),
                        of_text(&*whole, Algorithm::Inclusive10).unwrap(),
                        "{source} in {place}: {came}"
                    );
                    // The part alone.
                    let alone = to_string(&copied, copy);
                    assert_eq!(written(&plain, &scope, &Scope::default()), alone, "{source} from {place}");
                    let came = written(&kept, &scope, &Scope::default());
                    assert_eq!(
                        of_text(&*came, Algorithm::Exclusive).unwrap(),
                        of_text(&*alone, Algorithm::Exclusive).unwrap(),
                        "{source} from {place}: {came}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_change_forgets_where_elements_were() {
        let changes: [fn(&mut Document, NodeId); 8] = [
            |doc, n| doc.declare_namespace(n, "z", "urn:z"),
            |doc, n| doc.set_text(n, "new"),
            |doc, n| doc.detach(n),
            |doc, n| doc.rename(n, "", "", "new"),
            |doc, n| {
                let _ = doc.append_text(n, "more");
            },
            |doc, n| {
                let _ = doc.append_element(n, "", "", "more");
            },
            |doc, n| {
                let _ = doc.set_attribute(n, "", "", "a", "2");
            },
            |doc, n| {
                let _ = doc.remove_attribute(n, "", "a");
            },
        ];
        for change in changes {
            let mut doc = parse("<o><i a='1'>t</i></o>", true);
            let root = doc.document_element().unwrap();
            let item = doc.first_child(root).unwrap();
            assert_eq!(doc.source_of(item), Some("<i a='1'>t</i>"));
            change(&mut doc, item);
            assert_eq!((doc.source_of(item), doc.source_of(root)), (None, None));
        }
        let options = ParseOptions { extents: true, dtd: crate::Dtd::Internal, ..ParseOptions::default() };
        let doc = Document::parse_str("<!DOCTYPE o [<!ENTITY e '<i/>'>]><o>&e;</o>", &options).unwrap();
        assert_eq!(doc.source_of(doc.document_element().unwrap()), None);
    }

    #[test]
    fn a_hole_is_where_an_element_ends() {
        let doc = parse("<a><b xmlns='urn:b'/><c>t</c></a>", false);
        let inner: Vec<_> = doc.descendants(Document::ROOT).collect();
        for (n, before) in [
            (0, "<a><b xmlns=\"urn:b\"/><c>t</c>"),
            (1, "<a><b xmlns=\"urn:b\">"),
            (2, "<a><b xmlns=\"urn:b\"/><c>t"),
        ] {
            let mut out = Vec::new();
            let hole = write_around(&doc, inner[0], inner[n], &mut out).unwrap();
            assert_eq!(String::from_utf8_lossy(&out[..hole.at]), before);
            assert_eq!(hole.declared.get(""), if n == 1 { "urn:b" } else { "" });
        }
        assert!(write_around(&doc, inner[1], inner[2], &mut Vec::new()).is_none());
    }
}
