//! The settings of a path.

use serde::{Deserialize, Serialize};

use crate::capacity::Capacity;
use crate::trace::Opportunities;
use crate::{Burst, Direction, Middlebox, Nanos, Rule, Trace};

/// Largest round-trip time a path may have, ms.
const MAX_RTT_MS: f64 = 10_000.0;
/// Slowest and fastest link, bit/s.
const RATES_BPS: std::ops::RangeInclusive<u64> = 1_000..=100_000_000_000;

/// A path between the client and every origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PathConfig {
    /// Whether origins share a link.
    pub topology: Topology,
    /// Round-trip propagation time, ms; half of it each way. Serialisation and queueing come on top.
    pub rtt_ms: f64,
    /// Rate towards the client, bit/s; `None` for an unlimited rate.
    pub down_bps: Option<u64>,
    /// Rate towards the origins, bit/s; `None` for an unlimited rate.
    pub up_bps: Option<u64>,
    /// Delivery trace towards the client. It replaces `down_bps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_trace: Option<Trace>,
    /// Delivery trace towards the origins. It replaces `up_bps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_trace: Option<Trace>,
    /// Buffer in front of each link.
    pub queue: Queue,
    /// Whether CoDel and PIE mark packets of ECN-capable senders instead of dropping them (RFC 3168).
    pub ecn: bool,
    /// Probability that a packet is lost on a link, each direction, 0 to 1.
    pub loss: f64,
    /// How losses come in bursts; without it each packet is lost independently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// Longest additional delay of a packet each way, ms. The delay is uniform from 0 to this value.
    pub jitter_ms: f64,
    /// Whether jitter may let a packet overtake another of the same origin and direction.
    pub reorder: bool,
    /// Probability that a packet that has left a link arrives twice, each direction, 0 to 1.
    pub duplicate: f64,
    /// Seed of everything random on the path; see [`Purpose`](crate::Purpose).
    pub seed: u64,
    /// Round-trip times of single origins, ms, by origin index. Origins that are not listed have `rtt_ms`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub origin_rtt_ms: Vec<f64>,
    /// Rules that act on single segments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<Rule>,
    /// The middlebox between the client and some of the origins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub middlebox: Option<Middlebox>,
}

impl Default for PathConfig {
    fn default() -> Self {
        Self {
            topology: Topology::Access,
            rtt_ms: 0.0,
            down_bps: None,
            up_bps: None,
            down_trace: None,
            up_trace: None,
            queue: Queue::default(),
            ecn: false,
            loss: 0.0,
            burst: None,
            jitter_ms: 0.0,
            reorder: false,
            duplicate: 0.0,
            seed: 1,
            origin_rtt_ms: Vec::new(),
            interference: Vec::new(),
            middlebox: None,
        }
    }
}

/// Whether origins share a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    /// One access link at the client, shared by all origins, as in the paper.
    Access,
    /// Each origin has a link of its own, as in the course.
    Star,
}

/// The buffer in front of a link, and which packets it drops. The packet being serialised counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Queue {
    /// Drop-tail: at most this many packets.
    Packets(usize),
    /// Drop-tail: at most this many bytes.
    Bytes(u64),
    /// Drop-tail: drops a packet that would wait longer than this, ms.
    Ms(u32),
    /// No limit.
    Unlimited,
    /// CoDel with the values of RFC 8289: 5 ms, 100 ms; at most 1,000 packets.
    Codel,
    /// PIE with the values of RFC 8033: 15 ms; at most 1,000 packets.
    Pie,
}

impl Default for Queue {
    /// 1,000 packets, Linux's customary `txqueuelen` and netem's default limit.
    fn default() -> Self {
        Self::Packets(1_000)
    }
}

/// A setting that is out of range: its key, and what it may be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("path.{key}: {value} is not possible; use {allowed}")]
pub struct PathError {
    /// The key that is wrong.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// The values that are allowed.
    pub allowed: String,
}

