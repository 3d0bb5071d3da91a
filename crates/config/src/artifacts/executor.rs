//! `<priority-executor>`: queues by priority before a pool.

use super::Reading;
use crate::element::Element;
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::{Diagnostic, Diagnostics, Span};
use std::time::Duration;

/// A priority executor.
#[derive(Clone, Debug)]
pub struct PriorityExecutor {
    /// Its name.
    pub name: Key,
    /// Queues have a size. Default true.
    pub fixed: bool,
    /// The class that chooses the next queue; `None`: round robin weighted by priority.
    pub next_queue: Option<Key>,
    /// The queues; at least two.
    pub queues: Vec<Queue>,
    /// How many messages run at once. Default 20.
    pub core: u32,
    /// How many at most. Default 100.
    pub max: u32,
    /// How long unused capacity is kept. Default 5 s.
    pub keep_alive: Duration,
    /// The whole element.
    pub span: Span,
}

/// A queue of a [`PriorityExecutor`].
#[derive(Clone, Debug)]
pub struct Queue {
    /// The queue with the larger number comes first.
    pub priority: i32,
    /// How many messages may wait; `None`: any number.
    pub size: Option<usize>,
}

pub(crate) const SHAPE: Shape =
    Shape { attributes: &["name", "description"], elements: &["queues", "threads"] };

pub(crate) const THREADS: Shape = Shape { attributes: &["core", "max", "keep-alive"], elements: &[] };

impl PriorityExecutor {
    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<PriorityExecutor> {
        let diagnostics = &mut *reading.diagnostics;
        SHAPE.check(element, diagnostics);
        let name = read::required(element, "name", diagnostics);
        let Some(list) = element.child("queues") else {
            diagnostics.push(
                Diagnostic::error("missing-element", "the executor has no queues")
                    .at(element.start_tag(), "expected `queues` inside"),
            );
            return None;
        };
        // The engine reads the first name, its documentation writes the second.
        let fixed = ["isFixedSize", "isFixed"].into_iter().find(|name| list.attribute(name).is_some());
        let fixed = read::boolean(list, fixed.unwrap_or("isFixedSize"), true, diagnostics);
        let queues = queues(list, fixed, diagnostics);
        let threads = element.child("threads");
        if let Some(threads) = threads {
            THREADS.check(threads, diagnostics);
        }
        let mut count = |name: &str, default: u32| {
            threads
                .and_then(|threads| read::optional(threads, name))
                .and_then(|key| read::number(&key, name, "a whole number", diagnostics))
                .unwrap_or(default)
        };
        Some(PriorityExecutor {
            fixed,
            next_queue: read::optional(list, "nextQueue"),
            queues,
            core: count("core", 20),
            max: count("max", 100),
            keep_alive: Duration::from_secs(count("keep-alive", 5).into()),
            span: element.span(),
            name: name?,
        })
    }
}

pub(crate) const QUEUES: Shape =
    Shape { attributes: &["isFixedSize", "isFixed", "nextQueue"], elements: &["queue"] };

pub(crate) const QUEUE: Shape = Shape { attributes: &["size", "priority"], elements: &[] };

fn queues(list: &Element, fixed: bool, diagnostics: &mut Diagnostics) -> Vec<Queue> {
    QUEUES.check(list, diagnostics);
    let mut queues: Vec<Queue> = Vec::new();
    for child in list.children_named("queue") {
        QUEUE.check(child, diagnostics);
        let size = match fixed {
            true => read::required(child, "size", diagnostics),
            false => read::optional(child, "size"),
        };
        let size = size.and_then(|key| read::number(&key, "size", "a whole number", diagnostics));
        let Some(key) = read::required(child, "priority", diagnostics) else { continue };
        let Some(priority) = read::number(&key, "priority", "a whole number", diagnostics) else { continue };
        if queues.iter().any(|queue| queue.priority == priority) {
            diagnostics.push(
                Diagnostic::error("duplicate-queue", format!("two queues have the priority {priority}"))
                    .at(key.span, "again here"),
            );
        }
        queues.push(Queue { priority, size });
    }
    if list.children_named("queue").count() < 2 {
        diagnostics.push(
            Diagnostic::error("missing-element", "an executor needs at least two queues")
                .at(list.start_tag(), "expected two or more `queue` inside"),
        );
    }
    queues
}
