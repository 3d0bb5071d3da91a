//! Tasks: their triggers, and what they inject (the properties of the class `MessageInjector`).

use super::Compiler;
use crate::runtime::plan::Entry;
use crate::runtime::task::{Format, Injection, Source, Target, Task, TaskMessage};
use config::{Key, TaskProperty};
use diagnostics::{Diagnostic, Span};
use jiff::tz::TimeZone;
use message::{SoapVersion, Value};
use schedule::{Cron, Trigger};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

const FORMATS: &[(&str, Format)] = &[
    ("soap12", Format::Soap(SoapVersion::V12)),
    ("soap11", Format::Soap(SoapVersion::V11)),
    ("pox", Format::Pox),
    ("get", Format::Get),
    // A message that is JSON has no other form.
    ("json", Format::Soap(SoapVersion::V12)),
];

/// Names that are properties of the class, in any case.
const PROPERTIES: &[&str] = &[
    "message",
    "registryKey",
    "injectTo",
    "sequenceName",
    "proxyName",
    "to",
    "soapAction",
    "format",
    "sequential",
    "invokeHandlers",
];

/// Compiles a task; `None` after a recorded finding.
pub(super) fn compile(task: &config::Task, compiler: &mut Compiler<'_>) -> Option<Task> {
    if !task.is_message_injector() {
        let message = format!("the class `{}` of the task is not executable here", task.class);
        let label = "classes of Java are not; `org.apache.synapse.startup.tasks.MessageInjector` is built in";
        let found = Diagnostic::error("unsupported-artifact", message)
            .at(task.class.span, label)
            .did_you_mean(&task.class, ["org.apache.synapse.startup.tasks.MessageInjector"]);
        compiler.diagnostics.push(found);
        return None;
    }
    let injection = injection(task, compiler);
    let (trigger, trigger_text) = trigger(&task.trigger, compiler)?;
    let overlap = task.overlap.unwrap_or(compiler.services.settings.task_overlap);
    let mut hasher = DefaultHasher::new();
    (&trigger_text, overlap, &task.class.value).hash(&mut hasher);
    for property in &task.properties {
        match property {
            config::TaskProperty::Text(name, value) => (name, &value.value).hash(&mut hasher),
            config::TaskProperty::Xml(name, element) => (name, element.to_xml()).hash(&mut hasher),
        }
    }
    let name = task.name.value.clone();
    let services = compiler.services;
    let identity = compiler.artifact_identity();
    Some(Task {
        group: task.group.clone(),
        span: task.span,
        trigger_text,
        activation: services.states.get(identity),
        definition: hasher.finish(),
        trigger,
        overlap,
        injection: injection?,
        state: services.states.get(identity),
        agenda: services.kept.get(),
        counters: services.metrics.counters("task", &name),
        name,
    })
}

/// The trigger, and its text for people.
fn trigger(trigger: &config::Trigger, compiler: &mut Compiler<'_>) -> Option<(Trigger, String)> {
    Some(match trigger {
        config::Trigger::Once => {
            (Trigger::Every { period: Duration::ZERO, count: Some(1) }, "once".to_owned())
        }
        config::Trigger::Interval { interval, count } => {
            let times = match count {
                None => String::new(),
                Some(1) => ", once".to_owned(),
                Some(count) => format!(", {count} times"),
            };
            let text = format!("every {}s{times}", interval.as_secs());
            (Trigger::Every { period: *interval, count: *count }, text)
        }
        config::Trigger::Cron { expression, zone } => {
            let (cron, zone) = cron(expression, zone.as_ref(), compiler)?;
            let text = format!("cron {cron} ({})", zone_name(&zone));
            (Trigger::Cron { cron, zone }, text)
        }
    })
}

