//! The receiving half of an end: the received stream, the window that it offers, and pending acknowledgments.
//!
//! The receiver sends nothing itself. It says whether an acknowledgment is due, and sets its fields in every
//! segment that leaves. `tcp_data_queue`, `tcp_rcv_rtt_measure_ts` and `tcp_replace_ts_recent` in
//! `net/ipv4/tcp_input.c`, `__tcp_transmit_skb` in `net/ipv4/tcp_output.c`.

mod delayed_ack;
mod reassembly;
mod window;

use firstflight_path::{IpVersion, Nanos};

use crate::ecn::EcnReceiver;
use crate::segment::{Segment, Seq};
use crate::sender::Rtt;
use crate::time::{JIFFY, MS, Ticks};

use delayed_ack::{DelayedAck, Due};
use reassembly::{Arrival, Reassembly};
use window::{ReceiveWindow, memory_of};

pub(crate) use window::initial_window;

/// Duplicate acknowledgments sent at once before compression begins (`TCP_FASTRETRANS_THRESH`), and how many of
/// them one may then replace (`tcp_comp_sack_nr`).
const ANSWERED_AT_ONCE: u32 = 3;
const MOST_COMPRESSED: u32 = 44;
/// `tcp_comp_sack_delay_ns` and `tcp_comp_sack_slack_ns`; the delay is at most a twentieth of the RTT.
const COMPRESSION_DELAY: Nanos = 1_000_000;
const COMPRESSION_SLACK: Nanos = 100_000;

/// `TCP_PAWS_WINDOW`: how much older than the last one a timestamp may be.
const PAWS_WINDOW_MS: Nanos = 1;
/// `tcp_invalid_ratelimit`, ticks.
const INVALID_RATE_LIMIT: u64 = 500 * MS / JIFFY;

/// Compression of acknowledgments for segments behind a gap: several are sent as one.
#[derive(Debug, Default)]
struct Compression {
    /// The acknowledgment number of the duplicates, and how many of them were sent at once.
    next: Seq,
    answered: u32,
    /// Number of duplicates that wait, and until when.
    waiting: u32,
    until: Option<Nanos>,
}

impl Compression {
    /// A segment came behind the gap at `next`. Returns whether to acknowledge it now.
    fn answers(&mut self, now: Nanos, next: Seq, rtt: Nanos) -> bool {
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
        let delay = COMPRESSION_DELAY.min(rtt / 20);
        self.until.get_or_insert(now + delay + COMPRESSION_SLACK);
        false
    }

    fn on_ack_sent(&mut self) {
        self.waiting = 0;
        self.until = None;
    }
}

/// The timer of delayed acknowledgments. It keeps running when no acknowledgment waits any more, because the kernel
/// does not stop it. When it fires, it also releases compressed acknowledgments (`tcp_delack_timer_handler`).
#[derive(Debug, Default)]
struct AckTimer {
    /// The tick that it was set for, and when it fires.
    set: Option<(u64, Nanos)>,
    /// Whether an acknowledgment waits for it (`ICSK_ACK_TIMER`).
    is_awaited: bool,
}

/// A connection's receiving half.
#[derive(Debug)]
pub(crate) struct Receiver {
    ticks: Ticks,
    stream: Reassembly,
    window: ReceiveWindow,
    delayed_ack: DelayedAck,
    /// The timer of the delayed acknowledgment.
    timer: AckTimer,
    compression: Compression,
    ecn: EcnReceiver,
    /// Bytes that the application has read.
    read: Seq,
    /// The end of the first segment that it has not read.
    first_unread: Option<Seq>,
    /// The timestamp to echo.
    ts_recent: Nanos,
    last_ack_sent: Seq,
    fin_received: bool,
    /// The end of a FIN behind a gap.
    fin_ahead: Option<Seq>,
    /// The tick of the last answer to an unacceptable segment.
    last_answer: Option<u64>,
}

/// What to do with a segment that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Process it.
    Take,
    /// Only answer it with an acknowledgment.
    Answer,
    /// Ignore it.
    Drop,
}

