//! Windows: trees of a part of a document, cut off where a window is full (see [`crate::stream`]).

use crate::error::XsltError;
use crate::model::Plan;
use std::io::Read;
use xml::{Builder, Document, Event, Interest, Lent, NodeId, NodeKind, Tokenizer};

/// Bytes asked of the reader at once.
const PIECE: usize = 64 << 10;

/// A tree of a part of the document: the open elements with their attributes, and the content that has arrived since the
/// last window.
#[derive(Default)]
pub(super) struct Window {
    pub doc: Document,
    /// The elements that have not ended, the document element first.
    pub open: Vec<NodeId>,
    /// Its size in bytes.
    size: usize,
}

impl Window {
    /// The next one: the first `depth` open elements of this one, empty.
    pub fn next(&self, depth: usize) -> Window {
        let mut next = Window::default();
        for element in self.open.iter().take(depth) {
            let parent = next.open.last().copied().unwrap_or(Document::ROOT);
            let node = copy_tag(&self.doc, *element, &mut next.doc, parent);
            next.open.push(node);
        }
        next
    }

    /// The same with the content so far of the element at `depth`.
    pub fn with_open(&self, depth: usize) -> Window {
        let mut next = self.next(depth);
        let Some(element) = self.open_at(depth) else { return next };
        let parent = next.open.last().copied().unwrap_or(Document::ROOT);
        let mut inside = Some(next.doc.copy_from(parent, &self.doc, element));
        next.size = self.size;
        // Each open element is the last child of the one around it.
        for _ in depth..self.open.len() {
            let Some(node) = inside else { break };
            next.open.push(node);
            inside = next.doc.last_child(node);
        }
        next
    }

    /// The open element at `depth`, if there is one.
    pub fn open_at(&self, depth: usize) -> Option<NodeId> {
        self.open.get(depth).copied()
    }
}

/// A copy of an element without its content.
fn copy_tag(from: &Document, element: NodeId, to: &mut Document, parent: NodeId) -> NodeId {
    let mut builder = Builder::new(to, parent);
    let node = builder.start_element(from.prefix(element), from.namespace(element), from.local(element));
    for (prefix, uri) in from.namespace_declarations(element) {
        builder.namespace(prefix, uri);
    }
    for attribute in from.attributes(element) {
        builder.attribute(
            from.prefix(attribute),
            from.namespace(attribute),
            from.local(attribute),
            from.text(attribute),
        );
    }
    node
}

/// Reads a document into windows.
pub(crate) struct Pump<'r> {
    reader: &'r mut (dyn Read + Send),
    tokenizer: Lent,
    piece: Vec<u8>,
    /// The reader is at its end.
    finished: bool,
    /// The tokenizer is at its end.
    ended: bool,
    /// Text that may continue.
    text: String,
    /// When a window is full, in bytes.
    full: usize,
    /// The number of open elements.
    depth: usize,
    /// The size of the largest window.
    pub largest: usize,
    /// Bytes read.
    pub read: u64,
}

