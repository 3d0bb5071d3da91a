//! `busbar bench profile`: where the processor time of flows goes.

use super::stage::{self, Stage, Teller};
use bench::messages;
use bench::profile::{self, Options};
use std::path::PathBuf;
use std::time::Duration;

/// Shows where the processor time of a flow goes: each of its steps, and what is left for receiving, routing, sending and the kernel. All flows of the example round, or those
/// that are named. Exits with 1 when an answer was wrong.
#[derive(clap::Args)]
pub struct Args {
    /// Only this scenario; can be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    scenarios: Vec<String>,
    /// Size of the message: 512, 1k, 100k, 1m.
    #[arg(long, value_parser = messages::parse_size, default_value = "1k")]
    size: usize,
    /// Seconds of each of the two measurements of a flow, without and with a clock at its steps.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = super::load::some_seconds)]
    seconds: Duration,
    /// The folder for the report.
    #[arg(long, value_name = "FOLDER", default_value = "bench-report")]
    out: PathBuf,
}

/// Whether every answer was right.
pub fn run(args: &Args) -> Result<bool, String> {
    let mut teller = Teller::new();
    stage::writable(&args.out)?;
    let options =
        Options { seconds: args.seconds, size: args.size, only: args.scenarios.clone(), quick: false };
    if profile::estimate(&options).0 == 0 {
        return Err(format!("the round has no scenario '{}'", args.scenarios.join("', '")));
    }
    let stage = Stage::with_settings(&[("busbar", &[])])?;
    let mut run = profile::run(&stage.systems[0], &stage.backend, &options, &mut |news| teller.tell(&news))?;
    stage::complete(&mut run, &stage.absent);
    drop(stage);
    let runs = [run];
    stage::write(&args.out, &runs)?;
    Ok(stage::all_right(&runs))
}
