//! Starts a bus: loads and compiles the configuration, opens the listeners, waits for signals.

use crate::generations::Cause;
use crate::listeners::{Listeners, server_limits, server_tls, warn_of_expiry};
use crate::load::Loaded;
use crate::reload::{Reloader, look, read, report};
use crate::settings::{Dialect, Profile, Settings, set};
use crate::snapshot::Snapshot;
use crate::switches::Switches;
use crate::watch::Watch;
use admin::access::AccessLog;
use admin::logging::{Format, Logging};
use admin::{Admin, AdminState, Levels, Output, Phase, Readiness};
use flow::services::{Routes, Shared, TlsProfiles};
use flow::{Bus, Services};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use transport::{
    Client, ClientLimits, ClientTls, ClientTlsOptions, HostNames, Roots, Server, ServerTls, TlsRules, Workers,
};

/// Default addresses.
const HTTP: &str = "127.0.0.1:8280";
const HTTPS: &str = "127.0.0.1:8243";
const ADMIN: &str = "127.0.0.1:9164";

/// How often aggregates are looked through for those that have waited too long (`limits.aggregate_time`).
const SWEEP: Duration = Duration::from_secs(10);

/// How often the configuration is looked at where the system does not tell of changes.
const INTERVAL: Duration = Duration::from_secs(5);

/// How long the configuration must stay unchanged before its changes are read.
const QUIET: Duration = Duration::from_millis(500);

/// How long a stop waits for the work of messages: service managers kill after 30 s, and what is given up has to be logged.
const DRAIN: Duration = Duration::from_secs(25);
/// How long flows that were cut then have to clean up.
const CLEARING: Duration = Duration::from_secs(3);

/// Where a bus listens.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// http; `None`: the default.
    pub http: Option<SocketAddr>,
    /// https; `None`: the default where a certificate is configured, else not at all.
    pub https: Option<SocketAddr>,
    /// The admin address; `None`: the default.
    pub admin: Option<SocketAddr>,
}

impl Addresses {
    fn admin(&self) -> SocketAddr {
        self.admin.unwrap_or(parse(ADMIN))
    }
}

/// What to start.
#[derive(Clone, Debug)]
pub struct Start {
    /// The configuration.
    pub path: PathBuf,
    /// Where to listen.
    pub addresses: Addresses,
    /// Worker threads; one per core by default.
    pub workers: Option<usize>,
    /// Settings.
    pub settings: Settings,
    /// Where these come from, to read them again.
    pub source: Option<Source>,
    /// Refuse to start when an artifact is faulty.
    pub strict: bool,
    /// Services whose messages are traced and logged.
    pub trace: Vec<String>,
}

/// Where settings come from, beside the environment.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file that was named.
    pub file: Option<PathBuf>,
    /// Single settings.
    pub set: Vec<String>,
}

/// A bus that listens.
pub struct Running {
    /// The bus.
    pub bus: Arc<Bus>,
    reloader: Arc<Reloader>,
    /// The http address.
    pub http: SocketAddr,
    /// The https address.
    pub https: Option<SocketAddr>,
    /// What `/readyz` says.
    pub readiness: Arc<Readiness>,
    servers: Vec<(&'static str, Arc<Server>)>,
    access: Option<AccessLog>,
    /// Who may use the admin address.
    credentials: admin::Credentials,
    /// Those of inbound endpoints.
    listeners: Arc<Listeners>,
    /// Ended when this is dropped.
    _workers: Arc<Workers>,
    drain: Duration,
    began: Instant,
}

/// A configuration that was read and does not serve yet.
pub struct Prepared {
    began: Instant,
    services: Arc<Services>,
    seen: Snapshot,
    pub loaded: Loaded,
}

impl Prepared {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Those of `read`; a certificate or a key cannot be read.
    pub fn of(
        start: &Start,
        read: impl FnOnce(&Services) -> Result<Loaded, String>,
    ) -> Result<Prepared, String> {
        let began = Instant::now();
        let services = Arc::new(services(&start.settings)?);
        // Before it is read: what changes meanwhile is read again.
        let seen = look(start);
        let loaded = read(&services)?;
        Ok(Prepared { began, services, seen, loaded })
    }
}

impl Running {
    /// Starts a bus.
    ///
    /// # Errors
    /// The configuration cannot serve, an address cannot be bound, a certificate cannot be read.
    pub fn start(start: &Start) -> Result<Running, String> {
        Running::serve(start, Prepared::of(start, |services| read(start, services, None))?)
    }

