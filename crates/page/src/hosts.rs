//! What a recording tells of the way to hosts.

use crate::{Host, Page};

impl Page {
    /// How much farther `host` was than the nearest host of the recording, ms; 0 where it does not say.
    pub fn farther_ms(&self, host: &str) -> f64 {
        let known = || self.hosts.iter().filter(|known| known.rtt_ms > 0.0);
        let nearest = known().map(|known| known.rtt_ms).fold(f64::INFINITY, f64::min);
        let own = known().find(|known| known.host == host);
        own.map_or(0.0, |own| own.rtt_ms - nearest)
    }

    /// How long the name of `host` was looked up, ms; 0 where the recording has no lookup.
    pub fn lookup_ms(&self, host: &str) -> f64 {
        let own = self.hosts.iter().find(|known: &&Host| known.host == host);
        own.map_or(0.0, |own| own.lookup_ms)
    }
}
