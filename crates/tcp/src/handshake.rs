//! The handshake, with and without Fast Open (RFC 9293, section 3.5; RFC 7413, section 4).
//!
//! `tcp_connect`, `tcp_send_syn_data`, `tcp_rcv_synsent_state_process`, `tcp_rcv_fastopen_synack`,
//! `tcp_conn_request`, `tcp_try_fastopen` and `tcp_fastopen_synack_timer` in Linux. A retransmitted SYN carries
//! neither cookie nor data. A client drops data that arrives before the SYN-ACK.

use firstflight_path::{IpVersion, Nanos};

use crate::receiver::initial_window;
use crate::segment::{FastOpen, Key, Segment, Seq, announced_mss, mss};
use crate::sender::INITIAL_RTO;
use crate::time::MS;
use crate::timers::Pending;
use crate::{End, Settings, Socket, State};

/// SYN timeouts after which a client gives up: `tcp_syn_retries`, plus the linear ones.
const MAX_SYN_TIMEOUTS: u32 = 6 + LINEAR_SYN_TIMEOUTS;
/// SYN-ACK timeouts after which a server gives up: `tcp_synack_retries`.
const MAX_SYN_ACK_TIMEOUTS: u32 = 5;
/// `tcp_syn_linear_timeouts`: SYN timeouts before the timeout doubles.
const LINEAR_SYN_TIMEOUTS: u32 = 4;

/// Most bytes of options (`MAX_TCP_OPTION_SPACE`).
const MAX_OPTION_BYTES: u32 = 40;

/// Data that fits into a SYN: the announced MSS, less room for the longest options (`tcp_send_syn_data`).
const fn syn_data(ip: IpVersion) -> u64 {
    (announced_mss(ip) - MAX_OPTION_BYTES) as u64
}

/// How a server answers a SYN.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// Set if the server accepts the SYN's data, and may answer it before the handshake ends.
    pub early: Option<Early>,
    /// The key of the cookie in the SYN-ACK, if it carries one.
    pub grants: Option<Key>,
}

impl Answer {
    /// The answer of a server with no room for another request (`tcp_fastopen_queue_check`).
    pub const BUSY: Self = Self {
        early: None,
        grants: None,
    };
}

/// What a server may send before the handshake ends.
#[derive(Debug, Clone, Copy)]
pub struct Early {
    /// The sequence number after the last that it may send.
    pub end: Seq,
    /// The time until which it may send.
    pub until: Nanos,
}

impl Early {
    /// No limit but the windows.
    pub const WITHOUT_LIMIT: Self = Self {
        end: Seq::MAX,
        until: Nanos::MAX,
    };
}

/// An end's state of the handshake.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    /// The Fast Open option that the SYN carried (client), or that the SYN-ACK carries (server).
    option: FastOpen,
    /// Bytes of data in the SYN: sent (client), or accepted (server).
    syn_data: u32,
    /// Client: whether the SYN-ACK acknowledged all of it.
    is_accepted: bool,
    /// Client: the cookie in the SYN-ACK.
    granted: Option<Key>,
    /// Server: whether data may be sent before the handshake is done.
    is_early: bool,
    /// Retransmitted SYNs or SYN-ACKs, and how many timeouts in a row.
    retransmits: u32,
    timeouts: u32,
    sent_at: Nanos,
    /// Server: whether the application has closed its stream.
    is_closing: bool,
}

impl Handshake {
    /// The application has shut its stream down. The FIN waits for the end of the handshake.
    pub(crate) fn defer_close(&mut self) {
        self.is_closing = true;
    }

    pub(crate) fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// The sequence number after the SYN and its data.
    fn syn_end(&self) -> Seq {
        1 + Seq::from(self.syn_data)
    }
}

/// The client's side.
impl Socket {
    /// Sends the SYN, with a cookie request or without the option.
    pub fn connect(&mut self, now: Nanos, option: FastOpen) {
        self.start(now, option, 0);
    }

