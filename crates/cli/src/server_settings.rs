//! Settings of a WSO2 server (`deployment.toml`, `synapse.properties`, `passthru-http.properties`): what of them counts here, and
//! what becomes of each other key.

use crate::secrets::is_filled_in;
use crate::tunables::{self, Fate};
use diagnostics::{Diagnostic, Severity, SourceMap, Span};
use message::Kind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Keys of `deployment.toml` that are tunables of the engine under other names.
const TUNABLES: &[(&str, &str)] = &[
    ("mediation.synapse.global_timeout_interval", "synapse.global_timeout_interval"),
    ("mediation.synapse.enable_xpath_dom_failover", "synapse.xpath.dom.failover.enabled"),
    ("mediation.synapse.preserve_namespace_on_xml_to_json", "synapse.commons.json.preserve.namespace"),
    ("mediation.synapse.enable_namespace_declaration", "synapse.commons.json.output.enableNSDeclarations"),
    ("mediation.synapse.enable_auto_primitive", "synapse.commons.json.output.autoPrimitive"),
    (
        "mediation.synapse.disable_auto_primitive_regex",
        "synapse.commons.json.output.disableAutoPrimitive.regex",
    ),
    ("mediation.synapse.json_out_auto_array", "synapse.commons.json.output.jsonoutAutoArray"),
    ("mediation.synapse.json_out_multiple_pi", "synapse.commons.json.output.jsonoutMultiplePI"),
    ("mediation.synapse.xml_out_multiple_pi", "synapse.commons.json.output.xmloutMultiplePI"),
    ("mediation.synapse.enable_xml_nil", "synapse.commons.enableXmlNilReadWrite"),
    ("mediation.synapse.enable_xml_null_for_empty_element", "synapse.commons.enableXmlNullForEmptyElement"),
    ("mediation.synapse.build_valid_nc_name", "synapse.commons.json.buildValidNCNames"),
    ("transport.http.socket_timeout", "http.socket.timeout"),
    ("transport.http.connection_timeout", "http.connection.timeout"),
    ("transport.http.sender.connection_timeout", "http.connection.timeout"),
    ("transport.http.enable_message_size_validation", "message.size.validation.enabled"),
    (LARGEST, "valid.max.message.size.in.bytes"),
    ("transport.http.force_xml_validation", "force.xml.message.validation"),
    ("transport.http.force_json_validation", "force.json.message.validation"),
];

/// The size of the largest message.
const LARGEST: &str = "transport.http.max_message_size_bytes";

/// Its value where `deployment.toml` lets sizes be checked and says none.
pub(crate) const LARGEST_BY_DEFAULT: i64 = 81_920;

/// Puts what a key says into a setting here; `None`: it says nothing that this could be.
type Translate = fn(&toml::Value) -> Option<toml::Value>;

/// Keys of `deployment.toml` and of `passthru-http.properties` that are settings of `[http]` here.
const HTTP: &[(&str, &str, &str, Translate)] = &[
    ("transport.http.preserve_http_user_agent", "http.user.agent.preserve", "preserve_user_agent", same),
    ("transport.http.preserve_http_server_name", "http.server.preserve", "preserve_server", same),
    ("transport.http.preserve_http_headers", "http.headers.preserve", "preserve_headers", kept_headers),
    (
        "transport.http.disable_connection_keepalive",
        "http.connection.disable.keepalive",
        "keep_alive",
        opposite,
    ),
    ("transport.http.block_service_list", "http.block_service_list", "list_services", opposite),
    ("transport.http.correlation_header_name", "correlation_header_name", "correlation_header", header_name),
];

/// Keys that say where the bus listens.
pub(crate) const OFFSET: &str = "server.offset";
pub(crate) const PORT: &str = "transport.http.listener.port";
pub(crate) const SECURED_PORT: &str = "transport.http.listener.secured_port";
pub(crate) const BIND_ADDRESS: &str = "transport.http.listener.bind_address";

/// The section of properties of the Java machine.
pub(crate) const SYSTEM: &str = "system.parameter.";

/// What requests can keep; the others that WSO2 names are kept anyway.
const KEPT: [&str; 5] = ["Host", "Expect", "Date", "Server", "User-Agent"];

/// Sections whose keys are tunables under their own names.
const VERBATIM: [&str; 4] = ["synapse_properties.", "passthru_http.", "passthru_properties.", "synapse."];

const OTHER_TRANSPORT: Fate = Fate::NoEffect(
    "has no effect: there is no such transport here; services that use it are named one by one",
);
const PRIORITIES: Fate = Fate::Honoured("is honoured, unless `http.priorities` is set in busbar.toml");
const LISTEN: Fate = Fate::Mapped("is not read here: set `listen.http` and `listen.https` in busbar.toml");
const USERS: Fate = Fate::Honoured("is read: a user, unless `http.users` in busbar.toml names the same");
const SENDER: Fate = Fate::NotNeeded("is not needed: each endpoint has its own timeouts and TLS profile");
const PROFILE: Fate = Fate::Mapped("is not read here: set `[[profile]]` in busbar.toml, with PEM files");
const LISTENER_TLS: Fate = Fate::Mapped("is not read here: set `[tls]` in busbar.toml, with PEM files");
const SECURED_PROXY: Fate =
    Fate::Mapped("is not read here: set `[[proxy]]` in busbar.toml, which counts for http and https alike");
const PARAMETER: Fate = Fate::NoEffect(
    "has no effect: of the parameters of the listener and the sender none is read; properties of the transport stand in `[passthru_properties]`",
);
const JAVA: Fate = Fate::NoEffect("has no effect: what is written in Java cannot run here");
const BLOCKING: Fate = Fate::NotNeeded("is not needed: blocking calls use the same client");
const SERVER: Fate = Fate::NotNeeded("is not needed: it describes a server of WSO2 itself");
const THREADS: Fate = Fate::NotNeeded("is not needed: messages that wait hold no thread");
const AS_HTTP: Fate = Fate::Honoured("is honoured, unless `[http]` is set in busbar.toml");

