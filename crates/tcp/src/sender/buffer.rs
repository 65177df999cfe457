//! The send buffer: what the application may write before the peer acknowledges it.
//!
//! `tcp_sendmsg_locked` in `net/ipv4/tcp.c`, `tcp_sndbuf_expand` and `tcp_new_space` in `net/ipv4/tcp_input.c`. It
//! shows where a connection whose window has grown writes a long response at once: the buffer has room for some
//! thirty segments until an acknowledgment makes it grow, so the rest comes a round trip later. Left out:
//! `tcp_wmem`'s upper bound, memory pressure.

use std::collections::VecDeque;

use firstflight_path::Nanos;

use super::Sender;
use crate::segment::Seq;
use crate::{MSS, Outlet};

/// What a segment may take of the buffer at most: headers and data rounded up to a power of two, and the skb.
const SEGMENT: u64 = 2_304;
/// What an skb takes beside its data.
const OVERHEAD: u64 = 896;
/// `TCP_INIT_CWND`: segments that the buffer has room for at least, twice.
const LEAST: u32 = 10;
/// `GSO_MAX_SIZE` less the headers.
const MAX_SKB: u64 = 65_216;

/// The send buffer.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    /// `sk_sndbuf`.
    size: u64,
    /// Bytes that the application could not write yet.
    waiting: u64,
    /// The application will write no more.
    is_closing: bool,
    /// What was pushed at last (`pushed_seq`).
    pushed: Seq,
    /// Where segments end that carry PSH.
    marks: VecDeque<Seq>,
    /// Where the last skb begins.
    tail: Seq,
}

impl Default for SendBuffer {
    fn default() -> Self {
        Self {
            size: room(LEAST),
            waiting: 0,
            is_closing: false,
            pushed: 1,
            marks: VecDeque::new(),
            tail: 1,
        }
    }
}

fn room(segments: u32) -> u64 {
    2 * u64::from(segments.max(LEAST)) * SEGMENT
}

impl Sender {
    /// The application writes `bytes`: as much as there is room for now, the rest when there is.
    pub(super) fn buffer(&mut self, now: Nanos, bytes: u64, outlet: &mut Outlet<'_>) {
        self.buffer.waiting += bytes;
        self.fill(now, outlet);
    }

    /// Bytes that the application has to write and there is no room for.
    pub(crate) fn unwritten(&self) -> u64 {
        self.buffer.waiting
    }

    /// A FIN follows what the application still has to write.
    pub(crate) fn end_stream(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        self.buffer.is_closing = true;
        self.fill(now, outlet);
    }

    /// An acknowledgment made room: `tcp_check_space`.
    pub(crate) fn check_space(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        if self.buffer.waiting == 0 {
            return;
        }
        if self.board.in_flight() < self.window.cwnd() {
            self.buffer.size = self.buffer.size.max(room(self.window.cwnd()));
        }
        // `sk_stream_is_writeable`.
        let queued = self.queued();
        if self.buffer.size >= queued + queued / 2 {
            self.fill(now, outlet);
        }
    }

    fn fill(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        while self.buffer.waiting > 0 {
            let mut left = self.skb_room();
            if left == 0 {
                if self.queued() >= self.buffer.size {
                    // What the application adds to an skb takes its PSH away (`tcp_sendmsg_locked`).
                    self.buffer.pushed = self.written;
                    return self.push(now, outlet);
                }
                self.buffer.tail = self.written;
                left = self.skb_goal();
            }
            let taken = left.min(self.buffer.waiting);
            self.buffer.waiting -= taken;
            self.written += taken;
            if taken == left {
                self.push_full_skb(now, outlet);
            }
        }
        self.has_fin |= self.buffer.is_closing;
        self.mark_push();
        self.push(now, outlet);
    }

    /// `tcp_mark_push`: what was written so far ends with PSH, unless it has left already.
    fn mark_push(&mut self) {
        if self.next < self.written && self.buffer.marks.back() != Some(&self.written) {
            self.buffer.marks.push_back(self.written);
            self.buffer.pushed = self.written;
        }
    }

    /// Whether a segment that ends at `end`, and leaves for the first time, carries PSH.
    pub(super) fn takes_push(&mut self, end: Seq) -> bool {
        while self.buffer.marks.front().is_some_and(|mark| *mark < end) {
            self.buffer.marks.pop_front();
        }
        self.buffer.marks.front() == Some(&end)
    }

    /// `forced_push` and `tcp_push_one`: once half the peer's window was written everything goes; else, if nothing
    /// waits before it, one burst.
    fn push_full_skb(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        if self.written > self.buffer.pushed + self.max_peer_window / 2 {
            self.buffer.pushed = self.written;
            self.push(now, outlet);
        } else if self.next >= self.buffer.tail {
            self.push_bursts(now, 1, outlet);
        }
    }

    /// Room in the last skb; none once all of it was sent.
    fn skb_room(&self) -> u64 {
        let unsent = self.written - self.next.max(self.buffer.tail).min(self.written);
        if unsent == 0 {
            0
        } else {
            self.skb_goal().saturating_sub(unsent)
        }
    }

    /// `tcp_xmit_size_goal`: whole segments, up to half the peer's window.
    pub(super) fn skb_goal(&self) -> u64 {
        let most = MAX_SKB.min(self.max_peer_window / 2).max(u64::from(MSS));
        most / u64::from(MSS) * u64::from(MSS)
    }

    /// `sk_wmem_queued`: what is not acknowledged, and the skbs around it, which mostly hold two segments when sent.
    fn queued(&self) -> u64 {
        let unsent = self.written.saturating_sub(self.next);
        let skbs = u64::from(self.board.out().div_ceil(2)) + unsent.div_ceil(self.skb_goal());
        self.written - self.acked.max(1).min(self.written) + skbs * OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use crate::pair::script::*;
    use crate::pair::{Exchange, Flow, Pair, script};

    #[test]
    fn of_a_long_response_thirty_segments_leave_at_once_and_the_rest_a_round_trip_later() {
        let mut flow = Flow {
            exchanges: vec![Exchange::new(300, 20 * FULL); 2],
            ..Flow::default()
        };
        flow.exchanges.push(Exchange::new(300, 100 * FULL));
        let mut pair = pair(flow.clone(), &[]);
        pair.run();
        let asked = pair
            .sent(Up)
            .filter(|sent| sent.segment.len > 0)
            .last()
            .expect("requests");
        let answered_at = asked.at + DELAY;
        let sent = |pair: &Pair<_>, at| pair.sent(Down).filter(|sent| sent.at == at).count();
        let (first, second) = (sent(&pair, answered_at), sent(&pair, answered_at + RTT));
        assert_eq!((first, second), (29, 66));
        // It is not the window that holds them back.
        let mut again = script::pair(flow, &[]);
        again.run_until(answered_at);
        let server = again.server().expect("it has answered");
        assert!(server.unwritten() > 0 && server.info().unacked < server.info().cwnd);
    }
}
