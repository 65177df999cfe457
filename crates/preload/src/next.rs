//! The C library's own functions, which this library's functions of the same name call.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function that the dynamic linker finds after this library.
#[derive(Debug)]
pub(crate) struct Next {
    name: &'static CStr,
    /// Null until it has been looked up.
    found: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            found: AtomicPtr::new(null_mut()),
        }
    }

    /// Its address; null if there is none. Two threads that look it up at once get the same answer.
    pub(crate) fn address(&self) -> *mut c_void {
        match self.found.load(Ordering::Relaxed) {
            known if !known.is_null() => known,
            _ => self.find(),
        }
    }

    /// Asks the dynamic linker.
    pub(crate) fn find(&self) -> *mut c_void {
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}
