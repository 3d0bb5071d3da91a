//! The listeners of inbound endpoints.
//!
//! A listener belongs to a port. A reload opens those that are new before its plan comes into force, so that one that cannot be opened is
//! known as faulty by then; their clients wait until it is. Those that nobody has any more end when the requests that they took have ended.

use crate::settings::{Settings, set};
use config::{Configuration, Scheme};
use diagnostics::{Diagnostic, Severity};
use flow::inbound::{Through, Tls};
use flow::{Bus, Plan, lock};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transport::{Server, ServerLimits, ServerTls, ServerTlsOptions, TlsRules, Workers};

/// Longest wait for a port that was just closed.
const GIVEN_UP: Duration = Duration::from_secs(2);

/// See the module.
pub struct Listeners {
    workers: Arc<Workers>,
    /// The address of all of them: that of the http listener.
    host: IpAddr,
    /// The address of the admin, which is bound last.
    admin: SocketAddr,
    open: Mutex<HashMap<u16, Open>>,
}

struct Open {
    server: Arc<Server>,
    /// The certificate that its endpoint asks for.
    tls: Option<Tls>,
    /// Only WebSockets are opened there.
    websocket: bool,
}

/// Listeners of a plan that is not in force yet.
#[derive(Default)]
pub struct Prepared {
    opened: Vec<(u16, Open)>,
    /// Certificates of those that go on.
    renewed: Vec<(u16, Tls, ServerTls)>,
}

impl Listeners {
    /// None is open yet.
    pub fn new(workers: Arc<Workers>, host: IpAddr, admin: SocketAddr) -> Listeners {
        Listeners { workers, host, admin, open: Mutex::default() }
    }

    /// Opens the listeners that a plan has and the one in force has not. An endpoint that cannot listen is left out of the plan; one
    /// that listens and whose certificate has become unusable keeps the certificate that it has.
    pub fn prepare(&self, plan: &mut Plan, settings: &Settings) -> Prepared {
        let mut prepared = Prepared::default();
        for endpoint in plan.inbound_endpoints().to_vec() {
            let Some(port) = endpoint.port else { continue };
            let http2 = speaks_http2(endpoint.websocket, settings);
            let read = endpoint.tls.as_ref().map(|tls| certificate(tls, http2, settings));
            let tls = match read.transpose() {
                Err(why) if self.has(port, endpoint.tls.as_ref()) => {
                    plan.hold_inbound(port, &format!("{why}; it keeps the certificate that it has"));
                    continue;
                }
                read => read.map(|read| read.zip(endpoint.tls.clone())),
            };
            if let Ok(Some((read, tls))) = &tls {
                warn_of_endpoint(tls, read);
            }
            let opened =
                tls.and_then(|tls| self.listener(port, tls, endpoint.websocket, settings, &mut prepared));
            if let Err(why) = opened {
                plan.leave_out_inbound(port, &why);
            }
        }
        prepared
    }

    /// Leaves the endpoints out of a plan whose ports somebody else has, or whose new certificates cannot be used, so that the versions
    /// before stay in force.
    pub fn leave_out_unable(&self, plan: &mut Plan, settings: &Settings) {
        for endpoint in plan.inbound_endpoints().to_vec() {
            let Some(port) = endpoint.port else { continue };
            let address = SocketAddr::new(self.host, port);
            let is_open = lock(&self.open).contains_key(&port);
            let http2 = speaks_http2(endpoint.websocket, settings);
            let bound = || Server::bind(address, None, server_limits(settings)).map(drop);
            let read =
                endpoint.tls.as_ref().map_or(Ok(()), |tls| certificate(tls, http2, settings).map(drop));
            let usable = match read {
                // See `prepare`.
                Err(_) if self.has(port, endpoint.tls.as_ref()) => Ok(()),
                Ok(()) if !is_open => bound().map_err(|error| cannot_listen(address, &error)),
                usable => usable,
            };
            if let Err(why) = usable {
                plan.leave_out_inbound(port, &why);
            }
        }
    }

    /// Whether a port listens with the certificate that is asked for.
    fn has(&self, port: u16, tls: Option<&Tls>) -> bool {
        lock(&self.open).get(&port).is_some_and(|open| open.tls.as_ref() == tls)
    }

    fn listener(
        &self,
        port: u16,
        tls: Option<(ServerTls, Tls)>,
        websocket: bool,
        settings: &Settings,
        prepared: &mut Prepared,
    ) -> Result<(), String> {
        let address = SocketAddr::new(self.host, port);
        let hosts = [self.host, self.admin.ip()];
        if port == self.admin.port() && (hosts[0] == hosts[1] || hosts.iter().any(IpAddr::is_unspecified)) {
            return Err(format!("cannot listen on {address}: it is the admin address"));
        }
        let given_up = {
            let mut open = lock(&self.open);
            match open.get(&port) {
                Some(listener)
                    if listener.tls.is_some() == tls.is_some() && listener.websocket == websocket =>
                {
                    prepared.renewed.extend(tls.map(|(read, tls)| (port, tls, read)));
                    return Ok(());
                }
                Some(_) => open.remove(&port),
                None => None,
            }
        };
        let until = std::time::Instant::now() + GIVEN_UP;
        if let Some(listener) = &given_up {
            self.end(listener);
        }
        let (read, tls) = tls.unzip();
        let limits = limits_of(websocket, settings);
        let server = loop {
            match Server::bind(address, read.clone(), limits.clone()) {
                Ok(server) => break server,
                // Its sockets close when the workers get to it.
                Err(error)
                    if given_up.is_some()
                        && error.kind() == ErrorKind::AddrInUse
                        && std::time::Instant::now() < until =>
                {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) => return Err(cannot_listen(address, &error)),
            }
        };
        prepared.opened.push((port, Open { server: Arc::new(server), tls, websocket }));
        Ok(())
    }

