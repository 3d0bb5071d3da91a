//! Lines and blocks of bytes to and from a mail server, each within its time.

use super::{CONNECTIVITY, Failure, Server};
use flow::Services;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use transport::{ClientTls, ClientTlsOptions, Roots, Socket};

/// Longest line that a server may send.
const LONGEST_LINE: usize = 4 << 20;
/// Most bytes of an answer that has a few lines.
pub(super) const SHORT: usize = 256 << 10;
/// Bytes per second that a server has to send on average, after the timeout of its answer.
const SLOWEST: f64 = 8192.0;

/// A connection to a mail server.
pub(super) struct Wire {
    socket: BufReader<Socket>,
    /// Host and port, for messages.
    peer: String,
    read: Duration,
    write: Duration,
    /// When the command was sent, and the bytes of its answer so far.
    sent_at: Instant,
    answered: usize,
}

impl Wire {
    /// Connects, with TLS where it is implicit.
    pub(super) async fn connect(server: &Server, services: &Services) -> Result<Wire, Failure> {
        let peer = format!("{}:{}", server.host, server.port);
        let connecting = async {
            let socket =
                services.client.dial(&server.host, server.port).await.map_err(|why| why.to_string())?;
            match server.secure {
                true => secured(socket, server, services).await,
                false => Ok(socket),
            }
        };
        let connected = tokio::time::timeout(server.connect, connecting).await;
        let socket = connected
            .unwrap_or_else(|_| Err(format!("connecting took longer than {} ms", server.connect.as_millis())))
            .map_err(|why| Failure::new(CONNECTIVITY, format!("{peer}: {why}")))?;
        Ok(Wire::of(BufReader::new(socket), peer, server.read, server.write))
    }

    /// Upgrades to TLS. Plain text that the server sent before is refused.
    pub(super) async fn start_tls(self, server: &Server, services: &Services) -> Result<Wire, Failure> {
        let Wire { socket, peer, read, write, .. } = self;
        if !socket.buffer().is_empty() {
            return Err(Failure::new(CONNECTIVITY, format!("{peer}: the server sent more ahead of TLS")));
        }
        let secured =
            tokio::time::timeout(server.connect, secured(socket.into_inner(), server, services)).await;
        let socket = secured
            .unwrap_or_else(|_| Err("the TLS handshake took too long".to_owned()))
            .map_err(|why| Failure::new(CONNECTIVITY, format!("{peer}: {why}")))?;
        Ok(Wire::of(BufReader::new(socket), peer, read, write))
    }

    fn of(socket: BufReader<Socket>, peer: String, read: Duration, write: Duration) -> Wire {
        Wire { socket, peer, read, write, sent_at: Instant::now(), answered: 0 }
    }

    /// The rest of the answer's timeout: a server that keeps sending a little is cut off in the end.
    fn time(&self) -> Duration {
        let earned = Duration::from_secs_f64(self.answered as f64 / SLOWEST);
        self.read.min((self.read * 2 + earned).saturating_sub(self.sent_at.elapsed()))
    }

    fn silent(&self) -> Failure {
        let why = match self.answered {
            0 => format!("the server did not answer within {} ms", self.read.as_millis()),
            _ => "the server takes too long for its answer".to_owned(),
        };
        self.broken(why)
    }

    /// Sets another timeout.
    pub(super) fn patience(&mut self, time: Duration) -> Duration {
        std::mem::replace(&mut self.read, time)
    }

    /// The next line without its end, of at most `most` bytes.
    pub(super) async fn line(&mut self, most: usize) -> Result<String, Failure> {
        Ok(String::from_utf8_lossy(&self.raw_line(most).await?).into_owned())
    }

    /// As [`Wire::line`], as bytes.
    pub(super) async fn raw_line(&mut self, most: usize) -> Result<Vec<u8>, Failure> {
        let mut line = Vec::new();
        let most = most.min(LONGEST_LINE);
        let time = self.time();
        let mut bounded = (&mut self.socket).take(u64::try_from(most).unwrap_or(u64::MAX));
        let reading = tokio::time::timeout(time, bounded.read_until(b'\n', &mut line)).await;
        match reading {
            Err(_) => Err(self.silent()),
            Ok(Err(why)) => Err(self.broken(why.to_string())),
            Ok(Ok(_)) if line.last() != Some(&b'\n') => {
                let why = match line.len() >= most {
                    true => "the server sent more than its answer may have",
                    false => "the server closed the connection",
                };
                Err(self.broken(why.to_owned()))
            }
            Ok(Ok(_)) => {
                self.answered += line.len();
                line.pop();
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                Ok(line)
            }
        }
    }

    /// Reads `length` bytes.
    pub(super) async fn block(&mut self, length: usize) -> Result<Vec<u8>, Failure> {
        let mut block = Vec::new();
        while block.len() < length {
            let wanted = u64::try_from(length - block.len()).unwrap_or(u64::MAX).min(64 << 10);
            let time = self.time();
            let mut bounded = (&mut self.socket).take(wanted);
            // Each part has the timeout, so that a large block may take longer than a short one.
            match tokio::time::timeout(time, bounded.read_to_end(&mut block)).await {
                Err(_) => return Err(self.broken("the server stopped within a message".to_owned())),
                Ok(Err(why)) => return Err(self.broken(why.to_string())),
                Ok(Ok(0)) => return Err(self.broken("the server closed the connection".to_owned())),
                Ok(Ok(count)) => self.answered += count,
            }
        }
        Ok(block)
    }

    /// Sends bytes.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        for part in bytes.chunks(64 << 10) {
            match tokio::time::timeout(self.write, self.socket.write_all(part)).await {
                Err(_) => return Err(self.broken("the server takes nothing".to_owned())),
                Ok(Err(why)) => return Err(self.broken(why.to_string())),
                Ok(Ok(())) => {}
            }
        }
        match tokio::time::timeout(self.write, self.socket.flush()).await {
            Ok(Ok(())) => {
                (self.sent_at, self.answered) = (Instant::now(), 0);
                Ok(())
            }
            Ok(Err(why)) => Err(self.broken(why.to_string())),
            Err(_) => Err(self.broken("the server takes nothing".to_owned())),
        }
    }

    /// A failure of the connection.
    pub(super) fn broken(&self, why: String) -> Failure {
        Failure::new(CONNECTIVITY, format!("{}: {why}", self.peer))
    }

    /// Host and port, for messages.
    pub(super) fn peer(&self) -> &str {
        &self.peer
    }
}

async fn secured(socket: Socket, server: &Server, services: &Services) -> Result<Socket, String> {
    let profile = profile(server, services)?;
    socket.secure(&profile, &server.host).await.map_err(|why| why.to_string())
}

/// The TLS trust: the profile of the bus for this server, unless the connection trusts more.
fn profile(server: &Server, services: &Services) -> Result<ClientTls, String> {
    let lenient = ClientTlsOptions {
        roots: if server.trusted { Roots::Insecure } else { Roots::System },
        host_names: transport::HostNames::Any,
        ..ClientTlsOptions::default()
    };
    if server.trusted || !server.check_name {
        return ClientTls::new(&lenient).map_err(|why| why.to_string());
    }
    let found = services.tls.find(&server.host, server.port);
    found.cloned().ok_or_else(|| "there are no trusted authorities for TLS".to_owned())
}
