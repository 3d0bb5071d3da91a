//! Settings: `busbar.toml`, then the environment (`BUSBAR_LIMITS_IDLE=30s`), then `--set limits.idle=30s`.

use crate::proxies::ForwardProxy;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::secrets::Vault;
use crate::server::Server;
pub use crate::units::{Size, Time};

/// All settings, with their defaults. Times are written `250ms`, `30s`, `5m`; sizes `64k`, `10m` or plain bytes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Worker threads; one per core by default.
    pub workers: Option<usize>,
    /// `wso2` (default) or `synapse`: whose behaviour counts where they differ.
    pub dialect: Dialect,
    /// Numbers of XPath are texts as Java writes doubles (`3.0`, `1.0E7`), for configurations that compare them so.
    /// Default false: `3`, `10000000`.
    pub java_numbers: bool,
    /// The name of this server, for `pinnedServers` of proxy services. Default: the name of the machine.
    pub server_name: Option<String>,
    /// Where the bus listens.
    pub listen: Listen,
    /// Who may use the admin address.
    pub admin: crate::access::Admin,
    /// Limits and deadlines.
    pub limits: Limits,
    /// Behaviour of the HTTP transport.
    pub http: Http,
    /// Tasks, and whatever else runs at times of the calendar.
    pub task: Task,
    /// Certificates of the https listener.
    pub tls: Tls,
    /// TLS profiles of https endpoints.
    pub profile: Vec<Profile>,
    /// How servers are asked whether certificates are revoked.
    pub ocsp: crate::ocsp::Asking,
    /// Forward proxies; the first whose hosts match counts. Those of a WSO2 server's settings where there are none.
    pub proxy: Vec<ForwardProxy>,
    /// Where secrets are.
    pub vault: Vault,
    /// Databases.
    pub sql: Sql,
    /// Who may be let in, by the name that APIs and proxy services give.
    pub access: std::collections::BTreeMap<String, crate::access::Access>,
    /// Keys for WS-Security.
    pub security: Security,
    /// How changes of the configuration come into force.
    pub deploy: Deploy,
    /// Logs.
    pub log: Log,
    /// Tunables of WSO2 under their own names (`'synapse.global_timeout_interval' = 120000`).
    pub wso2: toml::Table,
    /// Unknown names, each with the nearest name that there is.
    #[serde(skip)]
    remarks: Vec<String>,
    /// Secrets that settings name and that cannot be had: the setting, and why.
    #[serde(skip)]
    pub(crate) missing_secrets: Vec<String>,
    /// Properties of system scope, of the settings of a WSO2 server.
    #[serde(skip)]
    pub(crate) system: Arc<BTreeMap<String, String>>,
    /// How bodies of types are read that nothing else tells, by the settings of a WSO2 server.
    #[serde(skip)]
    pub(crate) kinds: Vec<(String, message::Kind)>,
    /// All of these as they were written, file, environment and command line together.
    #[serde(skip)]
    pub(crate) written: toml::Table,
    /// The file that they were read from.
    #[serde(skip)]
    pub(crate) file: Option<PathBuf>,
}

/// See [`Settings::dialect`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// WSO2 ESB, EI and MI.
    #[default]
    Wso2,
    /// Apache Synapse.
    Synapse,
}

/// Addresses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Listen {
    /// Default 127.0.0.1:8280.
    pub http: Option<SocketAddr>,
    /// Default 127.0.0.1:8243 where a certificate is configured.
    pub https: Option<SocketAddr>,
    /// Default 127.0.0.1:9164.
    pub admin: Option<SocketAddr>,
}

