//! The format of `case.json`. Unknown keys are errors, so that a misspelt expectation cannot pass unseen.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Deref;

/// A case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// `group/name`.
    pub id: String,
    /// The first part of the id.
    pub group: String,
    /// What it shows, in a line.
    #[serde(default)]
    pub title: String,
    /// A file with `<definitions>`, or a configuration directory.
    pub config: String,
    /// Stubs, started before the bus.
    #[serde(default)]
    pub backends: Vec<Backend>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// `false`: the bus must refuse this configuration.
    #[serde(default = "yes")]
    pub expect_start: bool,
    /// Milliseconds between readiness and the first step.
    #[serde(default)]
    pub settle_ms: u64,
    /// Labels.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Engines whose answers these are.
    #[serde(default)]
    pub verified_against: Value,
    /// Where the scenario comes from.
    #[serde(default)]
    pub derived_from: Value,
}

fn yes() -> bool {
    true
}

/// What a backend stub does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// Answers by routes.
    #[default]
    Http,
    /// The stock quote service of the samples.
    Stockquote,
    /// Answers with its own name.
    Lb,
    /// A port on which nobody listens.
    Refused,
    /// Accepts and never answers.
    Blackhole,
}

/// A backend stub.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// The name in `@PORT:name@` and in steps.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub kind: BackendKind,
    /// Of an `http` backend: the first that matches answers.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Of `stockquote` and `lb`: milliseconds before each answer.
    #[serde(default)]
    pub delay_ms: u64,
    /// Of `stockquote`: the answer to GET `…?wsdl`.
    pub wsdl_file: Option<String>,
    /// Of `stockquote`: the length of a full quote's history.
    pub days: Option<usize>,
    /// Of `stockquote`: the namespace of the fields of a quote.
    pub fields_namespace: Option<String>,
    /// Of `lb`: its name in the answer; the backend's name by default.
    pub server_name: Option<String>,
}

/// A route: which requests it matches and its answers to the first, second, … of them; the last one repeats.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct Route {
    /// Which requests. Of the answers only this one's conditions count.
    pub answers: Vec<With<StubResponse>>,
}

impl TryFrom<Map<String, Value>> for Route {
    type Error = String;

    fn try_from(mut route: Map<String, Value>) -> Result<Route, String> {
        let overrides = match route.remove("sequence") {
            None => vec![Map::new()],
            Some(list) => serde_json::from_value(list).map_err(|e| format!("sequence: {e}"))?,
        };
        let merge = |over: Map<String, Value>| {
            let mut merged = route.clone();
            merged.extend(over);
            serde_json::from_value(Value::Object(merged)).map_err(|e| format!("route: {e}"))
        };
        let answers: Vec<With<StubResponse>> = overrides.into_iter().map(merge).collect::<Result<_, _>>()?;
        if answers.is_empty() { Err("an empty sequence".to_owned()) } else { Ok(Route { answers }) }
    }
}

/// The conditions of a route and one answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StubResponse {
    /// Methods, separated by commas.
    pub method: Option<String>,
    /// The path; with `*` at its end a prefix, with `~` at its begin a regular expression.
    pub path: Option<String>,
    /// The whole query.
    pub query: Option<String>,
    /// A part of the body.
    pub body_contains: Option<String>,
    /// The status, 200 by default.
    pub status: Option<u16>,
    /// The reason phrase.
    pub reason: Option<String>,
    /// Header fields.
    #[serde(default)]
    pub headers: Map<String, Value>,
    /// The body is that of the request.
    #[serde(default)]
    pub echo: bool,
    /// The body is the request as JSON.
    #[serde(default)]
    pub echo_request: bool,
    /// Milliseconds before the answer.
    #[serde(default)]
    pub delay_ms: u64,
    /// The connection ends without an answer.
    #[serde(default)]
    pub close: bool,
    /// The connection ends after the answer.
    #[serde(default)]
    pub close_after: bool,
}

/// `prefix`, `unit` times `times`, `suffix`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// Before.
    #[serde(default)]
    pub prefix: String,
    /// Repeated.
    pub unit: String,
    /// How often.
    pub times: usize,
    /// Behind.
    #[serde(default)]
    pub suffix: String,
}

