//! Each rule finds what its example shows, and nothing where that is mended; its page, with what `busbar check` prints, is the
//! snapshot. `BUSBAR_DOCS=write cargo test -p busbar-lint --test pages` writes the pages.

use busbar_lint::{LOADING, RULES, Rule, check};
use config::LoadOptions;
use diagnostics::render::{Human, human};
use diagnostics::{Diagnostic, Severity, SourceMap};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What is found in artifacts: by loading them, and by the rules.
fn found(artifacts: &str) -> (Vec<Diagnostic>, Vec<Diagnostic>, SourceMap) {
    let text =
        format!("<definitions xmlns=\"http://ws.apache.org/ns/synapse\">\n{artifacts}\n</definitions>\n");
    let loaded = config::load_text("synapse.xml", &text, &root(), &LoadOptions::default());
    let mut loading = loaded.diagnostics;
    let services = flow::Services::new(transport::Client::new(transport::ClientLimits::default()));
    let registry = mediators::registry(endpoints::endpoint);
    let plan = flow::compile(
        &loaded.configuration,
        loaded.sources,
        loaded.faulty,
        &registry,
        &services,
        &mut loading,
    );
    let rules = check(&loaded.configuration, &registry, &services.settings);
    (loading.into_iter().collect(), rules.into_iter().collect(), (*plan.sources).clone())
}

fn page(rule: &Rule) -> String {
    let Rule { id, severity, summary, reason, example, mended, .. } = rule;
    let (loading, rules, sources) = found(example);
    assert!(loading.is_empty(), "{id}: {loading:#?}");
    assert!(!rules.is_empty() && rules.iter().all(|d| d.rule == *id), "{id}: {rules:#?}");
    assert!(rules.iter().all(|d| d.severity == *severity), "{id}");
    let (loading, nothing, _) = found(mended);
    assert!(loading.is_empty() && nothing.is_empty(), "{id}: {loading:#?} {nothing:#?}");
    let level = severity.as_str();
    let mut page = format!(
        "# {id}\n\n{summary} ({level})\n\n[All rules](../rules.md). Written from `crates/lint/src/rules/{}.rs`; do not edit.\n\n{reason}\n",
        id.replace('-', "_")
    );
    let shown: Vec<String> =
        rules.iter().map(|d| human(d, &sources, Human { colour: false, width: 110 })).collect();
    let _ = write!(
        page,
        "\n## Example\n\n```xml\n<definitions xmlns=\"http://ws.apache.org/ns/synapse\">\n{example}\n</definitions>\n```\n"
    );
    let _ = write!(
        page,
        "\nSaved as `synapse.xml`:\n\n```console\n$ busbar check synapse.xml\n{}```\n",
        shown.join("\n")
    );
    let _ = write!(
        page,
        "\n## Corrected\n\n```xml\n<definitions xmlns=\"http://ws.apache.org/ns/synapse\">\n{mended}\n</definitions>\n```\n"
    );
    page
}

fn index() -> String {
    let mut page = "# Rules of `busbar check`\n\nWritten from `crates/lint`; do not edit.\n\n\
        ## What loads, and is probably not what was meant\n\n\
        These findings leave nothing out. A *note* is information about something that works; `--strict` does not count it.\n\n\
        | rule | | finds |\n|---|---|---|\n"
        .to_owned();
    for rule in RULES {
        let _ = writeln!(
            page,
            "| [`{0}`](rules/{0}.md) | {1} | {2} |",
            rule.id,
            rule.severity.as_str(),
            rule.summary
        );
    }
    page += "\n## What is found while a configuration loads\n\nAn error leaves its artifact out, in `busbar run` too.\n\n| rule | says that |\n|---|---|\n";
    for rule in LOADING {
        let _ = writeln!(page, "| `{}` | {} |", rule.id, rule.meaning);
    }
    page
}

#[test]
fn each_rule_finds_what_its_page_shows() {
    let mut pages = vec![(root().join("docs/rules.md"), index())];
    pages.extend(RULES.iter().map(|rule| (root().join(format!("docs/rules/{}.md", rule.id)), page(rule))));
    let mut stale = Vec::new();
    for (path, wanted) in &pages {
        if std::env::var("BUSBAR_DOCS").is_ok_and(|value| value == "write") {
            std::fs::create_dir_all(path.parent().unwrap_or(path)).expect("docs/rules");
            std::fs::write(path, wanted).expect("a page can be written");
        }
        if std::fs::read_to_string(path).ok().as_ref() != Some(wanted) {
            stale.push(path.display().to_string());
        }
    }
    let hint = "BUSBAR_DOCS=write cargo test -p busbar-lint --test pages writes them; read what has changed";
    assert!(stale.is_empty(), "{}: {hint}", stale.join(", "));
    let written = std::fs::read_dir(root().join("docs/rules")).expect("docs/rules").flatten().count();
    assert_eq!(written, RULES.len(), "pages of rules that are gone");
}

/// Rule ids are constants beside what reports them: each has a line in the table, and none is there that nothing reports.
#[test]
fn the_rules_of_the_loader_are_listed() {
    let ids: BTreeSet<&str> = LOADING.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), LOADING.len());
    assert!(LOADING.windows(2).all(|two| two[0].id < two[1].id), "not in order");
    let mut written = BTreeSet::new();
    let mut sources = String::new();
    for name in ["config", "flow", "mediators", "connectors", "dataservices", "endpoints", "cli"] {
        read(&root().join("crates").join(name).join("src"), &mut |text| {
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            for mark in
                ["Diagnostic::error(", "Diagnostic::warning(", "Diagnostic::new(", ".error(", ".warning("]
            {
                for rest in text.split(mark).skip(1) {
                    let id = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
                    written.extend(id.filter(|id| is_id(id)).map(str::to_owned));
                }
            }
            sources.push_str(text);
        });
    }
    let missing: Vec<_> = written.iter().filter(|id| !ids.contains(id.as_str())).collect();
    assert!(missing.is_empty(), "not in LOADING: {missing:?}");
    let gone: Vec<_> = ids.iter().filter(|id| !sources.contains(&format!("\"{id}\""))).collect();
    assert!(gone.is_empty(), "nothing reports {gone:?}");
}

fn is_id(text: &str) -> bool {
    text.contains('-') && text.bytes().all(|c| c.is_ascii_lowercase() || c == b'-')
}

fn read(folder: &Path, use_it: &mut dyn FnMut(&str)) {
    for entry in std::fs::read_dir(folder).expect("sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            read(&path, use_it);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            use_it(&std::fs::read_to_string(&path).expect("a source"));
        }
    }
}

#[test]
fn rules_are_described() {
    for rule in RULES {
        assert!(rule.summary.ends_with('.') && rule.reason.len() > 40, "{}", rule.id);
        assert!(rule.severity < Severity::Error, "{}: a rule leaves nothing out", rule.id);
    }
}
