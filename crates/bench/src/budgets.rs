//! What work may cost: every budget of the project, measured on this machine. Each is a ratio between systems that take turns, a time, or memory.
//!
//! Engines alone, without HTTP, are measured by `bench/engines/run.py` beside other engines in memory: those budgets are in its tables.

use crate::measure::{self, Load};
use crate::project;
use crate::results::{Budget, Cell, Run};
use crate::scenarios::{self, Scenario};
use crate::secured::{self, Secured, Securing};
use crate::statistics::{median, middle_half, trend};
use crate::steps::{self, News, Step, Tell, leave};
use crate::studies::{self, Length};
use crate::systems::{self, Backend, Place, System};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// Fewer turns and requests.
    pub quick: bool,
    /// The longest that one measurement counts.
    pub seconds: Duration,
    /// How often the systems take turns; the median of the turns counts.
    pub turns: usize,
    /// Requests of the measurement of memory over time.
    pub requests: u64,
}

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;
/// Clients of the comparisons.
const CLIENTS: usize = 32;
/// Clients of messages that are good once.
const CLIENTS_OF_ONCE: usize = 16;
/// What cells of budgets are set to.
pub const SETTING: &str = "budget";

/// A flow that has to read the whole body before it can decide: no order is for NONE.
pub const SCAN_PROXY: (&str, &str) = (
    "proxy-services/ScanProxy.xml",
    r#"<proxy xmlns="http://ws.apache.org/ns/synapse" name="ScanProxy" transports="http">
    <target>
        <inSequence>
            <filter xmlns:m="http://services.samples/xsd" xpath="//m:buyStocks/order/symbol = 'NONE'">
                <then>
                    <drop/>
                </then>
                <else>
                    <send>
                        <endpoint key="EchoService"/>
                    </send>
                </else>
            </filter>
        </inSequence>
        <outSequence>
            <send/>
        </outSequence>
    </target>
</proxy>
"#,
);

/// What is compared: the scenario, the sizes on Busbar, and those on systems of which kind.
struct Work {
    scenario: &'static str,
    ours: &'static [usize],
    proxies: &'static [usize],
    engines: &'static [usize],
}

impl Work {
    /// A relay of the same message is the least that any scenario takes, so it is measured once.
    fn floor(&self) -> &'static [usize] {
        if self.scenario == "DirectProxy" { SIZES } else { &[] }
    }
}

const SIZES: &[usize] = &[512, KB, 10 * KB, 100 * KB, MB];
const SOME: &[usize] = &[KB, 10 * KB, 100 * KB, MB];
const ENDS: &[usize] = &[KB, 100 * KB];

const WORK: [Work; 8] = [
    Work { scenario: "DirectProxy", ours: SIZES, proxies: SIZES, engines: ENDS },
    Work { scenario: "MessageRelayProxy", ours: SIZES, proxies: SIZES, engines: &[] },
    Work { scenario: "CBRTransportHeaderProxy", ours: SOME, proxies: &[], engines: &[] },
    Work { scenario: "CBRSOAPHeaderProxy", ours: SOME, proxies: &[], engines: &[] },
    Work { scenario: "CBRProxy", ours: SOME, proxies: &[], engines: ENDS },
    Work { scenario: "XSLTProxy", ours: ENDS, proxies: &[], engines: ENDS },
    Work { scenario: "SplitAggregateProxy", ours: &[KB], proxies: &[], engines: &[KB] },
    Work { scenario: "ScanProxy", ours: &[MB], proxies: &[], engines: &[] },
];

/// The relay that makes the system calls and does nothing else: its folder from the root of the project, and its name among the systems.
pub const FLOOR: (&str, &str) = ("bench/floor", "system calls");

/// A proxy without mediation, an engine, another build of Busbar, or system calls alone.
#[derive(Copy, Clone, PartialEq, Eq)]
enum SystemKind {
    Ours,
    Proxy,
    Engine,
    Floor,
}

fn kind(system: &System) -> SystemKind {
    let can = |name: &str| scenarios::find(name).is_some_and(|scenario| system.can(scenario));
    match system.about.name.as_str() {
        name if name == FLOOR.1 => SystemKind::Floor,
        name if name == "busbar" || system.about.version.starts_with("busbar ") => SystemKind::Ours,
        _ if can("CBRProxy") => SystemKind::Engine,
        _ => SystemKind::Proxy,
    }
}

