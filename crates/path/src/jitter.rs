//! Packet order under jitter: a packet either waits for earlier ones of its origin and direction, or overtakes
//! them.
//!
//! Left out: correlation between the delays of successive packets, other than by keeping the order.

use crate::network::Direction;
use crate::{Nanos, PathConfig};

/// Keeps the order of packets on a client's paths.
#[derive(Debug)]
pub(crate) struct Jitter {
    keeps_order: bool,
    /// When the latest packet is due, by origin and direction.
    last: Vec<[Nanos; 2]>,
}

impl Jitter {
    pub(crate) fn new(config: &PathConfig) -> Self {
        Self {
            keeps_order: config.longest_jitter() > 0 && !config.reorder,
            last: Vec::new(),
        }
    }

    /// When a packet arrives whose delay ends at `at`. If order is kept, it is not before the packets sent earlier.
    pub(crate) fn due(&mut self, at: Nanos, origin: usize, direction: Direction) -> Nanos {
        if !self.keeps_order {
            return at;
        }
        if self.last.len() <= origin {
            self.last.resize(origin + 1, [0; 2]);
        }
        let last = &mut self.last[origin][direction.index()];
        *last = at.max(*last);
        *last
    }
}
