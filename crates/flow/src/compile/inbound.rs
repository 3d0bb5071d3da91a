//! Inbound endpoints: `http`, `https`, `ws`, `wss` and their kin; for other protocols, what they need.

use super::{Compiler, number, vfs};
use crate::runtime::inbound::{Audience, Filter, InboundEndpoint, Store, Stores, Tls};
use config::{Element, Key, ParameterValue};
use diagnostics::{Diagnostic, Severity};
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
    ("ws.use.port.offset", "ports are those that are written"),
];
/// The parameters for certificates of clients.
const REVOCATION: &str =
    "servers are not asked for it (OCSP); lists of what is revoked are named by `tls.revoked`";

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
                && !(websocket && [VERSIONS[1], CIPHERS[1], TEXT_TYPE, AUDIENCE].contains(&name))
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
        if let Some((_, name)) = ports.iter().find(|(taken, _)| *taken == port) {
            let message = format!("the port {port} is that of the inbound endpoint `{name}`");
            compiler.error("port-in-use", message, key.span, "two cannot listen on one port");
            return None;
        }
        Some(port)
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
mod tests {
    use super::*;
    use crate::testing::{self, Tested};

    fn tested(inside: &str) -> Tested {
        let registry = testing::registry(Vec::new());
        let text = format!(
            "<definitions xmlns='{}'>{inside}<sequence name='S'/><sequence name='main'/><sequence name='fault'/></definitions>",
            config::SYNAPSE
        );
        testing::configuration(&registry, &text)
    }

    fn parameter(name: &str, value: &str) -> String {
        format!("<parameter name='{name}'>{value}</parameter>")
    }

