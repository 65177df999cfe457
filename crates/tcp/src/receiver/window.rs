//! The receive window and how it grows (dynamic right-sizing).
//!
//! `tcp_select_initial_window`, `__tcp_select_window`, `tcp_grow_window`, `tcp_rcv_space_adjust` and
//! `tcp_rcvbuf_grow` of Linux 6.18, with the default `tcp_rmem` (131,072 to 32 MiB). A full segment occupies
//! 2,340 bytes of the buffer, as the skbs that come out of the lab's TUN device do.

use firstflight_path::Nanos;

use super::reassembly::Reassembly;
use crate::MSS;
use crate::segment::{Seq, WINDOW_SHIFT};

/// `tcp_rmem[1]` and `tcp_rmem[2]`.
const BUFFER: u64 = 131_072;
const MAX_BUFFER: u64 = 32 << 20;
/// What a full segment takes of the buffer.
const TRUE_SIZE: u64 = 2_340;
/// Share of the buffer that is window, of 256: before there was a full segment, and after.
const INITIAL_SCALING: u64 = 128;
const SCALING: u64 = MSS as u64 * 256 / TRUE_SIZE;
/// What the first SYN offers: 44 full segments, the most that fits 16 bits.
pub(crate) const INITIAL_WINDOW: u64 = 64_240;

/// The window that a socket offers.
#[derive(Debug, Clone)]
pub(crate) struct ReceiveWindow {
    buffer: u64,
    scaling: u64,
    clamp: u64,
    /// `rcv_ssthresh`: what the window may grow to.
    threshold: u64,
    /// Right edge, as last advertised.
    edge: Seq,
    advertised: u64,
    /// The RTT as a receiver sees it, and the timestamp echo it was last measured with.
    rtt: Option<Nanos>,
    last_echo: Nanos,
    /// Bytes that the application took in the best round, and the present round.
    space: u64,
    round_from: Seq,
    round_start: Nanos,
    gap: (u64, u64),
}

impl Default for ReceiveWindow {
    fn default() -> Self {
        Self {
            buffer: BUFFER,
            scaling: INITIAL_SCALING,
            clamp: BUFFER / 2,
            threshold: INITIAL_WINDOW,
            edge: INITIAL_WINDOW,
            advertised: INITIAL_WINDOW,
            rtt: None,
            last_echo: 0,
            space: u64::from(10 * MSS),
            round_from: 1,
            round_start: 0,
            gap: (0, 0),
        }
    }
}

impl ReceiveWindow {
    /// The RTT as a receiver sees it.
    pub(crate) fn rtt(&self) -> Option<Nanos> {
        self.rtt
    }

    pub(crate) fn advertised(&self) -> u64 {
        self.advertised
    }

    /// The handshake is done: the first round begins.
    pub(crate) fn start(&mut self, now: Nanos) {
        self.round_start = now;
    }

    /// Whether a new advertisement would not shrink the window: `__tcp_select_window() >= rcv_wnd`.
    pub(crate) fn keeps_up(&self) -> bool {
        self.select() >= self.advertised
    }

    /// The window for a segment that acknowledges `next` (`tcp_select_window`).
    pub(crate) fn advertise(&mut self, next: Seq) -> u64 {
        let left = self.edge.saturating_sub(next);
        let window = round_up(self.select().max(left));
        self.edge = next + window;
        self.advertised = window;
        window
    }

    /// Whether the window has opened enough to say so without being asked (`tcp_cleanup_rbuf`).
    pub(crate) fn has_opened(&self, next: Seq) -> bool {
        let left = self.edge.saturating_sub(next);
        2 * left <= self.clamp && self.select() >= 2 * left
    }

    fn select(&self) -> u64 {
        let occupied = self.gap.0 * TRUE_SIZE / u64::from(MSS);
        let free = self.buffer.saturating_sub(occupied) * self.scaling / 256;
        round_up(free.min(self.threshold))
    }

    /// A segment with `len` bytes arrived in order. `true` when the window was still growing.
    pub(crate) fn on_segment(&mut self, len: u32, gap: &Reassembly) -> bool {
        self.gap = gap.waiting();
        self.learn_scaling(len);
        self.grow_threshold(len)
    }

