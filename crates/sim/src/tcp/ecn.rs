//! Explicit congestion notification (RFC 3168): a mark is taken for a loss, once per round trip, and nothing is sent
//! again.
//!
//! `tcp_ecn_send`, `tcp_ecn_queue_cwr`, `tcp_data_ecn_check` and `tcp_ecn_accept_cwr` in Linux; what an echo does to
//! the window is in `recovery.rs`. A SYN that is sent again does not ask (section 6.1.1.1).

use firstflight_path::Ecn;

use super::Socket;
use super::recovery::Phase;
use crate::segment::Segment;

/// What both directions of a connection have agreed on, and still have to say.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's TCP_ECN_ bits")]
pub(super) struct Congestion {
    /// Both ends understand it.
    pub(super) is_understood: bool,
    /// A mark came: every acknowledgment says so until the sender has answered.
    echoes: bool,
    /// The peer has sent capable segments: one that is not was sent again.
    has_seen: bool,
    /// The window came down: the next new segment says so.
    pub(super) answers: bool,
}

impl Socket {
    /// A server answers this SYN.
    pub(super) fn agree(&mut self, syn: &Segment) {
        self.congestion.is_understood = self.settings.ecn && syn.echo && syn.answer;
    }

    /// A new segment with data may be marked, and tells that the window came down.
    pub(super) fn make_capable(&mut self, segment: &mut Segment) {
        if self.congestion.is_understood {
            segment.ecn = Ecn::Capable;
            segment.answer = std::mem::take(&mut self.congestion.answers);
        }
    }

    /// Whether an acknowledgment must tell of a mark.
    pub(super) fn echoes(&self) -> bool {
        self.congestion.is_understood && self.congestion.echoes
    }

    /// The sender has answered.
    pub(super) fn note_answer(&mut self, segment: &Segment) {
        if segment.answer {
            self.congestion.echoes = false;
            if segment.len > 0 {
                self.delayed_ack.need_now();
            }
        }
    }

    /// What arrived was marked, or was sent again.
    pub(super) fn note_mark(&mut self, segment: &Segment) {
        if !self.congestion.is_understood {
            return;
        }
        match segment.ecn {
            Ecn::NotCapable if self.congestion.has_seen => self.delayed_ack.hurry(),
            Ecn::NotCapable => return,
            Ecn::Capable => {}
            Ecn::Marked => {
                if !std::mem::replace(&mut self.congestion.echoes, true) {
                    self.delayed_ack.hurry();
                }
            }
        }
        self.congestion.has_seen = true;
    }

    /// `tcp_enter_cwr`: the window comes down, unless it is coming down.
    pub(super) fn reduce_for_mark(&mut self) {
        self.recovery.prior_threshold = None;
        if matches!(self.recovery.phase, Phase::Open | Phase::Disorder) {
            self.recovery.undo_from = None;
            self.start_reduction();
            self.recovery.phase = Phase::Reduced;
        }
    }
}
