//! Helpers that read stylesheet elements: attributes and their checks, qualified names, namespaces to copy.

use super::{Compiler, XSLT, is_space};
use crate::expr::{namespace_of, scope_of};
use crate::model::{Avt, AvtPart};
use crate::names::Name;
use xml::{NodeId, NodeKind};

impl Compiler<'_> {
    /// Checks the attributes of an XSLT element.
    pub(super) fn attributes(&mut self, node: NodeId, allowed: &[&str], required: &[&str]) {
        let module = self.module.clone();
        let doc = &module.doc;
        for attribute in doc.attributes(node) {
            let (namespace, local) = (doc.namespace(attribute), doc.local(attribute));
            let wrong = match namespace {
                "" => {
                    let version2 = self.plan.version2
                        && super::version2::is_attribute(doc.local(node), local, self.plan.version3);
                    !allowed.contains(&local) && !version2
                }
                XSLT => true,
                _ => false,
            };
            if local == "default-collation" && namespace.is_empty() && self.version2 {
                self.check_default_collation(node, doc.text(attribute));
            }
            if wrong && !self.forwards {
                self.error_as(
                    attribute,
                    "XTSE0090",
                    format!("{} has no attribute \"{}\"", doc.qname(node), doc.qname(attribute)),
                );
            }
        }
        for name in required {
            if doc.attribute(node, "", name).is_none() {
                self.error_as(node, "XTSE0010", format!("{} needs an attribute \"{name}\"", doc.qname(node)));
            }
        }
    }

    /// Checks that an element is empty.
    pub(super) fn empty(&mut self, node: NodeId) {
        let module = self.module.clone();
        let doc = &module.doc;
        let filled = doc.children(node).find(|n| match doc.kind(*n) {
            NodeKind::Element => true,
            NodeKind::Text => !is_space(doc.text(*n)),
            _ => false,
        });
        if let Some(child) = filled
            && !self.forwards
        {
            self.error_as(child, "XTSE0260", format!("{} must be empty", doc.qname(node)));
        }
    }

    /// The text of attribute `name`.
    pub(super) fn attribute(&self, node: NodeId, name: &str) -> Option<String> {
        self.module.doc.attribute(node, "", name).map(str::to_owned)
    }

    /// `yes` or `no`.
    pub(super) fn yes_no(&mut self, node: NodeId, name: &str) -> Option<bool> {
        let value = self.attribute(node, name)?;
        match value.trim() {
            "yes" => Some(true),
            "no" => Some(false),
            "true" | "1" if self.version2 => Some(true),
            "false" | "0" if self.version2 => Some(false),
            _ => {
                if !self.forwards {
                    self.error_as(node, "XTSE0020", format!("{name}=\"{value}\" must be yes or no"));
                }
                None
            }
        }
    }

    /// The expanded name of a qualified name (without prefix: no namespace). Errors are reported.
    pub(super) fn expand(&mut self, node: NodeId, qname: &str) -> Option<(String, String)> {
        let qname = qname.trim();
        let module = self.module.clone();
        if self.plan.version3
            && let Some((uri, local)) = qname.strip_prefix("Q{").and_then(|rest| rest.split_once('}'))
            && !uri.contains('{')
            && xml::is_ncname(local)
        {
            let uri: Vec<&str> = uri.split_ascii_whitespace().collect();
            return Some((uri.join(" "), local.to_owned()));
        }
        if !is_qname(qname) {
            self.error_as(node, "XTSE0020", format!("\"{qname}\" is not a qualified name"));
            return None;
        }
        match qname.split_once(':') {
            None => Some((String::new(), qname.to_owned())),
            Some((prefix, local)) => match namespace_of(&module.doc, node, prefix) {
                Some(uri) => Some((uri.to_owned(), local.to_owned())),
                None => {
                    self.error_as(node, "XTSE0280", format!("the prefix \"{prefix}\" is not declared"));
                    None
                }
            },
        }
    }

    /// The name of a variable, template, mode, …
    pub(super) fn symbol(&mut self, node: NodeId, qname: &str) -> Option<Name> {
        let (namespace, local) = self.expand(node, qname)?;
        Some(self.symbols.intern(&namespace, &local))
    }

    /// The name in attribute `name`.
    pub(super) fn symbol_attribute(&mut self, node: NodeId, name: &str) -> Option<Name> {
        let value = self.attribute(node, name)?;
        let symbol = self.symbol(node, &value)?;
        if self.version2 && name == "name" && self.module.doc.local(node) != "call-template" {
            let (namespace, _) = self.symbols.get(symbol);
            let reserved = [
                XSLT,
                "http://www.w3.org/2005/xpath-functions",
                "http://www.w3.org/2001/XMLSchema",
                "http://www.w3.org/2001/XMLSchema-instance",
                xml::XML_NS,
            ];
            let initial = namespace == XSLT && value.ends_with(":initial-template");
            if reserved.contains(&namespace) && !initial {
                self.error(node, format!("XTSE0080: \"{value}\" is in a namespace that is reserved"));
            }
        }
        Some(symbol)
    }

    /// Whether an element is processed in forwards-compatible mode (section 2.5).
    pub(super) fn is_forwards(&self, node: NodeId) -> bool {
        let doc = &self.module.doc;
        let mut at = Some(node);
        while let Some(element) = at {
            if doc.kind(element) == NodeKind::Element {
                let version = if doc.namespace(element) == XSLT {
                    super::elements::is_outermost(doc.local(element))
                        .then(|| doc.attribute(element, "", "version"))
                        .flatten()
                } else {
                    doc.attribute(element, XSLT, "version")
                };
                if let Some(version) = version {
                    return version.trim().parse::<f64>().is_ok_and(|v| v != 1.0);
                }
            }
            at = doc.parent(element);
        }
        false
    }

    /// The namespaces named by `exclude-result-prefixes` and `extension-element-prefixes` around `node`;
    /// with `extensions` only the latter.
    pub(super) fn excluded(&mut self, node: NodeId, extensions: bool) -> Vec<String> {
        let module = self.module.clone();
        let doc = &module.doc;
        let mut excluded = Vec::new();
        let mut at = Some(node);
        while let Some(element) = at {
            if doc.kind(element) == NodeKind::Element {
                let ns = if doc.namespace(element) == XSLT { "" } else { XSLT };
                for name in ["extension-element-prefixes", "exclude-result-prefixes"] {
                    if extensions && name == "exclude-result-prefixes" {
                        continue;
                    }
                    let Some(list) = doc.attribute(element, ns, name) else { continue };
                    for prefix in list.split_ascii_whitespace() {
                        let declared = if prefix == "#default" { "" } else { prefix };
                        if prefix == "#all" && (self.forwards || self.plan.version2) {
                            excluded.extend(scope_of(doc, element).into_iter().map(|(_, uri)| uri));
                            continue;
                        }
                        match namespace_of(doc, element, declared) {
                            Some(XSLT) if name == "extension-element-prefixes" && self.plan.version2 => {
                                let message =
                                    format!("XTSE0085: {name}: \"{prefix}\" stands for XSLT itself");
                                self.error(element, message);
                            }
                            Some(uri) => excluded.push(uri.to_owned()),
                            None => {
                                let code = match (name, declared) {
                                    ("extension-element-prefixes", _) => "XTSE1430",
                                    (_, "") => "XTSE0809",
                                    _ => "XTSE0808",
                                };
                                let message =
                                    format!("{name}: there is no namespace declared for \"{prefix}\"");
                                self.error_as(element, code, message);
                            }
                        }
                    }
                }
            }
            at = if element == module.root { None } else { doc.parent(element) };
        }
        excluded
    }

    /// Compiles an attribute value template.
    pub(super) fn avt(&mut self, node: NodeId, source: &str) -> Avt {
        let mut parts: Vec<AvtPart> = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(tail) = rest.strip_prefix(brace) {
                text.push_str(brace);
                rest = tail;
                continue;
            }
            if brace == "}" {
                self.error_as(node, "XTSE0370", format!("a \"}}\" without \"{{\" in \"{source}\""));
                return Avt::Fixed("".into());
            }
            let Some(end) = expression_end(rest, self.plan.version3) else {
                self.error_as(node, "XTSE0350", format!("a \"{{\" without \"}}\" in \"{source}\""));
                return Avt::Fixed("".into());
            };
            if !text.is_empty() {
                parts.push(AvtPart::Text(std::mem::take(&mut text).into()));
            }
            if self.plan.version3 && is_blank(&rest[..end]) {
                rest = &rest[end + 1..];
                continue;
            }
            let expr = self.expression(node, &rest[..end]);
            parts.push(if self.version2 { AvtPart::Items(expr) } else { AvtPart::Expr(expr) });
            rest = &rest[end + 1..];
        }
        text.push_str(rest);
        if parts.is_empty() {
            return Avt::Fixed(text.into());
        }
        if !text.is_empty() {
            parts.push(AvtPart::Text(text.into()));
        }
        Avt::Parts(parts.into())
    }

    /// The attribute value template in attribute `name`.
    pub(super) fn avt_attribute(&mut self, node: NodeId, name: &str) -> Option<Avt> {
        let source = self.attribute(node, name)?;
        Some(self.avt(node, &source))
    }
}

