//! Compiling the features of XSLT 2.0 beyond 1.0: the version in effect, instructions and attributes, functions, conditional
//! inclusion.

use super::{Compiler, XSLT};
use crate::expr::{ElementScope, Expr};
use crate::model::{Argument, Avt, Binding, Body, Declared, Function, Instruction, Op, Place, Typed};
use crate::names::Name;
use crate::output::{OutputProperties, PROPERTIES, properties_by_version};
use crate::pattern::NoMatch;
use crate::version2::{CURRENT_MODE, Content, ForEachGroup, Grouping, ResultDocument, Version2};
use std::collections::{BTreeMap, HashMap};
use xml::{Document, NodeId, NodeKind};
use xpath::{Collation, Context, ExtensionName, FunctionInfo, FunctionLibrary, Host, SeqType, Value};

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
const MORE: [(&str, &[&str]); 21] = [
    ("stylesheet", &["default-validation", "input-type-annotations"]),
    ("transform", &["default-validation", "input-type-annotations"]),
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

/// The version in effect at an element: the nearest `version` attribute.
pub(super) fn version_of(doc: &Document, node: NodeId) -> f64 {
    let mut at = Some(node);
    while let Some(element) = at {
        if let Some(version) = own_version(doc, element) {
            return version.trim().parse().unwrap_or(2.0);
        }
        at = doc.parent(element);
    }
    1.0
}

/// The `version` attribute of an element, if it is the standard one.
pub(super) fn own_version(doc: &Document, element: NodeId) -> Option<&str> {
    if doc.kind(element) != NodeKind::Element {
        return None;
    }
    if doc.namespace(element) == XSLT {
        if doc.local(element) == "output" { None } else { doc.attribute(element, "", "version") }
    } else {
        doc.attribute(element, XSLT, "version")
    }
}

impl Compiler<'_> {
    /// Whether some module is of version 2.0 or later: then all of the stylesheet runs in a processor of 2.0.
    pub(super) fn is_version2_stylesheet(&self) -> bool {
        matches!(self.options.processor, super::Processor::V2 | super::Processor::V3)
            || self.options.processor != super::Processor::V1
                && self.declarations.iter().any(|d| {
                    let version = own_version(&d.module.doc, d.module.root);
                    version.and_then(|v| v.trim().parse::<f64>().ok()).is_some_and(|v| v >= 2.0)
                })
    }

    /// Whether some module is of version 3.0 or later, and no version was requested: an unimplemented feature is an error then.
    pub(super) fn is_version3_stylesheet(&self) -> bool {
        self.options.processor == super::Processor::V3
            || self.options.processor == super::Processor::ByStylesheet
                && self.declarations.iter().any(|d| {
                    let version = own_version(&d.module.doc, d.module.root);
                    version.and_then(|v| v.trim().parse::<f64>().ok()).is_some_and(|v| v >= 3.0)
                })
    }

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

    /// `xsl:mode`.
    pub(super) fn mode_declaration(&mut self, node: NodeId) {
        self.attributes(
            node,
            &[
                "name",
                "on-no-match",
                "on-multiple-match",
                "warning-on-no-match",
                "warning-on-multiple-match",
                "streamable",
                "visibility",
                "typed",
                "use-accumulators",
            ],
            &[],
        );
        self.empty(node);
        let mode = match self.attribute(node, "name") {
            Some(name) if name.trim() != "#unnamed" => self.mode(node, &name),
            _ => 0,
        };
        for name in [
            "on-no-match",
            "on-multiple-match",
            "streamable",
            "typed",
            "use-accumulators",
            "visibility",
            "warning-on-multiple-match",
            "warning-on-no-match",
        ] {
            let Some(value) = self.attribute(node, name) else { continue };
            let mut words: Vec<String> = value.split_ascii_whitespace().map(str::to_owned).collect();
            if name == "use-accumulators" {
                let names = words.iter().filter(|word| !word.starts_with('#'));
                let names: Vec<String> = names.cloned().collect();
                words.retain(|word| word.starts_with('#'));
                words.extend(names.iter().filter_map(|word| {
                    let (namespace, local) = self.expand(node, word)?;
                    Some(format!("Q{{{namespace}}}{local}"))
                }));
            }
            words.sort_unstable();
            let value = words.join(" ");
            let earlier = self.mode_attributes.remove(&(mode, name));
            let contrary = earlier.is_some_and(|(precedence, before, contrary)| {
                precedence == self.precedence && (contrary || before != value)
            });
            self.mode_attributes.insert((mode, name), (self.precedence, value, contrary));
        }
        for flag in ["warning-on-no-match", "warning-on-multiple-match", "streamable"] {
            self.yes_no(node, flag);
        }
        let one_of =
            |value: Option<String>, allowed: &[&str]| value.filter(|value| !allowed.contains(&value.trim()));
        let typed = ["yes", "no", "true", "false", "1", "0", "strict", "lax", "unspecified"];
        if let Some(value) = one_of(self.attribute(node, "typed"), &typed) {
            self.error(node, format!("XTSE0020: typed=\"{value}\" is not one of {}", typed.join(", ")));
        }
        let ways = if mode == 0 { &["private"][..] } else { &["public", "private", "final"] };
        if let Some(value) = one_of(self.attribute(node, "visibility"), ways) {
            self.error(node, format!("XTSE0020: visibility=\"{value}\" is not one of {}", ways.join(", ")));
        }
        if let Some(value) = one_of(self.attribute(node, "on-multiple-match"), &["use-last", "fail"]) {
            self.error(node, format!("XTSE0020: on-multiple-match=\"{value}\" is use-last or fail"));
        }
        if let Some(value) = self.attribute(node, "on-multiple-match") {
            self.plan.modes[mode].one_match = value.trim() == "fail";
        }
        let Some(value) = self.attribute(node, "on-no-match") else { return };
        let no_match = match value.trim() {
            "text-only-copy" => NoMatch::TextOnlyCopy,
            "shallow-copy" => NoMatch::ShallowCopy,
            "deep-copy" => NoMatch::DeepCopy,
            "shallow-skip" => NoMatch::ShallowSkip,
            "deep-skip" => NoMatch::DeepSkip,
            "fail" => NoMatch::Fail,
            other => {
                return self.error(node, format!("XTSE0020: on-no-match=\"{other}\" is not one of the ways"));
            }
        };
        self.plan.modes[mode].no_match = no_match;
    }

    /// The version in effect at an element decides how expressions and errors are treated.
    pub(super) fn at_version_of(&mut self, node: NodeId) {
        if self.plan.version2 {
            let version = version_of(&self.module.doc, node);
            self.forwards = version > if self.plan.version3 { 3.0 } else { 2.0 };
            self.version2 = version >= 2.0;
        } else {
            self.forwards = self.is_forwards(node);
        }
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

    /// The type in attribute `as`; `code` and `of` as in [`Declared`].
    pub(super) fn declared(&mut self, node: NodeId, code: &'static str, of: &str) -> Option<Declared> {
        Some(Declared { ty: self.declared_type(node)?, code, of: of.into() })
    }

    /// The sequence type in attribute `as`.
    fn declared_type(&mut self, node: NodeId) -> Option<SeqType> {
        if !self.version2 {
            return None;
        }
        let source = self.attribute(node, "as")?;
        let default = self.default_namespace(node);
        let module = self.module.clone();
        let scope = ElementScope { doc: &module.doc, node };
        let compiled = xpath::parse_sequence_type(&source)
            .and_then(|ty| SeqType::compile(&ty, &source, &scope, &default));
        match compiled {
            Ok(ty) => Some(ty),
            Err(error) => {
                self.error(node, format!("{} (in as=\"{source}\")", error.sentence()));
                None
            }
        }
    }

    /// The value of a variable, argument or default of a parameter with a declared type.
    pub(super) fn typed_binding(&mut self, node: NodeId) -> Option<Binding> {
        let parameter = self.module.doc.local(node) == "param";
        let code = if parameter { "XTTE0600" } else { "XTTE0570" };
        let of = self.title(node);
        let mut declared = self.declared(node, code, &of)?;
        self.no_content_beside_select(node);
        let select = self.expression_attribute(node, "select");
        let value = match select {
            Some(select) => Binding::Select(select),
            None => Binding::Sequence(self.body(node)),
        };
        if parameter && matches!(&value, Binding::Sequence(body) if body.is_empty()) {
            // Without a default, where an empty value is not of the type: it is required.
            declared.code = "XTDE0610";
        }
        Some(Binding::As(Box::new(Typed { value, declared })))
    }

    /// The name of the variable or parameter at `node` in errors.
    fn title(&self, node: NodeId) -> String {
        let doc = &self.module.doc;
        let kind = match doc.local(node) {
            "variable" => "variable",
            "with-param" => "argument",
            _ => "parameter",
        };
        format!("the {kind} ${}", doc.attribute(node, "", "name").unwrap_or_default().trim())
    }

    fn flag(&mut self, node: NodeId, name: &str, default: bool) -> bool {
        self.yes_no(node, name).unwrap_or(default)
    }

    /// The parameter at `node`: its instructions at the beginning of the template. `true`: it takes the slot of an argument.
    pub(super) fn version2_parameter(&mut self, node: NodeId, name: Name) -> (Vec<Instruction>, bool) {
        let place = self.place(node);
        let module = self.module.clone();
        let of_function =
            module.doc.parent(node).is_some_and(|parent| module.doc.is_element(parent, XSLT, "function"));
        let title = self.title(node);
        let declared = self.declared(node, if of_function { "XTTE0790" } else { "XTTE0590" }, &title);
        let required = self.flag(node, "required", false);
        if of_function && !required && module.doc.attribute(node, "", "required").is_some() {
            let code = if self.plan.version3 { "XTSE0020" } else { "XTSE0090" };
            self.error(node, format!("{code}: {title} of a function is always required"));
        }
        let has_default = module.doc.attribute(node, "", "select").is_some() || self.has_content(node);
        if has_default && required {
            self.error(node, format!("XTSE0010: {title} is required: it has no default"));
        }
        if has_default && of_function {
            self.error(node, format!("XTSE0760: {title} of a function has no default"));
        }
        let tunnel = self.flag(node, "tunnel", false);
        let value = if required {
            let shown = self.symbols.show(name);
            Binding::Required(format!("XTDE0700: the parameter ${shown} is required").into())
        } else if of_function {
            Binding::Empty
        } else {
            self.binding(node)
        };
        let slot = self.declare_local(node, name);
        if tunnel {
            let op = Op::Version2(Box::new(Version2::TunnelParam { slot, name, value, declared }));
            return (vec![Instruction { op, place }], false);
        }
        let mut ops = vec![Instruction { op: Op::Param { slot, value }, place }];
        if let Some(declared) = declared {
            ops.push(Instruction { op: Op::Version2(Box::new(Version2::Convert { slot, declared })), place });
        }
        (ops, true)
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
                self.only(node, &[]);
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
                let content = self.content(node, &[]);
                version2(Version2::Attribute { name, namespace, scope, content })
            }
            local @ ("attribute" | "element") => {
                self.no_schema(node);
                if local == "element" {
                    self.flag(node, "inherit-namespaces", true);
                }
                None
            }
            "comment" => {
                self.attributes(node, &[], &[]);
                let content = self.spaced_content(node);
                version2(Version2::Comment { content })
            }
            "processing-instruction" => {
                self.attributes(node, &["name"], &["name"]);
                let Some(name) = self.avt_attribute(node, "name") else { return Some(None) };
                let content = self.spaced_content(node);
                version2(Version2::Pi { name, content })
            }
            "namespace" => {
                self.attributes(node, &["name", "select"], &["name"]);
                let Some(name) = self.avt_attribute(node, "name") else { return Some(None) };
                let content = self.spaced_content(node);
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
                self.flag(node, "inherit-namespaces", true);
                let select =
                    if self.plan.version3 { self.expression_attribute(node, "select") } else { None };
                self.no_schema(node);
                let namespaces = self.flag(node, "copy-namespaces", true);
                let sets = self.uses(node, "");
                let body = self.body(node);
                version2(Version2::Copy { select, sets, body, namespaces })
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
                        self.error(node, format!("XTDE1140: {}", error.message));
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
                let body = self.body_except(node, &["sort"]);
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
                let terminate = self.avt_attribute(node, "terminate").unwrap_or(Avt::Fixed("no".into()));
                let select = self.expression_attribute(node, "select");
                let content = Content { select, body: self.body(node), separator: None };
                version2(Version2::Message { content, terminate })
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
            if property == "html-version" && !self.plan.version3 {
                continue;
            }
            let Some(value) = self.avt_attribute(node, attribute) else { continue };
            if let Avt::Fixed(value) = &value
                && let Err(message) = OutputProperties::default().set(property, value, true)
            {
                self.error(node, message);
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

    /// The mode where no attribute names one: that of the nearest `default-mode` (XSLT 3.0 section 3.5.3).
    pub(super) fn default_mode(&mut self, node: NodeId) -> usize {
        if !self.plan.version3 {
            return 0;
        }
        let module = self.module.clone();
        let doc = &module.doc;
        let mut at = Some(node);
        while let Some(element) = at {
            let ns = if doc.namespace(element) == XSLT { "" } else { XSLT };
            match doc.attribute(element, ns, "default-mode").map(str::trim) {
                Some("#unnamed") => return 0,
                Some(name) => {
                    let name = name.to_owned();
                    return self.mode(element, &name);
                }
                None => at = doc.parent(element),
            }
        }
        0
    }

    /// The modes of a template rule; `None`: all.
    pub(super) fn template_modes(&mut self, node: NodeId) -> Option<Vec<usize>> {
        let Some(list) = self.attribute(node, "mode") else { return Some(vec![self.default_mode(node)]) };
        let mut modes = Vec::new();
        for mode in list.split_ascii_whitespace() {
            match mode {
                "#all" => return None,
                "#default" => {
                    let default = self.default_mode(node);
                    modes.push(default);
                }
                "#unnamed" if self.plan.version3 => modes.push(0),
                mode => modes.push(self.mode(node, mode)),
            }
        }
        if modes.is_empty() {
            self.error(node, "XTSE0550: the mode attribute is empty".into());
        }
        modes.dedup();
        Some(modes)
    }

    /// The mode of an `xsl:apply-templates`.
    pub(super) fn applied_mode(&mut self, node: NodeId) -> usize {
        match self.attribute(node, "mode").as_deref().map(str::trim) {
            None | Some("#default") => self.default_mode(node),
            Some("#unnamed") if self.plan.version3 => 0,
            Some("#current") => CURRENT_MODE,
            Some(mode) => {
                let mode = mode.to_owned();
                self.mode(node, &mode)
            }
        }
    }

    /// The number of arguments of an `xsl:function`.
    pub(super) fn function_arity(&self, node: NodeId) -> usize {
        let doc = &self.module.doc;
        doc.children(node).filter(|n| doc.is_element(*n, XSLT, "param")).count()
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
                self.errors.push(crate::XsltError { message, uri, line, column });
            }
        }
    }

    /// `xsl:function`.
    pub(super) fn version2_function(&mut self, node: NodeId) {
        self.attributes(node, &["name", "as", "override"], &["name"]);
        let keeps = self.plan.version3 && self.flag(node, "cache", false);
        if self.plan.version3 {
            let overrides = self.yes_no(node, "override");
            let both = self.yes_no(node, "override-extension-function");
            if overrides.is_some() && both.is_some() && overrides != both {
                let message = "XTSE0020: override and override-extension-function say different things";
                self.error(node, message.into());
            }
            let new = self.attribute(node, "new-each-time");
            if new.is_some_and(|v| !matches!(v.trim(), "yes" | "no" | "maybe" | "true" | "false" | "1" | "0"))
            {
                self.error(node, "XTSE0020: new-each-time is yes, no or maybe".into());
            }
        }
        let Some(name) = self.symbol_attribute(node, "name") else { return };
        let title = format!("the result of the function {}", self.symbols.show(name));
        let returns = self.declared(node, "XTTE0780", &title);
        let arity = self.function_arity(node);
        let (parameters, body) = self.parameterised(node);
        let place = self.place(node);
        let function =
            Function { name, parameters, slots: self.slots, body, version2: true, keeps, returns, place };
        if let Some(slot) = self.version2_functions.get(&(name, arity)) {
            self.plan.functions.insert(*slot, function);
        }
    }

    /// `xsl:character-map`.
    pub(super) fn character_map(&mut self, node: NodeId) {
        self.attributes(node, &["name", "use-character-maps"], &["name"]);
        self.only(node, &["output-character"]);
        let Some(name) = self.symbol_attribute(node, "name") else { return };
        let module = self.module.clone();
        let doc = &module.doc;
        let used = self.attribute(node, "use-character-maps").unwrap_or_default();
        let uses = used.split_ascii_whitespace().filter_map(|used| self.symbol(node, used)).collect();
        let mut entries = Vec::new();
        for child in doc.children(node).filter(|n| doc.is_element(*n, XSLT, "output-character")) {
            self.attributes(child, &["character", "string"], &["character", "string"]);
            let character = self.attribute(child, "character").unwrap_or_default();
            let mut chars = character.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => entries.push((c, self.attribute(child, "string").unwrap_or_default())),
                _ => self.error(child, format!("character=\"{character}\" must be one character")),
            }
        }
        if self.map_precedence.insert(name, self.precedence) == Some(self.precedence) {
            let shown = self.symbols.show(name);
            self.error(node, format!("XTSE1580: there are two character maps \"{shown}\""));
        }
        self.character_maps.insert(name, (uses, entries));
    }

    /// The characters that each map replaces, with those it uses; then those of each `xsl:output`.
    pub(super) fn resolve_character_maps(&mut self) {
        let names: Vec<Name> = self.character_maps.keys().copied().collect();
        for name in names {
            if let Err(message) = self.character_map_of(name, &mut Vec::new()) {
                self.unplaced(message, Place::default());
            }
        }
        for (output, (maps, place)) in std::mem::take(&mut self.used_maps) {
            let mut all = BTreeMap::new();
            for map in maps {
                match self.plan.character_maps.get(&map) {
                    Some(map) => all.extend(map.iter().map(|(c, text)| (*c, text.clone()))),
                    None => self.unplaced(no_map(&self.symbols.show(map)), place),
                }
            }
            let output = match output {
                None => &mut self.plan.output,
                Some(name) => self.plan.outputs.entry(name).or_default(),
            };
            output.character_map = all;
            if let (true, Some(message)) = (self.plan.version2, output.contradiction()) {
                self.unplaced(message.to_owned(), place);
            }
        }
    }

    fn unplaced(&mut self, message: String, place: Place) {
        let uri = self.plan.modules.get(place.module as usize).cloned().unwrap_or_default();
        let (line, column) = (place.line, place.column);
        self.errors.push(crate::XsltError { message, uri, line, column });
    }

    /// The replacements of a map: the last one counts, and its own come after those of the maps it uses.
    fn character_map_of(&mut self, name: Name, open: &mut Vec<Name>) -> Result<(), String> {
        if self.plan.character_maps.contains_key(&name) {
            return Ok(());
        }
        let shown = self.symbols.show(name);
        if open.contains(&name) {
            return Err(format!("XTSE1600: the character map \"{shown}\" uses itself"));
        }
        if open.len() >= MAX_NESTED_MAPS {
            return Err(format!("character maps use one another more than {MAX_NESTED_MAPS} deep"));
        }
        let Some((uses, entries)) = self.character_maps.get(&name).cloned() else {
            return Err(no_map(&shown));
        };
        open.push(name);
        let mut all = BTreeMap::new();
        for used in uses {
            self.character_map_of(used, open)?;
            if let Some(map) = self.plan.character_maps.get(&used) {
                all.extend(map.iter().map(|(c, text)| (*c, text.clone())));
            }
        }
        open.pop();
        all.extend(entries);
        self.plan.character_maps.insert(name, all);
        Ok(())
    }

    /// Removes the elements whose `use-when` is false, before anything else is read.
    pub(super) fn use_when(&mut self, doc: &mut Document, uri: &str) {
        let mut errors = Vec::new();
        let version3 = self.options.processor == super::Processor::V3;
        let given = (self.options.static_parameters, version3);
        super::statics::prepare(doc, &mut self.statics, given, &mut errors);
        for message in errors {
            self.fail(uri, message);
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

/// The functions of `use-when`.
pub(super) struct Static<'s> {
    pub variables: &'s [super::statics::StaticVariable],
}

const STATIC: [&str; 4] = ["system-property", "element-available", "function-available", "type-available"];

impl FunctionLibrary for Static<'_> {
    fn variable(&self, _: &str, uri: Option<&str>, local: &str) -> Option<xpath::VariableInfo> {
        let named = |(u, l, _): &super::statics::StaticVariable| u == uri.unwrap_or("") && l == local;
        let slot = self.variables.iter().position(named)? as u32;
        Some(xpath::VariableInfo { slot, ..xpath::VariableInfo::default() })
    }

    fn function(&self, _: &str, uri: Option<&str>, local: &str, _: usize) -> xpath::Function {
        match STATIC.iter().position(|name| *name == local && uri.is_none()) {
            Some(slot) => xpath::Function::Extension(FunctionInfo {
                slot: slot as u32,
                returns: xpath::Type::Any,
                reads_document: false,
            }),
            None => xpath::Function::Unknown,
        }
    }
}

/// Resolves them with the prefixes of an element.
pub(super) struct Named<'d> {
    pub doc: &'d Document,
    pub node: NodeId,
    pub version3: bool,
}

