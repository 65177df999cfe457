//! The rights that a contained program gives up for good before it runs.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::ptr;

use nix::libc;
use nix::sched::CloneFlags;
use nix::unistd::geteuid;

use super::sandbox::{self, NOBODY};
use crate::LabError;

/// Makes a client give up all that it does not need: session, keys, groups, user and capabilities.
///
/// # Errors
/// [`LabError`] when it would run as root.
pub(super) fn give_up_all(command: &mut Command) -> Result<(), LabError> {
    let ids = Ids::of_client()?;
    // SAFETY: it makes system calls and touches nothing else.
    unsafe { command.pre_exec(move || leave_rights(ids)) };
    Ok(())
}

/// Makes a user's program give up the rights to uncover what was covered, and to type into terminals.
pub(super) fn give_up_mounting(command: &mut Command) {
    let filter = terminal_filter();
    // SAFETY: it makes system calls and touches nothing else; the filter was allocated before.
    unsafe { command.pre_exec(move || leave_mounting(&filter)) };
}

/// Whether a client can make the namespaces that Chromium's sandbox needs. A child with a client's rights tries it.
///
/// # Errors
/// [`LabError`] when there is no client, or no child, to try it with.
pub fn try_browser_sandbox() -> Result<bool, LabError> {
    let ids = Ids::of_client()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg("--version").stdout(Stdio::null());
    let flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNET;
    // SAFETY: it makes system calls and touches nothing else.
    unsafe {
        command.pre_exec(move || {
            leave_rights(ids)?;
            check(libc::unshare(flags.bits()))?;
            libc::_exit(0)
        });
    }
    match command.status() {
        Ok(status) => Ok(status.success()),
        Err(error) => match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EUSERS | libc::EINVAL) => Ok(false),
            _ => Err(LabError::system("trying a browser's namespaces", error)),
        },
    }
}

/// The user and group of a client.
#[derive(Debug, Clone, Copy)]
enum Ids {
    /// The caller's, who is not root.
    Caller,
    /// A user of the lab's that owns nothing on the host.
    Nobody,
}

impl Ids {
    fn of_client() -> Result<Self, LabError> {
        if !geteuid().is_root() {
            return Ok(Self::Caller);
        }
        if sandbox::maps_nobody() {
            return Ok(Self::Nobody);
        }
        Err(LabError::ClientIsRoot)
    }
}

/// Gives up session, keys, groups, user and capabilities for good. Called between `fork` and `exec`.
fn leave_rights(ids: Ids) -> io::Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: these calls take numbers and null pointers.
    unsafe {
        check(libc::setsid())?;
        // A kernel without keyrings has none to hide.
        libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_JOIN_SESSION_KEYRING,
            ptr::null::<libc::c_char>(),
        );
        check(libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        ))?;
        for capability in 0..64 {
            // The first capability that the kernel does not know ends the list.
            if libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 {
                break;
            }
        }
        if matches!(ids, Ids::Nobody) {
            check(libc::setgroups(0, ptr::null()))?;
            check(libc::setresgid(NOBODY, NOBODY, NOBODY))?;
            check(libc::setresuid(NOBODY, NOBODY, NOBODY))?;
        }
        let none = [0_u32; 6];
        let header = [LINUX_CAPABILITY_VERSION_3, 0];
        check(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) as libc::c_int)?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    }
}

/// `linux/capability.h`.
const LINUX_CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// Capabilities with which root's program could remove the covers, or examine the lab's own process
/// (`linux/capability.h`): `SYS_MODULE`, `SYS_RAWIO`, `SYS_PTRACE`, `SYS_ADMIN`, `SYS_BOOT`.
const UNCOVERING: [libc::c_int; 5] = [16, 17, 19, 21, 22];

/// Gives up the rights to change mounts and to type into terminals. Called between `fork` and `exec`.
fn leave_mounting(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the filter, which outlives the call; the others take numbers.
    unsafe {
        if !filter.is_empty() {
            check(libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ))?;
        }
        for capability in UNCOVERING {
            check(libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0))?;
        }
    }
    Ok(())
}

fn check(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The ways to call `ioctl` on this processor: architecture (`linux/audit.h`) and call number.
const IOCTLS: &[(u32, u32)] = if cfg!(target_arch = "x86_64") {
    // The last is the call number of the x32 ABI.
    &[
        (0xC000_003E, 16),
        (0x4000_0003, 54),
        (0xC000_003E, 0x4000_0000 + 514),
    ]
} else if cfg!(target_arch = "aarch64") {
    &[(0xC000_00B7, 29), (0x4000_0028, 54)]
} else {
    &[]
};

/// Refuses to put characters into a terminal's input (`TIOCSTI`, and `TIOCLINUX` of the console). A shell that
/// reads them after the program has ended would run them outside the lab.
fn terminal_filter() -> Vec<libc::sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    // Offsets in `struct seccomp_data`. Of the request the kernel looks at the lower half.
    const NUMBER: u32 = 0;
    const ARCHITECTURE: u32 = 4;
    const REQUEST: u32 = if cfg!(target_endian = "little") { 24 } else { 28 };
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut filter = Vec::new();
    for (architecture, number) in IOCTLS {
        filter.extend([
            step(LOAD, ARCHITECTURE, 0, 0),
            step(JUMP, *architecture, 0, 6),
            step(LOAD, NUMBER, 0, 0),
            step(JUMP, *number, 0, 4),
            step(LOAD, REQUEST, 0, 0),
            step(JUMP, libc::TIOCSTI as u32, 1, 0),
            step(JUMP, libc::TIOCLINUX as u32, 0, 1),
            step(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        ]);
    }
    filter.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    filter
}
