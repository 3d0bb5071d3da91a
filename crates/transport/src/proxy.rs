//! Forward proxies: a tunnel for what is encrypted or speaks HTTP/2, the absolute form for the rest (RFC 9110, 9.3.6 and RFC 9112, 3.2.2).

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::SendErrorKind;

/// A proxy between this bus and backends. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Proxy(Arc<Inner>);

#[derive(PartialEq, Eq, Hash)]
struct Inner {
    host: String,
    port: u16,
    authorization: Option<String>,
}

impl Proxy {
    /// A proxy at an address; `authorization` is the whole value of its `Proxy-Authorization` field.
    pub fn new(host: &str, port: u16, authorization: Option<String>) -> Proxy {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        Proxy(Arc::new(Inner { host, port, authorization }))
    }

    pub(crate) fn host(&self) -> &str {
        &self.0.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port
    }

    pub(crate) fn authorization(&self) -> Option<&str> {
        self.0.authorization.as_deref()
    }

    /// Asks for a tunnel to `host:port`.
    pub(crate) async fn tunnel(&self, stream: &mut TcpStream, to: &str) -> Result<(), SendErrorKind> {
        let failed = |error: io::Error| SendErrorKind::Connect(Arc::new(error));
        let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
        if let Some(value) = self.authorization() {
            request.push_str(&format!("Proxy-Authorization: {value}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await.map_err(failed)?;
        let (status, reason) = self.answer(stream).await.map_err(failed)?;
        match status {
            200..300 => Ok(()),
            407 => Err(self.refused()),
            _ => {
                Err(failed(io::Error::other(format!("the proxy {self} opens no tunnel: {status} {reason}"))))
            }
        }
    }

    /// 407: it is about the credentials of this bus, whoever asked (RFC 9110, 15.5.8).
    pub(crate) fn refused(&self) -> SendErrorKind {
        let why = format!("the proxy {self} wants other credentials (407)");
        SendErrorKind::Connect(Arc::new(io::Error::other(why)))
    }

    /// The head of the answer. Behind that of a tunnel nothing comes before the client has spoken; what would is not read.
    async fn answer(&self, stream: &mut TcpStream) -> io::Result<(u16, String)> {
        const MOST: usize = 16 * 1024;
        let mut head = Vec::with_capacity(512);
        while !head.ends_with(b"\r\n\r\n") {
            let ended = |why| io::Error::new(io::ErrorKind::InvalidData, format!("the proxy {self} {why}"));
            if head.len() >= MOST {
                return Err(ended("answers without end"));
            }
            // What belongs to the tunnel stays in the socket: no more is taken than up to an end that may be near.
            let mut seen = [0; 512];
            let n = stream.peek(&mut seen).await?;
            if n == 0 {
                return Err(ended("closed the connection"));
            }
            let before = head.len().min(3);
            let joined = [&head[head.len() - before..], &seen[..n]].concat();
            let end = joined.windows(4).position(|four| four == b"\r\n\r\n");
            let take = end.map_or(n, |at| at + 4 - before);
            let from = head.len();
            head.resize(from + take, 0);
            stream.read_exact(&mut head[from..]).await?;
        }
        let line = head.split(|b| *b == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut parts = line.splitn(3, ' ');
        let spoken = parts.next().is_some_and(|version| version.starts_with("HTTP/1."));
        let status = parts.next().filter(|_| spoken).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the proxy {self} does not answer in HTTP/1.1"),
            )
        })?;
        Ok((status, parts.next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(80).collect()))
    }
}

impl std::fmt::Display for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.host.contains(':') {
            true => write!(f, "[{}]:{}", self.0.host, self.0.port),
            false => write!(f, "{}:{}", self.0.host, self.0.port),
        }
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({self})")
    }
}