/// A Quartz expression and its time zone; `None` after a recorded error.
pub(super) fn cron(
    expression: &config::Key,
    zone: Option<&config::Key>,
    compiler: &mut Compiler<'_>,
) -> Option<(Cron, TimeZone)> {
    let zone = match zone {
        None => Some(compiler.services.settings.time_zone.clone()),
        Some(key) => match TimeZone::get(key) {
            Ok(zone) => Some(zone),
            Err(_) => {
                let names: Vec<_> = jiff::tz::db().available().map(|name| name.to_string()).collect();
                let found = Diagnostic::error("bad-value", format!("there is no time zone `{key}`"))
                    .at(key.span, "expected a name like Europe/Berlin, or UTC")
                    .did_you_mean(key, names.iter().map(String::as_str));
                compiler.diagnostics.push(found);
                None
            }
        },
    };
    let cron = match Cron::parse(expression) {
        Ok(cron) => cron,
        Err(why) => {
            let place = expression.span.part(why.range.start, why.range.len());
            let found = Diagnostic::error("bad-cron", format!("`{expression}`: {}", why.message));
            compiler.diagnostics.push(found.at(place, why.help.unwrap_or_else(|| "here".to_owned())));
            return None;
        }
    };
    let zone = zone?;
    let now = compiler.services.clock.now().wall;
    if cron.next(now, &zone).is_none() {
        let message = format!("`{expression}` has no time that is still to come");
        compiler.warning("never-due", message, expression.span, "it never runs");
    }
    Some((cron, zone))
}

fn zone_name(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("the time zone of the system")
}

/// Reads the properties of a task; `None` after a recorded finding.
fn injection(task: &config::Task, compiler: &mut Compiler<'_>) -> Option<Injection> {
    let mut reader = Reader { task, compiler };
    let format = reader.word("format", FORMATS).unwrap_or(Format::Soap(SoapVersion::V12));
    let to = reader.text("to").map(|key| key.value);
    let soap_action = reader.text("soapAction").map(|key| key.value);
    let target = reader.target();
    let source = reader.source(format, soap_action.as_deref());
    let others = task.properties.iter().filter(|property| !PROPERTIES.contains(&property.name()));
    let mut properties = Vec::new();
    for property in others {
        let name = property.name();
        if let Some(nearest) = diagnostics::did_you_mean(name, PROPERTIES.iter().copied()) {
            let message = format!("`{name}` becomes a property of the message");
            let span = reader.span_of(property);
            reader.compiler.warning("unknown-property", message, span, nearest);
        }
        let value = match property {
            TaskProperty::Text(_, value) => Value::from(value.as_str()),
            TaskProperty::Xml(_, element) => Entry::of(element.to_xml().into_bytes().into()).value,
        };
        properties.push((Arc::from(name), value));
    }
    Some(Injection { target: target?, source: source?, format, to, soap_action, properties })
}

/// Reads the properties of a task.
struct Reader<'a, 'c> {
    task: &'a config::Task,
    compiler: &'a mut Compiler<'c>,
}

impl Reader<'_, '_> {
    fn span_of(&self, property: &TaskProperty) -> Span {
        match property {
            TaskProperty::Text(_, value) => value.span,
            TaskProperty::Xml(_, element) => element.start_tag(),
        }
    }

    /// A property that is a text; blank counts as absent.
    fn text(&mut self, name: &str) -> Option<Key> {
        match self.task.property(name)? {
            TaskProperty::Text(_, value) => {
                let text = value.value.trim();
                (!text.is_empty()).then(|| Key { value: text.to_owned(), span: value.span })
            }
            TaskProperty::Xml(_, element) => {
                let message = format!("the property `{name}` is a text, not an element");
                self.compiler.warning("bad-value", message, element.start_tag(), "this has no effect");
                None
            }
        }
    }

