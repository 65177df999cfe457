//! IP packets: parsing and building, for the relay, the ledger, the checks and the floods.
//!
//! Left out: IPv6 extension headers. A packet with one counts as neither TCP nor UDP. The lab sends none, but a
//! program does whose datagrams need fragments.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use etherparse::{
    IpEcn, IpNumber, Ipv4Header, Ipv4HeaderSlice, Ipv6Header, Ipv6HeaderSlice, TcpHeader, TcpHeaderSlice,
    UdpHeaderSlice,
};
pub use firstflight_load::ledger::EcnBits;
use firstflight_load::ledger::{self, Cookie};
pub use firstflight_path::TcpFlags;
use firstflight_path::{Direction, Ecn};

use crate::ledger::ConnectionKey;

/// Kinds of TCP options: the end of the list and padding (RFC 9293, section 3.2), the maximum segment size, Fast
/// Open (RFC 7413, section 4.1.1), and the shared experimental option (RFC 6994).
const END: u8 = 0;
const PADDING: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SELECTIVE_ACKNOWLEDGMENTS: u8 = 5;
const FAST_OPEN: u8 = 34;
const EXPERIMENT: u8 = 254;
/// The identifier of Fast Open in the experimental option, as in Linux (`TCPOPT_FASTOPEN_MAGIC`).
const FAST_OPEN_EXPERIMENT: [u8; 2] = [0xf9, 0x89];

/// One TCP option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TcpOption<'a> {
    /// Its position among the options, bytes.
    pub(crate) span: Range<usize>,
    kind: u8,
    data: &'a [u8],
}

impl<'a> TcpOption<'a> {
    /// The cookie of a Fast Open option, empty for a cookie request; `None` for any other option.
    pub(crate) fn cookie(&self) -> Option<&'a [u8]> {
        (self.kind == FAST_OPEN).then_some(self.data)
    }

    /// The same for the experimental Fast Open option.
    pub(crate) fn experimental_cookie(&self) -> Option<&'a [u8]> {
        let experiment = (self.kind == EXPERIMENT).then_some(self.data)?;
        experiment.strip_prefix(&FAST_OPEN_EXPERIMENT)
    }

    /// The cookie of either option.
    pub(crate) fn any_cookie(&self) -> Option<&'a [u8]> {
        self.cookie().or_else(|| self.experimental_cookie())
    }
}

/// Iterates over TCP options without padding. Like Linux (`tcp_parse_options`) it stops at a truncated option.
pub(crate) fn options(bytes: &[u8]) -> impl Iterator<Item = TcpOption<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            match *bytes.get(at..)? {
                [PADDING, ..] => at += 1,
                [END, ..] | [] | [_] => return None,
                [kind, length, ..] => {
                    let span = at..at + usize::from(length);
                    let data = bytes.get(at + 2..span.end)?;
                    at = span.end;
                    return Some(TcpOption { span, kind, data });
                }
            }
        }
    })
}

/// The window scale shift, if the options have one (RFC 7323, section 2).
pub(crate) fn window_shift(bytes: &[u8]) -> Option<u8> {
    let scale = options(bytes).find(|option| option.kind == WINDOW_SCALE)?;
    scale.data.first().copied()
}

/// The SACK blocks in the options, in order (RFC 2018, section 3).
pub(crate) fn sacks(bytes: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    let blocks = options(bytes).find(|option| option.kind == SELECTIVE_ACKNOWLEDGMENTS);
    let blocks = blocks.map_or(&[][..], |option| option.data).chunks_exact(8);
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte))
    };
    blocks.map(move |block| (number(&block[..4]), number(&block[4..])))
}

/// A Fast Open option with a cookie; empty for a cookie request.
pub(crate) fn fast_open(cookie: &[u8]) -> Vec<u8> {
    [&[FAST_OPEN, cookie.len() as u8 + 2], cookie].concat()
}

/// The same as the experimental option.
pub(crate) fn experimental_fast_open(cookie: &[u8]) -> Vec<u8> {
    let head = [EXPERIMENT, cookie.len() as u8 + 4];
    [&head[..], &FAST_OPEN_EXPERIMENT, cookie].concat()
}

