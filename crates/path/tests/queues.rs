//! Queues under load: how long packets wait, and that the link stays busy.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use firstflight_path::{Direction, Ecn, Link, Network, Packet, PathConfig, Queue};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const RATE_BPS: u64 = 10_000_000;
const RTT_MS: f64 = 100.0;
const PACKET_BYTES: u32 = 1_500;

/// A minimal AIMD sender: its window grows by a packet each round trip, and halves after a loss or a mark.
#[derive(Debug, Clone)]
struct Flow {
    next: u64,
    expected: u64,
    window: f64,
    /// A loss before this packet belongs to the last halving.
    recovered: u64,
}

impl Flow {
    fn on_ack(&mut self, packet: u64, is_marked: bool) {
        if (packet > self.expected || is_marked) && packet >= self.recovered {
            self.window = (self.window / 2.0).max(2.0);
            self.recovered = self.next;
        }
        self.expected = packet + 1;
        self.window += 1.0 / self.window;
    }
}

/// What a minute of load measured, without its first ten seconds.
#[derive(Debug)]
struct Load {
    /// Sorted, ms.
    waits: Vec<f64>,
    utilisation: f64,
    dropped: u64,
    marked: u64,
}

impl Load {
    fn median_ms(&self) -> f64 {
        self.waits[self.waits.len() / 2]
    }

    fn mean_ms(&self) -> f64 {
        self.waits.iter().sum::<f64>() / self.waits.len() as f64
    }
}

/// Five flows (RFC 8033's light traffic) towards the client for a minute.
fn load(queue: Queue, ecn: bool) -> Load {
    let mut network = Network::new(&PathConfig {
        rtt_ms: RTT_MS,
        down_bps: Some(RATE_BPS),
        queue,
        ecn,
        ..PathConfig::default()
    })
    .unwrap();
    let flow = Flow {
        next: 0,
        expected: 0,
        window: 10.0,
        recovered: 0,
    };
    let mut flows = vec![flow; 5];
    for (number, flow) in flows.iter_mut().enumerate() {
        send(&mut network, 0, number, flow);
    }
    let mut waits = Vec::new();
    while let Some(at) = network.next_event().filter(|at| *at < 60 * SECOND) {
        let Some(arrival) = network.arrive(at) else {
            continue;
        };
        let (at, sent) = (arrival.at, arrival.payload);
        if arrival.direction == Direction::Down {
            let own = u64::from(PACKET_BYTES) * 8 * SECOND / RATE_BPS;
            if at >= 10 * SECOND {
                waits.push((at - sent.at - own) as f64 / 1e6 - RTT_MS / 2.0);
            }
            let is_marked = arrival.is_marked;
            network.send(at, Direction::Up, 0, 40, Sent { is_marked, ..sent });
        } else {
            let flow = &mut flows[sent.flow];
            flow.on_ack(sent.packet, sent.is_marked);
            send(&mut network, at, sent.flow, flow);
        }
    }
    let bits = waits.len() as f64 * f64::from(PACKET_BYTES) * 8.0;
    waits.sort_by(f64::total_cmp);
    Load {
        waits,
        utilisation: bits / 50.0 / RATE_BPS as f64,
        dropped: network.drops().full,
        marked: network.marked(),
    }
}

/// A packet on its way down, and then its acknowledgment on the way up.
#[derive(Debug, Clone, Copy)]
struct Sent {
    flow: usize,
    packet: u64,
    at: u64,
    is_marked: bool,
}

fn send(network: &mut Network<Sent>, now: u64, number: usize, flow: &mut Flow) {
    while ((flow.next - flow.expected) as f64) < flow.window {
        let sent = Sent {
            flow: number,
            packet: flow.next,
            at: now,
            is_marked: false,
        };
        let packet = Packet {
            bytes: PACKET_BYTES,
            ecn: Ecn::Capable,
        };
        let all = network.unconnected(0);
        network.carry(now, Direction::Down, all, packet, sent);
        flow.next += 1;
    }
}

