//! One load on the virtual clock: the loader, its connections, the path between them, and the event queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use firstflight_load::ledger::{self, Cookie, EcnBits, Entry};
use firstflight_load::record::Carried;
use firstflight_load::{Cookies, promise};
use firstflight_loader::{Command, ConnId, ConnectionRecord, Event, LoadRecord, Loader, NANOS_PER_MS};
use firstflight_path::{
    Action, Direction, Dropped, Ecn, Flow, Header, Hello, Nanos, Network, Packet, PathError, Protocol,
    Purpose, Stream, TcpFlags,
};
use firstflight_tcp::{FastOpen, Segment, Settings, Ticks, earlier};

use crate::client::Browser;
use crate::connection::Connection;
use crate::host::{Host, Keys, primed};
use crate::job::Job;
use crate::page::{Context, SimPage};
use crate::quic::{Quic, packet_bytes};
use crate::tls::Sessions;
use crate::trace::Trace;
use crate::what_if::Since;

/// Navigation start. Not 0, so that no timestamp is 0.
pub(crate) const START: Nanos = 1_000 * NANOS_PER_MS;

/// A finished load.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) record: LoadRecord,
    /// By connection; `None` if the SYN was never sent.
    pub(crate) ledger: Vec<Option<Entry>>,
    /// By connection; `None` if no SYN has reached the server.
    pub(crate) servers: Vec<Option<promise::Server>>,
    /// By connection.
    pub(crate) clients: Vec<promise::Client>,
    pub(crate) wire_bytes: Vec<u64>,
    pub(crate) carried: Carried,
    pub(crate) trace: Trace,
}

impl Loaded {
    /// The connections that sent a packet.
    pub(crate) fn used(&self) -> impl Iterator<Item = (&ConnectionRecord, &Entry)> {
        let connections = self.record.connections.iter().zip(&self.ledger);
        connections.filter_map(|(connection, entry)| Some((connection, entry.as_ref()?)))
    }
}

#[derive(Debug)]
struct Load<'a> {
    context: Context<'a>,
    browser: Browser,
    network: Network<Cargo>,
    /// Segments on their way, by the number that the network carries, and the free numbers.
    segments: Vec<Segment>,
    free: Vec<u32>,
    /// The same for datagrams.
    datagrams: Vec<Datagram>,
    free_datagrams: Vec<u32>,
    /// The datagram that was polled last.
    datagram: Vec<u8>,
    connections: Vec<Carrier>,
    /// QUIC connections that may have something to send.
    unflushed: Vec<u32>,
    /// Number of connections that have sent a SYN.
    opened: u32,
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    hosts: Vec<Host>,
    packets: u64,
    trace: Trace,
}

/// What a packet on the path contains.
#[derive(Debug, Clone, Copy)]
enum Cargo {
    Segment(u32),
    Datagram(u32),
}

/// A datagram on its way.
#[derive(Debug)]
struct Datagram {
    conn: u32,
    ecn: Ecn,
    payload: Vec<u8>,
}

/// A connection.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most loads have only the large one, and many of it"
)]
enum Carrier {
    Tcp(Connection),
    Quic(Box<Quic>),
}

impl Carrier {
    fn is_closed(&self) -> bool {
        match self {
            Self::Tcp(connection) => connection.is_closed(),
            Self::Quic(quic) => quic.is_closed,
        }
    }

    fn entry(&self) -> Option<Entry> {
        match self {
            Self::Tcp(connection) => connection.entry(),
            Self::Quic(quic) => quic.entry.clone(),
        }
    }

    fn server(&self) -> Option<promise::Server> {
        match self {
            Self::Tcp(connection) => connection.server(),
            Self::Quic(quic) => quic.server(),
        }
    }

    fn client(&self) -> promise::Client {
        match self {
            Self::Tcp(connection) => connection.client(),
            Self::Quic(quic) => quic.client(),
        }
    }
}

/// Loads `page` once, with the settings of `job`.
pub(crate) fn load(page: &SimPage, job: &Job) -> Result<Loaded, PathError> {
    let mut load = begin(page, job)?;
    if job.what_if.negative_cache == Some(Since::Visit) {
        load.remember(&visited(page, job)?);
    }
    load.run();
    Ok(load.finish())
}

/// The hosts after an earlier visit, over the same path without loss.
fn visited(page: &SimPage, job: &Job) -> Result<Vec<Host>, PathError> {
    let mut earlier = job.clone();
    (earlier.load.path.loss, earlier.load.path.burst) = (0.0, None);
    let mut load = begin(page, &earlier)?;
    load.run();
    Ok(load.hosts)
}

