//! Compares the kernel's counters with what the relay saw.

use firstflight_load::ledger::{Cookie, Entry};
use firstflight_path::Action;

use super::Counters;

/// One counter.
struct Tally {
    name: &'static str,
    counted: u64,
    /// How often the relay saw the event, and how many more the kernel may have counted.
    seen: u64,
    more: u64,
    what: &'static str,
}

/// Every counter that contradicts the relay, as text.
pub(super) fn contradictions(entries: &[&Entry], counters: Counters) -> Vec<String> {
    let [active, passive] = taken(entries, counters);
    let [requests, refused, backup] = cookies(entries, counters);
    [
        active,
        passive,
        requests,
        failed(entries, counters),
        refused,
        backup,
    ]
    .iter()
    .filter_map(Tally::contradiction)
    .collect()
}

fn taken(entries: &[&Entry], counters: Counters) -> [Tally; 2] {
    let accepted = count(entries, Entry::accepted);
    // A client that closed before the SYN-ACK came has no socket left to count it.
    let deserted = count(entries, |entry| entry.accepted() && entry.deserted());
    let what = "SYNs with data accepted";
    [
        Tally {
            name: "TCPFastOpenActive",
            counted: counters.active,
            seen: accepted - deserted,
            more: 0,
            what,
        },
        Tally {
            name: "TCPFastOpenPassive",
            counted: counters.passive,
            seen: accepted,
            // A server counts a valid cookie whether the SYN still has data or not (`tcp_try_fastopen`).
            more: count(entries, |entry| entry.interfered == Some(Action::StripData)),
            what,
        },
    ]
}

/// SYN data that was not accepted, at the client. Three timeouts also count
/// (`tcp_fastopen_active_detect_blackhole`).
fn failed(entries: &[&Entry], counters: Counters) -> Tally {
    let is_in_vain = |entry: &Entry| entry.offered() && !entry.accepted();
    Tally {
        name: "TCPFastOpenActiveFail",
        counted: counters.active_fail,
        seen: count(entries, |entry| {
            is_in_vain(entry) && is_clear(entry) && !entry.deserted()
        }),
        more: count(entries, |entry| {
            !is_clear(entry) || entry.deserted() || entry.retransmits > 0
        }),
        what: "SYNs with data answered and not accepted",
    }
}

/// How servers treated cookies.
fn cookies(entries: &[&Entry], counters: Counters) -> [Tally; 3] {
    let of = |cookie: Cookie, is_clear_wanted: bool| {
        count(entries, |entry| {
            entry.cookie == cookie && is_clear(entry) == is_clear_wanted
        })
    };
    let refused = count(entries, |entry| {
        entry.cookie == Cookie::Sent && is_clear(entry) && !entry.accepted()
    });
    let is_renewed = |entry: &Entry| entry.accepted() && entry.new_cookie != 0;
    let sent_again = count(entries, |entry| {
        entry.cookie == Cookie::Sent && is_clear(entry) && entry.retransmits > 0
    });
    [
        Tally {
            name: "TCPFastOpenCookieReqd",
            counted: counters.cookie_requests,
            seen: of(Cookie::Requested, true),
            more: of(Cookie::Requested, false),
            what: "SYNs that asked for a cookie",
        },
        Tally {
            name: "TCPFastOpenPassiveFail",
            counted: counters.passive_fail,
            // A server with too many pending requests checks no cookie.
            seen: refused.saturating_sub(counters.listen_overflow),
            more: of(Cookie::Sent, false) + counters.listen_overflow,
            what: "cookies refused",
        },
        Tally {
            name: "TCPFastOpenPassiveAltKey",
            counted: counters.passive_alt_key,
            seen: count(entries, is_renewed),
            // A retransmitted SYN-ACK carries no cookie.
            more: of(Cookie::Sent, false) + sent_again,
            what: "good cookies replaced",
        },
    ]
}

fn count(entries: &[&Entry], test: impl Fn(&Entry) -> bool) -> u64 {
    entries.iter().filter(|entry| test(entry)).count() as u64
}

/// Whether its first SYN reached the server unchanged, and the answer arrived.
fn is_clear(entry: &Entry) -> bool {
    entry.interfered.is_none() && entry.syn_retransmits == 0 && entry.answered.is_some()
}

impl Tally {
    fn contradiction(&self) -> Option<String> {
        let Self {
            name,
            counted,
            seen,
            more,
            what,
        } = self;
        let agrees = (*seen..=seen + more).contains(counted);
        (!agrees).then(|| format!("{name} grew by {counted}, the relay saw {seen} {what}"))
    }
}
