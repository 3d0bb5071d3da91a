//! The destination of instructions: a tree, bytes, or plain text. Start tags are held back until their content begins, because
//! attributes may follow, replace one another, and need namespaces.

use super::fast::Fast;
use crate::model::{Avt, Literal, LiteralAttribute};
use crate::output::Method;
use xml::{Builder, Serializer, WriteError, WriteOptions};
use xpath::{Item, Shared};

/// The receiver of result nodes.
pub(super) struct Out<'o> {
    sink: Sink<'o>,
    /// A start tag waits for its attributes.
    open: bool,
    tag: Tag,
    /// The depths of open elements whose children do not inherit their namespaces.
    isolated: Vec<usize>,
    /// Bytes of text written, as a measure of the size of the result.
    pub written: usize,
    /// Elements, comments and instructions written, where bytes do not count them.
    events: usize,
    /// The end of the last atomic value: a space comes before the next one.
    atomic_end: Option<(usize, usize, usize)>,
    destination: Destination,
    /// The bytes before this output, and before anything but a declaration.
    from: usize,
    begin: usize,
    /// Part of the result was taken already.
    drained: bool,
    /// The end of the principal result that an `xsl:result-document` wrote: nothing may follow.
    sealed: Option<(usize, usize, usize)>,
}

/// The result to which an output belongs.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Destination {
    /// None: a temporary tree, a value.
    Temporary,
    /// A document of `xsl:result-document`.
    Further,
    Principal,
}

/// Whether a namespace node that the stylesheet makes fits into the start tag.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fit {
    Fits,
    /// There is no start tag, or it is closed.
    Misplaced,
    /// The prefix stands for another namespace there.
    Contradicts,
    /// A default namespace of an element that is in no namespace.
    NoNamespace,
}

