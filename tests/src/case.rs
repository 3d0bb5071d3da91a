//! One case from its folder to its outcome.

use crate::backend::Backend;
use crate::bus::{Bus, Program};
use crate::compare::{json_text, plain};
use crate::expect::check;
use crate::spec::{Content, Request, Seen, Spec, Step, With};
use crate::wire::{Connection, Message, head};
use crate::{Failure, failure};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long one answer may take if the case does not say.
const ANSWER: Duration = Duration::from_secs(30);

/// Files in which ports and the folder are replaced, by extension.
const TEXT: &[&str] =
    &["xml", "json", "xsl", "xslt", "xsd", "wsdl", "txt", "js", "xq", "xquery", "properties", "csv", "html"];

/// A case on disk.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its folder.
    pub folder: PathBuf,
    /// Its description.
    pub spec: Spec,
}

/// How a case went.
#[derive(Debug)]
pub struct Outcome {
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// The end of what the bus wrote.
    pub log: String,
    /// How long it took.
    pub elapsed: Duration,
}

impl Case {
    /// Reads `case.json` in a folder.
    pub fn read(folder: &Path) -> Result<Case, Failure> {
        let file = folder.join("case.json");
        let bytes = std::fs::read(&file).map_err(|e| failure!("{}: {e}", file.display()))?;
        let spec = serde_json::from_slice(&bytes).map_err(|e| failure!("{}: {e}", file.display()))?;
        Ok(Case { folder: folder.to_owned(), spec })
    }

    /// Runs it against a process of its own, in a working copy that is removed again.
    pub fn run(&self, program: &Program) -> Outcome {
        self.run_then(program, &mut |_| Ok(()))
    }

    /// As [`Case::run`], and then something more against the same process.
    pub fn run_then(
        &self,
        program: &Program,
        then: &mut dyn FnMut(&mut Run<'_>) -> Result<(), Failure>,
    ) -> Outcome {
        let begin = Instant::now();
        let mut log = String::new();
        let failure = match WorkingCopy::new() {
            Ok(work) => {
                let failure = self.run_in(program, &work.0, then).err();
                let ends = ["bus.out", "bus.err"].map(|f| std::fs::read(work.0.join(f)).unwrap_or_default());
                for bytes in ends {
                    log.push_str(&String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(3000)..]));
                }
                failure
            }
            Err(e) => Some(failure!("no working copy: {e}")),
        };
        Outcome { failure, log, elapsed: begin.elapsed() }
    }

    fn run_in(
        &self,
        program: &Program,
        work: &Path,
        then: &mut dyn FnMut(&mut Run<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut ports = HashMap::new();
        for name in self.spec.backends.iter().map(|b| b.name.as_str()).chain(["esb", "admin"]) {
            let port = crate::ports::free().ok_or_else(|| failure!("no free port"))?;
            ports.insert(name.to_owned(), port);
        }
        let (esb, admin) = (ports["esb"], ports["admin"]);
        let dir = work.join("case");
        let vars = Arc::new(Vars { ports, dir: dir.clone() });
        copy(&self.folder, &dir, &vars).map_err(|e| failure!("no working copy: {e}"))?;

        let mut backends = HashMap::new();
        for spec in &self.spec.backends {
            let port = vars.ports[&spec.name];
            let mut backend = Backend::new(spec.clone(), port, Arc::clone(&vars));
            backend.start().map_err(|e| failure!("backend {}: {e}", spec.name))?;
            backends.insert(spec.name.clone(), backend);
        }

        let started =
            Bus::start(program, &dir.join(&self.spec.config), esb, admin, &dir, &work.join("bus.err"));
        let mut bus = match (started, self.spec.expect_start) {
            (Ok(bus), true) => Some(bus),
            (Err(e), true) => return Err(e),
            (Ok(_), false) => {
                return Err(failure!("the configuration is faulty, but the bus started with it"));
            }
            (Err(_), false) => None,
        };
        std::thread::sleep(Duration::from_millis(self.spec.settle_ms));
        let mut run = Run { vars: &vars, esb, backends, log: work.join("bus.err") };
        let walked = self.spec.steps.iter().enumerate().try_for_each(|(n, step)| run.step(step, n + 1));
        let walked = walked.and_then(|()| then(&mut run));
        let alive = bus.as_mut().map_or(Ok(()), Bus::alive);
        if let Some(mut bus) = bus {
            let _ = bus.end();
        }
        let malformed = run.backends.iter().find_map(|(name, b)| {
            b.malformed().first().map(|why| failure!("backend {name} received a malformed request: {why}"))
        });
        match (walked, alive, malformed) {
            (Err(e), Err(dead), _) => Err(failure!("{dead}; {e}")),
            (Ok(()), Err(dead), _) => Err(dead),
            (Ok(()), _, Some(malformed)) => Err(malformed),
            (walked, ..) => walked,
        }
    }
}

