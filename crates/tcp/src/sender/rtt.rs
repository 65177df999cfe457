//! The sender's estimate of the round-trip time, and the retransmission timeout (RFC 6298).
//!
//! `tcp_rtt_estimator` and `__tcp_set_rto` in `net/ipv4/tcp_input.c`, in the kernel's fixed-point units.

use firstflight_path::Nanos;

use crate::segment::Seq;
use crate::time::{MS, US, whole_ticks};

/// `TCP_TIMEOUT_INIT`: before there is a sample (RFC 6298, section 2.1).
pub(crate) const INITIAL_RTO: Nanos = 1_000 * MS;
/// `TCP_TIMEOUT_FALLBACK`: for data after a handshake without a sample (RFC 6298, section 5.7).
const FALLBACK_RTO: Nanos = 3_000 * MS;
/// `TCP_RTO_MIN` and `TCP_RTO_MAX`.
pub(crate) const MIN_RTO: Nanos = 200 * MS;
const MAX_RTO: Nanos = 120_000 * MS;
const MIN_RTO_US: i64 = (MIN_RTO / US).cast_signed();

/// The RTT estimate and the timeout.
#[derive(Debug, Clone)]
pub(crate) struct Rtt {
    /// Smoothed RTT, eighths of a microsecond; 0 before the first sample.
    smoothed: i64,
    /// Mean deviation, quarters of a microsecond, and its maximum within a round.
    deviation: i64,
    deviation_max: i64,
    variation: i64,
    /// A round ends when this is acknowledged.
    round_end: Seq,
    /// The shortest sample.
    min: Option<Nanos>,
    /// Retransmission timeout, back-off included.
    rto: Nanos,
}

impl Default for Rtt {
    fn default() -> Self {
        Self {
            smoothed: 0,
            deviation: 0,
            deviation_max: 0,
            variation: 0,
            round_end: 0,
            min: None,
            rto: INITIAL_RTO,
        }
    }
}

impl Rtt {
    /// The smoothed RTT; `None` before the first sample.
    pub(crate) fn smoothed(&self) -> Option<Nanos> {
        (self.smoothed > 0).then_some(self.smoothed as u64 * US / 8)
    }

    /// The shortest sample.
    pub(crate) fn min(&self) -> Option<Nanos> {
        self.min
    }

    /// The retransmission timeout, back-off included.
    pub(crate) fn rto(&self) -> Nanos {
        self.rto
    }

    /// The handshake is over: its back-off is reset.
    pub(crate) fn end_handshake(&mut self) {
        self.rto = INITIAL_RTO;
    }

    /// Data is sent before the handshake has given a sample.
    pub(crate) fn fall_back(&mut self) {
        self.rto = FALLBACK_RTO;
    }

    /// Adds a sample, and the shortest one of the same acknowledgment. `acked` and `next` are the sender's SND.UNA
    /// and SND.NXT.
    pub(crate) fn sample(&mut self, sample: Nanos, shortest: Nanos, acked: Seq, next: Seq) {
        self.min = Some(self.min.map_or(shortest, |min| min.min(shortest)));
        let us = (sample / US).cast_signed().max(1);
        if self.smoothed == 0 {
            self.smoothed = us << 3;
            self.deviation = us << 1;
            self.variation = self.deviation.max(MIN_RTO_US);
            self.deviation_max = self.variation;
            self.round_end = next;
        } else {
            self.smooth(us);
            if acked > self.round_end {
                self.end_round(next);
            }
        }
        self.reset_rto();
    }

    /// The timeout without back-off.
    fn reset_rto(&mut self) {
        if self.smoothed > 0 {
            let us = (self.smoothed >> 3) + self.variation;
            self.rto = whole_ticks(us as u64 * US).min(MAX_RTO);
        }
    }

