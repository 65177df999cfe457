//! All paths of a client: which packets are on them, and when each is due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::burst::Chain;
use crate::ecn::{Carried, Mark};
use crate::flow::{Fate, Flows};
use crate::interference::Interference;
use crate::jitter::Jitter;
use crate::managed::ManagedLink;
use crate::middlebox::Guard;
use crate::{
    Action, Ecn, Flow, Header, Link, Nanos, PathConfig, PathError, Protocol, Purpose, Queue, Stream, Topology,
};

/// The direction of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the client to an origin.
    Up,
    /// From an origin to the client.
    Down,
}

impl Direction {
    pub(crate) fn index(self) -> usize {
        usize::from(self == Self::Down)
    }
}

/// A packet that the path dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedPacket<P> {
    /// When it was dropped.
    pub at: Nanos,
    /// Its direction.
    pub direction: Direction,
    /// The reason.
    pub why: Dropped,
    /// Its payload.
    pub payload: P,
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// The buffer was full, or the queue discipline dropped it.
    QueueFull,
    /// The loss model dropped it.
    Lost,
    /// A rule or a middlebox dropped it.
    Taken,
}

/// The properties of a packet that the path uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Its size, IP header included.
    pub bytes: u32,
    /// Its ECN field: whether a queue may mark it.
    pub ecn: Ecn,
}

/// A packet that arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival<P> {
    /// When it was due.
    pub at: Nanos,
    /// Its direction.
    pub direction: Direction,
    /// Whether a queue marked it.
    pub is_marked: bool,
    /// Its payload.
    pub payload: P,
}

/// Number of dropped packets, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drops {
    /// Dropped by a full buffer, or by the queue discipline.
    pub full: u64,
    /// Dropped by the loss model.
    pub lost: u64,
    /// Dropped by a rule or a middlebox.
    pub taken: u64,
}

impl Drops {
    fn count(&mut self, why: Dropped) {
        match why {
            Dropped::QueueFull => self.full += 1,
            Dropped::Lost => self.lost += 1,
            Dropped::Taken => self.taken += 1,
        }
    }
}

/// The paths between one client and its origins, with the packets on them.
///
/// Upwards a packet crosses the link and then the delay. Downwards it crosses the delay and then, under
/// [`Topology::Access`], the link at the client's end; under [`Topology::Star`] the origin's own link comes first.
#[derive(Debug)]
pub struct Network<P> {
    config: PathConfig,
    links: Vec<[Link; 2]>,
    /// Links with a queue that decides at departure (CoDel). They replace those of `links`.
    managed: Vec<[Option<ManagedLink<Held<P>>>; 2]>,
    /// When the first packet was sent. Traces begin then.
    began: Option<Nanos>,
    events: BinaryHeap<Reverse<Event<P>>>,
    sequence: u64,
    flows: Flows,
    /// Loss chains by link and direction, if losses come in bursts.
    chains: Vec<[Chain; 2]>,
    jitter: Jitter,
    duplicated: u64,
    marked: u64,
    interference: Interference,
    guard: Option<Guard>,
    drops: Drops,
    /// Packets that [`Self::next_drop`] has yet to return.
    dropped: VecDeque<DroppedPacket<P>>,
    /// Whether packets reach the shared link in the order they were sent, so that they can enter it at once.
    uniform: bool,
}

/// A packet that waits before a link, and its delay after the link.
#[derive(Debug)]
struct Held<P> {
    delay: Nanos,
    /// The origin, if the delay after the link varies.
    origin: Option<usize>,
    packet: Carried<P>,
}

impl<P> Mark for Held<P> {
    fn mark(&mut self) -> bool {
        self.packet.ecn.mark()
    }
}

impl<P> Held<P> {
    /// A packet whose delay came before the link.
    fn after_delay(packet: Carried<P>) -> Self {
        Self {
            delay: 0,
            origin: None,
            packet,
        }
    }
}

#[derive(Debug)]
struct Event<P> {
    at: Nanos,
    sequence: u64,
    direction: Direction,
    /// The size of a packet that still has to cross the shared link.
    to_link: Option<u32>,
    packet: Carried<P>,
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

impl<P: Clone> Network<P> {
    /// Empty paths as `config` describes them.
    ///
    /// # Errors
    /// [`PathError`] if a value is out of range.
    pub fn new(config: &PathConfig) -> Result<Self, PathError> {
        config.validate()?;
        Ok(Self {
            links: Vec::new(),
            managed: Vec::new(),
            began: None,
            events: BinaryHeap::new(),
            sequence: 0,
            flows: Flows::new(config),
            chains: Vec::new(),
            jitter: Jitter::new(config),
            duplicated: 0,
            marked: 0,
            interference: Interference::new(&config.interference),
            guard: config
                .middlebox
                .map(|middlebox| Guard::new(middlebox, config.seed)),
            drops: Drops::default(),
            dropped: VecDeque::new(),
            uniform: config.is_uniform() && config.jitter_ms == 0.0 && config.queue != Queue::Codel,
            config: config.clone(),
        })
    }

