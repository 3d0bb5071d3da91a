//! Budgets: what work may cost, and other builds of Busbar beside this one.

use super::significance::all_cells;
use super::soak::memory_charts;
use super::{US, or_dash};
use crate::report::{Block, Section, Table, number, size};
use crate::results::{Budget, Run};
use crate::statistics::median;

/// What work may cost: what is missed first.
pub(super) fn budget_section(run: &Run) -> Section {
    let mut section = Section::new("Budgets: what work may cost");
    section.text("Each is a ratio of two measurements of this run that took turns, a time, or memory. CPU is that of the system for each right answer; two works are compared within each turn, and the median of the turns counts. In brackets: the middle half of the turns. A budget is met if all of its values are within the bound. “System calls alone” is what would stand there if the work took nothing but the receiving and sending of a relay that does not understand HTTP (bench/floor), measured in the same turns: a bound that this misses is out of reach of every program that relays through user space. “Left” is the CPU time that the bound leaves for all else: HTTP, reading, transforming, writing.");
    let headings =
        ["work", "measured", "bound:", "worst:", "all values", "system calls alone", "left, µs", "verdict"];
    let mut table = Table::new(&headings);
    let mut sorted: Vec<&Budget> = run.budgets.iter().collect();
    sorted.sort_by_key(|budget| match budget.is_met() {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    });
    for budget in sorted {
        let value = |(case, value): &(String, f64)| match case.as_str() {
            "" => number(*value),
            case => format!("{} ({case})", number(*value)),
        };
        let spread = |case: &str| {
            let (_, (low, high)) = budget.spread.iter().find(|(of, _)| of == case)?;
            Some(format!(" [{} to {}]", number(*low), number(*high)))
        };
        let values = budget.values.iter().map(|one| value(one) + &spread(&one.0).unwrap_or_default());
        let listed = |values: &[(String, f64)]| values.iter().map(value).collect::<Vec<_>>().join(", ");
        let or_none = |text: String| if text.is_empty() { "–".to_owned() } else { text };
        let beyond: Vec<&str> = budget.out_of_reach().collect();
        let verdict = match budget.is_met() {
            Some(true) => "met".to_owned(),
            Some(false) if beyond.is_empty() => "missed".to_owned(),
            Some(false) => format!("missed; out of reach: {}", beyond.join(", ")),
            None => budget.absent.clone().unwrap_or_else(|| "not measured".to_owned()),
        };
        table.rows.push(vec![
            budget.work.clone(),
            budget.unit.clone(),
            format!("{} {}", if budget.is_least { "at least" } else { "at most" }, number(budget.bound)),
            or_dash(budget.worst()),
            values.collect::<Vec<_>>().join(", "),
            or_none(listed(&budget.floor)),
            or_none(listed(&budget.left)),
            verdict,
        ]);
    }
    section.table(table);
    builds(&mut section, run);
    section.text("Engines alone, in memory and without HTTP (XSLT beside libxslt and Saxon), are measured by bench/engines/run.py.");
    section.charts(memory_charts(run, run.cells.iter().filter(|cell| cell.memory.len() > 2)));
    section.blocks.push(Block::Folded("All measurements".to_owned(), all_cells(run)));
    section
}

pub(super) fn budgets_in_short(section: &mut Section, runs: &[Run]) {
    let budgets: Vec<&Budget> = runs.iter().flat_map(|run| &run.budgets).collect();
    let count = |met: Option<bool>| budgets.iter().filter(|budget| budget.is_met() == met).count();
    if !budgets.is_empty() {
        section.text(format!(
            "Of {} budgets {} are missed, {} were not measured, {} are met.",
            budgets.len(),
            count(Some(false)),
            count(None),
            count(Some(true))
        ));
    }
}

/// Other builds of Busbar beside this one: the medians of the turns.
pub(super) fn builds(section: &mut Section, run: &Run) {
    let mut table =
        Table::new(&["build", "scenario", "message:", "its CPU µs:", "CPU µs now:", "change, %:"]);
    let is_build =
        |system: &&crate::results::System| system.name != US && system.version.starts_with("busbar ");
    for system in run.systems.iter().filter(is_build) {
        for (scenario, bytes) in run.distinct(|cell| (cell.scenario.clone(), cell.size)) {
            let works = ((system.name.as_str(), scenario.as_str()), (US, scenario.as_str()));
            let pairs = run.pairs(works, |cell| cell.size == bytes && cell.clients > 1);
            if pairs.is_empty() {
                continue;
            }
            let of = |value: fn(&(f64, f64)) -> f64| median(&pairs.iter().map(value).collect::<Vec<_>>());
            table.rows.push(vec![
                system.name.clone(),
                scenario.clone(),
                size(bytes),
                number(of(|pair| pair.0)),
                number(of(|pair| pair.1)),
                format!("{:+.1}", 100.0 * (of(|pair| pair.1 / pair.0) - 1.0)),
            ]);
        }
    }
    if !table.rows.is_empty() {
        section.text("Beside other builds, in the same turns:");
        section.table(table);
    }
}
