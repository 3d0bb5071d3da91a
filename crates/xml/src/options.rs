//! Options of parsing.

use crate::Limits;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of parsing. The default is for messages: no DTD, default limits, no positions.
#[derive(Clone, Debug, Default)]
pub struct ParseOptions {
    /// Bounds on the document.
    pub limits: Limits,
    /// Which parts of a document type declaration are read.
    pub dtd: Dtd,
    /// Keep the source spans of elements and attributes ([`crate::Document::position`]).
    pub positions: bool,
    /// Keep where elements begin and end, so that parts of the document can be written unchanged
    /// ([`crate::write_part`]). Default `false`.
    pub extents: bool,
    /// The encoding known from outside (the `charset` of a content type). It takes precedence over the
    /// encoding declaration, but not over a byte order mark.
    pub charset: Option<String>,
    /// The base URI of the document, for system identifiers.
    pub base_uri: Option<String>,
    /// Whether whitespace-only text is left out, element by element. `xml:space="preserve"` takes precedence.
    pub strip_space: Option<StripSpace>,
}

impl ParseOptions {
    /// Options for trusted documents: wide limits and positions, still no DTD.
    pub fn trusted() -> ParseOptions {
        ParseOptions { limits: Limits::trusted(), positions: true, ..ParseOptions::default() }
    }

    /// Options for what a configuration consists of (artifacts, stylesheets, entries): as [`ParseOptions::trusted`], with
    /// [`Dtd::Complete`]. Entities may add 4 MiB.
    pub fn configuration() -> ParseOptions {
        let limits = Limits { entity_expansion: 4 << 20, ..Limits::trusted() };
        ParseOptions { limits, dtd: Dtd::Complete, ..ParseOptions::trusted() }
    }
}

/// Which parts of a document type declaration are read.
#[derive(Clone, Debug, Default)]
pub enum Dtd {
    /// A document type declaration is an error. The default, and what messages get.
    #[default]
    Refuse,
    /// The internal subset is read (entities, attribute defaults, ID attributes); nothing external is.
    Internal,
    /// As [`Dtd::Internal`], but a reference to an entity that is declared or kept outside of the document is an error: nothing is
    /// missing without a word.
    Complete,
    /// The internal and the external subset and external entities are read through the resolver.
    External(Arc<dyn Resolver>),
}

/// Finds external entities.
pub trait Resolver: Send + Sync {
    /// The bytes of `system_id` as written, relative to `base`, and its own base URI.
    fn resolve(
        &self,
        system_id: &str,
        public_id: Option<&str>,
        base: Option<&str>,
    ) -> Result<(Vec<u8>, String), String>;
}

impl fmt::Debug for dyn Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

/// Reads local files: paths and `file:` URIs, relative to the base; never the network.
#[derive(Clone, Debug, Default)]
pub struct FileResolver {
    /// Files must lie below this directory. `None`: anywhere.
    pub root: Option<PathBuf>,
}

impl Resolver for FileResolver {
    fn resolve(
        &self,
        system_id: &str,
        _: Option<&str>,
        base: Option<&str>,
    ) -> Result<(Vec<u8>, String), String> {
        let path = local_path(system_id).ok_or_else(|| format!("`{system_id}` is not a local file"))?;
        let base = base.and_then(local_path).unwrap_or_default();
        let path = base.parent().unwrap_or(Path::new("")).join(path);
        if let Some(root) = &self.root {
            let inside = match (path.canonicalize(), root.canonicalize()) {
                (Ok(path), Ok(root)) => path.starts_with(root),
                _ => false,
            };
            if !inside {
                return Err(format!("`{system_id}` is not below `{}`", root.display()));
            }
        }
        match std::fs::read(&path) {
            Ok(bytes) => Ok((bytes, path.to_string_lossy().into_owned())),
            Err(e) => Err(format!("`{}`: {e}", path.display())),
        }
    }
}

/// The local path of a system identifier: `file:///a`, `file:/a`, `file://localhost/a` or a path; not other schemes.
fn local_path(uri: &str) -> Option<PathBuf> {
    if let Some(rest) = uri.strip_prefix("file:") {
        let path = rest.strip_prefix("//localhost").or_else(|| rest.strip_prefix("//")).unwrap_or(rest);
        return Some(PathBuf::from(percent_decode(path)));
    }
    let scheme = uri.find(':').map(|i| &uri[..i]);
    if scheme
        .is_some_and(|s| s.len() > 1 && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)))
    {
        return None;
    }
    Some(PathBuf::from(percent_decode(uri)))
}

fn percent_decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        let hex = bytes.as_slice_pair();
        match (b, hex) {
            (b'%', Some(value)) => {
                out.push(value);
                bytes.next();
                bytes.next();
            }
            _ => out.push(b),
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

trait HexPair {
    fn as_slice_pair(&self) -> Option<u8>;
}

impl HexPair for std::str::Bytes<'_> {
    fn as_slice_pair(&self) -> Option<u8> {
        let mut ahead = self.clone();
        let high = (ahead.next()? as char).to_digit(16)?;
        let low = (ahead.next()? as char).to_digit(16)?;
        Some((high * 16 + low) as u8)
    }
}

/// Decides by (namespace URI, local name) of the parent element whether whitespace-only text is left out.
#[derive(Clone)]
pub struct StripSpace(pub Arc<StripRule>);

/// The rule of [`StripSpace`].
pub type StripRule = dyn Fn(&str, &str) -> bool + Send + Sync;

impl fmt::Debug for StripSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StripSpace")
    }
}
