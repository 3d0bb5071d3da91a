//! Messages that go out: tokens, signature and encryption are put into a security header, as the policy asks for.

use crate::algorithm::{Digest, Secret, Signing, mac, p_sha1, random, sha1};
use crate::base64;
use crate::certificate::Certificate;
use crate::failure::Failure;
use crate::incoming::DEFAULT_LABEL;
use crate::keys::Identity;
use crate::names::*;
use crate::policy::{Binding, Include, Layout, Parts, REQUEST_SIGNER, Reference, Token};
use crate::side::{Budget, Environment, Exchange, Places, Role, Side, elements};
use jiff::{SignedDuration, Timestamp};
use std::collections::HashSet;
use std::sync::Arc;
use xml::{Document, NodeId, WriteOptions};

/// Secures a message.
///
/// # Errors
/// Something that the policy needs is not there: a key, the certificate of the other side, the password of the user.
pub fn secure(
    document: &mut Document,
    side: &Side,
    exchange: &mut Exchange,
    environment: &Environment<'_>,
) -> Result<(), Failure> {
    let policy = &side.policy;
    let nothing = matches!(policy.binding, Binding::Transport { .. } | Binding::None)
        && !policy.timestamp
        && (policy.user.is_none() || side.role == Role::Recipient);
    if policy.is_none() || nothing {
        return Ok(());
    }
    let places = Places::of(document)?;
    let mut work = Work::new(document, places, side, exchange, environment)?;
    work.run()
}

/// The material of keys, for one message.
struct Work<'a> {
    document: &'a mut Document,
    places: Places,
    header: NodeId,
    security: NodeId,
    side: &'a Side,
    exchange: &'a mut Exchange,
    environment: &'a Environment<'a>,
    /// What may still be digested.
    budget: Budget,
    /// Part of the ids of this message, which makes them unique.
    mark: String,
    ids: usize,
    to_sign: Vec<NodeId>,
    /// The element with the endorsing certificate, where that is in the message, and its URI.
    endorsing: Option<(NodeId, String)>,
    /// Elements to encrypt; `true`: all of it, `false`: what is in it.
    to_encrypt: Vec<(NodeId, bool)>,
}

/// A key in use, and what refers to it.
struct Used {
    secret: Secret,
    /// URI of the element in the message.
    uri: Option<String>,
    /// SHA-1 of the encrypted key, where that is in another message.
    digest: Option<[u8; 20]>,
    value_type: Option<&'static str>,
}

