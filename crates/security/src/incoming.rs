//! Messages that come in: the security header is read, what is encrypted decrypted, the signature verified, and all of it held
//! against the policy.
//!
//! What is signed is identified by its node, never by its id: the body that the flow sees is the very node that was digested. Whatever fails,
//! the other side learns only that something failed, and a key that cannot be decrypted is replaced by a random one, so that it takes as long.

use crate::algorithm::{Cipher, Digest, Secret, Signing, Transport, is_mac, p_sha1, random, sha1};
use crate::base64;
use crate::certificate::Certificate;
use crate::failure::Failure;
use crate::keys::Identity;
use crate::names::*;
use crate::policy::{Binding, Layout, Parts};
use crate::replay::Marks;
use crate::side::{Environment, Exchange, Places, Role, Side, elements};
use jiff::{SignedDuration, Timestamp};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use xml::c14n::{Algorithm, Options, canonicalize_to};
use xml::{Document, NodeId, NodeKind};

/// Most elements in a security header, references of a signature, and encrypted parts.
const MOST: usize = 64;
/// How deep references to tokens may lead to one another.
const DEEPEST: usize = 4;
/// How many times larger than the message the digested bytes may be, and how many may come on top of that.
const AMPLIFIED: usize = 4;
const SPARE: usize = 1 << 20;
/// Longest derived key, and how far into the stream it may begin.
const LONGEST_DERIVED: usize = 256;

/// A message that was accepted.
#[derive(Debug)]
pub struct Opened {
    /// The envelope without its security header, decrypted.
    pub document: Document,
    /// What its security was based on, for the log.
    pub user: Option<String>,
    /// Who signed it.
    pub signer: Option<Arc<Certificate>>,
}

/// Opens a message.
///
/// # Errors
/// It is not what the policy asks for.
pub fn open(
    document: Document,
    side: &Side,
    exchange: &mut Exchange,
    environment: &Environment<'_>,
) -> Result<Opened, Failure> {
    if side.policy.is_none() {
        return Ok(Opened { document, user: None, signer: None });
    }
    if let Binding::Transport { client_certificate } = side.policy.binding
        && side.role == Role::Recipient
    {
        if !environment.secure {
            return Err(Failure::invalid("the policy asks for https"));
        }
        if client_certificate && !environment.client_certificate {
            return Err(Failure::invalid("the policy asks for a certificate of the client"));
        }
    }
    let places = Places::of(&document)?;
    let security = security_header(&document, places)?;
    let budget = document.source().len().saturating_mul(AMPLIFIED).saturating_add(SPARE);
    let Some(security) = security else {
        // An answer may have no header where nothing in it is secured.
        let nothing = matches!(side.policy.binding, Binding::Transport { .. } | Binding::None)
            && !side.policy.timestamp
            && (side.policy.user.is_none() || side.role == Role::Initiator);
        if nothing {
            return Ok(Opened { document, user: None, signer: None });
        }
        return Err(Failure::invalid("the message has no wsse:Security header"));
    };
    let commented = memchr::memmem::find(document.source(), b"<!--").is_some();
    let mut work = Work {
        document,
        places,
        security,
        side,
        exchange,
        environment,
        budget,
        secrets: HashMap::new(),
        signed: HashSet::new(),
        encrypted: HashSet::new(),
        signature: None,
        timestamp: None,
        user: None,
        confirmations: Vec::new(),
        decrypted: 0,
        key_ciphers: Vec::new(),
        commented,
    };
    work.header()?;
    let marks = work.check()?;
    environment.replays.take(&marks, environment.now).map_err(Failure::invalid)?;
    let user = work.user.as_ref().map(|(_, user)| user.clone());
    let mut signer = None;
    if let Some(signature) = work.signature.take() {
        signer = signature.certificate;
        if side.role == Role::Recipient {
            work.exchange.signatures.push(signature.value);
        }
    }
    let mut document = work.finish();
    if let Some(header) = places.header
        && elements(&document, header).is_empty()
    {
        document.detach(header);
    }
    if side.role == Role::Recipient {
        exchange.signer = signer.clone();
        exchange.user = user.clone();
    }
    Ok(Opened { document, user, signer })
}

/// The header for this node, the ultimate receiver.
fn security_header(document: &Document, places: Places) -> Result<Option<NodeId>, Failure> {
    let soap = document.namespace(places.root);
    let Some(header) = places.header else { return Ok(None) };
    let mut found = None;
    for node in elements(document, header) {
        if !document.is_element(node, WSSE, "Security") {
            continue;
        }
        let actor =
            document.attribute(node, soap, "actor").or_else(|| document.attribute(node, soap, "role"));
        let for_us = matches!(
            actor.unwrap_or_default(),
            "" | "http://schemas.xmlsoap.org/soap/actor/next"
                | "http://www.w3.org/2003/05/soap-envelope/role/next"
                | "http://www.w3.org/2003/05/soap-envelope/role/ultimateReceiver"
        );
        if for_us && found.replace(node).is_some() {
            return Err(Failure::invalid("there is more than one wsse:Security header"));
        }
    }
    Ok(found)
}

/// Whether a certificate is the one that a reference names.
type IsCertificate<'a> = dyn Fn(&Certificate) -> bool + 'a;

/// A signature that was verified.
struct Signature {
    value: Vec<u8>,
    /// Who made it; `None`: its key is one that both sides have.
    certificate: Option<Arc<Certificate>>,
}

/// What a reference leads to.
#[derive(Clone)]
enum Key {
    /// A certificate, with those between it and who issued it.
    Certificate(Vec<u8>, Vec<Vec<u8>>),
    /// A key that both sides have; `None`: it could not be decrypted.
    Secret(Option<Secret>),
}

