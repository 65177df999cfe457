//! `NewReno`'s window (RFC 5681), as `net/ipv4/tcp_cong.c` computes it.

use super::Controller;

/// Has no state.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reno;

impl Controller for Reno {
    /// One segment more per window (section 3.1, equation 3).
    fn per_increase(&mut self, _: u64, cwnd: u32, _: u32) -> u32 {
        cwnd
    }

    /// Section 3.1, equation 4, with the window in place of the flight size (`tcp_reno_ssthresh`).
    fn threshold_after_loss(&mut self, cwnd: u32) -> u32 {
        (cwnd >> 1).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::script::*;
    use crate::pair::{Fault, Flow, MS};
    use crate::{Algorithm, Settings};

    #[test]
    fn a_loss_halves_the_window_which_then_grows_by_one_per_round_trip() {
        let server_settings = Settings {
            algorithm: Algorithm::Reno,
            ..Settings::default()
        };
        let flow = Flow {
            server: server_settings,
            ..response(1_000 * FULL)
        };
        let mut pair = behind(10_000_000, flow, &[(Down, 45, Fault::Lost)]);
        pair.run_until(600 * MS);
        assert_eq!((server(&pair).cwnd, server(&pair).ssthresh), (26, 26), "of 52");
        for rounds in 1..=10 {
            // The bottleneck's queue is empty by now. A round takes 100 ms, and the time of a segment and its ACK.
            pair.run_until((600 + rounds * 103) * MS);
            assert_eq!(server(&pair).cwnd, 26 + rounds as u32);
        }
    }

    #[test]
    fn a_window_never_falls_below_two_segments() {
        assert_eq!(Reno.threshold_after_loss(3), 2);
        assert_eq!(Reno.threshold_after_loss(20), 10);
    }
}
