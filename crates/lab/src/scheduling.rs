//! Getting the relay onto a processor in time.
//!
//! Root takes `SCHED_FIFO`. An ordinary user asks for a short slice: EEVDF (Linux 6.6) runs the task with
//! the earliest virtual deadline, and a short slice gives an early one (`sched_attr.sched_runtime`, 6.12).
//! Everything else in the lab steps back by `nice`, in every mode alike.

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
    /// An ordinary task; only the others' niceness helps.
    Nice,
}

const FIFO_PRIORITY: i32 = 10;
/// The shortest slice the kernel grants (`kernel/sched/syscalls.c`, `__setparam_fair`).
const SLICE_NS: u64 = 100_000;
const OTHERS_NICE: i32 = 5;

/// Takes `SCHED_FIFO` for the calling thread; `false` where that is not allowed.
pub fn become_realtime() -> bool {
    set_policy(libc::SCHED_FIFO, FIFO_PRIORITY)
}

/// Gives real-time priority up.
pub fn become_ordinary() {
    set_policy(libc::SCHED_OTHER, 0);
}

/// Puts the calling thread, which is not the relay, behind it.
pub fn step_back() {
    become_ordinary();
    // SAFETY: `setpriority` takes plain numbers; 0 is the calling thread on Linux.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, OTHERS_NICE) };
}

/// Makes the best of the calling thread, which is the relay.
pub fn become_relay(realtime: bool) -> Scheduling {
    // SAFETY: PR_SET_TIMERSLACK takes a number; 1 ns switches the slack off for this thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    if realtime && set_policy(libc::SCHED_FIFO, FIFO_PRIORITY) {
        return Scheduling::Fifo;
    }
    let attributes = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        runtime: SLICE_NS,
        ..SchedAttr::default()
    };
    // SAFETY: `attributes` outlives the call and carries its own size.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if answer == 0 {
        Scheduling::EevdfSlice
    } else {
        Scheduling::Nice
    }
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
