//! `busbar bench report`: a report from the results of earlier runs.

use super::stage;
use bench::results::Run;
use std::path::PathBuf;

/// Writes a report from the `runs.json` of one or more runs: report.html, report.md, cells.csv and runs.json with all of them.
#[derive(clap::Args)]
pub struct Args {
    /// The results: `runs.json` files.
    #[arg(required = true, value_name = "RUNS")]
    runs: Vec<PathBuf>,
    /// The folder to write to; created if need be.
    #[arg(long, value_name = "FOLDER", default_value = "bench-report")]
    out: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), String> {
    let mut runs: Vec<Run> = Vec::new();
    for path in &args.runs {
        let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| fail(&error))?;
        runs.extend(serde_json::from_str::<Vec<Run>>(&text).map_err(|error| fail(&error))?);
    }
    stage::write(&args.out, &runs)
}
