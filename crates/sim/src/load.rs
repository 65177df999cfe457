//! One load on the virtual clock: the loader, its connections, the path between them, and what is due next.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use firstflight_loader::{Command, ConnId, Event, LoadRecord, Loader};
use firstflight_path::{Action, Direction, Dropped, Drops, Nanos, Network, PathConfig, PathError};

use crate::client::Client;
use crate::clock::{JIFFY, MS, Ticks};
use crate::job::{Cookies, Job, Mode, OriginRtt};
use crate::ledger::Entry;
use crate::page::{SimPage, Site};
use crate::segment::{FastOpen, Segment};
use crate::server::Server;
use crate::tcp::{Settings, Socket};
use crate::trace::Trace;

/// Navigation start: not 0, so that no timestamp is.
pub(crate) const START: Nanos = 1_000 * MS;

/// One connection: both ends, and what the wire saw of it.
#[derive(Debug)]
struct Connection {
    host: usize,
    client: Client,
    client_socket: Socket,
    server: Server,
    server_socket: Option<Socket>,
    entry: Entry,
    /// Its number in the order of first SYNs.
    number: Option<u32>,
    /// Counts among its host's Fast Open requests that are pending.
    is_pending: bool,
    /// The earliest moment at which the heap has an entry for it.
    armed: Option<Nanos>,
}

/// A finished load.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) record: LoadRecord,
    /// By connection.
    pub(crate) ledger: Vec<Entry>,
    pub(crate) wire_bytes: Vec<u64>,
    pub(crate) packets: u64,
    pub(crate) drops: Drops,
    pub(crate) trace: Trace,
}

#[derive(Debug)]
struct Load<'a> {
    site: Site<'a>,
    job: &'a Job,
    settings: Settings,
    now: Nanos,
    loader: Loader,
    network: Network<u32>,
    /// Segments on their way, by the number that the network carries, and numbers that are free.
    segments: Vec<Segment>,
    free: Vec<u32>,
    connections: Vec<Connection>,
    /// How many of them have sent a SYN.
    opened: u32,
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// The cookie that the client has of each host, and Fast Open requests pending there.
    cookies: Vec<Option<FastOpen>>,
    pending: Vec<u32>,
    wire_bytes: Vec<u64>,
    packets: u64,
    trace: Trace,
}

/// Loads `page` once as `job` says.
pub(crate) fn load(page: &SimPage, job: &Job) -> Result<Loaded, PathError> {
    let phase = fastrand::Rng::with_seed(job.path.seed).u64(..JIFFY);
    let cookie = match job.cookies {
        Cookies::Warm => Some(FastOpen::Cookie),
        Cookies::Stale => Some(FastOpen::Stale),
        Cookies::Cold => None,
    };
    let hosts = page.farther_ms.len();
    let mut load = Load {
        site: Site {
            page,
            keep_alive: job.keep_alive,
        },
        job,
        settings: Settings {
            algorithm: job.congestion_control,
            initial_window: job.initial_window,
            ticks: Ticks::new(phase),
        },
        now: START,
        loader: Loader::with_plan(Arc::clone(&page.plan), job.config(), START),
        network: Network::new(&path(page, job))?,
        segments: Vec::new(),
        free: Vec::new(),
        connections: Vec::new(),
        opened: 0,
        timers: BinaryHeap::new(),
        cookies: vec![cookie; hosts],
        pending: vec![0; hosts],
        wire_bytes: vec![0; page.resources.len()],
        packets: 0,
        trace: Trace::new(job),
    };
    load.run();
    Ok(load.finish())
}

/// The path, with the recorded distances of the hosts if the job asks for them.
fn path<'a>(page: &SimPage, job: &'a Job) -> Cow<'a, PathConfig> {
    if job.origin_rtt == OriginRtt::Path {
        return Cow::Borrowed(&job.path);
    }
    let mut path = job.path.clone();
    let rtt_ms = |farther: &f64| path.rtt_ms + farther;
    path.origin_rtt_ms = page.farther_ms.iter().map(rtt_ms).collect();
    Cow::Owned(path)
}

