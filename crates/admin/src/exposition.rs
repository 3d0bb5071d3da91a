//! Writes the Prometheus text format, version 0.0.4.

use std::fmt::{Display, Write};

/// What a scrape gets as `Content-Type`.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Kinds of metric families.
#[derive(Clone, Copy)]
pub(crate) enum MetricType {
    Counter,
    Gauge,
    Histogram,
}

/// Families of metrics, one after the other: [`family`](Exposition::family), then all its samples.
#[derive(Default)]
pub(crate) struct Exposition {
    text: String,
    name: &'static str,
}

pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    /// Begins a family.
    pub(crate) fn family(&mut self, name: &'static str, kind: MetricType, help: &str) {
        let kind = match kind {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
        self.name = name;
    }

    /// A family with one sample without labels.
    pub(crate) fn single(&mut self, name: &'static str, kind: MetricType, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(&[], value);
    }

    /// A sample of the family.
    pub(crate) fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.write("", labels, None, value);
    }

    /// A histogram: upper bounds with the number in each bucket, one more number than bounds, and the sum.
    pub(crate) fn histogram(&mut self, labels: Labels<'_>, bounds: &[f64], buckets: &[u64], sum: f64) {
        let mut total = 0;
        for (index, count) in buckets.iter().enumerate() {
            total += count;
            let bound = bounds.get(index).map_or_else(|| "+Inf".to_owned(), f64::to_string);
            self.write("_bucket", labels, Some(&bound), total);
        }
        self.write("_sum", labels, None, sum);
        self.write("_count", labels, None, total);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn write(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: impl Display) {
        let mut text = String::new();
        for (name, value) in labels.iter().copied().chain(bound.map(|bound| ("le", bound))) {
            text.push_str(if text.is_empty() { "{" } else { "," });
            text.push_str(name);
            text.push_str("=\"");
            for letter in value.chars() {
                match letter {
                    '\\' => text.push_str("\\\\"),
                    '"' => text.push_str("\\\""),
                    '\n' => text.push_str("\\n"),
                    _ => text.push(letter),
                }
            }
            text.push('"');
        }
        if !text.is_empty() {
            text.push('}');
        }
        let name = self.name;
        self.line(format_args!("{name}{suffix}{text} {value}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // A String takes everything.
        let _ = writeln!(self.text, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_written_in_the_text_format() {
        let mut out = Exposition::default();
        out.single("up", MetricType::Gauge, "Two\nlines \\ of help.", 1);
        out.family("seconds", MetricType::Histogram, "Time.");
        out.histogram(&[("name", "a\"b\\c\nd")], &[0.001, 60.0], &[1, 0, 2], 0.25);
        insta::assert_snapshot!(out.finish(), @r#"
        # HELP up Two\nlines \\ of help.
        # TYPE up gauge
        up 1
        # HELP seconds Time.
        # TYPE seconds histogram
        seconds_bucket{name="a\"b\\c\nd",le="0.001"} 1
        seconds_bucket{name="a\"b\\c\nd",le="60"} 1
        seconds_bucket{name="a\"b\\c\nd",le="+Inf"} 3
        seconds_sum{name="a\"b\\c\nd"} 0.25
        seconds_count{name="a\"b\\c\nd"} 3
        "#);
    }
}
