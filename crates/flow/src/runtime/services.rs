//! What all flows of a process share: the client, limits, settings and counters.

use super::artifacts::Cors;
use super::context::Context;
use super::guard::Profile;
use super::observers::Observers;
use super::request::Inbound;
use crate::runtime::aggregation::Aggregates;
use crate::runtime::clock::Clock;
use crate::runtime::scope::Scopes;
use crate::state::SharedState;
use crate::state::identity::States;
use crate::state::metrics::Metrics;
use message::{Body, Headers, PayloadLimits};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use transport::Response;

pub use crate::runtime::routes::{Hosts, Route, Routes};

/// What flows work with: settings, which a reload may replace, and what the process has once ([`Shared`]).
pub struct Services {
    /// Limits on what a flow holds of a message.
    pub limits: PayloadLimits,
    /// Settings of the engine.
    pub settings: Settings,
    /// TLS profiles for https endpoints.
    pub tls: Arc<TlsProfiles>,
    /// HTTP/2 and proxies on the way to backends.
    pub routes: Arc<Routes>,
    shared: Arc<Shared>,
}

/// Answers a request of one flow to a service of its plan, and takes its body; `None`: there is no such service that runs, `Err`: why there is
/// no room for it.
pub(crate) type LocalServices =
    for<'a> fn(&'a Context, Inbound, Headers, &mut Body) -> Option<Result<LocalAnswer<'a>, &'static str>>;

/// See [`LocalServices`].
pub(crate) type LocalAnswer<'a> = Pin<Box<dyn Future<Output = Response> + Send + 'a>>;

/// What the process has once, whatever is reloaded.
pub struct Shared {
    /// Sends to backends.
    pub client: transport::Client,
    /// The messages whose work goes on.
    pub scopes: Arc<Scopes>,
    /// Open aggregates.
    pub aggregates: Aggregates,
    /// Message stores; what waits in them outlives a reload.
    pub stores: stores::Stores,
    /// Counters and histograms.
    pub metrics: Metrics,
    /// What mediators keep beyond the plan.
    pub kept: SharedState,
    /// States of artifacts and their parts, which outlive the plan.
    pub states: States,
    /// Who is traced, and for whom the wire log is on.
    pub observers: Observers,
    /// The time, for tasks and whatever else is due at times of the calendar.
    pub clock: Clock,
    /// The ports that the bus listens on, once it does.
    pub listening: OnceLock<Listening>,
    /// What takes the place of backends while suites of unit tests run; nobody does otherwise.
    pub mocks: OnceLock<Arc<dyn Mocks>>,
    /// Serves requests to services of this bus that come over no connection; the HTTP side sets it.
    pub(crate) local: OnceLock<LocalServices>,
}

/// Services in the place of backends, for unit tests.
pub trait Mocks: Send + Sync {
    /// Where a request of this endpoint to a path (with its query) goes; `None`: to the backend itself.
    fn target(&self, endpoint: &str, path: &str) -> Option<transport::Target>;
}

/// The ports of the listeners of the bus.
#[derive(Clone, Copy, Debug, Default)]
pub struct Listening {
    /// For http.
    pub http: Option<u16>,
    /// For https.
    pub https: Option<u16>,
}

