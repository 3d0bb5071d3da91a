//! A file as a body that is read as it is used.

use crate::places;
use message::{BodyError, BodyStream};
use std::any::Any;
use std::fs::File;
use std::future::Future;
use std::io::{self, ErrorKind, Read};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// How much is read at a time, in bytes.
const CHUNK: usize = 128 << 10;

type Reading = Pin<Box<dyn Future<Output = io::Result<(File, Vec<u8>)>> + Send>>;

/// A file as a body: as long as the file was when it was opened.
pub struct FileBody {
    buffer: Vec<u8>,
    /// Where that begins which was not consumed.
    start: usize,
    length: u64,
    left: u64,
    state: State,
}

enum State {
    Idle(File),
    // Never locked: it makes the whole `Sync`.
    Reading(Mutex<Reading>),
    Done,
}

impl FileBody {
    /// The body of an open file with this many bytes.
    pub fn new(file: File, length: u64) -> FileBody {
        FileBody { buffer: Vec::new(), start: 0, length, left: length, state: State::Idle(file) }
    }
}

async fn read(file: File, most: usize) -> io::Result<(File, Vec<u8>)> {
    let read = places::run(move || {
        let mut bytes = vec![0; most];
        let mut file = file;
        let mut count = 0;
        while count < most {
            match file.read(&mut bytes[count..]) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(count);
        Ok((file, bytes))
    });
    read.await.unwrap_or_else(|why| Err(why.into()))
}

impl BodyStream for FileBody {
    fn buffered(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        loop {
            match &mut self.state {
                State::Done => return Poll::Ready(Ok(false)),
                State::Idle(_) if self.left == 0 => self.state = State::Done,
                State::Idle(_) => {
                    let most = usize::try_from(self.left).unwrap_or(CHUNK).min(CHUNK);
                    if let State::Idle(file) = std::mem::replace(&mut self.state, State::Done) {
                        self.state = State::Reading(Mutex::new(Box::pin(read(file, most))));
                    }
                }
                State::Reading(reading) => {
                    let reading = reading.get_mut().unwrap_or_else(PoisonError::into_inner);
                    let (file, bytes) = match reading.as_mut().poll(cx) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Ok(read)) => read,
                        Poll::Ready(Err(error)) => {
                            self.state = State::Done;
                            return Poll::Ready(Err(BodyError::Io(Arc::new(error))));
                        }
                    };
                    if bytes.is_empty() {
                        self.state = State::Done;
                        return Poll::Ready(Err(BodyError::Truncated));
                    }
                    self.left -= bytes.len() as u64;
                    self.state = State::Idle(file);
                    if self.start == self.buffer.len() {
                        self.buffer = bytes;
                    } else {
                        self.buffer.drain(..self.start);
                        self.buffer.extend_from_slice(&bytes);
                    }
                    self.start = 0;
                    return Poll::Ready(Ok(true));
                }
            }
        }
    }

    fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.buffer.len());
    }

    fn storage(&self) -> usize {
        self.buffer.capacity()
    }

    fn take(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.drain(..std::mem::take(&mut self.start));
        bytes
    }

    fn is_complete(&self) -> bool {
        self.left == 0
    }

    fn exact_len(&self) -> Option<u64> {
        Some(self.length)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}
