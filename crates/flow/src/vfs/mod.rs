//! Takes the files of directories as messages: proxy services with the transport `vfs`, inbound endpoints of the protocol `file`.
//!
//! Each has a task ([`Runner`]), which belongs to its name and not to a plan: for each file it takes the definition in force. A file is
//! claimed ([`files::claim`]), opened, and stays where it is while its message is on its way. When all work of the message has ended, what
//! the flow has confirmed is deleted or moved ([`after`]); only then its claim ends. A process that is killed in between leaves
//! the file, which comes again: more than once, where a flow had not confirmed yet, and never not at all.
//!
//! Nothing here waits for a disk on a worker: [`files::places`] does.

mod after;
mod flow;
mod records;
mod taking;

use crate::http::dispatch::Bus;
use crate::runtime::plan::Plan;
use crate::runtime::scope::{Admitted, Outcome};
use crate::runtime::services::Services;
use crate::runtime::source::{Action, Skipped};
use crate::state::lock;
use ::files::directory::{FileEntry, Listing, Query, list};
use ::files::places;
use config::ArtifactKind;
use meter::Cancel;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use taking::ClaimOutcome;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use crate::runtime::source::{Skipped as SkippedFiles, Source, Status};

/// Files that are listed at a time: a directory may have any number.
const BATCH: usize = 4096;
/// Files of one source whose flows run at a time, where `sequential` is false.
const PARALLEL: usize = 16;
/// Most files that are remembered as processed and not moved; beyond, nothing new is taken.
const MOST_REMEMBERED: usize = 10_000;
/// How long is waited for room for a message.
const NO_ROOM: Duration = Duration::from_millis(100);

/// Takes the files of each plan that comes into force, until `over`. It ends when the messages of those that it has taken have
/// ended.
pub async fn run(bus: Arc<Bus>, over: impl Future<Output = ()>) {
    let mut over = std::pin::pin!(over);
    let (stop, stopped) = watch::channel(false);
    let mut generations = bus.generations();
    let mut running = JoinSet::new();
    let mut names: HashMap<tokio::task::Id, (ArtifactKind, String)> = HashMap::new();
    loop {
        generations.mark_unchanged();
        for source in bus.plan().sources() {
            let name = (source.kind, source.name.clone());
            if !names.values().any(|running| *running == name) {
                let runner = Runner {
                    name: name.clone(),
                    bus: Arc::clone(&bus),
                    generations: bus.generations(),
                    stop: stopped.clone(),
                    trouble: None,
                };
                names.insert(running.spawn(runner.run()).id(), name);
            }
        }
        tokio::select! {
            () = &mut over => break,
            _ = generations.changed() => {}
            Some(ended) = running.join_next_with_id() => {
                names.remove(&ended.map_or_else(|error| error.id(), |(id, ())| id));
            }
        }
    }
    // The receiver may be gone.
    let _ = stop.send(true);
    while running.join_next().await.is_some() {}
}

/// The task of the sources of one name.
struct Runner {
    name: (ArtifactKind, String),
    bus: Arc<Bus>,
    generations: watch::Receiver<u64>,
    stop: watch::Receiver<bool>,
    /// What keeps it from looking, since when, and how often it tried.
    trouble: Option<(Instant, u64)>,
}

/// What a source works with.
#[derive(Clone)]
struct Work {
    source: Arc<Source>,
    plan: Arc<Plan>,
    services: Arc<Services>,
}

/// How a look ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// All was seen, or as much as it may be.
    Whole,
    /// Everything stops, or the definition is another one or switched off.
    Broken,
    /// The directory cannot be looked at.
    Trouble,
}

impl Runner {
    /// Works until a plan without the source is in force, or everything stops.
    async fn run(mut self) {
        while let Some(work) = self.work() {
            let mut wait = None;
            if work.source.activation.is_on() {
                let ended = self.look(&work).await;
                wait = match ended {
                    Ended::Whole => Some(work.source.interval),
                    Ended::Broken => Some(Duration::ZERO),
                    Ended::Trouble => {
                        let tried = self.trouble.as_ref().map_or(0, |(_, tried)| *tried);
                        let soon = tried <= work.source.retries;
                        let interval = work.source.interval;
                        Some(if soon { interval.min(work.source.reconnect) } else { interval })
                    }
                };
            }
            if *self.stop.borrow() || self.pause(&work.source, wait).await {
                return;
            }
        }
    }

    /// The definition in force.
    fn work(&self) -> Option<Work> {
        let (plan, services) = self.bus.in_force();
        let (kind, name) = &self.name;
        let source = plan.sources().find(|candidate| candidate.kind == *kind && candidate.name == *name)?;
        let source = Arc::clone(source);
        Some(Work { source, plan, services })
    }

