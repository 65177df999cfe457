//! How exact, how fast and how dear the lab is. Prints tables; judges nothing.
//!
//! `cargo bench -p firstflight-lab` runs everything (some minutes, on an idle machine);
//! `cargo bench -p firstflight-lab -- fidelity capacity` only what is named.
//! Sections: fidelity, busy, crowd, charge, goodput, capacity, setup.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

const PROBES: usize = 2_000;

fn main() {
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let sections: [(&str, fn()); 7] = [
        ("fidelity", fidelity),
        ("busy", busy),
        ("crowd", crowd),
        ("charge", charge),
        ("goodput", goodput),
        ("capacity", capacity),
        ("setup", setup),
    ];
    for (name, section) in sections {
        if asked.is_empty() || asked.iter().any(|word| word == name) {
            println!("\n## {name}");
            section();
        }
    }
}

/// Round trips against what was asked, above the floor of a veth pair.
fn fidelity() {
    for bytes in [64, 1_400] {
        for rtt_ms in [2.0, 10.0, 20.0, 100.0, 200.0] {
            print_error(bytes, rtt_ms, floor(bytes), &probe(bytes, rtt_ms));
        }
    }
}

/// The same while other work keeps one core busy, or every core.
fn busy() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for spinning in [1, cores] {
        println!("{spinning} of {cores} cores busy");
        while_busy(spinning, || print_error(64, 20.0, floor(64), &probe(64, 20.0)));
    }
}

/// Sixteen labs at once.
fn crowd() {
    let floor = floor(64);
    let labs: Vec<Child> = (0..16)
        .map(|_| start("calibrate", &probe_job(64, 20.0)))
        .collect();
    let answers: Vec<Value> = labs.into_iter().map(finish).collect();
    for (lab, answer) in answers.iter().enumerate() {
        print!("lab {lab:2}: ");
        print_error(64, 20.0, floor, answer);
    }
}

/// What a 64-byte packet pays on the paper's link.
fn charge() {
    let job = json!({
        "path": {"rtt_ms": 40.0, "down_bps": 4_000_000, "up_bps": 256_000},
        "probes": 500, "probe_bytes": 36, "probe_gap_ms": 10.0,
    });
    let rtt = run("calibrate", &job)["rtt_ms"].clone();
    println!(
        "64-byte packet, 40 ms, 4 Mbit/s down, 256 kbit/s up: p50 {} ms, expected {} ms",
        rtt["p50"], rtt["expected"]
    );
}

/// TCP goodput against the rate less headers, and what the relay takes for it.
fn goodput() {
    for (mbps, milliseconds, packets) in [
        (0.256, 20_000, 1_000),
        (4.0, 6_000, 1_000),
        (12.0, 4_000, 1_000),
        (100.0, 4_000, 1_000),
        (500.0, 8_000, 10_000),
    ] {
        let bps = (mbps * 1e6) as u64;
        let path = json!({"rtt_ms": 20.0, "down_bps": bps, "up_bps": bps, "queue": {"packets": packets}});
        let answer = run(
            "calibrate",
            &json!({"path": path, "probes": 5, "rate_ms": milliseconds}),
        );
        for way in ["down_mbps", "up_mbps"] {
            let (measured, expected) = (number(&answer[way]["measured"]), number(&answer[way]["expected"]));
            println!(
                "{mbps:7} Mbit/s {way:9}: {measured:9.4} of {expected:9.4} Mbit/s ({:+.3} %)",
                100.0 * (measured / expected - 1.0)
            );
        }
        let cores = cores(&answer);
        println!(
            "{mbps:7} Mbit/s both ways in turn: {cores:.3} core, {:.3} core per 100 Mbit/s",
            cores / mbps * 100.0
        );
    }
}

