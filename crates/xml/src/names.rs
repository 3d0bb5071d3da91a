//! Names, interned: an expanded name is one integer, a repeated tag costs one hash look-up.

use crate::Limits;
use crate::chars::{NAME_BYTE, is_name_char, is_name_start, is_same};
use crate::error::{ErrorKind, Res, fault, limit};
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The namespace of the prefix `xml`.
pub const XML_NS: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace of the prefix `xmlns`.
pub const XMLNS_NS: &str = "http://www.w3.org/2000/xmlns/";

/// An expanded name (namespace URI and local name) of one document: equal names have equal ids.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NameId(pub(crate) u32);

impl NameId {
    /// The name with number `index`; `None` past 4 Gi.
    #[inline]
    pub fn from_index(index: usize) -> Option<NameId> {
        u32::try_from(index).ok().map(NameId)
    }

    /// The number of the name, dense from 0: an index for tables by name.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A namespace URI. 0 is "no namespace".
pub(crate) type UriId = u32;
/// A prefix. 0 is "no prefix".
pub(crate) type PrefixId = u16;

pub(crate) const NO_URI: UriId = 0;
pub(crate) const XML_URI: UriId = 1;
pub(crate) const XMLNS_URI: UriId = 2;
pub(crate) const NO_PREFIX: PrefixId = 0;
pub(crate) const XML_PREFIX: PrefixId = 1;
pub(crate) const XMLNS_PREFIX: PrefixId = 2;
/// The attribute name `xmlns`.
pub(crate) const XMLNS_QNAME: u32 = 0;
const NOT_YET: u32 = u32::MAX;
/// The binding of a prefix that is not declared.
pub(crate) const UNBOUND: UriId = u32::MAX;

#[derive(Copy, Clone, Debug)]
struct Span {
    start: u32,
    len: u32,
}

/// A qualified name as written, with its last meaning.
#[derive(Copy, Clone, Debug)]
pub(crate) struct QName {
    raw: Span,
    local: Span,
    pub prefix: PrefixId,
    /// The namespace the prefix was bound to when `name` was looked up.
    uri: UriId,
    name: u32,
    /// The name in no namespace, for attributes without prefix.
    plain: u32,
    /// The start tag (after an attribute: the attribute) that last followed this one: likely to follow again.
    follows: u32,
    /// The first attribute that a start tag with this name had last.
    attribute: u32,
    /// For `xmlns` and `xmlns:…`: the prefix that is declared, and its last namespace.
    declares: PrefixId,
    bound: UriId,
    /// The first and the last eight bytes as written (zeros where there are fewer).
    head: u64,
    tail: u64,
}

/// A start tag that was predicted correctly.
#[derive(Copy, Clone)]
pub(crate) struct Guess<'n> {
    pub qname: u32,
    pub q: &'n QName,
    pub end: usize,
}

impl QName {
    /// Its last meaning.
    #[inline(always)]
    pub fn name(&self) -> u32 {
        self.name
    }
}

#[derive(Copy, Clone, Debug)]
struct Entry {
    uri: UriId,
    local: Span,
}

/// The names of a document.
#[derive(Debug)]
pub(crate) struct Names {
    /// Different for every table. Names are only added, so a number means the same as long as the table lives.
    table: u64,
    chars: String,
    uris: Vec<Span>,
    prefixes: Vec<Span>,
    names: Vec<Entry>,
    qnames: Vec<QName>,
    uri_table: Table,
    prefix_table: Table,
    name_table: Table,
    qname_table: Table,
}

static FRESH: LazyLock<Names> = LazyLock::new(|| {
    let mut names = Names { table: TABLES.fetch_add(1, Ordering::Relaxed), ..Names::none() };
    for uri in ["", XML_NS, XMLNS_NS] {
        names.uri(uri);
    }
    for prefix in ["", "xml", "xmlns"] {
        names.prefix(prefix);
    }
    // The first qualified name: XMLNS_QNAME.
    let _ = names.qname("xmlns", 0);
    names
});

impl Default for Names {
    fn default() -> Names {
        Names::none()
    }
}

static TABLES: AtomicU64 = AtomicU64::new(1);

impl Clone for Names {
    fn clone(&self) -> Names {
        if self.table == 0 {
            return Names::none();
        }
        Names {
            table: TABLES.fetch_add(1, Ordering::Relaxed),
            chars: self.chars.clone(),
            uris: self.uris.clone(),
            prefixes: self.prefixes.clone(),
            names: self.names.clone(),
            qnames: self.qnames.clone(),
            uri_table: self.uri_table.clone(),
            prefix_table: self.prefix_table.clone(),
            name_table: self.name_table.clone(),
            qname_table: self.qname_table.clone(),
        }
    }
}

