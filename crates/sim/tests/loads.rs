//! Whole page loads on the virtual clock: round trips, determinism, invariants.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use firstflight_page::{Page, Scheme};
use firstflight_sim::{Job, Record, SimPage, Traced, simulate, trace, traced};
use serde_json::json;

fn job(path: &serde_json::Value, mode: &str, keep_alive: bool) -> Job {
    let job = json!({"path": path, "mode": mode, "cookies": "warm", "keep_alive": keep_alive});
    Job::from_json(&job.to_string()).unwrap()
}

/// A document and a chain of resources, each discovered by the one before.
fn chain(bodies: &[u64]) -> SimPage {
    let resource = |(index, body_bytes): (usize, &u64)| {
        let mut resource = json!({
            "url": format!("http://a.test/{index}"),
            "kind": if index == 0 { "document" } else { "script" },
            "mime": if index == 0 { "text/html" } else { "text/javascript" },
            "request_bytes": 400, "header_bytes": 300, "body_bytes": body_bytes,
        });
        if index > 0 {
            resource["initiator"] = json!({"resource": index - 1, "via": "script"});
        }
        resource
    };
    let resources: Vec<_> = bodies.iter().enumerate().map(resource).collect();
    let page = json!({"format": "firstflight-profile/1", "name": "chain", "resources": resources});
    SimPage::new(&Page::from_json(&page.to_string()).unwrap())
}

