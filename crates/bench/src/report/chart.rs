//! Charts as SVG: grouped bars and lines. Colours are classes of the page's style, so that they follow light, dark and print.

use super::html::escape;
use super::number;
use std::fmt::Write;

/// Size of a chart in units of its own; it is scaled to the room it gets.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 290.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 34.0;
/// How many colours there are.
const COLOURS: usize = 8;

/// Values with a name, one colour.
pub(super) struct Series {
    pub(super) name: String,
    /// Number of its colour: the same system has the same in all charts.
    pub(super) colour: usize,
    pub(super) dashed: bool,
    /// One for each group or x; `None`: not measured.
    pub(super) values: Vec<Option<f64>>,
}

/// A step of the axis: 1, 2 or 5 times a power of ten, so that about four of them reach `highest`.
fn step(highest: f64) -> f64 {
    let raw = (highest / 4.0).max(1e-9);
    let power = 10_f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= raw).unwrap_or(raw)
}

/// Frame, title, legend and axes; returns the text so far and the value at the top.
fn frame(
    title: &str,
    unit: &str,
    labels: &[String],
    series: &[Series],
    place: impl Fn(usize) -> f64,
) -> (String, f64) {
    let highest = series.iter().flat_map(|one| one.values.iter().flatten()).copied().fold(0.0, f64::max);
    let step = step(highest);
    let top = (highest / step).ceil().max(1.0) * step;
    let mut text = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\"><text class=\"t\" x=\"4\" y=\"16\">{0}</text>",
        escape(title)
    );
    let mut x = 4.0;
    for one in series {
        let name = escape(&one.name);
        let colour = one.colour % COLOURS;
        let dashed = if one.dashed { " d" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "<path class=\"l s{colour}{dashed}\" d=\"M{x:.1} 32h16\"/><text x=\"{:.1}\" y=\"36\">{name}</text>",
            x + 20.0
        );
        x += 30.0 + one.name.chars().count() as f64 * 6.6;
    }
    let _ =
        write!(text, "<text x=\"{:.1}\" y=\"16\" text-anchor=\"end\">{}</text>", WIDTH - RIGHT, escape(unit));
    let mut value = 0.0;
    while value <= top * 1.0001 {
        let y = height(value, top);
        let _ = write!(
            text,
            "<path class=\"g\" d=\"M{LEFT} {y:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            short(value)
        );
        value += step;
    }
    for (at, label) in labels.iter().enumerate() {
        let _ = write!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            place(at),
            HEIGHT - BOTTOM + 18.0,
            escape(label)
        );
    }
    (text, top)
}

fn height(value: f64, top: f64) -> f64 {
    let room = HEIGHT - TOP - BOTTOM;
    TOP + room - room * (value / top).clamp(0.0, 1.0)
}

/// A number of the axis: `20k`, `1.5M`.
fn short(value: f64) -> String {
    let trim = |value: f64, unit: &str| {
        let text = format!("{value:.2}");
        format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    match value {
        v if v >= 1e6 => trim(v / 1e6, "M"),
        v if v >= 1e3 => trim(v / 1e3, "k"),
        v => trim(v, ""),
    }
}

/// Bars in groups.
pub(super) fn bars(title: &str, unit: &str, groups: &[String], series: &[Series]) -> String {
    let room = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
    let middle = |at: usize| LEFT + room * (at as f64 + 0.5);
    let (mut text, top) = frame(title, unit, groups, series, middle);
    let width = room * 0.8 / series.len().max(1) as f64;
    for (number_of, one) in series.iter().enumerate() {
        for (at, value) in one.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let (x, y) = (middle(at) - room * 0.4 + width * number_of as f64, height(*value, top));
            let _ = write!(
                text,
                "<rect class=\"f{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{} {}: {} {}</title></rect>",
                one.colour % COLOURS,
                (width - 1.5).max(1.0),
                (height(0.0, top) - y).max(0.5),
                escape(&one.name),
                escape(&groups[at]),
                number(*value),
                escape(unit)
            );
        }
    }
    text.push_str("</svg>");
    text
}

/// Lines over values of x that stand at the same distance.
pub(super) fn lines(title: &str, unit: &str, labels: &[String], series: &[Series]) -> String {
    let room = (WIDTH - LEFT - RIGHT - 24.0) / (labels.len().max(2) - 1) as f64;
    let place = |at: usize| LEFT + 12.0 + room * at as f64;
    // No more labels than there is room for.
    let every = labels.len().div_ceil(9).max(1);
    let shown: Vec<String> = labels
        .iter()
        .enumerate()
        .map(|(at, label)| if at % every == 0 { label.clone() } else { String::new() })
        .collect();
    let (mut text, top) = frame(title, unit, &shown, series, place);
    for one in series {
        let colour = one.colour % COLOURS;
        let points: Vec<(usize, f64)> =
            one.values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))).collect();
        let mut path = String::new();
        for (at, value) in &points {
            let _ = write!(
                path,
                "{}{:.1} {:.1}",
                if path.is_empty() { 'M' } else { 'L' },
                place(*at),
                height(*value, top)
            );
        }
        if path.is_empty() {
            continue;
        }
        let dashed = if one.dashed { " d" } else { "" };
        let _ = write!(text, "<path class=\"l s{colour}{dashed}\" d=\"{path}\"/>");
        if points.len() > 60 {
            continue;
        }
        for (at, value) in points {
            let _ = write!(
                text,
                "<circle class=\"f{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.6\"><title>{} {}: {} {}</title></circle>",
                place(at),
                height(value, top),
                escape(&one.name),
                escape(&labels[at]),
                number(value),
                escape(unit)
            );
        }
    }
    text.push_str("</svg>");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_few_round_steps() {
        for (highest, want) in [(1.0, 0.5), (4.0, 1.0), (7.3, 2.0), (66_000.0, 20_000.0), (0.03, 0.01)] {
            assert!((step(highest) - want).abs() < want * 1e-9, "{highest}: {}", step(highest));
        }
        assert_eq!([0.0, 0.25, 950.0, 20_000.0, 1_500_000.0].map(short), ["0", "0.25", "950", "20k", "1.5M"]);
    }

    #[test]
    fn what_is_not_measured_has_no_mark() {
        let series =
            |values: Vec<Option<f64>>| [Series { name: "a<b".into(), colour: 9, dashed: false, values }];
        let groups = ["x".to_owned(), "y".to_owned()];
        let text = bars("t", "u", &groups, &series(vec![Some(1.0), None]));
        assert_eq!(text.matches("<rect").count(), 1);
        assert!(text.contains("a&lt;b x: 1.00 u") && text.contains("f1"), "{text}");
        assert_eq!(lines("t", "u", &groups, &series(vec![None, Some(2.0)])).matches("<circle").count(), 1);
        let empty = lines("t", "u", &[], &[]);
        assert!(empty.ends_with("</svg>") && !empty.contains("NaN") && !empty.contains("inf"), "{empty}");
    }
}
