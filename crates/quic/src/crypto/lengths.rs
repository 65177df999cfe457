//! Cryptography with the lengths of TLS 1.3 and nothing else: no secrets, no randomness, little processor time.
//!
//! Its messages are as long as those of rustls (`crates/lab/tests/quic_flights.rs` compares them). Its packets have
//! a tag of sixteen bytes and are not encrypted. So the simulator's connections are the same in every run.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, OnceLock};

use bytes::BytesMut;
use firstflight_path::Ecn;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
    KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

use super::message;
use crate::{Client, CongestionControl, Server, Settings, deterministic_endpoint};

/// Size of a tag (RFC 9001, section 5.3), and of the sample for header protection (section 5.4).
const TAG_BYTES: usize = 16;
const SAMPLE: usize = 16;
/// The content of messages. Bodies have no zeros either, because a long run of zeros at the end of a packet is
/// padding.
const FILLER: u8 = 0x11;
/// Number of zeros at the end of a packet that may belong to a frame.
const MAY_BE_A_FRAME: usize = 64;
/// The content of tags. Zeros would look like the token of a stateless reset, which is also zeros here.
const TAG_FILLER: u8 = 0xab;
const RESET_TOKEN_BYTE: u8 = 0xcd;

/// Sizes of one handshake's messages, bytes, with message headers and without QUIC's transport parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages of TLS 1.3")]
pub struct Lengths {
    pub client_hello: usize,
    pub server_hello: usize,
    pub encrypted_extensions: usize,
    /// `Certificate` and `CertificateVerify`; 0 if a session is resumed.
    pub certificate: usize,
    pub finished: usize,
    /// Each of the two tickets that a server sends.
    pub ticket: usize,
}

/// What a client keeps of an earlier connection to a server with [`Settings::transport`]: the ticket, and the
/// server's transport parameters (RFC 9001, section 4.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Whether the server still accepts it.
    pub is_known: bool,
}

/// The transport parameters of such a server.
static REMEMBERED: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let settings = Settings {
        congestion_control: CongestionControl::default(),
        initial_window: 10,
    };
    let visited = Arc::new(Visited::default());
    let mut config = quinn_proto::ServerConfig::new(Arc::clone(&visited) as _, Arc::new(NoKey));
    config.transport_config(settings.transport());
    let endpoint = Arc::new(deterministic_endpoint(0));
    let mut server = Server::new(Arc::clone(&endpoint), Arc::new(config), [0; 32]);
    let tls = SizedClient {
        lengths: Lengths::default(),
        ticket: None,
        early_data: false,
    };
    let [client_address, server_address] = [1, 2].map(|host| SocketAddr::from(([198, 18, 0, host], 443)));
    let config = quinn_proto::ClientConfig::new(Arc::new(tls));
    let mut datagram = Vec::new();
    if let Ok(mut client) = Client::connect(0, endpoint, config, server_address, "a.test", [0; 32])
        && client.poll_transmit(0, &mut datagram).is_some()
    {
        server.handle(0, client_address, BytesMut::from(&datagram[..]), Ecn::NotCapable);
    }
    visited.0.get().cloned().unwrap_or_default()
});

/// A server to which a connection is made for its transport parameters.
#[derive(Debug, Default)]
struct Visited(OnceLock<Vec<u8>>);

/// The configuration of a client.
#[derive(Debug, Clone)]
pub struct SizedClient {
    /// Sizes of its messages.
    pub lengths: Lengths,
    /// The session that it offers to resume.
    pub ticket: Option<Ticket>,
    /// Whether it sends 0-RTT packets with it.
    pub early_data: bool,
}

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct SizedServer {
    /// Sizes of its messages.
    pub lengths: Lengths,
    /// Whether it accepts 0-RTT packets.
    pub early_data: bool,
}

/// Flags of a `ClientHello`.
const OFFERS_SESSION: u8 = 1;
const IS_KNOWN: u8 = 2;
const EARLY_DATA: u8 = 4;

/// The stage of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The `ClientHello` is to be written (client), or to come (server).
    Start,
    /// The `ServerHello` is to come (client) or to be written (server).
    Hello,
    /// As `Hello`, and the handshake keys are available.
    HandshakeKeys,
    /// The rest of the server's messages is to come (client) or to be written (server).
    Proof,
    /// The `Finished` is to be written (client) or to come (server).
    Finish,
    /// The server's tickets are to be written.
    Tickets,
    Done,
}

