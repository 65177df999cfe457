//! Enters the laboratory: new user, network, mount and PID namespaces, as root or not.
//!
//! The calling process stays outside and waits. The process inside is the first of its PID namespace. So when it
//! dies, however it dies, the kernel kills everything in the lab and removes the network. It dies with the outer
//! process (parent death signal), and when standard input closes (see [`crate::tether`]).

use std::fs;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getegid, geteuid, getpid, pipe, read, write};

use crate::LabError;
use crate::scheduling;

/// Where shared memory is mounted (`shm_overview(7)`).
pub(super) const SCRATCH: &str = "/dev/shm";
/// The size of the shared memory: room for several browser profiles, their shared memory and HAR files.
const SCRATCH_OPTIONS: &str = "mode=1777,size=1g,nr_inodes=200k";

/// A user and a group that own nothing.
pub const NOBODY: u32 = 65_534;

/// Whether this process is inside or outside the lab.
pub enum Side {
    /// Inside the lab.
    Inside {
        /// Whether the process took `SCHED_FIFO` before it entered, for the relay to inherit.
        realtime: bool,
    },
    /// Outside: the lab has ended, with this exit code.
    Outside(i32),
}

/// Makes the namespaces, and splits into the process outside and the one inside.
///
/// The user keeps its identity inside the lab. Root has a second user there, [`NOBODY`], for clients. If root is
/// the only user that the system allows, as in some containers, a lab `for_clients` maps root to [`NOBODY`].
///
/// # Errors
/// [`LabError`] when the kernel or the container's policy refuses a namespace.
pub fn enter(for_clients: bool) -> Result<Side, LabError> {
    let (uid, gid) = (geteuid(), getegid());
    // Real-time priority needs a capability of the host's user namespace, so take it before leaving that.
    let realtime = scheduling::become_realtime();
    let mapper = if uid.is_root() {
        Some(IdMapper::start()?)
    } else {
        None
    };
    let flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID;
    unshare(flags).map_err(LabError::NoNamespaces)?;
    if !mapper.is_some_and(IdMapper::map_two_users) {
        let renamed = uid.is_root() && for_clients;
        let inside = |id| if renamed { NOBODY } else { id };
        write_id_map("setgroups", "deny")?;
        write_id_map("uid_map", &format!("{} {uid} 1", inside(uid.as_raw())))?;
        write_id_map("gid_map", &format!("{} {gid} 1", inside(gid.as_raw())))?;
    }

    // SAFETY: the process has one thread here (`enter` is called first thing in `main`), so the child may
    // use the allocator and everything else as its parent could.
    match unsafe { fork() }.map_err(|errno| LabError::system("fork", errno))? {
        ForkResult::Parent { child } => {
            scheduling::become_ordinary();
            Ok(Side::Outside(wait_for(child)))
        }
        ForkResult::Child => {
            prctl::set_pdeathsig(Signal::SIGKILL).map_err(|errno| LabError::system("prctl", errno))?;
            // Mounts in the lab must not propagate outside.
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

/// Mounts a `/proc` with the lab's own processes, so that programs inside find themselves there.
///
/// If the container hides parts of `/proc`, the kernel refuses (`fs/namespace.c`, `mnt_already_visible`).
///
/// # Errors
/// [`LabError`] when the kernel refuses.
pub fn mount_proc() -> Result<(), LabError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>).map_err(LabError::MaskedProc)
}

/// Gives the lab its own shared memory. What clients keep there goes away with the lab, however it ends.
///
/// # Errors
/// [`LabError`] when the kernel refuses, on a system that has shared memory.
pub fn mount_scratch() -> Result<(), LabError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    match mount(
        Some("tmpfs"),
        SCRATCH,
        Some("tmpfs"),
        flags,
        Some(SCRATCH_OPTIONS),
    ) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(LabError::system("mounting the lab's shared memory", errno)),
    }
}

/// Whether the calling process is in a user namespace that has [`NOBODY`].
pub(super) fn maps_nobody() -> bool {
    let holds = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(_), Some(Ok(count))) = (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        (first..first + count).contains(&u64::from(NOBODY))
    };
    ["uid_map", "gid_map"]
        .iter()
        .all(|file| fs::read_to_string(format!("/proc/self/{file}")).is_ok_and(|map| map.lines().any(holds)))
}

/// A child in the caller's user namespace. Mapping a second user takes rights there (`user_namespaces(7)`).
struct IdMapper {
    child: Pid,
    start: OwnedFd,
}

impl IdMapper {
    /// Starts the child, which waits.
    fn start() -> Result<Self, LabError> {
        let failed = |errno| LabError::system("starting a helper", errno);
        let lab = getpid();
        let (reader, start) = pipe().map_err(failed)?;
        // SAFETY: the process has one thread here, see `enter`.
        match unsafe { fork() }.map_err(failed)? {
            ForkResult::Parent { child } => Ok(Self { child, start }),
            ForkResult::Child => {
                drop(start);
                let asked = read(&reader, &mut [0]) == Ok(1);
                let map = |file: &str, id: u32| {
                    let lines = format!("{id} {id} 1\n{NOBODY} {NOBODY} 1");
                    fs::write(format!("/proc/{lab}/{file}"), lines).is_ok()
                };
                let written =
                    asked && map("gid_map", getegid().as_raw()) && map("uid_map", geteuid().as_raw());
                // SAFETY: it ends this process, which has nothing to clean up.
                unsafe { libc::_exit(i32::from(!written)) }
            }
        }
    }

    /// Lets the child map root and [`NOBODY`] in this process's present namespace; `false` if that is refused.
    fn map_two_users(self) -> bool {
        // A child that has died maps nothing, and its exit code says so.
        let _ = write(&self.start, b".");
        drop(self.start);
        matches!(waitpid(self.child, None), Ok(WaitStatus::Exited(_, 0)))
    }
}

fn write_id_map(file: &str, content: &str) -> Result<(), LabError> {
    fs::write(format!("/proc/self/{file}"), content)
        .map_err(|error| LabError::system(format!("writing {file} of the user namespace"), error))
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
