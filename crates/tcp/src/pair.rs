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

/// What the sockets' clocks show at time 0, unless it is said: timestamps of 0 mean none, and the timer wheel stands as
/// at 0.
const EPOCH: Nanos = Ticks::ROUND;

/// What the applications at both ends do with the connection.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// The client's TCP.
    pub client: Settings,
    /// The server's TCP.
    pub server: Settings,
    /// What the client's SYN carries; with a cookie, the first request rides along.
    pub fast_open: FastOpen,
    /// What the server makes cookies with; `None`: it knows no Fast Open.
    pub server_key: Option<Key>,
    /// Requests and their responses, one after the other.
    pub exchanges: Vec<Exchange>,
    /// Who closes the connection after the last exchange.
    pub closes: Closes,
    /// Whether the applications are event loops, which ask what their sockets are ready for. Threads that block do not.
    pub polls: bool,
}

/// A request and its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exchange {
    /// Bytes that the client writes.
    pub request: u64,
    /// Bytes that the server answers with.
    pub response: u64,
    /// What the server takes from the request's last byte to the response.
    pub server_time: Nanos,
    /// How long the client waits before it writes the request, from the end of the response before.
    pub pause: Nanos,
}

impl Exchange {
    /// One without server time or pause.
    pub fn new(request: u64, response: u64) -> Self {
        Self {
            request,
            response,
            ..Self::default()
        }
    }
}

/// Who closes the connection first; the other end follows as soon as it has read the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Closes {
    /// Nobody: it is kept alive.
    #[default]
    Nobody,
    /// The client, with the last response in hand.
    Client,
    /// The server, right behind its last response.
    Server,
}

/// A packet that a link is asked to carry.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// Which way.
    pub direction: Direction,
    /// Its number among those of its direction, from 1.
    pub number: usize,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// What it is.
    pub segment: &'a Segment,
}

/// What becomes of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fate {
    /// When it arrives: never, once, or more often.
    pub arrivals: Vec<Nanos>,
    /// It met congestion on its way (CE).
    pub is_marked: bool,
    /// The window that it offers on arrival, if that is another.
    pub window: Option<u64>,
}

impl Fate {
    /// It is lost.
    pub fn lost() -> Self {
        Self::default()
    }

    /// It arrives once.
    pub fn arrives(at: Nanos) -> Self {
        Self {
            arrivals: vec![at],
            ..Self::default()
        }
    }
}

/// What lies between the two sockets. Closures of the same signature are links.
pub trait Link {
    /// Takes a packet that is sent at `now`; calls never go back in time.
    fn carry(&mut self, now: Nanos, packet: &Packet<'_>) -> Fate;
}

impl<F: FnMut(Nanos, &Packet<'_>) -> Fate> Link for F {
    fn carry(&mut self, now: Nanos, packet: &Packet<'_>) -> Fate {
        self(now, packet)
    }
}

/// A link of no other property than its delay, one way.
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
    /// It arrives so much later.
    Delayed(Nanos),
    /// It arrives, and once more so much later.
    Duplicated(Nanos),
    /// It arrives marked CE.
    Marked,
}

/// A link on which something happens to the k-th packet of a direction.
#[derive(Debug, Clone)]
pub struct Script<L> {
    link: L,
    faults: HashMap<(Direction, usize), Fault>,
}

impl<L: Link> Script<L> {
    /// One in which nothing happens that is not `link`'s doing.
    pub fn new(link: L) -> Self {
        Self {
            link,
            faults: HashMap::new(),
        }
    }

