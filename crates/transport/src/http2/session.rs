//! Connections to backends that speak HTTP/2, each of them for many requests at a time.
//!
//! A worker has its own, as it has its own pool of HTTP/1.1. A request goes to the one with the fewest streams that has room; only
//! where none has, another one is made, by one request while the others wait for it.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::Reason;
use h2::client::{ResponseFuture, SendRequest};
use http::header::{HeaderName, HeaderValue};
use message::{Body, Method};

use super::body::{Receiving, Sending, Upload, io_of};
use super::duplex::{Duplex, Traffic};
use super::heads;
use crate::client::{Client, OutRequest, Reached, is_close, shortage, watching};
use crate::clock;
use crate::connection::{ENDLESS, MOST_INTERIM, lock};
use crate::descriptors::Descriptor;
use crate::http1::write::Delimiter;
use crate::io::Writer;
use crate::places::Place;
use crate::pool::Shard;
use crate::relay::RelayError;
use crate::timer::{Timer, after};
use crate::{ClientLimits, Framing, Response, SendError, SendErrorKind, SendOptions, Target};

/// How long a backend that chose HTTP/1.1 is not asked again.
const HTTP1_FOR: Duration = Duration::from_secs(60);
/// Most times that a request which was not processed is sent again.
const AGAIN: u8 = 2;

/// The sessions of one worker.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<Target, Backend>>);

#[derive(Default)]
struct Backend {
    open: Vec<Session>,
    /// Until then the backend, which chose HTTP/1.1, is spoken to in HTTP/1.1.
    http1_until: Option<Instant>,
    /// Held by the request that connects.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// One connection.
#[derive(Clone)]
struct Session {
    send: SendRequest<Bytes>,
    state: Arc<State>,
}

struct State {
    streams: AtomicUsize,
    /// No new streams.
    retired: AtomicBool,
    /// It has carried a stream before.
    used: AtomicBool,
    /// The backend allows no streams on it; waiting requests are told.
    barred: AtomicBool,
    told: tokio::sync::Notify,
    idle_since: Mutex<Instant>,
    expires: Instant,
    traffic: Arc<Traffic>,
}

impl State {
    fn retire(&self) {
        self.retired.store(true, Relaxed);
    }

    /// The backend allows no streams on it: there will be another connection.
    fn bar(&self) {
        if !self.barred.swap(true, Relaxed) {
            self.retire();
            self.told.notify_waiters();
        }
    }
}

/// A stream of a connection, from when it is chosen to when its response has ended.
struct InUse(Arc<State>);

impl InUse {
    fn of(state: &Arc<State>) -> InUse {
        state.streams.fetch_add(1, Relaxed);
        InUse(state.clone())
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if self.0.streams.fetch_sub(1, Relaxed) == 1 {
            *lock(&self.0.idle_since) = clock::now();
        }
    }
}

/// The protocol that a backend is spoken to in.
enum Spoken {
    Http2(Session, InUse),
    Http1,
}

impl Sessions {
    /// A connection with room for another stream; also one that has none, if there is no other and it is to be so.
    fn find(&self, target: &Target, also_full: bool) -> Option<Spoken> {
        let now = clock::now();
        let mut backends = lock(&self.0);
        let backend = backends.get_mut(target)?;
        if backend.http1_until.is_some_and(|until| now < until) {
            return Some(Spoken::Http1);
        }
        backend.open.retain(|session| !session.state.retired.load(Relaxed) && now < session.state.expires);
        let streams = |session: &&Session| session.state.streams.load(Relaxed);
        let session = backend.open.iter().min_by_key(streams)?;
        let has_room = streams(&session) < session.send.current_max_send_streams();
        (has_room || also_full).then(|| Spoken::Http2(session.clone(), InUse::of(&session.state)))
    }

    fn turn(&self, target: &Target) -> Arc<tokio::sync::Mutex<()>> {
        lock(&self.0).entry(target.clone()).or_default().turn.clone()
    }

    fn put(&self, target: &Target, session: Session) {
        lock(&self.0).entry(target.clone()).or_default().open.push(session);
    }

    fn chose_http1(&self, target: &Target) {
        let until = clock::now() + HTTP1_FOR;
        lock(&self.0).entry(target.clone()).or_default().http1_until = Some(until);
    }

