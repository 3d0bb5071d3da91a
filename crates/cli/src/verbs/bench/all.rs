//! `busbar bench all`: everything, in one report.

use super::stage::{self, Stage, Teller};
use super::{budgets as budgets_verb, round, tune, xslt};
use bench::results::Run;
use bench::rounds::{self, METHODS, PerClient};
use bench::steps::News;
use bench::studies::{self, Length, Method as Study};
use bench::{budgets, generator, profile};
use std::time::{Duration, Instant};

/// Measures all there is, on Busbar and the systems beside it, and writes one report: the budgets, the rounds of 2010 and 6.5, the evaluation, XSLT, the settings of a split and aggregate, where
/// the processor time of flows goes, memory over time, and the load generator itself. It says first what it will measure and how long that will take. A Ctrl-C ends it with a report of
/// what was measured until then.
#[derive(clap::Args)]
pub struct Args {
    /// Parts of the grids and short measurements: a few minutes.
    #[arg(long)]
    quick: bool,
    /// Only this part; can be repeated.
    #[arg(long = "part", value_name = "PART", value_enum)]
    parts: Vec<Part>,
    /// Say what would be measured and how long it would take, and end.
    #[arg(long)]
    plan: bool,
    #[command(flatten)]
    stage: stage::Args,
}

/// The parts of a whole report.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// What work may cost.
    Budgets,
    /// The round of 2010.
    #[value(name = "2010")]
    Round2010,
    /// Round 6.5.
    #[value(name = "6.5")]
    Round65,
    /// The evaluation of a university.
    Evaluate,
    /// xslt beside fastXSLT.
    Xslt,
    /// Settings of a split and aggregate.
    Tune,
    /// Where the processor time of flows goes.
    Profile,
    /// Memory over time.
    Soak,
    /// The load generator beside others.
    Generator,
}

const PARTS: [(Part, &str); 9] = [
    (Part::Budgets, "budgets"),
    (Part::Round2010, "round of 2010"),
    (Part::Round65, "round 6.5"),
    (Part::Evaluate, "evaluation"),
    (Part::Xslt, "XSLT"),
    (Part::Tune, "settings of a split and aggregate"),
    (Part::Profile, "profile of the flows"),
    (Part::Soak, "memory over time"),
    (Part::Generator, "load generator"),
];

/// The lengths of a whole report, in milliseconds, and of a quick one: so that the first takes half an hour with four systems beside, the second less than five minutes.
struct Lengths {
    round_2010: u64,
    round_65: u64,
    evaluate: (u64, usize),
    xslt: u64,
    profile: u64,
    soak: u64,
    generator: (u64, usize),
    /// Of the warm-up that a system asks for.
    warm_up: f64,
}

const WHOLE: Lengths = Lengths {
    round_2010: 450,
    round_65: 350,
    evaluate: (150, 10),
    xslt: 1000,
    profile: 1500,
    soak: 90_000,
    generator: (1000, 3),
    warm_up: 1.0,
};
const QUICK: Lengths = Lengths {
    round_2010: 120,
    round_65: 100,
    evaluate: (60, 3),
    xslt: 150,
    profile: 150,
    soak: 4000,
    generator: (1000, 1),
    warm_up: 0.1,
};

/// All that is measured, with its options.
struct Plan {
    quick: bool,
    lengths: &'static Lengths,
    parts: Vec<(Part, &'static str)>,
}

impl Plan {
    fn round(&self, milliseconds: u64) -> rounds::Options {
        let (seconds, per_client) = (Duration::from_millis(milliseconds), PerClient::Main);
        rounds::Options { quick: self.quick, seconds, repeat: 1, per_client, only: Vec::new() }
    }

    fn study(&self, milliseconds: u64, repeat: usize) -> studies::Options {
        studies::Options { quick: self.quick, seconds: Duration::from_millis(milliseconds), repeat }
    }

    fn profile(&self) -> profile::Options {
        let seconds = Duration::from_millis(self.lengths.profile);
        profile::Options { seconds, size: 1 << 10, only: Vec::new(), quick: self.quick }
    }

    fn generator(&self) -> generator::Options {
        let (milliseconds, turns) = self.lengths.generator;
        generator::Options { quick: self.quick, seconds: Duration::from_millis(milliseconds), turns }
    }

    fn evaluate(&self) -> studies::Options {
        self.study(self.lengths.evaluate.0, self.lengths.evaluate.1)
    }

    fn budgets(&self) -> budgets::Options {
        budgets_verb::options(self.quick, None, None, None)
    }

    fn round_of(&self, part: Part) -> (&'static rounds::Method, rounds::Options) {
        match part {
            Part::Round2010 => (&METHODS[0], self.round(self.lengths.round_2010)),
            _ => (&METHODS[1], self.round(self.lengths.round_65)),
        }
    }

