//! A client and a server on a virtual clock, with cryptography that only has lengths.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use firstflight_load::Priority;
use firstflight_load::promise::EarlyData;
use firstflight_load::quic::{PacketType, packets};
use firstflight_path::Ecn;
use firstflight_quic::crypto::{
    Lengths, NoKey, SizedClient, SizedServer, Ticket, WitnessedClient, WitnessedServer,
};
use firstflight_quic::proto::{ClientConfig, ServerConfig};
use firstflight_quic::{
    Client, ClientEvent, CongestionControl, Server, ServerEvent, Settings, deterministic_endpoint, qpack,
};

const MS: u64 = 1_000_000;
const RTT: u64 = 100 * MS;
const SETTINGS: Settings = Settings {
    congestion_control: CongestionControl::Cubic,
    initial_window: 10,
};
const LENGTHS: Lengths = Lengths {
    client_hello: 300,
    server_hello: 90,
    encrypted_extensions: 30,
    certificate: 600,
    finished: 52,
    ticket: 80,
};

fn lengths(post_quantum: bool, certificate: usize) -> Lengths {
    Lengths {
        client_hello: LENGTHS.client_hello + if post_quantum { 1_222 } else { 0 },
        certificate,
        ..LENGTHS
    }
}

/// The result of a request for `body` bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// Time of the response's header, ns.
    head_at: u64,
    end_at: u64,
    body: u64,
    early_data: EarlyData,
    /// Time, whether it goes up, and length of each datagram.
    datagrams: Vec<(u64, bool, usize)>,
    /// 0-RTT bytes of the client's first flight.
    early_bytes: u32,
    has_certificate: bool,
    opened_early: u64,
    /// The error that the client reports.
    error: Option<String>,
}

/// A datagram on its way: arrival time, number, whether it goes up, and content.
type OnTheWay = (u64, u64, bool, Vec<u8>);

/// A load over a path with a delay, on which the client's datagrams in `lost` are lost.
fn load(lengths: Lengths, ticket: Option<Ticket>, body: usize, lost: &[usize]) -> Outcome {
    let request = qpack::encode([(&b":method"[..], &b"GET"[..]), (b":path", b"/")]);
    ask(&request, lengths, ticket, body, lost)
}