/// What is to be measured: the works by size, so that what is compared stands together.
fn grid(
    systems: &[System],
    options: &Options,
    able: &mut dyn FnMut(&'static Scenario, &[usize]) -> Vec<usize>,
) -> Vec<Step> {
    let mut pairs: Vec<(usize, usize, &'static Scenario)> = Vec::new();
    for work in &WORK {
        let Some(scenario) = scenarios::find_any(work.scenario) else { continue };
        let able = able(scenario, work.ours);
        for number in able {
            let sizes = match kind(&systems[number]) {
                SystemKind::Ours => work.ours,
                SystemKind::Proxy => work.proxies,
                SystemKind::Engine => work.engines,
                SystemKind::Floor => work.floor(),
            };
            pairs.extend(sizes.iter().map(|&size| (size, number, scenario)));
        }
    }
    let mut steps = Vec::new();
    for &size in SIZES {
        let of_size: Vec<_> = pairs.iter().filter(|(pair_size, _, _)| *pair_size == size).collect();
        for repetition in 0..options.turns {
            // Each turn begins with another one, so that none always follows the same work.
            let (before, from) = of_size.split_at(repetition % of_size.len().max(1));
            for (_, system, scenario) in from.iter().chain(before) {
                let load = Load::lasting(CLIENTS, options.seconds);
                let setting = SETTING.to_owned();
                steps.push(Step { system: *system, scenario, size, load, repetition, setting });
            }
        }
    }
    steps
}

/// How long starts, memory and security take beside the grid.
fn beside(options: &Options) -> Duration {
    Duration::from_secs(if options.quick { 12 } else { 25 })
        + Duration::from_secs_f64(options.requests as f64 / 12_000.0)
}

/// How many measurements there are, and how long they will take.
pub fn estimate(systems: &[System], options: &Options) -> (usize, Duration) {
    let steps = grid(systems, options, &mut |scenario, _| {
        (0..systems.len()).filter(|&number| wanted(&systems[number], scenario)).collect()
    });
    (steps.len(), steps::estimate(systems, &steps) + beside(options))
}

/// Whether a work is measured on that system at all.
fn wanted(system: &System, scenario: &Scenario) -> bool {
    let work = WORK.iter().find(|work| work.scenario == scenario.name);
    system.can(scenario)
        && work.is_some_and(|work| match kind(system) {
            SystemKind::Ours => true,
            SystemKind::Proxy => !work.proxies.is_empty(),
            SystemKind::Engine => !work.engines.is_empty(),
            SystemKind::Floor => !work.floor().is_empty(),
        })
}

/// Measures all budgets. The first system is Busbar; `secured` is called when its messages are wanted.
///
/// # Errors
/// Nothing can be measured.
pub fn run(
    place: &Place,
    systems: &[System],
    backend: &Backend,
    secured: &mut Securing<'_>,
    options: &Options,
    tell: &mut Tell<'_>,
) -> Result<Run, String> {
    let mut run = steps::begin("budgets", options.quick, systems);
    let began = Instant::now();
    let steps = grid(systems, options, &mut |scenario, sizes| {
        // Lines are for what a system should be able to do.
        steps::able_of(&mut run, systems, scenario, sizes, &|system| wanted(system, scenario), tell)
    });
    steps::execute(&mut run, systems, backend, &steps, tell)?;
    let mut budgets = ratios(&run, systems);
    if !run.is_cut {
        tell(News::Begins(0, 0, "start and memory".to_owned()));
        budgets.push(started("start to first answer, example round", 50.0, place, &place.round, options));
        budgets.push(artifacts(place, options));
        budgets.extend(memory(place, options, &mut run, tell)?);
        let count = secured::messages(options.quick);
        let secured = secured(&[(KB, count), (100 * KB, count)]);
        budgets.extend(security(secured, &mut run, options, tell)?);
    }
    run.budgets = budgets;
    run.took = began.elapsed().as_secs_f64();
    Ok(run)
}

// --- ratios of CPU time ----------------------------------------------------------------------------------------------

/// A system in a scenario.
type Of<'a> = (&'a str, &'a str);

fn ratios(run: &Run, systems: &[System]) -> Vec<Budget> {
    let Some(us) = run.systems.first().map(|system| system.name.as_str()) else { return Vec::new() };
    let of = |wanted: SystemKind| systems.iter().filter(move |system| kind(system) == wanted);
    let mut budgets = Vec::new();
    for (scenario, name) in [("DirectProxy", "direct proxy"), ("MessageRelayProxy", "message relay")] {
        for system in of(SystemKind::Proxy) {
            let other = &system.about.name;
            let budget = Budget {
                work: format!("{name}, CPU for each request"),
                unit: format!("x {other}"),
                bound: if other == "HAProxy" { 0.82 } else { 0.75 },
                ..Budget::default()
            };
            budgets.push(beside_relay(budget, run, ((us, scenario), (other, scenario)), SIZES));
        }
    }
    let direct = (us, "DirectProxy");
    let routes = [
        ("CBRTransportHeaderProxy", "routing on a transport header", SOME, 1.05),
        ("CBRSOAPHeaderProxy", "routing on a SOAP header", SOME, 1.15),
        ("CBRProxy", "routing on an early body value", SOME, 1.15),
        ("SplitAggregateProxy", "split 11 ways and aggregate", &[KB], 14.0),
    ];
    for (scenario, work, sizes, bound) in routes {
        let budget =
            Budget { work: work.to_owned(), unit: "x direct proxy".to_owned(), bound, ..Budget::default() };
        budgets.push(compared(budget, run, ((us, scenario), direct), sizes, |cost, direct| cost / direct));
    }
    let scan = Budget {
        work: "routing that must scan the whole body".to_owned(),
        unit: "ms more for each MB".to_owned(),
        bound: 1.0,
        ..Budget::default()
    };
    let more = |cost: f64, direct: f64| (cost - direct) / 1000.0;
    budgets.push(compared(scan, run, ((us, "ScanProxy"), direct), &[MB], more));
    let engines: [(&str, &str, usize, f64); 7] = [
        ("DirectProxy", "direct proxy", KB, 12.0),
        ("DirectProxy", "direct proxy", 100 * KB, 12.0),
        ("CBRProxy", "routing on the body", KB, 14.0),
        ("CBRProxy", "routing on the body", 100 * KB, 100.0),
        ("XSLTProxy", "XSLT, request and answer", KB, 25.0),
        ("XSLTProxy", "XSLT, request and answer", 100 * KB, 50.0),
        ("SplitAggregateProxy", "split and aggregate", KB, 9.0),
    ];
    for system in of(SystemKind::Engine) {
        for (scenario, work, size, bound) in engines {
            let other = &system.about.name;
            let budget = Budget {
                work: work.to_owned(),
                unit: format!("x less CPU than {other}"),
                bound,
                is_least: true,
                ..Budget::default()
            };
            budgets.push(beside_relay(budget, run, ((us, scenario), (other, scenario)), &[size]));
        }
    }
    budgets
}

/// What a work takes at each size beside another one: the median over the turns, since single turns are lucky or unlucky.
fn compared(
    mut budget: Budget,
    run: &Run,
    works: (Of<'_>, Of<'_>),
    sizes: &[usize],
    value: impl Fn(f64, f64) -> f64,
) -> Budget {
    for &size in sizes {
        let values = of_turns(run, works, size, &value);
        if !values.is_empty() {
            budget.values.push((shown(size), median(&values)));
            budget.spread.push((shown(size), middle_half(&values)));
        }
    }
    budget.absent = budget.values.is_empty().then(|| "not measured in this run".to_owned());
    budget
}

/// The ratio to another system; also what it would be if the work took the system calls of a relay alone, and what the bound leaves beyond them.
fn beside_relay(budget: Budget, run: &Run, works: (Of<'_>, Of<'_>), sizes: &[usize]) -> Budget {
    let (bound, is_least) = (budget.bound, budget.is_least);
    let ratio = |cost: f64, other: f64| if is_least { other / cost } else { cost / other };
    let allowed = |other: f64| if is_least { other / bound } else { other * bound };
    let mut budget = compared(budget, run, works, sizes, ratio);
    let works = ((FLOOR.1, "DirectProxy"), works.1);
    for &size in sizes {
        let floor = of_turns(run, works, size, &ratio);
        if !floor.is_empty() {
            let left = of_turns(run, works, size, &|calls, other| allowed(other) - calls);
            budget.floor.push((shown(size), median(&floor)));
            budget.left.push((shown(size), median(&left)));
        }
    }
    budget
}

/// A value of the CPU time of two works, in microseconds for each request, in each turn.
fn of_turns(run: &Run, works: (Of<'_>, Of<'_>), size: usize, value: &dyn Fn(f64, f64) -> f64) -> Vec<f64> {
    let pairs = run.pairs(works, |cell| cell.setting == SETTING && cell.size == size);
    pairs.into_iter().map(|(one, other)| value(one, other)).collect()
}

fn shown(size: usize) -> String {
    match size {
        MB => "1 MB".to_owned(),
        size if size % KB == 0 => format!("{} KB", size / KB),
        size => format!("{size} B"),
    }
}

// --- start -----------------------------------------------------------------------------------------------------------

/// The shortest time from starting the process to the first right answer.
fn started(work: &str, bound: f64, place: &Place, configuration: &Path, options: &Options) -> Budget {
    let mut budget = Budget { work: work.to_owned(), unit: "ms".to_owned(), bound, ..Budget::default() };
    let mut least: Option<f64> = None;
    for _ in 0..if options.quick { 3 } else { 7 } {
        match first_answer(place, configuration) {
            Ok(took) => least = Some(least.map_or(took, |least| least.min(took))),
            Err(why) => {
                budget.absent = Some(why);
                return budget;
            }
        }
    }
    budget.values.extend(least.map(|least| (String::new(), least * 1000.0)));
    budget
}

/// Seconds from the start of a Busbar to its first answer, whatever that is.
fn first_answer(place: &Place, configuration: &Path) -> Result<f64, String> {
    let port = systems::free_port()?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let more = ["--http".to_owned(), address.to_string()];
    let began = Instant::now();
    let mut running = systems::bare(place, "start", configuration, &more)?;
    loop {
        if let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
            let sent = stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            let mut head = [0; 12];
            if sent.and_then(|()| stream.read_exact(&mut head)).is_ok() && head.starts_with(b"HTTP/1.1 ") {
                return Ok(began.elapsed().as_secs_f64());
            }
        }
        running.alive()?;
        if began.elapsed() > Duration::from_secs(60) {
            return Err("no answer within 60 s".to_owned());
        }
        std::thread::sleep(Duration::from_micros(300));
    }
}

fn artifacts(place: &Place, options: &Options) -> Budget {
    const WORK: &str = "start to first answer, 500 artifacts";
    let folder = place.work.join("project");
    match project::write(&folder, 500) {
        Ok(_) => started(WORK, 300.0, place, &folder, options),
        Err(why) => Budget { work: WORK.to_owned(), absent: Some(why), ..Budget::default() },
    }
}

// --- memory ----------------------------------------------------------------------------------------------------------

/// Idle, with many large messages at once, and over many requests; each on a process of its own.
fn memory(
    place: &Place,
    options: &Options,
    run: &mut Run,
    tell: &mut Tell<'_>,
) -> Result<Vec<Budget>, String> {
    let mebi = |kilo: u64| kilo as f64 / 1024.0;
    let budget = |work: &str, unit: &str, bound: f64| Budget {
        work: work.to_owned(),
        unit: unit.to_owned(),
        bound,
        ..Budget::default()
    };
    let mut idle = budget("resident memory, idle with the example round", "MiB", 25.0);
    let mut many =
        budget("resident memory, 2,560 clients x 100 KB passed through, at its peak", "MiB", 150.0);
    let mut flat = budget("memory that is added, proven by the slope, for ten million requests", "MiB", 1.0);
    let system = systems::busbar(place, "memory", &place.round, &[])?;
    let direct = scenarios::find("DirectProxy").ok_or("there is no direct proxy")?;
    measure::correct(&system.url, &direct.case(KB))?;
    std::thread::sleep(Duration::from_secs(1));
    let kilo = |field: &str| system.process.as_ref().and_then(|process| field_of(process.id, field));
    idle.values.extend(kilo("VmRSS:").map(|kilo| (String::new(), mebi(kilo))));
    let load = Load {
        clients: 2560,
        keep_alive: true,
        warm_up: Duration::ZERO,
        longest: Duration::from_secs(if options.quick { 3 } else { 6 }),
        requests: None,
    };
    let mut goes_on = tell(News::Begins(0, 0, "2,560 clients x 100 KB".to_owned()));
    let processes = system.process.iter().cloned().collect();
    let outcome = measure::run(&system.url, &direct.case(100 * KB), &load, processes, &mut |progress| {
        goes_on = goes_on && tell(News::Progress(progress));
        goes_on
    });
    match outcome {
        Ok(outcome) if outcome.right > 0 && outcome.failed() == 0 => {
            many.values.extend(kilo("VmHWM:").map(|kilo| (String::new(), mebi(kilo))));
        }
        Ok(outcome) => {
            many.absent =
                Some(outcome.errors.first().map_or("no answer".to_owned(), |error| error.first.clone()))
        }
        Err(why) => many.absent = Some(why),
    }
    drop(system);
    if goes_on {
        let system = systems::busbar(place, "busbar", &place.round, &[])?;
        let length = Length { duration: Duration::from_secs(3600), requests: Some(options.requests) };
        tell(News::Begins(0, 0, "memory over many requests".to_owned()));
        let soak = studies::soak(&system, length, &mut |progress| tell(News::Progress(progress)))?;
        for cell in soak.cells {
            match growth(&cell) {
                Some(grown) => flat.values.push((format!("{} requests", cell.right), grown)),
                None => flat.absent = Some("the run was too short to tell growth from waves".to_owned()),
            }
            run.cells.push(Cell { setting: SETTING.to_owned(), ..cell });
        }
        run.absent.extend(soak.absent);
    }
    for budget in [&mut idle, &mut many, &mut flat] {
        if budget.values.is_empty() {
            budget.absent.get_or_insert_with(|| "nothing was measured".to_owned());
        }
    }
    Ok(vec![idle, many, flat])
}

/// MiB that ten million requests add for certain: the lower end of the confidence interval of the slope behind the first third.
fn growth(cell: &Cell) -> Option<f64> {
    let settled = cell.memory.get(cell.memory.len() / 3..)?;
    let line = trend(settled)?;
    let rate = cell.right as f64 / cell.seconds.max(1e-9);
    Some(((line.slope - line.margin).max(0.0) / rate) * 1e7)
}

/// A field of the status of a process, in KiB.
fn field_of(id: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    value.trim().strip_suffix(" kB")?.trim().parse().ok()
}

// --- WS-Security -----------------------------------------------------------------------------------------------------

/// Signed and encrypted in both directions: what part of the processor time the private keys take that each call needs.
fn security(
    secured: Result<Secured, String>,
    run: &mut Run,
    options: &Options,
    tell: &mut Tell<'_>,
) -> Result<Vec<Budget>, String> {
    let mut part = Budget {
        work: "WS-Security, sign and encrypt both ways, of what the RSA operations alone allow".to_owned(),
        unit: "of it".to_owned(),
        bound: 0.85,
        is_least: true,
        ..Budget::default()
    };
    let mut large = Budget {
        work: "WS-Security, 100 KB".to_owned(),
        unit: "x 1 KB".to_owned(),
        bound: 2.0,
        ..Budget::default()
    };
    let secured = match secured {
        Ok(secured) => secured,
        Err(why) => {
            leave(run, tell, format!("WS-Security: {why}"));
            (part.absent, large.absent) = (Some(why.clone()), Some(why));
            return Ok(vec![part, large]);
        }
    };
    let mut costs: Vec<(usize, f64)> = Vec::new();
    for batch in &secured.batches {
        let (size, bare) = (&batch.size, batch.bare);
        let mut goes_on = tell(News::Begins(0, 0, format!("SecureProxy {size} B")));
        let cell = secured.measure(batch, CLIENTS_OF_ONCE, &mut |progress| {
            goes_on = goes_on && tell(News::Progress(progress));
            goes_on
        })?;
        if let Some(cpu) = cell.cpu.filter(|_| cell.failed == 0) {
            costs.push((*size, cpu));
            if *size == KB || !options.quick {
                part.values.push((shown(*size), bare / cpu));
            }
        }
        run.cells.push(Cell { setting: SETTING.to_owned(), ..cell });
        if !goes_on {
            break;
        }
    }
    // The budget is that of 1 KB; larger messages are in the other one.
    part.values.retain(|(size, _)| *size == shown(KB));
    let cost_of = |wanted: usize| costs.iter().find(|(size, _)| *size == wanted).map(|(_, cpu)| *cpu);
    if let (Some(small), Some(hundred)) = (cost_of(KB), cost_of(100 * KB)) {
        large.values.push((String::new(), hundred / small));
    }
    for budget in [&mut part, &mut large] {
        if budget.values.is_empty() {
            budget.absent = Some("not every answer was right".to_owned());
        }
    }
    Ok(vec![part, large])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_are_those_of_the_round_and_of_here() {
        for work in &WORK {
            assert!(scenarios::find_any(work.scenario).is_some(), "{}", work.scenario);
        }
    }

    #[test]
    fn a_budget_is_met_by_all_of_its_values() {
        let value = |value: f64| (String::new(), value);
        let most = Budget { bound: 1.0, values: vec![value(0.5), value(1.0)], ..Budget::default() };
        assert_eq!((most.is_met(), most.worst()), (Some(true), Some(1.0)));
        let least = Budget { is_least: true, values: vec![value(0.5), value(1.0)], ..most.clone() };
        assert_eq!((least.is_met(), least.worst()), (Some(false), Some(0.5)));
        assert_eq!(Budget::default().is_met(), None);
    }

    #[test]
    fn what_the_system_calls_alone_miss_is_out_of_reach() {
        let cell = |system: &str, size: usize, cpu: f64| Cell {
            system: system.to_owned(),
            scenario: "DirectProxy".to_owned(),
            setting: SETTING.to_owned(),
            size,
            right: 1,
            cpu: Some(cpu),
            ..Cell::default()
        };
        let cells = [("busbar", 14.0, 60.0), ("nginx", 18.0, 60.0), (FLOOR.1, 11.0, 50.0)];
        let cells = cells
            .iter()
            .flat_map(|(system, small, large)| [cell(system, KB, *small), cell(system, 100 * KB, *large)]);
        let run = Run { cells: cells.collect(), ..Run::default() };
        let works = (("busbar", "DirectProxy"), ("nginx", "DirectProxy"));
        let budget = beside_relay(Budget { bound: 0.75, ..Budget::default() }, &run, works, SIZES);
        assert_eq!(budget.values, [("1 KB".to_owned(), 14.0 / 18.0), ("100 KB".to_owned(), 1.0)]);
        assert_eq!(budget.out_of_reach().collect::<Vec<_>>(), ["100 KB"]);
        assert_eq!(budget.left, [("1 KB".to_owned(), 2.5), ("100 KB".to_owned(), -5.0)]);
        let times = Budget { bound: 1.5, is_least: true, ..Budget::default() };
        let budget = beside_relay(times, &run, works, SIZES);
        assert_eq!(budget.left, [("1 KB".to_owned(), 1.0), ("100 KB".to_owned(), -10.0)]);
    }

    /// One lucky turn of either changes nothing, nor does a machine that is slow in some turns.
    #[test]
    fn works_are_compared_turn_by_turn() {
        let cell = |scenario: &str, (repetition, cpu): (usize, f64)| Cell {
            system: "busbar".to_owned(),
            scenario: scenario.to_owned(),
            setting: SETTING.to_owned(),
            size: KB,
            right: 1,
            cpu: Some(cpu),
            repetition,
            ..Cell::default()
        };
        let direct =
            [(0, 10.0), (1, 20.0), (2, 5.0), (3, 10.0), (4, 12.0)].map(|turn| cell("DirectProxy", turn));
        let routed =
            [(0, 11.0), (1, 22.0), (2, 11.0), (3, 11.5), (5, 1.0)].map(|turn| cell("CBRProxy", turn));
        let run = Run { cells: direct.into_iter().chain(routed).collect(), ..Run::default() };
        let works = (("busbar", "CBRProxy"), ("busbar", "DirectProxy"));
        let budget = compared(Budget::default(), &run, works, SIZES, |cost, direct| cost / direct);
        // 1.1, 1.1, 2.2, 1.15; turns of only one of them do not count.
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-9, "{found}, not {wanted}");
        let (values, spread) = (&budget.values[0], &budget.spread[0]);
        assert_eq!((budget.values.len(), values.0.as_str(), spread.0.as_str()), (1, "1 KB", "1 KB"));
        near(values.1, 1.125);
        near(spread.1.0, 1.1);
        near(spread.1.1, 1.4125);
        assert_eq!(
            compared(Budget::default(), &run, works, &[MB], |a, _| a).absent.as_deref(),
            Some("not measured in this run")
        );
    }

    #[test]
    fn memory_grows_only_if_that_is_certain() {
        let cell =
            |memory: Vec<(f64, f64)>| Cell { right: 1_000_000, seconds: 100.0, memory, ..Cell::default() };
        let steady = (0..100).map(|at| (f64::from(at), 20.0 + f64::from(at % 2))).collect();
        assert_eq!(growth(&cell(steady)), Some(0.0));
        // 0.01 MiB a second at 10,000 requests a second are 10 MiB for ten million.
        let grows = (0..100).map(|at| (f64::from(at), 20.0 + f64::from(at) / 100.0)).collect();
        assert!((growth(&cell(grows)).unwrap() - 10.0).abs() < 1e-6);
        assert_eq!(growth(&cell(Vec::new())), None);
    }
}
