//! What of a configuration runs on this bus, artifact by artifact and element by element: the model of `busbar migrate`.

pub mod html;

use crate::load::Loaded;
use config::{ArtifactKind, Element};
use diagnostics::{Diagnostic, FileId, Severity, SourceMap, Span};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// How well something runs here, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it is.
    Runs,
    /// Something in it means less, or something else, than its author may think.
    Differs,
    /// It is left out until somebody changes it; WSO2 refuses most of these as well.
    NeedsChange,
    /// It needs something that is not here.
    CannotRun,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 4] = [Status::Runs, Status::Differs, Status::NeedsChange, Status::CannotRun];

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Status::Runs => "runs",
            Status::Differs => "runs with a difference",
            Status::NeedsChange => "needs a change",
            Status::CannotRun => "cannot run",
        }
    }

    /// So many of it, for people.
    pub fn counted(self, count: usize) -> String {
        match self {
            Status::Runs if count != 1 => format!("{count} run"),
            Status::Differs if count != 1 => format!("{count} run with a difference"),
            Status::NeedsChange if count != 1 => format!("{count} need a change"),
            status => format!("{count} {}", status.words()),
        }
    }
}

/// Why something does not run as it is.
#[derive(Clone, Debug, Serialize)]
pub struct Reason {
    /// The rule of the finding.
    pub rule: &'static str,
    /// What it makes of the artifact.
    pub status: Status,
    /// What is wrong.
    pub message: String,
    /// `file:line:column`, empty where there is no place.
    pub place: String,
    /// What to do.
    pub help: Vec<String>,
}

/// One artifact.
#[derive(Clone, Debug, Serialize)]
pub struct Artifact {
    /// What people call its kind.
    pub kind: String,
    /// Its name, empty if it has none.
    pub name: String,
    /// `file:line:column`.
    pub place: String,
    /// How well it runs: the worst of its reasons.
    pub status: Status,
    /// Why it does not run as it is.
    pub reasons: Vec<Reason>,
}

/// How many there are of each status.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Counts {
    /// See [`Status::Runs`].
    pub runs: usize,
    /// See [`Status::Differs`].
    pub differs: usize,
    /// See [`Status::NeedsChange`].
    pub needs_change: usize,
    /// See [`Status::CannotRun`].
    pub cannot_run: usize,
}

impl Counts {
    fn add(&mut self, status: Status) {
        match status {
            Status::Runs => self.runs += 1,
            Status::Differs => self.differs += 1,
            Status::NeedsChange => self.needs_change += 1,
            Status::CannotRun => self.cannot_run += 1,
        }
    }

    /// How many of a status.
    pub fn of(&self, status: Status) -> usize {
        match status {
            Status::Runs => self.runs,
            Status::Differs => self.differs,
            Status::NeedsChange => self.needs_change,
            Status::CannotRun => self.cannot_run,
        }
    }

    /// How many in all.
    pub fn total(&self) -> usize {
        Status::ALL.iter().map(|status| self.of(*status)).sum()
    }

    /// The share that runs, with a difference or without, from 0 to 1; `None` of nothing.
    pub fn coverage(&self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| (self.runs + self.differs) as f64 / total as f64)
    }
}

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The path that was looked at.
    pub path: String,
    /// Artifacts by status.
    pub summary: Counts,
    /// The share of artifacts that run, from 0 to 1; `None` (`null`) where there are none.
    pub artifact_coverage: Option<f64>,
    /// The share of elements of Synapse that run, from 0 to 1; `None` where there are none.
    pub element_coverage: Option<f64>,
    /// Each artifact, in the order of its file.
    pub artifacts: Vec<Artifact>,
    /// Each element of Synapse by its name.
    pub elements: BTreeMap<String, Counts>,
    /// What belongs to no artifact: archives, files that are not read.
    pub beside: Vec<Reason>,
    /// Settings of the server, key by key.
    pub settings: Vec<Reason>,
}

