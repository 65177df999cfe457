//! The seccomp filter of a watch: which calls it reports, how it is loaded, and how its listener reaches this
//! process.
//!
//! The filter is loaded between `fork` and `exec`, where allocation is not allowed. The kernel then gives the child
//! a descriptor for the notifications (seccomp(2), `SECCOMP_FILTER_FLAG_NEW_LISTENER`). The child sends it over a
//! socket (unix(7), `SCM_RIGHTS`).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::libc;

use super::{TCP_FASTOPEN, TCP_FASTOPEN_CONNECT};

/// The architecture whose calls are reported (`linux/audit.h`); 0, which matches none, on others.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") {
    0xC000_003E
} else if cfg!(target_arch = "aarch64") {
    0xC000_00B7
} else {
    0
};

/// Reports every `connect`, sends with `MSG_FASTOPEN`, the socket options of Fast Open, and new `io_uring`s. Allows
/// everything else.
pub(super) fn filter() -> Vec<libc::sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUALS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const HAS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    // The lower half of an argument in `struct seccomp_data`.
    const LOWER: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };
    let step = |code, k: u32, jt, jf| libc::sock_filter { code, jt, jf, k };
    let allow = step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    let report = step(RETURN, libc::SECCOMP_RET_USER_NOTIF, 0, 0);
    let argument = |number: u32| step(LOAD, LOWER + 8 * number, 0, 0);
    let mut filter = vec![
        step(LOAD, 4, 0, 0),
        step(EQUALS, ARCHITECTURE, 1, 0),
        allow,
        step(LOAD, 0, 0, 0),
    ];
    for call in [libc::SYS_connect, libc::SYS_io_uring_setup] {
        filter.extend([step(EQUALS, call as u32, 0, 1), report]);
    }
    for (call, flags) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        filter.extend([
            step(EQUALS, call as u32, 0, 4),
            argument(flags),
            step(HAS, libc::MSG_FASTOPEN as u32, 0, 1),
            report,
            allow,
        ]);
    }
    filter.extend([
        step(EQUALS, libc::SYS_setsockopt as u32, 0, 6),
        argument(1),
        step(EQUALS, libc::IPPROTO_TCP as u32, 0, 4),
        argument(2),
        step(EQUALS, TCP_FASTOPEN_CONNECT as u32, 1, 0),
        step(EQUALS, TCP_FASTOPEN as u32, 0, 1),
        report,
        allow,
    ]);
    filter
}

/// Loads the filter into the calling thread. Returns the descriptor for its notifications, or the error as a
/// negative number. Called between `fork` and `exec`.
pub(super) fn listener(filter: &[libc::sock_filter]) -> libc::c_int {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // A signal must not interrupt a reported call (Linux 5.19); Go sends its threads many.
    for flags in [
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
    ] {
        // SAFETY: the kernel copies the filter, which outlives the call.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        if answer >= 0 {
            return answer as libc::c_int;
        }
    }
    // SAFETY: the C library gives every thread a place for its errno.
    -unsafe { *libc::__errno_location() }
}

/// Sends a descriptor, or an error. Called between `fork` and `exec`.
pub(super) fn hand_over(to: RawFd, listener: libc::c_int) {
    let mut handover = Handover {
        number: listener,
        control: Control([0; 24]),
    };
    handover.with(|message| {
        // SAFETY: the header and its data lie within `Control`, which is aligned for it.
        unsafe {
            if listener < 0 {
                message.msg_controllen = 0;
            } else {
                let header = libc::CMSG_FIRSTHDR(message);
                (*header).cmsg_level = libc::SOL_SOCKET;
                (*header).cmsg_type = libc::SCM_RIGHTS;
                (*header).cmsg_len = libc::CMSG_LEN(size_of::<libc::c_int>() as u32) as _;
                libc::CMSG_DATA(header)
                    .cast::<libc::c_int>()
                    .write_unaligned(listener);
            }
            libc::sendmsg(to, message, 0);
        }
    });
}

/// Receives what [`hand_over`] sent.
pub(super) fn take_over(from: &OwnedFd) -> io::Result<OwnedFd> {
    let mut handover = Handover {
        number: -libc::ENOMSG,
        control: Control([0; 24]),
    };
    let descriptor = handover.with(|message| {
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        // SAFETY: the kernel writes the number and the control message into `handover`.
        unsafe {
            if libc::recvmsg(from.as_raw_fd(), message, flags) < 0 {
                return None;
            }
            let header = libc::CMSG_FIRSTHDR(message);
            if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
                return None;
            }
            let descriptor = libc::CMSG_DATA(header).cast::<libc::c_int>().read_unaligned();
            Some(OwnedFd::from_raw_fd(descriptor))
        }
    });
    descriptor.ok_or_else(|| io::Error::from_raw_os_error(-handover.number.min(-1)))
}

/// Room for a control message with one descriptor (cmsg(3)).
#[repr(C, align(8))]
struct Control([u8; 24]);

/// A message of one number, with room for a descriptor.
struct Handover {
    number: libc::c_int,
    control: Control,
}

impl Handover {
    /// Lets `send` or `receive` do its work on the message.
    fn with<T>(&mut self, work: impl FnOnce(&mut libc::msghdr) -> T) -> T {
        let mut part = libc::iovec {
            iov_base: (&raw mut self.number).cast(),
            iov_len: size_of::<libc::c_int>(),
        };
        // SAFETY: the structure is numbers and pointers, all of which may be zero.
        let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut self.control.0).cast();
        message.msg_controllen = size_of::<Control>() as _;
        work(&mut message)
    }
}
