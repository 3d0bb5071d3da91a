//! The parameters of proxy services and inbound endpoints that take files.

use super::Compiler;
use super::number::{self, BYTES, COUNT, MILLISECONDS, SECONDS, Unit};
use crate::engine::file::{Remark, Writing};
use crate::runtime::source::{Action, Moving, Records, Reply, Source};
use ::expression::DatePattern;
use config::{Key, Parameter, ParameterValue};
use diagnostics::{Diagnostic, Severity, Span};
use files::address::{self, Address, Wrong};
use files::claim::{Locking, Release};
use files::directory::{By, Order};
use message::regex::Pattern;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::Duration;

/// Shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(10);
/// How often a proxy service looks where the parameter is absent.
const INTERVAL: Duration = Duration::from_secs(300);
/// How long it waits before it looks again for a directory that is gone.
const RECONNECT: Duration = Duration::from_secs(30);
/// How often it does so, before it waits for its interval.
const RETRIES: u64 = 3;
/// When a move that failed is tried again.
const AGAIN: Duration = Duration::from_millis(3000);
/// Where files are written down that could not be moved.
const RECORDS: &str = "vfs-move-failed-records.properties";
/// How times are written there.
const RECORDED: &str = "dd/MM/yyyy/ HH:mm:ss";

const PREFIX: &str = "transport.vfs.";
const POLL: &str = "transport.PollInterval";

/// Parameters that have a meaning, behind the prefix.
const PARAMETERS: &[&str] = &[
    "FileURI",
    "ContentType",
    "FileNamePattern",
    "FileProcessInterval",
    "FileProcessCount",
    "ActionAfterProcess",
    "ActionAfterFailure",
    "MoveAfterProcess",
    "MoveAfterFailure",
    "MoveAfterFailedMove",
    "MoveTimestampFormat",
    "SubFolderTimestampFormat",
    "CreateFolder",
    "Locking",
    "AutoLockRelease",
    "AutoLockReleaseInterval",
    "LockReleaseSameNode",
    "Build",
    "MaxRetryCount",
    "ReconnectTimeout",
    "FailedRecordsFileName",
    "FailedRecordsFileDestination",
    "FailedRecordNextRetryDuration",
    "MoveFailedRecordTimestampFormat",
    "FileSortAttribute",
    "FileSortAscending",
    "FileSizeLimit",
    "CheckSizeInterval",
    "MinimumAge",
    "MaximumAge",
    "UpdateLastModified",
    "waitTimeBeforeRead",
    "WaitTimeBeforeRead",
    "ReplyFileURI",
    "ReplyFileName",
];

/// Parameters that WSO2 needs, and their reasons.
const NOT_NEEDED: &[(&str, &str)] = &[
    ("Streaming", "large files are streams as long as no step reads them, small ones are read at once"),
    ("CheckSizeIgnoreEmpty", "files with nothing in them are never taken"),
    ("DistributedLock", CLUSTER),
    ("DistributedTimeout", CLUSTER),
    ("ClusterAware", CLUSTER),
    ("IsMounted", "a directory that is not there is looked for until it is"),
    ("ResolveHostsDynamically", "this machine needs no host name"),
    ("UseTempFile", ADDRESS),
    ("Append", ADDRESS),
    ("SendFileSynchronously", ADDRESS),
    ("FileType", "bytes are read as they are"),
    ("SFTPIdentities", SFTP),
    ("SFTPIdentityPassPhrase", SFTP),
    ("SFTPUserDirIsRoot", SFTP),
    ("SFTPStrictHostKeyChecking", SFTP),
];
const CLUSTER: &str = "the lock file beside each file holds among all servers that see the directory";
const ADDRESS: &str = "it belongs to the address of an endpoint: vfs:file:///out?transport.vfs.Append=true";
const SFTP: &str = "it is for SFTP";

/// Parameters of inbound endpoints without the prefix.
const OF_INBOUND: &[&str] = &["interval", "sequential", "coordination", "inbound.behavior"];

/// Whether a proxy service has a directory.
pub(super) fn is_given(parameters: &[Parameter]) -> bool {
    parameters.iter().any(|parameter| parameter.name == "transport.vfs.FileURI")
}

