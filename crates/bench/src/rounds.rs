//! The methods of the published rounds, and what runs them.
//!
//! What the articles leave open is an option or is written here where it was decided: the grids are theirs; the length of a measurement is ours, since
//! they print none, or bounded by a time, since a machine of today answers what was an hour's work in minutes.

use crate::measure::Load;
use crate::results::{Cell, Run};
use crate::scenarios::{self, Scenario};
use crate::secured::{self, Securing};
use crate::steps::{self, DIRECT, News, Step, Tell, able, leave};
use crate::systems::{Backend, System};
use std::time::{Duration, Instant};

/// How the cells of a scenario become one figure.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Summary {
    /// Of each size the highest rate over all numbers of clients, with that number.
    Best,
    /// The mean over all sizes and numbers of clients.
    Mean,
}

/// A method of a round.
#[derive(Debug)]
pub struct Method {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it reproduces.
    pub title: &'static str,
    /// The figures that stand beside it: a source of [`crate::published`] and its metric.
    pub published: (&'static str, &'static str),
    /// What is measured.
    pub scenarios: &'static [&'static str],
    /// Sizes of messages in bytes.
    pub sizes: &'static [usize],
    /// Numbers of clients.
    pub clients: &'static [usize],
    /// The shortened grid: sizes and numbers of clients.
    pub quick: (&'static [usize], &'static [usize]),
    /// Whether clients keep their connections.
    pub keep_alive: bool,
    /// How cells become one figure.
    pub summary: Summary,
    /// Whether the latency that a system adds to the backend's is measured.
    pub added_latency: bool,
    /// Whether the secure proxy is measured as well, with the first number of clients: its messages are good once, so they are made before.
    pub secured: bool,
}

/// All methods.
pub static METHODS: [Method; 2] = [
    Method {
        name: "2010",
        title: "Round of 2010: the most requests a second, without keep-alive",
        published: ("round-2010", "tps_max"),
        scenarios: &["MessageRelayProxy", "DirectProxy", "CBRProxy", "XSLTProxy"],
        sizes: &[512, 1 << 10, 10 << 10, 100 << 10],
        clients: &[20, 60, 100, 140, 180, 220, 260, 300],
        quick: (&[1 << 10, 10 << 10], &[20, 100, 300]),
        keep_alive: false,
        summary: Summary::Best,
        added_latency: false,
        secured: false,
    },
    Method {
        name: "6.5",
        title: "Round 6.5: the mean over all sizes, and the latency that is added",
        published: ("round-6.5", "tps_mean"),
        scenarios: &[
            "DirectProxy",
            "CBRProxy",
            "CBRSOAPHeaderProxy",
            "CBRTransportHeaderProxy",
            "XSLTProxy",
            "XSLTEnhancedProxy",
        ],
        sizes: &[512, 1 << 10, 5 << 10, 10 << 10, 100 << 10],
        clients: &[20, 40, 80, 160, 320, 640, 1280, 2560],
        quick: (&[1 << 10, 10 << 10], &[20, 320]),
        keep_alive: true,
        summary: Summary::Mean,
        added_latency: true,
        secured: true,
    },
];

impl Method {
    /// The names of all that is measured.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.scenarios.iter().copied().chain(self.secured.then_some(scenarios::SECURE.name))
    }
}

/// The method of that name.
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// How many requests each client of Round 6.5 sends, by the number of clients. The article has three statements that do not agree.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum PerClient {
    /// So many, up to 40 clients, up to 320, and beyond.
    Each([u64; 3]),
    /// 1000 up to 40 clients, 100 up to 320, 200 beyond: the most consistent reading of the main table, and what the article recommends.
    Main,
    /// 1000, 100 and 10: the runs of the appendix, which the article calls unrealistic.
    Appendix,
    /// As many as there is time for.
    Any,
}

