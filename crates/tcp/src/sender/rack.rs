//! RACK-TLP (RFC 8985): data sent before other data that has arrived is lost, and a probe checks the tail.
//!
//! `net/ipv4/tcp_recovery.c`, `tcp_schedule_loss_probe` and `tcp_send_loss_probe` in `net/ipv4/tcp_output.c`,
//! `tcp_process_tlp_ack`, `tcp_check_sack_reordering` and `tcp_dsack_seen` in `net/ipv4/tcp_input.c`.

use firstflight_path::Nanos;

use super::acks::Ack;
use super::recovery::{DUP_THRESHOLD, Phase};
use super::rtt::{INITIAL_RTO, MIN_RTO};
use super::scoreboard::Flight;
use super::{Pushing, Sender};
use crate::Outlet;
use crate::segment::Seq;
use crate::time::MS;
use crate::timers::Pending;

/// `sysctl_tcp_max_reordering`.
const MAX_REORDERING: u32 = 300;
/// `TCP_TIMEOUT_MIN_US`.
const SLACK: Nanos = 2 * MS;
/// `TCP_RACK_RECOVERY_THRESH`: number of recoveries for which a wider reordering window is kept.
const KEPT_RECOVERIES: u32 = 16;
const MAX_STEPS: u32 = 0xff;

/// The most recently sent flight that has arrived, and what is known of reordering.
#[derive(Debug, Clone)]
pub(crate) struct Rack {
    sent_at: Nanos,
    end: Seq,
    rtt: Nanos,
    /// Whether that flight has changed since the last search for losses.
    has_advanced: bool,
    /// Largest distance of reordered segments, and whether there were any (`tp->reordering`, `reord_seen`).
    reordering: u32,
    saw_reordering: bool,
    /// Segments reported as duplicates so far.
    duplicates: u32,
    /// Whether a duplicate was reported that reordering may have caused.
    saw_duplicate: bool,
    /// The reordering window in quarters of the shortest RTT, the time of its last change (`tp->delivered`), and
    /// for how many recoveries it stays.
    steps: u32,
    changed_at: u32,
    kept: u32,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            sent_at: 0,
            end: 0,
            rtt: 0,
            has_advanced: false,
            reordering: DUP_THRESHOLD,
            saw_reordering: false,
            duplicates: 0,
            saw_duplicate: false,
            steps: 1,
            changed_at: 0,
            kept: 0,
        }
    }
}

impl Rack {
    /// `tcp_rack_advance`: a segment has arrived. It also gives an RTT, unless it was retransmitted and the
    /// original may have arrived late.
    pub(crate) fn advance(&mut self, now: Nanos, flight: &Flight, min_rtt: Option<Nanos>) {
        let rtt = now.saturating_sub(flight.sent_at);
        if flight.ever_resent && min_rtt.is_none_or(|min| rtt < min) {
            return;
        }
        self.has_advanced = true;
        self.rtt = rtt;
        if (flight.sent_at, flight.end) > (self.sent_at, self.end) {
            self.sent_at = flight.sent_at;
            self.end = flight.end;
        }
    }

    /// Data from `low`, never retransmitted, arrived after data up to `high`: `tcp_check_sack_reordering`.
    pub(crate) fn check_reordering(&mut self, low: Seq, high: Seq, mss: u32) {
        if low < high {
            let distance = (high - low).div_ceil(mss.into()) as u32;
            self.reordering = self.reordering.max(distance.min(MAX_REORDERING));
            self.saw_reordering = true;
        }
    }

    /// `tp->reordering`, segments.
    pub(crate) fn reordering(&self) -> u32 {
        self.reordering
    }

    /// Whether segments were reordered by more than three duplicate acknowledgments reveal.
    pub(crate) fn expects_reordering(&self) -> bool {
        self.reordering > DUP_THRESHOLD
    }

    /// A timeout although many segments have arrived: there is less reordering than assumed (`tcp_enter_loss`).
    pub(crate) fn on_timeout(&mut self) {
        self.reordering = self.reordering.min(DUP_THRESHOLD);
    }

    /// Notes reported duplicates. Returns whether they are retransmissions, of which there were `resent` segments
    /// so far (`tcp_dsack_seen`).
    pub(crate) fn note_duplicates(&mut self, segments: u32, resent: u32, is_no_probe: bool) -> bool {
        self.duplicates += segments;
        if self.duplicates > resent {
            return false;
        }
        self.saw_duplicate |= self.saw_reordering && is_no_probe;
        true
    }

