//! Reads the configuration, at the start and again when it has changed, on SIGHUP or `POST /reload`; and puts one in force once more that
//! was before.
//!
//! A reload goes artifact by artifact. One whose new version is faulty stays in force as it was, the others change;
//! with `--strict` all change or none.

use crate::bus::{Start, bound_memory, services};
use crate::generations::{Cause, History};
use crate::listeners::{Listeners, server_limits, server_tls, warn_of_expiry};
use crate::load::{Loaded, again, load};
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::switches::Switches;
use crate::words::counted;
use admin::{Deployment, Generations, NotRolledBack};
use config::LastGood;
use diagnostics::{Diagnostic, Severity, Span};
use flow::{Bus, Plan, Services, lock};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};
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
    switches: Switches,
    /// Locked for as long as a reload takes: whoever asks for one waits for the one before.
    in_force: Mutex<InForce>,
    /// The generations that were in force, for the admin address.
    history: Mutex<History>,
    /// The bus stops, and nothing new comes into force. Locked while something does.
    stops: Mutex<bool>,
}

/// What the next reload compares with.
struct InForce {
    good: LastGood,
    settings: Settings,
    /// The last settings that were read and can be used.
    latest: Settings,
    /// A number for the settings and the files that they name.
    read: u64,
    /// What lay there when the configuration was read last, or when it was rolled back.
    seen: Snapshot,
}

