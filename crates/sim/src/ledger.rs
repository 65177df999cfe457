//! What crossed the wire of each connection, by the rules of the lab's ledger.

use firstflight_path::{Action, Nanos};

use firstflight_tcp::{FastOpen, Key, Segment, Seq};

/// One connection as it crossed the wire.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    /// First SYN; `None` if it was never sent.
    pub(crate) opened: Option<Nanos>,
    pub(crate) syn_payload_bytes: u32,
    pub(crate) cookie: FastOpen,
    pub(crate) syn_data_acked: bool,
    /// A SYN-ACK reached the client.
    pub(crate) is_answered: bool,
    /// The cookie that a SYN-ACK brought to the client.
    pub(crate) new_cookie: Option<Key>,
    pub(crate) syn_retransmits: u32,
    pub(crate) retransmits: u32,
    pub(crate) bytes_down: u64,
    pub(crate) bytes_up: u64,
    pub(crate) closed: Option<Nanos>,
    /// The first thing that was done to one of its segments on purpose.
    pub(crate) interfered: Option<Action>,
    /// The SYN had data that has not been sent again.
    syn_data_sent_once: bool,
    syn_acks: u32,
    /// Next expected sequence number, up and down.
    next: [Seq; 2],
    fins: [bool; 2],
}

impl Entry {
    /// Whether the SYN carried data.
    pub(crate) fn offered(&self) -> bool {
        self.syn_payload_bytes > 0
    }

    /// Whether the server took the SYN's data.
    pub(crate) fn accepted(&self) -> bool {
        self.offered() && self.syn_data_acked
    }

    /// Whether `segment` is a SYN-ACK that acknowledges the SYN's data.
    pub(crate) fn is_taken_by(&self, segment: &Segment) -> bool {
        let is_syn_ack = segment.syn && !segment.up;
        is_syn_ack && self.syn_payload_bytes > 0 && segment.ack_no == 1 + Seq::from(self.syn_payload_bytes)
    }

    /// A segment enters the path.
    pub(crate) fn sent(&mut self, now: Nanos, segment: &Segment) {
        if segment.up {
            self.sent_up(now, segment);
        } else if segment.syn {
            self.syn_acks += 1;
            self.retransmits += u32::from(self.syn_acks > 1);
            self.next[1] = self.next[1].max(1);
            return;
        }
        if !(segment.up && segment.syn && self.syn_retransmits > 0) {
            self.follow(segment);
        }
    }

    fn sent_up(&mut self, now: Nanos, segment: &Segment) {
        self.bytes_up += u64::from(segment.packet_bytes());
        if !segment.syn {
            return self.note_end(now, segment);
        }
        if self.opened.is_some() {
            self.syn_retransmits += 1;
            return;
        }
        self.opened = Some(now);
        self.syn_payload_bytes = segment.len;
        self.cookie = segment.fast_open;
        self.syn_data_sent_once = segment.len > 0;
    }

    /// Data below the highest sequence number seen was sent before; data of the SYN that the server did not take
    /// may be sent once more without being a retransmission (RFC 7413, section 4.2.1).
    fn follow(&mut self, segment: &Segment) {
        let next = &mut self.next[usize::from(!segment.up)];
        if segment.end() > *next {
            *next = segment.end();
            return;
        }
        let refused = segment.up
            && segment.seq == 1
            && segment.len > 0
            && std::mem::take(&mut self.syn_data_sent_once)
            && !self.syn_data_acked;
        self.retransmits += u32::from(segment.len > 0 && !refused);
    }

    /// A segment reaches the client.
    pub(crate) fn arrived(&mut self, now: Nanos, segment: &Segment) {
        self.bytes_down += u64::from(segment.packet_bytes());
        self.syn_data_acked |= self.is_taken_by(segment);
        self.is_answered |= segment.syn;
        if let FastOpen::Cookie(key) = segment.fast_open {
            self.new_cookie.get_or_insert(key);
        }
        self.note_end(now, segment);
    }

    fn note_end(&mut self, now: Nanos, segment: &Segment) {
        self.fins[usize::from(!segment.up)] |= segment.fin;
        if self.closed.is_none() && (segment.rst || self.fins == [true, true]) {
            self.closed = Some(now);
        }
    }
}
