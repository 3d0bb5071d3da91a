//! The statistics of a comparison: means, confidence intervals, slopes, and Student's paired t-test.
//!
//! The distribution of t is worked out from the regularised incomplete beta function by its continued fraction (Press et al., Numerical
//! Recipes, section 6.4; Lentz's method), the logarithm of gamma by Lanczos' approximation: good to ten digits, far more than a
//! measurement has.

use serde::{Deserialize, Serialize};

/// Below this P value a difference counts as one.
pub const SIGNIFICANT: f64 = 0.05;

/// What a sample says.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// Their mean; 0 without any.
    pub mean: f64,
    /// Standard deviation of the population they are a sample of (n - 1); 0 for less than two.
    pub deviation: f64,
    /// Half the width of the 95 % confidence interval of the mean; 0 for less than two.
    pub margin: f64,
}

impl Summary {
    /// Of these values.
    pub fn of(values: &[f64]) -> Summary {
        let count = values.len();
        let mean = if count == 0 { 0.0 } else { values.iter().sum::<f64>() / count as f64 };
        if count < 2 {
            return Summary { count, mean, deviation: 0.0, margin: 0.0 };
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1) as f64).sqrt();
        let margin = t_quantile(0.975, (count - 1) as f64) * deviation / (count as f64).sqrt();
        Summary { count, mean, deviation, margin }
    }
}

/// The middle value; the mean of the two in the middle of an even number; 0 without any.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Between which values the middle half lies: the quartiles.
pub fn middle_half(values: &[f64]) -> (f64, f64) {
    (quantile(values, 0.25), quantile(values, 0.75))
}

/// The value below which that share of the values lies, on the straight line between its neighbours; 0 without any.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = share * sorted.len().saturating_sub(1) as f64;
    let Some(&below) = sorted.get(at as usize) else { return 0.0 };
    let above = sorted.get(at as usize + 1).copied().unwrap_or(below);
    below + (above - below) * at.fract()
}

/// Which of two systems is higher.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The first.
    FirstHigher,
    /// The second.
    SecondHigher,
    /// The difference may be chance.
    Comparable,
}

/// Student's paired t-test: whether the mean difference of matched values may be 0.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedTest {
    /// Number of pairs.
    pub pairs: usize,
    /// Mean of the differences, first minus second.
    pub difference: f64,
    /// Half the width of the 95 % confidence interval of the mean difference.
    pub margin: f64,
    /// The statistic; infinite where all differences are the same and not 0.
    pub t: f64,
    /// Degrees of freedom, pairs - 1.
    pub freedom: usize,
    /// Probability of a t at least as far from 0 in the direction it has, if there is no difference.
    pub one_tailed: f64,
    /// The same in either direction: the one that the verdict goes by.
    pub two_tailed: f64,
    /// By the two-tailed P at [`SIGNIFICANT`].
    pub verdict: Verdict,
}

/// The test for pairs of values measured under the same conditions; `None` for less than two pairs.
pub fn paired_t_test(pairs: &[(f64, f64)]) -> Option<PairedTest> {
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
    if differences.len() < 2 || differences.iter().any(|difference| !difference.is_finite()) {
        return None;
    }
    let Summary { count, mean, deviation, margin } = Summary::of(&differences);
    let freedom = count - 1;
    let (t, one_tailed) = match (mean == 0.0, deviation == 0.0) {
        (true, _) => (0.0, 0.5),
        (false, true) => (mean.signum() * f64::INFINITY, 0.0),
        (false, false) => {
            let t = mean / (deviation / (count as f64).sqrt());
            (t, upper_tail(t.abs(), freedom as f64))
        }
    };
    let two_tailed = 2.0 * one_tailed;
    let verdict = match two_tailed < SIGNIFICANT {
        false => Verdict::Comparable,
        true if mean > 0.0 => Verdict::FirstHigher,
        true => Verdict::SecondHigher,
    };
    Some(PairedTest { pairs: count, difference: mean, margin, t, freedom, one_tailed, two_tailed, verdict })
}

/// A straight line through points, by least squares.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// How much y grows with x.
    pub slope: f64,
    /// Half the width of the 95 % confidence interval of the slope, for points that err independently.
    pub margin: f64,
    /// y where x is 0.
    pub intercept: f64,
}

/// The line through points (x, y); `None` for less than three, or where x is the same for all.
pub fn line(points: &[(f64, f64)]) -> Option<Line> {
    let count = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let (x_mean, y_mean) =
        (points.iter().map(|p| p.0).sum::<f64>() / count, points.iter().map(|p| p.1).sum::<f64>() / count);
    let xx: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    if xx == 0.0 {
        return None;
    }
    let xy: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    let slope = xy / xx;
    let intercept = y_mean - slope * x_mean;
    let residual: f64 = points.iter().map(|(x, y)| (y - intercept - slope * x).powi(2)).sum();
    let error = (residual / (count - 2.0) / xx).sqrt();
    Some(Line { slope, margin: t_quantile(0.975, count - 2.0) * error, intercept })
}