/// Beginnings of keys of `deployment.toml`, the longer ones first, with what becomes of them.
const KEYS: &[(&str, Fate)] = &[
    (PORT, Fate::Honoured("is honoured, unless `listen.http` is set in busbar.toml")),
    (
        SECURED_PORT,
        Fate::Honoured(
            "is honoured where `[tls]` in busbar.toml has a certificate, unless `listen.https` is set there",
        ),
    ),
    (
        BIND_ADDRESS,
        Fate::Honoured("is honoured, unless `listen.http` and `listen.https` are set in busbar.toml"),
    ),
    ("transport.http.listener.secured_bind_address", LISTEN),
    (
        "transport.http.listener.wsdl_epr_prefix",
        Fate::NotNeeded("is not needed: addresses in a WSDL are those that the client asked"),
    ),
    ("transport.http.listener.parameter.priorityConfigFile", PRIORITIES),
    ("transport.http.listener.priority_config_file", PRIORITIES),
    ("transport.http.listener.secured_", Fate::Mapped("is not read here: set `[tls]` in busbar.toml")),
    ("transport.http.listener.keystore.", LISTENER_TLS),
    ("transport.http.listener.preferred_ciphers", LISTENER_TLS),
    ("transport.http.listener.ssl_profile.", LISTENER_TLS),
    ("transport.http.listener.truststore.", LISTENER_TLS),
    ("transport.http.listener.verify_client", LISTENER_TLS),
    ("transport.http.listener.parameter", PARAMETER),
    (
        "transport.http.listener.certificate_revocation",
        Fate::Mapped("is not read here: set `tls.ocsp` (and `[ocsp]`) in busbar.toml"),
    ),
    ("transport.http.listener.enable", LISTEN),
    ("transport.http.listener.hostname", LISTEN),
    (
        "transport.http.io_buffer_size",
        Fate::Mapped("is not read here: set `limits.io_buffer_size` in busbar.toml"),
    ),
    (
        "transport.http.max_open_connections",
        Fate::Mapped("is not read here: set `limits.connections` in busbar.toml"),
    ),
    (
        "transport.http.max_http_connection_per_host_port",
        Fate::Mapped("is not read here: set `limits.backend_connections` in busbar.toml"),
    ),
    (
        "transport.http.force_passthrough_builder",
        Fate::NotNeeded("is not needed: a message is read when somebody asks"),
    ),
    ("transport.http.sender.ssl_profile", PROFILE),
    (
        "transport.http.sender.hostname_verifier",
        Fate::Mapped("is not read here: set `host_names` of a `[[profile]]` in busbar.toml"),
    ),
    ("transport.http.sender.keystore.", PROFILE),
    ("transport.http.sender.secured_protocols", PROFILE),
    ("transport.http.sender.truststore.", PROFILE),
    ("transport.http.sender.secured_proxy", SECURED_PROXY),
    ("transport.http.sender.secured_non_proxy", SECURED_PROXY),
    ("transport.http.secured_proxy_profile.", SECURED_PROXY),
    ("transport.http.sender.proxy", Fate::Honoured("is honoured, unless `[[proxy]]` is set in busbar.toml")),
    (
        "transport.http.sender.non_proxy_hosts",
        Fate::Honoured("is honoured, unless `[[proxy]]` is set in busbar.toml"),
    ),
    ("transport.http.proxy_profile", Fate::Honoured("is honoured, unless `[[proxy]]` is set in busbar.toml")),
    (
        "transport.http.sender.certificate_revocation",
        Fate::Mapped("is not read here: set `ocsp` of `[[profile]]` (and `[ocsp]`) in busbar.toml"),
    ),
    ("transport.http.sender.connection_timeout", SENDER),
    ("transport.http.sender.enable", SENDER),
    ("transport.http.sender.hostname", SENDER),
    ("transport.http.sender.parameter", PARAMETER),
    ("transport.http.sender.secured_", SENDER),
    ("transport.http.sender.so_timeout", SENDER),
    ("transport.http.sender.socket_timeout", SENDER),
    ("transport.http.sender.warn_on_http_500", SENDER),
    ("transport.http.sender_enable", SENDER),
    ("transport.http.sender_secured_enable", SENDER),
    ("transport.http.blocking_sender.", BLOCKING),
    ("transport.http.core_worker_pool", THREADS),
    ("transport.http.max_worker_pool", THREADS),
    ("transport.http.worker_pool", THREADS),
    ("transport.http.io_threads", THREADS),
    ("transport.http.", Fate::Unknown),
    (
        "transport.https.",
        Fate::NoEffect(
            "has no effect, and WSO2 does not read it either: set `listen.https` and `[tls]` in busbar.toml",
        ),
    ),
    ("transport.local.", Fate::NotNeeded("is not needed: `local://` addresses always work")),
    (
        "transport.ws.sender.outflow",
        Fate::NoEffect("has no effect: messages of a backend's WebSocket pass as they are"),
    ),
    (
        "transport.wss.sender.outflow",
        Fate::NoEffect("has no effect: messages of a backend's WebSocket pass as they are"),
    ),
    ("transport.wss.sender.truststore", PROFILE),
    ("transport.ws", Fate::NotNeeded("is not needed: WebSockets come through the same ports")),
    ("transport.vfs.", Fate::NoEffect("has no effect: the parameters of each service and address count")),
    ("transport.blocking_http", BLOCKING),
    ("custom_transport.", JAVA),
    ("transport.jms", OTHER_TRANSPORT),
    ("transport.jndi", OTHER_TRANSPORT),
    ("transport.rabbitmq", OTHER_TRANSPORT),
    ("transport.mail", OTHER_TRANSPORT),
    ("transport.fix", OTHER_TRANSPORT),
    ("transport.hl7", OTHER_TRANSPORT),
    ("transport.mqtt", OTHER_TRANSPORT),
    ("transport.msmq", OTHER_TRANSPORT),
    ("transport.sap", OTHER_TRANSPORT),
    ("transport.tcp", OTHER_TRANSPORT),
    ("transport.udp", OTHER_TRANSPORT),
    ("transport.phase_order", Fate::NoEffect("has no effect: there are no Axis2 modules here")),
    (
        "server.hostname",
        Fate::Mapped(
            "is not read here: addresses are those that the client asked, or set `http.callback_address` in busbar.toml",
        ),
    ),
    (
        OFFSET,
        Fate::Honoured(
            "is honoured: it moves the ports 8280, 8243 and 9154, where `[listen]` in busbar.toml says no others",
        ),
    ),
    ("server.hot_deployment", Fate::Honoured("is honoured, unless `deploy.watch` is set in busbar.toml")),
    (
        "server.enable_mtom",
        Fate::NotNeeded("is not needed: the Content-Type says whether a message has attachments"),
    ),
    (
        "server.enable_swa",
        Fate::NotNeeded("is not needed: the Content-Type says whether a message has attachments"),
    ),
    ("server.base_path", SERVER),
    ("server.disable_", SERVER),
    ("server.force_local_cache", SERVER),
    ("server.hide_", SERVER),
    ("server.http_proxy_port", SERVER),
    ("server.https_proxy_port", SERVER),
    ("server.internal_hostname", SERVER),
    ("server.key", SERVER),
    ("server.mgt_", SERVER),
    ("server.mode", SERVER),
    ("server.name", SERVER),
    ("server.node_id", SERVER),
    ("server.node_ip", SERVER),
    ("server.proxy_context_path", SERVER),
    ("server.role", SERVER),
    ("server.server_details", SERVER),
    ("server.server_key", SERVER),
    ("server.server_role", SERVER),
    ("server.type", SERVER),
    ("server.user_agent", SERVER),
    ("server.version", SERVER),
    (
        "keystore.",
        Fate::Mapped("is not read here: set `[tls]` and `[[profile]]` in busbar.toml, with PEM files"),
    ),
    (
        "truststore.",
        Fate::Mapped("is not read here: set `roots` of a `[[profile]]` in busbar.toml, a PEM file"),
    ),
    ("secrets.", Fate::Honoured("is read: its value is looked up where the configuration names the secret")),
    ("vault.", Fate::Mapped("is not read here: set `[vault]` in busbar.toml")),
    ("secure_vault.", Fate::Mapped("is not read here: set `[vault]` in busbar.toml")),
    ("http_access_log", Fate::Mapped("is not read here: set `log.access` in busbar.toml")),
    ("management_api", Fate::Mapped("is not read here: set `listen.admin` in busbar.toml")),
    ("internal_apis.users.user.name", USERS),
    ("internal_apis.users.user.password", USERS),
    ("internal_apis.users.user.is_admin", Fate::Honoured("is read: the user has the role `admin`")),
    (
        "internal_apis.users",
        Fate::NoEffect("has no effect: users have a name, a password and `is_admin` here"),
    ),
    (
        "internal_apis.file_user_store",
        Fate::Honoured("is honoured: without it `internal_apis.users` are not read"),
    ),
    ("internal_apis", Fate::Mapped("is not read here: set `listen.admin` in busbar.toml")),
    ("mediation.synapse.core_threads", THREADS),
    ("mediation.synapse.max_threads", THREADS),
    ("mediation.synapse.threads", THREADS),
    ("mediation.inbound", THREADS),
    ("mediation.flow", Fate::NotNeeded("is not needed: the admin address has metrics")),
    ("mediation.stat", Fate::NotNeeded("is not needed: the admin address has metrics")),
    ("mediation.synapse.temp_data", Fate::NotNeeded("is not needed: transformations write into one buffer")),
    (
        "mediation.synapse.script_mediator",
        Fate::NotNeeded("is not needed: each worker keeps its scripts compiled"),
    ),
    ("mediation.synapse.command_debugger", Fate::NoEffect("has no effect: there is no debugger")),
    ("mediation.synapse.event_debugger", Fate::NoEffect("has no effect: there is no debugger")),
    ("message_builders", Fate::NotNeeded("is not needed: the media type decides how a message is read")),
    ("message_formatters", Fate::NotNeeded("is not needed: the media type decides how a message is written")),
    (
        "custom_message_builders",
        Fate::Honoured("is honoured where a builder of Axis2 or WSO2 reads a type that nothing else tells"),
    ),
    ("custom_message_formatters", Fate::NoEffect("has no effect, because formatters are written in Java")),
    ("synapse_handlers", Fate::NoEffect("has no effect, because handlers are written in Java")),
    (
        "datasource.",
        Fate::Honoured("is read: a data source, which mediators name by its `id` or as `jdbc/ID`"),
    ),
    ("data_source", Fate::Mapped("is not read here: set `[[datasource]]` in busbar.toml")),
    ("cluster_config", Fate::NoEffect("has no effect: nodes do not coordinate")),
    ("dashboard_config", Fate::NoEffect("has no effect: the admin address serves what a dashboard shows")),
    ("icp_config", Fate::NoEffect("has no effect: the admin address serves what a control plane shows")),
    ("service_catalog", Fate::NoEffect("has no effect: there is no service catalogue")),
    ("monitoring", Fate::NotNeeded("is not needed: the admin address has metrics and states")),
    ("metrics", Fate::NotNeeded("is not needed: the admin address has metrics and states")),
    ("prometheus", Fate::NotNeeded("is not needed: the admin address has metrics")),
    ("opentelemetry", Fate::NoEffect("has no effect yet")),
    ("analytics", Fate::NoEffect("has no effect: nothing is published")),
    ("user_store", Fate::NoEffect("has no effect")),
    ("file_based_user_store", Fate::NoEffect("has no effect: there are no users of the server")),
    ("super_admin", Fate::NoEffect("has no effect: there are no users of the server")),
    ("admin_service", Fate::NoEffect("has no effect: there are no admin services")),
    ("jndi", OTHER_TRANSPORT),
    ("broker", OTHER_TRANSPORT),
    ("system.parameter.", Fate::Honoured("is what `get-property('system', …)` gives")),
    ("registry", Fate::NotNeeded("is not needed: the registry is files")),
    ("transaction_counter", Fate::NoEffect("has no effect")),
    ("integration.transaction_counter", Fate::NoEffect("has no effect")),
];

