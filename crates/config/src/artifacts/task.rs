//! `<task>`: something that runs by itself.

use super::Reading;
use crate::element::Element;
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::{Diagnostic, Span};
use std::time::Duration;

/// A scheduled task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its name.
    pub name: Key,
    /// The Java class; see [`is_message_injector`](Self::is_message_injector).
    pub class: Key,
    /// Its group.
    pub group: Option<String>,
    /// Servers that run it; empty: every one.
    pub pinned_servers: Vec<String>,
    /// When it runs.
    pub trigger: Trigger,
    /// Whether runs may overlap; `None`: as the settings say.
    pub overlap: Option<bool>,
    /// The properties of its class.
    pub properties: Vec<TaskProperty>,
    /// The documentation.
    pub description: Option<String>,
    /// The whole element.
    pub span: Span,
}

/// When a task runs.
#[derive(Clone, Debug)]
pub enum Trigger {
    /// Once, shortly after the start.
    Once,
    /// At the start and then again and again.
    Interval {
        /// The pause between two runs.
        interval: Duration,
        /// How often; `None`: for ever.
        count: Option<u64>,
    },
    /// By a Quartz expression: seconds, minutes, hours, day of month, month, day of week, year.
    Cron {
        /// The expression as written; the compiler of the task reads it.
        expression: Key,
        /// The name of the time zone; `None`: as the settings say.
        zone: Option<Key>,
    },
}

/// A property of a task.
#[derive(Clone, Debug)]
pub enum TaskProperty {
    /// `name`, `value`.
    Text(String, Key),
    /// `name`, the first child element.
    Xml(String, Element),
}

impl TaskProperty {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            TaskProperty::Text(name, _) | TaskProperty::Xml(name, _) => name,
        }
    }
}

pub(crate) const SHAPE: Shape = Shape {
    attributes: &["name", "class", "group", "pinnedServers", "description"],
    elements: &["description", "property", "trigger"],
};

impl Task {
    /// Whether its class is the one that injects messages.
    pub fn is_message_injector(&self) -> bool {
        self.class.rsplit('.').next() == Some("MessageInjector")
    }

    /// The property `name`, the last one when it occurs more than once.
    pub fn property(&self, name: &str) -> Option<&TaskProperty> {
        self.properties.iter().rev().find(|property| property.name() == name)
    }

    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<Task> {
        SHAPE.check_attributes(element, reading.diagnostics);
        read::stray_text(element, reading.diagnostics);
        for child in element.elements().filter(|child| !SHAPE.elements.contains(&child.local())) {
            reading.diagnostics.push(read::ignored_element(element, child, SHAPE.elements));
        }
        let name = read::required(element, "name", reading.diagnostics);
        let class = match read::optional(element, "class") {
            Some(class) => class,
            None => Key {
                value: "org.apache.synapse.startup.tasks.MessageInjector".to_owned(),
                span: element.start_tag(),
            },
        };
        let mut triggers = element.elements().filter(|child| child.local() == "trigger");
        let written = triggers.next();
        if let (Some(first), Some(second)) = (written, triggers.next()) {
            reading.diagnostics.push(
                Diagnostic::warning("duplicate-element", "the task has two triggers")
                    .at(second.start_tag(), "this one has no effect")
                    .at(first.start_tag(), "the first one counts")
                    .help("a task has one trigger; for two times, write two tasks"),
            );
        }
        let overlap = written.and_then(|trigger| read::optional(trigger, "overlap"));
        let overlap = overlap.map(|key| read::to_boolean(&key, "overlap", reading.diagnostics));
        let trigger = match written {
            Some(trigger) => self::trigger(trigger, reading),
            None => {
                reading.diagnostics.push(
                    Diagnostic::error("missing-element", "the task has no trigger")
                        .at(element.start_tag(), "expected a `trigger` inside")
                        .help("<trigger interval=\"SECONDS\"/>, <trigger cron=\"…\"/> or <trigger once=\"true\"/>"),
                );
                None
            }
        };
        let properties = element
            .elements()
            .filter(|child| child.local() == "property")
            .filter_map(|child| property(child, reading))
            .collect();
        Some(Task {
            class,
            group: read::optional_text(element, "group"),
            pinned_servers: read::optional(element, "pinnedServers")
                .map_or_else(Vec::new, |key| read::names(&key)),
            properties,
            description: super::description(element),
            span: element.span(),
            name: name?,
            trigger: trigger?,
            overlap,
        })
    }
}

