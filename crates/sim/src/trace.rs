//! What crossed the wire, segment by segment: for tests and for looking closely.

use firstflight_path::{Dropped, Nanos};
use firstflight_tcp::Segment;

use crate::job::Job;
use crate::load::START;

/// The notes of one load.
#[derive(Debug)]
pub(crate) struct Trace {
    lines: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn new(job: &Job) -> Self {
        Self {
            lines: job.trace.then(Vec::new),
        }
    }

    /// One line per segment sent, arrived or lost: ms since navigation start, then what and where.
    pub(crate) fn lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }

    pub(crate) fn sent(&mut self, now: Nanos, segment: &Segment) {
        self.note(now, "sent", segment);
    }

    pub(crate) fn arrived(&mut self, now: Nanos, segment: &Segment) {
        self.note(now, "arrived", segment);
    }

    pub(crate) fn dropped(&mut self, now: Nanos, segment: &Segment, dropped: Dropped) {
        let why = match dropped {
            Dropped::QueueFull => "full",
            Dropped::Lost => "lost",
            Dropped::Taken => "taken",
        };
        self.note(now, why, segment);
    }

    fn note(&mut self, now: Nanos, what: &str, segment: &Segment) {
        let Some(lines) = &mut self.lines else { return };
        let at = (now - START) as f64 / 1e6;
        let way = if segment.up { "up" } else { "down" };
        lines.push(format!("{at:10.3} {what:7} {way:4} #{} {segment}", segment.conn));
    }
}
