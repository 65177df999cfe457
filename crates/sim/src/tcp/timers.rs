//! A socket's timers, as a table: what is due, and when.

use firstflight_path::Nanos;

/// What the sender's one timer is for (`icsk_pending`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pending {
    /// `ICSK_TIME_RETRANS`.
    Retransmit,
    /// `ICSK_TIME_LOSS_PROBE`.
    Probe,
    /// `ICSK_TIME_REO_TIMEOUT`.
    Reorder,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Sender(Pending),
    DelayedAck,
}

/// The sender's timer and the receiver's.
#[derive(Debug, Default)]
pub(super) struct Timers {
    sender: Option<(Nanos, Pending)>,
    pub(super) delayed_ack: Option<Nanos>,
}

impl Timers {
    pub(super) fn set(&mut self, at: Nanos, pending: Pending) {
        self.sender = Some((at, pending));
    }

    pub(super) fn clear(&mut self) {
        self.sender = None;
    }

    /// What the sender's timer is set for.
    pub(super) fn pending(&self) -> Option<Pending> {
        self.sender.map(|(_, pending)| pending)
    }

    pub(super) fn next(&self) -> Option<Nanos> {
        match (self.sender, self.delayed_ack) {
            (Some((one, _)), Some(two)) => Some(one.min(two)),
            (Some((one, _)), None) => Some(one),
            (None, two) => two,
        }
    }

    pub(super) fn pop(&mut self, now: Nanos) -> Option<Due> {
        if self.delayed_ack.is_some_and(|at| at <= now) {
            self.delayed_ack = None;
            return Some(Due::DelayedAck);
        }
        let (_, pending) = self.sender.filter(|(at, _)| *at <= now)?;
        self.sender = None;
        Some(Due::Sender(pending))
    }
}
