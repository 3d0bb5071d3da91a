//! `busbar check`: Lints a configuration without running it.

use std::process::ExitCode;

/// Lints a configuration without running it.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> ExitCode {
    eprintln!("busbar check: not built yet");
    ExitCode::FAILURE
}
