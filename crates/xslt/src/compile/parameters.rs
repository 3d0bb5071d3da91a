//! Parameters and local variables: their slots, and the arguments of calls.

use super::instructions::TextRun;
use super::{Compiler, XSLT, is_space};
use crate::model::{Argument, Body, Instruction, Op};
use crate::names::Name;
use xml::{NodeId, NodeKind};

impl Compiler<'_> {
    /// Leading `xsl:param`s, then the rest.
    pub(super) fn parameterised(&mut self, node: NodeId) -> (Box<[(Name, usize)]>, Body) {
        let module = self.module.clone();
        let doc = &module.doc;
        let mut parameters = Vec::new();
        let mut names = Vec::new();
        let mut body = Vec::new();
        let mut run = TextRun::default();
        let mut leading = true;
        // The number of instructions for parameters.
        let mut begin = 0;
        let children: Vec<NodeId> = doc.children(node).collect();
        for child in children {
            if leading {
                begin = body.len();
            }
            match doc.kind(child) {
                NodeKind::Text => run.add(child, doc.text(child)),
                NodeKind::Element if self.plan.version3 && doc.is_element(child, XSLT, "context-item") => {
                    leading &= is_space(&run.text);
                    if is_space(&run.text) {
                        run = TextRun::default();
                    }
                    self.end_run(node, &mut run, &mut body);
                    let misplaced = !leading
                        || !doc.is_element(node, XSLT, "template")
                        || self.children_named(node, "context-item").first() != Some(&child)
                        || self.children_named(node, "param").first().is_some_and(|p| *p < child);
                    if misplaced {
                        let message =
                            "XTSE0010: xsl:context-item is the first that an xsl:template holds, once";
                        self.error(child, message.into());
                    }
                    let instruction = self.context_item(child);
                    body.extend(instruction);
                }
                NodeKind::Element if doc.is_element(child, XSLT, "param") => {
                    leading &= is_space(&run.text);
                    if self.plan.version2 && is_space(&run.text) {
                        run = TextRun::default();
                    }
                    self.end_run(node, &mut run, &mut body);
                    if !leading && !self.forwards {
                        self.error_as(child, "XTSE0010", "xsl:param must come first".into());
                    }
                    self.attributes(child, &["name", "select"], &["name"]);
                    let Some(name) = self.symbol_attribute(child, "name") else { continue };
                    if doc.namespace(node) == XSLT && names.contains(&name) {
                        let shown = self.symbols.show(name);
                        let message = format!("there are two parameters ${shown}");
                        self.error_as(child, "XTSE0580", message);
                    }
                    names.push(name);
                    if self.version2 {
                        let slot = self.slots;
                        let (ops, argument) = self.version2_parameter(child, name);
                        if argument {
                            parameters.push((name, slot));
                        }
                        if slot >= crate::run::MAX_PARAMETERS {
                            let most = crate::run::MAX_PARAMETERS;
                            self.error(child, format!("more than {most} parameters"));
                        }
                        body.extend(ops);
                        continue;
                    }
                    let value = self.binding(child);
                    let slot = self.declare_local(child, name);
                    if slot >= crate::run::MAX_PARAMETERS {
                        self.error(child, format!("more than {} parameters", crate::run::MAX_PARAMETERS));
                    }
                    parameters.push((name, slot));
                    body.push(Instruction { op: Op::Param { slot, value }, place: self.place(child) });
                }
                NodeKind::Element => {
                    leading = false;
                    self.end_run(node, &mut run, &mut body);
                    self.element(child, &mut body);
                }
                _ => {}
            }
        }
        self.end_run(node, &mut run, &mut body);
        if self.has_conditions(node) {
            let is_condition = |instruction: &Instruction| match &instruction.op {
                Op::Version2(version2) => matches!(
                    &**version2,
                    crate::version2::Version2::Version3(version3)
                        if matches!(**version3, crate::version3::Version3::Conditional { .. })
                ),
                _ => false,
            };
            let mut pieces: Vec<(Vec<Instruction>, bool)> = Vec::new();
            for instruction in body.split_off(begin.min(body.len())) {
                let condition = is_condition(&instruction);
                match pieces.last_mut() {
                    Some((piece, false)) if !condition => piece.push(instruction),
                    _ => pieces.push((vec![instruction], condition)),
                }
            }
            body.extend(self.conditional(node, pieces));
        }
        (parameters.into(), body.into())
    }

    /// `select="$v"` where `$v` is a result tree fragment: it is not a node-set (section 11.1).
    pub(super) fn no_fragment(&mut self, node: NodeId) {
        if self.plan.version2 {
            return;
        }
        let Some(select) = self.attribute(node, "select") else { return };
        let Some(name) = select.trim().strip_prefix('$').filter(|name| super::is_qname(name)) else { return };
        let Some(name) = self.symbol(node, name) else { return };
        let fragment = match self.locals[self.depth..].iter().rev().find(|(local, _)| *local == name) {
            Some((_, slot)) => self.fragments.contains(slot),
            None => self.global_fragments.contains(&name),
        };
        if fragment && !self.forwards {
            self.error(
                node,
                format!("{select} is a result tree fragment, not a node-set: see exsl:node-set()"),
            );
        }
    }

    pub(super) fn declare_local(&mut self, node: NodeId, name: Name) -> usize {
        if self.locals[self.depth..].iter().any(|(n, _)| *n == name) && !self.forwards && !self.plan.version2
        {
            let shown = self.symbols.show(name);
            self.error(node, format!("the variable ${shown} hides another one of this template"));
        }
        let slot = self.slots;
        self.slots += 1;
        self.locals.push((name, slot));
        slot
    }

    pub(super) fn arguments(&mut self, node: NodeId) -> Box<[Argument]> {
        let module = self.module.clone();
        let doc = &module.doc;
        let children: Vec<NodeId> =
            doc.children(node).filter(|n| doc.is_element(*n, XSLT, "with-param")).collect();
        let mut arguments: Vec<Argument> = Vec::new();
        for child in children {
            self.attributes(child, &["name", "select"], &["name"]);
            let Some(name) = self.symbol_attribute(child, "name") else { continue };
            if arguments.iter().any(|a| a.name == name) && !self.forwards {
                let shown = self.symbols.show(name);
                self.error_as(child, "XTSE0670", format!("the parameter \"{shown}\" is passed twice"));
            }
            let value = self.binding(child);
            let tunnel = self.version2 && self.yes_no(child, "tunnel").unwrap_or(false);
            arguments.push(Argument { name, value, tunnel, place: self.place(child) });
        }
        arguments.into()
    }
}
