//! Runs suites of the unit-test framework of Synapse: a bus with the artifacts of a suite, mock services in the place of its backends, and
//! a message for each test.
//!
//! A sequence gets its message without HTTP, and assertions look at the message that it leaves. Proxy services and APIs get requests, and
//! assertions look at the response.

pub mod compare;
mod mocks;
pub mod read;

use crate::bus::{Addresses, Running, Start, services};
use crate::load::load;
use crate::secured::Keys;
use crate::settings::Settings;
use crate::temporary::Temporary;
use compare::{bare, is_same};
use config::{ArtifactKind, Scope};
use diagnostics::{Severity, Span};
use flow::services::Mocks;
use flow::unit::{Message, mediate};
use flow::{Context, Expression};
use message::{SoapVersion, Version};
use mocks::Listening;
use read::{Assertion, Case, Suite};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use transport::{
    Body, Client, ClientLimits, ClientTls, ClientTlsOptions, Headers, HostNames, Method, OutRequest, Roots,
    SendOptions, Target, Workers,
};

/// The folder of the artifacts, within the one of the suite.
const PROJECT: &str = "project";

/// How long one test may take.
const LONGEST: Duration = Duration::from_secs(60);

/// What came of a suite.
pub struct Outcome {
    /// Why the artifacts cannot run; then no test ran.
    pub broken: Option<String>,
    pub cases: Vec<CaseOutcome>,
}

/// What came of a test.
pub struct CaseOutcome {
    pub name: String,
    /// Why there is nothing to look at.
    pub failed: Option<String>,
    pub failures: Vec<Failure>,
}

/// An assertion that does not hold.
pub struct Failure {
    /// `assertEquals` or `assertNotNull`.
    pub assertion: &'static str,
    pub expression: String,
    /// `None`: there is nothing.
    pub actual: Option<String>,
    pub expected: Option<String>,
    /// What the suite says of it.
    pub message: String,
}

impl CaseOutcome {
    /// Whether all assertions hold.
    pub fn passed(&self) -> bool {
        self.failed.is_none() && self.failures.is_empty()
    }
}

/// Runs a suite.
pub fn run(suite: &Suite, settings: &Settings) -> Outcome {
    match Tested::start(suite, settings) {
        Ok(tested) => {
            Outcome { broken: None, cases: suite.cases.iter().map(|case| tested.case(case)).collect() }
        }
        Err(why) => Outcome { broken: Some(why), cases: Vec::new() },
    }
}

/// The media type of a text, by its first character.
fn content_type(text: &str) -> &'static str {
    match text.trim_start().as_bytes().first() {
        Some(b'{' | b'[') => "application/json",
        Some(b'<') if text.contains(SoapVersion::V11.namespace()) => "text/xml",
        Some(b'<') if text.contains(SoapVersion::V12.namespace()) => "application/soap+xml",
        Some(b'<') => "application/xml",
        _ => "text/plain",
    }
}

struct Tested<'a> {
    suite: &'a Suite,
    running: Running,
    runtime: tokio::runtime::Runtime,
    /// That of the bus.
    certificate: Option<PathBuf>,
    _workers: Workers,
    _place: Temporary,
}

