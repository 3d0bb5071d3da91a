//! The file system: directories that are walked within limits, and zip archives that are read in memory.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use zip::ZipArchive;

/// Most files and directories that are looked at below one path.
const MAX_ENTRIES: usize = 100_000;
/// Directories may be nested this deep.
const MAX_DEPTH: usize = 64;
/// Largest file that is read, in bytes.
const MAX_FILE: u64 = 64 << 20;
/// Most bytes that the files read of one archive may have.
const MAX_ARCHIVE: u64 = 256 << 20;
/// Most entries of an archive.
const MAX_ARCHIVE_ENTRIES: usize = 20_000;

/// What stands in a directory.
pub(super) struct Entry {
    pub path: PathBuf,
    /// The file name; what is not UTF-8 in it is replaced.
    pub name: String,
    pub is_directory: bool,
}

impl Entry {
    /// The part of the name behind the last dot, in lower case.
    pub fn extension(&self) -> String {
        let name = self.name.strip_prefix('.').unwrap_or(&self.name);
        name.rsplit_once('.').map_or(String::new(), |(_, extension)| extension.to_ascii_lowercase())
    }
}

/// Lists directories within bounds.
#[derive(Default)]
pub(super) struct Walk {
    /// The directories that were listed, with all links resolved.
    real: HashMap<PathBuf, PathBuf>,
    entries: usize,
    depth: usize,
}

impl Walk {
    /// The entries of a directory by name; empty for one that lies in itself (a link that leads back).
    ///
    /// # Errors
    /// Why it cannot be listed, or which bound is reached.
    pub fn list(&mut self, directory: &Path) -> Result<Vec<Entry>, String> {
        if self.depth >= MAX_DEPTH {
            return Err(format!("directories are nested deeper than {MAX_DEPTH}"));
        }
        let real = directory.canonicalize().map_err(|error| in_words(&error))?;
        if directory.ancestors().skip(1).any(|above| self.real.get(above) == Some(&real)) {
            return Ok(Vec::new());
        }
        self.real.insert(directory.to_owned(), real);
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(|error| in_words(&error))? {
            let entry = entry.map_err(|error| in_words(&error))?;
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(format!("there are more than {MAX_ENTRIES} files and directories"));
            }
            let path = entry.path();
            // A link counts as its target. A broken one is reported when it is read.
            let is_directory = match entry.file_type() {
                Ok(kind) if kind.is_symlink() => path.is_dir(),
                Ok(kind) => kind.is_dir(),
                Err(_) => false,
            };
            entries.push(Entry {
                name: entry.file_name().to_string_lossy().into_owned(),
                path,
                is_directory,
            });
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// One level deeper.
    pub fn enter(&mut self) {
        self.depth += 1;
    }

    /// One level up.
    pub fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}

/// The bytes of a file of at most 64 MiB. A pipe or directory is not opened.
///
/// # Errors
/// Why it cannot be read, in words.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let (file, length) = open(path)?;
    read_within(file, length)
}

/// The first bytes of a file, at most `most`.
pub(super) fn beginning(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path).ok()?.0.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A file with its length. Only a regular file is opened: a pipe would block until somebody writes.
fn open(path: &Path) -> Result<(File, u64), String> {
    let metadata = std::fs::metadata(path).map_err(|error| in_words(&error))?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    let file = File::open(path).map_err(|error| in_words(&error))?;
    Ok((file, metadata.len()))
}

/// At most [`MAX_FILE`] bytes.
fn read_within(file: impl Read, announced: u64) -> Result<Vec<u8>, String> {
    let too_large = || format!("it has more than {} MiB", MAX_FILE >> 20);
    if announced > MAX_FILE {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(announced).unwrap_or(0));
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| in_words(&error))?;
    if bytes.len() as u64 > MAX_FILE { Err(too_large()) } else { Ok(bytes) }
}

/// Counts the bytes that it gives.
struct Counted<R> {
    inside: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inside.read(into)?;
        self.count += read as u64;
        Ok(read)
    }
}

/// An I/O error in words.
pub(crate) fn in_words(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => "permission denied: this user may not read it".to_owned(),
        ErrorKind::NotFound => "it does not exist (a broken link?)".to_owned(),
        // The kind has no stable name yet.
        _ if error.to_string().contains("symbolic links") => "its links lead in a circle".to_owned(),
        _ => diagnostics::io_reason(error),
    }
}

/// Bytes that a zip file is read from.
pub(super) trait Source: Read + io::Seek {}

impl<T: Read + io::Seek> Source for T {}

