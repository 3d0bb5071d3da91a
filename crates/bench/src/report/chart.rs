//! Charts: grouped bars, lines, and rows of parts. Title and legend are HTML, so that they wrap where there is little room; the rest is SVG. Colours are classes of
//! the page's style, so that they follow light, dark and print.

use super::html::escape;
use super::number;
use std::fmt::Write;

/// Size of a chart in units of its own; it is scaled to the room it gets.
const WIDTH: f64 = 480.0;
const PLOT: f64 = 200.0;
const TOP: f64 = 12.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 10.0;
const BOTTOM: f64 = 28.0;
/// How many colours there are.
const COLOURS: usize = 8;
/// Of the highest value to the lowest: beyond that the axis is logarithmic, or small ones could not be told apart.
const WIDE: f64 = 25.0;
/// What a character of text takes at most, on a phone, where text is larger beside the rest.
const CHARACTER: f64 = 9.0;

/// Values with a name, one colour.
pub(super) struct Series {
    pub(super) name: String,
    /// Number of its colour: the same system has the same in all charts.
    pub(super) colour: usize,
    pub(super) dashed: bool,
    /// One for each group or x; `None`: not measured.
    pub(super) values: Vec<Option<f64>>,
}

/// The axis of values.
#[derive(Debug, PartialEq)]
struct Scale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    /// Where it has lines.
    marks: Vec<f64>,
}

impl Scale {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Scale {
        let values = values.filter(|value| value.is_finite());
        let highest = values.clone().fold(0.0, f64::max);
        let lowest = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        if highest > 0.0 && highest / lowest > WIDE {
            let (low, high) = (lowest.log10().floor(), highest.log10().ceil());
            let marks: Vec<f64> = (low as i32..=high as i32).map(|power| 10_f64.powi(power)).collect();
            return Scale { low: 10_f64.powf(low), high: 10_f64.powf(high), is_logarithmic: true, marks };
        }
        let step = step(highest);
        let count = (highest / step - 1e-9).ceil().max(1.0);
        let marks = (0..=count as i32).map(|at| f64::from(at) * step).collect();
        Scale { low: 0.0, high: count * step, is_logarithmic: false, marks }
    }

    /// Where a value is, from 0 at the bottom to 1 at the top.
    fn part(&self, value: f64) -> f64 {
        let part = match self.is_logarithmic {
            true => (value.max(self.low) / self.low).log10() / (self.high / self.low).log10(),
            false => value / self.high,
        };
        part.clamp(0.0, 1.0)
    }
}

/// A step of the axis: 1, 2 or 5 times a power of ten, so that about four of them reach `highest`.
fn step(highest: f64) -> f64 {
    let raw = (highest / 4.0).max(1e-9);
    let power = 10_f64.powf(raw.log10().floor());
    let found =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= raw * 0.999_999);
    found.unwrap_or(raw)
}

/// Title, unit, and names with their colours; with dashes where the second says so.
fn caption<'a>(title: &str, unit: &str, names: impl Iterator<Item = (&'a str, usize, bool)>) -> String {
    let mut text = format!(
        "<figcaption><b>{}</b> <span class=\"u\">{}</span></figcaption><p class=\"legend\">",
        escape(title),
        escape(unit)
    );
    for (name, colour, dashed) in names {
        let dashed = if dashed { " d" } else { "" };
        // Writing to a string does not fail.
        let _ =
            write!(text, "<span><i class=\"k b{}{dashed}\"></i>{}</span> ", colour % COLOURS, escape(name));
    }
    text.push_str("</p>");
    text
}

/// A chart that is being drawn.
struct Frame {
    text: String,
    scale: Scale,
}

impl Frame {
    /// Title, legend and axes.
    fn new(
        title: &str,
        unit: &str,
        labels: &[String],
        series: &[Series],
        place: impl Fn(usize) -> f64,
    ) -> Frame {
        let scale = Scale::of(series.iter().flat_map(|line| line.values.iter().flatten()).copied());
        let height = TOP + PLOT + BOTTOM;
        let unit = if scale.is_logarithmic { format!("{unit}, logarithmic") } else { unit.to_owned() };
        let names = series.iter().map(|line| (line.name.as_str(), line.colour, line.dashed));
        let mut frame = Frame {
            text: format!(
                "{}<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}, {}\">",
                caption(title, &unit, names),
                escape(title),
                escape(&unit)
            ),
            scale,
        };
        for at in 0..frame.scale.marks.len() {
            let mark = frame.scale.marks[at];
            let y = frame.height(mark);
            let _ = write!(
                frame.text,
                "<path class=\"g\" d=\"M{LEFT} {y:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                short(mark)
            );
        }
        // No label where the one before it would be run over.
        let mut free = 0.0;
        for (at, label) in labels.iter().enumerate() {
            let half = label.chars().count() as f64 * CHARACTER / 2.0;
            let middle = place(at).min(WIDTH - half).max(half);
            if label.is_empty() || middle - half < free {
                continue;
            }
            free = middle + half + 4.0;
            let _ = write!(
                frame.text,
                "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                TOP + PLOT + 19.0,
                escape(label)
            );
        }
        frame
    }

    fn height(&self, value: f64) -> f64 {
        TOP + PLOT - PLOT * self.scale.part(value)
    }

    fn end(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }
}

