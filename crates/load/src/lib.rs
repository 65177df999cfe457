//! A load on either clock: its job, its messages, what crossed the wire, what must cross it, and the rows of its
//! record.
//!
//! The lab (`crates/lab`, the real clock) and the simulator (`crates/sim`, the virtual one) both build on this
//! crate. So a measured and a simulated load can only differ in the transport. No I/O, no clock: time is an
//! argument.
#![forbid(unsafe_code)]

pub mod head;
pub mod hello;
mod job;
pub mod ledger;
pub mod priority;
pub mod promise;
pub mod quic;
pub mod record;
mod treatment;

pub use job::{Load, OriginRtt};
pub use priority::{Priorities, Priority};
pub use treatment::{
    Cookies, EarlyRequests, HttpVersion, MAX_EARLY_DATA, Mode, NoCookies, TlsOptions, TlsVersion,
};
