//! Sends requests: takes a pooled connection or makes one, pushes the request and waits for the response at
//! the same time, and sends again only what certainly nobody has processed.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use message::{Body, BodyError, Headers, Method, ResponseHead, Version};
use tokio_rustls::TlsConnector;

use crate::clock;
use crate::connect;
use crate::connection::{Conn, Incoming, ReceiveError};
use crate::descriptors::Descriptor;
use crate::http1::Length;
use crate::http1::parse::{self, HeadLimits, ResponseFacts};
use crate::http1::write::{self, Delimiter, Kind};
use crate::http2;
use crate::io::{ReadHalf, WriteHalf, split_plain, split_tls};
use crate::places::Place;
use crate::pool::{Pools, Shard};
use crate::relay::{Outgoing, RelayError, Upload};
use crate::resolve::Resolver;
use crate::timer::after;
use crate::{ClientLimits, ClientStats, Framing, Response, SendError, SendErrorKind, SendOptions, Target};

pub(crate) use crate::pool::ClientSide;

/// A request to send. The head is borrowed, so that it can be sent again elsewhere.
pub struct OutRequest<'a> {
    /// Method.
    pub method: &'a Method,
    /// Request target as it goes on the wire: `/path?query`, or the whole URI for a proxy.
    pub target: &'a str,
    /// Fields. Hop-by-hop ones, `Expect`, `Content-Length` and `Transfer-Encoding` are not sent: the transport
    /// writes its own.
    pub headers: &'a Headers,
    /// Value of the `Host` field instead of the target's authority (`REQUEST_HOST_HEADER`). A `Host` among the
    /// fields is not sent: it names the bus, not the backend.
    pub host: Option<&'a str>,
    /// The entity; it is taken as far as it was sent.
    pub body: &'a mut Body,
}

/// Sends requests over pooled connections. Cheap to clone; each worker has its own pools in it.
#[derive(Clone)]
pub struct Client {
    pub(crate) pools: Arc<Pools>,
}

impl Client {
    /// A client with empty pools.
    pub fn new(limits: ClientLimits) -> Client {
        Client { pools: Pools::new(limits) }
    }

    /// Sends a request and returns the response as soon as its head is there. Must run in a tokio runtime.
    ///
    /// An error status is a response like any other. Interim responses (100, 103) are skipped. A request is
    /// sent a second time, on a fresh connection, only if the pooled connection turned out to be dead before
    /// a byte of response came, the request is still at hand whole, and its method is idempotent or nothing was sent.
    pub async fn send(
        &self,
        target: &Target,
        request: OutRequest<'_>,
        options: &SendOptions,
    ) -> Result<Response, SendError> {
        if target.http1().is_some() {
            return self.send_http2(target, request, options).await;
        }
        if options.upgrade
            && let Some(upgradable) = target.for_upgrade()
        {
            return Box::pin(self.send(&upgradable, request, options)).await;
        }
        let fail = |kind, nothing_processed, body_intact| {
            self.pools.with_shard(|shard| {
                shard.counters.failed.add(1);
                if matches!(kind, SendErrorKind::LocalShortage(_)) {
                    shard.counters.shed.add(1);
                }
            });
            Err(SendError { kind, target: target.clone(), nothing_processed, body_intact })
        };
        let deadline = after(clock::now(), options.response);
        let take = |shard: &Shard, cx: &mut Context<'_>| {
            shard.counters.requests.bump();
            if options.keep_alive { shard.take(target, cx) } else { None }
        };
        let pooled = poll_fn(|cx| Poll::Ready(self.pools.with_shard(|shard| take(shard, cx)))).await;
        let (mut incoming, mut reused) = match pooled {
            Some(incoming) => (incoming, true),
            None => match watching(request.body, Box::pin(self.connect(target, options, deadline))).await {
                Ok(connected) => connected,
                Err(kind) => return fail(kind, true, true),
            },
        };

        incoming.switches = options.upgrade;
        let mut outgoing = Outgoing::new(options.idle);
        let (method, body) = (request.method, request.body);
        let begun = delimiter(method, body, options).and_then(|delimiter| {
            head(
                &mut outgoing.head,
                target,
                method,
                request.target,
                request.host,
                request.headers,
                delimiter,
                options,
            )?;
            Ok(delimiter)
        });
        let begun = match begun {
            Ok(delimiter) => outgoing.begin(delimiter, body, reused).map_err(SendErrorKind::RequestBody),
            Err(why) => Err(SendErrorKind::BadRequest(why)),
        };
        if let Err(kind) = begun {
            incoming.reusable = true; // not a byte was sent
            drop(incoming.into_body());
            return fail(kind, true, false);
        }

