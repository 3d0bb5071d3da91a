//! What each flow of a plan reads of a message, step by step: the facts behind `busbar explain`.

use diagnostics::{FileId, Span};
use flow::endpoint::{Endpoint, EndpointFormat};
use flow::reference::EndpointRef;
use flow::stage::{Stage, Way};
use flow::{ListId, Need, Plan, SequenceRef};
use message::SoapVersion;
use std::collections::HashSet;
use std::sync::Arc;

/// Lists nested deeper than this are not followed.
const DEEPEST: usize = 100;

/// A flow: a proxy service, a resource of an API, a task, a sequence or a template.
pub struct Flow {
    /// `proxy`, `api`, `task`, `sequence`, `template`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The resource of an API.
    pub resource: Option<String>,
    /// Where it is written.
    pub span: Span,
    /// What happens to messages before it and behind it.
    pub stages: Vec<Around>,
    /// In, out and fault.
    pub parts: Vec<Part>,
}

/// A stage of a service.
#[derive(PartialEq)]
pub struct Around {
    /// Its name.
    pub name: &'static str,
    /// `before` or `behind` the flow.
    pub place: &'static str,
    /// What it reads of the messages that it has to do with.
    pub need: Need,
    /// Why.
    pub why: &'static str,
}

impl Around {
    fn all(stages: &[Arc<dyn Stage>]) -> Vec<Around> {
        let ways = [("before", Way::In), ("behind", Way::Out)];
        let around = ways.iter().flat_map(|&(place, way)| {
            let stages = stages.iter().filter(move |stage| !stage.reason(way).is_empty());
            stages.map(move |stage| Around {
                name: stage.name(),
                place,
                need: stage.need(way),
                why: stage.reason(way),
            })
        });
        around.collect()
    }
}

/// One way through a flow.
pub struct Part {
    /// `in`, `out`, `fault`, or nothing where a flow has only one.
    pub label: &'static str,
    /// A sequence that is used by name.
    pub sequence: Option<String>,
    /// Its steps.
    pub steps: Vec<Step>,
    /// Where the message goes after them.
    pub endpoint: Vec<Behind>,
}

/// A mediator.
pub struct Step {
    /// Its element name.
    pub name: &'static str,
    /// What it reads, its endpoints included.
    pub need: Need,
    /// Why.
    pub why: String,
    /// Where it is written.
    pub span: Span,
    /// Where it sends to.
    pub endpoints: Vec<Behind>,
    /// The lists inside.
    pub branches: Vec<Branch>,
}

/// A list inside a mediator.
pub struct Branch {
    /// `then`, `case a|b`; empty where the list is all there is.
    pub label: String,
    /// A sequence that is used by name.
    pub sequence: Option<String>,
    /// Its steps; none where they were shown before.
    pub steps: Vec<Step>,
    /// Its steps were shown before in this flow.
    pub shown_before: bool,
}

/// An endpoint that messages go to.
pub struct Behind {
    /// Its name, or a description.
    pub name: String,
    /// How many copies of a message it gets.
    pub times: usize,
    /// The addresses below that the name does not say.
    pub addresses: Vec<String>,
    /// What it reads beyond the headers.
    pub need: Need,
    /// Why.
    pub why: String,
}

impl Flow {
    /// What its dearest step needs; what runs after a fault does not count.
    pub fn need(&self) -> Need {
        let parts = self.parts.iter().filter(|part| part.label != "fault");
        parts.map(Part::need).max().unwrap_or(Need::Nothing)
    }

    /// The first step that needs as much.
    pub fn dearest(&self) -> Option<&Step> {
        let parts = self.parts.iter().filter(|part| part.label != "fault");
        let need = self.need();
        parts.filter_map(|part| find(&part.steps, need)).next()
    }
}

fn find(steps: &[Step], need: Need) -> Option<&Step> {
    steps.iter().find_map(|step| match step.need == need {
        true => Some(step),
        false => step.branches.iter().find_map(|branch| find(&branch.steps, need)),
    })
}

impl Part {
    /// What its dearest step needs.
    pub fn need(&self) -> Need {
        dearest(&self.steps)
            .max(self.endpoint.iter().map(|endpoint| endpoint.need).max().unwrap_or(Need::Nothing))
    }
}

impl Step {
    /// What it or the dearest step inside it needs.
    fn overall(&self) -> Need {
        let inside = self.branches.iter().map(|branch| dearest(&branch.steps)).max();
        self.need.max(inside.unwrap_or(Need::Nothing))
    }
}

