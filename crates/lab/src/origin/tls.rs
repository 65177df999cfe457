//! TLS of a server's connection, with early data (RFC 8446, section 2.3). It replaces tokio-rustls, which cannot
//! read that.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};
use rustls::{ServerConfig, ServerConnection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::log::{Conversation, Counted};

/// Sessions that a server remembers; the default of rustls.
const SESSIONS: usize = 256;

/// The sessions that an origin's server can resume.
#[derive(Debug)]
pub(super) struct Sessions(Mutex<Arc<ServerSessionMemoryCache>>);

impl Default for Sessions {
    fn default() -> Self {
        Self(Mutex::new(ServerSessionMemoryCache::new(SESSIONS)))
    }
}

impl Sessions {
    /// Forgets all sessions, so that earlier tickets are not valid any more.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = ServerSessionMemoryCache::new(SESSIONS);
    }

    fn known(&self) -> Arc<ServerSessionMemoryCache> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.known().put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.known().get(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.known().take(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// A TLS connection.
pub(super) struct Secure {
    stream: Counted,
    tls: ServerConnection,
    conversation: Arc<Conversation>,
}

impl Secure {
    /// Does the handshake, or the part of it until early data can be read.
    ///
    /// # Errors
    /// The socket's, or a fault of the client, which then gets an alert.
    pub(super) async fn accept(
        config: Arc<ServerConfig>,
        stream: Counted,
        conversation: Arc<Conversation>,
    ) -> io::Result<Self> {
        let mut secure = Self {
            stream,
            tls: ServerConnection::new(config).map_err(io::Error::other)?,
            conversation,
        };
        std::future::poll_fn(|context| secure.poll_handshake(context)).await?;
        Ok(secure)
    }

    /// The negotiated application protocol.
    pub(super) fn protocol(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let _ = self.poll_send(context)?;
            if !self.tls.is_handshaking() || self.tls.early_data().is_some() {
                return Poll::Ready(Ok(()));
            }
            if ready!(self.poll_fill(context))? == 0 {
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Reads once from the socket. Returns the number of bytes.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let stream = &mut self.stream;
        let read = match self.tls.read_tls(&mut Socket { stream, context }) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
            read => read?,
        };
        if let Err(error) = self.tls.process_new_packets() {
            // An alert tells the client why.
            let _ = self.poll_send(context);
            return Poll::Ready(Err(io::Error::new(ErrorKind::InvalidData, error)));
        }
        self.conversation.secured(&self.tls);
        Poll::Ready(Ok(read))
    }

    /// Writes what TLS has to send.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.tls.wants_write() {
            let stream = &mut self.stream;
            match self.tls.write_tls(&mut Socket { stream, context }) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                Ok(0) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                written => written?,
            };
        }
        Poll::Ready(Ok(()))
    }

    /// Reads decrypted bytes, as [`Read::read`].
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(mut early) = self.tls.early_data() {
            let bytes = early.read(buffer)?;
            if bytes > 0 {
                self.conversation.note_early_data(bytes);
                return Ok(bytes);
            }
        }
        let bytes = self.tls.reader().read(buffer)?;
        self.conversation.note_reading(false);
        Ok(bytes)
    }
}

impl AsyncRead for Secure {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.take(buffer.initialize_unfilled()) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                taken => {
                    buffer.advance(taken?);
                    return Poll::Ready(Ok(()));
                }
            }
            let is_owed = self.tls.wants_write();
            let filled = self.poll_fill(context)?;
            // An answer of TLS itself goes before data of the application.
            let _ = self.poll_send(context)?;
            if is_owed {
                self.conversation.note_answered();
            }
            if filled.is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl AsyncWrite for Secure {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if parts.iter().all(|part| part.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        loop {
            // Accepts no data while the buffer is full.
            let taken = self.tls.writer().write_vectored(parts)?;
            let sent = self.poll_send(context)?;
            self.conversation.note_answered();
            match (taken, sent) {
                (0, Poll::Pending) => return Poll::Pending,
                (0, Poll::Ready(())) => {}
                (taken, _) => return Poll::Ready(Ok(taken)),
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.tls.wants_write() {
            let sent = self.poll_send(context)?;
            self.conversation.note_answered();
            ready!(sent);
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Closing a socket with the end of the handshake unread would reset the connection, and lose the rest of an
        // answer to early data.
        while self.tls.is_handshaking() {
            ready!(self.poll_send(context))?;
            if ready!(self.poll_fill(context))? == 0 {
                break;
            }
        }
        // rustls sends the alert once, however often it is called.
        self.tls.send_close_notify();
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

/// An asynchronous stream with the synchronous interface that rustls needs.
struct Socket<'a, 'b> {
    stream: &'a mut Counted,
    context: &'a mut Context<'b>,
}

/// Turns a pending result into `WouldBlock`.
fn at_once<T>(outcome: Poll<io::Result<T>>) -> io::Result<T> {
    match outcome {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

impl Read for Socket<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        at_once(Pin::new(&mut *self.stream).poll_read(self.context, &mut buffer))?;
        Ok(buffer.filled().len())
    }
}

impl Write for Socket<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        at_once(Pin::new(&mut *self.stream).poll_write(self.context, bytes))
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        at_once(Pin::new(&mut *self.stream).poll_write_vectored(self.context, parts))
    }

    fn flush(&mut self) -> io::Result<()> {
        at_once(Pin::new(&mut *self.stream).poll_flush(self.context))
    }
}
