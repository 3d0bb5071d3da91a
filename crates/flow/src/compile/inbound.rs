//! Inbound endpoints: `http`, `https`, `ws`, `wss` and their kin; for other protocols, what they need.

use super::{Compiler, number, vfs};
use crate::runtime::inbound::{Audience, Filter, InboundEndpoint, Store, Stores, Tls};
use config::{Element, Key, ParameterValue};
use diagnostics::{Diagnostic, Severity, Span};
use message::regex::Pattern;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use transport::{ClientVerify, ServerTlsOptions, TlsRules};

/// A protocol that is listened to.
struct Protocol {
    name: &'static str,
    secure: bool,
    /// Only handshakes of WebSockets are served.
    websocket: bool,
    /// The parameter that says the port.
    port: &'static str,
}

const PROTOCOLS: [Protocol; 6] = [
    Protocol { name: "http", secure: false, websocket: false, port: "inbound.http.port" },
    Protocol { name: "https", secure: true, websocket: false, port: "inbound.http.port" },
    Protocol { name: "httpws", secure: false, websocket: false, port: "port" },
    Protocol { name: "httpswss", secure: true, websocket: false, port: "port" },
    Protocol { name: "ws", secure: false, websocket: true, port: "inbound.ws.port" },
    Protocol { name: "wss", secure: true, websocket: true, port: "inbound.ws.port" },
];

/// Parameters that have a meaning, beside the port.
const PARAMETERS: &[&str] = &[
    "dispatch.filter.pattern",
    "api.dispatching.enabled",
    "keystore",
    "truststore",
    "SSLVerifyClient",
    "HttpsProtocols",
    "PreferredCiphers",
];

/// The same for the protocols of WebSockets.
const VERSIONS: [&str; 2] = ["HttpsProtocols", "wss.ssl.protocols"];

const CIPHERS: [&str; 2] = ["PreferredCiphers", "wss.ssl.cipher.suites"];

/// Parameters that WSO2 needs, and their reasons.
const NOT_NEEDED: &[(&str, &str)] = &[
    ("inbound.worker.pool.size.core", POOL),
    ("inbound.worker.pool.size.max", POOL),
    ("inbound.worker.thread.keep.alive.sec", POOL),
    ("inbound.worker.pool.queue.length", POOL),
    ("inbound.thread.group.id", POOL),
    ("inbound.thread.id", POOL),
    ("SSLProtocol", TLS),
    ("coordination", "each server listens"),
    ("sequential", POOL),
    ("hostname", "not needed here, because addresses are those that the client asked"),
    ("protocolVersions", "not needed here, because each client says what it speaks"),
    ("SessionTimeout", TLS),
    ("HandshakeTimeout", TLS),
    ("ws.boss.thread.pool.size", POOL),
    ("ws.worker.thread.pool.size", POOL),
];

/// The parameters for certificates of clients.
const REVOCATION: &str = "servers are asked (OCSP) where `tls.ocsp` says so, which is about the certificate of the setting `[tls]`";

/// Parameters of WebSockets that have no effect, with what becomes of what they are about.
const FRAMES: &[(&str, &str)] = &[
    ("ws.outflow.dispatch.sequence", PASSED),
    ("ws.outflow.dispatch.fault.sequence", PASSED),
    ("ws.subprotocol.handler.class", "handlers are classes of Java; client and backend agree on a protocol"),
    ("ws.pipeline.handler.class", "handlers are classes of Java"),
    ("dispatch.custom.sequence", "what a client says runs through `sequence`"),
    ("wss.ssl.key.store.file", "the certificate of the setting `[tls]` is used"),
    ("wss.ssl.key.store.pass", "the certificate of the setting `[tls]` is used"),
    ("wss.ssl.cert.pass", "the certificate of the setting `[tls]` is used"),
    ("wss.ssl.trust.store.file", "certificates of clients are those of the setting `[tls]`"),
    ("wss.ssl.trust.store.pass", "certificates of clients are those of the setting `[tls]`"),
];

const PASSED: &str = "what a backend says is passed to the client as it comes; what a client says runs through `sequence` where no backend took the handshake";

/// The type of the texts that come over a WebSocket.
const TEXT_TYPE: &str = "ws.default.content.type";

/// Whether the port of a WebSocket is moved by the offset of the server.
const USE_OFFSET: &str = "ws.use.port.offset";

/// Which clients get the responses to messages of WebSockets.
const AUDIENCE: &str = "ws.client.side.broadcast.level";

