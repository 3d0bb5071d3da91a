//! Files that were processed and could be neither moved nor deleted, written down so that a restart does not process them again. Each line has the
//! address of the file, its size, when it was changed last, what is to be done, when that was tried, and whose it is: several services
//! may share a directory and the file of records.

use crate::engine::file::formatted;
use crate::runtime::source::{Action, Remembered, Source};
use crate::state::lock;
use ::files::address::{Address, of_path};
use ::files::partial::{Existing, Partial};
use meter::Cancel;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// Most of the file that is read, in bytes.
const LARGEST: u64 = 16 << 20;

/// Held while the file of records is written: not the lock of the state, so that reading the state never waits for a disk.
static TURN: Mutex<()> = Mutex::new(());

/// How a source is named in a line.
fn owner(source: &Source) -> String {
    source.label().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn is_gone(path: &Path) -> bool {
    matches!(fs::symlink_metadata(path), Err(error) if error.kind() == ErrorKind::NotFound)
}

/// Reads what was written down by a process before this one, once; forgets files that are gone.
pub(super) fn refresh(source: &Source) {
    let paths: Vec<_> = lock(&source.state.0).remembered.keys().cloned().collect();
    let gone: Vec<_> = paths.into_iter().filter(|path| is_gone(path)).collect();
    if !gone.is_empty() {
        let mut progress = lock(&source.state.0);
        gone.iter().for_each(|path| drop(progress.remembered.remove(path)));
        drop(progress);
        write(source);
    }
    let is_read = std::mem::replace(&mut lock(&source.state.0).is_read, true);
    let Some(file) = source.records.file.as_ref().filter(|_| !is_read) else { return };
    let text = match fs::metadata(file)
        .map(|file_metadata| file_metadata.is_file() && file_metadata.len() <= LARGEST)
    {
        Ok(true) => fs::read_to_string(file),
        Ok(false) => Err(ErrorKind::InvalidInput.into()),
        Err(error) => Err(error),
    };
    let text = match text {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => {
            let file = file.display();
            return tracing::error!(
                source = source.label(),
                "which files were processed before is not known: {file}: {error}"
            );
        }
    };
    let own_name = owner(source);
    for line in text.lines() {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        let (address, length, modified, action) = (next(), next(), next(), next());
        let whose = fields.nth(1).unwrap_or_default();
        let (Ok(address), Ok(length), Ok(modified)) =
            (Address::parse(address), length.parse(), modified.parse())
        else {
            continue;
        };
        // Those of another source may be in the file; a service that got another name takes what is its own by the name of the file.
        let name = address.path.file_name().unwrap_or_default().to_string_lossy();
        let takes = || source.pattern.as_ref().is_none_or(|pattern| pattern.matches(&name) == Ok(true));
        let is_own = whose.is_empty() || whose == own_name || takes();
        if !is_own || !address.path.starts_with(&source.address.path) || is_gone(&address.path) {
            continue;
        }
        let action = match Address::parse(action) {
            Ok(directory) => Action::Move(directory.path),
            Err(_) => Action::Delete,
        };
        let remembered = Remembered { version: (length, modified), action, again: Instant::now() };
        lock(&source.state.0).remembered.insert(address.path, remembered);
    }
}

/// Writes down what is remembered.
pub(super) fn write(source: &Source) {
    let Some(file) = &source.records.file else { return };
    let now = formatted(&source.records.format).unwrap_or_default();
    let own_name = owner(source);
    let _turn = lock(&TURN);
    let remembered = lock(&source.state.0).remembered.clone();
    let mut text = String::new();
    if let Ok(before) = fs::read_to_string(file) {
        let is_other = |line: &&str| {
            let Ok(address) = Address::parse(line.split('\t').next().unwrap_or_default()) else {
                return false;
            };
            match line.split('\t').nth(5) {
                Some(whose) => whose != own_name && !is_gone(&address.path),
                None => !address.path.starts_with(&source.address.path),
            }
        };
        before.lines().filter(is_other).for_each(|line| text.extend([line, "\n"]));
    }
    for (path, entry) in &remembered {
        let (length, modified) = entry.version;
        let action = match &entry.action {
            Action::Move(directory) => of_path(directory),
            Action::Delete | Action::Nothing => "DELETE".to_owned(),
        };
        text.push_str(&format!("{}\t{length}\t{modified}\t{action}\t{now}\t{own_name}\n", of_path(path)));
    }
    let written = Partial::begin(file, Existing::Replace, true).and_then(|mut partial| {
        partial.copy_from(&mut text.as_bytes(), &Cancel::default())?;
        partial.finish()
    });
    if let Err(error) = written {
        tracing::error!(source = source.label(), "what was processed cannot be written down: {error}");
    }
}
