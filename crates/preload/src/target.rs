//! The destination of a `connect`.

use libc::{sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

/// The port of an IPv4 or IPv6 address; `None` for any other family, or an address too short to hold one.
///
/// # Safety
/// `address` is null or points to `length` readable bytes.
pub(crate) unsafe fn tcp_port(address: *const sockaddr, length: socklen_t) -> Option<u16> {
    let length = length as usize;
    if address.is_null() || length < size_of::<sa_family_t>() {
        return None;
    }
    // SAFETY: the family is the first field and within `length`; callers need not have aligned the address.
    let family = unsafe { address.cast::<sa_family_t>().read_unaligned() };
    let port = match i32::from(family) {
        libc::AF_INET if length >= size_of::<sockaddr_in>() => {
            // SAFETY: the whole address is within `length`.
            unsafe { address.cast::<sockaddr_in>().read_unaligned() }.sin_port
        }
        // An address may lack the scope, the last four bytes (`net/ipv6/tcp_ipv6.c`, SIN6_LEN_RFC2133).
        libc::AF_INET6 if length >= size_of::<sockaddr_in6>() - 4 => {
            // SAFETY: family and port are the first four bytes, within `length`.
            unsafe { address.cast::<u16>().add(1).read_unaligned() }
        }
        _ => return None,
    };
    Some(u16::from_be(port))
}
