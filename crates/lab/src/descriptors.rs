//! File descriptors: how many a laboratory needs, and their limit (`getrlimit(2)`).
//!
//! A listener takes one for as long as the laboratory lives. So a page of many origins needs more than the usual
//! soft limit of 1,024. The limit is raised only as far as the laboratory needs, because programs in it inherit the
//! limit.

use std::io;

use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::LabError;

/// Descriptors that a laboratory needs besides its listeners: both ends of as many connections as the loader and
/// browsers open at once (256), a timer for each delayed answer, and its devices. `engines/lab.py` has the same
/// number.
const BEYOND_LISTENERS: u64 = 1_024;

/// Makes room for this many listeners.
///
/// # Errors
/// [`LabError`] when this user may not have so many descriptors.
pub(crate) fn reserve(listeners: u64) -> Result<(), LabError> {
    let needed = listeners + BEYOND_LISTENERS;
    let limit = raise(needed);
    if limit >= needed {
        return Ok(());
    }
    Err(LabError::FewDescriptors {
        listeners,
        needed,
        limit,
    })
}

/// Raises the soft limit to `wanted`, or to the hard limit if that is lower. Returns the new soft limit.
pub(crate) fn raise(wanted: u64) -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return u64::MAX;
    };
    let raised = wanted.min(hard);
    if raised <= soft || setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_err() {
        return soft;
    }
    raised
}

/// Whether a call failed because descriptors or kernel memory are used up. A caller that retries at once would
/// spin.
pub(crate) fn are_exhausted(error: &io::Error) -> bool {
    let exhausted = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| exhausted.contains(&code))
}