/// The case while it runs.
pub struct Run<'a> {
    vars: &'a Vars,
    esb: u16,
    backends: HashMap<String, Backend>,
    log: std::path::PathBuf,
}

impl Run<'_> {
    /// What the bus has written to its log so far, in bytes: the last character may be under way.
    pub fn log(&self) -> Vec<u8> {
        std::fs::read(&self.log).unwrap_or_default()
    }

    /// Does a step and checks what is expected of it.
    pub fn step(&mut self, step: &Step, number: usize) -> Result<(), Failure> {
        let what = format!("step {number}");
        if let Some(ms) = step.wait_ms {
            std::thread::sleep(Duration::from_millis(ms));
        }
        if let Some(name) = &step.stop_backend {
            self.backend(name)?.stop();
        }
        if let Some(name) = &step.start_backend {
            self.backend(name)?.start().map_err(|e| failure!("{what}: backend {name}: {e}"))?;
        }
        if let Some(name) = &step.reset_backend {
            self.backend(name)?.reset();
        }
        if let Some(request) = &step.request {
            self.request(step, request, &what)?;
        }
        step.backend.as_ref().map_or(Ok(()), |seen| self.seen(seen, &what))
    }

    fn backend(&mut self, name: &str) -> Result<&mut Backend, Failure> {
        self.backends.get_mut(name).ok_or_else(|| failure!("there is no backend {name}"))
    }

    fn request(&self, step: &Step, request: &With<Request>, what: &str) -> Result<(), Failure> {
        let answers = self.send_all(request)?;
        if let Some(expect) = &step.expect {
            for (n, response) in answers.iter().enumerate() {
                let what =
                    if answers.len() == 1 { what.to_owned() } else { format!("{what}, answer {}", n + 1) };
                check(response, expect, self.vars, &what)?;
            }
        }
        for (n, expect) in step.expect_each.iter().enumerate() {
            let what = format!("{what}, answer {}", n + 1);
            let response = answers.get(n).ok_or_else(|| failure!("{what}: there is none"))?;
            check(response, expect, self.vars, &what)?;
        }
        for alternative in &step.expect_counts {
            let fits = |a: &&Message| check(a, &alternative.expect, self.vars, what).is_ok();
            let n = answers.iter().filter(fits).count();
            let min = alternative.min.or(alternative.count).unwrap_or(0);
            let max = alternative.max.or(alternative.count).unwrap_or(answers.len());
            if !(min..=max).contains(&n) {
                let all = answers.len();
                let like = &alternative.expect;
                return Err(failure!(
                    "{what}: {n} of {all} answers are like {like:?}, expected {min} to {max}"
                ));
            }
        }
        Ok(())
    }

    fn send_all(&self, request: &With<Request>) -> Result<Vec<Message>, Failure> {
        let times = request.times.unwrap_or(1);
        let parallel = request.parallel.unwrap_or(1);
        if parallel <= 1 {
            let mut answers = Vec::with_capacity(times);
            for n in 0..times {
                if n > 0 {
                    std::thread::sleep(Duration::from_millis(request.interval_ms));
                }
                answers.push(self.send(request)?);
            }
            return Ok(answers);
        }
        let next = AtomicUsize::new(0);
        let answers = Mutex::new(Vec::with_capacity(times));
        std::thread::scope(|scope| {
            for _ in 0..parallel.min(times) {
                scope.spawn(|| {
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= times {
                            break;
                        }
                        let response = self.send(request);
                        answers.lock().unwrap_or_else(PoisonError::into_inner).push((n, response));
                    }
                });
            }
        });
        let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        answers.sort_by_key(|(n, _)| *n);
        answers.into_iter().map(|(_, response)| response).collect()
    }

    /// One request on a connection of its own, with no more in it than the case says and HTTP needs.
    fn send(&self, request: &With<Request>) -> Result<Message, Failure> {
        let body = self.vars.content(&request.content)?;
        let method = request.method.as_deref().unwrap_or(if body.is_empty() { "GET" } else { "POST" });
        let target = self.vars.fill(request.path.as_deref().unwrap_or("/"));
        let headers = request.headers.iter().map(|(n, v)| (n.clone(), self.vars.fill_value(v))).collect();
        let timeout = request.timeout_ms.map_or(ANSWER, Duration::from_millis);
        self.exchange(method, &target, headers, body, request.chunk_size, timeout)
    }

    /// Sends a request and reads its one answer.
    pub fn exchange(
        &self,
        method: &str,
        target: &str,
        mut headers: Vec<(String, String)>,
        body: Vec<u8>,
        chunk_size: Option<usize>,
        timeout: Duration,
    ) -> Result<Message, Failure> {
        let get = |headers: &[(String, String)], name: &str| {
            headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.to_ascii_lowercase())
        };
        if get(&headers, "Host").is_none() {
            headers.insert(0, ("Host".to_owned(), format!("127.0.0.1:{}", self.esb)));
        }
        if get(&headers, "Connection").is_none() {
            headers.push(("Connection".to_owned(), "close".to_owned()));
        }
        let mut data = Vec::new();
        if !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
            if get(&headers, "Transfer-Encoding").is_some_and(|v| v.contains("chunked")) {
                for chunk in body.chunks(chunk_size.unwrap_or(64).max(1)) {
                    data.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    data.extend_from_slice(chunk);
                    data.extend_from_slice(b"\r\n");
                }
                data.extend_from_slice(b"0\r\n\r\n");
            } else {
                if get(&headers, "Content-Length").is_none() {
                    headers.push(("Content-Length".to_owned(), body.len().to_string()));
                }
                data = body;
            }
        }
        let mut bytes = head(&format!("{method} {target} HTTP/1.1"), &headers);
        bytes.append(&mut data);

        let stream =
            TcpStream::connect(("127.0.0.1", self.esb)).map_err(|e| failure!("connection failed: {e}"))?;
        let begin = Instant::now();
        let mut connection = Connection::new(stream, Some(begin + timeout));
        // An answer may come before the whole request is sent, and the rest be refused.
        let sent = connection.send(&bytes);
        match connection.read_response(method) {
            Ok(Some(_)) if connection.has_surplus() => {
                Err(failure!("{method} {target}: bytes behind the answer"))
            }
            Ok(Some(mut response)) => {
                response.elapsed = begin.elapsed();
                Ok(response)
            }
            Ok(None) => Err(failure!("{method} {target}: the connection ended without an answer")),
            Err(e) => Err(failure!("{method} {target}: {}", sent.err().unwrap_or(e))),
        }
    }

    fn seen(&mut self, seen: &Seen, what: &str) -> Result<(), Failure> {
        let vars = self.vars;
        let name = &seen.name;
        let backend = self.backend(name)?;
        let end = Instant::now() + Duration::from_millis(seen.within_ms.unwrap_or(3000));
        let wanted = seen.count.or(seen.min_count).unwrap_or(0);
        while backend.requests().len() < wanted && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        if seen.count.is_some() {
            std::thread::sleep(Duration::from_millis(seen.settle_ms));
        }
        let requests = backend.requests();
        let n = requests.len();
        let wrong = match (seen.count, seen.min_count, seen.max_count) {
            (Some(count), ..) if n != count => Some(format!("{count}")),
            (_, Some(min), _) if n < min => Some(format!("at least {min}")),
            (.., Some(max)) if n > max => Some(format!("at most {max}")),
            _ => None,
        };
        if let Some(wanted) = wrong {
            let lines: String = requests.iter().map(|m| format!("\n    {}", m.start)).collect();
            return Err(failure!("{what}: backend {name} saw {n} requests, expected {wanted}{lines}"));
        }
        for (nth, expect) in seen.requests.iter().enumerate() {
            let nth = expect.index.unwrap_or(nth);
            let what = format!("{what}, request {} at backend {name}", nth + 1);
            let request = requests.get(nth).ok_or_else(|| failure!("{what}: there is none"))?;
            check(request, expect, vars, &what)?;
        }
        for expect in &seen.any_request {
            let mut why = Vec::new();
            let fits =
                requests.iter().any(|m| check(m, expect, vars, what).map_err(|e| why.push(e.0)).is_ok());
            if !fits {
                why.truncate(3);
                let why = why.join("\n    ");
                return Err(failure!("{what}: no request at backend {name} is like {expect:?}\n    {why}"));
            }
        }
        Ok(())
    }
}

