//! Sets up logging; `busbar.toml` [log] and the environment variable BUSBAR_LOG decide.

use crate::settings::Log;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts logging to stderr.
///
/// # Errors
/// The level is no filter.
pub fn init(log: &Log) -> Result<(), String> {
    let level =
        std::env::var("BUSBAR_LOG").ok().or_else(|| log.level.clone()).unwrap_or_else(|| "info".to_owned());
    let filter = EnvFilter::try_new(&level).map_err(|error| format!("log level `{level}`: {error}"))?;
    // A second initialisation (the demo runs several things in one process) keeps the first.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
    Ok(())
}
