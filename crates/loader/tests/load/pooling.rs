//! Which request gets which connection.

use firstflight_loader::{Command, Config, ConnId, NANOS_PER_MS};
use firstflight_page::{Kind, Resource, Via};

use crate::network::{Network, RTT};
use crate::pages::{at_byte, document, found, image, page};

/// A document that refers at once to `count` images on `b.test`.
fn gallery(count: usize) -> firstflight_page::Page {
    page([vec![document(0)], vec![image("b.test"); count]].concat())
}

#[test]
fn an_origin_gets_six_connections_and_no_more() {
    for count in [1, 5, 6, 7, 40] {
        assert_eq!(
            Network::default().load(&gallery(count)).peak_per_origin,
            count.min(6)
        );
    }
}

#[test]
fn the_seventh_request_waits_for_the_first_response() {
    let outcome = Network::default().load(&gallery(7));
    let seventh = &outcome.record.requests[7];
    assert_eq!((seventh.queued, seventh.sent), (Some(2 * RTT), Some(4 * RTT)));
    assert_eq!(outcome.record.plt, Some(5 * RTT));
}

#[test]
fn the_most_urgent_request_gets_the_first_connection_whoever_opened_it() {
    let kinds = [
        Kind::Other,
        Kind::Image,
        Kind::Xhr,
        Kind::Font,
        Kind::Script,
        Kind::Style,
        Kind::Frame,
    ];
    let children = kinds.map(|kind| found(kind, "b.test", 0, Via::Parser));
    let page = page([vec![document(0)], children.to_vec()].concat());
    let one = Config {
        connections_per_origin: 1,
        ..Config::default()
    };
    assert_eq!(
        Network::default().load_with(&page, one).sent(),
        [0, 7, 6, 4, 5, 3, 2, 1]
    );
}

#[test]
fn requests_of_the_same_priority_go_in_order_of_discovery() {
    let one = Config {
        connections_per_origin: 1,
        ..Config::default()
    };
    let sent = Network::default().load_with(&gallery(20), one).sent();
    assert_eq!(sent, (0..=20).collect::<Vec<_>>());
}

#[test]
fn a_late_style_sheet_takes_the_connection_that_was_opened_for_an_image() {
    // The style sheet is found 50 ms after the image, while the image's connection is being opened.
    let sheet = at_byte(500, found(Kind::Style, "b.test", 0, Via::Parser));
    let page = page(vec![document(500), image("b.test"), sheet]);
    let network = Network {
        per_byte: RTT / 1_000,
        ..Network::default()
    };
    let outcome = network.load(&page);
    assert_eq!(outcome.sent(), [0, 2, 1]);
    let (image, sheet) = (&outcome.record.requests[1], &outcome.record.requests[2]);
    assert_eq!((sheet.conn, image.conn), (Some(ConnId(1)), Some(ConnId(2))));
    // Its connect time is only the part of the handshake that it waited for.
    assert_eq!(
        (sheet.connect_start, sheet.connect_end),
        (Some(5 * RTT / 2), Some(3 * RTT))
    );
}

#[test]
fn an_idle_connection_is_used_before_a_new_one_is_opened() {
    let script = found(Kind::Script, "b.test", 0, Via::Parser);
    let page = page(vec![
        document(0),
        script,
        found(Kind::Xhr, "b.test", 1, Via::Script),
    ]);
    let record = Network::default().load(&page).record;
    assert_eq!(record.requests[2].conn, record.requests[1].conn);
    assert_eq!(record.connections.len(), 2);
}

#[test]
fn of_idle_connections_the_most_recently_used_is_taken() {
    let slow = Resource {
        server_ms: 10.0,
        ..image("b.test")
    };
    let script = Resource {
        server_ms: 20.0,
        ..found(Kind::Script, "c.test", 0, Via::Parser)
    };
    let late = found(Kind::Xhr, "b.test", 4, Via::Script);
    let page = page(vec![
        document(0),
        image("b.test"),
        slow,
        image("b.test"),
        script,
        late,
    ]);
    let record = Network::default().load(&page).record;
    assert_eq!(record.requests[5].conn, record.requests[2].conn);
}

