//! Inbound endpoints: `http`, `https`, `ws`, `wss` and their kin; for other protocols, what they need.

use super::{Compiler, number, vfs};
use crate::runtime::inbound::{Audience, Filter, InboundEndpoint, Tls};
use config::{Element, Key, ParameterValue};
use diagnostics::{Diagnostic, Severity};
use message::regex::Pattern;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use transport::{ClientVerify, ServerTlsOptions};

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
const PARAMETERS: &[&str] =
    &["dispatch.filter.pattern", "api.dispatching.enabled", "keystore", "truststore", "SSLVerifyClient"];

/// Parameters that WSO2 needs, and their reasons.
const NOT_NEEDED: &[(&str, &str)] = &[
    ("inbound.worker.pool.size.core", POOL),
    ("inbound.worker.pool.size.max", POOL),
    ("inbound.worker.thread.keep.alive.sec", POOL),
    ("inbound.worker.pool.queue.length", POOL),
    ("inbound.thread.group.id", POOL),
    ("inbound.thread.id", POOL),
    ("HttpsProtocols", TLS),
    ("SSLProtocol", TLS),
    ("PreferredCiphers", TLS),
    ("CertificateRevocationVerifier", "revocation is not checked"),
    ("coordination", "each server listens"),
    ("sequential", POOL),
    ("hostname", "not needed here, because addresses are those that the client asked"),
    ("protocolVersions", "not needed here, because each client says what it speaks"),
    ("SessionTimeout", TLS),
    ("HandshakeTimeout", TLS),
    ("ws.boss.thread.pool.size", POOL),
    ("ws.worker.thread.pool.size", POOL),
    ("ws.use.port.offset", "ports are those that are written"),
    ("wss.ssl.protocols", TLS),
    ("wss.ssl.cipher.suites", TLS),
];

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
/// Whom the answers to messages of WebSockets are said to.
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

/// What a class of somebody else's needs, by its `inbound.behavior`; the first one where none is written.
const BEHAVIOURS: &[(&str, &str)] = &[
    (
        "polling",
        "Java, which is not there; a `task` with the same interval that injects into the sequence can poll in its place",
    ),
    ("eventBased", "Java, which is not there; who has the events can send them to a `http` inbound endpoint"),
    ("listening", "Java, which is not there; for HTTP write `protocol=\"http\"`"),
];

/// What the class of an inbound endpoint needs.
fn needs_of(class: &str, own: &config::InboundEndpoint) -> &'static str {
    let last = class.rsplit('.').next().unwrap_or(class);
    let of_wso2 = CLASSES.iter().find(|(name, _)| *name == last).map(|(_, needs)| *needs);
    let behaviour = own.parameters.iter().rev().find(|one| one.name == "inbound.behavior");
    let behaviour = behaviour.and_then(|one| one.value.text()).map(str::trim);
    let mut by_behaviour = BEHAVIOURS.iter().filter(|(name, _)| Some(*name) == behaviour);
    of_wso2.unwrap_or_else(|| by_behaviour.next().unwrap_or(&BEHAVIOURS[0]).1)
}

