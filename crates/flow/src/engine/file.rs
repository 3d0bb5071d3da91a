//! Sending to a file: `vfs:file:///out?transport.vfs.Append=true`.
//!
//! A file gets its name when it is whole and on the disk. What is added to one is taken back if not all of it could be added.
//! There is no answer: a `send` ends its flow, a `call` goes on with an empty message.

use crate::runtime::context::Context;
use bytes::{Buf, Bytes};
use expression::{DatePattern, Moment};
use files::Error;
use files::address::{Address, Wrong, not_here};
use files::claim::{self, Claim, Locking, Release, Turn};
use files::partial::{Existing, Partial, copy, is_partial};
use files::places::{self, NotDone};
use message::{Body, BodyError, Headers, Kind, MediaType};
use meter::Cancel;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use transport::{OutRequest, Response, SendError, SendErrorKind, Target};

/// How much of a stream is written at a time, in bytes.
const CHUNK: usize = 256 << 10;
/// How long a lock is waited for.
const LOCKED: Duration = Duration::from_secs(30);
/// The first and the longest pause between two looks at a lock.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(80)];
/// The name of a file where neither message nor address gives one.
const RESPONSE: &str = "response.xml";
/// The same, of one that is not text.
const BINARY: &str = "response.dat";

pub use files::address::instead;

/// The target of a connection for files: nothing listens on port 0.
pub fn target() -> Target {
    Target::http("vfs", 0)
}

/// Whether this is [`target`].
pub fn is_target(target: &Target) -> bool {
    target.port() == 0 && target.host() == "vfs"
}

/// Whether an address is one of files of this machine: `vfs:file:…`.
pub fn is_address(url: &str) -> bool {
    let mut parts = url.trim().splitn(3, ':');
    let mut is = |name: &str| parts.next().is_some_and(|part| part.eq_ignore_ascii_case(name));
    is("vfs") && (is("file") || url.trim()[4..].starts_with('/'))
}

/// How an address wants files to be written.
#[derive(Clone, Debug)]
pub struct Writing {
    path: PathBuf,
    /// The path is a directory, whether it is there or not.
    directory: bool,
    name: Option<String>,
    append: bool,
    create: bool,
    locking: Locking,
    /// It keeps the time that the message says (`LAST_MODIFIED`).
    keeps_time: bool,
    below: Option<DatePattern>,
}

