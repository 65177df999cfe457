//! Benchmarks of the simulator on one core: speed, and how the time grows. Prints tables; judges nothing.
//!
//! `cargo bench -p firstflight-sim` runs everything (half a minute, on an idle machine);
//! `cargo bench -p firstflight-sim -- paper growth` only the named sections. `firstflight run` also writes results.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

use std::time::{Duration, Instant};

use firstflight_page::{Page, Scheme};
use firstflight_sim::{Job, Record, SimPage, simulate};
use serde_json::{Value, json};

const AT_LEAST: Duration = Duration::from_millis(500);

fn main() {
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let sections: [(&str, fn()); 3] = [("paper", paper), ("quic", quic), ("growth", growth)];
    for (name, section) in sections {
        if asked.is_empty() || asked.iter().any(|word| word == name) {
            println!("\n## {name}");
            section();
        }
    }
}

/// The 24 cells of the paper's Table 1: four pages, three RTTs, without and with Fast Open.
fn paper() {
    speed(&["tcp", "tfo"], Scheme::Http);
}

/// The same pages over QUIC, every origin with TLS.
fn quic() {
    speed(&["quic", "quic-0rtt"], Scheme::Https);
}

/// How fast four pages are simulated at three RTTs, in these modes.
fn speed(modes: &[&str], scheme: Scheme) {
    println!(
        "{:>10} {:>9} {:>10} {:>12}",
        "page", "requests", "loads/s", "x real time"
    );
    let (mut spent, mut loaded_ms, mut loads) = (0.0, 0.0, 0.0);
    for name in ["amazon", "nytimes", "wikipedia", "wsj"] {
        let page = embedded(name, scheme);
        let (mut took, mut plt_ms) = (0.0, 0.0);
        for rtt_ms in [20, 100, 200] {
            for mode in modes {
                let (one, record) = time(&page, &job(&paper_path(rtt_ms, 0.0), mode, scheme));
                took += one;
                plt_ms += record.plt_ms.unwrap();
            }
        }
        let requests = simulate(&page, &job(&paper_path(20, 0.0), "tcp", scheme))
            .unwrap()
            .requests
            .len();
        println!(
            "{name:>10} {requests:>9} {:>10.0} {:>12.0}",
            6.0 / took,
            plt_ms / 1e3 / took
        );
        (spent, loaded_ms, loads) = (spent + took, loaded_ms + plt_ms, loads + 6.0);
    }
    println!(
        "{:>10} {:>9} {:>10.0} {:>12.0}",
        "all",
        "",
        loads / spent,
        loaded_ms / 1e3 / spent
    );
}

/// Time by the number of requests, by bytes, and by loss.
fn growth() {
    println!(
        "{:>28} {:>10} {:>9} {:>11}",
        "", "ms a load", "packets", "us a packet"
    );
    for requests in [1, 10, 100, 1_000] {
        print_growth(
            &format!("{requests} requests of 10 kB"),
            &images(requests, 10_000),
            0.0,
        );
    }
    for kilobytes in [10, 100, 1_000, 10_000] {
        print_growth(
            &format!("1 request of {kilobytes} kB"),
            &images(1, kilobytes * 1_000),
            0.0,
        );
    }
    for loss in [0.0, 0.005, 0.02, 0.1] {
        print_growth(
            &format!("wsj, {:.1} % loss", 100.0 * loss),
            &embedded("wsj", Scheme::Http),
            loss,
        );
    }
}

fn print_growth(name: &str, page: &SimPage, loss: f64) {
    let (took, record) = time(page, &job(&paper_path(100, loss), "tfo", Scheme::Http));
    let packets = record.relay.carried.packets;
    println!(
        "{name:>28} {:>10.3} {packets:>9} {:>11.2}",
        1e3 * took,
        1e6 * took / packets as f64
    );
}

/// Time that a load takes, s, averaged over at least half a second, and its record.
fn time(page: &SimPage, job: &Job) -> (f64, Record) {
    let record = simulate(page, job).unwrap();
    assert_eq!(record.error, None, "what is timed is not what was asked for");
    let (start, mut loads) = (Instant::now(), 0.0);
    while start.elapsed() < AT_LEAST {
        std::hint::black_box(simulate(page, job).unwrap());
        loads += 1.0;
    }
    (start.elapsed().as_secs_f64() / loads, record)
}

fn job(path: &Value, mode: &str, scheme: Scheme) -> Job {
    let fields = json!({"path": path, "mode": mode, "cookies": "warm"});
    let mut job = Job::from_json(&fields.to_string()).unwrap();
    job.load.scheme = scheme;
    job
}

fn paper_path(rtt_ms: u32, loss: f64) -> Value {
    json!({"rtt_ms": rtt_ms, "down_bps": 4_000_000, "up_bps": 256_000, "loss": loss, "queue": {"packets": 1_000}})
}

fn embedded(name: &str, scheme: Scheme) -> SimPage {
    let file = format!(
        "{}/../../python/firstflight/pages/embedded/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut page = Page::from_json(&std::fs::read_to_string(file).unwrap()).unwrap();
    scheme.apply(&mut page);
    SimPage::new(&page)
}

/// A small document with `count` images of ten hosts.
fn images(count: usize, body_bytes: u64) -> SimPage {
    let document = json!({"url": "http://h0.test/", "kind": "document", "mime": "text/html",
                          "request_bytes": 400, "header_bytes": 300, "body_bytes": 1_000});
    let image = |index: usize| {
        json!({"url": format!("http://h{}.test/{index}", index % 10), "kind": "image", "mime": "image/png",
               "request_bytes": 400, "header_bytes": 300, "body_bytes": body_bytes,
               "initiator": {"resource": 0, "via": "parser"}})
    };
    let resources: Vec<_> = std::iter::once(document).chain((0..count).map(image)).collect();
    let page = json!({"format": "firstflight-profile/1", "name": "images", "resources": resources});
    SimPage::new(&Page::from_json(&page.to_string()).unwrap())
}
