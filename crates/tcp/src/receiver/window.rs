//! The receive window and its growth (dynamic right-sizing).
//!
//! `tcp_select_initial_window`, `tcp_init_buffer_space`, `__tcp_select_window`, `tcp_grow_window`,
//! `tcp_rcv_rtt_update`, `tcp_rcv_space_adjust` and `tcp_rcvbuf_grow` of Linux 6.18, with the default `tcp_rmem`
//! (131,072 to 32 MiB). Segments occupy as much memory as the skbs from the lab's TUN device. Left out: a buffer
//! that overflows.

use firstflight_path::{IpVersion, Nanos};

use crate::segment::{Seq, WINDOW_SHIFT, announced_mss, mss};
use crate::time::MS;

/// `tcp_rmem[1]` and `tcp_rmem[2]`.
const BUFFER: u64 = 131_072;
const MAX_BUFFER: u64 = 32 << 20;
/// Share of the buffer that is window, in 256ths, until a segment has shown how much memory it occupies.
const INITIAL_SCALING: u64 = 128;
/// Window of the first SYN: as many full segments as fit into 16 bits, 44 with IPv4 and 45 with IPv6.
pub(crate) fn initial_window(ip: IpVersion) -> u64 {
    let mss = announced_mss(ip);
    u64::from(u32::from(u16::MAX) / mss * mss)
}

/// `tcp_grow_window`: shorter segments do not let the window grow.
const MIN_GROWTH: u32 = 128;

/// Buffer memory of a segment with `len` bytes (`skb->truesize`): a power of two for its headers, its data and the
/// kernel's own structures, or one of the small heads that the kernel keeps ready.
pub(super) fn memory_of(ip: IpVersion, len: u32) -> u64 {
    match ip.header_bytes() + len {
        ..=160 => 832,
        161..=608 => 1_280,
        _ => 2_304,
    }
}

/// The receive window of a socket.
#[derive(Debug, Clone)]
pub(crate) struct ReceiveWindow {
    ip: IpVersion,
    buffer: u64,
    /// Buffer memory of data that the application has not read, and of data behind a gap (`sk_rmem_alloc`).
    occupied: u64,
    scaling: u64,
    clamp: u64,
    /// `rcv_ssthresh`: the limit up to which the window may grow.
    threshold: u64,
    /// Right edge of the window, as last advertised.
    edge: Seq,
    advertised: u64,
    rtt: ReceiverRtt,
    /// Most bytes that the application has read in a round, and the present round.
    space: u64,
    round_from: Seq,
    round_start: Nanos,
}

/// The receiver's estimate of the RTT.
#[derive(Debug, Clone, Default)]
struct ReceiverRtt {
    smoothed: Option<Nanos>,
    /// The timestamp echo of the last measurement.
    last_echo: Nanos,
    /// Without timestamps: the end of an offered window, and when it was offered.
    window_end: Option<(Seq, Nanos)>,
}

impl ReceiverRtt {
    /// `tcp_rcv_rtt_update`: takes shorter samples at once, and approaches longer ones slowly.
    fn update(&mut self, sample: Nanos, may_grow: bool) {
        match self.smoothed {
            Some(rtt) if sample >= rtt => {
                if may_grow {
                    self.smoothed = Some(rtt - rtt / 8 + sample / 8);
                }
            }
            _ => self.smoothed = Some(sample),
        }
    }
}

impl ReceiveWindow {
    pub(crate) fn new(ip: IpVersion) -> Self {
        // Until a segment has shown how much it occupies: one segment less than the buffer holds.
        let clamp = BUFFER / 2 - u64::from(mss(ip));
        Self {
            ip,
            buffer: BUFFER,
            occupied: 0,
            scaling: INITIAL_SCALING,
            clamp,
            threshold: clamp,
            edge: initial_window(ip),
            advertised: initial_window(ip),
            rtt: ReceiverRtt::default(),
            space: u64::from(10 * mss(ip)),
            round_from: 1,
            round_start: 0,
        }
    }

