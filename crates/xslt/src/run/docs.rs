//! The documents of one transformation: the source, what `document()` loaded, result tree fragments. Documents are only
//! ever added, so references to them stay valid while expressions run.

use crate::names::{Name, Names};
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use xml::{Document, NameId, NodeId};
use xpath::{BoundNames, DocId};

/// Where a document beside the source comes from.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Origin {
    /// Read from its URI.
    Read,
    /// Made of a text (`parse-xml()`, `json-to-xml()`): it has a base URI only.
    Parsed,
    /// A result tree fragment.
    Fragment,
}

/// A document beside the source.
pub(super) struct Entry<'a> {
    doc: OnceLock<Box<Document>>,
    /// Of a fragment that is only text: `doc` is made when its nodes are used.
    text: Option<String>,
    /// Its URI; for a fragment that of the stylesheet.
    pub uri: Cow<'a, str>,
    origin: Origin,
    bound: OnceLock<Arc<Bound>>,
}

impl Entry<'_> {
    #[inline]
    fn doc(&self) -> &Document {
        self.doc.get_or_init(|| Box::new(Document::of_text(self.text.clone().unwrap_or_default())))
    }
}

/// The names of the stylesheet as one document numbers them.
pub(super) struct Bound {
    pub pool: BoundNames,
    /// By the document's number of a name.
    names: Vec<Name>,
    /// By [`Name`].
    ids: Vec<Option<NameId>>,
    /// No name is in a namespace.
    plain: bool,
}

/// The last bindings of this thread: which stylesheet, which names of documents. Messages of one kind follow one another,
/// and documents inherit their names from those before them, so that binding is rare.
const REMEMBERED: usize = 16;

struct Remembered {
    sheet: u64,
    stamp: (u64, usize),
    bound: Arc<Bound>,
}

thread_local! {
    static REMEMBER: RefCell<Vec<Remembered>> = const { RefCell::new(Vec::new()) };
}

impl Bound {
    /// The names of the stylesheet with number `sheet` in `doc`.
    fn of(doc: &Document, sheet: u64, pool: &[(Box<str>, Box<str>)], names: &Names) -> Arc<Bound> {
        let stamp = doc.name_stamp();
        let bound = REMEMBER.with_borrow_mut(|list| {
            let at = list.iter().position(|r| r.sheet == sheet && r.stamp.0 == stamp.0)?;
            if list[at].stamp != stamp {
                list.swap_remove(at);
                return None;
            }
            Some(list[at].bound.clone())
        });
        bound.unwrap_or_else(|| {
            let bound = Arc::new(Bound::new(doc, pool, names));
            REMEMBER.with_borrow_mut(|list| {
                if list.len() >= REMEMBERED {
                    list.remove(0);
                }
                list.push(Remembered { sheet, stamp, bound: bound.clone() });
            });
            bound
        })
    }

    fn new(doc: &Document, pool: &[(Box<str>, Box<str>)], names: &Names) -> Bound {
        let mut table = vec![Name::NONE; doc.name_count()];
        let mut ids = Vec::with_capacity(names.len());
        for (name, namespace, local) in names.iter() {
            let id = doc.find_name(namespace, local);
            ids.push(id);
            if let Some(slot) = id.and_then(|id| table.get_mut(id.index())) {
                *slot = name;
            }
        }
        Bound { pool: BoundNames::bind(pool, doc), names: table, ids, plain: doc.names_are_plain() }
    }

    /// Whether no element of the document has namespaces in scope.
    #[inline]
    pub fn is_plain(&self, doc: &Document) -> bool {
        doc.declares_nothing() && (self.plain || doc.is_as_read())
    }

    /// The document's number of a name; `None`: it has no such name.
    pub fn id(&self, name: Name) -> Option<NameId> {
        self.ids.get(name.0 as usize).copied().flatten()
    }

    /// The stylesheet's number of a node's name.
    #[inline]
    pub fn name_of(&self, doc: &Document, node: NodeId) -> Name {
        let name = doc.name_id(node).and_then(|name| self.names.get(name.index()));
        name.copied().unwrap_or(Name::NONE)
    }
}

const FIRST: usize = 16;
const CHUNKS: usize = 26;

