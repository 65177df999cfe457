//! Middleboxes that get in Fast Open's way: what they do to its SYNs, and on which paths they stand.
//!
//! Whether one stands on the path to an origin is drawn from the seed and the origin's number alone: the
//! answer is the same whatever the order of the questions. An origin that is behind one at a small share is behind
//! one at any larger share. Not modelled: middleboxes that learn, or that treat segments after the handshake.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{Action, Header, Purpose};

/// A middlebox. As JSON: `{"habit": "strip-option", "share": 0.3}`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Middlebox {
    /// What it does.
    pub habit: Habit,
    /// The probability that it stands on the path to an origin, above 0 and up to 1.
    #[serde(default = "everywhere")]
    pub share: f64,
}

/// What a middlebox does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Habit {
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
        match self.middlebox.habit {
            Habit::DropData => has_syn_data.then_some(Action::Drop),
            Habit::DropOption => has_option.then_some(Action::Drop),
            Habit::StripOption => has_option.then_some(Action::StripOption),
            Habit::StripData => has_syn_data.then_some(Action::StripData),
            Habit::Reset => has_syn_data.then_some(Action::Reset),
            Habit::DuplicateSyn => is_syn.then_some(Action::Duplicate),
            Habit::BlackHole => self.swallow(header),
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

    fn guard(habit: Habit, share: f64, seed: u64) -> Guard {
        Guard::new(Middlebox { habit, share }, seed)
    }

    fn syn(fast_open: bool, payload_bytes: u32) -> Header {
        Header {
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
    fn each_habit_meets_the_segments_that_it_is_for() {
        let segments = [syn(false, 0), syn(true, 0), syn(true, 300), syn_ack(true)];
        let drop = Some(Action::Drop);
        let strip = Some(Action::StripOption);
        let duplicate = Some(Action::Duplicate);
        for (habit, expected) in [
            (Habit::DropData, [None, None, drop, None]),
            (Habit::DropOption, [None, drop, drop, None]),
            (Habit::StripOption, [None, strip, strip, None]),
            (Habit::StripData, [None, None, Some(Action::StripData), None]),
            (Habit::Reset, [None, None, Some(Action::Reset), None]),
            (Habit::DuplicateSyn, [duplicate, duplicate, duplicate, None]),
            (Habit::BlackHole, [None; 4]),
        ] {
            let mut guard = guard(habit, 1.0, 1);
            assert_eq!(
                segments.map(|segment| guard.meet(&segment)),
                expected,
                "{habit:?}"
            );
        }
    }

    #[test]
    fn a_black_hole_swallows_what_follows_data_that_was_taken() {
        let mut guard = guard(Habit::BlackHole, 1.0, 1);
        let other = Header {
            connection: 1,
            ..syn_ack(false)
        };
        let segments = [syn(true, 300), syn_ack(true), syn_ack(true), syn(false, 0), other];
        let expected = [None, None, Some(Action::Drop), Some(Action::Drop), None];
        assert_eq!(segments.map(|segment| guard.meet(&segment)), expected);
    }
}
