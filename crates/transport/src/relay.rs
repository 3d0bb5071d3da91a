//! Sends a message whose body may still be on its way: one buffer, one write where that is possible,
//! and back-pressure, because nothing more is received before what is there was sent.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::sync::Mutex;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use message::{Body, BodyError};

use crate::connection::lock;
use crate::http1::write::{Delimiter, hexadecimal};
use crate::io::Writer;
use crate::splice::{self, Pipe};

/// Body bytes up to this many are copied behind the head, which is cheaper than a second part in the write.
const COPY: usize = 4 * 1024;

/// Which side of a relay failed.
#[derive(Debug)]
pub(crate) enum RelayError {
    /// The receiver.
    Write(io::Error),
    /// The sender of the body.
    Body(BodyError),
}

/// A message being sent.
pub(crate) struct Outgoing {
    /// Head, chunk sizes and small bodies.
    pub(crate) head: Vec<u8>,
    sent: usize,
    /// Bytes at the front of the body that were sent and are kept for a repetition.
    kept: usize,
    /// Bytes of the body that were framed so far, sent or not.
    entity: u64,
    /// Bytes of the body that follow `head`.
    data: usize,
    /// What follows them.
    tail: &'static [u8],
    /// What of the body was not framed yet.
    left: Left,
    /// Everything is framed.
    framed: bool,
    /// The message can be sent once more: `data` and `tail` of its one and only frame.
    repeat: Option<(usize, &'static [u8])>,
    keep: bool,
    /// The kernel, or TLS, has taken something of it.
    begun: bool,
    /// What was received of the body, and not sent yet, without coming through this process.
    pipe: Option<Pipe>,
    /// The sender of the body is waited for, not the receiver.
    starved: bool,
    wait: Duration,
}

enum Left {
    Nothing,
    Exact(u64),
    Chunked,
    UntilClose,
}

impl Outgoing {
    /// An empty message to write a head into; `wait`: how long the receiver may take nothing.
    pub(crate) fn new(wait: Duration) -> Outgoing {
        Outgoing {
            head: scratch(),
            sent: 0,
            kept: 0,
            entity: 0,
            data: 0,
            tail: &[],
            left: Left::Nothing,
            framed: true,
            repeat: None,
            keep: false,
            begun: false,
            pipe: None,
            starved: false,
            wait,
        }
    }

    /// The head is written; the body follows. `keep`: so that it can be sent again, while that costs nothing.
    pub(crate) fn begin(
        &mut self,
        delimiter: Delimiter,
        body: &mut Body,
        keep: bool,
    ) -> Result<(), BodyError> {
        self.left = match delimiter {
            Delimiter::None => Left::Nothing,
            Delimiter::Length(n) => Left::Exact(n),
            Delimiter::Chunked => Left::Chunked,
            Delimiter::Close => Left::UntilClose,
        };
        self.keep = keep;
        self.framed = false;
        self.frame(body)?;
        if self.framed {
            self.repeat = Some((self.data, self.tail));
        }
        Ok(())
    }

    /// Whether anything was sent.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether nothing was sent, or it can be sent again.
    pub(crate) fn can_repeat(&self) -> bool {
        !self.begun || self.repeat.is_some()
    }

    /// Begins again.
    pub(crate) fn repeat(&mut self) {
        if let Some((data, tail)) = self.repeat
            && self.begun
        {
            (self.sent, self.kept, self.data, self.tail) = (0, 0, data, tail);
        }
    }

    /// Bytes of the body that the kernel has taken. Those that were copied behind the head count from then on.
    pub(crate) fn sent_of_body(&self) -> u64 {
        self.entity - self.data as u64
    }

    /// Whether the body is still needed after all was sent.
    pub(crate) fn keeps_body(&self) -> bool {
        self.kept > 0
    }

    /// Whether what is pending waits for more of the body, and not for the receiver.
    pub(crate) fn is_starved(&self) -> bool {
        self.starved
    }