    /// The action of a rule, or else of a middlebox, on a segment that is about to be sent. A segment to be dropped
    /// is counted here, and the caller must not send it.
    pub fn meet(&mut self, now: Nanos, header: &Header) -> Option<Action> {
        let ruled = self.interference.meet(header);
        let action = ruled.or_else(|| self.guard.as_mut()?.meet(now, header));
        if matches!(action, Some(Action::Drop | Action::Reset)) {
            self.drops.count(Dropped::Taken);
        }
        action
    }

    /// Opens the next connection to `origin`, an origin's index. Call it in the order of first packets.
    pub fn open(&mut self, protocol: Protocol, origin: usize) -> Flow {
        self.flows.open(protocol, origin)
    }

    /// The flow of all packets to and from `origin` that belong to no connection.
    pub fn unconnected(&mut self, origin: usize) -> Flow {
        self.flows.unconnected(origin)
    }

    /// Sends a packet of `bytes` at `now` that belongs to no connection and whose sender does not use ECN. `origin`
    /// is the origin's index. Calls must not go back in time.
    pub fn send(&mut self, now: Nanos, direction: Direction, origin: usize, bytes: u32, payload: P) {
        let ecn = Ecn::NotCapable;
        let flow = self.unconnected(origin);
        self.carry(now, direction, flow, Packet { bytes, ecn }, payload);
    }

    /// As [`Self::send`], for a packet of a connection, with an ECN field.
    ///
    /// # Panics
    /// If `flow` is from another network.
    pub fn carry(&mut self, now: Nanos, direction: Direction, flow: Flow, packet: Packet, payload: P) {
        let bytes = packet.bytes;
        let ecn = if self.config.ecn {
            packet.ecn
        } else {
            Ecn::NotCapable
        };
        let (origin, fate) = self.flows.next_packet(flow, direction);
        let Fate {
            is_lost,
            is_doubled,
            extra_delay,
        } = fate;
        let packet = Carried {
            ecn,
            is_lost,
            is_doubled,
            payload,
        };
        self.began.get_or_insert(now);
        let delay = self.config.one_way(origin) + extra_delay;
        if self.config.topology == Topology::Access && direction == Direction::Down {
            if !self.uniform {
                let at = self.jitter.due(now + delay, origin, direction);
                return self.push(at, direction, Some(bytes), packet);
            }
            return self.cross_link(now + delay, direction, 0, bytes, Held::after_delay(packet));
        }
        let link = if self.config.topology == Topology::Star {
            origin
        } else {
            0
        };
        let held = Held {
            delay,
            origin: Some(origin),
            packet,
        };
        self.cross_link(now, direction, link, bytes, held);
    }

    /// When to call [`Self::deliver`] next.
    pub fn next_event(&self) -> Option<Nanos> {
        let event = self.events.peek().map(|Reverse(event)| event.at);
        if self.managed.is_empty() {
            return event;
        }
        let turn = self.next_turn().map(|(at, ..)| at);
        event.into_iter().chain(turn).min()
    }

    /// The next packet due by `now`, with the time it was due.
    pub fn deliver(&mut self, now: Nanos) -> Option<(Nanos, Direction, P)> {
        let arrival = self.arrive(now)?;
        Some((arrival.at, arrival.direction, arrival.payload))
    }

    /// As [`Self::deliver`], and says whether a queue marked the packet.
    pub fn arrive(&mut self, now: Nanos) -> Option<Arrival<P>> {
        while self.next_event()? <= now {
            if !self.managed.is_empty()
                && let Some((at, link, direction)) = self.next_turn()
                && Some(at) == self.next_event()
            {
                self.take_turn(link, direction);
                continue;
            }
            let Reverse(event) = self.events.pop()?;
            let Some(bytes) = event.to_link else {
                return Some(Arrival {
                    at: event.at,
                    direction: event.direction,
                    is_marked: event.packet.ecn == Ecn::Marked,
                    payload: event.packet.payload,
                });
            };
            let held = Held::after_delay(event.packet);
            self.cross_link(event.at, event.direction, 0, bytes, held);
        }
        None
    }

    /// The next dropped packet that was not returned yet, the earliest first. Both sending and delivering can drop.
    pub fn next_drop(&mut self) -> Option<DroppedPacket<P>> {
        self.dropped.pop_front()
    }

    /// Number of packets on their way.
    pub fn in_flight(&self) -> usize {
        let links = self.managed.iter().flatten().flatten();
        self.events.len() + links.map(ManagedLink::len).sum::<usize>()
    }

    /// Packets dropped so far.
    pub fn drops(&self) -> Drops {
        self.drops
    }

    /// Packets duplicated so far.
    pub fn duplicated(&self) -> u64 {
        self.duplicated
    }

    /// Packets marked instead of dropped so far.
    pub fn marked(&self) -> u64 {
        self.marked
    }