/// The content of an archive: a zip file, or the directory that it was unpacked to. Names have `/` between their parts.
pub(super) enum Archived {
    Directory { root: PathBuf, files: HashMap<String, PathBuf> },
    Zip { archive: RefCell<ZipArchive<Box<dyn Source>>>, files: HashMap<String, usize>, left: Cell<u64> },
}

impl Archived {
    /// A directory, with everything below it.
    ///
    /// # Errors
    /// A directory cannot be listed.
    pub fn directory(root: &Path) -> Result<Archived, String> {
        fn add(
            walk: &mut Walk,
            directory: &Path,
            prefix: &str,
            files: &mut HashMap<String, PathBuf>,
        ) -> Result<(), String> {
            for entry in walk.list(directory)? {
                let name = format!("{prefix}{}", entry.name);
                if entry.is_directory {
                    walk.enter();
                    add(walk, &entry.path, &format!("{name}/"), files)?;
                    walk.leave();
                } else {
                    files.insert(name, entry.path);
                }
            }
            Ok(())
        }
        let mut files = HashMap::new();
        add(&mut Walk::default(), root, "", &mut files)?;
        Ok(Archived::Directory { root: root.to_owned(), files })
    }

    /// A zip file.
    ///
    /// # Errors
    /// It is none, has too many entries, or one that would lie outside.
    pub fn zip(path: &Path) -> Result<Archived, String> {
        let (file, _) = open(path)?;
        Archived::of_zip(Box::new(BufReader::new(file)))
    }

    /// A zip file within another one.
    ///
    /// # Errors
    /// As [`Archived::zip`].
    pub fn within(bytes: Vec<u8>) -> Result<Archived, String> {
        Archived::of_zip(Box::new(io::Cursor::new(bytes)))
    }

    fn of_zip(source: Box<dyn Source>) -> Result<Archived, String> {
        let broken = |error: zip::result::ZipError| format!("it is not a readable zip file: {error}");
        let mut archive = ZipArchive::new(source).map_err(broken)?;
        if archive.len() > MAX_ARCHIVE_ENTRIES {
            return Err(format!("it has more than {MAX_ARCHIVE_ENTRIES} entries"));
        }
        let mut files = HashMap::new();
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(broken)?;
            let name = String::from_utf8_lossy(entry.name_raw()).replace('\\', "/");
            if name.starts_with('/') || name.split('/').any(|part| part == "..") || name.contains('\0') {
                return Err(format!("its entry `{}` leads out of the archive", name.escape_debug()));
            }
            if entry.is_symlink() {
                return Err(format!("its entry `{}` is a link", name.escape_debug()));
            }
            if !entry.is_dir() && !name.ends_with('/') {
                files.insert(name.strip_prefix("./").unwrap_or(&name).to_owned(), index);
            }
        }
        Ok(Archived::Zip { archive: RefCell::new(archive), files, left: Cell::new(MAX_ARCHIVE) })
    }

    /// The names of all files, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = match self {
            Archived::Directory { files, .. } => files.keys().map(String::as_str).collect(),
            Archived::Zip { files, .. } => files.keys().map(String::as_str).collect(),
        };
        names.sort_unstable();
        names
    }

    /// Whether there is such a file.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Archived::Directory { files, .. } => files.contains_key(name),
            Archived::Zip { files, .. } => files.contains_key(name),
        }
    }

    /// Where a file lies, unless it is in a zip file.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        match self {
            Archived::Directory { files, .. } => files.get(name).cloned(),
            Archived::Zip { .. } => None,
        }
    }

    /// The path of a file in the archive that is shown as `archive`, for messages.
    pub fn shown(&self, archive: &str, name: &str) -> String {
        match self {
            Archived::Directory { root, .. } => root.join(name).display().to_string(),
            Archived::Zip { .. } => format!("{archive}/{name}"),
        }
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// Why there are none.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        let missing = || "it is not in the archive".to_owned();
        match self {
            Archived::Directory { files, .. } => read(files.get(name).ok_or_else(missing)?),
            Archived::Zip { archive, files, left } => {
                let mut archive = archive.borrow_mut();
                let index = *files.get(name).ok_or_else(missing)?;
                let entry = archive.by_index(index).map_err(|error| error.to_string())?;
                if entry.encrypted() {
                    return Err("it is encrypted".to_owned());
                }
                // The size in the entry may be wrong: the bytes that are read count, also before an error.
                let most = left.get();
                let mut counted = Counted { inside: entry.take(most + 1), count: 0 };
                let read = read_within(&mut counted, 0);
                left.set(most.saturating_sub(counted.count));
                match read {
                    _ if counted.count > most => {
                        Err(format!("the files of the archive have more than {} MiB", MAX_ARCHIVE >> 20))
                    }
                    read => read,
                }
            }
        }
    }
}
