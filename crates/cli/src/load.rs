//! Loads and compiles a configuration, with everything that was found about it in one list.

use config::{ArtifactKind, Configuration, FaultyArtifact, Fetch, Flawed, LastGood, LoadOptions};
use diagnostics::{Diagnostic, Diagnostics, FileId, Severity, SourceMap, Span, render};
use flow::{Plan, Services};
use std::collections::HashSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// A configuration as it was loaded.
pub struct Loaded {
    /// What of it can run.
    pub plan: Plan,
    /// What was found, in the order of loading and compiling, each thing once.
    pub found: Diagnostics,
    /// Artifacts that could be read, whether they compile or not.
    pub artifacts: usize,
    /// What the next reload falls back on.
    pub good: LastGood,
    /// Artifacts that are not read: why, and the path of each.
    pub not_read: Vec<(&'static str, PathBuf)>,
    /// Artifacts that are left out for their frame, and whose flows can be read.
    pub flawed: Flawed,
}

/// What is in force while the configuration that is to replace it is loaded.
#[derive(Clone, Copy)]
pub struct InForce<'a> {
    /// The configuration.
    pub good: &'a LastGood,
    /// An artifact whose new version is faulty stays as it is there.
    pub mixes: bool,
    /// Leaves out of a plan what cannot run here, such as an endpoint whose port is taken.
    pub leave_out: &'a dyn Fn(&mut Plan),
}

/// What configurations are compiled with: mediators, operations of connectors, endpoints.
pub fn registry() -> flow::Registry {
    let mut registry = mediators::registry(endpoints::endpoint);
    connectors::extend(&mut registry);
    dataservices::extend(&mut registry);
    registry
}

/// Loads the configuration at `path` and compiles it. Never fails: what cannot be used is in [`Loaded::found`].
///
/// `fetch`: what gets local entries from URLs.
pub fn load(path: &Path, services: &Services, fetch: Option<Fetch>, in_force: Option<InForce<'_>>) -> Loaded {
    let last = last_of(in_force);
    let texts = last.map(|last| last.sources().clone()).unwrap_or_default();
    let options = LoadOptions {
        fetch,
        check_only: services.settings.check_only,
        sources: texts,
        running: in_force.map(|running| running.good.running()).unwrap_or_default(),
        ..Default::default()
    };
    let loaded = config::load(path, &options);
    let (mut sources, mut configuration) = (loaded.sources, loaded.configuration);
    let (mut found, mut faulty) = (loaded.diagnostics, loaded.faulty);
    found.extend(crate::server_settings::report(path, &configuration.settings, &mut sources));
    if let Some(in_force) = in_force {
        configuration.follow(in_force.good);
    }
    if let Some(last) = last {
        configuration.fall_back(&mut faulty, &sources, last, true);
    }
    if let Some(in_force) = in_force {
        let held = configuration.hold_libraries(in_force.good);
        match in_force.mixes {
            true => faulty.extend(held),
            // All changes, or nothing.
            false => found.extend(held.iter().map(|library| {
                let name = library.name.as_deref().unwrap_or_default();
                Diagnostic::error("broken-library", format!("the archive of the library `{name}` is faulty"))
                    .at(library.span, library.message.clone())
            })),
        }
    }
    found.extend(beside(&configuration));
    let read =
        Read { configuration, sources, old: options.sources, faulty, found, not_read: loaded.not_read };
    Loaded { flawed: loaded.flawed, ..settle(read, services, in_force) }
}

/// Compiles once more a configuration that was in force before; `faulty`: what was left out of it.
pub fn again(
    good: &LastGood,
    mut faulty: Vec<FaultyArtifact>,
    last: &LastGood,
    services: &Services,
) -> Loaded {
    // What could not listen then may do so now.
    let written = good.configuration().written();
    let is_there = |artifact: &FaultyArtifact| {
        written.iter().any(|other| other.kind == artifact.kind && Some(&other.name) == artifact.name.as_ref())
    };
    faulty.retain(|artifact| artifact.held || !is_there(artifact));
    let read = Read {
        configuration: good.again(last),
        sources: good.sources().clone(),
        old: SourceMap::new(),
        faulty,
        found: Diagnostics::new(),
        not_read: Vec::new(),
    };
    settle(read, services, None)
}

