//! `busbar explain`: Says per flow and step what it reads of the message, and why.

use std::process::ExitCode;

/// Says per flow and step what it reads of the message, and why.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> ExitCode {
    eprintln!("busbar explain: not built yet");
    ExitCode::FAILURE
}
