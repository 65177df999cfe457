//! Failing requests.

use firstflight_loader::{Command, Config, ConnId};
use firstflight_page::{Kind, Resource, Via};

use crate::network::{Fault, MS, Network, RTT};
use crate::pages::{at_byte, document, found, image, page, redirecting};

const REQUEST_TIMEOUT: u64 = 1_000 * MS;

fn patient() -> Config {
    Config {
        request_timeout: REQUEST_TIMEOUT,
        ..Config::default()
    }
}

fn with(resource: usize, fault: Fault) -> Network {
    Network {
        faults: [(resource, fault)].into(),
        ..Network::default()
    }
}

#[test]
fn a_request_that_is_never_answered_fails_and_the_load_goes_on() {
    let page = page(vec![document(0), image("b.test"), image("c.test")]);
    let outcome = with(1, Fault::NeverAnswers).load_with(&page, patient());
    assert_eq!(outcome.error(1), "timed out: no progress for 1000 ms");
    assert_eq!(outcome.error(2), "");
    assert_eq!(outcome.record.plt, Some(3 * RTT + REQUEST_TIMEOUT));
    assert_eq!(outcome.record.failed, None);
    assert!(
        outcome
            .commands
            .contains(&(3 * RTT + REQUEST_TIMEOUT, Command::Close { conn: ConnId(1) }))
    );
}

#[test]
fn a_slow_answer_is_not_timed_out_while_it_makes_progress() {
    let slow = Network {
        per_byte: MS / 2,
        ..Network::default()
    };
    let page = page(vec![
        document(0),
        Resource {
            body_bytes: 10_000,
            ..image("b.test")
        },
    ]);
    assert_eq!(
        slow.load_with(&page, patient()).record.plt,
        Some(4 * RTT + 5_000 * MS)
    );
}

#[test]
fn waiting_for_a_free_connection_is_not_timed_out() {
    let slow = || Resource {
        server_ms: 800.0,
        ..image("b.test")
    };
    let page = page([vec![document(0)], (0..24).map(|_| slow()).collect()].concat());
    let outcome = Network::default().load_with(&page, patient());
    assert!(
        outcome
            .record
            .requests
            .iter()
            .all(|request| request.error.is_none())
    );
}

#[test]
fn a_host_that_does_not_answer_fails_its_requests_one_connection_each() {
    let mut network = Network::default();
    network.silent.insert(1);
    let page = page([vec![document(0)], vec![image("b.test"); 8]].concat());
    let outcome = network.load_with(&page, patient());
    assert!((1..=8).all(|resource| outcome.error(resource) == "timed out: no connection within 1000 ms"));
    assert_eq!(outcome.record.connections.len(), 9);
    assert_eq!(outcome.record.plt, Some(2 * RTT + 2 * REQUEST_TIMEOUT));
}

#[test]
fn a_refused_connection_fails_the_request_that_waits_first() {
    let mut network = Network::default();
    network.refusing.insert(1);
    let outcome = network.load(&page(vec![document(0), image("b.test")]));
    let request = &outcome.record.requests[1];
    assert_eq!(outcome.error(1), "refused");
    assert_eq!(
        (request.conn, request.connect_start),
        (Some(ConnId(1)), Some(2 * RTT))
    );
    assert_eq!((request.connect_end, request.sent), (None, None));
}

#[test]
fn what_a_failed_request_would_have_found_is_never_asked_for() {
    let script = found(Kind::Script, "b.test", 0, Via::Parser);
    let page = page(vec![
        document(0),
        script,
        found(Kind::Xhr, "c.test", 1, Via::Script),
    ]);
    let outcome = with(1, Fault::ResetsAfter(999)).load(&page);
    assert_eq!(outcome.sent(), [0, 1]);
    assert_eq!(
        outcome.error(2),
        "never discovered: resource 1 did not get that far"
    );
    assert_eq!(outcome.record.requests[2].queued, None);
    assert_eq!(outcome.record.requests[1].body_bytes, 999);
}

#[test]
fn a_response_that_the_page_does_not_have_is_a_failed_request() {
    let script = found(Kind::Script, "b.test", 0, Via::Parser);
    let page = page(vec![
        document(0),
        script,
        found(Kind::Xhr, "c.test", 1, Via::Script),
    ]);
    for (fault, error) in [
        (Fault::Status(404), "status 404, the page has 200"),
        (Fault::Ends(10), "body of 10 bytes, the page has 1000"),
        (Fault::Ends(1_001), "body of 1001 bytes, the page has 1000"),
    ] {
        let outcome = with(1, fault).load(&page);
        assert_eq!((outcome.error(1), outcome.sent()), (error, vec![0, 1]));
    }
}

#[test]
fn the_body_of_a_response_that_the_page_does_not_have_is_not_parsed() {
    let frame = found(Kind::Frame, "b.test", 0, Via::Parser);
    let page = page(vec![
        document(0),
        frame,
        at_byte(10, found(Kind::Image, "c.test", 1, Via::Parser)),
    ]);
    assert_eq!(Network::default().load(&page).sent(), [0, 1, 2]);
    assert_eq!(with(1, Fault::Status(404)).load(&page).sent(), [0, 1]);
}

#[test]
fn a_redirect_without_location_leads_nowhere() {
    let page = page(vec![
        document(0),
        redirecting(image("b.test")),
        found(Kind::Image, "c.test", 1, Via::Redirect),
    ]);
    let outcome = with(1, Fault::NoLocation).load(&page);
    assert_eq!(
        outcome.error(1),
        "status 302 without Location: it redirects nowhere"
    );
    assert_eq!(outcome.sent(), [0, 1]);
}

#[test]
fn a_request_on_a_reused_connection_that_was_dead_is_sent_again_on_a_new_one() {
    let network = Network {
        dies_after: Some(1),
        ..Network::default()
    };
    let page = page(vec![document(0), found(Kind::Xhr, "a.test", 0, Via::Script)]);
    let outcome = network.load(&page);
    let request = &outcome.record.requests[1];
    assert_eq!(
        (request.error.as_deref(), request.retries, request.conn),
        (None, 1, Some(ConnId(1)))
    );
    assert_eq!(request.queued, Some(2 * RTT));
    assert_eq!(request.connect_start, Some(3 * RTT));
    assert_eq!(request.end, Some(5 * RTT));
}

#[test]
fn a_request_whose_response_has_begun_is_never_sent_again() {
    let page = page(vec![document(0), found(Kind::Xhr, "a.test", 0, Via::Script)]);
    let outcome = with(1, Fault::ResetsAfter(0)).load(&page);
    let request = &outcome.record.requests[1];
    assert_eq!(
        (request.conn, request.retries, outcome.error(1)),
        (Some(ConnId(0)), 0, "reset")
    );
}

#[test]
fn a_request_on_a_new_connection_is_never_sent_again() {
    let outcome = with(1, Fault::Resets).load(&page(vec![document(0), image("b.test")]));
    assert_eq!(
        (outcome.error(1), outcome.record.requests[1].retries),
        ("reset", 0)
    );
}