impl<'r> Pump<'r> {
    pub fn new(reader: &'r mut (dyn Read + Send), limits: &xml::Limits, full: usize) -> Pump<'r> {
        Pump {
            reader,
            tokenizer: Tokenizer::lent(limits),
            piece: vec![0; PIECE],
            finished: false,
            ended: false,
            text: String::new(),
            full,
            depth: 0,
            largest: 0,
            read: 0,
        }
    }

    /// The first window of the document.
    pub(super) fn first(&mut self, plan: &Plan) -> Result<Window, XsltError> {
        let mut window = Window::default();
        self.fill(&mut window, 0, plan)?;
        Ok(window)
    }

    /// Reads into `window` until it is full or the element at depth `level` has ended. `true`: it has ended (level 0: the
    /// document).
    pub(super) fn fill(&mut self, window: &mut Window, level: usize, plan: &Plan) -> Result<bool, XsltError> {
        self.read_until(window, level, self.full, plan)
    }

    /// Reads until the element at depth `level` has ended, whatever its size.
    pub(super) fn complete(
        &mut self,
        window: &mut Window,
        level: usize,
        plan: &Plan,
    ) -> Result<(), XsltError> {
        self.read_until(window, level, usize::MAX, plan).map(|_| ())
    }

    /// Whether the element at depth `level` has ended.
    pub(super) fn has_ended(&self, level: usize) -> bool {
        if level == 0 { self.ended } else { self.depth < level }
    }

    /// Skips the rest of the element at depth `level`.
    pub(super) fn skip(&mut self, level: usize) -> Result<(), XsltError> {
        self.text.clear();
        let end = match level {
            0 => Interest::NOTHING,
            _ => Interest { level, ..Interest::NOTHING },
        };
        while !self.has_ended(level) {
            match self.tokenizer.skim(&end) {
                Err(error) => return Err(XsltError::of_document(&error)),
                Ok(false) => self.more()?,
                Ok(true) => {}
            }
            self.depth = self.tokenizer.depth();
        }
        Ok(())
    }

    /// Reads more bytes, or finishes the tokenizer.
    fn more(&mut self) -> Result<(), XsltError> {
        if self.finished {
            self.ended = true;
            return Ok(());
        }
        loop {
            match self.reader.read(&mut self.piece) {
                Ok(0) => {
                    self.finished = true;
                    self.tokenizer.finish();
                    return Ok(());
                }
                Ok(n) => {
                    self.read += n as u64;
                    self.tokenizer.feed(&self.piece[..n]);
                    return Ok(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(XsltError::new(format!("the document cannot be read: {error}"))),
            }
        }
    }

    fn read_until(
        &mut self,
        window: &mut Window,
        level: usize,
        full: usize,
        plan: &Plan,
    ) -> Result<bool, XsltError> {
        loop {
            if self.has_ended(level) {
                self.largest = self.largest.max(window.size);
                return Ok(true);
            }
            if window.size >= full && self.text.is_empty() {
                self.largest = self.largest.max(window.size);
                return Ok(false);
            }
            if !self.pass(window, level, full, plan)? {
                self.more()?;
            }
        }
    }

    /// Adds the available events to the window. `false`: more bytes are needed.
    fn pass(
        &mut self,
        window: &mut Window,
        level: usize,
        full: usize,
        plan: &Plan,
    ) -> Result<bool, XsltError> {
        let Window { doc, open, size } = window;
        let base = open.len();
        let parent = open.last().copied().unwrap_or(Document::ROOT);
        let mut builder = Builder::new(doc, parent);
        loop {
            let event = match self.tokenizer.next() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(false),
                Err(error) => return Err(XsltError::of_document(&error)),
            };
            if let Event::Text(text) = event {
                self.text.push_str(text);
                continue;
            }
            if !self.text.is_empty() {
                if keeps_text(plan, builder.document(), builder.current(), &self.text) {
                    *size += self.text.len() + 32;
                    builder.text(&self.text);
                }
                self.text.clear();
            }
            match event {
                Event::StartElement { name, attributes, .. } => {
                    let node = builder.start_element(name.prefix(), name.namespace(), name.local());
                    *size += 64;
                    for (prefix, uri) in attributes.declarations() {
                        builder.namespace(prefix, uri);
                        *size += 32;
                    }
                    for a in attributes {
                        builder.attribute(a.name.prefix(), a.name.namespace(), a.name.local(), a.value);
                        *size += 64 + a.value.len();
                    }
                    open.push(node);
                    self.depth += 1;
                }
                Event::EndElement { .. } => {
                    self.depth -= 1;
                    open.pop();
                    // The builder ends only elements that it began.
                    if open.len() < base || self.depth < level {
                        return Ok(true);
                    }
                    builder.end_element();
                }
                Event::Comment(text) => {
                    builder.comment(text);
                    *size += 64 + text.len();
                }
                Event::ProcessingInstruction { target, data } => {
                    builder.pi(target, data);
                    *size += 64 + data.len();
                }
                Event::Text(_) => {}
            }
            if *size >= full {
                return Ok(true);
            }
        }
    }
}

/// Whether a text is not white space to be stripped (XSLT 1.0 section 3.4).
fn keeps_text(plan: &Plan, doc: &Document, parent: NodeId, text: &str) -> bool {
    if plan.space.is_empty() || !text.bytes().all(|b| b.is_ascii_whitespace()) {
        return true;
    }
    doc.kind(parent) != NodeKind::Element
        || !plan.strips(doc.namespace(parent), doc.local(parent))
        || crate::preserves(doc, parent)
}
