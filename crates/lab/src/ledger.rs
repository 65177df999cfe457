//! The ledger: what the relay saw of each connection.

mod timeline;

use std::collections::HashMap;
use std::net::Ipv4Addr;

use firstflight_path::{Action, Direction};
use serde::Serialize;

use crate::packet::Segment;

pub use timeline::{Progress, Timeline};

/// Client port, server address and port: all connections have the same client address.
pub type ConnectionKey = (u16, Ipv4Addr, u16);

/// What the client's SYN said about Fast Open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cookie {
    /// No option.
    None,
    /// An empty option: a cookie, please.
    Requested,
    /// An option with a cookie.
    Sent,
}

/// One connection as it crossed the wire. Times are monotonic ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Who talked.
    pub key: ConnectionKey,
    /// First SYN.
    pub opened: u64,
    /// Bytes of data in the first SYN.
    pub syn_payload_bytes: u32,
    /// What the first SYN said about Fast Open.
    pub cookie: Cookie,
    /// The cookie in it, as a number; 0 without one.
    pub sent_cookie: u128,
    /// The cookie that a SYN-ACK brought to the client; 0 without one.
    pub new_cookie: u128,
    /// Whether the SYN-ACK acknowledged all data of the SYN (and there was some).
    pub syn_data_acked: bool,
    /// SYNs after the first.
    pub syn_retransmits: u32,
    /// Segments with data (or a SYN-ACK) sent again, by either side.
    pub retransmits: u32,
    /// Bytes of IP packets that reached the client.
    pub bytes_down: u64,
    /// Bytes of IP packets the client sent.
    pub bytes_up: u64,
    /// The first SYN-ACK reached the client.
    pub answered: Option<u64>,
    /// A reset, or the second FIN.
    pub closed: Option<u64>,
    /// The first thing that was done to one of its segments on purpose.
    pub interfered: Option<Action>,
    /// When the client's data left it and the server's reached it; empty unless the ledger keeps times.
    pub sent_data: Timeline,
    /// See `sent_data`.
    pub received_data: Timeline,
    client_isn: u32,
    server_isn: Option<u32>,
    /// The SYN had data that has not been sent again.
    syn_data_sent_once: bool,
    syn_acks: u32,
    after_syn_ack: Option<Reply>,
    /// Next expected sequence number, up and down.
    next: [Option<u32>; 2],
    fins: [bool; 2],
}

/// The client's first word after its SYNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    /// An acknowledgment.
    Socket,
    /// A reset without one: there is no socket any more (RFC 9293, section 3.10.7.1).
    Nobody,
}

/// Every connection, in the order of first SYNs.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    by_key: HashMap<ConnectionKey, usize>,
    keeps_times: bool,
}

impl Ledger {
    /// A ledger that also keeps when each byte passed.
    pub fn with_times() -> Self {
        Self {
            keeps_times: true,
            ..Self::default()
        }
    }

    /// Every connection, in the order of first SYNs.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The connection of `key`.
    pub fn get(&self, key: ConnectionKey) -> Option<&Entry> {
        self.by_key.get(&key).map(|index| &self.entries[*index])
    }

    /// A segment enters the path. Returns its connection's number; `None` for one that was opened unseen.
    pub fn sent(&mut self, direction: Direction, now: u64, segment: &Segment) -> Option<usize> {
        let key = key(direction, segment);
        let opens = direction == Direction::Up && segment.flags.syn && !segment.flags.ack;
        let index = match self.by_key.get(&key) {
            Some(index) if !(opens && self.entries[*index].client_isn != segment.sequence) => *index,
            _ if opens => self.open(key, now, segment),
            // The tail of a connection from before the path was shaped.
            _ => return None,
        };
        let entry = &mut self.entries[index];
        if self.keeps_times && direction == Direction::Up {
            let start = offset(segment, entry.client_isn);
            entry.sent_data.note(now, start, segment.payload_bytes);
        }
        entry.sent(direction, now, segment);
        Some(index)
    }

    /// Whether `segment` of connection `index` is a SYN-ACK that acknowledges the SYN's data.
    pub fn takes_syn_data(&self, index: usize, segment: &Segment) -> bool {
        self.entries[index].is_taken_by(segment)
    }

    /// Something was done on purpose to a segment of connection `index`.
    pub fn interfered(&mut self, index: usize, action: Action) {
        self.entries[index].interfered.get_or_insert(action);
    }

    /// A segment reaches the client.
    pub fn arrived(&mut self, now: u64, segment: &Segment) {
        if let Some(index) = self.by_key.get(&key(Direction::Down, segment)) {
            let entry = &mut self.entries[*index];
            if let (true, Some(isn)) = (self.keeps_times, entry.server_isn) {
                let start = offset(segment, isn);
                entry.received_data.note(now, start, segment.payload_bytes);
            }
            entry.arrived(now, segment);
        }
    }

