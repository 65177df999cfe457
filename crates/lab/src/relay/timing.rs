//! Settings that keep the relay in time, and the correction for the time that it adds to round trips.

use firstflight_path::PathConfig;
use serde::Deserialize;

/// The largest correction of a round trip, ms, and as a share of the RTT.
const MOST_TAKEN_OUT_MS: f64 = 1.0;
const MOST_TAKEN_OUT_SHARE: f64 = 0.1;

/// Settings that keep the relay in time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timing {
    /// Whether processors are kept out of idle states.
    pub keep_awake: bool,
    /// Time that the relay adds to a round trip, ms, as measured by a calibration. It is taken out of the
    /// propagation delay, at most 1 ms and 10 % of the RTT.
    pub take_out_ms: f64,
}

impl Timing {
    /// The correction of a round trip of `rtt_ms`, ms.
    pub fn taken_out_ms(self, rtt_ms: f64) -> f64 {
        let most_ms = MOST_TAKEN_OUT_MS.min(MOST_TAKEN_OUT_SHARE * rtt_ms);
        self.take_out_ms.min(most_ms).max(0.0)
    }

    /// The path with corrected delays, so that packets meet the delays of `path`.
    pub(super) fn corrected(self, path: &PathConfig) -> PathConfig {
        let corrected = |rtt_ms: f64| rtt_ms - self.taken_out_ms(rtt_ms);
        PathConfig {
            rtt_ms: corrected(path.rtt_ms),
            origin_rtt_ms: path.origin_rtt_ms.iter().copied().map(corrected).collect(),
            ..path.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_out_is_bounded_by_a_millisecond_and_a_share_of_the_rtt() {
        let taken = |take_out_ms, rtt_ms| {
            let timing = Timing {
                take_out_ms,
                ..Timing::default()
            };
            timing.taken_out_ms(rtt_ms)
        };
        assert_eq!(taken(0.2, 100.0), 0.2);
        assert_eq!(taken(5.0, 100.0), 1.0);
        assert_eq!(taken(0.75, 2.0), 0.2);
        assert_eq!(taken(0.75, 0.0), 0.0);
        assert_eq!(taken(-0.3, 100.0), 0.0);
        assert_eq!(taken(f64::NAN, 0.0), 0.0);
    }

    #[test]
    fn no_delay_of_a_corrected_path_is_negative_and_nothing_else_of_it_changes() {
        let path = PathConfig {
            rtt_ms: 100.0,
            origin_rtt_ms: vec![0.0, 0.5, 300.0],
            up_bps: Some(256_000),
            ..PathConfig::default()
        };
        let timing = Timing {
            keep_awake: false,
            take_out_ms: 0.75,
        };
        let corrected = timing.corrected(&path);
        assert_eq!(corrected.rtt_ms, 99.25);
        assert_eq!(corrected.origin_rtt_ms, [0.0, 0.45, 299.25]);
        let but_for_delays = PathConfig {
            rtt_ms: path.rtt_ms,
            origin_rtt_ms: path.origin_rtt_ms.clone(),
            ..corrected
        };
        assert_eq!(but_for_delays, path);
        assert_eq!(Timing::default().corrected(&path), path);
    }
}
