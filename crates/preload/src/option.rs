//! Reads and sets socket options without changing `errno`.

use libc::{c_int, socklen_t};

use crate::errno::keeping_errno;

/// The first write goes into the SYN (`linux/tcp.h`, since 4.11).
pub(crate) const TCP_FASTOPEN_CONNECT: c_int = 30;

/// Sets an option. Failure does not concern the program.
pub(crate) fn set(socket: c_int, level: c_int, option: c_int, value: c_int) {
    keeping_errno(|| {
        // SAFETY: pointer and length describe `value`, which outlives the call.
        unsafe {
            let length = size_of::<c_int>() as socklen_t;
            let value = (&raw const value).cast();
            libc::setsockopt(socket, level, option, value, length)
        }
    });
}

/// Reads a number; `None` if the socket has no such option.
pub(crate) fn get(socket: c_int, level: c_int, option: c_int) -> Option<c_int> {
    let mut bytes = [0; size_of::<c_int>()];
    (read(socket, level, option, &mut bytes)? == bytes.len()).then(|| c_int::from_ne_bytes(bytes))
}

/// Reads as many bytes as the option has and `buffer` holds. Returns their number.
pub(crate) fn read(socket: c_int, level: c_int, option: c_int, buffer: &mut [u8]) -> Option<usize> {
    let mut length = buffer.len() as socklen_t;
    let answer = keeping_errno(|| {
        // SAFETY: pointer and length describe `buffer`; the kernel writes at most `length` bytes.
        unsafe { libc::getsockopt(socket, level, option, buffer.as_mut_ptr().cast(), &raw mut length) }
    });
    (answer == 0).then_some(length as usize)
}
