//! Changes that middleboxes make to packets, checksums included.

use std::net::IpAddr;

use etherparse::TcpHeader;
use firstflight_path::Action;

use crate::packet::{IpHeader, assemble, parse, without_fast_open};

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
    let back = IpHeader::between(ip.destination(), ip.source(), TTL)?;
    assemble(back, answer, &[])
}

/// A TCP packet with `from` replaced by `to`, as source or destination; `None` if it does not have `from`.
pub(super) fn readdress(packet: &[u8], from: IpAddr, to: IpAddr) -> Option<Vec<u8>> {
    let (mut ip, tcp, payload) = parse(packet)?;
    ip.readdress(from, to)?;
    assemble(ip, tcp, payload)
}

/// Sets CE in an IP packet.
pub(crate) fn mark(packet: &mut [u8]) {
    let Some((mut header, rest)) = IpHeader::parse(packet) else {
        return;
    };
    let length = packet.len() - rest.len();
    header.mark();
    packet[..length].copy_from_slice(&header.to_bytes());
}

#[cfg(test)]
mod tests {
    use firstflight_path::{Ecn, IpVersion};

    use super::*;
    use crate::net::Block;
    use crate::packet::tests::{VERSIONS, server, syn};
    use crate::packet::{Segment, ecn};

    fn assert_checksums_hold(packet: &[u8]) {
        let (ip, tcp, payload) = parse(packet).unwrap();
        let (checksum, length) = match ip {
            IpHeader::V4(ip) => {
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                (tcp.calc_checksum_ipv4(&ip, payload), usize::from(ip.total_len))
            }
            IpHeader::V6(ip) => {
                let length = 40 + usize::from(ip.payload_length);
                (tcp.calc_checksum_ipv6(&ip, payload), length)
            }
        };
        assert_eq!((Ok(tcp.checksum), packet.len()), (checksum, length));
    }

    #[test]
    fn without_its_option_a_syn_keeps_its_data_and_its_other_options() {
        for (ip, fast_open) in VERSIONS.into_iter().flat_map(|ip| {
            let options = [&[34, 6, 1, 2, 3, 4, 1, 1][..], &[254, 8, 0xf9, 0x89, 1, 2, 3, 4]];
            options.map(|option| (ip, option))
        }) {
            let options = [&[2, 4, 5, 180][..], fast_open].concat();
            let packet = syn(ip, &options, b"GET /");
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
        for ip in VERSIONS {
            let stripped = strip(&syn(ip, &cookie, b"GET /"), Action::StripData).unwrap();
            let segment = Segment::parse(&stripped).unwrap();
            assert_eq!((segment.cookie_bytes, segment.payload_bytes), (Some(4), 0));
            assert_checksums_hold(&stripped);
        }
    }

    #[test]
    fn a_reset_goes_back_and_acknowledges_the_syn_with_its_data() {
        for ip in VERSIONS {
            let answer = reset(&syn(ip, &[], b"GET /")).unwrap();
            let segment = Segment::parse(&answer).unwrap();
            assert!(segment.flags.rst && segment.flags.ack && !segment.flags.syn);
            assert_eq!(segment.source, (server(ip), 80));
            assert_eq!(segment.destination, (Block::of(ip).client, 40_000));
            assert_eq!(segment.acknowledgment, 1_000 + 1 + 5);
            assert_checksums_hold(&answer);
        }
    }

    #[test]
    fn behind_a_nat_a_packet_has_another_end_on_the_way_there_and_back() {
        for ip in VERSIONS {
            let Block { client, former, .. } = Block::of(ip);
            let there = readdress(&syn(ip, &[], b"GET /"), client, former).unwrap();
            let segment = Segment::parse(&there).unwrap();
            assert_eq!((segment.source.0, segment.destination.0), (former, server(ip)));
            assert_checksums_hold(&there);
            let back = readdress(&reset(&there).unwrap(), former, client).unwrap();
            assert_eq!(Segment::parse(&back).unwrap().destination.0, client);
            assert_checksums_hold(&back);
            assert_eq!(readdress(&there, client, former), None);
        }
    }

    #[test]
    fn a_mark_changes_two_bits_and_the_checksum() {
        for ip in VERSIONS {
            let mut packet = syn(ip, &[], b"GET /");
            assert_eq!(ecn(&packet), Ecn::NotCapable);
            // The bits follow six bits of another field: in one byte in IPv4, across two bytes in IPv6.
            let (class, ect, ce) = match ip {
                IpVersion::V4 => ([0x45, 0xb8], 0x02, 0x03),
                IpVersion::V6 => ([0x6b, 0x8f], 0x20, 0x30),
            };
            packet[..2].copy_from_slice(&[class[0], class[1] | ect]);
            let before = packet.clone();
            assert_eq!(ecn(&packet), Ecn::Capable);
            mark(&mut packet);
            assert_eq!(ecn(&packet), Ecn::Marked);
            assert_eq!(packet[..2], [class[0], class[1] | ce]);
            assert_eq!(packet[2..10], before[2..10]);
            assert_eq!(packet[12..], before[12..]);
            assert_checksums_hold(&packet);
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        for ip in VERSIONS {
            let whole = syn(ip, &[34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1], b"data");
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
}
