//! QUIC (RFC 9000) and HTTP/3 (RFC 9114) for both clocks, on [quinn-proto](quinn_proto).
//!
//! quinn-proto opens no socket and reads no clock, and neither does this crate. A driver passes datagrams and the
//! time to it, and sends the datagrams that it returns. The lab drives it with UDP sockets and rustls, the
//! simulator with a virtual clock and [cryptography that only has lengths](crypto::Lengths). So both transports are
//! the same code. A measured and a simulated load can only differ in the kernel's UDP and in processor time.
//!
//! Results hold for quinn's QUIC: its loss detection and pacing, its CUBIC without HyStart, New Reno or BBR, and
//! its MTU probes. HTTP/3 is reduced to what page loads need. Left out: the dynamic table of QPACK, changed
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
