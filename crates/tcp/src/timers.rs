//! A socket's timers: what is due, when, and the one place that dispatches it.
//!
//! The sender has one timer for several purposes, as in Linux (`tcp_write_timer_handler` in `net/ipv4/tcp_timer.c`), the
//! receiver the one of delayed acknowledgments.

use firstflight_path::Nanos;

use crate::{Socket, State};

/// `tcp_retries2`, and `tcp_syn_retries`: timeouts in a row after which a connection is given up.
pub(crate) const MAX_TIMEOUTS: u32 = 15;
pub(crate) const MAX_SYN_TIMEOUTS: u32 = 6;
/// `tcp_syn_linear_timeouts`: SYN timeouts before the timeout doubles.
pub(crate) const LINEAR_SYN_TIMEOUTS: u32 = 4;

/// What the sender's one timer is for (`icsk_pending`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pending {
    /// `ICSK_TIME_RETRANS`.
    Retransmit,
    /// `ICSK_TIME_LOSS_PROBE`.
    Probe,
    /// `ICSK_TIME_REO_TIMEOUT`.
    Reorder,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Sender(Pending),
    DelayedAck,
}

/// The sender's timer and the receiver's.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    sender: Option<(Nanos, Pending)>,
    pub(crate) delayed_ack: Option<Nanos>,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Nanos, pending: Pending) {
        self.sender = Some((at, pending));
    }

    pub(crate) fn clear(&mut self) {
        self.sender = None;
    }

    /// What the sender's timer is set for.
    pub(crate) fn pending(&self) -> Option<Pending> {
        self.sender.map(|(_, pending)| pending)
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        match (self.sender, self.delayed_ack) {
            (Some((one, _)), Some(two)) => Some(one.min(two)),
            (Some((one, _)), None) => Some(one),
            (None, two) => two,
        }
    }

    pub(crate) fn pop(&mut self, now: Nanos) -> Option<Due> {
        if self.delayed_ack.is_some_and(|at| at <= now) {
            self.delayed_ack = None;
            return Some(Due::DelayedAck);
        }
        let (_, pending) = self.sender.filter(|(at, _)| *at <= now)?;
        self.sender = None;
        Some(Due::Sender(pending))
    }
}

impl Socket {
    /// Does what is due: the only place that knows what each timer is for.
    pub(crate) fn on_timer(&mut self, now: Nanos, due: Due) {
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
