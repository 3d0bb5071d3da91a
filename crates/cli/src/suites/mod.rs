//! Runs suites of the unit-test framework of Synapse: a bus with the artifacts of a suite, mock services in the place of its backends, and
//! a message for each test.
//!
//! A sequence gets its message without HTTP, and assertions look at the message that it leaves. Proxy services and APIs get requests, and
//! assertions look at the response.

pub mod compare;
mod coverage;
mod mocks;
pub mod read;
pub mod report;

use crate::bus::{Addresses, Prepared, Running, Start};
use crate::load::load;
use crate::reload::fetch;
use crate::secured::Keys;
use crate::settings::Settings;
use crate::temporary::Temporary;
use admin::logging::Kept;
use compare::{bare, is_same};
use config::{ArtifactKind, Scope};
use coverage::Coverage;
use diagnostics::{Severity, Span};
use flow::services::Mocks;
use flow::unit::{Left, Message, mediate};
use flow::{Context, Expression};
use message::{SoapVersion, Version};
use mocks::Listening;
use read::{Assertion, Case, Suite};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use transport::{
    Body, Client, ClientLimits, ClientTls, ClientTlsOptions, Headers, HostNames, Method, OutRequest, Roots,
    SendOptions, Target, Workers,
};

/// The folder of the artifacts, within the one of the suite.
const PROJECT: &str = "project";

/// How long one test may take.
const LONGEST: Duration = Duration::from_secs(60);

/// What came of a suite.
#[derive(Default)]
pub struct Outcome {
    /// Why the artifacts cannot run; then no test ran.
    pub broken: Option<String>,
    pub cases: Vec<CaseOutcome>,
    /// Which steps of the artifacts ran.
    pub coverage: Vec<Coverage>,
}

impl Outcome {
    /// Of a suite that cannot run.
    pub fn broken(why: String) -> Outcome {
        Outcome { broken: Some(why), ..Outcome::default() }
    }
}

