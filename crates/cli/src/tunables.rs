//! Tunables under the names that WSO2 documents: honoured, or said once why they are not needed here.

use flow::Settings;
use message::json::{Mapping, Regex};
use std::time::Duration;

/// Puts a value where it belongs.
type Set = fn(&mut Settings, i64);

/// Names that are honoured, with what they set.
const HONOURED: &[(&str, Set)] = &[
    ("synapse.global_timeout_interval", |settings, value| settings.global_timeout = milliseconds(value)),
    ("http.connection.timeout", |settings, value| settings.connect_timeout = milliseconds(value)),
    ("http.socket.timeout", |settings, value| settings.socket_timeout = milliseconds(value)),
];

/// Puts a switch of the JSON mapping where it belongs; the error says what was expected.
type Switch = fn(&mut Mapping, &str) -> Result<(), String>;

/// The switches of the JSON mapping.
const MAPPING: &[(&str, Switch)] = &[
    ("synapse.commons.json.preserve.namespace", |own, text| flag(&mut own.preserve_namespace, text)),
    ("synapse.commons.json.output.enableNSDeclarations", |own, text| {
        flag(&mut own.namespace_declarations, text)
    }),
    ("synapse.commons.json.output.namespaceSepChar", |own, text| {
        let mut characters = text.chars();
        own.namespace_separator = match (characters.next(), characters.next()) {
            (Some(only), None) => only,
            _ => return Err("expected one character".to_owned()),
        };
        Ok(())
    }),
    ("synapse.commons.json.output.autoPrimitive", |own, text| flag(&mut own.auto_primitive, text)),
    ("synapse.commons.json.output.disableAutoPrimitive.regex", |own, text| {
        own.string_pattern = Some(regex(text)?);
        Ok(())
    }),
    ("synapse.commons.json.json.output.disableAutoPrimitive.customReplaceRegex", |own, text| {
        let replacement = own.string_mark.take().map(|(_, replacement)| replacement).unwrap_or_default();
        own.string_mark = Some((regex(text)?, replacement));
        Ok(())
    }),
    ("synapse.commons.json.json.output.disableAutoPrimitive.customReplaceSequence", |own, text| {
        if let Some((_, replacement)) = &mut own.string_mark {
            text.clone_into(replacement);
        }
        Ok(())
    }),
    ("synapse.commons.json.output.jsonoutAutoArray", |own, text| flag(&mut own.auto_array, text)),
    ("synapse.commons.json.output.jsonoutMultiplePI", |own, text| flag(&mut own.reads_multiple, text)),
    ("synapse.commons.json.output.xmloutMultiplePI", |own, text| flag(&mut own.writes_multiple, text)),
    ("synapse.json.to.xml.processing.instruction.enabled", |own, text| flag(&mut own.writes_multiple, text)),
    ("synapse.commons.enableXmlNilReadWrite", |own, text| flag(&mut own.nil, text)),
    ("synapse.commons.enableXmlNullForEmptyElement", |own, text| flag(&mut own.empty_is_null, text)),
    ("synapse.commons.json.buildValidNCNames", |own, text| flag(&mut own.valid_names, text)),
];

fn flag(field: &mut bool, text: &str) -> Result<(), String> {
    *field = text.parse().map_err(|_| "expected true or false".to_owned())?;
    Ok(())
}

fn regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| format!("it is no regular expression: {error}"))
}

/// The switches of the JSON mapping.
///
/// # Errors
/// A value that cannot be read, with its name.
pub fn mapping(table: &toml::Table) -> Result<Mapping, String> {
    let mut mapping = Mapping::default();
    // In the order above: a replacement needs its expression.
    for (name, set) in MAPPING {
        let text = match table.get(*name) {
            None => continue,
            Some(toml::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        set(&mut mapping, text.trim()).map_err(|why| format!("wso2.\"{name}\": `{text}`: {why}"))?;
    }
    Ok(mapping)
}

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
    (
        "synapse.commons.json.output.xmloutAutoArray",
        "not needed here, because repeated elements of a JSON array are written as they are",
    ),
    (
        "synapse.commons.json.output.emptyXmlElemToEmptyStr",
        "has no effect, as in WSO2: synapse.commons.enableXmlNullForEmptyElement decides",
    ),
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
        .filter(|name| !MAPPING.iter().any(|(known, _)| known == name))
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

    #[test]
    fn the_json_mapping_is_switched_by_its_names() {
        let table = |text: &str| text.parse::<toml::Table>().unwrap();
        let switches = table(
            "'synapse.commons.json.output.autoPrimitive' = false\n'synapse.commons.json.output.namespaceSepChar' = ':'\n\
             'synapse.commons.json.json.output.disableAutoPrimitive.customReplaceSequence' = '-'\n\
             'synapse.commons.json.json.output.disableAutoPrimitive.customReplaceRegex' = '@@'",
        );
        let own = mapping(&switches).unwrap();
        assert!(!own.auto_primitive && own.namespace_separator == ':' && own.empty_is_null);
        assert_eq!(
            own.string_mark.map(|(pattern, with)| (pattern.as_str().to_owned(), with)),
            Some(("@@".into(), "-".into()))
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
