//! What a whole connection does, whatever the link does to it. Tests of each part are in the part's module.

use std::collections::HashSet;

use firstflight_path::Direction::{self, Down, Up};
use firstflight_tcp::pair::{Closes, Delay, Exchange, Fault, Flow, MS, Pair, Script};
use firstflight_tcp::{FastOpen, Key};
use proptest::prelude::*;

/// One-way delay.
const DELAY: u64 = 50 * MS;
const RTT: u64 = 2 * DELAY;
/// The server's key.
const KEY: Key = 7;

fn flow(response: u64, cookie: Option<Key>) -> Flow {
    Flow {
        fast_open: cookie.map_or(FastOpen::Absent, FastOpen::Cookie),
        server_key: Some(KEY),
        exchanges: vec![Exchange::new(300, response)],
        ..Flow::default()
    }
}

fn losing(packets: impl IntoIterator<Item = (Direction, usize)>) -> Script<Delay> {
    let lossless = Script::new(Delay(DELAY));
    packets.into_iter().fold(lossless, |script, (direction, number)| {
        script.with(direction, number, Fault::Lost)
    })
}

#[test]
fn a_handshake_costs_a_round_trip_and_fast_open_saves_it() {
    assert_eq!(Pair::new(flow(1_000, None), Delay(DELAY)).run(), Some(2 * RTT));
    assert_eq!(Pair::new(flow(1_000, Some(KEY)), Delay(DELAY)).run(), Some(RTT));
}

#[test]
fn a_connection_is_kept_alive_until_one_end_closes_it() {
    let pause = 30 * MS;
    let second = Exchange {
        server_time: 20 * MS,
        pause,
        ..Exchange::new(300, 2_000)
    };
    for (closes, fins) in [(Closes::Nobody, 0), (Closes::Client, 2), (Closes::Server, 2)] {
        let mut flow = flow(1_000, None);
        flow.exchanges.push(second);
        flow.closes = closes;
        let mut pair = Pair::new(flow, Delay(DELAY));
        assert_eq!(pair.run(), Some(3 * RTT + pause + second.server_time));
        let closing: Vec<_> = pair.trace().iter().filter(|sent| sent.segment.fin).collect();
        assert_eq!(closing.len(), fins, "{closes:?}");
        let first = if closes == Closes::Client { Up } else { Down };
        assert!(closing.first().is_none_or(|fin| fin.direction == first));
    }
}

fn any_fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        3 => Just(Fault::Lost),
        1 => (1..400_u64).prop_map(|ms| Fault::Delayed(ms * MS)),
        1 => (0..400_u64).prop_map(|ms| Fault::Duplicated(ms * MS)),
        1 => Just(Fault::Marked),
    ]
}

proptest! {
    #[test]
    fn whatever_the_link_loses_every_byte_arrives_once(
        lost in proptest::collection::hash_set((prop_oneof![Just(Up), Just(Down)], 1..60_usize), 0..25),
        response in 1..60_000_u64,
        cookie in prop::option::of(KEY..KEY + 2),
    ) {
        let lost: HashSet<_> = lost;
        let mut pair = Pair::new(flow(response, cookie), losing(lost));
        let took = pair.run();
        prop_assert!(took.is_some() || pair.client().is_dead(), "a load ends or is given up");
        if took.is_some() {
            prop_assert_eq!([pair.arrived(Up), pair.arrived(Down)], [300, response]);
        }
    }

    #[test]
    fn whatever_happens_to_packets_both_ends_come_to_rest(
        faults in proptest::collection::vec((prop_oneof![Just(Up), Just(Down)], 1..40_usize, any_fault()), 0..12),
        sizes in proptest::collection::vec((1..40_000_u64, 0..40_000_u64), 1..3),
        closes in prop_oneof![Just(Closes::Nobody), Just(Closes::Client), Just(Closes::Server)],
        cookie in prop::option::of(KEY..KEY + 2),
    ) {
        let mut flow = flow(0, cookie);
        flow.exchanges = sizes.iter().map(|&(request, response)| Exchange::new(request, response)).collect();
        flow.closes = closes;
        let clean = Script::new(Delay(DELAY));
        let script = faults.into_iter().fold(clean, |script, (way, number, fault)| script.with(way, number, fault));
        let mut pair = Pair::new(flow, script);
        let took = pair.run();
        let is_dead = pair.client().is_dead() || pair.server().is_none_or(firstflight_tcp::Socket::is_dead);
        prop_assert!(took.is_some() || is_dead, "{:?}", pair);
        prop_assert_eq!(pair.next_event(), None);
    }
}
