//! A connection that was upgraded to WebSocket (RFC 6455): both directions are piped as they come, with back-pressure.
//!
//! Only the frame headers are read, so that it can be closed properly: when the bus stops, and when nothing moved for too long, each
//! side gets a Close frame behind the last frame that was begun.

use std::future::poll_fn;
use std::io::IoSlice;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use message::{Body, BodyError, Headers, StandardHeader};

use crate::connection::{Conn, Incoming, Travelling, lock};
use crate::http1::Length;
use crate::http1::write::{self, Kind};
use crate::io::Writer;
use crate::serve::Account;
use crate::server::{Listening, Open};
use crate::timer::Timer;
use crate::{ConnectionInfo, Cut, Handler, OnEnd, Response, ServerLimits};

/// What comes behind a response of 101.
pub(crate) struct Tunnel {
    client: Box<Incoming>,
    backend: Box<Incoming>,
    head: Vec<u8>,
    on_end: Option<Box<dyn OnEnd>>,
    about: u64,
}

impl Tunnel {
    /// The upgrade that a response is; if it is none that can be sent on, the response comes back.
    pub(crate) fn new(
        client: Box<Incoming>,
        mut response: Response,
    ) -> Result<Tunnel, Box<(Box<Incoming>, Response)>> {
        let mut head = b"HTTP/1.1 101 Switching Protocols\r\n".to_vec();
        let written = write::fields(&mut head, &response.head.headers, Kind::Response { keep_length: false });
        let backend = match std::mem::take(&mut response.body) {
            Body::Stream(stream) if written.is_ok() => Travelling::into_incoming(stream),
            _ => None,
        };
        let Some(backend) = backend else { return Err(Box::new((client, response))) };
        head.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        Ok(Tunnel { client, backend, head, on_end: response.on_end.take(), about: response.about })
    }
}

/// Whether a response of 101 switches to a WebSocket (RFC 6455, 4.1) and announces no body, which it cannot have.
pub(crate) fn is_opened_by(headers: &Headers) -> bool {
    let mut upgrade = headers.get_all("upgrade");
    let is_websocket =
        upgrade.next().is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case(b"websocket"));
    let mut options = headers.get_all("connection").flat_map(|value| value.split(|b| *b == b','));
    is_websocket
        && upgrade.next().is_none()
        && options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade"))
        && !headers.has_any(StandardHeader::ContentLength.bit() | StandardHeader::TransferEncoding.bit())
}

/// Where in the sequence of frames a direction is.
#[derive(Default)]
struct Frames {
    header: [u8; 14],
    have: usize,
    /// Bytes of the frame that has begun.
    left: u64,
}

impl Frames {
    /// Bytes of the header, as far as it has been seen; at least the two that say it.
    fn header_size(&self) -> usize {
        if self.have < 2 {
            return 2;
        }
        let length = match self.header[1] & 0x7F {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        2 + length + if self.header[1] & 0x80 != 0 { 4 } else { 0 }
    }

    fn payload(&self) -> u64 {
        let wide = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        match self.header[1] & 0x7F {
            126 => wide(&self.header[2..4]),
            127 => wide(&self.header[2..10]),
            short => u64::from(short),
        }
    }

    /// Whether no frame is incomplete.
    fn is_between(&self) -> bool {
        self.have == 0 && self.left == 0
    }

    /// Skips bytes; with `to_its_end`, only to the end of the frame that has begun. Returns how many there were.
    fn pass(&mut self, bytes: &[u8], to_its_end: bool) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if to_its_end && self.is_between() {
                break;
            }
            if self.left > 0 {
                let n = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len() - at);
                self.left -= n as u64;
                at += n;
                continue;
            }
            self.header[self.have] = bytes[at];
            (self.have, at) = (self.have + 1, at + 1);
            if self.have == self.header_size() {
                self.left = self.payload();
                self.have = 0;
            }
        }
        at
    }
}

/// One direction.
struct Way<'a> {
    from: &'a mut Incoming,
    to: &'a Mutex<Writer>,
    frames: Frames,
    /// The Close frame that ends it.
    close: &'static [u8],
    /// What of that was sent.
    closed: usize,
    /// Bytes that were passed on.
    passed: u64,
    /// Nothing more comes.
    ended: bool,
    received: u32,
}

