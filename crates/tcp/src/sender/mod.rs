//! The sending half of an end: new data as far as the windows allow, retransmissions, and probes.
//!
//! `tcp_write_xmit`, `tcp_tso_should_defer`, `tcp_event_new_data_sent` and `tcp_rearm_rto` in
//! `net/ipv4/tcp_output.c`. Nagle's algorithm is off (`TCP_NODELAY`), as in the lab, and CUBIC does not pace. Left
//! out: TCP small queues, which matter only on links faster than the lab's.
//!
//! Each field of [`Sender`] is written in one module: SND.UNA and the peer's window in `acks.rs`, SND.NXT here, the
//! written data in `buffer.rs`. Other state belongs to types with private fields: the scoreboard, the congestion
//! window, the RTT, RACK, the loss probe, recovery.

mod acks;
mod buffer;
mod rack;
mod recovery;
mod rtt;
mod scoreboard;

use firstflight_path::{IpVersion, Nanos};

use crate::congestion::{Algorithm, Sent, Window};
use crate::ecn::EcnSender;
use crate::handshake::Early;
use crate::segment::{Segment, Seq, mss};
use crate::time::{MS, Ticks, US};
use crate::timers::{Pending, SenderTimer};
use crate::{Info, Outlet, Settings};

use buffer::{LEAST, MAX_SKB, SendBuffer};
use rack::{Probe, Rack};
use recovery::Recovery;
use scoreboard::{Flight, Scoreboard};

pub use buffer::SendMemory;
pub use recovery::Phase;
pub(crate) use rtt::{INITIAL_RTO, Rtt};

/// `tcp_tso_win_divisor`: the window divided by this is worth sending as a bundle.
const TSO_WIN_DIVISOR: u64 = 3;

/// What the handshake allows a sender to send.
#[derive(Debug, Clone, Copy)]
enum Permission {
    Nothing,
    /// A server's answer to the data of a SYN with a valid cookie.
    Early(Early),
    /// The handshake is done.
    Everything,
}

/// A connection's sending half.
#[derive(Debug)]
pub(crate) struct Sender {
    ip: IpVersion,
    /// Bytes of data in a full segment.
    mss: u32,
    ticks: Ticks,
    permission: Permission,
    /// SND.UNA, SND.NXT, and the end of the data in the send buffer.
    acked: Seq,
    next: Seq,
    written: Seq,
    /// Whether a FIN follows the written data.
    has_fin: bool,
    buffer: SendBuffer,
    peer_window_end: Seq,
    max_peer_window: u64,
    /// When data was last sent (`lsndtime`), and when any segment was (`tcp_wstamp_ns`).
    last_sent_at: Nanos,
    last_left_at: Nanos,
    /// The rate that determines the size of bundles, bytes per second (`sk_pacing_rate`).
    rate: u64,
    /// Segments that were delivered, and retransmitted (`tp->delivered`, `tp->total_retrans`).
    delivered: u32,
    total_resent: u32,
    board: Scoreboard,
    window: Window,
    rtt: Rtt,
    rack: Rack,
    probe: Probe,
    recovery: Recovery,
    ecn: EcnSender,
    /// Number of timeouts in a row.
    timeouts: u32,
    timer: SenderTimer,
}

/// How much to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pushing {
    All,
    /// One bundle.
    One,
    /// One bundle, with one segment beyond the congestion window: a loss probe.
    Probe,
}

/// The reason to defer a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Congestion,
    /// The peer's window, or more data that may join the bundle.
    Other,
}

