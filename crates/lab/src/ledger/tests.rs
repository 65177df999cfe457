use std::net::Ipv4Addr;

use firstflight_load::ledger::{Cookie, EcnBits};
use firstflight_path::Protocol;

use super::*;
use crate::packet::TcpFlags;

const CLIENT: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)), 40_000);
const SERVER: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(198, 19, 0, 1)), 80);
/// Close to the end of the sequence space: every test wraps around.
const CLIENT_ISN: u32 = u32::MAX - 10;
const SERVER_ISN: u32 = u32::MAX - 2;
const HEADERS: u32 = 52;

/// A wire with one connection. Every segment arrives at once, and later than the one before.
#[derive(Default)]
struct Wire {
    ledger: Ledger,
    now: u64,
}

impl Wire {
    fn up(&mut self, segment: &Segment) -> &mut Self {
        self.now += 1;
        self.ledger.sent(Direction::Up, self.now, segment);
        self
    }

    fn down(&mut self, segment: &Segment) -> &mut Self {
        self.lost_down(segment);
        self.now += 1;
        self.ledger.arrived(self.now, segment);
        self
    }

    /// A segment that the path loses on its way to the client.
    fn lost_down(&mut self, segment: &Segment) -> &mut Self {
        self.now += 1;
        self.ledger.sent(Direction::Down, self.now, segment);
        self
    }

    fn entry(&self) -> &ledger::Entry {
        &self
            .ledger
            .get(Protocol::Tcp, (CLIENT.1, SERVER.0, SERVER.1))
            .unwrap()
            .seen
    }
}

/// `offset` counts from the first byte after the SYN.
fn from_client(offset: u32, payload_bytes: u32) -> Segment {
    Segment {
        source: CLIENT,
        destination: SERVER,
        sequence: CLIENT_ISN.wrapping_add(1 + offset),
        acknowledgment: 0,
        flags: TcpFlags {
            ack: true,
            ..TcpFlags::default()
        },
        payload_bytes,
        cookie_bytes: None,
        cookie: 0,
        packet_bytes: HEADERS + payload_bytes,
        ecn: EcnBits::default(),
        window: 64_240,
    }
}

fn from_server(offset: u32, payload_bytes: u32) -> Segment {
    Segment {
        source: SERVER,
        destination: CLIENT,
        sequence: SERVER_ISN.wrapping_add(1 + offset),
        ..from_client(0, payload_bytes)
    }
}

fn syn(cookie_bytes: Option<usize>, payload_bytes: u32) -> Segment {
    Segment {
        sequence: CLIENT_ISN,
        flags: TcpFlags {
            syn: true,
            ..TcpFlags::default()
        },
        cookie_bytes,
        ..from_client(0, payload_bytes)
    }
}

/// A SYN-ACK that acknowledges the SYN and `acked` bytes of its data.
fn syn_ack(acked: u32) -> Segment {
    Segment {
        sequence: SERVER_ISN,
        acknowledgment: CLIENT_ISN.wrapping_add(1 + acked),
        flags: TcpFlags {
            syn: true,
            ack: true,
            ..TcpFlags::default()
        },
        ..from_server(0, 0)
    }
}

fn fin(segment: &Segment) -> Segment {
    Segment {
        flags: TcpFlags {
            fin: true,
            ..segment.flags
        },
        ..segment.clone()
    }
}

fn rst(segment: &Segment) -> Segment {
    Segment {
        flags: TcpFlags {
            rst: true,
            ..segment.flags
        },
        ..segment.clone()
    }
}

#[test]
fn a_syn_with_a_cookie_and_data_that_is_acknowledged_is_offered_and_accepted() {
    let mut wire = Wire::default();
    wire.up(&syn(Some(8), 300)).down(&syn_ack(300));
    let entry = wire.entry();
    assert_eq!((entry.cookie, entry.syn_payload_bytes), (Cookie::Sent, 300));
    assert!(entry.offered() && entry.accepted());
    assert_eq!(entry.retransmits + entry.syn_retransmits, 0);
}

#[test]
fn acceptance_counts_from_the_arrival_of_the_syn_ack_not_from_its_sending() {
    let mut wire = Wire::default();
    wire.up(&syn(Some(8), 300)).lost_down(&syn_ack(300));
    assert!(wire.entry().offered());
    assert!(!wire.entry().accepted());
}

#[test]
fn a_partial_acknowledgement_is_no_acceptance() {
    for acked in [0, 1, 299, 301] {
        let mut wire = Wire::default();
        wire.up(&syn(Some(8), 300)).down(&syn_ack(acked));
        assert!(!wire.entry().accepted(), "{acked} of 300 acknowledged");
    }
}

