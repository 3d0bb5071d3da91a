//! Instructions and attributes that XSLT 2.0 has beyond 1.0.

use super::{Compiler, XSLT};
use crate::expr::Expr;
use crate::model::{Avt, Body, Instruction, Op};
use crate::output::{OutputProperties, PROPERTIES, properties_by_version};
use crate::version2::{Content, ForEachGroup, Grouping, ResultDocument, Version2};
use xml::{NodeId, NodeKind};
use xpath::Collation;

/// The instructions that only 2.0 has.
pub(super) const INSTRUCTIONS: [&str; 8] = [
    "analyze-string",
    "document",
    "for-each-group",
    "namespace",
    "next-match",
    "perform-sort",
    "result-document",
    "sequence",
];

/// Attributes that any element of XSLT may have.
const STANDARD: [&str; 7] = [
    "version",
    "exclude-result-prefixes",
    "extension-element-prefixes",
    "xpath-default-namespace",
    "default-collation",
    "use-when",
    "xml:space",
];

/// Attributes that 2.0 adds to elements of 1.0.
const MORE: [(&str, &[&str]); 22] = [
    ("stylesheet", &["default-validation", "input-type-annotations"]),
    ("transform", &["default-validation", "input-type-annotations"]),
    ("package", &["default-validation", "input-type-annotations"]),
    ("template", &["as"]),
    ("variable", &["as"]),
    ("param", &["as", "required", "tunnel"]),
    ("with-param", &["as", "tunnel"]),
    ("value-of", &["separator"]),
    ("attribute", &["select", "separator", "type", "validation"]),
    ("comment", &["select"]),
    ("processing-instruction", &["select"]),
    ("copy", &["copy-namespaces", "inherit-namespaces", "type", "validation"]),
    ("copy-of", &["copy-namespaces", "type", "validation"]),
    ("element", &["inherit-namespaces", "type", "validation"]),
    ("message", &["select"]),
    ("number", &["select", "ordinal"]),
    ("sort", &["collation", "stable"]),
    ("key", &["collation"]),
    ("for-each", &[]),
    ("apply-templates", &[]),
    ("output", &["name", "use-character-maps"]),
    ("decimal-format", &[]),
];

/// Attributes that 3.0 adds to elements of 2.0.
const THIRD: [(&str, &[&str]); 14] = [
    ("variable", &["static", "visibility"]),
    ("param", &["static"]),
    ("template", &["visibility"]),
    (
        "function",
        &["new-each-time", "visibility", "cache", "override-extension-function", "streamability", "override"],
    ),
    ("attribute-set", &["visibility", "streamable"]),
    ("value-of", &["separator"]),
    ("number", &["start-at"]),
    ("copy", &["copy-accumulators"]),
    ("copy-of", &["copy-accumulators"]),
    ("for-each-group", &["composite"]),
    ("key", &["composite"]),
    ("message", &["error-code"]),
    (
        "output",
        &[
            "html-version",
            "item-separator",
            "json-node-output-method",
            "allow-duplicate-names",
            "build-tree",
            "parameter-document",
            "suppress-indentation",
        ],
    ),
    (
        "result-document",
        &[
            "html-version",
            "item-separator",
            "json-node-output-method",
            "allow-duplicate-names",
            "build-tree",
            "parameter-document",
            "suppress-indentation",
        ],
    ),
];

/// Whether 2.0 allows an attribute that 1.0 does not.
pub(super) fn is_attribute(element: &str, attribute: &str, version3: bool) -> bool {
    STANDARD.contains(&attribute)
        || version3 && matches!(attribute, "expand-text" | "default-mode" | "default-validation")
        || version3 && THIRD.iter().any(|(name, more)| *name == element && more.contains(&attribute))
        || MORE.iter().any(|(name, more)| *name == element && more.contains(&attribute))
        || element == "output" && properties_by_version().1.contains(&attribute)
}