/// Going away (RFC 6455, 7.4.1). What a client sends is masked; a mask of zeros is one.
const TO_CLIENT: &[u8] = &[0x88, 2, 0x03, 0xE9];
const TO_BACKEND: &[u8] = &[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE9];

/// Why a direction has ended.
enum Broken {
    Write,
    Read(BodyError),
}

impl Way<'_> {
    /// Passes on what comes; `closing`: only to the end of the frame that has begun, with a Close frame behind it, once.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        limits: &ServerLimits,
        closing: bool,
    ) -> Poll<Result<(), Broken>> {
        loop {
            let held = self.from.buffered();
            let mut before = Frames { ..self.frames };
            let n = before.pass(held, closing);
            if n > 0 && self.closed == 0 {
                let written = lock(self.to).poll_write(cx, &[IoSlice::new(&held[..n])], limits.write);
                let written = ready!(written).map_err(|_| Broken::Write)?;
                self.frames.pass(&held[..written], false);
                self.passed += written as u64;
                self.from.consume(written);
                continue;
            }
            if closing && self.frames.is_between() && !self.ended {
                while self.closed < self.close.len() {
                    let rest = IoSlice::new(&self.close[self.closed..]);
                    let written = lock(self.to).poll_write(cx, &[rest], limits.write);
                    self.closed += ready!(written).map_err(|_| Broken::Write)?;
                }
                // What still comes is dropped.
                self.from.consume(usize::MAX / 2);
            }
            match self.from.poll_more(cx) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => {
                    self.ended = true;
                    self.from.release();
                    // The other side is told, if it listens.
                    let _ = lock(self.to).poll_shutdown(cx);
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Broken::Read(error))),
                Poll::Pending => {
                    return match lock(self.to).poll_flush(cx, limits.write) {
                        Poll::Ready(Err(_)) => Poll::Ready(Err(Broken::Write)),
                        _ => Poll::Pending,
                    };
                }
            }
        }
    }

    /// Whether anything has come since this was asked last.
    fn has_moved(&mut self) -> bool {
        let received = self.from.conn.receipts();
        std::mem::replace(&mut self.received, received) != received
    }
}

/// Pipes until one side closes.
pub(crate) async fn run<H: Handler>(
    open: Open,
    tunnel: Tunnel,
    limits: Arc<ServerLimits>,
    info: ConnectionInfo,
    handler: Arc<H>,
) {
    let listening = open.listening().clone();
    let Tunnel { mut client, mut backend, head, on_end, about } = tunnel;
    let (client_side, backend_side) = (client.conn.clone(), backend.conn.clone());
    let mut response = Response::empty(101);
    response.on_end = on_end;
    let mut account = Account::of(&mut response, &info, &client_side);
    client.begin_tunnel();
    backend.begin_tunnel();
    let piped =
        pipe(&listening, &limits, &client_side, head, [&mut backend, &mut client], &mut account).await;
    if let Err(Broken::Read(error)) = &piped
        && !matches!(error, BodyError::Truncated)
    {
        listening.counters.aborted.add(1);
        let backend = backend_side.client.as_ref().map(|client| client.target().clone());
        handler.cut(&Cut { client: &info, about, backend, error: error.clone() });
    }
    if let Some(account) = account {
        account.end_whole(piped.is_ok());
    }
    for side in [&client_side, &backend_side] {
        let _ = poll_fn(|cx| match lock(&side.writer).poll_shutdown(cx) {
            // A peer that receives nothing is not told.
            Poll::Pending => Poll::Ready(Ok(())),
            done => done,
        })
        .await;
    }
    drop(open);
}

