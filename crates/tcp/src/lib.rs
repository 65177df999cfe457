//! Linux's TCP without Linux: one end of a connection as a state machine, without I/O and without a clock.
//!
//! Segments and the application's calls go in, segments come out of [`Socket::poll`], and [`Socket::next_timeout`]
//! says when to call [`Socket::handle_timeout`]. Time is an argument, in nanoseconds of an epoch that the caller
//! chooses. A segment carries header fields and a range of sequence numbers: bytes themselves are never made.
//! Behaviour is Linux 6.18's; every module names the kernel's functions that it follows.
//!
//! Left out: urgent data, keep-alive probes, zero-window probes (applications here read at once), MTU probing,
//! the end of `TIME_WAIT`, simultaneous open, sequence numbers that wrap.
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

mod congestion;
mod ecn;
mod handshake;
pub mod pair;
mod receiver;
mod segment;
mod sender;
mod time;
mod timers;

use std::collections::VecDeque;

use firstflight_path::{IpVersion, Nanos};

pub use congestion::Algorithm;
pub use handshake::{Answer, Early};
pub use segment::{FastOpen, Key, Range, Sacks, Segment, Seq};
pub use sender::{Phase, SendMemory};
pub use time::Ticks;
pub use timers::earlier;

use handshake::Handshake;
use receiver::{Receiver, Verdict};
use sender::Sender;

/// Settings that both ends of a connection share.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// IP version.
    pub ip: IpVersion,
    /// Congestion control.
    pub algorithm: Algorithm,
    /// Initial congestion window, segments (RFC 6928).
    pub initial_window: u32,
    /// Whether connections use ECN.
    pub ecn: bool,
    /// The kernel's tick.
    pub ticks: Ticks,
    /// Memory that the kernel build reserves for sent data.
    pub memory: SendMemory,
    /// Segments of data that may directly follow a SYN with data. No real TCP sends any.
    pub more_syn_segments: u32,
}

impl Default for Settings {
    /// Linux's defaults.
    fn default() -> Self {
        Self {
            ip: IpVersion::default(),
            algorithm: Algorithm::default(),
            initial_window: 10,
            ecn: false,
            ticks: Ticks::default(),
            memory: SendMemory::default(),
            more_syn_segments: 0,
        }
    }
}

/// The state of a connection. The FINs have their own fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was sent: the client's SYN waits for data.
    Closed,
    /// SYN sent.
    SynSent,
    /// SYN received, SYN-ACK sent.
    SynReceived,
    /// The handshake is done.
    Established,
    /// Both ends have closed, this one first. It answers late segments.
    TimeWait,
    /// Both ends have closed, the other one first. The connection's state is gone.
    Forgotten,
    /// Nothing is sent or accepted any more.
    Ended(End),
}

/// Why a connection ended before both ends closed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The application closed it before the handshake was done.
    Closed,
    /// The peer did not answer repeated retransmissions.
    TimedOut,
    /// The peer reset it.
    Reset,
    /// The peer, or a middlebox, answered the SYN with a reset.
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
    handshake: Handshake,
    sender: Sender,
    receiver: Receiver,
    /// The end of its FIN once that was sent, and whether it was sent, or due, before the peer's FIN arrived.
    fin_end: Option<Seq>,
    closes_first: bool,
}

/// Where a sender's segments leave. It adds the receiver's fields to them.
#[derive(Debug)]
struct Outlet<'a> {
    ip: IpVersion,
    conn: u32,
    is_client: bool,
    out: &'a mut VecDeque<Segment>,
    receiver: &'a mut Receiver,
    fin_end: &'a mut Option<Seq>,
}

