//! What one end sends: new data as far as the windows let it, what was lost, probes.
//!
//! `tcp_write_xmit`, `tcp_tso_should_defer`, `tcp_event_new_data_sent` and `tcp_rearm_rto` in `net/ipv4/tcp_output.c`.
//! Nagle's algorithm is off (`TCP_NODELAY`), as in the lab, and CUBIC does not pace. Left out: TCP small queues, which
//! show only where a link is faster than the lab's.
//!
//! Of the fields of [`Sender`], each is written in one module: SND.UNA and the peer's window in `acks.rs`, SND.NXT here,
//! what is written in `buffer.rs`. What is beyond sequence numbers belongs to types with private fields: the scoreboard,
//! the congestion window, the RTT, RACK, the loss probe, recovery.

mod acks;
mod buffer;
mod rack;
mod recovery;
mod rtt;
mod scoreboard;

use firstflight_path::Nanos;

use crate::congestion::{Algorithm, Sent, Window};
use crate::ecn::EcnSender;
use crate::handshake::Early;
use crate::segment::{Segment, Seq};
use crate::time::{MS, Ticks, US};
use crate::timers::{Pending, SenderTimer};
use crate::{Info, MSS, Outlet, Settings};

use buffer::SendBuffer;
use rack::{Probe, Rack};
use recovery::Recovery;
use scoreboard::{Flight, Scoreboard};

pub use recovery::Phase;
pub(crate) use rtt::{INITIAL_RTO, Rtt};

/// `tcp_tso_win_divisor`: of the window so much is worth a bundle.
const TSO_WIN_DIVISOR: u64 = 3;
/// `GSO_MAX_SIZE`: what segmentation offload bundles at most, bytes.
const MAX_BUNDLE: u64 = 65_536;

/// What the handshake lets a sender send.
#[derive(Debug, Clone, Copy)]
enum Permission {
    Nothing,
    /// A server's, to the data of a SYN with a valid cookie.
    Early(Early),
    /// The handshake is done.
    Everything,
}

/// A connection's sending half.
#[derive(Debug)]
pub(crate) struct Sender {
    ticks: Ticks,
    permission: Permission,
    /// SND.UNA, SND.NXT, and the end of what is in the send buffer.
    acked: Seq,
    next: Seq,
    written: Seq,
    /// A FIN follows what was written.
    has_fin: bool,
    buffer: SendBuffer,
    peer_window_end: Seq,
    max_peer_window: u64,
    last_sent_at: Nanos,
    board: Scoreboard,
    window: Window,
    rtt: Rtt,
    rack: Rack,
    probe: Probe,
    recovery: Recovery,
    ecn: EcnSender,
    /// Timeouts in a row.
    timeouts: u32,
    timer: SenderTimer,
}

/// Segments that leave as one.
#[derive(Debug, Clone, Copy, Default)]
struct Burst {
    left: u32,
    is_bundle: bool,
}

impl Sender {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            ticks: settings.ticks,
            permission: Permission::Nothing,
            acked: 0,
            next: 0,
            written: 1,
            has_fin: false,
            buffer: SendBuffer::default(),
            peer_window_end: 0,
            max_peer_window: 0,
            last_sent_at: 0,
            board: Scoreboard::default(),
            window: Window::new(settings.algorithm, settings.initial_window),
            rtt: Rtt::default(),
            rack: Rack::default(),
            probe: Probe::default(),
            recovery: Recovery::default(),
            ecn: EcnSender::default(),
            timeouts: 0,
            timer: SenderTimer::default(),
        }
    }

    /// What it goes by.
    pub(crate) fn info(&self) -> Info {
        Info {
            phase: self.recovery.phase(),
            cwnd: self.window.cwnd(),
            ssthresh: self.window.ssthresh(),
            unacked: self.board.out(),
            sacked: self.board.sacked(),
            lost: self.board.lost(),
            retransmitted: self.board.resent(),
            rto: self.rtt.rto(),
            smoothed_rtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            reordering_window: self.reordering_window(),
            timeouts: self.timeouts,
        }
    }

    pub(crate) fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    #[inline]
    pub(crate) fn timer(&self) -> &SenderTimer {
        &self.timer
    }

    pub(crate) fn timer_mut(&mut self) -> &mut SenderTimer {
        &mut self.timer
    }

    pub(crate) fn set_timer(&mut self, now: Nanos, delay: Nanos, pending: Pending) {
        self.timer.set(self.ticks.after(now, delay), pending);
    }

    /// The SYN's timer, which is twice as long as before if it `backs_off`.
    pub(crate) fn start_syn_timer(&mut self, now: Nanos, backs_off: bool) {
        if backs_off {
            self.rtt.back_off();
        }
        self.set_timer(now, self.rtt.rto(), Pending::Retransmit);
    }

    /// `tcp_rearm_rto`: the timeout counts from now, but not anew while a probe or the reordering timer ran. As
    /// long as a SYN-ACK is not acknowledged, the timer is the SYN-ACK's.
    pub(crate) fn rearm_rto(&mut self, now: Nanos) {
        if !self.is_established() {
            return;
        }
        let Some(first) = self.board.first() else {
            return self.timer.clear();
        };
        let mut delay = self.rtt.rto();
        if matches!(self.timer.pending(), Some(Pending::Probe | Pending::Reorder)) {
            delay = (first.sent_at + delay).saturating_sub(now).max(1);
        }
        self.set_timer(now, delay, Pending::Retransmit);
    }

    fn is_established(&self) -> bool {
        matches!(self.permission, Permission::Everything)
    }
}

