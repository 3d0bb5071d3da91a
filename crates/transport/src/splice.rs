//! Long bodies that pass through: the kernel moves them from socket to socket by way of a pipe (splice(2)), and nothing is copied.
//!
//! A pipe is taken when a socket has something and given back once the other socket has taken it, so few of them serve many messages. Where
//! there is none, the bytes go through a buffer as ever.

#![deny(unsafe_op_in_unsafe_fn)]

use std::cell::{Cell, RefCell};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::AtomicUsize;

use crate::counted::Counted;
use crate::descriptors::Descriptor;

/// Whole pieces of this size are moved; what is left behind them is cheaper to copy than to move in two more system calls.
pub(crate) const WORTH: u64 = 64 * 1024;
/// As much as a pipe holds, and is moved at once.
const MOST: usize = 256 * 1024;
/// So many pipes in the process, each with two descriptors. They are short of only where receivers are slow.
const PIPES: usize = 32;
/// So many empty ones are kept for each thread, while it serves clients.
const KEPT: usize = 2;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static FREE: RefCell<Vec<Ends>> = const { RefCell::new(Vec::new()) };
    static CLIENTS: Cell<usize> = const { Cell::new(0) };
}

/// A client that this thread serves: behind the last one no pipe is kept.
pub(crate) struct Served(());

impl Served {
    pub(crate) fn begin() -> Served {
        let _ = CLIENTS.try_with(|clients| clients.set(clients.get() + 1));
        Served(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Both fail only while the thread ends.
        let left = CLIENTS.try_with(|clients| {
            clients.set(clients.get().saturating_sub(1));
            clients.get()
        });
        if left == Ok(0) {
            let _ = FREE.try_with(|free| free.borrow_mut().clear());
        }
    }
}

/// The two ends of a pipe.
struct Ends {
    reader: PipeReader,
    writer: PipeWriter,
    _counted: Counted,
    _places: [Descriptor; 2],
}

impl Ends {
    fn new() -> Option<Ends> {
        let (counted, places) = (Counted::below(&IN_USE, PIPES)?, Descriptor::for_pipe()?);
        let (reader, writer) = io::pipe().ok()?;
        // Where the system refuses it, because its user has many pipes, less is moved at once.
        // SAFETY: the descriptor is open, since its owner is here; the call gets a number and touches no memory of this process.
        #[allow(unsafe_code)]
        let _ = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, MOST as libc::c_int) };
        Some(Ends { reader, writer, _counted: counted, _places: places })
    }
}

/// Bytes on their way from one socket to another.
pub(crate) struct Pipe {
    /// `None` only while it is dropped.
    ends: Option<Ends>,
    held: usize,
}

impl Pipe {
    /// An empty one; `None`: all are in use, or there are no descriptors left.
    pub(crate) fn take() -> Option<Pipe> {
        let free = FREE.try_with(|free| free.borrow_mut().pop()).ok().flatten();
        Some(Pipe { ends: Some(free.or_else(Ends::new)?), held: 0 })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Moves what a socket has received into the pipe, which is empty: at most `most` bytes, as far as those are whole pieces of [`WORTH`]. 0: the peer
    /// sends no more.
    ///
    /// # Errors
    /// Of kind WouldBlock: the socket has nothing.
    pub(crate) fn fill(&mut self, socket: BorrowedFd<'_>, most: u64) -> io::Result<usize> {
        let Some(ends) = &self.ends else { return Ok(0) };
        let most = usize::try_from(most - most % WORTH).unwrap_or(MOST).min(MOST);
        let moved = splice(socket.as_raw_fd(), ends.writer.as_raw_fd(), most)?;
        self.held += moved;
        Ok(moved)
    }

    /// Moves what is in the pipe into a socket; how much that took.
    ///
    /// # Errors
    /// Of kind WouldBlock: the socket takes nothing now.
    pub(crate) fn drain(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let Some(ends) = &self.ends else { return Ok(0) };
        let moved = splice(ends.reader.as_raw_fd(), socket.as_raw_fd(), self.held)?;
        self.held = self.held.saturating_sub(moved);
        Ok(moved)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let Some(ends) = self.ends.take().filter(|_| self.held == 0) else { return };
        let is_serving = CLIENTS.try_with(|clients| clients.get() > 0).unwrap_or(false);
        // Fails only while the thread ends.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if is_serving && free.len() < KEPT {
                free.push(ends);
            }
        });
    }
}

