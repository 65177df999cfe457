//! When the relay looks for packets, and how it rests in between.
//!
//! Waking up from sleep takes a few microseconds, sometimes many. Waking early and *watching* the clock
//! until a packet is due hides that. A page's few hundred packets a second can afford it, a full link cannot:
//! watching is paid from an allowance, and past some thousand wake-ups a second the relay *naps*: it looks
//! every 0.15 ms and handles what has come and what is due together. Departures still follow from the path's
//! state, so a nap delays packets by no more than itself and a link's rate by nothing.

/// How close before a departure the relay wakes to watch the clock, ns.
const WATCH_NS: u64 = 20_000;
/// The relay may spend one part in this many of its time on watching.
const WATCH_SHARE: u64 = 50;
/// Watching that can be saved up, ns.
const MOST_WATCH_NS: u64 = 2_000_000;
/// A wake-up is earned in this time, ns: 5,000 a second.
const WAKE_NS: u64 = 200_000;
/// Wake-ups that can be saved up, in the time that earns them, ns: one thousand.
const MOST_WAKES_NS: u64 = 1_000 * WAKE_NS;
/// How long a nap is, ns.
const NAP_NS: u64 = 150_000;
/// Whether it is quiet enough to end napping is asked this often, ns.
const WINDOW_NS: u64 = 10_000_000;
/// Packets in and out within a window that are few.
const FEW_PACKETS: u64 = 50;

/// How the relay rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Not at all: a packet is due in a moment.
    Watch,
    /// Until a packet comes, or at most so long, ns.
    Sleep(Option<u64>),
    /// So long, ns, whatever comes.
    Nap(u64),
}

/// The allowances.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    watch: u64,
    wakes: u64,
    /// When both last grew.
    since: u64,
    /// What is being watched away: from when, until a packet is due.
    watching: Option<(u64, u64)>,
    napping: Option<Window>,
}

#[derive(Debug)]
struct Window {
    ends: u64,
    packets: u64,
}

impl Pace {
    /// How to rest at `now` when the next packet is due at `due`, both ns.
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
