use firstflight_path::{Direction, Ecn, PathConfig, TcpFlags};

use super::*;
use crate::Mode;
use crate::ledger::{EcnBits, Hello, Segment};

const HOST: usize = 0;
const OLD: u128 = 0x01d;
const NEW: u128 = 0x2e3;
/// Time between two connections, and from a SYN to its answer, ns.
const BETWEEN: u64 = 10 * GRACE;
const ANSWER: u64 = GRACE;

/// One connection: its SYN, whether the SYN's data is acknowledged, and the cookie in the SYN-ACK (0 for none).
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
        packet_bytes: 52 + payload_bytes,
        option: match cookie {
            None => Cookie::None,
            Some(0) => Cookie::Requested,
            Some(_) => Cookie::Sent,
        },
        cookie: cookie.unwrap_or(0),
        ecn: EcnBits::default(),
        window: 64_240,
    }
}

/// The ledger of connections, one after the other.
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

/// What breaks the promise of `cookies`, if all connections are to one host.
fn broken(cookies: Cookies, connections: &[Seen]) -> Vec<String> {
    let fast_open = FastOpen::Cookies { cookies, seed: 1 };
    let promise = Promise::from(fast_open);
    let ledger = ledger(connections);
    let seen = || ledger.iter().map(|entry| (HOST, entry));
    let given: Given = seen().collect();
    let single = seen().filter_map(|connection| {
        promise
            .broken_by(connection, &given)
            .map(|breach| breach.to_string())
    });
    single.chain(fast_open.crowded(seen())).collect()
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
    let promise = Promise::from(FastOpen::Cookies {
        cookies: Cookies::Stale,
        seed: 1,
    });
    assert_eq!(promise.broken_by((HOST, &entry), &Given::default()), None);
}

const ECT: EcnBits = EcnBits {
    ip: Ecn::Capable,
    ece: false,
    cwr: false,
};
const ASKS: EcnBits = EcnBits {
    ip: Ecn::NotCapable,
    ece: true,
    cwr: true,
};
const AGREES: EcnBits = EcnBits { cwr: false, ..ASKS };
const SILENT: EcnBits = EcnBits {
    ip: Ecn::NotCapable,
    ece: false,
    cwr: false,
};

/// A segment with data from the server, `offset` bytes after its SYN-ACK.
fn data(offset: u32, payload_bytes: u32) -> Segment {
    Segment {
        flags: TcpFlags {
            ack: true,
            ..TcpFlags::default()
        },
        sequence: 1_001 + offset,
        ..segment(Direction::Down, None, payload_bytes)
    }
}

/// How a connection with this SYN, this SYN-ACK and these data segments breaks the promise about ECN.
fn breaks_ecn(asked: bool, syn: EcnBits, syn_ack: EcnBits, sent: &[EcnBits]) -> Option<Breach> {
    held_to_ecn(asked, &with_ecn(syn, syn_ack, sent))
}

fn with_ecn(syn: EcnBits, syn_ack: EcnBits, sent: &[EcnBits]) -> Entry {
    let with = |ecn, segment| Segment { ecn, ..segment };
    let opening = with(syn, segment(Direction::Up, None, 0));
    let mut entry = Entry::new(0, &opening);
    entry.sent(0, &opening);
    entry.sent(1, &with(syn_ack, segment(Direction::Down, None, 0)));
    entry.arrived(2, &with(syn_ack, segment(Direction::Down, None, 0)));
    for (number, ecn) in sent.iter().enumerate() {
        entry.sent(3, &with(*ecn, data(100 * number as u32, 100)));
    }
    entry
}

fn held_to_ecn(asked: bool, entry: &Entry) -> Option<Breach> {
    let promise = Promise {
        ecn: Some(asked),
        ..FastOpen::Never.into()
    };
    promise.broken_by((HOST, entry), &Given::default())
}

#[test]
fn ecn_is_used_where_it_is_asked_for_and_nowhere_else() {
    assert_eq!(breaks_ecn(true, ASKS, AGREES, &[ECT; 3]), None);
    assert_eq!(breaks_ecn(false, SILENT, SILENT, &[SILENT; 3]), None);
    let cases = [
        (true, SILENT, SILENT, SILENT, Breach::EcnNotAsked),
        (true, AGREES, AGREES, ECT, Breach::EcnNotAsked),
        (true, ASKS, SILENT, SILENT, Breach::EcnNotAgreed),
        (true, ASKS, AGREES, SILENT, Breach::EcnNotUsed(2)),
        (false, ASKS, SILENT, SILENT, Breach::EcnUsed),
        (false, SILENT, AGREES, SILENT, Breach::EcnUsed),
        (false, SILENT, SILENT, ECT, Breach::EcnUsed),
    ];
    for (asked, syn, syn_ack, sent, breach) in cases {
        assert_eq!(breaks_ecn(asked, syn, syn_ack, &[sent; 2]), Some(breach));
    }
}

