//! Acknowledgments: what they cover, what they measure, what follows.
//!
//! `tcp_ack`, `tcp_clean_rtx_queue`, `tcp_sacktag_write_queue`, `tcp_ack_update_rtt` and `tcp_cong_control` in
//! `net/ipv4/tcp_input.c`.

use firstflight_path::Nanos;

use super::Sender;
use super::recovery::Resume;
use crate::Outlet;
use crate::segment::Segment;
use crate::time::MS;
use crate::timers::Pending;

/// What an acknowledgment turned out to be.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's FLAG_ bits")]
pub(crate) struct Ack {
    /// SND.UNA moved.
    pub(crate) advances: bool,
    /// Data was acknowledged for the first time, cumulatively.
    pub(crate) data_acked: bool,
    /// Data was acknowledged selectively.
    pub(crate) data_sacked: bool,
    /// Data that was never sent again, from before the high mark, was acknowledged.
    pub(crate) original_acked: bool,
    /// Of what was acknowledged, something had been sent again.
    pub(crate) resent_acked: bool,
    /// It reports a duplicate.
    pub(crate) duplicate: bool,
    /// The duplicate is the loss probe.
    pub(crate) probe_duplicate: bool,
    /// It brings data or moves the window.
    pub(crate) not_dup: bool,
    /// A retransmission was found lost.
    pub(crate) lost_resent: bool,
    /// It reports a congestion mark.
    pub(crate) ece: bool,
    /// The sender's timer must be set anew.
    pub(crate) sets_timer: bool,
    /// The timestamp it echoes, ms.
    pub(crate) echo: Nanos,
    /// When the earliest and the latest of what it acknowledged for the first time were sent.
    pub(crate) sent: Option<(Nanos, Nanos)>,
    pub(crate) sacked_sent: Option<(Nanos, Nanos)>,
    /// Segments that it acknowledged, one way or the other.
    pub(crate) delivered: u32,
}

impl Sender {
    /// The acknowledgment of a segment.
    pub(crate) fn on_ack(&mut self, now: Nanos, segment: &Segment, outlet: &mut Outlet<'_>) {
        if segment.ack_no < self.acked || segment.ack_no > self.next {
            return;
        }
        let mut ack = Ack {
            advances: segment.ack_no > self.acked,
            echo: segment.ts_echo,
            not_dup: segment.len > 0 || segment.fin,
            ece: self.ecn.is_reported(segment),
            ..Ack::default()
        };
        if ack.advances {
            self.timeouts = 0;
        }
        let edge = segment.ack_no + segment.window;
        ack.not_dup |= edge > self.peer_window_end;
        self.peer_window_end = self.peer_window_end.max(edge);
        self.max_peer_window = self.max_peer_window.max(segment.window);
        self.acked = segment.ack_no;
        self.note_duplicate(segment, &mut ack);
        if self.board.is_empty() {
            // `no_queue` in `tcp_ack`: the report of a duplicate is late for the queue, not for the probe.
            return self.on_probe_acked(segment.ack_no, &ack);
        }
        let losses_before = self.board.losses();
        self.mark_sacked(now, segment, &mut ack);
        self.take_acked(now, &mut ack);
        self.measure_rtt(now, &mut ack);
        ack.not_dup |= ack.data_acked;
        self.on_probe_acked(segment.ack_no, &ack);
        let mut resume = Resume::Nothing;
        if self.is_dubious(&ack) {
            resume = self.on_dubious_ack(now, &mut ack);
        }
        if ack.sets_timer && self.timer.pending() != Some(Pending::Reorder) && !self.schedule_probe(now, true)
        {
            self.rearm_rto(now);
        }
        let newly_lost = self.board.losses() - losses_before;
        self.move_window(now, &ack, newly_lost);
        self.resume(now, resume, outlet);
    }

    /// `tcp_ack_is_dubious`.
    fn is_dubious(&self, ack: &Ack) -> bool {
        !ack.not_dup || ack.data_sacked || ack.duplicate || ack.ece || !self.recovery.is_open()
    }