impl Compiler<'_> {
    /// Whether braces in the text of an element hold expressions (XSLT 3.0 section 5.6.2).
    pub(super) fn expands_text(&self, node: NodeId) -> bool {
        if !self.plan.version3 {
            return false;
        }
        let doc = &self.module.doc;
        let mut at = Some(node);
        while let Some(element) = at {
            let ns = if doc.namespace(element) == XSLT { "" } else { XSLT };
            if let Some(value) = doc.attribute(element, ns, "expand-text") {
                return matches!(value.trim(), "yes" | "true" | "1");
            }
            at = doc.parent(element);
        }
        false
    }

    /// The namespace of unprefixed element names in expressions and patterns.
    pub(super) fn default_namespace(&self, node: NodeId) -> String {
        if !self.plan.version2 {
            return String::new();
        }
        let doc = &self.module.doc;
        let mut at = Some(node);
        while let Some(element) = at {
            let ns = if doc.namespace(element) == XSLT { "" } else { XSLT };
            if let Some(uri) = doc.attribute(element, ns, "xpath-default-namespace") {
                return uri.to_owned();
            }
            // The elements around an embedded stylesheet do not count.
            at = if element == self.module.root { None } else { doc.parent(element) };
        }
        String::new()
    }

    pub(super) fn flag(&mut self, node: NodeId, name: &str, default: bool) -> bool {
        self.yes_no(node, name).unwrap_or(default)
    }

    fn content(&mut self, node: NodeId, skip: &[&str]) -> Content {
        let select = self.expression_attribute(node, "select");
        let body = if select.is_some() { Body::default() } else { self.body_except(node, skip) };
        Content { select, body, separator: self.avt_attribute(node, "separator") }
    }

    /// The same of a comment, a processing instruction or a namespace: adjacent atomic values in its body are separated by spaces.
    fn spaced_content(&mut self, node: NodeId) -> Content {
        let mut content = self.content(node, &[]);
        let is_text = |instruction: &Instruction| match &instruction.op {
            Op::Text { .. } | Op::ValueOf { .. } => true,
            Op::Version2(version2) => matches!(**version2, Version2::Values { .. }),
            _ => false,
        };
        if content.select.is_none() && !content.body.iter().all(is_text) {
            content.separator = Some(Avt::Fixed(" ".into()));
        }
        content
    }

    /// Content is by a `select` attribute or by children.
    fn either(&mut self, node: NodeId, code: &str) {
        let doc = &self.module.doc;
        let is_content = |n: NodeId| match doc.kind(n) {
            xml::NodeKind::Element => !doc.is_element(n, XSLT, "fallback"),
            xml::NodeKind::Text => !super::is_space(doc.text(n)),
            _ => false,
        };
        if doc.attribute(node, "", "select").is_some() && doc.children(node).any(is_content) {
            let name = self.module.doc.qname(node).into_owned();
            self.error(node, format!("{code}: {name} has both a select attribute and content"));
        }
    }

    fn no_schema(&mut self, node: NodeId) {
        let strict = self.attribute(node, "validation").is_some_and(|v| matches!(v.trim(), "strict" | "lax"));
        if strict || self.attribute(node, "type").is_some() {
            self.error(node, "XTSE1660: there are no schemas: validation and type are not supported".into());
        }
    }

    /// An instruction by the rules of 2.0. `None`: it is the same as in 1.0.
    pub(super) fn version2_instruction(&mut self, node: NodeId) -> Option<Option<Op>> {
        let module = self.module.clone();
        let doc = &module.doc;
        let version2 = |version2: Version2| Some(Some(Op::Version2(Box::new(version2))));
        match doc.local(node) {
            "sequence" => {
                // With a sequence constructor in place of `select`: 3.0.
                if self.plan.version3 && doc.attribute(node, "", "select").is_none() {
                    self.attributes(node, &["select"], &[]);
                    let body = self.body_except(node, &["fallback"]);
                    return version2(Version2::Sequential(body));
                }
                self.attributes(node, &["select"], &["select"]);
                match self.plan.version3 {
                    true => self.either(node, "XTSE3185"),
                    false => self.only(node, &[]),
                }
                match self.expression_attribute(node, "select") {
                    Some(select) => version2(Version2::Sequence { select }),
                    None => Some(None),
                }
            }
            "value-of" => {
                self.attributes(node, &["select", "disable-output-escaping"], &[]);
                let raw = self.flag(node, "disable-output-escaping", false);
                let content = self.content(node, &[]);
                if doc.attribute(node, "", "select").is_some() && self.has_content(node) {
                    self.error(node, "XTSE0870: xsl:value-of has both a select attribute and content".into());
                }
                match content {
                    // As in 1.0 if there is one item.
                    Content { select: Some(Expr::XPath(mut xpath)), separator: None, body }
                        if body.is_empty() =>
                    {
                        xpath.many = true;
                        Some(Some(Op::ValueOf { select: Expr::XPath(xpath), raw }))
                    }
                    content => version2(Version2::Values { content, raw }),
                }
            }
            "attribute"
                if doc.attribute(node, "", "select").is_some()
                    || doc.attribute(node, "", "separator").is_some() =>
            {
                self.attributes(node, &["name", "namespace"], &["name"]);
                self.no_schema(node);
                let Some(name) = self.avt_attribute(node, "name") else { return Some(None) };
                let namespace = self.avt_attribute(node, "namespace");
                self.check_fixed_name(node, &name, namespace.is_some());
                let scope = self.scope(node);
                if doc.attribute(node, "", "select").is_some() && self.has_content(node) {
                    let message = "XTSE0840: xsl:attribute has both a select attribute and content";
                    self.error(node, message.into());
                }
                let content = self.content(node, &[]);
                version2(Version2::Attribute { name, namespace, scope, content })
            }
            "attribute" | "element" => {
                self.no_schema(node);
                None
            }
            "comment" => {
                self.attributes(node, &[], &[]);
                let content = self.spaced_content(node);
                self.either(node, "XTSE0940");
                version2(Version2::Comment { content })
            }
            "processing-instruction" => {
                self.attributes(node, &["name"], &["name"]);
                let Some(name) = self.avt_attribute(node, "name") else { return Some(None) };
                let content = self.spaced_content(node);
                self.either(node, "XTSE0880");
                version2(Version2::Pi { name, content })
            }
            "namespace" => {
                self.attributes(node, &["name", "select"], &["name"]);
                let Some(name) = self.avt_attribute(node, "name") else { return Some(None) };
                let content = self.spaced_content(node);
                self.either(node, "XTSE0910");
                version2(Version2::Namespace { name, content })
            }
            "copy-of" => {
                self.attributes(node, &["select"], &["select"]);
                self.no_schema(node);
                self.empty(node);
                let namespaces = self.flag(node, "copy-namespaces", true);
                match self.expression_attribute(node, "select") {
                    Some(select) => version2(Version2::CopyOf { select, namespaces }),
                    None => Some(None),
                }
            }
            "copy" => {
                let version3 = if self.plan.version3 {
                    &["use-attribute-sets", "select"][..]
                } else {
                    &["use-attribute-sets"]
                };
                self.attributes(node, version3, &[]);
                let inherits = self.flag(node, "inherit-namespaces", true);
                let select =
                    if self.plan.version3 { self.expression_attribute(node, "select") } else { None };
                self.no_schema(node);
                let namespaces = self.flag(node, "copy-namespaces", true);
                let sets = self.uses(node, "");
                let body = self.body(node);
                version2(Version2::Copy { select, sets, body, namespaces, inherits })
            }
            "for-each-group" => {
                let attributes = [
                    "select",
                    "group-by",
                    "group-adjacent",
                    "group-starting-with",
                    "group-ending-with",
                    "collation",
                ];
                self.attributes(node, &attributes, &["select"]);
                let collation = self.collation(node, "XTDE1110");
                let composite = self.plan.version3 && self.flag(node, "composite", false);
                let Some(select) = self.expression_attribute(node, "select") else { return Some(None) };
                let given: Vec<&str> = attributes[1..5]
                    .iter()
                    .copied()
                    .filter(|name| doc.attribute(node, "", name).is_some())
                    .collect();
                let [by] = given.as_slice() else {
                    self.error(node, "XTSE1080: xsl:for-each-group needs one of group-by, group-adjacent, group-starting-with and group-ending-with".into());
                    return Some(None);
                };
                if !by.contains("-by") && !by.contains("adjacent") {
                    let name = if composite { "composite" } else { "collation" };
                    if composite || collation.is_some() && self.plan.version2 {
                        let message = format!("XTSE1090: {name} is for group-by and group-adjacent");
                        self.error(node, message);
                    }
                }
                let by = match *by {
                    "group-by" => self.expression_attribute(node, by).map(Grouping::By),
                    "group-adjacent" => self.expression_attribute(node, by).map(Grouping::Adjacent),
                    "group-starting-with" => {
                        self.pattern_attribute(node, by, false).map(Grouping::StartingWith)
                    }
                    _ => self.pattern_attribute(node, by, false).map(Grouping::EndingWith),
                };
                let sorts = self.sorts(node);
                self.sorts_first(node);
                let body = self.body_except(node, &["sort"]);
                match by {
                    Some(by) => version2(Version2::ForEachGroup(Box::new(ForEachGroup {
                        select,
                        by,
                        collation,
                        composite,
                        sorts,
                        body,
                    }))),
                    None => Some(None),
                }
            }
            "analyze-string" => {
                self.attributes(node, &["select", "regex", "flags"], &["select", "regex"]);
                self.only(node, &["matching-substring", "non-matching-substring"]);
                let Some(select) = self.expression_attribute(node, "select") else { return Some(None) };
                let Some(regex) = self.avt_attribute(node, "regex") else { return Some(None) };
                let flags = self.avt_attribute(node, "flags");
                if let (Avt::Fixed(pattern), true) = (&regex, matches!(&flags, None | Some(Avt::Fixed(_)))) {
                    let flags = match &flags {
                        Some(Avt::Fixed(flags)) => flags,
                        _ => "",
                    };
                    if let Err(error) = xpath::regex::Regex::new(pattern, flags) {
                        let code = if error.code == "FORX0001" { "XTDE1145" } else { "XTDE1140" };
                        self.error(node, format!("{code}: {}", error.message));
                    }
                }
                let mut elements = doc.children(node).filter(|n| doc.kind(*n) == NodeKind::Element);
                let mut last = 0;
                let in_order = elements.all(|n| {
                    let place = match doc.local(n) {
                        "matching-substring" => 1,
                        "non-matching-substring" => 2,
                        _ => 3,
                    };
                    let fine = place > last || place == 3;
                    last = last.max(place);
                    fine
                });
                if self.plan.version3 && !in_order {
                    let message = "XTSE0010: xsl:analyze-string holds an xsl:matching-substring, an xsl:non-matching-substring and fallbacks, in this order";
                    self.error(node, message.into());
                }
                let child = |name: &str| doc.children(node).find(|n| doc.is_element(*n, XSLT, name));
                let (matching, other) = (child("matching-substring"), child("non-matching-substring"));
                if matching.is_none() && other.is_none() {
                    self.error(node, "XTSE1130: xsl:analyze-string needs an xsl:matching-substring or an xsl:non-matching-substring".into());
                }
                let matching = matching.map(|n| self.body(n)).unwrap_or_default();
                let other = other.map(|n| self.body(n)).unwrap_or_default();
                version2(Version2::Analyze { select, regex, flags, matching, other })
            }
            "perform-sort" => {
                self.attributes(node, &["select"], &[]);
                let select = self.expression_attribute(node, "select");
                let sorts = self.sorts(node);
                if sorts.is_empty() {
                    self.error(node, "XTSE0010: xsl:perform-sort needs an xsl:sort".into());
                }
                self.sorts_first(node);
                let body = self.body_except(node, &["sort", "fallback"]);
                if select.is_some() && !body.is_empty() {
                    let message = "XTSE1040: xsl:perform-sort has both a select attribute and content";
                    self.error(node, message.into());
                }
                version2(Version2::PerformSort { select, body, sorts })
            }
            "next-match" => {
                self.attributes(node, &[], &[]);
                self.only(node, &["with-param"]);
                let arguments = self.arguments(node);
                version2(Version2::NextMatch { arguments })
            }
            "document" => {
                self.attributes(node, &["validation", "type"], &[]);
                self.no_schema(node);
                let body = self.body(node);
                version2(Version2::Document { body })
            }
            "result-document" => {
                self.attributes(
                    node,
                    &[
                        "href",
                        "format",
                        "validation",
                        "type",
                        "method",
                        "byte-order-mark",
                        "cdata-section-elements",
                        "doctype-public",
                        "doctype-system",
                        "encoding",
                        "escape-uri-attributes",
                        "include-content-type",
                        "indent",
                        "media-type",
                        "normalization-form",
                        "omit-xml-declaration",
                        "standalone",
                        "undeclare-prefixes",
                        "use-character-maps",
                        "output-version",
                    ],
                    &[],
                );
                self.no_schema(node);
                let result = self.result_document(node);
                version2(Version2::ResultDocument(Box::new(result)))
            }
            "message" => {
                self.attributes(node, &["terminate"], &[]);
                let code = if self.plan.version3 { self.avt_attribute(node, "error-code") } else { None };
                let scope = self.scope(node);
                let terminate = self.avt_attribute(node, "terminate").unwrap_or(Avt::Fixed("no".into()));
                if matches!(terminate, Avt::Fixed(_)) {
                    self.yes_no(node, "terminate");
                }
                let select = self.expression_attribute(node, "select");
                let content = Content { select, body: self.body(node), separator: None };
                version2(Version2::Message { content, terminate, code, scope })
            }
            "variable" => {
                self.attributes(node, &["name", "select"], &["name"]);
                let Some(name) = self.symbol_attribute(node, "name") else { return Some(None) };
                let value = self.binding(node);
                let slot = self.declare_local(node, name);
                Some(Some(Op::Variable { slot, value }))
            }
            _ => None,
        }
    }

    /// `xsl:result-document`.
    fn result_document(&mut self, node: NodeId) -> ResultDocument {
        let href = self.avt_attribute(node, "href");
        let format = self.avt_attribute(node, "format");
        ResultDocument { format, ..self.result_of_extension(node, href) }
    }

    /// A further result with the properties from attributes of `node`.
    pub(super) fn result_of_extension(&mut self, node: NodeId, href: Option<Avt>) -> ResultDocument {
        if let Some(Avt::Fixed(href)) = &href
            && !href.is_empty()
            && !self.options.results
        {
            let name = self.module.doc.qname(node);
            let message = format!(
                "{name} href=\"{href}\": there is no place for further results here, only the principal one is written (leave href away)"
            );
            self.error(node, message);
        }
        let mut properties = Vec::new();
        for property in PROPERTIES {
            // "version" is the version of the language.
            let attribute = if property == "version" { "output-version" } else { property };
            if crate::output::is_third(property) && !self.plan.version3 {
                continue;
            }
            let Some(value) = self.avt_attribute(node, attribute) else { continue };
            if let Avt::Fixed(value) = &value
                && let Err(error) = OutputProperties::default().set(property, value, true)
            {
                self.error(node, error.coded("XTSE0020"));
            }
            properties.push((property, value));
        }
        ResultDocument {
            href,
            format: None,
            properties: properties.into(),
            cdata_section_elements: self.avt_attribute(node, "cdata-section-elements"),
            suppress_indentation: match self.plan.version3 {
                true => self.avt_attribute(node, "suppress-indentation"),
                false => None,
            },
            character_maps: self.avt_attribute(node, "use-character-maps"),
            parameter_document: match self.plan.version3 {
                true => self.avt_attribute(node, "parameter-document"),
                false => None,
            },
            scope: self.scope(node),
            body: self.body(node),
        }
    }

    /// The URI of a collation in attribute `collation`; `code`: of the error where it is unknown.
    pub(super) fn collation(&mut self, node: NodeId, code: &str) -> Option<Avt> {
        let collation = self.avt_attribute(node, "collation")?;
        if let Avt::Fixed(uri) = &collation
            && let Err(message) = Collation::find(uri)
        {
            self.error(node, format!("{code}: {message}"));
        }
        Some(collation)
    }

    /// `default-collation`: the first known one counts. Comparisons are by code points, so only this one is known.
    pub(super) fn check_default_collation(&mut self, node: NodeId, list: &str) {
        let found = list.split_ascii_whitespace().find_map(|uri| Collation::find(uri).ok());
        if found != Some(Collation::Codepoint) {
            let message = format!(
                "XTSE0125: default-collation=\"{list}\": only the codepoint collation can be the default, others where a collation is named"
            );
            self.error(node, message);
        }
    }
}
