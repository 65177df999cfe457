//! The ports that may use Fast Open: all, or those in `FIRSTFLIGHT_PRELOAD_PORTS`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A bit per port. Valid if `NAMED` says that ports were named.
static PORTS: [AtomicU64; 1_024] = [const { AtomicU64::new(0) }; 1_024];
static NAMED: AtomicBool = AtomicBool::new(false);

/// Whether a connection to `port` may use Fast Open.
pub(crate) fn allowed(port: u16) -> bool {
    !NAMED.load(Ordering::Acquire) || slot(port).load(Ordering::Relaxed) & bit(port) != 0
}

/// Reads the variable, before the program starts.
pub(crate) fn read_environment() {
    // SAFETY: the name is a C string, and no thread changes the environment while libraries are loaded.
    let value = unsafe { libc::getenv(c"FIRSTFLIGHT_PRELOAD_PORTS".as_ptr()) };
    if value.is_null() {
        return;
    }
    // SAFETY: `getenv` answers with a C string.
    let text = unsafe { std::ffi::CStr::from_ptr(value) }.to_bytes();
    if text.is_empty() {
        return;
    }
    for port in parse(text).flatten() {
        slot(port).fetch_or(bit(port), Ordering::Relaxed);
    }
    NAMED.store(true, Ordering::Release);
}

/// The ports of a comma-separated list; `None` for an item that is not a port.
fn parse(text: &[u8]) -> impl Iterator<Item = Option<u16>> {
    text.split(|byte| *byte == b',').map(|word| {
        let word = word.trim_ascii();
        let digits = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
        let number = word.iter().try_fold(0_u16, |number, digit| {
            number
                .checked_mul(10)?
                .checked_add(u16::from(digit.wrapping_sub(b'0')))
        });
        number.filter(|_| digits)
    })
}

fn slot(port: u16) -> &'static AtomicU64 {
    &PORTS[usize::from(port / 64)]
}

fn bit(port: u16) -> u64 {
    1 << (port % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_ports_is_read_and_what_is_no_port_is_left_out() {
        let read = |text: &[u8]| parse(text).collect::<Vec<_>>();
        assert_eq!(read(b"80, 443"), [Some(80), Some(443)]);
        assert_eq!(
            read(b"0,65535,65536,-1,x,"),
            [Some(0), Some(65_535), None, None, None, None]
        );
    }

    #[test]
    fn every_port_may_until_some_are_named() {
        assert!(allowed(1) && allowed(65_535));
    }
}