    /// Starts a bus with a configuration that was read.
    ///
    /// # Errors
    /// An address cannot be bound, a certificate cannot be read.
    pub fn serve(start: &Start, prepared: Prepared) -> Result<Running, String> {
        let settings = &start.settings;
        let Prepared { began, services, seen, mut loaded } = prepared;
        let credentials = settings.admin.credentials()?;
        let switches = Switches::read(settings.deploy.state.as_deref(), &services.states);
        loaded.plan.generation = 1;
        let seen = seen.with_registry(loaded.good.configuration().registry.directory());
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let workers = Workers::start(start.workers.unwrap_or_else(cores))
            .map_err(|error| format!("cannot start the workers: {error}"))?;
        let workers = Arc::new(workers);
        let access = match settings.log.access.as_deref() {
            None | Some("off" | "") => None,
            Some(pattern) => {
                let to = Output::from(settings.log.access_to.as_deref().unwrap_or("stdout"));
                Some(AccessLog::start(pattern, &to).map_err(|error| format!("access log: {error}"))?)
            }
        };
        bound_memory(settings);
        observe(settings, &services);
        let recorder = access.clone().map(|log| -> Arc<dyn flow::AccessLog> { Arc::new(log) });
        let mut servers = Vec::new();
        let bind = |address: SocketAddr, tls: Option<ServerTls>, option: &str| {
            Server::bind(address, tls, server_limits(settings)).map(Arc::new).map_err(|error| {
                format!("cannot listen on {address} for {option}: {}", in_words(&error, option))
            })
        };
        let http = bind(start.addresses.http.unwrap_or(parse(HTTP)), None, "http")?;
        let http_address = http.local_addr();
        servers.push(("http", http));
        let https = match (start.addresses.https, &settings.tls.certificate) {
            (None, None) => None,
            (address, _) => {
                let tls = server_tls(settings, settings.http.http2)?;
                warn_of_expiry("https", &tls);
                let server = bind(address.unwrap_or(parse(HTTPS)), Some(tls), "https")?;
                let address = server.local_addr();
                servers.push(("https", server));
                Some(address)
            }
        };
        let https_port = https.map(|address| address.port());
        let _ =
            services.listening.set(flow::Listening { http: Some(http_address.port()), https: https_port });
        // Bound after those of the bus, whose ports come first.
        let listeners =
            Arc::new(Listeners::new(Arc::clone(&workers), http_address.ip(), start.addresses.admin()));
        let prepared = listeners.prepare(&mut loaded.plan, settings);
        report(&loaded.plan);
        switches.restore(&loaded.plan);
        let bus = Arc::new(Bus::new(loaded.plan, services, recorder));
        listeners.follow(prepared, &bus);
        for (_, server) in &servers {
            server.serve(&workers, Arc::clone(&bus)).map_err(|error| format!("cannot accept: {error}"))?;
        }
        let reloader = Reloader::new(
            start.clone(),
            Arc::clone(&bus),
            servers.clone(),
            Arc::clone(&listeners),
            switches,
            loaded.good,
            seen,
        );
        let drain = settings.limits.drain.map_or(DRAIN, |time| time.0);
        let readiness = Readiness::new();
        readiness.set(Phase::Serving);
        Ok(Running {
            bus,
            reloader: Arc::new(reloader),
            http: http_address,
            https,
            readiness,
            servers,
            access,
            credentials,
            listeners,
            _workers: workers,
            drain,
            began,
        })
    }