struct Sized {
    side: Side,
    lengths: Lengths,
    stage: Stage,
    /// This end's transport parameters, and the other end's.
    parameters: Vec<u8>,
    peer_parameters: Option<Vec<u8>>,
    /// The client's ticket.
    ticket: Option<Ticket>,
    resumes: bool,
    /// Whether 0-RTT packets are sent (client) or accepted (server).
    early_data: bool,
    incoming: Vec<u8>,
}

impl Sized {
    fn server(lengths: Lengths, parameters: &TransportParameters, early_data: bool) -> Self {
        Self {
            side: Side::Server,
            lengths,
            stage: Stage::Start,
            parameters: written(parameters),
            peer_parameters: None,
            ticket: None,
            resumes: false,
            early_data,
            incoming: Vec::new(),
        }
    }

    /// Type, flags and transport parameters of the next complete message.
    fn next_message(&mut self) -> Option<(u8, u8, Vec<u8>)> {
        let [kind, high, middle, low, ..] = *self.incoming else {
            return None;
        };
        let total = message::HEADER + u32::from_be_bytes([0, high, middle, low]) as usize;
        if self.incoming.len() < total {
            return None;
        }
        let (flags, parameters) = match &self.incoming[message::HEADER..total] {
            [flags, high, low, rest @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
                (*flags, rest[..length].to_vec())
            }
            _ => (0, Vec::new()),
        };
        self.incoming.drain(..total);
        Some((kind, flags, parameters))
    }

    fn flags(&self) -> u8 {
        let Some(ticket) = &self.ticket else { return 0 };
        let bit = |is_set: bool, bit| if is_set { bit } else { 0 };
        OFFERS_SESSION | bit(ticket.is_known, IS_KNOWN) | bit(self.early_data, EARLY_DATA)
    }
}

impl Session for Sized {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys(false)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let has_keys = if self.side.is_client() {
            self.early_data && self.ticket.is_some()
        } else {
            self.early_data && self.resumes
        };
        let key = Tag { drops_padding: true };
        has_keys.then(|| (Box::new(NoKey) as _, Box::new(key) as _))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.side.is_client().then_some(self.early_data && self.resumes)
    }

    fn is_handshaking(&self) -> bool {
        match self.side {
            Side::Client => self.stage != Stage::Done,
            Side::Server => !matches!(self.stage, Stage::Tickets | Stage::Done),
        }
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.incoming.extend_from_slice(bytes);
        let mut is_news = false;
        while let Some((kind, flags, parameters)) = self.next_message() {
            match kind {
                message::CLIENT_HELLO => {
                    self.resumes = flags & OFFERS_SESSION != 0 && flags & IS_KNOWN != 0;
                    self.early_data &= flags & EARLY_DATA != 0;
                    self.peer_parameters = Some(parameters);
                    self.stage = Stage::Hello;
                    is_news = true;
                }
                message::SERVER_HELLO => self.stage = Stage::HandshakeKeys,
                message::ENCRYPTED_EXTENSIONS => {
                    self.resumes = flags & OFFERS_SESSION != 0;
                    self.early_data &= flags & EARLY_DATA != 0;
                    self.peer_parameters = Some(parameters);
                    is_news = true;
                }
                message::FINISHED if self.side.is_client() => self.stage = Stage::Finish,
                message::FINISHED => self.stage = Stage::Tickets,
                _ => {}
            }
        }
        Ok(is_news)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let remembered = || self.ticket.map(|_| REMEMBERED.as_slice());
        let Some(mut known) = self.peer_parameters.as_deref().or_else(remembered) else {
            return Ok(None);
        };
        Ok(Some(TransportParameters::read(self.side, &mut known)?))
    }

    fn write_handshake(&mut self, to: &mut Vec<u8>) -> Option<Keys> {
        let lengths = self.lengths;
        match (self.side, self.stage) {
            (Side::Client, Stage::Start) => {
                write(
                    to,
                    message::CLIENT_HELLO,
                    lengths.client_hello,
                    self.flags(),
                    &self.parameters,
                );
                self.stage = Stage::Hello;
                None
            }
            (Side::Client, Stage::HandshakeKeys) => {
                self.stage = Stage::Proof;
                Some(keys(false))
            }
            (Side::Client, Stage::Finish) => {
                write(to, message::FINISHED, lengths.finished, 0, &[]);
                self.stage = Stage::Done;
                Some(keys(false))
            }
            (Side::Server, Stage::Hello) => {
                write(to, message::SERVER_HELLO, lengths.server_hello, 0, &[]);
                self.stage = Stage::Proof;
                Some(keys(false))
            }
            (Side::Server, Stage::Proof) => {
                let flags = match (self.resumes, self.early_data) {
                    (false, _) => 0,
                    (true, false) => OFFERS_SESSION,
                    (true, true) => OFFERS_SESSION | EARLY_DATA,
                };
                let length = lengths.encrypted_extensions;
                write(to, message::ENCRYPTED_EXTENSIONS, length, flags, &self.parameters);
                if !self.resumes {
                    write(to, message::CERTIFICATE, lengths.certificate, 0, &[]);
                }
                write(to, message::FINISHED, lengths.finished, 0, &[]);
                self.stage = Stage::Finish;
                Some(keys(false))
            }
            (Side::Server, Stage::Tickets) => {
                for _ in 0..2 {
                    write(to, message::NEW_SESSION_TICKET, lengths.ticket, 0, &[]);
                }
                self.stage = Stage::Done;
                None
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys(false).packet)
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// Appends a message of `length` bytes, or more if it needs more, plus its transport parameters.
fn write(to: &mut Vec<u8>, kind: u8, length: usize, flags: u8, parameters: &[u8]) {
    let start = to.len();
    let body = [&[flags], &(parameters.len() as u16).to_be_bytes()[..], parameters].concat();
    let total = (length + parameters.len()).max(message::HEADER + body.len());
    let [_, length @ ..] = ((total - message::HEADER) as u32).to_be_bytes();
    to.push(kind);
    to.extend_from_slice(&length);
    to.extend_from_slice(&body);
    to.resize(start + total, FILLER);
}

fn written(parameters: &TransportParameters) -> Vec<u8> {
    let mut bytes = Vec::new();
    parameters.write(&mut bytes);
    bytes
}

impl ClientConfig for SizedClient {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Sized {
            side: Side::Client,
            lengths: self.lengths,
            stage: Stage::Start,
            parameters: written(parameters),
            peer_parameters: None,
            ticket: self.ticket,
            resumes: false,
            early_data: self.early_data && self.ticket.is_some(),
            incoming: Vec::new(),
        }))
    }
}