impl Outlet<'_> {
    /// Sends a segment with an acknowledgment.
    fn send(&mut self, mut segment: Segment) {
        self.stamp(&mut segment);
        self.send_bare(segment);
    }

    /// Sets the receiver's fields of a segment: the acknowledgment.
    fn stamp(&mut self, segment: &mut Segment) {
        self.receiver.stamp(segment);
    }

    /// Sends a segment without changes.
    fn send_bare(&mut self, mut segment: Segment) {
        segment.ip = self.ip;
        segment.conn = self.conn;
        segment.up = self.is_client;
        if segment.fin {
            *self.fin_end = Some(segment.end());
        }
        self.out.push_back(segment);
    }

    /// Called before a segment with data is sent.
    fn on_data(&mut self, now: Nanos) {
        self.receiver.on_data_sent(now);
    }
}

/// The sender's state: the fields of Linux's `TCP_INFO` that explain when it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// `tcpi_ca_state`.
    pub phase: Phase,
    /// Congestion window and slow start threshold, segments.
    pub cwnd: u32,
    /// As [`Self::cwnd`].
    pub ssthresh: u32,
    /// Segments sent and not acknowledged. The next fields count those selectively acknowledged, lost, and
    /// retransmitted.
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
    /// Shortest RTT, ns.
    pub min_rtt: Option<Nanos>,
    /// RACK's reordering window, ns.
    pub reordering_window: Nanos,
    /// Number of timeouts in a row.
    pub timeouts: u32,
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
            handshake: Handshake::default(),
            sender: Sender::new(&settings),
            receiver: Receiver::new(settings.ticks, settings.ip),
            fin_end: None,
            closes_first: false,
        }
    }

    /// The sender's state.
    pub fn info(&self) -> Info {
        let mut info = self.sender.info();
        info.timeouts += self.handshake.timeouts();
        info
    }

    /// The next segment to send.
    #[inline]
    pub fn poll(&mut self) -> Option<Segment> {
        self.out.pop_front()
    }

    /// Whether the handshake is done.
    #[inline]
    pub fn is_established(&self) -> bool {
        matches!(
            self.state,
            State::Established | State::TimeWait | State::Forgotten
        )
    }

    /// Why it ended; `None` if it has not, or if both ends closed it.
    #[inline]
    pub fn ended(&self) -> Option<End> {
        match self.state {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Whether its SYN was answered by a reset.
    pub fn is_refused(&self) -> bool {
        self.ended() == Some(End::Refused)
    }

    /// Whether it timed out or was reset.
    #[inline]
    pub fn is_dead(&self) -> bool {
        self.ended().is_some()
    }

    /// Its congestion control.
    pub fn algorithm(&self) -> Algorithm {
        self.sender.algorithm()
    }

    /// Whether the application has read everything up to the peer's FIN.
    pub fn is_at_end(&self) -> bool {
        self.receiver.is_at_end()
    }

    /// The application reads everything that has arrived. Returns the number of bytes.
    pub fn read_all(&mut self, now: Nanos) -> u64 {
        let bytes = self.receiver.read_all();
        let is_due = match bytes {
            0 => self.receiver.after_end(),
            _ => self.receiver.after_read(now),
        };
        if is_due && self.state == State::Established {
            self.send_ack(now);
        }
        bytes
    }

    /// The application polls the socket (`poll(2)`, `epoll(7)`). If the send buffer is full at that time, it grows
    /// with the next acknowledgment, even if the application only waits for data to read.
    pub fn ask_readiness(&mut self) {
        self.sender.on_poll();
    }

    /// The application writes `bytes`.
    pub fn write(&mut self, now: Nanos, bytes: u64) {
        self.with_sender(|sender, outlet| sender.write(now, bytes, outlet));
    }

    /// Bytes that the application has yet to write, because the send buffer is full.
    pub fn unwritten(&self) -> u64 {
        self.sender.unwritten()
    }

    /// The application closes its stream: a FIN follows the data.
    pub fn close(&mut self, now: Nanos) {
        match self.state {
            State::Closed | State::SynSent => self.end(End::Closed),
            _ if self.sender.is_closing() => {}
            _ => self.with_sender(|sender, outlet| sender.end_stream(now, outlet)),
        }
    }

    /// As [`Self::close`], but the application keeps the socket. A server's FIN then waits for the end of the
    /// handshake (`tcp_shutdown` since Linux 6.9; `__tcp_close` does not wait).
    pub fn shut_down(&mut self, now: Nanos) {
        if self.state == State::SynReceived {
            self.handshake.defer_close();
        } else {
            self.close(now);
        }
    }

    /// A segment arrives.
    pub fn handle(&mut self, now: Nanos, segment: &Segment) {
        match self.state {
            State::Ended(_) | State::Closed => {}
            State::TimeWait | State::Forgotten if segment.rst => self.state = State::Forgotten,
            State::TimeWait => self.on_late(now, segment),
            State::Forgotten => self.with_sender(|_, outlet| outlet.send_bare(segment.reset())),
            State::SynSent if segment.rst => self.end(End::Refused),
            _ if segment.rst => self.end(End::Reset),
            State::SynSent => self.on_syn_ack(now, segment),
            State::SynReceived => self.on_handshake_end(now, segment),
            State::Established => self.on_segment(now, segment),
        }
    }

    /// A segment on a connection whose handshake is done.
    fn on_segment(&mut self, now: Nanos, segment: &Segment) {
        let (acked, rto) = (self.sender.acked(), self.sender.rtt().rto());
        match self.receiver.validate(now, segment, acked, rto) {
            Verdict::Take => {
                self.on_ack(now, segment);
                self.after_ack(now, segment);
                self.check_end();
            }
            Verdict::Answer => self.send_ack(now),
            Verdict::Drop => {}
        }
    }

    /// Checks whether both ends have closed and know it: `tcp_time_wait`, and `tcp_rcv_state_process` in LAST-ACK.
    fn check_end(&mut self) {
        let is_acked = self.fin_end.is_some_and(|end| self.sender.acked() >= end);
        if is_acked && self.receiver.has_fin() {
            self.receiver.clear_timer();
            self.state = if self.closes_first {
                State::TimeWait
            } else {
                State::Forgotten
            };
        }
    }

    /// `tcp_timewait_state_process`: answers every segment with a bare ACK, except an empty segment in order.
    fn on_late(&mut self, now: Nanos, segment: &Segment) {
        let is_empty = segment.seq == segment.end();
        if is_empty {
            let is_in_place = segment.seq == self.receiver.next();
            if is_in_place || self.receiver.answer_unless_limited(now) == Verdict::Drop {
                return;
            }
        }
        self.send_ack(now);
    }

    /// Handles the acknowledgment and the timestamp of a segment.
    fn on_ack(&mut self, now: Nanos, segment: &Segment) {
        self.receiver.note_timestamp(segment);
        self.with_sender(|sender, outlet| sender.on_ack(now, segment, outlet));
    }

    /// Handles the data of a segment, after its acknowledgment, and sends what is possible now.
    fn after_ack(&mut self, now: Nanos, segment: &Segment) {
        self.take_data(now, segment);
        self.with_sender(|sender, outlet| {
            let bundles = sender.push(now, outlet);
            sender.check_space(now, bundles, outlet);
        });
        self.acknowledge(now);
    }

    /// Handles the data of a segment.
    fn take_data(&mut self, now: Nanos, segment: &Segment) {
        if self.receiver.on_arrival(now, segment) {
            self.send_ack(now);
        }
        let (rto, is_closing) = (self.sender.rtt().rto(), self.sender.is_closing());
        if self.receiver.on_data(now, segment, rto, is_closing) {
            self.closes_first = true;
            self.send_ack(now);
        }
    }

    /// Acknowledges now, or sets the timer for it.
    fn acknowledge(&mut self, now: Nanos) {
        if self.receiver.check_ack(now, self.sender.rtt()) {
            self.send_ack(now);
        }
    }

    /// Sends an acknowledgment without data.
    fn send_ack(&mut self, now: Nanos) {
        self.with_sender(|sender, outlet| outlet.send(sender.bare_ack(now)));
    }

    fn end(&mut self, end: End) {
        self.state = State::Ended(end);
        self.sender.on_end();
        self.receiver.clear_timer();
    }

    fn with_sender<R>(&mut self, act: impl FnOnce(&mut Sender, &mut Outlet<'_>) -> R) -> R {
        let mut outlet = Outlet {
            ip: self.settings.ip,
            conn: self.conn,
            is_client: self.is_client,
            out: &mut self.out,
            receiver: &mut self.receiver,
            fin_end: &mut self.fin_end,
        };
        act(&mut self.sender, &mut outlet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::script::*;
    use crate::pair::{Closes, Fault, Flow, MS};

    #[test]
    fn a_client_that_closes_acknowledges_the_response_first() {
        let mut pair = pair(closed_by(Closes::Client), &[]);
        pair.run();
        assert_sent(
            pair.trace(),
            200..,
            "
            200 up   .  301:301(0) ack 1001
            200 up   F. 301:301(0) ack 1001
            250 down F. 1001:1001(0) ack 302
            300 up   .  302:302(0) ack 1002
        ",
        );
        assert!(pair.client().is_at_end() && pair.client().ended().is_none());
    }

    #[test]
    fn a_server_that_closes_sends_its_fin_behind_the_response() {
        let mut pair = pair(closed_by(Closes::Server), &[]);
        pair.run();
        assert_sent(
            pair.trace(),
            150..,
            "
            150 down .  1:1(0) ack 301
            150 down P. 1:1001(1000) ack 301
            150 down F. 1001:1001(0) ack 301
            200 up   .  301:301(0) ack 1001
            200 up   F. 301:301(0) ack 1002
            250 down .  1002:1002(0) ack 302
        ",
        );
    }

    #[test]
    fn a_lost_fin_is_probed_for() {
        let mut pair = pair(closed_by(Closes::Client), &[(Up, 5, Fault::Lost)]);
        pair.run();
        assert_sent(
            pair.trace(),
            201..,
            "
            512 up   F. 301:301(0) ack 1001
            562 down F. 1001:1001(0) ack 302
            612 up   .  302:302(0) ack 1002
        ",
        );
    }

    #[test]
    fn a_sender_whose_peer_is_silent_gives_up_after_fifteen_timeouts() {
        let lost: Vec<_> = (2..40).map(|number| (Up, number, Fault::Lost)).collect();
        let mut pair = pair(response(1_000), &lost);
        assert_eq!(pair.run(), None);
        assert_eq!(pair.client().ended(), Some(End::TimedOut));
        // The request, its probe, and one retransmission per timeout.
        let requests = pair.sent(Up).filter(|sent| sent.segment.len > 0).count();
        assert_eq!(requests, 17);
    }

    #[test]
    fn the_first_flight_is_the_initial_window_of_segments() {
        for initial_window in [3, 10, 32] {
            let server = Settings {
                initial_window,
                ..Settings::default()
            };
            let mut pair = pair(
                Flow {
                    server,
                    ..response(40 * FULL)
                },
                &[],
            );
            pair.run();
            let first = pair
                .sent(Down)
                .filter(|sent| sent.at == 150 * MS && sent.segment.len > 0);
            assert_eq!(first.count() as u32, initial_window);
        }
    }

    #[test]
    fn who_closes_first_answers_a_fin_that_comes_again_with_the_bare_facts() {
        let twice = [(Up, 5, Fault::Duplicated(5 * MS))];
        let mut pair = pair(closed_by(Closes::Server), &twice);
        pair.run();
        assert_sent(
            pair.trace(),
            200..,
            "
            200 up   .  301:301(0) ack 1001
            200 up   F. 301:301(0) ack 1002
            250 down .  1002:1002(0) ack 302
            255 down .  1002:1002(0) ack 302
            305 up   R  302:302(0)
        ",
        );
        assert!(pair.client().ended().is_none() && pair.server().is_some_and(Socket::is_established));
    }
}
