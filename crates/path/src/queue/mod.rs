//! Queue disciplines: which packets a link accepts. One file per discipline.

mod codel;
mod drop_tail;
mod pie;

pub(crate) use codel::Codel;
pub(crate) use drop_tail::DropTail;
pub(crate) use pie::Pie;

use crate::Nanos;

/// Packets that CoDel and PIE hold at most; the default limit of Linux's qdiscs.
const MANAGED_LIMIT: usize = 1_000;

/// What happens to an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Take,
    /// It is accepted, and marked.
    Mark,
    Drop,
}

/// The packets in front of a link when a packet arrives, the packet being serialised included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backlog {
    pub(crate) packets: usize,
    pub(crate) bytes: u64,
    /// Their serialisation time, ns: how long the arriving packet would wait.
    pub(crate) wait: Nanos,
}
