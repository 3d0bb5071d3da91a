//! Servers, raw clients and scripted backends on free ports.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use busbar_transport::{
    Body, Client, ClientLimits, ConnectionInfo, Handler, OutRequest, Request, Response, SendOptions, Server,
    ServerLimits, Target, Workers,
};

/// Answers with the body it got; a few paths do something else.
pub struct Echo;

impl Handler for Echo {
    async fn handle(&self, request: Request, _: &ConnectionInfo) -> Response {
        let head = &request.head;
        match head.path() {
            "/ignore" => Response::new(200, "ignored"),
            "/length" => match request.body.collect(1 << 30).await {
                Ok(bytes) => Response::new(200, bytes.len().to_string().into_bytes()),
                Err(e) => Response::new(400, e.to_string().into_bytes()),
            },
            "/head" => {
                let mut text = format!("{} {}\n", head.method, head.target);
                for (name, value) in head.headers.iter() {
                    text += &format!("{name}: {}\n", String::from_utf8_lossy(value));
                }
                Response::new(200, text.into_bytes())
            }
            "/close" => Response { close: true, ..Response::new(200, "bye") },
            "/first" => {
                let mut body = request.body;
                while body.buffered().len() < 5 && !body.is_complete() {
                    if let Err(e) = body.more().await {
                        return Response::new(400, e.to_string().into_bytes());
                    }
                }
                // As much as there is without waiting for long.
                tokio::time::sleep(Duration::from_millis(15)).await;
                Response::new(200, "first")
            }
            "/204" => Response::empty(204),
            "/slow" => {
                tokio::time::sleep(Duration::from_millis(300)).await;
                Response::new(200, "slow")
            }
            _ => Response::new(200, request.body).with("X-Case", "Kept"),
        }
    }
}

/// Relays to one target; a failure becomes a 502 with the error's code and text.
pub struct Relay {
    pub client: Client,
    pub target: Target,
    pub options: SendOptions,
}

impl Relay {
    pub fn to(addr: SocketAddr) -> Relay {
        Relay {
            client: Client::new(ClientLimits::default()),
            target: Target::http(&addr.ip().to_string(), addr.port()),
            options: SendOptions::default(),
        }
    }
}

impl Handler for Relay {
    async fn handle(&self, mut request: Request, _: &ConnectionInfo) -> Response {
        let out = OutRequest {
            method: &request.head.method,
            target: &request.head.target,
            headers: &request.head.headers,
            host: None,
            body: &mut request.body,
        };
        match self.client.send(&self.target, out, &self.options).await {
            Ok(response) => response,
            Err(e) => Response::new(502, format!("{} {e}", e.kind.code()).into_bytes()),
        }
    }
}

pub struct Running {
    pub server: Arc<Server>,
    pub addr: SocketAddr,
    _workers: Workers,
}

pub fn start<H: Handler>(handler: H) -> Running {
    start_with(handler, ServerLimits::default())
}

pub fn start_with<H: Handler>(handler: H, limits: ServerLimits) -> Running {
    let workers = Workers::start(1).unwrap();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), None, limits).unwrap();
    server.serve(&workers, Arc::new(handler)).unwrap();
    let addr = server.local_addr();
    Running { server: Arc::new(server), addr, _workers: workers }
}

pub fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends the bytes and reads until the server closes (or resets).
pub fn until_close(addr: SocketAddr, wire: &[u8]) -> String {
    let mut stream = connect(addr);
    stream.write_all(wire).unwrap();
    let mut got = Vec::new();
    let _ = stream.read_to_end(&mut got);
    String::from_utf8_lossy(&got).into_owned()
}

/// Reads one response whose body has a Content-Length or is chunked; head and body.
pub fn read_response(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("response head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let lower = head.to_ascii_lowercase();
    let mut body = Vec::new();
    if let Some(at) = lower.find("content-length: ") {
        let digits: String = lower[at + 16..].chars().take_while(char::is_ascii_digit).collect();
        body.resize(digits.parse().unwrap(), 0);
        stream.read_exact(&mut body).expect("response body");
    } else if lower.contains("transfer-encoding: chunked") {
        loop {
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") {
                stream.read_exact(&mut byte).expect("chunk size");
                line.push(byte[0]);
            }
            let size = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            stream.read_exact(&mut chunk).expect("chunk");
            chunk.truncate(size);
            body.extend_from_slice(&chunk);
            if size == 0 {
                break;
            }
        }
    }
    (head, body)
}

/// Reads a request head from a raw backend connection.
pub fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

/// A backend that runs `script` on each connection, with its number from 0.
pub fn backend(script: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let script = Arc::new(script);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (stream, script) = (stream.unwrap(), script.clone());
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            thread::spawn(move || script(number, stream));
        }
    });
    addr
}

/// Sends through a client on a runtime of its own.
pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub async fn post(
    client: &Client,
    target: &Target,
    body: impl Into<Body>,
) -> Result<Response, busbar_transport::SendError> {
    let mut body = body.into();
    let head = busbar_transport::Headers::new();
    let out = OutRequest {
        method: &busbar_transport::Method::Post,
        target: "/",
        headers: &head,
        host: None,
        body: &mut body,
    };
    client.send(target, out, &SendOptions::default()).await
}
