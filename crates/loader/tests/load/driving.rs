//! The interface to drivers: what they may rely on, and which of their errors are harmless.

use firstflight_loader::{Command, Config, ConnId, Event, Http2, Loader, Quic, RACE};
use firstflight_page::Page;

use crate::network::MS;
use crate::pages::{at_byte, document, image, page};

const CONN: ConnId = ConnId(0);

/// A loader of a document of 1,000 bytes that refers to an image at byte 500; its request is on its way.
fn requested() -> Loader {
    let page = page(vec![document(1_000), at_byte(500, image("b.test"))]);
    let mut loader = Loader::new(
        &page,
        Config {
            load_timeout: 100 * MS,
            ..Config::default()
        },
        0,
    );
    assert_eq!(
        loader.poll(),
        Some(Command::Open {
            conn: CONN,
            origin: 0,
            quic: false
        })
    );
    loader.handle(0, Event::Writable(CONN));
    assert_eq!(
        loader.poll(),
        Some(Command::Send {
            conn: CONN,
            request: 0
        })
    );
    loader.handle(
        0,
        Event::RequestSent {
            conn: CONN,
            request: 0,
        },
    );
    loader
}

fn head(request: usize, status: u16) -> Event<'static> {
    Event::Head {
        conn: CONN,
        request,
        status,
        location: None,
    }
}

#[test]
fn origins_are_numbered_in_order_of_first_use() {
    let names: Vec<_> = requested().origins().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["http://a.test", "http://b.test"]);
}

#[test]
fn a_body_that_is_told_before_its_head_is_parsed_when_the_head_is_there() {
    let mut loader = requested();
    loader.handle(
        MS,
        Event::Body {
            conn: CONN,
            request: 0,
            bytes: 600,
        },
    );
    assert_eq!(loader.poll(), None);
    loader.handle(2 * MS, head(0, 200));
    assert_eq!(
        loader.poll(),
        Some(Command::Open {
            conn: ConnId(1),
            origin: 1,
            quic: false
        })
    );
    let document = &loader.finish(3 * MS).requests[0];
    assert_eq!((document.first_byte, document.body_bytes), (Some(MS), 600));
}

#[test]
fn a_response_has_one_head() {
    let mut loader = requested();
    loader.handle(MS, head(0, 200));
    loader.handle(MS, head(0, 404));
    assert_eq!(loader.finish(2 * MS).requests[0].status, Some(200));
}

#[test]
fn a_response_without_a_head_is_no_response() {
    let mut loader = requested();
    loader.handle(
        MS,
        Event::Body {
            conn: CONN,
            request: 0,
            bytes: 1_000,
        },
    );
    loader.handle(
        MS,
        Event::End {
            conn: CONN,
            request: 0,
            reusable: true,
        },
    );
    assert!(loader.is_done());
    assert_eq!(
        loader.finish(MS).failed.as_deref(),
        Some("the document failed: the response has no header")
    );
}

#[test]
fn what_was_due_before_an_event_happens_before_it() {
    let mut loader = requested();
    loader.handle(200 * MS, head(0, 200));
    assert!(loader.is_done());
    let record = loader.finish(200 * MS);
    assert_eq!((record.end, record.requests[0].status), (100 * MS, None));
    assert_eq!(record.failed.as_deref(), Some("the load timed out after 100 ms"));
}

#[test]
fn a_load_that_is_done_waits_for_nothing() {
    let page = page(vec![document(0)]);
    let mut loader = Loader::new(&page, Config::default(), 0);
    loader.handle(0, Event::Writable(CONN));
    loader.handle(1, head(0, 200));
    assert!(loader.next_timeout().is_some());
    loader.handle(
        1,
        Event::End {
            conn: CONN,
            request: 0,
            reusable: true,
        },
    );
    assert_eq!(loader.next_timeout(), None);
    loader.handle(
        u64::MAX,
        Event::Failed {
            conn: CONN,
            error: "closed",
        },
    );
    assert_eq!(loader.finish(u64::MAX).end, 1);
}

/// A page over https with a number of images, all referred to at its first byte.
fn secure(images: usize) -> Page {
    let mut resources = vec![document(1_000)];
    resources.extend((0..images).map(|_| at_byte(1, image("a.test"))));
    let mut page = page(resources);
    for resource in &mut page.resources {
        resource.url = resource.url.replace("http://", "https://");
    }
    page
}