impl Host for Named<'_> {
    fn static_base_uri(&self) -> Option<String> {
        let base = super::base_within(self.doc, self.node, self.doc.base_uri().unwrap_or_default());
        (!base.is_empty()).then(|| crate::resolver::as_uri(&base))
    }

    fn call_by_name(
        &self,
        name: &ExtensionName,
        args: &[Value],
        cx: &Context<'_>,
    ) -> Result<Option<Value>, String> {
        let text = match args.first() {
            Some(value) => value.to_string_in(cx).map_err(|e| e.message)?.trim().to_owned(),
            None => return Ok(None),
        };
        let (prefix, local) = text.split_once(':').unwrap_or(("", &text));
        let namespace = crate::expr::namespace_of(self.doc, self.node, prefix).unwrap_or("");
        Ok(Some(match &*name.local {
            "system-property" => system_property(namespace, local, true, self.version3),
            "element-available" => Value::Boolean(namespace == XSLT && super::is_available_in_2(local)),
            "type-available" => Value::Boolean(type_available(namespace, local)),
            _ => {
                let namespace = if prefix.is_empty() { "" } else { namespace };
                Value::Boolean(function_available(namespace, local, self.version3))
            }
        }))
    }
}

/// `system-property()`; `version2`: of a processor of XSLT 2.0, `version3`: of 3.0.
pub(crate) fn system_property(namespace: &str, local: &str, version2: bool, version3: bool) -> Value {
    if namespace != XSLT {
        return Value::from("");
    }
    if version3 {
        match local {
            "version" => return Value::from("3.0"),
            "xpath-version" => return Value::from("3.1"),
            "xsd-version" => return Value::from("1.0"),
            "supports-higher-order-functions" => return Value::from("yes"),
            "supports-dynamic-evaluation" | "supports-streaming" => return Value::from("no"),
            _ => {}
        }
    }
    match (local, version2) {
        ("version", false) => Value::Number(1.0),
        ("version", true) => Value::from("2.0"),
        ("vendor", _) => Value::from("Busbar"),
        ("vendor-url", _) => Value::from("https://busbar.dev/"),
        ("product-name", true) => Value::from("Busbar"),
        ("product-version", true) => Value::from(env!("CARGO_PKG_VERSION")),
        ("is-schema-aware" | "supports-namespace-axis", true) => {
            Value::from(if local == "is-schema-aware" { "no" } else { "yes" })
        }
        ("supports-serialization" | "supports-backwards-compatibility", true) => Value::from("yes"),
        _ => Value::from(""),
    }
}

