//! The connection pool, and the requests that wait for a connection.
//!
//! After Chromium's `TransportClientSocketPool` (`net/socket/transport_client_socket_pool.cc`): a request is not
//! bound to the connection opened for it. It waits in its origin's queue, and the connection that becomes usable
//! first takes the request of the highest priority (late binding). A connection that no request needs any more
//! stays idle. An origin with HTTP/2 or QUIC has one connection, which carries all its requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use firstflight_page::Origin;

use crate::{Command, Config, ConnId, Http2, MAX_STREAMS, Nanos, OriginId, Plan, Quic};

/// All connections of a load.
#[derive(Debug)]
pub(crate) struct Pool {
    per_origin: usize,
    max: usize,
    groups: Vec<Group>,
    connections: Vec<Connection>,
    /// Number of open connections, and how many of them are idle.
    open: usize,
    idle: usize,
    /// Origins to check when a connection slot is free: `max` prevents or prevented them from connecting.
    stalled: Vec<OriginId>,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) origin: OriginId,
    pub(crate) state: State,
    pub(crate) opened: Nanos,
    pub(crate) writable: Option<Nanos>,
    pub(crate) closed: Option<Nanos>,
    /// Requests that it was given.
    pub(crate) requests: u32,
    /// When it last made progress.
    pub(crate) progress: Nanos,
    /// Whether a stall timer is set.
    pub(crate) is_watched: bool,
    /// On QUIC, whether its handshake is done; `None` on TCP.
    pub(crate) quic: Option<bool>,
}

impl Connection {
    /// Whether it may carry several requests at a time.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.state, State::Shared(_))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Connecting,
    Idle,
    /// It carries the request for this resource.
    Busy(usize),
    /// HTTP/2 or HTTP/3: it carries this number of requests.
    Shared(u32),
    Closed,
}

/// A request in the queue. The smallest goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiting {
    pub(crate) rank: u8,
    /// Order of discovery.
    pub(crate) order: u32,
    pub(crate) resource: usize,
}

#[derive(Debug, Default)]
struct Group {
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// Idle connections, the oldest first.
    idle: Vec<ConnId>,
    connecting: usize,
    open: usize,
    speaks: Speaks,
    /// The protocol it uses where QUIC does not get through.
    over_tcp: Speaks,
    /// The connection that carries all its requests, with HTTP/2 or HTTP/3.
    carrier: Option<ConnId>,
}

/// The protocol that an origin uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Speaks {
    #[default]
    Http1,
    Http2,
    Quic,
}

impl Pool {
    pub(crate) fn new(config: &Config, plan: &Plan) -> Self {
        let group = |(origin, &spoke_http2): (&Origin, &bool)| {
            let over_tcp = over_tcp(config, origin.secure, spoke_http2);
            Group {
                speaks: if origin.secure && config.quic != Quic::Never {
                    Speaks::Quic
                } else {
                    over_tcp
                },
                over_tcp,
                ..Group::default()
            }
        };
        Self {
            per_origin: config.connections_per_origin.max(1),
            max: config.max_connections.max(1),
            groups: plan.origins.iter().zip(&plan.spoke_http2).map(group).collect(),
            connections: Vec::new(),
            open: 0,
            idle: 0,
            stalled: Vec::new(),
        }
    }

    pub(crate) fn connections(&self) -> &[Connection] {
        &self.connections
    }

    pub(crate) fn get_mut(&mut self, conn: ConnId) -> Option<&mut Connection> {
        self.connections.get_mut(conn.0 as usize)
    }

    /// Puts a request into its origin's queue.
    pub(crate) fn wait(&mut self, origin: OriginId, request: Waiting) {
        self.groups[origin].waiting.push(Reverse(request));
    }

    /// Takes the first request out of the queue of an origin.
    pub(crate) fn pop_waiting(&mut self, origin: OriginId) -> Option<usize> {
        self.groups[origin]
            .waiting
            .pop()
            .map(|Reverse(waiting)| waiting.resource)
    }

    /// The next command for the requests that wait for `origin`; `None` if they have to wait.
    pub(crate) fn next(&mut self, origin: OriginId, now: Nanos) -> Option<Command> {
        let group = &mut self.groups[origin];
        if group.waiting.is_empty() {
            return None;
        }
        if let Some(conn) = group.carrier {
            return self.share(conn, now);
        }
        if let Some(conn) = pick_idle(&mut group.idle, &self.connections) {
            return self.assign(conn, now);
        }
        let most = if group.speaks == Speaks::Http1 {
            self.per_origin
        } else {
            1
        };
        if group.waiting.len() <= group.connecting || group.open >= most {
            return None;
        }
        if self.open < self.max {
            let quic = group.speaks == Speaks::Quic;
            return Some(self.connect(origin, quic, now));
        }
        if let Some(conn) = self.oldest_idle() {
            self.close(conn, now);
            return Some(Command::Close { conn });
        }
        self.stall(origin);
        None
    }

    /// Marks `origin` to be checked when a connection slot is free.
    pub(crate) fn stall(&mut self, origin: OriginId) {
        if !self.stalled.contains(&origin) {
            self.stalled.push(origin);
        }
    }

    /// The origin to serve first now that a connection slot may be free: that of the most urgent request.
    /// Chromium's `FindTopStalledGroup` breaks ties by hash order; here the first discovered request wins.
    pub(crate) fn pop_stalled(&mut self) -> Option<OriginId> {
        if self.stalled.is_empty() || (self.open >= self.max && self.idle == 0) {
            return None;
        }
        let first = |&at: &usize| {
            self.groups[self.stalled[at]]
                .waiting
                .peek()
                .map_or((1, None), |top| (0, Some(top.0)))
        };
        let at = (0..self.stalled.len()).min_by_key(first)?;
        Some(self.stalled.swap_remove(at))
    }

