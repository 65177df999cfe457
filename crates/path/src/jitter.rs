//! Delay that varies from packet to packet, uniformly; with the order kept or not.
//!
//! Left out: correlation between one packet's delay and the next one's, other than by keeping the order.

use crate::network::Direction;
use crate::{Nanos, PathConfig};

/// The jitter of a client's paths.
#[derive(Debug)]
pub(crate) struct Jitter {
    random: fastrand::Rng,
    longest: Nanos,
    reorders: bool,
    /// When the last packet is due, by origin and direction.
    last: Vec<[Nanos; 2]>,
}

impl Jitter {
    pub(crate) fn new(config: &PathConfig) -> Self {
        Self {
            // Dice of its own: with jitter the same packets are lost.
            random: fastrand::Rng::with_seed(!config.seed),
            longest: (config.jitter_ms * 1e6).round() as Nanos,
            reorders: config.reorder,
            last: Vec::new(),
        }
    }

    /// The next packet's additional delay.
    pub(crate) fn draw(&mut self) -> Nanos {
        if self.longest == 0 {
            return 0;
        }
        self.random.u64(0..=self.longest)
    }

    /// When a packet is due that would be at `at`: where the order is kept, not before those sent before it.
    pub(crate) fn due(&mut self, at: Nanos, origin: usize, direction: Direction) -> Nanos {
        if self.longest == 0 || self.reorders {
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
