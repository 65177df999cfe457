//! The retransmission timeout, and whether it was spurious (F-RTO, RFC 5682).
//!
//! `tcp_retransmit_timer` in `net/ipv4/tcp_timer.c`; `tcp_enter_loss` and `tcp_process_loss` in `net/ipv4/tcp_input.c`.

use firstflight_path::Nanos;

use super::Socket;
use super::acks::Ack;
use super::recovery::{Phase, Resume};
use super::timers::Pending;

impl Socket {
    /// The retransmission timeout: `tcp_retransmit_timer` and `tcp_enter_loss`.
    pub(super) fn on_retransmission_timeout(&mut self, now: Nanos) {
        if self.board.is_empty() {
            return;
        }
        self.timeouts += 1;
        if self.timeouts > super::close::MAX_TIMEOUTS {
            return self.die();
        }
        self.enter_loss(now);
        self.resend(now, 0);
        self.rtt.back_off();
        self.set_timer(now, self.rtt.rto, Pending::Retransmit);
    }

    pub(super) fn enter_loss(&mut self, now: Nanos) {
        for index in 0..self.board.len() {
            let is_recent = index > 0
                && self
                    .board
                    .get(index)
                    .is_some_and(|flight| self.is_recent(now, flight));
            if !is_recent {
                self.board.mark_lost(index);
            }
        }
        let recovery = &self.recovery;
        let is_new = !recovery.is_recovering();
        let starts = matches!(recovery.phase, Phase::Open | Phase::Disorder)
            || recovery.high <= self.acked
            || (recovery.phase == Phase::Loss && self.timeouts <= 1);
        if starts {
            self.recovery.prior_threshold = Some(self.window.threshold());
            self.recovery.prior_window = self.window.cwnd;
            self.window.ssthresh = self.window.threshold_after_loss();
            self.mark_undo();
        }
        self.window.cwnd = self.board.in_flight() + 1;
        self.window.forget_credit();
        self.window.on_timeout(now, self.next);
        self.recovery.phase = Phase::Loss;
        self.recovery.high = self.next;
        self.recovery.probe = None;
        self.congestion.answers = true;
        self.recovery.is_frto = is_new || self.timeouts > 1;
    }

    /// `tcp_process_loss`.
    pub(super) fn on_ack_after_timeout(&mut self, now: Nanos, ack: &Ack) -> Resume {
        let is_recovered = self.acked >= self.recovery.high;
        if ack.advances && self.undo_loss(ack, false) {
            return Resume::Nothing;
        }
        if self.recovery.is_frto {
            if ack.original_acked && self.undo_loss(ack, true) {
                return Resume::Nothing;
            }
            if self.next > self.recovery.high {
                self.recovery.is_frto &= ack.not_dup && !ack.data_sacked;
            } else if ack.advances && !is_recovered {
                self.recovery.high = self.next;
                if self.has_unsent(now) && self.peer_window_end > self.next {
                    return Resume::New;
                }
                self.recovery.is_frto = false;
            }
        }
        if is_recovered {
            self.undo_recovery(ack);
            self.recovery.phase = Phase::Open;
            return Resume::Nothing;
        }
        Resume::Lost
    }
}