#[test]
fn a_server_of_quic_sends_datagrams_that_can_be_marked_where_ecn_is_asked_for_and_nowhere_else() {
    let of = |sent: &[Ecn]| {
        let mut entry = Entry::over_udp(0);
        entry.datagram_sent(Direction::Up, 1_228, &[0xc0; 1_200], Ecn::NotCapable);
        for ecn in sent {
            entry.datagram_sent(Direction::Down, 1_228, &[0xc0; 1_200], *ecn);
        }
        entry
    };
    let (capable, silent) = (of(&[Ecn::Capable; 2]), of(&[Ecn::NotCapable; 2]));
    assert_eq!(held_to_ecn(true, &capable), None);
    assert_eq!(held_to_ecn(false, &silent), None);
    assert_eq!(held_to_ecn(true, &silent), Some(Breach::EcnNotUsed(2)));
    assert_eq!(held_to_ecn(false, &capable), Some(Breach::EcnUsed));
    assert_eq!(held_to_ecn(true, &of(&[])), None, "a server that was never heard");
}

#[test]
fn what_is_sent_again_need_not_be_markable_and_a_syn_that_is_sent_again_asks_no_more() {
    let mut entry = with_ecn(ASKS, AGREES, &[ECT; 2]);
    entry.sent(4, &data(0, 100));
    assert_eq!((entry.retransmits, held_to_ecn(true, &entry)), (1, None));

    let mut entry = with_ecn(ASKS, SILENT, &[SILENT]);
    assert_eq!(held_to_ecn(true, &entry), Some(Breach::EcnNotAgreed));
    entry.sent(5, &segment(Direction::Up, None, 0));
    assert_eq!(held_to_ecn(true, &entry), None);
}

const FULL: u32 = 1_448;
const MS: u64 = 1_000_000;

/// An acknowledgment from the client (0 bytes), or a request.
fn from_client(payload_bytes: u32) -> Segment {
    Segment {
        flags: TcpFlags {
            ack: true,
            ..TcpFlags::default()
        },
        sequence: 1_001,
        ..segment(Direction::Up, None, payload_bytes)
    }
}

/// A path of 20 ms. The server answers at once, with segments of these sizes. The client acknowledges the first
/// that reaches it, with `request` bytes of its own. Then the server sends `more` bytes.
fn first_flight(window: u32, sizes: &[u32], request: u32, more: u32) -> Entry {
    let opening = Segment {
        window,
        ..segment(Direction::Up, None, 0)
    };
    let mut entry = Entry::new(0, &opening);
    entry.sent(0, &opening);
    entry.sent(10 * MS, &segment(Direction::Down, None, 0));
    entry.arrived(20 * MS, &segment(Direction::Down, None, 0));
    entry.sent(20 * MS, &from_client(300));
    let mut offset = 0;
    for size in sizes {
        entry.sent(30 * MS, &data(offset, *size));
        offset += size;
    }
    entry.arrived(40 * MS, &data(0, sizes[0]));
    entry.sent(40 * MS, &from_client(request));
    if more > 0 {
        entry.sent(50 * MS, &data(offset, more));
    }
    entry
}

fn held_to_window(asked: u32, entry: &Entry) -> Option<Breach> {
    let promise = Promise {
        initial_window: Some(asked),
        ..FastOpen::Never.into()
    };
    promise.broken_by((HOST, entry), &Given::default())
}

#[test]
fn a_first_flight_is_the_initial_window_where_the_response_is_longer() {
    for (asked, bundle) in [(3, 1), (10, 1), (10, 5), (50, 25)] {
        let sizes = vec![bundle * FULL; (asked / bundle) as usize];
        let entry = first_flight(64_240, &sizes, 0, FULL);
        assert_eq!(
            (entry.first_flight.segments, entry.first_flight.is_held),
            (asked, true)
        );
        assert_eq!(held_to_window(asked, &entry), None);
        for other in [asked - 1, asked - asked / 3] {
            let breach = Breach::WindowExceeded {
                sent: asked,
                asked: other,
            };
            assert_eq!(held_to_window(other, &entry), Some(breach));
        }
    }
    let waits = first_flight(64_240, &[FULL; 4], 0, FULL);
    let breach = Breach::WindowUnused { sent: 4, asked: 10 };
    assert_eq!(held_to_window(10, &waits), Some(breach));
}

