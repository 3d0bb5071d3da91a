//! Compiles a configuration into a [`Plan`].
//!
//! Every mediator, expression and key is checked here; an artifact with an error is left out and recorded, the
//! others serve.

mod artifacts;
mod data;
pub mod definition;
mod endpoints;
mod events;
mod executors;
mod handlers;
mod inbound;
mod inside;
mod number;
pub mod page;
mod processors;
mod services;
mod tasks;
mod unsupported;
mod vfs;
mod wsdl;

pub use self::unsupported::Unsupported;
pub use self::vfs::report as report_file_address;

use self::definition::{Children, Registry, Values};
use crate::expression::synapse::Text;
use crate::expression::{Expression, KeyValue, Outcome};
use crate::runtime::endpoint::{Endpoint, InlineEndpoint};
use crate::runtime::mediator::{ListId, Mediator};
use crate::runtime::plan::{Entry, List, Plan, Planned};
use crate::runtime::reference::{EndpointRef, SequenceRef};
use crate::runtime::services::Services;
use crate::state::identity::Identity;
use crate::vault::{Lookup, Vault, lookups};
use config::read::{respell_attribute, respell_element, respell_value};
use config::{ArtifactKind, Configuration, Element, FaultyArtifact, Key};
use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use message::regex::Pattern;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Attributes that every mediator may have.
pub const COMMON_ATTRIBUTES: &[&str] =
    &["description", "trace", "statistics", "traceFilter", "statistics-id", "hashCode"];

/// What mediators and endpoints are compiled with.
pub struct Compiler<'a> {
    /// The configuration.
    pub configuration: &'a Configuration,
    /// The findings so far.
    pub diagnostics: &'a mut Diagnostics,
    /// Findings about artifacts other than the one that is compiled.
    aside: Diagnostics,
    /// What the process shares.
    pub services: &'a Services,
    registry: &'a Registry,
    lists: Vec<Option<List>>,
    sequences: HashMap<String, ListId>,
    /// The operations of libraries that are used.
    operations: HashMap<String, ListId>,
    endpoints: HashMap<String, Arc<dyn Endpoint>>,
    named: endpoints::Named,
    inline: Vec<InlineEndpoint>,
    entries: HashMap<String, Entry>,
    vault: Vault,
    inside: Inside,
    parts: Parts,
    /// The artifacts that are left out.
    faulty: Vec<FaultyArtifact>,
}

/// The artifact that is compiled, for the identities of its parts.
struct Inside {
    artifact: Identity,
    /// How many parts of each name there are so far.
    parts: HashMap<String, u32>,
}

impl Inside {
    fn of(artifact: Identity) -> Inside {
        Inside { artifact, parts: HashMap::new() }
    }
}

/// The parts of the mediator that is compiled, as its page lists them.
#[derive(Default)]
struct Parts {
    of: Option<Span>,
    inside: &'static [page::Inside],
}

static UNIQUE: AtomicU64 = AtomicU64::new(1);

/// Compiles `configuration`. Errors are added to `diagnostics`; what could be compiled is in the plan.
pub fn compile(
    configuration: &Configuration,
    sources: SourceMap,
    faulty: Vec<FaultyArtifact>,
    registry: &Registry,
    services: &Services,
    diagnostics: &mut Diagnostics,
) -> Plan {
    let compiler = Compiler {
        configuration,
        diagnostics,
        aside: Diagnostics::new(),
        services,
        registry,
        lists: Vec::new(),
        sequences: HashMap::new(),
        operations: HashMap::new(),
        endpoints: HashMap::new(),
        named: endpoints::Named::default(),
        inline: Vec::new(),
        entries: HashMap::new(),
        vault: Vault::new(
            services.settings.vault_directory.clone(),
            services.settings.docker_secrets.clone(),
            services.settings.vault_key.clone(),
            &configuration.root,
        )
        .with_sealed(services.settings.vault_sealed.clone())
        .with_remote(services.settings.vault_remote.clone()),
        inside: Inside::of(Identity::of(ArtifactKind::Definitions, "")),
        parts: Parts::default(),
        faulty,
    };
    compiler.plan(sources)
}

