//! `busbar test`: runs suites of unit tests.

use crate::bus::init_logging;
use crate::settings::Settings;
use crate::suites::report::{Ran, human, json, junit};
use crate::suites::{Outcome, Runner, read};
use crate::words::counted;
use admin::logging::{Kept, from_environment};
use config::Element;
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
    /// Says which steps of the artifacts ran (with the format human; json always has them).
    #[arg(long)]
    coverage: bool,
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
    /// One XML document, as build servers read it.
    Junit,
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
    let settings = Settings::load(&args.path, args.config.as_deref(), &args.set)?;
    // What is wrong is printed with the test that it belongs to, unless somebody wants to see the log.
    let is_kept = settings.log.level.is_none() && from_environment().is_none();
    let kept = is_kept.then(Kept::start);
    let _logging = if is_kept { None } else { Some(init_logging(&settings)?) };
    let found = found(&args.path)?;
    if found.is_empty() {
        return Err(format!("{}: there is no suite (a file with the root `unit-test`)", args.path.display()));
    }
    let mut runner = Runner::new(settings, kept)?;
    let mut ran = Vec::with_capacity(found.len());
    let (mut passed, mut failed, mut broken) = (0, 0, 0);
    for Found { file, root } in &found {
        if runner.is_interrupted() {
            break;
        }
        let suite = root.as_ref().map_err(String::clone).and_then(|root| read::suite(file, root));
        let outcome = suite.map_or_else(Outcome::broken, |suite| runner.run(&suite));
        let right = outcome.cases.iter().filter(|case| case.passed()).count();
        passed += right;
        failed += outcome.cases.len() - right;
        broken += usize::from(outcome.broken.is_some());
        let suite = Ran { file, outcome };
        match args.format {
            Format::Human => print(&human(&suite, args.coverage)),
            Format::Json => print(&(json(&suite) + "\n")),
            Format::Junit => ran.push(suite),
        }
    }
    match args.format {
        Format::Human => {
            let mut line = format!("{}: {passed} passed, {failed} failed", counted(found.len(), "suite"));
            if broken > 0 {
                line += &format!(", {broken} could not run");
            }
            print(&(line + "\n"));
        }
        Format::Json => {}
        Format::Junit => print(&junit(&ran)),
    }
    if runner.is_interrupted() {
        return Err("interrupted".to_owned());
    }
    Ok(failed == 0 && broken == 0)
}

fn print(text: &str) {
    // Nobody may be reading.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// A suite that was found.
struct Found {
    file: PathBuf,
    /// Its root, or why it cannot be read.
    root: Result<Element, String>,
}

/// The suites at a path, in the order of their names.
fn found(path: &Path) -> Result<Vec<Found>, String> {
    if path.is_file() {
        let none =
            || format!("{}: this is no suite of unit tests: its root is not `unit-test`", path.display());
        let root = read::root(path).and_then(|root| root.ok_or_else(none));
        return Ok(vec![Found { file: path.to_owned(), root }]);
    }
    let mut found = Vec::new();
    let mut waiting = vec![(path.to_owned(), DEPTH)];
    while let Some((folder, depth)) = waiting.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(why) if folder == path => return Err(format!("{}: {why}", path.display())),
            // One that may not be read has no suites for us.
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            let file = entry.path();
            let name = entry.file_name();
            let is_hidden = name.to_string_lossy().starts_with('.') || name == "target";
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && !is_hidden && depth > 0 {
                waiting.push((file, depth - 1));
            } else if kind.is_file() && file.extension().is_some_and(|extension| extension == "xml") {
                // One that is broken is not passed over.
                let root = read::root(&file).transpose();
                found.extend(root.map(|root| Found { file, root }));
            }
        }
    }
    found.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(found)
}
