//! Loss recovery: detecting it from acknowledgments, retransmitting, reducing the window, the retransmission
//! timeout, and undoing all of that if it was not needed.
//!
//! `tcp_fastretrans_alert`, `tcp_cwnd_reduction` (proportional rate reduction, RFC 6937), `tcp_enter_loss`,
//! `tcp_process_loss` (F-RTO, RFC 5682) and `tcp_may_undo` with the `tcp_try_undo_*` functions (by timestamps,
//! Eifel, RFC 3522; by D-SACK, RFC 3708) in `net/ipv4/tcp_input.c`, `tcp_xmit_retransmit_queue` in
//! `net/ipv4/tcp_output.c`, `tcp_retransmit_timer` in `net/ipv4/tcp_timer.c`. `rack.rs` finds losses.

use firstflight_path::Nanos;

use super::Sender;
use super::acks::Ack;
use crate::Outlet;
use crate::segment::Seq;
use crate::time::MS;
use crate::timers::Pending;

/// `sysctl_tcp_reordering`.
pub(super) const DUP_THRESHOLD: u32 = 3;
/// `tcp_retries2`: timeouts in a row after which the sender gives the connection up.
const MAX_TIMEOUTS: u32 = 15;

/// The phase of loss recovery: `enum tcp_ca_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing is missing: `TCP_CA_Open`.
    #[default]
    Open,
    /// Something is missing, and may only be late: `TCP_CA_Disorder`.
    Disorder,
    /// The window is reduced after a congestion mark: `TCP_CA_CWR`.
    Reduced,
    /// Losses are retransmitted: `TCP_CA_Recovery`.
    Recovery,
    /// The retransmission timer ran out: `TCP_CA_Loss`.
    Loss,
}

/// What to send once an acknowledgment is processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    Nothing,
    /// Lost data.
    Lost,
    /// New data, to see whether the timeout was spurious (F-RTO).
    New,
}

/// The state of loss recovery.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recovery {
    phase: Phase,
    /// SND.NXT when the phase began. The phase ends when this is acknowledged.
    high: Seq,
    /// SND.UNA when the phase began, as long as it may be undone.
    undo_from: Option<Seq>,
    /// Retransmissions not yet known to be unnecessary; negative if there was none.
    undo_resent: i64,
    /// Timestamp of the first retransmission, ms.
    first_resent: Option<Nanos>,
    prior_window: u32,
    prior_threshold: Option<u32>,
    delivered: u32,
    sent: u32,
    is_frto: bool,
}

impl Recovery {
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// SND.NXT when the phase began.
    pub(crate) fn high(&self) -> Seq {
        self.high
    }

    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether the window is being reduced (`tcp_in_cwnd_reduction`).
    pub(crate) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }

    pub(crate) fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    pub(crate) fn may_probe(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Reduced)
    }

    /// `tcp_non_congestion_loss_retransmit`: data up to `high` is lost, but not by congestion.
    pub(crate) fn enter_loss_without_congestion(&mut self, high: Seq) {
        self.phase = Phase::Loss;
        self.high = high;
        self.prior_threshold = None;
        self.undo_from = None;
    }

    /// New segments were sent during a reduction.
    pub(crate) fn on_sent(&mut self, segments: u32) {
        if self.is_reducing() {
            self.sent += segments;
        }
    }

    /// The receiver reports a duplicate of `segments` segments, up to `end`, that were sent again (DSACK, RFC 2883).
    pub(crate) fn on_duplicate(&mut self, end: Seq, segments: u32) {
        if self.undo_resent > 0 && self.undo_from.is_some_and(|from| end > from) {
            self.undo_resent = (self.undo_resent - i64::from(segments)).max(0);
        }
    }

    /// Whether out-of-order arrivals indicate reordering (`tcp_sacktag_write_queue`).
    pub(crate) fn learns_reordering(&self) -> bool {
        self.phase != Phase::Loss || self.undo_from.is_some()
    }
}

