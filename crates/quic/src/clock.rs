//! The driver's time as quinn-proto's.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use firstflight_loader::Nanos;

/// Stands for time 0 of the driver: which moment it is makes no difference.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(crate) fn instant(at: Nanos) -> Instant {
    *EPOCH + Duration::from_nanos(at)
}

pub(crate) fn nanos(at: Instant) -> Nanos {
    at.saturating_duration_since(*EPOCH).as_nanos() as Nanos
}
