//! What is encrypted takes the place of its encryption.

use super::tokens::Key;
use super::{MOST, Work};
use crate::algorithm::{Cipher, Secret, random};
use crate::base64;
use crate::failure::Failure;
use crate::names::*;
use crate::side::elements;
use std::borrow::Cow;
use xml::{Document, NodeId, NodeKind};

impl Work<'_> {
    /// Decrypts all that a list refers to.
    pub(super) fn reference_list(&mut self, list: NodeId, key: Option<&Key>) -> Result<(), Failure> {
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

    pub(super) fn decrypt(&mut self, data: NodeId, secret: Option<Secret>) -> Result<(), Failure> {
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

    /// The text of a `CipherValue`.
    pub(super) fn cipher_text(&self, node: NodeId) -> Result<Cow<'_, str>, Failure> {
        let data = self.child(node, XENC, "CipherData");
        let value = data.and_then(|data| self.child(data, XENC, "CipherValue"));
        let value = value.ok_or_else(|| Failure::invalid("something encrypted has no CipherValue"))?;
        Ok(self.text(value))
    }
}

/// One error for everything that cannot be decrypted: the log does not tell more either, so that no timing of it does.
pub(super) fn undecryptable() -> Failure {
    Failure::invalid("something in the message cannot be decrypted")
}

/// The start tag of an element that declares the prefixes that are in scope at a node, of so many bytes at least.
pub(super) fn before(document: &Document, node: NodeId, least: usize) -> Vec<u8> {
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
