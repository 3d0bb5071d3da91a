//! What the two halves of a connection share, and the receiving half as the body of a message.
//!
//! A connection is received from by exactly one [`Incoming`]. While a message is on its way it travels
//! inside that message, as its body; when the body is dropped or recycled it goes home: to the task of the
//! connection on a server, to the pool of its target on a client.

use std::any::Any;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use message::{Body, BodyError, BodyStream, Pass, RequestHead, ResponseHead};
use tokio::task::coop;

use crate::Target;
use crate::buffer::Buffer;
use crate::client::ClientSide;
use crate::clock;
use crate::http1::Length;
use crate::http1::chunked::{self, Chunks};
use crate::http1::parse::{self, HeadLimits, Refusal, RequestFacts, ResponseFacts};
use crate::http2::body::Receiving;
use crate::io::{ReadHalf, WriteHalf, Writer};
use crate::relay::{RelayError, Upload};
use crate::timer::Timer;

/// Most interim responses before the one that is waited for, which may also have no more bytes than a head.
pub(crate) const MOST_INTERIM: usize = 64;
/// What is said of more.
pub(crate) const ENDLESS: &str = "interim responses without end";

/// A lock that outlives a panic of its holder: what it guards is valid between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of a connection that stays while its receiving half travels.
pub(crate) struct Conn {
    pub(crate) writer: Mutex<Writer>,
    home: Mutex<Home>,
    /// The receiving half came home: looked at before the lock is taken, since mostly it has not.
    here: AtomicBool,
    /// The client of a server connection went away.
    gone: AtomicBool,
    /// The client waits for `100 Continue` before it sends the body, and may still get it. Set before the body travels, and
    /// cleared under the lock of the writer only, so that no interim response follows a final one.
    owes_continue: AtomicBool,
    /// Counts what was received, to see from elsewhere whether somebody still receives.
    receipts: AtomicU32,
    /// The connection is to end now.
    cut: AtomicBool,
    task: Mutex<Option<Waker>>,
    /// On the client side: where to go home to.
    pub(crate) client: Option<ClientSide>,
}

enum Home {
    Away,
    Here(Box<Incoming>),
    Closed,
}

impl Conn {
    pub(crate) fn new(half: WriteHalf, client: Option<ClientSide>) -> Arc<Conn> {
        Arc::new(Conn {
            writer: Mutex::new(Writer::new(half)),
            home: Mutex::new(Home::Away),
            here: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            owes_continue: AtomicBool::new(false),
            receipts: AtomicU32::new(0),
            cut: AtomicBool::new(false),
            task: Mutex::new(None),
            client,
        })
    }

    /// Remembers whom to wake.
    pub(crate) fn polled_by(&self, waker: &Waker) {
        *lock(&self.task) = Some(waker.clone());
    }

    pub(crate) fn wake(&self) {
        if let Some(task) = &*lock(&self.task) {
            task.wake_by_ref();
        }
    }

    /// Ends the connection, whatever it is doing.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Relaxed);
        self.wake();
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    pub(crate) fn owes_continue(&self) -> bool {
        self.owes_continue.load(Relaxed)
    }

