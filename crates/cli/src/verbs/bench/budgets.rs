//! `busbar bench budgets`: what work may cost, and what it does cost.

use super::stage::{self, Stage, Teller};
use crate::secured::{Client, Keys, bare_rsa};
use bench::budgets::{self, Options, Secured};
use bench::messages;
use bench::systems::{self, System};
use std::time::Duration;

/// Measures every budget of the project: CPU for each request beside proxies and engines, routing beside the direct proxy, the start, memory, WS-Security beside the bare
/// operations of RSA. Those that are missed come first. Exits with 1 when an answer was wrong.
#[derive(clap::Args)]
pub struct Args {
    /// Two short turns.
    #[arg(long)]
    quick: bool,
    /// Seconds of each measurement; default 0.5.
    #[arg(long, value_name = "SECONDS", value_parser = super::load::some_seconds)]
    seconds: Option<Duration>,
    /// How often the systems take turns; the least CPU counts. Default 5.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    turns: Option<u32>,
    /// Requests of the measurement of memory over time; default 1,000,000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    requests: Option<u64>,
    #[command(flatten)]
    stage: stage::Args,
}

/// What is measured, by what was said.
pub(super) fn options(
    quick: bool,
    seconds: Option<Duration>,
    turns: Option<u32>,
    requests: Option<u64>,
) -> Options {
    let (usual, often, many) = if quick { (150, 2, 60_000) } else { (500, 5, 1_000_000) };
    Options {
        quick,
        seconds: seconds.unwrap_or(Duration::from_millis(usual)),
        turns: turns.unwrap_or(often) as usize,
        requests: requests.unwrap_or(many),
    }
}

/// Adds to the round what only budgets need. It is to be there before a system starts.
pub(super) fn prepare(stage: &Stage) -> Result<(), String> {
    let (name, text) = budgets::SCAN_PROXY;
    stage.unpacked.add(&format!("round/{name}"), text.as_bytes()).map(drop)
}

/// A Busbar with keys, and messages for its secure proxy.
pub(super) fn secured(stage: &Stage, quick: bool) -> Result<(System, Secured), String> {
    let keys = Keys::make(&stage.unpacked.folder("keys"))?;
    let https = systems::free_port()?;
    let client = Client::new(&keys, &stage.unpacked.round())?;
    let mut more = vec!["--https".to_owned(), format!("127.0.0.1:{https}")];
    more.extend(
        keys.settings()
            .into_iter()
            .flat_map(|(name, path)| ["--set".to_owned(), format!("{name}={}", path.display())]),
    );
    let system = systems::busbar(&stage.place, "secured", &stage.unpacked.round(), &more)?;
    let process = system.process.clone().ok_or("the process of the bus is not known")?;
    let url = format!("https://localhost:{https}/").parse()?;
    let count = if quick { 200 } else { 1500 };
    let mut sizes = Vec::new();
    for size in [1 << 10, 100 << 10] {
        let message = messages::order_message(size, &messages::Variant::default());
        let secured: Result<Vec<Vec<u8>>, String> =
            (0..count).map(|_| Ok(client.secure(&message)?.bytes)).collect();
        sizes.push((size, secured?, bare_rsa(&keys, 200)?.0.as_secs_f64() * 1e6));
    }
    Ok((system, Secured { url, process, sizes }))
}

/// Whether every answer was right.
pub fn run(args: &Args) -> Result<bool, String> {
    let mut teller = Teller::new();
    let stage = Stage::prepared(&args.stage, &prepare)?;
    let options = options(args.quick, args.seconds, args.turns, args.requests);
    let runs = [measured(&stage, &options, &mut teller)?];
    drop(stage);
    args.stage.write(&runs)?;
    Ok(stage::all_right(&runs))
}

/// All budgets on a stage that is prepared.
pub(super) fn measured(
    stage: &Stage,
    options: &Options,
    teller: &mut Teller,
) -> Result<bench::results::Run, String> {
    let mut system = None;
    let mut secured = || {
        let (started, secured) = secured(stage, options.quick)?;
        system = Some(started);
        Ok(secured)
    };
    let tell = &mut |news: bench::steps::News<'_>| teller.tell(&news);
    let mut run = budgets::run(&stage.place, &stage.systems, &stage.backend, &mut secured, options, tell)?;
    drop(system);
    stage::complete(&mut run, &stage.absent);
    Ok(run)
}