#[test]
fn under_load_codel_and_pie_hold_their_targets_and_a_long_buffer_fills() {
    for ecn in [false, true] {
        let codel = load(Queue::Codel, ecn);
        assert!((2.5..10.0).contains(&codel.median_ms()), "{}", codel.median_ms());
        assert!(codel.utilisation > 0.85, "{}", codel.utilisation);
        let pie = load(Queue::Pie, ecn);
        assert!((10.0..22.5).contains(&pie.mean_ms()), "{}", pie.mean_ms());
        assert!(pie.utilisation > 0.9, "{}", pie.utilisation);
        for managed in [codel, pie] {
            assert_eq!(managed.dropped == 0, ecn, "{}", managed.dropped);
            assert_eq!(managed.marked > 0, ecn, "{}", managed.marked);
        }
    }
    let tail = load(Queue::Packets(1_000), false);
    assert!(tail.median_ms() > 200.0, "{}", tail.median_ms());
    assert!(tail.utilisation > 0.99, "{}", tail.utilisation);
}

#[test]
fn who_does_not_heed_marks_is_dropped_by_pie_all_the_same() {
    let config = PathConfig {
        up_bps: Some(RATE_BPS),
        queue: Queue::Pie,
        ecn: true,
        ..PathConfig::default()
    };
    let mut network = Network::new(&config).unwrap();
    let (ecn, flow) = (Ecn::Capable, network.unconnected(0));
    for packet in 0..10_000 {
        // The sender offers 10 % more than the link carries.
        let bytes = PACKET_BYTES;
        network.carry(
            packet * 12 * MS / 11,
            Direction::Up,
            flow,
            Packet { bytes, ecn },
            packet,
        );
    }
    let share = network.drops().full as f64 / 1e4;
    assert!(network.marked() > 0 && share > 0.05, "{share}");
}

#[test]
fn only_a_managed_queue_may_mark() {
    let config = |queue| PathConfig {
        queue,
        ecn: true,
        ..PathConfig::default()
    };
    assert!(config(Queue::Codel).validate().is_ok());
    assert_eq!(config(Queue::Unlimited).validate().unwrap_err().key, "ecn");
}

#[test]
fn a_burst_passes_codel_and_pie_whole() {
    for queue in [Queue::Codel, Queue::Pie] {
        let config = PathConfig {
            up_bps: Some(RATE_BPS),
            queue,
            ..PathConfig::default()
        };
        let mut network = Network::new(&config).unwrap();
        for packet in 0..80 {
            // 96 ms of packets: the queue is empty before CoDel's interval and PIE's burst allowance have passed.
            network.send(0, Direction::Up, 0, PACKET_BYTES, packet);
        }
        let arrived: Vec<_> = std::iter::from_fn(|| network.deliver(u64::MAX)).collect();
        assert_eq!(arrived.len(), 80, "{queue:?}");
    }
}

proptest! {
    #[test]
    fn nobody_waits_longer_than_a_queue_by_time_allows(
        limit in 1..200_u32,
        rate in 100_000..100_000_000_u64,
        gaps in proptest::collection::vec(0..3 * MS, 1..300),
    ) {
        let mut link = Link::new(Some(rate), Queue::Ms(limit), 1);
        let own = (u64::from(PACKET_BYTES) * 8 * SECOND).div_ceil(rate);
        let (mut now, mut busy_until) = (0, 0_u64);
        for gap in gaps {
            now += gap;
            let has_room = busy_until.saturating_sub(now) <= u64::from(limit) * MS;
            let departs = link.transmit(now, PACKET_BYTES);
            prop_assert_eq!(departs.is_some(), has_room);
            if let Some(departs) = departs {
                prop_assert!(departs - own <= now + u64::from(limit) * MS);
                busy_until = departs;
            }
        }
    }
}