/// What stands for `@PORT:name@` and `@DIR@`, and the files behind `@DIR@`.
#[derive(Debug, Default)]
pub struct Vars {
    ports: HashMap<String, u16>,
    dir: PathBuf,
}

impl Vars {
    /// The text with ports and the folder filled in. Unknown names stay as they are.
    pub fn fill(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("@PORT:") {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let name = from["@PORT:".len()..].split_once('@').map(|(name, _)| name);
            match name.and_then(|n| self.ports.get_key_value(n)) {
                Some((name, port)) => {
                    out.push_str(&port.to_string());
                    rest = &from["@PORT:@".len() + name.len()..];
                }
                None => {
                    out.push('@');
                    rest = &from[1..];
                }
            }
        }
        out.push_str(rest);
        out.replace("@DIR@", &self.dir.to_string_lossy())
    }

    /// The same for a scalar.
    pub fn fill_value(&self, value: &serde_json::Value) -> String {
        self.fill(&plain(value))
    }

    /// A file of the case.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, Failure> {
        std::fs::read(self.dir.join(name)).map_err(|e| failure!("{name}: {e}"))
    }

    /// The bytes that a request, an answer or an expectation names; none: empty.
    pub fn content(&self, content: &Content) -> Result<Vec<u8>, Failure> {
        if let Some(file) = &content.body_file {
            self.read(file)
        } else if let Some(value) = &content.json {
            Ok(self.fill(&json_text(value)).into_bytes())
        } else if let Some(text) = &content.body {
            encode(&self.fill(text), content.body_encoding.as_deref().unwrap_or("utf-8"))
        } else if let Some(r) = &content.body_repeat {
            Ok(format!("{}{}{}", r.prefix, r.unit.repeat(r.times), r.suffix).into_bytes())
        } else {
            Ok(Vec::new())
        }
    }
}

