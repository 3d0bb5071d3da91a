//! The push parser: bytes in, split anywhere; events out, with namespaces resolved and nothing allocated per event.
//!
//! A token is produced when it is complete, except text, which comes in pieces. The cost of a token
//! does not depend on how its bytes arrive: a search for its end continues where it stopped.
//!
//! There are two paths through content. [`Tokenizer::fast`] reads the common parts of messages, complete tags and plain
//! text, in one loop that stops only at events that the reader wants. Everything else, errors included, is
//! left to [`Tokenizer::step`], which reads one token.

mod event;
mod interest;
mod step;

pub use event::{Attribute, Attributes, Event, Name};
pub use interest::{AskLeaf, Interest};

use crate::Limits;
use crate::encoding::{self, Charset, Decoder};
use crate::error::{ErrorKind, Fault, Position, XmlError};
use crate::lex::{self, RawAttribute};
use crate::names::{Bindings, Guess, NO_URI, NameId, Names, PrefixId, Seen, UNBOUND, XMLNS_QNAME};
use crate::scan::{Bad, first_bad, glance, text_end};
use interest::{Everything, Wants};

/// A piece of text: a range of the buffer or (`side`) of the scratch buffer.
#[derive(Copy, Clone)]
struct Piece {
    from: usize,
    to: usize,
    side: bool,
}

#[derive(Copy, Clone)]
struct Resolved {
    name: u32,
    prefix: PrefixId,
    value: Piece,
}

/// An [`Event`] by offsets.
#[derive(Copy, Clone)]
enum Token {
    Start { name: u32, prefix: PrefixId, empty: bool },
    End { name: u32, prefix: PrefixId },
    Text(Piece),
    Comment(Piece),
    Pi { target: Piece, data: Piece },
}

#[derive(Copy, Clone)]
struct Open {
    qname: u32,
    name: u32,
    prefix: PrefixId,
    mark: u32,
    /// A different one for each element that was on the stack.
    serial: u32,
}

/// The part of the document.
#[derive(Copy, Clone, PartialEq)]
enum State {
    Start,
    Prolog,
    Content,
    Epilog,
    Failed,
}

/// The encoding of the input.
enum Source {
    Undetected,
    Utf8,
    Decoder(Decoder, Charset),
}

/// A push tokenizer for messages: resumable at any byte, namespaces resolved, DTDs refused.
///
/// ```
/// # use busbar_xml::{Tokenizer, Event};
/// let mut tokenizer = Tokenizer::default();
/// tokenizer.feed(b"<a x='1'>te");
/// assert!(matches!(tokenizer.next(), Ok(Some(Event::StartElement { .. }))));
/// assert!(matches!(tokenizer.next(), Ok(Some(Event::Text("te")))));
/// assert!(matches!(tokenizer.next(), Ok(None)));
/// tokenizer.feed(b"xt</a>");
/// tokenizer.finish();
/// assert!(matches!(tokenizer.next(), Ok(Some(Event::Text("xt")))));
/// assert!(matches!(tokenizer.next(), Ok(Some(Event::EndElement { .. }))));
/// assert!(matches!(tokenizer.next(), Ok(None)));
/// ```
pub struct Tokenizer {
    limits: Limits,
    charset: Option<String>,
    source: Source,
    /// Bytes before the encoding is known.
    raw: Vec<u8>,
    /// The text not yet consumed, UTF-8.
    buffer: Vec<u8>,
    /// The offset of the next token.
    at: usize,
    /// The offset up to which the buffer is checked.
    usable: usize,
    /// The error after `usable`.
    bad: Option<Box<Fault>>,
    finished: bool,
    failed: Option<XmlError>,
    /// Position of the start of the buffer.
    offset: usize,
    line: u32,
    column: u32,
    state: State,
    names: Names,
    bindings: Bindings,
    seen: Seen,
    raw_attributes: Vec<RawAttribute>,
    resolved: Vec<Resolved>,
    tag_mark: u32,
    /// The last start tag, as a qualified name.
    last_tag: u32,
    stack: Vec<Open>,
    serial: u32,
    scratch: String,
    /// The document element.
    root: Option<Open>,
    /// The last start tag was an empty element: its end comes next.
    empty: Option<Open>,
    /// Bindings to undo before the next token.
    undo: Option<u32>,
    /// How far (from `at`) the end of the token at `at` was searched for, and the quote that is open there.
    searched: usize,
    quote: u8,
    /// Length of the text given so far in pieces.
    text_length: usize,
    /// The result of the last step. Kept here: returning it through the layers would copy it at each.
    current: Token,
    /// The text of the last step continues the text node of the one before.
    continued: bool,
    /// `]` occurs in what was fed: `]]>` must be looked for.
    brackets: bool,
    /// The buffer is ASCII, as far as it is checked.
    ascii: bool,
    /// The document is larger than its limit.
    over: bool,
}