/// Whether a class is that of WSO2 which takes files.
pub(super) fn is_class(class: &str) -> bool {
    class.starts_with("org.wso2.carbon.inbound.endpoint.protocol.file.")
}

/// The file transport of a proxy service; `None`: it has none, or an error was recorded.
pub(super) fn of_proxy(proxy: &config::Proxy, compiler: &mut Compiler<'_>) -> Option<Source> {
    let given = is_given(&proxy.parameters);
    let named = matches!(&proxy.transports, config::Transports::Named(names) if names.iter().any(|name| name == "vfs"));
    if given && !named && proxy.transports != config::Transports::All {
        let message = "the parameters for files have no effect";
        let place = proxy
            .parameters
            .iter()
            .find(|parameter| parameter.name.starts_with(PREFIX))
            .map_or(proxy.span, |parameter| parameter.span);
        compiler.warning("ignored-parameter", message, place, "`transports` does not name `vfs`");
        return None;
    }
    if !given && !named {
        let stray = proxy.parameters.iter().find(|parameter| parameter.name.starts_with(PREFIX));
        if let Some(stray) = stray {
            let message = "the parameters for files have no effect: there is no `transport.vfs.FileURI`";
            let names = proxy.parameters.iter().map(|parameter| parameter.name.as_str());
            let warning = Diagnostic::warning("ignored-parameter", message);
            let warning = warning.at(stray.span, "no files are taken");
            let warning = warning.did_you_mean("transport.vfs.FileURI", names);
            compiler.diagnostics.push(warning);
        }
        return None;
    }
    let directory = proxy.parameters.iter().rev().find(|parameter| parameter.name == "transport.vfs.FileURI");
    if directory.is_none_or(is_blank) {
        let message = "the parameter `transport.vfs.FileURI` is needed to take files";
        let names = proxy.parameters.iter().map(|parameter| parameter.name.as_str());
        let warning = Diagnostic::warning("missing-parameter", message);
        let place = directory.map_or(proxy.span, |parameter| parameter.span);
        let warning = warning.at(place, "a directory, or a file: file:///directory");
        let warning = warning.did_you_mean(
            "transport.vfs.FileURI",
            names.filter(|name| directory.is_none() && !name.is_empty()),
        );
        compiler.diagnostics.push(warning.help("`transports` names `vfs`: the proxy service takes no files"));
        return None;
    }
    // A directory on another machine cannot be read; the service stays available on its other transports.
    let outer = std::mem::take(compiler.diagnostics);
    let source = source_of(proxy, compiler);
    let findings = std::mem::replace(compiler.diagnostics, outer);
    let is_elsewhere = |finding: &Diagnostic| finding.rule == "unsupported-transport";
    let mut errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let only_elsewhere = errors.all(is_elsewhere);
    for finding in findings.iter().cloned() {
        compiler.diagnostics.push(match only_elsewhere && finding.severity == Severity::Error {
            true => {
                Diagnostic { severity: Severity::Warning, ..finding }.help("the proxy service takes no files")
            }
            false => finding,
        });
    }
    source
}

fn is_blank(parameter: &Parameter) -> bool {
    parameter.value.text().is_some_and(|text| text.trim().is_empty())
}

/// The source that the parameters of a proxy service describe; `None` after a recorded error.
fn source_of(proxy: &config::Proxy, compiler: &mut Compiler<'_>) -> Option<Source> {
    let mut reader = Reader { parameters: &proxy.parameters, span: proxy.span, faulty: false, compiler };
    reader.check_names(false);
    let interval = match reader.text(POLL) {
        None => None,
        Some(key) => {
            let milliseconds =
                key.value.len().checked_sub(2).filter(|&end| {
                    key.value.get(end..).is_some_and(|suffix| suffix.eq_ignore_ascii_case("ms"))
                });
            let (unit, number, make): (_, _, fn(u64) -> Duration) = match milliseconds {
                Some(end) => (MILLISECONDS, &key.value[..end], Duration::from_millis),
                None => (SECONDS, key.value.as_str(), Duration::from_secs),
            };
            let also = if milliseconds.is_none() { "; milliseconds: 500ms" } else { "" };
            reader.parsed(POLL, &key, number, unit, also).map(make)
        }
    };
    let interval = reader.interval(POLL, interval);
    let name = proxy.name.value.clone();
    let counters = reader.compiler.services.metrics.counters("proxy", &name);
    reader.source(config::ArtifactKind::Proxy, name, interval, true, counters)
}

