//! Name lookups: each host once, as long as in the recording.
//!
//! Left out: the packets of a lookup on the path, and lookups that browsers make ahead of time.

use crate::Nanos;
use crate::loader::Loader;
use crate::timers::Timer;

/// The state of a host's lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    NotBegun,
    UnderWay,
    Done,
}

impl Loader {
    /// Whether the loader can connect to `origin`. If not, starts the lookup of its name unless that was done.
    pub(crate) fn is_resolved(&mut self, origin: usize, now: Nanos) -> bool {
        let host = self.plan.host_of[origin];
        let length = self.plan.lookups[host];
        if self.lookups[host] == Lookup::NotBegun {
            self.lookups[host] = if self.config.lookups && length > 0 {
                self.timers.set(now.saturating_add(length), Timer::Lookup(host));
                Lookup::UnderWay
            } else {
                Lookup::Done
            };
        }
        self.lookups[host] == Lookup::Done
    }

    /// The name of `host` is resolved, so the loader can connect to its origins.
    pub(crate) fn on_resolved(&mut self, host: usize, now: Nanos) {
        self.lookups[host] = Lookup::Done;
        for origin in 0..self.plan.origins.len() {
            if self.plan.host_of[origin] == host {
                self.serve(origin, now);
            }
        }
    }
}