impl Default for Tokenizer {
    fn default() -> Tokenizer {
        Tokenizer::new(Limits::default())
    }
}

impl Tokenizer {
    /// A tokenizer with these limits. (`nodes` and the entity limits have no effect: nothing is kept.)
    pub fn new(limits: Limits) -> Tokenizer {
        let mut bindings = Bindings::default();
        bindings.reset();
        let mut names = Names::default();
        names.ready();
        Tokenizer {
            limits,
            charset: None,
            source: Source::Undetected,
            raw: Vec::new(),
            buffer: Vec::new(),
            at: 0,
            usable: 0,
            bad: None,
            finished: false,
            failed: None,
            offset: 0,
            line: 1,
            column: 1,
            state: State::Start,
            names,
            bindings,
            seen: Seen::default(),
            raw_attributes: Vec::new(),
            resolved: Vec::new(),
            tag_mark: 0,
            last_tag: XMLNS_QNAME,
            stack: Vec::new(),
            serial: 0,
            scratch: String::new(),
            root: None,
            empty: None,
            undo: None,
            searched: 0,
            quote: 0,
            text_length: 0,
            current: Token::Text(Piece { from: 0, to: 0, side: false }),
            continued: false,
            brackets: false,
            ascii: true,
            over: false,
        }
    }

    /// Puts other limits in force. Call it before feeding.
    pub(crate) fn set_limits(&mut self, limits: &Limits) {
        self.limits.clone_from(limits);
    }

    /// Starts over with another document; keeps memory, limits and the ids of interned names.
    pub fn reset(&mut self) {
        self.charset = None;
        self.source = Source::Undetected;
        self.raw.clear();
        self.buffer.clear();
        self.at = 0;
        self.usable = 0;
        self.bad = None;
        self.finished = false;
        self.failed = None;
        self.offset = 0;
        self.line = 1;
        self.column = 1;
        self.state = State::Start;
        self.bindings.reset();
        self.raw_attributes.clear();
        self.resolved.clear();
        self.tag_mark = 0;
        self.last_tag = XMLNS_QNAME;
        self.stack.clear();
        self.serial = 0;
        self.scratch.clear();
        self.root = None;
        self.empty = None;
        self.undo = None;
        self.searched = 0;
        self.quote = 0;
        self.text_length = 0;
        self.brackets = false;
        self.ascii = true;
        self.over = false;
    }

    /// Starts over as [`Tokenizer::reset`] does, but frees memory and names that have become too much: ids of names
    /// are valid for as long as [`Tokenizer::names`] returns the same number.
    pub fn recycle(&mut self) {
        self.reset();
        if self.buffer.capacity() > LARGEST_KEPT {
            self.buffer = Vec::new();
        }
        if self.scratch.capacity() > LARGEST_KEPT {
            self.scratch = String::new();
        }
        self.names.trim();
        self.names.ready();
    }

    /// The number of the table of names: different for each tokenizer, and new where one has
    /// forgotten its names.
    pub fn names(&self) -> u64 {
        self.names.table()
    }

    /// Sets the encoding known from outside (the `charset` of a content type). Call it before feeding.
    pub fn set_charset(&mut self, charset: Option<&str>) {
        self.charset = charset.map(str::to_owned);
    }

    /// The id of an expanded name, to compare with [`Name::id`].
    pub fn intern(&mut self, namespace: &str, local: &str) -> NameId {
        let uri = self.names.uri(namespace);
        NameId(self.names.name(uri, local))
    }

    /// The number of open elements.
    pub fn depth(&self) -> usize {
        self.stack.len()
    }

    /// The position of the next token.
    pub fn position(&self) -> Position {
        self.locate(self.at)
    }

    /// A number for the element around the last event, 0 for the document: different for each element with
    /// content.
    pub fn surrounding(&self) -> u32 {
        let around = match self.current {
            Token::Start { empty: false, .. } => self.stack.len().checked_sub(2).map(|i| &self.stack[i]),
            _ => self.stack.last(),
        };
        around.map_or(0, |open| open.serial)
    }

