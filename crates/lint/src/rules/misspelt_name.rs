//! `misspelt-name`: a property or variable that is read and never set, while one with a similar name is.

use crate::Rule;
use crate::look::{Finding, Look};
use config::{Element, Entry, Mapping};
use diagnostics::{Severity, Span, respelt};
use std::collections::{BTreeMap, HashSet};

pub const RULE: Rule = Rule {
    id: "misspelt-name",
    severity: Severity::Warning,
    summary: "An expression reads a property or variable that nothing sets, and one of nearly the same name is set.",
    reason: "A property or variable that is not set is empty, so the flow goes on with a wrong value without an error. Upper and lower case differ. The
variables of the URI template of a resource are the properties `uri.var.NAME`.

Reported is a name that occurs nowhere else in the configuration, if a name with one difference (a letter too many, missing, wrong or swapped, or another case) is set. Not
reported are names that scripts with a `key`, sequences of the registry or connectors may set, and names that differ in a number only.",
    example: r#"<api name="Orders" context="/orders">
  <resource methods="GET" uri-template="/{orderId}">
    <inSequence>
      <variable name="limit" type="INTEGER" value="10"/>
      <log>
        <property name="order" expression="get-property('uri.var.orderID')"/>
        <property name="most" expression="${vars.limt}"/>
      </log>
      <respond/>
    </inSequence>
  </resource>
</api>"#,
    mended: r#"<api name="Orders" context="/orders">
  <resource methods="GET" uri-template="/{orderId}">
    <inSequence>
      <variable name="limit" type="INTEGER" value="10"/>
      <log>
        <property name="order" expression="get-property('uri.var.orderId')"/>
        <property name="most" expression="${vars.limit}"/>
      </log>
      <respond/>
    </inSequence>
  </resource>
</api>"#,
    check,
};

/// Elements nested deeper than this are not checked.
const DEEPEST: usize = 200;

/// A name space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    /// Properties of the message.
    Properties,
    /// Variables.
    Variables,
}

/// The syntax in which expressions read one: the prefix of the name, and whether a quote ends it.
const READS: &[(&str, Space)] = &[
    ("$ctx:", Space::Properties),
    ("get-property('", Space::Properties),
    ("get-property(\"", Space::Properties),
    ("props.synapse.", Space::Properties),
    ("properties.synapse.", Space::Properties),
    (PATH_PARAMETERS, Space::Properties),
    ("$var:", Space::Variables),
    ("vars.", Space::Variables),
];

/// Reads the property `uri.var.NAME`.
const PATH_PARAMETERS: &str = "params.pathParams.";

/// A name that is read.
struct Read {
    space: Space,
    name: String,
    place: Span,
}

#[derive(Default)]
struct Names {
    set: BTreeMap<(Space, String), Span>,
    read: Vec<Read>,
    /// The words of all other text.
    mentioned: HashSet<String>,
}

fn check(look: &mut Look<'_>) {
    let steps = look.steps();
    let opaque = |step: &Element| {
        matches!(step.local(), "class" | "pojoCommand" | "spring" | "bean")
            || step.local().contains('.')
            || (step.is("script") && step.attribute("key").is_some())
            // A property of the registry, or one that an expression names.
            || (step.is("sequence") && step.attr("key").is_some_and(|key| key.contains([':', '{', '$'])))
    };
    if steps.iter().any(|step| opaque(step)) || !look.configuration.imports.is_empty() {
        return;
    }
    let mut names = Names::default();
    for flow in look.flows().into_iter().filter(|flow| flow.key.is_none()) {
        element(flow.list, &mut names, false, 0);
    }
    for endpoint in look.configuration.endpoints.iter() {
        element(&endpoint.element, &mut names, false, 0);
    }
    for template in look.configuration.endpoint_templates.iter() {
        element(&template.body, &mut names, false, 0);
    }
    for entry in look.configuration.local_entries.iter() {
        match &entry.value {
            Entry::Xml(xml) => words(&xml.to_xml(), &mut names.mentioned),
            Entry::Text(text) => words(text, &mut names.mentioned),
            Entry::File(bytes) => words(&String::from_utf8_lossy(bytes), &mut names.mentioned),
            Entry::NotFetched => return,
        }
        names.mentioned.insert(entry.key.value.clone());
    }
    for resource in look.configuration.apis.iter().flat_map(|api| &api.resources) {
        if let Mapping::UriTemplate(template) = &resource.mapping {
            for name in variables(&template.value) {
                names.set.insert((Space::Properties, format!("uri.var.{name}")), template.span);
            }
        }
    }
    let Names { set, read, mentioned } = names;
    for Read { space, name, place } in read {
        if set.contains_key(&(space, name.clone())) || mentioned.contains(&name) || is_engine(&name) {
            continue;
        }
        let others = || set.keys().filter(|(other, _)| *other == space).map(|(_, other)| other.as_str());
        let meant = respelt(&name, others()).or_else(|| others().find(|other| is_slip(&name, other)));
        let Some((meant, at)) = meant.and_then(|meant| set.get_key_value(&(space, meant.to_owned()))) else {
            continue;
        };
        let kind = if space == Space::Variables { "variable" } else { "property" };
        look.report(
            Finding::new(format!("nothing sets the {kind} `{name}`"), place, "always empty")
                .and(*at, "this sets another one")
                .help(format!("did you mean `{}`?", meant.1)),
        );
    }
}