/// What came of a test.
pub struct CaseOutcome {
    pub name: String,
    /// Why there is nothing to look at.
    pub failed: Option<String>,
    pub failures: Vec<Failure>,
    /// Warnings and errors of the log meanwhile.
    pub log: Vec<String>,
    pub took: Duration,
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

/// Runs suites, one after the other.
pub struct Runner {
    settings: Settings,
    /// `None`: the log is written, since somebody wants to see it.
    log: Option<Kept>,
    runtime: tokio::runtime::Runtime,
    /// Those that end this process. What has begun is cleared away before.
    signals: [Signal; 2],
    is_interrupted: bool,
}

impl Runner {
    /// # Errors
    /// There are no threads or signals: a sentence.
    pub fn new(settings: Settings, log: Option<Kept>) -> Result<Runner, String> {
        let failed = |why: std::io::Error| format!("cannot start: {why}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let guard = runtime.enter();
        let signals = [
            signal(SignalKind::interrupt()).map_err(failed)?,
            signal(SignalKind::terminate()).map_err(failed)?,
        ];
        drop(guard);
        Ok(Runner { settings, log, runtime, signals, is_interrupted: false })
    }

    /// Whether somebody wants to end it. No further test runs then.
    pub fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Runs a suite.
    pub fn run(&mut self, suite: &Suite) -> Outcome {
        let tested = match Tested::start(suite, &self.settings) {
            Ok(tested) => tested,
            Err(why) => return Outcome::broken(why),
        };
        let mut cases = Vec::with_capacity(suite.cases.len());
        for case in &suite.cases {
            if self.is_interrupted {
                break;
            }
            cases.push(self.case(&tested, case));
        }
        Outcome { broken: None, cases, coverage: coverage::of(&tested.running.bus, &tested.written) }
    }

    fn case(&mut self, tested: &Tested<'_>, case: &Case) -> CaseOutcome {
        let began = Instant::now();
        // What was said before is about the suite.
        if let Some(log) = &self.log {
            log.take();
        }
        let [interrupt, terminate] = &mut self.signals;
        let ended = self.runtime.block_on(async {
            tokio::select! {
                done = tokio::time::timeout(LONGEST, tested.message(case)) => Some(done),
                _ = interrupt.recv() => None,
                _ = terminate.recv() => None,
            }
        });
        self.is_interrupted = ended.is_none();
        let ended = match ended {
            Some(Ok(done)) => done,
            Some(Err(_)) => Err(format!("it takes longer than {} s", LONGEST.as_secs())),
            None => Err("interrupted".to_owned()),
        };
        let (failed, failures) = match ended {
            Ok(mut seen) => (
                seen.fault(case),
                case.assertions.iter().filter_map(|assertion| seen.check(assertion)).collect(),
            ),
            Err(why) => (Some(why), Vec::new()),
        };
        let log = self.log.as_ref().map(Kept::take).unwrap_or_default();
        let log = log.into_iter().map(|line| of_files(line, &tested.written)).collect();
        CaseOutcome { name: case.name.clone(), failed, failures, log, took: began.elapsed() }
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
    /// Each copy of an artifact, and what it is of.
    written: Vec<(PathBuf, PathBuf)>,
    /// That of the bus.
    certificate: Option<PathBuf>,
    _workers: Workers,
    _place: Temporary,
}

impl Tested<'_> {
    fn start<'a>(suite: &'a Suite, settings: &Settings) -> Result<Tested<'a>, String> {
        let tested = &suite.artifact;
        if !matches!(tested.element.as_str(), "sequence" | "proxy" | "api" | "data") {
            let file = tested.file.display();
            return Err(format!(
                "{file}: an `{}` cannot be tested alone: a sequence, proxy service, API or data service can",
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
        let certificate = settings.tls.certificate.clone();
        let start = Start {
            path: project,
            addresses,
            workers: Some(1),
            settings,
            source: None,
            strict: false,
            trace: Vec::new(),
        };
        let prepared = Prepared::of(&start, |services| {
            let loaded = load(&start.path, services, fetch(&start, services), None);
            let errors = loaded.found.iter().filter(|found| found.severity == Severity::Error);
            let rendered =
                |found| diagnostics::render::human(found, &loaded.plan.sources, Default::default());
            let errors: Vec<String> = errors.map(rendered).collect();
            if errors.is_empty() { Ok(loaded) } else { Err(of_files(errors.join("\n"), &written)) }
        })?;
        let running = Running::serve(&start, prepared)?;
        let workers = Workers::start(1).map_err(|why| format!("no thread can be started: {why}"))?;
        let listening: Arc<dyn Mocks> = Arc::new(Listening::start(&suite.mocks, &workers)?);
        // Nobody else sets them.
        let _ = running.bus.services().mocks.set(listening);
        coverage::begin(&running.bus);
        Ok(Tested { suite, running, written, certificate, _workers: workers, _place: place })
    }

    /// Sends the message of a test; what its assertions look at.
    async fn message(&self, case: &Case) -> Result<Seen, String> {
        let artifact = &self.suite.artifact;
        let mut headers = Headers::new();
        for (name, value, _) in case.properties.iter().filter(|(_, _, scope)| scope == "transport") {
            headers.set(name, value);
        }
        let is_sequence = artifact.element == "sequence";
        let has_type = headers.contains("Content-Type");
        if !case.payload.is_empty() && !has_type {
            headers.set("Content-Type", content_type(&case.payload));
        }
        // An envelope is a SOAP message. Those who say what they send may do so as a REST client.
        let is_soap = content_type(&case.payload) == "text/xml" && (is_sequence || !has_type);
        if is_soap && !headers.contains("SOAPAction") {
            headers.set("SOAPAction", "\"\"");
        }
        let method = case
            .method
            .clone()
            .unwrap_or_else(|| if case.payload.is_empty() { "GET" } else { "POST" }.to_owned());
        let body =
            if case.payload.is_empty() { Body::Empty } else { Body::Bytes(case.payload.clone().into()) };
        let path = match artifact.element.as_str() {
            "sequence" => {
                // Its message comes over no connection: with a method that has no body it would have none.
                let method = if case.payload.is_empty() { Method::new(&method) } else { Method::Post };
                let message = Message { method, target: "/".to_owned(), headers, body };
                let prepare = |context: &mut Context| {
                    // There is no request whose path an endpoint could take over.
                    context.remove_axis2("REST_URL_POSTFIX");
                    for (name, value, scope) in &case.properties {
                        match scope.as_str() {
                            "transport" => {}
                            "axis2" => context.set_axis2(name.as_str(), value.as_str().into()),
                            _ => context.properties.set(name.as_str(), value.as_str().into()),
                        }
                    }
                };
                let ended = mediate(&self.running.bus, &artifact.name, message, prepare).await;
                let left = ended.ok_or_else(|| format!("there is no sequence `{}`", artifact.name))?;
                return Ok(Seen { response: None, left });
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
        let (status, version) = (response.head.status, response.head.version);
        let body =
            response.body.collect(u64::MAX).await.map_err(|why| format!("the response breaks off: {why}"))?;
        let text = String::from_utf8_lossy(&body).into_owned();
        let message =
            Message { method, target: path, headers: response.head.headers, body: Body::Bytes(body) };
        let context = flow::unit::context(&self.running.bus, message);
        let response = Some(Answer { status, version, text });
        Ok(Seen { response, left: Left { context, fault: None } })
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
    response: Option<Answer>,
    left: Left,
}

struct Answer {
    status: u16,
    version: Version,
    text: String,
}

impl Seen {
    /// What went wrong in a sequence and was handled nowhere. A test that looks at it has it as its assertions say.
    fn fault(&self, case: &Case) -> Option<String> {
        let is_wanted = case.assertions.iter().any(|assertion| assertion.actual.contains("ERROR_"));
        let fault = self.left.fault.as_ref().filter(|_| !is_wanted)?;
        Some(format!("the sequence ends with a fault: {fault}"))
    }

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
            "$body" => {
                return Some(match &self.response {
                    Some(response) => response.text.clone(),
                    None => flow::unit::body(&mut self.left.context),
                });
            }
            "$statusCode" => {
                let status = self.response.as_ref().map(|response| response.status);
                return status.or(self.left.context.status).map(|status| status.to_string());
            }
            "$httpVersion" => return Some(self.response.as_ref()?.version.as_str().to_owned()),
            _ => {}
        }
        let context = &mut self.left.context;
        // A header may have any name, which an expression may not.
        if let Some(header) = word.strip_prefix("$trp:") {
            return context.headers.get(header).map(str::to_owned);
        }
        let settings = context.services().settings.clone();
        let expression = Expression::compile(word, &Scope::new(), Span::BUILT_IN, &settings);
        let value = match expression {
            Ok(expression) => expression.string(context).map_err(|fault| fault.to_string()),
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
        let name = format!("{number}.{}", kind.extension());
        let copy = put(kind.directory(), &name, &artifact.content)?;
        written.push((copy, artifact.file.clone()));
    }
    for resource in &suite.resources {
        let below = config::registry_path(&resource.path);
        let is_below =
            Path::new(&below).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_below || resource.path.is_empty() || below.ends_with('/') {
            return Err(format!("{}: `{}` is no path of a registry", suite.file.display(), resource.path));
        }
        put("registry", &below, &resource.content)?;
    }
    if let Some(environment) = &suite.environment {
        put("", ".env", environment)?;
        // It counts in a project.
        put("", "pom.xml", b"<project/>")?;
    }
    for connector in &suite.connectors {
        put("synapse-libs", &connector.name, &connector.content)?;
    }
    Ok(written)
}

/// A text about the copies of artifacts, about the artifacts.
fn of_files(text: String, written: &[(PathBuf, PathBuf)]) -> String {
    written.iter().fold(text, |text, (copy, file)| {
        text.replace(&copy.display().to_string(), &file.display().to_string())
    })
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
            | DataSource
    )
}