/// All documents. The source has number 0.
pub(super) struct Docs<'a> {
    source: &'a Document,
    source_uri: &'a str,
    source_bound: Arc<Bound>,
    sheet: u64,
    pool: &'a [(Box<str>, Box<str>)],
    names: &'a Names,
    chunks: [OnceLock<Box<[OnceLock<Entry<'a>>]>>; CHUNKS],
    len: AtomicUsize,
}

impl<'a> Docs<'a> {
    pub fn new(
        source: &'a Document,
        source_uri: &'a str,
        sheet: u64,
        pool: &'a [(Box<str>, Box<str>)],
        names: &'a Names,
    ) -> Docs<'a> {
        Docs {
            source,
            source_uri,
            source_bound: Bound::of(source, sheet, pool, names),
            sheet,
            pool,
            names,
            chunks: [const { OnceLock::new() }; CHUNKS],
            len: AtomicUsize::new(0),
        }
    }

    /// The names of all expressions.
    pub fn pool(&self) -> &'a [(Box<str>, Box<str>)] {
        self.pool
    }

    /// Adds a document. `None`: there are too many.
    pub fn add(&self, doc: Document, uri: Cow<'a, str>, origin: Origin) -> Option<DocId> {
        let entry =
            Entry { doc: OnceLock::from(Box::new(doc)), text: None, uri, origin, bound: OnceLock::new() };
        self.add_entry(entry)
    }

    /// Adds a fragment that is only text.
    pub fn add_text(&self, text: String, uri: &'a str) -> Option<DocId> {
        let (uri, text) = (Cow::Borrowed(uri), Some(text));
        self.add_entry(Entry {
            doc: OnceLock::new(),
            text,
            uri,
            origin: Origin::Fragment,
            bound: OnceLock::new(),
        })
    }

    fn add_entry(&self, entry: Entry<'a>) -> Option<DocId> {
        let index = self.len.fetch_add(1, Ordering::Relaxed);
        let (chunk, offset) = locate(index);
        let slots =
            self.chunks.get(chunk)?.get_or_init(|| (0..FIRST << chunk).map(|_| OnceLock::new()).collect());
        slots.get(offset)?.set(entry).ok()?;
        u32::try_from(index + 1).ok().map(DocId)
    }

    /// The number of documents beside the source.
    pub fn count(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    fn entry(&self, id: DocId) -> Option<&Entry<'a>> {
        let (chunk, offset) = locate((id.0 as usize).checked_sub(1)?);
        self.chunks.get(chunk)?.get()?.get(offset)?.get()
    }

    #[inline]
    pub fn get(&self, id: DocId) -> Option<&Document> {
        if id.0 == 0 { Some(self.source) } else { self.entry(id).map(Entry::doc) }
    }

    /// The text of a fragment that is only text.
    #[inline]
    pub fn text(&self, id: DocId) -> Option<&str> {
        self.entry(id)?.text.as_deref()
    }

    /// Whether it is a result tree fragment.
    pub fn is_fragment(&self, id: DocId) -> bool {
        self.entry(id).is_some_and(|e| e.origin == Origin::Fragment)
    }

    /// Whether it was read from its URI.
    pub fn is_read(&self, id: DocId) -> bool {
        id.0 == 0 || self.entry(id).is_some_and(|e| e.origin == Origin::Read)
    }

    pub fn uri(&self, id: DocId) -> &str {
        if id.0 == 0 { self.source_uri } else { self.entry(id).map_or("", |e| &e.uri) }
    }

    /// The stylesheet's names in that document; `None` where they are looked up one by one.
    #[inline]
    pub fn bound(&self, id: DocId) -> Option<&Bound> {
        if id.0 == 0 {
            return Some(&self.source_bound);
        }
        let entry = self.entry(id)?;
        // Small and short-lived, with names of their own: those are looked up one by one.
        if entry.origin == Origin::Fragment {
            return None;
        }
        Some(entry.bound.get_or_init(|| Bound::of(entry.doc(), self.sheet, self.pool, self.names)))
    }
}

/// Chunk and offset: chunk `k` holds `FIRST << k` documents.
fn locate(index: usize) -> (usize, usize) {
    let chunk = (index / FIRST + 1).ilog2() as usize;
    (chunk, index - FIRST * ((1 << chunk) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            assert_eq!(locate(index), expected, "{index}");
            expected.1 += 1;
            if expected.1 == FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }
}
