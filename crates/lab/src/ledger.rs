//! The ledger: what the relay saw of each connection. Addresses and ports identify a connection.

mod timeline;

use std::collections::HashMap;
use std::net::IpAddr;

use firstflight_load::hello::{self, ClientHello};
use firstflight_load::ledger::{self, Hello};
use firstflight_load::quic::{self, PacketType};
use firstflight_path::{self as path, Action, Direction, Protocol};

use crate::net::AddressPlan;
use crate::packet::{Datagram, Segment};

pub use timeline::{Progress, Timeline};

/// Client port, server address, server port. All connections have the same client address.
pub type ConnectionKey = (u16, IpAddr, u16);

/// One connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its addresses and ports.
    pub key: ConnectionKey,
    /// What crossed the wire. Times are monotonic ns.
    pub seen: ledger::Entry,
    /// When the client's data entered the path. Empty unless the ledger keeps times.
    pub sent_data: Timeline,
    /// When the server's data reached the client. Empty unless the ledger keeps times.
    pub received_data: Timeline,
    /// The client's `ClientHello`; `None` if the connection has no TLS over TCP, or the `ClientHello` never came
    /// whole.
    pub client_hello: Option<ClientHello>,
    /// Types and bytes of the packets that a QUIC client sends before the server answers.
    pub first_packets: Vec<(PacketType, u32)>,
    /// The client's first bytes, until the server's first data reaches it. Empty if they are not TLS.
    opening: Vec<u8>,
}

/// The ledger looks for early data in the first bytes of a client's stream, at most this many.
const LONGEST_OPENING: usize = 64 * 1024;

impl Entry {
    /// The host's number, and the entry, as [`firstflight_load::promise`] takes them.
    pub fn of_host(&self) -> firstflight_load::promise::Connection<'_> {
        (AddressPlan::index(usize::MAX, self.key.1), &self.seen)
    }
}

/// Every connection, in the order of its first SYN or, with QUIC, of its first datagram.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    by_key: HashMap<(Protocol, ConnectionKey), usize>,
    keeps_times: bool,
}

impl Ledger {
    /// A ledger that also keeps when each byte crossed.
    pub fn with_times() -> Self {
        Self {
            keeps_times: true,
            ..Self::default()
        }
    }

    /// Every connection, in the order of first packets.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The connection of `key`.
    pub fn get(&self, protocol: Protocol, key: ConnectionKey) -> Option<&Entry> {
        let index = self.by_key.get(&(protocol, key))?;
        Some(&self.entries[*index])
    }

    /// A segment enters the path. Returns its connection's number; `None` if the ledger did not see the connection
    /// open.
    pub fn sent(&mut self, direction: Direction, now: u64, segment: &Segment) -> Option<usize> {
        let (key, seen) = (key(direction, segment), segment.seen(direction));
        let opens = direction == Direction::Up && segment.flags.syn && !segment.flags.ack;
        let is_of = |entry: &Entry| !opens || entry.seen.isns().0 == segment.sequence;
        let index = match self.by_key.get(&(Protocol::Tcp, key)) {
            Some(index) if is_of(&self.entries[*index]) => *index,
            _ if opens => self.open(key, ledger::Entry::new(now, &seen)),
            // The rest of a connection that was opened before the path was shaped.
            _ => return None,
        };
        let entry = &mut self.entries[index];
        if self.keeps_times && direction == Direction::Up {
            let start = offset(segment, entry.seen.isns().0);
            entry.sent_data.note(now, start, segment.payload_bytes);
        }
        entry.seen.sent(now, &seen);
        Some(index)
    }

    /// A datagram enters the path. Returns its connection's number; `None` if it is not QUIC.
    pub fn datagram_sent(
        &mut self,
        direction: Direction,
        now: u64,
        datagram: &Datagram<'_>,
    ) -> Option<usize> {
        let key = datagram.key(direction);
        let begins = || quic::packets(datagram.payload).next();
        let index = match self.by_key.get(&(Protocol::Udp, key)) {
            Some(index) => *index,
            None if direction == Direction::Up && matches!(begins(), Some((PacketType::Initial, _))) => {
                self.open(key, ledger::Entry::over_udp(now))
            }
            None => return None,
        };
        let entry = &mut self.entries[index];
        if direction == Direction::Up && !entry.seen.has_heard() {
            entry.first_packets.extend(quic::packets(datagram.payload));
        }
        let seen = &mut entry.seen;
        seen.datagram_sent(direction, datagram.packet_bytes, datagram.payload, datagram.ecn);
        Some(index)
    }

