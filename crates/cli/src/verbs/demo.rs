//! `busbar demo`: Starts the embedded backend and the example round, and shows every scenario.

use std::process::ExitCode;

/// Starts the embedded backend and the example round, and shows every scenario.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> ExitCode {
    eprintln!("busbar demo: not built yet");
    ExitCode::FAILURE
}
