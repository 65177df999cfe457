//! All paths of a client: where its packets are, and when they are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::interference::Interference;
use crate::{Action, Header, Link, Nanos, PathConfig, PathError, Topology};

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the client to an origin.
    Up,
    /// From an origin to the client.
    Down,
}

/// Why a packet was not carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// The buffer was full.
    QueueFull,
    /// The loss model took it.
    Lost,
    /// A rule took it.
    Taken,
}

/// How many packets were not carried, by why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drops {
    /// By a full buffer.
    pub full: u64,
    /// By the loss model.
    pub lost: u64,
    /// By a rule.
    pub taken: u64,
}

/// The paths between one client and its origins, with the packets on them.
///
/// Upwards a packet crosses the link and then the delay. Downwards it crosses the delay and then, under
/// [`Topology::Access`], the link at the client's end; under [`Topology::Star`] the origin's own link comes first.
#[derive(Debug)]
pub struct Network<P> {
    config: PathConfig,
    links: Vec<[Link; 2]>,
    events: BinaryHeap<Reverse<Event<P>>>,
    sequence: u64,
    random: fastrand::Rng,
    interference: Interference,
    drops: Drops,
    /// Whether all origins are equally far, so that packets reach the shared link in the order they were sent.
    uniform: bool,
}

#[derive(Debug)]
struct Event<P> {
    at: Nanos,
    sequence: u64,
    direction: Direction,
    /// The size of a packet that still has to cross the shared link.
    to_link: Option<u32>,
    payload: P,
}

impl<P> PartialEq for Event<P> {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl<P> Eq for Event<P> {}

impl<P> PartialOrd for Event<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Event<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<P> Network<P> {
    /// Empty paths as `config` describes them.
    ///
    /// # Errors
    /// [`PathError`] if a value is out of range.
    pub fn new(config: &PathConfig) -> Result<Self, PathError> {
        config.validate()?;
        Ok(Self {
            links: Vec::new(),
            events: BinaryHeap::new(),
            sequence: 0,
            random: fastrand::Rng::with_seed(config.seed),
            interference: Interference::new(&config.interference),
            drops: Drops::default(),
            uniform: (0..=config.origin_rtt_ms.len())
                .map(|origin| config.one_way(origin))
                .is_sorted_by(|a, b| a == b),
            config: config.clone(),
        })
    }

    /// What is done to a segment that is about to be sent. One that is to be dropped is counted, and not sent.
    pub fn meet(&mut self, header: &Header) -> Option<Action> {
        let action = self.interference.meet(header);
        self.drops.taken += u64::from(action == Some(Action::Drop));
        action
    }

    /// Sends a packet of `bytes` at `now`; `origin` is the far end's index.
    ///
    /// Returns why it was dropped, if it was. Calls must not go back in time.
    pub fn send(
        &mut self,
        now: Nanos,
        direction: Direction,
        origin: usize,
        bytes: u32,
        payload: P,
    ) -> Option<Dropped> {
        let delay = self.config.one_way(origin);
        if self.config.topology == Topology::Access && direction == Direction::Down {
            if !self.uniform {
                self.push(now + delay, direction, Some(bytes), payload);
                return None;
            }
            return self.cross_link(now + delay, direction, 0, bytes, 0, payload);
        }
        let link = if self.config.topology == Topology::Star {
            origin
        } else {
            0
        };
        self.cross_link(now, direction, link, bytes, delay, payload)
    }

    /// When [`Self::deliver`] has something to do next.
    pub fn next_event(&self) -> Option<Nanos> {
        self.events.peek().map(|Reverse(event)| event.at)
    }

    /// The next packet that is due at `now`, with the time it was due.
    pub fn deliver(&mut self, now: Nanos) -> Option<(Nanos, Direction, P)> {
        while self.next_event()? <= now {
            let Reverse(event) = self.events.pop()?;
            let Some(bytes) = event.to_link else {
                return Some((event.at, event.direction, event.payload));
            };
            self.cross_link(event.at, event.direction, 0, bytes, 0, event.payload);
        }
        None
    }

    /// Packets on their way.
    pub fn in_flight(&self) -> usize {
        self.events.len()
    }

    /// Packets dropped so far.
    pub fn drops(&self) -> Drops {
        self.drops
    }

    fn cross_link(
        &mut self,
        now: Nanos,
        direction: Direction,
        link: usize,
        bytes: u32,
        delay: Nanos,
        payload: P,
    ) -> Option<Dropped> {
        let Some(departs) = self.link(link, direction).transmit(now, bytes) else {
            self.drops.full += 1;
            return Some(Dropped::QueueFull);
        };
        // A lost packet has used the link: it is lost on the wire, not in the buffer.
        if self.config.loss > 0.0 && self.random.f64() < self.config.loss {
            self.drops.lost += 1;
            return Some(Dropped::Lost);
        }
        self.push(departs + delay, direction, None, payload);
        None
    }

    fn link(&mut self, index: usize, direction: Direction) -> &mut Link {
        while self.links.len() <= index {
            let link = |rate| Link::new(rate, self.config.queue);
            self.links
                .push([link(self.config.up_bps), link(self.config.down_bps)]);
        }
        &mut self.links[index][usize::from(direction == Direction::Down)]
    }

    fn push(&mut self, at: Nanos, direction: Direction, to_link: Option<u32>, payload: P) {
        self.sequence += 1;
        self.events.push(Reverse(Event {
            at,
            sequence: self.sequence,
            direction,
            to_link,
            payload,
        }));
    }
}
