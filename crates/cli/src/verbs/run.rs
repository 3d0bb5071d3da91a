//! `busbar run`: runs a configuration until it is told to stop.

use crate::bus;
use crate::settings::Settings;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs a configuration.
///
/// PATH is a project, a configuration directory, one file with `<definitions>`, an archive (.car), a directory of these, or
/// the home of a server. SIGTERM drains and exits 0, SIGHUP reloads, a second SIGTERM ends at once.
#[derive(clap::Args)]
pub struct Args {
    /// The configuration.
    pub path: PathBuf,
    /// Address for http; port 0 picks a free one [default: 127.0.0.1:8280].
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    /// Address for https [default: 127.0.0.1:8243 where a certificate is configured].
    #[arg(long, value_name = "ADDR")]
    pub https: Option<SocketAddr>,
    /// Address for health, metrics and the list of artifacts [default: 127.0.0.1:9164].
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<SocketAddr>,
    /// Worker threads; one per core by default.
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Settings file [default: busbar.toml beside the configuration, if there is one].
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One setting, as in the settings file: `--set limits.idle=30s`.
    #[arg(long = "set", value_name = "K=V")]
    pub set: Vec<String>,
    /// Trace the messages of this proxy service or API (`main`; `*`: all) and write what each step did to the log.
    #[arg(long, value_name = "SERVICE")]
    pub trace: Vec<String>,
    /// Refuse to start when an artifact is faulty.
    #[arg(long)]
    pub strict: bool,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    // Huge pages save no time that could be measured and cost memory: 5 MiB idle, half as much again under load (docs/performance.md). The
    // allocator asks for none (`no_thp` in Cargo.toml); this is for systems that give them unasked. If the system refuses, they stay.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let settings = match Settings::load(&args.path, args.config.as_deref(), &args.set) {
        Ok(settings) => settings,
        Err(error) => {
            bus::fatal(format_asked(&args.set).as_deref(), &error);
            return ExitCode::FAILURE;
        }
    };
    let addresses = bus::Addresses {
        http: args.http.or(settings.listen.http),
        https: args.https.or(settings.listen.https),
        admin: args.admin.or(settings.listen.admin),
    };
    let workers = args.workers.or(settings.workers);
    let source = Some(bus::Source { file: args.config, set: args.set });
    let (path, strict, trace) = (args.path, args.strict, args.trace);
    let start = bus::Start { path, addresses, workers, settings, source, strict, trace };
    match bus::run(&start) {
        Ok(()) => ExitCode::SUCCESS,
        Err(bus::Ended) => ExitCode::FAILURE,
    }
}

/// The format of the log, where the settings cannot be read.
fn format_asked(set: &[String]) -> Option<String> {
    let set = set.iter().rev().find_map(|setting| setting.strip_prefix("log.format=").map(str::to_owned));
    set.or_else(|| std::env::var("BUSBAR_LOG_FORMAT").ok())
}