/// Settings of the engine, with their defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Longest wait for an endpoint that sets no timeout (`synapse.global_timeout_interval`). Default 120 s.
    pub global_timeout: Duration,
    /// Longest time to connect (`http.connection.timeout`). Default 10 s.
    pub connect_timeout: Duration,
    /// Longest silence on a connection in use, also before the head of the answer (`http.socket.timeout`). Default 180 s.
    pub socket_timeout: Duration,
    /// How far ports are moved.
    pub offset: PortOffset,
    /// How long all endpoints are suspended.
    pub suspension: Suspension,
    /// What bodies have to be before they are passed on.
    pub screening: Screening,
    /// How long a session with a member of a group lasts without a message, where the group does not say
    /// (`synapse.sal.endpoints.sesssion.timeout.default`). Default 600 s.
    pub session_timeout: Duration,
    /// Properties of system scope, where no flow has set them (`[system.parameter]` of a WSO2 server).
    pub system: Arc<std::collections::BTreeMap<String, String>>,
    /// Most messages that may be on their way at the same time, those whose client has its 202 included: others are refused with
    /// 503. Default 10,000.
    pub flows: usize,
    /// Most frames a flow may nest: sequences calling sequences. Default 512.
    pub nesting: usize,
    /// Most steps one message may take, in all its branches together, against endless work. Default 10,000,000.
    pub steps: u64,
    /// How often one message may be handed to `send`: a main sequence that sends its own answers on would never end.
    /// Default 100.
    pub sends: u16,
    /// How often one message may be sent by a group of endpoints until it gives up. Default 100.
    pub attempts: u16,
    /// `/services/` lists the services. Default true (WSO2: false).
    pub list_services: bool,
    /// Header names that are not regenerated on the way out (`http.headers.preserve`).
    pub preserve_headers: Vec<String>,
    /// Forward the client's User-Agent (`http.user.agent.preserve`). Default false.
    pub preserve_user_agent: bool,
    /// Forward the backend's Server header (`http.server.preserve`). Default true.
    pub preserve_server: bool,
    /// How backends reach this server where `separateListener` makes them answer on connections of their own: scheme,
    /// host and port. Default: empty, the address that the client connected to.
    pub callback_address: String,
    /// Header with the correlation id of a request (`correlation_header_name`); empty: none is made. Default `activityid`.
    pub correlation_header: String,
    /// `synapse.xpath.dom.failover.enabled`: what is not an XPath 1.0 is evaluated as XPath 2.0. Default false.
    pub xpath_failover: bool,
    /// The directory with one file for each secret.
    pub vault_directory: Option<PathBuf>,
    /// The same for secrets of the kind `DOCKER`. Default `/run/secrets`.
    pub docker_secrets: PathBuf,
    /// The encrypted file of secrets (`busbar vault`).
    pub vault_sealed: Option<Arc<crate::vault::Sealed>>,
    /// Another server that has secrets (`[vault.hashicorp]`).
    pub vault_remote: Option<Arc<dyn crate::vault::Remote>>,
    /// What secrets were encrypted for.
    pub vault_key: Option<Arc<crate::vault::Key>>,
    /// The configuration is only looked at: secrets that are not on this machine are warnings. Default false.
    pub check_only: bool,
    /// Bounds on what flows write into the registry.
    pub registry: config::RegistryLimits,
    /// `dialect = "synapse"`: Apache Synapse's behaviour where it differs from WSO2's.
    pub synapse_dialect: bool,
    /// `synapse.rest.CORSConfig.*`: what answers of APIs say to other origins.
    pub cors: Arc<Cors>,
    /// Users and their passwords, for the basic authentication of APIs (`http.users`).
    pub users: std::collections::HashMap<String, String>,
    /// The roles of these users (`http.roles`).
    pub roles: std::collections::HashMap<String, Vec<String>>,
    /// Who may be let in by which name (`[access.NAME]`).
    pub access: std::collections::HashMap<String, Arc<Profile>>,
    /// Keys for WS-Security.
    pub security: Arc<Security>,
    /// The name of this server, for `pinnedServers`; default: the name of the machine.
    pub server_name: Option<String>,
    /// Numbers of XPath are texts as Java writes doubles (`3.0`, `1.0E7`). Default false.
    pub java_numbers: bool,
    /// Whose clock cron expressions mean that name no time zone. Default: that of the system.
    pub time_zone: jiff::tz::TimeZone,
    /// Runs of a task may overlap where its trigger does not say. Default false.
    pub task_overlap: bool,
    /// Which requests of the listeners go first, where more come than are to be answered at a time.
    pub priorities: Option<Arc<super::priority::Priorities>>,
    /// Longest run of one step that computes: a script, stylesheet, expression, template or schema. Default 5 s.
    pub script_time: Duration,
    /// Threads for steps that compute for long. Default: two for each processor, at least 4.
    pub compute_threads: usize,
    /// Most steps that wait for such a thread; beyond: 503. Default 10,000.
    pub compute_queue: usize,
    /// Longest wait for such a thread; beyond: 503. Default 30 s.
    pub compute_wait: Duration,
    /// Most bytes of memory for the scripts of one thread. Default 64 MiB.
    pub script_memory: usize,
    /// `sql.embedded = "sqlite"`: databases of H2 and Derby are SQLite's. Default false.
    pub sql_embedded: bool,
    /// Longest run of an SQL statement, where the data source does not say (`sql.timeout`). Default 120 s.
    pub sql_timeout: Duration,
    /// Most bytes of a value that a database gives (`sql.value`). Default 32 MiB.
    pub sql_value: usize,
    /// Most bytes of stack for a script. Default 512 KiB.
    pub script_stack: usize,
}

