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
    /// What its class is set up with.
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
    Cron(Key),
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
        let trigger = match element.elements().find(|child| child.local() == "trigger") {
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
        })
    }
}

pub(crate) const TRIGGER: Shape = Shape { attributes: &["once", "interval", "count", "cron"], elements: &[] };

fn trigger(element: &Element, reading: &mut Reading<'_>) -> Option<Trigger> {
    TRIGGER.check(element, reading.diagnostics);
    let value = |name: &str, reading: &mut Reading<'_>| {
        read::optional(element, name).map(|key| reading.injector.resolve(key, reading.diagnostics))
    };
    let once = value("once", reading);
    let interval = value("interval", reading);
    let count = value("count", reading);
    let cron = value("cron", reading);
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
    if let Some(cron) = cron {
        let fields = cron.split_whitespace().count();
        if !(6..=7).contains(&fields) {
            reading.diagnostics.push(read::bad_value(
                "cron expression",
                &cron,
                cron.span,
                "six or seven fields, seconds first",
            ));
        }
        return Some(Trigger::Cron(cron));
    }
    if is_once || (interval.is_none() && count.is_none()) {
        return Some(Trigger::Once);
    }
    let Some(interval) = interval else {
        reading.diagnostics.push(read::missing_attribute(element, "interval"));
        return None;
    };
    let seconds = read::number(&interval, "interval", "a number of seconds", reading.diagnostics);
    let count: Option<i64> = match &count {
        Some(key) => Some(read::number(key, "count", "a whole number", reading.diagnostics)?),
        None => None,
    };
    Some(Trigger::Interval {
        interval: Duration::from_secs(seconds?),
        count: count.and_then(|count| u64::try_from(count).ok()),
    })
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
