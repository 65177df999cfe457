//! One direction of one link whose queue decides only when a packet's turn has come, as CoDel does.

use crate::Nanos;
use crate::link::serialisation;
use crate::queue::Codel;

/// A rate behind CoDel. Whoever owns it lets it take its turns in the order of time.
#[derive(Debug)]
pub(crate) struct ManagedLink<T> {
    rate_bps: u64,
    queue: Codel<T>,
    turn: Option<Nanos>,
}

/// What came of a turn.
#[derive(Debug)]
pub(crate) struct Turn<T> {
    /// What is sent, and when its last bit leaves.
    pub(crate) sent: Option<(Nanos, T)>,
    /// How many packets were dropped.
    pub(crate) dropped: u64,
}

impl<T> ManagedLink<T> {
    pub(crate) fn new(rate_bps: u64) -> Self {
        Self {
            rate_bps,
            queue: Codel::new(),
            turn: None,
        }
    }

    /// Packets that wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// When the link is free for the next packet.
    pub(crate) fn next_turn(&self) -> Option<Nanos> {
        self.turn
    }

    /// Takes a packet at `now`, after every turn until then; `false` if the buffer is full.
    pub(crate) fn offer(&mut self, now: Nanos, bytes: u32, item: T) -> bool {
        let is_taken = self.queue.push(now, bytes, item);
        if is_taken {
            self.turn.get_or_insert(now);
        }
        is_taken
    }

    /// Takes the turn that is due.
    pub(crate) fn take_turn(&mut self) -> Option<Turn<T>> {
        let now = self.turn.take()?;
        let popped = self.queue.pop(now);
        let sent = popped.packet.map(|packet| {
            let departs = now + serialisation(packet.bytes, self.rate_bps);
            self.turn = Some(departs);
            (departs, packet.item)
        });
        Some(Turn {
            sent,
            dropped: popped.dropped,
        })
    }
}
