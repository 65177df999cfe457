//! A trace of the packets on the wire, for tests and for inspection.

use std::collections::HashMap;
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
    /// How many packets each connection has sent.
    sent: HashMap<u32, u32>,
    under_way: Vec<UnderWay>,
}

/// A packet whose fate is not known yet.
#[derive(Debug)]
struct UnderWay {
    way: Direction,
    conn: u32,
    /// Its place among the packets of its connection, from 1.
    number: u32,
    sent: Sent,
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
            sent: HashMap::new(),
            under_way: Vec::new(),
        }
    }

    /// One line per packet sent, arrived or lost: ms since navigation start, event, direction and packet. A line about
    /// a lost packet also has its number among the packets that the connection sent, because packets may look alike.
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
        let first = match self.of {
            Traced::All => None,
            Traced::First { connection, packets } if connection == conn => Some(packets),
            Traced::Nothing | Traced::First { .. } => return,
        };
        let number = match event {
            Event::Sent => Some(self.follow(way, conn, packet, first)),
            Event::Arrived | Event::Dropped(_) => self.end(event, way, conn, packet),
        };
        if first.is_some_and(|packets| number.is_none_or(|number| number > packets)) {
            return;
        }
        let at = (now - START) as f64 / 1e6;
        let way = match way {
            Direction::Up => "up",
            Direction::Down => "down",
        };
        let dropped = match (event, number) {
            (Event::Dropped(_), Some(number)) => format!(", packet {number}"),
            _ => String::new(),
        };
        self.lines.push(format!(
            "{at:10.3} {:7} {way:4} #{conn} {packet}{dropped}",
            event.name()
        ));
    }

    /// Numbers a packet that is sent. It is remembered until its end if it is one of the `first` packets.
    fn follow(&mut self, way: Direction, conn: u32, packet: Packet<'_>, first: Option<u32>) -> u32 {
        let sent = self.sent.entry(conn).or_default();
        *sent += 1;
        let number = *sent;
        if first.is_none_or(|packets| number <= packets) {
            let sent = packet.to_sent();
            self.under_way.push(UnderWay {
                way,
                conn,
                number,
                sent,
            });
        }
        number
    }

    /// The number of a packet that arrives or is dropped; `None` for one that was not sent so, such as a duplicate.
    fn end(&mut self, event: Event, way: Direction, conn: u32, packet: Packet<'_>) -> Option<u32> {
        let is_it = |sent: &UnderWay| sent.way == way && sent.conn == conn && packet.is(&sent.sent);
        // Equal segments arrive in the order in which they were sent; most are dropped when they are sent.
        let place = match event {
            Event::Dropped(_) => self.under_way.iter().rposition(is_it),
            Event::Sent | Event::Arrived => self.under_way.iter().position(is_it),
        };
        Some(self.under_way.remove(place?).number)
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
