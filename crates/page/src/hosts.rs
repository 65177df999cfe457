//! What a recording says of the hosts of a page.

use crate::{Host, Page};

impl Page {
    /// How much farther `host` was than the end of the recording's access link, ms. If the link is not known: than
    /// the nearest host. 0 if the recording does not say.
    pub fn farther_ms(&self, host: &str) -> f64 {
        let own = self.host(host).map_or(0.0, |own| own.rtt_ms);
        let distances = self.hosts.iter().map(|known| known.rtt_ms);
        let nearest = distances.filter(|&ms| ms > 0.0).fold(f64::INFINITY, f64::min);
        let link = self.link.as_ref().map_or(nearest, |link| link.rtt_ms);
        if own > 0.0 { (own - link).max(0.0) } else { 0.0 }
    }

    /// What the recording says of `host`.
    pub fn host(&self, host: &str) -> Option<&Host> {
        self.hosts.iter().find(|known| known.host == host)
    }

    /// Duration of the name lookup of `host`, ms; 0 if none was recorded.
    pub fn lookup_ms(&self, host: &str) -> f64 {
        self.host(host).map_or(0.0, |own| own.lookup_ms)
    }
}
