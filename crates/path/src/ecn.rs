//! Explicit congestion notification (RFC 3168): the ECN field of a packet, and how a queue marks it.

/// The ECN field of the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Not-ECT: the sender does not use ECN, so a queue must drop.
    #[default]
    NotCapable,
    /// ECT: the sender treats a mark like a drop.
    Capable,
    /// CE: a queue has marked the packet.
    Marked,
}

/// A packet that a queue may mark.
pub(crate) trait Mark {
    /// Marks the packet. Returns `false` if it must be dropped instead.
    fn mark(&mut self) -> bool;
}

impl Mark for Ecn {
    fn mark(&mut self) -> bool {
        let is_capable = *self != Self::NotCapable;
        if is_capable {
            *self = Self::Marked;
        }
        is_capable
    }
}

/// A packet inside the path: its ECN field, its fate and its payload. Small, because a heap moves it about.
#[derive(Debug, Clone)]
pub(crate) struct Carried<P> {
    pub(crate) ecn: Ecn,
    pub(crate) is_lost: bool,
    pub(crate) is_doubled: bool,
    pub(crate) payload: P,
}
