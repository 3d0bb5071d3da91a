//! Files of an operation that makes several.

use std::fs;
use std::path::{Path, PathBuf};

/// The files that an operation has made so far. Dropped before [`Made::keep`] they are gone; those that took the place of a file stay.
#[derive(Default)]
pub(super) struct Made(Vec<PathBuf>);

/// Whether nothing has this name yet.
pub(super) fn is_new(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err()
}

impl Made {
    pub(super) fn add(&mut self, path: PathBuf, is_new: bool) {
        if is_new {
            self.0.push(path);
        }
    }

    /// The operation went well.
    pub(super) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}
