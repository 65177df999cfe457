//! Sending what the application has written, as far as the windows let it.
//!
//! `tcp_write_xmit`, `tcp_event_new_data_sent` and `tcp_rearm_rto` in `net/ipv4/tcp_output.c`. Nagle's algorithm
//! is off (`TCP_NODELAY`), as in the lab, and CUBIC does not pace. Left out: `tcp_tso_should_defer` and TCP small
//! queues, which show only where a link is faster than the lab's.

use firstflight_path::Nanos;

use crate::congestion::Sent;
use crate::scoreboard::Flight;
use crate::segment::{Segment, Seq};
use crate::time::US;
use crate::timers::Pending;
use crate::{MSS, Socket, State};

/// `GSO_MAX_SIZE`: what segmentation offload bundles at most, bytes.
const MAX_BUNDLE: u64 = 65_536;

/// Segments that leave as one.
#[derive(Debug, Clone, Copy, Default)]
struct Burst {
    left: u32,
    is_bundle: bool,
}

impl Socket {
    /// Sends what can be sent.
    pub(crate) fn push(&mut self, now: Nanos) {
        self.push_bursts(now, u32::MAX);
    }

    /// Where data must end that is sent at `now`: none before the handshake, but for Fast Open's.
    fn send_limit(&self, now: Nanos) -> Seq {
        match (self.state, self.fast_open.early) {
            (State::Established, _) => Seq::MAX,
            (State::SynReceived, Some(early)) if now <= early.until => early.end,
            _ => 0,
        }
    }

    /// As [`Self::push`], but no more than so many bursts.
    pub(crate) fn push_bursts(&mut self, now: Nanos, most: u32) {
        let mut bursts = 0;
        let mut sent = 0;
        let mut is_limited = false;
        let mut burst = Burst::default();
        while let Some((len, fin)) = self.next_piece(now) {
            if self.board.in_flight() >= self.window.cwnd {
                is_limited = true;
                break;
            }
            if self.next + Seq::from(len) > self.peer_window_end {
                break;
            }
            if burst.left == 0 {
                if bursts == most {
                    break;
                }
                bursts += 1;
                burst = self.next_burst();
            }
            burst.left -= 1;
            self.send_piece(now, len, fin, burst.is_bundle && burst.left == 0);
            sent += 1;
        }
        is_limited |= self.board.in_flight() >= self.window.cwnd;
        if sent > 0 || is_limited {
            self.validate_window(now, is_limited);
        }
        if sent > 0 {
            self.recovery.on_sent(sent);
            self.schedule_probe(now, false);
        }
    }

    /// Sends one segment beyond the congestion window: a loss probe. `false` when there is nothing new.
    pub(crate) fn push_one(&mut self, now: Nanos) -> bool {
        let Some((len, fin)) = self.next_piece(now) else {
            return false;
        };
        if self.next + Seq::from(len) > self.peer_window_end {
            return false;
        }
        self.send_piece(now, len, fin, false);
        self.validate_window(now, self.board.in_flight() >= self.window.cwnd);
        true
    }

    /// How many segments the kernel handles as one (`tcp_tso_autosize`): about a millisecond's worth at twice the
    /// sending rate, two at least. The last of several carries PSH (`__tcp_transmit_skb`).
    fn next_burst(&self) -> Burst {
        let window = u64::from(self.window.cwnd.max(self.board.out()));
        let ratio = if self.window.cwnd < self.window.ssthresh / 2 {
            200
        } else {
            120
        };
        let rate = self.rtt.smoothed().map_or(0, |rtt| {
            window * u64::from(MSS) * ratio / 100 * 1_000_000_000 / rtt.max(1)
        });
        let near = self
            .rtt
            .min
            .map_or(0, |rtt| MAX_BUNDLE >> ((rtt / US) >> 9).min(63));
        let limit = (((rate >> 10) + near).min(MAX_BUNDLE) / u64::from(MSS)).max(2);
        let waiting = (self.written - self.next).div_ceil(u64::from(MSS)).max(1);
        let quota = u64::from(self.window.cwnd - self.board.in_flight());
        let left = limit.min(waiting).min(quota) as u32;
        Burst {
            left,
            is_bundle: left > 1,
        }
    }