fn begin<'a>(page: &'a SimPage, job: &'a Job) -> Result<Load<'a>, PathError> {
    Ok(Load {
        context: Context {
            now: START,
            page,
            job,
            settings: Settings {
                ip: job.load.ip,
                algorithm: job.congestion_control.over_tcp(),
                initial_window: job.initial_window,
                ecn: job.load.path.ecn,
                ticks: ticks(job.load.path.seed),
                more_syn_segments: job.what_if.more_syn_segments,
                ..Settings::default()
            },
        },
        browser: Browser {
            loader: Loader::with_plan(Arc::clone(&page.plan), job.load.config(), START),
            wire_bytes: vec![0; page.resources.len()],
        },
        network: Network::new(&job.load.path_to_hosts(page.farther_ms.iter().copied()))?,
        segments: Vec::new(),
        free: Vec::new(),
        datagrams: Vec::new(),
        free_datagrams: Vec::new(),
        datagram: Vec::new(),
        connections: Vec::with_capacity(page.resources.len()),
        unflushed: Vec::new(),
        opened: 0,
        timers: BinaryHeap::new(),
        hosts: hosts(page, job),
        packets: 0,
        trace: Trace::new(job),
    })
}

/// A random phase of the kernel's tick and timer wheel: a load in the lab does not start on a tick.
fn ticks(seed: u64) -> Ticks {
    Ticks::new(Stream::new(seed, Purpose::TimerWheel, &[]).next_below(Ticks::ROUND))
}

/// Every host after priming.
fn hosts(page: &SimPage, job: &Job) -> Vec<Host> {
    let what_if = &job.what_if;
    let cookies = what_if.cookies(job.load.cookies);
    let host = |host| {
        let server = one_of(cookies, job, Purpose::PrimingServer, &[host as u64]);
        let cookie = primed(cookies, job.load.path.seed, host, server);
        let known = match cookies.of_host(host, job.load.path.seed) {
            _ if !job.load.mode.has_sessions() => Sessions::default(),
            Cookies::Cold | Cookies::Expired => Sessions::default(),
            state => Sessions::all(state != Cookies::Stale),
        };
        let (sessions, quic_sessions) = if job.load.mode.is_quic() {
            (Sessions::default(), known)
        } else {
            (known, Sessions::default())
        };
        Host {
            cookie,
            spare_cookies: cookie.and(what_if.one_time_cookies).unwrap_or_default(),
            sessions: what_if.early_data.map_or(sessions, |_| Sessions::all(true)),
            quic_sessions,
            ..Host::default()
        }
    };
    (0..page.farther_ms.len()).map(host).collect()
}

/// Draws one of the servers behind an address.
fn one_of(cookies: Cookies, job: &Job, purpose: Purpose, indices: &[u64]) -> u32 {
    match cookies.servers() {
        1 => 0,
        servers => Stream::new(job.load.path.seed, purpose, indices).next_below(u64::from(servers)) as u32,
    }
}

