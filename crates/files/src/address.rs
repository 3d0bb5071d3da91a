//! Addresses of files and directories: `file:///in`, `vfs:file:///out?transport.vfs.Append=true`, `/in`.

use percent_encoding::percent_decode_str;
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

/// Why a text is not an address of this machine.
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
        let decoded: Vec<u8> = percent_decode_str(path).collect();
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
            let text = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            (text(name), text(value))
        });
        Ok(Address { path, directory, recursive, options: options.collect() })
    }
}

/// What is said of an address of another scheme: its files are not reached.
pub fn not_here(scheme: &str) -> String {
    format!("files over `{scheme}` need a transport that is not there yet")
}

/// What to do instead, for an address of another scheme.
pub fn instead(scheme: &str) -> &'static str {
    let ways: [(&[&str], &str); 5] = [
        (
            &["sftp", "scp"],
            "mount the directory (`sshfs USER@HOST:/DIRECTORY /mnt/DIRECTORY`) and write `file:///mnt/DIRECTORY`",
        ),
        (
            &["ftp", "ftps"],
            "mount the directory (`rclone mount REMOTE:DIRECTORY /mnt/DIRECTORY`) and write `file:///mnt/DIRECTORY`",
        ),
        (
            &["smb", "smb2", "cifs"],
            "mount the share (`mount -t cifs //HOST/SHARE /mnt/SHARE`) and write `file:///mnt/SHARE`",
        ),
        (
            &["webdav", "webdavs", "http", "https"],
            "mount the directory (`mount -t davfs https://HOST/DIRECTORY /mnt/DIRECTORY`) and write `file:///mnt/DIRECTORY`",
        ),
        (
            &["zip", "jar", "tar", "tgz", "tbz2", "gz", "bz2"],
            "archives are files: take the archive itself, as `application/octet-stream`, or unpack it before",
        ),
    ];
    let way = ways.iter().find(|(names, _)| names.iter().any(|name| name.eq_ignore_ascii_case(scheme)));
    way.map_or("expected a directory of this machine: file:///directory", |(_, way)| way)
}

/// The rest behind a scheme, in any case.
fn strip_scheme<'t>(text: &'t str, scheme: &str) -> Option<&'t str> {
    let (given, rest) = text.split_once(':')?;
    given.eq_ignore_ascii_case(scheme).then_some(rest)
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
            let found = found.map(|address| {
                (address.path.to_string_lossy().into_owned(), address.directory, address.recursive)
            });
            assert_eq!(
                found,
                wanted.map(|(path, directory, all)| (path.to_owned(), directory, all)),
                "{text}"
            );
        }
        assert!(instead("SFTP").contains("sshfs") && instead("ftps").contains("rclone"));
        assert!(instead("gopher").contains("file:///directory"));
        let address =
            Address::parse("vfs:file:///o?transport.vfs.Append=true&a=%41%3D&b").expect("an address");
        let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            address.options,
            [option("transport.vfs.Append", "true"), option("a", "A="), option("b", "")]
        );
        assert_eq!(of_path(Path::new("/in/a b+ü.xml")), "file:///in/a%20b%2B%C3%BC.xml");
    }
}