    /// The connection can take a request (again). Returns its origin.
    pub(crate) fn make_idle(&mut self, conn: ConnId) -> OriginId {
        self.leave(conn);
        let connection = &mut self.connections[conn.0 as usize];
        connection.state = State::Idle;
        self.groups[connection.origin].idle.push(conn);
        self.idle += 1;
        connection.origin
    }

    /// The connection is closed. Returns its origin.
    pub(crate) fn close(&mut self, conn: ConnId, now: Nanos) -> OriginId {
        self.leave(conn);
        let connection = &mut self.connections[conn.0 as usize];
        if connection.state != State::Closed {
            connection.state = State::Closed;
            connection.closed = Some(now);
            self.groups[connection.origin].open -= 1;
            self.open -= 1;
        }
        connection.origin
    }

    /// Removes the connection from the counts and lists of its present state.
    fn leave(&mut self, conn: ConnId) {
        let connection = &self.connections[conn.0 as usize];
        let group = &mut self.groups[connection.origin];
        match connection.state {
            State::Connecting => group.connecting -= 1,
            State::Idle => {
                group.idle.retain(|&other| other != conn);
                self.idle -= 1;
            }
            State::Shared(_) => group.carrier = None,
            State::Busy(_) | State::Closed => {}
        }
    }

    /// A request has ended. Returns the origin if the connection still carries others.
    pub(crate) fn end_stream(&mut self, conn: ConnId) -> Option<OriginId> {
        let connection = self.get_mut(conn)?;
        let State::Shared(streams) = &mut connection.state else {
            return None;
        };
        *streams -= 1;
        (*streams > 0).then_some(connection.origin)
    }

    /// Sends one more request on an HTTP/2 or HTTP/3 connection, if it has room.
    fn share(&mut self, conn: ConnId, now: Nanos) -> Option<Command> {
        let connection = &mut self.connections[conn.0 as usize];
        let State::Shared(streams) = &mut connection.state else {
            return None;
        };
        if *streams == MAX_STREAMS {
            return None;
        }
        *streams += 1;
        connection.requests += 1;
        connection.progress = now;
        let origin = connection.origin;
        let request = self.pop_waiting(origin)?;
        Some(Command::Send { conn, request })
    }

    fn assign(&mut self, conn: ConnId, now: Nanos) -> Option<Command> {
        self.idle -= 1;
        let origin = self.connections[conn.0 as usize].origin;
        let request = self.pop_waiting(origin)?;
        let connection = &mut self.connections[conn.0 as usize];
        connection.state = State::Busy(request);
        connection.requests += 1;
        connection.progress = now;
        let group = &mut self.groups[origin];
        if group.speaks != Speaks::Http1 {
            group.carrier = Some(conn);
            connection.state = State::Shared(1);
        }
        Some(Command::Send { conn, request })
    }

    /// The QUIC handshake is done.
    pub(crate) fn establish(&mut self, conn: ConnId) {
        if let Some(connection) = self.get_mut(conn) {
            connection.quic = connection.quic.map(|_| true);
        }
    }

    /// The QUIC connection of an origin that does not use TCP yet.
    pub(crate) fn over_quic(&self, origin: OriginId) -> Option<ConnId> {
        let is_it = |connection: &Connection| {
            connection.origin == origin && connection.quic.is_some() && connection.state != State::Closed
        };
        let at = self.connections.iter().position(is_it);
        at.filter(|_| self.groups[origin].speaks == Speaks::Quic)
            .map(|at| ConnId(at as u32))
    }

    /// From now on the loader uses TCP with an origin.
    pub(crate) fn fall_back(&mut self, origin: OriginId) {
        self.groups[origin].speaks = self.groups[origin].over_tcp;
    }

    /// Starts a connection.
    pub(crate) fn connect(&mut self, origin: OriginId, quic: bool, now: Nanos) -> Command {
        let conn = ConnId(self.connections.len() as u32);
        self.connections.push(Connection {
            origin,
            state: State::Connecting,
            opened: now,
            writable: None,
            closed: None,
            requests: 0,
            progress: now,
            is_watched: false,
            quic: quic.then_some(false),
        });
        let group = &mut self.groups[origin];
        group.connecting += 1;
        group.open += 1;
        self.open += 1;
        Command::Open { conn, origin, quic }
    }

    /// The oldest idle connection. Chromium's `CloseOneIdleSocket` takes the oldest of an arbitrary origin.
    fn oldest_idle(&self) -> Option<ConnId> {
        if self.idle == 0 {
            return None;
        }
        let at = self
            .connections
            .iter()
            .position(|connection| connection.state == State::Idle)?;
        Some(ConnId(at as u32))
    }
}

/// The protocol that an origin uses over TCP.
fn over_tcp(config: &Config, is_secure: bool, spoke_http2: bool) -> Speaks {
    match config.http2 {
        Http2::Always if is_secure => Speaks::Http2,
        Http2::Recorded if is_secure && spoke_http2 => Speaks::Http2,
        _ => Speaks::Http1,
    }
}

/// The idle connection for a request, as in Chromium's `AssignIdleSocketToRequest`: the most recently used one,
/// else the oldest unused one. The most recently used has an open congestion window, and the server has least
/// likely closed it.
fn pick_idle(idle: &mut Vec<ConnId>, connections: &[Connection]) -> Option<ConnId> {
    let was_used = |conn: &ConnId| connections[conn.0 as usize].requests > 0;
    let at = idle
        .iter()
        .rposition(was_used)
        .or(if idle.is_empty() { None } else { Some(0) })?;
    Some(idle.remove(at))
}
