//! Ending a connection, and the sender's timer.

use firstflight_path::Nanos;

use super::timers::{Due, Pending};
use super::{Socket, State};

/// `tcp_retries2`, and `tcp_syn_retries`: timeouts in a row after which a connection is given up.
pub(super) const MAX_TIMEOUTS: u32 = 15;
pub(super) const MAX_SYN_TIMEOUTS: u32 = 6;
/// `tcp_syn_linear_timeouts`: SYN timeouts before the timeout doubles.
pub(super) const LINEAR_SYN_TIMEOUTS: u32 = 4;

impl Socket {
    /// The application will write no more: a FIN follows what it has written.
    pub(crate) fn close(&mut self, now: Nanos) {
        match self.state {
            State::Closed | State::SynSent => self.die(),
            _ if self.has_fin => {}
            _ => self.end_stream(now),
        }
    }

    pub(super) fn on_timer(&mut self, now: Nanos, due: Due) {
        match due {
            Due::DelayedAck => self.on_delayed_ack(now),
            Due::Sender(Pending::Probe) => self.on_probe_timeout(now),
            Due::Sender(Pending::Reorder) => self.on_reorder_timeout(now),
            Due::Sender(Pending::Retransmit) => match self.state {
                State::SynSent => self.on_syn_timeout(now),
                State::SynReceived => self.on_syn_ack_timeout(now),
                _ => self.on_retransmission_timeout(now),
            },
        }
    }
}
