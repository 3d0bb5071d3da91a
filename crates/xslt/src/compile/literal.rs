//! Literal result elements: their attributes, namespaces and start tags.

use super::{Compiler, XSLT};
use crate::expr::scope_of;
use crate::model::{Instruction, Leaf, Literal, LiteralAttribute, Op};
use xml::NodeId;

impl Compiler<'_> {
    pub(super) fn literal(&mut self, node: NodeId, body: &mut Vec<Instruction>) {
        let module = self.module.clone();
        let doc = &module.doc;
        let excluded = self.excluded(node, false);
        let mut attributes = Vec::new();
        let list: Vec<NodeId> = doc.attributes(node).collect();
        for attribute in list {
            let local = doc.local(attribute);
            if doc.namespace(attribute) == XSLT {
                if self.version2 && matches!(local, "validation" | "type") {
                    let lax = matches!(doc.text(attribute).trim(), "strip" | "preserve");
                    if local == "type" || !lax {
                        let message = format!("XTSE1660: there are no schemas: xsl:{local} is not supported");
                        self.error(node, message);
                    }
                }
                if self.version2 && local == "default-collation" {
                    self.check_default_collation(node, doc.text(attribute));
                }
                // Attributes with a meaning are read separately.
                const KNOWN: [&str; 12] = [
                    "default-mode",
                    "use-attribute-sets",
                    "version",
                    "exclude-result-prefixes",
                    "extension-element-prefixes",
                    "xpath-default-namespace",
                    "default-collation",
                    "use-when",
                    "type",
                    "validation",
                    "inherit-namespaces",
                    "expand-text",
                ];
                if self.version2 && !self.forwards && !KNOWN.contains(&local) {
                    self.error(node, format!("XTSE0805: there is no attribute xsl:{local}"));
                }
                continue;
            }
            let (prefix, namespace) = self.alias(doc.prefix(attribute), doc.namespace(attribute), true);
            let same = |a: &LiteralAttribute| *a.local == *local && *a.namespace == *namespace;
            if attributes.iter().any(same) {
                let message = format!("XTSE0813: by xsl:namespace-alias two attributes are named {local}");
                self.error(node, message);
                continue;
            }
            attributes.push(LiteralAttribute {
                lead: Box::default(),
                prefix: prefix.into(),
                namespace: namespace.into(),
                local: local.into(),
                value: self.avt(node, doc.text(attribute)),
            });
        }
        let (prefix, namespace) = self.alias(doc.prefix(node), doc.namespace(node), false);
        let mut namespaces: Vec<(Box<str>, Box<str>)> = Vec::new();
        for (prefix, uri) in scope_of(doc, node) {
            // The namespace node is that of the alias's target (XSLT 2.0 section 11.1.4).
            let target = self.plan.version2
                && !self.aliases.contains_key(&uri)
                && self.aliases.values().any(|(target, ..)| *target == uri);
            if (uri == XSLT || excluded.contains(&uri)) && !target {
                continue;
            }
            let (prefix, uri) = self.alias(&prefix, &uri, false);
            if !uri.is_empty() && !namespaces.iter().any(|(p, _)| **p == *prefix) {
                namespaces.push((prefix.into(), uri.into()));
            }
        }
        let sets = self.uses(node, XSLT);
        let mut content = self.body(node);
        if self.version2 && doc.attribute(node, XSLT, "inherit-namespaces").is_some_and(is_no) {
            content = super::instructions::isolated(content, self.place(node));
        }
        let literal = Literal {
            prefix: prefix.into(),
            namespace: namespace.into(),
            local: doc.local(node).into(),
            namespaces: namespaces.into(),
            attributes: attributes.into(),
            sets,
            number: 0,
            open: Box::default(),
            close: Box::default(),
            fixed_count: 0,
            fixed: Box::default(),
            start: Box::default(),
            more: false,
            mask: 0,
            bindings: None,
            closed: content.first().is_none_or(|first| match &first.op {
                Op::Text { text, .. } => !text.is_empty(),
                Op::Literal(_) | Op::Leaf(_) | Op::Element { .. } | Op::Comment { .. } | Op::Pi { .. } => {
                    true
                }
                _ => false,
            }),
        };
        let literal = literal.prepare(self.plan.literals);
        self.plan.literals += 1;
        let place = self.place(node);
        let mut content = content.into_vec();
        if !literal.more
            && let [Instruction { op: Op::ValueOf { .. }, .. }] = content.as_slice()
            && let Some(Instruction { op: Op::ValueOf { select, raw }, place }) = content.pop()
        {
            // A value adds nothing to the start tag.
            let literal = Literal { closed: true, ..literal };
            body.push(Instruction { op: Op::Leaf(Box::new(Leaf { literal, select, raw })), place });
            return;
        }
        let end = Op::EndLiteral { close: literal.close.clone(), plain: literal.bindings.is_some() };
        body.push(Instruction { op: Op::Literal(Box::new(literal)), place });
        body.append(&mut content);
        body.push(Instruction { op: end, place });
    }

    /// Prefix and namespace of a literal name, `xsl:namespace-alias` applied.
    fn alias(&self, prefix: &str, namespace: &str, attribute: bool) -> (String, String) {
        match self.aliases.get(namespace) {
            Some((uri, alias_prefix, _)) if !(attribute && prefix.is_empty()) => {
                (alias_prefix.clone(), uri.clone())
            }
            _ => (prefix.to_owned(), namespace.to_owned()),
        }
    }
}

fn is_no(value: &str) -> bool {
    matches!(value.trim(), "no" | "false" | "0")
}
