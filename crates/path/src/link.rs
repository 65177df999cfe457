//! One direction of one link: a rate behind a buffer that decides about a packet when it arrives.

use std::collections::VecDeque;

use crate::queue::{Backlog, DropTail, Pie};
use crate::{Nanos, Queue};

/// A FIFO that serialises packets at a fixed rate.
///
/// A packet's departure follows from its arrival and from what stands before it, so it is known at once;
/// the buffer only has to remember departures to know what still waits.
#[derive(Debug, Clone)]
pub struct Link {
    rate_bps: Option<u64>,
    discipline: Discipline,
    busy_until: Nanos,
    waiting: VecDeque<(Nanos, u32)>,
    waiting_bytes: u64,
}

#[derive(Debug, Clone)]
enum Discipline {
    DropTail(DropTail),
    Pie(Box<Pie>),
}

impl Discipline {
    fn new(queue: Queue, seed: u64) -> Self {
        Self::DropTail(match queue {
            Queue::Packets(limit) => DropTail::Packets(limit),
            Queue::Bytes(limit) => DropTail::Bytes(limit),
            Queue::Ms(limit) => DropTail::Wait(u64::from(limit) * 1_000_000),
            Queue::Unlimited | Queue::Codel => DropTail::Unlimited,
            Queue::Pie => return Self::Pie(Box::new(Pie::new(seed))),
        })
    }
}

impl Link {
    /// A link of `rate_bps` bit/s (`None`: unlimited) behind `queue`; `seed` is that of PIE's dice.
    ///
    /// CoDel decides when a packet leaves, which is [`Network`](crate::Network)'s to do: here it drops nothing.
    pub fn new(rate_bps: Option<u64>, queue: Queue, seed: u64) -> Self {
        Self {
            rate_bps,
            discipline: Discipline::new(queue, seed),
            busy_until: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Offers a packet at `now`; returns when its last bit leaves, or `None` if it is dropped.
    ///
    /// Calls must not go back in time.
    pub fn transmit(&mut self, now: Nanos, bytes: u32) -> Option<Nanos> {
        let Some(rate_bps) = self.rate_bps else {
            return Some(now);
        };
        self.forget_departed(now);
        if !self.admits(now, bytes) {
            return None;
        }
        self.busy_until = self.busy_until.max(now) + serialisation(bytes, rate_bps);
        self.waiting.push_back((self.busy_until, bytes));
        self.waiting_bytes += u64::from(bytes);
        Some(self.busy_until)
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

    fn admits(&mut self, now: Nanos, bytes: u32) -> bool {
        let backlog = Backlog {
            packets: self.waiting.len(),
            bytes: self.waiting_bytes,
            wait: self.busy_until.saturating_sub(now),
        };
        match &mut self.discipline {
            Discipline::DropTail(limit) => limit.admits(backlog, bytes),
            Discipline::Pie(pie) => pie.admits(now, backlog),
        }
    }
}

/// How long `bytes` take, ns. Rounded up: a link is never faster than its rate.
pub(crate) fn serialisation(bytes: u32, rate_bps: u64) -> Nanos {
    (u64::from(bytes) * 8 * 1_000_000_000).div_ceil(rate_bps)
}