        loop {
            let limits = HeadLimits {
                size: self.pools.limits.head_size,
                fields: self.pools.limits.header_count,
                target: 0,
            };
            let mut exchange = Exchange {
                incoming: &mut incoming,
                outgoing: &mut outgoing,
                body,
                silence: options.silence,
                deadline,
                starved: None,
                limits,
                to_head: *method == Method::Head,
                sent: false,
                write_error: None,
            };
            let failure = match poll_fn(|cx| exchange.poll(cx)).await {
                Ok((head, facts)) => {
                    if head.status == 407
                        && let Some(proxy) = target.proxy().filter(|_| target.tunnel().is_none())
                    {
                        return fail(proxy.refused(), true, false);
                    }
                    let sending = match (&exchange.write_error, exchange.sent) {
                        (Some(_), _) => Sending::Failed,
                        (None, true) => Sending::Done,
                        (None, false) => Sending::GoesOn,
                    };
                    return Ok(respond(incoming, outgoing, body, options, head, facts, sending));
                }
                Err(failure) => failure,
            };
            let safe = method.is_idempotent() || !outgoing.has_begun();
            if reused && failure.unanswered && safe && outgoing.can_repeat() {
                drop(incoming);
                self.pools.with_shard(|shard| shard.counters.retried.add(1));
                (incoming, reused) = match Box::pin(self.connect(target, options, deadline)).await {
                    Ok(connected) => connected,
                    Err(kind) => return fail(kind, !outgoing.has_begun(), false),
                };
                incoming.switches = options.upgrade;
                outgoing.repeat();
                continue;
            }
            return fail(failure.kind, !outgoing.has_begun(), false);
        }
    }

    /// Counters of all workers together.
    pub fn stats(&self) -> ClientStats {
        self.pools.stats()
    }

    /// Closes all idle connections.
    pub fn close_idle(&self) {
        self.pools.clear();
    }

    /// A connection, and whether it was used before: another request may be done with one first.
    async fn connect(
        &self,
        target: &Target,
        options: &SendOptions,
        deadline: Instant,
    ) -> Result<(Box<Incoming>, bool), SendErrorKind> {
        let connect_by = after(clock::now(), options.connect);
        let until = tokio::time::Instant::from_std(deadline.min(connect_by));
        let place = match tokio::time::timeout_at(until, self.place(target, options)).await {
            Ok(Ok(Free::Place(place))) => place,
            Ok(Ok(Free::Connection(incoming))) => return Ok((incoming, true)),
            Ok(Err(kind)) => return Err(kind),
            Err(_) => {
                return Err(shortage(io::ErrorKind::TimedOut, "all connections to the target are in use"));
            }
        };
        match tokio::time::timeout_at(until, self.connect_now(target, place)).await {
            Ok(connected) => Ok((connected?, false)),
            Err(_) if deadline <= connect_by => Err(SendErrorKind::ResponseTimeout),
            Err(_) => Err(SendErrorKind::ConnectTimeout),
        }
    }

    /// A place for another connection to the target, or, where it has as many as it may, a connection that somebody else is
    /// done with.
    async fn place(&self, target: &Target, options: &SendOptions) -> Result<Free, SendErrorKind> {
        let backend = self.pools.places.at(target);
        if let Some(place) = backend.take() {
            return Ok(Free::Place(place));
        }
        if options.extra_connection {
            return Ok(Free::Place(backend.extra()));
        }
        let Some(waiting) = self.pools.places.wait(&backend) else {
            return Err(shortage(
                io::ErrorKind::QuotaExceeded,
                "too many requests wait for a connection to the target",
            ));
        };
        // Through all rounds, so that who waits keeps its turn.
        let mut place = pin!(waiting.place());
        loop {
            // From here on connections are handed over; one that became idle before, perhaps on another worker, is not.
            let mut connection = self.pools.shard().expect(target);
            self.pools.close_one(target);
            let free = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
                // One that is not fit is closed by this, and its place is free.
                Poll::Ready(incoming) => Poll::Ready(incoming.ok().and_then(|mut incoming| {
                    let fit = options.keep_alive && !incoming.is_stale(cx, false);
                    fit.then_some(Free::Connection(incoming))
                })),
                Poll::Pending => place.as_mut().poll(cx).map(|place| Some(Free::Place(place))),
            })
            .await;
            match free {
                Some(Free::Connection(incoming)) => {
                    self.pools.with_shard(|shard| shard.counters.reused.bump());
                    return Ok(Free::Connection(incoming));
                }
                Some(free) => return Ok(free),
                None => {}
            }
        }
    }

    /// A place for a connection among the descriptors of the process.
    pub(crate) fn descriptor(&self) -> Result<Descriptor, SendErrorKind> {
        let descriptor = Descriptor::for_backend().or_else(|| {
            // Connections that nobody uses give way.
            self.pools.clear();
            Descriptor::for_backend()
        });
        descriptor.ok_or_else(|| SendErrorKind::LocalShortage(Arc::new(rustix::io::Errno::MFILE.into())))
    }

    /// Who knows names.
    pub(crate) fn resolver(&self) -> &Arc<Resolver> {
        &self.pools.resolver
    }

    async fn connect_now(&self, target: &Target, place: Place) -> Result<Box<Incoming>, SendErrorKind> {
        let Reached { read, write, descriptor, .. } = self.reach(target).await?;
        Ok(self.connected(target, read, write, place, descriptor))
    }

    /// Connects, with TLS where the target has it.
    pub(crate) async fn reach(&self, target: &Target) -> Result<Reached, SendErrorKind> {
        let descriptor = self.descriptor()?;
        #[cfg(feature = "simulation")]
        if let Ok(ip) = target.host().parse() {
            let address = std::net::SocketAddr::new(ip, target.port());
            if let Some(connecting) = crate::simulation::connect(address) {
                let connected = connecting.await.map_err(|error| connect::failure(error, address))?;
                let (read, write) = crate::simulation::split(connected);
                return Ok(Reached { read, write, descriptor, http2: target.http1().is_some() });
            }
        }
        let (host, port) = match target.proxy() {
            Some(proxy) => (proxy.host(), proxy.port()),
            None => (target.host(), target.port()),
        };
        let (mut stream, descriptor) = match host.parse() {
            Ok(ip) => connect::connect(&[ip], port, descriptor).await?,
            Err(_) => {
                let addresses = self.pools.resolver.resolve(host).await.map_err(unresolved)?;
                connect::connect(&addresses, port, descriptor).await?
            }
        };
        // Fails only on a socket that is already dead, which shows at once.
        let _ = stream.set_nodelay(true);
        if let Some(proxy) = target.tunnel() {
            proxy.tunnel(&mut stream, &target.host_and_port()).await?;
        }
        let http2;
        let (read, write) = match target.tls() {
            None => {
                let (read, write) = split_plain(stream);
                return Ok(Reached { read, write, descriptor, http2: target.http1().is_some() });
            }
            Some(profile) => {
                let tls_error = |e: io::Error| SendErrorKind::Tls(Arc::new(e));
                let name = profile.server_name(target.host()).map_err(|e| tls_error(io::Error::other(e)))?;
                let config = if target.http1().is_some() { profile.with_http2() } else { profile.config() };
                let connector = TlsConnector::from(config.clone());
                let stream = connector.connect(name.clone(), stream).await.map_err(tls_error)?;
                profile.check(stream.get_ref().1, &name).await.map_err(tls_error)?;
                http2 = stream.get_ref().1.alpn_protocol() == Some(http2::ALPN);
                split_tls(stream.into())
            }
        };
        Ok(Reached { read, write, descriptor, http2 })
    }

    pub(crate) fn connected(
        &self,
        target: &Target,
        read: ReadHalf,
        write: WriteHalf,
        place: Place,
        descriptor: Descriptor,
    ) -> Box<Incoming> {
        let shard = self.pools.shard();
        let conn = Conn::new(write, Some(ClientSide::new(shard, target.clone(), place, descriptor)));
        Incoming::new(read, conn, self.pools.limits.io_buffer_size, false)
    }
}