#[test]
fn http2_carries_all_requests_of_an_origin_on_one_connection() {
    let config = Config {
        http2: Http2::Always,
        ..Config::default()
    };
    let mut loader = Loader::new(&secure(20), config, 0);
    assert!(matches!(loader.poll(), Some(Command::Open { .. })));
    loader.handle(0, Event::Writable(CONN));
    assert!(matches!(loader.poll(), Some(Command::Send { request: 0, .. })));
    loader.handle(MS, head(0, 200));
    loader.handle(
        MS,
        Event::Body {
            conn: CONN,
            request: 0,
            bytes: 600,
        },
    );
    let sent: Vec<_> = std::iter::from_fn(|| loader.poll()).collect();
    assert_eq!(sent.len(), 20);
    assert!(
        sent.iter()
            .all(|command| matches!(command, Command::Send { conn: CONN, .. }))
    );
    loader.handle(2 * MS, head(20, 200));
    loader.handle(
        3 * MS,
        Event::Failed {
            conn: CONN,
            error: "reset",
        },
    );
    let record = loader.finish(3 * MS);
    assert_eq!(record.requests[20].status, Some(200));
    assert_eq!(record.requests[19].status, None);
    assert!(
        record
            .requests
            .iter()
            .all(|request| request.error.as_deref() == Some("reset"))
    );
}

/// A loader that uses QUIC, with the connection that it has opened.
fn over_quic(images: usize) -> Loader {
    let config = Config {
        quic: Quic::WhereItWorks,
        ..Config::default()
    };
    let mut loader = Loader::new(&secure(images), config, 0);
    assert_eq!(
        loader.poll(),
        Some(Command::Open {
            conn: CONN,
            origin: 0,
            quic: true
        })
    );
    loader
}

const BESIDE: ConnId = ConnId(1);

#[test]
fn quic_that_gets_through_in_time_has_no_connection_beside_it() {
    let mut loader = over_quic(3);
    loader.handle(100 * MS, Event::Established(CONN));
    loader.handle(100 * MS, Event::Writable(CONN));
    assert!(matches!(
        loader.poll(),
        Some(Command::Send {
            conn: CONN,
            request: 0
        })
    ));
    loader.handle_timeout(RACE);
    assert_eq!(loader.poll(), None);
}

#[test]
fn a_connection_over_tcp_races_quic_and_takes_what_that_was_given_if_it_is_ready_first() {
    // With a ticket the client sends a request at once, whether the server is reachable or not.
    for has_ticket in [false, true] {
        let mut loader = over_quic(0);
        if has_ticket {
            loader.handle(0, Event::Writable(CONN));
            assert!(matches!(loader.poll(), Some(Command::Send { conn: CONN, .. })));
        }
        loader.handle_timeout(RACE);
        let beside = Command::Open {
            conn: BESIDE,
            origin: 0,
            quic: false,
        };
        assert_eq!(loader.poll(), Some(beside), "{has_ticket}");
        loader.handle(RACE + MS, Event::Writable(BESIDE));
        let commands: Vec<_> = std::iter::from_fn(|| loader.poll()).collect();
        assert!(commands.contains(&Command::Close { conn: CONN }), "{commands:?}");
        let again = Command::Send {
            conn: BESIDE,
            request: 0,
        };
        assert!(commands.contains(&again), "{commands:?}");
    }
}

#[test]
fn where_quic_is_all_that_is_spoken_nothing_races_it_and_its_failure_is_the_page_s() {
    let config = Config {
        quic: Quic::Always,
        ..Config::default()
    };
    let mut loader = Loader::new(&secure(0), config, 0);
    assert!(matches!(loader.poll(), Some(Command::Open { quic: true, .. })));
    loader.handle_timeout(2 * RACE);
    assert_eq!(loader.poll(), None);
    let error = "QUIC: timed out";
    loader.handle(3 * RACE, Event::Failed { conn: CONN, error });
    assert_eq!(loader.finish(3 * RACE).requests[0].error.as_deref(), Some(error));
}

#[test]
fn a_connection_over_tcp_that_comes_too_late_is_closed() {
    let mut loader = over_quic(0);
    loader.handle_timeout(RACE);
    assert!(matches!(
        loader.poll(),
        Some(Command::Open {
            conn: BESIDE,
            quic: false,
            ..
        })
    ));
    loader.handle(RACE + MS, Event::Established(CONN));
    loader.handle(RACE + MS, Event::Writable(CONN));
    assert!(matches!(loader.poll(), Some(Command::Send { conn: CONN, .. })));
    loader.handle(RACE + 2 * MS, Event::Writable(BESIDE));
    assert_eq!(loader.poll(), Some(Command::Close { conn: BESIDE }));
}

#[test]
fn an_origin_where_quic_fails_is_spoken_to_over_tcp_for_the_rest_of_the_load() {
    let mut loader = over_quic(3);
    let error = "refused";
    loader.handle(MS, Event::Failed { conn: CONN, error });
    let Some(Command::Open {
        conn, quic: false, ..
    }) = loader.poll()
    else {
        panic!("no connection over TCP")
    };
    loader.handle(2 * MS, Event::Writable(conn));
    assert!(matches!(loader.poll(), Some(Command::Send { request: 0, .. })));
    loader.handle(3 * MS, head(0, 200));
    loader.handle_timeout(2 * RACE);
    let opened = std::iter::from_fn(|| loader.poll());
    let over_quic = opened.filter(|command| matches!(command, Command::Open { quic: true, .. }));
    assert_eq!(over_quic.count(), 0);
}
