//! The serializer.

use super::encode::{Output, Repertoire};
use super::escape::{each_run, has_controls, is_control, push_attribute, push_text, sound};
use super::{Method, Normalization, WriteError, WriteOptions, html};
use crate::fixup::StartTag;
use crate::{XML_NS, XMLNS_NS, is_same};
use unicode_normalization::UnicodeNormalization;

/// An open element.
struct Frame {
    /// Length of `names` before its name was added.
    names: u32,
    /// Length of `scope` before it.
    scope: u32,
    cdata: bool,
    kind: Kind,
    /// HTML: text is written without escaping.
    raw: bool,
    /// No white space may be added in it.
    keep: bool,
    /// It has text: no white space may be added any more.
    mixed: bool,
    /// It has child elements.
    children: bool,
    inline: bool,
    /// (X)HTML: it has neither content nor, in HTML, an end tag.
    void: bool,
    /// A `head` that has got a `meta`.
    head: bool,
}

/// The kind of an element.
#[derive(Copy, Clone, PartialEq)]
enum Kind {
    Xml,
    /// In no namespace, by the method HTML.
    Html,
    /// In the namespace of XHTML, by that method.
    Xhtml,
}

/// A namespace declaration in force: ranges of `strings`.
#[derive(Copy, Clone)]
struct Binding {
    prefix: (u32, u32),
    uri: (u32, u32),
}

/// Appends a document to bytes, event by event.
///
/// Call [`Serializer::start_element`], then [`Serializer::namespace`] and [`Serializer::attribute`] for it, then what
/// is in it, then [`Serializer::end_element`]; at last [`Serializer::finish`].
pub struct Serializer<'a> {
    out: &'a mut Vec<u8>,
    options: &'a WriteOptions,
    from: usize,
    /// Bytes were taken already ([`Serializer::settled`]).
    taken: bool,
    output: Output,
    repertoire: Repertoire,
    frames: Vec<Frame>,
    /// The names of the open elements as written.
    names: Vec<u8>,
    strings: String,
    scope: Vec<Binding>,
    /// The start tag of the innermost element is not closed yet.
    in_tag: bool,
    /// A CDATA section is open.
    in_cdata: bool,
    /// Something was written: the declaration must come before.
    started: bool,
    /// The document type declaration is written before the first element.
    doctype: bool,
    /// `head` of (X)HTML whose `meta` is still to be written.
    meta: bool,
    /// A `meta` that may duplicate the one that was written: where its tag begins, and whether it does.
    other_meta: Option<(usize, bool)>,
    /// The last thing outside of elements is text.
    ends_in_text: bool,
    /// Length of the byte order mark.
    mark: usize,
    generated: u32,
    /// Prefixes of the attributes of the open start tag.
    tag_prefixes: Vec<String>,
    /// Elements and text at the top: more than one element, or any text, is not a document.
    tops: usize,
    /// The first control character that HTML does not have.
    control: Option<char>,
}

