//! Scheduled tasks: each injects a message at the times of its trigger.
//!
//! A run of a task is a message of its own, with a scope. How far a task has come (when it is due, how often it ran, whether an administrator
//! switched it off) belongs to its name: a reload that leaves its definition as it is changes nothing of that, another one starts it
//! anew. One loop looks after all tasks ([`run`]). It asks each what to do now, and waits until the first of them is due.

mod injection;

use crate::engine::drive_to_end;
use crate::http::dispatch::Bus;
use crate::runtime::plan::Plan;
use crate::runtime::scope::{Begun, Outcome};
use crate::runtime::services::Services;
use crate::runtime::task::{Agenda, Progress};
use crate::state::lock;
use message::memory;
use schedule::{Moment, Schedule, Turn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

pub use crate::runtime::clock::Clock;
pub use crate::runtime::task::{Run, Status, Task};

/// Runs the tasks of each plan that comes into force, until `over`. It ends when what they have begun has ended too.
pub async fn run(bus: Arc<Bus>, over: impl Future<Output = ()>) {
    let mut over = pin!(over);
    let (busy, mut idle) = mpsc::channel(1);
    let mut generations = bus.generations();
    let agenda: Arc<Agenda> = bus.services().kept.get();
    loop {
        generations.mark_unchanged();
        let (plan, services) = bus.in_force();
        let waits = plan.tasks.iter().filter_map(|task| task.turn(&plan, &services, &busy));
        let wait = waits.min();
        drop((plan, services));
        let due = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = &mut over => break,
            _ = generations.changed() => {}
            () = agenda.0.notified() => {}
            () = due => {}
        }
    }
    drop(busy);
    // Nothing is ever sent: this is the end of the last one that could.
    let _ = idle.recv().await;
}

impl Task {
    /// Runs it if it is due; the time until it may be due next.
    fn turn(
        self: &Arc<Task>,
        plan: &Arc<Plan>,
        services: &Arc<Services>,
        busy: &mpsc::Sender<()>,
    ) -> Option<Duration> {
        loop {
            let now = services.clock.now();
            let on = self.activation.is_on();
            // Not in the `match`: it would stay locked.
            let turn = lock(&self.state.0).turn(self, now, on);
            match turn {
                Turn::Wait(wait) => return wait.filter(|_| on),
                Turn::Run { missed } => {
                    self.report(plan, missed, false);
                    self.begin(plan, services, now, busy.clone());
                }
                Turn::PassOver { missed } => self.report(plan, missed, true),
                Turn::PutBack(by) => {
                    tracing::warn!(
                        task = self.name,
                        place = plan.place(self.span),
                        "the clock was put back by {}s: the times of the task are those from now on",
                        by.as_secs()
                    );
                }
            }
        }
    }

    /// Counts what did not happen, and says so.
    fn report(&self, plan: &Plan, missed: u64, passed_over: bool) {
        let first = {
            let mut progress = lock(&self.state.0);
            progress.missed = progress.missed.saturating_add(missed);
            progress.passed_over += u64::from(passed_over);
            passed_over && !std::mem::replace(&mut progress.behind, passed_over)
        };
        let place = || plan.place(self.span);
        if missed > 0 {
            let s = if missed == 1 { "" } else { "s" };
            tracing::warn!(
                task = self.name,
                place = place(),
                "{missed} run{s} of the task were missed; it is made up for once"
            );
        }
        if first {
            tracing::warn!(
                task = self.name,
                place = place(),
                "the task is due and its run before goes on: passed over until that has ended (overlap=\"true\" on its trigger runs both)"
            );
        }
    }

    /// Begins a run.
    fn begin(
        self: &Arc<Task>,
        plan: &Arc<Plan>,
        services: &Arc<Services>,
        now: Moment,
        busy: mpsc::Sender<()>,
    ) {
        let full = services.scopes.open() >= services.settings.flows || memory::is_scarce();
        let injected = match full {
            true => Err("too many messages are on their way, or they hold too much memory".to_owned()),
            false => self.injection.begin(&self.name, plan, services).map_err(|fault| fault.to_string()),
        };
        let mut context = match injected {
            Ok(context) => context,
            Err(why) => {
                tracing::error!(
                    task = self.name,
                    place = plan.place(self.span),
                    "the task could not run: {why}"
                );
                let mut progress = lock(&self.state.0);
                progress.passed_over += u64::from(full);
                progress.last =
                    Some(Run { began: now.wall, message_id: String::new(), ended: None, refused: Some(why) });
                drop(progress);
                return self.counters.record(Duration::ZERO, true);
            }
        };
        let message_id = context.message_id();
        let begun = Begun::new(&mut context);
        {
            let mut progress = lock(&self.state.0);
            progress.running += 1;
            progress.last =
                Some(Run { began: now.wall, message_id: message_id.clone(), ended: None, refused: None });
        }
        let running = Running { task: Arc::clone(self), _busy: busy };
        let services = Arc::clone(services);
        begun.watched(async move { _ = drive_to_end(context, None).await }, move |outcome| {
            let took = services.clock.now().steady.saturating_duration_since(now.steady);
            let task = &running.task;
            task.counters.record(took, outcome != Outcome::Completed);
            let mut progress = lock(&task.state.0);
            if let Some(last) = progress.last.as_mut().filter(|last| last.message_id == message_id) {
                last.ended = Some((outcome, took));
            }
        });
    }
}

impl Progress {
    fn turn(&mut self, task: &Task, now: Moment, on: bool) -> Turn {
        if self.definition != task.definition || self.schedule.is_none() {
            self.definition = task.definition;
            self.schedule = Some(Schedule::new(task.trigger.clone(), now));
        }
        let busy = self.running > 0 && !task.overlap;
        // One that was asked for just before another one began has its turn when that has ended.
        if self.asked > 0 && !busy {
            self.asked -= 1;
            return Turn::Run { missed: 0 };
        }
        let Some(schedule) = &mut self.schedule else { return Turn::Wait(None) };
        if !on {
            self.off = true;
            return Turn::Wait(None);
        }
        if std::mem::take(&mut self.off) {
            schedule.resume(now);
        }
        schedule.turn(now, busy)
    }
}

/// A run that goes on, however it ends.
struct Running {
    task: Arc<Task>,
    _busy: mpsc::Sender<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut progress = lock(&self.task.state.0);
        progress.running = progress.running.saturating_sub(1);
        progress.behind &= progress.running > 0;
        if progress.asked > 0 {
            self.task.agenda.0.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
