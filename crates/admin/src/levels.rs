//! Which lines the log has: a level for each category, which may change while the bus runs.
//!
//! A category is the target of an event. One that has no level of its own has that of the longest category that its name begins
//! with, `busbar` being the shortest, and else the default.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::filter::{LevelFilter, Targets};

/// All categories, with what they have.
pub const CATEGORIES: [(&str, &str); 28] = [
    ("busbar", "all categories below, and the process itself"),
    ("busbar::access", "losses of the access log"),
    ("busbar::certificate", "certificates of listeners that have expired, or will soon"),
    ("busbar::config", "findings about the configuration when it is read"),
    (
        "busbar::dataservice",
        "requests of data services that fail: service, request, code and the message of the database",
    ),
    ("busbar::drain", "messages that could not be finished before the process ended"),
    ("busbar::event", "output of the mediators `event` and `publishEvent`"),
    ("busbar::fault", "failed messages"),
    ("busbar::limits", "work that was refused because a limit was reached"),
    ("busbar::log", "output of the `log` mediator"),
    ("busbar::panic", "faults of the program itself"),
    ("busbar::registry", "registries on other servers"),
    ("busbar::reload", "results of reloads"),
    ("busbar::script", "output of scripts"),
    ("busbar::settings", "settings and tunables, at the start"),
    ("busbar::sql", "databases and their pools of connections"),
    ("busbar::start", "start and end of the process"),
    ("busbar::trace", "messages that were traced on the command line"),
    ("busbar::wire", "heads and bodies of services with the wire log switched on"),
    ("busbar_admin", "the admin address"),
    ("busbar_config", "reading configurations"),
    ("busbar_connectors", "operations of connectors"),
    ("busbar_endpoints", "endpoints"),
    ("busbar_flow", "the engine"),
    ("busbar_mediators", "mediators"),
    ("busbar_stores", "message stores"),
    ("busbar_transport", "connections"),
    ("busbar_xslt", "stylesheets"),
];

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A level for each category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    default: LevelFilter,
    by_category: BTreeMap<&'static str, LevelFilter>,
}

impl Default for Levels {
    /// `info`
    fn default() -> Levels {
        Levels { default: LevelFilter::INFO, by_category: BTreeMap::new() }
    }
}

impl std::str::FromStr for Levels {
    type Err = String;

    /// A level (`info`), or levels by category (`info,busbar_transport=debug`).
    fn from_str(text: &str) -> Result<Levels, String> {
        // A category that is not named is at ERROR, as `RUST_LOG` has it elsewhere.
        let mut levels = Levels { default: LevelFilter::ERROR, by_category: BTreeMap::new() };
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                None if CATEGORIES.iter().any(|(category, _)| *category == part) => {
                    levels.by_category.insert(category(part)?, LevelFilter::TRACE);
                }
                None => levels.default = level(part)?,
                Some((name, value)) => {
                    levels.by_category.insert(category(name.trim())?, level(value.trim())?);
                }
            }
        }
        Ok(levels)
    }
}

impl Levels {
    pub(crate) fn targets(&self) -> Targets {
        // The library logs each fault of a peer; the bus logs what comes of it.
        let targets = Targets::new()
            .with_default(self.default)
            .with_target("h2", LevelFilter::OFF)
            // The drivers of databases log a line for each connection or each `RAISE NOTICE`, beside the errors that they report.
            .with_target("tiberius", LevelFilter::OFF)
            .with_target("sqlx", LevelFilter::WARN.min(self.default));
        self.by_category.iter().fold(targets, |targets, (name, level)| targets.with_target(*name, *level))
    }

    fn of(&self, category: &str) -> LevelFilter {
        let matching = self.by_category.iter().filter(|(name, _)| category.starts_with(**name));
        matching.max_by_key(|(name, _)| name.len()).map_or(self.default, |(_, level)| *level)
    }
}

fn category(name: &str) -> Result<&'static str, String> {
    let names = || CATEGORIES.iter().map(|(name, _)| *name);
    names().find(|category| *category == name).ok_or_else(|| {
        let hint = diagnostics::did_you_mean(name, names());
        format!(
            "there is no category `{name}`; {}",
            hint.unwrap_or_else(|| "docs/operations.md lists them".to_owned())
        )
    })
}

fn level(text: &str) -> Result<LevelFilter, String> {
    let lower = text.to_ascii_lowercase();
    if LEVELS.contains(&lower.as_str())
        && let Ok(level) = lower.parse()
    {
        return Ok(level);
    }
    let mut why = format!("there is no level `{text}`");
    if let Some(hint) = diagnostics::did_you_mean(&lower, LEVELS) {
        why = format!("{why}; {hint}");
    }
    Err(format!("{why}: expected {}", LEVELS.join(", ")))
}

/// Puts new levels in force.
type Apply = Box<dyn Fn(Targets) + Send + Sync>;

/// The levels of the process, to be looked at and changed while it runs. What is changed holds until the process ends.
#[derive(Clone)]
pub struct Loggers {
    shared: Arc<(Mutex<Levels>, Apply)>,
}

impl fmt::Debug for Loggers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Loggers({:?})", self.shared.0)
    }
}

/// One category and its level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logger {
    /// Its name.
    pub category: &'static str,
    /// The level in force: `off`, `error`, `warn`, `info`, `debug`, `trace`.
    pub level: String,
    /// It has a level of its own.
    pub own: bool,
    /// What it has.
    pub meaning: &'static str,
}

