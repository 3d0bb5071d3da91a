//! The acceptor of a listener on one worker.
//!
//! A client whose connection is established cannot know whether it has been accepted, and closing a listening socket resets those that have
//! not. So a listener that drains lets no handshake begin any more, and takes all connections that wait before it closes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{SockFilter, SockRef};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout_at};

use super::{Listening, start};
use crate::Handler;
use crate::descriptors::may_accept;

/// Pause when nothing can be accepted, which doubles each time.
const SHORTEST: Duration = Duration::from_millis(20);
/// The longest one.
const LONGEST: Duration = Duration::from_secs(1);

/// How long a handshake that began before the drain may take.
const HANDSHAKE: Duration = Duration::from_millis(100);

/// How long a drain waits for places for the connections that wait.
const PLACES: Duration = Duration::from_secs(5);

/// Accepts until the listener drains, and then those that wait.
pub(crate) async fn accept<H: Handler>(listening: Arc<Listening>, listener: TcpListener, handler: Arc<H>) {
    let acceptor = Acceptor { listening, listener: Some(listener), handler };
    let mut pause = SHORTEST;
    while !acceptor.listening.is_draining() {
        tokio::select! {
            () = acceptor.next(&mut pause) => {}
            () = acceptor.listening.drain.notified() => {}
        }
    }
    acceptor.empty().await;
}

/// The listening socket closes when this is dropped, and nobody takes the listener for closed before.
struct Acceptor<H> {
    listening: Arc<Listening>,
    /// Until the end.
    listener: Option<TcpListener>,
    handler: Arc<H>,
}

impl<H> Drop for Acceptor<H> {
    fn drop(&mut self) {
        drop(self.listener.take());
        self.listening.accepts_no_more();
    }
}

impl<H: Handler> Acceptor<H> {
    /// Whether there are as many connections as there may be.
    fn is_full(&self) -> bool {
        self.listening.counters.open.get() >= self.listening.limits().connections as u64
    }

    /// Accepts one connection, or waits for what is short. To be dropped at any time.
    async fn next(&self, pause: &mut Duration) {
        let (listening, Some(listener)) = (&self.listening, &self.listener) else { return };
        if self.is_full() {
            return listening.freed.notified().await;
        }
        let failed = if may_accept() {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    *pause = SHORTEST;
                    return start(listening, stream, peer, self.handler.clone());
                }
                // The connection was gone before it was accepted.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
                    ) =>
                {
                    return;
                }
                // Out of file descriptors or memory: the connection waits, so trying at once would spin.
                Err(error) => format!("cannot accept connections: {error}"),
            }
        } else {
            // What is left is for files. Clients wait in the backlog.
            "no descriptors for more connections".to_owned()
        };
        listening.counters.failed.add(1);
        tracing::warn!(listener = %listening.local, "{failed}");
        tokio::time::sleep(*pause).await;
        *pause = (*pause * 2).min(LONGEST);
    }

    /// Accepts the connections that wait, and those whose handshake is under way.
    async fn empty(&self) {
        let (listening, Some(listener)) = (&self.listening, &self.listener) else { return };
        if let Err(error) = refuse_handshakes(listener) {
            tracing::debug!(%error, listener = %listening.local, "handshakes go on while the listener closes");
        }
        let drained = listening.end_of_drain();
        let (quiet, last) = (drained.min(Instant::now() + HANDSHAKE), drained.min(Instant::now() + PLACES));
        let mut pause = SHORTEST;
        loop {
            let end = if is_waited_for(listener) { last } else { quiet };
            // Whoever waits for the listener to close may have been told of a place instead of this.
            let look = if self.is_full() { end.min(Instant::now() + SHORTEST) } else { end };
            if timeout_at(look, self.next(&mut pause)).await.is_err() && Instant::now() >= end {
                break;
            }
        }
        if is_waited_for(listener) {
            let why = "connections that waited to be accepted are reset: no place for them became free";
            tracing::warn!(listener = %listening.local, "{why}");
        }
    }
}

/// Lets the kernel drop the segments that begin a handshake. Their clients try again, for a second at first, and find the listener closed or
/// another one; none of them has a connection before that.
fn refuse_handshakes(listener: &TcpListener) -> io::Result<()> {
    const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
    const IS_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    /// Of the TCP header (RFC 9293, 3.1).
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const SYN_OR_ACK: u32 = 0x12;
    // Connections inherit the filter. Whatever else they receive passes.
    SockRef::from(listener).attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
        SockFilter::new(AND, 0, 0, SYN_OR_ACK),
        SockFilter::new(IS_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ])
}

/// Whether a connection waits to be accepted.
fn is_waited_for(listener: &TcpListener) -> bool {
    let mut watched = [PollFd::new(listener, PollFlags::IN)];
    matches!(poll(&mut watched, Some(&Timespec::default())), Ok(1..))
}
