//! The relay's report: how late it delivered, and what the path dropped or changed.

use firstflight_load::record::Carried;
use firstflight_path::Drops;
use serde::Serialize;

use super::Capture;
use crate::ledger::Ledger;
use crate::scheduling::Scheduling;

const BUCKET_NS: u64 = 1_000;
/// Buckets of 1 µs, up to 20 ms. Later packets fall into the last one; the maximum stays exact.
const BUCKETS: usize = 20_000;

/// A histogram of delivery time minus due time.
#[derive(Debug, Clone)]
pub struct Lateness {
    counts: Vec<u32>,
    packets: u64,
    max_ns: u64,
}

/// The summary of the lateness, ms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatenessSummary {
    /// Median.
    pub late_p50_ms: f64,
    /// 99th percentile.
    pub late_p99_ms: f64,
    /// Lateness of the latest packet.
    pub late_max_ms: f64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            packets: 0,
            max_ns: 0,
        }
    }
}

impl Lateness {
    /// Counts a packet that was due at `due` and delivered at `now`, both ns.
    pub fn record(&mut self, due: u64, now: u64) {
        let late = now.saturating_sub(due);
        let bucket = ((late / BUCKET_NS) as usize).min(BUCKETS - 1);
        self.counts[bucket] += 1;
        self.packets += 1;
        self.max_ns = self.max_ns.max(late);
    }

    /// Packets counted.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Median, tail and maximum.
    pub fn summary(&self) -> LatenessSummary {
        LatenessSummary {
            late_p50_ms: self.quantile_ms(0.5),
            late_p99_ms: self.quantile_ms(0.99),
            late_max_ms: self.max_ns as f64 / 1e6,
        }
    }

    fn quantile_ms(&self, quantile: f64) -> f64 {
        let rank = (self.packets as f64 * quantile).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank && seen > 0 {
                return (bucket as u64 * BUCKET_NS) as f64 / 1e6;
            }
        }
        0.0
    }
}

/// The result of a relay.
#[derive(Debug)]
pub struct RelayReport {
    /// Every connection it saw while the path was shaped.
    pub ledger: Ledger,
    /// Every packet, if the job asked for a capture.
    pub capture: Option<Capture>,
    /// How late it was.
    pub lateness: Lateness,
    /// Packets that the path dropped.
    pub drops: Drops,
    /// Packets that the path duplicated.
    pub duplicated: u64,
    /// Packets that a queue marked instead of dropping them.
    pub marked: u64,
    /// Packets that a TUN device refused.
    pub refused: u64,
    /// The scheduling of its thread.
    pub scheduling: Scheduling,
    /// Number of processors kept out of idle states.
    pub kept_awake: usize,
    /// Time that the relay itself adds, taken out of the path's RTT, ms.
    pub taken_out_ms: f64,
    /// Processor time that it used, ns.
    pub cpu: u64,
    /// How long it ran, ns.
    pub wall: u64,
}

/// The summary of a relay's report.
#[derive(Debug, Clone, Serialize)]
pub struct RelaySummary {
    /// The counts of the path.
    #[serde(flatten)]
    pub carried: Carried,
    /// Packets that a TUN device refused.
    pub refused: u64,
    /// How late packets were delivered.
    #[serde(flatten)]
    pub lateness: LatenessSummary,
    /// Whether a packet was later than the bound.
    pub late: bool,
    /// The scheduling of the relay's thread.
    pub scheduling: Scheduling,
    /// Number of processors kept out of idle states.
    pub kept_awake: usize,
    /// Time that the relay itself adds, taken out of the path's RTT, ms.
    pub taken_out_ms: f64,
    /// Processor time that it used, ms.
    pub cpu_ms: f64,
    /// How long it ran, ms.
    pub wall_ms: f64,
}

impl RelaySummary {
    /// Summarises a relay's report.
    pub fn new(report: &RelayReport, late_bound_ms: f64) -> Self {
        let lateness = report.lateness.summary();
        Self {
            carried: Carried::new(
                report.lateness.packets(),
                report.drops,
                report.duplicated,
                report.marked,
            ),
            refused: report.refused,
            late: lateness.late_max_ms > late_bound_ms || report.refused > 0,
            lateness,
            scheduling: report.scheduling,
            kept_awake: report.kept_awake,
            taken_out_ms: report.taken_out_ms,
            cpu_ms: report.cpu as f64 / 1e6,
            wall_ms: report.wall as f64 / 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_follow_the_packets_and_the_maximum_is_exact() {
        let mut lateness = Lateness::default();
        (0..99).for_each(|_| lateness.record(0, 10_500));
        lateness.record(1_000, 30_001_000);
        let summary = lateness.summary();
        assert_eq!(
            (summary.late_p50_ms, summary.late_p99_ms, summary.late_max_ms),
            (0.01, 0.01, 30.0)
        );
    }

    #[test]
    fn nothing_delivered_is_not_late() {
        assert_eq!(Lateness::default().summary().late_max_ms, 0.0);
    }
}
