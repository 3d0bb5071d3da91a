//! A WebSocket that ends here (RFC 6455): each message of the client is given to a [`Dialogue`], one after the other, and what that
//! says goes back. What others say to the client lies in its [`Mailbox`].
//!
//! While a message is being answered, one more is taken, and then nothing, so that a client which sends faster is slowed by its own
//! connection; so is one that takes nothing of what is said to it. Of pings only the last one is answered where they come faster than the
//! answers leave. It ends with a Close frame that says why.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use message::BodyError;

use crate::connection::{Conn, Incoming, lock};
use crate::frames::{Broken, Event, Reading, WebSocketMessage, Writing};
use crate::http1::write::{self, Kind};
use crate::serve::Account;
use crate::server::{Listening, Open};
use crate::timer::Timer;
use crate::{ConnectionInfo, OnEnd, Response, ServerLimits};

/// Frames, or pieces of them, that are taken in one turn.
const IN_A_TURN: u32 = 64;

/// Messages that are answered in one turn.
const ANSWERED_IN_A_TURN: u32 = 16;

/// Going away (RFC 6455, 7.4.1), and others.
const AWAY: u16 = 1001;
const POLICY: u16 = 1008;
const INTERNAL: u16 = 1011;

/// What to send, `None` for nothing, or that the conversation has failed ([`Failed`]).
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Option<WebSocketMessage>, Failed>> + Send + 'a>>;

/// A message could not be answered: the WebSocket is closed with 1011 (internal error). Whoever says so has logged it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// The application behind a WebSocket.
pub trait Dialogue: Send {
    /// Most bytes of a message of the client; beyond, the WebSocket is closed with 1009 (too big).
    fn largest(&self) -> usize;

    /// The mailbox for messages of others to the client.
    fn mailbox(&self) -> Option<Arc<Mailbox>>;

    /// The messages to send before the client has sent any.
    fn first(&mut self) -> Answering<'_>;

    /// Answers a message. It is dropped where the client goes away.
    fn answer(&mut self, message: WebSocketMessage) -> Answering<'_>;

