//! Gets the relay onto a processor in time.
//!
//! Root takes `SCHED_FIFO`. An ordinary user asks for a short slice: EEVDF (Linux 6.6) runs the task with the
//! earliest virtual deadline, and a short slice gives an early one (`sched_attr.sched_runtime`, 6.12). The servers
//! and the built-in client do the same, one step behind the relay. As ordinary tasks they delayed probes that the
//! relay had carried in time, and niceness made it worse. Programs that a user names run as ordinary tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::prctl;
use nix::unistd::Pid;
use serde::Serialize;

use crate::LabError;

/// How the relay is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// Real-time priority, `SCHED_FIFO`.
    Fifo,
    /// An ordinary task with a slice of 0.1 ms.
    EevdfSlice,
    /// An ordinary task with the default slice.
    Ordinary,
}

const FIFO_PRIORITY: i32 = 10;
const LOWEST_NICENESS: i32 = 19;
/// The shortest slice the kernel grants (`kernel/sched/syscalls.c`, `__setparam_fair`).
const SLICE_NS: u64 = 100_000;
/// Iterations of a thread that keeps a processor awake before it yields: a few microseconds.
const SPINS: u32 = 100;

/// Takes `SCHED_FIFO` for the calling thread; `false` if that is not allowed.
pub fn become_realtime() -> bool {
    set_policy(libc::SCHED_FIFO, FIFO_PRIORITY)
}

/// Gives real-time priority up.
pub fn become_ordinary() {
    set_policy(libc::SCHED_OTHER, 0);
}

/// Runs `work` on a thread that is an ordinary task, as are the threads that it starts. Waits for its end.
///
/// # Errors
/// Those of `work`.
pub fn as_ordinary_task<T: Send>(work: impl FnOnce() -> Result<T, LabError> + Send) -> Result<T, LabError> {
    let work = || {
        become_ordinary();
        work()
    };
    let died = |_| LabError::bug("a thread of the lab died");
    std::thread::scope(|scope| scope.spawn(work).join().map_err(died)?)
}

/// Schedules the calling thread, a server's or the built-in client's, after the relay and before other work: what
/// it emulates runs on a machine of its own.
pub fn step_back() {
    // SAFETY: `sched_getscheduler` takes a number; 0 is the calling thread.
    let realtime = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_FIFO;
    if !(realtime && set_policy(libc::SCHED_FIFO, FIFO_PRIORITY / 2)) {
        take_short_slice();
    }
}

/// Schedules the calling thread as the relay, as well as the system allows.
pub fn become_relay(realtime: bool) -> Scheduling {
    // 1 ns switches the timer slack off for this thread; every kernel accepts it.
    let _ = prctl::set_timerslack(1);
    if realtime && set_policy(libc::SCHED_FIFO, FIFO_PRIORITY) {
        return Scheduling::Fifo;
    }
    if take_short_slice() {
        Scheduling::EevdfSlice
    } else {
        Scheduling::Ordinary
    }
}

/// Keeps processors out of idle states with a spinning thread on each, until it is dropped.
///
/// Waking an idle processor takes 50 to 100 µs in a virtual machine, and a real-time task waits for the processor
/// that it ran on last. The threads are `SCHED_IDLE`: any other task that wakes up runs at once. Beside a task that
/// always runs, such a thread gets 3 parts of 1,027. They are also niced, so that the kernel counts their time as
/// `nice` in `/proc/stat`, apart from work.
///
/// They yield every few microseconds. Otherwise an ordinary task that wakes up may not be eligible under EEVDF yet,
/// and waits for the next tick: round trips in an ordinary user's laboratory were up to 14 ms late.
#[derive(Debug)]
pub struct Awake {
    stop: Arc<AtomicBool>,
    processors: Arc<AtomicUsize>,
}

impl Awake {
    /// Starts a thread on each processor that this process may use, as far as the kernel allows.
    pub fn keep() -> Self {
        let awake = Self {
            stop: Arc::default(),
            processors: Arc::default(),
        };
        for processor in processors() {
            let (stop, kept) = (Arc::clone(&awake.stop), Arc::clone(&awake.processors));
            let thread = std::thread::Builder::new().name("awake".to_owned());
            // A processor whose thread cannot start is not counted.
            let _ = thread.spawn(move || spin(processor, &stop, &kept));
        }
        awake
    }

    /// Number of processors kept awake so far.
    pub fn processors(&self) -> usize {
        self.processors.load(Ordering::Relaxed)
    }
}

/// Spins, but never as an ordinary task, which would take time from others.
fn spin(processor: usize, stop: &AtomicBool, kept: &AtomicUsize) {
    // SAFETY: `setpriority` takes numbers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LOWEST_NICENESS) };
    if set_policy(libc::SCHED_IDLE, 0) && pin(processor) {
        kept.fetch_add(1, Ordering::Relaxed);
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..SPINS {
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The processors that the calling thread may use.
fn processors() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else {
        return Vec::new();
    };
    (0..CpuSet::count())
        .filter(|processor| allowed.is_set(*processor).unwrap_or(false))
        .collect()
}

fn pin(processor: usize) -> bool {
    let mut only = CpuSet::new();
    only.set(processor).is_ok() && sched_setaffinity(Pid::from_raw(0), &only).is_ok()
}

/// Asks for a short slice. Kernels before 6.12 accept the request and ignore it.
fn take_short_slice() -> bool {
    let size = size_of::<SchedAttr>() as libc::c_uint;
    let wish = SchedAttr {
        size,
        runtime: SLICE_NS,
        ..SchedAttr::default()
    };
    let mut granted = SchedAttr::default();
    // SAFETY: both structures outlive the calls; the first carries its size, the second's is given.
    unsafe {
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const wish, 0);
        libc::syscall(libc::SYS_sched_getattr, 0, &raw mut granted, size, 0);
    }
    granted.runtime == SLICE_NS
}

fn set_policy(policy: i32, priority: i32) -> bool {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `parameters` outlives the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}

/// `struct sched_attr`, version 0 (`sched_setattr(2)`).
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Scheduling policies of the threads of this process that keep processors awake.
    fn policies() -> Vec<i32> {
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let ids = threads.filter_map(|thread| {
            let thread = thread.ok()?.path();
            let name = std::fs::read_to_string(thread.join("comm")).ok()?;
            let id = thread.file_name()?.to_str()?.parse().ok()?;
            (name == "awake\n").then_some(id)
        });
        // SAFETY: `sched_getscheduler` takes a number.
        ids.map(|id| unsafe { libc::sched_getscheduler(id) }).collect()
    }

    fn wait_until(holds: impl Fn() -> bool) -> bool {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !holds() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        holds()
    }

    #[test]
    fn processors_are_kept_awake_by_idle_tasks_until_it_is_dropped() {
        let awake = Awake::keep();
        let all = vec![libc::SCHED_IDLE; processors().len()];
        assert!(wait_until(|| policies() == all), "{:?}", policies());
        assert!(wait_until(|| awake.processors() == all.len()));
        drop(awake);
        assert!(wait_until(|| policies().is_empty()), "{:?}", policies());
    }
}