    /// Sends the SYN with a cookie and the beginning of `bytes` of data. Returns how many bytes it carries. The
    /// rest must wait for the end of the handshake.
    pub fn connect_with_data(&mut self, now: Nanos, cookie: FastOpen, bytes: u64) -> u64 {
        let in_syn = bytes.min(syn_data(self.settings.ip));
        self.start(now, cookie, in_syn as u32);
        let full = u64::from(mss(self.settings.ip));
        let behind = (bytes - in_syn).min(u64::from(self.settings.more_syn_segments) * full);
        self.sender.buffer_behind_syn(in_syn + behind);
        self.with_sender(|sender, outlet| sender.push_behind_syn(now, outlet));
        in_syn + behind
    }

    fn start(&mut self, now: Nanos, option: FastOpen, data: u32) {
        self.state = State::SynSent;
        self.handshake.option = option;
        self.handshake.syn_data = data;
        self.handshake.sent_at = now;
        self.send_syn(now, option, data);
        self.sender.start_syn_timer(now);
    }

    fn send_syn(&mut self, now: Nanos, option: FastOpen, data: u32) {
        let asks = self.settings.ecn && self.handshake.retransmits == 0;
        let syn = Segment {
            syn: true,
            ece: asks,
            cwr: asks,
            len: data,
            window: initial_window(self.settings.ip),
            ts: now / MS,
            fast_open: option,
            ..Segment::default()
        };
        self.with_sender(|_, outlet| outlet.send_bare(syn));
        self.sender.on_syn_sent(self.handshake.syn_end());
    }

    /// No SYN-ACK came: sends the SYN again, without option and data (RFC 7413, section 4.2.1).
    pub(crate) fn on_syn_timeout(&mut self, now: Nanos) {
        self.handshake.timeouts += 1;
        if self.handshake.timeouts > MAX_SYN_TIMEOUTS {
            return self.end(End::TimedOut);
        }
        self.handshake.retransmits += 1;
        self.send_syn(now, FastOpen::Absent, 0);
        let backs_off = self.handshake.timeouts > LINEAR_SYN_TIMEOUTS;
        self.sender.on_syn_timeout(now, backs_off);
    }

    /// Handles a segment while the client waits for the SYN-ACK.
    pub(crate) fn on_syn_ack(&mut self, now: Nanos, segment: &Segment) {
        if !segment.syn || !segment.ack {
            return;
        }
        let ecn = self.settings.ecn && segment.ece;
        self.sender.on_syn_ack(segment, ecn);
        self.receiver.on_syn(segment, 0, ecn);
        self.measure_handshake(now, segment.ts_echo);
        self.begin_transfer(segment.ts_echo);
        self.handshake.granted = match segment.fast_open {
            FastOpen::Cookie(cookie) => Some(cookie),
            _ => None,
        };
        self.establish(now);
        let data_end = self.handshake.syn_end();
        let acked = self.sender.acked();
        self.handshake.is_accepted = self.handshake.syn_data > 0 && acked == data_end;
        if acked < data_end {
            self.with_sender(|sender, outlet| sender.resend_syn_data(now, data_end, outlet));
        } else {
            self.send_ack(now);
            if !self.sender.has_none_in_flight() {
                self.sender.rearm_rto(now);
            }
        }
    }

    /// Whether Fast Open has failed in a way that a client should remember (RFC 7413, section 4.1.3.1).
    pub fn was_failed_by_fast_open(&self) -> bool {
        let tfo = &self.handshake;
        let is_refused =
            self.is_established() && tfo.syn_data > 0 && !tfo.is_accepted && tfo.granted.is_none();
        tfo.option != FastOpen::Absent && (tfo.retransmits > 0 || self.is_refused() || is_refused)
    }

    /// Whether the SYN's data was acknowledged and nothing arrived after that.
    pub fn was_swallowed(&self) -> bool {
        self.handshake.is_accepted && self.receiver.next() == 1 && !self.receiver.has_gap()
    }

    /// The cookie that the client received with the SYN-ACK.
    pub fn granted_cookie(&self) -> Option<Key> {
        self.handshake.granted
    }
}

