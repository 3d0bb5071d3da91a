//! Template bodies: instructions (XSLT 1.0 sections 7 to 13) and literal result elements.

use super::{Compiler, XSLT, is_qname, is_space};
use crate::expr::{namespace_of, scope_of};
use crate::functions::EXSLT_FUNCTIONS;
use crate::model::Place;
use crate::model::{
    Argument, Avt, Binding, Body, FixedName, Instruction, Leaf, Level, Literal, LiteralAttribute, Number, Op,
    Scope, Sort,
};
use crate::names::Name;
use xml::{NodeId, NodeKind};

/// The instructions of XSLT 1.0.
const INSTRUCTIONS: [&str; 18] = [
    "apply-imports",
    "apply-templates",
    "attribute",
    "call-template",
    "choose",
    "comment",
    "copy",
    "copy-of",
    "element",
    "fallback",
    "for-each",
    "if",
    "message",
    "number",
    "processing-instruction",
    "text",
    "value-of",
    "variable",
];

/// Other elements of XSLT 1.0, which may not stand in a template body.
const OTHERS: [&str; 16] = [
    "attribute-set",
    "decimal-format",
    "import",
    "include",
    "key",
    "namespace-alias",
    "otherwise",
    "output",
    "preserve-space",
    "sort",
    "strip-space",
    "stylesheet",
    "template",
    "transform",
    "when",
    "with-param",
];

/// Whether XSLT 1.0 has an instruction of that name (but no top-level element).
pub(crate) fn is_instruction(local: &str) -> bool {
    local != "variable" && INSTRUCTIONS.contains(&local)
        || matches!(local, "sort" | "when" | "otherwise" | "with-param")
}

/// Whether it is a top-level element, or belongs into a certain parent.
pub(crate) fn is_declaration(local: &str) -> bool {
    OTHERS.contains(&local)
        || matches!(
            local,
            "character-map"
                | "function"
                | "import-schema"
                | "matching-substring"
                | "non-matching-substring"
                | "output-character"
                | "param"
        )
}

/// The same for XSLT 2.0.
pub(crate) fn is_available_in_2(local: &str) -> bool {
    is_available(local)
        || super::version2::INSTRUCTIONS.contains(&local)
        || super::version3::INSTRUCTIONS.contains(&local)
}

/// Whether it is an element of XSLT 3.0.
pub(crate) fn is_of_version3(local: &str) -> bool {
    matches!(
        local,
        "accept"
            | "accumulator"
            | "accumulator-rule"
            | "array"
            | "array-member"
            | "assert"
            | "break"
            | "catch"
            | "context-item"
            | "evaluate"
            | "expose"
            | "fork"
            | "global-context-item"
            | "iterate"
            | "map"
            | "map-entry"
            | "merge"
            | "merge-action"
            | "merge-key"
            | "merge-source"
            | "mode"
            | "next-iteration"
            | "on-completion"
            | "on-empty"
            | "on-non-empty"
            | "override"
            | "package"
            | "source-document"
            | "stream"
            | "try"
            | "use-package"
            | "where-populated"
    )
}

/// For `element-available()`.
pub(crate) fn is_available(local: &str) -> bool {
    INSTRUCTIONS.contains(&local)
}

/// Text between two elements: comments and processing instructions do not separate it, and it is stripped as a whole.
#[derive(Default)]
struct TextRun {
    text: String,
    first: Option<NodeId>,
}

impl TextRun {
    fn add(&mut self, node: NodeId, text: &str) {
        self.first.get_or_insert(node);
        self.text.push_str(text);
    }
}