/// Loss detection from acknowledgments, and retransmission.
impl Sender {
    /// Handles an acknowledgment that hints at loss, or any acknowledgment during recovery:
    /// `tcp_fastretrans_alert`.
    pub(crate) fn on_dubious_ack(&mut self, now: Nanos, ack: &mut Ack) -> Resume {
        if ack.ece {
            self.recovery.prior_threshold = None;
        }
        if self.recovery.phase == Phase::Open {
            self.recovery.first_resent = None;
        } else if self.acked >= self.recovery.high {
            match self.recovery.phase {
                Phase::Reduced if self.acked != self.recovery.high => {
                    self.end_reduction(now);
                    self.recovery.phase = Phase::Open;
                }
                Phase::Recovery => {
                    self.undo_recovery(now, ack);
                    self.end_reduction(now);
                }
                _ => {}
            }
        }
        match self.recovery.phase {
            Phase::Recovery => {
                if ack.advances && self.undo_partially(now, ack) {
                    return Resume::Nothing;
                }
                if self.undo_by_duplicates(now) {
                    self.try_to_open(ack);
                }
                self.find_losses(now, ack);
                if self.recovery.phase != Phase::Recovery {
                    if self.board.lost() == 0 {
                        return Resume::Nothing;
                    }
                    self.enter_recovery(ack.ece);
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
                if is_over {
                    self.undo_by_duplicates(now);
                }
                self.find_losses(now, ack);
                self.look_for_loss(ack, resume)
            }
            Phase::Open | Phase::Disorder | Phase::Reduced => {
                if self.recovery.phase != Phase::Reduced {
                    self.undo_by_duplicates(now);
                }
                self.find_losses(now, ack);
                self.look_for_loss(ack, Resume::Nothing)
            }
        }
    }

    /// Enters recovery if data is lost; otherwise enters disorder or stays in it.
    fn look_for_loss(&mut self, ack: &Ack, otherwise: Resume) -> Resume {
        if self.board.lost() > 0 {
            self.enter_recovery(ack.ece);
            return Resume::Lost;
        }
        self.try_to_open(ack);
        otherwise
    }

    /// `tcp_try_to_open`.
    fn try_to_open(&mut self, ack: &Ack) {
        self.clean_resent_time();
        if ack.ece {
            self.reduce_for_ece();
        }
        if self.recovery.phase != Phase::Reduced {
            self.keep_open();
        }
    }

    /// `tcp_retrans_stamp_cleanup`.
    fn clean_resent_time(&mut self) {
        if !self.board.has_resent() {
            self.recovery.first_resent = None;
        }
    }

    /// `tcp_try_keep_open`.
    fn keep_open(&mut self) {
        let is_disordered = self.board.sacked() + self.board.lost() > 0 || self.board.has_resent();
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
    pub(crate) fn enter_recovery(&mut self, for_ece: bool) {
        let was_reducing = self.recovery.is_reducing();
        self.clean_resent_time();
        self.recovery.prior_threshold = None;
        self.mark_undo();
        if !was_reducing {
            self.recovery.prior_threshold = (!for_ece).then(|| self.window.threshold());
            self.start_reduction();
        }
        self.recovery.phase = Phase::Recovery;
    }

    fn mark_undo(&mut self) {
        self.recovery.undo_from = Some(self.acked);
        let resent = i64::from(self.board.resent()) + i64::from(self.probe.is_resent());
        self.recovery.undo_resent = if resent > 0 { resent } else { -1 };
    }

    /// `tcp_xmit_recovery`.
    pub(crate) fn resume(&mut self, now: Nanos, resume: Resume, outlet: &mut Outlet<'_>) {
        match resume {
            Resume::Nothing => return,
            Resume::New => {
                self.push(now, outlet);
                if self.next > self.recovery.high {
                    return;
                }
                self.recovery.is_frto = false;
            }
            Resume::Lost => {}
        }
        self.resend_lost(now, outlet);
    }

    /// `tcp_xmit_retransmit_queue`.
    pub(crate) fn resend_lost(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        let most = self.bundle_limit() as u32;
        let mut rearms = false;
        let mut index = 0;
        while let Some(flight) = self.board.get(index) {
            let left = self.window.cwnd().saturating_sub(self.board.in_flight());
            if left == 0 || self.board.resent() >= self.board.lost() {
                break;
            }
            if flight.lost && !flight.resent && !flight.sacked {
                let sent = self.resend(now, index, left.min(most), outlet);
                self.recovery.on_sent(sent);
                rearms |= index == 0 && self.timer.pending() != Some(Pending::Reorder);
            }
            index += 1;
        }
        if rearms {
            self.set_timer(now, self.rtt.rto(), Pending::Retransmit);
        }
    }

    /// Retransmits at most `most` segments of a flight, and returns how many it sent: `tcp_retransmit_skb`.
    pub(crate) fn resend(&mut self, now: Nanos, index: usize, most: u32, outlet: &mut Outlet<'_>) -> u32 {
        let segments = self.send_again(now, index, most, outlet);
        self.board.mark_resent(index, now, self.delivered);
        self.recovery.first_resent.get_or_insert(now / MS);
        self.recovery.undo_resent = self.recovery.undo_resent.max(0) + i64::from(segments);
        segments
    }

    /// Puts at most `most` segments of a flight on the wire again, and returns how many: `__tcp_retransmit_skb`.
    pub(crate) fn send_again(&mut self, now: Nanos, index: usize, most: u32, outlet: &mut Outlet<'_>) -> u32 {
        let Some(flight) = self.board.get(index) else {
            return 0;
        };
        let len = u64::from(most) * u64::from(self.mss);
        if flight.len() > len {
            self.board.split(index, len);
        } else {
            self.board.collapse(index, self.peer_window_end);
        }
        let Some(flight) = self.board.get(index).copied() else {
            return 0;
        };
        self.transmit_flight(now, &flight, outlet);
        self.board.mark_probe(index, now, self.delivered);
        self.total_resent += flight.segments();
        flight.segments()
    }
}

/// Proportional rate reduction.
impl Sender {
    /// `tcp_init_cwnd_reduction`.
    fn start_reduction(&mut self) {
        self.recovery.high = self.next;
        self.probe.forget();
        self.recovery.prior_window = self.window.cwnd();
        self.recovery.delivered = 0;
        self.recovery.sent = 0;
        self.window.lower_threshold();
        self.ecn.on_reduction();
    }

    /// Proportional rate reduction: `tcp_cwnd_reduction`. `delivered`: segments that have just arrived; `is_clean`:
    /// the acknowledgment moved SND.UNA and showed no loss.
    pub(crate) fn reduce_window(&mut self, delivered: u32, is_clean: bool) {
        let recovery = &mut self.recovery;
        if delivered == 0 || recovery.prior_window == 0 {
            return;
        }
        recovery.delivered += delivered;
        let in_flight = self.board.in_flight();
        let threshold = self.window.ssthresh();
        let mut count = if in_flight > threshold {
            let share = u64::from(threshold) * u64::from(recovery.delivered);
            (share.div_ceil(u64::from(recovery.prior_window)) as u32).saturating_sub(recovery.sent)
        } else {
            let mut count = recovery.delivered.saturating_sub(recovery.sent).max(delivered);
            count += u32::from(is_clean);
            count.min(threshold - in_flight)
        };
        count = count.max(u32::from(recovery.sent == 0));
        self.window.allow(in_flight, count);
    }

    /// `tcp_end_cwnd_reduction`.
    fn end_reduction(&mut self, now: Nanos) {
        if self.recovery.phase == Phase::Reduced || self.recovery.undo_from.is_some() {
            self.window.end_reduction();
            self.window.stamp(now);
        }
    }

    /// `tcp_enter_cwr`: a mark was reported. Reduces the window, unless it is being reduced.
    fn reduce_for_ece(&mut self) {
        self.recovery.prior_threshold = None;
        if matches!(self.recovery.phase, Phase::Open | Phase::Disorder) {
            self.recovery.undo_from = None;
            self.start_reduction();
            self.recovery.phase = Phase::Reduced;
        }
    }

    /// Reduces the window for a loss that was already repaired (`tcp_process_tlp_ack`).
    pub(crate) fn reduce_at_once(&mut self, now: Nanos) {
        self.start_reduction();
        self.recovery.phase = Phase::Reduced;
        self.end_reduction(now);
        self.keep_open();
    }
}

/// The retransmission timeout, and the detection of spurious ones.
impl Sender {
    /// The retransmission timeout: `tcp_retransmit_timer`. Returns whether the connection is given up.
    pub(crate) fn on_retransmission_timeout(&mut self, now: Nanos, outlet: &mut Outlet<'_>) -> bool {
        if self.board.is_empty() {
            return false;
        }
        self.timeouts += 1;
        if self.timeouts > MAX_TIMEOUTS {
            return true;
        }
        self.enter_loss(now);
        self.resend(now, 0, 1, outlet);
        self.rtt.back_off();
        self.set_timer(now, self.rtt.rto(), Pending::Retransmit);
        false
    }

    /// Marks as lost all data that was not sent only recently: `tcp_enter_loss`.
    pub(crate) fn enter_loss(&mut self, now: Nanos) {
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
            self.recovery.prior_window = self.window.cwnd();
            self.window.lower_threshold();
            self.mark_undo();
        }
        self.window.on_timeout(now, self.board.in_flight(), self.next);
        if !self.recovery.is_reducing()
            && self.recovery.phase != Phase::Loss
            && self.board.sacked() >= DUP_THRESHOLD
        {
            self.rack.on_timeout();
        }
        self.recovery.phase = Phase::Loss;
        self.recovery.high = self.next;
        self.probe.forget();
        self.ecn.on_reduction();
        self.recovery.is_frto = is_new || self.timeouts > 1;
    }

    /// `tcp_process_loss`.
    fn on_ack_after_timeout(&mut self, now: Nanos, ack: &Ack) -> Resume {
        let is_recovered = self.acked >= self.recovery.high;
        if ack.advances && self.undo_loss(now, ack, false) {
            return Resume::Nothing;
        }
        if self.recovery.is_frto {
            if ack.original_acked && self.undo_loss(now, ack, true) {
                return Resume::Nothing;
            }
            if self.next > self.recovery.high {
                self.recovery.is_frto &= !(ack.data_sacked || ack.is_plain_duplicate());
            } else if ack.advances && !is_recovered {
                self.recovery.high = self.next;
                if self.has_unsent() && self.peer_window_end > self.next {
                    return Resume::New;
                }
                self.recovery.is_frto = false;
            }
        }
        if is_recovered {
            self.undo_recovery(now, ack);
            return Resume::Nothing;
        }
        Resume::Lost
    }
}

/// Undoing.
impl Sender {
    /// `tcp_may_undo`: all retransmissions were duplicates, or the acknowledgment answers the original.
    fn may_undo(&self, ack: &Ack) -> bool {
        self.recovery.undo_from.is_some() && (self.recovery.undo_resent == 0 || self.is_original(ack))
    }