#[test]
fn an_empty_option_asks_for_a_cookie_and_offers_nothing() {
    let mut wire = Wire::default();
    wire.up(&syn(Some(0), 0)).down(&syn_ack(0));
    assert_eq!(wire.entry().cookie, Cookie::Requested);
    assert!(!wire.entry().offered() && !wire.entry().accepted());
}

#[test]
fn a_plain_connection_offers_nothing_and_repeats_nothing() {
    let mut wire = Wire::default();
    wire.up(&syn(None, 0))
        .down(&syn_ack(0))
        .up(&from_client(0, 300))
        .down(&from_server(0, 1_448));
    let entry = wire.entry();
    assert_eq!(entry.cookie, Cookie::None);
    assert!(!entry.offered() && !entry.accepted());
    assert_eq!((entry.retransmits, entry.syn_retransmits), (0, 0));
}

#[test]
fn data_in_a_syn_without_a_cookie_is_an_offer_that_a_server_may_take() {
    for acked in [0, 300] {
        let mut wire = Wire::default();
        wire.up(&syn(None, 300)).down(&syn_ack(acked));
        assert!(wire.entry().offered());
        assert_eq!(wire.entry().accepted(), acked == 300);
    }
}

#[test]
fn cookies_are_kept_as_they_were_sent_and_as_they_reached_the_client() {
    let cookie = |segment: Segment, cookie| Segment {
        cookie_bytes: Some(8),
        cookie,
        ..segment
    };
    let mut wire = Wire::default();
    wire.up(&cookie(syn(None, 300), 7))
        .lost_down(&cookie(syn_ack(0), 8));
    assert_eq!((wire.entry().sent_cookie, wire.entry().new_cookie), (7, 0));
    wire.down(&cookie(syn_ack(0), 9));
    assert_eq!((wire.entry().sent_cookie, wire.entry().new_cookie), (7, 9));
}

#[test]
fn syn_data_sent_again_after_a_refusal_is_no_retransmission() {
    let mut wire = Wire::default();
    wire.up(&syn(Some(8), 300))
        .down(&syn_ack(0))
        .up(&from_client(0, 300))
        .up(&from_client(300, 100));
    assert!(!wire.entry().accepted());
    assert_eq!(wire.entry().retransmits, 0);
}

#[test]
fn refused_syn_data_that_is_lost_afterwards_is_a_retransmission() {
    let mut wire = Wire::default();
    wire.up(&syn(Some(8), 300))
        .down(&syn_ack(0))
        .up(&from_client(0, 300))
        .up(&from_client(0, 300));
    assert_eq!(wire.entry().retransmits, 1);
}

#[test]
fn the_first_request_of_a_plain_connection_sent_again_is_a_retransmission() {
    let mut wire = Wire::default();
    wire.up(&syn(None, 0))
        .down(&syn_ack(0))
        .up(&from_client(0, 300))
        .up(&from_client(0, 300));
    assert_eq!(wire.entry().retransmits, 1);
}

#[test]
fn accepted_syn_data_sent_again_is_a_retransmission() {
    let mut wire = Wire::default();
    wire.up(&syn(Some(8), 300))
        .down(&syn_ack(300))
        .up(&from_client(0, 300));
    assert_eq!(wire.entry().retransmits, 1);
}

#[test]
fn data_sent_again_is_counted_on_both_sides_and_acknowledgements_are_not() {
    let mut wire = Wire::default();
    wire.up(&syn(None, 0))
        .down(&syn_ack(0))
        .up(&from_client(0, 200))
        .up(&from_client(200, 200));
    wire.up(&from_client(200, 200))
        .up(&from_client(400, 0))
        .up(&from_client(400, 0));
    wire.lost_down(&from_server(0, 1_448))
        .down(&from_server(1_448, 1_448))
        .down(&from_server(0, 1_448));
    assert_eq!(wire.entry().retransmits, 2);
    assert_eq!(wire.entry().syn_retransmits, 0);
}

#[test]
fn a_syn_sent_again_is_counted_and_the_first_one_keeps_its_word() {
    let mut wire = Wire::default();
    wire.up(&syn(Some(8), 300))
        .up(&syn(None, 0))
        .down(&syn_ack(0))
        .up(&from_client(0, 300));
    let entry = wire.entry();
    assert_eq!(wire.ledger.entries().len(), 1);
    assert_eq!((entry.syn_retransmits, entry.retransmits), (1, 0));
    assert_eq!(
        (entry.cookie, entry.syn_payload_bytes, entry.opened),
        (Cookie::Sent, 300, 1)
    );
}

#[test]
fn a_syn_ack_sent_again_is_a_retransmission_of_the_server() {
    let mut wire = Wire::default();
    wire.up(&syn(Some(8), 300))
        .lost_down(&syn_ack(300))
        .down(&syn_ack(300));
    assert_eq!((wire.entry().retransmits, wire.entry().syn_retransmits), (1, 0));
    assert!(wire.entry().accepted());
}

