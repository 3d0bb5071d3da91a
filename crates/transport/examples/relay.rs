//! A bare relay, for measuring: `relay LISTEN TARGET`, one worker, `http://TARGET`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use busbar_transport::{
    Client, ClientLimits, ConnectionInfo, Handler, OutRequest, Request, Response, SendOptions, Server,
    ServerLimits, Target, Workers,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Relay {
    client: Client,
    target: Target,
    options: SendOptions,
}

impl Handler for Relay {
    async fn handle(&self, mut request: Request, _: &ConnectionInfo) -> Response {
        let out = OutRequest {
            method: &request.head.method,
            target: &request.head.target,
            headers: &request.head.headers,
            host: None,
            body: &mut request.body,
        };
        match self.client.send(&self.target, out, &self.options).await {
            Ok(response) => response,
            Err(error) => {
                eprintln!("{error}");
                Response::new(502, format!("{error}\n").into_bytes())
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let listen: SocketAddr = args.next().ok_or("LISTEN missing")?.parse()?;
    let target: SocketAddr = args.next().ok_or("TARGET missing")?.parse()?;
    let workers = Workers::start(1)?;
    let server = Server::bind(listen, None, ServerLimits::default())?;
    let relay = Relay {
        client: Client::new(ClientLimits::default()),
        target: Target::http(&target.ip().to_string(), target.port()),
        options: SendOptions::default(),
    };
    server.serve(&workers, Arc::new(relay))?;
    println!("relay {}", server.local_addr());
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
