//! Entering the laboratory: new user, network, mount and PID namespaces, root or not.
//!
//! The calling process stays outside and waits. The process inside is the first of its PID namespace, so
//! when it dies, however it dies, the kernel kills everything in the lab and takes the network away. It
//! dies with the outer process (parent death signal) and when standard input closes (see [`crate::tether`]).

use std::fs;

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, getegid, geteuid};

use crate::LabError;
use crate::scheduling;

/// Where shared memory lives (`shm_overview(7)`).
const SCRATCH: &str = "/dev/shm";

/// Which side of the wall this process is on.
pub enum Side {
    /// Inside the lab. Whether the thread runs under real-time priority, to be handed to the relay.
    Inside {
        /// `true` when `SCHED_FIFO` could be had before the walls went up.
        realtime: bool,
    },
    /// Outside: the lab has ended, with this exit code.
    Outside(i32),
}

/// Builds the namespaces and splits into the two sides.
///
/// # Errors
/// [`LabError`] when the kernel or the container's policy refuses a namespace.
pub fn enter() -> Result<Side, LabError> {
    let (uid, gid) = (geteuid(), getegid());
    // Real-time priority needs a capability of the host's user namespace: take it before leaving that.
    let realtime = scheduling::become_realtime();
    let flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID;
    unshare(flags).map_err(|errno| {
        LabError::new(
            format!("the kernel refuses new namespaces: {errno}"),
            "run `firstflight doctor`: it says what forbids user namespaces here and how to allow them",
        )
    })?;
    write_id_map("setgroups", "deny")?;
    write_id_map("uid_map", &format!("{uid} {uid} 1"))?;
    write_id_map("gid_map", &format!("{gid} {gid} 1"))?;

    // SAFETY: the process has one thread here (`enter` is called first thing in `main`), so the child may
    // use the allocator and everything else as its parent could.
    match unsafe { fork() }.map_err(|errno| LabError::system("fork", errno))? {
        ForkResult::Parent { child } => {
            scheduling::become_ordinary();
            Ok(Side::Outside(wait_for(child)))
        }
        ForkResult::Child => {
            prctl::set_pdeathsig(Signal::SIGKILL).map_err(|errno| LabError::system("prctl", errno))?;
            // Nothing mounted in here may show outside.
            mount(
                None::<&str>,
                "/",
                None::<&str>,
                MsFlags::MS_REC | MsFlags::MS_PRIVATE,
                None::<&str>,
            )
            .map_err(|errno| LabError::system("making mounts private", errno))?;
            Ok(Side::Inside { realtime })
        }
    }
}

/// Shows the lab's own processes in `/proc`, so that programs inside find themselves there.
///
/// Where the container hides parts of `/proc` the kernel refuses (`fs/namespace.c`, `mnt_already_visible`), and
/// programs see the host's processes by numbers that are not theirs. Most never look.
pub fn mount_proc() {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let _ = mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>);
}

/// Gives the lab shared memory of its own, in which clients keep what is to go when the lab goes, however that is.
///
/// # Errors
/// [`LabError`] when the kernel refuses, on a system that has shared memory.
pub fn mount_scratch() -> Result<(), LabError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    match mount(Some("tmpfs"), SCRATCH, Some("tmpfs"), flags, Some("mode=1777")) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(LabError::system("mounting the lab's shared memory", errno)),
    }
}

fn write_id_map(file: &str, content: &str) -> Result<(), LabError> {
    fs::write(format!("/proc/self/{file}"), content)
        .map_err(|error| LabError::system(&format!("writing {file} of the user namespace"), error))
}

fn wait_for(child: nix::unistd::Pid) -> i32 {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => return code,
            Ok(WaitStatus::Signaled(_, signal, _)) => return 128 + signal as i32,
            Err(nix::errno::Errno::EINTR) | Ok(_) => {}
            Err(_) => return libc::EXIT_FAILURE,
        }
    }
}