    /// The path dropped a datagram.
    pub fn datagram_dropped(&mut self, direction: Direction, datagram: &Datagram<'_>) {
        let key = datagram.key(direction);
        if let Some(index) = self.by_key.get(&(Protocol::Udp, key)) {
            self.entries[*index].seen.datagram_dropped(direction);
        }
    }

    /// A datagram reaches the client.
    pub fn datagram_arrived(&mut self, now: u64, datagram: &Datagram<'_>) {
        let key = datagram.key(Direction::Down);
        if let Some(index) = self.by_key.get(&(Protocol::Udp, key)) {
            let entry = &mut self.entries[*index];
            if self.keeps_times {
                // A datagram's content is encrypted, so its whole size counts.
                let start = entry.seen.bytes_down as u32;
                entry.received_data.note(now, start, datagram.packet_bytes);
            }
            entry.seen.datagram_arrived(now, datagram.packet_bytes);
        }
    }

    /// Reads the data of a client's segment of connection `index`, as long as it can be a `ClientHello` or early
    /// data. Returns which parts of them the segment has.
    pub fn read(&mut self, index: usize, segment: &Segment, payload: &[u8]) -> path::Hello {
        let entry = &mut self.entries[index];
        if payload.is_empty() || entry.seen.has_heard() {
            return path::Hello::default();
        }
        entry.read(segment, payload);
        path::Hello {
            is_cut: offset(segment, entry.seen.isns().0) == 0 && hello::is_cut(payload),
            offers_early_data: entry.seen.hello.is_some_and(|hello| hello.offers_early_data),
        }
    }

    /// Whether `segment` of connection `index` is a SYN-ACK that acknowledges the SYN's data.
    pub fn takes_syn_data(&self, index: usize, segment: &Segment) -> bool {
        self.entries[index]
            .seen
            .is_taken_by(&segment.seen(Direction::Down))
    }

    /// A rule or middlebox acted on a segment of connection `index`.
    pub fn interfered(&mut self, index: usize, action: Action) {
        self.entries[index].seen.interfered.get_or_insert(action);
    }

    /// A segment reaches the client.
    pub fn arrived(&mut self, now: u64, segment: &Segment) {
        if let Some(index) = self.by_key.get(&(Protocol::Tcp, key(Direction::Down, segment))) {
            let entry = &mut self.entries[*index];
            if let (true, Some(isn)) = (self.keeps_times, entry.seen.isns().1) {
                let start = offset(segment, isn);
                entry.received_data.note(now, start, segment.payload_bytes);
            }
            entry.seen.arrived(now, &segment.seen(Direction::Down));
            if segment.payload_bytes > 0 {
                entry.opening = Vec::new();
            }
        }
    }

    fn open(&mut self, key: ConnectionKey, seen: ledger::Entry) -> usize {
        self.by_key.insert((seen.protocol, key), self.entries.len());
        self.entries.push(Entry {
            key,
            seen,
            sent_data: Timeline::default(),
            received_data: Timeline::default(),
            client_hello: None,
            first_packets: Vec::new(),
            opening: Vec::new(),
        });
        self.entries.len() - 1
    }
}

impl Entry {
    /// Reads the data of a segment.
    fn read(&mut self, segment: &Segment, payload: &[u8]) {
        let start = offset(segment, self.seen.isns().0) as usize;
        let known = self.opening.len();
        // Skips data that was read before, data behind a gap, and data beyond the limit.
        if start > known || start + payload.len() <= known || known + payload.len() > LONGEST_OPENING {
            return;
        }
        if start == 0 && !hello::may_begin(payload) {
            return;
        }
        self.opening.extend_from_slice(&payload[known - start..]);
        let hello = ClientHello::read(&self.opening);
        self.seen.hello = hello.as_ref().map(|hello| Hello {
            offers_session: hello.offers_session,
            offers_early_data: hello.offers_early_data,
            early_data_bytes: hello::early_data_bytes(&self.opening),
        });
        self.client_hello = hello.or(self.client_hello.take());
    }
}

/// Offset of a segment's data in its stream.
fn offset(segment: &Segment, isn: u32) -> u32 {
    let first = segment.sequence.wrapping_add(u32::from(segment.flags.syn));
    first.wrapping_sub(isn.wrapping_add(1))
}

fn key(direction: Direction, segment: &Segment) -> ConnectionKey {
    let (client, server) = match direction {
        Direction::Up => (segment.source, segment.destination),
        Direction::Down => (segment.destination, segment.source),
    };
    (client.1, server.0, server.1)
}

#[cfg(test)]
mod tests;