/// A remark on an address.
#[derive(Clone, Debug)]
pub enum Remark {
    /// The address is not usable, or an option of it has a wrong value: what is wrong, and what is expected.
    Wrong(String, String),
    /// There is no such option.
    Unknown(String),
    /// An option has no effect, and why.
    NotNeeded(String, &'static str),
}

/// The options that have a meaning.
pub const OPTIONS: &[&str] = &[
    "transport.vfs.ReplyFileName",
    "transport.vfs.Append",
    "transport.vfs.CreateFolder",
    "transport.vfs.Locking",
    "transport.vfs.AutoLockRelease",
    "transport.vfs.AutoLockReleaseInterval",
    "transport.vfs.LockReleaseSameNode",
    "transport.vfs.UpdateLastModified",
    "transport.vfs.SubFolderTimestampFormat",
];

/// Options that WSO2 needs, and their reasons.
const NOT_NEEDED: &[(&str, &str)] = &[
    ("transport.vfs.UseTempFile", "each file gets its name when it is whole"),
    ("transport.vfs.SendFileSynchronously", "the flow goes on when the file is there"),
    ("transport.vfs.FileType", "bytes are written as they are"),
    ("transport.vfs.FileNamePattern", "it chooses among files that are read"),
    (
        "transport.vfs.MaxRetryCount",
        "this machine needs no connection; `retryConfig` of the endpoint tries again",
    ),
    ("transport.vfs.ReconnectTimeout", "this machine needs no connection"),
    ("transport.vfs.DistributedLock", "the lock file holds among all who see the directory"),
    ("transport.vfs.DistributedTimeout", "the lock file holds among all who see the directory"),
    ("transport.vfs.ResolveHostsDynamically", "this machine needs no host name"),
    ("transport.vfs.ClusterAware", "the lock file holds among all who see the directory"),
    ("transport.vfs.IsMounted", "this machine needs no connection"),
    ("vfs.passive", "it is for FTP"),
    ("sftpPathFromRoot", "it is for SFTP"),
];

impl Writing {
    /// Reads an address, with what is to be said of it; `None`: it cannot be used.
    pub fn parse(url: &str, remarks: &mut Vec<Remark>) -> Option<Writing> {
        let address = match Address::parse(url) {
            Ok(address) => address,
            Err(Wrong::Scheme(scheme)) => {
                remarks.push(Remark::Wrong(not_here(&scheme), instead(&scheme).to_owned()));
                return None;
            }
            Err(Wrong::Text(why)) => {
                remarks.push(Remark::Wrong("it is not an address of a file".to_owned(), why.to_owned()));
                return None;
            }
        };
        let mut writing = Writing {
            path: address.path,
            directory: address.directory,
            name: None,
            append: false,
            create: false,
            locking: Locking { beside: true, release: None },
            keeps_time: false,
            below: None,
        };
        let (mut releases, mut after, mut own_machine) = (false, Duration::ZERO, false);
        let mut usable = true;
        for (name, value) in &address.options {
            let value = value.trim();
            let mut truth = |remarks: &mut Vec<Remark>| match value.to_ascii_lowercase().as_str() {
                "true" => true,
                "false" => false,
                _ => {
                    let message = format!("`{name}` cannot be `{value}`");
                    remarks.push(Remark::Wrong(message, "expected true or false".to_owned()));
                    usable = false;
                    false
                }
            };
            match name.as_str() {
                "transport.vfs.ReplyFileName" => {
                    writing.name = Some(value.to_owned()).filter(|name| !name.is_empty())
                }
                "transport.vfs.Append" => writing.append = truth(remarks),
                "transport.vfs.CreateFolder" => writing.create = truth(remarks),
                "transport.vfs.AutoLockRelease" => releases = truth(remarks),
                "transport.vfs.LockReleaseSameNode" => own_machine = truth(remarks),
                "transport.vfs.UpdateLastModified" => writing.keeps_time = !truth(remarks),
                "transport.vfs.Locking" => match value.to_ascii_lowercase().as_str() {
                    "enable" => writing.locking.beside = true,
                    "disable" => writing.locking.beside = false,
                    _ => {
                        let message = format!("`{name}` cannot be `{value}`");
                        remarks.push(Remark::Wrong(message, "expected enable or disable".to_owned()));
                        usable = false;
                    }
                },
                "transport.vfs.AutoLockReleaseInterval" => match value.parse() {
                    Ok(milliseconds) => after = Duration::from_millis(milliseconds),
                    Err(_) => {
                        let message = format!("`{name}` cannot be `{value}`");
                        remarks.push(Remark::Wrong(message, "expected milliseconds".to_owned()));
                        usable = false;
                    }
                },
                "transport.vfs.SubFolderTimestampFormat" => match DatePattern::simple(value) {
                    Ok(format) => writing.below = Some(format),
                    Err(why) => {
                        remarks.push(Remark::Wrong(format!("`{name}` cannot be `{value}`"), why));
                        usable = false;
                    }
                },
                name => match NOT_NEEDED.iter().find(|(option, _)| *option == name) {
                    Some((_, why)) => remarks.push(Remark::NotNeeded(name.to_owned(), why)),
                    None => remarks.push(Remark::Unknown(name.to_owned())),
                },
            }
        }
        writing.locking.release = releases.then_some(Release { after, own_machine });
        usable.then_some(writing)
    }

