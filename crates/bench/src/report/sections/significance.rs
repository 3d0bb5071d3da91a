//! The paired t-tests of all pairs of systems, and the table of all measurements.

use super::or_dash;
use super::summary::named;
use crate::report::compare::{Pair, pairs, test};
use crate::report::{Section, Table, number, probability, size};
use crate::results::Run;
use crate::statistics::Verdict;

/// The paired t-tests of all pairs of systems.
pub(super) fn significance(section: &mut Section, run: &Run, scenarios: &[&str], setting: &str) {
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

pub(super) fn all_cells(run: &Run) -> Table {
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