    /// `tcp_packet_delayed`: the acknowledgment answers data sent before the first retransmission.
    fn is_original(&self, ack: &Ack) -> bool {
        self.recovery
            .first_resent
            .is_none_or(|first| ack.echo > 0 && ack.echo < first)
    }

    /// `tcp_undo_cwnd_reduction`.
    fn undo_window(&mut self, now: Nanos, forget_losses: bool) {
        if forget_losses {
            self.board.forget_losses();
        }
        if let Some(threshold) = self.recovery.prior_threshold {
            self.window.restore(self.recovery.prior_window, threshold);
        }
        self.window.stamp(now);
        self.recovery.undo_from = None;
        self.rack.force();
    }

    /// `tcp_try_undo_recovery`: the data that counted as lost has arrived.
    fn undo_recovery(&mut self, now: Nanos, ack: &Ack) {
        if self.may_undo(ack) {
            self.undo_window(now, false);
        } else {
            self.rack.on_recovered();
        }
        self.recovery.phase = Phase::Open;
    }

    /// On a server with Fast Open: the SYN-ACK is retransmitted (`tcp_fastopen_synack_timer`).
    pub(crate) fn on_syn_ack_resent(&mut self, now: Nanos) {
        self.recovery.first_resent.get_or_insert(now / MS);
    }