    #[test]
    fn what_loading_says() {
        let port = parameter("inbound.http.port", "8285");
        for (attributes, parameters, found, label) in [
            (
                "protocol='http'",
                String::new(),
                "missing-parameter: the inbound endpoint needs the parameter `inbound.http.port`",
                "the port to listen on",
            ),
            (
                "protocol='http'",
                parameter("inbound.http.port", "0"),
                "bad-value: `0` is not a port",
                "expected 1 to 65535",
            ),
            (
                "protocol='http'",
                parameter("inbound.http.port", "-1"),
                "bad-value: `-1` is not a port",
                "expected 1 to 65535",
            ),
            (
                "protocol='http'",
                parameter("inbound.http.port", "18446744073709551616"),
                "bad-value: `18446744073709551616` is not a port",
                "expected 1 to 65535",
            ),
            (
                "protocol='http'",
                parameter("inbound.http.port", "  "),
                "missing-parameter: the inbound endpoint needs the parameter `inbound.http.port`",
                "the port to listen on",
            ),
            (
                "protocol='http'",
                parameter("Inbound.HTTP.Port", "8285"),
                "unknown-parameter: an inbound endpoint has no parameter `Inbound.HTTP.Port`",
                "this has no effect",
            ),
            (
                "protocol='http'",
                format!("{port}{port}"),
                "duplicate-parameter: the parameter `inbound.http.port` is there twice",
                "this one counts",
            ),
            (
                "protocol='http'",
                format!("{port}{}", parameter("api.dispatching.enabled", "yes")),
                "bad-value: the parameter `api.dispatching.enabled` cannot be `yes`",
                "expected true or false",
            ),
            (
                "protocol='https'",
                format!("{port}{}", parameter("keystore", "a.pem")),
                "bad-value: the parameter `keystore` is an element",
                "expected a store",
            ),
            // A store that cannot be read must not let every client in.
            (
                "protocol='https'",
                format!("{port}{}", parameter("SSLVerifyClient", "require")),
                "missing-parameter: certificates of clients cannot be checked without a `keystore` that can be read",
                "else everybody would be let in",
            ),
            (
                "protocol='https'",
                format!(
                    "{port}{}{}",
                    parameter("keystore", "<KeyStore><Location>a.jks</Location></KeyStore>"),
                    parameter("SSLVerifyClient", "Optional")
                ),
                "missing-parameter: certificates of clients cannot be checked without a `keystore` that can be read",
                "else everybody would be let in",
            ),
            (
                "protocol='https'",
                format!(
                    "{port}{}{}",
                    parameter("keystore", "<KeyStore><Location>a.pem</Location></KeyStore>"),
                    parameter("SSLVerifyClient", "REQUIRE")
                ),
                "missing-parameter: certificates of clients cannot be checked without a `truststore` that can be read",
                "else everybody would be let in",
            ),
            (
                "protocol='http'",
                parameter("inbound.http.port", "65536"),
                "bad-value: `65536` is not a port",
                "expected 1 to 65535",
            ),
            (
                "protocol='http'",
                parameter("inbound.http.port", "http"),
                "bad-value: `http` is not a port",
                "expected 1 to 65535",
            ),
            (
                "protocol='http'",
                parameter("inbound.htp.port", "1"),
                "unknown-parameter: an inbound endpoint has no parameter `inbound.htp.port`",
                "this has no effect",
            ),
            (
                "protocol='http'",
                format!("{port}{}", parameter("dispatch.filter.pattern", "(")),
                "bad-pattern: `(` is not a valid regular expression",
                "",
            ),
            (
                "protocol='http'",
                format!("{port}{}", parameter("inbound.worker.pool.size.core", "5")),
                "not-needed: the parameter `inbound.worker.pool.size.core` has no effect",
                "messages wait without threads",
            ),
            (
                "protocol='http'",
                format!("{port}{}", parameter("keystore", "x")),
                "ignored-parameter: the parameter `keystore` has no effect",
                "the protocol is one without TLS",
            ),
            (
                "protocol='https'",
                format!(
                    "{port}{}",
                    parameter("keystore", "<KeyStore><Location>a.jks</Location><Type>JKS</Type></KeyStore>")
                ),
                "unsupported-keystore: the store `a.jks` cannot be read: there is no such file",
                "JKS, PKCS#12 or PEM",
            ),
            (
                "protocol='https'",
                format!("{port}{}", parameter("keystore", "<KeyStore/>")),
                "missing-element: `KeyStore` has no `Location`",
                "the file of the store",
            ),
            (
                "protocol='https'",
                format!(
                    "{port}{}{}",
                    parameter("keystore", "<KeyStore><Location>a.pem</Location></KeyStore>"),
                    parameter("SSLVerifyClient", "required")
                ),
                "bad-value: `SSLVerifyClient` cannot be `required`",
                "expected none, optional or require",
            ),
            (
                "protocol='ws'",
                port.clone(),
                "missing-parameter: the inbound endpoint needs the parameter `inbound.ws.port`",
                "the port to listen on",
            ),
            (
                "protocol='ws'",
                [parameter("inbound.ws.port", "8286"), parameter("ws.outflow.dispatch.sequence", "S")]
                    .concat(),
                "ignored-parameter: the parameter `ws.outflow.dispatch.sequence` has no effect",
                "what a client says runs through `sequence`",
            ),
            (
                "protocol='ws'",
                [parameter("inbound.ws.port", "8286"), parameter("ws.client.side.broadcast.level", "3")]
                    .concat(),
                "bad-value: the parameter `ws.client.side.broadcast.level` cannot be `3`",
                "expected 0",
            ),
            (
                "protocol='httpws'",
                [parameter("port", "8286"), parameter("protocolVersions", "2.0")].concat(),
                "not-needed: the parameter `protocolVersions` has no effect",
                "each client says what it speaks",
            ),
            (
                "protocol='jms'",
                String::new(),
                "unsupported-artifact: an inbound endpoint of the protocol `jms` needs a client for its message broker",
                "expected",
            ),
            (
                "protocol='file'",
                String::new(),
                "missing-parameter: the parameter `transport.vfs.FileURI` is needed to take files",
                "a directory",
            ),
            (
                "class='com.example.Mine'",
                String::new(),
                "unsupported-artifact: an inbound endpoint of the class `com.example.Mine` needs Java, which is not there; a `task`",
                "expected",
            ),
            (
                "class='com.example.Mine'",
                parameter("inbound.behavior", "listening"),
                "unsupported-artifact: an inbound endpoint of the class `com.example.Mine` needs Java, which is not there; for HTTP",
                "expected",
            ),
            (
                "class='org.wso2.carbon.inbound.kafka.KafkaMessageConsumer'",
                parameter("inbound.behavior", "polling"),
                "needs a client for its message broker",
                "expected",
            ),
        ] {
            let inside = format!(
                "<inboundEndpoint name='I' sequence='S' {attributes}><parameters>{parameters}</parameters></inboundEndpoint>"
            );
            let tested = tested(&inside);
            assert!(tested.reports(found), "{inside}: {:?}", tested.found);
            assert!(
                tested.reasons.iter().any(|reason| reason.contains(label)),
                "{inside}: {:?}",
                tested.reasons
            );
        }
    }

