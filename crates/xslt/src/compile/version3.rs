//! Compiling the instructions of XSLT 3.0.

use super::{Compiler, XSLT};
use crate::expr::namespace_of;
use crate::model::{Argument, Body, Instruction, Op};
use crate::names::Name;
use crate::version2::{Content, Version2};
use crate::version3::{
    Accumulator, AccumulatorRule, Applicable, CAUGHT, Catch, ERRORS, ErrorTest, IterateParam, MergeKey,
    MergeSource, Part, Version3,
};
use xml::{NodeId, NodeKind};

/// The instructions that only 3.0 has and that are implemented.
pub(super) const INSTRUCTIONS: [&str; 14] = [
    "assert",
    "break",
    "evaluate",
    "fork",
    "iterate",
    "map",
    "map-entry",
    "merge",
    "next-iteration",
    "on-empty",
    "on-non-empty",
    "source-document",
    "try",
    "where-populated",
];

impl Compiler<'_> {
    /// An instruction of 3.0. `None`: another element.
    pub(super) fn version3_instruction(&mut self, node: NodeId) -> Option<Option<Op>> {
        let module = self.module.clone();
        let doc = &module.doc;
        let version3 =
            |version3: Version3| Some(Some(Op::Version2(Box::new(Version2::Version3(Box::new(version3))))));
        match doc.local(node) {
            "iterate" => {
                self.attributes(node, &["select"], &["select"]);
                self.in_order(node, &["param"], true);
                self.in_order(node, &["param", "on-completion"], true);
                let Some(select) = self.expression_attribute(node, "select") else { return Some(None) };
                let visible = self.locals.len();
                let mut params = Vec::new();
                let mut names = Vec::new();
                for child in self.children_named(node, "param") {
                    self.attributes(
                        child,
                        &["name", "select", "as", "static", "tunnel", "required"],
                        &["name"],
                    );
                    let Some(name) = self.symbol_attribute(child, "name") else { continue };
                    let shown = self.symbols.show(name);
                    let declared = self.declared(child, "XTTE0590", &format!("the parameter ${shown}"));
                    if names.iter().any(|(n, _)| *n == name) {
                        self.error(child, format!("XTSE0580: there are two parameters ${shown}"));
                    }
                    let is_empty = self.attribute(child, "select").is_none()
                        && self.module.doc.first_child(child).is_none();
                    let needs_value = declared.as_ref().is_some_and(|declared| !declared.ty.allows_empty());
                    if self.yes_no(child, "required") == Some(true) || is_empty && needs_value {
                        let message =
                            format!("XTSE3520: the parameter ${shown} of xsl:iterate has no initial value");
                        self.error(child, message);
                    }
                    let value = self.binding(child);
                    let slot = self.declare_local(child, name);
                    names.push((name, slot));
                    params.push(IterateParam { slot, value, declared });
                }
                self.iterates.push(names);
                let completion = self.children_named(node, "on-completion").first().map(|child| {
                    self.attributes(*child, &["select"], &[]);
                    self.select_or_body(*child)
                });
                let body = self.body_except(node, &["param", "on-completion"]);
                self.iterates.pop();
                self.locals.truncate(visible);
                version3(Version3::Iterate { select, params: params.into(), body, completion })
            }
            "next-iteration" => {
                self.attributes(node, &[], &[]);
                self.only(node, &["with-param"]);
                self.in_tail_of_iterate(node);
                let arguments: Vec<Argument> = self.arguments(node).into_vec();
                let params = self.iterates.last().cloned().unwrap_or_default();
                let mut passed = Vec::new();
                for argument in arguments {
                    match params.iter().find(|(name, _)| *name == argument.name) {
                        Some((_, slot)) => passed.push((*slot, argument)),
                        None => {
                            let shown = self.symbols.show(argument.name);
                            self.error(node, format!("XTSE3130: xsl:iterate has no parameter ${shown}"));
                        }
                    }
                }
                version3(Version3::NextIteration { arguments: passed.into() })
            }
            "break" => {
                self.attributes(node, &["select"], &[]);
                self.in_tail_of_iterate(node);
                let content = self.select_or_body(node);
                version3(Version3::Break { content })
            }
            "try" => {
                self.attributes(node, &["select", "rollback-output"], &[]);
                self.in_order(node, &["catch", "fallback"], false);
                let select = self.expression_attribute(node, "select");
                let body = self.body_except(node, &["catch", "fallback"]);
                if select.is_some() && !body.is_empty() {
                    self.error(node, "XTSE3140: xsl:try has both a select attribute and content".into());
                }
                let content = Content { select, body, separator: None };
                let catches: Vec<Catch> =
                    self.children_named(node, "catch").into_iter().map(|child| self.catch(child)).collect();
                if catches.is_empty() {
                    self.error(node, "XTSE0010: xsl:try needs an xsl:catch".into());
                }
                let rollback = self.yes_no(node, "rollback-output").unwrap_or(true);
                version3(Version3::Try { content, rollback, catches: catches.into() })
            }
            "map" => {
                self.attributes(node, &[], &[]);
                let body = self.body(node);
                version3(Version3::Map { body })
            }
            "map-entry" => {
                self.attributes(node, &["key", "select"], &["key"]);
                let Some(key) = self.expression_attribute(node, "key") else { return Some(None) };
                let content = self.select_or_body(node);
                version3(Version3::MapEntry { key, content })
            }
            "where-populated" => {
                self.attributes(node, &[], &[]);
                let body = self.body(node);
                version3(Version3::WherePopulated { body })
            }
            // `xsl:on-empty` and `xsl:on-non-empty` are compiled with their siblings.
            "on-empty" => {
                self.attributes(node, &["select"], &[]);
                let content = self.select_or_body(node);
                version3(Version3::Conditional { parts: [Part::OnEmpty(content)].into() })
            }
            "on-non-empty" => {
                self.attributes(node, &["select"], &[]);
                let content = self.select_or_body(node);
                version3(Version3::Conditional { parts: [Part::OnNonEmpty(content)].into() })
            }
            "source-document" => {
                let attributes = ["href", "streamable", "use-accumulators", "validation", "type"];
                self.attributes(node, &attributes, &["href"]);
                let Some(href) = self.avt_attribute(node, "href") else { return Some(None) };
                let accumulators = self.applicable(node);
                let body = self.body(node);
                version3(Version3::SourceDocument { href, accumulators, body })
            }
            "assert" => {
                self.attributes(node, &["test", "select", "error-code"], &["test"]);
                let Some(test) = self.expression_attribute(node, "test") else { return Some(None) };
                let code = self.avt_attribute(node, "error-code");
                let scope = self.scope(node);
                let select = self.expression_attribute(node, "select");
                let content = Content { select, body: self.body(node), separator: None };
                version3(Version3::Assert { test, content, code, scope })
            }
            "evaluate" => Some(self.evaluate(node)),
            // Each branch gets the same input; they run one after the other.
            "fork" => {
                self.attributes(node, &[], &[]);
                self.only(node, &["sequence", "for-each-group"]);
                let groups = self.children_named(node, "for-each-group").len();
                if groups > 1 || groups == 1 && !self.children_named(node, "sequence").is_empty() {
                    let message =
                        "XTSE0010: xsl:fork has either xsl:sequence elements or one xsl:for-each-group";
                    self.error(node, message.into());
                }
                let body = self.body(node);
                Some(Some(Op::Version2(Box::new(Version2::Sequential(body)))))
            }
            "merge" => {
                self.attributes(node, &[], &[]);
                self.only(node, &["merge-source", "merge-action"]);
                let sources: Vec<MergeSource> = self
                    .children_named(node, "merge-source")
                    .into_iter()
                    .filter_map(|child| self.merge_source(child))
                    .collect();
                if self.children_named(node, "merge-source").is_empty() {
                    self.error(node, "XTSE0010: xsl:merge needs an xsl:merge-source".into());
                }
                let names: Vec<&str> = sources.iter().filter_map(|source| source.name.as_deref()).collect();
                if let Some(twice) = names
                    .iter()
                    .enumerate()
                    .find(|(at, name)| names[..*at].contains(name))
                    .map(|(_, name)| *name)
                {
                    let message = format!("XTSE3190: two sources of xsl:merge have the name \"{twice}\"");
                    self.error(node, message);
                }
                let keys = sources.first().map_or(0, |source| source.keys.len());
                if sources.iter().any(|source| source.keys.len() != keys) {
                    self.error(
                        node,
                        "XTSE2200: the sources of xsl:merge have different numbers of keys".into(),
                    );
                }
                let actions = self.children_named(node, "merge-action");
                let [action] = actions.as_slice() else {
                    self.error(node, "XTSE0010: xsl:merge needs one xsl:merge-action".into());
                    return Some(None);
                };
                self.attributes(*action, &[], &[]);
                let action = self.body(*action);
                version3(Version3::Merge { sources: sources.into(), action })
            }
            _ => None,
        }
    }

    fn merge_source(&mut self, node: NodeId) -> Option<MergeSource> {
        self.attributes(
            node,
            &[
                "name",
                "for-each-item",
                "for-each-source",
                "select",
                "streamable",
                "use-accumulators",
                "sort-before-merge",
                "validation",
                "type",
            ],
            &["select"],
        );
        self.only(node, &["merge-key"]);
        let each = self.expression_attribute(node, "for-each-item");
        let sources = self.expression_attribute(node, "for-each-source");
        if each.is_some() && sources.is_some() {
            self.error(node, "XTSE3195: xsl:merge-source has both for-each-item and for-each-source".into());
        }
        let select = self.expression_attribute(node, "select")?;
        self.yes_no(node, "streamable");
        let sort_before = self.yes_no(node, "sort-before-merge").unwrap_or(false);
        let mut keys = Vec::new();
        for child in self.children_named(node, "merge-key") {
            self.attributes(child, &["select", "lang", "order", "collation", "case-order", "data-type"], &[]);
            let collation = self.collation(child, "XTDE1035");
            let content = self.select_or_body(child);
            keys.push(MergeKey {
                content,
                descending: self.avt_attribute(child, "order"),
                lang: self.avt_attribute(child, "lang"),
                case_order: self.avt_attribute(child, "case-order"),
                data_type: self.avt_attribute(child, "data-type"),
                collation,
            });
        }
        if keys.is_empty() {
            self.error(node, "XTSE0010: xsl:merge-source needs an xsl:merge-key".into());
        }
        let name = self.attribute(node, "name").map(|name| name.trim().into());
        let accumulators = self.applicable(node);
        Some(MergeSource { name, each, sources, accumulators, select, sort_before, keys: keys.into() })
    }

    /// Children of these names stand before all others (`first`), or behind them.
    fn in_order(&mut self, node: NodeId, names: &[&str], first: bool) {
        let module = self.module.clone();
        let doc = &module.doc;
        let counts = |n: &NodeId| match doc.kind(*n) {
            NodeKind::Element => true,
            NodeKind::Text => !super::is_space(doc.text(*n)),
            _ => false,
        };
        let is_named = |n: NodeId| {
            doc.kind(n) == NodeKind::Element && doc.namespace(n) == XSLT && names.contains(&doc.local(n))
        };
        // Once the other kind has begun, it does not end.
        let mut behind = doc.children(node).filter(counts).skip_while(|n| is_named(*n) == first);
        if let Some(wrong) = behind.find(|n| is_named(*n) == first) {
            let (name, place) = if first { (names.last(), "before") } else { (names.first(), "behind") };
            let name = name.copied().unwrap_or_default();
            self.error_as(wrong, "XTSE0010", format!("xsl:{name} stands {place} all other content"));
        }
    }

    /// The children of that name in the namespace of XSLT.
    pub(super) fn children_named(&self, node: NodeId, name: &str) -> Vec<NodeId> {
        let doc = &self.module.doc;
        doc.children(node).filter(|n| doc.is_element(*n, XSLT, name)).collect()
    }

    /// Content by a `select` attribute or a body, not both.
    fn select_or_body(&mut self, node: NodeId) -> Content {
        let select = self.expression_attribute(node, "select");
        let body = self.body(node);
        if select.is_some() && !body.is_empty() {
            let name = self.module.doc.local(node).to_owned();
            let code = match &*name {
                "on-completion" => "XTSE3125",
                "map-entry" => "XTSE3280",
                "catch" => "XTSE3150",
                "break" => "XTSE3125",
                "merge-key" => "XTSE3200",
                "on-empty" | "on-non-empty" => "XTSE3185",
                _ => "XTSE0010",
            };
            self.error(node, format!("{code}: xsl:{name} has both a select attribute and content"));
        }
        Content { select, body, separator: None }
    }

    fn catch(&mut self, node: NodeId) -> Catch {
        self.attributes(node, &["errors", "select"], &[]);
        let visible = self.locals.len();
        let slot = self.slots;
        for name in CAUGHT {
            let name = self.symbols.intern(ERRORS, name);
            let slot = self.slots;
            self.slots += 1;
            self.locals.push((name, slot));
        }
        let content = self.select_or_body(node);
        self.locals.truncate(visible);
        let list = self.attribute(node, "errors").unwrap_or_default();
        let mut errors = Vec::new();
        for test in list.split_ascii_whitespace().filter(|test| *test != "*") {
            if let Some((uri, local)) = test.strip_prefix("Q{").and_then(|test| test.split_once('}')) {
                errors.push(ErrorTest {
                    namespace: Some(uri.trim().into()),
                    local: (local != "*").then(|| local.into()),
                });
                continue;
            }
            let (prefix, local) = test.split_once(':').unwrap_or(("", test));
            let namespace = match prefix {
                "*" => None,
                "" => Some(Box::from("")),
                prefix => match namespace_of(&self.module.doc, node, prefix) {
                    Some(uri) => Some(uri.into()),
                    None => {
                        self.error(node, format!("XTSE0280: the prefix \"{prefix}\" is not declared"));
                        continue;
                    }
                },
            };
            errors.push(ErrorTest { namespace, local: (local != "*").then(|| local.into()) });
        }
        if list.split_ascii_whitespace().any(|test| test == "*") {
            errors.clear();
        }
        Catch { errors: errors.into(), slot, content }
    }

    /// `xsl:next-iteration` and `xsl:break` must be the last instructions of an `xsl:iterate`.
    fn in_tail_of_iterate(&mut self, node: NodeId) {
        let module = self.module.clone();
        let doc = &module.doc;
        let mut at = node;
        let fine = loop {
            let Some(parent) = doc.parent(at) else { break false };
            let of_choice =
                doc.namespace(at) == XSLT && matches!(doc.local(at), "when" | "otherwise" | "catch");
            let mut next = doc.next_sibling(at);
            let mut last = true;
            while let (Some(sibling), false) = (next, of_choice) {
                last &= match doc.kind(sibling) {
                    NodeKind::Element => {
                        doc.namespace(sibling) == XSLT
                            && matches!(doc.local(sibling), "fallback" | "catch" | "on-completion")
                    }
                    NodeKind::Text => super::is_space(doc.text(sibling)),
                    _ => true,
                };
                next = doc.next_sibling(sibling);
            }
            if !last || doc.namespace(parent) != XSLT {
                break false;
            }
            match doc.local(parent) {
                "iterate" => break true,
                "if" | "choose" | "when" | "otherwise" | "try" | "catch" => at = parent,
                _ => break false,
            }
        };
        if !fine || self.iterates.is_empty() {
            let name = doc.local(node);
            self.error(node, format!("XTSE3120: xsl:{name} must be the last that an xsl:iterate does"));
        }
    }

    /// The parts of a body in which `xsl:on-empty` and `xsl:on-non-empty` stand; `None`: there are none.
    pub(super) fn has_conditions(&self, node: NodeId) -> bool {
        self.plan.version3
            && !self.children_named(node, "on-empty").is_empty()
                | !self.children_named(node, "on-non-empty").is_empty()
    }

    /// A body as parts: `pieces` are the instructions of its children, each with whether it is such a conditional part.
    pub(super) fn conditional(&mut self, node: NodeId, pieces: Vec<(Vec<Instruction>, bool)>) -> Body {
        let mut parts: Vec<Part> = Vec::new();
        let mut current: Vec<Instruction> = Vec::new();
        let mut misplaced = false;
        for (mut piece, condition) in pieces {
            if !condition {
                misplaced |= matches!(parts.last(), Some(Part::OnEmpty(_))) && !piece.is_empty();
                current.append(&mut piece);
                continue;
            }
            if !current.is_empty() {
                parts.push(Part::Always(std::mem::take(&mut current).into()));
            }
            for instruction in piece {
                if let Op::Version2(version2) = instruction.op
                    && let Version2::Version3(version3) = *version2
                    && let Version3::Conditional { parts: inner } = *version3
                {
                    // No part may follow an `xsl:on-empty`.
                    misplaced |= matches!(parts.last(), Some(Part::OnEmpty(_)));
                    parts.extend(inner);
                }
            }
        }
        if !current.is_empty() {
            parts.push(Part::Always(current.into()));
        }
        if misplaced {
            self.error(node, "XTSE0010: xsl:on-empty must come last".into());
        }
        let place = self.place(node);
        let version3 = Version3::Conditional { parts: parts.into() };
        vec![Instruction { op: Op::Version2(Box::new(Version2::Version3(Box::new(version3)))), place }].into()
    }

    /// `xsl:accumulator`.
    pub(super) fn accumulator(&mut self, node: NodeId, precedence: u32) {
        self.attributes(node, &["name", "initial-value", "as", "streamable"], &["name", "initial-value"]);
        self.yes_no(node, "streamable");
        self.only(node, &["accumulator-rule"]);
        let Some(name) = self.symbol_attribute(node, "name") else { return };
        let shown = self.symbols.show(name);
        if self.accumulator_precedence.insert(name, precedence) == Some(precedence) {
            self.error(node, format!("XTSE3350: there are two accumulators \"{shown}\""));
        }
        let declared = self.declared(node, "XTTE0570", &format!("the accumulator {shown}"));
        let Some(initial) = self.expression_attribute(node, "initial-value") else { return };
        let slot = self.slots;
        self.slots += 1;
        let value = self.symbols.intern("", "value");
        let mut rules = Vec::new();
        for child in self.children_named(node, "accumulator-rule") {
            self.attributes(child, &["match", "phase", "select", "new-value", "capture"], &["match"]);
            let at_end = match self.attribute(child, "phase").as_deref().map(str::trim) {
                None | Some("start") => false,
                Some("end") => true,
                Some(other) => {
                    self.error(child, format!("XTSE0020: phase=\"{other}\" is start or end"));
                    false
                }
            };
            let pattern = self.pattern_attribute(child, "match", true);
            self.locals.push((value, slot));
            let content = self.select_or_body(child);
            self.locals.pop();
            let place = self.place(child);
            if let Some(pattern) = pattern {
                rules.push(AccumulatorRule { pattern, at_end, content, place });
            }
        }
        if rules.is_empty() {
            self.error(node, "XTSE0010: xsl:accumulator needs an xsl:accumulator-rule".into());
        }
        let (slots, place) = (self.slots, self.place(node));
        let accumulator = Accumulator { initial, declared, rules: rules.into(), slot, slots, place };
        self.plan.accumulators.insert(name, accumulator);
    }

    /// `use-accumulators`: none by default. Whether there are accumulators of these names is known at the end
    /// ([`Compiler::check_accumulators`]).
    pub(super) fn applicable(&mut self, node: NodeId) -> Applicable {
        let list = self.attribute(node, "use-accumulators").unwrap_or_default();
        if list.trim() == "#all" {
            return Applicable::All;
        }
        let mut names = Vec::new();
        for word in list.split_ascii_whitespace() {
            let wrong = |why: &str| format!("XTSE3300: use-accumulators=\"{list}\": {why}");
            if word.starts_with('#') {
                self.error(node, wrong("#all stands alone"));
                continue;
            }
            let Some((namespace, local)) = self.expand(node, word) else { continue };
            let name = self.symbols.intern(&namespace, &local);
            if names.contains(&name) {
                self.error(node, wrong("a name stands there twice"));
                continue;
            }
            names.push(name);
            let place = self.place(node);
            self.accumulators_used.push((name, place));
        }
        Applicable::Only(names.into())
    }

    /// `use-accumulators` names accumulators that exist.
    pub(super) fn check_accumulators(&mut self) {
        for (name, place) in std::mem::take(&mut self.accumulators_used) {
            if !self.plan.accumulators.contains_key(&name) {
                let shown = self.symbols.show(name);
                let message = format!("XTSE3300: there is no accumulator \"{shown}\" (use-accumulators)");
                self.error_there(place, message);
            }
        }
    }

    /// `xsl:context-item` of a template.
    pub(super) fn context_item(&mut self, node: NodeId) -> Option<Instruction> {
        self.attributes(node, &["use", "as"], &[]);
        self.empty(node);
        let usage = self.attribute(node, "use").unwrap_or_else(|| "optional".to_owned());
        let declared = self.declared(node, "XTTE0590", "the context item");
        if self
            .attribute(node, "as")
            .is_some_and(|ty| ty.trim_end().ends_with(['?', '*', '+']) && !ty.trim_end().ends_with("(*)"))
        {
            self.error(node, "XTSE0020: the context item is one item: its type says no number".into());
        }
        let (required, absent) = match usage.trim() {
            "required" => (true, false),
            "optional" => (false, false),
            "absent" => (false, true),
            other => {
                self.error(node, format!("XTSE0020: use=\"{other}\" must be required, optional or absent"));
                (false, false)
            }
        };
        if absent && declared.is_some() {
            self.error(node, "XTSE3088: an absent context item has no type".into());
        }
        let place = self.place(node);
        let version3 = Version3::ContextItem { required, absent, declared };
        Some(Instruction { op: Op::Version2(Box::new(Version2::Version3(Box::new(version3)))), place })
    }
}

/// The parameters of the enclosing `xsl:iterate`s: names and slots.
pub(crate) type Iterates = Vec<Vec<(Name, usize)>>;
