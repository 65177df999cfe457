use firstflight_path::{Direction, TcpFlags};

use super::*;
use crate::ledger::Segment;

const HOST: usize = 0;
const OLD: u128 = 0x01d;
const NEW: u128 = 0x2e3;
/// Between one connection and the next, and from a SYN to its answer, ns.
const BETWEEN: u64 = 10 * GRACE;
const ANSWER: u64 = GRACE;

/// One connection: what its SYN says, whether its data is acknowledged, and what cookie comes back (0 for none).
#[derive(Debug, Clone, Copy)]
struct Seen {
    syn: Syn,
    acked: bool,
    given: u128,
}

#[derive(Debug, Clone, Copy)]
enum Syn {
    Bare,
    Data,
    Asks,
    Sends(u128),
    SendsNothingWith(u128),
}

use Syn::{Asks, Bare, Data, Sends, SendsNothingWith};

fn seen(syn: Syn, acked: bool, given: u128) -> Seen {
    Seen { syn, acked, given }
}

fn segment(direction: Direction, cookie: Option<u128>, payload_bytes: u32) -> Segment {
    Segment {
        direction,
        flags: TcpFlags {
            syn: true,
            ack: direction == Direction::Down,
            ..TcpFlags::default()
        },
        sequence: 1_000,
        acknowledgment: 0,
        payload_bytes,
        packet_bytes: 60 + payload_bytes,
        option: match cookie {
            None => Cookie::None,
            Some(0) => Cookie::Requested,
            Some(_) => Cookie::Sent,
        },
        cookie: cookie.unwrap_or(0),
    }
}

/// What the ledger makes of connections, one after the other.
fn ledger(connections: &[Seen]) -> Vec<Entry> {
    let entry = |(number, seen): (usize, &Seen)| {
        let (cookie, payload_bytes) = match seen.syn {
            Bare => (None, 0),
            Data => (None, 300),
            Asks => (Some(0), 0),
            Sends(cookie) => (Some(cookie), 300),
            SendsNothingWith(cookie) => (Some(cookie), 0),
        };
        let opened = (1 + number as u64) * BETWEEN;
        let syn = segment(Direction::Up, cookie, payload_bytes);
        let syn_ack = Segment {
            acknowledgment: 1_001 + if seen.acked { payload_bytes } else { 0 },
            ..segment(Direction::Down, (seen.given != 0).then_some(seen.given), 0)
        };
        let mut entry = Entry::new(opened, &syn);
        entry.sent(opened, &syn);
        entry.sent(opened + ANSWER / 2, &syn_ack);
        entry.arrived(opened + ANSWER, &syn_ack);
        entry
    };
    connections.iter().enumerate().map(entry).collect()
}

/// What breaks the promise of `cookies`. All connections are to one host.
fn broken(cookies: Cookies, connections: &[Seen]) -> Vec<String> {
    let promise = Promise::Cookies { cookies, seed: 1 };
    let ledger = ledger(connections);
    let seen = || ledger.iter().map(|entry| (HOST, entry));
    let given: Given = seen().collect();
    let single = seen().filter_map(|connection| promise.broken_by(connection, &given).map(str::to_owned));
    single.chain(promise.crowded(seen())).collect()
}

#[test]
fn each_state_is_proved_by_what_comes_of_it() {
    let good = seen(Sends(NEW), true, 0);
    let first = seen(Sends(OLD), true, 0);
    let cases: [(Cookies, &[Seen]); 9] = [
        (Cookies::Warm, &[first, first]),
        (Cookies::Cold, &[seen(Asks, false, NEW), good]),
        (Cookies::Moved, &[seen(Asks, false, NEW), good]),
        (Cookies::Stale, &[seen(Sends(OLD), false, NEW), good, good]),
        (Cookies::Nat, &[seen(Sends(OLD), false, NEW), good]),
        (Cookies::Backup, &[seen(Sends(OLD), true, NEW), good]),
        (
            Cookies::Pool(2),
            &[
                first,
                seen(Sends(OLD), false, NEW),
                good,
                seen(Sends(NEW), false, OLD),
                first,
            ],
        ),
        (Cookies::Cookieless, &[seen(Data, true, 0); 2]),
        (Cookies::Share(0.999), &[first]),
    ];
    for (cookies, connections) in cases {
        assert_eq!(broken(cookies, connections), [""; 0], "{cookies:?}");
    }
}

