//! A TCP segment that a script writes or reads, with every field that a check sets or judges.

use std::fmt;
use std::net::SocketAddr;

use etherparse::TcpHeader;

use crate::packet::{IpHeader, TcpFlags, TcpOption, assemble, options, padded, parse};

const TTL: u8 = 64;
const WINDOW: u16 = u16::MAX;

/// The kind of a segment, by its flags and whether it carries data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Syn,
    SynAck,
    Ack,
    Data,
    Fin,
    Rst,
}

impl fmt::Display for Kind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Syn => "SYN",
            Self::SynAck => "SYN-ACK",
            Self::Ack => "ACK",
            Self::Data => "data",
            Self::Fin => "FIN",
            Self::Rst => "RST",
        })
    }
}

/// A segment, without the fields that no check looks at (window, urgent pointer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) sequence: u32,
    pub(super) acknowledgment: u32,
    pub(super) flags: TcpFlags,
    pub(super) options: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

impl Packet {
    /// A SYN; `options` and data may be anything.
    pub(super) fn syn(
        source: SocketAddr,
        destination: SocketAddr,
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

    /// The next segment of this one's receiver, with sequence number `sequence` and acknowledgment number
    /// `acknowledged`.
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

    /// The sequence number that follows it.
    pub(super) fn end(&self) -> u32 {
        let length = self.payload.len() as u32 + u32::from(self.flags.syn) + u32::from(self.flags.fin);
        self.sequence.wrapping_add(length)
    }

    /// Bytes of `syn`'s data that this SYN-ACK acknowledges; `None` if it does not acknowledge the SYN itself.
    pub(super) fn takes_of(&self, syn: &Self) -> Option<u32> {
        let taken = self.acknowledgment.wrapping_sub(syn.sequence.wrapping_add(1));
        (self.flags.syn && self.flags.ack && taken <= syn.payload.len() as u32).then_some(taken)
    }

    /// The cookie in its Fast Open option; `Some`, but empty, for a cookie request.
    pub(super) fn cookie(&self) -> Option<&[u8]> {
        self.options().find_map(|option| option.cookie())
    }

    /// The same for the experimental option.
    pub(super) fn experimental_cookie(&self) -> Option<&[u8]> {
        self.options().find_map(|option| option.experimental_cookie())
    }

    fn options(&self) -> impl Iterator<Item = TcpOption<'_>> {
        options(&self.options)
    }

    /// Parses an IP packet; `None` if it carries no TCP.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (ip, tcp, payload) = parse(bytes)?;
        Some(Self {
            source: SocketAddr::new(ip.source(), tcp.source_port),
            destination: SocketAddr::new(ip.destination(), tcp.destination_port),
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

    /// The IP packet, checksums included; `None` if the options do not fit.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        let mut tcp = TcpHeader::new(self.source.port(), self.destination.port(), self.sequence, WINDOW);
        tcp.acknowledgment_number = self.acknowledgment;
        let TcpFlags { syn, ack, fin, rst } = self.flags;
        (tcp.syn, tcp.ack, tcp.fin, tcp.rst) = (syn, ack, fin, rst);
        tcp.psh = !self.payload.is_empty();
        tcp.set_options_raw(&padded(self.options.clone())).ok()?;
        let mut ip = IpHeader::between(self.source.ip(), self.destination.ip(), TTL)?;
        if let IpHeader::V4(ip) = &mut ip {
            ip.dont_fragment = true;
        }
        assemble(ip, tcp, &self.payload)
    }

    /// Its kind.
    pub(super) fn kind(&self) -> Kind {
        match self.flags {
            TcpFlags { rst: true, .. } => Kind::Rst,
            TcpFlags {
                syn: true, ack: true, ..
            } => Kind::SynAck,
            TcpFlags { syn: true, .. } => Kind::Syn,
            TcpFlags { fin: true, .. } => Kind::Fin,
            _ if self.payload.is_empty() => Kind::Ack,
            _ => Kind::Data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Block;
    use crate::packet::tests::VERSIONS;
    use crate::packet::{experimental_fast_open, fast_open, mss};
    use firstflight_path::IpVersion;

    fn syn(options: &[u8]) -> Packet {
        syn_over(IpVersion::V4, options)
    }

    fn syn_over(ip: IpVersion, options: &[u8]) -> Packet {
        let at = |port| SocketAddr::new(Block::of(ip).client, port);
        Packet::syn(at(40_000), at(80), 5, options, b"GET /")
    }

    #[test]
    fn what_is_written_is_read_again() {
        for ip in VERSIONS {
            for options in [vec![], padded([mss(1_460), fast_open(&[1; 8])].concat())] {
                let packet = syn_over(ip, &options);
                assert_eq!(Packet::parse(&packet.bytes().unwrap()), Some(packet));
            }
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