    /// Lets go of those that nobody has used for so long; they close when nobody has a stream on them.
    pub(crate) fn evict(&self, longest: Duration) {
        let now = Instant::now();
        let mut gone = Vec::new();
        let mut backends = lock(&self.0);
        backends.retain(|_, backend| {
            gone.extend(backend.open.extract_if(.., |session| {
                let state = &session.state;
                let idle = state.streams.load(Relaxed) == 0
                    && now.saturating_duration_since(*lock(&state.idle_since)) >= longest;
                idle || state.retired.load(Relaxed) || now >= state.expires
            }));
            let is_http1 = backend.http1_until.is_some_and(|until| now < until);
            !backend.open.is_empty() || is_http1 || Arc::strong_count(&backend.turn) > 1
        });
        drop(backends);
    }

    /// Sessions without a stream.
    pub(crate) fn idle(&self) -> usize {
        let backends = lock(&self.0);
        backends
            .values()
            .flat_map(|backend| &backend.open)
            .filter(|session| session.state.streams.load(Relaxed) == 0)
            .count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }
}

/// Counts a connection as long as its task goes on.
struct Counted {
    shard: Arc<Shard>,
    _place: Place,
    _descriptor: Descriptor,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.shard.counters.active.sub(1);
    }
}

/// Why a stream got no response.
struct Failed {
    kind: SendErrorKind,
    /// The backend has certainly not begun with it.
    refused: bool,
    /// The connection ended, and nothing of a response came.
    unanswered: bool,
    /// Bytes of the body that were taken.
    sent: u64,
}

impl Failed {
    fn of(error: h2::Error, sent: u64) -> Failed {
        let refused = error.is_remote()
            && (error.is_go_away() || (error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM)));
        let unanswered = error.is_io();
        let kind = match error.is_library() {
            // The library ends a stream for a head that is malformed, and for one beyond its limit.
            true if error.is_reset() => {
                SendErrorKind::Protocol("its head is malformed or larger than the limit, or not valid HTTP/2")
            }
            true => SendErrorKind::Protocol("not valid HTTP/2"),
            false if error.is_io() => match io_of(error) {
                error if is_close(&error) || error.kind() == io::ErrorKind::BrokenPipe => {
                    SendErrorKind::Closed
                }
                error => SendErrorKind::Read(Arc::new(error)),
            },
            false => match error.reason().filter(|_| error.is_reset()) {
                Some(reason) => SendErrorKind::Reset(reason.into()),
                None => SendErrorKind::Closed,
            },
        };
        Failed { kind, refused, unanswered, sent }
    }
}

