//! `busbar bench xslt`: the mediators xslt and fastXSLT.

use super::stage::{self, Stage, Teller};
use bench::studies::{self, Options};
use std::path::PathBuf;
use std::time::Duration;

/// Measures the xslt mediator beside fastXSLT as the published article does: 8 KB with 50, 100 and 150 clients, 105 KB with 5, 10 and 15; once as it is, and once with
/// the thresholds of temporary data that the article raises. (Busbar keeps nothing in such files: the settings are accepted and change nothing, which
/// this shows.)
#[derive(clap::Args)]
pub struct Args {
    /// Seconds of each measurement.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = super::load::seconds)]
    seconds: Duration,
    /// How often each measurement is made.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// The folder for the report.
    #[arg(long, value_name = "FOLDER", default_value = "bench-report")]
    out: PathBuf,
}

/// Default of the article, and what it raises it to.
const SETTINGS: [(&str, &[&str]); 2] = [
    ("busbar", &[]),
    (
        "busbar, temp data 16384 x 32",
        &[
            "--set",
            "wso2.synapse.temp_data.chunk.size=16384",
            "--set",
            "wso2.synapse.temp_data.chunk.threshold=32",
        ],
    ),
];

/// Whether every answer was right.
pub fn run(args: &Args) -> Result<bool, String> {
    let mut teller = Teller::new();
    let stage = Stage::with_settings(&SETTINGS)?;
    let options = Options { quick: false, seconds: args.seconds, repeat: args.repeat as usize };
    let mut run = studies::xslt(&stage.systems, &stage.backend, &options, &mut |news| teller.tell(&news))?;
    stage::complete(&mut run, &stage.absent);
    drop(stage);
    let runs = [run];
    stage::write(&args.out, &runs)?;
    Ok(stage::all_right(&runs))
}