impl PerClient {
    /// Requests of all clients together.
    pub fn requests(self, clients: usize) -> Option<u64> {
        let [few, some, many] = match self {
            PerClient::Any => return None,
            PerClient::Main => [1000, 100, 200],
            PerClient::Appendix => [1000, 100, 10],
            PerClient::Each(rule) => rule,
        };
        let each = match clients {
            ..=40 => few,
            41..=320 => some,
            _ => many,
        };
        Some(each.saturating_mul(clients as u64))
    }
}

/// What can be chosen for a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The shortened grid.
    pub quick: bool,
    /// The longest that one measurement counts.
    pub seconds: Duration,
    /// How often each cell is measured; the systems take turns within a repetition.
    pub repeat: usize,
    /// Requests of each client, for methods with keep-alive.
    pub per_client: PerClient,
    /// Only these scenarios; empty: all of the method.
    pub only: Vec<String>,
}

/// The clients and the size of the table of added latencies.
const ADDED: (usize, usize) = (20, 1000);
/// How often the backend and the systems take turns for it.
const ADDED_TURNS: usize = 3;
/// What cells of added latencies are set to.
pub const ADDED_SETTING: &str = "added latency";

/// What a method measures of the systems that `able` names for each scenario.
fn grid(
    method: &Method,
    systems: &[System],
    options: &Options,
    able: &mut dyn FnMut(&'static Scenario, &[usize]) -> Vec<usize>,
) -> Vec<Step> {
    let (sizes, clients) = if options.quick { method.quick } else { (method.sizes, method.clients) };
    let wanted = |name: &&&str| {
        options.only.is_empty() || options.only.iter().any(|only| only.eq_ignore_ascii_case(name))
    };
    let scenarios = method.scenarios.iter().filter(wanted).filter_map(|name| scenarios::find(name));
    let mut steps = Vec::new();
    for scenario in scenarios {
        let able = able(scenario, sizes);
        if able.is_empty() {
            continue;
        }
        let warm_up = options.seconds / 5;
        let mut add = |system, size, load, repetition, setting: &str| {
            steps.push(Step { system, scenario, size, load, repetition, setting: setting.to_owned() });
        };
        for &size in sizes {
            for &clients in clients {
                let per_client = if method.keep_alive { options.per_client } else { PerClient::Any };
                let (requests, longest) = (per_client.requests(clients), options.seconds);
                let load = Load { clients, keep_alive: method.keep_alive, warm_up, longest, requests };
                for repetition in 0..options.repeat {
                    able.iter().for_each(|&system| add(system, size, load, repetition, ""));
                }
            }
        }
        if method.added_latency {
            let (clients, size) = ADDED;
            let load = Load::lasting(clients, options.seconds);
            for repetition in 0..ADDED_TURNS {
                let indexes = able.iter().copied().chain([systems.len()]);
                indexes.for_each(|system| add(system, size, load, repetition, ADDED_SETTING));
            }
        }
    }
    steps
}

/// Whether the secure proxy is measured.
fn is_secured(method: &Method, options: &Options) -> bool {
    let is_wanted = |name: &String| name.eq_ignore_ascii_case(scenarios::SECURE.name);
    method.secured && (options.only.is_empty() || options.only.iter().any(is_wanted))
}

/// Sizes and turns of the secure proxy: the turns are those of the added latency.
fn secured_batches(method: &Method, options: &Options) -> Vec<(usize, usize)> {
    let count = secured::messages(options.quick);
    let sizes = if options.quick { method.quick.0 } else { method.sizes };
    let turns = if method.added_latency { ADDED_TURNS } else { 0 };
    sizes.iter().copied().chain(std::iter::repeat_n(ADDED.1, turns)).map(|size| (size, count)).collect()
}

/// What one message takes to be made and sent.
const SECURED_MESSAGE: Duration = Duration::from_micros(2500);

/// Measures the secure proxy: each size once, and in turn with the backend what it adds.
fn measure_secured(
    method: &Method,
    backend: &Backend,
    options: &Options,
    securing: &mut Securing<'_>,
    run: &mut Run,
    tell: &mut Tell<'_>,
) -> Result<(), String> {
    let scenario = &scenarios::SECURE;
    let wanted = secured_batches(method, options);
    // The sizes of the round come first.
    let first_turn = wanted.len() - if method.added_latency { ADDED_TURNS } else { 0 };
    tell(News::Begins(0, 0, format!("{}: messages are signed and encrypted", scenario.name)));
    let secured = match securing(&wanted) {
        Ok(secured) => secured,
        Err(why) => {
            leave(run, tell, format!("{}: {why}", scenario.name));
            return Ok(());
        }
    };
    let clients = method.clients[0];
    let why =
        "its messages are good once, and are made before; the other systems have no configuration for it";
    leave(run, tell, format!("{}: with {clients} clients only, and Busbar alone: {why}", scenario.name));
    for (number, batch) in secured.batches.iter().enumerate() {
        let turn = number.checked_sub(first_turn);
        if let Some(repetition) = turn {
            let load = Load::lasting(ADDED.0, options.seconds);
            let setting = ADDED_SETTING.to_owned();
            let direct = Step { system: 0, scenario, size: batch.size, load, repetition, setting };
            steps::execute(run, &[], backend, &[direct], tell)?;
        }
        let what = format!("busbar {} {} B, {clients} clients", scenario.name, batch.size);
        let mut goes_on = tell(News::Begins(number + 1, secured.batches.len(), what));
        let mut cell = secured.measure(batch, clients, &mut |progress| {
            goes_on = goes_on && tell(News::Progress(progress));
            goes_on
        })?;
        if let Some(repetition) = turn {
            (cell.repetition, cell.setting) = (repetition, ADDED_SETTING.to_owned());
        }
        tell(News::Measured(&cell));
        run.cells.push(cell);
        if !goes_on {
            run.is_cut = true;
            break;
        }
    }
    Ok(())
}

/// How many measurements a method has, and how long they will take.
pub fn estimate(method: &Method, systems: &[System], options: &Options) -> (usize, Duration) {
    let mut can = |scenario: &'static Scenario, _: &[usize]| {
        (0..systems.len()).filter(|&number| systems[number].can(scenario)).collect()
    };
    let steps = grid(method, systems, options, &mut can);
    let batches = if is_secured(method, options) { secured_batches(method, options) } else { Vec::new() };
    let messages: usize = batches.iter().map(|(_, count)| count).sum();
    let time = steps::estimate(systems, &steps) + SECURED_MESSAGE * messages as u32;
    (steps.len() + batches.len(), time)
}

