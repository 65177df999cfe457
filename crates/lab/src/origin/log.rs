//! The servers' log: every connection that they accepted, and every request on it.
//!
//! The built-in client reports itself what it requested and when. For other clients the servers report *what*: this
//! log places each request and response in the byte streams of its connection. The [ledger](crate::ledger) has
//! *when* those bytes crossed the wire.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};

use firstflight_load::TlsVersion;
use firstflight_load::hello::{ClientHello, may_begin};
use firstflight_load::promise::{EarlyData, Secured, Server};
use firstflight_page::Origin;
use firstflight_path::Protocol;
use firstflight_quic::crypto::Seen;
use rustls::ServerConnection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::clock;
use crate::ledger::ConnectionKey;
use crate::witness::{self, TcpInfo};

/// The target of a visit: a request before the measured load with which a program other than the built-in client
/// gets a ticket. The server answers without a body and closes the connection, so that the load opens another.
const VISIT: &str = "/.well-known/firstflight-visit";
/// The log looks for a `ClientHello` in this many first bytes of a client's stream.
const LONGEST_HELLO: u64 = 16_384;

/// Every connection that the servers accepted, in order.
#[derive(Debug, Default)]
pub struct Log {
    conversations: Mutex<Vec<Arc<Conversation>>>,
    /// The first error of a connection that could not be accepted.
    refused: OnceLock<io::Error>,
}

/// One accepted connection.
#[derive(Debug)]
pub struct Conversation {
    /// The ledger's key of the connection.
    pub key: ConnectionKey,
    /// The TLS messages seen on a QUIC connection.
    quic: Option<Arc<Seen>>,
    /// `TCP_INFO` of the server's own socket; `None` if it could not be asked.
    pub info: Option<TcpInfo>,
    /// The congestion control of that socket; `None` if it could not be asked.
    congestion_control: Option<String>,
    /// The client's first bytes, until a `ClientHello` is whole.
    opening: Mutex<Vec<u8>>,
    hello: OnceLock<ClientHello>,
    /// The negotiated version of TLS, and whether a session was resumed.
    secured: OnceLock<(TlsVersion, bool)>,
    /// Bytes of early data that were read, and whether the latest bytes read were early data.
    early_data: AtomicU64,
    is_early: AtomicBool,
    /// TCP payload read from and written to the client so far, bytes.
    read: AtomicU64,
    written: AtomicU64,
    /// Bytes written with TLS, up to the last byte of a response. Tickets and the end of TLS come after it.
    answered: AtomicU64,
    requests: Mutex<Vec<Exchange>>,
}

/// One request and its response, as the server saw them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The origin that it was meant for.
    pub origin: Origin,
    /// Its method.
    pub method: String,
    /// Its target, with the query.
    pub target: String,
    /// Index in the page of the resource that answers it; `None` if it was not recorded.
    pub resource: Option<usize>,
    /// Status of the response.
    pub status: u16,
    /// Body of the response, bytes on the wire.
    pub body_bytes: u64,
    /// When its header was read, monotonic ns.
    pub arrived: u64,
    /// Bytes of the connection read until then, the last byte of the request included.
    pub read: u64,
    /// The byte range of the response in the stream to the client. If the response is not complete: so far.
    pub response: Range<u64>,
}

impl Exchange {
    /// Whether it is a visit, and not part of the measured load.
    pub fn is_visit(&self) -> bool {
        is_visit(&self.target)
    }
}

/// Whether a request for this target is a visit. The query does not matter.
pub(super) fn is_visit(target: &str) -> bool {
    target.split('?').next() == Some(VISIT)
}

/// Whether the connection of a visit is left open for the client to close. If the server sends no `NEW_TOKEN` (RFC
/// 9000, section 8.1.3), Firefox uses a ticket only three probe timeouts after it came, and drops it if the
/// connection ends before.
pub(super) fn lasts(target: &str) -> bool {
    target.ends_with("?lasting")
}

