//! Claims on files: one operation works on a file at a time.
//!
//! A claim holds among the operations of this process. Where other programs are to see it, there is a file beside the claimed one
//! (`NAME.lock`), as WSO2 makes it. Such a file is there for other programs; among processes of this bus, also on other machines that
//! share the disk, what counts is that the process that made it has it locked (`flock`): where none has, it was left behind by a
//! process that was killed, and is taken over at once. It is made under another name and locked before it gets its own, so
//! that there is no moment at which one of ours looks like one of another program.
//!
//! While a file is added to, its lock says how long it was before ([`Claim::adding`]): should the process be killed meanwhile, whoever takes
//! the lock over cuts the file back, so that no half message is followed by another one.

use crate::Error;
use crate::partial::name;
use meter::Cancel;
use rustix::fs::{FlockOperation, flock};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// What the file of a lock of this bus begins with.
const MARK: &str = "busbar ";
/// What the name of such a file begins with until it has its own.
const BEGUN: &str = ".busbar-lock-";
/// A line of such a file: to the claimed one is being added. Then how long it was, which one it is, and since which start of the machine.
const ADDING: &str = "adding ";
/// A line of such a file: what was added is whole.
const ADDED: &str = "added";
/// Most of the file of a lock that is read.
const MOST: u64 = 4096;
/// After this time the file of a lock that has not got its name was left behind.
const UNNAMED: Duration = Duration::from_secs(60);
/// How often a lock is tried that others make and take away meanwhile.
const TRIES: usize = 8;

/// What a claim consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locking {
    /// There is a file beside the claimed one.
    pub beside: bool,
    /// Such files of other programs are taken away; `None`: they stand for ever.
    pub release: Option<Release>,
}

/// When the lock file of another program was left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// It is older than this.
    pub after: Duration,
    /// Only one that names this machine.
    pub own_machine: bool,
}

/// Paths that are claimed in this process, and those that are added to.
#[derive(Default)]
struct Table {
    claimed: Mutex<HashSet<PathBuf>>,
    adding: Mutex<HashSet<PathBuf>>,
    added: Condvar,
}

static TABLE: LazyLock<Table> = LazyLock::new(Table::default);

/// A claim, until it is dropped.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// The file beside it, and its path.
    file: Option<(PathBuf, File)>,
    /// What was cut off.
    cut: u64,
}

/// The file of a lock, locked.
struct Lock {
    file: File,
    /// What a process that was killed was adding to.
    before: Option<Before>,
}

/// A file before something was added to it.
#[derive(Debug, PartialEq, Eq)]
struct Before {
    length: u64,
    /// Which file: the claimed name may be that of another one by now.
    file: String,
}

/// Whether a name is that of the file of a lock.
pub fn is_lock(name: &[u8]) -> bool {
    name.ends_with(b".lock")
}

/// Claims a file.
///
/// # Errors
/// [`Error::Locked`]: another operation or program has it. [`Error::Lock`]: the file beside it cannot be made.
pub fn claim(path: &Path, locking: Locking) -> Result<Claim, Error> {
    // A directory may have several names.
    let canonical = path.parent().and_then(|parent| fs::canonicalize(parent).ok()).zip(path.file_name());
    let canonical = canonical.map_or_else(|| path.to_owned(), |(parent, name)| parent.join(name));
    if !TABLE.claimed.lock().unwrap_or_else(PoisonError::into_inner).insert(canonical.clone()) {
        return Err(Error::Locked(path.to_owned()));
    }
    let mut claim = Claim { path: canonical, file: None, cut: 0 };
    if locking.beside {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let beside = PathBuf::from(name);
        match file_of_lock(&beside, locking.release) {
            Ok(Some(lock)) => {
                // Where that fails, the file of the lock stays as it is.
                let before = lock.before;
                claim.cut = before
                    .map_or(Ok(0), |before| cut(path, &before))
                    .map_err(|error| Error::io(path, error))?;
                claim.file = Some((beside, lock.file));
            }
            Ok(None) => return Err(Error::Locked(path.to_owned())),
            Err(error) => return Err(Error::Lock(beside, error.into())),
        }
    }
    Ok(claim)
}