    /// The file that a message goes to; with the directory in which it got its name, if it did.
    fn file(&self, name: &Name) -> Result<(PathBuf, Option<PathBuf>), Error> {
        let is_directory = match fs::metadata(&self.path) {
            Ok(metadata) => metadata.is_dir(),
            Err(error) if error.kind() == ErrorKind::NotFound => self.directory || self.create,
            Err(error) => return Err(Error::io(&self.path, error)),
        };
        if !is_directory {
            return Ok((self.path.clone(), None));
        }
        let mut directory = self.path.clone();
        if let Some(below) = &self.below {
            directory.push(formatted(below)?);
        }
        let refused = |why: &str| refused(Path::new(&name.text), why);
        let path = files::path::below(&directory, &name.text).map_err(refused)?;
        match path == directory {
            true => Err(refused("names no file")),
            false => Ok((path, Some(directory))),
        }
    }
}

/// The error of a wrong message, not of a wrong place.
fn refused(path: &Path, why: &str) -> Error {
    Error::io(path, io::Error::new(ErrorKind::InvalidInput, why))
}

/// The time now by a pattern.
pub(crate) fn formatted(pattern: &DatePattern) -> Result<String, Error> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let text = Moment::of(i64::try_from(now.as_millis()).unwrap_or_default())
        .and_then(|moment| pattern.format(&moment));
    text.map_err(|why| Error::io(Path::new(""), io::Error::new(ErrorKind::InvalidInput, why)))
}

/// The file that a message came from: what its headers say of it names no other file, unless the flow has changed that.
pub(crate) struct Arrived {
    pub(crate) name: String,
}

/// The name of a file.
struct Name {
    text: String,
    /// The message gives the name: a wrong name is not a fault of the place.
    by_message: bool,
}

/// The name that the message gives its file: `transport.vfs.ReplyFileName`, then `FILE_NAME`.
fn name(context: &Context, headers: &Headers, given: Option<&str>) -> Name {
    let header = |name: &str| headers.get(name).map(str::trim).filter(|name| !name.is_empty());
    let arrived = context.attached::<Arrived>();
    let set = header("FILE_NAME").filter(|name| arrived.as_ref().is_none_or(|arrived| arrived.name != *name));
    let named = header("transport.vfs.ReplyFileName").or(set);
    let by_message = named.is_some() || given.is_none();
    let text = named.or(given).or(header("FILE_NAME")).map(str::to_owned);
    match text {
        Some(text) => Name { text, by_message },
        None => {
            let kind = headers.get("Content-Type").map(|value| MediaType::parse(value).kind());
            let text = if matches!(kind, Some(Kind::Binary)) { BINARY } else { RESPONSE }.to_owned();
            Name { text, by_message: false }
        }
    }
}

/// Writes a message where an address says; it may take so long.
pub(crate) async fn send(
    context: &Context,
    request: OutRequest<'_>,
    longest: Duration,
) -> Result<Response, SendError> {
    let fails =
        |kind, intact| SendError { kind, target: target(), nothing_processed: true, body_intact: intact };
    let mut remarks = Vec::new();
    let Some(writing) = Writing::parse(request.target, &mut remarks) else {
        return Err(fails(SendErrorKind::BadRequest("the address is none of a file of this machine"), true));
    };
    let body = std::mem::take(request.body);
    let written = write(context, writing, None, request.headers, body);
    match tokio::time::timeout(longest, written).await {
        Ok(Ok(())) => Ok(Response::empty(200)),
        Ok(Err(Failed::Body(error))) => Err(fails(SendErrorKind::RequestBody(error), false)),
        Ok(Err(Failed::File(error, body))) => {
            let intact = body.is_some();
            if let Some(body) = body {
                *request.body = body;
            }
            if error.kind() == Some(ErrorKind::InvalidInput) {
                // The message is wrong, and not the place.
                let message =
                    "the name of its file leads out of the directory, or is none that can be written there";
                return Err(fails(SendErrorKind::BadRequest(message), intact));
            }
            let text = io::Error::new(error.kind().unwrap_or(ErrorKind::Other), error.to_string());
            Err(fails(SendErrorKind::Write(Arc::new(text)), intact))
        }
        Err(_) => Err(fails(SendErrorKind::WriteTimeout, false)),
    }
}