/// Whether bytes cannot be moved here, while the sockets may be as good as ever: not between these two, not by this process (a sandbox), or not
/// for want of memory of the kernel.
pub(crate) fn says_nothing_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, OutOfMemory, PermissionDenied, Unsupported};
    matches!(error.kind(), InvalidInput | OutOfMemory | PermissionDenied | Unsupported)
}

/// A signal for a peer that is gone (SIGPIPE, which no flag of this call prevents) is ignored in every program of Rust.
fn splice(from: i32, to: i32, most: usize) -> io::Result<usize> {
    let flags = libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK;
    let none = std::ptr::null_mut;
    loop {
        // SAFETY: both descriptors are open, since their owners are borrowed by the callers; there are no offsets, and no memory of this process is read or
        // written.
        #[allow(unsafe_code)]
        let moved = unsafe { libc::splice(from, none(), to, none(), most, flags) };
        match usize::try_from(moved) {
            Ok(moved) => return Ok(moved),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        far.set_nonblocking(true).unwrap();
        (near, far)
    }

    #[test]
    fn what_a_sandbox_forbids_is_no_fault_of_the_peer() {
        for (number, is_nothing) in [
            (libc::EINVAL, true),
            (libc::ENOMEM, true),
            (libc::ENOSYS, true),
            (libc::EPERM, true),
            (libc::EACCES, true),
            (libc::EOPNOTSUPP, true),
            (libc::ECONNRESET, false),
            (libc::EPIPE, false),
            (libc::ETIMEDOUT, false),
            (libc::EAGAIN, false),
        ] {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(says_nothing_of_the_peer(&error), is_nothing, "{error}");
        }
    }

    #[test]
    fn bytes_go_from_socket_to_socket_and_a_pipe_that_holds_some_is_not_used_again() {
        let ((mut source, from), (mut sink, into)) = (pair(), pair());
        let client = Served::begin();
        let mut pipe = Pipe::take().unwrap();
        let nothing = pipe.fill(from.as_fd(), u64::MAX).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);

        source.write_all(b"some bytes and more").unwrap();
        while pipe.fill(from.as_fd(), WORTH + 1).is_err() {}
        assert_eq!(pipe.held, 19);
        assert_eq!(pipe.drain(into.as_fd()).unwrap(), 19);
        assert!(pipe.is_empty());
        let mut bytes = [0; 19];
        sink.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"some bytes and more");
        drop(pipe);
        assert_eq!(FREE.with(|free| free.borrow().len()), 1);

        let mut pipe = Pipe::take().unwrap();
        source.write_all(b"some bytes").unwrap();
        while pipe.fill(from.as_fd(), u64::MAX).is_err() {}
        assert_eq!(pipe.held, 10);
        drop(pipe);
        assert_eq!(FREE.with(|free| free.borrow().len()), 0);

        drop(source);
        let mut pipe = Pipe::take().unwrap();
        from.set_nonblocking(false).unwrap();
        assert_eq!(pipe.fill(from.as_fd(), u64::MAX).unwrap(), 0);
        drop(pipe);
        assert_eq!(FREE.with(|free| free.borrow().len()), 1);
        drop(client);
        assert_eq!(FREE.with(|free| free.borrow().len()), 0);
        drop(Pipe::take().unwrap());
        assert_eq!(FREE.with(|free| free.borrow().len()), 0);
    }
}
