//! The summary: where Busbar is behind or even comes first.

use super::budgets::budgets_in_short;
use super::{US, or_dash};
use crate::report::compare::{EVEN, Pair, geometric, pairs};
use crate::report::{Section, Table, number, size};
use crate::results::Run;
use crate::rounds::ADDED_SETTING;

/// How many rows of a table of losses are shown.
const ROWS: usize = 24;

/// Where we are behind or even comes first.
pub(super) fn summary(runs: &[Run]) -> Section {
    let mut section = Section::new("Summary");
    let failed: u64 = runs.iter().flat_map(|run| &run.cells).map(|cell| cell.failed).sum();
    let cells: usize = runs.iter().map(|run| run.cells.len()).sum();
    let failed_systems: Vec<String> = {
        let failing = |run: &Run| {
            run.cells
                .iter()
                .filter(|cell| cell.failed > 0)
                .map(|cell| cell.system.clone())
                .collect::<Vec<_>>()
        };
        let mut names: Vec<String> = runs.iter().flat_map(failing).collect();
        names.sort();
        names.dedup();
        names
    };
    let wrong = match failed {
        0 => "Every answer was the right one.".to_owned(),
        n => format!(
            "{} answers were wrong or missing, of {}; they count in no figure.",
            number(n as f64),
            failed_systems.join(", ")
        ),
    };
    section.text(format!(
        "{cells} measurements, systems in turn on the same machine, with the same backend, client and messages. Every answer was verified. {wrong}"
    ));
    let empty = runs.iter().flat_map(|run| &run.cells).filter(|cell| cell.right == 0).count();
    if empty > 0 {
        section.text(format!(
            "In {empty} of the measurements no right answer came in time; they are compared with nothing."
        ));
    }
    let quick = runs.iter().any(|run| run.quick);
    if quick {
        section.text("This is a quick run: short measurements on a part of the grid. Its figures are rough.");
    }
    let cut: Vec<&str> = runs.iter().filter(|run| run.is_cut).map(|run| run.method.as_str()).collect();
    if !cut.is_empty() {
        section.text(format!(
            "Ended before all of it was measured: {}. What follows is what there was until then.",
            cut.join(", ")
        ));
    }
    let machine = |run: &Run| (run.machine.processor.clone(), run.machine.cores, run.machine.memory);
    if runs.iter().any(|run| machine(run) != machine(&runs[0])) {
        section.text("The runs are of different machines: compare figures within a run, not between runs.");
    }
    if runs.iter().any(|run| run.version != runs[0].version) {
        section.text("The runs are of different builds of Busbar; the last section says which.");
    }
    budgets_in_short(&mut section, runs);
    let mut table = Table::new(&[
        "method",
        "beside",
        "loads:",
        "behind or even in:",
        "times as many requests:",
        "CPU for each request, theirs / ours:",
    ]);
    let mut losses: Vec<(String, String, Pair)> = Vec::new();
    let mut compared = 0;
    // The generators are no systems, and budgets have a table of their own.
    for run in runs.iter().filter(|run| !matches!(run.method.as_str(), "generator" | "budgets")) {
        for other in run.systems.iter().map(|system| &system.name).filter(|name| *name != US) {
            let compared_pairs: Vec<Pair> =
                pairs(run, US, other).into_iter().filter(|pair| pair.setting != ADDED_SETTING).collect();
            if compared_pairs.is_empty() {
                continue;
            }
            compared += compared_pairs.len();
            let behind: Vec<&Pair> = compared_pairs.iter().filter(|pair| pair.ratio() < EVEN).collect();
            let rate = geometric(compared_pairs.iter().map(Pair::ratio));
            let cpu = geometric(
                compared_pairs.iter().filter_map(|pair| pair.cpu.map(|(ours, theirs)| theirs / ours)),
            );
            table.rows.push(vec![
                run.method.clone(),
                other.clone(),
                compared_pairs.len().to_string(),
                behind.len().to_string(),
                or_dash(rate),
                or_dash(cpu),
            ]);
            losses.extend(behind.into_iter().map(|pair| (run.method.clone(), other.clone(), pair.clone())));
        }
    }
    losses.sort_by(|a, b| a.2.ratio().total_cmp(&b.2.ratio()));
    if compared > 0 {
        let within = (EVEN - 1.0) * 100.0;
        section.text(match losses.len() {
            0 => format!("Busbar is behind or even (within {within:.0} %) in none of the {compared} loads that it shares with another system."),
            n => format!(
                "Busbar is behind or even (within {within:.0} %) in {n} of the {compared} loads that it shares with another system. These come first, the worst at the top:"
            ),
        });
        let mut worst = Table::new(&[
            "method",
            "beside",
            "scenario",
            "message:",
            "clients:",
            "ours, 1/s:",
            "theirs, 1/s:",
            "ours / theirs:",
        ]);
        for (method, other, pair) in losses.iter().take(ROWS) {
            worst.rows.push(vec![
                method.clone(),
                other.clone(),
                named(&pair.scenario, &pair.setting),
                size(pair.size),
                pair.clients.to_string(),
                number(pair.rate.0),
                number(pair.rate.1),
                number(pair.ratio()),
            ]);
        }
        section.table(worst);
        if losses.len() > ROWS {
            section.text(format!("And {} more.", losses.len() - ROWS));
        }
        section.text("Over all loads (geometric means):");
        section.table(table);
    }
    section
}

pub(super) fn named(scenario: &str, setting: &str) -> String {
    if setting.is_empty() { scenario.to_owned() } else { format!("{scenario}, {setting}") }
}