    /// The SYN-ACK is acknowledged, by a segment that echoes `echo` (`tcp_rcv_synrecv_state_fastopen`).
    pub(crate) fn on_early_handshake_end(&mut self, now: Nanos, echo: Nanos) {
        if self.recovery.phase == Phase::Loss && self.board.is_empty() {
            let ack = Ack {
                echo,
                ..Ack::default()
            };
            self.undo_recovery(now, &ack);
        }
        if self.recovery.phase != Phase::Recovery {
            self.recovery.first_resent = None;
        }
    }

    /// `tcp_try_undo_partial`: a part of the data that counted as lost arrives late. Returns whether to mark
    /// nothing more as lost, as long as a retransmission is on its way.
    fn undo_partially(&mut self, now: Nanos, ack: &Ack) -> bool {
        if self.recovery.undo_from.is_none() || !self.is_original(ack) {
            return false;
        }
        self.rack
            .check_reordering(ack.prior_acked, self.board.highest_sacked(self.acked), self.mss);
        if self.board.resent() > 0 {
            return true;
        }
        self.clean_resent_time();
        self.undo_window(now, true);
        self.keep_open();
        false
    }

    /// `tcp_try_undo_dsack`.
    fn undo_by_duplicates(&mut self, now: Nanos) -> bool {
        let undoes = self.recovery.undo_from.is_some() && self.recovery.undo_resent == 0;
        if undoes {
            self.rack.on_undone_by_duplicates();
            self.undo_window(now, false);
        }
        undoes
    }

