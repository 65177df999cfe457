//! File descriptors: how many a laboratory takes, and the limit of them (`getrlimit(2)`).
//!
//! A listener takes one for as long as the laboratory lives, so a page of many origins needs more than the usual
//! soft limit of 1,024. The limit is raised as far as the laboratory needs and no further: programs in the
//! laboratory inherit it.

use std::io;

use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::LabError;

/// What a laboratory takes beyond its listeners: both ends of as many connections as the loader and browsers open
/// at once (256), a timer for each answer that waits, and its devices. `engines/lab.py` knows it too.
const BEYOND_LISTENERS: u64 = 1_024;

/// Makes room for so many listeners.
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

/// Raises the soft limit to `wanted`, or as far as the hard limit lets it; returns what it is then.
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

/// Whether a call failed because descriptors or kernel memory are used up: to try again at once is to spin.
pub(crate) fn are_exhausted(error: &io::Error) -> bool {
    let exhausted = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| exhausted.contains(&code))
}
