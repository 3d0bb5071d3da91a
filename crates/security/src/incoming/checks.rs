//! Whether the message is what the policy asks for: parts, times, users, confirmations.

use super::{Work, after, shortened, time};
use crate::algorithm::{Digest, random, sha1};
use crate::base64;
use crate::failure::Failure;
use crate::names::*;
use crate::policy::{Binding, Parts};
use crate::replay::Marks;
use crate::side::{Role, elements};
use jiff::{SignedDuration, Timestamp};
use xml::NodeId;

impl Work<'_> {
    /// Checks what was found against the policy; returns what has to be remembered of the message.
    pub(super) fn check(&mut self) -> Result<Marks, Failure> {
        let policy = &self.side.policy;
        let message = matches!(policy.binding, Binding::Asymmetric { .. } | Binding::Symmetric { .. });
        let not_signed = |what: &str| Failure::invalid(format!("{what} is not signed"));
        if policy.timestamp && self.timestamp.is_none() {
            return Err(Failure::invalid("the message has no timestamp"));
        }
        if policy.signs() && self.signature.is_none() {
            return Err(Failure::invalid("the message is not signed"));
        }
        self.check_endorsement()?;
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
            self.known_user = self.check_user(message, &mut marks)?;
        }
        let with_certificate =
            self.signature.as_ref().is_some_and(|signature| signature.certificate.is_some());
        if with_certificate
            || self.endorsement.is_some()
            || policy.user.is_some_and(|wanted| !wanted.without_password)
        {
            marks.of_somebody();
        }
        if policy.signs() && !policy.signed.is_empty() {
            self.check_seen()?;
            self.drop_unsigned();
        }
        if self.signature.is_some() && self.commented {
            self.drop_comments();
        }
        Ok(marks)
    }

    /// The endorsing signature is over the very signature that secures the message.
    fn check_endorsement(&self) -> Result<(), Failure> {
        let policy = &self.side.policy;
        let Some(wanted) = policy.endorsing.filter(|_| self.side.role == Role::Recipient) else {
            return Ok(());
        };
        let Some(endorsement) = &self.endorsement else {
            return Err(Failure::invalid("the message has no endorsing signature"));
        };
        let by_transport = matches!(policy.binding, Binding::Transport { .. });
        let endorsed = match by_transport {
            true => self.timestamp.map(|(timestamp, _, _)| timestamp),
            false => self.signature.as_ref().map(|signature| signature.node),
        };
        if !endorsed.is_some_and(|node| endorsement.covers.contains(&node)) {
            return Err(Failure::invalid("the endorsing signature is not over what secures the message"));
        }
        if wanted.signed
            && !by_transport
            && !endorsement.token.is_some_and(|token| self.signed.contains(&token))
        {
            return Err(Failure::invalid("the endorsing token is not signed"));
        }
        Ok(())
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
        let mut confirmed = Vec::new();
        for (node, value) in &self.confirmations {
            let is_confirmed = match value {
                None => sent.is_empty(),
                // Each once.
                Some(value) => sent.contains(value) && !confirmed.contains(&value),
            };
            if !is_confirmed || !self.is_signed(*node) {
                return Err(wrong());
            }
            confirmed.extend(value);
        }
        Ok(())
    }

    /// The name of the user, where the policy asks for one.
    fn check_user(&self, message: bool, marks: &mut Marks) -> Result<Option<String>, Failure> {
        let policy = &self.side.policy;
        let Some(wanted) = policy.user else { return Ok(None) };
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
                Some(_) => Ok(Some(name.clone())),
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
        Ok(Some(name.clone()))
    }

    /// Whether the signature covers an element, or one that contains it.
    pub(super) fn is_signed(&self, node: NodeId) -> bool {
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
        if let Some(endorsement) = self.endorsement.as_ref().filter(|_| self.signature.is_none()) {
            marks.add("signature", &endorsement.value, until);
        }
        marks
    }
}
