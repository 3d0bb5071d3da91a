//! The measurements of a run, one after the other: systems take turns, and what a system cannot do is left out with a line.

use crate::measure::{self, Load};
use crate::results::{Cell, Machine, Run};
use crate::scenarios::{self, Scenario};
use crate::systems::{Backend, System};
use loadgen::{Progress, Url};
use std::time::Duration;

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

/// Measures all steps in their order.
///
/// # Errors
/// The load generator cannot run.
pub fn execute(
    run: &mut Run,
    systems: &[System],
    backend: &Backend,
    steps: &[Step],
    tell: &mut Tell<'_>,
) -> Result<(), String> {
    let (host, port) = (backend.address.ip().to_string(), backend.address.port());
    let direct = System::at(DIRECT, Url { https: false, host, port, target: "/".to_owned() }, None);
    let count = steps.len();
    for (number, step) in steps.iter().enumerate() {
        let system = systems.get(step.system).unwrap_or(&direct);
        let Step { scenario, size, load, .. } = step;
        let what = format!("{} {} {size} B, {} clients", system.about.name, scenario.name, load.clients);
        let mut goes_on = tell(News::Begins(number + 1, count, what));
        let mut watch = |progress: &Progress| {
            goes_on = goes_on && tell(News::Progress(progress));
            goes_on
        };
        let mut cell = match step.system < systems.len() {
            true => measure::measure(system, Some(backend), scenario, *size, load, &mut watch)?,
            false => {
                let outcome =
                    measure::run(&system.url, &at_backend(scenario, *size), load, Vec::new(), &mut watch)?;
                measure::cell(DIRECT, scenario.name, *size, load.clients, &outcome)
            }
        };
        if !goes_on {
            run.absent.push(format!("the run was ended after {number} of {count} measurements"));
            break;
        }
        (cell.repetition, cell.setting) = (step.repetition, step.setting.clone());
        tell(News::Measured(&cell));
        run.cells.push(cell);
    }
    Ok(())
}

/// The systems that give the right answers in a scenario with messages of all sizes, warmed up where they need it. The others get a line.
pub fn able(
    run: &mut Run,
    systems: &[System],
    scenario: &'static Scenario,
    sizes: &[usize],
    tell: &mut Tell<'_>,
) -> Vec<usize> {
    let mut able = Vec::new();
    for (number, system) in systems.iter().enumerate() {
        let name = &system.about.name;
        if !system.can(scenario) {
            let line = format!("{name} has no configuration for {}", scenario.name);
            tell(News::Absent(&line));
            run.absent.push(line);
            continue;
        }
        let wrong = sizes.iter().find_map(|&size| {
            measure::correct(&system.url, &scenario.case(size)).err().map(|why| (size, why))
        });
        if let Some((size, why)) = wrong {
            let line = format!("{name} does not answer {} with {size} B rightly: {why}", scenario.name);
            tell(News::Absent(&line));
            run.absent.push(line);
            continue;
        }
        if !system.warm_up.is_zero() {
            tell(News::Begins(0, 0, format!("{name} {}: warm-up", scenario.name)));
            let case = scenario.case(sizes.first().copied().unwrap_or(1024));
            let load = Load {
                clients: 20,
                keep_alive: true,
                warm_up: Duration::ZERO,
                longest: system.warm_up,
                requests: None,
            };
            // What it makes of that is measured afterwards.
            let _ = measure::run(&system.url, &case, &load, Vec::new(), &mut |progress| {
                tell(News::Progress(progress))
            });
        }
        able.push(number);
    }
    able
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