/// Compiles an inbound endpoint; `None` after a recorded error. `ports`: those that are taken, with the names of whom.
pub(super) fn compile(
    own: &config::InboundEndpoint,
    ports: &[(u16, String)],
    compiler: &mut Compiler<'_>,
) -> Option<InboundEndpoint> {
    let written = own.protocol.as_ref().map(|protocol| protocol.value.as_str());
    let protocol = match (PROTOCOLS.iter().find(|known| Some(known.name) == written), written) {
        (Some(protocol), _) => protocol,
        (None, Some("file")) => return files(own, compiler),
        (None, None) if own.class.as_ref().is_some_and(|class| vfs::is_class(class)) => {
            return files(own, compiler);
        }
        (None, protocol) => {
            let (message, span) = match protocol.zip(own.protocol.as_ref()) {
                Some((protocol, key)) => {
                    let needs = OTHERS.iter().find(|(name, _)| *name == protocol);
                    let needs = needs.map_or("what is not there", |(_, needs)| *needs);
                    (format!("an inbound endpoint of the protocol `{protocol}` needs {needs}"), key.span)
                }
                None => {
                    let class = own.class.as_ref();
                    let name = class.map_or("", |class| class.value.as_str());
                    let needs = needs_of(name, own);
                    let message = format!("an inbound endpoint of the class `{name}` needs {needs}");
                    (message, class.map_or(own.span, |class| class.span))
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
    let reader = Reader { own, protocol };
    reader.check_names(compiler);
    let port = reader.port(ports, compiler);
    let filter = reader.filter(compiler);
    let tls = if secure { Some(reader.tls(compiler)?) } else { None };
    let text_type = reader.text(TEXT_TYPE, compiler).map_or_else(|| "text/plain".to_owned(), |key| key.value);
    let audience = reader.audience(compiler);
    let sequence = own.sequence.as_ref().map(|key| compiler.sequence_key(key));
    if sequence.is_none() && matches!(filter, Some(Filter::None)) {
        let label = "add `sequence`, or the parameter `dispatch.filter.pattern`; only APIs that are bound to it get requests";
        let message = "the inbound endpoint has no sequence";
        compiler.warning("missing-attribute", message, own.span, label);
    }
    let on_error = own.on_error.as_ref().and_then(|key| compiler.handler(key));
    let mut hasher = DefaultHasher::new();
    (own.suspend, port).hash(&mut hasher);
    let name = own.name.value.clone();
    Some(InboundEndpoint {
        span: own.span,
        port: Some(port?),
        source: None,
        tls,
        websocket: protocol.websocket,
        text_type,
        audience: audience?,
        activation: compiler.services.states.get(compiler.artifact_identity()),
        written: (!own.suspend, hasher.finish()),
        sequence,
        on_error,
        trace: own.trace,
        counters: compiler.services.metrics.counters("inbound", &name),
        filter: filter?,
        name,
    })
}

/// One that takes files; `None` after a recorded error.
fn files(own: &config::InboundEndpoint, compiler: &mut Compiler<'_>) -> Option<InboundEndpoint> {
    let source = vfs::of_inbound(own, compiler);
    for handler in &own.handlers {
        let message = format!("the handler `{handler}` is not executable here");
        compiler.error("unsupported-artifact", message, handler.span, "handlers are classes of Java");
    }
    let sequence = own.sequence.as_ref().map(|key| compiler.sequence_key(key));
    if sequence.is_none() {
        let message = "the inbound endpoint has no sequence";
        compiler.error("missing-attribute", message, own.span, "its files would go nowhere: add `sequence`");
    }
    let on_error = own.on_error.as_ref().and_then(|key| compiler.handler(key));
    let source = source?;
    Some(InboundEndpoint {
        span: own.span,
        port: None,
        tls: None,
        websocket: false,
        text_type: String::new(),
        audience: Audience::Client,
        activation: Arc::clone(&source.activation),
        written: (!own.suspend, source.definition),
        sequence,
        on_error,
        trace: own.trace,
        counters: Arc::clone(&source.counters),
        filter: Filter::None,
        name: own.name.value.clone(),
        source: Some(Arc::new(source)),
    })
}

/// Reads the parameters of an inbound endpoint.
struct Reader<'a> {
    own: &'a config::InboundEndpoint,
    protocol: &'static Protocol,
}

impl Reader<'_> {
    fn value(&self, name: &str) -> Option<&ParameterValue> {
        self.own.parameters.iter().rev().find(|own| own.name == name).map(|own| &own.value)
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
        for parameter in &self.own.parameters {
            let name = parameter.name.as_str();
            if !seen.insert(name) {
                let message = format!("the parameter `{name}` is there twice");
                compiler.warning("duplicate-parameter", message, parameter.span, "this one counts");
            }
            if let Some((_, why)) = NOT_NEEDED.iter().find(|(own, _)| *own == name) {
                let message = format!("the parameter `{name}` has no effect");
                let note = Diagnostic::new("not-needed", Severity::Note, message);
                compiler.diagnostics.push(note.at(parameter.span, *why));
            } else if let Some((_, why)) = FRAMES.iter().find(|(own, _)| websocket && *own == name) {
                let message = format!("the parameter `{name}` has no effect");
                compiler.warning("ignored-parameter", message, parameter.span, *why);
            } else if name != port
                && !PARAMETERS.contains(&name)
                && !(websocket && [TEXT_TYPE, AUDIENCE].contains(&name))
            {
                let message = format!("an inbound endpoint has no parameter `{name}`");
                let all =
                    PARAMETERS.iter().chain(NOT_NEEDED.iter().map(|(own, _)| own)).copied().chain([port]);
                let warning = Diagnostic::warning("unknown-parameter", message);
                compiler
                    .diagnostics
                    .push(warning.at(parameter.span, "this has no effect").did_you_mean(name, all));
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
        for handler in &self.own.handlers {
            let message = format!("the handler `{handler}` is not executable here");
            compiler.error("unsupported-artifact", message, handler.span, "handlers are classes of Java");
        }
    }

    fn port(&self, ports: &[(u16, String)], compiler: &mut Compiler<'_>) -> Option<u16> {
        let name = self.protocol.port;
        let Some(key) = self.text(name, compiler) else {
            let message = format!("the inbound endpoint needs the parameter `{name}`");
            let names = self.own.parameters.iter().map(|own| own.name.as_str());
            let error =
                Diagnostic::error("missing-parameter", message).at(self.own.span, "the port to listen on");
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
                let message = format!("`{pattern}` is no valid regular expression");
                compiler.error("bad-pattern", message, pattern.span, why);
                None
            }
        }
    }

    /// The certificate of the key store, where that is PEM; else that of the bus. `None` after a recorded error: where clients have
    /// to show certificates, and nobody would look at them.
    fn tls(&self, compiler: &mut Compiler<'_>) -> Option<Tls> {
        let root = compiler.configuration.root.clone();
        let client_verify = self.client_verify(compiler)?;
        let certificates = self.store("keystore", compiler)?.and_then(|keystore| {
            let certificates = store_file(keystore, &root, compiler)?;
            let key = keystore.child("KeyLocation").map(|own| own.text().trim().to_owned());
            let key = key.filter(|own| !own.is_empty()).map(|own| root.join(own));
            Some((key.unwrap_or_else(|| certificates.clone()), certificates))
        });
        let client_roots =
            self.store("truststore", compiler)?.and_then(|store| store_file(store, &root, compiler));
        let verifies = client_verify != ClientVerify::None;
        let lacking = match (&certificates, &client_roots) {
            _ if !verifies => None,
            (None, _) => Some("a `keystore` that is PEM"),
            (_, None) => Some("a `truststore` that is PEM, with the authorities of clients"),
            _ => None,
        };
        if let Some(lacking) = lacking {
            let span = self.text("SSLVerifyClient", compiler).map_or(self.own.span, |key| key.span);
            let message = format!("certificates of clients cannot be checked without {lacking}");
            let label = "expected none, or such a store; else everybody would be let in";
            compiler.error("missing-parameter", message, span, label);
            return None;
        }
        let Some((key, certificates)) = certificates else { return Some(Tls::OfBus) };
        let own = ServerTlsOptions { key, certificates, client_roots, client_verify, http1_only: false };
        Some(Tls::Own(own))
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
                let span = self.own.parameters.iter().rev().find(|own| own.name == name).map(|own| own.span);
                let message = format!("the parameter `{name}` is an element");
                let label = "expected a store: <KeyStore><Location>FILE.pem</Location></KeyStore>";
                compiler.error("bad-value", message, span.unwrap_or(self.own.span), label);
                None
            }
        }
    }
}

/// The file of a key store or trust store; `None` (recorded): it is none that can be read.
fn store_file(store: &Element, root: &Path, compiler: &mut Compiler<'_>) -> Option<PathBuf> {
    let child = |name: &str| {
        store.child(name).map(|own| own.text().trim().to_owned()).filter(|text| !text.is_empty())
    };
    let Some(location) = child("Location") else {
        let message = format!("`{}` has no `Location`", store.local());
        compiler.error("missing-element", message, store.span(), "the file of the store");
        return None;
    };
    let is_pem = child("Type").is_some_and(|kind| kind.eq_ignore_ascii_case("PEM"))
        || [".pem", ".crt", ".cer"].iter().any(|end| location.ends_with(end));
    if !is_pem {
        let is_there = root.join(&location).exists();
        let why = if is_there { "it is no PEM" } else { "it is no PEM, and there is no such file" };
        let message = format!("the store `{location}` cannot be read: {why}");
        let label = "the certificate of the setting `[tls]` is used; for one of its own: `openssl pkcs12 -in STORE.p12 -nodes -out STORE.pem` (`keytool -importkeystore -deststoretype PKCS12` first, for JKS)";
        compiler.warning("unsupported-keystore", message, store.span(), label);
        return None;
    }
    Some(root.join(location))
}

#[cfg(test)]
mod tests {
    use crate::testing::{self, Tested};

    fn tested(inside: &str) -> Tested {
        let registry = testing::registry(Vec::new());
        let text =
            format!("<definitions xmlns='{}'>{inside}<sequence name='S'/></definitions>", config::SYNAPSE);
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
            // Nobody is let in because a store cannot be read.
            (
                "protocol='https'",
                format!("{port}{}", parameter("SSLVerifyClient", "require")),
                "missing-parameter: certificates of clients cannot be checked without a `keystore` that is PEM",
                "else everybody would be let in",
            ),
            (
                "protocol='https'",
                format!(
                    "{port}{}{}",
                    parameter("keystore", "<KeyStore><Location>a.jks</Location></KeyStore>"),
                    parameter("SSLVerifyClient", "Optional")
                ),
                "missing-parameter: certificates of clients cannot be checked without a `keystore` that is PEM",
                "else everybody would be let in",
            ),
            (
                "protocol='https'",
                format!(
                    "{port}{}{}",
                    parameter("keystore", "<KeyStore><Location>a.pem</Location></KeyStore>"),
                    parameter("SSLVerifyClient", "REQUIRE")
                ),
                "missing-parameter: certificates of clients cannot be checked without a `truststore` that is PEM",
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
                "bad-pattern: `(` is no valid regular expression",
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
                "unsupported-keystore: the store `a.jks` cannot be read: it is no PEM, and there is no such file",
                "openssl pkcs12",
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
            assert!(tested.reasons.iter().any(|own| own.contains(label)), "{inside}: {:?}", tested.reasons);
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
            plan.inbound_endpoints().iter().map(|own| (own.name.as_str(), own.port)).collect();
        assert_eq!(ports, [("A", Some(8285)), ("C", Some(8286))]);
    }
}
