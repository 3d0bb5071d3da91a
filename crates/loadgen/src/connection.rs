//! One connection, and the request that is under way on it.

use crate::check::Arriving;
use crate::request::{Outgoing, Prepared};
use crate::response::{Reader, Reading};
use crate::{Check, ErrorKind, Tls};
use rustls::ClientConnection;
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind::WouldBlock, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// An open connection.
pub(crate) struct Link {
    pub(crate) socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

impl Link {
    /// Begins to connect.
    pub(crate) fn open(address: SocketAddr, tls: Option<(&Tls, &str)>) -> Result<Link, String> {
        let fail = |error: io::Error| error.to_string();
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).map_err(fail)?;
        socket.set_nonblocking(true).map_err(fail)?;
        // Where it cannot be set, requests are a little later.
        let _ = socket.set_tcp_nodelay(true);
        match socket.connect(&address.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            Err(error) => return Err(fail(error)),
        }
        let tls = tls.map(|(tls, host)| tls.connection(host)).transpose()?.map(Box::new);
        Ok(Link { socket, tls })
    }

    /// Sends from these bytes; how many were taken. 0: the connection takes no more for now.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return match self.socket.write(bytes) {
                Err(error) if error.kind() == WouldBlock => Ok(0),
                other => other,
            };
        };
        // What was encrypted goes out first, so that no more than one buffer of it waits.
        if !flush(&self.socket, tls)? {
            return Ok(0);
        }
        let taken = tls.writer().write(bytes)?;
        flush(&self.socket, tls)?;
        Ok(taken)
    }

    /// Sends as much as the connection takes.
    fn send_all(&mut self, bytes: &[u8], written: &mut usize) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            // What was taken before may not be out yet.
            flush(&self.socket, tls)?;
        }
        while *written < bytes.len() {
            match self.send(&bytes[*written..]) {
                Ok(0) => break,
                Ok(count) => *written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Receives into `buffer`. `None`: nothing for now; `Some(0)`: the server has closed.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(tls) = &mut self.tls else {
            return match self.socket.read(buffer) {
                Ok(count) => Ok(Some(count)),
                Err(error) if error.kind() == WouldBlock => Ok(None),
                Err(error) => Err(error),
            };
        };
        loop {
            match tls.reader().read(buffer) {
                Ok(count) => return Ok(Some(count)),
                Err(error) if error.kind() == WouldBlock => {}
                // A server that closes without a close_notify.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(0)),
                Err(error) => return Err(error),
            }
            match tls.read_tls(&mut &self.socket) {
                Ok(_) => {
                    let processed = tls.process_new_packets().map_err(io::Error::other);
                    // The handshake answers by itself, an alert included.
                    flush(&self.socket, tls)?;
                    processed?;
                }
                Err(error) if error.kind() == WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Writes what TLS has to say; whether all of it is out.
fn flush(socket: &Socket, tls: &mut ClientConnection) -> io::Result<bool> {
    while tls.wants_write() {
        match tls.write_tls(&mut &*socket) {
            Ok(_) => {}
            Err(error) if error.kind() == WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// A request that is under way.
pub(crate) struct Exchange {
    /// When it was to be sent.
    pub(crate) due: Instant,
    /// When it was sent, or its connection was opened for it.
    pub(crate) begun: Instant,
    /// Whether it counts.
    pub(crate) measured: bool,
    /// Which of the requests it is.
    pub(crate) request: usize,
    pub(crate) outgoing: Outgoing,
    written: usize,
    arriving: Arriving,
    expected: Option<Expected>,
}

/// What the body of an answer is compared with.
enum Expected {
    Sent,
    Bytes(Arc<[u8]>),
}

impl Exchange {
    pub(crate) fn new(
        due: Instant,
        begun: Instant,
        measured: bool,
        request: usize,
        prepared: &Prepared,
        outgoing: Outgoing,
    ) -> Exchange {
        let expected = match &prepared.check {
            Check::Status(_) => None,
            Check::Echo => Some(Expected::Sent),
            Check::Bytes(bytes) => Some(Expected::Bytes(Arc::clone(bytes))),
            Check::Predicate(..) => prepared.right.clone().map(Expected::Bytes),
        };
        let mut exchange = Exchange {
            due,
            begun,
            measured,
            request,
            outgoing,
            written: 0,
            arriving: Arriving::Counted(0),
            expected,
        };
        exchange.arriving = Arriving::new(&prepared.check, compared(&exchange.expected, &exchange.outgoing));
        exchange
    }
}

fn compared<'a>(expected: &'a Option<Expected>, outgoing: &'a Outgoing) -> Option<&'a [u8]> {
    match expected {
        None => None,
        Some(Expected::Sent) => Some(&outgoing.bytes[outgoing.body..]),
        Some(Expected::Bytes(bytes)) => Some(bytes),
    }
}

/// What has become of an exchange.
pub(crate) enum Step {
    /// It waits for the connection.
    Waits,
    /// The whole answer is there; an error says what is wrong with it.
    Answered {
        verdict: Result<(), String>,
        /// The connection is of no use any more.
        closes: bool,
        /// Bytes of the answer.
        received: u64,
    },
    /// There will be no answer.
    Failed(ErrorKind, String),
}

/// A place for a connection.
#[derive(Default)]
pub(crate) struct Connection {
    pub(crate) link: Option<Link>,
    pub(crate) exchange: Option<Exchange>,
    /// Counts the links; what epoll reports of an earlier one is stale.
    pub(crate) generation: u32,
    /// Before then no new link is opened.
    pub(crate) rests_until: Option<Instant>,
    /// Whether the server has sent anything on the link.
    pub(crate) was_heard: bool,
    reader: Reader,
    received: u64,
    /// Whether something was sent or received on the link.
    was_open: bool,
}

impl Connection {
    /// A new link.
    pub(crate) fn attach(&mut self, link: Link) {
        self.link = Some(link);
        (self.was_open, self.was_heard) = (false, false);
        self.generation = self.generation.wrapping_add(1);
    }

    /// Begins with an exchange.
    pub(crate) fn begin(&mut self, exchange: Exchange) {
        self.exchange = Some(exchange);
        self.reader.reset();
        self.received = 0;
    }

    /// Something happened while nothing was asked: the connection is of no use any more, unless it was a part of a handshake.
    pub(crate) fn look_after(&mut self) {
        let Some(link) = &mut self.link else { return };
        let mut byte = [0; 1];
        if !matches!(link.receive(&mut byte), Ok(None)) {
            self.link = None;
        }
    }

    /// Sends and receives as far as the connection goes. `scratch` is a buffer for what arrives; `may_read`: whether there may be
    /// something to be read.
    pub(crate) fn step(&mut self, requests: &mut [Prepared], scratch: &mut [u8], may_read: bool) -> Step {
        let (Some(link), Some(exchange)) = (&mut self.link, &mut self.exchange) else { return Step::Waits };
        let prepared = &mut requests[exchange.request];
        let whole = loop {
            let sent = link.send_all(&exchange.outgoing.bytes, &mut exchange.written);
            self.was_open |= exchange.written > 0;
            if sent.is_ok() && !may_read {
                return Step::Waits;
            }
            let expected = compared(&exchange.expected, &exchange.outgoing);
            let arriving = &mut exchange.arriving;
            let mut take = |bytes: &[u8]| arriving.take(bytes, expected);
            let whole = loop {
                let count = match link.receive(scratch) {
                    Ok(Some(0)) if self.reader.close() => break true,
                    Ok(Some(0)) => {
                        // That nothing could be sent says more.
                        if let Err(error) = &sent {
                            return Step::Failed(kind(error, self.was_open), error.to_string());
                        }
                        let stage = if self.reader.is_empty() {
                            "before the answer"
                        } else {
                            "in the middle of the answer"
                        };
                        return Step::Failed(
                            ErrorKind::Closed,
                            format!("the server closed the connection {stage}"),
                        );
                    }
                    Ok(Some(count)) => count,
                    Ok(None) => break false,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Step::Failed(kind(&error, self.was_open), error.to_string()),
                };
                (self.was_open, self.was_heard) = (true, true);
                self.received += count as u64;
                match self.reader.take(&scratch[..count], prepared.is_head, &mut take) {
                    Ok(Reading::Whole) => break true,
                    Ok(Reading::Partial) => {}
                    Err(reason) => return Step::Failed(ErrorKind::Protocol, reason),
                }
            };
            match sent {
                _ if whole => break true,
                // There was no answer that explains it.
                Err(error) => return Step::Failed(kind(&error, self.was_open), error.to_string()),
                // A handshake that has just ended lets more out.
                Ok(()) if link.tls.is_some() && exchange.written < exchange.outgoing.bytes.len() => {
                    let before = exchange.written;
                    if let Err(error) = link.send_all(&exchange.outgoing.bytes, &mut exchange.written) {
                        return Step::Failed(kind(&error, self.was_open), error.to_string());
                    }
                    if exchange.written == before {
                        break false;
                    }
                }
                Ok(()) => break false,
            }
        };
        if !whole {
            return Step::Waits;
        }
        let arriving = std::mem::replace(&mut exchange.arriving, Arriving::Counted(0));
        let (status, expected) = (self.reader.status, compared(&exchange.expected, &exchange.outgoing));
        let verdict = match prepared.check {
            Check::Predicate(..) => {
                let right = prepared.right.as_deref();
                self.reader.fields(|fields| arriving.finish(&prepared.check, expected, right, status, fields))
            }
            _ => arriving.finish(&prepared.check, expected, None, status, &[]),
        };
        let verdict = verdict.map(|right| {
            if right.is_some() {
                prepared.right = right;
            }
        });
        let closes = self.reader.closes || exchange.written < exchange.outgoing.bytes.len();
        Step::Answered { verdict, closes, received: self.received }
    }
}

fn kind(error: &io::Error, was_open: bool) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::Other | io::ErrorKind::InvalidData => ErrorKind::Protocol,
        _ if was_open => ErrorKind::Closed,
        _ => ErrorKind::Connect,
    }
}
