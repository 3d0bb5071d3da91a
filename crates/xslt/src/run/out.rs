//! Where instructions write: a tree, bytes, or plain text. Start tags are held back until their content begins, because
//! attributes may follow, replace one another, and need namespaces.

use xml::{Builder, Serializer, WriteOptions};

/// The receiver of result nodes.
pub(super) struct Out<'o> {
    sink: Sink<'o>,
    /// A start tag waits for its attributes.
    open: bool,
    tag: Tag,
    /// Bytes of text written, as a measure of the size of the result.
    pub written: usize,
}

enum Sink<'o> {
    Tree(Builder<'o>),
    Bytes(Box<Serializer<'o>>),
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
        Out { sink, open: false, tag: Tag::default(), written: 0 }
    }

    pub fn tree(builder: Builder<'o>) -> Out<'o> {
        Out::new(Sink::Tree(builder))
    }

    pub fn bytes(out: &'o mut Vec<u8>, options: &'o WriteOptions) -> Out<'o> {
        Out::new(Sink::Bytes(Box::new(Serializer::new(out, options))))
    }

    pub fn undecided(out: &'o mut Vec<u8>, xml: &'o WriteOptions, html: &'o WriteOptions) -> Out<'o> {
        Out::new(Sink::Undecided { out: Some(out), xml, html, early: Vec::new() })
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
        if let Sink::Bytes(serializer) = self.sink {
            serializer.finish();
        }
    }

    /// Fixes the output method, if it still depends on what comes.
    fn decide(&mut self, html_first: bool) {
        let Sink::Undecided { out, xml, html, early } = &mut self.sink else { return };
        let Some(out) = out.take() else { return };
        let mut serializer = Serializer::new(out, if html_first { html } else { xml });
        for event in early.drain(..) {
            match event {
                Early::Text(text, false) => serializer.text(&text),
                Early::Text(text, true) => serializer.raw_text(&text),
                Early::Comment(text) => serializer.comment(&text),
                Early::Pi(target, data) => serializer.pi(&target, &data),
            }
        }
        self.sink = Sink::Bytes(Box::new(serializer));
    }

    pub fn start_element(&mut self, prefix: &str, namespace: &str, local: &str) {
        if let Sink::Text { ignored, .. } = &mut self.sink {
            *ignored += 1;
            return;
        }
        self.flush();
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
        if !self.open {
            return;
        }
        let known = self.tag.namespaces.iter().any(|(p, _)| self.tag.get(*p) == prefix);
        if !known {
            let pair = (self.tag.add(prefix), self.tag.add(uri));
            self.tag.namespaces.push(pair);
        }
    }

    /// An attribute of the element just started; replaces one of the same name. `false`: too late.
    pub fn attribute(&mut self, prefix: &str, namespace: &str, local: &str, value: &str) -> bool {
        if !self.open {
            return matches!(self.sink, Sink::Text { .. });
        }
        self.written += value.len();
        let tag = &mut self.tag;
        let known = tag
            .attributes
            .iter()
            .position(|a| tag.get(a.local) == local && tag.get(a.namespace) == namespace);
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
        if matches!(self.sink, Sink::Undecided { .. }) {
            let is_html = self.tag.namespace.start == self.tag.namespace.end
                && self.tag.get(self.tag.local).eq_ignore_ascii_case("html");
            let blank = match &self.sink {
                Sink::Undecided { early, .. } => {
                    early.iter().all(|e| !matches!(e, Early::Text(text, _) if !text.trim_ascii().is_empty()))
                }
                _ => true,
            };
            self.decide(is_html && blank);
        }
        let tag = &self.tag;
        let (prefix, namespace, local) = (tag.get(tag.prefix), tag.get(tag.namespace), tag.get(tag.local));
        match &mut self.sink {
            Sink::Tree(builder) => {
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
        match &mut self.sink {
            Sink::Tree(builder) => builder.end_element(),
            Sink::Bytes(serializer) => serializer.end_element(),
            _ => {}
        }
    }

    /// Text; `raw`: without escaping (`disable-output-escaping`).
    pub fn text(&mut self, text: &str, raw: bool) {
        if text.is_empty() {
            return;
        }
        self.written += text.len();
        if self.open {
            self.flush();
        }
        match &mut self.sink {
            Sink::Tree(builder) => builder.text(text),
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
        match &mut self.sink {
            Sink::Tree(builder) => builder.comment(text),
            Sink::Bytes(serializer) => serializer.comment(text),
            Sink::Undecided { early, .. } => early.push(Early::Comment(text.to_owned())),
            Sink::Text { .. } => {}
        }
    }

    pub fn pi(&mut self, target: &str, data: &str) {
        self.flush();
        self.written += data.len();
        match &mut self.sink {
            Sink::Tree(builder) => builder.pi(target, data),
            Sink::Bytes(serializer) => serializer.pi(target, data),
            Sink::Undecided { early, .. } => early.push(Early::Pi(target.to_owned(), data.to_owned())),
            Sink::Text { .. } => {}
        }
    }
}