    /// Waits; `None`: until it is switched on. `true`: everything stops.
    async fn pause(&mut self, source: &Source, wait: Option<Duration>) -> bool {
        let end = wait.map(|wait| tokio::time::Instant::now() + wait);
        loop {
            let Some(work) = self.work() else { return false };
            let current = &work.source;
            let switched = current.activation.changed();
            if current.definition != source.definition || wait.is_none() && current.activation.is_on() {
                return false;
            }
            let due = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = self.stop.wait_for(|stop| *stop) => return true,
                () = due => return false,
                _ = self.generations.changed() => {}
                () = switched => return false,
            }
        }
    }

    /// Whether the source goes on as it is; if so, with the plan in force.
    fn goes_on(&self, work: &Work) -> Option<Work> {
        if *self.stop.borrow() || !work.source.activation.is_on() {
            return None;
        }
        self.work().filter(|now| now.source.definition == work.source.definition)
    }

    /// Sleeps, unless everything stops.
    async fn sleep(&mut self, time: Duration) {
        tokio::select! {
            biased;
            _ = self.stop.wait_for(|stop| *stop) => {}
            () = tokio::time::sleep(time) => {}
        }
    }

    /// Looks at the directory once, and takes its files.
    async fn look(&mut self, work: &Work) -> Ended {
        let source = Arc::clone(&work.source);
        // Without a thread for it, they are those of before.
        let _ = places::run(move || records::refresh(&source)).await;
        let (mut skipped, mut taken, mut after) = (Skipped::default(), 0_u64, None::<FileEntry>);
        let mut parallel = JoinSet::new();
        let ended = 'look: loop {
            let left = work.source.most.map_or(u64::MAX, |most| most.saturating_sub(taken));
            if left == 0 {
                break Ended::Whole;
            }
            let listing = match self.list(work, after.take()).await {
                Ok(listing) => listing,
                Err(error) => {
                    self.troubled(work, &error);
                    break Ended::Trouble;
                }
            };
            self.reached(work);
            if after_is_first(taken, &skipped) {
                skipped.special = listing.special;
                skipped.unreadable += listing.unreadable;
            }
            let sizes = match work.source.stable {
                None => None,
                Some(time) => {
                    let paths: Vec<_> = listing.files.iter().map(|file| file.path.clone()).collect();
                    let sizes = places::run(move || taking::sizes(&paths)).await.unwrap_or_default();
                    if !sizes.is_empty() {
                        self.sleep(time).await;
                    }
                    Some(sizes)
                }
            };
            for (at, found) in listing.files.iter().enumerate() {
                let Some(now) = self.goes_on(work) else { break 'look Ended::Broken };
                if work.source.most.is_some_and(|most| taken >= most) {
                    break 'look Ended::Whole;
                }
                if !now.source.wait.is_zero() {
                    self.sleep(now.source.wait).await;
                }
                let (path, size) =
                    (found.path.clone(), sizes.as_ref().map(|sizes| sizes.get(at).copied().flatten()));
                let source = Arc::clone(&now.source);
                let taking = places::run(move || taking::take(&source, path, size));
                let taken_file = match taking.await {
                    Ok(ClaimOutcome::File(taken_file)) => taken_file,
                    Ok(ClaimOutcome::Skipped(why)) => {
                        why.count(&mut skipped);
                        continue;
                    }
                    // It is taken when the directory is looked at again.
                    Err(_) => continue,
                };
                let Some(admitted) = self.room(&now).await else { break 'look Ended::Broken };
                taken += 1;
                let between = now.source.between;
                let processing = now.process(taken_file, admitted, self.stop.clone());
                if work.source.sequential {
                    processing.await;
                } else {
                    if parallel.len() >= PARALLEL {
                        parallel.join_next().await;
                    }
                    parallel.spawn(processing);
                }
                if !between.is_zero() {
                    self.sleep(between).await;
                }
            }
            if !listing.more || listing.files.is_empty() {
                break Ended::Whole;
            }
            after = listing.files.into_iter().next_back();
        };
        while parallel.join_next().await.is_some() {}
        self.seen(work, skipped);
        ended
    }

    /// Waits until the bus has room for one more message; `None`: everything stops meanwhile.
    async fn room(&mut self, work: &Work) -> Option<Admitted> {
        loop {
            match Admitted::new(Arc::clone(&work.services)) {
                Ok(admitted) => return Some(admitted),
                Err(_) if *self.stop.borrow() => return None,
                Err(_) => self.sleep(NO_ROOM).await,
            }
        }
    }

    async fn list(&mut self, work: &Work, after: Option<FileEntry>) -> io::Result<Listing> {
        struct Ends(Cancel);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.cancel();
            }
        }
        let ends = Ends(Cancel::default());
        let (cancel, source) = (ends.0.clone(), Arc::clone(&work.source));
        let listed = places::run(move || {
            let given_up = AtomicBool::new(false);
            let wanted = |name: &OsStr| match &source.pattern {
                None => true,
                Some(pattern) => pattern.matches(&name.to_string_lossy()).unwrap_or_else(|_| {
                    given_up.store(true, Ordering::Relaxed);
                    false
                }),
            };
            let query = Query {
                recursive: source.address.recursive,
                order: source.order,
                most: BATCH,
                after: after.as_ref(),
                wanted: &wanted,
                cancel: &cancel,
            };
            let path = &source.address.path;
            let listed = match list(path, &query) {
                // A file that is not there yet, or not any more.
                Err(error)
                    if error.kind() == ErrorKind::NotFound
                        && !source.address.directory
                        && path.extension().is_some()
                        && path.parent().is_some_and(Path::is_dir) =>
                {
                    Ok(Listing::default())
                }
                listed => listed,
            };
            if let Ok(listing) = &listed {
                listing.locks.iter().for_each(|path| ::files::claim::sweep(path));
            }
            match given_up.load(Ordering::Relaxed) {
                true => Err(io::Error::other("FileNamePattern takes too long for a name")),
                false => listed,
            }
        });
        listed.await.unwrap_or_else(|why| Err(why.into()))
    }

    /// The directory cannot be looked at: the log says so once.
    fn troubled(&mut self, work: &Work, error: &io::Error) {
        let text = format!("{}: {error}", work.source.address.path.display());
        let mut progress = lock(&work.source.state.0);
        let is_new = progress.status.trouble.as_deref() != Some(&text);
        progress.status.polled = Some(work.services.clock.now().wall);
        progress.status.trouble = Some(text.clone());
        drop(progress);
        let (_, tried) = self.trouble.get_or_insert_with(|| (Instant::now(), 0));
        *tried += 1;
        if is_new {
            let place = work.plan.place(work.source.span);
            tracing::error!(
                source = work.source.label(),
                place,
                "no files are taken: {text}; it is looked for until it can be read"
            );
        }
    }

    /// The directory was looked at.
    fn reached(&mut self, work: &Work) {
        let mut progress = lock(&work.source.state.0);
        progress.status.polled = Some(work.services.clock.now().wall);
        let trouble = progress.status.trouble.take();
        drop(progress);
        let since = self.trouble.take();
        if trouble.is_some() {
            let seconds = since.map_or(0, |(since, _)| since.elapsed().as_secs());
            let directory = work.source.address.path.display();
            tracing::info!(
                source = work.source.label(),
                "files are taken again: {directory} is back after {seconds}s"
            );
        }
    }

    /// A look has ended: what it passed over is said where that is new.
    fn seen(&self, work: &Work, skipped: Skipped) {
        let mut progress = lock(&work.source.state.0);
        let before = std::mem::replace(&mut progress.status.skipped, skipped.clone());
        drop(progress);
        let Some(first) = &skipped.first else { return };
        if before.first.as_ref() != Some(first) {
            let (place, count) = (work.plan.place(work.source.span), skipped.unreadable);
            tracing::warn!(source = work.source.label(), place, count, "files are passed over: {first}");
        }
    }
}

