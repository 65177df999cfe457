//! A link as Mahimahi records it: when it can deliver, rather than how fast it is.
//!
//! A trace is a time in ms per line, none before the one above. Each is an opportunity to deliver 1,500 bytes:
//! of one packet, of several, or of a part of one, whose rest has the next opportunity. What comes at the very
//! time of an opportunity is too late for it, and an opportunity, or the rest of one, that finds nothing waiting
//! is lost. After its last time the trace begins again, at once (`link_queue.cc` of Mahimahi).
//!
//! Left out: Mahimahi's four bytes of device header per packet, with which an opportunity has 1,504; a trace
//! that ends rather than begins again (`--once`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// What one opportunity delivers.
const OPPORTUNITY_BYTES: u32 = 1_500;
const MS: Nanos = 1_000_000;
/// Characters of a wrong line that its error shows.
const SHOWN: usize = 20;

/// Times of a link's delivery opportunities, ms since the trace began. A copy costs nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Trace {
    times_ms: Arc<[u32]>,
}

/// Why a text is no trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line that is no number, too large a one, or nothing.
    #[error("line {line}: \"{text}\" is not a time in whole ms")]
    NotATime {
        /// Counts from 1.
        line: usize,
        /// What it begins with.
        text: String,
    },
    /// A time before the one above it.
    #[error("line {line}: {ms} ms comes before the {before} ms of the line above")]
    Decreasing {
        /// Counts from 1.
        line: usize,
        /// Its time.
        ms: u32,
        /// The time above it.
        before: u32,
    },
    /// There is no line.
    #[error("it is empty")]
    Empty,
    /// It would begin again for ever without time going on.
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

    /// How long it is until it begins again, ms.
    pub fn lasts_ms(&self) -> u32 {
        self.times_ms.last().copied().unwrap_or(1)
    }

    /// Opportunities until it begins again.
    pub fn opportunities(&self) -> usize {
        self.times_ms.len()
    }

    /// What it delivers in the mean when something always waits, bit/s.
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

/// A trace that runs, and the opportunity that is at hand.
#[derive(Debug, Clone)]
pub(crate) struct Opportunities {
    trace: Trace,
    began: Nanos,
    /// How often it has begun again.
    lap: u64,
    index: usize,
    /// Bytes that the opportunity at hand can still deliver.
    left: u32,
}

impl Opportunities {
    /// Those of `trace`, which begins at `began`.
    pub(crate) fn new(trace: Trace, began: Nanos) -> Self {
        Self {
            trace,
            began,
            lap: 0,
            index: 0,
            left: OPPORTUNITY_BYTES,
        }
    }

    /// Lets those until `now` go by; when the next one is.
    pub(crate) fn after(&mut self, now: Nanos) -> Nanos {
        if self.at() <= now {
            self.seek(now);
        }
        self.at()
    }

    /// Delivers so many bytes with the opportunity at hand and those that follow; when the last of them leaves.
    pub(crate) fn carry(&mut self, mut bytes: u32) -> Nanos {
        while bytes > self.left {
            bytes -= self.left;
            self.step();
        }
        self.left -= bytes;
        self.at()
    }

    /// When there is room for more.
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
        // The last time is `lasts`, which a remainder does not reach: there is always one after it.
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
