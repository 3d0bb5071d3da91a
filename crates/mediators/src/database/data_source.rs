//! Data sources: from the `connection` of a step, or a data source of the configuration, to a pool.

use super::{check_children, missing};
use config::{DataSource, Element, Key};
use diagnostics::{Diagnostic, Severity, Span};
use flow::Compiler;
use sql::{Options, Pool, Pools, Source};
use std::sync::Arc;

/// Elements of `pool`.
const POOL: &[&str] = &["driver", "url", "user", "password", "dsName", "icClass", "property"];

/// The rules of what another machine may have: there the step runs.
const ELSEWHERE: &[&str] =
    &["unknown-data-source", "unsupported-database", "unresolved-value", "unknown-secret"];

/// The database of a step; the reason where there is none here. `None` after a recorded error.
pub(super) fn connection(
    element: &Element,
    compiler: &mut Compiler<'_>,
) -> Option<Result<Arc<Pool>, String>> {
    here(compiler, "messages that come to this step fault; the rest runs", |compiler| {
        pool_for(element, compiler)
    })
}

/// The pool that `open` makes; the reason where its database is not here, which is a warning with `consequence`, as a server looks for it when a message
/// comes. `None` after a recorded error.
pub(super) fn here(
    compiler: &mut Compiler<'_>,
    consequence: &str,
    open: impl FnOnce(&mut Compiler<'_>) -> Option<Arc<Pool>>,
) -> Option<Result<Arc<Pool>, String>> {
    let outer = std::mem::take(compiler.diagnostics);
    let pool = open(compiler);
    let findings = std::mem::replace(compiler.diagnostics, outer);
    let is_elsewhere = |finding: &&Diagnostic| ELSEWHERE.contains(&finding.rule);
    let mut errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let reason = match pool.is_none() && errors.all(|finding| is_elsewhere(&finding)) {
        true => {
            let message = findings.iter().find(is_elsewhere).map(|finding| finding.message.clone());
            Some(message.unwrap_or_else(|| "its address is not known".to_owned()))
        }
        false => None,
    };
    for finding in findings.iter().cloned() {
        compiler.diagnostics.push(match reason.is_some() && is_elsewhere(&&finding) {
            true => Diagnostic { severity: Severity::Warning, ..finding }.help(consequence),
            false => finding,
        });
    }
    pool.map(Ok).or(reason.map(Err))
}

/// The pool of the `connection` of a step; `None` after a recorded error.
fn pool_for(element: &Element, compiler: &mut Compiler<'_>) -> Option<Arc<Pool>> {
    let Some(pool) = element.child("connection").and_then(|connection| connection.child("pool")) else {
        missing(element, "a `connection` with a `pool`", compiler);
        return None;
    };
    check_children(pool, POOL, compiler)?;
    let mut options = Options { query_timeout: compiler.services.settings.sql_timeout, ..Options::inline() };
    let mut overrides = Vec::new();
    for property in pool.children_named("property") {
        let (Some(name), Some(value)) = (property.attribute("name"), property.attribute("value")) else {
            missing(property, "a `name` and a `value`", compiler);
            return None;
        };
        overrides.push((name.value.trim().to_owned(), Key::of(value)));
    }
    let ds_name = text_of(pool, "dsName", compiler)?;
    let url = text_of(pool, "url", compiler)?;
    if let Some(name) = ds_name.filter(|name| !name.value.trim().is_empty()) {
        // With a factory of JNDI it is the URL of that factory, which nothing here can ask; the name may be known all the same.
        return named(&name, overrides, compiler);
    }
    let Some(url) = url.filter(|url| !url.value.trim().is_empty()) else {
        missing(pool, "a `dsName`, or a `driver` and a `url`", compiler);
        return None;
    };
    let user = text_of(pool, "user", compiler)?;
    let password = text_of(pool, "password", compiler)?;
    set(&mut options, &overrides, false, compiler)?;
    let settings = Settings { url, user, password, options };
    open(&format!("{}", compiler.artifact_identity()), &settings, pool.start_tag(), compiler)
}

/// The pool of an artifact that has the address of its database itself; `None` after a recorded error.
pub(super) fn pool_at(
    url: Key,
    user: Option<Key>,
    password: Option<Key>,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<Pool>> {
    let options = Options { query_timeout: compiler.services.settings.sql_timeout, ..Options::inline() };
    let (name, place) = (format!("{}", compiler.artifact_identity()), url.span);
    open(&name, &Settings { url, user, password, options }, place, compiler)
}

/// The text of a child, which may be in an entry (`key`); `Some(None)`: there is none, `None` after an error.
fn text_of(pool: &Element, name: &str, compiler: &mut Compiler<'_>) -> Option<Option<Key>> {
    let Some(child) = pool.child(name) else { return Some(None) };
    let Some(key) = child.attribute("key") else {
        return Some(Some(Key { value: child.text().trim().to_owned(), span: child.text_span() }));
    };
    match compiler.configuration.content(key.value.trim()) {
        Ok(Some(content)) => {
            let value = String::from_utf8_lossy(&content.bytes).trim().to_owned();
            Some(Some(Key { value, span: key.value_span }))
        }
        Ok(None) | Err(_) => {
            let message = format!("there is no entry `{}`", key.value);
            compiler.error(
                "unknown-entry",
                message,
                key.value_span,
                format!("the `{name}` of the data source is read from it"),
            );
            None
        }
    }
}

/// What a pool is made of, before secrets are looked up.
struct Settings {
    url: Key,
    user: Option<Key>,
    password: Option<Key>,
    options: Options,
}

/// The pool of a data source of the configuration, by its name; `None` after a recorded error.
pub fn pool_named(name: &Key, compiler: &mut Compiler<'_>) -> Option<Arc<Pool>> {
    named(name, Vec::new(), compiler)
}

/// The pool of a data source with settings of its own; `place`: where they are. `None` after a recorded error.
pub fn pool_with(source: &DataSource, place: Span, compiler: &mut Compiler<'_>) -> Option<Arc<Pool>> {
    pool_of(source, Vec::new(), place, compiler)
}

/// A data source of the configuration.
fn named(name: &Key, overrides: Vec<(String, Key)>, compiler: &mut Compiler<'_>) -> Option<Arc<Pool>> {
    let sources = &compiler.configuration.data_sources;
    let Some(source) = sources.iter().find(|source| source.is_named(&name.value)).cloned() else {
        let names: Vec<String> = sources
            .iter()
            .flat_map(|source| source.jndi.clone().into_iter().chain([source.name.value.clone()]))
            .collect();
        let message = format!("there is no data source `{}`", name.value.trim());
        compiler.diagnostics.push(
            Diagnostic::error("unknown-data-source", message)
                .at(name.span, "neither a `*-datasources.xml`, a project nor a `deployment.toml` has it")
                .did_you_mean(name.value.trim(), names.iter().map(String::as_str)),
        );
        return None;
    };
    pool_of(&source, overrides, name.span, compiler)
}

/// The pool of a data source; `place`: where it is named.
fn pool_of(
    source: &DataSource,
    overrides: Vec<(String, Key)>,
    place: Span,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<Pool>> {
    let value = |names: &[&str]| source.value(names).cloned();
    let Some(url) = value(&["url", "jdbcUrl"]) else {
        let message = format!("the data source `{}` has no `url`", source.name.value);
        compiler.error("missing-element", message, place, "its address is missing");
        return None;
    };
    let (user, password) = (value(&["username", "user"]), value(&["password"]));
    let not_options = [
        "url",
        "jdbcurl",
        "username",
        "user",
        "password",
        "driverclassname",
        "datasourceclassname",
        "xadatasourceclassname",
        "uniqueresourcename",
        "id",
        "description",
    ];
    let mut written: Vec<(String, Key)> = source.values.clone();
    written.retain(|(name, _)| !not_options.contains(&&*name.to_ascii_lowercase()));
    let mut options = Options { query_timeout: compiler.services.settings.sql_timeout, ..Options::default() };
    set(&mut options, &written, true, compiler)?;
    set(&mut options, &overrides, false, compiler)?;
    let settings = Settings { url, user, password, options };
    open(&source.name.value.clone(), &settings, place, compiler)
}

/// Sets options. Those of a data source that are unknown may mean something to a driver of Java: they are said once, and have no effect.
fn set(
    options: &mut Options,
    all: &[(String, Key)],
    of_source: bool,
    compiler: &mut Compiler<'_>,
) -> Option<()> {
    for (name, value) in all {
        match options.set(name, &value.value) {
            Ok(_) => {}
            Err(Some(why)) => {
                let message = format!("`{name}` cannot be `{}`", value.value);
                compiler.error("bad-value", message, value.span, why);
                return None;
            }
            Err(None) => {
                let message = format!("a data source has no option `{name}`");
                let label = if of_source { "it has no effect here" } else { "it has no effect" };
                compiler.warning("unknown-option", message, value.span, label);
            }
        }
    }
    Some(())
}

/// Opens the pool `name`, or takes the one that is there; secrets are looked up here. `None` after a recorded error.
fn open(name: &str, settings: &Settings, place: Span, compiler: &mut Compiler<'_>) -> Option<Arc<Pool>> {
    let url = compiler.outside(&settings.url)?;
    let mut outside =
        |key: &Option<Key>| key.as_ref().map_or(Some(String::new()), |key| compiler.outside(key));
    let (user, password) = (outside(&settings.user)?, outside(&settings.password)?);
    // Said already; what it is is known on the machine that runs it.
    if url.trim().is_empty() || config::is_unresolved(&url) {
        return None;
    }
    let embedded = compiler.services.settings.sql_embedded;
    let mut source = match Source::new(&url, &user, &password, settings.options.clone(), embedded) {
        Ok(source) => source,
        Err(unusable) => {
            let found = Diagnostic::error("unsupported-database", unusable.message)
                .at(place, "the data source cannot be used");
            compiler.diagnostics.push(found.help(unusable.help));
            return None;
        }
    };
    source.options.connect_timeout = compiler.services.settings.connect_timeout;
    source.options.longest = compiler.services.settings.sql_value;
    for (option, why) in source.target.not_honoured() {
        compiler.warning(
            "unknown-option",
            format!("`{option}` of the URL has no effect"),
            settings.url.span,
            why,
        );
    }
    let (others, count) = source.target.other_options();
    for option in others {
        // All other options are for drivers of Java.
        if let Some(nearest) = diagnostics::did_you_mean(option, count.iter().copied()) {
            let message = format!("`{option}` of the URL has no effect");
            compiler.warning("unknown-option", message, settings.url.span, nearest);
        }
    }
    for (option, value, expected) in source.target.wrong_options() {
        let message = format!("`{option}` of the URL cannot be `{value}`: no connection can be made");
        compiler.warning("bad-value", message, settings.url.span, format!("expected {expected}"));
    }
    // Relative to the configuration, as all its files.
    if source.target.dialect == sql::Dialect::Sqlite
        && let Some(file) = source.target.database.take()
    {
        let path = std::path::Path::new(&file);
        source.target.database = Some(match path.is_absolute() {
            true => file,
            false => compiler.configuration.root.join(path).to_string_lossy().into_owned(),
        });
    }
    Some(compiler.services.kept.get::<Pools>().get(name, source))
}
