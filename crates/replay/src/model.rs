//! The flow on the model: two sockets of [`firstflight_tcp`], a client and a server that do as they are told.
//!
//! Applications take no time: they read and write in the instant in which there is something to read or to write.

use std::collections::HashMap;

use firstflight_path::{Direction, Ecn, Nanos, PathError};
use firstflight_tcp::{Answer, Early, FastOpen as SynOption, Key, Segment, Settings, Socket, Ticks};

use crate::case::{Clock, Close, FastOpen, Flow, Script};
use crate::link::{Arrival, Link};
use crate::trace::{Packet, Sent, Trace};

/// A tick at `CONFIG_HZ=250`.
const JIFFY: Nanos = 4_000_000;
/// The server's key, and another's.
const KEY: Key = 7;
const OTHER_KEY: Key = 8;
/// A connection that is not over by then is watched no longer.
const LONGEST: Nanos = 120_000_000_000;

/// Runs a flow on the path with a script, beginning at a moment of a kernel's clock.
///
/// # Errors
/// [`PathError`] if a value of the flow is out of range.
pub fn run(flow: &Flow, script: &Script, clock: Clock) -> Result<Trace, PathError> {
    let link = Link::new(flow, script)?;
    Ok(Model::new(flow, clock, Wire::Path(Box::new(link))).run(LONGEST))
}

/// Runs a flow whose packets arrive when those of `recorded` arrived: what each end sends follows from what it gets and
/// when, and from nothing else. Meaningful up to the first packet that differs.
pub fn follow(flow: &Flow, recorded: &Trace, clock: Clock) -> Trace {
    let arrivals = |direction| {
        let sent = recorded.of(direction).enumerate();
        sent.map(move |(index, sent)| ((direction, index + 1), (sent.arrived.clone(), sent.is_marked)))
    };
    let wire = Wire::Recorded {
        arrivals: arrivals(Direction::Up).chain(arrivals(Direction::Down)).collect(),
        sent: [0; 2],
        due: Vec::new(),
    };
    Model::new(flow, clock, wire).run(recorded.end)
}

/// What is between the two.
enum Wire {
    Path(Box<Link<Segment>>),
    Recorded {
        /// By direction and number: when the packet arrived, from the trace's time 0, and whether it was marked.
        arrivals: HashMap<(Direction, usize), (Vec<Nanos>, bool)>,
        sent: [usize; 2],
        due: Vec<Arrival<Segment>>,
    },
}

struct Model<'a> {
    flow: &'a Flow,
    start: Nanos,
    now: Nanos,
    settings: Settings,
    wire: Wire,
    trace: Trace,
    /// Where each packet of a direction stands in the trace.
    places: [Vec<usize>; 2],
    client: Client,
    server: Server,
}

struct Client {
    socket: Socket,
    /// The exchange that it waits for, and what has come of it.
    exchange: usize,
    received: u64,
    /// Of the first request what waits for the handshake's end.
    unsent: u64,
    has_closed: bool,
}

#[derive(Default)]
struct Server {
    socket: Option<Socket>,
    exchange: usize,
    received: u64,
    due: Option<Nanos>,
    has_closed: bool,
}

impl<'a> Model<'a> {
    fn new(flow: &'a Flow, clock: Clock, wire: Wire) -> Self {
        let settings = Settings {
            algorithm: flow.algorithm,
            initial_window: flow.initial_window,
            ecn: flow.ecn,
            ticks: Ticks::new(clock.jiffies * JIFFY),
            ..Settings::default()
        };
        Self {
            flow,
            start: clock.start,
            now: clock.start,
            settings,
            wire,
            trace: Trace::default(),
            places: [Vec::new(), Vec::new()],
            client: Client {
                socket: Socket::client(0, settings),
                exchange: 0,
                received: 0,
                unsent: 0,
                has_closed: false,
            },
            server: Server::default(),
        }
    }

    fn run(mut self, longest: Nanos) -> Trace {
        self.connect();
        loop {
            self.transmit();
            let Some(next) = self.next_event().filter(|at| *at <= self.start + longest) else {
                break;
            };
            self.now = self.now.max(next);
            if let Some(arrival) = self.arrive() {
                self.deliver(&arrival);
            } else {
                self.client.socket.handle_timeout(self.now);
                if let Some(server) = &mut self.server.socket {
                    server.handle_timeout(self.now);
                }
            }
            self.run_client();
            self.run_server();
        }
        self.trace.end = longest.min(self.now - self.start);
        self.trace
    }

    fn next_event(&self) -> Option<Nanos> {
        let wire = match &self.wire {
            Wire::Path(link) => link.next_event(),
            Wire::Recorded { due, .. } => due.iter().map(|arrival| arrival.at).min(),
        };
        let sockets = [Some(&self.client.socket), self.server.socket.as_ref()];
        let timers = sockets.into_iter().flatten().filter_map(Socket::next_timeout);
        timers.chain(wire).chain(self.server.due).min()
    }

