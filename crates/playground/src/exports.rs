//! The functions for JavaScript. Text goes in and out through the module's memory.
//!
//! The caller writes a text at the address from [`allocate`], and calls a function with it. The function returns a
//! pointer to its answer: a byte that is 0, or 1 for an error; its length, four bytes, little-endian; and the text.
//! [`release`] frees it. JavaScript calls one function at a time, because there is one thread.

use std::cell::RefCell;

use crate::Playground;

const HEADER_BYTES: usize = 5;

thread_local! {
    static PLAYGROUND: RefCell<Playground> = RefCell::default();
}

/// Allocates memory for a text of `bytes`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn allocate(bytes: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; bytes].into_boxed_slice()).cast()
}

/// Frees memory.
///
/// # Safety
/// `at` came from [`allocate`] with the same number of bytes, or is an answer of that length with its header, and
/// is not used any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn release(at: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise: this was a boxed slice of that length.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(at, bytes)) });
}

/// [`Playground::prepare`]. The text is `scheme`, a line feed, and the profile. The answer is the page's number.
///
/// # Safety
/// `bytes` bytes from `at` on are initialised, and are not written meanwhile.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn prepare(at: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    answer(unsafe { text(at, bytes) }.and_then(|text| {
        let (scheme, profile) = text.split_once('\n').ok_or("no scheme before the profile")?;
        let page = PLAYGROUND.with_borrow_mut(|playground| playground.prepare(scheme, profile))?;
        Ok(page.to_string())
    }))
}

/// [`Playground::load`].
///
/// # Safety
/// As [`prepare`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn load(
    page: usize,
    connection: u32,
    packets: u32,
    at: *const u8,
    bytes: usize,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    let job = unsafe { text(at, bytes) };
    let load = |job| PLAYGROUND.with_borrow(|playground| playground.load(page, connection, packets, job));
    answer(job.and_then(load))
}

/// # Safety
/// As [`prepare`].
unsafe fn text<'a>(at: *const u8, bytes: usize) -> Result<&'a str, String> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(at, bytes) };
    std::str::from_utf8(bytes).map_err(|error| error.to_string())
}

fn answer(result: Result<String, String>) -> *mut u8 {
    let is_error = u8::from(result.is_err());
    let text = result.unwrap_or_else(|error| error);
    let mut answer = Vec::with_capacity(HEADER_BYTES + text.len());
    answer.push(is_error);
    answer.extend((text.len() as u32).to_le_bytes());
    answer.extend(text.into_bytes());
    Box::into_raw(answer.into_boxed_slice()).cast()
}
