//! What takes packets off a queue: a rate, or the opportunities of a trace.

use crate::Nanos;
use crate::trace::Opportunities;

/// How a link delivers. Packets are begun one after the other.
#[derive(Debug, Clone)]
pub(crate) enum Capacity {
    /// At once.
    Unlimited,
    /// At so many bit/s.
    Rate(u64),
    /// When a trace says.
    Trace(Opportunities),
}

impl Capacity {
    /// When a packet is begun that finds the link idle at `now`.
    pub(crate) fn begin(&mut self, now: Nanos) -> Nanos {
        match self {
            Self::Unlimited | Self::Rate(_) => now,
            Self::Trace(opportunities) => opportunities.after(now),
        }
    }

    /// When the last bit leaves of a packet that is begun at `at`.
    pub(crate) fn send(&mut self, at: Nanos, bytes: u32) -> Nanos {
        match self {
            Self::Unlimited => at,
            Self::Rate(rate_bps) => at + serialisation(bytes, *rate_bps),
            Self::Trace(opportunities) => opportunities.carry(bytes),
        }
    }

    /// When the next packet can be begun, the last one having left at `departed`.
    pub(crate) fn free(&mut self, departed: Nanos) -> Nanos {
        match self {
            Self::Unlimited | Self::Rate(_) => departed,
            Self::Trace(opportunities) => opportunities.room(),
        }
    }
}

/// How long `bytes` take, ns. Rounded up: a link is never faster than its rate.
fn serialisation(bytes: u32, rate_bps: u64) -> Nanos {
    (u64::from(bytes) * 8 * 1_000_000_000).div_ceil(rate_bps)
}
