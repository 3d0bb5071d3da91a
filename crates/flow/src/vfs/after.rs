//! What becomes of a file whose flow has ended: on a thread that may wait for the disk.

use super::records;
use super::taking::At;
use crate::engine::file::formatted;
use crate::runtime::source::{Action, Remembered, Source};
use crate::state::lock;
use ::files::Error;
use ::files::partial::{Existing, Partial};
use meter::Cancel;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

/// Does it. Where it cannot be done, the file is remembered, so that it is not processed again.
pub(super) fn act(source: &Source, at: &At, action: &Action, place: &str) {
    let error = match perform(source, at, action) {
        Ok(()) => return,
        Err(Error::Changed(path)) => {
            let path = path.display();
            return tracing::warn!(
                source = source.label(),
                place,
                "{path} was changed while it was processed: it stays, and is taken again as it is now"
            );
        }
        Err(error) => error,
    };
    if let Some(directory) = &source.failed_move {
        match moved(source, at, directory) {
            Ok(to) => {
                let (path, to) = (at.path.display(), to.display());
                return tracing::error!(
                    source = source.label(),
                    place,
                    "{path} was processed and could not be {}: {error}; it was moved to {to}",
                    participle(action)
                );
            }
            Err(other) => tracing::error!(source = source.label(), place, "MoveAfterFailedMove: {other}"),
        }
    }
    tracing::error!(
        source = source.label(),
        place,
        "{} was processed and could not be {}: {error}; it is not processed again, and this is tried every {:?}",
        at.path.display(),
        participle(action),
        source.records.again
    );
    let remembered = Remembered {
        version: (at.version.length, at.version.modified),
        action: action.clone(),
        again: Instant::now() + source.records.again,
    };
    lock(&source.state.0).remembered.insert(at.path.clone(), remembered);
    records::write(source);
}

/// Tries it again with a file that is remembered.
pub(super) fn again(source: &Source, at: &At) {
    let Some(file) = lock(&source.state.0).remembered.get(&at.path).cloned() else { return };
    match perform(source, at, &file.action) {
        Ok(()) => {
            lock(&source.state.0).remembered.remove(&at.path);
            records::write(source);
            let path = at.path.display();
            tracing::info!(source = source.label(), "{path} is {} at last", participle(&file.action));
        }
        Err(_) => {
            let mut progress = lock(&source.state.0);
            if let Some(file) = progress.remembered.get_mut(&at.path) {
                file.again = Instant::now() + source.records.again;
            }
        }
    }
}

fn participle(action: &Action) -> &'static str {
    match action {
        Action::Move(_) => "moved",
        Action::Delete | Action::Nothing => "deleted",
    }
}

fn perform(source: &Source, at: &At, action: &Action) -> Result<(), Error> {
    match action {
        Action::Nothing => Ok(()),
        Action::Delete => {
            if !is_same(at)? {
                return Ok(());
            }
            match fs::remove_file(&at.path) {
                // Another program took it away.
                Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(&at.path, error)),
                _ => Ok(()),
            }
        }
        Action::Move(directory) => {
            if is_same(at)? {
                return moved(source, at, directory).map(|_| ());
            }
            // The file is not in the target directory, where an administrator would look for it.
            let (path, to) = (at.path.display(), directory.display());
            tracing::warn!(
                source = source.label(),
                "{path} was taken away by somebody while it was processed: it is not in {to}"
            );
            Ok(())
        }
    }
}

/// Whether the file is still there (`false`: another program took it away), and the one that was processed.
fn is_same(at: &At) -> Result<bool, Error> {
    match at.version.is_at(&at.path) {
        Ok(true) => Ok(true),
        Ok(false) => Err(Error::Changed(at.path.clone())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(&at.path, error)),
    }
}

/// Moves a file to a directory; where it is then.
fn moved(source: &Source, at: &At, directory: &Path) -> Result<PathBuf, Error> {
    let moving = &source.moving;
    let mut directory = directory.to_owned();
    if let Some(below) = &moving.below {
        let below = formatted(below)?;
        let refused = |why| Error::io(&directory, io::Error::new(ErrorKind::InvalidInput, why));
        directory = ::files::path::below(&directory, &below).map_err(refused)?;
    }
    if moving.create || moving.below.is_some() {
        fs::create_dir_all(&directory).map_err(|error| Error::io(&directory, error))?;
    }
    let mut name = std::ffi::OsString::new();
    if let Some(prefix) = &moving.prefix {
        // A separator would be a directory.
        name.push(formatted(prefix)?.replace('/', "_"));
    }
    name.push(at.path.file_name().unwrap_or_default());
    let target = directory.join(name);
    if target == at.path {
        return Err(Error::Exists(target));
    }
    if moving.touch {
        // What may not be touched is moved all the same.
        let now = SystemTime::now();
        let _ = File::open(&at.path).and_then(|file| file.set_modified(now));
    }
    let replaces = fs::symlink_metadata(&target).is_ok();
    let renamed = fs::rename(&at.path, &target);
    match renamed {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            if let Err(error) = carry(at, &target, moving.touch) {
                // As it was, so that it is known as the one that was processed.
                restore(at);
                return Err(error);
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound && !at.path.exists() => {}
        Err(error) => {
            restore(at);
            return Err(Error::io(&target, error));
        }
    }
    if replaces {
        // As in WSO2; nobody may have looked at the one that was there.
        let (source, target) = (source.label(), target.display());
        tracing::warn!(
            source,
            "{target} was there from a file before, and is replaced (MoveTimestampFormat tells them apart)"
        );
    }
    Ok(target)
}

/// Gives a file the time that it had.
fn restore(at: &At) {
    let nanoseconds = u64::try_from(at.version.modified).unwrap_or_default();
    let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_nanos(nanoseconds);
    let _ = File::open(&at.path).and_then(|file| file.set_modified(time));
}

/// Moves a file to another file system: it is there as a whole and on the disk before it is gone here.
fn carry(at: &At, target: &Path, touch: bool) -> Result<(), Error> {
    let failed = |error| Error::io(&at.path, error);
    let mut file = File::open(&at.path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let mut partial = Partial::begin_at(target.to_owned(), Existing::Replace)?;
    partial.copy_from(&mut file, &Cancel::default())?;
    // Where that is not allowed it is as any new one.
    let _ = partial.file()?.set_permissions(metadata.permissions());
    if !touch && let Ok(modified) = metadata.modified() {
        let _ = partial.file()?.set_modified(modified);
    }
    partial.sync()?;
    partial.finish()?;
    fs::remove_file(&at.path).map_err(failed)
}