/// Collects the names in an element. `labels`: it is a property of a `log`, whose name is only a label.
fn element(step: &Element, names: &mut Names, labels: bool, depth: usize) {
    if depth >= DEEPEST {
        return;
    }
    let scope = step.attr("scope").map_or("default", str::trim);
    let space = match step.local() {
        "property" if matches!(scope, "default" | "synapse") => Some(Space::Properties),
        "variable" => Some(Space::Variables),
        _ => None,
    };
    for attribute in step.attributes() {
        let value = &*attribute.value;
        if let Some(space) = space
            && &*attribute.name.local == "name"
            && !value.contains(['{', '$'])
        {
            if labels {
                continue;
            }
            names.set.entry((space, value.trim().to_owned())).or_insert(attribute.value_span);
            names.mentioned.insert(value.trim().to_owned());
            continue;
        }
        let span = attribute.value_span;
        let exact = value.len() == (span.end - span.start) as usize;
        text(value, names, |at, len| if exact { span.part(at, len) } else { span });
    }
    text(&step.text(), names, |at, len| step.place_in_text(at).part(0, len));
    step.elements().for_each(|child| element(child, names, step.is("log"), depth + 1));
}

/// Collects the names that a text reads, and the words in the rest of it.
fn text(text: &str, names: &mut Names, place: impl Fn(usize, usize) -> Span) {
    let mut rest = 0;
    while let Some((at, mark, space)) = next_read(text, rest) {
        words(&text[rest..at], &mut names.mentioned);
        let start = at + mark.len();
        let quote = mark.chars().last().filter(|last| matches!(last, '\'' | '"'));
        let is_name = |c: char| match quote {
            Some(quote) => c != quote,
            None if mark.ends_with('.') => c.is_alphanumeric() || c == '_',
            None => c.is_alphanumeric() || matches!(c, '_' | '-' | '.'),
        };
        let len = text[start..].find(|c: char| !is_name(c)).unwrap_or(text.len() - start);
        let name = &text[start..start + len];
        // The first of two arguments is the scope.
        let behind = text[start + len..].trim_start_matches(['\'', '"']).trim_start();
        if quote.is_some() && behind.starts_with(',') {
            rest = start + len;
            continue;
        }
        if !name.is_empty() {
            let is_of_path = mark == PATH_PARAMETERS;
            let name = if is_of_path { format!("uri.var.{name}") } else { name.to_owned() };
            names.read.push(Read { space, name, place: place(start, len) });
        }
        rest = start + len;
    }
    words(&text[rest..], &mut names.mentioned);
}

/// The next read after a position: its position and its syntax.
fn next_read(text: &str, from: usize) -> Option<(usize, &'static str, Space)> {
    let found = READS.iter().filter_map(|(mark, space)| {
        let at = text[from..].match_indices(mark).map(|(at, _)| from + at).find(|&at| {
            // `myvars.x` is another name.
            !mark.starts_with(char::is_alphabetic)
                || !text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
        })?;
        Some((at, *mark, *space))
    });
    found.min_by_key(|(at, ..)| *at)
}

fn words(text: &str, into: &mut HashSet<String>) {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    for word in text.split(|c| !is_word(c)).filter(|word| !word.is_empty()) {
        into.insert(word.to_owned());
        if word.contains('.') {
            into.extend(word.split('.').map(str::to_owned));
        }
    }
}

/// The variables of a URI template.
fn variables(template: &str) -> Vec<&str> {
    let expressions =
        template.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(inside, _)| inside);
    let names = expressions
        .flat_map(|inside| inside.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']).split(','));
    names
        .map(|name| name.split([':', '*']).next().unwrap_or(name).trim())
        .filter(|name| !name.is_empty())
        .collect()
}

/// Names that the engine sets: in upper case, or with a prefix.
fn is_engine(name: &str) -> bool {
    let given = ["To", "From", "Action", "WSAction", "FaultTo", "ReplyTo", "RelatesTo", "MessageID"];
    !name.contains(|c: char| c.is_lowercase())
        || given.contains(&name)
        || name.starts_with("Operation")
        || name.contains('.') && !name.starts_with("uri.var.")
}

/// Whether two names are one slip apart: a letter too many, missing, wrong, or two swapped. Digits are no slips.
pub(super) fn is_slip(first: &str, second: &str) -> bool {
    let (mut a, mut b): (Vec<char>, Vec<char>) = (first.chars().collect(), second.chars().collect());
    if a.len() < 4 || b.len() < 4 {
        return false;
    }
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    a.drain(..same);
    b.drain(..same);
    let same = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    a.truncate(a.len() - same);
    b.truncate(b.len() - same);
    if a.iter().chain(&b).any(|c| !c.is_alphabetic()) {
        return false;
    }
    match (&a[..], &b[..]) {
        ([_], [] | [_]) | ([], [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}
