//! `busbar bench xslt`: the mediators xslt and fastXSLT.

use super::stage::{self, Stage, Teller};
use bench::studies::{self, Method, Options};
use bench::systems;
use std::time::Duration;

/// Measures the xslt mediator beside fastXSLT as the published article does, and beside the transformations of other systems: 8 KB with 50, 100 and 150 clients, 105 KB
/// with 5, 10 and 15; once as it is, and once with the thresholds of temporary data that the article raises. (Busbar keeps nothing in such files: the settings are
/// accepted and change nothing, which this shows.)
#[derive(clap::Args)]
pub struct Args {
    /// Half a second for each measurement.
    #[arg(long)]
    quick: bool,
    /// Seconds of each measurement; default 2.
    #[arg(long, value_name = "SECONDS", value_parser = super::load::some_seconds)]
    seconds: Option<Duration>,
    /// How often each measurement is made.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    #[command(flatten)]
    stage: stage::Args,
}

/// What the article raises the thresholds of temporary data to: a name, and what is added to the command.
pub(super) const RAISED: (&str, [&str; 4]) = (
    "busbar, temp data 16384 x 32",
    [
        "--set",
        "wso2.synapse.temp_data.chunk.size=16384",
        "--set",
        "wso2.synapse.temp_data.chunk.threshold=32",
    ],
);

/// Starts a Busbar with these thresholds beside the others.
pub(super) fn raise(stage: &mut Stage) -> Result<(), String> {
    let more = RAISED.1.map(str::to_owned);
    stage.systems.push(systems::busbar(&stage.place, RAISED.0, &stage.unpacked.round(), &more)?);
    Ok(())
}

/// Whether every answer was right.
pub fn run(args: &Args) -> Result<bool, String> {
    let mut teller = Teller::new();
    let mut stage = Stage::new(&args.stage)?;
    raise(&mut stage)?;
    let usual = Duration::from_millis(if args.quick { 500 } else { 2000 });
    let options =
        Options { quick: args.quick, seconds: args.seconds.unwrap_or(usual), repeat: args.repeat as usize };
    let tell = &mut |news: bench::steps::News<'_>| teller.tell(&news);
    let mut run = studies::run(Method::Xslt, &stage.systems, &stage.backend, &options, tell)?;
    stage::complete(&mut run, &stage.absent);
    drop(stage);
    let runs = [run];
    args.stage.write(&runs)?;
    Ok(stage::all_right(&runs))
}
