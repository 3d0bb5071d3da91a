//! What a report says, section by section.

use super::chart::{Series, bars, lines, rows};
use super::compare::{EVEN, Pair, geometric, pairs, test};
use super::{Block, Page, Section, Table, number, probability, size};
use crate::generator;
use crate::published::{self, SOURCES};
use crate::results::{Budget, Cell, Profile, Run};
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
            (None, "budgets") => budget_section(run),
            (None, "profile") => profile(run),
            (None, "generator") => generators(run),
            (None, _) => settings(run),
        });
    }
    page.sections.push(published_figures(runs));
    page.sections.push(conditions(runs));
    page
}

/// The colour of a system: ours is always the first.
fn colour(run: &Run, system: &str) -> usize {
    let others = run.systems.iter().filter(|system| system.name != US);
    match system {
        US => 0,
        other => 1 + others.map(|system| &system.name).position(|name| name == other).unwrap_or(6),
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

fn named(scenario: &str, setting: &str) -> String {
    if setting.is_empty() { scenario.to_owned() } else { format!("{scenario}, {setting}") }
}

// --- budgets ---------------------------------------------------------------------------------------------------------

fn budgets_in_short(section: &mut Section, runs: &[Run]) {
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

/// What work may cost: what is missed first.
fn budget_section(run: &Run) -> Section {
    let mut section = Section::new("Budgets: what work may cost");
    section.text("Each is a ratio of two measurements of this run that took turns, a time, or memory. CPU is that of the system for each right answer, the least of the turns: what else a machine does only adds to it. A budget is met if all of its values are within the bound.");
    let mut table = Table::new(&["work", "measured", "bound:", "worst:", "all values", "verdict"]);
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
        let values: Vec<String> = budget.values.iter().map(value).collect();
        let verdict = match budget.is_met() {
            Some(true) => "met".to_owned(),
            Some(false) => "missed".to_owned(),
            None => budget.absent.clone().unwrap_or_else(|| "not measured".to_owned()),
        };
        table.rows.push(vec![
            budget.work.clone(),
            budget.unit.clone(),
            format!("{} {}", if budget.is_least { "at least" } else { "at most" }, number(budget.bound)),
            or_dash(budget.worst()),
            values.join(", "),
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

/// Other builds of Busbar beside this one: the least CPU of the turns.
fn builds(section: &mut Section, run: &Run) {
    let mut table =
        Table::new(&["build", "scenario", "message:", "its CPU µs:", "CPU µs now:", "change, %:"]);
    let least = |system: &str, scenario: &str, bytes: usize| {
        let cells = run.of(system, scenario).filter(|cell| cell.size == bytes && cell.clients > 1);
        cells.filter_map(|cell| cell.cpu).reduce(f64::min)
    };
    let is_build =
        |system: &&crate::results::System| system.name != US && system.version.starts_with("busbar ");
    for system in run.systems.iter().filter(is_build) {
        for (scenario, bytes) in run.distinct(|cell| (cell.scenario.clone(), cell.size)) {
            let (Some(before), Some(now)) =
                (least(&system.name, &scenario, bytes), least(US, &scenario, bytes))
            else {
                continue;
            };
            let change = 100.0 * (now / before - 1.0);
            table.rows.push(vec![
                system.name.clone(),
                scenario,
                size(bytes),
                number(before),
                number(now),
                format!("{change:+.1}"),
            ]);
        }
    }
    if !table.rows.is_empty() {
        section.text("Beside other builds, in the same turns:");
        section.table(table);
    }
}

// --- profile ---------------------------------------------------------------------------------------------------------

/// The parts of a request, and their colours.
const PARTS: [(&str, usize); 3] = [("steps", 0), ("receiving, routing, sending", 2), ("kernel", 6)];

/// Steps, the rest of the process's own time, and the kernel's; without what the clock at the steps costs.
fn parts(profile: &Profile) -> Vec<f64> {
    let steps: f64 = profile.steps.iter().map(|step| step.cpu).sum();
    let steps = steps.min((profile.whole - profile.kernel).max(0.0));
    vec![steps, (profile.whole - profile.kernel - steps).max(0.0), profile.kernel]
}

/// Where the processor time of flows goes.
fn profile(run: &Run) -> Section {
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

// --- the generator ---------------------------------------------------------------------------------------------------

/// The load generator beside others.
fn generators(run: &Run) -> Section {
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
fn time(seconds: f64) -> String {
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
                let tested_pairs = pairs(run, &first.name, &second.name);
                let these: Vec<&Pair> = tested_pairs
                    .iter()
                    .filter(|pair| pair.scenario == *scenario && pair.setting == setting)
                    .collect();
                for (title, value, names) in values {
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
                        title.to_owned(),
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
        let is_of_setting = |cell: &&Cell| cell.setting == setting;
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
                .filter(is_of_setting)
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
            let chart = |title: &str, unit: &str, value: fn(&Cell) -> f64| {
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
                lines(&format!("{scenario}, {setting}: {title}"), unit, &labels, &series)
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
    section.charts(setting_charts(run));
    section
}

/// Bars of each scenario: by load where there are several, else by system.
fn setting_charts(run: &Run) -> Vec<String> {
    type Value = (&'static str, &'static str, fn(&Cell) -> Option<f64>);
    let values: [Value; 3] = [
        ("throughput", "1/s", |cell| Some(cell.rate)),
        ("mean latency", "ms", |cell| Some(cell.mean)),
        ("CPU for each request", "µs", |cell| cell.cpu),
    ];
    let mut charts = Vec::new();
    let loads = run.distinct(|cell| (cell.size, cell.clients));
    for scenario in run.distinct(|cell| cell.scenario.clone()) {
        let cells: Vec<&Cell> =
            run.cells.iter().filter(|cell| cell.scenario == scenario && cell.right > 0).collect();
        let names: Vec<&str> = run
            .systems
            .iter()
            .map(|system| system.name.as_str())
            .filter(|name| cells.iter().any(|cell| cell.system == *name))
            .collect();
        for (title, unit, value) in values {
            let mean_of = |name: &str, load: (usize, usize)| {
                mean(
                    cells
                        .iter()
                        .filter(|c| c.system == name && (c.size, c.clients) == load)
                        .filter_map(|c| value(c)),
                )
            };
            if loads.len() > 1 {
                let groups: Vec<String> =
                    loads.iter().map(|(bytes, clients)| format!("{} x {clients}", size(*bytes))).collect();
                let series: Vec<Series> = names
                    .iter()
                    .map(|name| Series {
                        name: (*name).to_owned(),
                        colour: colour(run, name),
                        dashed: false,
                        values: loads.iter().map(|load| mean_of(name, *load)).collect(),
                    })
                    .collect();
                charts.push(bars(&format!("{scenario}: {title}"), unit, &groups, &series));
            } else if let Some(load) = loads.first() {
                let means: Vec<(String, Vec<f64>)> = names
                    .iter()
                    .filter_map(|name| Some(((*name).to_owned(), vec![mean_of(name, *load)?])))
                    .collect();
                charts.push(rows(&format!("{scenario}: {title}"), unit, &[(title, 0)], &means));
            }
        }
    }
    charts
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
    }
    section.text("The slope is that of a straight line through the samples behind the first fifth of the time, with its 95 % confidence interval for samples that err independently; memory grows if the whole interval is above 0.");
    section.table(table);
    section.charts(memory_charts(run, run.cells.iter().filter(|cell| cell.memory.len() > 2)));
    section
}

/// Resident memory of single measurements, over their time.
fn memory_charts<'a>(run: &Run, cells: impl Iterator<Item = &'a Cell>) -> Vec<String> {
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

// --- what was published, and how this was measured -------------------------------------------------------------------

fn published_figures(runs: &[Run]) -> Section {
    let mut section = Section::new("The published rounds");
    let machine =
        runs.first().map(|run| format!(" This run: {}, {} cores.", run.machine.processor, run.machine.cores));
    section.text(format!(
        "Their figures stand in the tables above as they were printed.{} Theirs:",
        machine.unwrap_or_default()
    ));
    section.blocks.push(Block::List(
        SOURCES
            .iter()
            .map(|source| format!("{}: {}. {}", source.title, source.machine, source.caution))
            .collect(),
    ));
    let mut table = Table::new(&["source", "", "of", "what", "as published", "remark"]);
    for condition in published::conditions() {
        let cells = [
            condition.round,
            condition.kind,
            condition.of,
            condition.what,
            condition.value,
            condition.remark,
        ];
        table.rows.push(cells.map(str::to_owned).to_vec());
    }
    section
        .blocks
        .push(Block::Folded("Machines, settings, methods and claims of the rounds".to_owned(), table));
    let mut table =
        Table::new(&["source", "system", "scenario", "message:", "clients:", "figure", "value:", "remark"]);
    for figure in published::figures() {
        table.rows.push(vec![
            figure.round.to_owned(),
            figure.name(),
            figure.scenario.to_owned(),
            figure.size.map_or("–".to_owned(), size),
            figure.clients.to_owned(),
            figure.metric.replace('_', " "),
            if figure.metric.starts_with("p_value") {
                probability(figure.value)
            } else {
                number(figure.value)
            },
            figure.remark.to_owned(),
        ]);
    }
    section.blocks.push(Block::Folded("All published figures".to_owned(), table));
    section
}

fn conditions(runs: &[Run]) -> Section {
    let mut section = Section::new("How this was measured");
    section.text("The load generator is a closed loop: each client sends its next request when its last one was answered. A latency is the time from sending a request (or opening its connection) to the last byte of its answer. An answer counts if status, headers and body are what they must be. CPU is user plus system time of the system's process for each right answer.");
    let mut table = Table::new(&[
        "method",
        "begun",
        "minutes:",
        "Busbar",
        "processor",
        "cores:",
        "MiB:",
        "system",
        "load before:",
    ]);
    let mut systems = Table::new(&["method", "system", "version", "warm-up, s:", "command"]);
    for run in runs {
        let machine = &run.machine;
        table.rows.push(vec![
            if run.quick { format!("{} (quick)", run.method) } else { run.method.clone() },
            run.begun.clone(),
            number(run.took / 60.0),
            run.version.clone(),
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
                number(system.warm_up),
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
