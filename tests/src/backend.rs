//! Backend stubs: a thread per connection, every request kept.

use crate::case::Vars;
use crate::compare::matches;
use crate::quotes::{self, Reply};
use crate::spec::{Backend as Spec, BackendKind, StubResponse, With};
use crate::wire::{Connection, Message, WireError, head};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A stub on its port.
pub struct Backend {
    shared: Arc<Shared>,
    /// Where it listens; of a refused one where it does not.
    pub port: u16,
    running: Option<Running>,
}

struct Shared {
    spec: Spec,
    vars: Arc<Vars>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: Vec<Arc<Message>>,
    /// How often each route has answered.
    hits: Vec<usize>,
    /// What came in that is not HTTP as it must be.
    malformed: Vec<String>,
    open: HashMap<usize, TcpStream>,
    connections: usize,
}

enum Running {
    /// The listener is held and nothing is read.
    Blackhole {
        _listener: TcpListener,
    },
    Server {
        stop: Arc<AtomicBool>,
        thread: std::thread::JoinHandle<()>,
    },
}

impl Backend {
    /// A stub that does not run yet.
    pub fn new(spec: Spec, port: u16, vars: Arc<Vars>) -> Backend {
        let hits = vec![0; spec.routes.len()];
        let state = Mutex::new(State { hits, ..State::default() });
        Backend { shared: Arc::new(Shared { spec, vars, state }), port, running: None }
    }

