//! `busbar run`: Runs a configuration.

use std::process::ExitCode;

/// Runs a configuration.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> ExitCode {
    eprintln!("busbar run: not built yet");
    ExitCode::FAILURE
}