impl Names {
    /// The approximate memory of the table in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.chars.len() + self.names.len() * size_of::<Entry>() + self.qnames.len() * size_of::<QName>()
    }

    /// Without the names that every table has: allocates nothing. They are added with the first name.
    pub fn none() -> Names {
        Names {
            table: 0,
            chars: String::new(),
            uris: Vec::new(),
            prefixes: Vec::new(),
            names: Vec::new(),
            qnames: Vec::new(),
            uri_table: Table::default(),
            prefix_table: Table::default(),
            name_table: Table::default(),
            qname_table: Table::default(),
        }
    }

    /// The number of the table.
    #[inline]
    pub fn table(&self) -> u64 {
        self.table
    }

    /// Forgets names when there are many: documents of one kind share theirs.
    pub fn trim(&mut self) {
        if self.names.len() > 4096
            || self.qnames.len() > 4096
            || self.uris.len() > 1024
            || self.prefixes.len() > 1024
            || self.chars.len() > 1 << 18
        {
            *self = Names::default();
        }
    }

    /// Its approximate memory in bytes.
    pub fn bytes(&self) -> usize {
        self.chars.capacity()
            + self.qnames.capacity() * (size_of::<QName>() + 4 * size_of::<(u32, u32)>())
            + self.names.capacity() * (size_of::<Entry>() + 4 * size_of::<(u32, u32)>())
            + (self.uris.capacity() + self.prefixes.capacity())
                * (size_of::<Span>() + 4 * size_of::<(u32, u32)>())
    }

    #[inline]
    fn str(&self, span: Span) -> &str {
        &self.chars[span.start as usize..(span.start + span.len) as usize]
    }

    fn add(&mut self, text: &str) -> Span {
        let span = Span { start: self.chars.len() as u32, len: text.len() as u32 };
        self.chars.push_str(text);
        span
    }

    /// The number of expanded names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    #[inline]
    pub fn local_of(&self, name: u32) -> &str {
        self.str(self.names[name as usize].local)
    }

    /// As [`Names::local_of`], for a writer of bytes.
    #[inline]
    pub fn local_bytes(&self, name: u32) -> &[u8] {
        let span = self.names[name as usize].local;
        &self.chars.as_bytes()[span.start as usize..(span.start + span.len) as usize]
    }

    /// As [`Names::prefix_str`], for a writer of bytes.
    #[inline]
    pub fn prefix_bytes(&self, prefix: PrefixId) -> &[u8] {
        let Some(span) = self.prefixes.get(prefix as usize) else { return b"" };
        &self.chars.as_bytes()[span.start as usize..(span.start + span.len) as usize]
    }

    #[inline]
    pub fn uri_id_of(&self, name: u32) -> UriId {
        self.names[name as usize].uri
    }

    #[inline]
    pub fn uri_str(&self, uri: UriId) -> &str {
        self.str(self.uris[uri as usize])
    }

    #[inline]
    pub fn prefix_str(&self, prefix: PrefixId) -> &str {
        self.prefixes.get(prefix as usize).map_or("", |span| self.str(*span))
    }

    /// A new table, with a number of its own.
    pub fn ready(&mut self) {
        if self.table == 0 {
            self.fill();
        }
    }

    /// Before the first name: adds the names that every table has.
    #[cold]
    fn fill(&mut self) {
        *self = FRESH.clone();
    }

    pub fn find_uri(&self, uri: &str) -> Option<UriId> {
        if uri.is_empty() && !self.uris.is_empty() {
            return Some(NO_URI);
        }
        self.uri_table.find(hash(uri.as_bytes(), 0), |i| self.str(self.uris[i as usize]) == uri)
    }

    pub fn uri(&mut self, uri: &str) -> UriId {
        if uri.is_empty() && !self.uris.is_empty() {
            return NO_URI;
        }
        let h = hash(uri.as_bytes(), 0);
        if let Some(id) = self.uri_table.find(h, |i| self.str(self.uris[i as usize]) == uri) {
            return id;
        }
        if self.table == 0 {
            self.fill();
            return self.uri(uri);
        }
        let span = self.add(uri);
        self.uris.push(span);
        let id = self.uris.len() as u32 - 1;
        self.uri_table.insert(h, id);
        id
    }

    pub fn find_prefix(&self, prefix: &str) -> Option<PrefixId> {
        if prefix.is_empty() && !self.prefixes.is_empty() {
            return Some(NO_PREFIX);
        }
        let found = self
            .prefix_table
            .find(hash(prefix.as_bytes(), 0), |i| self.str(self.prefixes[i as usize]) == prefix);
        found.map(|i| i as PrefixId)
    }

    /// Interns a prefix; past 65,535 different ones the document has no more (see [`Names::check`]).
    pub fn prefix(&mut self, prefix: &str) -> PrefixId {
        if let Some(id) = self.find_prefix(prefix) {
            return id;
        }
        if self.table == 0 {
            self.fill();
            return self.prefix(prefix);
        }
        if self.prefixes.len() > PrefixId::MAX as usize {
            return PrefixId::MAX;
        }
        let span = self.add(prefix);
        self.prefixes.push(span);
        let id = self.prefixes.len() as u32 - 1;
        self.prefix_table.insert(hash(prefix.as_bytes(), 0), id);
        id as PrefixId
    }

    /// Whether the tables are full.
    fn check(&self, at: usize) -> Res<()> {
        if self.prefixes.len() > PrefixId::MAX as usize {
            return limit("prefixes", PrefixId::MAX as usize, at);
        }
        if self.chars.len() > (u32::MAX / 2) as usize {
            return limit("names", (u32::MAX / 2) as usize, at);
        }
        Ok(())
    }

    pub fn find_name(&self, uri: &str, local: &str) -> Option<NameId> {
        let uri = self.find_uri(uri)?;
        self.find(uri, local).map(NameId)
    }

    fn find(&self, uri: UriId, local: &str) -> Option<u32> {
        self.name_table.find(hash(local.as_bytes(), uri), |i| {
            let e = &self.names[i as usize];
            e.uri == uri && self.str(e.local) == local
        })
    }

    pub fn name(&mut self, uri: UriId, local: &str) -> u32 {
        if let Some(id) = self.find(uri, local) {
            return id;
        }
        if self.table == 0 {
            self.fill();
            return self.name(uri, local);
        }
        let span = self.add(local);
        self.add_name(uri, span, hash(local.as_bytes(), uri))
    }

    fn add_name(&mut self, uri: UriId, local: Span, h: u32) -> u32 {
        self.names.push(Entry { uri, local });
        let id = self.names.len() as u32 - 1;
        self.name_table.insert(h, id);
        id
    }

    /// Interns a qualified name as written, checking it when it is new.
    #[inline]
    pub fn qname(&mut self, raw: &str, at: usize) -> Res<u32> {
        let h = hash(raw.as_bytes(), 0);
        match self.qname_table.find(h, |i| self.str(self.qnames[i as usize].raw) == raw) {
            Some(id) => Ok(id),
            None => self.new_qname(raw, h, at),
        }
    }

    #[cold]
    fn new_qname(&mut self, raw: &str, h: u32, at: usize) -> Res<u32> {
        if self.table == 0 {
            self.fill();
            return self.qname(raw, at);
        }
        self.check(at)?;
        if !raw.chars().next().is_some_and(is_name_start) || !raw.chars().all(is_name_char) {
            return fault(ErrorKind::Syntax, format!("`{raw}` is not a name"), at);
        }
        let (prefix, local) = match raw.split_once(':') {
            None => ("", raw),
            Some((prefix, local)) => {
                let ok = !prefix.is_empty()
                    && local.chars().next().is_some_and(is_name_start)
                    && !local.contains(':');
                if !ok {
                    return fault(ErrorKind::Namespace, format!("`{raw}` is not a qualified name"), at);
                }
                (prefix, local)
            }
        };
        let prefix_id = self.prefix(prefix);
        let declares = if prefix == "xmlns" { self.prefix(local) } else { NO_PREFIX };
        let raw_span = self.add(raw);
        let local_len = local.len() as u32;
        let local = Span { start: raw_span.start + raw_span.len - local_len, len: local_len };
        self.qnames.push(QName {
            raw: raw_span,
            local,
            prefix: prefix_id,
            uri: UNBOUND,
            name: NOT_YET,
            plain: NOT_YET,
            follows: NOT_YET,
            attribute: NOT_YET,
            declares,
            bound: NOT_YET,
            head: word(raw.as_bytes(), 0),
            tail: raw.len().checked_sub(8).map_or(0, |at| word(raw.as_bytes(), at)),
        });
        let id = self.qnames.len() as u32 - 1;
        self.qname_table.insert(h, id);
        Ok(id)
    }

    /// The end of the name at `at`, if it is `qname`.
    #[inline(always)]
    pub fn ends(&self, qname: u32, input: &[u8], at: usize) -> Option<usize> {
        self.end_of(self.qnames.get(qname as usize)?, input, at)
    }

    /// The start tag whose name is at `at`, if it is the one that last followed `before` and its prefix has the same
    /// binding: its number, its expanded name, and the end of its name.
    #[inline(always)]
    pub fn guess(&self, before: u32, bindings: &Bindings, input: &[u8], at: usize) -> Option<Guess<'_>> {
        let qname = self.qnames.get(before as usize)?.follows;
        let q = self.qnames.get(qname as usize)?;
        let end = self.end_of(q, input, at)?;
        (q.uri == bindings.get(q.prefix) && q.uri != UNBOUND && q.prefix != XMLNS_PREFIX).then_some(Guess {
            qname,
            q,
            end,
        })
    }

    #[inline(always)]
    pub fn end_of(&self, q: &QName, input: &[u8], at: usize) -> Option<usize> {
        let len = q.raw.len as usize;
        let head = u64::from_le_bytes(*input.get(at..)?.first_chunk()?);
        let end = at + len;
        if len < 8 {
            if (head ^ q.head) & ((1 << (len * 8)) - 1) != 0 {
                return None;
            }
        } else {
            let tail = u64::from_le_bytes(*input.get(end - 8..)?.first_chunk()?);
            let middle = len <= 16 || input.get(at..end)? == self.str(q.raw).as_bytes();
            if head != q.head || tail != q.tail || !middle {
                return None;
            }
        }
        (!NAME_BYTE[*input.get(end)? as usize]).then_some(end)
    }

    /// The qualified name at `at` and its end, without hashing if it is the one that last followed `before`.
    #[inline(always)]
    pub fn qname_behind(
        &mut self,
        before: u32,
        input: &[u8],
        at: usize,
        limits: &Limits,
        construct: &'static str,
    ) -> Res<(u32, usize)> {
        if let Some(before) = self.qnames.get(before as usize)
            && let Some(end) = self.ends(before.follows, input, at)
            && end - at <= limits.name_length
        {
            return Ok((before.follows, end));
        }
        self.other_qname(before, input, at, limits, construct)
    }

    #[inline(never)]
    fn other_qname(
        &mut self,
        before: u32,
        input: &[u8],
        at: usize,
        limits: &Limits,
        construct: &'static str,
    ) -> Res<(u32, usize)> {
        let end = crate::lex::name(input, at, limits, construct)?;
        let qname = self.qname(crate::lex::text(&input[at..end]), at)?;
        if let Some(before) = self.qnames.get_mut(before as usize) {
            before.follows = qname;
        }
        Ok((qname, end))
    }

    /// The name of the attribute at `at` and its end, in the same way. `before`: the attribute before it, or `None` and
    /// the name of the element.
    #[inline(always)]
    pub fn attribute_behind(
        &mut self,
        element: u32,
        before: Option<u32>,
        input: &[u8],
        at: usize,
        limits: &Limits,
    ) -> Res<(u32, usize)> {
        let guess = match before {
            Some(before) => self.qnames[before as usize].follows,
            None => self.qnames[element as usize].attribute,
        };
        if let Some(end) = self.ends(guess, input, at)
            && end - at <= limits.name_length
        {
            return Ok((guess, end));
        }
        let end = crate::lex::name(input, at, limits, crate::lex::START_TAG)?;
        let qname = self.qname(crate::lex::text(&input[at..end]), at)?;
        match before {
            Some(before) => self.qnames[before as usize].follows = qname,
            None => self.qnames[element as usize].attribute = qname,
        }
        Ok((qname, end))
    }

    #[inline]
    pub fn prefix_of(&self, qname: u32) -> PrefixId {
        self.qnames[qname as usize].prefix
    }

    pub fn raw_of(&self, qname: u32) -> &str {
        self.str(self.qnames[qname as usize].raw)
    }

    /// The expanded name of `qname` with its prefix bound to `uri`.
    #[inline]
    pub fn expand(&mut self, qname: u32, uri: UriId) -> u32 {
        let q = &self.qnames[qname as usize];
        if q.uri == uri {
            return q.name;
        }
        let id = self.expand_slow(qname, uri);
        let q = &mut self.qnames[qname as usize];
        q.uri = uri;
        q.name = id;
        id
    }

    /// The expanded name of an attribute without prefix: in no namespace.
    #[inline]
    pub fn plain(&mut self, qname: u32) -> u32 {
        let plain = self.qnames[qname as usize].plain;
        if plain != NOT_YET {
            return plain;
        }
        let id = self.expand_slow(qname, NO_URI);
        self.qnames[qname as usize].plain = id;
        id
    }

    /// Binds the prefix that the declaration `qname` (`xmlns` or `xmlns:…`) names to `value` (Namespaces 1.0, 3).
    pub fn bind(
        &mut self,
        bindings: &mut Bindings,
        qname: u32,
        value: &str,
        at: usize,
    ) -> Res<(PrefixId, UriId)> {
        let bad = |message: &'static str| fault(ErrorKind::Namespace, message, at);
        let QName { declares: prefix, bound, .. } = self.qnames[qname as usize];
        let uri = match self.uris.get(bound as usize) {
            Some(last) if is_same(self.str(*last), value) => bound,
            _ => {
                let uri = self.uri(value);
                self.qnames[qname as usize].bound = uri;
                uri
            }
        };
        if prefix == XMLNS_PREFIX {
            return bad("the prefix `xmlns` must not be declared");
        }
        if uri == XMLNS_URI {
            return bad("no prefix may be bound to the namespace of `xmlns`");
        }
        if (prefix == XML_PREFIX) != (uri == XML_URI) {
            return bad("the prefix `xml` and its namespace belong to each other only");
        }
        if prefix != NO_PREFIX && uri == NO_URI {
            return bad("a prefix cannot be undeclared");
        }
        bindings.set(prefix, uri);
        Ok((prefix, uri))
    }

    #[inline(never)]
    fn expand_slow(&mut self, qname: u32, uri: UriId) -> u32 {
        let local = self.qnames[qname as usize].local;
        let text = self.str(local);
        let h = hash(text.as_bytes(), uri);
        match self.find(uri, text) {
            Some(id) => id,
            None => self.add_name(uri, local, h),
        }
    }
}

