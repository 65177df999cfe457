//! Invariants for every page on every network.

use firstflight_loader::Config;
use firstflight_page::{Host, Initiator, Kind, Origin, Page, Resource, Via};
use proptest::collection::{hash_map, vec};
use proptest::prelude::*;

use crate::network::{Fault, MS, Network, Outcome};
use crate::pages::{document, page};

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::Document,
        Kind::Frame,
        Kind::Style,
        Kind::Script,
        Kind::Font,
        Kind::Xhr,
        Kind::Image,
        Kind::Other,
    ])
}

/// A resource whose initiator and offsets are fractions, to be resolved later.
fn draft() -> impl Strategy<Value = (Resource, f64, Via, f64, f64, Option<f64>)> {
    let via = prop::sample::select(vec![
        Via::Parser,
        Via::Parser,
        Via::Style,
        Via::Script,
        Via::Redirect,
    ]);
    let millis = || prop_oneof![3 => Just(0.0), 1 => 0.0..300.0];
    let parts = (
        kind(),
        0..4_usize,
        0..20_000_u64,
        millis(),
        millis(),
        any::<bool>(),
    );
    let resource = parts.prop_map(
        |(kind, host, body_bytes, server_ms, cpu_ms, blocks_load)| Resource {
            url: format!("http://h{host}.test/"),
            kind,
            server_ms,
            cpu_ms,
            blocks_load,
            ..document(body_bytes)
        },
    );
    (
        resource,
        0.0..1.0,
        via,
        0.0..=1.0,
        millis(),
        prop::option::weighted(0.3, 0.0..1.0),
    )
}

/// Hosts whose lookups take longer and longer.
fn hosts(page: &Page) -> Vec<Host> {
    let host = |(number, origin): (usize, Origin)| Host {
        host: origin.host,
        lookup_ms: 20.0 * number as f64,
        ..Host::default()
    };
    page.origins().into_iter().enumerate().map(host).collect()
}

fn any_page() -> impl Strategy<Value = Page> {
    vec(draft(), 1..40).prop_map(|drafts| {
        let mut resources: Vec<Resource> = Vec::new();
        for (mut resource, parent, via, at, delay_ms, after) in drafts {
            if !resources.is_empty() {
                let parent = (parent * resources.len() as f64) as usize;
                let at_byte = if via == Via::Parser {
                    (at * resources[parent].body_bytes as f64) as u64
                } else {
                    0
                };
                if via == Via::Redirect {
                    resources[parent].status = 302;
                }
                resource.initiator = Some(Initiator {
                    resource: parent,
                    via,
                    at_byte,
                    after: after.map(|after: f64| (after * resources.len() as f64) as usize),
                    delay_ms,
                    inferred: false,
                });
            }
            resources.push(resource);
        }
        let mut page = page(resources);
        page.hosts = hosts(&page);
        page
    })
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::NeverAnswers),
        Just(Fault::Resets),
        (0..2_000_u64).prop_map(Fault::ResetsAfter),
        Just(Fault::Status(404)),
        (0..2_000_u64).prop_map(Fault::Ends),
        Just(Fault::NoLocation),
    ]
}

fn sound_network() -> impl Strategy<Value = Network> {
    (1..300_u64, any::<bool>(), 0..200_u64, prop::option::of(1..4_u32)).prop_map(
        |(rtt, tfo, per_byte, dies_after)| Network {
            rtt: rtt * MS,
            tfo,
            per_byte,
            dies_after,
            ..Network::default()
        },
    )
}

fn any_network() -> impl Strategy<Value = Network> {
    let origins = || prop::collection::hash_set(0..4_usize, 0..2);
    (
        sound_network(),
        hash_map(0..40_usize, fault(), 0..6),
        origins(),
        origins(),
        0..5_u64,
    )
        .prop_map(|(network, faults, refusing, silent, late)| Network {
            faults,
            refusing,
            silent,
            late: late * MS,
            ..network
        })
}

fn any_config() -> impl Strategy<Value = Config> {
    (1..8_usize, 1..12_usize, any::<bool>(), any::<bool>()).prop_map(
        |(connections_per_origin, max_connections, keep_alive, lookups)| Config {
            connections_per_origin,
            max_connections,
            keep_alive,
            lookups,
            ..Config::default()
        },
    )
}

fn check_times(outcome: &Outcome) -> Result<(), TestCaseError> {
    for request in &outcome.record.requests {
        let times = [
            request.queued,
            request.connect_start,
            request.connect_end,
            request.sent,
            request.first_byte,
            request.end,
            Some(outcome.record.end),
        ];
        prop_assert!(times.iter().flatten().is_sorted(), "{request:?}");
        prop_assert_eq!(
            request.connect_end.is_some() && request.connect_start.is_none(),
            false
        );
        prop_assert!(request.error.is_some() || request.end.is_some(), "{request:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_load_ends_with_one_record_for_each_resource(
        page in any_page(), network in any_network(), config in any_config()
    ) {
        let outcome = network.load_with(&page, config);
        let resources: Vec<_> = outcome.record.requests.iter().map(|request| request.resource).collect();
        prop_assert_eq!(resources, (0..page.resources.len()).collect::<Vec<_>>());
        prop_assert!(outcome.peak_per_origin <= config.connections_per_origin);
        prop_assert!(outcome.peak <= config.max_connections);
        prop_assert_eq!(outcome.record.plt.is_none(), outcome.record.failed.is_some());
        check_times(&outcome)?;
    }

    #[test]
    fn on_a_sound_network_everything_arrives_once_and_whole(
        page in any_page(), network in sound_network(), config in any_config()
    ) {
        let config = Config { load_timeout: u64::MAX, ..config };
        let outcome = network.load_with(&page, config);
        for (request, resource) in outcome.record.requests.iter().zip(&page.resources) {
            prop_assert_eq!(&request.error, &None);
            prop_assert_eq!(request.body_bytes, resource.body_bytes);
            prop_assert_eq!(request.status, Some(resource.status));
        }
        let tries: u32 = outcome.record.requests.iter().map(|request| 1 + request.retries).sum();
        let carried: u32 = outcome.record.connections.iter().map(|connection| connection.requests).sum();
        prop_assert_eq!(tries, carried);
        prop_assert_eq!(tries as usize, outcome.sent().len());
    }

    #[test]
    fn with_no_processing_the_load_event_is_the_last_byte_of_what_blocks_it(
        mut page in any_page(), network in sound_network()
    ) {
        for resource in &mut page.resources {
            (resource.cpu_ms, resource.blocks_load) = (0.0, true);
        }
        let record = network.load_with(&page, Config { load_timeout: u64::MAX, ..Config::default() }).record;
        prop_assert_eq!(record.plt, record.requests.iter().map(|request| request.end).max().flatten());
    }

    #[test]
    fn the_same_load_twice_is_the_same_to_the_nanosecond(
        page in any_page(), network in any_network(), config in any_config()
    ) {
        prop_assert_eq!(network.load_with(&page, config), network.load_with(&page, config));
    }
}
