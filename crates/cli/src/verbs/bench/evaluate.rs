//! `busbar bench evaluate`: growing clients and growing payloads, with tests of significance.

use super::stage::{self, Stage, Teller};
use bench::studies::{self, Method, Options};
use std::time::Duration;

/// Repeats the evaluation of the University of North Florida on Busbar and on other systems beside it, and writes a report.
///
/// 1 to 160 clients with 100 KB each, and one client with 1 KB to 1 MB; mean response time, throughput, CPU of the system and of the backend; Student's
/// paired t-test for every pair of systems. Exits with 1 when an answer was wrong.
#[derive(clap::Args)]
pub struct Args {
    /// Three levels of each test, three times a third of a second.
    #[arg(long)]
    quick: bool,
    /// How often each level is measured; default 10.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    /// Seconds of each measurement; default 1.
    #[arg(long, value_name = "SECONDS", value_parser = super::load::some_seconds)]
    seconds: Option<Duration>,
    #[command(flatten)]
    stage: stage::Args,
}

/// Whether every answer was right.
pub fn run(args: &Args) -> Result<bool, String> {
    let mut teller = Teller::new();
    let stage = Stage::new(&args.stage)?;
    let (repeat, milliseconds) = if args.quick { (3, 300) } else { (10, 1000) };
    let options = Options {
        quick: args.quick,
        seconds: args.seconds.unwrap_or(Duration::from_millis(milliseconds)),
        repeat: args.repeat.unwrap_or(repeat) as usize,
    };
    let mut run = studies::run(Method::Evaluate, &stage.systems, &stage.backend, &options, &mut |news| {
        teller.tell(&news)
    })?;
    stage::complete(&mut run, &stage.absent);
    drop(stage);
    let runs = [run];
    args.stage.write(&runs)?;
    Ok(stage::all_right(&runs))
}
