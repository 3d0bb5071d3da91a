//! The systems that are measured: started, pinned to a core, found by address and process, and ended.
//!
//! Each system has one worker and, where the machine has two cores, core 0; the backend and the load generator have the others. What is pinned is pinned
//! with `taskset`, so that the command in the report is the command that ran.

mod busbar;
mod haproxy;
mod nginx;
mod script;
mod wso2;

pub use script::scripts;

use crate::results;
use crate::scenarios::Scenario;
use loadgen::{Process, Url};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How long a system may take until it listens.
const START: Duration = Duration::from_secs(120);
/// How long it may take to end before it is killed.
const END: Duration = Duration::from_secs(10);

/// What is started, and where.
#[derive(Clone, Debug)]
pub struct Place {
    /// The `busbar` binary.
    pub busbar: PathBuf,
    /// A folder for configurations and logs.
    pub work: PathBuf,
    /// The core of the systems; `None`: any.
    pub system_core: Option<usize>,
    /// The core of the backend.
    pub backend_core: Option<usize>,
    /// The core of the load generator.
    pub client_core: Option<usize>,
    /// The configuration of the example round, with the addresses of the backend: for peers that understand it.
    pub round: PathBuf,
}

impl Place {
    /// Cores as the machine has them: as they are when this is asked first, since the one who asks is pinned to one of them later.
    pub fn new(busbar: PathBuf, work: PathBuf) -> Place {
        static CORES: OnceLock<usize> = OnceLock::new();
        let cores = *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from));
        let core = |wanted: usize| (cores > 1 && has("taskset")).then_some(wanted.min(cores - 1));
        let round = PathBuf::new();
        Place { busbar, work, system_core: core(0), backend_core: core(1), client_core: core(2), round }
    }

    /// Pins the calling thread to the core of the load generator. What it starts from then on is pinned elsewhere by itself.
    pub fn pin_client(&self) {
        let Some(core) = self.client_core else { return };
        // A link to PID/task/TID.
        let Ok(thread) = std::fs::read_link("/proc/thread-self") else { return };
        let Some(id) = thread.file_name() else { return };
        // Where it fails, the generator runs on any core.
        let _ = Command::new("taskset")
            .args(["-cp", &core.to_string()])
            .arg(id)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }

    /// Starts a program on a core; what it says is in `NAME.log`.
    fn start(
        &self,
        name: &str,
        core: Option<usize>,
        program: &Path,
        arguments: &[String],
    ) -> Result<Running, String> {
        let fail = |error: std::io::Error| format!("{}: {error}", program.display());
        let mut words = vec![program.display().to_string()];
        words.extend_from_slice(arguments);
        if let Some(core) = core {
            words.splice(0..0, ["taskset".to_owned(), "-c".to_owned(), core.to_string()]);
        }
        let file_name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let log = self.work.join(format!("{file_name}.log"));
        let out = File::create(&log).map_err(fail)?;
        // Whatever ends this process, a second Ctrl-C and SIGKILL included, ends what it has started.
        let mut command: Vec<&str> =
            if has("setpriv") { vec!["setpriv", "--pdeathsig", "TERM"] } else { Vec::new() };
        command.extend(words.iter().map(String::as_str));
        let child = Command::new(command[0])
            .args(&command[1..])
            .env("ROUND", &self.round)
            // A Ctrl-C is for this process, which ends the others when it has made its report.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(out.try_clone().map_err(fail)?)
            .stderr(out)
            .spawn()
            .map_err(fail)?;
        Ok(Running { child, log, command: words.join(" ") })
    }
}

/// A process that is ended when this is dropped.
#[derive(Debug)]
struct Running {
    child: Child,
    log: PathBuf,
    command: String,
}

