//! An installation of WSO2 (Micro Integrator, Enterprise Integrator, ESB) by its folder. It is copied first and the example round is deployed in the copy, so that
//! the installation stays as it is.

use super::{Place, System};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The scripts that start the products, with what their product is called.
const SCRIPTS: [(&str, &str); 3] = [
    ("bin/micro-integrator.sh", "WSO2 Micro Integrator"),
    ("bin/integrator.sh", "WSO2 Enterprise Integrator"),
    ("bin/wso2server.sh", "WSO2 ESB"),
];

/// Where all of them have their configuration.
const DEPLOYMENT: &str = "repository/deployment/server/synapse-configs/default";

/// What of the round is deployed. SecureProxy needs keys of its own, so it is left out.
const FOLDERS: [&str; 5] = ["api", "endpoints", "local-entries", "proxy-services", "sequences"];
const LEFT_OUT: [&str; 2] = ["SecureProxy.xml", "SecureOrders.xml"];

/// The HTTP port without an offset, and the others that a server opens.
const HTTP: u16 = 8280;
const PORTS: [u16; 5] = [HTTP, 8243, 9443, 9154, 9191];

/// Seconds of load on each scenario before it is measured.
const WARM_UP: f64 = 10.0;

/// An installation.
pub(super) struct Installation {
    folder: PathBuf,
    script: &'static str,
    name: &'static str,
}

impl Installation {
    /// What is in that folder, if it is one.
    pub(super) fn at(folder: &Path) -> Option<Installation> {
        let (script, name) = SCRIPTS.into_iter().find(|(script, _)| folder.join(script).is_file())?;
        Some(Installation { folder: folder.to_owned(), script, name })
    }

    /// Starts a copy of it with the example round.
    pub(super) fn start(&self, place: &Place) -> Result<System, String> {
        let folder =
            self.folder.canonicalize().map_err(|error| format!("{}: {error}", self.folder.display()))?;
        let version = self.version(&folder);
        let name = format!("{} {version}", self.name).trim_end().to_owned();
        let copy =
            place.work.join(format!("wso2-{}", folder.file_name().unwrap_or_default().to_string_lossy()));
        copied(&folder, &copy)?;
        let deployed = copy.join(DEPLOYMENT);
        for folder in FOLDERS {
            deploy(&place.round.join(folder), &deployed.join(folder))?;
        }
        let offset = free_offset()?;
        let program = copy.join(self.script);
        let mut running =
            place.start(&name, place.system_core, &program, &[format!("-DportOffset={offset}")])?;
        running.listens(HTTP + offset)?;
        let mut system = System::started(&name, version, HTTP + offset, running);
        system.warmed_up_for(WARM_UP);
        Ok(system)
    }

    /// What the installation says of itself, or what its folder is called.
    fn version(&self, folder: &Path) -> String {
        let text = std::fs::read_to_string(folder.join("bin/version.txt")).unwrap_or_default();
        let version =
            text.lines().next().unwrap_or_default().trim().trim_start_matches(self.name).trim().to_owned();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let named = name.rsplit_once('-').map_or("", |(_, version)| version);
        if version.is_empty() { named.to_owned() } else { version.trim_start_matches('v').to_owned() }
    }
}

/// With `cp`, which keeps modes and links and shares blocks where the file system can.
fn copied(from: &Path, to: &Path) -> Result<(), String> {
    let output = Command::new("cp").args(["-a", "--reflink=auto", "--"]).args([from, to]).output();
    let output = output.map_err(|error| format!("cp: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{} is not copied: {}",
            from.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

fn deploy(from: &Path, to: &Path) -> Result<(), String> {
    let fail = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(to).map_err(|error| fail(to, error))?;
    for entry in std::fs::read_dir(from).map_err(|error| fail(from, error))?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.extension().is_some_and(|extension| extension == "xml")
            && !LEFT_OUT.iter().any(|out| name == *out)
        {
            std::fs::copy(&path, to.join(name)).map_err(|error| fail(&path, error))?;
        }
    }
    Ok(())
}

/// An offset with which all ports are free now.
fn free_offset() -> Result<u16, String> {
    let first = 1000 + (std::process::id() % 20_000) as u16;
    let free =
        |offset: &u16| PORTS.iter().all(|port| TcpListener::bind(("127.0.0.1", port + offset)).is_ok());
    (first..first + 1000)
        .step_by(20)
        .find(free)
        .ok_or_else(|| "no free ports for a server of WSO2".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installations_are_known_by_their_scripts_and_say_their_version() {
        let folder = std::env::temp_dir().join(format!("busbar-bench-wso2mi-{}-4.4.0", std::process::id()));
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        assert!(Installation::at(&folder).is_none());
        std::fs::write(folder.join("bin/micro-integrator.sh"), "").unwrap();
        let found = Installation::at(&folder).unwrap();
        assert_eq!((found.name, found.version(&folder)), ("WSO2 Micro Integrator", "4.4.0".to_owned()));
        std::fs::write(folder.join("bin/version.txt"), "WSO2 Micro Integrator v4.3.0\n").unwrap();
        assert_eq!(found.version(&folder), "4.3.0");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
