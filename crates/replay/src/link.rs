//! The path with a script: what both clocks put their packets on.
//!
//! A packet crosses the path's link, queue and propagation delay first; what the script says happens behind that. So a
//! packet that is lost has taken its turn on the link, and one that is delayed lets others overtake it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use firstflight_path::{Direction, Ecn, Nanos, Network, Packet, PathError, Protocol};

use crate::case::{Fate, Flow, Script};

/// A path, its script, and the packets of one connection on it.
#[derive(Debug)]
pub struct Link<P> {
    network: Network<(usize, P)>,
    flow: firstflight_path::Flow,
    script: Script,
    sent: [usize; 2],
    held: BinaryHeap<Reverse<Held<P>>>,
    order: u64,
}

/// A packet that arrives.
#[derive(Debug)]
pub struct Arrival<P> {
    /// When it was due.
    pub at: Nanos,
    /// Which way it went.
    pub direction: Direction,
    /// Its number among those of its direction, from 1.
    pub number: usize,
    /// Whether it was marked on the way.
    pub is_marked: bool,
    /// What was sent.
    pub payload: P,
}

#[derive(Debug)]
struct Held<P> {
    order: u64,
    arrival: Arrival<P>,
}

impl<P: Clone> Link<P> {
    /// An empty path.
    ///
    /// # Errors
    /// [`PathError`] if a value of the flow is out of range.
    pub fn new(flow: &Flow, script: &Script) -> Result<Self, PathError> {
        let mut network = Network::new(&flow.path())?;
        Ok(Self {
            flow: network.open(Protocol::Tcp, 0),
            network,
            script: script.clone(),
            sent: [0; 2],
            held: BinaryHeap::new(),
            order: 0,
        })
    }

    /// Sends a packet of `bytes` at `now`. Calls must not go back in time.
    pub fn send(&mut self, now: Nanos, direction: Direction, bytes: u32, payload: P) {
        let sent = &mut self.sent[usize::from(direction == Direction::Up)];
        *sent += 1;
        let ecn = Ecn::NotCapable;
        let packet = Packet { bytes, ecn };
        // What a full queue drops does not arrive; that is all a sender learns.
        self.network
            .carry(now, direction, self.flow, packet, (*sent, payload));
    }

    /// When [`Self::arrive`] has something to do next.
    pub fn next_event(&self) -> Option<Nanos> {
        let held = self.held.peek().map(|Reverse(held)| held.arrival.at);
        held.into_iter().chain(self.network.next_event()).min()
    }

    /// The next packet that has arrived by `now`.
    pub fn arrive(&mut self, now: Nanos) -> Option<Arrival<P>> {
        loop {
            let held = self.held.peek().map(|Reverse(held)| held.arrival.at);
            let crossing = self.network.next_event();
            if held.is_some_and(|at| at <= now && crossing.is_none_or(|crossing| at <= crossing)) {
                return self.held.pop().map(|Reverse(held)| held.arrival);
            }
            let arrival = self.network.arrive(now)?;
            let (number, payload) = arrival.payload;
            let arrival = Arrival {
                at: arrival.at,
                direction: arrival.direction,
                number,
                is_marked: false,
                payload,
            };
            match self.script.fate(arrival.direction, number) {
                None => return Some(arrival),
                Some(Fate::Lost) => {}
                Some(Fate::Marked) => {
                    return Some(Arrival {
                        is_marked: true,
                        ..arrival
                    });
                }
                Some(Fate::Delayed(delay)) => self.hold(Arrival {
                    at: arrival.at + delay,
                    ..arrival
                }),
                Some(Fate::Duplicated) => {
                    self.hold(Arrival {
                        payload: arrival.payload.clone(),
                        ..arrival
                    });
                    return Some(arrival);
                }
            }
        }
    }

    fn hold(&mut self, arrival: Arrival<P>) {
        self.order += 1;
        let order = self.order;
        self.held.push(Reverse(Held { order, arrival }));
    }
}

impl<P> PartialEq for Held<P> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<P> Eq for Held<P> {}

impl<P> PartialOrd for Held<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Held<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.arrival.at, self.order).cmp(&(other.arrival.at, other.order))
    }
}
