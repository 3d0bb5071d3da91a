//! Rules of `busbar check`: configurations that load and run, and are probably not what their author meant.
//!
//! Errors that keep an artifact from running are found where it is read and compiled (`config`, `flow`, `mediators`,
//! `endpoints`). A [`Rule`] checks the rest; its findings are warnings or notes: nothing is left out because of them.
//!
//! A rule is one file in `rules/` and one line in [`RULES`]. The file holds its documentation, an example with a finding,
//! the same without the mistake, and the check. From these comes its page (`docs/rules/ID.md`), which shows the findings in
//! the example and so is the snapshot of its test (`tests/pages.rs`).
//!
//! No rule may report a configuration that works as it was meant: where something outside of the configuration could make it right (a script,
//! an expression, a resource of the registry), there is no finding.

#![forbid(unsafe_code)]

mod loading;
mod look;
mod references;
mod rules;
mod steps;
mod ways;
mod xpaths;

pub use loading::{LOADING, Loading};
pub use look::Look;
pub use rules::RULES;

use config::Configuration;
use diagnostics::{Diagnostics, Severity};
use flow::{Registry, Settings};

/// A rule of `busbar check`.
#[derive(Debug)]
pub struct Rule {
    /// Its stable id, in kebab case: that of its findings, its page and its file.
    pub id: &'static str,
    /// [`Severity::Warning`]: it is a mistake. [`Severity::Note`]: it works, and there is something to know.
    pub severity: Severity,
    /// One sentence: what it finds.
    pub summary: &'static str,
    /// The effect and the remedy, as paragraphs of Markdown.
    pub reason: &'static str,
    /// Artifacts in which this rule and no other has a finding.
    pub example: &'static str,
    /// The same artifacts, corrected: no rule has a finding.
    pub mended: &'static str,
    /// The check.
    pub check: fn(&mut Look<'_>),
}

/// Runs all rules over a configuration. `registry`: the mediators that it was compiled with.
pub fn check(configuration: &Configuration, registry: &Registry, settings: &Settings) -> Diagnostics {
    let mut look = Look::new(configuration, registry, settings);
    for rule in RULES {
        look.begin(rule);
        (rule.check)(&mut look);
    }
    look.found()
}