/// Limits and deadlines; what is absent keeps the default of the transport.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Largest request head in bytes. Default 32k.
    pub head_size: Option<Size>,
    /// Most header fields. Default 100.
    pub header_count: Option<usize>,
    /// Longest request target. Default 8k.
    pub target_size: Option<Size>,
    /// Largest body a flow may hold; one that is only relayed has no limit. Default 64m.
    pub body: Option<Size>,
    /// Largest body that may go to a temporary file where it is larger than `body`. Default 0: none.
    pub spill: Option<Size>,
    /// Most bytes in all those files. Default 1g.
    pub spill_total: Option<Size>,
    /// Their directory. Default that of the system.
    pub spill_directory: Option<PathBuf>,
    /// Buffer through which bodies are relayed (`io_buffer_size`). Default 16k.
    pub io_buffer_size: Option<Size>,
    /// Connections per worker. Default 20,000.
    pub connections: Option<usize>,
    /// Connections of one address at a listener. Default 0: no bound.
    pub connections_per_address: Option<usize>,
    /// Streams of an HTTP/2 connection that may be open at a time. Default 128.
    pub streams: Option<u32>,
    /// Longest time in which nothing comes over a WebSocket from either side. Default 15m.
    pub websocket_idle: Option<Time>,
    /// Longest wait for the next request. Default 60s.
    pub idle: Option<Time>,
    /// Longest time for a request head. Default 20s.
    pub head: Option<Time>,
    /// Longest pause within a request body. Default 60s.
    pub body_pause: Option<Time>,
    /// Longest time in which a client takes nothing of its response. Default 60s.
    pub write: Option<Time>,
    /// Longest time to connect to a backend. Default 10s.
    pub connect: Option<Time>,
    /// Longest wait for the answer of an endpoint without a timeout of its own. Default 120s.
    pub response: Option<Time>,
    /// Most attempts of a group of endpoints with one message. Default 100.
    pub attempts: Option<u16>,
    /// Longest silence of a backend within an answer. Default 180s.
    pub socket: Option<Time>,
    /// Idle connections kept per backend and worker. Default 1,024.
    pub idle_connections: Option<usize>,
    /// How long an idle connection to a backend is kept. Default 30s.
    pub idle_backend: Option<Time>,
    /// Connections that one backend may have from this process. Default 10,000.
    pub backend_connections: Option<usize>,
    /// Requests that wait for one of them, per backend; beyond: 503. Default 1,000.
    pub backend_waiting: Option<usize>,
    /// How long the addresses of a host name are used. Default 30s.
    pub dns_ttl: Option<Time>,
    /// How long a host name that was not found is not asked for again. Default 1s.
    pub dns_failure_ttl: Option<Time>,
    /// Deepest element nesting of a message. Default 512.
    pub xml_depth: Option<usize>,
    /// Most attributes of an element. Default 256.
    pub xml_attributes: Option<usize>,
    /// Longest run of a step that computes: script, stylesheet, expression, template, schema. Default 5s.
    pub script_time: Option<Time>,
    /// Threads for steps that compute for long. Default: two for each processor, at least 4.
    pub compute_threads: Option<usize>,
    /// Most steps that wait for such a thread. Default 1,000.
    pub compute_queue: Option<usize>,
    /// Longest wait for such a thread. Default 5s.
    pub compute_wait: Option<Time>,
    /// Most memory of the scripts of one worker. Default 64m.
    pub script_memory: Option<Size>,
    /// Largest stack of a script, at most 1m. Default 512k.
    pub script_stack: Option<Size>,
    /// Most messages in an in-memory store. Default 100,000.
    pub store_messages: Option<usize>,
    /// Most bytes of them. Default 256m.
    pub store_size: Option<Size>,
    /// Largest resource that a flow writes into the registry. Default 16m.
    pub registry_size: Option<Size>,
    /// Most files and directories in the registry: beyond, flows make no new ones. Default 10,000.
    pub registry_files: Option<usize>,
    /// Most messages that may be on their way at the same time, those whose client has its 202 included. Others get 503. Default 10,000.
    pub flows: Option<usize>,
    /// Most bytes that messages hold together: bodies, trees, copies, parts of aggregates, cached answers. Others get 503 before that.
    /// Default half of the memory that the process may have.
    pub memory: Option<Size>,
    /// Most parts of an aggregate. Default 100,000.
    pub aggregate_parts: Option<usize>,
    /// How long an aggregate without a timeout may wait. Default 1h.
    pub aggregate_time: Option<Time>,
    /// How long a stop waits for the work of messages to end. Default 25s.
    pub drain: Option<Time>,
}

