//! Tunables under the names that WSO2 documents: honoured, or said once why they are not needed here.

use flow::Settings;
use flow::artifacts::Cors;
use message::json::{Mapping, SWITCHES, Switch};
use std::sync::Arc;
use std::time::Duration;

/// Puts a value into the settings.
type Set = fn(&mut Settings, i64);

/// Names that are honoured, with what they set: whole numbers. Those of [`COUNTS`] are counts, the others times.
const HONOURED: &[(&str, Set)] = &[
    ("synapse.global_timeout_interval", |settings, value| settings.global_timeout = milliseconds(value)),
    ("http.connection.timeout", |settings, value| settings.connect_timeout = milliseconds(value)),
    ("http.socket.timeout", |settings, value| settings.socket_timeout = milliseconds(value)),
    ("synapse.sal.endpoints.sesssion.timeout.default", |settings, value| {
        settings.session_timeout = milliseconds(value);
    }),
    ("valid.max.message.size.in.bytes", |settings, value| {
        settings.screening.largest = u64::try_from(value).unwrap_or(0);
    }),
    ("server.offset", |settings, value| settings.offset.ports = value),
    ("maximum.failover.retries", |settings, value| settings.suspension.cap.most = u32::try_from(value).ok()),
    ("suspend.duration.on.maximum.failover", |settings, value| {
        settings.suspension.cap.suspension = value;
    }),
    ("maximum.failover.recursive.retries", |settings, value| {
        settings.suspension.cap_of_members.most = u32::try_from(value).ok();
    }),
    ("suspend.duration.on.maximum.recursive.failover", |settings, value| {
        settings.suspension.cap_of_members.suspension = value;
    }),
    // WSO2 writes -1 for none.
    ("synapse.global_endpoint_suspend_duration", |settings, value| {
        settings.suspension.initial = Some(value).filter(|&value| value >= 0);
    }),
];

/// Of [`HONOURED`], those that are no times: they have no unit.
const COUNTS: [&str; 4] = [
    "valid.max.message.size.in.bytes",
    "server.offset",
    "maximum.failover.retries",
    "maximum.failover.recursive.retries",
];