    /// `tcp_try_undo_loss`.
    fn undo_loss(&mut self, now: Nanos, ack: &Ack, frto: bool) -> bool {
        if !frto && !self.may_undo(ack) {
            return false;
        }
        self.undo_window(now, true);
        self.timeouts = 0;
        self.recovery.phase = Phase::Open;
        true
    }
}

#[cfg(test)]
mod tests {
    use firstflight_path::Direction;

    use super::*;
    use crate::Socket;
    use crate::pair::script::*;
    use crate::pair::{Closes, Fault, Link, Pair};

    /// Phase, window and threshold at each change of the phase.
    fn phases<L: Link>(mut pair: Pair<L>) -> Vec<(Phase, u32, u32)> {
        let mut phases: Vec<(Phase, u32, u32)> = vec![];
        while pair.step().is_some() {
            let Some(info) = pair.server().map(Socket::info) else {
                continue;
            };
            if phases.last().is_none_or(|(phase, ..)| *phase != info.phase) {
                phases.push((info.phase, info.cwnd, info.ssthresh));
            }
        }
        phases
    }

    const NO_THRESHOLD: u32 = 0x7fff_ffff;

    #[test]
    fn the_window_comes_down_in_proportion_to_what_arrives() {
        let pair = behind(10_000_000, response(60 * FULL), &[(Down, 15, Fault::Lost)]);
        // The window falls from 22 segments to seven tenths of them: two are sent for every three that arrive.
        assert_eq!(
            phases(pair),
            [
                (Phase::Open, 10, NO_THRESHOLD),
                (Phase::Disorder, 22, NO_THRESHOLD),
                (Phase::Recovery, 21, 15),
                (Phase::Open, 15, 15)
            ]
        );
    }