/// See [`Settings::http`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// Connections stay open between requests. Default true.
    pub keep_alive: bool,
    /// A client may close its sending side behind its request and still gets the answer. Default false: it counts as gone.
    pub half_close: bool,
    /// Listeners speak HTTP/2 with clients that ask for it. Default true.
    pub http2: bool,
    /// Backends with https are offered HTTP/2. Default false: those whose endpoint says `version="2.0"`.
    pub http2_backends: bool,
    /// `/services/` lists the services. Default true.
    pub list_services: bool,
    /// Forward the client's User-Agent. Default false.
    pub preserve_user_agent: bool,
    /// Forward the backend's Server header. Default true.
    pub preserve_server: bool,
    /// Headers that are not regenerated on the way out.
    pub preserve_headers: Vec<String>,
    /// How backends reach this server to answer on connections of their own. Default: where the client connected to.
    pub callback_address: String,
    /// Which requests go first where more come than are to be answered at a time: a `priorityConfigFile` of WSO2. Default: the one
    /// that the listener of the server's own settings names, else none.
    pub priorities: Option<PathBuf>,
    /// Header with the correlation id of a request; empty: none is made. Default `activityid`.
    pub correlation_header: String,
    /// Where messages may be sent whose address is computed while they run. Default: everywhere.
    pub dynamic_addresses: Option<Vec<String>>,
    /// Users and their passwords, for the basic authentication of APIs (`RESTBasicAuthHandler`).
    pub users: Users,
    /// The roles of these users: for WS-Security (`allowedroles`), `requiredRoles` of data services, and as scopes in access profiles.
    pub roles: std::collections::HashMap<String, Vec<String>>,
}

/// See [`Settings::task`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Task {
    /// Whose clock cron expressions mean that name no time zone (`Europe/Berlin`). Default: that of the system.
    pub time_zone: Option<String>,
    /// A task may run while its run before goes on, where its trigger does not say. Default false.
    pub overlap: bool,
}

/// Passwords by user; they are never shown.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Users(pub std::collections::HashMap<String, String>);

impl std::fmt::Debug for Users {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} users", self.0.len())
    }
}

impl Default for Http {
    fn default() -> Http {
        Http {
            keep_alive: true,
            half_close: false,
            http2: true,
            http2_backends: false,
            list_services: true,
            preserve_user_agent: false,
            preserve_server: true,
            preserve_headers: Vec::new(),
            callback_address: String::new(),
            priorities: None,
            correlation_header: "activityid".to_owned(),
            dynamic_addresses: None,
            users: Users::default(),
            roles: std::collections::HashMap::new(),
        }
    }
}

/// See [`Settings::tls`]. Without a certificate, `--https` uses one that is made at the start.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// PEM chain.
    pub certificate: Option<PathBuf>,
    /// PEM key.
    pub key: Option<PathBuf>,
    /// PEM bundle of authorities for client certificates.
    pub client_roots: Option<PathBuf>,
    /// `none` (default), `optional`, `require`.
    pub client_verify: Option<String>,
    /// Certificates for clients that ask for other hosts.
    pub hosts: Vec<Host>,
    /// `TLSv1.2`, `TLSv1.3`; both by default.
    pub versions: Vec<String>,
    /// Cipher suites, the preferred one first; all that are safe by default.
    pub ciphers: Vec<String>,
    /// Files with revocation lists of client certificates.
    pub revoked: Vec<PathBuf>,
    /// Servers are asked whether client certificates are revoked: `off` (default), `soft`, `hard`.
    pub ocsp: crate::ocsp::Demand,
    /// A response of OCSP about `certificate`, in DER, which clients get with it.
    pub ocsp_response: Option<PathBuf>,
}

/// `[[tls.hosts]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// PEM chain.
    pub certificate: PathBuf,
    /// PEM key.
    pub key: PathBuf,
}

