//! Cryptography of connections: a witness of their TLS, and one for the simulator that only has lengths.

mod lengths;
mod witness;

pub use lengths::{Lengths, NoKey, SizedClient, SizedServer, Ticket};
pub use witness::{Seen, WitnessedClient, WitnessedServer};

pub(crate) use witness::seen_of;

/// Types of TLS's handshake messages (RFC 8446, section 4).
mod message {
    pub(super) const CLIENT_HELLO: u8 = 1;
    pub(super) const SERVER_HELLO: u8 = 2;
    pub(super) const NEW_SESSION_TICKET: u8 = 4;
    pub(super) const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub(super) const CERTIFICATE: u8 = 11;
    pub(super) const FINISHED: u8 = 20;
    /// Bytes before a message's body: its type, and its length in three bytes.
    pub(super) const HEADER: usize = 4;
}