/// The handshake's part.
impl Sender {
    /// Takes `bytes` of the application's data into the SYN and what follows it.
    pub(crate) fn buffer_behind_syn(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// A SYN leaves, whose data ends at `end`.
    pub(crate) fn on_syn_sent(&mut self, end: Seq) {
        self.next = self.next.max(end);
    }

    /// What if data may follow the SYN before its answer: segments that acknowledge nothing.
    pub(crate) fn push_behind_syn(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        while self.next < self.written {
            let end = self.written.min(self.next + Seq::from(MSS));
            let flight = Flight {
                psh: end == self.written,
                ..Flight::new(self.next, end, now)
            };
            outlet.send_bare(Segment {
                psh: flight.psh,
                seq: flight.seq,
                len: (flight.end - flight.seq) as u32,
                window: crate::receiver::INITIAL_WINDOW,
                ts: now / MS,
                ..Segment::default()
            });
            self.board.push(flight);
            self.next = end;
        }
    }

    /// A server: the peer's SYN opens its window, and may let data out before the handshake ends.
    pub(crate) fn on_syn(&mut self, syn: &Segment, early: Option<Early>, ecn: bool) {
        self.peer_window_end = 1 + syn.window;
        self.max_peer_window = syn.window;
        self.ecn.negotiate(ecn);
        if let Some(early) = early {
            self.permission = Permission::Early(early);
            // `tcp_fastopen_create_child` makes a socket that has no sample of the RTT (`tcp_init_metrics`).
            self.rtt.fall_back();
        }
    }

    /// A client: the SYN-ACK acknowledges the SYN, and its data or not.
    pub(crate) fn on_syn_ack(&mut self, segment: &Segment, ecn: bool) {
        self.timer.clear();
        self.acked = segment.ack_no;
        self.peer_window_end = segment.ack_no + segment.window;
        self.max_peer_window = segment.window;
        self.rtt.end_handshake();
        self.ecn.negotiate(ecn);
    }

    /// A server: the SYN-ACK was acknowledged.
    pub(crate) fn on_syn_acked(&mut self, segment: &Segment) {
        self.acked = self.acked.max(1);
        self.peer_window_end = segment.ack_no + segment.window;
    }

    /// The first acknowledgment of a handshake gives a sample of the RTT.
    pub(crate) fn sample_handshake(&mut self, sample: Nanos) {
        self.rtt.sample(sample, sample, self.acked, self.next);
    }

    /// The handshake is done.
    pub(crate) fn on_established(&mut self) {
        self.permission = Permission::Everything;
        self.timeouts = 0;
    }

    /// The connection is over: nothing is sent any more.
    pub(crate) fn on_end(&mut self) {
        self.permission = Permission::Nothing;
        self.timer.clear();
    }

    /// The SYN's data, up to `end`, was not taken: it goes again with the handshake's last segment, which is no sign
    /// of congestion (`tcp_non_congestion_loss_retransmit`).
    pub(crate) fn resend_syn_data(&mut self, now: Nanos, end: Seq, outlet: &mut Outlet<'_>) {
        self.board = Scoreboard::default();
        self.board.push(Flight {
            psh: true,
            ..Flight::new(self.acked, end, now)
        });
        self.board.mark_lost(0);
        self.next = end;
        self.recovery.enter_loss_without_congestion(end);
        self.resend_lost(now, outlet);
        if self.written > end {
            self.push(now, outlet);
        }
    }

    /// RFC 5681, section 3.1: the SYN or the SYN-ACK was lost.
    pub(crate) fn begin_with_one(&mut self) {
        self.window.allow(0, 1);
    }

    /// SND.UNA.
    pub(crate) fn acked(&self) -> Seq {
        self.acked
    }

    /// Whether nothing waits for an acknowledgment.
    pub(crate) fn has_none_in_flight(&self) -> bool {
        self.board.is_empty()
    }

    /// Whether a FIN is or will be sent.
    pub(crate) fn is_closing(&self) -> bool {
        self.has_fin
    }
}

/// Sending.
impl Sender {
    pub(crate) fn algorithm(&self) -> Algorithm {
        self.window.algorithm()
    }