/// The TLS profile of https endpoints.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// `host:port`, `host` or `*`.
    pub server: String,
    /// PEM bundle of trusted authorities; those of the system by default.
    #[serde(default)]
    pub roots: Option<PathBuf>,
    /// PEM chain to show.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// PEM key of `certificate`.
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// Name to ask for and to verify.
    #[serde(default)]
    pub server_name: Option<String>,
    /// Trust whatever certificate is shown.
    #[serde(default)]
    pub insecure: bool,
    /// Do not check the host name.
    #[serde(default)]
    pub any_host_name: bool,
    /// `asked` (default), `localhost`, `any`.
    #[serde(default)]
    pub host_names: Option<String>,
    /// `TLSv1.2`, `TLSv1.3`; both by default.
    #[serde(default)]
    pub versions: Vec<String>,
    /// Cipher suites, the preferred one first; all that are safe by default.
    #[serde(default)]
    pub ciphers: Vec<String>,
    /// Files with revocation lists.
    #[serde(default)]
    pub revoked: Vec<PathBuf>,
    /// Servers are asked whether certificates are revoked: `off` (default), `soft`, `hard`.
    #[serde(default)]
    pub ocsp: crate::ocsp::Demand,
}

/// See [`Settings::sql`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sql {
    /// What runs the statements for databases that live in a Java machine (H2, Derby). Default: nothing does.
    pub embedded: Option<Embedded>,
    /// Longest run of a statement where its data source does not say. Default 2m.
    pub timeout: Option<Time>,
    /// Most bytes of a value that a database gives. Default 32MiB.
    pub value: Option<Size>,
}

/// See [`Sql::embedded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Embedded {
    /// SQLite, as far as its SQL allows.
    Sqlite,
}

/// See [`Settings::security`].
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Security {
    /// JKS, PKCS#12 or PEM with the private key.
    pub keystore: Option<PathBuf>,
    /// Its password.
    pub password: String,
    /// That of its private keys, where it is another one.
    pub key_password: Option<String>,
    /// The private key that signs, where there are several.
    pub alias: String,
    /// JKS, PKCS#12 or PEM with the certificates that are trusted. Default: those in `keystore`.
    pub truststore: Option<PathBuf>,
    /// Its password.
    pub trust_password: String,
    /// Lists of revoked certificates, DER or PEM.
    pub revoked: Vec<PathBuf>,
    /// Servers are asked whether certificates of signers are revoked: `off` (default), `soft`, `hard`.
    pub ocsp: crate::ocsp::Demand,
}

impl std::fmt::Debug for Security {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Security({:?}, {:?})", self.keystore, self.truststore)
    }
}

/// See [`Settings::deploy`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Deploy {
    /// The path that is run is watched, and what changes comes into force. Default true, unless the settings of a WSO2 server say
    /// otherwise.
    pub watch: Option<bool>,
    /// How often it is looked at where the system does not tell of changes. Default 5s.
    pub interval: Option<Time>,
    /// For how long nothing may change before changes are taken. Default 500ms.
    pub quiet: Option<Time>,
    /// Local entries, WSDLs and registry resources at http and https URLs are read. Default true.
    pub fetch: Option<bool>,
    /// How many generations can be looked at and rolled back to. Default 10.
    pub generations: Option<usize>,
    /// A file that keeps who is started and stopped over a restart. Default: `busbar.state` in the directory that the service manager gives
    /// (`STATE_DIRECTORY`); else none.
    pub state: Option<PathBuf>,
}

/// See [`Settings::log`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// `error`, `warn`, `info` (default), `debug`, `trace`, or a filter like `info,busbar::log=debug`.
    pub level: Option<String>,
    /// `text` (default) or `json`.
    pub format: Option<String>,
    /// Access log: `off` (default), `common`, `combined`, or a pattern.
    pub access: Option<String>,
    /// Where the access log goes: `stdout` (default), `stderr`, or a file.
    pub access_to: Option<String>,
    /// Services (proxy services, APIs, `main`, or `*`) whose messages are traced. Default none.
    pub trace: Vec<String>,
    /// Services and endpoints for which the wire log is on. Default none.
    pub wire: Vec<String>,
    /// Most bytes of a payload in traces and in the wire log. Default 8k.
    pub payload: Option<Size>,
}