/// The option that announces a maximum segment size.
pub(crate) fn mss(bytes: u16) -> Vec<u8> {
    [&[MAXIMUM_SEGMENT_SIZE, 4][..], &bytes.to_be_bytes()].concat()
}

/// Options padded to a multiple of four bytes, as a TCP header needs.
pub(crate) fn padded(mut options: Vec<u8>) -> Vec<u8> {
    options.resize(options.len().next_multiple_of(4), PADDING);
    options
}

/// Overwrites the Fast Open options, the experimental one too, with padding. The length stays the same.
pub(crate) fn without_fast_open(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes.to_vec();
    for option in options(bytes).filter(|option| option.any_cookie().is_some()) {
        rest[option.span].fill(PADDING);
    }
    rest
}

/// The header of an IP packet.
#[derive(Debug, Clone)]
pub(crate) enum IpHeader {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

impl IpHeader {
    /// The header of a packet, and its payload.
    pub(crate) fn parse(packet: &[u8]) -> Option<(Self, &[u8])> {
        match packet.first()? >> 4 {
            4 => Ipv4Header::from_slice(packet)
                .ok()
                .map(|(ip, rest)| (Self::V4(ip), rest)),
            6 => Ipv6Header::from_slice(packet)
                .ok()
                .map(|(ip, rest)| (Self::V6(ip), rest)),
            _ => None,
        }
    }

    /// The header of a packet between these addresses; `None` if their versions differ.
    pub(crate) fn between(source: IpAddr, destination: IpAddr, ttl: u8) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let [source, destination] = [source, destination].map(|end| end.octets());
                let ip = Ipv4Header::new(0, ttl, IpNumber::TCP, source, destination);
                ip.ok().map(Self::V4)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => Some(Self::V6(Ipv6Header {
                next_header: IpNumber::TCP,
                hop_limit: ttl,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv6Header::default()
            })),
            _ => None,
        }
    }

    pub(crate) fn source(&self) -> IpAddr {
        match self {
            Self::V4(ip) => IpAddr::from(ip.source),
            Self::V6(ip) => IpAddr::from(ip.source),
        }
    }

    pub(crate) fn destination(&self) -> IpAddr {
        match self {
            Self::V4(ip) => IpAddr::from(ip.destination),
            Self::V6(ip) => IpAddr::from(ip.destination),
        }
    }

    /// Replaces the address `from` by `to`, as source or destination; `None` if neither is `from`.
    pub(crate) fn readdress(&mut self, from: IpAddr, to: IpAddr) -> Option<()> {
        match (self, from, to) {
            (Self::V4(ip), IpAddr::V4(from), IpAddr::V4(to)) => {
                replace([&mut ip.source, &mut ip.destination], &from.octets(), to.octets())
            }
            (Self::V6(ip), IpAddr::V6(from), IpAddr::V6(to)) => {
                replace([&mut ip.source, &mut ip.destination], &from.octets(), to.octets())
            }
            _ => None,
        }
    }

    /// Sets the ECN field to CE (RFC 3168).
    pub(crate) fn mark(&mut self) {
        match self {
            Self::V4(ip) => {
                ip.ecn = IpEcn::CongestionExperienced;
                ip.header_checksum = ip.calc_header_checksum();
            }
            Self::V6(ip) => ip.set_ecn(IpEcn::CongestionExperienced),
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::V4(ip) => ip.to_bytes().to_vec(),
            Self::V6(ip) => ip.to_bytes().to_vec(),
        }
    }
}

fn replace<T: PartialEq>(ends: [&mut T; 2], from: &T, to: T) -> Option<()> {
    let end = ends.into_iter().find(|end| **end == *from)?;
    *end = to;
    Some(())
}

/// Headers and data of a TCP packet; `None` for anything else.
pub(crate) fn parse(packet: &[u8]) -> Option<(IpHeader, TcpHeader, &[u8])> {
    let (ip, rest) = IpHeader::parse(packet)?;
    let protocol = match &ip {
        IpHeader::V4(ip) => ip.protocol,
        IpHeader::V6(ip) => ip.next_header,
    };
    if protocol != IpNumber::TCP {
        return None;
    }
    let (tcp, payload) = TcpHeader::from_slice(rest).ok()?;
    Some((ip, tcp, payload))
}