impl Receiver {
    pub(crate) fn new(ticks: Ticks, ip: IpVersion) -> Self {
        Self {
            ticks,
            stream: Reassembly::default(),
            window: ReceiveWindow::new(ip),
            delayed_ack: DelayedAck::default(),
            timer: AckTimer::default(),
            compression: Compression::default(),
            ecn: EcnReceiver::default(),
            read: 1,
            first_unread: None,
            ts_recent: 0,
            last_ack_sent: 0,
            fin_received: false,
            fin_ahead: None,
            last_answer: None,
        }
    }

    /// The peer's SYN has arrived, with `data` bytes that are accepted.
    pub(crate) fn on_syn(&mut self, syn: &Segment, data: u32, ecn: bool) {
        self.ts_recent = syn.ts;
        self.stream.start(1 + Seq::from(data));
        self.ecn.negotiate(ecn);
    }

    /// `tcp_fastopen_add_skb` queues a SYN's data without scheduling an acknowledgment: the SYN-ACK acknowledges
    /// it.
    pub(crate) fn on_syn_data(&mut self, now: Nanos) {
        self.delayed_ack.start(self.ticks.count(now));
    }

    /// The handshake is done.
    pub(crate) fn on_established(&mut self, now: Nanos) {
        self.window.start(now);
        self.delayed_ack.start(self.ticks.count(now));
    }

    /// A SYN-ACK is sent that acknowledges up to `ack`. Returns the timestamp to echo.
    pub(crate) fn on_syn_ack_sent(&mut self, ack: Seq) -> Nanos {
        self.last_ack_sent = ack;
        self.ts_recent
    }

    /// Whether both ends use ECN.
    pub(crate) fn has_ecn(&self) -> bool {
        self.ecn.is_negotiated()
    }

    /// RCV.NXT.
    pub(crate) fn next(&self) -> Seq {
        self.stream.next()
    }

    /// Whether data waits behind a gap.
    pub(crate) fn has_gap(&self) -> bool {
        self.stream.has_gap()
    }

    /// Whether the application has read everything up to the peer's FIN.
    pub(crate) fn is_at_end(&self) -> bool {
        self.fin_received && self.readable() == 0
    }

    /// Bytes that have arrived in order and were not read yet.
    #[inline]
    fn readable(&self) -> u64 {
        self.stream.next().max(1) - Seq::from(self.fin_received) - self.read
    }

    /// The application reads everything that has arrived. Returns the number of bytes.
    pub(crate) fn read_all(&mut self) -> u64 {
        let bytes = self.readable();
        self.read += bytes;
        bytes
    }

    /// The application has read. Returns whether to send a window update (`tcp_rcv_space_adjust`,
    /// `tcp_cleanup_rbuf`).
    pub(crate) fn after_read(&mut self, now: Nanos) -> bool {
        let next = self.stream.next();
        let first = self.first_unread.take().unwrap_or(next);
        let (occupied, reach) = (self.stream.occupied(), self.stream.reach());
        self.window.on_read(now, first, next, occupied, reach);
        let is_pushed = self.delayed_ack.is_due_to_reader() && self.window.is_empty();
        if (is_pushed && self.delayed_ack.is_scheduled()) || self.owes_enough() {
            return true;
        }
        !self.fin_received && self.window.is_half_used(next) && {
            self.watch_buffer();
            self.window.has_doubled(next)
        }
    }

    /// The application reads and finds nothing. Returns whether the stream has ended, and what came before the FIN
    /// is still unacknowledged (`tcp_cleanup_rbuf`).
    pub(crate) fn after_end(&self) -> bool {
        self.is_at_end() && self.owes_enough()
    }

    /// Whether more than a full segment is unacknowledged.
    fn owes_enough(&self) -> bool {
        let unacked = self.stream.next() - self.last_ack_sent;
        self.delayed_ack.is_scheduled() && self.delayed_ack.is_enough(unacked)
    }

    /// `__tcp_select_window`: ends quick acknowledgments if the buffer is short.
    fn watch_buffer(&mut self) {
        if self.window.is_scarce() {
            self.delayed_ack.end_quick();
        }
    }