/// Why a message could not be written.
pub(crate) enum Failed {
    /// It did not arrive whole.
    Body(BodyError),
    /// The file; with the body, where nothing of it was used.
    File(Error, Option<Body>),
}

/// Writes a message. `given`: the name of its file, unless it says one.
pub(crate) async fn write(
    context: &Context,
    mut writing: Writing,
    given: Option<String>,
    headers: &Headers,
    mut body: Body,
) -> Result<(), Failed> {
    writing.name = writing.name.take().or(given);
    let name = name(context, headers, writing.name.as_deref());
    let modified = headers.get("LAST_MODIFIED").filter(|_| writing.keeps_time);
    let modified = modified.and_then(|value| value.trim().parse().ok()).map(Duration::from_millis);
    // A job whose flow is gone ends when it next looks at this flag.
    let ends = Ends(Cancel::default());
    let cancel = ends.0.clone();
    let mut over = filled(&mut body).await?;
    let place = match on_thread(move || Place::of(&writing, &name, modified, cancel)).await {
        Ok(place) => Arc::new(place),
        Err(error) => return Err(Failed::File(error, Some(body))),
    };
    let whole = if over {
        Whole::Held(taken(&mut body))
    } else {
        // What arrives later waits beside its place: a slow client keeps no lock.
        let beside = Arc::clone(&place);
        let mut partial = match when_free((), move |()| beside.begin()).await {
            Ok(partial) => partial,
            Err((error, _)) => return Err(Failed::File(error, Some(body))),
        };
        loop {
            let (chunk, cancel) = (taken(&mut body), place.cancel.clone());
            let written = on_thread(move || {
                partial.copy_from(&mut chunk.reader().take(u64::MAX), &cancel)?;
                Ok(partial)
            });
            partial = written.await.map_err(|error| Failed::File(error, None))?;
            if over || body.is_complete() && body.buffered().is_empty() {
                break Whole::Spooled(partial);
            }
            over = filled(&mut body).await?;
        }
    };
    when_free(whole, move |whole| place.put(whole)).await.map_err(|(error, whole)| {
        let body = match whole {
            Some(Whole::Held(bytes)) => Some(Body::Bytes(bytes)),
            _ => None,
        };
        Failed::File(error, body)
    })
}

/// What has arrived of a body.
fn taken(body: &mut Body) -> Bytes {
    match body {
        Body::Bytes(bytes) => std::mem::take(bytes),
        body => {
            let chunk = Bytes::copy_from_slice(body.buffered());
            body.consume(chunk.len());
            chunk
        }
    }
}

/// Does a job on a thread that may wait for a disk.
async fn on_thread<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let not_done = |why: NotDone| Error::io(Path::new(""), why.into());
    places::run(job).await.unwrap_or_else(|why| Err(not_done(why)))
}

