//! Addresses of files and directories: `file:///in`, `vfs:file:///out?transport.vfs.Append=true`, `/in`.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// An address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The path, without what says how it is meant.
    pub path: PathBuf,
    /// It ends with a slash: a directory, whether it is there or not.
    pub directory: bool,
    /// It ends with `/*`: what is in directories of the directory counts too.
    pub recursive: bool,
    /// What follows it, `name=value`.
    pub options: Vec<(String, String)>,
}

/// Why a text is no address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is one of another scheme: `sftp`.
    Scheme(String),
    /// It is none.
    Text(&'static str),
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// It is none, or leads to another machine.
    pub fn parse(text: &str) -> Result<Address, Wrong> {
        let text = text.trim();
        let text = strip_scheme(text, "vfs").unwrap_or(text);
        let (text, query) = text.split_once('?').unwrap_or((text, ""));
        let path = match strip_scheme(text, "file") {
            Some(rest) => match rest.strip_prefix("//") {
                Some(rest) if rest.starts_with('/') => rest,
                Some(rest) => match rest.split_once('/') {
                    Some(("localhost", _)) => &rest["localhost".len()..],
                    _ => return Err(Wrong::Text("an absolute path has three slashes: file:///directory")),
                },
                None => rest,
            },
            None => match text.split_once(':') {
                Some((scheme, _)) if !scheme.contains('/') => {
                    return Err(Wrong::Scheme(scheme.to_lowercase()));
                }
                _ => text,
            },
        };
        if !path.starts_with('/') {
            return Err(Wrong::Text("expected an absolute path: file:///directory"));
        }
        let (path, recursive) = match path.strip_suffix("/*") {
            Some(path) => (path, true),
            None => (path, false),
        };
        let decoded = decoded(path);
        if decoded.contains(&0) {
            return Err(Wrong::Text("a path has no NUL"));
        }
        let directory = recursive || path.ends_with('/');
        let path = PathBuf::from(OsString::from_vec(decoded));
        // Trailing slashes are gone by that.
        let path: PathBuf =
            if path.as_os_str().is_empty() { "/".into() } else { path.components().collect() };
        let options = query.split('&').filter(|option| !option.is_empty()).map(|option| {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let text = |text: &str| String::from_utf8_lossy(&self::decoded(text)).into_owned();
            (text(name), text(value))
        });
        Ok(Address { path, directory, recursive, options: options.collect() })
    }
}

/// The rest behind a scheme, in any case.
fn strip_scheme<'t>(text: &'t str, scheme: &str) -> Option<&'t str> {
    let (own, rest) = text.split_once(':')?;
    own.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// A path as the address `file:///…`.
pub fn of_path(path: &Path) -> String {
    let mut text = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                text.push(byte.into())
            }
            // Nothing fails to be written into a text.
            byte => _ = write!(text, "%{byte:02X}"),
        }
    }
    text
}

/// `%41` as `A`; a percent sign that begins no such thing stands for itself.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        match digits.filter(|own| !own.starts_with('+')).and_then(|own| u8::from_str_radix(own, 16).ok()) {
            Some(own) => {
                out.push(own);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let scheme = |name: &str| Err(Wrong::Scheme(name.to_owned()));
        let three = || Err(Wrong::Text("an absolute path has three slashes: file:///directory"));
        for (text, wanted) in [
            ("file:///in", Ok(("/in", false, false))),
            (" vfs:file:///in/ ", Ok(("/in", true, false))),
            ("VFS:FILE:/in/a%20b", Ok(("/in/a b", false, false))),
            ("vfs:file://localhost/in", Ok(("/in", false, false))),
            ("/in", Ok(("/in", false, false))),
            ("file:///in/*", Ok(("/in", true, true))),
            ("file:///in/100%", Ok(("/in/100%", false, false))),
            ("file:///", Ok(("/", true, false))),
            ("file:////in", Ok(("/in", false, false))),
            ("file://in", three()),
            ("file://in/x", three()),
            ("in", Err(Wrong::Text("expected an absolute path: file:///directory"))),
            ("", Err(Wrong::Text("expected an absolute path: file:///directory"))),
            ("file:///a%00b", Err(Wrong::Text("a path has no NUL"))),
            ("vfs:sftp://u:p@host/in", scheme("sftp")),
            ("ftp://host/in", scheme("ftp")),
        ] {
            let found = Address::parse(text);
            let found =
                found.map(|own| (own.path.to_string_lossy().into_owned(), own.directory, own.recursive));
            assert_eq!(
                found,
                wanted.map(|(path, directory, all)| (path.to_owned(), directory, all)),
                "{text}"
            );
        }
        let own = Address::parse("vfs:file:///o?transport.vfs.Append=true&a=%41%3D&b").expect("an address");
        let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(own.options, [option("transport.vfs.Append", "true"), option("a", "A="), option("b", "")]);
        assert_eq!(of_path(Path::new("/in/a b+ü.xml")), "file:///in/a%20b%2B%C3%BC.xml");
    }
}
