//! The signature: its references are digested, and its value is verified.

use super::tokens::Key;
use super::{MOST, Signature, Work, shortened};
use crate::algorithm::{Digest, Signing, is_mac, random};
use crate::base64;
use crate::failure::Failure;
use crate::names::*;
use crate::policy::Binding;
use crate::side::elements;
use xml::c14n::{Algorithm, Options, canonicalize_to};
use xml::{Document, NodeId, NodeKind};

impl Work<'_> {
    pub(super) fn verify(&mut self, node: NodeId) -> Result<(), Failure> {
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
        let (certificate, between) = match (key, how) {
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
                (Some(certificate), between)
            }
            (Key::Secret(secret), Signing::Hmac(digest)) if symmetric => {
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
        for reference in references {
            self.reference(reference)?;
        }
        self.signature = Some(Signature { value, certificate, between });
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

    /// Removes comments: no signature covers them, and one that anybody inserts splits a text in two.
    pub(super) fn drop_comments(&mut self) {
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
