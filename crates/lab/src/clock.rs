//! The real clock.

use nix::time::{ClockId, clock_gettime};

/// Monotonic time in nanoseconds: the time base of the relay, the ledger and the loader.
///
/// # Panics
/// Never: `CLOCK_MONOTONIC` exists on every Linux.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists on every Linux");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}
