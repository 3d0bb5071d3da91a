//! The template rule of a node, and whether a node matches a pattern.

use super::{Engine, Focus, Frame, Res};
use crate::expr::Expr;
use crate::names::Name;
use crate::pattern::{
    Alternative, Anchor, FixedPlace, Kind, Pattern, Predicate, Rules, Selected, Step, Test,
};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use xml::{NodeId, NodeKind};
use xpath::{Node, Value};

/// The frame of template rules and keys: their patterns have no variables.
pub(super) static NO_FRAME: Frame =
    Frame { locals: SmallVec::new_const(), passed: 0, tail: None, control: None };

/// The nodes of each document that a pattern selects, by the address of its expression.
pub(super) type SelectedNodes = std::collections::HashMap<(usize, xpath::DocId), Arc<HashSet<Node>>>;

/// A node for the test of a pattern.
pub(super) type NodeClass = Kind;

impl Engine<'_> {
    /// Kind and name of a node.
    pub(super) fn class(&self, node: Node) -> NodeClass {
        if node.doc == xpath::DocId::ATOMIC {
            return Kind::Atomic;
        }
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

    /// The best rule for the node of a focus among those with an import precedence in `precedence`: its number.
    pub(super) fn find_rule(&self, rules: &Rules, focus: &Focus, precedence: Range<u32>) -> Res<Option<u32>> {
        let class = self.class(focus.node);
        if rules.typed && matches!(class, Kind::Element(_) | Kind::Attribute(_)) {
            let message = "XTTE3100: the mode is for typed nodes, and without a schema there are none";
            return Err(self.fail(rules.place, message.into()));
        }
        for at in rules.candidates(class) {
            let rule = &rules.rules[*at as usize];
            if precedence.contains(&rule.precedence)
                && (rule.plain || self.matches_alternative(&rule.alternative, focus, &NO_FRAME)?)
            {
                if rules.one_match {
                    self.check_only_match(rules, *at, focus)?;
                }
                return Ok(Some(*at));
            }
        }
        Ok(None)
    }

    /// Whether no other template matches the node of a focus with the same priority as rule `best` (`on-multiple-match="fail"`).
    #[cold]
    fn check_only_match(&self, rules: &Rules, best: u32, focus: &Focus) -> Res<()> {
        let first = &rules.rules[best as usize];
        for at in rules.candidates(self.class(focus.node)) {
            let rule = &rules.rules[*at as usize];
            if rule.template != first.template
                && rule.precedence == first.precedence
                && rule.priority == first.priority
                && self.matches_alternative(&rule.alternative, focus, &NO_FRAME)?
            {
                let place = self.plan.templates[rule.template].place;
                let message = "XTDE0540: two template rules match a node, and neither goes before the other";
                return Err(self.fail(place, message.into()));
            }
        }
        Ok(())
    }

    /// The best rule for the node of a focus after its current one: for `xsl:next-match`. Each of the alternatives of a
    /// pattern is a rule of its own (XSLT 2.0 section 5.3).
    pub(super) fn next_rule(&self, rules: &Rules, focus: &Focus) -> Res<Option<u32>> {
        for at in rules.candidates(self.class(focus.node)) {
            let rule = &rules.rules[*at as usize];
            if *at > focus.rule
                && (rule.plain || self.matches_alternative(&rule.alternative, focus, &NO_FRAME)?)
            {
                return Ok(Some(*at));
            }
        }
        Ok(None)
    }

    /// Whether the node of a focus matches a pattern.
    pub(super) fn matches(&self, pattern: &Pattern, focus: &Focus, frame: &Frame) -> Res<bool> {
        for alternative in &pattern.alternatives {
            if self.matches_alternative(alternative, focus, frame)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn matches_alternative(&self, alternative: &Alternative, focus: &Focus, frame: &Frame) -> Res<bool> {
        self.matches_from(alternative, 0, focus, focus.node, frame)
    }

    /// Whether the node of a focus matches step `at` and what is to the left of it; `matched`: the node that matches the first.
    fn matches_from(
        &self,
        alternative: &Alternative,
        at: usize,
        focus: &Focus,
        matched: Node,
        frame: &Frame,
    ) -> Res<bool> {
        let node = focus.node;
        let Some(step) = alternative.steps.get(at) else {
            return self.matches_anchor(&alternative.anchor, focus, frame);
        };
        let matches = match at {
            _ if step.current => self.matches_step_of(step, focus, matched, frame),
            0 => self.matches_step(step, focus, frame),
            _ => self.matches_above(step, focus, frame),
        };
        match matches {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            // An error in a pattern: the node does not match (XSLT 2.0 section 5.5.4). A limit and a cycle stay errors.
            Err(error)
                if self.plan.version2
                    && error.has_code()
                    && !error.message.starts_with("XTDE0640")
                    && !self.is_exceeded() =>
            {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        let last = at + 1 == alternative.steps.len();
        if last && matches!(alternative.anchor, Anchor::None) {
            return Ok(true);
        }
        let doc = self.doc(node.doc);
        let mut above = doc.parent(node.id);
        while let Some(parent) = above {
            let parent_focus = Focus { node: Node::in_document(node.doc, parent), ..*focus };
            let fits = if last {
                self.matches_anchor(&alternative.anchor, &parent_focus, frame)?
            } else {
                self.matches_from(alternative, at + 1, &parent_focus, matched, frame)?
            };
            if fits || !step.ancestor {
                return Ok(fits);
            }
            above = doc.parent(parent);
        }
        Ok(false)
    }

    fn matches_anchor(&self, anchor: &Anchor, focus: &Focus, frame: &Frame) -> Res<bool> {
        let node = focus.node;
        Ok(match anchor {
            Anchor::None => true,
            Anchor::Root => !node.is_namespace() && self.doc(node.doc).kind(node.id) == NodeKind::Document,
            Anchor::Id(ids) => ids
                .split_ascii_whitespace()
                .any(|id| !node.is_namespace() && self.doc(node.doc).element_by_id(id) == Some(node.id)),
            Anchor::Nodes(nodes) => {
                // `id()` and `key()` with values known when it runs: among the nodes of the document.
                let focus = Focus { node: Node::in_document(node.doc, xml::Document::ROOT), ..*focus };
                self.nodes(nodes, matching_focus(&focus, 1, 1), frame, Default::default())?.contains(&node)
            }
            Anchor::Item(predicates) => {
                for predicate in predicates {
                    let focus = matching_focus(focus, 1, 1);
                    let holds = match self.value(&predicate.expr, focus, frame, Default::default()) {
                        Ok(value) => holds_at(&value, 1),
                        // An error in a pattern: the item does not match (XSLT 3.0 section 5.5.4).
                        Err(error) if error.has_code() && !self.is_exceeded() => false,
                        Err(error) => return Err(error),
                    };
                    if !holds {
                        return Ok(false);
                    }
                }
                true
            }
            Anchor::Selected(selected, _) => self.is_selected(selected, focus, frame)?,
            Anchor::Key(name, value) => {
                let index = self.key_index(*name, focus)?;
                let at = |nodes: &xpath::NodeSet| nodes.as_slice().binary_search_by(|n| n.id.cmp(&node.id));
                index.get(value).is_some_and(|nodes| at(nodes).is_ok())
            }
        })
    }

    /// Whether a pattern selects the node of a focus from it or from an ancestor.
    fn is_selected(&self, selected: &Selected, focus: &Focus, frame: &Frame) -> Res<bool> {
        let node = focus.node;
        if node.doc == xpath::DocId::ATOMIC {
            return Ok(false);
        }
        match selected {
            Selected::Both(a, b, both) => {
                Ok(self.is_selected(a, focus, frame)? && self.is_selected(b, focus, frame)? == *both)
            }
            Selected::Once(expr) | Selected::Each(expr) => {
                let each = matches!(selected, Selected::Each(_));
                // Without local variables it is the same for all nodes of a document: those are computed once.
                if std::ptr::eq(frame, &NO_FRAME) && self.opening.is_none() {
                    return Ok(self.all_selected(expr, each, focus)?.contains(&node));
                }
                let mut at = if each { Some(node.id) } else { Some(xml::Document::ROOT) };
                while let Some(id) = at {
                    self.spend(16)?;
                    let from = Focus { node: Node::in_document(node.doc, id), ..*focus };
                    if self.selects(expr, &from, frame)?.contains(&node) {
                        return Ok(true);
                    }
                    at = if each { self.doc(node.doc).parent(id) } else { None };
                }
                Ok(false)
            }
        }
    }

    /// The value of an expression at the node of a focus; empty where it fails.
    fn selects(&self, expr: &Expr, focus: &Focus, frame: &Frame) -> Res<Vec<Node>> {
        let value = self.value(expr, matching_focus(focus, 1, 1), frame, Default::default());
        match value {
            Ok(Value::NodeSet(nodes)) => Ok(nodes.as_slice().to_vec()),
            Ok(value) => Ok(value.items().filter_map(|item| item.node()).collect()),
            // An error in a pattern: nothing matches. A limit stays an error.
            Err(error) if error.has_code() && !self.is_exceeded() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// All nodes of a document that a pattern selects.
    fn all_selected(&self, expr: &Expr, each: bool, focus: &Focus) -> Res<Arc<HashSet<Node>>> {
        let key = (std::ptr::from_ref(expr).addr(), focus.node.doc);
        if let Ok(selected) = self.selected.lock()
            && let Some(nodes) = selected.get(&key)
        {
            return Ok(nodes.clone());
        }
        let doc = self.doc(focus.node.doc);
        let mut found = HashSet::new();
        let from = |id: NodeId| Focus { node: Node::in_document(focus.node.doc, id), ..*focus };
        let mut roots = Vec::new();
        // The root, and the root of a tree without a document.
        let mut top = focus.node.id;
        while let Some(parent) = doc.parent(top) {
            top = parent;
        }
        roots.push(top);
        if each {
            for id in doc.descendants(top) {
                roots.push(id);
            }
        }
        for id in roots {
            let nodes = self.selects(expr, &from(id), &NO_FRAME)?;
            self.spend(16 + nodes.len() as u64)?;
            found.extend(nodes);
        }
        let found = Arc::new(found);
        if let Ok(mut selected) = self.selected.lock() {
            selected.insert(key, found.clone());
        }
        Ok(found)
    }

    /// Whether an ancestor of the node to be matched matches a step. Many nodes have the same ancestors.
    fn matches_above(&self, step: &Step, focus: &Focus, frame: &Frame) -> Res<bool> {
        let node = focus.node;
        let remembers = self.opening.is_none() && std::ptr::eq(frame, &NO_FRAME);
        if step.predicates.is_empty() || !remembers || node.is_namespace() {
            return self.matches_step(step, focus, frame);
        }
        if !self.matches_test(step, node) {
            return Ok(false);
        }
        let key = (std::ptr::from_ref(step).addr(), node.doc, node.id);
        if let Ok(mut above) = self.above.lock()
            && let Some(matches) = above.get(key)
        {
            return Ok(*matches);
        }
        let matches = self.matches_step(step, focus, frame)?;
        if let Ok(mut above) = self.above.lock() {
            above.put(key, matches);
        }
        Ok(matches)
    }

    fn matches_step(&self, step: &Step, focus: &Focus, frame: &Frame) -> Res<bool> {
        let node = focus.node;
        if !self.matches_test(step, node) {
            return Ok(false);
        }
        if step.predicates.is_empty() {
            return Ok(true);
        }
        let holds = |predicate: &Predicate| {
            self.boolean(&predicate.expr, matching_focus(focus, 1, 1), frame, Default::default())
        };
        let (first, others) = (&step.predicates[0], &step.predicates[1..]);
        if others.iter().all(|predicate| !predicate.positional) {
            let first = if first.positional {
                self.holds_at_position(step, first, focus, frame)?
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
        let Some(parent) = doc.parent(node.id) else {
            // A node without a parent is the only one.
            for predicate in &step.predicates {
                if !self.holds_alone(predicate, focus, frame)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        };
        // All children of a parent are decided together: they are mostly matched one after the other.
        let key = (std::ptr::from_ref(step).addr(), node.doc, parent);
        let remembers = self.opening.is_none() && std::ptr::eq(frame, &NO_FRAME);
        if remembers
            && let Ok(mut kept) = self.kept.lock()
            && let Some(list) = kept.get(key)
        {
            return Ok(list.binary_search_by(|n| n.id.cmp(&node.id)).is_ok());
        }
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
                let focus = matching_focus(&Focus { node: sibling, ..*focus }, at + 1, size);
                if holds_at(&self.value(&predicate.expr, focus, frame, Default::default())?, at + 1) {
                    kept.push(sibling);
                }
            }
            list = kept;
        }
        let found = list.contains(&node);
        if remembers
            && list.is_sorted_by_key(|node| node.id)
            && let Ok(mut kept) = self.kept.lock()
        {
            kept.put(key, list);
        }
        Ok(found)
    }

    /// As [`Engine::matches_step`], where a predicate asks for the node that is matched (`current()`), which differs with each.
    #[cold]
    fn matches_step_of(&self, step: &Step, focus: &Focus, matched: Node, frame: &Frame) -> Res<bool> {
        let node = focus.node;
        if !self.matches_test(step, node) {
            return Ok(false);
        }
        let doc = self.doc(node.doc);
        let positional = step.predicates.iter().any(|predicate| predicate.positional);
        let mut list = match doc.parent(node.id) {
            Some(parent) if positional && step.attribute => siblings(node, doc.attributes(parent)),
            Some(parent) if positional => siblings(node, doc.children(parent)),
            _ => vec![node],
        };
        list.retain(|sibling| self.matches_test(step, *sibling));
        for predicate in &step.predicates {
            self.spend(1 + list.len() as u64)?;
            let size = list.len();
            let mut kept = Vec::new();
            for (at, sibling) in list.into_iter().enumerate() {
                let focus = matching_focus(&Focus { node: sibling, ..*focus }, at + 1, size);
                let value = self.with_current(&predicate.expr, focus, matched, frame, Default::default())?;
                if holds_at(&value, at + 1) {
                    kept.push(sibling);
                }
            }
            list = kept;
        }
        Ok(list.contains(&node))
    }

    /// Whether a predicate holds for a node without siblings.
    fn holds_alone(&self, predicate: &Predicate, focus: &Focus, frame: &Frame) -> Res<bool> {
        let value = self.value(&predicate.expr, matching_focus(focus, 1, 1), frame, Default::default())?;
        Ok(holds_at(&value, 1))
    }

    /// Whether the first predicate of a step holds, which may ask for the position.
    fn holds_at_position(
        &self,
        step: &Step,
        predicate: &Predicate,
        focus: &Focus,
        frame: &Frame,
    ) -> Res<bool> {
        let node = focus.node;
        let doc = self.doc(node.doc);
        let Some(parent) = doc.parent(node.id) else { return self.holds_alone(predicate, focus, frame) };
        match predicate.place {
            Some(FixedPlace::At(1)) if !step.attribute => {
                let mut at = doc.prev_sibling(node.id);
                while let Some(before) = at {
                    if self.matches_test(step, Node::in_document(node.doc, before)) {
                        return Ok(false);
                    }
                    at = doc.prev_sibling(before);
                }
                return Ok(true);
            }
            Some(FixedPlace::At(wanted)) if !step.attribute => {
                return Ok(self.position(step, node, parent) == wanted);
            }
            // (The last one is unknown while a document is being read.)
            Some(FixedPlace::Last) if !step.attribute && self.opening.is_none() => {
                let mut at = doc.next_sibling(node.id);
                while let Some(behind) = at {
                    if self.matches_test(step, Node::in_document(node.doc, behind)) {
                        return Ok(false);
                    }
                    at = doc.next_sibling(behind);
                }
                return Ok(true);
            }
            _ => {}
        }
        let Expr::XPath(xpath) = &predicate.expr else {
            return self.boolean(&predicate.expr, matching_focus(focus, 1, 1), frame, Default::default());
        };
        let fits = |id: &NodeId| self.matches_test(step, Node::in_document(node.doc, *id));
        let (position, size) = if step.attribute {
            let before = doc.attributes(parent).take_while(|id| *id != node.id).filter(fits).count();
            (before + 1, doc.attributes(parent).filter(fits).count())
        } else {
            let at = self.position(step, node, parent);
            let size = match xpath.expression.needs().size {
                true => self.size(step, node, parent, || doc.children(parent).filter(fits).count())?,
                false => at,
            };
            (at, size)
        };
        let focus = matching_focus(focus, position, size);
        Ok(holds_at(&self.value(&predicate.expr, focus, frame, Default::default())?, position))
    }

    /// The number of siblings that pass the test of a step: counted once for the children of a node.
    fn size(&self, step: &Step, node: Node, parent: NodeId, count: impl FnOnce() -> usize) -> Res<usize> {
        let key = (std::ptr::from_ref(step).addr(), node.doc, parent);
        if self.opening.is_none()
            && let Ok(mut sizes) = self.size.lock()
            && let Some(size) = sizes.get(key)
        {
            return Ok(*size);
        }
        let size = count();
        self.spend(1 + (size as u64 >> 2))?;
        if let Ok(mut sizes) = self.size.lock() {
            sizes.put(key, size);
        }
        Ok(size)
    }

    /// The position of a child among the siblings that pass the test of a step. Nodes are mostly matched one after the
    /// other: it is counted from the last one.
    fn position(&self, step: &Step, node: Node, parent: NodeId) -> usize {
        let doc = self.doc(node.doc);
        let key = (std::ptr::from_ref(step) as usize, node.doc, parent);
        let last = self.place.lock().ok().and_then(|mut places| places.get(key).copied());
        let mut count = 0;
        let mut at = Some(node.id);
        while let Some(sibling) = at {
            if let Some((last_sibling, place)) = last
                && last_sibling == sibling
            {
                count += place;
                break;
            }
            count += usize::from(self.matches_test(step, Node::in_document(node.doc, sibling)));
            at = doc.prev_sibling(sibling);
        }
        if let Ok(mut places) = self.place.lock() {
            places.put(key, (node.id, count));
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
            // The root is not a child.
            Test::Node => kind != NodeKind::Document && doc.parent(node.id).is_some(),
            Test::Text => kind == NodeKind::Text,
            Test::Comment => kind == NodeKind::Comment,
            Test::Nothing => false,
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

/// The focus of a predicate, at the depth of the pattern.
fn matching_focus(focus: &Focus, position: usize, size: usize) -> Focus {
    let (position, size) = (position as u32, size as u32);
    Focus { position, size, ..Focus::new(focus.node, focus.depth + 1, focus.next) }
}

/// Whether the value of a predicate holds at a position. What has no effective boolean value (a date, several numbers) is an
/// error, and so no match (XSLT 3.0 section 5.5.4).
fn holds_at(value: &Value, position: usize) -> bool {
    match value {
        Value::Number(number) => *number == position as f64,
        Value::Atomic(atom) if atom.is_numeric() => atom.to_double() == position as f64,
        Value::Atomic(atom) => atom.to_boolean().unwrap_or(false),
        Value::Sequence(items) => items.first().is_some_and(|first| first.node().is_some()),
        value => value.to_boolean(),
    }
}
