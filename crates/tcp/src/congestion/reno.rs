//! `NewReno`'s window (RFC 5681), as `net/ipv4/tcp_cong.c` computes it.

use firstflight_path::Nanos;

use super::Controller;

/// It remembers nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reno;

impl Controller for Reno {
    /// One segment more per window (section 3.1, equation 3).
    fn per_increase(&mut self, _: Nanos, cwnd: u32, _: u32) -> u32 {
        cwnd
    }

    /// Section 3.1, equation 4, with the window in place of the flight size (`tcp_reno_ssthresh`).
    fn threshold_after_loss(&mut self, cwnd: u32) -> u32 {
        (cwnd >> 1).max(2)
    }
}
