//! The measurements of a run, one after the other: systems take turns, and what a system cannot do is left out with a line.

use crate::measure::{self, Load};
use crate::results::{Cell, Machine, Run};
use crate::scenarios::{self, Scenario};
use crate::systems::{Backend, System};
use loadgen::{Progress, Url};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// What a run tells while it runs.
pub enum News<'a> {
    /// A measurement begins: number, of how many, what.
    Begins(usize, usize, String),
    /// How far it is.
    Progress(&'a Progress),
    /// A measurement has ended.
    Measured(&'a Cell),
    /// Something is not measured.
    Absent(&'a str),
}

/// Called with what happens; whether to go on.
pub type Tell<'a> = dyn FnMut(News<'_>) -> bool + 'a;

/// What is to be measured: a cell without figures, and its load.
pub struct Step {
    /// Which of the systems; one behind the last: the backend, without a system.
    pub system: usize,
    /// What is sent.
    pub scenario: &'static Scenario,
    /// Bytes of the message.
    pub size: usize,
    /// How much of it.
    pub load: Load,
    /// Counts from 0.
    pub repetition: usize,
    /// What was set for it.
    pub setting: String,
}

/// What the backend is called where it is measured without a system.
pub const DIRECT: &str = "(backend)";

/// An empty run of a method.
pub fn begin(method: &str, quick: bool, systems: &[System]) -> Run {
    Run {
        method: method.to_owned(),
        quick,
        begun: now(),
        machine: Machine::this(),
        systems: systems.iter().map(|system| system.about.clone()).collect(),
        ..Run::default()
    }
}

/// A system that would take longer than this for one answer gets no more clients: whoever measures next would wait for it, and its rate does not grow any more.
const PATIENCE: Duration = Duration::from_secs(4);
/// What a measurement takes beside its load: the answers that are under way, and what is between two of them.
const BETWEEN: Duration = Duration::from_millis(130);
/// What the check of an answer takes.
const CHECK: Duration = Duration::from_millis(25);

/// How long steps will take, their warm-ups and checks included.
pub fn estimate(systems: &[System], steps: &[Step]) -> Duration {
    let load = |step: &Step| {
        // A number of requests may end it earlier: by what a system of some thousand answers a second makes of it.
        let longest = step.load.requests.map_or(step.load.longest, |count| {
            step.load.longest.min(Duration::from_secs_f64(count as f64 / 5000.0))
        });
        longest + step.load.warm_up + BETWEEN
    };
    let pairs: BTreeSet<(usize, &str, usize)> =
        steps.iter().map(|step| (step.system, step.scenario.name, step.size)).collect();
    let cold: BTreeSet<(usize, &str)> =
        pairs.iter().map(|(system, scenario, _)| (*system, *scenario)).collect();
    let warm_ups: Duration =
        cold.iter().filter_map(|(system, _)| systems.get(*system)).map(|system| system.warm_up).sum();
    steps.iter().map(load).sum::<Duration>() + warm_ups + CHECK * pairs.len() as u32
}

/// Measures all steps in their order. A system that has ended, or that has become too slow for more clients, is left out from then on, with a line.
///
/// # Errors
/// Nothing can be measured any more.
pub fn execute(
    run: &mut Run,
    systems: &[System],
    backend: &Backend,
    steps: &[Step],
    tell: &mut Tell<'_>,
) -> Result<(), String> {
    let (host, port) = (backend.address.ip().to_string(), backend.address.port());
    let direct = System::at(DIRECT, Url { https: false, host, port, target: "/".to_owned() }, None);
    let (began, count) = (Instant::now(), steps.len());
    let mut out: BTreeSet<usize> = BTreeSet::new();
    // Of a system with a scenario and size: the best rate until now, and the clients that are too many.
    let mut rates: BTreeMap<(usize, &str, usize), f64> = BTreeMap::new();
    let mut too_many: BTreeSet<(usize, &str, usize, usize)> = BTreeSet::new();
    for (number, step) in steps.iter().enumerate() {
        let system = systems.get(step.system).unwrap_or(&direct);
        let Step { scenario, size, load, .. } = step;
        let name = &system.about.name;
        if out.contains(&step.system) {
            continue;
        }
        let key = (step.system, scenario.name, *size);
        if let Some(rate) =
            rates.get(&key).filter(|rate| load.clients as f64 / **rate > PATIENCE.as_secs_f64())
        {
            if too_many.insert((step.system, scenario.name, *size, load.clients)) {
                let line = format!(
                    "{name}, {} with {size} B: not with {} clients, each of which would wait {:.0} s for an answer",
                    scenario.name,
                    load.clients,
                    load.clients as f64 / rate
                );
                leave(run, tell, line);
            }
            continue;
        }
        let what = format!("{name} {} {size} B, {} clients", scenario.name, load.clients);
        let mut goes_on = tell(News::Begins(number + 1, count, what));
        let mut watch = |progress: &Progress| {
            goes_on = goes_on && tell(News::Progress(progress));
            goes_on
        };
        let measured = match step.system < systems.len() {
            true => measure::measure(system, Some(backend), scenario, *size, load, &mut watch),
            false => measure::run(&system.url, &at_backend(scenario, *size), load, Vec::new(), &mut watch)
                .map(|outcome| measure::cell(DIRECT, scenario.name, *size, load.clients, &outcome)),
        };
        if !goes_on {
            run.absent.push(format!("the run was ended after {number} of {count} measurements"));
            run.is_cut = true;
            break;
        }
        let mut cell = match measured {
            Ok(cell) => cell,
            Err(why) => {
                leave(
                    run,
                    tell,
                    format!("{name}, {} with {size} B and {} clients: {why}", scenario.name, load.clients),
                );
                continue;
            }
        };
        (cell.repetition, cell.setting) = (step.repetition, step.setting.clone());
        cell.at = began.elapsed().as_secs_f64();
        if cell.right > 0 {
            // The best of all levels: one short measurement on a busy machine says little.
            let best = rates.entry(key).or_default();
            *best = best.max(cell.rate);
        }
        let failed = cell.failed > 0;
        tell(News::Measured(&cell));
        run.cells.push(cell);
        if failed && let Some(how) = backend.ended() {
            leave(
                run,
                tell,
                format!("the backend has ended after {} of {count} measurements: {how}", number + 1),
            );
            run.is_cut = true;
            break;
        }
        if failed && let Some(how) = system.ended() {
            leave(run, tell, format!("{name} has ended after {} of {count} measurements: {how}", number + 1));
            out.insert(step.system);
        }
    }
    Ok(())
}

/// Something is not measured.
pub fn leave(run: &mut Run, tell: &mut Tell<'_>, line: String) {
    tell(News::Absent(&line));
    run.absent.push(line);
}

/// The systems that give the right answers in a scenario with messages of all sizes, warmed up where they need it. The others get a line.
pub fn able(
    run: &mut Run,
    systems: &[System],
    scenario: &'static Scenario,
    sizes: &[usize],
    tell: &mut Tell<'_>,
) -> Vec<usize> {
    for system in systems.iter().filter(|system| !system.can(scenario)) {
        leave(run, tell, format!("{} has no configuration for {}", system.about.name, scenario.name));
    }
    able_of(run, systems, scenario, sizes, &|system| system.can(scenario), tell)
}

/// The same among those that are `wanted`; the others have no line.
pub fn able_of(
    run: &mut Run,
    systems: &[System],
    scenario: &'static Scenario,
    sizes: &[usize],
    wanted: &dyn Fn(&System) -> bool,
    tell: &mut Tell<'_>,
) -> Vec<usize> {
    let mut able = Vec::new();
    for (number, system) in systems.iter().enumerate().filter(|(_, system)| wanted(system)) {
        let name = &system.about.name;
        let wrong = sizes.iter().find_map(|&size| {
            measure::correct(&system.url, &scenario.case(size)).err().map(|why| (size, why))
        });
        if let Some((size, why)) = wrong {
            let why = system.ended().unwrap_or(why);
            leave(
                run,
                tell,
                format!("{name} does not answer {} with {size} B rightly: {why}", scenario.name),
            );
            continue;
        }
        if !warmed(system, scenario, sizes, tell) {
            return Vec::new();
        }
        able.push(number);
    }
    able
}

/// Gives a scenario the load that a system needs to get warm: half of it with the smallest message, half with the largest. Whether to go on.
fn warmed(system: &System, scenario: &'static Scenario, sizes: &[usize], tell: &mut Tell<'_>) -> bool {
    let all = system.cold(scenario.name);
    if all.is_zero() {
        return true;
    }
    let mut goes_on = tell(News::Begins(0, 0, format!("{} {}: warm-up", system.about.name, scenario.name)));
    let (smallest, largest) = (sizes.iter().min(), sizes.iter().max());
    for &size in [smallest, largest].into_iter().flatten() {
        let load =
            Load { clients: 20, keep_alive: true, warm_up: Duration::ZERO, longest: all / 2, requests: None };
        // What it makes of that is measured afterwards.
        let _ = measure::run(&system.url, &scenario.case(size), &load, Vec::new(), &mut |progress| {
            goes_on = goes_on && tell(News::Progress(progress));
            goes_on
        });
    }
    goes_on
}

/// The request of a scenario sent to the echo service of the backend: what a client without a bus would have done.
fn at_backend(scenario: &Scenario, size: usize) -> scenarios::Case {
    let mut case = scenario.case(size);
    case.request.path = "/services/EchoService";
    case.expect.headers.clear();
    case
}

/// Now, as text, to the second.
pub fn now() -> String {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, seconds) = (now / 86_400, now % 86_400);
    // Howard Hinnant's civil_from_days, for days since 1970.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_one() {
        let text = now();
        assert!(text.len() == 23 && text.starts_with("20") && text.ends_with(" UTC"), "{text}");
        let month: u32 = text[5..7].parse().unwrap();
        assert!((1..=12).contains(&month), "{text}");
    }
}
