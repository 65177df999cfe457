//! The loader's timers. A timer that is not needed any more stays in the queue: it fires and does nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{ConnId, Nanos};

/// A timer. The order of the variants decides between timers with the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The delay between a resource's discovery and its request is over.
    Request(usize),
    /// The name of a host is resolved.
    Lookup(usize),
    /// The certificate of the connection's server is verified.
    Verified(ConnId),
    /// Check whether the connection still makes progress.
    Stall(ConnId),
    /// Check whether the QUIC connection's handshake is done.
    Race(ConnId),
    /// The load has timed out.
    Load,
}

/// Timers by time.
#[derive(Debug, Default)]
pub(crate) struct Timers(BinaryHeap<Reverse<(Nanos, Timer)>>);

impl Timers {
    pub(crate) fn set(&mut self, at: Nanos, timer: Timer) {
        self.0.push(Reverse((at, timer)));
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn pop(&mut self) -> Option<(Nanos, Timer)> {
        self.0.pop().map(|Reverse(entry)| entry)
    }
}
