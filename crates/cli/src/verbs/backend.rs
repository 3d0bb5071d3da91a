//! `busbar backend`: the embedded backend alone.

use bench::backend::{Backend, Mode};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use transport::{Server, ServerLimits, Workers};

/// How long requests in flight may take once the backend is told to end.
const DRAIN: Duration = Duration::from_secs(5);

/// Runs the embedded backend alone: echo and the stock quote service.
#[derive(clap::Args)]
pub struct Args {
    /// The address to listen on; port 0 picks a free port.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9000")]
    listen: SocketAddr,
    /// The services to offer: echo (with orders and append) and stockquote.
    #[arg(long, value_name = "MODE,…", value_delimiter = ',', default_value = "echo,stockquote")]
    mode: Vec<Mode>,
    /// Milliseconds that every answer takes at least.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    delay: u64,
    /// Worker threads; without it, one for each core.
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    match serve(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("busbar backend: {}: {error}", args.listen);
            ExitCode::FAILURE
        }
    }
}

fn serve(args: &Args) -> io::Result<()> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let workers = Workers::start(args.workers.unwrap_or_else(cores))?;
    let server = Server::bind(args.listen, None, ServerLimits::default())?;
    let backend = Backend::new(args.mode.clone(), Duration::from_millis(args.delay));
    server.serve(&workers, Arc::new(backend))?;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // listening before anybody is told: whoever reads the line may send a signal at once
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let modes: Vec<&str> = args.mode.iter().map(|mode| mode.name()).collect();
        println!("busbar backend ready http={} mode={}", server.local_addr(), modes.join(","));
        io::stdout().flush()?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        // a second signal ends at once
        tokio::select! {
            _ = server.drain(DRAIN) => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}