impl ServerConfig for SizedServer {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys(true))
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(self: Arc<Self>, _: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        Box::new(Sized::server(self.lengths, parameters, self.early_data))
    }
}

impl ServerConfig for Visited {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys(true))
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(self: Arc<Self>, _: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        let _ = self.0.set(written(parameters));
        let lengths = Lengths::default();
        Box::new(Sized::server(lengths, parameters, false))
    }
}

/// A key that encrypts nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoKey;

/// A packet key that encrypts nothing, and adds a tag.
#[derive(Debug, Clone, Copy)]
struct Tag {
    /// Whether to remove padding. Not in a client's first packet: quinn may answer with three times its decrypted
    /// length.
    drops_padding: bool,
}

fn pair(key: Tag) -> KeyPair<Box<dyn PacketKey>> {
    KeyPair {
        local: Box::new(key),
        remote: Box::new(key),
    }
}

fn keys(is_first: bool) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(NoKey),
            remote: Box::new(NoKey),
        },
        packet: pair(Tag {
            drops_padding: !is_first,
        }),
    }
}

impl HeaderKey for NoKey {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        SAMPLE
    }
}

impl PacketKey for Tag {
    fn encrypt(&self, _: u64, bytes: &mut [u8], _: usize) {
        let tag = bytes.len() - TAG_BYTES;
        bytes[tag..].fill(TAG_FILLER);
    }

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        if !self.drops_padding {
            payload.truncate(length);
            return Ok(());
        }
        // Each zero of padding is a frame (RFC 9000, section 19.1). Parsing them would take most of the time.
        let padding = zeros_at_the_end(&payload[..length]);
        payload.truncate(length - padding.saturating_sub(MAY_BE_A_FRAME));
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Number of zero bytes at the end, compared a word at a time.
fn zeros_at_the_end(bytes: &[u8]) -> usize {
    const WORD: usize = 16;
    let words = bytes.rchunks_exact(WORD).take_while(|word| **word == [0; WORD]);
    let zeros = WORD * words.count();
    let before = bytes[..bytes.len() - zeros].iter().rev();
    zeros + before.take_while(|byte| **byte == 0).count()
}

impl HmacKey for NoKey {
    fn sign(&self, _: &[u8], signature: &mut [u8]) {
        signature.fill(RESET_TOKEN_BYTE);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl HandshakeTokenKey for NoKey {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for NoKey {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.extend_from_slice(&[0; TAG_BYTES]);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        Ok(&mut data[..length])
    }
}
