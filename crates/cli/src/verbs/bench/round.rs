//! `busbar bench round`: the published rounds, on this machine.

use super::secured;
use super::stage::{self, Stage, Teller};
use bench::results::Run;
use bench::rounds::{self, METHODS, Method, Options, PerClient};
use bench::steps::News;
use std::time::Duration;

/// Runs the published ESB performance rounds by their methods, on Busbar and on other systems beside it, and writes a report.
///
/// `2010`: four scenarios, 0.5 to 100 KB, 20 to 300 clients, no keep-alive, the best rate with its clients. `6.5`: six scenarios, 512 B to 100 KB, 20 to 2,560 clients, the mean over all,
/// and the latency that is added; the secure proxy with 20 clients. The systems take turns; all have the same backend and the same messages, and every answer is verified.
/// Exits with 1 when an answer was wrong.
#[derive(clap::Args)]
pub struct Args {
    /// The method; can be repeated. Without it all.
    #[arg(long = "method", value_name = "NAME", value_parser = method)]
    methods: Vec<&'static Method>,
    /// A part of the grid, and half a second for each measurement.
    #[arg(long)]
    quick: bool,
    /// The longest that a measurement counts, in seconds; default 2. A fifth of it goes before, as warm-up.
    #[arg(long, value_name = "SECONDS", value_parser = super::load::some_seconds)]
    seconds: Option<Duration>,
    /// How often each measurement is made.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Requests of each client in round 6.5, for up to 40 clients, up to 320, and beyond: `main` (1000,100,200), `appendix` (1000,100,10), three numbers, one for all, or `any`
    /// (as many as there is time for).
    #[arg(long, default_value = "main", value_parser = per_client)]
    per_client: PerClient,
    /// Only this scenario; can be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    scenarios: Vec<String>,
    #[command(flatten)]
    stage: stage::Args,
}

fn method(name: &str) -> Result<&'static Method, String> {
    let names: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
    rounds::find(name).ok_or_else(|| format!("'{name}' is not a method: {}", names.join(", ")))
}

fn per_client(name: &str) -> Result<PerClient, String> {
    match name {
        "main" => Ok(PerClient::Main),
        "appendix" => Ok(PerClient::Appendix),
        "any" => Ok(PerClient::Any),
        _ => {
            let numbers: Option<Vec<u64>> = name
                .split(',')
                .map(|number| number.trim().parse().ok().filter(|number| *number > 0))
                .collect();
            match numbers.as_deref() {
                Some(&[requests]) => Ok(PerClient::Each([requests; 3])),
                Some(&[few, some, many]) => Ok(PerClient::Each([few, some, many])),
                _ => Err(format!(
                    "'{name}' is not main, appendix, any, a number, or three of them (1000,100,200)"
                )),
            }
        }
    }
}

/// Runs a method on a stage.
pub(super) fn measured(
    method: &Method,
    stage: &Stage,
    options: &Options,
    teller: &mut Teller,
) -> Result<Run, String> {
    let mut system = None;
    let mut securing = |wanted: &[(usize, usize)]| secured::stage(stage, wanted, &mut system);
    let tell = &mut |news: News<'_>| teller.tell(&news);
    rounds::run(method, &stage.systems, &stage.backend, options, &mut securing, tell)
}

/// Whether every answer was right.
pub fn run(args: &Args) -> Result<bool, String> {
    let methods: Vec<&Method> =
        if args.methods.is_empty() { METHODS.iter().collect() } else { args.methods.clone() };
    for scenario in &args.scenarios {
        if !methods.iter().any(|method| method.names().any(|name| name.eq_ignore_ascii_case(scenario))) {
            return Err(format!("no method has a scenario '{scenario}'"));
        }
    }
    let mut teller = Teller::new();
    let stage = Stage::new(&args.stage)?;
    let usual = Duration::from_millis(if args.quick { 500 } else { 2000 });
    let options = Options {
        quick: args.quick,
        seconds: args.seconds.unwrap_or(usual),
        repeat: args.repeat as usize,
        per_client: args.per_client,
        only: args.scenarios.clone(),
    };
    let mut runs = Vec::new();
    for method in methods {
        let mut run = measured(method, &stage, &options, &mut teller)?;
        stage::complete(&mut run, &stage.absent);
        runs.push(run);
        if !teller.goes_on() {
            break;
        }
    }
    drop(stage);
    args.stage.write(&runs)?;
    Ok(stage::all_right(&runs))
}