/// What every server and every new project comes with: nobody decided for it.
const SHIPPED: [(&str, &str); 11] = [
    ("server.hostname", "localhost"),
    ("user_store.type", "read_only_ldap"),
    ("keystore.primary.file_name", "repository/resources/security/wso2carbon.jks"),
    ("keystore.primary.password", "wso2carbon"),
    ("keystore.primary.alias", "wso2carbon"),
    ("keystore.primary.key_password", "wso2carbon"),
    ("truststore.file_name", "repository/resources/security/client-truststore.jks"),
    ("truststore.password", "wso2carbon"),
    ("truststore.alias", "symmetric.key.value"),
    ("truststore.algorithm", "AES"),
    ("server.node_ip", "127.0.0.1"),
];

/// Files with tunables, in a directory of settings.
pub(crate) const FILES: [&str; 4] =
    ["synapse.properties", "passthru-http.properties", "nhttp.properties", "deployment.toml"];

/// One key with its place.
pub(crate) struct Written {
    /// With its sections: `transport.http.socket_timeout`.
    pub(crate) key: String,
    pub(crate) at: Range<usize>,
    /// Where its value is, in TOML.
    value: Range<usize>,
    /// Its value is one that only a server can fill in.
    is_filled_in: bool,
}

/// The directories in which a server, or a project for one, has its settings.
pub fn directories(path: &Path) -> [PathBuf; 3] {
    ["conf", "repository/conf", "deployment"].map(|name| path.join(name))
}

/// What a key is in `[http]`.
pub(crate) fn translation(
    key: &str,
) -> Option<&'static (&'static str, &'static str, &'static str, Translate)> {
    let property = VERBATIM.iter().find_map(|section| key.strip_prefix(section)).unwrap_or(key);
    HTTP.iter().find(|(toml, name, ..)| *toml == key || *name == property)
}

fn truth(value: &toml::Value) -> Option<bool> {
    value.as_bool().or_else(|| value.as_str()?.trim().parse().ok())
}

fn same(value: &toml::Value) -> Option<toml::Value> {
    truth(value).map(toml::Value::Boolean)
}

