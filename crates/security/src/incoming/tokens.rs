//! Keys and certificates that references lead to: tokens, encrypted keys, derived keys.

use super::Work;
use super::decryption::undecryptable;
use crate::algorithm::{Digest, Secret, Transport, p_sha1, sha1};
use crate::base64;
use crate::certificate::Certificate;
use crate::failure::Failure;
use crate::keys::Identity;
use crate::names::*;
use crate::policy::Binding;
use crate::side::{Role, elements};
use std::sync::Arc;
use xml::NodeId;

/// Longest derived key, and how far into the stream it may begin.
const LONGEST_DERIVED: usize = 256;

/// How deep references to tokens may lead to one another.
const DEEPEST: usize = 4;

/// What a reference leads to.
#[derive(Clone)]
pub(super) enum Key {
    /// A certificate, with those between it and who issued it.
    Certificate(Vec<u8>, Vec<Vec<u8>>),
    /// A key that both sides have; `None`: it could not be decrypted.
    Secret(Option<Secret>),
}

/// Whether a certificate is the one that a reference names.
type IsCertificate<'a> = dyn Fn(&Certificate) -> bool + 'a;

/// The label of derived keys that have none.
pub(crate) const DEFAULT_LABEL: &str = "WS-SecureConversationWS-SecureConversation";

impl Work<'_> {
    /// The key that a `SecurityTokenReference` leads to.
    pub(super) fn resolve(&mut self, reference: NodeId, depth: usize) -> Result<Key, Failure> {
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
                use der::{Reader, SEQUENCE};
                let mut path = Vec::new();
                let mut certificates =
                    Reader(&der).enter(SEQUENCE).ok_or_else(|| wrong("it is not a path"))?;
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

    /// The private key that a reference means.
    fn identity(&self, reference: NodeId) -> Result<Arc<Identity>, Failure> {
        let is_it = self.certificate_reference(reference, 0)?;
        let identity = self.side.store.identities.iter().find(|identity| is_it(&identity.certificate));
        identity.cloned().ok_or_else(|| Failure::invalid("a key is encrypted for somebody else"))
    }

    /// The key in an `EncryptedKey`; `None`: it cannot be decrypted, which shows only later.
    pub(super) fn encrypted_key(&mut self, node: NodeId) -> Result<Option<Secret>, Failure> {
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
}
