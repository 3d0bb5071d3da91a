//! Paths of operations. All are relative to the working directory of the connection, whether they begin with a slash or not, and none leads
//! out of it. Symbolic links are followed: whoever may make links in the directory decides where they lead.

use super::{Failure, Reason};
use std::path::{Path, PathBuf};

/// The working directory of a connection.
pub(super) struct Root(PathBuf);

impl Root {
    /// That of a `workingDir`: a path or a `file:` URL, relative to the directory of the configuration. Absent: `/`.
    pub(super) fn of(directory: Option<&str>, configuration: &Path) -> Root {
        let directory = directory.unwrap_or("/").trim();
        let directory = match directory.strip_prefix("file:") {
            Some(url) => url.strip_prefix("//").unwrap_or(url),
            None => directory,
        };
        let directory = configuration.join(directory);
        Root(std::path::absolute(&directory).unwrap_or(directory))
    }

    /// The path that a parameter means.
    pub(super) fn resolve(&self, text: &str) -> Result<PathBuf, Failure> {
        let text = text.trim();
        let text = text.strip_prefix("file://").unwrap_or(text);
        let refuse = |why: &str| Failure::new(Reason::IllegalPath, format!("{text}: {why}"));
        files::path::below(&self.0, text).map_err(refuse)
    }

    /// Whether a path is the working directory itself.
    pub(super) fn is(&self, path: &Path) -> bool {
        self.0 == path
    }

    /// What a path is below the working directory, for results.
    pub(super) fn shown(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.0).unwrap_or(path);
        format!("/{}", below.display())
    }
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
        ] {
            let path = root.resolve(text);
            assert_eq!(path.ok().as_deref(), wanted.map(Path::new), "{text:?}");
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
