//! `busbar check`: Lints a configuration without running it.

use crate::load::load;
use crate::settings::{Dialect, Settings};
use diagnostics::{Diagnostic, Severity, render};
use flow::Services;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use transport::{Client, ClientLimits, ClientTls, ClientTlsOptions, Roots};

/// Lints a configuration without running it.
///
/// Exits with 1 when there are errors (with --strict also when there are warnings), else with 0. What only the machine
/// has that runs it (secrets, environment variables, file.properties) may be absent: a warning.
#[derive(clap::Args)]
pub struct Args {
    /// A project, a configuration directory, a file with `<definitions>` or one artifact, an archive (.car), a directory of
    /// any of these, or the home of a server.
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
    let (services, remarks) = match services(&args.path) {
        Ok(services) => services,
        Err(why) => {
            eprintln!("busbar check: {why}");
            return ExitCode::FAILURE;
        }
    };
    let mut loaded = load(&args.path, &services, None, None);
    loaded.found.extend(remarks.into_iter().map(|remark| Diagnostic::warning("unknown-setting", remark)));
    let sources = &loaded.plan.sources;
    let mut out = String::new();
    match args.format {
        Format::Human => {
            let options = render::Human { colour: std::io::stdout().is_terminal(), ..Default::default() };
            for diagnostic in &loaded.found {
                out += &render::human(diagnostic, sources, options);
                out.push('\n');
            }
            out += &format!(
                "{}, {}, {}\n",
                counted(loaded.artifacts, "artifact"),
                counted(loaded.found.errors(), "error"),
                counted(loaded.found.warnings(), "warning"),
            );
        }
        Format::Json => {
            for diagnostic in &loaded.found {
                out += &render::json(diagnostic, sources);
                out.push('\n');
            }
        }
        Format::Sarif => {
            let version = env!("CARGO_PKG_VERSION");
            out = render::sarif(loaded.found.as_slice(), sources, version);
        }
    }
    // A reader that has seen enough (`| head`) is no error.
    let _ = std::io::stdout().lock().write_all(out.as_bytes());
    let worst = if args.strict { Severity::Warning } else { Severity::Error };
    if loaded.found.iter().any(|diagnostic| diagnostic.severity >= worst) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// What the settings say of the language, and names in them that nobody knows. Nothing is sent, so that every https address
/// will do.
///
/// # Errors
/// A setting cannot be read.
pub fn services(path: &Path) -> Result<(Services, Vec<String>), String> {
    let settings = Settings::load(path, None, &[])?;
    let remarks = settings.remarks().to_vec();
    let mut services = Services::new(Client::new(ClientLimits::default()));
    crate::tunables::apply(&settings.wso2, &mut services.settings)?;
    services.settings.synapse_dialect = settings.dialect == Dialect::Synapse;
    let mut vault = settings.vault;
    vault.key = vault.key.filter(|key| key.exists());
    crate::bus::vault(&vault, &mut services.settings)?;
    services.settings.check_only = true;
    let any = ClientTlsOptions { roots: Roots::Insecure, ..ClientTlsOptions::default() };
    services.tls.profiles.extend(ClientTls::new(&any).ok().map(|any| ("*".to_owned(), any)));
    Ok((services, remarks))
}

/// `1 error`, `2 errors`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