    /// Tells a client that waits with its body to send it, if it was not answered meanwhile.
    fn send_continue(&self, cx: &mut Context<'_>) {
        let mut writer = lock(&self.writer);
        if self.owes_continue.swap(false, Relaxed) {
            writer.interim(cx, b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    /// A final status line is to be sent, behind which no interim one may come. `wanted`: somebody still means to read the
    /// body, so the client gets to send it while it still can be asked to.
    pub(crate) fn begin_final(&self, wanted: bool, cx: &mut Context<'_>) {
        if self.owes_continue() {
            if wanted {
                self.send_continue(cx);
            }
            let _writer = lock(&self.writer);
            self.owes_continue.store(false, Relaxed);
        }
    }

    /// Changes whenever something is received.
    pub(crate) fn receipts(&self) -> u32 {
        self.receipts.load(Relaxed)
    }

    /// The receiving half, if the body it travelled with is done with.
    pub(crate) fn take_home(&self) -> Option<Box<Incoming>> {
        if !self.here.load(Acquire) {
            return None;
        }
        let mut home = lock(&self.home);
        match std::mem::replace(&mut *home, Home::Away) {
            Home::Here(incoming) => {
                self.here.store(false, Relaxed);
                Some(incoming)
            }
            other => {
                *home = other;
                None
            }
        }
    }

    /// Nobody waits for the receiving half any more.
    pub(crate) fn close(&self) {
        *lock(&self.home) = Home::Closed;
    }

    fn come_home(&self, incoming: Box<Incoming>) {
        let mut home = lock(&self.home);
        if !matches!(*home, Home::Closed) {
            *home = Home::Here(incoming);
            self.here.store(true, Release);
            drop(home);
            // In its own turn the task looks for it before it waits.
            if !clock::is_turn_of(self) {
                self.wake();
            }
        }
    }
}

/// Where in its message the receiving half is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Before or within a head.
    Head,
    /// So many bytes before the end.
    Exact(u64),
    Chunked(Chunks),
    UntilClose,
    /// Behind the message.
    Done,
}

/// How long a stop leaves a connection open that was just accepted or has just had an answer: a request may be on its way, and would be met
/// by a reset.
const UNDER_WAY: Duration = Duration::from_millis(500);

/// The receiving half of a connection: the bytes, and where in the message they are.
pub(crate) struct Incoming {
    half: ReadHalf,
    buffer: Buffer,
    buffer_size: usize,
    timer: Timer,
    state: State,
    /// Wire bytes of an incomplete head that were looked at.
    scanned: usize,
    declared: Option<u64>,
    /// Longest pause within a body.
    pause: Duration,
    /// Entity bytes of a chunked body so far.
    received: u64,
    /// Interim responses before the one that is waited for, and their bytes.
    interim: (usize, usize),
    /// The peer will send no more.
    ended: bool,
    /// The last read filled the buffer: there is more where it came from.
    filled: bool,
    /// On the server side: whom tokio will wake when something arrives, unless it has been read since.
    watcher: Option<Waker>,
    watched: bool,
    /// A client may keep sending nothing and still wait.
    half_close: bool,
    /// On the server side: the wait for a request is the short one of a stop.
    stops: bool,
    /// On the client side: the connection can serve another request.
    pub(crate) reusable: bool,
    /// On the client side: the request asks for another protocol.
    pub(crate) switches: bool,
    /// On the client side: the request, when its response began before it was all sent.
    pub(crate) upload: Option<Box<Upload>>,
    pub(crate) conn: Arc<Conn>,
    /// The box this travels in.
    shell: Option<Box<Travelling>>,
}

impl Incoming {
    pub(crate) fn new(
        half: ReadHalf,
        conn: Arc<Conn>,
        buffer_size: usize,
        half_close: bool,
    ) -> Box<Incoming> {
        Box::new(Incoming {
            half,
            buffer: Buffer::default(),
            buffer_size,
            timer: Timer::default(),
            state: State::Head,
            scanned: 0,
            declared: None,
            pause: Duration::MAX,
            received: 0,
            interim: (0, 0),
            ended: false,
            filled: false,
            watcher: None,
            watched: false,
            half_close,
            stops: false,
            reusable: false,
            switches: false,
            upload: None,
            conn,
            shell: None,
        })
    }

    /// Receives the next request head. `None`: the client has closed, or nothing came for `idle`, or for [`UNDER_WAY`] where
    /// `stop()`.
    pub(crate) fn poll_request(
        &mut self,
        cx: &mut Context<'_>,
        limits: HeadLimits,
        idle: Duration,
        whole: Duration,
        stop: impl Fn() -> bool,
    ) -> Poll<Result<Option<(RequestHead, RequestFacts)>, Refusal>> {
        loop {
            let wire = self.buffer.wire();
            if !wire.is_empty() && (self.scanned == 0 || parse::may_be_complete(wire, self.scanned)) {
                if let Some((size, head, facts)) = parse::request(wire, limits)? {
                    self.buffer.skip(size);
                    self.scanned = 0;
                    self.timer.clear();
                    return Poll::Ready(Ok(Some((head, facts))));
                }
            } else if wire.len() > limits.size {
                return Poll::Ready(Err(Refusal { status: 431, why: "the request head is too large" }));
            }
            let begun = !wire.is_empty();
            self.scanned = wire.len();
            match self.poll_fill(cx) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Ok(None)),
                // What the kernel has and has not reported yet is a request, or its beginning.
                Poll::Pending if !begun && stop() && self.half.is_silent() => {
                    let shorter = UNDER_WAY.min(idle);
                    if !std::mem::replace(&mut self.stops, true) {
                        self.timer.shorten(idle, shorter);
                    }
                    return match self.timer.poll_expired(shorter, cx) {
                        true => Poll::Ready(Ok(None)),
                        false => Poll::Pending,
                    };
                }
                // The first byte ends the wait for a request and begins the wait for its head, as a whole.
                Poll::Ready(Ok(_)) if !begun => self.timer.clear(),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending if self.timer.poll_expired(if begun { whole } else { idle }, cx) => {
                    return Poll::Ready(match begun {
                        true => Err(Refusal { status: 408, why: "the request head took too long" }),
                        false => Ok(None),
                    });
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// What is there of the head that is being received, and what follows it.
    pub(crate) fn head_received(&self) -> &[u8] {
        self.buffer.wire()
    }

    /// For how long the head has been on its way; `whole` is how long it may be.
    pub(crate) fn head_took(&self, whole: Duration) -> Duration {
        self.timer.left().map_or(Duration::ZERO, |left| whole.saturating_sub(left))
    }

    /// Receives a response head, which has to be there at the deadline. Interim ones are skipped, up to a number, and
    /// put nothing off.
    pub(crate) fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        limits: HeadLimits,
        to_head: bool,
        deadline: Instant,
    ) -> Poll<Result<(ResponseHead, ResponseFacts), ReceiveError>> {
        loop {
            let wire = self.buffer.wire();
            if !wire.is_empty() && (self.scanned == 0 || parse::may_be_complete(wire, self.scanned)) {
                if let Some((size, head, facts)) =
                    parse::response(wire, limits, to_head).map_err(ReceiveError::Protocol)?
                {
                    self.buffer.skip(size);
                    self.scanned = 0;
                    match head.status {
                        101 if self.switches && crate::tunnel::is_opened_by(&head.headers) => {}
                        101 if self.switches => {
                            return Poll::Ready(Err(ReceiveError::Protocol(
                                "a protocol switch, and not to WebSocket",
                            )));
                        }
                        101 => return Poll::Ready(Err(ReceiveError::Protocol("unasked protocol switch"))),
                        100..200 => {
                            let (count, bytes) = &mut self.interim;
                            (*count, *bytes) = (*count + 1, *bytes + size);
                            if *count > MOST_INTERIM || *bytes > limits.size {
                                return Poll::Ready(Err(ReceiveError::Protocol(ENDLESS)));
                            }
                            continue;
                        }
                        _ => {}
                    }
                    self.timer.clear();
                    return Poll::Ready(Ok((head, facts)));
                }
            } else if wire.len() > limits.size {
                return Poll::Ready(Err(ReceiveError::Protocol("the response head is too large")));
            }
            let begun = !wire.is_empty();
            // An interim response is one, too.
            let begun = begun || self.interim.0 > 0;
            self.scanned = wire.len();
            match self.poll_fill(cx) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(ReceiveError::Closed { begun })),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(ReceiveError::Io { error, begun })),
                Poll::Pending => {
                    let expired = self.timer.poll_until(deadline, cx);
                    return if expired { Poll::Ready(Err(ReceiveError::Timeout)) } else { Poll::Pending };
                }
            }
        }
    }

