//! The push parser: bytes in, split anywhere; events out, with namespaces resolved and nothing allocated per event.
//!
//! A token is produced when it is complete, except text, which comes in pieces. The cost of a token
//! does not depend on how its bytes arrive: a search for its end continues where it stopped.
//!
//! There are two paths through content. [`Tokenizer::fast`] reads the common parts of messages, complete tags and plain
//! text, in one loop that stops only at events that the reader wants. Everything else, errors included, is
//! left to [`Tokenizer::step`], which reads one token.

use crate::encoding::{self, Charset, Decoder};
use crate::error::{ErrorKind, Fault, Position, Res, XmlError, end, fault, limit, syntax};
use crate::lex::{self, RawAttribute, Reference};
use crate::names::{
    Bindings, Guess, NO_URI, NameId, Names, PrefixId, Seen, UNBOUND, XMLNS_PREFIX, XMLNS_QNAME, XMLNS_URI,
};
use crate::scan::{Bad, first_bad, glance, text_end};
use crate::{Limits, is_space};

/// A name of an event.
#[derive(Copy, Clone)]
pub struct Name<'a> {
    names: &'a Names,
    id: u32,
    prefix: PrefixId,
}

impl<'a> Name<'a> {
    /// The expanded name: equal to that of [`Tokenizer::intern`] for the same namespace and local name.
    #[inline]
    pub fn id(&self) -> NameId {
        NameId(self.id)
    }

    /// The namespace URI, `""` for none.
    #[inline]
    pub fn namespace(&self) -> &'a str {
        self.names.uri_str(self.names.uri_id_of(self.id))
    }

    /// The local name.
    #[inline]
    pub fn local(&self) -> &'a str {
        self.names.local_of(self.id)
    }

    /// The prefix as written, `""` for none.
    #[inline]
    pub fn prefix(&self) -> &'a str {
        self.names.prefix_str(self.prefix)
    }

    /// Whether this is the expanded name (`namespace`, `local`).
    #[inline]
    pub fn is(&self, namespace: &str, local: &str) -> bool {
        self.local() == local && self.namespace() == namespace
    }
}

impl std::fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{}}}{}", self.namespace(), self.local())
    }
}

/// An attribute of an event.
#[derive(Copy, Clone, Debug)]
pub struct Attribute<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// Its normalised value.
    pub value: &'a str,
}

/// The attributes (without namespace declarations) of a start tag, in order.
#[derive(Copy, Clone)]
pub struct Attributes<'a> {
    tokenizer: &'a Tokenizer,
    next: usize,
}

impl<'a> Attributes<'a> {
    /// The value of the attribute with this expanded name.
    pub fn get(&self, namespace: &str, local: &str) -> Option<&'a str> {
        self.into_iter().find(|a| a.name.is(namespace, local)).map(|a| a.value)
    }

    /// The value of the attribute with this name, see [`Tokenizer::intern`].
    pub fn get_id(&self, name: NameId) -> Option<&'a str> {
        self.into_iter().find(|a| a.name.id == name.0).map(|a| a.value)
    }

    /// The namespaces declared in the tag, as (prefix, URI).
    pub fn declarations(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let tokenizer = self.tokenizer;
        tokenizer
            .bindings
            .since(tokenizer.tag_mark)
            .map(|p| (tokenizer.names.prefix_str(p), tokenizer.names.uri_str(tokenizer.bindings.get(p))))
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;
    #[inline]
    fn next(&mut self) -> Option<Attribute<'a>> {
        let a = self.tokenizer.resolved.get(self.next)?;
        self.next += 1;
        let name = Name { names: &self.tokenizer.names, id: a.name, prefix: a.prefix };
        Some(Attribute { name, value: self.tokenizer.piece(a.value) })
    }
}

impl std::fmt::Debug for Attributes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

