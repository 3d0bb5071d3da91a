//! Splits: the branches of a message run one after the other, in parallel, or when a priority executor has a turn for them.

use super::drive_to_end;
use super::faults::raise;
use super::frames::enter;
use crate::runtime::aggregation::PartOf;
use crate::runtime::context::{Context, Frame, Functions};
use crate::runtime::exchange::Exchange;
use crate::runtime::fault::Fault;
use crate::runtime::mediator::{Branch, BranchTarget, Enqueued, Entry, Flow, ListId, Parts, Split};
use crate::runtime::progress::Waits;
use crate::runtime::scope::{Child, Scope};
use crate::state::lock;
use message::{Value, memory};
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Most copies that one split runs at the same time; the others are made when their turn comes. Each may need a connection.
pub(super) const MAX_PARALLEL: usize = 100;

/// So long parts that run one after the other keep their worker.
const TURN: Duration = Duration::from_millis(1);

/// Where so much goes on for a message already, its splits run one part after the other, each with all that it splits into:
/// splits inside of splits would multiply.
const MOST_BRANCHES: usize = 1000;

/// How deep splits of one message may stand inside of each other.
const DEEPEST_SPLIT: u8 = 32;

/// About how many bytes a copy takes while it runs, beside itself and its body: its task, a connection, what steps keep.
const RUNNING: usize = 12 << 10;

/// Starts the branches of a split. Answers whether the original goes on.
pub(super) async fn split(context: &mut Context, parts: Split) -> Result<bool, Fault> {
    if !may_split(context)? {
        return Ok(false);
    }
    let origin = Origin::of(context, &parts);
    // What a part takes out of the message may be long work.
    let time = context.services.settings.script_time;
    let crowded = context.scope().running() >= MOST_BRANCHES;
    if parts.sequential || crowded {
        let mut ahead = parts.parts;
        let mut turn = Instant::now();
        while !origin.is_given_up()
            && let Some(part) = meter::within(time, None, || ahead.next()).0
        {
            let child = origin.child(context);
            let failed = child.run(origin.run(part)).await.unwrap_or(true);
            if failed && parts.stops {
                context.properties.set("ERROR_ON_TARGET_EXECUTION", Value::Boolean(true));
                break;
            }
            // Parts that wait for nothing run in a row: between them, other tasks of the worker get their turn.
            if crowded || turn.elapsed() >= TURN {
                tokio::task::yield_now().await;
                turn = Instant::now();
            }
        }
        return Ok(parts.continue_parent);
    }
    let runners = parts.count.min(MAX_PARALLEL);
    let continues = parts.continue_parent;
    let waiting = Arc::new(Waiting {
        parts: Mutex::new(parts.parts),
        time,
        runners: AtomicUsize::new(runners),
        origin,
    });
    for _ in 0..runners {
        waiting.origin.child(context).spawn(Arc::clone(&waiting).run());
    }
    Ok(continues)
}

/// Why a message may not be split once more; `Ok(false)`: another branch of it has logged that, and no part of it is wanted.
fn may_split(context: &mut Context) -> Result<bool, Fault> {
    let depth = context.progress.spent.splits;
    let why = if depth >= DEEPEST_SPLIT {
        Fault::new(format!(
            "the message is split more than {DEEPEST_SPLIT} deep: does a sequence split into itself?"
        ))
    } else if depth > 0 && memory::is_short() {
        Fault {
            status: 503,
            ..Fault::new("a part of the message cannot be split: messages hold as much memory as they may")
        }
    } else {
        return Ok(!context.scope().is_given_up());
    };
    // What waits for the parts that are not made now is no whole either.
    if let Some(exchange) = &context.exchange {
        exchange.shed();
    }
    if context.scope().give_up() { Err(why) } else { Ok(false) }
}

/// Has a copy wait for its turn in a priority executor, beside the flow; `false`: nothing of the message is wanted any more.
pub(super) fn enqueue(context: &mut Context, enqueued: Enqueued) -> Result<bool, Fault> {
    if !may_split(context)? {
        return Ok(false);
    }
    let mut origin = Origin::new(context, false, false);
    // What comes behind the mediator is not the copy's.
    origin.frames.clear();
    let branch = Branch { context: enqueued.copy, target: BranchTarget::List(enqueued.list) };
    let child = context.child("a message in a priority executor");
    child.spawn(async move {
        let turn = enqueued.ticket.turn().await;
        if !origin.is_given_up() {
            let began = tokio::time::Instant::now();
            let failed = origin.run(branch).await;
            enqueued.executor.counters.record(began.elapsed(), failed);
        }
        drop(turn);
    });
    Ok(true)
}

/// The parts of a split that have not had their turn. So many runners take one after the other, each its next one when the
/// one before has ended: what a split holds depends on the runners, not on the parts.
struct Waiting {
    parts: Mutex<Parts>,
    /// So long one may take to be made.
    time: Duration,
    /// Runners that are at work.
    runners: AtomicUsize,
    origin: Origin,
}

