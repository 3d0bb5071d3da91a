//! `busbar backend`: Runs the embedded backend alone: echo and the stock quote service.

use std::process::ExitCode;

/// Runs the embedded backend alone: echo and the stock quote service.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> ExitCode {
    eprintln!("busbar backend: not built yet");
    ExitCode::FAILURE
}