impl Compiler<'_> {
    fn end_run(&mut self, parent: NodeId, run: &mut TextRun, body: &mut Vec<Instruction>) {
        let Some(first) = run.first.take() else { return };
        if (!is_space(&run.text) || self.keeps_space(parent)) && self.expands_text(parent) {
            let (text, place) = (std::mem::take(&mut run.text), self.place(first));
            self.text_template(parent, &text, place, body);
            return;
        }
        if !is_space(&run.text) || self.keeps_space(parent) {
            body.push(Instruction { op: Op::text(&run.text, false), place: self.place(first) });
        }
        run.text.clear();
    }

    /// Text with expressions in braces.
    fn text_template(&mut self, node: NodeId, text: &str, place: Place, body: &mut Vec<Instruction>) {
        let op = match self.avt(node, text) {
            Avt::Fixed(text) => Op::text(&text, false),
            template => Op::Version2(Box::new(crate::version2::Version2::TextTemplate(template))),
        };
        body.push(Instruction { op, place });
    }

    /// The content of `node` as instructions; the scope of its variables ends with it.
    pub(super) fn body(&mut self, node: NodeId) -> Body {
        self.body_except(node, &[])
    }

    /// The same without the XSLT child elements named in `skip` (which are compiled separately).
    pub(super) fn body_except(&mut self, node: NodeId, skip: &[&str]) -> Body {
        let module = self.module.clone();
        let doc = &module.doc;
        let visible = self.locals.len();
        let mut body = Vec::new();
        let mut run = TextRun::default();
        let conditions = self.has_conditions(node);
        let mut pieces: Vec<(Vec<Instruction>, bool)> = Vec::new();
        let children: Vec<NodeId> = doc.children(node).collect();
        for child in children {
            match doc.kind(child) {
                NodeKind::Text => run.add(child, doc.text(child)),
                NodeKind::Element
                    if conditions
                        && doc.namespace(child) == XSLT
                        && matches!(doc.local(child), "on-empty" | "on-non-empty") =>
                {
                    self.end_run(node, &mut run, &mut body);
                    pieces.push((std::mem::take(&mut body), false));
                    self.element(child, &mut body);
                    pieces.push((std::mem::take(&mut body), true));
                }
                NodeKind::Element => {
                    if self.plan.version2 && is_space(&run.text) && self.is_before_blank(child) {
                        run = TextRun::default();
                    }
                    self.end_run(node, &mut run, &mut body);
                    if doc.namespace(child) == XSLT && skip.contains(&doc.local(child)) {
                        continue;
                    }
                    self.element(child, &mut body);
                }
                _ => {}
            }
        }
        self.end_run(node, &mut run, &mut body);
        self.locals.truncate(visible);
        if conditions {
            pieces.push((body, false));
            return self.conditional(node, pieces);
        }
        body.into()
    }

    /// Whether white space before an element is not significant, whatever `xml:space` is (XSLT 2.0 section 4.2, 3.0 section 4.4.1).
    fn is_before_blank(&self, node: NodeId) -> bool {
        let doc = &self.module.doc;
        doc.namespace(node) == XSLT
            && match doc.local(node) {
                "sort" | "param" => true,
                "context-item" | "on-completion" => self.plan.version3,
                _ => false,
            }
    }

    /// `node` itself as a body: a simplified stylesheet.
    pub(super) fn single(&mut self, node: NodeId) -> Body {
        let mut body = Vec::new();
        self.element(node, &mut body);
        body.into()
    }

    /// Leading `xsl:param`s, then the rest.
    pub(super) fn parameterised(&mut self, node: NodeId) -> (Box<[(Name, usize)]>, Body) {
        let module = self.module.clone();
        let doc = &module.doc;
        let mut parameters = Vec::new();
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
                        self.error(child, "xsl:param must come first".into());
                    }
                    self.attributes(child, &["name", "select"], &["name"]);
                    let Some(name) = self.symbol_attribute(child, "name") else { continue };
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
    fn no_fragment(&mut self, node: NodeId) {
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

    /// Whether white space directly in `node` is significant.
    pub(super) fn keeps_space(&self, node: NodeId) -> bool {
        let doc = &self.module.doc;
        if doc.is_element(node, XSLT, "text") {
            return true;
        }
        let mut at = Some(node);
        while let Some(element) = at {
            match doc.attribute(element, xml::XML_NS, "space") {
                Some("preserve") => return true,
                Some("default") => return false,
                _ => {}
            }
            at = doc.parent(element);
        }
        false
    }

    fn element(&mut self, node: NodeId, body: &mut Vec<Instruction>) {
        self.nested(node, |compiler| compiler.element_here(node, body));
    }

    fn element_here(&mut self, node: NodeId, body: &mut Vec<Instruction>) {
        let module = self.module.clone();
        let doc = &module.doc;
        let place = self.place(node);
        let op = match doc.namespace(node) {
            XSLT => {
                let outer = (self.forwards, self.version2);
                if self.plan.version2 && super::version2::own_version(doc, node).is_some() {
                    self.at_version_of(node);
                }
                let op = self.instruction(node);
                (self.forwards, self.version2) = outer;
                op
            }
            EXSLT_FUNCTIONS if doc.local(node) == "result" && self.in_function => {
                Some(Op::Result { value: self.binding(node) })
            }
            namespace => {
                let outer = (self.forwards, self.version2);
                if doc.attribute(node, XSLT, "version").is_some() {
                    self.at_version_of(node);
                }
                let op = if !namespace.is_empty()
                    && self.excluded(node, true).iter().any(|uri| uri == namespace)
                {
                    Some(self.extension(node))
                } else {
                    self.literal(node, body);
                    None
                };
                (self.forwards, self.version2) = outer;
                op
            }
        };
        body.extend(op.map(|op| Instruction { op, place }));
    }

    /// An extension element: `exsl:document` and Xalan's `redirect:write` are `xsl:result-document`.
    fn extension(&mut self, node: NodeId) -> Op {
        let doc = &self.module.doc;
        let is_redirect = matches!(
            doc.namespace(node),
            "http://xml.apache.org/xalan/redirect"
                | "org.apache.xalan.lib.Redirect"
                | "xalan://org.apache.xalan.lib.Redirect"
                | "org.apache.xalan.xslt.extensions.Redirect"
        );
        let result = match (doc.namespace(node), doc.local(node)) {
            (crate::functions::EXSLT_COMMON, "document") => {
                let href = self.avt_attribute(node, "href");
                if href.is_none() {
                    self.error(node, "exsl:document needs an attribute \"href\"".into());
                }
                self.result_of_extension(node, href)
            }
            (_, "write") if is_redirect => {
                let href = match self.expression_attribute(node, "select") {
                    Some(select) => Some(Avt::Parts([crate::model::AvtPart::Expr(select)].into())),
                    None => self.attribute(node, "file").map(|file| Avt::Fixed(file.into())),
                };
                if href.is_none() {
                    self.error(node, "redirect:write needs an attribute \"select\" or \"file\"".into());
                }
                self.result_of_extension(node, href)
            }
            _ => return self.unknown(node),
        };
        Op::Version2(Box::new(crate::version2::Version2::ResultDocument(Box::new(result))))
    }

    fn unknown(&mut self, node: NodeId) -> Op {
        let module = self.module.clone();
        let doc = &module.doc;
        let mut fallback: Option<Vec<Instruction>> = None;
        let children: Vec<NodeId> = doc.children(node).collect();
        for child in children {
            if doc.is_element(child, XSLT, "fallback") {
                let body = self.body(child);
                fallback.get_or_insert_default().extend(body);
            }
        }
        let message = format!("the instruction {} is not known", doc.qname(node));
        Op::Unknown { message: message.into(), fallback: fallback.map(Into::into) }
    }

    fn instruction(&mut self, node: NodeId) -> Option<Op> {
        let module = self.module.clone();
        let doc = &module.doc;
        if self.plan.version3
            && self.version2
            && let Some(op) = self.version3_instruction(node)
        {
            return op;
        }
        let new = super::version2::INSTRUCTIONS.contains(&doc.local(node))
            // In a 2.0 stylesheet, version 1.0 of an element changes only the meaning of what 1.0 has.
            || doc.local(node) == "value-of"
                && (doc.attribute(node, "", "select").is_none()
                    || doc.attribute(node, "", "separator").is_some());
        if (self.version2 || self.plan.version2 && new)
            && let Some(op) = self.version2_instruction(node)
        {
            return op;
        }
        let op = match doc.local(node) {
            "text" => {
                self.attributes(node, &["disable-output-escaping"], &[]);
                let raw = self.yes_no(node, "disable-output-escaping").unwrap_or(false);
                let mut text = String::new();
                for child in doc.children(node) {
                    match doc.kind(child) {
                        NodeKind::Text => text.push_str(doc.text(child)),
                        NodeKind::Element if !self.forwards => {
                            self.error(child, "xsl:text can hold only text".into());
                        }
                        _ => {}
                    }
                }
                if text.is_empty() && !self.plan.version2 {
                    return None;
                }
                if self.expands_text(node) && !raw {
                    let place = self.place(node);
                    let mut body = Vec::new();
                    self.text_template(node, &text, place, &mut body);
                    return Some(Op::Version2(Box::new(crate::version2::Version2::Sequential(body.into()))));
                }
                Op::text(&text, raw)
            }
            "value-of" => {
                self.attributes(node, &["select", "disable-output-escaping"], &["select"]);
                self.empty(node);
                let raw = self.yes_no(node, "disable-output-escaping").unwrap_or(false);
                Op::ValueOf { select: self.expression_attribute(node, "select")?, raw }
            }
            "copy-of" => {
                self.attributes(node, &["select"], &["select"]);
                self.empty(node);
                Op::CopyOf { select: self.expression_attribute(node, "select")? }
            }
            "apply-templates" => {
                self.attributes(node, &["select", "mode"], &[]);
                self.only(node, &["sort", "with-param"]);
                self.no_fragment(node);
                let select = self.expression_attribute(node, "select");
                let mode = match self.attribute(node, "mode") {
                    _ if self.version2 => self.applied_mode(node),
                    Some(mode) => self.mode(node, &mode),
                    None => 0,
                };
                Op::ApplyTemplates { select, mode, sorts: self.sorts(node), arguments: self.arguments(node) }
            }
            "apply-imports" => {
                self.attributes(node, &[], &[]);
                self.only(node, if self.forwards || self.plan.version2 { &["with-param"] } else { &[] });
                Op::ApplyImports { arguments: self.arguments(node) }
            }
            "call-template" => {
                self.attributes(node, &["name"], &["name"]);
                self.only(node, &["with-param"]);
                let name = self.symbol_attribute(node, "name")?;
                let arguments = self.arguments(node);
                if let (true, Some(template)) = (self.version2, self.named.get(&name)) {
                    self.calls.push(super::version2::Call::new(*template, &arguments, self.place(node)));
                }
                match self.named.get(&name) {
                    Some(template) => Op::CallTemplate { template: *template, arguments, tail: false },
                    None => {
                        let message = format!("there is no template \"{}\"", self.symbols.show(name));
                        if !self.forwards {
                            self.error(node, message.clone());
                        }
                        Op::Unknown { message: message.into(), fallback: None }
                    }
                }
            }
            "for-each" => {
                self.attributes(node, &["select"], &["select"]);
                self.no_fragment(node);
                let select = self.expression_attribute(node, "select")?;
                let sorts = self.sorts(node);
                self.sorts_first(node);
                Op::ForEach { select, sorts, body: self.body_except(node, &["sort"]) }
            }
            "if" => {
                self.attributes(node, &["test"], &["test"]);
                Op::If { test: self.expression_attribute(node, "test")?, body: self.body(node) }
            }
            "choose" => self.choose(node),
            "element" => {
                self.attributes(node, &["name", "namespace", "use-attribute-sets"], &["name"]);
                let name = self.avt_attribute(node, "name")?;
                let namespace = self.avt_attribute(node, "namespace");
                self.check_fixed_name(node, &name, namespace.is_some());
                let scope = self.scope(node);
                let sets = self.uses(node, "");
                let fixed = fixed_name(&name, namespace.as_ref(), &scope, false);
                Op::Element { fixed, name, namespace, scope, sets, body: self.body(node) }
            }
            "attribute" => {
                self.attributes(node, &["name", "namespace"], &["name"]);
                let name = self.avt_attribute(node, "name")?;
                let namespace = self.avt_attribute(node, "namespace");
                self.check_fixed_name(node, &name, namespace.is_some());
                let scope = self.scope(node);
                let fixed = fixed_name(&name, namespace.as_ref(), &scope, true);
                Op::Attribute { fixed, name, namespace, scope, body: self.body(node) }
            }
            "comment" => {
                self.attributes(node, &[], &[]);
                Op::Comment { body: self.body(node) }
            }
            "processing-instruction" => {
                self.attributes(node, &["name"], &["name"]);
                let name = self.avt_attribute(node, "name")?;
                if let Avt::Fixed(name) = &name
                    && (!xml::is_ncname(name) || name.eq_ignore_ascii_case("xml"))
                    && !self.forwards
                {
                    self.error(node, format!("\"{name}\" cannot be the name of a processing instruction"));
                }
                Op::Pi { name, body: self.body(node) }
            }
            "copy" => {
                self.attributes(node, &["use-attribute-sets"], &[]);
                Op::Copy { sets: self.uses(node, ""), body: self.body(node) }
            }
            "number" => self.number(node),
            "variable" => {
                self.attributes(node, &["name", "select"], &["name"]);
                let name = self.symbol_attribute(node, "name")?;
                let value = self.binding(node);
                let slot = self.declare_local(node, name);
                if matches!(value, Binding::Body(_) | Binding::Text(_)) {
                    self.fragments.push(slot);
                }
                Op::Variable { slot, value }
            }
            "param" => {
                self.error(node, "xsl:param is not allowed here: it must come first in a template".into());
                return None;
            }
            "message" => {
                self.attributes(node, &["terminate"], &[]);
                let terminate = self.yes_no(node, "terminate").unwrap_or(false);
                Op::Message { body: self.body(node), terminate }
            }
            "fallback" => return None,
            local => {
                let fallback = doc.children(node).any(|n| doc.is_element(n, XSLT, "fallback"));
                if is_of_version3(local) && (!self.forwards || self.plan.version3) {
                    // Its xsl:fallback runs in place of it.
                    if !fallback {
                        self.error(node, format!("XTSE0010: xsl:{local} of XSLT 3.0 is not supported"));
                    }
                } else if !self.forwards || OTHERS.contains(&local) {
                    self.error(node, format!("xsl:{local} is not allowed here"));
                }
                self.unknown(node)
            }
        };
        Some(op)
    }

    /// Checks that all children are among these XSLT elements.
    pub(super) fn only(&mut self, node: NodeId, allowed: &[&str]) {
        let module = self.module.clone();
        let doc = &module.doc;
        for child in doc.children(node) {
            let fine = match doc.kind(child) {
                NodeKind::Element => {
                    doc.namespace(child) == XSLT
                        && (allowed.contains(&doc.local(child)) || doc.local(child) == "fallback")
                }
                NodeKind::Text => is_space(doc.text(child)),
                _ => true,
            };
            if !fine && !self.forwards {
                self.error(child, format!("this is not allowed in {}", doc.qname(node)));
            }
        }
    }

    pub(super) fn sorts_first(&mut self, node: NodeId) {
        let module = self.module.clone();
        let doc = &module.doc;
        let (mut leading, mut misplaced) = (true, false);
        for child in doc.children(node) {
            match doc.kind(child) {
                NodeKind::Element if doc.is_element(child, XSLT, "sort") => {
                    misplaced |= !leading;
                }
                NodeKind::Element => leading = false,
                NodeKind::Text if !is_space(doc.text(child)) => leading = false,
                _ => {}
            }
        }
        if misplaced && !self.forwards {
            self.error(node, "xsl:sort must come first".into());
        }
    }

    pub(super) fn sorts(&mut self, node: NodeId) -> Box<[Sort]> {
        let module = self.module.clone();
        let doc = &module.doc;
        let children: Vec<NodeId> = doc.children(node).filter(|n| doc.is_element(*n, XSLT, "sort")).collect();
        let mut sorts = Vec::new();
        for child in children {
            self.attributes(child, &["select", "lang", "data-type", "order", "case-order"], &[]);
            let collation = if self.version2 { self.collation(child, "XTDE1035") } else { None };
            // (It may be a template, of which nothing is known here.)
            let stable = doc.attribute(child, "", "stable").filter(|value| !value.contains('{'));
            if self.version2 && stable.is_some() {
                self.yes_no(child, "stable");
            }
            if self.version2 && doc.attribute(child, "", "stable").is_some() && !sorts.is_empty() {
                self.error(child, "XTSE1017: stable belongs to the first xsl:sort".into());
            }
            if !self.version2 {
                self.empty(child);
            }
            let select = self.expression_attribute(child, "select");
            let content = if self.version2 { self.body(child) } else { Body::default() };
            if select.is_some() && !content.is_empty() {
                self.error(child, "XTSE1015: xsl:sort has both a select attribute and content".into());
            }
            for (name, values) in
                [("order", ["ascending", "descending"]), ("case-order", ["upper-first", "lower-first"])]
            {
                if let Some(value) = doc.attribute(child, "", name)
                    && !value.contains('{')
                    && !values.contains(&value)
                    && !self.forwards
                {
                    self.error(child, format!("{name}=\"{value}\" must be {} or {}", values[0], values[1]));
                }
            }
            if let Some(value) = doc.attribute(child, "", "data-type")
                && !value.contains(['{', ':'])
                && !matches!(value, "text" | "number")
                && !self.forwards
            {
                self.error(child, format!("data-type=\"{value}\" must be text or number"));
            }
            // The order of strings does not depend on the language; the attribute must still be well-formed.
            self.avt_attribute(child, "lang");
            let sort = Sort {
                select,
                body: content,
                order: self.avt_attribute(child, "order"),
                data_type: self.avt_attribute(child, "data-type"),
                case_order: self.avt_attribute(child, "case-order"),
                typed: self.version2,
                words: doc.attribute(child, "", "lang").is_some()
                    || doc.attribute(child, "", "case-order").is_some(),
                collation,
                plain: None,
                place: self.place(child),
            };
            sorts.push(sort.prepare());
        }
        sorts.into()
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
                self.error(child, format!("the parameter \"{shown}\" is passed twice"));
            }
            let value = self.binding(child);
            let tunnel = self.version2 && self.yes_no(child, "tunnel").unwrap_or(false);
            arguments.push(Argument { name, value, tunnel, place: self.place(child) });
        }
        arguments.into()
    }

    fn choose(&mut self, node: NodeId) -> Op {
        self.attributes(node, &[], &[]);
        let module = self.module.clone();
        let doc = &module.doc;
        let mut when = Vec::new();
        let mut otherwise = None;
        let children: Vec<NodeId> = doc.children(node).collect();
        for child in children {
            match doc.kind(child) {
                NodeKind::Element if doc.is_element(child, XSLT, "when") => {
                    if otherwise.is_some() && !self.forwards {
                        self.error(child, "xsl:when must come before xsl:otherwise".into());
                    }
                    self.attributes(child, &["test"], &["test"]);
                    if let Some(test) = self.expression_attribute(child, "test") {
                        let body = self.body(child);
                        when.push((test, body));
                    }
                }
                NodeKind::Element if doc.is_element(child, XSLT, "otherwise") => {
                    self.attributes(child, &[], &[]);
                    if otherwise.is_some() && !self.forwards {
                        self.error(child, "xsl:choose has two xsl:otherwise".into());
                    }
                    otherwise = Some(self.body(child));
                }
                NodeKind::Element if !self.forwards => {
                    self.error(child, "only xsl:when and xsl:otherwise are allowed in xsl:choose".into());
                }
                NodeKind::Text if !is_space(doc.text(child)) && !self.forwards => {
                    self.error(child, "text is not allowed in xsl:choose".into());
                }
                _ => {}
            }
        }
        if when.is_empty() && !self.forwards {
            self.error(node, "xsl:choose needs an xsl:when".into());
        }
        Op::Choose { when: when.into(), otherwise: otherwise.unwrap_or_default() }
    }

    fn number(&mut self, node: NodeId) -> Op {
        self.attributes(
            node,
            &[
                "level",
                "count",
                "from",
                "value",
                "format",
                "lang",
                "letter-value",
                "grouping-separator",
                "grouping-size",
            ],
            &[],
        );
        self.empty(node);
        let level = match self.attribute(node, "level").as_deref() {
            None | Some("single") => Level::Single,
            Some("multiple") => Level::Multiple,
            Some("any") => Level::Any,
            Some(other) => {
                if !self.forwards {
                    self.error(node, format!("level=\"{other}\" must be single, multiple or any"));
                }
                Level::Single
            }
        };
        if self.version2 && self.attribute(node, "value").is_some() {
            let more = ["select", "level", "count", "from"]
                .into_iter()
                .find(|name| self.attribute(node, name).is_some());
            if let Some(more) = more {
                self.error(node, format!("XTSE0975: xsl:number has both value and {more}"));
            }
        }
        let select = if self.version2 { self.expression_attribute(node, "select") } else { None };
        let ordinal = if self.version2 { self.avt_attribute(node, "ordinal") } else { None };
        let start_at = if self.plan.version3 { self.avt_attribute(node, "start-at") } else { None };
        Op::Number(Box::new(Number {
            value: self.expression_attribute(node, "value"),
            select,
            version2: self.version2,
            start_at,
            ordinal,
            level,
            count: self.pattern_attribute(node, "count", false),
            from: self.pattern_attribute(node, "from", false),
            format: self.avt_attribute(node, "format").unwrap_or(Avt::Fixed("1".into())),
            lang: self.avt_attribute(node, "lang"),
            letter_value: self.avt_attribute(node, "letter-value"),
            grouping_separator: self.avt_attribute(node, "grouping-separator"),
            grouping_size: self.avt_attribute(node, "grouping-size"),
        }))
    }

    pub(super) fn scope(&self, node: NodeId) -> Scope {
        scope_of(&self.module.doc, node).into_iter().map(|(p, u)| (p.into(), u.into())).collect()
    }

    /// A name without braces is checked at once.
    pub(super) fn check_fixed_name(&mut self, node: NodeId, name: &Avt, has_namespace: bool) {
        let Avt::Fixed(name) = name else { return };
        if self.forwards {
            return;
        }
        if !super::scope::is_qname(name) {
            self.error(node, format!("\"{name}\" is not a qualified name"));
            return;
        }
        if let Some((prefix, _)) = name.split_once(':')
            && !has_namespace
            && prefix != "xmlns"
            && namespace_of(&self.module.doc, node, prefix).is_none()
        {
            self.error(node, format!("the prefix \"{prefix}\" is not declared"));
        }
    }

    fn literal(&mut self, node: NodeId, body: &mut Vec<Instruction>) {
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
        let content = self.body(node);
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

/// The name of an `xsl:element` or `xsl:attribute` without `namespace`, where it is fixed, valid and its prefix is declared; otherwise
/// the instruction reports the error at run time.
fn fixed_name(name: &Avt, namespace: Option<&Avt>, scope: &Scope, attribute: bool) -> Option<Box<FixedName>> {
    let (Avt::Fixed(name), None) = (name, namespace) else { return None };
    let name = name.trim();
    if !is_qname(name) || name == "xmlns" {
        return None;
    }
    let (prefix, local) = name.split_once(':').unwrap_or(("", name));
    let uri = match prefix {
        "" if attribute => "",
        "xmlns" => return None,
        "xml" => xml::XML_NS,
        _ => match scope.iter().find(|(declared, _)| **declared == *prefix) {
            Some((_, uri)) => uri,
            None if prefix.is_empty() => "",
            None => return None,
        },
    };
    let prefix = if uri.is_empty() { "" } else { prefix };
    Some(Box::new(FixedName { prefix: prefix.into(), namespace: uri.into(), local: local.into() }))
}
