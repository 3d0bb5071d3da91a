//! Template bodies: instructions (XSLT 1.0 sections 7 to 13).

use super::elements::{Extension, OTHERS};
use super::{Compiler, XSLT, is_qname, is_space};
use crate::expr::{namespace_of, scope_of};
use crate::functions::EXSLT_FUNCTIONS;
use crate::model::{Avt, Binding, Body, FixedName, Instruction, Op, Place, Scope};
use xml::{NodeId, NodeKind};

/// Text between two elements: comments and processing instructions do not separate it, and it is stripped as a whole.
#[derive(Default)]
pub(super) struct TextRun {
    pub(super) text: String,
    first: Option<NodeId>,
}

impl TextRun {
    pub(super) fn add(&mut self, node: NodeId, text: &str) {
        self.first.get_or_insert(node);
        self.text.push_str(text);
    }
}

impl Compiler<'_> {
    pub(super) fn end_run(&mut self, parent: NodeId, run: &mut TextRun, body: &mut Vec<Instruction>) {
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

    pub(super) fn element(&mut self, node: NodeId, body: &mut Vec<Instruction>) {
        self.nested(node, |compiler| compiler.element_here(node, body));
    }

    fn element_here(&mut self, node: NodeId, body: &mut Vec<Instruction>) {
        let module = self.module.clone();
        let doc = &module.doc;
        let place = self.place(node);
        let op = match doc.namespace(node) {
            XSLT => {
                let outer = (self.forwards, self.version2);
                if self.plan.version2 && super::versions::own_version(doc, node).is_some() {
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
        let result = match Extension::find(doc.namespace(node), doc.local(node)) {
            Some(Extension::Document) => {
                let href = self.avt_attribute(node, "href");
                if href.is_none() {
                    self.error(node, "exsl:document needs an attribute \"href\"".into());
                }
                self.result_of_extension(node, href)
            }
            Some(Extension::RedirectWrite) => {
                let href = match self.expression_attribute(node, "select") {
                    Some(select) => Some(Avt::Parts([crate::model::AvtPart::Expr(select)].into())),
                    None => self.attribute(node, "file").map(|file| Avt::Fixed(file.into())),
                };
                if href.is_none() {
                    self.error(node, "redirect:write needs an attribute \"select\" or \"file\"".into());
                }
                self.result_of_extension(node, href)
            }
            None => return self.unknown(node),
        };
        Op::Version2(Box::new(crate::version2::Version2::ResultDocument(Box::new(result))))
    }

    pub(super) fn unknown(&mut self, node: NodeId) -> Op {
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
        let code = if self.plan.version2 && doc.namespace(node) != XSLT { "XTDE1450: " } else { "" };
        let message = format!("{code}the instruction {} is not known", doc.qname(node));
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
                            self.error_as(child, "XTSE0010", "xsl:text can hold only text".into());
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
                    self.calls.push(super::functions::Call::new(*template, &arguments, self.place(node)));
                }
                match self.named.get(&name) {
                    Some(template) => Op::CallTemplate { template: *template, arguments, tail: false },
                    None => {
                        let code = if self.plan.version2 { "XTSE0650: " } else { "" };
                        let message = format!("{code}there is no template \"{}\"", self.symbols.show(name));
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
                let body = self.body(node);
                let inherits = !self.version2 || self.flag(node, "inherit-namespaces", true);
                let body = if inherits { body } else { isolated(body, self.place(node)) };
                Op::Element { fixed, name, namespace, scope, sets, body }
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
                self.error_as(
                    node,
                    "XTSE0010",
                    "xsl:param is not allowed here: it must come first in a template".into(),
                );
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
                if super::elements::is_of_version3(local) && (!self.forwards || self.plan.version3) {
                    // Its xsl:fallback runs in place of it.
                    if !fallback {
                        self.error(node, format!("XTSE0010: xsl:{local} of XSLT 3.0 is not supported"));
                    }
                } else if !self.forwards || OTHERS.contains(&local) {
                    self.error_as(node, "XTSE0010", format!("xsl:{local} is not allowed here"));
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
                self.error_as(child, "XTSE0010", format!("this is not allowed in {}", doc.qname(node)));
            }
        }
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
                        self.error_as(child, "XTSE0010", "xsl:when must come before xsl:otherwise".into());
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
                        self.error_as(child, "XTSE0010", "xsl:choose has two xsl:otherwise".into());
                    }
                    otherwise = Some(self.body(child));
                }
                NodeKind::Element if !self.forwards => {
                    self.error_as(
                        child,
                        "XTSE0010",
                        "only xsl:when and xsl:otherwise are allowed in xsl:choose".into(),
                    );
                }
                NodeKind::Text if !is_space(doc.text(child)) && !self.forwards => {
                    self.error_as(child, "XTSE0010", "text is not allowed in xsl:choose".into());
                }
                _ => {}
            }
        }
        if when.is_empty() && !self.forwards {
            self.error_as(node, "XTSE0010", "xsl:choose needs an xsl:when".into());
        }
        Op::Choose { when: when.into(), otherwise: otherwise.unwrap_or_default() }
    }

    pub(super) fn scope(&self, node: NodeId) -> Scope {
        scope_of(&self.module.doc, node).into_iter().map(|(p, u)| (p.into(), u.into())).collect()
    }

    /// A name without braces is checked at once.
    pub(super) fn check_fixed_name(&mut self, node: NodeId, name: &Avt, has_namespace: bool) {
        let Avt::Fixed(name) = name else { return };
        // From 2.0 on it is an error only where the instruction is evaluated, and can be caught.
        if self.forwards || self.plan.version2 {
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
}

/// The name of an `xsl:element` or `xsl:attribute` without `namespace`, where it is fixed, valid and its prefix is declared; otherwise
/// the instruction reports the error at run time.
/// The content of an element whose children do not inherit its namespaces.
pub(super) fn isolated(body: Body, place: Place) -> Body {
    let isolate = Op::Version2(Box::new(crate::version2::Version2::Isolate));
    [Instruction { op: isolate, place }].into_iter().chain(body).collect()
}

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