    /// The name of the document element, once its start tag has been read.
    pub fn document_element(&self) -> Option<Name<'_>> {
        let open = self.root?;
        Some(Name { names: &self.names, id: open.name, prefix: open.prefix })
    }

    /// Whether the root element has ended.
    pub fn is_root_closed(&self) -> bool {
        self.state == State::Epilog && self.empty.is_none()
    }

    /// Takes more bytes of the document.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.finished || self.failed.is_some() || self.bad.is_some() {
            return;
        }
        self.compact();
        match &mut self.source {
            Source::Utf8 => append(&mut self.buffer, bytes),
            Source::Decoder(decoder, charset) => {
                let mut text = String::new();
                let result = decoder.decode(bytes, false, &mut text);
                let name = charset.name();
                self.buffer.extend_from_slice(text.as_bytes());
                if result.is_err() {
                    self.set_bad(ErrorKind::Encoding, format!("the bytes are not {name}"));
                }
            }
            // Most documents start with a tag.
            Source::Undetected if self.raw.is_empty() && self.charset.is_none() && starts_plainly(bytes) => {
                self.source = Source::Utf8;
                append(&mut self.buffer, bytes);
            }
            Source::Undetected => {
                self.raw.extend_from_slice(bytes);
                if encoding::can_detect(&self.raw) {
                    self.detect();
                }
            }
        }
        self.check();
    }

    /// Ends the document.
    pub fn finish(&mut self) {
        if self.finished {
            return;
        }
        if matches!(self.source, Source::Undetected) {
            self.detect();
        }
        if let Source::Decoder(decoder, charset) = &mut self.source {
            let mut text = String::new();
            let result = decoder.decode(b"", true, &mut text);
            let name = charset.name();
            self.buffer.extend_from_slice(text.as_bytes());
            if result.is_err() {
                self.set_bad(ErrorKind::Encoding, format!("the bytes are not {name}"));
            }
        }
        self.finished = true;
        self.check();
    }

    /// Determines the encoding from the first bytes.
    fn detect(&mut self) {
        let raw = std::mem::take(&mut self.raw);
        match encoding::detect(&raw, self.charset.as_deref()) {
            Err(e) => self.failed = Some(e),
            Ok((Charset::Utf8, skip)) => {
                self.source = Source::Utf8;
                self.buffer.extend_from_slice(&raw[skip..]);
            }
            Ok((charset, skip)) => {
                self.source = Source::Decoder(Decoder::new(charset), charset);
                self.feed(&raw[skip..]);
            }
        }
        self.raw = raw;
        self.raw.clear();
    }

    fn set_bad(&mut self, kind: ErrorKind, message: String) {
        self.bad.get_or_insert(Box::new(Fault { kind, message: message.into(), at: usize::MAX }));
    }

    /// Checks the new bytes.
    fn check(&mut self) {
        let new = &self.buffer[self.usable..];
        let glance = glance(new);
        self.brackets |= glance.brackets;
        self.ascii &= glance.plain;
        let bad = if glance.plain { None } else { first_bad(new) };
        self.usable = bad.as_ref().map_or(self.buffer.len(), |(at, _)| self.usable + at);
        self.over = self.offset + self.usable > self.limits.total;
        let Some((_, kind)) = bad else { return };
        match kind {
            Bad::Cut if !self.finished => {}
            Bad::Cut => self.set_bad(ErrorKind::Encoding, "the document ends inside a character".into()),
            Bad::Utf8 => self.set_bad(ErrorKind::Encoding, "the bytes are not UTF-8".into()),
            Bad::Char(c) => {
                self.set_bad(ErrorKind::Character, format!("the character U+{c:04X} is not allowed"))
            }
        }
    }

    /// Drops the consumed bytes.
    fn compact(&mut self) {
        if self.at == 0 {
            return;
        }
        let position = self.position();
        (self.offset, self.line, self.column) = (position.offset, position.line, position.column);
        self.buffer.drain(..self.at);
        self.usable -= self.at;
        self.at = 0;
        self.ascii |= self.buffer.is_empty();
    }

    fn locate(&self, at: usize) -> Position {
        let p = match self.ascii && memchr::memchr(b'\n', &self.buffer[..at]).is_none() {
            true => Position { line: 1, column: at as u32 + 1, offset: at },
            false => Position::of(&self.buffer, at),
        };
        let column = if p.line == 1 { self.column + p.column - 1 } else { p.column };
        Position { line: self.line + p.line - 1, column, offset: self.offset + at }
    }

    /// The next event; `None` when more bytes are needed, or after [`Tokenizer::finish`] at the end of the document.
    ///
    /// # Errors
    /// The document is not well-formed or exceeds a limit; after an error every call fails.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, XmlError> {
        match self.read(&Everything) {
            Ok(true) => Ok(Some(self.event())),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Skips to the next event that is wanted; `false` when more bytes are needed, or after [`Tokenizer::finish`] at the
    /// end of the document. [`Tokenizer::event`] is the event then.
    ///
    /// # Errors
    /// Those of [`Tokenizer::next`], whatever is wanted.
    pub fn skim(&mut self, interest: &Interest<'_>) -> Result<bool, XmlError> {
        self.read(interest)
    }

    /// The last event of [`Tokenizer::next`] or [`Tokenizer::skim`]. (Before the first one: no text.)
    #[inline]
    pub fn event(&self) -> Event<'_> {
        let name = |id, prefix| Name { names: &self.names, id, prefix };
        match self.current {
            Token::Start { name: id, prefix, empty } => Event::StartElement {
                name: name(id, prefix),
                attributes: Attributes { tokenizer: self, next: 0 },
                empty,
            },
            Token::End { name: id, prefix } => Event::EndElement { name: name(id, prefix) },
            Token::Text(piece) => Event::Text(self.piece(piece)),
            Token::Comment(piece) => Event::Comment(self.piece(piece)),
            Token::Pi { target, data } => {
                Event::ProcessingInstruction { target: self.piece(target), data: self.piece(data) }
            }
        }
    }

    #[inline]
    fn piece(&self, piece: Piece) -> &str {
        if piece.side {
            &self.scratch[piece.from..piece.to]
        } else {
            lex::text(&self.buffer[piece.from..piece.to])
        }
    }

    /// Whether the text of the last event continues that of the text event before: nothing but pieces of a text node
    /// lies between them.
    pub fn continues_text(&self) -> bool {
        self.continued
    }

    /// Reads up to the next token that is wanted; `false` where the input ends but may continue, and at the end.
    #[inline(always)]
    fn read(&mut self, wants: &impl Wants) -> Result<bool, XmlError> {
        loop {
            if let Some(mark) = self.undo.take() {
                self.bindings.rewind(mark);
            }
            if let Some(open) = self.empty.take() {
                self.undo = Some(open.mark);
                self.current = Token::End { name: open.name, prefix: open.prefix };
                if wants.end(self.stack.len()) {
                    return Ok(true);
                }
                continue;
            }
            if self.state == State::Content && self.searched == 0 && !self.over && self.fast(wants) {
                return Ok(true);
            }
            if !self.slow()? {
                return Ok(false);
            }
            let depth = self.stack.len();
            let wanted = match self.current {
                Token::Start { name, empty, .. } => {
                    wants.class(wants.class_of(name), depth - usize::from(!empty))
                }
                Token::End { .. } => wants.end(depth),
                Token::Text(_) => wants.class(Interest::TEXT, depth),
                Token::Comment(_) => wants.class(Interest::COMMENT, depth),
                Token::Pi { .. } => wants.class(Interest::INSTRUCTION, depth),
            };
            if wanted {
                return Ok(true);
            }
        }
    }

    /// Reads complete tags and plain text. `true`: stopped at a token that is wanted. `false`: the
    /// next token is another one, or faulty, and [`Tokenizer::step`] has to read it.
    #[inline(always)]
    fn fast(&mut self, wants: &impl Wants) -> bool {
        let mut p = self.at;
        loop {
            let input = &self.buffer[..self.usable];
            match input.get(p) {
                None => break,
                Some(b'<') => {}
                Some(_) => {
                    let e = text_end(input, p);
                    let length = self.text_length + (e - p);
                    if input.get(e) != Some(&b'<')
                        || length > self.limits.text_length
                        || self.brackets && memchr::memmem::find(&input[p..e], b"]]>").is_some()
                    {
                        break;
                    }
                    self.continued = self.text_length > 0;
                    self.text_length = length;
                    if wants.class(Interest::TEXT, self.stack.len()) {
                        self.current = Token::Text(Piece { from: p, to: e, side: false });
                        self.at = e;
                        return true;
                    }
                    p = e;
                }
            }
            let depth = self.stack.len();
            match input.get(p + 1) {
                Some(b'/') => {
                    let Some(&open) = self.stack.last() else { break };
                    let Some(close) = self.names.ends(open.qname, input, p + 2) else { break };
                    if input.get(close) != Some(&b'>') {
                        break;
                    }
                    p = close + 1;
                    self.stack.pop();
                    self.text_length = 0;
                    if depth == 1 {
                        self.state = State::Epilog;
                    }
                    if wants.end(depth - 1) {
                        self.undo = Some(open.mark);
                        self.current = Token::End { name: open.name, prefix: open.prefix };
                        self.at = p;
                        return true;
                    }
                    self.bindings.rewind(open.mark);
                    if depth == 1 {
                        break;
                    }
                    continue;
                }
                None | Some(b'!' | b'?') => break,
                Some(_) => {}
            }
            let guess = self.names.guess(self.last_tag, &self.bindings, input, p + 1);
            let Some(Guess { qname, q, end }) = guess else {
                // The prediction was wrong.
                match self.other(wants, p) {
                    Some(at) => {
                        p = at;
                        continue;
                    }
                    None => return self.at != p,
                }
            };
            if input.get(end) != Some(&b'>') || depth >= self.limits.depth {
                match self.other(wants, p) {
                    Some(at) => {
                        p = at;
                        continue;
                    }
                    None => return self.at != p,
                }
            }
            let name = q.name();
            let open =
                Open { qname, name, prefix: q.prefix, mark: self.bindings.mark(), serial: self.serial + 1 };
            let class = wants.class_of(name);
            let wanted = wants.class(class, depth);
            // The form of most elements of messages: one piece of text and the end tag.
            if (!wanted || wants.asks(class, depth))
                && !wants.class(Interest::TEXT, depth + 1)
                && !self.brackets
            {
                let from = end + 1;
                let to = text_end(input, from);
                if input.get(to..to + 2) == Some(b"</")
                    && let Some(close) = self.names.end_of(q, input, to + 2)
                    && input.get(close) == Some(&b'>')
                    && to - from <= self.limits.text_length
                    && (!wanted || !wants.leaf(class, lex::text(&input[from..to])))
                {
                    self.last_tag = qname;
                    self.text_length = 0;
                    p = close + 1;
                    continue;
                }
            }
            self.last_tag = qname;
            self.text_length = 0;
            p = end + 1;
            self.serial += 1;
            self.stack.push(open);
            if wanted {
                self.resolved.clear();
                self.tag_mark = open.mark;
                self.current = Token::Start { name, prefix: open.prefix, empty: false };
                self.at = p;
                return true;
            }
        }
        self.at = p;
        false
    }

    /// A start tag at `p` that is not plain, or was not predicted. Returns where to continue; or `None`: after it, if it is wanted, or
    /// at its beginning, if [`Tokenizer::step`] has to read it.
    fn other(&mut self, wants: &impl Wants, p: usize) -> Option<usize> {
        let depth = self.stack.len();
        self.scratch.clear();
        self.at = p;
        let input = &self.buffer[..self.usable];
        let tag = self
            .names
            .qname_behind(self.last_tag, input, p + 1, &self.limits, lex::START_TAG)
            .and_then(|(qname, e)| self.tag(qname, e));
        let Ok(true) = tag else { return None };
        let Token::Start { name, .. } = self.current else { return None };
        if wants.class(wants.class_of(name), depth) {
            return None;
        }
        if let Some(open) = self.empty.take() {
            self.bindings.rewind(open.mark);
        }
        Some(self.at)
    }

    /// As [`Tokenizer::token`], with the error located and kept.
    fn slow(&mut self) -> Result<bool, XmlError> {
        if let Some(e) = &self.failed {
            return Err(e.clone());
        }
        self.token().map_err(|fault| {
            let position = self.locate(fault.at);
            let error = XmlError { kind: fault.kind, message: fault.message.into_owned(), position };
            self.state = State::Failed;
            self.failed = Some(error.clone());
            error
        })
    }

    /// The namespace a prefix is bound to at the current element; `None` when it is not.
    pub fn lookup_prefix(&self, prefix: &str) -> Option<&str> {
        let uri = self.bindings.get(self.names.find_prefix(prefix)?);
        (uri != UNBOUND && uri != NO_URI).then(|| self.names.uri_str(uri))
    }
}

/// Largest buffers that [`Tokenizer::recycle`] keeps, in bytes.
const LARGEST_KEPT: usize = 128 << 10;

/// Most bytes that are copied at once. For more than 2,112 glibc leaves the copying to one instruction of the processor, which takes 20 times as
/// long on AMD's (Zen 3 and 4) where the places in their pages differ by 1 to 15 bytes; what is fed lies like that most of the time.
const COPIED_AT_ONCE: usize = 2048;

fn append(buffer: &mut Vec<u8>, bytes: &[u8]) {
    buffer.reserve(bytes.len());
    bytes.chunks(COPIED_AT_ONCE).for_each(|piece| buffer.extend_from_slice(piece));
}

/// Starts with a tag in UTF-8: no byte order mark, no declaration.
fn starts_plainly(bytes: &[u8]) -> bool {
    bytes.len() >= 4 && bytes[0] == b'<' && bytes[1] != b'?' && bytes[1] != 0
}
