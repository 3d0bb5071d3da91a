//! `busbar vault`: keeps secrets in an encrypted file.

use flow::vault::{LARGEST, Sealed};
use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// How long a change waits for others of the same vault.
const PATIENCE: Duration = Duration::from_secs(60);

/// Keeps secrets in an encrypted file, which the setting `vault.file` names.
///
/// The password is that of the environment variable BUSBAR_VAULT_PASSWORD, else the first line of `--password-file`. Secrets are read
/// from standard input, never from the command line, where others could see them. No verb but `get` prints one.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Makes an empty vault; a file that is there is never written over.
    Create(Place),
    /// Keeps the secret that comes from standard input, without the line end behind it.
    Set(Entry),
    /// Prints the aliases, one in each line.
    List(Place),
    /// Prints a secret, without a line end.
    Get(Entry),
    /// Forgets a secret.
    Remove(Entry),
    /// Encrypts the vault with another password: that of BUSBAR_VAULT_NEW_PASSWORD, else the first line of `--new-password-file`.
    Password(Passwords),
}

#[derive(clap::Args)]
struct Place {
    /// The file of the vault.
    file: PathBuf,
    /// A file whose first line is the password.
    #[arg(long)]
    password_file: Option<PathBuf>,
}

#[derive(clap::Args)]
struct Entry {
    #[command(flatten)]
    place: Place,
    /// The name of the secret.
    alias: String,
}

#[derive(clap::Args)]
struct Passwords {
    #[command(flatten)]
    place: Place,
    /// A file whose first line is the new password.
    #[arg(long)]
    new_password_file: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    let done = match &args.what {
        Command::Create(place) => create(place),
        Command::Set(entry) => set(entry),
        Command::List(place) => list(place),
        Command::Get(entry) => get(entry),
        Command::Remove(entry) => remove(entry),
        Command::Password(passwords) => change_password(passwords),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("busbar vault: {why}");
            ExitCode::FAILURE
        }
    }
}

fn create(place: &Place) -> Result<(), String> {
    let sealed = Sealed::default().seal(&password(place)?)?;
    let failed = |error: io::Error| failed("write", &place.file, &error);
    let mut file = new_file(&place.file).map_err(failed)?;
    let written = file.write_all(&sealed).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a vault would be in the way of the next attempt.
        let _ = fs::remove_file(&place.file);
    }
    written.map_err(failed)
}

/// A file that only its owner can read, and that was not there.
fn new_file(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn set(entry: &Entry) -> Result<(), String> {
    let password = password(&entry.place)?;
    let mut secret = flow::vault::Secret::default();
    let mut input = io::stdin().lock().take(LARGEST);
    input.read_to_string(&mut secret).map_err(|_| "the secret is not text".to_owned())?;
    let end =
        secret.strip_suffix('\n').map_or(secret.len(), |rest| rest.strip_suffix('\r').unwrap_or(rest).len());
    secret.truncate(end);
    if secret.is_empty() {
        return Err("no secret came from standard input".to_owned());
    }
    let mut change = Change::begin(&entry.place.file, &password)?;
    change.sealed.set(&entry.alias, secret)?;
    change.save(&password)
}

fn list(place: &Place) -> Result<(), String> {
    let sealed = open(place, &password(place)?)?;
    let text: String = sealed.aliases().map(|alias| format!("{alias}\n")).collect();
    print(&text)
}

fn get(entry: &Entry) -> Result<(), String> {
    let sealed = open(&entry.place, &password(&entry.place)?)?;
    print(sealed.get(&entry.alias).ok_or_else(|| none(&entry.alias))?)
}

fn remove(entry: &Entry) -> Result<(), String> {
    let password = password(&entry.place)?;
    let mut change = Change::begin(&entry.place.file, &password)?;
    if !change.sealed.remove(&entry.alias) {
        return Err(none(&entry.alias));
    }
    change.save(&password)
}

fn change_password(passwords: &Passwords) -> Result<(), String> {
    let change = Change::begin(&passwords.place.file, &password(&passwords.place)?)?;
    let new = flow::vault::password("BUSBAR_VAULT_NEW_PASSWORD", passwords.new_password_file.as_deref())?
        .ok_or("there is no new password: set BUSBAR_VAULT_NEW_PASSWORD, or name a file with --new-password-file")?;
    change.save(&new)
}

fn none(alias: &str) -> String {
    format!("there is no secret {}", alias.escape_debug())
}

fn failed(action: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {action} {}: {}", path.display(), diagnostics::io_reason(error))
}

/// The password of a vault that is there.
fn password(place: &Place) -> Result<flow::vault::Secret, String> {
    flow::vault::password("BUSBAR_VAULT_PASSWORD", place.password_file.as_deref())?.ok_or_else(|| {
        "there is no password: set BUSBAR_VAULT_PASSWORD, or name a file with --password-file".to_owned()
    })
}

fn open(place: &Place, password: &str) -> Result<Sealed, String> {
    read(&place.file, password)
}

fn read(path: &Path, password: &str) -> Result<Sealed, String> {
    let bytes =
        config::read_file(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Sealed::open(&bytes, password).map_err(|why| format!("{}: {why}", path.display()))
}

/// A vault that is changed: no other command changes it meanwhile.
struct Change {
    path: PathBuf,
    sealed: Sealed,
    before: Metadata,
    /// Locked until it is dropped.
    _locked: File,
}

impl Change {
    fn begin(path: &Path, password: &str) -> Result<Change, String> {
        let unreadable = |error: io::Error| failed("read", path, &error);
        // The vault itself, and not a link to it, gets another content.
        let path = fs::canonicalize(path).map_err(unreadable)?;
        let until = Instant::now() + PATIENCE;
        loop {
            // Opening a pipe would wait for a writer.
            if !fs::metadata(&path).map_err(unreadable)?.is_file() {
                return Err(format!("cannot read {}: it is not a file", path.display()));
            }
            let file = File::open(&path).map_err(unreadable)?;
            match file.try_lock() {
                Ok(()) => {}
                // Where files cannot be locked, the last change counts.
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => return Err(failed("lock", &path, &error)),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    thread::sleep(Duration::from_millis(20));
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(format!("{} is being changed by another command", path.display()));
                }
            }
            let before = file.metadata().map_err(unreadable)?;
            let now = fs::metadata(&path).map_err(unreadable)?;
            // A change that was waited for has put another file in its place.
            if (before.dev(), before.ino()) == (now.dev(), now.ino()) {
                let sealed = read(&path, password)?;
                return Ok(Change { path, sealed, before, _locked: file });
            }
        }
    }

    /// Puts the vault in the place of the one before, in one step.
    fn save(&self, password: &str) -> Result<(), String> {
        let sealed = self.sealed.seal(password)?;
        let beside = self.path.with_extension(format!("new-{}", std::process::id()));
        let written = new_file(&beside)
            .and_then(|mut file| {
                file.write_all(&sealed)?;
                self.give_access(&file)?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&beside, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written.map_err(|error| failed("write", &self.path, &error))
    }

    /// Lets those read a file who could read the vault before.
    fn give_access(&self, file: &File) -> io::Result<()> {
        let (user, group) = (self.before.uid(), self.before.gid());
        // A user may not be allowed to give a file to others.
        if fchown(file, Some(user), Some(group)).is_err() {
            let _ = fchown(file, None, Some(group));
        }
        // What the group may do holds for no other one.
        let is_same = file.metadata()?.gid() == group;
        let mode = self.before.mode() & if is_same { 0o777 } else { 0o707 };
        file.set_permissions(Permissions::from_mode(mode))
    }
}

fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| diagnostics::io_reason(&error))
}
