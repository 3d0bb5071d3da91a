//! `busbar bench secured`: messages that are signed and encrypted, as files; and the secure proxy of the other measurements.

use super::stage::Stage;
use crate::secured::{Client, Keys, bare_rsa};
use bench::messages;
use bench::secured::{Batch, Secured};
use bench::systems::{self, System};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes order messages to files that are signed and encrypted for the secure proxy of the round, no two the same, and says what the two
/// operations with a private key and the two with a public one cost that each of them needs, in microseconds. They are valid for five minutes, and once.
#[derive(clap::Args)]
pub struct Args {
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

/// Runs the command.
pub fn run(args: &Args) -> Result<(), String> {
    let keys = Keys::at(&args.keys);
    let client = Client::new(&keys, &args.round)?;
    let fail = |place: &Path, error: io::Error| format!("{}: {error}", place.display());
    std::fs::create_dir_all(&args.dir).map_err(|error| fail(&args.dir, error))?;
    let message = messages::order_message(args.size, &messages::Variant::default());
    for number in 0..args.count {
        let path = args.dir.join(format!("{number:06}.xml"));
        std::fs::write(&path, client.secure(&message)?.bytes).map_err(|error| fail(&path, error))?;
    }
    let (private, public) = bare_rsa(&keys, 200)?;
    // Nobody may be reading.
    let _ = writeln!(io::stdout(), "{:.1} {:.1}", private.as_secs_f64() * 1e6, public.as_secs_f64() * 1e6);
    Ok(())
}

/// Starts a Busbar with keys, which `system` keeps, and makes messages for its secure proxy: sizes, and how many of each.
pub(super) fn stage(
    stage: &Stage,
    wanted: &[(usize, usize)],
    system: &mut Option<System>,
) -> Result<Secured, String> {
    let keys = Keys::make(&stage.unpacked.folder("keys"))?;
    let https = systems::free_port()?;
    let client = Client::new(&keys, &stage.unpacked.round())?;
    let mut more = vec!["--https".to_owned(), format!("127.0.0.1:{https}")];
    more.extend(
        keys.settings()
            .into_iter()
            .flat_map(|(name, path)| ["--set".to_owned(), format!("{name}={}", path.display())]),
    );
    let started = systems::busbar(&stage.place, "secured", &stage.unpacked.round(), &more)?;
    let process = started.process.clone().ok_or("the process of the bus is not known")?;
    *system = Some(started);
    let url = format!("https://localhost:{https}/").parse()?;
    let batch = |&(size, count): &(usize, usize)| {
        let message = messages::order_message(size, &messages::Variant::default());
        let messages: Result<Vec<Vec<u8>>, String> =
            (0..count).map(|_| Ok(client.secure(&message)?.bytes)).collect();
        Ok(Batch { size, messages: messages?, bare: bare_rsa(&keys, 200)?.0.as_secs_f64() * 1e6 })
    };
    let batches: Result<Vec<Batch>, String> = wanted.iter().map(batch).collect();
    Ok(Secured { url, process, batches: batches? })
}
