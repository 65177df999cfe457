//! When the load event fires.

use firstflight_loader::{Config, Loader};
use firstflight_page::{Kind, Resource, Via};

use crate::network::{Fault, MS, Network, RTT};
use crate::pages::{delayed, document, found, image, page, redirecting};

#[test]
fn the_load_event_waits_for_the_last_byte_of_what_blocks_it() {
    let slow = Resource {
        server_ms: 500.0,
        ..image("b.test")
    };
    let record = Network::default()
        .load(&page(vec![document(0), image("c.test"), slow]))
        .record;
    assert_eq!(record.plt, Some(4 * RTT + 500 * MS));
    assert_eq!(record.plt, record.requests[2].end);
}

#[test]
fn what_does_not_block_it_is_loaded_but_not_waited_for() {
    let beacon = Resource {
        server_ms: 500.0,
        blocks_load: false,
        ..image("b.test")
    };
    let record = Network::default()
        .load(&page(vec![document(0), beacon, image("c.test")]))
        .record;
    assert_eq!(record.plt, Some(4 * RTT));
    assert_eq!(record.end, 4 * RTT + 500 * MS);
    assert_eq!(record.requests[1].end, Some(record.end));
}

#[test]
fn the_document_blocks_it_whatever_the_page_says() {
    let idle = |resource| Resource {
        blocks_load: false,
        ..resource
    };
    let page = page(vec![idle(document(0)), idle(image("b.test"))]);
    assert_eq!(Network::default().load(&page).record.plt, Some(2 * RTT));
}

#[test]
fn the_load_event_comes_once_whatever_is_found_later() {
    let beacon = Resource {
        blocks_load: false,
        server_ms: 500.0,
        ..found(Kind::Script, "b.test", 0, Via::Parser)
    };
    let page = page(vec![
        document(0),
        beacon,
        found(Kind::Image, "c.test", 1, Via::Script),
    ]);
    let record = Network::default().load(&page).record;
    assert_eq!(record.plt, Some(2 * RTT));
    assert!(record.requests[2].end > record.plt);
}

#[test]
fn the_load_event_waits_for_main_thread_work() {
    let script = Resource {
        cpu_ms: 80.0,
        ..found(Kind::Script, "b.test", 0, Via::Parser)
    };
    let page = page(vec![
        Resource {
            cpu_ms: 30.0,
            ..document(0)
        },
        script,
    ]);
    assert_eq!(Network::default().load(&page).record.plt, Some(4 * RTT + 80 * MS));
}

#[test]
fn the_load_event_waits_for_the_processing_of_whatever_costs_time() {
    let image = Resource {
        cpu_ms: 12.0,
        ..image("b.test")
    };
    let record = Network::default().load(&page(vec![document(0), image])).record;
    assert_eq!(record.plt, Some(4 * RTT + 12 * MS));
}

#[test]
fn a_redirect_is_done_with_when_it_ends_however_busy_the_main_thread_is() {
    let busy = found(Kind::Script, "b.test", 0, Via::Parser);
    let busy = Resource {
        cpu_ms: 900.0,
        blocks_load: false,
        ..busy
    };
    let moved = Resource {
        server_ms: 1.0,
        ..redirecting(found(Kind::Frame, "c.test", 0, Via::Parser))
    };
    let target = found(Kind::Image, "d.test", 2, Via::Redirect);
    let record = Network::default()
        .load(&page(vec![document(0), busy, moved, target]))
        .record;
    assert_eq!(record.plt, Some(6 * RTT + MS));
}

#[test]
fn the_documents_own_processing_comes_after_its_last_byte() {
    let page = page(vec![Resource {
        cpu_ms: 30.0,
        ..document(10_000)
    }]);
    let network = Network {
        per_byte: MS / 1_000,
        ..Network::default()
    };
    assert_eq!(network.load(&page).record.plt, Some(2 * RTT + 10 * MS + 30 * MS));
}

#[test]
fn the_load_event_waits_for_a_child_that_waits_for_a_timer() {
    let page = page(vec![document(0), delayed(1_000.0, image("b.test"))]);
    assert_eq!(
        Network::default().load(&page).record.plt,
        Some(2 * RTT + 1_000 * MS + 2 * RTT)
    );
}

#[test]
fn a_failed_image_ends_the_wait_for_it() {
    let mut network = Network::default();
    network.refusing.insert(1);
    let record = network.load(&page(vec![document(0), image("b.test")])).record;
    assert_eq!((record.plt, record.failed), (Some(3 * RTT), None));
}

#[test]
fn a_page_without_its_document_is_not_loaded() {
    let mut network = Network::default();
    network.faults.insert(0, Fault::ResetsAfter(500));
    let record = network.load(&page(vec![document(1_000), image("b.test")])).record;
    assert_eq!(record.plt, None);
    assert_eq!(record.failed.as_deref(), Some("the document failed: reset"));
    assert_eq!(
        record.requests[1].error, None,
        "what was found before is still loaded"
    );
}

#[test]
fn a_load_that_takes_too_long_is_ended_and_what_is_unfinished_has_failed() {
    let config = Config {
        load_timeout: 350 * MS,
        ..Config::default()
    };
    let page = page(vec![
        document(0),
        image("b.test"),
        delayed(1_000.0, image("c.test")),
    ]);
    let record = Network::default().load_with(&page, config).record;
    assert_eq!((record.plt, record.end), (None, 350 * MS));
    assert_eq!(record.failed.as_deref(), Some("the load timed out after 350 ms"));
    let errors = record.requests.iter().map(|request| request.error.is_some());
    assert_eq!(errors.collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(record.connections[1].closed, Some(350 * MS));
}

#[test]
fn a_load_that_is_cut_off_after_the_load_event_did_not_fail() {
    let config = Config {
        load_timeout: 350 * MS,
        ..Config::default()
    };
    let beacon = Resource {
        blocks_load: false,
        ..image("b.test")
    };
    let record = Network::default()
        .load_with(&page(vec![document(0), beacon]), config)
        .record;
    assert_eq!((record.plt, record.failed), (Some(2 * RTT), None));
    assert_eq!(
        record.requests[1].error.as_deref(),
        Some("the load timed out after 350 ms")
    );
}

#[test]
fn a_load_can_be_given_up_by_its_driver() {
    let page = page(vec![document(0)]);
    let record = Loader::new(&page, Config::default(), 1_000 * MS).finish(1_007 * MS);
    assert_eq!(record.failed.as_deref(), Some("the load was stopped after 7 ms"));
    assert_eq!(record.end, 7 * MS);
}
