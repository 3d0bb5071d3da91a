//! Top-level elements (XSLT 1.0 section 2.2): all names are declared first, then everything is compiled.

use super::decimal_formats::DeclaredFormat;
use super::{Compiler, Declaration, XSLT, is_space};
use crate::expr::{Expr, namespace_of};
use crate::functions::EXSLT_FUNCTIONS;
use crate::model::{
    AttributeSet, Binding, Function, Global, Identity, Key, Op, Place, SetPart, SpaceRule, SpaceTest,
    Template, Typed, makes_text, mark_tails,
};
use crate::names::Name;
use crate::output::{PROPERTIES, Writing, properties_by_version};
use crate::pattern::{Rule, Rules};
use std::collections::HashMap;
use xml::{NodeId, NodeKind};
use xpath::Collation;

impl Compiler<'_> {
    pub(super) fn declare(&mut self) {
        self.plan.version2 = self.is_version2_stylesheet();
        self.plan.version3 = self.plan.version2 && self.is_version3_stylesheet();
        self.plan.evaluates = self.options.evaluate;
        self.check_modules();
        let declarations = std::mem::take(&mut self.declarations);
        self.plan.modes.push(Rules::default());
        self.register(&declarations);
        if !self.errors.is_empty() {
            return;
        }
        // Reserved: globals are filled in by the index they were registered with.
        let mut globals: Vec<Option<Global>> = (0..self.globals.len()).map(|_| None).collect();
        let mut global_precedence: HashMap<Name, u32> = HashMap::new();
        let mut references: Vec<Vec<usize>> = vec![Vec::new(); self.globals.len()];
        for (order, declaration) in declarations.iter().enumerate() {
            self.at(declaration);
            let doc = &declaration.module.doc;
            let node = declaration.node;
            match (doc.namespace(node), doc.local(node)) {
                (XSLT, "template") => self.template(node, order as u32),
                (XSLT, local @ ("variable" | "param")) => {
                    self.referred.borrow_mut().clear();
                    let Some(global) = self.global(node, local == "param") else { continue };
                    // Declarations come in ascending precedence: the last one counts.
                    global_precedence.insert(global.name, declaration.precedence);
                    if let Some(at) = self.globals.get(&global.name).copied() {
                        references[at] = self.referred.take();
                        globals[at] = Some(global);
                    }
                }
                (XSLT, "key") => self.key(node),
                (XSLT, "accumulator") if self.plan.version3 => self.accumulator(node, declaration.precedence),
                (XSLT, "attribute-set") => self.attribute_set(node),
                (EXSLT_FUNCTIONS, "function") => self.function(node),
                (XSLT, "function") if self.version2 => self.version2_function(node),
                (XSLT, _) => {}
                _ if node == declaration.module.root => self.simplified(node, order as u32),
                _ => {}
            }
        }
        self.plan.globals = globals.into_iter().flatten().collect();
        self.check_calls();
        if let (true, Some(last)) = (self.plan.version3, declarations.last()) {
            self.at(last);
            self.plan.initial_mode = self.default_mode(last.module.root);
        }
        self.check_accumulators();
        self.check_cycles(&references);
        self.check_sets();
        self.resolve_character_maps();
        self.plan.writing = Writing::new(&self.plan.output, self.plan.version2, self.plan.version3);
        for rule in std::mem::take(&mut self.all_modes) {
            self.plan.modes.iter_mut().for_each(|mode| mode.rules.push(rule.clone()));
        }
        self.check_strict_modes();
        let names = self.plan.names.len();
        for mode in &mut self.plan.modes {
            mode.build(names);
            let templates = &self.plan.templates;
            mode.know_empty(|at| {
                let template = &templates[at];
                template.body.is_empty() && template.returns.is_none() && template.parameters.is_empty()
            });
        }
    }

    fn at(&mut self, declaration: &Declaration) {
        self.module = declaration.module.clone();
        self.precedence = declaration.precedence;
        self.imports_from = declaration.imports_from;
        self.at_version_of(declaration.node);
        self.locals.clear();
        self.fragments.clear();
        self.slots = 0;
        self.depth = 0;
        self.in_function = false;
    }

    /// The first pass: names, and everything that has no expressions in it.
    fn register(&mut self, declarations: &[Declaration]) {
        let mut templates = 0;
        let mut precedence_of: HashMap<(&str, Name, usize), u32> = HashMap::new();
        let mut doubles = Vec::new();
        let mut space: Vec<(u32, i32, SpaceRule)> = Vec::new();
        let mut formats: HashMap<Name, DeclaredFormat> = HashMap::new();
        for declaration in declarations {
            self.at(declaration);
            let doc = &declaration.module.doc;
            let node = declaration.node;
            // Functions of XSLT 2.0 differ by their numbers of parameters, too.
            let mut unique = |kind: &'static str, name: Name, arity: usize| {
                let key = (kind, name, arity);
                if precedence_of.insert(key, declaration.precedence) == Some(declaration.precedence) {
                    doubles.push((declaration, key));
                }
            };
            if doc.namespace(node) == XSLT
                && matches!(doc.local(node), "template" | "function" | "attribute-set" | "variable")
            {
                self.check_visibility(node);
            }
            match (doc.namespace(node), doc.local(node)) {
                (XSLT, "template") => {
                    if let Some(name) = self.symbol_attribute(node, "name") {
                        unique("template", name, 0);
                        self.named.insert(name, templates);
                    }
                    templates += 1;
                }
                (XSLT, "variable" | "param") => {
                    if let Some(name) = self.symbol_attribute(node, "name") {
                        unique("global variable", name, 0);
                        let next = self.globals.len();
                        self.globals.entry(name).or_insert(next);
                        if doc.local(node) == "variable"
                            && doc.attribute(node, "", "select").is_none()
                            && doc.children(node).any(|n| doc.kind(n) == NodeKind::Element)
                        {
                            self.global_fragments.insert(name);
                        } else {
                            self.global_fragments.remove(&name);
                        }
                    }
                }
                (XSLT, "key") => {
                    self.symbol_attribute(node, "name");
                }
                (XSLT, "attribute-set") => {
                    if let Some(name) = self.symbol_attribute(node, "name") {
                        let next = self.sets.len();
                        self.sets.entry(name).or_insert(next);
                        if next == self.plan.sets.len() {
                            self.plan.sets.push(AttributeSet { name, parts: Vec::new() });
                        }
                    }
                }
                (XSLT, "output") => self.output(node),
                (XSLT, "decimal-format") => self.decimal_format(node, &mut formats),
                (XSLT, local @ ("strip-space" | "preserve-space")) => {
                    self.attributes(node, &["elements"], &["elements"]);
                    self.empty(node);
                    let list = self.attribute(node, "elements").unwrap_or_default();
                    for test in list.split_ascii_whitespace() {
                        if let Some((priority, test)) = self.space_test(node, test) {
                            let rule = SpaceRule { test, strip: local == "strip-space" };
                            space.push((declaration.precedence, priority, rule));
                        }
                    }
                }
                (XSLT, "namespace-alias") => self.namespace_alias(node),
                (EXSLT_FUNCTIONS, "function") => {
                    if let Some(name) = self.symbol_attribute(node, "name") {
                        unique("function", name, usize::MAX);
                        if self.symbols.get(name).0.is_empty() {
                            self.error_as(node, "XTSE0740", "the name of a function needs a prefix".into());
                        }
                        let next = (self.functions.len() + self.version2_functions.len()) as u32;
                        self.functions.entry(name).or_insert(next);
                    }
                }
                (XSLT, "function") if self.version2 => {
                    if let Some(name) = self.symbol_attribute(node, "name") {
                        let arity = self.function_arity(node);
                        if self.symbols.get(name).0.is_empty() {
                            self.error(node, "XTSE0740: the name of a function needs a prefix".into());
                        }
                        let next = (self.functions.len() + self.version2_functions.len()) as u32;
                        let slot = *self.version2_functions.entry((name, arity)).or_insert(next);
                        // (The last one has the highest precedence.)
                        let types = self.function_types(node);
                        self.function_types.insert(slot, types);
                        unique("function", name, arity);
                    }
                }
                (XSLT, "character-map") if self.version2 => self.character_map(node),
                (XSLT, "mode") if self.plan.version3 => self.mode_declaration(node),
                (XSLT, "accumulator") if self.plan.version3 => {}
                (XSLT, "global-context-item") if self.plan.version3 => self.global_context_item(node),
                (XSLT, "expose") if self.plan.version3 => self.expose(node),
                (XSLT, "use-package") if self.plan.version3 => self.use_package(node),
                (XSLT, "import-schema") if self.version2 => {
                    self.error(node, "XTSE1650: xsl:import-schema: there are no schemas".into());
                }
                (XSLT, "import") => self.error_as(node, "XTSE0200", "xsl:import must come first".into()),
                // Elements of later versions at the top level are unknown (3.0 section 3.10).
                (XSLT, _) if self.plan.version3 && self.forwards => {}
                (XSLT, local)
                    if node != declaration.module.root
                        && (!self.forwards || super::elements::is_instruction(local)) =>
                {
                    let message = match super::elements::is_of_version3(local) {
                        true => format!("xsl:{local} of XSLT 3.0 is not supported"),
                        false => format!("xsl:{local} is not allowed at the top level"),
                    };
                    self.error_as(node, "XTSE0010", message);
                }
                ("", local) if node != declaration.module.root => {
                    self.error_as(
                        node,
                        "XTSE0130",
                        format!("\"{local}\" is not allowed at the top level: it is in no namespace"),
                    );
                }
                _ if node == declaration.module.root => templates += 1,
                _ => {}
            }
        }
        for (declaration, key @ (kind, name, arity)) in doubles {
            // From 2.0 on that is no error where another one, of a higher precedence, overrides both.
            if self.version2 && precedence_of.get(&key) != Some(&declaration.precedence) {
                continue;
            }
            self.at(declaration);
            let shown = self.symbols.show(name);
            let (code, message) = match kind {
                "template" => ("XTSE0660", format!("there are two templates with the name \"{shown}\"")),
                "function" if arity != usize::MAX => {
                    ("XTSE0770", format!("there are two functions {shown} with {arity} parameters"))
                }
                "function" => ("XTSE0770", format!("there are two functions with the name \"{shown}\"")),
                _ => ("XTSE0630", format!("there are two {kind}s with the name \"{shown}\"")),
            };
            self.error_as(declaration.node, code, message);
        }
        for ((_, name), place) in std::mem::take(&mut self.mode_attributes).contraries() {
            let message = format!("XTSE0545: xsl:mode says different things about {name} of one mode");
            self.error_there(place, message);
        }
        let aliases = std::mem::take(&mut self.alias_targets);
        for (uri, place) in aliases.contraries() {
            if !self.plan.version2 {
                continue;
            }
            let message = format!("XTSE0810: xsl:namespace-alias gives \"{uri}\" two aliases");
            self.error_there(place, message);
        }
        for ((_, name), place) in std::mem::take(&mut self.output_attributes).contraries() {
            let message = format!("XTSE1560: xsl:output says different things about {name} of one output");
            self.error_there(place, message);
        }
        // Highest precedence first, then priority, then the last in the stylesheet.
        if self.plan.version3 {
            self.check_space(&space);
        }
        space.reverse();
        space.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.cmp(&a.1)));
        self.plan.space = space.into_iter().map(|(_, _, rule)| rule).collect();
        let default = self.symbols.find("", "");
        for (name, declared) in formats {
            if self.plan.version2 {
                self.check_decimal_format(name, &declared);
            }
            let format = declared.format;
            if Some(name) == default {
                self.plan.default_format = format;
            } else {
                self.plan.formats.insert(name, format);
            }
        }
    }

    /// From XSLT 3.0 on it is an error if a name is both stripped and preserved by declarations of the same import precedence.
    fn check_space(&mut self, rules: &[(u32, i32, SpaceRule)]) {
        // Import precedences ascend: only the declarations of the highest one count.
        let mut decided: HashMap<&SpaceTest, (u32, bool, bool)> = HashMap::new();
        for (precedence, _, rule) in rules {
            let last = decided.entry(&rule.test).or_insert((*precedence, rule.strip, false));
            *last = match last.0 == *precedence {
                true => (*precedence, rule.strip, last.2 || last.1 != rule.strip),
                false => (*precedence, rule.strip, false),
            };
        }
        if decided.values().any(|(_, _, contrary)| *contrary) {
            let message = "XTSE0270: xsl:strip-space and xsl:preserve-space name the same elements";
            self.fail(self.options.uri, message.into());
        }
    }

    fn space_test(&mut self, node: NodeId, test: &str) -> Option<(i32, SpaceTest)> {
        if test == "*" {
            return Some((0, SpaceTest::Any));
        }
        if let Some(local) = test.strip_prefix("*:").filter(|local| self.version2 && xml::is_ncname(local)) {
            return Some((1, SpaceTest::Local(local.to_owned())));
        }
        if let Some(uri) = test.strip_prefix("Q{").and_then(|rest| rest.strip_suffix("}*"))
            && self.plan.version3
            && !uri.contains('{')
        {
            return Some((1, SpaceTest::Namespace(uri.to_owned())));
        }
        if let Some(prefix) = test.strip_suffix(":*") {
            let module = self.module.clone();
            return match namespace_of(&module.doc, node, prefix) {
                Some(uri) => Some((1, SpaceTest::Namespace(uri.to_owned()))),
                None => {
                    self.error_as(node, "XTSE0280", format!("the prefix \"{prefix}\" is not declared"));
                    None
                }
            };
        }
        if self.forwards && !super::is_qname(test) {
            return None;
        }
        let (namespace, local) = self.expand(node, test)?;
        let namespace = if test == local { self.default_namespace(node) } else { namespace };
        Some((2, SpaceTest::Name(namespace, local)))
    }

    fn namespace_alias(&mut self, node: NodeId) {
        self.attributes(
            node,
            &["stylesheet-prefix", "result-prefix"],
            &["stylesheet-prefix", "result-prefix"],
        );
        self.empty(node);
        let module = self.module.clone();
        let side = |compiler: &mut Self, name: &str| -> Option<(String, String)> {
            let value = compiler.attribute(node, name)?;
            let prefix = if value == "#default" { "" } else { value.as_str() };
            match namespace_of(&module.doc, node, prefix) {
                Some(uri) => Some((prefix.to_owned(), uri.to_owned())),
                None if prefix.is_empty() => Some((String::new(), String::new())),
                None => {
                    compiler.error_as(node, "XTSE0812", format!("the prefix \"{prefix}\" is not declared"));
                    None
                }
            }
        };
        if let (Some((_, from)), Some((prefix, to))) =
            (side(self, "stylesheet-prefix"), side(self, "result-prefix"))
        {
            let place = self.place(node);
            self.alias_targets.say(from.clone(), self.precedence, to.clone(), place);
            self.aliases.insert(from, (to, prefix, self.precedence));
        }
    }

    fn output(&mut self, node: NodeId) {
        let (first, _) = properties_by_version();
        self.attributes(node, &[first, &["cdata-section-elements"]].concat(), &[]);
        self.empty(node);
        let name_attribute = self.attribute(node, "name").filter(|_| self.version2);
        let name = name_attribute.and_then(|name| self.symbol(node, &name));
        let mut output = match name {
            None => std::mem::take(&mut self.plan.output),
            Some(name) => self.plan.outputs.remove(&name).unwrap_or_default(),
        };
        let place = self.place(node);
        self.used_maps.entry(name).or_default().1 = place;
        if let Some(maps) = self.attribute(node, "use-character-maps").filter(|_| self.version2) {
            for map in maps.split_ascii_whitespace() {
                let map = self.symbol(node, map);
                self.used_maps.entry(name).or_default().0.extend(map);
            }
        }
        if let Some(href) = self.attribute(node, "parameter-document").filter(|_| self.plan.version3)
            && let Err(message) = self.parameter_document(node, &href, &mut output)
        {
            self.error(node, message);
        }
        for property in PROPERTIES {
            let Some(value) = self.attribute(node, property) else { continue };
            if property == "method"
                && let Some((prefix, _)) = value.trim().split_once(':')
                && namespace_of(&self.module.doc, node, prefix).is_none()
            {
                self.error_as(node, "XTSE1570", format!("the prefix \"{prefix}\" is not declared"));
            }
            if !self.version2 && super::version2::is_attribute("output", property, false)
                || crate::output::is_third(property) && !self.plan.version3
            {
                continue;
            }
            if let Err(error) = output.set(property, &value, self.version2)
                && !self.forwards
            {
                let message = if self.version2 { error.coded("XTSE0020") } else { error.message };
                self.error(node, message);
            }
            if self.version2 {
                let said = match (crate::output::is_yes_or_no(property), value.trim()) {
                    (true, "true" | "1") => "yes",
                    (true, "false" | "0") => "no",
                    (_, value) => value,
                };
                self.output_attributes.say((name, property), self.precedence, said.to_owned(), place);
            }
        }
        for name in self.element_names(node, "cdata-section-elements") {
            if !output.cdata_section_elements.contains(&name) {
                output.cdata_section_elements.push(name);
            }
        }
        if self.plan.version3 {
            for name in self.element_names(node, "suppress-indentation") {
                if !output.suppress_indentation.contains(&name) {
                    output.suppress_indentation.push(name);
                }
            }
        }
        match name {
            None => (self.plan.output, self.plan.output_place) = (output, place),
            Some(name) => {
                self.plan.outputs.insert(name, output);
            }
        }
    }

    fn parameter_document(
        &mut self,
        node: NodeId,
        href: &str,
        output: &mut crate::output::OutputProperties,
    ) -> Result<(), String> {
        let base = self.base_of(&self.module, node);
        let uri = self.options.resolver.absolute(href.trim(), &base);
        let bytes =
            self.options.resolver.read(&uri).map_err(|e| format!("FODC0002: parameter-document: {e}"))?;
        let options = xml::ParseOptions { dtd: self.options.dtd.clone(), ..xml::ParseOptions::trusted() };
        let doc = xml::Document::parse(bytes, &options).map_err(|e| format!("FODC0002: {uri}:{e}"))?;
        output.set_by_document(&doc)
    }

    /// The element names in an attribute; the default namespace applies.
    fn element_names(&mut self, node: NodeId, attribute: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for name in self.attribute(node, attribute).unwrap_or_default().split_ascii_whitespace() {
            let Some((mut namespace, local)) = self.expand(node, name) else { continue };
            if !name.contains([':', '}']) {
                namespace = namespace_of(&self.module.doc, node, "").unwrap_or("").to_owned();
            }
            found.push((namespace, local));
        }
        found
    }

    // The second pass.

    fn template(&mut self, node: NodeId, order: u32) {
        self.attributes(node, &["match", "name", "priority", "mode"], &[]);
        let module = self.module.clone();
        let doc = &module.doc;
        let has_match = doc.attribute(node, "", "match").is_some();
        if !has_match && doc.attribute(node, "", "name").is_none() {
            self.error_as(node, "XTSE0500", "xsl:template needs a match or a name attribute".into());
        }
        if self.version2 && !has_match {
            for name in ["priority", "mode"] {
                if doc.attribute(node, "", name).is_some() {
                    self.error(node, format!("XTSE0500: an xsl:template without match has no {name}"));
                }
            }
        }
        let priority = doc.attribute(node, "", "priority").and_then(|text| {
            let number = text.trim().parse::<f64>().ok().filter(|p| p.is_finite());
            if number.is_none() {
                self.error_as(node, "XTSE0530", format!("priority=\"{text}\" is not a number"));
            }
            number
        });
        let modes = if self.version2 { self.template_modes(node) } else { Some(Vec::new()) };
        let mode = match doc.attribute(node, "", "mode") {
            _ if self.version2 => 0,
            // "#all" and lists of modes belong to later versions: in 1.0 such a rule is in no mode.
            Some(mode) if self.forwards && !super::is_qname(mode.trim()) => usize::MAX,
            Some(mode) => {
                let mode = mode.to_owned();
                self.mode(node, &mode)
            }
            None => 0,
        };
        let pattern = self.pattern_attribute(node, "match", true);
        let returns = self.declared(node, "XTTE0505", "the result of the template");
        let template = self.plan.templates.len();
        let (parameters, mut body) = self.parameterised(node);
        let returns =
            returns.filter(|declared| !super::functions::surely_is(&body, &declared.ty)).map(Box::new);
        if returns.is_none() {
            mark_tails(&mut body);
        }
        let title = match (doc.attribute(node, "", "match"), doc.attribute(node, "", "name")) {
            (Some(pattern), _) => format!("match=\"{pattern}\""),
            (None, name) => format!("name=\"{}\"", name.unwrap_or_default()),
        };
        self.plan.templates.push(Template {
            title: title.into(),
            place: self.place(node),
            identity: Identity::of(&body).filter(|_| returns.is_none()),
            body,
            parameters,
            slots: self.slots,
            returns,
            absent: self.plan.version3 && self.has_no_context(node),
            precedence: self.precedence,
            imports_from: self.imports_from,
        });
        for alternative in pattern.map(|p| p.alternatives).unwrap_or_default() {
            let rule = Rule {
                plain: alternative.is_plain(),
                priority: priority.unwrap_or_else(|| alternative.priority(self.version2)),
                alternative: alternative.into(),
                template,
                precedence: self.precedence,
                order,
            };
            if self.version2 {
                match &modes {
                    None => self.all_modes.push(rule),
                    Some(modes) => {
                        modes.iter().for_each(|mode| self.plan.modes[*mode].rules.push(rule.clone()))
                    }
                }
                continue;
            }
            if let Some(mode) = self.plan.modes.get_mut(mode) {
                mode.rules.push(rule);
            }
        }
    }

    /// Whether an `xsl:template` has `<xsl:context-item use="absent"/>`.
    fn has_no_context(&self, node: NodeId) -> bool {
        let usage = |n: &NodeId| self.module.doc.attribute(*n, "", "use").map(str::trim);
        self.children_named(node, "context-item").first().and_then(usage) == Some("absent")
    }

    /// A literal result element as stylesheet (section 2.3).
    fn simplified(&mut self, node: NodeId, order: u32) {
        let template = self.plan.templates.len();
        let body = self.single(node);
        self.plan.templates.push(Template {
            title: "match=\"/\"".into(),
            place: self.place(node),
            body,
            parameters: Box::default(),
            slots: self.slots,
            identity: None,
            returns: None,
            absent: false,
            precedence: self.precedence,
            imports_from: self.imports_from,
        });
        let alternative =
            crate::pattern::Alternative { steps: Box::default(), anchor: crate::pattern::Anchor::Root };
        self.plan.modes[0].rules.push(Rule {
            plain: true,
            priority: alternative.priority(self.version2),
            alternative: alternative.into(),
            template,
            precedence: self.precedence,
            order,
        });
    }

    /// The number of a mode.
    pub(super) fn mode(&mut self, node: NodeId, name: &str) -> usize {
        let Some(name) = self.symbol(node, name) else { return 0 };
        if let Some(mode) = self.modes.get(&name) {
            return *mode;
        }
        let mode = self.plan.modes.len();
        self.plan.modes.push(Rules::default());
        self.modes.insert(name, mode);
        mode
    }

    fn global(&mut self, node: NodeId, is_parameter: bool) -> Option<Global> {
        self.attributes(node, &["name", "select"], &["name"]);
        let name = self.symbol_attribute(node, "name")?;
        let required = is_parameter && self.version2 && self.yes_no(node, "required").unwrap_or(false);
        let value = match required {
            false => self.binding(node),
            true => {
                let shown = self.symbols.show(name);
                let value = Binding::Required(format!("XTDE0050: the parameter ${shown} is required").into());
                match self.declared(node, "XTTE0590", &format!("the parameter ${shown}")) {
                    Some(declared) => Binding::As(Box::new(Typed { value, declared })),
                    None => value,
                }
            }
        };
        Some(Global { name, is_parameter, value, slots: self.slots, place: self.place(node) })
    }

    fn key(&mut self, node: NodeId) {
        let content = self.version2 && doc_has_no(&self.module.doc, node, "use");
        self.attributes(
            node,
            &["name", "match", "use"],
            if content { &["name", "match"] } else { &["name", "match", "use"] },
        );
        let typed = self.version2;
        let collation = match self.attribute(node, "collation").filter(|_| self.version2) {
            Some(uri) => match Collation::find(&uri) {
                Ok(collation) => collation,
                Err(message) => return self.error(node, format!("XTSE1210: {message}")),
            },
            None => Collation::default(),
        };
        if content {
            if !self.has_content(node) {
                self.error(node, "XTSE1205: xsl:key needs a use attribute or content".into());
            }
        } else if self.version2 && self.has_content(node) {
            self.error(node, "XTSE1205: xsl:key has both a use attribute and content".into());
        } else {
            self.empty(node);
        }
        let Some(name) = self.symbol_attribute(node, "name") else { return };
        let pattern = self.pattern_attribute(node, "match", true);
        let source = self.attribute(node, "use").unwrap_or_default();
        let module = self.module.clone();
        let scope = crate::expr::ElementScope { doc: &module.doc, node };
        let library = crate::expr::Library { variables: self.version2, ..self.library() };
        let default = self.default_namespace(node);
        let dialect = crate::expr::Dialect { level: self.language(), namespace: &default };
        let compiled = match content {
            true => None,
            false => Some(Expr::compile(&source, &scope, &library, &self.pool, &module.uri, dialect)),
        };
        let value = match compiled {
            None => Binding::Sequence(self.body(node)),
            Some(Ok(value)) => Binding::Select(value),
            Some(Err(message)) => {
                self.error(node, message);
                return;
            }
        };
        let slots = self.slots;
        let composite = self.plan.version3 && self.yes_no(node, "composite").unwrap_or(false);
        if let Some(pattern) = pattern {
            let place = self.place(node);
            let keys = self.plan.keys.entry(name).or_default();
            if keys.first().is_some_and(|key| key.composite != composite) {
                let shown = self.symbols.show(name);
                return self
                    .error(node, format!("XTSE1222: the key \"{shown}\" is composite here and not there"));
            }
            if keys.first().is_some_and(|key| key.collation != collation) {
                let shown = self.symbols.show(name);
                return self.error(node, format!("XTSE1220: the key \"{shown}\" has two collations"));
            }
            keys.push(Key { pattern, value, slots, typed, collation, composite, place });
        }
    }

    fn attribute_set(&mut self, node: NodeId) {
        self.attributes(node, &["name", "use-attribute-sets"], &["name"]);
        let module = self.module.clone();
        let doc = &module.doc;
        for child in doc.children(node) {
            let fine = match doc.kind(child) {
                NodeKind::Element => doc.is_element(child, XSLT, "attribute"),
                NodeKind::Text => is_space(doc.text(child)),
                _ => true,
            };
            if !fine && !self.forwards {
                self.error_as(child, "XTSE0010", "only xsl:attribute is allowed in xsl:attribute-set".into());
            }
        }
        let Some(set) = self.symbol_attribute(node, "name").and_then(|name| self.sets.get(&name).copied())
        else {
            return;
        };
        let uses = self.uses(node, "");
        // Only attributes: preserved white space is not content here.
        let body: Vec<_> = self.body(node).into_iter().collect();
        let is_attribute = |op: &Op| match op {
            Op::Attribute { .. } => true,
            Op::Version2(version2) => matches!(**version2, crate::version2::Version2::Attribute { .. }),
            _ => false,
        };
        let body = body.into_iter().filter(|i| is_attribute(&i.op)).collect();
        let part = SetPart { uses, body, slots: self.slots, place: self.place(node) };
        self.plan.sets[set].parts.push(part);
    }

    /// The sets named in `use-attribute-sets` (in XSLT's namespace at literal result elements).
    pub(super) fn uses(&mut self, node: NodeId, namespace: &str) -> Box<[usize]> {
        let list = self.module.doc.attribute(node, namespace, "use-attribute-sets").unwrap_or("").to_owned();
        let mut uses = Vec::new();
        for name in list.split_ascii_whitespace() {
            let Some(symbol) = self.symbol(node, name) else { continue };
            match self.sets.get(&symbol) {
                Some(set) => uses.push(*set),
                None => self.error_as(node, "XTSE0710", format!("there is no attribute set \"{name}\"")),
            }
        }
        uses.into()
    }

    fn function(&mut self, node: NodeId) {
        self.attributes(node, &["name"], &["name"]);
        let Some(name) = self.symbol_attribute(node, "name") else { return };
        self.in_function = true;
        let (parameters, body) = self.parameterised(node);
        self.in_function = false;
        let place = self.place(node);
        let function = Function {
            name,
            parameters,
            slots: self.slots,
            body,
            version2: false,
            keeps: false,
            public: true,
            returns: None,
            place,
        };
        let slot = self.functions.get(&name).copied().unwrap_or(0);
        self.plan.functions.insert(slot, function);
    }

    /// A global variable may not need itself (section 11.4). `references`: what each refers to.
    fn check_cycles(&mut self, references: &[Vec<usize>]) {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            No,
            Open,
            Done,
        }
        let mut seen = vec![Seen::No; references.len()];
        for start in 0..references.len() {
            // Depth first: the path from `start`, and how many references of each were followed.
            let mut way = vec![(start, 0)];
            while let Some((at, followed)) = way.last_mut() {
                let at = *at;
                let next = references[at].get(*followed).copied();
                *followed += 1;
                match next {
                    _ if seen[at] == Seen::Done => {
                        way.pop();
                    }
                    None => {
                        seen[at] = Seen::Done;
                        way.pop();
                    }
                    Some(next) if seen.get(next) == Some(&Seen::Open) || next == at => {
                        let Some(global) = self.plan.globals.get(next) else { return };
                        let (place, code) =
                            (global.place, if self.plan.version2 { "XTDE0640: " } else { "" });
                        let name = self.symbols.show(global.name);
                        let uri = self.plan.modules.get(place.module as usize).cloned().unwrap_or_default();
                        self.errors.push(crate::XsltError {
                            message: format!("{code}the variable ${name} needs its own value"),
                            uri,
                            line: place.line,
                            column: place.column,
                            raised: None,
                        });
                        return;
                    }
                    Some(next) => {
                        seen[at] = Seen::Open;
                        if next < references.len() && seen[next] == Seen::No {
                            way.push((next, 0));
                        }
                    }
                }
            }
        }
    }

    /// An attribute set may not use itself (section 7.1.4).
    fn check_sets(&mut self) {
        for start in 0..self.plan.sets.len() {
            let mut open = vec![start];
            let mut seen = Vec::new();
            while let Some(at) = open.pop() {
                for next in self.plan.sets[at].parts.iter().flat_map(|p| p.uses.iter()) {
                    if *next == start {
                        let name = self.symbols.show(self.plan.sets[start].name);
                        let code = if self.plan.version2 { "XTSE0720: " } else { "" };
                        let place = self.plan.sets[start].parts.first().map_or(Place::default(), |p| p.place);
                        let uri = self.plan.modules.get(place.module as usize).cloned().unwrap_or_default();
                        self.errors.push(crate::XsltError {
                            message: format!("{code}the attribute set \"{name}\" uses itself"),
                            uri,
                            line: place.line,
                            column: place.column,
                            raised: None,
                        });
                        return;
                    }
                    if !seen.contains(next) {
                        seen.push(*next);
                        open.push(*next);
                    }
                }
            }
        }
    }

    /// The value of a variable, parameter or argument element.
    pub(super) fn binding(&mut self, node: NodeId) -> Binding {
        if let Some(typed) = self.typed_binding(node) {
            return typed;
        }
        self.no_content_beside_select(node);
        if let Some(select) = self.expression_attribute(node, "select") {
            return Binding::Select(select);
        }
        if !self.has_content(node) {
            return Binding::Empty;
        }
        let body = self.body(node);
        if makes_text(&body) { Binding::Text(body) } else { Binding::Body(body) }
    }

    pub(super) fn has_content(&self, node: NodeId) -> bool {
        let doc = &self.module.doc;
        doc.children(node).any(|n| match doc.kind(n) {
            NodeKind::Element => true,
            NodeKind::Text => !is_space(doc.text(n)) || self.keeps_space(node),
            _ => false,
        })
    }

    pub(super) fn no_content_beside_select(&mut self, node: NodeId) {
        let module = self.module.clone();
        let doc = &module.doc;
        if doc.attribute(node, "", "select").is_some() && self.has_content(node) && !self.forwards {
            self.error_as(
                node,
                "XTSE0620",
                format!("{} has both a select attribute and content", doc.qname(node)),
            );
        }
    }
}

fn doc_has_no(doc: &xml::Document, node: NodeId, attribute: &str) -> bool {
    doc.attribute(node, "", attribute).is_none()
}