/// What a faulty artifact falls back on.
fn last_of(in_force: Option<InForce<'_>>) -> Option<&LastGood> {
    in_force.filter(|running| running.mixes).map(|running| running.good)
}

/// A configuration that was read, and is not compiled yet.
struct Read {
    configuration: Configuration,
    sources: SourceMap,
    /// The files among `sources` that belong to the configuration before.
    old: SourceMap,
    faulty: Vec<FaultyArtifact>,
    found: Diagnostics,
    not_read: Vec<(&'static str, PathBuf)>,
}

/// What was to stay as it was, and does not compile any more (a setting that it needs is another one), is left out like what took its
/// place, and for the reason of that.
fn give_up(plan: &mut Plan, left_out: &[FaultyArtifact]) {
    let is_same = |one: &FaultyArtifact, other: &FaultyArtifact| {
        one.kind == other.kind && one.name.is_some() && one.name == other.name
    };
    for old in left_out.iter().filter(|old| !old.held) {
        let Some(at) = plan.faulty.iter().position(|one| one.held && is_same(one, old)) else { continue };
        plan.faulty[at].held = false;
        if let Some(behind) = plan.faulty[at + 1..].iter().position(|one| is_same(one, old)) {
            plan.faulty.remove(at + 1 + behind);
        }
    }
}

/// Compiles until nothing new is faulty. Each round leaves out or replaces at least one artifact, so that comes to an end.
fn settle(read: Read, services: &Services, in_force: Option<InForce<'_>>) -> Loaded {
    let last = last_of(in_force);
    let Read { mut configuration, mut sources, old, mut faulty, mut found, not_read } = read;
    let registry = registry();
    let (mut plan, found, left_out) = loop {
        let (read, so_far) = (faulty.len(), found.len());
        let mut texts = sources.clone();
        let files = configuration.files();
        texts.retain(|file| old.get(file).is_none() || files.contains(&file));
        let mut findings = found.clone();
        let mut plan =
            flow::compile(&configuration, texts, faulty.clone(), &registry, services, &mut findings);
        if let Some(in_force) = in_force.filter(|running| running.mixes) {
            (in_force.leave_out)(&mut plan);
        }
        let unknown = unknown_values(&findings);
        let errors = findings.iter().skip(so_far).filter(|one| one.severity == Severity::Error);
        let errors: Vec<Diagnostic> = errors.filter(|one| !unknown.has(one)).cloned().collect();
        let failed = plan.faulty.get(read..).unwrap_or_default();
        let held = last.map(|last| {
            let named = findings.iter().skip(so_far).filter(|one| is_of_a_document(one));
            let named = named.filter_map(|one| Some((one.span()?, sources.text(one.span()?), &one.message)));
            let unchanged = failed.iter().filter_map(|one| {
                // A sequence of the registry is known by its key only.
                let key =
                    Some(sources.text(one.span)).filter(|text| Some(text.trim()) == one.name.as_deref());
                let text = last.unchanged(one, &configuration, &sources).or(key)?;
                Some((one.span, text, &one.message))
            });
            let suspects: Vec<_> = named.chain(unchanged).collect();
            hold_documents(&mut configuration, &suspects, last)
        });
        if let Some(held) = held.filter(|held| !held.is_empty()) {
            faulty.extend(held);
            continue;
        }
        if let Some(spoilt) = spoilt(&configuration, &errors) {
            let archive = configuration.archives[spoilt].clone();
            let errors: Vec<Diagnostic> =
                errors.into_iter().filter(|error| is_in(error, &archive.files)).collect();
            let why = errors.iter().find(|error| spoils(error)).map_or("", |error| error.message.as_str());
            found.extend(errors.iter().cloned());
            let left_out = configuration.leave_out(spoilt, why, &mut sources, &mut found);
            // It may be the version before, which does not compile any more.
            let of_it = |one: &&mut FaultyArtifact| one.archive.as_ref() == Some(&archive.path);
            faulty.iter_mut().filter(of_it).for_each(|one| one.held = false);
            faulty.extend(left_out);
            if let Some(last) = last {
                configuration.fall_back(&mut faulty, &sources, last, true);
            }
            continue;
        }
        let mut failed = plan.faulty.get(read..).unwrap_or_default().to_vec();
        let worse = last.map(|last| configuration.hold_faulty_operations(&failed, &sources, last));
        if let Some(worse) = worse.filter(|worse| !worse.is_empty()) {
            found.extend(errors);
            faulty.extend(worse);
            continue;
        }
        let held = last.map(|last| configuration.fall_back(&mut failed, &sources, last, false));
        if held.is_none_or(|held| held.is_empty()) {
            break (plan, findings, failed);
        }
        found.extend(errors);
        faulty.extend(failed.into_iter().filter(|artifact| artifact.held));
    };
    give_up(&mut plan, &left_out);
    let artifacts = configuration.artifacts();
    let good = LastGood::new(configuration, (*plan.sources).clone(), &left_out);
    let good = good.standing_for(&plan.faulty, last);
    let unknown = unknown_values(&found);
    let mut rest = Diagnostics::new();
    rest.extend(found.into_iter().filter(|finding| !unknown.has(finding)));
    let found = once(rest, &plan);
    Loaded { plan, found, artifacts, good, not_read, flawed: Flawed::default() }
}

/// Libraries that are left out since another one has their name. Operations that are executed here are taken from no library.
fn beside(configuration: &Configuration) -> Vec<Diagnostic> {
    let is_connector = |name: &str| {
        let is_of_it =
            |operation: &str| operation.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        connectors::definitions().any(|definition| is_of_it(definition.name))
    };
    let libraries = configuration.libraries.iter().filter(|library| !is_connector(&library.name));
    let beside = libraries.flat_map(|library| library.beside.iter().map(move |place| (library, *place)));
    let clashes = beside.map(|(library, place)| {
        let message = format!("two libraries are named `{}`, and they differ", library.name);
        Diagnostic::warning("duplicate-key", message)
            .at(place, "this one is left out, with all its operations")
            .at(library.place, "this one counts")
    });
    clashes.collect()
}

/// The places of values that are known only where the configuration runs.
struct UnknownValues(HashSet<Span>);

impl UnknownValues {
    /// Whether a finding is about such a value, and not about its absence.
    fn has(&self, finding: &Diagnostic) -> bool {
        finding.rule != UNRESOLVED && finding.span().is_some_and(|span| self.0.contains(&span))
    }
}

const UNRESOLVED: &str = "unresolved-value";

/// Values that are absent and may be (`busbar check`): they are known only where the configuration runs.
fn unknown_values(found: &Diagnostics) -> UnknownValues {
    let absent =
        found.iter().filter(|finding| finding.rule == UNRESOLVED && finding.severity == Severity::Warning);
    UnknownValues(absent.filter_map(Diagnostic::span).collect())
}

/// An archive of which an artifact has an error that WSO2 finds as well: it is in use as a whole or not at all.
fn spoilt(configuration: &Configuration, errors: &[Diagnostic]) -> Option<usize> {
    let mut archives = configuration.archives.iter();
    archives.position(|archive| errors.iter().any(|error| spoils(error) && is_in(error, &archive.files)))
}

/// Keeps the previous versions of documents that a faulty place names; `suspects`: the place, the text, and why.
fn hold_documents(
    configuration: &mut Configuration,
    suspects: &[(Span, &str, &String)],
    last: &LastGood,
) -> Vec<FaultyArtifact> {
    let mut held = Vec::new();
    for (span, text, why) in suspects {
        for key in configuration.fall_back_on_documents(text, last) {
            let one = FaultyArtifact::new(ArtifactKind::Registry, Some(key), *span, why.as_str());
            held.push(FaultyArtifact { held: true, ..one });
        }
    }
    held
}

/// Whether a finding may come from a document of the registry, or a local entry, that an artifact names.
fn is_of_a_document(finding: &Diagnostic) -> bool {
    matches!(
        finding.rule,
        "bad-stylesheet"
            | "bad-schema"
            | "bad-script"
            | "bad-mapping"
            | "bad-template"
            | "bad-json-template"
            | "bad-policy"
            | "bad-wsdl"
            | "unknown-entry"
            | "unknown-sequence"
            | "unknown-endpoint"
    )
}

fn spoils(error: &Diagnostic) -> bool {
    !config::is_ours(error.rule)
}

fn is_in(error: &Diagnostic, files: &[FileId]) -> bool {
    error.span().is_some_and(|span| files.contains(&span.file))
}

impl Loaded {
    /// Whether anything can reach a flow: a proxy service, an API, or a sequence of its own.
    pub fn can_serve(&self) -> bool {
        let plan = &self.plan;
        let is_written = |list| plan.list(list).span.file != FileId::BUILT_IN;
        !plan.proxies().is_empty()
            || !plan.apis().is_empty()
            || plan.sequences().any(|(_, list)| is_written(list))
    }

