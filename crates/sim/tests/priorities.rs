//! Priorities (RFC 9218): the order of responses if requests state priorities.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use firstflight_page::Page;
use firstflight_sim::{Job, Record, SimPage, simulate};
use proptest::prelude::*;
use serde_json::json;

/// Kinds of resources, the most urgent first: kind, urgency, and whether those of a kind share the connection.
const KINDS: [(&str, u8, bool); 3] = [("style", 0, false), ("script", 1, false), ("image", 3, true)];
const DOCUMENT_BYTES: u64 = 40_000;

/// A part of a page: an index into [`KINDS`], the byte of the document at which it is found, and its size.
type Part = (usize, u64, u64);

/// A document with these parts, all on one host.
fn page(parts: &[Part]) -> SimPage {
    let document = json!({
        "url": "https://a.test/", "kind": "document", "mime": "text/html",
        "request_bytes": 400, "header_bytes": 200, "body_bytes": DOCUMENT_BYTES,
    });
    let part = |(index, &(kind, at_byte, body_bytes)): (usize, &Part)| {
        json!({
            "url": format!("https://a.test/{index}"), "kind": KINDS[kind].0, "mime": "text/plain",
            "request_bytes": 400, "header_bytes": 200, "body_bytes": body_bytes,
            "initiator": {"resource": 0, "via": "parser", "at_byte": at_byte},
        })
    };
    let resources: Vec<_> = std::iter::once(document)
        .chain(parts.iter().enumerate().map(part))
        .collect();
    let page = json!({"format": "firstflight-profile/1", "name": "page", "resources": resources});
    SimPage::new(&Page::from_json(&page.to_string()).unwrap())
}

fn load(page: &SimPage, mode: &str, priorities: &str) -> Record {
    let job = json!({"path": {"rtt_ms": 50, "down_bps": 10_000_000, "up_bps": 2_000_000}, "mode": mode, "cookies": "warm",
                     "scheme": "recorded", "tls": {"http": "2"}, "priorities": priorities});
    let record = simulate(page, &Job::from_json(&job.to_string()).unwrap()).unwrap();
    assert_eq!(record.status, "ok", "{mode}: {:?}", record.error);
    record
}

/// When each part was requested and when it was complete, ms.
fn times(record: &Record) -> Vec<(f64, f64)> {
    let of = record.requests.iter().skip(1);
    of.map(|request| (request.sent_ms.unwrap(), request.end_ms.unwrap()))
        .collect()
}

/// Pairs of parts in which the second was complete first, although the first was requested earlier and has
/// priority.
fn overtaken(parts: &[Part], record: &Record) -> Vec<(usize, usize)> {
    let times = times(record);
    let goes_first = |one: usize, other: usize| {
        let (_, urgency, is_incremental) = KINDS[parts[one].0];
        let (before, after) = (times[one].0, times[other].0);
        let than = KINDS[parts[other].0].1;
        before < after && (urgency < than || (urgency == than && !is_incremental))
    };
    let pairs = (0..parts.len()).flat_map(|one| (0..parts.len()).map(move |other| (one, other)));
    pairs
        .filter(|&(one, other)| goes_first(one, other) && times[other].1 < times[one].1)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_overtakes_what_is_more_urgent(
        parts in prop::collection::vec((0..KINDS.len(), 0..DOCUMENT_BYTES, 1..60_000_u64), 2..20),
    ) {
        let page = page(&parts);
        for mode in ["tcp", "quic", "quic-0rtt"] {
            let record = load(&page, mode, "rfc9218");
            prop_assert_eq!(overtaken(&parts, &record), vec![], "{}", mode);
        }
    }
}

#[test]
fn a_late_style_sheet_goes_before_images_that_were_begun_only_where_requests_say_so() {
    let mut parts = vec![(2, 0, 150_000); 8];
    parts.push((0, 39_000, 40_000));
    let page = page(&parts);
    for mode in ["tcp", "quic", "quic-0rtt"] {
        let ends = |priorities| {
            let ends: Vec<_> = times(&load(&page, mode, priorities))
                .into_iter()
                .map(|(_, end)| end)
                .collect();
            let last = ends.iter().copied().fold(0.0, f64::max);
            (ends[8], ends[..8].iter().copied().fold(f64::MAX, f64::min), last)
        };
        let (style, image, last) = ends("rfc9218");
        // Over TCP the style sheet waits for what the server's socket has accepted before.
        assert!(style < image || mode == "tcp", "{mode}: {style} ms, {image} ms");
        let (shared, _, shared_last) = ends("none");
        assert!(style + 50.0 < shared, "{mode}: {style} ms, {shared} ms");
        // The order makes no difference to the last part.
        assert!(
            (last - shared_last).abs() < 0.05 * last,
            "{mode}: {last} ms, {shared_last} ms"
        );
    }
}

#[test]
fn scripts_go_one_after_another_and_images_share() {
    for (kind, shares) in [(1, false), (2, true)] {
        let page = page(&[(kind, 0, 600_000), (kind, 0, 600_000)]);
        for mode in ["tcp", "quic"] {
            let times = times(&load(&page, mode, "rfc9218"));
            let apart = times[1].1 - times[0].1;
            // 600 kB take 480 ms at 10 Mbit/s; a server's socket accepts about the first 150 kB of one at once.
            assert_eq!(apart < 240.0, shares, "{mode}, {}: {apart} ms", KINDS[kind].0);
        }
    }
}