fn opposite(value: &toml::Value) -> Option<toml::Value> {
    truth(value).map(|value| toml::Value::Boolean(!value))
}

fn kept_headers(value: &toml::Value) -> Option<toml::Value> {
    let text = match value {
        toml::Value::Array(list) => list.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>().join(","),
        value => value.as_str()?.to_owned(),
    };
    let named = |item: &&str| text.split(',').any(|name| name.trim().eq_ignore_ascii_case(item));
    Some(KEPT.iter().copied().filter(named).map(toml::Value::from).collect::<Vec<_>>().into())
}

fn header_name(value: &toml::Value) -> Option<toml::Value> {
    let name = value.as_str()?.trim();
    (!name.is_empty() && name.bytes().all(message::is_token_byte)).then(|| toml::Value::from(name))
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    config::read_file(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

pub(crate) fn is_honoured(name: &str) -> bool {
    matches!(tunables::fate(name), Fate::Honoured(_))
}

/// The tunable that a key of `deployment.toml` sets.
pub(crate) fn tunable(key: &str) -> &str {
    let renamed = TUNABLES.iter().find(|(written, _)| *written == key).map(|(_, name)| *name);
    renamed.or_else(|| VERBATIM.iter().find_map(|section| key.strip_prefix(section))).unwrap_or(key)
}

pub(crate) fn flatten(prefix: &str, value: &toml::Value, out: &mut Vec<(String, toml::Value)>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&key, value, out);
            }
        }
        value => out.push((prefix.to_owned(), value.clone())),
    }
}

/// What becomes of each key in the files that the configuration at `root` found, with its place. Of the files no more is shown than
/// their keys: values may be secrets.
pub fn report(root: &Path, files: &[PathBuf], sources: &mut SourceMap) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for path in files {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // Its entries are values of the configuration.
        if name == "file.properties" {
            continue;
        }
        if !directories(root).iter().any(|directory| path.parent() == Some(directory.as_path())) {
            let file = sources.add(path.display().to_string(), "");
            let message = format!("`{}` has no effect: it lies in no directory of settings", path.display());
            let found_here = Diagnostic::warning("server-setting", message).at(Span::new(file, 0, 0), "");
            let help = "settings count in conf, repository/conf and deployment of the path that is run";
            found.push(found_here.help(help));
            continue;
        }
        let text = match read(path) {
            Ok(text) => text,
            Err(error) => {
                let file = sources.add(path.display().to_string(), "");
                let message = format!("`{}` cannot be read: {error}", path.display());
                found.push(Diagnostic::warning("unreadable-source", message).at(Span::new(file, 0, 0), ""));
                continue;
            }
        };
        let is_toml = is_toml(path);
        let keys = match is_toml {
            true => toml_keys(&text),
            false => Ok(property_keys(&text)),
        };
        let blanked = without_secrets(&text, keys.as_deref().unwrap_or_default());
        let file = sources.add(path.display().to_string(), blanked);
        let keys = match keys {
            Ok(keys) => keys,
            Err(error) => {
                let at = error.span().unwrap_or(0..0);
                let message = format!("deployment.toml cannot be read: {}", error.message());
                found.push(
                    Diagnostic::warning("server-setting", message)
                        .at(Span::new(file, at.start, at.end), "nothing of it counts"),
                );
                continue;
            }
        };
        let (mut flat, mut left_out) = (Vec::new(), Vec::new());
        if is_toml {
            let (tables, places) = config::deployment_tables(&text).unwrap_or_default();
            flatten("", &toml::Value::Table(tables), &mut flat);
            left_out = places;
        }
        let (too_large, keys): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|key| left_out.iter().any(|place| key.value.contains(&place.start)));
        found.extend(too_large.into_iter().map(|key| {
            let message = format!("`{}` has no effect: the number is too large", key.key);
            let place = Span::new(file, key.at.start, key.at.end);
            Diagnostic::warning("server-setting", message).at(place, "expected a number of at most 64 bits")
        }));
        let is_shipped = |written: &Written| {
            let value =
                flat.iter().find(|(key, _)| *key == written.key).and_then(|(_, value)| value.as_str());
            SHIPPED.iter().any(|(key, shipped)| *key == written.key && value == Some(*shipped))
        };
        let (shipped, decided): (Vec<_>, Vec<_>) = keys.into_iter().partition(is_shipped);
        let place = |written: &Written| Span::new(file, written.at.start, written.at.end);
        let value = |written: &Written| text.get(written.value.clone()).unwrap_or_default();
        let finding = |written: &Written| finding(written, value(written), is_toml).at(place(written), "");
        found.extend(decided.iter().map(finding));
        if let Some(first) = shipped.first() {
            let names: Vec<_> = shipped.iter().map(|written| format!("`{}`", written.key)).collect();
            let message =
                format!("not needed here, with the values that every new project has: {}", names.join(", "));
            found.push(Diagnostic::new("server-setting", Severity::Note, message).at(place(first), ""));
        }
    }
    found
}

/// The text with stars for the values of keys that sound secret, so that places stay what they are. Of a file that cannot be read only
/// white space, brackets and `=` are shown.
fn without_secrets(text: &str, keys: &[Written]) -> String {
    let mut keys = keys.iter().peekable();
    let mut is_secret = true;
    let mut blanked = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        while let Some(key) = keys.next_if(|key| key.at.end <= at) {
            is_secret = diagnostics::is_secret(&key.key);
        }
        let is_key = keys.peek().is_some_and(|key| key.at.contains(&at));
        if !is_secret || is_key || letter.is_ascii_whitespace() || matches!(letter, '[' | ']' | '=') {
            blanked.push(letter);
        } else {
            (0..letter.len_utf8()).for_each(|_| blanked.push('*'));
        }
    }
    blanked
}

/// `value`: as it is written.
fn finding(written: &Written, value: &str, is_toml: bool) -> Diagnostic {
    let key = written.key.as_str();
    let unquoted = value.trim_matches(['"', '\'']);
    let by_class = is_toml.then(|| of_class(key, unquoted)).flatten();
    let fate = match by_class.unwrap_or_else(|| if is_toml { fate(key) } else { property_fate(key) }) {
        Fate::Honoured(_)
            if written.is_filled_in
                && (is_honoured(tunable(key))
                    || translation(key).is_some()
                    || key.starts_with(SYSTEM)
                    || [OFFSET, PORT, SECURED_PORT, BIND_ADDRESS].contains(&key)
                    || key.starts_with("internal_apis.users.")) =>
        {
            Fate::NoEffect("has no effect: only a WSO2 server can fill in its value; write the value itself")
        }
        Fate::Honoured(text) if is_toml => {
            tunables::unread(tunable(key), unquoted).map_or(Fate::Honoured(text), Fate::NoEffect)
        }
        fate => fate,
    };
    let severity = match fate {
        Fate::Honoured(_) | Fate::NotNeeded(_) => Severity::Note,
        Fate::Mapped(_) | Fate::NoEffect(_) | Fate::Unknown => Severity::Warning,
    };
    let found = Diagnostic::new("server-setting", severity, format!("`{key}` {}", fate.text()));
    match fate {
        Fate::Unknown if is_toml => {
            let names = TUNABLES.iter().map(|(name, _)| *name).chain(KEYS.iter().map(|(name, _)| *name));
            found.did_you_mean(key, names.filter(|name| resembles(key, name)))
        }
        Fate::Unknown => found.did_you_mean(key, tunables::names().filter(|name| resembles(key, name))),
        _ => found,
    }
}

