//! A method that varies settings.

use super::{colour, mean, or_dash};
use crate::published::{self};
use crate::report::chart::{Series, bars, rows};
use crate::report::{Section, Table, number, size};
use crate::results::{Cell, Run};

/// A method that varies settings.
pub(super) fn settings(run: &Run) -> Section {
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