#[test]
fn what_looks_like_another_state_is_no_proof() {
    let refused = "its SYN's data was not acknowledged";
    let in_spite = "its SYN's data was acknowledged, though its cookie was not good";
    let none = "it was given no cookie";
    let one = "it was given a cookie, though it had a good one";
    let no_data = "its SYN carried no data in a warm tfo load";
    let cases = [
        (Cookies::Warm, seen(Sends(OLD), false, 0), refused),
        (Cookies::Warm, seen(Sends(OLD), true, NEW), one),
        (Cookies::Warm, seen(Asks, false, NEW), no_data),
        (Cookies::Warm, seen(SendsNothingWith(OLD), false, 0), no_data),
        (Cookies::Cold, seen(Asks, false, 0), none),
        (
            Cookies::Cold,
            seen(Sends(OLD), true, 0),
            "its SYN carried a cookie that the client had not been given",
        ),
        (
            Cookies::Moved,
            seen(Sends(OLD), false, NEW),
            "its SYN carried a cookie that the client had not been given",
        ),
        (Cookies::Cold, seen(Bare, false, 0), no_data),
        (Cookies::Stale, seen(Sends(OLD), true, 0), in_spite),
        (Cookies::Stale, seen(Sends(OLD), false, 0), none),
        (Cookies::Stale, seen(Asks, false, NEW), no_data),
        (Cookies::Nat, seen(Sends(OLD), true, NEW), in_spite),
        (Cookies::Backup, seen(Sends(OLD), false, NEW), refused),
        (Cookies::Backup, seen(Sends(OLD), true, 0), none),
        (Cookies::Pool(2), seen(Sends(OLD), true, NEW), one),
        (Cookies::Pool(2), seen(Sends(OLD), false, 0), none),
        (
            Cookies::Pool(2),
            seen(Sends(OLD), false, OLD),
            "it was given the cookie that it had sent",
        ),
        (Cookies::Cookieless, seen(Data, false, 0), refused),
        (
            Cookies::Cookieless,
            seen(Sends(OLD), true, 0),
            "its SYN carried no data without a cookie",
        ),
        (
            Cookies::Share(0.001),
            seen(Sends(OLD), true, 0),
            "its SYN carried a cookie that the client had not been given",
        ),
    ];
    for (cookies, connection, says) in cases {
        assert_eq!(
            broken(cookies, &[connection]),
            [says],
            "{cookies:?} {connection:?}"
        );
    }
}

#[test]
fn the_newest_cookie_is_the_one_to_send() {
    let old_again = [seen(Sends(OLD), false, NEW), seen(Sends(OLD), false, NEW)];
    assert_eq!(
        broken(Cookies::Stale, &old_again),
        ["its SYN carried an old cookie, though the client had been given a new one"]
    );
    let asked_again = [seen(Asks, false, NEW), seen(Asks, false, NEW)];
    assert_eq!(
        broken(Cookies::Cold, &asked_again),
        ["its SYN asked for a cookie, which the client had been given before"]
    );
}

#[test]
fn a_pool_has_no_more_cookies_than_servers() {
    let three = [seen(Sends(OLD), false, NEW), seen(Sends(NEW), false, 3)];
    assert_eq!(
        broken(Cookies::Pool(2), &three),
        ["host 0: 3 different cookies of 2 servers"]
    );
    assert_eq!(broken(Cookies::Pool(3), &three), [""; 0]);
}

#[test]
fn nothing_is_promised_of_what_a_full_queue_dropped() {
    let mut entry = ledger(&[seen(Sends(OLD), false, 0)]).remove(0);
    entry.sent(2 * BETWEEN, &segment(Direction::Up, None, 0));
    assert_eq!(entry.syn_retransmits, 1);
    let promise = Promise::Cookies {
        cookies: Cookies::Stale,
        seed: 1,
    };
    assert_eq!(promise.broken_by((HOST, &entry), &Given::default()), None);
}