/// A share in percent, for people.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// What a finding makes of the artifact that it is in.
fn status(found: &Diagnostic) -> Status {
    match (found.severity, found.rule) {
        (_, rule) if rule.starts_with("unsupported") => Status::CannotRun,
        (Severity::Error, "remote-source") => Status::CannotRun,
        (Severity::Error, _) => Status::NeedsChange,
        // Loaded, and each message that comes there fails.
        (Severity::Warning, rule) if rule.starts_with("unknown-") && rule != "unknown-attribute" => {
            Status::NeedsChange
        }
        (Severity::Warning, "bad-address" | "circular-sequence") => Status::NeedsChange,
        (Severity::Warning, _) => Status::Differs,
        (Severity::Note, _) => Status::Runs,
    }
}

impl Report {
    /// What there is to say of a configuration.
    pub fn new(path: &str, loaded: &Loaded) -> Report {
        let sources = &loaded.plan.sources;
        let faulty = || loaded.plan.faulty.iter();
        let written = loaded.plan.written.iter().map(|element| element.span.file);
        let files: BTreeSet<FileId> = written
            .chain(
                faulty()
                    .filter(|artifact| artifact.kind != ArtifactKind::Archive)
                    .map(|artifact| artifact.span.file),
            )
            .filter(|file| *file != FileId::BUILT_IN)
            .collect();
        let mut report = Report {
            path: path.to_owned(),
            summary: Counts::default(),
            artifact_coverage: None,
            element_coverage: None,
            artifacts: Vec::new(),
            elements: BTreeMap::new(),
            beside: Vec::new(),
            settings: Vec::new(),
        };
        for file in &files {
            report.file(*file, loaded);
        }
        for archive in faulty().filter(|artifact| artifact.kind == ArtifactKind::Archive) {
            let path = archive.name.as_deref().unwrap_or_default();
            let why = ("faulty-archive", Status::NeedsChange, archive.message.as_str());
            report.outside("archive", Path::new(path), why);
        }
        for (why, path) in &loaded.not_read {
            report.outside("artifact", path, ("not-read", Status::NeedsChange, why));
        }
        for found in loaded
            .found
            .iter()
            .filter(|finding| finding.span().is_none_or(|span| !files.contains(&span.file)))
        {
            let reason = reason(found, sources);
            if found.rule == "server-setting" {
                report.settings.push(reason)
            } else {
                report.beside.push(reason)
            }
        }
        report.artifacts.iter().for_each(|artifact| report.summary.add(artifact.status));
        report.artifact_coverage = report.summary.coverage();
        let mut elements = Counts::default();
        for counts in report.elements.values() {
            for status in Status::ALL {
                (0..counts.of(status)).for_each(|_| elements.add(status));
            }
        }
        report.element_coverage = elements.coverage();
        report
    }

