//! `busbar.toml`: all that is wrong with it at once, each with its line and the name that may be meant.

use serde::de::DeserializeOwned;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue, Deserializer};

/// Most errors that are looked for.
const MOST: usize = 100;

/// Reads a settings file for `T`.
///
/// # Errors
/// One line for each thing that is wrong: `file:line:column: what`.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<toml::Table, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {}", path.display(), diagnostics::io_reason(&error)))?;
    let found = errors::<T>(&text);
    if found.is_empty() {
        return text.parse().map_err(|error| format!("{}: {error}", path.display()));
    }
    let lines = found.into_iter().map(|(offset, message)| {
        let (line, column) = line_and_column(&text, offset);
        format!("{}:{line}:{column}: {message}", path.display())
    });
    Err(lines.collect::<Vec<_>>().join("\n"))
}

/// The line and the column of an offset in bytes, both from 1.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or_default();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}

/// Everything that is wrong, by its offset.
fn errors<T: DeserializeOwned>(text: &str) -> Vec<(usize, String)> {
    let at = |error: &toml::de::Error| error.span().unwrap_or_default().start;
    let (mut table, broken) = DeTable::parse_recoverable(text);
    if !broken.is_empty() {
        return broken.iter().map(|error| (at(error), error.message().to_owned())).collect();
    }
    let mut found = Vec::new();
    // The reader stops at the first error. Without that entry it goes on to the next one.
    while found.len() < MOST
        && let Err(error) = T::deserialize(Deserializer::from(table.clone()))
    {
        let removed = error.span().and_then(|span| remove(table.get_mut(), &span));
        found.push((at(&error), sentence(removed.as_deref().unwrap_or_default(), error.message())));
        if removed.is_none() {
            break;
        }
    }
    found.sort();
    found
}

/// Removes the entry that is written at a place, and returns its name (`limits.idle`).
fn remove(table: &mut DeTable<'_>, span: &Range<usize>) -> Option<String> {
    let mut whole = None;
    for (key, value) in table.iter_mut() {
        let name = key.get_ref().to_string();
        if key.span() == *span {
            whole = Some(name);
            break;
        }
        let inside = match value.get_mut() {
            DeValue::Table(inner) => remove(inner, span),
            DeValue::Array(items) => items.iter_mut().find_map(|item| match item.get_mut() {
                DeValue::Table(inner) => remove(inner, span),
                _ => None,
            }),
            _ => None,
        };
        if let Some(inner) = inside {
            return Some(format!("{name}.{inner}"));
        }
        let within = value.span();
        if within.start <= span.start && span.end <= within.end {
            whole = Some(name);
            break;
        }
    }
    let name = whole?;
    table.remove(name.as_str()).map(|_| name)
}

/// What is wrong with a setting, in words. Values of secrets are not repeated.
pub fn sentence(name: &str, message: &str) -> String {
    let message = message.trim();
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let mut names = rest.split('`').skip(1).step_by(2);
        let unknown = names.next().unwrap_or_default();
        let section = name.strip_suffix(unknown).unwrap_or_default();
        let help = diagnostics::nearest(unknown, names);
        let help = help.map_or(String::new(), |meant| format!("; did you mean `{section}{meant}`?"));
        return format!("there is no setting `{section}{unknown}`{help}");
    }
    let message = match message.rfind("expected") {
        Some(at) if holds_secrets(name) => &message[at..],
        _ => message,
    };
    if name.is_empty() { message.to_owned() } else { format!("`{name}`: {message}") }
}

/// Whether what is written there is a secret, or has some in it.
fn holds_secrets(name: &str) -> bool {
    let holds = |part: &str| ["users", "keys", "tokens", "secrets"].contains(&part);
    diagnostics::is_secret(name) || name.split('.').any(holds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn all_errors_are_found_at_once() {
        let text =
            "wrkers = 2\n[limits]\nbdy = '1m'\nidle = 5.5\n\n[listn]\nhttp = 'x'\n\n[log]\nlevel = 'info'\n";
        let found: Vec<String> = errors::<Settings>(text)
            .into_iter()
            .map(|(at, message)| format!("{}: {message}", text[..at].matches('\n').count() + 1))
            .collect();
        assert_eq!(found.len(), 4, "{found:#?}");
        assert_eq!(found[0], "1: there is no setting `wrkers`; did you mean `workers`?");
        assert_eq!(found[1], "3: there is no setting `limits.bdy`; did you mean `limits.body`?");
        assert!(found[2].starts_with("4: `limits.idle`: "), "{}", found[2]);
        assert_eq!(found[3], "6: there is no setting `listn`; did you mean `listen`?");
        assert!(errors::<Settings>("workers = 2\n[wso2]\n'a.b' = 1\n").is_empty());
        // A text that is not TOML.
        assert!(!errors::<Settings>("workers = \n[limits\n").is_empty());
        for (name, shown) in [
            ("tls.password", "expected a string"),
            ("http.users", "expected a string"),
            ("http.users.alice", "expected a string"),
            ("access.shop.keys", "expected a string"),
            ("admin.tokens", "expected a string"),
            ("tls.key", "invalid type: integer `7`, expected a string"),
        ] {
            let text = sentence(name, "invalid type: integer `7`, expected a string");
            assert_eq!(text, format!("`{name}`: {shown}"));
        }
    }
}
