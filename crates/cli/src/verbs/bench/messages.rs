//! `busbar bench messages`: the messages of the round as files.

use bench::messages;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes the messages of the round to files: orders and their variants in each size, and a list of quote requests.
#[derive(clap::Args)]
pub struct Args {
    /// The folder to write to; created if need be.
    #[arg(long, default_value = "messages")]
    dir: PathBuf,
    /// Size of a message: 512, 1k, 100k, 1m. May be given several times; without it: 512, 1k, 10k, 100k and 1m.
    #[arg(long, value_parser = messages::parse_size)]
    size: Vec<usize>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), String> {
    let sizes = if args.size.is_empty() { &messages::SIZES[..] } else { &args.size };
    let fail = |place: &Path, error: io::Error| format!("{}: {error}", place.display());
    std::fs::create_dir_all(&args.dir).map_err(|error| fail(&args.dir, error))?;
    for file in messages::files(sizes) {
        let path = args.dir.join(&file.name);
        std::fs::write(&path, &file.bytes).map_err(|error| fail(&path, error))?;
        // whoever reads the list may stop reading it
        let _ = writeln!(io::stdout(), "{:>9}  {}  {}", file.bytes.len(), path.display(), file.about);
    }
    Ok(())
}
