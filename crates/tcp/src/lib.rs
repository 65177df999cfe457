//! Linux's TCP without Linux: one end of a connection as a state machine, without I/O and without a clock.
//!
//! Segments and the application's calls go in, segments come out of [`Socket::poll`], and [`Socket::next_timeout`]
//! says when to call [`Socket::handle_timeout`]. Time is an argument, in nanoseconds of an epoch that the caller
//! chooses. A segment carries header fields and a range of sequence numbers: bytes themselves are never made.
//! Behaviour is Linux 6.18's; every module names the kernel's functions that it follows.
//!
//! Left out: urgent data, keep-alive probes, zero-window probes (applications here read at once), MTU probing, D-SACK
//! reordering metrics, `TIME_WAIT`, simultaneous open, sequence numbers that wrap.
//!
//! [`pair`] puts two sockets at the ends of a link. Here they are 50 ms apart, the client has a cookie, so that its
//! request rides in the SYN (RFC 7413), and the response's second packet is lost:
//!
//! ```
//! use firstflight_path::Direction::Down;
//! use firstflight_tcp::FastOpen;
//! use firstflight_tcp::pair::{Delay, Exchange, Fault, Flow, MS, Pair, Script};
//!
//! let flow = Flow {
//!     fast_open: FastOpen::Cookie(7),
//!     server_key: Some(7),
//!     exchanges: vec![Exchange::new(300, 4_000)],
//!     ..Flow::default()
//! };
//! let mut pair = Pair::new(flow, Script::new(Delay(50 * MS)).with(Down, 3, Fault::Lost));
//! pair.run();
//! for sent in pair.trace() {
//!     println!("{sent}");
//! }
//! ```
#![forbid(unsafe_code)]

mod acks;
mod congestion;
mod cubic;
mod delayed_ack;
mod ecn;
mod handshake;
mod output;
pub mod pair;
mod rack;
mod receive;
mod recovery;
mod rtt;
mod scoreboard;
mod segment;
mod send_buffer;
mod time;
mod timers;
mod window;

use std::collections::VecDeque;

use firstflight_path::Nanos;

pub use congestion::Algorithm;
pub use handshake::{Answer, Early};
pub use recovery::Phase;
pub use segment::{FastOpen, Key, Range, Sacks, Segment, Seq};
pub use time::Ticks;

use congestion::Window;
use delayed_ack::DelayedAck;
use ecn::EcnState;
use rack::Rack;
use receive::Reassembly;
use recovery::Recovery;
use rtt::Rtt;
use scoreboard::Scoreboard;
use send_buffer::SendBuffer;
use time::MS;
use timers::Timers;
use window::ReceiveWindow;

/// Bytes of data in a full segment: 1,500 less the headers and the timestamps.
pub(crate) const MSS: u32 = 1_448;
/// The MSS that SYNs announce.
pub(crate) const ADVERTISED_MSS: u32 = 1_460;

/// What both ends of a connection have in common.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Congestion control.
    pub algorithm: Algorithm,
    /// Initial congestion window, segments (RFC 6928).
    pub initial_window: u32,
    /// Whether connections use explicit congestion notification.
    pub ecn: bool,
    /// The kernel's tick.
    pub ticks: Ticks,
    /// No TCP does this: segments of data that may leave right behind a SYN with data.
    pub more_syn_segments: u32,
}

impl Default for Settings {
    /// Linux's defaults.
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            initial_window: 10,
            ecn: false,
            ticks: Ticks::default(),
            more_syn_segments: 0,
        }
    }
}