    /// The application hands over `bytes`.
    pub(crate) fn write(&mut self, now: Nanos, bytes: u64, outlet: &mut Outlet<'_>) {
        if self.board.is_empty() && self.is_established() {
            let idle = now.saturating_sub(self.last_sent_at);
            self.window.on_resume(now, idle, self.rtt.rto());
        }
        self.buffer(now, bytes, outlet);
    }

    /// Sends what can be sent.
    pub(crate) fn push(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        self.push_bursts(now, u32::MAX, outlet);
    }

    /// Where data must end that is sent at `now`: none before the handshake, but for Fast Open's.
    fn send_limit(&self, now: Nanos) -> Seq {
        match self.permission {
            Permission::Everything => Seq::MAX,
            Permission::Early(early) if now <= early.until => early.end,
            Permission::Early(_) | Permission::Nothing => 0,
        }
    }

    /// As [`Self::push`], but no more than so many bursts.
    fn push_bursts(&mut self, now: Nanos, most: u32, outlet: &mut Outlet<'_>) {
        let mut bursts = 0;
        let mut sent = 0;
        let mut is_limited = false;
        let mut burst = Burst::default();
        while let Some((len, fin)) = self.next_piece(now) {
            if self.board.in_flight() >= self.window.cwnd() {
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
                if self.defers(now) {
                    is_limited = true;
                    break;
                }
                burst = self.next_burst();
            }
            burst.left -= 1;
            self.send_piece(now, len, fin, burst.is_bundle && burst.left == 0, outlet);
            sent += 1;
        }
        is_limited |= self.board.in_flight() >= self.window.cwnd();
        if sent > 0 || is_limited {
            self.validate_window(now, is_limited);
        }
        if sent > 0 {
            self.recovery.on_sent(sent);
            self.schedule_probe(now, false);
        }
    }

    /// Sends one segment beyond the congestion window: a loss probe. `false` when there is nothing new.
    fn push_one(&mut self, now: Nanos, outlet: &mut Outlet<'_>) -> bool {
        let Some((len, fin)) = self.next_piece(now) else {
            return false;
        };
        if self.next + Seq::from(len) > self.peer_window_end {
            return false;
        }
        self.send_piece(now, len, fin, false, outlet);
        self.validate_window(now, self.board.in_flight() >= self.window.cwnd());
        true
    }

    /// `tcp_tso_should_defer`: a bundle that the window would cut short waits, if the last one left a moment ago and the
    /// acknowledgment that makes room is about to come.
    fn defers(&self, now: Nanos) -> bool {
        let unsent = (self.written - self.next).min(self.skb_goal());
        if unsent <= u64::from(MSS)
            || self.recovery.is_recovering()
            || now.saturating_sub(self.last_sent_at) > MS
        {
            return false;
        }
        let (cwnd, acked) = (u64::from(self.window.cwnd()), self.acked);
        let congestion = (cwnd - u64::from(self.board.in_flight())) * u64::from(MSS);
        let peer = self.peer_window_end.saturating_sub(self.next);
        let limit = congestion.min(peer);
        let window = self
            .peer_window_end
            .saturating_sub(acked)
            .min(cwnd * u64::from(MSS));
        if limit >= self.bundle_limit() * u64::from(MSS) || limit >= window / TSO_WIN_DIVISOR {
            return false;
        }
        let (Some(head), Some(rtt)) = (self.board.first(), self.rtt.smoothed()) else {
            return false;
        };
        let is_soon = head.sent_at + rtt <= now + MS.min(rtt / 2);
        is_soon && limit <= unsent
    }