/// Waits for a connection, while the sender of the body may go away.
pub(crate) async fn watching<T>(body: &mut Body, mut connecting: impl Future<Output = T> + Unpin) -> T {
    poll_fn(|cx| {
        let polled = Pin::new(&mut connecting).poll(cx);
        if polled.is_pending() {
            body.watch(cx);
        }
        polled
    })
    .await
}

/// A connection that was made.
pub(crate) struct Reached {
    pub(crate) read: ReadHalf,
    pub(crate) write: WriteHalf,
    pub(crate) descriptor: Descriptor,
    /// What it speaks.
    pub(crate) http2: bool,
}

/// What a request that needs a connection gets.
enum Free {
    Place(Place),
    Connection(Box<Incoming>),
}

pub(crate) fn shortage(kind: io::ErrorKind, reason: &'static str) -> SendErrorKind {
    SendErrorKind::LocalShortage(Arc::new(io::Error::new(kind, reason)))
}

pub(crate) fn unresolved(error: Arc<io::Error>) -> SendErrorKind {
    match error.kind() == io::ErrorKind::QuotaExceeded || connect::is_shortage(&error) {
        true => SendErrorKind::LocalShortage(error),
        false => SendErrorKind::Dns(error),
    }
}

/// How the body of a request ends. Of no body nothing is said, except where a method gives a body meaning.
pub(crate) fn delimiter(
    method: &Method,
    body: &Body,
    options: &SendOptions,
) -> Result<Delimiter, &'static str> {
    if body.is_empty() {
        return Ok(match method {
            Method::Post | Method::Put | Method::Patch => Delimiter::Length(0),
            _ => Delimiter::None,
        });
    }
    match (body.exact_len(), options.framing, options.version) {
        (Some(n), Framing::Auto, _) | (Some(n), _, Version::Http10) => Ok(Delimiter::Length(n)),
        (None, _, Version::Http10) => Err("an HTTP/1.0 request needs a body of known length"),
        _ => Ok(Delimiter::Chunked),
    }
}

