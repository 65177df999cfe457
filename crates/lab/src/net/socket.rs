//! Socket options that the libraries have no name for.

use std::io;
use std::os::fd::AsRawFd;

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
