//! The figures that the rounds published, as data: what stands beside today's measurement in a report.
//!
//! The values are those of the articles (`data/published.csv`); their charts had figures that are lost. Machines, settings and years differ from any run of
//! today, so a published figure beside a measured one says where this field came from, and nothing about two systems.

use std::sync::LazyLock;

/// Where figures come from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// As in [`Figure::round`].
    pub id: &'static str,
    /// What it is, who published it, when.
    pub title: &'static str,
    /// What it ran on.
    pub machine: &'static str,
    /// What is to be known before its figures are read.
    pub caution: &'static str,
}

/// All sources.
pub static SOURCES: [Source; 5] = [
    Source {
        id: "round-2010",
        title: "WSO2 ESB 2.1.3 and 3.0.1, article of WSO2, December 2010",
        machine: "three machines of 2 cores (client 2.4 GHz, ESB and backend 2.7 GHz), 4 GB each, 1 Gbit/s network, Ubuntu 9.10; backend Apache HTTPD with a fixed answer",
        caution: "HTTP keep-alive was off. A figure is the best of a ladder of 20 to 300 clients; two neighbours may be of different ones.",
    },
    Source {
        id: "round-6.5",
        title: "ESB performance round 6.5, article of WSO2, January 2013",
        machine: "one EC2 c1.xlarge (8 cores of a Xeon E5410 at 2.33 GHz, 7 GB), client and ESB on the same machine; backend an echo service in Tomcat 7",
        caution: "Mean over all message sizes. The figures of Mule, Talend and UltraESB are those of Round 6 by another author and were not run again; the article contradicts itself about the requests for each client.",
    },
    Source {
        id: "split-aggregate",
        title: "Tuning of a split and aggregate on WSO2 ESB 4.8.1, blog",
        machine: "one machine of 4 cores, 8 GB, Ubuntu; client Apache JMeter",
        caution: "All results were pictures and are lost; what remains is the method, the settings and in which direction they work.",
    },
    Source {
        id: "university",
        title: "Mule, WSO2 ESB and ServiceMix, paper of the University of North Florida, 2011",
        machine: "ESB and web services on machines of their own; hardware, systems and versions are not printed",
        caution: "Text and tables disagree on which of two tests had the significant results. The P values look one-tailed, and no curve behind them was printed as numbers.",
    },
    Source {
        id: "fastxslt",
        title: "XSLT against FastXSLT mediator, blog on WSO2 ESB",
        machine: "a development machine of 4 cores, 8 GB; heap of 1 GB",
        caution: "Version, client, stylesheet and length of the runs are not printed. Throughput times response time falls short of the clients.",
    },
];

/// A published figure.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Figure {
    /// The source.
    pub round: &'static str,
    /// The system, or two of them for a P value.
    pub system: &'static str,
    /// Its version; empty: not printed.
    pub version: &'static str,
    /// The scenario as the example round has it, with a slash and a word for a variant.
    pub scenario: &'static str,
    /// Bytes of the message; `None`: over all.
    pub size: Option<usize>,
    /// Clients at once, or the lowest and highest of a ladder; empty: over all.
    pub clients: &'static str,
    /// What it is: `tps_max` (best of a ladder of clients), `tps_mean`, `tps_peak`, `mean_response_ms`, `added_latency_ms`, `cpu_pct`, `p_value_tps`, `p_value_mean_response`.
    pub metric: &'static str,
    /// The value.
    pub value: f64,
    /// What is odd about it; empty: nothing.
    pub remark: &'static str,
}

impl Figure {
    /// System and version.
    pub fn name(&self) -> String {
        format!("{} {}", self.system, self.version).trim_end().to_owned()
    }
}

static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| read(include_str!("../data/published.csv")));

/// All figures, in the order of their sources.
pub fn figures() -> &'static [Figure] {
    &FIGURES
}