/// `type-available()`.
pub(crate) fn type_available(namespace: &str, local: &str) -> bool {
    namespace == "http://www.w3.org/2001/XMLSchema"
        && (matches!(local, "anyType" | "anySimpleType" | "untyped")
            || xpath::atomic::AtomicType::find(local).is_some())
}

/// Whether a function of XPath 2.0 or XSLT 2.0 (`version3`: of 3.1 or 3.0) has that name.
pub(crate) fn function_available(namespace: &str, local: &str, version3: bool) -> bool {
    const FUNCTIONS: &str = "http://www.w3.org/2005/xpath-functions";
    match namespace {
        "" | FUNCTIONS => {
            xpath::is_function(local)
                || version3 && xpath::is_function_of(FUNCTIONS, local)
                || crate::functions::find("", local, true).is_some()
        }
        // These cannot be the target of a cast.
        "http://www.w3.org/2001/XMLSchema" if matches!(local, "NOTATION" | "anyAtomicType") => false,
        "http://www.w3.org/2001/XMLSchema" => xpath::atomic::AtomicType::find(local).is_some(),
        other => crate::functions::find(other, local, true).is_some() || xpath::is_function_of(other, local),
    }
}

const MAX_NESTED_MAPS: usize = 100;

fn no_map(name: &str) -> String {
    format!("XTSE1590: there is no character map \"{name}\"")
}

/// The maps that an `xsl:character-map` uses, and its own characters.
pub(crate) type CharacterMap = (Vec<Name>, Vec<(char, String)>);

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

/// Functions of the stylesheet by name and number of arguments.
pub(crate) type Version2Functions = HashMap<(Name, usize), u32>;
