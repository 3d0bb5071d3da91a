//! `busbar check`: Lints a configuration without running it.

use config::{LoadOptions, load};
use diagnostics::{Severity, render};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Lints a configuration without running it.
///
/// Exits with 1 when there are errors (with --strict also when there are warnings), else with 0.
#[derive(clap::Args)]
pub struct Args {
    /// A configuration directory, a file with `<definitions>` or one artifact, or a WSO2 home.
    path: PathBuf,
    /// How findings are printed, on stdout.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Warnings count as errors.
    #[arg(long)]
    strict: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// With the source line underlined.
    Human,
    /// One JSON object a line.
    Json,
    /// SARIF 2.1.0.
    Sarif,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    let loaded = load(&args.path, &LoadOptions::default());
    let mut out = String::new();
    match args.format {
        Format::Human => {
            let options = render::Human { colour: std::io::stdout().is_terminal(), ..Default::default() };
            for diagnostic in &loaded.diagnostics {
                out += &render::human(diagnostic, &loaded.sources, options);
                out.push('\n');
            }
            out += &format!(
                "{}, {}, {}\n",
                counted(loaded.configuration.artifacts(), "artifact"),
                counted(loaded.diagnostics.errors(), "error"),
                counted(loaded.diagnostics.warnings(), "warning"),
            );
        }
        Format::Json => {
            for diagnostic in &loaded.diagnostics {
                out += &render::json(diagnostic, &loaded.sources);
                out.push('\n');
            }
        }
        Format::Sarif => {
            let version = env!("CARGO_PKG_VERSION");
            out = render::sarif(loaded.diagnostics.as_slice(), &loaded.sources, version);
        }
    }
    // A reader that has seen enough (`| head`) is no error.
    let _ = std::io::stdout().lock().write_all(out.as_bytes());
    let worst = if args.strict { Severity::Warning } else { Severity::Error };
    if loaded.diagnostics.iter().any(|diagnostic| diagnostic.severity >= worst) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// `1 error`, `2 errors`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
