//! Time as the kernel measures it: timers fire on ticks, and timestamps count milliseconds.

use firstflight_path::Nanos;

/// Nanoseconds in a microsecond.
pub(crate) const US: Nanos = 1_000;
/// Nanoseconds in a millisecond.
pub const MS: Nanos = 1_000_000;
/// A tick at `CONFIG_HZ=250`, the default of most distributions.
pub(crate) const JIFFY: Nanos = 4 * MS;

/// `kernel/time/timer.c`: buckets of a wheel level, and bits by which each level is coarser than the one below.
const LEVEL_BUCKETS: u64 = 64;
const LEVEL_SHIFT: u32 = 3;

/// Levels of the wheel, the coarsest of which has buckets of `1 << 24` ticks.
const LEVELS: u32 = 9;

/// The phase of a kernel's tick and timer wheel. All timers fire on a tick, never early.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ticks {
    /// Uptime of the kernel at time 0.
    uptime: Nanos,
}

impl Ticks {
    /// After this time the timer wheel is in the same position again.
    pub const ROUND: Nanos = JIFFY << (LEVEL_SHIFT * (LEVELS - 1));

    /// The ticks of a kernel with an uptime of `uptime` at time 0.
    pub fn new(uptime: Nanos) -> Self {
        Self { uptime }
    }

    /// Number of ticks so far: the kernel's `jiffies`.
    pub(crate) fn count(self, now: Nanos) -> u64 {
        (now + self.uptime) / JIFFY
    }

    /// When a timer fires that is set at `now` with a delay of `delay`.
    ///
    /// `__calc_wheel_index` in `kernel/time/timer.c`: rounded up to the next bucket of the wheel's level, so a
    /// timer of 1 s may be 32 ms late.
    pub(crate) fn after(self, now: Nanos, delay: Nanos) -> Nanos {
        let ticks = delay.div_ceil(JIFFY);
        let expires = self.count(now) + ticks;
        let mut shift = 0;
        while ticks >= (LEVEL_BUCKETS - 1) << shift && shift < LEVEL_SHIFT * (LEVELS - 1) {
            shift += LEVEL_SHIFT;
        }
        let fires = ((expires >> shift) + 1) << shift;
        fires * JIFFY - self.uptime
    }
}

/// Rounds a time up to whole ticks, as `usecs_to_jiffies` does.
pub(crate) fn whole_ticks(time: Nanos) -> Nanos {
    time.div_ceil(JIFFY) * JIFFY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_fires_on_a_tick_and_never_early() {
        let ticks = Ticks::new(MS);
        for now in [0, MS, 2_999_999, 3 * MS, 7 * MS, 1_000 * MS] {
            for delay in [1, JIFFY, 40 * MS, 200 * MS, 250 * MS, 1_000 * MS, 3_000 * MS] {
                let fires = ticks.after(now, delay);
                assert!(fires >= now + delay, "{now} {delay}");
                assert_eq!((fires + MS) % JIFFY, 0);
                let coarseness = if delay <= 248 * MS {
                    2 * JIFFY
                } else {
                    delay / 7 + 2 * JIFFY
                };
                assert!(fires <= now + delay + coarseness, "{now} {delay} {fires}");
            }
        }
    }
}
