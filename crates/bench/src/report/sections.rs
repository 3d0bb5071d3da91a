//! What a report says, section by section.

use super::chart::{Series, bars, lines};
use super::compare::{EVEN, Pair, geometric, pairs, test};
use super::{Block, Page, Section, Table, number, probability, size};
use crate::published::{self, SOURCES};
use crate::results::{Cell, Run};
use crate::rounds::{self, ADDED_SETTING, Method, Summary};
use crate::statistics::{Summary as Statistics, Verdict, line};

/// The name under which this binary is measured.
const US: &str = "busbar";
/// How many rows of a table of losses are shown.
const ROWS: usize = 24;

pub(super) fn page(runs: &[Run]) -> Page {
    let mut page = Page { title: "Performance rounds of Busbar".to_owned(), sections: Vec::new() };
    page.sections.push(summary(runs));
    for run in runs {
        page.sections.push(match (rounds::find(&run.method), run.method.as_str()) {
            (Some(method), _) => round(method, run),
            (None, "evaluate") => evaluate(run),
            (None, "soak") => soak(run),
            (None, _) => settings(run),
        });
    }
    page.sections.push(published_figures(runs));
    page.sections.push(conditions(runs));
    page
}

/// The colour of a system: ours is always the first.
fn colour(run: &Run, system: &str) -> usize {
    let others = run.systems.iter().filter(|one| one.name != US);
    match system {
        US => 0,
        other => 1 + others.map(|one| &one.name).position(|name| name == other).unwrap_or(6),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), number)
}

// --- the summary -----------------------------------------------------------------------------------------------------

