//! The `connect` that replaces the C library's.

use std::ffi::c_void;
use std::mem::transmute;

use libc::{c_int, sockaddr, socklen_t};

use crate::next::Next;
use crate::{option, ports, target};

type Connect = unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int;

pub(crate) static NEXT: Next = Next::new(c"connect");

/// `connect(2)`, which asks for Fast Open if the socket is TCP.
///
/// # Safety
/// As for `connect(2)`: `address` points to `length` readable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn connect(socket: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller vouches for pointer and length.
    let port = unsafe { target::tcp_port(address, length) };
    let protocol = || option::get(socket, libc::SOL_SOCKET, libc::SO_PROTOCOL);
    if port.is_some_and(ports::allowed) && protocol() == Some(libc::IPPROTO_TCP) {
        // The kernel refuses if the socket is connected already, or Fast Open is off.
        option::set(socket, libc::IPPROTO_TCP, option::TCP_FASTOPEN_CONNECT, 1);
    }
    let next = NEXT.address();
    if next.is_null() {
        // SAFETY: the arguments of the system call are those of the function, and the caller's own.
        return unsafe { libc::syscall(libc::SYS_connect, socket, address, length) as c_int };
    }
    // SAFETY: the dynamic linker found it under this name, which has this type everywhere.
    let next = unsafe { transmute::<*mut c_void, Connect>(next) };
    // SAFETY: the arguments are the caller's own.
    unsafe { next(socket, address, length) }
}
