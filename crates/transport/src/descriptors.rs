//! File descriptors: as many as the system gives, and some kept back.
//!
//! Connections to backends stop first, then connections from clients, so that a client still gets to hear that the bus is
//! short, and files (spilled bodies, logs, a reload) can still be opened.

use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::counted::Counted;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the number of descriptors that this process may open to what the system allows at most, and returns that.
/// To be called before the first connection.
///
/// # Errors
/// The system refuses; the old limit stays.
pub fn raise_descriptor_limit() -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum)
}

/// Sockets of connections, and ends of pipes between them.
static IN_USE: AtomicUsize = AtomicUsize::new(0);
static BUDGET: LazyLock<Budget> = LazyLock::new(Budget::read);

struct Budget {
    /// Sockets beyond which no backend is connected to.
    backends: usize,
    /// Sockets beyond which no client is accepted.
    clients: usize,
}

impl Budget {
    fn read() -> Budget {
        let limit = getrlimit(Resource::Nofile).current;
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        // Listeners, event loops, logs and what was inherited.
        let open = std::fs::read_dir("/proc/self/fd").map_or(64, |entries| entries.count());
        Budget::of(limit, open)
    }

    fn of(limit: usize, open: usize) -> Budget {
        let free = limit.saturating_sub(open);
        let kept = (free / 16).clamp(8, 256).min(free / 4);
        Budget { backends: free - 2 * kept, clients: free - kept }
    }
}

/// A socket that is counted as long as this lives.
pub(crate) struct Descriptor {
    _counted: Counted,
}

impl Descriptor {
    /// For a connection to a backend.
    pub(crate) fn for_backend() -> Option<Descriptor> {
        Descriptor::below(BUDGET.backends)
    }

    /// For the two ends of a pipe, which nothing depends on: only while there are many left.
    pub(crate) fn for_pipe() -> Option<[Descriptor; 2]> {
        let end = || Descriptor::below(BUDGET.backends / 2);
        Some([end()?, end()?])
    }

    /// For a connection from a client that was accepted already.
    pub(crate) fn of_client() -> Descriptor {
        Descriptor { _counted: Counted::another(&IN_USE) }
    }

    fn below(most: usize) -> Option<Descriptor> {
        Some(Descriptor { _counted: Counted::below(&IN_USE, most)? })
    }
}

/// Whether another client may be accepted.
pub(crate) fn may_accept() -> bool {
    IN_USE.load(Relaxed) < BUDGET.clients
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_is_kept_back_whatever_the_limit() {
        for (limit, open) in
            [(0, 10), (20, 10), (64, 20), (256, 20), (1024, 20), (1 << 20, 20), (usize::MAX, 20)]
        {
            let Budget { backends, clients } = Budget::of(limit, open);
            let free = limit.saturating_sub(open);
            assert!(backends <= clients && clients <= free, "{limit}");
            assert!(free < 8 || (backends > 0 && backends < clients && clients < free), "{limit}");
        }
    }
}
