//! PIE (RFC 8033): drops arriving packets at random, with a probability that grows with the queue delay.
//!
//! The queue delay is the backlog divided by the link's rate. The rate is known here, so it need not be estimated
//! (section 4.3). Left out: switching PIE off while the queue is short (section 5.3).

use super::{Backlog, MANAGED_LIMIT, Verdict};
use crate::ecn::{Ecn, Mark};
use crate::{Nanos, Stream};

const MS: Nanos = 1_000_000;
/// `QDELAY_REF`, the target queue delay.
const TARGET: Nanos = 15 * MS;
/// `T_UPDATE`, the interval between two updates of the probability.
const UPDATE: Nanos = 15 * MS;
/// `MAX_BURST`, how long a burst may last before PIE drops anything.
const MAX_BURST: Nanos = 150 * MS;
/// Gains in 1/s: `ALPHA` for the delay's distance to the target, `BETA` for its trend.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// `MARK_ECNTH`: above this probability PIE drops even packets that it could mark (section 5.1).
const MOST_MARKED: f64 = 0.1;
/// PIE drops nothing while the queue holds at most two packets of mean size.
const FEW_BYTES: u64 = 2 * 1_500;

/// The state of one queue.
#[derive(Debug, Clone)]
pub(crate) struct Pie {
    /// One number is drawn per arriving packet, whatever happens to it.
    random: Stream,
    drop_probability: f64,
    /// Sum of the probabilities since the last drop. It spaces drops evenly (section 5.4).
    accumulated: f64,
    last_delay: Nanos,
    burst_allowance: Nanos,
    next_update: Nanos,
}

impl Pie {
    pub(crate) fn new(random: Stream) -> Self {
        Self {
            random,
            drop_probability: 0.0,
            accumulated: 0.0,
            last_delay: 0,
            burst_allowance: MAX_BURST,
            next_update: UPDATE,
        }
    }

    /// What happens to a packet that arrives at `now` behind `backlog`.
    pub(crate) fn judge(&mut self, now: Nanos, backlog: Backlog, ecn: &mut Ecn) -> Verdict {
        let chance = self.random.next_f64();
        self.catch_up(now, now + backlog.wait);
        if backlog.packets >= MANAGED_LIMIT {
            return Verdict::Drop;
        }
        if !self.acts_early(backlog, chance) {
            return Verdict::Take;
        }
        if self.drop_probability <= MOST_MARKED && ecn.mark() {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// Makes the updates that were due by `now`. The link has been busy since the last call and is until
    /// `busy_until`.
    fn catch_up(&mut self, now: Nanos, busy_until: Nanos) {
        while self.next_update <= now {
            if self.is_at_rest() && busy_until <= self.next_update {
                self.next_update = now - (now - self.next_update) % UPDATE + UPDATE;
                return;
            }
            self.update(busy_until.saturating_sub(self.next_update));
            self.next_update += UPDATE;
        }
    }

    /// Whether an update with an empty queue would change nothing.
    fn is_at_rest(&self) -> bool {
        self.drop_probability == 0.0 && self.last_delay == 0 && self.burst_allowance == MAX_BURST
    }

    /// One update of the drop probability (section 4.2).
    fn update(&mut self, delay: Nanos) {
        let seconds = |time: Nanos| time as f64 / 1e9;
        let distance = seconds(delay) - seconds(TARGET);
        let trend = seconds(delay) - seconds(self.last_delay);
        let change = (ALPHA * distance + BETA * trend) / damping(self.drop_probability);
        // From 10 % on, the probability grows by at most 2 percentage points an update (section 5.5).
        let most = if self.drop_probability >= 0.1 { 0.02 } else { 1.0 };
        self.drop_probability = (self.drop_probability + change.min(most)).clamp(0.0, 1.0);
        if delay == 0 && self.last_delay == 0 {
            self.drop_probability *= 0.98;
        }
        self.burst_allowance = self.burst_allowance.saturating_sub(UPDATE);
        if self.drop_probability == 0.0 && delay < TARGET / 2 && self.last_delay < TARGET / 2 {
            self.burst_allowance = MAX_BURST;
        }
        self.last_delay = delay;
    }

    /// Whether to drop or mark the packet early (section 4.1, derandomised as in section 5.4).
    fn acts_early(&mut self, backlog: Backlog, chance: f64) -> bool {
        let is_calm = self.last_delay < TARGET / 2 && self.drop_probability < 0.2;
        if self.burst_allowance > 0 || is_calm || backlog.bytes <= FEW_BYTES {
            return false;
        }
        if self.drop_probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.drop_probability;
        let drops = self.accumulated >= 0.85 && (self.accumulated >= 8.5 || chance < self.drop_probability);
        if drops {
            self.accumulated = 0.0;
        }
        drops
    }
}

/// Scales the update: small probabilities change in small steps (auto-tuning of section 4.2).
fn damping(drop_probability: f64) -> f64 {
    match drop_probability {
        p if p < 1e-6 => 2_048.0,
        p if p < 1e-5 => 512.0,
        p if p < 1e-4 => 128.0,
        p if p < 1e-3 => 32.0,
        p if p < 1e-2 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}