    /// `tcp_rack_update_reo_wnd`: the window grows with duplicates, once per round trip. `prior`: segments
    /// delivered when the acknowledged data was sent; `delivered`: segments delivered by now.
    pub(crate) fn update_steps(&mut self, prior: Option<u32>, delivered: u32) {
        let Some(prior) = prior.filter(|prior| *prior > 0) else {
            return;
        };
        if prior < self.changed_at {
            self.saw_duplicate = false;
        }
        if std::mem::take(&mut self.saw_duplicate) {
            self.steps = (self.steps + 1).min(MAX_STEPS);
            self.changed_at = delivered;
            self.kept = KEPT_RECOVERIES;
        } else if self.kept == 0 {
            self.steps = 1;
        }
    }

    /// A recovery ends that was needed.
    pub(crate) fn on_recovered(&mut self) {
        self.kept = self.kept.saturating_sub(1);
    }

    /// Duplicates show that a recovery was not needed.
    pub(crate) fn on_undone_by_duplicates(&mut self) {
        self.kept = (self.kept + 1).min(KEPT_RECOVERIES);
    }

    pub(crate) fn force(&mut self) {
        self.has_advanced = true;
    }

    /// How much longer to wait for a segment before it counts as lost; 0 if it is lost.
    fn remaining(&self, now: Nanos, flight: &Flight, window: Nanos) -> Nanos {
        (flight.sent_at + self.rtt + window).saturating_sub(now)
    }

    /// Whether a flight was sent after the most recent one that has arrived.
    fn is_newer(&self, flight: &Flight) -> bool {
        (flight.sent_at, flight.end) >= (self.sent_at, self.end)
    }
}

/// The loss probe on its way: `tlp_high_seq`, `tlp_retrans`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Probe {
    /// SND.NXT when it was sent.
    end: Option<Seq>,
    /// Whether it was a retransmission.
    is_resent: bool,
}

impl Probe {
    /// Whether a duplicate that ends at `end` is the probe.
    pub(crate) fn is_end(&self, end: Seq) -> bool {
        self.end == Some(end)
    }

    /// Whether the probe on its way is a retransmission.
    pub(crate) fn is_resent(&self) -> bool {
        self.is_resent && self.end.is_some()
    }

    /// Recovery begins, so the probe is not needed any more.
    pub(crate) fn forget(&mut self) {
        self.end = None;
    }
}

impl Sender {
    /// `tcp_identify_packet_loss`: finds losses, and sets the reordering timer for segments that may still arrive.
    pub(crate) fn find_losses(&mut self, now: Nanos, ack: &mut Ack) {
        if self.board.is_empty() || !std::mem::take(&mut self.rack.has_advanced) {
            return;
        }
        let resent_before = self.board.resent();
        let longest = self.mark_losses(now);
        ack.lost_resent |= self.board.resent() < resent_before;
        if longest > 0 {
            let delay = (longest + SLACK).min(self.rtt.rto());
            self.set_timer(now, delay, Pending::Reorder);
            ack.sets_timer = false;
        }
    }

    /// The reordering timer: `tcp_rack_reo_timeout`.
    pub(crate) fn on_reorder_timeout(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        let before = self.board.in_flight();
        self.mark_losses(now);
        if self.board.in_flight() != before {
            if self.recovery.phase() != Phase::Recovery {
                self.enter_recovery(false);
                self.reduce_window(1, false);
            }
            self.resend_lost(now, outlet);
        }
        if self.timer.pending() != Some(Pending::Retransmit) {
            self.rearm_rto(now);
        }
    }

    /// `tcp_rack_detect_loss`. Returns the longest remaining wait.
    fn mark_losses(&mut self, now: Nanos) -> Nanos {
        let window = self.reordering_window();
        let mut longest = 0;
        for index in 0..self.board.len() {
            let Some(flight) = self.board.get(index).copied() else {
                break;
            };
            let waits_for_repair = flight.lost && !flight.resent;
            if !flight.is_watched || waits_for_repair || self.rack.is_newer(&flight) {
                continue;
            }
            let remaining = self.rack.remaining(now, &flight, window);
            if remaining == 0 {
                self.board.mark_lost(index);
                self.board.unwatch(index);
            } else {
                longest = longest.max(remaining);
            }
        }
        longest
    }

