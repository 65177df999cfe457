//! What crossed the wire, packet by packet: for tests and for looking closely.

use firstflight_load::quic;
use firstflight_path::{Direction, Dropped, Nanos};
use firstflight_tcp::Segment;

use crate::job::{Job, Traced};
use crate::load::START;

/// The notes of one load.
#[derive(Debug)]
pub(crate) struct Trace {
    of: Traced,
    lines: Vec<String>,
}

impl Trace {
    pub(crate) fn new(job: &Job) -> Self {
        Self {
            of: job.trace,
            lines: Vec::new(),
        }
    }

    /// One line per packet sent, arrived or lost: ms since navigation start, then what and where.
    pub(crate) fn lines(self) -> Vec<String> {
        self.lines
    }

    pub(crate) fn sent(&mut self, now: Nanos, segment: &Segment) {
        self.note(now, "sent", segment);
    }

    pub(crate) fn arrived(&mut self, now: Nanos, segment: &Segment) {
        self.note(now, "arrived", segment);
    }

    pub(crate) fn dropped(&mut self, now: Nanos, segment: &Segment, dropped: Dropped) {
        self.note(now, why(dropped), segment);
    }

    pub(crate) fn datagram_sent(&mut self, now: Nanos, direction: Direction, conn: u32, payload: &[u8]) {
        self.note_datagram(now, "sent", direction, conn, payload);
    }

    pub(crate) fn datagram_arrived(&mut self, now: Nanos, direction: Direction, conn: u32, payload: &[u8]) {
        self.note_datagram(now, "arrived", direction, conn, payload);
    }

    pub(crate) fn datagram_dropped(
        &mut self,
        now: Nanos,
        direction: Direction,
        conn: u32,
        payload: &[u8],
        dropped: Dropped,
    ) {
        self.note_datagram(now, why(dropped), direction, conn, payload);
    }

    fn note(&mut self, now: Nanos, what: &str, segment: &Segment) {
        if !self.of.includes(segment.conn) {
            return;
        }
        let way = if segment.up {
            Direction::Up
        } else {
            Direction::Down
        };
        self.lines.push(line(now, what, way, segment.conn, segment));
    }

    /// The packets in it with their lengths.
    fn note_datagram(&mut self, now: Nanos, what: &str, way: Direction, conn: u32, payload: &[u8]) {
        if !self.of.includes(conn) {
            return;
        }
        let packets: Vec<_> = quic::packets(payload)
            .map(|(kind, bytes)| format!("{kind:?}:{bytes}"))
            .collect();
        self.lines.push(line(now, what, way, conn, packets.join(" + ")));
    }
}

fn why(dropped: Dropped) -> &'static str {
    match dropped {
        Dropped::QueueFull => "full",
        Dropped::Lost => "lost",
        Dropped::Taken => "taken",
    }
}

fn line(now: Nanos, what: &str, way: Direction, conn: u32, packet: impl std::fmt::Display) -> String {
    let at = (now - START) as f64 / 1e6;
    let way = match way {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    format!("{at:10.3} {what:7} {way:4} #{conn} {packet}")
}
