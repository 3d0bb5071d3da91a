//! `xsl:number` (XSLT 1.0 section 7.7): which number a node has.

use super::{Engine, Focus, Frame, Res};
use crate::model::{Level, Number, Place};
use crate::numbering::{NumberFormat, format_list};
use xml::{Document, NodeId, NodeKind};
use xpath::Node;

impl Engine<'_> {
    /// The text that `xsl:number` writes.
    pub(super) fn number(&self, number: &Number, focus: Focus, frame: &Frame, place: Place) -> Res<String> {
        let numbers: Vec<f64> = match &number.value {
            Some(value) => vec![self.with(value, focus, frame, place, |e, cx| e.evaluate_number(cx))?],
            None => self.count(number, focus.node, frame)?.into_iter().map(|n| n as f64).collect(),
        };
        let format = self.avt(&number.format, focus, frame, place)?;
        let text = |avt: &Option<crate::model::Avt>| match avt {
            Some(avt) => self.avt(avt, focus, frame, place).map(|text| Some(text.into_owned())),
            None => Ok(None),
        };
        let separator = text(&number.grouping_separator)?;
        let size = text(&number.grouping_size)?.and_then(|size| size.trim().parse().ok());
        // No alphabet here has two ways to count: letter-value and lang make no difference.
        text(&number.letter_value)?;
        text(&number.lang)?;
        if numbers.is_empty() {
            return Ok(String::new());
        }
        if let Some(number) = numbers.iter().find(|number| !number.is_finite()) {
            return Ok(xpath::number::format(*number).into_owned());
        }
        let grouping = match (&separator, size) {
            (Some(separator), Some(size)) => Some((separator.as_str(), size)),
            _ => None,
        };
        Ok(format_list(&numbers, &NumberFormat { format: &format, grouping }))
    }

    fn count(&self, number: &Number, node: Node, frame: &Frame) -> Res<Vec<usize>> {
        if node.doc == xpath::DocId::ATOMIC {
            let message = "XTTE0990: xsl:number needs a node as context item, or a value attribute";
            return Err(self.fail(Place::default(), message.into()));
        }
        // A namespace node is alone of its kind; what else counts is around it.
        if node.is_namespace() && number.count.is_none() {
            return Ok(vec![1]);
        }
        let doc = self.doc(node.doc);
        let at = |id: NodeId| Node::in_document(node.doc, id);
        let counts = |id: NodeId| match &number.count {
            Some(pattern) => self.matches(pattern, at(id), frame),
            None => Ok(alike(doc, id, node.id)),
        };
        let begins = |id: NodeId| match &number.from {
            Some(pattern) => self.matches(pattern, at(id), frame),
            None => Ok(false),
        };
        if number.level == Level::Any {
            let mut count = 0;
            let mut current = Some(node.id);
            while let Some(id) = current {
                self.spend(1)?;
                if counts(id)? {
                    count += 1;
                }
                if begins(id)? {
                    break;
                }
                current = before(doc, id);
            }
            return Ok(vec![count]);
        }
        let mut numbers = Vec::new();
        let mut current = Some(node.id);
        while let Some(id) = current {
            if id != node.id && begins(id)? {
                break;
            }
            if counts(id)? {
                let mut place = 1;
                let mut sibling = doc.prev_sibling(id);
                while let Some(previous) = sibling {
                    self.spend(1)?;
                    if counts(previous)? {
                        place += 1;
                    }
                    sibling = doc.prev_sibling(previous);
                }
                numbers.push(place);
                if number.level == Level::Single {
                    break;
                }
            }
            current = doc.parent(id);
        }
        numbers.reverse();
        Ok(numbers)
    }
}

/// The node before `id` in document order, ancestors included.
fn before(doc: &Document, id: NodeId) -> Option<NodeId> {
    let Some(mut at) = doc.prev_sibling(id) else { return doc.parent(id) };
    while let Some(last) = doc.last_child(at) {
        at = last;
    }
    Some(at)
}

/// Same kind and same expanded name: what is counted by default.
fn alike(doc: &Document, a: NodeId, b: NodeId) -> bool {
    doc.kind(a) == doc.kind(b)
        && match doc.kind(a) {
            NodeKind::Element | NodeKind::Attribute | NodeKind::ProcessingInstruction => {
                doc.name_id(a) == doc.name_id(b)
            }
            _ => true,
        }
}
