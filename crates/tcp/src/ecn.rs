//! Explicit congestion notification (RFC 3168): the sender takes a mark for a loss, once per round trip, and sends
//! nothing again.
//!
//! `tcp_ecn_send`, `tcp_ecn_queue_cwr`, `tcp_data_ecn_check` and `tcp_ecn_accept_cwr` in Linux; what ECE does to the
//! window is in `recovery.rs`. A SYN that is sent again does not ask (section 6.1.1.1).

use firstflight_path::Ecn;

use crate::Socket;
use crate::recovery::Phase;
use crate::segment::Segment;

/// What both ends have agreed on, and what this end still has to say.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's TCP_ECN_ bits")]
pub(crate) struct EcnState {
    /// `TCP_ECN_OK`: both ends understand it.
    pub(crate) is_negotiated: bool,
    /// `TCP_ECN_DEMAND_CWR`: a mark came, every acknowledgment carries ECE until CWR comes.
    demands_cwr: bool,
    /// `TCP_ECN_SEEN`: the peer has sent capable segments, so that one which is not was sent again.
    has_seen: bool,
    /// `TCP_ECN_QUEUE_CWR`: the window came down, the next new segment carries CWR.
    pub(crate) queues_cwr: bool,
}

impl Socket {
    /// A server answers this SYN.
    pub(crate) fn negotiate_ecn(&mut self, syn: &Segment) {
        self.ecn.is_negotiated = self.settings.ecn && syn.ece && syn.cwr;
    }

    /// A new segment with data may be marked, and tells that the window came down.
    pub(crate) fn make_capable(&mut self, segment: &mut Segment) {
        if self.ecn.is_negotiated {
            segment.ecn = Ecn::Capable;
            segment.cwr = std::mem::take(&mut self.ecn.queues_cwr);
        }
    }

    /// Whether an acknowledgment must carry ECE.
    pub(crate) fn demands_cwr(&self) -> bool {
        self.ecn.is_negotiated && self.ecn.demands_cwr
    }

    /// The sender has reduced its window: `tcp_ecn_accept_cwr`.
    pub(crate) fn on_cwr(&mut self, segment: &Segment) {
        if segment.cwr {
            self.ecn.demands_cwr = false;
            if segment.len > 0 {
                self.delayed_ack.need_now();
            }
        }
    }

    /// What arrived was marked, or was sent again.
    pub(crate) fn note_ecn(&mut self, segment: &Segment) {
        if !self.ecn.is_negotiated {
            return;
        }
        match segment.ecn {
            Ecn::NotCapable if self.ecn.has_seen => self.delayed_ack.enter_quick_for_two(),
            Ecn::NotCapable => return,
            Ecn::Capable => {}
            Ecn::Marked => {
                if !std::mem::replace(&mut self.ecn.demands_cwr, true) {
                    self.delayed_ack.enter_quick_for_two();
                }
            }
        }
        self.ecn.has_seen = true;
    }

    /// `tcp_enter_cwr`: the window comes down, unless it is coming down.
    pub(crate) fn reduce_for_ece(&mut self) {
        self.recovery.prior_threshold = None;
        if matches!(self.recovery.phase, Phase::Open | Phase::Disorder) {
            self.recovery.undo_from = None;
            self.start_reduction();
            self.recovery.phase = Phase::Reduced;
        }
    }
}
