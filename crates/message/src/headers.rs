//! Header fields of a message: ordered, written as received, found whatever their case.
//!
//! All lines lie in one byte arena as they go over the wire, so that a head that came from there is taken over with one
//! copy and goes out with one copy per run of fields that stay. Dropped storage goes to a small free list of its thread,
//! so that in the steady state a message head allocates nothing. A list of fields is one pointer wide: heads are moved
//! about.

use std::cell::RefCell;
use std::fmt;

/// Names that every message is searched for. A field's is found out once, when it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum StandardHeader {
    /// Any other name.
    Other,
    Accept,
    AcceptEncoding,
    Authorization,
    CacheControl,
    Connection,
    ContentEncoding,
    ContentLength,
    ContentType,
    Date,
    Expect,
    Host,
    KeepAlive,
    ProxyAuthenticate,
    ProxyAuthorization,
    ProxyConnection,
    Server,
    SoapAction,
    Te,
    Trailer,
    TransferEncoding,
    Upgrade,
    UserAgent,
    XForwardedFor,
    /// WSO2's name for the correlation id.
    ActivityId,
}

impl StandardHeader {
    /// What a name is. Names are compared as one or two words, whatever the case of their letters.
    #[inline]
    pub fn of(name: &[u8]) -> StandardHeader {
        macro_rules! known {
            ($($text:literal => $known:ident,)*) => {{
                let spelling = words(name);
                $(if const { Pattern::of($text) }.is(spelling) { return StandardHeader::$known; })*
                StandardHeader::Other
            }};
        }
        match name.len() {
            2 => known! { b"te" => Te, },
            4 => known! { b"host" => Host, b"date" => Date, },
            6 => known! { b"expect" => Expect, b"server" => Server, b"accept" => Accept, },
            7 => known! { b"trailer" => Trailer, b"upgrade" => Upgrade, },
            10 => known! {
                b"connection" => Connection, b"user-agent" => UserAgent, b"soapaction" => SoapAction,
                b"keep-alive" => KeepAlive, b"activityid" => ActivityId,
            },
            12 => known! { b"content-type" => ContentType, },
            13 => known! { b"authorization" => Authorization, b"cache-control" => CacheControl, },
            14 => known! { b"content-length" => ContentLength, },
            15 => known! { b"accept-encoding" => AcceptEncoding, b"x-forwarded-for" => XForwardedFor, },
            16 => known! { b"content-encoding" => ContentEncoding, b"proxy-connection" => ProxyConnection, },
            // The two words leave the middle one of seventeen bytes out.
            17 if name[8] == b'-' => known! { b"transfer-encoding" => TransferEncoding, },
            // And two of eighteen, three of nineteen.
            18 if name[8..10].eq_ignore_ascii_case(b"th") => known! {
                b"proxy-authenticate" => ProxyAuthenticate,
            },
            19 if name[8..11].eq_ignore_ascii_case(b"tho") => known! {
                b"proxy-authorization" => ProxyAuthorization,
            },
            _ => StandardHeader::Other,
        }
    }

    /// The set of just this one.
    #[inline]
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The first and the last eight bytes of a name, or four or one of a shorter one (but not of a length that no known
/// name has).
#[inline]
const fn words(name: &[u8]) -> (u64, u64) {
    match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
            (Some(first), Some(last)) => {
                (u32::from_le_bytes(*first) as u64, u32::from_le_bytes(*last) as u64)
            }
            _ => match name {
                [a, b] => (*a as u64, *b as u64),
                _ => (0, 0),
            },
        },
    }
}

/// A known name as [`words`], and the bits of them in which the case of its letters is not.
struct Pattern {
    words: (u64, u64),
    count: (u64, u64),
}

impl Pattern {
    const fn of(lower: &[u8]) -> Pattern {
        let mut letters = [0; 20];
        let mut at = 0;
        while at < lower.len() {
            letters[at] = if lower[at].is_ascii_lowercase() { 0x20 } else { 0 };
            at += 1;
        }
        let case = words(letters.split_at(lower.len()).0);
        Pattern { words: words(lower), count: (!case.0, !case.1) }
    }

    #[inline]
    fn is(&self, name: (u64, u64)) -> bool {
        ((name.0 ^ self.words.0) & self.count.0) | ((name.1 ^ self.words.1) & self.count.1) == 0
    }
}

/// Whether two names of the same length differ in case at most.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.eq_ignore_ascii_case(b))
}

