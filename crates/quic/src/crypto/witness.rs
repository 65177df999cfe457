//! Observes the TLS of a connection: its handshake messages, and the packets decrypted with its 0-RTT keys.
//!
//! quinn-proto tells a client whether the server accepted 0-RTT, and tells a server nothing. It passes every
//! message and every packet to its cryptography through [`Session`], so a wrapper around that sees both.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::BytesMut;
use firstflight_load::TlsVersion;
use firstflight_load::hello::ClientHello;
use firstflight_load::promise::{EarlyData, Secured};
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, Connection, ConnectionId, Side, TransportError};

use super::message;

/// Longest `ClientHello` that is read, bytes.
const LONGEST_HELLO: usize = 16 * 1024;

/// What was seen of one end's TLS.
#[derive(Debug, Default)]
pub struct Seen {
    hello: OnceLock<ClientHello>,
    has_certificate: AtomicBool,
    is_answered: AtomicBool,
    tickets: AtomicU64,
    early_packets: AtomicU64,
    early_bytes: AtomicU64,
}

impl Seen {
    /// The client's first message; `None` before it came, and at the client's end.
    pub fn hello(&self) -> Option<&ClientHello> {
        self.hello.get()
    }

    /// Whether the server sent a certificate, as it does unless it resumes a session.
    pub fn has_certificate(&self) -> bool {
        self.has_certificate.load(Ordering::Relaxed)
    }

    /// What the server's end reports; `None` until it has answered the client. `offers_early_data`: whether the
    /// client announced 0-RTT packets.
    pub fn at_server(&self, offers_early_data: bool) -> Option<Secured> {
        if !self.is_answered.load(Ordering::Relaxed) {
            return None;
        }
        let is_resumed = !self.has_certificate();
        Some(Secured {
            version: TlsVersion::V1_3,
            is_resumed,
            early_data: match self.early() {
                (0, _) if offers_early_data && !is_resumed => EarlyData::Rejected,
                (0, _) => EarlyData::None,
                _ => EarlyData::Accepted,
            },
        })
    }

    /// Number of tickets that the client received, or that the server sent.
    pub fn tickets(&self) -> u64 {
        self.tickets.load(Ordering::Relaxed)
    }

    /// Number of 0-RTT packets that the server could decrypt, and the bytes of their frames.
    pub fn early(&self) -> (u64, u64) {
        (
            self.early_packets.load(Ordering::Relaxed),
            self.early_bytes.load(Ordering::Relaxed),
        )
    }

    fn note(&self, kind: u8) {
        match kind {
            message::CERTIFICATE => self.has_certificate.store(true, Ordering::Relaxed),
            message::FINISHED => self.is_answered.store(true, Ordering::Relaxed),
            message::NEW_SESSION_TICKET => drop(self.tickets.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
    }
}

/// What was seen of a connection's TLS; `None` unless its configuration is witnessed.
pub(crate) fn seen_of(connection: &Connection) -> Option<Arc<Seen>> {
    let data = connection.crypto_session().handshake_data()?;
    data.downcast::<Arc<Seen>>().ok().map(|seen| *seen)
}

/// A client's TLS configuration, witnessed.
pub struct WitnessedClient<C>(pub Arc<C>);

/// A server's TLS configuration, witnessed.
pub struct WitnessedServer<C>(pub Arc<C>);

impl<C: ClientConfig + 'static> ClientConfig for WitnessedClient<C> {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = Arc::clone(&self.0).start_session(version, server_name, parameters)?;
        Ok(Box::new(Witnessed::new(inner, Side::Client)))
    }
}

impl<C: ServerConfig + 'static> ServerConfig for WitnessedServer<C> {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.0.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.0.retry_tag(version, id, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        let inner = Arc::clone(&self.0).start_session(version, parameters);
        Box::new(Witnessed::new(inner, Side::Server))
    }
}

struct Witnessed {
    inner: Box<dyn Session>,
    side: Side,
    seen: Arc<Seen>,
    /// The server's messages, at either end.
    messages: Messages,
    /// The client's first message, as far as it has reached the server.
    opening: Vec<u8>,
}

/// Counts the messages in a stream, which may be cut anywhere.
#[derive(Default)]
struct Messages {
    header: Vec<u8>,
    body_left: usize,
}

impl Messages {
    fn take(&mut self, mut bytes: &[u8], mut found: impl FnMut(u8)) {
        while !bytes.is_empty() {
            let skipped = self.body_left.min(bytes.len());
            self.body_left -= skipped;
            bytes = &bytes[skipped..];
            let missing = message::HEADER - self.header.len();
            let (more, rest) = bytes.split_at(missing.min(bytes.len()));
            self.header.extend_from_slice(more);
            bytes = rest;
            if let [kind, high, middle, low] = *self.header {
                found(kind);
                self.body_left = u32::from_be_bytes([0, high, middle, low]) as usize;
                self.header.clear();
            }
        }
    }
}

impl Witnessed {
    fn new(inner: Box<dyn Session>, side: Side) -> Self {
        Self {
            inner,
            side,
            seen: Arc::default(),
            messages: Messages::default(),
            opening: Vec::new(),
        }
    }

    fn read_hello(&mut self, bytes: &[u8]) {
        if self.seen.hello.get().is_some() || self.opening.len() + bytes.len() > LONGEST_HELLO {
            return;
        }
        self.opening.extend_from_slice(bytes);
        if let Some(hello) = ClientHello::of_message(&self.opening) {
            let _ = self.seen.hello.set(hello);
            self.opening = Vec::new();
        }
    }
}

impl Session for Witnessed {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(id, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(Arc::clone(&self.seen)))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (header, inner) = self.inner.early_crypto()?;
        let seen = Arc::clone(&self.seen);
        Some((header, Box::new(EarlyKey { inner, seen })))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        if self.side.is_client() {
            self.messages.take(bytes, |kind| self.seen.note(kind));
        } else {
            self.read_hello(bytes);
        }
        self.inner.read_handshake(bytes)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, bytes: &mut Vec<u8>) -> Option<Keys> {
        let before = bytes.len();
        let keys = self.inner.write_handshake(bytes);
        if self.side.is_server() {
            self.messages.take(&bytes[before..], |kind| self.seen.note(kind));
        }
        keys
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.inner.next_1rtt_keys()
    }

    fn is_valid_retry(&self, id: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(id, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

/// The key of 0-RTT packets, which counts those that it decrypts.
struct EarlyKey {
    inner: Box<dyn PacketKey>,
    seen: Arc<Seen>,
}

impl PacketKey for EarlyKey {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_bytes: usize) {
        self.inner.encrypt(packet, bytes, header_bytes);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.inner.decrypt(packet, header, payload)?;
        self.seen.early_packets.fetch_add(1, Ordering::Relaxed);
        self.seen
            .early_bytes
            .fetch_add(payload.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_however_their_stream_is_cut() {
        let of = |kind: u8, body: usize| [&[kind, 0, 0, body as u8][..], &vec![9; body]].concat();
        let stream = [of(8, 20), of(11, 200), of(20, 0), of(4, 3)].concat();
        for cut in 0..stream.len() {
            let (mut messages, mut found) = (Messages::default(), Vec::new());
            for part in [&stream[..cut], &stream[cut..]] {
                messages.take(part, |kind| found.push(kind));
            }
            assert_eq!(found, [8, 11, 20, 4], "{cut}");
        }
    }
}
