//! A directory for one test.

use std::fs;
use std::path::PathBuf;

/// A directory for one test, gone at its end.
pub struct Place(pub PathBuf);

impl Place {
    /// `name`: of the test, which is the only one with it.
    pub fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("busbar-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    pub fn with(self, files: &[(&str, &str)]) -> Place {
        for (name, text) in files {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        self
    }

    pub fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join(name)).ok()
    }

    /// The names of what is in a directory of it, sorted.
    pub fn names_in(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(directory)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
