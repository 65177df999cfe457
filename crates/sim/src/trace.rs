//! A trace of the packets on the wire, for tests and for inspection.

use std::fmt;

use firstflight_load::quic;
use firstflight_path::{Direction, Dropped, Ecn, Nanos};
use firstflight_tcp::Segment;

use crate::job::{Job, Traced};
use crate::load::{START, direction};

/// The trace of one load.
#[derive(Debug)]
pub(crate) struct Trace {
    of: Traced,
    lines: Vec<String>,
    /// With [`Traced::First`]: how many packets were sent, and those whose fate is not known yet.
    sent: u32,
    under_way: Vec<(Direction, Sent)>,
}

/// What happened to a packet.
#[derive(Debug, Clone, Copy)]
enum Event {
    Sent,
    Arrived,
    Dropped(Dropped),
}

/// A packet in the trace.
#[derive(Debug, Clone, Copy)]
enum Packet<'a> {
    Segment(&'a Segment),
    Datagram(&'a [u8]),
}

/// A packet that was sent.
#[derive(Debug)]
enum Sent {
    Segment(Segment),
    Datagram(Vec<u8>),
}

impl Trace {
    pub(crate) fn new(job: &Job) -> Self {
        Self {
            of: job.trace,
            lines: Vec::new(),
            sent: 0,
            under_way: Vec::new(),
        }
    }

    /// One line per packet sent, arrived or lost: ms since navigation start, event, direction and packet.
    pub(crate) fn lines(self) -> Vec<String> {
        self.lines
    }

    pub(crate) fn sent(&mut self, now: Nanos, segment: &Segment) {
        self.note_segment(now, Event::Sent, segment);
    }

    pub(crate) fn arrived(&mut self, now: Nanos, segment: &Segment) {
        self.note_segment(now, Event::Arrived, segment);
    }

    pub(crate) fn dropped(&mut self, now: Nanos, segment: &Segment, dropped: Dropped) {
        self.note_segment(now, Event::Dropped(dropped), segment);
    }

    pub(crate) fn datagram_sent(&mut self, now: Nanos, way: Direction, conn: u32, payload: &[u8]) {
        self.note(now, Event::Sent, way, conn, Packet::Datagram(payload));
    }

    pub(crate) fn datagram_arrived(&mut self, now: Nanos, way: Direction, conn: u32, payload: &[u8]) {
        self.note(now, Event::Arrived, way, conn, Packet::Datagram(payload));
    }

    pub(crate) fn datagram_dropped(
        &mut self,
        now: Nanos,
        way: Direction,
        conn: u32,
        payload: &[u8],
        dropped: Dropped,
    ) {
        self.note(now, Event::Dropped(dropped), way, conn, Packet::Datagram(payload));
    }

    fn note_segment(&mut self, now: Nanos, event: Event, segment: &Segment) {
        let packet = Packet::Segment(segment);
        self.note(now, event, direction(segment), segment.conn, packet);
    }

    fn note(&mut self, now: Nanos, event: Event, way: Direction, conn: u32, packet: Packet<'_>) {
        let is_noted = match self.of {
            Traced::Nothing => false,
            Traced::All => true,
            Traced::First { connection, packets } => {
                connection == conn && self.is_of_the_first(packets, event, way, packet)
            }
        };
        if !is_noted {
            return;
        }
        let at = (now - START) as f64 / 1e6;
        let way = match way {
            Direction::Up => "up",
            Direction::Down => "down",
        };
        self.lines
            .push(format!("{at:10.3} {:7} {way:4} #{conn} {packet}", event.name()));
    }

    /// Whether the event concerns one of the first `packets` that were sent.
    fn is_of_the_first(&mut self, packets: u32, event: Event, way: Direction, packet: Packet<'_>) -> bool {
        let is_it = |(sent_way, sent): &(Direction, Sent)| *sent_way == way && packet.is(sent);
        let of = match event {
            Event::Sent => {
                let is_one = self.sent < packets;
                if is_one {
                    self.sent += 1;
                    self.under_way.push((way, packet.to_sent()));
                }
                return is_one;
            }
            // Equal packets arrive in the order in which they were sent. A dropped packet is dropped when it is
            // sent.
            Event::Arrived => self.under_way.iter().position(is_it),
            Event::Dropped(_) => self.under_way.iter().rposition(is_it),
        };
        of.map(|place| self.under_way.remove(place)).is_some()
    }
}

impl Event {
    fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Arrived => "arrived",
            Self::Dropped(Dropped::QueueFull) => "full",
            Self::Dropped(Dropped::Lost) => "lost",
            Self::Dropped(Dropped::Taken) => "taken",
        }
    }
}

impl Packet<'_> {
    fn to_sent(self) -> Sent {
        match self {
            Self::Segment(segment) => Sent::Segment(*segment),
            Self::Datagram(payload) => Sent::Datagram(payload.to_vec()),
        }
    }

    /// Whether it is the packet that was sent. A queue may have marked it meanwhile.
    fn is(self, sent: &Sent) -> bool {
        let unmarked = |segment: &Segment| Segment {
            ecn: Ecn::NotCapable,
            ..*segment
        };
        match (self, sent) {
            (Self::Segment(segment), Sent::Segment(sent)) => unmarked(segment) == unmarked(sent),
            (Self::Datagram(payload), Sent::Datagram(sent)) => payload == sent,
            _ => false,
        }
    }
}

/// A segment in tcpdump's format; for a datagram, its QUIC packets with their lengths.
impl fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segment(segment) => segment.fmt(f),
            Self::Datagram(payload) => {
                for (number, (kind, bytes)) in quic::packets(payload).enumerate() {
                    let between = if number == 0 { "" } else { " + " };
                    write!(f, "{between}{kind:?}:{bytes}")?;
                }
                Ok(())
            }
        }
    }
}