/// An ordered list of header fields.
///
/// Names keep the case they were given and are compared without regard to ASCII case; a name may
/// occur more than once. Values are bytes: HTTP allows octets above 0x7F in them.
#[derive(Default)]
pub struct Headers(Option<Box<Fields>>);

#[derive(Default)]
struct Fields {
    /// Lines `name: value CR LF`.
    arena: Vec<u8>,
    fields: Vec<Field>,
    /// Arena bytes no field refers to any more.
    garbage: usize,
    /// While a head is read from the wire: fields that do not stand there as they will go out, by number, with the place
    /// of their value.
    odd: Vec<(u32, u32)>,
    /// What of [`StandardHeader`] may be among the fields, as bits: nothing else is.
    known_names: u32,
}

static NOTHING: Fields =
    Fields { arena: Vec::new(), fields: Vec::new(), garbage: 0, odd: Vec::new(), known_names: 0 };

/// A field on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// What the name is.
    pub known: StandardHeader,
}

/// The value is behind the name, `: ` between them and CR LF behind it.
#[derive(Clone, Copy)]
struct Field {
    at: u32,
    name_len: u32,
    value_len: u32,
    known_name: StandardHeader,
    /// Name and value cannot break out of their line.
    sound: bool,
}

impl Field {
    fn name(self) -> std::ops::Range<usize> {
        self.at as usize..(self.at + self.name_len) as usize
    }

    fn value(self) -> std::ops::Range<usize> {
        let at = (self.at + self.name_len) as usize + 2;
        at..at + self.value_len as usize
    }

    /// With its line end.
    fn line(self) -> std::ops::Range<usize> {
        self.at as usize..self.value().end + 2
    }
}

impl Fields {
    fn line(&self, field: Field) -> Line<'_> {
        Line { name: &self.arena[field.name()], value: &self.arena[field.value()], known: field.known_name }
    }

    /// Most names differ in length or in the first letter, which is cheaper to see than the rest.
    #[inline]
    fn is_named(&self, field: Field, name: &[u8]) -> bool {
        if field.name_len as usize != name.len() {
            return false;
        }
        let stored = &self.arena[field.name()];
        let first = |text: &[u8]| text.first().map(|b| b | 0x20);
        first(stored) == first(name) && same(stored, name)
    }

    fn find(&self, name: &[u8], from: usize) -> Option<usize> {
        let known_name = StandardHeader::of(name);
        if known_name != StandardHeader::Other {
            if self.known_names & known_name.bit() == 0 {
                return None;
            }
            return self.fields[from..].iter().position(|f| f.known_name == known_name).map(|i| i + from);
        }
        let found =
            self.fields[from..].iter().position(|f| f.known_name == known_name && self.is_named(*f, name));
        found.map(|i| i + from)
    }

    fn remove(&mut self, name: &[u8], from: usize) -> bool {
        let mut removed = false;
        let mut next = from;
        while let Some(i) = self.find(name, next) {
            let old = self.fields.remove(i);
            self.garbage += old.line().len();
            removed = true;
            next = i;
        }
        removed
    }

    fn store(&mut self, name: &[u8], value: &[u8]) -> Field {
        let at = self.arena.len() as u32;
        self.arena.reserve(name.len() + value.len() + 4);
        self.arena.extend_from_slice(name);
        self.arena.extend_from_slice(b": ");
        self.arena.extend_from_slice(value);
        self.arena.extend_from_slice(b"\r\n");
        let known_name = StandardHeader::of(name);
        self.known_names |= known_name.bit();
        let sound = unsound(name, value).is_none();
        Field { at, name_len: name.len() as u32, value_len: value.len() as u32, known_name, sound }
    }

    /// Rewrites the arena when most of it is garbage: a flow that sets a header in a loop stays bounded.
    fn compact(&mut self) {
        if self.garbage < 4096 || self.garbage * 2 < self.arena.len() {
            return;
        }
        let old = std::mem::take(&mut self.arena);
        for field in &mut self.fields {
            let line = field.line();
            field.at = self.arena.len() as u32;
            self.arena.extend_from_slice(&old[line]);
        }
        self.garbage = 0;
    }

    fn clear(&mut self) {
        self.arena.clear();
        self.fields.clear();
        self.garbage = 0;
        self.odd.clear();
        self.known_names = 0;
    }
}