    /// What is found within the flows of artifacts that are left out for their frame, by `rules` as well: `busbar check` says
    /// all that is wrong at once.
    pub fn within_flawed(
        &self,
        services: &Services,
        rules: impl FnOnce(&Configuration, &flow::Registry) -> Diagnostics,
    ) -> Diagnostics {
        let places = self.flawed.spans();
        let mut found = Diagnostics::new();
        if places.is_empty() {
            return found;
        }
        let whole = self.good.configuration().with_flawed(&self.flawed);
        let registry = registry();
        let mut findings = Diagnostics::new();
        let sources = (*self.plan.sources).clone();
        flow::compile(&whole, sources, self.plan.faulty.clone(), &registry, services, &mut findings);
        findings.extend(rules(&whole, &registry));
        let unknown = unknown_values(&self.found);
        let mut reported: HashSet<(&str, Span)> =
            self.found.iter().filter_map(|finding| Some((finding.rule, finding.span()?))).collect();
        for finding in &findings {
            let Some(span) = finding.span() else { continue };
            let is_flawed = places.iter().any(|place| place.encloses(span));
            // The template of a resource is looked at twice: as it is read, and as requests are matched with it.
            if finding.rule == "bad-template" && reported.contains(&("bad-uri-template", span)) {
                continue;
            }
            if is_flawed && !unknown.has(finding) && reported.insert((finding.rule, span)) {
                found.push(finding.clone());
            }
        }
        found
    }