impl Waiting {
    async fn run(self: Arc<Waiting>) {
        loop {
            // Where memory is short, one runner goes on alone, and each message holds one part at a time.
            if memory::is_short() {
                if self.runners.fetch_sub(1, Ordering::AcqRel) > 1 {
                    return;
                }
                self.runners.fetch_add(1, Ordering::AcqRel);
            }
            if self.origin.is_given_up() {
                return;
            }
            let Some(part) = self.next() else { return };
            let held = memory::hold(RUNNING);
            self.origin.run(part).await;
            drop(held);
            // Parts that wait for nothing take turns with each other, and with all else on this worker.
            tokio::task::yield_now().await;
        }
    }

    /// The next part. A panic ends its runner; the part is one that failed, and those that wait for it are not all there are.
    fn next(&self) -> Option<Branch> {
        let next = || meter::within(self.time, None, || lock(&self.parts).next()).0;
        catch_unwind(AssertUnwindSafe(next)).unwrap_or_else(|panic| {
            self.origin.part_of.failed(500);
            resume_unwind(panic)
        })
    }
}

/// Where a message was split: its branches begin there, and go on behind it.
struct Origin {
    scope: Arc<Scope>,
    exchange: Arc<Exchange>,
    frames: SmallVec<[Frame; 4]>,
    functions: Functions,
    handlers: SmallVec<[ListId; 4]>,
    stops: bool,
    client: Waits,
    /// How many splits its branches are inside of.
    depth: u8,
    /// See [`Split::aside`].
    aside: bool,
    /// What its branches are parts of, those that are not made too.
    part_of: PartOf,
}

/// The exchange of a flow that something else may answer for.
pub(super) fn exchange_of(context: &mut Context) -> Arc<Exchange> {
    if let Some(exchange) = &context.exchange {
        return Arc::clone(exchange);
    }
    let (exchange, awaited) = Exchange::new();
    // This flow itself may go on and give the answer: its voice ends where it is driven.
    context.awaited = Some(awaited);
    context.exchange = Some(Arc::clone(&exchange));
    exchange
}

impl Origin {
    fn of(context: &mut Context, parts: &Split) -> Origin {
        Origin::new(context, parts.stops, parts.aside)
    }

    fn new(context: &mut Context, stops: bool, aside: bool) -> Origin {
        let exchange = match aside {
            // Their answers go to no client.
            true => Exchange::new().0,
            false => exchange_of(context),
        };
        Origin {
            scope: Arc::clone(context.scope()),
            exchange,
            frames: context.frames.clone(),
            functions: context.functions.clone(),
            handlers: context.handlers.clone(),
            stops,
            client: if aside { Waits::Nobody } else { context.progress.client },
            depth: context.progress.spent.splits + 1,
            aside,
            part_of: if aside { PartOf::default() } else { context.part_of() },
        }
    }

    /// One of its branches, or what runs several of them.
    fn child(&self, context: &mut Context) -> Child {
        match self.aside {
            true => context.silent_child("a branch"),
            false => context.child("a branch"),
        }
    }

    /// No part of the message is wanted any more.
    fn is_given_up(&self) -> bool {
        self.exchange.is_shed() || self.scope.is_given_up()
    }

    /// Runs a branch; `true`: it failed.
    async fn run(&self, branch: Branch) -> bool {
        let mut copy = branch.context;
        if self.client == Waits::Nobody {
            copy.progress.client = Waits::Nobody;
        }
        if self.aside {
            copy.leaves_its_splits();
        }
        copy.progress.spent.splits = self.depth;
        copy.exchange = Some(Arc::clone(&self.exchange));
        copy.frames = self.frames.clone();
        // A branch that ends is over, wherever it began.
        copy.frames.iter_mut().for_each(|frame| frame.absorbs = false);
        copy.functions = self.functions.clone();
        copy.handlers = self.handlers.clone();
        if self.stops {
            // Only a failure of its own counts.
            copy.progress.failure = None;
        }
        let first = match branch.target {
            BranchTarget::List(list) => match enter(&mut copy, list, Entry::default()) {
                Ok(()) => {
                    if let Some(frame) = copy.frames.last_mut() {
                        frame.branch = true;
                    }
                    None
                }
                Err(fault) => raise(&mut copy, fault).map(|_| Flow::Stop),
            },
            BranchTarget::Endpoint(destination) => Some(Flow::Send(destination)),
            BranchTarget::Call(destination) => Some(Flow::Call(destination)),
            BranchTarget::Nothing => Some(Flow::Stop),
            BranchTarget::Failed(fault) => raise(&mut copy, *fault).map(|_| Flow::Stop),
        };
        drive_to_end(copy, first).await
    }
}