impl<'a> Work<'a> {
    fn new(
        document: &'a mut Document,
        places: Places,
        side: &'a Side,
        exchange: &'a mut Exchange,
        environment: &'a Environment<'a>,
    ) -> Result<Work<'a>, Failure> {
        let soap = document.namespace(places.root).to_owned();
        let prefix = document.prefix(places.root).to_owned();
        let header = match places.header {
            Some(header) => header,
            None => {
                let header = document.append_element(places.root, &prefix, &soap, "Header");
                document.detach(header);
                document.insert_before(places.body, header);
                header
            }
        };
        // A header of before would be taken for this one.
        for block in elements(document, header) {
            if document.is_element(block, WSSE, "Security")
                && document.attribute(block, &soap, "actor").is_none()
                && document.attribute(block, &soap, "role").is_none()
            {
                document.detach(block);
            }
        }
        let security = document.append_element(header, "wsse", WSSE, "Security");
        if let Some(first) = document.first_child(header).filter(|first| *first != security) {
            document.detach(security);
            document.insert_before(first, security);
        }
        document.declare_namespace(security, "wsse", WSSE);
        document.declare_namespace(security, "wsu", WSU);
        let prefix = if prefix.is_empty() { "soapenv".to_owned() } else { prefix };
        let must = if soap == SOAP11 { "1" } else { "true" };
        document.set_attribute(security, &prefix, &soap, "mustUnderstand", must);
        let places = Places { header: Some(header), ..places };
        let budget = Budget::of(document.memory());
        let mark = random(8).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Work {
            document,
            places,
            header,
            security,
            side,
            exchange,
            environment,
            budget,
            mark,
            ids: 0,
            to_sign: Vec::new(),
            endorsing: None,
            to_encrypt: Vec::new(),
        })
    }

    fn run(&mut self) -> Result<(), Failure> {
        let policy = Arc::clone(&self.side.policy);
        let mut timestamp = None;
        if policy.timestamp {
            timestamp = Some(self.timestamp());
        }
        if policy.user.is_some() && self.side.role == Role::Initiator {
            self.user_token()?;
        }
        self.endorsing_token()?;
        let message = matches!(policy.binding, Binding::Asymmetric { .. } | Binding::Symmetric { .. });
        if message {
            if policy.confirmation && self.side.role == Role::Recipient {
                self.confirm();
            }
            self.choose(&policy.signed, true)?;
            self.choose(&policy.encrypted, false)?;
        }
        let secured = match &policy.binding {
            Binding::Asymmetric { initiator, recipient } => self.asymmetric(*initiator, *recipient)?,
            Binding::Symmetric { protection } => self.symmetric(*protection)?,
            Binding::Transport { .. } => {
                if let Some(timestamp) = timestamp {
                    self.endorse(timestamp)?;
                }
                None
            }
            Binding::None => None,
        };
        // Encrypted data comes after the element that says how it is encrypted.
        if let Some(list) = secured {
            let before =
                elements(self.document, self.security).into_iter().take_while(|child| *child != list);
            let misplaced: Vec<NodeId> =
                before.filter(|&child| self.document.is_element(child, XENC, "EncryptedData")).collect();
            for data in misplaced {
                self.document.detach(data);
                self.document.insert_after(list, data);
            }
        }
        if let (Layout::TimestampLast, Some(timestamp)) = (policy.layout, timestamp) {
            self.document.detach(timestamp);
            self.document.append(self.security, timestamp);
        }
        Ok(())
    }

    fn element(&mut self, parent: NodeId, prefix: &str, namespace: &str, local: &str) -> NodeId {
        self.document.append_element(parent, prefix, namespace, local)
    }

    fn leaf(&mut self, parent: NodeId, prefix: &str, namespace: &str, local: &str, text: &str) -> NodeId {
        let node = self.element(parent, prefix, namespace, local);
        self.document.append_text(node, text);
        node
    }

    fn attribute(&mut self, node: NodeId, local: &str, value: &str) {
        self.document.set_attribute(node, "", "", local, value);
    }

    fn new_id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}-{}-{}", self.mark, self.ids)
    }

    /// The `wsu:Id` of an element, a new one.
    fn name(&mut self, node: NodeId, kind: &str) -> String {
        let id = self.new_id(kind);
        self.document.set_attribute(node, "wsu", WSU, "Id", &id);
        id
    }

    fn moment(&self, at: Timestamp) -> String {
        let (text, precision) = (at.to_string(), self.side.policy.config.milliseconds);
        let seconds = text.get(..19).unwrap_or_default();
        match precision {
            true => format!("{seconds}.{:03}Z", at.subsec_millisecond()),
            false => format!("{seconds}Z"),
        }
    }

    fn timestamp(&mut self) -> NodeId {
        let now = self.environment.now;
        let ttl = SignedDuration::from_secs(self.side.policy.config.ttl);
        let node = self.element(self.security, "wsu", WSU, "Timestamp");
        self.name(node, "TS");
        let (created, expires) = (self.moment(now), self.moment(now.saturating_add(ttl).unwrap_or(now)));
        self.leaf(node, "wsu", WSU, "Created", &created);
        self.leaf(node, "wsu", WSU, "Expires", &expires);
        if !matches!(self.side.policy.binding, Binding::Transport { .. } | Binding::None) {
            self.to_sign.push(node);
        }
        node
    }

    fn user_token(&mut self) -> Result<(), Failure> {
        let Some(wanted) = self.side.policy.user else { return Ok(()) };
        let user = self.side.policy.config.user.clone();
        let no = |why: &str| Failure::invalid(format!("a UsernameToken of `{user}` cannot be made: {why}"));
        let node = self.element(self.security, "wsse", WSSE, "UsernameToken");
        self.name(node, "UT");
        self.leaf(node, "wsse", WSSE, "Username", &user);
        if !wanted.without_password {
            let password =
                (self.environment.password)(&user).ok_or_else(|| no("its password is not known"))?;
            let text = String::from_utf8_lossy(&password).into_owned();
            if wanted.hashed {
                let nonce = random(16);
                let created = self.moment(self.environment.now);
                let digest = sha1(&[&nonce, created.as_bytes(), &password].concat());
                let password = self.leaf(node, "wsse", WSSE, "Password", &base64::encode(digest));
                self.attribute(password, "Type", DIGEST);
                let child = self.leaf(node, "wsse", WSSE, "Nonce", &base64::encode(&*nonce));
                self.attribute(child, "EncodingType", BASE64);
                self.leaf(node, "wsu", WSU, "Created", &created);
            } else {
                let password = self.leaf(node, "wsse", WSSE, "Password", &text);
                self.attribute(password, "Type", TEXT);
            }
        }
        if wanted.signed {
            self.to_sign.push(node);
        }
        // The password is confidential, so the token is encrypted where there is a key for it.
        if wanted.encrypted || self.side.policy.encrypts() {
            self.to_encrypt.push((node, true));
        }
        Ok(())
    }

    /// The certificate whose key will sign the signature, in requests.
    fn endorsing_token(&mut self) -> Result<(), Failure> {
        let wanted = self.side.policy.endorsing.filter(|_| self.side.role == Role::Initiator);
        let Some(wanted) = wanted else { return Ok(()) };
        if matches!(wanted.token.include, Include::Always | Include::ToRecipient) {
            let identity = self.identity()?;
            let token = self.token(self.security, &identity.certificate);
            let uri = format!("#{}", self.name(token, "X509"));
            if wanted.signed && !matches!(self.side.policy.binding, Binding::Transport { .. }) {
                self.to_sign.push(token);
            }
            self.endorsing = Some((token, uri));
        }
        Ok(())
    }

    /// Signs the signature of the message, or what stands for it, where the policy asks for that.
    fn endorse(&mut self, endorsed: NodeId) -> Result<(), Failure> {
        let policy = Arc::clone(&self.side.policy);
        let wanted = policy.endorsing.filter(|_| self.side.role == Role::Initiator);
        let Some(wanted) = wanted else { return Ok(()) };
        let identity = self.identity()?;
        let included = self.endorsing.clone();
        self.to_sign.push(endorsed);
        if let Some((token, _)) = included.as_ref().filter(|_| policy.protect_tokens) {
            self.to_sign.push(*token);
        }
        self.sign(
            Signing::Rsa(policy.suite.signature),
            |work, info| match &included {
                Some((_, uri)) => work.refer_to(info, uri, Some(X509_V3)),
                None => work.refer(info, &identity.certificate, wanted.token),
            },
            |bytes| identity.key.sign(policy.suite.signature, bytes),
        )?;
        Ok(())
    }

    fn confirm(&mut self) {
        let values: Vec<Option<String>> = match self.exchange.signatures.as_slice() {
            [] => vec![None],
            signatures => signatures.iter().map(|signature| Some(base64::encode(signature))).collect(),
        };
        for value in values {
            let node = self.element(self.security, "wsse11", WSSE11, "SignatureConfirmation");
            self.name(node, "SC");
            if let Some(value) = value {
                self.attribute(node, "Value", &value);
            }
            self.to_sign.push(node);
        }
    }

    /// The parts of the message that are to be signed or encrypted.
    fn choose(&mut self, parts: &Parts, sign: bool) -> Result<(), Failure> {
        let mut chosen = Vec::new();
        if parts.body {
            chosen.push((self.places.body, false));
        }
        for block in elements(self.document, self.header) {
            let (namespace, local) = (self.document.namespace(block), self.document.local(block));
            if block != self.security && parts.has_header(namespace, local) {
                chosen.push((block, true));
            }
        }
        for (selections, whole) in [(&parts.elements, true), (&parts.contents, false)] {
            for selected in selections {
                let found = selected.elements(self.document).ok_or_else(|| {
                    Failure::invalid(format!("{} does not select elements", selected.source()))
                })?;
                chosen.extend(found.into_iter().map(|node| (node, whole)));
            }
        }
        let mut known: HashSet<NodeId> = match sign {
            true => self.to_sign.iter().copied().collect(),
            false => self.to_encrypt.iter().map(|(node, _)| *node).collect(),
        };
        for (node, whole) in chosen {
            // A part within another part that is encrypted is encrypted with that.
            let mut around =
                std::iter::successors(self.document.parent(node), |&node| self.document.parent(node));
            if !sign && around.any(|outer| known.contains(&outer)) || !known.insert(node) {
                continue;
            }
            match sign {
                true => self.to_sign.push(node),
                false => self.to_encrypt.push((node, whole)),
            }
        }
        Ok(())
    }

    fn identity(&self) -> Result<Arc<Identity>, Failure> {
        self.side.own.clone().ok_or_else(|| Failure::invalid("there is no private key to sign with"))
    }

    fn receiver(&self) -> Result<Arc<Certificate>, Failure> {
        let encrypt_for = self.side.policy.config.encrypt_for.as_str();
        let signer = (self.side.role == Role::Recipient
            && (encrypt_for == REQUEST_SIGNER || encrypt_for.is_empty()))
        .then(|| self.exchange.signer.clone())
        .flatten();
        let found = signer.or_else(|| self.side.peer.clone());
        let found = found.ok_or_else(|| Failure::invalid("there is no certificate to encrypt for"))?;
        match found.is_valid_at(self.environment.now) && found.may_encipher() {
            true => Ok(found),
            false => Err(Failure::invalid(format!("nothing can be encrypted for {}", found.subject))),
        }
    }

    /// A reference to a certificate that the other side has.
    fn refer(&mut self, parent: NodeId, certificate: &Certificate, token: Token) {
        let style = token.reference.unwrap_or(match self.side.policy.thumbprints {
            true => Reference::Thumbprint,
            false => Reference::IssuerSerial,
        });
        let reference = self.element(parent, "wsse", WSSE, "SecurityTokenReference");
        let (kind, value) = match style {
            Reference::Thumbprint => (THUMBPRINT, base64::encode(certificate.thumbprint)),
            Reference::KeyIdentifier => (SKI, base64::encode(&certificate.key_identifier)),
            Reference::Embedded => {
                let embedded = self.element(reference, "wsse", WSSE, "Embedded");
                self.token(embedded, certificate);
                return;
            }
            Reference::IssuerSerial => {
                let data = self.element(reference, "ds", DS, "X509Data");
                let serial = self.element(data, "ds", DS, "X509IssuerSerial");
                self.leaf(serial, "ds", DS, "X509IssuerName", &certificate.issuer);
                self.leaf(serial, "ds", DS, "X509SerialNumber", &certificate.decimal_serial());
                return;
            }
        };
        let identifier = self.leaf(reference, "wsse", WSSE, "KeyIdentifier", &value);
        self.attribute(identifier, "ValueType", kind);
        self.attribute(identifier, "EncodingType", BASE64);
    }

    fn token(&mut self, parent: NodeId, certificate: &Certificate) -> NodeId {
        let text = base64::encode(&certificate.der);
        let node = self.leaf(parent, "wsse", WSSE, "BinarySecurityToken", &text);
        self.attribute(node, "EncodingType", BASE64);
        self.attribute(node, "ValueType", X509_V3);
        node
    }

    fn asymmetric(&mut self, initiator: Token, recipient: Token) -> Result<Option<NodeId>, Failure> {
        let policy = Arc::clone(&self.side.policy);
        let (mine, theirs, included) = match self.side.role {
            Role::Initiator => {
                (initiator, recipient, matches!(initiator.include, Include::Always | Include::ToRecipient))
            }
            Role::Recipient => {
                (recipient, initiator, matches!(recipient.include, Include::Always | Include::ToInitiator))
            }
        };
        let sign = |work: &mut Self| -> Result<(), Failure> {
            if !policy.signs() || work.to_sign.is_empty() {
                return Ok(());
            }
            let identity = work.identity()?;
            let mut uri = None;
            if included {
                let token = work.token(work.security, &identity.certificate);
                uri = Some(format!("#{}", work.name(token, "X509")));
                if policy.protect_tokens {
                    work.to_sign.push(token);
                }
            }
            let signature = work.sign(
                Signing::Rsa(policy.suite.signature),
                |work, info| match &uri {
                    Some(uri) => work.refer_to(info, uri, Some(X509_V3)),
                    None => work.refer(info, &identity.certificate, mine),
                },
                |bytes| identity.key.sign(policy.suite.signature, bytes),
            )?;
            work.endorse(signature)?;
            if policy.encrypt_signature && !policy.encrypt_before_signing {
                work.to_encrypt.push((signature, true));
            }
            Ok(())
        };
        let first = self.after_tokens();
        if policy.encrypt_before_signing {
            let key = self.encrypt_for(theirs, first)?;
            sign(self)?;
            // The receiver meets the signature first: what is signed is what is encrypted.
            if let Some(key) = key {
                self.document.detach(key);
                self.document.append(self.security, key);
            }
            Ok(key)
        } else {
            sign(self)?;
            self.encrypt_for(theirs, first)
        }
    }

    /// How many elements the header has now: tokens that come before everything else.
    fn after_tokens(&self) -> usize {
        elements(self.document, self.security).len()
    }

    /// Encrypts for the certificate of the other side, with a key of its own for the message. The element with the key comes at a place
    /// in the header.
    fn encrypt_for(&mut self, token: Token, place: usize) -> Result<Option<NodeId>, Failure> {
        if self.to_encrypt.is_empty() {
            return Ok(None);
        }
        let receiver = self.receiver()?;
        let secret = random(self.side.policy.suite.cipher.key_length());
        let (key, id, _) = self.encrypted_key(&receiver, &secret, token)?;
        let used =
            Used { secret, uri: Some(format!("#{id}")), digest: None, value_type: Some(ENCRYPTED_KEY) };
        let list = self.element(key, "xenc", XENC, "ReferenceList");
        self.encrypt(list, &used)?;
        self.put_at(key, place);
        Ok(Some(key))
    }

    fn put_at(&mut self, node: NodeId, place: usize) {
        self.document.detach(node);
        match elements(self.document, self.security).get(place) {
            Some(&before) => _ = self.document.insert_before(before, node),
            None => _ = self.document.append(self.security, node),
        }
    }

    fn encrypted_key(
        &mut self,
        receiver: &Certificate,
        secret: &[u8],
        token: Token,
    ) -> Result<(NodeId, String, [u8; 20]), Failure> {
        let how = self.side.policy.suite.transport;
        let cipher = receiver.public.encrypt(how, secret);
        let cipher = cipher.ok_or_else(|| Failure::invalid("the key cannot be encrypted"))?;
        let key = self.element(self.security, "xenc", XENC, "EncryptedKey");
        self.document.declare_namespace(key, "xenc", XENC);
        let id = self.new_id("EK");
        self.attribute(key, "Id", &id);
        let method = self.element(key, "xenc", XENC, "EncryptionMethod");
        self.attribute(method, "Algorithm", how.uri());
        let info = self.element(key, "ds", DS, "KeyInfo");
        self.document.declare_namespace(info, "ds", DS);
        self.refer(info, receiver, token);
        let data = self.element(key, "xenc", XENC, "CipherData");
        self.leaf(data, "xenc", XENC, "CipherValue", &base64::encode(&cipher));
        Ok((key, id, sha1(&cipher)))
    }

    /// A list in the header names what is encrypted, if there is anything.
    fn symmetric(&mut self, protection: Token) -> Result<Option<NodeId>, Failure> {
        let policy = Arc::clone(&self.side.policy);
        let master = match self.side.role {
            Role::Initiator => {
                let receiver = self.receiver()?;
                let length = match protection.derived {
                    true => 32,
                    false => policy.suite.cipher.key_length(),
                };
                let secret = random(length);
                let (_, id, digest) = self.encrypted_key(&receiver, &secret, protection)?;
                self.exchange.secret = Some((secret.clone(), digest));
                let uri = Some(format!("#{id}"));
                Used { secret, uri, digest: None, value_type: Some(ENCRYPTED_KEY) }
            }
            Role::Recipient => {
                let (secret, digest) = self
                    .exchange
                    .secret
                    .clone()
                    .ok_or_else(|| Failure::invalid("there is no key that both sides have"))?;
                Used { secret, uri: None, digest: Some(digest), value_type: None }
            }
        };
        let signs = policy.signs() && !self.to_sign.is_empty();
        let encrypts = !self.to_encrypt.is_empty() || signs && policy.encrypt_signature;
        let first = self.after_tokens();
        let derive = |work: &mut Self, length: usize| match protection.derived {
            true => work.derived(&master, length),
            false => work.same(&master),
        };
        let signing = signs.then(|| derive(self, policy.suite.derived_signature));
        let encrypting = encrypts.then(|| derive(self, policy.suite.cipher.key_length()));
        let sign = |work: &mut Self| -> Result<(), Failure> {
            let Some(used) = &signing else { return Ok(()) };
            let how = policy.suite.signature;
            let signature = work.sign(
                Signing::Hmac(how),
                |work, info| work.refer_to_used(info, used),
                |bytes| Some(mac(how, &used.secret, bytes)),
            )?;
            work.endorse(signature)?;
            if policy.encrypt_signature && !policy.encrypt_before_signing {
                work.to_encrypt.push((signature, true));
            }
            Ok(())
        };
        let encrypt = |work: &mut Self| -> Result<Option<NodeId>, Failure> {
            let Some(used) = &encrypting else { return Ok(None) };
            let list = work.element(work.security, "xenc", XENC, "ReferenceList");
            work.document.declare_namespace(list, "xenc", XENC);
            work.encrypt(list, used)?;
            Ok(Some(list))
        };
        if policy.encrypt_before_signing {
            let list = encrypt(self)?;
            sign(self)?;
            if let Some(list) = list {
                self.document.detach(list);
                self.document.append(self.security, list);
            }
            return Ok(list);
        }
        let place =
            first + usize::from(protection.derived && signs) + usize::from(protection.derived && encrypts);
        sign(self)?;
        let list = encrypt(self)?;
        if let Some(list) = list {
            self.put_at(list, place);
        }
        Ok(list)
    }

    fn same(&self, master: &Used) -> Used {
        Used {
            secret: master.secret.clone(),
            uri: master.uri.clone(),
            digest: master.digest,
            value_type: master.value_type,
        }
    }

    fn derived(&mut self, master: &Used, length: usize) -> Used {
        let namespace = self.side.policy.conversation;
        let node = self.element(self.security, "wsc", namespace, "DerivedKeyToken");
        self.document.declare_namespace(node, "wsc", namespace);
        let id = self.name(node, "DK");
        self.refer_to_used(node, master);
        let nonce = random(16);
        self.leaf(node, "wsc", namespace, "Offset", "0");
        self.leaf(node, "wsc", namespace, "Length", &length.to_string());
        self.leaf(node, "wsc", namespace, "Nonce", &base64::encode(&*nonce));
        let secret = p_sha1(&master.secret, &[DEFAULT_LABEL.as_bytes(), &nonce].concat(), 0, length);
        let value_type = match namespace {
            WSC_2005 => "http://schemas.xmlsoap.org/ws/2005/02/sc/dk",
            _ => "http://docs.oasis-open.org/ws-sx/ws-secureconversation/200512/dk",
        };
        Used { secret, uri: Some(format!("#{id}")), digest: None, value_type: Some(value_type) }
    }

    fn refer_to(&mut self, parent: NodeId, uri: &str, value_type: Option<&str>) {
        let reference = self.element(parent, "wsse", WSSE, "SecurityTokenReference");
        if value_type == Some(ENCRYPTED_KEY) {
            self.document.set_attribute(reference, "wsse11", WSSE11, "TokenType", ENCRYPTED_KEY);
        }
        let token = self.element(reference, "wsse", WSSE, "Reference");
        self.attribute(token, "URI", uri);
        if let Some(value_type) = value_type {
            self.attribute(token, "ValueType", value_type);
        }
    }

    fn refer_to_used(&mut self, parent: NodeId, used: &Used) {
        match (&used.uri, used.digest) {
            (Some(uri), _) => self.refer_to(parent, uri, used.value_type),
            (None, digest) => {
                let reference = self.element(parent, "wsse", WSSE, "SecurityTokenReference");
                self.document.set_attribute(reference, "wsse11", WSSE11, "TokenType", ENCRYPTED_KEY);
                let value = base64::encode(digest.unwrap_or_default());
                let identifier = self.leaf(reference, "wsse", WSSE, "KeyIdentifier", &value);
                self.attribute(identifier, "ValueType", KEY_SHA1);
                self.attribute(identifier, "EncodingType", BASE64);
            }
        }
    }

    fn canonical(&mut self, node: NodeId, to: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        self.budget.canonicalize(self.document, node, Vec::new(), to)
    }

    fn sign(
        &mut self,
        how: Signing,
        refer: impl FnOnce(&mut Self, NodeId),
        make: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<NodeId, Failure> {
        let digest: Digest = self.side.policy.suite.digest;
        let to_sign = std::mem::take(&mut self.to_sign);
        let mut references = Vec::with_capacity(to_sign.len());
        for node in to_sign {
            let has_plain_id = self.document.is_element(node, XENC, "EncryptedData")
                || self.document.is_element(node, DS, "Signature");
            let id = match has_plain_id {
                true => self.document.attribute(node, "", "Id"),
                false => self.document.attribute(node, WSU, "Id"),
            };
            let id = match id {
                Some(id) if id.contains(&self.mark) => id.to_owned(),
                // Ids of before may belong to others too.
                _ => self.name(node, "id"),
            };
            references.push((node, id));
        }
        let signature = self.element(self.security, "ds", DS, "Signature");
        self.document.declare_namespace(signature, "ds", DS);
        let id = self.new_id("SIG");
        self.attribute(signature, "Id", &id);
        let info = self.element(signature, "ds", DS, "SignedInfo");
        let method = self.element(info, "ds", DS, "CanonicalizationMethod");
        self.attribute(method, "Algorithm", EXC_C14N);
        let method = self.element(info, "ds", DS, "SignatureMethod");
        self.attribute(method, "Algorithm", how.uri());
        for (node, id) in references {
            let mut digested = digest.begin();
            self.canonical(node, &mut |piece| digested.update(piece))?;
            let value = base64::encode(digested.finish());
            let reference = self.element(info, "ds", DS, "Reference");
            self.attribute(reference, "URI", &format!("#{id}"));
            let transforms = self.element(reference, "ds", DS, "Transforms");
            let transform = self.element(transforms, "ds", DS, "Transform");
            self.attribute(transform, "Algorithm", EXC_C14N);
            let method = self.element(reference, "ds", DS, "DigestMethod");
            self.attribute(method, "Algorithm", digest.uri());
            self.leaf(reference, "ds", DS, "DigestValue", &value);
        }
        let mut signed = Vec::new();
        self.canonical(info, &mut |piece| signed.extend_from_slice(piece))?;
        let value = make(&signed).ok_or_else(|| Failure::invalid("the message cannot be signed"))?;
        self.leaf(signature, "ds", DS, "SignatureValue", &base64::encode(&value));
        let key = self.element(signature, "ds", DS, "KeyInfo");
        refer(self, key);
        if self.side.role == Role::Initiator {
            self.exchange.signatures.push(value);
        }
        Ok(signature)
    }

    /// Encrypts what is to be encrypted, and lists it.
    fn encrypt(&mut self, list: NodeId, used: &Used) -> Result<(), Failure> {
        let cipher = self.side.policy.suite.cipher;
        for (node, whole) in std::mem::take(&mut self.to_encrypt) {
            // Encrypted where it was written, behind room for the vector.
            let mut plain = Vec::with_capacity(self.document.source().len() + 1024);
            plain.resize(cipher.vector_length(), 0);
            let options =
                WriteOptions { declaration: false, inherited_namespaces: true, ..WriteOptions::default() };
            if whole {
                xml::write(self.document, node, &options, &mut plain);
            } else {
                for child in self.document.children(node) {
                    match self.document.kind(child) {
                        xml::NodeKind::Text => xml::escape::push_text(&mut plain, self.document.text(child)),
                        _ => xml::write(self.document, child, &options, &mut plain),
                    }
                }
                // An empty value is not a secret, but the receiver looks for an encrypted one.
            }
            cipher
                .encrypt_in_place(&used.secret, &mut plain)
                .ok_or_else(|| Failure::invalid("the message cannot be encrypted"))?;
            let id = self.new_id("ED");
            let data = self.document.create_element("xenc", XENC, "EncryptedData");
            self.document.declare_namespace(data, "xenc", XENC);
            self.attribute(data, "Id", &id);
            self.attribute(data, "Type", if whole { ELEMENT } else { CONTENT });
            let method = self.element(data, "xenc", XENC, "EncryptionMethod");
            self.attribute(method, "Algorithm", cipher.uri());
            let info = self.element(data, "ds", DS, "KeyInfo");
            self.document.declare_namespace(info, "ds", DS);
            self.refer_to_used(info, used);
            let holder = self.element(data, "xenc", XENC, "CipherData");
            let value = self.element(holder, "xenc", XENC, "CipherValue");
            self.document.append_text_with(value, |to| base64::encode_to(&plain, to));
            if !whole {
                self.document.remove_children(node);
                self.document.append(node, data);
            } else {
                let is_header = self.document.parent(node) == Some(self.header);
                match is_header && self.side.policy.wss11 {
                    true => {
                        let around = self.document.create_element("wsse11", WSSE11, "EncryptedHeader");
                        self.document.declare_namespace(around, "wsse11", WSSE11);
                        self.document.replace(node, around);
                        self.name(around, "EH");
                        self.document.append(around, data);
                    }
                    false => _ = self.document.replace(node, data),
                }
                // What is signed after that is the encrypted form.
                if let Some(signed) = self.to_sign.iter_mut().find(|signed| **signed == node) {
                    *signed = self
                        .document
                        .parent(data)
                        .filter(|_| is_header && self.side.policy.wss11)
                        .unwrap_or(data);
                }
            }
            let entry = self.element(list, "xenc", XENC, "DataReference");
            self.attribute(entry, "URI", &format!("#{id}"));
        }
        Ok(())
    }
}