    /// Sends until the message is with the kernel.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        writer: &Mutex<Writer>,
        body: &mut Body,
    ) -> Poll<Result<(), RelayError>> {
        self.starved = false;
        loop {
            {
                let mut writer = lock(writer);
                while self.sent < self.head.len() || self.data > 0 || !self.tail.is_empty() {
                    match self.poll_write(cx, &mut writer, body) {
                        Poll::Ready(Ok(())) => {}
                        Poll::Ready(Err(e)) => return Poll::Ready(Err(RelayError::Write(e))),
                        Poll::Pending => {
                            drop(writer); // the body may have something to say to the same peer
                            body.drive(cx);
                            return Poll::Pending;
                        }
                    }
                }
                if self.framed {
                    return writer.poll_flush(cx, self.wait).map_err(RelayError::Write);
                }
            }
            self.head.clear();
            self.sent = 0;
            body.consume(std::mem::take(&mut self.kept));
            self.keep = false;
            if self.pipe.is_some() || body.buffered().is_empty() {
                ready!(self.poll_pass(cx, writer, body))?;
                match body.poll_more(cx) {
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(RelayError::Body(e))),
                    Poll::Pending => return self.starve(cx, writer),
                }
            }
            self.frame(body).map_err(RelayError::Body)?;
        }
    }

    /// More of the body has to arrive. What was sent must not wait for that; without effect on plain TCP.
    fn starve(&mut self, cx: &mut Context<'_>, writer: &Mutex<Writer>) -> Poll<Result<(), RelayError>> {
        self.starved = true;
        match lock(writer).poll_flush(cx, self.wait) {
            Poll::Ready(Err(e)) => Poll::Ready(Err(RelayError::Write(e))),
            _ => Poll::Pending,
        }
    }

    /// Moves a long body from socket to socket, as far as that is worth it. Everything framed so far was sent.
    fn poll_pass(
        &mut self,
        cx: &mut Context<'_>,
        writer: &Mutex<Writer>,
        body: &mut Body,
    ) -> Poll<Result<(), RelayError>> {
        loop {
            while let Some(pipe) = self.pipe.as_mut().filter(|pipe| !pipe.is_empty()) {
                let polled = lock(writer).poll_pass(cx, pipe, self.wait);
                match polled {
                    Poll::Ready(Ok(n)) => self.entity += n as u64,
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(RelayError::Write(e))),
                    Poll::Pending => {
                        body.drive(cx);
                        return Poll::Pending;
                    }
                }
            }
            let Left::Exact(left) = &mut self.left else { return Poll::Ready(Ok(())) };
            if *left < splice::WORTH || !lock(writer).passes() {
                break;
            }
            if self.pipe.is_none() {
                self.pipe = Pipe::take();
            }
            let Some(pipe) = &mut self.pipe else { break };
            match body.poll_pass(cx, &mut |socket, most| pipe.fill(socket, most)) {
                Poll::Ready(Ok(0)) => break,
                // The declared length is where the stream ends, and is the one that is sent.
                Poll::Ready(Ok(n)) => *left = left.saturating_sub(n as u64),
                Poll::Ready(Err(e)) => return Poll::Ready(Err(RelayError::Body(e))),
                Poll::Pending => {
                    // Others can use it meanwhile.
                    self.pipe = None;
                    return self.starve(cx, writer);
                }
            }
        }
        self.pipe = None;
        Poll::Ready(Ok(()))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        writer: &mut Writer,
        body: &mut Body,
    ) -> Poll<io::Result<()>> {
        let head = &self.head[self.sent..];
        let data = &body.buffered()[self.kept..];
        let data = &data[..self.data.min(data.len())];
        let n = if data.is_empty() && self.tail.is_empty() {
            ready!(writer.poll_write(cx, &[IoSlice::new(head)], self.wait))?
        } else if head.is_empty() && self.tail.is_empty() {
            ready!(writer.poll_write(cx, &[IoSlice::new(data)], self.wait))?
        } else {
            let parts = [IoSlice::new(head), IoSlice::new(data), IoSlice::new(self.tail)];
            ready!(writer.poll_write(cx, &parts, self.wait))?
        };
        self.begun = true;
        let of_head = n.min(head.len());
        let of_data = (n - of_head).min(data.len());
        self.sent += of_head;
        self.data -= of_data;
        self.tail = &self.tail[n - of_head - of_data..];
        match self.keep {
            true => self.kept += of_data,
            false => body.consume(of_data),
        }
        Poll::Ready(Ok(()))
    }

    /// Puts what the body has into the next frame.
    fn frame(&mut self, body: &mut Body) -> Result<(), BodyError> {
        const LENGTH: BodyError = BodyError::Malformed("its length is not the declared one");
        let n = body.buffered().len();
        let complete = body.is_complete();
        self.entity += n as u64;
        match &mut self.left {
            Left::Nothing => self.framed = true,
            Left::Exact(left) => {
                *left = left.checked_sub(n as u64).ok_or(LENGTH)?;
                if complete && *left > 0 {
                    return Err(LENGTH);
                }
                self.data = n;
                self.framed = complete;
            }
            Left::Chunked if n == 0 => {
                self.tail = if complete { b"0\r\n\r\n" } else { b"" };
                self.framed = complete;
            }
            Left::Chunked => {
                hexadecimal(&mut self.head, n);
                self.head.extend_from_slice(b"\r\n");
                self.data = n;
                self.tail = if complete { b"\r\n0\r\n\r\n" } else { b"\r\n" };
                self.framed = complete;
            }
            Left::UntilClose => {
                self.data = n;
                self.framed = complete;
            }
        }
        if self.sent < self.head.len() && self.data <= COPY {
            self.head.extend_from_slice(&body.buffered()[..self.data]);
            body.consume(std::mem::take(&mut self.data));
            self.head.extend_from_slice(std::mem::take(&mut self.tail));
        }
        Ok(())
    }
}

/// A request that is still being sent while its response is relayed.
pub(crate) struct Upload {
    pub(crate) outgoing: Outgoing,
    pub(crate) body: Body,
}

impl Upload {
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        writer: &Mutex<Writer>,
    ) -> Poll<Result<(), RelayError>> {
        self.outgoing.poll(cx, writer, &mut self.body)
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let mut head = std::mem::take(&mut self.head);
        if head.capacity() == 0 || head.capacity() > 4 * COPY {
            return;
        }
        head.clear();
        // Fails only while the thread ends.
        let _ = SCRATCH.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < 64 {
                free.push(head);
            }
        });
    }
}

thread_local! {
    static SCRATCH: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

fn scratch() -> Vec<u8> {
    let free = SCRATCH.try_with(|free| free.borrow_mut().pop()).ok().flatten();
    free.unwrap_or_else(|| Vec::with_capacity(2 * COPY))
}