    /// Listens. Does nothing on a stub that runs, or is to refuse.
    pub fn start(&mut self) -> std::io::Result<()> {
        if self.running.is_some() || self.shared.spec.kind == BackendKind::Refused {
            return Ok(());
        }
        let listener = TcpListener::bind(("127.0.0.1", self.port))?;
        if self.shared.spec.kind == BackendKind::Blackhole {
            self.running = Some(Running::Blackhole { _listener: listener });
            return Ok(());
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (Arc::clone(&self.shared), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        self.running = Some(Running::Server { stop, thread });
        Ok(())
    }

    /// Stops listening and ends every connection: one that is kept alive must not outlive its server.
    pub fn stop(&mut self) {
        if let Some(Running::Server { stop, thread }) = self.running.take() {
            stop.store(true, Ordering::SeqCst);
            // Wakes the thread that accepts.
            let _ = TcpStream::connect(("127.0.0.1", self.port));
            let _ = thread.join();
            for connection in self.shared.state().open.values() {
                let _ = connection.shutdown(Shutdown::Both);
            }
        }
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Arc<Message>> {
        self.shared.state().requests.clone()
    }

    /// What came in that breaks the protocol.
    pub fn malformed(&self) -> Vec<String> {
        self.shared.state().malformed.clone()
    }

    /// Forgets the requests.
    pub fn reset(&self) {
        self.shared.state().requests.clear();
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) {
        let id = {
            let mut state = self.state();
            state.connections += 1;
            let id = state.connections;
            if let Ok(handle) = stream.try_clone() {
                state.open.insert(id, handle);
            }
            id
        };
        let mut connection = Connection::new(stream, None);
        loop {
            match connection.read_request() {
                Ok(Some(request)) => {
                    let request = Arc::new(request);
                    self.state().requests.push(Arc::clone(&request));
                    let closes =
                        request.headers.get("Connection").is_some_and(|c| c.eq_ignore_ascii_case("close"));
                    match self.answer(&request) {
                        Some(response) if connection.send(&response.bytes).is_ok() => {
                            if closes || response.close {
                                break;
                            }
                        }
                        _ => break,
                    }
                }
                Err(WireError::Malformed(why)) => {
                    self.state().malformed.push(why);
                    let _ = connection
                        .send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                    break;
                }
                Ok(None) | Err(_) => break,
            }
        }
        // The handle in `open` keeps the socket alive until it is gone too.
        self.state().open.remove(&id);
    }

    /// `None`: the connection ends without an answer.
    fn answer(&self, request: &Message) -> Option<Response> {
        let spec = &self.spec;
        match spec.kind {
            BackendKind::Stockquote => {
                pause(spec.delay_ms);
                if let (Some(file), "GET") = (&spec.wsdl_file, request.method())
                    && request
                        .target()
                        .split_once('?')
                        .is_some_and(|(_, q)| q.to_lowercase().contains("wsdl"))
                {
                    let body = self.vars.read(file).unwrap_or_default();
                    return Some(reply(&Reply { status: 200, content_type: "text/xml", body }));
                }
                let fields = spec.fields_namespace.as_deref().unwrap_or(quotes::SERVICE);
                Some(reply(&quotes::answer(request, fields, spec.days.unwrap_or(3))))
            }
            BackendKind::Lb => {
                pause(spec.delay_ms);
                Some(reply(&quotes::server_name(request, spec.server_name.as_ref().unwrap_or(&spec.name))))
            }
            _ => self.route(request),
        }
    }

    fn route(&self, request: &Message) -> Option<Response> {
        let target = request.target();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        // A proxied request names the host too.
        let path =
            path.strip_prefix("http://").map_or(path, |rest| rest.find('/').map_or("/", |at| &rest[at..]));
        let found = self.spec.routes.iter().position(|r| is_for(&r.answers[0], request, path, query));
        let Some(index) = found else {
            let body = b"no such route in the stub".to_vec();
            return Some(reply(&Reply { status: 404, content_type: "text/plain", body }));
        };
        let answers = &self.spec.routes[index].answers;
        let nth = {
            let mut state = self.state();
            state.hits[index] += 1;
            state.hits[index]
        };
        let answer = &answers[nth.min(answers.len()) - 1];
        pause(answer.delay_ms);
        if answer.close { None } else { Some(self.respond(answer, request)) }
    }

    fn respond(&self, answer: &With<StubResponse>, request: &Message) -> Response {
        let mut headers: Vec<(String, String)> =
            answer.headers.iter().map(|(n, v)| (n.clone(), self.vars.fill_value(v))).collect();
        let body = if answer.echo {
            let typed = headers.iter().any(|(n, _)| n.eq_ignore_ascii_case("Content-Type"));
            if let (false, Some(content_type)) = (typed, request.headers.get("Content-Type")) {
                headers.push(("Content-Type".to_owned(), content_type));
            }
            request.body.clone()
        } else if answer.echo_request {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            let fields: Map<String, Value> =
                request.headers.0.iter().map(|(n, v)| (n.clone(), Value::from(v.as_str()))).collect();
            let mut seen = Map::new();
            seen.insert("method".to_owned(), request.method().into());
            seen.insert("path".to_owned(), request.target().into());
            seen.insert("headers".to_owned(), fields.into());
            seen.insert("body".to_owned(), request.text().into());
            crate::compare::json_text(&Value::Object(seen)).into_bytes()
        } else {
            self.vars.content(&answer.content).unwrap_or_else(|e| e.0.into_bytes())
        };
        let mut response = respond(answer.status.unwrap_or(200), answer.reason.as_deref(), headers, &body);
        response.close = answer.close_after;
        response
    }
}

fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

fn is_for(route: &StubResponse, request: &Message, path: &str, query: &str) -> bool {
    let path_fits = |pattern: &str| match (pattern.strip_prefix('~'), pattern.strip_suffix('*')) {
        (Some(regex), _) => matches(regex, path).unwrap_or(false),
        (None, Some(prefix)) => path.starts_with(prefix),
        (None, None) => path == pattern,
    };
    route.method.as_deref().is_none_or(|m| m.split(',').any(|m| m == request.method()))
        && route.path.as_deref().is_none_or(path_fits)
        && route.query.as_deref().is_none_or(|q| q == query)
        && route.body_contains.as_deref().is_none_or(|part| request.text().contains(part))
}

struct Response {
    bytes: Vec<u8>,
    close: bool,
}

fn reply(reply: &Reply) -> Response {
    let headers = match reply.content_type {
        "" => Vec::new(),
        value => vec![("Content-Type".to_owned(), value.to_owned())],
    };
    respond(reply.status, None, headers, &reply.body)
}

fn respond(status: u16, reason: Option<&str>, mut headers: Vec<(String, String)>, body: &[u8]) -> Response {
    let framed =
        |n: &str| n.eq_ignore_ascii_case("Content-Length") || n.eq_ignore_ascii_case("Transfer-Encoding");
    if status != 204 && !headers.iter().any(|(n, _)| framed(n)) {
        headers.push(("Content-Length".to_owned(), body.len().to_string()));
    }
    let mut bytes = head(&format!("HTTP/1.1 {status} {}", reason.unwrap_or(phrase(status))), &headers);
    if status != 204 {
        bytes.extend_from_slice(body);
    }
    Response { bytes, close: false }
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        302 => "Found",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
