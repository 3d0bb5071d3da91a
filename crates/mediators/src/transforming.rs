//! A stylesheet on a body that is still arriving: [`Transformed`] is the result, a body that arrives as well.
//!
//! The stylesheet runs in a thread of its own, between two small buffers: one is filled by the consumer that asks for more of the
//! result, from the body of the message; the other is what the thread has written. If either is full or empty, the one
//! side waits for the other. So memory does not depend on the size of the message, a slow receiver slows the sender
//! down, and what has a deadline is receiving and sending, as for any relayed body. Dropping the result ends the thread.

use message::{Body, BodyError, BodyStream};
use std::any::Any;
use std::io::{Error, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Bodies up to this size are transformed at once, which is cheaper. In bytes.
pub(crate) const LARGE: usize = 256 << 10;

/// What each of the two buffers holds at most, in bytes.
const ROOM: usize = 128 << 10;

/// Threads at a time. When there are so many, a body is received whole and transformed like a small one.
const THREADS: usize = 64;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// One of the threads.
struct Place;

impl Place {
    fn take() -> Option<Place> {
        let taken =
            RUNNING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < THREADS).then_some(n + 1));
        taken.is_ok().then_some(Place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What both sides see.
#[derive(Default)]
struct Pipe {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    input: Vec<u8>,
    input_ended: bool,
    output: Vec<u8>,
    /// The stylesheet is done, or why it is not.
    done: Option<Result<(), String>>,
    /// The result is not wanted any more, or the body does not arrive.
    cancelled: bool,
    waker: Option<Waker>,
    /// Bytes read since something was written.
    unanswered: usize,
    /// They were more than may be held.
    too_large: bool,
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that panics happens under the lock.
        flow::lock(&self.state)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

fn cancelled() -> Error {
    Error::other("the message is given up")
}

/// The thread's end of the body.
struct Source {
    pipe: Arc<Pipe>,
    /// Most bytes that are read while nothing is written: so much of the message is held somewhere.
    held: usize,
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let mut state = self.pipe.lock();
        loop {
            if state.cancelled {
                return Err(cancelled());
            }
            if !state.input.is_empty() {
                let n = into.len().min(state.input.len());
                into[..n].copy_from_slice(&state.input[..n]);
                state.input.drain(..n);
                state.unanswered += n;
                if state.unanswered > self.held {
                    let held = self.held;
                    state.too_large = true;
                    return Err(Error::other(format!(
                        "more than the {held} bytes a flow may hold are needed at once"
                    )));
                }
                state.wake();
                return Ok(n);
            }
            if state.input_ended {
                return Ok(0);
            }
            state.wake();
            state = self.pipe.wait(state);
        }
    }
}

/// The thread's end of the result.
struct Sink {
    pipe: Arc<Pipe>,
    /// If the result must be an element: what reads along.
    element: Option<xml::Tokenizer>,
}

impl Sink {
    /// Reads along.
    fn check(&mut self, piece: Option<&[u8]>) -> std::io::Result<()> {
        let Some(tokenizer) = &mut self.element else { return Ok(()) };
        match piece {
            Some(piece) => tokenizer.feed(piece),
            None => tokenizer.finish(),
        }
        let invalid = |why: String| Error::new(ErrorKind::InvalidData, why);
        tokenizer
            .skim(&xml::Interest::NOTHING)
            .map_err(|error| invalid(format!("the result is not one element: {error}")))?;
        match tokenizer.document_element() {
            Some(root) if matches!(root.local(), "Envelope" | "Fault") => Err(invalid(format!(
                "the result is a SOAP {}, which is not made while the message arrives",
                root.local()
            ))),
            _ => Ok(()),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let n = {
            let mut state = self.pipe.lock();
            loop {
                if state.cancelled {
                    return Err(cancelled());
                }
                if state.output.len() < ROOM {
                    break;
                }
                state = self.pipe.wait(state);
            }
            bytes.len().min(ROOM - state.output.len())
        };
        // Only this side fills the buffer: the room is still there.
        self.check(Some(&bytes[..n]))?;
        let mut state = self.pipe.lock();
        state.output.extend_from_slice(&bytes[..n]);
        state.unanswered = 0;
        state.wake();
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The result of a stylesheet, arriving.
pub(crate) struct Transformed {
    pipe: Arc<Pipe>,
    /// The body of the message, until it has arrived.
    input: Option<Body>,
    out: Vec<u8>,
    /// What was consumed of `out`.
    at: usize,
    /// All of it is there, or nothing more comes.
    ended: Option<Result<(), BodyError>>,
    /// The body failed, not the stylesheet.
    pub input_failed: bool,
}

impl Transformed {
    /// Starts a stylesheet: `run` reads the body and writes the result. `element`: the result must be one element, neither a
    /// SOAP envelope nor a fault. `held`: how much of the body it may read at most without writing anything, in bytes. The
    /// body comes back if too many stylesheets are running.
    pub(crate) fn start(
        body: Body,
        element: bool,
        held: usize,
        run: impl FnOnce(&mut (dyn Read + Send), &mut (dyn Write + Send)) -> Result<(), String> + Send + 'static,
    ) -> Result<Transformed, Body> {
        let Some(place) = Place::take() else { return Err(body) };
        let pipe = Arc::new(Pipe::default());
        let element = element.then(|| xml::Tokenizer::new(xml::Limits::trusted()));
        let mut source = Source { pipe: Arc::clone(&pipe), held };
        let mut sink = Sink { pipe: Arc::clone(&pipe), element };
        let shared = Arc::clone(&pipe);
        let work = move || {
            let _place = place;
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                run(&mut source, &mut sink).and_then(|()| sink.check(None).map_err(|error| error.to_string()))
            }));
            let done = done.unwrap_or_else(|_| Err("the stylesheet's run broke off".into()));
            let mut state = shared.lock();
            state.done = Some(done);
            state.wake();
        };
        match std::thread::Builder::new().name("xslt".into()).spawn(work) {
            Ok(_) => Ok(Transformed {
                pipe,
                input: Some(body),
                out: Vec::new(),
                at: 0,
                ended: None,
                input_failed: false,
            }),
            // The system has no more threads.
            Err(_) => Err(body),
        }
    }

    /// Whether it has failed because it needed more of the body at once than may be held.
    pub(crate) fn is_too_large(&self) -> bool {
        self.pipe.lock().too_large
    }

    /// Hands the thread what has arrived. `true`: its buffer is full, or all of the body is there; `false`: more is on
    /// its way.
    fn hand_on(&mut self, cx: &mut Context<'_>) -> Result<bool, BodyError> {
        while let Some(body) = &mut self.input {
            {
                let mut state = self.pipe.lock();
                let room = ROOM.saturating_sub(state.input.len());
                let n = body.buffered().len().min(room);
                if n > 0 {
                    state.input.extend_from_slice(&body.buffered()[..n]);
                    self.pipe.changed.notify_all();
                }
                drop(state);
                body.consume(n);
                if n == room {
                    return Ok(true);
                }
            }
            let more = match body.is_complete() {
                true => Ok(false),
                false => match body.poll_more(cx) {
                    Poll::Ready(more) => more,
                    Poll::Pending => return Ok(false),
                },
            };
            match more {
                Ok(true) => {}
                Ok(false) if !body.buffered().is_empty() => {}
                Ok(false) => {
                    self.pipe.lock().input_ended = true;
                    self.pipe.changed.notify_all();
                    if let Some(body) = self.input.take() {
                        body.recycle();
                    }
                }
                Err(error) => {
                    self.input_failed = true;
                    self.input = None;
                    return Err(error);
                }
            }
        }
        Ok(true)
    }
}

impl BodyStream for Transformed {
    fn buffered(&self) -> &[u8] {
        &self.out[self.at..]
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        if let Some(ended) = &self.ended {
            return Poll::Ready(ended.clone().map(|()| false));
        }
        loop {
            let handed = match self.hand_on(cx) {
                Ok(handed) => handed,
                Err(error) => {
                    self.ended = Some(Err(error.clone()));
                    return Poll::Ready(Err(error));
                }
            };
            let mut state = self.pipe.lock();
            if !state.output.is_empty() {
                if self.at == self.out.len() {
                    self.out.clear();
                    self.at = 0;
                    std::mem::swap(&mut self.out, &mut state.output);
                } else {
                    self.out.drain(..self.at);
                    self.at = 0;
                    self.out.append(&mut state.output);
                }
                self.pipe.changed.notify_all();
                return Poll::Ready(Ok(true));
            }
            if let Some(done) = state.done.take() {
                let done = done.map_err(|why| BodyError::Io(Arc::new(Error::other(why))));
                self.ended = Some(done.clone());
                return Poll::Ready(done.map(|()| false));
            }
            if handed && self.input.is_some() && state.input.len() < ROOM {
                // The thread was faster.
                continue;
            }
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
    }

    fn consume(&mut self, n: usize) {
        self.at = (self.at + n).min(self.out.len());
    }

    fn is_complete(&self) -> bool {
        matches!(self.ended, Some(Ok(())))
    }

    fn exact_len(&self) -> Option<u64> {
        None
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

impl Drop for Transformed {
    fn drop(&mut self) {
        self.pipe.lock().cancelled = true;
        self.pipe.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole result, or why there is none.
    fn collect(mut result: Transformed) -> Result<Vec<u8>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut bytes = Vec::new();
            loop {
                let more = std::future::poll_fn(|cx| result.poll_more(cx)).await;
                bytes.extend_from_slice(result.buffered());
                result.consume(result.buffered().len());
                if !more.map_err(|error| error.to_string())? {
                    return Ok(bytes);
                }
            }
        })
    }

    fn copy(input: &mut (dyn Read + Send), out: &mut (dyn Write + Send)) -> Result<(), String> {
        std::io::copy(input, out).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_goes_in_comes_out_however_much_it_is() {
        for size in [1, ROOM - 1, ROOM, ROOM + 1, 5 * ROOM + 17] {
            let body: Vec<u8> = (0..size).map(|i| i as u8).collect();
            let result = Transformed::start(body.clone().into(), false, usize::MAX, copy).map_err(|_| "busy");
            assert!(collect(result.expect("there is room")) == Ok(body), "{size}");
        }
    }

    #[test]
    fn what_goes_wrong_is_said() {
        let cases: [(&str, usize, bool, &str); 5] = [
            ("<a></a><b/>", 99, true, "the result is not one element"),
            ("<a>", 99, true, "the result is not one element"),
            ("text", 99, true, "the result is not one element"),
            ("<s:Envelope xmlns:s='urn:s'/>", 99, true, "the result is a SOAP Envelope"),
            ("<a/>", 2, false, "more than the 2 bytes a flow may hold are needed at once"),
        ];
        for (body, held, element, why) in cases {
            let result = Transformed::start(Body::from(body.as_bytes().to_vec()), element, held, copy);
            let Ok(result) = result else { panic!("there is room") };
            let got = collect(result).expect_err(body);
            assert!(got.contains(why), "{body}: {got}");
        }
        let broken = Transformed::start(Body::from("<a/>"), true, 99, |_, _| panic!("as a test"));
        let Ok(broken) = broken else { panic!("there is room") };
        assert!(collect(broken).expect_err("it broke off").contains("broke off"));
    }

    #[test]
    fn a_result_that_nobody_wants_ends_its_thread() {
        let (ended, end) = std::sync::mpsc::channel();
        let endless = move |_: &mut (dyn Read + Send), out: &mut (dyn Write + Send)| {
            while out.write_all(&[b'x'; 1024]).is_ok() {}
            let _ = ended.send(());
            Ok(())
        };
        let Ok(result) = Transformed::start(Body::Empty, false, 99, endless) else { panic!("there is room") };
        drop(result);
        end.recv().expect("the thread says so");
    }

    /// A body that arrives in pieces, each after a wait; at its end it may fail.
    struct Pieces {
        left: Vec<u8>,
        there: Vec<u8>,
        waited: bool,
        fails: bool,
    }

    impl BodyStream for Pieces {
        fn buffered(&self) -> &[u8] {
            &self.there
        }

        fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
            self.waited = !self.waited;
            if self.waited {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let n = self.left.len().min(50_000);
            self.there.extend(self.left.drain(..n));
            Poll::Ready(if n == 0 && self.fails { Err(BodyError::Truncated) } else { Ok(n > 0) })
        }

        fn consume(&mut self, n: usize) {
            self.there.drain(..n);
        }

        fn is_complete(&self) -> bool {
            self.left.is_empty() && !self.fails
        }

        fn exact_len(&self) -> Option<u64> {
            None
        }

        fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
            self
        }
    }

    const SHEET: &str = "<!--top--><localEntry key='s'><x:stylesheet xmlns='' version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'>\
        <x:output omit-xml-declaration='yes'/><x:template match='/orders'><r><x:apply-templates select='order'/></r></x:template>\
        <x:template match='order'><o><x:value-of select='symbol'/></o></x:template></x:stylesheet></localEntry>";

    fn orders(count: usize) -> String {
        "<order><symbol>IBM</symbol><note>a note that nobody asks for</note></order>".repeat(count)
    }

    #[test]
    fn mediators_transform_a_large_body_while_it_arrives() {
        let many = 30_000;
        let whole = format!("<orders>{}</orders>", orders(many));
        let result = format!("<r>{}</r>", "<o>IBM</o>".repeat(many));
        let late = format!("<orders>{}</orderz>", orders(many));
        let early = format!("<orders><order></orders>{}", orders(many));
        let cut = format!("<orders>{}", orders(many));
        for mediator in ["fastXSLT", "xslt"] {
            let registry = crate::registry(flow::testing::endpoints);
            let tested = flow::testing::main(&registry, &format!("<{mediator} key='s'/>{SHEET}"));
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            assert_eq!(tested.needs(), [flow::Need::Prefix]);
            let run = |text: &str, fails: bool| {
                let pieces = Pieces { left: text.into(), there: Vec::new(), waited: false, fails };
                tested.run_with(&[("Content-Type", "application/xml")], "", |context| {
                    context.payload.put_back(Body::Stream(Box::new(pieces)));
                })
            };
            let got = run(&whole, false);
            assert!(got.context.payload.bytes().is_some_and(|bytes| *bytes == result), "{mediator}");
            // Nothing was written yet: a fault like any other.
            let fault = run(&early, false).fault();
            assert!(
                fault.as_ref().is_some_and(|message| message.starts_with("601000: the payload is not well")),
                "{fault:?}"
            );
            // Later the result breaks off, and never looks whole.
            for (text, fails) in [(&late, false), (&cut, false), (&cut, true)] {
                let got = run(text, fails);
                assert_eq!(got.context.payload.bytes(), None, "{mediator} {fails}");
            }
            // A body that is not large, and one that does not arrive at all.
            let mut small = run("<orders><order><symbol>A</symbol></order></orders>", false);
            assert_eq!(small.payload(), "<r><o>A</o></r>", "{mediator}");
            assert!(run("<orders>", true).fault().is_some_and(|fault| fault.contains("did not arrive")));
        }
    }
}