    fn open(&mut self, key: ConnectionKey, now: u64, segment: &Segment) -> usize {
        self.entries.push(Entry {
            key,
            opened: now,
            syn_payload_bytes: segment.payload_bytes,
            cookie: match segment.cookie_bytes {
                None => Cookie::None,
                Some(0) => Cookie::Requested,
                Some(_) => Cookie::Sent,
            },
            sent_cookie: segment.cookie,
            new_cookie: 0,
            syn_data_acked: false,
            syn_retransmits: 0,
            retransmits: 0,
            bytes_down: 0,
            bytes_up: 0,
            answered: None,
            closed: None,
            interfered: None,
            sent_data: Timeline::default(),
            received_data: Timeline::default(),
            client_isn: segment.sequence,
            server_isn: None,
            syn_data_sent_once: segment.payload_bytes > 0,
            syn_acks: 0,
            after_syn_ack: None,
            next: [None; 2],
            fins: [false; 2],
        });
        self.by_key.insert(key, self.entries.len() - 1);
        self.entries.len() - 1
    }
}

impl Reply {
    fn of(segment: &Segment) -> Option<Self> {
        match (segment.flags.ack, segment.flags.rst) {
            (true, _) => Some(Self::Socket),
            (false, true) => Some(Self::Nobody),
            (false, false) => None,
        }
    }
}

impl Entry {
    /// Whether the SYN carried data, with a cookie or where none is needed.
    pub fn offered(&self) -> bool {
        self.cookie != Cookie::Requested && self.syn_payload_bytes > 0
    }

    /// Whether the server took the SYN's data.
    pub fn accepted(&self) -> bool {
        self.offered() && self.syn_data_acked
    }

    /// Whether the client had hung up before the SYN-ACK came.
    pub fn deserted(&self) -> bool {
        self.after_syn_ack == Some(Reply::Nobody)
    }

    /// Whether `segment` is a SYN-ACK that acknowledges the SYN's data.
    fn is_taken_by(&self, segment: &Segment) -> bool {
        let first = self.client_isn.wrapping_add(1);
        let is_syn_ack = segment.flags.syn && segment.flags.ack;
        is_syn_ack
            && self.syn_payload_bytes > 0
            && segment.acknowledgment.wrapping_sub(first) == self.syn_payload_bytes
    }

    fn sent(&mut self, direction: Direction, now: u64, segment: &Segment) {
        match direction {
            Direction::Up => {
                self.bytes_up += u64::from(segment.packet_bytes);
                if segment.flags.syn && self.next[0].is_some() {
                    self.syn_retransmits += 1;
                    return;
                }
                self.note_end(now, 0, segment);
                self.after_syn_ack = self.after_syn_ack.or(Reply::of(segment));
            }
            Direction::Down if segment.flags.syn => {
                self.syn_acks += 1;
                self.retransmits += u32::from(self.syn_acks > 1);
                // A server that answers early has data behind a SYN-ACK that it sends again.
                if self.server_isn.replace(segment.sequence) != Some(segment.sequence) {
                    self.next[1] = Some(segment.sequence.wrapping_add(1));
                }
                return;
            }
            Direction::Down => {}
        }
        self.follow(usize::from(direction == Direction::Down), segment);
    }

    /// Data below the highest sequence number seen has been sent before.
    fn follow(&mut self, side: usize, segment: &Segment) {
        let length = segment.payload_bytes + u32::from(segment.flags.syn) + u32::from(segment.flags.fin);
        let end = segment.sequence.wrapping_add(length);
        // Fast Open: data of the SYN that the server did not take is sent again with the handshake's end
        // (RFC 7413, section 4.2.1). That is no loss; once more is.
        let refused_syn_data = side == 0
            && segment.payload_bytes > 0
            && segment.sequence == self.client_isn.wrapping_add(1)
            && std::mem::take(&mut self.syn_data_sent_once)
            && !self.syn_data_acked;
        match self.next[side] {
            Some(next) if end.wrapping_sub(next).cast_signed() <= 0 => {
                self.retransmits += u32::from(segment.payload_bytes > 0 && !refused_syn_data);
            }
            _ => self.next[side] = Some(end),
        }
    }

    fn arrived(&mut self, now: u64, segment: &Segment) {
        self.bytes_down += u64::from(segment.packet_bytes);
        if segment.flags.syn {
            self.answered.get_or_insert(now);
            if self.new_cookie == 0 {
                self.new_cookie = segment.cookie;
            }
        }
        self.syn_data_acked |= self.is_taken_by(segment);
        self.note_end(now, 1, segment);
    }

    fn note_end(&mut self, now: u64, side: usize, segment: &Segment) {
        self.fins[side] |= segment.flags.fin;
        if self.closed.is_none() && (segment.flags.rst || self.fins == [true, true]) {
            self.closed = Some(now);
        }
    }
}

/// Where a segment's data begins in its stream.
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
