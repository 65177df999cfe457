//! Sizes of a handshake's messages, record headers included.
//!
//! Measured on the lab's client and servers (rustls with aws-lc, AES-256-GCM, one ECDSA P-256 certificate).
//! `tls_flights.rs` and `quic_flights.rs` in `crates/lab/tests` compare them with the lab. The host's name is in
//! the `ClientHello` (SNI) and in the certificate. The two signatures vary by two bytes each; the usual size
//! counts.

use std::net::IpAddr;

use firstflight_load::{HttpVersion, TlsOptions, TlsVersion};
use firstflight_quic::crypto::Lengths;

/// The key share for X25519MLKEM768 in the `ClientHello` with its group and length, and its entry in the list of
/// groups.
const CLIENT_SHARE: u64 = 1_222;
/// The server's key share, less that of X25519.
const SERVER_SHARE: u64 = 1_088;
/// The server name extension without the name (RFC 6066, section 3).
const SERVER_NAME: u64 = 9;
/// The extension of a server that recognised the name.
const NAME_ACKNOWLEDGED: u64 = 4;
/// `pre_shared_key` with one ticket of 32 bytes and a binder of SHA-384 (RFC 8446, section 4.2.11), and its answer.
const TICKET_OFFERED: u64 = 91;
const TICKET_TAKEN: u64 = 6;
/// What offering a ticket adds in QUIC.
const QUIC_TICKET_OFFERED: u64 = 95;
/// What early data adds: to the `ClientHello` and to its answer, the message that ends it, and the extension in two
/// tickets (RFC 8446, sections 4.2.10, 4.5 and 4.6.1).
const EARLY_DATA: u64 = 4;
const END_OF_EARLY_DATA: u64 = 26;
const EARLY_DATA_SIZE: u64 = 16;
/// What offering HTTP/2 adds to a `ClientHello`, and what accepting it saves in the server's answer (RFC 7301).
const HTTP2_OFFERED: u64 = 3;
const HTTP2_TAKEN: u64 = 6;
/// A session's identifier in TLS 1.2.
const SESSION_ID: u64 = 32;
const CHANGE_CIPHER_SPEC: u64 = 6;
/// The certificate without the name, and its message with the `CertificateVerify`.
const CERTIFICATE: u64 = 418;
const CERTIFICATE_PROVED: u64 = 92;
/// From these lengths of a name on, one more field around it needs a second byte for its own length (X.690, section
/// 8.1.3): the extensions' two, the extension, its value, the list of names, the name.
const CERTIFICATE_GROWS: [usize; 6] = [43, 45, 117, 124, 126, 128];

/// A message of TLS itself, in or after the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// The client's first message.
    ClientHello,
    /// TLS 1.3: the `ServerHello`. TLS 1.2: all messages up to the `ServerHelloDone`.
    ServerHello,
    /// The rest of the server's messages, up to its `Finished`.
    ServerFinished,
    /// The client's last messages; in TLS 1.2 with its key exchange.
    ClientFinished,
    /// The client's `ChangeCipherSpec`, which in TLS 1.3 is only for middleboxes (RFC 8446, appendix D.4).
    ChangeCipherSpec,
    /// TLS 1.3: tickets for later connections.
    Tickets,
    /// The server's alert that it sends no more.
    CloseNotify,
}

/// The sizes of one handshake's messages, bytes; 0 for a message that it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages of a handshake")]
pub struct Flights {
    pub client_hello: u64,
    pub server_hello: u64,
    pub server_finished: u64,
    pub client_finished: u64,
    pub tickets: u64,
    pub close_notify: u64,
    /// What a record adds to its content.
    pub record_overhead: u64,
}

/// The outcome of the session that a client offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Session {
    /// The client has none.
    None,
    /// The server does not know it: a full handshake follows.
    Refused,
    /// The server resumes it.
    Resumed,
}

impl Flights {
    /// The sizes for `host`.
    pub fn new(options: TlsOptions, host: &str, session: Session) -> Self {
        let is_resumed = session == Session::Resumed;
        let mut flights = match options.version {
            TlsVersion::V1_3 => Self::tls13(options.post_quantum, &Name::of(host, options), session),
            TlsVersion::V1_2 => Self::tls12(&Name::of(host, options), is_resumed),
        };
        if options.http == HttpVersion::V2 {
            flights.client_hello += HTTP2_OFFERED;
            *flights.negotiation(options.version, is_resumed) -= HTTP2_TAKEN;
        }
        flights
    }

    /// Whether the `ClientHello` has a key share for X25519MLKEM768: nothing else makes it that long.
    pub(super) fn offers_post_quantum(self) -> bool {
        self.client_hello > CLIENT_SHARE
    }

