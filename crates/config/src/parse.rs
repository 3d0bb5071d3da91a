//! Text -> [`Element`] tree with the span of every part.

use crate::element::{Attribute, Child, Element, ElementData, Name, Scope, Text, XML_NAMESPACE};
use diagnostics::{Diagnostic, FileId, Span};
use std::collections::HashMap;
use std::sync::Arc;

/// Elements may be nested this deep; configurations are far below it.
const DEPTH: usize = 400;

/// Reads a whole document. The error has the place where the text stops being well-formed XML.
pub fn parse(file: FileId, text: &str) -> Result<Element, Diagnostic> {
    let mut reader = Reader { file, text, at: 0, names: HashMap::new() };
    reader.document().map_err(|Failure { at, message }| {
        let len = text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        Diagnostic::error("xml-syntax", message).at(Span::new(file, at, at + len), "")
    })
}

struct Failure {
    at: usize,
    message: String,
}

type Parsed<T> = Result<T, Failure>;

struct Reader<'a> {
    file: FileId,
    text: &'a str,
    at: usize,
    /// Names and namespaces occur again and again: one allocation each.
    names: HashMap<&'a str, Arc<str>>,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Parsed<Element> {
        self.at += if self.text.starts_with('\u{feff}') { 3 } else { 0 };
        self.misc()?;
        if self.rest().starts_with("<!DOCTYPE") {
            return self.fail("a document type declaration is not allowed in a configuration");
        }
        if !self.rest().starts_with('<') {
            return self.fail(if self.rest().is_empty() { "the document is empty" } else { "expected `<`" });
        }
        let root = self.element(&Scope::new(), 0)?;
        self.misc()?;
        if self.rest().is_empty() { Ok(root) } else { self.fail("content after the document element") }
    }

    /// White space, comments and processing instructions around the document element.
    fn misc(&mut self) -> Parsed<()> {
        loop {
            self.white_space();
            if self.rest().starts_with("<?") {
                self.until("<?", "?>", "processing instruction")?;
            } else if self.rest().starts_with("<!--") {
                self.comment()?;
            } else {
                return Ok(());
            }
        }
    }

    /// The element whose `<` is next.
    fn element(&mut self, outer: &Scope, depth: usize) -> Parsed<Element> {
        if depth == DEPTH {
            return self.fail(format!("elements are nested more than {DEPTH} deep"));
        }
        let start = self.at;
        self.at += 1;
        let (name, name_span) = self.name()?;
        let mut raw: Vec<(&'a str, Span, Arc<str>, Span)> = Vec::new();
        let mut own: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        let empty = loop {
            let spaced = self.white_space();
            if self.eat("/>") {
                break true;
            }
            if self.eat(">") {
                break false;
            }
            if !spaced {
                return self.fail(format!("expected white space, `>` or `/>` in the start tag of `{name}`"));
            }
            let attribute_at = self.at;
            let (attribute, span) = self.name()?;
            let (value, value_span) = self.attribute_value(attribute)?;
            if raw.iter().any(|(other, ..)| *other == attribute) {
                return Err(Failure {
                    at: attribute_at,
                    message: format!("attribute `{attribute}` occurs twice"),
                });
            }
            match attribute.strip_prefix("xmlns") {
                Some("") => own.push((Arc::from(""), value.clone())),
                Some(rest) if rest.starts_with(':') => {
                    if value.is_empty() {
                        return Err(Failure {
                            at: attribute_at,
                            message: format!("the prefix `{}` is bound to nothing", &rest[1..]),
                        });
                    }
                    own.push((Arc::from(&rest[1..]), value.clone()));
                }
                _ => {}
            }
            raw.push((attribute, span, value, value_span));
        };
        let start_tag = self.span(start, self.at);
        let declares = !own.is_empty();
        let scope = outer.with(own);
        let name = self.expand(name, name_span, &scope, true)?;
        let mut attributes: Vec<Attribute> = Vec::with_capacity(raw.len());
        for (written, name_span, value, value_span) in raw {
            if written == "xmlns" || written.starts_with("xmlns:") {
                continue;
            }
            let name = self.expand(written, name_span, &scope, false)?;
            if attributes.iter().any(|other| other.name == name) {
                return Err(Failure {
                    at: name_span.start as usize,
                    message: format!("attribute `{name}` occurs twice"),
                });
            }
            attributes.push(Attribute { name, value, name_span, value_span });
        }
        let children = if empty { Vec::new() } else { self.content(&name, start, &scope, depth)? };
        let span = self.span(start, self.at);
        Ok(ElementData { name, attributes, children, scope, declares, name_span, start_tag, span }.into())
    }

    /// Everything up to and with the end tag.
    fn content(&mut self, name: &Name, start: usize, scope: &Scope, depth: usize) -> Parsed<Vec<Child>> {
        let mut children = Vec::new();
        // Character data and CDATA sections join to one text.
        let mut text = String::new();
        let mut text_at = self.at;
        loop {
            let rest = self.rest();
            if rest.starts_with("<![CDATA[") {
                let section = self.until("<![CDATA[", "]]>", "CDATA section")?;
                text.push_str(&section.replace("\r\n", "\n").replace('\r', "\n"));
                continue;
            }
            if !rest.starts_with('<') && !rest.is_empty() {
                let end = rest.find('<').unwrap_or(rest.len());
                self.characters(end, &mut text)?;
                continue;
            }
            if !text.is_empty() {
                let span = self.span(text_at, self.at);
                children.push(Child::Text(Text { value: Arc::from(std::mem::take(&mut text)), span }));
            }
            if rest.is_empty() {
                return Err(Failure { at: start, message: format!("element `{name}` is not closed") });
            } else if rest.starts_with("</") {
                let at = self.at;
                self.at += 2;
                let (end, _) = self.name()?;
                self.white_space();
                if end != name.to_string() {
                    return Err(Failure { at, message: format!("expected `</{name}>`, found `</{end}>`") });
                }
                if !self.eat(">") {
                    return self.fail("expected `>`");
                }
                return Ok(children);
            } else if rest.starts_with("<!--") {
                children.push(Child::Comment(self.comment()?));
            } else if rest.starts_with("<?") {
                self.until("<?", "?>", "processing instruction")?;
            } else {
                children.push(Child::Element(self.element(scope, depth + 1)?));
            }
            text_at = self.at;
        }
    }

    fn comment(&mut self) -> Parsed<Text> {
        let start = self.at;
        let value = Arc::from(self.until("<!--", "-->", "comment")?);
        Ok(Text { value, span: self.span(start, self.at) })
    }

    /// What is between two marks; the first one is next.
    fn until(&mut self, open: &str, close: &str, what: &str) -> Parsed<&'a str> {
        let inside = &self.rest()[open.len()..];
        match inside.find(close) {
            Some(end) => {
                self.at += open.len() + end + close.len();
                Ok(&inside[..end])
            }
            None => self.fail(format!("the {what} is not closed")),
        }
    }

    fn name(&mut self) -> Parsed<(&'a str, Span)> {
        let rest = self.rest();
        let stop = |c: char| c.is_whitespace() || matches!(c, '=' | '/' | '>' | '<' | '"' | '\'' | '&');
        let name = &rest[..rest.find(stop).unwrap_or(rest.len())];
        let first = name.chars().next();
        if !first.is_some_and(|c| c.is_alphabetic() || c == '_' || c == ':' || c as u32 > 127) {
            return self.fail("expected a name");
        }
        let start = self.at;
        self.at += name.len();
        Ok((name, self.span(start, self.at)))
    }

    fn attribute_value(&mut self, attribute: &str) -> Parsed<(Arc<str>, Span)> {
        self.white_space();
        if !self.eat("=") {
            return self.fail(format!("expected `=` behind the attribute `{attribute}`"));
        }
        self.white_space();
        let quote = match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => quote,
            _ => return self.fail(format!("the value of the attribute `{attribute}` must be quoted")),
        };
        self.at += 1;
        let start = self.at;
        let Some(len) = self.rest().find(quote) else {
            return self.fail(format!("the value of the attribute `{attribute}` is not closed"));
        };
        if let Some(at) = self.rest()[..len].find('<') {
            return Err(Failure {
                at: start + at,
                message: "`<` in an attribute value must be `&lt;`".into(),
            });
        }
        let mut value = String::new();
        self.characters(len, &mut value)?;
        let span = self.span(start, self.at);
        self.at += 1;
        // White space in attribute values is spaces, except where written as a reference.
        if self.text[start..self.at].contains(['\n', '\t']) && !self.text[start..self.at].contains("&#") {
            value = value.replace(['\n', '\t'], " ");
        }
        Ok((Arc::from(value), span))
    }

    /// The next `len` bytes as character data: references resolved, line ends normalised.
    fn characters(&mut self, len: usize, out: &mut String) -> Parsed<()> {
        let end = self.at + len;
        while self.at < end {
            let run = &self.text[self.at..end];
            let Some(at) = run.find(['&', '\r']) else {
                out.push_str(run);
                self.at = end;
                break;
            };
            out.push_str(&run[..at]);
            self.at += at;
            if run.as_bytes()[at] == b'\r' {
                self.at += if run[at..].starts_with("\r\n") { 2 } else { 1 };
                out.push('\n');
                continue;
            }
            let Some(semicolon) = run[at..].find(';') else {
                return self.fail("`&` must be written as `&amp;`");
            };
            let name = &run[at + 1..at + semicolon];
            let resolved = match name {
                "lt" => Some('<'),
                "gt" => Some('>'),
                "amp" => Some('&'),
                "quot" => Some('"'),
                "apos" => Some('\''),
                _ => match name.strip_prefix('#') {
                    Some(code) => match code.strip_prefix('x') {
                        Some(hex) => u32::from_str_radix(hex, 16),
                        None => code.parse(),
                    }
                    .ok()
                    .and_then(char::from_u32)
                    .filter(|c| *c >= ' ' || matches!(c, '\t' | '\n' | '\r')),
                    None => None,
                },
            };
            let Some(resolved) = resolved else {
                return self.fail("unknown entity; `&` must be written as `&amp;`");
            };
            out.push(resolved);
            self.at += semicolon + 1;
        }
        Ok(())
    }

    fn expand(&mut self, written: &'a str, span: Span, scope: &Scope, default: bool) -> Parsed<Name> {
        let (prefix, local) = written.split_once(':').unwrap_or(("", written));
        let namespace = match prefix {
            "" if !default => "",
            "" => scope.lookup("").unwrap_or(""),
            "xml" => XML_NAMESPACE,
            prefix => match scope.lookup(prefix) {
                Some(uri) => uri,
                None => {
                    return Err(Failure {
                        at: span.start as usize,
                        message: format!("the prefix `{prefix}` is not declared"),
                    });
                }
            },
        };
        if local.is_empty() || local.contains(':') {
            return Err(Failure { at: span.start as usize, message: format!("`{written}` is not a name") });
        }
        let namespace = Arc::from(namespace);
        Ok(Name { namespace, prefix: self.intern(prefix), local: self.intern(local) })
    }

    fn intern(&mut self, name: &'a str) -> Arc<str> {
        self.names.entry(name).or_insert_with(|| Arc::from(name)).clone()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn eat(&mut self, mark: &str) -> bool {
        let found = self.rest().starts_with(mark);
        self.at += if found { mark.len() } else { 0 };
        found
    }

    fn white_space(&mut self) -> bool {
        let rest = self.rest();
        let len = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        self.at += len;
        len > 0
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start, end)
    }

    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(Failure { at: self.at, message: message.into() })
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
        assert_eq!(shown(a.text_span()), "t&lt;<![CDATA[<]]>");
        assert_eq!(a.text(), "t<< ");
        assert!(shown(a.start_tag()).ends_with("'x'>") && shown(a.span()).ends_with("</p:a >"));
        assert_eq!(shown(a.elements().next().expect("b").span()), "<b/>");
    }

    #[test]
    fn what_is_not_well_formed_has_a_place() {
        for (text, place, message) in [
            ("", "1:1", "the document is empty"),
            ("<a", "1:3", "expected white space, `>` or `/>` in the start tag of `a`"),
            ("<a>\n <b></c></a>", "2:5", "expected `</b>`, found `</c>`"),
            ("<a><b>", "1:4", "element `b` is not closed"),
            ("<a x='1' x='2'/>", "1:10", "attribute `x` occurs twice"),
            ("<a x=1/>", "1:6", "the value of the attribute `x` must be quoted"),
            ("<a x='<'/>", "1:7", "`<` in an attribute value must be `&lt;`"),
            ("<a>&nbsp;</a>", "1:4", "unknown entity; `&` must be written as `&amp;`"),
            ("<a>a & b</a>", "1:6", "`&` must be written as `&amp;`"),
            ("<p:a/>", "1:2", "the prefix `p` is not declared"),
            ("<a/><b/>", "1:5", "content after the document element"),
            ("<!DOCTYPE a><a/>", "1:1", "a document type declaration is not allowed in a configuration"),
        ] {
            let (sources, result) = read(text);
            let error = result.expect_err(text);
            assert_eq!(error.message, message, "{text}");
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
