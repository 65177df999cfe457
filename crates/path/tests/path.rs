//! Invariants of a path, for any traffic.

use firstflight_path::{
    Direction, Drops, Link, Middlebox, MiddleboxKind, Network, PathConfig, Queue, Topology, Trace,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn delivered(network: &mut Network<usize>) -> Vec<(u64, Direction, usize)> {
    std::iter::from_fn(|| network.deliver(u64::MAX)).collect()
}

#[test]
fn a_small_packet_is_charged_its_own_bytes_and_no_more() {
    let config = PathConfig {
        rtt_ms: 40.0,
        up_bps: Some(256_000),
        ..PathConfig::default()
    };
    let mut network = Network::new(&config).unwrap();
    network.send(0, Direction::Up, 0, 64, 0);
    assert_eq!(network.next_event(), Some(20 * MS + 2 * MS)); // 64 B at 256 kbit/s take 2 ms
}

#[test]
fn origins_share_the_access_link_and_not_the_star() {
    for (topology, last) in [(Topology::Access, 20), (Topology::Star, 10)] {
        let config = PathConfig {
            topology,
            down_bps: Some(800_000),
            ..PathConfig::default()
        };
        let mut network = Network::new(&config).unwrap();
        for origin in 0..2 {
            network.send(0, Direction::Down, origin, 1_000, origin);
        }
        assert_eq!(delivered(&mut network).last().unwrap().0, last * MS);
    }
}

#[test]
fn up_and_down_do_not_share_a_queue() {
    let config = PathConfig {
        down_bps: Some(800_000),
        up_bps: Some(800_000),
        ..PathConfig::default()
    };
    let mut network = Network::new(&config).unwrap();
    network.send(0, Direction::Down, 0, 1_000, 0);
    network.send(0, Direction::Up, 0, 1_000, 1);
    assert!(delivered(&mut network).iter().all(|(at, ..)| *at == 10 * MS));
}

#[test]
fn a_nearer_origin_overtakes_a_farther_one_before_the_access_link() {
    let config = PathConfig {
        origin_rtt_ms: vec![100.0, 20.0],
        down_bps: Some(8_000_000),
        ..PathConfig::default()
    };
    let mut network = Network::new(&config).unwrap();
    network.send(0, Direction::Down, 0, 1_000, 0);
    network.send(0, Direction::Down, 1, 1_000, 1);
    let order: Vec<_> = delivered(&mut network)
        .into_iter()
        .map(|(at, _, packet)| (at, packet))
        .collect();
    assert_eq!(order, [(11 * MS, 1), (51 * MS, 0)]);
}

#[test]
fn a_full_queue_drops_the_newcomer() {
    for queue in [Queue::Packets(2), Queue::Bytes(2_500), Queue::Ms(1)] {
        let mut link = Link::new(Some(8_000_000), queue, 1);
        assert_eq!(link.transmit(0, 1_000), Some(MS));
        assert_eq!(link.transmit(0, 1_000), Some(2 * MS));
        assert_eq!(link.transmit(MS - 1, 1_000), None);
        assert_eq!(link.transmit(MS, 1_000), Some(3 * MS));
    }
}

#[test]
fn the_same_seed_loses_the_same_packets() {
    let config = PathConfig {
        loss: 0.3,
        ..PathConfig::default()
    };
    let survivors = |seed| {
        let mut network = Network::new(&PathConfig {
            seed,
            ..config.clone()
        })
        .unwrap();
        (0..1_000).for_each(|packet| {
            network.send(packet as u64, Direction::Up, 0, 100, packet);
        });
        delivered(&mut network)
    };
    assert_eq!(survivors(7), survivors(7));
    assert_ne!(survivors(7), survivors(8));
    assert!((600..800).contains(&survivors(7).len()));
}

#[test]
fn impossible_paths_are_refused_by_key() {
    let refused = |config: PathConfig| config.validate().unwrap_err().key;
    assert_eq!(
        refused(PathConfig {
            rtt_ms: -1.0,
            ..PathConfig::default()
        }),
        "rtt_ms"
    );
    assert_eq!(
        refused(PathConfig {
            rtt_ms: f64::NAN,
            ..PathConfig::default()
        }),
        "rtt_ms"
    );
    assert_eq!(
        refused(PathConfig {
            up_bps: Some(0),
            ..PathConfig::default()
        }),
        "up_bps"
    );
    assert_eq!(
        refused(PathConfig {
            loss: 1.0,
            ..PathConfig::default()
        }),
        "loss"
    );
    assert_eq!(
        refused(PathConfig {
            queue: Queue::Ms(0),
            ..PathConfig::default()
        }),
        "queue"
    );
    for share in [0.0, 1.1, f64::NAN] {
        let kind = MiddleboxKind::DropData;
        assert_eq!(
            refused(PathConfig {
                middlebox: Some(Middlebox { kind, share }),
                ..PathConfig::default()
            }),
            "middlebox"
        );
    }
}

fn queues() -> impl Strategy<Value = Queue> {
    prop_oneof![
        (1..50_usize).prop_map(Queue::Packets),
        (1_500..60_000_u64).prop_map(Queue::Bytes),
        (1..500_u32).prop_map(Queue::Ms),
        Just(Queue::Unlimited),
        Just(Queue::Codel),
        Just(Queue::Pie),
    ]
}

prop_compose! {
    fn traces()(gaps in proptest::collection::vec(0..20_u32, 1..50), last in 1..20_u32) -> Trace {
        let mut ms = 0;
        let times = gaps.into_iter().chain([last]).map(|gap| {
            ms += gap;
            ms.to_string()
        });
        Trace::parse(&times.collect::<Vec<_>>().join("\n")).expect("in order, and not all 0")
    }
}

prop_compose! {
    fn paths()(
        star in any::<bool>(),
        rtt_ms in 0.0..300.0,
        down_bps in proptest::option::of(10_000_u64..1_000_000_000),
        up_bps in proptest::option::of(10_000_u64..1_000_000_000),
        up_trace in proptest::option::of(traces()),
        queue in queues(),
        loss in prop_oneof![Just(0.0), 0.0..0.9],
        seed in any::<u64>(),
        origin_rtt_ms in proptest::collection::vec(0.0..300.0, 0..3),
    ) -> PathConfig {
        let topology = if star { Topology::Star } else { Topology::Access };
        let up_bps = up_bps.filter(|_| up_trace.is_none());
        PathConfig {
            topology, rtt_ms, down_bps, up_bps, up_trace, queue, loss, seed, origin_rtt_ms, ..PathConfig::default()
        }
    }
}

/// Gaps between packets (ns), direction, origin, bytes.
fn traffic() -> impl Strategy<Value = Vec<(u64, bool, usize, u32)>> {
    proptest::collection::vec((0..5 * MS, any::<bool>(), 0..3_usize, 20..1_500_u32), 1..300)
}

proptest! {
    #[test]
    fn order_bytes_rate_and_delay_hold_for_any_traffic(config in paths(), traffic in traffic()) {
        let mut network = Network::new(&config).unwrap();
        let mut now = 0;
        let mut sent = Vec::new();
        for (packet, &(gap, down, origin, bytes)) in traffic.iter().enumerate() {
            now += gap;
            let direction = if down { Direction::Down } else { Direction::Up };
            sent.push((now, direction, origin, bytes));
            network.send(now, direction, origin, bytes, packet);
        }
        let arrived = delivered(&mut network);

        // Packets are conserved: each arrives once or is returned as dropped, and counted.
        let dropped: Vec<_> = std::iter::from_fn(|| network.next_drop()).collect();
        let Drops { full, lost, .. } = network.drops();
        prop_assert_eq!((full + lost) as usize, dropped.len());
        for drop in &dropped {
            let (at, direction, ..) = sent[drop.payload];
            prop_assert!(drop.at >= at && drop.direction == direction);
        }
        let packets = arrived.iter().map(|(.., packet)| *packet);
        let mut seen: Vec<_> = packets.chain(dropped.iter().map(|drop| drop.payload)).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..sent.len()).collect::<Vec<_>>());

        for &(at, direction, packet) in &arrived {
            // A packet never arrives before its delay and its own serialisation.
            let (sent_at, sent_direction, origin, bytes) = sent[packet];
            prop_assert_eq!(direction, sent_direction);
            let rate = if direction == Direction::Down { config.down_bps } else { config.up_bps };
            let own = rate.map_or(0, |rate| (u64::from(bytes) * 8_000_000_000).div_ceil(rate));
            prop_assert!(at >= sent_at + config.one_way(origin) + own);
        }
        for (direction, rate) in [(Direction::Up, config.up_bps), (Direction::Down, config.down_bps)] {
            for origin in 0..3 {
                // Order is kept per origin and direction.
                let packets: Vec<_> = arrived.iter()
                    .filter(|(_, way, packet)| *way == direction && sent[*packet].2 == origin)
                    .map(|(.., packet)| *packet)
                    .collect();
                prop_assert!(packets.is_sorted());
            }
            // A link never exceeds its rate, in any window between two departures.
            let Some(rate) = rate else { continue };
            let links = if config.topology == Topology::Star { 0..3 } else { 0..1 };
            for link in links {
                let mut departures: Vec<(u64, u32)> = arrived.iter()
                    .filter(|(_, way, packet)| {
                        *way == direction && (config.topology == Topology::Access || sent[*packet].2 == link)
                    })
                    .map(|&(at, way, packet)| {
                        // Upwards, and in the star, the delay follows the link: subtract it.
                        let after_link = way == Direction::Up || config.topology == Topology::Star;
                        let delay = if after_link { config.one_way(sent[packet].2) } else { 0 };
                        (at - delay, sent[packet].3)
                    })
                    .collect();
                departures.sort_unstable();
                for start in 0..departures.len() {
                    let mut bits = 0;
                    for &(at, bytes) in departures.iter().skip(start + 1).take(20) {
                        bits += u128::from(bytes) * 8;
                        let window = u128::from(at - departures[start].0);
                        prop_assert!(bits * 1_000_000_000 <= window * u128::from(rate));
                    }
                }
            }
        }
    }

    #[test]
    fn looking_late_changes_no_delivery_time(config in paths(), traffic in traffic(), step in 1..50 * MS) {
        let run = |late: bool| {
            let mut network = Network::new(&config).unwrap();
            let mut out = Vec::new();
            let (mut now, mut looked) = (0, 0);
            for (packet, &(gap, down, origin, bytes)) in traffic.iter().enumerate() {
                now += gap;
                if !late || now - looked > step {
                    looked = now;
                    out.extend(std::iter::from_fn(|| network.deliver(now)));
                }
                let direction = if down { Direction::Down } else { Direction::Up };
                network.send(now, direction, origin, bytes, packet);
            }
            out.extend(std::iter::from_fn(|| network.deliver(u64::MAX)));
            // Separate links with equal traces may deliver at the same time.
            out.sort_by_key(|(at, _, packet)| (*at, *packet));
            out
        };
        if config.loss == 0.0 {
            prop_assert_eq!(run(false), run(true));
        }
    }
}
