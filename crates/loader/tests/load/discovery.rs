//! When the loader discovers a resource.

use firstflight_page::{Kind, Resource, Via};

use crate::network::{MS, Network, RTT};
use crate::pages::{at_byte, delayed, document, found, image, page, redirecting};

/// 1 ms per 1,000 bytes.
fn slow() -> Network {
    Network {
        per_byte: MS / 1_000,
        ..Network::default()
    }
}

#[test]
fn references_are_found_while_the_document_streams_in() {
    let images = [0, 3_000, 10_000].map(|at| at_byte(at, image("b.test")));
    let page = page([vec![document(10_000)], images.to_vec()].concat());
    let record = slow().load(&page).record;
    let queued = [1, 2, 3].map(|index| record.requests[index].queued);
    assert_eq!(queued, [0, 3, 10].map(|ms| Some(2 * RTT + ms * MS)));
    assert_eq!(record.requests[0].end, Some(2 * RTT + 10 * MS));
}

#[test]
fn a_reference_inside_a_chunk_is_found_when_the_chunk_is_there() {
    let page = page(vec![document(10_000), at_byte(3_001, image("b.test"))]);
    assert_eq!(
        slow().load(&page).record.requests[1].queued,
        Some(2 * RTT + 4 * MS)
    );
}

#[test]
fn references_are_found_in_the_order_of_the_document_not_of_the_page_file() {
    let images = [900, 100, 500].map(|at| at_byte(at, image("b.test")));
    let page = page([vec![document(1_000)], images.to_vec()].concat());
    assert_eq!(Network::default().load(&page).sent(), [0, 2, 3, 1]);
}

#[test]
fn what_a_style_sheet_refers_to_waits_for_the_sheet_and_its_processing() {
    let sheet = Resource {
        cpu_ms: 7.0,
        body_bytes: 5_000,
        ..found(Kind::Style, "b.test", 0, Via::Parser)
    };
    let page = page(vec![
        document(1_000),
        sheet,
        found(Kind::Font, "c.test", 1, Via::Style),
    ]);
    let record = slow().load(&page).record;
    assert_eq!(record.requests[1].end, Some(4 * RTT + 5 * MS));
    assert_eq!(record.requests[2].queued, Some(4 * RTT + 12 * MS));
}

#[test]
fn a_redirect_is_followed_on_its_header_and_ends_on_its_own() {
    let moved = Resource {
        body_bytes: 5_000,
        ..redirecting(image("b.test"))
    };
    let page = page(vec![
        document(0),
        moved,
        found(Kind::Image, "c.test", 1, Via::Redirect),
    ]);
    let record = slow().load(&page).record;
    assert_eq!(record.requests[2].queued, Some(4 * RTT));
    assert_eq!(record.requests[1].end, Some(4 * RTT + 5 * MS));
    assert_eq!(record.requests[1].status, Some(302));
}

#[test]
fn a_delay_passes_between_discovery_and_request() {
    let page = page(vec![document(0), delayed(33.5, image("b.test"))]);
    assert_eq!(
        Network::default().load(&page).record.requests[1].queued,
        Some(2 * RTT + 33_500_000)
    );
}

#[test]
fn scripts_take_turns_on_the_main_thread_in_order_of_arrival() {
    let script = |server_ms| Resource {
        cpu_ms: 50.0,
        server_ms,
        ..found(Kind::Script, &format!("h{server_ms}.test"), 0, Via::Parser)
    };
    // The second script of the page arrives first.
    let children = [1, 2].map(|by| found(Kind::Xhr, "c.test", by, Via::Script));
    let page = page([vec![document(0), script(20.0), script(10.0)], children.to_vec()].concat());
    let record = Network::default().load(&page).record;
    assert_eq!(record.requests[4].queued, Some(4 * RTT + 60 * MS));
    assert_eq!(record.requests[3].queued, Some(4 * RTT + 110 * MS));
}

#[test]
fn a_free_script_still_waits_for_its_turn() {
    let busy = Resource {
        cpu_ms: 50.0,
        ..found(Kind::Script, "b.test", 0, Via::Parser)
    };
    let free = Resource {
        server_ms: 1.0,
        ..found(Kind::Script, "c.test", 0, Via::Parser)
    };
    let page = page(vec![
        document(0),
        busy,
        free,
        found(Kind::Xhr, "d.test", 2, Via::Script),
    ]);
    assert_eq!(
        Network::default().load(&page).record.requests[3].queued,
        Some(4 * RTT + 50 * MS)
    );
}

#[test]
fn a_driver_that_wakes_up_late_does_not_slow_the_main_thread_down() {
    let script = || Resource {
        cpu_ms: 50.0,
        ..found(Kind::Script, "b.test", 0, Via::Parser)
    };
    let page = page([vec![document(0)], (0..6).map(|_| script()).collect()].concat());
    let late = Network {
        late: 7 * MS,
        ..Network::default()
    };
    assert_eq!(late.load(&page).record.plt, Some(4 * RTT + 6 * 50 * MS));
}
