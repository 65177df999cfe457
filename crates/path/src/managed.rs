//! One direction of one link whose queue decides about a packet when the link can send it, as CoDel does.

use crate::Nanos;
use crate::capacity::Capacity;
use crate::ecn::Mark;
use crate::queue::Codel;

/// A rate or a trace behind CoDel. The owner must call [`Self::take_turn`] in the order of time.
#[derive(Debug)]
pub(crate) struct ManagedLink<T> {
    capacity: Capacity,
    queue: Codel<T>,
    turn: Option<Nanos>,
}

/// The result of one dequeue.
#[derive(Debug)]
pub(crate) struct Turn<T> {
    /// The packet that is sent, and when its last bit leaves; `None` if no packet is left.
    pub(crate) sent: Option<(Nanos, T)>,
    /// The time of the dequeue.
    pub(crate) at: Nanos,
    /// The packets that CoDel dropped.
    pub(crate) dropped: Vec<T>,
    /// How many packets CoDel marked.
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

    /// Number of packets that wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// When the next dequeue is due; `None` while the link is idle.
    pub(crate) fn next_turn(&self) -> Option<Nanos> {
        self.turn
    }

    /// Queues a packet at `now`, or returns it if the buffer is full. Take every turn that is due by `now` first.
    pub(crate) fn offer(&mut self, now: Nanos, bytes: u32, item: T) -> Result<(), T> {
        self.queue.push(now, bytes, item)?;
        if self.turn.is_none() {
            self.turn = Some(self.capacity.begin(now));
        }
        Ok(())
    }

    /// Sends the next packet, after CoDel's drops; `None` while the link is idle.
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
