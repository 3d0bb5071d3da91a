//! Files of an operation that makes several.

use std::fs;
use std::path::{Path, PathBuf};

/// The files that an operation has created so far. Dropped before [`CreatedFiles::keep`] it removes them; those that replaced a file stay.
#[derive(Default)]
pub(super) struct CreatedFiles(Vec<PathBuf>);

/// Whether no file has this name.
pub(super) fn is_new(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err()
}

impl CreatedFiles {
    pub(super) fn add(&mut self, path: PathBuf, is_new: bool) {
        if is_new {
            self.0.push(path);
        }
    }

    /// The operation succeeded: keeps the files.
    pub(super) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for CreatedFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}
