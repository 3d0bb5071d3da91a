//! WS-Security of proxy services and endpoints (`enableSec`): a stage nearest to the wire. What comes in is decrypted, verified and held
//! against the policy before anything else sees it; what goes out is sealed when it is written, so that nothing changes it any more.

use bytes::Bytes;
use config::{PolicyDirection, Value};
use diagnostics::Span;
use flow::compute::{ALWAYS, once_on};
use flow::endpoint::Outgoing;
use flow::stage::{Refusal, Stage, Staged, Stages, Way};
use flow::{Client, Compiler, Context, Fault, Need, SecuredService, roles};
use jiff::Timestamp;
use message::{Envelope, Kind, Reading};
use rustls_pki_types::CertificateDer;
use security::algorithm::Secret;
use security::keys::{KeyStore, Trust};
use security::policy::{Binding, REQUEST_SIGNER};
use security::{Certificate, Environment, Exchange, Failure, FailureKind, Policy, Replays, Role, Side};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use xml::{Document, ParseOptions};

/// Largest key store, in bytes.
const LARGEST: u64 = 4 << 20;

/// Secures messages of one service or one endpoint.
struct Secured {
    role: Role,
    /// For requests.
    request: Option<Arc<Side>>,
    /// For answers.
    answer: Option<Arc<Side>>,
    /// The roles of which users of a service must have one, beside those of its policy (`allowRoles`).
    roles: Arc<[String]>,
}

/// What a request leaves for its answer, with the message: of a service, and of an endpoint, which may both be on the way of one message.
struct OfService(Mutex<Exchange>);
struct OfEndpoint(Mutex<Exchange>);

fn lock(exchange: &Mutex<Exchange>) -> std::sync::MutexGuard<'_, Exchange> {
    exchange.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Secured {
    /// The side for messages that go this way.
    fn side(&self, way: Way) -> Option<&Arc<Side>> {
        match (self.role, way) {
            (Role::Recipient, Way::In) | (Role::Initiator, Way::Out) => self.request.as_ref(),
            (Role::Recipient, Way::Out) | (Role::Initiator, Way::In) => self.answer.as_ref(),
        }
    }
}

impl Stage for Secured {
    fn name(&self) -> &'static str {
        "WS-Security"
    }

    fn need(&self, _: Way) -> Need {
        Need::Whole
    }

    fn reason(&self, way: Way) -> &'static str {
        match (self.side(way), way) {
            (None, _) => "",
            (Some(_), Way::In) => "enableSec: the message is decrypted and verified as the policy says",
            (Some(_), Way::Out) => "enableSec: the message is signed and encrypted as the policy says",
        }
    }

    fn passes(&self, way: Way, _: &Context) -> bool {
        self.side(way).is_none()
    }

    fn comes_in<'a>(&'a self, context: &'a mut Context) -> Staged<'a> {
        let Some(side) = self.side(Way::In).cloned() else { return Box::pin(async { Ok(()) }) };
        Box::pin(async move {
            let (with, allowed) = (Arc::clone(&side), Arc::clone(&self.roles));
            // RSA takes a millisecond, however small the message is.
            let came = once_on(context, ALWAYS, move |context| match with.role {
                Role::Recipient => open_service(&with, &allowed, context),
                Role::Initiator => open_endpoint(&with, context),
            });
            let Some(came) = came.await? else { return Ok(()) };
            // The flow sees nothing of a message whose signer is revoked.
            came.is_not_revoked(&side, context).await?;
            came.take_over(context);
            Ok(())
        })
    }

    fn goes_out(&self, context: &mut Context, to: Option<&Outgoing>) -> Result<(), Fault> {
        // Answers to services are SOAP, whatever a backend answered.
        let soap = matches!(context.payload.reading().kind, Kind::Soap11 | Kind::Soap12);
        if to.is_none() && !context.payload.is_empty() && (!soap || context.payload.reading().rest) {
            context.envelope_mut()?;
        }
        Ok(())
    }

    fn seals(&self) -> bool {
        true
    }

    fn lets_attachments_pass(&self) -> bool {
        self.side(Way::Out).is_none_or(|side| !side.policy.signs() && !side.policy.encrypts())
    }

    fn seal(&self, context: &mut Context, written: Bytes) -> Result<Bytes, Fault> {
        let Some(side) = self.side(Way::Out) else { return Ok(written) };
        if written.is_empty() {
            return Ok(written);
        }
        let no = |why: &dyn std::fmt::Display| Fault::new(format!("the message cannot be secured: {why}"));
        let mut document = Document::parse(written, &side.parse).map_err(|why| no(&why))?;
        let environment = Surroundings::of(context);
        match self.role {
            Role::Recipient => {
                let exchange =
                    context.attached::<OfService>().ok_or_else(|| no(&"its request is not known"))?;
                let done = security::secure(
                    &mut document,
                    side,
                    &mut lock(&exchange.0),
                    &environment.get(&password_of(context)),
                );
                done.map_err(|why| no(&why))?;
            }
            Role::Initiator => {
                let mut exchange = Exchange::default();
                let done = security::secure(
                    &mut document,
                    side,
                    &mut exchange,
                    &environment.get(&password_of(context)),
                );
                done.map_err(|why| no(&why))?;
                context.attach(Arc::new(OfEndpoint(Mutex::new(exchange))));
            }
        }
        let mut out = Vec::with_capacity(document.source().len() * 2 + 8192);
        xml::write(&document, Document::ROOT, &xml::WriteOptions::default(), &mut out);
        Ok(out.into())
    }
}

