//! What the cells of a run say of two systems.

use crate::results::{Cell, Run};
use crate::statistics::{PairedTest, paired_t_test};

/// Below this ratio (and above its inverse) two figures of a noisy machine are even.
pub(super) const EVEN: f64 = 1.03;

/// Two systems under the same load: the means of the repetitions.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) scenario: String,
    pub(super) setting: String,
    pub(super) size: usize,
    pub(super) clients: usize,
    /// Rates of the first and the second.
    pub(super) rate: (f64, f64),
    /// Mean latencies.
    pub(super) mean: (f64, f64),
    /// CPU for each request, where both were watched.
    pub(super) cpu: Option<(f64, f64)>,
}

impl Pair {
    /// Of rates: above 1 the first is faster.
    pub(super) fn ratio(&self) -> f64 {
        self.rate.0 / self.rate.1
    }
}

/// All loads that both systems had.
pub(super) fn pairs(run: &Run, first: &str, second: &str) -> Vec<Pair> {
    let key = |cell: &Cell| (cell.scenario.clone(), cell.setting.clone(), cell.size, cell.clients);
    let mut found = Vec::new();
    for group in run.distinct(key) {
        let cells_of = |system: &str| -> Vec<&Cell> {
            run.cells
                .iter()
                .filter(|cell| cell.system == system && cell.right > 0 && key(cell) == group)
                .collect()
        };
        let (first, second) = (cells_of(first), cells_of(second));
        if first.is_empty() || second.is_empty() {
            continue;
        }
        let mean = |cells: &[&Cell], value: fn(&Cell) -> f64| {
            cells.iter().map(|cell| value(cell)).sum::<f64>() / cells.len() as f64
        };
        let both = |value: fn(&Cell) -> f64| (mean(&first, value), mean(&second, value));
        let watched = first.iter().chain(&second).all(|cell| cell.cpu.is_some());
        let (scenario, setting, size, clients) = group;
        found.push(Pair {
            scenario,
            setting,
            size,
            clients,
            rate: both(|cell| cell.rate),
            mean: both(|cell| cell.mean),
            cpu: watched.then(|| both(|cell| cell.cpu.unwrap_or_default())),
        });
    }
    found
}

/// The geometric mean of ratios.
pub(super) fn geometric(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> =
        ratios.filter(|ratio| *ratio > 0.0 && ratio.is_finite()).map(f64::ln).collect();
    (!logarithms.is_empty()).then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
}

/// The paired t-test of a value of two systems over these loads.
pub(super) fn test(pairs: &[&Pair], value: fn(&Pair) -> (f64, f64)) -> Option<PairedTest> {
    let values: Vec<(f64, f64)> = pairs.iter().map(|pair| value(pair)).collect();
    paired_t_test(&values)
}
