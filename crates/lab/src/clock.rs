//! The real clock.

use nix::time::{ClockId, clock_gettime};

/// Monotonic time in nanoseconds: the time base of the relay, the ledger and the loader.
///
/// # Panics
/// Never: `CLOCK_MONOTONIC` exists on every Linux.
pub fn now() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Processor time the calling thread has taken, ns.
///
/// # Panics
/// Never: `CLOCK_THREAD_CPUTIME_ID` exists on every Linux.
pub fn thread_cpu() -> u64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("this clock exists on every Linux");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}
