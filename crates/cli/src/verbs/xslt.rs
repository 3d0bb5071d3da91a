//! `busbar xslt`: Transforms a document with an XSLT stylesheet.

use std::process::ExitCode;

/// Transforms a document with an XSLT stylesheet.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> ExitCode {
    eprintln!("busbar xslt: not built yet");
    ExitCode::FAILURE
}