/// The bindings of prefixes while a document is read or written, with undo.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    bound: Vec<UriId>,
    undo: Vec<(PrefixId, UriId)>,
    /// The number of prefixes that are bound, beside `xml` and the empty one.
    count: usize,
}

impl Bindings {
    /// Only `xml`, and the default namespace bound to nothing.
    pub fn reset(&mut self) {
        self.bound.clear();
        self.bound.reserve(16);
        self.bound.extend([NO_URI, XML_URI, XMLNS_URI]);
        self.undo.clear();
        self.count = 0;
    }

    #[inline]
    pub fn get(&self, prefix: PrefixId) -> UriId {
        self.bound.get(prefix as usize).copied().unwrap_or(UNBOUND)
    }

    pub fn set(&mut self, prefix: PrefixId, uri: UriId) {
        let i = prefix as usize;
        if i >= self.bound.len() {
            self.bound.resize(i + 1, UNBOUND);
        }
        self.undo.push((prefix, self.bound[i]));
        self.count += usize::from(self.bound[i] == UNBOUND);
        self.bound[i] = uri;
    }

    /// How many prefixes are bound, beside `xml` and the empty one.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    #[inline]
    pub fn mark(&self) -> u32 {
        self.undo.len() as u32
    }

    #[inline]
    pub fn rewind(&mut self, mark: u32) {
        while self.undo.len() > mark as usize {
            if let Some((prefix, uri)) = self.undo.pop() {
                self.count -= usize::from(uri == UNBOUND);
                self.bound[prefix as usize] = uri;
            }
        }
    }