    #[test]
    fn what_is_lost_goes_first_and_new_data_paces_the_rest() {
        let mut pair = behind(10_000_000, response(40 * FULL), &[(Down, 15, Fault::Lost)]);
        pair.run();
        assert_sent(
            pair.sent(Down),
            355..=364,
            "
            355.353 down .  49233:50681(1448) ack 301
            356.553 down .  50681:52129(1448) ack 301
            357.753 down .  17377:18825(1448) ack 301
            358.953 down .  52129:53577(1448) ack 301
            360.153 down .  53577:55025(1448) ack 301
            362.553 down .  55025:56473(1448) ack 301
            363.753 down P. 56473:57921(1448) ack 301
        ",
        );
    }

    #[test]
    fn a_retransmission_that_is_lost_too_waits_for_the_timeout() {
        let lost = [(Down, 4, Fault::Lost), (Down, 13, Fault::Lost)];
        let mut pair = pair(response(10 * FULL), &lost);
        pair.run();
        assert_sent(
            pair.trace(),
            201..,
            "
            250 down . 1449:2897(1448) ack 301
            576 down . 1449:2897(1448) ack 301
            626 up   . 301:301(0) ack 14481
        ",
        );
    }

    #[test]
    fn a_timeout_starts_again_from_one_segment() {
        let lost: Vec<_> = (3..=13).map(|number| (Down, number, Fault::Lost)).collect();
        assert_eq!(
            phases(pair(response(12 * FULL), &lost)),
            [
                (Phase::Open, 10, NO_THRESHOLD),
                (Phase::Loss, 1, 7),
                (Phase::Open, 7, 7)
            ]
        );
    }

    /// All others overtake packet 5 down, which is retransmitted needlessly.
    const OVERTAKEN: (Direction, usize, Fault) = (Down, 5, Fault::Delayed(10 * MS));

    #[test]
    fn an_acknowledgment_of_the_original_undoes_the_reduction() {
        let mut pair = pair(response(10 * FULL), &[OVERTAKEN]);
        pair.run_until(255 * MS);
        assert_eq!(
            (server(&pair).phase, server(&pair).ssthresh),
            (Phase::Recovery, 8)
        );
        // Its timestamp echo is older than the retransmission of 250 ms (Eifel).
        pair.run_until(260 * MS);
        let info = server(&pair);
        assert_eq!(
            (info.phase, info.cwnd, info.ssthresh),
            (Phase::Open, 13, NO_THRESHOLD)
        );
    }

    #[test]
    fn a_report_of_the_duplicate_undoes_it_where_that_acknowledgment_is_lost() {
        let mut pair = pair(response(10 * FULL), &[OVERTAKEN, (Up, 13, Fault::Lost)]);
        pair.run();
        assert_sent(
            pair.trace(),
            210..,
            "
            210 up   . 301:301(0) ack 14481
            250 down . 2897:4345(1448) ack 301
            300 up   . 301:301(0) ack 14481 dsack 2897:4345
        ",
        );
        let info = server(&pair);
        assert_eq!(
            (info.phase, info.cwnd, info.ssthresh),
            (Phase::Open, 14, NO_THRESHOLD)
        );
    }

