//! Running instructions: the frequent ones in one loop, the rest in a function of its own that needs more stack.

use super::NO_RULE;
use super::dynamic::Dynamic;
use super::out::Out;
use super::stream::Action;
use super::templates::{Tail, mode_of};
use super::{Engine, Focus, Frame, Res};
use crate::expr::Expr;
use crate::model::Place;
use crate::model::{Instruction, Op};
use crate::output::Method;
use xml::{Document, NodeId, NodeKind, WriteOptions};
use xpath::Value;

impl Engine<'_> {
    pub(super) fn exec(
        &self,
        body: &[Instruction],
        focus: Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let place = || body.first().map_or_else(Place::default, |instruction| instruction.place);
        self.enter(focus, place, |focus| self.exec_here(body, &focus, frame, out))
    }

    /// Frequent instructions run here; the rest in [`Engine::step`], which needs more stack.
    pub(super) fn exec_here(
        &self,
        body: &[Instruction],
        focus: &Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        for instruction in body {
            match &instruction.op {
                Op::Text { text, escaped, raw } => out.fixed_text(text, escaped, *raw),
                Op::Literal(literal) => {
                    out.decide_at(&literal.namespace, &literal.local);
                    match out.fast() {
                        Some(fast) if literal.bindings.is_some() && !literal.more => {
                            fast.start_literal(literal);
                        }
                        _ => self.start_literal(literal, focus, frame, instruction.place, out)?,
                    }
                }
                Op::EndLiteral { close, plain } => match out.fast() {
                    Some(fast) if *plain => fast.end_literal(close),
                    _ => out.end_element(),
                },
                Op::Leaf(leaf) => {
                    let literal = &leaf.literal;
                    out.decide_at(&literal.namespace, &literal.local);
                    match out.fast() {
                        Some(fast) if literal.bindings.is_some() => {
                            let mark = fast.start_leaf(literal);
                            if !leaf.raw
                                && let Some(path) = self.name_path(&leaf.select, focus.node)
                                && let Some(text) =
                                    if leaf.select.is_many() { path.only_text() } else { path.text() }
                            {
                                let length = fast.leaf(literal, mark, text);
                                out.written += length;
                                continue;
                            }
                            self.value_of(&leaf.select, leaf.raw, focus, frame, instruction.place, out)?;
                            if let Some(fast) = out.fast() {
                                fast.end_leaf(literal, mark);
                            }
                        }
                        _ => {
                            self.start_literal(literal, focus, frame, instruction.place, out)?;
                            self.value_of(&leaf.select, leaf.raw, focus, frame, instruction.place, out)?;
                            out.end_element();
                        }
                    }
                }
                Op::ValueOf { select, raw } => {
                    self.value_of(select, *raw, focus, frame, instruction.place, out)?;
                }
                Op::ApplyTemplates { select: None, mode, sorts, arguments }
                    if sorts.is_empty() && arguments.is_empty() =>
                {
                    self.apply_children(*focus, mode_of(*mode, focus), &[], out)?;
                }
                Op::If { test, body } => {
                    if self.boolean(test, *focus, frame, instruction.place)? {
                        self.exec(body, *focus, frame, out)?;
                    }
                }
                Op::Choose { when, otherwise } => {
                    let mut chosen = otherwise;
                    for (test, body) in when {
                        if self.boolean(test, *focus, frame, instruction.place)? {
                            chosen = body;
                            break;
                        }
                    }
                    self.exec(chosen, *focus, frame, out)?;
                }
                _ => self.step(instruction, *focus, frame, out)?,
            }
        }
        Ok(())
    }

    #[inline(never)]
    pub(super) fn step(
        &self,
        instruction: &Instruction,
        focus: Focus,
        frame: &mut Frame,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let place = instruction.place;
        match &instruction.op {
            Op::Text { .. }
            | Op::Literal(_)
            | Op::EndLiteral { .. }
            | Op::Leaf(_)
            | Op::ValueOf { .. }
            | Op::If { .. }
            | Op::Choose { .. } => {
                return self.exec_here(std::slice::from_ref(instruction), &focus, frame, out);
            }
            Op::ApplyTemplates { select, mode, sorts, arguments } => {
                let mode = &mode_of(*mode, &focus);
                if arguments.iter().any(|argument| argument.tunnel) {
                    return self.with_arguments(arguments, focus, frame, |arguments, focus, frame| {
                        self.apply_selected(
                            select.as_ref(),
                            *mode,
                            sorts,
                            arguments,
                            focus,
                            frame,
                            place,
                            out,
                        )
                    });
                }
                let arguments = self.arguments(arguments, focus, frame)?;
                if let Some(select) = select
                    && self.is_open(focus.node)
                    && self.selects_step_by_step(place)
                {
                    let action = Action::Apply { mode: *mode, arguments: &arguments };
                    return self.consume(Some((select, place)), action, focus, frame, out);
                }
                self.apply_selected(select.as_ref(), *mode, sorts, &arguments, focus, frame, place, out)?;
            }
            Op::ApplyImports { arguments } => {
                if focus.rule == NO_RULE {
                    let message = "XTDE0560: xsl:apply-imports needs a current template rule";
                    return Err(self.fail(place, self.coded(message.into())));
                }
                let mode = focus.mode as usize;
                let rules = &self.plan.modes[mode];
                let current = &self.plan.templates[rules.rules[focus.rule as usize].template];
                let range = current.imports_from..current.precedence;
                self.with_arguments(arguments, focus, frame, |arguments, focus, _| {
                    match self.find_rule(rules, &focus, range)? {
                        Some(rule) => self.run_rule(rules.numbered(rule), mode, &focus, arguments, out),
                        None => self.built_in(focus, mode, arguments, out),
                    }
                })?;
            }
            Op::CallTemplate { template, arguments, tail: true } => {
                let template = *template;
                let mut tail = Box::new(Tail { template, frame: Frame::default() });
                self.fill_frame(&mut tail.frame, template, arguments, focus, frame)?;
                frame.tail = Some(tail);
            }
            Op::CallTemplate { template, arguments, .. } => {
                if arguments.iter().any(|argument| argument.tunnel) {
                    return self.with_arguments(arguments, focus, frame, |arguments, focus, _| {
                        self.run_template(*template, (focus.rule, focus.mode), &focus, arguments, out)
                    });
                }
                if self.plan.version3
                    && self.dynamic(focus.dynamic).is_some_and(|dynamic| dynamic.merged.is_some())
                {
                    // A template that is called is in no group of xsl:merge (XSLT 3.0 section 5.3.4).
                    let none = |dynamic: &mut Dynamic| {
                        (dynamic.merged, dynamic.merge_key) = (None, Value::Empty);
                    };
                    return self.with_dynamic(focus, none, |focus| {
                        self.call(*template, arguments, focus, frame, out)
                    });
                }
                self.call(*template, arguments, focus, frame, out)?;
            }
            Op::ForEach { select, body, .. }
                if self.is_open(focus.node) && self.selects_step_by_step(place) =>
            {
                return self.consume(Some((select, place)), Action::Loop(body), focus, frame, out);
            }
            Op::ForEach { select, sorts, body } => {
                let mark = if self.plan.version2 { self.mark() } else { 0 };
                let mut nodes = if self.plan.version2 {
                    self.items(select, focus, frame, place)?
                } else {
                    self.nodes(select, focus, frame, place)?
                };
                if !sorts.is_empty() {
                    self.sort(&mut nodes, sorts, focus, frame)?;
                }
                let mut inner = Focus { position: 0, size: nodes.len() as u32, rule: NO_RULE, ..focus };
                self.spend(nodes.len() as u64 >> 3)?;
                for node in nodes {
                    inner.node = node;
                    inner.position += 1;
                    self.tick(out)?;
                    self.exec(body, inner, frame, out)?;
                }
                if self.plan.version2 {
                    self.release(mark);
                }
            }
            Op::Element { fixed: Some(fixed), sets, body, .. } => {
                out.start_element(&fixed.prefix, &fixed.namespace, &fixed.local);
                self.attribute_sets(sets, focus, out)?;
                self.exec(body, focus, frame, out)?;
                out.end_element();
            }
            Op::Element { name, namespace, scope, sets, body, .. } => {
                self.element(name, namespace.as_ref(), scope, sets, body, focus, frame, place, out)?;
            }
            Op::Attribute { fixed: Some(fixed), body, .. } => {
                let value = self.text_of(body, focus, frame, out.inner(self.plan.version3))?;
                self.put_attribute(&fixed.prefix, &fixed.namespace, &fixed.local, &value, place, out)?;
            }
            Op::Attribute { name, namespace, scope, body, .. } => {
                self.attribute(name, namespace.as_ref(), scope, body, focus, frame, place, out)?;
            }
            Op::Comment { body } => {
                let text = self.text_of(body, focus, frame, out.inner(self.plan.version3))?;
                out.comment(&text);
            }
            Op::Pi { name, body } => {
                let name = self.avt(name, focus, frame, place)?;
                let text = self.text_of(body, focus, frame, out.inner(self.plan.version3))?;
                if !xml::is_ncname(&name) || name.eq_ignore_ascii_case("xml") {
                    return Err(self
                        .fail(place, format!("\"{name}\" cannot be the name of a processing instruction")));
                }
                out.pi(&name, text.trim_start());
            }
            Op::Copy { sets, body } => self.copy(sets, body, (true, true), focus, frame, place, out)?,
            Op::Version2(version2) => self.version2(version2, focus, frame, place, out)?,
            Op::CopyOf { select } => {
                let value = self.value(select, focus, frame, place)?;
                match &value {
                    Value::NodeSet(nodes) => {
                        for node in nodes.iter() {
                            self.copy_deep(node, out);
                        }
                    }
                    // In an element of version 1.0 in a 2.0 stylesheet.
                    value @ (Value::Sequence(_) | Value::Atomic(_)) => {
                        self.write_items(value, true, out, place)?
                    }
                    value => {
                        let text = self.string_of(value, focus, place)?;
                        out.text(&text, false);
                    }
                }
            }
            Op::Number(number) => {
                let text = self.number(number, focus, frame, place)?;
                out.text(&text, false);
            }
            Op::Variable { slot, value } => {
                let value = self.binding(value, focus, frame, place)?;
                frame.locals[*slot] = value;
            }
            Op::Param { slot, value } => {
                if frame.passed & (1 << slot) == 0 {
                    let value = self.binding(value, focus, frame, place)?;
                    frame.locals[*slot] = value;
                }
            }
            Op::Message { body, terminate } => {
                let text = self.message(body, focus, frame)?;
                if let Some(messages) = self.options.messages {
                    messages(&text);
                }
                if *terminate {
                    let shown = text.trim();
                    return Err(self.fail(place, format!("xsl:message ended the transformation: {shown}")));
                }
            }
            Op::Unknown { message, fallback } => match fallback {
                Some(body) => self.exec(body, focus, frame, out)?,
                None => return Err(self.fail(place, message.to_string())),
            },
            Op::Result { value } => {
                let value = self.binding(value, focus, frame, place)?;
                if let Some(result @ Value::Empty) = frame.locals.last_mut() {
                    *result = value;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn value_of(
        &self,
        select: &Expr,
        raw: bool,
        focus: &Focus,
        frame: &Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        if let Some(path) = self.name_path(select, focus.node) {
            if !select.is_many() {
                if let Some(node) = path.first() {
                    write_value(path.doc, node, raw, out);
                }
                return Ok(());
            }
            if let Some(text) = path.only_text() {
                out.text(text, raw);
                return Ok(());
            }
        }
        self.other_value_of(select, raw, focus, frame, place, out)
    }

    #[inline(never)]
    fn other_value_of(
        &self,
        select: &Expr,
        raw: bool,
        focus: &Focus,
        frame: &Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        if let Some(text) = self.quick_text(select, focus.node, frame) {
            out.text(&text, raw);
            return Ok(());
        }
        if select.is_many() {
            out.text(&self.items_text(select, *focus, frame, place)?, raw);
            return Ok(());
        }
        self.with(select, *focus, frame, place, |expression, cx| {
            out.text(&expression.evaluate_string(cx)?, raw);
            Ok(())
        })
    }

    pub(super) fn message(&self, body: &[Instruction], focus: Focus, frame: &mut Frame) -> Res<String> {
        let options = WriteOptions::default();
        let mut bytes = Vec::new();
        let mut out = Out::bytes(&mut bytes, Method::Fixed(&options));
        self.exec(body, focus, frame, &mut out)?;
        // (UTF-8 has all characters.)
        let _ = out.finish();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Writes the string value of a node without concatenation.
#[inline]
fn write_value(doc: &Document, node: NodeId, raw: bool, out: &mut Out<'_>) {
    if let Some(text) = doc.whole_text(node) {
        return out.text(text, raw);
    }
    for node in doc.descendants(node) {
        if doc.kind(node) == NodeKind::Text {
            out.text(doc.text(node), raw);
        }
    }
}