fn is_traced(element: &Element) -> bool {
    element.attr("trace") == Some("enable")
}

impl Compiler<'_> {
    fn reserve(&mut self) -> ListId {
        self.lists.push(None);
        ListId(self.lists.len() as u32 - 1)
    }

    fn fill(&mut self, id: ListId, label: String, element: &Element, on_error: Option<&Key>) {
        let on_error = on_error.and_then(|key| self.handler(key));
        let steps = self.steps(element, &[]);
        self.lists[id.0 as usize] =
            Some(List { label, steps, on_error, trace: is_traced(element), span: element.span() });
    }

    /// A fault handler by name; one that does not exist is a warning and no handler.
    pub fn handler(&mut self, key: &Key) -> Option<ListId> {
        let key = &trimmed(key);
        // An attribute without a value is none.
        if key.value.is_empty() {
            return None;
        }
        let found = self.sequences.get(&key.value).copied().or_else(|| self.registry_sequence(key));
        if found.is_none() {
            let names: Vec<_> = self.sequences.keys().cloned().collect();
            self.diagnostics.push(
                Diagnostic::warning("unknown-sequence", format!("there is no sequence `{}`", key.value))
                    .at(key.span, "so errors go to the next handler outside")
                    .did_you_mean(&key.value, names.iter().map(String::as_str)),
            );
        }
        found
    }

    /// Compiles the mediators inside an element (those that are not named in `skip`) into a list.
    pub fn list(&mut self, element: &Element, label: impl Into<String>) -> ListId {
        self.list_but(element, label, &[])
    }

    /// As [`Compiler::list`], without the children called as in `skip`.
    pub fn list_but(&mut self, element: &Element, label: impl Into<String>, skip: &[&str]) -> ListId {
        let on_error = element.attribute("onError").map(Key::of);
        let on_error = on_error.and_then(|key| self.handler(&key));
        let steps = self.steps(element, skip);
        let id = self.reserve();
        self.lists[id.0 as usize] = Some(List {
            label: label.into(),
            steps,
            on_error,
            trace: is_traced(element),
            span: element.span(),
        });
        id
    }

    /// Makes a list of mediators that a mediator is made of; `name` and `element` are its own.
    pub fn list_of(
        &mut self,
        element: &Element,
        name: &'static str,
        label: impl Into<String>,
        mediators: Vec<Box<dyn Mediator>>,
    ) -> ListId {
        let span = element.start_tag();
        self.list_at(element, name, label, mediators.into_iter().map(|mediator| (span, mediator)))
    }

    /// As [`Compiler::list_of`], for mediators that have places of their own.
    pub fn list_at(
        &mut self,
        element: &Element,
        name: &'static str,
        label: impl Into<String>,
        mediators: impl IntoIterator<Item = (Span, Box<dyn Mediator>)>,
    ) -> ListId {
        let span = element.start_tag();
        let steps =
            mediators.into_iter().map(|(place, mediator)| Planned::new(mediator, name, place)).collect();
        let id = self.reserve();
        self.lists[id.0 as usize] =
            Some(List { label: label.into(), steps, on_error: None, trace: false, span });
        id
    }

    fn steps(&mut self, element: &Element, skip: &[&str]) -> Vec<Planned> {
        config::read::stray_text(element, self.diagnostics);
        // Directly in a mediator, one of its parts may be meant.
        let parts = if self.parts.of == Some(element.span()) { self.parts.inside } else { &[] };
        let mut steps = Vec::new();
        for child in element.elements() {
            if skip.contains(&child.local()) || child.is("description") {
                continue;
            }
            if let Some(planned) = self.mediator(child, parts) {
                steps.push(planned);
            }
        }
        steps
    }

    /// Compiles one mediator.
    fn mediator(&mut self, element: &Element, beside: &[page::Inside]) -> Option<Planned> {
        let name = element.local();
        let Some(definition) = self.registry.definition(name) else {
            let unsupported = unsupported::mediator(element, self);
            if unsupported.is_none() {
                self.unknown_mediator(element, beside);
            }
            return unsupported;
        };
        let mark = self.diagnostics.len();
        for attribute in element.attributes() {
            let local = &*attribute.name.local;
            if !attribute.name.namespace.is_empty() || COMMON_ATTRIBUTES.contains(&local) {
                continue;
            }
            match definition.attributes.iter().find(|declared| declared.name == local) {
                None => {
                    let names = definition.attributes.iter().map(|declared| declared.name);
                    let names = names.chain(COMMON_ATTRIBUTES.iter().copied());
                    let message = format!("`{name}` has no attribute `{local}`");
                    let found = Diagnostic::warning("unknown-attribute", message)
                        .at(attribute.name_span, "this has no effect")
                        .did_you_mean(local, names.clone());
                    self.diagnostics.push(respell_attribute(found, element, attribute, names));
                }
                Some(declared) => self.check_value(attribute, declared.values),
            }
        }
        for declared in definition.attributes.iter().filter(|declared| declared.required) {
            if element.attribute(declared.name).is_none() {
                self.diagnostics.push(
                    Diagnostic::error(
                        "missing-attribute",
                        format!("`{name}` needs the attribute `{}`", declared.name),
                    )
                    .at(element.start_tag(), format!("{}: {}", declared.name, declared.meaning)),
                );
            }
        }
        self.check_children(element, definition.children);
        self.check_inside(element, definition);
        if self.diagnostics.has_errors_since(mark) {
            return None;
        }
        self.parts = Parts { of: Some(element.span()), inside: definition.page.inside };
        let compiled: Option<Box<dyn Mediator>> = (definition.compile)(element, self);
        if compiled.is_none() && !self.diagnostics.has_errors_since(mark) {
            // The mediator gave neither a step nor an error: it must not be left out without one.
            let message = format!("`{}` is incomplete", definition.name);
            self.diagnostics.push(Diagnostic::error("incomplete-mediator", message).at(
                element.start_tag(),
                format!("see docs/mediators/{}.md for what it needs", definition.name),
            ));
        }
        let mediator = compiled?;
        Some(Planned::new(mediator, definition.name, element.start_tag()))
    }

    fn unknown_mediator(&mut self, element: &Element, beside: &[page::Inside]) {
        let name = element.local();
        let diagnostic = match name.contains('.') {
            true => Diagnostic::error(
                "unsupported-mediator",
                format!("connector operation `{name}` is not executable here"),
            )
            .at(element.name_span(), "connectors are Java libraries"),
            false => {
                let definitions = self.registry.definitions.iter().map(|definition| definition.name);
                let parts = beside.iter().filter(|part| !part.way().contains('/')).map(page::Inside::name);
                let names = parts.chain(definitions);
                let names = names.chain(self.registry.unsupported.iter().map(|(name, _)| *name));
                let found = Diagnostic::error("unknown-mediator", format!("there is no mediator `{name}`"))
                    .at(element.name_span(), "not a mediator")
                    .did_you_mean(name, names.clone());
                respell_element(found, element, names)
            }
        };
        self.diagnostics.push(diagnostic);
    }

    fn check_value(&mut self, attribute: &config::Attribute, values: Values) {
        let value = attribute.value.trim();
        if let Values::Boolean = values
            && !["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word))
        {
            self.diagnostics.push(
                Diagnostic::warning(
                    "bad-value",
                    format!("`{}` should not be `{value}`", attribute.name.local),
                )
                .at(attribute.value_span, "expected `true` or `false`; all else counts as `false`")
                .did_you_mean(value, ["true", "false"]),
            );
        }
        if let Values::Word(words) = values
            && !words.contains(&value)
        {
            let default = words.first().copied().unwrap_or_default();
            let message = format!("`{}` should not be `{value}`", attribute.name.local);
            let found = Diagnostic::warning("bad-value", message)
                .at(attribute.value_span, format!("counts as `{default}`; expected {}", quoted(words)))
                .did_you_mean(value, words.iter().copied());
            self.diagnostics.push(respell_value(found, attribute, words.iter().copied()));
        }
        let expected = match values {
            Values::Integer if value.parse::<i64>().is_err() => "a whole number".to_owned(),
            Values::OneOf(words) if !words.contains(&value) => quoted(words),
            _ => return,
        };
        let mut diagnostic =
            Diagnostic::error("bad-value", format!("`{}` cannot be `{value}`", attribute.name.local))
                .at(attribute.value_span, format!("expected {expected}"));
        if let Values::OneOf(words) = values {
            diagnostic = diagnostic.did_you_mean(value, words.iter().copied());
            diagnostic = respell_value(diagnostic, attribute, words.iter().copied());
        }
        self.diagnostics.push(diagnostic);
    }

    fn check_children(&mut self, element: &Element, children: Children) {
        let allowed: &[&str] = match children {
            Children::Mediators => return,
            Children::None => &[],
            Children::Elements(names) => names,
        };
        if allowed.contains(&"*") {
            return;
        }
        let mediators = allowed.contains(&"#mediators");
        for child in element.elements() {
            if child.is("description") {
                continue;
            }
            if allowed.contains(&child.local()) || mediators {
                continue; // compiling mediators reports what is none
            }
            let expected = if allowed.is_empty() {
                "ignored: no content is allowed here".to_owned()
            } else {
                format!("ignored: expected {}", quoted(allowed))
            };
            let message = format!("`{}` has no effect inside of `{}`", child.local(), element.local());
            let found = Diagnostic::warning("ignored-element", message)
                .at(child.name_span(), expected)
                .did_you_mean(child.local(), allowed.iter().copied());
            self.diagnostics.push(respell_element(found, child, allowed.iter().copied()));
        }
    }

    /// Compiles parts of an artifact.
    fn inside<T>(&mut self, artifact: Identity, compile: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.inside, Inside::of(artifact));
        let made = compile(self);
        self.inside = outer;
        made
    }

    /// The identity of the artifact that is compiled.
    pub fn artifact_identity(&self) -> &Identity {
        &self.inside.artifact
    }

    /// The identity of a part of the artifact that is compiled, by its name or description; of several with the same one
    /// their order tells them apart.
    pub fn identity(&mut self, part: &str) -> Identity {
        let count = self.inside.parts.entry(part.to_owned()).or_default();
        *count += 1;
        match *count {
            1 => self.inside.artifact.part(part),
            n => self.inside.artifact.part(&format!("{part}#{n}")),
        }
    }

    /// A number for what has to be told apart in the whole process.
    pub fn unique(&self) -> u64 {
        UNIQUE.fetch_add(1, Ordering::Relaxed)
    }

    /// Records an error at a place.
    pub fn error(
        &mut self,
        rule: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) {
        self.diagnostics.push(Diagnostic::error(rule, message).at(span, label));
    }

    /// Records a warning at a place.
    pub fn warning(
        &mut self,
        rule: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) {
        self.diagnostics.push(Diagnostic::warning(rule, message).at(span, label));
    }

    /// The expression in an attribute; `None` if it is absent, or wrong (recorded).
    pub fn expression(&mut self, element: &Element, attribute: &str) -> Option<Expression> {
        let attribute = element.attribute(attribute)?;
        self.expression_text(&attribute.value, attribute.value_span, element.scope())
    }

    /// An expression; `None` if it is wrong (recorded).
    pub fn expression_text(&mut self, text: &str, span: Span, scope: &config::Scope) -> Option<Expression> {
        if text.trim().is_empty() {
            self.error(
                "empty-expression",
                "the expression is empty",
                span,
                "expected an XPath, json-eval(…) or ${…}",
            );
            return None;
        }
        match Expression::compile(text, scope, span, &self.services.settings) {
            Ok(expression) => {
                let start = text.len() - text.trim_start().len() + 2;
                for warning in expression.warnings() {
                    let place = span.part(start + warning.span.start, warning.span.len().max(1));
                    self.warning("expression", warning.message.clone(), place, warning.advice.clone());
                }
                if !expression.is_synapse() && !expression.is_json() {
                    self.check_point(text, span);
                }
                self.check_secrets(text, span);
                Some(expression)
            }
            Err(error) => {
                let place = span.part(error.offset.start, error.offset.len().max(1));
                let text = text.trim();
                let found = match error.outcome {
                    Outcome::Refused => {
                        Diagnostic::error("bad-expression", format!("`{text}` is not a valid expression"))
                    }
                    Outcome::Nothing if error.message.contains("is not declared") => {
                        Diagnostic::warning("undeclared-prefix", format!("`{text}` will select nothing"))
                    }
                    Outcome::Nothing => {
                        Diagnostic::warning("bad-expression", format!("`{text}` will give nothing"))
                    }
                    Outcome::Fault => Diagnostic::warning(
                        "bad-expression",
                        format!("`{text}` cannot be evaluated: each message faults here"),
                    ),
                };
                let found = found.at(place, error.message.clone());
                self.diagnostics.push(match error.is_xpath2 {
                    true => found.help(
                        "it is XPath 2.0: with `\"synapse.xpath.dom.failover.enabled\" = true` under [wso2] in busbar.toml it runs, on the first child of the body",
                    ),
                    false => found,
                });
                let runs = error.outcome != Outcome::Refused;
                runs.then(|| Expression::broken(text, span, error.message, error.outcome))
            }
        }
    }

    /// Warns where an expression gives numbers and what they are compared with fits only one way to write them: `2` here,
    /// `2.0` in WSO2.
    pub fn check_numbers(&mut self, source: &Expression, pattern: &Pattern, place: Span) {
        if !source.gives_number() {
            return;
        }
        let java = self.services.settings.java_numbers;
        let fits =
            |form: &dyn Fn(u32) -> String| (0..=100).any(|number| pattern.matches(&form(number)) == Ok(true));
        let (plain, double) = (fits(&|n| n.to_string()), fits(&|n| format!("{n}.0")));
        let (message, label) = match (plain, double) {
            (false, true) if !java => (
                "a number is `2` here and `2.0` in WSO2: this never matches",
                "write it without `.0`, or set java_numbers = true in busbar.toml",
            ),
            (true, false) if !java => (
                "a number is `2` here and `2.0` in WSO2: this matches here only",
                "string(…) around the source means the same in both",
            ),
            (true, false) => (
                "with java_numbers a number is `2.0`: this never matches",
                "write it with `.0`, or put string(…) around the source",
            ),
            _ => return,
        };
        self.warning("number-form", message, place, label);
    }

    /// Warns where a text is taken out of a number by its point, which numbers have in WSO2 only.
    fn check_point(&mut self, text: &str, span: Span) {
        let dense: String = text.split_whitespace().collect();
        let cut = ["substring-before(", "substring-after("].iter().find_map(|name| dense.split_once(name));
        let by_point = cut.is_some_and(|(_, rest)| rest.contains(",'.')") || rest.contains(",\".\")"));
        if self.services.settings.java_numbers || !by_point {
            return;
        }
        self.warning(
            "number-form",
            "a whole number has no point here; in WSO2 `3` that an XPath has computed is `3.0`",
            span,
            "the part before the point of such a number is empty here: leave the function out, or set java_numbers = true in busbar.toml",
        );
    }

    /// Warns of the secrets that an expression names and that cannot be had now: messages that need one fault.
    fn check_secrets(&mut self, text: &str, span: Span) {
        for Lookup { remote, arguments, place } in lookups(text) {
            let argument = |at: usize| arguments.get(at).copied();
            let secret = match remote {
                true => self.vault.remote(&arguments, true),
                false => self.vault.look_up(argument(0).unwrap_or_default(), argument(1), argument(2)),
            };
            if let Err(missing) = secret {
                let place = span.part(place.start, place.len());
                let message =
                    format!("the secret of `{}` is not available: messages that need it fault", text.trim());
                self.warning("unknown-secret", message, place, missing.why);
            }
        }
    }

    /// A value of a configuration that may come from outside: `$SYSTEM:NAME` and its kind, `$env{NAME}`, a secret as `$secret{alias}` or as
    /// `{wso2:vault-lookup('alias')}`. `None` if it cannot be had (recorded).
    pub fn outside(&mut self, key: &Key) -> Option<String> {
        let text = key.value.trim();
        let within = |mark: &str| text.strip_prefix(mark).and_then(|rest| rest.strip_suffix('}'));
        if let Some(name) = within("$env{") {
            let value = self.configuration.injector.environment(name.trim());
            if value.is_none() {
                let message = format!("the environment variable `{name}` is not set");
                let found = match self.services.settings.check_only {
                    true => Diagnostic::warning("unresolved-value", message),
                    false => Diagnostic::error("unresolved-value", message),
                };
                self.diagnostics.push(found.at(key.span, "needed for this value"));
                return self.services.settings.check_only.then(String::new);
            }
            return value;
        }
        let call = text.trim_start_matches(['$', '{']).trim_end_matches('}').trim();
        let looked_up = match (within("$secret{"), lookups(call).first()) {
            (Some(alias), _) => Some((alias.to_owned(), self.vault.look_up(alias, None, None))),
            (None, Some(Lookup { remote, arguments, place }))
                if place.end == call.len() && !call[..place.start].contains(' ') =>
            {
                let argument = |at: usize| arguments.get(at).copied();
                let alias = argument(0).unwrap_or_default();
                let secret = match remote {
                    true => self.vault.remote(arguments, true),
                    false => self.vault.look_up(alias, argument(1), argument(2)),
                };
                Some((alias.to_owned(), secret))
            }
            _ => None,
        };
        let Some((alias, secret)) = looked_up else {
            let mark = self.diagnostics.len();
            let resolved = self.configuration.injector.resolve(key.clone(), self.diagnostics);
            return (!self.diagnostics.has_errors_since(mark)).then_some(resolved.value);
        };
        match secret {
            Ok(secret) => Some(secret),
            Err(missing) => {
                let message = format!("the secret `{alias}` is not available");
                if missing.absent && self.services.settings.check_only {
                    let found = Diagnostic::warning("unknown-secret", message).at(key.span, missing.why);
                    self.diagnostics.push(found.help("the machine that runs it needs it"));
                    return Some(String::new());
                }
                self.error("unknown-secret", message, key.span, missing.why);
                None
            }
        }
    }

    /// Warns where a text has a `${` that is not closed. `place` gives that of an offset.
    pub fn check_closed(&mut self, text: &str, place: impl FnOnce(usize) -> Span) {
        if let Some(open) = ::expression::unclosed(text) {
            let label = "so what follows is text, not an expression";
            self.warning("expression", "the `${` is not closed", place(open), label);
        }
    }

    /// A text with `${…}` in it; `None` if one of them is wrong (recorded).
    pub fn text(&mut self, text: &str, span: Span, scope: &config::Scope) -> Option<Text> {
        self.check_closed(text, |open| span.part(open, 2));
        let cut = ::expression::Template::cut(text, |expression, at| {
            self.expression_text(expression, span.part(at, expression.len()), scope).ok_or(())
        });
        cut.ok().map(Text::of)
    }

    /// An attribute that is a literal, or an expression in braces.
    pub fn key_value(&mut self, element: &Element, attribute: &str) -> Option<KeyValue> {
        let attribute = element.attribute(attribute)?;
        match config::Value::of(attribute, element) {
            config::Value::Literal(key) => Some(KeyValue::Literal(Arc::from(key.value))),
            config::Value::Deferred(key) => Some(KeyValue::Literal(Arc::from(key.value))),
            config::Value::Expression(expression) => self
                .expression_text(&expression.source, expression.span, &expression.scope)
                .map(KeyValue::Dynamic),
        }
    }

    /// The sequence that an attribute names; a static name that does not exist is a warning, and a fault at run time.
    pub fn sequence(&mut self, element: &Element, attribute: &str) -> Option<SequenceRef> {
        let attribute = element.attribute(attribute)?;
        match config::Value::parse(attribute.value.trim(), attribute.value_span, element.scope()) {
            config::Value::Literal(key) | config::Value::Deferred(key) => Some(self.sequence_key(&key)),
            config::Value::Expression(expression) => self
                .expression_text(&expression.source, expression.span, &expression.scope)
                .map(|expression| SequenceRef::Dynamic(Box::new(expression))),
        }
    }

    /// A sequence by key.
    pub fn sequence_key(&mut self, key: &Key) -> SequenceRef {
        let key = &trimmed(key);
        if let Some(&list) = self.sequences.get(&key.value) {
            return SequenceRef::Known(list);
        }
        if let Some(list) = self.registry_sequence(key) {
            return SequenceRef::Known(list);
        }
        if self.is_not_fetched(&key.value) {
            return SequenceRef::Missing(Arc::from(key.value.as_str()));
        }
        let names: Vec<_> = self.sequences.keys().cloned().collect();
        self.diagnostics.push(
            Diagnostic::warning("unknown-sequence", format!("there is no sequence `{}`", key.value))
                .at(key.span, "messages that come here fault")
                .did_you_mean(&key.value, names.iter().map(String::as_str)),
        );
        SequenceRef::Missing(Arc::from(key.value.as_str()))
    }

    /// A list by reference or inline, as artifacts have them.
    pub fn sequence_of(&mut self, reference: &config::SequenceRef, label: &str) -> SequenceRef {
        match reference {
            config::SequenceRef::Named(key) => self.sequence_key(key),
            config::SequenceRef::Inline(sequence) => {
                let id = self.reserve();
                self.fill(id, label.to_owned(), &sequence.element, sequence.on_error.as_ref());
                SequenceRef::Known(id)
            }
        }
    }

    fn entry_element(&mut self, key: &Key) -> Option<Element> {
        if let Some(entry) = self.configuration.local_entries.get(&key.value)
            && let Some(element) = entry.element(key.span.file)
        {
            return Some(element);
        }
        let bytes = self.configuration.registry.read(&key.value).ok().flatten()?.bytes;
        config::parse(key.span.file, &String::from_utf8_lossy(&bytes)).ok()
    }

    /// A sequence from the registry, compiled once per plan.
    fn registry_sequence(&mut self, key: &Key) -> Option<ListId> {
        let bytes = self.configuration.registry.read(&key.value).ok().flatten()?.bytes;
        let element = config::parse(diagnostics::FileId::BUILT_IN, &String::from_utf8_lossy(&bytes)).ok()?;
        if !element.is("sequence") {
            return None;
        }
        let id = self.reserve();
        self.sequences.insert(key.value.clone(), id);
        let on_error = element.attribute("onError").map(Key::of);
        // Its findings do not belong to the artifact that names it first.
        let outer = std::mem::take(self.diagnostics);
        let made = self.artifact(ArtifactKind::Sequence, &key.value, key.span, |compiler| {
            compiler.fill(id, format!("sequence {}", key.value), &element, on_error.as_ref());
            Some(())
        });
        let found = std::mem::replace(self.diagnostics, outer);
        self.aside.extend(found);
        if made.is_none() {
            self.leave_out(id, &key.value, key.span);
        }
        Some(id)
    }

    /// The endpoint that an `<endpoint>` element is or names; `None` after a recorded error.
    pub fn endpoint(&mut self, element: &Element) -> Option<Arc<EndpointRef>> {
        let endpoint = config::Endpoint::parse_with(element, &self.configuration.injector, self.diagnostics)?;
        self.endpoint_of(&endpoint)
    }

    /// The endpoint of its configuration.
    pub fn endpoint_of(&mut self, endpoint: &config::Endpoint) -> Option<Arc<EndpointRef>> {
        Some(Arc::new(match &endpoint.kind {
            config::EndpointKind::Reference(key) => {
                match config::Value::parse(&key.value, key.span, endpoint.element.scope()) {
                    config::Value::Expression(expression) => EndpointRef::Dynamic(Box::new(
                        self.expression_text(&expression.source, expression.span, &expression.scope)?,
                    )),
                    _ => return Some(self.endpoint_key(key)),
                }
            }
            config::EndpointKind::Resolving(expression) => EndpointRef::Dynamic(Box::new(
                self.expression_text(&expression.source, expression.span, &expression.scope)?,
            )),
            _ => {
                let made = (self.registry.endpoints)(endpoint, self)?;
                let (artifact, span) = (self.inside.artifact.clone(), endpoint.span);
                self.inline.push(InlineEndpoint { artifact, span, endpoint: Arc::clone(&made) });
                EndpointRef::Known(made)
            }
        }))
    }

    /// The endpoint of a key.
    pub fn endpoint_key(&mut self, key: &Key) -> Arc<EndpointRef> {
        let key = &trimmed(key);
        if let Some(endpoint) = self.named_endpoint(key) {
            return Arc::new(EndpointRef::Known(endpoint));
        }
        // One that is there and faulty, or leads round in a circle, is reported as such.
        if !self.named.tried.contains(&key.value) && !self.is_not_fetched(&key.value) {
            let names: Vec<_> = self.configuration.endpoints.iter().filter_map(|e| e.name.as_ref()).collect();
            self.diagnostics.push(
                Diagnostic::warning("unknown-endpoint", format!("there is no endpoint `{}`", key.value))
                    .at(key.span, "messages that come here fault with 305100")
                    .did_you_mean(&key.value, names.iter().map(|name| name.value.as_str())),
            );
        }
        Arc::new(EndpointRef::Missing(Arc::from(key.value.as_str())))
    }

    /// What there is to compile with.
    pub fn registry(&self) -> &Registry {
        self.registry
    }

    /// The bytes behind a key, if it is known when the configuration loads.
    pub fn entry(&self, key: &str) -> Option<Entry> {
        let key = key.trim();
        match self.entries.get(key) {
            Some(entry) => Some(entry.clone()),
            None => self.configuration.registry.read(key).ok().flatten().map(|found| Entry::of(found.bytes)),
        }
    }

    /// Whether a key is that of an entry on another server, which is not fetched when a configuration is only looked at.
    pub fn is_not_fetched(&self, key: &str) -> bool {
        let entry = self.configuration.local_entries.get(key.trim());
        entry.map_or_else(
            || self.configuration.registry.is_not_fetched(key.trim()),
            |entry| matches!(entry.value, config::Entry::NotFetched),
        )
    }

    /// The file that a local entry was loaded from, if it was.
    pub fn entry_origin(&self, key: &str) -> Option<std::path::PathBuf> {
        self.configuration.local_entries.get(key).and_then(|entry| entry.origin.clone())
    }

    /// A regular expression of Java's dialect that has to match a whole value.
    pub fn pattern(&mut self, element: &Element, attribute: &str) -> Option<Pattern> {
        let attribute = element.attribute(attribute)?;
        match Pattern::compile(&attribute.value) {
            Ok(pattern) => Some(pattern),
            Err(why) => {
                self.error(
                    "bad-pattern",
                    format!("`{}` is not a valid regular expression", attribute.value),
                    attribute.value_span,
                    why,
                );
                None
            }
        }
    }
}

/// A key without the white space around it, which no name has.
fn trimmed(key: &Key) -> Key {
    Key { value: key.value.trim().to_owned(), span: key.span }
}

/// Names for a sentence.
fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A truth as the engines read it: `true` in any case; anything else is false.
pub fn truth(element: &Element, attribute: &str, default: bool) -> bool {
    element.attr(attribute).map_or(default, |value| value.trim().eq_ignore_ascii_case("true"))
}
