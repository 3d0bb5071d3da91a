//! `busbar explain`: says per flow and step what it reads of the message, and why.

use crate::explanation::{Around, Behind, Branch, Flow, Part, Step, flows};
use crate::load::load;
use crate::settings::Settings;
use diagnostics::{Severity, Span, did_you_mean};
use flow::{Need, Plan};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Says per flow and step what it reads of the message, why, and how much memory that may take.
///
/// The flows are proxy services, resources of APIs, tasks that inject into a sequence, the main sequence, and sequences that no other flow uses.
#[derive(clap::Args)]
pub struct Args {
    /// The configuration.
    path: PathBuf,
    /// Only the flows of this name: a proxy service, an API, a sequence or a template.
    artifact: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    match explain(&args) {
        Ok(text) => {
            // A reader that has seen enough (`| head`) is no error.
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("busbar explain: {error}");
            ExitCode::FAILURE
        }
    }
}

fn explain(args: &Args) -> Result<String, String> {
    let settings = Settings::load(&args.path, None, &[])?;
    let services = crate::bus::services(&settings)?;
    let loaded = load(&args.path, &services, None, None);
    loaded.print(|diagnostic| diagnostic.severity == Severity::Error);
    let plan = &loaded.plan;
    let found = flows(plan, args.artifact.as_deref());
    if found.is_empty() {
        return Err(nothing(plan, args));
    }
    let buffer = settings.limits.io_buffer_size.map_or(16 << 10, |size| size.0);
    let bounds = Bounds { buffer, held: services.limits.held };
    if args.json {
        let flows: Vec<Json> = found.iter().map(|flow| flow_json(flow, plan, &bounds)).collect();
        let whole = json!({ "io_buffer": bounds.buffer, "body_limit": bounds.held, "flows": flows });
        return Ok(format!("{whole:#}\n"));
    }
    let (root, colour) = (args.path.display().to_string(), std::io::stdout().is_terminal());
    let mut text = Text { plan, root, bounds, colour, out: String::new() };
    for flow in &found {
        text.flow(flow);
    }
    text.stages(&found);
    text.legend();
    Ok(text.out)
}

fn nothing(plan: &Plan, args: &Args) -> String {
    let Some(artifact) = &args.artifact else {
        return format!("there is no flow in {}", args.path.display());
    };
    let all = flows(plan, None);
    let names: BTreeSet<&str> =
        all.iter().map(|flow| flow.name.as_str()).chain(plan.sequences().map(|(name, _)| name)).collect();
    let help = did_you_mean(artifact, names).map_or_else(String::new, |help| format!("; {help}"));
    format!("there is no flow `{artifact}` in {}{help}", args.path.display())
}

/// How much memory a message may take.
struct Bounds {
    buffer: usize,
    held: usize,
}

impl Bounds {
    fn in_words(&self, need: Need) -> String {
        let (buffer, held) = (size(self.buffer), size(self.held));
        match need {
            Need::Nothing | Need::Headers => {
                format!("relayed through one buffer of {buffer}, whatever its size")
            }
            Need::Prefix => format!("held until it is decided, at most {held}; the rest is relayed"),
            Need::Whole => format!("held whole, at most {held}"),
            Need::Replaces => format!("received whole, at most {held}, and replaced"),
        }
    }

    fn bytes(&self, need: Need) -> usize {
        if need <= Need::Headers { self.buffer } else { self.held }
    }
}

fn size(bytes: usize) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} bytes")
}

fn word(need: Need) -> &'static str {
    match need {
        Need::Nothing => "nothing",
        Need::Headers => "headers",
        Need::Prefix => "prefix",
        Need::Whole => "whole",
        Need::Replaces => "replaces",
    }
}

fn in_words(need: Need) -> &'static str {
    match need {
        Need::Nothing => "reads nothing",
        Need::Headers => "reads headers",
        Need::Prefix => "reads a prefix of the body",
        Need::Whole => "reads the whole body",
        Need::Replaces => "replaces the body",
    }
}

// --- text -----------------------------------------------------------------------------------------------------------

struct Text<'a> {
    plan: &'a Plan,
    /// The path of the configuration, as it is in places.
    root: String,
    bounds: Bounds,
    colour: bool,
    out: String,
}

/// One line of the tree.
struct Row {
    tree: String,
    need: Option<Need>,
    place: String,
    why: String,
}