/// The server's side.
impl Socket {
    /// The server's socket for a SYN, which it answers.
    pub fn accept(now: Nanos, syn: &Segment, answer: Answer, settings: Settings) -> Self {
        let mut socket = Self::new(syn.conn, false, settings);
        let taken = answer.early.map_or(0, |_| syn.len);
        let ecn = settings.ecn && syn.ece && syn.cwr;
        socket.state = State::SynReceived;
        socket.handshake = Handshake {
            option: answer.grants.map_or(FastOpen::Absent, FastOpen::Cookie),
            syn_data: taken,
            is_early: answer.early.is_some(),
            sent_at: now,
            ..Handshake::default()
        };
        socket.sender.on_syn(syn, answer.early, ecn);
        socket.receiver.on_syn(syn, taken, ecn);
        socket.send_syn_ack(now);
        if taken > 0 {
            socket.receiver.on_syn_data(now);
        }
        socket.sender.set_timer(now, INITIAL_RTO, Pending::Retransmit);
        socket
    }

    fn send_syn_ack(&mut self, now: Nanos) {
        let ack_no = self.handshake.syn_end();
        let syn_ack = Segment {
            syn: true,
            ack: true,
            ece: self.receiver.has_ecn(),
            ack_no,
            window: initial_window(self.settings.ip),
            ts: now / MS,
            ts_echo: self.receiver.on_syn_ack_sent(ack_no),
            fast_open: self.handshake.option,
            ..Segment::default()
        };
        self.with_sender(|_, outlet| outlet.send_bare(syn_ack));
        self.sender.on_syn_sent(1);
    }

    /// The SYN-ACK was not acknowledged: sends it again, without data that already followed it. That data counts as
    /// lost at the second timeout (`tcp_fastopen_synack_timer`).
    pub(crate) fn on_syn_ack_timeout(&mut self, now: Nanos) {
        self.handshake.timeouts += 1;
        if self.handshake.timeouts > MAX_SYN_ACK_TIMEOUTS {
            return self.end(End::TimedOut);
        }
        self.resend_syn_ack(now);
        if self.handshake.is_early {
            self.sender.on_syn_ack_resent(now);
            if self.handshake.timeouts == 2 {
                self.sender.enter_loss(now);
            }
        }
        self.start_syn_ack_timer(now);
    }

    fn start_syn_ack_timer(&mut self, now: Nanos) {
        let delay = INITIAL_RTO << self.handshake.timeouts;
        self.sender.set_timer(now, delay, Pending::Retransmit);
    }

    fn resend_syn_ack(&mut self, now: Nanos) {
        self.handshake.retransmits += 1;
        // RFC 7413, section 4.2.2: a retransmission has no Fast Open option.
        self.handshake.option = FastOpen::Absent;
        self.send_syn_ack(now);
    }

    /// Handles a segment while the server waits for the acknowledgment of its SYN-ACK.
    pub(crate) fn on_handshake_end(&mut self, now: Nanos, segment: &Segment) {
        if segment.syn {
            // `tcp_check_req`: the SYN-ACK echoes the first SYN's timestamp again, so the client's RTT sample
            // includes its timeout. A request's timer starts anew; a Fast Open socket has its own timer.
            self.resend_syn_ack(now);
            if !self.handshake.is_early {
                self.start_syn_ack_timer(now);
            }
            return;
        }
        if segment.ack_no == 0 {
            return self.on_data_behind_syn(now, segment);
        }
        self.sender.on_syn_acked(segment);
        self.on_ack(now, segment);
        // A server that has already closed is in FIN-WAIT-1, where `tcp_rcv_state_process` takes no sample.
        if !self.sender.is_closing() && self.sender.rtt().smoothed().is_none() {
            self.measure_handshake(now, segment.ts_echo);
        }
        if self.handshake.is_early {
            self.sender.on_early_handshake_end(now, segment.ts_echo);
        } else {
            self.begin_transfer(segment.ts_echo);
        }
        self.establish(now);
        self.sender.rearm_rto(now);
        if self.handshake.is_closing {
            self.close(now);
        }
        self.after_ack(now, segment);
    }

    /// Accepts data that followed the SYN if the SYN's data was accepted.
    fn on_data_behind_syn(&mut self, now: Nanos, segment: &Segment) {
        if self.handshake.is_early {
            self.take_data(now, segment);
            self.acknowledge(now);
        }
    }
}

