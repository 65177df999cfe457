//! Benchmarks of the lab: how exact and how fast it is, and its processor time. Prints tables; judges nothing.
//!
//! `cargo bench -p firstflight-lab` runs everything (some minutes, on an idle machine);
//! `cargo bench -p firstflight-lab -- fidelity capacity` only the named sections. Sections: fidelity, sparse, busy,
//! crowd, charge, goodput, capacity, setup.
//!
//! The tables give round trips above those over a veth pair, and above those over two TUN devices with a loop that
//! only forwards packets, also as a share of the latter. Both are measured just before, with the same spacing.
//! "without priority" is what an ordinary user has: if this runs as root, a laboratory without `CAP_SYS_NICE`.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

const PROBES: usize = 2_000;
const SPARSE_PROBES: usize = 200;

/// How probes follow each other.
#[derive(Clone, Copy)]
enum Rhythm {
    /// Every 2 ms.
    Dense,
    /// One in flight, with pauses of 10 ms.
    Sparse,
}

/// The settings of a laboratory.
#[derive(Clone, Copy)]
struct Lab {
    /// Whether it may have real-time priority.
    priority: bool,
    /// Whether processors are kept out of idle states.
    keeps_awake: bool,
}

const LABS: [Lab; 4] = [
    Lab::of(true, true),
    Lab::of(true, false),
    Lab::of(false, true),
    Lab::of(false, false),
];

impl Lab {
    const fn of(priority: bool, keeps_awake: bool) -> Self {
        Self {
            priority,
            keeps_awake,
        }
    }
}

impl std::fmt::Display for Lab {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let priority = if self.priority {
            "with priority"
        } else {
            "without priority"
        };
        let awake = if self.keeps_awake {
            "kept awake"
        } else {
            "not kept awake"
        };
        write!(out, "{priority}, {awake}")
    }
}

/// Round trips without a relay, ms: median and 99th percentile.
#[derive(Clone, Copy)]
struct Floor {
    veth: (f64, f64),
    tun: (f64, f64),
}

fn main() {
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let sections: [(&str, fn()); 8] = [
        ("fidelity", fidelity),
        ("sparse", sparse),
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

/// Round trips compared with the path's RTT, above those of a veth pair.
fn fidelity() {
    for bytes in [64, 1_400] {
        for rtt_ms in [2.0, 20.0, 100.0] {
            measure(bytes, rtt_ms, Rhythm::Dense);
        }
    }
}

/// The same with one probe in flight, like the packets that begin a page load. Once as the relay makes them, and
/// once with the measured addition taken out, as in the loads of a run.
fn sparse() {
    for rtt_ms in [2.0, 20.0, 100.0] {
        let floor = floor(64, Rhythm::Sparse);
        for lab in LABS {
            let raw = probe(&probe_job(64, rtt_ms, Rhythm::Sparse, lab), lab);
            print!("{lab:32}, as it is: ");
            print_error(64, rtt_ms, floor, &raw);
            let mut job = probe_job(64, rtt_ms, Rhythm::Sparse, lab);
            job["timing"]["take_out_ms"] = (added(&raw, "p50") - floor.veth.0).into();
            print!("{lab:32}, corrected: ");
            print_error(64, rtt_ms, floor, &probe(&job, lab));
        }
    }
}

fn measure(bytes: usize, rtt_ms: f64, rhythm: Rhythm) {
    let floor = floor(bytes, rhythm);
    for lab in LABS {
        print!("{lab:32}: ");
        print_error(
            bytes,
            rtt_ms,
            floor,
            &probe(&probe_job(bytes, rtt_ms, rhythm, lab), lab),
        );
    }
}

/// The same while other work keeps one core busy, or every core.
fn busy() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for spinning in [1, cores] {
        println!("{spinning} of {cores} cores busy");
        while_busy(spinning, || measure(64, 20.0, Rhythm::Dense));
    }
}

/// Sixteen labs at once.
fn crowd() {
    let floor = floor(64, Rhythm::Dense);
    let lab = Lab::of(true, false);
    let labs: Vec<Child> = (0..16)
        .map(|_| start("calibrate", &probe_job(64, 20.0, Rhythm::Dense, lab), lab))
        .collect();
    let answers: Vec<Value> = labs.into_iter().map(finish).collect();
    for (lab, answer) in answers.iter().enumerate() {
        print!("lab {lab:2}: ");
        print_error(64, 20.0, floor, answer);
    }
}

/// Delay of a 64-byte packet on the paper's link.
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

/// TCP goodput compared with the rate less headers, and the relay's processor time.
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
    for lab in LABS {
        let timing = json!({"keep_awake": lab.keeps_awake});
        let job =
            json!({"path": path, "probes": 0, "probe_bytes": 1_372, "flood_ms": 5_000, "timing": timing});
        let answer = finish(start("calibrate", &job, lab));
        println!(
            "{lab:32}: 100 Mbit/s of 1,400-byte packets over 20 ms: {} packets, {:.3} core, p99 {} ms late",
            answer["relay"]["packets"],
            cores(&answer),
            answer["relay"]["late_p99_ms"]
        );
    }
}