/// What a server knows of a request once it has chosen the answer.
#[derive(Debug)]
pub(super) struct Answered<'a> {
    pub(super) origin: &'a Origin,
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) resource: Option<usize>,
    pub(super) status: u16,
    pub(super) body_bytes: u64,
}

impl Log {
    /// Logs a connection that was just accepted from `client`, and counts its bytes from now on.
    ///
    /// `client` is the address from `accept`: a socket that was reset since then does not know its peer any more.
    pub(super) fn accepted(&self, (stream, client): (TcpStream, SocketAddr)) -> (Counted, Arc<Conversation>) {
        let conversation = Arc::new(Conversation::new(&stream, client));
        lock(&self.conversations).push(Arc::clone(&conversation));
        (Counted::new(stream, Arc::clone(&conversation)), conversation)
    }

    /// Logs a QUIC connection.
    pub(super) fn accepted_quic(&self, key: ConnectionKey, seen: Option<Arc<Seen>>) -> Arc<Conversation> {
        let conversation = Arc::new(Conversation {
            quic: Some(seen.unwrap_or_default()),
            ..Conversation::of(key)
        });
        lock(&self.conversations).push(Arc::clone(&conversation));
        conversation
    }

    /// Every connection so far, in the order of acceptance.
    pub fn conversations(&self) -> Vec<Arc<Conversation>> {
        lock(&self.conversations).clone()
    }

    /// Logs that a connection could not be accepted.
    pub(super) fn refuse(&self, error: io::Error) {
        // Only the first error matters.
        let _ = self.refused.set(error);
    }

    /// Why a connection could not be accepted; `None` if all were.
    pub fn refused(&self) -> Option<&io::Error> {
        self.refused.get()
    }
}

