//! What crossed the wire, segment by segment, and losses made on purpose: for tests and for looking closely.

use firstflight_path::{Dropped, Nanos};
use serde::Deserialize;

use crate::job::Job;
use crate::load::START;
use crate::segment::{FastOpen, Segment};
use crate::tcp::MSS;

/// Which segments of a load a test loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lose {
    /// What is lost.
    pub what: What,
    /// How many of those that fit are let through first.
    pub after: u32,
    /// How many are lost then.
    pub times: u32,
}

/// A kind of segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A SYN, with data or without.
    Syn,
    /// A SYN-ACK.
    SynAck,
    /// Data of the client, outside a SYN.
    Request,
    /// Data of a server.
    Response,
    /// The last segment of what a server has written, if it is not a full one.
    Tail,
    /// An acknowledgment of the client without data.
    Ack,
}

impl What {
    fn fits(self, segment: &Segment) -> bool {
        let has_data = segment.len > 0 && !segment.syn;
        match self {
            Self::Syn => segment.syn && segment.up,
            Self::SynAck => segment.syn && !segment.up,
            Self::Request => segment.up && has_data,
            Self::Response => !segment.up && has_data,
            Self::Tail => !segment.up && has_data && segment.psh && segment.len < MSS,
            Self::Ack => segment.up && !segment.syn && segment.len == 0,
        }
    }
}

/// Whether a segment goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It does.
    Spared,
    /// A test has it lost.
    Taken,
}

/// The notes of one load.
#[derive(Debug)]
pub(crate) struct Trace {
    lines: Option<Vec<String>>,
    losses: Vec<(Lose, u32)>,
}

impl Trace {
    pub(crate) fn new(job: &Job) -> Self {
        Self {
            lines: job.trace.then(Vec::new),
            losses: job.lose.iter().map(|lose| (*lose, 0)).collect(),
        }
    }

    /// One line per segment sent, arrived or lost: ms since navigation start, then what and where.
    pub(crate) fn lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }

    pub(crate) fn sent(&mut self, now: Nanos, segment: &Segment) -> Loss {
        self.note(now, "sent", segment);
        let mut loss = Loss::Spared;
        for (lose, seen) in &mut self.losses {
            if lose.what.fits(segment) {
                *seen += 1;
                if *seen > lose.after && *seen <= lose.after + lose.times {
                    loss = Loss::Taken;
                }
            }
        }
        if loss == Loss::Taken {
            self.note(now, "taken", segment);
        }
        loss
    }

    pub(crate) fn arrived(&mut self, now: Nanos, segment: &Segment) {
        self.note(now, "arrived", segment);
    }

    pub(crate) fn dropped(&mut self, now: Nanos, segment: &Segment, dropped: Dropped) {
        let why = match dropped {
            Dropped::QueueFull => "full",
            Dropped::Lost => "lost",
        };
        self.note(now, why, segment);
    }

    fn note(&mut self, now: Nanos, what: &str, segment: &Segment) {
        let Some(lines) = &mut self.lines else { return };
        let flag = |set: bool, letter: &'static str| if set { letter } else { "" };
        let at = (now - START) as f64 / 1e6;
        let sacks: Vec<_> = segment
            .sacks
            .blocks()
            .iter()
            .map(|(from, to)| format!("{from}-{to}"))
            .collect();
        lines.push(format!(
            "{at:10.3} {what:7} {} #{} {}{}{}{}{} {}+{} ack {} win {}{}{}",
            if segment.up { "up  " } else { "down" },
            segment.conn,
            flag(segment.syn, "S"),
            flag(segment.fin, "F"),
            flag(segment.rst, "R"),
            flag(segment.psh, "P"),
            flag(segment.ack, "."),
            segment.seq,
            segment.len,
            segment.ack_no,
            segment.window,
            if segment.fast_open == FastOpen::Absent {
                ""
            } else {
                " tfo"
            },
            if sacks.is_empty() {
                String::new()
            } else {
                format!(" sack {}", sacks.join(","))
            },
        ));
    }
}
