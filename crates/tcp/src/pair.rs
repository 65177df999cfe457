//! Two sockets on a virtual clock, over a link that the caller makes up.
//!
//! [`Pair`] steps a client and a server from event to event (an arrival, a timer, an application's turn), lets a
//! [`Link`] decide when, how often and whether each packet arrives, and keeps a trace of every packet sent.
//! [`Flow`] says what the two applications want of the connection, [`Script`] what happens to the k-th packet of
//! each direction. Times are nanoseconds since the client's SYN. The model of the quinn project's `tests/util.rs`.
//!
//! Packet 3 down is lost, and comes again a round trip after it was sent:
//!
//! ```
//! use firstflight_path::Direction::Down;
//! use firstflight_tcp::pair::{Delay, Exchange, Fault, Flow, MS, Pair, Script};
//!
//! let flow = Flow { exchanges: vec![Exchange::new(300, 10 * 1_448)], ..Flow::default() };
//! let mut pair = Pair::new(flow, Script::new(Delay(50 * MS)).with(Down, 3, Fault::Lost));
//! assert_eq!(pair.run(), Some(300 * MS), "the handshake, the exchange, and a round trip for the repair");
//!
//! let down: Vec<_> = pair.trace().iter().filter(|sent| sent.direction == Down).collect();
//! let (lost, again) = (down[2], down[12]);
//! assert!(lost.arrivals.is_empty());
//! assert_eq!(again.segment.seq, lost.segment.seq);
//! assert_eq!(again.at, lost.at + 100 * MS);
//! ```
//!
//! Left out: more than one connection, applications that read late.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fmt;

use firstflight_path::{Direction, Ecn, Nanos};

use crate::{Answer, Early, FastOpen, Key, Segment, Settings, Socket, Ticks};

pub use crate::time::MS;

/// What the sockets' clocks show at time 0 by default. Not 0, because a timestamp of 0 means none; the timer wheel
/// stands as at 0.
const EPOCH: Nanos = Ticks::ROUND;

/// What the applications at both ends do.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// Settings of the client's TCP.
    pub client: Settings,
    /// Settings of the server's TCP.
    pub server: Settings,
    /// The Fast Open option of the client's SYN. With a cookie the SYN also carries the first request.
    pub fast_open: FastOpen,
    /// The key of the server's cookies; `None` for a server without Fast Open.
    pub server_key: Option<Key>,
    /// Requests and their responses, one after the other.
    pub exchanges: Vec<Exchange>,
    /// Which end closes the connection after the last exchange.
    pub closes: Closes,
    /// Whether the applications are event loops, which poll their sockets, instead of blocking threads.
    pub polls: bool,
}

/// A request and its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exchange {
    /// Bytes that the client writes.
    pub request: u64,
    /// Bytes that the server answers with.
    pub response: u64,
    /// Time of the server from the request's last byte to the response.
    pub server_time: Nanos,
    /// Pause of the client between the end of the last response and this request.
    pub pause: Nanos,
}

impl Exchange {
    /// An exchange without server time and pause.
    pub fn new(request: u64, response: u64) -> Self {
        Self {
            request,
            response,
            ..Self::default()
        }
    }
}

/// Which end closes the connection first. The other end follows as soon as it has read the FIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Closes {
    /// Neither end: the connection stays open.
    #[default]
    Nobody,
    /// The client, after the last response.
    Client,
    /// The server, directly after its last response.
    Server,
}

/// A packet to be carried by a link.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// Its direction.
    pub direction: Direction,
    /// Its number among those of its direction, from 1.
    pub number: usize,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Its contents.
    pub segment: &'a Segment,
}

/// The fate of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fate {
    /// Its arrival times: none, one, or several.
    pub arrivals: Vec<Nanos>,
    /// Whether it was marked on its way (CE).
    pub is_marked: bool,
    /// A replacement for the window that it offers.
    pub window: Option<u64>,
}

impl Fate {
    /// A lost packet.
    pub fn lost() -> Self {
        Self::default()
    }

    /// A packet that arrives once.
    pub fn arrives(at: Nanos) -> Self {
        Self {
            arrivals: vec![at],
            ..Self::default()
        }
    }
}

