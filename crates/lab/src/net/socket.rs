//! Socket options that the libraries lack.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use nix::libc;

/// Sets a TCP option, such as `TCP_FASTOPEN_KEY`, to the bytes of `value`.
///
/// # Errors
/// The kernel's.
pub fn set_tcp_option<T: Copy>(socket: &impl AsRawFd, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`, which outlives the call.
    let answer = unsafe {
        let length = size_of::<T>() as libc::socklen_t;
        let value = std::ptr::from_ref(value).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, value, length)
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads the bytes of an option, such as `TCP_INFO`. Fields that the kernel does not know stay 0.
///
/// # Errors
/// The kernel's.
pub fn option_bytes<const LENGTH: usize>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0_u8; LENGTH];
    let mut length = LENGTH as libc::socklen_t;
    // SAFETY: pointer and length describe `bytes`; the kernel writes at most `length` bytes.
    let answer = unsafe {
        let value = bytes.as_mut_ptr().cast();
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, value, &raw mut length)
    };
    if answer == 0 {
        Ok(bytes)
    } else {
        Err(io::Error::last_os_error())
    }
}