impl Load<'_> {
    /// Copies what the client remembers of an earlier visit: the hosts where Fast Open failed.
    fn remember(&mut self, visited: &[Host]) {
        for (host, before) in self.hosts.iter_mut().zip(visited) {
            host.is_avoided = before.is_avoided;
        }
    }

    fn run(&mut self) {
        self.carry_out();
        while !self.browser.loader.is_done() {
            let packet = self.network.next_event();
            let timer = self.timers.peek().map(|Reverse((at, _))| *at);
            let loader = self.browser.loader.next_timeout();
            let Some(at) = earlier(earlier(packet, timer), loader) else {
                break;
            };
            self.context.now = self.context.now.max(at);
            if packet == Some(at) {
                self.deliver();
            } else if timer == Some(at) {
                self.fire();
            } else {
                self.browser.loader.handle_timeout(self.context.now);
            }
            self.carry_out();
        }
    }

    /// Carries out the loader's commands.
    fn carry_out(&mut self) {
        while let Some(command) = self.browser.loader.poll() {
            match command {
                Command::Open { conn, origin, quic } => self.open(conn, origin, quic),
                Command::Send { conn, request } => self.send(conn, request),
                Command::Close { conn } => self.close(conn),
            }
        }
        // All that an end sends at one moment shares its datagrams.
        let mut unflushed = std::mem::take(&mut self.unflushed);
        for conn in unflushed.drain(..) {
            self.flush(conn);
        }
        // Flushing adds no connection to the list; the next event needs its memory again.
        self.unflushed = unflushed;
    }

    fn open(&mut self, conn: ConnId, origin: usize, quic: bool) {
        let context = self.context;
        let number = context.page.hosts[origin];
        let host = &mut self.hosts[number];
        if quic && let Some(name) = context.secure_host(origin) {
            let quic = Quic::open(context, conn, origin, name, host);
            let awaits_request = quic.awaits_request();
            self.connections.push(Carrier::Quic(Box::new(quic)));
            if awaits_request {
                self.browser
                    .loader
                    .handle(self.context.now, Event::Writable(conn));
            }
            return self.will_flush(conn.0);
        }
        let cookies = context.job.what_if.cookies(context.job.load.cookies);
        let indices = [number as u64, host.connections];
        host.connections += 1;
        let keys = Keys::of(cookies, one_of(cookies, context.job, Purpose::Server, &indices));
        let connection = Connection::open(context, conn, origin, host, keys);
        let is_deferred = connection.is_deferred();
        self.connections.push(Carrier::Tcp(connection));
        if is_deferred {
            self.browser
                .loader
                .handle(self.context.now, Event::Writable(conn));
        }
        self.flush(conn.0);
    }

    fn send(&mut self, conn: ConnId, request: usize) {
        match &mut self.connections[conn.0 as usize] {
            Carrier::Tcp(connection) => {
                if connection.send(self.context, request) {
                    let sent = Event::RequestSent { conn, request };
                    self.browser.loader.handle(self.context.now, sent);
                }
                self.flush(conn.0);
            }
            Carrier::Quic(quic) => {
                quic.send(self.context, request, &mut self.browser);
                self.will_flush(conn.0);
            }
        }
    }

    fn close(&mut self, conn: ConnId) {
        match &mut self.connections[conn.0 as usize] {
            Carrier::Tcp(connection) => {
                let host = &mut self.hosts[connection.host];
                connection.close(self.context, host);
            }
            Carrier::Quic(quic) => quic.close(self.context.now),
        }
        self.flush(conn.0);
    }

    /// A packet reaches an end.
    fn deliver(&mut self) {
        let arrival = self.network.arrive(self.context.now);
        self.note_drops();
        let Some(arrival) = arrival else {
            return;
        };
        let direction = arrival.direction;
        let number = match arrival.payload {
            Cargo::Segment(number) => number,
            Cargo::Datagram(number) => return self.deliver_datagram(direction, number, arrival.is_marked),
        };
        let mut segment = self.segments[number as usize];
        if arrival.is_marked {
            segment.ecn = Ecn::Marked;
        }
        // Keep the segment if a copy of it may follow.
        if self.context.job.load.path.duplicate == 0.0 {
            self.free.push(number);
        }
        self.trace.arrived(self.context.now, &segment);
        let Carrier::Tcp(connection) = &mut self.connections[segment.conn as usize] else {
            return;
        };
        let host = &mut self.hosts[connection.host];
        match direction {
            Direction::Up => connection.at_server(self.context, &segment, host),
            Direction::Down => {
                connection.at_client(self.context, &segment, host);
                connection.tell(self.context, &mut self.browser, host);
            }
        }
        self.flush(segment.conn);
    }

    /// A datagram reaches an end.
    fn deliver_datagram(&mut self, direction: Direction, number: u32, is_marked: bool) {
        let datagram = &mut self.datagrams[number as usize];
        let conn = datagram.conn;
        let ecn = if is_marked { Ecn::Marked } else { datagram.ecn };
        let payload = std::mem::take(&mut datagram.payload);
        self.trace
            .datagram_arrived(self.context.now, direction, conn, &payload);
        if let Carrier::Quic(quic) = &mut self.connections[conn as usize] {
            let host = &mut self.hosts[quic.host];
            quic.arrive(self.context, direction, (&payload, ecn), host, &mut self.browser);
        }
        self.datagrams[number as usize].payload = payload;
        // Keep the datagram if a copy of it may follow.
        if self.context.job.load.path.duplicate == 0.0 {
            self.free_datagrams.push(number);
        }
        self.will_flush(conn);
    }

    /// A timer of a connection is due.
    fn fire(&mut self) {
        let Some(Reverse((at, conn))) = self.timers.pop() else {
            return;
        };
        match &mut self.connections[conn as usize] {
            Carrier::Tcp(connection) => {
                let host = &mut self.hosts[connection.host];
                if !connection.fire(self.context, at, host) {
                    return;
                }
                connection.tell(self.context, &mut self.browser, host);
            }
            Carrier::Quic(quic) => {
                if quic.fire(self.context, at, &mut self.browser) {
                    self.will_flush(conn);
                }
                return;
            }
        }
        self.flush(conn);
    }

    /// Flushes a QUIC connection after all other events of this moment.
    fn will_flush(&mut self, conn: u32) {
        if !self.unflushed.contains(&conn) {
            self.unflushed.push(conn);
        }
    }

    /// Puts on the path what both ends of a connection send, and sets its timer.
    fn flush(&mut self, conn: u32) {
        while let Carrier::Tcp(connection) = &mut self.connections[conn as usize]
            && let Some(segment) = connection.poll()
        {
            self.transmit(&segment);
        }
        for direction in [Direction::Up, Direction::Down] {
            while let Carrier::Quic(quic) = &mut self.connections[conn as usize]
                && let Some(ecn) = quic.poll(self.context.now, direction, &mut self.datagram)
            {
                self.transmit_datagram(conn, direction, ecn);
            }
        }
        let armed = match &mut self.connections[conn as usize] {
            Carrier::Tcp(connection) => connection.arm(),
            Carrier::Quic(quic) => quic.arm(),
        };
        if let Some(at) = armed {
            self.timers.push(Reverse((at, conn)));
        }
    }

    /// Puts the datagram that was polled last on the path.
    fn transmit_datagram(&mut self, conn: u32, direction: Direction, ecn: Ecn) {
        let Carrier::Quic(quic) = &mut self.connections[conn as usize] else {
            return;
        };
        let now = self.context.now;
        let ecn = if self.context.job.load.path.ecn {
            ecn
        } else {
            Ecn::NotCapable
        };
        let bytes = packet_bytes(self.context, &self.datagram);
        let entry = quic.entry.get_or_insert_with(|| Entry::over_udp(now));
        entry.datagram_sent(direction, bytes, &self.datagram, ecn);
        self.packets += 1;
        self.trace.datagram_sent(now, direction, conn, &self.datagram);
        let (opening, flow) = *quic.number.get_or_insert_with(|| {
            let opening = self.opened;
            self.opened += 1;
            (opening, self.network.open(Protocol::Udp, quic.host))
        });
        let header = Header::of_datagram(direction, quic.host, opening, self.datagram.len() as u32);
        let action = self.network.meet(now, &header);
        if let Some(action) = action {
            entry.interfered.get_or_insert(action);
            return self
                .trace
                .datagram_dropped(now, direction, conn, &self.datagram, Dropped::Taken);
        }
        let number = self.free_datagrams.pop().unwrap_or_else(|| {
            let payload = Vec::new();
            self.datagrams.push(Datagram { conn, ecn, payload });
            self.datagrams.len() as u32 - 1
        });
        let slot = &mut self.datagrams[number as usize];
        (slot.conn, slot.ecn) = (conn, ecn);
        std::mem::swap(&mut slot.payload, &mut self.datagram);
        let packet = Packet { bytes, ecn };
        self.network
            .carry(now, direction, flow, packet, Cargo::Datagram(number));
        self.note_drops();
    }

    fn transmit(&mut self, segment: &Segment) {
        let Carrier::Tcp(connection) = &mut self.connections[segment.conn as usize] else {
            return;
        };
        let seen = seen(segment);
        let entry = connection
            .entry
            .get_or_insert_with(|| Entry::new(self.context.now, &seen));
        entry.sent(self.context.now, &seen);
        self.packets += 1;
        self.trace.sent(self.context.now, segment);
        let (opening, flow) = *connection.number.get_or_insert_with(|| {
            let opening = self.opened;
            self.opened += 1;
            (opening, self.network.open(Protocol::Tcp, connection.host))
        });
        let has_heard = entry.has_heard();
        let header = Header {
            protocol: Protocol::Tcp,
            direction: seen.direction,
            origin: connection.host,
            connection: opening,
            flags: seen.flags,
            payload_bytes: seen.payload_bytes,
            fast_open: seen.option != Cookie::None,
            takes_syn_data: entry.is_taken_by(&seen),
            hello: if has_heard {
                Hello::default()
            } else {
                connection
                    .tls
                    .as_deref()
                    .map_or(Hello::default(), |tls| tls.hello_in(segment))
            },
        };
        let action = self.network.meet(self.context.now, &header);
        entry.interfered = entry.interfered.or(action);
        if matches!(action, Some(Action::Drop | Action::Reset)) {
            self.trace.dropped(self.context.now, segment, Dropped::Taken);
        }
        let bytes = seen.packet_bytes;
        match action {
            None => self.carry(segment, flow, bytes),
            Some(Action::Drop) => {}
            Some(Action::StripOption) => {
                let fast_open = FastOpen::Absent;
                self.carry(
                    &Segment {
                        fast_open,
                        ..*segment
                    },
                    flow,
                    bytes,
                );
            }
            Some(Action::StripData) => self.carry(&Segment { len: 0, ..*segment }, flow, bytes),
            Some(Action::Reset) => {
                let reset = segment.reset();
                self.carry(&reset, flow, reset.packet_bytes());
            }
            Some(Action::Duplicate) => {
                self.carry(segment, flow, bytes);
                self.carry(segment, flow, 0);
            }
        }
    }

    /// Puts a segment of `flow` on the path, as a packet of `bytes`.
    fn carry(&mut self, segment: &Segment, flow: Flow, bytes: u32) {
        let number = self.free.pop().unwrap_or(self.segments.len() as u32);
        match self.segments.get_mut(number as usize) {
            Some(slot) => *slot = *segment,
            None => self.segments.push(*segment),
        }
        let ecn = segment.ecn;
        let packet = Packet { bytes, ecn };
        self.network.carry(
            self.context.now,
            direction(segment),
            flow,
            packet,
            Cargo::Segment(number),
        );
        self.note_drops();
    }

    /// Frees the packets that the path has dropped, and enters them into the ledger.
    fn note_drops(&mut self) {
        while let Some(drop) = self.network.next_drop() {
            match drop.payload {
                Cargo::Segment(number) => {
                    self.free.push(number);
                    let segment = &self.segments[number as usize];
                    self.trace.dropped(drop.at, segment, drop.why);
                }
                Cargo::Datagram(number) => {
                    self.free_datagrams.push(number);
                    let Datagram { conn, payload, .. } = &self.datagrams[number as usize];
                    if let Carrier::Quic(quic) = &mut self.connections[*conn as usize]
                        && let Some(entry) = &mut quic.entry
                    {
                        entry.datagram_dropped(drop.direction);
                    }
                    self.trace
                        .datagram_dropped(drop.at, drop.direction, *conn, payload, drop.why);
                }
            }
        }
    }

    fn finish(mut self) -> Loaded {
        for conn in 0..self.connections.len() {
            if !self.connections[conn].is_closed() {
                self.close(ConnId(conn as u32));
            }
            if let Carrier::Tcp(connection) = &mut self.connections[conn] {
                connection.hang_up(self.context.now);
            }
            self.flush(conn as u32);
        }
        Loaded {
            record: self.browser.loader.finish(self.context.now),
            servers: self.connections.iter().map(Carrier::server).collect(),
            clients: self.connections.iter().map(Carrier::client).collect(),
            ledger: self.connections.iter().map(Carrier::entry).collect(),
            wire_bytes: self.browser.wire_bytes,
            carried: Carried::new(
                self.packets,
                self.network.drops(),
                self.network.duplicated(),
                self.network.marked(),
            ),
            trace: self.trace,
        }
    }
}

/// The direction of a segment.
pub(crate) fn direction(segment: &Segment) -> Direction {
    if segment.up {
        Direction::Up
    } else {
        Direction::Down
    }
}

/// The fields of a segment that the ledger and the path read.
pub(crate) fn seen(segment: &Segment) -> ledger::Segment {
    let (option, cookie) = match segment.fast_open {
        FastOpen::Absent => (Cookie::None, 0),
        FastOpen::Request => (Cookie::Requested, 0),
        FastOpen::Cookie(key) => (Cookie::Sent, u128::from(key) + 1),
    };
    ledger::Segment {
        direction: direction(segment),
        flags: TcpFlags {
            syn: segment.syn,
            ack: segment.ack,
            fin: segment.fin,
            rst: segment.rst,
        },
        // Sequence numbers of the ledger wrap.
        sequence: segment.seq as u32,
        acknowledgment: segment.ack_no as u32,
        payload_bytes: segment.len,
        packet_bytes: segment.packet_bytes(),
        option,
        cookie,
        ecn: EcnBits {
            ip: segment.ecn,
            ece: segment.ece,
            cwr: segment.cwr,
        },
        window: segment.window as u32,
    }
}
