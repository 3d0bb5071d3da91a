//! The destination of further results: the documents of `xsl:result-document` with an `href`.

use crate::resolver::has_scheme;
use std::fs;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Receives the documents of `xsl:result-document`.
pub trait Results: Sync {
    /// The URI of `href`: the same for all references to one place. Errors: the reason why it may not be
    /// written there.
    fn absolute(&self, href: &str) -> Result<String, String>;
    /// Receives a whole document for `uri` (as [`Results::absolute`] gave it, each once). Errors: the reason
    /// why it cannot be stored.
    fn take(&self, uri: &str, document: Vec<u8>) -> Result<(), String>;
}

/// Writes documents as files below a directory. They get their names with [`FileResults::commit`]: a transformation that
/// fails leaves none of them, and each is there completely or not at all.
pub struct FileResults {
    root: PathBuf,
    taken: Mutex<Unfinished>,
}

#[derive(Default)]
struct Unfinished {
    /// The files: temporary and final names.
    files: Vec<(PathBuf, PathBuf)>,
    /// Directories that were created.
    directories: Vec<PathBuf>,
}

impl FileResults {
    /// Files below `root`, which must be a directory.
    pub fn below(root: &Path) -> Result<FileResults, String> {
        let found = root.canonicalize().map_err(|e| format!("{}: {e}", root.display()))?;
        if !found.is_dir() {
            return Err(format!("{} is not a directory", root.display()));
        }
        Ok(FileResults { root: found, taken: Mutex::default() })
    }

    /// Gives all files their names. Errors: the first that cannot be renamed.
    pub fn commit(self) -> Result<(), String> {
        let files = std::mem::take(&mut self.lock().files);
        let mut outcome = Ok(());
        for (temporary, to) in files {
            if outcome.is_ok()
                && let Err(error) = fs::rename(&temporary, &to)
            {
                outcome = Err(format!("{}: {error}", to.display()));
            }
            if outcome.is_err() {
                let _ = fs::remove_file(&temporary);
            } else {
                // A directory that contains a file stays.
                self.lock().directories.retain(|directory| !to.starts_with(directory));
            }
        }
        outcome
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Unfinished> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory of the file, created where it is missing. It must not lead outside by a link.
    fn directory(&self, file: &Path) -> Result<PathBuf, String> {
        let message = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let mut at = self.root.clone();
        let inside = file.strip_prefix(&self.root).ok().and_then(Path::parent).unwrap_or(Path::new(""));
        for part in inside.components() {
            at.push(part);
            match fs::create_dir(&at) {
                Ok(()) => self.lock().directories.push(at.clone()),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(message(&at, error)),
            }
            let real = at.canonicalize().map_err(|error| message(&at, error))?;
            if !real.starts_with(&self.root) {
                return Err(format!("{} leads outside of {}", at.display(), self.root.display()));
            }
            if !real.is_dir() {
                return Err(format!("{} is not a directory", at.display()));
            }
            at = real;
        }
        Ok(at)
    }
}

impl Drop for FileResults {
    fn drop(&mut self) {
        let taken = std::mem::take(&mut *self.lock());
        for (temporary, _) in taken.files {
            let _ = fs::remove_file(temporary);
        }
        for directory in taken.directories.iter().rev() {
            // Only empty ones.
            let _ = fs::remove_dir(directory);
        }
    }
}

impl Results for FileResults {
    fn absolute(&self, href: &str) -> Result<String, String> {
        let outside = || format!("\"{href}\" is not below {}", self.root.display());
        let path = match href.strip_prefix("file:") {
            Some(path) => {
                path.strip_prefix("//localhost").or_else(|| path.strip_prefix("//")).unwrap_or(path)
            }
            None if has_scheme(href) => return Err(format!("\"{href}\" is not a local file")),
            None => href,
        };
        if path.contains(['?', '#']) {
            return Err(format!("\"{href}\": a result has neither query nor fragment"));
        }
        let path = crate::functions::strings::decode_uri(path);
        if path.contains('\0') || path.ends_with('/') {
            return Err(format!("\"{href}\" cannot be the name of a file"));
        }
        let mut file = self.root.clone();
        for part in Path::new(&path).components() {
            match part {
                Component::Normal(name) => file.push(name),
                Component::CurDir => {}
                Component::ParentDir => {
                    file.pop();
                }
                Component::RootDir | Component::Prefix(_) => file = PathBuf::from(part.as_os_str()),
            }
        }
        if !file.starts_with(&self.root) || file == self.root {
            return Err(outside());
        }
        file.into_os_string().into_string().map_err(|_| outside())
    }

