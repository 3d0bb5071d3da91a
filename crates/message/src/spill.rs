//! Bodies that are too large to be held in memory, in temporary files: they can be passed on, as often as need be, but not
//! read by a flow.
//!
//! A file has no name any more as soon as it is open, so that it is gone when its last reader is, whatever happens to the
//! process.

use crate::body::{BodyError, BodyStream};
use std::any::Any;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// How much of a file is read at a time, in bytes.
const CHUNK: usize = 64 * 1024;

/// Where bodies spill to, and how much of them.
#[derive(Debug)]
pub struct Spill {
    /// The directory of the files.
    pub directory: PathBuf,
    /// Largest body, in bytes.
    pub most: u64,
    /// Most bytes in all files together.
    pub total: u64,
    used: AtomicU64,
}

impl Spill {
    /// Bodies of at most `most` bytes, `total` bytes together, go to files in `directory`.
    pub fn new(directory: PathBuf, most: u64, total: u64) -> Spill {
        Spill { directory, most, total, used: AtomicU64::new(0) }
    }

    /// Bytes in files now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Why a body cannot go to a file.
    pub(crate) fn unusable(&self, why: &io::Error) -> Unspilled {
        let directory = self.directory.display();
        let message =
            format!("the body is too large to be held, and a file in {directory} cannot be written: {why}");
        Unspilled::NoRoom(message)
    }

    /// An empty file.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn begin(self: &Arc<Spill>) -> io::Result<Spilled> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.join(format!("busbar-{}-{number}.body", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(Spilled { file, length: 0, spill: Arc::clone(self) })
    }
}

/// Why a body does not go to a file.
#[derive(Debug)]
pub(crate) enum Unspilled {
    /// It is larger than one may be.
    TooLarge(String),
    /// There is no room, or no such directory.
    NoRoom(String),
}

/// A body in a file.
pub(crate) struct Spilled {
    file: File,
    length: u64,
    spill: Arc<Spill>,
}

impl Spilled {
    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Adds bytes at the end.
    ///
    /// # Errors
    /// `TooLarge`: the body is larger than one may be. `NoRoom`: others have the room, or the file cannot be written.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Unspilled> {
        let added = bytes.len() as u64;
        if self.length + added > self.spill.most {
            let message =
                format!("the body is larger than the {} bytes that may go to a file", self.spill.most);
            return Err(Unspilled::TooLarge(message));
        }
        let before = self.spill.used.fetch_add(added, Ordering::Relaxed);
        self.length += added;
        if before + added > self.spill.total {
            let message = format!(
                "the files of large bodies have their {} bytes (spill_total) already",
                self.spill.total
            );
            return Err(Unspilled::NoRoom(message));
        }
        self.file.write_all(bytes).map_err(|why| self.spill.unusable(&why))
    }

    /// A reader from the beginning; each has a place of its own.
    pub fn reader(self: &Arc<Spilled>) -> Box<dyn BodyStream> {
        Box::new(Reader { spilled: Arc::clone(self), read: 0, buffer: Vec::new(), done: 0 })
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        self.spill.used.fetch_sub(self.length, Ordering::Relaxed);
    }
}

impl fmt::Debug for Spilled {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Spilled({} bytes)", self.length)
    }
}

/// Reads a body back. The file is local and was just written, so that a read does not wait.
struct Reader {
    spilled: Arc<Spilled>,
    /// Bytes read of the file.
    read: u64,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were consumed.
    done: usize,
}

impl BodyStream for Reader {
    fn buffered(&self) -> &[u8] {
        self.buffer.get(self.done..).unwrap_or_default()
    }

