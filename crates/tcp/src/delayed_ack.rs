//! When to acknowledge: at once, with every second segment, or late.
//!
//! `tcp_event_data_recv`, `tcp_measure_rcv_mss`, `__tcp_ack_snd_check`, `tcp_send_delayed_ack`,
//! `tcp_cleanup_rbuf` and `tcp_event_data_sent` of Linux (RFC 1122, section 4.2.3.2; RFC 5681, section 4.2).
//! A connection acknowledges every segment at first (quick), and delays once it has turned out to be a
//! conversation (pingpong).

use firstflight_path::Nanos;

use crate::segment::Segment;
use crate::time::{JIFFY, MS};
use crate::{MSS, Socket};

/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`, `TCP_DELACK_MAX`.
const MIN_DELAY: Nanos = 40 * MS;
const MAX_DELAY: Nanos = 200 * MS;
/// `TCP_MAX_QUICKACKS`.
const QUICK: u32 = 16;
/// `TCP_MSS_DEFAULT` and `TCP_MIN_MSS`.
const DEFAULT_MSS: u32 = 536;
const MIN_MSS: u32 = 88;

/// What decides how soon the receiver acknowledges (`icsk_ack`).
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the kernel's flags of icsk_ack.pending"
)]
pub(crate) struct DelayedAck {
    /// Acknowledgments still to be sent at once.
    quick: u32,
    is_pingpong: bool,
    /// The delay that fits the peer's pace; `None` before the first data.
    timeout: Option<Nanos>,
    last_received: Nanos,
    /// What a full segment of the peer holds.
    peer_mss: u32,
    last_small: u32,
    is_scheduled: bool,
    is_pushed: bool,
    is_pushed_twice: bool,
    is_due: bool,
}

impl Default for DelayedAck {
    fn default() -> Self {
        Self {
            quick: 0,
            is_pingpong: false,
            timeout: None,
            last_received: 0,
            peer_mss: DEFAULT_MSS,
            last_small: 0,
            is_scheduled: false,
            is_pushed: false,
            is_pushed_twice: false,
            is_due: false,
        }
    }
}

impl DelayedAck {
    /// The handshake is done: the pause until the first data counts from here.
    pub(crate) fn start(&mut self, now: Nanos) {
        self.last_received = now;
    }

    pub(crate) fn schedule(&mut self) {
        self.is_scheduled = true;
    }

    /// The next check acknowledges at once.
    pub(crate) fn need_now(&mut self) {
        self.is_scheduled = true;
        self.is_due = true;
    }

    /// `tcp_enter_quickack_mode`.
    pub(crate) fn enter_quick(&mut self, window: u64) {
        self.add_quick(window);
        self.is_pingpong = false;
        self.timeout = Some(MIN_DELAY);
    }

    /// The same for two acknowledgments: the sender's window may be small.
    pub(crate) fn enter_quick_for_two(&mut self) {
        self.quick = self.quick.max(2);
        self.is_pingpong = false;
        self.timeout = Some(MIN_DELAY);
    }

    fn add_quick(&mut self, window: u64) {
        let quick = (window / u64::from(2 * self.peer_mss)).clamp(2, u64::from(QUICK)) as u32;
        self.quick = self.quick.max(quick);
    }

    fn is_quick(&self) -> bool {
        self.quick > 0 && !self.is_pingpong
    }

    /// Data was sent: is it an answer to what came a moment ago?
    pub(crate) fn on_data_sent(&mut self, now: Nanos) {
        let since = now / JIFFY - self.last_received / JIFFY;
        if self.timeout.is_some_and(|timeout| since < timeout / JIFFY) {
            self.is_pingpong = true;
        }
    }

    /// An acknowledgment went out, with data or without.
    pub(crate) fn on_ack_sent(&mut self) {
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.timeout = Some(MIN_DELAY);
            }
        }
        self.is_scheduled = false;
        self.is_pushed = false;
        self.is_pushed_twice = false;
        self.is_due = false;
    }

    fn on_segment(&mut self, now: Nanos, segment: &Segment, window: u64, rto: Nanos) {
        self.is_scheduled = true;
        self.measure(segment);
        let pause = (now / JIFFY - self.last_received / JIFFY) * JIFFY;
        match self.timeout {
            None => {
                self.add_quick(window);
                self.timeout = Some(MIN_DELAY);
            }
            Some(timeout) if pause <= MIN_DELAY / 2 => self.timeout = Some(timeout / 2 + MIN_DELAY / 2),
            Some(timeout) if pause < timeout => self.timeout = Some((timeout / 2 + pause).min(rto)),
            Some(_) if pause > rto => self.add_quick(window),
            Some(_) => {}
        }
        self.last_received = now;
    }

    /// Learns the peer's segment size, and takes note of a write's end.
    fn measure(&mut self, segment: &Segment) {
        let last_small = std::mem::take(&mut self.last_small);
        if segment.len >= self.peer_mss {
            self.is_pushed |= segment.psh && segment.len == self.peer_mss;
            self.peer_mss = segment.len.min(MSS);
            return;
        }
        if segment.len + 12 >= DEFAULT_MSS || (segment.len + 12 >= MIN_MSS && !segment.psh) {
            self.last_small = segment.len;
            if segment.len == last_small {
                self.peer_mss = segment.len;
                return;
            }
        }
        self.is_pushed_twice |= self.is_pushed;
        self.is_pushed = true;
    }
}

impl Socket {
    /// Data arrived in order.
    pub(crate) fn on_received(&mut self, now: Nanos, segment: &Segment) {
        if segment.len == 0 {
            return;
        }
        self.delayed_ack
            .on_segment(now, segment, self.receive_window.advertised(), self.rtt.rto);
        if segment.len >= self.delayed_ack.peer_mss {
            self.receive_window.measure(now, segment.ts_echo);
        }
        if self.receive_window.on_segment(segment.len, &self.reassembly) {
            self.delayed_ack.quick |= 1;
        }
    }

    /// `__tcp_ack_snd_check`: acknowledges now, or sees to it that it is done in time.
    pub(crate) fn acknowledge(&mut self, now: Nanos) {
        if !self.delayed_ack.is_scheduled {
            return;
        }
        let unacked = self.reassembly.next() - self.last_ack_sent;
        let enough = unacked > u64::from(self.delayed_ack.peer_mss) && self.receive_window.keeps_up();
        if enough || self.delayed_ack.is_quick() || self.delayed_ack.is_due || self.reassembly.has_gap() {
            self.send_ack(now);
        } else {
            self.delay_ack(now);
        }
    }

    fn delay_ack(&mut self, now: Nanos) {
        let mut delay = self.delayed_ack.timeout.unwrap_or(MIN_DELAY);
        if delay > MIN_DELAY {
            let may_wait = self.delayed_ack.is_pingpong || self.delayed_ack.is_pushed;
            let mut most = if may_wait { MAX_DELAY } else { 500 * MS };
            if let Some(rtt) = self.rtt.smoothed() {
                most = most.min(rtt.max(MIN_DELAY));
            }
            delay = delay.min(most);
        }
        let at = self.settings.ticks.after(now, delay.min(MAX_DELAY));
        match self.timers.delayed_ack {
            Some(before) if before <= now + delay / 4 => self.send_ack(now),
            Some(before) => self.timers.delayed_ack = Some(before.min(at)),
            None => self.timers.delayed_ack = Some(at),
        }
    }

    /// The delay is over: `tcp_delack_timer_handler`.
    pub(crate) fn on_delayed_ack(&mut self, now: Nanos) {
        if !self.delayed_ack.is_scheduled {
            return;
        }
        if self.delayed_ack.is_pingpong {
            self.delayed_ack.is_pingpong = false;
            self.delayed_ack.timeout = Some(MIN_DELAY);
        } else {
            let timeout = self.delayed_ack.timeout.unwrap_or(MIN_DELAY);
            self.delayed_ack.timeout = Some((timeout * 2).min(self.rtt.rto));
        }
        self.send_ack(now);
    }

    /// The application has read: `tcp_rcv_space_adjust`, `tcp_cleanup_rbuf`.
    pub(crate) fn after_read(&mut self, now: Nanos) {
        self.receive_window.on_read(now, self.read);
        if self.state != crate::State::Established {
            return;
        }
        let state = &self.delayed_ack;
        let unacked = self.reassembly.next() - self.last_ack_sent;
        let is_due = state.is_scheduled
            && (unacked > u64::from(state.peer_mss)
                || state.is_pushed_twice
                || (state.is_pushed && !state.is_pingpong));
        if is_due || (!self.fin_received && self.receive_window.has_opened(self.reassembly.next())) {
            self.send_ack(now);
        }
    }

    /// Sends an acknowledgment without data.
    pub(crate) fn send_ack(&mut self, now: Nanos) {
        let segment = self.segment(now);
        self.transmit(segment);
    }
}