/// Bytes: of a request, an answer ([`With`] others) or an expectation.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// Text.
    pub body: Option<String>,
    /// JSON.
    pub json: Option<Value>,
    /// A file of the case.
    pub body_file: Option<String>,
    /// Repeated text.
    pub body_repeat: Option<Repeat>,
    /// The encoding of `body`, UTF-8 by default.
    pub body_encoding: Option<String>,
}

/// Something that has keys for its bytes beside its own.
#[derive(Debug, Clone)]
pub struct With<T> {
    /// The bytes.
    pub content: Content,
    rest: T,
}

impl<T> Deref for With<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.rest
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for With<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<With<T>, D::Error> {
        let mut members = Map::deserialize(from)?;
        let keys = ["body", "json", "body_file", "body_repeat", "body_encoding"];
        let content: Map<_, _> = keys.into_iter().filter_map(|key| members.remove_entry(key)).collect();
        Ok(With { content: of(content)?, rest: of(members)? })
    }
}

fn of<T: DeserializeOwned, E: Error>(object: Map<String, Value>) -> Result<T, E> {
    serde_json::from_value(Value::Object(object)).map_err(E::custom)
}

/// A step; it may have several of these, done in this order.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Waits.
    pub wait_ms: Option<u64>,
    /// Stops a backend and ends its connections.
    pub stop_backend: Option<String>,
    /// Starts it on the same port.
    pub start_backend: Option<String>,
    /// Forgets what it has seen.
    pub reset_backend: Option<String>,
    /// Sends requests.
    pub request: Option<With<Request>>,
    /// Holds for every answer.
    pub expect: Option<Expect>,
    /// One for each answer, in order.
    #[serde(default)]
    pub expect_each: Vec<Expect>,
    /// How many answers are like this.
    #[serde(default)]
    pub expect_counts: Vec<Count>,
    /// What a backend has seen.
    pub backend: Option<Seen>,
    /// A remark.
    #[serde(default)]
    pub comment: Value,
}

/// Requests to the bus.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// POST with a body, GET without, by default.
    pub method: Option<String>,
    /// The target, `/` by default.
    pub path: Option<String>,
    /// Header fields, sent as written.
    #[serde(default)]
    pub headers: Map<String, Value>,
    /// How often it is sent.
    pub times: Option<usize>,
    /// How many at the same time.
    pub parallel: Option<usize>,
    /// Milliseconds between them.
    #[serde(default)]
    pub interval_ms: u64,
    /// Milliseconds to wait for one answer.
    pub timeout_ms: Option<u64>,
    /// Bytes per chunk, with `Transfer-Encoding: chunked`.
    pub chunk_size: Option<usize>,
}

/// How many of the answers satisfy an expectation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// The expectation.
    pub expect: Expect,
    /// Exactly.
    pub count: Option<usize>,
    /// At least.
    pub min: Option<usize>,
    /// At most.
    pub max: Option<usize>,
}

/// What a backend has seen.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// The backend.
    pub name: String,
    /// Exactly so many requests.
    pub count: Option<usize>,
    /// At least.
    pub min_count: Option<usize>,
    /// At most.
    pub max_count: Option<usize>,
    /// Milliseconds to wait for them, 3000 by default.
    pub within_ms: Option<u64>,
    /// Milliseconds to wait for more than `count`.
    #[serde(default)]
    pub settle_ms: u64,
    /// The requests in order, or by `index`.
    #[serde(default)]
    pub requests: Vec<Expect>,
    /// Some request is like this.
    #[serde(default)]
    pub any_request: Vec<Expect>,
}

