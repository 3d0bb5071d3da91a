//! Values from outside the configuration: `$SYSTEM:NAME` (environment), `$FILE:NAME` (`file.properties`) and
//! `${configs.NAME}` (either).
//!
//! The value must start with the mark; the whole value is replaced by the first name that follows it.

use crate::properties::properties;
use crate::value::Key;
use diagnostics::{Diagnostic, Diagnostics};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Resolves injected values. Cheap to clone.
#[derive(Clone, Default, Debug)]
pub struct Injector {
    properties: Arc<HashMap<String, String>>,
    /// Instead of the environment of the process, for tests and tools.
    environment: Option<Arc<HashMap<String, String>>>,
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
        let text = std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        self.properties = Arc::new(properties(&text.unwrap_or_default()));
        self
    }

    /// Resolves `$SYSTEM:` from these values instead of the environment.
    #[must_use]
    pub fn with_environment(mut self, values: HashMap<String, String>) -> Injector {
        self.environment = Some(Arc::new(values));
        self
    }

    /// A value with its mark resolved. A name that is not set is an error (`unresolved-value`).
    pub fn resolve(&self, key: Key, diagnostics: &mut Diagnostics) -> Key {
        let Some((kind, name)) = mark(&key) else { return key };
        let (value, what) = match kind {
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
                    "configs" => format!("`{name}` is set {what}"),
                    _ => format!("{what} `{name}` is not set"),
                };
                diagnostics.push(
                    Diagnostic::error("unresolved-value", message).at(key.span, "needed for this value"),
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
        match &self.environment {
            Some(values) => values.get(name).cloned(),
            None => std::env::var(name).ok(),
        }
    }
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
        ] {
            let mut diagnostics = Diagnostics::new();
            let key = Key { value: value.to_owned(), span: Span::BUILT_IN };
            let resolved = injector.resolve(key, &mut diagnostics);
            assert_eq!(diagnostics.has_errors(), expected.is_none(), "{value}");
            assert_eq!(resolved.value, expected.unwrap_or(value), "{value}");
        }
    }
}
