//! Paths of operations. All are relative to the working directory of the connection, whether they begin with a slash or not, and none leads
//! out of it. Symbolic links are followed: whoever can create links in the directory decides where they lead.

use super::{Failure, Reason};
use files::address::{self, Address, Wrong};
use files::partial::is_partial;
use std::path::{Path, PathBuf};

/// The working directory of a connection, or the directory that an archive is unpacked into.
pub(super) struct Root {
    directory: PathBuf,
    /// Its name in the failure of a path that leads out of it.
    name: &'static str,
    /// Paths are addresses: absolute, or `file:///…`.
    addresses: bool,
}

/// Why a temporary name, which no operation lists, is refused.
pub(super) const NOT_WHOLE: &str = "a name like `.busbar-….tmp` is that of a file that is not whole yet";

impl Root {
    /// The root of a `workingDir`: a path or a `file:` URL, relative to the directory of the configuration. Absent: `/`.
    pub(super) fn of(directory: Option<&str>, configuration: &Path) -> Root {
        let directory = directory.unwrap_or("/").trim();
        let directory = match directory.strip_prefix("file:") {
            Some(url) => url.strip_prefix("//").unwrap_or(url),
            None => directory,
        };
        let directory = configuration.join(directory);
        let directory = std::path::absolute(&directory).unwrap_or(directory);
        Root { directory, name: "the working directory", addresses: false }
    }

    /// All files of this machine: absolute paths, and URLs whose `%20` and the like are decoded.
    pub(super) fn machine() -> Root {
        Root { directory: PathBuf::from("/"), name: "this machine", addresses: true }
    }

    /// The target directory of an archive.
    pub(super) fn at(directory: &Path) -> Root {
        Root { directory: directory.to_owned(), name: "the target directory", addresses: false }
    }

    /// The path of a parameter.
    pub(super) fn resolve(&self, text: &str) -> Result<PathBuf, Failure> {
        let text = text.trim();
        if self.addresses && !text.starts_with('/') {
            let path = address(text)?;
            return match path.file_name().and_then(|name| name.to_str()).is_some_and(is_partial) {
                true => Err(Failure::new(Reason::IllegalPath, format!("{text}: {NOT_WHOLE}"))),
                false => Ok(path),
            };
        }
        let text = text.strip_prefix("file://").unwrap_or(text);
        let refuse = |why: &str| Failure::new(Reason::IllegalPath, format!("{text}: {why}"));
        let path = files::path::below(&self.directory, text).map_err(|why| match why {
            files::path::OUT => refuse(&format!("leads out of {}", self.name)),
            why => refuse(why),
        })?;
        match path.file_name().and_then(|name| name.to_str()).is_some_and(is_partial) {
            true => Err(refuse(NOT_WHOLE)),
            false => Ok(path),
        }
    }

    /// Whether a path is the working directory itself.
    pub(super) fn is(&self, path: &Path) -> bool {
        self.directory == path
    }

    /// The path relative to the working directory, for results.
    pub(super) fn shown(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.directory).unwrap_or(path);
        format!("/{}", below.display())
    }
}

/// The path of a `file:` URL of this machine.
fn address(text: &str) -> Result<PathBuf, Failure> {
    Address::parse(text).map(|address| address.path).map_err(|wrong| match wrong {
        Wrong::Scheme(scheme) => Failure::new(Reason::Connection, address::not_here(&scheme)),
        Wrong::Text(why) => Failure::new(Reason::IllegalPath, format!("{text}: {why}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_working_directory() {
        let root = Root::of(Some("data"), Path::new("/conf"));
        for (text, wanted) in [
            ("a.txt", Some("/conf/data/a.txt")),
            ("/a/b.txt", Some("/conf/data/a/b.txt")),
            ("file:///a", Some("/conf/data/a")),
            ("a/../b", Some("/conf/data/b")),
            ("./a//b/", Some("/conf/data/a/b")),
            ("", Some("/conf/data")),
            ("..", None),
            ("a/../../b", None),
            ("/../etc/passwd", None),
            ("a\0b", None),
            ("a/.busbar-1.tmp", None),
            (".busbar-1.txt", Some("/conf/data/.busbar-1.txt")),
        ] {
            let path = root.resolve(text);
            assert_eq!(path.ok().as_deref(), wanted.map(Path::new), "{text:?}");
        }
        for (text, wanted) in [
            ("/a/b%20c", Ok("/a/b%20c")),
            (" file:///a/b%20c ", Ok("/a/b c")),
            ("vfs:file:///a", Ok("/a")),
            ("/a/../b", Ok("/b")),
            ("/../b", Err(Reason::IllegalPath)),
            ("a/b", Err(Reason::IllegalPath)),
            ("file://a/b", Err(Reason::IllegalPath)),
            ("file:///a/.busbar-1.tmp", Err(Reason::IllegalPath)),
            ("sftp://u:secret@host/a", Err(Reason::Connection)),
        ] {
            let path = Root::machine().resolve(text);
            if let Err(failure) = &path {
                assert!(!failure.detail.contains("secret"), "{}", failure.detail);
            }
            assert_eq!(path.map_err(|failure| failure.reason), wanted.map(PathBuf::from), "{text:?}");
        }
        assert_eq!(Root::of(None, Path::new("/conf")).resolve("/etc/x").ok(), Some(PathBuf::from("/etc/x")));
        assert_eq!(
            Root::of(Some("file:///srv"), Path::new("/conf")).resolve("x").ok(),
            Some(PathBuf::from("/srv/x"))
        );
        assert_eq!(
            Root::of(Some("file:/srv"), Path::new("/conf")).resolve("x").ok(),
            Some(PathBuf::from("/srv/x"))
        );
    }
}
