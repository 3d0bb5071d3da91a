//! The input of a rule: the configuration, its flows, their steps.

use crate::Rule;
use crate::steps::Language;
use config::{Configuration, Element, Key, Sequence, SequenceRef, TargetEndpoint};
use diagnostics::{Diagnostic, Diagnostics, Edit, Fix, Span};
use flow::{Registry, Settings};

/// Elements nested deeper than this are not checked.
const DEEPEST: usize = 200;

/// See the module.
pub struct Look<'a> {
    /// The configuration, without the artifacts that are left out.
    pub configuration: &'a Configuration,
    /// Settings of the engine.
    pub settings: &'a Settings,
    /// The definitions of the mediators.
    pub language: Language,
    flows: Vec<Flow<'a>>,
    found: Diagnostics,
    rule: Option<&'static Rule>,
}

/// When a flow runs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// With a request.
    In,
    /// With the response of an endpoint.
    Out,
    /// After a fault.
    Fault,
    /// A sequence or a template: when somebody calls it.
    Named,
}

/// A list of mediators that an artifact starts.
#[derive(Clone, Copy)]
pub struct Flow<'a> {
    /// When it runs.
    pub phase: Phase,
    /// Its artifact: `proxy P`, `api A`.
    pub owner: Owner<'a>,
    /// The element with the mediators; of a named sequence where it is defined.
    pub list: &'a Element,
    /// The name by which the artifact refers to it.
    pub key: Option<&'a Key>,
    /// The artifact has an endpoint, which gets the messages at the end of the in sequence.
    pub endpoint: bool,
    /// The proxy service or resource that it belongs to: in, out and fault sequences of one have the same number.
    pub artifact: usize,
}

/// The artifact that a flow belongs to.
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    /// `proxy service`, `API`, `sequence`, `template`.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
}

impl<'a> Look<'a> {
    pub(crate) fn new(
        configuration: &'a Configuration,
        registry: &Registry,
        settings: &'a Settings,
    ) -> Look<'a> {
        Look {
            configuration,
            settings,
            language: Language::new(registry),
            flows: flows(configuration),
            found: Diagnostics::new(),
            rule: None,
        }
    }

    pub(crate) fn begin(&mut self, rule: &'static Rule) {
        self.rule = Some(rule);
    }

    pub(crate) fn found(self) -> Diagnostics {
        self.found
    }

    /// A finding of the present rule, at a place; built-in artifacts have none.
    pub fn report(&mut self, finding: Finding) {
        let Some(rule) = self.rule else { return };
        let Finding { message, span, label, others, help, fix } = finding;
        if span.file == diagnostics::FileId::BUILT_IN {
            return;
        }
        let mut diagnostic = Diagnostic::new(rule.id, rule.severity, message).at(span, label);
        for (span, label) in others {
            diagnostic = diagnostic.at(span, label);
        }
        diagnostic.help.extend(help);
        diagnostic.fix = fix.map(Box::new);
        self.found.push(diagnostic);
    }

    /// All flows: of proxy services and APIs, named sequences, templates.
    pub fn flows(&self) -> Vec<Flow<'a>> {
        self.flows.clone()
    }

    /// The lists that are written in the configuration, each once: those of flows, and those within their steps.
    pub fn lists(&self) -> Vec<&'a Element> {
        let mut lists = Vec::new();
        // A flow by key has the list of its sequence.
        for flow in self.flows.iter().filter(|flow| flow.key.is_none()) {
            self.lists_in(flow.list, &mut lists, 0);
        }
        lists
    }

    fn lists_in(&self, list: &'a Element, lists: &mut Vec<&'a Element>, depth: usize) {
        lists.push(list);
        if depth >= DEEPEST {
            return;
        }
        for step in self.language.steps(list) {
            for inner in self.language.lists(step) {
                // A mediator that is a list has its steps among its children.
                self.lists_in(inner, lists, depth + 1);
            }
        }
    }

    /// The steps of a list and of the lists within them.
    pub fn steps_in(&self, list: &'a Element) -> Vec<&'a Element> {
        let mut lists = Vec::new();
        self.lists_in(list, &mut lists, 0);
        lists.into_iter().flat_map(|list| self.language.steps(list)).collect()
    }

    /// All steps that are written in the configuration.
    pub fn steps(&self) -> Vec<&'a Element> {
        self.lists().into_iter().flat_map(|list| self.language.steps(list)).collect()
    }

    /// The steps of a named sequence.
    pub fn sequence(&self, name: &str) -> Option<&'a Sequence> {
        self.configuration.sequences.get(name.trim()).filter(|s| !s.built_in && s.key.is_none())
    }
}

