//! Waits for fractions of a millisecond; tokio's own timer counts whole ones.

use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits for `time`. Uses tokio's timer if the kernel has no timer left.
pub(super) async fn wait(time: Duration) {
    if !time.is_zero() && wait_exactly(time).await.is_err() {
        tokio::time::sleep(time).await;
    }
}

async fn wait_exactly(time: Duration) -> std::io::Result<()> {
    let timer = TimerFd::new(
        ClockId::CLOCK_MONOTONIC,
        TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
    )?;
    timer.set(
        Expiration::OneShot(TimeSpec::from_duration(time)),
        TimerSetTimeFlags::empty(),
    )?;
    // SAFETY: the `AsyncFd` owns the descriptor, which stays open for as long as it is registered.
    let timer = unsafe { AsyncFd::register_with_interest(OwnedFd::from(timer), Interest::READABLE)? };
    timer.readable().await.map(drop)
}
