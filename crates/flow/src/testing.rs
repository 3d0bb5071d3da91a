//! For unit tests of mediators: a configuration text and a message in, the context as the flow left it out.
//!
//! ```ignore
//! let flow = testing::main(&registry(testing::endpoints), r#"<property name="a" value="1"/>"#);
//! let end = flow.run(&[("Content-Type", "text/xml")], "<order/>");
//! assert_eq!(end.property("a").as_deref(), Some("1"));
//! ```

use crate::compile::definition::{Definition, Registry};
use crate::compile::{Compiler, compile};
use crate::engine::{Ending, begin_request, drive};
use crate::http::dispatch::Bus;
use crate::runtime::context::Context;
use crate::runtime::endpoint::{
    Attempts, Choice, Endpoint, EndpointFormat, Leaf, Outgoing, Step, TimeoutAction,
};
use crate::runtime::fault::{Fault, code};
use crate::runtime::mediator::Need;
use crate::runtime::services::Services;
use crate::state::metrics::Counters;
use crate::unit::{self, Message};
use message::{Format, Headers, Method, Payload, Reading, RequestHead, Version};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Once};
use transport::{Body, ConnectionInfo, Handler, Request, Target};

/// A compiled configuration, ready to be asked.
pub struct Tested {
    /// The bus that runs it.
    pub bus: Bus,
    /// Errors and warnings, as `rule: message`.
    pub found: Vec<String>,
    /// What their labels and help lines say.
    pub reasons: Vec<String>,
}

/// What configurations of tests are compiled with: these mediators, and [`endpoints`].
pub fn registry(definitions: Vec<&'static Definition>) -> Registry {
    Registry {
        definitions,
        unsupported: Vec::new(),
        endpoints,
        validation: None,
        events: None,
        stores: None,
        data: None,
    }
}

/// Compiles a whole configuration, `<definitions>` and all.
pub fn configuration(registry: &Registry, text: &str) -> Tested {
    configuration_with(registry, text, |_| {})
}

/// As [`configuration`], with settings.
pub fn configuration_with(registry: &Registry, text: &str, prepare: impl FnOnce(&mut Services)) -> Tested {
    configuration_in(registry, text, Path::new("."), &config::LoadOptions::default(), prepare)
}

/// Compiles what lies in a directory.
pub fn directory(registry: &Registry, root: &Path) -> Tested {
    loaded(registry, config::load(root, &config::LoadOptions::default()), |_| {})
}

/// As [`configuration_with`], with the registry and other files in `root`, and values from outside.
pub fn configuration_in(
    registry: &Registry,
    text: &str,
    root: &Path,
    options: &config::LoadOptions,
    prepare: impl FnOnce(&mut Services),
) -> Tested {
    loaded(registry, config::load_text("test.xml", text, root, options), prepare)
}

fn loaded(registry: &Registry, mut loaded: config::Loaded, prepare: impl FnOnce(&mut Services)) -> Tested {
    let mut services = Services::new(transport::Client::new(transport::ClientLimits::default()));
    prepare(&mut services);
    let services = Arc::new(services);
    let plan = compile(
        &loaded.configuration,
        loaded.sources,
        loaded.faulty,
        registry,
        &services,
        &mut loaded.diagnostics,
    );
    let found =
        loaded.diagnostics.iter().map(|finding| format!("{}: {}", finding.rule, finding.message)).collect();
    let labels = loaded.diagnostics.iter().flat_map(|finding| finding.labels.iter());
    let helps = loaded.diagnostics.iter().flat_map(|finding| finding.help.iter().cloned());
    let reasons = labels.map(|(_, text)| text.clone()).chain(helps).collect();
    Tested { bus: Bus::new(plan, services, None), found, reasons }
}

/// Compiles mediators as the main sequence. `<!--top-->` ends them: what follows stands beside the sequence.
pub fn main(registry: &Registry, mediators: &str) -> Tested {
    main_with(registry, mediators, |_| {})
}

/// As [`main`], with `dialect = "synapse"`.
pub fn synapse(registry: &Registry, mediators: &str) -> Tested {
    main_with(registry, mediators, |services| services.settings.synapse_dialect = true)
}

