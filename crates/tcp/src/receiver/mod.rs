//! What one end receives, and when it says so: the stream as far as it has come, the window it offers, the
//! acknowledgments it owes.
//!
//! The receiver sends nothing by itself: it says whether an acknowledgment is due, and stamps every segment that
//! leaves with what it has to say. `tcp_data_queue`, `tcp_rcv_rtt_measure_ts` and `tcp_replace_ts_recent` in
//! `net/ipv4/tcp_input.c`, `__tcp_transmit_skb` in `net/ipv4/tcp_output.c`.

mod delayed_ack;
mod reassembly;
mod window;

use firstflight_path::Nanos;

use crate::ecn::EcnReceiver;
use crate::segment::{Segment, Seq};
use crate::sender::Rtt;
use crate::time::Ticks;

use delayed_ack::{DelayedAck, Due};
use reassembly::{Arrival, Reassembly};
use window::ReceiveWindow;

pub(crate) use window::INITIAL_WINDOW;

/// Duplicates that are answered at once before answers are compressed (`TCP_FASTRETRANS_THRESH`), and how many of them
/// one may then stand for (`tcp_comp_sack_nr`).
const ANSWERED_AT_ONCE: u32 = 3;
const MOST_COMPRESSED: u32 = 44;
/// `tcp_comp_sack_delay_ns` and `tcp_comp_sack_slack_ns`; a twentieth of the RTT at most.
const COMPRESSION_DELAY: Nanos = 1_000_000;
const COMPRESSION_SLACK: Nanos = 100_000;

/// Acknowledgments of segments beyond a gap, several of which leave as one.
#[derive(Debug, Default)]
struct Compression {
    /// What the duplicates acknowledge, and how many of them were answered at once.
    next: Seq,
    answered: u32,
    /// Those that wait, and until when.
    waiting: u32,
    until: Option<Nanos>,
}

impl Compression {
    /// A segment came beyond the gap at `next`: whether to answer it now.
    fn answers(&mut self, now: Nanos, next: Seq, rtt: Option<Nanos>) -> bool {
        if self.waiting >= MOST_COMPRESSED {
            return true;
        }
        if self.next != next {
            self.next = next;
            self.answered = 0;
        }
        if self.answered < ANSWERED_AT_ONCE {
            self.answered += 1;
            return true;
        }
        self.waiting += 1;
        let delay = rtt.map_or(COMPRESSION_DELAY, |rtt| COMPRESSION_DELAY.min(rtt / 20));
        self.until.get_or_insert(now + delay + COMPRESSION_SLACK);
        false
    }

    fn on_ack_sent(&mut self) {
        self.waiting = 0;
        self.until = None;
    }
}

/// A connection's receiving half.
#[derive(Debug)]
pub(crate) struct Receiver {
    ticks: Ticks,
    stream: Reassembly,
    window: ReceiveWindow,
    delayed_ack: DelayedAck,
    /// When the delayed acknowledgment goes out.
    timer: Option<Nanos>,
    compression: Compression,
    ecn: EcnReceiver,
    /// The window of the segment before: another acknowledgment with it takes the fast path (`pred_flags`).
    predicted_window: u64,
    /// Bytes that the application has taken.
    read: Seq,
    /// The timestamp to echo.
    ts_recent: Nanos,
    last_ack_sent: Seq,
    fin_received: bool,
    /// Where a FIN beyond a gap ends.
    fin_ahead: Option<Seq>,
}

impl Receiver {
    pub(crate) fn new(ticks: Ticks) -> Self {
        Self {
            ticks,
            stream: Reassembly::default(),
            window: ReceiveWindow::default(),
            delayed_ack: DelayedAck::default(),
            timer: None,
            compression: Compression::default(),
            ecn: EcnReceiver::default(),
            predicted_window: 0,
            read: 1,
            ts_recent: 0,
            last_ack_sent: 0,
            fin_received: false,
            fin_ahead: None,
        }
    }

    /// The peer's SYN is here, with `data` bytes that are taken.
    pub(crate) fn on_syn(&mut self, syn: &Segment, data: u32, ecn: bool) {
        self.ts_recent = syn.ts;
        self.stream.start(1 + Seq::from(data));
        self.ecn.negotiate(ecn);
    }

    /// The peer's SYN came once more.
    pub(crate) fn on_syn_again(&mut self, syn: &Segment) {
        self.ts_recent = self.ts_recent.max(syn.ts);
    }

