//! The example round and the shop of `examples/sql` inside the binary, and unpacked for as long as a demo runs.

use crate::temporary::Temporary;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Path and text of every file of `examples/round`.
static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/round.rs"));

/// Those of `examples/sql`, which is a part of the demo's configuration.
static SHOP: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sql.rs"));

/// Where the endpoints of the round find their backend, as they are written.
const BACKEND: &str = "localhost:9000";

/// The files, for as long as this is there.
pub struct Unpacked(Temporary);

impl Unpacked {
    /// Writes the round, with its endpoints at `backend`.
    ///
    /// # Errors
    /// What could not be written, and why.
    pub fn new(backend: SocketAddr) -> Result<Unpacked, String> {
        let unpacked = Unpacked(Temporary::new("demo")?);
        for (name, text) in SHOP.iter().filter(|(name, _)| *name != "README.md") {
            unpacked.0.write(unpacked.round().join(name), text.as_bytes())?;
        }
        for (name, text) in FILES {
            let text = text.replace(BACKEND, &backend.to_string());
            unpacked.0.write(unpacked.round().join(name), text.as_bytes())?;
        }
        Ok(unpacked)
    }

    /// The configuration.
    pub fn round(&self) -> PathBuf {
        self.folder("round")
    }

    /// A folder beside the configuration, which may not be there yet.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file beside the configuration.
    ///
    /// # Errors
    /// See [`Unpacked::new`].
    pub fn add(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        self.0.write(name, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
