//! XML straight to bytes: the path of messages. The default output (XML, UTF-8, no indentation,
//! no CDATA sections, no document type) needs no serialiser: literal result elements are bytes made when the
//! stylesheet was compiled, and namespaces in force are numbers that are compared.

use super::out::Fit;
use crate::model::{Literal, name_bit};
use xml::escape::{push_attribute, push_attribute_controlled, push_text, push_text_controlled};
use xml::{StartTag, is_same};

/// A namespace declaration in force, linked to the one before it. Its number stands for all of them.
struct Scope {
    parent: u32,
    prefix: Box<str>,
    uri: Box<str>,
    /// The last declaration that was made on top of this one.
    last: u32,
}

/// The declarations of a literal result element in its present scope.
#[derive(Clone, Copy)]
struct Cached {
    /// The scope around it, and the scope in it.
    outer: u32,
    inner: u32,
    /// Its declarations in `declarations`.
    start: u32,
    end: u32,
}

/// An open element that is not a literal one.
struct Frame {
    name: u32,
    scope: u32,
}

const NONE: u32 = u32::MAX;

pub(super) struct Fast<'o> {
    pub out: &'o mut Vec<u8>,
    scopes: Vec<Scope>,
    scope: u32,
    /// By the number of the literal result element.
    cache: Vec<Cached>,
    declarations: Vec<u8>,
    /// The namespaces around each open literal result element.
    outer: Vec<u32>,
    frames: Vec<Frame>,
    names: Vec<u8>,
    /// A start tag is open: the position of its `<`, the end of its name, the scope around it.
    in_tag: bool,
    tag: usize,
    tag_end: usize,
    tag_scope: u32,
    /// The names of its attributes, see [`name_bit`].
    tag_names: u64,
    generated: u32,
    /// The depths of open elements whose children do not inherit their namespaces: of these only the default namespace can be
    /// taken away in XML 1.0.
    isolated: Vec<usize>,
    /// Control characters are references (XSLT 2.0).
    references: bool,
}

/// For [`Fast::end_leaf`]: the scope around it, and the start of its content.
#[derive(Clone, Copy)]
pub(super) struct Leaf {
    outer: u32,
    content: usize,
}

