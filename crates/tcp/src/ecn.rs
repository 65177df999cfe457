//! Explicit congestion notification (RFC 3168): the sender reacts to a mark as to a loss, once per round trip,
//! without a retransmission.
//!
//! `tcp_ecn_send`, `tcp_ecn_queue_cwr`, `tcp_data_ecn_check` and `tcp_ecn_accept_cwr` in Linux.
//! `sender/recovery.rs` has the effect of ECE on the window. A retransmitted SYN does not ask for ECN (section
//! 6.1.1.1).

use firstflight_path::Ecn;

use crate::segment::Segment;

/// The sender's state.
#[derive(Debug, Default)]
pub(crate) struct EcnSender {
    /// `TCP_ECN_OK`: whether both ends use ECN.
    is_negotiated: bool,
    /// `TCP_ECN_QUEUE_CWR`: the window was reduced, and the next new segment carries CWR.
    queues_cwr: bool,
}

impl EcnSender {
    pub(crate) fn negotiate(&mut self, is_negotiated: bool) {
        self.is_negotiated = is_negotiated;
    }

    /// Whether this acknowledgment reports a mark.
    pub(crate) fn is_reported(&self, segment: &Segment) -> bool {
        segment.ece && self.is_negotiated
    }

    /// The window is reduced.
    pub(crate) fn on_reduction(&mut self) {
        self.queues_cwr = true;
    }

    /// Sets ECT on a new segment with data, and CWR after a reduction.
    pub(crate) fn make_capable(&mut self, segment: &mut Segment) {
        if self.is_negotiated {
            segment.ecn = Ecn::Capable;
            segment.cwr = std::mem::take(&mut self.queues_cwr);
        }
    }
}

/// The receiver's state.
#[derive(Debug, Default)]
pub(crate) struct EcnReceiver {
    /// `TCP_ECN_OK`.
    is_negotiated: bool,
    /// `TCP_ECN_DEMAND_CWR`: a mark came; every acknowledgment carries ECE until CWR comes.
    demands_cwr: bool,
    /// `TCP_ECN_SEEN`: the peer has sent ECT, so a segment without ECT is a retransmission.
    has_seen: bool,
}

impl EcnReceiver {
    pub(crate) fn negotiate(&mut self, is_negotiated: bool) {
        self.is_negotiated = is_negotiated;
    }

    pub(crate) fn is_negotiated(&self) -> bool {
        self.is_negotiated
    }

    /// Whether an acknowledgment must carry ECE.
    pub(crate) fn demands_cwr(&self) -> bool {
        self.is_negotiated && self.demands_cwr
    }

    /// Handles CWR. Returns whether to acknowledge it at once: `tcp_ecn_accept_cwr`.
    pub(crate) fn accept_cwr(&mut self, segment: &Segment) -> bool {
        self.demands_cwr &= !segment.cwr;
        segment.cwr && segment.len > 0
    }

    /// Handles the ECN field of data. Returns whether it has the first mark or is a retransmission, so that
    /// acknowledgments must not be delayed: `tcp_data_ecn_check`.
    pub(crate) fn check_data(&mut self, segment: &Segment) -> bool {
        if !self.is_negotiated {
            return false;
        }
        match segment.ecn {
            Ecn::NotCapable => self.has_seen,
            Ecn::Capable => {
                self.has_seen = true;
                false
            }
            Ecn::Marked => {
                self.has_seen = true;
                !std::mem::replace(&mut self.demands_cwr, true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Settings;
    use crate::pair::script::*;
    use crate::pair::{Fault, Flow};

    fn ecn() -> Settings {
        Settings {
            ecn: true,
            ..Settings::default()
        }
    }

    #[test]
    fn a_mark_brings_the_window_down_once_and_nothing_goes_again() {
        let flow = Flow {
            client: ecn(),
            server: ecn(),
            ..response(20 * FULL)
        };
        let mut pair = pair(flow, &[(Down, 4, Fault::Marked)]);
        pair.run();
        assert_sent(
            pair.trace(),
            ..=50,
            "
              0 up   SEW 0:0(0)
             50 down SE. 0:0(0) ack 1
        ",
        );
        // Every acknowledgment reports the mark, until the sender reports that it has reduced its window.
        assert_sent(
            pair.trace(),
            200..=300,
            "
            200 up   .  301:301(0) ack 1449
            200 up   E. 301:301(0) ack 2897
            200 up   E. 301:301(0) ack 4345
            200 up   E. 301:301(0) ack 5793
            200 up   E. 301:301(0) ack 7241
            200 up   E. 301:301(0) ack 8689
            200 up   E. 301:301(0) ack 10137
            200 up   E. 301:301(0) ack 11585
            200 up   E. 301:301(0) ack 13033
            200 up   E. 301:301(0) ack 14481
            250 down .  14481:15929(1448) ack 301 ect
            250 down P. 15929:17377(1448) ack 301 ect
            250 down W. 17377:18825(1448) ack 301 ect
            250 down P. 18825:20273(1448) ack 301 ect
            250 down .  20273:21721(1448) ack 301 ect
            250 down P. 21721:23169(1448) ack 301 ect
            250 down .  23169:24617(1448) ack 301 ect
            300 up   E. 301:301(0) ack 15929
            300 up   E. 301:301(0) ack 17377
            300 up   .  301:301(0) ack 18825
            300 up   .  301:301(0) ack 20273
            300 up   .  301:301(0) ack 21721
            300 up   .  301:301(0) ack 23169
            300 up   .  301:301(0) ack 24617
        ",
        );
        assert_eq!(server(&pair).ssthresh, 7);
    }

    #[test]
    fn where_one_end_does_not_know_ecn_marks_say_nothing() {
        let flow = Flow {
            client: ecn(),
            ..response(FULL)
        };
        let mut pair = pair(flow, &[(Down, 3, Fault::Marked)]);
        pair.run();
        assert_sent(
            pair.trace(),
            ..,
            "
              0 up   SEW 0:0(0)
             50 down S. 0:0(0) ack 1
            100 up   .  1:1(0) ack 1
            100 up   P. 1:301(300) ack 1
            150 down .  1:1(0) ack 301
            150 down P. 1:1449(1448) ack 301
            200 up   .  301:301(0) ack 1449
        ",
        );
    }

    #[test]
    fn a_syn_that_goes_again_does_not_ask() {
        let flow = Flow {
            client: ecn(),
            server: ecn(),
            ..response(FULL)
        };
        let mut pair = pair(flow, &[(Up, 1, Fault::Lost)]);
        pair.run();
        assert_sent(
            pair.trace(),
            1..=1_074,
            "
            1024 up   S  0:0(0)
            1074 down S. 0:0(0) ack 1
        ",
        );
    }
}