    /// The plan is in force: what was opened for it serves, and what it has not ends.
    pub fn follow(&self, prepared: Prepared, bus: &Arc<Bus>) {
        let mut open = lock(&self.open);
        for (port, tls, read) in prepared.renewed {
            if let Some(listener) = open.get_mut(&port) {
                listener.server.set_tls(read);
                listener.tls = Some(tls);
            }
        }
        for (port, listener) in prepared.opened {
            let through = Through { bus: Arc::clone(bus), port };
            match listener.server.serve(&self.workers, Arc::new(through)) {
                Ok(()) => _ = open.insert(port, listener),
                Err(error) => {
                    tracing::error!(target: "busbar::reload", "cannot accept on port {port}: {error}")
                }
            }
        }
        let plan = bus.plan();
        let ports: Vec<u16> = plan.inbound_endpoints().iter().filter_map(|endpoint| endpoint.port).collect();
        open.retain(|port, listener| {
            let goes_on = ports.contains(port);
            if !goes_on {
                self.end(listener);
            }
            goes_on
        });
    }

    /// All open listeners.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        lock(&self.open).values().map(|listener| Arc::clone(&listener.server)).collect()
    }

    /// Applies new settings.
    pub fn set_limits(&self, settings: &Settings) {
        for listener in lock(&self.open).values() {
            listener.server.set_limits(limits_of(listener.websocket, settings));
        }
    }

    /// Stops accepting, and lets the requests that were taken end, however long that takes.
    fn end(&self, listener: &Open) {
        let server = Arc::clone(&listener.server);
        if let Some(worker) = self.workers.handles().first() {
            // Not the work of a message: it waits for connections.
            worker.spawn(async move { server.drain(Duration::from_secs(3600)).await });
        }
    }
}

/// The certificates of inbound endpoints that cannot be used: a finding for each endpoint.
pub fn unusable_certificates(plan: &Plan) -> Vec<Diagnostic> {
    let read = plan.inbound_endpoints().iter().filter_map(|endpoint| match &endpoint.tls {
        Some(Tls::Own(options)) => Some((endpoint, ServerTls::new(options).map_err(|why| why.to_string()))),
        Some(Tls::Stores(stores)) => Some((endpoint, crate::certificate::of_stores(stores, true))),
        _ => None,
    });
    let now = jiff::Timestamp::now();
    let found = read.filter_map(|(endpoint, read)| match read {
        Ok(tls) => {
            let why = crate::certificate::remark(&tls, now)?;
            let message = format!("the inbound endpoint `{}`: {why}", endpoint.name);
            Some(Diagnostic::warning("certificate-expires", message).at(endpoint.span, "renew it"))
        }
        Err(why) => {
            let message = format!("the inbound endpoint `{}` cannot listen: {why}", endpoint.name);
            Some(Diagnostic::error("unusable-certificate", message).at(endpoint.span, "this one is left out"))
        }
    });
    found.collect()
}

/// What is offered on https only, though nothing listens on https: a finding for each proxy service and resource.
///
/// `is_certain`: it is known that nothing will; else it depends on how the bus is started, and is a note.
pub fn only_on_https(configuration: &Configuration, is_certain: bool) -> Vec<Diagnostic> {
    let listens = |protocol: &str| ["https", "wss", "httpswss"].contains(&protocol);
    if configuration
        .inbound_endpoints
        .iter()
        .any(|endpoint| endpoint.protocol.as_ref().is_some_and(|p| listens(&p.value)))
    {
        return Vec::new();
    }
    let severity = if is_certain { Severity::Warning } else { Severity::Note };
    let finding = |what: &str, place| {
        Diagnostic::new("https-is-off", severity, format!("no request reaches {what}: https is off"))
            .at(place, "offered on https only")
            .help("name a certificate under [tls] in busbar.toml, or start the bus with --https ADDRESS")
    };
    let others = ["http", "ws", "local", "vfs"];
    let proxies = configuration.proxies.iter().filter(|proxy| {
        proxy.transports.contains("https") && !others.iter().any(|other| proxy.transports.contains(other))
    });
    let mut found: Vec<Diagnostic> = proxies
        .map(|proxy| finding(&format!("the proxy service `{}`", proxy.name.value), proxy.name.span))
        .collect();
    for api in configuration.apis.iter() {
        if api.transports == [Scheme::Https] {
            found.push(finding(&format!("the API `{}`", api.name.value), api.name.span));
            continue;
        }
        let secured = api.resources.iter().filter(|resource| resource.protocol == Some(Scheme::Https));
        found.extend(secured.map(|resource| {
            finding(
                &format!("a resource of the API `{}`", api.name.value),
                resource.span.part(0, "<resource".len()),
            )
        }));
    }
    found
}

