//! Which requests go first where more come than are to be answered at a time: what a WSO2 listener has as its `priorityConfigFile`.
//!
//! Conditions on the head of a request say its priority, before any flow; it waits in the queue of that priority until it has its
//! [`Turn`](super::executor::Turn). Who waits and who runs belongs to the process: new settings find both as they were.

use super::executor::{Full, Pool, Shape, Status, Ticket};
use super::request::Inbound;
use super::services::Services;
use config::Element;
use diagnostics::{FileId, Span};
use message::Headers;
use message::regex::Pattern;
use std::cmp::Reverse;
use std::sync::Arc;

/// Threads of an executor that says none, as in WSO2.
const CORE: usize = 20;
/// The same, most of them.
const MAX: usize = 100;
/// How deep conditions may nest.
const DEPTH: usize = 64;

/// Queues by priority, and who goes into which.
#[derive(Debug)]
pub struct Priorities {
    shape: Shape,
    /// The first that holds counts.
    conditions: Vec<(i32, Condition)>,
    default: i32,
}

#[derive(Debug)]
enum Condition {
    Equal(Part, String),
    Match(Part, Pattern),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
}

/// What of a request is looked at.
#[derive(Debug)]
enum Part {
    Header(String),
    Parameter(String),
    /// The whole target.
    Target,
    Path,
    Query,
    Host,
    Port,
    Protocol,
}

/// The queues of the process.
#[derive(Default)]
struct Front(Arc<Pool>);

impl Priorities {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong, with file and line.
    pub fn read(path: &str, text: &str) -> Result<Priorities, String> {
        let reader = Reader { path, text };
        let root = config::parse(FileId::BUILT_IN, text).map_err(|error| {
            let span = error.span().unwrap_or(Span::BUILT_IN);
            reader.wrong(span, &error.message)
        })?;
        reader.priorities(&root)
    }

    /// Settings with it come into force.
    pub(crate) fn begins(&self, services: &Services) {
        services.kept.get::<Front>().0.define(&self.shape);
    }

    /// How its queues stand.
    pub fn status(&self, services: &Services) -> Status {
        services.kept.get::<Front>().0.status()
    }

    /// A place for a request.
    ///
    /// # Errors
    /// The queue of its priority is full, and as many run as may.
    pub(crate) fn ticket(
        &self,
        services: &Services,
        inbound: &Inbound,
        headers: &Headers,
    ) -> Result<Ticket, Full> {
        services.kept.get::<Front>().0.ticket(self.of(inbound, headers))
    }

    fn of(&self, inbound: &Inbound, headers: &Headers) -> i32 {
        let holds = |(_, condition): &&(i32, Condition)| condition.holds(inbound, headers);
        self.conditions.iter().find(holds).map_or(self.default, |(priority, _)| *priority)
    }
}

impl Condition {
    fn holds(&self, inbound: &Inbound, headers: &Headers) -> bool {
        match self {
            Condition::Equal(part, wanted) => {
                part.of(inbound, headers).is_some_and(|value| value.eq_ignore_ascii_case(wanted))
            }
            Condition::Match(part, pattern) => {
                part.of(inbound, headers).is_some_and(|value| pattern.matches(&value) == Ok(true))
            }
            Condition::All(conditions) => {
                conditions.iter().all(|condition| condition.holds(inbound, headers))
            }
            Condition::Any(conditions) => {
                conditions.iter().any(|condition| condition.holds(inbound, headers))
            }
            Condition::Not(condition) => !condition.holds(inbound, headers),
        }
    }
}

impl Part {
    fn of(&self, inbound: &Inbound, headers: &Headers) -> Option<String> {
        let (path, query) = match inbound.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (inbound.target.as_str(), None),
        };
        // The brackets of an address of version 6 have colons.
        let end = inbound.host.rfind(':').filter(|at| !inbound.host[*at..].contains(']'));
        let found = match self {
            Part::Header(name) => return headers.get(name).map(|value| value.trim().to_owned()),
            Part::Parameter(name) => {
                let mut pairs = query?.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
                let found = pairs.find(|(key, _)| message::form::decode(key) == *name);
                return found.map(|(_, value)| message::form::decode(value));
            }
            Part::Target => inbound.target.as_str(),
            Part::Path => path,
            Part::Query => query?,
            Part::Host => &inbound.host[..end.unwrap_or(inbound.host.len())],
            Part::Port => return Some(inbound.local.port().to_string()),
            Part::Protocol => return Some(if inbound.secure { "https" } else { "http" }.to_owned()),
        };
        Some(found.to_owned())
    }
}

