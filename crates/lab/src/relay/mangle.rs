//! What middleboxes make of a packet, checksums included.

use std::net::Ipv4Addr;

use etherparse::{IpEcn, Ipv4Header, TcpHeader};
use firstflight_path::Action;

use crate::packet::{assemble, parse, without_fast_open};

const TTL: u8 = 64;
const NO_WINDOW: u16 = 0;

/// A TCP packet without its Fast Open option or without its data; `None` if it is malformed.
pub(super) fn strip(packet: &[u8], action: Action) -> Option<Vec<u8>> {
    let (ip, mut tcp, payload) = parse(packet)?;
    if action == Action::StripData {
        return assemble(ip, tcp, &[]);
    }
    let options = without_fast_open(tcp.options.as_slice());
    tcp.set_options_raw(&options).ok()?;
    assemble(ip, tcp, payload)
}

/// The reset that refuses a TCP packet (RFC 9293, section 3.10.7.1); `None` if it is malformed.
pub(super) fn reset(packet: &[u8]) -> Option<Vec<u8>> {
    let (ip, tcp, payload) = parse(packet)?;
    let length = payload.len() as u32 + u32::from(tcp.syn) + u32::from(tcp.fin);
    let mut answer = TcpHeader::new(
        tcp.destination_port,
        tcp.source_port,
        tcp.acknowledgment_number,
        NO_WINDOW,
    );
    answer.rst = true;
    answer.ack = true;
    answer.acknowledgment_number = tcp.sequence_number.wrapping_add(length);
    let back = Ipv4Header::new(0, TTL, ip.protocol, ip.destination, ip.source).ok()?;
    assemble(back, answer, &[])
}

/// A TCP packet with another source or destination; `None` if it has not the one that is to be replaced.
pub(super) fn readdress(packet: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Option<Vec<u8>> {
    let (mut ip, tcp, payload) = parse(packet)?;
    let end = [&mut ip.source, &mut ip.destination]
        .into_iter()
        .find(|end| **end == from.octets())?;
    *end = to.octets();
    assemble(ip, tcp, payload)
}

/// Marks an IPv4 packet.
pub(crate) fn mark(packet: &mut [u8]) {
    let Ok((mut header, rest)) = Ipv4Header::from_slice(packet) else {
        return;
    };
    let length = packet.len() - rest.len();
    header.ecn = IpEcn::CongestionExperienced;
    header.header_checksum = header.calc_header_checksum();
    packet[..length].copy_from_slice(&header.to_bytes());
}

#[cfg(test)]
mod tests {
    use firstflight_path::Ecn;

    use super::*;
    use crate::packet::tests::syn;
    use crate::packet::{Segment, TRAFFIC_CLASS, ecn};

    fn assert_checksums_hold(packet: &[u8]) {
        let (ip, tcp, payload) = parse(packet).unwrap();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, payload).unwrap());
        assert_eq!(usize::from(ip.total_len), packet.len());
    }

    #[test]
    fn without_its_option_a_syn_keeps_its_data_and_its_other_options() {
        for fast_open in [&[34, 6, 1, 2, 3, 4, 1, 1][..], &[254, 8, 0xf9, 0x89, 1, 2, 3, 4]] {
            let options = [&[2, 4, 5, 180][..], fast_open].concat();
            let packet = syn(&options, b"GET /");
            assert!(Segment::parse(&packet).unwrap().cookie_bytes.is_some());
            let stripped = strip(&packet, Action::StripOption).unwrap();
            let (_, tcp, payload) = parse(&stripped).unwrap();
            assert_eq!(tcp.options.as_slice(), [2, 4, 5, 180, 1, 1, 1, 1, 1, 1, 1, 1]);
            assert_eq!(payload, b"GET /");
            assert_checksums_hold(&stripped);
        }
    }

    #[test]
    fn without_its_data_a_syn_keeps_its_cookie() {
        let cookie = [34, 6, 1, 2, 3, 4, 1, 1];
        let stripped = strip(&syn(&cookie, b"GET /"), Action::StripData).unwrap();
        let segment = Segment::parse(&stripped).unwrap();
        assert_eq!((segment.cookie_bytes, segment.payload_bytes), (Some(4), 0));
        assert_checksums_hold(&stripped);
    }

    #[test]
    fn a_reset_goes_back_and_acknowledges_the_syn_with_its_data() {
        let answer = reset(&syn(&[], b"GET /")).unwrap();
        let segment = Segment::parse(&answer).unwrap();
        assert!(segment.flags.rst && segment.flags.ack && !segment.flags.syn);
        assert_eq!((segment.source.1, segment.destination.1), (80, 40_000));
        assert_eq!(segment.acknowledgment, 1_000 + 1 + 5);
        assert_checksums_hold(&answer);
    }

    #[test]
    fn behind_a_nat_a_packet_has_another_end_on_the_way_there_and_back() {
        let [client, outside, server] =
            [[198, 18, 0, 1], [198, 18, 0, 3], [198, 19, 0, 1]].map(Ipv4Addr::from);
        let there = readdress(&syn(&[], b"GET /"), client, outside).unwrap();
        let segment = Segment::parse(&there).unwrap();
        assert_eq!((segment.source.0, segment.destination.0), (outside, server));
        assert_checksums_hold(&there);
        let back = readdress(&reset(&there).unwrap(), outside, client).unwrap();
        assert_eq!(Segment::parse(&back).unwrap().destination.0, client);
        assert_checksums_hold(&back);
        assert_eq!(readdress(&there, client, outside), None);
    }

    #[test]
    fn a_mark_changes_two_bits_and_the_checksum() {
        let mut packet = syn(&[], b"GET /");
        assert_eq!(ecn(&packet), Ecn::NotCapable);
        packet[TRAFFIC_CLASS] = 0xb8 | 2;
        let before = packet.clone();
        assert_eq!(ecn(&packet), Ecn::Capable);
        mark(&mut packet);
        assert_eq!(ecn(&packet), Ecn::Marked);
        assert_eq!(packet[TRAFFIC_CLASS], 0xb8 | 3);
        assert_eq!(packet[2..10], before[2..10]);
        assert_eq!(packet[12..], before[12..]);
        assert_checksums_hold(&packet);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let whole = syn(&[34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1], b"data");
        for length in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[length] ^= 0xff;
            for packet in [&whole[..length], &flipped] {
                let _ = (strip(packet, Action::StripOption), reset(packet));
                let _ = (ecn(packet), mark(&mut packet.to_vec()));
            }
        }
    }
}