    /// Decides whether to process a segment: `tcp_validate_incoming`. `acked` is SND.UNA.
    pub(crate) fn validate(&mut self, now: Nanos, segment: &Segment, acked: Seq, rto: Nanos) -> Verdict {
        let next = self.stream.next();
        let is_empty = segment.seq == segment.end();
        if segment.syn {
            // RFC 5961, section 4: a challenge ACK.
            return self.answer_unless_limited(now);
        }
        // `tcp_paws_check` and `tcp_disordered_ack_check`: an acknowledgment that changes nothing may be late.
        let late_ms = self.ts_recent.saturating_sub(segment.ts);
        let changes_nothing = is_empty && segment.seq == next && segment.ack_no == acked;
        if late_ms > PAWS_WINDOW_MS && !(changes_nothing && late_ms <= rto / MS * 12 / 10) {
            if is_empty && segment.seq < next {
                return Verdict::Drop;
            }
        } else if segment.end() >= self.last_ack_sent {
            return Verdict::Take;
        }
        if is_empty {
            return self.answer_unless_limited(now);
        }
        // `tcp_send_dupack`.
        if segment.seq < next {
            self.delayed_ack.enter_quick(self.window.advertised());
            self.stream.note_duplicate((segment.seq, segment.end().min(next)));
        }
        Verdict::Answer
    }

    /// `__tcp_oow_rate_limited`: limits answers that might go on for ever to two a second.
    pub(crate) fn answer_unless_limited(&mut self, now: Nanos) -> Verdict {
        let tick = self.ticks.count(now);
        if self
            .last_answer
            .is_some_and(|before| tick - before < INVALID_RATE_LIMIT)
        {
            return Verdict::Drop;
        }
        self.last_answer = Some(tick);
        Verdict::Answer
    }

    /// Whether the peer's FIN and all data before it have arrived.
    pub(crate) fn has_fin(&self) -> bool {
        self.fin_received
    }

    /// `tcp_replace_ts_recent`.
    pub(crate) fn note_timestamp(&mut self, segment: &Segment) {
        if segment.seq <= self.last_ack_sent && segment.ts >= self.ts_recent {
            self.ts_recent = segment.ts;
        }
    }

    /// Called before the data of a segment is processed. Returns whether compressed acknowledgments must be sent
    /// first, because the segment displaces one of their blocks (`tcp_sack_new_ofo_skb`).
    pub(crate) fn on_arrival(&mut self, now: Nanos, segment: &Segment) -> bool {
        let range = (segment.seq + Seq::from(segment.syn), segment.end());
        let is_full = segment.end() - segment.seq >= u64::from(self.delayed_ack.peer_mss());
        self.window
            .measure(now, segment.ts_echo, is_full, self.readable() == 0);
        if range.0 == range.1 {
            return false;
        }
        if self.ecn.accept_cwr(segment) {
            self.delayed_ack.need_now();
        }
        if range.0 <= self.stream.next() {
            return false;
        }
        self.check_ecn(segment);
        self.measure_peer(segment);
        self.delayed_ack.schedule();
        self.compression.waiting > 0 && self.stream.displaces(range)
    }