/// The builders of Axis2 that `[message_builders]` names, with how messages of their types are read here.
const BUILDERS: [(&str, Kind); 9] = [
    ("application_xml", Kind::Xml),
    ("form_urlencoded", Kind::Form),
    ("multipart_form_data", Kind::FormData),
    ("text_plain", Kind::Text),
    ("application_json", Kind::Json),
    ("json_badgerfish", Kind::Json),
    ("text_javascript", Kind::Json),
    ("octet_stream", Kind::Binary),
    ("application_binary", Kind::Binary),
];

/// How a builder of Axis2 or WSO2 reads, by its class.
pub(crate) fn read_by(class: &str) -> Option<Kind> {
    if !is_of_server(class.trim()) {
        return None;
    }
    Some(match class.trim().rsplit('.').next()? {
        "JsonStreamBuilder" | "JsonBuilder" | "JSONBuilder" | "JSONOMBuilder" | "JSONStreamBuilder" => {
            Kind::Json
        }
        "ApplicationXMLBuilder" => Kind::Xml,
        "SOAPBuilder" => Kind::Soap11,
        "PlainTextBuilder" => Kind::Text,
        "BinaryBuilder" | "BinaryRelayBuilder" => Kind::Binary,
        "XFormURLEncodedBuilder" => Kind::Form,
        "MultipartFormDataBuilder" => Kind::FormData,
        "MIMEBuilder" => Kind::Related,
        _ => return None,
    })
}

/// Whether a class is one that comes with a server.
fn is_of_server(class: &str) -> bool {
    ["org.apache.", "org.wso2."].iter().any(|package| class.starts_with(package))
}

/// What becomes of a class that reads or writes messages.
fn of_class(key: &str, class: &str) -> Option<Fate> {
    const OTHERWISE: Fate = Fate::NoEffect(
        "has no effect: messages of this type are read by their media type here, not as this class reads them",
    );
    match key.rsplit_once('.')? {
        ("custom_message_builders", "class") => read_by(class).is_none().then_some(JAVA),
        ("message_builders", name) => {
            match (BUILDERS.iter().find(|(known, _)| *known == name), read_by(class)) {
                (Some((_, kind)), Some(read)) if *kind != read => Some(OTHERWISE),
                (None, Some(_)) => Some(OTHERWISE),
                // BadgerFish has a builder of its own, whose messages are read as JSON.
                (_, None) if !is_of_server(class) => Some(JAVA),
                _ => None,
            }
        }
        ("message_formatters", _) => (!is_of_server(class)).then_some(JAVA),
        _ => None,
    }
}

/// Whether a key may be another one misspelt: their last parts resemble each other too, however long the parts before are.
fn resembles(key: &str, name: &str) -> bool {
    let name = name.trim_end_matches('.');
    let last = |text: &str| text.rsplit('.').next().unwrap_or(text).to_owned();
    let (written, meant) = (last(key), last(name));
    written == meant || diagnostics::nearest(&written, [meant.as_str()]).is_some()
}

/// What becomes of a key of a file of properties.
fn property_fate(key: &str) -> Fate {
    if translation(key).is_some() { AS_HTTP } else { tunables::fate(key) }
}

/// What becomes of a key of `deployment.toml`.
fn fate(key: &str) -> Fate {
    if translation(key).is_some() {
        return AS_HTTP;
    }
    if crate::user_store::is_read(key) {
        return Fate::Honoured("is read: a directory is the access profile `user_store`");
    }
    let name = tunable(key);
    if name != key {
        return tunables::fate(name);
    }
    KEYS.iter().find(|(start, _)| key.starts_with(start)).map_or(Fate::Unknown, |(_, fate)| *fate)
}

/// The keys of a TOML file that have values, those in arrays of tables included, in the order in which they stand there.
///
/// # Errors
/// It is no TOML.
pub(crate) fn toml_keys(text: &str) -> Result<Vec<Written>, toml::de::Error> {
    /// `before`: where the key begins that leads to this table, and where it ends.
    fn add(text: &str, prefix: &str, table: &DeTable<'_>, before: Range<usize>, keys: &mut Vec<Written>) {
        for (name, value) in table {
            let key = if prefix.is_empty() {
                name.get_ref().to_string()
            } else {
                format!("{prefix}.{}", name.get_ref())
            };
            let span = name.span();
            // `a.b.c = 1` is one key.
            let between = text.get(before.end..span.start).unwrap_or("\n");
            let is_dotted = !before.is_empty() && between.trim_matches([' ', '\t', '"', '\'']) == ".";
            let at = if is_dotted { before.start..span.end } else { span };
            let is_table = |entry: &toml::Spanned<DeValue<'_>>| entry.get_ref().is_table();
            match value.get_ref() {
                DeValue::Table(inside) => add(text, &key, inside, at, keys),
                DeValue::Array(entries) if !entries.is_empty() && entries.iter().all(is_table) => {
                    for inside in entries.iter().filter_map(|entry| entry.get_ref().as_table()) {
                        add(text, &key, inside, at.clone(), keys);
                    }
                }
                filled => {
                    let is_filled_in = filled.as_str().is_some_and(is_filled_in);
                    keys.push(Written { key, at, value: value.span(), is_filled_in });
                }
            }
        }
    }
    let mut keys = Vec::new();
    add(text, "", DeTable::parse(text)?.get_ref(), 0..0, &mut keys);
    keys.sort_by_key(|key| key.at.start);
    Ok(keys)
}

fn property_keys(text: &str) -> Vec<Written> {
    let mut keys = Vec::new();
    let mut continues = false;
    for (start, line) in lines(text) {
        let content = line.trim();
        if !continues && !content.is_empty() && !content.starts_with(['#', '!']) {
            let indent = line.len() - line.trim_start().len();
            let written = content.split(['=', ':', ' ', '\t']).next().unwrap_or(content);
            let at = start + indent..start + indent + written.len();
            keys.push(Written { key: written.to_owned(), at, value: 0..0, is_filled_in: false });
        }
        continues = content.ends_with('\\');
    }
    keys
}

