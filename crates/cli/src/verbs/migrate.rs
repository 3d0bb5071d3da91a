//! `busbar migrate`: what of a project, home or archive runs here, and what stands in the way of the rest.

use crate::load::load;
use crate::migration::{Report, Status, html, percent};
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Says what of a project, archive or server runs here: as it is, with a difference, after a change, or not at all.
///
/// Exits with 1 where PATH holds no configuration, else with 0.
#[derive(clap::Args)]
pub struct Args {
    /// A project, a configuration directory, an archive (.car), or the home of a server.
    path: PathBuf,
    /// How the report is printed, on stdout.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table, and why.
    Human,
    /// One JSON object.
    Json,
    /// One page.
    Html,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    let services = match super::check::services(&args.path) {
        Ok((services, _)) => services,
        Err(why) => {
            eprintln!("busbar migrate: {why}");
            return ExitCode::FAILURE;
        }
    };
    let mut loaded = load(&args.path, &services, None, None);
    if let Some(nothing) = loaded.found.iter().find(|finding| finding.rule == "no-configuration") {
        eprintln!("busbar migrate: {}", nothing.message);
        return ExitCode::FAILURE;
    }
    // Of the rules, the one that finds what fails for every message; what the others find runs as it does elsewhere.
    let by_rules = lint::check(loaded.good.configuration(), &crate::load::registry(), &services.settings);
    loaded.found.extend(by_rules.into_iter().filter(|finding| finding.rule == "circular-sequence"));
    let report = Report::new(&args.path.display().to_string(), &loaded);
    let out = match args.format {
        Format::Human => human(&report),
        Format::Json => match serde_json::to_string_pretty(&report) {
            Ok(text) => text + "\n",
            Err(error) => {
                eprintln!("busbar migrate: {error}");
                return ExitCode::FAILURE;
            }
        },
        Format::Html => html::page(&report),
    };
    // A reader that has seen enough (`| head`) is no error.
    let _ = std::io::stdout().lock().write_all(out.as_bytes());
    ExitCode::SUCCESS
}

fn indented(out: &mut String, lines: &[String]) {
    for line in lines {
        let _ = writeln!(out, "      {line}");
    }
}

fn human(report: &Report) -> String {
    let mut out = String::new();
    let width =
        |length_of: &dyn Fn(usize) -> usize| (0..report.artifacts.len()).map(length_of).max().unwrap_or(0);
    let kinds = width(&|at| report.artifacts[at].kind.chars().count());
    let names = width(&|at| report.artifacts[at].name.chars().count()).min(50);
    for artifact in &report.artifacts {
        let _ =
            writeln!(out, "{:kinds$}  {:names$}  {}", artifact.kind, artifact.name, artifact.status.words());
        for reason in &artifact.reasons {
            let _ = writeln!(out, "    {}: {}", reason.place, reason.message);
            indented(&mut out, &reason.help);
        }
    }
    for (title, list) in
        [("Beside the artifacts:", &report.beside), ("Settings of the server:", &report.settings)]
    {
        if !list.is_empty() {
            let _ = writeln!(out, "\n{title}");
        }
        for reason in list {
            let place = if reason.place.is_empty() { String::new() } else { format!("{}: ", reason.place) };
            let _ = writeln!(out, "    {place}{}", reason.message);
            indented(&mut out, &reason.help);
        }
    }
    let rest: Vec<_> = report.elements.iter().filter(|(_, counts)| counts.total() > counts.runs).collect();
    if !rest.is_empty() {
        let _ = writeln!(out, "\nElements that do not run as they are:");
        for (name, counts) in rest {
            let shown: Vec<String> = Status::ALL
                .iter()
                .filter(|status| counts.of(**status) > 0)
                .map(|status| status.counted(counts.of(*status)))
                .collect();
            let _ = writeln!(out, "    {name}: {}", shown.join(", "));
        }
    }
    let shown: Vec<String> =
        Status::ALL.iter().map(|status| status.counted(report.summary.of(*status))).collect();
    let _ = writeln!(
        out,
        "\n{}: {}\ncoverage: {} of artifacts, {} of elements",
        crate::words::counted(report.summary.total(), "artifact"),
        shown.join(", "),
        percent(report.artifact_coverage),
        percent(report.element_coverage)
    );
    out
}