#[allow(clippy::too_many_arguments)]
fn head(
    out: &mut Vec<u8>,
    target: &Target,
    method: &Method,
    request_target: &str,
    host: Option<&str>,
    headers: &Headers,
    delimiter: Delimiter,
    options: &SendOptions,
) -> Result<(), &'static str> {
    if *method == Method::Connect {
        return Err("CONNECT asks for a tunnel, which is not spoken here");
    }
    if let Method::Other(token) = method
        && (token.is_empty() || !token.bytes().all(message::is_token_byte))
    {
        return Err("invalid method");
    }
    let request_target = parse::without_fragment(request_target);
    if request_target.is_empty() || parse::visible(request_target.as_bytes()) < request_target.len() {
        return Err("space or control byte in the request target");
    }
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    let proxy = target.proxy().filter(|_| target.tunnel().is_none());
    if proxy.is_some() && request_target.starts_with('/') {
        out.extend_from_slice(b"http://");
        out.extend_from_slice(target.authority().as_bytes());
    }
    out.extend_from_slice(request_target.as_bytes());
    out.extend_from_slice(match options.version {
        Version::Http10 => b" HTTP/1.0\r\n",
        _ => b" HTTP/1.1\r\n",
    });
    match (host, target.host_line()) {
        (None, Some(line)) => out.extend_from_slice(line.as_bytes()),
        (host, _) => write::field(out, b"Host", host.unwrap_or(target.authority()).as_bytes())?,
    }
    write::fields(out, headers, Kind::Request)?;
    if let Some(value) = proxy.and_then(|proxy| proxy.authorization()) {
        write::field(out, b"Proxy-Authorization", value.as_bytes())?;
    }
    write::delimiter(out, delimiter);
    match (options.keep_alive, options.version) {
        _ if options.upgrade => out.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n"),
        (false, Version::Http11) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        _ => {}
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// How far a request is when its response begins.
enum Sending {
    Done,
    GoesOn,
    /// The backend takes no more of it.
    Failed,
}

/// The response head is there: what becomes of the request that may still be on its way.
fn respond(
    mut incoming: Box<Incoming>,
    outgoing: Outgoing,
    body: &mut Body,
    options: &SendOptions,
    head: ResponseHead,
    facts: ResponseFacts,
    sending: Sending,
) -> Response {
    let request_body = std::mem::take(body);
    let keep_alive = facts.keep_alive && options.keep_alive;
    match sending {
        // What is with the kernel and has not reached a backend that refuses the request will hardly be read.
        Sending::Done => {
            incoming.reusable = keep_alive && ((200..300).contains(&head.status) || incoming.has_arrived());
            request_body.recycle();
        }
        // A backend that answers while it reads gets the rest, to the end, so that the connection can be used again. After
        // an error status it would be wasted: the connection is closed instead (RFC 9112, 9.3 and 9.5).
        Sending::GoesOn if (200..300).contains(&head.status) => {
            incoming.reusable = keep_alive;
            incoming.upload = Some(Box::new(Upload { outgoing, body: request_body }));
        }
        Sending::GoesOn | Sending::Failed => {}
    }
    incoming.begin_body(facts.length, options.idle, false);
    let body = match facts.length {
        Length::None if head.status == 101 => {
            incoming.reusable = false;
            incoming.begin_body(Length::UntilClose, options.idle, false);
            incoming.into_body()
        }
        Length::None => {
            incoming.into_body().recycle();
            Body::Empty
        }
        _ => incoming.into_body(),
    };
    Response { head, body, close: false, framing: Framing::Auto, about: 0, on_end: None, dialogue: None }
}

/// One request on one connection: both directions at once, because the response may come first.
struct Exchange<'a> {
    incoming: &'a mut Incoming,
    outgoing: &'a mut Outgoing,
    body: &'a mut Body,
    /// [`SendOptions::silence`], until the request is sent and it is part of `deadline`.
    silence: Option<Duration>,
    /// By the clock, for the response head.
    deadline: Instant,
    /// Since when the sender of the body is waited for.
    starved: Option<Instant>,
    limits: HeadLimits,
    to_head: bool,
    sent: bool,
    write_error: Option<io::Error>,
}

