//! Reads the configuration, at the start and again on SIGHUP or `POST /reload`.
//!
//! A reload goes artifact by artifact. One whose new version is faulty stays in force as it was, the others change;
//! with `--strict` all change or none.

use crate::bus::{Start, bound_memory, services};
use crate::listeners::{Listeners, server_limits, server_tls};
use crate::load::{Loaded, load};
use crate::settings::Settings;
use config::LastGood;
use diagnostics::{Diagnostic, Severity, Span};
use flow::{Bus, Plan, Services};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use transport::{Server, ServerTls};

/// Settings that were read anew, with what they name.
struct Renewed {
    settings: Settings,
    /// See [`InForce::read`].
    read: u64,
    services: Arc<Services>,
    /// Of the https listener.
    tls: Option<ServerTls>,
}

/// Reloads a bus.
pub struct Reloader {
    start: Start,
    bus: Arc<Bus>,
    servers: Vec<(&'static str, Arc<Server>)>,
    listeners: Arc<Listeners>,
    /// Locked for as long as a reload takes: a signal and the admin address take turns.
    in_force: Mutex<InForce>,
}

/// What the next reload compares with.
struct InForce {
    good: LastGood,
    settings: Settings,
    /// Those that were read last and can be used.
    latest: Settings,
    /// A number for the settings and the files that they name.
    read: u64,
}

impl Reloader {
    /// For a bus that has begun with this configuration.
    pub fn new(
        start: Start,
        bus: Arc<Bus>,
        servers: Vec<(&'static str, Arc<Server>)>,
        listeners: Arc<Listeners>,
        good: LastGood,
    ) -> Reloader {
        let settings = start.settings.clone();
        let read = fingerprint(&settings);
        let in_force = InForce { good, latest: settings.clone(), settings, read };
        Reloader { start, bus, servers, listeners, in_force: Mutex::new(in_force) }
    }

    /// Reads settings, certificates and the configuration, and puts them in force. Both answers are a sentence for the
    /// operator. It waits for files, and compiles: not for a worker.
    ///
    /// # Errors
    /// The configuration has not changed: it cannot be found, nothing of it can serve, or (`--strict`) something in it is
    /// wrong.
    pub fn reload(&self) -> Result<String, String> {
        let mut in_force = flow::lock(&self.in_force);
        let renewed = self.settings(&in_force);
        let services = renewed.as_ref().map_or_else(|| self.bus.services(), |own| Arc::clone(&own.services));
        let settings = renewed.as_ref().map_or(&in_force.latest, |own| &own.settings);
        let leave_out = |plan: &mut Plan| self.listeners.leave_out_taken(plan, settings);
        let last =
            crate::load::InForce { good: &in_force.good, mixes: !self.start.strict, leave_out: &leave_out };
        let mut loaded = read(&self.start, &services, Some(last))
            .map_err(|why| format!("not reloaded: {why}; the old configuration goes on serving"))?;
        if let Some(renewed) = renewed {
            self.put_in_force(renewed, &mut in_force);
        }
        let prepared = self.listeners.prepare(&mut loaded.plan, &in_force.latest);
        // It may have been compiled several times.
        loaded.plan.generation = self.bus.plan().generation + 1;
        let (artifacts, generation) = (loaded.plan.artifacts(), loaded.plan.generation);
        let changes = in_force.good.changes(&loaded.good);
        let mut said = format!("reloaded: {artifacts} artifacts, generation {generation}: {changes}");
        in_force.good = loaded.good;
        report(&loaded.plan);
        let held = loaded.plan.faulty.iter().filter(|faulty| faulty.held).count();
        let left_out = loaded.plan.faulty.len() - held;
        if held > 0 {
            said += &format!(", {held} faulty and still in force as before");
        }
        if left_out > 0 {
            said += &format!(", {left_out} faulty and left out");
        }
        self.bus.swap(loaded.plan, services);
        self.listeners.follow(prepared, &self.bus);
        Ok(said)
    }

    /// Reads the settings again, and what they name. `None`: they are what they were, or cannot be used; then the old
    /// ones stay in force.
    fn settings(&self, in_force: &InForce) -> Option<Renewed> {
        let source = self.start.source.as_ref()?;
        let new = Settings::load(&self.start.path, source.file.as_deref(), &source.set);
        let new = new.and_then(|settings| {
            let read = fingerprint(&settings);
            if read == in_force.read {
                return Ok(None);
            }
            let services = Arc::new(services(&settings)?.in_place_of(&self.bus.services()));
            let tls = settings.tls.certificate.as_ref().map(|_| server_tls(&settings)).transpose()?;
            Ok(Some(Renewed { settings, read, services, tls }))
        });
        new.unwrap_or_else(|why| {
            tracing::error!(target: "busbar::reload", "the settings stay as they are: {why}");
            None
        })
    }

    /// Puts settings in force. Nothing of this can fail.
    fn put_in_force(&self, renewed: Renewed, in_force: &mut InForce) {
        let Renewed { settings, read, tls, .. } = renewed;
        let https = self.servers.iter().find(|(name, _)| *name == "https");
        let mut restart = in_force.settings.needs_restart(&settings);
        if https.is_none() && tls.is_some() {
            restart.push("tls (https is off)".to_owned());
        }
        if !restart.is_empty() {
            tracing::warn!(target: "busbar::reload", "changed, and read at the start only: {}", restart.join(", "));
        }
        for (_, server) in &self.servers {
            server.set_limits(server_limits(&settings));
        }
        for server in self.listeners.servers() {
            server.set_limits(server_limits(&settings));
        }
        bound_memory(&settings);
        if let (Some((_, server)), Some(tls)) = (https, tls) {
            server.set_tls(tls);
        }
        tracing::info!(target: "busbar::reload", "settings and certificates were read again");
        // What needs a restart stays different until there is one.
        in_force.settings.written.clone_from(&settings.written);
        in_force.read = read;
        in_force.latest = settings;
    }
}

/// A number for settings and the files that they name.
fn fingerprint(settings: &Settings) -> u64 {
    let tls = &settings.tls;
    let mut files: Vec<&Option<PathBuf>> =
        vec![&tls.certificate, &tls.key, &tls.client_roots, &settings.vault.key];
    files.extend(
        settings.profile.iter().flat_map(|profile| [&profile.roots, &profile.certificate, &profile.key]),
    );
    let mut hasher = DefaultHasher::new();
    settings.written.to_string().hash(&mut hasher);
    for file in files.into_iter().flatten() {
        config::read_file(file).ok().hash(&mut hasher);
    }
    hasher.finish()
}

/// Reads the configuration and prints what was found about it to stderr; `last`: what is in force.
///
/// # Errors
/// Nothing of it can serve, or (`--strict`) something in it is wrong.
pub fn read(
    start: &Start,
    services: &Services,
    last: Option<crate::load::InForce<'_>>,
) -> Result<Loaded, String> {
    let path = start.path.display();
    let loaded = load(&start.path, services, Some(crate::fetch::fetch(&services.tls)), last);
    loaded.log(|diagnostic| diagnostic.severity >= Severity::Warning);
    let errors = loaded.found.errors();
    if start.strict && errors > 0 {
        let s = if errors == 1 { "" } else { "s" };
        return Err(format!("{path} has {errors} error{s} and --strict is given"));
    }
    // If a directory cannot be listed, its artifacts are unknown, not removed: keep the old plan.
    let is_unknown = |one: &&Diagnostic, last: &LastGood| match one.rule {
        "no-configuration" => one.span().is_none(),
        "unreadable-directory" => one
            .span()
            .and_then(|span| loaded.plan.sources.get(span.file))
            .is_some_and(|directory| last.has_below(Path::new(directory.path()))),
        _ => false,
    };
    if let Some(unread) = last.and_then(|last| loaded.found.iter().find(|one| is_unknown(one, last.good))) {
        return Err(unread.message.clone());
    }
    if errors > 0 && !loaded.can_serve() {
        return Err(format!("nothing in {path} can serve"));
    }
    Ok(loaded)
}

/// Says in the log which artifacts are faulty.
pub fn report(plan: &Plan) {
    for faulty in &plan.faulty {
        let name = faulty.name.as_deref().map_or("without a name".to_owned(), |name| format!("`{name}`"));
        let place = Some(faulty.span).filter(|span| *span != Span::BUILT_IN).map(|span| plan.place(span));
        let effect = if faulty.held { "stays in force as it was" } else { "is left out" };
        tracing::error!(
            target: "busbar::reload",
            place = place.unwrap_or_default(),
            "the {} {name} {effect}: {}", faulty.kind, faulty.message
        );
    }
}
