//! Bringing the window down: proportional rate reduction (RFC 6937).
//!
//! `tcp_init_cwnd_reduction`, `tcp_cwnd_reduction` and `tcp_end_cwnd_reduction` in `net/ipv4/tcp_input.c`.

use super::Socket;
use super::acks::Ack;
use super::recovery::Phase;

impl Socket {
    /// `tcp_init_cwnd_reduction`.
    pub(super) fn start_reduction(&mut self) {
        self.recovery.high = self.next;
        self.recovery.probe = None;
        self.recovery.prior_window = self.window.cwnd;
        self.recovery.delivered = 0;
        self.recovery.sent = 0;
        self.window.forget_credit();
        self.window.ssthresh = self.window.threshold_after_loss();
        self.congestion.answers = true;
    }

    /// Proportional rate reduction: `tcp_cwnd_reduction`.
    pub(super) fn reduce_window(&mut self, ack: &Ack, newly_lost: u32) {
        let recovery = &mut self.recovery;
        if ack.delivered == 0 || recovery.prior_window == 0 {
            return;
        }
        recovery.delivered += ack.delivered;
        let in_flight = self.board.in_flight();
        let threshold = self.window.ssthresh;
        let mut count = if in_flight > threshold {
            let share = u64::from(threshold) * u64::from(recovery.delivered);
            (share.div_ceil(u64::from(recovery.prior_window)) as u32).saturating_sub(recovery.sent)
        } else {
            let mut count = recovery
                .delivered
                .saturating_sub(recovery.sent)
                .max(ack.delivered);
            count += u32::from(ack.advances && newly_lost == 0);
            count.min(threshold - in_flight)
        };
        count = count.max(u32::from(recovery.sent == 0));
        self.window.cwnd = in_flight + count;
    }

    /// `tcp_end_cwnd_reduction`.
    pub(super) fn end_reduction(&mut self) {
        if self.recovery.phase == Phase::Reduced || self.recovery.undo_from.is_some() {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// The window pays for a loss that was repaired already (`tcp_process_tlp_ack`).
    pub(super) fn reduce_at_once(&mut self) {
        self.start_reduction();
        self.recovery.phase = Phase::Reduced;
        self.end_reduction();
        self.keep_open();
    }
}