/// An inbound endpoint that takes files; `None` after a recorded error.
pub(super) fn of_inbound(endpoint: &config::InboundEndpoint, compiler: &mut Compiler<'_>) -> Option<Source> {
    let mut reader =
        Reader { parameters: &endpoint.parameters, span: endpoint.span, faulty: false, compiler };
    reader.check_names(true);
    let interval = match reader.text("interval") {
        Some(key) => reader.parsed("interval", &key, &key.value, MILLISECONDS, "").map(Duration::from_millis),
        None => {
            reader.missing("interval", "milliseconds between two looks");
            None
        }
    };
    let sequential = reader.truth("sequential", true);
    let _ = reader.truth("coordination", true);
    let name = endpoint.name.value.clone();
    let counters = reader.compiler.services.metrics.counters("inbound", &name);
    let interval = reader.interval("interval", interval);
    reader.source(config::ArtifactKind::InboundEndpoint, name, interval, sequential, counters)
}

struct Reader<'a, 'c> {
    parameters: &'a [Parameter],
    span: Span,
    faulty: bool,
    compiler: &'a mut Compiler<'c>,
}

fn full(name: &str) -> String {
    format!("{PREFIX}{name}")
}

impl Reader<'_, '_> {
    fn find(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().rev().find(|parameter| parameter.name == name)
    }

    /// A text, also one that a key leads to; blank counts as absent.
    fn text(&mut self, name: &str) -> Option<Key> {
        let key = match &self.find(name)?.value {
            ParameterValue::Text(key) => key.clone(),
            ParameterValue::Key(key) => match self.compiler.entry(key) {
                Some(entry) => {
                    Key { value: String::from_utf8_lossy(&entry.bytes).into_owned(), span: key.span }
                }
                None => {
                    let (message, span) = (format!("there is no entry `{key}`"), key.span);
                    self.error("unknown-entry", message, span, "named here");
                    return None;
                }
            },
            ParameterValue::Xml(_) | ParameterValue::Expression(_) => {
                let span = self.find(name).map_or(self.span, |parameter| parameter.span);
                self.error("bad-value", format!("the parameter `{name}` is a text"), span, "expected a text");
                return None;
            }
        };
        let value = key.value.trim();
        (!value.is_empty()).then(|| Key { value: value.to_owned(), span: key.span })
    }

    fn error(
        &mut self,
        rule: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) {
        self.faulty = true;
        self.compiler.error(rule, message, span, label);
    }

    fn wrong(&mut self, name: &str, key: &Key, expected: &str) {
        let message = format!("the parameter `{name}` cannot be `{key}`");
        self.error("bad-value", message, key.span, format!("expected {expected}"));
    }

    fn missing(&mut self, name: &str, needed: &str) {
        let names = self.parameters.iter().map(|parameter| parameter.name.as_str());
        let error =
            Diagnostic::error("missing-parameter", format!("the parameter `{name}` is needed to take files"));
        let error = error.at(self.span, needed.to_owned()).did_you_mean(name, names);
        self.compiler.diagnostics.push(error);
        self.faulty = true;
    }

    /// A number; `also`: what else may be written.
    fn parsed(&mut self, name: &str, key: &Key, text: &str, unit: Unit, also: &str) -> Option<u64> {
        let near = match unit.parse(text) {
            Ok(number) => return Some(number),
            Err(near) => near,
        };
        let error = Diagnostic::error("bad-value", format!("the parameter `{name}` cannot be `{key}`"));
        let mut error = error.at(key.span, format!("expected {}{also}", unit.expected()));
        error.help.extend(near.map(|near| format!("did you mean `{near}`?")));
        self.compiler.diagnostics.push(error);
        self.faulty = true;
        None
    }

    fn number(&mut self, name: &str, unit: Unit) -> Option<u64> {
        let name = full(name);
        let key = self.text(&name)?;
        self.parsed(&name, &key, &key.value, unit, "")
    }