/// Does a job with something, again and again while a file is locked. No thread waits meanwhile: whoever has the lock may need one.
///
/// # Errors
/// What the job says; with what it was to be done with, unless that is lost.
async fn when_free<W: Send + 'static, T: Send + 'static>(
    with: W,
    job: impl Fn(&mut W) -> Result<T, Error> + Clone + Send + 'static,
) -> Result<T, (Error, Option<W>)> {
    let (end, [mut pause, longest]) = (Instant::now() + LOCKED, PAUSES);
    let mut given = with;
    loop {
        let job = job.clone();
        let done = on_thread(move || {
            let done = job(&mut given);
            Ok((done, given))
        });
        match done.await {
            Ok((Ok(done), _)) => return Ok(done),
            Ok((Err(Error::Locked(_)), with)) if Instant::now() < end => given = with,
            Ok((Err(error), with)) => return Err((error, Some(with))),
            Err(error) => return Err((error, None)),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// Receives what is written at a time; whether that is the end of the body.
async fn filled(body: &mut Body) -> Result<bool, Failed> {
    let mut over = body.is_complete();
    while !over && body.buffered().len() < CHUNK {
        over = !body.more().await.map_err(Failed::Body)?;
    }
    Ok(over)
}

struct Ends(Cancel);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Where a message goes.
struct Place {
    path: PathBuf,
    /// The directory, if the message gives the name of its file.
    directory: Option<PathBuf>,
    append: bool,
    locking: Locking,
    modified: Option<Duration>,
    cancel: Cancel,
}

/// A message that is there as a whole.
enum Whole {
    Held(Bytes),
    Spooled(Partial),
    /// It is in its place, or half of it was.
    Used,
}

/// What is added to a file; if it is not finished, the file is cut back to its length before.
struct Added {
    file: File,
    before: u64,
    finished: bool,
    _turn: Turn,
}

impl Drop for Added {
    fn drop(&mut self) {
        if !self.finished {
            let _ = self.file.set_len(self.before);
        }
    }
}

impl Place {
    fn of(
        writing: &Writing,
        name: &Name,
        modified: Option<Duration>,
        cancel: Cancel,
    ) -> Result<Place, Error> {
        let (path, directory) = writing.file(name)?;
        // Of a name that the message says, no directory is made.
        let directory = directory.filter(|_| name.by_message);
        let parent = path.parent().unwrap_or(Path::new("/"));
        let parent = directory.as_deref().unwrap_or(parent);
        // Where the address names a file, its directory is made too, as in WSO2.
        if writing.create || writing.below.is_some() || path == writing.path || parent != writing.path {
            fs::create_dir_all(parent).map_err(|error| Error::io(parent, error))?;
        }
        if let Some(directory) = &directory {
            can_be_named(&path, directory)?;
        }
        Ok(Place { path, directory, append: writing.append, locking: writing.locking, modified, cancel })
    }

    /// Whose fault it is.
    fn blamed(&self, error: Error) -> Error {
        match &self.directory {
            Some(directory) if is_of_name(&error, &self.path, directory) => {
                refused(&self.path, &error.to_string())
            }
            _ => error,
        }
    }

    /// Begins a file beside the place, once nobody has a lock on that.
    fn begin(&self) -> Result<Partial, Error> {
        let begun = claimed(&self.path, self.locking)
            .and_then(|_claim| Partial::begin(&self.path, Existing::Replace, false));
        begun.map_err(|error| self.blamed(error))
    }

    /// Puts a message into its place.
    fn put(&self, whole: &mut Whole) -> Result<(), Error> {
        if self.cancel.is_cancelled() {
            return Err(Error::Abandoned);
        }
        let claim = claimed(&self.path, self.locking).map_err(|error| self.blamed(error))?;
        let metadata = fs::metadata(&self.path).ok();
        if self.append && metadata.is_some_and(|metadata| metadata.is_file()) {
            return self.add(whole, &claim);
        }
        let mut partial = match std::mem::replace(whole, Whole::Used) {
            Whole::Held(bytes) => {
                let begun = Partial::begin(&self.path, Existing::Replace, false);
                let mut partial = match begun {
                    Ok(partial) => partial,
                    Err(error) => {
                        *whole = Whole::Held(bytes);
                        return Err(self.blamed(error));
                    }
                };
                partial.copy_from(&mut bytes.reader(), &self.cancel)?;
                partial
            }
            Whole::Spooled(partial) => partial,
            Whole::Used => return Ok(()),
        };
        if let Some(modified) = self.modified {
            let modified = SystemTime::UNIX_EPOCH + modified;
            partial.file()?.set_modified(modified).map_err(|error| Error::io(&self.path, error))?;
        }
        partial.sync()?;
        partial.finish()
    }

    /// Adds a message to the file that is there.
    fn add(&self, whole: &mut Whole, claim: &Claim) -> Result<(), Error> {
        let failed = |error| Error::io(&self.path, error);
        let turn = claim::try_turn(&self.path).ok_or_else(|| Error::Locked(self.path.clone()))?;
        let opened = OpenOptions::new().append(true).open(&self.path);
        let file = opened.map_err(failed).map_err(|error| self.blamed(error))?;
        let before = file.metadata().map_err(failed)?;
        claim.adding(&before).map_err(failed)?;
        let mut added = Added { file, before: before.len(), finished: false, _turn: turn };
        match std::mem::replace(whole, Whole::Used) {
            Whole::Held(bytes) => added.file.write_all(&bytes).map_err(failed)?,
            Whole::Spooled(partial) => {
                copy(&mut partial.reader()?, &mut added.file, &self.path, &self.cancel)?;
            }
            Whole::Used => {}
        }
        added.file.sync_data().map_err(failed)?;
        if let Some(modified) = self.modified {
            added.file.set_modified(SystemTime::UNIX_EPOCH + modified).map_err(failed)?;
        }
        claim.added().map_err(failed)?;
        added.finished = true;
        Ok(())
    }
}

/// Claims a file, and says what was cut off it.
///
/// # Errors
/// As [`claim::claim`].
pub(crate) fn claimed(path: &Path, locking: Locking) -> Result<Claim, Error> {
    let claim = claim::claim(path, locking)?;
    if claim.cut() > 0 {
        let path = path.display();
        tracing::warn!(
            "{} bytes are cut off {path}: a process was killed while it was adding them",
            claim.cut()
        );
    }
    Ok(claim)
}

/// Whether a file may have a name that its message says, in a directory that the message does not choose.
fn can_be_named(path: &Path, directory: &Path) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    // No source takes such a file, and the next writer would wait for the lock that it looks like.
    if claim::is_lock(name) || std::str::from_utf8(name).is_ok_and(is_partial) {
        return Err(refused(path, "is a name of locks and of files on their way"));
    }
    fs::metadata(directory).map_err(|error| Error::io(directory, error))?;
    if !path.parent().is_some_and(Path::is_dir) {
        return Err(refused(path, "leads through a directory that is not there"));
    }
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(refused(path, "is a directory")),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            let error = Error::io(path, error);
            Err(if is_of_name(&error, path, directory) { refused(path, &error.to_string()) } else { error })
        }
        _ => Ok(()),
    }
}

