//! One connection of a listener, from its first request to its last.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use message::{Body, BodyError, Method, RequestHead, ResponseHead, StandardHeader, Version};

use tokio::time::Instant;

use crate::clock;
use crate::connection::{Conn, Incoming, backend_of, lock};
use crate::dialogue::Opening;
use crate::http1::Length;
use crate::http1::parse::{HeadLimits, Refusal, RequestFacts};
use crate::http1::write::{self, Delimiter, Kind};
use crate::http2;
use crate::relay::{Outgoing, RelayError};
use crate::server::Listening;
use crate::splice::Served;
use crate::timer::{Alarm, Timer};
use crate::tunnel::Tunnel;
use crate::{
    ConnectionInfo, Cut, End, Framing, Handler, OnEnd, Outcome, Refused, Request, Response, ServerLimits,
    Target,
};

/// Serves the connection until it ends or is [cut](Conn::cut). What it gives back goes on in another protocol.
pub(crate) async fn serve<H: Handler>(
    listening: &Listening,
    limits: &ServerLimits,
    incoming: Box<Incoming>,
    info: &ConnectionInfo,
    handler: &H,
) -> Option<Next> {
    let conn = incoming.conn.clone();
    let _closing = Closing(&conn);
    let _served = Served::begin();
    let mut requests = pin!(requests(listening, limits, &conn, incoming, info, handler));
    let mut alarm: Option<Box<Alarm>> = None;
    poll_fn(|cx| {
        if !alarm.as_ref().is_some_and(|alarm| alarm.wakes(cx)) {
            conn.polled_by(cx.waker());
            alarm = Some(Box::new(Alarm::new(cx)));
        }
        match conn.is_cut() {
            true => Poll::Ready(None),
            false => clock::turn(&*conn, &mut alarm, || requests.as_mut().poll(cx)),
        }
    })
    .await
}

/// What a connection goes on as, in a task of its own: that of HTTP/1.1 is as large as a flow is deep.
pub(crate) enum Next {
    /// It began with the preface of HTTP/2.
    Http2(Box<Incoming>),
    /// It was upgraded, to what a backend says.
    Tunnel(Box<Tunnel>),
    /// It was upgraded, to what is said here.
    Dialogue(Box<Opening>),
}

/// However the task of a connection ends, nobody waits for its receiving half any more.
struct Closing<'a>(&'a Conn);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What decides how a response is written.
struct Asked {
    to_head: bool,
    version: Version,
    keep_alive: bool,
    /// It names another protocol, and is one that may be upgraded: of HTTP/1.1, and without a body, whose rest would be taken for what
    /// comes behind the upgrade.
    upgrade: bool,
}

