//! How fast a link takes packets off its queue: at a rate, or at the delivery opportunities of a trace.

use crate::Nanos;
use crate::trace::Opportunities;

/// How a link delivers. It sends one packet after the other.
#[derive(Debug, Clone)]
pub(crate) enum Capacity {
    /// Without serialisation delay.
    Unlimited,
    /// At this rate, bit/s.
    Rate(u64),
    /// At the delivery opportunities of a trace.
    Trace(Opportunities),
}

impl Capacity {
    /// When the link starts to send a packet that finds it idle at `now`.
    pub(crate) fn begin(&mut self, now: Nanos) -> Nanos {
        match self {
            Self::Unlimited | Self::Rate(_) => now,
            Self::Trace(opportunities) => opportunities.after(now),
        }
    }

    /// When the last bit leaves of a packet whose sending starts at `at`.
    pub(crate) fn send(&mut self, at: Nanos, bytes: u32) -> Nanos {
        match self {
            Self::Unlimited => at,
            Self::Rate(rate_bps) => at + serialisation(bytes, *rate_bps),
            Self::Trace(opportunities) => opportunities.carry(bytes),
        }
    }

    /// When the link can start the next packet, if the last one left at `departed`.
    pub(crate) fn free(&mut self, departed: Nanos) -> Nanos {
        match self {
            Self::Unlimited | Self::Rate(_) => departed,
            Self::Trace(opportunities) => opportunities.room(),
        }
    }
}

/// Serialisation time of `bytes`, ns. Rounded up, so that a link is never faster than its rate.
fn serialisation(bytes: u32, rate_bps: u64) -> Nanos {
    (u64::from(bytes) * 8 * 1_000_000_000).div_ceil(rate_bps)
}
