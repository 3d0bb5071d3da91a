//! nginx as a reverse proxy: what it can do of the scenarios, one worker, connections kept to both sides.

use super::{Place, RELAYED, System, find, free_port, version, write};
use crate::messages::ROUTE;
use std::net::SocketAddr;

pub(super) fn start(place: &Place, backend: SocketAddr) -> Result<System, String> {
    let program = find("nginx").ok_or("nginx is not installed (apt-get install nginx)")?;
    let (port, work) = (free_port()?, place.work.display());
    let pass = "proxy_pass http://backend/services/EchoService;";
    // One process does all of it, so that its id is the one that is measured.
    let text = format!(
        "daemon off; master_process off; pid {work}/nginx.pid; error_log {work}/nginx.err;
events {{ worker_connections 16384; }}
http {{
  access_log off;
  client_body_temp_path {work}/nginx-body; proxy_temp_path {work}/nginx-proxy; fastcgi_temp_path {work}/nginx-fastcgi;
  uwsgi_temp_path {work}/nginx-uwsgi; scgi_temp_path {work}/nginx-scgi;
  client_max_body_size 0; client_body_buffer_size 1m; keepalive_requests 100000000;
  proxy_http_version 1.1; proxy_set_header Connection \"\";
  proxy_buffer_size 16k; proxy_buffers 64 16k; proxy_busy_buffers_size 64k;
  upstream backend {{ server {backend}; keepalive 512; keepalive_requests 100000000; }}
  map $http_routing $routed {{ default 0; \"{ROUTE}\" 1; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location = /services/DirectProxy {{ {pass} }}
    location = /services/AppendProxy {{ proxy_pass http://backend/services/AppendService; }}
    location = /services/MessageRelayProxy {{ {pass} }}
    location = /services/CBRTransportHeaderProxy {{ if ($routed = 0) {{ return 500; }} {pass} }}
  }}
}}
"
    );
    let file = place.work.join("nginx.conf");
    write(&file, &text)?;
    let arguments = ["-c", &file.display().to_string(), "-p", &work.to_string()].map(str::to_owned);
    let mut running = place.start("nginx", place.system_core, &program, &arguments)?;
    running.listens(port)?;
    let mut system = System::started("nginx", version(&program, "-v"), port, running);
    system.scenarios = Some(RELAYED.map(str::to_owned).to_vec());
    Ok(system)
}
