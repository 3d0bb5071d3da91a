//! `/generations`: the configurations that were in force last, what is different between two of them, and the way back to one.

use crate::aside;
use crate::routes::{Context, Shared, answer, error};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use config::{ArtifactKind, Changes, FaultyArtifact, PastConfiguration};
use jiff::{Timestamp, Unit};
use message::redact;
use serde_json::{Value, json};
use similar::TextDiff;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// What the admin address does with the configuration as a whole.
pub trait Deployment: Send + Sync {
    /// Reads the configuration, puts it in force, and says in a sentence what came of it. It may wait.
    ///
    /// # Errors
    /// The old one goes on serving: why.
    fn reload(&self) -> Result<String, String>;

    /// Puts a generation in force once more, and says in a sentence what came of it. It may wait.
    ///
    /// # Errors
    /// The one in force goes on serving: why.
    fn roll_back(&self, number: u64) -> Result<String, NotRolledBack>;

    /// Those that can be looked at.
    fn generations(&self) -> Generations;

    /// Keeps who is started and stopped over a restart; whether that is so.
    ///
    /// # Errors
    /// It cannot be written down.
    fn keep(&self) -> Result<bool, String>;
}

/// Why nobody went back.
#[derive(Clone, Debug)]
pub enum NotRolledBack {
    /// There is no such generation.
    Unknown(String),
    /// It is in force.
    InForce(String),
    /// Another reload goes on.
    Busy(String),
    /// It cannot be in force.
    Failed(String),
}

/// The configurations that were in force last.
#[derive(Clone, Debug)]
pub struct Generations {
    /// The oldest first; the last one is in force.
    pub kept: Vec<Arc<Generation>>,
    /// The one that was rolled back to, as long as that holds.
    pub rolled_back: Option<u64>,
    /// The last one that did not come into force.
    pub refused: Option<Refused>,
}

/// A configuration that is or was in force.
#[derive(Debug)]
pub struct Generation {
    /// Its number, from 1.
    pub number: u64,
    /// Since when it was.
    pub when: Timestamp,
    /// What made it so.
    pub cause: String,
    /// How many artifacts serve in it.
    pub artifacts: usize,
    /// How it differs from the one before.
    pub changes: Changes,
    /// Its faulty artifacts.
    pub faulty: Vec<FaultyArtifact>,
    /// What it consists of.
    pub kept: PastConfiguration,
}

/// One that did not come into force.
#[derive(Clone, Debug)]
pub struct Refused {
    /// When that was tried.
    pub when: Timestamp,
    /// What made somebody try.
    pub cause: String,
    /// Why it failed.
    pub why: String,
}

/// Longest time for comparing two texts in the best way; what is not compared by then counts as replaced.
const COMPARING: Duration = Duration::from_millis(500);

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/generations", get(all))
        .route("/generations/{number}", get(one))
        .route("/generations/{number}/diff", get(diff_to_before))
        .route("/generations/{number}/diff/{to}", get(diff))
        .route("/generations/{number}/rollback", post(roll_back))
}

fn none() -> Response {
    error(StatusCode::NOT_IMPLEMENTED, "this bus has one configuration and keeps no others")
}

fn unknown(number: &str) -> Response {
    error(
        StatusCode::NOT_FOUND,
        &format!("there is no generation `{number}`; /generations lists those that are kept"),
    )
}

impl Generations {
    /// The place of one in `kept`.
    fn at(&self, number: &str) -> Option<usize> {
        let number: u64 = number.parse().ok()?;
        self.kept.iter().position(|generation| generation.number == number)
    }

    fn shown(&self, at: usize) -> Value {
        let generation = &self.kept[at];
        let names = |artifacts: &[(ArtifactKind, String)]| -> Vec<String> {
            artifacts.iter().map(|(kind, name)| path(*kind, name)).collect()
        };
        let faulty: Vec<Value> = generation
            .faulty
            .iter()
            .map(|faulty| {
                json!({
                    "artifact": path(faulty.kind, faulty.name.as_deref().unwrap_or_default()),
                    "state": if faulty.held { "in force as before" } else { "faulty" },
                    "place": faulty.span.place(generation.kept.sources()),
                    "message": redact::addresses(&faulty.message),
                })
            })
            .collect();
        json!({
            "number": generation.number,
            "in_force": at + 1 == self.kept.len(),
            "since": time(generation.when),
            "cause": generation.cause,
            "artifacts": generation.artifacts,
            "added": names(&generation.changes.added),
            "changed": names(&generation.changes.changed),
            "removed": names(&generation.changes.removed),
            "documents": generation.changes.documents,
            "faulty": faulty,
        })
    }
}

/// As the way to it begins with below `/artifacts`.
fn path(kind: ArtifactKind, name: &str) -> String {
    format!("{}/{name}", kind.element())
}

fn time(at: Timestamp) -> String {
    at.round(Unit::Millisecond).unwrap_or(at).to_string()
}

async fn all(State(shared): Context) -> Response {
    let Some(deployment) = &shared.admin.deployment else { return none() };
    let generations = deployment.generations();
    let shown: Vec<Value> = (0..generations.kept.len()).rev().map(|at| generations.shown(at)).collect();
    let refused = generations.refused.as_ref().map(|refused| {
        json!({ "when": time(refused.when), "cause": refused.cause, "why": redact::addresses(&refused.why) })
    });
    answer(
        StatusCode::OK,
        &json!({
            "in_force": generations.kept.last().map(|one| one.number),
            "rolled_back_to": generations.rolled_back,
            "last_refused": refused,
            "generations": shown,
        }),
    )
}