    /// `tcp_check_dsack`.
    fn note_duplicate(&mut self, segment: &Segment, ack: &mut Ack) {
        if let Some(range) = segment.sacks.duplicated() {
            ack.duplicate = true;
            ack.probe_duplicate = self.probe.is_end(range.1);
            self.recovery.on_duplicate(range, self.acked);
        }
    }

    fn mark_sacked(&mut self, now: Nanos, segment: &Segment, ack: &mut Ack) {
        // `tcp_sacktag_write_queue` walks them in their order, or one would seem to be late behind another.
        let mut blocks = segment.sacks.blocks().to_vec();
        blocks.sort_unstable();
        for block in blocks {
            for index in self.board.covered(block) {
                let Some(flight) = self.board.get(index).copied() else {
                    continue;
                };
                if flight.sacked {
                    continue;
                }
                if flight.resent || flight.ever_resent {
                    ack.resent_acked = true;
                } else {
                    self.rack.note_reordering(flight.seq, self.board.highest_sacked());
                    ack.original_acked |= flight.end <= self.recovery.high();
                    ack.sacked_sent = Some(span(ack.sacked_sent, flight.sent_at));
                }
                self.rack.advance(now, &flight, self.rtt.min());
                self.board.mark_sacked(index);
                ack.data_sacked = true;
                ack.delivered += 1;
            }
        }
    }

    fn take_acked(&mut self, now: Nanos, ack: &mut Ack) {
        while let Some(flight) = self.board.pop_acked(self.acked) {
            ack.data_acked = true;
            if !flight.sacked {
                ack.delivered += 1;
                // What the echo shows to be the original's says nothing of the retransmission
                // (`tcp_skb_spurious_retrans`).
                let is_original = ack.echo > 0 && ack.echo < flight.sent_at / MS;
                if !(flight.ever_resent && is_original) {
                    self.rack.advance(now, &flight, self.rtt.min());
                }
            }
            if flight.ever_resent {
                ack.resent_acked = true;
            } else if !flight.sacked {
                ack.original_acked |= flight.end <= self.recovery.high();
                self.rack.note_reordering(flight.seq, self.board.highest_sacked());
                ack.sent = Some(span(ack.sent, flight.sent_at));
            }
        }
    }

    /// `tcp_ack_update_rtt`: retransmissions give no sample (Karn), except by timestamp.
    fn measure_rtt(&mut self, now: Nanos, ack: &mut Ack) {
        let clear = ack.sent.filter(|_| !ack.resent_acked);
        let by_time = clear
            .or(ack.sacked_sent)
            .map(|(first, last)| (now - first, now - last));
        let by_echo = || {
            (ack.data_acked && ack.echo > 0).then(|| {
                let since = (now / MS).saturating_sub(ack.echo).max(1) * MS;
                (since, since)
            })
        };
        // A selective acknowledgment of something younger than the head must not put the timeout off.
        let head = self.board.first().map(|head| head.sent_at);
        ack.sets_timer = ack.data_acked
            || ack
                .sacked_sent
                .is_some_and(|(first, _)| head.is_some_and(|head| first < head));
        let Some((rtt, shortest)) = by_time.or_else(by_echo) else {
            return;
        };
        self.rtt.sample(rtt, shortest, self.acked, self.next);
        if by_time.is_some() {
            self.window.on_rtt(now, shortest, self.acked, self.next);
        }
    }

    fn move_window(&mut self, now: Nanos, ack: &Ack, newly_lost: u32) {
        if self.recovery.is_reducing() {
            self.reduce_window(ack.delivered, ack.advances && newly_lost == 0);
        } else if ack.data_acked {
            self.window.on_acked(now, ack.delivered);
        }
    }
}

fn span(before: Option<(Nanos, Nanos)>, at: Nanos) -> (Nanos, Nanos) {
    before.map_or((at, at), |(first, last)| (first.min(at), last.max(at)))
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