    fn connect(&mut self) {
        let (now, socket) = (self.now, &mut self.client.socket);
        let first = self.flow.exchanges.first().map_or(0, |exchange| exchange.up);
        let mut with_data = |key| socket.connect_with_data(now, SynOption::Cookie(key), first);
        let sent = match self.flow.fast_open {
            FastOpen::Cookie => with_data(KEY),
            FastOpen::Unknown => with_data(OTHER_KEY),
            FastOpen::None => {
                socket.connect(now, SynOption::Absent);
                0
            }
            FastOpen::Request => {
                socket.connect(now, SynOption::Request);
                0
            }
        };
        self.client.unsent = first - sent;
    }

    fn transmit(&mut self) {
        let (client, server) = (&mut self.client.socket, &mut self.server.socket);
        while let Some(segment) = client.poll().or_else(|| server.as_mut()?.poll()) {
            let direction = if segment.up {
                Direction::Up
            } else {
                Direction::Down
            };
            self.places[usize::from(segment.up)].push(self.trace.sent.len());
            self.trace.sent.push(Sent {
                at: self.now - self.start,
                direction,
                packet: Packet::from(&segment),
                arrived: Vec::new(),
                is_marked: false,
                info: None,
            });
            match &mut self.wire {
                Wire::Path(link) => link.send(self.now, direction, segment.packet_bytes(), segment),
                Wire::Recorded { arrivals, sent, due } => {
                    let number = &mut sent[usize::from(segment.up)];
                    *number += 1;
                    let Some((times, is_marked)) = arrivals.get(&(direction, *number)) else {
                        continue;
                    };
                    due.extend(times.iter().map(|at| Arrival {
                        at: (self.start + at).max(self.now),
                        direction,
                        number: *number,
                        is_marked: *is_marked,
                        payload: segment,
                    }));
                }
            }
        }
    }

    fn arrive(&mut self) -> Option<Arrival<Segment>> {
        match &mut self.wire {
            Wire::Path(link) => link.arrive(self.now),
            Wire::Recorded { due, .. } => {
                let first = due.iter().enumerate().min_by_key(|(_, arrival)| arrival.at)?;
                let (index, arrival) = first;
                (arrival.at <= self.now).then(|| due.remove(index))
            }
        }
    }

    fn deliver(&mut self, arrival: &Arrival<Segment>) {
        let mut segment = arrival.payload;
        let up = arrival.direction == Direction::Up;
        let sent = &mut self.trace.sent[self.places[usize::from(up)][arrival.number - 1]];
        sent.arrived.push(self.now - self.start);
        if arrival.is_marked && segment.ecn == Ecn::Capable {
            segment.ecn = Ecn::Marked;
            sent.is_marked = true;
        }
        match &mut self.server.socket {
            _ if !up => self.client.socket.handle(self.now, &segment),
            Some(server) => server.handle(self.now, &segment),
            None if segment.syn => {
                let is_valid = segment.fast_open == SynOption::Cookie(KEY);
                let answer = Answer {
                    early: is_valid.then_some(Early::WITHOUT_LIMIT),
                    grants: (!is_valid && segment.fast_open != SynOption::Absent).then_some(KEY),
                };
                self.server.socket = Some(Socket::accept(self.now, &segment, answer, self.settings));
            }
            None => {}
        }
    }

    fn run_client(&mut self) {
        let Client {
            socket,
            exchange,
            received,
            unsent,
            has_closed,
        } = &mut self.client;
        let now = self.now;
        if !socket.is_established() {
            return;
        }
        if *unsent > 0 {
            socket.write(now, std::mem::take(unsent));
        }
        *received += socket.read_all(now);
        while let Some(current) = self.flow.exchanges.get(*exchange)
            && *received >= current.down
        {
            *received -= current.down;
            *exchange += 1;
            if let Some(next) = self.flow.exchanges.get(*exchange) {
                socket.write(now, next.up);
            }
        }
        let is_done = *exchange == self.flow.exchanges.len();
        let closes = (is_done && self.flow.close == Close::Client) || socket.is_at_end();
        if closes && !*has_closed {
            *has_closed = true;
            socket.close(now);
        }
    }

    fn run_server(&mut self) {
        let Server {
            socket: Some(socket),
            exchange,
            received,
            due,
            has_closed,
        } = &mut self.server
        else {
            return;
        };
        let now = self.now;
        *received += socket.read_all(now);
        while let Some(current) = self.flow.exchanges.get(*exchange) {
            if due.is_none() && *received >= current.up {
                *received -= current.up;
                *due = Some(now + current.wait);
            }
            if due.is_none_or(|due| due > now) {
                break;
            }
            *due = None;
            *exchange += 1;
            socket.write(now, current.down);
        }
        let is_done = *exchange == self.flow.exchanges.len();
        let closes = (is_done && self.flow.close == Close::Server) || socket.is_at_end();
        if closes && !*has_closed {
            *has_closed = true;
            socket.close(now);
        }
    }
}
