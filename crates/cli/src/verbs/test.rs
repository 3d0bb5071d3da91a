//! `busbar test`: runs suites of unit tests.

use crate::bus::init_logging;
use crate::settings::Settings;
use crate::suites::{CaseOutcome, Failure, Outcome, read, run as run_suite};
use crate::words::counted;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Directories deeper than this are not looked into.
const DEPTH: usize = 40;

/// Runs suites of the unit-test framework of Synapse.
///
/// A suite names an artifact, what that needs, mock services in the place of its backends, and tests: a message, and what must come of it. The artifacts of
/// a suite run on free ports of this machine; nothing else of the project does. Exits with 1 when something does not hold, or there is no suite.
#[derive(clap::Args)]
pub struct Args {
    /// A suite, or a directory: all suites in it and below, such as those in `src/test` of a project.
    path: PathBuf,
    /// How results are printed, on stdout.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Settings file [default: busbar.toml in PATH, if there is one].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One setting, as in the settings file: `--set log.level=info` shows what flows log.
    #[arg(long = "set", value_name = "K=V")]
    set: Vec<String>,
}

#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A line for each test, and what does not hold.
    Human,
    /// One JSON object a line and suite, as the server of WSO2 answers it.
    Json,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    match test(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("busbar test: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all tests pass.
fn test(args: &Args) -> Result<bool, String> {
    let mut settings = Settings::load(&args.path, args.config.as_deref(), &args.set)?;
    // What is wrong is printed here.
    settings.log.level.get_or_insert_with(|| "off".to_owned());
    let _logging = init_logging(&settings)?;
    let mut files = Vec::new();
    collect(&args.path, DEPTH, &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(format!("{}: there is no suite (a file with the root `unit-test`)", args.path.display()));
    }
    let (mut passed, mut failed, mut broken) = (0, 0, 0);
    for file in &files {
        let outcome = match read::suite(file) {
            Ok(suite) => run_suite(&suite, &settings),
            Err(why) => Outcome { broken: Some(why), cases: Vec::new() },
        };
        let right = outcome.cases.iter().filter(|case| case.passed()).count();
        passed += right;
        failed += outcome.cases.len() - right;
        broken += usize::from(outcome.broken.is_some());
        let text = match args.format {
            Format::Human => human(file, &outcome),
            Format::Json => json(file, &outcome) + "\n",
        };
        // Nobody may be reading.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
    if args.format == Format::Human {
        let mut line = format!("{}: {passed} passed, {failed} failed", counted(files.len(), "suite"));
        if broken > 0 {
            line += &format!(", {broken} could not run");
        }
        let _ = writeln!(std::io::stdout(), "{line}");
    }
    Ok(failed == 0 && broken == 0)
}

/// The suites at a path.
fn collect(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |why: std::io::Error| format!("{}: {why}", path.display());
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut waiting = vec![(path.to_owned(), depth)];
    while let Some((folder, depth)) = waiting.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(why) if folder == path => return Err(failed(why)),
            // One that may not be read has no suites for us.
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let is_hidden = name.to_string_lossy().starts_with('.') || name == "target";
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && !is_hidden && depth > 0 {
                waiting.push((path, depth - 1));
            } else if kind.is_file()
                && path.extension().is_some_and(|extension| extension == "xml")
                && std::fs::read_to_string(&path)
                    .is_ok_and(|text| text.contains("unit-test") && read::is_suite(&text))
            {
                files.push(path);
            }
        }
    }
    Ok(())
}

fn human(file: &Path, outcome: &Outcome) -> String {
    let mut out = format!("{}\n", file.display());
    if let Some(why) = &outcome.broken {
        out += &format!("  cannot run: {}\n", why.trim_end().replace('\n', "\n  "));
    }
    for case in &outcome.cases {
        out += &format!("  {} {}\n", if case.passed() { "ok    " } else { "FAILED" }, case.name);
        if let Some(why) = &case.failed {
            out += &format!("         {why}\n");
        }
        for failure in &case.failures {
            out += &shown(failure);
        }
    }
    out
}

fn shown(failure: &Failure) -> String {
    let one_line = |text: &str| text.trim().replace('\n', "\n                   ");
    let mut out = format!("         {} {}", failure.assertion, failure.expression);
    if !failure.message.is_empty() {
        out += &format!(": {}", failure.message);
    }
    if let Some(expected) = &failure.expected {
        out += &format!("\n         expected  {}", one_line(expected));
    }
    out + &format!(
        "\n         actual    {}\n",
        failure.actual.as_deref().map_or("(nothing)".to_owned(), one_line)
    )
}

fn word(passed: bool) -> &'static str {
    if passed { "PASSED" } else { "FAILED" }
}

fn json(file: &Path, outcome: &Outcome) -> String {
    let failure = |failure: &Failure| {
        json!({
            "assertionType": failure.assertion,
            "assertionExpression": failure.expression,
            "actual": failure.actual,
            "expected": failure.expected,
            "message": failure.message,
        })
    };
    let case = |case: &CaseOutcome| {
        json!({
            "testCaseName": case.name,
            "mediationStatus": word(case.failed.is_none()),
            "assertionStatus": if case.failed.is_some() { "SKIPPED" } else { word(case.failures.is_empty()) },
            "exception": case.failed,
            "failureAssertions": case.failures.iter().map(failure).collect::<Vec<_>>(),
        })
    };
    let mediation = outcome.broken.is_none() && outcome.cases.iter().all(|case| case.failed.is_none());
    json!({
        "suite": file.display().to_string(),
        "deploymentStatus": word(outcome.broken.is_none()),
        "deploymentException": outcome.broken,
        "mediationStatus": word(mediation),
        "testCases": outcome.cases.iter().map(case).collect::<Vec<_>>(),
    })
    .to_string()
}
