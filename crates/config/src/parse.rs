//! Text -> [`Element`] tree with the span of every part.
//!
//! The `xml` crate parses; here its tree becomes the shared, spanned one that configuration is read from.

use crate::element::{
    Attribute, Child, Element, ElementData, Instruction, Name, SYNAPSE, SYNAPSE_2_0, Scope, Text,
};
use diagnostics::{Diagnostic, FileId, Span};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use xml::{Document, Limits, NodeId, NodeKind, ParseOptions};

/// Elements may be nested this deep; configurations are far below it.
const DEPTH: usize = 400;

/// Reads a whole document. The error has the place where the text stops being well-formed XML.
pub fn parse(file: FileId, text: &str) -> Result<Element, Diagnostic> {
    let configuration = ParseOptions::configuration();
    let options = ParseOptions {
        limits: Limits { depth: DEPTH, ..configuration.limits },
        // The text is decoded already, so its declared encoding does not count.
        charset: Some("UTF-8".to_owned()),
        ..configuration
    };
    let failed = |message: String, at: usize| {
        let len = text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        Diagnostic::error("xml-syntax", message).at(Span::new(file, at, at + len), "")
    };
    if text.trim().is_empty() {
        return Err(failed("the file is empty".to_owned(), 0));
    }
    let document = Document::parse_str(text, &options).map_err(|error| {
        let at = error.position.offset;
        let is_open =
            error.message.starts_with("expected `</") || error.message.contains("ends inside the element");
        match open_element(text, at).filter(|_| is_open) {
            Some(open) => not_closed(file, text, open, at),
            None if error.message.contains("`<` in an attribute value") => failed(error.message, at).help(
                "a `<` that is meant is written `&lt;`; or does the value before it lack its closing quote?",
            ),
            None if text.get(..at).is_some_and(|before| before.ends_with('&')) => {
                failed("a bare `&` is written `&amp;`".to_owned(), at - 1)
            }
            None => failed(error.message, at),
        }
    })?;
    let Some(root) = document.document_element() else {
        return Err(failed("the document has no element".to_owned(), 0));
    };
    Ok(Builder { document: &document, file, text, names: HashMap::new() }.element(root, &Scope::new()))
}

/// The finding for an element that is still open where the end tag of another one comes, or the text ends.
fn not_closed(file: FileId, text: &str, (start, name): (usize, &str), at: usize) -> Diagnostic {
    let before = text.get(..start).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let rest = text.get(at..).unwrap_or_default();
    let end = rest.find('>').map_or(rest.len(), |end| end + 1);
    let label = match rest.get(..end).filter(|tag| tag.starts_with("</")) {
        Some(_) => format!("expected `</{name}>`"),
        None => "the text ends here".to_owned(),
    };
    let end = if rest.starts_with("</") { at + end } else { at };
    Diagnostic::error("xml-syntax", format!("`<{name}>` opened at {line}:{column} is not closed"))
        .at(Span::new(file, at, end), label)
        .at(Span::new(file, start, start + 1 + name.len()), "opened here")
}

/// The innermost element that is open at a place, in a text that is well-formed up to there: the start of its start tag, and its name.
fn open_element(text: &str, at: usize) -> Option<(usize, &str)> {
    let text = text.get(..at)?;
    let mut open = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find('<').map(|found| found + from) {
        let rest = &text[start..];
        let behind = |mark: &str| rest.find(mark).map(|found| start + found + mark.len());
        let end = if rest.starts_with("<!--") {
            behind("-->")
        } else if rest.starts_with("<![CDATA[") {
            behind("]]>")
        } else if rest.starts_with("<?") {
            behind("?>")
        } else if rest.starts_with("<!") {
            behind(">")
        } else if rest.starts_with("</") {
            open.pop();
            behind(">")
        } else {
            let end = tag_end(rest).map(|len| start + len);
            let name = rest[1..]
                .split(|c: char| c.is_whitespace() || c == '/' || c == '>')
                .next()
                .unwrap_or_default();
            if end.is_some_and(|end| !text[start..end].ends_with("/>")) {
                open.push((start, name));
            }
            end
        };
        match end {
            Some(end) => from = end,
            None => break,
        }
    }
    open.pop()
}

/// The length of a start tag; `>` may stand in the values of attributes.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), byte) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return Some(at + 1),
            (None, _) => {}
        }
    }
    None
}

/// The present namespace for one of an earlier release.
fn present(namespace: &str) -> &str {
    if namespace == SYNAPSE_2_0 { SYNAPSE } else { namespace }
}

