//! HAProxy: what it can do of the scenarios, one thread, connections kept to both sides.

use super::{Place, RELAYED, System, find, free_port, version, write};
use crate::messages::ROUTE;
use rustix::process::{Resource, getrlimit};
use std::net::SocketAddr;

pub(super) fn start(place: &Place, backend: SocketAddr) -> Result<System, String> {
    let program = find("haproxy").ok_or("haproxy is not installed (apt-get install haproxy)")?;
    let port = free_port()?;
    // It takes two descriptors for each connection and some more, and does not start with fewer.
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let connections = (descriptors.saturating_sub(200) / 2).clamp(100, 16_384);
    let text = format!(
        "global
  nbthread 1
  maxconn {connections}
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 10s
  http-reuse always
listen round
  bind 127.0.0.1:{port} backlog 4096
  acl routed path /services/CBRTransportHeaderProxy
  http-request deny deny_status 500 if routed !{{ req.hdr(routing) -m str \"{ROUTE}\" }}
  acl append path /services/AppendProxy
  http-request set-path /services/EchoService if !append
  http-request set-path /services/AppendService if append
  server backend {backend}
"
    );
    let file = place.work.join("haproxy.cfg");
    write(&file, &text)?;
    let arguments = ["-db", "-f", &file.display().to_string()].map(str::to_owned);
    let mut running = place.start("haproxy", place.system_core, &program, &arguments)?;
    running.listens(port)?;
    let mut system = System::started("HAProxy", version(&program, "-v"), port, running);
    system.scenarios = Some(RELAYED.map(str::to_owned).to_vec());
    Ok(system)
}
