//! `busbar bench soak`: memory over a long time.

use super::stage::{self, Stage, Teller};
use bench::steps::News;
use bench::studies::{self, Length};
use std::path::PathBuf;
use std::time::Duration;

/// Sends the messages of all scenarios in turn for hours, and says whether memory grows: the slope of resident memory with its confidence interval.
/// Exits with 1 when an answer was wrong.
#[derive(clap::Args)]
pub struct Args {
    /// Hours, with a fraction or not. The published round took 40.
    #[arg(long, default_value_t = 1.0)]
    hours: f64,
    /// Ends after so many requests, if that is earlier.
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// The folder for the report.
    #[arg(long, value_name = "FOLDER", default_value = "bench-report")]
    out: PathBuf,
}

/// Whether every answer was right.
pub fn run(args: &Args) -> Result<bool, String> {
    if !(args.hours > 0.0 && args.hours <= 10_000.0) {
        return Err(format!("{} hours are not between 0 and 10,000", args.hours));
    }
    let mut teller = Teller::new();
    stage::writable(&args.out)?;
    let stage = Stage::with_settings(&[("busbar", &[])])?;
    teller.tell(&News::Begins(1, 1, "soak".to_owned()));
    let length = Length { duration: Duration::from_secs_f64(args.hours * 3600.0), requests: args.requests };
    let mut run =
        studies::soak(&stage.systems[0], length, &mut |progress| teller.tell(&News::Progress(progress)))?;
    for cell in &run.cells {
        teller.tell(&News::Measured(cell));
    }
    stage::complete(&mut run, &stage.absent);
    drop(stage);
    let runs = [run];
    stage::write(&args.out, &runs)?;
    Ok(stage::all_right(&runs))
}
