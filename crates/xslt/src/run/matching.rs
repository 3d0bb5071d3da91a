//! Which template rule, and whether a node matches a pattern.

use super::{Engine, Focus, Frame, Res};
use crate::expr::Expr;
use crate::names::Name;
use crate::pattern::{Alternative, Anchor, Kind, Pattern, Predicate, Rules, Step, Test};
use smallvec::SmallVec;
use std::ops::Range;
use xml::{NodeId, NodeKind};
use xpath::{Node, Value};

/// The frame of template rules and keys: their patterns have no variables.
pub(super) static NO_FRAME: Frame = Frame { locals: SmallVec::new_const(), passed: 0 };

/// A node as patterns see it.
pub(super) type NodeClass = Kind;

impl Engine<'_> {
    /// Kind and name of a node.
    pub(super) fn class(&self, node: Node) -> NodeClass {
        if node.is_namespace() {
            return Kind::Namespace;
        }
        let doc = self.doc(node.doc);
        match doc.kind(node.id) {
            NodeKind::Document => Kind::Root,
            NodeKind::Element => Kind::Element(self.name(node)),
            NodeKind::Attribute => Kind::Attribute(self.name(node)),
            NodeKind::Text => Kind::Text,
            NodeKind::Comment => Kind::Comment,
            NodeKind::ProcessingInstruction => Kind::Pi,
        }
    }

    /// The stylesheet's number of a node's name.
    fn name(&self, node: Node) -> Name {
        let doc = self.doc(node.doc);
        match self.docs.bound(node.doc) {
            Some(bound) => bound.name_of(doc, node.id),
            None => self.plan.names.find(doc.namespace(node.id), doc.local(node.id)).unwrap_or(Name::NONE),
        }
    }

    /// The best rule for a node among those with an import precedence in `precedence`: its template.
    pub(super) fn find_rule(&self, rules: &Rules, node: Node, precedence: Range<u32>) -> Res<Option<usize>> {
        for at in rules.candidates(self.class(node)) {
            let rule = &rules.rules[*at as usize];
            if precedence.contains(&rule.precedence)
                && (rule.plain || self.matches_alternative(&rule.alternative, node, &NO_FRAME)?)
            {
                return Ok(Some(rule.template));
            }
        }
        Ok(None)
    }

    /// The best rule for a node after those of `template`: for `xsl:next-match`.
    pub(super) fn next_rule(&self, rules: &Rules, node: Node, template: usize) -> Res<Option<usize>> {
        let mut behind = false;
        for at in rules.candidates(self.class(node)) {
            let rule = &rules.rules[*at as usize];
            if rule.template == template {
                behind = true;
            } else if behind
                && (rule.plain || self.matches_alternative(&rule.alternative, node, &NO_FRAME)?)
            {
                return Ok(Some(rule.template));
            }
        }
        Ok(None)
    }

    /// Whether a node matches a pattern.
    pub(super) fn matches(&self, pattern: &Pattern, node: Node, frame: &Frame) -> Res<bool> {
        for alternative in &pattern.alternatives {
            if self.matches_alternative(alternative, node, frame)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn matches_alternative(&self, alternative: &Alternative, node: Node, frame: &Frame) -> Res<bool> {
        self.matches_from(alternative, 0, node, frame)
    }

    /// Whether `node` matches step `at` and what is to the left of it.
    fn matches_from(&self, alternative: &Alternative, at: usize, node: Node, frame: &Frame) -> Res<bool> {
        let Some(step) = alternative.steps.get(at) else {
            return self.matches_anchor(&alternative.anchor, node);
        };
        if !self.matches_step(step, node, frame)? {
            return Ok(false);
        }
        let last = at + 1 == alternative.steps.len();
        if last && matches!(alternative.anchor, Anchor::None) {
            return Ok(true);
        }
        let doc = self.doc(node.doc);
        let mut above = doc.parent(node.id);
        while let Some(parent) = above {
            let parent_node = Node::in_document(node.doc, parent);
            let fits = if last {
                self.matches_anchor(&alternative.anchor, parent_node)?
            } else {
                self.matches_from(alternative, at + 1, parent_node, frame)?
            };
            if fits || !step.ancestor {
                return Ok(fits);
            }
            above = doc.parent(parent);
        }
        Ok(false)
    }

    fn matches_anchor(&self, anchor: &Anchor, node: Node) -> Res<bool> {
        Ok(match anchor {
            Anchor::None => true,
            Anchor::Root => !node.is_namespace() && self.doc(node.doc).kind(node.id) == NodeKind::Document,
            Anchor::Id(ids) => ids
                .split_ascii_whitespace()
                .any(|id| !node.is_namespace() && self.doc(node.doc).element_by_id(id) == Some(node.id)),
            Anchor::Key(name, value) => {
                let index = self.key_index(*name, node.doc, 0)?;
                index.get(value).is_some_and(|nodes| nodes.contains(&node))
            }
        })
    }

    fn matches_step(&self, step: &Step, node: Node, frame: &Frame) -> Res<bool> {
        if !self.matches_test(step, node) {
            return Ok(false);
        }
        if step.predicates.is_empty() {
            return Ok(true);
        }
        let holds = |predicate: &Predicate| {
            self.boolean(&predicate.expr, matching_focus(node, 1, 1), frame, Default::default())
        };
        let (first, others) = (&step.predicates[0], &step.predicates[1..]);
        if others.iter().all(|predicate| !predicate.positional) {
            let first = if first.positional {
                self.holds_at_position(step, first, node, frame)?
            } else {
                holds(first)?
            };
            if !first {
                return Ok(false);
            }
            for predicate in others {
                if !holds(predicate)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        // Positions count among the siblings that pass the node test.
        let doc = self.doc(node.doc);
        let Some(parent) = doc.parent(node.id) else { return Ok(false) };
        let mut list: Vec<Node> = if step.attribute {
            siblings(node, doc.attributes(parent))
        } else {
            siblings(node, doc.children(parent))
        };
        self.spend(list.len() as u64)?;
        list.retain(|sibling| self.matches_test(step, *sibling));
        for predicate in &step.predicates {
            let size = list.len();
            let mut kept = Vec::new();
            for (at, sibling) in list.into_iter().enumerate() {
                let focus = matching_focus(sibling, at + 1, size);
                let holds = match self.value(&predicate.expr, focus, frame, Default::default())? {
                    Value::Number(number) => number == (at + 1) as f64,
                    Value::Atomic(atom) if atom.is_numeric() => atom.to_double() == (at + 1) as f64,
                    value => value.to_boolean(),
                };
                if holds {
                    kept.push(sibling);
                }
            }
            list = kept;
        }
        Ok(list.contains(&node))
    }

    /// Whether the first predicate of a step, which may ask for the position, holds.
    fn holds_at_position(&self, step: &Step, predicate: &Predicate, node: Node, frame: &Frame) -> Res<bool> {
        let doc = self.doc(node.doc);
        let Some(parent) = doc.parent(node.id) else { return Ok(false) };
        let Expr::XPath(xpath) = &predicate.expr else {
            return self.boolean(&predicate.expr, matching_focus(node, 1, 1), frame, Default::default());
        };
        let fits = |id: &NodeId| self.matches_test(step, Node::in_document(node.doc, *id));
        let (position, size) = if step.attribute {
            let before = doc.attributes(parent).take_while(|id| *id != node.id).filter(fits).count();
            (before + 1, doc.attributes(parent).filter(fits).count())
        } else {
            let at = self.position(step, node, parent);
            let size =
                if xpath.expression.needs().size { doc.children(parent).filter(fits).count() } else { at };
            self.spend(1 + (size as u64 >> 2))?;
            (at, size)
        };
        let focus = matching_focus(node, position, size);
        Ok(match self.value(&predicate.expr, focus, frame, Default::default())? {
            Value::Number(number) => number == position as f64,
            Value::Atomic(atom) if atom.is_numeric() => atom.to_double() == position as f64,
            value => value.to_boolean(),
        })
    }

    /// The place of a child among the siblings that pass the test of a step. Nodes are mostly matched one after the
    /// other: it is counted from the last one that was asked for.
    fn position(&self, step: &Step, node: Node, parent: NodeId) -> usize {
        let doc = self.doc(node.doc);
        let key = (std::ptr::from_ref(step) as usize, node.doc, parent);
        let last = self.place.lock().map_or(None, |place| *place).filter(|last| last.0 == key);
        let mut count = 1;
        let mut at = doc.prev_sibling(node.id);
        while let Some(sibling) = at {
            if let Some((_, known, place)) = last
                && known == sibling
            {
                count += place;
                break;
            }
            count += usize::from(self.matches_test(step, Node::in_document(node.doc, sibling)));
            at = doc.prev_sibling(sibling);
        }
        if let Ok(mut place) = self.place.lock() {
            *place = Some((key, node.id, count));
        }
        count
    }

    fn matches_test(&self, step: &Step, node: Node) -> bool {
        if node.is_namespace() {
            return false;
        }
        let doc = self.doc(node.doc);
        let kind = doc.kind(node.id);
        if step.attribute != (kind == NodeKind::Attribute) {
            return false;
        }
        let named = matches!(kind, NodeKind::Element | NodeKind::Attribute);
        match &step.test {
            Test::Name(name) => named && self.name(node) == *name,
            Test::Namespace(uri) => named && doc.namespace(node.id) == &**uri,
            Test::Local(local) => named && doc.local(node.id) == &**local,
            Test::AnyName => named,
            // On the child axis: the root is no child.
            Test::Node => kind != NodeKind::Document && doc.parent(node.id).is_some(),
            Test::Text => kind == NodeKind::Text,
            Test::Comment => kind == NodeKind::Comment,
            Test::Pi(target) => {
                kind == NodeKind::ProcessingInstruction
                    && target.as_ref().is_none_or(|target| doc.local(node.id) == &**target)
            }
        }
    }
}

fn siblings(node: Node, list: impl Iterator<Item = NodeId>) -> Vec<Node> {
    list.map(|id| Node::in_document(node.doc, id)).collect()
}

fn matching_focus(node: Node, position: usize, size: usize) -> Focus {
    // Patterns are matched on whatever stack there is: functions called from them begin a new one.
    Focus { position: position as u32, size: size as u32, ..Focus::new(node, 0, super::PATTERN_SEGMENT) }
}
