//! Header fields of a message: ordered, written as received, found whatever their case.
//!
//! All names and values lie in one byte arena; a field is a pair of spans into it. A head read from
//! the wire is taken over with one copy. Dropped storage goes to a small free list of its thread, so
//! that in the steady state a message head allocates nothing.

use std::cell::RefCell;
use std::fmt;

/// An ordered list of header fields.
///
/// Names keep the case they were given and are compared without regard to ASCII case; a name may
/// occur more than once. Values are bytes: HTTP allows octets above 0x7F in them.
#[derive(Default)]
pub struct Headers {
    arena: Vec<u8>,
    fields: Vec<Field>,
    /// Arena bytes no field refers to any more.
    garbage: usize,
    /// The arena begins with this many bytes of the head as it came from the wire.
    wire: usize,
}

/// A field on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// The whole line `name: value CR LF`, if the field stands exactly so in the head that came from the wire
    /// (see [`Headers::load`]): it was checked there and can go out with one copy.
    pub whole: Option<&'a [u8]>,
}

#[derive(Clone, Copy)]
struct Field {
    name_at: u32,
    name_len: u32,
    value_at: u32,
    value_len: u32,
}

impl Headers {
    /// No fields. Takes storage from the thread's free list.
    pub fn new() -> Headers {
        FREE.try_with(|free| free.borrow_mut().pop()).ok().flatten().map_or_else(Headers::default, |s| {
            Headers { arena: s.arena, fields: s.fields, garbage: 0, wire: 0 }
        })
    }