    /// `tcp_measure_rcv_mss`: how much of the buffer a full segment takes.
    fn learn_scaling(&mut self, len: u32) {
        if len >= MSS && self.scaling != SCALING {
            self.scaling = SCALING;
            self.clamp = self.buffer * SCALING / 256;
            self.space = self.space.min(self.clamp);
        }
    }

    /// `tcp_grow_window`. `true` when the window was still growing.
    fn grow_threshold(&mut self, len: u32) -> bool {
        if len < 128 {
            return false;
        }
        let occupied = self.gap.0 * TRUE_SIZE / u64::from(MSS);
        let free = self.buffer.saturating_sub(occupied) * self.scaling / 256;
        let room = self.clamp.min(free).saturating_sub(self.threshold);
        self.threshold += room.min(u64::from(2 * MSS));
        room > 0
    }

    /// A segment with `len` bytes arrived beyond a gap: it takes room, and the window must reach beyond it. `true` when
    /// the window was still growing.
    pub(crate) fn on_gap(&mut self, len: u32, reassembly: &Reassembly) -> bool {
        let is_growing = self.grow_threshold(len);
        self.gap = reassembly.waiting();
        self.grow(self.space);
        is_growing
    }

    /// A full segment echoes `echo` at `now`, both ms: `tcp_rcv_rtt_measure_ts`.
    pub(crate) fn measure(&mut self, now: Nanos, echo_ms: Nanos) {
        if echo_ms == self.last_echo {
            return;
        }
        self.last_echo = echo_ms;
        let sample = (now / crate::time::MS).saturating_sub(echo_ms).max(1) * crate::time::MS;
        self.rtt = Some(match self.rtt {
            Some(rtt) if sample >= rtt => rtt - rtt / 8 + sample / 8,
            _ => sample,
        });
    }

    /// An acknowledgment echoes `echo`: `rcv_rtt_last_tsecr`, which what follows with the same measures nothing.
    pub(crate) fn note_echo(&mut self, echo_ms: Nanos) {
        self.last_echo = echo_ms;
    }

    /// The application has taken everything up to `read`: once per round trip, make room for twice what it
    /// took (`tcp_rcv_space_adjust`).
    pub(crate) fn on_read(&mut self, now: Nanos, read: Seq) {
        let Some(rtt) = self.rtt else { return };
        if now.saturating_sub(self.round_start) < rtt {
            return;
        }
        let taken = read - self.round_from;
        if taken > self.space {
            self.grow(taken);
        }
        self.round_from = read;
        self.round_start = now;
    }

    /// `tcp_rcvbuf_grow`: twice what came in a round, and ahead of a sender that doubles its rate.
    fn grow(&mut self, taken: u64) {
        let before = self.space;
        self.space = taken;
        let mut window = 2 * taken;
        window += 2 * (window * (taken - before) / before.max(1));
        window += self.gap.1;
        let buffer = (window * 256 / self.scaling).min(MAX_BUFFER);
        if buffer > self.buffer {
            self.buffer = buffer;
            self.clamp = buffer * self.scaling / 256;
        }
    }
}

fn round_up(window: u64) -> u64 {
    window.next_multiple_of(1 << WINDOW_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::pair::script::*;
    use crate::pair::{Fault, Flow};
    use crate::time::MS;

    #[test]
    fn the_first_window_holds_44_segments() {
        let server = Settings {
            initial_window: 100,
            ..Settings::default()
        };
        let mut pair = pair(
            Flow {
                server,
                ..response(100 * FULL)
            },
            &[],
        );
        pair.run();
        let first = pair
            .sent(Down)
            .filter(|sent| sent.at == 150 * MS && sent.segment.len > 0);
        assert_eq!(first.count(), 44);
    }

    #[test]
    fn the_window_grows_with_the_stream_and_its_edge_never_moves_back() {
        let mut pair = pair(response(2_000 * FULL), &[(Down, 300, Fault::Lost)]);
        pair.run();
        let mut edge = 0;
        for sent in pair.sent(Up).skip(1) {
            let next = sent.segment.ack_no + sent.segment.window;
            assert!(next >= edge, "{sent}");
            edge = next;
        }
        let last = pair.sent(Up).last().expect("the last acknowledgment");
        assert!(last.segment.window > 10 * INITIAL_WINDOW, "{last}");
    }
}
