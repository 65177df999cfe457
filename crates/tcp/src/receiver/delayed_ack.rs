//! When to acknowledge: at once, with every second segment, or after a delay.
//!
//! `tcp_event_data_recv`, `tcp_measure_rcv_mss`, `__tcp_ack_snd_check`, `tcp_send_delayed_ack`, `tcp_cleanup_rbuf`
//! and `tcp_event_data_sent` of Linux (RFC 1122, section 4.2.3.2; RFC 5681, section 4.2). At first a connection
//! acknowledges every segment (quick). It delays acknowledgments once data goes both ways (pingpong).

use crate::segment::{Segment, mss};
use crate::sender::Rtt;
use crate::time::{JIFFY, MS};

/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`, `TCP_DELACK_MAX`; times here are ticks.
const MIN_DELAY: u64 = 40 * MS / JIFFY;
const MAX_DELAY: u64 = 200 * MS / JIFFY;
/// The limit by `tcp_delack_max`: below the shortest retransmission timeout.
const DELAY_LIMIT: u64 = MAX_DELAY - 1;
/// `HZ / 2`: the limit of the delay if no data is expected to carry the acknowledgment.
const MAX_ONE_WAY_DELAY: u64 = 500 * MS / JIFFY;
/// `TCP_MAX_QUICKACKS`.
const QUICK: u32 = 16;
/// `TCP_MSS_DEFAULT` and `TCP_MIN_MSS`.
const DEFAULT_MSS: u32 = 536;
const MIN_MSS: u32 = 88;

/// When an acknowledgment is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    /// Now, or compressed with others: there is a gap.
    Gap,
    /// After this many ticks.
    After(u64),
}

/// The state that decides how soon the receiver acknowledges (`icsk_ack`).
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the kernel's flags of icsk_ack.pending"
)]
pub(crate) struct DelayedAck {
    /// Number of acknowledgments to send at once.
    quick: u32,
    is_pingpong: bool,
    /// The delay adapted to the peer's pace (`ato`); `None` before the first data.
    delay: Option<u64>,
    last_received: u64,
    /// The peer's segment size.
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
            delay: None,
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
    /// The handshake is done. The pause before the first data counts from here.
    pub(crate) fn start(&mut self, tick: u64) {
        self.last_received = tick;
    }

    /// The peer's segment size, as far as it is known.
    pub(crate) fn peer_mss(&self) -> u32 {
        self.peer_mss
    }

    pub(crate) fn schedule(&mut self) {
        self.is_scheduled = true;
    }

    /// The next check acknowledges at once.
    pub(crate) fn need_now(&mut self) {
        self.is_due = true;
    }

    /// `tcp_enter_quickack_mode`.
    pub(crate) fn enter_quick(&mut self, window: u64) {
        self.add_quick(window);
        self.is_pingpong = false;
        self.delay = Some(MIN_DELAY);
    }

    /// The same for two acknowledgments, because the sender's window may be small.
    pub(crate) fn enter_quick_for_two(&mut self) {
        self.quick = self.quick.max(2);
        self.is_pingpong = false;
        self.delay = Some(MIN_DELAY);
    }

    fn add_quick(&mut self, window: u64) {
        let quick = (window / u64::from(2 * self.peer_mss)).min(u64::from(QUICK)) as u32;
        self.quick = self.quick.max(if quick == 0 { 2 } else { quick });
    }

    /// Data is expected to be answered soon.
    pub(crate) fn enter_pingpong(&mut self) {
        self.is_pingpong = true;
    }

    /// One more acknowledgment at once, because the window is still growing.
    pub(crate) fn add_one_quick(&mut self) {
        self.quick |= 1;
    }

    /// No acknowledgments at once, because the buffer is more than half full (`__tcp_select_window`).
    pub(crate) fn end_quick(&mut self) {
        self.quick = 0;
    }

    fn is_quick(&self) -> bool {
        self.quick > 0 && !self.is_pingpong
    }

    /// Data was sent. It may answer data that has just come.
    pub(crate) fn on_data_sent(&mut self, tick: u64) {
        if self.delay.is_some_and(|delay| tick - self.last_received < delay) {
            self.is_pingpong = true;
        }
    }

    /// An acknowledgment was sent, with data or without.
    pub(crate) fn on_ack_sent(&mut self) {
        // `tcp_dec_quickack_mode`: counts only if there was something to acknowledge.
        if self.quick > 0 && self.is_scheduled {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = Some(MIN_DELAY);
            }
        }
        self.is_scheduled = false;
        self.is_pushed = false;
        self.is_pushed_twice = false;
        self.is_due = false;
    }

    /// Data arrived in order, after [`Self::measure`].
    pub(crate) fn on_in_order(&mut self, tick: u64, window: u64, rto: u64) {
        let pause = tick - self.last_received;
        match self.delay {
            None => {
                self.add_quick(window);
                self.delay = Some(MIN_DELAY);
            }
            Some(delay) if pause <= MIN_DELAY / 2 => self.delay = Some(delay / 2 + MIN_DELAY / 2),
            Some(delay) if pause < delay => self.delay = Some((delay / 2 + pause).min(rto)),
            Some(_) if pause > rto => self.add_quick(window),
            Some(_) => {}
        }
        self.last_received = tick;
    }

    /// Whether `unacked` bytes are more than a full segment.
    pub(crate) fn is_enough(&self, unacked: u64) -> bool {
        unacked > u64::from(self.peer_mss)
    }

    /// `__tcp_ack_snd_check`. `is_enough`: enough to acknowledge, and the window keeps up.
    pub(crate) fn check(&self, is_enough: bool, has_gap: bool, rtt: &Rtt) -> Due {
        if is_enough || self.is_quick() || self.is_due {
            return Due::Now;
        }
        if has_gap {
            return Due::Gap;
        }
        let mut delay = self.delay.unwrap_or(0);
        if delay > MIN_DELAY {
            let may_wait = self.is_pingpong || self.is_pushed;
            let mut most = if may_wait { MAX_DELAY } else { MAX_ONE_WAY_DELAY };
            if let Some(rtt) = rtt.smoothed() {
                most = most.min(rtt.div_ceil(JIFFY).max(MIN_DELAY));
            }
            delay = delay.min(most);
        }
        Due::After(delay.min(DELAY_LIMIT))
    }

    /// Whether an acknowledgment is pending.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.is_scheduled
    }

    /// `tcp_cleanup_rbuf`: whether a reader that has emptied the buffer must acknowledge.
    pub(crate) fn is_due_to_reader(&self) -> bool {
        self.is_pushed_twice || (self.is_pushed && !self.is_pingpong)
    }

    /// The delay is over. Returns whether an acknowledgment is still pending: `tcp_delack_timer_handler`.
    pub(crate) fn on_timeout(&mut self, rto: u64) -> bool {
        if !self.is_scheduled {
            return false;
        }
        if self.is_pingpong {
            self.is_pingpong = false;
            self.delay = Some(MIN_DELAY);
        } else {
            self.delay = Some((self.delay.unwrap_or(0) * 2).min(rto));
        }
        true
    }

    /// Learns the peer's segment size, and notes the end of a write: `tcp_measure_rcv_mss`. Returns whether the
    /// segment is longer than all before.
    pub(crate) fn measure(&mut self, segment: &Segment) -> bool {
        let last_small = std::mem::take(&mut self.last_small);
        if segment.len >= self.peer_mss {
            let is_longer = segment.len > self.peer_mss;
            self.peer_mss = segment.len.min(mss(segment.ip));
            self.is_pushed |= segment.psh;
            return is_longer;
        }
        if segment.len + 12 >= DEFAULT_MSS || (segment.len + 12 >= MIN_MSS && !segment.psh && !segment.fin) {
            self.last_small = segment.len;
            if segment.len == last_small {
                self.peer_mss = segment.len;
                return false;
            }
        }
        self.is_pushed_twice |= self.is_pushed;
        self.is_pushed = true;
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::pair::script::*;
    use crate::pair::{Exchange, Flow};
    use crate::time::MS;

    #[test]
    fn only_an_acknowledgment_that_was_due_spends_a_quick_one() {
        let mut acks = super::DelayedAck::default();
        acks.enter_quick_for_two();
        acks.on_ack_sent();
        acks.on_ack_sent();
        assert!(acks.is_quick());
        for _ in 0..2 {
            acks.schedule();
            acks.on_ack_sent();
        }
        assert!(!acks.is_quick());
    }

    #[test]
    fn a_connection_acknowledges_every_segment_at_first() {
        let mut pair = pair(response(10 * FULL), &[]);
        pair.run();
        let acks = pair.sent(Up).filter(|sent| sent.at == 200 * MS);
        assert_eq!(acks.count(), 10);
    }

    #[test]
    fn once_it_is_a_conversation_an_end_waits_40_ms_for_data_to_go_along() {
        let exchange = Exchange::new(300, 300);
        let flow = Flow {
            exchanges: vec![
                exchange,
                exchange,
                Exchange {
                    server_time: 100 * MS,
                    ..exchange
                },
            ],
            ..Flow::default()
        };
        let mut pair = pair(flow, &[]);
        pair.run();
        // The first request is acknowledged at once, the second with its response, the third after 40 ms.
        assert_sent(
            pair.sent(Down),
            150..,
            "
            150 down .  1:1(0) ack 301
            150 down P. 1:301(300) ack 301
            250 down P. 301:601(300) ack 601
            392 down .  601:601(0) ack 901
            450 down P. 601:901(300) ack 901
        ",
        );
    }
}
