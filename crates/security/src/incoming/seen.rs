//! What the flow sees of a signed message is what the signature covers, and all of that is seen.

use super::{Work, shortened};
use crate::failure::Failure;
use crate::names::*;
use crate::side::elements;
use std::collections::HashSet;
use xml::{Document, NodeId, NodeKind};

impl Work<'_> {
    /// Refuses a signed element that was moved to where nobody looks for it: the message would go on as if it had never had it.
    pub(super) fn check_seen(&self) -> Result<(), Failure> {
        let document = &self.document;
        let selected = self.selected();
        let is_seen = |node: NodeId| {
            self.is_in_place(node) || selected.contains(&node) && !self.is_within(node, self.security)
        };
        let hidden = |node: &&NodeId| document.root_of(**node) == Document::ROOT && !is_seen(**node);
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
            || parent.is_some() && parent == self.places.header && self.may_be_header(node)
            || self.signed.contains(&self.places.body) && above.any(|node| node == self.places.body)
    }

    /// Whether a signed element may stand among the headers: any may, unless the policy names elements by expressions. Then it could come
    /// from the place of one of these.
    fn may_be_header(&self, node: NodeId) -> bool {
        let signed = &self.side.policy.signed;
        signed.elements.is_empty()
            || signed.has_header(self.document.namespace(node), self.document.local(node))
    }

    /// The elements that the policy names by expressions: these are looked for where the expressions find them.
    fn selected(&self) -> HashSet<NodeId> {
        let expressions = self.side.policy.signed.elements.iter();
        expressions.filter_map(|selected| selected.elements(&self.document)).flatten().collect()
    }

    /// Whether an element is another one, or in it.
    fn is_within(&self, node: NodeId, outer: NodeId) -> bool {
        std::iter::successors(Some(node), |&node| self.document.parent(node)).any(|node| node == outer)
    }

    /// Removes what the signature does not cover beside the body: anybody may have put it there. That includes security headers for others.
    pub(super) fn drop_unsigned(&mut self) {
        for around in [Some(self.places.root), self.places.header].into_iter().flatten() {
            if !self.is_signed(around) {
                self.drop_attributes_and_texts(around);
            }
        }
        let Some(header) = self.places.header else { return };
        // Of a header of which the policy wants a part to be signed, that part stays, in its place.
        let mut holders = HashSet::new();
        for node in self.selected() {
            let mut at = Some(node);
            while let Some(node) = at.filter(|&node| holders.insert(node)) {
                at = self.document.parent(node);
            }
        }
        let mut waiting = vec![header];
        while let Some(around) = waiting.pop() {
            if around != header {
                self.drop_attributes_and_texts(around);
            }
            for node in elements(&self.document, around) {
                match node == self.security || self.is_signed(node) {
                    true => {}
                    false if holders.contains(&node) => waiting.push(node),
                    false => self.document.detach(node),
                }
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
