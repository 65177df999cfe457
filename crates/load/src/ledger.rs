//! The ledger of one connection: what an observer at the client's end sees on the wire.

use firstflight_path::{Action, Direction, Ecn, Nanos, Protocol, TcpFlags};
use serde::Serialize;

use crate::quic::{self, PacketType};

/// The fields of a TCP segment that the ledger reads. Sequence numbers wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its direction.
    pub direction: Direction,
    /// Flags.
    pub flags: TcpFlags,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// Payload, bytes.
    pub payload_bytes: u32,
    /// Size of the whole IP packet, bytes.
    pub packet_bytes: u32,
    /// Its Fast Open option.
    pub option: Cookie,
    /// The cookie in the option, as a number; 0 without one.
    pub cookie: u128,
    /// Its ECN bits.
    pub ecn: EcnBits,
    /// The window field of the header. In a SYN it is not scaled, so it is in bytes.
    pub window: u32,
}

/// The ECN bits of a segment (RFC 3168).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EcnBits {
    /// In the IP header.
    pub ip: Ecn,
    /// ECE, in the TCP header.
    pub ece: bool,
    /// CWR, in the TCP header.
    pub cwr: bool,
}

/// The Fast Open option of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cookie {
    /// No option.
    None,
    /// An empty option: a cookie request.
    Requested,
    /// An option with a cookie.
    Sent,
}

/// The ledger entry of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// TCP, or QUIC over UDP. The fields below about SYNs and segments do not apply to QUIC.
    pub protocol: Protocol,
    /// When the first SYN, or the first datagram, was sent.
    pub opened: Nanos,
    /// Bytes of data in the first SYN.
    pub syn_payload_bytes: u32,
    /// The Fast Open option of the first SYN.
    pub cookie: Cookie,
    /// The cookie in it, as a number; 0 without one.
    pub sent_cookie: u128,
    /// The cookie that a SYN-ACK brought to the client; 0 without one.
    pub new_cookie: u128,
    /// Whether the SYN had data and the SYN-ACK acknowledged all of it.
    pub syn_data_acked: bool,
    /// SYNs after the first.
    pub syn_retransmits: u32,
    /// Retransmitted segments with data, and retransmitted SYN-ACKs, of both sides.
    pub retransmits: u32,
    /// Bytes of IP packets that reached the client.
    pub bytes_down: u64,
    /// Bytes of IP packets the client sent.
    pub bytes_up: u64,
    /// When the first SYN-ACK, or the server's first datagram, reached the client.
    pub answered: Option<Nanos>,
    /// When the connection was closed: by a reset, or by the second FIN.
    pub closed: Option<Nanos>,
    /// The first action of a rule or middlebox on one of its segments.
    pub interfered: Option<Action>,
    /// The client's datagrams that the path dropped, at random or in a queue.
    pub lost_datagrams: u32,
    /// What was seen of ECN.
    pub ecn: EcnSeen,
    /// What the server sent before an acknowledgment could reach it.
    pub first_flight: FirstFlight,
    /// Bytes of data that the client had sent when the server's first data reached it; over UDP, of datagrams.
    pub opening_bytes: u32,
    /// Its `ClientHello`; `None` if it sent none.
    pub hello: Option<Hello>,
    /// Whether the server's first data has reached the client.
    has_heard: bool,
    client_isn: u32,
    server_isn: Option<u32>,
    /// Whether the SYN had data that was not sent again yet.
    syn_data_sent_once: bool,
    syn_acks: u32,
    after_syn_ack: Option<Reply>,
    /// Next expected sequence number, up and down.
    next: [Option<u32>; 2],
    fins: [bool; 2],
}

/// A `ClientHello`, and the early data behind it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hello {
    /// Whether it offers to resume a session of TLS 1.3.
    pub offers_session: bool,
    /// Whether it announces early data.
    pub offers_early_data: bool,
    /// Bytes of records with early data that the client had sent when the server's first data reached it; over UDP,
    /// of 0-RTT packets, which it may send until the handshake is done.
    pub early_data_bytes: u32,
}

/// The ECN bits seen on a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EcnSeen {
    /// Of the first SYN.
    pub syn: EcnBits,
    /// Of the first SYN-ACK, as its server sent it.
    pub syn_ack: Option<EcnBits>,
    /// Segments of new data from the server with ECT or CE, which a queue could mark.
    pub capable: u32,
    /// Segments of new data from the server without ECT. Over QUIC all its datagrams count.
    pub incapable: u32,
}