/// Runs a method on systems that run. What a system cannot do, or does wrong, is left out with a line. `securing` is called when the messages of the secure
/// proxy are wanted.
///
/// # Errors
/// The load generator cannot run.
pub fn run(
    method: &Method,
    systems: &[System],
    backend: &Backend,
    options: &Options,
    securing: &mut Securing<'_>,
    tell: &mut Tell<'_>,
) -> Result<Run, String> {
    let mut run = steps::begin(method.name, options.quick, systems);
    let began = Instant::now();
    let steps =
        grid(method, systems, options, &mut |scenario, sizes| able(&mut run, systems, scenario, sizes, tell));
    steps::execute(&mut run, systems, backend, &steps, tell)?;
    if is_secured(method, options) && !run.is_cut {
        measure_secured(method, backend, options, securing, &mut run, tell)?;
    }
    run.took = began.elapsed().as_secs_f64();
    Ok(run)
}

/// One figure of a summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The system.
    pub system: String,
    /// The scenario.
    pub scenario: String,
    /// Bytes; `None`: over all.
    pub size: Option<usize>,
    /// Right answers a second.
    pub rate: f64,
    /// The clients of the best; `None`: over all.
    pub clients: Option<usize>,
}

/// The figures of a run by the method's summary. Repetitions of a cell are averaged first. A mean is over the cells that all systems of the scenario have: a
/// system that was too slow for many clients must not win by that.
pub fn figures(method: &Method, run: &Run) -> Vec<Figure> {
    let mut figures = Vec::new();
    for scenario in run.distinct(|cell| cell.scenario.clone()) {
        let cells = || run.cells.iter().filter(|cell| cell.scenario == scenario && cell.setting.is_empty());
        let names = run.systems.iter().map(|system| &system.name);
        let names: Vec<&String> = names.filter(|name| cells().any(|cell| cell.system == **name)).collect();
        let is_common = |cell: &Cell| {
            names.iter().all(|name| {
                cells().any(|other| {
                    other.system == **name && (other.size, other.clients) == (cell.size, cell.clients)
                })
            })
        };
        for system in run.systems.iter().map(|system| &system.name) {
            let cells: Vec<&Cell> = cells()
                .filter(|cell| cell.system == *system && (method.summary == Summary::Best || is_common(cell)))
                .collect();
            let mut means: Vec<(usize, usize, f64)> = Vec::new();
            for cell in &cells {
                if means.iter().any(|(size, clients, _)| (*size, *clients) == (cell.size, cell.clients)) {
                    continue;
                }
                let same = |other: &&&Cell| (other.size, other.clients) == (cell.size, cell.clients);
                let rates: Vec<f64> = cells.iter().filter(same).map(|cell| cell.rate).collect();
                means.push((cell.size, cell.clients, rates.iter().sum::<f64>() / rates.len() as f64));
            }
            let figure = |size, rate, clients| Figure {
                system: system.clone(),
                scenario: scenario.clone(),
                size,
                rate,
                clients,
            };
            match method.summary {
                Summary::Mean if !means.is_empty() => {
                    let mean = means.iter().map(|(_, _, rate)| rate).sum::<f64>() / means.len() as f64;
                    figures.push(figure(None, mean, None));
                }
                Summary::Mean => {}
                Summary::Best => {
                    let mut sizes: Vec<usize> = means.iter().map(|(size, _, _)| *size).collect();
                    sizes.dedup();
                    for size in sizes {
                        let of_size = means.iter().filter(|(mean_size, _, _)| *mean_size == size);
                        if let Some((_, clients, rate)) = of_size.max_by(|a, b| a.2.total_cmp(&b.2)) {
                            figures.push(figure(Some(size), *rate, Some(*clients)));
                        }
                    }
                }
            }
        }
    }
    figures
}