/// Whether a packet carries TCP, or an ICMP error (RFC 792, RFC 4443: types below 128).
pub(crate) fn is_tcp_or_icmp_error(packet: &[u8]) -> bool {
    match IpHeader::parse(packet) {
        Some((IpHeader::V4(ip), _)) => [IpNumber::TCP, IpNumber::ICMP].contains(&ip.protocol),
        Some((IpHeader::V6(ip), rest)) => match ip.next_header {
            IpNumber::TCP => true,
            IpNumber::IPV6_ICMP => rest.first().is_some_and(|kind| *kind < 128),
            _ => false,
        },
        None => false,
    }
}

/// A packet of these headers and data, with length and checksums; `None` if it would be too long.
pub(crate) fn assemble(mut ip: IpHeader, mut tcp: TcpHeader, payload: &[u8]) -> Option<Vec<u8>> {
    let length = tcp.header_len() + payload.len();
    match &mut ip {
        IpHeader::V4(ip) => {
            ip.set_payload_len(length).ok()?;
            ip.header_checksum = ip.calc_header_checksum();
            tcp.checksum = tcp.calc_checksum_ipv4(ip, payload).ok()?;
        }
        IpHeader::V6(ip) => {
            ip.set_payload_length(length).ok()?;
            tcp.checksum = tcp.calc_checksum_ipv6(ip, payload).ok()?;
        }
    }
    Some([&ip.to_bytes()[..], &tcp.to_bytes()[..], payload].concat())
}

/// The ECN field of an IP packet.
pub(crate) fn ecn(packet: &[u8]) -> Ecn {
    // The traffic class ends at a byte border in IPv4, and in the middle of a byte in IPv6.
    let bits = match packet {
        [first, second, ..] if first >> 4 == 6 => second >> 4,
        [_, second, ..] => *second,
        _ => return Ecn::NotCapable,
    };
    match bits & 3 {
        0 => Ecn::NotCapable,
        3 => Ecn::Marked,
        _ => Ecn::Capable,
    }
}

/// Source and destination of an IP packet; `None` for anything else.
pub(crate) fn endpoints(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    Outer::parse(packet).map(|ip| (ip.source, ip.destination))
}

/// The fields of an IP header, without a copy of it.
struct Outer {
    source: IpAddr,
    destination: IpAddr,
    protocol: IpNumber,
    /// Whether it is a fragment other than the first, which has no ports.
    is_later_fragment: bool,
    header_bytes: usize,
}

impl Outer {
    fn parse(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Ipv4HeaderSlice::from_slice(packet).ok().map(|ip| Self {
                source: ip.source_addr().into(),
                destination: ip.destination_addr().into(),
                protocol: ip.protocol(),
                is_later_fragment: ip.fragments_offset().value() > 0,
                header_bytes: ip.slice().len(),
            }),
            6 => Ipv6HeaderSlice::from_slice(packet).ok().map(|ip| Self {
                source: ip.source_addr().into(),
                destination: ip.destination_addr().into(),
                protocol: ip.next_header(),
                is_later_fragment: false,
                header_bytes: ip.slice().len(),
            }),
            _ => None,
        }
    }
}

/// A UDP datagram.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// Sender.
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// The whole IP packet, bytes.
    pub packet_bytes: u32,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// What it carries.
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Parses an IP packet; `None` if it carries no UDP or is malformed, and for a fragment other than the first.
    pub fn parse(packet: &'a [u8]) -> Option<Self> {
        let ip = Outer::parse(packet)?;
        if ip.protocol != IpNumber::UDP || ip.is_later_fragment {
            return None;
        }
        let rest = packet.get(ip.header_bytes..)?;
        let udp = UdpHeaderSlice::from_slice(rest).ok()?;
        Some(Self {
            source: SocketAddr::new(ip.source, udp.source_port()),
            destination: SocketAddr::new(ip.destination, udp.destination_port()),
            packet_bytes: packet.len() as u32,
            ecn: ecn(packet),
            payload: &rest[udp.slice().len()..],
        })
    }

    /// The ledger's key of its connection.
    pub fn key(&self, direction: Direction) -> ConnectionKey {
        let (client, server) = match direction {
            Direction::Up => (self.source, self.destination),
            Direction::Down => (self.destination, self.source),
        };
        (client.port(), server.ip(), server.port())
    }
}