/// Unshaped TCP, and a paced UDP stream on a full 100 Mbit/s link.
fn capacity() {
    for rtt_ms in [0.0, 2.0] {
        let answer = run(
            "calibrate",
            &json!({"path": {"rtt_ms": rtt_ms}, "probes": 5, "rate_ms": 4_000}),
        );
        let (down, up) = (
            number(&answer["down_mbps"]["measured"]),
            number(&answer["up_mbps"]["measured"]),
        );
        println!(
            "unshaped, {rtt_ms} ms: {:.2} Gbit/s down, {:.2} up, {:.2} core",
            down / 1e3,
            up / 1e3,
            cores(&answer)
        );
    }
    let path = json!({"rtt_ms": 20.0, "down_bps": 100_000_000, "up_bps": 100_000_000});
    let job = json!({"path": path, "probes": 0, "probe_bytes": 1_372, "flood_ms": 5_000});
    let answer = run("calibrate", &job);
    println!(
        "100 Mbit/s of 1,400-byte packets over 20 ms: {} packets, {:.3} core, p99 {} ms late",
        answer["relay"]["packets"],
        cores(&answer),
        answer["relay"]["late_p99_ms"]
    );
}

/// A lab with 84 origins, up and down: the whole process.
fn setup() {
    let job = json!({"path": {"rtt_ms": 0.0}, "probes": 0, "origins": 84});
    let mut times: Vec<f64> = (0..30)
        .map(|_| {
            let started = Instant::now();
            run("calibrate", &job);
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "84 origins: median {:.1} ms, {:.1} to {:.1}, n = {}",
        times[15],
        times[0],
        times[29],
        times.len()
    );
}

fn floor(bytes: usize) -> f64 {
    let answer = run(
        "floor",
        &json!({"probes": PROBES, "probe_bytes": bytes, "probe_gap_ms": 2.0}),
    );
    let (p50, p99) = (number(&answer["p50"]), number(&answer["p99"]));
    println!(
        "floor {bytes:5} B         : p50 {p50:.3} ms, p99 {:+.3} ms above it",
        p99 - p50
    );
    p50
}

fn probe_job(bytes: usize, rtt_ms: f64) -> Value {
    json!({"path": {"rtt_ms": rtt_ms}, "probes": PROBES, "probe_bytes": bytes, "probe_gap_ms": 2.0})
}

fn probe(bytes: usize, rtt_ms: f64) -> Value {
    run("calibrate", &probe_job(bytes, rtt_ms))
}

fn print_error(bytes: usize, rtt_ms: f64, floor: f64, answer: &Value) {
    let rtt = &answer["rtt_ms"];
    let error = |quantile: &str| number(&rtt[quantile]) - number(&rtt["expected"]) - floor;
    println!(
        "{bytes:5} B at {rtt_ms:5} ms: error above the floor p50 {:+.3} ms, p99 {:+.3} ms; relay late p99 {} ms ({}), {} back",
        error("p50"),
        error("p99"),
        answer["relay"]["late_p99_ms"],
        answer["relay"]["scheduling"],
        rtt["received"]
    );
}

fn while_busy(threads: usize, measure: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        measure();
        stop.store(true, Ordering::Relaxed);
    });
}

/// The relay's processor time over its life.
fn cores(answer: &Value) -> f64 {
    number(&answer["relay"]["cpu_ms"]) / number(&answer["relay"]["wall_ms"])
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn run(verb: &str, job: &Value) -> Value {
    finish(start(verb, job))
}

fn start(verb: &str, job: &Value) -> Child {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_firstflight-lab"))
        .arg(verb)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the lab's binary is built");
    let stdin = lab.stdin.as_mut().expect("its standard input is piped");
    writeln!(stdin, "{job}").expect("the lab reads its job");
    lab
}

fn finish(mut lab: Child) -> Value {
    let mut answer = String::new();
    lab.stdout
        .as_mut()
        .expect("its standard output is piped")
        .read_to_string(&mut answer)
        .expect("it answers text");
    lab.wait().expect("the lab ends");
    serde_json::from_str(&answer).expect("it answers JSON")
}
