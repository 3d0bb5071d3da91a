//! Files on their way: each is made under a name of its own beside its place and renamed when it is whole.

use crate::Error;
use meter::Cancel;
use std::collections::HashSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How much is copied between two looks at whether the operation was cancelled, in bytes.
const CHUNK: usize = 128 << 10;

/// A file on its way to which nothing was written for so long was left behind by a process that was killed.
const LEFT_BEHIND: Duration = Duration::from_secs(3600);
/// Directories in which such files are looked for, and entries of each that are looked at.
const SWEPT: (usize, usize) = (1024, 20_000);

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// What becomes of a file that has the name already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existing {
    /// The new one takes its place.
    Replace,
    /// It stays, and nothing is made.
    Refuse,
}

/// What the name of a file begins with that is not whole yet.
const PARTIAL: &str = ".busbar-";

/// A name that no other process has, whatever it left behind: in a container each has the same number.
pub(crate) fn name(begins: &str) -> String {
    static START: LazyLock<u128> =
        LazyLock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos()));
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{begins}{}-{:x}-{number}.tmp", std::process::id(), *START)
}

/// A file that is not whole yet. Dropped before [`Partial::finish`] it is gone.
pub struct Partial {
    file: Option<File>,
    path: PathBuf,
    target: PathBuf,
    existing: Existing,
    /// The target is a device: what is written goes there at once.
    direct: bool,
}

/// Whether a file is one on its way, which no operation takes for one of its own.
pub fn is_partial(name: &str) -> bool {
    name.starts_with(PARTIAL) && name.ends_with(".tmp")
}

/// Makes a directory and those above it.
///
/// # Errors
/// One of them is a file (`NotADirectory`, wherever it stands), or the system does not allow it.
pub fn directories(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => ErrorKind::NotADirectory.into(),
        _ => error,
    })
}

impl Partial {
    /// Begins a file that is to be `target`. Directories above it are made if `parents`.
    ///
    /// # Errors
    /// It is no place for a file, or writing there is not allowed.
    pub fn begin(target: &Path, existing: Existing, parents: bool) -> Result<Partial, Error> {
        let failed = |error: io::Error| Error::io(target, error);
        if parents && let Some(parent) = target.parent() {
            directories(parent).map_err(|error| Error::io(parent, error))?;
        }
        // A link is followed, so that it stays one.
        let target = match fs::symlink_metadata(target) {
            Ok(metadata) if metadata.is_symlink() => fs::canonicalize(target).map_err(failed)?,
            _ => target.to_owned(),
        };
        Partial::begin_at(target, existing)
    }

    /// As [`Partial::begin`] in a directory that is there. A link of that name is not followed: the file takes its place.
    ///
    /// # Errors
    /// As [`Partial::begin`].
    pub fn begin_at(target: PathBuf, existing: Existing) -> Result<Partial, Error> {
        let failed = |error: io::Error| Error::io(&target, error);
        let metadata = fs::symlink_metadata(&target).ok();
        if metadata.as_ref().is_some_and(Metadata::is_dir) {
            return Err(Error::Directory(target));
        }
        if metadata.is_some() && existing == Existing::Refuse {
            return Err(Error::Exists(target));
        }
        if metadata.as_ref().is_some_and(|m| !m.is_file() && !m.is_symlink()) {
            // Opening a pipe waits for a reader.
            if !metadata.as_ref().is_some_and(|m| m.file_type().is_char_device()) {
                return Err(Error::NoFile(target));
            }
            let file = OpenOptions::new().write(true).open(&target).map_err(failed)?;
            return Ok(Partial { file: Some(file), path: target.clone(), target, existing, direct: true });
        }
        let path = target.with_file_name(name(PARTIAL));
        if let Some(directory) = path.parent() {
            sweep_once(directory);
        }
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        if let Some(metadata) = metadata.filter(Metadata::is_file) {
            // What takes the place of a file can be read by the same people. Where that is not allowed it stays as it was made.
            let _ = file.set_permissions(metadata.permissions());
        }
        Ok(Partial { file: Some(file), path, target, existing, direct: false })
    }

    /// The file itself.
    ///
    /// # Errors
    /// Never, before [`Partial::finish`].
    pub fn file(&mut self) -> Result<&mut File, Error> {
        self.file.as_mut().ok_or_else(|| Error::io(&self.target, ErrorKind::NotConnected.into()))
    }