    /// Accepts only the connections that wait already, and waits until the work of all messages has ended, including those whose clients
    /// already have their 202. What has not ended after `limits.drain` is given up.
    pub async fn drain(&self) {
        self.readiness.set(Phase::Draining);
        self.reloader.stop();
        let scopes = Arc::clone(&self.bus.services().scopes);
        // Connections are cut after the messages that are given up have been logged.
        let deadline = self.drain + Duration::from_millis(100);
        let end = tokio::time::Instant::now() + self.drain;
        let mut draining = tokio::task::JoinSet::new();
        let servers = self.servers.iter().map(|(_, server)| Arc::clone(server));
        for server in servers.chain(self.listeners.servers()) {
            draining.spawn(async move { server.drain(deadline).await.cut });
        }
        let mut cut = std::pin::pin!(async { draining.join_all().await.into_iter().sum::<u64>() });
        // Messages still come, from connections that waited to be accepted, and are work in turn.
        let in_time = tokio::time::timeout_at(end, &mut cut).await.ok();
        scopes.drained(end.saturating_duration_since(tokio::time::Instant::now())).await;
        scopes.give_up();
        let cut = match in_time {
            Some(cut) => cut,
            None => cut.await,
        };
        if cut > 0 {
            tracing::warn!(target: "busbar::start", "{cut} connections were cut at the end of the drain");
            // Their flows end on their workers, and file operations clear away what they have made.
            scopes.cleared(CLEARING).await;
        }
    }

    /// Starts the admin address.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn admin(&self, address: SocketAddr, logging: &Logging) -> Result<Admin, String> {
        let state = AdminState {
            bus: Arc::clone(&self.bus),
            servers: self.servers.clone(),
            client: self.bus.services().client.clone(),
            readiness: Arc::clone(&self.readiness),
            access: self.access.clone(),
            log: Some(logging.handle()),
            started: self.began,
            deployment: Some(Arc::<Reloader>::clone(&self.reloader)),
            credentials: self.credentials.clone(),
        };
        Admin::start(address, state).map_err(|error| error.to_string())
    }
}

/// Runs a bus until SIGTERM or Ctrl-C.
///
/// # Errors
/// It cannot start; the log says why.
pub fn run(start: &Start) -> Result<(), Ended> {
    let format = start.settings.log.format.as_deref();
    let logging = init_logging(&start.settings).map_err(|why| fatal(format, &why))?;
    serve(start, &logging).map_err(|why| {
        logging.fatal(&why);
        Ended
    })
}

/// The process ends because something failed, and the log says what.
#[derive(Debug)]
pub struct Ended;

/// Logs an error that comes before the log could be set up; `format` is that of its lines, as far as that is clear.
pub fn fatal(format: Option<&str>, why: &str) -> Ended {
    let format = if format == Some("json") { Format::Json } else { Format::Text };
    if let Ok(logging) = admin::logging::start(Levels::default(), format, &Output::Stderr) {
        logging.fatal(why);
    }
    Ended
}

