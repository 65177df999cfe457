//! Acknowledgments: what they cover, the RTT samples they give, and the sender's reaction.
//!
//! `tcp_ack`, `tcp_clean_rtx_queue`, `tcp_sacktag_write_queue`, `tcp_ack_update_rtt` and `tcp_cong_control` in
//! `net/ipv4/tcp_input.c`.

use firstflight_path::Nanos;

use super::Sender;
use super::recovery::Resume;
use super::scoreboard::Flight;
use crate::Outlet;
use crate::segment::{Range, Segment, Seq};
use crate::time::MS;

/// The properties of an acknowledgment.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's FLAG_ bits")]
pub(crate) struct Ack {
    /// SND.UNA before it.
    pub(crate) prior_acked: Seq,
    /// Whether SND.UNA moved.
    pub(crate) advances: bool,
    /// Whether data was cumulatively acknowledged for the first time.
    pub(crate) data_acked: bool,
    /// Whether data was selectively acknowledged.
    pub(crate) data_sacked: bool,
    /// Whether data from before the high mark was acknowledged that was never retransmitted.
    pub(crate) original_acked: bool,
    /// Whether some of the cumulatively acknowledged data had been retransmitted.
    pub(crate) resent_acked: bool,
    /// Whether it reports a duplicate.
    pub(crate) duplicate: bool,
    /// Whether the duplicate is the loss probe.
    pub(crate) probe_duplicate: bool,
    /// Whether it brings data, or moves the window or SND.UNA.
    pub(crate) not_dup: bool,
    /// Whether a retransmission was found lost.
    pub(crate) lost_resent: bool,
    /// Whether it reports a congestion mark.
    pub(crate) ece: bool,
    /// Whether the sender's timer must be set anew.
    pub(crate) sets_timer: bool,
    /// The timestamp it echoes, ms.
    pub(crate) echo: Nanos,
    /// When the first and the last of the newly acknowledged data were sent.
    pub(crate) sent: Option<(Nanos, Nanos)>,
    pub(crate) sacked_sent: Option<(Nanos, Nanos)>,
    /// Segments that it acknowledged, cumulatively or selectively.
    pub(crate) delivered: u32,
    /// The latest flight that it acknowledged a part of: when it was sent, its end, and how many segments had been
    /// delivered by then (`struct rate_sample`).
    pub(crate) last: Option<(Nanos, Seq, u32)>,
}

impl Ack {
    /// `tcp_rate_skb_delivered`.
    fn note_delivered(&mut self, flight: &Flight) {
        let last = (flight.sent_at, flight.end, flight.delivered);
        if self
            .last
            .is_none_or(|before| (before.0, before.1) < (last.0, last.1))
        {
            self.last = Some(last);
        }
    }

    /// Whether the acknowledgment has no news (`num_dupack`).
    pub(crate) fn is_plain_duplicate(&self) -> bool {
        !(self.not_dup || self.duplicate)
    }
}

impl Sender {
    /// Handles the acknowledgment of a segment.
    pub(crate) fn on_ack(&mut self, now: Nanos, segment: &Segment, outlet: &mut Outlet<'_>) {
        if segment.ack_no > self.next {
            return;
        }
        let mut ack = Ack {
            prior_acked: self.acked,
            advances: segment.ack_no > self.acked,
            echo: segment.ts_echo,
            not_dup: segment.len > 0 || segment.fin,
            ..Ack::default()
        };
        if segment.ack_no < self.acked {
            return self.on_old_ack(now, segment, &mut ack, outlet);
        }
        ack.ece = self.ecn.is_reported(segment);
        if ack.advances {
            self.timeouts = 0;
        }
        let highest_before = self.board.highest_sacked(self.acked);
        let losses_before = self.board.losses();
        let edge = segment.ack_no + segment.window;
        ack.not_dup |= ack.advances || edge > self.peer_window_end;
        self.peer_window_end = self.peer_window_end.max(edge);
        self.max_peer_window = self.max_peer_window.max(segment.window);
        self.acked = segment.ack_no;
        let had_none = self.board.is_empty();
        self.mark_sacked(now, segment, &mut ack);
        if had_none {
            // `no_queue` in `tcp_ack`: a report of a duplicate can be too late for the queue, and still undo a
            // reduction.
            if ack.duplicate {
                self.on_dubious_ack(now, &mut ack);
            }
            self.delivered += ack.delivered;
            return self.on_probe_acked(now, segment.ack_no, &ack);
        }
        self.take_acked(now, highest_before, &mut ack);
        self.delivered += ack.delivered;
        self.measure_rtt(now, &mut ack);
        self.rack
            .update_steps(ack.last.map(|last| last.2), self.delivered);
        self.on_probe_acked(now, segment.ack_no, &ack);
        let mut resume = Resume::Nothing;
        if self.is_dubious(&ack) {
            resume = self.on_dubious_ack(now, &mut ack);
        }
        if ack.sets_timer && !self.schedule_probe(now, true) {
            self.rearm_rto(now);
        }
        let newly_lost = self.board.losses() - losses_before;
        self.move_window(now, &ack, newly_lost);
        self.update_rate(self.window.cwnd());
        self.resume(now, resume, outlet);
    }