struct Builder<'a> {
    document: &'a Document,
    file: FileId,
    text: &'a str,
    /// Names occur again and again: one allocation each.
    names: HashMap<&'a str, Arc<str>>,
}

impl<'a> Builder<'a> {
    /// Recursion is bounded by [`DEPTH`].
    fn element(&mut self, node: NodeId, outer: &Scope) -> Element {
        let document = self.document;
        let start_tag = self.span(node);
        let declared: Vec<(Arc<str>, Arc<str>)> = document
            .namespace_declarations(node)
            .map(|(prefix, uri)| (self.intern(prefix), self.intern(present(uri))))
            .collect();
        let declares = !declared.is_empty();
        let scope = outer.with(declared);
        let attributes = document.attributes(node).map(|attribute| self.attribute(attribute)).collect();
        let mut children = Vec::new();
        // The end of the content so far: the end tag comes after it.
        let mut end = start_tag.end as usize;
        let mut next = document.first_child(node);
        while let Some(child) = next {
            next = document.next_sibling(child);
            let before = end;
            let span = self.span(child);
            end = end.max(span.end as usize);
            match document.kind(child) {
                NodeKind::Element => {
                    let element = self.element(child, &scope);
                    end = element.span().end as usize;
                    children.push(Child::Element(element));
                }
                kind @ (NodeKind::Text | NodeKind::Comment) => {
                    // A text of several runs (references, CDATA sections) has the span of the last one: it
                    // starts where what is before it ends.
                    let span = Span::new(self.file, before, end);
                    let text = Text { value: Arc::from(document.text(child)), span };
                    children.push(if kind == NodeKind::Text {
                        Child::Text(text)
                    } else {
                        Child::Comment(text)
                    });
                }
                NodeKind::ProcessingInstruction => {
                    let (target, data) =
                        (self.intern(document.local(child)), Arc::from(document.text(child)));
                    children.push(Child::Instruction(Instruction { target, data }));
                }
                _ => {}
            }
        }
        let name = self.name(node);
        let name_span = start_tag.part(1, document.qname(node).len());
        let (end_name, end) = self.end_of_element(start_tag, end, name_span);
        let span = Span::new(self.file, start_tag.start as usize, end);
        ElementData { name, attributes, children, scope, declares, name_span, start_tag, end_name, span }
            .into()
    }

    fn attribute(&mut self, node: NodeId) -> Attribute {
        let span = self.document.span(node).unwrap_or_default();
        Attribute {
            name: self.name(node),
            value: Arc::from(self.document.text(node)),
            name_span: Span::new(self.file, span.start as usize, span.end as usize),
            value_span: Span::new(self.file, span.value_start as usize, span.value_end as usize),
        }
    }

    fn name(&mut self, node: NodeId) -> Name {
        let document = self.document;
        Name {
            namespace: self.intern(present(document.namespace(node))),
            prefix: self.intern(document.prefix(node)),
            local: self.intern(document.local(node)),
        }
    }

    /// The name in the end tag, which follows the content that ends at `content`, and the end of that tag.
    fn end_of_element(&self, start_tag: Span, content: usize, name: Span) -> (Option<Span>, usize) {
        let tag = self.text.get(start_tag.start as usize..start_tag.end as usize).unwrap_or_default();
        // An element of an entity has the place of the reference, and no tags of its own.
        if !tag.starts_with('<') {
            return (None, content.max(start_tag.end as usize));
        }
        let rest = self.text.get(content..).unwrap_or_default();
        match rest.find("</").and_then(|at| Some((at, at + rest[at..].find('>')? + 1))) {
            Some((at, len)) if !tag.ends_with("/>") => {
                let from = content + at + 2;
                let name = Span::new(self.file, from, from + (name.end - name.start) as usize);
                (Some(name), content + len)
            }
            _ => (None, content),
        }
    }

    fn intern(&mut self, name: &'a str) -> Arc<str> {
        self.names.entry(name).or_insert_with(|| Arc::from(name)).clone()
    }

    fn span(&self, node: NodeId) -> Span {
        let span = self.document.span(node).unwrap_or_default();
        Span::new(self.file, span.start as usize, span.end as usize)
    }
}

