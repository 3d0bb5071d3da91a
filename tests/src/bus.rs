//! The process under test: started, found ready, ended.

use crate::{Failure, failure};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How the bus is started.
#[derive(Debug, Clone)]
pub enum Program {
    /// The `busbar` binary at that path: ready when it prints its ready line.
    Busbar(PathBuf),
    /// A shell command with `{config}`, `{port}`, `{admin}` and `{dir}`: ready when the port accepts.
    Shell(String),
}

/// How long the bus may take to be ready.
const START: Duration = Duration::from_secs(60);
/// How long it may take to end after SIGTERM.
const END: Duration = Duration::from_secs(3);

/// A running bus; it ends when this is dropped.
pub struct Bus {
    child: Child,
    log: PathBuf,
}

impl Bus {
    /// Starts it with the configuration in its folder and waits until it is ready. Its output goes to the file `log`.
    pub fn start(
        program: &Program,
        config: &Path,
        port: u16,
        admin: u16,
        dir: &Path,
        log: &Path,
    ) -> Result<Bus, Failure> {
        let broken = |e: std::io::Error| failure!("the bus cannot be started: {e}");
        let mut command = match program {
            Program::Busbar(binary) => {
                let mut command = Command::new(binary);
                command.arg("run").arg(config);
                command.args(["--http", &format!("127.0.0.1:{port}")]);
                command.args(["--admin", "127.0.0.1:0"]).stdout(Stdio::piped());
                command
            }
            Program::Shell(template) => {
                let line = template
                    .replace("{config}", &format!("'{}'", config.display()))
                    .replace("{port}", &port.to_string())
                    .replace("{admin}", &admin.to_string())
                    .replace("{dir}", &format!("'{}'", dir.display()));
                let mut command = Command::new("sh");
                command.args(["-c", &format!("exec {line}")]);
                command.stdout(File::create(log.with_extension("out")).map_err(broken)?);
                command
            }
        };
        command.current_dir(dir).stdin(Stdio::null()).stderr(File::create(log).map_err(broken)?);
        // A group of its own: whatever it starts ends with it, and nothing else does.
        command.process_group(0);
        let child = command.spawn().map_err(broken)?;
        let mut bus = Bus { child, log: log.to_owned() };
        match bus.child.stdout.take() {
            Some(stdout) => bus.wait_for_ready_line(stdout)?,
            None => bus.wait_for_port(port)?,
        }
        Ok(bus)
    }

    fn wait_for_ready_line(&mut self, stdout: impl Read + Send + 'static) -> Result<(), Failure> {
        let (sender, lines) = mpsc::channel();
        let mut log = File::create(self.log.with_extension("out")).ok();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(log) = &mut log {
                    let _ = writeln!(log, "{line}");
                }
                // Nobody listens any more once it is ready; the pipe is still read so that it never fills.
                let _ = sender.send(line);
            }
        });
        let end = Instant::now() + START;
        loop {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line.starts_with("busbar ready ") => return Ok(()),
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    return Err(failure!("the bus was not ready within {START:?}"));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status = self.wait(Duration::from_secs(1));
                    return Err(failure!(
                        "the bus ended before it was ready ({})",
                        status.unwrap_or_default()
                    ));
                }
            }
        }
    }

    fn wait_for_port(&mut self, port: u16) -> Result<(), Failure> {
        let end = Instant::now() + START;
        while Instant::now() < end {
            if let Some(status) = self.wait(Duration::ZERO) {
                return Err(failure!("the bus ended before it was ready ({status})"));
            }
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(failure!("the bus did not listen on port {port} within {START:?}"))
    }

    /// Its exit status, as text, if it ends in time.
    fn wait(&mut self, time: Duration) -> Option<String> {
        let end = Instant::now() + time;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status.to_string());
            }
            if Instant::now() >= end {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether it still runs; `Err` has its exit status.
    pub fn alive(&mut self) -> Result<(), Failure> {
        self.wait(Duration::ZERO).map_or(Ok(()), |status| Err(failure!("the bus ended by itself ({status})")))
    }

    /// Ends it: SIGTERM, after a while SIGKILL. `Err`: it had to be killed.
    pub fn end(&mut self) -> Result<(), Failure> {
        self.signal("TERM");
        let ended = self.wait(END);
        // What it has started may outlive it.
        self.signal("KILL");
        self.wait(END);
        ended.map(drop).ok_or_else(|| failure!("the bus did not end within {END:?} of SIGTERM"))
    }

    fn signal(&self, signal: &str) {
        // The shell's own `kill`: the standard library sends no signals but SIGKILL, and that not to a group.
        let _ = Command::new("sh")
            .args(["-c", &format!("kill -{signal} -{}", self.child.id())])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        if self.alive().is_ok() {
            let _ = self.end();
        }
    }
}