/// How far a server moves its ports, so that several can run on one machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortOffset {
    /// By how much (`server.offset`).
    pub ports: i64,
    /// Those of inbound endpoints, too (`inbound.port.offset.enable`).
    pub inbound: bool,
}

/// What holds for the suspension of all endpoints.
#[derive(Clone, Copy, Debug, Default)]
pub struct Suspension {
    /// The first suspension in milliseconds, where an endpoint says none (`synapse.global_endpoint_suspend_duration`).
    pub initial: Option<i64>,
    /// How many times the last one every further one lasts (`synapse.global_endpoint_suspend_progression_factor`).
    pub factor: Option<f32>,
    /// They count whatever an endpoint says (`synapse.override_endpoint_suspend_config_with_global_values`).
    pub overrides: bool,
    /// Failures that suspend an endpoint whatever they are (`maximum.failover.retries`, `suspend.duration.on.maximum.failover`).
    pub cap: Cap,
    /// The same of those that a failover or a load balance has written in it (`maximum.failover.recursive.retries`,
    /// `suspend.duration.on.maximum.recursive.failover`).
    pub cap_of_members: Cap,
}

/// How many failures in a row an endpoint may have.
#[derive(Clone, Copy, Debug)]
pub struct Cap {
    /// So many are treated by their codes, the one after them suspends; `None`: all are.
    pub most: Option<u32>,
    /// For how long, in milliseconds.
    pub suspension: i64,
}

impl Default for Cap {
    fn default() -> Cap {
        Cap { most: None, suspension: 30_000 }
    }
}

/// What the bodies of messages have to be before anything of them is passed on. Default: whatever they are.
#[derive(Clone, Copy, Debug)]
pub struct Screening {
    /// None is larger than [`Screening::largest`] (`message.size.validation.enabled`).
    pub size: bool,
    /// In bytes (`valid.max.message.size.in.bytes`).
    pub largest: u64,
    /// Requests with XML are well-formed (`force.xml.message.validation`).
    pub xml: bool,
    /// Requests with JSON can be read (`force.json.message.validation`).
    pub json: bool,
}

impl Default for Screening {
    fn default() -> Screening {
        // WSO2 says nothing larger.
        Screening { size: false, largest: i32::MAX as u64, xml: false, json: false }
    }
}

/// Where keys for WS-Security are (`[security]`).
#[derive(Clone, Default)]
pub struct Security {
    /// The key store with the private keys.
    pub keystore: Option<PathBuf>,
    /// Its password.
    pub password: String,
    /// That of its private keys, where it is another one.
    pub key_password: Option<String>,
    /// Which private key signs; of several one has to be named.
    pub alias: String,
    /// The key store with the certificates that are trusted; default: those of `keystore`.
    pub truststore: Option<PathBuf>,
    /// Its password.
    pub trust_password: String,
    /// Lists of revoked certificates.
    pub revoked: Vec<PathBuf>,
    /// Servers are asked whether the certificates of signers are revoked.
    pub ocsp: Option<transport::Ocsp>,
}

impl std::fmt::Debug for Security {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Security({:?}, {:?})", self.keystore, self.truststore)
    }
}

