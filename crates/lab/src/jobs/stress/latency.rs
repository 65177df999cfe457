//! Latencies of requests, unanswered ones included.

use firstflight_load::record::ms;
use serde::Serialize;

/// Percentiles over all requests, ms. An unanswered request counts as infinite: a percentile that falls on one is
/// `None`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    /// The fastest.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// The slowest.
    pub max: Option<f64>,
}

impl Percentiles {
    /// Summarises `answered` latencies (ns) and the number of `unanswered` requests.
    pub fn of(mut answered: Vec<u64>, unanswered: usize) -> Self {
        answered.sort_unstable();
        let all = answered.len() + unanswered;
        let at = |share: f64| {
            let rank = ((all as f64 * share).ceil() as usize).max(1);
            answered.get(rank - 1).map(|latency| ms(*latency))
        };
        Self {
            min: at(0.0),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_count_the_unanswered_as_slower_than_any() {
        let answered = (1..=90).map(|number| number * 1_000_000).collect();
        let found = Percentiles::of(answered, 10);
        assert_eq!(
            (found.min, found.p50, found.p90),
            (Some(1.0), Some(50.0), Some(90.0))
        );
        assert_eq!((found.p99, found.max), (None, None));
    }

    #[test]
    fn no_requests_have_no_percentiles() {
        assert_eq!(Percentiles::of(Vec::new(), 0).max, None);
    }
}
