//! The signature: its references are digested, and its value is verified.

use super::tokens::Key;
use super::{Endorsement, MOST, Signature, Work, shortened};
use crate::algorithm::{Digest, Signing, is_mac, random};
use crate::base64;
use crate::failure::Failure;
use crate::names::*;
use crate::policy::Binding;
use crate::side::{Role, elements};
use std::collections::HashSet;
use xml::{Document, NodeId, NodeKind};

impl Work<'_> {
    pub(super) fn verify(&mut self, node: NodeId) -> Result<(), Failure> {
        let wrong = |why: &str| Failure::invalid(format!("ds:Signature: {why}"));
        let endorses = self.endorses(node);
        let has_one = if endorses { self.endorsement.is_some() } else { self.signature.is_some() };
        if has_one {
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
        let token = self.child(reference, WSSE, "Reference").filter(|_| endorses);
        let token =
            token.map(|form| self.by_reference(self.document.attribute(form, "", "URI"))).transpose()?;
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
        self.budget
            .canonicalize(&self.document, info, prefixes, &mut |piece| signed.extend_from_slice(piece))?;
        let suite = self.side.policy.suite;
        let symmetric = matches!(self.side.policy.binding, Binding::Symmetric { .. });
        let (certificate, between) = match (key, how) {
            (Key::Certificate(der, between), Signing::Rsa(digest))
                if (endorses || !symmetric) && is_as_strong(digest, suite.signature) =>
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
                (Some(certificate), between)
            }
            (Key::Secret(secret), Signing::Hmac(digest)) if symmetric && !endorses => {
                let secret = secret.unwrap_or_else(|| random(32));
                if !is_mac(digest, &secret, &signed, &value) {
                    return Err(wrong("its value is wrong"));
                }
                (None, Vec::new())
            }
            _ => return Err(wrong("its algorithm or its key is not what the policy asks for")),
        };
        if references.is_empty() || references.len() > MOST {
            return Err(wrong("it is over nothing, or over too much"));
        }
        let references = references.to_vec();
        let mut covers = HashSet::new();
        for reference in references {
            if !covers.insert(self.reference(reference)?) {
                return Err(wrong("two references are to the same element"));
            }
        }
        match certificate {
            Some(certificate) if endorses => {
                // What else it covered would be signed by somebody whom the policy does not ask to.
                if !covers.iter().all(|&node| self.may_be_endorsed(node)) {
                    return Err(wrong("it endorses, and is over something else too"));
                }
                self.endorsement = Some(Endorsement { value, covers, certificate, between, token });
            }
            certificate => {
                self.signed.extend(covers);
                self.signature = Some(Signature { node, value, certificate, between });
            }
        }
        Ok(())
    }

    /// Whether a signature is one of the endorsing token: it is over another signature, or nothing else may sign.
    fn endorses(&self, node: NodeId) -> bool {
        let policy = &self.side.policy;
        if policy.endorsing.is_none() || self.side.role != Role::Recipient {
            return false;
        }
        if matches!(policy.binding, Binding::Transport { .. }) {
            return true;
        }
        let info = self.child(node, DS, "SignedInfo");
        let references = info.map_or_else(Vec::new, |info| elements(&self.document, info));
        let mut targets = references.into_iter().take(MOST + 2).filter_map(|reference| {
            let uri = self.document.attribute(reference, "", "URI")?;
            self.by_reference(Some(uri)).ok()
        });
        targets.any(|target| self.document.is_element(target, DS, "Signature"))
    }

    /// Whether an endorsing signature may cover an element: one of the security header that is a signature, a token or the timestamp.
    fn may_be_endorsed(&self, node: NodeId) -> bool {
        let is = |namespace: &str, local: &str| self.document.is_element(node, namespace, local);
        self.document.parent(node) == Some(self.security)
            && (is(DS, "Signature") || is(WSSE, "BinarySecurityToken") || is(WSU, "Timestamp"))
    }

    /// Verifies a reference; the element that it is to.
    fn reference(&mut self, node: NodeId) -> Result<NodeId, Failure> {
        let wrong = |why: &str| Failure::invalid(format!("ds:Reference: {why}"));
        if !self.document.is_element(node, DS, "Reference") {
            return Err(wrong("SignedInfo has something else"));
        }
        let target = self.by_reference(self.document.attribute(node, "", "URI"))?;
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
        self.budget.canonicalize(&self.document, target, prefixes, &mut |piece| digested.update(piece))?;
        if digested.finish().as_ref() != value {
            return Err(wrong(&format!("the digest of {} is wrong", shortened(self.document.local(target)))));
        }
        Ok(target)
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

    /// Removes comments: no signature covers them, and one that anybody inserts splits a text in two.
    pub(super) fn drop_comments(&mut self) {
        let document = &mut self.document;
        let nodes = document.descendants(Document::ROOT);
        let comments: Vec<NodeId> = nodes.filter(|&node| document.kind(node) == NodeKind::Comment).collect();
        for comment in comments {
            // Gone already, with one before it.
            if document.parent(comment).is_none() {
                continue;
            }
            // All texts and comments that stand together become one text at once: one by one, each would be copied many times.
            let belongs = |node: &NodeId| matches!(document.kind(*node), NodeKind::Text | NodeKind::Comment);
            let before =
                std::iter::successors(document.prev_sibling(comment), |&node| document.prev_sibling(node));
            let first = before.take_while(belongs).last().unwrap_or(comment);
            let from_first = std::iter::successors(Some(first), |&node| document.next_sibling(node));
            let run: Vec<NodeId> = from_first.take_while(belongs).collect();
            let (mut texts, rest): (Vec<_>, Vec<_>) =
                run.into_iter().partition(|&node| document.kind(node) == NodeKind::Text);
            rest.into_iter().for_each(|node| document.detach(node));
            if texts.len() > 1 {
                let whole: String = texts.iter().map(|&node| document.text(node)).collect();
                let first = texts.remove(0);
                document.set_text(first, &whole);
                texts.into_iter().for_each(|node| document.detach(node));
            }
        }
    }
}

fn is_as_strong(digest: Digest, wanted: Digest) -> bool {
    let rank = |digest: Digest| match digest {
        Digest::Sha1 => 0,
        Digest::Sha256 => 1,
        Digest::Sha384 => 2,
        Digest::Sha512 => 3,
    };
    rank(digest) >= rank(wanted)
}
