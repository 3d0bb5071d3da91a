//! Files that were processed and could be neither moved nor deleted, written down so that a restart does not process them again. Each line has the
//! address of the file, its size, when it was changed last, what is to be done, and when that was tried.

use crate::engine::file::formatted;
use crate::runtime::source::{Action, Remembered, Source};
use crate::state::lock;
use ::files::address::{Address, of_path};
use ::files::partial::{Existing, Partial};
use meter::Cancel;
use std::fs;
use std::io::ErrorKind;
use std::time::Instant;

/// Most of the file that is read, in bytes.
const LARGEST: u64 = 16 << 20;

/// Reads what was written down by a process before this one, once; forgets what somebody took away.
pub(super) fn refresh(source: &Source) {
    let known: Vec<_> = lock(&source.state.0).remembered.keys().cloned().collect();
    for path in known {
        if matches!(fs::symlink_metadata(&path), Err(error) if error.kind() == ErrorKind::NotFound) {
            lock(&source.state.0).remembered.remove(&path);
        }
    }
    let is_read = std::mem::replace(&mut lock(&source.state.0).is_read, true);
    let Some(file) = source.records.file.as_ref().filter(|_| !is_read) else { return };
    let text = match fs::metadata(file).map(|known| known.is_file() && known.len() <= LARGEST) {
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
    for line in text.lines() {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        let (address, length, modified, action) = (next(), next(), next(), next());
        let (Ok(address), Ok(length), Ok(modified)) =
            (Address::parse(address), length.parse(), modified.parse())
        else {
            continue;
        };
        // Those of another source may be in the file.
        if !address.path.starts_with(&source.address.path) {
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
    let _turn = lock(&source.state.1.0);
    let remembered = lock(&source.state.0).remembered.clone();
    let mut text = String::new();
    if let Ok(before) = fs::read_to_string(file) {
        let is_other = |line: &&str| {
            let address = Address::parse(line.split('\t').next().unwrap_or_default());
            address.is_ok_and(|address| !address.path.starts_with(&source.address.path))
        };
        before.lines().filter(is_other).for_each(|line| text.extend([line, "\n"]));
    }
    for (path, own) in &remembered {
        let (length, modified) = own.version;
        let action = match &own.action {
            Action::Move(directory) => of_path(directory),
            Action::Delete | Action::Nothing => "DELETE".to_owned(),
        };
        text.push_str(&format!("{}\t{length}\t{modified}\t{action}\t{now}\n", of_path(path)));
    }
    let written = Partial::begin(file, Existing::Replace, true).and_then(|mut partial| {
        partial.copy_from(&mut text.as_bytes(), &Cancel::default())?;
        partial.finish()
    });
    if let Err(error) = written {
        tracing::error!(source = source.label(), "what was processed cannot be written down: {error}");
    }
}
