//! A connection of a listener that speaks HTTP/2: each stream is a task on the worker of the connection.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use message::{Body, Method};
use tokio::task::JoinSet;

use super::body::{Continue, Leftover, Receiving, Sending, Unread};
use super::duplex::{Duplex, Rest, Traffic};
use super::heads;
use crate::clock;
use crate::connection::{Conn, lock};
use crate::http1::parse::{HeadLimits, Refusal};
use crate::relay::RelayError;
use crate::serve::{Account, Cause, Failure, message_of};
use crate::server::{Listening, Open};
use crate::timer::{Alarm, Timer};
use crate::{ConnectionInfo, Cut, Framing, Handler, Refused, Request, Response, ServerLimits};

/// Streams that a connection begins before others have their turn: what these take is free again before many connections have begun all of theirs.
const IN_A_TURN: u32 = 4;

/// Streams that a client may reset before their responses, beside those that it let end.
const RESETS: u64 = 200;
/// How many times those that ended they may be.
const RESETS_OF_ENDED: u64 = 4;

/// Most bytes that are read of a body that nobody wants, so that its client gets its answer; and for no longer than
/// [`ServerLimits::linger`].
const DISCARDED: usize = 16 * 1024 * 1024;

/// What the streams of a connection share.
struct Shared<H> {
    listening: Arc<Listening>,
    limits: Arc<ServerLimits>,
    conn: Arc<Conn>,
    info: ConnectionInfo,
    handler: Arc<H>,
    traffic: Arc<Traffic>,
    /// Responses that were sent, and streams that the client ended before.
    ended: AtomicU64,
    reset: AtomicU64,
    /// A response asked for the connection to be closed.
    close: AtomicBool,
}

