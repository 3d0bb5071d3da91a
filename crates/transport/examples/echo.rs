//! An echo backend, for measuring: `echo LISTEN`, one worker. The response is the request body.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use busbar_transport::{ConnectionInfo, Handler, Request, Response, Server, ServerLimits, Workers};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Echo;

impl Handler for Echo {
    async fn handle(&self, request: Request, _: &ConnectionInfo) -> Response {
        let content_type = request.head.headers.get_bytes("content-type").unwrap_or(b"text/plain").to_vec();
        Response::new(200, request.body).with("Content-Type", content_type)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen: SocketAddr = std::env::args().nth(1).ok_or("LISTEN missing")?.parse()?;
    let workers = Workers::start(1)?;
    let server = Server::bind(listen, None, ServerLimits::default())?;
    server.serve(&workers, Arc::new(Echo))?;
    println!("echo {}", server.local_addr());
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