    /// `old_ack` in `tcp_ack`: an acknowledgment overtaken by a later one can still have new SACK blocks.
    fn on_old_ack(&mut self, now: Nanos, segment: &Segment, ack: &mut Ack, outlet: &mut Outlet<'_>) {
        if segment.sacks.all().is_empty() {
            return;
        }
        self.mark_sacked(now, segment, ack);
        let resume = self.on_dubious_ack(now, ack);
        self.resume(now, resume, outlet);
    }

    /// `tcp_ack_is_dubious`.
    fn is_dubious(&self, ack: &Ack) -> bool {
        !ack.not_dup || ack.data_sacked || ack.duplicate || ack.ece || !self.recovery.is_open()
    }

    /// `tcp_check_dsack` and `tcp_dsack_seen`. Returns the duplicate, unless the network made it: then there are
    /// more duplicates than this sender has retransmitted.
    fn note_duplicate(&mut self, segment: &Segment, ack: &mut Ack) -> Option<Range> {
        let range = segment.sacks.duplicated()?;
        let len = range.1 - range.0;
        if len > self.max_peer_window {
            return None;
        }
        let segments = (len.div_ceil(self.mss.into()) as u32).max(1);
        ack.probe_duplicate = segments == 1 && self.probe.is_end(range.1);
        if !self
            .rack
            .note_duplicates(segments, self.total_resent, !ack.probe_duplicate)
        {
            return None;
        }
        ack.duplicate = true;
        ack.delivered += segments;
        if range.1 <= ack.prior_acked {
            self.recovery.on_duplicate(range.1, segments);
        }
        Some(range)
    }

    /// `tcp_sacktag_write_queue`.
    fn mark_sacked(&mut self, now: Nanos, segment: &Segment, ack: &mut Ack) {
        let duplicate = self.note_duplicate(segment, ack);
        if segment.sacks.all().is_empty() || self.board.is_empty() {
            return;
        }
        let mut first_late = self.next;
        // `tcp_is_sackblock_valid`: a block that crosses SND.UNA is not valid.
        let is_valid =
            |range: &Range| range.1 > ack.prior_acked && (range.0 > self.acked || range.1 <= self.acked);
        if let Some(range) = duplicate.filter(is_valid) {
            self.mark_block(now, range, true, &mut first_late, ack);
        }
        // Blocks are walked in order. Otherwise one could seem late behind another.
        let mut blocks = segment.sacks.blocks().to_vec();
        blocks.retain(|block| block.0 > self.acked && block.1 <= self.next);
        blocks.sort_unstable();
        for block in blocks {
            self.mark_block(now, block, false, &mut first_late, ack);
        }
        if self.recovery.learns_reordering() {
            self.rack
                .check_reordering(first_late, self.board.highest_sacked(self.acked), self.mss);
        }
    }

    /// `tcp_sacktag_walk`. `first_late`: the first sequence number that arrived after later ones.
    fn mark_block(
        &mut self,
        now: Nanos,
        block: Range,
        is_duplicate: bool,
        first_late: &mut Seq,
        ack: &mut Ack,
    ) {
        let mut index = self.board.first_behind(block.0);
        while self.board.get(index).is_some_and(|flight| flight.seq < block.1) {
            if self.board.cut(index, block)
                && let Some(flight) = self.board.get(index).copied()
            {
                self.mark_flight(now, index, &flight, is_duplicate, first_late, ack);
            }
            index += 1;
        }
    }

    /// `tcp_sacktag_one`.
    fn mark_flight(
        &mut self,
        now: Nanos,
        index: usize,
        flight: &Flight,
        is_duplicate: bool,
        first_late: &mut Seq,
        ack: &mut Ack,
    ) {
        if is_duplicate && flight.ever_resent {
            self.recovery.on_duplicate(flight.end, flight.segments());
            if flight.sacked {
                *first_late = flight.seq.min(*first_late);
            }
        }
        if flight.end <= self.acked {
            return;
        }
        if !flight.sacked {
            self.rack.advance(now, flight, self.rtt.min());
            if !flight.ever_resent {
                if flight.seq < self.board.highest_sacked(self.acked) {
                    *first_late = flight.seq.min(*first_late);
                }
                ack.original_acked |= flight.end <= self.recovery.high();
                ack.sacked_sent = Some(span(ack.sacked_sent, flight.sent_at));
            }
            self.board.mark_sacked(index);
            ack.data_sacked = true;
            ack.delivered += flight.segments();
            ack.note_delivered(flight);
        }
        if is_duplicate {
            self.board.forget_resent(index);
        }
    }