/// Whether nothing was counted yet.
fn after_is_first(taken: u64, skipped: &Skipped) -> bool {
    taken == 0 && *skipped == Skipped::default()
}

impl Work {
    /// Runs the flow of a file, and does with the file what is to be done then.
    async fn process(self, file: taking::Opened, admitted: Admitted, stop: watch::Receiver<bool>) {
        let began = Instant::now();
        let running = Running(Arc::clone(&self.source));
        lock(&running.0.state.0).status.running += 1;
        let taking::Opened { at, content, soap, claim } = file;
        let (refusal, message_id) = flow::run(&self, &at, (content, soap), admitted).await;
        let stopped = *stop.borrow() || self.services.scopes.is_giving_up();
        let source = Arc::clone(&self.source);
        let failed = match refusal {
            // It comes again.
            Some((why, Outcome::Dropped)) if stopped => {
                lock(&source.state.0).status.released += 1;
                tracing::warn!(
                    source = source.label(),
                    message_id,
                    "{} is released: {why}",
                    at.path.display()
                );
                let _ = places::run_surely(move || drop(claim)).await;
                return;
            }
            Some((why, _)) => Some(why),
            None => None,
        };
        self.source.counters.record(began.elapsed(), failed.is_some());
        let action = if failed.is_some() { source.failed.clone() } else { source.processed.clone() };
        {
            let mut progress = lock(&source.state.0);
            let counted =
                if failed.is_some() { &mut progress.status.failed } else { &mut progress.status.processed };
            *counted += 1;
        }
        if let Some(why) = failed {
            let fate = match &action {
                Action::Delete => "it is deleted (transport.vfs.ActionAfterFailure)".to_owned(),
                Action::Move(directory) => format!("it is moved to {}", directory.display()),
                Action::Nothing => "it stays, and comes again".to_owned(),
            };
            let place = self.plan.place(source.span);
            tracing::error!(
                source = source.label(),
                message_id,
                place,
                "{} failed: {why}; {fate}",
                at.path.display()
            );
        }
        let place = self.plan.place(source.span);
        // Otherwise the file would come again.
        let acted = places::run_surely(move || {
            after::act(&source, &at, &action, &place);
            drop(claim);
        });
        let _ = acted.await;
        drop(running);
    }
}

/// A file whose flow goes on, however that ends.
struct Running(Arc<Source>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut progress = lock(&self.0.state.0);
        progress.status.running = progress.status.running.saturating_sub(1);
    }
}
