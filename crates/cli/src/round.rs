//! The example round and the shop of `examples/sql` inside the binary, and unpacked for as long as a demo runs.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Path and text of every file of `examples/round`.
static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/round.rs"));

/// Those of `examples/sql`, which is a part of the demo's configuration.
static SHOP: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sql.rs"));

/// Where the endpoints of the round find their backend, as they are written.
const BACKEND: &str = "localhost:9000";

/// A folder of its own below the temporary one; it goes when this is dropped.
pub struct Unpacked(PathBuf);

impl Unpacked {
    /// Writes the round, with its endpoints at `backend`.
    ///
    /// # Errors
    /// What could not be written, and why.
    pub fn new(backend: SocketAddr) -> Result<Unpacked, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("busbar-demo-{}-{number}", std::process::id()));
        let unpacked = Unpacked(folder);
        for (name, text) in SHOP.iter().filter(|(name, _)| *name != "README.md") {
            unpacked.write(&unpacked.round().join(name), text.as_bytes())?;
        }
        for (name, text) in FILES {
            let text = text.replace(BACKEND, &backend.to_string());
            unpacked.write(&unpacked.round().join(name), text.as_bytes())?;
        }
        Ok(unpacked)
    }

    /// The configuration.
    pub fn round(&self) -> PathBuf {
        self.0.join("round")
    }

    /// A folder beside the configuration, which may not be there yet.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file beside the configuration.
    ///
    /// # Errors
    /// See [`Unpacked::new`].
    pub fn add(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        self.write(&path, bytes)?;
        Ok(path)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), String> {
        let folder = path.parent().unwrap_or(&self.0);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(path, bytes))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // What stays behind is in the temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_is_unpacked_and_leads_to_the_backend() {
        let address = "127.0.0.1:4711".parse().unwrap();
        let unpacked = Unpacked::new(address).unwrap();
        let folder = unpacked.round();
        let text = fs::read_to_string(folder.join("endpoints/EchoService.xml")).unwrap();
        assert!(text.contains("http://127.0.0.1:4711/services/EchoService"), "{text}");
        let loaded = config::load(&folder, &config::LoadOptions::default());
        assert!(!loaded.diagnostics.has_errors() && loaded.configuration.artifacts() > 20);
        for (name, text) in FILES {
            assert!(folder.join(name).is_file());
            // Only the endpoints know where the backend is (and the README, which nothing reads).
            assert!(!text.contains(BACKEND) || name.starts_with("endpoints"), "{name}");
        }
        for (name, text) in SHOP.iter().filter(|(name, _)| *name != "README.md") {
            assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), *text);
            assert!(FILES.iter().all(|(other, _)| other != name), "{name}");
        }
        assert!(!loaded.configuration.data_services.is_empty());
        drop(unpacked);
        assert!(!folder.exists());
    }
}
