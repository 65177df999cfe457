//! One direction of one link: a rate or a trace, behind a buffer that decides about each packet on arrival.

use std::collections::VecDeque;

use crate::capacity::Capacity;
use crate::ecn::Ecn;
use crate::queue::{Backlog, DropTail, Pie, Verdict};
use crate::{Nanos, Purpose, Queue, Stream};

/// A FIFO that serialises packets at a fixed rate, or as a trace allows.
///
/// A packet's departure follows from its arrival and from the packets ahead of it, so it is known at once. The
/// buffer only has to remember departure times, to know which packets still wait.
#[derive(Debug, Clone)]
pub struct Link {
    capacity: Capacity,
    discipline: Discipline,
    busy_until: Nanos,
    waiting: VecDeque<(Nanos, u32)>,
    waiting_bytes: u64,
}

/// A packet that the link has accepted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    /// When its last bit leaves.
    pub(crate) departs: Nanos,
    /// Whether the queue marked it instead of dropping it.
    pub(crate) is_marked: bool,
}

#[derive(Debug, Clone)]
enum Discipline {
    DropTail(DropTail),
    Pie(Box<Pie>),
}

impl Discipline {
    fn new(queue: Queue, random: Stream) -> Self {
        Self::DropTail(match queue {
            Queue::Packets(limit) => DropTail::Packets(limit),
            Queue::Bytes(limit) => DropTail::Bytes(limit),
            Queue::Ms(limit) => DropTail::Wait(u64::from(limit) * 1_000_000),
            Queue::Unlimited | Queue::Codel => DropTail::Unlimited,
            Queue::Pie => return Self::Pie(Box::new(Pie::new(random))),
        })
    }
}

impl Link {
    /// A link of `rate_bps` bit/s (`None`: unlimited) behind `queue`; `seed` is that of PIE's early drops.
    ///
    /// With CoDel this link drops nothing: [`Network`](crate::Network) handles CoDel, which decides when a packet
    /// leaves.
    pub fn new(rate_bps: Option<u64>, queue: Queue, seed: u64) -> Self {
        let capacity = rate_bps.map_or(Capacity::Unlimited, Capacity::Rate);
        Self::of(capacity, queue, Stream::new(seed, Purpose::Pie, &[]))
    }

    /// As [`Self::new`], with any capacity.
    pub(crate) fn of(capacity: Capacity, queue: Queue, random: Stream) -> Self {
        Self {
            capacity,
            discipline: Discipline::new(queue, random),
            busy_until: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Offers a packet at `now`; returns when its last bit leaves, or `None` if it is dropped.
    ///
    /// Calls must not go back in time.
    pub fn transmit(&mut self, now: Nanos, bytes: u32) -> Option<Nanos> {
        let sent = self.offer(now, bytes, &mut Ecn::NotCapable)?;
        Some(sent.departs)
    }

    /// As [`Self::transmit`], for a packet that the queue may mark instead of dropping.
    pub(crate) fn offer(&mut self, now: Nanos, bytes: u32, ecn: &mut Ecn) -> Option<Sent> {
        if matches!(self.capacity, Capacity::Unlimited) {
            return Some(Sent {
                departs: now,
                is_marked: false,
            });
        }
        self.forget_departed(now);
        let is_marked = match self.judge(now, bytes, ecn) {
            Verdict::Drop => return None,
            verdict => verdict == Verdict::Mark,
        };
        let begins = if self.busy_until > now {
            self.busy_until
        } else {
            self.capacity.begin(now)
        };
        self.busy_until = self.capacity.send(begins, bytes);
        self.waiting.push_back((self.busy_until, bytes));
        self.waiting_bytes += u64::from(bytes);
        Some(Sent {
            departs: self.busy_until,
            is_marked,
        })
    }

    fn forget_departed(&mut self, now: Nanos) {
        while let Some(&(departs, bytes)) = self.waiting.front() {
            if departs > now {
                break;
            }
            self.waiting.pop_front();
            self.waiting_bytes -= u64::from(bytes);
        }
    }

    fn judge(&mut self, now: Nanos, bytes: u32, ecn: &mut Ecn) -> Verdict {
        let backlog = Backlog {
            packets: self.waiting.len(),
            bytes: self.waiting_bytes,
            wait: self.busy_until.saturating_sub(now),
        };
        match &mut self.discipline {
            Discipline::DropTail(limit) if limit.admits(backlog, bytes) => Verdict::Take,
            Discipline::DropTail(_) => Verdict::Drop,
            Discipline::Pie(pie) => pie.judge(now, backlog, ecn),
        }
    }
}
