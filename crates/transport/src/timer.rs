//! Deadlines of waits, and what wakes a task when one has come.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::task::coop;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::clock;

/// The deadline of a half of a connection that waits. It costs nothing while nobody does: it is set when a wait begins
/// and cleared when it ends.
#[derive(Default)]
pub(crate) struct Timer {
    deadline: Option<Instant>,
    /// For a wait that the task of a connection does not poll itself, with the [alarm of its own](clock::alarm).
    alarm: Option<Box<Alarm>>,
}

impl Timer {
    /// To be called when the operation is pending: whether it has been for `wait`.
    pub(crate) fn poll_expired(&mut self, wait: Duration, cx: &mut Context<'_>) -> bool {
        let now = clock::now();
        let deadline = *self.deadline.get_or_insert_with(|| Instant::from_std(after(now, wait)));
        self.poll_due(deadline, Instant::from_std(now), cx)
    }

    /// To be called when the operation is pending: whether the deadline has come. It holds however often something moved
    /// meanwhile.
    pub(crate) fn poll_until(&mut self, deadline: std::time::Instant, cx: &mut Context<'_>) -> bool {
        let deadline = Instant::from_std(deadline);
        self.deadline = Some(deadline);
        self.poll_due(deadline, Instant::from_std(clock::now()), cx)
    }

    #[inline]
    fn poll_due(&mut self, deadline: Instant, now: Instant, cx: &mut Context<'_>) -> bool {
        match clock::alarm(cx, |alarm| alarm.is_due(deadline, now)) {
            Some(expired) => expired,
            None => {
                let fits = self.alarm.as_ref().is_some_and(|alarm| alarm.wakes(cx));
                if !fits {
                    self.alarm = Some(Box::new(Alarm::new(cx)));
                }
                self.alarm.as_mut().is_some_and(|alarm| alarm.is_due(deadline, now))
            }
        }
    }

    /// The wait that was begun, for `wait`, is now one for `shorter`.
    pub(crate) fn shorten(&mut self, wait: Duration, shorter: Duration) {
        if let Some(left) = self.left() {
            let waited = wait.min(FAR).saturating_sub(left);
            let deadline = after(clock::now(), shorter.saturating_sub(waited));
            self.deadline = Some(Instant::from_std(deadline));
        }
    }

    /// How long the wait that was begun may still last.
    pub(crate) fn left(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        Some(deadline.saturating_duration_since(Instant::from_std(clock::now())))
    }

    /// The wait has ended.
    pub(crate) fn clear(&mut self) {
        self.deadline = None;
    }
}

/// The longest wait.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// So long after `now`; what is too far away to be a time is far away.
pub(crate) fn after(now: std::time::Instant, wait: Duration) -> std::time::Instant {
    now + wait.min(FAR)
}

/// Wakes a task at the next of the deadlines that it waits for.
///
/// The timer of the runtime is made once and left alone while deadlines only move away from it. Where it fires too early, the
/// task looks at all its waits again, and each sets it anew.
pub(crate) struct Alarm {
    task: Waker,
    sleep: Option<Pin<Box<Sleep>>>,
    /// When `sleep` fires, if it is to.
    armed: Option<Instant>,
}

impl Alarm {
    /// An alarm for the task that is being polled.
    pub(crate) fn new(cx: &Context<'_>) -> Alarm {
        Alarm { task: cx.waker().clone(), sleep: None, armed: None }
    }

    /// Whether it is for what is being polled: a part of a task that has a waker of its own is not looked at when only the task
    /// is woken.
    #[inline]
    pub(crate) fn wakes(&self, cx: &Context<'_>) -> bool {
        self.task.will_wake(cx.waker())
    }

    /// Whether the deadline has passed; if not, the task is woken no later than then.
    #[inline]
    fn is_due(&mut self, deadline: Instant, now: Instant) -> bool {
        match self.armed {
            Some(at) if at <= deadline && now < at => false,
            _ => self.arm(deadline),
        }
    }

    #[cold]
    fn arm(&mut self, deadline: Instant) -> bool {
        self.armed = None;
        let mut cx = Context::from_waker(&self.task);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        while sleep.as_mut().poll(&mut cx).is_ready() {
            if sleep.deadline() >= deadline {
                return true;
            }
            sleep.as_mut().reset(deadline);
        }
        // With its budget used up a task is polled again at once, and the sleep has not heard of it.
        if coop::has_budget_remaining() {
            self.armed = Some(sleep.deadline());
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Poll, Wake};

    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Two waits of one task: the later one does not put off the earlier one, whichever is polled first.
    #[tokio::test]
    async fn the_earliest_of_a_tasks_deadlines_wakes_it() {
        for order in [[0, 1], [1, 0]] {
            let mut timers = [Timer::default(), Timer::default()];
            let waits = [Duration::from_millis(5), Duration::from_secs(3600)];
            let (connection, mut alarm) = (0, None);
            std::future::poll_fn(|cx| {
                alarm.get_or_insert_with(|| Box::new(Alarm::new(cx)));
                let expired = clock::turn(&connection, &mut alarm, || {
                    order.map(|n| (n, timers[n].poll_expired(waits[n], cx)))
                });
                match expired {
                    [(_, false), (_, false)] => Poll::Pending,
                    which => {
                        assert!(which.contains(&(0, true)) && which.contains(&(1, false)), "{which:?}");
                        Poll::Ready(())
                    }
                }
            })
            .await;
            assert!(timers.iter().all(|timer| timer.alarm.is_none()), "the task has one alarm for both");
        }
    }

    /// A deadline by the clock holds whatever moves meanwhile; a wait begins anew; neither overflows.
    #[tokio::test]
    async fn a_deadline_does_not_move() {
        let mut timer = Timer::default();
        let begun = std::time::Instant::now();
        let deadline = after(begun, Duration::from_millis(60));
        for _ in 0..3 {
            assert!(!std::future::poll_fn(|cx| Poll::Ready(timer.poll_until(deadline, cx))).await);
            timer.clear();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let expired = std::future::poll_fn(|cx| match timer.poll_until(deadline, cx) {
            true => Poll::Ready(std::time::Instant::now()),
            false => Poll::Pending,
        });
        assert!((deadline..deadline + Duration::from_secs(5)).contains(&expired.await));
        let mut timer = Timer::default();
        let endless = std::future::poll_fn(|cx| Poll::Ready(timer.poll_expired(Duration::MAX, cx)));
        assert!(!endless.await);
    }

    /// What a task polls with another waker has an alarm of its own, which wakes that waker.
    #[tokio::test]
    async fn a_part_of_a_task_is_woken_itself() {
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let part = Waker::from(woken.clone());
        let (connection, mut alarm) = (0, None);
        let mut timer = Timer::default();
        let mut poll = |cx: &mut Context<'_>| {
            alarm.get_or_insert_with(|| Box::new(Alarm::new(cx)));
            clock::turn(&connection, &mut alarm, || {
                timer.poll_expired(Duration::from_millis(5), &mut Context::from_waker(&part))
            })
        };
        assert!(!std::future::poll_fn(|cx| Poll::Ready(poll(cx))).await);
        while woken.0.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(std::future::poll_fn(|cx| Poll::Ready(poll(cx))).await);
    }
}