impl Client {
    /// As [`Client::send`], to a target that speaks HTTP/2, or may.
    // Boxed: it is another future than that of HTTP/1.1, and may come back to that one.
    pub(crate) fn send_http2<'a>(
        &'a self,
        target: &'a Target,
        request: OutRequest<'a>,
        options: &'a SendOptions,
    ) -> Pin<Box<dyn Future<Output = Result<Response, SendError>> + Send + 'a>> {
        Box::pin(self.send_in_http2(target, request, options))
    }

    async fn send_in_http2(
        &self,
        target: &Target,
        request: OutRequest<'_>,
        options: &SendOptions,
    ) -> Result<Response, SendError> {
        let fail = |kind, nothing_processed, body_intact| {
            self.pools.with_shard(|shard| {
                shard.counters.failed.add(1);
                if matches!(kind, SendErrorKind::LocalShortage(_)) {
                    shard.counters.shed.add(1);
                }
            });
            Err(SendError { kind, target: target.clone(), nothing_processed, body_intact })
        };
        if let Some(http1) = target.http1().filter(|_| options.upgrade) {
            // What is upgraded is a connection of HTTP/1.1.
            return self.send(http1, request, options).await;
        }
        let OutRequest { method, target: path, headers, host, body } = request;
        let deadline = after(clock::now(), options.response);
        let authority = host.unwrap_or(target.authority());
        let framing = SendOptions { framing: options.framing, ..SendOptions::default() };
        let length = match crate::client::delimiter(method, body, &framing) {
            Ok(Delimiter::Length(n)) => Some(n),
            _ => None,
        };
        let scheme = if target.tls().is_some() { "https" } else { "http" };
        let head = match heads::to_request(method, scheme, authority, path, headers, length) {
            Ok(head) => head,
            Err(why) => return fail(SendErrorKind::BadRequest(why), true, false),
        };
        let kept = match &*body {
            Body::Empty => Some(Bytes::new()),
            Body::Bytes(bytes) => Some(bytes.clone()),
            Body::Stream(_) => None,
        };
        let was_empty = body.is_empty();
        let mut again = 0;
        loop {
            let connected = watching(body, Box::pin(self.session(target, options, deadline))).await;
            let (session, in_use) = match connected {
                Ok(Spoken::Http2(session, in_use)) => (session, in_use),
                Ok(Spoken::Http1) => {
                    let request = OutRequest { method, target: path, headers, host, body };
                    let http1 = target.http1().unwrap_or(target);
                    return self.send(http1, request, options).await;
                }
                Err(kind) => return fail(kind, true, true),
            };
            let used = session.state.used.swap(true, Relaxed);
            self.pools.with_shard(|shard| {
                shard.counters.requests.bump();
                if used {
                    shard.counters.reused.bump();
                }
            });
            let state = session.state.clone();
            let limits = &self.pools.limits;
            let sent = send_on(session, in_use, head.clone(), method, body, options, deadline, limits).await;
            let failed = match sent {
                Ok((mut response, receiving)) => {
                    response.body = match receiving {
                        Ok(mut receiving) => {
                            receiving.target = Some(target.clone());
                            Body::Stream(receiving)
                        }
                        Err(body) => body,
                    };
                    return Ok(response);
                }
                Err(failed) => failed,
            };
            if failed.refused || failed.unanswered {
                state.retire();
            }
            let safe = failed.refused || (used && failed.unanswered && method.is_idempotent());
            if safe && again < AGAIN && (failed.sent == 0 && !body.is_empty() || kept.is_some()) {
                if let Some(kept) = &kept {
                    *body = if was_empty { Body::Empty } else { Body::Bytes(kept.clone()) };
                }
                again += 1;
                self.pools.with_shard(|shard| shard.counters.retried.add(1));
                continue;
            }
            let intact = failed.sent == 0 && (was_empty || !body.is_empty());
            return fail(failed.kind, failed.refused, intact);
        }
    }

    /// A connection for one more stream.
    async fn session(
        &self,
        target: &Target,
        options: &SendOptions,
        deadline: Instant,
    ) -> Result<Spoken, SendErrorKind> {
        let shard = self.pools.shard();
        if let Some(found) = shard.sessions.find(target, false) {
            return Ok(found);
        }
        let connect_by = after(clock::now(), options.connect);
        let until = tokio::time::Instant::from_std(deadline.min(connect_by));
        let connecting = async {
            let turn = shard.sessions.turn(target);
            // Who has the turn may wait for a place.
            let _turn = match options.extra_connection {
                true => None,
                false => Some(turn.lock().await),
            };
            if let Some(found) = shard.sessions.find(target, false) {
                return Ok(found);
            }
            let http1 = target.http1().unwrap_or(target);
            let backend = self.pools.places.at(http1);
            let place = match backend.take() {
                Some(place) => place,
                None if options.extra_connection => backend.extra(),
                // It waits for its turn on one that is full.
                None => match (shard.sessions.find(target, true), self.pools.places.wait(&backend)) {
                    (Some(found), _) => return Ok(found),
                    (None, Some(waiting)) => waiting.place().await,
                    (None, None) => {
                        let why = "too many requests wait for a connection to the target";
                        return Err(shortage(io::ErrorKind::QuotaExceeded, why));
                    }
                },
            };
            let Reached { read, write, descriptor, http2 } = self.reach(target).await?;
            if !http2 {
                shard.sessions.chose_http1(target);
                // Somebody will want it: it goes to the pool.
                self.connected(http1, read, write, place, descriptor).shelve();
                return Ok(Spoken::Http1);
            }
            let writer = Writer::new(write);
            let duplex = Duplex::new(read, writer, Bytes::new(), false, options.idle);
            let may_be_kept = place.may_be_kept();
            let session = self.open(target, &shard, duplex, place, descriptor).await?;
            let in_use = InUse::of(&session.state);
            // Nobody else finds an extra one: it ends with its stream.
            if may_be_kept {
                shard.sessions.put(target, session.clone());
                shard.ensure_sweeper();
            }
            Ok(Spoken::Http2(session, in_use))
        };
        match tokio::time::timeout_at(until, connecting).await {
            Ok(found) => found,
            Err(_) if deadline <= connect_by => Err(SendErrorKind::ResponseTimeout),
            Err(_) => Err(SendErrorKind::ConnectTimeout),
        }
    }

    async fn open(
        &self,
        target: &Target,
        shard: &Arc<Shard>,
        duplex: Duplex,
        place: Place,
        descriptor: Descriptor,
    ) -> Result<Session, SendErrorKind> {
        let limits = &self.pools.limits;
        let traffic = duplex.traffic();
        let handshake = h2::client::Builder::new()
            .initial_window_size(super::STREAM_WINDOW)
            .initial_connection_window_size(super::CONNECTION_WINDOW)
            .max_header_list_size(u32::try_from(limits.head_size).unwrap_or(u32::MAX))
            .max_send_buffer_size(super::SEND_BUFFER)
            .enable_push(false)
            .handshake::<_, Bytes>(duplex)
            .await;
        let (send, mut connection) =
            handshake.map_err(|error| SendErrorKind::Write(Arc::new(io_of(error))))?;
        let now = clock::now();
        let state = Arc::new(State {
            streams: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
            used: AtomicBool::new(false),
            barred: AtomicBool::new(false),
            told: tokio::sync::Notify::new(),
            idle_since: Mutex::new(now),
            expires: after(now, limits.lifetime),
            traffic,
        });
        shard.counters.created.add(1);
        shard.counters.active.add(1);
        let counted = Counted { shard: shard.clone(), _place: place, _descriptor: descriptor };
        let (session, backend) = (state.clone(), target.to_string());
        tokio::spawn(async move {
            let counted = counted;
            let ended = poll_fn(|cx| {
                let polled = Pin::new(&mut connection).poll(cx);
                if connection.max_concurrent_send_streams() == 0 {
                    session.bar();
                }
                match polled {
                    Poll::Pending if session.traffic.is_flooded() => Poll::Ready(None),
                    polled => polled.map(Some),
                }
            });
            match ended.await {
                None => {
                    tracing::warn!(
                        backend,
                        "an HTTP/2 connection was ended: a flood of frames that carry nothing"
                    )
                }
                Some(Err(error)) => {
                    tracing::debug!(backend, %error, "an HTTP/2 connection to a backend ended")
                }
                Some(Ok(())) => {}
            }
            session.retire();
            drop(connection);
            drop(counted);
        });
        Ok(Session { send, state })
    }
}