    /// `tcp_fastopen_add_skb` queues a SYN's data with no thought of acknowledging it: the SYN-ACK does.
    pub(crate) fn on_syn_data(&mut self, now: Nanos) {
        self.delayed_ack.start(now);
    }

    /// The handshake is done.
    pub(crate) fn on_established(&mut self, now: Nanos) {
        self.window.start(now);
        self.delayed_ack.start(now);
    }

    /// A SYN-ACK leaves that acknowledges up to `ack`. Returns the timestamp to echo.
    pub(crate) fn on_syn_ack_sent(&mut self, ack: Seq) -> Nanos {
        self.last_ack_sent = ack;
        self.ts_recent
    }

    /// Whether both ends understand ECN.
    pub(crate) fn has_ecn(&self) -> bool {
        self.ecn.is_negotiated()
    }

    /// RCV.NXT.
    pub(crate) fn next(&self) -> Seq {
        self.stream.next()
    }

    /// Whether something waits beyond a gap.
    pub(crate) fn has_gap(&self) -> bool {
        self.stream.has_gap()
    }

    /// Whether the peer has sent all it had and it was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.fin_received && self.readable() == 0
    }

    /// Bytes that have arrived in order and were not read.
    #[inline]
    fn readable(&self) -> u64 {
        self.stream.next().max(1) - Seq::from(self.fin_received) - self.read
    }

    /// The application takes all that is there: how many bytes.
    pub(crate) fn read_all(&mut self) -> u64 {
        let bytes = self.readable();
        self.read += bytes;
        bytes
    }

    /// The application has read: whether to say so (`tcp_rcv_space_adjust`, `tcp_cleanup_rbuf`).
    pub(crate) fn after_read(&mut self, now: Nanos) -> bool {
        self.window.on_read(now, self.read);
        let unacked = self.stream.next() - self.last_ack_sent;
        self.delayed_ack.is_due_after_read(unacked)
            || (!self.fin_received && self.window.has_opened(self.stream.next()))
    }

    /// Whether nothing of a segment is from before the window: `tcp_sequence`.
    pub(crate) fn accepts(&self, segment: &Segment) -> bool {
        segment.end() >= self.last_ack_sent
    }

    /// `tcp_replace_ts_recent`.
    pub(crate) fn note_timestamp(&mut self, segment: &Segment) {
        if segment.seq <= self.last_ack_sent && segment.ts >= self.ts_recent {
            self.ts_recent = segment.ts;
        }
    }

    /// The data and the FIN of a segment.
    pub(crate) fn on_data(&mut self, now: Nanos, segment: &Segment, rto: Nanos, is_closing: bool) {
        let is_predicted = segment.window == self.predicted_window && !self.stream.has_gap();
        self.predicted_window = segment.window;
        if segment.len == 0 && !segment.fin {
            if !is_predicted {
                self.window.note_echo(segment.ts_echo);
            }
            return;
        }
        let start = segment.seq + Seq::from(segment.syn);
        match self.stream.take((start, segment.end())) {
            Arrival::InOrder { fills } => {
                self.fin_ahead = self.fin_ahead.or(segment.fin.then_some(segment.end()));
                self.accept_cwr(segment);
                self.on_received(now, segment, rto);
                self.check_ecn(segment);
                if fills {
                    self.delayed_ack.need_now();
                }
            }
            Arrival::Ahead => {
                if segment.fin {
                    self.fin_ahead = Some(segment.end());
                }
                self.check_ecn(segment);
                self.delayed_ack.schedule();
                if self.window.on_gap(segment.len, &self.stream) {
                    self.delayed_ack.add_one_quick();
                }
            }
            Arrival::Duplicate => {
                self.accept_cwr(segment);
                self.delayed_ack.enter_quick(self.window.advertised());
                self.delayed_ack.need_now();
            }
        }
        if self.fin_ahead.is_some_and(|end| end <= self.stream.next()) {
            self.fin_received = true;
            self.fin_ahead = None;
            if is_closing {
                self.delayed_ack.need_now();
            } else {
                // `tcp_fin`: an application that closes now lets its own FIN acknowledge this one.
                self.delayed_ack.schedule();
                self.delayed_ack.enter_pingpong();
            }
        }
    }

    /// Data arrived in order: `tcp_event_data_recv`.
    fn on_received(&mut self, now: Nanos, segment: &Segment, rto: Nanos) {
        if segment.len == 0 {
            return;
        }
        let is_full = self
            .delayed_ack
            .on_segment(now, segment, self.window.advertised(), rto);
        if is_full {
            self.window.measure(now, segment.ts_echo);
        }
        if self.window.on_segment(segment.len, &self.stream) {
            self.delayed_ack.add_one_quick();
        }
    }

    fn accept_cwr(&mut self, segment: &Segment) {
        if self.ecn.accept_cwr(segment) {
            self.delayed_ack.need_now();
        }
    }

    fn check_ecn(&mut self, segment: &Segment) {
        if self.ecn.check_data(segment) {
            self.delayed_ack.enter_quick_for_two();
        }
    }

    /// Whether to acknowledge now; if not, the timer is set for it. `__tcp_ack_snd_check`, `tcp_send_delayed_ack`.
    pub(crate) fn check_ack(&mut self, now: Nanos, rtt: &Rtt) -> bool {
        let unacked = self.stream.next() - self.last_ack_sent;
        match self
            .delayed_ack
            .check(unacked, &self.window, self.stream.has_gap(), rtt)
        {
            Due::Never => false,
            Due::Now => true,
            Due::Gap => {
                let rtt = [self.window.rtt(), rtt.smoothed()].into_iter().flatten().min();
                self.compression.answers(now, self.stream.next(), rtt)
            }
            Due::After(delay) => {
                let at = self.ticks.after(now, delay.capped);
                let is_soon = self.timer.is_some_and(|before| before <= now + delay.full / 4);
                if !is_soon {
                    self.timer = Some(self.timer.map_or(at, |before| before.min(at)));
                }
                is_soon
            }
        }
    }

    /// When the delayed acknowledgment goes out.
    #[inline]
    pub(crate) fn timeout(&self) -> Option<Nanos> {
        match (self.timer, self.compression.until) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    pub(crate) fn clear_timer(&mut self) {
        self.timer = None;
        self.compression.until = None;
    }

    /// A delay is over: whether to acknowledge (`tcp_delack_timer_handler`, `tcp_compressed_ack_kick`).
    pub(crate) fn on_timeout(&mut self, now: Nanos, rto: Nanos) -> bool {
        if self.compression.until.is_some_and(|at| at <= now) {
            return true;
        }
        self.timer = None;
        self.delayed_ack.on_timeout(rto)
    }

    /// Data leaves: is it an answer to what came a moment ago? (`tcp_event_data_sent`)
    pub(crate) fn on_data_sent(&mut self, now: Nanos) {
        self.delayed_ack.on_data_sent(now);
    }

    /// Every segment after the SYNs acknowledges: what it says of the receiver, as it leaves.
    pub(crate) fn stamp(&mut self, segment: &mut Segment) {
        segment.ack = true;
        segment.ack_no = self.stream.next();
        segment.ts_echo = self.ts_recent;
        segment.window = self.window.advertise(segment.ack_no);
        segment.sacks = self.stream.sacks();
        segment.ece = self.ecn.demands_cwr();
        self.last_ack_sent = segment.ack_no;
        self.timer = None;
        self.compression.on_ack_sent();
        self.delayed_ack.on_ack_sent();
    }
}

