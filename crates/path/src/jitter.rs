//! Order under jitter: a packet that would overtake another of its origin and direction waits for it, or does not.
//!
//! Left out: correlation between one packet's delay and the next one's, other than by keeping the order.

use crate::network::Direction;
use crate::{Nanos, PathConfig};

/// The order of packets on a client's paths.
#[derive(Debug)]
pub(crate) struct Jitter {
    keeps_order: bool,
    /// When the last packet is due, by origin and direction.
    last: Vec<[Nanos; 2]>,
}

impl Jitter {
    pub(crate) fn new(config: &PathConfig) -> Self {
        Self {
            keeps_order: config.longest_jitter() > 0 && !config.reorder,
            last: Vec::new(),
        }
    }

    /// When a packet is due that would be at `at`: where the order is kept, not before those sent before it.
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