    /// Something of which no element is read.
    fn outside(&mut self, kind: &str, path: &Path, (rule, status, message): (&'static str, Status, &str)) {
        let place = path.display().to_string();
        let (message, help) = (message.to_owned(), Vec::new());
        self.artifacts.push(Artifact {
            kind: kind.to_owned(),
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            place: place.clone(),
            status,
            reasons: vec![Reason { rule, status, message, place, help }],
        });
    }

    /// The artifacts of one file.
    fn file(&mut self, file: FileId, loaded: &Loaded) {
        let sources = &loaded.plan.sources;
        let Some(text) = sources.get(file).map(|source| source.text().clone()) else { return };
        let found: Vec<&Diagnostic> = loaded
            .found
            .iter()
            .filter(|finding| finding.span().is_some_and(|span| span.file == file))
            .collect();
        let sources_of_data: Vec<_> =
            loaded.plan.written.iter().filter(|written| written.span.file == file).collect();
        let Ok(root) = config::parse(file, &text) else {
            // `[[datasource]]` of the settings of a server.
            if sources_of_data.iter().any(|written| written.kind == ArtifactKind::DataSource) {
                let shown = |written: &config::Written| self.data_source(written, &found, sources);
                let artifacts: Vec<Artifact> = sources_of_data.into_iter().map(shown).collect();
                self.artifacts.extend(artifacts);
                return;
            }
            let reasons: Vec<Reason> = found.iter().map(|finding| reason(finding, sources)).collect();
            let faulty = loaded.plan.faulty.iter().find(|artifact| artifact.span.file == file);
            self.artifacts.push(Artifact {
                kind: faulty.map_or("file".to_owned(), |artifact| artifact.kind.to_string()),
                name: faulty.and_then(|artifact| artifact.name.clone()).unwrap_or_default(),
                place: Span::new(file, 0, 0).place(sources),
                status: worst(&reasons).max(Status::NeedsChange),
                reasons,
            });
            return;
        };
        if root.local() == "definitions" {
            root.elements()
                .filter(|element| !element.is("description"))
                .for_each(|element| self.artifact(element, &found, loaded));
        } else {
            self.artifact(&root, &found, loaded);
        }
    }

    /// A data source that is written in TOML.
    fn data_source(&self, written: &config::Written, found: &[&Diagnostic], sources: &SourceMap) -> Artifact {
        let named = format!("`{}`", written.name);
        let about = |finding: &&&Diagnostic| {
            finding.span().is_some_and(|span| written.span.encloses(span)) || finding.message.contains(&named)
        };
        let reasons: Vec<Reason> = found
            .iter()
            .filter(about)
            .map(|finding| reason(finding, sources))
            .filter(|reason| reason.status > Status::Runs)
            .collect();
        Artifact {
            kind: written.kind.to_string(),
            name: written.name.clone(),
            place: written.span.place(sources),
            status: worst(&reasons),
            reasons,
        }
    }

    fn artifact(&mut self, element: &Element, found: &[&Diagnostic], loaded: &Loaded) {
        let sources = &loaded.plan.sources;
        let inside: Vec<&Diagnostic> = found
            .iter()
            .filter(|finding| finding.span().is_some_and(|span| element.span().encloses(span)))
            .copied()
            .collect();
        let mut reasons: Vec<Reason> = inside
            .iter()
            .map(|finding| reason(finding, sources))
            .filter(|reason| reason.status > Status::Runs)
            .collect();
        // Left out with its archive.
        let left_out = loaded.plan.faulty.iter().find(|artifact| artifact.span == element.span());
        if let Some(faulty) = left_out.filter(|_| worst(&reasons) < Status::NeedsChange) {
            reasons.push(Reason {
                rule: "faulty-archive",
                status: Status::NeedsChange,
                message: faulty.message.clone(),
                place: faulty.span.place(sources),
                help: Vec::new(),
            });
        }
        let kind = ArtifactKind::of_element(element.local());
        self.artifacts.push(Artifact {
            kind: kind.map_or_else(|| element.local().to_owned(), |kind| kind.to_string()),
            name: element.attr("name").or(element.attr("key")).unwrap_or_default().trim().to_owned(),
            place: element.start_tag().place(sources),
            status: worst(&reasons),
            reasons,
        });
        self.elements(element, &inside, kind == Some(ArtifactKind::LocalEntry));
    }

    /// Counts an element and those in it; what a local entry holds is no element of Synapse.
    fn elements(&mut self, element: &Element, found: &[&Diagnostic], is_leaf: bool) {
        let mut open = vec![element];
        while let Some(element) = open.pop() {
            let is_ours =
                |child: &&Element| child.namespace().is_empty() || child.namespace() == config::SYNAPSE;
            if !is_leaf {
                open.extend(element.elements().filter(is_ours));
            }
            if element.namespace() != config::SYNAPSE || element.is("description") {
                continue;
            }
            // The innermost element around a finding is the one that it is about.
            let about = |finding: &&&Diagnostic| {
                finding.span().is_some_and(|span| {
                    element.span().encloses(span)
                        && !element.elements().any(|child| child.span().encloses(span))
                })
            };
            let status =
                found.iter().filter(about).map(|finding| status(finding)).max().unwrap_or(Status::Runs);
            self.elements.entry(element.local().to_owned()).or_default().add(status);
        }
    }
}

fn worst(reasons: &[Reason]) -> Status {
    reasons.iter().map(|reason| reason.status).max().unwrap_or(Status::Runs)
}

fn reason(found: &Diagnostic, sources: &SourceMap) -> Reason {
    let found = &*found.shown(sources);
    let (place, label) = match found.labels.first() {
        Some((span, label)) => (span.place(sources), label.as_str()),
        None => (String::new(), ""),
    };
    let message = match label {
        "" => found.message.clone(),
        label => format!("{}: {label}", found.message),
    };
    let clean = |text: &str| diagnostics::without_credentials(text).into_owned();
    Reason {
        rule: found.rule,
        status: status(found),
        message: clean(&message),
        place,
        help: found.help.iter().map(|help| clean(help)).collect(),
    }
}