/// The end of the expression in a template: braces in its string literals do not count, nor do, in 3.0 (`nests`), those within others and
/// comments.
fn expression_end(source: &str, nests: bool) -> Option<usize> {
    let mut quote = None;
    let (mut depth, mut comments) = (0usize, 0usize);
    let bytes = source.as_bytes();
    let mut skip = false;
    for (at, c) in source.char_indices() {
        if std::mem::take(&mut skip) {
            continue;
        }
        let next = bytes.get(at + 1);
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '(') if nests && next == Some(&b':') => {
                comments += 1;
                skip = true;
            }
            (None, ':') if comments > 0 && next == Some(&b')') => {
                comments -= 1;
                skip = true;
            }
            _ if comments > 0 => {}
            (None, '}') if depth == 0 => return Some(at),
            (None, '}') => depth -= 1,
            (None, '{') if nests => depth += 1,
            (None, '{') => return None,
            (None, '"' | '\'') => quote = Some(c),
            _ => {}
        }
    }
    None
}

/// Whether the text is only white space and comments.
fn is_blank(source: &str) -> bool {
    let mut depth = 0usize;
    let mut rest = source.trim_start();
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix("(:") {
            depth += 1;
            rest = tail;
        } else if let (Some(tail), true) = (rest.strip_prefix(":)"), depth > 0) {
            depth -= 1;
            rest = if depth == 0 { tail.trim_start() } else { tail };
        } else if depth > 0 {
            let mut chars = rest.chars();
            chars.next();
            rest = chars.as_str();
        } else {
            return false;
        }
    }
    depth == 0
}

/// Whether `text` is a QName.
pub(crate) fn is_qname(text: &str) -> bool {
    match text.split_once(':') {
        Some((prefix, local)) => xml::is_ncname(prefix) && xml::is_ncname(local),
        None => xml::is_ncname(text),
    }
}
