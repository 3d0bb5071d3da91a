//! Taking a file: on a thread that may wait for the disk.

use super::{MOST_REMEMBERED, after, records};
use crate::engine::file::claimed;
use crate::runtime::source::{Skipped, Source};
use crate::state::lock;
use ::files::Error;
use ::files::claim::Claim;
use ::files::directory::Version;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Files of at most this size are read at once.
const SMALL: u64 = 64 << 10;
/// Where the namespace of an envelope is looked for, in bytes.
const PROLOGUE: usize = 4 << 10;

/// A file that is taken.
pub(super) struct Opened {
    pub(super) at: At,
    pub(super) content: Content,
    /// It looks like a SOAP envelope.
    pub(super) soap: bool,
    pub(super) claim: Claim,
}

/// Where a file is, and which one it is.
#[derive(Clone, Debug)]
pub(super) struct At {
    pub(super) path: PathBuf,
    pub(super) version: Version,
}

pub(super) enum Content {
    Read(Vec<u8>),
    Open(File),
}

pub(super) enum ClaimOutcome {
    File(Opened),
    Skipped(Why),
}

/// Why a file is passed over.
pub(super) enum Why {
    /// It is gone, or was processed before.
    Nothing,
    Locked,
    Empty,
    TooLarge,
    Age,
    Growing,
    Special,
    Unreadable(String),
}

impl Why {
    pub(super) fn count(self, skipped: &mut Skipped) {
        let counted = match self {
            Why::Nothing => return,
            Why::Locked => &mut skipped.locked,
            Why::Empty => &mut skipped.empty,
            Why::TooLarge => &mut skipped.too_large,
            Why::Age => &mut skipped.age,
            Why::Growing => &mut skipped.growing,
            Why::Special => &mut skipped.special,
            Why::Unreadable(why) => {
                skipped.first.get_or_insert(why);
                &mut skipped.unreadable
            }
        };
        *counted += 1;
    }
}

impl From<Error> for Why {
    fn from(error: Error) -> Why {
        match error {
            Error::Locked(_) => Why::Locked,
            error if error.kind() == Some(ErrorKind::NotFound) => Why::Nothing,
            error => Why::Unreadable(error.to_string()),
        }
    }
}

/// The sizes of files, of those that are there.
pub(super) fn sizes(paths: &[PathBuf]) -> Vec<Option<u64>> {
    paths.iter().map(|path| fs::symlink_metadata(path).ok().map(|metadata| metadata.len())).collect()
}

/// Takes a file. `size`: what it had a while ago, where that is looked at.
pub(super) fn take(source: &Source, path: PathBuf, size: Option<Option<u64>>) -> ClaimOutcome {
    match open(source, path, size) {
        Ok(opened) => ClaimOutcome::File(opened),
        Err(why) => ClaimOutcome::Skipped(why),
    }
}

fn open(source: &Source, path: PathBuf, size: Option<Option<u64>>) -> Result<Opened, Why> {
    let failed = |error: io::Error| Why::from(Error::io(&path, error));
    check(source, &path, size)?;
    let claim = claimed(&path, source.locking)?;
    // The process that had it before may have processed it, and another program put a new one there.
    let version = check(source, &path, size)?;
    if let Some(remembered) = remembered(source, &path, &version) {
        if remembered {
            let at = At { path: path.clone(), version };
            after::again(source, &at);
        }
        return Err(Why::Nothing);
    }
    if lock(&source.state.0).remembered.len() >= MOST_REMEMBERED {
        return Err(Why::Unreadable(format!(
            "{MOST_REMEMBERED} files are processed and can neither be moved nor deleted: nothing new is taken"
        )));
    }
    let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).bits();
    let mut file = OpenOptions::new().read(true).custom_flags(flags as i32).open(&path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(Why::Special);
    }
    let version = Version::of(&metadata);
    let content = if version.length <= SMALL {
        Content::Read(whole(&mut file, version.length).map_err(failed)?.ok_or(Why::Growing)?)
    } else {
        Content::Open(file)
    };
    let soap = match &content {
        Content::Read(bytes) => is_soap(bytes),
        Content::Open(file) => {
            let mut start = vec![0; PROLOGUE];
            let count = file.read_at(&mut start, 0).map_err(failed)?;
            is_soap(&start[..count])
        }
    };
    Ok(Opened { at: At { path, version }, content, soap, claim })
}

/// The bytes of a file of this length; `None`: there are fewer by now, since it is written anew.
fn whole(file: &mut File, length: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(length).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 == length).then_some(bytes))
}

/// Whether what begins so looks like a SOAP 1.1 envelope.
fn is_soap(start: &[u8]) -> bool {
    let start = &start[..start.len().min(PROLOGUE)];
    memchr::memmem::find(start, message::SoapVersion::V11.namespace().as_bytes()).is_some()
}

/// Whether a file may be taken as it is now.
fn check(source: &Source, path: &Path, size: Option<Option<u64>>) -> Result<Version, Why> {
    let metadata = fs::symlink_metadata(path).map_err(|error| Why::from(Error::io(path, error)))?;
    if !metadata.is_file() {
        return Err(Why::Special);
    }
    if metadata.len() == 0 {
        return Err(Why::Empty);
    }
    if source.largest.is_some_and(|largest| metadata.len() > largest) {
        return Err(Why::TooLarge);
    }
    if size.is_some_and(|size| size != Some(metadata.len())) {
        return Err(Why::Growing);
    }
    if source.youngest.is_some() || source.oldest.is_some() {
        let changed = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let age = changed.elapsed().unwrap_or(Duration::ZERO);
        if source.youngest.is_some_and(|least| age < least) || source.oldest.is_some_and(|most| age > most) {
            return Err(Why::Age);
        }
    }
    Ok(Version::of(&metadata))
}

/// Whether a file was processed before and is only to be moved: `Some(true)`, now.
fn remembered(source: &Source, path: &Path, version: &Version) -> Option<bool> {
    let mut progress = lock(&source.state.0);
    let file = progress.remembered.get(path)?;
    if file.is(version) {
        return Some(file.again <= Instant::now());
    }
    // Another one of this name.
    progress.remembered.remove(path);
    drop(progress);
    records::write(source);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another program may empty a file between the look at its length and the read.
    #[test]
    fn a_file_that_has_become_shorter_is_no_message() {
        let path = std::env::temp_dir().join(format!("busbar-taking-{}", std::process::id()));
        fs::write(&path, "abc").expect("a file can be written");
        let read =
            |length| whole(&mut File::open(&path).expect("it is there"), length).expect("it can be read");
        assert_eq!(read(3).as_deref(), Some(&b"abc"[..]));
        assert_eq!(read(2).as_deref(), Some(&b"ab"[..]));
        assert_eq!(read(4), None);
        fs::remove_file(&path).expect("it is there");
    }
}
