//! The report on runs: one HTML file that needs nothing else, Markdown, and CSV.
//!
//! What a report says is put together once ([`page`]) as sections of text, tables and charts; HTML and Markdown are two ways to write it down.

mod chart;
mod compare;
mod csv;
mod html;
mod markdown;
mod sections;

use crate::results::Run;

/// A report, before it is written as HTML or Markdown.
#[derive(Clone, Debug, Default)]
struct Page {
    title: String,
    sections: Vec<Section>,
}

/// A part of it.
#[derive(Clone, Debug, Default)]
struct Section {
    title: String,
    blocks: Vec<Block>,
}

/// What a section is made of.
#[derive(Clone, Debug)]
enum Block {
    /// A paragraph.
    Text(String),
    /// Lines that belong together.
    List(Vec<String>),
    /// A table.
    Table(Table),
    /// Charts, beside each other where there is room. Markdown has none.
    Charts(Vec<String>),
    /// A table that is folded away; Markdown leaves it out, the CSV has it.
    Folded(String, Table),
    /// Commands, as they were typed.
    Code(String),
}

/// Rows of texts; a head that ends with a colon is that of a column of numbers.
#[derive(Clone, Debug, Default)]
struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(heads: &[&str]) -> Table {
        Table { heads: heads.iter().map(|head| (*head).to_owned()).collect(), rows: Vec::new() }
    }
}

impl Section {
    fn new(title: &str) -> Section {
        Section { title: title.to_owned(), blocks: Vec::new() }
    }

    fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text(text.into()));
    }

    fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }

    fn charts(&mut self, charts: Vec<String>) {
        if !charts.is_empty() {
            self.blocks.push(Block::Charts(charts));
        }
    }
}

/// The report as one HTML file.
pub fn html(runs: &[Run]) -> String {
    html::write(&sections::page(runs))
}

/// The report as Markdown, without charts.
pub fn markdown(runs: &[Run]) -> String {
    markdown::write(&sections::page(runs))
}

/// Every measurement as a line of CSV.
pub fn csv(runs: &[Run]) -> String {
    csv::write(runs)
}

/// `1,234,567`, `12.3`, `0.123`: as many digits as a reader needs.
fn number(value: f64) -> String {
    let text = match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) =
        digits.split_once('.').map_or((digits, String::new()), |(w, f)| (w, format!(".{f}")));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{fraction}")
}

/// A P value: three digits that say something, never 0.
fn probability(value: f64) -> String {
    match value {
        v if v < 0.0001 => "<0.0001".to_owned(),
        v => format!("{v:.4}"),
    }
}

