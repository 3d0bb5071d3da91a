//! Files on their way: each is made under a name of its own beside its place and renamed when it is whole.

use super::{Failure, Files, Reason};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How much is copied between two looks at whether anybody waits, in bytes.
const CHUNK: usize = 128 << 10;

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// What becomes of a file that has the name already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Existing {
    Replace,
    Refuse,
}

/// A file that is not whole yet. Dropped before [`Partial::finish`] it is gone.
pub(super) struct Partial {
    file: Option<File>,
    path: PathBuf,
    target: PathBuf,
    existing: Existing,
    /// The target is a device: what is written goes there at once.
    direct: bool,
}

/// Whether a file is one on its way, which no operation takes for one of its own.
pub(super) fn is_partial(name: &str) -> bool {
    name.starts_with(".busbar-") && name.ends_with(".tmp")
}

impl Partial {
    /// Begins a file that is to be `target`. Directories above it are made if `parents`.
    pub(super) fn begin(target: &Path, existing: Existing, parents: bool) -> Result<Partial, Failure> {
        let failed = |error: io::Error| Failure::io(target, &error);
        if parents && let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(|error| Failure::io(parent, &error))?;
        }
        // A link is followed, so that it stays one.
        let target = match fs::symlink_metadata(target) {
            Ok(own) if own.is_symlink() => fs::canonicalize(target).map_err(failed)?,
            _ => target.to_owned(),
        };
        Partial::begin_at(target, existing)
    }

    /// As [`Partial::begin`] in a directory that is there. A link of that name is not followed: the file takes its place.
    pub(super) fn begin_at(target: PathBuf, existing: Existing) -> Result<Partial, Failure> {
        let failed = |error: io::Error| Failure::io(&target, &error);
        let known = fs::symlink_metadata(&target).ok();
        if known.as_ref().is_some_and(Metadata::is_dir) {
            let why = format!("{} is a directory", target.display());
            return Err(Failure::new(Reason::IllegalPath, why));
        }
        if known.is_some() && existing == Existing::Refuse {
            return Err(Failure::new(Reason::Exists, format!("{} exists already", target.display())));
        }
        if known.as_ref().is_some_and(|own| !own.is_file() && !own.is_symlink()) {
            // Whoever opens a pipe waits for a reader.
            if !known.as_ref().is_some_and(|own| own.file_type().is_char_device()) {
                return Err(Failure::no_file(&target));
            }
            let file = OpenOptions::new().write(true).open(&target).map_err(failed)?;
            return Ok(Partial { file: Some(file), path: target.clone(), target, existing, direct: true });
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = target.with_file_name(format!(".busbar-{}-{number}.tmp", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        if let Some(known) = known.filter(Metadata::is_file) {
            // What takes the place of a file can be read by the same people. Where that is not allowed it stays as it was made.
            let _ = file.set_permissions(known.permissions());
        }
        Ok(Partial { file: Some(file), path, target, existing, direct: false })
    }

    /// The file itself.
    ///
    /// # Errors
    /// Never, before [`Partial::finish`].
    pub(super) fn file(&mut self) -> Result<&mut File, Failure> {
        self.file.as_mut().ok_or_else(|| Failure::new(Reason::Operation, "the file is closed"))
    }

    /// Adds all bytes of a source; how many they were.
    pub(super) fn copy_from(&mut self, from: &mut dyn Read, files: &Files) -> Result<u64, Failure> {
        let target = self.target.clone();
        copy(from, self.file()?, &target, files)
    }

    /// The file is whole and gets its name.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::io(&self.target, &error);
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

/// Copies all bytes of a source, for as long as somebody waits.
pub(super) fn copy(
    from: &mut dyn Read,
    to: &mut dyn Write,
    path: &Path,
    files: &Files,
) -> Result<u64, Failure> {
    let mut buffer = vec![0; CHUNK];
    let mut total = 0;
    loop {
        files.go_on()?;
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::io(path, &error)),
        };
        to.write_all(&buffer[..count]).map_err(|error| Failure::io(path, &error))?;
        total += count as u64;
    }
}