impl Load<'_> {
    fn run(&mut self) {
        self.obey();
        while !self.loader.is_done() {
            let packet = self.network.next_event();
            let timer = self.timers.peek().map(|Reverse((at, _))| *at);
            let loader = self.loader.next_timeout();
            let Some(at) = [packet, timer, loader].into_iter().flatten().min() else {
                break;
            };
            self.now = self.now.max(at);
            if packet == Some(at) {
                self.deliver();
            } else if timer == Some(at) {
                self.fire();
            } else {
                self.loader.handle_timeout(self.now);
            }
            self.obey();
        }
    }

    /// Does what the loader asks for.
    fn obey(&mut self) {
        while let Some(command) = self.loader.poll() {
            match command {
                Command::Open { conn, origin } => self.open(conn, origin),
                Command::Send { conn, request } => self.send(conn, request),
                Command::Close { conn } => self.close(conn),
            }
        }
    }

    fn open(&mut self, conn: ConnId, origin: usize) {
        let host = self.site.page.hosts[origin];
        let option = match (self.job.mode, self.cookies[host]) {
            (Mode::Tcp, _) => FastOpen::Absent,
            (Mode::Tfo, Some(cookie)) => cookie,
            (Mode::Tfo, None) => FastOpen::Request,
        };
        let mut client_socket = Socket::client(conn.0, self.settings);
        let client = Client::open(conn, self.now, option, &mut client_socket);
        let is_deferred = client.is_deferred();
        self.connections.push(Connection {
            host,
            client,
            client_socket,
            server: Server::default(),
            server_socket: None,
            entry: Entry::default(),
            number: None,
            is_pending: false,
            armed: None,
        });
        if is_deferred {
            self.loader.handle(self.now, Event::Writable(conn));
        }
        self.flush(conn.0);
    }

    fn send(&mut self, conn: ConnId, request: usize) {
        let connection = &mut self.connections[conn.0 as usize];
        let bytes = self.site.page.resources[request].request_bytes;
        connection.server.expect(request, bytes);
        let is_sent = connection
            .client
            .send(self.now, request, &self.site, &mut connection.client_socket);
        if is_sent {
            self.loader.handle(self.now, Event::RequestSent(conn));
        }
        self.flush(conn.0);
    }

    fn close(&mut self, conn: ConnId) {
        let connection = &mut self.connections[conn.0 as usize];
        connection.client.is_closed = true;
        connection.client_socket.close(self.now);
        self.flush(conn.0);
    }

    /// A packet reaches an end.
    fn deliver(&mut self) {
        let Some((_, direction, number)) = self.network.deliver(self.now) else {
            return;
        };
        let segment = self.segments[number as usize];
        self.free.push(number);
        self.trace.arrived(self.now, &segment);
        match direction {
            Direction::Up => self.at_server(&segment),
            Direction::Down => self.at_client(&segment),
        }
        self.flush(segment.conn);
    }

    fn at_client(&mut self, segment: &Segment) {
        let connection = &mut self.connections[segment.conn as usize];
        connection.entry.arrived(self.now, segment);
        connection.client_socket.handle(self.now, segment);
        if segment.syn && connection.client_socket.fast_open().granted {
            self.cookies[connection.host] = Some(FastOpen::Cookie);
        }
        self.look(segment.conn);
    }

    fn at_server(&mut self, segment: &Segment) {
        let connection = &mut self.connections[segment.conn as usize];
        let socket = match &mut connection.server_socket {
            Some(socket) => {
                socket.handle(self.now, segment);
                socket
            }
            None if segment.syn => {
                let has_room = self.pending[connection.host] < self.job.fast_open_backlog;
                let takes = segment.fast_open == FastOpen::Cookie && has_room;
                let grants = matches!(segment.fast_open, FastOpen::Request | FastOpen::Stale);
                connection.is_pending = takes;
                self.pending[connection.host] += u32::from(takes);
                connection.server_socket.insert(Socket::accept(
                    self.now,
                    segment,
                    takes,
                    grants,
                    self.settings,
                ))
            }
            None => return,
        };
        if connection.is_pending && (socket.is_established() || socket.is_dead()) {
            connection.is_pending = false;
            self.pending[connection.host] -= 1;
        }
        connection.server.read(self.now, socket, &self.site);
    }

    /// Lets the client see what happened to its socket.
    fn look(&mut self, conn: u32) {
        let connection = &mut self.connections[conn as usize];
        if !connection.client.is_closed {
            connection.client.look(
                self.now,
                &self.site,
                &mut connection.client_socket,
                &mut self.loader,
                &mut self.wire_bytes,
            );
        }
    }

    /// A timer of a connection is due.
    fn fire(&mut self) {
        let Some(Reverse((at, conn))) = self.timers.pop() else {
            return;
        };
        let connection = &mut self.connections[conn as usize];
        if connection.armed != Some(at) {
            return;
        }
        connection.armed = None;
        connection.client_socket.handle_timeout(self.now);
        if let Some(socket) = &mut connection.server_socket {
            socket.handle_timeout(self.now);
            connection.server.answer(self.now, socket, &self.site);
        }
        self.look(conn);
        self.flush(conn);
    }

    /// Puts what both ends of a connection have to send on the path, and sets its timer.
    fn flush(&mut self, conn: u32) {
        while let Some(segment) = self.connections[conn as usize].client_socket.poll() {
            self.transmit(&segment);
        }
        while let Some(socket) = &mut self.connections[conn as usize].server_socket
            && let Some(segment) = socket.poll()
        {
            self.transmit(&segment);
        }
        self.arm(conn);
    }

    fn transmit(&mut self, segment: &Segment) {
        let connection = &mut self.connections[segment.conn as usize];
        connection.entry.sent(self.now, segment);
        self.packets += 1;
        self.trace.sent(self.now, segment);
        let opening = *connection.number.get_or_insert(self.opened);
        self.opened = self.opened.max(opening + 1);
        let header = segment.header(connection.host, opening);
        if self.network.meet(&header) == Some(Action::Drop) {
            return self.trace.dropped(self.now, segment, Dropped::Taken);
        }
        let number = self.free.pop().unwrap_or(self.segments.len() as u32);
        match self.segments.get_mut(number as usize) {
            Some(slot) => *slot = *segment,
            None => self.segments.push(*segment),
        }
        let bytes = segment.packet_bytes();
        let dropped = self
            .network
            .send(self.now, header.direction, header.origin, bytes, number);
        if let Some(dropped) = dropped {
            self.free.push(number);
            self.trace.dropped(self.now, segment, dropped);
        }
    }

    fn arm(&mut self, conn: u32) {
        let connection = &mut self.connections[conn as usize];
        let due = [
            connection.client_socket.next_timeout(),
            connection.server_socket.as_ref().and_then(Socket::next_timeout),
            connection.server.next_timeout(),
        ];
        if let Some(at) = due.into_iter().flatten().min()
            && connection.armed.is_none_or(|armed| at < armed)
        {
            connection.armed = Some(at);
            self.timers.push(Reverse((at, conn)));
        }
    }

    fn finish(mut self) -> Loaded {
        for conn in 0..self.connections.len() {
            if !self.connections[conn].client.is_closed {
                self.close(ConnId(conn as u32));
            }
        }
        Loaded {
            record: self.loader.finish(self.now),
            ledger: self
                .connections
                .into_iter()
                .map(|connection| connection.entry)
                .collect(),
            wire_bytes: self.wire_bytes,
            packets: self.packets,
            drops: self.network.drops(),
            trace: self.trace,
        }
    }
}
