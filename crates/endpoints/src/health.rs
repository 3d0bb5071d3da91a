//! Active checks of an endpoint: what the properties `health.check.*` ask for, and what the checks say so far.
//!
//! They are properties, as weights of load balance are, so that other engines load the configuration too. They are not set on
//! messages.

use config::EndpointKind;
use config::endpoint::{EndpointProperty, PropertyValue};
use diagnostics::{Diagnostic, Span};
use flow::health::{Check, Health};
use flow::{Compiler, Identity, States};
use message::Method;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transport::Target;

const PREFIX: &str = "health.check.";
const NAMES: [&str; 7] = [
    "health.check.path",
    "health.check.method",
    "health.check.interval",
    "health.check.timeout",
    "health.check.expect",
    "health.check.failures",
    "health.check.successes",
];

/// Shortest time from one check to the next, and the longest, in milliseconds.
const INTERVAL: RangeInclusive<u64> = 1000..=86_400_000;

/// Whether a property says how the endpoint is checked: no message gets it.
pub fn is_check(property: &EndpointProperty) -> bool {
    property.name.value.starts_with(PREFIX)
}

/// The checks of one endpoint.
#[derive(Debug)]
pub struct Checks {
    pub check: Check,
    /// So many failures in a row take it out, so many successes bring it back.
    failures: u32,
    successes: u32,
    cell: Arc<Cell>,
}

/// What the checks said; it belongs to the identity of the endpoint at its address.
#[derive(Debug, Default)]
struct Cell {
    down: AtomicBool,
    row: Mutex<Row>,
}

#[derive(Debug, Default)]
struct Row {
    failures: u32,
    successes: u32,
    /// The number of setbacks when the successes were counted.
    setbacks: u64,
    checks: u64,
    failed: u64,
    last: Option<String>,
}

/// What a check says together with those before it.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing new.
    Open,
    /// The backend is not well: this is what is to be said, if it was well before.
    Down(Option<String>),
    /// It is; whether it was not before.
    Up(bool),
}

impl Checks {
    /// What the properties of an endpoint ask for; `None` where they ask for no checks. `target`: its connection, where it has one that is
    /// the same for all messages.
    ///
    /// # Errors
    /// A value is wrong (recorded).
    pub fn of(
        endpoint: &config::Endpoint,
        target: Option<&Target>,
        compiler: &mut Compiler<'_>,
    ) -> Result<Option<Settings>, ()> {
        let Some(first) = endpoint.properties.iter().find(|property| is_check(property)) else {
            return Ok(None);
        };
        let mut reader = Reader { endpoint, compiler, wrong: false };
        reader.report_unknown();
        let path = reader.value("health.check.path", "a path, for example /health", |text| {
            let sound = text.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
            (text.starts_with('/') && sound).then(|| text.to_owned())
        });
        let method = reader.value("health.check.method", "GET, HEAD or OPTIONS", |text| {
            ["GET", "HEAD", "OPTIONS"].contains(&text).then(|| Method::new(text))
        });
        let interval = reader.number("health.check.interval", INTERVAL, "milliseconds");
        let timeout = reader.number("health.check.timeout", 1..=3_600_000, "milliseconds");
        let expected = reader.value(
            "health.check.expect",
            "statuses from 200 on, for example 200,204 or 2xx,401",
            statuses,
        );
        let failures = reader.number("health.check.failures", 1..=1000, "failures in a row");
        let successes = reader.number("health.check.successes", 1..=1000, "successes in a row");
        if reader.wrong {
            return Err(());
        }
        let Some(path) = path else {
            let message = "the endpoint is not checked: `health.check.path` says what is asked for";
            compiler.warning("not-checked", message, first.span, "has no effect without it");
            return Ok(None);
        };
        let Some(target) = target else {
            let message = "the endpoint is not checked: only fixed http and https addresses are";
            compiler.warning("not-checked", message, first.span, "has no effect here");
            return Ok(None);
        };
        let interval = interval.map_or(Duration::from_secs(10), Duration::from_millis);
        let longer = timeout.map(Duration::from_millis).filter(|timeout| *timeout > interval);
        if let (Some(timeout), Some(place)) = (longer, reader.place("health.check.timeout")) {
            let message = format!(
                "a health check may take {} ms, longer than the {} ms from one to the next",
                timeout.as_millis(),
                interval.as_millis()
            );
            let remark = "the next one waits for it: a backend that hangs is found out later";
            compiler.warning("slow-check", message, place, remark);
        }
        let count =
            |number: Option<u64>, default| number.and_then(|n| u32::try_from(n).ok()).unwrap_or(default);
        let check = Check {
            target: target.clone(),
            method: method.unwrap_or(Method::Get),
            path,
            interval,
            timeout: timeout.map_or(Duration::from_secs(5).min(interval), Duration::from_millis),
            expected: expected.unwrap_or_else(|| vec![200..=299]),
        };
        Ok(Some(Settings { check, failures: count(failures, 2), successes: count(successes, 1) }))
    }