    /// Number of fields, repeated names counted each time.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Removes all fields and keeps the storage.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.fields.clear();
        self.garbage = 0;
        self.wire = 0;
    }

    /// The value of the first field of that name, if it is UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.get_bytes(name)?).ok()
    }

    /// The value of the first field of that name.
    pub fn get_bytes(&self, name: &str) -> Option<&[u8]> {
        self.find(name.as_bytes(), 0).map(|i| self.value(self.fields[i]))
    }

    /// The values of all fields of that name, in order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        let name = name.as_bytes();
        self.fields.iter().filter(move |f| self.is_named(**f, name)).map(|f| self.value(*f))
    }

    /// Whether a field of that name exists.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name.as_bytes(), 0).is_some()
    }

    /// Name and value of every field, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> + '_ {
        self.fields.iter().map(|f| (self.name(*f), self.value(*f)))
    }

    /// As [`Headers::iter`], for a writer: names as bytes, and lines that came from the wire as they came.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Line<'_>> + '_ {
        self.fields.iter().map(|f| {
            let (name, value) = (self.name_bytes(*f), self.value(*f));
            let (name_end, value_end) =
                ((f.name_at + f.name_len) as usize, (f.value_at + f.value_len) as usize);
            let stands = value_end + 2 <= self.wire
                && f.value_at as usize == name_end + 2
                && self.arena[name_end..name_end + 2] == *b": "
                && self.arena[value_end..value_end + 2] == *b"\r\n";
            let whole = stands.then(|| &self.arena[f.name_at as usize..value_end + 2]);
            Line { name, value, whole }
        })
    }

    /// Bytes of all names and values, and a little more: what a writer should have room for.
    pub fn size_hint(&self) -> usize {
        self.arena.len() + 4 * self.fields.len()
    }

    /// Adds a field at the end.
    pub fn append(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let field = self.store(name, value.as_ref());
        self.fields.push(field);
    }

    /// Makes this the only field of that name. It takes the place of the first one that was there.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let Some(first) = self.find(name.as_bytes(), 0) else { return self.append(name, value) };
        let field = self.store(name, value.as_ref());
        let old = std::mem::replace(&mut self.fields[first], field);
        self.garbage += (old.name_len + old.value_len) as usize;
        self.remove_from(name.as_bytes(), first + 1);
        self.compact();
    }

    /// Removes every field of that name; says whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let removed = self.remove_from(name.as_bytes(), 0);
        self.compact();
        removed
    }

    /// Keeps the fields for which `keep(name, value)` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &[u8]) -> bool) {
        self.retain_bytes(|name, value| keep(std::str::from_utf8(name).unwrap_or_default(), value));
    }

    /// As [`Headers::retain`], with names as bytes.
    pub fn retain_bytes(&mut self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.retain(|f| {
            let kept = keep(self.name_bytes(*f), self.value(*f));
            if !kept {
                self.garbage += (f.name_len + f.value_len) as usize;
            }
            kept
        });
        self.fields = fields;
        self.compact();
    }

    /// Takes over a head as it came from the wire: `block` is copied once, each field must be a pair
    /// of slices of it (a slice from elsewhere is appended). Replaces what was there.
    ///
    /// The caller vouches for the fields in `block`: names are tokens, values have no CR, LF or NUL.
    pub fn load<'a>(&mut self, block: &'a [u8], fields: impl Iterator<Item = (&'a str, &'a [u8])>) {
        self.clear();
        self.arena.extend_from_slice(block);
        self.wire = block.len();
        let base = block.as_ptr() as usize;
        let within = |part: &[u8]| {
            let at = (part.as_ptr() as usize).wrapping_sub(base);
            (at <= block.len() && part.len() <= block.len() - at).then_some(at as u32)
        };
        for (name, value) in fields {
            let field = match (within(name.as_bytes()), within(value)) {
                (Some(name_at), Some(value_at)) => {
                    Field { name_at, name_len: name.len() as u32, value_at, value_len: value.len() as u32 }
                }
                _ => self.store(name, value),
            };
            self.fields.push(field);
        }
    }

    fn name(&self, field: Field) -> &str {
        // Names come in as &str; a failed check could only mean a bug above, never bad input.
        std::str::from_utf8(self.name_bytes(field)).unwrap_or_default()
    }

    fn name_bytes(&self, field: Field) -> &[u8] {
        &self.arena[field.name_at as usize..(field.name_at + field.name_len) as usize]
    }

    fn value(&self, field: Field) -> &[u8] {
        &self.arena[field.value_at as usize..(field.value_at + field.value_len) as usize]
    }

    /// Most names differ in length or in the first letter, which is cheaper to see than the rest.
    #[inline]
    fn is_named(&self, field: Field, name: &[u8]) -> bool {
        if field.name_len as usize != name.len() {
            return false;
        }
        let own = self.name_bytes(field);
        let first = |text: &[u8]| text.first().map(|b| b | 0x20);
        first(own) == first(name) && own.eq_ignore_ascii_case(name)
    }

    fn find(&self, name: &[u8], from: usize) -> Option<usize> {
        self.fields[from..].iter().position(|f| self.is_named(*f, name)).map(|i| i + from)
    }

    fn remove_from(&mut self, name: &[u8], from: usize) -> bool {
        let mut removed = false;
        let mut next = from;
        while let Some(i) = self.find(name, next) {
            let old = self.fields.remove(i);
            self.garbage += (old.name_len + old.value_len) as usize;
            removed = true;
            next = i;
        }
        removed
    }

    fn store(&mut self, name: &str, value: &[u8]) -> Field {
        let name_at = self.arena.len() as u32;
        self.arena.extend_from_slice(name.as_bytes());
        let value_at = self.arena.len() as u32;
        self.arena.extend_from_slice(value);
        Field { name_at, name_len: name.len() as u32, value_at, value_len: value.len() as u32 }
    }

    /// Rewrites the arena when most of it is garbage: a flow that sets a header in a loop stays bounded.
    fn compact(&mut self) {
        if self.garbage < 4096 || self.garbage * 2 < self.arena.len() {
            return;
        }
        self.wire = 0;
        let old = std::mem::take(&mut self.arena);
        let part = |at: u32, len: u32| &old[at as usize..(at + len) as usize];
        for field in &mut self.fields {
            let (name, value) = (part(field.name_at, field.name_len), part(field.value_at, field.value_len));
            field.name_at = self.arena.len() as u32;
            self.arena.extend_from_slice(name);
            field.value_at = self.arena.len() as u32;
            self.arena.extend_from_slice(value);
        }
        self.garbage = 0;
    }
}

