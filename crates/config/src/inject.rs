//! Values from outside the configuration: `$SYSTEM:NAME` (environment), `$FILE:NAME` (`file.properties`) and
//! `${configs.NAME}` (either).
//!
//! The value must start with the mark; the whole value is replaced by the first name that follows it.

use crate::properties::properties;
use crate::value::Key;
use diagnostics::{Diagnostic, Diagnostics, Severity};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Resolves injected values. Cheap to clone.
#[derive(Clone, Default, Debug)]
pub struct Injector {
    properties: Arc<HashMap<String, String>>,
    /// Values in place of the process environment, for tests and tools.
    environment: Option<Arc<HashMap<String, String>>>,
    /// What the environment has where nobody set it: `.env` of a project.
    defaults: Arc<HashMap<String, String>>,
    /// A name that is not set is a warning.
    check_only: bool,
}

impl Injector {
    /// Resolves from the environment of the process, and from no file.
    pub fn new() -> Injector {
        Injector::default()
    }

    /// Reads `file.properties` (Java properties: `name=value` lines, `#` and `!` comments). An unreadable file
    /// counts as empty.
    #[must_use]
    pub fn with_file(mut self, path: &Path) -> Injector {
        self.add_file(path);
        self
    }

    /// As [`Injector::with_file`]; returns the names that another file has set to something else, which stays.
    pub(crate) fn add_file(&mut self, path: &Path) -> Vec<String> {
        add(&mut self.properties, properties(&text(path)))
    }

    /// Reads `.env` (`NAME=value` lines): what the environment does not set. An unreadable file counts as empty.
    #[must_use]
    pub fn with_defaults(mut self, path: &Path) -> Injector {
        self.add_defaults(path);
        self
    }

    /// As [`Injector::with_defaults`]; returns the names that another file has set to something else, which stays.
    pub(crate) fn add_defaults(&mut self, path: &Path) -> Vec<String> {
        let text = text(path);
        let read = text.lines().filter_map(|line| {
            let line = line.trim();
            let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
            let value = value.trim();
            let inside = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
            let value = inside('"').or_else(|| inside('\'')).unwrap_or(value);
            (!line.starts_with('#')).then(|| (name.trim().to_owned(), value.to_owned()))
        });
        add(&mut self.defaults, read.collect())
    }

    /// Resolves `$SYSTEM:` from these values instead of the environment.
    #[must_use]
    pub fn with_environment(mut self, values: HashMap<String, String>) -> Injector {
        self.environment = Some(Arc::new(values));
        self
    }

    /// The configuration is only checked, on a machine that may not have the values.
    #[must_use]
    pub fn check_only(mut self, check_only: bool) -> Injector {
        self.check_only = check_only;
        self
    }

    /// A value with its mark resolved. A name that is not set is an error (`unresolved-value`), and so is `$secret{…}`.
    pub fn resolve(&self, key: Key, diagnostics: &mut Diagnostics) -> Key {
        let Some((kind, name)) = mark(&key) else {
            if let Some(alias) = key.strip_prefix("$secret{").and_then(|rest| rest.strip_suffix('}')) {
                let message = format!("`{}` is known in deployment.toml, not in artifacts", key.value);
                let help = format!(
                    "where an expression can stand: {{wso2:vault-lookup('{alias}')}}; else $SYSTEM: or $FILE:"
                );
                let found =
                    Diagnostic::error("unresolved-value", message).at(key.span, "would be taken as it is");
                diagnostics.push(found.help(help));
            }
            return key;
        };
        let (value, place) = match kind {
            "SYSTEM" => (self.environment(name), "the environment variable"),
            "FILE" => (self.property(name).map(str::to_owned), "the property of file.properties"),
            "configs" => (
                self.environment(name).or_else(|| self.property(name).map(str::to_owned)),
                "neither as environment variable nor in file.properties",
            ),
            _ => return key,
        };
        match value {
            Some(value) => Key { value, span: key.span },
            None => {
                let message = match kind {
                    "configs" => format!("`{name}` is set {place}"),
                    _ => format!("{place} `{name}` is not set"),
                };
                let severity = if self.check_only { Severity::Warning } else { Severity::Error };
                diagnostics.push(
                    Diagnostic::new("unresolved-value", severity, message)
                        .at(key.span, "needed for this value"),
                );
                key
            }
        }
    }