const POOL: &str = "not needed here, because messages wait without threads";

const TLS: &str = "not needed here, because TLS 1.2 and 1.3 are spoken, with ciphers that are safe";

/// What other protocols need.
const OTHERS: &[(&str, &str)] = &[
    ("jms", "a client for its message broker, which is not there yet"),
    ("kafka", "a client for its message broker, which is not there yet"),
    ("mqtt", "a client for its message broker, which is not there yet"),
    ("rabbitmq", "a client for its message broker, which is not there yet"),
    ("hl7", "the protocol MLLP, which is not there"),
    ("grpc", "gRPC, which is not there"),
];

/// What the classes of WSO2 need, by the last part of their names.
const CLASSES: &[(&str, &str)] = &[
    ("CDCPollingConsumer", "a reader of the changes of a database, which is not there"),
    ("FeedInbound", "a reader of feeds, which is not there; a `task` can poll the feed as any resource"),
    ("InboundRMHttpListener", "WS-ReliableMessaging, which is not there"),
    ("KafkaMessageConsumer", "a client for its message broker, which is not there yet"),
];

/// What a class of another author needs, by its `inbound.behavior`; the first entry where none is written.
const BEHAVIOURS: &[(&str, &str)] = &[
    (
        "polling",
        "Java, which is not there; a `task` with the same interval that injects into the sequence can poll in its place",
    ),
    ("eventBased", "Java, which is not there; who has the events can send them to a `http` inbound endpoint"),
    ("listening", "Java, which is not there; for HTTP write `protocol=\"http\"`"),
];

/// What the class of an inbound endpoint needs.
fn needs_of(class: &str, endpoint: &config::InboundEndpoint) -> &'static str {
    let last = class.rsplit('.').next().unwrap_or(class);
    let of_wso2 = CLASSES.iter().find(|(name, _)| *name == last).map(|(_, needs)| *needs);
    let behaviour = endpoint.parameters.iter().rev().find(|parameter| parameter.name == "inbound.behavior");
    let behaviour = behaviour.and_then(|parameter| parameter.value.text()).map(str::trim);
    let mut by_behaviour = BEHAVIOURS.iter().filter(|(name, _)| Some(*name) == behaviour);
    of_wso2.unwrap_or_else(|| by_behaviour.next().unwrap_or(&BEHAVIOURS[0]).1)
}

/// Compiles an inbound endpoint; `None` after a recorded error. `ports`: those that are taken, with the names of their inbound endpoints.
pub(super) fn compile(
    endpoint: &config::InboundEndpoint,
    ports: &[(u16, String)],
    compiler: &mut Compiler<'_>,
) -> Option<InboundEndpoint> {
    let written = endpoint.protocol.as_ref().map(|protocol| protocol.value.as_str());
    let protocol = match (PROTOCOLS.iter().find(|supported| Some(supported.name) == written), written) {
        (Some(protocol), _) => protocol,
        (None, Some("file")) => return files(endpoint, compiler),
        (None, None) if endpoint.class.as_ref().is_some_and(|class| vfs::is_class(class)) => {
            return files(endpoint, compiler);
        }
        (None, protocol) => {
            let (message, span) = match protocol.zip(endpoint.protocol.as_ref()) {
                Some((protocol, key)) => {
                    let needs = OTHERS.iter().find(|(name, _)| *name == protocol);
                    let needs = needs.map_or("what is not there", |(_, needs)| *needs);
                    (format!("an inbound endpoint of the protocol `{protocol}` needs {needs}"), key.span)
                }
                None => {
                    let class = endpoint.class.as_ref();
                    let name = class.map_or("", |class| class.value.as_str());
                    let needs = needs_of(name, endpoint);
                    let message = format!("an inbound endpoint of the class `{name}` needs {needs}");
                    (message, class.map_or(endpoint.span, |class| class.span))
                }
            };
            compiler.error(
                "unsupported-artifact",
                message,
                span,
                "expected `protocol=\"http\"`, `https`, `ws`, `wss` or `file`",
            );
            return None;
        }
    };
    let secure = protocol.secure;
    let reader = Reader { endpoint, protocol };
    reader.check_names(compiler);
    let port = reader.port(ports, compiler);
    let filter = reader.filter(compiler);
    let tls = if secure { Some(reader.tls(compiler)?) } else { None };
    let text_type = reader.text(TEXT_TYPE, compiler).map_or_else(|| "text/plain".to_owned(), |key| key.value);
    let audience = reader.audience(compiler);
    let sequence = endpoint.sequence.as_ref().map(|key| compiler.sequence_key(key));
    if sequence.is_none() && matches!(filter, Some(Filter::None)) {
        let label = "add `sequence`, or the parameter `dispatch.filter.pattern`; only APIs that are bound to it get requests";
        let message = "the inbound endpoint has no sequence";
        compiler.warning("missing-attribute", message, endpoint.span, label);
    }
    let on_error = endpoint.on_error.as_ref().and_then(|key| compiler.handler(key));
    let mut hasher = DefaultHasher::new();
    (endpoint.suspend, port).hash(&mut hasher);
    let name = endpoint.name.value.clone();
    Some(InboundEndpoint {
        span: endpoint.span,
        port: Some(port?),
        source: None,
        tls,
        websocket: protocol.websocket,
        text_type,
        audience: audience?,
        activation: compiler.services.states.get(compiler.artifact_identity()),
        written: (!endpoint.suspend, hasher.finish()),
        sequence,
        on_error,
        trace: endpoint.trace,
        counters: compiler.services.metrics.counters("inbound", &name),
        filter: filter?,
        name,
    })
}