/// Both sides.
impl Socket {
    /// The first acknowledgment of a handshake gives an RTT sample, from the echo if something was retransmitted.
    fn measure_handshake(&mut self, now: Nanos, echo: Nanos) {
        let since_echo = (now / MS).saturating_sub(echo).max(1) * MS;
        let sample = if self.handshake.retransmits == 0 {
            now - self.handshake.sent_at
        } else {
            since_echo
        };
        self.sender.sample_handshake(sample);
    }

    /// `tcp_init_transfer` and `tcp_try_undo_spurious_syn`: after two lost SYNs or SYN-ACKs the window begins with
    /// one segment, unless `echo` answers the first.
    fn begin_transfer(&mut self, echo: Nanos) {
        let was_lost = self.handshake.timeouts > 0 && echo != self.handshake.sent_at / MS;
        if self.handshake.retransmits > 1 && was_lost {
            self.sender.begin_with_one();
        }
    }

    fn establish(&mut self, now: Nanos) {
        self.state = State::Established;
        self.handshake.timeouts = 0;
        self.sender.on_established(self.is_client);
        self.receiver.on_established(now);
    }
}

#[cfg(test)]
mod tests {
    use crate::Phase;
    use crate::pair::script::*;
    use crate::pair::{Closes, Exchange, Fault, Flow};

    use super::*;

    /// A request of 300 bytes in a SYN with `option`, to a server with Fast Open.
    fn fast_open(option: FastOpen) -> Flow {
        Flow {
            fast_open: option,
            server_key: Some(KEY),
            ..response(1_000)
        }
    }

    #[test]
    fn a_cookie_is_asked_for_and_granted() {
        let mut pair = pair(fast_open(FastOpen::Request), &[]);
        assert_eq!(pair.run(), Some(2 * RTT));
        assert_sent(
            pair.trace(),
            0..=100,
            "
              0 up   S  0:0(0) cookie?
             50 down S. 0:0(0) ack 1 cookie
            100 up   .  1:1(0) ack 1
            100 up   P. 1:301(300) ack 1
        ",
        );
        assert_eq!(pair.client().granted_cookie(), Some(KEY));
    }

    #[test]
    fn a_valid_cookie_lets_the_syns_data_in_and_the_response_out() {
        let mut pair = pair(fast_open(FastOpen::Cookie(KEY)), &[]);
        assert_eq!(pair.run(), Some(RTT));
        assert_sent(
            pair.trace(),
            ..,
            "
              0 up   S  0:300(300) cookie
             50 down S. 0:0(0) ack 301
             50 down P. 1:1001(1000) ack 301
            100 up   .  301:301(0) ack 1
            100 up   .  301:301(0) ack 1001
        ",
        );
        assert!(!pair.client().was_failed_by_fast_open());
    }

    #[test]
    fn a_cookie_without_data_saves_nothing() {
        let mut flow = fast_open(FastOpen::Cookie(KEY));
        flow.exchanges.clear();
        let mut pair = pair(flow, &[]);
        pair.run();
        assert_sent(
            pair.trace(),
            ..,
            "
              0 up   S  0:0(0) cookie
             50 down S. 0:0(0) ack 1
            100 up   .  1:1(0) ack 1
        ",
        );
    }

    #[test]
    fn a_stale_cookie_is_replaced_and_the_data_goes_again_with_the_handshakes_end() {
        let mut pair = pair(fast_open(FastOpen::Cookie(KEY + 1)), &[]);
        assert_eq!(pair.run(), Some(2 * RTT));
        assert_sent(
            pair.trace(),
            ..=150,
            "
              0 up   S  0:300(300) cookie
             50 down S. 0:0(0) ack 1 cookie
            100 up   P. 1:301(300) ack 1
            150 down .  1:1(0) ack 301
            150 down P. 1:1001(1000) ack 301
        ",
        );
        assert_eq!(pair.client().granted_cookie(), Some(KEY));
    }

    #[test]
    fn data_of_a_syn_that_was_not_taken_is_lost_without_congestion() {
        let mut pair = pair(fast_open(FastOpen::Cookie(KEY + 1)), &[]);
        pair.run_until(RTT);
        let info = pair.client().info();
        assert_eq!((info.phase, info.cwnd, info.retransmitted), (Phase::Loss, 10, 1));
        pair.run();
        let info = pair.client().info();
        assert_eq!((info.phase, info.cwnd), (Phase::Open, 10));
    }

