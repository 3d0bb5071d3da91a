//! `busbar bench budgets`: what work may cost, and what it does cost.

use super::secured;
use super::stage::{self, Stage, Teller};
use bench::budgets::{self, Options};
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
    /// How often the systems take turns; the median of the turns counts. Default 7.
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
    let (usual, often, many) = if quick { (150, 2, 60_000) } else { (500, 7, 1_000_000) };
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

/// Whether every answer was right.
pub fn run(args: &Args) -> Result<bool, String> {
    let mut teller = Teller::new();
    let mut stage = Stage::prepared(&args.stage, &prepare)?;
    let options = options(args.quick, args.seconds, args.turns, args.requests);
    let runs = [measured(&mut stage, &options, &mut teller)?];
    drop(stage);
    args.stage.write(&runs)?;
    Ok(stage::all_right(&runs))
}

/// All budgets on a stage that is prepared. Beside other systems, the system calls of a relay alone are measured as well.
pub(super) fn measured(
    stage: &mut Stage,
    options: &Options,
    teller: &mut Teller,
) -> Result<bench::results::Run, String> {
    let has_floor = stage.systems.len() > 1 && stage.add(budgets::FLOOR.0);
    let run = measured_on(stage, options, teller);
    if has_floor {
        stage.systems.pop();
    }
    run
}

fn measured_on(stage: &Stage, options: &Options, teller: &mut Teller) -> Result<bench::results::Run, String> {
    let mut system = None;
    let mut securing = |wanted: &[(usize, usize)]| secured::stage(stage, wanted, &mut system);
    let tell = &mut |news: bench::steps::News<'_>| teller.tell(&news);
    let mut run = budgets::run(&stage.place, &stage.systems, &stage.backend, &mut securing, options, tell)?;
    drop(system);
    stage::complete(&mut run, &stage.absent);
    Ok(run)
}
