//! Transport modes: the round trips that each takes for a document over TLS, and what its connections show.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use firstflight_page::Page;
use firstflight_sim::{Job, Record, SimPage, simulate, trace};
use serde_json::{Value, json};

const RTT_MS: f64 = 100.0;
const DOCUMENTS: usize = 3;

/// Documents on as many hosts, each discovered by the one before; `method` is the last one's.
fn chain(method: &str) -> SimPage {
    let resource = |index: usize| {
        let mut resource = json!({
            "url": format!("https://h{index}.test/"), "kind": "script", "mime": "text/javascript",
            "request_bytes": 400, "header_bytes": 200, "body_bytes": 1_000,
        });
        if let Some(before) = index.checked_sub(1) {
            resource["initiator"] = json!({"resource": before, "via": "script"});
        } else {
            resource["kind"] = json!("document");
            resource["mime"] = json!("text/html");
        }
        if index + 1 == DOCUMENTS {
            resource["method"] = json!(method);
        }
        resource
    };
    let resources: Vec<_> = (0..DOCUMENTS).map(resource).collect();
    let page = json!({"format": "firstflight-profile/1", "name": "chain", "resources": resources});
    SimPage::new(&Page::from_json(&page.to_string()).unwrap())
}

fn load(page: &SimPage, mode: &str, fields: &Value) -> Record {
    let mut job = json!({"path": {"rtt_ms": RTT_MS}, "mode": mode, "cookies": "warm", "scheme": "recorded",
                         "tls": {"post_quantum": false}});
    for (key, value) in fields.as_object().unwrap() {
        job[key] = value.clone();
    }
    let record = simulate(page, &Job::from_json(&job.to_string()).unwrap()).unwrap();
    assert_eq!(record.status, "ok", "{mode} {fields}: {:?}", record.error);
    record
}

fn round_trips(record: &Record) -> f64 {
    record.plt_ms.unwrap() / RTT_MS / DOCUMENTS as f64
}

fn early_data(record: &Record) -> Vec<Value> {
    let rows = serde_json::to_value(record).unwrap();
    let rows = rows["connections"].as_array().unwrap().clone();
    rows.iter().map(|row| row["early_data"].clone()).collect()
}

#[test]
fn each_mode_takes_as_many_round_trips_a_document_as_its_first_flight_promises() {
    let page = chain("GET");
    for (mode, classic, post_quantum) in [
        ("tls12", 4.0, 4.0),
        ("tcp", 3.0, 3.0),
        ("resumption", 3.0, 3.0),
        // A ClientHello with a key share for X25519MLKEM768 is longer than a SYN can carry.
        ("tfo", 2.0, 3.0),
        ("early-data", 2.0, 2.0),
        ("tfo+early-data", 1.0, 2.0),
        // A ClientHello with that key share takes two datagrams, which leave together.
        ("quic", 2.0, 2.0),
        ("quic-0rtt", 1.0, 1.0),
    ] {
        for (share, expected) in [(false, classic), (true, post_quantum)] {
            let record = load(&page, mode, &json!({"tls": {"post_quantum": share}}));
            let seen = round_trips(&record);
            assert!(
                (seen - expected).abs() < 0.03 * expected,
                "{mode} {share}: {seen}"
            );
            let expected = if mode.ends_with("early-data") || mode.ends_with("0rtt") {
                "accepted"
            } else {
                "none"
            };
            assert_eq!(early_data(&record), vec![json!(expected); DOCUMENTS], "{mode}");
        }
    }
}

#[test]
fn a_request_that_is_not_safe_waits_for_the_handshake() {
    let (safe, unsafe_) = (chain("GET"), chain("POST"));
    for (mode, more) in [
        ("early-data", 1.0),
        ("tfo+early-data", 1.0),
        ("quic-0rtt", 1.0),
        ("tcp", 0.0),
        ("quic", 0.0),
    ] {
        let [one, other] = [&safe, &unsafe_].map(|page| load(page, mode, &json!({})).plt_ms.unwrap());
        assert!((other - one - more * RTT_MS).abs() < 3.0, "{mode}: {one} {other}");
    }
    for mode in ["early-data", "quic-0rtt"] {
        let record = load(&unsafe_, mode, &json!({}));
        assert_eq!(early_data(&record), ["accepted", "accepted", "none"], "{mode}");
    }
}