/// The link between the two sockets. A closure with the same signature is a link.
pub trait Link {
    /// Carries a packet that is sent at `now`. Calls never go back in time.
    fn carry(&mut self, now: Nanos, packet: &Packet<'_>) -> Fate;
}

impl<F: FnMut(Nanos, &Packet<'_>) -> Fate> Link for F {
    fn carry(&mut self, now: Nanos, packet: &Packet<'_>) -> Fate {
        self(now, packet)
    }
}

/// A link that only delays packets, by this time one way.
#[derive(Debug, Clone, Copy)]
pub struct Delay(pub Nanos);

impl Link for Delay {
    fn carry(&mut self, now: Nanos, _: &Packet<'_>) -> Fate {
        Fate::arrives(now + self.0)
    }
}

/// What a [`Script`] does to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It never reaches the link.
    Lost,
    /// It arrives this much later.
    Delayed(Nanos),
    /// It arrives, and a copy of it this much later.
    Duplicated(Nanos),
    /// It arrives marked CE.
    Marked,
}

/// A link with faults for single packets.
#[derive(Debug, Clone)]
pub struct Script<L> {
    link: L,
    faults: HashMap<(Direction, usize), Fault>,
}

impl<L: Link> Script<L> {
    /// A link without faults, except those of `link`.
    pub fn new(link: L) -> Self {
        Self {
            link,
            faults: HashMap::new(),
        }
    }

    /// Adds a fault for packet `number` of a direction, counted from 1.
    #[must_use]
    pub fn with(mut self, direction: Direction, number: usize, fault: Fault) -> Self {
        self.faults.insert((direction, number), fault);
        self
    }
}

impl<L: Link> Link for Script<L> {
    fn carry(&mut self, now: Nanos, packet: &Packet<'_>) -> Fate {
        let fault = self.faults.get(&(packet.direction, packet.number));
        if fault == Some(&Fault::Lost) {
            return Fate::lost();
        }
        let mut fate = self.link.carry(now, packet);
        match fault {
            Some(Fault::Delayed(by)) => fate.arrivals.iter_mut().for_each(|at| *at += by),
            Some(Fault::Duplicated(by)) => fate.arrivals.extend(fate.arrivals.last().map(|at| at + by)),
            Some(Fault::Marked) => fate.is_marked = true,
            Some(Fault::Lost) | None => {}
        }
        fate
    }
}

/// A packet as a capture at its sender shows it, printed in tcpdump's format.
#[derive(Debug, Clone)]
pub struct Sent {
    /// When it was sent.
    pub at: Nanos,
    /// Its direction.
    pub direction: Direction,
    /// Its number among those of its direction, from 1.
    pub number: usize,
    /// Its contents: flags, sequence numbers, SACK blocks, options, ECN bits.
    pub segment: Segment,
    /// Its arrival times; empty if it was lost.
    pub arrivals: Vec<Nanos>,
    /// Whether it is marked on its way.
    pub is_marked: bool,
    /// A replacement for the window that it offers.
    pub window: Option<u64>,
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.at / 1_000;
        let (seconds, us) = (us / 1_000_000, us % 1_000_000);
        let ends = match self.direction {
            Direction::Up => "client > server",
            Direction::Down => "server > client",
        };
        let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(f, "{hours:02}:{minutes:02}:{seconds:02}.{us:06} {ends}: ")?;
        self.segment.fmt(f)
    }
}

/// A packet on its way: arrival time, index in the trace, and whether it was marked.
type InFlight = Reverse<(Nanos, usize, bool)>;

/// The state of an application.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Number of exchanges of which it has written its part.
    written: usize,
    /// Bytes that it has read, and bytes that it must have read before it writes again.
    read: u64,
    needs: u64,
    /// The time of its next write.
    due: Option<Nanos>,
    has_closed: bool,
}

/// Two sockets, their applications, and the link between them.
#[derive(Debug)]
pub struct Pair<L> {
    flow: Flow,
    link: L,
    client: Socket,
    server: Option<Socket>,
    /// What the sockets' clocks show at time 0.
    epoch: Nanos,
    now: Nanos,
    in_flight: BinaryHeap<InFlight>,
    trace: Vec<Sent>,
    /// Number of packets sent up, and down.
    counts: [usize; 2],
    /// The client's application, and the server's.
    progress: [Progress; 2],
    /// Bytes of the first request that did not fit into the SYN. They wait for the end of the handshake.
    behind_syn: u64,
    /// When the last new byte of data arrived.
    last_byte_at: Option<Nanos>,
    has_begun: bool,
}

impl<L: Link> Pair<L> {
    /// A client that has sent nothing yet, and a server that listens.
    pub fn new(flow: Flow, link: L) -> Self {
        Self {
            client: Socket::client(0, flow.client),
            flow,
            link,
            server: None,
            epoch: EPOCH,
            now: 0,
            in_flight: BinaryHeap::new(),
            trace: Vec::new(),
            counts: [0; 2],
            progress: [Progress::default(); 2],
            behind_syn: 0,
            last_byte_at: None,
            has_begun: false,
        }
    }

