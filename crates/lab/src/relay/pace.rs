//! When the relay looks for packets, and how it waits in between.
//!
//! Waking up from sleep takes a few microseconds, sometimes many. The relay hides that: it wakes early and
//! *watches* the clock until a packet is due. A page's few hundred packets a second can afford this, a full link
//! cannot. So watching is limited to an allowance. Past some thousand wake-ups a second the relay *naps*: it looks
//! every 0.15 ms, and handles all packets that have come or are due together. Departures still follow from the
//! path's state. So a nap delays a packet by at most its own length, and does not change a link's rate.

/// How long before a departure the relay wakes to watch the clock, ns.
const WATCH_NS: u64 = 20_000;
/// The relay may spend one part in this many of its time on watching.
const WATCH_SHARE: u64 = 50;
/// Largest unused watching time that the relay keeps, ns.
const MOST_WATCH_NS: u64 = 2_000_000;
/// The relay may wake up once per this time, ns: 5,000 times a second.
const WAKE_NS: u64 = 200_000;
/// Largest unused wake-up time that the relay keeps, ns: one thousand wake-ups.
const MOST_WAKES_NS: u64 = 1_000 * WAKE_NS;
/// Length of a nap, ns.
const NAP_NS: u64 = 150_000;
/// Interval at which the relay checks whether it can stop napping, ns.
const WINDOW_NS: u64 = 10_000_000;
/// The relay stops napping after a window with fewer packets than this, in and out.
const FEW_PACKETS: u64 = 50;

/// How the relay waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Not at all: a packet is due very soon.
    Watch,
    /// Until a packet comes, or for at most this long, ns.
    Sleep(Option<u64>),
    /// For this long, ns, even if a packet comes.
    Nap(u64),
}

/// The allowances for watching and for wake-ups.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    watch: u64,
    wakes: u64,
    /// When both were last increased.
    since: u64,
    /// The current watch: when it began, and when the packet is due.
    watching: Option<(u64, u64)>,
    napping: Option<Window>,
}

#[derive(Debug)]
struct Window {
    ends: u64,
    packets: u64,
}

impl Pace {
    /// How to wait at `now`, if the next packet is due at `due`; both ns.
    pub(crate) fn rest(&mut self, now: u64, due: Option<u64>) -> Rest {
        self.settle(now);
        if self.is_napping(now) {
            return Rest::Nap(NAP_NS);
        }
        let early = due.map(|due| due.saturating_sub(now));
        if let (Some(early @ 0..=WATCH_NS), true) = (early, self.watch >= WATCH_NS) {
            self.watching = Some((now, now + early));
            return Rest::Watch;
        }
        self.wakes = self.wakes.saturating_sub(WAKE_NS);
        let margin = if self.watch >= WATCH_NS { WATCH_NS } else { 0 };
        Rest::Sleep(early.map(|early| early.saturating_sub(margin)))
    }

    /// A packet came, or was delivered.
    pub(crate) fn count(&mut self) {
        if let Some(window) = &mut self.napping {
            window.packets += 1;
        }
    }

    fn settle(&mut self, now: u64) {
        if let Some((from, until)) = self.watching.take() {
            self.watch = self.watch.saturating_sub(until.min(now) - from);
        }
        let passed = now.saturating_sub(self.since);
        self.watch = (self.watch + passed / WATCH_SHARE).min(MOST_WATCH_NS);
        self.wakes = (self.wakes + passed).min(MOST_WAKES_NS);
        self.since = now;
    }

    fn is_napping(&mut self, now: u64) -> bool {
        match &self.napping {
            None if self.wakes >= WAKE_NS => return false,
            Some(window) if now < window.ends => return true,
            Some(window) if window.packets < FEW_PACKETS => {
                self.napping = None;
                self.wakes = MOST_WAKES_NS;
                return false;
            }
            None | Some(_) => {}
        }
        self.napping = Some(Window {
            ends: now + WINDOW_NS,
            packets: 0,
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_rare_packet_is_watched_for() {
        let mut pace = Pace::default();
        assert_eq!(
            pace.rest(SECOND, Some(SECOND + 3 * WATCH_NS)),
            Rest::Sleep(Some(2 * WATCH_NS))
        );
        assert_eq!(pace.rest(SECOND, Some(SECOND + WATCH_NS)), Rest::Watch);
        assert_eq!(pace.rest(SECOND, None), Rest::Sleep(None));
    }

    #[test]
    fn a_full_link_is_napped_through_until_it_is_quiet() {
        let mut pace = Pace::default();
        let mut now = SECOND;
        let mut naps = 0;
        for _ in 0..20_000 {
            now += 50_000;
            pace.count();
            naps += u64::from(matches!(pace.rest(now, Some(now + 50_000)), Rest::Nap(_)));
        }
        assert!(naps > 15_000, "{naps} naps among 20000 packets");
        now += WINDOW_NS;
        pace.rest(now, None);
        now += WINDOW_NS;
        assert!(!matches!(pace.rest(now, None), Rest::Nap(_)));
    }
}
