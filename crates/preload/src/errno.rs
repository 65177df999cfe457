//! `errno` belongs to the program.

use libc::c_int;

/// Runs `work` and puts `errno` back to what it was.
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

/// What it is now.
pub(crate) fn errno() -> c_int {
    // SAFETY: see `keeping_errno`.
    unsafe { *libc::__errno_location() }
}
