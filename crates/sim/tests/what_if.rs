//! What-ifs: what each saves and costs, in round trips, connections and bytes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use firstflight_page::Page;
use firstflight_sim::{Job, Record, SimPage, simulate, trace};
use proptest::prelude::*;
use serde_json::{Value, json};

const RTT_MS: f64 = 100.0;

/// A document, then scripts one after the other or images all at once, on one host.
fn page(via: &str, count: usize, request_bytes: u64, body_bytes: u64) -> SimPage {
    let resource = |index: usize| {
        let mut resource = json!({
            "url": format!("http://a.test/{index}"), "kind": "document", "mime": "text/html",
            "request_bytes": request_bytes, "header_bytes": 200, "body_bytes": body_bytes,
        });
        if index > 0 {
            let (kind, mime, by) = match via {
                "script" => (
                    "script",
                    "text/javascript",
                    json!({"resource": index - 1, "via": via}),
                ),
                _ => (
                    "image",
                    "image/png",
                    json!({"resource": 0, "via": via, "at_byte": 10}),
                ),
            };
            resource["kind"] = json!(kind);
            resource["mime"] = json!(mime);
            resource["initiator"] = by;
        }
        resource
    };
    let resources: Vec<_> = (0..count).map(resource).collect();
    let page = json!({"format": "firstflight-profile/1", "name": "page", "resources": resources});
    SimPage::new(&Page::from_json(&page.to_string()).unwrap())
}

fn one() -> SimPage {
    page("parser", 1, 300, 1_000)
}

/// A job for a load over an unlimited path, with `fields` changed.
fn job(mode: &str, what_if: &Value, fields: &Value) -> Job {
    let mut job = json!({"path": {"rtt_ms": RTT_MS}, "mode": mode, "cookies": "warm", "keep_alive": false,
                         "what_if": what_if});
    for (key, value) in fields.as_object().unwrap() {
        job[key] = value.clone();
    }
    Job::from_json(&job.to_string()).unwrap()
}

fn load(page: &SimPage, mode: &str, what_if: &Value, fields: &Value) -> Record {
    let record = simulate(page, &job(mode, what_if, fields)).unwrap();
    assert_eq!(record.status, "ok", "{:?}", record.error);
    record
}

/// Asserts a PLT of `rtts` round trips and `timers_ms`; timers may fire a little late.
fn assert_takes(record: &Record, rtts: f64, timers_ms: f64) {
    let (plt, exact) = (record.plt_ms.unwrap(), rtts * RTT_MS + timers_ms);
    let late = 0.04 * timers_ms;
    assert!(
        (exact - 1.0..exact + 5.0 + late).contains(&plt),
        "{plt} for {exact}"
    );
}

#[test]
fn a_failure_that_is_remembered_costs_one_timeout_instead_of_one_each() {
    let page = page("script", 3, 300, 1_000);
    let boxed = json!({"path": {"rtt_ms": RTT_MS, "middlebox": {"kind": "drop-data"}}});
    assert_takes(&load(&page, "tfo", &json!({}), &boxed), 6.0, 3_000.0);
    assert_takes(
        &load(&page, "tfo", &json!({"negative_cache": "load"}), &boxed),
        6.0,
        1_000.0,
    );
    let known = load(&page, "tfo", &json!({"negative_cache": "visit"}), &boxed);
    assert_takes(&known, 6.0, 0.0);
    assert_eq!(known.totals.tfo_offered, 0);
}

#[test]
fn each_kind_of_failure_is_remembered_and_a_new_cookie_is_none() {
    let page = page("script", 3, 300, 1_000);
    let offered = |fields: &Value| {
        let job = job("tfo", &json!({"negative_cache": "load"}), fields);
        simulate(&page, &job).unwrap().totals.tfo_offered
    };
    for kind in ["strip-option", "strip-data", "drop-data", "reset", "black-hole"] {
        let path = json!({"rtt_ms": RTT_MS, "middlebox": {"kind": kind}});
        assert_eq!(
            offered(&json!({"path": path, "request_timeout_ms": 500})),
            1,
            "{kind}"
        );
    }
    assert_eq!(offered(&json!({"cookies": "stale"})), 3);
    assert_eq!(offered(&json!({})), 3);
}

#[test]
fn one_time_cookies_cost_nothing_in_a_row_and_a_round_trip_beside_each_other() {
    let one_time = |kept: u32| json!({"one_time_cookies": kept});
    let chain = page("script", 5, 300, 1_000);
    assert_takes(&load(&chain, "tfo", &one_time(1), &json!({})), 5.0, 0.0);
    // The document's connection brings one more cookie. One of six images uses it; the others request one and wait.
    let fan = page("parser", 7, 300, 1_000);
    let short = load(&fan, "tfo", &one_time(1), &json!({}));
    assert_takes(&short, 3.0, 0.0);
    assert_eq!((short.totals.tfo_accepted, short.connection_count), (2, 7));
    let enough = load(&fan, "tfo", &one_time(6), &json!({}));
    assert_takes(&enough, 2.0, 0.0);
    assert_eq!(enough.totals.tfo_accepted, 7);
}

