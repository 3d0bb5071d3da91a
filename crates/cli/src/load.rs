//! Loads and compiles a configuration, with everything that was found about it in one list.

use config::{Fetch, LoadOptions};
use diagnostics::{Diagnostic, Diagnostics, FileId, Severity, render};
use flow::{Plan, Services};
use std::collections::HashSet;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// A configuration as it was loaded.
pub struct Loaded {
    /// What of it can run.
    pub plan: Plan,
    /// What was found, in the order of loading and compiling, each thing once.
    pub found: Diagnostics,
    /// Artifacts that could be read, whether they compile or not.
    pub artifacts: usize,
}

/// Loads the configuration at `path` and compiles it; `fetch`: what gets local entries from URLs. Never fails: what cannot be used is in [`Loaded::found`].
pub fn load(path: &Path, services: &Services, fetch: Option<Fetch>) -> Loaded {
    let options = LoadOptions { fetch, check_only: services.settings.check_only, ..LoadOptions::default() };
    let mut loaded = config::load(path, &options);
    let settings = crate::server_settings::report(&loaded.configuration.settings, &mut loaded.sources);
    loaded.diagnostics.extend(settings);
    let registry = mediators::registry(endpoints::endpoint);
    let (loaded, plan, found) = whole_archives(loaded, |loaded, found| {
        let (sources, faulty) = (loaded.sources.clone(), loaded.faulty.clone());
        flow::compile(&loaded.configuration, sources, faulty, &registry, services, found)
    });
    let found = once(found, &plan);
    Loaded { plan, found, artifacts: loaded.configuration.artifacts() }
}

/// Compiles, and again without the archives of which an artifact has an error that WSO2 finds as well: those are in use as a
/// whole or not at all.
fn whole_archives(
    mut loaded: config::Loaded,
    compile: impl Fn(&config::Loaded, &mut Diagnostics) -> Plan,
) -> (config::Loaded, Plan, Diagnostics) {
    loop {
        let mut found = loaded.diagnostics.clone();
        let plan = compile(&loaded, &mut found);
        let errors: Vec<Diagnostic> = found
            .iter()
            .skip(loaded.diagnostics.len())
            .filter(|own| own.severity == Severity::Error && !config::is_ours(own.rule))
            .cloned()
            .collect();
        let is_in = |error: &Diagnostic, files: &[FileId]| {
            error.span().is_some_and(|span| files.contains(&span.file))
        };
        let spoilt = loaded
            .configuration
            .archives
            .iter()
            .position(|archive| errors.iter().any(|error| is_in(error, &archive.files)));
        let Some(spoilt) = spoilt else { return (loaded, plan, found) };
        let files = loaded.configuration.archives[spoilt].files.clone();
        loaded.diagnostics.extend(errors.into_iter().filter(|error| is_in(error, &files)));
        let left_out = loaded.configuration.leave_out(spoilt, &mut loaded.sources, &mut loaded.diagnostics);
        loaded.faulty.extend(left_out);
    }
}

impl Loaded {
    /// Whether anything can reach a flow: a proxy service, an API, or a sequence of its own.
    pub fn can_serve(&self) -> bool {
        let plan = &self.plan;
        let own = |list| plan.list(list).span.file != FileId::BUILT_IN;
        !plan.proxies().is_empty() || !plan.apis().is_empty() || plan.sequences().any(|(_, list)| own(list))
    }

    /// Logs findings: for people with the lines they are about, else as an event each.
    pub fn log(&self, wanted: impl Fn(&Diagnostic) -> bool) {
        let options = render::Human { colour: std::io::stderr().is_terminal(), ..Default::default() };
        for diagnostic in self.found.iter().filter(|diagnostic| wanted(diagnostic)) {
            let mut rendered = render::human(diagnostic, &self.plan.sources, options);
            rendered.push('\n');
            let place = diagnostic.span().map(|span| span.place(&self.plan.sources)).unwrap_or_default();
            let help = diagnostics::without_credentials(&diagnostic.help.join("; ")).into_owned();
            let message = diagnostics::without_credentials(&diagnostic.message).into_owned();
            let rule = diagnostic.rule;
            match diagnostic.severity {
                Severity::Error => {
                    tracing::error!(target: "busbar::config", rule, place, help, rendered, "{message}");
                }
                _ => tracing::warn!(target: "busbar::config", rule, place, help, rendered, "{message}"),
            }
        }
    }

