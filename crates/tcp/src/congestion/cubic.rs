//! CUBIC (RFC 9438) and `HyStart`, as `net/ipv4/tcp_cubic.c` computes them.
//!
//! It keeps the kernel's integer units where they affect the result: time in ticks, the curve in 1/1024 s, one
//! update per tick.

use firstflight_path::Nanos;

use super::{Controller, Sample};
use crate::segment::Seq;
use crate::time::{JIFFY, MS, US};

/// Multiplicative decrease, 717/1024.
const BETA: u32 = 717;
const BETA_SCALE: u32 = 1024;
/// `bic_scale * 10`: C = 0.4 in units of 1/1024.
const CUBE_RTT_SCALE: u64 = 410;
const CURVE_HZ: u64 = 1024;
/// Ticks in a second.
const HZ: u64 = 1_000 * MS / JIFFY;
/// `8 * (BETA_SCALE + beta) / 3 / (BETA_SCALE - beta)`.
const FRIENDLY_SCALE: u32 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);

/// `hystart_low_window`, segments.
const LOW_WINDOW: u32 = 16;
/// `hystart_ack_delta_us`.
const TRAIN_GAP: Nanos = 2 * MS;
/// `HYSTART_MIN_SAMPLES`.
const MIN_SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`.
const DELAY_BOUNDS: (Nanos, Nanos) = (4 * MS, 16 * MS);

/// CUBIC's state of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cubic {
    last_max: u32,
    last_cwnd: u32,
    /// Time of the last update, ticks.
    last_update: u64,
    epoch: Option<u64>,
    origin: u32,
    k: u64,
    per_increase: u32,
    acked: u32,
    friendly_cwnd: u32,
    delay_min: Option<Nanos>,
    train: HyStart,
}

/// Finds the end of slow start, within one round.
#[derive(Debug, Clone, Default)]
struct HyStart {
    found: bool,
    round_start: Nanos,
    last_ack: Nanos,
    round_end: Seq,
    round_min: Option<Nanos>,
    samples: u32,
}

impl Controller for Cubic {
    /// `bictcp_update`.
    fn per_increase(&mut self, tick: u64, cwnd: u32, acked: u32) -> u32 {
        self.acked += acked;
        if self.last_cwnd == cwnd && tick - self.last_update <= HZ / 32 {
            return self.per_increase.max(2);
        }
        if self.epoch.is_none() || tick != self.last_update {
            self.follow_curve(tick, cwnd, acked);
        }
        self.keep_up_with_reno(cwnd);
        self.per_increase = self.per_increase.max(2);
        self.per_increase
    }

    /// `cubictcp_recalc_ssthresh`, with fast convergence (RFC 9438, section 4.7).
    fn threshold_after_loss(&mut self, cwnd: u32) -> u32 {
        self.epoch = None;
        self.last_max = if cwnd < self.last_max {
            cwnd * (BETA_SCALE + BETA) / (2 * BETA_SCALE)
        } else {
            cwnd
        };
        (cwnd * BETA / BETA_SCALE).max(2)
    }

    /// `cubictcp_acked`.
    fn on_rtt(&mut self, sample: &Sample) -> bool {
        let now = sample.now;
        // Samples soon after a recovery still include its queue.
        if self.epoch.is_some_and(|epoch| sample.tick - epoch < HZ) {
            return false;
        }
        let rtt = (sample.rtt / US).max(1) * US;
        let delay_min = self.delay_min.map_or(rtt, |min| min.min(rtt));
        self.delay_min = Some(delay_min);
        if self.train.found || !sample.in_slow_start {
            return false;
        }
        self.train.follow_round(now, sample.acked, sample.next);
        sample.cwnd >= LOW_WINDOW && self.train.update(now, rtt, delay_min)
    }

    /// Starts anew (`bictcp_reset`).
    fn on_timeout(&mut self, now: Nanos, next: Seq) {
        *self = Self::default();
        self.train.start(now, next);
    }

    /// The curve does not advance while the application pauses (`cubictcp_cwnd_event`).
    fn on_transmit_start(&mut self, tick: u64, idle: u64) {
        if let Some(epoch) = &mut self.epoch {
            *epoch = (*epoch + idle).min(tick);
        }
    }
}

impl Cubic {
    fn follow_curve(&mut self, tick: u64, cwnd: u32, acked: u32) {
        self.last_cwnd = cwnd;
        self.last_update = tick;
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.acked = acked;
            self.friendly_cwnd = cwnd;
            let below = self.last_max.saturating_sub(cwnd);
            self.k = cubic_root(u64::from(below) * ((1 << 40) / CUBE_RTT_SCALE));
            self.origin = self.last_max.max(cwnd);
            tick
        });
        let since = tick - epoch + self.delay_min.unwrap_or(0).div_ceil(JIFFY);
        let at = since * CURVE_HZ / HZ;
        let offset = at.abs_diff(self.k);
        let delta = ((CUBE_RTT_SCALE * offset * offset * offset) >> 40) as u32;
        let target = if at < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        };
        self.per_increase = if target > cwnd {
            cwnd / (target - cwnd)
        } else {
            100 * cwnd
        };
        if self.last_max == 0 {
            self.per_increase = self.per_increase.min(20);
        }
    }

    /// Grows at least as fast as Reno (RFC 9438, section 4.3).
    fn keep_up_with_reno(&mut self, cwnd: u32) {
        let per_segment = ((cwnd * FRIENDLY_SCALE) >> 3).max(1);
        while self.acked > per_segment {
            self.acked -= per_segment;
            self.friendly_cwnd += 1;
        }
        if self.friendly_cwnd > cwnd {
            self.per_increase = self.per_increase.min(cwnd / (self.friendly_cwnd - cwnd));
        }
    }
}

impl HyStart {
    fn start(&mut self, now: Nanos, next: Seq) {
        *self = Self {
            found: self.found,
            round_start: now,
            last_ack: now,
            round_end: next,
            round_min: None,
            samples: 0,
        };
    }

    /// A round ends when the data sent at its beginning is acknowledged. Small windows have rounds, too.
    fn follow_round(&mut self, now: Nanos, acked: Seq, next: Seq) {
        if acked > self.round_end {
            self.start(now, next);
        }
    }

    /// `hystart_update`.
    fn update(&mut self, now: Nanos, rtt: Nanos, delay_min: Nanos) -> bool {
        // A train of acknowledgments as long as half the shortest RTT means that the path is full. A sender without
        // pacing halves the threshold.
        if now.saturating_sub(self.last_ack) <= TRAIN_GAP {
            self.last_ack = now;
            self.found |= now.saturating_sub(self.round_start) > (delay_min + MS) >> 1;
        }
        self.round_min = Some(self.round_min.map_or(rtt, |min| min.min(rtt)));
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            let slack = (delay_min >> 3).clamp(DELAY_BOUNDS.0, DELAY_BOUNDS.1);
            self.found |= self.round_min.is_some_and(|min| min > delay_min + slack);
        }
        self.found
    }
}

/// The largest integer whose cube is at most `value`, bit by bit, so that no platform's `cbrt` matters. The
/// kernel's `cubic_root` approximates it, with a mean error of 0.195 %.
fn cubic_root(value: u64) -> u64 {
    (0..22).rev().fold(0, |root, bit| {
        let larger = root | 1 << bit;
        if u128::from(larger).pow(3) <= u128::from(value) {
            larger
        } else {
            root
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Fault;
    use crate::pair::script::*;

    #[test]
    fn the_cube_root_of_a_cube_is_exact_and_that_of_one_less_is_one_less() {
        for root in 1..=2_642_245_u64 {
            assert_eq!(cubic_root(root.pow(3)), root);
            assert_eq!(cubic_root(root.pow(3) - 1), root - 1);
        }
        assert_eq!((cubic_root(0), cubic_root(u64::MAX)), (0, 2_642_245));
    }

    #[test]
    fn a_loss_leaves_seven_tenths_of_the_window_which_returns_along_the_curve() {
        let mut pair = behind(10_000_000, response(1_000 * FULL), &[(Down, 45, Fault::Lost)]);
        pair.run_until(600 * MS);
        assert_eq!((server(&pair).cwnd, server(&pair).ssthresh), (36, 36), "of 52");
        let mut gains = vec![];
        for second in 1..=2 {
            let before = server(&pair).cwnd;
            pair.run_until((600 + second * 900) * MS);
            gains.push(server(&pair).cwnd - before);
        }
        // Growth is fast at first, and slow near the window of the loss (RFC 9438, section 4.2).
        assert!(gains[0] > gains[1] && gains[1] > 0, "{gains:?}");
        assert!(server(&pair).cwnd <= 52);
    }

    #[test]
    fn a_second_loss_below_the_first_gives_way_to_other_flows() {
        let mut cubic = Cubic::default();
        assert_eq!(cubic.threshold_after_loss(100), 70);
        assert_eq!(cubic.last_max, 100);
        assert_eq!(cubic.threshold_after_loss(80), 56);
        assert_eq!(cubic.last_max, 80 * (1_024 + 717) / 2_048, "fast convergence");
    }

    #[test]
    fn slow_start_ends_before_the_queue_overflows() {
        let mut pair = behind(10_000_000, response(600 * FULL), &[]);
        pair.run();
        let info = server(&pair);
        // 10 Mbit/s times 100 ms is 83 packets. Delayed acknowledgments are 2.4 ms apart and make no train. So the
        // delay ends slow start, once the first samples of a round show the queue.
        assert!((83..250).contains(&info.ssthresh), "{}", info.ssthresh);
        assert_eq!(info.phase, crate::Phase::Open);
    }

    #[test]
    fn a_train_of_acknowledgments_as_long_as_half_the_rtt_ends_slow_start() {
        let mut cubic = Cubic::default();
        cubic.on_timeout(0, 100);
        let sample = |now| Sample {
            now,
            tick: now / JIFFY,
            rtt: 100 * MS,
            cwnd: 50,
            in_slow_start: true,
            acked: 50,
            next: 200,
        };
        let ends = (1..100).find(|&ms| cubic.on_rtt(&sample(ms * MS)));
        assert_eq!(ends, Some(51));
    }

    #[test]
    fn eight_samples_that_are_an_eighth_too_long_end_slow_start() {
        let mut cubic = Cubic::default();
        cubic.on_timeout(0, 100);
        // Acknowledgments four ms apart make no train.
        let sample = |now, rtt| Sample {
            now,
            tick: now / JIFFY,
            rtt,
            cwnd: 50,
            in_slow_start: true,
            acked: 50,
            next: 200,
        };
        assert!(!cubic.on_rtt(&sample(4 * MS, 100 * MS)));
        cubic.train.start(4 * MS, 200);
        let ends = (1..20).find(|&number| cubic.on_rtt(&sample((4 + 4 * number) * MS, 113 * MS)));
        assert_eq!(ends, Some(9));
    }

    #[test]
    fn the_threshold_is_two_segments_at_least() {
        assert_eq!(Cubic::default().threshold_after_loss(2), 2);
    }

    #[test]
    fn a_pause_does_not_count_on_the_curve() {
        let grown_after = |idle: u64| {
            let mut cubic = Cubic::default();
            cubic.threshold_after_loss(100);
            cubic.per_increase(0, 70, 1);
            cubic.on_transmit_start(idle + 1, idle);
            cubic.per_increase(idle + HZ, 70, 1)
        };
        assert_eq!(grown_after(0), grown_after(4 * HZ));
    }

    #[test]
    fn a_small_window_grows_no_slower_than_renos() {
        let mut cubic = Cubic::default();
        cubic.threshold_after_loss(20);
        // The curve is almost flat for the next 200 ms. Reno's window would have grown in 20 rounds, so CUBIC
        // catches up.
        let first = cubic.per_increase(1, 14, 1);
        let rounds = (1..=20).map(|round| cubic.per_increase(1 + round * 10 * MS / JIFFY, 14, 14));
        assert_eq!((first, rounds.last()), (14, Some(2)));
    }
}
