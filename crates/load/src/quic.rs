//! Reads what an observer can see in a QUIC datagram: the types and lengths of its packets (RFC 9000, section 17).

use serde::Serialize;

/// The type of a QUIC packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketType {
    /// Carries the first handshake messages: the `ClientHello` or its answer.
    Initial,
    /// Carries the client's early data.
    #[serde(rename = "0-rtt")]
    ZeroRtt,
    /// Carries the rest of the handshake.
    Handshake,
    /// Asks the client to prove its address.
    Retry,
    /// Tells the client that the server does not support its version.
    VersionNegotiation,
    /// Carries data after the handshake.
    #[serde(rename = "1-rtt")]
    OneRtt,
}

/// The packets of `datagram` and their lengths in bytes, up to the first that cannot be read.
pub fn packets(datagram: &[u8]) -> impl Iterator<Item = (PacketType, u32)> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let (kind, length) = packet(rest)?;
        rest = &rest[length..];
        Some((kind, length as u32))
    })
}

fn packet(datagram: &[u8]) -> Option<(PacketType, usize)> {
    let first = *datagram.first()?;
    // Padding that a server adds to a datagram is no packet.
    if first & 0x40 == 0 && first & 0x80 == 0 {
        return None;
    }
    if first & 0x80 == 0 {
        return Some((PacketType::OneRtt, datagram.len()));
    }
    let mut at = 5;
    let version = datagram.get(1..at)?;
    if version == [0; 4] {
        return Some((PacketType::VersionNegotiation, datagram.len()));
    }
    for _ in ["destination", "source"] {
        at += 1 + usize::from(*datagram.get(at)?);
    }
    let kind = match first >> 4 & 3 {
        0 => PacketType::Initial,
        1 => PacketType::ZeroRtt,
        2 => PacketType::Handshake,
        _ => return Some((PacketType::Retry, datagram.len())),
    };
    if kind == PacketType::Initial {
        let token = varint(datagram, &mut at)?;
        at = at.checked_add(usize::try_from(token).ok()?)?;
    }
    let length = usize::try_from(varint(datagram, &mut at)?).ok()?;
    let end = at.checked_add(length)?;
    (end <= datagram.len()).then_some((kind, end))
}

/// Reads the integer at `at` (RFC 9000, section 16), and moves `at` behind it.
fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    let length = 1 << (first >> 6);
    let field = bytes.get(*at..*at + length)?;
    *at += length;
    let value = field[1..].iter().fold(u64::from(first & 0x3f), |value, byte| {
        value << 8 | u64::from(*byte)
    });
    Some(value)
}

#[cfg(test)]
mod tests {
    use firstflight_path::{Direction, Ecn};

    use super::*;
    use crate::ledger::Entry;

    fn long(kind: u8, payload: usize) -> Vec<u8> {
        let mut packet = vec![0xc0 | kind << 4, 0, 0, 0, 1, 3, 1, 2, 3, 0];
        if kind == 0 {
            packet.extend([2, 9, 9]);
        }
        packet.extend((0x4000 | payload as u16).to_be_bytes());
        packet.resize(packet.len() + payload, 7);
        packet
    }

    #[test]
    fn coalesced_packets_are_told_apart() {
        let datagram = [long(0, 300), long(1, 90), long(2, 20), vec![0x41; 40]].concat();
        let kinds: Vec<_> = packets(&datagram).collect();
        let lengths = [long(0, 300), long(1, 90), long(2, 20)].map(|packet| packet.len() as u32);
        assert_eq!(
            kinds,
            [
                (PacketType::Initial, lengths[0]),
                (PacketType::ZeroRtt, lengths[1]),
                (PacketType::Handshake, lengths[2]),
                (PacketType::OneRtt, 40),
            ]
        );
    }

    #[test]
    fn an_entry_counts_0_rtt_packets_until_the_handshake_is_done_and_the_first_flight_until_the_server_is_heard()
     {
        let (first, later) = ([long(0, 300), long(1, 90)].concat(), long(1, 200));
        let mut entry = Entry::over_udp(1);
        for (heard, payload) in [(false, &first), (true, &later)] {
            if heard {
                entry.datagram_arrived(5, 1_228);
            }
            entry.datagram_sent(Direction::Up, payload.len() as u32 + 28, payload, Ecn::NotCapable);
        }
        entry.datagram_sent(Direction::Down, 100, &long(2, 60), Ecn::NotCapable);
        let early = (long(1, 90).len() + later.len()) as u32;
        assert_eq!(entry.hello.map(|hello| hello.early_data_bytes), Some(early));
        assert_eq!(entry.opening_bytes, first.len() as u32);
        assert_eq!((entry.answered, entry.bytes_down), (Some(5), 1_228));
        assert_eq!(entry.bytes_up, (first.len() + later.len() + 56) as u64);
    }

    #[test]
    fn no_bytes_make_it_panic_and_a_length_beyond_the_end_is_no_packet() {
        let datagram = [long(0, 100), long(1, 50)].concat();
        for length in 0..datagram.len() {
            let mut flipped = datagram.clone();
            flipped[length] ^= 0xff;
            let _ = (packets(&flipped).count(), packets(&datagram[..length]).count());
        }
        assert_eq!(packets(&datagram[..90]).count(), 0);
    }
}
