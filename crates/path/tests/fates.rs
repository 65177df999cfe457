//! The random events of a packet depend on its connection, direction and number alone.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::HashMap;

use firstflight_path::{Burst, Direction, Ecn, Network, Packet, PathConfig, Protocol, Queue};
use proptest::prelude::*;

const GAP: u64 = 1_000_000;

/// The sender of a packet: the origin, the connection (none: unconnected) and the direction.
type Sender = (usize, Option<usize>, Direction);
/// The fates of a sender's packets: how often each arrived, and its additional delay.
type Fates = HashMap<Sender, Vec<(usize, u64)>>;

fn unsteady(seed: u64) -> PathConfig {
    PathConfig {
        loss: 0.2,
        duplicate: 0.3,
        jitter_ms: 5.0,
        reorder: true,
        seed,
        ..PathConfig::default()
    }
}

/// Sends a packet for each of `senders`, one after the other, and opens their TCP connections in this order.
fn fates(config: &PathConfig, senders: &[Sender]) -> Fates {
    let mut network = Network::new(config).unwrap();
    let mut flows = HashMap::new();
    for origin in 0..2 {
        flows.insert((origin, None), network.unconnected(origin));
        for number in 0..2 {
            flows.insert((origin, Some(number)), network.open(Protocol::Tcp, origin));
        }
    }
    let mut fates = Fates::new();
    for (packet, sender) in senders.iter().enumerate() {
        let (origin, connection, direction) = *sender;
        let (bytes, ecn) = (100, Ecn::NotCapable);
        let flow = flows[&(origin, connection)];
        network.carry(
            packet as u64 * GAP,
            direction,
            flow,
            Packet { bytes, ecn },
            packet,
        );
        fates.entry(*sender).or_default().push((0, 0));
    }
    let numbers: Vec<usize> = (0..senders.len())
        .map(|packet| {
            senders[..packet]
                .iter()
                .filter(|other| **other == senders[packet])
                .count()
        })
        .collect();
    while let Some((at, _, packet)) = network.deliver(u64::MAX) {
        let fate = &mut fates.get_mut(&senders[packet]).unwrap()[numbers[packet]];
        *fate = (fate.0 + 1, at - packet as u64 * GAP);
    }
    fates
}

fn sender() -> impl Strategy<Value = Sender> {
    let direction = prop_oneof![Just(Direction::Up), Just(Direction::Down)];
    (0..2_usize, proptest::option::of(0..2_usize), direction)
}

proptest! {
    #[test]
    fn packet_k_of_a_connection_and_direction_has_the_same_fate_whatever_others_send(
        senders in proptest::collection::vec(sender(), 1..300),
        seed in any::<u64>(),
    ) {
        let together = fates(&unsteady(seed), &senders);
        for (sender, theirs) in &together {
            let alone = &fates(&unsteady(seed), &vec![*sender; theirs.len()])[sender];
            prop_assert_eq!(theirs, alone, "{:?}", sender);
        }
    }

    #[test]
    fn losses_jitter_and_copies_leave_each_other_alone(seed in any::<u64>()) {
        let senders = [(0, Some(0), Direction::Down); 400];
        let all = fates(&unsteady(seed), &senders);
        let lost = |fates: &Fates| -> Vec<bool> {
            fates.values().flatten().map(|(times, _)| *times == 0).collect()
        };
        let only_loss = PathConfig { duplicate: 0.0, jitter_ms: 0.0, ..unsteady(seed) };
        prop_assert_eq!(lost(&all), lost(&fates(&only_loss, &senders)));
        let only_jitter = fates(&PathConfig { duplicate: 0.0, loss: 0.0, ..unsteady(seed) }, &senders);
        let both = all.values().flatten().zip(only_jitter.values().flatten());
        prop_assert!(both.clone().all(|((times, late), (_, alone))| *times == 0 || late == alone));
    }

    #[test]
    fn packet_k_of_a_link_and_direction_meets_the_same_burst_whosever_it_is(
        senders in proptest::collection::vec(sender(), 1..300),
        seed in any::<u64>(),
    ) {
        let burst = Some(Burst { packets: 3.0, loss: 0.8 });
        let config = PathConfig { loss: 0.2, burst, seed, ..PathConfig::default() };
        let order = |fates: &Fates, direction| -> Vec<bool> {
            let mut numbers = HashMap::new();
            let of = senders.iter().filter(|sender| sender.2 == direction);
            of.map(|sender| {
                let number = numbers.entry(*sender).or_insert(0);
                *number += 1;
                fates[sender][*number - 1].0 == 0
            }).collect()
        };
        let together = fates(&config, &senders);
        for direction in [Direction::Up, Direction::Down] {
            let lost = order(&together, direction);
            let sender = (1, None, direction);
            if !lost.is_empty() {
                let alone = fates(&config, &vec![sender; lost.len()]);
                prop_assert_eq!(lost, alone[&sender].iter().map(|(times, _)| *times == 0).collect::<Vec<_>>());
            }
        }
    }
}

/// Which of a thousand packets PIE drops, sent in each direction at the same times.
fn dropped(config: &PathConfig) -> [Vec<bool>; 2] {
    let mut network = Network::new(config).unwrap();
    let directions = [Direction::Up, Direction::Down];
    let pairs = (0..1_000_u64).map(|packet| {
        directions.map(|direction| {
            network.send(packet * 900_000, direction, 0, 1_000, ());
            network.next_drop().is_some()
        })
    });
    let (up, down) = pairs.map(|[up, down]| (up, down)).unzip();
    [up, down]
}

#[test]
fn the_two_directions_of_a_link_share_no_chance() {
    let pie = PathConfig {
        queue: Queue::Pie,
        up_bps: Some(8_000_000),
        down_bps: Some(8_000_000),
        ..PathConfig::default()
    };
    let [up, down] = dropped(&pie);
    assert!(up.contains(&true) && down.contains(&true));
    assert_ne!(up, down);
}

#[test]
fn connections_to_an_origin_and_protocols_are_told_apart() {
    let lost = |open: &[(Protocol, usize)]| {
        let mut network = Network::new(&unsteady(1)).unwrap();
        let flow = open
            .iter()
            .map(|(protocol, origin)| network.open(*protocol, *origin))
            .last()
            .unwrap();
        let packet = Packet {
            bytes: 100,
            ecn: Ecn::NotCapable,
        };
        (0..200)
            .map(|at| {
                network.carry(at, Direction::Up, flow, packet, ());
                network.next_drop().is_some()
            })
            .collect::<Vec<_>>()
    };
    let (tcp, udp) = (Protocol::Tcp, Protocol::Udp);
    // Connections to other origins, or of another protocol, have no influence.
    assert_eq!(lost(&[(tcp, 3)]), lost(&[(tcp, 0), (udp, 3), (tcp, 3)]));
    let different = [
        lost(&[(tcp, 3)]),
        lost(&[(tcp, 4)]),
        lost(&[(udp, 3)]),
        lost(&[(tcp, 3), (tcp, 3)]),
    ];
    for (number, one) in different.iter().enumerate() {
        assert!(different[..number].iter().all(|other| other != one), "{number}");
    }
}