fn embedded(name: &str) -> SimPage {
    let file = format!(
        "{}/../../python/firstflight/pages/embedded/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut page = Page::from_json(&std::fs::read_to_string(file).unwrap()).unwrap();
    page.clear_scheme();
    SimPage::new(&page)
}

fn plt(record: &Record) -> f64 {
    assert_eq!(record.status, "ok", "{:?}", record.error);
    record.plt_ms.unwrap()
}

#[test]
fn a_chain_of_ten_takes_a_round_trip_each_and_one_for_the_handshake() {
    let (page, path) = (chain(&[800; 10]), json!({"rtt_ms": 75}));
    let load = |mode| plt(&simulate(&page, &job(&path, mode, true)).unwrap());
    assert!((load("tcp") - 11.0 * 75.0).abs() < 1.0, "{}", load("tcp"));
    assert!((load("tfo") - 10.0 * 75.0).abs() < 1.0, "{}", load("tfo"));
}

#[test]
fn without_keep_alive_every_request_pays_for_a_handshake_and_fast_open_saves_it() {
    let (page, path) = (chain(&[800; 10]), json!({"rtt_ms": 75}));
    let load = |mode| plt(&simulate(&page, &job(&path, mode, false)).unwrap());
    assert!((load("tcp") - 20.0 * 75.0).abs() < 1.0, "{}", load("tcp"));
    assert!((load("tfo") - 10.0 * 75.0).abs() < 1.0, "{}", load("tfo"));
}

#[test]
fn where_the_server_closes_an_object_takes_three_packets_behind_its_syn() {
    let path = json!({"rtt_ms": 80, "down_bps": 10_000_000, "up_bps": 2_000_000});
    let job = job(&path, "tfo", false);
    let (_, lines) = trace(&chain(&[1_000; 2]), &job).unwrap();
    let sent: Vec<_> = lines
        .iter()
        .filter(|line| line.contains(" sent ") && line.contains(" up ") && line.contains(" #0 "))
        .collect();
    // Acknowledgments of the SYN-ACK and of the response, and a FIN that acknowledges the server's.
    assert_eq!(sent.len(), 4, "{sent:#?}");
    assert!(sent[3].contains("[F"), "{sent:#?}");
}

#[test]
fn a_transfer_takes_at_least_its_bytes_at_the_rate_of_the_link() {
    let page = chain(&[500_000; 1]);
    let path = json!({"rtt_ms": 20, "down_bps": 4_000_000, "up_bps": 1_000_000});
    let took = plt(&simulate(&page, &job(&path, "tcp", true)).unwrap());
    let least = 500_000.0 * 8.0 / 4_000.0;
    assert!(took > least && took < 1.15 * least + 100.0, "{took} {least}");
}

#[test]
fn a_burst_beyond_the_send_buffer_waits_for_the_first_acknowledgment() {
    let path = json!({"rtt_ms": 100});
    // The first response opens the window to 39 segments; the buffer has room for fewer.
    let load = |second| plt(&simulate(&chain(&[41_000, second]), &job(&path, "tcp", true)).unwrap());
    assert!((load(30_000) - 400.0).abs() < 5.0, "{}", load(30_000));
    assert!((load(50_000) - 500.0).abs() < 5.0, "{}", load(50_000));
}

#[test]
fn the_same_seed_gives_the_same_record_and_another_seed_other_losses() {
    let page = embedded("wikipedia");
    let load = |seed: u64| {
        let path =
            json!({"rtt_ms": 100, "down_bps": 4_000_000, "up_bps": 256_000, "loss": 0.02, "seed": seed});
        serde_json::to_string(&simulate(&page, &job(&path, "tfo", true)).unwrap()).unwrap()
    };
    assert_eq!(load(1), load(1));
    assert_ne!(load(1), load(2));
}

/// Lateness of each retransmitted first SYN, ms after the initial timeout, in loads that lost one packet.
fn late_syns(path: &serde_json::Value) -> Vec<f64> {
    let page = chain(&[800]);
    let load = |seed: u64| {
        let mut path = path.clone();
        path["seed"] = seed.into();
        simulate(&page, &job(&path, "tcp", true)).unwrap()
    };
    let lost_syn =
        |record: &Record| record.relay.carried.lost == 1 && record.connections[0].syn_retransmits == 1;
    let late = |record: Record| plt(&record) - 2.0 * RTT_MS - 1_000.0;
    (0..4_000).map(load).filter(lost_syn).map(late).collect()
}

const RTT_MS: f64 = 10.0;
const TICK_MS: f64 = 4.0;

#[test]
fn where_the_tick_falls_says_nothing_about_the_loss_of_the_first_syn() {
    // A SYN is retransmitted on a tick, so the page load time shows the phase of the tick.
    let loss = 0.1;
    let phases: Vec<f64> = late_syns(&json!({"rtt_ms": RTT_MS, "loss": loss}))
        .iter()
        .map(|late| late.rem_euclid(TICK_MS))
        .collect();
    assert!((150..500).contains(&phases.len()), "{}", phases.len());
    for quarter in 0..4 {
        let low = f64::from(quarter) * TICK_MS / 4.0;
        let share = phases
            .iter()
            .filter(|phase| (low..low + TICK_MS / 4.0).contains(*phase))
            .count() as f64
            / phases.len() as f64;
        // Five standard errors of a share of one quarter.
        let error = 5.0 * (0.25 * 0.75 / phases.len() as f64).sqrt();
        assert!((share - 0.25).abs() < error, "quarter {quarter}: {share}");
    }
}

#[test]
fn the_timer_of_the_first_syn_is_late_by_anything_up_to_a_bucket_of_the_wheel() {
    // `__calc_wheel_index`: 1 s is 250 ticks, in a wheel level whose buckets have eight ticks.
    let bucket = 8.0 * TICK_MS;
    let late = late_syns(&json!({"rtt_ms": RTT_MS, "loss": 0.1}));
    assert!(late.iter().all(|late| (0.0..=bucket + TICK_MS).contains(late)));
    for eighth in 0..8 {
        let low = f64::from(eighth) * TICK_MS;
        let share = late
            .iter()
            .filter(|late| (low..low + TICK_MS).contains(*late))
            .count() as f64
            / late.len() as f64;
        let error = 5.0 * (0.125 * 0.875 / late.len() as f64).sqrt();
        assert!((share - 0.125).abs() < error, "{low} ms: {share}");
    }
}

#[test]
fn every_embedded_page_loads_whole_on_every_path() {
    for name in ["amazon", "nytimes", "wikipedia", "wsj"] {
        let page = embedded(name);
        for loss in [0.0, 0.05] {
            for topology in ["access", "star"] {
                let path = json!({"topology": topology, "rtt_ms": 100, "down_bps": 4_000_000,
                                  "up_bps": 256_000, "loss": loss, "queue": {"packets": 50}});
                for (mode, keep_alive) in [("tcp", true), ("tfo", false)] {
                    let record = simulate(&page, &job(&path, mode, keep_alive)).unwrap();
                    assert_eq!(record.status, "ok", "{name} {path} {mode}: {:?}", record.error);
                    let is_whole = |request: &firstflight_sim::Request| request.error.is_none();
                    assert!(record.requests.iter().all(is_whole), "{name} {path} {mode}");
                }
            }
        }
    }
}

/// The jobs of both clocks contain their shared settings in one flattened struct. Unknown keys must still be
/// refused.
#[test]
fn a_job_with_a_key_that_no_clock_knows_is_refused() {
    let job = json!({"path": {"rtt_ms": 20}, "mode": "tcp", "cookies": "warm", "colour": "red"});
    let error = Job::from_json(&job.to_string()).unwrap_err().to_string();
    assert!(error.contains("unknown field `colour`"), "{error}");
}

/// The lines of the first `packets` that `connection` sends, from a trace of all packets.
fn first_of(lines: &[String], connection: u32, packets: usize) -> Vec<&String> {
    let (mut sent, mut under_way) = (0, Vec::new());
    let is_first = |line: &&String| {
        let (event, packet) = (line[11..18].trim(), &line[19..]);
        if !packet[5..].starts_with(&format!("#{connection} ")) {
            return false;
        }
        let number = if event == "sent" {
            sent += 1;
            under_way.push((sent, packet.to_owned()));
            sent
        } else {
            // A dropped packet has its number, an arriving one is the first that looks like it.
            let (_, number) = packet.rsplit_once(", packet ").unzip();
            let place = under_way.iter().position(|(sent, other)| match number {
                Some(number) => sent.to_string() == number,
                None => other == packet,
            });
            under_way.remove(place.unwrap()).0
        };
        number <= packets
    };
    lines.iter().filter(is_first).collect()
}

/// A page of the paper, with TLS.
fn wikipedia() -> SimPage {
    let text = include_str!("../../../python/firstflight/pages/embedded/wikipedia.json");
    let mut page = Page::from_json(text).unwrap();
    page.secure_scheme();
    SimPage::new(&page)
}

#[test]
fn the_first_packets_of_a_connection_are_noted_with_the_fate_of_each() {
    let page = wikipedia();
    let mut fates = String::new();
    for (mode, connection, queue) in [
        ("tfo+early-data", 0, json!({"packets": 10})),
        ("tfo+early-data", 3, json!({"packets": 10})),
        ("quic", 0, json!({"packets": 10})),
        ("quic", 1, json!({"packets": 10})),
        ("quic", 0, json!("codel")),
    ] {
        let path = json!({"rtt_ms": 50, "down_bps": 4_000_000, "loss": 0.05, "queue": queue, "seed": 3});
        let mut job = job(&path, mode, true);
        job.load.scheme = Scheme::Https;
        let (record, all) = trace(&page, &job).unwrap();
        let first = Traced::First {
            connection,
            packets: 28,
        };
        let (same, noted) = traced(&page, &job, first).unwrap();
        assert_eq!(
            serde_json::to_string(&same).unwrap(),
            serde_json::to_string(&record).unwrap()
        );
        assert_eq!(noted.iter().collect::<Vec<_>>(), first_of(&all, connection, 28));
        fates += &noted.concat();
    }
    assert!(fates.contains(" lost ") && fates.contains(" full ") && fates.contains("arrived"));
}

#[test]
fn a_trace_has_every_packet_that_a_queue_or_chance_drops() {
    let page = wikipedia();
    for queue in [json!({"packets": 10}), json!("codel"), json!("pie")] {
        for mode in ["tcp", "quic"] {
            let path = json!({
                "rtt_ms": 50, "down_bps": 2_000_000, "up_bps": 256_000, "loss": 0.02, "queue": queue, "seed": 3,
            });
            let mut job = job(&path, mode, true);
            job.load.scheme = Scheme::Https;
            let (record, lines) = trace(&page, &job).unwrap();
            let noted = |fate: &str| lines.iter().filter(|line| line.contains(fate)).count() as u64;
            let counted = (record.relay.carried.dropped, record.relay.carried.lost);
            assert!(counted.0 > 0 && counted.1 > 0, "{path} {mode}");
            assert_eq!((noted(" full "), noted(" lost ")), counted, "{path} {mode}");
        }
    }
}
