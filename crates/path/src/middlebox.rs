//! Middleboxes that get in the way of first flights: what they do to SYNs with Fast Open and to datagrams, and on which
//! paths they stand.
//!
//! Whether one stands on the path to an origin is drawn from the seed and the origin's number alone: the
//! answer is the same whatever the order of the questions. An origin that is behind one at a small share is behind
//! one at any larger share. Not modelled: middleboxes that learn, or that treat segments after the handshake.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{Action, Header, Protocol, Purpose};

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
    /// Drops SYNs with Fast Open's option, requests for a cookie among them.
    DropOption,
    /// Takes the option out of SYNs, and leaves their data.
    StripOption,
    /// Takes the data out of SYNs, and leaves the option.
    StripData,
    /// Answers SYNs with data by a reset.
    Reset,
    /// Drops all that follows a SYN-ACK that has taken data, both ways.
    BlackHole,
    /// Sends every SYN twice.
    DuplicateSyn,
    /// Drops datagrams of UDP, as many firewalls do that know no QUIC.
    DropUdp,
}

/// A middlebox at work.
#[derive(Debug)]
pub(crate) struct Guard {
    middlebox: Middlebox,
    seed: u64,
    /// Connections of which nothing passes any more.
    swallowed: HashSet<u32>,
}

impl Guard {
    /// One that has seen nothing yet.
    pub(crate) fn new(middlebox: Middlebox, seed: u64) -> Self {
        Self {
            middlebox,
            seed,
            swallowed: HashSet::new(),
        }
    }

    /// What is done to a segment.
    pub(crate) fn meet(&mut self, header: &Header) -> Option<Action> {
        if !self.stands_before(header.origin) {
            return None;
        }
        let is_syn = header.flags.syn && !header.flags.ack;
        let has_syn_data = is_syn && header.payload_bytes > 0;
        let has_option = is_syn && header.fast_open;
        match self.middlebox.kind {
            MiddleboxKind::DropData => has_syn_data.then_some(Action::Drop),
            MiddleboxKind::DropOption => has_option.then_some(Action::Drop),
            MiddleboxKind::StripOption => has_option.then_some(Action::StripOption),
            MiddleboxKind::StripData => has_syn_data.then_some(Action::StripData),
            MiddleboxKind::Reset => has_syn_data.then_some(Action::Reset),
            MiddleboxKind::DuplicateSyn => is_syn.then_some(Action::Duplicate),
            MiddleboxKind::BlackHole => self.swallow(header),
            MiddleboxKind::DropUdp => (header.protocol == Protocol::Udp).then_some(Action::Drop),
        }
    }

    fn stands_before(&self, origin: usize) -> bool {
        Purpose::Middlebox.falls_on(origin, self.middlebox.share, self.seed)
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
    use crate::{Direction, TcpFlags};

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
            assert_eq!(segments.map(|segment| guard.meet(&segment)), expected, "{kind:?}");
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
            assert_eq!(guard(kind, 1.0, 1).meet(&datagram), action, "{kind:?}");
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
        assert_eq!(segments.map(|segment| guard.meet(&segment)), expected);
    }
}