impl<'a> Serializer<'a> {
    /// A serializer that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>, options: &'a WriteOptions) -> Serializer<'a> {
        let output = Output::for_label(options.encoding.as_deref());
        let doctype = match options.method {
            Method::Xml => options.doctype_system.is_some(),
            Method::Xhtml => options.doctype_system.is_some() || options.html5,
            Method::Html => {
                options.doctype_system.is_some() || options.doctype_public.is_some() || options.html5
            }
            Method::Text => false,
        };
        let from = out.len();
        let mark = options.byte_order_mark && matches!(output, Output::Utf8);
        if mark {
            out.extend_from_slice("\u{FEFF}".as_bytes());
        }
        Serializer {
            from,
            mark: out.len() - from,
            taken: false,
            out,
            options,
            output,
            repertoire: output.repertoire(),
            frames: Vec::new(),
            names: Vec::new(),
            strings: String::new(),
            scope: Vec::new(),
            in_tag: false,
            in_cdata: false,
            started: false,
            doctype,
            meta: false,
            other_meta: None,
            ends_in_text: false,
            generated: 0,
            tag_prefixes: Vec::new(),
            tops: 0,
            control: None,
        }
    }

    /// Whether it has received nothing yet.
    pub fn is_untouched(&self) -> bool {
        !self.started && self.is_empty()
    }

    /// Returns the vector; the output so far stays, unfinished.
    pub fn into_inner(self) -> &'a mut Vec<u8> {
        self.out
    }

    /// The number of open elements.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// The bytes that will not change any more: take them and clear the vector. `None` where a start
    /// tag is open, or where the encoding is applied at the end.
    pub fn settled(&mut self) -> Option<&mut Vec<u8>> {
        if self.in_tag || self.other_meta.is_some() || !matches!(self.output, Output::Utf8) || self.from > 0 {
            return None;
        }
        self.taken |= !self.out.is_empty();
        Some(self.out)
    }

    /// Whether it has written anything.
    fn is_empty(&self) -> bool {
        !self.taken && self.out.len() == self.from + self.mark
    }

    fn start(&mut self) {
        if self.started {
            return;
        }
        self.started = true;
        if matches!(self.options.method, Method::Xml | Method::Xhtml) && self.options.declaration {
            let encoding = self.options.encoding.as_deref().unwrap_or("UTF-8");
            self.out.extend_from_slice(b"<?xml version=\"");
            self.out.extend_from_slice(self.options.version.as_bytes());
            self.out.extend_from_slice(b"\" encoding=\"");
            self.out.extend_from_slice(encoding.as_bytes());
            if let Some(standalone) = self.options.standalone {
                self.out.extend_from_slice(b"\" standalone=\"");
                self.out.extend_from_slice(if standalone { b"yes" } else { b"no" });
            }
            self.out.extend_from_slice(b"\"?>");
        }
    }

    fn write_doctype(&mut self, name: &[u8]) {
        self.doctype = false;
        self.out.extend_from_slice(b"<!DOCTYPE ");
        self.out.extend_from_slice(name);
        let quoted = |out: &mut Vec<u8>, id: &str| {
            let quote = if id.contains('"') { b'\'' } else { b'"' };
            out.extend_from_slice(&[b' ', quote]);
            out.extend_from_slice(id.as_bytes());
            out.push(quote);
        };
        match (&self.options.doctype_public, &self.options.doctype_system) {
            // In XHTML 5 the public identifier alone has no effect.
            (Some(_), None) if self.options.html5 && self.options.method == Method::Xhtml => {}
            (Some(public), system) => {
                self.out.extend_from_slice(b" PUBLIC");
                quoted(self.out, public);
                if let Some(system) = system {
                    quoted(self.out, system);
                }
            }
            (None, Some(system)) => {
                self.out.extend_from_slice(b" SYSTEM");
                quoted(self.out, system);
            }
            (None, None) => {}
        }
        self.out.extend_from_slice(b">\n");
    }

    /// Starts an element.
    pub fn start_element(&mut self, prefix: &str, namespace: &str, local: &str) {
        if self.options.method == Method::Text {
            return;
        }
        self.start();
        self.close_tag();
        self.ends_in_text = false;
        let kind = match self.options.method {
            Method::Html if namespace.is_empty() => Kind::Html,
            Method::Html if self.options.html5 && namespace == html::XHTML => Kind::Html,
            Method::Xhtml if namespace == html::XHTML => Kind::Xhtml,
            Method::Xhtml if self.options.html5 && namespace.is_empty() => Kind::Xhtml,
            _ => Kind::Xml,
        };
        let traits = if kind == Kind::Xml { html::Traits::default() } else { html::traits(local) };
        let inline = traits.inline;
        let (inherited_keep, mixed) = self.frames.last().map_or((false, false), |f| (f.keep, f.mixed));
        let start = self.out.len();
        if self.options.indent && !inherited_keep && !mixed && !inline && !self.is_empty() {
            self.indent(self.frames.len());
        }
        match self.frames.last_mut() {
            Some(parent) => parent.children = true,
            None => self.tops += 1,
        }
        // A name in no namespace cannot have a prefix.
        let prefix = if namespace.is_empty() || self.is_unprefixed(namespace) { "" } else { prefix };
        let names = self.names.len() as u32;
        if !prefix.is_empty() {
            self.names.extend_from_slice(prefix.as_bytes());
            self.names.push(b':');
        }
        self.names.extend_from_slice(local.as_bytes());
        if self.doctype && self.frames.is_empty() {
            let name = self.names[names as usize..].to_vec();
            // By version 5 alone only what is HTML has one.
            let by_version = self.options.doctype_system.is_none()
                && (self.options.doctype_public.is_none() || self.options.method == Method::Xhtml);
            if by_version && (kind == Kind::Xml || !local.eq_ignore_ascii_case("html")) {
                self.doctype = false;
            } else {
                self.write_doctype(if self.options.method == Method::Html { b"html" } else { &name });
            }
        }
        self.see_meta(kind, local, start);
        self.out.push(b'<');
        self.out.extend_from_slice(&self.names[names as usize..]);
        let named = |list: &[(String, String)]| list.iter().any(|(n, l)| n == namespace && l == local);
        let cdata = !self.options.cdata_elements.is_empty() && named(&self.options.cdata_elements);
        self.frames.push(Frame {
            names,
            scope: self.scope.len() as u32,
            cdata,
            kind,
            head: false,
            raw: kind == Kind::Html && traits.raw,
            void: traits.void,
            keep: inherited_keep || traits.keeps_space || named(&self.options.suppress_indentation),
            mixed: false,
            children: false,
            inline,
        });
        self.in_tag = true;
        self.tag_prefixes.clear();
        self.meta = self.options.include_content_type
            && match kind {
                Kind::Html => local.eq_ignore_ascii_case("head"),
                Kind::Xhtml => local == "head",
                Kind::Xml => false,
            };
        if prefix != "xml" && !is_same(self.lookup(prefix).unwrap_or(""), namespace) {
            self.declare(prefix, namespace);
        }
    }

    /// The namespace of a prefix.
    fn lookup(&self, prefix: &str) -> Option<&str> {
        self.scope.iter().rev().find(|b| is_same(self.string(b.prefix), prefix)).map(|b| self.string(b.uri))
    }

    #[inline]
    fn string(&self, range: (u32, u32)) -> &str {
        &self.strings[range.0 as usize..range.1 as usize]
    }

    /// Whether names of elements in a namespace have no prefix: in HTML 5 and XHTML 5.
    fn is_unprefixed(&self, namespace: &str) -> bool {
        self.options.html5
            && matches!(self.options.method, Method::Html | Method::Xhtml)
            && matches!(
                namespace,
                html::XHTML | "http://www.w3.org/2000/svg" | "http://www.w3.org/1998/Math/MathML"
            )
    }

    /// Declares a namespace at the element just started. One already in force is not repeated; one that contradicts
    /// the name of the element is left out.
    pub fn namespace(&mut self, prefix: &str, uri: &str) {
        // (Attributes that need the prefix declare it.)
        if self.in_tag && uri != XMLNS_NS && (prefix.is_empty() || !self.is_unprefixed(uri)) {
            self.add_namespace(prefix, uri);
        }
    }

    /// ` = "value"`.
    fn value(&mut self, value: &str) {
        self.out.extend_from_slice(b"=\"");
        each_run(self.out, value, &mut self.repertoire, push_attribute);
        self.out.push(b'"');
    }

    /// Adds an attribute to the element just started; outside a start tag it is left out. The caller must not
    /// add one twice.
    pub fn attribute(&mut self, prefix: &str, namespace: &str, local: &str, value: &str) {
        if !self.in_tag {
            return;
        }
        let chosen = if namespace.is_empty() {
            None
        } else if namespace == XML_NS {
            if local == "space"
                && let Some(frame) = self.frames.last_mut()
            {
                frame.keep = value == "preserve";
            }
            Some(String::from("xml"))
        } else {
            Some(self.prefix_for_attribute(prefix, namespace))
        };
        self.out.push(b' ');
        if let Some(prefix) = &chosen {
            if !self.tag_prefixes.contains(prefix) {
                self.tag_prefixes.push(prefix.clone());
            }
            self.out.extend_from_slice(prefix.as_bytes());
            self.out.push(b':');
        }
        self.out.extend_from_slice(local.as_bytes());
        let kind = match self.frames.last() {
            Some(frame) if chosen.is_none() => frame.kind,
            _ => Kind::Xml,
        };
        if let Some((_, replaced)) = &mut self.other_meta
            && kind != Kind::Xml
        {
            // HTML 5 has one declaration of the encoding.
            *replaced |= local.eq_ignore_ascii_case("http-equiv")
                && value.trim_ascii().eq_ignore_ascii_case("content-type")
                || self.options.html5 && local.eq_ignore_ascii_case("charset");
        }
        if kind == Kind::Html
            && value.eq_ignore_ascii_case(local)
            && html::is_boolean(self.local_name(), local)
        {
            return;
        }
        self.out.extend_from_slice(b"=\"");
        let push = if kind == Kind::Html { html::push_value } else { push_attribute };
        // ASCII stays as it is in URIs, unless characters elsewhere are mapped.
        let special = !value.is_ascii()
            || !self.options.character_map.is_empty()
            || self.options.normalization.is_some()
            || self.options.method == Method::Xhtml;
        let escapes = special && kind != Kind::Xml && self.options.escape_uri_attributes;
        if escapes && html::is_uri(self.local_name(), local) {
            // Mapped characters are not escaped in URIs.
            let escaped = if value.is_ascii() { None } else { Some(html::escape_uri(value)) };
            each_run(self.out, escaped.as_deref().unwrap_or(value), &mut self.repertoire, push);
        } else {
            self.characters(value, push);
        }
        self.out.push(b'"');
    }

    /// The local name of the element whose start tag is open.
    fn local_name(&self) -> &str {
        let name =
            self.frames.last().and_then(|frame| self.names.get(frame.names as usize..)).unwrap_or_default();
        let local = name.iter().position(|byte| *byte == b':').map_or(name, |colon| &name[colon + 1..]);
        std::str::from_utf8(local).unwrap_or_default()
    }

    /// Text of the result: mapped characters are replaced, the others normalized and escaped by `push`.
    #[inline]
    fn characters(&mut self, text: &str, push: fn(&mut Vec<u8>, &str)) {
        let references = match self.options.method {
            Method::Xhtml => has_controls(text),
            Method::Xml => self.options.version2 && has_controls(text),
            Method::Html if self.options.version2 && !self.options.html5 => {
                self.control = self.control.or_else(|| find_control(text));
                false
            }
            _ => false,
        };
        if references {
            return self.with_controls(text, push);
        }
        if self.options.character_map.is_empty() && self.options.normalization.is_none() {
            return each_run(self.out, text, &mut self.repertoire, push);
        }
        self.mapped(text, push);
    }

    /// Text with control characters: they become references, which browsers interpret.
    #[cold]
    fn with_controls(&mut self, text: &str, push: fn(&mut Vec<u8>, &str)) {
        let version2 = self.options.version2;
        let is_it = |c: char| is_control(c) || c == '\u{2028}' && version2;
        for run in text.split_inclusive(is_it) {
            let control = run.chars().next_back().filter(|c| is_it(*c));
            let before = &run[..run.len() - control.map_or(0, char::len_utf8)];
            self.mapped(before, push);
            if let Some(c) = control {
                super::escape::push_reference(self.out, c);
            }
        }
    }

    #[cold]
    fn mapped(&mut self, text: &str, push: fn(&mut Vec<u8>, &str)) {
        let map = &self.options.character_map;
        let mut rest = text;
        loop {
            let found = rest.char_indices().find_map(|(at, c)| map.get(&c).map(|written| (at, c, written)));
            let (run, tail) = match found {
                Some((at, c, written)) => (&rest[..at], Some((written, &rest[at + c.len_utf8()..]))),
                None => (rest, None),
            };
            let normalized = self.options.normalization.map(|form| match form {
                Normalization::Nfc => run.nfc().collect::<String>(),
                Normalization::Nfd => run.nfd().collect(),
                Normalization::Nfkc => run.nfkc().collect(),
                Normalization::Nfkd => run.nfkd().collect(),
            });
            each_run(self.out, normalized.as_deref().unwrap_or(run), &mut self.repertoire, push);
            let Some((written, tail)) = tail else { return };
            self.out.extend_from_slice(written.as_bytes());
            rest = tail;
        }
    }

    /// An existing `meta` with the encoding is left out of a `head` that has got one (Serialization 6.1.14 and 7.4.13). `start`:
    /// where its element begins.
    fn see_meta(&mut self, kind: Kind, local: &str, start: usize) {
        if self.other_meta.is_none()
            && self.frames.last().is_some_and(|f| f.head && f.kind == kind)
            && local.eq_ignore_ascii_case("meta")
        {
            self.other_meta = Some((start, false));
        }
    }

    /// Closes an open start tag and CDATA section.
    #[inline]
    fn close_tag(&mut self) {
        if self.in_tag {
            self.in_tag = false;
            self.out.push(b'>');
            if self.meta {
                self.write_meta();
            }
        }
        if self.in_cdata {
            self.in_cdata = false;
            self.out.extend_from_slice(b"]]>");
        }
    }

    fn write_meta(&mut self) {
        self.meta = false;
        if self.options.indent {
            self.indent(self.frames.len());
        }
        let media_type = self.options.media_type.as_deref().unwrap_or("text/html");
        let encoding = self.options.encoding.as_deref().unwrap_or("UTF-8");
        let Some(frame) = self.frames.last_mut() else { return };
        (frame.children, frame.head) = (true, true);
        let name = &self.names[frame.names as usize..];
        let prefix = name.iter().position(|b| *b == b':').map_or(&b""[..], |colon| &name[..=colon]);
        let is_xhtml = frame.kind == Kind::Xhtml;
        self.out.push(b'<');
        self.out.extend_from_slice(prefix);
        self.out.extend_from_slice(b"meta http-equiv=\"Content-Type\" content=\"");
        let content = format!("{media_type}; charset={encoding}");
        self.characters(&content, push_attribute);
        self.out.push(b'"');
        self.out.extend_from_slice(if is_xhtml { b" />" } else { b">" });
    }

    fn indent(&mut self, depth: usize) {
        if self.out.last() != Some(&b'\n') || depth > 0 {
            self.out.push(b'\n');
        }
        let width = (depth * self.options.indent_width).min(256);
        self.out.resize(self.out.len() + width, b' ');
    }

    /// Text, escaped as output method and element demand.
    pub fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.options.method == Method::Text {
            if self.options.character_map.is_empty() && self.options.normalization.is_none() {
                self.out.extend_from_slice(text.as_bytes());
                return;
            }
            // The method text has no references: characters that the encoding lacks are an error at the end.
            let repertoire = std::mem::replace(&mut self.repertoire, Repertoire::All);
            self.mapped(text, |out, text| out.extend_from_slice(text.as_bytes()));
            self.repertoire = repertoire;
            return;
        }
        self.start();
        if self.frames.is_empty() {
            self.ends_in_text = true;
            self.tops = 2;
        }
        let (cdata, raw, is_html) = match self.frames.last_mut() {
            Some(frame) => {
                frame.mixed = true;
                (frame.cdata, frame.raw, frame.kind == Kind::Html)
            }
            None => (false, false, self.options.method == Method::Html),
        };
        if cdata && !is_html {
            return self.cdata(text);
        }
        self.close_tag();
        if raw {
            self.out.extend_from_slice(text.as_bytes());
        } else {
            self.characters(text, if is_html { html::push_text } else { push_text });
        }
    }

    fn cdata(&mut self, text: &str) {
        let text = &*sound(text);
        if !self.in_cdata {
            self.close_tag();
        }
        // `]]>` must not stand inside, also not across two calls.
        for part in text.split_inclusive('>') {
            let before = part.strip_suffix('>');
            self.cdata_run(before.unwrap_or(part));
            if before.is_some() {
                self.open_cdata();
                if self.out.ends_with(b"]]") {
                    self.out.extend_from_slice(b"]]><![CDATA[");
                }
                self.out.push(b'>');
            }
        }
    }

    fn open_cdata(&mut self) {
        if !self.in_cdata {
            self.out.extend_from_slice(b"<![CDATA[");
            self.in_cdata = true;
        }
    }

    /// Characters that the encoding lacks stand outside the section, and carriage returns, which would be read as line ends.
    fn cdata_run(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let outside = |c: char| c == '\r' || !c.is_ascii() && !self.repertoire.has(c);
            let inside = rest.find(outside).unwrap_or(rest.len());
            if inside > 0 {
                self.open_cdata();
                self.out.extend_from_slice(&rest.as_bytes()[..inside]);
            }
            rest = &rest[inside..];
            if let Some(c) = rest.chars().next() {
                if std::mem::take(&mut self.in_cdata) {
                    self.out.extend_from_slice(b"]]>");
                }
                super::escape::push_reference(self.out, c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }

    /// Text without any escaping (`disable-output-escaping`), except of characters that the encoding lacks.
    pub fn raw_text(&mut self, text: &str) {
        if self.options.method != Method::Text {
            self.start();
            self.close_tag();
            self.ends_in_text |= self.frames.is_empty();
            if let Some(frame) = self.frames.last_mut() {
                frame.mixed = true;
            }
            each_run(self.out, text, &mut self.repertoire, |out, run| out.extend_from_slice(run.as_bytes()));
            return;
        }
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Bytes that are already serialised content (UTF-8), such as pre-escaped runs of a compiled stylesheet. They
    /// must leave the elements and namespaces as they found them.
    #[inline]
    pub fn raw_bytes(&mut self, bytes: &[u8]) {
        self.start();
        self.close_tag();
        self.out.extend_from_slice(bytes);
    }

    /// A comment; `--` is separated by spaces.
    pub fn comment(&mut self, text: &str) {
        if self.options.method == Method::Text {
            return;
        }
        self.start();
        self.close_tag();
        self.indent_misc();
        push_comment(self.out, text);
    }

    /// A processing instruction.
    pub fn pi(&mut self, target: &str, data: &str) {
        if self.options.method == Method::Text {
            return;
        }
        self.start();
        self.close_tag();
        self.indent_misc();
        if self.options.method == Method::Html {
            self.out.extend_from_slice(b"<?");
            self.out.extend_from_slice(target.as_bytes());
            if !data.is_empty() {
                self.out.push(b' ');
                self.out.extend_from_slice(data.as_bytes());
            }
            self.out.push(b'>');
        } else {
            push_pi(self.out, target, data);
        }
    }

    /// Whether the method cannot represent a processing instruction with these data: in HTML it ends with `>`.
    pub fn ends_pi(&self, data: &str) -> bool {
        self.options.method == Method::Html && data.contains('>')
    }

    fn indent_misc(&mut self) {
        self.ends_in_text = false;
        if !self.options.indent || self.is_empty() {
            return;
        }
        match self.frames.last_mut() {
            Some(frame) if !frame.keep && !frame.mixed => {
                frame.children = true;
                self.indent(self.frames.len());
            }
            None => self.indent(0),
            _ => {}
        }
    }

    /// Ends the innermost element.
    pub fn end_element(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        let name = frame.names as usize..self.names.len();
        if frame.kind != Kind::Xml {
            if self.meta {
                self.frames.push(frame);
                self.close_tag();
                return self.end_element();
            }
            if self.in_tag && frame.void {
                self.out.extend_from_slice(if frame.kind == Kind::Xhtml { b" />" } else { b">" });
            } else {
                self.close_tag();
                if !frame.void || frame.kind == Kind::Xhtml {
                    self.end_tag(&frame, name);
                }
            }
        } else if self.in_tag {
            self.out.extend_from_slice(b"/>");
        } else {
            self.close_tag();
            self.end_tag(&frame, name);
        }
        if let Some((start, replaced)) = self.other_meta
            && self.frames.last().is_some_and(|f| f.head)
        {
            self.other_meta = None;
            if replaced {
                self.out.truncate(start);
            }
        }
        self.in_tag = false;
        self.names.truncate(frame.names as usize);
        if let Some(first) = self.scope.get(frame.scope as usize) {
            self.strings.truncate(first.prefix.0 as usize);
            self.scope.truncate(frame.scope as usize);
        }
    }

    fn end_tag(&mut self, frame: &Frame, name: std::ops::Range<usize>) {
        if self.options.indent && frame.children && !frame.mixed && !frame.keep && !frame.inline {
            self.indent(self.frames.len());
        }
        self.out.extend_from_slice(b"</");
        self.out.extend_from_slice(&self.names[name]);
        self.out.push(b'>');
    }

    /// What is wrong with the whole by the rules of XSLT 2.0.
    fn check(&self) -> Result<(), WriteError> {
        let options = self.options;
        if let Some(character) = self.control {
            return Err(WriteError::Control(character));
        }
        if matches!(options.method, Method::Html | Method::Text) {
            return Ok(());
        }
        if options.method == Method::Xml && !matches!(options.version.trim(), "1.0" | "1.1") {
            return Err(WriteError::Version);
        }
        if !options.declaration
            && (options.standalone.is_some()
                || options.method == Method::Xml
                    && options.doctype_system.is_some()
                    && options.version.trim() != "1.0")
        {
            return Err(WriteError::NoDeclaration);
        }
        if (options.standalone.is_some() || options.doctype_system.is_some()) && self.tops > 1 {
            return Err(WriteError::NotADocument);
        }
        Ok(())
    }

    /// Ends what is open, and the document. Errors: a character that the encoding lacks, where there are no character references: in
    /// names, comments, processing instructions, scripts of HTML, and in the method text. The output is not complete then.
    pub fn finish(mut self) -> Result<(), WriteError> {
        while !self.frames.is_empty() {
            self.end_element();
        }
        if matches!(self.options.method, Method::Xml | Method::Xhtml) {
            self.start();
        }
        if self.options.indent
            && self.options.method != Method::Text
            && !self.ends_in_text
            && self.out.last().is_some_and(|&b| b != b'\n')
        {
            self.out.push(b'\n');
        }
        if self.options.version2 {
            self.check()?;
        }
        self.output.encode(self.out, self.from)
    }
}

/// The first control character that XML has and HTML 4 does not.
fn find_control(text: &str) -> Option<char> {
    if has_controls(text) { text.chars().find(|c| is_control(*c)) } else { None }
}

pub(crate) fn push_comment(out: &mut Vec<u8>, text: &str) {
    let text = &*sound(text);
    out.extend_from_slice(b"<!--");
    if text.contains("--") || text.ends_with('-') {
        let mut last = 0;
        for b in text.bytes() {
            if b == b'-' && last == b'-' {
                out.push(b' ');
            }
            out.push(b);
            last = b;
        }
        if last == b'-' {
            out.push(b' ');
        }
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(b"-->");
}

pub(crate) fn push_pi(out: &mut Vec<u8>, target: &str, data: &str) {
    let data = &*sound(data);
    out.extend_from_slice(b"<?");
    out.extend_from_slice(target.as_bytes());
    if !data.is_empty() {
        out.push(b' ');
        if data.contains("?>") {
            out.extend_from_slice(data.replace("?>", "? >").as_bytes());
        } else {
            out.extend_from_slice(data.as_bytes());
        }
    }
    out.extend_from_slice(b"?>");
}

impl StartTag for Serializer<'_> {
    fn bound(&self, prefix: &str) -> Option<&str> {
        self.lookup(prefix)
    }

    fn declares(&self, prefix: &str) -> bool {
        let from = self.frames.last().map_or(0, |f| f.scope as usize);
        self.scope[from..].iter().any(|b| is_same(self.string(b.prefix), prefix))
    }

    fn uses(&self, prefix: &str) -> bool {
        let Some(frame) = self.frames.last() else { return false };
        let name = &self.names[frame.names as usize..];
        let name_prefix = name.iter().position(|&b| b == b':').map_or(&[][..], |i| &name[..i]);
        name_prefix == prefix.as_bytes() || self.tag_prefixes.iter().any(|used| used == prefix)
    }

    fn prefix_of(&self, namespace: &str) -> Option<String> {
        let binding = self.scope.iter().rev().find(|b| {
            let prefix = self.string(b.prefix);
            self.string(b.uri) == namespace && !prefix.is_empty() && self.lookup(prefix) == Some(namespace)
        });
        binding.map(|b| self.string(b.prefix).to_owned())
    }

    fn declare(&mut self, prefix: &str, uri: &str) {
        let start = self.strings.len() as u32;
        self.strings.push_str(prefix);
        let middle = self.strings.len() as u32;
        self.strings.push_str(uri);
        let end = self.strings.len() as u32;
        self.scope.push(Binding { prefix: (start, middle), uri: (middle, end) });
        self.out.extend_from_slice(if prefix.is_empty() { b" xmlns" } else { b" xmlns:" });
        self.out.extend_from_slice(prefix.as_bytes());
        self.value(uri);
    }

    fn next_number(&mut self) -> u32 {
        self.generated += 1;
        self.generated - 1
    }
}
