//! The one thread that parses, styles and executes.
//!
//! HTML Standard, 8.1.7 "Event loops": one task runs at a time, to completion. Tasks are taken in order of
//! arrival. Left out: document order of deferred scripts, and yielding within a task.

use std::collections::VecDeque;

use crate::Nanos;

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
