//! How late the relay delivers.

use serde::Serialize;

const BUCKET_NS: u64 = 1_000;
/// Buckets reach to 20 ms; what is later falls into the last one, the maximum stays exact.
const BUCKETS: usize = 20_000;

/// A histogram of delivery time minus due time.
#[derive(Debug, Clone)]
pub struct Lateness {
    counts: Vec<u32>,
    packets: u64,
    max_ns: u64,
}

/// Lateness as it is reported, ms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatenessSummary {
    /// Median.
    pub late_p50_ms: f64,
    /// 99th percentile.
    pub late_p99_ms: f64,
    /// The latest packet.
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