impl Loggers {
    pub(crate) fn new(levels: Levels, apply: Apply) -> Loggers {
        Loggers { shared: Arc::new((Mutex::new(levels), apply)) }
    }

    /// The level of what has no other, and all categories.
    pub fn all(&self) -> (String, Vec<Logger>) {
        let levels = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        let logger = |&(category, meaning)| Logger {
            category,
            level: levels.of(category).to_string(),
            own: levels.by_category.contains_key(category),
            meaning,
        };
        (levels.default.to_string(), CATEGORIES.iter().map(logger).collect())
    }

    /// Gives a category (`root`: what has no level of its own) a level, or with `None` takes it away, so that it has that
    /// of its parent again.
    ///
    /// # Errors
    /// There is no such category or level: a sentence with the nearest one.
    pub fn set(&self, name: &str, to: Option<&str>) -> Result<(), String> {
        let to = to.map(level).transpose()?;
        let mut levels = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (name, to) {
            ("root", Some(level)) => levels.default = level,
            ("root", None) => return Err("`root` must have a level".to_owned()),
            (name, Some(level)) => {
                levels.by_category.insert(category(name)?, level);
            }
            (name, None) => {
                levels.by_category.remove(category(name)?);
            }
        }
        // Under the lock: of two changes the later one stays.
        (self.shared.1)(levels.targets());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    /// Whether events of this category and level are logged by these levels.
    fn logs(levels: &Levels, category: &str, level: Level) -> bool {
        levels.targets().would_enable(category, &level)
    }

    #[test]
    fn the_longest_category_counts() {
        let levels: Levels = "warn, busbar=info,busbar::fault=off,busbar_transport=debug".parse().unwrap();
        for (category, level, expected) in [
            ("busbar::fault", Level::ERROR, false),
            ("busbar::log", Level::INFO, true),
            ("busbar::log", Level::DEBUG, false),
            ("busbar_transport::pool", Level::DEBUG, true),
            ("busbar_flow", Level::INFO, true),
            ("rustls", Level::INFO, false),
            ("rustls", Level::WARN, true),
        ] {
            assert_eq!(logs(&levels, category, level), expected, "{category} {level}");
            assert_eq!(levels.of(category) >= level, expected, "{category} {level}");
        }
        assert!(logs(&"busbar::log".parse().unwrap(), "busbar::log", Level::TRACE));
    }

    #[test]
    fn what_does_not_exist_is_named() {
        for (text, expected) in [
            ("loud", "there is no level `loud`: expected off, error, warn, info, debug, trace"),
            ("inof", "there is no level `inof`; did you mean `info`?: expected"),
            ("info,busbar::falt=debug", "there is no category `busbar::falt`; did you mean `busbar::fault`?"),
            ("info,busbar::fault=dbug", "there is no level `dbug`; did you mean `debug`?"),
            ("info,org.apache=debug", "there is no category `org.apache`; docs/operations.md lists them"),
            ("info,=debug", "there is no category ``"),
            ("info,busbar=", "there is no level ``"),
        ] {
            let error = text.parse::<Levels>().unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn levels_change_while_it_runs() {
        let applied = Arc::new(Mutex::new(Targets::new()));
        let seen = Arc::clone(&applied);
        let apply: Apply = Box::new(move |targets| *seen.lock().unwrap() = targets);
        let loggers = Loggers::new("info".parse().unwrap(), apply);
        let enabled = |level| applied.lock().unwrap().would_enable("busbar::log", &level);
        loggers.set("busbar::log", Some("DEBUG")).unwrap();
        assert!(enabled(Level::DEBUG) && !enabled(Level::TRACE));
        let logger = |name| loggers.all().1.into_iter().find(|logger| logger.category == name).unwrap();
        assert!(
            logger("busbar::log").own
                && logger("busbar::log").level == "debug"
                && !logger("busbar::fault").own
        );
        loggers.set("busbar::log", None).unwrap();
        assert!(enabled(Level::INFO) && !enabled(Level::DEBUG));
        loggers.set("root", Some("error")).unwrap();
        assert!(enabled(Level::ERROR) && !enabled(Level::WARN));
        assert!(loggers.set("root", None).is_err() && loggers.set("busbar::lag", Some("info")).is_err());
    }

    /// A category that this list does not have could not be set.
    #[test]
    fn every_category_of_the_sources_is_known() {
        fn sources(folder: &std::path::Path, texts: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    sources(&path, texts);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    texts.push(std::fs::read_to_string(&path).unwrap());
                }
            }
        }
        let mut texts = Vec::new();
        sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut texts);
        let sentence = "target: \"busbar::";
        for text in &texts {
            for (at, _) in text.match_indices(sentence) {
                let name = text[at + "target: \"".len()..].split('"').next().unwrap();
                // Tests of the log have one of their own.
                assert!(name == "busbar::x" || category(name).is_ok(), "CATEGORIES lacks {name}");
            }
        }
    }

    #[test]
    fn the_guide_has_all_categories() {
        let guide = include_str!("../../../docs/operations.md");
        for (name, meaning) in CATEGORIES {
            assert!(
                guide.contains(&format!("| `{name}` | {meaning} |")),
                "docs/operations.md lacks {name}: {meaning}"
            );
        }
    }
}