/// RFC 9113, 8.6.
const SWITCHED: &str = "status 101, which HTTP/2 does not have";

type Answered = (Response, Result<Box<Receiving>, Body>);

/// One request on one connection: both directions at once, because the response may come first.
#[allow(clippy::too_many_arguments)]
async fn send_on(
    mut session: Session,
    in_use: InUse,
    head: http::Request<()>,
    method: &Method,
    body: &mut Body,
    options: &SendOptions,
    deadline: Instant,
    limits: &ClientLimits,
) -> Result<Answered, Failed> {
    let mut timer = Timer::default();
    let failed = |kind| Failed { kind, refused: false, unanswered: false, sent: 0 };
    poll_fn(|cx| match session.send.poll_ready(cx) {
        Poll::Pending if timer.poll_until(deadline, cx) => {
            Poll::Ready(Err(Failed { refused: true, ..failed(SendErrorKind::ResponseTimeout) }))
        }
        // Before anything was sent.
        polled => polled.map_err(|error| Failed { refused: true, ..Failed::of(error, 0) }),
    })
    .await?;
    let empty = body.is_complete() && body.buffered().is_empty();
    let declared = body.exact_len();
    let opened = session.send.send_request(head, empty);
    let (response, stream) = opened.map_err(|error| Failed { refused: true, ..Failed::of(error, 0) })?;
    let traffic = session.state.traffic.clone();
    let seen = traffic.received();
    let mut sending = Sending::new(stream, declared, traffic.clone(), options.idle);
    if empty {
        sending.is_done();
    }
    let mut exchange = Exchange {
        response,
        sending,
        timer,
        silence: options.silence,
        deadline,
        starved: None,
        interim: (0, 0),
        most_bytes: limits.head_size,
        sent: false,
        write_error: None,
    };
    let state = session.state.clone();
    let mut told = pin!(state.told.notified());
    let answered = poll_fn(|cx| {
        // Before it is looked at.
        let _ = told.as_mut().poll(cx);
        match exchange.poll(cx, body) {
            // It is pending as long as the stream has not been opened.
            Poll::Pending if state.barred.load(Relaxed) && session.send.poll_ready(cx).is_pending() => {
                let sent = exchange.sending.sent();
                Poll::Ready(Err(Failed { refused: true, sent, ..failed(SendErrorKind::Closed) }))
            }
            polled => polled,
        }
    });
    let response = match answered.await {
        Ok(response) => response,
        Err(failed) => {
            let silent = matches!(failed.kind, SendErrorKind::ResponseTimeout | SendErrorKind::WriteTimeout);
            if silent && traffic.received() == seen {
                // Nothing came at all: the connection may be dead without a sign.
                session.state.retire();
            }
            if matches!(failed.kind, SendErrorKind::Protocol(ENDLESS)) {
                // It may go on with them: nobody else is to have them beside an answer.
                session.state.retire();
            }
            exchange.sending.reset(Reason::CANCEL);
            return Err(failed);
        }
    };
    let (parts, stream) = response.into_parts();
    let sent = exchange.sending.sent();
    let (head, length) = heads::response(&parts, limits.header_count)
        .map_err(|why| Failed { sent: sent.max(1), ..failed(SendErrorKind::Protocol(why)) })?;
    let bodyless = *method == Method::Head || head.status == 204 || head.status == 304;
    let ended = stream.is_end_stream();
    let mut receiving = Receiving::new(stream, length, options.idle, in_use);
    let request_body = std::mem::take(body);
    match exchange.sent {
        true => request_body.recycle(),
        false if exchange.write_error.is_none() => {
            let to_its_end = (200..300).contains(&head.status);
            let upload = Upload { sending: exchange.sending, body: request_body, to_its_end };
            receiving.upload = Some(Box::new(upload));
        }
        false => {}
    }
    let response = Response {
        head,
        body: Body::Empty,
        close: false,
        framing: Framing::Auto,
        about: 0,
        on_end: None,
        dialogue: None,
    };
    Ok((
        response,
        match (bodyless, ended) {
            (true, _) => Err(Body::Empty),
            (false, true) => Err(Body::Bytes(Bytes::new())),
            (false, false) => Ok(receiving),
        },
    ))
}

