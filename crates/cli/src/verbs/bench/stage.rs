//! What the commands that measure have in common: the systems side by side, the line that says how far it is, and the files of the result.

use super::load::Bar;
use crate::round::Unpacked;
use crate::temporary::Temporary;
use bench::report;
use bench::results::Run;
use bench::steps::News;
use bench::systems::{self, Backend, Place, System};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::signal::unix::{SignalKind, signal};

/// What is measured beside this binary, and where the result goes.
#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    /// A system to measure beside Busbar: nginx, haproxy, a folder with a script `start` (of `bench/peers`), the folder of a WSO2 installation, or NAME=URL (that
    /// runs already; NAME=URL#PID to watch its process). NAME=FOLDER gives a folder another name. Can be repeated; without it nginx, haproxy and all of
    /// `bench/peers`, as far as they are installed.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<String>,
    /// Busbar only.
    #[arg(long, conflicts_with = "peers")]
    alone: bool,
    /// Another build of Busbar to measure beside this one. Can be repeated.
    #[arg(long = "build", value_name = "NAME=PATH", value_parser = build)]
    builds: Vec<(String, PathBuf)>,
    /// The folder for report.html, report.md, cells.csv and runs.json; created if need be.
    #[arg(long, value_name = "FOLDER", default_value = "bench-report")]
    out: PathBuf,
}

fn build(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or_else(|| format!("'{text}' is not NAME=PATH"))?;
    if name == "busbar" || name.is_empty() || name.starts_with('(') {
        return Err(format!("'{name}' is not a name for another build"));
    }
    Ok((name.to_owned(), PathBuf::from(path)))
}

impl Args {
    /// Writes the report in all its forms; says where.
    pub(super) fn write(&self, runs: &[Run]) -> Result<(), String> {
        write(&self.out, runs)
    }

    /// Where it goes.
    pub(super) fn out(&self) -> &Path {
        &self.out
    }
}

/// The systems, running. They end, in this order, when this is dropped.
pub(super) struct Stage {
    pub(super) systems: Vec<System>,
    pub(super) backend: Backend,
    pub(super) place: Place,
    /// What is not there, and why.
    pub(super) absent: Vec<String>,
    pub(super) unpacked: Unpacked,
    _work: Temporary,
}

impl Stage {
    /// Starts the backend, Busbar with the example round, and the others.
    pub(super) fn new(args: &Args) -> Result<Stage, String> {
        Stage::prepared(args, &|_| Ok(()))
    }

    /// The same, with something done before the systems start.
    pub(super) fn prepared(
        args: &Args,
        prepare: &dyn Fn(&Stage) -> Result<(), String>,
    ) -> Result<Stage, String> {
        writable(&args.out)?;
        let mut stage = Stage::empty()?;
        prepare(&stage)?;
        let round = stage.unpacked.round();
        stage.systems.push(systems::busbar(&stage.place, "busbar", &round, &[])?);
        for (name, path) in &args.builds {
            let path = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
            if stage.has(name) {
                return Err(format!("there are two builds '{name}'"));
            }
            let place = Place { busbar: path, ..stage.place.clone() };
            stage.systems.push(systems::busbar(&place, name, &round, &[])?);
        }
        let peers = match (args.alone, args.peers.is_empty()) {
            (true, _) => Vec::new(),
            (false, false) => args.peers.clone(),
            (false, true) => {
                ["nginx", "haproxy"].map(str::to_owned).into_iter().chain(systems::scripts()).collect()
            }
        };
        for peer in &peers {
            stage.add(peer);
        }
        stage.place.pin_client();
        Ok(stage)
    }

    /// Starts a system beside the others. Where it cannot, the reason is said and kept for the report.
    pub(super) fn add(&mut self, peer: &str) -> bool {
        eprintln!("starting {peer}");
        let why = match self.peer(peer) {
            Ok(system) if !self.has(&system.about.name) => {
                self.systems.push(system);
                return true;
            }
            Ok(system) => format!(
                "{peer}: there is a system '{}' already (NAME=FOLDER gives it another name)",
                system.about.name
            ),
            Err(why) => why,
        };
        eprintln!("not measured: {why}");
        self.absent.push(why);
        false
    }

    fn has(&self, name: &str) -> bool {
        self.systems.iter().any(|system| system.about.name == name)
    }

    /// The backend and a place for the others.
    pub(super) fn empty() -> Result<Stage, String> {
        let busbar = std::env::current_exe().map_err(|error| format!("this binary is not found: {error}"))?;
        let work = Temporary::new("bench")?;
        let mut place = Place::new(busbar, work.path().to_owned());
        let backend = Backend::start(&place)?;
        let unpacked = Unpacked::new(backend.address)?;
        place.round = unpacked.round();
        Ok(Stage { systems: Vec::new(), backend, place, absent: Vec::new(), unpacked, _work: work })
    }

    /// Busbar several times, each with its own settings: a name, and what is added to its command.
    pub(super) fn with_settings(settings: &[(&str, &[&str])]) -> Result<Stage, String> {
        let mut stage = Stage::empty()?;
        let round = stage.unpacked.round();
        for (name, more) in settings {
            let more: Vec<String> = more.iter().map(|argument| (*argument).to_owned()).collect();
            stage.systems.push(systems::busbar(&stage.place, name, &round, &more)?);
        }
        stage.place.pin_client();
        Ok(stage)
    }