    /// The same with socket clocks that show `epoch` at time 0, as a kernel's did when its SYN left.
    #[must_use]
    pub fn starting_at(self, epoch: Nanos) -> Self {
        Self { epoch, ..self }
    }

    /// Runs until no packet is on its way and no timer is set. Returns when the last byte of the last response
    /// arrived; `None` if it did not.
    pub fn run(&mut self) -> Option<Nanos> {
        while self.step().is_some() {}
        self.is_done().then_some(self.last_byte_at).flatten()
    }

    /// Runs until time `until`, events at that time included.
    pub fn run_until(&mut self, until: Nanos) {
        while !self.has_begun || self.next_event().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Handles the next event. Returns its time; `None` if there is no event left.
    pub fn step(&mut self) -> Option<Nanos> {
        if !self.has_begun {
            self.has_begun = true;
            self.connect();
            self.transmit();
            return Some(self.now);
        }
        let at = self.next_event()?;
        self.now = self.now.max(at);
        if self.in_flight.peek().is_some_and(|Reverse((due, ..))| *due == at) {
            self.deliver();
        } else {
            let clock = self.now + self.epoch;
            self.client.handle_timeout(clock);
            if let Some(server) = &mut self.server {
                server.handle_timeout(clock);
            }
        }
        self.run_client();
        self.run_server();
        self.transmit();
        Some(self.now)
    }

    /// The time of the next event.
    pub fn next_event(&self) -> Option<Nanos> {
        let arrival = self.in_flight.peek().map(|Reverse((at, ..))| *at);
        let timers = [
            self.client.next_timeout(),
            self.server.as_ref().and_then(Socket::next_timeout),
        ];
        let timers = timers
            .into_iter()
            .flatten()
            .map(|at| at.saturating_sub(self.epoch));
        let turns = self.progress.iter().filter_map(|progress| progress.due);
        arrival.into_iter().chain(timers).chain(turns).min()
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Every packet sent so far, in order.
    pub fn trace(&self) -> &[Sent] {
        &self.trace
    }

    /// The packets sent in one direction, in order.
    pub fn sent(&self, direction: Direction) -> impl Iterator<Item = &Sent> {
        self.trace.iter().filter(move |sent| sent.direction == direction)
    }

    /// Bytes that the receiving end of `direction` has read.
    pub fn arrived(&self, direction: Direction) -> u64 {
        self.progress[usize::from(direction == Direction::Up)].read
    }

    /// Whether every request and response has arrived.
    pub fn is_done(&self) -> bool {
        let total = |part: fn(&Exchange) -> u64| self.flow.exchanges.iter().map(part).sum::<u64>();
        self.arrived(Direction::Up) == total(|exchange| exchange.request)
            && self.arrived(Direction::Down) == total(|exchange| exchange.response)
    }

    /// The client's socket.
    pub fn client(&self) -> &Socket {
        &self.client
    }

    /// The server's socket, once a first SYN has arrived.
    pub fn server(&self) -> Option<&Socket> {
        self.server.as_ref()
    }

    fn connect(&mut self) {
        let clock = self.now + self.epoch;
        let option = self.flow.fast_open;
        let first = self.flow.exchanges.first().copied().unwrap_or_default();
        if matches!(option, FastOpen::Cookie(_)) && first.request > 0 {
            let taken = self.client.connect_with_data(clock, option, first.request);
            self.progress[0] = Progress {
                written: 1,
                needs: first.response,
                ..Progress::default()
            };
            self.behind_syn = first.request - taken;
        } else {
            self.client.connect(clock, option);
        }
    }

    fn transmit(&mut self) {
        let (client, server) = (&mut self.client, &mut self.server);
        let mut next = || client.poll().or_else(|| server.as_mut()?.poll());
        while let Some(segment) = next() {
            let direction = if segment.up {
                Direction::Up
            } else {
                Direction::Down
            };
            let count = &mut self.counts[usize::from(!segment.up)];
            *count += 1;
            let packet = Packet {
                direction,
                number: *count,
                bytes: segment.packet_bytes(),
                segment: &segment,
            };
            let fate = self.link.carry(self.now, &packet);
            for at in &fate.arrivals {
                self.in_flight
                    .push(Reverse((*at, self.trace.len(), fate.is_marked)));
            }
            self.trace.push(Sent {
                at: self.now,
                direction,
                number: *count,
                segment,
                arrivals: fate.arrivals,
                is_marked: fate.is_marked,
                window: fate.window,
            });
        }
    }

    fn deliver(&mut self) {
        let Some(Reverse((_, index, is_marked))) = self.in_flight.pop() else {
            return;
        };
        let clock = self.now + self.epoch;
        let mut segment = self.trace[index].segment;
        if is_marked {
            segment.ecn = Ecn::Marked;
        }
        if let Some(window) = self.trace[index].window {
            segment.window = window;
        }
        match &mut self.server {
            _ if !segment.up => self.client.handle(clock, &segment),
            Some(server) => server.handle(clock, &segment),
            None if segment.syn => {
                let answer = self.answer(&segment);
                self.server = Some(Socket::accept(clock, &segment, answer, self.flow.server));
            }
            None => {}
        }
    }

    /// RFC 7413, section 4.1.2: a valid cookie lets the server accept data; any other option gets a cookie.
    fn answer(&self, syn: &Segment) -> Answer {
        let key = self.flow.server_key;
        let is_valid = key.is_some_and(|key| syn.fast_open == FastOpen::Cookie(key));
        Answer {
            early: is_valid.then_some(Early::WITHOUT_LIMIT),
            grants: key.filter(|_| !is_valid && syn.fast_open != FastOpen::Absent),
        }
    }

    /// The client's application: reads, writes the next request after the last response, and closes.
    fn run_client(&mut self) {
        let (now, clock) = (self.now, self.now + self.epoch);
        if self.flow.polls {
            self.client.ask_readiness();
        }
        let bytes = self.client.read_all(clock);
        let progress = &mut self.progress[0];
        if bytes > 0 {
            self.last_byte_at = Some(now);
            progress.read += bytes;
        }
        if !self.client.is_established() || progress.has_closed {
            progress.due = None;
            return;
        }
        if self.behind_syn > 0 {
            self.client.write(clock, std::mem::take(&mut self.behind_syn));
        }
        if progress.read >= progress.needs {
            if let Some(exchange) = self.flow.exchanges.get(progress.written) {
                let due = *progress.due.get_or_insert(now + exchange.pause);
                if due <= now {
                    progress.due = None;
                    progress.written += 1;
                    progress.needs += exchange.response;
                    self.client.write(clock, exchange.request);
                }
            } else if self.flow.closes == Closes::Client {
                progress.has_closed = true;
                self.client.close(clock);
            }
        }
        if self.client.is_at_end() && !self.progress[0].has_closed {
            self.progress[0].has_closed = true;
            self.client.close(clock);
        }
    }

    /// The server's application: reads, answers a request after its server time, and closes.
    fn run_server(&mut self) {
        let (now, clock) = (self.now, self.now + self.epoch);
        let Some(server) = &mut self.server else { return };
        if self.flow.polls {
            server.ask_readiness();
        }
        let bytes = server.read_all(clock);
        let progress = &mut self.progress[1];
        if bytes > 0 {
            self.last_byte_at = Some(now);
            progress.read += bytes;
        }
        // A request in the SYN can be read before the handshake ends.
        if server.is_dead() || !(server.is_established() || progress.read > 0) {
            progress.due = None;
            return;
        }
        while let Some(exchange) = self.flow.exchanges.get(progress.written) {
            if progress.read < progress.needs + exchange.request {
                break;
            }
            let due = *progress.due.get_or_insert(now + exchange.server_time);
            if due > now {
                break;
            }
            progress.due = None;
            progress.written += 1;
            progress.needs += exchange.request;
            server.write(clock, exchange.response);
        }
        let is_last = progress.written == self.flow.exchanges.len();
        if !progress.has_closed && ((is_last && self.flow.closes == Closes::Server) || server.is_at_end()) {
            progress.has_closed = true;
            server.shut_down(clock);
        }
    }
}

/// How this crate's tests write a connection down, after packetdrill: time in ms, direction, flags,
/// `first:last(length)`, acknowledgment, SACK blocks, options and ECN bits.
#[cfg(test)]
pub(crate) mod script {
    use std::fmt::Write as _;
    use std::ops::RangeBounds;

    use firstflight_path::{IpVersion, Queue};

    use super::*;

    /// One-way delay, round trip, and bytes of a full segment.
    pub(crate) const DELAY: Nanos = 50 * MS;
    pub(crate) const RTT: Nanos = 2 * DELAY;
    pub(crate) const FULL: u64 = crate::segment::mss(IpVersion::V4) as u64;
    pub(crate) const KEY: Key = 7;

    pub(crate) use Direction::{Down, Up};

    /// A flow over 50 ms each way, with faults.
    pub(crate) fn pair(flow: Flow, faults: &[(Direction, usize, Fault)]) -> Pair<Script<Delay>> {
        let clean = Script::new(Delay(DELAY));
        let script = faults.iter().fold(clean, |script, &(direction, number, fault)| {
            script.with(direction, number, fault)
        });
        Pair::new(flow, script)
    }

    /// As [`Delay`], with a bottleneck of `bps` and an unlimited queue in each direction.
    #[derive(Debug)]
    pub(crate) struct Bottleneck([firstflight_path::Link; 2]);

    impl Link for Bottleneck {
        fn carry(&mut self, now: Nanos, packet: &Packet<'_>) -> Fate {
            let wire = &mut self.0[usize::from(packet.direction == Down)];
            let departs = wire.transmit(now, packet.bytes);
            departs.map_or(Fate::lost(), |at| Fate::arrives(at + DELAY))
        }
    }

    /// As [`pair`], over a bottleneck.
    pub(crate) fn behind(
        bps: u64,
        flow: Flow,
        faults: &[(Direction, usize, Fault)],
    ) -> Pair<Script<Bottleneck>> {
        let wire = |seed| firstflight_path::Link::new(Some(bps), Queue::Unlimited, seed);
        let clean = Script::new(Bottleneck([wire(0), wire(1)]));
        let script = faults.iter().fold(clean, |script, &(direction, number, fault)| {
            script.with(direction, number, fault)
        });
        Pair::new(flow, script)
    }

    /// [`response`] of 1,000 bytes, after which one end closes.
    pub(crate) fn closed_by(closes: super::Closes) -> Flow {
        Flow {
            closes,
            ..response(1_000)
        }
    }

    /// A request of 300 bytes, and a response of `bytes`.
    pub(crate) fn response(bytes: u64) -> Flow {
        Flow {
            exchanges: vec![Exchange::new(300, bytes)],
            ..Flow::default()
        }
    }

    /// The state of the server's sender.
    pub(crate) fn server<L: Link>(pair: &Pair<L>) -> crate::Info {
        pair.server().expect("the SYN has arrived").info()
    }

    pub(crate) fn line(sent: &Sent) -> String {
        let segment = &sent.segment;
        let mut flags = String::new();
        for (is_set, letter) in [
            (segment.syn, 'S'),
            (segment.fin, 'F'),
            (segment.rst, 'R'),
            (segment.psh, 'P'),
            (segment.ece, 'E'),
            (segment.cwr, 'W'),
            (segment.ack, '.'),
        ] {
            if is_set {
                flags.push(letter);
            }
        }
        let (ms, us) = (sent.at / MS, sent.at % MS / 1_000);
        let fraction = if us > 0 {
            format!(".{us:03}")
        } else {
            String::new()
        };
        let way = if sent.direction == Up { "up" } else { "down" };
        let (seq, len) = (segment.seq, u64::from(segment.len));
        let mut line = format!("{ms}{fraction} {way} {flags} {seq}:{}({len})", seq + len);
        if segment.ack {
            let _ = write!(line, " ack {}", segment.ack_no);
        }
        for (index, (from, to)) in segment.sacks.all().iter().enumerate() {
            line += match (index, segment.sacks.duplicate) {
                (0, true) => " dsack",
                (0, false) | (1, true) => " sack",
                _ => "",
            };
            let _ = write!(line, " {from}:{to}");
        }
        line += match segment.fast_open {
            FastOpen::Absent => "",
            FastOpen::Request => " cookie?",
            FastOpen::Cookie(_) => " cookie",
        };
        line += match segment.ecn {
            Ecn::NotCapable => "",
            Ecn::Capable => " ect",
            Ecn::Marked => " ce",
        };
        line
    }

    /// Asserts that the packets sent within `ms` are those of `expected`, one per line.
    #[track_caller]
    pub(crate) fn assert_sent<'a>(
        sent: impl IntoIterator<Item = &'a Sent>,
        ms: impl RangeBounds<Nanos>,
        expected: &str,
    ) {
        let sent = sent.into_iter().filter(|sent| ms.contains(&(sent.at / MS)));
        let sent: Vec<_> = sent.map(line).collect();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected: Vec<_> = expected
            .lines()
            .map(words)
            .filter(|line| !line.is_empty())
            .collect();
        let (sent, expected) = (sent.join("\n"), expected.join("\n"));
        assert!(sent == expected, "sent:\n{sent}\nexpected:\n{expected}");
    }
}
