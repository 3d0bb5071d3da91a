//! `busbar xpath`: Evaluates an XPath expression.

use std::process::ExitCode;

/// Evaluates an XPath expression.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> ExitCode {
    eprintln!("busbar xpath: not built yet");
    ExitCode::FAILURE
}