    /// It has ended; `close`: code and reason of the client, if it said goodbye (1005 where it gave no code). The connection counts as
    /// open until this is done.
    fn ended(self: Box<Self>, close: Option<(u16, String)>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The messages that wait to be sent to one client.
#[derive(Debug)]
pub struct Mailbox {
    /// Most messages, and most bytes of them together.
    most: (usize, usize),
    letters: Mutex<Letters>,
}

#[derive(Debug, Default)]
struct Letters {
    waiting: VecDeque<WebSocketMessage>,
    bytes: usize,
    /// There were too many.
    overflown: bool,
    reader: Option<Waker>,
}

/// The client receives too slowly: its WebSocket is closed with 1008.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflown;

impl Mailbox {
    /// A mailbox for so many messages, and so many bytes of them together. One message may be larger.
    pub fn new(messages: usize, bytes: usize) -> Mailbox {
        Mailbox { most: (messages, bytes), letters: Mutex::default() }
    }

    /// Queues a message for the client.
    ///
    /// # Errors
    /// Too much is waiting already.
    pub fn put(&self, message: WebSocketMessage) -> Result<(), Overflown> {
        let mut letters = lock(&self.letters);
        let size = message.payload.len();
        let fits = letters.waiting.is_empty()
            || (letters.waiting.len() < self.most.0 && letters.bytes.saturating_add(size) <= self.most.1);
        if fits && !letters.overflown {
            letters.bytes += size;
            letters.waiting.push_back(message);
        } else {
            letters.overflown = true;
            (letters.waiting, letters.bytes) = (VecDeque::new(), 0);
        }
        if let Some(reader) = letters.reader.take() {
            reader.wake();
        }
        if letters.overflown { Err(Overflown) } else { Ok(()) }
    }

    /// Whether too much waits; if not, the task is woken when that is so, or when anything is queued.
    fn poll_overflown(&self, cx: &mut Context<'_>) -> Poll<Overflown> {
        let mut letters = lock(&self.letters);
        if letters.overflown {
            return Poll::Ready(Overflown);
        }
        letters.wake(cx);
        Poll::Pending
    }

    /// The next message; pending, and to be woken, while there is none.
    fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Result<WebSocketMessage, Overflown>> {
        let mut letters = lock(&self.letters);
        if letters.overflown {
            return Poll::Ready(Err(Overflown));
        }
        match letters.waiting.pop_front() {
            Some(message) => {
                letters.bytes -= message.payload.len();
                if letters.waiting.is_empty() {
                    // A queue that was full once does not stay large.
                    letters.waiting = VecDeque::new();
                }
                Poll::Ready(Ok(message))
            }
            None => {
                letters.wake(cx);
                Poll::Pending
            }
        }
    }
}

impl Letters {
    /// Registers the reader to be woken.
    fn wake(&mut self, cx: &Context<'_>) {
        if !self.reader.as_ref().is_some_and(|registered| registered.will_wake(cx.waker())) {
            self.reader = Some(cx.waker().clone());
        }
    }
}

/// What bytes go both ways on.
pub(crate) trait Line: Send {
    /// What has come and was not consumed.
    fn buffered(&self) -> &[u8];
    fn consume(&mut self, n: usize);
    /// Waits for more; false: the end.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>>;
    /// Sends of `parts`; an error of kind TimedOut after `wait` without progress.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
        wait: Duration,
    ) -> Poll<io::Result<usize>>;
    fn poll_flush(&mut self, cx: &mut Context<'_>, wait: Duration) -> Poll<io::Result<()>>;
    /// Nothing more is sent.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// A connection of HTTP/1.1 that was upgraded.
struct Upgraded(Box<Incoming>);

impl Line for Upgraded {
    fn buffered(&self) -> &[u8] {
        self.0.buffered()
    }

    fn consume(&mut self, n: usize) {
        self.0.consume(n);
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        self.0.poll_more(cx)
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
        wait: Duration,
    ) -> Poll<io::Result<usize>> {
        lock(&self.0.conn.writer).poll_write(cx, parts, wait)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, wait: Duration) -> Poll<io::Result<()>> {
        lock(&self.0.conn.writer).poll_flush(cx, wait)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0.conn.writer).poll_shutdown(cx)
    }
}

/// A WebSocket to be opened.
pub(crate) struct Opening {
    client: Box<Incoming>,
    head: Vec<u8>,
    dialogue: Box<dyn Dialogue>,
    on_end: Option<Box<dyn OnEnd>>,
}

impl Opening {
    /// The WebSocket that a response opens; if it cannot be sent, both come back.
    pub(crate) fn new(
        client: Box<Incoming>,
        mut response: Response,
    ) -> Result<Opening, Box<(Box<Incoming>, Response)>> {
        let mut head = b"HTTP/1.1 101 Switching Protocols\r\n".to_vec();
        let written = write::fields(&mut head, &response.head.headers, Kind::Response { keep_length: false });
        match response.dialogue.take() {
            Some(dialogue) if written.is_ok() => {
                head.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
                Ok(Opening { client, head, dialogue, on_end: response.on_end.take() })
            }
            dialogue => {
                response.dialogue = dialogue;
                Err(Box::new((client, response)))
            }
        }
    }
}

/// Why it ends.
enum End {
    /// The client sent a Close frame.
    Closed(Option<(u16, String)>),
    /// The client sent something that cannot be read.
    Broken(Broken),
    /// It is ended with this code.
    With(u16, &'static str),
    /// The connection is gone, or cut.
    Gone,
}

/// How far the response to a Close frame is that came while a message was being answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goodbye {
    /// The client has not sent one.
    Unsaid,
    /// It is on its way.
    Begun,
    /// Nothing more is said.
    Done,
}

const TOO_SLOW: End = End::With(POLICY, "it takes too little of what is said to it");

struct Socket<'a> {
    line: Box<dyn Line>,
    conn: &'a Conn,
    listening: &'a Listening,
    limits: &'a ServerLimits,
    reading: Reading,
    mailbox: Option<Arc<Mailbox>>,
    /// What is being written, and whether it is ours: an answer or a goodbye.
    out: Option<(Writing, bool)>,
    /// The next frame of ours.
    queued: Option<Writing>,
    /// The ping that is answered when there is room.
    ping: Option<Vec<u8>>,
    goodbye: Goodbye,
    written: u64,
    /// Since the client has sent anything, if only a ping.
    idle: Timer,
    /// Since anything came of a message that has begun.
    pause: Timer,
    waker: Option<Waker>,
}

/// Talks until one side ends it.
pub(crate) async fn run(open: Open, opening: Opening, limits: Arc<ServerLimits>, info: ConnectionInfo) {
    let listening = open.listening().clone();
    let Opening { mut client, head, dialogue, on_end } = opening;
    let conn = client.conn.clone();
    client.begin_tunnel();
    talk(Box::new(Upgraded(client)), &head, dialogue, on_end, (&conn, &listening, &limits, &info)).await;
    drop(open);
}

/// Talks over a line, behind the head that opens it.
pub(crate) async fn talk(
    mut line: Box<dyn Line>,
    head: &[u8],
    mut dialogue: Box<dyn Dialogue>,
    on_end: Option<Box<dyn OnEnd>>,
    (conn, listening, limits, info): (&Conn, &Listening, &ServerLimits, &ConnectionInfo),
) {
    let mut response = Response::empty(101);
    response.on_end = on_end;
    let account = Account::of(&mut response, info, conn);
    let mut sent = 0;
    let opened = poll_fn(|cx| {
        while sent < head.len() {
            sent += ready!(line.poll_write(cx, &[IoSlice::new(&head[sent..])], limits.write))?;
        }
        Poll::Ready(io::Result::Ok(()))
    });
    if opened.await.is_err() {
        return dialogue.ended(None).await;
    }
    let mut socket = Socket {
        line,
        conn,
        listening,
        limits,
        reading: Reading::new(dialogue.largest()),
        mailbox: dialogue.mailbox(),
        out: None,
        queued: None,
        ping: None,
        goodbye: Goodbye::Unsaid,
        written: 0,
        idle: Timer::default(),
        pause: Timer::default(),
        waker: None,
    };
    let end = socket.talk(&mut *dialogue).await;
    if let End::Broken(Broken { code, why }) | End::With(code, why) = &end
        && !matches!(*code, AWAY | INTERNAL)
    {
        tracing::warn!(client = %info.peer, code, "a WebSocket was ended: {why}");
        listening.counters.refused.add(1);
    }
    let whole = !matches!(end, End::Gone);
    let close = socket.end(end).await;
    if let Some(mut account) = account {
        account.end.bytes = socket.written;
        account.end_whole(whole);
    }
    if !conn.is_cut() {
        tokio::join!(dialogue.ended(close), socket.linger());
    }
}

impl Socket<'_> {
    async fn talk(&mut self, dialogue: &mut dyn Dialogue) -> End {
        let (mut next, mut begun, mut in_turn) = (None, false, 0);
        loop {
            // Small messages can come faster than they are answered, and nothing here would ever wait.
            in_turn += 1;
            if in_turn == ANSWERED_IN_A_TURN {
                in_turn = 0;
                tokio::task::yield_now().await;
            }
            let mut answering = match next.take() {
                Some(message) => dialogue.answer(message),
                None if !begun => dialogue.first(),
                None => match self.next().await {
                    Ok(message) => dialogue.answer(message),
                    Err(end) => return end,
                },
            };
            begun = true;
            let mut ended = None;
            let answer = poll_fn(|cx| {
                if self.is_cut(cx) {
                    return Poll::Ready(Err(End::Gone));
                }
                if let Poll::Ready(answer) = answering.as_mut().poll(cx) {
                    let failed = |_| End::With(INTERNAL, "the message could not be answered");
                    return Poll::Ready(answer.map_err(failed));
                }
                if self.goodbye != Goodbye::Unsaid {
                    self.poll_goodbye(cx);
                    return Poll::Pending;
                }
                if let Poll::Ready(Err(end)) = self.poll_write(cx) {
                    return Poll::Ready(Err(end));
                }
                if next.is_none() && ended.is_none() {
                    match ready!(self.poll_next(cx)) {
                        Ok(message) => next = Some(message),
                        Err(End::Gone) => return Poll::Ready(Err(End::Gone)),
                        // What was said before that is answered, if only for what it does.
                        Err(end) => {
                            if let End::Closed(close) = &end {
                                self.begin_goodbye(close.as_ref().map(|(code, _)| *code));
                                self.poll_goodbye(cx);
                            }
                            ended = Some(end);
                        }
                    }
                }
                Poll::Pending
            });
            let answer = answer.await;
            drop(answering);
            let sent = match (answer, ended) {
                (Err(end), _) | (Ok(_), Some(end)) => Err(end),
                (Ok(Some(message)), None) => self.say(Writing::message(message)).await,
                (Ok(None), None) => Ok(()),
            };
            if let Err(end) = sent {
                return end;
            }
        }
    }

