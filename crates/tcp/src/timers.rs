//! The timers of a socket, and the one place that handles them.
//!
//! The sender has one timer for several purposes, as in Linux (`tcp_write_timer_handler` in
//! `net/ipv4/tcp_timer.c`). The receiver has the timer of delayed acknowledgments.

use firstflight_path::Nanos;

use crate::{End, Socket, State};

/// The purpose of the sender's timer (`icsk_pending`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pending {
    /// `ICSK_TIME_RETRANS`.
    Retransmit,
    /// `ICSK_TIME_LOSS_PROBE`.
    Probe,
    /// `ICSK_TIME_REO_TIMEOUT`.
    Reorder,
}

/// The sender's timer: its time and its purpose. A probe or reordering timer that has fired stays pending, with a
/// time that never comes, until it is set again.
#[derive(Debug, Default)]
pub(crate) struct SenderTimer(Option<(Nanos, Pending)>);

impl SenderTimer {
    /// Sets the timer, whatever it was set for.
    pub(crate) fn set(&mut self, at: Nanos, pending: Pending) {
        self.0 = Some((at, pending));
    }

    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }

    /// Its purpose, if it is set.
    pub(crate) fn pending(&self) -> Option<Pending> {
        self.0.map(|(_, pending)| pending)
    }

    #[inline]
    pub(crate) fn timeout(&self) -> Option<Nanos> {
        self.0.map(|(at, _)| at).filter(|at| *at != Nanos::MAX)
    }

    /// Its purpose, if it has run out.
    fn pop(&mut self, now: Nanos) -> Option<Pending> {
        let (_, pending) = self.0.filter(|(at, _)| *at <= now)?;
        // `tcp_write_timer_handler`: the others are still pending while they are handled.
        self.0 = match pending {
            Pending::Retransmit => None,
            Pending::Probe | Pending::Reorder => Some((Nanos::MAX, pending)),
        };
        Some(pending)
    }
}

/// A timer that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    DelayedAck,
    Sender(Pending),
}

/// The earlier of two optional times. In the innermost loop: an array's iterator takes several times as long.
#[inline]
pub fn earlier(one: Option<Nanos>, two: Option<Nanos>) -> Option<Nanos> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

impl Socket {
    /// When [`Self::handle_timeout`] has something to do.
    #[inline]
    pub fn next_timeout(&self) -> Option<Nanos> {
        earlier(self.sender.timer().timeout(), self.receiver.timeout())
    }

    /// Handles the timers that are due. The only place that knows the purpose of each timer.
    pub fn handle_timeout(&mut self, now: Nanos) {
        while let Some(due) = self.next_due(now) {
            match due {
                Due::DelayedAck => {
                    if self.receiver.on_timeout(now, self.sender.rtt().rto()) {
                        self.send_ack(now);
                    }
                }
                Due::Sender(Pending::Probe) => {
                    self.with_sender(|sender, outlet| sender.on_probe_timeout(now, outlet));
                }
                Due::Sender(Pending::Reorder) => {
                    self.with_sender(|sender, outlet| sender.on_reorder_timeout(now, outlet));
                }
                Due::Sender(Pending::Retransmit) => match self.state {
                    State::SynSent => self.on_syn_timeout(now),
                    State::SynReceived => self.on_syn_ack_timeout(now),
                    State::Established => {
                        let gives_up =
                            self.with_sender(|sender, outlet| sender.on_retransmission_timeout(now, outlet));
                        if gives_up {
                            self.end(End::TimedOut);
                        }
                    }
                    // Nothing is in flight.
                    State::Closed | State::TimeWait | State::Forgotten | State::Ended(_) => {}
                },
            }
        }
    }

    fn next_due(&mut self, now: Nanos) -> Option<Due> {
        if self.receiver.timeout().is_some_and(|at| at <= now) {
            return Some(Due::DelayedAck);
        }
        self.sender.timer_mut().pop(now).map(Due::Sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::script::*;
    use crate::pair::{Fault, Flow, MS};
    use crate::{Settings, Ticks};

    #[test]
    fn the_senders_timer_has_one_purpose_at_a_time() {
        let mut timer = SenderTimer::default();
        timer.set(10, Pending::Probe);
        timer.set(20, Pending::Reorder);
        assert_eq!(
            (timer.timeout(), timer.pending()),
            (Some(20), Some(Pending::Reorder))
        );
        assert_eq!(timer.pop(19), None);
        assert_eq!(timer.pop(20), Some(Pending::Reorder));
        assert_eq!(timer.timeout(), None);
    }

    #[test]
    fn timers_fire_on_the_ticks_of_their_own_kernel() {
        // The client's kernel has an uptime of 3 ms when the SYN leaves, so its ticks are at 1, 5, 9, … ms.
        let client = Settings {
            ticks: Ticks::new(3 * MS),
            ..Settings::default()
        };
        let mut pair = pair(
            Flow {
                client,
                ..response(1_000)
            },
            &[(Up, 1, Fault::Lost)],
        );
        pair.run_until(2_000 * MS);
        let again = pair.sent(Up).nth(1).expect("the SYN goes again");
        assert_eq!(again.at % (4 * MS), MS, "{again}");
    }
}