impl Clone for Headers {
    fn clone(&self) -> Headers {
        let mut copy = Headers::new();
        copy.arena.extend_from_slice(&self.arena);
        copy.fields.extend_from_slice(&self.fields);
        copy.garbage = self.garbage;
        copy.wire = self.wire;
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

struct Storage {
    arena: Vec<u8>,
    fields: Vec<Field>,
}

thread_local! {
    static FREE: RefCell<Vec<Storage>> = const { RefCell::new(Vec::new()) };
}

impl Drop for Headers {
    fn drop(&mut self) {
        if self.arena.capacity() == 0 || self.arena.capacity() > KEEP_BYTES {
            return;
        }
        let (mut arena, mut fields) = (std::mem::take(&mut self.arena), std::mem::take(&mut self.fields));
        arena.clear();
        fields.clear();
        // Fails only while the thread ends.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < KEEP {
                free.push(Storage { arena, fields });
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

    #[test]
    fn loads_a_wire_block_with_one_copy() {
        let block = b"Host: a\r\nX: y\r\n\r\n";
        let text = std::str::from_utf8(block).unwrap();
        let mut h: Headers = [("old", "gone")].into_iter().collect();
        h.load(
            block,
            [(&text[0..4], &block[6..7]), (&text[9..10], &block[12..13]), ("else", &b"where"[..])]
                .into_iter(),
        );
        assert_eq!(shown(&h), "Host=a;X=y;else=where;");
    }

    #[test]
    fn only_lines_as_they_came_go_out_whole() {
        let block = b"G / H\r\nHost: a\r\nTight:b\r\nWide:  c\r\nTrail: d \r\nX: y\r\n\r\n";
        let text = std::str::from_utf8(block).unwrap();
        let part = |what: &str| text.find(what).unwrap();
        let field = |name: &'static str, value: &str| {
            let (n, v) = (part(&format!("\r\n{name}:")) + 2, part(value));
            (&text[n..n + name.len()], &block[v..v + value.len()])
        };
        let mut h = Headers::new();
        let mut fields = vec![field("Host", "a"), field("Tight", "b"), field("Wide", "c"), field("X", "y")];
        fields.insert(3, field("Trail", "d"));
        fields.push(("else", &b"where"[..]));
        h.load(block, fields.into_iter());
        h.append("New", "n");
        let whole = |h: &Headers| -> Vec<String> {
            h.lines().filter_map(|l| l.whole).map(|l| String::from_utf8_lossy(l).into_owned()).collect()
        };
        assert_eq!(whole(&h), ["Host: a\r\n", "X: y\r\n"]);
        assert_eq!(whole(&h.clone()), ["Host: a\r\n", "X: y\r\n"]);
        h.set("host", "b\r\nEvil: 1");
        assert_eq!(whole(&h), ["X: y\r\n"]);
        h.remove("x");
        assert_eq!(h.lines().map(|l| l.name.len()).sum::<usize>(), "hostTightWideTrailelseNew".len());
        let mut reused = h;
        reused.clear();
        reused.append("A", "b");
        assert!(whole(&reused).is_empty());
        // Rewriting the arena ends it.
        reused.load(block, [field("X", "y")].into_iter());
        for i in 0..100 {
            reused.set("long", format!("{i:0200}"));
        }
        assert!(whole(&reused).is_empty());
        assert_eq!(reused.get("x"), Some("y"));
    }

    #[test]
    fn setting_in_a_loop_stays_bounded() {
        let mut h: Headers = [("A", "1"), ("Keep", "k")].into_iter().collect();
        for i in 0..10_000 {
            h.set("a", format!("{i:0100}"));
        }
        assert!(h.arena.len() < 16 * 1024);
        assert_eq!(h.get("keep"), Some("k"));
        assert!(h.get("A").unwrap().ends_with("9999"));
    }
}