    /// `tcp_rack_reo_wnd`: a quarter of the shortest RTT; 0 once loss is evident.
    pub(super) fn reordering_window(&self) -> Nanos {
        if !self.rack.saw_reordering
            && (self.recovery.is_recovering() || self.board.sacked() >= self.rack.reordering)
        {
            return 0;
        }
        let window = self.rtt.min().unwrap_or(0) / 4 * Nanos::from(self.rack.steps);
        window.min(self.rtt.smoothed().unwrap_or(window))
    }

    /// Whether a segment was sent so recently that a timeout should not count it as lost.
    pub(crate) fn is_recent(&self, now: Nanos, flight: &Flight) -> bool {
        self.rack.remaining(now, flight, 0) > 0
    }

    /// Sets the timer of the tail loss probe, if there is a tail to probe: `tcp_schedule_loss_probe`.
    pub(crate) fn schedule_probe(&mut self, now: Nanos, from_now: bool) -> bool {
        if !self.is_established() || self.board.is_empty() || !self.recovery.may_probe() {
            return false;
        }
        let mut delay = match self.rtt.smoothed() {
            None => INITIAL_RTO,
            Some(rtt) if self.board.out() == 1 => 2 * rtt + MIN_RTO,
            Some(rtt) => 2 * rtt + SLACK,
        };
        let rto = if from_now {
            self.rtt.rto()
        } else {
            let sent_at = self.board.first().map_or(now, |first| first.sent_at);
            (sent_at + self.rtt.rto()).saturating_sub(now)
        };
        if rto > 0 {
            delay = delay.min(rto);
        }
        self.set_timer(now, delay, Pending::Probe);
        true
    }

    /// Sends new data, or retransmits the last segment: `tcp_send_loss_probe`.
    pub(crate) fn on_probe_timeout(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        if self.probe.end.is_none()
            && let Some(is_resent) = self.send_probe(now, outlet)
        {
            self.probe = Probe {
                end: Some(self.next),
                is_resent,
            };
            return self.set_timer(now, self.rtt.rto(), Pending::Retransmit);
        }
        // No probe was sent: the timeout counts from when the first segment was sent.
        let delay = self
            .board
            .first()
            .map_or(0, |first| (first.sent_at + self.rtt.rto()).saturating_sub(now));
        self.set_timer(now, delay.max(1), Pending::Retransmit);
    }

    /// Sends a probe. Returns whether it was a retransmission; `None` if there was nothing to send.
    fn send_probe(&mut self, now: Nanos, outlet: &mut Outlet<'_>) -> Option<bool> {
        if self.may_send_head(now) {
            return (self.write_out(now, Pushing::Probe, outlet) > 0).then_some(false);
        }
        let last = self.board.len().checked_sub(1)?;
        let flight = self.board.get(last)?;
        let before = u64::from(flight.segments() - 1) * u64::from(flight.mss);
        if before > 0 {
            self.board.split(last, before);
        }
        let last = self.board.len() - 1;
        self.send_again(now, last, 1, outlet);
        Some(true)
    }