impl EcnSeen {
    fn count(&mut self, ecn: Ecn) {
        match ecn {
            Ecn::NotCapable => self.incapable += 1,
            Ecn::Capable | Ecn::Marked => self.capable += 1,
        }
    }
}

/// The longest IP packet that links carry, bytes.
const MTU: u32 = 1_500;
/// After a pause this long, ns, a sender is no longer in the middle of writing a burst.
const STILL: Nanos = 5_000_000;

/// The server's first flight: what it sends before an acknowledgment can reach it, at most an initial window (RFC
/// 6928).
///
/// It ends when the client, having received some of it, sends its next segment. So all counted segments left before
/// any acknowledgment. Segments that leave while that one is on its way are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FirstFlight {
    /// Segments of new data.
    pub segments: u32,
    /// Segments of new data that came alone and after a pause. They may be loss probes, which may exceed the window
    /// (RFC 8985, section 7.3).
    pub probes: u32,
    /// Whether the server had more data, but sent it only after the client had answered.
    pub is_held: bool,
    /// The window that the client's SYN announced, bytes.
    pub window: u32,
    stage: Stage,
    last: Nanos,
    ends_full: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// Nothing of it has reached the client.
    #[default]
    Sending,
    /// Some of it has reached the client, and the client has not answered.
    Arriving,
    /// The client has answered. Before that the server had paused, and its last segment was full.
    Still,
    Over,
}

impl FirstFlight {
    /// `header_bytes`: header bytes of the packet, and of each segment that it is cut into.
    fn sent(&mut self, now: Nanos, payload_bytes: u32, header_bytes: u32) {
        match self.stage {
            Stage::Sending | Stage::Arriving => {
                // The path cuts a GSO bundle into segments. Segments shorter than this would be more in number.
                let full = MTU - header_bytes;
                let segments = payload_bytes.div_ceil(full);
                let may_probe = self.segments > 0 && segments == 1 && now >= self.last + STILL;
                let count = if may_probe {
                    &mut self.probes
                } else {
                    &mut self.segments
                };
                *count += segments;
                self.ends_full = payload_bytes.is_multiple_of(full);
                self.last = now;
            }
            Stage::Still => {
                self.is_held = true;
                self.stage = Stage::Over;
            }
            Stage::Over => {}
        }
    }

    fn arrived(&mut self) {
        if self.stage == Stage::Sending {
            self.stage = Stage::Arriving;
        }
    }

    /// The client sends a segment. If it is a new request, or after a loss, it may itself be why the server goes
    /// on.
    fn answered(&mut self, now: Nanos, payload_bytes: u32, is_disturbed: bool) {
        let is_still = self.ends_full && now >= self.last + STILL;
        self.stage = match self.stage {
            Stage::Sending => Stage::Sending,
            _ if payload_bytes > 0 || is_disturbed => Stage::Over,
            Stage::Arriving if is_still => Stage::Still,
            Stage::Arriving => Stage::Over,
            later => later,
        };
    }
}

/// The client's first segment after its SYNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    /// An acknowledgment: its socket is open.
    Socket,
    /// A reset without ACK: its socket is closed (RFC 9293, section 3.10.7.1).
    NoSocket,
}

impl Reply {
    fn of(segment: &Segment) -> Option<Self> {
        match (segment.flags.ack, segment.flags.rst) {
            (true, _) => Some(Self::Socket),
            (false, true) => Some(Self::NoSocket),
            (false, false) => None,
        }
    }
}

impl Entry {
    /// The entry for the client's first SYN. The SYN itself must still be passed to [`sent`](Self::sent).
    pub fn new(now: Nanos, syn: &Segment) -> Self {
        Self {
            protocol: Protocol::Tcp,
            opened: now,
            syn_payload_bytes: syn.payload_bytes,
            cookie: syn.option,
            sent_cookie: syn.cookie,
            new_cookie: 0,
            syn_data_acked: false,
            syn_retransmits: 0,
            retransmits: 0,
            bytes_down: 0,
            bytes_up: 0,
            answered: None,
            closed: None,
            interfered: None,
            lost_datagrams: 0,
            ecn: EcnSeen {
                syn: syn.ecn,
                ..EcnSeen::default()
            },
            first_flight: FirstFlight {
                window: syn.window,
                ..FirstFlight::default()
            },
            opening_bytes: 0,
            hello: None,
            has_heard: false,
            client_isn: syn.sequence,
            server_isn: None,
            syn_data_sent_once: syn.payload_bytes > 0,
            syn_acks: 0,
            after_syn_ack: None,
            next: [None; 2],
            fins: [false; 2],
        }
    }