/// The same with any header block as the request.
#[expect(clippy::too_many_lines, reason = "one loop that steps both ends")]
fn ask(request: &Bytes, lengths: Lengths, ticket: Option<Ticket>, body: usize, lost: &[usize]) -> Outcome {
    let start = 1_000 * MS;
    let server_address: SocketAddr = "198.19.0.1:443".parse().unwrap();
    let client_address: SocketAddr = "198.18.0.1:40000".parse().unwrap();
    let tls = WitnessedClient(Arc::new(SizedClient {
        lengths,
        ticket,
        early_data: true,
    }));
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(SETTINGS.transport());
    config.initial_dst_cid_provider(Arc::new(|| firstflight_quic::proto::ConnectionId::new(&[9; 8])));
    let tls = WitnessedServer(Arc::new(SizedServer {
        lengths,
        early_data: true,
    }));
    let mut server_config = ServerConfig::new(Arc::new(tls), Arc::new(NoKey));
    server_config.transport_config(SETTINGS.transport());
    let mut server = Server::new(
        Arc::new(deterministic_endpoint(1)),
        Arc::new(server_config),
        [2; 32],
    );
    let endpoint = Arc::new(deterministic_endpoint(2));
    let mut client = Client::connect(start, endpoint, config, server_address, "a.test", [1; 32]).unwrap();

    let mut path: BinaryHeap<Reverse<OnTheWay>> = BinaryHeap::new();
    let (mut now, mut number, mut asked) = (start, 0, false);
    let mut outcome = Outcome::default();
    let mut datagram = Vec::new();
    let answer = qpack::encode([(&b":status"[..], &b"200"[..])]);
    let mut sent_up = 0;
    loop {
        if !asked && (client.awaits_request() || client.is_ready()) {
            asked = true;
            client.ask(7, request.clone(), true);
        }
        while let Some(event) = server.poll() {
            if let ServerEvent::Request { stream, .. } = event {
                server.respond(stream, Priority::EQUAL, &answer, [Bytes::from(vec![7; body])]);
            }
        }
        while client.poll_transmit(now, &mut datagram).is_some() {
            if outcome.head_at == 0 && now < start + RTT {
                let early = packets(&datagram).filter(|(kind, _)| *kind == PacketType::ZeroRtt);
                outcome.early_bytes += early.map(|(_, bytes)| bytes).sum::<u32>();
            }
            outcome.datagrams.push((now - start, true, datagram.len()));
            number += 1;
            if !lost.contains(&sent_up) {
                path.push(Reverse((now + RTT / 2, number, true, datagram.clone())));
            }
            sent_up += 1;
        }
        while server.poll_transmit(now, &mut datagram).is_some() {
            outcome.datagrams.push((now - start, false, datagram.len()));
            number += 1;
            path.push(Reverse((now + RTT / 2, number, false, datagram.clone())));
        }
        let timeouts = [client.next_timeout(), server.next_timeout()]
            .into_iter()
            .flatten();
        let next = timeouts
            .chain(path.peek().map(|Reverse((at, ..))| *at))
            .min()
            .unwrap();
        now = now.max(next);
        assert!(now < start + 20 * RTT, "{outcome:?}");
        if client.next_timeout().is_some_and(|at| at <= now) {
            client.handle_timeout(now);
        }
        if server.next_timeout().is_some_and(|at| at <= now) {
            server.handle_timeout(now);
        }
        while path.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Reverse((_, _, up, bytes)) = path.pop().unwrap();
            if up {
                server.handle(now, client_address, BytesMut::from(&bytes[..]), Ecn::NotCapable);
            } else {
                client.handle(now, BytesMut::from(&bytes[..]), Ecn::NotCapable);
            }
        }
        while let Some(event) = client.poll() {
            match event {
                ClientEvent::Head {
                    request: 7,
                    status: 200,
                    ..
                } => outcome.head_at = now - start,
                ClientEvent::Body { request: 7, bytes } => outcome.body += bytes,
                ClientEvent::End { request: 7 } => {
                    outcome.end_at = now - start;
                    outcome.early_data = client.early_data();
                    outcome.has_certificate = client.seen().unwrap().has_certificate();
                    return outcome;
                }
                ClientEvent::Failed { error } => {
                    outcome.error = Some(error);
                    return outcome;
                }
                ClientEvent::Ready | ClientEvent::Sent { request: 7 } => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn ticket(is_known: bool) -> Ticket {
    Ticket { is_known }
}

#[test]
fn a_first_visit_takes_two_round_trips_and_one_with_0_rtt_takes_one() {
    for (ticket, trips, early_data) in [
        (None, 2, EarlyData::None),
        (Some(ticket(true)), 1, EarlyData::Accepted),
        (Some(ticket(false)), 2, EarlyData::Rejected),
    ] {
        let is_full = ticket.as_ref().is_none_or(|ticket| !ticket.is_known);
        let outcome = load(LENGTHS, ticket, 900, &[]);
        assert_eq!(outcome.head_at, trips * RTT, "{outcome:?}");
        assert_eq!((outcome.body, outcome.early_data), (900, early_data));
        assert_eq!(outcome.has_certificate, is_full);
        assert_eq!(outcome.early_bytes > 0, early_data != EarlyData::None);
    }
}

#[test]
fn a_post_quantum_hello_takes_two_datagrams_and_no_round_trip() {
    for ticket in [None, Some(ticket(true))] {
        let trips = if ticket.is_some() { 1 } else { 2 };
        let outcome = load(lengths(true, 600), ticket, 900, &[]);
        let first = outcome.datagrams.iter().take_while(|(at, up, _)| *at == 0 && *up);
        assert_eq!(first.count(), 2);
        assert_eq!(outcome.head_at, trips * RTT);
    }
}

#[test]
fn a_long_certificate_chain_costs_a_round_trip_unless_the_hello_is_long_too() {
    // The server may send three times what it has received (RFC 9000, section 8.1): 3,600 bytes.
    let trips =
        |post_quantum, certificate| load(lengths(post_quantum, certificate), None, 900, &[]).head_at / RTT;
    assert_eq!(trips(false, 2_800), 2);
    assert_eq!(trips(false, 4_000), 3);
    assert_eq!(trips(true, 4_000), 2);
}

#[test]
fn the_same_load_is_the_same_twice() {
    let twice = || load(LENGTHS, Some(ticket(true)), 100_000, &[5]);
    assert_eq!(twice(), twice());
}

#[test]
fn what_is_lost_is_sent_again() {
    let whole = load(LENGTHS, None, 50_000, &[]);
    let lossy = load(LENGTHS, None, 50_000, &[0]);
    assert_eq!(lossy.body, 50_000);
    assert!(lossy.end_at > whole.end_at + RTT, "{lossy:?}");
}

#[test]
fn a_request_that_breaks_the_protocol_is_told_so_at_once() {
    let outcome = ask(&Bytes::from(vec![1; 70_000]), LENGTHS, None, 900, &[]);
    // The code is H3_MESSAGE_ERROR (RFC 9114, section 8.1).
    assert_eq!(outcome.error.as_deref(), Some("HTTP/3: reset by peer: code 270"));
}