    /// The bindings made since `mark`.
    pub fn since(&self, mark: u32) -> impl Iterator<Item = PrefixId> {
        self.undo[mark as usize..].iter().map(|u| u.0)
    }

    /// Every prefix bound to something, the empty one included.
    pub fn all(&self) -> impl Iterator<Item = (PrefixId, UriId)> {
        self.bound.iter().enumerate().map(|(i, &u)| (i as PrefixId, u)).filter(|&(_, u)| u != UNBOUND)
    }
}

/// Finds duplicates among the names of one element in constant time each, without hashing.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    stamps: Vec<u32>,
    now: u32,
}

impl Seen {
    pub fn next_element(&mut self) {
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            self.stamps.clear();
            self.now = 1;
        }
    }

    /// Whether `name` occurs for the first time since [`Seen::next_element`].
    #[inline]
    pub fn first(&mut self, name: u32) -> bool {
        let i = name as usize;
        if i >= self.stamps.len() {
            self.stamps.resize(i + 16, 0);
        }
        let first = self.stamps[i] != self.now;
        self.stamps[i] = self.now;
        first
    }
}

/// An index from hashes to numbers: open addressing, at most half full.
#[derive(Clone, Debug, Default)]
struct Table {
    /// (hash, number + 1); 0 in the second place is an empty slot.
    slots: Vec<(u32, u32)>,
    len: usize,
}