/// Where the document type declaration of a document stands: before its root element, if there is one.
pub(crate) fn doctype(text: &[u8]) -> Option<Range<usize>> {
    let find = |from: usize, mark: &[u8]| {
        text.get(from..)?.windows(mark.len()).position(|part| part == mark).map(|at| from + at)
    };
    let mut at = 0;
    let start = loop {
        let rest = text.get(at..)?;
        at = match rest.first()? {
            b'<' if rest.starts_with(b"<!DOCTYPE") => break at,
            b'<' if rest.starts_with(b"<!--") => find(at, b"-->")? + 3,
            b'<' if rest.starts_with(b"<?") => find(at, b"?>")? + 2,
            b'<' => return None,
            _ => at + 1,
        };
    };
    let mut in_subset = false;
    loop {
        match *text.get(at)? {
            quote @ (b'"' | b'\'') => at = find(at + 1, &[quote])?,
            b'<' if text[at..].starts_with(b"<!--") => at = find(at, b"-->")? + 2,
            b'[' => in_subset = true,
            b']' => in_subset = false,
            b'>' if !in_subset => return Some(start..at + 1),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostics::SourceMap;

    fn read(text: &str) -> (SourceMap, Result<Element, Diagnostic>) {
        let mut sources = SourceMap::new();
        let file = sources.add("t.xml", text);
        (sources, parse(file, text))
    }

    #[test]
    fn what_is_not_closed_is_named_where_it_was_opened() {
        for (text, message, place) in [
            ("<a>\n <drop>\n</a>", "`<drop>` opened at 2:2 is not closed", "</a>"),
            ("<a><!-- <x> --><b k='>'/><![CDATA[<y>]]><c>", "`<c>` opened at 1:41 is not closed", ""),
            ("<a><b></B></a>", "`<b>` opened at 1:4 is not closed", "</B>"),
            ("<a b='x></a>", "`<` in an attribute value", "<"),
        ] {
            let (sources, error) = read(text);
            let error = error.expect_err(text);
            assert_eq!(error.message, message, "{text}");
            assert_eq!(error.span().map(|span| sources.text(span)), Some(place), "{text}");
        }
    }

    #[test]
    fn where_the_document_type_is_declared() {
        for (text, declared) in [
            ("<?xml version='1.0'?>\n<!-- <!DOCTYPE b> --><!DOCTYPE a><a/>", Some("<!DOCTYPE a>")),
            (
                "<!DOCTYPE a [<!ENTITY e ']>'><!-- ' ]> -->]><a/>",
                Some("<!DOCTYPE a [<!ENTITY e ']>'><!-- ' ]> -->]>"),
            ),
            ("<!DOCTYPE a SYSTEM 'a>b' ><a/>", Some("<!DOCTYPE a SYSTEM 'a>b' >")),
            ("<a><![CDATA[<!DOCTYPE a>]]></a>", None),
            ("<!-- <!DOCTYPE a>", None),
            ("<!DOCTYPE a [", None),
            ("", None),
        ] {
            assert_eq!(doctype(text.as_bytes()).map(|at| &text[at]), declared, "{text}");
        }
    }

    #[test]
    fn entities_are_read_and_have_the_place_of_their_reference() {
        let (sources, element) = read(
            "<!DOCTYPE a [<!ENTITY t 'text'><!ENTITY e '<b k=\"1\"><c/>x</b>'>]>\n<a k='&t;'>&t;<d/>&e;<f>y</f></a>",
        );
        let a = element.expect("well-formed");
        assert_eq!(a.attr("k"), Some("text"));
        let parts: Vec<(&str, &str)> =
            a.elements().map(|part| (part.local(), sources.text(part.span()))).collect();
        assert_eq!(parts, [("d", "<d/>"), ("b", "&e;"), ("f", "<f>y</f>")]);
        let b = a.elements().nth(1).expect("b");
        assert_eq!((b.attr("k"), b.text()), (Some("1"), "x".into()));
        assert_eq!(b.elements().next().map(|c| sources.text(c.span())), Some("&e;"));
        assert!(sources.text(a.span()).ends_with("<f>y</f></a>"));
    }

    #[test]
    fn what_is_read_is_written() {
        for text in [
            "<a><?xml-multiple i?><i>1</i><?end?></a>",
            "<a>x<?p q r?>y<!-- c -->z</a>",
            r#"<p:a xmlns:p="u" p:b="&quot;&#10;&lt;"/>"#,
        ] {
            let root = read(text).1.expect(text);
            assert_eq!(root.to_xml(), text);
            assert_eq!(root.map_values(&|_| None).to_xml(), text);
        }
        assert_eq!(read("<a>x<?p q r?>y</a>").1.expect("well-formed").text(), "xy");
    }

    #[test]
    fn elements_of_apache_synapse_2_0_are_synapse_elements() {
        let text = format!(
            "<definitions xmlns='{SYNAPSE_2_0}'><p:log xmlns:p='{SYNAPSE_2_0}'/><x xmlns='u'/></definitions>"
        );
        let root = read(&text).1.expect("well-formed");
        assert!(root.name().is_synapse("definitions"));
        let inside: Vec<String> = root.elements().map(|element| element.namespace().to_owned()).collect();
        assert_eq!(inside, [SYNAPSE, "u"]);
        let written = root.to_xml_in_scope();
        assert!(!written.contains(SYNAPSE_2_0) && read(&written).1.is_ok(), "{written}");
    }

    #[test]
    fn every_part_has_its_span() {
        let (sources, element) = read(
            "<?xml version='1.0'?><!-- x -->\n<p:a xmlns:p='u' k = \"1 &amp; 2\" p:é='x'>t&lt;<![CDATA[<]]><b/> </p:a >",
        );
        let a = element.expect("well-formed");
        assert_eq!((a.local(), a.namespace(), a.attr("k")), ("a", "u", Some("1 & 2")));
        let shown = |span| sources.text(span);
        assert_eq!(shown(a.attributes()[0].value_span), "1 &amp; 2");
        assert_eq!(shown(a.attributes()[1].name_span), "p:é");
        assert_eq!(&*a.attributes()[1].name.namespace, "u");
        assert_eq!(shown(a.name_span()), "p:a");
        assert_eq!(a.end_name_span().map(shown), Some("p:a"));
        assert_eq!(shown(a.text_span()), "t&lt;<![CDATA[<]]>");
        assert_eq!(a.text(), "t<< ");
        assert!(shown(a.start_tag()).ends_with("'x'>") && shown(a.span()).ends_with("</p:a >"));
        assert_eq!(shown(a.elements().next().expect("b").span()), "<b/>");
    }

    #[test]
    fn what_is_not_well_formed_has_a_place() {
        for (text, place, word) in [
            ("", "1:1", "the file is empty"),
            ("<a", "1:3", "start tag"),
            ("<a>\n <b></c></a>", "2:5", "`<b>` opened at 2:2"),
            ("<a><b>", "1:7", "`<b>` opened at 1:4"),
            ("<a x='1' x='2'/>", "1:10", "`x`"),
            ("<a x=1/>", "1:6", "quoted"),
            ("<a x='<'/>", "1:7", "`<`"),
            ("<a>&nbsp;</a>", "1:4", "`nbsp`"),
            ("<a>a & b</a>", "1:6", "`&amp;`"),
            ("<a b='a & b'/>", "1:9", "`&amp;`"),
            ("<p:a/>", "1:2", "`p`"),
            ("<a/><b/>", "1:5", "root"),
            ("<!DOCTYPE a [<!ENTITY x SYSTEM 'x.xml'>]><a>&x;</a>", "1:45", "`x.xml`"),
            ("<!DOCTYPE a SYSTEM 'a.dtd'><a b='&x;'/>", "1:34", "`x` is not declared in this file"),
        ] {
            let (sources, result) = read(text);
            let error = result.expect_err(text);
            assert!(error.message.contains(word), "{text}: {}", error.message);
            assert_eq!(error.span().map(|s| s.place(&sources)), Some(format!("t.xml:{place}")), "{text}");
        }
        let deep = "<a>".repeat(100_000);
        assert!(read(&deep).1.is_err());
    }

    #[test]
    fn serialised_elements_stand_alone() {
        let (_, element) = read(
            "<d xmlns='u' xmlns:p='v' xmlns:q='w'><e xmlns:r='x'><p:f a=\"&quot;'&lt;\" p:b='q:c'/>t &amp; u<g xmlns=''><h/></g></e></d>",
        );
        let e = element.expect("well-formed").elements().next().expect("e").clone();
        assert_eq!(
            e.to_xml(),
            "<e xmlns:r=\"x\" xmlns=\"u\"><p:f xmlns:p=\"v\" a=\"&quot;'&lt;\" p:b=\"q:c\"/>t &amp; u<g xmlns=\"\"><h/></g></e>"
        );
        assert_eq!(
            e.to_xml_in_scope(),
            "<e xmlns:r=\"x\" xmlns=\"u\" xmlns:p=\"v\" xmlns:q=\"w\"><p:f a=\"&quot;'&lt;\" p:b=\"q:c\"/>t &amp; u<g xmlns=\"\"><h/></g></e>"
        );
    }
}
