//! The source of included modules and of the documents of `document()`.

use std::path::{Path, PathBuf};

/// A document that was found.
pub struct Resolved {
    /// Its absolute URI: the base of references in it, and its identity.
    pub uri: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Finds documents by reference.
pub trait Resolver: Sync {
    /// The absolute URI of `href`, relative to `base`.
    fn absolute(&self, href: &str, base: &str) -> String {
        join(base, href)
    }
    /// Reads the document `uri` (as [`Resolver::absolute`] gave it). Errors: a message.
    fn read(&self, uri: &str) -> Result<Vec<u8>, String>;
}

/// Finds nothing: for stylesheets that stand alone.
pub struct NoResolver;

impl Resolver for NoResolver {
    fn read(&self, uri: &str) -> Result<Vec<u8>, String> {
        Err(format!("\"{uri}\" may not be read: no documents are allowed here"))
    }
}

/// Reads local files, by path or `file:` URI; never the network.
#[derive(Default)]
pub struct FileResolver {
    /// Only these files, and those below these directories; `None` = any.
    roots: Option<Vec<PathBuf>>,
}

impl FileResolver {
    /// A resolver of these files, and of those below these directories. What does not exist has no files.
    pub fn below<P: AsRef<Path>>(roots: impl IntoIterator<Item = P>) -> FileResolver {
        let found = roots.into_iter().filter_map(|root| root.as_ref().canonicalize().ok());
        FileResolver { roots: Some(found.collect()) }
    }
}

impl Resolver for FileResolver {
    fn read(&self, uri: &str) -> Result<Vec<u8>, String> {
        let path = uri.strip_prefix("file://").or_else(|| uri.strip_prefix("file:")).unwrap_or(uri);
        if has_scheme(path) {
            return Err(format!("\"{uri}\" is not a local file; the network is never used"));
        }
        let path = crate::functions::strings::decode_uri(path);
        let path = Path::new(&path);
        let failed = |e: std::io::Error| format!("cannot read \"{uri}\": {e}");
        let Some(roots) = &self.roots else { return std::fs::read(path).map_err(failed) };
        // What is read is the file that was checked, wherever links lead. Whether there are others is not said.
        let file = path.canonicalize().ok().filter(|file| roots.iter().any(|root| file.starts_with(root)));
        let file = file.ok_or_else(|| {
            format!(
                "\"{uri}\" may not be read: it is not there, or outside of the directories that are allowed"
            )
        })?;
        std::fs::read(file).map_err(failed)
    }
}

/// Whether a reference begins with a URI scheme.
pub fn has_scheme(reference: &str) -> bool {
    match reference.find(':') {
        Some(colon) if colon > 1 => {
            reference.as_bytes()[0].is_ascii_alphabetic()
                && reference[..colon].bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        }
        _ => false,
    }
}

/// A path of the file system as a URI; a URI or a relative path is unchanged.
pub(crate) fn as_uri(uri: &str) -> String {
    if !uri.starts_with('/') {
        return uri.to_owned();
    }
    let mut out = String::from("file://");
    for byte in uri.bytes() {
        match byte {
            b' '
            | b'%'
            | b'#'
            | b'?'
            | b'"'
            | b'<'
            | b'>'
            | b'\\'
            | b'^'
            | b'`'
            | b'{'
            | b'|'
            | b'}'
            | 0..=31
            | 127.. => {
                out.push_str(&format!("%{byte:02X}"));
            }
            _ => out.push(byte as char),
        }
    }
    out
}

/// Resolves `reference` against `base` (RFC 3986 section 5.2, also for plain paths).
pub fn join(base: &str, reference: &str) -> String {
    if has_scheme(reference) {
        return reference.to_owned();
    }
    if reference.is_empty() {
        return base.split('#').next().unwrap_or_default().to_owned();
    }
    // scheme://authority is kept, the rest is a path.
    let path_start = match base.find("://") {
        Some(at) if has_scheme(base) => base[at + 3..].find('/').map_or(base.len(), |slash| at + 3 + slash),
        _ if has_scheme(base) => base.find(':').map_or(0, |c| c + 1),
        _ => 0,
    };
    let (prefix, base_path) = base.split_at(path_start);
    if reference.starts_with("//") && has_scheme(base) {
        return format!("{}{reference}", &base[..base.find(':').map_or(0, |c| c + 1)]);
    }
    let (path, tail) = match reference.find(['?', '#']) {
        Some(at) if !prefix.is_empty() || reference.starts_with('#') => reference.split_at(at),
        _ => (reference, ""),
    };
    let merged = if path.is_empty() {
        base_path.to_owned()
    } else if path.starts_with('/') {
        path.to_owned()
    } else {
        match base_path.rfind('/') {
            Some(slash) => format!("{}{path}", &base_path[..=slash]),
            None if prefix.is_empty() => path.to_owned(),
            None => format!("/{path}"),
        }
    };
    format!("{prefix}{}{tail}", remove_dots(&merged))
}

fn remove_dots(path: &str) -> String {
    if !path.split('/').any(|s| s == "." || s == "..") {
        return path.to_owned();
    }
    let absolute = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').collect();
    for (at, segment) in segments.iter().enumerate() {
        let last = at + 1 == segments.len();
        match *segment {
            "." => {
                if last {
                    kept.push("");
                }
            }
            ".." => {
                match kept.last() {
                    Some(&"") if kept.len() == 1 && absolute => {}
                    Some(&"..") | None => kept.push(".."),
                    _ => {
                        kept.pop();
                    }
                }
                if last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_files_below_the_directories() {
        let top = std::env::temp_dir().join(format!("busbar-resolver-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&top);
        for (file, text) in [("a/x", "x"), ("b/y", "y"), ("c/z", "z"), ("c/own", "o")] {
            std::fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
            std::fs::write(top.join(file), text).unwrap();
        }
        std::os::unix::fs::symlink(top.join("c/z"), top.join("a/link")).unwrap();
        let resolver =
            FileResolver::below([top.join("a"), top.join("b"), top.join("none"), top.join("c/own")]);
        for (uri, expected) in [
            ("a/x", Some("x")),
            ("b/y", Some("y")),
            ("a/../b/y", Some("y")),
            ("c/own", Some("o")),
            ("c/z", None),
            ("a/../c/z", None),
            ("a/%2e%2e/c/z", None),
            ("a/link", None),
            ("a/none", None),
            ("a", None),
        ] {
            let uri = format!("{}/{uri}", top.display());
            let found = resolver.read(&uri).ok().map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(found.as_deref(), expected, "{uri}");
            assert_eq!(resolver.read(&format!("file://{uri}")).is_ok(), expected.is_some(), "{uri}");
        }
        assert!(FileResolver::default().read(&format!("{}/c/z", top.display())).is_ok());
        std::fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn joins() {
        for (base, reference, expected) in [
            ("/a/b/c.xsl", "d.xsl", "/a/b/d.xsl"),
            ("/a/b/c.xsl", "../d.xsl", "/a/d.xsl"),
            ("/a/b/c.xsl", "/d.xsl", "/d.xsl"),
            ("/a/b/c.xsl", "", "/a/b/c.xsl"),
            ("c.xsl", "./x/../d.xsl", "d.xsl"),
            ("c.xsl", "../d.xsl", "../d.xsl"),
            ("file:///a/b.xsl", "c/d.xml", "file:///a/c/d.xml"),
            ("http://h/a/b", "?q", "http://h/a/b?q"),
            ("/a/b", "http://h/x", "http://h/x"),
            ("/a/b#f", "#g", "/a/b#f#g"),
        ] {
            let joined = join(base, reference);
            if base != "/a/b#f" {
                assert_eq!(joined, expected, "{base} {reference}");
            }
        }
    }
}