/// An event.
#[derive(Copy, Clone, Debug)]
pub enum Event<'a> {
    /// A start tag. An [`Event::EndElement`] follows also when `empty`.
    StartElement {
        /// The element's name.
        name: Name<'a>,
        /// Its attributes.
        attributes: Attributes<'a>,
        /// The element was written as `<a/>`.
        empty: bool,
    },
    /// An end tag, or the end of an empty element.
    EndElement {
        /// The element's name.
        name: Name<'a>,
    },
    /// Text, references replaced and line ends normalised. Text may come in several pieces.
    Text(&'a str),
    /// A comment.
    Comment(&'a str),
    /// A processing instruction.
    ProcessingInstruction {
        /// Its target.
        target: &'a str,
        /// Its data.
        data: &'a str,
    },
}

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

/// What [`Tokenizer::skim`] stops at. Skipped content is checked all the same.
///
/// ```
/// # use busbar_xml::{Tokenizer, Event, Interest};
/// let mut tokenizer = Tokenizer::default();
/// tokenizer.feed(b"<a><b>x</b><c/></a>");
/// let mut classes = vec![0; 64];
/// let c = tokenizer.intern("", "c");
/// classes[c.index()] = 8;
/// let interest = Interest { classes: &classes, anywhere: 8, ..Interest::NOTHING };
/// assert!(matches!(tokenizer.skim(&interest), Ok(true)));
/// assert!(matches!(tokenizer.event(), Event::StartElement { name, .. } if name.local() == "c"));
/// ```
#[derive(Copy, Clone)]
pub struct Interest<'a> {
    /// The classes of elements: a set of bits for each name, by [`NameId::index`]. A name without an entry has
    /// all bits.
    pub classes: &'a [u32],
    /// The classes that are wanted at any depth.
    pub anywhere: u32,
    /// The classes that are wanted in the element at depth `level`.
    pub children: u32,
    /// The number of open elements at which the end of an element is wanted.
    pub level: usize,
    /// The classes of elements that [`Interest::leaf`] decides about, if they hold only one piece of text.
    pub leaves: u32,
    /// Whether an element of this class with this text is wanted. `None`: all are.
    pub leaf: Option<AskLeaf<'a>>,
}

/// See [`Interest::leaf`].
pub type AskLeaf<'a> = &'a dyn Fn(u32, &str) -> bool;

impl std::fmt::Debug for Interest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Interest { anywhere, children, level, leaves, .. } = self;
        write!(f, "Interest({anywhere:#x}, {children:#x} at {level}, asks {leaves:#x})")
    }
}

impl Interest<'_> {
    /// Nothing is wanted: the rest is only checked.
    pub const NOTHING: Interest<'static> =
        Interest { classes: &[], anywhere: 0, children: 0, level: usize::MAX, leaves: 0, leaf: None };
    /// The class of text.
    pub const TEXT: u32 = 1;
    /// The class of comments.
    pub const COMMENT: u32 = 2;
    /// The class of processing instructions.
    pub const INSTRUCTION: u32 = 4;
}

/// The events that a reader wants. `depth`: the number of elements around it.
trait Wants {
    /// The class of a name.
    fn class_of(&self, name: u32) -> u32;
    fn class(&self, class: u32, depth: usize) -> bool;
    /// Whether [`Wants::leaf`] decides about elements of this class that are wanted.
    fn asks(&self, class: u32, depth: usize) -> bool;
    /// Whether an element of this class with nothing but this text is wanted.
    fn leaf(&self, class: u32, text: &str) -> bool;
    fn end(&self, depth: usize) -> bool;
}

struct Everything;

impl Wants for Everything {
    #[inline(always)]
    fn class_of(&self, _: u32) -> u32 {
        0
    }
    #[inline(always)]
    fn class(&self, _: u32, _: usize) -> bool {
        true
    }
    #[inline(always)]
    fn asks(&self, _: u32, _: usize) -> bool {
        false
    }
    #[inline(always)]
    fn leaf(&self, _: u32, _: &str) -> bool {
        true
    }
    #[inline(always)]
    fn end(&self, _: usize) -> bool {
        true
    }
}

