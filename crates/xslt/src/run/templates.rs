//! Templates: which rule a node gets, `xsl:apply-templates`, `xsl:call-template`, and running the body of a template.

use super::NO_RULE;
use super::docs::Bound;
use super::out::Destination;
use super::out::Out;
use super::stream::Action;
use super::{Engine, Focus, Frame, Res};
use crate::expr::Expr;
use crate::model::Place;
use crate::model::{Argument, Declared, Template};
use crate::names::Name;
use crate::pattern::{Quick, Rules};
use smallvec::SmallVec;
use xml::{Document, NodeId, NodeKind};
use xpath::{DocId, Node, Value};

/// Most tail calls in a row.
pub(super) const MAX_TAILS: usize = 10_000_000;

/// Most parameters of a template.
pub(crate) const MAX_PARAMETERS: usize = 64;

/// Names and values of `xsl:with-param`.
type Arguments = SmallVec<[(Name, Value); 8]>;

/// A tail call of a template.
pub(super) struct Tail {
    pub(super) template: usize,
    pub(super) frame: Frame,
}

impl Engine<'_> {
    /// Applies the best template rule to the node of `focus`.
    pub(super) fn apply(
        &self,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let rules = &self.plan.modes[mode];
        match self.find_rule(rules, &focus, 0..u32::MAX)? {
            Some(rule) => self.run_rule(rules.numbered(rule), mode, &focus, arguments, out),
            None => self.built_in(focus, mode, arguments, out),
        }
    }

    pub(super) fn apply_children(
        &self,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        if focus.node.doc == DocId::ATOMIC {
            let message =
                "XTTE0510: xsl:apply-templates without a select attribute needs a node as context item";
            return Err(self.fail(Place::default(), message.into()));
        }
        if focus.node.is_namespace() {
            return Ok(());
        }
        if self.is_open(focus.node) {
            let action = Action::Apply { mode, arguments };
            return self.consume(None, action, focus, &mut Frame::default(), out);
        }
        self.enter(focus, Place::default, |focus| self.apply_children_here(focus, mode, arguments, out))
    }

    fn apply_children_here(
        &self,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let id = focus.node.doc;
        let doc = self.doc(id);
        let rules = &self.plan.modes[mode];
        let bound = self.docs.bound(id);
        let size = if self.plan.needs_size { doc.children(focus.node.id).count() as u32 } else { 0 };
        let mut focus = Focus { size, position: 0, ..focus };
        for child in doc.children(focus.node.id) {
            focus.position += 1;
            let kind = doc.kind(child);
            let rule = if rules.one_match { Quick::Ask } else { quick_rule(rules, bound, doc, child) };
            if rule == Quick::BuiltIn && kind == NodeKind::Text {
                out.text(doc.text(child), false);
                continue;
            }
            focus.node = Node::in_document(id, child);
            match rule {
                Quick::Template(template, rule) => {
                    self.run_rule((template as usize, rule), mode, &focus, arguments, out)?
                }
                Quick::Nothing => self.tick(out)?,
                // An element with only a text, for which there is no template either, or one that does nothing.
                Quick::BuiltIn
                    if self.opening.is_none()
                        && matches!(rules.of_text(), Quick::BuiltIn | Quick::Nothing)
                        && let Some(text) = doc.whole_text(child) =>
                {
                    self.tick(out)?;
                    if !text.is_empty() && rules.of_text() == Quick::BuiltIn {
                        out.text(text, false);
                    }
                }
                Quick::BuiltIn => {
                    let arguments = if self.plan.version2 { arguments } else { &[] };
                    self.apply_children(focus, mode, arguments, out)?;
                }
                Quick::Ask => self.apply(focus, mode, arguments, out)?,
            }
        }
        Ok(())
    }

    /// `select="@* | node()"`.
    pub(super) fn apply_all(
        &self,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let Some(doc) = self.holder(focus.node) else { return Ok(()) };
        let inside = doc.attributes(focus.node.id).chain(doc.children(focus.node.id));
        self.apply_each(inside, focus, mode, arguments, out)
    }

    /// `select="@*"`, then `select="node()"`: each has positions of its own (XSLT 3.0 sections 6.7.1 and 6.7.4).
    pub(super) fn apply_content(
        &self,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let Some(doc) = self.holder(focus.node) else { return Ok(()) };
        self.apply_each(doc.attributes(focus.node.id), focus, mode, arguments, out)?;
        self.apply_each(doc.children(focus.node.id), focus, mode, arguments, out)
    }

    /// The document of a node that can have content.
    fn holder(&self, node: Node) -> Option<&Document> {
        let doc = self.doc(node.doc);
        let holds =
            !node.is_namespace() && matches!(doc.kind(node.id), NodeKind::Element | NodeKind::Document);
        holds.then_some(doc)
    }

    /// Applies rules to nodes of the document of `focus`.
    fn apply_each(
        &self,
        nodes: impl Iterator<Item = NodeId> + Clone,
        focus: Focus,
        mode: usize,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let size = if self.plan.needs_size { nodes.clone().count() as u32 } else { 0 };
        let mut inner = Focus { position: 0, size, ..focus };
        for id in nodes {
            inner.node = Node::in_document(focus.node.doc, id);
            inner.position += 1;
            self.apply(inner, mode, arguments, out)?;
        }
        Ok(())
    }

    /// `xsl:apply-templates` with its arguments known.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn apply_selected(
        &self,
        select: Option<&Expr>,
        mode: usize,
        sorts: &[crate::model::Sort],
        arguments: &[(Name, Value)],
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let Some(select) = select else {
            if focus.node.doc == DocId::ATOMIC {
                let message =
                    "XTTE0510: xsl:apply-templates needs a node as context item, or a select attribute";
                return Err(self.fail(place, message.into()));
            }
            if sorts.is_empty() {
                return self.apply_children(focus, mode, arguments, out);
            }
            let doc = self.doc(focus.node.doc);
            let mut nodes: Vec<Node> = if focus.node.is_namespace() {
                Vec::new()
            } else {
                doc.children(focus.node.id).map(|n| Node::in_document(focus.node.doc, n)).collect()
            };
            self.sort(&mut nodes, sorts, focus, frame)?;
            return self.apply_nodes(&nodes, mode, arguments, focus, out);
        };
        if let Expr::XPath(xpath) = select
            && xpath.all
            && sorts.is_empty()
        {
            return self.apply_all(focus, mode, arguments, out);
        }
        if self.plan.version3 {
            // Items of any kind.
            let mark = self.mark();
            let mut items = self.items(select, focus, frame, place)?;
            if !sorts.is_empty() {
                self.sort(&mut items, sorts, focus, frame)?;
            }
            self.apply_nodes(&items, mode, arguments, focus, out)?;
            self.release(mark);
            return Ok(());
        }
        let mut nodes = self.nodes(select, focus, frame, place)?;
        if !sorts.is_empty() {
            self.sort(&mut nodes, sorts, focus, frame)?;
        }
        self.apply_nodes(&nodes, mode, arguments, focus, out)
    }

    pub(super) fn apply_nodes(
        &self,
        nodes: &[Node],
        mode: usize,
        arguments: &[(Name, Value)],
        focus: Focus,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let mut inner = Focus { position: 0, size: nodes.len() as u32, ..focus };
        let rules = &self.plan.modes[mode];
        for node in nodes {
            inner.node = *node;
            inner.position += 1;
            if !rules.one_match
                && !node.is_namespace()
                && let Some(doc) = self.docs.get(node.doc)
                && let Quick::Template(template, rule) =
                    quick_rule(rules, self.docs.bound(node.doc), doc, node.id)
            {
                self.run_rule((template as usize, rule), mode, &inner, arguments, out)?;
                continue;
            }
            self.apply(inner, mode, arguments, out)?;
        }
        Ok(())
    }

    /// Runs a template rule: template and number.
    pub(super) fn run_rule(
        &self,
        (template, rule): (usize, u32),
        mode: usize,
        focus: &Focus,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        if self.plan.templates[template].identity.is_some_and(|identity| identity.stays_in(mode))
            && !self.is_open(focus.node)
        {
            return self.identical((template, rule), mode, focus, false, out);
        }
        self.run_template(template, (rule, mode as u32), focus, arguments, out)
    }

    /// Runs a template; `rule`: the template rule and mode that are current in it.
    pub(super) fn run_template(
        &self,
        template: usize,
        rule: (u32, u32),
        focus: &Focus,
        arguments: &[(Name, Value)],
        out: &mut Out<'_>,
    ) -> Res<()> {
        let template = &self.plan.templates[template];
        self.tick(out)?;
        if template.body.is_empty() && template.returns.is_none() {
            return Ok(());
        }
        let mut frame = Frame::default();
        if template.slots > 0 {
            frame.reserve(template.slots);
            for (name, slot) in &template.parameters {
                if let Some((_, value)) = arguments.iter().find(|(argument, _)| argument == name) {
                    frame.locals[*slot] = value.clone();
                    frame.passed |= 1 << slot;
                }
            }
        }
        self.run_body(template, rule, focus, &mut frame, out)?;
        match frame.tail.take() {
            // Most templates have no variables: nothing must be dropped, and a search for it would cost as much as the call.
            None if frame.is_bare() => {
                std::mem::forget(frame);
                Ok(())
            }
            None => Ok(()),
            Some(tail) => self.run_tails(tail, rule, focus, out),
        }
    }

    #[inline]
    fn run_body(
        &self,
        template: &Template,
        rule: (u32, u32),
        focus: &Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        // The work of `exec` inline, so that a focus is copied once.
        let focus = Focus { rule: rule.0, mode: rule.1, depth: focus.depth + 1, ..*focus };
        if template.absent || template.returns.is_some() || focus.depth >= focus.next {
            return self.run_body_with_care(template, Focus { depth: focus.depth - 1, ..focus }, frame, out);
        }
        self.exec_here(&template.body, &focus, frame, out)
    }

    /// As [`Engine::run_body`], of a template whose result has a type, that has no focus, or at a depth where the stack is checked.
    #[cold]
    #[inline(never)]
    fn run_body_with_care(
        &self,
        template: &Template,
        mut focus: Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        if template.absent {
            focus = Focus { node: Node::ABSENT, position: 0, size: 0, rule: NO_RULE, ..focus };
        }
        if let Some(declared) = &template.returns {
            return self.typed_result(template, declared, focus, frame, out);
        }
        self.exec(&template.body, focus, frame, out)
    }

    /// Runs a template whose result has a declared type: the result is collected, then written.
    #[cold]
    fn typed_result(
        &self,
        template: &Template,
        declared: &Declared,
        focus: Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let destination = match out.destination() {
            Destination::Temporary => Destination::Temporary,
            // It may write results of its own.
            _ => Destination::Further,
        };
        let value = self.sequence_to(&template.body, focus, frame, template.place, destination)?;
        let value = self.converted(value, declared, declared.code, template.place)?;
        self.write_items(&value, false, out, template.place)?;
        Ok(())
    }

    /// `xsl:call-template`: the arguments are written to the slots of the template's parameters.
    pub(super) fn call(
        &self,
        template: usize,
        arguments: &[Argument],
        focus: Focus,
        caller: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        self.tick(out)?;
        let mut frame = Frame::default();
        self.fill_frame(&mut frame, template, arguments, focus, caller)?;
        let (template, rule) = (&self.plan.templates[template], (focus.rule, focus.mode));
        self.run_body(template, rule, &focus, &mut frame, out)?;
        match frame.tail.take() {
            None => Ok(()),
            Some(tail) => self.run_tails(tail, rule, &focus, out),
        }
    }

    /// Fills in the variables of a template that is called.
    #[inline]
    pub(super) fn fill_frame(
        &self,
        frame: &mut Frame,
        template: usize,
        arguments: &[Argument],
        focus: Focus,
        caller: &mut Frame,
    ) -> Res<()> {
        let template = &self.plan.templates[template];
        frame.reserve(template.slots);
        for argument in arguments {
            let value = self.binding(&argument.value, focus, caller, argument.place)?;
            if let Some((_, slot)) = template.parameters.iter().find(|(name, _)| *name == argument.name) {
                frame.locals[*slot] = value;
                frame.passed |= 1 << slot;
            }
        }
        Ok(())
    }

    pub(super) fn arguments(
        &self,
        arguments: &[Argument],
        focus: Focus,
        frame: &mut Frame,
    ) -> Res<Arguments> {
        if arguments.is_empty() {
            return Ok(Arguments::new());
        }
        arguments
            .iter()
            .map(|argument| Ok((argument.name, self.binding(&argument.value, focus, frame, argument.place)?)))
            .collect()
    }

    /// Runs the tail calls of a template, at the depth of the template.
    #[inline(never)]
    fn run_tails(&self, mut tail: Box<Tail>, rule: (u32, u32), focus: &Focus, out: &mut Out<'_>) -> Res<()> {
        for _ in 0..MAX_TAILS {
            self.tick(out)?;
            let Tail { template, frame } = &mut *tail;
            self.run_body(&self.plan.templates[*template], rule, focus, frame, out)?;
            match frame.tail.take() {
                None => return Ok(()),
                Some(next) => tail = next,
            }
        }
        let place = self.plan.templates[tail.template].place;
        Err(self.limit(
            place,
            format!(
                "XPDY0130: the template goes on with itself (limit {MAX_TAILS} times): an endless recursion?"
            ),
        ))
    }
}

/// The rule of a child, as far as kind and name determine it.
#[inline]
pub(super) fn quick_rule(rules: &Rules, bound: Option<&Bound>, doc: &Document, child: NodeId) -> Quick {
    match (doc.kind(child), bound) {
        (NodeKind::Text, _) => rules.of_text(),
        (NodeKind::Element, Some(bound)) => rules.of_element(bound.name_of(doc, child)),
        _ => Quick::Ask,
    }
}

/// The mode of an `xsl:apply-templates`.
pub(super) fn mode_of(mode: usize, focus: &Focus) -> usize {
    if mode == crate::version2::CURRENT_MODE { focus.mode as usize } else { mode }
}