/// What would end the line of such a field.
fn unsound(name: &[u8], value: &[u8]) -> Option<&'static str> {
    if name.is_empty() || !name.iter().copied().all(is_token_byte) {
        return Some("invalid header name");
    }
    if memchr::memchr3(b'\r', b'\n', 0, value).is_some() {
        return Some("line break or NUL in a header value");
    }
    None
}

/// `tchar` of RFC 9110, 5.6.2: what names of fields and methods consist of.
#[inline]
pub fn is_token_byte(b: u8) -> bool {
    const TABLE: [bool; 256] = {
        let mut table = [false; 256];
        let mut b = 0;
        while b < 128 {
            table[b] = (b as u8).is_ascii_alphanumeric();
            b += 1;
        }
        let marks = b"!#$%&'*+-.^_`|~";
        let mut i = 0;
        while i < marks.len() {
            table[marks[i] as usize] = true;
            i += 1;
        }
        table
    };
    TABLE[b as usize]
}

impl Headers {
    /// No fields. Takes storage from the thread's free list.
    pub fn new() -> Headers {
        Headers(FREE.try_with(|free| free.borrow_mut().pop()).ok().flatten())
    }

    fn fields(&self) -> &Fields {
        self.0.as_deref().unwrap_or(&NOTHING)
    }

    fn fields_mut(&mut self) -> &mut Fields {
        self.0.get_or_insert_default()
    }

    /// Number of fields, repeated names counted each time.
    pub fn len(&self) -> usize {
        self.fields().fields.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields().fields.is_empty()
    }

    /// Removes all fields and keeps the storage.
    pub fn clear(&mut self) {
        if let Some(fields) = &mut self.0 {
            fields.clear();
        }
    }

