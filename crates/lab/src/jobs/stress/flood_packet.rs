//! Builds the packets of an attacker.

use std::net::{Ipv4Addr, SocketAddrV4};

use etherparse::PacketBuilder;

use crate::LabError;
use crate::packet;
use crate::tun::Frame;

const TTL: u8 = 64;
const WINDOW: u16 = 64_240;
/// A segment size of 1,460 bytes, selective acknowledgments, a window scale of 7.
const USUAL_OPTIONS: [u8; 9] = [2, 4, 5, 180, 4, 2, 3, 3, 7];

/// A SYN from `source`, with the Fast Open option `fast_open` (`None` for no option) and with `data`. Its options
/// are those of Linux except the timestamp, which would leave too little room for an aligned cookie.
pub(super) fn syn(
    source: SocketAddrV4,
    server: SocketAddrV4,
    sequence: u32,
    fast_open: Option<&[u8]>,
    data: &[u8],
) -> Result<Frame, LabError> {
    let builder = PacketBuilder::ipv4(source.ip().octets(), server.ip().octets(), TTL)
        .tcp(source.port(), server.port(), sequence, WINDOW)
        .syn()
        .options_raw(&options(fast_open))
        .map_err(|error| impossible(&error))?;
    let mut packet = Vec::new();
    builder
        .write(&mut packet, data)
        .map_err(|error| impossible(&error))?;
    Ok(Frame::new(&packet))
}

/// The reset with which `source` aborts its SYN that had this sequence number and no data.
pub(super) fn take_back(
    source: SocketAddrV4,
    server: SocketAddrV4,
    sequence: u32,
) -> Result<Frame, LabError> {
    let builder = PacketBuilder::ipv4(source.ip().octets(), server.ip().octets(), TTL)
        .tcp(source.port(), server.port(), sequence.wrapping_add(1), 0)
        .rst();
    let mut packet = Vec::new();
    builder
        .write(&mut packet, &[])
        .map_err(|error| impossible(&error))?;
    Ok(Frame::new(&packet))
}

/// An address that is neither the client's nor the server's, from 198.18.1.0 to 198.18.255.255.
pub(super) fn spoofed_address(number: u16) -> Ipv4Addr {
    let [high, low] = (0x100 + number % (u16::MAX - 0xff)).to_be_bytes();
    Ipv4Addr::new(198, 18, high, low)
}

fn options(fast_open: Option<&[u8]>) -> Vec<u8> {
    let fast_open = fast_open.map(packet::fast_open).unwrap_or_default();
    packet::padded([&USUAL_OPTIONS[..], &fast_open].concat())
}

fn impossible(error: &dyn std::fmt::Display) -> LabError {
    LabError::bug(format!("making a SYN: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::server::SERVER;
    use super::*;
    use crate::packet::Segment;

    #[test]
    fn a_syn_says_what_it_was_told_to() {
        let source = SocketAddrV4::new(spoofed_address(7), 4_000);
        for (fast_open, length) in [
            (None, None),
            (Some(&[][..]), Some(0)),
            (Some(&[5; 8][..]), Some(8)),
        ] {
            let packet = syn(source, SERVER, 1, fast_open, b"GET /").unwrap();
            let segment = Segment::parse(packet.packet()).unwrap();
            assert_eq!((segment.cookie_bytes, segment.payload_bytes), (length, 5));
            assert_eq!(
                (segment.source.0, segment.flags.syn),
                (source.ip().to_owned().into(), true)
            );
        }
    }

    #[test]
    fn no_spoofed_address_is_one_of_the_lab() {
        for number in [0, 1, 254, 255, 0xfeff, 0xff00, u16::MAX] {
            let [.., third, _] = spoofed_address(number).octets();
            assert_ne!(third, 0, "{number}");
        }
    }
}
