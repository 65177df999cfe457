//! Drop-tail: an arriving packet that finds no room is dropped.

use super::Backlog;
use crate::Nanos;

/// The limit of the buffer in front of a link.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DropTail {
    Packets(usize),
    Bytes(u64),
    Wait(Nanos),
    Unlimited,
}

impl DropTail {
    /// Whether an arriving packet of `bytes` finds room.
    pub(crate) fn admits(self, backlog: Backlog, bytes: u32) -> bool {
        match self {
            Self::Packets(limit) => backlog.packets < limit,
            Self::Bytes(limit) => backlog.bytes + u64::from(bytes) <= limit,
            Self::Wait(limit) => backlog.wait <= limit,
            Self::Unlimited => true,
        }
    }
}
