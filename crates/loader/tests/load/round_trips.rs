//! Page load times, in round trips.

use firstflight_loader::Config;
use firstflight_page::{Kind, Page, Via};

use crate::network::{Network, RTT};
use crate::pages::{document, found, image, page, redirecting};

/// A chain of `length` resources, each on its own host: a document, its script, a script that this one requests,
/// ...
fn chain(length: usize) -> Page {
    let link = |index: usize| {
        let via = if index == 1 { Via::Parser } else { Via::Script };
        found(Kind::Script, &format!("h{index}.test"), index - 1, via)
    };
    page(
        std::iter::once(document(1_000))
            .chain((1..length).map(link))
            .collect(),
    )
}

fn tfo() -> Network {
    Network {
        tfo: true,
        ..Network::default()
    }
}

#[test]
fn a_chain_over_new_connections_costs_two_round_trips_a_link() {
    for length in 1..10 {
        assert_eq!(
            Network::default().load(&chain(length)).record.plt,
            Some(length as u64 * 2 * RTT)
        );
    }
}

#[test]
fn a_chain_over_new_connections_costs_one_round_trip_a_link_with_fast_open() {
    for length in 1..10 {
        assert_eq!(tfo().load(&chain(length)).record.plt, Some(length as u64 * RTT));
    }
}

#[test]
fn one_origin_with_keep_alive_pays_for_one_handshake() {
    let page = page(vec![
        document(1_000),
        found(Kind::Style, "a.test", 0, Via::Parser),
        { found(Kind::Image, "a.test", 1, Via::Style) },
    ]);
    let outcome = Network::default().load(&page);
    // The style sheet is found when the document's header arrives, so the loader opens a second connection for it.
    // But it is sent on the first, which becomes free at the same time.
    assert_eq!(outcome.record.plt, Some(4 * RTT));
    assert_eq!(tfo().load(&page).record.plt, Some(3 * RTT));
}

#[test]
fn without_keep_alive_every_request_pays_for_its_handshake() {
    let config = Config {
        keep_alive: false,
        ..Config::default()
    };
    let page = page(vec![document(0), image("a.test"), image("a.test")]);
    let outcome = Network::default().load_with(&page, config);
    assert_eq!(outcome.record.connections.len(), 3);
    assert!(
        outcome
            .record
            .connections
            .iter()
            .all(|connection| connection.requests == 1)
    );
    assert_eq!(outcome.record.plt, Some(4 * RTT));
    assert_eq!(tfo().load_with(&page, config).record.plt, Some(2 * RTT));
}

#[test]
fn a_redirect_to_another_host_costs_the_same_as_a_page() {
    let target = found(Kind::Document, "b.test", 0, Via::Redirect);
    let page = page(vec![redirecting(document(0)), target]);
    assert_eq!(Network::default().load(&page).record.plt, Some(4 * RTT));
    assert_eq!(tfo().load(&page).record.plt, Some(2 * RTT));
}

#[test]
fn first_byte_is_the_documents_after_its_redirects() {
    let target = found(Kind::Document, "b.test", 0, Via::Redirect);
    let page = page(vec![redirecting(document(0)), target]);
    assert_eq!(Network::default().load(&page).record.first_byte, Some(4 * RTT));
    assert_eq!(
        Network::default().load(&chain(3)).record.first_byte,
        Some(2 * RTT)
    );
}

#[test]
fn times_of_a_request_are_those_of_its_parts() {
    let record = Network::default().load(&chain(2)).record;
    let script = &record.requests[1];
    assert_eq!(script.queued, Some(2 * RTT));
    assert_eq!(script.connect_start, Some(2 * RTT));
    assert_eq!(script.connect_end, Some(3 * RTT));
    assert_eq!(script.sent, Some(3 * RTT));
    assert_eq!(script.first_byte, Some(4 * RTT));
    assert_eq!(script.end, Some(4 * RTT));
    assert_eq!(
        (script.status, script.body_bytes, script.initiator),
        (Some(200), 1_000, Some(0))
    );
}

#[test]
fn a_request_on_a_reused_connection_has_no_connect_times() {
    let page = page(vec![document(1_000), found(Kind::Xhr, "a.test", 0, Via::Script)]);
    let record = Network::default().load(&page).record;
    assert_eq!(record.requests[0].conn, record.requests[1].conn);
    assert_eq!(
        (record.requests[1].connect_start, record.requests[1].connect_end),
        (None, None)
    );
}