    #[test]
    fn an_early_response_leaves_in_bundles_of_half_the_window() {
        let mut flow = fast_open(FastOpen::Cookie(KEY));
        flow.exchanges[0].response = 10 * FULL;
        let mut pair = pair(flow, &[]);
        pair.run();
        let ends_bundle = pair.sent(Down).skip(1).map(|sent| sent.segment.psh);
        let bundle = [false, false, false, false, true];
        assert_eq!(ends_bundle.collect::<Vec<_>>(), [bundle, bundle].concat());
    }

    #[test]
    fn what_does_not_fit_into_the_syn_waits_for_the_handshakes_end() {
        let mut flow = fast_open(FastOpen::Cookie(KEY));
        flow.exchanges[0].request = 2_000;
        let mut pair = pair(flow, &[]);
        pair.run();
        assert_sent(
            pair.sent(Up),
            ..=100,
            "
              0 up   S  0:1420(1420) cookie
            100 up   .  1421:1421(0) ack 1
            100 up   P. 1421:2001(580) ack 1
        ",
        );
    }

    #[test]
    fn over_ipv6_a_syn_and_a_segment_carry_20_bytes_less_and_the_packet_is_as_long() {
        let mut flow = fast_open(FastOpen::Cookie(KEY));
        flow.client.ip = IpVersion::V6;
        flow.server.ip = IpVersion::V6;
        flow.exchanges[0] = Exchange::new(2_000, 60 * 1_428);
        let mut pair = pair(flow, &[]);
        pair.run();
        assert_sent(
            pair.sent(Up),
            ..=100,
            "
              0 up   S  0:1400(1400) cookie
            100 up   .  1401:1401(0) ack 1
            100 up   P. 1401:2001(600) ack 1
        ",
        );
        let full: Vec<_> = pair.sent(Down).filter(|sent| sent.segment.len > 0).collect();
        assert_eq!(full.len(), 60);
        assert!(full.iter().all(|sent| sent.segment.packet_bytes() == 1_500));
        // 45 segments of 1,440 bytes.
        assert_eq!(pair.sent(Up).next().map(|sent| sent.segment.window), Some(64_800));
    }

    #[test]
    fn a_lost_syn_goes_again_without_cookie_and_data() {
        let mut pair = pair(fast_open(FastOpen::Cookie(KEY)), &[(Up, 1, Fault::Lost)]);
        pair.run();
        assert_sent(
            pair.trace(),
            ..=1_124,
            "
               0 up   S  0:300(300) cookie
            1024 up   S  0:0(0)
            1074 down S. 0:0(0) ack 1
            1124 up   P. 1:301(300) ack 1
        ",
        );
        assert!(pair.client().was_failed_by_fast_open());
    }

    #[test]
    fn an_early_response_whose_syn_ack_was_lost_waits_for_the_handshakes_end() {
        let mut pair = pair(fast_open(FastOpen::Cookie(KEY)), &[(Down, 1, Fault::Lost)]);
        pair.run();
        // The client drops data that arrives before the SYN-ACK; both ends' timers are on a tick of 4 ms.
        assert_sent(
            pair.sent(Down),
            ..,
            "
              50 down S. 0:0(0) ack 301
              50 down P. 1:1001(1000) ack 301
            1056 down S. 0:0(0) ack 301
            1074 down S. 0:0(0) ack 301
            1472 down P. 1:1001(1000) ack 301
        ",
        );
    }

    #[test]
    fn a_client_whose_syn_was_lost_twice_begins_with_one_segment() {
        let upload = Flow {
            exchanges: vec![Exchange::new(3 * FULL, 300)],
            ..Flow::default()
        };
        let first_flight = |lost: usize| {
            let lost: Vec<_> = (1..=lost).map(|number| (Up, number, Fault::Lost)).collect();
            let mut pair = pair(upload.clone(), &lost);
            pair.run();
            let mut data = pair.sent(Up).filter(|sent| sent.segment.len > 0);
            let first = data.next().expect("the request");
            1 + data.filter(|sent| sent.at == first.at).count()
        };
        assert_eq!([0, 1, 2].map(first_flight), [3, 3, 1]);
    }

