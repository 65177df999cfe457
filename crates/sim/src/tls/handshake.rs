//! The order of messages in a handshake.

use firstflight_load::TlsVersion;

use super::{Message, TICKETS};

/// A kind of handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handshake {
    /// One round trip (RFC 8446, section 2), resumed or not.
    Tls13,
    /// The same with early data: the client sends its `ChangeCipherSpec` before that (section 2.3).
    Tls13Early,
    /// Two round trips (RFC 5246, section 7.3, figure 1).
    Tls12,
    /// One round trip (same section, figure 2).
    Tls12Resumed,
}

impl Handshake {
    pub(super) fn new(version: TlsVersion, is_resumed: bool, is_early: bool) -> Self {
        match version {
            TlsVersion::V1_3 if is_early => Self::Tls13Early,
            TlsVersion::V1_3 => Self::Tls13,
            TlsVersion::V1_2 if is_resumed => Self::Tls12Resumed,
            TlsVersion::V1_2 => Self::Tls12,
        }
    }

    /// The other end's answer to `message`.
    pub(super) fn answer(self, message: Message) -> &'static [Message] {
        use Message::{ChangeCipherSpec, ClientFinished, ClientHello, ServerFinished, ServerHello, Tickets};
        match self {
            Self::Tls13 => match message {
                ClientHello => &[ServerHello, ServerFinished],
                ServerHello => &[ChangeCipherSpec],
                ServerFinished => &[ClientFinished],
                ClientFinished => &[Tickets],
                _ => &[],
            },
            Self::Tls13Early => match message {
                ClientHello => &[ServerHello, ServerFinished],
                ServerFinished => &[ClientFinished],
                ClientFinished => &[Tickets],
                _ => &[],
            },
            Self::Tls12 => match message {
                ClientHello => &[ServerHello],
                ServerHello => &[ClientFinished],
                ClientFinished => &[ServerFinished],
                _ => &[],
            },
            Self::Tls12Resumed => match message {
                ClientHello => &[ServerFinished],
                ServerFinished => &[ClientFinished],
                _ => &[],
            },
        }
    }

    /// Number of sessions that a client gains with `message`.
    pub(super) fn sessions(self, message: Message) -> u32 {
        match (self, message) {
            (Self::Tls13 | Self::Tls13Early, Message::Tickets) => TICKETS,
            (Self::Tls12, Message::ServerFinished) => 1,
            _ => 0,
        }
    }
}