    /// A head was received: what follows is its body. `None` if there is none.
    pub(crate) fn begin_body(&mut self, length: Length, pause: Duration, owes_continue: bool) {
        self.pause = pause;
        self.received = 0;
        self.declared = None;
        self.state = match length {
            Length::None => State::Done,
            Length::Exact(n) => {
                self.declared = Some(n);
                if n == 0 { State::Done } else { State::Exact(n) }
            }
            Length::Chunked => State::Chunked(Chunks::Size),
            Length::UntilClose => State::UntilClose,
        };
        // An error in bytes already here shows when the body is read.
        let _ = self.decode();
        self.conn.owes_continue.store(owes_continue && self.state != State::Done, Relaxed);
    }

    /// The message is over; the next wire byte begins a head.
    pub(crate) fn next_message(&mut self) {
        self.buffer.consume(usize::MAX / 2);
        self.buffer.release();
        self.state = State::Head;
        self.interim = (0, 0);
        self.scanned = 0;
    }

    /// The receiving half, and what it has received and nobody has read.
    pub(crate) fn into_half(self: Box<Self>) -> (ReadHalf, Vec<u8>) {
        let Incoming { half, buffer, .. } = *self;
        let received = buffer.wire().to_vec();
        (half, received)
    }

    /// Puts a connection into its pool that nothing was sent on.
    pub(crate) fn shelve(mut self: Box<Self>) {
        self.state = State::Done;
        self.reusable = true;
        self.go_home();
    }

