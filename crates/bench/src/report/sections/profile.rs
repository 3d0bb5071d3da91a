//! Where the processor time of flows goes.

use crate::report::chart::rows;
use crate::report::{Section, Table, number, size};
use crate::results::{Profile, Run};

/// The parts of a request, and their colours.
const PARTS: [(&str, usize); 3] = [("steps", 0), ("receiving, routing, sending", 2), ("kernel", 6)];

/// Where the processor time of flows goes.
pub(super) fn profile(run: &Run) -> Section {
    let mut section = Section::new("Profile: where the processor time of a flow goes");
    section.text("Each flow is measured twice: as it is, and with a clock at its steps, which the bus reads on the thread that runs them (GET /profile of the admin address). The time of a step is without that in which it waits, and without steps that run inside of it. The kernel's share is that of system time in the first measurement. What a step does on a compute thread, and what the bus does before, between and behind steps, is in the part in the middle.");
    let profiles: Vec<(String, Vec<f64>)> =
        run.profiles.iter().map(|profile| (profile.scenario.clone(), parts(profile))).collect();
    for chunk in profiles.chunks(16) {
        section.charts(vec![rows("CPU for each request", "µs", &PARTS, chunk)]);
    }
    let mut table = Table::new(&[
        "flow",
        "message:",
        "CPU µs:",
        "steps:",
        "rest of the bus:",
        "kernel:",
        "µs more with the clock:",
    ]);
    let mut steps = Table::new(&[
        "flow",
        "list",
        "step",
        "place",
        "runs a request:",
        "µs a request:",
        "of the whole, %:",
    ]);
    for profile in &run.profiles {
        let parts = parts(profile);
        table.rows.push(vec![
            profile.scenario.clone(),
            size(profile.size),
            number(profile.whole),
            number(parts[0]),
            number(parts[1]),
            number(parts[2]),
            number(profile.watched - profile.whole),
        ]);
        for step in &profile.steps {
            let place = step.place.rsplit('/').next().unwrap_or_default().to_owned();
            steps.rows.push(vec![
                profile.scenario.clone(),
                // The flow stands in front of it.
                step.list.replace(&format!("proxy {} ", profile.scenario), ""),
                step.name.clone(),
                place,
                number(step.runs),
                number(step.cpu),
                number(100.0 * step.cpu / profile.whole.max(1e-9)),
            ]);
        }
    }
    section.table(table);
    section.text("Every step:");
    section.table(steps);
    section
}

/// Steps, the rest of the process's own time, and the kernel's; without what the clock at the steps costs.
fn parts(profile: &Profile) -> Vec<f64> {
    let steps: f64 = profile.steps.iter().map(|step| step.cpu).sum();
    let steps = steps.min((profile.whole - profile.kernel).max(0.0));
    vec![steps, (profile.whole - profile.kernel - steps).max(0.0), profile.kernel]
}