#[test]
fn a_connection_carries_one_request_if_either_side_wants_it_so() {
    let page = page(vec![
        document(0),
        image("a.test"),
        found(Kind::Xhr, "a.test", 0, Via::Script),
    ]);
    let closing_client = Config {
        keep_alive: false,
        ..Config::default()
    };
    let closing_server = Network {
        closes: true,
        ..Network::default()
    };
    for outcome in [
        Network::default().load_with(&page, closing_client),
        closing_server.load(&page),
    ] {
        let requests = &outcome.record.requests;
        for connection in &outcome.record.connections {
            let request = requests
                .iter()
                .find(|request| request.conn == Some(connection.conn));
            assert_eq!(connection.requests, 1);
            assert_eq!(connection.closed, request.and_then(|request| request.end));
        }
    }
}

#[test]
fn an_idle_connection_makes_room_for_another_origin() {
    let two = Config {
        max_connections: 2,
        ..Config::default()
    };
    let page = page(vec![
        document(0),
        image("b.test"),
        image("c.test"),
        image("d.test"),
    ]);
    let outcome = Network::default().load_with(&page, two);
    assert_eq!(outcome.peak, 2);
    assert_eq!(outcome.record.connections.len(), 4);
    assert!(
        outcome
            .commands
            .contains(&(2 * RTT, Command::Close { conn: ConnId(0) }))
    );
    assert!(
        outcome
            .record
            .requests
            .iter()
            .all(|request| request.error.is_none())
    );
}

#[test]
fn a_free_slot_goes_to_the_origin_of_the_most_urgent_request() {
    let one = Config {
        max_connections: 1,
        ..Config::default()
    };
    let sheet = found(Kind::Style, "d.test", 0, Via::Parser);
    let page = page(vec![document(0), image("b.test"), image("c.test"), sheet]);
    let outcome = Network::default().load_with(&page, one);
    // The document's connection is idle only once its response has ended; by then all three wait.
    assert_eq!(outcome.sent(), [0, 3, 1, 2]);
}

#[test]
fn the_slot_of_a_closed_connection_is_not_its_own_origins() {
    let config = Config {
        max_connections: 1,
        keep_alive: false,
        ..Config::default()
    };
    let sheet = found(Kind::Style, "b.test", 0, Via::Parser);
    let page = page(vec![document(0), image("a.test"), sheet, image("a.test")]);
    assert_eq!(Network::default().load_with(&page, config).sent(), [0, 2, 1, 3]);
}

#[test]
fn limits_of_nothing_are_taken_for_one() {
    let none = Config {
        connections_per_origin: 0,
        max_connections: 0,
        ..Config::default()
    };
    let outcome = Network::default().load_with(&gallery(3), none);
    assert_eq!((outcome.peak, outcome.record.failed), (1, None));
}

#[test]
fn a_connection_that_nobody_waits_for_any_more_stays_idle() {
    // The second image is found while the first is being loaded; before its own connection is open, the first
    // image's is free again and takes it.
    let quick = Resource {
        body_bytes: 0,
        ..image("a.test")
    };
    let second = Resource {
        body_bytes: 0,
        ..at_byte(500, image("a.test"))
    };
    let page = page(vec![document(500), quick, second]);
    let network = Network {
        per_byte: 50 * NANOS_PER_MS / 500,
        chunk: 100,
        ..Network::default()
    };
    let record = network.load(&page).record;
    let spare: Vec<_> = record
        .connections
        .iter()
        .filter(|connection| connection.requests == 0)
        .collect();
    assert_eq!(spare.len(), 1);
    assert_eq!(spare[0].closed, None);
}