impl Running {
    /// What it has said.
    fn output(&self) -> String {
        let mut text = Vec::new();
        if let Ok(file) = File::open(&self.log) {
            // As far as it goes.
            let _ = file.take(1 << 20).read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    fn fails(&self, failure: &str) -> String {
        let output = self.output();
        let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(3)..].join(" / ");
        format!("{}: {failure}: {}", self.command, if last.is_empty() { "it says nothing" } else { &last })
    }

    /// Waits until `ready` has something, as long as the process runs.
    fn wait<T>(&mut self, mut ready: impl FnMut(&Running) -> Option<T>) -> Result<T, String> {
        let until = Instant::now() + START;
        loop {
            if let Some(found) = ready(self) {
                return Ok(found);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.fails(&format!("ended ({status})")));
            }
            if Instant::now() >= until {
                return Err(self.fails(&format!("not ready after {} s", START.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// How it ended, where it has.
    fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(self.fails(&format!("ended ({status})")))
    }

    /// The process that works: what was started, or what that has started, where it is a script that waits.
    fn worker(&self) -> u32 {
        let mut id = self.child.id();
        loop {
            let children =
                std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
            match children.split_ascii_whitespace().collect::<Vec<_>>()[..] {
                [only] => match only.parse() {
                    Ok(child) => id = child,
                    Err(_) => return id,
                },
                _ => return id,
            }
        }
    }

    /// Waits until something listens at a port of this machine.
    fn listens(&mut self, port: u16) -> Result<(), String> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        self.wait(|_| TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok().map(drop))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A script may have ended without what it started, so it is the group that is told. Who is gone already needs no signal.
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::TERM);
        let until = Instant::now() + END;
        while Instant::now() < until {
            let ended = !matches!(self.child.try_wait(), Ok(None));
            if ended && rustix::process::test_kill_process_group(group).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A system that can be measured.
#[derive(Debug)]
pub struct System {
    /// Name, version and command, as the report has them.
    pub about: results::System,
    /// Where its services are.
    pub url: Url,
    /// Where a Busbar that was started here is administered.
    pub admin: Option<SocketAddr>,
    /// The process that works, if it is of this machine and its id is told.
    pub process: Option<Process>,
    /// The scenarios that it can do; `None`: tried with each.
    scenarios: Option<Vec<String>>,
    /// Seconds of load on each scenario before it is measured for the first time, where compilers have to get warm.
    pub warm_up: Duration,
    /// The scenarios that are warm.
    warm: Mutex<BTreeSet<&'static str>>,
    /// Ends with this.
    running: Option<Mutex<Running>>,
}

impl System {
    fn started(name: &str, version: String, port: u16, running: Running) -> System {
        let url = Url { https: false, host: "127.0.0.1".to_owned(), port, target: "/".to_owned() };
        let command = running.command.clone();
        let about = results::System { name: name.to_owned(), version, command, ..Default::default() };
        let process = Some(Process { name: "system".to_owned(), id: running.worker() });
        let (scenarios, warm_up, warm) = (None, Duration::ZERO, Mutex::default());
        System {
            about,
            url,
            admin: None,
            process,
            scenarios,
            warm_up,
            warm,
            running: Some(Mutex::new(running)),
        }
    }

    /// Says how much load it gets before it is measured.
    fn warmed_up_for(&mut self, seconds: f64) {
        self.warm_up = Duration::from_secs_f64(seconds.clamp(0.0, 600.0));
        self.about.warm_up = self.warm_up.as_secs_f64();
    }

    /// Multiplies the load that it gets before it is measured.
    pub fn warm_up_by(&mut self, factor: f64) {
        self.warmed_up_for(self.warm_up.as_secs_f64() * factor);
    }

    /// A system that runs already: its name, where it is, and the id of its process.
    pub fn at(name: &str, url: Url, process: Option<u32>) -> System {
        let about = results::System {
            name: name.to_owned(),
            version: "as it runs".to_owned(),
            command: url.to_string(),
            ..Default::default()
        };
        let process = process.map(|id| Process { name: "system".to_owned(), id });
        let (scenarios, warm_up, warm) = (None, Duration::ZERO, Mutex::default());
        System { about, url, admin: None, process, scenarios, warm_up, warm, running: None }
    }

    /// How it ended, if it was started here and runs no more.
    pub fn ended(&self) -> Option<String> {
        let mut running = self.running.as_ref()?.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        running.ended()
    }

    /// What it has said until now, if it was started here.
    pub fn output(&self) -> String {
        let running =
            self.running.as_ref().map(|one| one.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        running.map_or(String::new(), |running| running.output())
    }

    /// The load that a scenario still needs before it is measured.
    pub fn cold(&self, scenario: &'static str) -> Duration {
        let mut warm = self.warm.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if warm.insert(scenario) { self.warm_up } else { Duration::ZERO }
    }

    /// Whether it is configured for that scenario.
    pub fn can(&self, scenario: &Scenario) -> bool {
        self.scenarios.as_ref().is_none_or(|can| can.iter().any(|name| name == scenario.name))
    }
}

/// The embedded backend, as a process of its own.
#[derive(Debug)]
pub struct Backend {
    /// Where it is.
    pub address: SocketAddr,
    /// Its process.
    pub process: Process,
    command: String,
    running: Mutex<Running>,
}

impl Backend {
    /// Starts it.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(place: &Place) -> Result<Backend, String> {
        let arguments = ["backend", "--listen", "127.0.0.1:0", "--workers", "1"].map(str::to_owned);
        let mut running = place.start("backend", place.backend_core, &place.busbar, &arguments)?;
        let address = running.wait(|running| field(&running.output(), "http="))?;
        let address = address.parse().map_err(|_| running.fails("it names no address"))?;
        let (process, command) =
            (Process { name: "backend".to_owned(), id: running.child.id() }, running.command.clone());
        Ok(Backend { address, process, command, running: Mutex::new(running) })
    }

    /// How it ended, if it runs no more.
    pub fn ended(&self) -> Option<String> {
        self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner).ended()
    }

    /// How it was started.
    pub fn command(&self) -> &str {
        &self.command
    }
}

/// The word behind `name` in what a process said, once its line is whole.
fn field(output: &str, name: &str) -> Option<String> {
    let lines = output.rsplit_once('\n')?.0;
    let word = lines.split_ascii_whitespace().find_map(|word| word.strip_prefix(name))?;
    Some(word.to_owned())
}

/// Busbar with a configuration.
///
/// # Errors
/// It does not start.
pub fn busbar(place: &Place, name: &str, configuration: &Path, more: &[String]) -> Result<System, String> {
    busbar::start(place, name, configuration, more)
}

/// A Busbar of which nothing is known yet.
pub struct Bare(Running);

impl Bare {
    /// # Errors
    /// It has ended, and how.
    pub fn alive(&mut self) -> Result<(), String> {
        self.0.ended().map_or(Ok(()), Err)
    }
}

/// Starts a Busbar and does not wait for it. `more` has its HTTP address.
///
/// # Errors
/// It cannot be started.
pub fn bare(place: &Place, name: &str, configuration: &Path, more: &[String]) -> Result<Bare, String> {
    let mut arguments = vec!["run".to_owned(), configuration.display().to_string()];
    arguments.extend(["--admin", "127.0.0.1:0", "--workers", "1"].map(str::to_owned));
    arguments.extend_from_slice(more);
    place.start(name, place.system_core, &place.busbar, &arguments).map(Bare)
}

/// A peer by its name: `nginx`, `haproxy`, one of [`scripts`], or the folder of a WSO2 installation.
///
/// # Errors
/// Why it is not measured: it is not installed, or does not start.
pub fn peer(place: &Place, name: &str, backend: SocketAddr) -> Result<System, String> {
    match name {
        "nginx" => nginx::start(place, backend),
        "haproxy" => haproxy::start(place, backend),
        other => match wso2::Installation::at(Path::new(other)) {
            Some(installation) => installation.start(place),
            None => script::start(place, other, backend),
        },
    }
}

/// The value of the transport header of the scenarios, and the scenarios that a proxy without mediation can do.
const RELAYED: [&str; 4] = ["DirectProxy", "MessageRelayProxy", "CBRTransportHeaderProxy", "AppendProxy"];

fn has(program: &str) -> bool {
    find(program).is_some()
}

/// Where a program is: in PATH, or where systems keep what is for administrators.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// What a program says of its version: the first line.
pub(crate) fn version(program: &Path, option: &str) -> String {
    let Ok(output) = Command::new(program).arg(option).stdin(Stdio::null()).output() else {
        return String::new();
    };
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned()
}

/// A port that is free now.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (Place, PathBuf) {
        let work = std::env::temp_dir().join(format!("busbar-bench-systems-{}", std::process::id()));
        std::fs::create_dir_all(&work).unwrap();
        (
            Place {
                busbar: "busbar".into(),
                work: work.clone(),
                system_core: None,
                backend_core: None,
                client_core: None,
                round: PathBuf::new(),
            },
            work,
        )
    }

    #[test]
    fn fields_of_ready_lines() {
        let output = "note\nbusbar ready http=127.0.0.1:1 https=- artifacts=2\nbusbar rea";
        assert_eq!(field(output, "http="), Some("127.0.0.1:1".to_owned()));
        assert_eq!(field("busbar ready http=127.0.0.1:1", "http="), None, "the line is not whole");
    }

    #[test]
    fn a_process_that_ends_is_said_with_its_words_and_one_that_runs_is_ended() {
        let (place, work) = place();
        let sh = find("sh").expect("sh");
        let mut ended =
            place.start("ended", None, &sh, &["-c".into(), "echo no such thing; exit 3".into()]).unwrap();
        let why = ended.wait(|_| None::<()>).unwrap_err();
        assert!(why.contains("exit status: 3") && why.contains("no such thing"), "{why}");

        let mut runs =
            place.start("runs", None, &sh, &["-c".into(), "echo ready x=1; exec sleep 1000".into()]).unwrap();
        assert_eq!(runs.wait(|running| field(&running.output(), "x=")).unwrap(), "1");
        let process = Process { name: "sleep".into(), id: runs.child.id() };
        drop(runs);
        assert_eq!(process.usage(), None);
        // What starts it is there, so that it may be the wait that says it.
        let none = place.start("none", None, Path::new("/no/such/program"), &[]);
        let why = none.and_then(|mut running| running.wait(|_| None::<()>)).unwrap_err();
        assert!(why.contains("/no/such/program"), "{why}");
        std::fs::remove_dir_all(work).unwrap();
    }

    #[test]
    fn a_place_has_the_same_cores_when_the_client_is_pinned() {
        let before = Place::new("busbar".into(), "work".into());
        before.pin_client();
        let after = Place::new("busbar".into(), "work".into());
        let cores = |place: &Place| (place.system_core, place.backend_core, place.client_core);
        assert_eq!(cores(&after), cores(&before));
    }

    #[test]
    fn an_absent_peer_is_one_line() {
        let (place, _) = place();
        let why = peer(&place, "no-such-peer", "127.0.0.1:1".parse().unwrap()).unwrap_err();
        assert!(why.contains("no-such-peer") && !why.contains('\n'), "{why}");
    }
}
