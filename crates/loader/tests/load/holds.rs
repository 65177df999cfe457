//! What a discovered resource waits for: another resource, and the lookup of a name.

use firstflight_loader::Config;
use firstflight_page::{Host, Kind, Page, Resource, Via};

use crate::network::{Fault, MS, Network, RTT};
use crate::pages::{delayed, document, found, image, page};

fn after(other: usize, mut resource: Resource) -> Resource {
    let initiator = resource.initiator.as_mut();
    initiator.expect("only a document has no initiator").after = Some(other);
    resource
}

/// A script that takes 20 ms, and an image that the parser finds but that waits for the script.
fn blocked() -> Page {
    let script = Resource {
        cpu_ms: 20.0,
        ..found(Kind::Script, "b.test", 0, Via::Parser)
    };
    page(vec![document(1_000), script, after(1, image("a.test"))])
}

fn looked_up(mut page: Page, host: &str, lookup_ms: f64) -> Page {
    page.hosts.push(Host {
        host: host.to_owned(),
        lookup_ms,
        ..Host::default()
    });
    page
}

fn lookups() -> Config {
    Config {
        lookups: true,
        ..Config::default()
    }
}

#[test]
fn a_held_resource_is_asked_for_when_what_holds_it_is_processed() {
    let record = Network::default().load(&blocked()).record;
    assert_eq!(record.requests[1].end, Some(4 * RTT));
    assert_eq!(record.requests[2].queued, Some(4 * RTT + 20 * MS));
}

#[test]
fn its_own_delay_begins_then() {
    let mut page = blocked();
    page.resources[2] = delayed(30.0, page.resources[2].clone());
    let record = Network::default().load(&page).record;
    assert_eq!(record.requests[2].queued, Some(4 * RTT + 50 * MS));
}

#[test]
fn what_is_done_with_holds_nothing() {
    let late = after(1, found(Kind::Image, "a.test", 2, Via::Script));
    let slow = found(Kind::Script, "c.test", 1, Via::Script);
    let page = page(vec![document(1_000), blocked().resources[1].clone(), slow, late]);
    let record = Network::default().load(&page).record;
    assert_eq!(record.requests[3].queued, record.requests[2].end);
}

#[test]
fn a_failed_resource_holds_nothing() {
    let network = Network {
        faults: [(1, Fault::Resets)].into(),
        ..Network::default()
    };
    let record = network.load(&blocked()).record;
    assert!(record.requests[1].error.is_some());
    assert_eq!(record.requests[2].error, None);
}

#[test]
fn what_will_never_be_discovered_holds_nothing() {
    let script = found(Kind::Script, "b.test", 0, Via::Parser);
    let data = found(Kind::Xhr, "b.test", 1, Via::Script);
    let page = page(vec![document(1_000), script, data, after(2, image("a.test"))]);
    let network = Network {
        faults: [(1, Fault::Status(404))].into(),
        ..Network::default()
    };
    let record = network.load(&page).record;
    assert!(
        record.requests[2]
            .error
            .as_deref()
            .unwrap()
            .starts_with("never discovered")
    );
    assert_eq!(record.requests[3].error, None);
}

#[test]
fn the_first_connection_to_a_host_waits_for_its_name() {
    let page = looked_up(page(vec![document(1_000)]), "a.test", 30.0);
    let record = Network::default().load_with(&page, lookups()).record;
    assert_eq!(record.requests[0].queued, Some(0));
    assert_eq!(record.requests[0].connect_start, Some(30 * MS));
    assert_eq!(record.plt, Some(30 * MS + 2 * RTT));
}

#[test]
fn a_name_is_looked_up_once_for_all_who_need_it() {
    let images = [image("b.test"), image("b.test"), image("b.test:8080")];
    let resources = [vec![document(1_000)], images.to_vec()].concat();
    let page = looked_up(page(resources), "b.test", 30.0);
    let record = Network::default().load_with(&page, lookups()).record;
    let opened: Vec<_> = record.connections[1..].iter().map(|conn| conn.opened).collect();
    assert_eq!(opened, [2 * RTT + 30 * MS; 3]);
}

#[test]
fn lookups_are_left_out_unless_asked_for() {
    let page = looked_up(page(vec![document(1_000)]), "a.test", 30.0);
    assert_eq!(Network::default().load(&page).record.plt, Some(2 * RTT));
}
