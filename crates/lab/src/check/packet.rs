//! A TCP segment as a script writes and reads it: every field that a check sets or judges.

use std::net::SocketAddrV4;

use etherparse::{IpNumber, Ipv4Header, TcpHeader};

use crate::relay::{
    self, EXPERIMENT_FAST_OPEN, OPTION_END, OPTION_EXPERIMENT, OPTION_FAST_OPEN, OPTION_NOTHING, TcpFlags,
};

const MAXIMUM_SEGMENT_SIZE: u8 = 2;

const TTL: u8 = 64;
const WINDOW: u16 = u16::MAX;

/// A segment, without what no check looks at (window, urgent pointer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) source: SocketAddrV4,
    pub(super) destination: SocketAddrV4,
    pub(super) sequence: u32,
    pub(super) acknowledgment: u32,
    pub(super) flags: TcpFlags,
    pub(super) options: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

impl Packet {
    /// A SYN; `options` and data may be anything.
    pub(super) fn syn(
        source: SocketAddrV4,
        destination: SocketAddrV4,
        sequence: u32,
        options: &[u8],
        payload: &[u8],
    ) -> Self {
        let flags = TcpFlags {
            syn: true,
            ..TcpFlags::default()
        };
        Self {
            source,
            destination,
            sequence,
            acknowledgment: 0,
            flags,
            options: options.to_vec(),
            payload: payload.to_vec(),
        }
    }

    /// What the receiver of this one would say next: from its end, with an acknowledgment of `acknowledged`.
    pub(super) fn reply(&self, sequence: u32, acknowledged: u32) -> Self {
        let flags = TcpFlags {
            ack: true,
            ..TcpFlags::default()
        };
        Self {
            source: self.destination,
            destination: self.source,
            sequence,
            acknowledgment: acknowledged,
            flags,
            options: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// The sequence number after it.
    pub(super) fn end(&self) -> u32 {
        let length = self.payload.len() as u32 + u32::from(self.flags.syn) + u32::from(self.flags.fin);
        self.sequence.wrapping_add(length)
    }

    /// How many bytes of `syn`'s data this SYN-ACK acknowledges; `None` if it does not even the SYN.
    pub(super) fn takes_of(&self, syn: &Self) -> Option<u32> {
        let taken = self.acknowledgment.wrapping_sub(syn.sequence.wrapping_add(1));
        (self.flags.syn && self.flags.ack && taken <= syn.payload.len() as u32).then_some(taken)
    }

    /// The cookie in its Fast Open option, `Some` of an empty one where one is asked for.
    pub(super) fn cookie(&self) -> Option<&[u8]> {
        self.option(OPTION_FAST_OPEN)
    }

    /// The same of the experimental option.
    pub(super) fn experimental_cookie(&self) -> Option<&[u8]> {
        self.option(OPTION_EXPERIMENT)?
            .strip_prefix(&EXPERIMENT_FAST_OPEN)
    }

    fn option(&self, wanted: u8) -> Option<&[u8]> {
        let mut rest = self.options.as_slice();
        loop {
            match *rest {
                [OPTION_NOTHING, ref others @ ..] => rest = others,
                [OPTION_END, ..] | [] | [_] => return None,
                [kind, length, ..] => {
                    let end = usize::from(length.max(2)).min(rest.len());
                    if kind == wanted {
                        return Some(&rest[2..end]);
                    }
                    rest = &rest[end..];
                }
            }
        }
    }

    /// Reads an IPv4 packet; `None` if it carries no TCP.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (ip, tcp, payload) = relay::parse(bytes)?;
        Some(Self {
            source: SocketAddrV4::new(ip.source.into(), tcp.source_port),
            destination: SocketAddrV4::new(ip.destination.into(), tcp.destination_port),
            sequence: tcp.sequence_number,
            acknowledgment: tcp.acknowledgment_number,
            flags: TcpFlags {
                syn: tcp.syn,
                ack: tcp.ack,
                fin: tcp.fin,
                rst: tcp.rst,
            },
            options: tcp.options.as_slice().to_vec(),
            payload: payload.to_vec(),
        })
    }

    /// The IPv4 packet, checksums included; `None` if the options do not fit.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        let mut tcp = TcpHeader::new(self.source.port(), self.destination.port(), self.sequence, WINDOW);
        tcp.acknowledgment_number = self.acknowledgment;
        let TcpFlags { syn, ack, fin, rst } = self.flags;
        (tcp.syn, tcp.ack, tcp.fin, tcp.rst) = (syn, ack, fin, rst);
        tcp.psh = !self.payload.is_empty();
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4), OPTION_NOTHING);
        tcp.set_options_raw(&options).ok()?;
        let (source, destination) = (self.source.ip().octets(), self.destination.ip().octets());
        let mut ip = Ipv4Header::new(0, TTL, IpNumber::TCP, source, destination).ok()?;
        ip.dont_fragment = true;
        relay::assemble(ip, tcp, &self.payload)
    }

    /// What it is, in words.
    pub(super) fn name(&self) -> &'static str {
        match (self.flags, self.payload.is_empty()) {
            (TcpFlags { rst: true, .. }, _) => "RST",
            (
                TcpFlags {
                    syn: true, ack: true, ..
                },
                _,
            ) => "SYN-ACK",
            (TcpFlags { syn: true, .. }, _) => "SYN",
            (TcpFlags { fin: true, .. }, _) => "FIN",
            (_, true) => "ACK",
            (_, false) => "data",
        }
    }
}

/// Fast Open's option with a cookie; an empty one asks for one.
pub(super) fn fast_open(cookie: &[u8]) -> Vec<u8> {
    [&[OPTION_FAST_OPEN, cookie.len() as u8 + 2], cookie].concat()
}

/// The same as the experimental option.
pub(super) fn experimental_fast_open(cookie: &[u8]) -> Vec<u8> {
    [
        &[OPTION_EXPERIMENT, cookie.len() as u8 + 4],
        &EXPERIMENT_FAST_OPEN[..],
        cookie,
    ]
    .concat()
}

/// The option that announces a maximum segment size.
pub(super) fn mss(bytes: u16) -> Vec<u8> {
    [&[MAXIMUM_SEGMENT_SIZE, 4][..], &bytes.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn syn(options: &[u8]) -> Packet {
        let at = |port| SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, 1), port);
        Packet::syn(at(40_000), at(80), 5, options, b"GET /")
    }

    #[test]
    fn what_is_written_is_read_again() {
        for options in [
            vec![],
            [mss(1_460), fast_open(&[1; 8]), vec![OPTION_NOTHING; 2]].concat(),
        ] {
            let packet = syn(&options);
            assert_eq!(Packet::parse(&packet.bytes().unwrap()), Some(packet));
        }
    }

    #[test]
    fn options_are_told_apart() {
        let both = syn(&[mss(1_000), fast_open(&[]), experimental_fast_open(&[7; 4])].concat());
        assert_eq!(both.cookie(), Some(&[][..]));
        assert_eq!(both.experimental_cookie(), Some(&[7; 4][..]));
        assert_eq!(syn(&[]).cookie(), None);
    }

    #[test]
    fn a_syn_ack_takes_all_some_or_none_of_the_data() {
        let syn = syn(&[]);
        let answer = |taken: u32| {
            let mut answer = syn.reply(9, 6 + taken);
            answer.flags.syn = true;
            answer.takes_of(&syn)
        };
        assert_eq!([0, 3, 5, 6].map(answer), [Some(0), Some(3), Some(5), None]);
    }
}