/// Logs that clients refuse the certificate of a listener, or will soon. That of the bus is reported where it is read for the https listener.
fn warn_of_endpoint(tls: &Tls, read: &ServerTls) {
    let file = match tls {
        Tls::OfBus => return,
        Tls::Stores(stores) => stores.keys.files.first().map_or(Path::new(""), PathBuf::as_path),
        Tls::Own(options) => &options.certificates,
    };
    warn_of_expiry(&format!("the https inbound endpoint of {}", file.display()), read);
}

/// Logs that clients refuse a certificate, or will soon.
pub fn warn_of_expiry(who: &str, tls: &ServerTls) {
    if let Some(why) = crate::certificate::remark(tls, jiff::Timestamp::now()) {
        tracing::warn!(target: "busbar::certificate", "{who}: {why}");
    }
}

/// Whether HTTP/2 is spoken on the port of an endpoint. Not where only WebSockets are opened: a client that is offered both would choose
/// the one that opens none (RFC 8441 is not spoken).
fn speaks_http2(websocket: bool, settings: &Settings) -> bool {
    settings.http.http2 && !websocket
}

fn limits_of(websocket: bool, settings: &Settings) -> ServerLimits {
    ServerLimits { http2: speaks_http2(websocket, settings), ..server_limits(settings) }
}

/// Reads the certificate of an inbound endpoint.
fn certificate(tls: &Tls, http2: bool, settings: &Settings) -> Result<ServerTls, String> {
    match tls {
        Tls::OfBus => server_tls(settings, http2),
        Tls::Stores(stores) => crate::certificate::of_stores(stores, http2),
        Tls::Own(options) => {
            let options = ServerTlsOptions { http1_only: !http2, ..options.clone() };
            ServerTls::new(&options).map_err(|error| error.to_string())
        }
    }
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> String {
    let why = match error.kind() {
        ErrorKind::AddrInUse => "address in use".to_owned(),
        ErrorKind::PermissionDenied => "permission denied (ports below 1024 need privileges)".to_owned(),
        _ => error.to_string(),
    };
    format!("cannot listen on {address}: {why}")
}

/// The limits of listeners.
pub fn server_limits(settings: &Settings) -> ServerLimits {
    let limits = &settings.limits;
    let mut server = ServerLimits::default();
    set(&mut server.head_size, limits.head_size.map(|size| size.0));
    set(&mut server.header_count, limits.header_count);
    set(&mut server.target_size, limits.target_size.map(|size| size.0));
    set(&mut server.io_buffer_size, limits.io_buffer_size.map(|size| size.0));
    set(&mut server.connections, limits.connections);
    set(&mut server.connections_per_address, limits.connections_per_address);
    set(&mut server.idle, limits.idle.map(|time| time.0));
    set(&mut server.head, limits.head.map(|time| time.0));
    set(&mut server.body, limits.body_pause.map(|time| time.0));
    set(&mut server.write, limits.write.map(|time| time.0));
    server.keep_alive = settings.http.keep_alive;
    server.half_close = settings.http.half_close;
    server.http2 = settings.http.http2;
    set(&mut server.websocket_idle, limits.websocket_idle.map(|time| time.0));
    set(&mut server.streams, limits.streams.map(|most| most.max(1)));
    server
}

/// Certificate and key of the https listener; whether it offers HTTP/2.
///
/// # Errors
/// They cannot be read.
pub fn server_tls(settings: &Settings, http2: bool) -> Result<ServerTls, String> {
    use transport::ClientVerify;
    let tls = &settings.tls;
    let (certificates, key) = match (&tls.certificate, &tls.key) {
        (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
        (None, None) => return crate::certificate::self_signed(http2),
        _ => return Err("tls: certificate and key go together".to_owned()),
    };
    let client_verify = match tls.client_verify.as_deref() {
        None | Some("none") => ClientVerify::None,
        Some("optional") => ClientVerify::Optional,
        Some("require") => ClientVerify::Require,
        Some(other) => {
            return Err(format!("tls.client_verify: `{other}`; expected none, optional or require"));
        }
    };
    let http1_only = !http2;
    let options = ServerTlsOptions {
        certificates,
        key,
        client_roots: tls.client_roots.clone(),
        client_verify,
        http1_only,
        more: tls.hosts.iter().map(|host| (host.certificate.clone(), host.key.clone())).collect(),
        rules: TlsRules {
            versions: tls.versions.clone(),
            ciphers: tls.ciphers.clone(),
            revoked: tls.revoked.clone(),
            ocsp: settings.asked(tls.ocsp)?,
        },
        ocsp_response: tls.ocsp_response.clone(),
    };
    ServerTls::new(&options).map_err(|error| error.to_string())
}