    /// `tcp_clean_rtx_queue`. Data counts as late only below data that was selectively acknowledged before, which
    /// ends at `highest_before`.
    fn take_acked(&mut self, now: Nanos, highest_before: Seq, ack: &mut Ack) {
        let mut first = self.next;
        while let Some(acked) = self.board.take_acked(self.acked) {
            let flight = acked.flight;
            ack.data_acked = true;
            if flight.ever_resent {
                ack.resent_acked = true;
            } else if !flight.sacked {
                ack.original_acked |= flight.end <= self.recovery.high();
                first = first.min(flight.seq);
                ack.sent = Some(span(ack.sent, flight.sent_at));
            }
            if flight.sacked {
                continue;
            }
            ack.delivered += acked.segments;
            ack.note_delivered(&flight);
            // If the echo belongs to the original, the retransmission was spurious (`tcp_skb_spurious_retrans`).
            let is_original = ack.echo > 0 && ack.echo < flight.sent_at / MS;
            if !(flight.ever_resent && is_original) {
                self.rack.advance(now, &flight, self.rtt.min());
            }
        }
        if first < highest_before {
            self.rack
                .check_reordering(first, self.board.highest_sacked(self.acked), self.mss);
        }
    }

    /// `tcp_ack_update_rtt`: retransmissions give no sample (Karn), except by timestamp. The congestion control
    /// gets the sample of the data sent last.
    fn measure_rtt(&mut self, now: Nanos, ack: &mut Ack) {
        let clear = ack.sent.filter(|_| !ack.resent_acked);
        let first = clear.or(ack.sacked_sent).map(|(first, _)| now - first);
        let last = ack.sacked_sent.or(clear).map(|(_, last)| now - last);
        let by_echo = || {
            let since = (now / MS).saturating_sub(ack.echo).max(1) * MS;
            (ack.data_acked && ack.echo > 0).then_some((since, since))
        };
        // A selective acknowledgment of data younger than the head must not postpone the timeout.
        let head = self.board.first().map(|head| head.sent_at);
        let is_older = |sacked: (Nanos, Nanos)| head.is_some_and(|head| sacked.0 < head);
        ack.sets_timer = ack.data_acked || ack.sacked_sent.is_some_and(is_older);
        if let Some((rtt, shortest)) = first.zip(last).or_else(by_echo) {
            self.rtt.sample(rtt, shortest, self.acked, self.next);
            self.window.on_rtt(now, shortest, self.acked, self.next);
        }
    }

    /// `tcp_cong_control`. With much reordering, data that arrives out of order counts too (`tcp_may_raise_cwnd`).
    fn move_window(&mut self, now: Nanos, ack: &Ack, newly_lost: u32) {
        if self.recovery.is_reducing() {
            self.reduce_window(ack.delivered, ack.advances && newly_lost == 0);
        } else if ack.data_acked || (ack.data_sacked && self.rack.expects_reordering()) {
            self.window.on_acked(now, ack.delivered);
        }
    }
}

fn span(before: Option<(Nanos, Nanos)>, at: Nanos) -> (Nanos, Nanos) {
    before.map_or((at, at), |(first, _)| (first, at))
}

#[cfg(test)]
mod tests {
    use crate::pair::Fault;
    use crate::pair::script::*;
    use crate::time::MS;
    use crate::{FastOpen, Settings, Socket};

    #[test]
    fn an_acknowledgment_that_was_overtaken_changes_nothing() {
        let mut clean = pair(response(20 * FULL), &[]);
        let mut late = pair(response(20 * FULL), &[(Up, 5, Fault::Delayed(30 * MS))]);
        assert_eq!(clean.run(), late.run());
        let all = |pair: &crate::pair::Pair<_>| pair.sent(Down).map(line).collect::<Vec<_>>();
        assert_eq!(all(&clean), all(&late));
        assert_eq!(server(&clean), server(&late));
    }

    #[test]
    fn an_acknowledgment_of_what_was_never_sent_is_ignored() {
        let mut pair = pair(response(1_000), &[]);
        pair.run();
        let mut client = Socket::client(0, Settings::default());
        client.connect(0, FastOpen::Absent);
        let mut syn_ack = pair.sent(Down).next().expect("a SYN-ACK").segment;
        client.handle(MS, &syn_ack);
        let before = client.info();
        syn_ack.syn = false;
        syn_ack.ack_no = 5_000;
        client.handle(2 * MS, &syn_ack);
        assert_eq!(client.info(), before);
    }

    #[test]
    fn an_acknowledgment_that_covers_a_retransmission_is_measured_by_its_timestamp() {
        let silent = [4, 5, 6].map(|number| (Up, number, Fault::Lost));
        let faults = [&[(Down, 3, Fault::Lost)], &silent[..]].concat();
        let mut pair = pair(response(3 * FULL), &faults);
        pair.run();
        assert_sent(
            pair.trace(),
            600..,
            "
            672 down . 1:1449(1448) ack 301
            722 up   . 301:301(0) ack 4345
        ",
        );
        // Segment 2 was sent once, 622 ms before (Karn); the echo is that of 672 ms.
        assert_eq!(server(&pair).smoothed_rtt, Some(RTT));
    }
}