/// What was published beside figures: machines, settings, methods, what the articles claim, grades.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The source.
    pub round: &'static str,
    /// `hardware`, `software`, `setting`, `method`, `claim` or `grade`.
    pub kind: &'static str,
    /// Of which machine, system or table.
    pub of: &'static str,
    /// What.
    pub what: &'static str,
    /// As it was published.
    pub value: &'static str,
    /// What is odd about it, or what a recount says of a claim; empty: nothing.
    pub remark: &'static str,
}

static CONDITIONS: LazyLock<Vec<Condition>> = LazyLock::new(|| {
    let condition = |line: &'static str| match line.split(',').collect::<Vec<_>>()[..] {
        [round, kind, of, what, value, remark] => Some(Condition { round, kind, of, what, value, remark }),
        _ => None,
    };
    include_str!("../data/conditions.csv").lines().skip(1).filter_map(condition).collect()
});

/// All of them, in the order of their sources.
pub fn conditions() -> &'static [Condition] {
    &CONDITIONS
}

/// The figures of a source and metric, for a scenario.
pub fn of(round: &str, metric: &str, scenario: &str) -> impl Iterator<Item = &'static Figure> {
    FIGURES
        .iter()
        .filter(move |figure| figure.round == round && figure.metric == metric && figure.scenario == scenario)
}

/// The table has no quotes and no commas inside of values.
fn read(text: &'static str) -> Vec<Figure> {
    let figure = |line: &'static str| {
        let mut cells = line.split(',');
        let mut next = || cells.next();
        Some(Figure {
            round: next()?,
            system: next()?,
            version: next()?,
            scenario: next()?,
            size: next()?.parse().ok(),
            clients: next()?,
            metric: next()?,
            value: next()?.parse().ok()?,
            remark: next()?,
        })
    };
    text.lines().skip(1).filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_line_is_read_and_named_by_a_source() {
        let lines = include_str!("../data/published.csv").lines().count() - 1;
        assert_eq!(figures().len(), lines);
        assert!(!include_str!("../data/published.csv").contains('"'));
        let mut of_sources = BTreeMap::<&str, usize>::new();
        for figure in figures() {
            assert!(SOURCES.iter().any(|source| source.id == figure.round), "{figure:?}");
            assert!(
                figure.value > 0.0 && !figure.system.is_empty() && !figure.scenario.is_empty(),
                "{figure:?}"
            );
            *of_sources.entry(figure.round).or_default() += 1;
        }
        let want =
            BTreeMap::from([("round-2010", 32), ("round-6.5", 60), ("university", 49), ("fastxslt", 45)]);
        assert_eq!(of_sources, want);
    }

    #[test]
    fn every_condition_is_read_and_of_a_known_kind() {
        let lines = include_str!("../data/conditions.csv").lines().count() - 1;
        assert_eq!(conditions().len(), lines);
        let kinds = ["hardware", "software", "setting", "method", "claim", "grade"];
        for condition in conditions() {
            assert!(SOURCES.iter().any(|source| source.id == condition.round), "{condition:?}");
            assert!(
                kinds.contains(&condition.kind) && !condition.what.is_empty() && !condition.value.is_empty(),
                "{condition:?}"
            );
        }
        for source in &SOURCES {
            assert!(conditions().iter().any(|condition| condition.round == source.id), "{source:?}");
        }
    }

    #[test]
    fn scenarios_are_those_of_the_round() {
        for figure in figures() {
            let scenario = figure.scenario.split('/').next().unwrap_or_default();
            assert!(crate::scenarios::find(scenario).is_some(), "{figure:?}");
        }
    }

    #[test]
    fn figures_are_found() {
        let best = of("round-2010", "tps_max", "MessageRelayProxy")
            .find(|f| f.version == "3.0.1" && f.size == Some(512));
        assert_eq!(best.map(|figure| (figure.value, figure.clients)), Some((3010.0, "220")));
        let names: Vec<String> = of("round-6.5", "tps_mean", "DirectProxy").map(Figure::name).collect();
        assert!(names.contains(&"UltraESB 1.7.1 enhanced".to_owned()), "{names:?}");
        assert_eq!(of("round-6.5", "added_latency_ms", "SecureProxy").count(), 2);
    }
}
