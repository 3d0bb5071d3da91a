//! The load generator beside others.

use super::{mean, or_dash};
use crate::generator;
use crate::report::{Section, Table, number};
use crate::results::{Cell, Run};
use crate::statistics::Summary as Statistics;

/// The load generator beside others.
pub(super) fn generators(run: &Run) -> Section {
    let mut section = Section::new("The load generator itself");
    section.text("Against the same backend, in turn, on a core of its own; the backend has another one. CPU is that of the generator for each answer: what it leaves of a core is what it could do more. Ours compares every byte of every answer, ab and wrk look at the status. Median and 99th percentile are as each of them says; ab has whole milliseconds.");
    let statistics = |cells: &[&Cell], value: fn(&Cell) -> Option<f64>| -> Option<(f64, f64)> {
        let values: Vec<f64> = cells.iter().filter_map(|cell| value(cell)).collect();
        let Statistics { mean, margin, .. } = Statistics::of(&values);
        (!values.is_empty()).then_some((mean, margin))
    };
    let shown = |value: Option<(f64, f64)>| {
        value
            .map_or_else(|| "–".to_owned(), |(mean, margin)| format!("{} ± {}", number(mean), number(margin)))
    };
    let mut table = Table::new(&[
        "connections:",
        "generator",
        "turns:",
        "answers a second ±, 95 %:",
        "CPU µs an answer ±, 95 %:",
        "answers a core and second:",
        "p50 ms:",
        "p99 ms:",
        "failed:",
    ]);
    let mut levels = run.distinct(|cell| (cell.scenario == generator::ECHO, cell.clients));
    levels.retain(|(is_echo, _)| *is_echo);
    for (_, clients) in levels {
        for system in &run.systems {
            let cells: Vec<&Cell> =
                run.of(&system.name, generator::ECHO).filter(|cell| cell.clients == clients).collect();
            if cells.is_empty() {
                continue;
            }
            let cpu = statistics(&cells, |cell| cell.cpu);
            table.rows.push(vec![
                clients.to_string(),
                system.name.clone(),
                cells.len().to_string(),
                shown(statistics(&cells, |cell| Some(cell.rate))),
                shown(cpu),
                or_dash(cpu.map(|(cpu, _)| 1e6 / cpu.max(1e-9))),
                or_dash(mean(cells.iter().map(|cell| cell.p50))),
                or_dash(mean(cells.iter().map(|cell| cell.p99))),
                cells.iter().map(|cell| cell.failed).sum::<u64>().to_string(),
            ]);
        }
    }
    section.table(table);
    let stalled: Vec<&Cell> = run.cells.iter().filter(|cell| cell.scenario == generator::STALL).collect();
    if !stalled.is_empty() {
        section.text("A server that answers in 2 ms and stalls once for half a second. A closed loop waits with it: of all who would have come meanwhile it sees as many as it has connections (coordinated omission). In the open loop 500 requests a second are due, and each counts from when it was due:");
        let mut table = Table::new(&["seen by", "answers:", "p50 ms:", "p90:", "p99:", "p99.9:", "max:"]);
        for cell in stalled {
            let times = [cell.p50, cell.p90, cell.p99, cell.p999, cell.max].map(number);
            table.rows.push([vec![cell.system.clone(), cell.right.to_string()], times.to_vec()].concat());
        }
        section.table(table);
    }
    section
}