impl PathConfig {
    /// Checks every value.
    ///
    /// # Errors
    /// [`PathError`] naming the first key that is out of range.
    pub fn validate(&self) -> Result<(), PathError> {
        let refuse = |key, value: String, allowed: String| Err(PathError { key, value, allowed });
        for &rtt_ms in std::iter::once(&self.rtt_ms).chain(&self.origin_rtt_ms) {
            if !(0.0..=MAX_RTT_MS).contains(&rtt_ms) {
                return refuse("rtt_ms", rtt_ms.to_string(), format!("0 to {MAX_RTT_MS} ms"));
            }
        }
        for (key, rate) in [("down_bps", self.down_bps), ("up_bps", self.up_bps)] {
            if let Some(rate) = rate.filter(|rate| !RATES_BPS.contains(rate)) {
                let allowed = format!("{} to {} bit/s", RATES_BPS.start(), RATES_BPS.end());
                return refuse(key, rate.to_string(), allowed);
            }
        }
        for (key, rate, trace) in [
            ("down_trace", self.down_bps, &self.down_trace),
            ("up_trace", self.up_bps, &self.up_trace),
        ] {
            if let (Some(rate), Some(_)) = (rate, trace) {
                return refuse(key, format!("a trace beside {rate} bit/s"), "either".to_owned());
            }
        }
        if self.ecn && !matches!(self.queue, Queue::Codel | Queue::Pie) {
            let allowed = "codel or pie as queue: no other marks".to_owned();
            return refuse("ecn", "true".to_owned(), allowed);
        }
        if !(0.0..1.0).contains(&self.loss) {
            return refuse("loss", self.loss.to_string(), "0 to less than 1".to_owned());
        }
        if let Some(burst) = self.burst.filter(|burst| !burst.is_possible(self.loss)) {
            let allowed =
                "a mean of 1 packet at least, and a loss in it above the path's and up to 1".to_owned();
            return refuse(
                "burst",
                format!("{} packets, {}", burst.packets, burst.loss),
                allowed,
            );
        }
        if !(0.0..=MAX_RTT_MS).contains(&self.jitter_ms) {
            return refuse(
                "jitter_ms",
                self.jitter_ms.to_string(),
                format!("0 to {MAX_RTT_MS} ms"),
            );
        }
        if !(0.0..=1.0).contains(&self.duplicate) {
            return refuse("duplicate", self.duplicate.to_string(), "0 to 1".to_owned());
        }
        if matches!(self.queue, Queue::Packets(0) | Queue::Bytes(0) | Queue::Ms(0)) {
            return refuse("queue", "0".to_owned(), "room for one packet at least".to_owned());
        }
        if self
            .interference
            .iter()
            .any(|rule| rule.nth == 0 || rule.count == 0)
        {
            let allowed = "nth and count from 1".to_owned();
            return refuse("interference", "0".to_owned(), allowed);
        }
        if let Some(Middlebox { share, .. }) = self.middlebox
            && !(share > 0.0 && share <= 1.0)
        {
            return refuse(
                "middlebox",
                share.to_string(),
                "a share above 0 and up to 1".to_owned(),
            );
        }
        Ok(())
    }

    /// Whether packets may be lost or changed other than by a full queue.
    pub fn may_lose(&self) -> bool {
        self.loss > 0.0 || self.may_interfere()
    }

    /// Whether a rule or a middlebox may act on packets.
    pub fn may_interfere(&self) -> bool {
        !self.interference.is_empty() || self.middlebox.is_some()
    }

    /// Rate in `direction`, bit/s; the mean rate of a trace; `None` for an unlimited rate.
    pub fn rate_bps(&self, direction: Direction) -> Option<u64> {
        let (rate_bps, trace) = self.link(direction);
        trace.map(Trace::mean_bps).or(rate_bps)
    }

    /// The trace in `direction`.
    pub fn trace(&self, direction: Direction) -> Option<&Trace> {
        self.link(direction).1
    }

    /// How a link in `direction` delivers. A trace starts at `began`.
    pub(crate) fn capacity(&self, direction: Direction, began: Nanos) -> Capacity {
        match self.link(direction) {
            (_, Some(trace)) => Capacity::Trace(Opportunities::new(trace.clone(), began)),
            (Some(rate_bps), None) => Capacity::Rate(rate_bps),
            (None, None) => Capacity::Unlimited,
        }
    }

    fn link(&self, direction: Direction) -> (Option<u64>, Option<&Trace>) {
        match direction {
            Direction::Up => (self.up_bps, self.up_trace.as_ref()),
            Direction::Down => (self.down_bps, self.down_trace.as_ref()),
        }
    }

    /// Whether every packet of a direction arrives once and takes equally long: no rate, no loss, one delay.
    pub fn is_pure_delay(&self) -> bool {
        let is_unlimited = |direction| self.rate_bps(direction).is_none();
        is_unlimited(Direction::Down)
            && is_unlimited(Direction::Up)
            && self.jitter_ms == 0.0
            && self.duplicate == 0.0
            && !self.may_lose()
    }

    /// The longest additional delay of a packet.
    pub(crate) fn longest_jitter(&self) -> Nanos {
        (self.jitter_ms * 1e6).round() as Nanos
    }

    /// Whether all origins have the same round-trip time.
    pub(crate) fn is_uniform(&self) -> bool {
        (0..=self.origin_rtt_ms.len())
            .map(|origin| self.one_way(origin))
            .is_sorted_by(|a, b| a == b)
    }

    /// One-way propagation delay between the client and origin `origin`.
    pub fn one_way(&self, origin: usize) -> Nanos {
        let rtt_ms = self.origin_rtt_ms.get(origin).copied().unwrap_or(self.rtt_ms);
        (rtt_ms * 1e6 / 2.0).round() as Nanos
    }
}
