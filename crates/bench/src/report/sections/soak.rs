//! Memory over a long time.

use super::round::time;
use super::{colour, or_dash};
use crate::report::chart::{Series, lines};
use crate::report::{Section, Table, number};
use crate::results::{Cell, Run};
use crate::statistics::trend;

/// Memory over a long time.
pub(super) fn soak(run: &Run) -> Section {
    let mut section = Section::new("Soak: memory over time");
    let mut table = Table::new(&[
        "system",
        "scenario",
        "requests:",
        "failed:",
        "hours:",
        "first MiB:",
        "last MiB:",
        "MiB an hour:",
        "±, 95 %:",
        "verdict",
    ]);
    for cell in run.cells.iter().filter(|cell| cell.memory.len() > 2) {
        // The first fifth fills caches and pools.
        let settled = &cell.memory[cell.memory.len() / 5..];
        let hourly: Vec<(f64, f64)> = settled.iter().map(|(at, mebi)| (at / 3600.0, *mebi)).collect();
        let found = trend(&hourly);
        let verdict =
            found.map_or("too short", |line| if line.slope - line.margin > 0.0 { "grows" } else { "flat" });
        table.rows.push(vec![
            cell.system.clone(),
            cell.scenario.clone(),
            number(cell.right as f64),
            number(cell.failed as f64),
            number(cell.seconds / 3600.0),
            or_dash(settled.first().map(|(_, mebi)| *mebi)),
            or_dash(settled.last().map(|(_, mebi)| *mebi)),
            or_dash(found.map(|line| line.slope)),
            or_dash(found.map(|line| line.margin)),
            verdict.to_owned(),
        ]);
    }
    section.text("The slope is that of a straight line through the samples behind the first fifth of the time, with its 95 % confidence interval, which is wider where the errors of samples follow each other; memory grows if the whole interval is above 0.");
    section.table(table);
    section.charts(memory_charts(run, run.cells.iter().filter(|cell| cell.memory.len() > 2)));
    section
}

/// Resident memory of single measurements, over their time.
pub(super) fn memory_charts<'a>(run: &Run, cells: impl Iterator<Item = &'a Cell>) -> Vec<String> {
    let chart = |cell: &Cell| {
        let every = cell.memory.len().div_ceil(300);
        let points: Vec<&(f64, f64)> = cell.memory.iter().step_by(every).collect();
        let labels: Vec<String> = points.iter().map(|(at, _)| time(*at)).collect();
        let values = points.iter().map(|(_, mebi)| Some(*mebi)).collect();
        let series =
            [Series { name: cell.system.clone(), colour: colour(run, &cell.system), dashed: false, values }];
        lines(&format!("{}: resident memory", cell.scenario), "MiB", &labels, &series)
    };
    cells.map(chart).collect()
}
