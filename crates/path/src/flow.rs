//! Connections as the path numbers them, and the random events of each of their packets.
//!
//! The events of packet `k` of a connection and direction depend only on the seed, the connection and `k`. Other
//! connections, the other direction and the time have no influence. So the real and the virtual clock lose, delay
//! and duplicate the same packets, as long as each connection sends the same ones. A retransmission counts as a
//! further packet. Left out: events that depend on the order of all packets on a link, such as losses in bursts.

use serde::Serialize;

use crate::network::Direction;
use crate::random::{Purpose, Stream};
use crate::{Nanos, PathConfig};

/// The transport protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP: a connection begins with its first SYN.
    Tcp,
    /// UDP: a connection is the traffic between two ports, and begins with its first datagram.
    Udp,
}

impl Protocol {
    /// Its protocol number in the IP header.
    fn number(self) -> u64 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

/// The handle of a connection, from [`Network::open`](crate::Network::open).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow(u32);

/// The random events of one packet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fate {
    /// It is lost after it has left its link.
    pub(crate) is_lost: bool,
    /// It arrives twice.
    pub(crate) is_doubled: bool,
    /// Its additional delay.
    pub(crate) extra_delay: Nanos,
}

/// Every connection of a client.
#[derive(Debug)]
pub(crate) struct Flows {
    chances: Chances,
    known: Vec<Known>,
    /// By origin: how many TCP and UDP connections were opened, and the flow of all other packets.
    origins: Vec<([u64; 2], Option<Flow>)>,
}

/// The probabilities that all flows share.
#[derive(Debug)]
struct Chances {
    seed: u64,
    loss: f64,
    duplicate: f64,
    longest_jitter: Nanos,
}

#[derive(Debug)]
struct Known {
    origin: usize,
    /// Up and down; `None` if the path has no per-packet randomness.
    streams: Option<Box<[Streams; 2]>>,
}

/// The random streams of one direction of one connection.
#[derive(Debug)]
struct Streams {
    loss: Stream,
    duplicate: Stream,
    jitter: Stream,
}

impl Flows {
    pub(crate) fn new(config: &PathConfig) -> Self {
        Self {
            chances: Chances {
                seed: config.seed,
                // Losses in bursts belong to the link.
                loss: if config.burst.is_some() { 0.0 } else { config.loss },
                duplicate: config.duplicate,
                longest_jitter: config.longest_jitter(),
            },
            known: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// Opens the next connection to `origin`.
    pub(crate) fn open(&mut self, protocol: Protocol, origin: usize) -> Flow {
        let opened = &mut self.origin(origin).0[usize::from(protocol == Protocol::Udp)];
        let number = *opened;
        *opened += 1;
        self.add(origin, [protocol.number(), origin as u64, number])
    }

    /// The flow of all packets to and from `origin` that belong to no connection.
    pub(crate) fn unconnected(&mut self, origin: usize) -> Flow {
        if let Some(flow) = self.origin(origin).1 {
            return flow;
        }
        let flow = self.add(origin, [0, origin as u64, 0]);
        self.origin(origin).1 = Some(flow);
        flow
    }

    /// The origin of a connection, and the events of its next packet in `direction`.
    pub(crate) fn next_packet(&mut self, flow: Flow, direction: Direction) -> (usize, Fate) {
        let known = &mut self.known[flow.0 as usize];
        let fate = match &mut known.streams {
            Some(streams) => streams[direction.index()].draw(&self.chances),
            None => Fate::default(),
        };
        (known.origin, fate)
    }

    fn origin(&mut self, origin: usize) -> &mut ([u64; 2], Option<Flow>) {
        if self.origins.len() <= origin {
            self.origins.resize(origin + 1, ([0; 2], None));
        }
        &mut self.origins[origin]
    }

    fn add(&mut self, origin: usize, identity: [u64; 3]) -> Flow {
        let flow = Flow(self.known.len() as u32);
        let streams = self.chances.exist().then(|| {
            let of = |direction| Streams::new(self.chances.seed, identity, direction);
            Box::new([of(Direction::Up), of(Direction::Down)])
        });
        self.known.push(Known { origin, streams });
        flow
    }
}

impl Chances {
    fn exist(&self) -> bool {
        self.loss > 0.0 || self.duplicate > 0.0 || self.longest_jitter > 0
    }
}

impl Streams {
    fn new(seed: u64, [protocol, origin, number]: [u64; 3], direction: Direction) -> Self {
        let indices = [protocol, origin, number, direction.index() as u64];
        let stream = |purpose| Stream::new(seed, purpose, &indices);
        Self {
            loss: stream(Purpose::Loss),
            duplicate: stream(Purpose::Duplicate),
            jitter: stream(Purpose::Jitter),
        }
    }

    /// Draws one number of each stream per packet, so that the count never depends on a packet's fate.
    fn draw(&mut self, chances: &Chances) -> Fate {
        Fate {
            is_lost: chances.loss > 0.0 && self.loss.is_below(chances.loss),
            is_doubled: chances.duplicate > 0.0 && self.duplicate.is_below(chances.duplicate),
            extra_delay: match chances.longest_jitter {
                0 => 0,
                longest => self.jitter.next_below(longest + 1),
            },
        }
    }
}
