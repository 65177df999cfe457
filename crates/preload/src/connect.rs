//! The `connect` that programs find instead of the C library's.

use std::ffi::c_void;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_int, sockaddr, socklen_t};

use crate::errno::keeping_errno;
use crate::{ports, target};

/// The first write goes into the SYN (`linux/tcp.h`, since 4.11).
const TCP_FASTOPEN_CONNECT: c_int = 30;

type Connect = unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int;

/// The `connect` behind ours; null until somebody has looked for it.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Runs when the library is loaded. Another library's initialiser may call `connect` before: then that finds
/// its way itself, and every port may use Fast Open.
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISE: extern "C" fn() = {
    extern "C" fn initialise() {
        find_next();
        ports::read_environment();
    }
    initialise
};

/// `connect(2)`, with Fast Open asked for where the socket is TCP.
///
/// # Safety
/// As for `connect(2)`: `address` points to `length` readable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn connect(socket: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller vouches for pointer and length.
    let port = unsafe { target::tcp_port(address, length) };
    if port.is_some_and(ports::allowed) {
        keeping_errno(|| ask_for_fast_open(socket));
    }
    // SAFETY: the arguments are the caller's own.
    unsafe { call_next(socket, address, length) }
}

/// Refusals are no concern of the program: not TCP, already connected, or Fast Open switched off.
fn ask_for_fast_open(socket: c_int) {
    let on: c_int = 1;
    if is_tcp(socket) {
        // SAFETY: pointer and length describe `on`, which outlives the call.
        unsafe {
            let length = size_of::<c_int>() as socklen_t;
            let on = (&raw const on).cast();
            libc::setsockopt(socket, libc::IPPROTO_TCP, TCP_FASTOPEN_CONNECT, on, length)
        };
    }
}

fn is_tcp(socket: c_int) -> bool {
    let mut protocol: c_int = 0;
    let mut length = size_of::<c_int>() as socklen_t;
    // SAFETY: pointer and length describe `protocol`, which outlives the call.
    let answer = unsafe {
        let protocol = (&raw mut protocol).cast();
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_PROTOCOL,
            protocol,
            &raw mut length,
        )
    };
    answer == 0 && protocol == libc::IPPROTO_TCP
}

unsafe fn call_next(socket: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    let next = match NEXT.load(Ordering::Relaxed) {
        known if !known.is_null() => known,
        _ => find_next(),
    };
    if next.is_null() {
        // SAFETY: the arguments of the system call are those of the function, and the caller's own.
        return unsafe { libc::syscall(libc::SYS_connect, socket, address, length) as c_int };
    }
    // SAFETY: the dynamic linker found it under the name `connect`, which has this type everywhere.
    let next = unsafe { transmute::<*mut c_void, Connect>(next) };
    // SAFETY: the arguments are the caller's own.
    unsafe { next(socket, address, length) }
}

/// Asks the dynamic linker; two threads that ask at once get the same answer.
fn find_next() -> *mut c_void {
    // SAFETY: the name is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"connect".as_ptr()) };
    NEXT.store(found, Ordering::Relaxed);
    found
}