    /// How many segments the kernel handles as one (`tcp_tso_autosize`): about a millisecond's worth at twice the
    /// sending rate, two at least. The last of several carries PSH (`__tcp_transmit_skb`).
    fn bundle_limit(&self) -> u64 {
        let cwnd = self.window.cwnd();
        let window = u64::from(cwnd.max(self.board.out()));
        let ratio = if cwnd < self.window.ssthresh() / 2 {
            200
        } else {
            120
        };
        // `sk_pacing_rate` is without limit before there is a sample.
        let rate = self.rtt.smoothed().map_or(u64::MAX, |rtt| {
            window * u64::from(MSS) * ratio / 100 * 1_000_000_000 / rtt.max(1)
        });
        let near = self
            .rtt
            .min()
            .map_or(0, |rtt| MAX_BUNDLE >> ((rtt / US) >> 9).min(63));
        ((rate >> 10).saturating_add(near).min(MAX_BUNDLE) / u64::from(MSS)).max(2)
    }

    /// The next of them, as far as there is something to send and the window lets it.
    fn next_burst(&self) -> Burst {
        let cwnd = self.window.cwnd();
        let limit = self.bundle_limit();
        let waiting = (self.written - self.next).div_ceil(u64::from(MSS)).max(1);
        // `tcp_cwnd_test`: two bundles at least fit into the window.
        let quota = u64::from((cwnd / 2).max(1).min(cwnd - self.board.in_flight()));
        let left = limit.min(waiting).min(quota) as u32;
        Burst {
            left,
            is_bundle: left > 1,
        }
    }

    /// Whether something is written that was never sent.
    fn has_unsent(&self, now: Nanos) -> bool {
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

    fn send_piece(&mut self, now: Nanos, len: u32, fin: bool, ends_bundle: bool, outlet: &mut Outlet<'_>) {
        let had_none = self.board.is_empty();
        if self.board.in_flight() == 0 {
            let idle = now.saturating_sub(self.last_sent_at);
            self.window.on_transmit_start(now, idle);
        }
        let end = self.next + Seq::from(len);
        let flight = Flight {
            fin,
            psh: len > 0 && self.takes_push(end),
            ..Flight::new(self.next, end + Seq::from(fin), now)
        };
        let first = Flight {
            psh: flight.psh || ends_bundle,
            ..flight
        };
        self.transmit_flight(now, &first, outlet);
        self.board.push(flight);
        self.next = flight.end;
        if had_none || self.timer.pending() == Some(Pending::Probe) {
            self.rearm_rto(now);
        }
    }

    /// Puts a segment of the scoreboard on the wire.
    fn transmit_flight(&mut self, now: Nanos, flight: &Flight, outlet: &mut Outlet<'_>) {
        let mut segment = Segment {
            seq: flight.seq,
            len: (flight.end - flight.seq - Seq::from(flight.fin)) as u32,
            fin: flight.fin,
            psh: flight.psh,
            ts: now / MS,
            ..Segment::default()
        };
        if segment.len > 0 {
            self.last_sent_at = now;
            outlet.on_data(now);
            if flight.seq >= self.next {
                self.ecn.make_capable(&mut segment);
            }
        }
        outlet.send(segment);
    }

    /// An acknowledgment without data.
    pub(crate) fn bare_ack(&self, now: Nanos) -> Segment {
        Segment {
            seq: self.next,
            ts: now / MS,
            ..Segment::default()
        }
    }

    fn validate_window(&mut self, now: Nanos, is_limited: bool) {
        let sent = Sent {
            acked: self.acked,
            next: self.next,
            out: self.board.out(),
            is_limited,
            is_open: self.recovery.is_open(),
            rto: self.rtt.rto(),
        };
        self.window.validate(now, &sent);
    }
}