impl Reloader {
    /// For a bus that starts with this configuration; `seen`: the state of its files when it was read.
    pub fn new(
        start: Start,
        bus: Arc<Bus>,
        servers: Vec<(&'static str, Arc<Server>)>,
        listeners: Arc<Listeners>,
        switches: Switches,
        good: LastGood,
        seen: Snapshot,
    ) -> Reloader {
        let settings = start.settings.clone();
        let read = fingerprint(&settings, &good.configuration().root);
        let history = History::begin(settings.deploy.generations, &bus.plan(), &good);
        let latest = settings.clone();
        let in_force = InForce { good, latest, settings, read, seen };
        Reloader {
            start,
            bus,
            servers,
            listeners,
            switches,
            in_force: Mutex::new(in_force),
            history: Mutex::new(history),
            stops: Mutex::new(false),
        }
    }

    /// Reads settings, certificates and the configuration, and puts them in force. Both answers are a sentence for the
    /// operator. It waits for files, and compiles: not for a worker.
    ///
    /// # Errors
    /// The configuration has not changed: it cannot be found, nothing of it can serve, or (`--strict`) something in it is
    /// wrong.
    pub fn reload(&self, cause: Cause) -> Result<String, String> {
        let mut in_force = lock(&self.in_force);
        let seen = look_with(&self.start, &in_force.good);
        let is_same = !self.is_other(&in_force, &seen);
        let (renewed, unusable) = match self.settings(&in_force) {
            Ok(renewed) => (renewed, None),
            Err(why) => {
                let why = format!("the settings stay as they are: {why}");
                tracing::error!(target: "busbar::reload", "{why}");
                (None, Some(why))
            }
        };
        // Signals come from whoever rotates logs, too.
        let holds = lock(&self.history).rolled_back().filter(|_| is_same && cause == Cause::Signal);
        if let (Some(number), None) = (holds, &renewed) {
            return Ok(format!("the rollback to generation {number} holds: nothing has changed since"));
        }
        in_force.seen = seen;
        let services =
            renewed.as_ref().map_or_else(|| self.bus.services(), |renewed| Arc::clone(&renewed.services));
        let settings = renewed.as_ref().map_or(&in_force.latest, |renewed| &renewed.settings);
        let loaded = match holds {
            Some(_) => Ok(again(&in_force.good, self.bus.plan().faulty.clone(), &in_force.good, &services)),
            None => {
                let leave_out = |plan: &mut Plan| self.listeners.leave_out_unable(plan, settings);
                let mixes = !self.start.strict;
                let last = crate::load::InForce { good: &in_force.good, mixes, leave_out: &leave_out };
                read(&self.start, &services, Some(last))
            }
        };
        // Files may be touched without a change: their content counts.
        let is_same = renewed.is_none();
        let outcome =
            loaded.and_then(|loaded| self.put(loaded, services, renewed, &mut in_force, cause, is_same));
        if holds.is_none() && outcome.is_ok() {
            lock(&self.history).read_anew();
        }
        let unusable = unusable.map_or(String::new(), |why| format!("; {why}"));
        outcome.map(|summary| format!("reloaded: {summary}{unusable}")).map_err(|why| {
            lock(&self.history).refused(cause, &why);
            format!("not reloaded: {why}; the old configuration goes on serving{unusable}")
        })
    }

    /// Puts a configuration in force, with the settings that it was compiled with. `is_same`: the settings are what they were.
    ///
    /// # Errors
    /// The bus stops.
    fn put(
        &self,
        mut loaded: Loaded,
        services: Arc<Services>,
        renewed: Option<Renewed>,
        in_force: &mut InForce,
        cause: Cause,
        is_same: bool,
    ) -> Result<String, String> {
        let stops = lock(&self.stops);
        if *stops {
            return Err("the bus stops".to_owned());
        }
        if let Some(renewed) = renewed {
            self.put_in_force(renewed, in_force);
        }
        let prepared = self.listeners.prepare(&mut loaded.plan, &in_force.latest);
        // It may have been compiled several times.
        loaded.plan.generation = self.bus.plan().generation + 1;
        let (artifacts, generation) = (counted(loaded.plan.artifacts(), "artifact"), loaded.plan.generation);
        let good = loaded.good;
        let changes = in_force.good.changes(&good);
        let mut summary = format!("{artifacts}, generation {generation}: {changes}");
        report(&loaded.plan);
        let held = loaded.plan.faulty.iter().filter(|faulty| faulty.held).count();
        let left_out = loaded.plan.faulty.len() - held;
        if held > 0 {
            summary += &format!(", {held} faulty and still in force as before");
        }
        if left_out > 0 {
            summary += &format!(", {left_out} faulty and left out");
        }
        self.switches.restore(&loaded.plan);
        lock(&self.history).add(&loaded.plan, &good, changes, cause, is_same);
        let seen = std::mem::take(&mut in_force.seen);
        in_force.seen = seen.with_registry(good.configuration().registry.directory());
        in_force.good = good;
        self.bus.swap(loaded.plan, services);
        self.listeners.follow(prepared, &self.bus);
        Ok(summary)
    }

    /// What lies there now, the registry that is in force included.
    pub fn look(&self) -> Snapshot {
        let root = lock(&self.in_force).good.configuration().registry.directory().map(Path::to_owned);
        look(&self.start).with_registry(root.as_deref())
    }

    /// Whether something lies there that was not taken.
    pub fn differs(&self, seen: &Snapshot) -> bool {
        self.is_other(&lock(&self.in_force), seen)
    }

    fn is_other(&self, in_force: &InForce, seen: &Snapshot) -> bool {
        let registry = &in_force.good.configuration().registry;
        let is_ours = |path: &Path| registry.is_written(path) || self.switches.is_kept_in(path);
        seen.differs(&in_force.seen, is_ours)
    }

    /// The bus stops: what comes into force now is the last.
    pub fn stop(&self) {
        *lock(&self.stops) = true;
    }

    /// Whether the bus stops.
    pub fn stops(&self) -> bool {
        *lock(&self.stops)
    }

    /// The right to change what is in force, for whoever does not wait for a reload that takes long: it may wait for a server.
    fn soon(&self) -> Option<MutexGuard<'_, InForce>> {
        let until = Instant::now() + Duration::from_secs(1);
        loop {
            match self.in_force.try_lock() {
                Ok(guard) => return Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// As [`Deployment::roll_back`].
    fn go_back(&self, number: u64) -> Result<String, NotRolledBack> {
        let Some(mut in_force) = self.soon() else {
            return Err(NotRolledBack::Busy("a reload is in progress".to_owned()));
        };
        let plan = self.bus.plan();
        if number == plan.generation {
            return Err(NotRolledBack::InForce(format!("generation {number} is in force")));
        }
        let Some(target) = lock(&self.history).get(number) else {
            return Err(NotRolledBack::Unknown(format!(
                "there is no generation {number} any more, or not yet"
            )));
        };
        let Some(whole) = target.kept.whole() else {
            let why = format!("values from outside that generation {number} was read with are others now");
            return Err(NotRolledBack::Failed(why));
        };
        // The rollback holds until the files differ from their state now.
        let seen = look_with(&self.start, &in_force.good);
        let services = self.bus.services();
        let loaded = again(&whole, target.faulty.clone(), &in_force.good, &services);
        loaded.log(|diagnostic| diagnostic.severity >= Severity::Error);
        let cause = Cause::RollBack(number);
        let failed = |why: String| {
            lock(&self.history).refused(cause, &why);
            NotRolledBack::Failed(format!(
                "not rolled back: {why}; generation {} goes on serving",
                plan.generation
            ))
        };
        if self.start.strict && loaded.found.errors() > 0 {
            return Err(failed("something of it is faulty by now, and --strict is given".to_owned()));
        }
        let summary = self.put(loaded, services, None, &mut in_force, cause, false).map_err(failed)?;
        in_force.seen = seen;
        Ok(format!(
            "rolled back to generation {number}: {summary}; that holds until the configuration changes again"
        ))
    }

    /// Reads the settings again, and what they name. `None`: they are what they were.
    ///
    /// # Errors
    /// They cannot be used: the old ones stay in force.
    fn settings(&self, in_force: &InForce) -> Result<Option<Renewed>, String> {
        let Some(source) = self.start.source.as_ref() else { return Ok(None) };
        let before = in_force.latest.file.as_deref();
        if let Some(file) = before.filter(|file| file.exists() && !file.is_file()) {
            return Err(format!("{} is not a file, and can be read at the start only", file.display()));
        }
        let settings = Settings::load(&self.start.path, source.file.as_deref(), &source.set)?;
        // Without its file, everything would be as by default: nobody would be known, and nothing forbidden.
        if let (Some(file), None) = (before, &settings.file) {
            return Err(format!("{} is gone; a restart would do without it", file.display()));
        }
        let read = fingerprint(&settings, &in_force.good.configuration().root);
        if read == in_force.read {
            return Ok(None);
        }
        let services = Arc::new(services(&settings)?.in_place_of(&self.bus.services()));
        let tls = settings.tls.certificate.as_ref().map(|_| server_tls(&settings, settings.http.http2));
        let tls = tls.transpose()?;
        tls.iter().for_each(|tls| warn_of_expiry("https", tls));
        Ok(Some(Renewed { settings, read, services, tls }))
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
        self.listeners.set_limits(&settings);
        bound_memory(&settings);
        if let (Some((_, server)), Some(tls)) = (https, tls) {
            server.set_tls(tls);
        }
        tracing::info!(target: "busbar::reload", "settings and certificates were read again");
        // A setting that needs a restart counts as different until there is one.
        in_force.settings.written.clone_from(&settings.written);
        in_force.read = read;
        in_force.latest = settings;
    }
}

impl Deployment for Reloader {
    fn reload(&self) -> Result<String, String> {
        Reloader::reload(self, Cause::Request)
    }

    fn roll_back(&self, number: u64) -> Result<String, NotRolledBack> {
        self.go_back(number)
    }

    fn generations(&self) -> Generations {
        lock(&self.history).all()
    }

    fn keep(&self) -> Result<bool, String> {
        self.switches.keep(&self.bus.plan())
    }
}

/// What lies where the configuration is read.
pub fn look(start: &Start) -> Snapshot {
    let named = start.source.as_ref().and_then(|source| source.file.as_deref());
    Snapshot::of(&start.path, named)
}

/// The same, with the registry of a configuration.
pub fn look_with(start: &Start, good: &LastGood) -> Snapshot {
    look(start).with_registry(good.configuration().registry.directory())
}

/// A number for settings and the files that they name. `root`: where the paths of keys for WS-Security begin.
fn fingerprint(settings: &Settings, root: &Path) -> u64 {
    let (tls, security) = (&settings.tls, &settings.security);
    let mut files: Vec<&Option<PathBuf>> = vec![
        &tls.certificate,
        &tls.key,
        &tls.client_roots,
        &tls.ocsp_response,
        &settings.vault.key,
        &settings.vault.file,
        &settings.vault.password_file,
        &settings.http.priorities,
    ];
    files.extend(
        settings.profile.iter().flat_map(|profile| [&profile.roots, &profile.certificate, &profile.key]),
    );
    let lists = tls.revoked.iter().chain(settings.profile.iter().flat_map(|profile| &profile.revoked));
    let hosts = tls.hosts.iter().flat_map(|host| [&host.certificate, &host.key]);
    let keys = settings.access.values().filter_map(|access| access.jwks.as_deref());
    let keys = keys.filter(|jwks| !jwks.contains("://")).map(PathBuf::from);
    let of_messages =
        [&security.keystore, &security.truststore].into_iter().flatten().chain(&security.revoked);
    let mut hasher = DefaultHasher::new();
    settings.written.to_string().hash(&mut hasher);
    settings.system.hash(&mut hasher);
    format!("{:?}", settings.kinds).hash(&mut hasher);
    for file in files.into_iter().flatten().chain(lists).chain(hosts) {
        config::read_file(file).ok().hash(&mut hasher);
    }
    for file in of_messages.map(|file| root.join(file)).chain(keys) {
        config::read_file(&file).ok().hash(&mut hasher);
    }
    hasher.finish()
}

/// What gets local entries from other servers, where that is wanted.
pub fn fetch(start: &Start, services: &Services) -> Option<config::Fetch> {
    start.settings.deploy.fetch.unwrap_or(true).then(|| crate::remote::fetch(&services.tls))
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
    let mut loaded = load(&start.path, services, fetch(start, services), last);
    if start.addresses.https.is_none() && start.settings.tls.certificate.is_none() {
        loaded.found.extend(crate::listeners::only_on_https(loaded.good.configuration(), true));
    }
    loaded.log(|diagnostic| diagnostic.severity >= Severity::Warning);
    let errors = loaded.found.errors();
    if start.strict && errors > 0 {
        let s = if errors == 1 { "" } else { "s" };
        return Err(format!("{path} has {errors} error{s} and --strict is given"));
    }
    // If a directory cannot be listed, its artifacts are unknown, not removed: keep the old plan.
    let is_unknown = |finding: &&Diagnostic, last: &LastGood| match finding.rule {
        "no-configuration" => finding.span().is_none(),
        "unreadable-directory" => finding
            .span()
            .and_then(|span| loaded.plan.sources.get(span.file))
            .is_some_and(|directory| last.has_below(Path::new(directory.path()))),
        _ => false,
    };
    if let Some(unread) =
        last.and_then(|last| loaded.found.iter().find(|finding| is_unknown(finding, last.good)))
    {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[test]
    fn each_file_that_settings_name_counts() {
        let root = std::env::temp_dir().join(format!("busbar-reload-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        let names = [
            "tls.certificate",
            "tls.key",
            "tls.client_roots",
            "tls.ocsp_response",
            "tls.revoked[]",
            "profile[].roots",
            "profile[].certificate",
            "profile[].revoked[]",
            "vault.file",
            "vault.password_file",
            "http.priorities",
            "access.a.jwks",
            "security.keystore",
            "security.truststore",
            "security.revoked[]",
        ];
        for name in names {
            let file = root.join("file");
            let (mut section, key) = name.rsplit_once('.').unwrap();
            let in_array = section.strip_suffix("[]");
            section = in_array.unwrap_or(section);
            // Paths of WS-Security begin at the configuration.
            let path = if section == "security" { "file" } else { file.to_str().unwrap() };
            let value = match key.strip_suffix("[]") {
                Some(key) => format!("{key} = ['{path}']"),
                None => format!("{key} = '{path}'"),
            };
            let text = match in_array {
                Some(section) => format!("[[{section}]]\nserver = '*'\n{value}"),
                None => format!("[{section}]\n{value}"),
            };
            let settings = Settings::deserialize(text.parse::<toml::Table>().unwrap()).unwrap();
            std::fs::write(&file, "before").unwrap();
            let before = fingerprint(&settings, &root);
            assert_eq!(fingerprint(&settings, &root), before);
            std::fs::write(&file, "after").unwrap();
            assert_ne!(fingerprint(&settings, &root), before, "{name}");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }
}
