//! The TLS records on their way in one direction (RFC 8446, section 5.1; RFC 5246, section 6.2.1).

use super::Message;
use crate::pieces::Pieces;

/// Largest content of a record, bytes.
const MAX_FRAGMENT: u64 = 1 << 14;

/// The content of a record, or of several that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Bytes of the application.
    Data(u64),
    /// A part of the handshake, or an alert.
    Message(Message),
}

/// Records in order.
pub(super) type Records = Pieces<Content>;

impl Records {
    /// The application writes `bytes`, in records that add `overhead` each. Returns their size on the wire.
    pub(super) fn seal(&mut self, bytes: u64, overhead: u64) -> u64 {
        let (mut left, mut wire) = (bytes, 0);
        while left > 0 {
            let fragment = left.min(MAX_FRAGMENT);
            self.push(fragment + overhead, Content::Data(fragment));
            left -= fragment;
            wire += fragment + overhead;
        }
        wire
    }
}
