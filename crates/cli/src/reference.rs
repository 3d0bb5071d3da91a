//! The reference of the mediators, written from their definitions and examples: `docs/mediators.md` and a page each in
//! `docs/mediators/`. `BUSBAR_DOCS=write cargo test -p busbar --bin busbar reference` writes them.
//!
//! What a page says is tested here and beside: each mediator is described; what it refuses is refused; the example
//! (`tests/cases/mediators/NAME`) answers as the page says (`tests/cases.rs`) and survives hostile input
//! (`tests/hostile.rs`); and the ERROR_CODEs on the page are those that these two have seen.

use crate::docs::{compiled, fragment, root};
use crate::explanation::{self, Step};
use diagnostics::Span;
use flow::{Attribute, Children, Definition, Family, Inside, Need, Values};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use tests::case::Case;
use tests::hostile::{BODIES, Table};
use tests::spec::{Content, Expect};

/// The mediators, without the operations of connectors.
fn registry() -> flow::Registry {
    let mut registry = mediators::registry(endpoints::endpoint);
    dataservices::extend(&mut registry);
    registry
}

/// All definitions, by name.
fn definitions() -> Vec<&'static Definition> {
    let mut definitions = registry().definitions;
    definitions.sort_by_key(|definition| definition.name.to_lowercase());
    definitions
}

/// The folder of its example.
fn example(definition: &Definition) -> PathBuf {
    root().join("tests/cases/mediators").join(definition.name)
}

#[test]
fn the_pages_are_up_to_date() {
    let mut pages = vec![(root().join("docs/mediators.md"), index())];
    let folder = root().join("docs/mediators");
    pages.extend(definitions().iter().map(|d| (folder.join(format!("{}.md", d.name)), page(d))));
    let write = std::env::var("BUSBAR_DOCS").is_ok_and(|value| value == "write");
    for (path, wanted) in pages {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        // What the commands of the example print is not said here, but by the program: tests/console.rs.
        if without_output(&text) == without_output(&wanted) {
            continue;
        }
        if write {
            std::fs::write(&path, &wanted).expect("a page can be written");
        } else {
            let hint = format!(
                "{} is stale: BUSBAR_DOCS=write cargo test -p busbar --bin busbar reference, then cargo test -p busbar --test console",
                path.display()
            );
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{hint}");
            println!("{hint}");
        }
    }
}