    /// Adds all bytes of a source; how many they were.
    ///
    /// # Errors
    /// The disk is full, the source fails, or the operation was cancelled.
    pub fn copy_from(&mut self, from: &mut dyn Read, cancel: &Cancel) -> Result<u64, Error> {
        let target = self.target.clone();
        copy(from, self.file()?, &target, cancel)
    }

    /// What was written so far, to be read; it can be read whatever becomes of the name.
    ///
    /// # Errors
    /// What the system says.
    pub fn reader(&self) -> Result<File, Error> {
        File::open(&self.path).map_err(|error| Error::io(&self.path, error))
    }

    /// The file is on the disk, whatever becomes of the machine.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&mut self) -> Result<(), Error> {
        if self.direct {
            return Ok(());
        }
        let target = self.target.clone();
        self.file()?.sync_data().map_err(|error| Error::io(&target, error))
    }

    /// The file is whole and gets its name.
    ///
    /// # Errors
    /// There is one of this name, or the system says no.
    pub fn finish(mut self) -> Result<(), Error> {
        let failed = |error: io::Error| Error::io(&self.target, error);
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.flush().map_err(failed)?;
        drop(file);
        if self.direct {
            return Ok(());
        }
        match self.existing {
            Existing::Replace => fs::rename(&self.path, &self.target).map_err(failed)?,
            // A link is made only where there is no such name, which a rename does not look at.
            Existing::Refuse => match fs::hard_link(&self.path, &self.target) {
                Ok(()) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) =>
                {
                    // No links in this file system: what is between the two calls is lost.
                    if fs::symlink_metadata(&self.target).is_ok() {
                        return Err(failed(ErrorKind::AlreadyExists.into()));
                    }
                    fs::rename(&self.path, &self.target).map_err(failed)?;
                }
                Err(error) => return Err(failed(error)),
            },
        }
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.direct {
            // After a rename there is nothing of this name.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Takes away what killed processes left behind in a directory, when this process begins a file there for the first time.
fn sweep_once(directory: &Path) {
    static DONE: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);
    let is_first = {
        let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
        done.len() < SWEPT.0 && done.insert(directory.to_owned())
    };
    if is_first {
        sweep(directory);
    }
}

fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().take(SWEPT.1) {
        if !entry.file_name().to_str().is_some_and(is_partial) {
            continue;
        }
        let is_left_behind = entry.metadata().is_ok_and(|metadata| {
            let age = metadata.modified().ok().and_then(|modified| modified.elapsed().ok());
            metadata.is_file() && age.is_some_and(|age| age > LEFT_BEHIND)
        });
        if is_left_behind {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Copies all bytes of a source, until the operation is cancelled.
///
/// # Errors
/// As [`Partial::copy_from`].
pub fn copy(from: &mut dyn Read, to: &mut dyn Write, path: &Path, cancel: &Cancel) -> Result<u64, Error> {
    let mut buffer = vec![0; CHUNK];
    let mut total = 0;
    loop {
        if cancel.is_cancelled() {
            return Err(Error::Abandoned);
        }
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io(path, error)),
        };
        to.write_all(&buffer[..count]).map_err(|error| Error::io(path, error))?;
        total += count as u64;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_killed_processes_left_behind_goes() {
        let directory = std::env::temp_dir().join(format!("busbar-partial-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join(".busbar-1-0-3.tmp")).unwrap();
        let old = SystemTime::now() - LEFT_BEHIND - Duration::from_secs(60);
        for (name, is_old) in [
            (".busbar-1-0-1.tmp", true),
            (".busbar-1-0-2.tmp", false),
            (".busbar-1-0-4.txt", true),
            ("a.tmp", true),
        ] {
            let file = File::create(directory.join(name)).unwrap();
            if is_old {
                file.set_modified(old).unwrap();
            }
        }
        let begin = || Partial::begin(&directory.join("b"), Existing::Replace, false).unwrap();
        drop(begin());
        let names = || {
            let entries = fs::read_dir(&directory).unwrap().flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let left = [".busbar-1-0-2.tmp", ".busbar-1-0-3.tmp", ".busbar-1-0-4.txt", "a.tmp"];
        assert_eq!(names(), left);
        // Once for each process and directory.
        File::create(directory.join(".busbar-1-0-1.tmp")).unwrap().set_modified(old).unwrap();
        drop(begin());
        assert_eq!(names().len(), left.len() + 1);
        fs::remove_dir_all(&directory).unwrap();
    }
}
