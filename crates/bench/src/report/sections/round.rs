//! A published round: systems, scenarios and numbers of clients, with its charts.

use super::significance::{all_cells, significance};
use super::{colour, mean};
use crate::published::{self};
use crate::report::chart::{Series, bars, lines};
use crate::report::{Block, Section, Table, number, size};
use crate::results::{Cell, Run};
use crate::rounds::{self, Method, Summary};
use crate::statistics::Summary as Statistics;

pub(super) fn round(method: &Method, run: &Run) -> Section {
    let mut section = Section::new(method.title);
    let figures = rounds::figures(method, run);
    let (source, metric) = method.published;
    section.text(match method.summary {
        Summary::Best => "The most right answers a second over all numbers of clients; in brackets the clients of the best.",
        Summary::Mean => "Right answers a second: the mean over all sizes and numbers of clients.",
    });
    let sizes: Vec<Option<usize>> = match method.summary {
        Summary::Best => run
            .distinct(|cell| cell.size)
            .into_iter()
            .filter(|size| method.sizes.contains(size))
            .map(Some)
            .collect(),
        Summary::Mean => vec![None],
    };
    let scenarios: Vec<&str> = method
        .scenarios
        .iter()
        .copied()
        .filter(|name| run.cells.iter().any(|cell| cell.scenario == *name))
        .collect();
    let mut heads = vec!["system".to_owned(), "scenario".to_owned()];
    heads.extend(sizes.iter().map(|column| format!("{}:", column.map_or("1/s".to_owned(), size))));
    let mut table = Table { heads, rows: Vec::new() };
    for scenario in &scenarios {
        for system in &run.systems {
            let cell = |size: &Option<usize>| {
                let found = figures
                    .iter()
                    .find(|f| f.system == system.name && f.scenario == *scenario && f.size == *size);
                found.map_or("–".to_owned(), |figure| {
                    let clients = figure.clients.map_or(String::new(), |clients| format!(" ({clients})"));
                    format!("{}{clients}", number(figure.rate))
                })
            };
            let cells: Vec<String> = sizes.iter().map(cell).collect();
            if cells.iter().any(|cell| cell != "–") {
                table.rows.push([vec![system.name.clone(), (*scenario).to_owned()], cells].concat());
            }
        }
        let mut names: Vec<(String, &str)> = Vec::new();
        for figure in published::of(source, metric, scenario) {
            let pair = (figure.name(), figure.remark);
            if !names.contains(&pair) {
                names.push(pair);
            }
        }
        for (name, remark) in names {
            let cell = |size: &Option<usize>| {
                let same = |f: &&published::Figure| f.name() == name && f.size == *size && f.remark == remark;
                published::of(source, metric, scenario).find(same).map_or("–".to_owned(), |figure| {
                    let clients = if figure.clients.is_empty() {
                        String::new()
                    } else {
                        format!(" ({})", figure.clients)
                    };
                    format!("{}{clients}", number(figure.value))
                })
            };
            let remark = if remark.is_empty() { String::new() } else { format!(", {remark}") };
            let first = vec![format!("{name} (published{remark})"), (*scenario).to_owned()];
            table.rows.push([first, sizes.iter().map(cell).collect()].concat());
        }
    }
    section.table(table);
    section.text("Published figures are of other machines, other settings and another decade: they say where this field comes from, not how much faster something is.");
    section.charts(round_charts(run, &scenarios));
    if method.added_latency {
        added(&mut section, run, source);
    }
    significance(&mut section, run, &scenarios, "");
    section.blocks.push(Block::Folded("All measurements".to_owned(), all_cells(run)));
    section
}

/// Bars by size, then lines over clients for each scenario.
fn round_charts(run: &Run, scenarios: &[&str]) -> Vec<String> {
    let cells = || run.cells.iter().filter(|cell| cell.setting.is_empty() && cell.right > 0);
    let systems = || run.systems.iter().map(|system| system.name.as_str());
    let mut sizes = run.distinct(|cell| (cell.setting.is_empty(), cell.size));
    sizes.retain(|(is_grid, _)| *is_grid);
    let sizes: Vec<usize> = sizes.into_iter().map(|(_, size)| size).collect();
    let groups: Vec<String> = sizes.iter().copied().map(size).collect();
    let mut charts = Vec::new();
    type Value = (&'static str, &'static str, fn(&Cell) -> Option<f64>);
    let bars_of: [Value; 2] = [
        ("mean over clients", "1/s", |cell| Some(cell.rate)),
        ("CPU for each request", "µs", |cell| cell.cpu),
    ];
    for scenario in scenarios {
        for (title, unit, value) in bars_of {
            let series: Vec<Series> = systems()
                .filter(|system| cells().any(|cell| cell.system == *system && cell.scenario == *scenario))
                .map(|system| {
                    let value_of = |&size: &usize| {
                        mean(
                            cells()
                                .filter(|c| c.system == system && c.scenario == *scenario && c.size == size)
                                .filter_map(value),
                        )
                    };
                    Series {
                        name: system.to_owned(),
                        colour: colour(run, system),
                        dashed: false,
                        values: sizes.iter().map(value_of).collect(),
                    }
                })
                .collect();
            charts.push(bars(&format!("{scenario}: {title}"), unit, &groups, &series));
        }
    }
    // One size is enough for the shape over clients: the one nearest to 1 KB, which all rounds have.
    let Some(&nearest) = sizes.iter().min_by_key(|size| size.abs_diff(1024)) else { return charts };
    for scenario in scenarios {
        let cells_of_size: Vec<&Cell> =
            cells().filter(|cell| cell.scenario == *scenario && cell.size == nearest).collect();
        charts.extend(over_clients(run, scenario, &cells_of_size));
        charts.extend(percentiles(run, scenario, &cells_of_size));
    }
    charts.extend(memory_of_systems(run));
    charts
}