    /// The value of the first field of that name, if it is UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.get_bytes(name)?).ok()
    }

    /// As [`Headers::get`]; an absent field costs nothing.
    #[inline]
    pub fn get_known(&self, name: StandardHeader) -> Option<&str> {
        std::str::from_utf8(self.get_known_bytes(name)?).ok()
    }

    /// As [`Headers::get_bytes`]; an absent field costs nothing.
    #[inline]
    pub fn get_known_bytes(&self, name: StandardHeader) -> Option<&[u8]> {
        if !self.has_any(name.bit()) {
            return None;
        }
        let list = self.fields();
        let field = list.fields.iter().find(|f| f.known_name == name)?;
        Some(&list.arena[field.value()])
    }

    /// Whether one of these may be there, as bits of [`StandardHeader`]; if not, it is not there.
    #[inline]
    pub fn has_any(&self, names: u32) -> bool {
        self.fields().known_names & names != 0
    }

    /// The value of the first field of that name.
    pub fn get_bytes(&self, name: &str) -> Option<&[u8]> {
        let list = self.fields();
        list.find(name.as_bytes(), 0).map(|i| &list.arena[list.fields[i].value()])
    }

    /// The values of all fields of that name, in order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        let (list, name) = (self.fields(), name.as_bytes());
        list.fields.iter().filter(move |f| list.is_named(**f, name)).map(|f| &list.arena[f.value()])
    }

    /// Whether a field of that name exists.
    pub fn contains(&self, name: &str) -> bool {
        self.fields().find(name.as_bytes(), 0).is_some()
    }

    /// As [`Headers::contains`]; an absent field costs nothing.
    #[inline]
    pub fn contains_known(&self, name: StandardHeader) -> bool {
        self.has_any(name.bit()) && self.fields().fields.iter().any(|f| f.known_name == name)
    }

    /// Name and value of every field, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> + '_ {
        let list = self.fields();
        list.fields.iter().map(|f| {
            // Names come in as &str; a failed check could only mean a bug above, never bad input.
            (std::str::from_utf8(&list.arena[f.name()]).unwrap_or_default(), &list.arena[f.value()])
        })
    }

    /// At least the bytes of all lines: what a writer should have room for.
    pub fn size_hint(&self) -> usize {
        self.fields().arena.len()
    }

    /// Writes the lines of all fields but those in `without` (bits of [`StandardHeader`]), and of those only the ones for which
    /// `keep` holds, if it is given; neighbours with one copy.
    ///
    /// # Errors
    /// A name or a value would break out of its line.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        without: u32,
        keep: Option<&dyn Fn(Line<'_>) -> bool>,
    ) -> Result<(), &'static str> {
        let list = self.fields();
        out.reserve(self.size_hint());
        let mut run = 0..0;
        for &field in &list.fields {
            if field.known_name.bit() & without != 0 || keep.is_some_and(|keep| !keep(list.line(field))) {
                continue;
            }
            if !field.sound {
                let line = list.line(field);
                return Err(unsound(line.name, line.value).unwrap_or("invalid header"));
            }
            let line = field.line();
            if line.start != run.end {
                out.extend_from_slice(&list.arena[run]);
                run = line;
            } else {
                run.end = line.end;
            }
        }
        out.extend_from_slice(&list.arena[run]);
        Ok(())
    }

    /// Adds a field that is known to be sound, of a name that is `known_name`; `line` is `name: value CR LF`.
    pub fn append_line(&mut self, name: &'static str, known_name: StandardHeader, line: &'static str) {
        debug_assert!(line.starts_with(name) && line.ends_with("\r\n"), "{line}");
        debug_assert!(StandardHeader::of(name.as_bytes()) == known_name, "{line}");
        let list = self.fields_mut();
        let at = list.arena.len() as u32;
        list.arena.extend_from_slice(line.as_bytes());
        list.known_names |= known_name.bit();
        let value_len = line.len().saturating_sub(name.len() + 4) as u32;
        list.fields.push(Field { at, name_len: name.len() as u32, value_len, known_name, sound: true });
    }

    /// Adds a field that is known to be sound, of a name that is `known_name`.
    pub fn append_sound(&mut self, name: &str, known_name: StandardHeader, value: &[u8]) {
        debug_assert!(
            unsound(name.as_bytes(), value).is_none() && StandardHeader::of(name.as_bytes()) == known_name
        );
        let list = self.fields_mut();
        let at = list.arena.len() as u32;
        list.arena.reserve(name.len() + value.len() + 4);
        list.arena.extend_from_slice(name.as_bytes());
        list.arena.extend_from_slice(b": ");
        list.arena.extend_from_slice(value);
        list.arena.extend_from_slice(b"\r\n");
        list.known_names |= known_name.bit();
        let (name_len, value_len) = (name.len() as u32, value.len() as u32);
        list.fields.push(Field { at, name_len, value_len, known_name, sound: true });
    }

    /// Adds a field at the end.
    pub fn append(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let list = self.fields_mut();
        let field = list.store(name.as_bytes(), value.as_ref());
        list.fields.push(field);
    }

    /// Makes this the only field of that name. It takes the place of the first one that was there.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let list = self.fields_mut();
        let Some(first) = list.find(name.as_bytes(), 0) else { return self.append(name, value) };
        let field = list.store(name.as_bytes(), value.as_ref());
        let old = std::mem::replace(&mut list.fields[first], field);
        list.garbage += old.line().len();
        list.remove(name.as_bytes(), first + 1);
        list.compact();
    }

    /// Removes every field of that name; says whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(list) = &mut self.0 else { return false };
        let removed = list.remove(name.as_bytes(), 0);
        if removed {
            list.compact();
        }
        removed
    }

    /// Keeps the fields for which `keep(name, value)` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &[u8]) -> bool) {
        let Some(list) = &mut self.0 else { return };
        let (arena, garbage) = (&list.arena, &mut list.garbage);
        list.fields.retain(|&field| {
            let name = std::str::from_utf8(&arena[field.name()]).unwrap_or_default();
            let kept = keep(name, &arena[field.value()]);
            if !kept {
                *garbage += field.line().len();
            }
            kept
        });
        list.compact();
    }

    /// Removes the fields of these names (bits of [`StandardHeader`]) but those for which `keep(name)` holds.
    pub fn remove_known(&mut self, names: u32, keep: impl Fn(&[u8]) -> bool) {
        let Some(list) = &mut self.0 else { return };
        if list.known_names & names == 0 {
            return;
        }
        // By hand, where `retain` costs as much as reading a head.
        let mut kept = 0;
        for at in 0..list.fields.len() {
            let field = list.fields[at];
            if field.known_name.bit() & names == 0 || keep(&list.arena[field.name()]) {
                list.fields[kept] = field;
                kept += 1;
            } else {
                list.garbage += field.line().len();
            }
        }
        list.fields.truncate(kept);
        list.compact();
    }

    /// Adds a field of a head that is being read from the wire, in places of that head. There must be no other ones.
    ///
    /// The caller vouches for it: the name is a token, the value has no CR, LF or NUL.
    #[inline]
    pub fn push_wire(&mut self, field: WireField) {
        let list = self.fields_mut();
        let WireField { at, name_len, value_at, value_len, known: known_name, plain } = field;
        list.known_names |= known_name.bit();
        if !plain {
            list.odd.push((list.fields.len() as u32, value_at));
        }
        list.fields.push(Field { at, name_len, value_len, known_name, sound: true });
    }

    /// The whole head is read: takes it over with one copy.
    pub fn take_wire(&mut self, head: &[u8]) {
        let list = self.fields_mut();
        list.arena.extend_from_slice(head);
        for (index, value_at) in std::mem::take(&mut list.odd) {
            let field = list.fields[index as usize];
            let value = value_at as usize..(value_at + field.value_len) as usize;
            list.fields[index as usize] = list.store(&head[field.name()], &head[value]);
        }
    }
}