    /// Processes data and FIN of a segment. Returns whether to acknowledge before anything else is sent, because a
    /// closing connection got the peer's FIN.
    pub(crate) fn on_data(&mut self, now: Nanos, segment: &Segment, rto: Nanos, is_closing: bool) -> bool {
        if segment.len == 0 && !segment.fin {
            return false;
        }
        let start = segment.seq + Seq::from(segment.syn);
        let memory = memory_of(segment.ip, segment.len);
        match self.stream.take((start, segment.end()), memory) {
            Arrival::InOrder { fills } => {
                self.first_unread
                    .get_or_insert(segment.end() - Seq::from(segment.fin));
                self.window.occupy(memory);
                self.fin_ahead = self.fin_ahead.or(segment.fin.then_some(segment.end()));
                if segment.len > 0 {
                    self.on_in_order(now, segment, rto);
                }
                if fills {
                    self.delayed_ack.need_now();
                }
            }
            Arrival::Ahead { is_new } => {
                if segment.fin {
                    self.fin_ahead = Some(segment.end());
                }
                let peer_mss = self.delayed_ack.peer_mss();
                if is_new && self.window.on_ahead(segment.len, peer_mss) {
                    self.delayed_ack.add_one_quick();
                }
                self.window.reach(self.stream.reach());
            }
            Arrival::Duplicate => {
                self.delayed_ack.enter_quick(self.window.advertised());
                self.delayed_ack.schedule();
            }
        }
        if self.fin_ahead.is_some_and(|end| end <= self.stream.next()) {
            self.fin_received = true;
            self.fin_ahead = None;
            // `tcp_fin`: if the application closes now, its own FIN carries this acknowledgment.
            self.delayed_ack.schedule();
            if is_closing {
                return true;
            }
            self.delayed_ack.enter_pingpong();
        }
        false
    }

    /// Data arrived in order: `tcp_event_data_recv`.
    fn on_in_order(&mut self, now: Nanos, segment: &Segment, rto: Nanos) {
        self.delayed_ack.schedule();
        self.measure_peer(segment);
        self.window.measure_window(now, segment.end());
        let tick = self.ticks.count(now);
        self.delayed_ack
            .on_in_order(tick, self.window.advertised(), rto / JIFFY);
        self.check_ecn(segment);
        if self.window.on_in_order(segment.len, self.delayed_ack.peer_mss()) {
            self.delayed_ack.add_one_quick();
        }
    }

    fn measure_peer(&mut self, segment: &Segment) {
        if self.delayed_ack.measure(segment) {
            self.window.learn_scaling(segment.len);
        }
    }

    fn check_ecn(&mut self, segment: &Segment) {
        if self.ecn.check_data(segment) {
            self.delayed_ack.enter_quick_for_two();
        }
    }

    /// Returns whether to acknowledge now; otherwise sets the timer. `__tcp_ack_snd_check`, `tcp_send_delayed_ack`.
    pub(crate) fn check_ack(&mut self, now: Nanos, rtt: &Rtt) -> bool {
        if !self.delayed_ack.is_scheduled() {
            return false;
        }
        let next = self.stream.next();
        let is_enough = self.owes_enough() && {
            self.watch_buffer();
            self.window.keeps_up()
        };
        match self.delayed_ack.check(is_enough, self.stream.has_gap(), rtt) {
            Due::Now => true,
            Due::Gap => {
                let theirs = self.window.rtt().unwrap_or(0);
                let rtt = rtt.smoothed().map_or(theirs, |ours| ours.min(theirs));
                // Removes a timer that has run out meanwhile.
                self.timer.set = self.timer.set.filter(|(_, at)| *at > now);
                self.compression.answers(now, next, rtt)
            }
            Due::After(delay) => {
                let tick = self.ticks.count(now);
                if let Some((before, _)) = self.timer.set.filter(|_| self.timer.is_awaited) {
                    if before <= tick + delay / 4 {
                        return true;
                    }
                    if before <= tick + delay {
                        return false;
                    }
                }
                self.timer.set = Some((tick + delay, self.ticks.after(now, delay * JIFFY)));
                self.timer.is_awaited = true;
                false
            }
        }
    }