impl Claim {
    /// How many bytes of a message that a killed process was adding were cut off.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// From now on something is added to the file, which is `before`. Without a file beside it, a process that is killed leaves half of it.
    ///
    /// # Errors
    /// It cannot be written down.
    pub fn adding(&self, before: &fs::Metadata) -> io::Result<()> {
        self.note(&format!("{ADDING}{} {} {}\n", before.len(), which(before), boot()))
    }

    /// What was added is whole, and stays.
    ///
    /// # Errors
    /// It cannot be written down: it may be cut off again.
    pub fn added(&self) -> io::Result<()> {
        self.note(&format!("{ADDED}\n"))
    }

    fn note(&self, line: &str) -> io::Result<()> {
        let Some((path, _)) = &self.file else { return Ok(()) };
        match OpenOptions::new().append(true).open(path) {
            Ok(mut file) => file.write_all(line.as_bytes()),
            // Another program has taken it away.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Cuts a file back to what it was; how many bytes were too many.
fn cut(path: &Path, before: &Before) -> io::Result<u64> {
    match fs::metadata(path) {
        Ok(now) if now.is_file() && which(&now) == before.file && now.len() > before.length => {
            OpenOptions::new().write(true).open(path)?.set_len(before.length)?;
            Ok(now.len() - before.length)
        }
        // It is gone, or another one is there.
        _ => Ok(0),
    }
}

/// A file, whatever its name is.
fn which(metadata: &fs::Metadata) -> String {
    format!("{}:{}", metadata.dev(), metadata.ino())
}

/// What was added to and is not whole, as the file of a lock says. After the machine was started again, nobody knows which of its lines have
/// reached the disk: nothing is cut off then.
fn before(text: &str) -> Option<Before> {
    let (lines, _) = text.rsplit_once('\n')?;
    let mut words = lines.lines().next_back()?.strip_prefix(ADDING)?.split(' ');
    let (length, file, since) = (words.next()?.parse().ok()?, words.next()?.to_owned(), words.next()?);
    (!since.is_empty() && since == boot()).then_some(Before { length, file })
}

/// Which start of the machine this is; nothing if the system does not say.
fn boot() -> &'static str {
    static BOOT: LazyLock<String> = LazyLock::new(|| {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    });
    &BOOT
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((path, _locked)) = &self.file {
            // Removed before it is unlocked: no other process may take over a lock file that is then removed.
            let _ = fs::remove_file(path);
        }
        TABLE.claimed.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.path);
    }
}

/// Makes the file of a lock, or takes over one that was left behind; `None`: another process has the lock.
fn file_of_lock(path: &Path, release: Option<Release>) -> io::Result<Option<Lock>> {
    for _ in 0..TRIES {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => match made(path)? {
                Some(file) => return Ok(Some(Lock { file, before: None })),
                None => continue,
            },
            Err(error) => return Err(error),
        };
        if !metadata.is_file() {
            return Ok(None);
        }
        let options = rustix::fs::OFlags::NOFOLLOW.union(rustix::fs::OFlags::NONBLOCK).bits();
        let opened = OpenOptions::new().read(true).custom_flags(options as i32).open(path);
        let mut file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            // Another program has it.
            Err(_) => return Ok(None),
        };
        let mut text = Vec::new();
        (&mut file).take(MOST).read_to_end(&mut text)?;
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
        if locked.is_err_and(|why| why == rustix::io::Errno::WOULDBLOCK) {
            return Ok(None);
        }
        // Where the disk knows no locks, the file alone tells: as one of another program.
        let left_behind = text.starts_with(MARK.as_bytes()) && locked.is_ok();
        if !left_behind && !release.is_some_and(|release| release.holds(&metadata, &text)) {
            return Ok(None);
        }
        // It may be gone, and another one of this name there.
        let opened_metadata = file.metadata()?;
        match fs::symlink_metadata(path) {
            Ok(now) if (now.dev(), now.ino()) == (opened_metadata.dev(), opened_metadata.ino()) => {}
            _ => continue,
        }
        if left_behind {
            // It may have said more before it was unlocked.
            text.clear();
            file.seek(SeekFrom::Start(0))?;
            (&mut file).take(MOST).read_to_end(&mut text)?;
            let before = before(&String::from_utf8_lossy(&text));
            return Ok(Some(Lock { file, before }));
        }
        fs::remove_file(path)?;
    }
    Ok(None)
}

