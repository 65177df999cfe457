//! The congestion window, and the algorithms that change it.
//!
//! This module has what is common to the algorithms: slow start, the check that the window was in use, and its
//! decay when the application pauses. [`Controller`] is what an algorithm decides; each algorithm has a module. A
//! new one implements it, and joins [`Algorithm`] and [`Control`].

mod cubic;
mod reno;

use firstflight_path::Nanos;
use serde::{Deserialize, Serialize};

use crate::segment::Seq;
use crate::time::{JIFFY, Ticks};

use cubic::Cubic;
use reno::Reno;

/// A congestion control algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// CUBIC with `HyStart`, the default of Linux (RFC 9438).
    #[default]
    Cubic,
    /// `NewReno`'s window (RFC 5681).
    Reno,
}

impl Algorithm {
    /// Linux's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
        }
    }
}

/// The decisions of one algorithm: Linux's `struct tcp_congestion_ops`.
pub(crate) trait Controller {
    /// Above slow start, how many segments must be acknowledged for a window of `cwnd` to grow by one; `acked` of
    /// them just have been (`cong_avoid`). `tick` counts the kernel's ticks.
    fn per_increase(&mut self, tick: u64, cwnd: u32, acked: u32) -> u32;

    /// The threshold after a loss with a window of `cwnd` (`ssthresh`).
    fn threshold_after_loss(&mut self, cwnd: u32) -> u32;

    /// Handles an RTT sample from an acknowledgment. Returns `true` if slow start should end at this window
    /// (`pkts_acked`).
    fn on_rtt(&mut self, _: &Sample) -> bool {
        false
    }

    /// The retransmission timer ran out, with SND.NXT at `next` (`set_state`, `TCP_CA_Loss`).
    fn on_timeout(&mut self, _now: Nanos, _next: Seq) {}

    /// Transmission starts after a pause, in ticks (`cwnd_event`, `CA_EVENT_TX_START`).
    fn on_transmit_start(&mut self, _tick: u64, _idle: u64) {}
}

/// An RTT sample, and the sender's sequence numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) now: Nanos,
    pub(crate) tick: u64,
    pub(crate) rtt: Nanos,
    pub(crate) cwnd: u32,
    pub(crate) in_slow_start: bool,
    /// SND.UNA and SND.NXT.
    pub(crate) acked: Seq,
    pub(crate) next: Seq,
}

/// The algorithms, as an enum without a pointer, because every acknowledgment calls them.
#[derive(Debug, Clone)]
enum Control {
    Cubic(Cubic),
    Reno(Reno),
}

impl Controller for Control {
    fn per_increase(&mut self, tick: u64, cwnd: u32, acked: u32) -> u32 {
        match self {
            Self::Cubic(cubic) => cubic.per_increase(tick, cwnd, acked),
            Self::Reno(reno) => reno.per_increase(tick, cwnd, acked),
        }
    }

    fn threshold_after_loss(&mut self, cwnd: u32) -> u32 {
        match self {
            Self::Cubic(cubic) => cubic.threshold_after_loss(cwnd),
            Self::Reno(reno) => reno.threshold_after_loss(cwnd),
        }
    }

    fn on_rtt(&mut self, sample: &Sample) -> bool {
        match self {
            Self::Cubic(cubic) => cubic.on_rtt(sample),
            Self::Reno(reno) => reno.on_rtt(sample),
        }
    }

    fn on_timeout(&mut self, now: Nanos, next: Seq) {
        match self {
            Self::Cubic(cubic) => cubic.on_timeout(now, next),
            Self::Reno(reno) => reno.on_timeout(now, next),
        }
    }

    fn on_transmit_start(&mut self, tick: u64, idle: u64) {
        match self {
            Self::Cubic(cubic) => cubic.on_transmit_start(tick, idle),
            Self::Reno(reno) => reno.on_transmit_start(tick, idle),
        }
    }
}

/// The window, in segments.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    /// Segments that may be in flight.
    cwnd: u32,
    /// Slow start threshold: the window grows by slow start below it.
    ssthresh: u32,
    initial: u32,
    /// Acknowledged segments towards the next increase.
    credit: u32,
    control: Control,
    /// Everything except RTT samples is measured in ticks.
    ticks: Ticks,
    /// `tcp_cwnd_validate`: whether the window limited the sender, and how much of it was used.
    is_limited: bool,
    max_out: u32,
    usage_end: Seq,
    used: u32,
    used_since: u64,
}

/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = 0x7fff_ffff;

