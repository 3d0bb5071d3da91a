//! `xsl:function`, and the types of arguments of calls of templates.

use super::{Compiler, XSLT};
use crate::model::{Argument, Binding, Function, Instruction, Op, Place};
use crate::names::Name;
use crate::version2::Version2;
use std::collections::HashMap;
use xml::NodeId;
use xpath::SeqType;

/// Functions of the stylesheet by name and number of arguments.
pub(crate) type Version2Functions = HashMap<(Name, usize), u32>;

/// A call of a template by name.
pub(crate) struct Call {
    template: usize,
    /// The arguments that are not tunnel parameters.
    passed: Vec<(Name, Place)>,
    place: Place,
}

impl Call {
    pub fn new(template: usize, arguments: &[Argument], place: Place) -> Call {
        let passed = arguments.iter().filter(|a| !a.tunnel).map(|a| (a.name, a.place)).collect();
        Call { template, passed, place }
    }
}

impl Compiler<'_> {
    /// The number of arguments of an `xsl:function`.
    pub(super) fn function_arity(&self, node: NodeId) -> usize {
        let doc = &self.module.doc;
        doc.children(node).filter(|n| doc.is_element(*n, XSLT, "param")).count()
    }

    /// `xsl:function`.
    pub(super) fn version2_function(&mut self, node: NodeId) {
        self.attributes(node, &["name", "as", "override"], &["name"]);
        let mut keeps = self.plan.version3 && self.flag(node, "cache", false);
        if self.plan.version3 {
            let overrides = self.yes_no(node, "override");
            let both = self.yes_no(node, "override-extension-function");
            if overrides.is_some() && both.is_some() && overrides != both {
                let message = "XTSE0020: override and override-extension-function say different things";
                self.error(node, message.into());
            }
            let new = self.attribute(node, "new-each-time");
            let new = new.as_deref().map(str::trim);
            if new.is_some_and(|v| !matches!(v, "yes" | "no" | "maybe" | "true" | "false" | "1" | "0")) {
                self.error(node, "XTSE0020: new-each-time is yes, no or maybe".into());
            }
            // A result that is kept is not new; without new nodes it is the same each time.
            keeps = match new {
                Some("no" | "false" | "0") => true,
                Some("yes" | "true" | "1") => false,
                _ => keeps,
            };
        }
        let Some(name) = self.symbol_attribute(node, "name") else { return };
        let title = format!("the result of the function {}", self.symbols.show(name));
        let returns = self.declared(node, "XTTE0780", &title);
        let arity = self.function_arity(node);
        let (parameters, body) = self.parameterised(node);
        let place = self.place(node);
        let visibility = self.attribute(node, "visibility").unwrap_or_default();
        let public = matches!(visibility.trim(), "public" | "final");
        let slots = self.slots;
        let function =
            Function { name, parameters, slots, body, version2: true, keeps, public, returns, place };
        if let Some(slot) = self.version2_functions.get(&(name, arity)) {
            self.plan.functions.insert(*slot, function);
        }
    }

    /// Checks the arguments of `xsl:call-template` against the template's parameters (section 10.1.1).
    pub(super) fn check_calls(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            let Some(template) = self.plan.templates.get(call.template) else { continue };
            let taken = |name: &Name| template.parameters.iter().any(|(taken, _)| taken == name);
            let unknown = call.passed.iter().find(|(name, _)| !taken(name));
            let required = |slot: usize| {
                template.body.iter().any(
                    |i| matches!(&i.op, Op::Param { slot: param_slot, value: Binding::Required(_) } if *param_slot == slot),
                )
            };
            let missing = template.parameters.iter().find(|(name, slot)| {
                !call.passed.iter().any(|(passed, _)| passed == name) && required(*slot)
            });
            let title = &template.title;
            let found = match (unknown, missing) {
                (Some((name, place)), _) => {
                    let shown = self.symbols.show(*name);
                    Some((*place, format!("XTSE0680: the template {title} has no parameter ${shown}")))
                }
                (None, Some((name, _))) => {
                    let shown = self.symbols.show(*name);
                    let message = format!("XTSE0690: the template {title} needs the parameter ${shown}");
                    Some((call.place, message))
                }
                (None, None) => None,
            };
            if let Some((place, message)) = found {
                let uri = self.plan.modules.get(place.module as usize).cloned().unwrap_or_default();
                let (line, column) = (place.line, place.column);
                self.errors.push(crate::XsltError { message, uri, line, column, raised: None });
            }
        }
    }
}

/// Whether the result of a template always has its declared type: then it need not be collected first.
pub(super) fn surely_is(body: &[Instruction], ty: &SeqType) -> bool {
    if ty.is_anything() {
        return true;
    }
    let silent = |op: &Op| match op {
        Op::Param { .. } | Op::Variable { .. } => true,
        Op::Version2(version2) => {
            matches!(**version2, Version2::Convert { .. } | Version2::TunnelParam { .. })
        }
        _ => false,
    };
    let begin = body.iter().take_while(|instruction| silent(&instruction.op)).count();
    let rest = &body[begin..];
    let (name, inside) = match rest {
        [Instruction { op: Op::Leaf(leaf), .. }] => (&leaf.literal, &[][..]),
        [
            Instruction { op: Op::Literal(literal), .. },
            inside @ ..,
            Instruction { op: Op::EndLiteral { .. }, .. },
        ] => (&**literal, inside),
        _ => return false,
    };
    // One element, not several adjacent ones.
    let mut depth = 1;
    for instruction in inside {
        match instruction.op {
            Op::Literal(_) => depth += 1,
            Op::EndLiteral { .. } => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return false;
        }
    }
    ty.admits_element(&name.namespace, &name.local)
}