/// Where a connection is in its life; closing is told by the FINs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing sent: a client whose SYN waits for data.
    Closed,
    /// SYN sent.
    SynSent,
    /// SYN received, SYN-ACK sent.
    SynReceived,
    /// The handshake is done.
    Established,
    /// Given up, or reset.
    Dead,
    /// Its SYN was answered by a reset.
    Refused,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Socket {
    settings: Settings,
    conn: u32,
    is_client: bool,
    state: State,
    out: VecDeque<Segment>,

    /// SND.UNA, SND.NXT, and the end of what is in the send buffer.
    acked: Seq,
    next: Seq,
    written: Seq,
    /// A FIN follows what was written.
    has_fin: bool,
    send_buffer: SendBuffer,
    peer_window_end: Seq,
    max_peer_window: u64,
    last_sent_at: Nanos,
    board: Scoreboard,
    window: Window,
    rtt: Rtt,
    rack: Rack,
    recovery: Recovery,
    ecn: EcnState,
    /// SYNs or SYN-ACKs sent again.
    handshake_retransmits: u32,
    handshake_sent_at: Nanos,
    /// Timeouts in a row.
    timeouts: u32,

    reassembly: Reassembly,
    receive_window: ReceiveWindow,
    delayed_ack: DelayedAck,
    /// Bytes that the application has taken.
    read: Seq,
    /// The timestamp to echo.
    ts_recent: Nanos,
    last_ack_sent: Seq,
    fin_received: bool,
    /// Where a FIN beyond a gap ends.
    fin_ahead: Option<Seq>,

    timers: Timers,
    fast_open: TfoState,
}

/// What a sender goes by: the fields of Linux's `TCP_INFO` that say why it sends, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// `tcpi_ca_state`.
    pub phase: Phase,
    /// Congestion window and slow start threshold, segments.
    pub cwnd: u32,
    /// As [`Self::cwnd`].
    pub ssthresh: u32,
    /// Segments sent and not acknowledged; of these, selectively acknowledged, taken for lost, and sent again.
    pub unacked: u32,
    /// `tcpi_sacked`.
    pub sacked: u32,
    /// `tcpi_lost`.
    pub lost: u32,
    /// `tcpi_retrans`.
    pub retransmitted: u32,
    /// Retransmission timeout, back-off included, ns.
    pub rto: Nanos,
    /// Smoothed RTT, ns; `None` before the first sample.
    pub smoothed_rtt: Option<Nanos>,
    /// The shortest RTT, ns.
    pub min_rtt: Option<Nanos>,
    /// RACK's reordering window, ns.
    pub reordering_window: Nanos,
    /// Timeouts in a row.
    pub timeouts: u32,
}

/// Fast Open's part of the handshake.
#[derive(Debug, Clone, Copy, Default)]
struct TfoState {
    /// The option that the SYN carried (client), or that the SYN-ACK carries (server).
    option: FastOpen,
    /// Data in the SYN.
    syn_data: u32,
    /// Client: the SYN-ACK acknowledged all of it.
    accepted: bool,
    /// Client: a cookie that came with the SYN-ACK.
    granted: Option<Key>,
    /// Server: data may go out although the handshake is not done.
    early: Option<Early>,
}

impl Socket {
    /// A client's end of connection `conn`, which has sent nothing yet.
    pub fn client(conn: u32, settings: Settings) -> Self {
        Self::new(conn, true, settings)
    }

    fn new(conn: u32, is_client: bool, settings: Settings) -> Self {
        Self {
            settings,
            conn,
            is_client,
            state: State::Closed,
            out: VecDeque::new(),
            acked: 0,
            next: 0,
            written: 1,
            has_fin: false,
            send_buffer: SendBuffer::default(),
            peer_window_end: 0,
            max_peer_window: 0,
            last_sent_at: 0,
            board: Scoreboard::default(),
            window: Window::new(settings.algorithm, settings.initial_window),
            rtt: Rtt::default(),
            rack: Rack::default(),
            recovery: Recovery::default(),
            ecn: EcnState::default(),
            handshake_retransmits: 0,
            handshake_sent_at: 0,
            timeouts: 0,
            reassembly: Reassembly::default(),
            receive_window: ReceiveWindow::default(),
            delayed_ack: DelayedAck::default(),
            read: 1,
            ts_recent: 0,
            last_ack_sent: 0,
            fin_received: false,
            fin_ahead: None,
            timers: Timers::default(),
            fast_open: TfoState::default(),
        }
    }

    /// What its sender goes by.
    pub fn info(&self) -> Info {
        Info {
            phase: self.recovery.phase,
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            unacked: self.board.out(),
            sacked: self.board.sacked,
            lost: self.board.lost,
            retransmitted: self.board.resent,
            rto: self.rtt.rto,
            smoothed_rtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min,
            reordering_window: self.reordering_window(),
            timeouts: self.timeouts,
        }
    }