impl Tested<'_> {
    fn start<'a>(suite: &'a Suite, settings: &Settings) -> Result<Tested<'a>, String> {
        let tested = &suite.artifact;
        if !matches!(tested.element.as_str(), "sequence" | "proxy" | "api") {
            let file = tested.file.display();
            return Err(format!(
                "{file}: an `{}` cannot be tested alone: a sequence, proxy service or API can",
                tested.element
            ));
        }
        let place = Temporary::new("test")?;
        let project = place.path().join(PROJECT);
        let written = lay_out(suite, &place)?;
        let mut settings = settings.clone();
        // A server of WSO2 always has https.
        if settings.tls.certificate.is_none() && suite.cases.iter().any(|case| case.https) {
            let keys = Keys::make(&place.path().join("keys"))?;
            settings.tls.certificate = Some(keys.tls_certificate.clone());
            settings.tls.key = Some(keys.tls_key.clone());
        }
        let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let addresses =
            Addresses { http: Some(any), https: settings.tls.certificate.as_ref().map(|_| any), admin: None };
        let start = Start {
            path: project.clone(),
            addresses,
            workers: Some(1),
            settings: settings.clone(),
            source: None,
            strict: false,
            trace: Vec::new(),
        };
        let of_files = |text: String| {
            written.iter().fold(text, |text, (copy, file)| {
                text.replace(&copy.display().to_string(), &file.display().to_string())
            })
        };
        // Loaded once more before it runs, for what is wrong with it.
        let loaded = load(&project, &services(&settings)?, None, None);
        let errors = loaded.found.iter().filter(|found| found.severity == Severity::Error);
        let rendered = |found| diagnostics::render::human(found, &loaded.plan.sources, Default::default());
        let errors: Vec<String> = errors.map(rendered).collect();
        if !errors.is_empty() {
            return Err(of_files(errors.join("\n")));
        }
        let running = Running::start(&start).map_err(&of_files)?;
        let workers = Workers::start(1).map_err(|why| format!("no thread can be started: {why}"))?;
        let listening: Arc<dyn Mocks> = Arc::new(Listening::start(&suite.mocks, &workers)?);
        // Nobody else sets them.
        let _ = running.bus.services().mocks.set(listening);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|why| format!("there is no runtime: {why}"))?;
        let certificate = settings.tls.certificate.clone();
        Ok(Tested { suite, running, runtime, certificate, _workers: workers, _place: place })
    }

    fn case(&self, case: &Case) -> CaseOutcome {
        let ended = self.runtime.block_on(async {
            let done = tokio::time::timeout(LONGEST, self.message(case)).await;
            done.unwrap_or_else(|_| Err(format!("it takes longer than {} s", LONGEST.as_secs())))
        });
        let (failed, failures) = match ended {
            Ok(mut seen) => {
                (None, case.assertions.iter().filter_map(|assertion| seen.check(assertion)).collect())
            }
            Err(why) => (Some(why), Vec::new()),
        };
        CaseOutcome { name: case.name.clone(), failed, failures }
    }

    /// Sends the message of a test; what its assertions look at.
    async fn message(&self, case: &Case) -> Result<Seen, String> {
        let artifact = &self.suite.artifact;
        let mut headers = Headers::new();
        for (name, value, _) in case.properties.iter().filter(|(_, _, scope)| scope == "transport") {
            headers.set(name, value);
        }
        if !case.payload.is_empty() && !headers.contains("Content-Type") {
            headers.set("Content-Type", content_type(&case.payload));
        }
        let method = case
            .method
            .clone()
            .unwrap_or_else(|| if case.payload.is_empty() { "GET" } else { "POST" }.to_owned());
        let body =
            if case.payload.is_empty() { Body::Empty } else { Body::Bytes(case.payload.clone().into()) };
        let path = match artifact.element.as_str() {
            "sequence" => {
                let message = Message { method: Method::new(&method), target: "/".to_owned(), headers, body };
                let prepare = |context: &mut Context| {
                    for (name, value, scope) in &case.properties {
                        match scope.as_str() {
                            "transport" => {}
                            "axis2" => context.set_axis2(name.as_str(), value.as_str().into()),
                            _ => context.properties.set(name.as_str(), value.as_str().into()),
                        }
                    }
                };
                let ended = mediate(&self.running.bus, &artifact.name, message, prepare).await;
                let context = ended.ok_or_else(|| format!("there is no sequence `{}`", artifact.name))?;
                return Ok(Seen { head: None, context });
            }
            "api" => {
                let plan = self.running.bus.plan();
                let api = plan.apis().iter().find(|api| api.name == artifact.name);
                let api = api.ok_or_else(|| format!("there is no API `{}`", artifact.name))?;
                format!("{}/{}", api.path(), case.path.trim_start_matches('/'))
            }
            _ => format!("/services/{}{}", artifact.name, case.path),
        };
        // A context alone has no slash at its end.
        let path = if case.path.is_empty() { path.trim_end_matches('/').to_owned() } else { path };
        let target = match (case.https, self.running.https) {
            (false, _) => Target::http("127.0.0.1", self.running.http.port()),
            (true, Some(https)) => Target::https("localhost", https.port(), self.tls()?),
            (true, None) => {
                return Err("the test asks for https: set `tls.certificate` and `tls.key`".to_owned());
            }
        };
        let (method, mut body) = (Method::new(&method), body);
        let request =
            OutRequest { method: &method, target: &path, headers: &headers, host: None, body: &mut body };
        let client = Client::new(ClientLimits::default());
        let response = client.send(&target, request, &SendOptions::default()).await;
        let response = response.map_err(|why| format!("{} {path}: {why}", method.as_str()))?;
        let seen = Some((response.head.status, response.head.version));
        let body =
            response.body.collect(u64::MAX).await.map_err(|why| format!("the response breaks off: {why}"))?;
        let message =
            Message { method, target: path, headers: response.head.headers, body: Body::Bytes(body) };
        let context = flow::unit::context(&self.running.bus, message);
        Ok(Seen { head: seen, context })
    }

    /// Trusts the bus that is tested, whatever its certificate says.
    fn tls(&self) -> Result<ClientTls, String> {
        let roots = self.certificate.clone().map_or(Roots::default(), Roots::File);
        let options = ClientTlsOptions { roots, host_names: HostNames::Any, ..Default::default() };
        ClientTls::new(&options).map_err(|why| why.to_string())
    }
}

/// What the assertions of a test look at: the message that a sequence leaves, or a response.
struct Seen {
    /// Status and version of a response.
    head: Option<(u16, Version)>,
    context: Context,
}