/// A message that is as its policy asks for.
struct Came {
    envelope: Envelope,
    user: Option<String>,
    /// Whose certificate it was signed with, and what came with that.
    signer: Option<Arc<Certificate>>,
    between: Vec<Vec<u8>>,
    /// Who endorsed it, and what came with that.
    endorser: Option<(Arc<Certificate>, Vec<Vec<u8>>)>,
    /// Of the request to a service, for its answer.
    exchange: Option<Exchange>,
}

impl Came {
    /// Asks whether the certificates of those who signed are revoked, where the settings say so.
    async fn is_not_revoked(&self, side: &Side, context: &mut Context) -> Result<(), Fault> {
        let Some(ocsp) = context.services().settings.security.ocsp.clone() else { return Ok(()) };
        let signers = self.signer.iter().map(|signer| (signer, &self.between));
        let endorsers = self.endorser.iter().map(|(endorser, between)| (endorser, between));
        for (signer, between) in signers.chain(endorsers) {
            let between: Vec<CertificateDer<'_>> =
                between.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
            let checked = ocsp.servers.check(&signer.der, &between, side.trust.anchors(), ocsp.hard).await;
            checked.map_err(|why| {
                let why = format!("{} signed it: {why}", signer.subject);
                match side.role {
                    Role::Recipient => refused(context, &Failure::invalid(why)),
                    Role::Initiator => unsecured(&why),
                }
            })?;
        }
        Ok(())
    }

    fn take_over(self, context: &mut Context) {
        if let Some(exchange) = self.exchange {
            if context.inbound.client != Client::Soap(self.envelope.version) {
                let mut inbound = (*context.inbound).clone();
                inbound.client = Client::Soap(self.envelope.version);
                context.inbound = Arc::new(inbound);
            }
            if let Some(user) = self.user {
                context.properties.set("WS_SECURITY_USER", message::Value::from(user));
            }
            if let Some(signer) = &self.signer {
                context.properties.set("WS_SECURITY_SIGNER", message::Value::from(signer.subject.clone()));
            }
            if let Some((endorser, _)) = &self.endorser {
                let subject = message::Value::from(endorser.subject.clone());
                context.properties.set("WS_SECURITY_ENDORSER", subject);
            }
            context.attach(Arc::new(OfService(Mutex::new(exchange))));
        }
        context.payload.set_envelope(self.envelope);
    }
}

/// What is around a message.
struct Surroundings {
    now: Timestamp,
    replays: Arc<Replays>,
    secure: bool,
    client_certificate: bool,
}

impl Surroundings {
    fn of(context: &Context) -> Surroundings {
        Surroundings {
            now: Timestamp::now(),
            replays: context.services().kept.get::<Replays>(),
            secure: context.inbound.secure,
            client_certificate: context
                .inbound
                .tls
                .as_ref()
                .is_some_and(|tls| !tls.client_certificates.is_empty()),
        }
    }

    fn get<'a>(&'a self, password: &'a dyn Fn(&str) -> Option<Secret>) -> Environment<'a> {
        Environment {
            now: self.now,
            password,
            replays: &self.replays,
            secure: self.secure,
            client_certificate: self.client_certificate,
        }
    }
}

/// The passwords of `http.users`.
fn password_of(context: &Context) -> impl Fn(&str) -> Option<Secret> + 'static {
    let services = Arc::clone(context.services());
    move |user| services.settings.users.get(user).map(|password| Secret::new(password.clone().into_bytes()))
}

