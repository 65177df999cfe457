//! The client's end of a connection: it takes requests, and reports what happens to them.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use firstflight_load::TlsVersion;
use firstflight_load::promise::{self, EarlyData, Secured};
use firstflight_loader::{self as loader, ConnId, Loader, Nanos};
use firstflight_path::Ecn;
use quinn_proto::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, StreamEvent, StreamId, VarInt,
};

use crate::clock::{codepoint, ecn, instant, nanos};
use crate::crypto::{Seen, seen_of};
use crate::frames::{self, Frames, NO_ERROR, Part};
use crate::qpack;

/// An event of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEvent {
    /// The handshake is done: any request can be sent.
    Ready,
    /// The request was handed to QUIC.
    Sent {
        /// The number passed to [`Client::ask`].
        request: usize,
    },
    /// The response's header fields have come.
    Head {
        /// The number passed to [`Client::ask`].
        request: usize,
        /// HTTP status.
        status: u16,
        /// The field `Location`.
        location: Option<String>,
        /// Size of the header block, bytes.
        bytes: u64,
    },
    /// More of the response's body has come.
    Body {
        /// The number passed to [`Client::ask`].
        request: usize,
        /// How many bytes.
        bytes: u64,
    },
    /// The whole response has come.
    End {
        /// The number passed to [`Client::ask`].
        request: usize,
    },
    /// The connection is closed.
    Failed {
        /// The reason.
        error: String,
    },
}

impl ClientEvent {
    /// Reports the event to the loader, and adds received bytes to `wire_bytes`, which has an element for each
    /// request.
    pub fn tell(&self, now: Nanos, conn: ConnId, loader: &mut Loader, wire_bytes: &mut [u64]) {
        let event = match *self {
            Self::Ready => {
                loader.handle(now, loader::Event::Established(conn));
                loader::Event::Writable(conn)
            }
            Self::Sent { request } => loader::Event::RequestSent { conn, request },
            Self::Head {
                request,
                status,
                ref location,
                bytes,
            } => {
                wire_bytes[request] += bytes;
                let location = location.as_deref();
                loader::Event::Head {
                    conn,
                    request,
                    status,
                    location,
                }
            }
            Self::Body { request, bytes } => {
                wire_bytes[request] += bytes;
                loader::Event::Body { conn, request, bytes }
            }
            Self::End { request } => loader::Event::End {
                conn,
                request,
                reusable: true,
            },
            Self::Failed { ref error } => loader::Event::Failed { conn, error },
        };
        loader.handle(now, event);
    }
}

/// The client's end of one connection.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    server: SocketAddr,
    /// What was seen of its TLS, if its configuration is witnessed.
    seen: Option<Arc<Seen>>,
    /// Whether the handshake is done.
    is_ready: bool,
    /// Whether it offered 0-RTT.
    offers_early_data: bool,
    control_stream: Option<StreamId>,
    /// Requests that wait for the handshake or for a stream, in order.
    waiting: VecDeque<Asked>,
    /// Requests in 0-RTT packets, to be sent again if the server rejects these.
    early: Vec<Asked>,
    was_early: bool,
    /// Whether a request asked for before the handshake was done, or else the first one, is safe; `None` before
    /// any.
    may_be_early: Option<bool>,
    exchanges: BTreeMap<StreamId, Exchange>,
    /// The request on each stream, by the stream's number.
    asked: Vec<usize>,
    events: VecDeque<ClientEvent>,
}

#[derive(Debug, Clone)]
struct Asked {
    request: usize,
    block: Bytes,
    is_safe: bool,
}

#[derive(Debug)]
struct Exchange {
    request: usize,
    frames: Frames,
}

impl Client {
    /// Opens a connection to `host` at `server`. `seed` determines all random choices.
    ///
    /// # Errors
    /// Those of quinn-proto, when the host's name is invalid.
    pub fn connect(
        now: Nanos,
        endpoint: Arc<EndpointConfig>,
        config: ClientConfig,
        server: SocketAddr,
        host: &str,
        seed: [u8; 32],
    ) -> Result<Self, ConnectError> {
        let mut endpoint = Endpoint::new(endpoint, None, true, Some(seed));
        let (handle, connection) = endpoint.connect(instant(now), config, server, host)?;
        let mut client = Self {
            endpoint,
            handle,
            offers_early_data: connection.has_0rtt(),
            seen: seen_of(&connection),
            connection,
            server,
            is_ready: false,
            control_stream: None,
            waiting: VecDeque::new(),
            early: Vec::new(),
            was_early: false,
            may_be_early: None,
            exchanges: BTreeMap::new(),
            asked: Vec::new(),
            events: VecDeque::new(),
        };
        client.advance();
        Ok(client)
    }

