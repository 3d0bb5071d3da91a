//! What operators see of a running bus: the admin address, the access log, the log.
//!
//! * [`Admin`] answers `/healthz`, `/readyz`, `/metrics`, `/artifacts`, `/generations` and `/reload` on a thread of its own, off the
//!   workers.
//! * [`access`] writes a line per exchange.
//! * [`logging`] writes a line per event; a failed message is one event.

#![forbid(unsafe_code)]

pub mod access;
mod artifacts;
mod aside;
mod escape;
mod exposition;
mod generations;
mod levels;
mod listener;
pub mod logging;
mod metrics;
mod output;
mod process;
mod queue;
mod routes;
mod time;
mod watching;

pub use aside::aside;
pub use generations::{Deployment, Generation, Generations, NotRolledBack, Refused};
pub use levels::{CATEGORIES, Levels, Logger, Loggers};
pub use output::Output;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::oneshot;

/// What the admin address shows.
pub struct AdminState {
    /// The bus.
    pub bus: Arc<flow::Bus>,
    /// Its listeners, by what they are called (`http`, `https`).
    pub servers: Vec<(&'static str, Arc<transport::Server>)>,
    /// The client that sends to backends.
    pub client: transport::Client,
    /// What `/readyz` says.
    pub readiness: Arc<Readiness>,
    /// The access log, for its counters.
    pub access: Option<access::AccessLog>,
    /// The log, for its counter and its levels.
    pub log: Option<logging::Handle>,
    /// When the process started.
    pub started: Instant,
    /// What reloads the configuration and keeps those before. `None`: the bus has one configuration for ever (501).
    pub deployment: Option<Arc<dyn Deployment>>,
    /// Who may use an address that other machines reach.
    pub credentials: Credentials,
}

/// Who may use the admin address. Without tokens, one that other machines reach says only whether the bus is alive and ready.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// Tokens by the names of who has them; where there are some, they are asked for on every address.
    pub tokens: Option<Arc<authentication::api_key::Keys>>,
    /// Paths that need none, beside `/healthz` and `/readyz`: `/metrics`.
    pub open: Vec<String>,
}

/// How far the process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The listeners do not accept yet.
    Starting,
    /// Every listener accepts.
    Serving,
    /// No new connections; messages in flight finish.
    Draining,
}

/// The [`Phase`] of a process, shared by whoever changes it and the admin address.
#[derive(Debug, Default)]
pub struct Readiness(AtomicU8);

impl Readiness {
    /// [`Phase::Starting`].
    pub fn new() -> Arc<Readiness> {
        Arc::default()
    }

    /// Enters a phase.
    pub fn set(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Relaxed);
    }

    /// The phase now.
    pub fn phase(&self) -> Phase {
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::Starting,
            1 => Phase::Serving,
            _ => Phase::Draining,
        }
    }
}

/// The admin address while it serves. Dropping it ends that at once.
#[derive(Debug)]
pub struct Admin {
    local: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    /// Listens on `address` (port 0 picks a free port) and answers on a thread of its own.
    ///
    /// # Errors
    /// The address cannot be bound: a sentence with the address and the reason.
    pub fn start(address: SocketAddr, state: AdminState) -> io::Result<Admin> {
        let listener = TcpListener::bind(address).map_err(|error| cannot_listen(address, &error))?;
        listener.set_nonblocking(true)?;
        let local = listener.local_addr()?;
        let no_thread = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot start the thread of the admin address: {error}"))
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        let listener = {
            let _entered = runtime.enter();
            listener::Limited::new(tokio::net::TcpListener::from_std(listener)?)
        };
        let router = routes::router(state, local).into_make_service_with_connect_info::<listener::Place>();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("admin".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    // It never ends by itself.
                    _ = axum::serve(listener, router).into_future() => {}
                    _ = stopped => {}
                }
            });
            // Work aside may go on: nobody waits for a reload that the end of the process overtakes.
            runtime.shutdown_background();
        });
        let thread = thread.map_err(no_thread)?;
        Ok(Admin { local, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> io::Error {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => "address in use; choose another with --admin".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "that is not permitted (ports below 1024 need privileges)".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        _ => error.to_string(),
    };
    io::Error::new(error.kind(), format!("cannot listen on the admin address {address}: {why}"))
}
