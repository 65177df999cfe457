//! Middleboxes that interfere with first flights: what they do to SYNs with Fast Open, to a `ClientHello` and to
//! datagrams, and on which paths they stand.
//!
//! The seed and the origin's number alone decide whether a middlebox stands on the path to an origin. The order of
//! the calls has no influence. An origin behind one at a small share is also behind one at any larger share. Not
//! modelled: middleboxes that learn, or that treat segments after the handshake.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::{Action, Direction, Header, Nanos, Protocol, Purpose};

/// A middlebox. As JSON: `{"kind": "strip-option", "share": 0.3}`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Middlebox {
    /// What it does.
    pub kind: MiddleboxKind,
    /// The probability that it stands on the path to an origin, above 0 and up to 1.
    #[serde(default = "everywhere")]
    pub share: f64,
}

/// What a middlebox does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MiddleboxKind {
    /// Drops SYNs with data.
    DropData,
    /// Drops SYNs with the Fast Open option, cookie requests included.
    DropOption,
    /// Removes the option from SYNs, and leaves their data.
    StripOption,
    /// Removes the data from SYNs, and leaves the option.
    StripData,
    /// Answers SYNs with data by a reset.
    Reset,
    /// Drops everything that follows a SYN-ACK that acknowledges SYN data, in both directions.
    BlackHole,
    /// Sends every SYN twice.
    DuplicateSyn,
    /// Drops UDP datagrams, as firewalls do that do not know QUIC.
    DropUdp,
    /// Drops datagrams in IP packets of more than 1,280 bytes, as a tunnel does that does not fragment.
    DropLargeUdp,
    /// Polices UDP to 1 Mbit/s with a burst of 32 KiB, and drops the rest.
    LimitUdp,
    /// Drops a `ClientHello` that announces early data, and the data that follows it.
    DropEarlyData,
    /// Drops the first segment of a `ClientHello` that takes two segments.
    DropCutHello,
}

/// Bytes of UDP payload in an IP packet of 1,280 bytes, which every IPv6 link carries (RFC 8200, section 5).
const LARGEST_DATAGRAM: u32 = 1_280 - 40 - 8;
/// Rate of UDP payload, bit/s, for each direction and origin.
const UDP_RATE: u64 = 1_000_000;
/// Burst of UDP payload, bytes.
const UDP_BURST: u64 = 32 * 1024;

/// A token bucket.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    /// Tokens left, in bits times 10^9 per second, and the time of the last update.
    left: u128,
    at: Nanos,
}

impl Allowance {
    const FULL: u128 = UDP_BURST as u128 * 8 * 1_000_000_000;

    /// Whether `bytes` may pass at `now`.
    fn take(&mut self, now: Nanos, bytes: u32) -> bool {
        let gained = u128::from(now.saturating_sub(self.at)) * u128::from(UDP_RATE);
        (self.left, self.at) = (Self::FULL.min(self.left + gained), now);
        let needed = u128::from(bytes) * 8 * 1_000_000_000;
        let passes = needed <= self.left;
        self.left -= if passes { needed } else { 0 };
        passes
    }
}

/// A middlebox and its state.
#[derive(Debug)]
pub(crate) struct Guard {
    middlebox: Middlebox,
    seed: u64,
    /// Connections whose packets are all dropped from now on.
    swallowed: HashSet<u32>,
    /// Token buckets for datagrams, by direction and origin.
    allowances: HashMap<(Direction, usize), Allowance>,
}

impl Guard {
    /// A middlebox that has seen no packet yet.
    pub(crate) fn new(middlebox: Middlebox, seed: u64) -> Self {
        Self {
            middlebox,
            seed,
            swallowed: HashSet::new(),
            allowances: HashMap::new(),
        }
    }

    /// The action for a packet at `now`.
    pub(crate) fn meet(&mut self, now: Nanos, header: &Header) -> Option<Action> {
        if !self.stands_before(header.origin) {
            return None;
        }
        let is_syn = header.flags.syn && !header.flags.ack;
        let has_syn_data = is_syn && header.payload_bytes > 0;
        let has_option = is_syn && header.fast_open;
        let is_udp = header.protocol == Protocol::Udp;
        match self.middlebox.kind {
            MiddleboxKind::DropData => has_syn_data.then_some(Action::Drop),
            MiddleboxKind::DropOption => has_option.then_some(Action::Drop),
            MiddleboxKind::StripOption => has_option.then_some(Action::StripOption),
            MiddleboxKind::StripData => has_syn_data.then_some(Action::StripData),
            MiddleboxKind::Reset => has_syn_data.then_some(Action::Reset),
            MiddleboxKind::DuplicateSyn => is_syn.then_some(Action::Duplicate),
            MiddleboxKind::BlackHole => self.swallow(header),
            MiddleboxKind::DropUdp => is_udp.then_some(Action::Drop),
            MiddleboxKind::DropLargeUdp => {
                (is_udp && header.payload_bytes > LARGEST_DATAGRAM).then_some(Action::Drop)
            }
            MiddleboxKind::LimitUdp => (is_udp && !self.allows(now, header)).then_some(Action::Drop),
            MiddleboxKind::DropEarlyData => header.hello.offers_early_data.then_some(Action::Drop),
            MiddleboxKind::DropCutHello => header.hello.is_cut.then_some(Action::Drop),
        }
    }

    fn stands_before(&self, origin: usize) -> bool {
        Purpose::Middlebox.falls_on(origin, self.middlebox.share, self.seed)
    }

    fn allows(&mut self, now: Nanos, header: &Header) -> bool {
        let full = Allowance {
            left: Allowance::FULL,
            at: now,
        };
        let allowance = self.allowances.entry((header.direction, header.origin));
        allowance.or_insert(full).take(now, header.payload_bytes)
    }

