//! Compares the lengths of TLS messages in QUIC that the simulator assumes with those of the lab's client and
//! servers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use firstflight_lab::client::quic_tls;
use firstflight_lab::origin::Authority;
use firstflight_load::TlsOptions;
use firstflight_quic::crypto::Lengths;
use firstflight_sim::{Session, quic_lengths};
use quinn_proto::Side;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::crypto::{ClientConfig, ServerConfig};
use quinn_proto::transport_parameters::TransportParameters;

/// Tolerance: two signatures, each of which may vary by two bytes.
const WOBBLE: usize = 4;
const HEADER: usize = 4;

/// The messages that an end has written: types and lengths.
fn messages(mut bytes: &[u8]) -> Vec<(u8, usize)> {
    let mut found = Vec::new();
    while let [kind, high, middle, low, ..] = *bytes {
        let length = HEADER + u32::from_be_bytes([0, high, middle, low]) as usize;
        found.push((kind, length));
        bytes = &bytes[length..];
    }
    found
}

fn total(found: &[(u8, usize)], kinds: &[u8]) -> usize {
    found
        .iter()
        .filter(|(kind, _)| kinds.contains(kind))
        .map(|(_, length)| length)
        .sum()
}

/// Runs a handshake between both ends.
fn handshake(client: &Arc<QuicClientConfig>, server: &Arc<QuicServerConfig>, host: &str) -> (Lengths, bool) {
    let parameters = TransportParameters::read(Side::Server, &mut &[][..]).unwrap();
    let mut client = Arc::clone(client).start_session(1, host, &parameters).unwrap();
    let mut server = Arc::clone(server).start_session(1, &parameters);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    while client.is_handshaking() || server.is_handshaking() || up.is_empty() {
        pass(client.as_mut(), server.as_mut(), &mut up);
        pass(server.as_mut(), client.as_mut(), &mut down);
    }
    pass(server.as_mut(), client.as_mut(), &mut down);
    let (up, down) = (messages(&up), messages(&down));
    let mut own = Vec::new();
    parameters.write(&mut own);
    let ticket = down
        .iter()
        .find(|(kind, _)| *kind == 4)
        .map_or(0, |(_, length)| *length);
    let lengths = Lengths {
        client_hello: total(&up, &[1]) - own.len(),
        server_hello: total(&down, &[2]),
        encrypted_extensions: total(&down, &[8]) - own.len(),
        certificate: total(&down, &[11, 15]),
        finished: total(&up, &[20]),
        ticket,
    };
    (lengths, client.early_data_accepted() == Some(true))
}

/// Passes what one end has written to the other.
fn pass(
    from: &mut dyn quinn_proto::crypto::Session,
    to: &mut dyn quinn_proto::crypto::Session,
    all: &mut Vec<u8>,
) {
    loop {
        let mut bytes = Vec::new();
        let has_keys = from.write_handshake(&mut bytes).is_some();
        if !bytes.is_empty() {
            to.read_handshake(&bytes).unwrap();
            all.extend_from_slice(&bytes);
        }
        if !has_keys && bytes.is_empty() {
            return;
        }
    }
}

#[test]
fn the_simulator_counts_with_the_messages_that_the_lab_sends_over_quic() {
    let hosts = [
        "a.test",
        "upload.wikimedia.example",
        "198.19.0.1",
        &"long.".repeat(12),
        &"very.long.".repeat(14),
    ];
    for (post_quantum, early_data) in [(false, false), (true, false), (false, true), (true, true)] {
        let options = TlsOptions {
            post_quantum,
            early_data,
            ..TlsOptions::default()
        };
        for host in hosts.map(|host| host.trim_end_matches('.')) {
            let authority = Arc::new(Authority::new().unwrap());
            let tls = quic_tls(options, authority.roots()).unwrap();
            let client = Arc::new(QuicClientConfig::try_from(tls).unwrap());
            let server = || {
                let tls = authority.quic_server(host, b"h3", early_data).unwrap();
                Arc::new(QuicServerConfig::try_from(tls).unwrap())
            };
            let (knowing, forgetful) = (server(), server());
            for (server, session) in [
                (&knowing, Session::None),
                (&knowing, Session::Resumed),
                (&forgetful, Session::Refused),
            ] {
                let (mut seen, accepted) = handshake(&client, server, host);
                let mut counted = quic_lengths(options, host, session);
                let at =
                    format!("{post_quantum} {early_data} {host} {session:?}: {seen:?}, counted {counted:?}");
                assert_eq!(accepted, early_data && session == Session::Resumed, "{at}");
                assert!(seen.certificate.abs_diff(counted.certificate) <= WOBBLE, "{at}");
                (seen.certificate, counted.certificate) = (0, 0);
                assert_eq!(seen, counted, "{at}");
            }
        }
    }
}
