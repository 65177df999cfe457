//! Compares the lengths of TLS flights that the simulator assumes with those of the lab's client and servers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{Read, Write};
use std::sync::Arc;

use firstflight_lab::client::tls_config;
use firstflight_lab::origin::Authority;
use firstflight_load::{HttpVersion, TlsOptions, TlsVersion};
use firstflight_sim::{Flights, Session};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

/// Tolerance: two signatures, each of which may vary by two bytes.
const WOBBLE: u64 = 4;
const PLAIN: usize = 1_000;

/// A handshake between both ends, then one write of the server's and its `close_notify`.
struct Talk {
    client: ClientConnection,
    server: ServerConnection,
}

impl Talk {
    fn new(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>, host: &str) -> Self {
        let name = ServerName::try_from(host.to_owned()).unwrap();
        Self {
            client: ClientConnection::new(Arc::clone(client), name).unwrap(),
            server: ServerConnection::new(Arc::clone(server)).unwrap(),
        }
    }

    /// Passes what the client has written to the server.
    fn up(&mut self) -> Vec<u8> {
        let mut wire = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut wire).unwrap();
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            self.server.read_tls(&mut rest).unwrap();
            self.server.process_new_packets().unwrap();
        }
        wire
    }

    /// Passes what the server has written to the client.
    fn down(&mut self) -> Vec<u8> {
        let mut wire = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut wire).unwrap();
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            self.client.read_tls(&mut rest).unwrap();
            self.client.process_new_packets().unwrap();
        }
        wire
    }

    fn flights(mut self, version: TlsVersion) -> Flights {
        let client_hello = self.up().len();
        let first = self.down();
        let server_hello = match (version, self.client.is_handshaking()) {
            (TlsVersion::V1_3, _) => 5 + usize::from(u16::from_be_bytes([first[3], first[4]])),
            (TlsVersion::V1_2, true) => first.len(),
            (TlsVersion::V1_2, false) => 0,
        };
        let client_finished = self.up().len();
        let second = self.down().len();
        let (server_finished, tickets, client_finished) = match (version, server_hello) {
            // The client sends its ChangeCipherSpec before its Finished.
            (TlsVersion::V1_3, _) => (first.len() - server_hello, second, client_finished - 6),
            (TlsVersion::V1_2, 0) => (first.len(), 0, client_finished),
            (TlsVersion::V1_2, _) => (second, 0, client_finished),
        };
        self.server.writer().write_all(&[0; PLAIN]).unwrap();
        let record = self.down().len();
        self.client.reader().read_exact(&mut [0; PLAIN]).unwrap();
        self.server.send_close_notify();
        let bytes = |length: usize| length as u64;
        Flights {
            client_hello: bytes(client_hello),
            server_hello: bytes(server_hello),
            server_finished: bytes(server_finished),
            client_finished: bytes(client_finished),
            tickets: bytes(tickets),
            close_notify: bytes(self.down().len()),
            record_overhead: bytes(record - PLAIN),
        }
    }
}

/// The length of the message that contains signatures, and the other lengths.
fn split(flights: Flights, version: TlsVersion) -> (u64, Flights) {
    let mut rest = flights;
    let signed = match version {
        TlsVersion::V1_3 => &mut rest.server_finished,
        TlsVersion::V1_2 => &mut rest.server_hello,
    };
    (std::mem::take(signed), rest)
}