/// One that takes files; `None` after a recorded error.
fn files(endpoint: &config::InboundEndpoint, compiler: &mut Compiler<'_>) -> Option<InboundEndpoint> {
    let source = vfs::of_inbound(endpoint, compiler);
    for handler in &endpoint.handlers {
        let message = format!("the handler `{handler}` is not executable here");
        compiler.error("unsupported-artifact", message, handler.span, "handlers are classes of Java");
    }
    let sequence = endpoint.sequence.as_ref().map(|key| compiler.sequence_key(key));
    if sequence.is_none() {
        let message = "the inbound endpoint has no sequence";
        compiler.error(
            "missing-attribute",
            message,
            endpoint.span,
            "its files would go nowhere: add `sequence`",
        );
    }
    let on_error = endpoint.on_error.as_ref().and_then(|key| compiler.handler(key));
    let source = source?;
    Some(InboundEndpoint {
        span: endpoint.span,
        port: None,
        tls: None,
        websocket: false,
        text_type: String::new(),
        audience: Audience::Client,
        activation: Arc::clone(&source.activation),
        written: (!endpoint.suspend, source.definition),
        sequence,
        on_error,
        trace: endpoint.trace,
        counters: Arc::clone(&source.counters),
        filter: Filter::None,
        name: endpoint.name.value.clone(),
        source: Some(Arc::new(source)),
    })
}

/// Reads the parameters of an inbound endpoint.
struct Reader<'a> {
    endpoint: &'a config::InboundEndpoint,
    protocol: &'static Protocol,
}

