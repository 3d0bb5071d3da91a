//! `busbar jsonpath`: Evaluates a JSONPath expression.

use message::jsonpath::{Dialect, JsonPath};
use serde_json::Value;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Evaluates a JSONPath expression.
///
/// Prints a JSON array of the selected values, or of their normalised paths. Exit code 1 on an error; in the
/// jayway dialect also where a definite path leads nowhere.
#[derive(clap::Args)]
pub struct Args {
    /// The expression, such as '$.order.lines[*].id'.
    expr: String,
    /// A JSON file; standard input when it is missing or '-'.
    input: Option<PathBuf>,
    /// The language of the expression; jayway is what json-eval(...) takes.
    #[arg(long, value_enum, default_value = "rfc9535")]
    dialect: Language,
    /// Print where the values are, not the values.
    #[arg(long)]
    paths: bool,
}

#[derive(Copy, Clone, clap::ValueEnum)]
enum Language {
    Rfc9535,
    Jayway,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    match evaluate(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("busbar jsonpath: {message}");
            ExitCode::FAILURE
        }
    }
}

fn evaluate(args: &Args) -> Result<(), String> {
    let dialect = match args.dialect {
        Language::Rfc9535 => Dialect::Rfc9535,
        Language::Jayway => Dialect::Jayway,
    };
    let path = JsonPath::compile(&args.expr, dialect).map_err(|error| {
        let before = args.expr.get(..error.span.start).unwrap_or("").chars().count();
        let len = args.expr.get(error.span.clone()).unwrap_or("").chars().count().max(1);
        format!("{error}\n  {}\n  {}{}", args.expr, " ".repeat(before), "^".repeat(len))
    })?;
    let mut input = Vec::new();
    let name = match args.input.as_deref().filter(|input| input.as_os_str() != "-") {
        Some(file) => {
            input = std::fs::read(file)
                .map_err(|error| format!("{}: {}", file.display(), diagnostics::io_reason(&error)))?;
            file.display().to_string()
        }
        None => {
            std::io::stdin().read_to_end(&mut input).map_err(|error| format!("standard input: {error}"))?;
            "standard input".to_owned()
        }
    };
    let document: Value = serde_json::from_slice(&input).map_err(|error| format!("{name}: {error}"))?;
    let selection = if args.paths { path.select_with_paths(&document) } else { path.select(&document) };
    if let Some(failure) = &selection.failure {
        return Err(failure.to_string());
    }
    let mut out = if args.paths {
        serde_json::to_vec(&selection.paths.iter().map(ToString::to_string).collect::<Vec<_>>())
    } else {
        serde_json::to_vec(&selection.nodes.iter().map(AsRef::as_ref).collect::<Vec<&Value>>())
    }
    .map_err(|error| error.to_string())?;
    out.push(b'\n');
    std::io::stdout().write_all(&out).map_err(|error| format!("standard output: {error}"))
}