fn dearest(steps: &[Step]) -> Need {
    steps.iter().map(Step::overall).max().unwrap_or(Need::Nothing)
}

/// Every flow of a plan: proxies, APIs, tasks, `main`, then the sequences that no other flow uses and the templates. With
/// a name, the flows of that name alone, sequences that others use included.
pub fn flows(plan: &Plan, name: Option<&str>) -> Vec<Flow> {
    let mut flows = Vec::new();
    let mut used = HashSet::new();
    let passes_on = |fault: Option<ListId>| {
        fault.or_else(|| plan.sequence("fault")).is_some_and(|list| plan.passes_on(list))
    };
    let is_wanted = |flow: &str| name.is_none_or(|name| name == flow);
    let mut add = |mut flow: Flow, parts: &mut dyn FnMut(&mut Walk<'_>) -> Vec<Part>| {
        let mut walk = Walk { plan, shown: HashSet::new(), depth: 0, kept: false };
        flow.parts = parts(&mut walk);
        used.extend(walk.shown);
        if is_wanted(&flow.name) {
            flows.push(flow);
        }
    };
    for proxy in plan.proxies() {
        let mut flow = Flow::new("proxy", &proxy.name, proxy.span);
        flow.stages = Around::all(&proxy.stages);
        add(flow, &mut |walk| {
            walk.kept = passes_on(proxy.fault_sequence);
            let mut parts = vec![walk.start("in", proxy.in_sequence.as_ref())];
            parts[0].endpoint = proxy.endpoint.iter().map(|reference| walk.behind(reference)).collect();
            parts.extend(proxy.out_sequence.map(|list| walk.part("out", list)));
            walk.kept = false;
            parts.extend(proxy.fault_sequence.map(|list| walk.part("fault", list)));
            parts
        });
    }
    for api in plan.apis() {
        for resource in &api.resources {
            let mut flow = Flow::new("api", &api.name, api.span);
            flow.stages = Around::all(&api.stages);
            flow.resource = Some(format!("{} {}", resource.methods, resource.label).trim().to_owned());
            add(flow, &mut |walk| {
                walk.kept = passes_on(resource.fault_sequence);
                let mut parts = vec![walk.start("in", resource.in_sequence.as_ref())];
                parts.extend(resource.out_sequence.map(|list| walk.part("out", list)));
                walk.kept = false;
                parts.extend(resource.fault_sequence.map(|list| walk.part("fault", list)));
                parts
            });
        }
    }
    for task in plan.tasks() {
        let Some(list) = task.sequence(plan) else { continue };
        add(Flow::new("task", &task.name, task.span), &mut |walk| vec![walk.part("", list)]);
    }
    let mut lists: Vec<_> = plan.sequences().map(|(name, list)| ("sequence", name, list)).collect();
    lists.sort_by_key(|(_, name, _)| (*name != "main", *name));
    let mut templates: Vec<_> =
        plan.templates().map(|(name, template)| ("template", name, template.list)).collect();
    templates.sort_by_key(|(_, name, _)| *name);
    lists.extend(templates);
    for (kind, flow_name, list) in lists {
        let span = plan.list(list).span;
        let is_new = span.file != FileId::BUILT_IN && !used.contains(&list);
        if is_new || name == Some(flow_name) {
            let mut walk = Walk { plan, shown: HashSet::new(), depth: 0, kept: false };
            let mut part = walk.part("", list);
            part.sequence = None;
            used.extend(walk.shown);
            if is_wanted(flow_name) {
                let stages = if flow_name == "main" { Around::all(plan.main_stages()) } else { Vec::new() };
                flows.push(Flow { parts: vec![part], stages, ..Flow::new(kind, flow_name, span) });
            }
        }
    }
    flows
}

impl Flow {
    fn new(kind: &'static str, name: &str, span: Span) -> Flow {
        Flow { kind, name: name.to_owned(), resource: None, span, stages: Vec::new(), parts: Vec::new() }
    }
}

struct Walk<'a> {
    plan: &'a Plan,
    /// Lists of this flow that were shown.
    shown: HashSet<ListId>,
    depth: usize,
    /// A message that is sent is kept for the fault sequence.
    kept: bool,
}