    /// The next segment to send.
    #[inline]
    pub fn poll(&mut self) -> Option<Segment> {
        self.out.pop_front()
    }

    /// Whether the handshake is done.
    #[inline]
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether its SYN was answered by a reset.
    pub fn is_refused(&self) -> bool {
        self.state == State::Refused
    }

    /// Whether it was given up or reset.
    #[inline]
    pub fn is_dead(&self) -> bool {
        matches!(self.state, State::Dead | State::Refused)
    }

    /// Whether Fast Open has failed in a way that a client is to remember (RFC 7413, section 4.1.3.1).
    pub fn was_failed_by_fast_open(&self) -> bool {
        let tfo = &self.fast_open;
        let is_refused = self.is_established() && tfo.syn_data > 0 && !tfo.accepted && tfo.granted.is_none();
        tfo.option != FastOpen::Absent && (self.handshake_retransmits > 0 || self.is_refused() || is_refused)
    }

    /// Whether the SYN's data was taken and nothing came after that.
    pub fn was_swallowed(&self) -> bool {
        self.fast_open.accepted && self.reassembly.next() == 1 && !self.reassembly.has_gap()
    }

    /// The cookie that came to the client with the SYN-ACK.
    pub fn granted_cookie(&self) -> Option<Key> {
        self.fast_open.granted
    }

    /// Bytes that have arrived in order and were not read.
    #[inline]
    fn readable(&self) -> u64 {
        self.received_data_end() - self.read
    }

    /// Whether the other end has sent all it had and it was read.
    pub fn is_at_end(&self) -> bool {
        self.fin_received && self.readable() == 0
    }

    fn received_data_end(&self) -> Seq {
        self.reassembly.next().max(1) - Seq::from(self.fin_received)
    }

    /// The application takes all that is there: how many bytes.
    pub fn read_all(&mut self, now: Nanos) -> u64 {
        let bytes = self.readable();
        self.read += bytes;
        if bytes > 0 {
            self.after_read(now);
        }
        bytes
    }

    /// The application hands over `bytes` to be sent.
    pub fn write(&mut self, now: Nanos, bytes: u64) {
        if self.board.is_empty() && self.state == State::Established {
            let idle = now.saturating_sub(self.last_sent_at);
            self.window.on_resume(now, idle, self.rtt.rto);
        }
        self.buffer(now, bytes);
    }

    /// The application will write no more: a FIN follows what it has written.
    pub fn close(&mut self, now: Nanos) {
        match self.state {
            State::Closed | State::SynSent => self.die(),
            _ if self.has_fin => {}
            _ => self.end_stream(now),
        }
    }

    /// A segment arrives.
    pub fn handle(&mut self, now: Nanos, segment: &Segment) {
        match self.state {
            State::Dead | State::Refused | State::Closed => {}
            _ if segment.rst => self.on_reset(),
            State::SynSent => self.on_syn_ack(now, segment),
            State::SynReceived => self.on_handshake_end(now, segment),
            State::Established => self.on_segment(now, segment),
        }
    }

    /// When [`Self::handle_timeout`] has something to do.
    #[inline]
    pub fn next_timeout(&self) -> Option<Nanos> {
        self.timers.next()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Nanos) {
        while let Some(due) = self.timers.pop(now) {
            self.on_timer(now, due);
        }
    }

    fn on_reset(&mut self) {
        let is_refused = self.state == State::SynSent;
        self.die();
        if is_refused {
            self.state = State::Refused;
        }
    }

    fn die(&mut self) {
        self.state = State::Dead;
        self.timers = Timers::default();
    }

    /// A segment with everything but data filled in.
    fn segment(&self, now: Nanos) -> Segment {
        Segment {
            conn: self.conn,
            up: self.is_client,
            ack: true,
            seq: self.next,
            ack_no: self.reassembly.next(),
            ts: now / MS,
            ts_echo: self.ts_recent,
            ..Segment::default()
        }
    }
}