    /// Doubles the timeout (RFC 6298, section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(MAX_RTO);
    }

    fn smooth(&mut self, us: i64) {
        let error = us - (self.smoothed >> 3);
        self.smoothed += error;
        let mut excess = error.abs() - (self.deviation >> 2);
        // A shorter RTT must not raise the deviation as fast as a longer one.
        if error < 0 && excess > 0 {
            excess >>= 3;
        }
        self.deviation += excess;
        if self.deviation > self.deviation_max {
            self.deviation_max = self.deviation;
            self.variation = self.variation.max(self.deviation_max);
        }
    }

    fn end_round(&mut self, next: Seq) {
        if self.deviation_max < self.variation {
            self.variation -= (self.variation - self.deviation_max) >> 2;
        }
        self.round_end = next;
        self.deviation_max = MIN_RTO_US;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::script::*;
    use crate::pair::{Exchange, Fault, Flow};

    #[test]
    fn the_first_sample_makes_the_timeout_three_times_itself_or_200_ms_more() {
        for (sample_ms, rto_ms) in [(20, 220), (100, 300), (200, 600), (500, 1_500)] {
            let mut rtt = Rtt::default();
            rtt.sample(sample_ms * MS, sample_ms * MS, 1, 1);
            assert_eq!(rtt.rto(), rto_ms * MS);
        }
    }

    #[test]
    fn steady_samples_bring_the_timeout_down_to_the_rtt_and_200_ms() {
        let mut rtt = Rtt::default();
        for round in 0..200 {
            rtt.sample(400 * MS, 400 * MS, round * 10 + 1, round * 10);
        }
        assert!(rtt.rto <= 612 * MS, "{}", rtt.rto);
        rtt.back_off();
        assert!(rtt.rto >= 1_200 * MS);
        rtt.reset_rto();
        assert!(rtt.rto <= 612 * MS);
    }

    #[test]
    fn a_round_trip_twice_as_long_raises_the_timeout_by_its_deviation() {
        let flow = Flow {
            exchanges: vec![Exchange::new(300, 300); 2],
            ..Flow::default()
        };
        let mut pair = pair(flow, &[(Down, 3, Fault::Delayed(100 * MS))]);
        pair.run_until(299 * MS);
        assert_eq!(server(&pair).rto, 300 * MS);
        pair.run_until(350 * MS);
        let info = server(&pair);
        assert_eq!(
            info.smoothed_rtt,
            Some(112_500_000),
            "an eighth of the 100 ms more"
        );
        // 112.5 ms and four deviations of 62.5 ms, in whole ticks of 4 ms.
        assert_eq!(info.rto, 364 * MS);
        assert_eq!(info.min_rtt, Some(100 * MS));
    }

    #[test]
    fn a_syn_that_went_again_is_measured_by_its_timestamp() {
        let mut pair = pair(response(1_000), &[(Up, 1, Fault::Lost)]);
        pair.run();
        assert_eq!(pair.client().info().smoothed_rtt, Some(RTT));
        assert_eq!(server(&pair).smoothed_rtt, Some(RTT));
    }

    #[test]
    fn a_syn_ack_that_went_again_echoes_the_first_syn() {
        let mut pair = pair(response(1_000), &[(Down, 1, Fault::Lost)]);
        pair.run_until(1_106 * MS);
        assert_sent(
            pair.trace(),
            1_050..=1_060,
            "
            1056 down S. 0:0(0) ack 1
        ",
        );
        assert_eq!(pair.client().info().smoothed_rtt, Some(1_106 * MS));
    }

    #[test]
    fn every_timeout_doubles_the_next() {
        let lost: Vec<_> = (3..=7).map(|number| (Up, number, Fault::Lost)).collect();
        let mut pair = pair(response(1_000), &lost);
        pair.run();
        // The request, its probe, and three timeouts of 300, 600 and 1,200 ms, delayed by the timer wheel's
        // buckets.
        assert_sent(
            pair.sent(Up),
            100..=3_000,
            "
             100 up .  1:1(0) ack 1
             100 up P. 1:301(300) ack 1
             416 up P. 1:301(300) ack 1
             736 up P. 1:301(300) ack 1
            1344 up P. 1:301(300) ack 1
            2560 up P. 1:301(300) ack 1
        ",
        );
    }

    #[test]
    fn a_shorter_rtt_raises_the_deviation_an_eighth_as_fast() {
        let mut rtt = Rtt::default();
        rtt.sample(400 * MS, 400 * MS, 1, 1);
        rtt.sample(100 * MS, 100 * MS, 1, 1);
        // 400 less an eighth of 300, and four times 200 and an eighth of the 100 by which the error exceeds it.
        assert_eq!(rtt.smoothed(), Some(362_500_000));
        assert_eq!(rtt.rto(), whole_ticks(362_500 * US + 812_500 * US));
        assert_eq!(rtt.min(), Some(100 * MS));
    }
}
