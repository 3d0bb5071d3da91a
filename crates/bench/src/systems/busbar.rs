//! Busbar itself: this binary.

use super::{Place, System, field, version};
use std::path::Path;

pub(super) fn start(
    place: &Place,
    name: &str,
    configuration: &Path,
    more: &[String],
) -> Result<System, String> {
    let mut arguments = vec!["run".to_owned(), configuration.display().to_string()];
    arguments.extend(["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"].map(str::to_owned));
    if !more.iter().any(|argument| argument == "--workers") {
        arguments.extend(["--workers", "1"].map(str::to_owned));
    }
    arguments.extend_from_slice(more);
    let mut running = place.start(name, place.system_core, &place.busbar, &arguments)?;
    let address = running.wait(|running| field(&running.output(), "http="))?;
    let port = address.rsplit(':').next().and_then(|port| port.parse().ok());
    let port = port.ok_or_else(|| running.fails("it names no address"))?;
    let admin = field(&running.output(), "admin=").and_then(|address| address.parse().ok());
    let mut system = System::started(name, version(&place.busbar, "--version"), port, running);
    system.admin = admin;
    Ok(system)
}