impl Reader<'_> {
    fn value(&self, name: &str) -> Option<&ParameterValue> {
        self.endpoint
            .parameters
            .iter()
            .rev()
            .find(|parameter| parameter.name == name)
            .map(|parameter| &parameter.value)
    }

    /// A text, also one that a key leads to; blank counts as absent.
    fn text(&self, name: &str, compiler: &mut Compiler<'_>) -> Option<Key> {
        let key = match self.value(name)? {
            ParameterValue::Text(key) => key.clone(),
            ParameterValue::Key(key) => match compiler.entry(key) {
                Some(entry) => {
                    let text = String::from_utf8_lossy(&entry.bytes).trim().to_owned();
                    Key { value: text, span: key.span }
                }
                None if compiler.is_not_fetched(key) => return None,
                None => {
                    compiler.error(
                        "unknown-entry",
                        format!("there is no entry `{key}`"),
                        key.span,
                        "named here",
                    );
                    return None;
                }
            },
            ParameterValue::Xml(_) | ParameterValue::Expression(_) => return None,
        };
        (!key.value.trim().is_empty()).then(|| Key { value: key.value.trim().to_owned(), span: key.span })
    }

    fn check_names(&self, compiler: &mut Compiler<'_>) {
        let Protocol { secure, websocket, port, .. } = *self.protocol;
        let mut seen = std::collections::HashSet::new();
        for parameter in &self.endpoint.parameters {
            let name = parameter.name.as_str();
            if !seen.insert(name) {
                let message = format!("the parameter `{name}` is there twice");
                compiler.warning("duplicate-parameter", message, parameter.span, "this one counts");
            }
            if let Some((_, why)) = NOT_NEEDED.iter().find(|(entry, _)| *entry == name) {
                let message = format!("the parameter `{name}` has no effect");
                let note = Diagnostic::new("not-needed", Severity::Note, message);
                compiler.diagnostics.push(note.at(parameter.span, *why));
            } else if let Some((_, why)) = FRAMES.iter().find(|(entry, _)| websocket && *entry == name) {
                let message = format!("the parameter `{name}` has no effect");
                compiler.warning("ignored-parameter", message, parameter.span, *why);
            } else if name == "CertificateRevocationVerifier" {
                let message = format!("the parameter `{name}` has no effect");
                compiler.warning("ignored-parameter", message, parameter.span, REVOCATION);
            } else if name != port
                && !PARAMETERS.contains(&name)
                && !(websocket && [VERSIONS[1], CIPHERS[1], TEXT_TYPE, AUDIENCE, USE_OFFSET].contains(&name))
            {
                let message = format!("an inbound endpoint has no parameter `{name}`");
                let names =
                    PARAMETERS.iter().chain(NOT_NEEDED.iter().map(|(entry, _)| entry)).copied().chain([port]);
                let warning = Diagnostic::warning("unknown-parameter", message);
                compiler
                    .diagnostics
                    .push(warning.at(parameter.span, "this has no effect").did_you_mean(name, names));
            } else if !secure && matches!(name, "keystore" | "truststore" | "SSLVerifyClient") {
                let message = format!("the parameter `{name}` has no effect");
                compiler.warning(
                    "ignored-parameter",
                    message,
                    parameter.span,
                    "the protocol is one without TLS",
                );
            }
        }
        for handler in &self.endpoint.handlers {
            let message = format!("the handler `{handler}` is not executable here");
            compiler.error("unsupported-artifact", message, handler.span, "handlers are classes of Java");
        }
    }

    fn port(&self, ports: &[(u16, String)], compiler: &mut Compiler<'_>) -> Option<u16> {
        let name = self.protocol.port;
        let Some(key) = self.text(name, compiler) else {
            let message = format!("the inbound endpoint needs the parameter `{name}`");
            let names = self.endpoint.parameters.iter().map(|parameter| parameter.name.as_str());
            let error = Diagnostic::error("missing-parameter", message)
                .at(self.endpoint.span, "the port to listen on");
            compiler.diagnostics.push(error.did_you_mean(name, names));
            return None;
        };
        let port = key.parse::<u16>().ok().filter(|port| *port > 0);
        let Some(port) = port else {
            let error = Diagnostic::error("bad-value", format!("`{key}` is not a port"));
            let mut error = error.at(key.span, "expected 1 to 65535");
            let near = number::PORT.parse(&key).err().flatten();
            error.help.extend(near.map(|near| format!("did you mean `{near}`?")));
            compiler.diagnostics.push(error);
            return None;
        };
        let port = self.moved(port, key.span, compiler)?;
        if let Some((_, name)) = ports.iter().find(|(taken, _)| *taken == port) {
            let message = format!("the port {port} is that of the inbound endpoint `{name}`");
            compiler.error("port-in-use", message, key.span, "two cannot listen on one port");
            return None;
        }
        Some(port)
    }

    /// The port behind the offset of the server, where that counts for it. `None` after a recorded error.
    fn moved(&self, port: u16, place: Span, compiler: &mut Compiler<'_>) -> Option<u16> {
        let offset = compiler.services.settings.offset;
        let by_itself = self.protocol.websocket
            && self.text(USE_OFFSET, compiler).is_some_and(|text| text.value.eq_ignore_ascii_case("true"));
        if !offset.inbound && !by_itself {
            return Some(port);
        }
        let moved = i64::from(port).saturating_add(offset.ports);
        let found = u16::try_from(moved).ok().filter(|port| *port > 0);
        if found.is_none() {
            let message = format!("{moved} is not a port (`server.offset` is part of it)");
            compiler.error("bad-value", message, place, "expected 1 to 65535 with the offset");
        }
        found
    }

    /// `None` after a recorded error.
    fn audience(&self, compiler: &mut Compiler<'_>) -> Option<Audience> {
        let Some(level) = self.text(AUDIENCE, compiler).filter(|_| self.protocol.websocket) else {
            return Some(Audience::Client);
        };
        match level.value.as_str() {
            "0" => Some(Audience::Client),
            "1" => Some(Audience::All),
            "2" => Some(Audience::Others),
            _ => {
                let message = format!("the parameter `{AUDIENCE}` cannot be `{level}`");
                let label = "expected 0 (the client that is answered), 1 (all clients of its path) or 2 (all others of it)";
                compiler.error("bad-value", message, level.span, label);
                None
            }
        }
    }

    /// `None` after a recorded error.
    fn filter(&self, compiler: &mut Compiler<'_>) -> Option<Filter> {
        let apis = match self.text("api.dispatching.enabled", compiler) {
            None => false,
            Some(key) => match number::truth(&key) {
                Ok(truth) => truth,
                Err(near) => {
                    let message = format!("the parameter `api.dispatching.enabled` cannot be `{key}`");
                    let error = Diagnostic::error("bad-value", message);
                    let mut error = error.at(key.span, "expected true or false");
                    error.help.extend(near.map(|near| format!("did you mean `{near}`?")));
                    compiler.diagnostics.push(error);
                    return None;
                }
            },
        };
        let Some(pattern) = self.text("dispatch.filter.pattern", compiler) else {
            return Some(if apis { Filter::Apis } else { Filter::None });
        };
        match Pattern::compile(&pattern) {
            Ok(compiled) => Some(Filter::Pattern(compiled)),
            Err(why) => {
                let message = format!("`{pattern}` is not a valid regular expression");
                compiler.error("bad-pattern", message, pattern.span, why);
                None
            }
        }
    }

    /// The certificate of the key store, where that can be read; else that of the bus. `None` after a recorded error: clients must show
    /// certificates, and nothing could check them.
    fn tls(&self, compiler: &mut Compiler<'_>) -> Option<Tls> {
        let root = compiler.configuration.root.clone();
        let client_verify = self.client_verify(compiler)?;
        let keys = self.store("keystore", compiler)?.and_then(|element| store_of(element, &root, compiler));
        let trusted =
            self.store("truststore", compiler)?.and_then(|element| store_of(element, &root, compiler));
        let verifies = client_verify != ClientVerify::None;
        let lacking = match (&keys, &trusted) {
            _ if !verifies => None,
            (None, _) => Some("a `keystore` that can be read"),
            (_, None) => Some("a `truststore` that can be read, with the authorities of clients"),
            _ => None,
        };
        if let Some(lacking) = lacking {
            let span = self.text("SSLVerifyClient", compiler).map_or(self.endpoint.span, |key| key.span);
            let message = format!("certificates of clients cannot be checked without {lacking}");
            let label = "expected none, or such a store; else everybody would be let in";
            compiler.error("missing-parameter", message, span, label);
            return None;
        }
        let trusted = trusted.filter(|_| verifies);
        let rules = self.rules(keys.is_some(), compiler);
        Some(match (keys, trusted) {
            (None, _) => Tls::OfBus,
            (Some((keys, true)), trusted) if trusted.as_ref().is_none_or(|store| store.1) => {
                let mut files = keys.files.into_iter();
                let certificates = files.next().unwrap_or_default();
                let key = files.next().unwrap_or_else(|| certificates.clone());
                let client_roots = trusted.and_then(|store| store.0.files.into_iter().next());
                Tls::Own(ServerTlsOptions {
                    key,
                    certificates,
                    client_roots,
                    client_verify,
                    rules,
                    ..ServerTlsOptions::default()
                })
            }
            (Some((keys, _)), trusted) => {
                Tls::Stores(Stores { keys, trusted: trusted.map(|store| store.0), client_verify, rules })
            }
        })
    }

    /// Versions of TLS and cipher suites, of those that are safe. `has_certificate`: the endpoint has a certificate of its own, so that it can have these too.
    fn rules(&self, has_certificate: bool, compiler: &mut Compiler<'_>) -> TlsRules {
        let mut list = |names: [&'static str; 2]| -> Vec<Key> {
            let found = names.into_iter().find_map(|name| self.text(name, compiler));
            let split = |key: Key| {
                let words = key.value.split([',', ' ', ':']).filter(|word| !word.is_empty());
                words.map(|word| Key { value: word.to_owned(), span: key.span }).collect()
            };
            found.map(split).unwrap_or_default()
        };
        let (versions, ciphers) = (list(VERSIONS), list(CIPHERS));
        let Some(first) = versions.first().or(ciphers.first()) else { return TlsRules::default() };
        if !has_certificate {
            let message = "versions of TLS and cipher suites of an endpoint without a certificate of its own";
            let label = "have no effect: those of `[tls]` are spoken";
            compiler.warning("ignored-parameter", message, first.span, label);
            return TlsRules::default();
        }
        let texts = |keys: &[Key]| keys.iter().map(|key| key.value.clone()).collect::<Vec<_>>();
        let (mut rules, left_out) = TlsRules::lenient(&texts(&versions), &texts(&ciphers));
        let span_of = |name: &String| {
            versions.iter().chain(&ciphers).find(|key| key.value == **name).map_or(first.span, |key| key.span)
        };
        for name in &left_out {
            let message = format!("`{name}` is not spoken");
            compiler.warning(
                "ignored-parameter",
                message,
                span_of(name),
                "it is not safe, or not known here",
            );
        }
        // Where nothing is left that both ask for, all that is safe is.
        if rules.check().is_err() {
            rules.ciphers.clear();
        }
        rules
    }

    /// `SSLVerifyClient`; `None` after a recorded error.
    fn client_verify(&self, compiler: &mut Compiler<'_>) -> Option<ClientVerify> {
        let Some(word) = self.text("SSLVerifyClient", compiler) else { return Some(ClientVerify::None) };
        match word.value.to_ascii_lowercase().as_str() {
            "none" => Some(ClientVerify::None),
            "optional" => Some(ClientVerify::Optional),
            "require" => Some(ClientVerify::Require),
            _ => {
                let error = Diagnostic::error("bad-value", format!("`SSLVerifyClient` cannot be `{word}`"))
                    .at(word.span, "expected none, optional or require")
                    .did_you_mean(&word, ["none", "optional", "require"]);
                compiler.diagnostics.push(error);
                None
            }
        }
    }

    /// The element of a store; `None` after a recorded error, `Some(None)`: it is not written.
    fn store(&self, name: &str, compiler: &mut Compiler<'_>) -> Option<Option<&Element>> {
        match self.value(name) {
            None => Some(None),
            Some(ParameterValue::Text(key)) if key.trim().is_empty() => Some(None),
            Some(ParameterValue::Xml(store)) => Some(Some(store)),
            Some(_) => {
                let span = self
                    .endpoint
                    .parameters
                    .iter()
                    .rev()
                    .find(|parameter| parameter.name == name)
                    .map(|parameter| parameter.span);
                let message = format!("the parameter `{name}` is an element");
                let label = "expected a store: <KeyStore><Location>FILE.pem</Location></KeyStore>";
                compiler.error("bad-value", message, span.unwrap_or(self.endpoint.span), label);
                None
            }
        }
    }
}