    /// A property of `file.properties`.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(String::as_str)
    }

    /// An environment variable.
    pub fn environment(&self, name: &str) -> Option<String> {
        let set = match &self.environment {
            Some(values) => values.get(name).cloned(),
            None => std::env::var(name).ok(),
        };
        set.or_else(|| self.defaults.get(name).cloned())
    }
}

/// The text of a file; empty where it cannot be read.
fn text(path: &Path) -> String {
    crate::layout::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Adds values. A name that is there stays; returns those of which the value differs, by name.
fn add(all: &mut Arc<HashMap<String, String>>, more: HashMap<String, String>) -> Vec<String> {
    let all = Arc::make_mut(all);
    let mut differ = Vec::new();
    for (name, value) in more {
        match all.get(&name) {
            Some(first) if *first != value => differ.push(name),
            Some(_) => {}
            None => drop(all.insert(name, value)),
        }
    }
    differ.sort();
    differ
}

/// Whether a value is an injected one that was not resolved.
pub fn is_unresolved(value: &str) -> bool {
    mark(value).is_some_and(|(kind, _)| matches!(kind, "SYSTEM" | "FILE" | "configs"))
}

/// `$KIND:NAME` or `${configs.NAME}` at the start of a value.
fn mark(value: &str) -> Option<(&str, &str)> {
    let rest = value.strip_prefix('$')?;
    let (kind, rest) = match rest.strip_prefix("{configs.") {
        Some(rest) => ("configs", rest),
        None => rest.split_once(':')?,
    };
    let name_char = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name = &rest[..rest.find(|c| !name_char(c)).unwrap_or(rest.len())];
    (!name.is_empty()).then_some((kind, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostics::Span;

    #[test]
    fn the_whole_value_is_replaced() {
        let mut injector =
            Injector::new().with_environment(HashMap::from([("HOST".to_owned(), "example".to_owned())]));
        injector.properties = Arc::new(properties("# c\n a.b = x = y \nc:d\n"));
        for (value, expected) in [
            ("$SYSTEM:HOST", Some("example")),
            ("$SYSTEM:HOST:8080", Some("example")),
            ("http://$SYSTEM:HOST", Some("http://$SYSTEM:HOST")),
            ("$FILE:a.b", Some("x = y")),
            ("$FILE:c", Some("d")),
            ("$SYSTEM:NONE", None),
            ("$FILE:none", None),
            ("${configs.HOST}", Some("example")),
            ("${configs.a.b}/x", Some("x = y")),
            ("${configs.none}", None),
            ("${vars.x}", Some("${vars.x}")),
            ("$uri", Some("$uri")),
            ("$OTHER:x", Some("$OTHER:x")),
            ("$secret{db}", None),
            ("x$secret{db}", Some("x$secret{db}")),
        ] {
            let mut diagnostics = Diagnostics::new();
            let key = Key { value: value.to_owned(), span: Span::BUILT_IN };
            let resolved = injector.resolve(key, &mut diagnostics);
            assert_eq!(diagnostics.has_errors(), expected.is_none(), "{value}");
            assert_eq!(resolved.value, expected.unwrap_or(value), "{value}");
            let mut diagnostics = Diagnostics::new();
            injector.clone().check_only(true).resolve(resolved, &mut diagnostics);
            assert_eq!(diagnostics.has_errors(), value == "$secret{db}", "{value}");
            assert_eq!(diagnostics.warnings() == 1, expected.is_none() && value != "$secret{db}", "{value}");
        }
    }
}
