//! One end of a connection as an application sees it: a socket, with or without TLS.

use firstflight_path::Nanos;
use firstflight_tcp::Socket;

use crate::tls::{Heard, Tls};

/// A client's or a server's end.
#[derive(Debug)]
pub(crate) struct Channel<'a> {
    pub(crate) socket: &'a mut Socket,
    pub(crate) tls: Option<&'a mut Tls>,
    pub(crate) is_client: bool,
}

impl Channel<'_> {
    /// The application writes `bytes`.
    pub(crate) fn write(&mut self, now: Nanos, bytes: u64) {
        let bytes = self.seal(bytes);
        self.socket.write(now, bytes);
    }

    /// The size of `bytes` on the wire.
    pub(crate) fn seal(&mut self, bytes: u64) -> u64 {
        match &mut self.tls {
            Some(tls) => tls.seal(self.is_client, bytes),
            None => bytes,
        }
    }

    /// Whether this much data may be sent before the TLS handshake.
    pub(crate) fn takes_early(&self, bytes: u64) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.takes_early(bytes))
    }

    /// Whether the server ignores data sent before the TLS handshake.
    pub(crate) fn rejects_early_data(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.rejects_early_data())
    }

    /// As [`Self::write`], in parts that TLS encrypts one by one and that leave together.
    pub(crate) fn write_parts(&mut self, now: Nanos, parts: &[u64]) {
        let wire = match &mut self.tls {
            Some(tls) => parts.iter().map(|&bytes| tls.seal(self.is_client, bytes)).sum(),
            None => parts.iter().sum(),
        };
        self.socket.write(now, wire);
    }

    /// Reads everything that has come. TLS answers its own messages.
    pub(crate) fn read(&mut self, now: Nanos) -> Heard {
        let bytes = self.socket.read_all(now);
        let Some(tls) = &mut self.tls else {
            return Heard::plain(bytes);
        };
        let heard = tls.hear(!self.is_client, bytes);
        if heard.reply > 0 {
            self.socket.write(now, heard.reply);
        }
        heard
    }

    /// The server will write no more.
    pub(crate) fn close(&mut self, now: Nanos) {
        if let Some(tls) = &mut self.tls {
            self.socket.write(now, tls.close());
        }
        self.socket.close(now);
    }
}