impl Seen {
    fn check(&mut self, assertion: &Assertion) -> Option<Failure> {
        let actual = self.value(&assertion.actual);
        let holds = match &assertion.expected {
            None => actual.as_deref().is_some_and(|actual| !bare(actual).is_empty()),
            Some(expected) => is_same(actual.as_deref().unwrap_or_default(), expected),
        };
        (!holds).then(|| Failure {
            assertion: if assertion.expected.is_some() { "assertEquals" } else { "assertNotNull" },
            expression: assertion.actual.clone(),
            actual,
            expected: assertion.expected.clone(),
            message: assertion.message.clone(),
        })
    }

    /// What an expression of an assertion gives; `None`: nothing.
    fn value(&mut self, written: &str) -> Option<String> {
        let word = written.trim();
        match word {
            "$body" => return Some(flow::unit::body(&mut self.context)),
            "$statusCode" => {
                let status = self.head.map(|(status, _)| status).or(self.context.status);
                return status.map(|status| status.to_string());
            }
            "$httpVersion" => {
                let version = self.head?.1.as_str();
                return Some(version.trim_start_matches("HTTP/").to_owned());
            }
            _ => {}
        }
        // A header may have any name, which an expression may not.
        if let Some(header) = word.strip_prefix("$trp:") {
            return self.context.headers.get(header).map(str::to_owned);
        }
        let settings = self.context.services().settings.clone();
        let expression = Expression::compile(word, &Scope::new(), Span::BUILT_IN, &settings);
        let value = match expression {
            Ok(expression) => expression.string(&mut self.context).map_err(|fault| fault.to_string()),
            Err(why) => Err(why.message),
        };
        value.unwrap_or_else(|why| Some(format!("the expression cannot be evaluated: {why}")))
    }
}

/// Writes the artifacts of a suite as a project; each copy, and what it is of.
fn lay_out(suite: &Suite, place: &Temporary) -> Result<Vec<(PathBuf, PathBuf)>, String> {
    let mut written = Vec::new();
    let put = |folder: &str, name: &str, content: &[u8]| {
        place.write(Path::new(PROJECT).join(folder).join(name), content)
    };
    for (number, artifact) in suite.supportive.iter().chain([&suite.artifact]).enumerate() {
        let kind = ArtifactKind::of_element(&artifact.element).filter(|kind| may_be_listed(*kind));
        let kind = kind.ok_or_else(|| {
            let (file, element) = (artifact.file.display(), &artifact.element);
            format!("{file}: `{element}` is no artifact that a suite can have")
        })?;
        let text = without_postfix(&artifact.text);
        let copy = put(kind.directory(), &format!("{number}.{}", kind.extension()), text.as_bytes())?;
        written.push((copy, artifact.file.clone()));
    }
    for resource in &suite.resources {
        let below = resource.path.trim_start_matches('/');
        let below = below.strip_prefix("_system/").unwrap_or(below);
        let is_below =
            Path::new(below).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_below || below.is_empty() || below.ends_with('/') {
            return Err(format!("{}: `{}` is no path of a registry", suite.file.display(), resource.path));
        }
        put("registry", below, &resource.content)?;
    }
    for (number, connector) in suite.connectors.iter().enumerate() {
        let content = std::fs::read(connector).map_err(|why| format!("{}: {why}", connector.display()))?;
        let name = connector.file_name().and_then(|name| name.to_str());
        put("synapse-libs", &name.map_or_else(|| format!("{number}.zip"), str::to_owned), &content)?;
    }
    Ok(written)
}

/// Whether artifacts of a kind are tested, or needed by those that are.
fn may_be_listed(kind: ArtifactKind) -> bool {
    use ArtifactKind::*;
    matches!(
        kind,
        Api | Proxy
            | Sequence
            | Endpoint
            | LocalEntry
            | Template
            | MessageStore
            | MessageProcessor
            | InboundEndpoint
            | Task
            | DataService
    )
}

/// The framework takes the rest of a request's path away before each `call`, so that the address of a backend is what the suite says.
fn without_postfix(text: &str) -> String {
    let mut sources = diagnostics::SourceMap::default();
    let file = sources.add("artifact", text);
    let Ok(root) = config::parse(file, text) else { return text.to_owned() };
    let mut calls = Vec::new();
    let mut waiting = vec![root];
    while let Some(element) = waiting.pop() {
        if element.is("call") {
            calls.push(element.clone());
        }
        waiting.extend(element.elements().cloned());
    }
    calls.sort_by_key(|call| std::cmp::Reverse(call.span().start));
    let mut out = text.to_owned();
    for call in calls {
        let at = call.span().start as usize;
        let written = text.get(at..).unwrap_or_default().trim_start_matches('<');
        let prefix =
            written.split(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).next().unwrap_or_default();
        let prefix =
            if written[prefix.len()..].starts_with(':') { format!("{prefix}:") } else { String::new() };
        out.insert_str(
            at,
            &format!("<{prefix}property name=\"REST_URL_POSTFIX\" scope=\"axis2\" action=\"remove\"/>"),
        );
    }
    out
}