enum Sink<'o> {
    Tree(Builder<'o>),
    Bytes(Box<Serializer<'o>>),
    /// Plain XML.
    Fast(Box<Fast<'o>>),
    /// The output method depends on the first element (XSLT 1.0 section 16): earlier output waits.
    Undecided {
        out: Option<&'o mut Vec<u8>>,
        method: Method<'o>,
        early: Vec<Early>,
    },
    /// The result was written by an `xsl:result-document`.
    Done,
    /// Only the text counts: the content of attributes, comments and processing instructions. Elements in it are an
    /// error, recovered from by leaving them out with their content (XSLT 1.0 sections 7.1.3, 7.3, 7.4).
    Text {
        text: String,
        ignored: usize,
        /// Of XSLT 2.0: nodes count with their string values (section 5.7.2).
        atomizes: bool,
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
    /// A long sequence, which is shared.
    Items(Shared<Item>),
    /// The next top-level node of the document that was built.
    Made,
    /// `true`: without escaping.
    Text(String, bool),
    /// Prefix and URI.
    Namespace(String, String),
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
            isolated: Vec::new(),
            written: 0,
            events: 0,
            atomic_end: None,
            destination: Destination::Temporary,
            from: 0,
            begin: 0,
            drained: false,
            sealed: None,
        }
    }

    pub fn tree(builder: Builder<'o>) -> Out<'o> {
        Out::new(Sink::Tree(builder))
    }

    /// Bytes, by `method`.
    pub fn bytes(out: &'o mut Vec<u8>, method: Method<'o>) -> Out<'o> {
        let from = out.len();
        match method {
            Method::Fixed(options) => {
                let sink = sink_of(out, options);
                let begin = sink.bytes();
                Out { from, begin, ..Out::new(sink) }
            }
            _ => {
                let sink = Sink::Undecided { out: Some(out), method, early: Vec::new() };
                Out { from, ..Out::new(sink) }
            }
        }
    }

    /// The same as a result of the transformation.
    pub fn of(self, destination: Destination) -> Out<'o> {
        Out { destination, ..self }
    }

    pub fn destination(&self) -> Destination {
        self.destination
    }

    /// The destination of content that is put together first and then written here. Before XSLT 3.0 no result may be written
    /// from within it (`xsl:attribute`, `xsl:value-of`, …); there only from values of variables, functions and keys (section 25.2).
    pub fn inner(&self, version3: bool) -> Destination {
        match self.destination {
            Destination::Principal | Destination::Further if version3 => Destination::Further,
            _ => Destination::Temporary,
        }
    }

    /// Whether nothing was written yet.
    pub fn is_untouched(&self) -> bool {
        if self.drained || self.written > 0 || self.events > 0 || self.open {
            return false;
        }
        match &self.sink {
            Sink::Fast(fast) => fast.out.len() == self.begin,
            Sink::Bytes(serializer) => serializer.is_untouched(),
            Sink::Undecided { early, .. } => early.is_empty(),
            _ => true,
        }
    }

    /// Whether the output is bytes, not a tree.
    pub fn makes_bytes(&self) -> bool {
        matches!(self.sink, Sink::Fast(_) | Sink::Bytes(_) | Sink::Undecided { .. })
    }

    /// Replaces this result, of which nothing has been written, by a whole one.
    pub fn replace(&mut self, result: &[u8]) {
        let out = match std::mem::replace(&mut self.sink, Sink::Done) {
            Sink::Fast(fast) => fast.out,
            Sink::Bytes(serializer) => serializer.into_inner(),
            Sink::Undecided { out: Some(out), .. } => out,
            _ => return,
        };
        out.truncate(self.from);
        out.extend_from_slice(result);
    }

    /// Forbids further output.
    pub fn seal(&mut self) {
        self.flush();
        self.sealed = Some(self.end());
    }

    /// Takes over the counts of another result, which is not written here.
    pub fn count(&mut self, written: usize) {
        let is_sealed = self.sealed.is_some_and(|end| !self.open && end == self.end());
        self.written = written;
        if is_sealed {
            self.sealed = Some(self.end());
        }
    }

    /// Whether something was written after that.
    pub fn is_broken(&self) -> bool {
        self.sealed.is_some_and(|end| self.open || end != self.end())
    }

    /// Passes on the output that is final, if it is `enough`.
    /// Only of the principal result: others are passed on when they are complete.
    pub fn drain<E>(&mut self, enough: usize, take: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if self.destination != Destination::Principal {
            return Ok(());
        }
        let is_sealed = self.sealed.is_some_and(|end| end == self.end());
        let settled = match &mut self.sink {
            Sink::Fast(fast) => fast.settled(),
            Sink::Bytes(serializer) => serializer.settled(),
            _ => None,
        };
        match settled {
            Some(bytes) if bytes.len() >= enough => {
                take(bytes)?;
                bytes.clear();
                self.drained = true;
            }
            _ => return Ok(()),
        }
        if is_sealed {
            self.sealed = Some(self.end());
        }
        Ok(())
    }

    /// The fast path, if the output has it.
    #[inline]
    pub fn fast(&mut self) -> Option<&mut Fast<'o>> {
        match &mut self.sink {
            Sink::Fast(fast) => Some(fast),
            _ => None,
        }
    }

    /// A sequence; `builder` builds at the root of an empty document.
    pub fn items(builder: Builder<'o>) -> Out<'o> {
        Out::new(Sink::Items { builder, depth: 0, items: Vec::new() })
    }

    /// Whether [`Out::items`] has begun one.
    pub fn has_items(&mut self) -> bool {
        self.flush();
        self.open || matches!(&self.sink, Sink::Items { items, depth, .. } if *depth > 0 || !items.is_empty())
    }

    /// The result of [`Out::items`].
    pub fn finish_items(mut self) -> Vec<Pending> {
        self.flush();
        match self.sink {
            Sink::Items { items, .. } => items,
            _ => Vec::new(),
        }
    }

    /// An item itself, where items are collected. `false`: it must be written.
    pub fn item(&mut self, item: &Item) -> bool {
        match &mut self.sink {
            // Within an element under construction it is content like any other.
            Sink::Items { depth: 0, items, .. } if !self.open => {
                items.push(Pending::Item(item.clone()));
                self.events += 1;
                true
            }
            _ => false,
        }
    }

    /// The items of a long sequence themselves, where items are collected. `false`: they must be written one by one.
    pub fn items_of(&mut self, all: &Shared<Item>) -> bool {
        match &mut self.sink {
            Sink::Items { depth: 0, items, .. } if !self.open && all.is_long() => {
                items.push(Pending::Items(all.clone()));
                self.events += 1;
                true
            }
            _ => false,
        }
    }

    /// An atomic value as text: with a space before it where another one ended (XSLT 2.0 section 5.7.1).
    pub fn atomic(&mut self, text: &str) {
        if !matches!(self.sink, Sink::Text { .. }) && self.atomic_end == Some(self.end()) {
            self.text(" ", false);
        }
        self.text(text, false);
        // (Also for an empty value.)
        self.atomic_end = Some(self.end());
    }

    /// It changes with each output.
    fn end(&self) -> (usize, usize, usize) {
        (self.written, self.events, self.sink.bytes())
    }

    /// `atomizes`: by the rules of XSLT 2.0.
    pub fn text_only(atomizes: bool) -> Out<'o> {
        Out::new(Sink::Text { text: String::new(), ignored: 0, atomizes })
    }

    /// The result of [`Out::text_only`].
    pub fn into_text(self) -> String {
        match self.sink {
            Sink::Text { text, .. } => text,
            _ => String::new(),
        }
    }

    /// Ends a tree.
    pub fn finish_tree(mut self) {
        self.flush();
    }

    /// Ends everything. Errors: the result cannot be written as its options ask.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.flush();
        self.decide(None);
        match self.sink {
            Sink::Bytes(serializer) => return serializer.finish(),
            Sink::Fast(mut fast) => fast.finish(),
            _ => {}
        }
        Ok(())
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
        self.decide(blank.then_some((namespace, local)));
    }

    /// Fixes the output method, if it still depends on the first element, `first`.
    fn decide(&mut self, first: Option<(&str, &str)>) {
        let Sink::Undecided { out, method, early } = &mut self.sink else { return };
        let Some(out) = out.take() else { return };
        let early = std::mem::take(early);
        self.sink = sink_of(out, method.by(first));
        self.begin = self.sink.bytes();
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

    /// The start of a literal result element with fixed attributes that is complete ([`Literal::closed`]): it need not be
    /// held back. `false`: the output is neither a serialiser nor a tree.
    pub fn literal(&mut self, literal: &Literal) -> bool {
        if !matches!(self.sink, Sink::Bytes(_) | Sink::Tree(_)) {
            return false;
        }
        self.flush();
        self.events += 1;
        let (prefix, namespace, local) = (&literal.prefix, &literal.namespace, &literal.local);
        let fixed = |attribute: &LiteralAttribute| match &attribute.value {
            Avt::Fixed(value) => value.len(),
            Avt::Parts(_) => 0,
        };
        self.written += literal.attributes.iter().map(fixed).sum::<usize>();
        match &mut self.sink {
            Sink::Bytes(serializer) => {
                serializer.start_element(prefix, namespace, local);
                for (prefix, uri) in &literal.namespaces {
                    serializer.namespace(prefix, uri);
                }
                for attribute in &literal.attributes {
                    if let Avt::Fixed(value) = &attribute.value {
                        let (prefix, namespace) = (&attribute.prefix, &attribute.namespace);
                        serializer.attribute(prefix, namespace, &attribute.local, value);
                    }
                }
            }
            Sink::Tree(builder) => {
                builder.start_element(prefix, namespace, local);
                for (prefix, uri) in &literal.namespaces {
                    builder.namespace(prefix, uri);
                }
                for attribute in &literal.attributes {
                    if let Avt::Fixed(value) = &attribute.value {
                        let (prefix, namespace) = (&attribute.prefix, &attribute.namespace);
                        builder.attribute(prefix, namespace, &attribute.local, value);
                    }
                }
            }
            _ => {}
        }
        self.hide_inherited(|_, prefix| literal.namespaces.iter().any(|(own, _)| **own == *prefix));
        true
    }

    /// The children of the element just started do not inherit its namespaces (XSLT 2.0 section 11.1).
    #[cold]
    pub fn isolate(&mut self) {
        match &mut self.sink {
            Sink::Fast(fast) => fast.isolate(),
            _ => {
                let depth = self.depth() + usize::from(self.open);
                self.isolated.push(depth);
            }
        }
    }

    /// The number of open elements whose start tag is written.
    fn depth(&self) -> usize {
        match &self.sink {
            Sink::Tree(builder) | Sink::Items { builder, .. } => builder.depth(),
            Sink::Bytes(serializer) => serializer.depth(),
            _ => 0,
        }
    }

    /// Hides the namespaces of the parent from the element whose start tag was just written, if the parent is isolated. `own`: the
    /// prefixes of its own namespaces.
    #[inline]
    fn hide_inherited(&mut self, own: impl Fn(&Tag, &str) -> bool) {
        if let Some(depth) = self.isolated.last()
            && *depth + 1 == self.depth()
        {
            let own = |prefix: &str| own(&self.tag, prefix);
            match &mut self.sink {
                Sink::Tree(builder) | Sink::Items { builder, .. } => builder.hide_inherited(&own),
                Sink::Bytes(serializer) if !own("") => serializer.namespace("", ""),
                _ => {}
            }
        }
    }

    /// A namespace node for the element just started.
    pub fn namespace(&mut self, prefix: &str, uri: &str) {
        if let Sink::Fast(fast) = &mut self.sink {
            return fast.namespace(prefix, uri);
        }
        if !self.open {
            if let Sink::Items { depth: 0, items, .. } = &mut self.sink {
                items.push(Pending::Namespace(prefix.to_owned(), uri.to_owned()));
            }
            return;
        }
        let is_declared = self.tag.namespaces.iter().any(|(p, _)| xml::is_same(self.tag.get(*p), prefix));
        if !is_declared {
            let pair = (self.tag.add(prefix), self.tag.add(uri));
            self.tag.namespaces.push(pair);
        }
    }

    /// The same of a namespace node that the stylesheet makes, which must fit (XSLT 2.0 section 5.7.1).
    pub fn made_namespace(&mut self, prefix: &str, uri: &str) -> Fit {
        if let Sink::Fast(fast) = &mut self.sink {
            return fast.made_namespace(prefix, uri);
        }
        if !self.open {
            return match &mut self.sink {
                Sink::Items { depth: 0, items, .. } => {
                    items.push(Pending::Namespace(prefix.to_owned(), uri.to_owned()));
                    Fit::Fits
                }
                Sink::Text { text, ignored: 0, atomizes: true } => {
                    text.push_str(uri);
                    Fit::Fits
                }
                Sink::Text { .. } => Fit::Fits,
                _ => Fit::Misplaced,
            };
        }
        let tag = &self.tag;
        if prefix.is_empty() && tag.get(tag.namespace).is_empty() {
            return Fit::NoNamespace;
        }
        let declared = tag.namespaces.iter().find(|(p, _)| xml::is_same(tag.get(*p), prefix));
        let other = match declared {
            Some((_, other)) => tag.get(*other) != uri,
            None => tag.get(tag.prefix) == prefix && tag.get(tag.namespace) != uri,
        };
        if other {
            return Fit::Contradicts;
        }
        self.namespace(prefix, uri);
        Fit::Fits
    }

    /// An attribute of the element just started; replaces one of the same name. `false`: too late.
    pub fn attribute(&mut self, prefix: &str, namespace: &str, local: &str, value: &str) -> bool {
        self.put_attribute(prefix, namespace, local, value, true)
    }

    /// The same for the attributes of an element that is copied, when only these were added: names are unique.
    pub fn copied_attribute(&mut self, prefix: &str, namespace: &str, local: &str, value: &str) -> bool {
        self.put_attribute(prefix, namespace, local, value, false)
    }

    fn put_attribute(
        &mut self,
        prefix: &str,
        namespace: &str,
        local: &str,
        value: &str,
        search: bool,
    ) -> bool {
        if let Sink::Fast(fast) = &mut self.sink {
            self.written += value.len();
            return fast.attribute(prefix, namespace, local, value, search);
        }
        if !self.open {
            if let Sink::Items { depth: 0, items, .. } = &mut self.sink {
                items.push(Pending::Attribute([prefix, namespace, local, value].map(str::to_owned)));
                return true;
            }
            if let Sink::Text { text, ignored: 0, atomizes: true } = &mut self.sink {
                text.push_str(value);
            }
            return matches!(self.sink, Sink::Text { .. });
        }
        self.written += value.len();
        let tag = &mut self.tag;
        let is_it =
            |a: &Attribute| tag.get(a.local) == local && xml::is_same(tag.get(a.namespace), namespace);
        let position = if search { tag.attributes.iter().position(is_it) } else { None };
        let value = tag.add(value);
        match position {
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
        self.hide_inherited(|tag, prefix| tag.namespaces.iter().any(|(own, _)| tag.get(*own) == prefix));
    }

    /// Whether a processing instruction with these data cannot be written.
    pub fn ends_pi(&self, data: &str) -> bool {
        matches!(&self.sink, Sink::Bytes(serializer) if serializer.ends_pi(data))
    }

    /// Whether items are collected, and none of them is under construction.
    pub fn takes_items(&self) -> bool {
        matches!(self.sink, Sink::Items { depth: 0, .. }) && !self.open
    }

    /// Whether no element is open: output is at the top of a document.
    pub fn is_at_top(&self) -> bool {
        match &self.sink {
            Sink::Fast(fast) => fast.is_at_top(),
            Sink::Bytes(serializer) => serializer.depth() == 0 && !self.open,
            Sink::Tree(builder) => builder.is_at_top() && !self.open,
            Sink::Undecided { .. } => true,
            _ => false,
        }
    }

    pub fn end_element(&mut self) {
        if let Sink::Text { ignored, .. } = &mut self.sink {
            *ignored = ignored.saturating_sub(1);
            return;
        }
        self.flush();
        self.events += 1;
        if let Some(depth) = self.isolated.last()
            && *depth == self.depth()
        {
            self.isolated.pop();
        }
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

    /// An element in no namespace that contains only this text, where that can be written at once.
    #[inline]
    pub fn plain_leaf(&mut self, local: &str, text: &str) -> bool {
        let Sink::Fast(fast) = &mut self.sink else { return false };
        let done = fast.plain_leaf(local, text);
        if done {
            self.written += text.len();
        }
        done
    }

    /// Text; `raw`: without escaping (`disable-output-escaping`).
    #[inline]
    pub fn text(&mut self, text: &str, raw: bool) {
        if text.is_empty() {
            // Atomic values before and after a text are not adjacent.
            self.atomic_end = None;
        }
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

    /// Text of the stylesheet; `escaped`: the same, escaped for XML.
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
            // Among items a text node may be empty.
            if let Sink::Items { depth: 0, items, .. } = &mut self.sink
                && !self.open
            {
                items.push(Pending::Text(String::new(), false));
            }
            return;
        }
        self.written += text.len();
        if self.open {
            self.flush();
        }
        match &mut self.sink {
            Sink::Tree(builder) => builder.text(text),
            Sink::Items { depth: 0, items, .. } => items.push(Pending::Text(text.to_owned(), raw)),
            Sink::Items { builder, .. } => builder.text(text),
            Sink::Fast(fast) if raw => fast.raw_text(text),
            Sink::Fast(fast) => fast.text(text),
            Sink::Bytes(serializer) if raw => serializer.raw_text(text),
            Sink::Bytes(serializer) => serializer.text(text),
            Sink::Undecided { early, .. } => {
                early.push(Early::Text(text.to_owned(), raw));
                if !text.trim_ascii().is_empty() {
                    self.decide(None);
                }
            }
            Sink::Text { text: all, ignored: 0, .. } | Sink::Text { text: all, atomizes: true, .. } => {
                all.push_str(text);
            }
            Sink::Text { .. } | Sink::Done => {}
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
            Sink::Text { text: all, ignored: 0, atomizes: true } => all.push_str(text),
            Sink::Text { .. } | Sink::Done => {}
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
            Sink::Text { text: all, ignored: 0, atomizes: true } => all.push_str(data),
            Sink::Text { .. } | Sink::Done => {}
        }
    }
}

impl Sink<'_> {
    /// The bytes so far, where they are known.
    fn bytes(&self) -> usize {
        match self {
            Sink::Fast(fast) => fast.out.len(),
            _ => 0,
        }
    }
}

/// The destination for these options: the fast path, if they allow it.
fn sink_of<'o>(out: &'o mut Vec<u8>, options: &'o WriteOptions) -> Sink<'o> {
    if !options.is_plain() {
        return Sink::Bytes(Box::new(Serializer::new(out, options)));
    }
    if options.declaration {
        let encoding = options.encoding.as_deref().unwrap_or("UTF-8");
        out.extend_from_slice(b"<?xml version=\"");
        out.extend_from_slice(options.version.as_bytes());
        out.extend_from_slice(b"\" encoding=\"");
        out.extend_from_slice(encoding.as_bytes());
        if let Some(standalone) = options.standalone {
            out.extend_from_slice(b"\" standalone=\"");
            out.extend_from_slice(if standalone { b"yes" } else { b"no" });
        }
        out.extend_from_slice(b"\"?>");
    }
    Sink::Fast(Box::new(Fast::new(out, options.version2)))
}
