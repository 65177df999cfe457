//! The server's end: connections of any number of clients at one address.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use firstflight_load::Priority;
use firstflight_loader::Nanos;
use firstflight_path::Ecn;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ServerConfig,
    StreamEvent, StreamId, VarInt, WriteError,
};

use crate::clock::{codepoint, ecn, instant, nanos};
use crate::crypto::{Seen, seen_of};
use crate::frames::{self, Frames, MALFORMED, NO_ERROR, Part};

/// The stream of a request: its connection's number, and its own.
pub type StreamKey = (usize, StreamId);

/// An event of a server.
#[derive(Debug)]
pub enum ServerEvent {
    /// A client began a connection.
    Accepted {
        /// Its number.
        connection: usize,
        /// The client's address.
        client: SocketAddr,
        /// What is seen of its TLS, if its configuration is witnessed.
        seen: Option<Arc<Seen>>,
    },
    /// A request has come whole.
    Request {
        /// The stream for the answer.
        stream: StreamKey,
        /// Its header fields, encoded.
        block: Bytes,
        /// Whether it came before the handshake was done, in 0-RTT packets.
        is_early: bool,
    },
}

/// A server.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint,
    peers: BTreeMap<usize, Peer>,
    /// Datagrams that belong to no connection.
    answers: VecDeque<(SocketAddr, Vec<u8>)>,
    /// The connection of the last datagram.
    last_sent: Option<usize>,
    events: VecDeque<ServerEvent>,
}

#[derive(Debug)]
struct Peer {
    connection: Connection,
    has_control_stream: bool,
    /// Incoming requests: their frames, and the header block once it has come.
    incoming: BTreeMap<StreamId, (Frames, Option<Bytes>)>,
    /// Unsent parts of answers.
    outgoing: BTreeMap<StreamId, Vec<Bytes>>,
    /// Number of STREAM frames it had sent at the last call of [`Server::last_sent`].
    stream_frames: u64,
    is_drained: bool,
}

impl Server {
    /// A server without connections. `seed` determines all random choices.
    pub fn new(endpoint: Arc<EndpointConfig>, config: Arc<ServerConfig>, seed: [u8; 32]) -> Self {
        Self {
            endpoint: Endpoint::new(endpoint, Some(config), true, Some(seed)),
            peers: BTreeMap::new(),
            answers: VecDeque::new(),
            last_sent: None,
            events: VecDeque::new(),
        }
    }

