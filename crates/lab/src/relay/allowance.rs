//! How much the relay may watch the clock instead of sleeping.
//!
//! Waking up from sleep takes a few microseconds, sometimes many. Waking early and watching the clock until
//! a packet is due hides that, and costs processor time. A page's few hundred packets a second can afford it;
//! a full link cannot. So watching is paid from an allowance that grows with time.

/// How close before a departure the relay wakes to watch the clock, ns.
pub(super) const WATCH_NS: u64 = 20_000;
/// One part in so many of the time may be watched away.
const SHARE: u64 = 50;
/// Allowance that can be saved up, ns.
const MOST_SAVED_NS: u64 = 2_000_000;

/// Time that may be watched away.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    saved: u64,
    /// When it last grew.
    since: u64,
    /// What is being watched away: from when, until a packet is due.
    watching: Option<(u64, u64)>,
}

impl Allowance {
    /// How long to sleep at `now` when the next packet is due at `due`, both ns; zero: watch the clock.
    pub(super) fn sleep(&mut self, now: u64, due: u64) -> u64 {
        if let Some((from, until)) = self.watching.take() {
            self.saved = self.saved.saturating_sub(until.min(now) - from);
        }
        self.saved = (self.saved + now.saturating_sub(self.since) / SHARE).min(MOST_SAVED_NS);
        self.since = now;

        let early = due.saturating_sub(now);
        if self.saved < WATCH_NS {
            return early;
        }
        if early <= WATCH_NS {
            self.watching = Some((now, due.max(now)));
        }
        early.saturating_sub(WATCH_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_rare_packet_is_watched_for_and_a_full_link_is_slept_through() {
        let mut allowance = Allowance::default();
        assert_eq!(allowance.sleep(SECOND, SECOND + WATCH_NS), 0);
        assert_eq!(allowance.sleep(SECOND, SECOND + 3 * WATCH_NS), 2 * WATCH_NS);

        let mut slept = 0;
        for packet in 0..1_000 {
            let now = 2 * SECOND + packet * WATCH_NS;
            slept += u64::from(allowance.sleep(now, now + WATCH_NS) > 0);
        }
        assert!(slept > 800, "slept before {slept} of 1000 packets");
    }
}