/// `512 B`, `1 KB`, `1 MB`.
fn size(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KB", b >> 10),
        b => format!("{b} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Machine, System};
    use crate::rounds::ADDED_SETTING;
    use crate::steps::DIRECT;
    use xml::{Document, ParseOptions};

    /// A run of a method with two systems, one of them better.
    pub(super) fn run(method: &str) -> Run {
        let system = |name: &str| System {
            warm_up: 0.0,
            name: name.to_owned(),
            version: "1".into(),
            command: format!("{name} <x> & y"),
        };
        let mut cells = Vec::new();
        for (number, scenario) in ["DirectProxy", "XSLTProxy"].into_iter().enumerate() {
            for (system, factor) in [("busbar", 2.0), ("other", 1.0)] {
                if number == 1 && system == "other" {
                    continue;
                }
                for (level, clients) in [20, 100, 300].into_iter().enumerate() {
                    for size in [512, 102_400] {
                        let rate = factor * 1000.0 * (level + 1) as f64 / (size as f64).sqrt();
                        let cell = Cell {
                            system: system.into(),
                            scenario: scenario.into(),
                            size,
                            clients,
                            right: 100,
                            rate,
                            mean: 1e3 / rate,
                            p50: 1.0,
                            p99: 5.0,
                            cpu: Some(20.0 / factor),
                            resident: Some(20.0),
                            ..Cell::default()
                        };
                        cells.push(cell);
                    }
                }
            }
        }
        for (system, mean) in [("busbar", 1.25), ("other", 2.0), (DIRECT, 1.0)] {
            for repetition in 0..3 {
                let setting = ADDED_SETTING.to_owned();
                let scenario = "DirectProxy".to_owned();
                cells.push(Cell {
                    system: system.into(),
                    scenario,
                    setting,
                    repetition,
                    mean,
                    ..Cell::default()
                });
            }
        }
        Run {
            method: method.to_owned(),
            begun: "2026-11-24 08:00:00 UTC".into(),
            command: "busbar bench round".into(),
            machine: Machine { processor: "CPU <of> today & more".into(), cores: 2, ..Machine::default() },
            systems: vec![system("busbar"), system("other")],
            absent: vec!["haproxy is not installed".into()],
            cells,
            ..Run::default()
        }
    }

    #[test]
    fn the_page_is_well_formed_and_needs_nothing_else() {
        let runs = [run("2010"), run("6.5")];
        let text = html(&runs);
        // It is written as XML, too.
        let body = text.split_once("<html").map(|(_, rest)| format!("<html{rest}")).unwrap();
        let document = Document::parse(body.clone().into_bytes(), &ParseOptions::trusted());
        assert!(document.is_ok(), "{:?}", document.err());
        for needed in [
            "<svg",
            "WSO2 ESB 4.6.0",
            "WSO2 ESB 3.0.1",
            "haproxy is not installed",
            "CPU &lt;of&gt; today",
            "<style>",
        ] {
            assert!(body.contains(needed), "{needed}");
        }
        let outside = ["src=", "href=\"http", "@import", "url("];
        assert!(outside.iter().all(|outside| !body.contains(outside)), "{outside:?}");
    }

    #[test]
    fn figures_are_in_all_forms() {
        let runs = [run("2010")];
        let text = markdown(&runs);
        // 2 * 1000 * 3 / sqrt(512), with the clients of the best in brackets
        assert!(text.contains("265 (300)"), "{text}");
        assert_eq!(text.matches("2,561 (140)").count(), 1, "the published figure: {text}");
        let csv = csv(&runs);
        assert_eq!(csv.lines().count(), 1 + runs[0].cells.len());
        let columns = csv.lines().next().unwrap().split(',').count();
        assert!(csv.lines().all(|line| line.split(',').count() == columns), "{csv}");
        let added = markdown(&[run("6.5")]);
        assert!(added.contains("0.250") && added.contains("0.582"), "{added}");
    }

    #[test]
    fn what_is_lost_or_even_is_said_first() {
        let mut lost = run("2010");
        for cell in &mut lost.cells {
            if cell.system == "other" && cell.size == 512 {
                cell.rate *= 3.0;
            }
        }
        let text = markdown(&[lost]);
        let (before, after) = text.split_once("## Round").unwrap();
        assert!(
            before.contains("DirectProxy") && before.contains("512 B") && before.contains("0.667"),
            "{before}"
        );
        assert!(!after.is_empty());
        assert!(markdown(&[run("2010")]).contains("in none of the"), "{}", markdown(&[run("2010")]));
    }

    #[test]
    fn an_empty_run_has_a_report() {
        assert!(html(&[]).contains("<html") && html(&[Run::default()]).contains("<html"));
        assert!(markdown(&[Run::default()]).starts_with("# "));
    }

    #[test]
    fn numbers_for_readers() {
        let cases = [
            (0.0, "0.000"),
            (0.1234, "0.123"),
            (1.236, "1.24"),
            (12.34, "12.3"),
            (1234.5, "1,234"),
            (1e6, "1,000,000"),
            (-1234.0, "-1,234"),
        ];
        for (value, want) in cases {
            assert_eq!(number(value), want);
        }
        assert_eq!((probability(0.00001), probability(0.0286)), ("<0.0001".to_owned(), "0.0286".to_owned()));
        assert_eq!([512, 1024, 1000, 1 << 20].map(size), ["512 B", "1 KB", "1000 B", "1 MB"]);
    }
}
