//! The handshake, with and without Fast Open (RFC 9293, section 3.5; RFC 7413, section 4).
//!
//! `tcp_connect`, `tcp_send_syn_data`, `tcp_rcv_synsent_state_process`, `tcp_rcv_fastopen_synack`,
//! `tcp_conn_request`, `tcp_try_fastopen` and `tcp_fastopen_synack_timer` in Linux. A SYN that is sent again
//! carries neither cookie nor data; a client drops data that overtakes the SYN-ACK.

use firstflight_path::Nanos;

use crate::rtt::{FALLBACK_RTO, INITIAL_RTO};
use crate::scoreboard::{Flight, Scoreboard};
use crate::segment::{FastOpen, Key, Segment, Seq};
use crate::time::MS;
use crate::timers::{LINEAR_SYN_TIMEOUTS, MAX_SYN_TIMEOUTS, Pending};
use crate::{MSS, Settings, Socket, State};

/// Data that fits into a SYN: the announced MSS less room for all options (`tcp_send_syn_data`).
const SYN_DATA: u64 = 1_420;

/// How a server answers a SYN.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The SYN's data is taken, and may be answered before the handshake ends.
    pub early: Option<Early>,
    /// A cookie goes with the SYN-ACK, made with this key.
    pub grants: Option<Key>,
}

impl Answer {
    /// Of a server that has no room for another request (`tcp_fastopen_queue_check`).
    pub const BUSY: Self = Self {
        early: None,
        grants: None,
    };
}

/// How far a server goes before the handshake ends.
#[derive(Debug, Clone, Copy)]
pub struct Early {
    /// The sequence number after the last that it may send.
    pub end: Seq,
    /// When it must have been sent.
    pub until: Nanos,
}

impl Early {
    /// As far as the windows let it.
    pub const WITHOUT_LIMIT: Self = Self {
        end: Seq::MAX,
        until: Nanos::MAX,
    };
}

impl Socket {
    /// Sends the SYN, asking for a cookie or not.
    pub fn connect(&mut self, now: Nanos, option: FastOpen) {
        self.send_syn(now, option, 0);
    }

    /// Sends the SYN with a cookie and the beginning of `bytes` of data. Returns how many it takes; the rest
    /// must wait for the handshake's end.
    pub fn connect_with_data(&mut self, now: Nanos, cookie: FastOpen, bytes: u64) -> u64 {
        let in_syn = bytes.min(SYN_DATA);
        self.send_syn(now, cookie, in_syn as u32);
        let behind = (bytes - in_syn).min(u64::from(self.settings.more_syn_segments) * u64::from(MSS));
        self.written += in_syn + behind;
        while self.next < self.written {
            self.send_behind_syn(now);
        }
        in_syn + behind
    }

    /// What if data may follow the SYN before its answer: a segment that acknowledges nothing.
    fn send_behind_syn(&mut self, now: Nanos) {
        let end = self.written.min(self.next + Seq::from(MSS));
        let flight = Flight {
            psh: end == self.written,
            ..Flight::new(self.next, end, now)
        };
        self.out.push_back(Segment {
            conn: self.conn,
            up: true,
            psh: flight.psh,
            seq: flight.seq,
            len: (flight.end - flight.seq) as u32,
            window: crate::window::INITIAL_WINDOW,
            ts: now / MS,
            ..Segment::default()
        });
        self.board.push(flight);
        self.next = end;
    }

    fn send_syn(&mut self, now: Nanos, option: FastOpen, data: u32) {
        self.state = State::SynSent;
        self.fast_open.option = option;
        self.fast_open.syn_data = data;
        self.handshake_sent_at = now;
        self.out_syn(now, option, data);
        self.set_timer(now, self.rtt.rto, Pending::Retransmit);
    }

    fn out_syn(&mut self, now: Nanos, option: FastOpen, data: u32) {
        let asks = self.settings.ecn && self.handshake_retransmits == 0;
        self.out.push_back(Segment {
            conn: self.conn,
            up: true,
            syn: true,
            ece: asks,
            cwr: asks,
            len: data,
            window: crate::window::INITIAL_WINDOW,
            ts: now / MS,
            fast_open: option,
            ..Segment::default()
        });
        self.next = self.next.max(1 + Seq::from(self.fast_open.syn_data));
    }

    /// No SYN-ACK came: the SYN goes again, bare (RFC 7413, section 4.2.1).
    pub(crate) fn on_syn_timeout(&mut self, now: Nanos) {
        self.timeouts += 1;
        if self.timeouts > MAX_SYN_TIMEOUTS {
            return self.die();
        }
        self.handshake_retransmits += 1;
        self.out_syn(now, FastOpen::Absent, 0);
        if self.timeouts > LINEAR_SYN_TIMEOUTS {
            self.rtt.back_off();
        }
        self.set_timer(now, self.rtt.rto, Pending::Retransmit);
    }