    /// Whether something is written that was never sent.
    pub(crate) fn has_unsent(&self, now: Nanos) -> bool {
        self.next_piece(now).is_some()
    }

    /// Length of the next segment, and whether the FIN rides with it.
    fn next_piece(&self, now: Nanos) -> Option<(u32, bool)> {
        let limit = self.send_limit(now);
        if limit <= self.next || self.next > self.written {
            return None;
        }
        let left = self.written - self.next;
        let len = left.min(u64::from(MSS)).min(limit - self.next);
        let fin = self.has_fin && len == left;
        (len > 0 || fin).then_some((len as u32, fin))
    }

    fn send_piece(&mut self, now: Nanos, len: u32, fin: bool, ends_bundle: bool) {
        let had_none = self.board.is_empty();
        if self.board.in_flight() == 0 {
            let idle = now.saturating_sub(self.last_sent_at);
            self.window.on_transmit_start(now, idle);
        }
        let end = self.next + Seq::from(len);
        let flight = Flight {
            fin,
            psh: ends_bundle || end == self.written,
            ..Flight::new(self.next, end + Seq::from(fin), now)
        };
        self.transmit_flight(now, &flight);
        self.board.push(flight);
        self.next = flight.end;
        if had_none || self.timers.pending() == Some(Pending::Probe) {
            self.rearm_rto(now);
        }
    }

    /// Puts a segment of the scoreboard on the wire.
    pub(crate) fn transmit_flight(&mut self, now: Nanos, flight: &Flight) {
        let mut segment = self.segment(now);
        segment.seq = flight.seq;
        segment.len = (flight.end - flight.seq - Seq::from(flight.fin)) as u32;
        segment.fin = flight.fin;
        segment.psh = flight.psh;
        if segment.len > 0 {
            self.last_sent_at = now;
            self.delayed_ack.on_data_sent(now);
            if flight.seq >= self.next {
                self.make_capable(&mut segment);
            }
        }
        self.transmit(segment);
    }

    /// Puts a segment with an acknowledgment on the wire.
    pub(crate) fn transmit(&mut self, mut segment: Segment) {
        segment.window = self.receive_window.advertise(segment.ack_no);
        segment.sacks = self.reassembly.sacks();
        segment.ece = self.demands_cwr();
        self.last_ack_sent = segment.ack_no;
        self.timers.delayed_ack = None;
        self.delayed_ack.on_ack_sent();
        self.out.push_back(segment);
    }

    fn validate_window(&mut self, now: Nanos, is_limited: bool) {
        let sent = Sent {
            acked: self.acked,
            next: self.next,
            out: self.board.out(),
            is_limited,
            is_open: self.recovery.is_open(),
            rto: self.rtt.rto,
        };
        self.window.validate(now, &sent);
    }

    /// `tcp_rearm_rto`: the timeout counts from now, but not anew while a probe or the reordering timer ran. As
    /// long as a SYN-ACK is not acknowledged, the timer is the SYN-ACK's.
    pub(crate) fn rearm_rto(&mut self, now: Nanos) {
        if self.state == State::SynReceived {
            return;
        }
        let Some(first) = self.board.first() else {
            return self.timers.clear();
        };
        let mut delay = self.rtt.rto;
        if matches!(self.timers.pending(), Some(Pending::Probe | Pending::Reorder)) {
            delay = (first.sent_at + delay).saturating_sub(now).max(1);
        }
        self.set_timer(now, delay, Pending::Retransmit);
    }

    pub(crate) fn set_timer(&mut self, now: Nanos, delay: Nanos, pending: Pending) {
        self.timers.set(self.settings.ticks.after(now, delay), pending);
    }
}
