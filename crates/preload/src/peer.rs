//! The `getpeername` that replaces the C library's.
//!
//! A program whose `connect` has succeeded may ask for its peer. With Fast Open the handshake has not happened yet,
//! and the kernel answers `ENOTCONN`. curl then never reuses the connection, although it would without Fast Open.
//! But the kernel does know the address, and `SO_PEERNAME` returns it.

use std::ffi::c_void;
use std::mem::transmute;

use libc::{c_int, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

use crate::errno::errno;
use crate::next::Next;
use crate::option;

type GetPeerName = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;

pub(crate) static NEXT: Next = Next::new(c"getpeername");

/// Offset of `tcpi_state` in `struct tcp_info`, and its value for a connection whose SYN is not answered yet.
const INFO_STATE: usize = 0;
const SYN_SENT: u8 = 2;
/// Offset of the byte with `tcpi_fastopen_client_fail` in bits 1 and 2; 1 means that there was no cookie.
const INFO_FLAGS: usize = 7;
const NO_COOKIE: u8 = 1;

/// `getpeername(2)`, which also knows the peer of a connection whose SYN waits for data or for its answer.
///
/// # Safety
/// As for `getpeername(2)`: `address` points to `*length` writable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getpeername(
    socket: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let next = NEXT.address();
    let answer = if next.is_null() {
        // SAFETY: the arguments of the system call are those of the function, and the caller's own.
        unsafe { libc::syscall(libc::SYS_getpeername, socket, address, length) as c_int }
    } else {
        // SAFETY: the dynamic linker found it under this name, which has this type everywhere.
        let next = unsafe { transmute::<*mut c_void, GetPeerName>(next) };
        // SAFETY: the arguments are the caller's own.
        unsafe { next(socket, address, length) }
    };
    if answer == 0 || errno() != libc::ENOTCONN || address.is_null() || length.is_null() {
        return answer;
    }
    let mut peer = [0; size_of::<sockaddr_in6>()];
    let Some(peer) = passes_for_connected(socket)
        .then(|| find_peer(socket, &mut peer))
        .flatten()
    else {
        return answer;
    };
    // SAFETY: the caller vouches for `length`, and for as many bytes at `address`.
    unsafe {
        let room = (*length as usize).min(peer.len());
        address.cast::<u8>().copy_from_nonoverlapping(peer.as_ptr(), room);
        *length = peer.len() as socklen_t;
    }
    0
}

/// Whether `connect` succeeded before the handshake. Without a cookie it waited, or reported that the handshake was
/// in progress.
fn passes_for_connected(socket: c_int) -> bool {
    let mut info = [0; 8];
    option::get(socket, libc::IPPROTO_TCP, option::TCP_FASTOPEN_CONNECT) == Some(1)
        && option::read(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info) == Some(info.len())
        && info[INFO_STATE] == SYN_SENT
        && info[INFO_FLAGS] >> 1 & 3 != NO_COOKIE
}

/// The address that the socket connects to. `SO_PEERNAME` returns it even before the connection is established
/// (`net/core/sock.c`; `inet_getname` with `peer` 2).
fn find_peer(socket: c_int, buffer: &mut [u8; size_of::<sockaddr_in6>()]) -> Option<&[u8]> {
    let length = match option::get(socket, libc::SOL_SOCKET, libc::SO_DOMAIN)? {
        libc::AF_INET => size_of::<sockaddr_in>(),
        libc::AF_INET6 => size_of::<sockaddr_in6>(),
        _ => return None,
    };
    let peer = &mut buffer[..length];
    (option::read(socket, libc::SOL_SOCKET, libc::SO_PEERNAME, peer) == Some(length)).then_some(peer)
}