pub(crate) const TRIGGER: Shape =
    Shape { attributes: &["once", "interval", "count", "cron", "timeZone", "overlap"], elements: &[] };

fn trigger(element: &Element, reading: &mut Reading<'_>) -> Option<Trigger> {
    TRIGGER.check(element, reading.diagnostics);
    let value = |name: &str, reading: &mut Reading<'_>| {
        read::optional(element, name).map(|key| reading.injector.resolve(key, reading.diagnostics))
    };
    let once = value("once", reading);
    let interval = value("interval", reading);
    let count = value("count", reading);
    let cron = value("cron", reading);
    let zone = value("timeZone", reading);
    let is_once = once.as_ref().is_some_and(|key| read::to_boolean(key, "once", reading.diagnostics));
    let mut conflict = |a: &Option<Key>, b: &Option<Key>, names: &str| {
        if let (Some(a), Some(b)) = (a, b) {
            reading.diagnostics.push(
                Diagnostic::error("conflict", format!("{names} exclude each other"))
                    .at(b.span, "this")
                    .at(a.span, "and this"),
            );
        }
    };
    if is_once {
        conflict(&once, &interval, "`once` and `interval`");
        conflict(&once, &cron, "`once` and `cron`");
        conflict(&once, &count, "`once` and `count`");
    }
    conflict(&interval, &cron, "`interval` and `cron`");
    conflict(&count, &cron, "`count` and `cron`");
    if let Some(expression) = cron {
        return Some(Trigger::Cron { expression, zone });
    }
    if let Some(zone) = zone {
        reading.diagnostics.push(
            Diagnostic::warning("ignored-attribute", "`timeZone` has no effect without `cron`")
                .at(zone.span, "an interval goes by the time that passes"),
        );
    }
    if is_once {
        return Some(Trigger::Once);
    }
    if interval.is_none() && count.is_none() {
        reading.diagnostics.push(
            Diagnostic::warning("missing-attribute", "`trigger` says no time")
                .at(element.start_tag(), "the task runs once, when the bus starts")
                .help("`interval` in seconds, `cron`, or `once=\"true\"` if that is meant"),
        );
        return Some(Trigger::Once);
    }
    let times = match &count {
        Some(key) => read::number::<i64>(key, "count", "a whole number; -1: for ever", reading.diagnostics),
        None => Some(-1),
    };
    let seconds = interval.as_ref().and_then(|interval| {
        read::number::<u64>(interval, "interval", "a whole number of seconds", reading.diagnostics)
    });
    let times = times?;
    if let (0, Some(key)) = (times, &count) {
        let found = read::bad_value("count", key, key.span, "at least 1, or -1 for ever");
        reading.diagnostics.push(found);
        return None;
    }
    if let (..-1, Some(key)) = (times, &count) {
        let message = format!("`{key}` counts as -1 for `count`");
        let expected = "the task runs for ever; expected at least 1, or -1 for ever";
        reading.diagnostics.push(Diagnostic::warning("bad-value", message).at(key.span, expected));
    }
    // As in Quartz: a negative count is without end.
    let times = u64::try_from(times).ok();
    let Some(interval) = interval else {
        if times == Some(1) {
            return Some(Trigger::Once);
        }
        reading.diagnostics.push(read::missing_attribute(element, "interval"));
        return None;
    };
    let seconds = seconds?;
    if seconds == 0 && times != Some(1) {
        let expected = "at least 1: the time between two runs in seconds";
        reading.diagnostics.push(read::bad_value("interval", &interval, interval.span, expected));
        return None;
    }
    Some(Trigger::Interval { interval: Duration::from_secs(seconds), count: times })
}

