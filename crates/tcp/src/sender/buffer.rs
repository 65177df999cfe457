//! The send buffer: what the application may write before the peer acknowledges it, and the skbs that hold it.
//!
//! `tcp_sendmsg_locked` in `net/ipv4/tcp.c`, `tcp_send_fin` in `net/ipv4/tcp_output.c`, `tcp_sndbuf_expand` and
//! `tcp_new_space` in `net/ipv4/tcp_input.c`. The buffer matters if a connection whose window has grown writes a
//! long response at once. It has room for some thirty segments (sixty with other kernels, see [`SendMemory`]) until
//! an acknowledgment makes it grow, so the rest is sent a round trip later. The skbs determine PSH, and how many
//! segments leave together. Left out: `tcp_wmem`'s upper bound, memory pressure, pages.

use std::collections::VecDeque;

use firstflight_path::Nanos;

use super::{Pushing, Sender};
use crate::Outlet;
use crate::segment::Seq;

/// `TCP_INIT_CWND`: the buffer has room for at least twice this many segments.
pub(super) const LEAST: u32 = 10;
/// `GSO_MAX_SIZE` less `MAX_TCP_HEADER` and one.
pub(super) const MAX_SKB: u64 = 65_279;

/// An skb that was not sent. It begins at the end of the one before, the first one at SND.NXT.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unsent {
    /// Where its data ends.
    pub(super) end: Seq,
    pub(super) psh: bool,
    pub(super) fin: bool,
}

/// Memory that a kernel reserves in the send buffer. It depends on `MAX_TCP_HEADER`, and so on the kernel's build
/// options. Debian's kernels take 4,352 and 960 bytes, so that their buffers are nearly twice as large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendMemory {
    /// Growth of the buffer per segment, bytes: headers and data rounded up to a power of two, and the skb.
    pub segment: u64,
    /// Memory of an skb besides its data, bytes.
    pub skb: u64,
}

impl Default for SendMemory {
    /// A kernel built without tunnels and wireless networks.
    fn default() -> Self {
        Self {
            segment: 2_304,
            skb: 832,
        }
    }
}

/// The send buffer.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    memory: SendMemory,
    /// `sk_sndbuf`.
    size: u64,
    /// Bytes that the application could not write yet.
    waiting: u64,
    /// Whether the application has found the buffer too full to be writable (`SOCK_NOSPACE`).
    was_short: bool,
    /// Whether the application has closed its stream.
    is_closing: bool,
    /// The end of the data pushed last (`pushed_seq`).
    pushed: Seq,
    /// `sk_write_queue`.
    skbs: VecDeque<Unsent>,
}

impl SendBuffer {
    /// The buffer of a connection that begins with a window of `initial_window` segments (`tcp_init_buffer_space`).
    pub(crate) fn new(initial_window: u32, memory: SendMemory) -> Self {
        let mut buffer = Self {
            memory,
            size: 0,
            waiting: 0,
            was_short: false,
            is_closing: false,
            pushed: 1,
            skbs: VecDeque::new(),
        };
        buffer.grow(initial_window);
        buffer
    }

    /// Makes room for twice as many segments (`tcp_sndbuf_expand`).
    fn grow(&mut self, segments: u32) {
        let room = 2 * u64::from(segments.max(LEAST)) * self.memory.segment;
        self.size = self.size.max(room);
    }
}

/// The queue of skbs.
impl SendBuffer {
    /// `tcp_send_head`.
    pub(super) fn head(&self) -> Option<Unsent> {
        self.skbs.front().copied()
    }

    /// Whether nothing is queued behind the head.
    pub(super) fn has_one(&self) -> bool {
        self.skbs.len() == 1
    }

    /// Extends the head, which begins at `next`, to `bytes`: `tcp_grow_skb`.
    pub(super) fn grow_head(&mut self, next: Seq, bytes: u64) {
        let [Some(head), Some(behind)] = [self.skbs.front(), self.skbs.get(1)].map(Option::<&_>::copied)
        else {
            return;
        };
        let end = (next + bytes).min(behind.end);
        if end <= head.end {
            return;
        }
        self.skbs[0].end = end;
        if end == behind.end {
            self.skbs[0].psh |= behind.psh;
            self.skbs[0].fin |= behind.fin;
            self.skbs.remove(1);
        }
    }

    /// Removes the head up to `end`. PSH and FIN stay with the rest (`tso_fragment`).
    pub(super) fn take_head(&mut self, end: Seq) -> Option<Unsent> {
        let head = self.skbs.front_mut()?;
        if end < head.end {
            return Some(Unsent {
                end,
                ..Unsent::default()
            });
        }
        self.skbs.pop_front()
    }

    /// Queues all data up to `end` as one skb.
    pub(super) fn queue(&mut self, end: Seq) {
        self.skbs.push_back(Unsent {
            end,
            psh: true,
            fin: false,
        });
    }
}

impl Sender {
    /// The application writes `bytes`: as much as fits now, and the rest when there is room.
    pub(super) fn buffer(&mut self, now: Nanos, bytes: u64, outlet: &mut Outlet<'_>) {
        self.buffer.waiting += bytes;
        self.fill(now, outlet);
    }

    /// Bytes that the application has yet to write, because the send buffer is full.
    pub(crate) fn unwritten(&self) -> u64 {
        self.buffer.waiting
    }

