//! The loader's alarm clock. A timer that has lost its meaning is not removed: it fires and does nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{ConnId, Nanos};

/// What is due. The order decides between timers of the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The delay between a resource's discovery and its request is over.
    Request(usize),
    /// The name of a host is known.
    Lookup(usize),
    /// The certificate that the connection came with is verified.
    Verified(ConnId),
    /// Look whether the connection still makes progress.
    Stall(ConnId),
    /// Look whether the connection over QUIC has got through.
    Race(ConnId),
    /// The load has taken too long.
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