/// As [`main`], with settings.
pub fn main_with(registry: &Registry, mediators: &str, prepare: impl FnOnce(&mut Services)) -> Tested {
    let (mediators, beside) = mediators.split_once("<!--top-->").unwrap_or((mediators, ""));
    let synapse = config::SYNAPSE;
    let text = format!(
        r#"<definitions xmlns="{synapse}"><sequence name="main">{mediators}</sequence>{beside}</definitions>"#
    );
    configuration_with(registry, &text, prepare)
}

/// See [`Tested::reload`].
pub fn reload(bus: &Bus, registry: &Registry, text: &str) {
    let mut loaded = config::load_text("test.xml", text, Path::new("."), &config::LoadOptions::default());
    let services = bus.services();
    let plan = compile(
        &loaded.configuration,
        loaded.sources,
        loaded.faulty,
        registry,
        &services,
        &mut loaded.diagnostics,
    );
    bus.swap(plan, services);
}

/// A context as its flow left it.
pub struct Ended {
    /// The message.
    pub context: Context,
    /// `respond`, `nothing` or `detach`.
    pub how: &'static str,
}

/// An answer of the bus.
#[derive(Debug)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Header fields.
    pub headers: Headers,
    /// The body as text.
    pub body: String,
}

/// Runs something, and takes down `LEVEL message`, and ` code=N` where it has one, of what this thread logs meanwhile to targets that begin so.
pub fn logged<T>(target: &'static str, run: impl FnOnce() -> T) -> (Vec<String>, T) {
    // One subscriber for the process: where each test has its own, one that comes or goes can hide an event from another.
    static LINES: Once = Once::new();
    LINES.call_once(|| {
        tracing::subscriber::set_global_default(Lines).expect("no other subscriber in tests");
    });
    let before = TAKEN.replace(Some((target, Vec::new())));
    let result = run();
    let taken = TAKEN.replace(before);
    (taken.map(|(_, lines)| lines).unwrap_or_default(), result)
}

thread_local! {
    /// What this thread takes down, and of which targets.
    static TAKEN: RefCell<Option<(&'static str, Vec<String>)>> = const { RefCell::new(None) };
}

struct Lines;

impl tracing::Subscriber for Lines {
    fn register_callsite(&self, _: &'static tracing::Metadata<'static>) -> tracing::subscriber::Interest {
        tracing::subscriber::Interest::sometimes()
    }

    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        let wanted = TAKEN.with_borrow(|taken| {
            taken.as_ref().is_some_and(|(target, _)| metadata.target().starts_with(target))
        });
        wanted && *metadata.level() <= tracing::Level::DEBUG
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Line(String);
        impl tracing::field::Visit for Line {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                match field.name() {
                    "message" => self.0.push_str(&format!("{value:?}")),
                    "code" => self.0.push_str(&format!(" code={value:?}")),
                    _ => {}
                }
            }

            fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
                if field.name() == "message" {
                    self.0.push_str(value);
                }
            }
        }
        let mut line = Line(format!("{} ", event.metadata().level()));
        event.record(&mut line);
        TAKEN.with_borrow_mut(|taken| {
            taken.iter_mut().for_each(|(_, lines)| lines.push(std::mem::take(&mut line.0)))
        });
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

impl Tested {
    /// Puts another configuration in force, `<definitions>` and all, as a reload does.
    pub fn reload(&self, registry: &Registry, text: &str) {
        reload(&self.bus, registry, text);
    }

    /// Runs a POST to `/` through the main sequence.
    pub fn run(&self, headers: &[(&str, &str)], body: &str) -> Ended {
        self.run_with(headers, body, |_| {})
    }

    /// As [`Tested::run`], with a context that was prepared.
    pub fn run_with(
        &self,
        headers: &[(&str, &str)],
        body: &str,
        prepare: impl FnOnce(&mut Context),
    ) -> Ended {
        let mut context = self.context(headers, body);
        prepare(&mut context);
        let main = context.plan.main;
        begin_request(&mut context, Some(main));
        let ending = block_on(async {
            let ending = drive(&mut context, None).await;
            // An answer does not outlive the runtime that receives it; what is wrong with it shows when it is read.
            let limits = context.services.limits.clone();
            let _ = context.payload.buffer(&limits).await;
            ending
        });
        let how = match ending {
            Ending::Respond => "respond",
            Ending::Nothing => "nothing",
            Ending::Detach(_) => "detach",
        };
        Ended { context, how }
    }