/// Takes away what a killed process left in a directory: a lock file of a file that is gone, or one that had not got its name yet.
pub fn sweep(path: &Path) {
    let name = path.file_name().map(|name| name.as_bytes()).unwrap_or_default();
    let Some(target) = name.strip_suffix(b".lock") else {
        let is_old = fs::symlink_metadata(path).is_ok_and(|metadata| {
            metadata.is_file()
                && metadata.modified().is_ok_and(|made| made.elapsed().is_ok_and(|age| age > UNNAMED))
        });
        // Whatever is in it: the process may have ended before it wrote anything.
        if is_old && name.starts_with(BEGUN.as_bytes()) {
            let _ = fs::remove_file(path);
        }
        return;
    };
    let target = path.with_file_name(OsStr::from_bytes(target));
    let is_gone = || fs::symlink_metadata(&target).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if is_gone()
        && let Ok(Some(_locked)) = file_of_lock(path, None)
        && is_gone()
    {
        let _ = fs::remove_file(path);
    }
}

impl Release {
    fn holds(&self, metadata: &fs::Metadata, text: &[u8]) -> bool {
        let age = metadata.modified().ok().and_then(|made| made.elapsed().ok()).unwrap_or_default();
        let host = host();
        let names_it = || text.windows(host.len().max(1)).any(|part| part == host.as_bytes());
        age >= self.after && (!self.own_machine || names_it())
    }
}

/// Makes the file of a lock, locked; `None`: another process was faster.
fn made(path: &Path) -> io::Result<Option<File>> {
    let begun = path.with_file_name(name(BEGUN));
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&begun)?;
    let linked = (|| {
        writeln!(file, "{MARK}{} {}", host(), std::process::id())?;
        // A disk that knows no locks has the file.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        fs::hard_link(&begun, path)
    })();
    let _ = fs::remove_file(&begun);
    match linked {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
            // No links in this file system.
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
            let mut file = match file {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
                Err(error) => return Err(error),
            };
            let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
            writeln!(file, "{MARK}{} {}", host(), std::process::id())?;
            Ok(Some(file))
        }
        Err(error) => Err(error),
    }
}

/// The name of this machine.
fn host() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let name =
            fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
        let name = name.map(|name| name.trim().to_owned()).unwrap_or_default();
        if name.is_empty() { "localhost".to_owned() } else { name }
    });
    &NAME
}

/// The turn of an operation that adds to a file, until it is dropped.
#[derive(Debug)]
pub struct Turn(PathBuf);

