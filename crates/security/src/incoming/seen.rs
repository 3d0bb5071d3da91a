//! What the flow sees of a signed message is what the signature covers, and all of that is seen.

use super::{Work, shortened};
use crate::failure::Failure;
use crate::names::*;
use crate::side::elements;
use xml::{Document, NodeId, NodeKind};

impl Work<'_> {
    /// Refuses a signed element that was moved to where nobody looks for it: the message would go on as if it had never had it.
    pub(super) fn check_seen(&self) -> Result<(), Failure> {
        // A policy may name elements at any place.
        if !self.side.policy.signed.elements.is_empty() {
            return Ok(());
        }
        let document = &self.document;
        let hidden = |node: &&NodeId| document.root_of(**node) == Document::ROOT && !self.is_in_place(**node);
        match self.signed.iter().find(hidden) {
            Some(&node) => Err(Failure::invalid(format!(
                "{} is signed, and not where it is looked for",
                shortened(document.local(node))
            ))),
            None => Ok(()),
        }
    }

    /// Whether an element is read where it stands: a header or the body, what is in a body that is signed, and the parts of the security
    /// header.
    fn is_in_place(&self, node: NodeId) -> bool {
        let document = &self.document;
        let mut above = std::iter::successors(document.parent(node), |&node| document.parent(node));
        let parent = document.parent(node);
        let is_of_security = parent == Some(self.security)
            || matches!(document.namespace(node), DS | XENC | WSSE | WSSE11 | WSU | WSC_2005 | WSC_13)
                && above.clone().any(|node| node == self.security);
        is_of_security
            || node == self.places.root
            || parent == Some(self.places.root)
            || parent.is_some() && parent == self.places.header
            || self.signed.contains(&self.places.body) && above.any(|node| node == self.places.body)
    }

    /// Removes what the signature does not cover beside the body: anybody may have put it there. That includes security headers for others.
    pub(super) fn drop_unsigned(&mut self) {
        for around in [Some(self.places.root), self.places.header].into_iter().flatten() {
            if !self.is_signed(around) {
                self.drop_attributes_and_texts(around);
            }
        }
        let Some(header) = self.places.header else { return };
        for block in elements(&self.document, header) {
            if block != self.security && !self.is_signed(block) {
                self.document.detach(block);
            }
        }
    }

    /// Keeps the attributes of SOAP itself, such as `encodingStyle`.
    fn drop_attributes_and_texts(&mut self, node: NodeId) {
        let document = &mut self.document;
        let soap = document.namespace(self.places.root);
        let attributes = document.attributes(node).filter(|&attribute| document.namespace(attribute) != soap);
        let beside = document.children(node).filter(|&child| match document.kind(child) {
            NodeKind::Element => false,
            NodeKind::Text => !document.text(child).trim().is_empty(),
            _ => true,
        });
        let unsigned: Vec<NodeId> = attributes.chain(beside).collect();
        unsigned.into_iter().for_each(|node| document.detach(node));
    }
}
