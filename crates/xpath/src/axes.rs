//! Steps of a path: the thirteen axes, node tests and predicates, without building lists where that can be avoided.

use crate::ast::{Axis, BinaryOp};
use crate::eval::{Each, Eval, Frame, Walk, spend};
use crate::plan::{Core, Op, Predicate, Step, Test, below_by_position};
use crate::value::Node;
use xml::{Document, NameId, NodeId, NodeKind};

/// A node test for one document and one principal node kind.
#[derive(Clone, Copy)]
enum Matcher<'a> {
    All,
    /// No node matches.
    Nothing,
    Parent,
    Kind(NodeKind),
    Instruction(&'a str),
    Named(NodeKind, NameId),
    InNamespace(NodeKind, &'a str),
    Local(NodeKind, &'a str),
    /// A document with one element, of that name if there is one.
    DocumentOf(Option<NameId>),
}

impl Matcher<'_> {
    #[inline]
    fn matches(self, doc: &Document, n: NodeId) -> bool {
        match self {
            Matcher::Named(kind, name) => doc.kind(n) == kind && doc.name_id(n) == Some(name),
            Matcher::Kind(kind) => doc.kind(n) == kind,
            Matcher::Parent => matches!(doc.kind(n), NodeKind::Element | NodeKind::Document),
            Matcher::All => true,
            Matcher::Nothing => false,
            Matcher::Instruction(target) => {
                doc.kind(n) == NodeKind::ProcessingInstruction && doc.local(n) == target
            }
            Matcher::InNamespace(kind, uri) => doc.kind(n) == kind && doc.namespace(n) == uri,
            Matcher::Local(kind, local) => doc.kind(n) == kind && doc.local(n) == local,
            Matcher::DocumentOf(name) => is_document_of(doc, n, name),
        }
    }
}

/// A document node with exactly one element, and no text beside it.
fn is_document_of(doc: &Document, n: NodeId, name: Option<NameId>) -> bool {
    if doc.kind(n) != NodeKind::Document || doc.children(n).any(|c| doc.kind(c) == NodeKind::Text) {
        return false;
    }
    let mut elements = doc.children(n).filter(|c| doc.kind(*c) == NodeKind::Element);
    let first = elements.next();
    first.is_some_and(|e| name.is_none() || doc.name_id(e) == name) && elements.next().is_none()
}

/// Predicates of one step whose positions are counted in place; more are applied to a list.
const COUNTED: usize = 4;

impl<'a> Eval<'a> {
    /// Runs the steps depth-first from one node.
    pub fn steps(&self, steps: &'a [Step], node: Node, f: Each<'_>) -> Walk {
        match steps {
            [] => f(node),
            [last] => self.step(last, node, f),
            [below, child, rest @ ..] if let Some((name, nth)) = below_by_position(below, child) => {
                match self.nth_below(name, nth, node, &mut |n| self.steps(rest, n, f)) {
                    Some(walk) => walk,
                    None => self.step(below, node, &mut |n| self.steps(&steps[1..], n, f)),
                }
            }
            [first, rest @ ..] => self.step(first, node, &mut |n| self.steps(rest, n, f)),
        }
    }

    /// `//name[n]`: of the descendants with that name, those that are the n-th of their parent, which is less to visit than
    /// the children of every node. `None`: this document needs a walk.
    fn nth_below(&self, name: u32, nth: usize, node: Node, f: Each<'_>) -> Option<Walk> {
        let mut walk = || {
            let doc = self.doc(node.doc)?;
            if node.is_namespace() || !doc.is_dense() || doc.kind(node.id) == NodeKind::Attribute {
                return Ok(None);
            }
            let Some(name) = self.name(name, node.doc, doc) else { return Ok(Some(true)) };
            // Children of one parent are mostly adjacent.
            let mut last: Option<(NodeId, Option<NodeId>)> = None;
            let (mut from, to) = (node.id.index() + 1, doc.subtree_end(node.id).index());
            while let Some(found) = doc.named_in(from, to, NodeKind::Element, name) {
                from = found.index() + 1;
                let Some(parent) = doc.parent(found) else { continue };
                let wanted = match last {
                    Some((last_parent, wanted)) if last_parent == parent => wanted,
                    _ => {
                        let mut wanted = doc.child_named(parent, name);
                        for _ in 1..nth {
                            wanted = wanted.and_then(|before| doc.sibling_named(before, name));
                        }
                        last = Some((parent, wanted));
                        wanted
                    }
                };
                if wanted == Some(found) && !f(node.at(found))? {
                    return Ok(Some(false));
                }
            }
            Ok(Some(true))
        };
        walk().transpose()
    }

    fn step(&self, step: &'a Step, node: Node, f: Each<'_>) -> Walk {
        spend(1)?;
        match &*step.predicates {
            [] => self.axis(step, node, f),
            [Predicate::Last] if step.axis == Axis::Child && !node.is_namespace() => {
                self.last_child(step, node, f)
            }
            list if step.needs_size || list.len() > COUNTED => {
                let mut nodes = Vec::new();
                self.candidates(step, node, &mut |n| {
                    nodes.push(n);
                    Ok(true)
                })?;
                for predicate in list {
                    nodes = self.filter(&nodes, predicate)?;
                }
                for n in nodes {
                    if !f(n)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            list => {
                let mut passed = [0usize; COUNTED];
                // After its n-th node `[n]` accepts no more: this axis is done, the path is not.
                let mut exhausted = false;
                let mut stopped = false;
                self.candidates(step, node, &mut |n| {
                    for (predicate, count) in list.iter().zip(&mut passed) {
                        *count += 1;
                        let holds = match predicate {
                            Predicate::Position(wanted) => {
                                exhausted |= *count >= *wanted;
                                count == wanted
                            }
                            Predicate::Boolean(Op::Compare(op, both))
                                if matches!(op, BinaryOp::Less | BinaryOp::LessOrEqual)
                                    && matches!(&**both, (Op::Call(Core::Position, ..), Op::Number(_))) =>
                            {
                                // `[position() < n]`: once false, false for all that follow.
                                let holds =
                                    self.holds(predicate, Frame { node: n, position: *count, size: 0 })?;
                                exhausted |= !holds;
                                holds
                            }
                            _ => self.holds(predicate, Frame { node: n, position: *count, size: 0 })?,
                        };
                        if !holds {
                            return Ok(!exhausted);
                        }
                    }
                    stopped = !f(n)?;
                    Ok(!stopped && !exhausted)
                })?;
                Ok(!stopped)
            }
        }
    }

    fn last_child(&self, step: &'a Step, node: Node, f: Each<'_>) -> Walk {
        let doc = self.doc(node.doc)?;
        let Some(matcher) = self.matcher(&step.test, NodeKind::Element, node, doc) else { return Ok(true) };
        let mut at = doc.last_child(node.id);
        while let Some(n) = at {
            if matcher.matches(doc, n) {
                return f(node.at(n));
            }
            at = doc.prev_sibling(n);
        }
        Ok(true)
    }

    /// `None`: no node of this document can match.
    fn matcher(
        &self,
        test: &'a Test,
        principal: NodeKind,
        node: Node,
        doc: &Document,
    ) -> Option<Matcher<'a>> {
        Some(match test {
            Test::Name(index) => Matcher::Named(principal, self.name(*index, node.doc, doc)?),
            Test::Node => Matcher::All,
            Test::Parent => Matcher::Parent,
            Test::Any => Matcher::Kind(principal),
            Test::Text => Matcher::Kind(NodeKind::Text),
            Test::Comment => Matcher::Kind(NodeKind::Comment),
            Test::NamespaceNode => Matcher::Nothing,
            Test::ProcessingInstruction(None) => Matcher::Kind(NodeKind::ProcessingInstruction),
            Test::ProcessingInstruction(Some(target)) => Matcher::Instruction(target),
            Test::Namespace(uri) => Matcher::InNamespace(principal, uri),
            Test::Local(local) => Matcher::Local(principal, local),
            Test::Kind(kind, None) => Matcher::Kind(*kind),
            Test::Kind(kind, Some(index)) => Matcher::Named(*kind, self.name(*index, node.doc, doc)?),
            Test::DocumentOf(None) => Matcher::DocumentOf(None),
            Test::DocumentOf(Some(index)) => Matcher::DocumentOf(Some(self.name(*index, node.doc, doc)?)),
        })
    }

    /// The nodes of a step that its first predicate may choose, in the order of its axis.
    fn candidates(&self, step: &'a Step, node: Node, f: Each<'_>) -> Walk {
        if step.join.as_ref().is_none_or(|join| join.span() > 1) {
            return self.axis(step, node, f);
        }
        if let Some(joined) = self.joined_nodes(step, node)? {
            for n in joined {
                spend(1)?;
                if !f(n)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let mut looked = 0;
        let more = self.axis(step, node, &mut |n| {
            looked += 1;
            f(n)
        })?;
        self.not_joined(step, node, looked, more)?;
        Ok(more)
    }

    /// The nodes of an axis that pass the node test, in the order of the axis.
    fn axis(&self, step: &'a Step, node: Node, f: Each<'_>) -> Walk {
        let doc = self.doc(node.doc)?;
        if step.axis == Axis::Namespace {
            return self.namespaces(step, node, doc, f);
        }
        if node.is_namespace() {
            return self.namespace_axes(step, node, doc, f);
        }
        let principal = if step.axis == Axis::Attribute { NodeKind::Attribute } else { NodeKind::Element };
        let Some(m) = self.matcher(&step.test, principal, node, doc) else { return Ok(true) };
        let id = node.id;
        if let (Axis::Descendant | Axis::DescendantOrSelf, Matcher::Named(kind, name)) = (step.axis, m)
            && doc.is_dense()
            && doc.kind(id) != NodeKind::Attribute
        {
            let mut from = id.index() + usize::from(step.axis == Axis::Descendant);
            let to = doc.subtree_end(id).index();
            spend(to.saturating_sub(from) >> 5)?;
            while let Some(found) = doc.named_in(from, to, kind, name) {
                if !f(node.at(found))? {
                    return Ok(false);
                }
                from = found.index() + 1;
            }
            return Ok(true);
        }
        let mut offer = |n: NodeId| if m.matches(doc, n) { f(node.at(n)) } else { Ok(true) };
        match step.axis {
            Axis::Child => {
                if let Matcher::Named(_, name) = m {
                    let mut at = doc.child_named(id, name);
                    while let Some(n) = at {
                        if !f(node.at(n))? {
                            return walked(id, n, false);
                        }
                        at = doc.sibling_named(n, name);
                    }
                    return match doc.last_child(id) {
                        Some(last) => walked(id, last, true),
                        None => Ok(true),
                    };
                }
                let mut at = doc.first_child(id);
                let mut last = id;
                while let Some(n) = at {
                    last = n;
                    if !offer(n)? {
                        return walked(id, n, false);
                    }
                    at = doc.next_sibling(n);
                }
                walked(id, last, true)
            }
            Axis::Attribute => match m {
                Matcher::Named(NodeKind::Attribute, name) => match doc.attribute_by_name(id, name) {
                    Some(a) => f(node.at(a)),
                    None => Ok(true),
                },
                _ => {
                    for a in doc.attributes(id) {
                        if !offer(a)? {
                            return Ok(false);
                        }
                    }
                    Ok(true)
                }
            },
            Axis::SelfAxis => offer(id),
            Axis::Descendant | Axis::DescendantOrSelf => {
                if doc.is_dense() && doc.kind(id) != NodeKind::Attribute {
                    spend((doc.subtree_end(id).index() - id.index()) >> 4)?;
                } else {
                    // The subtree may be anywhere in the range.
                    spend(doc.node_count() >> 8)?;
                }
                Ok((step.axis == Axis::Descendant || offer(id)?) && descend(doc, id, &mut offer)?)
            }
            Axis::Parent => match doc.parent(id) {
                Some(p) => offer(p),
                None => Ok(true),
            },
            Axis::Ancestor | Axis::AncestorOrSelf => {
                let mut at = if step.axis == Axis::Ancestor { doc.parent(id) } else { Some(id) };
                while let Some(n) = at {
                    if !offer(n)? {
                        return Ok(false);
                    }
                    at = doc.parent(n);
                }
                Ok(true)
            }
            Axis::FollowingSibling => {
                let mut at = doc.next_sibling(id);
                let mut last = id;
                while let Some(n) = at {
                    last = n;
                    if !offer(n)? {
                        return walked(id, n, false);
                    }
                    at = doc.next_sibling(n);
                }
                walked(id, last, true)
            }
            Axis::PrecedingSibling => {
                let mut at = doc.prev_sibling(id);
                let mut last = id;
                while let Some(n) = at {
                    last = n;
                    if !offer(n)? {
                        return walked(n, id, false);
                    }
                    at = doc.prev_sibling(n);
                }
                walked(last, id, true)
            }
            Axis::Following => {
                spend(doc.node_count() >> 5)?;
                let mut from = id;
                if doc.kind(id) == NodeKind::Attribute {
                    // The children of its element follow an attribute.
                    let Some(element) = doc.parent(id) else { return Ok(true) };
                    if !descend(doc, element, &mut offer)? {
                        return Ok(false);
                    }
                    from = element;
                }
                following(doc, from, &mut offer)
            }
            Axis::Preceding => {
                spend(doc.node_count() >> 5)?;
                let from = if doc.kind(id) == NodeKind::Attribute { doc.parent(id) } else { Some(id) };
                match from {
                    Some(from) => preceding(doc, from, &mut offer),
                    None => Ok(true),
                }
            }
            Axis::Namespace => Ok(true),
        }
    }

    fn namespaces(&self, step: &'a Step, node: Node, doc: &'a Document, f: Each<'_>) -> Walk {
        if node.is_namespace() || doc.kind(node.id) != NodeKind::Element {
            return Ok(true);
        }
        let wanted = |prefix: &str| match &step.test {
            Test::Node | Test::Any | Test::NamespaceNode => true,
            Test::Name(index) => {
                let (uri, local, _) = &self.program.names[*index as usize];
                uri.is_empty() && **local == *prefix
            }
            _ => false,
        };
        let scope = doc.in_scope_namespaces(node.id);
        let prefixes = std::iter::once("xml").chain(scope.iter().map(|(p, _)| *p));
        for (i, prefix) in prefixes.enumerate() {
            if wanted(prefix) && !f(Node { namespace: i as u32 + 1, ..node })? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The axes of a namespace node: its parent is its element, and it stands before the attributes.
    fn namespace_axes(&self, step: &'a Step, node: Node, doc: &Document, f: Each<'_>) -> Walk {
        let Some(m) = self.matcher(&step.test, NodeKind::Element, node, doc) else { return Ok(true) };
        let or_self = matches!(step.axis, Axis::SelfAxis | Axis::DescendantOrSelf | Axis::AncestorOrSelf);
        // On the self axis only `node()` and `namespace-node()` match: its principal node kind is the element.
        if or_self && matches!(step.test, Test::Node | Test::NamespaceNode) && !f(node)? {
            return Ok(false);
        }
        let mut offer = |n: NodeId| if m.matches(doc, n) { f(node.at(n)) } else { Ok(true) };
        match step.axis {
            Axis::Parent => offer(node.id),
            Axis::Ancestor | Axis::AncestorOrSelf => {
                let mut at = Some(node.id);
                while let Some(n) = at {
                    if !offer(n)? {
                        return Ok(false);
                    }
                    at = doc.parent(n);
                }
                Ok(true)
            }
            Axis::Following => Ok(descend(doc, node.id, &mut offer)? && following(doc, node.id, &mut offer)?),
            Axis::Preceding => preceding(doc, node.id, &mut offer),
            _ => Ok(true),
        }
    }
}

/// Counts a walk along siblings, between two nodes of which one is the first and one the last, as work. Returns `more`.
#[inline]
fn walked(first: NodeId, last: NodeId, more: bool) -> Walk {
    // The distance of node numbers, unless a tree was changed much.
    spend(last.index().abs_diff(first.index()) >> 4)?;
    Ok(more)
}

/// Descendants in document order.
#[inline]
fn descend(doc: &Document, top: NodeId, offer: &mut impl FnMut(NodeId) -> Walk) -> Walk {
    if doc.is_dense() && doc.kind(top) != NodeKind::Attribute {
        // Ids are in document order: links are not followed.
        let end = doc.subtree_end(top).index();
        for index in top.index() + 1..end {
            let Some(n) = NodeId::from_index(index) else { break };
            if doc.kind(n) != NodeKind::Attribute && !offer(n)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    for n in doc.descendants(top) {
        if !offer(n)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The nodes after the subtree of `from`, in document order.
fn following(doc: &Document, from: NodeId, offer: &mut impl FnMut(NodeId) -> Walk) -> Walk {
    let mut at = Some(from);
    while let Some(n) = at {
        let mut sibling = doc.next_sibling(n);
        while let Some(s) = sibling {
            if !offer(s)? || !descend(doc, s, offer)? {
                return Ok(false);
            }
            sibling = doc.next_sibling(s);
        }
        at = doc.parent(n);
    }
    Ok(true)
}

/// The nodes before `from` without its ancestors, in reverse document order.
fn preceding(doc: &Document, from: NodeId, offer: &mut impl FnMut(NodeId) -> Walk) -> Walk {
    let mut at = Some(from);
    while let Some(n) = at {
        let mut sibling = doc.prev_sibling(n);
        while let Some(top) = sibling {
            // The subtree of `top` backwards: from its deepest last node up.
            let mut inner = deepest_last(doc, top);
            loop {
                if !offer(inner)? {
                    return Ok(false);
                }
                if inner == top {
                    break;
                }
                inner = match doc.prev_sibling(inner) {
                    Some(before) => deepest_last(doc, before),
                    None => match doc.parent(inner) {
                        Some(parent) => parent,
                        None => break,
                    },
                };
            }
            sibling = doc.prev_sibling(top);
        }
        at = doc.parent(n);
    }
    Ok(true)
}

fn deepest_last(doc: &Document, mut n: NodeId) -> NodeId {
    while let Some(last) = doc.last_child(n) {
        n = last;
    }
    n
}