    /// Handles a datagram from `client`, with the ECN field of its IP header.
    pub fn handle(&mut self, now: Nanos, client: SocketAddr, datagram: BytesMut, marks: Ecn) {
        let mut buffer = Vec::new();
        let now = instant(now);
        let event = self
            .endpoint
            .handle(now, client, None, codepoint(marks), datagram, &mut buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(peer) = self.peers.get_mut(&handle.0) {
                    peer.connection.handle_event(event);
                }
                self.advance(handle);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut buffer, None) {
                    Ok((handle, connection)) => self.accept(handle, connection, client),
                    Err(error) => {
                        if let Some(sent) = error.response {
                            self.answers
                                .push_back((sent.destination, buffer[..sent.size].to_vec()));
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(sent)) => {
                self.answers
                    .push_back((sent.destination, buffer[..sent.size].to_vec()));
            }
            None => {}
        }
    }

    /// When to call [`Self::handle_timeout`].
    pub fn next_timeout(&mut self) -> Option<Nanos> {
        let timeouts = self
            .peers
            .values_mut()
            .filter_map(|peer| peer.connection.poll_timeout());
        timeouts.min().map(nanos)
    }

    /// Handles the timeouts that are due at `now`.
    pub fn handle_timeout(&mut self, now: Nanos) {
        let now = instant(now);
        let is_due = |(number, peer): (&usize, &mut Peer)| {
            let is_due = peer.connection.poll_timeout().is_some_and(|at| at <= now);
            is_due.then_some(*number)
        };
        for number in self.peers.iter_mut().filter_map(is_due).collect::<Vec<_>>() {
            if let Some(peer) = self.peers.get_mut(&number) {
                peer.connection.handle_timeout(now);
            }
            self.advance(ConnectionHandle(number));
        }
    }

    /// Fills `datagram` with the next one to send. Returns its destination, and the ECN field for its IP header;
    /// `None` if there is no datagram.
    pub fn poll_transmit(&mut self, now: Nanos, datagram: &mut Vec<u8>) -> Option<(SocketAddr, Ecn)> {
        datagram.clear();
        self.last_sent = None;
        if let Some((client, answer)) = self.answers.pop_front() {
            datagram.extend_from_slice(&answer);
            return Some((client, Ecn::NotCapable));
        }
        let now = instant(now);
        for (number, peer) in self.peers.iter_mut().filter(|(_, peer)| !peer.is_drained) {
            if let Some(sent) = peer.connection.poll_transmit(now, 1, datagram) {
                self.last_sent = Some(*number);
                return Some((sent.destination, ecn(sent.ecn)));
            }
        }
        None
    }

    /// The connection of the last datagram of [`Self::poll_transmit`], and whether it has sent stream data since
    /// the last call for that connection. `None` if the datagram belongs to no connection.
    pub fn last_sent(&mut self) -> Option<(usize, bool)> {
        let number = self.last_sent?;
        let peer = self.peers.get_mut(&number)?;
        // For this one counter quinn copies hundreds.
        let frames = peer.connection.stats().frame_tx.stream;
        let before = std::mem::replace(&mut peer.stream_frames, frames);
        Some((number, frames > before))
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// Answers a request: encoded header fields, the body in parts, and its priority.
    pub fn respond(
        &mut self,
        (number, stream): StreamKey,
        priority: Priority,
        block: &[u8],
        body: impl IntoIterator<Item = Bytes>,
    ) {
        let Some(peer) = self.peers.get_mut(&number) else {
            return;
        };
        let mut parts: Vec<Bytes> = vec![frames::headers(block), Bytes::new()];
        parts.extend(body);
        let bytes: usize = parts.iter().skip(2).map(Bytes::len).sum();
        if bytes > 0 {
            parts[1] = frames::data(bytes as u64);
        }
        parts.retain(|part| !part.is_empty());
        // A closed stream has nothing left to send.
        let _ = peer
            .connection
            .send_stream(stream)
            .set_priority(rank(priority, stream));
        peer.outgoing.insert(stream, parts);
        peer.write(stream);
    }

    /// Closes a connection.
    pub fn close(&mut self, now: Nanos, connection: usize) {
        if let Some(peer) = self.peers.get_mut(&connection) {
            peer.connection
                .close(instant(now), VarInt::from_u32(NO_ERROR), Bytes::new());
        }
    }

    fn accept(&mut self, handle: ConnectionHandle, connection: Connection, client: SocketAddr) {
        self.events.push_back(ServerEvent::Accepted {
            connection: handle.0,
            client,
            seen: seen_of(&connection),
        });
        let peer = Peer {
            connection,
            has_control_stream: false,
            incoming: BTreeMap::new(),
            outgoing: BTreeMap::new(),
            stream_frames: 0,
            is_drained: false,
        };
        self.peers.insert(handle.0, peer);
        self.advance(handle);
    }

    fn advance(&mut self, handle: ConnectionHandle) {
        let Some(peer) = self.peers.get_mut(&handle.0) else {
            return;
        };
        while let Some(event) = peer.connection.poll_endpoint_events() {
            peer.is_drained |= event.is_drained();
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                peer.connection.handle_event(event);
            }
        }
        while let Some(event) = peer.connection.poll() {
            match event {
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = peer.connection.streams().accept(dir) {
                        peer.read(handle, id, &mut self.events);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => peer.read(handle, id, &mut self.events),
                Event::Stream(StreamEvent::Writable { id }) => peer.write(id),
                _ => {}
            }
        }
        peer.open_control_stream();
        if peer.is_drained {
            self.peers.remove(&handle.0);
        }
    }
}

impl Peer {
    fn open_control_stream(&mut self) {
        if !self.has_control_stream
            && let Some(stream) = self.connection.streams().open(Dir::Uni)
        {
            self.has_control_stream = true;
            let mut control = self.connection.send_stream(stream);
            // Before every answer.
            let _ = control.set_priority(i32::MAX);
            let _ = control.write_chunks(&mut [frames::control()]);
        }
    }

    /// Reads what has come on a stream. Uploaded bodies and the client's settings are read and ignored. A stream
    /// with a malformed request is reset.
    fn read(&mut self, handle: ConnectionHandle, id: StreamId, events: &mut VecDeque<ServerEvent>) {
        let mut stream = self.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        let (frames, block) = self.incoming.entry(id).or_default();
        let mut is_malformed = false;
        let is_over = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) if id.dir() == Dir::Bi && !is_malformed => {
                    let taken = frames.take(&chunk.bytes, |part| {
                        if let Part::Headers(headers) = part {
                            block.get_or_insert(headers);
                        }
                    });
                    is_malformed = taken.is_err();
                }
                Ok(Some(_)) => {}
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let _ = chunks.finalize();
        if !is_over && !is_malformed {
            return;
        }
        match self.incoming.remove(&id) {
            Some((_, Some(block))) if !is_malformed => events.push_back(ServerEvent::Request {
                stream: (handle.0, id),
                block,
                is_early: self.connection.is_handshaking(),
            }),
            _ if id.dir() == Dir::Bi => {
                let code = VarInt::from_u32(MALFORMED);
                // Either direction may have ended already.
                let _ = self.connection.recv_stream(id).stop(code);
                let _ = self.connection.send_stream(id).reset(code);
            }
            _ => {}
        }
    }

    /// Writes as much of an answer as the connection accepts.
    fn write(&mut self, id: StreamId) {
        let Some(parts) = self.outgoing.get_mut(&id) else {
            return;
        };
        let mut stream = self.connection.send_stream(id);
        while !parts.is_empty() {
            match stream.write_chunks(parts) {
                Ok(written) => drop(parts.drain(..written.chunks)),
                Err(WriteError::Blocked) => return,
                // The client has stopped reading it.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => break,
            }
        }
        let _ = stream.finish();
        self.outgoing.remove(&id);
    }
}

/// The priority of an answer for quinn. quinn sends the streams with the highest priority, and streams of equal
/// priority in turn.
///
/// So answers that go one after another have different ranks. If all are equal it is 0, quinn's default.
fn rank(priority: Priority, stream: StreamId) -> i32 {
    const STEP: i32 = 1 << 24;
    let urgency = (3 - i32::from(priority.urgency())) * STEP;
    if priority.is_incremental() {
        urgency
    } else {
        let number = i32::try_from(stream.index()).unwrap_or(i32::MAX);
        urgency + STEP - 1 - number.min(STEP - 2)
    }
}

#[cfg(test)]
mod tests {
    use quinn_proto::Side;

    use super::*;

    #[test]
    fn urgent_answers_rank_first_then_those_in_order_then_those_in_turn() {
        let stream = |number| StreamId::new(Side::Client, Dir::Bi, number);
        let of = |field: &str, number| rank(Priority::parse(field), stream(number));
        let falling = [
            of("u=0", 9),
            of("u=0", 1 << 30),
            of("u=0, i", 0),
            of("u=3", 0),
            of("u=3", 1),
            of("u=3, i", 0),
            of("u=7", 0),
            of("u=7, i", 0),
        ];
        assert!(falling.is_sorted_by(|more, less| more > less), "{falling:?}");
        assert_eq!(of("i", 4), of("i", 5));
        assert_eq!(of("i", 4), 0);
    }
}
