//! The methods that are no rounds: the evaluation of the University of North Florida, XSLT beside fastXSLT, settings of a split and aggregate, and a long run.

use crate::measure::{self, Load, Watch};
use crate::results::Run;
use crate::scenarios::{self, Scenario};
use crate::steps::{self, Step, Tell, able};
use crate::systems::{Backend, System};
use std::time::{Duration, Instant};

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// A part of the grid.
    pub quick: bool,
    /// The longest that one measurement counts.
    pub seconds: Duration,
    /// How often each measurement is made.
    pub repeat: usize,
}

/// The paper's direct proxy has a service that appends to its payload.
const EVALUATED: [&str; 3] = ["AppendProxy", "CBRProxy", "XSLTProxy"];
/// Numbers of clients, with 100 KB each; and those of a quick run.
const CLIENTS: ([usize; 5], [usize; 3]) = ([1, 20, 40, 80, 160], [1, 40, 160]);
/// Payloads of one client; and those of a quick run.
const PAYLOADS: ([usize; 6], [usize; 3]) =
    ([1 << 10, 10 << 10, 50 << 10, 100 << 10, 500 << 10, 1 << 20], [1 << 10, 100 << 10, 1 << 20]);
/// What growing clients share.
const PAYLOAD: usize = 100 << 10;

/// What a method measures: its scenarios, their levels, and how many requests; `None`: as many as there is time for.
struct Study {
    method: &'static str,
    scenarios: &'static [&'static str],
    /// Setting, clients, bytes.
    levels: Vec<(&'static str, usize, usize)>,
    requests: Option<u64>,
}

/// The methods of this module.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// The two tests of the paper: `clients` and `payloads`.
    Evaluate,
    /// `xslt` beside `fastXSLT`.
    Xslt,
    /// Eleven requests of one, answered as one, on systems with different settings.
    Tune,
}

/// The grids of the article: 8 KB with 50 to 150 clients, 105 KB with 5 to 15.
const XSLT: [(&str, usize, usize); 6] = [
    ("", 50, 8 << 10),
    ("", 100, 8 << 10),
    ("", 150, 8 << 10),
    ("", 5, 105 << 10),
    ("", 10, 105 << 10),
    ("", 15, 105 << 10),
];

/// Users and requests of each, as in the article.
const USERS: usize = 50;
const LOOPS: u64 = 200;

impl Method {
    fn study(self, quick: bool) -> Study {
        match self {
            Method::Evaluate => {
                let (clients, payloads): (&[usize], &[usize]) =
                    if quick { (&CLIENTS.1, &PAYLOADS.1) } else { (&CLIENTS.0, &PAYLOADS.0) };
                let levels = clients.iter().map(|&clients| ("clients", clients, PAYLOAD));
                let levels = levels.chain(payloads.iter().map(|&size| ("payloads", 1, size))).collect();
                Study { method: "evaluate", scenarios: &EVALUATED, levels, requests: None }
            }
            Method::Xslt => {
                let scenarios = &["XSLTProxy", "XSLTEnhancedProxy"];
                Study { method: "xslt", scenarios, levels: XSLT.to_vec(), requests: None }
            }
            Method::Tune => {
                let scenarios = &["SplitAggregateProxy"];
                // The message has the size that it has.
                let size =
                    scenarios::find(scenarios[0]).map_or(0, |scenario| scenario.case(0).request.body.len());
                let requests = (!quick).then_some(USERS as u64 * LOOPS);
                Study { method: "tune", scenarios, levels: vec![("", USERS, size)], requests }
            }
        }
    }
}

impl Study {
    /// All levels of all scenarios, on the systems that `able` names for each.
    fn grid(
        &self,
        options: &Options,
        able: &mut dyn FnMut(&'static Scenario, &[usize]) -> Vec<usize>,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut sizes: Vec<usize> = self.levels.iter().map(|(_, _, size)| *size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for scenario in self.scenarios.iter().filter_map(|name| scenarios::find(name)) {
            let able = able(scenario, &sizes);
            for &(setting, clients, size) in &self.levels {
                let (warm_up, requests) = (options.seconds / 5, self.requests);
                // A number of requests ends it; the time is there for systems that hang.
                let longest = if requests.is_some() { Duration::from_secs(600) } else { options.seconds };
                let load = Load { clients, keep_alive: true, warm_up, longest, requests };
                for repetition in 0..options.repeat {
                    let step = |&system: &usize| Step {
                        system,
                        scenario,
                        size,
                        load,
                        repetition,
                        setting: setting.to_owned(),
                    };
                    steps.extend(able.iter().map(step));
                }
            }
        }
        steps
    }
}

