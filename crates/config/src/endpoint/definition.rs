//! What leaf endpoints have in common: format, timeout, suspension, retries, security.

use crate::element::{Element, SYNAPSE};
use crate::read::{self, Shape};
use crate::value::{Expression, Key, Value};
use diagnostics::{Diagnostic, Diagnostics};
use std::time::Duration;

/// The common part of address, default, WSDL and http endpoints (and, as far as it applies, of groups).
#[derive(Clone, Default, Debug)]
pub struct Definition {
    /// How the message is sent; `None`: as it was received.
    pub format: Option<Format>,
    /// How binary content is sent.
    pub optimize: Option<Optimize>,
    /// The charset of the message.
    pub encoding: Option<String>,
    /// WS-Security.
    pub security: Option<Security>,
    /// WS-Addressing.
    pub addressing: Option<Addressing>,
    /// When to stop waiting, and what then. `None`: the global timeout.
    pub timeout: Option<Timeout>,
    /// Errors that count up to a suspension.
    pub mark_for_suspension: MarkForSuspension,
    /// Errors that suspend at once, and for how long.
    pub suspend_on_failure: SuspendOnFailure,
    /// Which errors let a group try another endpoint.
    pub retry: Retry,
    /// Collect statistics.
    pub statistics: bool,
    /// Trace messages.
    pub trace: bool,
}

/// The format of messages to an endpoint.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Format {
    /// SOAP 1.1.
    Soap11,
    /// SOAP 1.2.
    Soap12,
    /// Plain XML.
    Pox,
    /// A GET with the message in the query.
    Get,
    /// As received, with the REST suffix.
    Rest,
}

/// The optimisation of binary content.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Optimize {
    /// XOP packages.
    Mtom,
    /// SOAP with attachments.
    Swa,
}

/// `<enableSec>`.
#[derive(Clone, Default, Debug)]
pub struct Security {
    /// The policy for both directions.
    pub policy: Option<Value>,
    /// The policy of responses, when `policy` is absent.
    pub inbound_policy: Option<Value>,
    /// The policy of requests, when `policy` is absent.
    pub outbound_policy: Option<Value>,
}

/// `<enableAddressing>`.
#[derive(Clone, Default, Debug)]
pub struct Addressing {
    /// The version; `None`: final.
    pub version: Option<AddressingVersion>,
    /// Responses come to a separate listener.
    pub separate_listener: bool,
}

/// The version of WS-Addressing.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum AddressingVersion {
    /// 2005/08.
    Final,
    /// 2004/08.
    Submission,
}

/// `<timeout>`.
#[derive(Clone, Debug)]
pub struct Timeout {
    /// How long to wait; `None`: the global timeout.
    pub duration: Option<Delay>,
    /// The action at a timeout.
    pub action: TimeoutAction,
}

/// A fixed time, or one that is computed for every message.
#[derive(Clone, Debug)]
pub enum Delay {
    /// Honoured as it is.
    Fixed(Duration),
    /// In milliseconds; held at the global timeout, which also counts when it is not a number.
    Expression(Expression),
}

/// What happens at a timeout.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum TimeoutAction {
    /// Nothing but the removal of the callback.
    #[default]
    Never,
    /// A late answer is dropped.
    Discard,
    /// The fault sequence runs.
    Fault,
}

/// `<markForSuspension>`.
#[derive(Clone, Default, Debug)]
pub struct MarkForSuspension {
    /// Errors that mark; empty: the default ones.
    pub error_codes: Vec<i64>,
    /// Failures after which the endpoint is suspended; 0: none.
    pub retries_before_suspension: u32,
    /// The pause between retries.
    pub retry_delay: Duration,
}

/// `<suspendOnFailure>`. Every number is kept as it is written: the engines calculate with them all.
#[derive(Clone, Debug)]
pub struct SuspendOnFailure {
    /// Errors that suspend; empty: all that are not excluded; -1: none.
    pub error_codes: Vec<i64>,
    /// The first suspension in milliseconds; negative (the default, -1): the global default (30 s).
    pub initial_duration: i64,
    /// Every further suspension lasts this many times the last one; where that is negative, the global default.
    /// `None`: as the settings say, else 1.
    pub progression_factor: Option<f32>,
    /// The longest suspension in milliseconds. Default: without a limit.
    pub maximum_duration: i64,
}