    /// Prints findings for people to stderr.
    pub fn print(&self, wanted: impl Fn(&Diagnostic) -> bool) {
        let options = render::Human { colour: std::io::stderr().is_terminal(), ..Default::default() };
        let mut text = String::new();
        for diagnostic in self.found.iter().filter(|diagnostic| wanted(diagnostic)) {
            text += &render::human(diagnostic, &self.plan.sources, options);
            text.push('\n');
        }
        // Nobody may be reading.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

/// Each thing once. Reading and compiling look at some things both, a key that names nothing for one: the first
/// finding stays. That a key names what was left out is said where that has its error.
fn once(found: Diagnostics, plan: &Plan) -> Diagnostics {
    let left_out: HashSet<&str> = plan.faulty.iter().filter_map(|faulty| faulty.name.as_deref()).collect();
    let mut seen = HashSet::new();
    let mut kept = Diagnostics::new();
    for diagnostic in &found {
        let is_new = match diagnostic.span() {
            Some(span) => {
                let follows = diagnostic.severity == Severity::Warning
                    && diagnostic.rule.starts_with("unknown-")
                    && left_out.contains(plan.sources.text(span).trim());
                !follows && seen.insert((span, diagnostic.message.clone()))
            }
            None => true,
        };
        if is_new {
            kept.push(diagnostic.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::{Client, ClientLimits};

    fn found(name: &str, artifacts: &str) -> (Vec<(&'static str, String)>, bool) {
        let path = std::env::temp_dir().join(format!("busbar-load-{}-{name}.xml", std::process::id()));
        let text = format!("<definitions xmlns='http://ws.apache.org/ns/synapse'>{artifacts}</definitions>");
        std::fs::write(&path, text).unwrap();
        let loaded = load(&path, &Services::new(Client::new(ClientLimits::default())), None);
        std::fs::remove_file(&path).unwrap();
        let found = loaded.found.iter().map(|one| (one.rule, one.message.clone())).collect();
        (found, loaded.can_serve())
    }

    /// An archive that loads and does not compile goes as a whole; the directory beside it stays.
    #[test]
    fn archives_compile_as_a_whole() {
        let root = std::env::temp_dir().join(format!("busbar-load-archive-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let sequence = |name: &str, steps: &str| {
            format!("<sequence xmlns='http://ws.apache.org/ns/synapse' name='{name}'>{steps}</sequence>")
        };
        for (archive, members) in [
            ("A", [("good", "<drop/>"), ("bad", "<sned/>")]),
            ("B", [("fine", "<drop/>"), ("java", "<class name='a.B'/>")]),
        ] {
            let listed: String = members
                .iter()
                .map(|(name, _)| format!("<dependency artifact='{name}' version='1' include='true'/>"))
                .collect();
            write(
                &format!("{archive}/artifacts.xml"),
                &format!(
                    "<artifacts><artifact name='{archive}' version='1' type='carbon/application'>{listed}</artifact></artifacts>"
                ),
            );
            for (name, steps) in members {
                write(
                    &format!("{archive}/{name}_1/artifact.xml"),
                    &format!(
                        "<artifact name='{name}' version='1' type='synapse/sequence'><file>s.xml</file></artifact>"
                    ),
                );
                write(&format!("{archive}/{name}_1/s.xml"), &sequence(name, steps));
            }
        }
        write("sequences/own.xml", &sequence("own", "<drop/>"));
        let loaded = load(&root, &Services::new(Client::new(ClientLimits::default())), None);
        std::fs::remove_dir_all(&root).unwrap();
        let names: Vec<&str> = loaded.plan.sequences().map(|(name, _)| name).collect();
        assert!(names.contains(&"own") && names.contains(&"fine") && !names.contains(&"good"), "{names:?}");
        let rules: Vec<&str> = loaded.found.iter().map(|own| own.rule).collect();
        assert_eq!(
            rules,
            ["unknown-mediator", "faulty-archive", "unsupported-mediator"],
            "{:?}",
            loaded.found
        );
    }

    #[test]
    fn a_thing_is_found_once() {
        let no_sequence = ("unknown-reference", "there is no sequence `mian`".to_owned());
        let proxy = "<proxy name='P'><target inSequence='mian'/></proxy>";
        assert_eq!(found("once", proxy), (vec![no_sequence], true));
        let no_mediator = ("unknown-mediator", "there is no mediator `sned`".to_owned());
        let follows = "<proxy name='P'><target inSequence='s'/></proxy><sequence name='s'><sned/></sequence>";
        assert_eq!(found("follows", follows), (vec![no_mediator.clone()], true));
        let nothing = "<proxy name='P'><target><inSequence><sned/></inSequence></target></proxy>";
        assert_eq!(found("nothing", nothing), (vec![no_mediator], false));
        assert_eq!(found("empty", ""), (vec![], false));
        assert_eq!(found("sequence", "<sequence name='s'><send/></sequence>"), (vec![], true));
    }
}