/// The fields of a TCP segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Sender.
    pub source: (IpAddr, u16),
    /// Receiver.
    pub destination: (IpAddr, u16),
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// Flags.
    pub flags: TcpFlags,
    /// Payload, bytes.
    pub payload_bytes: u32,
    /// Length of the Fast Open option's cookie; `Some(0)` for a cookie request.
    pub cookie_bytes: Option<usize>,
    /// That cookie as a number; 0 without one.
    pub cookie: u128,
    /// The whole IP packet, bytes.
    pub packet_bytes: u32,
    /// Its ECN bits.
    pub ecn: EcnBits,
    /// The window field of its header.
    pub window: u16,
}

impl Segment {
    /// Parses an IP packet; `None` if it carries no TCP or is malformed.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let ip = Outer::parse(packet)?;
        if ip.protocol != IpNumber::TCP {
            return None;
        }
        let tcp = TcpHeaderSlice::from_slice(packet.get(ip.header_bytes..)?).ok()?;
        let headers = ip.header_bytes + tcp.slice().len();
        let mut options = options(if tcp.syn() { tcp.options() } else { &[] });
        let cookie = options.find_map(|option| option.any_cookie());
        Some(Self {
            source: (ip.source, tcp.source_port()),
            destination: (ip.destination, tcp.destination_port()),
            sequence: tcp.sequence_number(),
            acknowledgment: tcp.acknowledgment_number(),
            flags: TcpFlags {
                syn: tcp.syn(),
                ack: tcp.ack(),
                fin: tcp.fin(),
                rst: tcp.rst(),
            },
            payload_bytes: packet.len().checked_sub(headers)? as u32,
            cookie_bytes: cookie.map(<[u8]>::len),
            cookie: cookie.map_or(0, number),
            packet_bytes: packet.len() as u32,
            ecn: EcnBits {
                ip: ecn(packet),
                ece: tcp.ece(),
                cwr: tcp.cwr(),
            },
            window: tcp.window_size(),
        })
    }

    /// The data of `packet`, from which this was parsed.
    pub fn payload<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        &packet[packet.len() - self.payload_bytes as usize..]
    }

    /// The fields that the ledger reads.
    pub fn seen(&self, direction: Direction) -> ledger::Segment {
        ledger::Segment {
            direction,
            flags: self.flags,
            sequence: self.sequence,
            acknowledgment: self.acknowledgment,
            payload_bytes: self.payload_bytes,
            packet_bytes: self.packet_bytes,
            option: match self.cookie_bytes {
                None => Cookie::None,
                Some(0) => Cookie::Requested,
                Some(_) => Cookie::Sent,
            },
            cookie: self.cookie,
            ecn: self.ecn,
            window: self.window.into(),
        }
    }
}

