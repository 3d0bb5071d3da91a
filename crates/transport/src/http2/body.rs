//! Bodies on streams: one that arrives, and one that leaves.

use std::any::Any;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};
use h2::{Reason, RecvStream, SendStream};
use message::{Body, BodyError, BodyStream};

use super::duplex::Traffic;
use crate::Target;
use crate::connection::lock;
use crate::relay::RelayError;
use crate::timer::Timer;

/// Most bytes of a body that are handed to the library at once: a frame.
const PIECE: usize = 16 * 1024;

/// What arrived on a stream and was not consumed.
#[derive(Default)]
struct Held {
    /// One frame, as it came.
    frame: Bytes,
    /// Several, behind each other, from `at` on. In use where `frame` is empty.
    several: Vec<u8>,
    at: usize,
}

impl Held {
    fn bytes(&self) -> &[u8] {
        if self.frame.is_empty() { &self.several[self.at..] } else { &self.frame }
    }

    fn push(&mut self, more: Bytes) {
        if self.bytes().is_empty() {
            (self.frame, self.several, self.at) = (more, Vec::new(), 0);
            return;
        }
        if !self.frame.is_empty() {
            self.several = std::mem::take(&mut self.frame).into();
            self.at = 0;
        }
        self.several.extend_from_slice(&more);
    }

    fn consume(&mut self, n: usize) {
        if self.frame.is_empty() {
            self.at = (self.at + n).min(self.several.len());
        } else {
            self.frame.advance(n.min(self.frame.len()));
        }
    }

    fn take(&mut self) -> Vec<u8> {
        let held = std::mem::take(self);
        match held.frame.is_empty() {
            true if held.at == 0 => held.several,
            true => held.several[held.at..].to_vec(),
            false => held.frame.into(),
        }
    }
}

/// A client that waits for `100 Continue` gets it when somebody wants its body.
#[derive(Default)]
pub(super) struct Continue {
    wanted: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Continue {
    /// Whether the client is to be told, from now on by whoever polls this.
    pub(super) fn poll_wanted(&self, cx: &mut Context<'_>) -> bool {
        if self.wanted.load(Relaxed) {
            return true;
        }
        let mut task = lock(&self.task);
        if !task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            *task = Some(cx.waker().clone());
        }
        false
    }

    fn want(&self) {
        if !self.wanted.swap(true, Relaxed)
            && let Some(task) = lock(&self.task).take()
        {
            task.wake();
        }
    }
}

/// Where a body of a request that nobody reads to its end leaves its stream, so that whoever answers can let the rest of it come for a
/// while: many a client drops an answer whose stream is reset while it still sends.
#[derive(Default)]
pub(super) struct Unread(Mutex<Option<Leftover>>);

impl Unread {
    /// The rest, if nobody reads it any more.
    pub(super) fn take(&self) -> Option<Leftover> {
        lock(&self.0).take()
    }
}

/// The rest of a body that nobody reads.
pub(super) struct Leftover {
    stream: RecvStream,
    /// Bytes received that credit was not given back for.
    owed: usize,
}

impl Leftover {
    pub(super) fn new(stream: RecvStream) -> Leftover {
        Leftover { stream, owed: 0 }
    }

    /// Reads it and throws it away: to its end, or `most` bytes.
    pub(super) async fn discard(&mut self, most: usize) {
        let mut seen = 0;
        while seen <= most {
            // Fails only where more is given back than was received.
            let _ = self.stream.flow_control().release_capacity(std::mem::take(&mut self.owed));
            match std::future::poll_fn(|cx| self.stream.poll_data(cx)).await {
                Some(Ok(bytes)) => {
                    self.owed = bytes.len();
                    seen += bytes.len();
                }
                Some(Err(_)) | None => return,
            }
        }
    }
}

/// A request that is still being sent while its response is relayed.
pub(super) struct Upload {
    pub(super) sending: Sending,
    pub(super) body: Body,
    /// The backend gets all of it, also when its response has ended.
    pub(super) to_its_end: bool,
}

/// The body that arrives on a stream.
pub(crate) struct Receiving {
    /// Until this is dropped.
    stream: Option<RecvStream>,
    held: Held,
    /// Bytes received that credit was not given back for.
    owed: usize,
    declared: Option<u64>,
    /// Longest pause.
    pause: Duration,
    timer: Timer,
    ended: bool,
    pub(super) expected: Option<Arc<Continue>>,
    /// On the server side: where the rest goes if this is dropped before it has come.
    pub(super) unread: Option<Arc<Unread>>,
    /// On the client side.
    pub(super) upload: Option<Box<Upload>>,
    pub(crate) target: Option<Target>,
    /// What is in use as long as this is.
    _use: Box<dyn Any + Send + Sync>,
}