impl Default for SuspendOnFailure {
    fn default() -> SuspendOnFailure {
        SuspendOnFailure {
            error_codes: Vec::new(),
            initial_duration: -1,
            progression_factor: None,
            maximum_duration: i64::MAX,
        }
    }
}

/// `<retryConfig>`.
#[derive(Clone, Default, Debug)]
pub struct Retry {
    /// Errors after which no other endpoint is tried.
    pub disabled_error_codes: Vec<i64>,
    /// When not empty: only after these another endpoint is tried.
    pub enabled_error_codes: Vec<i64>,
}

pub(crate) const ATTRIBUTES: &[&str] = &["format", "optimize", "encoding", "statistics", "trace"];
pub(crate) const ELEMENTS: &[&str] = &[
    "enableSec",
    "enableAddressing",
    "enableRM",
    "timeout",
    "markForSuspension",
    "suspendOnFailure",
    "retryConfig",
    "suspendDurationOnFailure",
    "description",
    "property",
];

impl Definition {
    /// Reads the common part of a definition element, which may have further attributes and elements. Problems
    /// are reported, the rest is still read.
    pub(super) fn parse(
        element: &Element,
        more_attributes: &[&str],
        more_elements: &[&str],
        diagnostics: &mut Diagnostics,
    ) -> Definition {
        check(element, more_attributes, more_elements, diagnostics);
        crate::read::reliable_messaging(element, diagnostics);
        // Formats and optimisations are matched in any case, as in the engines.
        let format = lower(
            element,
            "format",
            diagnostics,
            &[
                ("soap11", Format::Soap11),
                ("soap12", Format::Soap12),
                ("soap", Format::Soap11),
                ("pox", Format::Pox),
                ("get", Format::Get),
                ("rest", Format::Rest),
            ],
        );
        let optimize =
            lower(element, "optimize", diagnostics, &[("mtom", Optimize::Mtom), ("swa", Optimize::Swa)]);
        Definition {
            format,
            optimize,
            encoding: read::optional_text(element, "encoding"),
            security: element.child("enableSec").map(|child| security(child, diagnostics)),
            addressing: element.child("enableAddressing").map(|child| addressing(child, diagnostics)),
            timeout: element.child("timeout").and_then(|child| timeout(child, diagnostics)),
            mark_for_suspension: element
                .child("markForSuspension")
                .map_or_else(MarkForSuspension::default, |child| mark(child, diagnostics)),
            suspend_on_failure: suspend(element, diagnostics),
            retry: element
                .child("retryConfig")
                .map_or_else(Retry::default, |child| retry(child, diagnostics)),
            statistics: read::enabled(element, "statistics", diagnostics),
            trace: read::enabled(element, "trace", diagnostics),
        }
    }
}

fn check(element: &Element, more_attributes: &[&str], more_elements: &[&str], diagnostics: &mut Diagnostics) {
    let attributes: Vec<&str> = more_attributes.iter().chain(ATTRIBUTES).copied().collect();
    let elements: Vec<&str> = more_elements.iter().chain(ELEMENTS).copied().collect();
    read::check_attributes(element, &attributes, diagnostics);
    read::stray_text(element, diagnostics);
    for child in element.elements() {
        let is_element_of_endpoint = elements.contains(&child.local());
        match child.namespace() {
            SYNAPSE if child.local() == "property" => diagnostics.push(
                Diagnostic::warning(
                    "ignored-element",
                    format!("`property` in `{}` is ignored", element.local()),
                )
                .at(child.start_tag(), "has no effect here")
                .help("move it out, into `endpoint`"),
            ),
            SYNAPSE if is_element_of_endpoint => {}
            // An inline WSDL.
            namespace if namespace != SYNAPSE && element.is("wsdl") && !is_element_of_endpoint => {}
            _ => diagnostics.push(read::ignored_element(element, child, &elements)),
        }
    }
}

