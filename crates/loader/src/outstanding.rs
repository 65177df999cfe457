//! Counts what the load still waits for, and so finds the load event.
//!
//! HTML Standard, 13.2.7 "The end": the load event fires when nothing delays the load event of the document
//! any more. A resource delays it from its discovery until it has arrived and been processed. What is
//! discovered by processing is counted before the discoverer is let go.

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
