//! Taking back what was done in error: retransmissions that turn out not to have been needed.
//!
//! By timestamps after RFC 3522 (Eifel), by D-SACK after RFC 3708: `tcp_may_undo` and the `tcp_try_undo_*` functions in
//! `net/ipv4/tcp_input.c`.

use super::Socket;
use super::acks::Ack;
use super::recovery::Phase;

impl Socket {
    /// `tcp_may_undo`: all retransmissions came twice, or the acknowledgment answers the original.
    pub(super) fn may_undo(&self, ack: &Ack) -> bool {
        self.recovery.undo_from.is_some() && (self.recovery.undo_resent == 0 || self.is_original(ack))
    }

    /// `tcp_packet_delayed`.
    pub(super) fn is_original(&self, ack: &Ack) -> bool {
        self.recovery
            .first_resent
            .is_some_and(|first| ack.echo > 0 && ack.echo < first)
    }

    /// `tcp_undo_cwnd_reduction`.
    pub(super) fn undo_window(&mut self, forget_losses: bool) {
        if forget_losses {
            self.board.forget_losses();
        }
        if let Some(threshold) = self.recovery.prior_threshold {
            self.window.cwnd = self.window.cwnd.max(self.recovery.prior_window);
            self.window.ssthresh = self.window.ssthresh.max(threshold);
        }
        self.recovery.undo_from = None;
        self.rack.force();
    }

    pub(super) fn undo_recovery(&mut self, ack: &Ack) {
        if self.may_undo(ack) {
            self.undo_window(false);
        }
    }

    /// `tcp_try_undo_partial`: a part of what was taken for lost arrives late.
    pub(super) fn undo_partially(&mut self, ack: &Ack) -> bool {
        if self.recovery.undo_from.is_none() || !self.is_original(ack) {
            return false;
        }
        if self.board.resent > 0 {
            return true;
        }
        self.recovery.first_resent = None;
        self.undo_window(true);
        self.recovery.phase = Phase::Disorder;
        self.keep_open();
        true
    }

    pub(super) fn undo_by_duplicates(&mut self) {
        if self.recovery.undo_from.is_some() && self.recovery.undo_resent == 0 {
            self.undo_window(false);
            if self.recovery.phase == Phase::Recovery {
                self.recovery.phase = Phase::Disorder;
                self.keep_open();
            }
        }
    }

    /// `tcp_try_undo_loss`.
    pub(super) fn undo_loss(&mut self, ack: &Ack, frto: bool) -> bool {
        if !frto && !self.may_undo(ack) {
            return false;
        }
        self.undo_window(true);
        self.timeouts = 0;
        self.recovery.phase = Phase::Open;
        true
    }
}
