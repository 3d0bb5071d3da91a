//! `busbar xml`: Checks, writes or canonicalises an XML document.

use std::process::ExitCode;

/// Checks, writes or canonicalises an XML document.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> ExitCode {
    eprintln!("busbar xml: not built yet");
    ExitCode::FAILURE
}
