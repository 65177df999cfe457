//! Recovery from loss: what an acknowledgment says of it, and sending again what was lost.
//!
//! `tcp_fastretrans_alert` in `net/ipv4/tcp_input.c`, `tcp_xmit_retransmit_queue` in `net/ipv4/tcp_output.c`. Timeouts are
//! in `timeout.rs`, the window's reduction in `reduction.rs`, what is taken back in `undo.rs`.

use firstflight_path::Nanos;

use super::Socket;
use super::acks::Ack;
use super::timers::Pending;
use crate::clock::MS;
use crate::segment::{Range, Seq};

/// `enum tcp_ca_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    #[default]
    Open,
    Disorder,
    /// `TCP_CA_CWR`.
    Reduced,
    Recovery,
    Loss,
}

/// What to send once an acknowledgment is processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resume {
    Nothing,
    /// What is lost.
    Lost,
    /// New data, to see whether the timeout was spurious (F-RTO).
    New,
}

/// Where the sender is in the face of loss.
#[derive(Debug, Clone, Default)]
pub(super) struct Recovery {
    pub(super) phase: Phase,
    /// SND.NXT when the phase began: it ends when this is acknowledged.
    pub(super) high: Seq,
    /// SND.UNA when the phase began, as long as it may be taken back.
    pub(super) undo_from: Option<Seq>,
    /// Retransmissions not yet known to be superfluous; negative: none was made.
    pub(super) undo_resent: i64,
    /// Timestamp of the first retransmission, ms.
    pub(super) first_resent: Option<Nanos>,
    pub(super) prior_window: u32,
    pub(super) prior_threshold: Option<u32>,
    pub(super) delivered: u32,
    pub(super) sent: u32,
    pub(super) is_frto: bool,
    /// SND.NXT when a loss probe was sent.
    pub(super) probe: Option<Seq>,
    /// The probe was a segment sent again.
    pub(super) probe_is_resent: bool,
}

impl Recovery {
    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// The window is being brought down (`tcp_in_cwnd_reduction`).
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }

    pub(super) fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    pub(super) fn may_probe(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Reduced)
    }

    pub(super) fn has_probe(&self) -> bool {
        self.probe.is_some()
    }

    /// Whether a duplicate that ends here is the probe.
    pub(super) fn is_probe(&self, end: Seq) -> bool {
        self.probe_is_resent && self.probe == Some(end)
    }

    /// New segments left while the window is being reduced.
    pub(super) fn on_sent(&mut self, segments: u32) {
        if self.is_reducing() {
            self.sent += segments;
        }
    }

    /// The receiver got something twice (`tcp_check_dsack`).
    pub(super) fn on_duplicate(&mut self, range: Range, acked: Seq) {
        if self.undo_resent > 0 && range.1 <= acked && self.undo_from.is_some_and(|from| range.1 > from) {
            self.undo_resent -= 1;
        }
    }
}
impl Socket {
    /// An acknowledgment that hints at loss, or any while there is some: `tcp_fastretrans_alert`.
    pub(super) fn on_dubious_ack(&mut self, now: Nanos, ack: &mut Ack) -> Resume {
        if ack.echo_of_mark {
            self.recovery.prior_threshold = None;
        }
        if self.recovery.phase == Phase::Open {
            self.recovery.first_resent = None;
        } else if self.acked >= self.recovery.high {
            match self.recovery.phase {
                Phase::Reduced if self.acked != self.recovery.high => {
                    self.end_reduction();
                    self.recovery.phase = Phase::Open;
                }
                Phase::Recovery => {
                    self.undo_recovery(ack);
                    self.end_reduction();
                    self.recovery.phase = Phase::Open;
                }
                _ => {}
            }
        }
        match self.recovery.phase {
            Phase::Recovery => {
                if ack.advances && self.undo_partially(ack) {
                    return Resume::Nothing;
                }
                self.undo_by_duplicates();
                self.find_losses(now, ack);
                if self.recovery.phase != Phase::Recovery {
                    if self.board.lost == 0 {
                        return Resume::Nothing;
                    }
                    self.enter_recovery(ack.echo_of_mark);
                }
                Resume::Lost
            }
            Phase::Loss => {
                let resume = self.on_ack_after_timeout(now, ack);
                self.find_losses(now, ack);
                let is_over = self.recovery.phase == Phase::Open;
                if !(is_over || ack.lost_resent) {
                    return resume;
                }
                self.look_for_loss(ack, resume)
            }
            _ => {
                self.undo_by_duplicates();
                self.find_losses(now, ack);
                self.look_for_loss(ack, Resume::Nothing)
            }
        }
    }

    /// Enters recovery when something is lost; opens or stays in disorder when not.
    fn look_for_loss(&mut self, ack: &Ack, otherwise: Resume) -> Resume {
        if self.board.lost > 0 {
            self.enter_recovery(ack.echo_of_mark);
            return Resume::Lost;
        }
        if ack.echo_of_mark {
            self.reduce_for_mark();
        }
        if self.recovery.phase != Phase::Reduced {
            self.keep_open();
        }
        otherwise
    }

    /// `tcp_try_keep_open`.
    pub(super) fn keep_open(&mut self) {
        let is_disordered = self.board.sacked + self.board.lost + self.board.resent > 0;
        let phase = if is_disordered {
            Phase::Disorder
        } else {
            Phase::Open
        };
        if phase != self.recovery.phase {
            self.recovery.phase = phase;
            self.recovery.high = self.next;
        }
    }

    /// `tcp_enter_recovery`.
    pub(super) fn enter_recovery(&mut self, for_mark: bool) {
        let was_reducing = self.recovery.is_reducing();
        self.recovery.prior_threshold = None;
        self.mark_undo();
        if !was_reducing {
            self.recovery.prior_threshold = (!for_mark).then(|| self.window.threshold());
            self.start_reduction();
        }
        self.recovery.phase = Phase::Recovery;
    }

    pub(super) fn mark_undo(&mut self) {
        self.recovery.undo_from = Some(self.acked);
        let resent = i64::from(self.board.resent);
        self.recovery.undo_resent = if resent > 0 { resent } else { -1 };
    }

    /// `tcp_xmit_recovery`.
    pub(super) fn resume(&mut self, now: Nanos, resume: Resume) {
        match resume {
            Resume::Nothing => return,
            Resume::New => {
                self.push(now);
                if self.next > self.recovery.high {
                    return;
                }
                self.recovery.is_frto = false;
            }
            Resume::Lost => {}
        }
        self.resend_lost(now);
    }

    /// `tcp_xmit_retransmit_queue`.
    pub(super) fn resend_lost(&mut self, now: Nanos) {
        let mut rearms = false;
        for index in 0..self.board.len() {
            if self.board.in_flight() >= self.window.cwnd {
                break;
            }
            if self
                .board
                .get(index)
                .is_some_and(|flight| flight.lost && !flight.resent && !flight.sacked)
            {
                self.resend(now, index);
                self.recovery.on_sent(1);
                rearms |= index == 0 && self.timers.pending() != Some(Pending::Reorder);
            }
        }
        if rearms {
            self.set_timer(now, self.rtt.rto, Pending::Retransmit);
        }
    }

    /// Sends a segment again: `tcp_retransmit_skb`.
    pub(super) fn resend(&mut self, now: Nanos, index: usize) {
        let flight = self.board.mark_resent(index, now);
        self.recovery.first_resent.get_or_insert(now / MS);
        self.recovery.undo_resent = self.recovery.undo_resent.max(0) + 1;
        self.transmit_flight(now, &flight);
    }
}