/// A page without what its commands print.
fn without_output(page: &str) -> String {
    let mut played = false;
    let mut kept = String::new();
    for line in page.lines() {
        played = if line.starts_with("```") { line == "```console play" } else { played };
        if !played || line.starts_with("$ ") || line.starts_with("```") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[test]
fn every_mediator_is_described() {
    for definition in definitions() {
        let (name, page) = (definition.name, &definition.page);
        assert!(page.semantics.len() > 80, "{name}: semantics is not written");
        assert!(definition.attributes.iter().all(|one| !one.meaning.is_empty()), "{name}: attributes");
        let tops = page.inside.iter().filter(|inside| !inside.way().contains('/'));
        let described: BTreeSet<&str> = tops.map(Inside::name).collect();
        let children: BTreeSet<&str> = match definition.children {
            Children::Elements(names) => {
                names.iter().copied().filter(|name| !matches!(*name, "*" | "#mediators" | "text()")).collect()
            }
            _ => BTreeSet::new(),
        };
        assert_eq!(described, children, "{name}: `inside` and `children` differ");
        for (configuration, child) in page.refused {
            let (_, found) = compiled(&fragment(configuration));
            let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
            assert!(messages.iter().any(|m| m.contains(child)), "{name}: {configuration}: {messages:?}");
        }
        let checked = !page.refused.is_empty() || (definition.attributes.is_empty() && children.is_empty());
        assert!(checked, "{name}: `refused` is not written");
    }
}

#[test]
fn every_mediator_has_an_example_that_reads_what_its_page_says() {
    for definition in definitions().into_iter().filter(|definition| !definition.page.needs.is_empty()) {
        let name = definition.name;
        let case = Case::read(&example(definition)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(case.spec.id, format!("mediators/{name}"));
        let text =
            std::fs::read_to_string(case.folder.join("config.xml")).expect("an example has a config.xml");
        let (plan, found) = compiled(&text.replace("@PORT:esb@", "8280"));
        assert!(found.is_empty(), "{name}: {:?}", found.iter().map(|one| &one.message).collect::<Vec<_>>());
        let flows = explanation::flows(&plan, None);
        let mut steps = Vec::new();
        for part in flows.iter().flat_map(|flow| &flow.parts) {
            find(name, &part.steps, &mut steps);
        }
        // A mediator may be several steps: the dearest at a place counts.
        let dearest = |span| steps.iter().filter(|(at, _)| *at == span).map(|(_, need)| *need).max();
        let needs: BTreeSet<Need> = steps.iter().filter_map(|(span, _)| dearest(*span)).collect();
        assert!(!needs.is_empty(), "{name}: the example does not use it");
        let described: BTreeSet<Need> = definition.page.needs.iter().map(|(need, _)| *need).collect();
        assert!(needs.is_subset(&described), "{name}: reads {needs:?}, its page says {described:?}");
        let requests = case.spec.steps.iter().filter(|step| step.request.is_some());
        assert!(requests.clone().all(|step| step.expect.is_some()), "{name}: each request expects an answer");
    }
}

fn find(name: &str, steps: &[Step], found: &mut Vec<(Span, Need)>) {
    for step in steps {
        if step.name == name {
            found.push((step.span, step.need));
        }
        for branch in &step.branches {
            find(name, &branch.steps, found);
        }
    }
}

#[test]
fn every_error_code_of_a_page_was_seen_and_the_other_way_round() {
    for definition in definitions().into_iter().filter(|definition| !definition.page.needs.is_empty()) {
        let name = definition.name;
        let file = example(definition).join("hostile.txt");
        let text = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{} is missing", file.display()));
        let table = Table::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        for body in BODIES {
            assert!(
                table.outcomes.contains_key(body.name),
                "{name}: hostile.txt says nothing of {}",
                body.name
            );
        }
        let case = std::fs::read(example(definition).join("case.json")).expect("it was read before");
        let case: serde_json::Value = serde_json::from_slice(&case).expect("it was read before");
        let mut seen: BTreeSet<String> = table.codes().map(str::to_owned).collect();
        codes(&case["steps"], &mut seen);
        let described: BTreeSet<String> =
            definition.page.faults.iter().map(|(code, _)| (*code).to_owned()).collect();
        assert_eq!(described, seen, "{name}: ERROR_CODEs of the page (left), and of its tests (right)");
    }
}

/// The values of all members `code` that stand beside a `message`.
fn codes(value: &serde_json::Value, codes_seen: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(members) => {
            if let (Some(code), Some(_)) = (members.get("code"), members.get("message")) {
                codes_seen.insert(code.as_str().map_or_else(|| code.to_string(), str::to_owned));
            }
            members.values().for_each(|value| codes(value, codes_seen));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|value| codes(value, codes_seen)),
        _ => {}
    }
}

const GENERATED: &str = "Written from the definitions in `crates/mediators` and the examples in `tests/cases/mediators`; do not edit.";

/// `docs/mediators.md`.
fn index() -> String {
    let registry = registry();
    let definitions = definitions();
    let mut page = format!(
        "# Mediators\n\n{GENERATED}\n\nEvery mediator also takes the attributes `description`, `trace`, \
         `statistics` and `traceFilter`, and a `description` inside.\n",
    );
    for family in Family::ALL {
        let _ = write!(page, "\n## {}\n\n", family.title());
        for definition in definitions.iter().filter(|definition| definition.page.family == family) {
            let name = definition.name;
            let _ = writeln!(page, "* [`{name}`](mediators/{name}.md): {}", definition.summary);
        }
    }
    page += "\n## Not executable\n\nA message that comes to one of these faults; the rest of its artifact runs.\n\n| element | instead |\n|---|---|\n";
    let executable = |name: &str| definitions.iter().any(|definition| definition.name == name);
    for (name, why) in registry.unsupported.iter().filter(|(name, _)| !executable(name)) {
        let _ = writeln!(page, "| `{name}` | {why} |");
    }
    page
}

/// The page of a mediator.
fn page(definition: &Definition) -> String {
    let (name, about) = (definition.name, &definition.page);
    let mut page =
        format!("# {name}\n\n{}\n\n[All mediators](../mediators.md). {GENERATED}\n", definition.summary);
    let _ = write!(page, "\n## Syntax\n\n```text\n{}```\n", syntax(definition));
    if !definition.attributes.is_empty() {
        page += "\n## Attributes\n\n| attribute | values | default | meaning |\n|---|---|---|---|\n";
        for attribute in definition.attributes {
            let _ = writeln!(page, "| `{}` | {}", attribute.name, columns(attribute));
        }
    }
    if !about.inside.is_empty() {
        page += "\n## Elements inside\n\n| element | attribute | values | default | meaning |\n|---|---|---|---|---|\n";
        for inside in about.inside {
            let _ = writeln!(page, "| `{}` | | | | {} |", inside.way(), cell(inside.meaning));
            for attribute in inside.attributes {
                let _ = writeln!(page, "| | `{}` | {}", attribute.name, columns(attribute));
            }
        }
    }
    if !about.semantics.is_empty() {
        let _ = write!(page, "\n## What it does\n\n{}\n", about.semantics.trim());
    }
    if !about.needs.is_empty() {
        page += "\n## What it reads of the message\n\n";
        for (need, when) in about.needs {
            let _ = writeln!(page, "* {}: {when}.", reads(*need));
        }
    }
    errors(definition, &mut page);
    if let Ok(case) = Case::read(&example(definition)) {
        run(&case, name, &mut page);
    }
    page
}

fn reads(need: Need) -> &'static str {
    match need {
        Need::Nothing => "nothing",
        Need::Headers => "properties and headers, not the body",
        Need::Prefix => "the beginning of the body, as far as it takes to decide",
        Need::Whole => "the whole body",
        Need::Replaces => "the body is replaced without being read",
    }
}

fn errors(definition: &Definition, page: &mut String) {
    let about = &definition.page;
    if !about.refused.is_empty() {
        *page += "\n## Errors when the configuration loads\n\n| configuration | error |\n|---|---|\n";
        for (configuration, reason) in about.refused {
            let _ = writeln!(page, "| `{}` | {} |", cell(configuration), cell(reason));
        }
    }
    if about.needs.is_empty() {
        return;
    }
    *page += "\n## Errors when a message runs\n\n";
    if about.faults.is_empty() {
        *page += "None: it cannot fail.\n";
        return;
    }
    *page += "The fault sequence runs with `ERROR_CODE`, `ERROR_MESSAGE` and `ERROR_DETAIL`.\n\n| ERROR_CODE | when |\n|---|---|\n";
    for (code, when) in about.faults {
        let _ = writeln!(page, "| {code} | {} |", cell(when));
    }
}

/// The example: configuration, commands, answers.
fn run(case: &Case, name: &str, page: &mut String) {
    let with_ports =
        |text: &str| text.replace("127.0.0.1:@PORT:esb@", "localhost:8280").replace("@PORT:esb@", "8280");
    let text = std::fs::read_to_string(case.folder.join("config.xml")).unwrap_or_default();
    let _ = write!(
        page,
        "\n## Example\n\n{}\n\n```xml {name}.xml\n{}\n```\n",
        case.spec.title,
        with_ports(text.trim())
    );
    let _ = write!(page, "\nSaved as `{name}.xml`:\n\n```console play\n$ busbar run {name}.xml\n```\n");
    for step in &case.spec.steps {
        let (Some(request), Some(expect)) = (&step.request, &step.expect) else { continue };
        let content = &request.content;
        let body = text_of(content);
        let mut command = String::from("curl -s");
        if let Some(method) = &request.method {
            let _ = write!(command, " -X {method}");
        }
        let _ = write!(command, " http://localhost:8280{}", request.path.as_deref().unwrap_or("/"));
        for (name, value) in &request.headers {
            let _ = write!(command, " -H '{name}: {}'", with_ports(value.as_str().unwrap_or_default()));
        }
        if !body.is_empty() {
            assert!(!body.contains('\''), "{name}: a quote in a body cannot be shown as a command");
            let _ = write!(command, " -d '{}'", with_ports(&body));
        }
        let comment = step.comment.as_str().unwrap_or_default();
        let mut lead = comment.to_owned();
        if let Some([status]) = expect.status.as_deref()
            && *status != 200
        {
            lead = match comment.trim_end_matches([':', '.']) {
                "" => format!("The status is {status}:"),
                comment => format!("{comment} (status {status}):"),
            };
        }
        let _ = write!(page, "\n{lead}{}", if lead.is_empty() { "" } else { "\n\n" });
        let answer = with_ports(&answer(expect));
        let answer = if answer.is_empty() { answer } else { answer.trim().to_owned() + "\n" };
        let _ = write!(page, "```console play\n$ {command}\n{answer}```\n");
        for (name, value) in expect.headers.iter().filter(|(_, value)| !value.starts_with('~')) {
            let _ = write!(page, "\nThe answer has the header `{name}: {value}`.\n");
        }
    }
}

fn text_of(content: &Content) -> String {
    match (&content.body, &content.json) {
        (Some(body), _) => body.clone(),
        (None, Some(json)) => json.to_string(),
        _ => String::new(),
    }
}

/// What the answer looks like.
fn answer(expect: &Expect) -> String {
    let same = expect.same_bytes.as_ref().map(text_of);
    let json = expect.json.as_ref().map(serde_json::Value::to_string);
    let element = expect.body_xml.as_ref().and_then(|elements| elements.first().cloned());
    expect.text.clone().or(same).or(expect.xml.clone()).or(element).or(json).unwrap_or_default()
}

/// The element with all that may be in it.
fn syntax(definition: &Definition) -> String {
    let mut out = String::new();
    let content = match definition.children {
        Children::Mediators => "mediator*",
        Children::Elements(names) if names.contains(&"#mediators") => "mediator*",
        Children::Elements(names) if names.contains(&"*") => "any element",
        _ => "",
    };
    let shape = Shape { name: definition.name, attributes: definition.attributes, content, occurrence: "" };
    element(&shape, "", definition.page.inside, "", &mut out);
    out
}

struct Shape {
    name: &'static str,
    attributes: &'static [Attribute],
    content: &'static str,
    occurrence: &'static str,
}

/// An element at the end of a way, and the elements in it.
fn element(shape: &Shape, way: &str, inside: &[Inside], indent: &str, out: &mut String) {
    let attributes: Vec<String> = shape.attributes.iter().map(attribute).collect();
    let one_line = format!("{indent}<{}", shape.name);
    let width: usize = attributes.iter().map(|attribute| attribute.len() + 1).sum();
    *out += &one_line;
    let separator = if one_line.len() + width > 100 {
        format!("\n{indent}{}", " ".repeat(shape.name.len() + 2))
    } else {
        " ".to_owned()
    };
    for (nth, attribute) in attributes.iter().enumerate() {
        *out += if nth == 0 { " " } else { &separator };
        *out += attribute;
    }
    let children = inside.iter().filter(|child| {
        child
            .way()
            .strip_prefix(way)
            .is_some_and(|rest| rest.len() > child.name().len() - 1 && rest == child.name())
    });
    let children: Vec<&Inside> = children.collect();
    let Shape { name, content, occurrence, .. } = shape;
    match (children.is_empty(), content.is_empty()) {
        (true, true) => _ = writeln!(out, "/>{occurrence}"),
        (true, false) => _ = writeln!(out, ">{content}</{name}>{occurrence}"),
        (false, _) => {
            *out += ">\n";
            for child in children {
                let shape = Shape {
                    name: child.name(),
                    attributes: child.attributes,
                    content: child.content,
                    occurrence: child.occurrence(),
                };
                element(&shape, &format!("{}/", child.way()), inside, &format!("{indent}  "), out);
            }
            if !content.is_empty() {
                let _ = writeln!(out, "{indent}  {content}");
            }
            let _ = writeln!(out, "{indent}</{name}>{occurrence}");
        }
    }
}

fn attribute(attribute: &Attribute) -> String {
    let value = match attribute.values {
        Values::Text => "text".to_owned(),
        Values::Boolean => "true|false".to_owned(),
        Values::Integer => "number".to_owned(),
        Values::OneOf(words) | Values::Action(words) | Values::Word(words) => words.join("|"),
        Values::Expression => "expression".to_owned(),
        Values::Key => "key".to_owned(),
        Values::Regex => "regex".to_owned(),
    };
    let written = format!("{}=\"{value}\"", attribute.name);
    if attribute.required { written } else { format!("[{written}]") }
}

/// The columns behind the name: values, default, meaning.
fn columns(attribute: &Attribute) -> String {
    let values = match attribute.values {
        Values::Text => "text".to_owned(),
        Values::Boolean => "`true`, `false`".to_owned(),
        Values::Integer => "whole number".to_owned(),
        Values::OneOf(words) | Values::Action(words) | Values::Word(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        Values::Expression => "expression".to_owned(),
        Values::Key => "text, or `{expression}`".to_owned(),
        Values::Regex => "regular expression".to_owned(),
    };
    let default = match (attribute.required, attribute.default) {
        (true, _) => "required".to_owned(),
        (false, "") => String::new(),
        (false, default) => format!("`{}`", cell(default)),
    };
    format!("{} | {default} | {} |", cell(&values), cell(attribute.meaning))
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