    fn seconds(&mut self, name: &str) -> Option<Duration> {
        self.number(name, SECONDS).map(Duration::from_secs)
    }

    /// The time between two looks, which is not nothing.
    fn interval(&mut self, name: &str, interval: Option<Duration>) -> Duration {
        let interval = interval.unwrap_or(INTERVAL);
        if interval.is_zero() {
            let message = format!("the parameter `{name}` should not be 0");
            let label = format!("counts as {} milliseconds", SHORTEST.as_millis());
            self.compiler.warning("bad-value", message, self.place_of(name), label);
        }
        interval.max(SHORTEST)
    }

    /// Where a parameter is written, else its artifact.
    fn place_of(&self, name: &str) -> Span {
        self.find(name).map_or(self.span, |parameter| match &parameter.value {
            ParameterValue::Text(key) | ParameterValue::Key(key) => key.span,
            _ => parameter.span,
        })
    }

    /// Says that a parameter has no effect, if it is there.
    fn useless(&mut self, name: &str, why: &str) {
        let name = full(name);
        if let Some(parameter) = self.find(&name) {
            let (message, span) = (format!("the parameter `{name}` has no effect"), parameter.span);
            self.compiler.warning("ignored-parameter", message, span, why);
        }
    }

    fn milliseconds(&mut self, name: &str) -> Option<Duration> {
        self.number(name, MILLISECONDS).map(Duration::from_millis)
    }

    fn truth(&mut self, name: &str, default: bool) -> bool {
        let Some(key) = self.text(name) else { return default };
        match number::truth(&key) {
            Ok(truth) => truth,
            Err(near) => {
                let message = format!("the parameter `{name}` cannot be `{key}`");
                let error = Diagnostic::error("bad-value", message);
                let mut error = error.at(key.span, "expected true or false");
                error.help.extend(near.map(|near| format!("did you mean `{near}`?")));
                self.compiler.diagnostics.push(error);
                self.faulty = true;
                default
            }
        }
    }

    fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let name = full(name);
        let key = self.text(&name)?;
        let found = words.iter().find(|(word, _)| key.eq_ignore_ascii_case(word));
        if found.is_none() {
            let names = || words.iter().map(|(word, _)| *word);
            let expected = names().collect::<Vec<_>>().join(", ");
            let error = Diagnostic::error("bad-value", format!("the parameter `{name}` cannot be `{key}`"));
            let error =
                error.at(key.span, format!("expected one of: {expected}")).did_you_mean(&key, names());
            self.compiler.diagnostics.push(error);
            self.faulty = true;
        }
        found.map(|(_, value)| *value)
    }

    fn format(&mut self, name: &str) -> Option<DatePattern> {
        let name = full(name);
        let key = self.text(&name)?;
        match DatePattern::simple(&key) {
            Ok(format) => Some(format),
            Err(why) => {
                self.wrong(&name, &key, &format!("a pattern of Java's SimpleDateFormat: {why}"));
                None
            }
        }
    }

    fn place(&mut self, name: &str) -> Option<Address> {
        let name = full(name);
        let key = self.text(&name)?;
        match Address::parse(&key) {
            Ok(address) => Some(address),
            Err(Wrong::Scheme(scheme)) => {
                self.elsewhere(&scheme, key.span);
                None
            }
            Err(Wrong::Text(why)) => {
                let message = format!("the parameter `{name}` is not an address of a directory");
                self.error("bad-address", message, key.span, why);
                None
            }
        }
    }

    /// Records that an address is not on this machine.
    fn elsewhere(&mut self, scheme: &str, span: Span) {
        let error = Diagnostic::error("unsupported-transport", address::not_here(scheme));
        let error = error.at(span, "expected a directory of this machine: file:///directory");
        self.compiler.diagnostics.push(error.help(address::instead(scheme)));
        self.faulty = true;
    }

    fn directory(&mut self, name: &str) -> Option<PathBuf> {
        self.place(name).map(|address| address.path)
    }

    fn check_names(&mut self, inbound: bool) {
        let mut seen = HashSet::new();
        for parameter in self.parameters {
            let name = parameter.name.as_str();
            if !seen.insert(name) {
                let message = format!("the parameter `{name}` is there twice");
                self.compiler.warning("duplicate-parameter", message, parameter.span, "this one counts");
            }
            if inbound && (OF_INBOUND.contains(&name)) {
                if name == "coordination" || name == "inbound.behavior" {
                    let why = if name == "coordination" { CLUSTER } else { "files are polled" };
                    self.note(parameter, why);
                }
                continue;
            }
            if name == POLL {
                if inbound {
                    let label = "an inbound endpoint has `interval`, in milliseconds";
                    let message = format!("the parameter `{name}` has no effect");
                    self.compiler.warning("ignored-parameter", message, parameter.span, label);
                }
                continue;
            }
            let suffix = name.strip_prefix(PREFIX);
            if let Some(suffix) = suffix {
                if PARAMETERS.contains(&suffix) {
                    continue;
                }
                if let Some((_, why)) = NOT_NEEDED.iter().find(|(entry, _)| *entry == suffix) {
                    self.note(parameter, why);
                    continue;
                }
            }
            let names: Vec<String> = PARAMETERS
                .iter()
                .chain(NOT_NEEDED.iter().map(|(name, _)| name))
                .map(|name| full(name))
                .collect();
            let names = names
                .iter()
                .map(String::as_str)
                .chain([POLL])
                .chain(OF_INBOUND.iter().copied().filter(|_| inbound));
            let nearest = diagnostics::did_you_mean(name, names);
            // A proxy service may have parameters of other transports.
            if !inbound && suffix.is_none() && nearest.is_none() {
                continue;
            }
            let warning =
                Diagnostic::warning("unknown-parameter", format!("there is no parameter `{name}` for files"));
            let mut warning = warning.at(parameter.span, "this has no effect");
            warning.help.extend(nearest);
            self.compiler.diagnostics.push(warning);
        }
    }

    fn note(&mut self, parameter: &Parameter, why: &str) {
        let message = format!("the parameter `{}` has no effect", parameter.name);
        let note = Diagnostic::new("not-needed", Severity::Note, message);
        self.compiler.diagnostics.push(note.at(parameter.span, format!("not needed here, because {why}")));
    }

    /// What becomes of files; `processed`: of those whose flows succeed.
    fn action(&mut self, processed: bool) -> Action {
        let (name, target) = match processed {
            true => ("ActionAfterProcess", "MoveAfterProcess"),
            false => ("ActionAfterFailure", "MoveAfterFailure"),
        };
        #[derive(Clone, Copy, PartialEq)]
        enum Word {
            Delete,
            Move,
            None,
        }
        let word = self.word(name, &[("DELETE", Word::Delete), ("MOVE", Word::Move), ("NONE", Word::None)]);
        let written = self.find(&full(target)).map(|parameter| parameter.span);
        if let (Some(span), true) = (written, word != Some(Word::Move)) {
            let message = format!("the parameter `{}` has no effect", full(target));
            let fate = if word == Some(Word::None) { "stay where they are" } else { "are deleted" };
            let label = format!("`{}` is not MOVE: the files {fate}", full(name));
            self.compiler.warning("ignored-parameter", message, span, label);
        }
        match word {
            None | Some(Word::Delete) => Action::Delete,
            Some(Word::None) => Action::Nothing,
            Some(Word::Move) => match self.directory(target) {
                Some(directory) => Action::Move(directory),
                None => {
                    if written.is_none() {
                        self.missing(&full(target), &format!("`{}` is MOVE", full(name)));
                    }
                    Action::Nothing
                }
            },
        }
    }

    fn locking(&mut self) -> Locking {
        let beside = self.word("Locking", &[("enable", true), ("disable", false)]).unwrap_or(true);
        let releases = self.truth(&full("AutoLockRelease"), false);
        let after = self.milliseconds("AutoLockReleaseInterval").unwrap_or_default();
        let own_machine = self.truth(&full("LockReleaseSameNode"), false);
        if !beside && releases {
            self.useless(
                "AutoLockRelease",
                "`transport.vfs.Locking` is disable: lock files are not looked at",
            );
        } else if !releases {
            let why = "`transport.vfs.AutoLockRelease` is not true: lock files of others stand";
            self.useless("AutoLockReleaseInterval", why);
            self.useless("LockReleaseSameNode", why);
        }
        Locking { beside, release: releases.then_some(Release { after, own_machine }) }
    }

    fn order(&mut self) -> Order {
        let words = [
            ("Name", By::Name),
            ("Size", By::Size),
            ("Lastmodifiedtimestamp", By::Modified),
            ("NONE", By::Name),
        ];
        let by = self.word("FileSortAttribute", &words).unwrap_or_default();
        Order { by, ascending: self.truth(&full("FileSortAscending"), true) }
    }

    fn records(&mut self) -> Records {
        let name = self.text(&full("FailedRecordsFileName")).map(|key| key.value);
        let directory = self.text(&full("FailedRecordsFileDestination"));
        let file = match (&name, directory) {
            (None, None) => None,
            (_, directory) => {
                let root = self.compiler.configuration.root.clone();
                let directory = match directory {
                    None => root,
                    Some(key) => match Address::parse(&key) {
                        Ok(address) => address.path,
                        Err(Wrong::Scheme(scheme)) if scheme != "file" => {
                            self.elsewhere(&scheme, key.span);
                            root
                        }
                        Err(_) => root.join(&key.value),
                    },
                };
                Some(directory.join(name.as_deref().unwrap_or(RECORDS)))
            }
        };
        let again = self.milliseconds("FailedRecordNextRetryDuration").unwrap_or(AGAIN);
        let format = self.format("MoveFailedRecordTimestampFormat");
        let format = format.or_else(|| DatePattern::simple(RECORDED).ok());
        let format = format.unwrap_or_else(|| unreachable!("it is a pattern"));
        Records { file, again, format }
    }

    fn reply(&mut self) -> Option<Reply> {
        let name = self.text(&full("ReplyFileName")).map(|key| key.value);
        let Some(key) = self.text(&full("ReplyFileURI")) else {
            self.useless("ReplyFileName", "there is no `transport.vfs.ReplyFileURI`: answers go nowhere");
            return None;
        };
        let address = match key.value.get(..4) {
            Some(start) if start.eq_ignore_ascii_case("vfs:") => key.value.clone(),
            _ => format!("vfs:{key}"),
        };
        let mut remarks = Vec::new();
        let usable = Writing::parse(&address, &mut remarks).is_some();
        report(&address, &remarks, key.span, self.compiler);
        if !usable {
            let message = "answers cannot be written";
            self.error("bad-address", message, key.span, "no address of a directory of this machine");
        }
        Some(Reply { address, name })
    }

    fn source(
        mut self,
        kind: config::ArtifactKind,
        name: String,
        interval: Duration,
        sequential: bool,
        counters: std::sync::Arc<crate::state::metrics::Counters>,
    ) -> Option<Source> {
        let address = self.place("FileURI");
        if self.find("transport.vfs.FileURI").is_none_or(is_blank) {
            self.missing("transport.vfs.FileURI", "a directory, or a file: file:///directory");
        }
        let content_type = self.text("transport.vfs.ContentType").map(|key| key.value);
        if content_type.is_none() && address.is_some() {
            let message = "the parameter `transport.vfs.ContentType` says how files are read";
            let label = "without it that is guessed by the endings of their names";
            self.compiler.warning("missing-parameter", message, self.span, label);
        }
        if content_type.as_ref().is_some_and(|text| text.chars().any(char::is_control) || !text.contains('/'))
        {
            let key = self
                .text("transport.vfs.ContentType")
                .unwrap_or(Key { value: String::new(), span: self.span });
            self.wrong("transport.vfs.ContentType", &key, "a media type: application/xml; charset=UTF-8");
        }
        let pattern = match self.text("transport.vfs.FileNamePattern") {
            None => None,
            Some(key) => match Pattern::compile(&key) {
                Ok(pattern) => Some(pattern),
                Err(why) => {
                    let message = format!("`{key}` is not a valid regular expression");
                    self.error("bad-pattern", message, key.span, why);
                    None
                }
            },
        };
        let limit = "transport.vfs.FileSizeLimit";
        let largest = match self.text(limit) {
            Some(key) if key.value == "-1" => None,
            Some(key) => self.parsed(limit, &key, &key.value, BYTES, "; -1: files of any size"),
            None => None,
        };
        if largest == Some(0) {
            let message = format!("the parameter `{limit}` should not be 0");
            let label = "no file is taken: files with nothing in them never are";
            self.compiler.warning("bad-value", message, self.place_of(limit), label);
        }
        let (youngest, oldest) = (self.seconds("MinimumAge"), self.seconds("MaximumAge"));
        if let (Some(youngest), Some(oldest)) = (youngest, oldest)
            && youngest > oldest
        {
            let message =
                "no file is taken: `transport.vfs.MinimumAge` is more than `transport.vfs.MaximumAge`";
            let span = self.place_of("transport.vfs.MinimumAge");
            self.compiler.warning("bad-value", message, span, "no file fits both");
        }
        let processed = self.action(true);
        let failed = self.action(false);
        if let (Action::Move(target), Some(address), None) = (&processed, &address, &pattern)
            && *target == address.path
        {
            let message = "processed files are moved to the directory that they came from";
            let span =
                self.find("transport.vfs.MoveAfterProcess").map_or(self.span, |parameter| parameter.span);
            self.compiler.warning("endless-loop", message, span, "they are taken again and again");
        }
        let moving = Moving {
            prefix: self.format("MoveTimestampFormat"),
            below: self.format("SubFolderTimestampFormat"),
            create: self.truth(&full("CreateFolder"), false),
            touch: self.truth(&full("UpdateLastModified"), true),
        };
        let mut hasher = DefaultHasher::new();
        (&name, interval, sequential).hash(&mut hasher);
        for parameter in self.parameters {
            (&parameter.name, format!("{:?}", parameter.value.text())).hash(&mut hasher);
        }
        let identity = self.compiler.artifact_identity();
        let (state, activation) =
            (self.compiler.services.states.get(identity), self.compiler.services.states.get(identity));
        let source = Source {
            kind,
            span: self.span,
            activation,
            interval,
            definition: hasher.finish(),
            content_type,
            pattern,
            between: self.milliseconds("FileProcessInterval").unwrap_or_default(),
            most: self.number("FileProcessCount", COUNT).filter(|most| *most > 0),
            order: self.order(),
            processed,
            failed,
            failed_move: self.directory("MoveAfterFailedMove"),
            moving,
            locking: self.locking(),
            build: self.truth(&full("Build"), false),
            retries: self.number("MaxRetryCount", COUNT).unwrap_or(RETRIES),
            reconnect: self.seconds("ReconnectTimeout").unwrap_or(RECONNECT).max(SHORTEST),
            records: self.records(),
            largest,
            stable: self.milliseconds("CheckSizeInterval").filter(|time| !time.is_zero()),
            youngest,
            oldest,
            wait: self
                .milliseconds("waitTimeBeforeRead")
                .or(self.milliseconds("WaitTimeBeforeRead"))
                .unwrap_or_default(),
            sequential,
            reply: self.reply(),
            state,
            counters,
            address: address?,
            name,
        };
        (!self.faulty).then_some(source)
    }
}

/// Reports the remarks on the address of a file.
pub fn report(url: &str, remarks: &[Remark], span: Span, compiler: &mut Compiler<'_>) {
    let url = diagnostics::without_credentials(url);
    for remark in remarks {
        let diagnostic = match remark {
            Remark::Wrong(message, expected) => {
                Diagnostic::warning("bad-address", format!("`{url}`: {message}")).at(span, expected.clone())
            }
            Remark::Unknown(name) => {
                let diagnostic = Diagnostic::warning(
                    "unknown-parameter",
                    format!("the address of a file has no option `{name}`"),
                );
                let options = crate::engine::file::OPTIONS.iter().copied();
                diagnostic.at(span, "this has no effect").did_you_mean(name, options)
            }
            Remark::NotNeeded(name, why) => {
                let diagnostic = Diagnostic::new(
                    "not-needed",
                    Severity::Note,
                    format!("the option `{name}` has no effect"),
                );
                diagnostic.at(span, format!("not needed here, because {why}"))
            }
        };
        compiler.diagnostics.push(diagnostic);
    }
}

#[cfg(test)]
mod tests;
