//! The files of a directory, in an order, so many at a time: a directory may have any number of them.

use crate::claim::is_lock;
use crate::partial::is_partial;
use meter::Cancel;
use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How deep directories are looked into.
const DEEPEST: usize = 64;

/// Most files of locks that are told of.
const LOCKS: usize = 256;

/// By what files are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum By {
    /// Their paths.
    #[default]
    Name,
    /// Their size.
    Size,
    /// When they were changed last.
    Modified,
}

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    /// By what.
    pub by: By,
    /// The least one first.
    pub ascending: bool,
}

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    key: u128,
    /// Its path.
    pub path: PathBuf,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Listing {
    /// In order.
    pub files: Vec<FileEntry>,
    /// There are more behind these.
    pub more: bool,
    /// Links, pipes, devices and sockets whose names are wanted: they are never opened.
    pub special: u64,
    /// Directories inside that could not be read.
    pub unreadable: u64,
    /// Files of locks, some of them: those of killed processes are to be taken away ([`claim::sweep`](crate::claim::sweep)).
    pub locks: Vec<PathBuf>,
}

/// What is looked for.
pub struct Query<'q> {
    /// Directories inside count too.
    pub recursive: bool,
    /// The order.
    pub order: Order,
    /// Most files.
    pub most: usize,
    /// Only those behind this one.
    pub after: Option<&'q FileEntry>,
    /// By its name.
    pub wanted: &'q dyn Fn(&OsStr) -> bool,
    /// Ends it.
    pub cancel: &'q Cancel,
}

/// Looks for files in a directory; of a path that is a file, that one.
///
/// # Errors
/// The directory is not there, or may not be read.
pub fn list(root: &Path, query: &Query<'_>) -> io::Result<Listing> {
    let mut listing = Listing::default();
    if !fs::metadata(root)?.is_dir() {
        let found = look(root.to_owned(), query.order.by)?;
        listing.files.extend(found.filter(|file| query.is_behind(file)));
        return Ok(listing);
    }
    query.walk(root, 0, &mut listing)?;
    listing.more |= listing.files.len() > query.most;
    listing.files.sort_unstable_by(|one, other| query.order.compare(one, other));
    listing.files.truncate(query.most);
    Ok(listing)
}

impl Query<'_> {
    fn walk(&self, directory: &Path, depth: usize, listing: &mut Listing) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            if self.cancel.is_cancelled() {
                return Err(ErrorKind::Interrupted.into());
            }
            let entry = entry?;
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                let deeper = self.recursive && depth < DEEPEST;
                if deeper && self.walk(&entry.path(), depth + 1, listing).is_err() {
                    listing.unreadable += 1;
                }
                continue;
            }
            let is_ours = is_lock(name.as_bytes()) || name.to_str().is_some_and(is_partial);
            if is_ours && kind.is_file() && listing.locks.len() < LOCKS {
                listing.locks.push(entry.path());
            }
            if is_ours || !(self.wanted)(&name) {
                continue;
            }
            if !kind.is_file() {
                listing.special += 1;
                continue;
            }
            // One that is gone by now is none.
            let Ok(Some(found)) = look(entry.path(), self.order.by) else { continue };
            if !self.is_behind(&found) {
                continue;
            }
            listing.files.push(found);
            if listing.files.len() >= self.most.saturating_mul(2).max(16) {
                listing.files.select_nth_unstable_by(self.most, |one, other| self.order.compare(one, other));
                listing.files.truncate(self.most);
                listing.more = true;
            }
        }
        Ok(())
    }

    fn is_behind(&self, found: &FileEntry) -> bool {
        self.after.is_none_or(|after| self.order.compare(after, found) == Ordering::Less)
    }
}

fn look(path: PathBuf, by: By) -> io::Result<Option<FileEntry>> {
    let key = match by {
        By::Name => 0,
        By::Size => u128::from(fs::symlink_metadata(&path)?.len()),
        By::Modified => modified(&fs::symlink_metadata(&path)?),
    };
    Ok(Some(FileEntry { key, path }))
}

/// When a file was changed last, in nanoseconds.
pub fn modified(metadata: &Metadata) -> u128 {
    let seconds = u128::try_from(metadata.mtime()).unwrap_or_default();
    seconds * 1_000_000_000 + u128::try_from(metadata.mtime_nsec()).unwrap_or_default()
}

impl Order {
    fn compare(self, one: &FileEntry, other: &FileEntry) -> Ordering {
        let order = one.key.cmp(&other.key).then_with(|| one.path.cmp(&other.path));
        if self.ascending { order } else { order.reverse() }
    }
}

/// What tells one version of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    device: u64,
    node: u64,
    /// Its size in bytes.
    pub length: u64,
    /// When it was changed last, in nanoseconds.
    pub modified: u128,
}

impl Version {
    /// That of a file of which the system says this.
    pub fn of(metadata: &Metadata) -> Version {
        Version {
            device: metadata.dev(),
            node: metadata.ino(),
            length: metadata.len(),
            modified: modified(metadata),
        }
    }

    /// Whether a path leads to this very file as it was.
    pub fn is_at(&self, path: &Path) -> io::Result<bool> {
        Ok(Version::of(&fs::symlink_metadata(path)?) == *self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn all_files_come_once_and_in_order() {
        let root = std::env::temp_dir().join(format!("busbar-directory-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("inside")).unwrap();
        for number in 0..50 {
            fs::write(root.join(format!("{number:02}.txt")), vec![b'x'; (number * 7) % 50]).unwrap();
        }
        fs::write(root.join("inside/z.txt"), "z").unwrap();
        for none in ["a.txt.lock", ".busbar-1-2-3.tmp", "b.xml"] {
            fs::write(root.join(none), "").unwrap();
        }
        std::os::unix::fs::symlink("00.txt", root.join("link.txt")).unwrap();
        let wanted = |name: &OsStr| !name.as_bytes().ends_with(b".xml");
        for (by, ascending, recursive) in [
            (By::Name, true, false),
            (By::Size, false, false),
            (By::Modified, true, true),
            (By::Name, false, true),
        ] {
            let (mut all, mut after): (Vec<FileEntry>, Option<FileEntry>) = (Vec::new(), None);
            loop {
                let order = Order { by, ascending };
                let cancel = Cancel::default();
                let query = Query {
                    recursive,
                    order,
                    most: 7,
                    after: after.as_ref(),
                    wanted: &wanted,
                    cancel: &cancel,
                };
                let listing = list(&root, &query).unwrap();
                assert_eq!(listing.special, 1);
                assert!(listing.files.len() <= 7);
                all.extend(listing.files);
                after = all.last().cloned();
                if !listing.more {
                    break;
                }
            }
            assert_eq!(all.len(), 50 + usize::from(recursive), "{by:?}");
            let order = Order { by, ascending };
            assert!(all.windows(2).all(|two| order.compare(&two[0], &two[1]) == Ordering::Less), "{by:?}");
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