/// The percentiles of the latency with the fewest clients.
fn percentiles(run: &Run, scenario: &str, cells: &[&Cell]) -> Option<String> {
    let clients = cells.iter().map(|cell| cell.clients).min()?;
    let message = cells.first().map_or(String::new(), |cell| size(cell.size));
    type Percentile = fn(&Cell) -> f64;
    let values: [(&str, Percentile); 5] = [
        ("p50", |cell| cell.p50),
        ("p90", |cell| cell.p90),
        ("p99", |cell| cell.p99),
        ("p99.9", |cell| cell.p999),
        ("max", |cell| cell.max),
    ];
    let labels: Vec<String> = values.iter().map(|(name, _)| (*name).to_owned()).collect();
    let cells_of = |name: &str| {
        cells
            .iter()
            .filter(|cell| cell.system == name && cell.clients == clients)
            .copied()
            .collect::<Vec<_>>()
    };
    let series: Vec<Series> = run
        .systems
        .iter()
        .filter(|system| !cells_of(&system.name).is_empty())
        .map(|system| Series {
            name: system.name.clone(),
            colour: colour(run, &system.name),
            dashed: false,
            values: values
                .iter()
                .map(|(_, value)| mean(cells_of(&system.name).iter().map(|cell| value(cell))))
                .collect(),
        })
        .collect();
    Some(lines(&format!("{scenario}, {message}, {clients} clients: latency"), "ms", &labels, &series))
}

/// Resident memory of all systems over the time of the run: the largest of each measurement.
fn memory_of_systems(run: &Run) -> Option<String> {
    const POINTS: usize = 60;
    let end = run.cells.iter().map(|cell| cell.at).fold(0.0, f64::max);
    if end <= 0.0 {
        return None;
    }
    let labels: Vec<String> = (0..POINTS).map(|at| time(end * (at + 1) as f64 / POINTS as f64)).collect();
    let point = |cell: &Cell| ((cell.at / end * POINTS as f64).ceil() as usize).clamp(1, POINTS) - 1;
    let series: Vec<Series> = run
        .systems
        .iter()
        .map(|system| {
            let mut values: Vec<Option<f64>> = vec![None; POINTS];
            for cell in run.cells.iter().filter(|cell| cell.system == system.name) {
                let value = &mut values[point(cell)];
                *value = [*value, cell.resident].into_iter().flatten().reduce(f64::max);
            }
            Series { name: system.name.clone(), colour: colour(run, &system.name), dashed: false, values }
        })
        .filter(|series| series.values.iter().flatten().count() > 0)
        .collect();
    (!series.is_empty()).then(|| lines("resident memory over the time of the run", "MiB", &labels, &series))
}

/// `45 s`, `12 min`.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Rate, and median and 99th percentile, over the numbers of clients.
fn over_clients(run: &Run, scenario: &str, cells: &[&Cell]) -> Vec<String> {
    let mut clients: Vec<usize> = cells.iter().map(|cell| cell.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    if clients.len() < 2 {
        return Vec::new();
    }
    let labels: Vec<String> = clients.iter().map(usize::to_string).collect();
    let message = cells.first().map_or(String::new(), |cell| size(cell.size));
    let series = |name: &str, system: &str, dashed: bool, value: fn(&Cell) -> f64| Series {
        name: name.to_owned(),
        colour: colour(run, system),
        dashed,
        values: clients
            .iter()
            .map(|&level| {
                mean(cells.iter().filter(|c| c.system == system && c.clients == level).map(|c| value(c)))
            })
            .collect(),
    };
    let systems: Vec<&str> = run
        .systems
        .iter()
        .map(|system| system.name.as_str())
        .filter(|name| cells.iter().any(|cell| cell.system == *name))
        .collect();
    let rate: Vec<Series> = systems.iter().map(|name| series(name, name, false, |cell| cell.rate)).collect();
    let mut latency: Vec<Series> = Vec::new();
    for name in &systems {
        latency.push(series(&format!("{name} p50"), name, false, |cell| cell.p50));
        latency.push(series(&format!("{name} p99"), name, true, |cell| cell.p99));
    }
    vec![
        lines(&format!("{scenario}, {message}: throughput over clients"), "1/s", &labels, &rate),
        lines(&format!("{scenario}, {message}: latency over clients"), "ms", &labels, &latency),
    ]
}

fn added(section: &mut Section, run: &Run, source: &str) {
    let found = rounds::added(run);
    if found.is_empty() {
        return;
    }
    section.text("Latency that is added: the mean through the system minus that of the direct call of the backend, in ms; 20 clients, 1,000 bytes. A closed loop keeps all clients busy, so this is what a busy system adds, waiting for the core included.");
    let mut table = Table::new(&["scenario", "system", "added, ms:", "±, 95 %:"]);
    for latency in &found {
        let Statistics { mean, margin, .. } = Statistics::of(&latency.turns);
        table.rows.push(vec![latency.scenario.clone(), latency.system.clone(), number(mean), number(margin)]);
    }
    let scenarios = run.distinct(|cell| cell.scenario.clone());
    for scenario in scenarios {
        for figure in published::of(source, "added_latency_ms", &scenario) {
            let name = format!("{} (published)", figure.name());
            table.rows.push(vec![scenario.clone(), name, number(figure.value), "–".to_owned()]);
        }
    }
    table.rows.sort_by(|a, b| a[0].cmp(&b[0]));
    section.table(table);
}