    /// Whether the checks keep messages away.
    pub fn is_down(&self) -> bool {
        self.cell.down.load(Relaxed)
    }

    /// Forgets what the checks said: the endpoint was switched by hand.
    pub fn reset(&self) {
        let mut row = flow::lock(&self.cell.row);
        (row.failures, row.successes) = (0, 0);
        self.cell.down.store(false, Relaxed);
    }

    /// Counts a check that began when there were `began` setbacks, where there are `now` now.
    pub fn count(&self, outcome: Result<(), String>, began: u64, now: u64) -> Verdict {
        let mut row = flow::lock(&self.cell.row);
        row.checks += 1;
        row.last = outcome.err();
        if let Some(last) = row.last.clone() {
            row.failed += 1;
            row.successes = 0;
            row.failures = row.failures.saturating_add(1);
            if row.failures < self.failures {
                return Verdict::Open;
            }
            let was_down = self.cell.down.swap(true, Relaxed);
            return Verdict::Down((!was_down).then(|| {
                let path = self.check.path.split('?').next().unwrap_or_default();
                let s = if row.failures == 1 { " has" } else { "s in a row have" };
                format!(
                    "{} health check{s} failed: {} {path}: {last}",
                    row.failures,
                    self.check.method.as_str()
                )
            }));
        }
        row.failures = 0;
        // What was well before a failure says nothing about what comes after.
        if row.setbacks != now {
            (row.setbacks, row.successes) = (now, 0);
        }
        if began != now {
            return Verdict::Open;
        }
        row.successes = row.successes.saturating_add(1);
        match row.successes >= self.successes {
            true => Verdict::Up(self.cell.down.swap(false, Relaxed)),
            false => Verdict::Open,
        }
    }

    /// How they went.
    pub fn health(&self) -> Health {
        let row = flow::lock(&self.cell.row);
        Health { healthy: !self.is_down(), checks: row.checks, failed: row.failed, last: row.last.clone() }
    }
}

/// What the configuration says of the checks of an endpoint.
#[derive(Debug)]
pub struct Settings {
    check: Check,
    failures: u32,
    successes: u32,
}

impl Settings {
    /// With what the checks of this endpoint said before.
    pub fn with(self, at: &Identity, states: &States) -> Checks {
        let Settings { check, failures, successes } = self;
        Checks { check, failures, successes, cell: states.get(at) }
    }
}

/// Statuses and ranges of them: `200`, `2xx`, `200-204`, with commas between. Those of 1xx are no answers: nothing is well by them.
fn statuses(text: &str) -> Option<Vec<RangeInclusive<u16>>> {
    let one = |text: &str| text.parse::<u16>().ok().filter(|status| (200..=599).contains(status));
    let range = |part: &str| {
        let part = part.trim();
        if let Some(class) = part.strip_suffix("xx").or_else(|| part.strip_suffix("XX")) {
            let class = class.parse::<u16>().ok().filter(|class| (2..=5).contains(class))? * 100;
            return Some(class..=class + 99);
        }
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (one(from.trim())?, one(to.trim())?);
        (from <= to).then_some(from..=to)
    };
    text.split(',').map(range).collect()
}

/// Reads the properties.
struct Reader<'a, 'c, 'b> {
    endpoint: &'a config::Endpoint,
    compiler: &'c mut Compiler<'b>,
    wrong: bool,
}

