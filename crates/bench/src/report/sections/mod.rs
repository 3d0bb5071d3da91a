//! What a report says, section by section; here which sections a run has.

mod budgets;
mod evaluate;
mod generator;
mod profile;
mod round;
mod settings;
mod significance;
mod soak;
mod sources;
mod summary;

use crate::report::{Page, number};
use crate::results::Run;
use crate::rounds::{self};
use budgets::budget_section;
use evaluate::evaluate;
use generator::generators;
use profile::profile;
use round::round;
use settings::settings;
use soak::soak;
use sources::{conditions, published_figures};
use summary::summary;

/// The name under which this binary is measured.
const US: &str = "busbar";

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