/// Waits for the turn: of two operations of this process that add to a file, one comes after the other.
///
/// # Errors
/// The operation was cancelled.
pub fn turn(path: &Path, cancel: &Cancel) -> Result<Turn, Error> {
    let path = &one_name(path);
    let mut adding = TABLE.adding.lock().unwrap_or_else(PoisonError::into_inner);
    while adding.contains(path) {
        if cancel.is_cancelled() {
            return Err(Error::Abandoned);
        }
        let waited = TABLE.added.wait_timeout(adding, Duration::from_millis(200));
        adding = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    adding.insert(path.to_owned());
    Ok(Turn(path.to_owned()))
}

/// As [`turn`], without waiting; `None`: another operation has it.
pub fn try_turn(path: &Path) -> Option<Turn> {
    let path = one_name(path);
    let mut adding = TABLE.adding.lock().unwrap_or_else(PoisonError::into_inner);
    adding.insert(path.clone()).then(|| Turn(path))
}

/// A file may have several names.
fn one_name(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

impl Drop for Turn {
    fn drop(&mut self) {
        TABLE.adding.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        TABLE.added.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn place(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("busbar-claim-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        directory.join("a.xml")
    }

    fn beside(release: Option<Release>) -> Locking {
        Locking { beside: true, release }
    }

    #[test]
    fn a_file_has_one_claim() {
        let path = place("one");
        let lock = path.with_file_name("a.xml.lock");
        let first = claim(&path, beside(None)).unwrap();
        assert!(lock.exists());
        assert!(matches!(claim(&path, beside(None)), Err(Error::Locked(_))));
        assert!(matches!(claim(&path, Locking::default()), Err(Error::Locked(_))));
        // As another process sees it.
        assert!(file_of_lock(&lock, None).unwrap().is_none());
        let release = Release { after: Duration::ZERO, own_machine: false };
        assert!(file_of_lock(&lock, Some(release)).unwrap().is_none(), "it is held");
        drop(first);
        assert!(!lock.exists());
        assert!(claim(&path, beside(None)).is_ok());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn what_a_killed_process_was_adding_is_cut_off() {
        let path = place("adding");
        let lock = path.with_file_name("a.xml.lock");
        fs::write(&path, "onetwo").unwrap();
        let now = || fs::metadata(&path).unwrap();
        let (here, boot) = (which(&now()), boot());
        for (notes, left) in [
            (format!("adding 3 {here} {boot}\n"), "one"),
            (format!("adding 1 {here} {boot}\nadded\nadding 3 {here} {boot}\n"), "one"),
            (format!("adding 3 {here} {boot}\nadded\n"), "onetwo"),
            (format!("adding 30 {here} {boot}\n"), "onetwo"),
            (format!("adding 3 {here} {boot}"), "onetwo"),
            (format!("adding 3 1:1 {boot}\n"), "onetwo"),
            (format!("adding 3 {here} 0f5d-another-start\n"), "onetwo"),
            (format!("adding 3 {here} \n"), "onetwo"),
            (format!("adding -3 {here} {boot}\n"), "onetwo"),
            ("adding\n".to_owned(), "onetwo"),
            (String::new(), "onetwo"),
        ] {
            fs::write(&path, "onetwo").unwrap();
            fs::write(&lock, format!("busbar elsewhere 17\n{notes}")).unwrap();
            let claimed = claim(&path, beside(None)).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), left, "{notes}");
            assert_eq!(claimed.cut(), 6 - left.len() as u64, "{notes}");
        }
        // As it is written down.
        fs::write(&path, "one").unwrap();
        let claimed = claim(&path, beside(None)).unwrap();
        claimed.adding(&now()).unwrap();
        assert_eq!(before(&fs::read_to_string(&lock).unwrap()), Some(Before { length: 3, file: here }));
        claimed.added().unwrap();
        assert_eq!(before(&fs::read_to_string(&lock).unwrap()), None);
        fs::remove_file(&lock).unwrap();
        claimed.adding(&now()).unwrap();
        assert!(!lock.exists());
    }

    #[test]
    fn one_operation_adds_at_a_time() {
        let path = place("turns");
        fs::write(&path, "").unwrap();
        let first = try_turn(&path).unwrap();
        assert!(try_turn(&path.with_file_name(".").join("a.xml")).is_none());
        drop(first);
        assert!(try_turn(&path).is_some());
    }

    #[test]
    fn what_was_left_behind() {
        let path = place("left");
        let lock = path.with_file_name("a.xml.lock");
        fs::write(&lock, "busbar elsewhere 17\n").unwrap();
        drop(claim(&path, beside(None)).unwrap());
        assert!(!lock.exists());
        // Of a file that is gone: ours, and that of another program.
        fs::write(&lock, "busbar elsewhere 17\n").unwrap();
        let other = path.with_file_name("b.xml.lock");
        fs::write(&other, "x").unwrap();
        let held = claim(&path, beside(None)).unwrap();
        sweep(&lock);
        sweep(&other);
        assert!(lock.exists() && other.exists());
        drop(held);
        fs::write(&lock, "busbar elsewhere 17\n").unwrap();
        sweep(&lock);
        assert!(!lock.exists());
        // Of another program.
        fs::write(&lock, "").unwrap();
        assert!(matches!(claim(&path, beside(None)), Err(Error::Locked(_))));
        let release = |after, own_machine| Some(Release { after: Duration::from_secs(after), own_machine });
        assert!(matches!(claim(&path, beside(release(1000, false))), Err(Error::Locked(_))));
        assert!(matches!(claim(&path, beside(release(0, true))), Err(Error::Locked(_))));
        drop(claim(&path, beside(release(0, false))).unwrap());
        fs::write(&lock, format!("123:{}:127.0.0.1:5", host())).unwrap();
        drop(claim(&path, beside(release(0, true))).unwrap());
        assert!(!lock.exists());
    }
}
