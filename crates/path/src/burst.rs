//! Losses in bursts: the Gilbert-Elliott model, a Markov chain with a good and a bad state.
//!
//! The chain may change its state after each packet. Not modelled: losses in the good state, and time. The state of
//! an idle link does not change.

use serde::{Deserialize, Serialize};

use crate::Stream;

/// How losses come in bursts. The path's `loss` says how many packets are lost in the long run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Mean length of a bad state, packets; at least 1.
    pub packets: f64,
    /// Share of packets lost in the bad state; above the path's `loss`, at most 1.
    #[serde(default = "all")]
    pub loss: f64,
}

fn all() -> f64 {
    1.0
}

impl Burst {
    /// Share of packets that meet the bad state, given a mean loss of `loss`.
    fn bad_share(self, loss: f64) -> f64 {
        loss / self.loss
    }

    /// Probability that the good state ends after a packet.
    fn to_bad(self, loss: f64) -> f64 {
        let bad = self.bad_share(loss);
        bad / (1.0 - bad) / self.packets
    }

    /// Whether a chain with these values and a mean loss of `loss` exists.
    pub(crate) fn is_possible(self, loss: f64) -> bool {
        let fits = self.packets >= 1.0 && self.loss > loss && self.loss <= 1.0;
        fits && self.to_bad(loss) <= 1.0
    }
}

/// The state of the chain on one direction of one link.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    random: Stream,
    is_bad: bool,
    to_bad: f64,
    to_good: f64,
    loss: f64,
}

impl Chain {
    pub(crate) fn new(burst: Burst, loss: f64, mut random: Stream) -> Self {
        Self {
            is_bad: random.is_below(burst.bad_share(loss)),
            random,
            to_bad: burst.to_bad(loss),
            to_good: 1.0 / burst.packets,
            loss: burst.loss,
        }
    }

    /// Whether the next packet is lost.
    pub(crate) fn loses(&mut self) -> bool {
        let is_lost = self.is_bad && self.random.is_below(self.loss);
        let leaves = if self.is_bad { self.to_good } else { self.to_bad };
        self.is_bad ^= self.random.is_below(leaves);
        is_lost
    }
}