impl Receiving {
    pub(super) fn new(
        stream: RecvStream,
        declared: Option<u64>,
        pause: Duration,
        in_use: impl Any + Send + Sync,
    ) -> Box<Receiving> {
        Box::new(Receiving {
            ended: stream.is_end_stream(),
            stream: Some(stream),
            held: Held::default(),
            owed: 0,
            declared,
            pause,
            timer: Timer::default(),
            expected: None,
            unread: None,
            upload: None,
            target: None,
            _use: Box::new(in_use),
        })
    }

    /// Gives credit back for so many bytes.
    fn give_back(&mut self, n: usize) {
        let n = n.min(self.owed);
        if let Some(stream) = self.stream.as_mut().filter(|_| n > 0) {
            self.owed -= n;
            // Fails only where more is given back than was received.
            let _ = stream.flow_control().release_capacity(n);
        }
    }

    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        let Some(upload) = self.upload.as_mut() else { return Poll::Ready(Ok(())) };
        let ended = match upload.sending.poll(cx, &mut upload.body) {
            Poll::Pending => return Poll::Pending,
            // The request did not arrive whole, so the response is to half a request.
            Poll::Ready(Err(RelayError::Body(error))) => Err(error),
            // The backend takes no more, which it may: its response decides.
            Poll::Ready(_) => Ok(()),
        };
        self.upload = None;
        Poll::Ready(ended)
    }
}