    #[test]
    fn a_timeout_that_was_spurious_is_undone() {
        let late: Vec<_> = (4..=18)
            .map(|number| (Up, number, Fault::Delayed(600 * MS)))
            .collect();
        let mut pair = pair(response(20 * FULL), &late);
        pair.run_until(800 * MS);
        assert_eq!((server(&pair).phase, server(&pair).cwnd), (Phase::Loss, 1));
        // The first of the late acknowledgments shows it. New data follows, and nothing else is retransmitted.
        pair.run_until(850 * MS);
        assert_eq!(server(&pair).phase, Phase::Open);
        assert_eq!(server(&pair).ssthresh, NO_THRESHOLD);
        pair.run();
        let resent = pair
            .sent(Down)
            .filter(|sent| sent.at > 400 * MS && sent.segment.seq < 14_481);
        assert_eq!(resent.count(), 1);
    }

    #[test]
    fn after_a_timeout_new_data_shows_whether_it_was_spurious() {
        let lost: Vec<_> = (3..=13).map(|number| (Down, number, Fault::Lost)).collect();
        let mut pair = pair(response(16 * FULL), &lost);
        pair.run();
        // The acknowledgment of 772 ms releases two new segments instead of data marked as lost (RFC 5682, step
        // 2b). Their SACKs show that the data is lost (step 3a).
        assert_sent(
            pair.trace(),
            600..=880,
            "
            672 down . 1:1449(1448) ack 301
            722 up   . 301:301(0) ack 1449
            772 down . 15929:17377(1448) ack 301
            772 down . 17377:18825(1448) ack 301
            822 up   . 301:301(0) ack 1449 sack 15929:17377
            822 up   . 301:301(0) ack 1449 sack 15929:18825
            872 down . 1449:2897(1448) ack 301
            872 down . 2897:4345(1448) ack 301
        ",
        );
    }

    #[test]
    fn below_the_threshold_a_repair_speeds_up_only_while_it_shows_no_further_loss() {
        let lost: Vec<_> = (15..=28).map(|number| (Down, number, Fault::Lost)).collect();
        let mut pair = behind(10_000_000, response(32 * FULL), &lost);
        pair.run();
        // One segment for each that arrives; two if an acknowledgment moves SND.UNA (RFC 6937, section 3).
        assert_sent(
            pair.sent(Down),
            364..=468,
            "
            364.953 down . 17377:18825(1448) ack 301
            366.153 down . 18825:20273(1448) ack 301
            454.195 down . 20273:21721(1448) ack 301
            455.395 down . 21721:23169(1448) ack 301
            466.204 down . 23169:24617(1448) ack 301
            466.204 down P. 24617:26065(1448) ack 301
            467.404 down . 26065:27513(1448) ack 301
            467.404 down P. 27513:28961(1448) ack 301
        ",
        );
    }

    #[test]
    fn a_retransmission_takes_along_what_fits_behind_it() {
        let lost = [3, 4, 5].map(|number| (Down, number, Fault::Lost));
        let mut pair = pair(closed_by(Closes::Server), &lost);
        pair.run();
        assert_sent(
            pair.sent(Down),
            151..,
            "
            356 down F. 1001:1001(0) ack 301
            672 down FP. 1:1001(1000) ack 301
            772 down . 1002:1002(0) ack 302
        ",
        );
    }

    #[test]
    fn a_duplicate_that_the_network_made_undoes_nothing() {
        let faults = [
            (Down, 5, Fault::Lost),
            (Down, 6, Fault::Duplicated(20 * MS)),
            (Down, 7, Fault::Duplicated(20 * MS)),
        ];
        let mut pair = pair(response(10 * FULL), &faults);
        pair.run();
        let info = server(&pair);
        assert_eq!((info.phase, info.cwnd, info.ssthresh), (Phase::Open, 8, 8));
    }

    #[test]
    fn a_retransmission_is_superfluous_once_its_duplicate_is_reported() {
        let mut recovery = Recovery {
            undo_from: Some(100),
            undo_resent: 1,
            ..Recovery::default()
        };
        recovery.on_duplicate(100, 1);
        assert_eq!(recovery.undo_resent, 1, "from before the recovery");
        recovery.on_duplicate(200, 1);
        assert_eq!(recovery.undo_resent, 0);
    }
}