impl<'o> Fast<'o> {
    /// `version2`: by the rules of XSLT 2.0.
    pub fn new(out: &'o mut Vec<u8>, version2: bool) -> Fast<'o> {
        let mut scopes = Vec::with_capacity(8);
        scopes.push(Scope { parent: NONE, prefix: "".into(), uri: "".into(), last: NONE });
        Fast {
            out,
            scopes,
            scope: 0,
            cache: Vec::new(),
            declarations: Vec::new(),
            outer: Vec::with_capacity(16),
            frames: Vec::new(),
            names: Vec::new(),
            in_tag: false,
            tag: 0,
            tag_end: 0,
            tag_scope: 0,
            tag_names: 0,
            generated: 0,
            isolated: Vec::new(),
            references: version2,
        }
    }

    /// Text of the result.
    #[inline]
    fn push_text(&mut self, text: &str) {
        match self.references {
            true => push_text_controlled(self.out, text),
            false => push_text(self.out, text),
        }
    }

    #[inline]
    fn push_value(&mut self, value: &str) {
        match self.references {
            true => push_attribute_controlled(self.out, value),
            false => push_attribute(self.out, value),
        }
    }

    /// The children of the element just started do not inherit its namespaces.
    pub fn isolate(&mut self) {
        self.isolated.push(self.frames.len() + self.outer.len());
    }

    /// Whether a default namespace is in force that the element to be started does not inherit.
    #[inline]
    fn is_to_hide(&self, open: usize) -> bool {
        !self.isolated.is_empty()
            && self.isolated.last() == Some(&open)
            && !self.lookup_in(self.scope, "").is_empty()
    }

    #[inline]
    fn leave(&mut self, open: usize) {
        if !self.isolated.is_empty() && self.isolated.last() == Some(&open) {
            self.isolated.pop();
        }
    }

    /// The output so far, unless a start tag is open: it is final.
    pub fn settled(&mut self) -> Option<&mut Vec<u8>> {
        (!self.in_tag).then_some(&mut *self.out)
    }

    /// Whether no element is open.
    pub fn is_at_top(&self) -> bool {
        self.frames.is_empty() && self.outer.is_empty()
    }

    #[inline]
    fn close_tag(&mut self) {
        if self.in_tag {
            self.in_tag = false;
            self.out.push(b'>');
        }
    }

    fn lookup_in(&self, scope: u32, prefix: &str) -> &str {
        let mut at = scope;
        while at != NONE {
            let scope = &self.scopes[at as usize];
            if is_same(&scope.prefix, prefix) {
                return &scope.uri;
            }
            at = scope.parent;
        }
        ""
    }

    /// `scope` with one more namespace.
    fn with(&mut self, scope: u32, prefix: &str, uri: &str) -> u32 {
        let last = self.scopes[scope as usize].last;
        if let Some(s) = self.scopes.get(last as usize)
            && is_same(&s.prefix, prefix)
            && is_same(&s.uri, uri)
        {
            return last;
        }
        let number = self.scopes.len() as u32;
        self.scopes.push(Scope { parent: scope, prefix: prefix.into(), uri: uri.into(), last: NONE });
        self.scopes[scope as usize].last = number;
        number
    }

    // Literal result elements.

    /// Starts a literal result element, with all fixed attributes. Only for those that have
    /// [`Literal::bindings`].
    #[inline]
    pub fn start_literal(&mut self, literal: &Literal) {
        let open = self.frames.len() + self.outer.len();
        self.outer.push(self.scope);
        self.open_literal(literal, open);
        self.tag_names = literal.mask;
        self.in_tag = true;
    }

    #[inline]
    fn open_literal(&mut self, literal: &Literal, open: usize) {
        self.close_tag();
        self.tag = self.out.len();
        self.tag_end = self.tag + literal.open.len();
        self.tag_scope = self.scope;
        // (One that has a default namespace of its own keeps or declares it.)
        let binds = |bindings: &[crate::model::Declaration]| {
            bindings.iter().any(|(prefix, uri)| prefix.is_empty() && !uri.is_empty())
        };
        let hides = self.is_to_hide(open) && !literal.bindings.as_deref().is_some_and(binds);
        if hides {
            self.scope = self.with(self.scope, "", "");
        }
        match self.cache.get(literal.number as usize) {
            Some(cached) if cached.outer == self.scope => {
                if cached.start == cached.end && !hides {
                    self.out.extend_from_slice(&literal.start);
                    return;
                }
                self.out.extend_from_slice(&literal.open);
                self.out.extend_from_slice(&self.declarations[cached.start as usize..cached.end as usize]);
                self.scope = cached.inner;
            }
            _ => {
                self.out.extend_from_slice(&literal.open);
                self.declare_literal(literal);
            }
        }
        if hides {
            push_declaration(self.out, "", "");
        }
        self.out.extend_from_slice(&literal.fixed);
    }

    /// The same for one that contains only text: its start tag is closed.
    #[inline]
    pub fn start_leaf(&mut self, literal: &Literal) -> Leaf {
        let outer = self.scope;
        self.open_literal(literal, self.frames.len() + self.outer.len());
        self.out.push(b'>');
        Leaf { outer, content: self.out.len() }
    }

    /// The content of the element just started, and its end. Returns the length of the text.
    #[inline]
    pub fn leaf(&mut self, literal: &Literal, leaf: Leaf, text: &str) -> usize {
        self.push_text(text);
        self.end_leaf(literal, leaf);
        text.len()
    }

    #[inline]
    pub fn end_leaf(&mut self, literal: &Literal, leaf: Leaf) {
        if self.out.len() == leaf.content {
            self.out.pop();
            self.out.extend_from_slice(b"/>");
        } else {
            self.out.extend_from_slice(&literal.close);
        }
        self.scope = leaf.outer;
    }

    fn declare_literal(&mut self, literal: &Literal) {
        let outer = self.scope;
        let start = self.declarations.len();
        self.declarations.reserve(if start == 0 { 256 } else { 0 });
        for (prefix, uri) in literal.bindings.iter().flatten() {
            if !is_same(self.lookup_in(self.scope, prefix), uri) {
                self.scope = self.with(self.scope, prefix, uri);
                push_declaration(&mut self.declarations, prefix, uri);
            }
        }
        self.out.extend_from_slice(&self.declarations[start..]);
        let number = literal.number as usize;
        if self.cache.len() <= number {
            self.cache.resize((number + 1).max(32), Cached { outer: NONE, inner: 0, start: 0, end: 0 });
        }
        // Scopes that change again and again are not cached for ever.
        if self.declarations.len() > 1 << 20 {
            self.declarations.clear();
            self.cache.iter_mut().for_each(|cached| cached.outer = NONE);
            return;
        }
        let end = self.declarations.len() as u32;
        self.cache[number] = Cached { outer, inner: self.scope, start: start as u32, end };
    }

    /// An attribute of the literal result element just started: `lead` is ` name="`.
    #[inline]
    pub fn literal_attribute(&mut self, lead: &[u8], value: &str) {
        self.out.extend_from_slice(lead);
        self.push_value(value);
        self.out.push(b'"');
    }

    #[inline]
    pub fn end_literal(&mut self, close: &[u8]) {
        self.leave(self.frames.len() + self.outer.len());
        if self.in_tag {
            self.in_tag = false;
            self.out.extend_from_slice(b"/>");
        } else {
            self.out.extend_from_slice(close);
        }
        if let Some(outer) = self.outer.pop() {
            self.scope = outer;
        }
    }

    // Other elements.

    pub fn start_element(&mut self, prefix: &str, namespace: &str, local: &str) {
        self.close_tag();
        let prefix = if namespace.is_empty() { "" } else { prefix };
        let name = self.names.len();
        if !prefix.is_empty() {
            self.names.extend_from_slice(prefix.as_bytes());
            self.names.push(b':');
        }
        self.names.extend_from_slice(local.as_bytes());
        self.tag = self.out.len();
        self.out.push(b'<');
        self.out.extend_from_slice(&self.names[name..]);
        self.tag_end = self.out.len();
        let hides = self.is_to_hide(self.frames.len() + self.outer.len());
        self.frames.push(Frame { name: name as u32, scope: self.scope });
        self.tag_scope = self.scope;
        self.tag_names = 0;
        self.in_tag = true;
        if prefix != "xml" && !is_same(self.lookup_in(self.scope, prefix), namespace) {
            StartTag::declare(self, prefix, namespace);
        }
        // (The name itself needs it, or has taken it away.)
        if hides && !prefix.is_empty() {
            self.scope = self.with(self.scope, "", "");
            push_declaration(self.out, "", "");
        }
    }

    /// An element in no namespace that contains only this text. `false`: it must be written in another way, because there is
    /// a default namespace.
    #[inline]
    pub fn plain_leaf(&mut self, local: &str, text: &str) -> bool {
        if !self.lookup_in(self.scope, "").is_empty() {
            return false;
        }
        self.close_tag();
        self.out.push(b'<');
        self.out.extend_from_slice(local.as_bytes());
        self.out.push(b'>');
        self.push_text(text);
        self.out.extend_from_slice(b"</");
        self.out.extend_from_slice(local.as_bytes());
        self.out.push(b'>');
        true
    }

    pub fn end_element(&mut self) {
        self.leave(self.frames.len() + self.outer.len());
        let Some(frame) = self.frames.pop() else { return };
        if self.in_tag {
            self.in_tag = false;
            self.out.extend_from_slice(b"/>");
        } else {
            self.out.extend_from_slice(b"</");
            self.out.extend_from_slice(&self.names[frame.name as usize..]);
            self.out.push(b'>');
        }
        self.names.truncate(frame.name as usize);
        self.scope = frame.scope;
    }

    /// A namespace node for the open tag; one that contradicts it is left out.
    pub fn namespace(&mut self, prefix: &str, uri: &str) {
        if self.in_tag && !is_same(self.lookup_in(self.scope, prefix), uri) {
            self.add_namespace(prefix, uri);
        }
    }

    /// A namespace node that the stylesheet makes, for the open tag.
    pub fn made_namespace(&mut self, prefix: &str, uri: &str) -> Fit {
        if !self.in_tag {
            return Fit::Misplaced;
        }
        let name = &self.out[self.tag + 1..self.tag_end];
        let is_unprefixed = !name.contains(&b':');
        // (An element without prefix has the default namespace in force.)
        if prefix.is_empty() && is_unprefixed && self.lookup_in(self.scope, "").is_empty() {
            return Fit::NoNamespace;
        }
        if is_same(self.lookup_in(self.scope, prefix), uri) || self.add_namespace(prefix, uri) {
            return Fit::Fits;
        }
        Fit::Contradicts
    }

    /// An attribute for the open tag; with `search` it replaces one of the same name.
    pub fn attribute(
        &mut self,
        prefix: &str,
        namespace: &str,
        local: &str,
        value: &str,
        search: bool,
    ) -> bool {
        if !self.in_tag {
            return false;
        }
        let prefix = match namespace {
            "" => String::new(),
            xml::XML_NS => "xml".to_owned(),
            namespace => self.prefix_for_attribute(prefix, namespace),
        };
        let bit = name_bit(local);
        let search = search && self.tag_names & bit != 0;
        self.tag_names |= bit;
        if search && let Some(range) = self.find_attribute(&prefix, namespace, local) {
            self.out.drain(range);
        }
        self.out.push(b' ');
        if !prefix.is_empty() {
            self.out.extend_from_slice(prefix.as_bytes());
            self.out.push(b':');
        }
        self.out.extend_from_slice(local.as_bytes());
        self.out.extend_from_slice(b"=\"");
        self.push_value(value);
        self.out.push(b'"');
        true
    }

    /// The attributes of the open tag, declarations included: position, prefix and local name of each.
    fn attributes(&self) -> impl Iterator<Item = (std::ops::Range<usize>, &str, &str)> {
        let mut at = self.tag_end;
        std::iter::from_fn(move || {
            // ` name="value"`: no value has a quote in it.
            let rest = self.out.get(at + 1..)?;
            let equals = rest.iter().position(|b| *b == b'=')?;
            let length = rest[equals + 2..].iter().position(|b| *b == b'"')? + equals + 3;
            let name = std::str::from_utf8(&rest[..equals]).ok()?;
            let (prefix, local) = name.split_once(':').unwrap_or(("", name));
            let range = at..at + 1 + length;
            at = range.end;
            Some((range, prefix, local))
        })
    }

    /// The position of an attribute with that name in the open tag.
    fn find_attribute(&self, prefix: &str, namespace: &str, local: &str) -> Option<std::ops::Range<usize>> {
        let is_it = |found: &str, found_local: &str| {
            found_local == local
                && found != "xmlns"
                && !(found.is_empty() && found_local == "xmlns")
                && (is_same(found, prefix)
                    || (!found.is_empty()
                        && !prefix.is_empty()
                        && self.lookup_in(self.scope, found) == namespace))
        };
        self.attributes().find(|(_, found, found_local)| is_it(found, found_local)).map(|(range, ..)| range)
    }

    // Content.

    #[inline]
    pub fn text(&mut self, text: &str) {
        self.close_tag();
        self.push_text(text);
    }

    /// Escaped text.
    #[inline]
    pub fn escaped_text(&mut self, text: &[u8]) {
        self.close_tag();
        self.out.extend_from_slice(text);
    }

    pub fn raw_text(&mut self, text: &str) {
        self.close_tag();
        self.out.extend_from_slice(text.as_bytes());
    }

    pub fn comment(&mut self, text: &str) {
        self.close_tag();
        self.out.extend_from_slice(b"<!--");
        let mut last = 0;
        for byte in text.bytes() {
            if byte == b'-' && last == b'-' {
                self.out.push(b' ');
            }
            self.out.push(byte);
            last = byte;
        }
        if last == b'-' {
            self.out.push(b' ');
        }
        self.out.extend_from_slice(b"-->");
    }

    pub fn pi(&mut self, target: &str, data: &str) {
        self.close_tag();
        self.out.extend_from_slice(b"<?");
        self.out.extend_from_slice(target.as_bytes());
        if !data.is_empty() {
            self.out.push(b' ');
            self.out.extend_from_slice(data.replace("?>", "? >").as_bytes());
        }
        self.out.extend_from_slice(b"?>");
    }

    pub fn finish(&mut self) {
        while !self.frames.is_empty() {
            self.end_element();
        }
        self.close_tag();
    }
}

impl StartTag for Fast<'_> {
    fn bound(&self, prefix: &str) -> Option<&str> {
        Some(self.lookup_in(self.scope, prefix))
    }

