//! `busbar bench`: what Busbar is measured with.

use crate::secured::{Client, Keys, bare_rsa};
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
    Secured(Secured),
}

/// Writes order messages to files that are signed and encrypted for the secure proxy of the round, no two the same, and says what the two
/// operations with a private key cost that each of them needs, in microseconds. They are valid for five minutes, and once.
#[derive(clap::Args)]
struct Secured {
    /// The folder of `busbar demo --keys`.
    #[arg(long)]
    keys: PathBuf,
    /// The round, whose policy counts.
    #[arg(long, default_value = "examples/round")]
    round: PathBuf,
    /// The folder to write to; created if need be.
    #[arg(long, default_value = "messages")]
    dir: PathBuf,
    /// Size of a message before it is secured.
    #[arg(long, value_parser = messages::parse_size, default_value = "1k")]
    size: usize,
    /// How many.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(..=100_000))]
    count: u32,
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
        What::Secured(args) => match write_secured(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("busbar bench secured: {why}");
                ExitCode::FAILURE
            }
        },
    }
}

fn write_secured(args: &Secured) -> Result<(), String> {
    let keys = Keys::at(&args.keys);
    let client = Client::new(&keys, &args.round)?;
    let fail = |place: &Path, error: io::Error| format!("{}: {error}", place.display());
    std::fs::create_dir_all(&args.dir).map_err(|error| fail(&args.dir, error))?;
    let message = messages::order_message(args.size, &messages::Variant::default());
    for number in 0..args.count {
        let path = args.dir.join(format!("{number:06}.xml"));
        std::fs::write(&path, client.secure(&message)?.bytes).map_err(|error| fail(&path, error))?;
    }
    let rsa = bare_rsa(&keys, 200)?;
    // Nobody may be reading.
    let _ = writeln!(io::stdout(), "{:.1}", rsa.as_secs_f64() * 1e6);
    Ok(())
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
