//! Paths from one node that need no list in between: `a/b/@c`, `../x[k = 3]`, `//a/b[1]`, `current()/id`. They run node by node
//! with no allocation and no call through a pointer.
//!
//! Precondition ([`is_direct`], decided when the expression is compiled): the path starts at the context node, the root or the
//! current node; no step leads to a node twice; each step goes along an axis and has a test that [`Eval::walk`] knows, and at
//! most one predicate, which is a position, `last()` among children, or a condition that does not look at positions.
//!
//! The general evaluation ([`Eval::run`](super::Eval)) gives the same nodes in the same order; the tests compare both.

use super::nodes::reserve;
use super::{Eval, Fault, Frame, Walk, spend};
use crate::ast::Axis;
use crate::compile::is_positional;
use crate::plan::{From, Op, Path, Predicate, Step, Test, below_by_position};
use crate::value::{DocId, Node};
use std::borrow::Cow;
use xml::{Document, NameId, NodeId, NodeKind};

/// Whether a path can run by [`Eval::walk`]. Called when the steps have been analysed.
pub(crate) fn is_direct(start: &From, filter: &[Predicate], steps: &[Step]) -> bool {
    let starts = matches!(start, From::Context | From::Root | From::Op(Op::Current(_)));
    // `//name[n]` has its own evaluation.
    let by_position = steps.windows(2).any(|pair| below_by_position(&pair[0], &pair[1]).is_some());
    starts && filter.is_empty() && !by_position && steps.iter().all(is_direct_step)
}

fn is_direct_step(step: &Step) -> bool {
    let axis = !matches!(step.axis, Axis::Following | Axis::Preceding | Axis::Namespace);
    let test = matches!(step.test, Test::Name(_) | Test::Node | Test::Parent | Test::Any | Test::Text);
    let predicates = match &*step.predicates {
        [] | [Predicate::Position(_)] => true,
        [Predicate::Last] => step.axis == Axis::Child,
        [predicate @ Predicate::Boolean(_)] => !is_positional(predicate),
        _ => false,
    };
    axis && test && predicates && !step.break_one && !step.overlaps_one
}

/// A node test of one step in one document.
#[derive(Clone, Copy)]
enum Simple {
    All,
    Nothing,
    Parent,
    Kind(NodeKind),
    Named(NodeKind, NameId),
}

impl Simple {
    #[inline(always)]
    fn passes(self, doc: &Document, n: NodeId) -> bool {
        match self {
            Simple::Named(kind, name) => doc.kind(n) == kind && doc.name_id(n) == Some(name),
            Simple::Kind(kind) => doc.kind(n) == kind,
            Simple::Parent => matches!(doc.kind(n), NodeKind::Element | NodeKind::Document),
            Simple::All => true,
            Simple::Nothing => false,
        }
    }
}

/// What a path leads to, as far as somebody wants to know it.
pub(crate) enum Reached {
    Nothing,
    /// The first node, or the only one.
    Node(NodeId),
    Several,
}

