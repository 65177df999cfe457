//! Mean and distribution of losses in bursts, and of jitter.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use firstflight_path::{Burst, Direction, Network, PathConfig};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const PACKETS: usize = 200_000;

/// Which of many packets up are lost.
fn losses(config: &PathConfig) -> Vec<bool> {
    let mut network = Network::new(config).unwrap();
    (0..PACKETS)
        .map(|packet| {
            network.send(packet as u64, Direction::Up, 0, 100, packet);
            network.next_drop().is_some()
        })
        .collect()
}

fn share(of: &[bool]) -> f64 {
    of.iter().filter(|yes| **yes).count() as f64 / of.len() as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn bursts_have_the_mean_loss_and_the_length_asked_for(
        loss in 0.02..0.2,
        packets in 1.5..20.0,
        seed in any::<u64>(),
    ) {
        let burst = Some(Burst { packets, loss: 1.0 });
        let lost = losses(&PathConfig { loss, burst, seed, ..PathConfig::default() });
        // A run's length is geometric: the mean of n runs, and a share, are off by less than five standard errors.
        let runs = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let mean = lost.iter().filter(|yes| **yes).count() as f64 / runs;
        prop_assert!((mean - packets).abs() < 5.0 * packets / runs.sqrt() + 0.02, "{} of {}", mean, packets);
        let error = 5.0 * (loss * 2.0 * packets / PACKETS as f64).sqrt();
        prop_assert!((share(&lost) - loss).abs() < error, "{} of {}", share(&lost), loss);
    }

    #[test]
    fn in_a_bad_state_so_many_are_lost(seed in any::<u64>()) {
        let (loss, bad) = (0.1, 0.4);
        let burst = Some(Burst { packets: 10.0, loss: bad });
        let lost = losses(&PathConfig { loss, burst, seed, ..PathConfig::default() });
        prop_assert!((share(&lost) - loss).abs() < 0.02, "{}", share(&lost));
        // After a lost packet the bad state goes on with probability 0.9: its mean length is 10 packets.
        let after: Vec<bool> = lost.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        prop_assert!((share(&after) - 0.9 * bad).abs() < 0.03, "{}", share(&after));
    }

    #[test]
    fn jitter_is_uniform_and_keeps_or_breaks_the_order(
        jitter_ms in 1.0..50.0,
        reorder in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let config = PathConfig { rtt_ms: 20.0, jitter_ms, reorder, seed, ..PathConfig::default() };
        let mut network = Network::new(&config).unwrap();
        // First so far apart that no packet overtakes: mean and deviation. Then close together: the order.
        let gap = 60 * MS;
        let extra: Vec<f64> = (0..5_000).map(|packet: u64| {
            network.send(packet * gap, Direction::Down, 0, 100, packet);
            let (at, ..) = network.deliver(u64::MAX).unwrap();
            (at - packet * gap) as f64 / 1e6 - 10.0
        }).collect();
        let mean = extra.iter().sum::<f64>() / 5e3;
        let variance = extra.iter().map(|ms| (ms - mean).powi(2)).sum::<f64>() / 5e3;
        prop_assert!(extra.iter().all(|ms| (-1e-6..=jitter_ms + 1e-6).contains(ms)));
        prop_assert!((mean / jitter_ms - 0.5).abs() < 0.03, "{}", mean);
        prop_assert!((variance / jitter_ms.powi(2) * 12.0 - 1.0).abs() < 0.1, "{}", variance);

        for packet in 0..500 {
            network.send(5_000 * gap + packet * MS / 10, Direction::Up, 0, 100, packet);
        }
        let order: Vec<u64> = std::iter::from_fn(|| network.deliver(u64::MAX)).map(|(.., packet)| packet).collect();
        prop_assert_eq!(order.len(), 500);
        prop_assert_eq!(order.is_sorted(), !reorder);
    }
}

proptest! {
    #[test]
    fn a_share_of_packets_arrives_twice_one_behind_the_other_and_nothing_else_changes(
        duplicate in 0.0..=1.0,
        loss in 0.0..0.5,
        jitter_ms in 0.0..5.0,
        reorder in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let once = PathConfig { loss, jitter_ms, reorder, seed, ..PathConfig::default() };
        let (single, _) = arrivals(&once);
        let (twice, duplicated) = arrivals(&PathConfig { duplicate, ..once });
        let mut without = twice.clone();
        without.dedup();
        prop_assert_eq!(&without, &single);
        prop_assert_eq!(twice.len() - single.len(), duplicated);
        let (sent, share) = (single.len() as f64, duplicated as f64 / single.len() as f64);
        prop_assert!((share - duplicate).abs() < 5.0 * (duplicate * (1.0 - duplicate) / sent).sqrt() + 1e-3);
    }
}

/// When each of a thousand packets arrives, and how many arrived twice.
fn arrivals(config: &PathConfig) -> (Vec<(u64, u64)>, usize) {
    let mut network = Network::new(config).unwrap();
    for packet in 0..1_000 {
        network.send(packet * MS / 10, Direction::Down, 0, 100, packet);
    }
    let arrived = std::iter::from_fn(|| network.deliver(u64::MAX));
    let arrived = arrived.map(|(at, _, packet)| (at, packet)).collect();
    (arrived, network.duplicated() as usize)
}

#[test]
fn impossible_bursts_and_jitter_are_refused_by_key() {
    let key = |config: PathConfig| config.validate().unwrap_err().key;
    for (packets, loss) in [(0.5, 1.0), (f64::NAN, 1.0), (5.0, 0.1), (5.0, 1.1)] {
        let burst = Some(Burst { packets, loss });
        let config = PathConfig {
            loss: 0.1,
            burst,
            ..PathConfig::default()
        };
        assert_eq!(key(config), "burst", "{packets} {loss}");
    }
    for jitter_ms in [-1.0, f64::NAN, 1e9] {
        assert_eq!(
            key(PathConfig {
                jitter_ms,
                ..PathConfig::default()
            }),
            "jitter_ms"
        );
    }
}