    fn swallow(&mut self, header: &Header) -> Option<Action> {
        if header.takes_syn_data && self.swallowed.insert(header.connection) {
            return None;
        }
        let is_swallowed = self.swallowed.contains(&header.connection);
        is_swallowed.then_some(Action::Drop)
    }
}

fn everywhere() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hello, TcpFlags};

    fn guard(kind: MiddleboxKind, share: f64, seed: u64) -> Guard {
        Guard::new(Middlebox { kind, share }, seed)
    }

    fn syn(fast_open: bool, payload_bytes: u32) -> Header {
        Header {
            protocol: Protocol::Tcp,
            direction: Direction::Up,
            origin: 0,
            connection: 0,
            flags: TcpFlags {
                syn: true,
                ..TcpFlags::default()
            },
            payload_bytes,
            fast_open,
            takes_syn_data: false,
            hello: Hello::default(),
        }
    }

    fn syn_ack(takes_syn_data: bool) -> Header {
        let flags = TcpFlags {
            syn: true,
            ack: true,
            ..TcpFlags::default()
        };
        Header {
            direction: Direction::Down,
            flags,
            takes_syn_data,
            ..syn(true, 0)
        }
    }

    #[test]
    fn each_kind_acts_on_the_segments_that_it_is_for() {
        let segments = [syn(false, 0), syn(true, 0), syn(true, 300), syn_ack(true)];
        let drop = Some(Action::Drop);
        let strip = Some(Action::StripOption);
        let duplicate = Some(Action::Duplicate);
        for (kind, expected) in [
            (MiddleboxKind::DropData, [None, None, drop, None]),
            (MiddleboxKind::DropOption, [None, drop, drop, None]),
            (MiddleboxKind::StripOption, [None, strip, strip, None]),
            (
                MiddleboxKind::StripData,
                [None, None, Some(Action::StripData), None],
            ),
            (MiddleboxKind::Reset, [None, None, Some(Action::Reset), None]),
            (
                MiddleboxKind::DuplicateSyn,
                [duplicate, duplicate, duplicate, None],
            ),
            (MiddleboxKind::BlackHole, [None; 4]),
            (MiddleboxKind::DropUdp, [None; 4]),
        ] {
            let mut guard = guard(kind, 1.0, 1);
            assert_eq!(
                segments.map(|segment| guard.meet(0, &segment)),
                expected,
                "{kind:?}"
            );
        }
    }

    #[test]
    fn datagrams_are_dropped_by_what_drops_udp_and_by_nothing_else() {
        let datagram = Header {
            protocol: Protocol::Udp,
            flags: TcpFlags::default(),
            ..syn(false, 1_200)
        };
        for (kind, action) in [
            (MiddleboxKind::DropUdp, Some(Action::Drop)),
            (MiddleboxKind::DropData, None),
            (MiddleboxKind::DuplicateSyn, None),
        ] {
            assert_eq!(guard(kind, 1.0, 1).meet(0, &datagram), action, "{kind:?}");
        }
    }

    #[test]
    fn large_datagrams_are_dropped_and_others_pass() {
        let mut guard = guard(MiddleboxKind::DropLargeUdp, 1.0, 1);
        for (bytes, action) in [
            (LARGEST_DATAGRAM, None),
            (LARGEST_DATAGRAM + 1, Some(Action::Drop)),
        ] {
            let datagram = Header::of_datagram(Direction::Up, 0, 0, bytes);
            assert_eq!(guard.meet(0, &datagram), action, "{bytes}");
        }
    }

    #[test]
    fn a_limited_rate_lets_a_burst_pass_and_then_as_many_bytes_as_time_allows() {
        let mut guard = guard(MiddleboxKind::LimitUdp, 1.0, 1);
        let mut passed = |now: Nanos, origin| {
            let datagram = Header::of_datagram(Direction::Down, origin, 0, 1_024);
            (0..100)
                .take_while(|_| guard.meet(now, &datagram).is_none())
                .count() as u64
        };
        assert_eq!(passed(0, 0), UDP_BURST / 1_024);
        assert_eq!(passed(0, 0), 0);
        assert_eq!(passed(1_000_000, 1), UDP_BURST / 1_024);
        assert_eq!(passed(100_000_000, 0), UDP_RATE / 10 / 8 / 1_024);
    }

    #[test]
    fn a_hello_is_dropped_where_it_announces_early_data_or_is_cut() {
        let (cut, early) = (
            Hello {
                is_cut: true,
                ..Hello::default()
            },
            Hello {
                offers_early_data: true,
                ..Hello::default()
            },
        );
        for (kind, expected) in [
            (MiddleboxKind::DropEarlyData, [None, None, Some(Action::Drop)]),
            (MiddleboxKind::DropCutHello, [None, Some(Action::Drop), None]),
        ] {
            let mut guard = guard(kind, 1.0, 1);
            let segments = [Hello::default(), cut, early].map(|hello| Header {
                hello,
                ..syn(false, 300)
            });
            assert_eq!(
                segments.map(|segment| guard.meet(0, &segment)),
                expected,
                "{kind:?}"
            );
        }
    }

    #[test]
    fn a_black_hole_swallows_what_follows_data_that_was_taken() {
        let mut guard = guard(MiddleboxKind::BlackHole, 1.0, 1);
        let other = Header {
            connection: 1,
            ..syn_ack(false)
        };
        let segments = [syn(true, 300), syn_ack(true), syn_ack(true), syn(false, 0), other];
        let expected = [None, None, Some(Action::Drop), Some(Action::Drop), None];
        assert_eq!(segments.map(|segment| guard.meet(0, &segment)), expected);
    }
}