    /// Whether a safe request may be sent before the handshake is done.
    pub fn offers_early_data(&self) -> bool {
        self.offers_early_data
    }

    /// Whether it holds its first datagram back for a request.
    pub fn awaits_request(&self) -> bool {
        self.offers_early_data && !self.was_early && !self.is_ready && self.waiting.is_empty()
    }

    /// Sends `request`, whose header fields are encoded in `block`. One that `is_safe` may go in 0-RTT packets.
    pub fn ask(&mut self, request: usize, block: Bytes, is_safe: bool) {
        let known = self.may_be_early.get_or_insert(is_safe);
        *known |= is_safe && !self.is_ready;
        self.waiting.push_back(Asked {
            request,
            block,
            is_safe,
        });
        self.send();
    }

    /// Handles a datagram from the server, with the ECN field of its IP header.
    pub fn handle(&mut self, now: Nanos, datagram: BytesMut, marks: Ecn) {
        let mut answer = Vec::new();
        let now = instant(now);
        let event = self
            .endpoint
            .handle(now, self.server, None, codepoint(marks), datagram, &mut answer);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            self.connection.handle_event(event);
        }
        self.advance();
    }

    /// When to call [`Self::handle_timeout`].
    pub fn next_timeout(&mut self) -> Option<Nanos> {
        self.connection.poll_timeout().map(nanos)
    }

    /// Handles the timeouts that are due at `now`.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.connection.handle_timeout(instant(now));
        self.advance();
    }

    /// Fills `datagram` with the next one to send. Returns the ECN field for its IP header; `None` if there is no
    /// datagram.
    ///
    /// If the driver always sends [`Ecn::NotCapable`] instead, the connection stops using ECN (RFC 9000, section
    /// 13.4).
    pub fn poll_transmit(&mut self, now: Nanos, datagram: &mut Vec<u8>) -> Option<Ecn> {
        datagram.clear();
        let sent = self.connection.poll_transmit(instant(now), 1, datagram)?;
        Some(ecn(sent.ecn))
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Closes the connection.
    pub fn close(&mut self, now: Nanos) {
        self.connection
            .close(instant(now), VarInt::from_u32(NO_ERROR), Bytes::new());
    }

    /// The request on a stream.
    pub fn request_of(&self, stream: StreamId) -> Option<usize> {
        self.asked.get(stream.index() as usize).copied()
    }

    /// What was seen of its TLS, if its configuration is witnessed.
    pub fn seen(&self) -> Option<&Seen> {
        self.seen.as_deref()
    }

    /// Whether the handshake is done.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// The state of its 0-RTT packets.
    pub fn early_data(&self) -> EarlyData {
        let is_rejected = self.is_ready && self.offers_early_data && !self.connection.accepted_0rtt();
        match (self.was_early, self.is_ready) {
            _ if is_rejected => EarlyData::Rejected,
            (false, _) => EarlyData::None,
            (true, false) => EarlyData::Sent,
            (true, true) => EarlyData::Accepted,
        }
    }

    /// What this end reports. Nothing of TLS until the handshake is done, or if its configuration is not witnessed.
    pub fn told(&self) -> promise::Client {
        let seen = self.seen().filter(|_| self.is_ready);
        promise::Client {
            tls: seen.map(|seen| Secured {
                version: TlsVersion::V1_3,
                is_resumed: !seen.has_certificate(),
                early_data: self.early_data(),
            }),
            may_be_early: self.may_be_early,
        }
    }

    fn advance(&mut self) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => self.on_ready(),
                Event::ConnectionLost { reason } => {
                    let error = format!("QUIC: {reason}");
                    self.events.push_back(ClientEvent::Failed { error });
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(id),
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    while let Some(id) = self.connection.streams().accept(Dir::Uni) {
                        self.read(id);
                    }
                }
                _ => {}
            }
        }
        self.send();
    }

    fn on_ready(&mut self) {
        self.is_ready = true;
        let early = std::mem::take(&mut self.early);
        if self.offers_early_data && !self.connection.accepted_0rtt() {
            // quinn has dropped the streams.
            self.control_stream = None;
            self.exchanges.clear();
            self.asked.clear();
            for asked in early.into_iter().rev() {
                self.waiting.push_front(asked);
            }
        }
        self.events.push_back(ClientEvent::Ready);
    }

    /// Sends the requests that may be sent and have a stream.
    fn send(&mut self) {
        let may_send = |asked: &Asked| self.offers_early_data && asked.is_safe;
        if !self.is_ready && !self.waiting.iter().any(may_send) {
            return;
        }
        self.open_control_stream();
        let mut held = VecDeque::new();
        while let Some(asked) = self.waiting.pop_front() {
            if !self.is_ready && !asked.is_safe {
                held.push_back(asked);
                continue;
            }
            let Some(stream) = self.connection.streams().open(Dir::Bi) else {
                held.push_back(asked);
                break;
            };
            // A request fits into what a stream may send at once. If it does not, the server ends the exchange.
            let mut sending = self.connection.send_stream(stream);
            let _ = sending.write_chunks(&mut [frames::headers(&asked.block)]);
            let _ = sending.finish();
            let request = asked.request;
            self.asked.push(request);
            let frames = Frames::default();
            self.exchanges.insert(stream, Exchange { request, frames });
            self.events.push_back(ClientEvent::Sent { request });
            if !self.is_ready {
                self.was_early = true;
                self.early.push(asked);
            }
        }
        held.append(&mut self.waiting);
        self.waiting = held;
    }

    fn open_control_stream(&mut self) {
        if self.control_stream.is_none()
            && let Some(stream) = self.connection.streams().open(Dir::Uni)
        {
            self.control_stream = Some(stream);
            let _ = self
                .connection
                .send_stream(stream)
                .write_chunks(&mut [frames::control()]);
        }
    }

    /// Reads what has come on a stream. No load depends on the server's control stream.
    fn read(&mut self, id: StreamId) {
        let events = &mut self.events;
        let mut exchange = self.exchanges.get_mut(&id);
        let mut stream = self.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        let mut problem = None;
        let is_over = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    if let Some(exchange) = &mut exchange {
                        problem = problem.or(exchange.take(&chunk.bytes, events));
                    }
                }
                Ok(None) => break true,
                Err(quinn_proto::ReadError::Blocked) => break false,
                Err(error @ quinn_proto::ReadError::Reset(_)) => {
                    problem = Some(error.to_string());
                    break false;
                }
            }
        };
        let _ = chunks.finalize();
        if let Some(error) = problem {
            events.push_back(ClientEvent::Failed {
                error: format!("HTTP/3: {error}"),
            });
        } else if is_over && let Some(Exchange { request, .. }) = self.exchanges.remove(&id) {
            events.push_back(ClientEvent::End { request });
        }
    }
}