async fn requests<H: Handler>(
    listening: &Listening,
    limits: &ServerLimits,
    conn: &Arc<Conn>,
    mut incoming: Box<Incoming>,
    info: &ConnectionInfo,
    handler: &H,
) -> Option<Next> {
    let head_limits =
        HeadLimits { size: limits.head_size, fields: limits.header_count, target: limits.target_size };
    let mut served = 0;
    loop {
        let received = poll_fn(|cx| {
            incoming.poll_request(cx, head_limits, limits.idle, limits.head, || listening.is_draining())
        });
        let (head, facts) = match received.await {
            Ok(Some(received)) => received,
            Ok(None) => {
                hang_up(conn).await;
                return None;
            }
            // Over TLS it is agreed on in the handshake, and nowhere else (RFC 9113, 3.2).
            Err(_)
                if served == 0
                    && limits.http2
                    && info.tls.is_none()
                    && http2::is_preface(incoming.head_received()) =>
            {
                return Some(Next::Http2(incoming));
            }
            Err(refusal) => {
                listening.counters.refused.add(1);
                refuse(limits, conn, incoming, refusal, info, handler).await;
                return None;
            }
        };
        listening.counters.requests.bump();
        served += 1;
        let asked = Asked {
            to_head: head.method == Method::Head,
            version: head.version,
            keep_alive: facts.keep_alive && limits.keep_alive && served != limits.requests,
            upgrade: head.headers.has_any(StandardHeader::Upgrade.bit())
                && head.version == Version::Http11
                && facts.length == Length::None,
        };

        let (request, mut home) = request(incoming, head, facts, limits);
        // In place: this future is as large as the flow is deep, and would be moved into another one.
        let mut response = None;
        {
            let mut handling = pin!(handler.handle(request, info));
            poll_fn(|cx| {
                // Not as the outcome of what is caught, which would move the response once more.
                let poll = || match handling.as_mut().poll(cx) {
                    Poll::Ready(ready) => {
                        response = Some(ready);
                        true
                    }
                    Poll::Pending => false,
                };
                match catch_unwind(AssertUnwindSafe(poll)) {
                    Ok(false) if !client_is_gone(conn, &mut home, cx) => return Poll::Pending,
                    Ok(_) => {}
                    // Whatever the future held was dropped by the panic, the body of the request among it.
                    Err(panic) => {
                        handler.panicked(info, message_of(&*panic));
                        response = Some(Response { close: true, ..Response::new(500, "internal error\n") });
                    }
                }
                Poll::Ready(())
            })
            .await;
        }
        let Some(mut response) = response else {
            listening.counters.aborted.add(1);
            return None;
        };
        if response.head.status == 101 && asked.upgrade {
            match upgraded(conn, &mut home, response) {
                Ok(next) => return Some(next),
                Err(back) => response = *back,
            }
        }
        let about = response.about;
        let mut account = Account::of(&mut response, info, conn);
        let responded = respond(listening, limits, conn, &mut home, response, &asked, &mut account).await;
        if let Some(account) = account {
            account.close(&responded);
        }
        match responded {
            Ok(keep_alive) => {
                let Some(back) = come_home(limits, conn, home).await else {
                    hang_up(conn).await;
                    return None;
                };
                incoming = back;
                if !keep_alive || !discard(listening, limits, &mut incoming).await {
                    close(limits, conn, incoming).await;
                    return None;
                }
                incoming.next_message();
            }
            Err(Failure { cause, looks_whole }) => {
                listening.counters.aborted.add(1);
                let cut = matches!(cause, Cause::Body { .. });
                if let Cause::Body { error, backend } = cause {
                    handler.cut(&Cut { client: info, about, backend, error });
                }
                let home = home.or_else(|| conn.take_home());
                end_early(limits, conn, home, cut, looks_whole).await;
                return None;
            }
        }
    }
}

/// What a response goes on as; the response comes back if it does not.
fn upgraded(
    conn: &Conn,
    home: &mut Option<Box<Incoming>>,
    response: Response,
) -> Result<Next, Box<Response>> {
    let Some(incoming) = home.take().or_else(|| conn.take_home()) else { return Err(Box::new(response)) };
    if !incoming.is_done() {
        *home = Some(incoming);
        return Err(Box::new(response));
    }
    let next = match response.dialogue {
        Some(_) => Opening::new(incoming, response).map(|opening| Next::Dialogue(Box::new(opening))),
        None => Tunnel::new(incoming, response).map(|tunnel| Next::Tunnel(Box::new(tunnel))),
    };
    next.map_err(|back| {
        let (incoming, response) = *back;
        *home = Some(incoming);
        Box::new(response)
    })
}

/// The message of a panic.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it said nothing")
}

/// Tells how a response ended, whatever ends it: at its end, or when the task of the connection is cut.
pub(crate) struct Account<'a> {
    /// Until it is told.
    on_end: Option<Box<dyn OnEnd>>,
    pub(crate) end: End<'a>,
    conn: &'a Conn,
}

