//! Sends probes over a path on a virtual clock. The far end sends each probe back at once.
//!
//! `cargo run -p firstflight-path --example probes -- PATH_JSON COUNT GAP_US` prints a line per arrival, in order:
//! the probe's number and its round-trip time, ns. `tests/validation/link_check.py` compares these times with the
//! lab's.
#![expect(clippy::print_stdout, reason = "that is what it is for")]

use std::error::Error;

use firstflight_path::{Direction, Ecn, Flow, Network, Packet, PathConfig, Protocol};

/// A datagram of 100 bytes with its IP and UDP headers.
const PROBE: Packet = Packet {
    bytes: 128,
    ecn: Ecn::NotCapable,
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, count, gap_us] = arguments.as_slice() else {
        return Err("give PATH_JSON COUNT GAP_US".into());
    };
    let config: PathConfig = serde_json::from_str(path)?;
    let (count, gap): (u64, u64) = (count.parse()?, gap_us.parse::<u64>()? * 1_000);
    let mut network = Network::new(&config)?;
    let flow = network.open(Protocol::Udp, 0);
    for probe in 0..count {
        echo(&mut network, flow, probe * gap, gap);
        network.carry(probe * gap, Direction::Up, flow, PROBE, probe);
    }
    echo(&mut network, flow, u64::MAX, gap);
    Ok(())
}

/// Delivers every packet due by `now`. The far end sends it back; the near end prints it.
fn echo(network: &mut Network<u64>, flow: Flow, now: u64, gap: u64) {
    while let Some((at, direction, probe)) = network.deliver(now) {
        match direction {
            Direction::Up => network.carry(at, Direction::Down, flow, PROBE, probe),
            Direction::Down => println!("{probe} {}", at - probe * gap),
        }
    }
}
