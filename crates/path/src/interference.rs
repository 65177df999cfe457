//! Interference: rules that select single segments, and say what happens to them.
//!
//! A rule looks at a TCP header when the segment enters the path, before any link. The path returns the action; the
//! caller that holds the segment carries it out. Not modelled: sequence numbers and options. A retransmission
//! counts as a further segment of its kind.

use serde::{Deserialize, Serialize};

use crate::{Direction, Protocol};

/// One rule. As JSON: `{"direction": "down", "kind": "data", "nth": 2, "action": "drop"}` drops the second segment with
/// data on its way to the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The direction of the segment; `None` for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The kind of segment; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Whether the segment carries data; `None` for either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<bool>,
    /// The origin's index, as in [`Network::send`](crate::Network::send); `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<usize>,
    /// The connection's number, counted from 0 in the order of first packets; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
    /// The first matching segment to act on, counted from 1.
    #[serde(default = "one")]
    pub nth: u32,
    /// How many successive matching segments to act on.
    #[serde(default = "one")]
    pub count: u32,
    /// What to do with the segment.
    pub action: Action,
}

/// A kind of segment. A segment can be of several kinds: data with a FIN is `data` and `fin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The first segment of a connection.
    Syn,
    /// The answer to a SYN.
    SynAck,
    /// Data outside a SYN.
    Data,
    /// A pure acknowledgment.
    Ack,
    /// The end of one side's data.
    Fin,
    /// A reset.
    Rst,
}

/// What is done to a segment. A rule can only drop it; the other actions are those of middleboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It never reaches a link.
    Drop,
    /// Its Fast Open option is overwritten.
    #[serde(skip_deserializing)]
    StripOption,
    /// Its data is cut off.
    #[serde(skip_deserializing)]
    StripData,
    /// It is dropped, and its sender gets a reset.
    #[serde(skip_deserializing)]
    Reset,
    /// It is sent twice.
    #[serde(skip_deserializing)]
    Duplicate,
}

/// The TCP flags that rules and middleboxes use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are four bits of a header")]
pub struct TcpFlags {
    /// SYN.
    pub syn: bool,
    /// ACK.
    pub ack: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
}

/// The fields of a segment or datagram that rules and middleboxes look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Its transport protocol. A UDP datagram has no flags.
    pub protocol: Protocol,
    /// Its direction.
    pub direction: Direction,
    /// The origin's index.
    pub origin: usize,
    /// The connection's number, in the order of first packets.
    pub connection: u32,
    /// Flags.
    pub flags: TcpFlags,
    /// Payload, bytes.
    pub payload_bytes: u32,
    /// Whether it has the Fast Open option.
    pub fast_open: bool,
    /// Whether it is a SYN-ACK that acknowledges the SYN's data.
    pub takes_syn_data: bool,
    /// The parts of a TLS `ClientHello` in it.
    pub hello: Hello,
}

/// The parts of a TLS `ClientHello` in a client's segment (RFC 8446, section 4.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hello {
    /// Whether it begins a `ClientHello` that goes on in the next segment.
    pub is_cut: bool,
    /// Whether it ends a `ClientHello` that announces early data, or follows one before the server has answered.
    pub offers_early_data: bool,
}

impl Header {
    /// The header of a UDP datagram.
    #[must_use]
    pub fn of_datagram(direction: Direction, origin: usize, connection: u32, payload_bytes: u32) -> Self {
        Self {
            protocol: Protocol::Udp,
            direction,
            origin,
            connection,
            flags: TcpFlags::default(),
            payload_bytes,
            fast_open: false,
            takes_syn_data: false,
            hello: Hello::default(),
        }
    }
}

/// The rules, with their counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interference {
    /// Each rule with the number of segments it has matched.
    rules: Vec<(Rule, u32)>,
}

impl Interference {
    /// The rules, before any segment.
    pub(crate) fn new(rules: &[Rule]) -> Self {
        Self {
            rules: rules.iter().map(|rule| (rule.clone(), 0)).collect(),
        }
    }

    /// The action for a segment, from the first rule that applies. Every rule that matches counts the segment.
    pub(crate) fn meet(&mut self, header: &Header) -> Option<Action> {
        let mut action = None;
        for (rule, fitted) in &mut self.rules {
            if rule.fits(header) {
                *fitted += 1;
                let acts = (rule.nth..rule.nth.saturating_add(rule.count)).contains(fitted);
                action = action.or(acts.then_some(rule.action));
            }
        }
        action
    }
}