impl<'a> Account<'a> {
    /// If anybody wants to know.
    pub(crate) fn of(
        response: &mut Response,
        client: &'a ConnectionInfo,
        conn: &'a Conn,
    ) -> Option<Account<'a>> {
        let on_end = response.on_end.take()?;
        let end = End { client, status: response.head.status, bytes: 0, outcome: Outcome::Abandoned };
        Some(Account { on_end: Some(on_end), end, conn })
    }

    pub(crate) fn close<T>(mut self, responded: &Result<T, Failure>) {
        self.end.outcome = match responded {
            Ok(_) => Outcome::Whole,
            Err(Failure { cause: Cause::Client, .. }) => Outcome::Abandoned,
            Err(Failure { cause: Cause::Body { error, .. }, .. }) => Outcome::Cut(error.clone()),
        };
    }
}

impl Account<'_> {
    pub(crate) fn end_whole(mut self, whole: bool) {
        self.end.outcome = if whole { Outcome::Whole } else { Outcome::Abandoned };
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            if matches!(self.end.outcome, Outcome::Abandoned) && self.conn.is_cut() {
                self.end.outcome = Outcome::Stopped;
            }
            on_end.ended(&self.end);
        }
    }
}

/// Makes the request. Without a body the receiving half stays here.
fn request(
    mut incoming: Box<Incoming>,
    head: RequestHead,
    facts: RequestFacts,
    limits: &ServerLimits,
) -> (Request, Option<Box<Incoming>>) {
    incoming.begin_body(facts.length, limits.body, facts.expects_continue);
    match facts.length {
        Length::None => (Request { head, body: Body::Empty }, Some(incoming)),
        _ => (Request { head, body: incoming.into_body() }, None),
    }
}

/// Whether the client went away.
fn client_is_gone(conn: &Conn, home: &mut Option<Box<Incoming>>, cx: &mut Context<'_>) -> bool {
    if home.is_none() {
        *home = conn.take_home();
    }
    conn.is_gone() || home.as_mut().is_some_and(|incoming| incoming.is_peer_gone(cx))
}

/// A response that was not sent whole.
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    /// The client would take an orderly close for the end of the response.
    pub(crate) looks_whole: bool,
}

/// Why a response was not sent whole.
pub(crate) enum Cause {
    /// The client takes no more, or is gone.
    Client,
    /// Its body did not arrive whole.
    Body { error: BodyError, backend: Option<Target> },
}

impl Failure {
    pub(crate) fn of(failure: RelayError, body: &mut Body, looks_whole: bool) -> Failure {
        let cause = match failure {
            RelayError::Write(_) => Cause::Client,
            RelayError::Body(error) => {
                let backend = match std::mem::take(body) {
                    Body::Stream(stream) => backend_of(stream),
                    _ => None,
                };
                Cause::Body { error, backend }
            }
        };
        Failure { cause, looks_whole }
    }
}

