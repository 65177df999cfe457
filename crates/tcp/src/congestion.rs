//! The congestion window and who moves it.
//!
//! What is common to the algorithms is here: slow start, the check that the window was in use, its decay when
//! the application pauses. CUBIC's own part is in `cubic.rs`; `NewReno` needs no module (RFC 5681).

use firstflight_path::Nanos;
use serde::{Deserialize, Serialize};

use crate::cubic::Cubic;
use crate::segment::Seq;

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

/// The window, in segments.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    /// Segments that may be in flight.
    pub(crate) cwnd: u32,
    /// Below it the window grows by slow start.
    pub(crate) ssthresh: u32,
    initial: u32,
    /// Acknowledged segments towards the next increase.
    credit: u32,
    algorithm: Growth,
    /// `tcp_cwnd_validate`: whether the window was what held the sender back, and how much of it was used.
    is_limited: bool,
    max_out: u32,
    usage_end: Seq,
    used: u32,
    used_since: Nanos,
}

#[derive(Debug, Clone)]
enum Growth {
    Cubic(Cubic),
    Reno,
}

/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = 0x7fff_ffff;

impl Window {
    pub(crate) fn new(algorithm: Algorithm, initial: u32) -> Self {
        Self {
            cwnd: initial,
            ssthresh: INFINITE,
            initial,
            credit: 0,
            algorithm: match algorithm {
                Algorithm::Cubic => Growth::Cubic(Cubic::default()),
                Algorithm::Reno => Growth::Reno,
            },
            is_limited: false,
            max_out: 0,
            usage_end: 0,
            used: 0,
            used_since: 0,
        }
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// `tcp_is_cwnd_limited`: in slow start a window half used may grow.
    fn is_limited(&self) -> bool {
        self.is_limited || (self.in_slow_start() && self.cwnd < 2 * self.max_out)
    }

    /// An acknowledgment of `acked` segments arrives outside recovery (`tcp_cong_avoid`).
    pub(crate) fn on_acked(&mut self, now: Nanos, acked: u32) {
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
        let per_increase = match &mut self.algorithm {
            Growth::Cubic(cubic) => cubic.per_increase(now, self.cwnd, left),
            Growth::Reno => self.cwnd,
        };
        self.grow(per_increase, left);
    }

    /// `tcp_cong_avoid_ai`: one segment more for every `per_increase` acknowledged.
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

    /// A sample of the RTT came with an acknowledgment: `HyStart` may end slow start (`cubictcp_acked`).
    pub(crate) fn on_rtt(&mut self, now: Nanos, rtt: Nanos, acked: Seq, next: Seq) {
        let slow_start = self.in_slow_start();
        if let Growth::Cubic(cubic) = &mut self.algorithm
            && cubic.on_rtt(now, rtt, self.cwnd, slow_start, acked, next)
        {
            self.ssthresh = self.cwnd;
        }
    }

    /// The threshold after a loss.
    pub(crate) fn threshold_after_loss(&mut self) -> u32 {
        match &mut self.algorithm {
            Growth::Cubic(cubic) => cubic.threshold_after_loss(self.cwnd),
            // Section 3.1, equation 4, with the window in place of the flight size (`tcp_reno_ssthresh`).
            Growth::Reno => (self.cwnd >> 1).max(2),
        }
    }

    /// A timeout: what was learnt of the path is forgotten (`cubictcp_state`).
    pub(crate) fn on_timeout(&mut self, now: Nanos, next: Seq) {
        if let Growth::Cubic(cubic) = &mut self.algorithm {
            cubic.reset(now, next);
        }
    }

    pub(crate) fn forget_credit(&mut self) {
        self.credit = 0;
    }

    /// `tcp_current_ssthresh` outside recovery.
    pub(crate) fn threshold(&self) -> u32 {
        self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2))
    }

    /// Segments were sent, or could not be: `tcp_cwnd_validate` (RFC 7661 in spirit).
    pub(crate) fn validate(&mut self, now: Nanos, sent: &Sent) {
        if sent.acked >= self.usage_end || sent.is_limited || (!self.is_limited && sent.out > self.max_out) {
            self.is_limited = sent.is_limited;
            self.max_out = sent.out;
            self.usage_end = sent.next;
        }
        if self.is_limited() {
            self.used = 0;
            self.used_since = now;
            return;
        }
        self.used = self.used.max(sent.out);
        if now.saturating_sub(self.used_since) >= sent.rto {
            self.on_application_limited(now, sent.is_open);
        }
    }

    /// `tcp_cwnd_application_limited`: a window that was not used for an RTO is halved towards its use.
    fn on_application_limited(&mut self, now: Nanos, is_open: bool) {
        let used = self.used.max(self.initial);
        if is_open && used < self.cwnd {
            self.ssthresh = self.threshold();
            self.cwnd = u32::midpoint(self.cwnd, used);
        }
        self.used = 0;
        self.used_since = now;
    }

    /// The sender resumes after `idle`, nothing in flight: `tcp_slow_start_after_idle_check`, RFC 2861.
    pub(crate) fn on_resume(&mut self, now: Nanos, idle: Nanos, rto: Nanos) {
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
        self.used_since = now;
        self.used = 0;
    }

    /// Transmission starts after a pause of `idle`: CUBIC's curve does not count it (`cubictcp_cwnd_event`).
    pub(crate) fn on_transmit_start(&mut self, now: Nanos, idle: Nanos) {
        if let Growth::Cubic(cubic) = &mut self.algorithm {
            cubic.skip(now, idle);
        }
    }
}

/// What the sender tells the window after it has sent what it could.
#[derive(Debug)]
pub(crate) struct Sent {
    /// SND.UNA and SND.NXT.
    pub(crate) acked: Seq,
    pub(crate) next: Seq,
    /// Segments in flight, by count of those not acknowledged.
    pub(crate) out: u32,
    /// Whether the window kept it from sending more.
    pub(crate) is_limited: bool,
    /// Whether nothing was lost or reordered lately.
    pub(crate) is_open: bool,
    pub(crate) rto: Nanos,
}