/// Where in a head that came from the wire a field is.
#[derive(Clone, Copy, Debug)]
pub struct WireField {
    /// Where its name begins.
    pub at: u32,
    /// Length of the name.
    pub name_len: u32,
    /// Where its value begins; a colon and any white space are between them.
    pub value_at: u32,
    /// Length of the value.
    pub value_len: u32,
    /// What the name is.
    pub known: StandardHeader,
    /// Exactly a colon and a space are between name and value, and the line end is behind it.
    pub plain: bool,
}

impl Clone for Headers {
    fn clone(&self) -> Headers {
        let Some(list) = &self.0 else { return Headers(None) };
        let mut copy = Headers::new();
        let fields = copy.fields_mut();
        fields.arena.extend_from_slice(&list.arena);
        fields.fields.extend_from_slice(&list.fields);
        fields.garbage = list.garbage;
        fields.known_names = list.known_names;
        copy
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(n, v)| (n, String::from_utf8_lossy(v)))).finish()
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in fields {
            headers.append(name.as_ref(), value);
        }
        headers
    }
}

/// Storage of dropped headers. At most this many per thread, none larger than `KEEP_BYTES`.
const KEEP: usize = 256;
const KEEP_BYTES: usize = 16 * 1024;

/// In boxes: they come from headers and go into headers as they are.
#[allow(clippy::vec_box)]
type Free = Vec<Box<Fields>>;

thread_local! {
    static FREE: RefCell<Free> = const { RefCell::new(Vec::new()) };
}