/// Writes the response; whether the connection stays open.
#[allow(clippy::too_many_arguments)]
async fn respond(
    listening: &Listening,
    limits: &ServerLimits,
    conn: &Conn,
    home: &mut Option<Box<Incoming>>,
    response: Response,
    asked: &Asked,
    account: &mut Option<Account<'_>>,
) -> Result<bool, Failure> {
    if home.is_none() {
        *home = conn.take_home();
    }
    let mut keep_alive = asked.keep_alive && !response.close && !listening.is_draining();
    if home.as_ref().is_none_or(|incoming| !incoming.is_done()) {
        // What is said about the connection now has to hold: a body that somebody still reads is waited for.
        let readable = |cx: &mut Context<'_>| {
            let readable = home.as_mut().is_none_or(|rest| rest.is_discardable(cx, limits.discard));
            conn.begin_final(home.is_none(), cx);
            Poll::Ready(readable)
        };
        keep_alive &= poll_fn(readable).await;
    }

    let Response { head, mut body, framing, .. } = response;
    let bodyless = asked.to_head || head.status < 200 || head.status == 204 || head.status == 304;
    if bodyless {
        std::mem::take(&mut body).recycle();
    }
    let delimiter = match body.exact_len() {
        _ if bodyless => Delimiter::None,
        Some(n) if framing == Framing::Auto || asked.version == Version::Http10 => Delimiter::Length(n),
        _ if asked.version == Version::Http10 => Delimiter::Close,
        _ => Delimiter::Chunked,
    };
    keep_alive &= delimiter != Delimiter::Close;

    let mut outgoing = Outgoing::new(limits.write);
    let keep_length = bodyless && (asked.to_head || head.status == 304);
    let begun = match write_head(&mut outgoing.head, &head, delimiter, keep_length, keep_alive, asked.version)
    {
        Ok(()) => outgoing
            .begin(delimiter, &mut body, false)
            .map_err(|_| Refusal { status: 502, why: "the length of the answer is not the declared one" }),
        Err(why) => Err(Refusal { status: 500, why }),
    };
    // Nothing was sent yet.
    if let Err(refusal) = begun {
        tracing::error!(why = refusal.why, status = head.status, "the response cannot be sent");
        std::mem::take(&mut body).recycle();
        keep_alive = false;
        if let Some(account) = account {
            account.end.status = refusal.status;
        }
        outgoing = Outgoing::new(limits.write);
        write_refusal(&mut outgoing.head, refusal);
    }
    poll_fn(|cx| {
        let polled = outgoing.poll(cx, &conn.writer, &mut body);
        if let Some(account) = account {
            account.end.bytes = outgoing.sent_of_body();
        }
        match polled {
            Poll::Pending if client_is_gone(conn, home, cx) => {
                Poll::Ready(Err(RelayError::Write(std::io::ErrorKind::ConnectionAborted.into())))
            }
            polled => polled,
        }
    })
    .await
    .map_err(|failure| Failure::of(failure, &mut body, delimiter == Delimiter::Close))?;
    body.recycle();
    Ok(keep_alive)
}

fn write_head(
    out: &mut Vec<u8>,
    head: &ResponseHead,
    delimiter: Delimiter,
    keep_length: bool,
    keep_alive: bool,
    version: Version,
) -> Result<(), &'static str> {
    if head.status == 200 && head.reason == "OK" {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return fields_of(out, head, delimiter, keep_length, keep_alive, version);
    }
    if !(200..1000).contains(&head.status) {
        return Err("not a final status code");
    }
    if head.reason.bytes().any(|b| (b < b' ' && b != b'\t') || b == 0x7F) {
        return Err("control byte in the reason phrase");
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    write::decimal(out, u64::from(head.status));
    out.push(b' ');
    out.extend_from_slice(head.reason.as_bytes());
    out.extend_from_slice(b"\r\n");
    fields_of(out, head, delimiter, keep_length, keep_alive, version)
}

