//! One direction of one link: a rate behind a drop-tail buffer.

use std::collections::VecDeque;

use crate::{Nanos, Queue};

/// A FIFO that serialises packets at a fixed rate.
///
/// A packet's departure follows from its arrival and from what stands before it, so it is known at once;
/// the buffer only has to remember departures to know what still waits.
#[derive(Debug, Clone)]
pub struct Link {
    rate_bps: Option<u64>,
    queue: Queue,
    busy_until: Nanos,
    waiting: VecDeque<(Nanos, u32)>,
    waiting_bytes: u64,
}

impl Link {
    /// A link of `rate_bps` bit/s (`None`: unlimited) behind `queue`.
    pub fn new(rate_bps: Option<u64>, queue: Queue) -> Self {
        Self {
            rate_bps,
            queue,
            busy_until: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Offers a packet at `now`; returns when its last bit leaves, or `None` if the buffer is full.
    ///
    /// Calls must not go back in time.
    pub fn transmit(&mut self, now: Nanos, bytes: u32) -> Option<Nanos> {
        let Some(rate_bps) = self.rate_bps else {
            return Some(now);
        };
        self.forget_departed(now);
        if self.is_full(bytes) {
            return None;
        }
        // Rounded up: a link is never faster than its rate.
        let serialisation = (u64::from(bytes) * 8 * 1_000_000_000).div_ceil(rate_bps);
        self.busy_until = self.busy_until.max(now) + serialisation;
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

    fn is_full(&self, bytes: u32) -> bool {
        match self.queue {
            Queue::Packets(limit) => self.waiting.len() >= limit,
            Queue::Bytes(limit) => self.waiting_bytes + u64::from(bytes) > limit,
            Queue::Unlimited => false,
        }
    }
}