/// A finding of a rule, before it becomes a diagnostic.
pub struct Finding {
    message: String,
    span: Span,
    label: String,
    others: Vec<(Span, String)>,
    help: Vec<String>,
    fix: Option<Fix>,
}

impl Finding {
    /// The message and the place.
    pub fn new(message: impl Into<String>, span: Span, label: impl Into<String>) -> Finding {
        let (message, label) = (message.into(), label.into());
        Finding { message, span, label, others: Vec::new(), help: Vec::new(), fix: None }
    }

    /// Another place that explains it.
    #[must_use]
    pub fn and(mut self, span: Span, label: impl Into<String>) -> Finding {
        self.others.push((span, label.into()));
        self
    }

    /// The remedy.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Finding {
        self.help.push(text.into());
        self
    }

    /// The edit that mends it, where it needs no decision.
    #[must_use]
    pub fn fix(mut self, title: impl Into<String>, edit: Edit) -> Finding {
        self.fix = Some(Fix { title: title.into(), edits: vec![edit] });
        self
    }
}

fn flows(configuration: &Configuration) -> Vec<Flow<'_>> {
    let (mut flows, mut artifact) = (Vec::new(), 0);
    for proxy in configuration.proxies.iter() {
        let owner = Owner { kind: "proxy service", name: &proxy.name };
        artifact += 1;
        let target = &proxy.target;
        let endpoint = matches!(target.endpoint, Some(TargetEndpoint::Named(_) | TargetEndpoint::Inline(_)));
        for (phase, reference) in [
            (Phase::In, &target.in_sequence),
            (Phase::Out, &target.out_sequence),
            (Phase::Fault, &target.fault_sequence),
        ] {
            flows.extend(flow(configuration, owner, phase, reference.as_ref(), endpoint, artifact));
        }
    }
    for api in configuration.apis.iter() {
        let owner = Owner { kind: "API", name: &api.name };
        for resource in &api.resources {
            artifact += 1;
            for (phase, reference) in [
                (Phase::In, &resource.in_sequence),
                (Phase::Out, &resource.out_sequence),
                (Phase::Fault, &resource.fault_sequence),
            ] {
                flows.extend(flow(configuration, owner, phase, reference.as_ref(), false, artifact));
            }
        }
    }
    for sequence in configuration.sequences.iter().filter(|s| !s.built_in) {
        let name = sequence.name.as_ref().map_or("", |name| &name.value);
        let owner = Owner { kind: "sequence", name };
        flows.push(Flow {
            phase: Phase::Named,
            owner,
            list: &sequence.element,
            key: None,
            endpoint: false,
            artifact: 0,
        });
    }
    for template in configuration.sequence_templates.iter() {
        let owner = Owner { kind: "template", name: &template.name };
        let list = &template.sequence.element;
        flows.push(Flow { phase: Phase::Named, owner, list, key: None, endpoint: false, artifact: 0 });
    }
    flows
}

fn flow<'a>(
    configuration: &'a Configuration,
    owner: Owner<'a>,
    phase: Phase,
    reference: Option<&'a SequenceRef>,
    endpoint: bool,
    artifact: usize,
) -> Option<Flow<'a>> {
    let (list, key) = match reference? {
        SequenceRef::Inline(sequence) if sequence.key.is_none() => (&sequence.element, None),
        SequenceRef::Inline(_) => return None,
        SequenceRef::Named(key) => {
            let sequence = configuration.sequences.get(key.trim())?;
            if sequence.built_in || sequence.key.is_some() {
                return None;
            }
            (&sequence.element, Some(key))
        }
    };
    Some(Flow { phase, owner, list, key, endpoint, artifact })
}