    /// Sends this on its way as a body.
    pub(crate) fn into_body(mut self: Box<Self>) -> Body {
        let mut shell = self.shell.take().unwrap_or_else(|| Box::new(Travelling(None)));
        shell.0 = Some(self);
        Body::Stream(shell)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether wire bytes are there that belong to no message yet.
    pub(crate) fn has_more(&self) -> bool {
        !self.buffer.wire().is_empty()
    }

    /// Whether the connection can be kept although nobody reads what is left of the message: it is short enough to be read
    /// and thrown away. How long a chunked one is nobody knows: what is here is read, and if that does not go
    /// beyond `limit`, the rest will not either, or nearly.
    pub(crate) fn is_discardable(&mut self, cx: &mut Context<'_>, limit: u64) -> bool {
        match self.state {
            State::Done | State::Head => true,
            _ if self.conn.owes_continue() => false,
            State::Exact(left) => (self.buffered().len() as u64).saturating_add(left) <= limit,
            State::UntilClose => false,
            State::Chunked(_) => loop {
                self.consume(usize::MAX / 2);
                match self.poll_more(cx) {
                    Poll::Ready(Ok(false)) => return true,
                    Poll::Ready(Ok(true)) if self.received <= limit => {}
                    Poll::Ready(_) => return false,
                    Poll::Pending => return self.received <= limit,
                }
            },
        }
    }

    /// Reads the rest of the message and throws it away; false if it does not arrive whole. There is no limit to its size:
    /// whoever was told that the connection stays has to be able to use it.
    pub(crate) fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        loop {
            self.consume(usize::MAX / 2);
            match ready!(self.poll_more(cx)) {
                Ok(true) => {}
                Ok(false) => return Poll::Ready(true),
                Err(_) => return Poll::Ready(false),
            }
        }
    }