/// Shortest time between two looks at the configuration.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);

/// Largest buffer of a connection, in bytes: each of them has one.
const LARGEST_BUFFER: usize = 16 << 20;

impl Limits {
    /// Values of the right type that no bus could serve with.
    fn check(&self) -> Result<(), String> {
        if self.connections == Some(0) {
            return Err("limits.connections: 0 lets nobody in; expected 1 or more".to_owned());
        }
        match self.io_buffer_size {
            Some(Size(bytes)) if bytes == 0 || bytes > LARGEST_BUFFER => {
                Err(format!("limits.io_buffer_size: expected 1 to {}m", LARGEST_BUFFER >> 20))
            }
            _ => Ok(()),
        }
    }
}

impl Deploy {
    /// Values of the right type that have no use.
    fn check(&self) -> Result<(), String> {
        for (name, time) in [("interval", self.interval), ("quiet", self.quiet)] {
            if time.is_some_and(|time| time.0 < SHORTEST_LOOK) {
                return Err(format!("deploy.{name}: expected {} ms or more", SHORTEST_LOOK.as_millis()));
            }
        }
        if self.generations == Some(0) {
            return Err("deploy.generations: the one in force is one; expected 1 or more".to_owned());
        }
        Ok(())
    }
}

impl Settings {
    /// Who asks whether certificates are revoked, if somebody is to be asked.
    ///
    /// # Errors
    /// `[ocsp]` names a server that is none.
    pub fn asked(&self, demand: crate::ocsp::Demand) -> Result<Option<transport::Ocsp>, String> {
        crate::ocsp::asked(demand, &self.ocsp, self.http.dynamic_addresses.as_ref(), &self.proxy)
    }

