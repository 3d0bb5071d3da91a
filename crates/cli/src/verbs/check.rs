//! `busbar check`: Lints a configuration without running it.
//!
//! What keeps artifacts from running is found by loading and compiling them, as `busbar run` does. Then the rules of `lint` run over
//! what is left.

use crate::fix::{self, Fixed};
use crate::load::{Loaded, load};
use crate::settings::{Dialect, Settings};
use crate::words::counted;
use diagnostics::{Diagnostic, Severity, render};
use flow::Services;
use flow::services::TlsProfiles;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
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
    /// Changes in the files what can be mended without thinking (names written in another case, a scope that is missing), and
    /// shows what it did. Everything else in the files stays as it is.
    #[arg(long)]
    fix: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// With the source line underlined.
    Human,
    /// One JSON object a line.
    Json,
    /// SARIF 2.1.0.
    Sarif,
    /// Annotations of GitHub: one command a line, for the output of a workflow step.
    Github,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    let (services, seen) = match services(&args.path) {
        Ok(services) => services,
        Err(why) => {
            eprintln!("busbar check: {why}");
            return ExitCode::FAILURE;
        }
    };
    let mut loaded = found(&args.path, &services, &seen);
    let mut could_not_fix = false;
    if args.fix {
        let fixed = fix_all(&args.path, &services, &seen, &mut loaded);
        could_not_fix = !fixed.errors.is_empty();
        for line in &fixed.errors {
            eprintln!("busbar check: {line}");
        }
        // Written to stderr where findings are for people, else not at all.
        for line in &fixed.changes {
            match args.format {
                Format::Human => println!("fixed {line}"),
                _ => eprintln!("fixed {line}"),
            }
        }
    }
    let sources = &loaded.plan.sources;
    let mut out = String::new();
    match args.format {
        Format::Human => {
            let options = render::Human { colour: std::io::stdout().is_terminal(), ..Default::default() };
            for diagnostic in &loaded.found {
                out += &render::human(diagnostic, sources, options);
                out.push('\n');
            }
            let mut counts = vec![
                counted(loaded.artifacts, "artifact"),
                counted(loaded.found.errors(), "error"),
                counted(loaded.found.warnings(), "warning"),
            ];
            if loaded.found.notes() > 0 {
                counts.push(counted(loaded.found.notes(), "note"));
            }
            out += &counts.join(", ");
            out.push('\n');
        }
        Format::Json => {
            for diagnostic in &loaded.found {
                out += &render::json(diagnostic, sources);
                out.push('\n');
            }
        }
        Format::Sarif => {
            let version = env!("CARGO_PKG_VERSION");
            out = render::sarif(loaded.found.as_slice(), sources, version, described);
        }
        Format::Github => {
            let root = std::env::current_dir().unwrap_or_default();
            for diagnostic in &loaded.found {
                out += &render::github(diagnostic, sources, &root);
                out.push('\n');
            }
        }
    }
    // A reader that has seen enough (`| head`) is no error.
    let _ = std::io::stdout().lock().write_all(out.as_bytes());
    let worst = if args.strict { Severity::Warning } else { Severity::Error };
    if could_not_fix || loaded.found.iter().any(|diagnostic| diagnostic.severity >= worst) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// What is found in the configuration: by loading and compiling it, and by the rules.
fn found(path: &Path, services: &Services, seen: &Seen) -> Loaded {
    let mut loaded = load(path, services, None, None);
    if !seen.has_https {
        loaded.found.extend(crate::listeners::only_on_https(loaded.good.configuration(), false));
    }
    let remarks = seen.remarks.iter().map(|remark| Diagnostic::warning("unknown-setting", remark.as_str()));
    loaded.found.extend(remarks);
    loaded.found.extend(crate::listeners::unusable_certificates(&loaded.plan));
    let registry = crate::load::registry();
    loaded.found.extend(lint::check(loaded.good.configuration(), &registry, &services.settings));
    let within = loaded.within_flawed(services, |configuration, registry| {
        lint::check(configuration, registry, &services.settings)
    });
    loaded.found.extend(within);
    loaded
}

/// Most rounds: a fix may bring up the next finding.
const ROUNDS: usize = 10;

/// Applies all fixes, and leaves in `loaded` what is found then.
fn fix_all(path: &Path, services: &Services, seen: &Seen, loaded: &mut Loaded) -> Fixed {
    let mut done = Fixed::default();
    for _ in 0..ROUNDS {
        let fixed = fix::apply(&loaded.found, &loaded.plan.sources);
        let changed = !fixed.changes.is_empty();
        done.changes.extend(fixed.changes);
        done.errors = fixed.errors;
        if !changed {
            break;
        }
        *loaded = found(path, services, seen);
    }
    done
}

/// The summary and reason of a rule.
fn described(id: &str) -> Option<render::RuleText<'static>> {
    let rule = lint::RULES.iter().find(|rule| rule.id == id);
    let text = rule.map(|rule| render::RuleText { summary: rule.summary, reason: rule.reason });
    let loading = || lint::LOADING.iter().find(|rule| rule.id == id);
    text.or_else(|| loading().map(|rule| render::RuleText { summary: rule.meaning, reason: "" }))
}

/// What of the settings is no part of [`Services`].
pub struct Seen {
    /// Names in them that nobody knows.
    pub remarks: Vec<String>,
    /// They have a certificate for https.
    pub has_https: bool,
}

/// What the settings say of the language, and what else of them counts. Nothing is sent, so that every https address
/// will do.
///
/// # Errors
/// A setting cannot be read.
pub fn services(path: &Path) -> Result<(Services, Seen), String> {
    let settings = Settings::load(path, None, &[])?;
    let seen = Seen { remarks: settings.remarks().to_vec(), has_https: settings.tls.certificate.is_some() };
    let mut services = Services::new(Client::new(ClientLimits::default()));
    crate::tunables::apply(&settings.wso2, &mut services.settings)?;
    services.settings.synapse_dialect = settings.dialect == Dialect::Synapse;
    crate::bus::sql(&settings.sql, &mut services.settings);
    let mut vault = settings.vault;
    vault.key = vault.key.filter(|key| key.exists());
    // What is here, if it can be opened: secrets that are not are warnings.
    let file = vault.file.take();
    let mut opened = vault.clone();
    opened.file = file;
    if crate::secrets::open(&opened, &mut services.settings).is_ok() {
        vault = opened;
    }
    crate::secrets::open(&vault, &mut services.settings)?;
    services.settings.check_only = true;
    let any = ClientTlsOptions { roots: Roots::Insecure, ..ClientTlsOptions::default() };
    if let Ok(any) = ClientTls::new(&any) {
        services.tls = Arc::new(TlsProfiles::for_all(any));
    }
    Ok((services, seen))
}
