//! Socket options that the libraries have no name for.

use std::io;
use std::os::fd::AsRawFd;

use nix::libc;

/// `TCP_FASTOPEN`: how many Fast Open requests may be pending at a listener.
pub const TCP_FASTOPEN: libc::c_int = libc::TCP_FASTOPEN;
/// `TCP_FASTOPEN_CONNECT`: the first write goes into the SYN if there is a cookie; if not, one is asked for.
pub const TCP_FASTOPEN_CONNECT: libc::c_int = 30;
/// `TCP_FASTOPEN_KEY`: the key of a listener's cookies.
pub const TCP_FASTOPEN_KEY: libc::c_int = 33;

/// The congestion control of every socket in the lab. Chosen per socket: a namespace inherits the host's
/// default and may not choose a restricted one (`net/ipv4/tcp_cong.c`, `tcp_set_default_congestion_control`).
const CONGESTION_CONTROL: &[u8] = b"cubic";

/// Sets a TCP option to the bytes of `value`.
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

/// Gives a socket the lab's congestion control. A listener's connections inherit it.
///
/// # Errors
/// The kernel's, when it has no CUBIC.
pub fn set_congestion_control(socket: &impl AsRawFd) -> io::Result<()> {
    let mut name = [0_u8; 16];
    name[..CONGESTION_CONTROL.len()].copy_from_slice(CONGESTION_CONTROL);
    set_tcp_option(socket, libc::TCP_CONGESTION, &name)
}