#[test]
fn the_simulator_counts_with_the_flights_that_the_lab_sends() {
    let hosts = [
        "a.test",
        "upload.wikimedia.example",
        "198.19.0.1",
        &"long.".repeat(12),
        &"very.long.".repeat(14),
    ];
    for (version, post_quantum, http) in [
        (TlsVersion::V1_3, true, HttpVersion::V1_1),
        (TlsVersion::V1_3, false, HttpVersion::V1_1),
        (TlsVersion::V1_2, true, HttpVersion::V1_1),
        (TlsVersion::V1_3, true, HttpVersion::V2),
        (TlsVersion::V1_2, true, HttpVersion::V2),
    ] {
        let options = TlsOptions {
            post_quantum,
            version,
            http,
            ..TlsOptions::default()
        };
        for host in hosts.map(|host| host.trim_end_matches('.')) {
            let authority = Arc::new(Authority::new().unwrap());
            let client = tls_config(options, authority.roots()).unwrap();
            let server = Arc::new(authority.server(host, &[b"h2", b"http/1.1"], false).unwrap());
            for is_resumed in [false, true, true] {
                let seen = Talk::new(&client, &server, host).flights(version);
                let session = if is_resumed {
                    Session::Resumed
                } else {
                    Session::None
                };
                let counted = Flights::new(options, host, session);
                let at = format!(
                    "{version:?} {post_quantum} {http:?} {host} {is_resumed}: {seen:?}, counted {counted:?}"
                );
                if is_resumed {
                    assert_eq!(seen, counted, "{at}");
                    continue;
                }
                let ((signed, rest), (expected, others)) = (split(seen, version), split(counted, version));
                assert_eq!(rest, others, "{at}");
                assert!(signed.abs_diff(expected) <= WOBBLE, "{at}");
            }
        }
    }
}

#[test]
fn early_data_is_as_long_as_the_simulator_says_whether_it_is_taken_or_not() {
    let options = TlsOptions {
        post_quantum: false,
        early_data: true,
        ..TlsOptions::default()
    };
    let authority = Arc::new(Authority::new().unwrap());
    let client = tls_config(options, authority.roots()).unwrap();
    let server = || Arc::new(authority.server("a.test", &[b"http/1.1"], true).unwrap());
    let (knowing, forgetful) = (server(), server());
    for (server, session) in [
        (&knowing, Session::None),
        (&knowing, Session::Resumed),
        (&forgetful, Session::Refused),
    ] {
        let mut talk = Talk::new(&client, server, "a.test");
        let early = talk
            .client
            .early_data()
            .map(|mut early| early.write_all(&[0; PLAIN]).unwrap());
        assert_eq!(early.is_some(), session != Session::None);
        let hello = talk.up().len() as u64;
        let answer = talk.down().len() as u64;
        let (finished, tickets) = (talk.up().len() as u64, talk.down().len() as u64);
        assert_eq!(talk.client.is_early_data_accepted(), session == Session::Resumed);
        let counted = Flights::new(options, "a.test", session).with_early_data(session);
        // The ChangeCipherSpec precedes the data, or else the Finished.
        let change = 6;
        let data = PLAIN as u64 + counted.record_overhead;
        let (with_hello, with_finished) = if early.is_some() {
            (change + data, 0)
        } else {
            (0, change)
        };
        assert_eq!(hello, counted.client_hello + with_hello, "{session:?}");
        assert!(
            answer.abs_diff(counted.server_hello + counted.server_finished) <= WOBBLE,
            "{session:?}"
        );
        assert_eq!(
            (finished, tickets),
            (counted.client_finished + with_finished, counted.tickets),
            "{session:?}"
        );
    }
}

#[test]
fn certificates_are_as_long_as_asked_for() {
    for version in [TlsVersion::V1_3, TlsVersion::V1_2] {
        for bytes in [1_000, 2_500, 4_000, 9_000] {
            let options = TlsOptions {
                version,
                certificate_bytes: Some(bytes),
                ..TlsOptions::default()
            };
            let authority = Authority::new().unwrap().with_certificates_of(Some(bytes));
            let authority = Arc::new(authority);
            let client = tls_config(options, authority.roots()).unwrap();
            let server = Arc::new(authority.server("a.test", &[b"http/1.1"], false).unwrap());
            let seen = Talk::new(&client, &server, "a.test").flights(version);
            let counted = Flights::new(options, "a.test", Session::None);
            let (signed, expected) = (split(seen, version).0, split(counted, version).0);
            assert!(
                signed.abs_diff(expected) <= WOBBLE,
                "{version:?} {bytes}: {seen:?} {counted:?}"
            );
        }
    }
}
