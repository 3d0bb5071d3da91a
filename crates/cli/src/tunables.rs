//! Tunables under the names that WSO2 documents: honoured, or said once why they are not needed here.

use flow::Settings;
use std::time::Duration;

/// Puts a value where it belongs.
type Set = fn(&mut Settings, i64);

/// Names that are honoured, with what they set.
const HONOURED: &[(&str, Set)] = &[
    ("synapse.global_timeout_interval", |settings, value| settings.global_timeout = milliseconds(value)),
    ("http.connection.timeout", |settings, value| settings.connect_timeout = milliseconds(value)),
    ("http.socket.timeout", |settings, value| settings.socket_timeout = milliseconds(value)),
];

/// Name prefixes that have no meaning here, with the reason.
const NOT_NEEDED: &[(&str, &str)] = &[
    (
        "worker_pool",
        "not needed here, because messages that wait hold no thread: there is one worker per core",
    ),
    ("secondary_worker_pool", "not needed here, because unread bodies are discarded by the worker itself"),
    ("synapse.threads", "not needed here, because parallel branches are tasks of the worker, not threads"),
    ("inbound.threads", "not needed here, because there is one worker per core"),
    ("io_threads_per_reactor", "not needed here: see --workers"),
    ("io_buffer_size", "is limits.io_buffer_size here"),
    ("synapse.temp_data", "not needed here, because transformations write into one buffer"),
    (
        "synapse.streaming.xpath.enabled",
        "not needed here, because expressions that can be decided early always are",
    ),
    ("synapse.streaming.jsonpath.enabled", "has no effect yet: JSONPath reads the whole payload"),
    ("synapse.script.mediator", "not needed here, because each worker keeps its scripts compiled"),
    ("synapse.timeout_handler_interval", "not needed here, because timeouts end when they are due"),
    (
        "http.max.connection.per.host.port",
        "is limits.idle_connections here; connections in use are not limited",
    ),
];

fn milliseconds(value: i64) -> Duration {
    Duration::from_millis(u64::try_from(value).unwrap_or(0))
}

/// Sets what is honoured.
pub fn apply(table: &toml::Table, settings: &mut Settings) {
    for (name, value) in table {
        let number = match value {
            toml::Value::Integer(number) => Some(*number),
            toml::Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        if let (Some((_, set)), Some(number)) = (HONOURED.iter().find(|(known, _)| known == name), number) {
            set(settings, number);
        }
    }
}

/// What is to be said about the others.
pub fn report(table: &toml::Table) -> Vec<(String, &'static str)> {
    table
        .keys()
        .filter(|name| !HONOURED.iter().any(|(known, _)| known == name))
        .map(|name| {
            let known = NOT_NEEDED.iter().find(|(prefix, _)| name.starts_with(prefix));
            (name.clone(), known.map_or("is not known and has no effect", |(_, why)| *why))
        })
        .collect()
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
        apply(&table, &mut settings);
        assert_eq!(settings.global_timeout, Duration::from_secs(5));
        let report = report(&table);
        assert_eq!(report.len(), 2);
        assert!(report[0].1.starts_with("not needed here") && report[1].1.contains("not known"));
    }
}