    /// A FIN follows what the application has yet to write.
    pub(crate) fn end_stream(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        self.buffer.is_closing = true;
        self.fill(now, outlet);
    }

    /// An acknowledgment made room, and released `bundles` bundles: `tcp_check_space`. All but the first are still
    /// on their way to the device, as recorded connections show, so the window does not look full.
    pub(crate) fn check_space(&mut self, now: Nanos, bundles: u32, outlet: &mut Outlet<'_>) {
        if !self.buffer.was_short {
            return;
        }
        if bundles > 1 || self.board.in_flight() < self.window.cwnd() {
            self.buffer
                .grow(self.window.cwnd().max(self.rack.reordering() + 1));
            self.window.stamp(now);
        }
        if self.is_writable() {
            self.buffer.was_short = false;
            self.fill(now, outlet);
        }
    }

    /// The application polls the socket, for any event (`tcp_poll`).
    pub(crate) fn on_poll(&mut self) {
        self.buffer.was_short |= !self.is_writable();
    }

    /// `sk_stream_is_writeable`: a third of the buffer is free.
    fn is_writable(&self) -> bool {
        let queued = self.queued();
        self.buffer.size >= queued + queued / 2
    }

    fn fill(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        let mut has_copied = false;
        while self.buffer.waiting > 0 {
            let mut room = self.tail_room();
            if room == 0 {
                if self.queued() >= self.buffer.size {
                    self.buffer.was_short = true;
                    break;
                }
                self.buffer.skbs.push_back(Unsent::default());
                room = self.skb_goal();
            }
            let taken = room.min(self.buffer.waiting);
            self.buffer.waiting -= taken;
            self.written += taken;
            if let Some(tail) = self.buffer.skbs.back_mut() {
                tail.end = self.written;
                // A write that adds to an skb removes its PSH.
                tail.psh &= has_copied;
            }
            has_copied = true;
            if taken == room && self.buffer.waiting > 0 {
                self.push_full_skb(now, outlet);
            }
        }
        if has_copied {
            self.mark_push();
            self.push(now, outlet);
        }
        if self.buffer.is_closing && self.buffer.waiting == 0 && !self.has_fin {
            self.queue_fin();
            self.push(now, outlet);
        }
    }

    /// `tcp_send_fin`: the FIN joins unsent data.
    fn queue_fin(&mut self) {
        self.has_fin = true;
        match self.buffer.skbs.back_mut() {
            Some(tail) => tail.fin = true,
            None => self.buffer.skbs.push_back(Unsent {
                end: self.written,
                psh: false,
                fin: true,
            }),
        }
    }

    /// `tcp_mark_push`: sets PSH at the end of what was written, unless that has left already.
    fn mark_push(&mut self) {
        if let Some(tail) = self.buffer.skbs.back_mut() {
            tail.psh = true;
            self.buffer.pushed = self.written;
        }
    }

    /// `forced_push` and `tcp_push_one`: once half the peer's window is written, everything is sent. Before that,
    /// one bundle is sent if nothing waits before it.
    fn push_full_skb(&mut self, now: Nanos, outlet: &mut Outlet<'_>) {
        if self.written > self.buffer.pushed + self.max_peer_window / 2 {
            self.mark_push();
            self.push(now, outlet);
        } else if self.buffer.has_one() {
            self.write_out(now, Pushing::One, outlet);
        }
    }

    /// Room in the last skb; none if all of it was sent.
    fn tail_room(&self) -> u64 {
        let begin = match self.buffer.skbs.len() {
            0 => return 0,
            1 => self.next,
            skbs => self.buffer.skbs[skbs - 2].end,
        };
        self.skb_goal().saturating_sub(self.written - begin)
    }

    /// `tcp_xmit_size_goal`: whole segments, up to half the peer's window.
    fn skb_goal(&self) -> u64 {
        let mss = u64::from(self.mss);
        let most = MAX_SKB.min(self.max_peer_window / 2).max(mss);
        most / mss * mss
    }

    /// `sk_wmem_queued`: what is not acknowledged, and the skbs around it.
    fn queued(&self) -> u64 {
        let skbs = self.board.len() + self.buffer.skbs.len();
        self.written - self.acked.max(1).min(self.written) + skbs as u64 * self.buffer.memory.skb
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
        assert_eq!((first, second), (29, 67));
        // It is not the window that limits them.
        let mut again = script::pair(flow, &[]);
        again.run_until(answered_at);
        let server = again.server().expect("it has answered");
        assert!(server.unwritten() > 0 && server.info().unacked < server.info().cwnd);
    }

    #[test]
    fn a_server_that_polls_while_its_buffer_is_two_thirds_full_makes_it_grow() {
        let sent_at_once = |polls| {
            let mut flow = Flow {
                exchanges: vec![Exchange::new(300, 20 * FULL); 2],
                polls,
                ..Flow::default()
            };
            flow.exchanges.push(Exchange::new(300, 100 * FULL));
            let mut pair = pair(flow, &[]);
            pair.run();
            let asked = pair.sent(Up).filter(|sent| sent.segment.len > 0).last();
            let answered_at = asked.expect("requests").at + DELAY;
            pair.sent(Down).filter(|sent| sent.at == answered_at).count()
        };
        assert_eq!((sent_at_once(false), sent_at_once(true)), (29, 40));
    }
}
