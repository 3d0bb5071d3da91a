//! `busbar bench tune`: a split and aggregate with other settings.

use super::stage::{self, Stage, Teller};
use bench::studies::{self, Method, Options};
use std::path::PathBuf;
use std::time::Duration;

/// Measures a split and aggregate (eleven calls for each request) with 50 users and 200 requests of each, while one setting at a time varies: workers, memory, connections to the backend
/// and the requests that wait for one, size of the buffer.
#[derive(clap::Args)]
pub struct Args {
    /// Half a second of each instead of 10,000 requests.
    #[arg(long)]
    quick: bool,
    /// How often each measurement is made.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// The folder for the report.
    #[arg(long, value_name = "FOLDER", default_value = "bench-report")]
    out: PathBuf,
}

/// What the article varies, as far as there is such a thing here.
pub(super) const SETTINGS: [(&str, &[&str]); 8] = [
    ("busbar", &[]),
    ("workers = 2", &["--workers", "2"]),
    ("memory = 64m", &["--set", "limits.memory=64m"]),
    ("memory = 1g", &["--set", "limits.memory=1g"]),
    ("backend_connections = 20", &["--set", "limits.backend_connections=20"]),
    ("backend_connections = 100", &["--set", "limits.backend_connections=100"]),
    ("io_buffer_size = 4k", &["--set", "limits.io_buffer_size=4k"]),
    ("io_buffer_size = 64k", &["--set", "limits.io_buffer_size=64k"]),
];

/// Whether every answer was right.
pub fn run(args: &Args) -> Result<bool, String> {
    let mut teller = Teller::new();
    stage::writable(&args.out)?;
    let stage = Stage::with_settings(&SETTINGS)?;
    let options =
        Options { quick: args.quick, seconds: Duration::from_millis(500), repeat: args.repeat as usize };
    let mut run =
        studies::run(Method::Tune, &stage.systems, &stage.backend, &options, &mut |news| teller.tell(&news))?;
    stage::complete(&mut run, &stage.absent);
    drop(stage);
    let runs = [run];
    stage::write(&args.out, &runs)?;
    Ok(stage::all_right(&runs))
}
