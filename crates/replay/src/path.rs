//! The path with a script, on which both clocks put their packets.
//!
//! A packet first crosses the path's queue, link and propagation delay; its fault comes after that. So a lost
//! packet has used the link, and a delayed one lets others overtake it.

use firstflight_path::{Direction, Ecn, Nanos, Network, PathError, Protocol};
use firstflight_tcp::pair::{Fate, Fault, Link, Packet};

use crate::case::{Flow, Script};

/// A path, its script, and the packets of one connection on it.
#[derive(Debug)]
pub struct Path {
    network: Network<()>,
    flow: firstflight_path::Flow,
    script: Script,
    sent: [usize; 2],
}

impl Path {
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
        })
    }

    /// The fate of a packet of `bytes` that is sent at `now`. Calls must not go back in time.
    pub fn send(&mut self, now: Nanos, direction: Direction, bytes: u32) -> Fate {
        let sent = &mut self.sent[usize::from(direction == Direction::Up)];
        *sent += 1;
        let ecn = Ecn::NotCapable;
        let packet = firstflight_path::Packet { bytes, ecn };
        self.network.carry(now, direction, self.flow, packet, ());
        if self.network.next_drop().is_some() {
            return Fate::lost();
        }
        // With a queue of a number of packets, the departure of a packet is known when it enters.
        let Some(arrival) = self.network.arrive(Nanos::MAX) else {
            return Fate::lost();
        };
        let mut fate = Fate::arrives(arrival.at);
        match self.script.fault(direction, *sent) {
            None => {}
            Some(Fault::Lost) => return Fate::lost(),
            Some(Fault::Delayed(by)) => fate.arrivals[0] += by,
            Some(Fault::Duplicated(by)) => fate.arrivals.push(arrival.at + by),
            Some(Fault::Marked) => fate.is_marked = true,
        }
        fate
    }
}

impl Link for Path {
    fn carry(&mut self, now: Nanos, packet: &Packet<'_>) -> Fate {
        let fate = self.send(now, packet.direction, packet.bytes);
        Fate {
            is_marked: fate.is_marked && packet.segment.ecn == Ecn::Capable,
            ..fate
        }
    }
}
