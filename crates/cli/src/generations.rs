//! The configurations that were in force last, each with its texts: to be looked at, compared and rolled back to.

use admin::{Generation, Generations, Refused};
use config::{Changes, FaultyArtifact, LastGood, PastConfiguration};
use flow::Plan;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// How many are kept where nothing is set.
const KEPT: usize = 10;

/// What made somebody read the configuration, or put one in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The process began.
    Start,
    /// SIGHUP.
    Signal,
    /// `POST /reload`.
    Request,
    /// What is watched has changed.
    Change,
    /// A resource of a registry on another server has changed.
    Registry,
    /// Somebody went back to the generation of this number.
    RollBack(u64),
}

impl fmt::Display for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Start => out.write_str("start"),
            Cause::Signal => out.write_str("SIGHUP"),
            Cause::Request => out.write_str("POST /reload"),
            Cause::Change => out.write_str("files changed"),
            Cause::Registry => out.write_str("registry changed"),
            Cause::RollBack(number) => write!(out, "rollback to {number}"),
        }
    }
}

/// See the module.
pub struct History {
    /// The oldest first; the last one is in force.
    kept: VecDeque<Arc<Generation>>,
    most: usize,
    /// The generation that was rolled back to, as long as that holds.
    rolled_back: Option<u64>,
    refused: Option<Refused>,
}

impl History {
    /// With the one that a process begins with. `most`: how many are kept.
    pub fn begin(most: Option<usize>, plan: &Plan, good: &LastGood) -> History {
        let most = most.unwrap_or(KEPT).max(1);
        let mut history = History { kept: VecDeque::new(), most, rolled_back: None, refused: None };
        history.add(plan, good, Changes::default(), Cause::Start, false);
        history
    }

    /// Adds one that comes into force. One that `is_same` and has no changes takes the place of the one before, and has been in force since
    /// then.
    pub fn add(&mut self, plan: &Plan, good: &LastGood, changes: Changes, cause: Cause, is_same: bool) {
        let before = self.kept.back().map(Arc::clone);
        // The same configuration was read once more.
        let is_faulty = |artifact: &FaultyArtifact| {
            (artifact.kind, artifact.name.clone(), artifact.held, artifact.message.clone())
        };
        let same = before.as_ref().filter(|before| {
            let faulty = before.faulty.iter().map(is_faulty).eq(plan.faulty.iter().map(is_faulty));
            is_same && changes.is_empty() && faulty
        });
        if same.is_some() {
            self.kept.pop_back();
        }
        if let Cause::RollBack(number) = cause {
            self.rolled_back = Some(number);
        }
        self.kept.push_back(Arc::new(Generation {
            number: plan.generation,
            when: same.map_or_else(Timestamp::now, |same| same.when),
            cause: same.map_or_else(|| cause.to_string(), |same| same.cause.clone()),
            artifacts: plan.artifacts(),
            changes: same.map_or(changes, |same| same.changes.clone()),
            faulty: plan.faulty.clone(),
            kept: PastConfiguration::of(good, before.as_ref().map(|before| &before.kept)),
        }));
        while self.kept.len() > self.most {
            self.kept.pop_front();
        }
    }

    /// The files are in force again: a rollback no longer holds.
    pub fn read_anew(&mut self) {
        self.rolled_back = None;
    }

    /// A configuration was refused.
    pub fn refused(&mut self, cause: Cause, why: &str) {
        let refused = Refused { when: Timestamp::now(), cause: cause.to_string(), why: why.to_owned() };
        self.refused = Some(refused);
    }

    /// The generation with this number.
    pub fn get(&self, number: u64) -> Option<Arc<Generation>> {
        self.kept.iter().find(|generation| generation.number == number).cloned()
    }

    /// The generation that was rolled back to, as long as that holds.
    pub fn rolled_back(&self) -> Option<u64> {
        self.rolled_back
    }

    /// All that are kept.
    pub fn all(&self) -> Generations {
        Generations {
            kept: self.kept.iter().cloned().collect(),
            rolled_back: self.rolled_back,
            refused: self.refused.clone(),
        }
    }
}