#[test]
fn a_cookie_that_is_the_clients_own_goes_with_it_wherever_it_moves() {
    let own = json!({"client_cookies": true});
    for cookies in ["moved", "nat"] {
        let fields = json!({"cookies": cookies});
        assert_takes(&load(&one(), "tfo", &json!({}), &fields), 2.0, 0.0);
        assert_takes(&load(&one(), "tfo", &own, &fields), 1.0, 0.0);
    }
    assert_takes(&load(&one(), "tfo", &own, &json!({"cookies": "stale"})), 2.0, 0.0);
}

#[test]
fn a_server_that_answers_the_unproven_saves_the_round_trip_of_the_first_visit() {
    for cookies in ["cold", "stale"] {
        let fields = json!({"cookies": cookies});
        let answered = |bytes: u64| load(&one(), "tfo", &json!({"unproven": {"bytes": bytes}}), &fields);
        assert_takes(&load(&one(), "tfo", &json!({}), &fields), 2.0, 0.0);
        assert_takes(&answered(14_600), 1.0, 0.0);
        assert_eq!(answered(14_600).totals.tfo_accepted, 1);
        // An answer of 1,200 bytes exceeds the limit: the rest waits for the handshake.
        assert_takes(&answered(600), 2.0, 0.0);
    }
}

#[test]
fn after_its_time_the_server_waits_for_the_proof() {
    let mut slow = json!({"format": "firstflight-profile/1", "name": "slow", "resources": [
        {"url": "http://a.test/", "kind": "document", "mime": "text/html", "request_bytes": 300,
         "header_bytes": 200, "body_bytes": 1_000, "server_ms": 50}]});
    let mut took = |server_ms: u64, ms: u64| {
        slow["resources"][0]["server_ms"] = json!(server_ms);
        let page = SimPage::new(&Page::from_json(&slow.to_string()).unwrap());
        let what_if = json!({"unproven": {"bytes": 14_600, "ms": ms}});
        load(&page, "tfo", &what_if, &json!({"cookies": "cold"}))
    };
    assert_takes(&took(50, 60), 1.5, 0.0);
    // The answer is ready too late. The handshake ends a round trip after the SYN, and the answer leaves then.
    assert_takes(&took(50, 40), 2.0, 0.0);
    assert_takes(&took(150, 40), 2.5, 0.0);
}

#[test]
fn a_long_request_leaves_whole_with_more_segments_beside_the_syn() {
    let long = page("parser", 1, 1_420 + 2 * 1_448, 1_000);
    let load = |more: u32, cookies: &str| {
        load(
            &long,
            "tfo",
            &json!({"more_syn_segments": more}),
            &json!({"cookies": cookies}),
        )
    };
    assert_takes(&load(0, "warm"), 2.0, 0.0);
    assert_takes(&load(1, "warm"), 2.0, 0.0);
    assert_takes(&load(2, "warm"), 1.0, 0.0);
    assert_eq!(load(2, "warm").totals.retransmits, 0);
    // With a stale cookie the server accepts none of it, and the client sends all of it again.
    assert_takes(&load(2, "stale"), 2.0, 0.0);
    assert_eq!(load(2, "stale").totals.retransmits, 2);
}

#[test]
fn early_data_saves_one_of_three_round_trips_and_with_fast_open_two() {
    let tls = |post_quantum: bool| json!({"scheme": "https", "tls": {"post_quantum": post_quantum}});
    let (resumed, early) = (json!({"early_data": 0}), json!({"early_data": 16_384}));
    for (mode, rtts) in [("tcp", [3.0, 3.0, 2.0]), ("tfo", [2.0, 2.0, 1.0])] {
        for (what_if, rtts) in [&json!({}), &resumed, &early].into_iter().zip(rtts) {
            assert_takes(&load(&one(), mode, what_if, &tls(false)), rtts, 0.0);
        }
    }
    // The post-quantum key share does not fit into a SYN, unless more segments may follow it.
    assert_takes(&load(&one(), "tfo", &json!({}), &tls(true)), 3.0, 0.0);
    assert_takes(
        &load(&one(), "tfo", &json!({"more_syn_segments": 1}), &tls(true)),
        2.0,
        0.0,
    );
    assert_takes(&load(&one(), "tfo", &early, &tls(true)), 2.0, 0.0);
    let both = json!({"early_data": 16_384, "more_syn_segments": 1});
    assert_takes(&load(&one(), "tfo", &both, &tls(true)), 1.0, 0.0);
}