fn lower<T: Copy>(
    element: &Element,
    name: &str,
    diagnostics: &mut Diagnostics,
    choices: &[(&str, T)],
) -> Option<T> {
    let key = read::optional(element, name)?;
    let found =
        choices.iter().find(|(written, _)| key.eq_ignore_ascii_case(written)).map(|(_, value)| *value);
    if found.is_none() {
        let names: Vec<&str> = choices.iter().map(|(written, _)| *written).collect();
        diagnostics.push(
            Diagnostic::warning("bad-value", format!("`{key}` is not a valid {name}; it is ignored"))
                .at(key.span, format!("expected one of: {}", names.join(", ")))
                .did_you_mean(&key, names),
        );
    }
    found
}

pub(crate) const SECURITY: Shape =
    Shape { attributes: &["policy", "inboundPolicy", "outboundPolicy"], elements: &[] };

fn security(element: &Element, diagnostics: &mut Diagnostics) -> Security {
    SECURITY.check(element, diagnostics);
    let value = |name| element.attribute(name).map(|attribute| Value::of(attribute, element));
    Security {
        policy: value("policy"),
        inbound_policy: value("inboundPolicy"),
        outbound_policy: value("outboundPolicy"),
    }
}

pub(crate) const ADDRESSING: Shape = Shape { attributes: &["version", "separateListener"], elements: &[] };

fn addressing(element: &Element, diagnostics: &mut Diagnostics) -> Addressing {
    ADDRESSING.check(element, diagnostics);
    let versions = [("final", AddressingVersion::Final), ("submission", AddressingVersion::Submission)];
    Addressing {
        version: read::choice(element, "version", &versions, diagnostics),
        separate_listener: read::boolean(element, "separateListener", false, diagnostics),
    }
}

pub(crate) const TIMEOUT: Shape =
    Shape { attributes: &[], elements: &["duration", "responseAction", "action"] };

fn timeout(element: &Element, diagnostics: &mut Diagnostics) -> Option<Timeout> {
    // `action` is accepted and ignored, as in the engines.
    TIMEOUT.check(element, diagnostics);
    if let Some(action) = element.child("action") {
        diagnostics.push(
            Diagnostic::warning("ignored-element", "`action` of a timeout is ignored")
                .at(action.span(), "has no effect")
                .help("did you mean `responseAction`?"),
        );
    }
    let duration = match read::child_text(element, "duration") {
        None => None,
        Some(key) => match Value::parse(&key, key.span, element.scope()) {
            Value::Expression(expression) => Some(Delay::Expression(expression)),
            _ => {
                let number = read::number::<i64>(&key, "duration", "a number of milliseconds", diagnostics);
                if let Some(number) = number {
                    less_than_unset(
                        &key,
                        "duration",
                        number,
                        "the timeout of all endpoints counts",
                        diagnostics,
                    );
                }
                // A timeout of 0 would fail every message, so the global one counts.
                let time = number.and_then(|number| u64::try_from(number).ok()).filter(|&number| number > 0);
                time.map(|number| Delay::Fixed(Duration::from_millis(number)))
            }
        },
    };
    let action = match read::child_text(element, "responseAction") {
        None => TimeoutAction::Never,
        Some(key) if key.eq_ignore_ascii_case("discard") => TimeoutAction::Discard,
        Some(key) if key.eq_ignore_ascii_case("fault") => TimeoutAction::Fault,
        Some(key) if key.eq_ignore_ascii_case("never") => TimeoutAction::Never,
        Some(key) => {
            diagnostics.push(
                read::bad_setting("responseAction", &key, key.span, "discard, fault or never")
                    .did_you_mean(&key, ["discard", "fault", "never"]),
            );
            TimeoutAction::Never
        }
    };
    Some(Timeout { duration, action })
}

pub(crate) const MARK: Shape =
    Shape { attributes: &[], elements: &["errorCodes", "retriesBeforeSuspension", "retryDelay"] };