/// The text in an encoding. UTF-16 without a byte order in its name gets a mark and is little-endian.
fn encode(text: &str, encoding: &str) -> Result<Vec<u8>, Failure> {
    let name = encoding.to_ascii_lowercase().replace('_', "-");
    let utf16 = |mark: &str, to: fn(u16) -> [u8; 2]| {
        mark.encode_utf16().chain(text.encode_utf16()).flat_map(to).collect::<Vec<u8>>()
    };
    match name.as_str() {
        "utf-8" | "utf8" => Ok(text.as_bytes().to_vec()),
        "utf-16" | "utf16" => Ok(utf16("\u{feff}", u16::to_le_bytes)),
        "utf-16le" | "utf-16-le" => Ok(utf16("", u16::to_le_bytes)),
        "utf-16be" | "utf-16-be" => Ok(utf16("", u16::to_be_bytes)),
        _ => {
            let label = match name.as_str() {
                "latin-1" => "latin1",
                other => other,
            };
            let encoding = encoding_rs::Encoding::for_label(label.as_bytes())
                .ok_or_else(|| failure!("unknown body_encoding {encoding}"))?;
            match encoding.encode(text) {
                (bytes, _, false) => Ok(bytes.into_owned()),
                _ => Err(failure!("the body has characters that {name} has not")),
            }
        }
    }
}

/// A temporary folder, removed with its content.
struct WorkingCopy(PathBuf);

impl WorkingCopy {
    fn new() -> std::io::Result<WorkingCopy> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let unique = RandomState::new().hash_one(NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("busbar-case-{unique:016x}"));
        std::fs::create_dir(&path)?;
        Ok(WorkingCopy(path))
    }
}

impl Drop for WorkingCopy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Copies a folder and fills in the text files.
fn copy(from: &Path, to: &Path, vars: &Vars) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target, vars)?;
            continue;
        }
        let bytes = std::fs::read(&source)?;
        let extension = source.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
        let is_text = TEXT.contains(&extension.as_str()) || entry.file_name() == "EP_LIST";
        match String::from_utf8(bytes) {
            Ok(text) if is_text => std::fs::write(target, vars.fill(&text))?,
            Ok(text) => std::fs::write(target, text)?,
            Err(e) => std::fs::write(target, e.into_bytes())?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_in_ports_and_the_folder() {
        let vars = Vars { ports: [("a-b".to_owned(), 7), ("esb".to_owned(), 8)].into(), dir: "/d".into() };
        #[rustfmt::skip]
        let cases = [
            ("x", "x"), ("@PORT:a-b@:@PORT:esb@", "7:8"), ("@PORT:other@ @PORT:esb@", "@PORT:other@ 8"),
            ("@PORT:", "@PORT:"), ("@DIR@/f", "/d/f"),
        ];
        for (text, filled) in cases {
            assert_eq!(vars.fill(text), filled, "{text}");
        }
    }

    #[test]
    fn encodes() {
        #[rustfmt::skip]
        let cases: &[(&str, &[u8])] = &[
            ("utf-8", b"\xc3\xa9"), ("latin-1", b"\xe9"), ("ISO-8859-1", b"\xe9"), ("utf-16", b"\xff\xfe\xe9\x00"),
            ("utf-16be", b"\x00\xe9"), ("windows-1252", b"\xe9"),
        ];
        for (name, bytes) in cases {
            assert_eq!(encode("é", name).as_deref(), Ok(*bytes), "{name}");
        }
        assert!(encode("€", "us-ebcdic").is_err());
        assert!(encode("я", "latin1").is_err());
    }
}