    fn declares(&self, prefix: &str) -> bool {
        let mut at = self.scope;
        while at != self.tag_scope && at != NONE {
            let scope = &self.scopes[at as usize];
            if is_same(&scope.prefix, prefix) {
                return true;
            }
            at = scope.parent;
        }
        false
    }

    fn uses(&self, prefix: &str) -> bool {
        let name = &self.out[self.tag + 1..self.tag_end];
        let name_prefix = name.iter().position(|b| *b == b':').map_or(&b""[..], |colon| &name[..colon]);
        name_prefix == prefix.as_bytes()
            || !prefix.is_empty() && self.attributes().any(|(_, found, _)| found == prefix)
    }

    fn prefix_of(&self, namespace: &str) -> Option<String> {
        let mut at = self.scope;
        while at != NONE {
            let scope = &self.scopes[at as usize];
            if *scope.uri == *namespace
                && !scope.prefix.is_empty()
                && self.lookup_in(self.scope, &scope.prefix) == namespace
            {
                return Some(scope.prefix.to_string());
            }
            at = scope.parent;
        }
        None
    }

    fn declare(&mut self, prefix: &str, uri: &str) {
        self.scope = self.with(self.scope, prefix, uri);
        push_declaration(self.out, prefix, uri);
    }

    fn next_number(&mut self) -> u32 {
        self.generated += 1;
        self.generated - 1
    }
}

fn push_declaration(out: &mut Vec<u8>, prefix: &str, uri: &str) {
    out.extend_from_slice(if prefix.is_empty() { b" xmlns" } else { b" xmlns:" });
    out.extend_from_slice(prefix.as_bytes());
    out.extend_from_slice(b"=\"");
    push_attribute(out, uri);
    out.push(b'"');
}
