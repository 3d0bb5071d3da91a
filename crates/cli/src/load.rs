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
    let loaded = config::load(path, &options);
    let mut found = loaded.diagnostics;
    let registry = mediators::registry(endpoints::endpoint);
    let artifacts = loaded.configuration.artifacts();
    let plan =
        flow::compile(&loaded.configuration, loaded.sources, loaded.faulty, &registry, services, &mut found);
    let found = once(found, &plan);
    Loaded { plan, found, artifacts }
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