#[test]
fn a_server_that_has_forgotten_its_sessions_rejects_early_data_and_is_asked_again() {
    let page = chain("GET");
    for (mode, round_trips_lost) in [("early-data", 1.0), ("resumption", 0.0), ("quic-0rtt", 1.0)] {
        let [warm, stale] =
            ["warm", "stale"].map(|cookies| round_trips(&load(&page, mode, &json!({"cookies": cookies}))));
        assert!(
            (stale - warm - round_trips_lost).abs() < 0.03,
            "{mode}: {warm} {stale}"
        );
    }
    for mode in ["early-data", "quic-0rtt"] {
        let record = load(&page, mode, &json!({"cookies": "stale"}));
        assert_eq!(early_data(&record), ["rejected"; DOCUMENTS], "{mode}");
    }
}

#[test]
fn a_first_visit_has_no_session_and_sends_nothing_early() {
    let page = chain("GET");
    let cold = |mode| load(&page, mode, &json!({"cookies": "cold"}));
    for mode in ["resumption", "early-data"] {
        assert!((round_trips(&cold(mode)) - 3.0).abs() < 0.1, "{mode}");
    }
    for mode in ["tfo+early-data", "quic-0rtt"] {
        assert_eq!(early_data(&cold(mode)), ["none"; DOCUMENTS], "{mode}");
    }
    assert!((round_trips(&cold("quic-0rtt")) - 2.0).abs() < 0.1);
}

#[test]
fn a_request_that_waits_for_the_handshake_does_not_hold_back_one_that_need_not() {
    let resource = |index: usize, method: &str| {
        let mut resource = json!({
            "url": format!("https://h0.test/{index}"), "kind": "xhr", "mime": "text/plain", "method": method,
            "request_bytes": 400, "header_bytes": 200, "body_bytes": 1_000,
            "initiator": {"resource": 0, "via": "script"},
        });
        if index == 0 {
            (resource["kind"], resource["mime"]) = (json!("document"), json!("text/html"));
            resource["url"] = json!("https://first.test/");
            resource.as_object_mut().unwrap().remove("initiator");
        }
        resource
    };
    let resources = [resource(0, "GET"), resource(1, "POST"), resource(2, "GET")];
    let page = json!({"format": "firstflight-profile/1", "name": "mixed", "resources": resources});
    let page = SimPage::new(&Page::from_json(&page.to_string()).unwrap());
    let record = load(&page, "quic-0rtt", &json!({}));
    let ends: Vec<_> = record
        .requests
        .iter()
        .map(|request| request.end_ms.unwrap())
        .collect();
    assert!(ends[1] > ends[2] + 0.9 * RTT_MS, "{ends:?}");
    assert_eq!(early_data(&record), ["accepted"; 2]);
}

/// Before the path's RTT is known, quinn's pacer holds most of a response back until the server's timer fires.
#[test]
fn no_end_of_a_connection_over_quic_sends_when_the_other_end_receives() {
    let resource = |index: usize| {
        let mut resource = json!({
            "url": format!("https://a.test/{index}"), "kind": "document", "mime": "text/html",
            "request_bytes": 400, "header_bytes": 200, "body_bytes": 60_000,
        });
        if index > 0 {
            resource["kind"] = json!("image");
            resource["mime"] = json!("image/png");
            resource["initiator"] = json!({"resource": 0, "via": "parser", "at_byte": 2_000 * index});
        }
        resource
    };
    let resources: Vec<_> = (0..8).map(resource).collect();
    let page = json!({"format": "firstflight-profile/1", "name": "images", "resources": resources});
    let page = SimPage::new(&Page::from_json(&page.to_string()).unwrap());
    for mode in ["quic", "quic-0rtt"] {
        let job = json!({"path": {"rtt_ms": RTT_MS, "down_bps": 10_000_000, "up_bps": 2_000_000}, "mode": mode,
                         "cookies": "warm", "scheme": "recorded"});
        let (record, packets) = trace(&page, &Job::from_json(&job.to_string()).unwrap()).unwrap();
        assert_eq!(record.status, "ok", "{mode}: {:?}", record.error);
        let lines: Vec<Vec<_>> = packets
            .iter()
            .map(|line| line.split_whitespace().take(3).collect())
            .collect();
        let is = |line: &[&str], at: &str, what: &str, way: &str| line == [at, what, way];
        let happens = |at: &str, what: &str, way: &str| lines.iter().any(|line| is(line, at, what, way));
        let mut sent = 0;
        for line in lines.iter().filter(|line| line[1] == "sent") {
            let (at, way) = (line[0], line[2]);
            let back = if way == "up" { "down" } else { "up" };
            sent += 1;
            assert!(
                happens(at, "arrived", back) || !happens(at, "arrived", way),
                "{mode}: sent {way} at {at} ms, when a datagram arrived at the other end"
            );
        }
        assert!(sent > 300, "{mode}: {sent} datagrams");
    }
}
