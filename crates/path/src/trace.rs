//! A link as Mahimahi records it: a list of delivery opportunities instead of a rate.
//!
//! A trace has one time in ms per line, in order. Each time is an opportunity to deliver 1,500 bytes: one packet,
//! several, or a part of one, whose rest takes the next opportunity. A packet that arrives exactly at the time of
//! an opportunity is too late for it. An opportunity, or the rest of one, that finds no packet is lost. After its
//! last time the trace starts again at once (`link_queue.cc` of Mahimahi).
//!
//! Left out: Mahimahi's four bytes of device header per packet, which make its opportunities 1,504 bytes; and
//! traces that end instead of repeating (`--once`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Bytes that one opportunity delivers.
const OPPORTUNITY_BYTES: u32 = 1_500;
const MS: Nanos = 1_000_000;
/// How many characters of a wrong line its error shows.
const SHOWN: usize = 20;

/// Times of a link's delivery opportunities, ms since the trace began. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Trace {
    times_ms: Arc<[u32]>,
}

/// Why a text is not a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line that is empty, no number, or too large a number.
    #[error("line {line}: \"{text}\" is not a time in whole ms")]
    NotATime {
        /// Its line number, from 1.
        line: usize,
        /// The beginning of the line.
        text: String,
    },
    /// A time before the one above it.
    #[error("line {line}: {ms} ms comes before the {before} ms of the line above")]
    Decreasing {
        /// Its line number, from 1.
        line: usize,
        /// Its time.
        ms: u32,
        /// The time above it.
        before: u32,
    },
    /// The text has no line.
    #[error("it is empty")]
    Empty,
    /// All times are 0, so that the trace would repeat without time going on.
    #[error("it lasts 0 ms: every line is 0")]
    NoTime,
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// [`TraceError`] naming the first line that is wrong.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times_ms = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let (line, text) = (index + 1, line.trim());
            let ms = text.parse::<u32>().map_err(|_| TraceError::NotATime {
                line,
                text: text.chars().take(SHOWN).collect(),
            })?;
            let before = times_ms.last().copied().unwrap_or(0);
            if ms < before {
                return Err(TraceError::Decreasing { line, ms, before });
            }
            times_ms.push(ms);
        }
        match times_ms.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoTime),
            Some(_) => Ok(Self {
                times_ms: times_ms.into(),
            }),
        }
    }

    /// Length of the trace until it repeats, ms.
    pub fn lasts_ms(&self) -> u32 {
        self.times_ms.last().copied().unwrap_or(1)
    }

    /// Number of opportunities until the trace repeats.
    pub fn opportunities(&self) -> usize {
        self.times_ms.len()
    }

    /// Mean rate of a link that always has packets waiting, bit/s.
    pub fn mean_bps(&self) -> u64 {
        let bits = self.opportunities() as u64 * u64::from(OPPORTUNITY_BYTES) * 8;
        bits * 1_000 / u64::from(self.lasts_ms())
    }
}

impl TryFrom<String> for Trace {
    type Error = TraceError;

    fn try_from(text: String) -> Result<Self, TraceError> {
        Self::parse(&text)
    }
}

impl From<Trace> for String {
    fn from(trace: Trace) -> Self {
        let lines: Vec<String> = trace.times_ms.iter().map(u32::to_string).collect();
        lines.join("\n")
    }
}

/// A running trace, and its current opportunity.
#[derive(Debug, Clone)]
pub(crate) struct Opportunities {
    trace: Trace,
    began: Nanos,
    /// How often the trace has repeated.
    lap: u64,
    index: usize,
    /// Bytes that the current opportunity can still deliver.
    left: u32,
}

impl Opportunities {
    /// The opportunities of `trace`, which begins at `began`.
    pub(crate) fn new(trace: Trace, began: Nanos) -> Self {
        Self {
            trace,
            began,
            lap: 0,
            index: 0,
            left: OPPORTUNITY_BYTES,
        }
    }

    /// Skips the opportunities up to `now`. Returns the time of the next one.
    pub(crate) fn after(&mut self, now: Nanos) -> Nanos {
        if self.at() <= now {
            self.seek(now);
        }
        self.at()
    }

    /// Uses the current opportunity, and those after it, for `bytes`. Returns when the last byte leaves.
    pub(crate) fn carry(&mut self, mut bytes: u32) -> Nanos {
        while bytes > self.left {
            bytes -= self.left;
            self.step();
        }
        self.left -= bytes;
        self.at()
    }

    /// When the next bytes can leave.
    pub(crate) fn room(&mut self) -> Nanos {
        if self.left == 0 {
            self.step();
        }
        self.at()
    }

    fn at(&self) -> Nanos {
        let ms = self.lap * u64::from(self.trace.lasts_ms()) + u64::from(self.trace.times_ms[self.index]);
        self.began + ms * MS
    }

    fn seek(&mut self, now: Nanos) {
        let (passed, lasts) = ((now - self.began) / MS, u64::from(self.trace.lasts_ms()));
        self.lap = passed / lasts;
        // The last time equals `lasts`, and the remainder is below it: a later time always exists.
        self.index = self
            .trace
            .times_ms
            .partition_point(|&ms| u64::from(ms) <= passed % lasts);
        self.left = OPPORTUNITY_BYTES;
    }

    fn step(&mut self) {
        self.index += 1;
        if self.index == self.trace.opportunities() {
            self.index = 0;
            self.lap += 1;
        }
        self.left = OPPORTUNITY_BYTES;
    }
}
