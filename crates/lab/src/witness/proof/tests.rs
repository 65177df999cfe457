use std::net::{IpAddr, Ipv4Addr};

use firstflight_load::Cookies;
use firstflight_load::ledger::EcnBits;
use firstflight_load::promise::{Client, FastOpen};
use firstflight_path::{Action, Direction};

use super::*;
use crate::ledger::Ledger;
use crate::packet::{Segment, TcpFlags};

/// What one connection does on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Opening {
    Plain,
    AsksForACookie,
    DataAccepted,
    DataRefused,
}

/// `tfo` with warm cookies.
const ALWAYS: FastOpen = FastOpen::Cookies {
    cookies: Cookies::Warm,
    seed: 1,
};

use Opening::{AsksForACookie, DataAccepted, DataRefused, Plain};

/// The relay's entry of such a connection.
fn entry(connection: u32, opening: Opening) -> Entry {
    let client = (
        IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)),
        40_000 + connection as u16,
    );
    let server = (IpAddr::V4(Ipv4Addr::new(198, 19, 0, 1)), 80);
    let (cookie_bytes, payload_bytes, acked) = match opening {
        Plain => (None, 0, 0),
        AsksForACookie => (Some(0), 0, 0),
        DataAccepted => (Some(8), 300, 300),
        DataRefused => (Some(8), 300, 0),
    };
    let syn = Segment {
        source: client,
        destination: server,
        sequence: 1_000,
        acknowledgment: 0,
        flags: TcpFlags {
            syn: true,
            ..TcpFlags::default()
        },
        payload_bytes,
        cookie_bytes,
        cookie: cookie_bytes.map_or(0, |bytes| u128::from(bytes > 0)),
        packet_bytes: 60 + payload_bytes,
        ecn: EcnBits::default(),
        window: 64_240,
    };
    let syn_ack = Segment {
        source: server,
        destination: client,
        acknowledgment: 1_001 + acked,
        flags: TcpFlags {
            syn: true,
            ack: true,
            ..TcpFlags::default()
        },
        payload_bytes: 0,
        cookie_bytes: None,
        cookie: 0,
        ..syn.clone()
    };
    let mut ledger = Ledger::default();
    ledger.sent(Direction::Up, 1, &syn);
    ledger.sent(Direction::Down, 2, &syn_ack);
    ledger.arrived(3, &syn_ack);
    ledger.entries()[0].clone()
}

/// The reports of honest witnesses.
fn honest(openings: &[Opening]) -> (Vec<Statement>, Counters) {
    let accepted = |opening: Opening| opening == DataAccepted;
    let statement = |(connection, opening): (usize, &Opening)| Statement {
        client: Client::default(),
        connection: connection as u32,
        ledger: Some(entry(connection as u32, *opening)),
        tcp_info: Some(accepted(*opening)),
        server: None,
    };
    let taken = openings.iter().filter(|opening| accepted(**opening)).count() as u64;
    let count = |which| openings.iter().filter(|opening| **opening == which).count() as u64;
    let counters = Counters {
        active: taken,
        passive: taken,
        active_fail: count(DataRefused),
        passive_fail: count(DataRefused),
        cookie_requests: count(AsksForACookie),
        ..Counters::default()
    };
    (openings.iter().enumerate().map(statement).collect(), counters)
}

/// The disagreements after `fake` has changed the reports.
fn disagreements(
    promise: FastOpen,
    openings: &[Opening],
    fake: impl FnOnce(&mut Vec<Statement>, &mut Counters),
) -> Vec<String> {
    let (mut statements, mut counters) = honest(openings);
    fake(&mut statements, &mut counters);
    let proof = examine(&promise.into(), &statements, std::iter::empty(), counters);
    assert_eq!(
        proof.ok,
        proof.disagreements.is_empty(),
        "the verdict is nothing but the disagreements"
    );
    proof.disagreements
}

fn nothing_faked(_: &mut Vec<Statement>, _: &mut Counters) {}

#[test]
fn honest_witnesses_prove_each_treatment() {
    let cases: [(FastOpen, &[Opening]); 5] = [
        (FastOpen::Never, &[Plain, Plain]),
        (ALWAYS, &[DataAccepted, DataAccepted]),
        (
            FastOpen::Agreement,
            &[AsksForACookie, DataAccepted, DataRefused, Plain],
        ),
        (FastOpen::Never, &[]),
        (ALWAYS, &[]),
    ];
    for (promise, openings) in cases {
        assert_eq!(
            disagreements(promise, openings, nothing_faked),
            [""; 0],
            "{promise:?}"
        );
    }
}

#[test]
fn the_proof_counts_what_each_witness_saw() {
    let (statements, counters) = honest(&[DataAccepted, DataRefused, Plain]);
    let proof = examine(
        &FastOpen::Agreement.into(),
        &statements,
        std::iter::empty(),
        counters,
    );
    assert_eq!(
        proof.ledger,
        Count {
            connections: 3,
            asked: 0,
            offered: 2,
            accepted: 1,
            given: 0,
            interfered: 0
        }
    );
    assert_eq!(proof.tcp_info.syn_data, 1);
    assert_eq!((proof.counters.active, proof.counters.passive), (1, 1));
}

#[test]
fn a_server_may_count_a_cookie_whose_data_a_middlebox_cut_off_and_no_other() {
    let counts_both = |interfered| {
        disagreements(
            FastOpen::Agreement,
            &[DataAccepted, DataRefused],
            |statements, counters| {
                statements[1].ledger.as_mut().unwrap().seen.interfered = interfered;
                counters.passive += 1;
            },
        )
    };
    assert_eq!(counts_both(Some(Action::StripData)), [""; 0]);
    for interfered in [None, Some(Action::StripOption), Some(Action::Drop)] {
        let found = counts_both(interfered);
        assert!(
            found.len() == 1 && found[0].contains("TCPFastOpenPassive"),
            "{found:?}"
        );
    }
}