/// The latency that a system adds to the backend's, in milliseconds: the mean through it minus the mean of the direct call in the same turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Added {
    /// The system.
    pub system: String,
    /// The scenario.
    pub scenario: String,
    /// Of each turn.
    pub turns: Vec<f64>,
}

/// The added latencies of a run.
pub fn added(run: &Run) -> Vec<Added> {
    let mut added_cells: Vec<Added> = Vec::new();
    for cell in run.cells.iter().filter(|cell| cell.setting == ADDED_SETTING && cell.system != DIRECT) {
        let direct = run.of(DIRECT, &cell.scenario).find(|direct| direct.repetition == cell.repetition);
        let Some(direct) = direct else { continue };
        let difference = cell.mean - direct.mean;
        match added_cells
            .iter_mut()
            .find(|added| added.system == cell.system && added.scenario == cell.scenario)
        {
            Some(added) => added.turns.push(difference),
            None => added_cells.push(Added {
                system: cell.system.clone(),
                scenario: cell.scenario.clone(),
                turns: vec![difference],
            }),
        }
    }
    added_cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results;

    fn cell(system: &str, size: usize, clients: usize, repetition: usize, rate: f64) -> Cell {
        let scenario = "DirectProxy".to_owned();
        Cell { system: system.to_owned(), scenario, size, clients, repetition, rate, ..Cell::default() }
    }

    fn run(cells: Vec<Cell>) -> Run {
        let systems = ["a", "b"].map(|name| results::System { name: name.to_owned(), ..Default::default() });
        Run { systems: systems.to_vec(), cells, ..Run::default() }
    }

    #[test]
    fn methods_are_those_of_the_articles() {
        for method in &METHODS {
            for name in method.scenarios {
                assert!(scenarios::find(name).is_some_and(Scenario::is_measured), "{name}");
            }
            let (round, metric) = method.published;
            for scenario in method.scenarios {
                assert!(crate::published::of(round, metric, scenario).count() > 0, "{round} {scenario}");
            }
            assert!(method.quick.0.iter().all(|size| method.sizes.contains(size)));
            assert!(method.quick.1.iter().all(|clients| method.clients.contains(clients)));
        }
        let cells = |method: &Method| method.scenarios.len() * method.sizes.len() * method.clients.len();
        assert_eq!((cells(&METHODS[0]), cells(&METHODS[1])), (128, 240));
        assert_eq!(find("2010").map(|method| method.keep_alive), Some(false));
        assert_eq!(METHODS[1].names().last(), Some("SecureProxy"));
        assert!(METHODS[0].names().all(|name| name != "SecureProxy"));
        assert!(find("7").is_none());
    }

    #[test]
    fn requests_of_each_client() {
        let requests = |rule: PerClient| {
            [20, 40, 80, 320, 640, 2560]
                .map(|clients| rule.requests(clients).map(|total| total / clients as u64))
        };
        assert_eq!(requests(PerClient::Main), [1000, 1000, 100, 100, 200, 200].map(Some));
        assert_eq!(requests(PerClient::Appendix), [1000, 1000, 100, 100, 10, 10].map(Some));
        assert_eq!(requests(PerClient::Each([7, 8, 9])), [7, 7, 8, 8, 9, 9].map(Some));
        assert_eq!(PerClient::Each([1, 1, u64::MAX]).requests(2560), Some(u64::MAX));
        assert_eq!(requests(PerClient::Any), [None; 6]);
    }

    #[test]
    fn the_best_of_the_ladder_and_the_mean_of_the_cells() {
        let run = run(vec![
            cell("a", 512, 20, 0, 100.0),
            cell("a", 512, 20, 1, 200.0),
            cell("a", 512, 60, 0, 140.0),
            cell("b", 512, 20, 0, 10.0),
            cell("a", 1024, 20, 0, 70.0),
        ]);
        let best = figures(&METHODS[0], &run);
        let shown: Vec<_> = best.iter().map(|f| (f.system.as_str(), f.size, f.rate, f.clients)).collect();
        let want = [
            ("a", Some(512), 150.0, Some(20)),
            ("a", Some(1024), 70.0, Some(20)),
            ("b", Some(512), 10.0, Some(20)),
        ];
        assert_eq!(shown, want);
        let mean = figures(&METHODS[1], &run);
        let shown: Vec<_> = mean.iter().map(|f| (f.system.as_str(), f.size, f.rate)).collect();
        assert_eq!(shown, [("a", None, 150.0), ("b", None, 10.0)], "over the one cell that both have");
    }

    #[test]
    fn what_is_added_is_of_the_same_turn() {
        let latency = |system: &str, repetition: usize, mean: f64| Cell {
            mean,
            setting: ADDED_SETTING.to_owned(),
            ..cell(system, 1000, 20, repetition, 1.0)
        };
        let run = run(vec![
            latency("a", 0, 1.5),
            latency(DIRECT, 0, 0.5),
            latency("a", 1, 3.0),
            latency(DIRECT, 1, 1.0),
            latency("a", 2, 9.0),
        ]);
        let found = added(&run);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].turns, [1.0, 2.0]);
        assert!(figures(&METHODS[1], &run).is_empty(), "they are no part of the round's figures");
    }
}