impl Drop for Headers {
    fn drop(&mut self) {
        let Some(mut list) = self.0.take() else { return };
        if list.arena.capacity() == 0 || list.arena.capacity() > KEEP_BYTES {
            return;
        }
        list.clear();
        // Fails only while the thread ends.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < KEEP {
                free.push(list);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(headers: &Headers) -> String {
        headers.iter().map(|(n, v)| format!("{n}={};", String::from_utf8_lossy(v))).collect()
    }

    #[test]
    fn keeps_order_case_and_repeats() {
        let mut h: Headers = [("Host", "a"), ("X-One", "1"), ("x-one", "2"), ("B", "")].into_iter().collect();
        assert_eq!(shown(&h), "Host=a;X-One=1;x-one=2;B=;");
        assert_eq!(h.get("x-ONE"), Some("1"));
        assert_eq!(h.get_all("X-ONE").count(), 2);
        assert_eq!(h.get("nope"), None);
        assert!(h.contains("b"));
        h.set("X-ONE", "3");
        assert_eq!(shown(&h), "Host=a;X-ONE=3;B=;");
        h.set("New", "n");
        assert!(h.remove("host"));
        assert!(!h.remove("host"));
        assert_eq!(shown(&h), "X-ONE=3;B=;New=n;");
        h.retain(|n, _| n != "B");
        assert_eq!(shown(&h.clone()), "X-ONE=3;New=n;");
        h.clear();
        assert!(h.is_empty());
    }

    #[test]
    fn values_are_bytes() {
        let mut h = Headers::new();
        h.append("X", [0xFFu8, b'a']);
        assert_eq!(h.get("x"), None);
        assert_eq!(h.get_bytes("x"), Some(&[0xFF, b'a'][..]));
    }

    /// The fields of a head, found in it.
    fn wire(block: &str, fields: &[(&str, &str)]) -> Vec<WireField> {
        let at = |what: &str| block.find(what).unwrap() as u32;
        fields
            .iter()
            .map(|(name, value)| WireField {
                at: at(&format!("\r\n{name}:")) + 2,
                name_len: name.len() as u32,
                value_at: at(value),
                value_len: value.len() as u32,
                known: StandardHeader::of(name.as_bytes()),
                plain: block.contains(&format!("\r\n{name}: {value}\r\n")),
            })
            .collect()
    }

    fn written(headers: &Headers, without: u32) -> Result<String, &'static str> {
        let mut out = Vec::new();
        headers.write(&mut out, without, None)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_head_from_the_wire_goes_out_as_it_came() {
        let block = "G / H\r\nHost: a\r\nTight:b\r\nWide:  c\r\nTrail: d \r\nX: y\r\nZ: z\r\n\r\n";
        let fields = [("Host", "a"), ("Tight", "b"), ("Wide", "c"), ("Trail", "d"), ("X", "y"), ("Z", "z")];
        let mut h = Headers::new();
        wire(block, &fields).into_iter().for_each(|field| h.push_wire(field));
        h.take_wire(block.as_bytes());
        assert_eq!(shown(&h), "Host=a;Tight=b;Wide=c;Trail=d;X=y;Z=z;");
        let all = "Host: a\r\nTight: b\r\nWide: c\r\nTrail: d\r\nX: y\r\nZ: z\r\n";
        assert_eq!(written(&h, 0).as_deref(), Ok(all));
        assert_eq!(written(&h.clone(), StandardHeader::Host.bit()).as_deref(), Ok(&all[9..]));
        h.append("New", "n");
        h.set("x", "y2");
        h.remove("host");
        assert_eq!(
            written(&h, 0).as_deref(),
            Ok("Tight: b\r\nWide: c\r\nTrail: d\r\nx: y2\r\nZ: z\r\nNew: n\r\n")
        );
        h.set("Z", "b\r\nEvil: 1");
        assert!(written(&h, 0).is_err());
    }

    #[test]
    fn known_names_are_found_by_what_they_are() {
        let mut h: Headers =
            [("HOST", "a"), ("host", "b"), ("Hast", "c"), ("Content-type", "t")].into_iter().collect();
        assert_eq!(
            (h.get_known(StandardHeader::Host), h.get_known(StandardHeader::ContentType)),
            (Some("a"), Some("t"))
        );
        assert!(!h.contains_known(StandardHeader::Date) && h.contains_known(StandardHeader::Host));
        h.remove("Host");
        assert_eq!((h.get_known(StandardHeader::Host), h.get("hast")), (None, Some("c")));
        h.set("content-length", "1");
        assert_eq!(h.get_known(StandardHeader::ContentLength), Some("1"));
        h.clear();
        assert_eq!(h.get_known(StandardHeader::ContentLength), None);
        for name in [
            "te",
            "TRAILER",
            "user-agent",
            "Keep-Alive",
            "transfer-encoding",
            "Proxy-Connection",
            "Proxy-AuTHorization",
            "Proxy-AuTHenticate",
            "hOst",
            "DATE",
            "Server",
            "Accept",
            "Authorization",
            "X-Forwarded-For",
            "SOAPAction",
        ] {
            assert_ne!(StandardHeader::of(name.as_bytes()), StandardHeader::Other, "{name}");
        }
        for name in [
            "",
            "x",
            "xyz",
            "hosu",
            "user_agent",
            "content-lengtH1",
            "Transfer_Encoding",
            "TransferXEncoding",
            "content-lengtj",
            "content\rlength",
            "proxy-auXXorization",
            "proxy-auXXenticate",
            "if-unmodified-since",
        ] {
            assert_eq!(StandardHeader::of(name.as_bytes()), StandardHeader::Other, "{name}");
        }
    }

    #[test]
    fn nothing_can_break_out_of_a_field() {
        for (name, value) in
            [("A B", "x"), ("", "x"), ("A:", "x"), ("A", "x\r\nB: y"), ("A", "x\ny"), ("A", "\0")]
        {
            let headers: Headers = [("Good", "g"), (name, value)].into_iter().collect();
            assert!(written(&headers, 0).is_err(), "{name:?} {value:?}");
        }
    }

    #[test]
    fn setting_in_a_loop_stays_bounded() {
        let mut h: Headers = [("A", "1"), ("Keep", "k")].into_iter().collect();
        for i in 0..10_000 {
            h.set("a", format!("{i:0100}"));
        }
        assert!(h.fields().arena.len() < 16 * 1024);
        assert_eq!(h.get("keep"), Some("k"));
        assert!(h.get("A").unwrap().ends_with("9999"));
    }
}