    /// Unknown names, each with the nearest name that there is.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Reads the settings for a configuration: `file`, or `busbar.toml` beside or in it; then the environment and
    /// `--set`.
    ///
    /// # Errors
    /// A file cannot be read, or a setting is unknown or has a bad value: what, and where it came from.
    pub fn load(configuration: &Path, file: Option<&Path>, set: &[String]) -> Result<Settings, String> {
        let file = file.map(Path::to_path_buf).or_else(|| beside(configuration));
        let mut table = match &file {
            None => toml::Table::new(),
            Some(path) => crate::settings_file::read::<Settings>(path)?,
        };
        let (mut environment, mut remarks) = (Vec::new(), Vec::new());
        for (written, value) in std::env::vars_os() {
            let (Ok(written), Ok(value)) = (written.into_string(), value.into_string()) else { continue };
            let Some(name) = written.strip_prefix("BUSBAR_").map(str::to_ascii_lowercase) else { continue };
            let section = name.split_once('_').filter(|(section, _)| SECTIONS.contains(section));
            match section {
                Some((section, key)) if names_of(section).contains(&key) => {
                    environment.push((format!("{section}.{key}"), value));
                }
                _ if SINGLE.contains(&&*name) => environment.push((name, value)),
                // Passwords of the vault are not settings: somebody could print those.
                _ if ["vault_password", "vault_new_password"].contains(&&*name) => {}
                _ if section.is_none()
                    && NOT_SETTINGS.iter().any(|other| {
                        // `fuzz_seconds` and `simulation_runs` are variables of `fuzz` and `simulation`.
                        name.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
                    }) => {}
                _ => remarks.push(unknown_variable(&written)),
            }
        }
        environment.sort();
        remarks.sort();
        let mut errors = Vec::new();
        for (key, value) in environment {
            if let Err(why) = set_one(&mut table, &key, &value) {
                errors.push(format!("environment, {key}: {why}"));
            }
        }
        for assignment in set {
            match assignment.split_once('=') {
                Some((key, value)) => {
                    if let Err(why) = set_one(&mut table, key.trim(), value.trim()) {
                        errors.push(format!("--set {}: {why}", key.trim()));
                    }
                }
                None => errors.push(format!("--set {assignment}: expected K=V")),
            }
        }
        if !errors.is_empty() {
            return Err(errors.join("\n"));
        }
        let server = Server::read(configuration);
        let secured = table.get("tls").is_some_and(|tls| tls.get("certificate").is_some());
        for (section, of_server) in [("http", server.http()), ("listen", server.listen(secured)?)] {
            if !of_server.is_empty()
                && let Some(here) =
                    table.entry(section).or_insert_with(|| toml::Table::new().into()).as_table_mut()
            {
                for (name, value) in of_server {
                    here.entry(name).or_insert(value);
                }
            }
        }
        let has_store = crate::user_store::add(server.tables(), &mut table, &mut remarks);
        // The settings as written keep the names of the secrets: they are compared and shown.
        let mut filled = table.clone();
        let mut missing = crate::secrets::fill_in(&mut filled, configuration);
        if has_store {
            crate::user_store::give_up([&mut table, &mut filled], &mut missing, &mut remarks);
        }
        let mut settings = Settings::deserialize(filled)
            .map_err(|error| crate::settings_file::sentence("", error.message()))?;
        settings.missing_secrets = missing;
        settings.limits.check()?;
        settings.deploy.check()?;
        for (name, fate) in crate::tunables::report(&settings.wso2) {
            if fate == crate::tunables::Fate::Unknown {
                remarks.push(remark(
                    format!("wso2.\"{name}\" is not known and has no effect"),
                    &name,
                    crate::tunables::names(),
                ));
            }
        }
        for (name, value) in server.tunables() {
            settings.wso2.entry(name).or_insert(value);
        }
        for user in server.users() {
            let Entry::Vacant(vacant) = settings.http.users.0.entry(user.name) else { continue };
            if user.is_admin {
                settings.http.roles.entry(vacant.key().clone()).or_insert_with(|| vec!["admin".to_owned()]);
            }
            vacant.insert(user.password);
        }
        if settings.proxy.is_empty() {
            settings.proxy = crate::proxies::of_server(&server);
        }
        if settings.http.priorities.is_none() {
            settings.http.priorities = server.priorities();
        }
        settings.kinds = server.kinds();
        settings.system = Arc::new(server.system());
        settings.deploy.watch = settings.deploy.watch.or_else(|| server.hot_deployment());
        table.insert("wso2".to_owned(), settings.wso2.clone().into());
        (settings.remarks, settings.written, settings.file) = (remarks, table, file);
        Ok(settings)
    }

    /// The settings that differ in `new` and are read only at the start, by name.
    pub fn needs_restart(&self, new: &Settings) -> Vec<String> {
        let mut changed = Vec::new();
        changes(&self.written, &new.written, "", &mut changed);
        changed.retain(|name| {
            START_ONLY.iter().any(|section| name == section || name.starts_with(&format!("{section}.")))
        });
        changed
    }
}

/// Settings, or sections of them, that a reload does not change.
const START_ONLY: &[&str] = &[
    "workers",
    "admin",
    "deploy",
    "listen",
    "limits.aggregate_parts",
    "limits.aggregate_time",
    "limits.backend_connections",
    "limits.backend_waiting",
    "limits.dns_failure_ttl",
    "limits.dns_ttl",
    "limits.drain",
    "limits.idle_backend",
    "limits.idle_connections",
    "limits.io_buffer_size",
    "limits.script_memory",
    "limits.script_stack",
    "limits.spill",
    "limits.spill_directory",
    "limits.spill_total",
    "limits.store_messages",
    "limits.store_size",
    "log",
];

/// The names of the values that differ.
fn changes(old: &toml::Table, new: &toml::Table, within: &str, changed: &mut Vec<String>) {
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        let name = format!("{within}{key}");
        match (old.get(key), new.get(key)) {
            (Some(toml::Value::Table(old)), Some(toml::Value::Table(new))) => {
                changes(old, new, &format!("{name}."), changed);
            }
            (Some(toml::Value::Table(table)), None) | (None, Some(toml::Value::Table(table))) => {
                changes(table, &toml::Table::new(), &format!("{name}."), changed);
            }
            (old, new) if old != new => changed.push(name),
            _ => {}
        }
    }
}