/// So many compute threads, unless a setting says otherwise: they share the processors among those that wait, so that short
/// work gets its turn beside long work.
fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(4, |n| n.get() * 2).max(4)
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            global_timeout: Duration::from_secs(120),
            connect_timeout: Duration::from_secs(10),
            socket_timeout: Duration::from_secs(180),
            offset: PortOffset::default(),
            suspension: Suspension::default(),
            screening: Screening::default(),
            session_timeout: Duration::from_secs(600),
            system: Arc::default(),
            flows: 10_000,
            nesting: 512,
            steps: 10_000_000,
            sends: 100,
            attempts: 100,
            list_services: true,
            preserve_headers: Vec::new(),
            preserve_user_agent: false,
            preserve_server: true,
            callback_address: String::new(),
            correlation_header: crate::runtime::correlation::DEFAULT.to_owned(),
            xpath_failover: false,
            vault_directory: None,
            docker_secrets: PathBuf::from(crate::vault::DOCKER_SECRETS),
            vault_sealed: None,
            vault_remote: None,
            vault_key: None,
            check_only: false,
            registry: config::RegistryLimits::default(),
            synapse_dialect: false,
            cors: Arc::default(),
            users: std::collections::HashMap::new(),
            roles: std::collections::HashMap::new(),
            access: std::collections::HashMap::new(),
            security: Arc::default(),
            server_name: None,
            java_numbers: false,
            time_zone: jiff::tz::TimeZone::system(),
            task_overlap: false,
            priorities: None,
            script_time: Duration::from_secs(5),
            compute_threads: default_threads(),
            compute_queue: 10_000,
            compute_wait: Duration::from_secs(30),
            sql_embedded: false,
            sql_timeout: Duration::from_secs(120),
            sql_value: 32 << 20,
            script_memory: 64 << 20,
            script_stack: 512 << 10,
        }
    }
}

/// TLS profiles by server, as `customSSLProfiles` of WSO2 have them.
#[derive(Default)]
pub struct TlsProfiles {
    /// `host:port` (or `host`, or `*`) to profile.
    pub profiles: Vec<(String, transport::ClientTls)>,
    /// Servers that no profile names are verified with the authorities of the system.
    system: bool,
    /// Those, or `None` on a machine without them. Reading them takes milliseconds, so the first server waits for it
    /// instead of every start.
    authorities: OnceLock<Option<transport::ClientTls>>,
}

impl TlsProfiles {
    /// One profile for every server.
    pub fn for_all(profile: transport::ClientTls) -> TlsProfiles {
        TlsProfiles { profiles: vec![("*".to_owned(), profile)], ..TlsProfiles::default() }
    }

    /// These profiles, and the authorities of the system for what they do not name.
    pub fn with_system(profiles: Vec<(String, transport::ClientTls)>) -> TlsProfiles {
        TlsProfiles { profiles, system: true, authorities: OnceLock::new() }
    }

    /// The profile for a server: the exact one, else that of `*`, else the authorities of the system.
    pub fn find(&self, host: &str, port: u16) -> Option<&transport::ClientTls> {
        let with_port = format!("{host}:{port}");
        let by = |name: &str| {
            self.profiles.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, tls)| tls)
        };
        by(&with_port).or_else(|| by(host)).or_else(|| by("*")).or_else(|| self.authorities())
    }

    fn authorities(&self) -> Option<&transport::ClientTls> {
        let read = || {
            transport::ClientTls::new(&transport::ClientTlsOptions::default())
                .inspect_err(|error| tracing::error!("the certificate authorities of the system: {error}"))
                .ok()
        };
        if self.system { self.authorities.get_or_init(read).as_ref() } else { None }
    }
}

impl Shared {
    /// Nothing has happened yet.
    pub fn new(client: transport::Client) -> Shared {
        Shared {
            client,
            scopes: Arc::default(),
            aggregates: Aggregates::default(),
            stores: stores::Stores::default(),
            metrics: Metrics::default(),
            kept: SharedState::default(),
            states: Default::default(),
            observers: Default::default(),
            clock: Default::default(),
            listening: OnceLock::new(),
            mocks: OnceLock::new(),
            local: OnceLock::new(),
        }
    }
}

impl Services {
    /// Services with default settings.
    pub fn new(client: transport::Client) -> Services {
        Services::of(Shared::new(client))
    }

    /// As [`Services::new`], with what is shared.
    pub fn of(shared: Shared) -> Services {
        Services {
            limits: PayloadLimits::default(),
            settings: Settings::default(),
            tls: Arc::default(),
            routes: Arc::default(),
            shared: Arc::new(shared),
        }
    }

    /// These settings in the place of those before: all that the process has once stays as it is.
    #[must_use]
    pub fn in_place_of(self, before: &Services) -> Services {
        let limits = PayloadLimits { spill: before.limits.spill.clone(), ..self.limits };
        Services { limits, shared: Arc::clone(&before.shared), ..self }
    }
}

impl std::ops::Deref for Services {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl std::fmt::Debug for Services {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Services")
    }
}
