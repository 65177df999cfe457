//! `errno` belongs to the program.

/// Runs `work` and puts `errno` back to what it was.
pub(crate) fn keeping_errno(work: impl FnOnce()) {
    // SAFETY: the C library gives every thread a place for its errno, valid as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: see above; nobody else writes this thread's errno.
    let before = unsafe { *errno };
    work();
    // SAFETY: see above.
    unsafe { *errno = before };
}
