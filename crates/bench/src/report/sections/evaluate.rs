//! The evaluation of the University of North Florida: levels, repetitions, tests.

use super::significance::significance;
use super::{colour, mean, or_dash};
use crate::published::{self};
use crate::report::chart::{Series, lines};
use crate::report::{Section, Table, number, probability, size};
use crate::results::{Cell, Run};
use crate::statistics::Summary as Statistics;

/// The evaluation of the University of North Florida: levels, repetitions, tests.
pub(super) fn evaluate(run: &Run) -> Section {
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