impl Window {
    pub(crate) fn new(algorithm: Algorithm, initial: u32, ticks: Ticks) -> Self {
        Self {
            cwnd: initial,
            ssthresh: INFINITE,
            initial,
            credit: 0,
            control: match algorithm {
                Algorithm::Cubic => Control::Cubic(Cubic::default()),
                Algorithm::Reno => Control::Reno(Reno),
            },
            ticks,
            is_limited: false,
            max_out: 0,
            usage_end: 0,
            used: 0,
            used_since: 0,
        }
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        match self.control {
            Control::Cubic(_) => Algorithm::Cubic,
            Control::Reno(_) => Algorithm::Reno,
        }
    }

    /// Segments that may be in flight.
    pub(crate) fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// Slow start threshold: the window grows by slow start below it.
    pub(crate) fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// `tcp_is_cwnd_limited`: in slow start a window may grow if half of it is used.
    fn is_limited(&self) -> bool {
        self.is_limited || (self.in_slow_start() && self.cwnd < 2 * self.max_out)
    }

    /// An acknowledgment of `acked` segments arrives outside recovery (`tcp_cong_avoid`).
    pub(crate) fn on_acked(&mut self, now: Nanos, acked: u32) {
        // `tcp_cong_avoid` stamps the window with every acknowledgment, whether the window grows or not.
        self.stamp(now);
        if !self.is_limited() {
            return;
        }
        let mut left = acked;
        if self.in_slow_start() {
            let grown = (self.cwnd + acked).min(self.ssthresh);
            left -= grown - self.cwnd;
            self.cwnd = grown;
            if left == 0 {
                return;
            }
        }
        let per_increase = self.control.per_increase(self.ticks.count(now), self.cwnd, left);
        self.grow(per_increase, left);
    }

    /// `tcp_cong_avoid_ai`: one more segment for every `per_increase` acknowledged segments.
    fn grow(&mut self, per_increase: u32, acked: u32) {
        if self.credit >= per_increase {
            self.credit = 0;
            self.cwnd += 1;
        }
        self.credit += acked;
        if self.credit >= per_increase {
            self.cwnd += self.credit / per_increase;
            self.credit %= per_increase;
        }
    }

    /// Handles an RTT sample: `HyStart` may end slow start (`cubictcp_acked`).
    pub(crate) fn on_rtt(&mut self, now: Nanos, rtt: Nanos, acked: Seq, next: Seq) {
        let sample = Sample {
            now,
            tick: self.ticks.count(now),
            rtt,
            cwnd: self.cwnd,
            in_slow_start: self.in_slow_start(),
            acked,
            next,
        };
        if self.control.on_rtt(&sample) {
            self.ssthresh = self.cwnd;
        }
    }

    /// A loss or a mark: sets a new threshold, to which the window is reduced (`tcp_init_cwnd_reduction`).
    pub(crate) fn lower_threshold(&mut self) {
        self.credit = 0;
        self.ssthresh = self.control.threshold_after_loss(self.cwnd);
    }

    /// During the reduction the window allows `more` segments beside those in flight (`tcp_cwnd_reduction`).
    pub(crate) fn allow(&mut self, in_flight: u32, more: u32) {
        self.cwnd = in_flight + more;
    }

    /// Notes when the window was checked or set (`snd_cwnd_stamp`).
    pub(crate) fn stamp(&mut self, now: Nanos) {
        self.used_since = self.ticks.count(now);
    }

    /// The reduction is complete (`tcp_end_cwnd_reduction`).
    pub(crate) fn end_reduction(&mut self) {
        self.cwnd = self.ssthresh;
    }

    /// A timeout: allows one segment beside those in flight, and forgets what was learnt of the path
    /// (`tcp_enter_loss`, `cubictcp_state`).
    pub(crate) fn on_timeout(&mut self, now: Nanos, in_flight: u32, next: Seq) {
        self.cwnd = in_flight + 1;
        self.credit = 0;
        self.stamp(now);
        self.control.on_timeout(now, next);
    }

