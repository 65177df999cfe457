//! Explicit congestion notification: what a packet says of it, and what a queue says by it (RFC 3168).

/// The two bits of the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Its sender knows nothing of it: a queue must drop.
    #[default]
    NotCapable,
    /// ECT: its sender will take a mark for a drop.
    Capable,
    /// CE: it met congestion.
    Marked,
}

/// What a queue may mark.
pub(crate) trait Mark {
    /// Marks it; `false` where it must be dropped.
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

/// A packet's own, what chance does to it behind its link, and what it carries. Small: a heap moves it about.
#[derive(Debug, Clone)]
pub(crate) struct Carried<P> {
    pub(crate) ecn: Ecn,
    pub(crate) is_lost: bool,
    pub(crate) is_doubled: bool,
    pub(crate) payload: P,
}