/// A number of the axis: `20k`, `1.5M`.
fn short(value: f64) -> String {
    let trim = |value: f64, unit: &str| {
        let text = format!("{value:.3}");
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
    let mut frame = Frame::new(title, unit, groups, series, middle);
    // A limit on the width of a bar.
    let width = (room * 0.84 / series.len().max(1) as f64).min(44.0);
    let total = width * series.len() as f64;
    for (number_of, bar) in series.iter().enumerate() {
        for (at, value) in bar.values.iter().enumerate() {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            let (x, y) = (middle(at) - total / 2.0 + width * number_of as f64, frame.height(value));
            let bottom = TOP + PLOT;
            let _ = write!(
                frame.text,
                "<rect class=\"f{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{} {}: {} {}</title></rect>",
                bar.colour % COLOURS,
                (width - 1.5).max(1.0),
                (bottom - y).max(0.8),
                escape(&bar.name),
                escape(&groups[at]),
                number(value),
                escape(unit)
            );
        }
    }
    frame.end()
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
    let mut frame = Frame::new(title, unit, &shown, series, place);
    for line in series {
        let colour = line.colour % COLOURS;
        let finite = |value: &Option<f64>| value.filter(|value| value.is_finite());
        let points: Vec<(usize, f64)> =
            line.values.iter().enumerate().filter_map(|(at, value)| Some((at, finite(value)?))).collect();
        let mut path = String::new();
        for (at, value) in &points {
            let _ = write!(
                path,
                "{}{:.1} {:.1}",
                if path.is_empty() { 'M' } else { 'L' },
                place(*at),
                frame.height(*value)
            );
        }
        if path.is_empty() {
            continue;
        }
        let dashed = if line.dashed { " d" } else { "" };
        let _ = write!(frame.text, "<path class=\"l s{colour}{dashed}\" d=\"{path}\"/>");
        if points.len() > 60 {
            continue;
        }
        for (at, value) in points {
            let y = frame.height(value);
            let _ = write!(
                frame.text,
                "<circle class=\"f{colour}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"2.6\"><title>{} {}: {} {}</title></circle>",
                place(at),
                escape(&line.name),
                escape(&labels[at]),
                number(value),
                escape(unit)
            );
        }
    }
    frame.end()
}

/// Rows that are divided into parts, one below the other: each a label and values, whose names and colours are those of `parts`.
pub(super) fn rows(title: &str, unit: &str, parts: &[(&str, usize)], rows: &[(String, Vec<f64>)]) -> String {
    const ROW: f64 = 21.0;
    let label =
        rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0) as f64 * CHARACTER + 10.0;
    let label = label.min(WIDTH * 0.55);
    let highest = rows.iter().map(|(_, values)| values.iter().sum::<f64>()).fold(0.0, f64::max).max(1e-9);
    let room = WIDTH - label - 66.0;
    let (top, height) = (4.0, ROW * rows.len() as f64 + 8.0);
    let (title_text, unit_text) = (escape(title), escape(unit));
    let mut text = format!(
        "{}<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{title_text}, {unit_text}\">",
        caption(title, unit, parts.iter().map(|(name, colour)| (*name, *colour, false)))
    );
    for (at, (name, values)) in rows.iter().enumerate() {
        let y = top + ROW * at as f64;
        let _ = write!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            label - 6.0,
            y + 13.0,
            escape(name)
        );
        let mut x = label;
        for (value, (part, colour)) in values.iter().zip(parts) {
            let width = room * value.max(0.0) / highest;
            let _ = write!(
                text,
                "<rect class=\"f{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\"><title>{} {}: {} {unit_text}</title></rect>",
                colour % COLOURS,
                ROW - 5.0,
                escape(name),
                escape(part),
                number(*value)
            );
            x += width;
        }
        let _ = write!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 5.0,
            y + 13.0,
            number(values.iter().sum())
        );
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
    fn an_axis_is_logarithmic_where_values_are_far_apart() {
        let near = Scale::of([20.0, 100.0].into_iter());
        assert_eq!((near.is_logarithmic, near.high, near.part(50.0)), (false, 100.0, 0.5));
        let far = Scale::of([14.0, 2000.0, f64::NAN].into_iter());
        assert_eq!((far.low, far.high, far.marks.len()), (10.0, 10_000.0, 4));
        assert!((far.part(100.0) - 1.0 / 3.0).abs() < 1e-9 && far.part(0.0) == 0.0);
        for empty in [Scale::of([].into_iter()), Scale::of([0.0].into_iter())] {
            assert!(!empty.is_logarithmic && empty.high > 0.0 && empty.part(0.0) == 0.0, "{empty:?}");
        }
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
        for empty in [lines("t", "u", &[], &[]), bars("t", "u", &[], &[]), rows("t", "u", &[], &[])] {
            assert!(empty.ends_with("</svg>") && !empty.contains("NaN") && !empty.contains("inf"), "{empty}");
        }
    }

    #[test]
    fn names_are_in_the_legend_and_long_labels_give_way() {
        let line = |n: usize| Series {
            name: format!("system {n}"),
            colour: n,
            dashed: n == 1,
            values: vec![Some(1.0); 40],
        };
        let labels: Vec<String> = (0..40).map(|n| format!("a long label {n}")).collect();
        let text = bars("t", "u", &labels, &[line(0), line(1)]);
        assert!(
            text.contains("<i class=\"k b0\"></i>system 0")
                && text.contains("<i class=\"k b1 d\"></i>system 1"),
            "{text}"
        );
        let shown = text.matches("text-anchor=\"middle\"").count();
        assert!((1..=4).contains(&shown), "{shown} labels of 40");
    }
}