#[test]
fn a_connection_the_relay_never_saw_is_no_proof() {
    let found = disagreements(FastOpen::Agreement, &[Plain], |statements, _| {
        statements[0].ledger = None;
    });
    assert_eq!(found, ["connection 0: the relay never saw its first packet"]);
}

#[test]
fn a_socket_that_could_not_be_asked_is_no_proof() {
    let found = disagreements(FastOpen::Never, &[Plain], |statements, _| {
        statements[0].tcp_info = None;
    });
    assert_eq!(found, ["connection 0: its socket could not be asked"]);
}

#[test]
fn a_socket_that_contradicts_the_relay_is_no_proof_either_way() {
    let openings = [DataAccepted, DataRefused];
    for (connection, lie) in [(0, false), (1, true)] {
        let found = disagreements(FastOpen::Agreement, &openings, |statements, _| {
            statements[connection].tcp_info = Some(lie);
        });
        let [text] = found.as_slice() else {
            panic!("one disagreement: {found:?}")
        };
        assert!(
            text.starts_with(&format!("connection {connection}: ")) && text.contains("TCP_INFO"),
            "{text}"
        );
    }
}

#[test]
fn counters_that_grew_too_much_or_too_little_are_no_proof() {
    for promise in [ALWAYS, FastOpen::Agreement] {
        for change in [-1, 1] {
            let found = disagreements(promise, &[DataAccepted, DataAccepted], |_, counters| {
                counters.active = counters.active.saturating_add_signed(change);
            });
            assert!(
                found.len() == 1 && found[0].starts_with("TCPFastOpenActive grew by"),
                "{found:?}"
            );
            let found = disagreements(promise, &[DataAccepted, DataAccepted], |_, counters| {
                counters.passive = counters.passive.saturating_add_signed(change);
            });
            assert!(
                found.len() == 1 && found[0].starts_with("TCPFastOpenPassive grew by"),
                "{found:?}"
            );
        }
    }
}

#[test]
fn counters_that_grew_in_a_tcp_load_are_no_proof() {
    let found = disagreements(FastOpen::Never, &[Plain], |_, counters| {
        (counters.active, counters.passive) = (1, 1);
    });
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn any_use_of_fast_open_in_a_tcp_load_is_no_proof() {
    for opening in [AsksForACookie, DataAccepted, DataRefused] {
        let found = disagreements(FastOpen::Never, &[Plain, opening], nothing_faked);
        assert_eq!(
            found,
            ["connection 1: its SYN used Fast Open in a tcp load"],
            "{opening:?}"
        );
    }
}

#[test]
fn a_warm_tfo_load_needs_data_in_every_syn_and_every_bit_of_it_accepted() {
    for opening in [Plain, AsksForACookie] {
        let found = disagreements(ALWAYS, &[DataAccepted, opening], nothing_faked);
        assert_eq!(
            found,
            ["connection 1: its SYN carried no data in a warm tfo load"],
            "{opening:?}"
        );
    }
    let found = disagreements(ALWAYS, &[DataAccepted, DataRefused], nothing_faked);
    assert_eq!(found, ["connection 1: its SYN's data was not acknowledged"]);
}

#[test]
fn a_syn_that_a_full_queue_dropped_and_that_was_sent_again_is_no_contradiction() {
    let found = disagreements(ALWAYS, &[DataAccepted, DataRefused], |statements, _| {
        statements[1].ledger.as_mut().unwrap().seen.syn_retransmits = 1;
    });
    assert_eq!(found, [""; 0]);
    let found = disagreements(ALWAYS, &[AsksForACookie], |statements, _| {
        statements[0].ledger.as_mut().unwrap().seen.syn_retransmits = 1;
    });
    assert_eq!(found.len(), 1, "it never offered data: {found:?}");
}

#[test]
fn two_lies_that_cancel_out_in_the_sums_are_still_found() {
    let found = disagreements(
        FastOpen::Agreement,
        &[DataAccepted, DataRefused],
        |statements, _| {
            (statements[0].tcp_info, statements[1].tcp_info) = (Some(false), Some(true));
        },
    );
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn every_contradiction_is_listed() {
    let found = disagreements(ALWAYS, &[DataAccepted; 3], |statements, counters| {
        statements[0].ledger = None;
        statements[1].tcp_info = Some(false);
        counters.passive = 0;
    });
    // The connection that the relay did not see is missing from its counts, too.
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn each_counter_is_held_against_what_the_relay_saw() {
    type Counter = fn(&mut Counters) -> &mut u64;
    let openings = [AsksForACookie, DataAccepted, DataRefused];
    let wrong: [(&str, Counter); 4] = [
        ("TCPFastOpenCookieReqd", |counters| &mut counters.cookie_requests),
        ("TCPFastOpenActiveFail", |counters| &mut counters.active_fail),
        ("TCPFastOpenPassiveFail", |counters| &mut counters.passive_fail),
        ("TCPFastOpenPassiveAltKey", |counters| {
            &mut counters.passive_alt_key
        }),
    ];
    for (name, counter) in wrong {
        let found = disagreements(FastOpen::Agreement, &openings, |_, counters| {
            *counter(counters) += 1;
        });
        assert!(found.len() == 1 && found[0].starts_with(name), "{found:?}");
    }
}