impl Table {
    #[inline]
    fn find(&self, h: u32, same: impl Fn(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut i = h as usize & mask;
        loop {
            let (slot_hash, number) = self.slots[i];
            if number == 0 {
                return None;
            }
            if slot_hash == h && same(number - 1) {
                return Some(number - 1);
            }
            i = (i + 1) & mask;
        }
    }

    fn insert(&mut self, h: u32, number: u32) {
        if self.slots.len() < (self.len + 1) * 2 {
            let size = (self.slots.len() * 2).max(16);
            let old = std::mem::replace(&mut self.slots, vec![(0, 0); size]);
            for (h, n) in old.into_iter().filter(|s| s.1 != 0) {
                self.place(h, n);
            }
        }
        self.len += 1;
        self.place(h, number + 1);
    }

    fn place(&mut self, h: u32, stored: u32) {
        let mask = self.slots.len() - 1;
        let mut i = h as usize & mask;
        while self.slots[i].1 != 0 {
            i = (i + 1) & mask;
        }
        self.slots[i] = (h, stored);
    }
}

/// Eight bytes at `at`, or the rest.
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    let bytes = &bytes[at..bytes.len().min(at + 8)];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0u8) | 1);

/// A fast hash of short keys, seeded per process so that colliding names cannot be prepared.
#[inline]
fn hash(bytes: &[u8], salt: u32) -> u32 {
    #[inline(always)]
    fn fold(a: u64, b: u64) -> u64 {
        let m = u128::from(a) * u128::from(b);
        m as u64 ^ (m >> 64) as u64
    }
    #[inline(always)]
    fn word(bytes: &[u8], at: usize) -> u64 {
        bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |c| u64::from_le_bytes(*c))
    }
    #[inline(always)]
    fn half(bytes: &[u8], at: usize) -> u64 {
        bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |c| u64::from(u32::from_le_bytes(*c)))
    }
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let n = bytes.len();
    let mut h = *SEED ^ (u64::from(salt) << 32) ^ n as u64;
    let (a, b) = match n {
        0 => (0, 0),
        1..=3 => (u64::from(bytes[0]) << 16 | u64::from(bytes[n / 2]) << 8 | u64::from(bytes[n - 1]), 0),
        4..=8 => (half(bytes, 0), half(bytes, n - 4)),
        9..=16 => (word(bytes, 0), word(bytes, n - 8)),
        _ => {
            let mut at = 0;
            while at + 16 < n {
                h = fold(word(bytes, at) ^ h, word(bytes, at + 8) ^ K);
                at += 16;
            }
            (word(bytes, n - 16), word(bytes, n - 8))
        }
    };
    h = fold(a ^ h, b ^ K);
    (h ^ (h >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_equal_ids() {
        let mut names = Names::default();
        let u = names.uri("urn:a");
        let (a, b) = (names.qname("p:x", 0).unwrap(), names.qname("q:x", 0).unwrap());
        assert_ne!(a, b);
        assert_eq!(names.expand(a, u), names.expand(b, u));
        assert_ne!(names.expand(a, u), names.plain(a));
        assert_eq!(names.find_name("urn:a", "x"), Some(NameId(names.expand(a, u))));
        assert_eq!(names.find_name("urn:b", "x"), None);
        for i in 0..5000 {
            let name = format!("name{i}");
            let q = names.qname(&name, 0).unwrap();
            assert_eq!(names.qname(&name, 0).unwrap(), q);
            let id = names.plain(q);
            assert_eq!(names.local_of(id), name);
        }
    }

    #[test]
    fn what_is_no_qname() {
        for raw in ["", ":", ":a", "a:", "a:b:c", "a:1", "1", "-", "a\u{D7}"] {
            assert!(Names::default().qname(raw, 0).is_err(), "{raw}");
        }
    }
}