    /// Whether the connection is to end now; it is woken if that happens.
    fn is_cut(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.waker.as_ref().is_some_and(|registered| registered.will_wake(cx.waker())) {
            self.conn.polled_by(cx.waker());
            self.waker = Some(cx.waker().clone());
        }
        self.conn.is_cut()
    }

    /// The next message of the client.
    async fn next(&mut self) -> Result<WebSocketMessage, End> {
        poll_fn(|cx| {
            if self.is_cut(cx) {
                return Poll::Ready(Err(End::Gone));
            }
            if self.listening.is_draining() {
                return Poll::Ready(Err(End::With(AWAY, "the server stops")));
            }
            if let Poll::Ready(Err(end)) = self.poll_write(cx) {
                return Poll::Ready(Err(end));
            }
            if let Poll::Ready(next) = self.poll_next(cx) {
                return Poll::Ready(next);
            }
            let silence = self.limits.websocket_idle;
            if self.reading.is_within() {
                let pause = silence.min(self.limits.body);
                if self.pause.poll_expired(pause, cx) {
                    return Poll::Ready(Err(End::With(POLICY, "the rest of a message did not come")));
                }
            } else if self.idle.poll_expired(silence, cx) {
                return Poll::Ready(Err(End::With(AWAY, "nothing came for long")));
            }
            Poll::Pending
        })
        .await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<WebSocketMessage, End>> {
        for _ in 0..IN_A_TURN {
            if self.line.buffered().is_empty() {
                match ready!(self.line.poll_more(cx)) {
                    Ok(true) => self.pause.clear(),
                    Ok(false) | Err(_) => return Poll::Ready(Err(End::Gone)),
                }
            }
            let (n, event) = self.reading.read(self.line.buffered()).map_err(End::Broken)?;
            self.line.consume(n);
            let Some(event) = event else { continue };
            self.idle.clear();
            match event {
                Event::Message(message) => return Poll::Ready(Ok(message)),
                Event::Close(close) => return Poll::Ready(Err(End::Closed(close))),
                Event::Ping(payload) => {
                    self.ping = Some(payload);
                    if let Poll::Ready(Err(end)) = self.poll_write(cx) {
                        return Poll::Ready(Err(end));
                    }
                }
                Event::Pong => {}
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes what there is to write, ours first. Where the client takes nothing for long, it is gone.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        loop {
            if let Some((out, _)) = &mut self.out {
                let [head, rest] = out.rest();
                let wait = self.limits.write;
                let written = match (head, rest) {
                    ([], rest) => self.line.poll_write(cx, &[IoSlice::new(rest)], wait),
                    (head, []) => self.line.poll_write(cx, &[IoSlice::new(head)], wait),
                    (head, rest) => self.line.poll_write(cx, &[IoSlice::new(head), IoSlice::new(rest)], wait),
                };
                let written = match written {
                    Poll::Ready(written) => written.map_err(|_| End::Gone)?,
                    // Nobody waits for a client that takes nothing of this while more and more is said to it.
                    Poll::Pending => match self.mailbox.as_ref().map(|mailbox| mailbox.poll_overflown(cx)) {
                        Some(Poll::Ready(Overflown)) => return Poll::Ready(Err(TOO_SLOW)),
                        _ => return Poll::Pending,
                    },
                };
                self.written += written as u64;
                if out.wrote(written) {
                    self.out = None;
                }
                continue;
            }
            self.out = match (self.queued.take(), self.ping.take()) {
                (Some(frame), ping) => {
                    self.ping = ping;
                    Some((frame, true))
                }
                (None, Some(ping)) => Some((Writing::pong(ping), false)),
                (None, None) => None,
            };
            if self.out.is_some() {
                continue;
            }
            if let Some(mailbox) = &self.mailbox
                && let Poll::Ready(taken) = mailbox.poll_take(cx)
            {
                self.out = Some((Writing::message(taken.map_err(|Overflown| TOO_SLOW)?), false));
                continue;
            }
            return self.line.poll_flush(cx, self.limits.write).map_err(|_| End::Gone);
        }
    }

    /// Queues a frame of ours.
    async fn say(&mut self, writing: Writing) -> Result<(), End> {
        self.queued = Some(writing);
        poll_fn(|cx| {
            if self.is_cut(cx) {
                return Poll::Ready(Err(End::Gone));
            }
            match self.poll_write(cx) {
                // What others say may go on for ever.
                Poll::Pending if self.queued.is_none() && !matches!(self.out, Some((_, true))) => {
                    self.line.poll_flush(cx, self.limits.write).map_err(|_| End::Gone)
                }
                polled => polled,
            }
        })
        .await
    }

    /// Answers a goodbye at once (RFC 6455, 5.5.1): the client waits for no longer than it likes, and what the flow says has nobody to
    /// hear it.
    fn begin_goodbye(&mut self, code: Option<u16>) {
        (self.mailbox, self.ping) = (None, None);
        self.reading.give_up();
        self.queued = Some(code.map_or_else(Writing::bare_close, |code| Writing::close(code, "")));
        self.goodbye = Goodbye::Begun;
    }

    /// Writes the answer to a goodbye, and the end behind it. A client that is gone by then does not end its flow.
    fn poll_goodbye(&mut self, cx: &mut Context<'_>) {
        if self.goodbye != Goodbye::Begun {
            return;
        }
        let done = match self.poll_write(cx) {
            Poll::Pending => false,
            Poll::Ready(Ok(())) => self.line.poll_shutdown(cx).is_ready(),
            Poll::Ready(Err(_)) => true,
        };
        if done {
            (self.out, self.queued) = (None, None);
            self.goodbye = Goodbye::Done;
        }
    }

    /// Says goodbye and lets the client do so, for a while. What the client said.
    async fn end(&mut self, end: End) -> Option<(u16, String)> {
        let (last, waits, close) = match end {
            End::Gone => return None,
            End::Closed(None) => (Writing::bare_close(), false, Some((1005, String::new()))),
            End::Closed(Some((code, reason))) => (Writing::close(code, ""), false, Some((code, reason))),
            End::Broken(Broken { code, why }) => (Writing::close(code, why), false, None),
            End::With(code, why) => (Writing::close(code, why), true, None),
        };
        let linger = self.limits.linger;
        if self.goodbye != Goodbye::Unsaid {
            let goodbye = poll_fn(|cx| {
                self.poll_goodbye(cx);
                match self.goodbye == Goodbye::Done || self.is_cut(cx) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            });
            let _ = tokio::time::timeout(linger, goodbye).await;
            return close;
        }
        (self.mailbox, self.ping) = (None, None);
        if !waits {
            self.reading.give_up();
        }
        if !matches!(tokio::time::timeout(linger, self.say(last)).await, Ok(Ok(()))) {
            return close;
        }
        if waits {
            // The answer to that; what else still comes has nowhere to go.
            let answered = poll_fn(|cx| match self.is_cut(cx) {
                true => Poll::Ready(()),
                false => match ready!(self.poll_next(cx)) {
                    Ok(_) => {
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    }
                    Err(_) => Poll::Ready(()),
                },
            });
            let _ = tokio::time::timeout(linger, answered).await;
            self.reading.give_up();
        }
        let _ = poll_fn(|cx| match self.line.poll_shutdown(cx) {
            // A peer that takes nothing does not get to know.
            Poll::Pending => Poll::Ready(Ok(())),
            done => done,
        })
        .await;
        close
    }

    /// Reads on for a while: closing with unread bytes would reset the connection, and the client might lose what was said last.
    async fn linger(&mut self) {
        let until_closed = poll_fn(|cx| {
            for _ in 0..IN_A_TURN {
                self.line.consume(usize::MAX / 2);
                match ready!(self.line.poll_more(cx)) {
                    Ok(true) => {}
                    Ok(false) | Err(_) => return Poll::Ready(()),
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        let _ = tokio::time::timeout(self.limits.linger, until_closed).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_message(payload: &'static str) -> WebSocketMessage {
        WebSocketMessage { is_text: true, payload: payload.into() }
    }

    #[test]
    fn a_mailbox_has_an_end() {
        let mut cx = Context::from_waker(Waker::noop());
        let mailbox = Mailbox::new(3, 10);
        assert!(mailbox.poll_take(&mut cx).is_pending());
        // One alone may be larger than all.
        mailbox.put(text_message("more than ten bytes")).unwrap();
        assert_eq!(mailbox.put(text_message("a")), Err(Overflown));
        assert_eq!(mailbox.poll_take(&mut cx), Poll::Ready(Err(Overflown)));
        let mailbox = Mailbox::new(3, 10);
        for text in ["a", "b", "c"] {
            mailbox.put(text_message(text)).unwrap();
        }
        assert_eq!(mailbox.poll_take(&mut cx), Poll::Ready(Ok(text_message("a"))));
        mailbox.put(text_message("12345678")).unwrap();
        for text in ["b", "c", "12345678"] {
            assert_eq!(mailbox.poll_take(&mut cx), Poll::Ready(Ok(text_message(text))));
        }
        assert!(mailbox.poll_take(&mut cx).is_pending());
    }
}