    /// Reads whatever comes and throws it away until the peer closes.
    pub(crate) fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.buffer.consume(usize::MAX / 2);
            self.buffer.skip(usize::MAX / 2);
            match ready!(self.poll_fill(cx)) {
                Ok(0) | Err(_) => return Poll::Ready(()),
                Ok(_) => {}
            }
        }
    }

    /// Looks whether the peer is gone, while nothing is expected from it. What it sends meanwhile (the next
    /// request) is kept, as far as there is room.
    pub(crate) fn is_peer_gone(&mut self, cx: &mut Context<'_>) -> bool {
        while !self.ended && self.buffer.has_room(self.buffer_size) {
            match self.poll_fill(cx) {
                // Behind half a body nothing is waited for.
                Poll::Ready(Ok(0)) => return !self.half_close || self.state != State::Done,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => return true,
                Poll::Pending => return false,
            }
        }
        false
    }

    /// Whether an idle connection of a pool is unfit: anything that can be read from it is a close, an error or
    /// bytes nobody asked for, but for what TLS has to say to itself. `reported`: the event loop has reported since it was read last
    /// ([`rounds`](crate::rounds)); else the kernel is asked, which an end that came with the last bytes needs.
    pub(crate) fn is_stale(&mut self, cx: &mut Context<'_>, reported: bool) -> bool {
        if self.half.is_tls() {
            // TLS may hold what the kernel has given it already. So that the read is not put off to another turn:
            self.filled = false;
            return self.poll_fill(cx).is_ready() || !self.half.is_silent();
        }
        if reported { self.half.may_read() } else { !self.half.is_silent() }
    }

    /// Ends the connection with a reset instead of an orderly close.
    pub(crate) fn reset(&self) {
        lock(&self.conn.writer).reset();
    }

    /// Whether everything that was written has reached the peer.
    pub(crate) fn has_arrived(&self) -> bool {
        self.half.has_arrived()
    }

    /// Receives into the buffer. Storage is taken when there is something to receive and given back when not.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.ended {
            return Poll::Ready(Ok(0));
        }
        let (large, left) = match self.state {
            State::Exact(left) => (left > self.buffer_size as u64, left),
            State::Chunked(_) | State::UntilClose => (self.filled, 0),
            State::Head | State::Done => (false, 0),
        };
        self.buffer.prefer(large);
        if !self.buffer.has_storage() && !self.half.may_read() {
            ready!(self.poll_ready(cx))?;
        }
        self.watched = false;
        // A peer that sends as fast as this reads must leave the other connections their turns.
        let turn = if self.filled { Some(ready!(coop::poll_proceed(cx))) } else { None };
        let room = self.buffer.room(self.buffer_size, large, left);
        let size = room.len();
        match self.half.poll_read(cx, room) {
            Poll::Ready(Ok(n)) => {
                if let Some(turn) = turn {
                    turn.made_progress();
                }
                self.filled = n == size;
                self.was_received();
                self.buffer.received(n);
                self.ended = n == 0;
                Poll::Ready(Ok(n))
            }
            Poll::Ready(Err(e)) => {
                self.ended = true;
                Poll::Ready(Err(e))
            }
            Poll::Pending => {
                self.buffer.release();
                Poll::Pending
            }
        }
    }

    /// Waits until there is something to receive.
    ///
    /// A client is watched behind its request, while it is answered and before its next request, by the same task: tokio is
    /// asked only once. What it was asked holds until there is something to read.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let is_registered = self.watcher.as_ref().is_some_and(|registered| registered.will_wake(cx.waker()));
        if is_registered && self.watched {
            return Poll::Pending;
        }
        let ready = self.half.poll_ready(cx);
        // A task whose budget is used up is polled again at once, and tokio was not asked.
        self.watched = ready.is_pending() && self.conn.client.is_none() && coop::has_budget_remaining();
        if self.watched && !is_registered {
            self.watcher = Some(cx.waker().clone());
        }
        ready
    }

    /// Decodes what is there.
    fn decode(&mut self) -> Result<(), BodyError> {
        match &mut self.state {
            State::Head | State::Done => {}
            State::Exact(left) => {
                let n = self.buffer.wire().len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                self.buffer.decode(n);
                *left -= n as u64;
                if *left == 0 {
                    self.state = State::Done;
                }
            }
            State::Chunked(chunks) => {
                let before = self.buffer.entity().len();
                let decoded = chunked::decode(chunks, &mut self.buffer);
                self.received += (self.buffer.entity().len() - before) as u64;
                decoded.map_err(BodyError::Malformed)?;
                if *chunks == Chunks::Done {
                    self.state = State::Done;
                }
            }
            State::UntilClose => {
                let n = self.buffer.wire().len();
                self.buffer.decode(n);
            }
        }
        Ok(())
    }

    pub(crate) fn buffered(&self) -> &[u8] {
        self.buffer.entity()
    }

    pub(crate) fn consume(&mut self, n: usize) {
        self.buffer.consume(n);
    }

    pub(crate) fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        if let Poll::Ready(Err(error)) = self.poll_upload(cx) {
            return Poll::Ready(Err(error));
        }
        loop {
            let before = self.buffer.entity().len();
            self.decode()?;
            if self.buffer.entity().len() > before {
                return Poll::Ready(Ok(true));
            }
            if self.state == State::Done {
                return Poll::Ready(Ok(false));
            }
            if self.conn.owes_continue() {
                self.conn.send_continue(cx);
            }
            match self.poll_fill(cx) {
                Poll::Ready(Ok(0)) if self.state == State::UntilClose => self.state = State::Done,
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(BodyError::Truncated)),
                Poll::Ready(Ok(_)) => self.timer.clear(),
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e.into())),
                Poll::Pending if self.timer.poll_expired(self.pause, cx) => {
                    return Poll::Ready(Err(BodyError::Timeout));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Gives what the socket has of a long body to `pass`. 0: the ordinary way has to find out what is there.
    fn poll_pass(&mut self, cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Poll<Result<usize, BodyError>> {
        let State::Exact(left) = self.state else { return Poll::Ready(Ok(0)) };
        if self.ended || !self.buffer.is_vacant() {
            return Poll::Ready(Ok(0));
        }
        if let Poll::Ready(Err(error)) = self.poll_upload(cx) {
            return Poll::Ready(Err(error));
        }
        if self.conn.owes_continue() {
            self.conn.send_continue(cx);
        }
        self.buffer.release();
        self.watched = false;
        // A peer that sends as fast as this takes it must leave the other connections their turns.
        let turn = ready!(coop::poll_proceed(cx));
        match self.half.poll_pass(cx, left, pass) {
            // Nothing came: what is waited for in the ordinary way has its deadline already.
            Poll::Ready(Ok(0)) => Poll::Ready(Ok(0)),
            Poll::Ready(Ok(n)) => {
                turn.made_progress();
                self.was_received();
                self.timer.clear();
                let left = left.saturating_sub(n as u64);
                self.state = if left == 0 { State::Done } else { State::Exact(left) };
                Poll::Ready(Ok(n))
            }
            Poll::Ready(Err(e)) if crate::splice::says_nothing_of_the_peer(&e) => Poll::Ready(Ok(0)),
            Poll::Ready(Err(e)) => {
                self.ended = true;
                Poll::Ready(Err(e.into()))
            }
            Poll::Pending if self.timer.poll_expired(self.pause, cx) => Poll::Ready(Err(BodyError::Timeout)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Counts a receipt.
    fn was_received(&self) {
        let receipts = &self.conn.receipts;
        receipts.store(receipts.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Goes on sending the request whose response this is, until that has come to its end.
    pub(crate) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        let Some(upload) = self.upload.as_mut() else { return Poll::Ready(Ok(())) };
        match ready!(upload.poll(cx, &self.conn.writer)) {
            Ok(()) => {}
            // The request did not arrive whole, so the response is to half a request.
            Err(RelayError::Body(error)) => return Poll::Ready(Err(error)),
            // The backend takes no more, which it may: its response decides.
            Err(RelayError::Write(_)) => self.reusable = false,
        }
        self.upload = None;
        Poll::Ready(Ok(()))
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        if self.upload.is_some() {
            // An error will be found again when the body is read.
            let _ = self.poll_upload(cx);
        } else if self.state == State::Done {
            self.watch(cx);
        }
    }

    /// Looks whether the client is gone. Of a body that is still on its way this receives what fits into the buffer.
    fn watch(&mut self, cx: &mut Context<'_>) {
        if self.conn.client.is_none() && self.is_peer_gone(cx) {
            self.conn.gone.store(true, Relaxed);
            self.conn.wake();
        }
    }

    /// The body is done with, whole or not.
    fn go_home(self: Box<Self>) {
        let conn = self.conn.clone();
        match &conn.client {
            None => conn.come_home(self),
            Some(client) => client.come_home(self),
        }
    }
}

/// Why there is no response head.
#[derive(Debug)]
pub(crate) enum ReceiveError {
    Closed { begun: bool },
    Io { error: io::Error, begun: bool },
    Timeout,
    Protocol(&'static str),
}

/// The backend that a body comes from. The body is given up.
pub(crate) fn backend_of(body: Box<dyn BodyStream>) -> Option<Target> {
    let travelling = match body.into_any().downcast::<Travelling>() {
        Ok(travelling) => travelling,
        Err(other) => return other.downcast::<Receiving>().ok()?.target.take(),
    };
    let client = travelling.0.as_ref()?.conn.client.as_ref()?;
    Some(client.target().clone())
}

/// The receiving half as the body of a message.
pub(crate) struct Travelling(Option<Box<Incoming>>);

impl Travelling {
    /// The connection that a body is the rest of, if it is one.
    pub(crate) fn into_incoming(body: Box<dyn BodyStream>) -> Option<Box<Incoming>> {
        body.into_any().downcast::<Travelling>().ok()?.0.take()
    }
}

impl BodyStream for Travelling {
    fn buffered(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |i| i.buffered())
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        self.0.as_mut().map_or(Poll::Ready(Ok(false)), |i| i.poll_more(cx))
    }

    fn poll_pass(&mut self, cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Poll<Result<usize, BodyError>> {
        self.0.as_mut().map_or(Poll::Ready(Ok(0)), |i| i.poll_pass(cx, pass))
    }

    fn consume(&mut self, n: usize) {
        if let Some(incoming) = &mut self.0 {
            incoming.consume(n);
        }
    }

    fn storage(&self) -> usize {
        self.0.as_ref().map_or(0, |i| i.buffer.storage())
    }

    fn take(&mut self) -> Vec<u8> {
        self.0.as_mut().map_or_else(Vec::new, |i| i.buffer.take_entity())
    }

    fn is_complete(&self) -> bool {
        self.0.as_ref().is_none_or(|i| i.state == State::Done)
    }

    fn exact_len(&self) -> Option<u64> {
        self.0.as_ref().and_then(|i| i.declared)
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(incoming) = &mut self.0 {
            incoming.drive(cx);
        }
    }

    fn watch(&mut self, cx: &mut Context<'_>) {
        if let Some(incoming) = &mut self.0 {
            incoming.watch(cx);
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }

    fn recycle(mut self: Box<Self>) {
        if let Some(mut incoming) = self.0.take() {
            incoming.shell = Some(self);
            incoming.go_home();
        }
    }
}

impl Drop for Travelling {
    fn drop(&mut self) {
        if let Some(incoming) = self.0.take() {
            incoming.go_home();
        }
    }
}