    /// The context of a POST to `/`.
    pub fn context(&self, headers: &[(&str, &str)], body: &str) -> Context {
        let (headers, body) = (fields(headers), Body::Bytes(body.to_owned().into()));
        unit::context(&self.bus, Message { method: Method::Post, target: "/".to_owned(), headers, body })
    }

    /// Sends a request to the bus, as a listener would.
    pub fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let (status, headers, bytes) = self.ask_bytes(method, target, headers, body.as_bytes());
        Response { status, headers, body: String::from_utf8_lossy(&bytes).into_owned() }
    }

    /// As [`Tested::ask`], for bodies that are not text.
    pub fn ask_bytes(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (u16, Headers, Vec<u8>) {
        block_on(self.answer(method, target, headers, body))
    }

    /// As [`Tested::ask_bytes`], for a runtime of the caller's own.
    pub async fn answer(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (u16, Headers, Vec<u8>) {
        let (status, headers, body) = self.begin(method, target, headers, body).await;
        let limits = self.bus.services().limits.clone();
        let mut payload = Payload::received(body, Reading::XML);
        payload.buffer(&limits).await.expect("the body of the answer arrives");
        let bytes = payload.bytes().map(|bytes| bytes.to_vec()).unwrap_or_default();
        (status, headers, bytes)
    }

    /// As [`Tested::answer`], with a body that the caller receives.
    pub async fn begin(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (u16, Headers, Body) {
        let head = RequestHead {
            method: Method::new(method),
            target: target.to_owned(),
            absolute: None,
            version: Version::Http11,
            headers: fields(headers),
        };
        let request = Request { head, body: Body::from(body.to_vec()) };
        let peer = ConnectionInfo { id: 1, peer: unit::CLIENT, local: unit::CLIENT, worker: 0, tls: None };
        let response = self.bus.handle(request, &peer).await;
        (response.head.status, response.head.headers, response.body)
    }

    /// What each step of the main sequence needs of the message.
    pub fn needs(&self) -> Vec<Need> {
        let plan = self.bus.plan();
        plan.list(plan.main).steps.iter().map(|step| step.need).collect()
    }

    /// Whether something that contains `text` was reported.
    pub fn reports(&self, text: &str) -> bool {
        self.found.iter().any(|found| found.contains(text))
    }
}

impl Ended {
    /// A property of default scope as text.
    pub fn property(&self, name: &str) -> Option<String> {
        self.context.properties.get(name).map(ToString::to_string)
    }

    /// `ERROR_CODE: ERROR_MESSAGE` of the last fault.
    pub fn fault(&self) -> Option<String> {
        Some(format!("{}: {}", self.property("ERROR_CODE")?, self.property("ERROR_MESSAGE")?))
    }

    /// The payload: JSON or text as it is, else the XML of the first element of the body.
    pub fn payload(&mut self) -> String {
        let format = if self.context.payload.is_json() { Format::Json } else { Format::Xml };
        self.write(format)
    }

    /// The payload without the namespace of the envelope, or the fault.
    pub fn outcome(&mut self) -> Result<String, String> {
        self.fault().map_or_else(|| Ok(without_envelope(&self.payload())), Err)
    }

    /// The payload in a form.
    pub fn write(&mut self, format: Format) -> String {
        let limits = self.context.services.limits.clone();
        block_on(self.context.payload.buffer(&limits)).expect("the payload arrives");
        let bytes = self.context.payload.write(format, &limits).expect("the payload can be written");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// XML without the declaration that is taken along out of an envelope.
pub fn without_envelope(xml: &str) -> String {
    xml.replace(" xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"", "")
}

fn fields(headers: &[(&str, &str)]) -> Headers {
    let mut fields = Headers::new();
    for (name, value) in headers {
        fields.append(name, value);
    }
    fields
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(future)
}

/// A backend on a thread of its own, for as many requests as come. It answers with `response`: a whole HTTP response
/// without Content-Length, or, if that is empty, 200 with the request body under the request's Content-Type and the
/// request line in `X-Request`. Returns its `http://host:port`.
pub fn backend(response: &str) -> String {
    let response = response.to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be bound");
    let address = listener.local_addr().expect("a bound listener has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away is its own problem.
            let _ = serve(stream, &response);
        }
    });
    format!("http://{address}")
}

fn serve(mut stream: TcpStream, response: &str) -> std::io::Result<()> {
    let Some((head, body)) = request(&mut stream)? else { return Ok(()) };
    let (head, body) = match response.split_once("\r\n\r\n") {
        Some((head, body)) => (head.to_owned(), body),
        None => {
            let kind = field(&head, "content-type").unwrap_or("text/plain");
            let line = head.lines().next().unwrap_or("");
            (format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nX-Request: {line}"), body.as_str())
        }
    };
    let length = body.len();
    write!(stream, "{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// A subscriber to events, which takes each with 202. Returns its `http://host:port`, and where the path and the body of each event come.
pub fn subscriber() -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be bound");
    let address = listener.local_addr().expect("a bound listener has an address");
    let (sender, receiver) = channel();
    let take = move |mut stream: TcpStream, sender: &Sender<(String, String)>| -> std::io::Result<()> {
        let Some((head, body)) = request(&mut stream)? else { return Ok(()) };
        stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        // Nobody waits for more events at the end of a test.
        let _ = sender.send((path, body));
        Ok(())
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || take(stream, &sender));
        }
    });
    (format!("http://{address}"), receiver)
}

/// Head and body of the request that comes; `None`: the client goes away before its end.
fn request(stream: &mut TcpStream) -> std::io::Result<Option<(String, String)>> {
    let (mut received, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut chunk)?;
        received.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&received);
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Some(body) = entity(head, body)
        {
            return Ok(Some((head.to_owned(), body)));
        }
        if count == 0 {
            return Ok(None);
        }
    }
}

