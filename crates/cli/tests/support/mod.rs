//! The binary as a process, and requests over plain sockets.
#![allow(clippy::unwrap_used, dead_code)] // helpers of tests; not every test uses all of them

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for a piece of an answer: machines are shared, and some tests fill them.
const PATIENCE: Duration = Duration::from_secs(120);

/// A configuration file of its own for a test, with these artifacts.
pub fn configuration(name: &str, artifacts: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.xml"));
    configure(&path, artifacts);
    path
}

/// Puts a configuration in the place of another in one step.
pub fn configure(path: &Path, artifacts: &str) {
    let text = format!("<definitions xmlns=\"http://ws.apache.org/ns/synapse\">{artifacts}</definitions>");
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(&beside, path).unwrap();
}

/// Raises the limit of descriptors of this process, and of those that it starts, as far as the system lets it; what it is then.
pub fn descriptors() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// Enough for 10,000 connections with both ends in one process.
    const WANTED: u64 = 65_536;
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // root may raise the limit further.
    if maximum.is_some_and(|most| most < WANTED) {
        let raised = Rlimit { current: Some(WANTED), maximum: Some(WANTED) };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            return WANTED as usize;
        }
    }
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    usize::try_from(maximum.unwrap_or(1 << 20)).unwrap_or(usize::MAX)
}

/// A port that is free now, and that no outgoing connection gets meanwhile ([`tests::ports::free`]).
pub fn free_port() -> u16 {
    tests::ports::free().unwrap()
}

/// Runs the binary to its end.
pub fn busbar(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_busbar")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Runs the binary to its end with an input: exit code, stdout, stderr.
pub fn fed(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_busbar"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may not read at all.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let out = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

/// The binary while it runs.
pub struct Process {
    child: Child,
    stderr: PathBuf,
    /// The line that says that it is ready.
    pub ready: String,
}

impl Process {
    /// Starts it and waits until it is ready.
    pub fn start(arguments: &[&str]) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
        command.args(arguments);
        Process::begin(command)
    }

    /// `busbar run` with a limit of the shell (`-v 800000`).
    pub fn limited(limit: &str, path: &Path) -> Process {
        let mut command = Command::new("sh");
        let script = format!("ulimit {limit} && exec \"$0\" \"$@\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_busbar"), "run", path.to_str().unwrap()]);
        command.args(["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--workers", "2"]);
        command.args(["--set", "deploy.watch=false"]);
        Process::begin(command)
    }

    /// `busbar run` as a user for whom limits of the number of threads count; `None`: this user cannot become another.
    pub fn as_nobody(path: &Path) -> Option<Process> {
        let user = ["--reuid=60123", "--clear-groups", env!("CARGO_BIN_EXE_busbar")];
        let can = Command::new("setpriv").args(user).arg("--version").output();
        if !can.is_ok_and(|out| out.status.success()) {
            return None;
        }
        let mut command = Command::new("setpriv");
        command.args(user).args(["run", path.to_str().unwrap(), "--http", "127.0.0.1:0"]);
        command.args(["--admin", "127.0.0.1:0", "--workers", "2", "--set", "deploy.watch=false"]);
        Some(Process::begin(command))
    }

    /// Bounds the threads of the user of [`as_nobody`](Process::as_nobody).
    pub fn threads(&self, most: &str) {
        let id = self.id().to_string();
        let limit = format!("--nproc={most}:");
        let set = Command::new("setpriv")
            .args(["--reuid=60123", "--clear-groups", "prlimit", "--pid", &id, &limit])
            .status();
        assert!(set.unwrap().success());
    }

    fn begin(mut command: Command) -> Process {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let stderr =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stderr-{}-{number}", std::process::id()));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let process = Process { child, stderr, ready };
        assert!(process.ready.contains(" ready "), "{}{}", process.ready, process.stderr());
        process
    }

    /// `busbar run` on free ports; what changes is taken when the test says so.
    pub fn run(path: &Path, more: &[&str]) -> Process {
        Process::watching(path, &[&["--set", "deploy.watch=false"], more].concat())
    }

    /// `busbar run` on free ports, which watches its configuration.
    pub fn watching(path: &Path, more: &[&str]) -> Process {
        let path = path.to_str().unwrap();
        let ports = ["run", path, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--workers", "2"];
        Process::start(&[&ports[..], more].concat())
    }

    /// `busbar backend` on a free port.
    pub fn backend(more: &[&str]) -> Process {
        Process::start(&[&["backend", "--listen", "127.0.0.1:0", "--workers", "1"], more].concat())
    }

    /// A field of the ready line.
    pub fn field(&self, name: &str) -> &str {
        let fields = self.ready.split_whitespace().filter_map(|field| field.split_once('='));
        fields.filter(|(field, _)| *field == name).map(|(_, value)| value).next().expect(name)
    }

    /// Its http address.
    pub fn http(&self) -> &str {
        self.field("http")
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it said so far.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Waits until it says something.
    pub fn says(&self, what: &str, times: usize) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.stderr().matches(what).count() < times {
            assert!(Instant::now() < deadline, "`{what}` was not said:\n{}", self.stderr());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal: `TERM`, `HUP`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Waits for its end and gives the exit code.
    pub fn wait(&mut self) -> Option<i32> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("still running after 20 s:\n{}", self.stderr());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}{}", self.ready, self.stderr());
        }
        let _ = std::fs::remove_file(&self.stderr);
    }
}

/// Waits until it is so. (What a [`Process`] of the test has said is printed where the test fails.)
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Status, head and body of the answer to a request on a connection of its own; an error where the connection fails.
pub fn ask(address: &str, method: &str, path: &str, body: &[u8]) -> std::io::Result<(u16, String, Vec<u8>)> {
    let mut stream = TcpStream::connect(address)?;
    exchange(&mut stream, method, path, body, "Connection: close\r\n")
}

/// As [`ask`], on a connection that may stay open.
pub fn exchange(
    stream: &mut TcpStream,
    method: &str,
    path: &str,
    body: &[u8],
    more: &str,
) -> std::io::Result<(u16, String, Vec<u8>)> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    let kind = if more.contains("Content-Type") { "" } else { "Content-Type: text/xml\r\n" };
    let host = stream.peer_addr()?;
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{kind}Content-Length: {length}\r\n{more}\r\n");
    // Beside the reading: an answer may begin before the request has ended.
    let (mut writing, request) = (stream.try_clone()?, [head.as_bytes(), body].concat());
    std::thread::spawn(move || drop(writing.write_all(&request)));
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    let field = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    match field("Content-Length").and_then(|length| length.parse().ok()) {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body)?;
        }
        None if field("Transfer-Encoding").is_some() => loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
            let start = body.len();
            body.resize(start + size + 2, 0);
            reader.read_exact(&mut body[start..])?;
            body.truncate(start + size);
            if size == 0 {
                break;
            }
        },
        None => {
            reader.read_to_end(&mut body)?;
        }
    }
    Ok((status, head, body))
}
