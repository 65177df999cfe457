//! CoDel (RFC 8289): drops or marks packets at the head once every packet of an interval has waited longer than a
//! target. After a mark it continues as Linux does (`codel_dequeue`).

use std::collections::VecDeque;

use super::MANAGED_LIMIT;
use crate::Nanos;
use crate::ecn::Mark;

const MS: Nanos = 1_000_000;
/// `TARGET`, the acceptable standing queue delay.
const TARGET: Nanos = 5 * MS;
/// `INTERVAL`, how long the delay may stay above the target: about the longest round-trip time of the flows.
const INTERVAL: Nanos = 100 * MS;
/// `MAXPACKET`: CoDel drops nothing while at most one packet is queued.
const MAX_PACKET_BYTES: u64 = 1_500;

/// A queue of items with a size. The names are those of RFC 8289, section 5.
#[derive(Debug)]
pub(crate) struct Codel<T> {
    packets: VecDeque<Waiting<T>>,
    bytes: u64,
    first_above: Option<Nanos>,
    drop_next: Nanos,
    count: u32,
    last_count: u32,
    is_dropping: bool,
}

#[derive(Debug)]
pub(crate) struct Waiting<T> {
    arrived: Nanos,
    pub(crate) bytes: u32,
    pub(crate) item: T,
}

/// The result of one dequeue.
#[derive(Debug)]
pub(crate) struct Popped<T> {
    /// The packet to send, if any is left.
    pub(crate) packet: Option<Waiting<T>>,
    /// The packets dropped before it.
    pub(crate) dropped: Vec<T>,
    /// Whether CoDel marked the packet to send.
    pub(crate) is_marked: bool,
}

impl<T: Mark> Codel<T> {
    pub(crate) fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            first_above: None,
            drop_next: 0,
            count: 0,
            last_count: 0,
            is_dropping: false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Queues a packet, or returns it if the buffer itself is full.
    pub(crate) fn push(&mut self, now: Nanos, bytes: u32, item: T) -> Result<(), T> {
        if self.packets.len() >= MANAGED_LIMIT {
            return Err(item);
        }
        self.bytes += u64::from(bytes);
        self.packets.push_back(Waiting {
            arrived: now,
            bytes,
            item,
        });
        Ok(())
    }

    /// The packet to send at `now`, after those that CoDel drops (`dequeue` of section 5.5).
    pub(crate) fn pop(&mut self, now: Nanos) -> Popped<T> {
        let (mut packet, mut may_drop) = self.take(now);
        let mut dropped = Vec::new();
        let mut is_marked = false;
        if !self.is_dropping && may_drop {
            is_marked = marks(&mut packet);
            if !is_marked {
                dropped.extend(packet.map(|packet| packet.item));
                (packet, _) = self.take(now);
            }
            self.start_dropping(now);
            return Popped {
                packet,
                dropped,
                is_marked,
            };
        }
        self.is_dropping &= may_drop;
        while self.is_dropping && now >= self.drop_next {
            self.count += 1;
            is_marked = marks(&mut packet);
            if is_marked {
                self.drop_next = control_law(self.drop_next, self.count);
                break;
            }
            dropped.extend(packet.map(|packet| packet.item));
            (packet, may_drop) = self.take(now);
            self.is_dropping = may_drop;
            if may_drop {
                self.drop_next = control_law(self.drop_next, self.count);
            }
        }
        Popped {
            packet,
            dropped,
            is_marked,
        }
    }

    /// Starts with the drop rate that controlled the queue last time, if that was recent.
    fn start_dropping(&mut self, now: Nanos) {
        self.is_dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let is_recent = now.saturating_sub(self.drop_next) < 16 * INTERVAL;
        self.count = if delta > 1 && is_recent { delta } else { 1 };
        self.drop_next = control_law(now, self.count);
        self.last_count = self.count;
    }

    /// Takes the head, and says whether it may be dropped (`dodequeue`).
    fn take(&mut self, now: Nanos) -> (Option<Waiting<T>>, bool) {
        let Some(packet) = self.packets.pop_front() else {
            self.first_above = None;
            return (None, false);
        };
        self.bytes -= u64::from(packet.bytes);
        if now - packet.arrived < TARGET || self.bytes <= MAX_PACKET_BYTES {
            self.first_above = None;
            return (Some(packet), false);
        }
        let since = *self.first_above.get_or_insert(now + INTERVAL);
        (Some(packet), now >= since)
    }
}

fn marks<T: Mark>(packet: &mut Option<Waiting<T>>) -> bool {
    packet.as_mut().is_some_and(|packet| packet.item.mark())
}

/// The time of the next drop: the interval shrinks with the square root of the number of drops.
fn control_law(from: Nanos, count: u32) -> Nanos {
    from + (INTERVAL as f64 / f64::from(count).sqrt()) as Nanos
}