#[cfg(test)]
mod tests {
    use crate::pair::script::*;
    use crate::pair::{Fault, MS};

    #[test]
    fn beyond_a_gap_acknowledgments_echo_the_last_segment_in_order() {
        let mut pair = behind(10_000_000, response(24 * FULL), &[(Down, 15, Fault::Lost)]);
        pair.run();
        // RFC 7323, section 4.3.
        let echo = |sent: &crate::pair::Sent| sent.segment.ts_echo;
        let before = pair.sent(Up).filter(|sent| sent.segment.ack_no == 17_377);
        let echoes: Vec<_> = before.map(echo).collect();
        assert_eq!(echoes.len(), 12);
        assert!(echoes.iter().all(|other| *other == echoes[0]), "{echoes:?}");
        let filled = pair.sent(Up).last().expect("the gap's end");
        assert!(echo(filled) > echoes[0]);
    }

    #[test]
    fn beyond_a_gap_one_acknowledgment_leaves_per_millisecond_once_the_quick_ones_are_spent() {
        // At 100 Mbit/s a segment arrives every 0.12 ms.
        let mut pair = behind(100_000_000, response(400 * FULL), &[(Down, 250, Fault::Lost)]);
        pair.run();
        let beyond = pair.sent(Up).filter(|sent| !sent.segment.sacks.all().is_empty());
        let times: Vec<_> = beyond.map(|sent| sent.at).collect();
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let compressed = gaps.iter().skip_while(|gap| **gap < MS);
        assert!(compressed.clone().count() > 10, "{gaps:?}");
        assert!(compressed.min() >= Some(&MS), "{gaps:?}");
    }
}