    /// One endpoint of a protocol with its port and these parameters.
    fn of(protocol: &Protocol, parameters: &[(&str, &str)]) -> Tested {
        let mut parameters_text = parameter(protocol.port, "8285");
        for (name, value) in parameters {
            parameters_text += &parameter(name, value);
        }
        tested(&format!(
            "<inboundEndpoint name='I' sequence='S' protocol='{}'><parameters>{parameters_text}</parameters></inboundEndpoint>",
            protocol.name
        ))
    }

    const PEM: &str = "<KeyStore><Location>a.pem</Location></KeyStore>";
    const TRUSTED: &str = "<TrustStore><Location>b.pem</Location></TrustStore>";

    type Good = (&'static [(&'static str, &'static str)], fn(&InboundEndpoint) -> String, &'static str);

    /// What each parameter makes of an endpoint with TLS for WebSockets, which has all of them.
    const GOOD: &[Good] = &[
        (
            &[],
            |endpoint| format!("{:?} {} {:?}", endpoint.port, endpoint.websocket, endpoint.tls),
            "Some(8285) true Some(OfBus)",
        ),
        (
            &[("api.dispatching.enabled", "TRUE")],
            |endpoint| matches!(endpoint.filter, Filter::Apis).to_string(),
            "true",
        ),
        (
            &[("api.dispatching.enabled", "false")],
            |endpoint| matches!(endpoint.filter, Filter::None).to_string(),
            "true",
        ),
        (
            &[("dispatch.filter.pattern", "/a.*")],
            |endpoint| match &endpoint.filter {
                Filter::Pattern(pattern) => format!("{:?}", (pattern.matches("/ab"), pattern.matches("/b"))),
                _ => String::new(),
            },
            "(Ok(true), Ok(false))",
        ),
        // A pattern is narrower than all APIs, so it counts.
        (
            &[("dispatch.filter.pattern", "/a.*"), ("api.dispatching.enabled", "true")],
            |endpoint| matches!(endpoint.filter, Filter::Pattern(_)).to_string(),
            "true",
        ),
        (&[("keystore", PEM)], |endpoint| names(endpoint), "a.pem a.pem  None"),
        (
            &[(
                "keystore",
                "<KeyStore><Location>a.pem</Location><KeyLocation>k.pem</KeyLocation></KeyStore>",
            )],
            |endpoint| names(endpoint),
            "k.pem a.pem  None",
        ),
        (
            &[("keystore", PEM), ("truststore", TRUSTED), ("SSLVerifyClient", "Require")],
            |endpoint| names(endpoint),
            "a.pem a.pem b.pem Require",
        ),
        (
            &[("keystore", PEM), ("truststore", TRUSTED), ("SSLVerifyClient", "optional")],
            |endpoint| names(endpoint),
            "a.pem a.pem b.pem Optional",
        ),
        (
            &[("keystore", PEM), ("HttpsProtocols", "TLSv1.2, TLS"), ("PreferredCiphers", SUITE)],
            |endpoint| rules(endpoint),
            "TLSv1.2 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        ),
        (&[("SSLVerifyClient", "none")], |endpoint| format!("{:?}", endpoint.tls), "Some(OfBus)"),
        (&[], |endpoint| endpoint.text_type.clone(), "text/plain"),
        (
            &[("ws.default.content.type", "application/json")],
            |endpoint| endpoint.text_type.clone(),
            "application/json",
        ),
        (&[], |endpoint| format!("{:?}", endpoint.audience), "Client"),
        (&[("ws.client.side.broadcast.level", "1")], |endpoint| format!("{:?}", endpoint.audience), "All"),
        (
            &[("ws.client.side.broadcast.level", " 2 ")],
            |endpoint| format!("{:?}", endpoint.audience),
            "Others",
        ),
    ];

    const SUITE: &str = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";

    /// What an endpoint with a certificate of its own speaks.
    fn rules(endpoint: &InboundEndpoint) -> String {
        let Some(Tls::Own(tls)) = &endpoint.tls else { return String::new() };
        format!("{} {}", tls.rules.versions.join(","), tls.rules.ciphers.join(","))
    }

    /// The files of a certificate of its own, and what is asked of clients.
    fn names(endpoint: &InboundEndpoint) -> String {
        let Some(Tls::Own(tls)) = &endpoint.tls else { return String::new() };
        let name = |path: &Path| {
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let roots = tls.client_roots.as_deref().map(name).unwrap_or_default();
        format!("{} {} {roots} {:?}", name(&tls.key), name(&tls.certificates), tls.client_verify)
    }

    #[test]
    fn good_values() {
        let wss = PROTOCOLS.iter().find(|protocol| protocol.name == "wss").unwrap();
        for (given, shows, wanted) in GOOD {
            let tested = of(wss, given);
            let plan = tested.bus.plan();
            let endpoint =
                plan.inbound_endpoints().first().unwrap_or_else(|| panic!("{given:?}: {:?}", tested.found));
            assert_eq!(shows(endpoint), *wanted, "{given:?}");
            assert!(tested.found.is_empty(), "{given:?}: {:?}", tested.found);
        }
        // What each protocol is.
        for protocol in &PROTOCOLS {
            let tested = of(protocol, &[]);
            let plan = tested.bus.plan();
            let endpoint = plan.inbound_endpoints().first().unwrap();
            let shown = (endpoint.port, endpoint.tls.is_some(), endpoint.websocket);
            assert_eq!(shown, (Some(8285), protocol.secure, protocol.websocket), "{}", protocol.name);
            assert!(tested.found.is_empty(), "{}: {:?}", protocol.name, tested.found);
        }
        // The good values are of all parameters that there are; the wrong ones are in `what_loading_says`.
        let given: Vec<&str> = GOOD.iter().flat_map(|row| row.0.iter().map(|row| row.0)).collect();
        for name in PARAMETERS.iter().chain([&TEXT_TYPE, &AUDIENCE]) {
            assert!(given.contains(name), "{name} has no good value");
        }
    }

    /// What has no effect says so with its reason, whatever its value, and takes nothing away.
    #[test]
    fn parameters_without_effect() {
        let wss = PROTOCOLS.iter().find(|protocol| protocol.name == "wss").unwrap();
        let notes = NOT_NEEDED.iter().map(|entry| ("not-needed", entry));
        for (rule, (name, why)) in notes.chain(FRAMES.iter().map(|entry| ("ignored-parameter", entry))) {
            for value in ["10", "-1", "no such value", ""] {
                let tested = of(wss, &[(name, value)]);
                let says = format!("{rule}: the parameter `{name}` has no effect");
                assert!(tested.reports(&says), "{name}={value}: {:?}", tested.found);
                assert!(
                    tested.reasons.iter().any(|reason| reason.contains(why)),
                    "{name}: {:?}",
                    tested.reasons
                );
                assert_eq!(tested.bus.plan().inbound_endpoints().len(), 1, "{name}={value}");
            }
        }
        // Those of TLS and of WebSockets mean nothing to a protocol without either.
        let http = &PROTOCOLS[0];
        for (name, value) in [("keystore", PEM), ("truststore", TRUSTED), ("SSLVerifyClient", "none")] {
            let tested = of(http, &[(name, value)]);
            assert!(tested.reports("ignored-parameter: "), "{name}: {:?}", tested.found);
        }
        for name in FRAMES.iter().map(|entry| entry.0).chain([TEXT_TYPE, AUDIENCE]) {
            let tested = of(http, &[(name, "1")]);
            assert!(tested.reports("unknown-parameter: "), "{name}: {:?}", tested.found);
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let endpoint = |attributes: &str, parameters: &str| {
            tested(&format!(
                "<inboundEndpoint name='I' sequence='S' {attributes}><parameters>{parameters}</parameters></inboundEndpoint>"
            ))
        };
        let protocols =
            OTHERS.iter().map(|(name, needs)| (format!("protocol='{name}'"), String::new(), *needs));
        let classes =
            CLASSES.iter().map(|(name, needs)| (format!("class='org.wso2.{name}'"), String::new(), *needs));
        let behaviours = BEHAVIOURS.iter().map(|(name, needs)| {
            ("class='com.example.Mine'".to_owned(), parameter("inbound.behavior", name), *needs)
        });
        for (attributes, parameters, needs) in protocols.chain(classes).chain(behaviours) {
            let tested = endpoint(&attributes, &parameters);
            assert!(tested.reports("unsupported-artifact: "), "{attributes}: {:?}", tested.found);
            assert!(
                tested.found.iter().any(|message| message.contains(needs)),
                "{attributes}: {:?}",
                tested.found
            );
            assert!(tested.bus.plan().inbound_endpoints().is_empty(), "{attributes}");
        }
    }

    /// Java key stores that exist are read when the port is opened; one that does not, or whose password is in a vault, is reported here.
    #[test]
    fn stores_of_java() {
        let directory = std::env::temp_dir().join(format!("busbar-inbound-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for name in ["k.jks", "t.p12"] {
            std::fs::write(directory.join(name), "store").unwrap();
        }
        let https = PROTOCOLS.iter().find(|protocol| protocol.name == "https").unwrap();
        let store = |element: &str, name: &str, inside: &str| {
            format!("<{element}><Location>{}/{name}</Location>{inside}</{element}>", directory.display())
        };
        let keys =
            store("KeyStore", "k.jks", "<Type>JKS</Type><Password>p</Password><KeyPassword>k</KeyPassword>");
        let trusted = store("TrustStore", "t.p12", "<Password>t</Password>");
        let tested =
            of(https, &[("keystore", &keys), ("truststore", &trusted), ("SSLVerifyClient", "require")]);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        let plan = tested.bus.plan();
        let Some(Tls::Stores(stores)) = &plan.inbound_endpoints()[0].tls else { panic!("no stores") };
        assert_eq!((&*stores.keys.password, stores.keys.key_password.as_deref()), ("p", Some("k")));
        assert_eq!(stores.trusted.as_ref().map(|store| &*store.password), Some("t"));
        assert_eq!(stores.client_verify, ClientVerify::Require);
        assert!(!format!("{stores:?}").contains("password"), "{stores:?}");
        // Clients show no certificates: no trust store is used.
        let tested = of(https, &[("keystore", &keys), ("truststore", &trusted)]);
        let plan = tested.bus.plan();
        assert!(
            matches!(&plan.inbound_endpoints()[0].tls, Some(Tls::Stores(stores)) if stores.trusted.is_none())
        );
        for (keys, says) in [
            (store("KeyStore", "none.jks", "<Password>p</Password>"), "there is no such file"),
            (store("KeyStore", "k.jks", "<Password>$secret{p}</Password>"), "in a vault of the server"),
            (
                store("KeyStore", "k.jks", "<Password>{wso2:vault-lookup('p')}</Password>"),
                "in a vault of the server",
            ),
        ] {
            let tested = of(https, &[("keystore", &keys)]);
            assert!(tested.reports("unsupported-keystore: "), "{keys}: {:?}", tested.found);
            assert!(tested.found.iter().any(|message| message.contains(says)), "{keys}: {:?}", tested.found);
            assert_eq!(tested.bus.plan().inbound_endpoints()[0].tls, Some(Tls::OfBus), "{keys}");
            // Clients are not let in without a certificate.
            let tested =
                of(https, &[("keystore", &keys), ("truststore", &trusted), ("SSLVerifyClient", "require")]);
            assert!(tested.bus.plan().inbound_endpoints().is_empty(), "{keys}");
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// Values that a key leads to, and those of the wrong kind.
    #[test]
    fn values_of_entries() {
        let inside = |parameters: &str| {
            format!(
                "<localEntry key='port'>8285</localEntry><localEntry key='word'>often</localEntry>\
                 <inboundEndpoint name='I' sequence='S' protocol='ws'><parameters>{parameters}</parameters></inboundEndpoint>"
            )
        };
        let good = tested(&inside("<parameter name='inbound.ws.port' key='port'/>"));
        assert!(good.found.is_empty(), "{:?}", good.found);
        assert_eq!(good.bus.plan().inbound_endpoints()[0].port, Some(8285));
        for (parameters, says) in [
            (
                "<parameter name='inbound.ws.port' key='none'/>".to_owned(),
                "unknown-entry: there is no entry `none`",
            ),
            ("<parameter name='inbound.ws.port' key='word'/>".to_owned(), "bad-value: `often` is not a port"),
            (
                format!(
                    "{}<parameter name='dispatch.filter.pattern' key='none'/>",
                    parameter("inbound.ws.port", "8285")
                ),
                "unknown-entry: there is no entry `none`",
            ),
            (
                format!("{}{}", parameter("inbound.ws.port", "8285"), parameter("truststore", "b.pem")),
                "ignored-parameter: the parameter `truststore` has no effect",
            ),
        ] {
            let tested = tested(&inside(&parameters));
            assert!(tested.reports(says), "{parameters}: {:?}", tested.found);
        }
    }

    #[test]
    fn one_port_has_one_endpoint() {
        let one = |name: &str, port: u16| {
            let port = parameter("inbound.http.port", &port.to_string());
            format!(
                "<inboundEndpoint name='{name}' protocol='http' sequence='S'><parameters>{port}</parameters></inboundEndpoint>"
            )
        };
        let tested = tested(&[one("A", 8285), one("B", 8285), one("C", 8286)].concat());
        assert!(
            tested.reports("port-in-use: the port 8285 is that of the inbound endpoint `A`"),
            "{:?}",
            tested.found
        );
        let plan = tested.bus.plan();
        let ports: Vec<_> =
            plan.inbound_endpoints().iter().map(|endpoint| (endpoint.name.as_str(), endpoint.port)).collect();
        assert_eq!(ports, [("A", Some(8285)), ("C", Some(8286))]);
    }
}