    fn poll_more(&mut self, _: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        if self.is_complete() {
            return Poll::Ready(Ok(false));
        }
        self.buffer.drain(..self.done);
        self.done = 0;
        let left = usize::try_from(self.spilled.length - self.read).unwrap_or(usize::MAX);
        let start = self.buffer.len();
        self.buffer.resize(start + left.min(CHUNK), 0);
        Poll::Ready(match self.spilled.file.read_at(&mut self.buffer[start..], self.read) {
            Ok(0) => Err(BodyError::Truncated),
            Ok(count) => {
                self.buffer.truncate(start + count);
                self.read += count as u64;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        })
    }

    fn consume(&mut self, n: usize) {
        self.done = (self.done + n).min(self.buffer.len());
    }

    fn is_complete(&self) -> bool {
        self.read >= self.spilled.length
    }

    fn exact_len(&self) -> Option<u64> {
        Some(self.spilled.length)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use crate::payload::{Payload, PayloadError, PayloadLimits, Reading};
    use crate::{Format, Kind};
    use std::future::Future;
    use std::task::Waker;

    /// The result of something that does not wait.
    fn now<T>(future: impl Future<Output = T>) -> T {
        let mut context = Context::from_waker(Waker::noop());
        match std::pin::pin!(future).poll(&mut context) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it waits"),
        }
    }

    /// A body that arrives in pieces.
    struct Pieces {
        bytes: Vec<u8>,
        arrived: usize,
        taken: usize,
        declared: bool,
        breaks: bool,
    }

    impl BodyStream for Pieces {
        fn buffered(&self) -> &[u8] {
            &self.bytes[self.taken..self.arrived]
        }

        fn poll_more(&mut self, _: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
            if self.breaks && self.arrived > self.bytes.len() / 2 {
                return Poll::Ready(Err(BodyError::Truncated));
            }
            let before = self.arrived;
            self.arrived = (self.arrived + 10_007).min(self.bytes.len());
            Poll::Ready(Ok(self.arrived > before))
        }

        fn consume(&mut self, n: usize) {
            self.taken += n;
        }

        fn is_complete(&self) -> bool {
            self.arrived == self.bytes.len()
        }

        fn exact_len(&self) -> Option<u64> {
            self.declared.then_some(self.bytes.len() as u64)
        }

        fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
            self
        }
    }

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 31 % 251) as u8).collect()
    }

    fn arriving(length: usize, declared: bool, breaks: bool) -> Payload {
        let stream = Pieces { bytes: bytes(length), arrived: 0, taken: 0, declared, breaks };
        Payload::received(Body::Stream(Box::new(stream)), Reading { kind: Kind::Json, ..Reading::XML })
    }

    fn limits(most: u64, total: u64) -> (PayloadLimits, Arc<Spill>) {
        let spill = Arc::new(Spill::new(std::env::temp_dir(), most, total));
        (PayloadLimits { held: 1000, spill: Some(Arc::clone(&spill)), ..PayloadLimits::default() }, spill)
    }

    #[test]
    fn large_bodies_are_passed_on_from_a_file() {
        for (length, declared, spills) in [
            (999, true, false),
            (1000, false, false),
            (1001, true, true),
            (300_000, false, true),
            (300_000, true, true),
        ] {
            let (limits, spill) = limits(1 << 20, 1 << 20);
            let mut payload = arriving(length, declared, false);
            now(payload.buffer(&limits)).unwrap();
            assert_eq!(spill.used(), if spills { length as u64 } else { 0 }, "{length}");
            assert_eq!(payload.bytes().is_none(), spills, "{length}");
            assert!(!payload.is_unread() && !payload.is_empty() && !payload.is_consumed());
            // Each copy reads all of it, however often, also beside each other.
            let mut copy = payload.copy();
            let (mut one, two) = (payload.take_body(), copy.take_body());
            now(one.more()).unwrap();
            assert_eq!(two.exact_len(), Some(length as u64));
            for body in [two, one, payload.take_body()] {
                assert_eq!(now(body.collect(1 << 20)).unwrap(), bytes(length), "{length}");
            }
            drop(payload);
            assert_eq!(spill.used(), if spills { length as u64 } else { 0 });
            drop(copy);
            assert_eq!(spill.used(), 0);
        }
    }

    #[test]
    fn what_spilled_cannot_be_read() {
        let (limits, _spill) = limits(1 << 20, 1 << 20);
        for kind in [Kind::Json, Kind::Xml, Kind::Text, Kind::Binary, Kind::Form, Kind::Soap11] {
            let mut payload = arriving(5000, false, false);
            now(payload.buffer(&limits)).unwrap();
            let mut payload = Payload::received(payload.take_body(), Reading { kind, ..Reading::XML });
            now(payload.buffer(&limits)).unwrap();
            for error in [payload.envelope(&limits).err(), payload.write(Format::Text, &limits).err()] {
                assert!(matches!(error, Some(PayloadError::TooLarge { .. })), "{kind:?}: {error:?}");
            }
            assert!(kind != Kind::Json || matches!(payload.json(), Err(PayloadError::TooLarge { .. })));
            assert_eq!(now(payload.take_body().collect(1 << 20)).unwrap(), bytes(5000));
        }
    }

    #[test]
    fn files_are_bounded() {
        for (most, total, length, declared, breaks, why) in [
            (4000, 1 << 20, 5000, true, false, "TooLarge"),
            (4000, 1 << 20, 50_000, false, false, "TooLarge"),
            // One that may be so large, where others have the room.
            (1 << 20, 4000, 5000, false, false, "NoRoom"),
            (1 << 20, 1 << 20, 90_000, false, true, "Receiving"),
        ] {
            let (limits, spill) = limits(most, total);
            let error = now(arriving(length, declared, breaks).buffer(&limits)).unwrap_err();
            assert!(format!("{error:?}").starts_with(why) && spill.used() == 0, "{error:?}");
        }
        let spill = Arc::new(Spill::new(PathBuf::from("/no/such/directory"), 1 << 20, 1 << 20));
        let limits = PayloadLimits { held: 1000, spill: Some(spill), ..PayloadLimits::default() };
        let error = now(arriving(5000, true, false).buffer(&limits)).unwrap_err();
        assert!(
            matches!(error, PayloadError::NoRoom { ref message } if message.contains("no/such")),
            "{error:?}"
        );
    }
}