impl Reader<'_, '_, '_> {
    fn error(&mut self, name: &str, place: Span, wanted: &str) {
        self.wrong = true;
        let message = format!("`{name}` is wrong");
        self.compiler.error("bad-value", message, place, format!("expected {wanted}"));
    }

    fn value<T>(&mut self, name: &str, wanted: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let property = self.endpoint.properties.iter().rfind(|candidate| candidate.name.value == name)?;
        let place = match &property.value {
            PropertyValue::Literal(text) => match read(text.value.trim()) {
                Some(value) => return Some(value),
                None => text.span,
            },
            // It is known before there is a message.
            PropertyValue::Expression(_) | PropertyValue::Xml(_) => property.span,
        };
        self.error(name, place, wanted);
        None
    }

    /// Where the value of a property stands.
    fn place(&self, name: &str) -> Option<Span> {
        let property = self.endpoint.properties.iter().rfind(|candidate| candidate.name.value == name)?;
        Some(match &property.value {
            PropertyValue::Literal(text) => text.span,
            PropertyValue::Expression(_) | PropertyValue::Xml(_) => property.span,
        })
    }

    fn number(&mut self, name: &str, range: RangeInclusive<u64>, unit: &str) -> Option<u64> {
        let wanted = format!("{unit}, {} to {}", range.start(), range.end());
        self.value(name, &wanted, |text| text.parse().ok().filter(|number| range.contains(number)))
    }

    fn report_unknown(&mut self) {
        let checks = self.endpoint.properties.iter().filter(|property| is_check(property));
        for property in checks.filter(|property| !NAMES.contains(&property.name.value.as_str())) {
            let name = property.name.value.as_str();
            let found = Diagnostic::warning(
                "unknown-property",
                format!("there is no property `{name}` of health checks"),
            );
            let found =
                found.at(property.name.span, "has no effect").did_you_mean(name, NAMES.iter().copied());
            self.compiler.diagnostics.push(found);
        }
    }
}

/// Says where checks are asked for of what has no address of its own.
pub fn report_misplaced(endpoint: &config::Endpoint, compiler: &mut Compiler<'_>) {
    let has_address = !matches!(
        endpoint.kind,
        EndpointKind::Failover(_)
            | EndpointKind::LoadBalance(_)
            | EndpointKind::RecipientList(_)
            | EndpointKind::Reference(_)
            | EndpointKind::Resolving(_)
            | EndpointKind::Template(_)
    );
    if let Some(property) =
        endpoint.properties.iter().find(|property| is_check(property)).filter(|_| !has_address)
    {
        let message = "the endpoint is not checked: it has no address of its own";
        compiler.warning(
            "not-checked",
            message,
            property.span,
            "belongs to the endpoints with the addresses",
        );
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use config::ArtifactKind;

    #[test]
    fn statuses_are_single_ones_classes_and_ranges() {
        for (text, expected) in [
            ("200", Some(vec![200..=200])),
            ("2xx, 401", Some(vec![200..=299, 401..=401])),
            ("200-204,3XX", Some(vec![200..=204, 300..=399])),
            ("204-200", None),
            ("6xx", None),
            ("1xx", None),
            ("100,200", None),
            ("101-299", None),
            ("20", None),
            ("200,", None),
            ("", None),
            ("ok", None),
        ] {
            assert_eq!(statuses(text), expected, "{text}");
        }
    }

    pub(crate) fn settings(failures: u32, successes: u32) -> Settings {
        let check = Check {
            target: Target::http("h", 80),
            method: Method::Get,
            path: "/health?key=s3cret".to_owned(),
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            expected: vec![200..=299],
        };
        Settings { check, failures, successes }
    }

    fn checks(failures: u32, successes: u32) -> Checks {
        let identity = Identity::of(ArtifactKind::Endpoint, "E");
        settings(failures, successes).with(&identity, &States::default())
    }

    #[test]
    fn so_many_in_a_row_take_it_out_and_bring_it_back() {
        let checks = checks(2, 2);
        let bad = || checks.count(Err("status 503".to_owned()), 0, 0);
        assert_eq!(bad(), Verdict::Open);
        let why = "2 health checks in a row have failed: GET /health: status 503";
        assert_eq!((bad(), bad()), (Verdict::Down(Some(why.to_owned())), Verdict::Down(None)));
        assert!(checks.is_down());
        let good = || checks.count(Ok(()), 0, 0);
        assert_eq!((good(), checks.is_down()), (Verdict::Open, true));
        assert_eq!(bad(), Verdict::Open, "not in a row");
        assert_eq!((good(), good(), good()), (Verdict::Open, Verdict::Up(true), Verdict::Up(false)));
        assert_eq!((checks.is_down(), checks.health().checks, checks.health().failed), (false, 8, 4));
    }

    #[test]
    fn what_was_well_before_a_suspension_does_not_end_it() {
        let checks = checks(1, 2);
        assert_eq!(checks.count(Ok(()), 0, 0), Verdict::Open);
        // It was suspended while the next one was on its way.
        assert_eq!(checks.count(Ok(()), 0, 1), Verdict::Open);
        assert_eq!(checks.count(Ok(()), 1, 1), Verdict::Open);
        assert_eq!(checks.count(Ok(()), 1, 1), Verdict::Up(false));
    }
}