/// The envelope of a message, out of it, and nothing else: a signature covers no attachments, so that anybody may have added them. The client may have said that it speaks REST by not saying a SOAPAction: here it speaks SOAP.
fn taken(side: &Side, context: &mut Context) -> Result<Document, Fault> {
    let reading = context.payload.reading();
    if reading.rest
        && matches!(reading.kind, Kind::Soap11 | Kind::Xml)
        && let Some(bytes) = context.payload.bytes().cloned()
    {
        context.payload.set_bytes(bytes, Reading { rest: false, kind: Kind::Soap11, ..reading });
    }
    let document = std::mem::take(&mut context.envelope_mut()?.document);
    match side.policy.signs() && context.payload.has_attachments() {
        true => Err(Fault::new("the message has attachments, which its signature does not cover")),
        false => Ok(document),
    }
}

/// The fault of a service, of which the client learns no more than its kind.
fn refused(context: &mut Context, failure: &Failure) -> Fault {
    let (code, reason) = match failure.kind {
        FailureKind::Invalid => {
            ("InvalidSecurity", "An error was discovered processing the <wsse:Security> header")
        }
        FailureKind::Authentication => {
            ("FailedAuthentication", "The security token could not be authenticated or authorized")
        }
    };
    context.attach(Arc::new(Refusal { namespace: security::names::WSSE, prefix: "wsse", code, reason }));
    Fault::new(format!("WS-Security: {failure}"))
}

/// The fault of an endpoint.
fn unsecured(why: &str) -> Fault {
    let fault = Fault::new(format!("the answer is not secured as the policy asks for: {why}"));
    Fault { sending: true, processed: true, ..fault }
}

fn open_service(side: &Arc<Side>, allowed: &[String], context: &mut Context) -> Result<Option<Came>, Fault> {
    let document = match taken(side, context) {
        Ok(document) => document,
        Err(fault) if fault.status != 500 => return Err(fault),
        Err(fault) => return Err(refused(context, &Failure::invalid(fault.message))),
    };
    let mut exchange = Exchange::default();
    let surroundings = Surroundings::of(context);
    let opened = security::open(document, side, &mut exchange, &surroundings.get(&password_of(context)));
    let opened = match opened {
        Ok(opened) => opened,
        Err(failure) => return Err(refused(context, &failure)),
    };
    let envelope = match Envelope::of_document(opened.document) {
        Ok(envelope) => envelope,
        Err(why) => return Err(refused(context, &Failure::invalid(why))),
    };
    let security::Opened { user, signer, between, endorser, .. } = opened;
    for wanted in [&side.policy.config.roles, allowed].into_iter().filter(|wanted| !wanted.is_empty()) {
        let roles = user.as_ref().map(|user| roles::of_user(user, &context.services().settings));
        if !roles::suffice(&roles.unwrap_or_default(), wanted) {
            let why = format!("the user has none of the roles {}", wanted.join(", "));
            return Err(refused(context, &Failure::authentication(why)));
        }
    }
    Ok(Some(Came { envelope, user, signer, between, endorser, exchange: Some(exchange) }))
}

fn open_endpoint(side: &Arc<Side>, context: &mut Context) -> Result<Option<Came>, Fault> {
    let failed = |why: String| unsecured(&why);
    // An answer to a one-way message has nothing in it that could be wrong.
    if context.payload.is_empty() || context.payload.bytes().is_some_and(|bytes| bytes.is_empty()) {
        return Ok(None);
    }
    let exchange =
        context.detach::<OfEndpoint>().ok_or_else(|| failed("its request is not known".to_owned()))?;
    let document = taken(side, context).map_err(|fault| failed(fault.message))?;
    let fault_reason = unsecured_fault(&document);
    let surroundings = Surroundings::of(context);
    let opened =
        security::open(document, side, &mut lock(&exchange.0), &surroundings.get(&password_of(context)));
    let opened = opened.map_err(|why| match fault_reason {
        Some(fault_reason) => failed(format!("{why}; it is a fault: {fault_reason}")),
        None => failed(why.to_string()),
    })?;
    let envelope = Envelope::of_document(opened.document).map_err(failed)?;
    let security::Opened { user, signer, between, endorser, .. } = opened;
    Ok(Some(Came { envelope, user, signer, between, endorser, exchange: None }))
}