/// Where we are behind or even comes first.
fn summary(runs: &[Run]) -> Section {
    let mut section = Section::new("Summary");
    let failed: u64 = runs.iter().flat_map(|run| &run.cells).map(|cell| cell.failed).sum();
    let cells: usize = runs.iter().map(|run| run.cells.len()).sum();
    let wrong = match failed {
        0 => "Every answer was the right one.".to_owned(),
        n => format!("{} answers were wrong or missing; they count in no figure.", number(n as f64)),
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
    for run in runs {
        for other in run.systems.iter().map(|system| &system.name).filter(|name| *name != US) {
            let all: Vec<Pair> =
                pairs(run, US, other).into_iter().filter(|pair| pair.setting != ADDED_SETTING).collect();
            if all.is_empty() {
                continue;
            }
            compared += all.len();
            let behind: Vec<&Pair> = all.iter().filter(|pair| pair.ratio() < EVEN).collect();
            let rate = geometric(all.iter().map(Pair::ratio));
            let cpu = geometric(all.iter().filter_map(|pair| pair.cpu.map(|(ours, theirs)| theirs / ours)));
            table.rows.push(vec![
                run.method.clone(),
                other.clone(),
                all.len().to_string(),
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

fn named(scenario: &str, setting: &str) -> String {
    if setting.is_empty() { scenario.to_owned() } else { format!("{scenario}, {setting}") }
}

// --- rounds ----------------------------------------------------------------------------------------------------------

fn round(method: &Method, run: &Run) -> Section {
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
    heads.extend(sizes.iter().map(|one| format!("{}:", one.map_or("1/s".to_owned(), size))));
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
            let one = (figure.name(), figure.remark);
            if !names.contains(&one) {
                names.push(one);
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
        for (what, unit, value) in bars_of {
            let series: Vec<Series> = systems()
                .filter(|system| cells().any(|cell| cell.system == *system && cell.scenario == *scenario))
                .map(|system| {
                    let of = |&size: &usize| {
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
                        values: sizes.iter().map(of).collect(),
                    }
                })
                .collect();
            charts.push(bars(&format!("{scenario}: {what}"), unit, &groups, &series));
        }
    }
    // One size is enough for the shape over clients: the one nearest to 1 KB, which all rounds have.
    let Some(&one) = sizes.iter().min_by_key(|size| size.abs_diff(1024)) else { return charts };
    for scenario in scenarios {
        let of: Vec<&Cell> = cells().filter(|cell| cell.scenario == *scenario && cell.size == one).collect();
        charts.extend(over_clients(run, scenario, &of));
    }
    charts
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
    for one in &found {
        let Statistics { mean, margin, .. } = Statistics::of(&one.turns);
        table.rows.push(vec![one.scenario.clone(), one.system.clone(), number(mean), number(margin)]);
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

/// The paired t-tests of all pairs of systems.
fn significance(section: &mut Section, run: &Run, scenarios: &[&str], setting: &str) {
    let mut table = Table::new(&[
        "scenario",
        "first",
        "second",
        "of",
        "pairs:",
        "mean difference:",
        "t:",
        "df:",
        "P, one-tailed:",
        "P, two-tailed:",
        "at 0.05",
    ]);
    type Value = (&'static str, fn(&Pair) -> (f64, f64), [&'static str; 2]);
    let values: [Value; 2] = [
        ("requests a second", |pair| pair.rate, ["first is faster", "second is faster"]),
        ("mean response, ms", |pair| pair.mean, ["second is faster", "first is faster"]),
    ];
    for scenario in scenarios {
        for (number_of, first) in run.systems.iter().enumerate() {
            for second in &run.systems[number_of + 1..] {
                let all = pairs(run, &first.name, &second.name);
                let these: Vec<&Pair> =
                    all.iter().filter(|pair| pair.scenario == *scenario && pair.setting == setting).collect();
                for (what, value, names) in values {
                    let Some(found) = test(&these, value) else { continue };
                    let verdict = match found.verdict {
                        Verdict::Comparable => "comparable",
                        Verdict::FirstHigher => names[0],
                        Verdict::SecondHigher => names[1],
                    };
                    table.rows.push(vec![
                        (*scenario).to_owned(),
                        first.name.clone(),
                        second.name.clone(),
                        what.to_owned(),
                        found.pairs.to_string(),
                        format!("{} ± {}", number(found.difference), number(found.margin)),
                        number(found.t),
                        found.freedom.to_string(),
                        probability(found.one_tailed),
                        probability(found.two_tailed),
                        verdict.to_owned(),
                    ]);
                }
            }
        }
    }
    if !table.rows.is_empty() {
        section.text("Student's paired t-test: a pair is one load, with the mean of its repetitions; the verdict goes by the two-tailed P. No correction for the number of tests.");
        section.table(table);
    }
}

fn all_cells(run: &Run) -> Table {
    let mut table = Table::new(&[
        "system", "scenario", "message:", "clients:", "right:", "failed:", "1/s:", "mean ms:", "p50:",
        "p90:", "p99:", "p99.9:", "max:", "CPU µs:", "MiB:",
    ]);
    for cell in &run.cells {
        let times = [cell.mean, cell.p50, cell.p90, cell.p99, cell.p999, cell.max].map(number);
        let first = vec![
            cell.system.clone(),
            named(&cell.scenario, &cell.setting),
            size(cell.size),
            cell.clients.to_string(),
        ];
        let counts = vec![cell.right.to_string(), cell.failed.to_string(), number(cell.rate)];
        table
            .rows
            .push([first, counts, times.to_vec(), vec![or_dash(cell.cpu), or_dash(cell.resident)]].concat());
    }
    table
}

// --- the other methods -----------------------------------------------------------------------------------------------

/// The evaluation of the University of North Florida: levels, repetitions, tests.
fn evaluate(run: &Run) -> Section {
    let mut section =
        Section::new("Evaluation: growing numbers of clients, growing payloads, and tests of significance");
    section.text("As in the paper: 1 to 160 clients with 100 KB each, and one client with 1 KB to 1 MB; each level is measured several times. ± is half the 95 % confidence interval of the mean over the repetitions.");
    let scenarios = run.distinct(|cell| cell.scenario.clone());
    let names: Vec<&str> = scenarios.iter().map(String::as_str).collect();
    for setting in run.distinct(|cell| cell.setting.clone()) {
        let of = |cell: &&Cell| cell.setting == setting;
        let mut table = Table::new(&[
            "scenario",
            "clients:",
            "message:",
            "system",
            "runs:",
            "1/s:",
            "±:",
            "mean response, ms:",
            "±:",
            "CPU µs:",
            "backend CPU µs:",
        ]);
        let mut charts = Vec::new();
        for scenario in &names {
            let cells: Vec<&Cell> = run
                .cells
                .iter()
                .filter(of)
                .filter(|cell| cell.scenario == *scenario && cell.right > 0)
                .collect();
            let mut levels: Vec<(usize, usize)> =
                cells.iter().map(|cell| (cell.clients, cell.size)).collect();
            levels.sort_unstable();
            levels.dedup();
            for &(clients, bytes) in &levels {
                for system in &run.systems {
                    let these: Vec<&&Cell> = cells
                        .iter()
                        .filter(|c| (c.clients, c.size) == (clients, bytes) && c.system == system.name)
                        .collect();
                    if these.is_empty() {
                        continue;
                    }
                    let statistics = |value: fn(&Cell) -> f64| {
                        Statistics::of(&these.iter().map(|cell| value(cell)).collect::<Vec<_>>())
                    };
                    let (rate, response) = (statistics(|cell| cell.rate), statistics(|cell| cell.mean));
                    table.rows.push(vec![
                        (*scenario).to_owned(),
                        clients.to_string(),
                        size(bytes),
                        system.name.clone(),
                        these.len().to_string(),
                        number(rate.mean),
                        number(rate.margin),
                        number(response.mean),
                        number(response.margin),
                        or_dash(mean(these.iter().filter_map(|cell| cell.cpu))),
                        or_dash(mean(these.iter().filter_map(|cell| cell.backend_cpu))),
                    ]);
                }
            }
            let by_clients =
                levels.iter().map(|(clients, _)| clients).collect::<std::collections::BTreeSet<_>>().len()
                    > 1;
            let labels: Vec<String> = levels
                .iter()
                .map(|(clients, bytes)| if by_clients { clients.to_string() } else { size(*bytes) })
                .collect();
            let chart = |what: &str, unit: &str, value: fn(&Cell) -> f64| {
                let series = |system: &crate::results::System| {
                    let at = |level: &(usize, usize)| {
                        mean(
                            cells
                                .iter()
                                .filter(|c| (c.clients, c.size) == *level && c.system == system.name)
                                .map(|c| value(c)),
                        )
                    };
                    Series {
                        name: system.name.clone(),
                        colour: colour(run, &system.name),
                        dashed: false,
                        values: levels.iter().map(at).collect(),
                    }
                };
                let series: Vec<Series> = run.systems.iter().map(series).collect();
                lines(&format!("{scenario}, {setting}: {what}"), unit, &labels, &series)
            };
            charts.push(chart("throughput", "1/s", |cell| cell.rate));
            charts.push(chart("mean response", "ms", |cell| cell.mean));
        }
        section.text(format!("Growing {setting}:"));
        section.table(table);
        section.charts(charts);
        significance(&mut section, run, &names, &setting);
    }
    let mut table =
        Table::new(&["scenario and test", "systems", "P, requests a second:", "P, mean response:"]);
    for figure in published::figures().iter().filter(|figure| figure.metric == "p_value_tps") {
        let same = |other: &&published::Figure| {
            other.metric == "p_value_mean_response"
                && (other.system, other.scenario) == (figure.system, figure.scenario)
        };
        let response = published::figures().iter().find(same).map(|figure| figure.value);
        table.rows.push(vec![
            figure.scenario.to_owned(),
            figure.system.to_owned(),
            probability(figure.value),
            response.map_or("–".to_owned(), probability),
        ]);
    }
    section.text("The P values of the paper (they look one-tailed):");
    section.table(table);
    section
}

/// A method that varies settings.
fn settings(run: &Run) -> Section {
    let title = match run.method.as_str() {
        "xslt" => "XSLT beside FastXSLT",
        "tune" => "Split and aggregate with other settings",
        other => other,
    };
    let mut section = Section::new(if title.is_empty() { "Measurements" } else { title });
    let mut table = Table::new(&[
        "scenario", "setting", "message:", "clients:", "system", "1/s:", "mean ms:", "p99 ms:", "CPU µs:",
        "MiB:",
    ]);
    for cell in &run.cells {
        let first = vec![
            cell.scenario.clone(),
            cell.setting.clone(),
            size(cell.size),
            cell.clients.to_string(),
            cell.system.clone(),
        ];
        let rest = vec![
            number(cell.rate),
            number(cell.mean),
            number(cell.p99),
            or_dash(cell.cpu),
            or_dash(cell.resident),
        ];
        table.rows.push([first, rest].concat());
    }
    if run.method == "xslt" {
        for figure in
            published::figures().iter().filter(|f| f.round == "fastxslt" && f.metric == "mean_response_ms")
        {
            let same = |metric: &str| {
                let found = published::figures().iter().find(|f| {
                    f.metric == metric
                        && (f.round, f.scenario, f.size, f.clients)
                            == (figure.round, figure.scenario, figure.size, figure.clients)
                });
                found.map_or("–".to_owned(), |figure| number(figure.value))
            };
            let (scenario, setting) = figure.scenario.split_once('/').unwrap_or((figure.scenario, ""));
            table.rows.push(vec![
                scenario.to_owned(),
                setting.to_owned(),
                figure.size.map_or("–".to_owned(), size),
                figure.clients.to_owned(),
                format!("{} (published)", figure.name()),
                same("tps_mean"),
                number(figure.value),
                "–".to_owned(),
                "–".to_owned(),
                "–".to_owned(),
            ]);
        }
    }
    section.table(table);
    let mut charts = Vec::new();
    for scenario in run.distinct(|cell| cell.scenario.clone()) {
        let cells: Vec<&Cell> = run.cells.iter().filter(|cell| cell.scenario == scenario).collect();
        let groups: Vec<String> = cells
            .iter()
            .map(|cell| {
                if cell.setting.is_empty() {
                    format!("{} x {}", size(cell.size), cell.clients)
                } else {
                    cell.setting.clone()
                }
            })
            .collect();
        if groups.len() > 1 && groups.len() <= 12 {
            let values = |value: fn(&Cell) -> f64| {
                vec![Series {
                    name: US.to_owned(),
                    colour: 0,
                    dashed: false,
                    values: cells.iter().map(|cell| Some(value(cell))).collect(),
                }]
            };
            charts.push(bars(&format!("{scenario}: throughput"), "1/s", &groups, &values(|cell| cell.rate)));
            charts.push(bars(&format!("{scenario}: mean latency"), "ms", &groups, &values(|cell| cell.mean)));
        }
    }
    section.charts(charts);
    section
}

/// Memory over a long time.
fn soak(run: &Run) -> Section {
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
    let mut charts = Vec::new();
    for cell in run.cells.iter().filter(|cell| cell.memory.len() > 2) {
        // The first fifth fills caches and pools.
        let settled = &cell.memory[cell.memory.len() / 5..];
        let hourly: Vec<(f64, f64)> = settled.iter().map(|(at, mebi)| (at / 3600.0, *mebi)).collect();
        let found = line(&hourly);
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
        let every = cell.memory.len().div_ceil(300);
        let points: Vec<&(f64, f64)> = cell.memory.iter().step_by(every).collect();
        let labels: Vec<String> = points.iter().map(|(at, _)| format!("{:.0} s", at)).collect();
        let values = points.iter().map(|(_, mebi)| Some(*mebi)).collect();
        let series =
            [Series { name: cell.system.clone(), colour: colour(run, &cell.system), dashed: false, values }];
        charts.push(lines(&format!("{}: resident memory", cell.scenario), "MiB", &labels, &series));
    }
    section.text("The slope is that of a straight line through the samples behind the first fifth of the time, with its 95 % confidence interval for samples that err independently; memory grows if the whole interval is above 0.");
    section.table(table);
    section.charts(charts);
    section
}

// --- what was published, and how this was measured -------------------------------------------------------------------

fn published_figures(runs: &[Run]) -> Section {
    let mut section = Section::new("The published rounds");
    let here =
        runs.first().map(|run| format!(" This run: {}, {} cores.", run.machine.processor, run.machine.cores));
    section.text(format!(
        "Their figures stand in the tables above as they were printed.{} Theirs:",
        here.unwrap_or_default()
    ));
    section.blocks.push(Block::List(
        SOURCES
            .iter()
            .map(|source| format!("{}: {}. {}", source.title, source.machine, source.caution))
            .collect(),
    ));
    section
}

fn conditions(runs: &[Run]) -> Section {
    let mut section = Section::new("How this was measured");
    section.text("The load generator is a closed loop: each client sends its next request when its last one was answered. A latency is the time from sending a request (or opening its connection) to the last byte of its answer. An answer counts if status, headers and body are what they must be. CPU is user plus system time of the system's process for each right answer.");
    let mut table =
        Table::new(&["method", "begun", "minutes:", "processor", "cores:", "MiB:", "system", "load before:"]);
    let mut systems = Table::new(&["method", "system", "version", "command"]);
    for run in runs {
        let machine = &run.machine;
        table.rows.push(vec![
            if run.quick { format!("{} (quick)", run.method) } else { run.method.clone() },
            run.begun.clone(),
            number(run.took / 60.0),
            machine.processor.clone(),
            machine.cores.to_string(),
            machine.memory.to_string(),
            machine.system.clone(),
            number(machine.load),
        ]);
        for system in &run.systems {
            systems.rows.push(vec![
                run.method.clone(),
                system.name.clone(),
                system.version.clone(),
                system.command.clone(),
            ]);
        }
    }
    section.table(table);
    section.table(systems);
    let mut commands: Vec<&str> =
        runs.iter().map(|run| run.command.as_str()).filter(|command| !command.is_empty()).collect();
    commands.dedup();
    if !commands.is_empty() {
        section.text("Again with:");
        section.blocks.push(Block::Code(commands.join("\n")));
    }
    let mut absent: Vec<String> = runs.iter().flat_map(|run| run.absent.clone()).collect();
    absent.dedup();
    if !absent.is_empty() {
        section.text("Not measured:");
        section.blocks.push(Block::List(absent));
    }
    section
}