/// The lines of a text with their offsets.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Server;

    /// The findings, each with its severity.
    fn shown(found: &[Diagnostic]) -> Vec<String> {
        found.iter().map(|finding| format!("{} {}", finding.severity.as_str(), finding.message)).collect()
    }

    /// What is said of a `deployment.toml`, and what `read` has of the home of its server.
    fn of_server<T>(name: &str, text: &str, read: impl FnOnce(&Path) -> T) -> (Vec<String>, T) {
        let root = std::env::temp_dir().join(format!("busbar-server-{name}-{}", std::process::id()));
        std::fs::create_dir_all(root.join("conf")).unwrap();
        let toml = root.join("conf/deployment.toml");
        std::fs::write(&toml, text).unwrap();
        let had = read(&root);
        let found = report(&root, &[toml], &mut SourceMap::new());
        std::fs::remove_dir_all(&root).unwrap();
        (shown(&found), had)
    }

    #[test]
    fn ports_that_are_none_are_said_with_their_place() {
        for (text, says) in [
            ("# ports\n[server]\noffset = 'ten'\n", "3:1: `server.offset`: `ten`: expected a number"),
            ("[server]\noffset = 70000\n", "2:1: 78280 is no port for http (`server.offset` is part of it)"),
            (
                "[transport.http]\nlistener.port = 99999\n",
                "2:1: 99999 is no port for http (`server.offset` is part of it)",
            ),
            (
                "[transport.http]\nlistener.bind_address = 'here'\n",
                "2:1: `transport.http.listener.bind_address`: `here`: expected an IP address",
            ),
        ] {
            let (_, listen) = of_server("ports", text, |root| Server::read(root).listen(false));
            let why = listen.expect_err(says);
            assert!(why.ends_with(&format!("conf/deployment.toml:{says}")), "{why}");
        }
    }

    #[test]
    fn users_of_the_file_user_store() {
        let root = std::env::temp_dir().join(format!("busbar-server-users-{}", std::process::id()));
        std::fs::create_dir_all(root.join("conf")).unwrap();
        std::fs::create_dir_all(root.join("deployment")).unwrap();
        let toml = root.join("conf/deployment.toml");
        let text = "[[internal_apis.users]]\nuser.name = 'alice'\nuser.password = 'opensesame'\nuser.is_admin = true\n\
            [[internal_apis.users]]\nuser.name = 'bob'\nuser.password = '$secret{bob}'\n\
            [[internal_apis.users]]\nuser.name = 'erin'\nuser.password = 'sesame'\nuser.is_admin = 'true'\nuser.shell = 'sh'\n\
            [[internal_apis.users]]\nuser.name = 'carol'\nuser.password = ''\n[[internal_apis.users]]\nuser = 'dora'\n";
        std::fs::write(&toml, text).unwrap();
        std::fs::write(
            root.join("deployment/deployment.toml"),
            "[[internal_apis.users]]\nuser.name = 'alice'\nuser.password = 'other'\n",
        )
        .unwrap();
        let mut sources = SourceMap::new();
        let found = report(&root, std::slice::from_ref(&toml), &mut sources);
        let users = |root| {
            let users = Server::read(root).users().into_iter();
            users.map(|user| (user.name, user.password, user.is_admin)).collect::<Vec<_>>()
        };
        let all = users(&root);
        let settings = crate::settings::Settings::load(&root, None, &[]).unwrap();
        std::fs::write(&toml, format!("[internal_apis.file_user_store]\nenable = false\n{text}")).unwrap();
        let off = users(&root);
        let set =
            crate::settings::Settings::load(&root, None, &["http.users.alice=mine".to_owned()]).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        let user = |name: &str, password: &str, is_admin| (name.to_owned(), password.to_owned(), is_admin);
        assert_eq!(all, [user("alice", "opensesame", true), user("erin", "sesame", true)]);
        assert_eq!(off, [user("alice", "other", false)]);
        assert_eq!(settings.http.roles["alice"], ["admin"]);
        // Somebody else of the same name has no roles of this one.
        assert_eq!((set.http.users.0["alice"].as_str(), set.http.roles.get("alice")), ("mine", None));
        let shown = shown(&found);
        for wanted in [
            "note `internal_apis.users.user.name` is read: a user",
            "note `internal_apis.users.user.is_admin` is read: the user has the role `admin`",
            "warning `internal_apis.users.user.shell` has no effect",
            "warning `internal_apis.users.user.password` has no effect: only a WSO2 server",
        ] {
            assert!(shown.iter().any(|line| line.starts_with(wanted)), "{wanted}: {shown:#?}");
        }
        let text: String = found
            .iter()
            .map(|finding| diagnostics::render::human(finding, &sources, Default::default()))
            .collect();
        assert!(!text.contains("opensesame"), "{text}");
    }

    #[test]
    fn nothing_is_called_honoured_that_is_not() {
        let text = "[[custom_message_builders]]\nclass = 'com.acme.JsonBuilder'\ncontent_type = 'x/edi'\n\
            [[custom_message_builders]]\nclass = 'org.apache.axis2.format.PlainTextBuilder'\ncontent_type = 'x/text'\n\
            [message_builders]\napplication_xml = 'com.acme.Xml'\ntext_plain = \"org.apache.axis2.format.PlainTextBuilder\"\n\
            octet_stream = 'org.apache.axis2.format.PlainTextBuilder'\njson_badgerfish = 'org.apache.axis2.json.JSONBadgerfishOMBuilder'\n\
            [message_formatters]\ntext_xml = 'com.acme.Soap'\nsoap_xml = 'org.apache.axis2.transport.http.SOAPMessageFormatter'\n\
            [transport.http]\nlistener.verify_client = 'require'\nsender.hostname_verifier = 'AllowAll'\nsender.truststore.file_name = 't'\n\
            sender.secured_proxy_host = 'p'\nsender.parameters.'http.user.agent.preserve' = true\nlistener.own = 1\n\
            [transport.ws]\nsender.outflow_dispatch_sequence = 's'\n[datasource_config]\nx = 1\n";
        let shown = of_server("claims", text, |_| ()).0;
        for wanted in [
            "warning `custom_message_builders.class` has no effect: what is written in Java",
            "note `custom_message_builders.class` is honoured",
            "warning `message_builders.application_xml` has no effect: what is written in Java",
            "note `message_builders.text_plain` is not needed",
            "warning `message_builders.octet_stream` has no effect: messages of this type are read by their media type",
            "note `message_builders.json_badgerfish` is not needed",
            "warning `message_formatters.text_xml` has no effect: what is written in Java",
            "note `message_formatters.soap_xml` is not needed",
            "warning `transport.http.listener.verify_client` is not read here: set `[tls]`",
            "warning `transport.http.sender.hostname_verifier` is not read here: set `host_names`",
            "warning `transport.http.sender.truststore.file_name` is not read here: set `[[profile]]`",
            "warning `transport.http.sender.secured_proxy_host` is not read here: set `[[proxy]]`",
            "warning `transport.http.sender.parameters.http.user.agent.preserve` has no effect",
            "warning `transport.http.listener.own` is not known",
            "warning `transport.ws.sender.outflow_dispatch_sequence` has no effect",
            "warning `datasource_config.x` is not known",
        ] {
            assert!(shown.iter().any(|line| line.starts_with(wanted)), "{wanted}: {shown:#?}");
        }
    }

    /// As the catalogue of WSO2 writes it.
    #[test]
    fn times_have_units_and_other_texts_have_no_effect() {
        let text = "[mediation]\nsynapse.global_timeout_interval = '2 s'\n[transport.http]\nsocket_timeout = \"3m\"\nconnection_timeout = '3 weeks'\n\
            [synapse_properties]\n'maximum.failover.retries' = '3s'\n";
        let (shown, table) = of_server("units", text, |root| Server::read(root).tunables());
        let mut settings = flow::Settings::default();
        let before = (settings.connect_timeout, settings.suspension.cap.most);
        tunables::apply(&table, &mut settings).unwrap();
        assert_eq!(settings.global_timeout.as_secs(), 2);
        assert_eq!(settings.socket_timeout.as_secs(), 180);
        assert_eq!((settings.connect_timeout, settings.suspension.cap.most), before);
        for wanted in [
            "note `mediation.synapse.global_timeout_interval` is honoured",
            "note `transport.http.socket_timeout` is honoured",
            "warning `transport.http.connection_timeout` has no effect: its value is neither a number of milliseconds nor",
            "warning `synapse_properties.maximum.failover.retries` has no effect: its value is no whole number",
        ] {
            assert!(shown.iter().any(|line| line.starts_with(wanted)), "{wanted}: {shown:#?}");
        }
    }

    #[test]
    fn a_number_that_is_too_large_costs_its_own_key_only() {
        let text = "[server]\noffset = 99999999999999999999999999999999999999999999\n[mediation]\nsynapse.global_timeout_interval = 5000\n\
            [transport.http]\npreserve_http_headers = [1, 9223372036854775808]\nsocket_timeout = 7000\n";
        let (shown, table) = of_server("large", text, |root| Server::read(root).tunables());
        assert_eq!(table["http.socket.timeout"].as_integer(), Some(7000));
        assert_eq!(shown.len(), 4, "{shown:#?}");
        for wanted in [
            "warning `server.offset` has no effect: the number is too large",
            "warning `transport.http.preserve_http_headers` has no effect: the number is too large",
            "note `mediation.synapse.global_timeout_interval` is honoured",
            "note `transport.http.socket_timeout` is honoured",
        ] {
            assert!(shown.iter().any(|line| line.starts_with(wanted)), "{wanted}: {shown:#?}");
        }
    }

    #[test]
    fn each_key_is_reported_with_its_place() {
        let root = std::env::temp_dir().join(format!("busbar-server-settings-{}", std::process::id()));
        std::fs::create_dir_all(root.join("conf")).unwrap();
        let toml = root.join("conf/deployment.toml");
        let text = "[server]\nhostname = 'h'\n\n[mediation]\nsynapse.global_timeout_interval = 5000\n\
            [transport.http]\nsocket_timeout = 7000\nsockt_timeout = 1\ncore_worker_pool_size = 4\nlistener.port = 8280\n\
            preserve_http_headers = [\n  'a=b',\n]\n[[transport.jms.listener]]\nname = 'j'\n[synapse_properties]\n'synapse.xpath.dom.failover.enabled' = true\n\
            [whatever]\nx = 1\n[secrets]\ndb = 'hidden'\n\
            [super_admin]\npassword = \"hunter2\" # it is hunter2\n[passthru_properties]\n'synapse.commons.json.output.disableAutoPrimitive.regex' = '^7$'\n\
            'synapse.commons.json.output.autoPrimitive' = '$env{AUTO}'\ntext = '''[\nmore = hunter2'''\n'synapse.commons.enableXmlNilReadWrite' = true\n";
        std::fs::write(&toml, text).unwrap();
        let properties = root.join("conf/synapse.properties");
        std::fs::write(&properties, "# c\nsynapse.threads.core = 20\nsynapse.commons.json.output.autoPrimitive=false\nsynapse.treads.core=1\n").unwrap();
        // Nobody waits for who writes into a pipe.
        let pipe =
            std::process::Command::new("mkfifo").arg(root.join("conf/passthru-http.properties")).status();
        assert!(pipe.unwrap().success());
        let table = Server::read(&root).tunables();
        let mut sources = SourceMap::new();
        let (broken, elsewhere) =
            (root.join("deployment/deployment.toml"), root.join("m/deployment/deployment.toml"));
        for (path, text) in [(&broken, "[super_admin]\npassword = 'hunter2\n"), (&elsewhere, "[x]\n")] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = report(&root, &[toml, properties, broken, elsewhere], &mut sources);
        std::fs::remove_dir_all(&root).unwrap();
        let names: Vec<&str> = table.keys().map(String::as_str).collect();
        assert_eq!(names.len(), 6, "{names:?}");
        assert_eq!(table["synapse.commons.json.output.disableAutoPrimitive.regex"].as_str(), Some("^7$"));
        assert_eq!(table["http.socket.timeout"].as_integer(), Some(7000));
        let shown: Vec<String> = found
            .iter()
            .map(|finding| {
                let place = finding.span().unwrap().place(&sources);
                format!(
                    "{} {} {}",
                    place.rsplit('/').next().unwrap(),
                    finding.severity.as_str(),
                    finding.message
                )
            })
            .collect();
        for wanted in [
            "deployment.toml:2:1 warning `server.hostname` is not read here",
            "deployment.toml:5:1 note `mediation.synapse.global_timeout_interval` is honoured",
            "deployment.toml:7:1 note `transport.http.socket_timeout` is honoured",
            "deployment.toml:9:1 note `transport.http.core_worker_pool_size` is not needed",
            "deployment.toml:8:1 warning `transport.http.sockt_timeout` is not known and has no effect",
            "deployment.toml:10:1 note `transport.http.listener.port` is honoured, unless `listen.http` is set in busbar.toml",
            "deployment.toml:15:1 warning `transport.jms.listener.name` has no effect",
            "deployment.toml:17:1 note `synapse_properties.synapse.xpath.dom.failover.enabled` is honoured",
            "deployment.toml:19:1 warning `whatever.x` is not known and has no effect",
            "deployment.toml:21:1 note `secrets.db`",
            "deployment.toml:23:1 warning `super_admin.password` has no effect",
            "deployment.toml:25:1 note `passthru_properties.synapse.commons.json.output.disableAutoPrimitive.regex` is honoured",
            "deployment.toml:26:1 warning `passthru_properties.synapse.commons.json.output.autoPrimitive` has no effect: only a WSO2 server",
            "deployment.toml:29:1 note `passthru_properties.synapse.commons.enableXmlNilReadWrite` is honoured",
            "deployment.toml:1:1 warning `",
            "synapse.properties:2:1 note `synapse.threads.core` is not needed",
            "synapse.properties:3:1 note",
            "synapse.properties:4:1 warning `synapse.treads.core` is not known and has no effect",
        ] {
            assert!(shown.iter().any(|line| line.starts_with(wanted)), "{wanted}: {shown:#?}");
        }
        let broken = |line: &String| line.contains(":2:") && line.contains("deployment.toml cannot be read");
        assert!(shown.iter().any(broken), "{shown:#?}");
        assert_eq!(shown.len(), 21, "{shown:#?}");
        // Nobody reads a password in the line that a finding is about.
        let rendered: String = found
            .iter()
            .map(|finding| diagnostics::render::human(finding, &sources, Default::default()))
            .collect();
        assert!(rendered.contains("password = ***"), "{rendered}");
        assert!(!rendered.contains("hidden") && !rendered.contains("hunter2"), "{rendered}");
    }

    #[test]
    fn settings_of_http_take_effect_where_nothing_else_is_said() {
        let root = std::env::temp_dir().join(format!("busbar-server-http-{}", std::process::id()));
        std::fs::create_dir_all(root.join("conf")).unwrap();
        std::fs::write(
            root.join("conf/passthru-http.properties"),
            "http.user.agent.preserve=true\nhttp.headers.preserve=Content-Type, date,HOST\nhttp.connection.disable.keepalive=yes\n\
             http.block_service_list = true\n",
        )
        .unwrap();
        let toml = root.join("conf/deployment.toml");
        let text = "[transport.http]\ncorrelation_header_name = 'X-Trace'\npreserve_http_headers = ['Server']\n\
            [[custom_message_builders]]\nclass = 'org.wso2.micro.integrator.core.json.JsonStreamBuilder'\ncontent_type = 'application/x-own'\n\
            [system.parameter]\n'my.host' = 'h'\nmine.port = 7\n'my.secret' = '$env{X}'\n\
            [passthru_properties]\n'http.server.preserve' = false\n'http.connection.disable.keepalive' = '$env{X}'\n";
        std::fs::write(&toml, text).unwrap();
        let load = |set: &[String]| crate::settings::Settings::load(&root, None, set).unwrap().http;
        let (of_server, set) = (load(&[]), load(&["http.correlation_header=mine".to_owned()]));
        let (found, system) = (report(&root, &[toml], &mut SourceMap::new()), Server::read(&root).system());
        std::fs::write(
            root.join("conf/axis2.xml"),
            "<axisconfig><messageBuilders><messageBuilder contentType='text/html' class='org.apache.axis2.format.PlainTextBuilder'/>\
             <messageBuilder contentType='x/y' class='org.acme.Own'/></messageBuilders></axisconfig>",
        )
        .unwrap();
        let kinds = Server::read(&root).kinds();
        std::fs::remove_dir_all(&root).unwrap();
        let system: Vec<_> = system.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(system, ["mine.port=7", "my.host=h"]);
        let named = |name: &str, kind| (name.to_owned(), kind);
        assert_eq!(kinds, [named("application/x-own", Kind::Json), named("text/html", Kind::Text)]);
        assert!(
            of_server.preserve_user_agent
                && !of_server.preserve_server
                && of_server.keep_alive
                && !of_server.list_services
        );
        assert_eq!(
            (of_server.correlation_header.as_str(), set.correlation_header.as_str()),
            ("X-Trace", "mine")
        );
        assert_eq!(of_server.preserve_headers, ["Server"], "deployment.toml counts");
        let shown = shown(&found);
        for wanted in [
            "note `transport.http.correlation_header_name` is honoured, unless `[http]` is set in busbar.toml",
            "note `transport.http.preserve_http_headers` is honoured, unless `[http]` is set in busbar.toml",
            "note `passthru_properties.http.server.preserve` is honoured, unless `[http]` is set in busbar.toml",
            "note `system.parameter.my.host` is what",
            "warning `system.parameter.my.secret` has no effect: only a WSO2 server",
            "warning `passthru_properties.http.connection.disable.keepalive` has no effect: only a WSO2 server",
        ] {
            assert!(shown.iter().any(|line| line.starts_with(wanted)), "{wanted}: {shown:#?}");
        }
    }

    #[test]
    fn what_every_project_comes_with_is_one_note() {
        let text = "[server]\nhostname = \"localhost\"\n[keystore.primary]\n\
            file_name = \"repository/resources/security/wso2carbon.jks\"\npassword = \"wso2carbon\"\nalias = \"ours\"\n";
        let shown = of_server("shipped", text, |_| ()).0;
        assert_eq!(
            shown,
            [
                "warning `keystore.primary.alias` is not read here: set `[tls]` and `[[profile]]` in busbar.toml, with PEM files",
                "note not needed here, with the values that every new project has: `server.hostname`, \
                 `keystore.primary.file_name`, `keystore.primary.password`",
            ]
        );
    }

    #[test]
    fn keys_that_nobody_reads_are_unknown() {
        for (key, fate, help) in [
            ("server.foo", "is not known", None),
            ("server.host_name", "is not known", Some("server.hostname")),
            ("server.node_ip", "is not needed", None),
            ("server.name", "is not needed", None),
            ("transport.http.sender.foo", "is not known", None),
            ("transport.http.sender.warn_on_http_500", "is not needed", None),
            (
                "transport.http.sender.conection_timeout",
                "is not known",
                Some("transport.http.sender.connection_timeout"),
            ),
            ("transport.http.sockt_timeout", "is not known", Some("transport.http.socket_timeout")),
            ("transport.http.blocking_sender.so_timeout", "is not needed", None),
        ] {
            let found = finding(
                &Written { key: key.to_owned(), at: 0..0, value: 0..0, is_filled_in: false },
                "",
                true,
            );
            assert!(found.message.contains(fate), "{key}: {}", found.message);
            let wanted: Vec<String> = help.iter().map(|name| format!("did you mean `{name}`?")).collect();
            assert_eq!(found.help, wanted, "{key}");
        }
        let found = finding(
            &Written { key: "synapse.nix".to_owned(), at: 0..0, value: 0..0, is_filled_in: false },
            "",
            false,
        );
        assert!(found.help.is_empty(), "{:?}", found.help);
    }
}
