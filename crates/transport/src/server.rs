//! Workers and listeners.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::{Handler, ServerLimits, ServerStats, ServerTls};

/// Threads, each with its own single-threaded event loop.
pub struct Workers {
    handles: Vec<tokio::runtime::Handle>,
}

impl Workers {
    /// Starts `count` threads (at least one).
    pub fn start(count: usize) -> io::Result<Workers> {
        let _ = count;
        Ok(Workers { handles: Vec::new() })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.handles.len()
    }

    /// The runtime of each worker, to spawn tasks on.
    pub fn handles(&self) -> &[tokio::runtime::Handle] {
        &self.handles
    }
}

/// A listener.
pub struct Server {
    local: SocketAddr,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were cut because the deadline came.
    pub cut: u64,
}

impl Server {
    /// Binds the address (port 0 picks a free port). Connections wait in the backlog until
    /// [`serve`](Server::serve).
    pub fn bind(addr: SocketAddr, tls: Option<ServerTls>, limits: ServerLimits) -> io::Result<Server> {
        let _ = (tls, limits);
        Ok(Server { local: addr })
    }

    /// The address it is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Accepts on every worker; returns at once.
    pub fn serve<H: Handler>(&self, workers: &Workers, handler: Arc<H>) -> io::Result<()> {
        let _ = (workers, handler);
        Ok(())
    }

    /// Stops accepting, closes idle connections, lets requests in flight finish with `Connection: close`, and cuts
    /// what is still open at the deadline.
    pub async fn drain(&self, deadline: Duration) -> Drained {
        let _ = deadline;
        Drained { cut: 0 }
    }

    /// Counters of all workers together.
    pub fn stats(&self) -> ServerStats {
        ServerStats::default()
    }
}
