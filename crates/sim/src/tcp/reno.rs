//! Reno's answer to a loss (RFC 5681, section 3.1, equation 4, with Linux's window in place of the flight size).

/// Half the window, two segments at least (`tcp_reno_ssthresh`).
pub(super) fn threshold_after_loss(cwnd: u32) -> u32 {
    (cwnd >> 1).max(2)
}