/// The body of a request, once all of it is there.
fn entity(head: &str, body: &str) -> Option<String> {
    if field(head, "transfer-encoding").is_none() {
        let length = field(head, "content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
        return (length <= body.len()).then(|| body.to_owned());
    }
    let (mut whole, mut rest) = (String::new(), body);
    loop {
        let (size, data) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        whole.push_str(data.get(..size)?);
        rest = data.get(size + 2..)?;
        if size == 0 {
            return Some(whole);
        }
    }
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, v)| v.trim())
}

/// Address endpoints with literal http addresses, and the default endpoint; no states.
pub fn endpoints(endpoint: &config::Endpoint, compiler: &mut Compiler<'_>) -> Option<Arc<dyn Endpoint>> {
    let uri = match &endpoint.kind {
        config::EndpointKind::Address(address) => Some(address.uri.value.clone()),
        config::EndpointKind::Default(_) => None,
        _ => return None,
    };
    let identity = Arc::new(compiler.identity("test"));
    Some(Arc::new(Plain(Arc::new(Address { uri, identity, counters: Counters::default() }))))
}

struct Plain(Arc<Address>);

struct Address {
    uri: Option<String>,
    identity: Arc<crate::state::identity::Identity>,
    counters: Counters,
}

impl Endpoint for Plain {
    fn name(&self) -> &str {
        "test"
    }

    fn choose(&self, _: &mut Context, attempts: &Attempts, _: &mut Step) -> Result<Choice, Fault> {
        match attempts.last() {
            Some(fault) => Err(fault.clone()),
            None => Ok(Choice::Leaf(Arc::clone(&self.0) as Arc<dyn Leaf>)),
        }
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        vec![Arc::clone(&self.0) as Arc<dyn Leaf>]
    }
}

impl Leaf for Address {
    fn name(&self) -> &str {
        "test"
    }

    fn identity(&self) -> &Arc<crate::state::identity::Identity> {
        &self.identity
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn state(&self) -> &'static str {
        "active"
    }

    fn succeeded(&self) {}

    fn failed(&self, _: i32, _: &dyn std::fmt::Display, _: u64) {}

    fn switch(&self, _on: bool) {}

    fn outgoing(&self, context: &mut Context) -> Result<Outgoing, Fault> {
        let uri = self.uri.clone().or_else(|| context.addressing.to.clone()).unwrap_or_default();
        let unusable = || Fault::with_code(code::CONNECTION_FAILED, format!("`{uri}` is not an address"));
        let rest = uri.strip_prefix("http://").ok_or_else(unusable)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
        Ok(Outgoing {
            target: Target::http(host, port.parse().map_err(|_| unusable())?),
            request_target: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
            method: None,
            format: EndpointFormat::AsIs,
            charset: None,
            timeout: None,
            on_timeout: TimeoutAction::None,
            addressing: None,
            separate_listener: false,
            packing: None,
            authority: None,
        })
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl std::fmt::Debug for Tested {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Tested({:?})", self.found)
    }
}
