//! Links that deliver as a trace says, checked second by second.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use firstflight_path::{Direction, Network, PathConfig, Purpose, Queue, Stream, Trace, TraceError};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn upwards(trace: &str, queue: Queue) -> Network<u32> {
    Network::new(&PathConfig {
        up_trace: Some(Trace::parse(trace).unwrap()),
        queue,
        ..PathConfig::default()
    })
    .unwrap()
}

fn send(network: &mut Network<u32>, now: u64, bytes: u32) {
    network.send(now, Direction::Up, 0, bytes, bytes);
}

/// When every packet arrives (ms), and its size.
fn arrivals(network: &mut Network<u32>) -> Vec<(u64, u32)> {
    let packets = std::iter::from_fn(|| network.deliver(u64::MAX));
    packets.map(|(at, _, bytes)| (at / MS, bytes)).collect()
}

#[test]
fn an_opportunity_carries_several_packets_and_a_packet_takes_several_opportunities() {
    for queue in [Queue::Unlimited, Queue::Codel] {
        let mut network = upwards("10\n20\n30\n40", queue);
        for bytes in [500, 500, 1_000, 1_500, 100] {
            send(&mut network, 0, bytes);
        }
        // The third packet takes 500 bytes of the first opportunity and 500 of the second; the fourth 1,000 of the
        // second.
        let expected = vec![(10, 500), (10, 500), (20, 1_000), (30, 1_500), (30, 100)];
        assert_eq!(arrivals(&mut network), expected, "{queue:?}");
    }
}

#[test]
fn an_opportunity_that_finds_nothing_is_lost_and_so_is_the_rest_of_one() {
    for queue in [Queue::Unlimited, Queue::Codel] {
        let mut network = upwards("10\n20\n30\n40", queue);
        send(&mut network, 0, 100);
        assert_eq!(network.deliver(10 * MS).unwrap().0, 10 * MS);
        // A packet that arrives exactly at the time of an opportunity is too late for it.
        send(&mut network, 20 * MS, 100);
        assert_eq!(
            network.next_event().map(|_| arrivals(&mut network)),
            Some(vec![(30, 100)]),
            "{queue:?}"
        );
    }
}

#[test]
fn a_trace_begins_with_the_first_packet_and_begins_again_after_its_last_time() {
    let start = 7 * SECOND + 123;
    for queue in [Queue::Unlimited, Queue::Codel] {
        let mut network = upwards("0\n5\n10", queue);
        for _ in 0..6 {
            network.send(start, Direction::Up, 0, 1_500, 1_500);
        }
        let arrived: Vec<_> = arrivals(&mut network)
            .into_iter()
            .map(|(ms, _)| ms - 7_000)
            .collect();
        assert_eq!(arrived, [5, 10, 10, 15, 20, 20], "{queue:?}");
        network.send(start + 1_012 * MS, Direction::Up, 0, 1_500, 1_500);
        assert_eq!(arrivals(&mut network), [(8_015, 1_500)], "{queue:?}");
    }
}

#[test]
fn a_text_that_is_no_trace_is_refused_with_the_line_that_is_wrong() {
    let problem = |text: &str| Trace::parse(text).unwrap_err().to_string();
    assert_eq!(
        problem("1\n2\nthree\n"),
        "line 3: \"three\" is not a time in whole ms"
    );
    assert_eq!(problem("1\n\n3"), "line 2: \"\" is not a time in whole ms");
    assert_eq!(problem("1\n-2"), "line 2: \"-2\" is not a time in whole ms");
    assert_eq!(
        problem("5\n4"),
        "line 2: 4 ms comes before the 5 ms of the line above"
    );
    assert_eq!(Trace::parse(""), Err(TraceError::Empty));
    assert_eq!(Trace::parse("0\n0\n"), Err(TraceError::NoTime));
    assert_eq!(Trace::parse("1\r\n2\r\n"), Trace::parse("1\n2"));
}