/// Whether another name in the same directory would have been written.
fn is_of_name(error: &Error, path: &Path, directory: &Path) -> bool {
    match error.kind() {
        // A lock beside it has a longer name.
        Some(ErrorKind::InvalidFilename | ErrorKind::NotADirectory | ErrorKind::IsADirectory) => true,
        Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => path.parent() != Some(directory),
        Some(_) => false,
        None => matches!(error, Error::Directory(_) | Error::NoFile(_)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of files in a directory of the test, with what a name is to be.
    fn begun(root: &Path, options: &str, text: &str, by_message: bool) -> Result<(), Error> {
        let url = format!("vfs:file://{}?{options}", root.display());
        let writing = Writing::parse(&url, &mut Vec::new()).unwrap();
        let name = Name { text: text.to_owned(), by_message };
        let place = Place::of(&writing, &name, None, Cancel::default())?;
        place.put(&mut Whole::Held(Bytes::from_static(b"x")))
    }

    fn place(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("busbar-names-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        root
    }

    fn names(root: &Path) -> Vec<String> {
        let entries = fs::read_dir(root).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_name_that_cannot_be_is_the_fault_of_the_message() {
        let root = place("fault");
        let long = "z".repeat(300);
        let (below, through) = (format!("sub/{long}"), format!("{long}/b"));
        let with_lock = "z".repeat(252);
        let all = [
            "",
            "transport.vfs.Append=true",
            "transport.vfs.CreateFolder=true",
            "transport.vfs.Locking=disable",
        ];
        for options in all {
            for name in [
                long.as_str(),
                "file/b",
                "sub",
                "new/b",
                "/new/deep/b",
                below.as_str(),
                through.as_str(),
                "..",
            ] {
                let error = begun(&root, options, name, true).unwrap_err();
                assert_eq!(error.kind(), Some(ErrorKind::InvalidInput), "{options} {name}: {error}");
            }
            assert_eq!(names(&root), ["file", "sub"], "{options}: no directory is made");
        }
        let error = begun(&root, "", &with_lock, true).unwrap_err();
        assert_eq!(error.kind(), Some(ErrorKind::InvalidInput), "{error}");
        for name in ["sub/a", "/sub/../b", "file", "new/../c"] {
            begun(&root, "", name, true).unwrap();
        }
        assert_eq!(names(&root), ["b", "c", "file", "sub"]);
        // The address says what is made.
        begun(&root, "", "new/d", false).unwrap();
        begun(&root.join("made"), "transport.vfs.CreateFolder=true", "e", true).unwrap();
        begun(&root, "transport.vfs.SubFolderTimestampFormat='t'", "f", true).unwrap();
        assert_eq!(names(&root), ["b", "c", "file", "made", "new", "sub", "t"]);
        // What is wrong with the place is not the message's fault.
        for options in ["", "transport.vfs.Locking=disable"] {
            let error = begun(&root.join("none/"), options, "a", true).unwrap_err();
            assert_eq!(error.kind(), Some(ErrorKind::NotFound), "{error}");
            let error = begun(&root.join("file/none/"), options, "a", true).unwrap_err();
            assert_eq!(error.kind(), Some(ErrorKind::NotADirectory), "{error}");
            let error = begun(&root, options, "sub", false).unwrap_err();
            assert!(matches!(error, Error::Directory(_)), "{error}");
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn no_message_makes_locks() {
        let root = place("locks");
        for name in ["good.xml.lock", ".busbar-1.tmp", ".busbar-lock-1.tmp", "sub/a.lock", "x/../.lock"] {
            for options in ["", "transport.vfs.Locking=disable"] {
                let error = begun(&root, options, name, true).unwrap_err();
                assert_eq!(error.kind(), Some(ErrorKind::InvalidInput), "{options} {name}: {error}");
            }
        }
        assert_eq!(
            (names(&root), names(&root.join("sub"))),
            (vec!["file".to_owned(), "sub".to_owned()], vec![])
        );
        for name in ["good.xml", "lock", "a.locked", ".busbar-1", "1.tmp"] {
            begun(&root, "", name, true).unwrap();
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_is_said_of_an_address() {
        for (url, says, usable) in [
            ("vfs:file:///out", "", true),
            ("vfs:file:///out?transport.vfs.Append=true&transport.vfs.Locking=disable", "", true),
            ("vfs:file:///out?transport.vfs.Apend=true", "Unknown(\"transport.vfs.Apend\")", true),
            ("vfs:file:///out?transport.vfs.Append=yes", "expected true or false", false),
            ("vfs:file:///out?transport.vfs.Locking=on", "expected enable or disable", false),
            ("vfs:file:///out?transport.vfs.SubFolderTimestampFormat=bb", "SubFolderTimestampFormat", false),
            ("vfs:file:///out?transport.vfs.UseTempFile=true", "when it is whole", true),
            ("vfs:sftp://h/out", "over `sftp`", false),
            ("vfs:file://out", "three slashes", false),
        ] {
            let mut remarks = Vec::new();
            let parsed = Writing::parse(url, &mut remarks);
            assert_eq!(parsed.is_some(), usable, "{url}: {remarks:?}");
            let text = format!("{remarks:?}");
            assert!(if says.is_empty() { remarks.is_empty() } else { text.contains(says) }, "{url}: {text}");
        }
        for (url, is) in [
            ("vfs:file:///x", true),
            ("VFS:File:/x", true),
            ("vfs:/x", true),
            ("vfs:sftp://x", false),
            ("file:///x", false),
            ("vfs:", false),
            ("http://vfs:file", false),
        ] {
            assert_eq!(is_address(url), is, "{url}");
        }
    }
}