#[test]
fn an_early_answer_sent_again_behind_its_syn_ack_is_a_retransmission_too() {
    let mut wire = Wire::default();
    wire.up(&syn(Some(8), 300))
        .lost_down(&syn_ack(300))
        .down(&from_server(0, 1_000))
        .down(&syn_ack(300))
        .down(&from_server(0, 1_000));
    assert_eq!(wire.entry().retransmits, 2);
}

#[test]
fn the_answer_behind_a_fast_open_syn_ack_is_not_taken_for_a_repetition() {
    let mut wire = Wire::default();
    wire.up(&syn(Some(8), 300))
        .down(&syn_ack(300))
        .down(&from_server(0, 1_448))
        .down(&from_server(1_448, 9));
    assert_eq!(wire.entry().retransmits, 0);
}

#[test]
fn a_connection_is_closed_by_the_second_fin() {
    let mut wire = Wire::default();
    wire.up(&syn(None, 0))
        .down(&syn_ack(0))
        .down(&fin(&from_server(0, 10)));
    assert_eq!(wire.entry().closed, None);
    wire.up(&fin(&from_client(0, 0)));
    assert_eq!(wire.entry().closed, Some(wire.now));
}

#[test]
fn a_connection_is_closed_by_a_reset_of_either_side_and_stays_closed() {
    let mut wire = Wire::default();
    wire.up(&syn(None, 0)).up(&rst(&from_client(0, 0)));
    let closed = wire.entry().closed;
    assert_eq!(closed, Some(wire.now));
    wire.down(&rst(&from_server(0, 0)));
    assert_eq!(wire.entry().closed, closed);

    let mut wire = Wire::default();
    wire.up(&syn(None, 0)).lost_down(&rst(&from_server(0, 0)));
    assert_eq!(
        wire.entry().closed,
        None,
        "a reset that never arrived closes nothing"
    );
    wire.down(&rst(&from_server(0, 0)));
    assert_eq!(wire.entry().closed, Some(wire.now));
}

#[test]
fn a_port_used_again_is_a_new_connection() {
    let mut wire = Wire::default();
    wire.up(&syn(Some(8), 300))
        .down(&syn_ack(300))
        .up(&rst(&from_client(300, 0)));
    let again = Segment {
        sequence: CLIENT_ISN.wrapping_add(100_000),
        ..syn(Some(0), 0)
    };
    wire.up(&again);
    let [first, second] = wire.ledger.entries() else {
        panic!("two connections")
    };
    let (first, second) = (&first.seen, &second.seen);
    assert!(first.accepted() && first.closed.is_some());
    assert_eq!(
        (second.cookie, second.syn_retransmits, second.closed),
        (Cookie::Requested, 0, None)
    );
    assert_eq!(wire.entry(), second);
}

#[test]
fn connections_that_differ_in_client_port_or_server_are_told_apart() {
    let mut wire = Wire::default();
    wire.up(&syn(None, 0));
    wire.up(&Segment {
        source: (CLIENT.0, CLIENT.1 + 1),
        ..syn(Some(0), 0)
    });
    wire.up(&Segment {
        destination: (IpAddr::V4(Ipv4Addr::new(198, 19, 0, 2)), 80),
        ..syn(Some(8), 7)
    });
    wire.up(&Segment {
        destination: (SERVER.0, 8_080),
        ..syn(Some(8), 9)
    });
    let cookies: Vec<_> = wire
        .ledger
        .entries()
        .iter()
        .map(|entry| entry.seen.cookie)
        .collect();
    assert_eq!(
        cookies,
        [Cookie::None, Cookie::Requested, Cookie::Sent, Cookie::Sent]
    );
}

#[test]
fn the_tail_of_a_connection_from_before_the_path_was_shaped_is_no_connection() {
    let mut wire = Wire::default();
    wire.down(&syn_ack(0))
        .up(&from_client(0, 300))
        .down(&from_server(0, 10))
        .up(&rst(&from_client(300, 0)));
    assert!(wire.ledger.entries().is_empty());
}

#[test]
fn bytes_are_those_of_ip_packets_sent_up_and_arrived_down() {
    let mut wire = Wire::default();
    wire.up(&syn(None, 0)).down(&syn_ack(0)).up(&from_client(0, 300));
    wire.down(&from_server(0, 1_000))
        .lost_down(&from_server(1_000, 500));
    let entry = wire.entry();
    assert_eq!(entry.bytes_up, u64::from(HEADERS + HEADERS + 300));
    assert_eq!(entry.bytes_down, u64::from(HEADERS + HEADERS + 1_000));
}