async fn one(State(shared): Context, Path(number): Path<String>) -> Response {
    let Some(deployment) = &shared.admin.deployment else { return none() };
    let generations = deployment.generations();
    match generations.at(&number) {
        Some(at) => answer(StatusCode::OK, &generations.shown(at)),
        None => unknown(&number),
    }
}

async fn diff_to_before(State(shared): Context, Path(number): Path<String>) -> Response {
    let Some(deployment) = &shared.admin.deployment else { return none() };
    let generations = deployment.generations();
    match generations.at(&number) {
        Some(0) => {
            error(StatusCode::NOT_FOUND, &format!("nothing is kept of what was before generation {number}"))
        }
        Some(at) => compared(&generations.kept[at - 1], &generations.kept[at]).await,
        None => unknown(&number),
    }
}

async fn diff(State(shared): Context, Path((from, to)): Path<(String, String)>) -> Response {
    let Some(deployment) = &shared.admin.deployment else { return none() };
    let generations = deployment.generations();
    match (generations.at(&from), generations.at(&to)) {
        (Some(from), Some(to)) => compared(&generations.kept[from], &generations.kept[to]).await,
        (None, _) => unknown(&from),
        (_, None) => unknown(&to),
    }
}

async fn compared(from: &Arc<Generation>, to: &Arc<Generation>) -> Response {
    let (from, to) = (Arc::clone(from), Arc::clone(to));
    let compared = match aside("compare", move || differences(&from, &to)) {
        Ok(compared) => compared.await,
        Err(why) => {
            return error(StatusCode::SERVICE_UNAVAILABLE, &format!("no thread can be started: {why}"));
        }
    };
    match compared {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response(),
        Err(_) => error(StatusCode::INTERNAL_SERVER_ERROR, "they cannot be compared; the log has the reason"),
    }
}

/// The unified differences of all artifacts and documents; empty where there are none. Secrets are hidden, so that an artifact may
/// differ and its lines do not.
fn differences(from: &Generation, to: &Generation) -> String {
    let mut pairs: BTreeMap<_, [Option<config::ArtifactText<'_>>; 2]> = BTreeMap::new();
    for (side, generation) in [from, to].into_iter().enumerate() {
        for text in generation.kept.texts() {
            let pair = pairs.entry((text.kind, text.name.clone())).or_default();
            pair[side] = Some(text);
        }
    }
    let mut out = String::new();
    for ((kind, name), [before, after]) in pairs {
        let is_document = kind == ArtifactKind::Registry;
        match (&before, &after) {
            (Some(before), Some(after)) if before.text == after.text => continue,
            // It was not read, which does not mean that it was not there.
            (None, _) | (_, None) if is_document => continue,
            _ => {}
        }
        let header = |text: &Option<config::ArtifactText<'_>>, generation: &Generation| match text {
            Some(text) if text.place.is_empty() => {
                format!("{}\tgeneration {}", path(kind, &name), generation.number)
            }
            Some(text) => format!("{}\tgeneration {} {}", path(kind, &name), generation.number, text.place),
            None => "/dev/null".to_owned(),
        };
        let shown = |text: &Option<config::ArtifactText<'_>>| {
            let text = text.as_ref().map_or("", |text| &*text.text);
            let mut shown = redact::text(&diagnostics::without_secrets(text)).into_owned();
            if !shown.is_empty() && !shown.ends_with('\n') {
                shown.push('\n');
            }
            shown
        };
        let (old, new) = (shown(&before), shown(&after));
        let headers = (header(&before, from), header(&after, to));
        if old == new {
            // Nothing can be wrong with writing into a string.
            let _ = writeln!(out, "--- {}\n+++ {}\nonly what is not shown differs", headers.0, headers.1);
            continue;
        }
        let diff = TextDiff::configure().timeout(COMPARING).diff_lines(&old, &new);
        let _ = write!(out, "{}", diff.unified_diff().header(&headers.0, &headers.1));
    }
    out
}

async fn roll_back(State(shared): Context, Path(number): Path<String>) -> Response {
    if shared.admin.deployment.is_none() {
        return none();
    }
    let Ok(wanted) = number.parse::<u64>() else { return unknown(&number) };
    let changed = crate::routes::change(&shared, move |deployment| {
        let done = deployment.roll_back(wanted);
        match &done {
            Ok(message) => tracing::info!(target: "busbar::reload", "{message}"),
            Err(NotRolledBack::Failed(why)) => tracing::error!(target: "busbar::reload", "{why}"),
            Err(_) => {}
        }
        done
    });
    let changed = changed.await;
    let generation = shared.admin.bus.plan().generation;
    let refused = |status, why: &str| {
        answer(status, &json!({ "error": redact::addresses(why), "generation": generation }))
    };
    match changed {
        Ok(Ok(message)) => answer(StatusCode::OK, &json!({ "message": message, "generation": generation })),
        Ok(Err(NotRolledBack::Unknown(why))) => refused(StatusCode::NOT_FOUND, &why),
        Ok(Err(NotRolledBack::InForce(why) | NotRolledBack::Busy(why))) => {
            refused(StatusCode::CONFLICT, &why)
        }
        Ok(Err(NotRolledBack::Failed(why))) => refused(StatusCode::INTERNAL_SERVER_ERROR, &why),
        Err(response) => response,
    }
}