    fn cross_link(&mut self, now: Nanos, direction: Direction, link: usize, bytes: u32, mut held: Held<P>) {
        if self.config.queue == Queue::Codel && self.config.rate_bps(direction).is_some() {
            return self.hold(now, direction, link, bytes, held);
        }
        let ecn = &mut held.packet.ecn;
        let Some(sent) = self.link(link, direction).offer(now, bytes, ecn) else {
            return self.note_dropped(now, direction, Dropped::QueueFull, held);
        };
        self.marked += u64::from(sent.is_marked);
        self.depart(now, sent.departs, direction, link, held);
    }

    fn hold(&mut self, now: Nanos, direction: Direction, link: usize, bytes: u32, held: Held<P>) {
        while self
            .managed(link, direction)
            .next_turn()
            .is_some_and(|at| at <= now)
        {
            self.take_turn(link, direction);
        }
        if let Err(held) = self.managed(link, direction).offer(now, bytes, held) {
            self.note_dropped(now, direction, Dropped::QueueFull, held);
        }
    }

    fn note_dropped(&mut self, at: Nanos, direction: Direction, why: Dropped, held: Held<P>) {
        self.drops.count(why);
        let payload = held.packet.payload;
        self.dropped.push_back(DroppedPacket {
            at,
            direction,
            why,
            payload,
        });
    }

    /// The link whose dequeue is due next.
    fn next_turn(&self) -> Option<(Nanos, usize, Direction)> {
        let links = self.managed.iter().enumerate();
        let turns = links.flat_map(|(link, pair)| {
            let of = |direction: Direction| {
                let at = pair[direction.index()].as_ref()?.next_turn()?;
                Some((at, link, direction))
            };
            [of(Direction::Up), of(Direction::Down)].into_iter().flatten()
        });
        turns.min_by_key(|(at, ..)| *at)
    }

    fn take_turn(&mut self, link: usize, direction: Direction) {
        let Some(turn) = self.managed(link, direction).take_turn() else {
            return;
        };
        for held in turn.dropped {
            self.note_dropped(turn.at, direction, Dropped::QueueFull, held);
        }
        self.marked += turn.marked;
        if let Some((departs, held)) = turn.sent {
            self.depart(turn.at, departs, direction, link, held);
        }
    }

    /// A packet leaves its link. A packet lost by chance has used the link: it is lost on the wire, not in the
    /// buffer.
    fn depart(&mut self, now: Nanos, departs: Nanos, direction: Direction, link: usize, held: Held<P>) {
        if held.packet.is_lost || self.loses(link, direction) {
            return self.note_dropped(now, direction, Dropped::Lost, held);
        }
        let mut at = departs + held.delay;
        if let Some(origin) = held.origin {
            at = self.jitter.due(at, origin, direction);
        }
        if held.packet.is_doubled {
            self.duplicated += 1;
            self.push(at, direction, None, held.packet.clone());
        }
        self.push(at, direction, None, held.packet);
    }

    /// Whether a burst takes the next packet of a link.
    fn loses(&mut self, link: usize, direction: Direction) -> bool {
        let Some(burst) = self.config.burst.filter(|_| self.config.loss > 0.0) else {
            return false;
        };
        while self.chains.len() <= link {
            let random = |direction| self.stream(Purpose::LossBursts, self.chains.len(), direction);
            let chain = |direction| Chain::new(burst, self.config.loss, random(direction));
            let pair = [chain(Direction::Up), chain(Direction::Down)];
            self.chains.push(pair);
        }
        self.chains[link][direction.index()].loses()
    }

    fn link(&mut self, index: usize, direction: Direction) -> &mut Link {
        while self.links.len() <= index {
            let began = self.began.unwrap_or_default();
            let random = |direction| self.stream(Purpose::Pie, self.links.len(), direction);
            let capacity = |direction| self.config.capacity(direction, began);
            let link = |direction| Link::of(capacity(direction), self.config.queue, random(direction));
            let pair = [link(Direction::Up), link(Direction::Down)];
            self.links.push(pair);
        }
        &mut self.links[index][direction.index()]
    }

    /// The random stream of one direction of one link.
    fn stream(&self, purpose: Purpose, link: usize, direction: Direction) -> Stream {
        Stream::new(
            self.config.seed,
            purpose,
            &[link as u64, direction.index() as u64],
        )
    }

    fn managed(&mut self, index: usize, direction: Direction) -> &mut ManagedLink<Held<P>> {
        while self.managed.len() <= index {
            self.managed.push([None, None]);
        }
        let began = self.began.unwrap_or_default();
        let capacity = || self.config.capacity(direction, began);
        self.managed[index][direction.index()].get_or_insert_with(|| ManagedLink::new(capacity()))
    }

    fn push(&mut self, at: Nanos, direction: Direction, to_link: Option<u32>, packet: Carried<P>) {
        self.sequence += 1;
        self.events.push(Reverse(Event {
            at,
            sequence: self.sequence,
            direction,
            to_link,
            packet,
        }));
    }
}