impl Conversation {
    fn new(stream: &TcpStream, client: SocketAddr) -> Self {
        let (server, server_port) = match stream.local_addr().map(|at| (at.ip(), at.port())) {
            Ok(at) => at,
            Err(_) => (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        };
        Self {
            info: TcpInfo::of(stream).ok(),
            congestion_control: witness::congestion_control(stream).ok(),
            ..Self::of((client.port(), server, server_port))
        }
    }

    /// A new connection.
    fn of(key: ConnectionKey) -> Self {
        Self {
            key,
            quic: None,
            info: None,
            congestion_control: None,
            opening: Mutex::default(),
            hello: OnceLock::new(),
            secured: OnceLock::new(),
            early_data: AtomicU64::new(0),
            is_early: AtomicBool::new(false),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            requests: Mutex::default(),
        }
    }

    /// Its transport protocol.
    pub fn protocol(&self) -> Protocol {
        match self.quic {
            Some(_) => Protocol::Udp,
            None => Protocol::Tcp,
        }
    }

    /// What promises are checked against.
    pub fn server(&self) -> Server {
        if let Some(seen) = &self.quic {
            let hello = seen.hello();
            return Server {
                congestion_control: None,
                post_quantum: hello.map(ClientHello::is_post_quantum),
                tls: seen.at_server(hello.is_some_and(|hello| hello.offers_early_data)),
            };
        }
        Server {
            congestion_control: self.congestion_control.clone(),
            post_quantum: self.hello.get().map(ClientHello::is_post_quantum),
            tls: self.secured.get().map(|&(version, is_resumed)| Secured {
                version,
                is_resumed,
                early_data: self.fate_of_early_data(is_resumed),
            }),
        }
    }

    fn fate_of_early_data(&self, is_resumed: bool) -> EarlyData {
        let is_offered = self.hello.get().is_some_and(|hello| hello.offers_early_data);
        match self.early_data.load(Ordering::Relaxed) {
            0 if is_offered && !is_resumed => EarlyData::Rejected,
            0 => EarlyData::None,
            _ => EarlyData::Accepted,
        }
    }

    /// Notes the negotiated TLS, as soon as it is known.
    pub(super) fn secured(&self, tls: &ServerConnection) {
        if self.secured.get().is_none()
            && let Some(agreed) = witness::agreed(tls)
        {
            let _ = self.secured.set(agreed);
        }
    }

    /// Counts early data that was read.
    pub(super) fn note_early_data(&self, bytes: usize) {
        self.early_data.fetch_add(bytes as u64, Ordering::Relaxed);
        self.note_reading(true);
    }

    /// Whether bytes read from now on are early data.
    pub(super) fn note_reading(&self, is_early: bool) {
        self.is_early.store(is_early, Ordering::Relaxed);
    }

    /// Whether the latest bytes read were early data.
    pub(super) fn is_early(&self) -> bool {
        self.is_early.load(Ordering::Relaxed)
    }

    /// Notes a request whose answer is chosen and not yet written.
    pub(super) fn note(&self, answered: &Answered<'_>) {
        let written = self.written.load(Ordering::Relaxed);
        // Over QUIC the position is unknown.
        let written = if self.quic.is_some() { 0 } else { written };
        let mut requests = lock(&self.requests);
        // HTTP/1.1 sends one response after the other: where one begins, the one before has ended.
        if let Some(before) = requests.last_mut().filter(|_| self.quic.is_none()) {
            before.response.end = self.answered();
        }
        requests.push(Exchange {
            origin: answered.origin.clone(),
            method: answered.method.to_owned(),
            target: answered.target.to_owned(),
            resource: answered.resource,
            status: answered.status,
            body_bytes: answered.body_bytes,
            arrived: clock::now(),
            read: self.read.load(Ordering::Relaxed),
            response: written..written,
        });
    }

    /// Its requests so far, in the order of arrival.
    pub fn exchanges(&self) -> Vec<Exchange> {
        let mut exchanges = lock(&self.requests).clone();
        if let Some(last) = exchanges.last_mut().filter(|_| self.quic.is_none()) {
            last.response.end = self.answered();
        }
        exchanges
    }

    /// The end of the last response so far, in bytes written. Over QUIC: in bytes of the IP packets.
    pub fn answered(&self) -> u64 {
        let has_tls = self.quic.is_some() || self.secured.get().is_some();
        if has_tls { &self.answered } else { &self.written }.load(Ordering::Relaxed)
    }

    /// Notes that everything written so far belongs to a response, or precedes one.
    pub(super) fn note_answered(&self) {
        self.answered
            .store(self.written.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Counts bytes that came from the client, and looks for a `ClientHello` in the first of them.
    pub(super) fn count_read(&self, bytes: &[u8]) {
        let before = self.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let mut opening = lock(&self.opening);
        // The `ClientHello` was read already, or there is none.
        if before != opening.len() as u64 || before >= LONGEST_HELLO {
            return;
        }
        opening.extend_from_slice(bytes);
        let hello = ClientHello::read(&opening);
        if hello.is_some() || !may_begin(&opening) {
            *opening = Vec::new();
        }
        if let Some(hello) = hello {
            let _ = self.hello.set(hello);
        }
    }

    pub(super) fn count_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A TCP stream that counts the bytes of each direction for its [`Conversation`], below TLS and HTTP framing.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    conversation: Arc<Conversation>,
}

impl Counted {
    pub(super) fn new(stream: TcpStream, conversation: Arc<Conversation>) -> Self {
        Self { stream, conversation }
    }

    fn wrote(&self, outcome: &io::Result<usize>) {
        if let Ok(bytes) = outcome {
            self.conversation.count_written(*bytes);
        }
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        self.conversation.count_read(&buffer.filled()[before..]);
        Poll::Ready(outcome)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        self.wrote(&outcome);
        Poll::Ready(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, bytes));
        self.wrote(&outcome);
        Poll::Ready(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Ignores poisoning: every change is a single push, so a thread that panicked left the data consistent.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
