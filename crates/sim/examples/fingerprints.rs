//! Fingerprints of many loads: of the record, and of every packet with its time. An optimisation of the simulator
//! must change none of them.
//!
//! `cargo run --release -p firstflight-sim --example fingerprints > before`, the change, the same `> after`, and
//! `diff`.
#![expect(clippy::print_stdout, reason = "it is what it is for")]
#![expect(clippy::unwrap_used, reason = "an example that cannot go on fails")]

use firstflight_page::Page;
use firstflight_sim::{Job, SimPage, trace};
use serde_json::{Map, Value, json};

/// Pages of the paper, from a few requests to one origin to hundreds of requests to many.
const PAGES: [&str; 4] = ["amazon", "nytimes", "wikipedia", "wsj"];
const MODES: [&str; 5] = ["quic", "quic-0rtt", "tcp", "tfo", "early-data"];

fn main() {
    for name in PAGES {
        let page = embedded(name);
        for mode in MODES {
            for (job, path) in cases() {
                let job = with(
                    &json!({"mode": mode, "scheme": "https", "cookies": "warm", "path": path}),
                    &job,
                );
                let (record, packets) = trace(&page, &Job::from_json(&job.to_string()).unwrap()).unwrap();
                println!(
                    "{:016x} {:016x} {:>6} packets {:>9.3?} ms {name} {job}",
                    fingerprint([serde_json::to_string(&record).unwrap().as_str()]),
                    fingerprint(packets.iter().map(String::as_str)),
                    record.relay.carried.packets,
                    record.plt_ms.unwrap_or_default(),
                );
            }
        }
    }
}

/// Settings of jobs and of their paths: first RTTs, losses and seeds, then single settings.
fn cases() -> Vec<(Value, Value)> {
    let path = |rtt_ms: u32, keys: Value| {
        let paper =
            json!({"rtt_ms": rtt_ms, "down_bps": 4_000_000, "up_bps": 256_000, "queue": {"packets": 1_000}});
        with(&paper, &keys)
    };
    let mut cases = Vec::new();
    for rtt_ms in [20, 100, 200] {
        cases.push((json!({}), path(rtt_ms, json!({}))));
        for loss in [0.005, 0.02] {
            for seed in [1, 2] {
                cases.push((json!({}), path(rtt_ms, json!({"loss": loss, "seed": seed}))));
            }
        }
    }
    for keys in [
        json!({"queue": {"packets": 20}}),
        json!({"queue": "codel", "seed": 3}),
        json!({"down_bps": 100_000_000, "up_bps": 20_000_000}),
        json!({"down_bps": null, "up_bps": null}),
        json!({"jitter_ms": 10, "reorder": true, "seed": 4}),
        json!({"duplicate": 0.05, "seed": 5}),
        json!({"topology": "star", "loss": 0.01, "seed": 6}),
        json!({"middlebox": {"kind": "drop-udp"}}),
    ] {
        cases.push((json!({}), path(100, keys)));
    }
    for keys in [
        json!({"congestion_control": "reno"}),
        json!({"congestion_control": "bbr"}),
        json!({"initial_window": 3}),
        json!({"ip": "6"}),
        json!({"cookies": "cold"}),
        json!({"cookies": "stale"}),
        json!({"cookies": "too-early"}),
        json!({"tls": {"post_quantum": true}}),
        json!({"tls": {"http": "2"}}),
        json!({"tls": {"certificate_bytes": 4_000}}),
        json!({"keep_alive": false}),
        json!({"origin_rtt": "recorded"}),
        json!({"lookups": true}),
    ] {
        cases.push((keys, path(100, json!({"loss": 0.01, "seed": 7}))));
    }
    cases
}

/// `object` with these keys.
fn with(object: &Value, keys: &Value) -> Value {
    let mut all: Map<_, _> = object.as_object().cloned().unwrap_or_default();
    all.extend(keys.as_object().cloned().unwrap_or_default());
    Value::Object(all)
}

/// FNV-1a.
fn fingerprint<'a>(lines: impl IntoIterator<Item = &'a str>) -> u64 {
    let bytes = lines.into_iter().flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn embedded(name: &str) -> SimPage {
    let file = format!(
        "{}/../../python/firstflight/pages/embedded/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut page = Page::from_json(&std::fs::read_to_string(file).unwrap()).unwrap();
    page.secure_scheme();
    SimPage::new(&page)
}