    /// A property that is one of some words, in any case; another one is a warning, and counts as absent.
    fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let key = self.text(name)?;
        let found = words.iter().find(|(word, _)| key.eq_ignore_ascii_case(word));
        if found.is_none() {
            let names = || words.iter().map(|(word, _)| *word);
            let default = names().next().unwrap_or_default();
            let label = format!("counts as `{default}`; expected {}", names().collect::<Vec<_>>().join(", "));
            let message = format!("`{name}` should not be `{key}`");
            let warning =
                Diagnostic::warning("bad-value", message).at(key.span, label).did_you_mean(&key, names());
            self.compiler.diagnostics.push(warning);
        }
        found.map(|(_, value)| *value)
    }

    fn target(&mut self) -> Option<Target> {
        #[derive(Clone, Copy)]
        enum To {
            Main,
            Sequence,
            Proxy,
        }
        let words = [("main", To::Main), ("sequence", To::Sequence), ("proxy", To::Proxy)];
        match self.word("injectTo", &words).unwrap_or(To::Main) {
            To::Main => Some(Target::Main),
            To::Sequence => {
                let key = self.needed("sequenceName", "`injectTo` is `sequence`")?;
                Some(Target::Sequence(self.compiler.sequence_key(&key)))
            }
            To::Proxy => {
                let key = self.needed("proxyName", "`injectTo` is `proxy`")?;
                let proxies = &self.compiler.configuration.proxies;
                if proxies.get(&key.value).is_none() {
                    let names: Vec<_> = proxies.names().map(str::to_owned).collect();
                    let message = format!("there is no proxy service `{key}`");
                    let warning = Diagnostic::warning("unknown-proxy", message)
                        .at(key.span, "the task cannot run")
                        .did_you_mean(&key, names.iter().map(String::as_str));
                    self.compiler.diagnostics.push(warning);
                }
                Some(Target::Proxy(key.value))
            }
        }
    }

    fn source(&mut self, format: Format, soap_action: Option<&str>) -> Option<Source> {
        if let Some(key) = self.text("registryKey") {
            if self.compiler.entry(&key).is_none() && !self.compiler.is_not_fetched(&key) {
                let message = format!("there is no entry `{key}`");
                self.compiler.warning("unknown-entry", message, key.span, "without it the task cannot run");
            }
            return Some(Source::Key(key.value));
        }
        let (text, span) = match self.task.property("message") {
            Some(TaskProperty::Xml(_, element)) => (element.to_xml(), element.span()),
            Some(TaskProperty::Text(..)) | None => {
                let key = self.needed("message", "there is no `registryKey` either")?;
                (key.value, key.span)
            }
        };
        match TaskMessage::of(text.as_bytes(), format, soap_action) {
            Ok(made) => Some(Source::Message(made)),
            Err(why) => {
                self.compiler.error("bad-value", why, span, "in this property");
                None
            }
        }
    }

    /// A text without which each run of the task fails: an archive that has such a task is in order all the same.
    fn needed(&mut self, name: &str, because: &str) -> Option<Key> {
        let found = self.text(name);
        if found.is_none() {
            let written = self.task.properties.iter().map(TaskProperty::name);
            let message = format!("the task needs the property `{name}`: it never runs");
            let warning = Diagnostic::warning("missing-property", message)
                .at(self.task.span, because.to_owned())
                .did_you_mean(name, written);
            self.compiler.diagnostics.push(warning);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Tested};

    fn tested(inside: &str) -> Tested {
        let registry = testing::registry(Vec::new());
        let text = format!(
            "<definitions xmlns='{}'>{inside}<localEntry key='E'><e xmlns=''/></localEntry><sequence name='S'/><sequence name='main'/><sequence name='fault'/>\
             <proxy name='P'><target inSequence='S'/></proxy></definitions>",
            config::SYNAPSE
        );
        testing::configuration(&registry, &text)
    }

    fn task(trigger: &str, properties: &[(&str, &str)]) -> Tested {
        let properties: String = properties
            .iter()
            .map(|(name, value)| match value.starts_with('<') {
                true => format!("<property name='{name}'>{value}</property>"),
                false => format!("<property name='{name}' value='{value}'/>"),
            })
            .collect();
        tested(&format!("<task name='T'><trigger {trigger}/>{properties}</task>"))
    }

    type Good = (&'static [(&'static str, &'static str)], fn(&Task) -> String, &'static str);

    /// What each property makes of a task.
    const GOOD: &[Good] = &[
        (&[("message", "x")], |task| shown(&task.injection.target), "main"),
        (
            &[("message", "x")],
            |task| (task.injection.format == Format::Soap(SoapVersion::V12)).to_string(),
            "true",
        ),
        (&[("message", "<a/>")], |task| source(&task.injection.source), "a message"),
        (&[("registryKey", "E")], |task| source(&task.injection.source), "E"),
        // The key counts, whatever the message.
        (&[("registryKey", "E"), ("message", "x")], |task| source(&task.injection.source), "E"),
        (&[("injectTo", "MAIN"), ("message", "x")], |task| shown(&task.injection.target), "main"),
        (
            &[("injectTo", "sequence"), ("sequenceName", "S"), ("message", "x")],
            |task| shown(&task.injection.target),
            "a sequence",
        ),
        (
            &[("injectTo", "proxy"), ("proxyName", "P"), ("message", "x")],
            |task| shown(&task.injection.target),
            "P",
        ),
        (
            &[("to", "http://h/p"), ("message", "x")],
            |task| format!("{:?}", task.injection.to),
            r#"Some("http://h/p")"#,
        ),
        (&[("to", " "), ("message", "x")], |task| format!("{:?}", task.injection.to), "None"),
        (
            &[("soapAction", "urn:a"), ("message", "x")],
            |task| format!("{:?}", task.injection.soap_action),
            r#"Some("urn:a")"#,
        ),
        (
            &[("format", "POX"), ("message", "<a/>")],
            |task| (task.injection.format == Format::Pox).to_string(),
            "true",
        ),
        (
            &[("sequential", "true"), ("message", "x")],
            |task| task.injection.properties.len().to_string(),
            "0",
        ),
        (
            &[("invokeHandlers", "true"), ("message", "x")],
            |task| task.injection.properties.len().to_string(),
            "0",
        ),
        (
            &[("mine", "1"), ("message", "x")],
            |task| task.injection.properties.iter().map(|property| property.0.to_string()).collect(),
            "mine",
        ),
    ];

    fn shown(target: &Target) -> String {
        match target {
            Target::Main => "main".to_owned(),
            Target::Sequence(_) => "a sequence".to_owned(),
            Target::Proxy(name) => name.clone(),
        }
    }

    fn source(source: &Source) -> String {
        match source {
            Source::Key(key) => key.clone(),
            Source::Message(_) => "a message".to_owned(),
        }
    }

    /// Properties that are wrong, what is reported, and whether the task is compiled all the same.
    type Wrong = (&'static [(&'static str, &'static str)], &'static str, bool);
    const WRONG: &[Wrong] = &[
        (&[], "missing-property: the task needs the property `message`: it never runs", false),
        (
            &[("message", "  ")],
            "missing-property: the task needs the property `message`: it never runs",
            false,
        ),
        (&[("message", "&lt;a>")], "bad-value: the message is not XML", false),
        (&[("registryKey", "none")], "unknown-entry: there is no entry `none`", true),
        (
            &[("registryKey", "<a/>"), ("message", "x")],
            "bad-value: the property `registryKey` is a text, not an element",
            true,
        ),
        (
            &[("injectTo", "sequense"), ("message", "x")],
            "bad-value: `injectTo` should not be `sequense`",
            true,
        ),
        (
            &[("injectTo", "sequence"), ("message", "x")],
            "missing-property: the task needs the property `sequenceName`: it never runs",
            false,
        ),
        (&[("injectTo", "sequence"), ("sequenceName", "none"), ("message", "x")], "unknown-sequence: ", true),
        (
            &[("injectTo", "proxy"), ("message", "x")],
            "missing-property: the task needs the property `proxyName`: it never runs",
            false,
        ),
        (
            &[("injectTo", "proxy"), ("proxyName", "none"), ("message", "x")],
            "unknown-proxy: there is no proxy service `none`",
            true,
        ),
        (&[("to", "<a/>"), ("message", "x")], "bad-value: the property `to` is a text, not an element", true),
        (
            &[("soapAction", "<a/>"), ("message", "x")],
            "bad-value: the property `soapAction` is a text, not an element",
            true,
        ),
        (&[("format", "soap13"), ("message", "x")], "bad-value: `format` should not be `soap13`", true),
        (
            &[("sequental", "true"), ("message", "x")],
            "unknown-property: `sequental` becomes a property of the message",
            true,
        ),
        (
            &[("invokeHandler", "true"), ("message", "x")],
            "unknown-property: `invokeHandler` becomes a property of the message",
            true,
        ),
    ];

    #[test]
    fn properties() {
        for (given, shows, wanted) in GOOD {
            let tested = task("once='true'", given);
            let plan = tested.bus.plan();
            let task = plan.tasks.first().unwrap_or_else(|| panic!("{given:?}: {:?}", tested.found));
            assert_eq!(shows(task), *wanted, "{given:?}");
            assert!(tested.found.is_empty(), "{given:?}: {:?}", tested.found);
        }
        for (given, says, there) in WRONG {
            let tested = task("once='true'", given);
            assert!(tested.reports(says), "{given:?}: {:?}", tested.found);
            assert_eq!(!tested.bus.plan().tasks.is_empty(), *there, "{given:?}: {:?}", tested.found);
        }
        let names = |tables: &[&[(&'static str, &str)]]| -> Vec<&'static str> {
            tables.iter().flat_map(|row| row.iter().map(|row| row.0)).collect()
        };
        let good = names(&GOOD.iter().map(|row| row.0).collect::<Vec<_>>());
        let wrong = names(&WRONG.iter().map(|row| row.0).collect::<Vec<_>>());
        for name in PROPERTIES {
            assert!(good.contains(name), "{name} has no good value");
            // Those that have no effect have no wrong value; misspelt they do.
            let without_effect = matches!(*name, "sequential" | "invokeHandlers");
            assert!(wrong.contains(name) || without_effect, "{name} has no wrong value");
        }
    }

    /// What attributes of `trigger` mean once the configuration is compiled; what is no trigger at all is said where it is read
    /// (`config::artifacts::task`).
    #[test]
    fn triggers() {
        for (trigger, wanted) in [
            ("once='true'", "once false"),
            ("interval='5'", "every 5s false"),
            ("interval='5' count='1'", "every 5s, once false"),
            ("interval='5' count='3' overlap='true'", "every 5s, 3 times true"),
            ("cron='0 0 6 ? * MON-FRI' timeZone='UTC'", "cron 0 0 6 ? * MON-FRI (UTC) false"),
            ("cron='0 0 6 L * ?' timeZone='UTC' overlap='false'", "cron 0 0 6 L * ? (UTC) false"),
        ] {
            let tested = task(trigger, &[("message", "x")]);
            let plan = tested.bus.plan();
            let task = plan.tasks.first().unwrap_or_else(|| panic!("{trigger}: {:?}", tested.found));
            assert_eq!(format!("{} {}", task.trigger_text, task.overlap), wanted, "{trigger}");
            assert!(tested.found.is_empty(), "{trigger}: {:?}", tested.found);
        }
        for (trigger, says, there) in [
            ("cron='0 0 25 * * ?'", "bad-cron: `0 0 25 * * ?`: the hours cannot be `25`", false),
            ("cron='0 0 6 * * ?' timeZone='Nowhere'", "bad-value: there is no time zone `Nowhere`", false),
            ("cron='0 0 6 * * ? 1999' timeZone='UTC'", "never-due: ", true),
        ] {
            let tested = task(trigger, &[("message", "x")]);
            assert!(tested.reports(says), "{trigger}: {:?}", tested.found);
            assert_eq!(!tested.bus.plan().tasks.is_empty(), there, "{trigger}");
        }
    }
}