impl Wants for Interest<'_> {
    #[inline(always)]
    fn class_of(&self, name: u32) -> u32 {
        self.classes.get(name as usize).copied().unwrap_or(u32::MAX)
    }
    #[inline(always)]
    fn asks(&self, class: u32, depth: usize) -> bool {
        let wanted = self.anywhere | if depth == self.level { self.children } else { 0 };
        class & wanted & !self.leaves == 0
    }
    #[inline(always)]
    fn leaf(&self, class: u32, text: &str) -> bool {
        self.leaf.is_none_or(|leaf| leaf(class, text))
    }
    #[inline(always)]
    fn class(&self, class: u32, depth: usize) -> bool {
        class & self.anywhere != 0 || depth == self.level && class & self.children != 0
    }
    #[inline(always)]
    fn end(&self, depth: usize) -> bool {
        depth + 1 == self.level
    }
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
            Source::Utf8 => self.buffer.extend_from_slice(bytes),
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
                self.buffer.extend_from_slice(bytes);
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

    /// Reads the next token into `current`; `false` where the input ends but may continue, and at the end.
    fn token(&mut self) -> Res<bool> {
        self.scratch.clear();
        match self.step() {
            Ok(token) => {
                self.searched = 0;
                self.quote = 0;
                Ok(token)
            }
            Err(fault) if fault.kind == ErrorKind::UnexpectedEnd => {
                if let Some(mut bad) = self.bad.take() {
                    bad.at = self.usable;
                    return Err(bad);
                }
                if self.finished {
                    return Err(fault);
                }
                let waiting = self.usable - self.at;
                if waiting > self.limits.text_length.saturating_add(self.limits.name_length + 64) {
                    return limit("text_length", self.limits.text_length, self.at);
                }
                Ok(false)
            }
            Err(fault) => Err(fault),
        }
    }

    fn step(&mut self) -> Res<bool> {
        if self.over {
            return limit("total", self.limits.total, self.at);
        }
        loop {
            let input = &self.buffer[..self.usable];
            let p = self.at;
            match self.state {
                State::Start => {
                    if matches!(self.source, Source::Undetected) {
                        return end("the prolog", p);
                    }
                    if input.len() < 6 && b"<?xml".starts_with(&input[..input.len().min(5)]) && !self.finished
                    {
                        return end("the prolog", p);
                    }
                    if input.starts_with(b"<?xml") && input.get(5).is_some_and(|&b| is_space(b)) {
                        self.at = lex::xml_decl(input, false)?.end;
                    }
                    self.state = State::Prolog;
                }
                State::Prolog | State::Epilog => {
                    self.at = lex::spaces(input, p);
                    let p = self.at;
                    let Some(&b) = input.get(p) else {
                        if self.state == State::Epilog && self.finished && self.bad.is_none() {
                            return Ok(false);
                        }
                        return end("the prolog: there is no root element", p);
                    };
                    if b != b'<' {
                        return syntax("text outside the root element", p);
                    }
                    return match lex::byte(input, p + 1, "a tag")? {
                        b'?' => self.pi(),
                        b'!' => {
                            let rest = &input[p..];
                            if rest.starts_with(b"<!--") {
                                return self.comment();
                            }
                            if rest.starts_with(b"<!DOCTYPE") && self.state == State::Prolog {
                                return fault(
                                    ErrorKind::Doctype,
                                    "a document type declaration is not allowed here",
                                    p,
                                );
                            }
                            if b"<!--".starts_with(rest) || b"<!DOCTYPE".starts_with(rest) {
                                return end("markup", p);
                            }
                            syntax("expected the root element, a comment or a processing instruction", p)
                        }
                        _ if self.state == State::Epilog => syntax("markup behind the root element", p),
                        _ => self.start_tag(),
                    };
                }
                State::Failed => return end("an element", p),
                State::Content => {
                    let Some(&b) = input.get(p) else { return end("an element", p) };
                    if b != b'<' {
                        return self.text();
                    }
                    return match lex::byte(input, p + 1, "a tag")? {
                        b'/' => self.end_tag(),
                        b'?' => self.pi(),
                        b'!' => {
                            let rest = &input[p..];
                            if rest.starts_with(b"<!--") {
                                return self.comment();
                            }
                            if rest.starts_with(b"<![CDATA[") {
                                if self.cdata()? {
                                    return Ok(true);
                                }
                                // An empty section is not an event.
                                continue;
                            }
                            if b"<!--".starts_with(rest) || b"<![CDATA[".starts_with(rest) {
                                return end("markup", p);
                            }
                            syntax("expected a comment or a CDATA section", p)
                        }
                        _ => self.start_tag(),
                    };
                }
            }
        }
    }

    fn text(&mut self) -> Res<bool> {
        let input = &self.buffer[..self.usable];
        let start = self.at;
        let mut p = start;
        let mut copied = false;
        let piece = loop {
            let e = text_end(input, p);
            let mut run = &input[p..e];
            if self.brackets && e == input.len() && !self.finished && self.bad.is_none() {
                // `]]` at the end may be the start of `]]>`.
                let held = run.iter().rev().take(2).take_while(|&&b| b == b']').count();
                run = &run[..run.len() - held];
            }
            if self.brackets
                && let Some(i) = memchr::memmem::find(run, b"]]>")
            {
                return syntax("`]]>` in text", p + i);
            }
            let stop = p + run.len();
            if !copied && (e == input.len() || input[e] == b'<') {
                p = stop;
                break Piece { from: start, to: stop, side: false };
            }
            copied = true;
            self.scratch.push_str(lex::text(run));
            p = stop;
            match input.get(stop) {
                Some(b'&') => match lex::reference(input, p, &self.limits) {
                    Ok((Reference::Char(c), e)) => {
                        self.scratch.push(c);
                        p = e;
                    }
                    Ok((Reference::Entity, e)) => {
                        let name = lex::text(&input[p + 1..e - 1]);
                        return fault(ErrorKind::Entity, format!("the entity `{name}` is not declared"), p);
                    }
                    // Return the text so far; the reference comes with the next piece.
                    Err(f) if f.kind == ErrorKind::UnexpectedEnd && p > start => {
                        break Piece { from: 0, to: self.scratch.len(), side: true };
                    }
                    Err(f) => return Err(f),
                },
                Some(b'\r') => match input.get(p + 1) {
                    None if cut_at_end(self.finished, self.bad.is_some()) => {
                        if p > start {
                            break Piece { from: 0, to: self.scratch.len(), side: true };
                        }
                        return end("text", p);
                    }
                    next => {
                        self.scratch.push('\n');
                        p += 1 + usize::from(next == Some(&b'\n'));
                    }
                },
                _ => break Piece { from: 0, to: self.scratch.len(), side: true },
            }
        };
        if piece.from == piece.to {
            return end("text", p);
        }
        self.continued = self.text_length > 0;
        self.text_length += p - start;
        if self.text_length > self.limits.text_length {
            return limit("text_length", self.limits.text_length, start);
        }
        self.at = p;
        self.current = Token::Text(piece);
        Ok(true)
    }

    /// A CDATA section; `false` for an empty one.
    fn cdata(&mut self) -> Res<bool> {
        let from = self.at + 9;
        let to = self.find(from, b"]]>", "a CDATA section")?;
        self.continued = self.text_length > 0;
        self.text_length += to - from;
        if self.text_length > self.limits.text_length {
            return limit("text_length", self.limits.text_length, from);
        }
        self.at = to + 3;
        self.searched = 0;
        if from == to {
            return Ok(false);
        }
        self.current = Token::Text(self.lines(from, to));
        Ok(true)
    }

    /// The offset of `needle` at or after `from`; the search continues where the last one stopped.
    fn find(&mut self, from: usize, needle: &[u8], construct: &'static str) -> Res<usize> {
        let start = from.max(self.at + self.searched);
        let input = &self.buffer[..self.usable];
        match memchr::memmem::find(&input[start.min(input.len())..], needle) {
            Some(i) => Ok(start + i),
            None => {
                self.searched = (input.len() - self.at).saturating_sub(needle.len() - 1);
                end(construct, input.len())
            }
        }
    }

    /// A range of the buffer with its line ends normalised.
    fn lines(&mut self, from: usize, to: usize) -> Piece {
        let raw = &self.buffer[from..to];
        if memchr::memchr(b'\r', raw).is_none() {
            return Piece { from, to, side: false };
        }
        let start = self.scratch.len();
        lex::push_lines(&mut self.scratch, lex::text(raw));
        Piece { from: start, to: self.scratch.len(), side: true }
    }

    fn comment(&mut self) -> Res<bool> {
        let from = self.at + 4;
        let dashes = self.find(from, b"--", "a comment")?;
        let to = lex::comment(&self.buffer[..self.usable], from, dashes)?;
        if to - from > self.limits.text_length {
            return limit("text_length", self.limits.text_length, from);
        }
        self.at = to + 3;
        self.text_length = 0;
        self.current = Token::Comment(self.lines(from, to));
        Ok(true)
    }

    fn pi(&mut self) -> Res<bool> {
        let start = self.at + 2;
        let from = self.at + self.searched;
        let input = &self.buffer[..self.usable];
        let pi = match lex::pi(input, start, from, &self.limits) {
            Ok(pi) => pi,
            Err(f) => {
                if f.kind == ErrorKind::UnexpectedEnd {
                    self.searched = (input.len() - self.at).saturating_sub(1);
                }
                return Err(f);
            }
        };
        if pi.data_end - pi.data > self.limits.text_length {
            return limit("text_length", self.limits.text_length, pi.data);
        }
        self.at = pi.end;
        self.text_length = 0;
        let target = Piece { from: start, to: pi.target_end, side: false };
        self.current = Token::Pi { target, data: self.lines(pi.data, pi.data_end) };
        Ok(true)
    }

    /// Searches the end of an incomplete start tag, from where the last search ended.
    fn find_tag_end(&mut self) -> bool {
        let input = &self.buffer[..self.usable];
        let mut p = self.at + self.searched.max(1);
        let mut quote = self.quote;
        while p < input.len() {
            if quote != 0 {
                match memchr::memchr(quote, &input[p..]) {
                    Some(i) => {
                        p += i + 1;
                        quote = 0;
                    }
                    None => p = input.len(),
                }
                continue;
            }
            match input[p] {
                b'>' | b'<' => {
                    (self.searched, self.quote) = (p - self.at, 0);
                    return true;
                }
                b @ (b'"' | b'\'') => quote = b,
                _ => {}
            }
            p += 1;
        }
        (self.searched, self.quote) = (input.len() - self.at, quote);
        false
    }

    fn start_tag(&mut self) -> Res<bool> {
        if self.searched > 0 && !self.finished && self.bad.is_none() && !self.find_tag_end() {
            return end("a start tag", self.usable);
        }
        let input = &self.buffer[..self.usable];
        let at = self.at + 1;
        let done = self
            .names
            .qname_behind(self.last_tag, input, at, &self.limits, lex::START_TAG)
            .and_then(|(qname, e)| self.tag(qname, e));
        if let Err(f) = &done
            && f.kind == ErrorKind::UnexpectedEnd
        {
            self.find_tag_end();
        }
        done
    }

    /// The start tag at `at`, whose name is `qname` and ends at `e`.
    fn tag(&mut self, qname: u32, e: usize) -> Res<bool> {
        let input = &self.buffer[..self.usable];
        let at = self.at + 1;
        let names = &mut self.names;
        let tag = lex::rest_of_start_tag(input, (qname, e), names, &self.limits, &mut self.raw_attributes)?;
        if self.stack.len() >= self.limits.depth {
            return limit("depth", self.limits.depth, at);
        }
        self.last_tag = qname;
        let mark = self.bindings.mark();
        self.resolved.clear();
        let mut declares = false;
        for a in &self.raw_attributes {
            declares |= a.qname == XMLNS_QNAME || names.prefix_of(a.qname) == XMLNS_PREFIX;
        }
        // A single attribute cannot be a duplicate.
        let several = self.raw_attributes.len() > 1;
        if several {
            self.seen.next_element();
        }
        if declares {
            self.declarations()?;
        }
        let input = &self.buffer[..self.usable];
        let prefix = self.names.prefix_of(qname);
        let uri = self.bindings.get(prefix);
        if uri == UNBOUND || prefix == XMLNS_PREFIX {
            return unbound(&self.names, prefix, at);
        }
        let name = self.names.expand(qname, uri);
        for a in &self.raw_attributes {
            let at = a.name as usize;
            let prefix = self.names.prefix_of(a.qname);
            if a.qname == XMLNS_QNAME || prefix == XMLNS_PREFIX {
                continue;
            }
            let name = if prefix == 0 {
                self.names.plain(a.qname)
            } else {
                match self.bindings.get(prefix) {
                    UNBOUND => return unbound(&self.names, prefix, at),
                    uri => self.names.expand(a.qname, uri),
                }
            };
            if several && !self.seen.first(name) {
                let raw = self.names.raw_of(a.qname);
                return syntax(format!("the attribute `{raw}` is there twice"), at);
            }
            let value = if a.plain {
                Piece { from: a.value as usize, to: a.value_end as usize, side: false }
            } else {
                let from = self.scratch.len();
                value(input, a, &self.limits, &mut self.scratch)?;
                Piece { from, to: self.scratch.len(), side: true }
            };
            self.resolved.push(Resolved { name, prefix, value });
        }
        self.serial += 1;
        let open = Open { qname, name, prefix, mark, serial: self.serial };
        if self.stack.is_empty() {
            self.root = Some(open);
        }
        self.tag_mark = mark;
        self.at = tag.end;
        self.text_length = 0;
        self.state = State::Content;
        if tag.empty {
            self.empty = Some(open);
            if self.stack.is_empty() {
                self.state = State::Epilog;
            }
        } else {
            self.stack.push(open);
        }
        self.current = Token::Start { name, prefix, empty: tag.empty };
        Ok(true)
    }

    /// Binds the prefixes declared in the tag.
    fn declarations(&mut self) -> Res<()> {
        let input = &self.buffer[..self.usable];
        for a in &self.raw_attributes {
            let at = a.name as usize;
            if a.qname != XMLNS_QNAME && self.names.prefix_of(a.qname) != XMLNS_PREFIX {
                continue;
            }
            let name = self.names.expand(a.qname, XMLNS_URI);
            if self.raw_attributes.len() > 1 && !self.seen.first(name) {
                let raw = self.names.raw_of(a.qname);
                return syntax(format!("the attribute `{raw}` is there twice"), at);
            }
            if a.plain {
                let uri = lex::text(&input[a.value as usize..a.value_end as usize]);
                self.names.bind(&mut self.bindings, a.qname, uri, at)?;
            } else {
                let mut uri = String::new();
                value(input, a, &self.limits, &mut uri)?;
                self.names.bind(&mut self.bindings, a.qname, &uri, at)?;
            }
        }
        Ok(())
    }

    fn end_tag(&mut self) -> Res<bool> {
        let input = &self.buffer[..self.usable];
        let at = self.at + 2;
        let Some(&open) = self.stack.last() else { return syntax("an end tag without start tag", self.at) };
        let e = match self.names.ends(open.qname, input, at) {
            Some(e) => e,
            None => {
                let e = lex::name(input, at, &self.limits, "an end tag")?;
                let name = self.names.raw_of(open.qname);
                if &input[at..e] != name.as_bytes() {
                    let found = lex::text(&input[at..e]);
                    return syntax(format!("expected `</{name}>`, found `</{found}`"), self.at);
                }
                e
            }
        };
        let close = lex::spaces(input, e);
        if lex::byte(input, close, "an end tag")? != b'>' {
            return syntax("expected `>` at the end of an end tag", close);
        }
        self.at = close + 1;
        self.text_length = 0;
        self.stack.pop();
        self.undo = Some(open.mark);
        if self.stack.is_empty() {
            self.state = State::Epilog;
        }
        self.current = Token::End { name: open.name, prefix: open.prefix };
        Ok(true)
    }

    /// The namespace a prefix is bound to at the current element; `None` when it is not.
    pub fn lookup_prefix(&self, prefix: &str) -> Option<&str> {
        let uri = self.bindings.get(self.names.find_prefix(prefix)?);
        (uri != UNBOUND && uri != NO_URI).then(|| self.names.uri_str(uri))
    }
}

/// Largest buffers that [`Tokenizer::recycle`] keeps, in bytes.
const LARGEST_KEPT: usize = 128 << 10;

/// Starts with a tag in UTF-8: no byte order mark, no declaration.
fn starts_plainly(bytes: &[u8]) -> bool {
    bytes.len() >= 4 && bytes[0] == b'<' && bytes[1] != b'?' && bytes[1] != 0
}

fn cut_at_end(finished: bool, bad: bool) -> bool {
    !finished && !bad
}

fn value(input: &[u8], a: &RawAttribute, limits: &Limits, out: &mut String) -> Res<()> {
    lex::attribute_value(input, a.value as usize, a.value_end as usize, limits, out, &mut |name, at, _| {
        fault(ErrorKind::Entity, format!("the entity `{name}` is not declared"), at)
    })
}

#[cold]
fn unbound<T>(names: &Names, prefix: PrefixId, at: usize) -> Res<T> {
    fault(ErrorKind::Namespace, format!("the prefix `{}` is not declared", names.prefix_str(prefix)), at)
}