struct Failure {
    kind: SendErrorKind,
    /// The connection ended and not a byte of a response came.
    unanswered: bool,
}

impl Exchange<'_> {
    /// The time in which the sender of the body is waited for is not the backend's: it puts the deadline off. What bounds
    /// it is how long the sender may pause.
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

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(ResponseHead, ResponseFacts), Failure>> {
        if self.sent {
            self.body.drive(cx);
        } else if self.write_error.is_none() {
            let polled = self.outgoing.poll(cx, &self.incoming.conn.writer, self.body);
            self.put_off(polled.is_pending() && self.outgoing.is_starved());
            match polled {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => {
                    self.sent = true;
                    if let Some(silence) = self.silence.take() {
                        self.deadline = self.deadline.min(after(clock::now(), silence));
                    }
                    if !self.outgoing.keeps_body() {
                        // The client can be watched from now on.
                        std::mem::take(self.body).recycle();
                    }
                }
                // The backend may have answered before it stopped listening.
                Poll::Ready(Err(RelayError::Write(e))) => {
                    if e.kind() == io::ErrorKind::TimedOut {
                        // It has had its time: what it has not said by now is not waited for.
                        self.deadline = self.deadline.min(clock::now());
                    }
                    self.write_error = Some(e);
                }
                Poll::Ready(Err(RelayError::Body(e))) => return failed(SendErrorKind::RequestBody(e), false),
            }
        }
        let deadline =
            if self.starved.is_none() { self.deadline } else { after(clock::now(), Duration::MAX) };
        let received = self.incoming.poll_response(cx, self.limits, self.to_head, deadline);
        match received {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(head)) => Poll::Ready(Ok(head)),
            Poll::Ready(Err(error)) => {
                let begun = matches!(
                    error,
                    ReceiveError::Closed { begun: true } | ReceiveError::Io { begun: true, .. }
                );
                match (error, self.write_error.take()) {
                    (ReceiveError::Protocol(why), _) => failed(SendErrorKind::Protocol(why), false),
                    (_, Some(e)) if e.kind() == io::ErrorKind::TimedOut => {
                        failed(SendErrorKind::WriteTimeout, false)
                    }
                    (ReceiveError::Timeout, _) => failed(SendErrorKind::ResponseTimeout, false),
                    (_, Some(e)) => failed(SendErrorKind::Write(Arc::new(e)), !begun),
                    (ReceiveError::Closed { .. }, None) => failed(SendErrorKind::Closed, !begun),
                    (ReceiveError::Io { error, .. }, None) if is_close(&error) => {
                        failed(SendErrorKind::Closed, !begun)
                    }
                    (ReceiveError::Io { error, .. }, None) => {
                        failed(SendErrorKind::Read(Arc::new(error)), !begun)
                    }
                }
            }
        }
    }
}

/// A TLS peer that closes without saying so, or a reset: closed all the same.
pub(crate) fn is_close(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}

fn failed<T>(kind: SendErrorKind, unanswered: bool) -> Poll<Result<T, Failure>> {
    Poll::Ready(Err(Failure { kind, unanswered }))
}

impl From<BodyError> for SendErrorKind {
    fn from(e: BodyError) -> SendErrorKind {
        SendErrorKind::RequestBody(e)
    }
}