    /// The client waits for the SYN-ACK.
    pub(crate) fn on_syn_ack(&mut self, now: Nanos, segment: &Segment) {
        if !segment.syn || !segment.ack {
            return;
        }
        self.timers.clear();
        self.acked = segment.ack_no;
        self.peer_window_end = segment.ack_no + segment.window;
        self.max_peer_window = segment.window;
        self.reassembly.start(1);
        self.ts_recent = segment.ts;
        self.rtt.rto = INITIAL_RTO;
        self.measure_handshake(now, segment.ts_echo);
        self.fast_open.granted = match segment.fast_open {
            FastOpen::Cookie(cookie) => Some(cookie),
            _ => None,
        };
        self.ecn.is_negotiated = self.settings.ecn && segment.ece;
        self.establish(now);
        let data_end = 1 + Seq::from(self.fast_open.syn_data);
        self.fast_open.accepted = self.fast_open.syn_data > 0 && self.acked == data_end;
        if self.acked < data_end {
            self.board = Scoreboard::default();
            self.resend_syn_data(now, data_end);
            self.next = data_end;
            if self.written > data_end {
                self.push(now);
            }
        } else {
            self.send_ack(now);
            if !self.board.is_empty() {
                self.rearm_rto(now);
            }
        }
    }

    /// The SYN's data was not taken: it goes again with the handshake's last segment, which is no sign of
    /// congestion (`tcp_non_congestion_loss_retransmit`).
    fn resend_syn_data(&mut self, now: Nanos, end: Seq) {
        let flight = Flight {
            psh: true,
            ever_resent: true,
            ..Flight::new(self.acked, end, now)
        };
        self.transmit_flight(now, &flight);
        self.board.push(flight);
        self.rearm_rto(now);
        self.schedule_probe(now, false);
    }

    /// A server answers a SYN.
    pub fn accept(now: Nanos, syn: &Segment, answer: Answer, settings: Settings) -> Self {
        let mut socket = Self::new(syn.conn, false, settings);
        socket.state = State::SynReceived;
        socket.ts_recent = syn.ts;
        socket.negotiate_ecn(syn);
        socket.peer_window_end = 1 + syn.window;
        socket.max_peer_window = syn.window;
        socket.fast_open.option = answer.grants.map_or(FastOpen::Absent, FastOpen::Cookie);
        let taken = answer.early.map_or(0, |_| syn.len);
        socket.fast_open.syn_data = taken;
        socket.fast_open.early = answer.early;
        socket.reassembly.start(1 + Seq::from(taken));
        socket.handshake_sent_at = now;
        socket.send_syn_ack(now);
        if taken > 0 {
            // `tcp_fastopen_add_skb` queues the data with no thought of acknowledging it: the SYN-ACK does.
            socket.delayed_ack.start(now);
        }
        if answer.early.is_some() {
            // `tcp_fastopen_create_child` makes a socket that has no sample of the RTT (`tcp_init_metrics`).
            socket.rtt.rto = FALLBACK_RTO;
        }
        socket.set_timer(now, INITIAL_RTO, Pending::Retransmit);
        socket
    }

    fn send_syn_ack(&mut self, now: Nanos) {
        self.next = self.next.max(1);
        self.out.push_back(Segment {
            conn: self.conn,
            up: false,
            syn: true,
            ack: true,
            ece: self.ecn.is_negotiated,
            ack_no: 1 + Seq::from(self.fast_open.syn_data),
            window: crate::window::INITIAL_WINDOW,
            ts: now / MS,
            ts_echo: self.ts_recent,
            fast_open: self.fast_open.option,
            ..Segment::default()
        });
        self.last_ack_sent = 1 + Seq::from(self.fast_open.syn_data);
    }

    /// No acknowledgment of the SYN-ACK came: it goes again, without data that already follows it; that is
    /// taken for lost at the second timeout (`tcp_fastopen_synack_timer`).
    pub(crate) fn on_syn_ack_timeout(&mut self, now: Nanos) {
        self.timeouts += 1;
        if self.timeouts > crate::timers::MAX_SYN_TIMEOUTS {
            return self.die();
        }
        self.resend_syn_ack(now);
        if self.timeouts == 2 && !self.board.is_empty() {
            self.enter_loss(now);
        }
        self.set_timer(now, INITIAL_RTO << self.timeouts, Pending::Retransmit);
    }

    fn resend_syn_ack(&mut self, now: Nanos) {
        self.handshake_retransmits += 1;
        // RFC 7413, section 4.2.2: without the option.
        self.fast_open.option = FastOpen::Absent;
        self.send_syn_ack(now);
    }

    /// The server waits for the acknowledgment of its SYN-ACK.
    pub(crate) fn on_handshake_end(&mut self, now: Nanos, segment: &Segment) {
        if segment.syn {
            self.ts_recent = self.ts_recent.max(segment.ts);
            self.resend_syn_ack(now);
            // `tcp_check_req`: a request waits anew; a Fast Open socket has a timer of its own.
            if self.fast_open.early.is_none() {
                self.set_timer(now, INITIAL_RTO << self.timeouts, Pending::Retransmit);
            }
            return;
        }
        if segment.ack_no == 0 {
            return self.on_data_behind_syn(now, segment);
        }
        self.acked = self.acked.max(1);
        self.peer_window_end = segment.ack_no + segment.window;
        self.on_ack(now, segment);
        // A server that has closed already is in FIN-WAIT-1, where `tcp_rcv_state_process` takes no sample.
        if !self.has_fin && self.rtt.smoothed().is_none() {
            self.measure_handshake(now, segment.ts_echo);
        }
        self.establish(now);
        self.rearm_rto(now);
        self.after_ack(now, segment);
    }

    /// Data that followed the SYN counts if the SYN's did.
    fn on_data_behind_syn(&mut self, now: Nanos, segment: &Segment) {
        if self.fast_open.early.is_some() {
            self.on_data(now, segment);
            self.acknowledge(now);
        }
    }
}
