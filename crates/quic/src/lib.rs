//! QUIC (RFC 9000) and HTTP/3 (RFC 9114) for both clocks, on [quinn-proto](quinn_proto).
//!
//! quinn-proto opens no socket and reads no clock, and nor does this crate: a driver hands it datagrams and the time, and
//! sends what it gives. The lab drives it with UDP sockets and rustls, the simulator with a virtual clock and a
//! [cryptography that only has lengths](crypto::Lengths). So the transports of both are the same code, and a measured and
//! a simulated load can only differ in the kernel's UDP and in the time that the processor takes.
//!
//! What is said of a load holds for quinn's QUIC: its loss detection and pacing, its CUBIC without HyStart, New Reno or
//! BBR, its probes for the path's MTU. HTTP/3 is reduced to what page loads need. Left out: a dynamic table of QPACK, changed
//! priorities (RFC 9218, section 7), server push, `GOAWAY`, trailers, and Retry.
#![forbid(unsafe_code)]

mod client;
mod clock;
pub mod crypto;
mod frames;
mod heads;
pub mod qpack;
mod server;
mod settings;

pub use client::{Client, ClientEvent};
pub use heads::{request_block, response_block};
pub use quinn_proto as proto;
pub use server::{Server, ServerEvent, StreamKey};
pub use settings::{CongestionControl, MAX_STREAMS, SEGMENT_BYTES, Settings, deterministic_endpoint, seed};