/// Sections that the environment may set.
const SECTIONS: &[&str] =
    &["listen", "limits", "http", "tls", "ocsp", "vault", "sql", "security", "deploy", "task", "log"];
/// Settings outside of sections that it may set.
const SINGLE: &[&str] = &["workers", "dialect"];
/// Variables of the same beginning that mean something else: the filter of the log, and what tests and builds take.
const NOT_SETTINGS: &[&str] = &[
    "log",
    "suites",
    "cases",
    "ledger",
    "docs",
    "hostile",
    "differential",
    "fuzz",
    "pgo",
    "profile",
    "rounds",
    "simulation",
    "slot",
];

fn unknown_variable(written: &str) -> String {
    let sections = SECTIONS.iter().map(|section| (format!("{section}_"), names_of(section)));
    let sections = sections.chain([(String::new(), SINGLE)]);
    let name = |section: &str, name: &str| format!("BUSBAR_{section}{name}").to_ascii_uppercase();
    let names: Vec<String> =
        sections.flat_map(|(section, names)| names.iter().map(move |field| name(&section, field))).collect();
    let message = format!("the environment variable {written} is not known and has no effect");
    remark(message, written, names.iter().map(String::as_str))
}

/// The names of the settings of one of [`SECTIONS`].
fn names_of(section: &str) -> &'static [&'static str] {
    match section {
        "listen" => names::<Listen>(),
        "limits" => names::<Limits>(),
        "http" => names::<Http>(),
        "tls" => names::<Tls>(),
        "ocsp" => names::<crate::ocsp::Asking>(),
        "vault" => names::<Vault>(),
        "sql" => names::<Sql>(),
        "security" => names::<Security>(),
        "deploy" => names::<Deploy>(),
        "task" => names::<Task>(),
        "log" => names::<Log>(),
        _ => &[],
    }
}

/// The names of the settings of a section.
fn names<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    /// Collects the names of the fields that a struct asks for, and gives it no values.
    struct FieldNames<'a>(&'a mut &'static [&'static str]);

    impl<'de> serde::Deserializer<'de> for FieldNames<'_> {
        type Error = serde::de::value::Error;

        fn deserialize_struct<V: serde::de::Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            *self.0 = fields;
            self.deserialize_any(visitor)
        }

        fn deserialize_any<V: serde::de::Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(serde::de::Error::custom("nothing"))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    let mut fields: &'static [&'static str] = &[];
    let _ = T::deserialize(FieldNames(&mut fields));
    fields
}

fn remark<'a>(message: String, name: &str, names: impl Iterator<Item = &'a str>) -> String {
    match diagnostics::did_you_mean(name, names) {
        Some(help) => format!("{message}; {help}"),
        None => message,
    }
}

fn beside(configuration: &Path) -> Option<PathBuf> {
    let inside = configuration.join("busbar.toml");
    let beside = configuration.parent().map(|parent| parent.join("busbar.toml"));
    [Some(inside), beside].into_iter().flatten().find(|path| path.is_file())
}

/// As [`put`], unless the settings cannot be read with it.
fn set_one(table: &mut toml::Table, key: &str, value: &str) -> Result<(), String> {
    let mut with = table.clone();
    put(&mut with, key, value);
    match Settings::deserialize(with.clone()) {
        Ok(_) => *table = with,
        Err(error) => return Err(crate::settings_file::sentence(key, error.message())),
    }
    Ok(())
}

/// Sets `a.b` to a value, read as TOML where it is one, else as a string.
fn put(table: &mut toml::Table, key: &str, value: &str) {
    let parsed: Option<toml::Value> =
        format!("v = {value}").parse::<toml::Table>().ok().and_then(|mut table| table.remove("v"));
    let value = parsed.unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let mut table = table;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() || part == "wso2" {
            let rest: Vec<&str> = std::iter::once(part).chain(parts).collect();
            let (table, name) = match rest.as_slice() {
                ["wso2", rest @ ..] if !rest.is_empty() => {
                    let section =
                        table.entry("wso2").or_insert_with(|| toml::Value::Table(toml::Table::new()));
                    match section {
                        toml::Value::Table(section) => (section, rest.join(".")),
                        _ => return,
                    }
                }
                rest => (table, rest.join(".")),
            };
            table.insert(name, value);
            return;
        }
        let next = table.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if !next.is_table() {
            *next = toml::Value::Table(toml::Table::new());
        }
        let toml::Value::Table(next) = next else { return };
        table = next;
    }
}