    /// Undoes the reduction, which was not needed (`tcp_undo_cwnd_reduction`).
    pub(crate) fn restore(&mut self, cwnd: u32, ssthresh: u32) {
        self.cwnd = self.cwnd.max(cwnd);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    /// `tcp_current_ssthresh` outside recovery.
    pub(crate) fn threshold(&self) -> u32 {
        self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2))
    }

    /// Called after sending, or trying to send: `tcp_cwnd_validate` (in the spirit of RFC 7661).
    pub(crate) fn validate(&mut self, now: Nanos, sent: &Sent) {
        if sent.acked >= self.usage_end || sent.is_limited || (!self.is_limited && sent.out > self.max_out) {
            self.is_limited = sent.is_limited;
            self.max_out = sent.out;
            self.usage_end = sent.next;
        }
        if self.is_limited() {
            self.used = 0;
            self.stamp(now);
            return;
        }
        self.used = self.used.max(sent.out);
        if self.ticks.count(now).saturating_sub(self.used_since) >= sent.rto / JIFFY {
            self.on_application_limited(now, sent.is_open);
        }
    }

    /// `tcp_cwnd_application_limited`: reduces a window that was not used for an RTO halfway to its use.
    fn on_application_limited(&mut self, now: Nanos, is_open: bool) {
        let used = self.used.max(self.initial);
        if is_open && used < self.cwnd {
            self.ssthresh = self.threshold();
            self.cwnd = u32::midpoint(self.cwnd, used);
        }
        self.used = 0;
        self.stamp(now);
    }

    /// The sender resumes with nothing in flight: `tcp_slow_start_after_idle_check`, RFC 2861.
    pub(crate) fn on_resume(&mut self, now: Nanos, last_sent: Nanos, rto: Nanos) {
        let (idle, rto) = (self.idle(now, last_sent), rto / JIFFY);
        if idle <= rto {
            return;
        }
        let floor = self.initial.min(self.cwnd);
        self.ssthresh = self.threshold();
        let mut left = idle;
        while left > rto && self.cwnd > floor {
            left -= rto;
            self.cwnd >>= 1;
        }
        self.cwnd = self.cwnd.max(floor);
        self.stamp(now);
        self.used = 0;
    }

    /// Transmission starts after a pause (`tcp_event_data_sent`).
    pub(crate) fn on_transmit_start(&mut self, now: Nanos, last_sent: Nanos) {
        let idle = self.idle(now, last_sent);
        self.control.on_transmit_start(self.ticks.count(now), idle);
    }

    /// Ticks since data was last sent (`lsndtime`).
    fn idle(&self, now: Nanos, last_sent: Nanos) -> u64 {
        self.ticks.count(now) - self.ticks.count(last_sent)
    }
}

/// The sender's state after it has sent what it could.
#[derive(Debug)]
pub(crate) struct Sent {
    /// SND.UNA and SND.NXT.
    pub(crate) acked: Seq,
    pub(crate) next: Seq,
    /// Segments that are sent and not acknowledged.
    pub(crate) out: u32,
    /// Whether the window prevented more.
    pub(crate) is_limited: bool,
    /// Whether there was no recent loss or reordering.
    pub(crate) is_open: bool,
    pub(crate) rto: Nanos,
}

#[cfg(test)]
mod tests {
    use super::{Algorithm, Ticks, Window};
    use crate::pair::script::*;
    use crate::pair::{Exchange, Flow, MS};

    #[test]
    fn slow_start_doubles_the_window_every_round_trip() {
        let mut pair = pair(response(70 * FULL), &[]);
        for (at, cwnd) in [(240, 10), (340, 20), (440, 40)] {
            pair.run_until(at * MS);
            assert_eq!(server(&pair).cwnd, cwnd, "{at} ms");
        }
    }

    #[test]
    fn a_window_that_the_application_does_not_use_does_not_grow() {
        let flow = Flow {
            exchanges: vec![Exchange::new(300, 2 * FULL); 20],
            ..Flow::default()
        };
        let mut pair = pair(flow, &[]);
        pair.run();
        assert_eq!(server(&pair).cwnd, 10);
    }

    /// The window after 60 segments, a pause, and five more.
    fn cwnd_after(pause: u64) -> u32 {
        let second = Exchange {
            pause,
            ..Exchange::new(300, 5 * FULL)
        };
        let flow = Flow {
            exchanges: vec![Exchange::new(300, 60 * FULL), second],
            ..Flow::default()
        };
        let mut pair = pair(flow, &[]);
        pair.run();
        server(&pair).cwnd
    }

    #[test]
    fn after_a_pause_the_window_is_halved_per_timeout_down_to_the_initial_one() {
        // The timeout is 300 ms, and the server's pause is a round trip longer than the client's.
        assert_eq!(
            [100, 350, 700, 2_000].map(|ms| cwnd_after(ms * MS)),
            [70, 35, 17, 10]
        );
    }

    #[test]
    fn an_acknowledgment_says_that_the_window_is_in_use_even_if_it_does_not_grow() {
        // The acknowledgment of the first response arrives one round trip, less than a timeout, before the second
        // leaves.
        assert_eq!(cwnd_after(200 * MS), 70);
    }

    #[test]
    fn a_window_that_comes_down_unused_may_return_by_slow_start() {
        let mut window = Window::new(Algorithm::Reno, 10, Ticks::default());
        window.lower_threshold();
        window.restore(40, 5);
        assert_eq!((window.cwnd(), window.ssthresh()), (40, 5));
        window.on_application_limited(1_000 * MS, false);
        assert_eq!(
            (window.cwnd(), window.ssthresh()),
            (40, 5),
            "not while something is missing"
        );
        window.on_application_limited(1_000 * MS, true);
        assert_eq!(
            (window.cwnd(), window.ssthresh()),
            (25, 30),
            "three quarters of it"
        );
    }
}