#[test]
fn a_breach_counts_one_and_many_in_plain_english() {
    let waited = |sent| Breach::WindowUnused { sent, asked: 10 }.to_string();
    assert_eq!(
        waited(1),
        "its server waited after 1 segment, with an initial window of 10"
    );
    assert_eq!(
        waited(4),
        "its server waited after 4 segments, with an initial window of 10"
    );
    assert!(Breach::EcnNotUsed(1).to_string().starts_with("1 packet of "));
}

#[test]
fn a_server_that_has_no_more_to_send_need_not_use_its_initial_window() {
    let cases = [
        // The response ends, with a full last segment or a shorter one.
        first_flight(64_240, &[FULL, FULL], 0, 0),
        first_flight(64_240, &[FULL, 700], 0, FULL),
        // The following data answers another request.
        first_flight(64_240, &[FULL, FULL], 300, FULL),
        // The client has no room for a third segment.
        first_flight(2 * FULL, &[FULL, FULL], 0, FULL),
    ];
    for entry in cases {
        assert_eq!(held_to_window(10, &entry), None, "{:?}", entry.first_flight);
    }
}

#[test]
fn a_loss_probe_goes_beyond_the_initial_window_and_a_burst_does_not() {
    let late = |segments: u32| {
        let mut entry = first_flight(64_240, &[FULL; 3], 0, 0);
        entry.first_flight = FirstFlight::default();
        for number in 0..3 + segments {
            let at = if number < 3 { 30 * MS } else { 100 * MS };
            entry.sent(at, &data((10 + number) * FULL, FULL));
        }
        held_to_window(3, &entry)
    };
    assert_eq!(late(1), None);
    assert_eq!(late(2), Some(Breach::WindowExceeded { sent: 4, asked: 3 }));
}

#[test]
fn what_leaves_after_the_client_has_answered_is_no_part_of_the_first_flight() {
    let mut entry = first_flight(64_240, &[FULL; 10], 0, FULL);
    for number in 11..31 {
        entry.sent(51 * MS, &data(number * FULL, FULL));
    }
    assert_eq!(held_to_window(10, &entry), None);
}

#[test]
fn a_server_has_the_congestion_control_that_was_asked_for() {
    let promise = Promise {
        congestion_control: Some("reno".to_owned()),
        ..FastOpen::Never.into()
    };
    let server = |name: Option<&str>| Server {
        congestion_control: name.map(str::to_owned),
        ..Server::default()
    };
    let talked = first_flight(64_240, &[FULL], 0, 0);
    let broken = |server: Option<&Server>| promise.broken_by_ends((0, &talked), server, Client::default());
    assert_eq!(broken(Some(&server(Some("reno")))), None);
    assert_eq!(
        broken(Some(&server(Some("cubic")))).map(|breach| breach.to_string()),
        Some("its server's socket has congestion control cubic, not reno".to_owned())
    );
    assert_eq!(broken(Some(&server(None))), Some(Breach::ServerUnasked));
    assert_eq!(broken(None), Some(Breach::ServerUnasked));
    let silent = with_ecn(SILENT, SILENT, &[]);
    assert_eq!(
        promise.broken_by_ends((0, &silent), None, Client::default()),
        None
    );
}

#[test]
fn a_key_share_is_offered_where_it_is_asked_for_and_nowhere_else() {
    let broken = |asked, offered| {
        let promise = Promise {
            post_quantum: Some(asked),
            ..FastOpen::Never.into()
        };
        let server = Server {
            post_quantum: offered,
            ..Server::default()
        };
        promise.broken_by_ends(
            (0, &with_ecn(SILENT, SILENT, &[])),
            Some(&server),
            Client::default(),
        )
    };
    assert_eq!(broken(true, Some(false)), Some(Breach::NoPostQuantum));
    assert_eq!(broken(false, Some(true)), Some(Breach::PostQuantum));
    for (asked, offered) in [
        (true, Some(true)),
        (false, Some(false)),
        (true, None),
        (false, None),
    ] {
        assert_eq!(broken(asked, offered), None);
    }
}

