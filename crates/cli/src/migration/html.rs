//! The report of `busbar migrate` as one page that needs nothing else.

use super::{Counts, Reason, Report, Status, percent};
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em}\
table{border-collapse:collapse;width:100%;margin:1em 0}td,th{border-bottom:1px solid #8884;padding:.3em .6em;text-align:left;vertical-align:top}\
code{font-size:.92em;overflow-wrap:anywhere}.runs{color:#1a7f37}.differs{color:#9a6700}.needs_change{color:#bc4c00}.cannot_run{color:#cf222e}\
ul{margin:.2em 0;padding-left:1.2em}:root{color-scheme:light dark}";

/// The page.
pub fn page(report: &Report) -> String {
    let mut out = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Migration report</title>",
    );
    let _ = write!(
        out,
        "<style>{STYLE}</style></head><body><h1>Migration report</h1><p><code>{}</code></p>",
        escaped(&report.path)
    );
    let _ = write!(
        out,
        "<p>{} of {} artifacts run ({}), {} of their elements.</p>",
        report.summary.runs + report.summary.differs,
        report.summary.total(),
        percent(report.artifact_coverage),
        percent(report.element_coverage)
    );
    counts_row(&mut out, &report.summary);
    out += "<h2>Artifacts</h2><table><tr><th>Kind</th><th>Name</th><th>Status</th><th>Why</th></tr>";
    let mut artifacts: Vec<_> = report.artifacts.iter().collect();
    artifacts.sort_by_key(|artifact| std::cmp::Reverse(artifact.status));
    for artifact in artifacts {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}<br><code>{}</code></td><td class=\"{}\">{}</td><td>",
            escaped(&artifact.kind),
            escaped(&artifact.name),
            escaped(&artifact.place),
            class(artifact.status),
            artifact.status.words()
        );
        reasons(&mut out, &artifact.reasons);
        out += "</td></tr>";
    }
    out += "</table><h2>Elements</h2><table><tr><th>Element</th>";
    for status in Status::ALL {
        let _ = write!(out, "<th>{}</th>", status.words());
    }
    out += "</tr>";
    for (name, counts) in &report.elements {
        let _ = write!(out, "<tr><td><code>{}</code></td>", escaped(name));
        for status in Status::ALL {
            let _ = write!(out, "<td class=\"{}\">{}</td>", class(status), counts.of(status));
        }
        out += "</tr>";
    }
    out += "</table>";
    for (title, list) in
        [("Beside the artifacts", &report.beside), ("Settings of the server", &report.settings)]
    {
        if !list.is_empty() {
            let _ = write!(out, "<h2>{title}</h2>");
            reasons(&mut out, list);
        }
    }
    out += "</body></html>\n";
    out
}

fn counts_row(out: &mut String, counts: &Counts) {
    *out += "<table><tr>";
    for status in Status::ALL {
        let _ = write!(out, "<td class=\"{}\">{}: {}</td>", class(status), status.words(), counts.of(status));
    }
    *out += "</tr></table>";
}

fn reasons(out: &mut String, reasons: &[Reason]) {
    *out += "<ul>";
    for reason in reasons {
        let _ = write!(
            out,
            "<li class=\"{}\"><code>{}</code> {}",
            class(reason.status),
            escaped(&reason.place),
            escaped(&reason.message)
        );
        for help in &reason.help {
            let _ = write!(out, "<br>{}", escaped(help));
        }
        *out += "</li>";
    }
    *out += "</ul>";
}

fn class(status: Status) -> &'static str {
    match status {
        Status::Runs => "runs",
        Status::Differs => "differs",
        Status::NeedsChange => "needs_change",
        Status::CannotRun => "cannot_run",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