/// Time to start and end a lab with 84 origins: the whole process.
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

/// Measures and prints round trips without a relay.
fn floor(bytes: usize, rhythm: Rhythm) -> Floor {
    let over = |wire: &str| {
        let mut job = probes(bytes, rhythm);
        job["over"] = wire.into();
        let answer = run("floor", &job);
        (number(&answer["p50"]), number(&answer["p99"]))
    };
    let floor = Floor {
        veth: over("veth"),
        tun: over("tun"),
    };
    println!(
        "floor {bytes:5} B: veth p50 {:.3} ms, p99 {:.3} ms; TUN loop p50 {:.3} ms, p99 {:.3} ms",
        floor.veth.0, floor.veth.1, floor.tun.0, floor.tun.1
    );
    floor
}

fn probes(bytes: usize, rhythm: Rhythm) -> Value {
    match rhythm {
        Rhythm::Dense => json!({"probes": PROBES, "probe_bytes": bytes, "probe_gap_ms": 2.0}),
        Rhythm::Sparse => {
            json!({"probes": SPARSE_PROBES, "probe_bytes": bytes, "probe_gap_ms": 10.0, "sparse": true})
        }
    }
}

fn probe_job(bytes: usize, rtt_ms: f64, rhythm: Rhythm, lab: Lab) -> Value {
    let mut job = probes(bytes, rhythm);
    job["path"] = json!({"rtt_ms": rtt_ms});
    job["timing"] = json!({"keep_awake": lab.keeps_awake});
    job
}

fn probe(job: &Value, lab: Lab) -> Value {
    finish(start("calibrate", job, lab))
}

/// A quantile of the round trips above the path's RTT, ms.
fn added(answer: &Value, quantile: &str) -> f64 {
    let rtt = &answer["rtt_ms"];
    number(&rtt[quantile]) - number(&rtt["expected"])
}

fn print_error(bytes: usize, rtt_ms: f64, floor: Floor, answer: &Value) {
    let rtt = &answer["rtt_ms"];
    let (p50, p99) = (added(answer, "p50"), added(answer, "p99"));
    println!(
        "{bytes:5} B at {rtt_ms:5} ms: error above the floor p50 {:+.3} ms, p99 {:+.3} ms; {:.2} and {:.2} of veth's \
         own, {:.2} and {:.2} of the TUN loop's; relay late p99 {} ms ({}), {} back",
        p50 - floor.veth.0,
        p99 - floor.veth.0,
        p50 / floor.veth.0,
        p99 / floor.veth.1,
        p50 / floor.tun.0,
        p99 / floor.tun.1,
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

/// The relay's processor time divided by its run time.
fn cores(answer: &Value) -> f64 {
    number(&answer["relay"]["cpu_ms"]) / number(&answer["relay"]["wall_ms"])
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn run(verb: &str, job: &Value) -> Value {
    finish(start(verb, job, Lab::of(true, false)))
}

fn start(verb: &str, job: &Value, lab: Lab) -> Child {
    let program = env!("CARGO_BIN_EXE_firstflight-lab");
    let mut command = Command::new(if lab.priority { program } else { "setpriv" });
    if !lab.priority {
        command.args(["--bounding-set=-sys_nice", "--inh-caps=-sys_nice", program]);
    }
    let mut lab = command
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