/// What follows the status line.
fn fields_of(
    out: &mut Vec<u8>,
    head: &ResponseHead,
    delimiter: Delimiter,
    keep_length: bool,
    keep_alive: bool,
    version: Version,
) -> Result<(), &'static str> {
    write::fields(out, &head.headers, Kind::Response { keep_length })?;
    if !head.headers.contains_known(StandardHeader::Date) {
        write::date(out);
    }
    write::delimiter(out, delimiter);
    match (keep_alive, version) {
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        _ => {}
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Waits for the receiving half when the request is still read behind its response: by the flow, or on its way to a backend
/// that answered before it had all of it. Nobody waits for one who has stopped reading.
async fn come_home(limits: &ServerLimits, conn: &Conn, home: Option<Box<Incoming>>) -> Option<Box<Incoming>> {
    if let Some(incoming) = home.or_else(|| conn.take_home()) {
        return Some(incoming);
    }
    let (mut timer, mut seen) = (Timer::default(), conn.receipts());
    poll_fn(|cx| {
        if let Some(incoming) = conn.take_home() {
            return Poll::Ready(Some(incoming));
        }
        if std::mem::replace(&mut seen, conn.receipts()) != seen {
            timer.clear();
        }
        match timer.poll_expired(limits.body, cx) {
            true if seen == conn.receipts() => Poll::Ready(None),
            _ => Poll::Pending,
        }
    })
    .await
}

/// Reads the rest of a request that was answered, so that its connection can be used again; whether it can. A rest without
/// end occupies its connection no longer than a request may pause, and holds up no drain.
async fn discard(listening: &Listening, limits: &ServerLimits, incoming: &mut Incoming) -> bool {
    let mut timer = Timer::default();
    poll_fn(|cx| match incoming.poll_discard(cx) {
        Poll::Pending if listening.is_draining() || timer.poll_expired(limits.body, cx) => Poll::Ready(false),
        discarded => discarded,
    })
    .await
}

/// Answers what is not a request and closes.
async fn refuse<H: Handler>(
    limits: &ServerLimits,
    conn: &Conn,
    incoming: Box<Incoming>,
    refusal: Refusal,
    client: &ConnectionInfo,
    handler: &H,
) {
    let Refusal { status, why } = refusal;
    let took = incoming.head_took(limits.head);
    handler.refused(&Refused { client, status, why, received: incoming.head_received(), took });
    let mut outgoing = Outgoing::new(limits.linger);
    write_refusal(&mut outgoing.head, refusal);
    let mut body = Body::Empty;
    if poll_fn(|cx| outgoing.poll(cx, &conn.writer, &mut body)).await.is_ok() {
        linger(limits, conn, incoming).await;
    }
}

fn write_refusal(out: &mut Vec<u8>, refusal: Refusal) {
    let Refusal { status, why } = refusal;
    let reason = message::reason_phrase(status);
    out.extend_from_slice(
        format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n",
            why.len() + 1
        )
        .as_bytes(),
    );
    write::date(out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(why.as_bytes());
    out.push(b'\n');
}

/// Ends the connection after a response.
async fn close(limits: &ServerLimits, conn: &Conn, incoming: Box<Incoming>) {
    match incoming.is_done() && !incoming.has_more() {
        true => hang_up(conn).await,
        false => linger(limits, conn, incoming).await,
    }
}

/// Ends the connection after half a response, which must not look like a whole one, and must not take along what the client
/// has not read yet of earlier ones: a reset throws away whatever has not arrived.
async fn end_early(
    limits: &ServerLimits,
    conn: &Conn,
    home: Option<Box<Incoming>>,
    cut: bool,
    looks_whole: bool,
) {
    match home {
        Some(incoming) if looks_whole => {
            // Nothing tells when it has arrived.
            let (end, mut pause) = (Instant::now() + limits.linger, Duration::from_millis(1));
            while cut && Instant::now() < end && !incoming.has_arrived() {
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(Duration::from_millis(100));
            }
            incoming.reset();
        }
        // Somebody still reads the request, and may do so for long.
        None if looks_whole => lock(&conn.writer).reset(),
        Some(incoming) if cut => linger(limits, conn, incoming).await,
        Some(_) => {}
        None => hang_up(conn).await,
    }
}

/// Closes at once. TLS says so first.
async fn hang_up(conn: &Conn) {
    let _ = poll_fn(|cx| match lock(&conn.writer).poll_shutdown(cx) {
        // A peer that takes nothing does not get to know.
        Poll::Pending => Poll::Ready(Ok(())),
        done => done,
    })
    .await;
}

/// Closes the sending side and reads on for a while: closing with unread bytes would reset the connection, and
/// the client might lose the response.
async fn linger(limits: &ServerLimits, conn: &Conn, mut incoming: Box<Incoming>) {
    hang_up(conn).await;
    let _ = tokio::time::timeout(limits.linger, poll_fn(|cx| incoming.poll_linger(cx))).await;
}