/// A key store or trust store, and whether it is PEM; `None` (recorded): it is none that can be read.
fn store_of(store: &Element, root: &Path, compiler: &mut Compiler<'_>) -> Option<(Store, bool)> {
    let child = |name: &str| {
        store.child(name).map(|element| element.text().trim().to_owned()).filter(|text| !text.is_empty())
    };
    let Some(location) = child("Location") else {
        let message = format!("`{}` has no `Location`", store.local());
        compiler.error("missing-element", message, store.span(), "the file of the store");
        return None;
    };
    let is_pem = child("Type").is_some_and(|kind| kind.eq_ignore_ascii_case("PEM"))
        || [".pem", ".crt", ".cer"].iter().any(|end| location.ends_with(end));
    let mut files = vec![root.join(&location)];
    if is_pem {
        files.extend(child("KeyLocation").map(|key| root.join(key)));
        return Some((Store { files, password: String::new(), key_password: None }, true));
    }
    let (password, key_password) = (child("Password").unwrap_or_default(), child("KeyPassword"));
    let is_kept = |text: &str| text.starts_with('$') || text.contains("vault-lookup");
    let why = if !files[0].exists() {
        Some("there is no such file")
    } else if is_kept(&password) || key_password.as_deref().is_some_and(is_kept) {
        Some("its password is not written here, but in a vault of the server")
    } else {
        None
    };
    if let Some(why) = why {
        let message = format!("the store `{location}` cannot be read: {why}");
        let label = "the certificate of the setting `[tls]` is used; for one of its own, a store (JKS, PKCS#12 or PEM) that is there, below the configuration";
        compiler.warning("unsupported-keystore", message, store.span(), label);
        return None;
    }
    Some((Store { files, password, key_password }, false))
}

#[cfg(test)]
mod tests;