impl Exchange {
    /// Handles bytes of the response. Returns an error if they are malformed.
    fn take(&mut self, bytes: &[u8], events: &mut VecDeque<ClientEvent>) -> Option<String> {
        let (request, mut problem) = (self.request, None);
        let taken = self.frames.take(bytes, |part| match part {
            Part::Data(bytes) => events.push_back(ClientEvent::Body { request, bytes }),
            Part::Headers(block) => match head(request, &block) {
                Ok(head) => events.extend(head),
                Err(error) => problem = Some(error),
            },
        });
        taken.err().map(|error| error.to_string()).or(problem)
    }
}

/// The event for a response's header fields; `None` for an interim response.
fn head(request: usize, block: &Bytes) -> Result<Option<ClientEvent>, String> {
    let fields = qpack::decode(block).map_err(|error| error.to_string())?;
    let field = |name: &[u8]| {
        let found = fields.iter().find(|(known, _)| known == name)?;
        std::str::from_utf8(&found.1).ok()
    };
    let status = field(b":status").and_then(|status| status.parse().ok());
    let status: u16 = status.ok_or("a response without a status")?;
    if status < 200 {
        return Ok(None);
    }
    let location = field(b"location").map(ToOwned::to_owned);
    Ok(Some(ClientEvent::Head {
        request,
        status,
        location,
        bytes: block.len() as u64,
    }))
}
