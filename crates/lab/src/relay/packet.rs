//! Reading a packet as far as the ledger needs it.

use std::net::{Ipv4Addr, SocketAddrV4};

use etherparse::{IpNumber, Ipv4HeaderSlice, TcpHeaderSlice, UdpHeaderSlice};
use firstflight_path::TcpFlags;

/// TCP Fast Open option kind (RFC 7413, section 4.1.1).
pub(crate) const OPTION_FAST_OPEN: u8 = 34;
/// What ends options and what fills them up (RFC 9293, section 3.2).
pub(crate) const OPTION_END: u8 = 0;
pub(crate) const OPTION_NOTHING: u8 = 1;
/// The experimental option and the number in it by which Linux knows Fast Open there (`TCPOPT_FASTOPEN_MAGIC`).
pub(crate) const OPTION_EXPERIMENT: u8 = 254;
pub(crate) const EXPERIMENT_FAST_OPEN: [u8; 2] = [0xf9, 0x89];

/// Source and destination of an IPv4 packet; `None` for anything else.
pub(super) fn endpoints(packet: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let header = Ipv4HeaderSlice::from_slice(packet).ok()?;
    Some((header.source_addr(), header.destination_addr()))
}

/// Source and destination of a UDP datagram, ports included; `None` for anything else, and for a later fragment.
pub(super) fn datagram(packet: &[u8]) -> Option<(SocketAddrV4, SocketAddrV4)> {
    let ip = Ipv4HeaderSlice::from_slice(packet).ok()?;
    if ip.protocol() != IpNumber::UDP || ip.fragments_offset().value() > 0 {
        return None;
    }
    let udp = UdpHeaderSlice::from_slice(packet.get(ip.slice().len()..)?).ok()?;
    Some((
        SocketAddrV4::new(ip.source_addr(), udp.source_port()),
        SocketAddrV4::new(ip.destination_addr(), udp.destination_port()),
    ))
}

/// What a TCP segment says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Sender.
    pub source: (Ipv4Addr, u16),
    /// Receiver.
    pub destination: (Ipv4Addr, u16),
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// Flags.
    pub flags: TcpFlags,
    /// Payload, bytes.
    pub payload_bytes: u32,
    /// Length of the Fast Open option's cookie: `Some(0)` asks for one.
    pub cookie_bytes: Option<usize>,
    /// That cookie as a number; 0 without one.
    pub cookie: u128,
    /// The whole IP packet, bytes.
    pub packet_bytes: u32,
}

impl Segment {
    /// Reads an IPv4 packet; `None` if it carries no TCP or is malformed.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let ip = Ipv4HeaderSlice::from_slice(packet).ok()?;
        if ip.protocol() != IpNumber::TCP {
            return None;
        }
        let tcp = TcpHeaderSlice::from_slice(packet.get(ip.slice().len()..)?).ok()?;
        let headers = ip.slice().len() + tcp.slice().len();
        let cookie = if tcp.syn() { cookie(tcp.options()) } else { None };
        Some(Self {
            source: (ip.source_addr(), tcp.source_port()),
            destination: (ip.destination_addr(), tcp.destination_port()),
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
        })
    }
}

/// The cookie among the options of a SYN; an empty one asks for a cookie.
pub(crate) fn cookie(mut options: &[u8]) -> Option<&[u8]> {
    loop {
        match *options {
            [OPTION_NOTHING, ref rest @ ..] => options = rest,
            [OPTION_END, ..] | [] | [_] => return None,
            [OPTION_FAST_OPEN, length, ..] => return options.get(2..usize::from(length)),
            [OPTION_EXPERIMENT, length, a, b, ..] if [a, b] == EXPERIMENT_FAST_OPEN => {
                return options.get(4..usize::from(length));
            }
            [_, length, ..] => options = options.get(usize::from(length.max(2))..)?,
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
pub(super) mod tests {
    use super::*;

    /// A SYN from the client.
    pub(in crate::relay) fn syn(options: &[u8], payload: &[u8]) -> Vec<u8> {
        let builder = etherparse::PacketBuilder::ipv4([198, 18, 0, 1], [198, 19, 0, 1], 64)
            .tcp(40_000, 80, 1_000, 65_535)
            .syn()
            .options_raw(options)
            .unwrap();
        let mut packet = Vec::new();
        builder.write(&mut packet, payload).unwrap();
        packet
    }

    #[test]
    fn a_syn_with_a_cookie_and_data_is_read_whole() {
        let cookie = [1, 1, 34, 10, 1, 2, 3, 4, 5, 6, 7, 8];
        let segment = Segment::parse(&syn(&cookie, b"GET /")).unwrap();
        assert_eq!(
            (segment.cookie_bytes, segment.cookie),
            (Some(8), 0x0102_0304_0506_0708)
        );
        assert_eq!(segment.payload_bytes, 5);
        assert!(segment.flags.syn && !segment.flags.ack);
    }

    #[test]
    fn an_empty_option_asks_for_a_cookie_and_no_option_does_not() {
        assert_eq!(
            Segment::parse(&syn(&[34, 2, 1, 1], b"")).unwrap().cookie_bytes,
            Some(0)
        );
        assert_eq!(
            Segment::parse(&syn(&[2, 4, 5, 180], b"")).unwrap().cookie_bytes,
            None
        );
    }

    #[test]
    fn a_datagram_has_ports_and_a_segment_is_none() {
        let mut packet = Vec::new();
        let builder = etherparse::PacketBuilder::ipv4([198, 18, 0, 1], [198, 19, 0, 1], 64).udp(5_000, 7);
        builder.write(&mut packet, b"?").unwrap();
        let (client, server) = (Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 19, 0, 1));
        let ends = (SocketAddrV4::new(client, 5_000), SocketAddrV4::new(server, 7));
        assert_eq!(datagram(&packet), Some(ends));
        assert_eq!(datagram(&syn(&[], b"")), None);
        // The offset of a later fragment, where a first one has its ports.
        packet[7] = 1;
        assert_eq!(datagram(&packet), None);
    }

    #[test]
    fn no_bytes_make_the_readers_panic() {
        let whole = syn(&[34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1], b"data");
        for length in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[length] ^= 0xff;
            for packet in [&whole[..length], &flipped] {
                let _ = (Segment::parse(packet), datagram(packet));
            }
        }
    }
}