#[test]
fn what_may_not_go_early_waits_for_the_handshake() {
    let tls = json!({"scheme": "https", "tls": {"post_quantum": false}});
    let mut post = json!({"format": "firstflight-profile/1", "name": "post", "resources": [
        {"url": "http://a.test/", "kind": "document", "mime": "text/html", "request_bytes": 300,
         "header_bytes": 200, "body_bytes": 1_000}]});
    assert_takes(&load(&one(), "tfo", &json!({"early_data": 200}), &tls), 2.0, 0.0);
    post["resources"][0]["method"] = json!("POST");
    let page = SimPage::new(&Page::from_json(&post.to_string()).unwrap());
    assert_takes(
        &load(&page, "tfo", &json!({"early_data": 16_384}), &tls),
        2.0,
        0.0,
    );
    assert_takes(
        &load(&page, "tcp", &json!({"early_data": 16_384}), &tls),
        3.0,
        0.0,
    );
}

#[test]
fn an_initial_window_of_32_segments_saves_the_round_trips_that_a_smaller_one_needs() {
    // 25 segments: 3 + 6 + 12 + 4, 10 + 15, or 25 at once.
    let page = page("parser", 1, 300, 25 * 1_448 - 200);
    for (segments, rtts) in [(3, 4.0), (10, 2.0), (32, 1.0)] {
        let fields = json!({"initial_window": segments});
        assert_takes(&load(&page, "tfo", &json!({}), &fields), rtts, 0.0);
    }
}

/// Bytes of data that the server sends before the client acknowledges any.
fn sent_to_the_unproven(lines: &[String]) -> u64 {
    let before = lines
        .iter()
        .take_while(|line| !(line.contains("arrived up") && line.contains(" ack 1,")));
    let sent = before.filter(|line| line.contains(" sent    down"));
    sent.map(|line| length_of(line)).sum()
}

/// The value of `length` in a line of the trace.
fn length_of(line: &str) -> u64 {
    let (_, length) = line.rsplit_once(", length ").unwrap();
    length.split(',').next().unwrap().parse().unwrap()
}

fn any_what_if() -> impl Strategy<Value = Value> {
    let names = proptest::option::of(prop_oneof![Just("load"), Just("visit")]);
    let unproven = proptest::option::of((0_u64..40_000, proptest::option::of(0_u64..300)));
    let counts = (
        proptest::option::of(1_u32..8),
        0_u32..8,
        proptest::option::of(0_u64..20_000),
        any::<bool>(),
    );
    (names, unproven, counts).prop_map(|(negative_cache, unproven, (kept, more, early_data, own))| {
        json!({"negative_cache": negative_cache, "one_time_cookies": kept, "more_syn_segments": more,
               "early_data": early_data, "client_cookies": own, "unproven": unproven.map(|(bytes, ms)| json!({"bytes": bytes, "ms": ms}))})
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_unproven_get_no_more_than_the_limit(bytes in 0_u64..40_000, body in 0_u64..60_000, more in 0_u32..4) {
        let page = page("parser", 1, 2_000, body);
        let what_if = json!({"unproven": {"bytes": bytes}, "more_syn_segments": more});
        let (record, lines) = trace(&page, &job("tfo", &what_if, &json!({"cookies": "cold"}))).unwrap();
        prop_assert_eq!(record.status, "ok");
        let sent = sent_to_the_unproven(&lines);
        let answer = body + 200;
        let is_whole = more > 0;
        prop_assert_eq!(sent, if is_whole { answer.min(bytes).min(10 * 1_448) } else { 0 });
    }

    #[test]
    fn whatever_is_otherwise_every_page_loads_whole(
        what_if in any_what_if(),
        (cookies, mode) in (prop_oneof![Just("warm"), Just("cold"), Just("stale"), Just("moved"), Just("pool:3"), Just("warm:0.5")], prop_oneof![Just("tcp"), Just("tfo")]),
        (loss, jitter_ms) in (prop_oneof![Just(0.0), Just(0.03)], prop_oneof![Just(0.0), Just(20.0)]),
        (seed, tls, keep_alive) in (0_u64..1_000, any::<bool>(), any::<bool>()),
    ) {
        let path = json!({"rtt_ms": 40, "down_bps": 4_000_000, "up_bps": 256_000, "loss": loss, "seed": seed,
                          "jitter_ms": jitter_ms, "reorder": jitter_ms > 0.0});
        let scheme = if tls { "https" } else { "http" };
        let fields = json!({"path": path, "cookies": cookies, "scheme": scheme, "keep_alive": keep_alive});
        let page = page("parser", 12, 1_700, 9_000);
        let job = job(mode, &what_if, &fields);
        let record = simulate(&page, &job).unwrap();
        prop_assert_eq!(record.status, "ok", "{:?}", record.error);
        prop_assert_eq!(record.failed_requests, 0);
        let again = simulate(&page, &job).unwrap();
        prop_assert_eq!(serde_json::to_string(&record).unwrap(), serde_json::to_string(&again).unwrap());
        if mode == "tcp" {
            prop_assert_eq!(record.totals.tfo_offered, 0);
        }
    }
}