/// A cookie has at most 16 bytes (RFC 7413, section 4.1.1).
fn number(cookie: &[u8]) -> u128 {
    cookie
        .iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    use etherparse::{PacketBuilder, PacketBuilderStep};
    use firstflight_path::IpVersion;

    use crate::net::Block;

    pub(crate) const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

    /// A server's address.
    pub(crate) fn server(ip: IpVersion) -> IpAddr {
        match ip {
            IpVersion::V4 => IpAddr::from([198, 19, 0, 1]),
            IpVersion::V6 => IpAddr::from([0x2001, 2, 0, 1, 0, 0, 0, 1]),
        }
    }

    /// From the client to the server.
    fn builder(ip: IpVersion) -> PacketBuilderStep<etherparse::IpHeaders> {
        match (Block::of(ip).client, server(ip)) {
            (IpAddr::V4(client), IpAddr::V4(server)) => {
                PacketBuilder::ipv4(client.octets(), server.octets(), 64)
            }
            (IpAddr::V6(client), IpAddr::V6(server)) => {
                PacketBuilder::ipv6(client.octets(), server.octets(), 64)
            }
            ends => panic!("{ends:?}"),
        }
    }

    /// A SYN from the client.
    pub(crate) fn syn(ip: IpVersion, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let builder = builder(ip).tcp(40_000, 80, 1_000, 65_535).syn();
        let mut packet = Vec::new();
        let builder = builder.options_raw(options).unwrap();
        builder.write(&mut packet, payload).unwrap();
        packet
    }

    #[test]
    fn options_are_walked_up_to_the_end_or_one_that_is_cut_off() {
        let walked =
            |bytes: &[u8]| -> Vec<_> { options(bytes).map(|found| (found.kind, found.span)).collect() };
        let segment_size = [2, 4, 5, 180];
        assert_eq!(
            walked(&[&[1, 1], &segment_size[..], &[34, 2]].concat()),
            [(2, 2..6), (34, 6..8)]
        );
        assert_eq!(walked(&[&segment_size[..], &[0, 0, 34, 2]].concat()), [(2, 0..4)]);
        for cut_off in [&[34][..], &[34, 0, 1, 1], &[34, 1, 1, 1], &[34, 10, 1, 2]] {
            assert_eq!(walked(&[&segment_size[..], cut_off].concat()), [(2, 0..4)]);
        }
    }

    #[test]
    fn both_fast_open_options_are_known_and_no_other_experiment() {
        let cookies = |bytes: &[u8]| -> Vec<_> {
            options(bytes)
                .map(|found| {
                    (
                        found.cookie().map(<[u8]>::to_vec),
                        found.experimental_cookie().map(<[u8]>::to_vec),
                    )
                })
                .collect()
        };
        let both = [fast_open(&[]), experimental_fast_open(&[7; 4])].concat();
        assert_eq!(cookies(&both), [(Some(vec![]), None), (None, Some(vec![7; 4]))]);
        assert_eq!(cookies(&[254, 4, 1, 2]), [(None, None)]);
    }

    #[test]
    fn a_syn_with_a_cookie_and_data_is_read_whole() {
        let cookie = [1, 1, 34, 10, 1, 2, 3, 4, 5, 6, 7, 8];
        for ip in VERSIONS {
            let packet = syn(ip, &cookie, b"GET /");
            let segment = Segment::parse(&packet).unwrap();
            assert_eq!(
                (segment.cookie_bytes, segment.cookie),
                (Some(8), 0x0102_0304_0506_0708)
            );
            assert_eq!(segment.source, (Block::of(ip).client, 40_000));
            assert_eq!(segment.destination, (server(ip), 80));
            assert_eq!(segment.payload(&packet), b"GET /");
            assert_eq!(segment.packet_bytes, ip.header_bytes() + 20 + 12 + 5);
            assert!(segment.flags.syn && !segment.flags.ack);
        }
    }

    #[test]
    fn an_empty_option_asks_for_a_cookie_and_no_option_does_not() {
        assert_eq!(
            Segment::parse(&syn(IpVersion::V4, &[34, 2, 1, 1], b""))
                .unwrap()
                .cookie_bytes,
            Some(0)
        );
        assert_eq!(
            Segment::parse(&syn(IpVersion::V4, &[2, 4, 5, 180], b""))
                .unwrap()
                .cookie_bytes,
            None
        );
    }

    #[test]
    fn a_datagram_has_ports_and_a_segment_is_none() {
        let read = |packet: &[u8]| Datagram::parse(packet).map(|found| (found.source, found.destination));
        for ip in VERSIONS {
            let mut packet = Vec::new();
            builder(ip).udp(5_000, 7).write(&mut packet, b"?").unwrap();
            let client = SocketAddr::new(Block::of(ip).client, 5_000);
            assert_eq!(read(&packet), Some((client, SocketAddr::new(server(ip), 7))));
            assert_eq!(read(&syn(ip, &[], b"")), None);
            // Makes it a fragment other than the first: an offset in IPv4, a fragment header in IPv6.
            match ip {
                IpVersion::V4 => packet[7] = 1,
                IpVersion::V6 => packet[6] = 44,
            }
            assert_eq!(read(&packet), None);
        }
    }

    #[test]
    fn no_bytes_make_the_readers_panic() {
        for ip in VERSIONS {
            let whole = syn(ip, &[34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1], b"data");
            for length in 0..whole.len() {
                let mut flipped = whole.clone();
                flipped[length] ^= 0xff;
                for packet in [&whole[..length], &flipped] {
                    let _ = (Segment::parse(packet), Datagram::parse(packet));
                }
            }
        }
    }
}
