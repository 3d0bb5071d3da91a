//! `busbar bench`: what Busbar is measured with.

use bench::messages;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Messages, scenarios and load, to measure a bus with.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Messages(Messages),
}

/// Writes the messages of the round to files: orders and their variants in each size, and a list of quote requests.
#[derive(clap::Args)]
struct Messages {
    /// The folder to write to; created if need be.
    #[arg(long, default_value = "messages")]
    dir: PathBuf,
    /// Size of a message: 512, 1k, 100k, 1m. May be given several times; without it: 512, 1k, 10k, 100k and 1m.
    #[arg(long, value_parser = messages::parse_size)]
    size: Vec<usize>,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    match args.what {
        What::Messages(args) => write_messages(&args),
    }
}

fn write_messages(args: &Messages) -> ExitCode {
    let sizes = if args.size.is_empty() { &messages::SIZES[..] } else { &args.size };
    let fail = |place: &Path, error: io::Error| {
        eprintln!("busbar bench messages: {}: {error}", place.display());
        ExitCode::FAILURE
    };
    if let Err(error) = std::fs::create_dir_all(&args.dir) {
        return fail(&args.dir, error);
    }
    for file in messages::files(sizes) {
        let path = args.dir.join(&file.name);
        if let Err(error) = std::fs::write(&path, &file.bytes) {
            return fail(&path, error);
        }
        // whoever reads the list may stop reading it
        let _ = writeln!(io::stdout(), "{:>9}  {}  {}", file.bytes.len(), path.display(), file.about);
    }
    ExitCode::SUCCESS
}