    /// Handles an acknowledgment with regard to the loss probe: `tcp_process_tlp_ack`.
    pub(crate) fn on_probe_acked(&mut self, now: Nanos, acked: Seq, ack: &Ack) {
        let Some(end) = self.probe.end else { return };
        if acked < end {
            return;
        }
        if !self.probe.is_resent || ack.probe_duplicate {
            self.probe.forget();
        } else if acked > end {
            // The probe repaired a loss, so the window is reduced.
            self.reduce_at_once(now);
        } else if !(ack.not_dup || ack.data_sacked) {
            self.probe.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::pair::script::*;
    use crate::pair::{Exchange, Fault, Flow, MS};

    #[test]
    fn the_third_segment_from_beyond_a_gap_shows_a_loss() {
        let mut pair = pair(response(10 * FULL), &[(Down, 5, Fault::Lost)]);
        pair.run_until(350 * MS);
        assert_sent(
            pair.sent(Down),
            151..,
            "
            250 down . 2897:4345(1448) ack 301
        ",
        );
    }

    #[test]
    fn with_fewer_than_three_the_reordering_timer_decides() {
        let mut pair = pair(response(3 * FULL), &[(Down, 3, Fault::Lost)]);
        pair.run();
        // A quarter of the RTT after the acknowledgments of 250 ms, plus the timer's slack.
        assert_sent(
            pair.trace(),
            200..,
            "
            200 up   . 301:301(0) ack 1 sack 1449:2897
            200 up   . 301:301(0) ack 1 sack 1449:4345
            280 down . 1:1449(1448) ack 301
            330 up   . 301:301(0) ack 4345
        ",
        );
    }

    #[test]
    fn a_sender_that_has_seen_reordering_waits_a_quarter_of_the_rtt() {
        let flow = Flow {
            exchanges: vec![Exchange::new(300, 3 * FULL), Exchange::new(300, 10 * FULL)],
            ..Flow::default()
        };
        let late = Fault::Delayed(10 * MS);
        let mut pair = pair(flow, &[(Down, 3, late), (Down, 7, late)]);
        pair.run();
        let resent: Vec<_> = pair.sent(Down).filter(|sent| sent.at > 260 * MS).collect();
        assert!(resent.is_empty(), "{resent:?}");
        assert_eq!(server(&pair).reordering_window, RTT / 4);
    }

    #[test]
    fn a_lost_tail_is_probed_with_its_last_segment() {
        let mut pair = pair(
            response(4 * FULL),
            &[(Down, 5, Fault::Lost), (Down, 6, Fault::Lost)],
        );
        pair.run();
        // Two RTTs and the slack after the last acknowledgment. The probe's acknowledgment shows what was lost
        // before it.
        assert_sent(
            pair.trace(),
            201..,
            "
            456 down P. 4345:5793(1448) ack 301
            506 up   .  301:301(0) ack 2897 sack 4345:5793
            556 down .  2897:4345(1448) ack 301
            606 up   .  301:301(0) ack 5793
        ",
        );
    }

    #[test]
    fn a_probe_with_the_last_segment_does_not_count_as_a_retransmission() {
        let mut pair = pair(
            response(4 * FULL),
            &[(Down, 5, Fault::Lost), (Down, 6, Fault::Lost)],
        );
        pair.run_until(460 * MS);
        let info = server(&pair);
        assert_eq!((info.unacked, info.retransmitted), (2, 0));
    }

    #[test]
    fn a_retransmission_that_arrives_shows_that_an_earlier_one_was_lost() {
        let lost = [4, 5, 13].map(|number| (Down, number, Fault::Lost));
        let mut pair = pair(response(10 * FULL), &lost);
        pair.run();
        // The acknowledgment of a retransmission alone gives no RTT sample.
        assert_sent(
            pair.trace(),
            201..,
            "
            250 down . 1449:2897(1448) ack 301
            250 down . 2897:4345(1448) ack 301
            300 up   . 301:301(0) ack 1449 sack 2897:14481
            350 down . 1449:2897(1448) ack 301
            400 up   . 301:301(0) ack 14481
        ",
        );
    }

    #[test]
    fn a_probe_for_one_segment_leaves_time_for_a_delayed_acknowledgment() {
        let mut pair = pair(response(FULL), &[(Down, 3, Fault::Lost)]);
        pair.run();
        // Two RTTs and 200 ms, but not later than the timeout of 300 ms.
        assert_sent(
            pair.trace(),
            151..,
            "
            480 down P. 1:1449(1448) ack 301
            530 up   .  301:301(0) ack 1449
        ",
        );
    }

    #[test]
    fn a_probe_sends_new_data_if_there_is_some() {
        let lost: Vec<_> = (4..=13).map(|number| (Up, number, Fault::Lost)).collect();
        let mut pair = pair(response(20 * FULL), &lost);
        pair.run_until(450 * MS);
        assert_sent(
            pair.trace(),
            201..,
            "
            356 down . 14481:15929(1448) ack 301
            406 up   . 301:301(0) ack 15929
        ",
        );
        assert_eq!(server(&pair).phase, crate::Phase::Open, "nothing was lost");
    }

    #[test]
    fn the_window_pays_for_a_loss_that_the_probe_has_repaired() {
        let flow = Flow {
            exchanges: vec![Exchange::new(300, 4 * FULL), Exchange::new(300, 1_000)],
            ..Flow::default()
        };
        let mut pair = pair(flow, &[(Down, 6, Fault::Lost)]);
        pair.run_until(700 * MS);
        assert_sent(
            pair.sent(Down),
            151..,
            "
            576 down P. 4345:5793(1448) ack 301
            676 down P. 5793:6793(1000) ack 601
        ",
        );
        // No duplicate was reported until data sent after the probe was acknowledged.
        assert_eq!(server(&pair).cwnd, 10);
        pair.run();
        assert_eq!((server(&pair).cwnd, server(&pair).ssthresh), (7, 7));
    }
}
