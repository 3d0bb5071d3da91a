//! Built-in template rules: those of section 5.8 of XSLT 1.0, and those that `xsl:mode` chooses from 3.0 on.

use super::out::Out;
use super::{Engine, Focus, Res};
use crate::model::Place;
use crate::names::Name;
use crate::pattern::NoMatch;
use xml::NodeKind;
use xpath::atomic::Atomic;
use xpath::{DocId, Value};

impl Engine<'_> {
    /// The built-in rules (section 5.8).
    /// Those of XSLT 2.0 pass parameters on.
    pub(super) fn built_in(
        &self,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let arguments = if self.plan.version2 { arguments } else { &[] };
        let node = focus.node;
        let no_match = self.plan.modes[mode].no_match;
        if node.doc == DocId::ATOMIC {
            return self.no_match_of_item(no_match, focus, mode, arguments, out);
        }
        let doc = self.doc(node.doc);
        if node.is_namespace() {
            if matches!(no_match, NoMatch::ShallowCopy | NoMatch::DeepCopy) {
                return self.copy_node(node, self.plan.modes[mode].place, out);
            }
            return Ok(());
        }
        if no_match != NoMatch::TextOnlyCopy {
            return self.no_match(no_match, focus, mode, arguments, out);
        }
        match doc.kind(node.id) {
            NodeKind::Document | NodeKind::Element => self.apply_children(focus, mode, arguments, out),
            NodeKind::Text | NodeKind::Attribute => {
                out.text(doc.text(node.id), false);
                Ok(())
            }
            NodeKind::Comment | NodeKind::ProcessingInstruction => Ok(()),
        }
    }

    /// The built-in rules that `xsl:mode` chooses.
    #[cold]
    fn no_match(
        &self,
        way: NoMatch,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let node = focus.node;
        let doc = self.doc(node.doc);
        let kind = doc.kind(node.id);
        let inside = Focus { depth: focus.depth + 1, ..focus };
        let place = self.plan.modes[mode].place;
        match (way, kind) {
            (NoMatch::Fail, _) => {
                let what = match kind {
                    _ if node.is_namespace() => "a namespace node".to_owned(),
                    NodeKind::Document => "the document".to_owned(),
                    NodeKind::Element => format!("the element {}", doc.qname(node.id)),
                    NodeKind::Attribute => format!("the attribute {}", doc.qname(node.id)),
                    NodeKind::Text => "a text".to_owned(),
                    NodeKind::Comment => "a comment".to_owned(),
                    NodeKind::ProcessingInstruction => {
                        format!("the processing instruction {}", doc.local(node.id))
                    }
                };
                let position = match doc.position(node.id) {
                    Some(at) if at.line > 0 => format!(" (line {} of the document)", at.line),
                    _ => String::new(),
                };
                let message =
                    format!("XTDE0555: {what}{position} has no template rule in {}", self.mode_name(mode));
                Err(self.fail(place, message))
            }
            (NoMatch::DeepCopy, _) => self.copy_node(node, place, out),
            (NoMatch::DeepSkip, NodeKind::Document) => self.apply_children(focus, mode, arguments, out),
            (NoMatch::ShallowCopy, NodeKind::Document) => self.copy_document(place, out, |out| {
                self.enter(focus, Place::default, |focus| self.apply_children(focus, mode, arguments, out))
            }),
            (NoMatch::ShallowSkip, NodeKind::Document | NodeKind::Element) => {
                self.enter(focus, Place::default, |focus| self.apply_content(focus, mode, arguments, out))
            }
            (NoMatch::ShallowCopy, NodeKind::Element) => {
                out.start_element(doc.prefix(node.id), doc.namespace(node.id), doc.local(node.id));
                doc.each_in_scope_namespace(node.id, &mut |prefix, uri| out.namespace(prefix, uri));
                self.enter(inside, Place::default, |focus| self.apply_content(focus, mode, arguments, out))?;
                out.end_element();
                Ok(())
            }
            (NoMatch::ShallowCopy, _) => self.copy_node(node, place, out),
            _ => Ok(()),
        }
    }

    /// A mode as it is named in messages.
    fn mode_name(&self, mode: usize) -> String {
        match self.plan.mode_names.iter().find(|(_, number)| **number == mode) {
            Some((name, _)) => format!("the mode \"{}\"", self.symbols.show(*name)),
            None => "the mode without a name".to_owned(),
        }
    }

    /// The built-in rules for items that are not nodes.
    #[cold]
    fn no_match_of_item(
        &self,
        way: NoMatch,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let Some(item) = self.item(focus.node) else { return Ok(()) };
        match (way, &item) {
            (NoMatch::Fail, _) => {
                let what = match &item {
                    xpath::Item::Atomic(atom) => atom.describe(),
                    xpath::Item::Node(_) => "an item".to_owned(),
                };
                let message = format!("XTDE0555: {what} has no template rule in {}", self.mode_name(mode));
                Err(self.fail(self.plan.modes[mode].place, message))
            }
            (NoMatch::DeepSkip, _) => Ok(()),
            // Rules are applied to the members.
            (NoMatch::TextOnlyCopy | NoMatch::ShallowSkip, xpath::Item::Atomic(Atomic::Array(array))) => {
                let mark = self.mark();
                let members = Value::from_items(array.members().flat_map(Value::items).collect());
                let nodes = self.kept(&members);
                self.enter(focus, Place::default, |focus| {
                    self.apply_nodes(&nodes, mode, arguments, focus, out)
                })?;
                self.release(mark);
                Ok(())
            }
            (NoMatch::ShallowSkip, _) => Ok(()),
            (NoMatch::TextOnlyCopy, xpath::Item::Atomic(atom)) if atom.is_function() => Ok(()),
            (NoMatch::TextOnlyCopy, item) => {
                out.text(&self.item_text(item), false);
                Ok(())
            }
            _ => self.write_items(&Value::from(item), true, out, Place::default()),
        }
    }
}