/// How a connection breaks what `mode` promises of TLS, if the client reports the same as the server.
fn tls_breach(
    mode: Mode,
    cookies: Cookies,
    early_bytes: u32,
    server: Secured,
    may_be_early: bool,
) -> Option<Breach> {
    let promise = held_to(mode, cookies);
    let mut entry = if mode.is_quic() {
        Entry::over_udp(0)
    } else {
        with_ecn(SILENT, SILENT, &[])
    };
    entry.hello = Some(Hello {
        offers_session: server.is_resumed,
        offers_early_data: early_bytes > 0,
        early_data_bytes: early_bytes,
    });
    let client = Client {
        tls: Some(server),
        may_be_early: Some(may_be_early),
    };
    let server = Server {
        tls: Some(server),
        ..Server::default()
    };
    promise.broken_by_ends((0, &entry), Some(&server), client)
}

#[test]
fn early_data_that_was_announced_and_not_sent_is_named() {
    let promise = held_to(Mode::EarlyData, Cookies::Warm);
    let mut entry = with_ecn(SILENT, SILENT, &[]);
    entry.hello = Some(Hello {
        offers_session: true,
        offers_early_data: true,
        early_data_bytes: 0,
    });
    let server = Server {
        tls: Some(RESUMED),
        ..Server::default()
    };
    let asked = |may_be_early| {
        let client = Client {
            tls: None,
            may_be_early,
        };
        promise.broken_by_ends((0, &entry), Some(&server), client)
    };
    let announced = "its ClientHello announced early data, and its request did not go with it";
    assert_eq!(asked(Some(true)), Some(Breach::Tls(announced)));
    assert_eq!(asked(None), None);
}

/// What a load promises of TLS and of its transport.
fn held_to(mode: Mode, cookies: Cookies) -> Promise {
    let Promise { tls, quic, .. } = Load::new(PathConfig::default(), mode, cookies).promise();
    Promise {
        tls,
        quic,
        ..FastOpen::Agreement.into()
    }
}

const FULL_HANDSHAKE: Secured = Secured {
    version: TlsVersion::V1_3,
    is_resumed: false,
    early_data: EarlyData::None,
};
const RESUMED: Secured = Secured {
    is_resumed: true,
    ..FULL_HANDSHAKE
};
const EARLY: Secured = Secured {
    early_data: EarlyData::Accepted,
    ..RESUMED
};
const REJECTED: Secured = Secured {
    early_data: EarlyData::Rejected,
    ..FULL_HANDSHAKE
};

#[test]
fn each_mode_is_held_to_its_version_of_tls_its_sessions_and_its_early_data() {
    let old = Secured {
        version: TlsVersion::V1_2,
        ..FULL_HANDSHAKE
    };
    for (mode, early_bytes, server) in [
        (Mode::Tcp, 0, FULL_HANDSHAKE),
        (Mode::Tcp, 0, RESUMED),
        (Mode::Tfo, 0, FULL_HANDSHAKE),
        (Mode::Tls12, 0, old),
        (Mode::Resumption, 0, RESUMED),
        (Mode::EarlyData, 400, EARLY),
        (Mode::TfoEarlyData, 400, EARLY),
        (Mode::Quic, 0, FULL_HANDSHAKE),
        (Mode::Quic0Rtt, 400, EARLY),
    ] {
        assert_eq!(
            tls_breach(mode, Cookies::Warm, early_bytes, server, true),
            None,
            "{mode:?}"
        );
    }
    for (mode, early_bytes, server, problem) in [
        (
            Mode::Tls12,
            0,
            FULL_HANDSHAKE,
            "it spoke TLS 1.3 in a load with TLS 1.2",
        ),
        (Mode::Tcp, 0, old, "it spoke TLS 1.2 in a load with TLS 1.3"),
        (Mode::Tcp, 400, EARLY, "it sent early data in a load without"),
        (
            Mode::Resumption,
            400,
            EARLY,
            "it sent early data in a load without",
        ),
        (Mode::Resumption, 0, FULL_HANDSHAKE, "it resumed no session"),
        (
            Mode::EarlyData,
            0,
            RESUMED,
            "its request did not go with the ClientHello",
        ),
        (Mode::EarlyData, 400, REJECTED, "it resumed no session"),
        (Mode::Quic, 400, EARLY, "it sent early data in a load without"),
        (
            Mode::Quic0Rtt,
            0,
            RESUMED,
            "its request did not go with the ClientHello",
        ),
        (Mode::Quic0Rtt, 400, REJECTED, "it resumed no session"),
        (Mode::Quic0Rtt, 0, FULL_HANDSHAKE, "it resumed no session"),
        // One witness claims what another did not see.
        (
            Mode::EarlyData,
            0,
            EARLY,
            "its server had early data, which the relay did not see",
        ),
        (
            Mode::Quic0Rtt,
            0,
            EARLY,
            "its server had early data, which the relay did not see",
        ),
        (
            Mode::Quic0Rtt,
            400,
            RESUMED,
            "the relay saw early data, of which its server knows nothing",
        ),
        (
            Mode::EarlyData,
            400,
            RESUMED,
            "the relay saw early data, of which its server knows nothing",
        ),
    ] {
        let seen = tls_breach(mode, Cookies::Warm, early_bytes, server, true);
        assert_eq!(seen, Some(Breach::Tls(problem)), "{mode:?}");
    }
}

