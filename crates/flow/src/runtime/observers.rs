//! Who is observed, by name: what a message asks when its flow begins. What is seen of it is the business of `observe`.

use crate::state::lock;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Stands for all services.
pub const ALL: &str = "*";

/// Bytes of a payload that are shown, if nothing else is said.
const BODY: usize = 8 * 1024;

/// Who is observed.
pub struct Observers {
    /// Anything at all is observed by name.
    on: AtomicBool,
    names: Mutex<Names>,
    body: AtomicUsize,
}

#[derive(Default)]
struct Names {
    traced: BTreeSet<String>,
    /// Those of the traced ones whose messages go to the log as well.
    logged: BTreeSet<String>,
    wired: BTreeSet<String>,
    profiled: BTreeSet<String>,
}

impl Default for Observers {
    fn default() -> Observers {
        Observers { on: AtomicBool::new(false), names: Mutex::default(), body: AtomicUsize::new(BODY) }
    }
}

impl Observers {
    /// Whether anything is observed by name.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Traces the messages of a service (a proxy service, an API, `main`, or [`ALL`]) from now on, or no longer.
    pub fn trace(&self, service: &str, on: bool) {
        self.change(service, on, |names| &mut names.traced);
        if !on {
            self.change(service, on, |names| &mut names.logged);
        }
    }

    /// Traces the messages of a service and writes each to the log when it has ended.
    pub fn trace_to_log(&self, service: &str) {
        self.trace(service, true);
        self.change(service, true, |names| &mut names.logged);
    }

    /// Logs heads and bodies of a service's messages, and of the requests it sends, from now on, or no longer. An endpoint
    /// that is called so counts, too.
    pub fn wire(&self, name: &str, on: bool) {
        self.change(name, on, |names| &mut names.wired);
    }

    /// Times the steps of a service's messages from now on, or no longer.
    pub fn profile(&self, service: &str, on: bool) {
        self.change(service, on, |names| &mut names.profiled);
    }

    fn change(&self, name: &str, on: bool, which: impl Fn(&mut Names) -> &mut BTreeSet<String>) {
        let mut names = lock(&self.names);
        match on {
            true => which(&mut names).insert(name.to_owned()),
            false => which(&mut names).remove(name),
        };
        let on = [&names.traced, &names.wired, &names.profiled].iter().any(|names| !names.is_empty());
        self.on.store(on, Relaxed);
    }

    /// Whose messages are traced by name.
    pub fn traced(&self) -> Vec<String> {
        lock(&self.names).traced.iter().cloned().collect()
    }

    /// For whom the wire log is on.
    pub fn wired(&self) -> Vec<String> {
        lock(&self.names).wired.iter().cloned().collect()
    }

    /// Whose steps are timed.
    pub fn profiled(&self) -> Vec<String> {
        lock(&self.names).profiled.iter().cloned().collect()
    }

    /// Whether the steps of a service are timed.
    pub(crate) fn is_profiled<const N: usize>(&self, names: [&str; N]) -> bool {
        has(&lock(&self.names).profiled, names)
    }

    /// Whether the messages of a service are traced.
    pub(crate) fn is_traced<const N: usize>(&self, names: [&str; N]) -> bool {
        has(&lock(&self.names).traced, names)
    }

    /// Whether its traces go to the log.
    pub(crate) fn is_logged<const N: usize>(&self, names: [&str; N]) -> bool {
        has(&lock(&self.names).logged, names)
    }

    /// Whether the wire log is on for a service or an endpoint.
    pub(crate) fn is_wired<const N: usize>(&self, names: [&str; N]) -> bool {
        has(&lock(&self.names).wired, names)
    }

    /// So many bytes of a payload are shown.
    pub(crate) fn shown(&self) -> usize {
        self.body.load(Relaxed)
    }

    /// Shows so many bytes of a payload. Default 8 KiB.
    pub fn show(&self, bytes: usize) {
        self.body.store(bytes, Relaxed);
    }
}

/// Whether somebody with these names is among the observed ones.
fn has<const N: usize>(observed: &BTreeSet<String>, names: [&str; N]) -> bool {
    observed.contains(ALL) || names.iter().any(|name| observed.contains(*name))
}
