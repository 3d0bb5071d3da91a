//! `busbar bench generator`: the load generator beside wrk and ab.

use super::stage::{self, Stage, Teller};
use bench::generator::{self, Options};
use std::path::PathBuf;
use std::time::Duration;

/// Measures the load generator itself: beside wrk and ab, which are to be installed, against the same backend, with its CPU time for each request; and what a closed and an open loop see
/// of a server that stalls.
#[derive(clap::Args)]
pub struct Args {
    /// 100 connections only.
    #[arg(long)]
    quick: bool,
    /// Seconds of each measurement, whole ones.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// How often the generators take turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// The folder for the report.
    #[arg(long, value_name = "FOLDER", default_value = "bench-report")]
    out: PathBuf,
}

/// Whether every answer was right.
pub fn run(args: &Args) -> Result<bool, String> {
    let mut teller = Teller::new();
    stage::writable(&args.out)?;
    let stage = Stage::empty()?;
    let seconds = Duration::from_secs(args.seconds.into());
    let options = Options { quick: args.quick, seconds, turns: args.repeat as usize };
    let mut run = generator::run(&stage.place, &stage.backend, &options, &mut |news| teller.tell(&news))?;
    stage::complete(&mut run, &stage.absent);
    drop(stage);
    let runs = [run];
    stage::write(&args.out, &runs)?;
    Ok(stage::all_right(&runs))
}