    /// The entry for the client's first datagram, which must still be passed to
    /// [`datagram_sent`](Self::datagram_sent).
    pub fn over_udp(now: Nanos) -> Self {
        let no_syn = Segment {
            direction: Direction::Up,
            flags: TcpFlags::default(),
            sequence: 0,
            acknowledgment: 0,
            payload_bytes: 0,
            packet_bytes: 0,
            option: Cookie::None,
            cookie: 0,
            ecn: EcnBits::default(),
            window: 0,
        };
        Self {
            protocol: Protocol::Udp,
            ..Self::new(now, &no_syn)
        }
    }

    /// A datagram enters the path, in an IP packet of `packet_bytes` with the ECN field `ecn`.
    pub fn datagram_sent(&mut self, direction: Direction, packet_bytes: u32, payload: &[u8], ecn: Ecn) {
        if direction == Direction::Down {
            return self.ecn.count(ecn);
        }
        self.bytes_up += u64::from(packet_bytes);
        if !self.has_heard {
            self.opening_bytes += payload.len() as u32;
        }
        let early: u32 = quic::packets(payload)
            .filter(|(kind, _)| *kind == PacketType::ZeroRtt)
            .map(|(_, bytes)| bytes)
            .sum();
        let hello = self.hello.get_or_insert_default();
        hello.early_data_bytes += early;
        hello.offers_early_data |= early > 0;
    }

    /// The path dropped a datagram that was passed to [`datagram_sent`](Self::datagram_sent) in this direction.
    pub fn datagram_dropped(&mut self, direction: Direction) {
        self.lost_datagrams += u32::from(direction == Direction::Up);
    }

    /// A datagram reaches the client, in an IP packet of `packet_bytes`.
    pub fn datagram_arrived(&mut self, now: Nanos, packet_bytes: u32) {
        self.bytes_down += u64::from(packet_bytes);
        self.answered.get_or_insert(now);
        self.has_heard = true;
    }

    /// The initial sequence numbers of the client and, after its SYN-ACK, of the server.
    #[inline]
    pub fn isns(&self) -> (u32, Option<u32>) {
        (self.client_isn, self.server_isn)
    }

    /// Whether the server's first data has reached the client.
    pub fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// Whether the SYN carried data. Linux sends none with a cookie request; another stack may.
    #[inline]
    pub fn offered(&self) -> bool {
        self.syn_payload_bytes > 0
    }

    /// Whether the server accepted the SYN's data.
    #[inline]
    pub fn accepted(&self) -> bool {
        self.offered() && self.syn_data_acked
    }

    /// Whether the client had closed its socket before the SYN-ACK came.
    pub fn deserted(&self) -> bool {
        self.after_syn_ack == Some(Reply::NoSocket)
    }

    /// Whether `segment` is a SYN-ACK that acknowledges the SYN's data.
    #[inline]
    pub fn is_taken_by(&self, segment: &Segment) -> bool {
        let first = self.client_isn.wrapping_add(1);
        let is_syn_ack = segment.flags.syn && segment.flags.ack;
        is_syn_ack
            && self.syn_payload_bytes > 0
            && segment.acknowledgment.wrapping_sub(first) == self.syn_payload_bytes
    }

    /// A segment enters the path.
    #[inline]
    pub fn sent(&mut self, now: Nanos, segment: &Segment) {
        match segment.direction {
            Direction::Up => {
                self.bytes_up += u64::from(segment.packet_bytes);
                if segment.flags.syn && self.next[0].is_some() {
                    self.syn_retransmits += 1;
                    return;
                }
                if !segment.flags.syn {
                    let is_disturbed = self.retransmits > 0 || self.syn_retransmits > 0;
                    self.first_flight
                        .answered(now, segment.payload_bytes, is_disturbed);
                }
                self.note_end(now, segment);
                self.after_syn_ack = self.after_syn_ack.or(Reply::of(segment));
            }
            Direction::Down if segment.flags.syn => {
                self.syn_acks += 1;
                self.ecn.syn_ack.get_or_insert(segment.ecn);
                self.retransmits += u32::from(self.syn_acks > 1);
                // A server that answers early has sent data behind the SYN-ACK before it sends the SYN-ACK again.
                if self.server_isn.replace(segment.sequence) != Some(segment.sequence) {
                    self.next[1] = Some(segment.sequence.wrapping_add(1));
                }
                return;
            }
            Direction::Down => {}
        }
        self.follow(now, segment);
    }