struct Exchange {
    response: ResponseFuture,
    sending: Sending,
    timer: Timer,
    /// [`SendOptions::silence`], until the request is sent and it is part of `deadline`.
    silence: Option<Duration>,
    /// By the clock, for the response head.
    deadline: Instant,
    /// Since when the sender of the body is waited for.
    starved: Option<Instant>,
    /// Interim responses, and about as many bytes as they would have in HTTP/1.1.
    interim: (usize, usize),
    most_bytes: usize,
    sent: bool,
    write_error: Option<io::Error>,
}

impl Exchange {
    /// See the exchange of HTTP/1.1: the time in which the sender of the body is waited for is not the backend's.
    fn put_off(&mut self, starved: bool) {
        if starved == self.starved.is_some() {
            return;
        }
        let now = clock::now();
        match self.starved.take() {
            Some(since) => self.deadline += now.saturating_duration_since(since),
            None => self.starved = Some(now),
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Body,
    ) -> Poll<Result<http::Response<h2::RecvStream>, Failed>> {
        let failed = |kind, sent| Failed { kind, refused: false, unanswered: false, sent };
        if !self.sent && self.write_error.is_none() {
            let polled = self.sending.poll(cx, body);
            self.put_off(polled.is_pending() && self.sending.is_starved());
            match polled {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => {
                    self.sent = true;
                    if let Some(silence) = self.silence.take() {
                        self.deadline = self.deadline.min(after(clock::now(), silence));
                    }
                    // The client can be watched from now on.
                    if matches!(body, Body::Stream(_)) {
                        std::mem::take(body).recycle();
                    }
                }
                // The backend may have answered before it stopped listening.
                Poll::Ready(Err(RelayError::Write(error))) => self.write_error = Some(error),
                Poll::Ready(Err(RelayError::Body(error))) => {
                    let sent = self.sending.sent();
                    return Poll::Ready(Err(failed(SendErrorKind::RequestBody(error), sent.max(1))));
                }
            }
        }
        let sent = self.sending.sent();
        // An error shows with the response, too.
        while let Poll::Ready(Some(Ok(interim))) = self.response.poll_informational(cx) {
            let size = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 4;
            if interim.status() == http::StatusCode::SWITCHING_PROTOCOLS {
                return Poll::Ready(Err(failed(SendErrorKind::Protocol(SWITCHED), sent)));
            }
            let (count, bytes) = &mut self.interim;
            *count += 1;
            *bytes += interim.headers().iter().map(size).sum::<usize>();
            if *count > MOST_INTERIM || *bytes > self.most_bytes {
                return Poll::Ready(Err(failed(SendErrorKind::Protocol(ENDLESS), sent)));
            }
        }
        match Pin::new(&mut self.response).poll(cx) {
            Poll::Ready(Ok(response)) => Poll::Ready(Ok(response)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(Failed::of(error, sent))),
            Poll::Pending => match &self.write_error {
                Some(error) if error.kind() == io::ErrorKind::TimedOut => {
                    Poll::Ready(Err(failed(SendErrorKind::WriteTimeout, sent)))
                }
                _ if self.starved.is_some() => Poll::Pending,
                _ if self.timer.poll_until(self.deadline, cx) => {
                    Poll::Ready(Err(failed(SendErrorKind::ResponseTimeout, sent)))
                }
                _ => Poll::Pending,
            },
        }
    }
}
