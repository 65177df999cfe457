//! Packets, and the ledger of whatever segments they are.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use firstflight_lab::ledger::{Entry, Ledger, Timeline};
use firstflight_lab::packet::{EcnBits, Segment, TcpFlags};
use firstflight_path::{Direction, Ecn};
use libfuzzer_sys::fuzz_target;

/// Bytes of a segment's fields below.
const FIELDS: usize = 14;

fuzz_target!(|data: &[u8]| {
    check_packet(data);
    let mut ledger = Ledger::with_times();
    for (now, fields) in data.as_chunks::<FIELDS>().0.iter().enumerate() {
        let (segment, direction) = (segment(fields), direction(fields));
        ledger.sent(direction, now as u64, &segment);
        if direction == Direction::Down {
            ledger.arrived(now as u64, &segment);
        }
    }
    ledger.entries().iter().for_each(check_entry);
});

/// A segment is a part of its packet.
fn check_packet(packet: &[u8]) {
    if let Some(segment) = Segment::parse(packet) {
        assert_eq!(segment.packet_bytes as usize, packet.len());
        assert!(segment.payload_bytes < segment.packet_bytes);
        assert!(
            segment
                .cookie_bytes
                .is_none_or(|bytes| segment.flags.syn && bytes < 256)
        );
    }
}

/// A connection's facts agree with each other, and its bytes pass in order.
fn check_entry(entry: &Entry) {
    let seen = &entry.seen;
    assert!(!seen.accepted() || seen.offered());
    assert!(seen.answered.is_none_or(|at| at >= seen.opened));
    for timeline in [&entry.sent_data, &entry.received_data] {
        check_timeline(timeline);
    }
}

fn check_timeline(timeline: &Timeline) {
    let progress = timeline.progress();
    let last = progress.last();
    assert_eq!(progress.reached(1).is_some(), last.is_some());
    assert!(progress.reached(1) <= last);
}

fn segment(fields: &[u8; FIELDS]) -> Segment {
    let [kind, port, flags, cookie, rest @ ..] = *fields;
    let word = |at: usize| u32::from_be_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
    let (client, server) = (
        (IpAddr::from(Ipv4Addr::new(198, 18, 0, 1)), u16::from(port)),
        (IpAddr::from(Ipv4Addr::new(198, 19, 0, 1)), 80),
    );
    let up = direction(fields) == Direction::Up;
    let payload_bytes = u32::from(u16::from_be_bytes([rest[8], rest[9]]));
    Segment {
        source: if up { client } else { server },
        destination: if up { server } else { client },
        sequence: word(0),
        acknowledgment: word(4),
        flags: TcpFlags {
            syn: flags & 1 != 0,
            ack: flags & 2 != 0,
            fin: flags & 4 != 0,
            rst: flags & 8 != 0,
        },
        payload_bytes,
        cookie_bytes: (kind & 2 != 0).then_some(usize::from(cookie)),
        cookie: u128::from(cookie),
        packet_bytes: payload_bytes + 40,
        ecn: EcnBits {
            ip: [Ecn::NotCapable, Ecn::Capable, Ecn::Marked][usize::from(kind >> 2) % 3],
            ece: flags & 16 != 0,
            cwr: flags & 32 != 0,
        },
        window: u16::from_be_bytes([rest[0], rest[1]]),
    }
}

fn direction(fields: &[u8; FIELDS]) -> Direction {
    if fields[0] & 1 == 0 {
        Direction::Up
    } else {
        Direction::Down
    }
}