    #[test]
    fn a_syn_goes_again_four_times_a_second_apart_and_then_ever_later() {
        let lost: Vec<_> = (1..=11).map(|number| (Up, number, Fault::Lost)).collect();
        let mut pair = pair(response(1_000), &lost);
        assert_eq!(pair.run(), None);
        assert_sent(
            pair.trace(),
            ..,
            "
               0 up S 0:0(0)
            1024 up S 0:0(0)
            2048 up S 0:0(0)
            3072 up S 0:0(0)
            4096 up S 0:0(0)
            5120 up S 0:0(0)
            7136 up S 0:0(0)
           11264 up S 0:0(0)
           19456 up S 0:0(0)
           35584 up S 0:0(0)
           69632 up S 0:0(0)
        ",
        );
        assert_eq!(pair.client().ended(), Some(End::TimedOut));
    }

    #[test]
    fn a_syn_that_is_reset_is_refused() {
        let mut client = Socket::client(0, Settings::default());
        client.connect(0, FastOpen::Absent);
        let syn = client.poll().expect("a SYN");
        client.handle(RTT, &syn.reset());
        assert_eq!(client.ended(), Some(End::Refused));
        assert_eq!(client.next_timeout(), None);
    }

    #[test]
    fn a_server_that_shuts_down_early_sends_its_fin_when_the_handshake_is_done() {
        let flow = Flow {
            closes: Closes::Server,
            ..fast_open(FastOpen::Cookie(KEY))
        };
        let mut pair = pair(flow, &[(Down, 1, Fault::Lost)]);
        pair.run();
        assert_sent(
            pair.sent(Down),
            1_100..=1_300,
            "
            1156 down F. 1001:1001(0) ack 301
            1256 down P. 1:1001(1000) ack 301
        ",
        );
    }

    #[test]
    fn a_syn_ack_that_goes_again_grants_no_cookie() {
        let mut pair = pair(fast_open(FastOpen::Request), &[(Down, 1, Fault::Lost)]);
        pair.run();
        assert_sent(
            pair.sent(Down),
            ..1_100,
            "
              50 down S. 0:0(0) ack 1 cookie
            1056 down S. 0:0(0) ack 1
            1074 down S. 0:0(0) ack 1
        ",
        );
        assert_eq!(pair.client().granted_cookie(), None);
    }

    #[test]
    fn a_syn_that_comes_again_puts_off_the_syn_acks_timer_but_not_that_of_an_early_socket() {
        let lost: Vec<_> = (1..=6).map(|number| (Down, number, Fault::Lost)).collect();
        let answered = |option| {
            let mut pair = pair(fast_open(option), &lost);
            pair.run();
            let syn_acks = pair.sent(Down).filter(|sent| sent.segment.syn);
            syn_acks
                .map(|sent| sent.at / MS)
                .filter(|ms| *ms < 3_200)
                .collect::<Vec<_>>()
        };
        // Answers to the SYNs of 0, 1,024, 2,048 and 3,072 ms, and the timer of 1 s. That of 2 s fires if no SYN
        // restarts it.
        assert_eq!(answered(FastOpen::Absent), [50, 1_056, 1_074, 2_098, 3_122]);
        assert_eq!(
            answered(FastOpen::Cookie(KEY)),
            [50, 1_056, 1_074, 2_098, 3_072, 3_122]
        );
    }

    #[test]
    fn an_acknowledgment_of_the_first_syn_ack_shows_that_none_was_lost() {
        // The request takes two segments. All acknowledgments of the client are lost until the SYN-ACK has come
        // three times.
        let mut flow = fast_open(FastOpen::Cookie(KEY));
        flow.exchanges = vec![Exchange::new(2 * FULL, 10 * FULL)];
        let lost: Vec<_> = (2..=9).map(|number| (Up, number, Fault::Lost)).collect();
        let mut pair = pair(flow, &lost);
        pair.run_until(3_100 * MS);
        assert_eq!((server(&pair).phase, server(&pair).cwnd), (Phase::Loss, 1));
        pair.run_until(3_250 * MS);
        assert_eq!((server(&pair).phase, server(&pair).cwnd), (Phase::Open, 10));
    }
}
