//! One direction of one link whose queue decides only when a packet's turn has come, as CoDel does.

use crate::Nanos;
use crate::capacity::Capacity;
use crate::ecn::Mark;
use crate::queue::Codel;

/// A rate, or a trace, behind CoDel. Its owner lets it take its turns in the order of time.
#[derive(Debug)]
pub(crate) struct ManagedLink<T> {
    capacity: Capacity,
    queue: Codel<T>,
    turn: Option<Nanos>,
}

/// What came of a turn.
#[derive(Debug)]
pub(crate) struct Turn<T> {
    /// What is sent, and when its last bit leaves.
    pub(crate) sent: Option<(Nanos, T)>,
    /// When it was.
    pub(crate) at: Nanos,
    /// What was dropped.
    pub(crate) dropped: Vec<T>,
    /// How many were marked.
    pub(crate) marked: u64,
}

impl<T: Mark> ManagedLink<T> {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
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

    /// Takes a packet at `now`, after every turn until then, or hands it back if the buffer is full.
    pub(crate) fn offer(&mut self, now: Nanos, bytes: u32, item: T) -> Result<(), T> {
        self.queue.push(now, bytes, item)?;
        if self.turn.is_none() {
            self.turn = Some(self.capacity.begin(now));
        }
        Ok(())
    }

    /// Takes the turn that is due.
    pub(crate) fn take_turn(&mut self) -> Option<Turn<T>> {
        let now = self.turn.take()?;
        let popped = self.queue.pop(now);
        let sent = popped.packet.map(|packet| {
            let departs = self.capacity.send(now, packet.bytes);
            self.turn = Some(self.capacity.free(departs));
            (departs, packet.item)
        });
        Some(Turn {
            sent,
            at: now,
            dropped: popped.dropped,
            marked: popped.is_marked.into(),
        })
    }
}
