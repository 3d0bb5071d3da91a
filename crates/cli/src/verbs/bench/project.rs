//! `busbar bench project`: a project of many artifacts.

use bench::project;
use std::io::Write;
use std::path::PathBuf;

/// Writes a project of many artifacts, to measure what loading and checking it takes: APIs, proxy services, sequences, endpoints, templates and schemas of the size that they have in
/// projects. Nothing is found in it.
#[derive(clap::Args)]
pub struct Args {
    /// The folder to write to; created if need be.
    folder: PathBuf,
    /// How many artifacts.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(project::LEAST as i64..=100_000))]
    artifacts: u32,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), String> {
    let bytes = project::write(&args.folder, args.artifacts as usize)?;
    // Nobody may be reading.
    let _ = writeln!(
        std::io::stdout(),
        "{} artifacts, {bytes} bytes in {}",
        args.artifacts,
        args.folder.display()
    );
    Ok(())
}
