//! Explicit congestion notification (RFC 3168): the sender takes a mark for a loss, once per round trip, and sends
//! nothing again.
//!
//! `tcp_ecn_send`, `tcp_ecn_queue_cwr`, `tcp_data_ecn_check` and `tcp_ecn_accept_cwr` in Linux; what ECE does to the
//! window is in `sender/recovery.rs`. A SYN that is sent again does not ask (section 6.1.1.1).

use firstflight_path::Ecn;

use crate::segment::Segment;

/// A sender's part.
#[derive(Debug, Default)]
pub(crate) struct EcnSender {
    /// `TCP_ECN_OK`: both ends understand it.
    is_negotiated: bool,
    /// `TCP_ECN_QUEUE_CWR`: the window came down, the next new segment carries CWR.
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

    /// The window comes down.
    pub(crate) fn on_reduction(&mut self) {
        self.queues_cwr = true;
    }

    /// A new segment with data may be marked, and tells that the window came down.
    pub(crate) fn make_capable(&mut self, segment: &mut Segment) {
        if self.is_negotiated {
            segment.ecn = Ecn::Capable;
            segment.cwr = std::mem::take(&mut self.queues_cwr);
        }
    }
}

/// A receiver's part.
#[derive(Debug, Default)]
pub(crate) struct EcnReceiver {
    /// `TCP_ECN_OK`.
    is_negotiated: bool,
    /// `TCP_ECN_DEMAND_CWR`: a mark came, every acknowledgment carries ECE until CWR comes.
    demands_cwr: bool,
    /// `TCP_ECN_SEEN`: the peer has sent capable segments, so that one which is not was sent again.
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

    /// Whether the sender has reduced its window and wants to know at once that this is known: `tcp_ecn_accept_cwr`.
    pub(crate) fn accept_cwr(&mut self, segment: &Segment) -> bool {
        self.demands_cwr &= !segment.cwr;
        segment.cwr && segment.len > 0
    }

    /// Data arrived. Whether it was marked for the first time or was sent again, so that acknowledgments must not be
    /// delayed: `tcp_data_ecn_check`.
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