/// Expectations on one message; all must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Which request of the backend, from 0.
    pub index: Option<usize>,
    /// The status, one of these.
    #[serde(default, deserialize_with = "one_or_many")]
    pub status: Option<Vec<u16>>,
    /// The method.
    pub method: Option<String>,
    /// The target; `~`: a regular expression for all of it.
    pub path: Option<String>,
    /// As in the start line.
    pub http_version: Option<String>,
    /// Values; `~`: a regular expression found in it.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Names of header fields that must not be there.
    #[serde(default)]
    pub absent_headers: Vec<String>,
    /// The media type, one of these.
    #[serde(default, deserialize_with = "one_or_many")]
    pub content_type: Option<Vec<String>>,
    /// No body, or only white space.
    #[serde(default)]
    pub empty: bool,
    /// The whole text, without white space around it.
    pub text: Option<String>,
    /// Parts of the text.
    #[serde(default)]
    pub contains: Vec<String>,
    /// Not parts of the text.
    #[serde(default)]
    pub not_contains: Vec<String>,
    /// The very bytes as transferred.
    pub same_bytes: Option<Content>,
    /// The very bytes without content encoding.
    pub bytes_file: Option<String>,
    /// The same infoset.
    pub xml: Option<String>,
    /// The same infoset as that of a file.
    pub xml_file: Option<String>,
    /// The children of the SOAP body, or the document element alone.
    #[serde(default, deserialize_with = "one_or_many")]
    pub body_xml: Option<Vec<String>>,
    /// Values of expressions.
    #[serde(default)]
    pub xpath: Vec<XPathValue>,
    /// Prefixes for them.
    #[serde(default)]
    pub namespaces: BTreeMap<String, String>,
    /// The same JSON value. `Some(Null)` is the value null.
    #[serde(default, deserialize_with = "present")]
    pub json: Option<Value>,
    /// The same JSON value as that of a file.
    pub json_file: Option<String>,
    /// The same JSON value, arrays in any order.
    #[serde(default, deserialize_with = "present")]
    pub json_unordered: Option<Value>,
    /// Single places of a JSON value.
    #[serde(default)]
    pub json_paths: Vec<JsonPlace>,
    /// The payload is the stub's answer for this symbol.
    pub quote: Option<String>,
    /// The payload is the stub's answers for these symbols, in any order.
    pub quotes: Option<Vec<String>>,
    /// Milliseconds to the answer, at least.
    pub min_ms: Option<u64>,
    /// Milliseconds to the answer, at most.
    pub max_ms: Option<u64>,
}

/// What the value of an XPath expression is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XPathValue {
    /// XPath 1.0, from the document node.
    pub expr: String,
    /// The string, without white space around it.
    #[serde(default, deserialize_with = "present")]
    pub equals: Option<Value>,
    /// A regular expression found in it.
    pub matches: Option<String>,
    /// One of these strings.
    pub one_of: Option<Vec<Value>>,
    /// It selects nothing.
    #[serde(default)]
    pub absent: bool,
}

/// What is at a place of a JSON value.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonPlace {
    /// `$`, `$.a.b`, `$.a[0]`, `$['a b']`.
    pub path: String,
    /// The same value.
    #[serde(default, deserialize_with = "present")]
    pub equals: Option<Value>,
    /// A regular expression found in it.
    pub matches: Option<String>,
    /// The number of members.
    pub length: Option<usize>,
    /// There is no such place.
    #[serde(default)]
    pub absent: bool,
}

/// A value or a list of values.
fn one_or_many<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<Vec<T>>, D::Error> {
    let list = match Value::deserialize(from)? {
        list @ Value::Array(_) => list,
        one => Value::Array(vec![one]),
    };
    serde_json::from_value(list).map(Some).map_err(D::Error::custom)
}

/// `null` counts as a value.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_errors() {
        let spec = |step: &str| format!(r#"{{"id":"a/b","group":"a","config":"c.xml","steps":[{step}]}}"#);
        #[rustfmt::skip]
        let cases = [
            (r#"{"request":{"path":"/"},"expect":{"status":[200,202],"json":null}}"#, ""),
            (r#"{"expect":{"statsu":200}}"#, "unknown field `statsu`"),
            (r#"{"requets":{}}"#, "unknown field `requets`"),
            (r#"{"expect":{"status":"200"}}"#, "invalid type"),
        ];
        for (step, error) in cases {
            match serde_json::from_str::<Spec>(&spec(step)) {
                Ok(_) => assert_eq!(error, "", "{step}"),
                Err(e) => assert!(!error.is_empty() && e.to_string().contains(error), "{step}: {e}"),
            }
        }
    }

    #[test]
    fn a_sequence_overrides_its_route() {
        let route: Route = serde_json::from_str(
            r#"{"path":"/a","status":500,"sequence":[{"close":true},{"status":200,"body":"x"}]}"#,
        )
        .unwrap();
        let seen: Vec<_> =
            route.answers.iter().map(|a| (a.status, a.close, a.content.body.as_deref())).collect();
        assert_eq!(seen, [(Some(500), true, None), (Some(200), false, Some("x"))]);
        assert!(serde_json::from_str::<Route>(r#"{"sequence":[{"boddy":""}]}"#).is_err());
    }
}
