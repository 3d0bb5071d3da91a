//! Messages that come in: the security header is read, what is encrypted decrypted, the signature verified, and all of it held
//! against the policy.
//!
//! What is signed is identified by its node, never by its id: the body that the flow sees is the very node that was digested. Whatever fails,
//! the other side learns only that something failed, and a key that cannot be decrypted is replaced by a random one, so that it takes as long.

mod checks;
mod decryption;
mod seen;
mod signature;
mod tokens;

pub(crate) use tokens::DEFAULT_LABEL;

use crate::algorithm::Secret;
use crate::base64;
use crate::certificate::Certificate;
use crate::failure::Failure;
use crate::names::*;
use crate::policy::{Binding, Layout};
use crate::side::{Budget, Environment, Exchange, Places, Role, Side, elements};
use jiff::{SignedDuration, Timestamp};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokens::Key;
use xml::{Document, NodeId, NodeKind};

/// Most elements in a security header, references of a signature, and encrypted parts.
const MOST: usize = 64;

/// A message that was accepted.
#[derive(Debug)]
pub struct Opened {
    /// The envelope without its security header, decrypted.
    pub document: Document,
    /// The user whose token was checked, where the policy asks for one.
    pub user: Option<String>,
    /// Who signed it, where the policy asks for a signature.
    pub signer: Option<Arc<Certificate>>,
    /// The certificates that came with that of the signer, in DER.
    pub between: Vec<Vec<u8>>,
    /// Who endorsed it, with the certificates that came with that.
    pub endorser: Option<(Arc<Certificate>, Vec<Vec<u8>>)>,
}

impl Opened {
    fn plain(document: Document) -> Opened {
        Opened { document, user: None, signer: None, between: Vec::new(), endorser: None }
    }
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
        return Ok(Opened::plain(document));
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
    // Attachments are in texts beside the input.
    let budget = Budget::of(document.text_size());
    let Some(security) = security else {
        // An answer may have no header where nothing in it is secured.
        let nothing = matches!(side.policy.binding, Binding::Transport { .. } | Binding::None)
            && !side.policy.timestamp
            && (side.policy.user.is_none() || side.role == Role::Initiator);
        if nothing {
            return Ok(Opened::plain(document));
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
        endorsement: None,
        timestamp: None,
        user: None,
        known_user: None,
        confirmations: Vec::new(),
        decrypted: 0,
        key_ciphers: Vec::new(),
        commented,
    };
    work.header()?;
    let marks = work.check()?;
    environment.replays.take(&marks, environment.now).map_err(Failure::invalid)?;
    let user = work.known_user.take();
    let (mut signer, mut between) = (None, Vec::new());
    if let Some(signature) = work.signature.take() {
        (signer, between) = (signature.certificate, signature.between);
        if side.role == Role::Recipient {
            work.exchange.signatures.push(signature.value);
        }
    }
    let mut endorser = None;
    if let Some(Endorsement { value, certificate, between, .. }) = work.endorsement.take() {
        endorser = Some((certificate, between));
        work.exchange.signatures.push(value);
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
    // A signature that nobody asked for may be over anything: it says nothing about who sent the message.
    if !side.policy.signs() {
        (signer, between) = (None, Vec::new());
    }
    Ok(Opened { document, user, signer, between, endorser })
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

/// A signature that was verified.
struct Signature {
    node: NodeId,
    value: Vec<u8>,
    /// Who made it; `None`: its key is one that both sides have.
    certificate: Option<Arc<Certificate>>,
    /// What came with that.
    between: Vec<Vec<u8>>,
}

/// A signature of the signature, or of the timestamp where the transport secures messages, that was verified.
struct Endorsement {
    value: Vec<u8>,
    /// What it covers.
    covers: HashSet<NodeId>,
    certificate: Arc<Certificate>,
    between: Vec<Vec<u8>>,
    /// The element with the certificate, if that is in the message.
    token: Option<NodeId>,
}

struct Work<'a> {
    document: Document,
    places: Places,
    security: NodeId,
    side: &'a Side,
    exchange: &'a mut Exchange,
    environment: &'a Environment<'a>,
    /// What may still be digested.
    budget: Budget,
    secrets: HashMap<NodeId, Option<Secret>>,
    signed: HashSet<NodeId>,
    /// Elements that were encrypted as a whole (`true`), or whose content was (`false`).
    encrypted: HashSet<(NodeId, bool)>,
    signature: Option<Signature>,
    endorsement: Option<Endorsement>,
    timestamp: Option<(NodeId, Timestamp, Timestamp)>,
    /// The name in a token, which anybody may have written.
    user: Option<(NodeId, String)>,
    /// The name in a token that was checked.
    known_user: Option<String>,
    confirmations: Vec<(NodeId, Option<Vec<u8>>)>,
    decrypted: usize,
    key_ciphers: Vec<Vec<u8>>,
    /// Comments are allowed.
    commented: bool,
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
        let expires = part("Expires")?;
        // Whatever the clocks say, such a message was never valid.
        if expires.is_some_and(|expires| expires < created) {
            return Err(Failure::invalid("the timestamp ends before it was made"));
        }
        let expires = expires.map_or(ends, |expiry| expiry.min(ends));
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

    fn finish(mut self) -> Document {
        self.document.detach(self.security);
        self.document
    }
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