/// The reason of a fault that came instead of an answer.
fn unsecured_fault(document: &Document) -> Option<String> {
    let root = document.document_element()?;
    let child = |node, local: &str| document.children(node).find(|&child| document.local(child) == local);
    let fault = child(child(root, "Body")?, "Fault")?;
    let reason = child(fault, "faultstring").or_else(|| child(fault, "Reason"))?;
    Some(document.string_value(reason).trim().chars().take(200).collect())
}

/// The stage of a service.
pub(crate) fn service(service: &SecuredService<'_>, compiler: &mut Compiler<'_>) -> Option<Stages> {
    let closed = "left out: without its security it would be open to everybody";
    let mut way = |direction: PolicyDirection| {
        let mut policies =
            service.policies.iter().filter(|policy| policy.direction.is_none_or(|given| given == direction));
        let first = policies.next();
        if let Some(second) = policies.next() {
            let message = "several policies for one direction are not put together here";
            compiler.error("bad-policy", message, second.span, closed);
        }
        first
    };
    let (incoming, outgoing) = (way(PolicyDirection::In), way(PolicyDirection::Out));
    if let Some(policy) = service.policies.iter().find(|policy| policy.operation.is_some()) {
        let message = "policies of single operations are not executable here";
        compiler.error("bad-policy", message, policy.span, closed);
        return None;
    }
    let Some(incoming) = incoming else {
        let message =
            format!("the {} `{}` has `enableSec` and no policy for requests", service.kind, service.name);
        compiler.error("bad-policy", message, service.name.span, closed);
        return None;
    };
    let request = policy(&incoming.key.value, incoming.key.span, closed, compiler)?;
    let allowed = allowed(service, &request.policy, closed, compiler)?;
    if request.policy.is_none() {
        if request.policy.id == "NoSecurity" {
            return Some(Stages::new());
        }
        let message = format!("the policy `{}` asks for no security", incoming.key);
        compiler.error("bad-policy", message, incoming.key.span, closed);
        return None;
    }
    let request = side(Role::Recipient, request, incoming.key.span, closed, compiler)?;
    let answer = match outgoing {
        Some(outgoing) if outgoing.span == incoming.span => Some(Arc::clone(&request)),
        Some(outgoing) => {
            let policy = policy(&outgoing.key.value, outgoing.key.span, closed, compiler)?;
            Some(side(Role::Recipient, policy, outgoing.key.span, closed, compiler)?)
        }
        None => None,
    };
    Some(vec![Arc::new(Secured { role: Role::Recipient, request: Some(request), answer, roles: allowed })])
}