fn mark(element: &Element, diagnostics: &mut Diagnostics) -> MarkForSuspension {
    MARK.check(element, diagnostics);
    // A negative number counts as 0.
    let mut count = |name: &str, expected: &str| -> u64 {
        let Some(key) = read::child_text(element, name) else { return 0 };
        let Some(number) = read::number::<i64>(&key, name, expected, diagnostics) else { return 0 };
        less_than_unset(&key, name, number, "it counts as 0", diagnostics);
        u64::try_from(number).unwrap_or(0)
    };
    let retries = count("retriesBeforeSuspension", "a whole number");
    let delay = count("retryDelay", "a number of milliseconds");
    MarkForSuspension {
        error_codes: error_codes(element, "errorCodes", diagnostics),
        retries_before_suspension: u32::try_from(retries).unwrap_or(u32::MAX),
        retry_delay: Duration::from_millis(delay),
    }
}

pub(crate) const SUSPEND: Shape = Shape {
    attributes: &[],
    elements: &["errorCodes", "initialDuration", "progressionFactor", "maximumDuration"],
};

fn suspend(element: &Element, diagnostics: &mut Diagnostics) -> SuspendOnFailure {
    let mut suspend = SuspendOnFailure::default();
    // The deprecated form: seconds, without progression.
    if let Some(key) = read::child_text(element, "suspendDurationOnFailure") {
        let seconds: Option<i64> =
            read::number(&key, "suspendDurationOnFailure", "a number of seconds", diagnostics);
        suspend.initial_duration = seconds.unwrap_or(-1).saturating_mul(1000);
    }
    let Some(element) = element.child("suspendOnFailure") else { return suspend };
    SUSPEND.check(element, diagnostics);
    suspend.error_codes = error_codes(element, "errorCodes", diagnostics);
    let mut number = |name: &str| -> Option<i64> {
        let key = read::child_text(element, name)?;
        let number = read::number(&key, name, "a number of milliseconds", diagnostics)?;
        less_than_unset(&key, name, number, "it counts as not set", diagnostics);
        Some(number)
    };
    if let Some(initial) = number("initialDuration") {
        suspend.initial_duration = initial;
    }
    if let Some(maximum) = number("maximumDuration") {
        suspend.maximum_duration = maximum;
    }
    if let Some(key) = read::child_text(element, "progressionFactor")
        && let Some(factor) = read::number::<f32>(&key, "progressionFactor", "a number", diagnostics)
    {
        // Studio writes -1 where suspensions do not grow.
        if factor < 0.0 && factor != -1.0 {
            let message = format!("`progressionFactor` should not be `{key}`");
            let label = "expected 1 or more: each suspension is as many times as long as the one before";
            diagnostics.push(Diagnostic::warning("bad-value", message).at(key.span, label));
        }
        suspend.progression_factor = Some(factor);
    }
    suspend
}

pub(crate) const RETRY: Shape =
    Shape { attributes: &[], elements: &["disabledErrorCodes", "enabledErrorCodes"] };

fn retry(element: &Element, diagnostics: &mut Diagnostics) -> Retry {
    RETRY.check(element, diagnostics);
    Retry {
        disabled_error_codes: error_codes(element, "disabledErrorCodes", diagnostics),
        enabled_error_codes: error_codes(element, "enabledErrorCodes", diagnostics),
    }
}

/// Warns of a number below -1, which is what engines write for one that is not set.
fn less_than_unset(key: &Key, name: &str, number: i64, effect: &str, diagnostics: &mut Diagnostics) {
    if number < -1 {
        let message = format!("`{name}` should not be `{key}`");
        diagnostics.push(Diagnostic::warning("bad-value", message).at(key.span, effect));
    }
}

/// A list of codes, separated by commas or spaces.
fn error_codes(element: &Element, name: &str, diagnostics: &mut Diagnostics) -> Vec<i64> {
    let Some(key) = read::child_text(element, name) else { return Vec::new() };
    let mut codes = Vec::new();
    for code in read::names(&key) {
        match code.parse() {
            Ok(code) => codes.push(code),
            Err(_) => diagnostics.push(read::bad_setting(
                name,
                &code,
                key.span,
                "whole numbers, separated by commas or spaces",
            )),
        }
    }
    codes
}