    fn take(&self, uri: &str, document: Vec<u8>) -> Result<(), String> {
        let file = Path::new(uri);
        let name = file.file_name().ok_or_else(|| format!("\"{uri}\" cannot be the name of a file"))?;
        let directory = self.directory(file)?;
        let to = directory.join(name);
        if to.is_dir() {
            return Err(format!("{} is a directory", to.display()));
        }
        let mut taken = self.lock();
        if taken.files.iter().any(|(_, path)| *path == to) {
            return Err(format!("{} is written twice, by another name", to.display()));
        }
        let message = |error: std::io::Error| format!("{}: {error}", to.display());
        let mut number = taken.files.len();
        let (temporary, mut opened) = loop {
            let temporary = directory.join(format!(".busbar-{}-{number}.part", std::process::id()));
            match fs::OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(opened) => break (temporary, opened),
                // A file that another process has left.
                Err(error)
                    if error.kind() == std::io::ErrorKind::AlreadyExists
                        && number < taken.files.len() + 1000 =>
                {
                    number += 1;
                }
                Err(error) => return Err(message(error)),
            }
        };
        let written = opened.write_all(&document).and_then(|()| opened.flush());
        taken.files.push((temporary, to.clone()));
        written.map_err(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory for one test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("busbar-results-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("root/there")).unwrap();
            Folder(path.canonicalize().unwrap())
        }

        fn root(&self) -> PathBuf {
            self.0.join("root")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn names() {
        let folder = Folder::new("names");
        let root = folder.root();
        let results = FileResults::below(&root).unwrap();
        for (href, expected) in [
            ("a.xml", Some("a.xml")),
            ("./x/../a.xml", Some("a.xml")),
            ("x/y/a%20b.xml", Some("x/y/a b.xml")),
            ("../root/a.xml", Some("a.xml")),
            ("../a.xml", None),
            ("x/../../a.xml", None),
            ("..", None),
            (".", None),
            ("x/", None),
            ("%2e%2e/a.xml", None),
            ("%2fetc/passwd", None),
            ("/etc/passwd", None),
            ("file:///etc/passwd", None),
            ("http://host/a.xml", None),
            ("a.xml#f", None),
            ("a.xml?q", None),
            ("a%00b", None),
            ("", None),
        ] {
            let found = results.absolute(href).ok();
            let expected = expected.map(|name| root.join(name).to_str().unwrap().to_owned());
            assert_eq!(found, expected, "{href}");
        }
        let uri = format!("file://{}/b.xml", root.display());
        assert_eq!(results.absolute(&uri).unwrap(), root.join("b.xml").to_str().unwrap());
        assert!(FileResults::below(&root.join("none")).is_err());
    }

    #[test]
    fn all_or_nothing() {
        let folder = Folder::new("all");
        let root = folder.root();
        let all = |path: &Path| -> Vec<String> {
            let mut names: Vec<String> = fs::read_dir(path)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        fs::write(root.join("old.xml"), "old").unwrap();
        {
            let results = FileResults::below(&root).unwrap();
            let uri = |href: &str| results.absolute(href).unwrap();
            results.take(&uri("old.xml"), b"new".to_vec()).unwrap();
            results.take(&uri("new/deep/a.xml"), b"a".to_vec()).unwrap();
            assert_eq!(fs::read(root.join("old.xml")).unwrap(), b"old");
            assert!(results.take(&uri("there"), b"a".to_vec()).is_err());
            assert!(results.take(&uri("old.xml/a.xml"), b"a".to_vec()).is_err());
        }
        // Not committed: no file is left.
        assert_eq!(all(&root), ["old.xml", "there"]);
        let results = FileResults::below(&root).unwrap();
        let uri = |href: &str| results.absolute(href).unwrap();
        results.take(&uri("old.xml"), b"new".to_vec()).unwrap();
        results.take(&uri("new/deep/a.xml"), b"a".to_vec()).unwrap();
        results.commit().unwrap();
        assert_eq!(all(&root), ["new", "old.xml", "there"]);
        assert_eq!(fs::read(root.join("old.xml")).unwrap(), b"new");
        assert_eq!(all(&root.join("new/deep")), ["a.xml"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_lead_outside() {
        let folder = Folder::new("links");
        let root = folder.root();
        fs::create_dir(folder.0.join("outside")).unwrap();
        std::os::unix::fs::symlink(folder.0.join("outside"), root.join("out")).unwrap();
        std::os::unix::fs::symlink(root.join("there"), root.join("in")).unwrap();
        fs::write(folder.0.join("outside/file"), "kept").unwrap();
        std::os::unix::fs::symlink(folder.0.join("outside/file"), root.join("link")).unwrap();
        let results = FileResults::below(&root).unwrap();
        let uri = |href: &str| results.absolute(href).unwrap();
        assert!(results.take(&uri("out/a.xml"), b"a".to_vec()).is_err());
        results.take(&uri("in/a.xml"), b"a".to_vec()).unwrap();
        // The same file under another name.
        assert!(results.take(&uri("there/a.xml"), b"a".to_vec()).is_err());
        // A link is replaced, not followed.
        results.take(&uri("link"), b"a".to_vec()).unwrap();
        results.commit().unwrap();
        assert_eq!(fs::read(root.join("there/a.xml")).unwrap(), b"a");
        assert_eq!(fs::read(folder.0.join("outside/file")).unwrap(), b"kept");
        assert_eq!(fs::read(root.join("link")).unwrap(), b"a");
    }
}