struct Work<'a> {
    document: Document,
    places: Places,
    security: NodeId,
    side: &'a Side,
    exchange: &'a mut Exchange,
    environment: &'a Environment<'a>,
    /// Bytes that may still be digested.
    budget: usize,
    secrets: HashMap<NodeId, Option<Secret>>,
    signed: HashSet<NodeId>,
    /// Elements that were encrypted as a whole (`true`), or whose content was (`false`).
    encrypted: HashSet<(NodeId, bool)>,
    signature: Option<Signature>,
    timestamp: Option<(NodeId, Timestamp, Timestamp)>,
    user: Option<(NodeId, String)>,
    confirmations: Vec<(NodeId, Option<Vec<u8>>)>,
    decrypted: usize,
    key_ciphers: Vec<Vec<u8>>,
    /// Comments are allowed.
    commented: bool,
}

/// One error for everything that cannot be decrypted: the log does not tell more either, so that no timing of it does.
fn undecryptable() -> Failure {
    Failure::invalid("something in the message cannot be decrypted")
}

/// A time as XML Schema writes it.
fn time(text: &str) -> Option<Timestamp> {
    text.trim().parse().ok()
}

impl Work<'_> {
    fn child(&self, node: NodeId, namespace: &str, local: &str) -> Option<NodeId> {
        let mut found = elements(&self.document, node)
            .into_iter()
            .filter(|&child| self.document.is_element(child, namespace, local));
        let first = found.next();
        // Two elements of one kind are ambiguous.
        first.filter(|_| found.next().is_none())
    }

    fn text(&self, node: NodeId) -> Cow<'_, str> {
        self.document.string_value(node)
    }

    /// The element of an id, if there is exactly one.
    fn by_id(&self, id: &str) -> Result<NodeId, Failure> {
        if id.is_empty() {
            return Err(Failure::invalid("a reference leads nowhere"));
        }
        let document = &self.document;
        let mut found = None;
        // Ids of XML Signature and XML Encryption have no namespace; an `Id` of the application does not count.
        for namespace in [WSU, ""] {
            let Some(name) = document.find_name(namespace, "Id") else { continue };
            let (mut from, end) = (0, document.node_count());
            while let Some(attribute) = document.named_in(from, end, NodeKind::Attribute, name) {
                from = attribute.index() + 1;
                let Some(node) = document.parent(attribute).filter(|_| document.text(attribute) == id) else {
                    continue;
                };
                let is_ours = namespace == WSU || matches!(document.namespace(node), DS | XENC);
                if is_ours && document.root_of(node) == Document::ROOT && found.replace(node).is_some() {
                    return Err(Failure::invalid(format!("two elements have the id {}", shortened(id))));
                }
            }
        }
        found.ok_or_else(|| Failure::invalid(format!("nothing has the id {}", shortened(id))))
    }

    fn by_reference(&self, uri: Option<&str>) -> Result<NodeId, Failure> {
        match uri.and_then(|uri| uri.strip_prefix('#')) {
            Some(id) if !id.starts_with("xpointer(") => self.by_id(id),
            _ => Err(Failure::invalid("a reference leads out of the message")),
        }
    }

    /// Processes everything in the header, in order. What is decrypted takes the place of the encrypted element and is processed in turn.
    fn header(&mut self) -> Result<(), Failure> {
        let mut done = HashSet::new();
        let mut order: Vec<NodeId> = Vec::new();
        loop {
            let children = elements(&self.document, self.security);
            if children.len() > MOST {
                return Err(Failure::invalid("the wsse:Security header has too many elements"));
            }
            let next = children.iter().find(|node| {
                !done.contains(*node) && !self.document.is_element(**node, XENC, "EncryptedData")
            });
            let Some(&node) = next else {
                if children.iter().any(|&node| self.document.is_element(node, XENC, "EncryptedData")) {
                    return Err(Failure::invalid(
                        "something in the wsse:Security header is encrypted with no known key",
                    ));
                }
                order.extend(children);
                break;
            };
            done.insert(node);
            self.element(node)?;
        }
        let timestamps: Vec<usize> =
            (0..order.len()).filter(|&at| self.document.is_element(order[at], WSU, "Timestamp")).collect();
        let misplaced = match (self.side.policy.layout, timestamps.first()) {
            (Layout::TimestampFirst, Some(&at)) => at != 0,
            (Layout::TimestampLast, Some(&at)) => at + 1 != order.len(),
            _ => false,
        };
        if misplaced {
            return Err(Failure::invalid("the timestamp is not where the layout has it"));
        }
        Ok(())
    }

    fn element(&mut self, node: NodeId) -> Result<(), Failure> {
        let document = &self.document;
        match (document.namespace(node), document.local(node)) {
            (WSU, "Timestamp") => self.read_timestamp(node),
            (WSSE, "UsernameToken") => {
                let name = self.child(node, WSSE, "Username").map(|name| self.text(name).trim().to_owned());
                let name = name.ok_or_else(|| Failure::invalid("a UsernameToken has no name"))?;
                match self.user.replace((node, name)) {
                    None => Ok(()),
                    Some(_) => Err(Failure::invalid("there is more than one UsernameToken")),
                }
            }
            (WSSE11, "SignatureConfirmation") => {
                let value = match document.attribute(node, "", "Value") {
                    None => None,
                    Some(value) => Some(
                        base64::decode(value)
                            .ok_or_else(|| Failure::invalid("a SignatureConfirmation is not Base64"))?,
                    ),
                };
                self.confirmations.push((node, value));
                Ok(())
            }
            (XENC, "EncryptedKey") => {
                let secret = self.encrypted_key(node)?;
                match self.child(node, XENC, "ReferenceList") {
                    Some(list) => self.reference_list(list, Some(&Key::Secret(secret))),
                    None => Ok(()),
                }
            }
            (XENC, "ReferenceList") => self.reference_list(node, None),
            (DS, "Signature") => self.verify(node),
            // Read when something refers to them.
            (WSSE, "BinarySecurityToken" | "SecurityTokenReference")
            | (WSC_2005 | WSC_13, "DerivedKeyToken") => Ok(()),
            (_, local) => Err(Failure::invalid(format!(
                "the wsse:Security header has an element {} that is not known here",
                shortened(local)
            ))),
        }
    }

    fn read_timestamp(&mut self, node: NodeId) -> Result<(), Failure> {
        let config = &self.side.policy.config;
        let part = |local: &str| match self.child(node, WSU, local) {
            None => Ok(None),
            Some(node) => {
                let wrong = || Failure::invalid(format!("{local} of the timestamp is not a time"));
                time(&self.text(node)).ok_or_else(wrong).map(Some)
            }
        };
        let created = part("Created")?
            .ok_or_else(|| Failure::invalid("the timestamp does not say when it was made"))?;
        let (ttl, skew) = (SignedDuration::from_secs(config.ttl), SignedDuration::from_secs(config.skew));
        let ends =
            created.saturating_add(ttl).map_err(|_| Failure::invalid("the timestamp is not a time"))?;
        let expires = part("Expires")?.map_or(ends, |expiry| expiry.min(ends));
        let now = self.environment.now;
        if created > after(now, skew) {
            return Err(Failure::invalid("the timestamp was made in the future"));
        }
        if after(expires, skew) < now {
            return Err(Failure::invalid("the message has expired"));
        }
        if self.timestamp.replace((node, created, expires)).is_some() {
            return Err(Failure::invalid("there is more than one timestamp"));
        }
        Ok(())
    }

    /// The key in an `EncryptedKey`; `None`: it cannot be decrypted, which shows only later.
    fn encrypted_key(&mut self, node: NodeId) -> Result<Option<Secret>, Failure> {
        if let Some(secret) = self.secrets.get(&node) {
            return Ok(secret.clone());
        }
        if self.secrets.len() >= 8 {
            return Err(Failure::invalid("the message has too many keys"));
        }
        let wrong = |why: &str| Failure::invalid(format!("xenc:EncryptedKey: {why}"));
        let method =
            self.child(node, XENC, "EncryptionMethod").ok_or_else(|| wrong("no EncryptionMethod"))?;
        let algorithm = self.document.attribute(method, "", "Algorithm").unwrap_or_default();
        let how = Transport::of(algorithm)
            .filter(|how| *how == self.side.policy.suite.transport)
            .ok_or_else(|| wrong("its algorithm is not that of the suite"))?;
        for child in elements(&self.document, method) {
            let uri = self.document.attribute(child, "", "Algorithm").unwrap_or_default();
            let fits = match (self.document.namespace(child), self.document.local(child)) {
                (DS, "DigestMethod") => Digest::of(uri) == Some(Digest::Sha1),
                (XENC11, "MGF") => uri == "http://www.w3.org/2009/xmlenc11#mgf1sha1",
                _ => false,
            };
            if !fits || how != Transport::Oaep {
                return Err(wrong("OAEP is done with SHA-1 only"));
            }
        }
        let info = self.child(node, DS, "KeyInfo").ok_or_else(|| wrong("no KeyInfo"))?;
        let reference = self.child(info, WSSE, "SecurityTokenReference");
        let identity = self.identity(reference.unwrap_or(info))?;
        let cipher = base64::decode(&self.cipher_text(node)?).ok_or_else(undecryptable)?;
        let secret = identity.key.decrypt(how, &cipher);
        self.key_ciphers.push(cipher.clone());
        if self.side.role == Role::Recipient && matches!(self.side.policy.binding, Binding::Symmetric { .. })
        {
            self.exchange.secret = secret.clone().map(|secret| (secret, sha1(&cipher)));
        }
        self.secrets.insert(node, secret.clone());
        Ok(secret)
    }

    /// The text of a `CipherValue`.
    fn cipher_text(&self, node: NodeId) -> Result<Cow<'_, str>, Failure> {
        let data = self.child(node, XENC, "CipherData");
        let value = data.and_then(|data| self.child(data, XENC, "CipherValue"));
        let value = value.ok_or_else(|| Failure::invalid("something encrypted has no CipherValue"))?;
        Ok(self.text(value))
    }

    /// The private key that a reference means.
    fn identity(&self, reference: NodeId) -> Result<Arc<Identity>, Failure> {
        let is_it = self.certificate_reference(reference, 0)?;
        let identity = self.side.store.identities.iter().find(|identity| is_it(&identity.certificate));
        identity.cloned().ok_or_else(|| Failure::invalid("a key is encrypted for somebody else"))
    }

    /// What a reference says about a certificate.
    fn certificate_reference(
        &self,
        reference: NodeId,
        depth: usize,
    ) -> Result<Box<IsCertificate<'_>>, Failure> {
        let document = &self.document;
        let unknown = || Failure::invalid("a reference to a certificate is of an unknown kind");
        if depth > DEEPEST {
            return Err(unknown());
        }
        let children = elements(document, reference);
        let &[form] = children.as_slice() else { return Err(unknown()) };
        match (document.namespace(form), document.local(form)) {
            (WSSE, "KeyIdentifier") => {
                let value = base64::decode(&self.text(form)).ok_or_else(unknown)?;
                match document.attribute(form, "", "ValueType").unwrap_or_default() {
                    THUMBPRINT => Ok(Box::new(move |certificate| certificate.thumbprint[..] == value[..])),
                    SKI => Ok(Box::new(move |certificate| certificate.key_identifier == value)),
                    X509_V3 => Ok(Box::new(move |certificate| certificate.der == value)),
                    _ => Err(unknown()),
                }
            }
            (DS, "X509Data") => {
                let part = self.child(form, DS, "X509IssuerSerial").ok_or_else(unknown)?;
                let text = |local: &str| {
                    self.child(part, DS, local).map(|certificate| self.text(certificate).into_owned())
                };
                let issuer = text("X509IssuerName").ok_or_else(unknown)?;
                let serial = text("X509SerialNumber").ok_or_else(unknown)?;
                Ok(Box::new(move |certificate| certificate.is_of(&issuer, &serial)))
            }
            (WSSE, "Reference") => {
                let token = self.by_reference(document.attribute(form, "", "URI"))?;
                let (der, _) = self.token(token)?;
                Ok(Box::new(move |certificate| certificate.der == der))
            }
            (WSSE, "Embedded") => {
                let token = self.child(form, WSSE, "BinarySecurityToken").ok_or_else(unknown)?;
                let (der, _) = self.token(token)?;
                Ok(Box::new(move |certificate| certificate.der == der))
            }
            _ => Err(unknown()),
        }
    }

    /// The certificate of a `BinarySecurityToken`, and those that issued it.
    fn token(&self, node: NodeId) -> Result<(Vec<u8>, Vec<Vec<u8>>), Failure> {
        let wrong = |why: &str| Failure::invalid(format!("wsse:BinarySecurityToken: {why}"));
        if !self.document.is_element(node, WSSE, "BinarySecurityToken") {
            return Err(Failure::invalid("a reference leads to something that is not a token"));
        }
        if self.document.attribute(node, "", "EncodingType").is_some_and(|encoding| encoding != BASE64) {
            return Err(wrong("it is encoded in an unknown way"));
        }
        let der = base64::decode(&self.text(node)).ok_or_else(|| wrong("it is not Base64"))?;
        match self.document.attribute(node, "", "ValueType").unwrap_or_default() {
            X509_V3 => Ok((der, Vec::new())),
            PKI_PATH => {
                use crate::der::{Der, SEQUENCE};
                let mut path = Vec::new();
                let mut certificates = Der(&der).enter(SEQUENCE).ok_or_else(|| wrong("it is not a path"))?;
                while let Some(certificate) = certificates.any().filter(|_| path.len() < 8) {
                    path.push(certificate.whole.to_vec());
                }
                // The certificate of the subject comes last.
                let signer = path.pop().ok_or_else(|| wrong("it is not a path"))?;
                Ok((signer, path))
            }
            _ => Err(wrong("it is of an unknown kind")),
        }
    }

    /// The key that a `SecurityTokenReference` leads to.
    fn resolve(&mut self, reference: NodeId, depth: usize) -> Result<Key, Failure> {
        let unknown = || Failure::invalid("a reference to a key is of an unknown kind");
        if depth > DEEPEST {
            return Err(unknown());
        }
        let document = &self.document;
        let children = elements(document, reference);
        let &[form] = children.as_slice() else { return Err(unknown()) };
        match (document.namespace(form), document.local(form)) {
            (WSSE, "Reference") => {
                let token = self.by_reference(document.attribute(form, "", "URI"))?;
                match (document.namespace(token), document.local(token)) {
                    (WSSE, "BinarySecurityToken") => {
                        let (der, between) = self.token(token)?;
                        Ok(Key::Certificate(der, between))
                    }
                    (XENC, "EncryptedKey") => Ok(Key::Secret(self.encrypted_key(token)?)),
                    (WSC_2005 | WSC_13, "DerivedKeyToken") => self.derived(token, depth),
                    _ => Err(unknown()),
                }
            }
            (WSSE, "KeyIdentifier") if document.attribute(form, "", "ValueType") == Some(KEY_SHA1) => {
                let wanted = base64::decode(&self.text(form)).ok_or_else(unknown)?;
                match &self.exchange.secret {
                    Some((secret, digest))
                        if digest[..] == wanted[..] && self.side.role == Role::Initiator =>
                    {
                        Ok(Key::Secret(Some(secret.clone())))
                    }
                    _ => Err(Failure::invalid("a key is meant that was never agreed on")),
                }
            }
            (WSSE, "Embedded") => {
                let token = self.child(form, WSSE, "BinarySecurityToken").ok_or_else(unknown)?;
                let (der, between) = self.token(token)?;
                Ok(Key::Certificate(der, between))
            }
            (WSSE, "KeyIdentifier") if document.attribute(form, "", "ValueType") == Some(X509_V3) => {
                Ok(Key::Certificate(base64::decode(&self.text(form)).ok_or_else(unknown)?, Vec::new()))
            }
            _ => {
                let is_it = self.certificate_reference(reference, depth)?;
                let found = self.side.trust.find(&*is_it);
                let der = found.map(|certificate| certificate.der.clone());
                der.map(|der| Key::Certificate(der, Vec::new()))
                    .ok_or_else(|| Failure::invalid("the certificate that is referred to is not known here"))
            }
        }
    }

    fn derived(&mut self, node: NodeId, depth: usize) -> Result<Key, Failure> {
        let wrong = || Failure::invalid("a DerivedKeyToken is not as it should be");
        let namespace = self.document.namespace(node).to_owned();
        let reference = self.child(node, WSSE, "SecurityTokenReference").ok_or_else(wrong)?;
        let part =
            |local: &str| self.child(node, &namespace, local).map(|child| self.text(child).trim().to_owned());
        let number = |text: Option<String>, default: usize| match text {
            None => Ok(default),
            Some(text) => text.parse::<usize>().map_err(|_| wrong()),
        };
        let length = number(part("Length"), 32)?;
        let offset = match part("Generation") {
            Some(text) => {
                text.parse::<usize>().ok().and_then(|blocks| blocks.checked_mul(length)).ok_or_else(wrong)?
            }
            None => number(part("Offset"), 0)?,
        };
        let nonce = part("Nonce").and_then(|text| base64::decode(&text)).ok_or_else(wrong)?;
        let label = part("Label");
        if length == 0 || length > LONGEST_DERIVED || offset > LONGEST_DERIVED || nonce.len() > 256 {
            return Err(wrong());
        }
        let algorithm = self.document.attribute(node, "", "Algorithm");
        if algorithm.is_some_and(|uri| !uri.ends_with("/dk/p_sha1")) {
            return Err(wrong());
        }
        let Key::Secret(secret) = self.resolve(reference, depth + 1)? else { return Err(wrong()) };
        Ok(Key::Secret(secret.map(|secret| {
            let label = label.as_deref().unwrap_or(DEFAULT_LABEL);
            p_sha1(&secret, &[label.as_bytes(), &nonce].concat(), offset, length)
        })))
    }

    /// Decrypts all that a list refers to.
    fn reference_list(&mut self, list: NodeId, key: Option<&Key>) -> Result<(), Failure> {
        for entry in elements(&self.document, list) {
            if !self.document.is_element(entry, XENC, "DataReference") {
                return Err(Failure::invalid("a list of what is encrypted refers to something else"));
            }
            self.decrypted += 1;
            if self.decrypted > MOST {
                return Err(Failure::invalid("the message has too many encrypted parts"));
            }
            let mut data = self.by_reference(self.document.attribute(entry, "", "URI"))?;
            if self.document.is_element(data, WSSE11, "EncryptedHeader") {
                data = self.child(data, XENC, "EncryptedData").ok_or_else(undecryptable)?;
            }
            if !self.document.is_element(data, XENC, "EncryptedData") {
                return Err(Failure::invalid("a list of what is encrypted refers to something else"));
            }
            let key = match key {
                Some(key) => key.clone(),
                None => {
                    let info = self.child(data, DS, "KeyInfo");
                    let reference = info.and_then(|info| self.child(info, WSSE, "SecurityTokenReference"));
                    let reference =
                        reference.ok_or_else(|| Failure::invalid("xenc:EncryptedData says no key"))?;
                    self.resolve(reference, 0)?
                }
            };
            let Key::Secret(secret) = key else {
                return Err(Failure::invalid("data is encrypted with a certificate, not with a key"));
            };
            self.decrypt(data, secret)?;
        }
        Ok(())
    }

    fn decrypt(&mut self, data: NodeId, secret: Option<Secret>) -> Result<(), Failure> {
        let document = &self.document;
        let method = self.child(data, XENC, "EncryptionMethod");
        let uri = method.and_then(|method| document.attribute(method, "", "Algorithm")).unwrap_or_default();
        let cipher = Cipher::of(uri)
            .filter(|cipher| *cipher == self.side.policy.suite.cipher)
            .ok_or_else(|| Failure::invalid("xenc:EncryptedData: its algorithm is not that of the suite"))?;
        let kind = document.attribute(data, "", "Type").unwrap_or(CONTENT);
        let is_element = match kind {
            ELEMENT => true,
            CONTENT => false,
            _ => return Err(Failure::invalid("xenc:EncryptedData is of an unknown type")),
        };
        let parent = document.parent(data).ok_or_else(undecryptable)?;
        // What is in the header of WSS 1.1 takes the place of what is around it.
        let old = match document.is_element(parent, WSSE11, "EncryptedHeader") {
            true => parent,
            false => data,
        };
        let place = document.parent(old).ok_or_else(undecryptable)?;
        let secret = secret
            .filter(|secret| secret.len() == cipher.key_length())
            .unwrap_or_else(|| random(cipher.key_length()));
        let sealed = self.cipher_text(data)?;
        // Prefixes inside mean what they mean at that place.
        let mut buffer = before(document, parent, cipher.vector_length());
        let (head, at) = (buffer.len(), buffer.len() - cipher.vector_length());
        let began: Vec<u8> = buffer[at..].to_vec();
        buffer.truncate(at);
        buffer.reserve(sealed.len() / 4 * 3 + 64);
        base64::decode_to(&sealed, &mut buffer).ok_or_else(undecryptable)?;
        let plain = cipher.decrypt_in_place(&secret, &mut buffer[at..]);
        let plain = plain.ok_or_else(undecryptable)?;
        let commented = memchr::memmem::find(&buffer[head..at + plain.end], b"<!--").is_some();
        buffer.truncate(at + plain.end);
        buffer[at..head].copy_from_slice(&began);
        buffer.extend_from_slice(b"</within>");
        let fragment = Document::parse(buffer, &self.side.parse).ok().ok_or_else(undecryptable)?;
        let wrapper = fragment.document_element().ok_or_else(undecryptable)?;
        let children: Vec<NodeId> = fragment.children(wrapper).collect();
        let count = children.iter().filter(|&&child| fragment.kind(child) == NodeKind::Element).count();
        if is_element && (count != 1 || children.len() != 1) {
            return Err(undecryptable());
        }
        let alone = document.children(place).all(|node| {
            node == old || document.kind(node) == NodeKind::Text && document.text(node).trim().is_empty()
        });
        let was_signed = self.signed.contains(&old) || self.signed.contains(&data);
        self.commented |= commented;
        let copies = match place == parent {
            // The same prefixes are in scope.
            true => self.document.graft(old, &fragment, wrapper).ok_or_else(undecryptable)?,
            false => {
                let mut copies = Vec::with_capacity(children.len());
                for child in children {
                    let copy = self.document.copy_from(place, &fragment, child);
                    self.document.detach(copy);
                    self.document.insert_before(old, copy);
                    copies.push(copy);
                }
                self.document.detach(old);
                copies
            }
        };
        match is_element {
            true => {
                for copy in copies {
                    self.encrypted.insert((copy, true));
                    if was_signed {
                        self.signed.insert(copy);
                    }
                }
            }
            false if alone => _ = self.encrypted.insert((place, false)),
            false => {}
        }
        Ok(())
    }

    /// What an element is in canonical form, piece by piece.
    fn canonical(
        &mut self,
        node: NodeId,
        prefixes: Vec<String>,
        to: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Failure> {
        let options =
            Options { algorithm: Algorithm::Exclusive, comments: false, inclusive_prefixes: prefixes };
        let mut length = 0;
        canonicalize_to(&self.document, node, &options, &mut |piece| {
            length += piece.len();
            to(piece);
        });
        self.budget = self
            .budget
            .checked_sub(length)
            .ok_or_else(|| Failure::invalid("the signature is over more than there is in the message"))?;
        Ok(())
    }

    /// The prefixes of `InclusiveNamespaces` in a method or transform; nothing else may be in it.
    fn prefixes(&self, node: NodeId) -> Result<Vec<String>, Failure> {
        let mut out = Vec::new();
        for parameter in elements(&self.document, node) {
            if !self.document.is_element(parameter, EXC_C14N, "InclusiveNamespaces") {
                return Err(Failure::invalid("a transform has parameters that are not known here"));
            }
            let list = self.document.attribute(parameter, "", "PrefixList").unwrap_or_default();
            out.extend(list.split_ascii_whitespace().take(MOST).map(str::to_owned));
        }
        Ok(out)
    }

    fn verify(&mut self, node: NodeId) -> Result<(), Failure> {
        let wrong = |why: &str| Failure::invalid(format!("ds:Signature: {why}"));
        if self.signature.is_some() {
            return Err(wrong("there is more than one"));
        }
        let info = self.child(node, DS, "SignedInfo").ok_or_else(|| wrong("no SignedInfo"))?;
        let value = self.child(node, DS, "SignatureValue").ok_or_else(|| wrong("no SignatureValue"))?;
        let key = self.child(node, DS, "KeyInfo").ok_or_else(|| wrong("no KeyInfo"))?;
        if elements(&self.document, node).len() != 3 {
            return Err(wrong("it has something that is not known here"));
        }
        let value = base64::decode(&self.text(value)).ok_or_else(|| wrong("its value is not Base64"))?;
        let reference = self
            .child(key, WSSE, "SecurityTokenReference")
            .ok_or_else(|| wrong("its key is not a token of the header"))?;
        let key = self.resolve(reference, 0)?;
        // First the signer is checked: nothing is digested for an unknown one.
        let parts = elements(&self.document, info);
        let (&[canonical, method], references) =
            parts.split_first_chunk::<2>().ok_or_else(|| wrong("SignedInfo is not whole"))?;
        let algorithm = |node: NodeId| self.document.attribute(node, "", "Algorithm").unwrap_or_default();
        if !self.document.is_element(canonical, DS, "CanonicalizationMethod")
            || !self.document.is_element(method, DS, "SignatureMethod")
            || algorithm(canonical) != EXC_C14N
            || !elements(&self.document, method).is_empty()
        {
            return Err(wrong("it is not made in exclusive canonical form"));
        }
        let how = Signing::of(algorithm(method)).ok_or_else(|| wrong("its algorithm is not known here"))?;
        let prefixes = self.prefixes(canonical)?;
        let mut signed = Vec::new();
        self.canonical(info, prefixes, &mut |piece| signed.extend_from_slice(piece))?;
        let suite = self.side.policy.suite;
        let symmetric = matches!(self.side.policy.binding, Binding::Symmetric { .. });
        let certificate = match (key, how) {
            (Key::Certificate(der, between), Signing::Rsa(digest))
                if !symmetric && is_as_strong(digest, suite.signature) =>
            {
                let certificate =
                    self.side.trust.check(&der, &between, self.environment.now).map_err(Failure::invalid)?;
                if !certificate.may_sign() {
                    return Err(wrong(&format!(
                        "the certificate of {} has no key usage digitalSignature",
                        certificate.subject
                    )));
                }
                if !certificate.public.is_signed(digest, &signed, &value) {
                    return Err(wrong("its value is wrong"));
                }
                Some(certificate)
            }
            (Key::Secret(secret), Signing::Hmac(digest)) if symmetric => {
                let secret = secret.unwrap_or_else(|| random(32));
                if !is_mac(digest, &secret, &signed, &value) {
                    return Err(wrong("its value is wrong"));
                }
                None
            }
            _ => return Err(wrong("its algorithm or its key is not what the policy asks for")),
        };
        if references.is_empty() || references.len() > MOST {
            return Err(wrong("it is over nothing, or over too much"));
        }
        let references = references.to_vec();
        for reference in references {
            self.reference(reference)?;
        }
        self.signature = Some(Signature { value, certificate });
        Ok(())
    }

    fn reference(&mut self, node: NodeId) -> Result<(), Failure> {
        let wrong = |why: &str| Failure::invalid(format!("ds:Reference: {why}"));
        if !self.document.is_element(node, DS, "Reference") {
            return Err(wrong("SignedInfo has something else"));
        }
        let target = self.by_reference(self.document.attribute(node, "", "URI"))?;
        if self.signed.contains(&target) {
            return Err(wrong("two are of the same element"));
        }
        let transforms = self.child(node, DS, "Transforms");
        let transforms = transforms.map_or_else(Vec::new, |transforms| elements(&self.document, transforms));
        let &[transform] = transforms.as_slice() else {
            return Err(wrong("its transform is not exclusive canonical form alone"));
        };
        let is_transform = self.document.is_element(transform, DS, "Transform");
        if !is_transform || self.document.attribute(transform, "", "Algorithm") != Some(EXC_C14N) {
            return Err(wrong("its transform is not exclusive canonical form alone"));
        }
        let method = self.child(node, DS, "DigestMethod").ok_or_else(|| wrong("no DigestMethod"))?;
        let uri = self.document.attribute(method, "", "Algorithm").unwrap_or_default();
        let digest = Digest::of(uri)
            .filter(|digest| is_as_strong(*digest, self.side.policy.suite.digest))
            .ok_or_else(|| wrong("its digest is weaker than that of the suite"))?;
        let value = self.child(node, DS, "DigestValue").and_then(|value| base64::decode(&self.text(value)));
        let value = value.ok_or_else(|| wrong("no DigestValue"))?;
        let prefixes = self.prefixes(transform)?;
        let mut digested = digest.begin();
        self.canonical(target, prefixes, &mut |piece| digested.update(piece))?;
        if digested.finish().as_ref() != value {
            return Err(wrong(&format!("the digest of {} is wrong", shortened(self.document.local(target)))));
        }
        self.signed.insert(target);
        Ok(())
    }

    /// Whether the signature covers an element, or one that contains it.
    fn is_signed(&self, node: NodeId) -> bool {
        let mut at = Some(node);
        while let Some(node) = at {
            if self.signed.contains(&node) {
                return true;
            }
            at = self.document.parent(node);
        }
        false
    }

    fn is_encrypted(&self, node: NodeId) -> bool {
        if self.encrypted.contains(&(node, true)) {
            return true;
        }
        let mut at = self.document.parent(node);
        while let Some(node) = at {
            if self.encrypted.contains(&(node, false)) || self.encrypted.contains(&(node, true)) {
                return true;
            }
            at = self.document.parent(node);
        }
        false
    }

    /// Checks what was found against the policy; returns what has to be remembered of the message.
    fn check(&mut self) -> Result<Marks, Failure> {
        let policy = &self.side.policy;
        let message = matches!(policy.binding, Binding::Asymmetric { .. } | Binding::Symmetric { .. });
        let not_signed = |what: &str| Failure::invalid(format!("{what} is not signed"));
        if policy.timestamp && self.timestamp.is_none() {
            return Err(Failure::invalid("the message has no timestamp"));
        }
        if policy.signs() && self.signature.is_none() {
            return Err(Failure::invalid("the message is not signed"));
        }
        if let Some((timestamp, _, _)) = self.timestamp
            && message
            && policy.signs()
            && !self.is_signed(timestamp)
        {
            return Err(not_signed("the timestamp"));
        }
        self.check_parts(
            &policy.signed,
            "signed",
            |work, node| work.is_signed(node),
            |work| work.signed.contains(&work.places.body),
        )?;
        self.check_parts(
            &policy.encrypted,
            "encrypted",
            |work, node| work.is_encrypted(node),
            |work| work.encrypted.contains(&(work.places.body, false)),
        )?;
        for selected in &policy.required {
            if selected.elements(&self.document).is_none_or(|nodes| nodes.is_empty()) {
                return Err(Failure::invalid(format!("nothing is at {}", selected.source())));
            }
        }
        for selected in &policy.encrypted.contents {
            let nodes = selected.elements(&self.document).unwrap_or_default();
            if !nodes.iter().all(|node| self.encrypted.contains(&(*node, false)) || self.is_encrypted(*node))
            {
                return Err(Failure::invalid(format!("what is in {} is not encrypted", selected.source())));
            }
        }
        if policy.confirmation && self.side.role == Role::Initiator {
            self.check_confirmations()?;
        }
        let mut marks = self.marks();
        if self.side.role == Role::Recipient {
            self.check_user(message, &mut marks)?;
        }
        let with_certificate =
            self.signature.as_ref().is_some_and(|signature| signature.certificate.is_some());
        if with_certificate || policy.user.is_some_and(|wanted| !wanted.without_password) {
            marks.of_somebody();
        }
        if policy.signs() && !policy.signed.is_empty() {
            self.drop_unsigned();
        }
        if self.signature.is_some() && self.commented {
            self.drop_comments();
        }
        Ok(marks)
    }

    fn check_parts(
        &self,
        parts: &Parts,
        done: &str,
        is_done: impl Fn(&Self, NodeId) -> bool,
        is_body_done: impl Fn(&Self) -> bool,
    ) -> Result<(), Failure> {
        let missing = |what: &str| Failure::invalid(format!("{what} is not {done}"));
        // An empty body has nothing to encrypt.
        if parts.body && !is_body_done(self) {
            return Err(missing("the body"));
        }
        if let Some(header) = self.places.header {
            for block in elements(&self.document, header) {
                let (namespace, local) = (self.document.namespace(block), self.document.local(block));
                if block != self.security && parts.has_header(namespace, local) && !is_done(self, block) {
                    return Err(missing(&format!("the header {}", shortened(local))));
                }
            }
        }
        for selected in &parts.elements {
            let nodes = selected.elements(&self.document);
            let nodes = nodes.ok_or_else(|| missing(&format!("what is at {}", selected.source())))?;
            if !nodes.into_iter().all(|node| is_done(self, node)) {
                return Err(missing(&format!("what is at {}", selected.source())));
            }
        }
        Ok(())
    }

    fn check_confirmations(&self) -> Result<(), Failure> {
        let wrong = || Failure::invalid("the answer does not confirm the signature of the request");
        let sent = &self.exchange.signatures;
        if self.confirmations.len() != sent.len().max(1) {
            return Err(wrong());
        }
        for (node, value) in &self.confirmations {
            let is_confirmed = match value {
                None => sent.is_empty(),
                Some(value) => sent.contains(value),
            };
            if !is_confirmed || !self.is_signed(*node) {
                return Err(wrong());
            }
        }
        Ok(())
    }

    fn until(&self) -> Timestamp {
        let config = &self.side.policy.config;
        let window = SignedDuration::from_secs(config.ttl + 2 * config.skew + 1);
        after(self.environment.now, window)
    }

    fn marks(&self) -> Marks {
        let mut marks = Marks::default();
        let until = self.until();
        match &self.signature {
            Some(signature) => marks.add("signature", &signature.value, until),
            None => self.key_ciphers.iter().for_each(|cipher| marks.add("key", cipher, until)),
        }
        marks
    }

    fn check_user(&self, message: bool, marks: &mut Marks) -> Result<(), Failure> {
        let policy = &self.side.policy;
        let Some(wanted) = policy.user else { return Ok(()) };
        let Some((node, name)) = &self.user else {
            return Err(Failure::invalid("the message has no UsernameToken"));
        };
        if wanted.signed && message && !self.is_signed(*node) {
            return Err(Failure::invalid("the UsernameToken is not signed"));
        }
        if wanted.encrypted && message && !self.is_encrypted(*node) {
            return Err(Failure::invalid("the UsernameToken is not encrypted"));
        }
        let password = (self.environment.password)(name);
        if wanted.without_password {
            return match password {
                Some(_) => Ok(()),
                None => Err(Failure::authentication("the user is not known")),
            };
        }
        let no = || Failure::authentication("the user is not known, or the password is another one");
        let given = self.child(*node, WSSE, "Password");
        let given = given.ok_or_else(|| Failure::authentication("the UsernameToken has no password"))?;
        let kind = self.document.attribute(given, "", "Type").unwrap_or(TEXT);
        let created = self.child(*node, WSU, "Created").map(|created| self.text(created).into_owned());
        let nonce = self.child(*node, WSSE, "Nonce");
        let nonce = nonce.map(|nonce| base64::decode(&self.text(nonce)).ok_or_else(no)).transpose()?;
        if let Some(created) = &created {
            let config = &policy.config;
            let at = time(created).ok_or_else(no)?;
            let skew = SignedDuration::from_secs(config.skew);
            let ends = after(after(at, SignedDuration::from_secs(config.ttl)), skew);
            if at > after(self.environment.now, skew) || ends < self.environment.now {
                return Err(Failure::authentication("the UsernameToken has expired"));
            }
        }
        // Compared even where there is no such user, so that it takes as long.
        let is_user = password.is_some();
        let password = password.unwrap_or_else(|| random(16));
        let same = match kind {
            DIGEST if wanted.hashed => {
                let (Some(nonce), Some(created)) = (&nonce, &created) else {
                    return Err(Failure::authentication("a password digest needs Nonce and Created"));
                };
                let digest = sha1(&[nonce.as_slice(), created.as_bytes(), &password].concat());
                let given = base64::decode(&self.text(given)).ok_or_else(no)?;
                aws_lc_rs::constant_time::verify_slices_are_equal(&digest, &given).is_ok()
            }
            TEXT if !wanted.hashed => {
                let (expected, given) =
                    (Digest::Sha256.hash(&password), Digest::Sha256.hash(self.text(given).as_bytes()));
                aws_lc_rs::constant_time::verify_slices_are_equal(expected.as_ref(), given.as_ref()).is_ok()
            }
            _ => {
                return Err(Failure::authentication(
                    "the password is not of the kind that the policy asks for",
                ));
            }
        };
        if !same || !is_user {
            return Err(no());
        }
        if let Some(nonce) = nonce {
            marks.add("nonce", &nonce, self.until());
        }
        Ok(())
    }

    /// Removes headers that the signature does not cover: anybody may have put them there.
    fn drop_unsigned(&mut self) {
        let Some(header) = self.places.header else { return };
        for block in elements(&self.document, header) {
            if block != self.security && !self.is_signed(block) && !self.is_for_another(block) {
                self.document.detach(block);
            }
        }
    }

    /// Removes comments: no signature covers them, and one that anybody inserts splits a text in two.
    fn drop_comments(&mut self) {
        let document = &mut self.document;
        let nodes = document.descendants(Document::ROOT);
        let comments: Vec<NodeId> = nodes.filter(|&node| document.kind(node) == NodeKind::Comment).collect();
        for comment in comments {
            let is_text = |node: &NodeId| document.kind(*node) == NodeKind::Text;
            let beside = (
                document.prev_sibling(comment).filter(is_text),
                document.next_sibling(comment).filter(is_text),
            );
            document.detach(comment);
            if let (Some(before), Some(behind)) = beside {
                let both = format!("{}{}", document.text(before), document.text(behind));
                document.set_text(before, &both);
                document.detach(behind);
            }
        }
    }

    fn is_for_another(&self, block: NodeId) -> bool {
        self.document.is_element(block, WSSE, "Security")
    }

    fn finish(mut self) -> Document {
        self.document.detach(self.security);
        self.document
    }
}

/// The label of derived keys that have none.
pub(crate) const DEFAULT_LABEL: &str = "WS-SecureConversationWS-SecureConversation";

fn is_as_strong(digest: Digest, wanted: Digest) -> bool {
    let rank = |digest: Digest| match digest {
        Digest::Sha1 => 0,
        Digest::Sha256 => 1,
        Digest::Sha384 => 2,
        Digest::Sha512 => 3,
    };
    rank(digest) >= rank(wanted)
}

fn after(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// A text of the message, shortened for the log.
fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// The start tag of an element that declares the prefixes that are in scope at a node, of so many bytes at least.
fn before(document: &Document, node: NodeId, least: usize) -> Vec<u8> {
    let mut text = b"<within".to_vec();
    document.each_in_scope_namespace(node, &mut |prefix, uri| {
        if prefix != "xml" {
            text.extend_from_slice(if prefix.is_empty() { b" xmlns" } else { b" xmlns:" });
            text.extend_from_slice(prefix.as_bytes());
            text.extend_from_slice(b"=\"");
            xml::escape::push_attribute(&mut text, uri);
            text.push(b'"');
        }
    });
    text.resize(text.len().max(least.saturating_sub(1)), b' ');
    text.push(b'>');
    text
}
