//! `<localEntry>`: XML, text or a file under a key.

use super::Reading;
use crate::element::{Child, Element};
use crate::mounts;
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::{Diagnostic, FileId, SourceMap, Span};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An entry of the local registry.
#[derive(Clone, Debug)]
pub struct LocalEntry {
    /// Its key.
    pub key: Key,
    /// What it holds.
    pub value: Entry,
    /// The file that it was loaded from; imports in it are relative to this one.
    pub origin: Option<PathBuf>,
    /// The documentation.
    pub description: Option<String>,
    /// The whole element.
    pub span: Span,
}

/// The content of a [`LocalEntry`].
#[derive(Clone, Debug)]
pub enum Entry {
    /// XML, written in place.
    Xml(Element),
    /// Trimmed text.
    Text(Arc<str>),
    /// The bytes of a file: XML or anything else.
    File(Arc<[u8]>),
    /// It is on another server, and the configuration was loaded without the network.
    NotFetched,
}

pub(crate) const SHAPE: Shape = Shape { attributes: &["key", "src", "description"], elements: &[] };

impl LocalEntry {
    /// The content as bytes; XML has all namespaces in scope declared.
    pub fn bytes(&self) -> Vec<u8> {
        match &self.value {
            Entry::Xml(element) => element.to_xml_in_scope().into_bytes(),
            Entry::Text(text) => text.as_bytes().to_vec(),
            Entry::File(bytes) => bytes.to_vec(),
            Entry::NotFetched => Vec::new(),
        }
    }

    /// The content as an element, if it is XML. That of a file has spans in `file`.
    pub fn element(&self, file: FileId) -> Option<Element> {
        match &self.value {
            Entry::Xml(element) => Some(element.clone()),
            Entry::Text(_) | Entry::NotFetched => None,
            Entry::File(bytes) => crate::parse::parse(file, &String::from_utf8_lossy(bytes)).ok(),
        }
    }

    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<LocalEntry> {
        SHAPE.check_attributes(element, reading.diagnostics);
        let key = read::required(element, "key", reading.diagnostics)?;
        let (value, origin) = match read::optional(element, "src") {
            Some(src) => source(&key, &src, reading)?,
            None => (inline(element), None),
        };
        Some(LocalEntry {
            key,
            value,
            origin,
            description: super::description(element),
            span: element.span(),
        })
    }
}

/// The first element beside the description, else the text.
fn inline(element: &Element) -> Entry {
    if let Some(xml) = element.elements().find(|child| !child.is("description")) {
        return Entry::Xml(xml.clone());
    }
    let text: String = element
        .children()
        .iter()
        .filter_map(|child| match child {
            Child::Text(text) => Some(&*text.value),
            _ => None,
        })
        .collect();
    Entry::Text(Arc::from(text.trim()))
}

/// The content of a `src`, and the file it came from: a `file:` URL or a path, relative to the configuration's
/// root. Over the network only where the caller supplied the means.
fn source(key: &Key, src: &Key, reading: &mut Reading<'_>) -> Option<(Entry, Option<PathBuf>)> {
    let unreadable = |address: &str, why: String| {
        Diagnostic::error("unreadable-source", format!("`{address}` cannot be read")).at(src.span, why)
    };
    let error = match (file_path(src, reading.root), reading.fetch) {
        _ if mounts::is_prefixed(src) => {
            Diagnostic::error("remote-source", "a local entry is not loaded from the registry")
                .at(src.span, "this is a key of the registry, and `src` an address")
                .help(format!(
                    "write `{}` where the entry `{}` is used, and leave the entry out",
                    src.value, key.value
                ))
        }
        (Some(path), _) => match crate::layout::read(&path) {
            Ok(bytes) => return Some((Entry::File(bytes.into()), Some(path))),
            Err(why) => unreadable(&path.display().to_string(), why),
        },
        (None, Some(fetch)) => match (fetch.once)(src) {
            Ok(bytes) => return Some((Entry::File(bytes.into()), None)),
            Err(why) => unreadable(src, why),
        },
        (None, None) if src.starts_with("http:") || src.starts_with("https:") => {
            reading.diagnostics.push(
                Diagnostic::warning("not-fetched", "the entry is fetched when the bus starts, and not now")
                    .at(src.span, "what is in it is not known here"),
            );
            return Some((Entry::NotFetched, None));
        }
        (None, None) => {
            Diagnostic::error("remote-source", "a local entry cannot be fetched with this scheme")
                .at(src.span, "only http:, https:, file: URLs and paths")
                .help("put a copy beside the configuration and name it: src=\"file:NAME\"")
        }
    };
    reading.diagnostics.push(error);
    None
}

/// The path of a `file:` URL or of a plain path, relative to `root`; `None` for any other URL.
pub(crate) fn file_path(url: &str, root: &Path) -> Option<PathBuf> {
    let path = match url.strip_prefix("file:") {
        // file:relative, file:/absolute, file:///absolute
        Some(rest) => percent_decoded(rest.strip_prefix("//").unwrap_or(rest)),
        // `jar:…`, `classpath:…`: a path that begins with a word and a colon is none.
        None if url.contains("://") || scheme(url).is_some() => return None,
        None => url.to_owned(),
    };
    let path = Path::new(&path);
    let below = root.join(path.strip_prefix("/").unwrap_or(path));
    // An absolute path that does not exist may be meant relative to the configuration.
    Some(if path.is_absolute() && (path.exists() || !below.exists()) { path.to_owned() } else { below })
}

/// The scheme of a URL; a single letter is a drive.
fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    let of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (scheme.len() > 1 && scheme.chars().all(of_scheme)).then_some(scheme)
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let hex = |at: usize| bytes.get(at).and_then(|byte| (*byte as char).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl LocalEntry {
    /// A file id for the content of an entry that came from a file, else the file of the configuration.
    pub fn source(&self, sources: &mut SourceMap) -> FileId {
        match (&self.value, &self.origin) {
            (Entry::File(bytes), Some(path)) => {
                sources.add(path.display().to_string(), String::from_utf8_lossy(bytes))
            }
            _ => self.span.file,
        }
    }
}