    /// When a waiting acknowledgment must be sent.
    #[inline]
    pub(crate) fn timeout(&self) -> Option<Nanos> {
        let is_awaited = self.timer.is_awaited || self.compression.waiting > 0;
        let timer = self.timer.set.filter(|_| is_awaited).map(|(_, at)| at);
        match (timer, self.compression.until) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    pub(crate) fn clear_timer(&mut self) {
        self.timer = AckTimer::default();
        self.compression.on_ack_sent();
    }

    /// A delay is over. Returns whether to acknowledge (`tcp_delack_timer_handler`, `tcp_compressed_ack_kick`).
    pub(crate) fn on_timeout(&mut self, now: Nanos, rto: Nanos) -> bool {
        if self.timer.set.is_some_and(|(_, at)| at <= now) {
            self.timer.set = None;
        }
        if self.compression.waiting > 0 {
            return true;
        }
        self.timer.is_awaited = false;
        self.delayed_ack.on_timeout(rto / JIFFY)
    }

    /// Data is sent. It may answer data that has just come (`tcp_event_data_sent`).
    pub(crate) fn on_data_sent(&mut self, now: Nanos) {
        self.delayed_ack.on_data_sent(self.ticks.count(now));
    }

    /// Sets the receiver's fields of a segment that is about to leave. Every segment after the SYNs acknowledges.
    pub(crate) fn stamp(&mut self, segment: &mut Segment) {
        segment.ack = true;
        segment.ack_no = self.stream.next();
        segment.ts_echo = self.ts_recent;
        self.watch_buffer();
        segment.window = self.window.advertise(segment.ack_no);
        segment.sacks = self.stream.sacks();
        segment.ece = self.ecn.demands_cwr();
        self.last_ack_sent = segment.ack_no;
        self.timer.is_awaited = false;
        self.compression.on_ack_sent();
        self.delayed_ack.on_ack_sent();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Fault;
    use crate::pair::script::*;

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

    #[test]
    fn an_acknowledgment_that_was_overtaken_is_answered_twice_a_second_at_most() {
        let late = [(Up, 4, Fault::Delayed(5 * MS)), (Up, 6, Fault::Delayed(5 * MS))];
        let mut pair = behind(10_000_000, response(12 * FULL), &late);
        pair.run();
        let answers = pair
            .sent(Down)
            .filter(|sent| sent.at > 200 * MS && sent.segment.len == 0);
        assert_eq!(answers.count(), 1);
    }

    #[test]
    fn a_reader_does_not_acknowledge_while_something_waits_beyond_a_gap() {
        let mut acks = DelayedAck::default();
        let small = Segment {
            len: 50,
            psh: true,
            ..Segment::default()
        };
        acks.schedule();
        acks.measure(&small);
        assert!(acks.is_due_to_reader());
        let mut receiver = Receiver::new(Ticks::default(), IpVersion::V4);
        receiver.stream.start(1);
        receiver.last_ack_sent = 1;
        let mut take = |seq| {
            let segment = Segment { seq, ..small };
            receiver.on_arrival(0, &segment);
            receiver.on_data(0, &segment, JIFFY, false);
            receiver.read_all() > 0 && receiver.after_read(0)
        };
        assert!(!take(101));
        assert!(!take(1));
        assert!(take(51));
    }

    #[test]
    fn a_third_block_lets_out_what_compression_holds_back() {
        let mut receiver = Receiver::new(Ticks::default(), IpVersion::V4);
        receiver.stream.start(1);
        let full = |number: Seq| Segment {
            seq: 1 + number * FULL,
            len: FULL as u32,
            ..Segment::default()
        };
        let is_let_out = |receiver: &mut Receiver, number| {
            let is_let_out = receiver.on_arrival(0, &full(number));
            receiver.on_data(0, &full(number), JIFFY, false);
            is_let_out
        };
        is_let_out(&mut receiver, 1);
        is_let_out(&mut receiver, 3);
        receiver.compression.waiting = 1;
        // It extends the first block, and is the third segment.
        assert!(!is_let_out(&mut receiver, 4));
        assert!(is_let_out(&mut receiver, 6));
    }

    #[test]
    fn a_timer_that_nothing_waits_for_any_more_lets_out_what_is_compressed() {
        let mut receiver = Receiver::new(Ticks::default(), IpVersion::V4);
        receiver.timer.set = Some((1, MS));
        assert_eq!(receiver.timeout(), None);
        for _ in 0..=ANSWERED_AT_ONCE {
            receiver.compression.answers(0, 1, 100 * MS);
        }
        assert_eq!(receiver.timeout(), Some(MS));
        assert!(receiver.on_timeout(MS, 200 * MS));
        receiver.stamp(&mut Segment::default());
        assert_eq!(receiver.timeout(), None);
    }
}
