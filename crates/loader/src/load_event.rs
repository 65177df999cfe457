//! What the load event waits for: resources that are discovered and not settled, and the one thread that parses,
//! styles and executes.
//!
//! HTML Standard, 13.2.7 "The end": the load event fires when nothing delays the load event of the document any more. A
//! resource delays it from its discovery until it has arrived and been processed. What is discovered by processing is
//! counted before the discoverer is let go. 8.1.7 "Event loops": one task runs at a time, to completion. Tasks are taken
//! in order of arrival. Left out: document order of deferred scripts, and yielding within a task.

use std::collections::VecDeque;

use crate::Nanos;

/// What is discovered and not settled.
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

    /// A resource has ended and been processed, or has failed.
    pub(crate) fn remove(&mut self, blocks_load: bool, now: Nanos) {
        self.all -= 1;
        self.blocking -= usize::from(blocks_load);
        if self.blocking == 0 {
            self.load_event.get_or_insert(now);
        }
    }

    /// Nothing is left, whether it blocks the load event or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// When the last resource that blocks it was settled.
    pub(crate) fn load_event(&self) -> Option<Nanos> {
        self.load_event
    }
}

/// A queue of work, the first item of which is running.
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
    /// Queues `cost` of work on `resource`. Free work is done as soon as the thread is.
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

    /// Ends the running task and starts the next one, at the time it was due: a driver that wakes up late
    /// does not slow the thread down.
    pub(crate) fn pop(&mut self) -> Option<(Nanos, usize)> {
        let task = self.tasks.pop_front()?;
        let ended = self.ends;
        if let Some(next) = self.tasks.front() {
            self.ends = ended.saturating_add(next.cost);
        }
        Some((ended, task.resource))
    }
}
