//! The load event: which resources are discovered and not settled, and the main thread that parses, styles and
//! executes.
//!
//! HTML Standard, 13.2.7 "The end": the load event fires when nothing delays the load event of the document any
//! more. A resource delays it from its discovery until it has arrived and been processed. What its processing
//! discovers is counted before the resource itself is settled. 8.1.7 "Event loops": one task runs at a time, to
//! completion. Tasks run in order of arrival. Left out: document order of deferred scripts, and yielding within a
//! task.

use std::collections::VecDeque;

use crate::Nanos;

/// The resources that are discovered and not settled.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    all: usize,
    blocking: usize,
    load_event: Option<Nanos>,
}

impl Outstanding {
    /// A resource was discovered.
    pub(crate) fn add(&mut self, blocks_load: bool) {
        self.all += 1;
        self.blocking += usize::from(blocks_load);
    }

    /// A resource is settled.
    pub(crate) fn remove(&mut self, blocks_load: bool, now: Nanos) {
        self.all -= 1;
        self.blocking -= usize::from(blocks_load);
        if self.blocking == 0 {
            self.load_event.get_or_insert(now);
        }
    }

    /// Whether no resource is left, whether it blocks the load event or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// When the last resource that blocks the load event was settled.
    pub(crate) fn load_event(&self) -> Option<Nanos> {
        self.load_event
    }
}

/// The main thread: a queue of tasks, of which the first is running.
#[derive(Debug, Default)]
pub(crate) struct MainThread {
    tasks: VecDeque<Task>,
    /// When the running task ends.
    ends: Nanos,
}

#[derive(Debug)]
struct Task {
    resource: usize,
    cost: Nanos,
}

impl MainThread {
    /// Queues a task of duration `cost` for `resource`. A task of duration 0 ends as soon as the thread is free.
    pub(crate) fn submit(&mut self, now: Nanos, resource: usize, cost: Nanos) {
        if self.tasks.is_empty() {
            self.ends = now.saturating_add(cost);
        }
        self.tasks.push_back(Task { resource, cost });
    }

    /// When the running task ends.
    pub(crate) fn next(&self) -> Option<Nanos> {
        (!self.tasks.is_empty()).then_some(self.ends)
    }

    /// Ends the running task and starts the next one, at the time the first was due. So a driver that wakes up late
    /// does not delay the main thread.
    pub(crate) fn pop(&mut self) -> Option<(Nanos, usize)> {
        let task = self.tasks.pop_front()?;
        let ended = self.ends;
        if let Some(next) = self.tasks.front() {
            self.ends = ended.saturating_add(next.cost);
        }
        Some((ended, task.resource))
    }
}