/// The line through a time series: as [`line()`], with a margin that allows for errors that follow each other, as samples of memory do. Of `n` samples
/// whose errors have the lag-1 autocorrelation `r`, `n (1 - r) / (1 + r)` count as independent (Bayley and Hammersley, 1946). `None` also where less
/// than three of them remain: such a series is too short to say anything.
pub fn trend(points: &[(f64, f64)]) -> Option<Line> {
    let line = line(points)?;
    let errors: Vec<f64> = points.iter().map(|(x, y)| y - line.intercept - line.slope * x).collect();
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    let products: f64 = errors.windows(2).map(|pair| pair[0] * pair[1]).sum();
    // Errors of this size are those of the arithmetic.
    let rounding: f64 = points.iter().map(|(_, y)| (y * 1e-12).powi(2)).sum();
    let follows = if squares > rounding { (products / squares).max(0.0) } else { 0.0 };
    let count = points.len() as f64;
    let independent = count * (1.0 - follows) / (1.0 + follows);
    if independent < 3.0 {
        return None;
    }
    let (freedom, assumed) = (independent - 2.0, count - 2.0);
    let wider = (assumed / freedom).sqrt() * t_quantile(0.975, freedom) / t_quantile(0.975, assumed);
    Some(Line { margin: line.margin * wider, ..line })
}

/// The probability that t with that many degrees of freedom is above `t`, which is not negative.
fn upper_tail(t: f64, freedom: f64) -> f64 {
    0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The t below which a share of the distribution lies; `share` between 0.5 and 1.
pub fn t_quantile(share: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while upper_tail(high, freedom) > 1.0 - share && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if upper_tail(middle, freedom) > 1.0 - share { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The regularised incomplete beta function I_x(a, b).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast on this side; the other one is its mirror.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b, x) / a
    } else {
        1.0 - front * continued_fraction(b, a, 1.0 - x) / b
    }
}

fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let not_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (1.0, 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut result = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / not_zero(1.0 + even * d);
        c = not_zero(1.0 + even / c);
        result *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / not_zero(1.0 + odd * d);
        c = not_zero(1.0 + odd / c);
        let change = d * c;
        result *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// The logarithm of gamma, for positive numbers.
fn ln_gamma(x: f64) -> f64 {
    const LANCZOS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let sum: f64 = LANCZOS.iter().enumerate().map(|(n, c)| c / (x + n as f64 + 1.0)).sum();
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + (0.999_999_999_999_809_9 + sum).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, want: f64, within: f64) {
        assert!((found - want).abs() <= within, "{found} instead of {want}");
    }

    /// The table of critical values that every textbook has (e.g. NIST/SEMATECH e-Handbook, section 1.3.6.7.2).
    #[test]
    fn critical_values_are_those_of_the_tables() {
        let shares = [0.90, 0.95, 0.975, 0.99, 0.995, 0.999];
        let rows: [(f64, [f64; 6]); 10] = [
            (1.0, [3.078, 6.314, 12.706, 31.821, 63.657, 318.313]),
            (2.0, [1.886, 2.920, 4.303, 6.965, 9.925, 22.327]),
            (3.0, [1.638, 2.353, 3.182, 4.541, 5.841, 10.215]),
            (4.0, [1.533, 2.132, 2.776, 3.747, 4.604, 7.173]),
            (5.0, [1.476, 2.015, 2.571, 3.365, 4.032, 5.893]),
            (9.0, [1.383, 1.833, 2.262, 2.821, 3.250, 4.297]),
            (10.0, [1.372, 1.812, 2.228, 2.764, 3.169, 4.144]),
            (30.0, [1.310, 1.697, 2.042, 2.457, 2.750, 3.385]),
            (60.0, [1.296, 1.671, 2.000, 2.390, 2.660, 3.232]),
            (100.0, [1.290, 1.660, 1.984, 2.364, 2.626, 3.174]),
        ];
        for (freedom, row) in rows {
            for (share, want) in shares.into_iter().zip(row) {
                // The table has three digits behind the point; one printed value is off by a little more.
                near(t_quantile(share, freedom), want, 0.0006_f64.max(want * 2e-5));
                near(upper_tail(want, freedom), 1.0 - share, 2e-4 * (1.0 - share) + 1e-4);
            }
        }
        // The limit is the normal distribution.
        near(t_quantile(0.975, 1e7), 1.959_964, 1e-5);
    }

    /// What can be said without a table: with one degree of freedom t is Cauchy's, with two it has a closed form.
    #[test]
    fn tails_with_a_closed_form() {
        for t in [0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 50.0, 1000.0_f64] {
            near(upper_tail(t, 1.0), 0.5 - t.atan() / std::f64::consts::PI, 1e-12);
            near(upper_tail(t, 2.0), 0.5 - t / (2.0 * (2.0 + t * t).sqrt()), 1e-12);
        }
        for (n, factorial) in [(1.0, 1.0), (2.0, 1.0), (5.0, 24.0), (11.0, 3_628_800.0_f64)] {
            near(ln_gamma(n), factorial.ln(), 1e-11);
        }
        near(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln(), 1e-12);
    }

    /// Student's own example (Biometrika 6, 1908): hours of sleep gained by ten patients with two drugs; t = 4.0621, P = 0.00283.
    #[test]
    fn the_sleep_of_student() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let pairs: Vec<(f64, f64)> = second.into_iter().zip(first).collect();
        let test = paired_t_test(&pairs).unwrap();
        assert_eq!((test.pairs, test.freedom, test.verdict), (10, 9, Verdict::FirstHigher));
        near(test.t, 4.0621, 5e-5);
        near(test.two_tailed, 0.002_833, 5e-7);
        near(test.one_tailed, 0.001_416, 5e-7);
        near(test.difference, 1.58, 1e-12);
        // 95 percent confidence interval: 0.7001 to 2.4599
        near(test.margin, 0.8799, 5e-5);
        let turned: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
        assert_eq!(paired_t_test(&turned).unwrap().verdict, Verdict::SecondHigher);
    }

    #[test]
    fn tests_at_the_edges() {
        assert_eq!(paired_t_test(&[(1.0, 2.0)]), None);
        assert_eq!(paired_t_test(&[(1.0, f64::NAN), (1.0, 1.0)]), None);
        let same = paired_t_test(&[(1.0, 1.0), (2.0, 2.0)]).unwrap();
        assert_eq!((same.t, same.two_tailed, same.verdict), (0.0, 1.0, Verdict::Comparable));
        let shifted = paired_t_test(&[(2.0, 1.0), (3.0, 2.0)]).unwrap();
        assert_eq!((shifted.two_tailed, shifted.verdict), (0.0, Verdict::FirstHigher));
        let noisy = paired_t_test(&[(2.0, 1.0), (1.0, 2.5), (3.0, 2.0)]).unwrap();
        assert_eq!(noisy.verdict, Verdict::Comparable);
    }

    #[test]
    fn means_medians_and_lines() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        near(summary.mean, 5.0, 1e-12);
        near(summary.deviation, 2.138_089_935, 1e-8);
        near(summary.margin, 2.364_624 * 2.138_089_935 / 8_f64.sqrt(), 1e-5);
        assert_eq!(Summary::of(&[]).mean, 0.0);
        assert_eq!(Summary::of(&[3.0]).margin, 0.0);
        assert_eq!((median(&[]), median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0])), (0.0, 2.0, 2.5));

        let exact = line(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).unwrap();
        near(exact.slope, 2.0, 1e-12);
        near(exact.intercept, 1.0, 1e-12);
        near(exact.margin, 0.0, 1e-9);
        // Anscombe's first quartet (1973): slope 0.500, standard error 0.118, 9 degrees of freedom.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        let found = line(&points).unwrap();
        near(found.slope, 0.500_09, 5e-5);
        near(found.intercept, 3.000_09, 5e-5);
        near(found.margin, 2.262_157 * 0.117_9, 1e-3);
        assert_eq!(line(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(line(&points[..2]), None);
    }

    #[test]
    fn errors_that_follow_each_other_widen_the_margin_of_a_trend() {
        let series = |errors: &[f64]| -> Vec<(f64, f64)> {
            errors
                .iter()
                .enumerate()
                .map(|(at, error)| (at as f64, 10.0 + 0.01 * at as f64 + error))
                .collect()
        };
        // Errors that change their sign each time do not follow each other: the margin is that of a line.
        let alternating: Vec<f64> = (0..60).map(|at| if at % 2 == 0 { 0.1 } else { -0.1 }).collect();
        let points = series(&alternating);
        assert_eq!(trend(&points), line(&points));
        // Waves do: half of their autocorrelation is left, so that a third of the samples count.
        let waves: Vec<f64> = (0..60).map(|at| if at / 4 % 2 == 0 { -0.5 } else { 0.5 }).collect();
        let points: Vec<(f64, f64)> = series(&waves).into_iter().map(|(x, y)| (x, y - 0.01 * x)).collect();
        let (plain, wide) = (line(&points).unwrap(), trend(&points).unwrap());
        assert_eq!((wide.slope, wide.intercept), (plain.slope, plain.intercept));
        assert!(wide.margin > 1.5 * plain.margin, "{wide:?} {plain:?}");
        // One slow wave is too short to say anything.
        let wave: Vec<(f64, f64)> = (0..40).map(|at| (at as f64, (at as f64 / 8.0).sin() * 5.0)).collect();
        assert_eq!(trend(&wave), None);
        // What grows steadily is proven.
        let grows: Vec<(f64, f64)> =
            (0..30).map(|at| (at as f64, at as f64 + [0.2, -0.2, 0.1][at % 3])).collect();
        let found = trend(&grows).unwrap();
        assert!(found.slope - found.margin > 0.9, "{found:?}");
        assert_eq!(trend(&grows[..2]), None);
    }
}