pub(crate) const PROPERTY: Shape = Shape { attributes: &["name", "value"], elements: &[] };

fn property(element: &Element, reading: &mut Reading<'_>) -> Option<TaskProperty> {
    PROPERTY.check_attributes(element, reading.diagnostics);
    let name = read::required(element, "name", reading.diagnostics)?.value;
    if let Some(attribute) = element.attribute("value") {
        let value = reading.injector.resolve(Key::of(attribute), reading.diagnostics);
        return Some(TaskProperty::Text(name, value));
    }
    match element.elements().next() {
        Some(xml) => Some(TaskProperty::Xml(name, xml.clone())),
        None => {
            let text = read::text(element).unwrap_or(Key { value: String::new(), span: element.span() });
            Some(TaskProperty::Text(name, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::load_text;

    #[test]
    fn triggers_good_and_bad() {
        let synapse = crate::SYNAPSE;
        for (attributes, wanted, message) in [
            ("interval='5'", "Interval { interval: 5s, count: None }", ""),
            ("interval='5' count='2'", "Interval { interval: 5s, count: Some(2) }", ""),
            ("interval=' 5 ' count='-1'", "Interval { interval: 5s, count: None }", ""),
            ("interval='0' count='1'", "Interval { interval: 0ns, count: Some(1) }", ""),
            ("count='1'", "Once", ""),
            ("interval='5' count='-2'", "Interval { interval: 5s, count: None }", "`-2` counts as -1"),
            ("interval='5'/><trigger interval='7'", "Interval { interval: 5s, count: None }", "two triggers"),
            ("", "Once", "`trigger` says no time"),
            ("once='true'", "Once", ""),
            ("once='false'", "Once", "`trigger` says no time"),
            ("once='TRUE'", "Once", ""),
            ("once='yes'", "Once", "`yes` counts as false for `once`"),
            ("interval='0'", "", "`0` is not a valid interval"),
            ("interval='-1'", "", "`-1` is not a valid interval"),
            ("interval='abc'", "", "`abc` is not a valid interval"),
            ("interval='1.5'", "", "`1.5` is not a valid interval"),
            (
                "interval='18446744073709551615'",
                "Interval { interval: 18446744073709551615s, count: None }",
                "",
            ),
            ("interval='18446744073709551616'", "", "is not a valid interval"),
            ("interval='5' count='0'", "", "`0` is not a valid count"),
            ("interval='5' count='x'", "", "`x` is not a valid count"),
            ("count='2'", "", "`trigger` needs the attribute `interval`"),
            ("once='true' interval='5'", "", "`once` and `interval` exclude each other"),
            ("once='true' cron='0 * * * * ?'", "", "`once` and `cron` exclude each other"),
            ("interval='5' cron='0 * * * * ?'", "", "`interval` and `cron` exclude each other"),
            (
                "interval='5' timeZone='UTC'",
                "Interval { interval: 5s, count: None }",
                "`timeZone` has no effect",
            ),
            ("intervall='5'", "Once", "`trigger` has no attribute `intervall`"),
        ] {
            let text = format!("<task xmlns='{synapse}' name='T'><trigger {attributes}/></task>");
            let loaded = load_text("t.xml", &text, std::path::Path::new("."), &Default::default());
            let task = loaded.configuration.tasks.get("T");
            let trigger = task.map(|task| format!("{:?}", task.trigger)).unwrap_or_default();
            let found: Vec<_> = loaded.diagnostics.iter().map(|found| found.message.as_str()).collect();
            assert_eq!(trigger, wanted, "{attributes}: {found:?}");
            match message {
                "" => assert!(found.is_empty(), "{attributes}: {found:?}"),
                message => {
                    assert!(found.iter().any(|found| found.contains(message)), "{attributes}: {found:?}")
                }
            }
        }
    }
}