impl Walk<'_> {
    /// The part that begins a flow; its sequence may not be known.
    fn start(&mut self, label: &'static str, reference: Option<&SequenceRef>) -> Part {
        let unknown =
            |sequence: Option<String>| Part { label, sequence, steps: Vec::new(), endpoint: Vec::new() };
        match reference {
            None => unknown(None),
            Some(SequenceRef::Known(list)) => self.part(label, *list),
            Some(SequenceRef::Missing(key)) => unknown(Some(format!("{key}, which does not exist"))),
            Some(SequenceRef::Dynamic(_)) => unknown(Some("that an expression names".to_owned())),
        }
    }

    fn part(&mut self, label: &'static str, list: ListId) -> Part {
        self.shown.insert(list);
        Part { label, sequence: self.named(list), steps: self.steps(list), endpoint: Vec::new() }
    }

    /// The name of a list that is a sequence or a template of its own.
    fn named(&self, list: ListId) -> Option<String> {
        let sequence = self.plan.sequences().find(|(_, id)| *id == list).map(|(name, _)| name);
        let template =
            || self.plan.templates().find(|(_, template)| template.list == list).map(|(name, _)| name);
        sequence.or_else(template).map(str::to_owned)
    }

    fn steps(&mut self, list: ListId) -> Vec<Step> {
        let plan = self.plan;
        self.depth += 1;
        let mut steps = Vec::new();
        for planned in &plan.list(list).steps {
            let mut endpoints: Vec<Behind> = Vec::new();
            for reference in planned.mediator.endpoints() {
                let next = self.behind(&reference);
                match endpoints.last_mut().filter(|last| last.name == next.name) {
                    Some(last) => last.times += 1,
                    None => endpoints.push(next),
                }
            }
            let sending = endpoints.iter().map(|endpoint| endpoint.need).max().unwrap_or(Need::Nothing);
            let lists = planned.mediator.lists();
            steps.push(Step {
                name: planned.name,
                need: planned.need.max(sending),
                why: planned.mediator.reason(),
                span: planned.span,
                endpoints,
                branches: lists.into_iter().map(|(label, list)| self.branch(label, list)).collect(),
            });
        }
        self.depth -= 1;
        steps
    }

    fn behind(&self, reference: &EndpointRef) -> Behind {
        let mut behind = behind(reference);
        if self.kept && behind.need < Need::Whole {
            behind.need = Need::Whole;
            behind.why = "kept for the fault sequence".to_owned();
        }
        behind
    }

    fn branch(&mut self, label: String, list: ListId) -> Branch {
        let sequence = self.named(list);
        let shown_before = !self.shown.insert(list) || self.depth >= DEEPEST;
        let steps = if shown_before { Vec::new() } else { self.steps(list) };
        Branch { label, sequence, steps, shown_before }
    }
}

fn behind(reference: &EndpointRef) -> Behind {
    let unknown = |name: String| Behind {
        name,
        times: 1,
        addresses: Vec::new(),
        need: Need::Nothing,
        why: String::new(),
    };
    match reference {
        EndpointRef::Known(endpoint) => leads_to(endpoint.as_ref()),
        EndpointRef::Missing(key) => unknown(format!("{key}, which does not exist")),
        EndpointRef::Dynamic(expression) => Behind {
            need: reference.need(),
            why: if reference.need().is_whole() { expression.reason() } else { String::new() },
            ..unknown(format!("what {{{}}} names", expression.source()))
        },
    }
}

/// Where a message goes that is sent to the endpoint, and what the endpoint needs of it.
fn leads_to(endpoint: &dyn Endpoint) -> Behind {
    let leaves = endpoint.leaves();
    // Addresses are shown without their passwords.
    let shown = |text: &str| message::redact::addresses(text).into_owned();
    let name = shown(endpoint.name());
    let mut addresses: Vec<String> = leaves.iter().map(|leaf| shown(&leaf.address())).collect();
    addresses.retain(|address| !address.is_empty() && !name.contains(address.as_str()));
    let mut why = Vec::new();
    for leaf in &leaves {
        let form = match leaf.format() {
            EndpointFormat::Soap(SoapVersion::V11) => "sent as SOAP 1.1",
            EndpointFormat::Soap(SoapVersion::V12) => "sent as SOAP 1.2",
            EndpointFormat::Pox => "sent as plain XML",
            EndpointFormat::AsIs | EndpointFormat::Get | EndpointFormat::Rest => continue,
        };
        if !why.contains(&form) {
            why.push(form);
        }
    }
    for stage in leaves.iter().flat_map(|leaf| leaf.stages()) {
        let reason = stage.reason(Way::Out);
        if stage.need(Way::Out).is_whole() && !why.contains(&reason) {
            why.push(reason);
        }
    }
    if endpoint.resends() {
        why.push("kept to be sent again");
    }
    let need = if why.is_empty() { Need::Nothing } else { Need::Whole };
    Behind { name, times: 1, addresses, need, why: why.join(", ") }
}