    fn peer(&self, peer: &str) -> Result<System, String> {
        let Some((name, url)) = peer.split_once('=') else {
            return systems::peer(&self.place, peer, self.backend.address);
        };
        if name.is_empty() || name.starts_with('(') {
            return Err(format!("'{name}' is not a name for a system"));
        }
        if !url.contains("://") {
            let mut system = systems::peer(&self.place, url, self.backend.address)?;
            name.clone_into(&mut system.about.name);
            return Ok(system);
        }
        let (url, process) = match url.split_once('#') {
            Some((url, id)) => (url, Some(id.parse().map_err(|_| format!("'{id}' is not a process id"))?)),
            None => (url, None),
        };
        Ok(System::at(name, url.parse()?, process))
    }
}

/// Says on standard error how far it is, and hears when it is to end: on SIGINT and SIGTERM.
pub(super) struct Teller {
    bar: Bar,
    ends: Arc<AtomicBool>,
}

impl Teller {
    pub(super) fn new() -> Teller {
        let ends = Arc::<AtomicBool>::default();
        let flag = Arc::clone(&ends);
        std::thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
                return;
            };
            runtime.block_on(async {
                let (Ok(mut interrupt), Ok(mut terminate)) =
                    (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
                else {
                    return;
                };
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                    }
                    // The second one ends at once.
                    if flag.swap(true, Relaxed) {
                        std::process::exit(130);
                    }
                }
            });
        });
        Teller { bar: Bar::new(), ends }
    }

    /// Whether to go on.
    pub(super) fn tell(&mut self, news: &News<'_>) -> bool {
        let is_terminal = std::io::stderr().is_terminal();
        match news {
            News::Begins(number, count, what) => self.bar.label = format!("{number}/{count} {what}  "),
            News::Progress(progress) => self.bar.show(progress),
            News::Absent(line) => {
                self.bar.clear();
                eprintln!("not measured: {line}");
            }
            News::Measured(cell) => {
                self.bar.clear();
                if cell.failed > 0 || !is_terminal {
                    let cpu = cell.cpu.map_or(String::new(), |cpu| format!(", {cpu:.1} µs of CPU"));
                    let wrong = cell
                        .error
                        .as_ref()
                        .map_or(String::new(), |what| format!(", {} x {what}", cell.failed));
                    eprintln!(
                        "{}{:.0} a second, p50 {:.2} ms, p99 {:.2} ms{cpu}{wrong}",
                        self.bar.label, cell.rate, cell.p50, cell.p99
                    );
                }
            }
        }
        self.goes_on()
    }

    /// Whether nobody has asked for the end.
    pub(super) fn goes_on(&self) -> bool {
        !self.ends.load(Relaxed)
    }
}

/// Whether something was measured, and every answer was right.
pub(super) fn all_right(runs: &[Run]) -> bool {
    let cells = || runs.iter().flat_map(|run| &run.cells);
    cells().count() > 0 && cells().all(|cell| cell.failed == 0)
}

/// Completes a run with what only the command knows.
pub(super) fn complete(run: &mut Run, absent: &[String]) {
    let words: Vec<String> = std::env::args().skip(1).collect();
    run.command = format!("busbar {}", words.join(" "));
    run.version = env!("VERSION_OF_BUILD").to_owned();
    run.absent.splice(0..0, absent.iter().cloned());
}

/// The folder for the report is there and takes files: said before anything is measured, not after hours.
pub(super) fn writable(out: &Path) -> Result<(), String> {
    let fail = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(out).map_err(|error| fail(out, error))?;
    let probe = out.join(".writable");
    std::fs::write(&probe, b"yes").map_err(|error| fail(&probe, error))?;
    std::fs::remove_file(&probe).map_err(|error| fail(&probe, error))
}

/// Writes the report in all its forms; says where. What cannot be written there goes to the temporary folder: it may be the work of an hour.
pub(super) fn write(out: &Path, runs: &[Run]) -> Result<(), String> {
    match write_to(out, runs) {
        Ok(()) => {
            // Nobody may be reading.
            let _ = writeln!(std::io::stdout(), "{}", out.join("report.html").display());
            Ok(())
        }
        Err(why) => {
            let other = std::env::temp_dir().join(format!("busbar-bench-report-{}", std::process::id()));
            write_to(&other, runs).map_err(|error| format!("{why}; and {error}"))?;
            Err(format!("{why}; the report is in {}", other.display()))
        }
    }
}

/// Writes all files, each at once: a report that is there stays as it is until the new one is whole.
pub(super) fn write_to(out: &Path, runs: &[Run]) -> Result<(), String> {
    let fail = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(out).map_err(|error| fail(out, error))?;
    let json = serde_json::to_string_pretty(runs).map_err(|error| error.to_string())?;
    let files = [
        ("runs.json", json + "\n"),
        ("report.html", report::html(runs)),
        ("report.md", report::markdown(runs)),
        ("cells.csv", report::csv(runs)),
    ];
    for (name, text) in &files {
        let part = out.join(format!(".{name}.part"));
        std::fs::write(&part, text).map_err(|error| fail(&part, error)).inspect_err(|_| {
            // As far as it was written; there may be no room for more.
            let _ = std::fs::remove_file(&part);
        })?;
    }
    for (name, _) in &files {
        let path = out.join(name);
        std::fs::rename(out.join(format!(".{name}.part")), &path).map_err(|error| fail(&path, error))?;
    }
    Ok(())
}