    /// Counts data below the highest sequence number seen as a retransmission.
    #[inline]
    fn follow(&mut self, now: Nanos, segment: &Segment) {
        let side = side(segment);
        let length = segment.payload_bytes + u32::from(segment.flags.syn) + u32::from(segment.flags.fin);
        let end = segment.sequence.wrapping_add(length);
        // Fast Open: the client sends SYN data that the server did not accept again with the handshake's last
        // segment (RFC 7413, section 4.2.1). The first such copy is no loss; a second one is.
        let refused_syn_data = segment.direction == Direction::Up
            && segment.payload_bytes > 0
            && segment.sequence == self.client_isn.wrapping_add(1)
            && std::mem::take(&mut self.syn_data_sent_once)
            && !self.syn_data_acked;
        let is_new = |next: u32| segment.sequence.wrapping_sub(next).cast_signed() >= 0;
        if segment.direction == Direction::Down
            && segment.payload_bytes > 0
            && self.next[side].is_some_and(is_new)
        {
            self.on_new_data(now, segment);
        }
        match self.next[side] {
            Some(next) if end.wrapping_sub(next).cast_signed() <= 0 => {
                self.retransmits += u32::from(segment.payload_bytes > 0 && !refused_syn_data);
            }
            _ => self.next[side] = Some(end),
        }
        if segment.direction == Direction::Up && segment.payload_bytes > 0 && !self.has_heard {
            let start = segment.sequence.wrapping_add(u32::from(segment.flags.syn));
            let sent = start.wrapping_sub(self.client_isn.wrapping_add(1)) + segment.payload_bytes;
            self.opening_bytes = self.opening_bytes.max(sent);
        }
    }

    /// The server sends data for the first time.
    #[inline]
    fn on_new_data(&mut self, now: Nanos, segment: &Segment) {
        let header_bytes = segment.packet_bytes - segment.payload_bytes;
        self.first_flight.sent(now, segment.payload_bytes, header_bytes);
        self.ecn.count(segment.ecn.ip);
    }

    /// A segment reaches the client.
    #[inline]
    pub fn arrived(&mut self, now: Nanos, segment: &Segment) {
        self.bytes_down += u64::from(segment.packet_bytes);
        if segment.flags.syn {
            self.answered.get_or_insert(now);
            if self.new_cookie == 0 {
                self.new_cookie = segment.cookie;
            }
        }
        if segment.payload_bytes > 0 {
            self.first_flight.arrived();
            self.has_heard = true;
        }
        self.syn_data_acked |= self.is_taken_by(segment);
        self.note_end(now, segment);
    }

    #[inline]
    fn note_end(&mut self, now: Nanos, segment: &Segment) {
        self.fins[side(segment)] |= segment.flags.fin;
        if self.closed.is_none() && (segment.flags.rst || self.fins == [true, true]) {
            self.closed = Some(now);
        }
    }
}

fn side(segment: &Segment) -> usize {
    usize::from(segment.direction == Direction::Down)
}

/// Counts over all connections of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Connections.
    pub connections: u64,
    /// SYNs with a cookie request.
    pub asked: u64,
    /// SYNs with data.
    pub offered: u64,
    /// SYNs whose data was acknowledged.
    pub accepted: u64,
    /// Connections whose client received a cookie.
    pub given: u64,
    /// Connections on which a rule or middlebox acted.
    pub interfered: u64,
}

impl<'a> FromIterator<&'a Entry> for Count {
    fn from_iter<T: IntoIterator<Item = &'a Entry>>(entries: T) -> Self {
        let mut count = Self::default();
        for entry in entries {
            count.connections += 1;
            count.asked += u64::from(entry.cookie == Cookie::Requested);
            count.offered += u64::from(entry.offered());
            count.accepted += u64::from(entry.accepted());
            count.given += u64::from(entry.new_cookie != 0);
            count.interfered += u64::from(entry.interfered.is_some());
        }
        count
    }
}