#[cfg(test)]
thread_local! {
    /// For the tests: all paths run in the general way.
    pub(crate) static OFF: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl<'a> Eval<'a> {
    /// The start of a direct path; `None`: it runs in the general way.
    #[inline]
    pub(crate) fn direct(&self, p: &'a Path, at: Frame) -> Result<Option<(&'a Document, Node)>, Fault> {
        if !p.direct {
            return Ok(None);
        }
        #[cfg(test)]
        if OFF.get() {
            return Ok(None);
        }
        let node = match &p.start {
            From::Context => at.node,
            From::Root => at.node.at(self.root(at.node)?),
            From::Op(_) => match self.cx.host.current() {
                Some(node) => node,
                None => return Ok(None),
            },
        };
        // (A node for an atomic value has a number there too.)
        if node.is_namespace() || node.doc == DocId::ATOMIC {
            return Ok(None);
        }
        let doc = self.doc(node.doc)?;
        if self.program.version2 && matches!(p.start, From::Root) && doc.kind(node.id) != NodeKind::Document {
            return Ok(None);
        }
        Ok(Some((doc, node)))
    }

    /// Runs the steps of a direct path from one node, in the order of the axes.
    pub(crate) fn walk<F>(
        &self,
        doc: &'a Document,
        document: DocId,
        steps: &'a [Step],
        id: NodeId,
        f: &mut F,
    ) -> Walk
    where
        F: FnMut(NodeId) -> Walk,
    {
        match steps {
            [] => f(id),
            [first, ..] if first.join.as_ref().is_some_and(|join| join.span() > 1) => {
                self.walk_joined(doc, document, steps, id, f)
            }
            [last] => self.walk_step(doc, document, last, id, f),
            [first, rest @ ..] => {
                self.walk_step(doc, document, first, id, &mut |n| self.walk(doc, document, rest, n, &mut *f))
            }
        }
    }

    /// The same where the nodes of the first steps are chosen by a join.
    fn walk_joined<F>(
        &self,
        doc: &'a Document,
        document: DocId,
        steps: &'a [Step],
        id: NodeId,
        f: &mut F,
    ) -> Walk
    where
        F: FnMut(NodeId) -> Walk,
    {
        let [first, rest @ ..] = steps else { return f(id) };
        let node = Node::in_document(document, id);
        if let Some(joined) = self.joined_nodes(first, node)? {
            let span = first.join.as_ref().map_or(1, |join| join.span());
            for n in joined {
                spend(1)?;
                let at = Frame { node: n, position: 1, size: 1 };
                if self.holds(&steps[span - 1].predicates[0], at)?
                    && !self.walk(doc, document, &steps[span..], n.id, f)?
                {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let before = self.looked.get();
        let more =
            self.walk_step(doc, document, first, id, &mut |n| self.walk(doc, document, rest, n, &mut *f))?;
        self.not_joined(first, node, self.looked.get().wrapping_sub(before), more)?;
        Ok(more)
    }

    #[inline]
    fn walk_step<F>(&self, doc: &'a Document, document: DocId, step: &'a Step, id: NodeId, f: &mut F) -> Walk
    where
        F: FnMut(NodeId) -> Walk,
    {
        let principal = if step.axis == Axis::Attribute { NodeKind::Attribute } else { NodeKind::Element };
        let test = match &step.test {
            Test::Name(index) => match self.name(*index, document, doc) {
                Some(name) => Simple::Named(principal, name),
                None => return Ok(true),
            },
            Test::Any => Simple::Kind(principal),
            Test::Text => Simple::Kind(NodeKind::Text),
            Test::Parent => Simple::Parent,
            _ => Simple::All,
        };
        match &*step.predicates {
            [] => along(doc, step.axis, test, id, f),
            [Predicate::Position(wanted)] => {
                let (mut count, mut more) = (0, true);
                along(doc, step.axis, test, id, &mut |n| {
                    count += 1;
                    if count == *wanted {
                        more = f(n)?;
                    }
                    Ok(count < *wanted)
                })?;
                Ok(more)
            }
            [Predicate::Boolean(op)] => {
                let node = Node::in_document(document, id);
                let mut looked = 0;
                let mut look = |n: NodeId| {
                    looked += 1;
                    spend(1)?;
                    // (It does not use position and size.)
                    let inner = Frame { node: node.at(n), position: 1, size: 1 };
                    if self.condition(op, inner)? { f(n) } else { Ok(true) }
                };
                if let Some(joined) = self.joined_nodes(step, node)? {
                    for n in joined {
                        if !look(n.id)? {
                            return Ok(false);
                        }
                    }
                    return Ok(true);
                }
                let more = along(doc, step.axis, test, id, &mut look)?;
                self.looked.set(self.looked.get().wrapping_add(looked));
                self.not_joined(step, node, looked, more)?;
                Ok(more)
            }
            // `last()` among children.
            _ => {
                let mut at = doc.last_child(id);
                spend(1)?;
                while let Some(n) = at {
                    if test.passes(doc, n) {
                        return f(n);
                    }
                    at = doc.prev_sibling(n);
                }
                Ok(true)
            }
        }
    }

    /// The first child, or the attribute, with a name, which is what most paths lead to; with `only` that, if there is no other. `None`: another step.
    #[inline]
    pub(crate) fn near(
        &self,
        doc: &Document,
        step: &Step,
        node: Node,
        only: bool,
    ) -> Result<Option<Reached>, Fault> {
        let Test::Name(index) = &step.test else { return Ok(None) };
        if !step.predicates.is_empty() || !matches!(step.axis, Axis::Child | Axis::Attribute) {
            return Ok(None);
        }
        let Some(name) = self.name(*index, node.doc, doc) else { return Ok(Some(Reached::Nothing)) };
        if step.axis == Axis::Attribute {
            spend(1)?;
            return Ok(Some(doc.attribute_by_name(node.id, name).map_or(Reached::Nothing, Reached::Node)));
        }
        let last = || doc.last_child(node.id);
        let (found, seen) = match doc.child_named(node.id, name) {
            None => (Reached::Nothing, last()),
            Some(first) if !only => (Reached::Node(first), Some(first)),
            Some(first) => match doc.sibling_named(first, name) {
                None => (Reached::Node(first), last()),
                second => (Reached::Several, second),
            },
        };
        spend(1 + (seen.unwrap_or(node.id).index().abs_diff(node.id.index()) >> 4))?;
        Ok(Some(found))
    }

    /// The nodes of a union of paths to children, each of one step: `a | b | text()`. They are found in one pass, in document
    /// order. `false`: it is another union.
    pub(super) fn children_of(&self, parts: &'a [Op], at: Frame, out: &mut Vec<Node>) -> Result<bool, Fault> {
        const MOST: usize = 8;
        let is_child = |part: &Op| match part {
            Op::Path(p) => {
                p.direct
                    && matches!(p.start, From::Context)
                    && matches!(&*p.steps, [step] if step.axis == Axis::Child && step.predicates.is_empty())
            }
            _ => false,
        };
        if parts.len() > MOST || !parts.iter().all(is_child) {
            return Ok(false);
        }
        let mut tests = [Simple::Nothing; MOST];
        for (test, part) in tests.iter_mut().zip(parts) {
            let Op::Path(p) = part else { return Ok(false) };
            let Some((doc, node)) = self.direct(p, at)? else { return Ok(false) };
            *test = match p.steps.first().map(|step| &step.test) {
                Some(Test::Name(index)) => match self.name(*index, node.doc, doc) {
                    Some(name) => Simple::Named(NodeKind::Element, name),
                    None => Simple::Nothing,
                },
                Some(Test::Any) => Simple::Kind(NodeKind::Element),
                Some(Test::Text) => Simple::Kind(NodeKind::Text),
                Some(Test::Parent) => Simple::Parent,
                _ => Simple::All,
            };
        }
        let doc = self.doc(at.node.doc)?;
        let tests = &tests[..parts.len()];
        let mut last = at.node.id;
        for n in doc.children(at.node.id) {
            last = n;
            if tests.iter().any(|test| test.passes(doc, n)) {
                reserve(out);
                out.push(at.node.at(n));
            }
        }
        spend(1 + (last.index().abs_diff(at.node.id.index()) >> 4))?;
        Ok(true)
    }

    /// The string value of a node of the tree.
    #[inline]
    pub(crate) fn text_of(
        &self,
        doc: &'a Document,
        document: DocId,
        n: NodeId,
    ) -> Result<Cow<'a, str>, Fault> {
        match doc.whole_text(n) {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => self.node_string(Node::in_document(document, n)),
        }
    }
}

/// The nodes of an axis that pass a test, in the order of the axis; the length of the walk counts as work.
#[inline(always)]
fn along<F>(doc: &Document, axis: Axis, test: Simple, id: NodeId, f: &mut F) -> Walk
where
    F: FnMut(NodeId) -> Walk,
{
    // The visited nodes lie between these two.
    let (mut from, mut to) = (id, id);
    let mut more = true;
    match (axis, test) {
        (Axis::Child, Simple::Named(_, name)) => {
            let mut at = doc.child_named(id, name);
            while let Some(n) = at {
                to = n;
                more = f(n)?;
                if !more {
                    break;
                }
                at = doc.sibling_named(n, name);
            }
            if more && let Some(last) = doc.last_child(id) {
                to = last;
            }
        }
        (Axis::Attribute, Simple::Named(_, name)) => {
            if let Some(attribute) = doc.attribute_by_name(id, name) {
                more = f(attribute)?;
            }
        }
        (Axis::Child, _) => {
            let mut at = doc.first_child(id);
            while let Some(n) = at {
                to = n;
                if test.passes(doc, n) {
                    more = f(n)?;
                    if !more {
                        break;
                    }
                }
                at = doc.next_sibling(n);
            }
        }
        (Axis::Attribute, _) => {
            for n in doc.attributes(id) {
                if test.passes(doc, n) {
                    more = f(n)?;
                    if !more {
                        break;
                    }
                }
            }
        }
        (Axis::SelfAxis, _) if test.passes(doc, id) => more = f(id)?,
        (Axis::SelfAxis, _) => {}
        (Axis::Parent, _) => {
            if let Some(n) = doc.parent(id)
                && test.passes(doc, n)
            {
                more = f(n)?;
            }
        }
        (Axis::FollowingSibling | Axis::PrecedingSibling, _) => {
            let forward = axis == Axis::FollowingSibling;
            let next = |n| if forward { doc.next_sibling(n) } else { doc.prev_sibling(n) };
            let mut at = next(id);
            while let Some(n) = at {
                to = n;
                if test.passes(doc, n) {
                    more = f(n)?;
                    if !more {
                        break;
                    }
                }
                at = next(n);
            }
        }
        (Axis::Descendant | Axis::DescendantOrSelf, _) => {
            return below(doc, axis == Axis::DescendantOrSelf, test, id, f);
        }
        (Axis::Ancestor | Axis::AncestorOrSelf, _) => {
            let mut at = if axis == Axis::Ancestor { doc.parent(id) } else { Some(id) };
            while let Some(n) = at {
                if test.passes(doc, n) {
                    more = f(n)?;
                    if !more {
                        break;
                    }
                }
                at = doc.parent(n);
            }
            from = to;
        }
        _ => {}
    }
    spend(1 + (to.index().abs_diff(from.index()) >> 4))?;
    Ok(more)
}

/// The descendants of a node.
#[inline(never)]
fn below<F>(doc: &Document, and_self: bool, test: Simple, id: NodeId, f: &mut F) -> Walk
where
    F: FnMut(NodeId) -> Walk,
{
    if !doc.is_dense() || doc.kind(id) == NodeKind::Attribute {
        spend(1 + (doc.node_count() >> 8))?;
        if and_self && test.passes(doc, id) && !f(id)? {
            return Ok(false);
        }
        for n in doc.descendants(id) {
            if test.passes(doc, n) && !f(n)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let mut from = id.index() + usize::from(!and_self);
    let to = doc.subtree_end(id).index();
    if let Simple::Named(kind, name) = test {
        spend(1 + (to.saturating_sub(from) >> 5))?;
        while let Some(n) = doc.named_in(from, to, kind, name) {
            if !f(n)? {
                return Ok(false);
            }
            from = n.index() + 1;
        }
        return Ok(true);
    }
    spend(1 + (to.saturating_sub(from) >> 4))?;
    for index in from..to {
        let Some(n) = NodeId::from_index(index) else { break };
        if doc.kind(n) != NodeKind::Attribute && test.passes(doc, n) && !f(n)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::OFF;
    use crate::{CompileOptions, Context, Expression, Node};

    const DOCUMENT: &str = "<r k='1'><a k='2' x='u'>t<b>1</b><b k='3'>2</b><c/></a><!--c--><?p d?><a><b><a><b>2</b></a></b>v<d/>1</a><c k='2'>1</c></r>";

    /// Every expression from every node, with direct evaluation and without.
    #[test]
    fn as_the_general_way() {
        let starts = ["", "/", "//", "../", "./", "current()/"];
        let steps = [
            "a",
            "@k",
            "*",
            "node()",
            "text()",
            "..",
            ".",
            "@*",
            "b[1]",
            "b[2]",
            "*[last()]",
            "a[b = 2]",
            "b[@k]",
            "*[. = '2']",
            "following-sibling::*[1]",
            "preceding-sibling::a",
            "preceding-sibling::*[2]",
            "ancestor::*",
            "ancestor-or-self::a[1]",
            "descendant::b",
            "descendant::b[1]",
            "self::a",
            "*[not(b)]",
            "descendant-or-self::node()",
            "a[position() = 2]",
        ];
        let wraps = [
            "P",
            "count(P)",
            "sum(P)",
            "string(P)",
            "number(P)",
            "boolean(P)",
            "P = 2",
            "P = '1'",
            "2 > P",
            "P != P",
            "P = true()",
            "(P)[2]",
            "P | P/*",
            "P | text() | a",
            "a | * | text()",
            "b | nothing",
            "name(P)",
            "concat(P, '-')",
        ];
        let doc = xml::Document::parse(DOCUMENT.as_bytes().to_vec(), &xml::ParseOptions::default()).unwrap();
        let mut ran = 0;
        for start in starts {
            for first in steps {
                for second in ["", "/a", "/@k", "/..", "/*[1]", "/text()", "//b", "/following-sibling::*"] {
                    let path = format!("{start}{first}{second}");
                    for wrap in wraps {
                        let source = wrap.replace('P', &path);
                        let options = CompileOptions { library: &Currents, ..CompileOptions::default() };
                        let Ok(e) = Expression::compile(&source, &options) else { continue };
                        for index in (0..doc.node_count()).step_by(3) {
                            let node = Node::new(xml::NodeId::from_index(index).unwrap());
                            let host = At(node);
                            let cx = Context::at(&doc, node).with_host(&host);
                            let direct = e.evaluate(&cx).map_err(|e| e.message);
                            OFF.set(true);
                            let general = e.evaluate(&cx).map_err(|e| e.message);
                            OFF.set(false);
                            assert!(
                                direct == general || format!("{direct:?}") == format!("{general:?}"),
                                "{source} at {index}: {direct:?} {general:?}"
                            );
                            ran += 1;
                        }
                    }
                }
            }
        }
        assert!(ran > 50_000, "{ran}");
    }

    struct Currents;
    impl crate::FunctionLibrary for Currents {
        fn function(&self, _: &str, _: Option<&str>, local: &str, _: usize) -> crate::Function {
            if local == "current" { crate::Function::Current } else { crate::Function::Core }
        }
    }

    struct At(Node);
    impl crate::Host for At {
        fn current(&self) -> Option<Node> {
            Some(self.0)
        }
    }
}