#[test]
fn a_first_visit_and_a_forgetful_server_are_held_to_less() {
    assert_eq!(
        tls_breach(Mode::EarlyData, Cookies::Cold, 0, FULL_HANDSHAKE, true),
        None
    );
    assert_eq!(
        tls_breach(Mode::EarlyData, Cookies::Stale, 400, REJECTED, true),
        None
    );
    let unsafe_early = tls_breach(Mode::EarlyData, Cookies::Warm, 400, EARLY, false);
    let problem = "it sent a request as early data that is not safe";
    assert_eq!(unsafe_early, Some(Breach::Tls(problem)));
    assert_eq!(
        tls_breach(Mode::EarlyData, Cookies::Warm, 0, RESUMED, false),
        None
    );
}

#[test]
fn a_client_that_claims_another_handshake_than_its_server_is_caught() {
    let promise = Promise {
        tls: Load::new(PathConfig::default(), Mode::EarlyData, Cookies::Warm)
            .promise()
            .tls,
        ..FastOpen::Agreement.into()
    };
    let server = Server {
        tls: Some(RESUMED),
        ..Server::default()
    };
    let client = Client {
        tls: Some(EARLY),
        may_be_early: Some(true),
    };
    let entry = with_ecn(SILENT, SILENT, &[]);
    let breach = promise.broken_by_ends((0, &entry), Some(&server), client);
    assert_eq!(
        breach,
        Some(Breach::Tls("client and server do not agree on its TLS"))
    );
}

#[test]
fn tls_over_tcp_in_a_load_with_quic_and_quic_in_any_other_are_caught() {
    let over = |entry: &Entry, mode| {
        let server = Server {
            tls: Some(FULL_HANDSHAKE),
            ..Server::default()
        };
        let promise = held_to(mode, Cookies::Cold);
        promise.broken_by_ends((0, entry), Some(&server), Client::default())
    };
    let (tcp, udp) = (with_ecn(SILENT, SILENT, &[]), Entry::over_udp(0));
    for mode in [Mode::Quic, Mode::Quic0Rtt] {
        assert_eq!(over(&udp, mode), None);
        assert_eq!(over(&tcp, mode), Some(Breach::NotQuic));
        // Origins without TLS have no QUIC.
        let promise = held_to(mode, Cookies::Cold);
        let in_the_clear = promise.broken_by_ends((0, &tcp), Some(&Server::default()), Client::default());
        assert_eq!(in_the_clear, None);
    }
    for mode in [Mode::Tcp, Mode::EarlyData] {
        assert_eq!(over(&tcp, mode), None);
        assert_eq!(over(&udp, mode), Some(Breach::Quic));
    }
}

#[test]
fn what_was_lost_of_0_rtt_packets_may_come_again_as_other_data() {
    let mut entry = Entry::over_udp(0);
    entry.hello = Some(Hello {
        offers_session: true,
        offers_early_data: true,
        early_data_bytes: 400,
    });
    let server = Server {
        tls: Some(RESUMED),
        ..Server::default()
    };
    let client = Client {
        tls: Some(EARLY),
        may_be_early: Some(true),
    };
    let promise = held_to(Mode::Quic0Rtt, Cookies::Warm);
    let breach = |entry: &Entry| promise.broken_by_ends((0, entry), Some(&server), client);
    let disagreement = Some(Breach::Tls("client and server do not agree on its TLS"));
    assert_eq!(breach(&entry), disagreement);
    entry.datagram_dropped(Direction::Down);
    assert_eq!(breach(&entry), disagreement);
    entry.datagram_dropped(Direction::Up);
    assert_eq!(breach(&entry), None);
}