/// The roles of the parameter `allowRoles`, none where it is absent; `None` after a recorded error.
fn allowed(
    service: &SecuredService<'_>,
    request: &Policy,
    closed: &str,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<[String]>> {
    let Some(parameter) = service.roles else { return Some(Arc::default()) };
    let names: Arc<[String]> =
        config::read::names_by_comma(parameter.value.text().unwrap_or_default()).into();
    let why = if names.is_empty() {
        "expected names of roles, separated by commas".to_owned()
    } else {
        match without_user(request, &names) {
            Some(why) => why,
            None => return Some(names),
        }
    };
    let message = format!("`allowRoles` of the {} `{}` cannot be kept: {why}", service.kind, service.name);
    compiler.error("bad-policy", message, parameter.span, closed);
    None
}

/// Why users in these roles cannot be told from others, if the policy asks for no users.
fn without_user(policy: &Policy, roles: &[String]) -> Option<String> {
    let is_open = roles.is_empty() || roles::suffice(&[], roles);
    (policy.user.is_none() && !is_open).then(|| {
        let roles = roles.join(", ");
        format!(
            "it is for users in the roles {roles}, and asks for no UsernameToken that would say who the user is"
        )
    })
}

/// The stage of an endpoint.
pub(crate) fn endpoint(
    security: &config::endpoint::Security,
    span: Span,
    compiler: &mut Compiler<'_>,
) -> Option<Stages> {
    let closed = "left out: messages would go out unsecured";
    let mut of = |value: &Option<Value>| -> Option<Option<Arc<Side>>> {
        let Some(value) = value else { return Some(None) };
        let Value::Literal(key) = value else {
            let message = "a policy whose key is an expression is not known when the configuration loads";
            compiler.error("bad-policy", message, span, closed);
            return None;
        };
        let policy = policy(&key.value, key.span, closed, compiler)?;
        side(Role::Initiator, policy, key.span, closed, compiler).map(Some)
    };
    let (request, answer) = match of(&security.policy)? {
        Some(both) => (Some(Arc::clone(&both)), Some(both)),
        None => (of(&security.outbound_policy)?, of(&security.inbound_policy)?),
    };
    if request.is_none() && answer.is_none() {
        compiler.error("bad-policy", "`enableSec` names no policy", span, closed);
        return None;
    }
    let roles = Arc::default();
    Some(vec![Arc::new(Secured { role: Role::Initiator, request, answer, roles })])
}

/// A policy, and the text that it was read from.
struct Written {
    policy: Policy,
    text: Arc<[u8]>,
}

fn policy(key: &str, place: Span, closed: &str, compiler: &mut Compiler<'_>) -> Option<Written> {
    let Some(entry) = compiler.entry(key) else {
        compiler.error("bad-policy", format!("there is no policy `{key}`"), place, closed);
        return None;
    };
    match Policy::parse(&entry.bytes) {
        Ok(policy) => Some(Written { policy, text: entry.bytes }),
        Err(why) => {
            compiler.error(
                "bad-policy",
                format!("the policy `{key}` is not available: {why}"),
                place,
                closed,
            );
            None
        }
    }
}

/// A side by its role and the text of its policy.
type Kept = (Role, Arc<[u8]>, Arc<Side>);

/// The sides that could be made last. They outlive a reload.
#[derive(Default)]
struct LastSides(Mutex<Vec<Kept>>);

impl LastSides {
    /// Most of them. Where policies change all the time, the oldest is forgotten.
    const MOST: usize = 1000;

    fn get(&self, role: Role, text: &[u8]) -> Option<Arc<Side>> {
        let sides = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sides.iter().find(|(of, its, _)| *of == role && **its == *text).map(|(_, _, side)| Arc::clone(side))
    }

    fn keep(&self, role: Role, text: Arc<[u8]>, side: Arc<Side>) {
        let mut sides = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sides.retain(|(of, its, _)| *of != role || *its != text);
        if sides.len() >= LastSides::MOST {
            sides.remove(0);
        }
        sides.push((role, text, side));
    }
}

/// A side of a policy. Where its keys cannot be used any more (a key store that is just being written, a wrong password), those that could
/// be used last stay in use: the services of a bus must not end with a file.
fn side(
    role: Role,
    Written { policy, text }: Written,
    place: Span,
    closed: &str,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<Side>> {
    let last = compiler.services.kept.get::<LastSides>();
    match make_side(role, policy, compiler) {
        Ok(side) => {
            let users = &compiler.services.settings.users;
            if side.policy.user.is_some() && role == Role::Recipient && users.is_empty() {
                let message = "the policy asks for users, and none are set";
                compiler.warning("no-users", message, place, "everybody is refused: set `http.users`");
            }
            let side = Arc::new(side);
            last.keep(role, text, Arc::clone(&side));
            Some(side)
        }
        Err(why) => {
            let old = last.get(role, &text);
            if old.is_some() {
                let message = format!("the keys of a policy stay as they are: {why}");
                tracing::error!(target: "busbar::reload", "{message}");
                compiler.warning("bad-policy", message, place, "those that could be used last stay in use");
            } else {
                compiler.error("bad-policy", format!("the policy cannot be kept: {why}"), place, closed);
            }
            old
        }
    }
}

fn make_side(role: Role, policy: Policy, compiler: &Compiler<'_>) -> Result<Side, String> {
    let settings = &compiler.services.settings.security;
    let config = &policy.config;
    if role == Role::Recipient
        && let Some(why) = without_user(&policy, &config.roles)
    {
        return Err(why);
    }
    let message = matches!(policy.binding, Binding::Asymmetric { .. } | Binding::Symmetric { .. });
    let mut store = KeyStore::default();
    let mut trusted = KeyStore::default();
    let endorses = policy.endorsing.is_some();
    if message || endorses {
        let mut named = false;
        for crypto in [&config.signature_crypto, &config.encryption_crypto] {
            let of = |endings: &[&str]| {
                let mut found =
                    crypto.iter().filter(|(name, _)| endings.iter().any(|ending| name.ends_with(ending)));
                found.next().map(|(_, value)| value.as_str())
            };
            let password = of(&["keystore.password"]).unwrap_or_default();
            if let Some(file) = of(&["merlin.file", "keystore.file"]) {
                store.add(read(file.into(), password, of(&["keystore.private.password"]), compiler)?);
                named = true;
            }
            if let Some(file) = of(&["truststore.file"]) {
                trusted.add(read(
                    file.into(),
                    of(&["truststore.password"]).unwrap_or(password),
                    None,
                    compiler,
                )?);
            }
        }
        if let (false, Some(file)) = (named, &settings.keystore) {
            store = read(file.clone(), &settings.password, settings.key_password.as_deref(), compiler)?;
        } else if !named && (message || role == Role::Initiator) {
            return Err(
                "there is no key store: set `security.keystore`, or name one in its RampartConfig".to_owned()
            );
        }
        if let (true, Some(file)) = (trusted.certificates.is_empty(), &settings.truststore) {
            trusted = read(file.clone(), &settings.trust_password, None, compiler)?;
        }
    }
    let mut revoked = Vec::new();
    for file in &settings.revoked {
        let bytes = bytes_of(file.clone(), compiler)?;
        revoked.push(bytes);
    }
    if trusted.certificates.is_empty() {
        trusted.certificates.clone_from(&store.certificates);
    } else {
        store.certificates.extend(trusted.certificates.iter().cloned());
    }
    let trust = Trust::new(&trusted, &revoked)?;
    let aliases = [config.certificate.as_str(), config.user.as_str(), settings.alias.as_str(), ""];
    let identity = aliases.iter().find_map(|alias| store.identity(alias)).cloned();
    if !config.certificate.is_empty()
        && store.identity(&config.certificate).is_none()
        && (message || endorses)
    {
        return Err(format!("the key store has no private key `{}`", config.certificate));
    }
    let signs = policy.signs() && matches!(policy.binding, Binding::Asymmetric { .. });
    let decrypts = message && (role == Role::Recipient || signs);
    let endorses_here = endorses && role == Role::Initiator;
    if (decrypts || endorses_here) && identity.is_none() {
        return Err("no private key is there for it: where there are several, name one with `security.alias` or `userCertAlias`".to_owned());
    }
    if let Some(identity) = identity.as_ref().filter(|_| signs || endorses_here)
        && !identity.certificate.may_sign()
    {
        return Err(format!(
            "the certificate of the private key {} has no key usage digitalSignature: nobody here would accept its signatures",
            identity.alias
        ));
    }
    if role == Role::Recipient && (signs || endorses) && trusted.certificates.is_empty() {
        return Err("no certificate is trusted, so nobody could sign: set `security.truststore`".to_owned());
    }
    let for_peer = policy.encrypts() || matches!(policy.binding, Binding::Symmetric { .. });
    let encrypt_for = config.encrypt_for.as_str();
    let peer = match encrypt_for {
        "" | REQUEST_SIGNER => match (role, trusted.certificates.as_slice()) {
            // The only one there is.
            (Role::Initiator, [(_, only)]) => Some(Arc::clone(only)),
            _ => None,
        },
        // Configurations of keys are copied from policy to policy: this one encrypts nothing.
        alias if !for_peer => store.certificate(alias).cloned(),
        alias => Some(
            store
                .certificate(alias)
                .cloned()
                .ok_or_else(|| format!("no certificate `{alias}` is there to encrypt for"))?,
        ),
    };
    if role == Role::Initiator && for_peer && peer.is_none() {
        return Err(
            "it is not said for whom to encrypt: `encryptionUser` of its RampartConfig names a certificate"
                .to_owned(),
        );
    }
    if role == Role::Initiator && policy.user.is_some() && config.user.is_empty() {
        return Err("it asks for a user, and `user` of its RampartConfig names none".to_owned());
    }
    let parse = ParseOptions { limits: compiler.services.limits.xml.clone(), ..ParseOptions::default() };
    Ok(Side {
        role,
        policy: Arc::new(policy),
        store: Arc::new(store),
        trust: Arc::new(trust),
        own: identity,
        peer,
        parse,
    })
}

fn bytes_of(file: PathBuf, compiler: &Compiler<'_>) -> Result<Vec<u8>, String> {
    let path = if file.is_absolute() { file } else { compiler.configuration.root.join(file) };
    let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let bytes = config::read_file(&path).map_err(|why| failed(&why))?;
    if bytes.len() as u64 > LARGEST {
        return Err(failed(&"it is too large"));
    }
    Ok(bytes)
}

fn read(
    file: PathBuf,
    password: &str,
    key_password: Option<&str>,
    compiler: &Compiler<'_>,
) -> Result<KeyStore, String> {
    let name = file.display().to_string();
    let bytes = bytes_of(file, compiler)?;
    KeyStore::read(&bytes, password, key_password).map_err(|why| format!("the key store {name}: {why}"))
}