    /// Logs findings: for people with the lines they are about, else as an event each.
    pub fn log(&self, wanted: impl Fn(&Diagnostic) -> bool) {
        for diagnostic in self.found.iter().filter(|diagnostic| wanted(diagnostic)) {
            let rendered = self.rendered(diagnostic);
            let diagnostic = &*diagnostic.shown(&self.plan.sources);
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

    /// A finding with the line that it is about, and an empty line.
    fn rendered(&self, diagnostic: &Diagnostic) -> String {
        let options = render::Human { colour: std::io::stderr().is_terminal(), ..Default::default() };
        render::human(diagnostic, &self.plan.sources, options) + "\n"
    }

    /// Prints findings for people to stderr.
    pub fn print(&self, wanted: impl Fn(&Diagnostic) -> bool) {
        let wanted = self.found.iter().filter(|diagnostic| wanted(diagnostic));
        let text: String = wanted.map(|diagnostic| self.rendered(diagnostic)).collect();
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
        let loaded = load(&path, &Services::new(Client::new(ClientLimits::default())), None, None);
        std::fs::remove_file(&path).unwrap();
        let found = loaded.found.iter().map(|finding| (finding.rule, finding.message.clone())).collect();
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
        let loaded = load(&root, &Services::new(Client::new(ClientLimits::default())), None, None);
        std::fs::remove_dir_all(&root).unwrap();
        let names: Vec<&str> = loaded.plan.sequences().map(|(name, _)| name).collect();
        assert!(names.contains(&"own") && names.contains(&"fine") && !names.contains(&"good"), "{names:?}");
        let rules: Vec<&str> = loaded.found.iter().map(|finding| finding.rule).collect();
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

    /// The order in which artifacts are defined is of no consequence: not for what is found, not for what is answered.
    #[test]
    fn keys_are_bound_when_everything_is_read() {
        let backend = flow::testing::backend("");
        let suspend = "<suspendOnFailure><initialDuration>1</initialDuration><progressionFactor>1</progressionFactor></suspendOnFailure>";
        let proxy = |name: &str, steps: &str| {
            format!(
                "<proxy name='{name}'><target faultSequence='failed'><inSequence>{steps}</inSequence></target></proxy>"
            )
        };
        let say = |text: &str| {
            format!(
                "<payloadFactory media-type='text'><format>{text}</format><args/></payloadFactory><respond/>"
            )
        };
        let artifacts = [
            proxy("Sequence", "<sequence key='outer'/>"),
            proxy("Entry", "<sequence key='in-entry'/>"),
            proxy("Template", "<call-template target='t'><with-param name='to' value='x'/></call-template>"),
            proxy("Call", "<call><endpoint key='alias'/></call><respond/>"),
            proxy("Group", "<call><endpoint key='group'/></call><respond/>"),
            proxy("OfEntry", "<call><endpoint key='endpoint-entry'/></call><respond/>"),
            proxy("Faulty", "<sequence key='faulty'/>"),
            proxy("Missing", "<sequence key='missing'/>"),
            proxy("NoEndpoint", "<call><endpoint key='missing'/></call><respond/>"),
            "<proxy name='Named'><target inSequence='outer' faultSequence='failed'/></proxy>".to_owned(),
            "<proxy name='Straight'><target endpoint='alias'><outSequence><send/></outSequence></target></proxy>".to_owned(),
            "<sequence name='outer' onError='failed'><sequence key='inner'/></sequence>".to_owned(),
            format!("<sequence name='inner'>{}</sequence>", say("inner")),
            format!("<sequence name='failed'>{}</sequence>", say("failed")),
            "<sequence name='faulty'><sned/></sequence>".to_owned(),
            "<sequence name='round'><filter xpath='false()'><sequence key='round'/></filter></sequence>".to_owned(),
            format!("<localEntry key='in-entry'><sequence xmlns='{}'>{}</sequence></localEntry>", config::SYNAPSE, say("entry")),
            format!("<localEntry key='endpoint-entry'><endpoint xmlns='{}'><address uri='{backend}/e'/></endpoint></localEntry>", config::SYNAPSE),
            format!("<template name='t'><parameter name='to'/><sequence>{}</sequence></template>", say("template")),
            "<endpoint name='alias' key='good'/>".to_owned(),
            "<endpoint name='group'><failover><endpoint key='bad'/><endpoint key='alias'/></failover></endpoint>".to_owned(),
            format!("<endpoint name='good'><address uri='{backend}/g'/></endpoint>"),
            format!("<endpoint name='bad'><address uri='http://127.0.0.1:9/'>{suspend}</address></endpoint>"),
            "<messageStore name='s'/>".to_owned(),
            "<messageProcessor name='m' class='x.SamplingProcessor' messageStore='s'><parameter name='sequence'>inner</parameter></messageProcessor>".to_owned(),
        ];
        let registry = super::registry();
        let observed = |order: &[usize]| {
            let text: String = order.iter().map(|&at| artifacts[at].as_str()).collect();
            let text = format!("<definitions xmlns='{}'>{text}</definitions>", config::SYNAPSE);
            let tested = flow::testing::configuration(&registry, &text);
            let mut found = tested.found.clone();
            found.sort();
            let names = artifacts.iter().filter_map(|artifact| artifact.strip_prefix("<proxy name='"));
            for name in names.filter_map(|rest| rest.split('\'').next()) {
                let headers = [("Content-Type", "text/plain")];
                let response = tested.ask("POST", &format!("/services/{name}"), &headers, "hello");
                found.push(format!("{name}: {} {}", response.status, response.body));
            }
            found
        };
        let mut order: Vec<usize> = (0..artifacts.len()).collect();
        let expected = observed(&order);
        for line in [
            "Sequence: 200 inner",
            "Entry: 200 entry",
            "Template: 200 template",
            "Call: 200 hello",
            "Group: 200 hello",
        ] {
            assert!(expected.iter().any(|expectation| expectation == line), "{line}: {expected:#?}");
        }
        for line in [
            "OfEntry: 200 hello",
            "Faulty: 200 failed",
            "Missing: 200 failed",
            "Named: 200 inner",
            "Straight: 200 hello",
        ] {
            assert!(expected.iter().any(|expectation| expectation == line), "{line}: {expected:#?}");
        }
        let mut state = 88_172_645_463_325_252_u64;
        for _ in 0..40 {
            for at in (1..order.len()).rev() {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                order.swap(at, (state % (at as u64 + 1)) as usize);
            }
            assert_eq!(observed(&order), expected, "{order:?}");
        }
    }
}
