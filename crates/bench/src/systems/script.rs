//! Peers that are started by scripts in `bench/peers`, one folder for each.
//!
//! `bench/peers/NAME/start PORT BACKEND FOLDER` starts the peer in the foreground: its HTTP port on 127.0.0.1, host and port of the backend, and a folder for its
//! own files; the environment variable ROUND is the folder of the example round, as it is for this backend. `bench/peers/NAME/about` has its properties, one on each line: `name: `, `version: `, `scenarios: ` (names, with spaces; those that it can
//! do), `warm-up: ` (seconds of load on each scenario). `bench/peers/NAME/setup` fetches and builds what `start` needs, once per machine; who runs the benchmark
//! does that before.

use super::{Place, System, free_port};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The folder of the scripts, from the root of the project.
const FOLDER: &str = "bench/peers";

/// The folder of a script: an absolute path or one from here, else one below `bench/peers`.
fn folder(name: &str) -> Option<PathBuf> {
    let candidates = [PathBuf::from(name), Path::new(FOLDER).join(name)];
    candidates.into_iter().find(|folder| folder.join("start").is_file())
}

/// The names of the peers that have scripts in `bench/peers`.
pub fn scripts() -> Vec<String> {
    let entries = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("start").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

pub(super) fn start(place: &Place, name: &str, backend: SocketAddr) -> Result<System, String> {
    let folder = folder(name).ok_or_else(|| {
        format!(
            "{name} is not a peer: nginx, haproxy, NAME=URL, a folder (below {FOLDER}) with a script `start`, or an installation of WSO2"
        )
    })?;
    let about = std::fs::read_to_string(folder.join("about")).unwrap_or_default();
    let property = |wanted: &str| {
        let line = about.lines().find_map(|line| line.split_once(": ").filter(|(name, _)| *name == wanted));
        line.map(|(_, value)| value.trim().to_owned())
    };
    let script = folder.join("start");
    let script = script.canonicalize().map_err(|error| format!("{}: {error}", script.display()))?;
    let name = property("name").unwrap_or_else(|| name.to_owned());
    let file_name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let work = place.work.join(&file_name);
    std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    let port = free_port()?;
    let arguments = [port.to_string(), backend.to_string(), work.display().to_string()];
    let mut running = place.start(&file_name, place.system_core, &script, &arguments)?;
    running.listens(port)?;
    let mut system = System::started(&name, property("version").unwrap_or_default(), port, running);
    system.scenarios =
        property("scenarios").map(|list| list.split_ascii_whitespace().map(str::to_owned).collect());
    let seconds =
        property("warm-up").and_then(|text| text.parse().ok()).filter(|seconds: &f64| seconds.is_finite());
    system.warmed_up_for(seconds.unwrap_or(0.0));
    Ok(system)
}