impl Sender {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            ip: settings.ip,
            mss: mss(settings.ip),
            ticks: settings.ticks,
            permission: Permission::Nothing,
            acked: 0,
            next: 0,
            written: 1,
            has_fin: false,
            buffer: SendBuffer::new(settings.initial_window, settings.memory),
            peer_window_end: 0,
            max_peer_window: 0,
            last_sent_at: 0,
            last_left_at: 0,
            rate: u64::MAX,
            delivered: 1,
            total_resent: 0,
            board: Scoreboard::default(),
            window: Window::new(settings.algorithm, settings.initial_window, settings.ticks),
            rtt: Rtt::default(),
            rack: Rack::default(),
            probe: Probe::default(),
            recovery: Recovery::default(),
            ecn: EcnSender::default(),
            timeouts: 0,
            timer: SenderTimer::default(),
        }
    }

    /// The sender's state.
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

    /// The SYN leaves for the first time.
    pub(crate) fn start_syn_timer(&mut self, now: Nanos) {
        self.set_timer(now, self.rtt.rto(), Pending::Retransmit);
    }

    /// The SYN is retransmitted. If it `backs_off`, the timer is twice as long as before. Linux treats the loss
    /// like any other (`tcp_enter_loss`), so the first segment with data carries CWR if ECN is negotiated.
    pub(crate) fn on_syn_timeout(&mut self, now: Nanos, backs_off: bool) {
        self.ecn.on_reduction();
        if backs_off {
            self.rtt.back_off();
        }
        self.start_syn_timer(now);
    }

    /// `tcp_rearm_rto`: the timeout counts from now, or from when the first segment was sent if a probe or the
    /// reordering timer is pending. While a SYN-ACK is not acknowledged, the timer belongs to the SYN-ACK.
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
    /// Accepts `bytes` of the application's data, for the SYN and after it.
    pub(crate) fn buffer_behind_syn(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// A SYN is sent, whose data ends at `end`.
    pub(crate) fn on_syn_sent(&mut self, end: Seq) {
        self.next = self.next.max(end);
    }

    /// What-if: sends data after the SYN before its answer, in segments without ACK.
    pub(crate) fn push_behind_syn(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        while self.next < self.written {
            let end = self.written.min(self.next + Seq::from(self.mss));
            let flight = Flight {
                psh: end == self.written,
                ..Flight::new(self.next, end, self.mss, now)
            };
            outlet.send_bare(Segment {
                psh: flight.psh,
                seq: flight.seq,
                len: (flight.end - flight.seq) as u32,
                window: crate::receiver::initial_window(self.ip),
                ts: now / MS,
                ..Segment::default()
            });
            self.board.push(flight);
            self.next = end;
        }
    }

    /// On a server: the peer's SYN opens the send window, and may allow data before the handshake ends.
    pub(crate) fn on_syn(&mut self, syn: &Segment, early: Option<Early>, ecn: bool) {
        self.peer_window_end = 1 + syn.window;
        self.max_peer_window = syn.window;
        self.ecn.negotiate(ecn);
        if let Some(early) = early {
            self.permission = Permission::Early(early);
            // `tcp_fastopen_create_child` makes a socket without an RTT sample (`tcp_init_metrics`).
            self.rtt.fall_back();
        }
    }

    /// On a client: the SYN-ACK acknowledges the SYN, with or without its data.
    pub(crate) fn on_syn_ack(&mut self, segment: &Segment, ecn: bool) {
        self.timer.clear();
        self.acked = segment.ack_no;
        self.peer_window_end = segment.ack_no + segment.window;
        self.max_peer_window = segment.window;
        self.rtt.end_handshake();
        self.ecn.negotiate(ecn);
    }

    /// On a server: the SYN-ACK was acknowledged.
    pub(crate) fn on_syn_acked(&mut self, segment: &Segment) {
        self.acked = self.acked.max(1);
        self.peer_window_end = segment.ack_no + segment.window;
    }

    /// The first acknowledgment of a handshake gives an RTT sample.
    pub(crate) fn sample_handshake(&mut self, sample: Nanos) {
        self.rtt.sample(sample, sample, self.acked, self.next);
        self.update_rate(self.window.cwnd());
    }

    /// The handshake is done.
    pub(crate) fn on_established(&mut self, is_client: bool) {
        self.permission = Permission::Everything;
        self.timeouts = 0;
        // A client's rate is that of `TCP_INIT_CWND`. The initial window of the route only counts from here on
        // (`tcp_finish_connect`).
        self.update_rate(if is_client { LEAST } else { self.window.cwnd() });
    }

    /// The connection is over: nothing is sent any more.
    pub(crate) fn on_end(&mut self) {
        self.permission = Permission::Nothing;
        self.timer.clear();
    }

    /// The SYN's data, up to `end`, was not accepted. It is sent again with the handshake's last segment, which is
    /// no sign of congestion (`tcp_non_congestion_loss_retransmit`).
    pub(crate) fn resend_syn_data(&mut self, now: Nanos, end: Seq, outlet: &mut Outlet<'_>) {
        self.board = Scoreboard::default();
        self.board.push(Flight {
            psh: true,
            ..Flight::new(self.acked, end, self.mss, now)
        });
        self.board.mark_lost(0);
        self.next = end;
        self.recovery.enter_loss_without_congestion(end);
        self.resend_lost(now, outlet);
        if self.written > end {
            self.buffer.queue(self.written);
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

    /// Whether no data waits for an acknowledgment.
    pub(crate) fn has_none_in_flight(&self) -> bool {
        self.board.is_empty()
    }

    /// Whether a FIN was or will be sent.
    pub(crate) fn is_closing(&self) -> bool {
        self.has_fin
    }
}

/// Sending.
impl Sender {
    pub(crate) fn algorithm(&self) -> Algorithm {
        self.window.algorithm()
    }

    /// The application writes `bytes`.
    pub(crate) fn write(&mut self, now: Nanos, bytes: u64, outlet: &mut Outlet<'_>) {
        if self.board.is_empty() && self.is_established() {
            self.window.on_resume(now, self.last_sent_at, self.rtt.rto());
        }
        self.buffer(now, bytes, outlet);
    }

    /// Sends what is possible. Returns the number of bundles.
    pub(crate) fn push(&mut self, now: Nanos, outlet: &mut Outlet<'_>) -> u32 {
        self.write_out(now, Pushing::All, outlet)
    }

    /// The end of what may be sent at `now`: before the end of the handshake only what Fast Open allows.
    fn send_limit(&self, now: Nanos) -> Seq {
        match self.permission {
            Permission::Everything => Seq::MAX,
            Permission::Early(early) if now <= early.until => early.end,
            Permission::Early(_) | Permission::Nothing => 0,
        }
    }

    /// Sends new data, a bundle of segments at a time: `tcp_write_xmit`. Returns the number of bundles.
    fn write_out(&mut self, now: Nanos, pushing: Pushing, outlet: &mut Outlet<'_>) -> u32 {
        let most = self.bundle_limit();
        let (mut bundles, mut sent, mut is_limited) = (0, 0, false);
        if !self.has_unsent() {
            return 0;
        }
        while self.has_unsent() {
            let mut quota = self.quota();
            if quota == 0 {
                if pushing != Pushing::Probe {
                    break;
                }
                quota = 1;
            }
            let bytes = quota.min(most) * u64::from(self.mss);
            self.buffer.grow_head(self.next, bytes);
            let Some(head) = self.buffer.head() else { break };
            let len = head.end - self.next;
            if !self.may_send_head(now) {
                break;
            }
            if pushing == Pushing::All
                && len > u64::from(self.mss)
                && let Some(limit) = self.defers(now, len, most)
            {
                is_limited |= limit == Limit::Congestion;
                break;
            }
            // `tcp_mss_split_point`.
            let window = self.send_limit(now).min(self.peer_window_end) - self.next;
            sent += self.send_head(now, len.min(bytes).min(window), outlet);
            bundles += 1;
            if pushing != Pushing::All {
                break;
            }
        }
        is_limited |= self.board.in_flight() >= self.window.cwnd();
        if sent > 0 || is_limited {
            self.validate_window(now, is_limited);
        }
        if sent > 0 {
            self.recovery.on_sent(sent);
            if pushing != Pushing::Probe {
                self.schedule_probe(now, false);
            }
        }
        bundles
    }

    /// Segments that the congestion window allows in one bundle: `tcp_cwnd_test`, so that at least two bundles fit.
    fn quota(&self) -> u64 {
        let cwnd = self.window.cwnd();
        let left = cwnd.saturating_sub(self.board.in_flight());
        u64::from((cwnd / 2).max(1).min(left))
    }

    /// `tcp_tso_should_defer`: a bundle that a window would cut short waits, if the last one left a moment ago and
    /// the acknowledgment that makes room will come soon. `len` is the length of the next skb.
    fn defers(&self, now: Nanos, len: u64, most: u64) -> Option<Limit> {
        if self.recovery.is_recovering() || now.saturating_sub(self.last_left_at) > MS {
            return None;
        }
        let (cwnd, mss) = (u64::from(self.window.cwnd()), u64::from(self.mss));
        let congestion = cwnd.saturating_sub(u64::from(self.board.in_flight())) * mss;
        let peer = self.peer_window_end.saturating_sub(self.next);
        let limit = congestion.min(peer);
        let window = self.peer_window_end.saturating_sub(self.acked).min(cwnd * mss);
        let is_middle = !self.buffer.has_one();
        if limit >= most * mss || (is_middle && limit >= len) || limit >= window / TSO_WIN_DIVISOR {
            return None;
        }
        let head = self.board.first()?;
        let rtt = self.rtt.smoothed().unwrap_or(0);
        if head.sent_at + rtt > now + MS.min(rtt / 2) {
            return None;
        }
        if limit <= len {
            return Some(if congestion < peer {
                Limit::Congestion
            } else {
                Limit::Other
            });
        }
        let gets_more = self.buffer.head().is_some_and(|head| !head.fin);
        gets_more.then_some(Limit::Other)
    }

    /// Segments that the kernel handles as one bundle (`tcp_tso_autosize`): as many as take a millisecond, more for
    /// a near peer, at least two. The last of several carries PSH (`__tcp_transmit_skb`).
    fn bundle_limit(&self) -> u64 {
        let near = self.rtt.min().map_or(0, |rtt| {
            MAX_SKB.checked_shr(((rtt / US) >> 9) as u32).unwrap_or(0)
        });
        ((self.rate >> 10).saturating_add(near).min(MAX_SKB) / u64::from(self.mss)).max(2)
    }

    /// `tcp_update_pacing_rate`: twice the rate of the window in slow start, 1.2 times above.
    fn update_rate(&mut self, cwnd: u32) {
        let ratio = if cwnd < self.window.ssthresh() / 2 {
            200
        } else {
            120
        };
        let window = u64::from(self.mss) * u64::from(cwnd.max(self.board.out()));
        let per_second = |rtt: Nanos| window * ratio * 10_000_000 / rtt.max(1);
        self.rate = self.rtt.smoothed().map_or(u64::MAX, per_second);
    }

    /// `tcp_snd_wnd_test`: whether there is new data whose first segment fits into the peer's window.
    fn may_send_head(&self, now: Nanos) -> bool {
        self.buffer.head().is_some_and(|head| {
            let len = head.end - self.next;
            let first = len.min(u64::from(self.mss)) + u64::from(head.fin && len <= u64::from(self.mss));
            let allowed = self.send_limit(now).saturating_sub(self.next);
            allowed > 0 && self.next + first.min(allowed) <= self.peer_window_end
        })
    }

    /// Whether some written data was never sent.
    fn has_unsent(&self) -> bool {
        self.buffer.head().is_some()
    }

    /// Sends `len` bytes of the next skb, and its FIN at its end. Returns the number of segments.
    fn send_head(&mut self, now: Nanos, len: u64, outlet: &mut Outlet<'_>) -> u32 {
        let Some(head) = self.buffer.take_head(self.next + len) else {
            return 0;
        };
        let had_none = self.board.is_empty();
        let flight = Flight {
            fin: head.fin,
            psh: head.psh,
            delivered: self.delivered,
            ..Flight::new(self.next, head.end + Seq::from(head.fin), self.mss, now)
        };
        self.transmit_flight(now, &flight, outlet);
        self.board.push(flight);
        self.next = flight.end;
        if had_none || self.timer.pending() == Some(Pending::Probe) {
            self.rearm_rto(now);
        }
        flight.segments()
    }

    /// Puts the segments of a flight on the wire, the last of several with PSH (`__tcp_transmit_skb`).
    fn transmit_flight(&mut self, now: Nanos, flight: &Flight, outlet: &mut Outlet<'_>) {
        let mut left = flight.len();
        let mut segment = Segment {
            seq: flight.seq,
            ts: now / MS,
            ..Segment::default()
        };
        outlet.stamp(&mut segment);
        self.last_left_at = now;
        if left > 0 {
            if self.board.in_flight() == 0 {
                self.window.on_transmit_start(now, self.last_sent_at);
            }
            self.last_sent_at = now;
            outlet.on_data(now);
        }
        let is_bundle = flight.segments() > 1;
        loop {
            segment.len = left.min(u64::from(self.mss)) as u32;
            left -= u64::from(segment.len);
            if left == 0 {
                segment.fin = flight.fin;
                segment.psh = flight.psh || is_bundle;
            }
            if segment.len > 0 && flight.seq >= self.next {
                self.ecn.make_capable(&mut segment);
            }
            outlet.send_bare(segment);
            if left == 0 {
                return;
            }
            segment.seq += u64::from(segment.len);
        }
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
