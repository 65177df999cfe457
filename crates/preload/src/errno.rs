//! Keeps `errno` as the program left it.

use libc::c_int;

/// Runs `work`, and restores `errno`.
pub(crate) fn keeping_errno<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the C library gives every thread a place for its errno, valid as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: see above; no other thread writes this thread's errno.
    let before = unsafe { *errno };
    let done = work();
    // SAFETY: see above.
    unsafe { *errno = before };
    done
}

/// The present value.
pub(crate) fn errno() -> c_int {
    // SAFETY: see `keeping_errno`.
    unsafe { *libc::__errno_location() }
}
