//! Identity templates (`<xsl:copy><xsl:apply-templates select="@* | node()"/></xsl:copy>`): the main part of stylesheets that
//! change a little of a message. Where one leads to the next, they run as one loop, without instructions;
//! a node with another rule is processed in the general way.

use super::out::Out;
use super::templates::quick_rule;
use super::{Engine, Focus, Place, Res};
use crate::pattern::Quick;
use xml::NodeKind;
use xpath::Node;

impl Engine<'_> {
    /// Runs an identity template, by a rule of the mode, on the node of `focus`, which is complete. `inside`: its parent was just
    /// copied, with all its namespaces.
    pub(super) fn identical(
        &self,
        template: (usize, u32),
        mode: usize,
        focus: &Focus,
        inside: bool,
        out: &mut Out<'_>,
    ) -> Res<()> {
        self.tick(out)?;
        let node = focus.node;
        let doc = self.doc(node.doc);
        let is_element = match doc.kind(node.id) {
            _ if node.is_namespace() => false,
            NodeKind::Element => true,
            NodeKind::Document => {
                let content = |out: &mut Out<'_>| self.identical_content(template, mode, focus, out);
                return self.copy_document(Place::default(), out, content);
            }
            _ => false,
        };
        if !is_element {
            return self.copy_node(node, Place::default(), out);
        }
        out.start_element(doc.prefix(node.id), doc.namespace(node.id), doc.local(node.id));
        if inside {
            for (prefix, uri) in doc.namespace_declarations(node.id) {
                out.namespace(prefix, uri);
            }
        } else {
            doc.each_in_scope_namespace(node.id, &mut |prefix, uri| out.namespace(prefix, uri));
        }
        self.identical_content(template, mode, focus, out)?;
        out.end_element();
        Ok(())
    }

    /// Attributes and children of a node that an identity template copies.
    fn identical_content(
        &self,
        (template, rule): (usize, u32),
        mode: usize,
        focus: &Focus,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let depth = focus.depth + 3;
        let focus = Focus { rule, mode: mode as u32, position: 0, depth, ..*focus };
        if depth >= focus.next {
            let place: Place = self.plan.templates[template].place;
            return self
                .deeper(focus, place, |focus| self.identical_content_here(template, mode, focus, out));
        }
        self.identical_content_here(template, mode, focus, out)
    }

    fn identical_content_here(
        &self,
        template: usize,
        mode: usize,
        mut focus: Focus,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let (id, parent) = (focus.node.doc, focus.node.id);
        let doc = self.doc(id);
        let rules = &self.plan.modes[mode];
        let bound = self.docs.bound(id);
        let attributes = self.plan.templates[template].identity.is_some_and(|identity| identity.attributes);
        let is_identity = |template: u32| {
            self.plan.templates[template as usize].identity.is_some_and(|identity| identity.stays_in(mode))
        };
        if self.plan.needs_size {
            let attribute_count = if attributes { doc.attributes(parent).count() } else { 0 };
            focus.size = (attribute_count + doc.children(parent).count()) as u32;
        } else {
            focus.size = 0;
        }
        if attributes {
            // Until another rule adds some, attribute names are unique.
            let mut copied = true;
            for attribute in doc.attributes(parent) {
                focus.position += 1;
                let rule =
                    bound.map_or(Quick::Ask, |bound| rules.of_attribute(bound.name_of(doc, attribute)));
                match rule {
                    Quick::Template(template, _) if is_identity(template) => {
                        self.tick(out)?;
                        let (prefix, namespace) = (doc.prefix(attribute), doc.namespace(attribute));
                        let (local, value) = (doc.local(attribute), doc.text(attribute));
                        if copied {
                            out.copied_attribute(prefix, namespace, local, value);
                        } else {
                            out.attribute(prefix, namespace, local, value);
                        }
                    }
                    _ => {
                        copied = false;
                        focus.node = Node::in_document(id, attribute);
                        self.apply(focus, mode, &[], out)?;
                    }
                }
            }
        }
        let copies_text = match rules.of_text() {
            Quick::BuiltIn => true,
            Quick::Template(template, _) => is_identity(template),
            Quick::Nothing | Quick::Ask => false,
        };
        // The content of a document has no copied parent.
        let inside = doc.kind(parent) == NodeKind::Element;
        for child in doc.children(parent) {
            focus.position += 1;
            let kind = doc.kind(child);
            let rule = quick_rule(rules, bound, doc, child);
            match (kind, rule) {
                (NodeKind::Element, Quick::Template(template, _))
                    if inside
                        && copies_text
                        && is_identity(template)
                        && doc.plain_leaf(child).is_some_and(|(local, text)| out.plain_leaf(local, text)) =>
                {
                    self.tick(out)?;
                }
                (NodeKind::Text, Quick::BuiltIn) => out.text(doc.text(child), false),
                (NodeKind::Text, Quick::Template(template, _)) if is_identity(template) => {
                    self.tick(out)?;
                    out.text(doc.text(child), false);
                }
                (NodeKind::Element, Quick::Template(template, rule)) if is_identity(template) => {
                    focus.node = Node::in_document(id, child);
                    self.identical((template as usize, rule), mode, &focus, inside, out)?;
                }
                _ => {
                    focus.node = Node::in_document(id, child);
                    self.apply(focus, mode, &[], out)?;
                }
            }
        }
        Ok(())
    }
}