    /// How many measurements a part has, and how long they will take.
    fn estimate(&self, part: Part, stage: &Stage) -> (usize, Duration) {
        match part {
            Part::Budgets => budgets::estimate(&stage.systems, &self.budgets()),
            Part::Round2010 | Part::Round65 => {
                let (method, options) = self.round_of(part);
                rounds::estimate(method, &stage.systems, &options)
            }
            Part::Evaluate => studies::estimate(Study::Evaluate, &stage.systems, &self.evaluate()),
            Part::Xslt => {
                let (count, time) =
                    studies::estimate(Study::Xslt, &stage.systems, &self.study(self.lengths.xslt, 1));
                // A second Busbar with other settings.
                (count + 12, time + Duration::from_millis(self.lengths.xslt * 12 + 3000))
            }
            Part::Tune => {
                let count = tune::SETTINGS.len();
                (count, Duration::from_millis(if self.quick { 1200 } else { 2500 }) * count as u32)
            }
            Part::Profile => profile::estimate(&self.profile()),
            Part::Soak => (1, Duration::from_millis(self.lengths.soak)),
            Part::Generator => generator::estimate(&self.generator()),
        }
    }

    /// Says what will be measured and how long that will take.
    fn tell(&self, stage: &Stage) {
        let mut total = Duration::ZERO;
        let systems: Vec<&str> = stage.systems.iter().map(|system| system.about.name.as_str()).collect();
        eprintln!("systems: {}", systems.join(", "));
        for &(part, name) in &self.parts {
            let (count, time) = self.estimate(part, stage);
            total += time;
            eprintln!("{name:<36} {count:>5} measurements, about {:.1} min", time.as_secs_f64() / 60.0);
        }
        eprintln!("all of it: about {:.0} min", (total.as_secs_f64() / 60.0).ceil());
    }

    fn measured(&self, part: Part, stage: &mut Stage, teller: &mut Teller) -> Result<Run, String> {
        let backend = &stage.backend;
        let mut run = match part {
            Part::Budgets => return budgets_verb::measured(stage, &self.budgets(), teller),
            Part::Round2010 | Part::Round65 => {
                let (method, options) = self.round_of(part);
                round::measured(method, stage, &options, teller)?
            }
            Part::Evaluate => {
                let tell = &mut |news: News<'_>| teller.tell(&news);
                studies::run(Study::Evaluate, &stage.systems, backend, &self.evaluate(), tell)?
            }
            Part::Xslt => {
                xslt::raise(stage)?;
                let tell = &mut |news: News<'_>| teller.tell(&news);
                let options = self.study(self.lengths.xslt, 1);
                let run = studies::run(Study::Xslt, &stage.systems, &stage.backend, &options, tell);
                stage.systems.pop();
                run?
            }
            Part::Tune => {
                let stage = Stage::with_settings(&tune::SETTINGS)?;
                let tell = &mut |news: News<'_>| teller.tell(&news);
                studies::run(Study::Tune, &stage.systems, &stage.backend, &self.study(500, 1), tell)?
            }
            Part::Profile => {
                profile::run(&stage.systems[0], backend, &self.profile(), &mut |news| teller.tell(&news))?
            }
            Part::Soak => {
                teller.tell(&News::Begins(1, 1, "soak".to_owned()));
                let length = Length { duration: Duration::from_millis(self.lengths.soak), requests: None };
                let stage = Stage::with_settings(&[("busbar", &[])])?;
                studies::soak(&stage.systems[0], length, &mut |progress| {
                    teller.tell(&News::Progress(progress))
                })?
            }
            Part::Generator => {
                generator::run(&stage.place, backend, &self.generator(), &mut |news| teller.tell(&news))?
            }
        };
        stage::complete(&mut run, &stage.absent);
        Ok(run)
    }
}

/// Whether every answer was right.
pub fn run(args: &Args) -> Result<bool, String> {
    let mut teller = Teller::new();
    let mut stage = Stage::prepared(&args.stage, &budgets_verb::prepare)?;
    let lengths = if args.quick { &QUICK } else { &WHOLE };
    let parts = PARTS.into_iter().filter(|(part, _)| args.parts.is_empty() || args.parts.contains(part));
    let plan = Plan { quick: args.quick, lengths, parts: parts.collect() };
    for system in &mut stage.systems {
        system.warm_up_by(lengths.warm_up);
    }
    plan.tell(&stage);
    if args.plan {
        return Ok(true);
    }
    let mut runs: Vec<Run> = Vec::new();
    for &(part, name) in &plan.parts {
        let began = Instant::now();
        let (_, expected) = plan.estimate(part, &stage);
        match plan.measured(part, &mut stage, &mut teller) {
            Ok(run) => runs.push(run),
            // The others are worth having.
            Err(why) => {
                eprintln!("not measured: {name}: {why}");
                stage.absent.push(format!("{name}: {why}"));
            }
        }
        eprintln!(
            "{name}: {:.1} min (about {:.1} were expected)",
            began.elapsed().as_secs_f64() / 60.0,
            expected.as_secs_f64() / 60.0
        );
        if !teller.goes_on() || stage.backend.ended().is_some() {
            break;
        }
        // What was measured is not lost, whatever happens to the rest. Where it cannot be written now, the end says so.
        let _ = stage::write_to(args.stage.out(), &runs);
    }
    drop(stage);
    args.stage.write(&runs)?;
    Ok(stage::all_right(&runs))
}