/// Reads the file.
struct Reader<'a> {
    path: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn wrong(&self, span: Span, message: &str) -> String {
        let before = self.text.get(..(span.start as usize).min(self.text.len())).unwrap_or_default();
        format!("{}:{}: {message}", self.path, before.matches('\n').count() + 1)
    }

    fn number<T: std::str::FromStr>(
        &self,
        element: &Element,
        name: &str,
        default: Option<T>,
    ) -> Result<T, String> {
        let Some(text) = element.attr(name).map(str::trim) else {
            let message = || self.wrong(element.span(), &format!("`{}` needs `{name}`", element.local()));
            return default.ok_or_else(message);
        };
        text.parse().map_err(|_| {
            let message = format!("`{name}` cannot be `{text}`; expected a whole number");
            self.wrong(element.value_span(name), &message)
        })
    }

    fn child<'e>(&self, element: &'e Element, names: &[&str]) -> Result<&'e Element, String> {
        let found = element.elements().find(|child| names.contains(&child.local()));
        found.ok_or_else(|| {
            self.wrong(element.span(), &format!("`{}` has no `{}` inside", element.local(), names[0]))
        })
    }

    fn priorities(&self, root: &Element) -> Result<Priorities, String> {
        let executor = self.child(root, &["priority-executor", "priorityExecutor", "executor"])?;
        let list = self.child(executor, &["queues"])?;
        let mut queues: Vec<(i32, usize)> = Vec::new();
        for queue in list.children_named("queue") {
            let priority = self.number(queue, "priority", None)?;
            if queues.iter().any(|queue| queue.0 == priority) {
                return Err(self.wrong(queue.span(), &format!("two queues have the priority {priority}")));
            }
            queues.push((priority, self.number(queue, "size", None)?));
        }
        if queues.len() < 2 {
            return Err(self.wrong(list.span(), "an executor needs at least two queues"));
        }
        queues.sort_by_key(|(priority, _)| Reverse(*priority));
        let (mut core, mut max) = (CORE, MAX);
        if let Some(threads) = executor.child("threads") {
            core = self.number(threads, "core", Some(CORE))?;
            max = self.number(threads, "max", Some(MAX.max(core)))?;
            if max < core || max == 0 {
                let message = format!("`max` is {max}; expected at least 1, and at least `core` ({core})");
                return Err(self.wrong(threads.span(), &message));
            }
        }
        let lowest = queues.last().map_or(0, |queue| queue.0);
        let list = self.child(root, &["conditions"])?;
        let default = self.number(list, "defaultPriority", Some(lowest))?;
        let mut conditions = Vec::new();
        for condition in list.children_named("condition") {
            let priority = self.number(condition, "priority", None)?;
            let mut inside = condition.elements();
            let (Some(first), None) = (inside.next(), inside.next()) else {
                return Err(self.wrong(condition.span(), "expected one of equal, match, and, or, not inside"));
            };
            conditions.push((priority, self.condition(first, 0)?));
        }
        for priority in conditions.iter().map(|entry| entry.0).chain([default]) {
            if queues.iter().all(|queue| queue.0 != priority) {
                let message = format!("there is no queue of the priority {priority}");
                return Err(self.wrong(list.span(), &message));
            }
        }
        Ok(Priorities { shape: Shape { queues, core, max }, conditions, default })
    }

    fn condition(&self, element: &Element, depth: usize) -> Result<Condition, String> {
        if depth > DEPTH {
            return Err(self.wrong(element.span(), "conditions nest too deeply"));
        }
        let inside = || {
            element.elements().map(|child| self.condition(child, depth + 1)).collect::<Result<Vec<_>, _>>()
        };
        let some = |conditions: Vec<Condition>| match conditions.is_empty() {
            true => {
                Err(self.wrong(element.span(), &format!("`{}` has no condition inside", element.local())))
            }
            false => Ok(conditions),
        };
        match element.local() {
            "and" => Ok(Condition::All(some(inside()?)?)),
            "or" => Ok(Condition::Any(some(inside()?)?)),
            "not" => {
                let mut conditions = some(inside()?)?;
                match (conditions.pop(), conditions.is_empty()) {
                    (Some(one), true) => Ok(Condition::Not(Box::new(one))),
                    _ => Err(self.wrong(element.span(), "`not` has one condition inside")),
                }
            }
            "equal" => {
                let Some(value) = element.attr("value") else {
                    return Err(self.wrong(element.span(), "`equal` needs `value`"));
                };
                Ok(Condition::Equal(self.part(element)?, value.trim().to_owned()))
            }
            "match" => {
                let Some(regex) = element.attr("regex") else {
                    return Err(self.wrong(element.span(), "`match` needs `regex`"));
                };
                let pattern = Pattern::compile(regex).map_err(|why| {
                    let message = format!("`{regex}` is not a valid regular expression: {why}");
                    self.wrong(element.value_span("regex"), &message)
                })?;
                Ok(Condition::Match(self.part(element)?, pattern))
            }
            other => {
                let mut message =
                    format!("there is no condition `{other}`; expected equal, match, and, or, not");
                if let Some(near) = diagnostics::did_you_mean(other, ["equal", "match", "and", "or", "not"]) {
                    message += &format!("; {near}");
                }
                Err(self.wrong(element.span(), &message))
            }
        }
    }

    fn part(&self, element: &Element) -> Result<Part, String> {
        let source = element.attr("source").map(str::trim).filter(|name| !name.is_empty());
        let needed = || {
            let message = format!("`{}` needs `source`: the name", element.local());
            source.map(str::to_owned).ok_or_else(|| self.wrong(element.span(), &message))
        };
        match element.attr("type").map(str::trim) {
            Some("header") => needed().map(Part::Header),
            Some("param") => needed().map(Part::Parameter),
            None | Some("url") => match source.map(str::to_ascii_lowercase).as_deref() {
                None | Some("full") => Ok(Part::Target),
                Some("path") => Ok(Part::Path),
                Some("query") => Ok(Part::Query),
                Some("host") => Ok(Part::Host),
                Some("port") => Ok(Part::Port),
                Some("protocol") => Ok(Part::Protocol),
                Some(other) => {
                    let message = format!(
                        "a URL has no `{other}` here; expected full, path, query, host, port or protocol"
                    );
                    Err(self.wrong(element.value_span("source"), &message))
                }
            },
            Some(other) => {
                let message = format!("`type` cannot be `{other}`; expected header, param or url");
                Err(self.wrong(element.value_span("type"), &message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(conditions: &str) -> String {
        format!(
            "<Priority-Configuration xmlns='http://ws.apache.org/ns/synapse'>\n<priority-executor><queues isFixed='true'><queue priority='1' size='2'/><queue size='3' priority='10'/></queues>\
             <threads core='1' max='1'/></priority-executor>\n{conditions}\n</Priority-Configuration>"
        )
    }

    fn inbound(target: &str) -> (Inbound, Headers) {
        let mut headers = Headers::new();
        headers.set("Customer", "Gold");
        headers.set("Host", "[::1]:8280");
        let mut inbound = Inbound::of_nobody(
            message::Method::Post,
            target.to_owned(),
            super::super::request::Client::Rest,
            &headers,
        );
        inbound.host = "[::1]:8280".into();
        (inbound, headers)
    }

    #[test]
    fn the_first_condition_that_holds_counts() {
        for (condition, wanted) in [
            ("", 1),
            ("<equal type='header' source='customer' value='gold'/>", 10),
            ("<equal type='header' source='customer' value='gol'/>", 1),
            ("<equal type='header' source='other' value=''/>", 1),
            ("<match type='header' source='Customer' regex='Go.*'/>", 10),
            ("<match type='header' source='Customer' regex='Go'/>", 1),
            ("<match type='url' regex='/a.*'/>", 10),
            ("<match regex='/b.*'/>", 1),
            ("<equal type='url' source='path' value='/a/b'/>", 10),
            ("<equal type='url' source='query' value='x=1&amp;y=%20z'/>", 10),
            ("<equal type='url' source='host' value='[::1]'/>", 10),
            ("<equal type='url' source='protocol' value='http'/>", 10),
            ("<equal type='param' source='y' value=' z'/>", 1),
            ("<match type='param' source='y' regex=' z'/>", 10),
            ("<match type='param' source='z' regex='.*'/>", 1),
            ("<not><equal type='param' source='x' value='1'/></not>", 1),
            (
                "<and><equal type='param' source='x' value='1'/><not><equal type='param' source='x' value='2'/></not></and>",
                10,
            ),
            (
                "<or><equal type='param' source='x' value='3'/><equal type='param' source='x' value='2'/></or>",
                1,
            ),
        ] {
            let condition = match condition {
                "" => String::new(),
                inner => format!("<condition priority='10'>{inner}</condition>"),
            };
            let text = file(&format!("<conditions>{condition}</conditions>"));
            let priorities = Priorities::read("p.xml", &text).expect("a file");
            let (inbound, headers) = inbound("/a/b?x=1&y=%20z");
            assert_eq!(priorities.of(&inbound, &headers), wanted, "{condition}");
        }
        let priorities =
            Priorities::read("p.xml", &file("<conditions defaultPriority='10'/>")).expect("a file");
        assert_eq!(priorities.shape, Shape { queues: vec![(10, 3), (1, 2)], core: 1, max: 1 });
        assert_eq!(priorities.default, 10);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let whole = |text: &str| Priorities::read("p.xml", text).expect_err(text);
        let one = |inside: &str| {
            whole(&file(&format!("<conditions>\n<condition priority='10'>{inside}</condition></conditions>")))
        };
        for (found, wanted) in [
            (whole("<a"), "p.xml:1: "),
            (whole("<a/>"), "p.xml:1: `a` has no `priority-executor` inside"),
            (whole(&file("")), "p.xml:1: `Priority-Configuration` has no `conditions` inside"),
            (
                whole(&file("<conditions defaultPriority='x'/>")),
                "p.xml:3: `defaultPriority` cannot be `x`; expected a whole number",
            ),
            (
                whole(&file("<conditions defaultPriority='5'/>")),
                "p.xml:3: there is no queue of the priority 5",
            ),
            (
                whole(&file("<conditions/>").replace("size='2'", "size='-2'")),
                "p.xml:2: `size` cannot be `-2`",
            ),
            (whole(&file("<conditions/>").replace("size='2'", "")), "p.xml:2: `queue` needs `size`"),
            (
                whole(&file("<conditions/>").replace("priority='1'", "priority='10'")),
                "p.xml:2: two queues have the priority 10",
            ),
            (whole(&file("<conditions/>").replace("max='1'", "max='0'")), "p.xml:2: `max` is 0"),
            (
                whole(&file("<conditions/>").replace("<queue priority='1' size='2'/>", "")),
                "p.xml:2: an executor needs at least two queues",
            ),
            (one(""), "p.xml:4: expected one of equal, match, and, or, not inside"),
            (
                one("<equals/>"),
                "p.xml:4: there is no condition `equals`; expected equal, match, and, or, not; did you mean `equal`?",
            ),
            (one("<equal type='header' source='a'/>"), "p.xml:4: `equal` needs `value`"),
            (one("<equal type='header' value='a'/>"), "p.xml:4: `equal` needs `source`"),
            (one("<equal type='soap' source='a' value='a'/>"), "p.xml:4: `type` cannot be `soap`"),
            (one("<equal type='url' source='user' value='a'/>"), "p.xml:4: a URL has no `user` here"),
            (
                one("<match type='header' source='a' regex='('/>"),
                "p.xml:4: `(` is not a valid regular expression",
            ),
            (one("<match type='header' source='a'/>"), "p.xml:4: `match` needs `regex`"),
            (one("<not/>"), "p.xml:4: `not` has no condition inside"),
            (one("<and/>"), "p.xml:4: `and` has no condition inside"),
        ] {
            assert!(found.starts_with(wanted), "{found}\n{wanted}");
        }
        let deep = format!(
            "{}<equal type='header' source='a' value='b'/>{}",
            "<not>".repeat(70),
            "</not>".repeat(70)
        );
        assert!(one(&deep).contains("too deeply"));
    }
}