    /// And this happens to that packet of a direction, counted from 1.
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

/// A packet that was sent, as a capture at its sender shows it; printed as tcpdump prints it.
#[derive(Debug, Clone)]
pub struct Sent {
    /// When.
    pub at: Nanos,
    /// Which way.
    pub direction: Direction,
    /// Its number among those of its direction, from 1.
    pub number: usize,
    /// Flags, sequence numbers, SACK blocks, options, ECN bits.
    pub segment: Segment,
    /// When it arrives: nowhere if it was lost.
    pub arrivals: Vec<Nanos>,
    /// Whether it is marked on its way.
    pub is_marked: bool,
    /// The window that it offers on arrival, if that is another.
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

/// What is on its way: when it arrives, its number in the trace, and whether it was marked.
type InFlight = Reverse<(Nanos, usize, bool)>;

/// How far an application has come with the exchanges.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Exchanges of which it has written its part.
    written: usize,
    /// Bytes that it has read, and that it has to have read before it writes again.
    read: u64,
    needs: u64,
    /// When it writes next.
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
    /// Packets sent up, and down.
    counts: [usize; 2],
    /// The client's application, and the server's.
    progress: [Progress; 2],
    /// What did not fit into the SYN of the first request: it waits for the handshake's end.
    behind_syn: u64,
    /// When the last byte of data arrived that was new.
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

    /// The same, whose sockets' clocks show `epoch` at time 0: where a kernel's stood when its SYN left.
    #[must_use]
    pub fn starting_at(self, epoch: Nanos) -> Self {
        Self { epoch, ..self }
    }

    /// Runs until nothing is on its way and no timer is set. Returns when the last byte of the last response
    /// arrived; `None` when it did not.
    pub fn run(&mut self) -> Option<Nanos> {
        while self.step().is_some() {}
        self.is_done().then_some(self.last_byte_at).flatten()
    }

    /// Runs until time `until`; what is due then is done.
    pub fn run_until(&mut self, until: Nanos) {
        while !self.has_begun || self.next_event().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Does the next thing that is to happen. Returns when it happened, or `None` if there is nothing left.
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

    /// When something happens next.
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

    /// Bytes that the end which `direction` leads to has read.
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

    /// The server's, from the first SYN that has arrived.
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

    /// RFC 7413, section 4.1.2: a valid cookie lets data in, any other option asks for one.
    fn answer(&self, syn: &Segment) -> Answer {
        let key = self.flow.server_key;
        let is_valid = key.is_some_and(|key| syn.fast_open == FastOpen::Cookie(key));
        Answer {
            early: is_valid.then_some(Early::WITHOUT_LIMIT),
            grants: key.filter(|_| !is_valid && syn.fast_open != FastOpen::Absent),
        }
    }

    /// The client reads, writes a request when the response before is there, and closes.
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

    /// The server reads, answers a request that is there after its server time, and closes.
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
        // A request that came with the SYN is there before the handshake ends.
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

/// What the tests of this crate's modules write down of a connection, after packetdrill: the time in ms, the direction,
/// flags, `first:last(length)`, acknowledgment, SACK blocks, options and ECN bits.
#[cfg(test)]
pub(crate) mod script {
    use std::fmt::Write as _;
    use std::ops::RangeBounds;

    use firstflight_path::{IpVersion, Queue};

    use super::*;

    /// One way, the round trip, and a full segment of data.
    pub(crate) const DELAY: Nanos = 50 * MS;
    pub(crate) const RTT: Nanos = 2 * DELAY;
    pub(crate) const FULL: u64 = crate::segment::mss(IpVersion::V4) as u64;
    pub(crate) const KEY: Key = 7;

    pub(crate) use Direction::{Down, Up};

    /// One exchange, 50 ms each way, with what happens to some packets.
    pub(crate) fn pair(flow: Flow, faults: &[(Direction, usize, Fault)]) -> Pair<Script<Delay>> {
        let clean = Script::new(Delay(DELAY));
        let script = faults.iter().fold(clean, |script, &(direction, number, fault)| {
            script.with(direction, number, fault)
        });
        Pair::new(flow, script)
    }

    /// As [`Delay`], with a bottleneck of `bps` and no end to its queue each way.
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

    /// [`response`] of 1,000 bytes, after which an end closes.
    pub(crate) fn closed_by(closes: super::Closes) -> Flow {
        Flow {
            closes,
            ..response(1_000)
        }
    }

    /// A request of 300 bytes, and a response of so many.
    pub(crate) fn response(bytes: u64) -> Flow {
        Flow {
            exchanges: vec![Exchange::new(300, bytes)],
            ..Flow::default()
        }
    }

    /// The server's sender.
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

    /// The packets sent within `ms` are those of `expected`, one per line.
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