/// How a connection ends.
enum Ended {
    /// All streams have ended, and one side wanted no more.
    Done,
    /// It is cut at the end of a drain.
    Cut,
    /// The client misbehaves (a flood of frames or resets).
    Misused(&'static str),
    /// It is not HTTP/2, or the connection broke.
    Broken(h2::Error),
}

/// Serves the connection until it ends.
pub(crate) async fn serve<H: Handler>(
    open: Open,
    conn: Arc<Conn>,
    duplex: Duplex,
    limits: Arc<ServerLimits>,
    info: ConnectionInfo,
    handler: Arc<H>,
) {
    let listening = open.listening().clone();
    listening.counters.http2.add(1);
    let (traffic, rest) = (duplex.traffic(), duplex.rest());
    let shared = Arc::new(Shared {
        listening,
        limits,
        conn,
        info,
        handler,
        traffic,
        ended: AtomicU64::new(0),
        reset: AtomicU64::new(0),
        close: AtomicBool::new(false),
    });
    drive(&shared, duplex).await;
    linger(&shared, rest).await;
    shared.listening.counters.http2.sub(1);
    drop(open);
}

async fn drive<H: Handler>(shared: &Arc<Shared<H>>, duplex: Duplex) {
    let limits = &shared.limits;
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(super::STREAM_WINDOW)
        .initial_connection_window_size(super::CONNECTION_WINDOW)
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(u32::try_from(limits.head_size).unwrap_or(u32::MAX))
        .max_send_buffer_size(super::SEND_BUFFER);
    let peer = shared.info.peer;
    let handshake = tokio::time::timeout(limits.handshake, builder.handshake::<_, Bytes>(duplex));
    let mut connection = match handshake.await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return tracing::debug!(client = %peer, %error, "not HTTP/2"),
        Err(_) => return tracing::debug!(client = %peer, "the HTTP/2 handshake timed out"),
    };
    let mut streams = JoinSet::new();
    let (mut idle, mut served, mut closing) = (Timer::default(), 0, false);
    let mut waker = None;
    let ended = poll_fn(|cx| {
        if !waker.as_ref().is_some_and(|registered: &std::task::Waker| registered.will_wake(cx.waker())) {
            shared.conn.polled_by(cx.waker());
            waker = Some(cx.waker().clone());
        }
        if shared.conn.is_cut() {
            return Poll::Ready(Ended::Cut);
        }
        let wants_end = shared.listening.is_draining()
            || shared.close.load(Relaxed)
            || (limits.requests > 0 && served >= limits.requests)
            || (!limits.keep_alive && served > 0);
        if wants_end && !closing {
            connection.graceful_shutdown();
            (closing, idle) = (true, Timer::default());
        }
        let mut begun = 0;
        loop {
            while let Poll::Ready(Some(_)) = streams.poll_join_next(cx) {}
            if shared.traffic.is_flooded() {
                return Poll::Ready(Ended::Misused("a flood of frames that carry nothing"));
            }
            let resets = shared.reset.load(Relaxed);
            if resets > RESETS + RESETS_OF_ENDED * shared.ended.load(Relaxed) {
                return Poll::Ready(Ended::Misused("a flood of requests that are reset at once"));
            }
            match connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    served += 1;
                    idle.clear();
                    streams.spawn(stream(shared.clone(), request, respond));
                    begun += 1;
                    if begun == IN_A_TURN {
                        cx.waker().wake_by_ref();
                        break;
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Ended::Broken(error)),
                Poll::Ready(None) => return Poll::Ready(Ended::Done),
                Poll::Pending if shared.traffic.is_flooded() => {}
                Poll::Pending => break,
            }
        }
        // Bodies that travel outlive their tasks.
        if !streams.is_empty() || connection.has_streams() {
            idle.clear();
        } else if idle.poll_expired(if closing { limits.linger } else { limits.idle }, cx) {
            if closing {
                return Poll::Ready(Ended::Done);
            }
            connection.graceful_shutdown();
            (closing, idle) = (true, Timer::default());
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await;
    match ended {
        Ended::Done => {}
        Ended::Cut => connection.abrupt_shutdown(Reason::NO_ERROR),
        Ended::Misused(why) => {
            tracing::warn!(client = %peer, "an HTTP/2 connection was ended: {why}");
            shared.listening.counters.refused.add(1);
            connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        }
        Ended::Broken(error) if error.is_library() && error.reason() == Some(Reason::ENHANCE_YOUR_CALM) => {
            let why = "a flood of resets, of small frames, or of a head without end";
            tracing::warn!(client = %peer, "an HTTP/2 connection was ended: {why}");
            shared.listening.counters.refused.add(1);
        }
        Ended::Broken(error) => tracing::debug!(client = %peer, %error, "an HTTP/2 connection ended"),
    }
    // What runs is dropped, and recorded, before the connection is.
    streams.shutdown().await;
    // The last frames; a client that does not read them is not waited for.
    let last = poll_fn(|cx| match connection.poll_closed(cx) {
        Poll::Ready(_) => Poll::Ready(()),
        Poll::Pending => Poll::Pending,
    });
    let _ = tokio::time::timeout(Duration::from_millis(200).min(limits.linger), last).await;
}

/// Reads on for a while: closing with unread bytes would reset the connection, and the client might lose what was said last.
async fn linger<H>(shared: &Shared<H>, rest: Rest) {
    let Some(mut read) = lock(&rest).take() else { return };
    if shared.conn.is_cut() {
        return;
    }
    let mut scratch = [0; 2048];
    let until_closed = poll_fn(|cx| {
        // Reads one batch in a turn, so that other connections get theirs.
        for _ in 0..16 {
            match read.poll_read(cx, &mut scratch) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    });
    let _ = tokio::time::timeout(shared.limits.linger, until_closed).await;
}

/// Counts a stream, whatever way its task ends.
struct Counted(Arc<Listening>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.counters.streams.sub(1);
    }
}

/// One request and its response.
async fn stream<H: Handler>(
    shared: Arc<Shared<H>>,
    request: http::Request<RecvStream>,
    respond: SendResponse<Bytes>,
) {
    shared.listening.counters.streams.add(1);
    let _counted = Counted(shared.listening.clone());
    let mut exchange = pin!(exchange(&shared, request, respond));
    let mut alarm: Option<Box<Alarm>> = None;
    poll_fn(|cx| {
        if !alarm.as_ref().is_some_and(|alarm| alarm.wakes(cx)) {
            alarm = Some(Box::new(Alarm::new(cx)));
        }
        clock::turn(&_counted, &mut alarm, || exchange.as_mut().poll(cx))
    })
    .await;
}

async fn exchange<H: Handler>(
    shared: &Arc<Shared<H>>,
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) {
    let Shared { listening, limits, info, handler, .. } = &**shared;
    let (parts, stream) = request.into_parts();
    let head_limits =
        HeadLimits { size: limits.head_size, fields: limits.header_count, target: limits.target_size };
    let received = match heads::request(&parts, head_limits) {
        Ok(received) => received,
        Err(refusal) => {
            refuse(shared, &parts, respond, refusal);
            return discard(limits, Leftover::new(stream)).await;
        }
    };
    listening.counters.requests.bump();
    let to_head = received.head.method == Method::Head;
    let mut expected = None;
    let unread = Arc::<Unread>::default();
    let body = match stream.is_end_stream() {
        true => Body::Empty,
        false => {
            let mut body = Receiving::new(stream, received.length, limits.body, ());
            body.unread = Some(unread.clone());
            if received.expects_continue {
                body.expected = Some(expected.insert(Arc::<Continue>::default()).clone());
            }
            Body::Stream(body)
        }
    };
    let mut response = None;
    {
        let request = Request { head: received.head, body };
        let mut handling = pin!(handler.handle(request, info));
        poll_fn(|cx| {
            let poll = || match handling.as_mut().poll(cx) {
                Poll::Ready(ready) => {
                    response = Some(ready);
                    true
                }
                Poll::Pending => false,
            };
            match catch_unwind(AssertUnwindSafe(poll)) {
                Ok(done) => {
                    if !done && expected.as_ref().is_some_and(|expected| expected.poll_wanted(cx)) {
                        expected = None;
                        go_on(&mut respond);
                    }
                    if !done && respond.poll_reset(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
                // Whatever the future held was dropped by the panic, the body of the request among it.
                Err(panic) => {
                    handler.panicked(info, message_of(&*panic));
                    response = Some(Response::new(500, "internal error\n"));
                }
            }
            Poll::Ready(())
        })
        .await;
    }
    // Somebody still means to read the body, and behind the final head nothing can be said.
    if expected.is_some_and(|expected| Arc::strong_count(&expected) > 1) {
        go_on(&mut respond);
    }
    let Some(mut response) = response else {
        listening.counters.aborted.add(1);
        shared.reset.fetch_add(1, Relaxed);
        return shared.conn.wake();
    };
    if response.close {
        shared.close.store(true, Relaxed);
        shared.conn.wake();
    }
    let about = response.about;
    let mut account = Account::of(&mut response, info, &shared.conn);
    let responded = send(shared, respond, response, to_head, &mut account).await;
    if let Some(account) = account {
        account.close(&responded);
    }
    match responded {
        Ok(()) => {
            shared.ended.fetch_add(1, Relaxed);
            if let Some(rest) = unread.take() {
                discard(limits, rest).await;
            }
        }
        Err(failure) => {
            listening.counters.aborted.add(1);
            match failure.cause {
                Cause::Body { error, backend } => handler.cut(&Cut { client: info, about, backend, error }),
                Cause::Client => {
                    shared.reset.fetch_add(1, Relaxed);
                    shared.conn.wake();
                }
            }
        }
    }
}

/// Lets the rest of a body come behind the answer, for a while. Then the stream is reset without an error (RFC 9113, 8.1), which clients that
/// still send may take for the end of all, the answer included.
async fn discard(limits: &ServerLimits, mut rest: Leftover) {
    let _ = tokio::time::timeout(limits.linger, rest.discard(DISCARDED)).await;
}

/// Tells a client that waits with its body to send it.
fn go_on(respond: &mut SendResponse<Bytes>) {
    let mut interim = http::Response::new(());
    *interim.status_mut() = http::StatusCode::CONTINUE;
    // Fails only where the stream has ended.
    let _ = respond.send_informational(interim);
}

async fn send<H: Handler>(
    shared: &Shared<H>,
    mut respond: SendResponse<Bytes>,
    response: Response,
    to_head: bool,
    account: &mut Option<Account<'_>>,
) -> Result<(), Failure> {
    let Response { head, mut body, framing, .. } = response;
    let bodyless = to_head || head.status < 200 || head.status == 204 || head.status == 304;
    if bodyless {
        std::mem::take(&mut body).recycle();
    }
    let length = body.exact_len().filter(|_| !bodyless);
    let content_length = length.filter(|_| framing == Framing::Auto || length == Some(0));
    let keep_length = bodyless && (to_head || head.status == 304);
    let head = match heads::to_response(&head, content_length, keep_length) {
        Ok(head) => head,
        Err(why) => {
            tracing::error!(why, status = head.status, "the response cannot be sent");
            std::mem::take(&mut body).recycle();
            if let Some(account) = account {
                account.end.status = 500;
            }
            let mut head = http::Response::new(());
            *head.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
            head
        }
    };
    let gone = |_| Failure { cause: Cause::Client, looks_whole: false };
    let empty = bodyless || (body.is_complete() && body.buffered().is_empty());
    let stream = respond.send_response(head, empty).map_err(gone)?;
    let mut sending = Sending::new(stream, length, shared.traffic.clone(), shared.limits.write);
    if empty {
        sending.is_done();
    }
    let sent = poll_fn(|cx| {
        let polled = sending.poll(cx, &mut body);
        if let Some(account) = account {
            account.end.bytes = sending.sent();
        }
        match polled {
            Poll::Pending if sending.is_reset(cx) => {
                Poll::Ready(Err(RelayError::Write(std::io::ErrorKind::ConnectionAborted.into())))
            }
            polled => polled,
        }
    });
    let sent = sent.await;
    match sent {
        Ok(()) => {
            body.recycle();
            Ok(())
        }
        Err(failure) => {
            sending.reset(match failure {
                RelayError::Write(_) => Reason::CANCEL,
                RelayError::Body(_) => Reason::INTERNAL_ERROR,
            });
            Err(Failure::of(failure, &mut body, false))
        }
    }
}

/// Answers what is not to be handled. The connection goes on.
fn refuse<H: Handler>(
    shared: &Shared<H>,
    parts: &http::request::Parts,
    mut respond: SendResponse<Bytes>,
    refusal: Refusal,
) {
    let Refusal { status, why } = refusal;
    shared.listening.counters.refused.add(1);
    let target = parts.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
    let line = format!("{} {target} HTTP/2", parts.method);
    let client = &shared.info;
    shared.handler.refused(&Refused { client, status, why, received: line.as_bytes(), took: Duration::ZERO });
    let response = http::Response::builder().status(status).header("content-type", "text/plain");
    let Ok(response) = response.header("content-length", why.len() + 1).body(()) else { return };
    if let Ok(mut stream) = respond.send_response(response, parts.method == http::Method::HEAD) {
        // Short enough for any buffer; fails only where the stream has ended.
        let _ = stream.send_data(Bytes::from(format!("{why}\n")), true);
    }
}