#[test]
fn a_trace_says_its_mean_rate() {
    // Mahimahi's own example: one packet each ms.
    assert_eq!(Trace::parse("1").unwrap().mean_bps(), 12_000_000);
    assert_eq!(Trace::parse("0\n500\n1000").unwrap().mean_bps(), 36_000);
}

#[test]
fn a_rate_beside_a_trace_is_refused() {
    let config = PathConfig {
        down_bps: Some(1_000_000),
        down_trace: Trace::parse("1").ok(),
        ..PathConfig::default()
    };
    assert_eq!(config.validate().unwrap_err().key, "down_trace");
}

/// Bytes that arrive in each second while packets of `sizes` always wait.
fn delivered(trace: &str, queue: Queue, seconds: u64, sizes: &[u32]) -> Vec<u64> {
    let mut network = upwards(trace, queue);
    let mut sizes = sizes.iter().cycle();
    let mut bytes = vec![0; seconds as usize];
    // More packets wait than any second can deliver.
    let mut sent_to = 0;
    while let Some((at, _, packet)) = {
        while network.in_flight() < 3_000 {
            send(&mut network, sent_to, *sizes.next().unwrap());
        }
        network.next_event().and_then(|at| network.deliver(at))
    } {
        sent_to = at;
        match bytes.get_mut((at / SECOND) as usize) {
            Some(second) => *second += u64::from(packet),
            None => break,
        }
    }
    bytes
}

fn promised(trace: &str, seconds: u64) -> Vec<u64> {
    let times: Vec<u64> = trace.lines().map(|line| line.parse().unwrap()).collect();
    let last = *times.last().unwrap();
    let laps = (0..)
        .map(|lap| lap * last)
        .take_while(|start| start / 1_000 < seconds);
    let mut bytes = vec![0; seconds as usize];
    for ms in laps.flat_map(|start| times.iter().map(move |ms| start + ms)) {
        // A packet present at an opportunity was there before it, except for the very first opportunity.
        if let Some(second) = bytes.get_mut((ms / 1_000) as usize).filter(|_| ms > 0) {
            *second += 1_500;
        }
    }
    bytes
}

/// A synthetic mobile link: the rate walks between 0 and 24 Mbit/s, outages included.
fn wandering(seconds: u64, seed: u64) -> String {
    let mut random = Stream::new(seed, Purpose::Pie, &[]);
    let mut rate: f64 = 0.5;
    let mut lines = Vec::new();
    for ms in 1..=seconds * 1_000 {
        rate = (rate + (random.next_f64() - 0.5) * 0.05).clamp(-0.2, 2.0);
        let opportunities =
            rate.floor().max(0.0) as u32 + u32::from(random.next_f64() < rate.rem_euclid(1.0) && rate > 0.0);
        lines.extend((0..opportunities).map(|_| ms.to_string()));
    }
    lines.push((seconds * 1_000).to_string());
    lines.join("\n")
}

fn assert_follows(trace: &str, seconds: u64, name: &str) {
    for queue in [Queue::Unlimited, Queue::Packets(10_000)] {
        for sizes in [&[1_500][..], &[1_500, 40, 577, 1_500, 1_280]] {
            let pairs = delivered(trace, queue, seconds, sizes)
                .into_iter()
                .zip(promised(trace, seconds));
            for (second, (delivered, promised)) in pairs.enumerate() {
                // One packet may cross the border between two seconds.
                let off = delivered.abs_diff(promised).saturating_sub(1_500) as f64;
                assert!(
                    off <= 0.01 * promised as f64,
                    "{name}, {second}: {delivered} for {promised}"
                );
            }
        }
    }
}

#[test]
fn what_arrives_each_second_is_what_the_trace_promises() {
    assert_follows(&wandering(60, 1), 150, "made up");
}

#[test]
#[ignore = "reads recordings that are not part of the repository: `make crates` runs it where they are"]
fn so_it_is_with_mobile_links_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/corpus/mahimahi/traces");
    for name in ["ATT-LTE-driving-2016.down", "ATT-LTE-driving-2016.up"] {
        let trace =
            std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_follows(&trace, 180, name);
    }
}