impl Rule {
    fn fits(&self, header: &Header) -> bool {
        self.direction
            .is_none_or(|direction| direction == header.direction)
            && self.kind.is_none_or(|kind| kind.fits(header))
            && self.data.is_none_or(|data| data == (header.payload_bytes > 0))
            && self.origin.is_none_or(|origin| origin == header.origin)
            && self.connection.is_none_or(|number| number == header.connection)
    }
}

impl Kind {
    fn fits(self, header: &Header) -> bool {
        let TcpFlags { syn, ack, fin, rst } = header.flags;
        let has_data = header.payload_bytes > 0;
        match self {
            Self::Syn => syn && !ack,
            Self::SynAck => syn && ack,
            Self::Data => !syn && has_data,
            Self::Ack => ack && !syn && !fin && !rst && !has_data,
            Self::Fin => fin,
            Self::Rst => rst,
        }
    }
}

fn one() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Rule = Rule {
        direction: None,
        kind: None,
        data: None,
        origin: None,
        connection: None,
        nth: 1,
        count: 1,
        action: Action::Drop,
    };

    fn kind(kind: Kind) -> Rule {
        Rule {
            kind: Some(kind),
            ..ANY
        }
    }

    fn header(direction: Direction, flags: &str, payload_bytes: u32) -> Header {
        Header {
            protocol: Protocol::Tcp,
            direction,
            origin: 0,
            connection: 0,
            flags: TcpFlags {
                syn: flags.contains('S'),
                ack: flags.contains('.'),
                fin: flags.contains('F'),
                rst: flags.contains('R'),
            },
            payload_bytes,
            fast_open: false,
            takes_syn_data: false,
            hello: Hello::default(),
        }
    }

    /// Which of these segments are dropped.
    fn dropped(rules: &[Rule], headers: &[Header]) -> Vec<bool> {
        let mut interference = Interference::new(rules);
        let met = headers.iter().map(|header| interference.meet(header));
        met.map(|action| action == Some(Action::Drop)).collect()
    }

    #[test]
    fn a_segment_is_what_its_flags_and_its_data_say() {
        let up = |flags, bytes| header(Direction::Up, flags, bytes);
        let what = [
            (up("S", 300), Kind::Syn),
            (up("S.", 0), Kind::SynAck),
            (up(".", 1), Kind::Data),
            (up(".", 0), Kind::Ack),
            (up("F.", 0), Kind::Fin),
            (up("R", 0), Kind::Rst),
        ];
        let headers = what.map(|(header, _)| header);
        for (number, (_, its_kind)) in what.into_iter().enumerate() {
            let expected: Vec<_> = (0..what.len()).map(|other| other == number).collect();
            assert_eq!(dropped(&[kind(its_kind)], &headers), expected, "{its_kind:?}");
        }
    }

    #[test]
    fn data_with_a_fin_is_both() {
        for its_kind in [Kind::Data, Kind::Fin] {
            let last = header(Direction::Down, "F.", 100);
            assert_eq!(dropped(&[kind(its_kind)], &[last]), [true]);
        }
    }

    #[test]
    fn so_many_are_taken_from_the_nth_on() {
        let rule = Rule {
            nth: 2,
            count: 2,
            ..kind(Kind::Data)
        };
        let data = header(Direction::Up, ".", 100);
        assert_eq!(dropped(&[rule], &[data; 5]), [false, true, true, false, false]);
    }

    #[test]
    fn what_does_not_fit_is_neither_taken_nor_counted() {
        let rule = Rule {
            direction: Some(Direction::Up),
            data: Some(true),
            origin: Some(1),
            connection: Some(2),
            ..kind(Kind::Syn)
        };
        let fits = Header {
            origin: 1,
            connection: 2,
            ..header(Direction::Up, "S", 300)
        };
        let direction = Direction::Down;
        let headers = [
            Header { direction, ..fits },
            Header {
                payload_bytes: 0,
                ..fits
            },
            Header { origin: 0, ..fits },
            Header {
                connection: 1,
                ..fits
            },
            Header {
                flags: TcpFlags::default(),
                ..fits
            },
            fits,
            fits,
        ];
        let expected = [false, false, false, false, false, true, false];
        assert_eq!(dropped(&[rule], &headers), expected);
    }

    #[test]
    fn every_rule_counts_for_itself() {
        let second = Rule { nth: 2, ..ANY };
        let headers =
            [("S", 0), (".", 100), (".", 100)].map(|(flags, bytes)| header(Direction::Up, flags, bytes));
        let expected = [true, true, false];
        assert_eq!(dropped(&[kind(Kind::Syn), second], &headers), expected);
    }
}