/// Gives a limit the value of the settings, if they have one.
pub(crate) fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_from_a_file_and_from_assignments() {
        let folder = std::env::temp_dir().join(format!("busbar-settings-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("busbar.toml");
        std::fs::write(&file, "workers = 3\n[limits]\nidle = '5s'\nbody = '1m'\n").unwrap();
        let set = [
            "limits.idle=250ms".to_owned(),
            "http.keep_alive=false".to_owned(),
            "wso2.synapse.threads.core=20".to_owned(),
        ];
        let settings = Settings::load(&folder, None, &set).unwrap();
        assert_eq!(settings.workers, Some(3));
        assert_eq!(settings.limits.idle, Some(Time(Duration::from_millis(250))));
        assert_eq!(settings.limits.body, Some(Size(1 << 20)));
        assert!(!settings.http.keep_alive && settings.wso2.contains_key("synapse.threads.core"));
        for (bad, part) in [
            ("limits.idel=1s", "idel"),
            ("limits.idle=soon", "not a time"),
            ("limits.drain=9223372036854775807s", "too long"),
            ("limits.drain=9223372036854775807", "too long"),
            ("limits.body=18446744073709551615", "too large"),
            ("limits.body=9223372036854775807", "too large"),
            ("limits.body=99999999999999999g", "too large"),
            ("limits.io_buffer_size=17m", "io_buffer_size"),
            ("limits.io_buffer_size=0", "io_buffer_size"),
            ("limits.connections=0", "lets nobody in"),
            ("deploy.quiet=0", "10 ms or more"),
            ("deploy.generations=0", "1 or more"),
            ("workers=x", "workers"),
            ("nonsense", "K=V"),
        ] {
            let error = Settings::load(&folder, None, &[bad.to_owned()]).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let changed = [
            ("workers = 4\n[limits]\nidle = '9s'\nbody = '2m'\n[log]\nlevel = 'debug'", "log.level workers"),
            ("workers = 3\n[limits]\ndrain = '9s'\n[http]\nlist_services = false", "limits.drain"),
            ("workers = 3\n[limits]\nbody = '1m'\n[listen]\nhttp = '127.0.0.1:1'", "listen.http"),
        ];
        for (text, names) in changed {
            std::fs::write(&file, text).unwrap();
            let new = Settings::load(&folder, None, &set).unwrap();
            assert_eq!(settings.needs_restart(&new).join(" "), names, "{text}");
        }
        std::fs::write(&file, "limits = 3").unwrap();
        assert!(Settings::load(&folder, None, &[]).unwrap_err().contains("busbar.toml"));
        std::fs::write(&file, "[wso2]\n'synapse.global_timout_interval' = 1").unwrap();
        let remarks = Settings::load(&folder, None, &[]).unwrap().remarks().to_vec();
        assert!(
            remarks.iter().any(|remark| remark.contains("did you mean `synapse.global_timeout_interval`?")),
            "{remarks:?}"
        );
        for section in SECTIONS {
            assert!(!names_of(section).is_empty(), "{section}");
        }
        assert!(unknown_variable("BUSBAR_LIMTS_IDLE").contains("did you mean `BUSBAR_LIMITS_IDLE`?"));
        assert!(unknown_variable("BUSBAR_LIMIT_REGISTRY_SIZE").contains("`BUSBAR_LIMITS_REGISTRY_SIZE`?"));
        // A line of the file may hold a password.
        std::fs::write(&file, "[http.users]\nme = 'hunter2").unwrap();
        let error = Settings::load(&folder, None, &[]).unwrap_err();
        assert!(error.contains("busbar.toml:2:") && !error.contains("hunter2"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