    /// The receiver's estimate of the RTT.
    pub(crate) fn rtt(&self) -> Option<Nanos> {
        self.rtt.smoothed
    }

    pub(crate) fn advertised(&self) -> u64 {
        self.advertised
    }

    /// The handshake is done: the first round begins.
    pub(crate) fn start(&mut self, now: Nanos) {
        self.round_start = now;
    }

    /// Whether the buffer is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Whether less than half of the buffer is free.
    pub(crate) fn is_scarce(&self) -> bool {
        self.free() < self.clamp.min(self.in_window(self.buffer)) / 2
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

    /// Whether at most half of the possible window is left. A reader may then have opened it enough for a window
    /// update (`tcp_cleanup_rbuf`).
    pub(crate) fn is_half_used(&self, next: Seq) -> bool {
        2 * self.edge.saturating_sub(next) <= self.clamp
    }

    /// Whether the window has doubled.
    pub(crate) fn has_doubled(&self, next: Seq) -> bool {
        self.select() >= 2 * self.edge.saturating_sub(next)
    }

    /// `tcp_win_from_space`.
    fn in_window(&self, memory: u64) -> u64 {
        memory * self.scaling / 256
    }

    /// `tcp_space`.
    fn free(&self) -> u64 {
        self.in_window(self.buffer.saturating_sub(self.occupied))
    }

    fn select(&self) -> u64 {
        round_up(self.free().min(self.threshold))
    }

    /// Adds data that occupies `memory` to the buffer.
    pub(crate) fn occupy(&mut self, memory: u64) {
        self.occupied += memory;
    }

    /// A segment was longer than all before: learns how much of the buffer it takes (`tcp_measure_rcv_mss`,
    /// `tcp_set_window_clamp`).
    pub(crate) fn learn_scaling(&mut self, len: u32) {
        let scaling = (u64::from(len) * 256 / memory_of(self.ip, len)).max(1);
        if scaling == self.scaling {
            return;
        }
        self.scaling = scaling;
        let clamp = self.in_window(self.buffer);
        self.threshold = if clamp < self.clamp {
            self.threshold.min(clamp)
        } else {
            self.threshold.max(self.advertised.min(clamp))
        };
        self.clamp = clamp;
        self.space = self.space.min(clamp);
    }

    /// A segment with `len` bytes arrived in order, and is in the buffer. Returns whether the window was still
    /// growing.
    pub(crate) fn on_in_order(&mut self, len: u32, peer_mss: u32) -> bool {
        len >= MIN_GROWTH && self.grow_threshold(len, peer_mss)
    }

    /// A segment with `len` bytes arrived behind a gap. Returns whether the window was still growing.
    pub(crate) fn on_ahead(&mut self, len: u32, peer_mss: u32) -> bool {
        let is_growing = self.grow_threshold(len, peer_mss);
        self.occupy(memory_of(self.ip, len));
        is_growing
    }

    /// `tcp_grow_window`. Returns whether the window was still growing.
    fn grow_threshold(&mut self, len: u32, peer_mss: u32) -> bool {
        let room = self.clamp.min(self.free()).saturating_sub(self.threshold);
        if room == 0 {
            return false;
        }
        let growth = self.growth(len, peer_mss);
        self.threshold += room.min(growth);
        growth > 0
    }

    /// `__tcp_grow_window`: a segment that occupies more memory than it has data lets only a small window grow.
    fn growth(&self, len: u32, peer_mss: u32) -> u64 {
        let bytes = u64::from(len);
        let mut memory = self.in_window(memory_of(self.ip, len));
        if memory <= bytes {
            return 2 * u64::from(mss(self.ip));
        }
        let mut window = self.in_window(MAX_BUFFER);
        while self.threshold <= window / 2 {
            (memory, window) = (memory / 2, window / 2);
            if memory <= bytes {
                return 2 * bytes.max(u64::from(peer_mss));
            }
        }
        0
    }

    /// The window must extend beyond the data behind a gap, `reach` bytes (`tcp_data_queue_ofo`).
    pub(crate) fn reach(&mut self, reach: u64) {
        self.grow(self.space, reach);
    }

    /// A segment echoes `echo_ms`. If it `is_full`, it gives an RTT sample (`tcp_rcv_rtt_measure_ts`). The estimate
    /// only grows while the application keeps up.
    pub(crate) fn measure(&mut self, now: Nanos, echo_ms: Nanos, is_full: bool, may_grow: bool) {
        if echo_ms == self.rtt.last_echo {
            return;
        }
        self.rtt.last_echo = echo_ms;
        let sample = (now / MS).saturating_sub(echo_ms) * MS;
        if is_full && sample > 0 {
            self.rtt.update(sample, may_grow);
        }
    }

    /// Data arrived in order, up to `next`. A window of it takes at least a round trip (`tcp_rcv_rtt_measure`).
    pub(crate) fn measure_window(&mut self, now: Nanos, next: Seq) {
        if let Some((end, since)) = self.rtt.window_end {
            if next < end {
                return;
            }
            self.rtt.update((now - since).max(1_000), false);
        }
        self.rtt.window_end = Some((next + self.advertised, now));
    }

    /// The application has read what arrived up to `next`; `first` is the end of the first segment of it. Data
    /// behind a gap occupies `waiting`, and extends `reach` bytes. Once per round trip the buffer gets room for
    /// twice what was read (`tcp_rcv_space_adjust`, which runs after every segment's copy).
    pub(crate) fn on_read(&mut self, now: Nanos, first: Seq, next: Seq, waiting: u64, reach: u64) {
        self.occupied = waiting;
        let Some(rtt) = self.rtt.smoothed else { return };
        if now.saturating_sub(self.round_start) < rtt {
            return;
        }
        let taken = first.saturating_sub(self.round_from).saturating_sub(next - first);
        if taken > self.space {
            self.grow(taken, reach);
        }
        self.round_from = first;
        self.round_start = now;
    }

    /// `tcp_rcvbuf_grow`: makes room for twice what came in a round, ahead of a sender that doubles its rate.
    fn grow(&mut self, taken: u64, reach: u64) {
        let before = self.space;
        self.space = taken;
        let mut window = 2 * taken;
        window += 2 * (window * (taken - before) / before.max(1));
        window += reach;
        let buffer = (window * 256 / self.scaling).min(MAX_BUFFER);
        if buffer > self.buffer {
            self.buffer = buffer;
            self.clamp = self.in_window(buffer);
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
        assert!(last.segment.window > 10 * initial_window(IpVersion::V4), "{last}");
    }

    #[test]
    fn a_segment_that_occupies_more_than_it_brings_narrows_the_window_for_a_while() {
        let mut window = ReceiveWindow::new(IpVersion::V4);
        window.learn_scaling(700);
        // 77 of 256 bytes of the buffer are data.
        assert_eq!((window.clamp, window.threshold), (39_424, 39_424));
        window.learn_scaling(FULL as u32);
        assert_eq!(
            (window.clamp, window.threshold),
            (81_920, initial_window(IpVersion::V4))
        );
    }

    #[test]
    fn the_window_grows_as_far_as_the_buffer_holds_besides_the_segment_in_it() {
        let mut window = ReceiveWindow::new(IpVersion::V4);
        window.learn_scaling(FULL as u32);
        let mut segments = 0;
        loop {
            window.occupy(memory_of(IpVersion::V4, FULL as u32));
            if !window.on_in_order(FULL as u32, FULL as u32) {
                break;
            }
            window.on_read(0, 1, 1, 0, 0);
            segments += 1;
        }
        assert_eq!((segments, window.threshold), (6, 80_480));
    }

    #[test]
    fn less_than_half_a_buffer_is_scarce() {
        let mut window = ReceiveWindow::new(IpVersion::V4);
        window.learn_scaling(FULL as u32);
        let half = BUFFER / memory_of(IpVersion::V4, FULL as u32) / 2;
        window.occupy(half * memory_of(IpVersion::V4, FULL as u32));
        assert!(!window.is_scarce());
        window.occupy(memory_of(IpVersion::V4, FULL as u32));
        assert!(window.is_scarce());
    }
}
