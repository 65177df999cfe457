//! What decides which packets a link carries: one file per discipline.

mod codel;
mod drop_tail;
mod pie;

pub(crate) use codel::Codel;
pub(crate) use drop_tail::DropTail;
pub(crate) use pie::Pie;

use crate::Nanos;

/// Packets that CoDel and PIE hold at most, as Linux's do unless told otherwise.
const MANAGED_LIMIT: usize = 1_000;

/// What is done to a newcomer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Take,
    /// It is taken, and marked.
    Mark,
    Drop,
}

/// What stands in front of a link when a packet arrives, the packet being serialised included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backlog {
    pub(crate) packets: usize,
    pub(crate) bytes: u64,
    /// How long it takes to serialise, ns: what the newcomer would wait.
    pub(crate) wait: Nanos,
}