async fn pipe(
    listening: &Listening,
    limits: &ServerLimits,
    conn: &Conn,
    head: Vec<u8>,
    [backend, client]: [&mut Incoming; 2],
    account: &mut Option<Account<'_>>,
) -> Result<(), Broken> {
    let (client_side, backend_side) = (client.conn.clone(), backend.conn.clone());
    let mut sent = 0;
    poll_fn(|cx| {
        while sent < head.len() {
            let written =
                lock(&client_side.writer).poll_write(cx, &[IoSlice::new(&head[sent..])], limits.write);
            sent += ready!(written).map_err(|_| Broken::Write)?;
        }
        Poll::Ready(Ok(()))
    })
    .await?;
    let way = |from, to, close| Way {
        from,
        to,
        frames: Frames::default(),
        close,
        closed: 0,
        passed: 0,
        ended: false,
        received: 0,
    };
    let mut down = way(backend, &client_side.writer, TO_CLIENT);
    let mut up = way(client, &backend_side.writer, TO_BACKEND);
    let (mut idle, mut last, mut closing) = (Timer::default(), Timer::default(), false);
    let mut waker: Option<std::task::Waker> = None;
    poll_fn(|cx| {
        if !waker.as_ref().is_some_and(|registered| registered.will_wake(cx.waker())) {
            conn.polled_by(cx.waker());
            waker = Some(cx.waker().clone());
        }
        if conn.is_cut() {
            return Poll::Ready(Ok(()));
        }
        loop {
            let stops = closing;
            for way in [&mut down, &mut up] {
                if !way.ended
                    && let Poll::Ready(Err(broken)) = way.poll(cx, limits, closing)
                {
                    return Poll::Ready(Err(broken));
                }
            }
            if let Some(account) = account {
                account.end.bytes = down.passed;
            }
            let both_told = down.closed == TO_CLIENT.len() && up.closed == TO_BACKEND.len();
            if down.ended && up.ended || both_told && (down.ended || up.ended) {
                return Poll::Ready(Ok(()));
            }
            if down.has_moved() | up.has_moved() {
                idle.clear();
            }
            // When one side has closed, the other has a short time for its last frames.
            let ends = closing || down.ended || up.ended;
            if ends && last.poll_expired(limits.linger, cx) {
                return Poll::Ready(Ok(()));
            }
            closing |= listening.is_draining() || (!ends && idle.poll_expired(limits.websocket_idle, cx));
            if stops == closing {
                return Poll::Pending;
            }
        }
    })
    .await
}

impl Incoming {
    /// What follows the head is bytes without an end of their own.
    pub(crate) fn begin_tunnel(&mut self) {
        self.begin_body(Length::UntilClose, std::time::Duration::MAX, false);
    }

    /// Gives up its storage; nothing more comes.
    fn release(&mut self) {
        self.next_message();
        self.begin_body(Length::None, std::time::Duration::MAX, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(payload: usize, masked: bool) -> Vec<u8> {
        let mask = if masked { 0x80 } else { 0 };
        let mut out = vec![0x82];
        match payload {
            0..126 => out.push(mask | payload as u8),
            126..65536 => {
                out.push(mask | 126);
                out.extend((payload as u16).to_be_bytes());
            }
            _ => {
                out.push(mask | 127);
                out.extend((payload as u64).to_be_bytes());
            }
        }
        out.extend(if masked { &[1, 2, 3, 4][..] } else { &[] });
        out.extend(std::iter::repeat_n(0x88, payload));
        out
    }

    #[test]
    fn a_frame_ends_where_it_says_however_it_is_cut() {
        for masked in [false, true] {
            for payload in [0, 1, 125, 126, 127, 65535, 65536] {
                let frame_bytes = frame(payload, masked);
                let two = [frame_bytes.clone(), frame(3, masked)].concat();
                for cut in [0, 1, 2, 3, 5, 9, 13, frame_bytes.len() - 1, frame_bytes.len()]
                    .into_iter()
                    .filter(|n| *n <= frame_bytes.len())
                {
                    let mut frames = Frames::default();
                    assert_eq!(frames.pass(&two[..cut], false), cut);
                    let rest = frames.pass(&two[cut..], true);
                    // Between two frames none has to be completed.
                    let begun = cut > 0 && cut < frame_bytes.len();
                    assert_eq!(
                        rest,
                        if begun { frame_bytes.len() - cut } else { 0 },
                        "{payload} {masked} {cut}"
                    );
                    assert!(frames.is_between());
                }
            }
        }
    }
}