    /// The sizes of TLS 1.3 if both ends support early data. The client announces it whenever it offers a session.
    #[must_use]
    pub fn with_early_data(self, session: Session) -> Self {
        let if_so = |is_so: bool, bytes| if is_so { bytes } else { 0 };
        let is_taken = session == Session::Resumed;
        Self {
            client_hello: self.client_hello + if_so(session != Session::None, EARLY_DATA),
            server_finished: self.server_finished + if_so(is_taken, EARLY_DATA),
            client_finished: self.client_finished + if_so(is_taken, END_OF_EARLY_DATA),
            tickets: self.tickets + EARLY_DATA_SIZE,
            ..self
        }
    }

    /// The message in which the server states what it accepts.
    fn negotiation(&mut self, version: TlsVersion, is_resumed: bool) -> &mut u64 {
        match version {
            TlsVersion::V1_2 if !is_resumed => &mut self.server_hello,
            _ => &mut self.server_finished,
        }
    }

    fn tls13(post_quantum: bool, name: &Name, session: Session) -> Self {
        let (is_offered, is_resumed) = (session != Session::None, session == Session::Resumed);
        let if_so = |is_so: bool, bytes| if is_so { bytes } else { 0 };
        let proof = if is_resumed {
            95
        } else {
            187 + name.acknowledged + name.certificate
        };
        Self {
            client_hello: 241
                + name.sent
                + if_so(post_quantum, CLIENT_SHARE)
                + if_so(is_offered, TICKET_OFFERED),
            server_hello: 127 + if_so(post_quantum, SERVER_SHARE) + if_so(is_resumed, TICKET_TAKEN),
            server_finished: CHANGE_CIPHER_SPEC + proof,
            client_finished: 74,
            tickets: 184,
            close_notify: 24,
            record_overhead: 22,
        }
    }

    fn tls12(name: &Name, is_resumed: bool) -> Self {
        let finished = CHANGE_CIPHER_SPEC + 45;
        let client_hello = 159 + name.sent;
        let common = Self {
            client_hello,
            server_hello: 234 + name.acknowledged + name.certificate,
            server_finished: finished,
            client_finished: 42 + finished,
            tickets: 0,
            close_notify: 31,
            record_overhead: 29,
        };
        if !is_resumed {
            return common;
        }
        Self {
            client_hello: client_hello + SESSION_ID,
            server_hello: 0,
            server_finished: 105 + finished,
            client_finished: finished,
            ..common
        }
    }

    pub(super) fn bytes(&self, message: Message) -> u64 {
        match message {
            Message::ClientHello => self.client_hello,
            Message::ServerHello => self.server_hello,
            Message::ServerFinished => self.server_finished,
            Message::ClientFinished => self.client_finished,
            Message::ChangeCipherSpec => CHANGE_CIPHER_SPEC,
            Message::Tickets => self.tickets,
            Message::CloseNotify => self.close_notify,
        }
    }
}

/// The sizes of messages in QUIC for `host`: without records, and without transport parameters.
pub fn quic_lengths(options: TlsOptions, host: &str, session: Session) -> Lengths {
    let (is_offered, is_resumed) = (session != Session::None, session == Session::Resumed);
    let if_so = |is_so: bool, bytes| if is_so { bytes } else { 0 };
    let name = Name::of(host, options);
    let early_data = |is_so| if_so(options.early_data && is_so, EARLY_DATA);
    let client_hello = 182
        + name.sent
        + if_so(options.post_quantum, CLIENT_SHARE)
        + if_so(is_offered, QUIC_TICKET_OFFERED)
        + early_data(is_offered);
    let server_hello = 90 + if_so(options.post_quantum, SERVER_SHARE) + if_so(is_resumed, TICKET_TAKEN);
    let certificate = if_so(!is_resumed, CERTIFICATE_PROVED + name.certificate);
    Lengths {
        client_hello: client_hello as usize,
        server_hello: server_hello as usize,
        encrypted_extensions: (19 + if_so(!is_resumed, name.acknowledged) + early_data(is_resumed)) as usize,
        certificate: certificate as usize,
        finished: 52,
        ticket: (81 + early_data(true) * 2) as usize,
    }
}

/// What a host's name adds to messages, bytes.
struct Name {
    sent: u64,
    acknowledged: u64,
    /// The whole certificate.
    certificate: u64,
}

impl Name {
    fn of(host: &str, options: TlsOptions) -> Self {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let (sent, acknowledged, certified) = match bare.parse() {
            Ok(IpAddr::V4(_)) => (0, 0, 4),
            Ok(IpAddr::V6(_)) => (0, 0, 16),
            Err(_) => {
                let wider = CERTIFICATE_GROWS.iter().filter(|&&from| bare.len() >= from);
                let certified = bare.len() + wider.count();
                (SERVER_NAME + bare.len() as u64, NAME_ACKNOWLEDGED, certified)
            }
        };
        Self {
            sent,
            acknowledged,
            certificate: match options.certificate_bytes {
                Some(bytes) => u64::from(bytes),
                None => CERTIFICATE + certified as u64,
            },
        }
    }
}