/// How many measurements a method has, and how long they will take.
pub fn estimate(method: Method, systems: &[System], options: &Options) -> (usize, Duration) {
    let steps = method.study(options.quick).grid(options, &mut |scenario, _| {
        (0..systems.len()).filter(|&number| systems[number].can(scenario)).collect()
    });
    (steps.len(), steps::estimate(systems, &steps))
}

/// Runs a method.
///
/// # Errors
/// The load generator cannot run.
pub fn run(
    method: Method,
    systems: &[System],
    backend: &Backend,
    options: &Options,
    tell: &mut Tell<'_>,
) -> Result<Run, String> {
    let study = method.study(options.quick);
    let mut run = steps::begin(study.method, options.quick, systems);
    let began = Instant::now();
    let steps = study.grid(options, &mut |scenario, sizes| able(&mut run, systems, scenario, sizes, tell));
    steps::execute(&mut run, systems, backend, &steps, tell)?;
    run.took = began.elapsed().as_secs_f64();
    Ok(run)
}

/// The bytes of a message of a long run: most scenarios at once, so no single one takes all of the time.
const SOAK_SIZE: usize = 10 << 10;
const SOAK_CLIENTS: usize = 20;

/// How long a soak takes.
#[derive(Copy, Clone, Debug)]
pub struct Length {
    /// It ends after this long.
    pub duration: Duration,
    /// Or after so many requests, whatever comes first.
    pub requests: Option<u64>,
}

/// All scenarios in turn for a long time, with memory sampled.
///
/// # Errors
/// The load generator cannot run, or no scenario is answered rightly.
pub fn soak(system: &System, length: Length, watch: &mut Watch<'_>) -> Result<Run, String> {
    let mut run = steps::begin("soak", false, std::slice::from_ref(system));
    let began = Instant::now();
    let measured = |scenario: &&Scenario| scenario.is_measured() && system.can(scenario);
    let mut cases = Vec::new();
    for scenario in scenarios::ROUND.iter().filter(measured) {
        let case = scenario.case(SOAK_SIZE);
        match measure::correct(&system.url, &case) {
            Ok(()) => cases.push(case),
            Err(why) => run
                .absent
                .push(format!("{} does not answer {} rightly: {why}", system.about.name, scenario.name)),
        }
    }
    if cases.is_empty() {
        return Err("no scenario is answered rightly".to_owned());
    }
    let Length { duration, requests } = length;
    let load = Load {
        clients: SOAK_CLIENTS,
        keep_alive: true,
        warm_up: Duration::ZERO,
        longest: duration,
        requests,
    };
    // A thousand samples of any time, but no more than four a second.
    let interval = (duration / 1000).clamp(Duration::from_millis(250), Duration::from_secs(60));
    let processes = system.process.iter().cloned().collect();
    let outcome = measure::run_all(&system.url, &cases, &load, interval, processes, watch)?;
    let mut cell = measure::cell(&system.about.name, "all in turn", SOAK_SIZE, SOAK_CLIENTS, &outcome);
    let samples = outcome.processes.first().map(|(_, samples)| samples.as_slice()).unwrap_or_default();
    cell.memory =
        samples.iter().map(|sample| (sample.at, sample.resident as f64 / f64::from(1 << 20))).collect();
    cell.at = began.elapsed().as_secs_f64();
    if cell.failed > 0
        && let Some(how) = system.ended()
    {
        run.absent.push(format!("{} has ended in the middle: {how}", system.about.name));
        run.is_cut = true;
    }
    run.cells.push(cell);
    run.took = began.elapsed().as_secs_f64();
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grids_are_those_of_the_papers() {
        for name in EVALUATED.iter().chain(&["XSLTProxy", "XSLTEnhancedProxy", "SplitAggregateProxy"]) {
            assert!(scenarios::find(name).is_some_and(Scenario::is_measured), "{name}");
        }
        assert!(CLIENTS.1.iter().all(|level| CLIENTS.0.contains(level)));
        assert!(PAYLOADS.1.iter().all(|level| PAYLOADS.0.contains(level)));
        // Each published level of the article has its measurement.
        for figure in crate::published::figures().iter().filter(|figure| figure.round == "fastxslt") {
            let (size, clients) = (figure.size.unwrap(), figure.clients.parse().unwrap());
            assert!(XSLT.contains(&("", clients, size)), "{figure:?}");
        }
    }
}
