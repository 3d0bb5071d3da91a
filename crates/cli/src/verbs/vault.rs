//! `busbar vault`: keeps secrets in an encrypted file.

use flow::vault::{LARGEST, Sealed};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

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
    Password(Change),
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
struct Change {
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
        Command::Password(change) => change_password(change),
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
    let failed = |error: std::io::Error| failed("write", &place.file, &error);
    let mut open = fs::OpenOptions::new();
    let mut file = open.write(true).create_new(true).mode(0o600).open(&place.file).map_err(failed)?;
    file.write_all(&sealed).and_then(|()| file.sync_all()).map_err(failed)
}

fn set(entry: &Entry) -> Result<(), String> {
    let password = password(&entry.place)?;
    let mut sealed = open(&entry.place, &password)?;
    let mut secret = flow::vault::Secret::default();
    let mut input = std::io::stdin().lock().take(LARGEST);
    input.read_to_string(&mut secret).map_err(|_| "the secret is not text".to_owned())?;
    let end =
        secret.strip_suffix('\n').map_or(secret.len(), |rest| rest.strip_suffix('\r').unwrap_or(rest).len());
    secret.truncate(end);
    if secret.is_empty() {
        return Err("no secret came from standard input".to_owned());
    }
    sealed.set(&entry.alias, secret)?;
    save(&entry.place.file, &sealed, &password)
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
    let mut sealed = open(&entry.place, &password)?;
    if !sealed.remove(&entry.alias) {
        return Err(none(&entry.alias));
    }
    save(&entry.place.file, &sealed, &password)
}

fn change_password(change: &Change) -> Result<(), String> {
    let sealed = open(&change.place, &password(&change.place)?)?;
    let new = flow::vault::password("BUSBAR_VAULT_NEW_PASSWORD", change.new_password_file.as_deref())?
        .ok_or("there is no new password: set BUSBAR_VAULT_NEW_PASSWORD, or name a file with --new-password-file")?;
    save(&change.place.file, &sealed, &new)
}

fn none(alias: &str) -> String {
    format!("there is no secret {}", alias.escape_debug())
}

fn failed(action: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {action} {}: {}", path.display(), diagnostics::io_reason(error))
}

/// The password of a vault that is there.
fn password(place: &Place) -> Result<flow::vault::Secret, String> {
    flow::vault::password("BUSBAR_VAULT_PASSWORD", place.password_file.as_deref())?.ok_or_else(|| {
        "there is no password: set BUSBAR_VAULT_PASSWORD, or name a file with --password-file".to_owned()
    })
}

fn open(place: &Place, password: &str) -> Result<Sealed, String> {
    let bytes = config::read_file(&place.file)
        .map_err(|error| format!("cannot read {}: {error}", place.file.display()))?;
    Sealed::open(&bytes, password).map_err(|why| format!("{}: {why}", place.file.display()))
}

/// Puts a vault in the place of the one before, in one step.
fn save(path: &Path, vault: &Sealed, password: &str) -> Result<(), String> {
    let sealed = vault.seal(password)?;
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let failed = |error: std::io::Error| failed("write", path, &error);
    let mut open = fs::OpenOptions::new();
    let written = open
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| file.write_all(&sealed).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.map_err(failed)
}

fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| diagnostics::io_reason(&error))
}