impl Text<'_> {
    fn flow(&mut self, flow: &Flow) {
        let resource = flow.resource.as_ref().map_or_else(String::new, |label| format!(" {label}"));
        let title = self.paint("1", &format!("{} {}{resource}", flow.kind, flow.name));
        let need = flow.need();
        let _ = writeln!(self.out, "{title}  {}", self.plan.place(flow.span));
        let reads = self.need(need, in_words(need));
        let dearest = flow.dearest().filter(|_| need > Need::Headers);
        let dearest = dearest.map(|step| format!(" ({}, {})", step.name, self.place(step.span, flow.span)));
        let _ = writeln!(self.out, "{reads}{}: {}", dearest.unwrap_or_default(), self.bounds.in_words(need));
        let mut rows = Vec::new();
        for part in &flow.parts {
            self.part(part, flow.span, &mut rows);
        }
        // An address may be long, and nothing stands behind it.
        let with_columns = rows.iter().filter(|row| row.need.is_some());
        let width = with_columns.map(|row| row.tree.chars().count()).max().unwrap_or(0);
        let places = rows.iter().map(|row| row.place.chars().count()).max().unwrap_or(0);
        for row in rows {
            let Row { tree, need, place, why } = row;
            let pad = width.saturating_sub(tree.chars().count());
            let need = match need {
                None => " ".repeat(8),
                Some(need) => self.need(need, &format!("{:8}", word(need))),
            };
            let line = format!("{tree}{:pad$}  {need}  {place:places$}  {why}", "");
            let _ = writeln!(self.out, "{}", line.trim_end());
        }
        self.out.push('\n');
    }

    fn part(&self, part: &Part, flow: Span, rows: &mut Vec<Row>) {
        let mut head = part.label.to_owned();
        if let Some(sequence) = &part.sequence {
            let _ = write!(head, " sequence {sequence}");
        }
        if !head.is_empty() {
            rows.push(Row { tree: head, need: None, place: String::new(), why: String::new() });
        }
        self.steps(&part.steps, &part.endpoint, "", flow, rows);
    }

    fn steps(&self, steps: &[Step], then: &[Behind], indent: &str, flow: Span, rows: &mut Vec<Row>) {
        for (index, step) in steps.iter().enumerate() {
            let is_last = index + 1 == steps.len() && then.is_empty();
            let (arm, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let below = format!("{indent}{below}");
            let mut tree = format!("{indent}{arm}{}", step.name);
            // A step that is nothing but its sequence takes one line.
            let alone = match &step.branches[..] {
                [branch] if branch.label.is_empty() => Some(branch),
                _ => None,
            };
            if let Some(branch) = alone {
                let _ = write!(tree, "{}", title(branch));
            }
            let (need, place) = (Some(step.need), self.place(step.span, flow));
            rows.push(Row { tree, need, place, why: step.why.clone() });
            for endpoint in &step.endpoints {
                rows.push(row(endpoint, &format!("{below}→ ")));
            }
            match alone {
                Some(branch) => self.steps(&branch.steps, &[], &below, flow, rows),
                None => self.branches(&step.branches, &below, flow, rows),
            }
        }
        for (index, endpoint) in then.iter().enumerate() {
            let arm = if index + 1 == then.len() { "└→ " } else { "├→ " };
            rows.push(row(endpoint, &format!("{indent}{arm}")));
        }
    }

    fn branches(&self, branches: &[Branch], indent: &str, flow: Span, rows: &mut Vec<Row>) {
        for (index, branch) in branches.iter().enumerate() {
            let (arm, below) =
                if index + 1 == branches.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let tree = format!("{indent}{arm}{}{}", branch.label, title(branch));
            rows.push(Row { tree, need: None, place: String::new(), why: String::new() });
            self.steps(&branch.steps, &[], &format!("{indent}{below}"), flow, rows);
        }
    }

    /// Line and column, with the file where it is another than the flow's.
    fn place(&self, span: Span, flow: Span) -> String {
        let place = self.plan.place(span);
        if span.file != flow.file {
            let inside = place.strip_prefix(self.root.as_str()).map(|rest| rest.trim_start_matches('/'));
            return inside.unwrap_or(&place).to_owned();
        }
        let mut parts = place.rsplitn(3, ':');
        let (column, line) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        format!("{line}:{column}")
    }

    /// What happens around the flows: mostly the same for all of them.
    fn stages(&mut self, flows: &[Flow]) {
        let with: Vec<&Flow> = flows.iter().filter(|flow| !flow.stages.is_empty()).collect();
        let mut stages: Vec<&Around> = Vec::new();
        for stage in with.iter().flat_map(|flow| &flow.stages) {
            if stages.contains(&stage) {
                continue;
            }
            stages.push(stage);
            let having: Vec<&str> = with
                .iter()
                .filter(|flow| flow.stages.contains(stage))
                .map(|flow| flow.name.as_str())
                .collect();
            let names =
                if having.len() == with.len() { "each service".to_owned() } else { having.join(", ") };
            let need = self.need(stage.need, word(stage.need));
            let _ = writeln!(self.out, "{} {names}: {}, {need}: {}", stage.place, stage.name, stage.why);
        }
        if !stages.is_empty() {
            self.out.push('\n');
        }
    }

    fn legend(&mut self) {
        for need in [Need::Headers, Need::Prefix, Need::Whole, Need::Replaces] {
            let name = if need == Need::Headers { "nothing, headers" } else { word(need) };
            let name = self.need(need, &format!("{name:16}"));
            let _ = writeln!(self.out, "{name}  {}", self.bounds.in_words(need));
        }
    }

    fn need(&self, need: Need, text: &str) -> String {
        let code = match need {
            Need::Nothing | Need::Headers => "32",
            Need::Prefix => "36",
            Need::Whole | Need::Replaces => "33",
        };
        self.paint(code, text)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn title(branch: &Branch) -> String {
    let name = branch.sequence.as_ref().map_or_else(String::new, |name| format!(" {name}"));
    let again = if branch.shown_before { " (see above)" } else { "" };
    format!("{name}{again}")
}

fn row(endpoint: &Behind, arm: &str) -> Row {
    let need = (endpoint.need != Need::Nothing).then_some(endpoint.need);
    let addresses = endpoint.addresses.join(", ");
    let why = match (addresses.as_str(), endpoint.why.as_str()) {
        ("", why) => why.to_owned(),
        (addresses, "") => addresses.to_owned(),
        (addresses, why) => format!("{why}: {addresses}"),
    };
    let times = if endpoint.times > 1 { format!(" ({} copies)", endpoint.times) } else { String::new() };
    Row { tree: format!("{arm}{}{times}", endpoint.name), need, place: String::new(), why }
}

// --- JSON -----------------------------------------------------------------------------------------------------------

fn flow_json(flow: &Flow, plan: &Plan, bounds: &Bounds) -> Json {
    let need = flow.need();
    let parts: Vec<Json> = flow
        .parts
        .iter()
        .map(|part| {
            json!({
                "part": part.label,
                "sequence": part.sequence,
                "need": word(part.need()),
                "steps": steps_json(&part.steps, plan),
                "endpoints": endpoints_json(&part.endpoint),
            })
        })
        .collect();
    let stages: Vec<Json> = flow
        .stages
        .iter()
        .map(|stage| json!({ "name": stage.name, "place": stage.place, "need": word(stage.need), "why": stage.why }))
        .collect();
    json!({
        "kind": flow.kind,
        "name": flow.name,
        "resource": flow.resource,
        "place": plan.place(flow.span),
        "need": word(need),
        "dearest": flow.dearest().map(|step| json!({ "mediator": step.name, "place": plan.place(step.span) })),
        "body": bounds.in_words(need),
        "bound": bounds.bytes(need),
        "stages": stages,
        "parts": parts,
    })
}

fn steps_json(steps: &[Step], plan: &Plan) -> Vec<Json> {
    let step = |step: &Step| {
        let branches: Vec<Json> = step
            .branches
            .iter()
            .map(|branch| {
                json!({
                    "label": branch.label,
                    "sequence": branch.sequence,
                    "shown_before": branch.shown_before,
                    "steps": steps_json(&branch.steps, plan),
                })
            })
            .collect();
        json!({
            "mediator": step.name,
            "place": plan.place(step.span),
            "need": word(step.need),
            "why": step.why,
            "endpoints": endpoints_json(&step.endpoints),
            "branches": branches,
        })
    };
    steps.iter().map(step).collect()
}

fn endpoints_json(endpoints: &[Behind]) -> Vec<Json> {
    endpoints
        .iter()
        .map(|destination| json!({ "name": destination.name, "copies": destination.times, "addresses": destination.addresses, "need": word(destination.need), "why": destination.why }))
        .collect()
}
