//! Folders that go with what they are for.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process;

/// A new folder below the temporary one, for its owner alone. It goes when this is dropped.
pub struct Temporary(PathBuf);

impl Temporary {
    /// Makes a folder. `purpose` is a part of its name.
    ///
    /// # Errors
    /// What cannot be made, and why.
    pub fn new(purpose: &str) -> Result<Temporary, String> {
        let mut number = 0;
        loop {
            let folder = std::env::temp_dir().join(format!("busbar-{purpose}-{}-{number}", process::id()));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Temporary(folder)),
                // Of this process, or of one that had its number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(format!("cannot make {}: {error}", folder.display())),
            }
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file in it, with the folders around the file.
    ///
    /// # Errors
    /// What cannot be written, and why.
    pub fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&self.0))
            .and_then(|()| fs::write(&path, bytes))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What stays behind is in the temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}
