//! Where instructions write: a tree, bytes, or plain text. Start tags are held back until their content begins, because
//! attributes may follow, replace one another, and need namespaces.

use super::fast::Fast;
use xml::{Builder, Serializer, WriteOptions};
use xpath::Item;

/// The receiver of result nodes.
pub(super) struct Out<'o> {
    sink: Sink<'o>,
    /// A start tag waits for its attributes.
    open: bool,
    tag: Tag,
    /// Bytes of text written, as a measure of the size of the result.
    pub written: usize,
    /// Elements begun and ended, comments and instructions written, where that is not seen in bytes.
    events: usize,
    /// Where the last atomic value ended: another one there has a blank before it.
    atomic_end: Option<(usize, usize, usize)>,
    /// The result of the transformation itself.
    principal: bool,
    /// Characters to be replaced (`xsl:character-map`).
    map: &'o [(char, String)],
}

enum Sink<'o> {
    Tree(Builder<'o>),
    Bytes(Box<Serializer<'o>>),
    /// Plain XML.
    Fast(Box<Fast<'o>>),
    /// The output method depends on the first element (XSLT 1.0 section 16): what came before it waits.
    Undecided {
        out: Option<&'o mut Vec<u8>>,
        xml: &'o WriteOptions,
        html: &'o WriteOptions,
        early: Vec<Early>,
    },
    /// Only the text counts: the content of attributes, comments and processing instructions. Elements in it are an
    /// error, recovered from by leaving them out with their content (XSLT 1.0 sections 7.1.3, 7.3, 7.4).
    Text {
        text: String,
        ignored: usize,
    },
    /// The items of a sequence (XSLT 2.0): nodes at the top are built one by one.
    Items {
        builder: Builder<'o>,
        depth: usize,
        items: Vec<Pending>,
    },
}

/// An item of a sequence being made.
pub(super) enum Pending {
    Item(Item),
    /// The next node at the top of the document that was built.
    Made,
    Text(String),
    /// Prefix, namespace, local name, value.
    Attribute([String; 4]),
}

enum Early {
    Text(String, bool),
    Comment(String),
    Pi(String, String),
}

/// The start tag that is held back; memory is kept from tag to tag.
#[derive(Default)]
struct Tag {
    chars: String,
    prefix: Range,
    namespace: Range,
    local: Range,
    /// Prefix and URI.
    namespaces: Vec<(Range, Range)>,
    attributes: Vec<Attribute>,
}

#[derive(Clone, Copy)]
struct Attribute {
    prefix: Range,
    namespace: Range,
    local: Range,
    value: Range,
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Range {
    start: u32,
    end: u32,
}

impl Tag {
    fn add(&mut self, text: &str) -> Range {
        let start = self.chars.len() as u32;
        self.chars.push_str(text);
        Range { start, end: self.chars.len() as u32 }
    }

    fn get(&self, range: Range) -> &str {
        &self.chars[range.start as usize..range.end as usize]
    }
}

impl<'o> Out<'o> {
    fn new(sink: Sink<'o>) -> Out<'o> {
        Out {
            sink,
            open: false,
            tag: Tag::default(),
            written: 0,
            events: 0,
            atomic_end: None,
            principal: false,
            map: &[],
        }
    }

    pub fn tree(builder: Builder<'o>) -> Out<'o> {
        Out::new(Sink::Tree(builder))
    }

    pub fn bytes(out: &'o mut Vec<u8>, options: &'o WriteOptions) -> Out<'o> {
        Out::new(sink_of(out, options, false))
    }

    /// Bytes as the options ask, characters of the map replaced: see [`unmap`].
    pub fn by(method: super::Method<'o>, out: &'o mut Vec<u8>, map: &'o [(char, String)]) -> Out<'o> {
        match method {
            super::Method::Fixed(options) if map.is_empty() => Out::bytes(out, options),
            super::Method::Fixed(options) => Out { map, ..Out::new(sink_of(out, options, true)) },
            super::Method::ByResult { xml, html } => Out::undecided(out, xml, html, map),
        }
    }

    /// Hands over what has been written and will not change, if it is `enough`.
    pub fn drain<E>(&mut self, enough: usize, take: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let settled = match &mut self.sink {
            Sink::Fast(fast) => fast.settled(),
            Sink::Bytes(serializer) => serializer.settled(),
            _ => None,
        };
        match settled {
            Some(bytes) if bytes.len() >= enough => {
                take(bytes)?;
                bytes.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The fast way, where the output takes it.
    #[inline]
    pub fn fast(&mut self) -> Option<&mut Fast<'o>> {
        match &mut self.sink {
            Sink::Fast(fast) => Some(fast),
            _ => None,
        }
    }

    pub fn undecided(
        out: &'o mut Vec<u8>,
        xml: &'o WriteOptions,
        html: &'o WriteOptions,
        map: &'o [(char, String)],
    ) -> Out<'o> {
        Out { map, ..Out::new(Sink::Undecided { out: Some(out), xml, html, early: Vec::new() }) }
    }

    /// The same as the principal result.
    pub fn principal(self) -> Out<'o> {
        Out { principal: true, ..self }
    }

    /// Whether this is the result of the transformation itself.
    pub fn is_principal(&self) -> bool {
        self.principal
    }

    /// A sequence; `builder` builds at the root of an empty document.
    pub fn items(builder: Builder<'o>) -> Out<'o> {
        Out::new(Sink::Items { builder, depth: 0, items: Vec::new() })
    }

    /// What an [`Out::items`] collected.
    pub fn finish_items(mut self) -> Vec<Pending> {
        self.flush();
        match self.sink {
            Sink::Items { items, .. } => items,
            _ => Vec::new(),
        }
    }

    /// An item as it is, where items are collected. `false`: it must be written.
    pub fn item(&mut self, item: &Item) -> bool {
        match &mut self.sink {
            // Within an element that is being made it is content like any other.
            Sink::Items { depth: 0, items, .. } if !self.open => {
                items.push(Pending::Item(item.clone()));
                true
            }
            _ => false,
        }
    }

    /// An atomic value as text: with a blank before it where another one ended (XSLT 2.0 section 5.7.1).
    pub fn atomic(&mut self, text: &str) {
        if !matches!(self.sink, Sink::Text { .. }) && self.atomic_end == Some(self.end()) {
            self.text(" ", false);
        }
        self.text(text, false);
        self.atomic_end = Some(self.end());
    }

    /// Different after anything was written.
    fn end(&self) -> (usize, usize, usize) {
        let bytes = match &self.sink {
            Sink::Fast(fast) => fast.out.len(),
            _ => 0,
        };
        (self.written, self.events, bytes)
    }

    pub fn text_only() -> Out<'o> {
        Out::new(Sink::Text { text: String::new(), ignored: 0 })
    }

    /// What a [`Out::text_only`] collected.
    pub fn into_text(self) -> String {
        match self.sink {
            Sink::Text { text, .. } => text,
            _ => String::new(),
        }
    }

    /// Ends everything.
    pub fn finish(mut self) {
        self.flush();
        self.decide(false);
        match self.sink {
            Sink::Bytes(serializer) => serializer.finish(),
            Sink::Fast(mut fast) => fast.finish(),
            _ => {}
        }
    }

    /// The first element decides on the output method (XSLT 1.0 section 16).
    #[inline]
    pub fn decide_at(&mut self, namespace: &str, local: &str) {
        if matches!(self.sink, Sink::Undecided { .. }) {
            self.decide_by(namespace, local);
        }
    }

    #[cold]
    fn decide_by(&mut self, namespace: &str, local: &str) {
        let Sink::Undecided { early, .. } = &self.sink else { return };
        let blank = early.iter().all(|e| !matches!(e, Early::Text(text, _) if !text.trim_ascii().is_empty()));
        self.decide(blank && namespace.is_empty() && local.eq_ignore_ascii_case("html"));
    }

    /// Fixes the output method, if it still depends on what comes.
    fn decide(&mut self, html_first: bool) {
        let Sink::Undecided { out, xml, html, early } = &mut self.sink else { return };
        let Some(out) = out.take() else { return };
        let early = std::mem::take(early);
        self.sink = sink_of(out, if html_first { html } else { xml }, !self.map.is_empty());
        for event in early {
            match event {
                Early::Text(text, raw) => self.text(&text, raw),
                Early::Comment(text) => self.comment(&text),
                Early::Pi(target, data) => self.pi(&target, &data),
            }
        }
    }

    pub fn start_element(&mut self, prefix: &str, namespace: &str, local: &str) {
        if let Sink::Text { ignored, .. } = &mut self.sink {
            *ignored += 1;
            return;
        }
        self.decide_at(namespace, local);
        if let Sink::Fast(fast) = &mut self.sink {
            return fast.start_element(prefix, namespace, local);
        }
        self.flush();
        self.events += 1;
        let tag = &mut self.tag;
        tag.chars.clear();
        tag.namespaces.clear();
        tag.attributes.clear();
        tag.prefix = tag.add(prefix);
        tag.namespace = tag.add(namespace);
        tag.local = tag.add(local);
        self.open = true;
    }

    /// A namespace node for the element just started.
    pub fn namespace(&mut self, prefix: &str, uri: &str) {
        if let Sink::Fast(fast) = &mut self.sink {
            return fast.namespace(prefix, uri);
        }
        if !self.open {
            return;
        }
        let known = self.tag.namespaces.iter().any(|(p, _)| xml::is_same(self.tag.get(*p), prefix));
        if !known {
            let pair = (self.tag.add(prefix), self.tag.add(uri));
            self.tag.namespaces.push(pair);
        }
    }

    /// An attribute of the element just started; replaces one of the same name. `false`: too late.
    pub fn attribute(&mut self, prefix: &str, namespace: &str, local: &str, value: &str) -> bool {
        if let Sink::Fast(fast) = &mut self.sink {
            self.written += value.len();
            return fast.attribute(prefix, namespace, local, value);
        }
        if !self.open {
            if let Sink::Items { depth: 0, items, .. } = &mut self.sink {
                items.push(Pending::Attribute([prefix, namespace, local, value].map(str::to_owned)));
                return true;
            }
            return matches!(self.sink, Sink::Text { .. });
        }
        self.written += value.len();
        let placed;
        let value = if self.map.is_empty() {
            value
        } else {
            placed = place_holders(value, self.map);
            &placed
        };
        let tag = &mut self.tag;
        let known = tag
            .attributes
            .iter()
            .position(|a| tag.get(a.local) == local && xml::is_same(tag.get(a.namespace), namespace));
        let value = tag.add(value);
        match known {
            Some(at) => tag.attributes[at].value = value,
            None => {
                let attribute = Attribute {
                    prefix: tag.add(prefix),
                    namespace: tag.add(namespace),
                    local: tag.add(local),
                    value,
                };
                tag.attributes.push(attribute);
            }
        }
        true
    }

    /// Writes the start tag that was held back.
    fn flush(&mut self) {
        if !self.open {
            return;
        }
        self.open = false;
        let tag = &self.tag;
        let (prefix, namespace, local) = (tag.get(tag.prefix), tag.get(tag.namespace), tag.get(tag.local));
        if let Sink::Items { depth, items, .. } = &mut self.sink {
            if *depth == 0 {
                items.push(Pending::Made);
            }
            *depth += 1;
        }
        match &mut self.sink {
            Sink::Tree(builder) | Sink::Items { builder, .. } => {
                builder.start_element(prefix, namespace, local);
                for (prefix, uri) in &tag.namespaces {
                    builder.namespace(tag.get(*prefix), tag.get(*uri));
                }
                for a in &tag.attributes {
                    builder.attribute(
                        tag.get(a.prefix),
                        tag.get(a.namespace),
                        tag.get(a.local),
                        tag.get(a.value),
                    );
                }
            }
            Sink::Bytes(serializer) => {
                serializer.start_element(prefix, namespace, local);
                for (prefix, uri) in &tag.namespaces {
                    serializer.namespace(tag.get(*prefix), tag.get(*uri));
                }
                for a in &tag.attributes {
                    serializer.attribute(
                        tag.get(a.prefix),
                        tag.get(a.namespace),
                        tag.get(a.local),
                        tag.get(a.value),
                    );
                }
            }
            _ => {}
        }
    }

    pub fn end_element(&mut self) {
        if let Sink::Text { ignored, .. } = &mut self.sink {
            *ignored = ignored.saturating_sub(1);
            return;
        }
        self.flush();
        self.events += 1;
        match &mut self.sink {
            Sink::Tree(builder) => builder.end_element(),
            Sink::Items { builder, depth, .. } => {
                *depth = depth.saturating_sub(1);
                builder.end_element();
            }
            Sink::Bytes(serializer) => serializer.end_element(),
            Sink::Fast(fast) => fast.end_element(),
            _ => {}
        }
    }

    /// Text; `raw`: without escaping (`disable-output-escaping`).
    #[inline]
    pub fn text(&mut self, text: &str, raw: bool) {
        if let Sink::Fast(fast) = &mut self.sink
            && !raw
        {
            self.written += text.len();
            if !text.is_empty() {
                fast.text(text);
            }
            return;
        }
        self.other_text(text, raw);
    }

    /// Text of the stylesheet; `escaped`: the same as XML has it.
    #[inline]
    pub fn fixed_text(&mut self, text: &str, escaped: &[u8], raw: bool) {
        match &mut self.sink {
            Sink::Fast(fast) if !raw && !text.is_empty() => {
                self.written += text.len();
                fast.escaped_text(escaped);
            }
            _ => self.text(text, raw),
        }
    }

    fn other_text(&mut self, text: &str, raw: bool) {
        if text.is_empty() {
            return;
        }
        self.written += text.len();
        if self.open {
            self.flush();
        }
        let placed;
        let text = match self.sink {
            Sink::Bytes(_) if !self.map.is_empty() && !raw => {
                placed = place_holders(text, self.map);
                &placed
            }
            _ => text,
        };
        match &mut self.sink {
            Sink::Tree(builder) => builder.text(text),
            Sink::Items { depth: 0, items, .. } => items.push(Pending::Text(text.to_owned())),
            Sink::Items { builder, .. } => builder.text(text),
            Sink::Fast(fast) if raw => fast.raw_text(text),
            Sink::Fast(fast) => fast.text(text),
            Sink::Bytes(serializer) if raw => serializer.raw_text(text),
            Sink::Bytes(serializer) => serializer.text(text),
            Sink::Undecided { early, .. } => {
                early.push(Early::Text(text.to_owned(), raw));
                if !text.trim_ascii().is_empty() {
                    self.decide(false);
                }
            }
            Sink::Text { text: all, ignored: 0 } => all.push_str(text),
            Sink::Text { .. } => {}
        }
    }

    pub fn comment(&mut self, text: &str) {
        self.flush();
        self.written += text.len();
        self.events += 1;
        if let Sink::Items { depth: 0, items, .. } = &mut self.sink {
            items.push(Pending::Made);
        }
        match &mut self.sink {
            Sink::Tree(builder) | Sink::Items { builder, .. } => builder.comment(text),
            Sink::Bytes(serializer) => serializer.comment(text),
            Sink::Fast(fast) => fast.comment(text),
            Sink::Undecided { early, .. } => early.push(Early::Comment(text.to_owned())),
            Sink::Text { .. } => {}
        }
    }

    pub fn pi(&mut self, target: &str, data: &str) {
        self.flush();
        self.written += data.len();
        self.events += 1;
        if let Sink::Items { depth: 0, items, .. } = &mut self.sink {
            items.push(Pending::Made);
        }
        match &mut self.sink {
            Sink::Tree(builder) | Sink::Items { builder, .. } => builder.pi(target, data),
            Sink::Bytes(serializer) => serializer.pi(target, data),
            Sink::Fast(fast) => fast.pi(target, data),
            Sink::Undecided { early, .. } => early.push(Early::Pi(target.to_owned(), data.to_owned())),
            Sink::Text { .. } => {}
        }
    }
}

/// What stands for the character at `at` of a map until everything is written.
fn place_holder(at: usize) -> Option<char> {
    char::from_u32(0x0010_0000 + u32::try_from(at).ok().filter(|at| *at < 0xFFFE)?)
}

/// The text with what stands for mapped characters.
fn place_holders(text: &str, map: &[(char, String)]) -> String {
    let held = |c: char| map.iter().position(|(known, _)| *known == c).and_then(place_holder);
    text.chars().map(|c| held(c).unwrap_or(c)).collect()
}

/// Puts the strings of a character map into what was written from `start` on.
pub(super) fn unmap(bytes: &mut Vec<u8>, start: usize, map: &[(char, String)]) {
    let mut forms: Vec<(Vec<u8>, &str)> = Vec::new();
    for (at, (_, text)) in map.iter().enumerate() {
        let Some(held) = place_holder(at) else { continue };
        forms.push((held.to_string().into_bytes(), text));
        // In encodings that do not have it.
        forms.push((format!("&#{};", u32::from(held)).into_bytes(), text));
        forms.push((format!("&#x{:X};", u32::from(held)).into_bytes(), text));
    }
    let written = bytes.split_off(start);
    let mut rest = written.as_slice();
    while let Some(first) = rest.first() {
        let found = match first {
            0xF4 | b'&' => forms.iter().find(|(form, _)| rest.starts_with(form)),
            _ => None,
        };
        match found {
            Some((form, text)) => {
                bytes.extend_from_slice(text.as_bytes());
                rest = &rest[form.len()..];
            }
            None => {
                bytes.push(*first);
                rest = &rest[1..];
            }
        }
    }
}

/// The way to write: the fast one, if the options ask for nothing else.
fn sink_of<'o>(out: &'o mut Vec<u8>, options: &'o WriteOptions, mapped: bool) -> Sink<'o> {
    let utf8 = options.encoding.as_deref().is_none_or(|e| e.eq_ignore_ascii_case("utf-8"));
    let plain = !mapped
        && options.method == xml::Method::Xml
        && utf8
        && !options.indent
        && options.cdata_elements.is_empty()
        && options.doctype_system.is_none();
    if !plain {
        return Sink::Bytes(Box::new(Serializer::new(out, options)));
    }
    if options.declaration {
        let encoding = options.encoding.as_deref().unwrap_or("UTF-8");
        out.extend_from_slice(
            format!("<?xml version=\"{}\" encoding=\"{encoding}\"", options.version).as_bytes(),
        );
        if let Some(standalone) = options.standalone {
            let value = if standalone { "yes" } else { "no" };
            out.extend_from_slice(format!(" standalone=\"{value}\"").as_bytes());
        }
        out.extend_from_slice(b"?>");
    }
    Sink::Fast(Box::new(Fast::new(out)))
}
