//! Getting the relay onto a processor in time.
//!
//! Root takes `SCHED_FIFO`. An ordinary user asks for a short slice: EEVDF (Linux 6.6) runs the task with
//! the earliest virtual deadline, and a short slice gives an early one (`sched_attr.sched_runtime`, 6.12).
//! The servers and the built-in client do likewise, one step behind the relay: as ordinary tasks they made
//! probes late that the relay had carried in time, and niceness made it worse. Programs that a user names run
//! as the ordinary tasks they are.

use nix::libc;
use serde::Serialize;

/// How the relay is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// Real-time priority, `SCHED_FIFO`.
    Fifo,
    /// An ordinary task with a 0.1 ms slice.
    EevdfSlice,
    /// An ordinary task like any other.
    Ordinary,
}

const FIFO_PRIORITY: i32 = 10;
/// The shortest slice the kernel grants (`kernel/sched/syscalls.c`, `__setparam_fair`).
const SLICE_NS: u64 = 100_000;

/// Takes `SCHED_FIFO` for the calling thread; `false` where that is not allowed.
pub fn become_realtime() -> bool {
    set_policy(libc::SCHED_FIFO, FIFO_PRIORITY)
}

/// Gives real-time priority up.
pub fn become_ordinary() {
    set_policy(libc::SCHED_OTHER, 0);
}

/// Puts the calling thread, a server's or the built-in client's, behind the relay and before other work:
/// what it emulates runs on a machine of its own.
pub fn step_back() {
    // SAFETY: `sched_getscheduler` takes a number; 0 is the calling thread.
    let realtime = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_FIFO;
    if !(realtime && set_policy(libc::SCHED_FIFO, FIFO_PRIORITY / 2)) {
        take_short_slice();
    }
}

/// Makes the best of the calling thread, which is the relay.
pub fn become_relay(realtime: bool) -> Scheduling {
    // SAFETY: PR_SET_TIMERSLACK takes a number; 1 ns switches the slack off for this thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    if realtime && set_policy(libc::SCHED_FIFO, FIFO_PRIORITY) {
        return Scheduling::Fifo;
    }
    if take_short_slice() {
        Scheduling::EevdfSlice
    } else {
        Scheduling::Ordinary
    }
}

/// Asks for a short slice; kernels before 6.12 take the wish without a word and grant none.
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