impl BodyStream for Receiving {
    fn buffered(&self) -> &[u8] {
        self.held.bytes()
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        if let Poll::Ready(Err(error)) = self.poll_upload(cx) {
            return Poll::Ready(Err(error));
        }
        if self.ended {
            return Poll::Ready(Ok(false));
        }
        if let Some(expected) = self.expected.take() {
            expected.want();
        }
        // Whoever wants more behind what is there holds it, and answers for its memory.
        self.give_back(usize::MAX);
        let Some(stream) = self.stream.as_mut() else { return Poll::Ready(Ok(false)) };
        loop {
            match stream.poll_data(cx) {
                Poll::Ready(Some(Ok(bytes))) => {
                    self.timer.clear();
                    self.owed += bytes.len();
                    self.ended = stream.is_end_stream();
                    if !bytes.is_empty() {
                        self.held.push(bytes);
                        return Poll::Ready(Ok(true));
                    }
                    if self.ended {
                        return Poll::Ready(Ok(false));
                    }
                }
                Poll::Ready(None) => {
                    // Trailers, if there are any, stay behind, as those of HTTP/1.1 do.
                    self.ended = true;
                    return Poll::Ready(Ok(false));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(broken(error))),
                Poll::Pending if self.timer.poll_expired(self.pause, cx) => {
                    return Poll::Ready(Err(BodyError::Timeout));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn consume(&mut self, n: usize) {
        self.held.consume(n);
        self.give_back(n);
    }

    fn take(&mut self) -> Vec<u8> {
        self.give_back(usize::MAX);
        self.held.take()
    }

    fn is_complete(&self) -> bool {
        self.ended
    }

    fn exact_len(&self) -> Option<u64> {
        self.declared
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        // An error will be found again when the body is read.
        let _ = self.poll_upload(cx);
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        if let (false, Some(unread), Some(stream)) = (self.ended, self.unread.take(), self.stream.take()) {
            *lock(&unread.0) = Some(Leftover { stream, owed: self.owed });
        }
        let Some(mut upload) = self.upload.take().filter(|upload| self.ended && upload.to_its_end) else {
            return;
        };
        // The response was complete before the request: the backend, which has accepted it, gets the rest all the same.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let in_use = std::mem::replace(&mut self._use, Box::new(()));
            runtime.spawn(async move {
                let Upload { sending, body, .. } = &mut *upload;
                let _ = std::future::poll_fn(|cx| sending.poll(cx, body)).await;
                drop(in_use);
            });
        }
    }
}

/// What an error of the library is to a body.
fn broken(error: h2::Error) -> BodyError {
    match error.is_io() {
        true => error.into_io().map_or(BodyError::Truncated, BodyError::from),
        false if error.is_remote() => BodyError::Truncated,
        false => BodyError::Malformed("not valid HTTP/2"),
    }
}

/// A body that leaves on a stream, as fast as the peer gives credit.
pub(super) struct Sending {
    stream: SendStream<Bytes>,
    traffic: Arc<Traffic>,
    /// Longest time in which the peer takes nothing.
    wait: Duration,
    timer: Timer,
    /// Bytes of the body that the library has taken.
    sent: u64,
    /// What of the declared length is left.
    left: Option<u64>,
    done: bool,
    starved: bool,
}

impl Sending {
    pub(super) fn new(
        stream: SendStream<Bytes>,
        declared: Option<u64>,
        traffic: Arc<Traffic>,
        wait: Duration,
    ) -> Sending {
        let timer = Timer::default();
        Sending { stream, traffic, wait, timer, sent: 0, left: declared, done: false, starved: false }
    }

    /// Nothing of a body follows the head.
    pub(super) fn is_done(&mut self) {
        self.done = true;
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether what is pending waits for more of the body, and not for the receiver.
    pub(super) fn is_starved(&self) -> bool {
        self.starved
    }

    /// Ends the stream: the peer must not take the half for the whole.
    pub(super) fn reset(&mut self, reason: Reason) {
        self.stream.send_reset(reason);
    }

    /// Whether the peer has ended the stream.
    pub(super) fn is_reset(&mut self, cx: &mut Context<'_>) -> bool {
        self.stream.poll_reset(cx).is_ready()
    }

    /// Sends until the library has all of the body.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, body: &mut Body) -> Poll<Result<(), RelayError>> {
        const LENGTH: BodyError = BodyError::Malformed("its length is not the declared one");
        self.starved = false;
        loop {
            if self.done {
                return Poll::Ready(Ok(()));
            }
            let held = body.buffered().len();
            if held == 0 {
                if body.is_complete() {
                    if self.left.is_some_and(|left| left > 0) {
                        return Poll::Ready(Err(RelayError::Body(LENGTH)));
                    }
                    self.done = true;
                    let end = self.stream.send_data(Bytes::new(), true);
                    return Poll::Ready(end.map_err(|error| RelayError::Write(io_of(error))));
                }
                match body.poll_more(cx) {
                    Poll::Ready(Ok(_)) => continue,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(RelayError::Body(error))),
                    Poll::Pending => {
                        self.starved = true;
                        return Poll::Pending;
                    }
                }
            }
            if self.left.is_some_and(|left| left < held as u64) {
                return Poll::Ready(Err(RelayError::Body(LENGTH)));
            }
            let room = match self.poll_room(held.min(PIECE), cx) {
                Poll::Ready(Ok(room)) => room,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(RelayError::Write(error))),
                Poll::Pending => {
                    body.drive(cx);
                    return Poll::Pending;
                }
            };
            let n = room.min(held).min(PIECE);
            let piece = match &*body {
                Body::Bytes(bytes) => bytes.slice(..n),
                _ => Bytes::copy_from_slice(&body.buffered()[..n]),
            };
            body.consume(n);
            let end = body.buffered().is_empty() && body.is_complete();
            if let Some(left) = &mut self.left {
                *left -= n as u64;
            }
            if end && self.left.is_some_and(|left| left > 0) {
                return Poll::Ready(Err(RelayError::Body(LENGTH)));
            }
            self.stream.send_data(piece, end).map_err(|error| RelayError::Write(io_of(error)))?;
            self.traffic.sent(n);
            self.sent += n as u64;
            self.done = end;
        }
    }

    /// Credit for at least one byte.
    fn poll_room(&mut self, wanted: usize, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.stream.reserve_capacity(wanted);
        loop {
            let room = self.stream.capacity();
            if room > 0 {
                self.timer.clear();
                return Poll::Ready(Ok(room));
            }
            match self.stream.poll_capacity(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(io_of(error))),
                Poll::Ready(None) => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                Poll::Pending if self.timer.poll_expired(self.wait, cx) => {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// An error of the library as one of the connection.
pub(super) fn io_of(error: h2::Error) -> io::Error {
    match error.is_io() {
        true => error.into_io().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into()),
        false => io::Error::new(io::ErrorKind::ConnectionReset, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_one_piece_however_it_came() {
        let mut held = Held::default();
        for (push, consume, left) in
            [("abc", 1, "bc"), ("de", 0, "bcde"), ("f", 3, "ef"), ("", 2, ""), ("xy", 1, "y"), ("z", 0, "yz")]
        {
            held.push(Bytes::from_static(push.as_bytes()));
            held.consume(consume);
            assert_eq!(held.bytes(), left.as_bytes(), "{push}");
        }
        assert_eq!(held.take(), b"yz");
        assert_eq!(held.bytes(), b"");
        held.push(Bytes::from_static(b"one"));
        assert_eq!(held.take(), b"one");
    }
}