fn serve(start: &Start, logging: &Logging) -> Result<(), String> {
    let began = Instant::now();
    flow::install_panic_hook();
    for (name, fate) in crate::tunables::report(&start.settings.wso2) {
        match fate {
            // Reported below, with the nearest name.
            crate::tunables::Fate::Unknown => {}
            fate => tracing::info!(target: "busbar::settings", "{name}: {}", fate.text()),
        }
    }
    for remark in start.settings.remarks() {
        tracing::warn!(target: "busbar::settings", "{remark}");
    }
    if let Some(remark) = crate::memory::remark() {
        tracing::warn!(target: "busbar::start", "{remark}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    let failed = |error: std::io::Error| format!("cannot listen for signals: {error}");
    // Nobody who rotates logs meanwhile ends the process.
    let mut hangup = {
        let _within = runtime.enter();
        signal(SignalKind::hangup()).map_err(failed)?
    };
    // A write beyond the largest file (`ulimit -f`) is an error of the write, and ends the process only where nobody takes the signal.
    let _too_large = {
        let _within = runtime.enter();
        signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map_err(failed)?
    };
    let running = Running::start(start)?;
    for service in &start.trace {
        if !running.bus.plan().has_service(service) {
            let names = running.bus.plan().services();
            let hint = diagnostics::did_you_mean(service, names.iter().map(String::as_str));
            let hint = hint.unwrap_or_else(|| format!("there are {}", names.join(", ")));
            return Err(format!("--trace {service}: there is no proxy service or API of this name; {hint}"));
        }
        running.bus.services().observers.trace_to_log(service);
    }
    let admin = running.admin(start.addresses.admin(), logging)?;
    let result = runtime.block_on(async {
        let (over, ended) = tokio::sync::watch::channel(());
        // The sender is dropped; nothing is ever sent.
        let until = |mut ended: tokio::sync::watch::Receiver<()>| async move { _ = ended.changed().await };
        let bus = || Arc::clone(&running.bus);
        let processors = flow::processor::run(bus(), until(ended.clone()));
        let tasks = flow::task::run(bus(), until(ended.clone()));
        let files = flow::vfs::run(bus(), until(ended.clone()));
        let checks = flow::health::run(bus(), until(ended));
        let mut processors = tokio::spawn(async { tokio::join!(processors, tasks, files, checks) });
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut reloads = Reloads::default();
        say_ready(&running, admin.local_addr(), began.elapsed(), start.settings.log.format.as_deref());
        watch(start, &running.reloader);
        let mut sweeps = tokio::time::interval(SWEEP);
        loop {
            tokio::select! {
                _ = sweeps.tick() => running.bus.services().aggregates.sweep(),
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hangup.recv() => {
                    // Rotated files are opened anew; failing that, the old ones stay in use.
                    logging.reopen();
                    running.access.iter().for_each(AccessLog::reopen);
                    reloads.ask(&running.reloader);
                }
                () = reloads.ended() => reloads.go_on(&running.reloader),
            }
        }
        tracing::info!(target: "busbar::start", "draining");
        drop(over);
        let processed = async {
            if tokio::time::timeout(running.drain, &mut processors).await.is_err() {
                tracing::warn!(target: "busbar::start", "message processors, tasks and files were cut at the end of the drain");
            }
        };
        tokio::select! {
            ((), ()) = async { tokio::join!(running.drain(), processed) } => {}
            _ = terminate.recv() => tracing::warn!(target: "busbar::start", "ended at once by a second signal"),
            _ = interrupt.recv() => tracing::warn!(target: "busbar::start", "ended at once by a second signal"),
        }
        running.bus.services().log_given_up();
        Ok(())
    });
    running.access.iter().for_each(|access| _ = access.flush());
    // A reload may still wait for a server: nothing that it finds is wanted any more.
    runtime.shutdown_background();
    result
}

/// The reloads that signals ask for: one that runs, and one after it, however many signals come meanwhile.
#[derive(Default)]
struct Reloads {
    running: Option<tokio::sync::oneshot::Receiver<()>>,
    is_asked: bool,
}

impl Reloads {
    fn ask(&mut self, reloader: &Arc<Reloader>) {
        self.is_asked = true;
        if self.running.is_none() {
            self.go_on(reloader);
        }
    }

    /// Waits until the one that runs has ended; for ever where none runs.
    async fn ended(&mut self) {
        match &mut self.running {
            Some(running) => {
                // The panic hook has logged the panic.
                let _ = running.await;
                self.running = None;
            }
            None => std::future::pending().await,
        }
    }

    fn go_on(&mut self, reloader: &Arc<Reloader>) {
        if std::mem::take(&mut self.is_asked) {
            // It reads files and compiles: signals and message processors go on meanwhile.
            let reloader = Arc::clone(reloader);
            match admin::aside("reload", move || reload(&reloader, Cause::Signal)) {
                Ok(running) => self.running = Some(running),
                Err(why) => {
                    tracing::error!(target: "busbar::reload", "not reloaded: no thread can be started: {why}; the old configuration goes on serving");
                }
            }
        }
    }
}

fn reload(reloader: &Reloader, cause: Cause) {
    match reloader.reload(cause) {
        Ok(outcome) => tracing::info!(target: "busbar::reload", "{outcome}"),
        Err(reason) => tracing::error!(target: "busbar::reload", "{reason}"),
    }
}

/// Watches the configuration, where the settings do not say otherwise.
fn watch(start: &Start, reloader: &Arc<Reloader>) {
    let deploy = &start.settings.deploy;
    let (takes, compiles) = (Arc::clone(reloader), deploy.watch.unwrap_or(true));
    let changed = move || {
        if compiles {
            let reload = std::panic::AssertUnwindSafe(|| reload(&takes, Cause::Registry));
            let _ = std::panic::catch_unwind(reload);
        }
        !takes.stops()
    };
    if let Err(error) = crate::remote::follow(changed) {
        tracing::error!(target: "busbar::start", "a registry on another server is not read again: {error}");
    }
    if !deploy.watch.unwrap_or(true) {
        return;
    }
    let watch = Watch {
        interval: deploy.interval.map_or(INTERVAL, |time| time.0),
        quiet: deploy.quiet.map_or(QUIET, |time| time.0),
    };
    let (looks, compares, takes) = (Arc::clone(reloader), Arc::clone(reloader), Arc::clone(reloader));
    let take = move || {
        // The panic hook has logged the panic; the next change may compile.
        let reload = std::panic::AssertUnwindSafe(|| reload(&takes, Cause::Change));
        let _ = std::panic::catch_unwind(reload);
        !takes.stops()
    };
    if let Err(error) = watch.start(move || looks.look(), move |seen| compares.differs(seen), take) {
        tracing::error!(target: "busbar::start", "the configuration is not watched: {error}");
    }
}

/// Says on stdout that the bus serves, and where, and gives back what only the start needed. On a thread of its own: nobody may be reading.
fn say_ready(running: &Running, admin: SocketAddr, took: Duration, format: Option<&str>) {
    let http = running.http.to_string();
    let https = running.https.map_or_else(|| "off".to_owned(), |address| address.to_string());
    let (artifacts, took) = (running.bus.plan().artifacts(), took.as_millis());
    let mut line = match format {
        Some("json") => serde_json::json!({
            "time": admin::logging::now(), "level": "INFO", "target": "busbar::start", "message": "busbar ready",
            "http": http, "https": https, "admin": admin.to_string(), "artifacts": artifacts,
            "milliseconds": u64::try_from(took).unwrap_or(u64::MAX),
        })
        .to_string(),
        _ => format!("busbar ready http={http} https={https} admin={admin} artifacts={artifacts} in {took} ms"),
    };
    line.push('\n');
    // Where there is no thread, nobody is told; the bus serves all the same.
    let _ = std::thread::Builder::new().name("ready".to_owned()).spawn(move || {
        if let Err(why) = transport::unmap_start() {
            tracing::debug!(target: "busbar::start", "the code that only the start needed stays mapped: {why}");
        }
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    });
}

/// Starts logging to stderr, as the settings say.
///
/// # Errors
/// The level is none, or the format unknown.
pub fn init_logging(settings: &Settings) -> Result<Logging, String> {
    let format = match settings.log.format.as_deref() {
        None | Some("text") => Format::Text,
        Some("json") => Format::Json,
        Some(other) => {
            return Err(format!("log.format: there is no format `{other}`; expected text or json"));
        }
    };
    admin::logging::init(settings.log.level.as_deref().unwrap_or("info"), format, &Output::Stderr)
}

fn parse(address: &str) -> SocketAddr {
    address.parse().expect("the default addresses are addresses")
}

fn in_words(error: &std::io::Error, option: &str) -> String {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => format!("address in use; choose another with --{option}"),
        std::io::ErrorKind::PermissionDenied => {
            format!("permission denied (ports below 1024 need privileges); choose another with --{option}")
        }
        std::io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        _ => error.to_string(),
    }
}

/// What a bus with these settings shares.
///
/// # Errors
/// A certificate or a key cannot be read.
pub fn services(settings: &Settings) -> Result<Services, String> {
    if !settings.missing_secrets.is_empty() {
        return Err(settings.missing_secrets.join("\n"));
    }
    let limits = &settings.limits;
    let mut client = ClientLimits::default();
    set(&mut client.io_buffer_size, limits.io_buffer_size.map(|size| size.0));
    set(&mut client.idle_connections, limits.idle_connections);
    set(&mut client.idle, limits.idle_backend.map(|time| time.0));
    set(&mut client.connections, limits.backend_connections);
    set(&mut client.waiting, limits.backend_waiting);
    set(&mut client.names, limits.dns_ttl.map(|time| time.0));
    set(&mut client.unknown_names, limits.dns_failure_ttl.map(|time| time.0));
    // 0 means no limit.
    let bound = |most: usize| if most == 0 { usize::MAX } else { most };
    let time = |time: Duration| if time.is_zero() { Duration::MAX } else { time };
    let mut shared = Shared::new(Client::new(client));
    set(&mut shared.stores.limits.messages, limits.store_messages);
    set(&mut shared.stores.limits.bytes, limits.store_size.map(|size| size.0));
    set(&mut shared.aggregates.limits.parts, limits.aggregate_parts.map(bound));
    set(&mut shared.aggregates.limits.time, limits.aggregate_time.map(|limit| time(limit.0)));
    let mut services = Services::of(shared);
    set(&mut services.limits.held, limits.body.map(|size| size.0));
    if let Some(most) = limits.spill.map(|size| size.0 as u64).filter(|&most| most > 0) {
        let directory = limits.spill_directory.clone().unwrap_or_else(std::env::temp_dir);
        if !directory.is_dir() {
            return Err(format!("limits.spill_directory: `{}` is not a directory", directory.display()));
        }
        let total = limits.spill_total.map_or(1 << 30, |size| size.0 as u64);
        services.limits.spill = Some(Arc::new(message::Spill::new(directory, most, total)));
    }
    services.limits.json = Arc::new(crate::tunables::mapping(&settings.wso2)?);
    set(&mut services.limits.xml.depth, limits.xml_depth);
    set(&mut services.limits.xml.attributes, limits.xml_attributes);
    let engine = &mut services.settings;
    set(&mut engine.flows, limits.flows.map(bound));
    set(&mut engine.connect_timeout, limits.connect.map(|time| time.0));
    set(&mut engine.global_timeout, limits.response.map(|time| time.0));
    set(&mut engine.attempts, limits.attempts.map(|most| most.max(1)));
    set(&mut engine.socket_timeout, limits.socket.map(|time| time.0));
    sql(&settings.sql, engine);
    set(&mut engine.script_time, limits.script_time.map(|time| time.0));
    set(&mut engine.compute_threads, limits.compute_threads.map(|n| n.clamp(1, 1024)));
    set(&mut engine.compute_queue, limits.compute_queue);
    set(&mut engine.compute_wait, limits.compute_wait.map(|time| time.0));
    set(&mut engine.script_memory, limits.script_memory.map(|size| size.0));
    // The thread of a worker has a stack of 2 MiB, which the engine cannot see.
    set(&mut engine.script_stack, limits.script_stack.map(|size| size.0.min(1 << 20)));
    set(&mut engine.registry.size, limits.registry_size.map(|size| size.0));
    set(&mut engine.registry.files, limits.registry_files);
    engine.list_services = settings.http.list_services;
    engine.preserve_user_agent = settings.http.preserve_user_agent;
    engine.preserve_server = settings.http.preserve_server;
    engine.preserve_headers = settings.http.preserve_headers.clone();
    engine.callback_address = callback_address(&settings.http.callback_address)?;
    let header = settings.http.correlation_header.trim();
    if !header.bytes().all(message::is_token_byte) {
        return Err(format!("http.correlation_header: `{header}` is not a header name"));
    }
    engine.correlation_header = header.to_owned();
    engine.users.clone_from(&settings.http.users.0);
    engine.roles.clone_from(&settings.http.roles);
    engine.access = crate::access::profiles(&settings.access)?;
    engine.java_numbers = settings.java_numbers;
    let security = settings.security.clone();
    engine.security = Arc::new(flow::services::Security {
        keystore: security.keystore,
        password: security.password,
        key_password: security.key_password,
        alias: security.alias,
        truststore: security.truststore,
        trust_password: security.trust_password,
        revoked: security.revoked,
        ocsp: settings.asked(security.ocsp)?,
    });
    engine.task_overlap = settings.task.overlap;
    if let Some(path) = &settings.http.priorities {
        let bytes = config::read_file(path)
            .map_err(|why| format!("http.priorities: {} cannot be read: {why}", path.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let read = flow::Priorities::read(&path.display().to_string(), &text);
        engine.priorities = Some(Arc::new(read.map_err(|why| format!("http.priorities: {why}"))?));
    }
    if let Some(name) = &settings.task.time_zone {
        engine.time_zone = jiff::tz::TimeZone::get(name).map_err(|_| {
            format!("task.time_zone: there is no time zone `{name}`; expected a name like Europe/Berlin")
        })?;
    }
    engine.server_name.clone_from(&settings.server_name);
    engine.synapse_dialect = settings.dialect == Dialect::Synapse;
    engine.system = Arc::clone(&settings.system);
    message::Kind::name(settings.kinds.clone());
    crate::tunables::apply(&settings.wso2, engine)?;
    crate::secrets::open(&settings.vault, engine)?;
    services.tls = Arc::new(TlsProfiles::with_system(profiles(settings)?));
    if let Some(hashicorp) = &settings.vault.hashicorp {
        let server = crate::hashicorp::HashiCorp::new(hashicorp, Arc::clone(&services.tls))?;
        services.settings.vault_remote = Some(Arc::new(server));
    }
    let proxies = crate::proxies::routes(&settings.proxy)?;
    services.routes = Arc::new(Routes {
        http2: settings.http.http2_backends,
        proxies,
        dynamic: settings.http.dynamic_addresses.clone(),
    });
    Ok(services)
}

/// Sets the limit on the bytes that messages hold. There is one for the process, so it is set when nothing else can fail.
pub fn bound_memory(settings: &Settings) {
    let most = settings.limits.memory.map_or_else(crate::memory::for_messages, |size| size.0);
    // 0 means no limit.
    message::memory::set_most(if most == 0 { usize::MAX } else { most });
    // What computes makes more than messages hold, and ends before the system ends the process.
    meter::memory::set_most(crate::memory::resident(), crate::memory::addresses());
}

/// Who is traced, and for whom the wire log is on, from the start.
fn observe(settings: &Settings, services: &Services) {
    let observers = &services.observers;
    settings.log.trace.iter().for_each(|service| observers.trace(service, true));
    settings.log.wire.iter().for_each(|name| observers.wire(name, true));
    settings.log.payload.iter().for_each(|size| observers.show(size.0));
}

/// Scheme, host and port, or nothing.
fn callback_address(text: &str) -> Result<String, String> {
    let text = text.trim().trim_end_matches('/');
    let authority = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match authority {
        _ if text.is_empty() => Ok(String::new()),
        Some(authority) if !authority.is_empty() && !authority.contains(['/', '?', '#', ' ', '@']) => {
            Ok(text.to_owned())
        }
        _ => Err(format!("http.callback_address: `{text}` is not like http://bus.example:8280")),
    }
}

/// The settings of databases.
pub fn sql(settings: &crate::settings::Sql, engine: &mut flow::Settings) {
    engine.sql_embedded = settings.embedded.is_some();
    set(&mut engine.sql_timeout, settings.timeout.map(|time| time.0));
    set(&mut engine.sql_value, settings.value.map(|size| size.0));
}

fn host_names(profile: &Profile) -> Result<HostNames, String> {
    match (profile.host_names.as_deref(), profile.any_host_name) {
        (None | Some("asked"), false) => Ok(HostNames::Asked),
        (Some("localhost"), false) => Ok(HostNames::AskedOrLocalhost),
        (None | Some("any"), _) => Ok(HostNames::Any),
        (Some(other), _) => Err(format!(
            "profile {}: host_names is `{other}`; expected asked, localhost or any, and not asked with any_host_name",
            profile.server
        )),
    }
}

fn profiles(settings: &Settings) -> Result<Vec<(String, ClientTls)>, String> {
    let mut profiles = Vec::new();
    for profile in &settings.profile {
        let roots = match (&profile.roots, profile.insecure) {
            (_, true) => Roots::Insecure,
            (Some(file), false) => Roots::File(file.clone()),
            (None, false) => Roots::System,
        };
        let identity = match (&profile.certificate, &profile.key) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (None, None) => None,
            _ => return Err(format!("profile {}: certificate and key go together", profile.server)),
        };
        let options = ClientTlsOptions {
            roots,
            identity,
            server_name: profile.server_name.clone(),
            host_names: host_names(profile)?,
            rules: TlsRules {
                versions: profile.versions.clone(),
                ciphers: profile.ciphers.clone(),
                revoked: profile.revoked.clone(),
                ocsp: settings.asked(profile.ocsp)?,
            },
        };
        let made =
            ClientTls::new(&options).map_err(|error| format!("profile {}: {error}", profile.server))?;
        profiles.push((profile.server.clone(), made));
    }
    Ok(profiles)
}
