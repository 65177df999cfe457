//! Name lookups: as long as the recording's were, each once.
//!
//! Left out: that a lookup crosses the path, and that browsers look names up ahead of time.

use crate::Nanos;
use crate::loader::Loader;
use crate::timers::Timer;

/// How far the lookup of a host has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    NotBegun,
    UnderWay,
    Done,
}

impl Loader {
    /// Whether `origin` can be connected to; begins the lookup of its name if that is still to be done.
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

    /// The name of `host` is known: its origins can be connected to.
    pub(crate) fn on_resolved(&mut self, host: usize, now: Nanos) {
        self.lookups[host] = Lookup::Done;
        for origin in 0..self.plan.origins.len() {
            if self.plan.host_of[origin] == host {
                self.serve(origin, now);
            }
        }
    }
}