/// Units of times, in milliseconds. `deployment.toml` has `socket_timeout = "3m"`.
const UNITS: [(&str, i64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A switch of the engine.
type Flag = fn(&mut Settings) -> &mut bool;

/// Switches of the engine, `true` or `false`.
const FLAGS: &[(&str, Flag)] = &[
    ("synapse.xpath.dom.failover.enabled", |settings| &mut settings.xpath_failover),
    ("synapse.override_endpoint_suspend_config_with_global_values", |settings| {
        &mut settings.suspension.overrides
    }),
    ("inbound.port.offset.enable", |settings| &mut settings.offset.inbound),
    ("message.size.validation.enabled", |settings| &mut settings.screening.size),
    ("force.xml.message.validation", |settings| &mut settings.screening.xml),
    ("force.json.message.validation", |settings| &mut settings.screening.json),
];

/// The factor of suspensions, which is no whole number.
const FACTOR: &str = "synapse.global_endpoint_suspend_progression_factor";

fn flag(field: &mut bool, text: &str) -> Result<(), String> {
    *field = text.parse().map_err(|_| "expected true or false".to_owned())?;
    Ok(())
}

/// The switches of the JSON mapping.
///
/// # Errors
/// A value that cannot be read, with its name.
pub fn mapping(table: &toml::Table) -> Result<Mapping, String> {
    let mut mapping = Mapping::default();
    for (name, switch) in &SWITCHES {
        let text = match table.get(*name) {
            None => continue,
            Some(toml::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let set = match switch {
            Switch::Flag(field) => flag(field(&mut mapping), text.trim()).map_err(|why| format!(": {why}")),
            Switch::Text(set) => set(&mut mapping, text.trim()).map_err(|why| format!(" {why}")),
        };
        set.map_err(|why| format!("wso2.\"{name}\": `{text}`{why}"))?;
    }
    Ok(mapping)
}

/// Puts a part of `synapse.rest.CORSConfig` where it belongs; the error says what was expected.
type Part = fn(&mut Cors, &str) -> Result<(), String>;

/// What answers of APIs say to other origins.
const CORS: &[(&str, Part)] = &[
    ("synapse.rest.CORSConfig.enabled", |cors, text| {
        let mut enabled = true;
        flag(&mut enabled, text)?;
        cors.disabled = !enabled;
        Ok(())
    }),
    ("synapse.rest.CORSConfig.Access-Control-Allow-Origin", |cors, text| {
        cors.origins = Cors::read_origins(text);
        Ok(())
    }),
    ("synapse.rest.CORSConfig.Access-Control-Allow-Headers", |cors, text| header(&mut cors.headers, text)),
    ("synapse.rest.CORSConfig.Access-Control-Allow-Methods", |cors, text| header(&mut cors.methods, text)),
    ("synapse.rest.CORSConfig.Access-Control-Allow-Credentials", |cors, text| {
        flag(&mut cors.credentials, text)
    }),
];

fn header(field: &mut String, text: &str) -> Result<(), String> {
    if text.chars().any(|c| c.is_control() || !c.is_ascii()) {
        return Err("expected a list of names".to_owned());
    }
    text.clone_into(field);
    Ok(())
}

/// Name prefixes that have no meaning here, with the reason.
const NOT_NEEDED: &[(&str, &str)] = &[
    ("worker_pool", "is not needed: messages that wait hold no thread: there is one worker per core"),
    ("secondary_worker_pool", "is not needed: unread bodies are discarded by the worker itself"),
    ("synapse.threads", "is not needed: parallel branches are tasks of the worker, not threads"),
    ("inbound.threads", "is not needed: there is one worker per core"),
    ("io_threads_per_reactor", "is not needed: see --workers"),
    ("io_buffer_size", "is not read here: set `limits.io_buffer_size` in busbar.toml"),
    ("synapse.temp_data", "is not needed: transformations write into one buffer"),
    ("synapse.streaming.xpath.enabled", "is not needed: expressions that can be decided early always are"),
    ("synapse.streaming.jsonpath.enabled", "has no effect yet: JSONPath reads the whole payload"),
    ("synapse.script.mediator", "is not needed: each worker keeps its scripts compiled"),
    (
        "synapse.commons.json.output.xmloutAutoArray",
        "is not needed: repeated elements of a JSON array are written as they are",
    ),
    (
        "synapse.commons.json.output.emptyXmlElemToEmptyStr",
        "has no effect, as in WSO2: synapse.commons.enableXmlNullForEmptyElement decides",
    ),
    ("synapse.timeout_handler_interval", "is not needed: timeouts end when they are due"),
    (
        "http.max.connection.per.host.port",
        "is not read here: set `limits.backend_connections` in busbar.toml, for each backend; limits.idle_connections bounds the idle ones of a worker",
    ),
    ("synapse.xpath.func.extensions", "has no effect, because functions written in Java cannot run here"),
    (
        "synapse.custom.xpath.func.extensions",
        "has no effect, because functions written in Java cannot run here",
    ),
    ("synapse.xpath.var.extensions", "has no effect, because variables written in Java cannot run here"),
    ("synapse.legacy.xpath.behaviour", "has no effect: parameters of templates keep their types"),
    ("synapse.jsonpath.ignore.not.found.error", "has no effect: enrich that removes nothing is not an error"),
    ("synapse.mediators.access.control", "has no effect: busbar check tells what a configuration uses"),
    ("exclude.payload.details.from.error", "is not needed: errors name positions, not what stands there"),
    ("synapse.artifact.versioned.deployment", "has no effect: names of artifacts are not versioned"),
    ("expose.versioned.services", "has no effect: names of artifacts are not versioned"),
    (
        "synapse.artifacts.file.storage.enabled",
        "is not needed: nothing is deployed at run time but by a reload",
    ),
    ("build.message.on.failover.enable", "is not needed: what may be sent again is kept"),
    ("synapse.clear.mediation.cache", "is not needed: a reload compiles schemas anew"),
    ("payloadFactory.forcefully.enable.DTD", "has no effect: messages have no DTD"),
    ("synapse.connection.", "has no effect: resources are read from files, local entries once at the start"),
    ("synapse.http.proxy", "has no effect: resources are read from files"),
    ("messaging_callback.", "has no effect: there are no consumers of queues yet"),
    ("synapse.blocking.call.disable.thread.switch", "is not needed: nothing waits on a thread"),
    ("synapse.observers", "has no effect, because observers are written in Java"),
    ("synapse.wsdl.resolver", "has no effect, because resolvers are written in Java"),
    ("synapse.schema.resolver", "has no effect, because resolvers are written in Java"),
    ("synapse.entry.", "has no effect, because plug-ins are written in Java"),
    ("failsafe.mode.enable", "is not needed: a faulty artifact is always left out; --strict refuses it"),
    ("synapse.debugger", "has no effect: there is no debugger"),
    ("synapse.jmx", "is not needed: the admin address has metrics and states"),
    ("synapse.snmp", "is not needed: the admin address has metrics and states"),
    ("mediation.flow.statistics", "is not needed: the admin address has metrics"),
    ("mediation.flow.tracer", "has no effect: there is no tracer yet"),
    ("statistics.clean", "is not needed: the admin address has metrics"),
    ("opentelemetry.", "has no effect yet"),
    ("analytics.", "has no effect: nothing is published"),
    ("internal.http", "is not read here: set `listen.admin` in busbar.toml"),
    ("synapse.rest.CORSConfig", "is not known: see docs/settings.md for the names of CORS"),
    ("synapse.passwordProvider", "is not read here: set `vault.directory` in busbar.toml"),
    ("secretRepositories", "is not read here: set `vault.directory` in busbar.toml"),
    ("synapse.protectedTokens", "is not read here: set `vault.directory` in busbar.toml"),
    ("keystore.", "is not read here: set `[tls]` and `[[profile]]` in busbar.toml"),
    (
        "synapse.datasources",
        "has no effect: write a `*-datasources.xml`, or [[datasource]] into deployment.toml",
    ),
    ("freemarker.template.base.path", "has no effect: templates are entries and registry resources"),
    ("http.socket.timeout.", "is not read here: set `http.socket.timeout` in busbar.toml, for both sides"),
    ("http.user.agent.preserve", "is not read here: set `http.preserve_user_agent` in busbar.toml"),
    ("http.server.preserve", "is not read here: set `http.preserve_server` in busbar.toml"),
    ("http.headers.preserve", "is not read here: set `http.preserve_headers` in busbar.toml"),
    ("http.response.headers.preserve", "has no effect: headers of answers stay"),
    ("http.connection.disable.keepalive", "is not read here: set `http.keep_alive` in busbar.toml"),
    ("http.block_service_list", "is not read here: set `http.list_services` in busbar.toml"),
    ("max_open_connections", "is not read here: set `limits.connections` in busbar.toml"),
    ("consume_and_discard", "is not needed: what nobody reads is discarded by the worker itself"),
    ("close_socket_on_endpoint_timeout", "is not needed: such a connection is always closed"),
    ("force.passthrough.builder", "is not needed: a message is read when somebody asks"),
    ("transport.sender.connection", "is not read here: set `limits.idle_backend` in busbar.toml"),
    ("transport.listener.shutdown.wait.sec", "is not read here: set `limits.drain` in busbar.toml"),
    ("correlation_header_name", "is not read here: set `http.correlation_header` in busbar.toml"),
    ("expected_max_queueing_time", "is not needed: messages do not wait for threads"),
    ("tls_graceful_connection_termination", "is not needed: it is always on"),
    ("ignore_case_sensitive_headers", "is not needed: names of headers have no case"),
    ("http.tcp.nodelay", "is not needed: it is always on"),
    ("http.listening_io_reactor_sharing_enable", "is not needed: there is one worker per core"),
    ("http.nio", "is not needed: there is no reactor to tune"),
    ("http.socket.", "is not needed: the buffers of sockets are the system's"),
    ("snd_", "is not needed: messages that wait hold no thread"),
    ("lst_", "is not needed: messages that wait hold no thread"),
    ("reverseProxyMode", "has no effect: what no service takes goes to the main sequence"),
    ("rest.dispatcher.service", "has no effect: there are no tenants"),
    ("rest_uri_", "has no effect: there are no tenants"),
];

fn milliseconds(value: i64) -> Duration {
    Duration::from_millis(u64::try_from(value).unwrap_or(0))
}

/// The number that the value of a tunable of [`HONOURED`] is.
fn number(name: &str, value: &str) -> Option<i64> {
    let text = value.trim();
    let time = || {
        let at = text.find(|c: char| c.is_ascii_alphabetic())?;
        let (_, factor) = UNITS.iter().find(|(unit, _)| *unit == &text[at..])?;
        text[..at].trim().parse::<i64>().ok()?.checked_mul(*factor)
    };
    text.parse().ok().or_else(|| time().filter(|_| !COUNTS.contains(&name)))
}

/// Why the value of a tunable has no effect: it is not of the kind that the tunable takes.
pub fn unread(name: &str, value: &str) -> Option<&'static str> {
    let is_number = HONOURED.iter().any(|(setting, _)| *setting == name);
    match is_number && number(name, value).is_none() {
        true if COUNTS.contains(&name) => Some("has no effect: its value is no whole number"),
        true => {
            Some("has no effect: its value is neither a number of milliseconds nor a time such as \"30s\"")
        }
        false => None,
    }
}

/// Sets what is honoured.
///
/// # Errors
/// A switch that is neither `true` nor `false`, with its name.
pub fn apply(table: &toml::Table, settings: &mut Settings) -> Result<(), String> {
    for (name, value) in table {
        if let Some((_, field)) = FLAGS.iter().find(|(setting, _)| setting == name) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            flag(field(settings), text.trim()).map_err(|why| format!("wso2.\"{name}\": `{text}`: {why}"))?;
        }
        if let Some((_, set)) = CORS.iter().find(|(setting, _)| setting == name) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            set(Arc::make_mut(&mut settings.cors), text.trim())
                .map_err(|why| format!("wso2.\"{name}\": `{text}`: {why}"))?;
        }
        if name == FACTOR {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let factor =
                text.trim().parse().map_err(|_| format!("wso2.\"{name}\": `{text}`: expected a number"))?;
            settings.suspension.factor = Some(factor);
        }
        let number = match value {
            toml::Value::Integer(number) => Some(*number),
            toml::Value::String(text) => number(name, text),
            _ => None,
        };
        if let (Some((_, set)), Some(number)) = (HONOURED.iter().find(|(setting, _)| setting == name), number)
        {
            set(settings, number);
        }
    }
    Ok(())
}

/// What becomes of a tunable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is honoured.
    Honoured(&'static str),
    /// A setting of this bus does the same.
    Mapped(&'static str),
    /// There is nothing to tune.
    NotNeeded(&'static str),
    /// What it tunes does not exist here.
    NoEffect(&'static str),
    /// No such name is documented.
    Unknown,
}

impl Fate {
    /// The name goes on behind this prefix.
    pub fn text(self) -> &'static str {
        match self {
            Fate::Honoured(text) | Fate::Mapped(text) | Fate::NotNeeded(text) | Fate::NoEffect(text) => text,
            Fate::Unknown => "is not known and has no effect",
        }
    }
}

/// The names of those that are honoured.
fn honoured() -> impl Iterator<Item = &'static str> {
    let numbers = HONOURED.iter().map(|(setting, _)| *setting);
    let flags = FLAGS.iter().map(|(setting, _)| *setting);
    let mapping = SWITCHES.iter().map(|(setting, _)| *setting);
    let cors = CORS.iter().map(|(setting, _)| *setting);
    numbers.chain(flags).chain(mapping).chain(cors).chain([FACTOR])
}

/// What becomes of a tunable of this name.
pub fn fate(name: &str) -> Fate {
    if honoured().any(|setting| setting == name) {
        return Fate::Honoured("is honoured");
    }
    match NOT_NEEDED.iter().find(|(prefix, _)| name.starts_with(prefix)) {
        None => Fate::Unknown,
        Some((_, why)) if why.starts_with("is not needed") => Fate::NotNeeded(why),
        Some((_, why)) if why.starts_with("is ") => Fate::Mapped(why),
        Some((_, why)) => Fate::NoEffect(why),
    }
}

/// All names; of families, their prefixes.
pub fn names() -> impl Iterator<Item = &'static str> {
    honoured().chain(NOT_NEEDED.iter().map(|(setting, _)| *setting))
}

/// The findings about those that are not honoured.
pub fn report(table: &toml::Table) -> Vec<(String, Fate)> {
    let fates = table.keys().map(|name| (name.clone(), fate(name)));
    fates.filter(|(_, fate)| !matches!(fate, Fate::Honoured(_))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunables_are_honoured_or_explained() {
        let table: toml::Table =
            "'synapse.global_timeout_interval' = 5000\n'synapse.threads.core' = 20\n'x.y' = 1"
                .parse()
                .unwrap();
        let mut settings = Settings::default();
        apply(&table, &mut settings).unwrap();
        assert_eq!(settings.global_timeout, Duration::from_secs(5));
        let report = report(&table);
        assert_eq!(report.len(), 2);
        assert!(matches!(report[0].1, Fate::NotNeeded(_)) && report[1].1 == Fate::Unknown);
        let documented = "synapse.xpath.func.extensions synapse.jsonpath.ignore.not.found.error synapse.connection.read_timeout \
            build.message.on.failover.enable http.user.agent.preserve http.socket.timeout.listener \
            http.socket.buffer-size opentelemetry.enable messaging_callback.preserve_payload_on_timeout snd_t_core \
            transport.listener.shutdown.wait.sec";
        for name in documented.split_whitespace() {
            let table = [(name.to_owned(), toml::Value::from(1))].into_iter().collect();
            assert_ne!(super::report(&table)[0].1, Fate::Unknown, "{name}");
        }
        for (value, wanted) in [("true", Some(true)), ("'false'", Some(false)), ("'on'", None)] {
            let table = format!("'synapse.xpath.dom.failover.enabled' = {value}").parse().unwrap();
            let failover = apply(&table, &mut settings).map(|()| settings.xpath_failover);
            assert_eq!(failover.ok(), wanted, "{value}");
            assert!(super::report(&table).is_empty());
        }
        let table: toml::Table = "'synapse.rest.CORSConfig.enabled' = false\n\
            'synapse.rest.CORSConfig.Access-Control-Allow-Origin' = 'http://a, http://b'"
            .parse()
            .unwrap();
        apply(&table, &mut settings).unwrap();
        assert!(settings.cors.disabled && settings.cors.origins == ["http://a", "http://b"]);
        assert!(super::report(&table).is_empty());
    }

    #[test]
    fn the_json_mapping_is_switched_by_its_names() {
        let table = |text: &str| text.parse::<toml::Table>().unwrap();
        let switches = table(
            "'synapse.commons.json.output.autoPrimitive' = false\n'synapse.commons.json.output.namespaceSepChar' = ':'\n\
             'synapse.commons.json.json.output.disableAutoPrimitive.customReplaceSequence' = '-'\n\
             'synapse.commons.json.json.output.disableAutoPrimitive.customReplaceRegex' = '@@'",
        );
        let json_mapping = mapping(&switches).unwrap();
        assert!(
            !json_mapping.auto_primitive
                && json_mapping.namespace_separator == ':'
                && json_mapping.empty_is_null
        );
        assert_eq!(
            json_mapping.string_mark.map(|(pattern, with)| pattern.replace_all("@@x", &with)),
            Some(Ok("-x".into()))
        );
        assert!(report(&switches).is_empty());
        for bad in [
            "'synapse.commons.json.output.autoPrimitive' = 'maybe'",
            "'synapse.commons.json.output.namespaceSepChar' = '::'",
            "'synapse.commons.json.output.disableAutoPrimitive.regex' = '('",
        ] {
            assert!(mapping(&table(bad)).unwrap_err().contains("synapse.commons.json"), "{bad}");
        }
    }
}
